//! Which cases of a run someone wants to see.

use std::sync::Arc;

use super::truth::{Mistake, Truth};
use crate::ruling::{Decision, Ruling, Vote};
use crate::verdict::Status;

/// A choice among the judged cases of a run; the default takes all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Any of these decisions; empty for all.
    pub decisions: Vec<Decision>,
    /// A verdict with any of these statuses; empty for all.
    pub statuses: Vec<Status>,
    /// The judge that `statuses`, `outvoted` and `wrong` are about; any judge when absent, and
    /// for `wrong` the panel.
    pub judge: Option<String>,
    /// Cases on which a counted judge's vote stands on the other side of the threshold than
    /// the panel's decision.
    pub outvoted: bool,
    /// The least spread: largest minus smallest vote, in [0,1].
    pub least_spread: Option<f64>,
    /// What labels say, where they are known.
    pub truth: Option<Arc<Truth>>,
    /// Cases whose decision contradicts their label: none of them without `truth`.
    pub wrong: bool,
}

impl Selection {
    /// Whether a case belongs to it.
    #[must_use]
    pub fn takes(&self, ruling: &Ruling) -> bool {
        let about = |name: &str| self.judge.as_deref().is_none_or(|judge| judge == name);
        (self.decisions.is_empty() || self.decisions.contains(&ruling.decision))
            && (self.statuses.is_empty()
                || ruling
                    .verdicts
                    .iter()
                    .any(|v| about(&v.judge) && self.statuses.contains(&v.status)))
            && (!self.outvoted
                || ruling
                    .votes
                    .iter()
                    .any(|vote| about(&vote.judge) && vote.counted && is_outvoted(ruling, vote)))
            && self
                .least_spread
                .is_none_or(|least| ruling.spread.is_some_and(|spread| spread >= least))
            && (!self.wrong || self.mistake(ruling).is_some())
    }

    /// Which way the panel's decision, or the vote of the judge that is named, contradicts the
    /// label.
    #[must_use]
    pub fn mistake(&self, ruling: &Ruling) -> Option<Mistake> {
        self.truth.as_ref()?.mistake(ruling, self.judge.as_deref())
    }

    /// Whether it takes every case.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.decisions.is_empty()
            && self.statuses.is_empty()
            && !self.outvoted
            && self.least_spread.is_none()
            && !self.wrong
    }

    /// What it takes, in words; `None` for every case.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        if self.is_all() {
            return None;
        }
        let list = |names: Vec<&str>| names.join(" or ");
        let judge = self.judge.as_ref().map_or("a judge".to_owned(), |name| format!("`{name}`"));
        let mut parts = Vec::new();
        if !self.decisions.is_empty() {
            let names = self.decisions.iter().map(|decision| decision.name()).collect();
            parts.push(format!("decision {}", list(names)));
        }
        if !self.statuses.is_empty() {
            let names = self.statuses.iter().map(|status| status.name()).collect();
            parts.push(format!("{judge} {}", list(names)));
        }
        if self.outvoted {
            parts.push(format!("{judge} outvoted"));
        }
        if let Some(least) = self.least_spread {
            parts.push(format!("spread {least} or more"));
        }
        if self.wrong {
            let whose =
                self.judge.as_ref().map_or("decision".to_owned(), |_| format!("vote of {judge}"));
            let rule =
                self.truth.as_ref().map_or_else(String::new, |own| format!(" ({})", own.rule()));
            parts.push(format!("{whose} against the label{rule}"));
        }
        Some(parts.join(", "))
    }
}

/// Whether a vote stands on the other side of the threshold than the decision.
pub(super) fn is_outvoted(ruling: &Ruling, vote: &Vote) -> bool {
    let Some(for_it) = ruling.vote_accepts(vote) else { return false };
    match ruling.decision {
        Decision::Accept => !for_it,
        Decision::Reject => for_it,
        Decision::Undecided => false,
    }
}
