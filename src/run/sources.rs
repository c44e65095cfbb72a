//! Results by source: how the outputs of each system, model or person fared.
//!
//! A source is what the case's `source` says. Nothing is compared here; whoever wants to know
//! whether one source is better than another needs the same tasks for both.

use std::collections::BTreeMap;

use serde::Serialize;

use super::share::{Share, ShareCounts};
use super::tally::Moments;
use crate::ruling::{Decision, Ruling};

/// Sources beyond which none is shown: such a field names cases, and a table of them would be
/// as long as the data.
pub const MOST_SOURCES: usize = 100;

/// What became of the outputs of one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceResult {
    /// The source; `None` for the cases that name none.
    pub source: Option<String>,
    /// Its cases with a ruling.
    pub cases: u64,
    /// Accepted ones.
    pub accepted: u64,
    /// Rejected ones.
    pub rejected: u64,
    /// Undecided ones.
    pub undecided: u64,
    /// The share of the decided ones that is accepted, with its 95% interval.
    pub accepted_share: Option<Share>,
    /// The mean of the panel's scores; `None` without any.
    pub mean_score: Option<f64>,
    /// Half the width of that mean's 95% interval (Student's t, cases taken as independent);
    /// `None` below ten scores.
    pub margin: Option<f64>,
    /// Cases with a score.
    pub scored: u64,
}

/// Counts by source.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    known: BTreeMap<Option<String>, Counts>,
    too_many: bool,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    cases: u64,
    decided: ShareCounts,
    scores: Moments,
}

impl Sources {
    pub(super) fn add(&mut self, ruling: &Ruling, source: Option<&str>, group: Option<&str>) {
        if self.too_many {
            return;
        }
        let key = source.map(str::to_owned);
        if self.known.len() > MOST_SOURCES && !self.known.contains_key(&key) {
            // All or none: which ones came first is chance.
            self.known.clear();
            self.too_many = true;
            return;
        }
        let counts = self.known.entry(key).or_default();
        counts.cases += 1;
        if ruling.decision != Decision::Undecided {
            counts.decided.add(group, ruling.decision == Decision::Accept);
        }
        if let Some(score) = ruling.score {
            counts.scores.add(score.get());
        }
    }

    /// Whether there are more than [`MOST_SOURCES`].
    pub(super) fn too_many(&self) -> bool {
        self.too_many
    }

    /// Each source by its name, cases without one last; empty where no case has any.
    pub(super) fn results(&self) -> Vec<SourceResult> {
        if self.known.keys().all(Option::is_none) {
            return Vec::new();
        }
        let (none, named): (Vec<_>, Vec<_>) =
            self.known.iter().partition(|(source, _)| source.is_none());
        named
            .into_iter()
            .chain(none)
            .map(|(source, counts)| SourceResult {
                source: source.clone(),
                cases: counts.cases,
                accepted: counts.decided.yes(),
                rejected: counts.decided.n() - counts.decided.yes(),
                undecided: counts.cases - counts.decided.n(),
                accepted_share: counts.decided.share(),
                mean_score: counts.scores.mean(),
                margin: counts.scores.margin(),
                scored: counts.scores.count(),
            })
            .collect()
    }
}
