//! `similarity`: how close a text is to a reference, by a published measure of wording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::equals::references;
use super::finding::{Check, Finding, NotApplicable, Of, Rule};
use super::token_overlap::{bleu, chr_f, edit, rouge_l};
use crate::case::Case;
use crate::text::{self, Shingles};

/// Options of `similarity`.
///
/// Score: the measure, in [0,1]; of several references the best. With `graded = false`: 1
/// when it reaches `min`, else 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimilaritySpec {
    /// The text that is measured.
    #[serde(default)]
    pub of: Of,
    /// What it is compared with.
    #[serde(default = "expected")]
    pub against: Of,
    /// The measure.
    pub metric: Metric,
    /// Whether each line of `expected` is a reference of its own, the best of which counts.
    #[serde(default)]
    pub any_line: bool,
    /// Whether letter case does not matter. By default as the measure is published: it does
    /// for `edit`, `bleu` and `chrf`, it doesn't for `jaccard` and `rouge_l`.
    #[serde(default)]
    pub ignore_case: Option<bool>,
    /// With `jaccard`: how many tokens make a shingle; 1 by default.
    #[serde(default)]
    pub shingle: Option<u32>,
    /// The least that passes.
    #[serde(default)]
    pub min: Option<f64>,
    /// Whether the score is the measure itself.
    #[serde(default = "yes")]
    pub graded: bool,
}

fn expected() -> Of {
    Of::Expected
}

fn yes() -> bool {
    true
}

/// A measure of wording; none of them knows meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Shared shingles of tokens over all shingles (Jaccard, 1912; Broder, 1997).
    Jaccard,
    /// One minus the edit distance over the longer length (Levenshtein, 1966).
    Edit,
    /// ROUGE-L, the F1 of the longest common subsequence of words (Lin, 2004).
    RougeL,
    /// BLEU-4 of one pair, exponential smoothing (Papineni et al., 2002; Chen and Cherry,
    /// 2014).
    Bleu,
    /// chrF2 of character n-grams up to 6 (Popović, 2015).
    Chrf,
}

impl Metric {
    fn name(self) -> &'static str {
        match self {
            Self::Jaccard => "jaccard",
            Self::Edit => "edit",
            Self::RougeL => "rouge_l",
            Self::Bleu => "bleu",
            Self::Chrf => "chrf",
        }
    }

    fn ignores_case(self) -> bool {
        matches!(self, Self::Jaccard | Self::RougeL)
    }
}

impl SimilaritySpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        if self.of == self.against {
            return Err(BuildError::invalid(
                "against",
                format!("compares `{}` with itself: expected another text", self.of.name()),
            ));
        }
        if self.any_line && self.against != Of::Expected {
            return Err(BuildError::invalid("any_line", "needs `against = \"expected\"`"));
        }
        if let Some(min) = self.min
            && !(0.0..=1.0).contains(&min)
        {
            return Err(BuildError::invalid("min", format!("is {min}: expected 0 to 1")));
        }
        if !self.graded && self.min.is_none() {
            return Err(BuildError::invalid(
                "graded",
                "`false` needs `min`, the least that passes",
            ));
        }
        match self.shingle {
            Some(_) if self.metric != Metric::Jaccard => {
                return Err(BuildError::invalid("shingle", "needs `metric = \"jaccard\"`"));
            }
            Some(0) => return Err(BuildError::invalid("shingle", "is 0: expected 1 or more")),
            _ => {}
        }
        Ok(Box::new(Similarity { spec: self.clone() }))
    }
}

#[derive(Debug)]
struct Similarity {
    spec: SimilaritySpec,
}

impl Similarity {
    fn fold(&self, written: &str) -> String {
        if self.spec.ignore_case.unwrap_or(self.spec.metric.ignores_case()) {
            text::normalise(written)
        } else {
            written.trim().to_owned()
        }
    }

    fn value(&self, candidate: &str, reference: &str) -> Option<f64> {
        match self.spec.metric {
            Metric::Jaccard => {
                let size = self.spec.shingle.unwrap_or(1) as usize;
                Some(Shingles::of(candidate, size).similarity(&Shingles::of(reference, size)))
            }
            Metric::Edit => edit(candidate, reference),
            Metric::RougeL => rouge_l(candidate, reference),
            Metric::Bleu => Some(bleu(candidate, reference)),
            Metric::Chrf => Some(chr_f(candidate, reference)),
        }
    }
}

impl Rule for Similarity {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let candidate = self.fold(self.spec.of.text(case)?);
        let references = if self.spec.any_line {
            references(case, true)?
        } else {
            vec![self.spec.against.text(case)?]
        };
        let mut best = 0.0_f64;
        for reference in references {
            let value = self.value(&candidate, &self.fold(reference)).ok_or_else(|| {
                NotApplicable::new(format!(
                    "`{}` and `{}` are too long for `{}`: use `jaccard` or `chrf`",
                    self.spec.of.name(),
                    self.spec.against.name(),
                    self.spec.metric.name()
                ))
            })?;
            best = best.max(value);
        }
        let name = self.spec.metric.name();
        let complaint = self.spec.min.filter(|min| best < *min).map(|min| {
            format!(
                "{name} against `{}` is {best:.3}: expected at least {min}; keep closer to it",
                self.spec.against.name()
            )
        });
        let score = match (self.spec.graded, &complaint) {
            (true, _) => best,
            (false, None) => 1.0,
            (false, Some(_)) => 0.0,
        };
        let finding = match self.spec.min {
            Some(_) => Finding::of(score, vec![Check::graded(name, score, complaint).raw(best)]),
            None => Finding::new(score),
        };
        Ok(finding.raw(best))
    }
}
