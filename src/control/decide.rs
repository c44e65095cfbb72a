//! The controller: from a state and an event to a state and commands.
//!
//! Pure. Events that do not fit the state change nothing but the time and what was spent, so
//! that a driver that reports twice does no harm; nothing follows a finished run.

use super::condition::{Fired, evaluate};
use super::dispute::Rejudged;
use super::event::{
    About, AgentFault, Answer, Base, Budget, Command, Directive, Event, Round, What,
};
use super::history::{Output, RecordStatus, Repeat};
use super::judgement::Judgement;
use super::outcome::{Class, Confirmation, Outcome, Reason};
use super::policy::Action;
use super::state::{Pending, Phase, State};

/// The longest wait before a retry.
const LONGEST_WAIT_MS: u64 = 60_000;

/// The next state, and what is to be done.
#[must_use]
pub fn decide(mut state: State, event: &Event) -> (State, Vec<Command>) {
    if matches!(state.phase, Phase::Finished(_)) {
        return (state, Vec::new());
    }
    state.elapsed_ms = state.elapsed_ms.max(event.elapsed_ms);
    state.spent.tokens = state.spent.tokens.max(event.spent.tokens);
    state.spent.micro_dollars = state.spent.micro_dollars.max(event.spent.micro_dollars);
    let commands = match (&event.what, state.phase.clone()) {
        (What::Begun, Phase::Ready) => {
            let directive = state.directive();
            state.generate(directive, &[])
        }
        (What::Generated(output), Phase::Generating) => state.generated(output),
        (What::AgentFailed(fault), Phase::Generating) => {
            state.calls += 1;
            state.agent_failed(*fault)
        }
        (What::Judged(judgement), Phase::Judging { round, retry }) => {
            state.evaluations += 1;
            state.judged(judgement, round, retry)
        }
        (What::Refused(budget), Phase::Generating | Phase::Judging { .. }) => {
            state.refused(*budget)
        }
        (What::Cancelled, _) => {
            state.abandon();
            state.finish(Reason::Cancelled, &[])
        }
        (What::Answered(answer), Phase::Waiting(_)) => state.answered(answer),
        (What::Edited(output), Phase::Waiting(_)) => state.edited(output),
        _ => Vec::new(),
    };
    (state, commands)
}

impl State {
    fn finish(&mut self, reason: Reason, fired: &[Reason]) -> Vec<Command> {
        let mut also_fired: Vec<Reason> =
            fired.iter().copied().filter(|other| *other != reason).collect();
        also_fired.sort();
        also_fired.dedup();
        let best = self.best().map(|best| best.generation);
        let outcome = Outcome { reason, also_fired, best };
        self.phase = Phase::Finished(outcome.clone());
        vec![Command::Finish(outcome)]
    }

    /// Asks for the next output, if there is anything left to ask with.
    fn generate(&mut self, directive: Directive, fired: &[Reason]) -> Vec<Command> {
        let hard = self.hard_limits();
        if let Some(first) = hard.first() {
            let all: Vec<Reason> = hard.iter().chain(fired).copied().collect();
            return self.finish(*first, &all);
        }
        self.phase = Phase::Generating;
        self.directive = Some(directive.clone());
        vec![Command::Generate(directive)]
    }

    fn generated(&mut self, output: &Output) -> Vec<Command> {
        self.calls += 1;
        if output.empty {
            return self.agent_failed(AgentFault::Empty);
        }
        self.faults = 0;
        let mut pending = Pending::of(output);
        for finding in &output.disputes {
            pending.disputes |= self.rebutted.insert(finding.clone());
        }
        self.pending = Some(pending);
        if let Some(reason) = self.forbids_judging() {
            self.settle(RecordStatus::Unjudged);
            let hard = self.hard_limits();
            return self.finish(reason, &hard);
        }
        self.judge(Round::First, 0)
    }

    /// The limit that forbids another judgement. Money and tokens are the ledger's to refuse:
    /// what is kept back for judging lies beyond what an agent may spend.
    fn forbids_judging(&self) -> Option<Reason> {
        let limits = &self.policy.limits;
        if self.elapsed_ms >= limits.elapsed_ms {
            return Some(Reason::Deadline);
        }
        limits
            .evaluations
            .is_some_and(|limit| self.evaluations >= limit)
            .then_some(Reason::EvaluationBudget)
    }

    fn judge(&mut self, round: Round, retry: u32) -> Vec<Command> {
        self.phase = Phase::Judging { round, retry };
        let wait_ms = if retry == 0 { 0 } else { self.backoff(retry) };
        vec![Command::Judge { generation: self.generations(), round, retry, wait_ms }]
    }

