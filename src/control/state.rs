//! Where a loop stands. Small, and constant in the size of outputs.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::condition::View;
use super::dispute::Rejudged;
use super::event::{About, AgentFault, Base, Directive, Round, Spent};
use super::history::{Output, Record, RecordStatus, Repeat, Seen};
use super::judgement::Judgement;
use super::noise::{self, Retest};
use super::outcome::{Confirmation, Outcome, Reason};
use super::policy::{BaseRule, Compat, CoolingSpec, Policy};
use crate::score::Score;

/// What a loop waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Phase {
    Ready,
    Generating,
    Judging { round: Round, retry: u32 },
    Waiting(About),
    Finished(Outcome),
}

/// An output that is being judged.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) output: Output,
    /// Judgements with a quorum, the first one first.
    pub(super) rounds: Vec<Judgement>,
    /// Whether the agent disputes a finding that it has not disputed before.
    pub(super) disputes: bool,
    /// What became of that.
    pub(super) rejudged: Option<Rejudged>,
}

impl Pending {
    pub(super) fn of(output: &Output) -> Self {
        Self { output: output.clone(), rounds: Vec::new(), disputes: false, rejudged: None }
    }
}

/// Where a loop stands: what [`super::decide`] goes on from.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) policy: Arc<Policy>,
    pub(super) phase: Phase,
    pub(super) records: Vec<Record>,
    /// The place of the best output in `records`.
    pub(super) best: Option<usize>,
    pub(super) pending: Option<Pending>,
    pub(super) directive: Option<Directive>,
    pub(super) seen: Seen,
    /// Scores since the last new start, and beside each whether its set of failing checks
    /// was a new one.
    pub(super) scores: Vec<f64>,
    pub(super) progress: Vec<bool>,
    pub(super) failing: BTreeSet<Vec<String>>,
    /// The best output since the last new start.
    pub(super) segment_best: Option<usize>,
    pub(super) retest: Retest,
    pub(super) calls: u32,
    pub(super) evaluations: u64,
    pub(super) faults: u32,
    pub(super) unjudged: u32,
    pub(super) disputed: u32,
    /// The findings that the agent has disputed, by their hashes.
    pub(super) rebutted: BTreeSet<String>,
    /// Whether the newest dispute was lost.
    pub(super) overruled: bool,
    /// For each soft reason how many actions were taken, and after how many scores the last.
    pub(super) climbed: BTreeMap<Reason, (usize, usize)>,
    pub(super) cooled: u32,
    pub(super) confirmation: Confirmation,
    /// The accepts that the first judgement of the newest output fired.
    pub(super) accepting: Vec<Reason>,
    pub(super) elapsed_ms: u64,
    pub(super) spent: Spent,
    /// The places of the records that are whole.
    whole: Vec<usize>,
    /// Judged outputs in a row, since the last action on it, that lay below the best by more
    /// than noise.
    pub(super) falls: u32,
}

