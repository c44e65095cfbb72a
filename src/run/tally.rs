//! Counting a run while it goes: what each judge did, what the panel decided.
//!
//! Only sums are kept, so the memory is the same for ten cases and for ten million; where
//! cases have a `group`, two counts a group.

use std::collections::BTreeMap;

use serde::Serialize;

use super::select::is_outvoted;
use super::share::{Share, ShareCounts};
use super::sources::{SourceResult, Sources};
use crate::case::Case;
use crate::judge::sources::{SCORE_SOURCE, ScoreSources};
use crate::ruling::{Decision, Ruling};
use crate::stats::distribution::student_critical;
use crate::verdict::{Status, StatusCounts, Verdict};

/// Votes from which a judge can be said to give always the same score.
const ENOUGH_CASES: u64 = 20;
/// The share of its votes that is nearly always.
const NEARLY_ALWAYS: f64 = 0.9;
/// Different scores of a judge that are counted apart.
const KINDS_OF_SCORES: usize = 32;

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
    /// Cases on which its counted vote stood on the other side of the threshold than the
    /// decision.
    pub outvoted: u64,
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
    /// What its scores were read from.
    pub score_sources: ScoreSources,
    /// Verdicts that another model than the one asked for answered.
    pub model_mismatches: u64,
    /// Which model was asked for and which answered, of one of them.
    pub model_mismatch: Option<String>,
    /// Replies of model servers that its verdicts rest on, whenever they were paid for.
    pub run_calls: u64,
    /// US dollars that these cost when they were paid for; `None` where a call has no price.
    pub run_cost_usd: Option<f64>,
    /// Whether it asks model servers, so that a call of it that failed may have cost something.
    #[serde(skip)]
    pub asks_models: bool,
    /// Whether asking it again about the same text can give another verdict: it asks a server
    /// or a person.
    #[serde(skip)]
    pub can_change: bool,
    /// Whether its scores follow from the text alone, as a rule's or a command's do.
    #[serde(skip)]
    pub measures: bool,
    /// Whether it may veto.
    #[serde(skip)]
    pub required: bool,
    /// Whether its vote is counted.
    #[serde(skip)]
    counted: bool,
    /// How often each of its first scores was given, by the score's bits.
    #[serde(skip)]
    same: BTreeMap<u64, u64>,
    /// Why it abstained the first time.
    #[serde(skip)]
    abstention: Option<String>,
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
pub(super) struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// Rounded to twelve decimals: answers come in any order, and the last digits of a sum
    /// depend on it.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| rounded(self.mean))
    }

    /// Values added.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Half the width of the 95% interval of the mean (Student's t); `None` below ten values.
    pub(super) fn margin(&self) -> Option<f64> {
        if self.count < 10 {
            return None;
        }
        let n = self.count as f64;
        let critical = student_critical(0.95, n - 1.0);
        self.standard_deviation().map(|deviation| critical * deviation / n.sqrt())
    }

    fn standard_deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| rounded((self.squares / (self.count - 1) as f64).sqrt()))
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e12).round() / 1e12
}