    fn backoff(&self, retry: u32) -> u64 {
        let factor = 2_u64.saturating_pow(retry.saturating_sub(1).min(30));
        self.policy.backoff_ms.saturating_mul(factor).min(LONGEST_WAIT_MS)
    }

    fn agent_failed(&mut self, fault: AgentFault) -> Vec<Command> {
        self.faults += 1;
        let reason = Self::fault_reason(fault);
        // Calls that brought nothing use up the calls without being outputs: the reason is
        // then the agent.
        let mut fired: Vec<Reason> =
            self.hard_limits().into_iter().filter(|r| *r != Reason::MaxGenerations).collect();
        let used_up = self.calls >= self.policy.limits.max_generations;
        if used_up || self.faults >= self.policy.agent_failures {
            fired.push(reason);
        }
        if let Some(first) = fired.first().copied() {
            return self.finish(first, &fired);
        }
        let mut directive = self.directive.clone().unwrap_or_else(|| self.directive());
        directive.call = self.calls + 1;
        directive.wait_ms = self.backoff(self.faults);
        self.directive = Some(directive.clone());
        vec![Command::Generate(directive)]
    }

    fn judged(&mut self, judgement: &Judgement, round: Round, retry: u32) -> Vec<Command> {
        if round == Round::Dispute {
            return self.rejudged(judgement);
        }
        if !judgement.has_quorum() {
            return self.judged_without_quorum(judgement, round, retry);
        }
        let mut judgement = judgement.clone();
        if round != Round::First
            && judgement.commands.is_empty()
            && let Some(first) = self.pending.as_ref().and_then(|pending| pending.rounds.first())
        {
            judgement.commands.clone_from(&first.commands);
        }
        let accepting = self.accepting(&judgement);
        let passes = !accepting.is_empty();
        if round == Round::First {
            self.accepting = accepting;
        }
        if let Some(pending) = &mut self.pending {
            pending.rounds.push(judgement.clone());
        }
        let done = match round {
            Round::First | Round::Dispute => 0,
            Round::Confirm(k) => k,
        };
        if !passes {
            let status = match round {
                Round::First | Round::Dispute => RecordStatus::Judged,
                Round::Confirm(_) => RecordStatus::ConfirmationRejected,
            };
            let disputes = self.pending.as_ref().is_some_and(|pending| pending.disputes);
            if disputes && round == Round::First && self.forbids_judging().is_none() {
                return self.judge(Round::Dispute, 0);
            }
            return self.conclude(status, &judgement);
        }
        if done >= self.policy.confirm {
            return self.conclude(RecordStatus::Accepted, &judgement);
        }
        if self.forbids_judging().is_some() {
            return self.conclude(RecordStatus::ConfirmationNotMade, &judgement);
        }
        self.judge(Round::Confirm(done + 1), 0)
    }

    fn judged_without_quorum(
        &mut self,
        judgement: &Judgement,
        round: Round,
        retry: u32,
    ) -> Vec<Command> {
        if let Some(budget) = judgement.refused {
            return self.refused(budget);
        }
        if retry < self.policy.evaluation_retries && self.forbids_judging().is_none() {
            return self.judge(round, retry + 1);
        }
        let status = match round {
            Round::First | Round::Dispute => RecordStatus::Unjudged,
            Round::Confirm(_) => RecordStatus::ConfirmationNotMade,
        };
        self.conclude(status, judgement)
    }

    /// Takes in what the judges say that did not raise what the agent disputes. The first
    /// judgement stands: theirs only tells whether the judges contradict each other.
    fn rejudged(&mut self, judgement: &Judgement) -> Vec<Command> {
        if let Some(budget) = judgement.refused {
            return self.refused(budget);
        }
        let first = self.pending.as_ref().and_then(|pending| pending.rounds.first()).cloned();
        let Some(first) = first else { return Vec::new() };
        let judgement = Judgement { commands: first.commands.clone(), ..judgement.clone() };
        let rejudged = match judgement.has_quorum() {
            false => Rejudged::Open,
            true if self.accepting(&judgement).is_empty() => Rejudged::Overruled,
            true => Rejudged::Upheld,
        };
        if let Some(pending) = &mut self.pending {
            pending.rejudged = Some(rejudged);
        }
        self.conclude(RecordStatus::Judged, &first)
    }

    /// The accepts with which a judgement alone would end the run.
    fn accepting(&mut self, judgement: &Judgement) -> Vec<Reason> {
        let Some(score) = judgement.score else { return Vec::new() };
        let repeat = self.repeat();
        self.scores.push(score.get());
        self.progress.push(false);
        let fired = evaluate(&self.policy.exit, &self.view(judgement, repeat));
        self.scores.pop();
        self.progress.pop();
        fired.into_iter().map(|f| f.reason).filter(|r| r.class() == Class::Accepted).collect()
    }