impl State {
    /// The start of a loop under a policy.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            phase: Phase::Ready,
            records: Vec::new(),
            best: None,
            pending: None,
            directive: None,
            seen: Seen::default(),
            scores: Vec::new(),
            progress: Vec::new(),
            failing: BTreeSet::new(),
            segment_best: None,
            retest: Retest::default(),
            calls: 0,
            evaluations: 0,
            faults: 0,
            unjudged: 0,
            disputed: 0,
            rebutted: BTreeSet::new(),
            overruled: false,
            climbed: BTreeMap::new(),
            cooled: 0,
            confirmation: Confirmation::NotAsked,
            accepting: Vec::new(),
            elapsed_ms: 0,
            spent: Spent::default(),
            whole: Vec::new(),
            falls: 0,
        }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// One record an output.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The best judged output; `None` while none has a score.
    #[must_use]
    pub fn best(&self) -> Option<&Record> {
        self.best.map(|place| &self.records[place])
    }

    /// Outputs made.
    #[must_use]
    pub fn generations(&self) -> u32 {
        self.records.len() as u32 + u32::from(self.pending.is_some())
    }

    /// Calls of the agent that ended, failed ones included.
    #[must_use]
    pub fn agent_calls(&self) -> u32 {
        self.calls
    }

    /// Judgements made, retries and confirmations included.
    #[must_use]
    pub fn evaluations(&self) -> u64 {
        self.evaluations
    }

    /// What became of the last confirmation that was asked for.
    #[must_use]
    pub fn confirmation(&self) -> Confirmation {
        self.confirmation
    }

    /// How the loop ended; `None` while it goes on.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Finished(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// What a person's answer is awaited on.
    #[must_use]
    pub fn awaiting(&self) -> Option<About> {
        match self.phase {
            Phase::Waiting(about) => Some(about),
            _ => None,
        }
    }

    /// The hash of the output that is being judged.
    #[must_use]
    pub fn judging(&self) -> Option<&str> {
        self.pending.as_ref().map(|pending| pending.output.hash.as_str())
    }

    /// The noise band in force: half the width within which scores do not differ.
    #[must_use]
    pub fn noise_band(&self) -> f64 {
        if self.policy.compat == Compat::Classic {
            return 0.0;
        }
        let known = self.policy.noise_sd.or_else(|| self.retest.standard_deviation());
        noise::band(self.policy.noise_z, known.unwrap_or(0.0))
    }

    /// Whether a difference of scores can be told from noise: the judges measure the same
    /// every time, their noise is known or was seen within the run, or the policy takes every
    /// difference at face value.
    pub(super) fn knows_noise(&self) -> bool {
        self.policy.compat == Compat::Classic
            || self.policy.noise_z == 0.0
            || self.policy.noise_sd.is_some()
            || self.retest.standard_deviation().is_some()
    }

    pub(super) fn view<'a>(&'a self, judgement: &'a Judgement, repeat: Option<Repeat>) -> View<'a> {
        View {
            scores: &self.scores,
            progress: &self.progress,
            judgement,
            repeat,
            best: self.segment_best.and_then(|place| self.records[place].score).map(Score::get),
            band: self.noise_band(),
            compat: self.policy.compat,
            generations: self.generations(),
            evaluations: self.evaluations,
            elapsed_ms: self.elapsed_ms,
            spent: self.spent,
        }
    }

    /// Limits that forbid another call, in the order of a step.
    pub(super) fn hard_limits(&self) -> Vec<Reason> {
        let limits = &self.policy.limits;
        let over = |used: u64, limit: Option<u64>| limit.is_some_and(|limit| used >= limit);
        // The last output must be judged and confirmed with what is left.
        let next = self.evaluations + u64::from(self.policy.confirm);
        let made = self.generations().max(self.calls);
        [
            (self.elapsed_ms >= limits.elapsed_ms, Reason::Deadline),
            (over(self.spent.micro_dollars, limits.micro_dollars), Reason::MoneyBudget),
            (over(self.spent.tokens, limits.tokens), Reason::TokenBudget),
            (over(next, limits.evaluations), Reason::EvaluationBudget),
            (made >= limits.max_generations, Reason::MaxGenerations),
        ]
        .into_iter()
        .filter_map(|(fired, reason)| fired.then_some(reason))
        .collect()
    }

    /// Puts a record into the history and keeps the best.
    pub(super) fn add(&mut self, record: Record, output: Output) {
        let generation = record.generation;
        let place = self.records.len();
        if let Some(score) = record.score {
            self.scores.push(score.get());
            let new = record.is_discrete() && self.failing.insert(record.failing());
            self.progress.push(new);
        }
        // A score that is the lowest of several is no plain measurement.
        let plain =
            |record: &Record| record.score.filter(|_| record.status == RecordStatus::Judged);
        let repeated = self
            .seen
            .generation(&record.output)
            .and_then(|earlier| plain(&self.records[earlier as usize - 1]))
            .zip(plain(&record));
        if let Some((first, second)) = repeated {
            self.retest.add(first.get(), second.get());
        }
        let better = |than: Option<usize>, records: &[Record]| {
            record.rank().is_some_and(|own| {
                than.and_then(|place| records[place].rank()).is_none_or(|best| own > best)
            })
        };
        if better(self.best, &self.records) {
            self.best = Some(place);
        }
        if better(self.segment_best, &self.records) {
            self.segment_best = Some(place);
        }
        self.records.push(record);
        self.seen.add(generation, output);
        self.slim();
    }

    /// Leaves of records that nobody goes on from what a table needs: the first, the best and
    /// the last two stay whole.
    fn slim(&mut self) {
        let newest = self.records.len() - 1;
        self.whole.push(newest);
        let (best, segment) = (self.best, self.segment_best);
        let stays = |place: usize| {
            place == 0 || place + 1 >= newest || Some(place) == best || Some(place) == segment
        };
        for place in self.whole.iter().filter(|place| !stays(**place)) {
            self.records[*place].slim();
        }
        self.whole.retain(|place| stays(*place));
    }

    /// Closes the output that is being judged, with what is known of it.
    pub(super) fn settle(&mut self, status: RecordStatus) {
        let Some(Pending { output, rounds, .. }) = self.pending.take() else { return };
        let mut scores: Vec<Score> = rounds.iter().filter_map(|round| round.score).collect();
        let first = scores.first().copied();
        // Of other judges' scores nothing follows for the noise of the panel's own.
        for again in scores.iter().skip(1).filter(|_| !self.policy.reserve) {
            if let Some(first) = first {
                self.retest.add(first.get(), again.get());
            }
        }
        scores.sort();
        let score = match status {
            RecordStatus::Unjudged => None,
            // Both ends count when an output passed once and not again.
            RecordStatus::ConfirmationRejected | RecordStatus::ConfirmationNotMade => {
                scores.first().copied()
            }
            RecordStatus::Judged | RecordStatus::Accepted => {
                scores.get(scores.len().saturating_sub(1) / 2).copied()
            }
        };
        let bounds = rounds.first().and_then(|round| round.bounds);
        let interval = bounds.or_else(|| Some((*scores.first()?, *scores.last()?)));
        let decisive = match status {
            RecordStatus::ConfirmationRejected => rounds.last(),
            _ => rounds.first(),
        };
        let limit = self.directive.as_ref().and_then(|directive| directive.max_change);
        let over_limit =
            output.change.zip(limit).is_some_and(|(change, limit)| change > limit + 1e-9);
        let record = Record {
            generation: self.records.len() as u32 + 1,
            output: output.hash.clone(),
            score,
            interval: score.and(interval),
            status,
            decision: decisive.map(|round| round.decision),
            required_failed: rounds.iter().map(|r| r.required_failed).max().unwrap_or(0),
            criteria: decisive.map(|round| round.criteria.clone()).unwrap_or_default(),
            spread: decisive.and_then(|round| round.spread),
            change: output.change,
            over_limit,
            degraded: decisive.is_some_and(|round| round.degraded),
            profile: decisive.and_then(|round| round.profile.clone()),
        };
        self.add(record, output);
    }

    /// How the next output is to be asked for, when nothing special is.
    pub(super) fn directive(&self) -> Directive {
        let generation = self.records.len() as u32 + 1;
        let last = self.records.last();
        let best = self.best();
        let base = match (last, best) {
            (None, _) => Base::Nothing,
            (Some(last), Some(best)) if last.generation != best.generation => {
                if last.score.is_none() || self.policy.strategy.base == BaseRule::Best {
                    Base::Best
                } else {
                    Base::Current
                }
            }
            _ => Base::Current,
        };
        let mut directive = Directive {
            generation,
            call: self.calls + 1,
            wait_ms: 0,
            base,
            base_generation: None,
            nudges: Vec::new(),
            focus: Vec::new(),
            phase: None,
            max_change: None,
            temperature_factor: None,
            note: None,
            overruled: self.overruled,
        };
        self.set_base(&mut directive, base);
        self.emphasise(&mut directive);
        self.cool(&mut directive);
        directive
    }

    /// Sets the version to go on from. The best one is called the current one where it is.
    pub(super) fn set_base(&self, directive: &mut Directive, base: Base) {
        let last = self.records.last().map(|record| record.generation);
        let best = self.best().map(|record| record.generation);
        (directive.base, directive.base_generation) = match base {
            Base::Best if best.is_some() && best != last => (Base::Best, best),
            Base::Best | Base::Current if last.is_some() => (Base::Current, last),
            _ => (Base::Nothing, None),
        };
    }

    fn emphasise(&self, directive: &mut Directive) {
        let Some(adaptive) = &self.policy.strategy.adaptive else { return };
        let best = self.best().and_then(|best| best.score).map_or(0.0, Score::get);
        let phase = adaptive.targets.iter().filter(|target| **target <= best).count();
        if phase >= adaptive.targets.len() {
            return;
        }
        directive.phase = Some(phase as u8);
        let base = directive.base_generation.and_then(|g| self.records.get(g as usize - 1));
        let Some(base) = base else { return };
        let weight = |name: &str| self.policy.weights.get(name).copied().unwrap_or(1.0);
        let mut gaps: Vec<(f64, &str)> = base
            .criteria
            .iter()
            .filter_map(|c| Some((weight(&c.name) * (1.0 - c.score?.get()), c.name.as_str())))
            .filter(|(gap, _)| *gap > 0.0)
            .collect();
        // Stable: criteria with equal gaps stay in the rubric's order.
        gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
        directive.focus = gaps
            .into_iter()
            .take(adaptive.criteria as usize)
            .map(|(_, name)| name.to_owned())
            .collect();
    }

    pub(super) fn cool(&self, directive: &mut Directive) {
        let standing = self.policy.strategy.cooling.as_ref();
        if directive.base == Base::Nothing || (standing.is_none() && self.cooled == 0) {
            return;
        }
        let (spec, k) = match standing {
            Some(spec) => (spec.clone(), directive.generation.saturating_sub(2) + self.cooled),
            None => (CoolingSpec::default(), self.cooled - 1),
        };
        let limit = spec.max_change(k);
        directive.max_change = Some(limit);
        directive.temperature_factor = Some((limit / spec.start).min(1.0));
    }

    pub(super) fn fault_reason(fault: AgentFault) -> Reason {
        match fault {
            AgentFault::Failed => Reason::AgentFailed,
            AgentFault::Empty => Reason::AgentEmpty,
        }
    }
}