impl JudgeTally {
    /// Half the width of the 95% interval of the mean vote (Student's t, cases taken as
    /// independent); `None` below ten votes, where it would say little about scores in
    /// \[0,1\].
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        self.score.margin()
    }

    fn vote(&mut self, score: f64) {
        self.score.add(score);
        self.votes = self.score.count;
        self.mean_score = self.score.mean();
        self.standard_deviation = self.score.standard_deviation();
        // What is given nearly always is among the first; the rest would only take memory.
        let bits = score.to_bits();
        if self.same.len() < KINDS_OF_SCORES || self.same.contains_key(&bits) {
            *self.same.entry(bits).or_default() += 1;
        }
    }

    /// Whether it gives one score nearly always, and so tells hardly anything apart.
    fn says_one_thing(&self) -> bool {
        let most = self.same.values().max().copied().unwrap_or_default();
        self.votes >= ENOUGH_CASES && most as f64 > NEARLY_ALWAYS * self.votes as f64
    }

    /// What to say of a judge that abstained on every case.
    fn silent(&self, cases: u64) -> Option<String> {
        let abstained = self.statuses.get(Status::Abstained);
        if cases == 0 || self.votes > 0 || abstained == 0 || abstained < self.statuses.total() {
            return None;
        }
        let why = self.abstention.as_deref().unwrap_or("it abstained without a reason");
        let of =
            if cases == 1 { "the one case".into() } else { format!("any of the {cases} cases") };
        let mapped = if why.contains("no recorded verdict on the case") {
            ": is the column of ids read as `id` (`--map id=COLUMN`)?"
        } else {
            ""
        };
        Some(format!("`{}` has no score for {of}: {why}{mapped}", self.name))
    }

    /// Verdicts that failed and may come out otherwise when they are asked for again.
    #[must_use]
    pub fn worth_asking_again(&self) -> u64 {
        let again = [Status::Timeout, Status::ProviderError, Status::RateLimited, Status::Budget];
        let failed = again.iter().map(|status| self.statuses.get(*status)).sum();
        if self.can_change { failed } else { 0 }
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
        if let Some(note) = verdict.notes.get("model_mismatch") {
            self.model_mismatches += 1;
            self.model_mismatch.get_or_insert_with(|| note.as_str().unwrap_or_default().to_owned());
        }
        if verdict.status == Status::Abstained && self.abstention.is_none() {
            self.abstention.clone_from(&verdict.detail);
        }
        if verdict.status == Status::Ok {
            self.score_sources.add(verdict.notes.get(SCORE_SOURCE));
        }
        if verdict.cached {
            self.cached += 1;
        } else if verdict.attempts > 0 {
            self.latency.add(verdict.latency_ms as f64);
        }
        self.tokens_in += verdict.usage.tokens_in;
        self.tokens_out += verdict.usage.tokens_out;
        self.run_calls += u64::from(verdict.usage.calls);
        let asked = verdict.usage.calls > 0 || (self.asks_models && verdict.attempts > 0);
        match verdict.cost_usd {
            // A run that was kept by an earlier version may hold a cost beyond all bounds.
            Some(cost) => self.cost = (self.cost + cost).min(f64::MAX),
            None => self.unpriced |= asked,
        }
        self.mean_latency_ms = self.latency.mean();
        self.run_cost_usd = (!self.unpriced).then_some(self.cost);
    }
}

/// Where a case belongs, of all that is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Its group.
    pub group: Option<&'a str>,
    /// The system that wrote its output.
    pub source: Option<&'a str>,
}

impl<'a> From<&'a Case> for Origin<'a> {
    fn from(case: &'a Case) -> Self {
        Self { group: case.group.as_deref(), source: case.source.as_deref() }
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
    /// Decided cases whose votes are not those that the profile was calibrated on.
    pub uncalibrated: u64,
    /// Decided cases whose ruling no certificate bounds, under a profile.
    pub uncertified: u64,
    /// Decided cases whose ruling a certificate bounds.
    pub certified: u64,
    /// Verdicts not asked for because the decision was settled.
    pub not_needed: u64,
    /// By judge, in the panel's order.
    pub judges: Vec<JudgeTally>,
    #[serde(skip)]
    decided: ShareCounts,
    #[serde(skip)]
    sources: Sources,
}

impl Tally {
    /// An empty tally for these judges, given by name and fingerprint.
    #[must_use]
    pub fn new(judges: impl Iterator<Item = (String, String)>) -> Self {
        let judges = judges
            .map(|(name, fingerprint)| JudgeTally {
                name,
                fingerprint,
                run_cost_usd: Some(0.0),
                ..JudgeTally::default()
            })
            .collect();
        Self { judges, ..Self::default() }
    }