    fn repeat(&self) -> Option<Repeat> {
        let pending = self.pending.as_ref()?;
        self.seen.repeat(self.generations(), &pending.output)
    }

    /// The step after an output is judged for good: record, best, then everything that may
    /// end the run.
    fn conclude(&mut self, status: RecordStatus, judgement: &Judgement) -> Vec<Command> {
        let repeat = self.repeat();
        let rejudged = self.pending.as_ref().and_then(|pending| pending.rejudged);
        self.overruled = rejudged == Some(Rejudged::Overruled);
        if self.policy.confirm > 0 {
            self.confirmation = match status {
                RecordStatus::Accepted => Confirmation::Confirmed,
                RecordStatus::ConfirmationRejected => Confirmation::Rejected,
                RecordStatus::ConfirmationNotMade => Confirmation::NotMade,
                RecordStatus::Judged | RecordStatus::Unjudged => self.confirmation,
            };
        }
        self.settle(status);
        self.count_health(status, judgement);
        let mut fired = self.fired(status, judgement, repeat);
        if rejudged == Some(Rejudged::Upheld) && !self.policy.gate.on_dispute {
            fired.push(Fired::hard(Reason::EvaluatorUnreliable));
            fired.sort_by_key(|f| f.reason);
            fired.dedup_by_key(|f| f.reason);
        }
        let reasons: Vec<Reason> = fired.iter().map(|f| f.reason).collect();
        if judgement.has_quorum() {
            let fell = reasons.contains(&Reason::Regressed);
            self.falls = if fell { self.falls + 1 } else { 0 };
        }
        // `fired` is in the order of a step.
        match fired.first() {
            Some(first)
                if first.reason.class() == Class::Accepted && self.policy.gate.before_accept =>
            {
                self.ask(About::BeforeAccept)
            }
            Some(first) if !first.reason.is_soft() => self.finish(first.reason, &reasons),
            _ => match self.gate(judgement, rejudged) {
                Some(about) => self.ask(about),
                None => self.climb(&fired, &reasons),
            },
        }
    }

    fn ask(&mut self, about: About) -> Vec<Command> {
        self.phase = Phase::Waiting(about);
        vec![Command::Ask { generation: self.generations(), about }]
    }

    /// The point of the policy's gate that an output which does not end the run is at.
    fn gate(&self, judgement: &Judgement, rejudged: Option<Rejudged>) -> Option<About> {
        let gate = &self.policy.gate;
        if gate.on_dispute && matches!(rejudged, Some(Rejudged::Upheld | Rejudged::Open)) {
            return Some(About::OnDispute);
        }
        let far = gate.disagreement.zip(judgement.spread).is_some_and(|(most, own)| own > most);
        if far {
            return Some(About::OnDisagreement);
        }
        let near = gate.near_threshold.zip(self.policy.threshold()).zip(judgement.score);
        if near.is_some_and(|((margin, mark), score)| (score.get() - mark).abs() <= margin) {
            return Some(About::NearThreshold);
        }
        gate.every.filter(|n| self.generations().is_multiple_of(*n)).map(|_| About::Every)
    }

    fn count_health(&mut self, status: RecordStatus, judgement: &Judgement) {
        self.unjudged = if status == RecordStatus::Unjudged { self.unjudged + 1 } else { 0 };
        let disputes =
            self.policy.max_spread.zip(judgement.spread).is_some_and(|(most, s)| s > most);
        self.disputed = if disputes { self.disputed + 1 } else { 0 };
    }

    /// Everything that holds, in the order of a step.
    fn fired(
        &self,
        status: RecordStatus,
        judgement: &Judgement,
        repeat: Option<Repeat>,
    ) -> Vec<Fired> {
        let mut fired = evaluate(&self.policy.exit, &self.view(judgement, repeat));
        let judged = !matches!(status, RecordStatus::Unjudged | RecordStatus::ConfirmationNotMade);
        let early = self.generations() < self.policy.min_generations;
        fired.retain(|f| match f.reason.class() {
            Class::Accepted => status == RecordStatus::Accepted,
            _ => !f.reason.is_soft() || (judged && !early),
        });
        let mut more = self.hard_limits();
        if status == RecordStatus::Accepted {
            // The settled score may differ from the one that was accepted and confirmed.
            more.extend(&self.accepting);
        }
        if self.unjudged >= self.policy.evaluator_failures {
            more.push(if judgement.any_vote {
                Reason::NoQuorum
            } else {
                Reason::EvaluatorUnavailable
            });
        }
        if self.disputed >= self.policy.evaluator_failures {
            more.push(Reason::EvaluatorUnreliable);
        }
        if status == RecordStatus::ConfirmationNotMade {
            more.push(Reason::ConfirmationFailed);
        }
        fired.extend(more.into_iter().map(Fired::hard));
        fired.sort_by_key(|f| f.reason);
        fired.dedup_by_key(|f| f.reason);
        fired
    }

