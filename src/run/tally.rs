//! Counting a run while it goes: what each judge did, what the panel decided.
//!
//! Only sums are kept, so the memory is the same for ten cases and for ten million.

use serde::Serialize;

use crate::ruling::{Decision, Ruling};
use crate::stats::distribution::student_critical;
use crate::verdict::{Status, StatusCounts, Verdict};

/// What one judge did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JudgeTally {
    /// Its name.
    pub name: String,
    /// What makes it this judge.
    pub fingerprint: String,
    /// Its verdicts by status.
    pub statuses: StatusCounts,
    /// Cases on which it has a vote.
    pub votes: u64,
    /// The mean of its votes; `None` without any.
    pub mean_score: Option<f64>,
    /// The standard deviation of its votes (n - 1); `None` below two.
    pub standard_deviation: Option<f64>,
    /// The mean time of a verdict, in milliseconds, answers from the store left out.
    pub mean_latency_ms: Option<f64>,
    /// Verdicts answered from the store.
    pub cached: u64,
    /// Status and reason of one verdict that failed, as an example; `None` without any.
    pub failure: Option<String>,
    /// Prompt tokens.
    pub tokens_in: u64,
    /// Completion tokens.
    pub tokens_out: u64,
    /// US dollars for answers that were not in the store; `None` where a call has no price.
    pub cost_usd: Option<f64>,
    #[serde(skip)]
    score: Moments,
    #[serde(skip)]
    latency: Moments,
    #[serde(skip)]
    cost: f64,
    #[serde(skip)]
    unpriced: bool,
}

/// Count, mean and sum of squared deviations, updated one value at a time (Welford, 1962).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    fn standard_deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

impl JudgeTally {
    /// Half the width of the 95% interval of the mean vote (Student's t, cases taken as
    /// independent); `None` below ten votes, where it would say little about scores in
    /// \[0,1\].
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        if self.score.count < 10 {
            return None;
        }
        let n = self.score.count as f64;
        let critical = student_critical(0.95, n - 1.0);
        self.standard_deviation.map(|deviation| critical * deviation / n.sqrt())
    }

    fn vote(&mut self, score: f64) {
        self.score.add(score);
        self.votes = self.score.count;
        self.mean_score = self.score.mean();
        self.standard_deviation = self.score.standard_deviation();
    }

    fn add(&mut self, verdict: &Verdict) {
        self.statuses.add(verdict.status);
        if self.failure.is_none()
            && verdict.status.is_error()
            && !verdict.notes.contains_key(crate::panel::decide::NOT_NEEDED)
            && let Some(detail) = &verdict.detail
        {
            self.failure = Some(format!("{}: {detail}", verdict.status));
        }
        if verdict.cached {
            self.cached += 1;
        } else if verdict.attempts > 0 {
            self.latency.add(verdict.latency_ms as f64);
        }
        self.tokens_in += verdict.usage.tokens_in;
        self.tokens_out += verdict.usage.tokens_out;
        match verdict.cost_usd {
            Some(cost) if !verdict.cached => self.cost += cost,
            None if verdict.usage.calls > 0 && !verdict.cached => self.unpriced = true,
            _ => {}
        }
        self.mean_latency_ms = self.latency.mean();
        self.cost_usd = (!self.unpriced).then_some(self.cost);
    }
}

/// What a run has counted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Cases with a ruling.
    pub cases: u64,
    /// Verdicts by status, over all judges.
    pub statuses: StatusCounts,
    /// Cases accepted.
    pub accepted: u64,
    /// Cases rejected.
    pub rejected: u64,
    /// Cases on which too few judges voted, or a required one did not.
    pub undecided: u64,
    /// Cases decided with fewer votes than declared.
    pub degraded: u64,
    /// Cases whose votes are not those that the profile was calibrated on.
    pub uncalibrated: u64,
    /// Cases whose ruling no certificate bounds, under a profile.
    pub uncertified: u64,
    /// Verdicts not asked for because the decision was settled.
    pub not_needed: u64,
    /// By judge, in the panel's order.
    pub judges: Vec<JudgeTally>,
}

impl Tally {
    /// An empty tally for these judges, given by name and fingerprint.
    #[must_use]
    pub fn new(judges: impl Iterator<Item = (String, String)>) -> Self {
        let judges = judges
            .map(|(name, fingerprint)| JudgeTally {
                name,
                fingerprint,
                cost_usd: Some(0.0),
                ..JudgeTally::default()
            })
            .collect();
        Self { judges, ..Self::default() }
    }

    /// Counts a ruling with its verdicts.
    pub fn add(&mut self, ruling: &Ruling) {
        self.cases += 1;
        match ruling.decision {
            Decision::Accept => self.accepted += 1,
            Decision::Reject => self.rejected += 1,
            Decision::Undecided => self.undecided += 1,
        }
        self.degraded += u64::from(ruling.degraded);
        if let Some(profile) = &ruling.profile {
            self.uncalibrated += u64::from(profile.uncalibrated);
            self.uncertified += u64::from(profile.uncertified);
        }
        // One vote a case: samples of one case say nothing of the spread between cases.
        for vote in &ruling.votes {
            let judge = self.judges.iter_mut().find(|judge| judge.name == vote.judge);
            if let (Some(judge), Some(score)) = (judge, vote.score) {
                judge.vote(score.get());
            }
        }
        for verdict in &ruling.verdicts {
            self.statuses.add(verdict.status);
            if verdict.notes.contains_key(crate::panel::decide::NOT_NEEDED) {
                self.not_needed += 1;
            }
            if let Some(judge) = self.judges.iter_mut().find(|judge| judge.name == verdict.judge) {
                judge.add(verdict);
            }
        }
    }

    /// All verdicts.
    #[must_use]
    pub fn verdicts(&self) -> u64 {
        self.statuses.total()
    }

    /// Verdicts without a score that were asked for.
    #[must_use]
    pub fn unscored(&self) -> u64 {
        self.verdicts() - self.statuses.get(Status::Ok) - self.not_needed
    }

    /// US dollars for answers that were not in the store; `None` where a call has no price.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.judges.iter().map(|judge| judge.cost_usd).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::Score;

    #[test]
    fn moments_are_those_of_the_textbook() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean(), moments.standard_deviation()), (None, None));
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            moments.add(value);
        }
        assert!((moments.mean().unwrap() - 5.0).abs() < 1e-12);
        assert!((moments.standard_deviation().unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn an_unpriced_call_makes_the_cost_unknown_and_never_zero() {
        let mut judge = JudgeTally { cost_usd: Some(0.0), ..JudgeTally::default() };
        let mut verdict = Verdict { cost_usd: Some(0.5), ..Verdict::ok(Score::ONE) };
        verdict.usage.calls = 1;
        judge.add(&verdict);
        assert_eq!(judge.cost_usd, Some(0.5));
        judge.add(&Verdict { cached: true, ..verdict.clone() });
        assert_eq!(judge.cost_usd, Some(0.5), "a stored answer costs nothing again");
        judge.add(&Verdict { cost_usd: None, ..verdict });
        assert_eq!(judge.cost_usd, None);
    }
}