    /// Counts a ruling with its verdicts; `origin` is its case's.
    ///
    /// Judges that the tally was not made with are added as they are met.
    pub fn add(&mut self, ruling: &Ruling, origin: Origin<'_>) {
        self.cases += 1;
        if ruling.decision != Decision::Undecided {
            self.decided.add(origin.group, ruling.decision == Decision::Accept);
        }
        self.sources.add(ruling, origin.source, origin.group);
        match ruling.decision {
            Decision::Accept => self.accepted += 1,
            Decision::Reject => self.rejected += 1,
            Decision::Undecided => self.undecided += 1,
        }
        self.degraded += u64::from(ruling.degraded);
        if let Some(profile) = &ruling.profile
            && ruling.decision != Decision::Undecided
        {
            self.uncalibrated += u64::from(profile.uncalibrated);
            self.uncertified += u64::from(profile.uncertified);
            self.certified += u64::from(profile.bound.is_some());
        }
        for vote in &ruling.votes {
            if !self.judges.iter().any(|judge| judge.name == vote.judge) {
                self.judges.push(JudgeTally {
                    name: vote.judge.clone(),
                    run_cost_usd: Some(0.0),
                    ..JudgeTally::default()
                });
            }
        }
        // One vote a case: samples of one case say nothing of the spread between cases.
        for vote in &ruling.votes {
            let judge = self.judges.iter_mut().find(|judge| judge.name == vote.judge);
            let Some(judge) = judge else { continue };
            judge.counted |= vote.counted;
            judge.required |= vote.required;
            judge.outvoted += u64::from(vote.counted && is_outvoted(ruling, vote));
            if let Some(score) = vote.score {
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

    /// The share of the decided cases that is accepted. By Wilson's interval (1927) over
    /// cases; where cases have a group, by cluster bootstrap over groups, since cases of one
    /// group tend to stand or fall together, and never narrower than by case. `None` without a decided case, and where all
    /// are of one group and not decided alike, whose spread can't be known; one that is decided
    /// alike counts as one case.
    #[must_use]
    pub fn accepted_share(&self) -> Option<Share> {
        self.decided.share()
    }

    /// Results by the cases' `source`; empty where no case has one, and above
    /// [`MOST_SOURCES`](super::MOST_SOURCES) of them.
    #[must_use]
    pub fn by_source(&self) -> Vec<SourceResult> {
        self.sources.results()
    }

    /// Whether there are more sources than a table shows.
    #[must_use]
    pub fn has_too_many_sources(&self) -> bool {
        self.sources.too_many()
    }

    /// All verdicts.
    #[must_use]
    pub fn verdicts(&self) -> u64 {
        self.statuses.total()
    }

    /// What to know before trusting the scores.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let sources = self.judges.iter().filter_map(|j| j.score_sources.warning(&j.name));
        let silent = self.judges.iter().filter_map(|judge| judge.silent(self.cases));
        let models = self.judges.iter().filter_map(|judge| {
            let words = judge.model_mismatch.as_ref()?;
            Some(format!(
                "`{}`: {words}, in {} of {} verdicts: its figures are those of the model that answered",
                judge.name,
                judge.model_mismatches,
                judge.statuses.total()
            ))
        });
        sources.chain(models).chain(silent).chain(self.outvoting()).collect()
    }

    /// Rules and commands that say nearly always the same and are half of the votes or more:
    /// with the median they decide alone, and what they have not looked at passes.
    fn outvoting(&self) -> Option<String> {
        let counted = || self.judges.iter().filter(|judge| judge.counted);
        let names: Vec<String> = counted()
            .filter(|judge| judge.measures && judge.says_one_thing())
            .map(|judge| format!("`{}`", judge.name))
            .collect();
        if names.is_empty() || 2 * names.len() < counted().count() {
            return None;
        }
        let (give, them) =
            if names.len() == 1 { ("gives", "it a veto") } else { ("give", "them vetoes") };
        Some(format!(
            "{} {give} the same score on over {:.0}% of the cases and {} of {} votes: what they don't look at is decided by them; make {them} with `weight = 0` and `required = true`",
            names.join(", "),
            100.0 * NEARLY_ALWAYS,
            if names.len() == 1 { "is 1".to_owned() } else { format!("are {}", names.len()) },
            counted().count()
        ))
    }

    /// Verdicts that failed and may come out otherwise when they are asked for again.
    #[must_use]
    pub fn worth_asking_again(&self) -> u64 {
        self.judges.iter().map(JudgeTally::worth_asking_again).sum()
    }

    /// Verdicts without a score that were asked for.
    #[must_use]
    pub fn unscored(&self) -> u64 {
        self.verdicts() - self.statuses.get(Status::Ok) - self.not_needed
    }

    /// Replies of model servers that the verdicts rest on, whenever they were paid for.
    #[must_use]
    pub fn run_calls(&self) -> u64 {
        self.judges.iter().map(|judge| judge.run_calls).sum()
    }

    /// US dollars that these cost when they were paid for; `None` where a call has no price.
    #[must_use]
    pub fn run_cost_usd(&self) -> Option<f64> {
        // (`+ 0.0`: the sum of no floats is -0.0.)
        self.judges.iter().map(|judge| judge.run_cost_usd).sum::<Option<f64>>().map(|c| c + 0.0)
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
        let mut judge = JudgeTally { run_cost_usd: Some(0.0), ..JudgeTally::default() };
        let mut verdict = Verdict { cost_usd: Some(0.5), ..Verdict::ok(Score::ONE) };
        verdict.usage.calls = 1;
        judge.add(&verdict);
        assert_eq!(judge.run_cost_usd, Some(0.5));
        judge.add(&Verdict { cached: true, ..verdict.clone() });
        let counted = (judge.run_cost_usd, judge.run_calls);
        assert_eq!(counted, (Some(1.0), 2), "a stored answer was paid for once");
        judge.add(&Verdict { cost_usd: None, ..verdict });
        assert_eq!(judge.run_cost_usd, None);
    }

    #[test]
    fn a_failed_call_to_a_model_without_a_price_may_have_cost_something() {
        let failed = Verdict { attempts: 2, ..Verdict::failed(Status::ProviderError, "down") };
        let mut rule = JudgeTally { run_cost_usd: Some(0.0), ..JudgeTally::default() };
        rule.add(&failed);
        assert_eq!(rule.run_cost_usd, Some(0.0), "a rule never costs anything");
        let mut model = JudgeTally { asks_models: true, ..JudgeTally::default() };
        model.add(&failed);
        assert_eq!(model.run_cost_usd, None);
    }

    fn ruled(decision: Decision) -> Ruling {
        let rules = crate::panel::Rules {
            seats: Vec::new(),
            settings: crate::panel::vote::Settings {
                aggregate: crate::panel::vote::Aggregate::Median,
                midpoint: false,
                trim: 0.0,
                threshold: 0.5,
            },
            threshold: 0.5,
            quorum: 1,
            profile: None,
        };
        Ruling { decision, ..rules.rule("a", Vec::new()) }
    }

    fn of(group: &str) -> Origin<'_> {
        Origin { group: Some(group), ..Origin::default() }
    }

    #[test]
    fn results_by_source_are_kept_apart_and_those_without_one_come_last() {
        let mut tally = Tally::default();
        for (source, decision) in [
            (Some("b"), Decision::Accept),
            (Some("a"), Decision::Reject),
            (None, Decision::Accept),
            (Some("b"), Decision::Undecided),
            (Some("b"), Decision::Reject),
        ] {
            tally.add(&ruled(decision), Origin { source, group: None });
        }
        let found = tally.by_source();
        let names: Vec<Option<&str>> = found.iter().map(|own| own.source.as_deref()).collect();
        assert_eq!(names, [Some("a"), Some("b"), None]);
        let b = &found[1];
        assert_eq!((b.cases, b.accepted, b.rejected, b.undecided), (3, 1, 1, 1));
        let share = b.accepted_share.unwrap();
        assert_eq!((share.point, share.n), (0.5, 2), "of the decided ones");
        assert_eq!((b.mean_score, b.scored), (None, 0), "no score is no zero");
        let mut without = Tally::default();
        without.add(&ruled(Decision::Accept), Origin::default());
        assert_eq!(without.by_source(), []);
    }

    #[test]
    fn a_source_for_every_case_is_no_table_whatever_the_order() {
        let mut tally = Tally::default();
        for i in 0..300 {
            let source = format!("s{i}");
            tally.add(&ruled(Decision::Accept), Origin { source: Some(&source), group: None });
        }
        assert!(tally.has_too_many_sources());
        assert_eq!(tally.by_source(), []);
        assert_eq!(tally.accepted, 300);
    }

    #[test]
    fn groups_that_stand_or_fall_together_widen_the_interval() {
        let (mut alone, mut grouped, mut singles) =
            (Tally::default(), Tally::default(), Tally::default());
        for case in 0..60 {
            let group = case / 10;
            let decision = if group % 2 == 0 { Decision::Accept } else { Decision::Reject };
            let ruling = ruled(decision);
            alone.add(&ruling, Origin::default());
            grouped.add(&ruling, of(&format!("g{group}")));
            singles.add(&ruling, of(&format!("case {case}")));
        }
        let width = |tally: &Tally| {
            let share = tally.accepted_share().unwrap();
            assert!((share.point - 0.5).abs() < 1e-12 && share.n == 60);
            share.upper - share.lower
        };
        assert_eq!(alone.accepted_share().unwrap().groups, None);
        assert_eq!(grouped.accepted_share().unwrap().groups, Some(6));
        assert_eq!(singles.accepted_share().unwrap().groups, Some(60));
        // Six clusters that are all one way carry about as much as six cases.
        assert!(width(&grouped) > 2.0 * width(&alone), "{}", width(&grouped));
        assert!((width(&singles) - width(&alone)).abs() < 0.03);
    }

    #[test]
    fn a_share_without_decided_cases_is_none_and_one_group_s_interval_too() {
        let mut tally = Tally::default();
        tally.add(&ruled(Decision::Undecided), of("g"));
        assert_eq!(tally.accepted_share(), None);
        tally.add(&ruled(Decision::Accept), of("g"));
        tally.add(&ruled(Decision::Reject), of("g"));
        assert_eq!(tally.accepted_share(), None);
        let mut alike = Tally::default();
        for _ in 0..3 {
            alike.add(&ruled(Decision::Accept), of("g"));
        }
        let share = alike.accepted_share().unwrap();
        // Clopper and Pearson (1934), 1 of 1.
        assert!((share.lower - 0.025).abs() < 1e-9 && share.upper == 1.0, "{share:?}");
        assert_eq!((share.n, share.groups), (3, Some(1)));
    }
}