    /// Meets soft conditions with the next step of the earliest one's ladder.
    fn climb(&mut self, fired: &[Fired], reasons: &[Reason]) -> Vec<Command> {
        let judged = self.scores.len();
        let first = fired.iter().find(|f| {
            let (steps, at) = self.climbed.get(&f.reason).copied().unzip();
            let rested = at.is_none_or(|at| judged.saturating_sub(at) >= f.rest as usize);
            rested && !self.holds_back(f, steps.unwrap_or(0))
        });
        let Some(first) = first else {
            let directive = self.directive();
            return self.generate(directive, reasons);
        };
        let steps = self.climbed.get(&first.reason).map_or(0, |(steps, _)| *steps);
        let action = first.actions.get(steps).copied().unwrap_or(Action::Exit);
        self.climbed.insert(first.reason, (steps + 1, judged));
        if first.reason == Reason::Regressed {
            // What an action answers is no evidence against what comes after it.
            self.falls = 0;
        }
        match action {
            Action::Exit => return self.finish(first.reason, reasons),
            Action::Ask => {
                return self.ask(About::Condition(first.reason));
            }
            Action::Nudge | Action::Revert | Action::Cool | Action::Restart => {}
        }
        if action == Action::Cool {
            self.cooled += 1;
        }
        if action == Action::Restart {
            self.scores.clear();
            self.progress.clear();
            self.failing.clear();
            self.segment_best = None;
            for (_, at) in self.climbed.values_mut() {
                *at = 0;
            }
        }
        let mut directive = self.directive();
        match action {
            Action::Revert => self.set_base(&mut directive, Base::Best),
            Action::Restart => self.set_base(&mut directive, Base::Nothing),
            _ => {}
        }
        directive.nudges.push(first.reason);
        self.generate(directive, reasons)
    }

    /// Whether a condition would end the run on a fall or a swing that may be noise, for all
    /// that is known. Its milder actions stand; the end has to wait for a noise band. Of judges
    /// that vary one low score says little even beyond the band, since every output is another
    /// chance of one: the end on a fall from the best takes two in a row since the last action.
    fn holds_back(&self, fired: &Fired, steps: usize) -> bool {
        let needs_noise =
            matches!(fired.reason, Reason::Regressed | Reason::Diverged | Reason::Oscillating);
        let ends = fired.actions.get(steps).is_none_or(|action| *action == Action::Exit);
        let once = fired.reason == Reason::Regressed && self.noise_band() > 0.0 && self.falls < 2;
        needs_noise && ends && (once || !self.knows_noise())
    }

    fn refused(&mut self, budget: Budget) -> Vec<Command> {
        self.abandon();
        let hard = self.hard_limits();
        self.finish(budget.reason(), &hard)
    }

    /// Keeps what is known of an output whose judging ends early.
    fn abandon(&mut self) {
        let Some(pending) = &self.pending else { return };
        let status = if pending.rounds.is_empty() {
            RecordStatus::Unjudged
        } else {
            self.confirmation = Confirmation::NotMade;
            RecordStatus::ConfirmationNotMade
        };
        self.settle(status);
    }

    fn answered(&mut self, answer: &Answer) -> Vec<Command> {
        match answer {
            Answer::Accept => self.finish(Reason::HumanAccepted, &[]),
            Answer::Reject => self.finish(Reason::HumanRejected, &[]),
            // The text comes as an event of its own.
            Answer::Edit(_) => Vec::new(),
            Answer::RejectWith(note) | Answer::Continue(note) => {
                if matches!(answer, Answer::RejectWith(_)) {
                    self.demote();
                }
                let mut directive = self.directive();
                directive.note = (!note.trim().is_empty()).then(|| note.clone());
                self.generate(directive, &[])
            }
        }
    }

    /// A person's own output takes a generation, and is judged like any other.
    fn edited(&mut self, output: &Output) -> Vec<Command> {
        if output.empty {
            return Vec::new();
        }
        let hard = self.hard_limits();
        if let Some(first) = hard.first() {
            return self.finish(*first, &hard);
        }
        self.directive = None;
        self.pending = Some(Pending::of(output));
        self.judge(Round::First, 0)
    }

    /// What a person rejected is no accepted output.
    fn demote(&mut self) {
        if let Some(last) = self.records.last_mut()
            && last.status == RecordStatus::Accepted
        {
            last.status = RecordStatus::Judged;
        }
    }
}
