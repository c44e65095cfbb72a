//! Scorers that are the truth: an exact match with a reference, or a person's rating that the
//! file holds among its scores. Only the user knows which.

use std::str::FromStr;

use super::Imported;
use super::error::ImportError;
use crate::dataset::{Label, LabelSource, LabelValue};

/// A judge whose scores are labels, and what they rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The judge.
    pub judge: String,
    /// What its word is.
    pub source: LabelSource,
}

impl FromStr for Truth {
    type Err = ImportError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ImportError::TruthSyntax { text: text.to_owned() };
        let (judge, source) = text.rsplit_once('=').ok_or_else(wrong)?;
        let source = [LabelSource::Human, LabelSource::GroundTruth, LabelSource::Model]
            .into_iter()
            .find(|own| own.name() == source)
            .filter(|_| !judge.is_empty())
            .ok_or_else(wrong)?;
        Ok(Self { judge: judge.to_owned(), source })
    }
}

/// Moves the judgements of these judges to the labels. One without a score says nothing and is
/// counted.
pub(super) fn take(imported: &mut Imported, truths: &[Truth]) -> Result<(), ImportError> {
    for truth in truths {
        let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut imported.judgements)
            .into_iter()
            .partition(|judgement| judgement.judge == truth.judge);
        imported.judgements = rest;
        if own.is_empty() {
            return Err(ImportError::NoJudge {
                path: imported.file.clone(),
                judge: truth.judge.clone(),
                judges: imported.statuses().into_keys().map(|own| format!("`{own}`")).collect(),
            });
        }
        let mut without = super::Note {
            count: 0,
            text: format!("a score of `{}` is missing: no label", truth.judge),
            first: String::new(),
        };
        for judgement in own {
            let Some(score) = judgement.score else {
                if without.count == 0 {
                    without.first = format!("case `{}`", judgement.case);
                }
                without.count += 1;
                continue;
            };
            imported.labels.push(Label {
                case: judgement.case,
                rater: truth.judge.clone(),
                criterion: judgement.criterion,
                value: LabelValue::Number(score),
                label_source: truth.source,
            });
        }
        if without.count > 0 {
            imported.notes.push(without);
        }
    }
    Ok(())
}
