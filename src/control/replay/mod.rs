//! Replay: what a policy would have done with recorded loops, without any model call.
//!
//! A recording says nothing past its end: a loop that the policy would have gone on with
//! there is censored, and never guessed.

mod metrics;
mod read;
mod targets;

use std::sync::Arc;

pub use self::metrics::{Metric, Metrics, metrics};
pub use self::read::{Reading, Recorded, ReplayError, Step, Trajectory, read};
pub use self::targets::{Held, Standing, Target, TargetsSpec};
use super::event::{Command, Event, What};
use super::noise::band;
use super::outcome::{Class, Reason};
use super::policy::Policy;
use super::result::{Report, RoleUsage};
use super::state::State;
use super::{Round, decide};
use crate::score::Score;

/// What a policy makes of one recorded loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The task.
    pub task: String,
    /// What it belongs to; empty for a loop that stands alone.
    pub group: String,
    /// Why it ended; `None` where the recording ended first.
    pub reason: Option<Reason>,
    /// The outputs that were looked at.
    pub generations: u32,
    /// The judgements that were made, retries and confirmations included.
    pub judgements: u64,
    /// The scores of these outputs, in order; `None` where not judged.
    pub scores: Vec<Option<f64>>,
    /// The score of the output returned.
    pub returned: Option<f64>,
    /// Whether the output returned is truly good, where known.
    pub truth: Option<bool>,
    /// Whether any recorded output is truly good; `None` where one of them is not known.
    pub ever_good: Option<bool>,
    /// The noise band at the end.
    pub band: f64,
    /// Milliseconds until the end, where recorded.
    pub elapsed_ms: Option<u64>,
    /// Tokens until the end, where recorded.
    pub tokens: Option<u64>,
}

impl Replayed {
    /// What the end of a run says, where no single log tells how it went: of several starts.
    /// One that was stopped is censored.
    #[must_use]
    pub fn of_report(report: &Report, policy: &Policy) -> Self {
        let tokens = |own: &RoleUsage| own.usage.tokens_in + own.usage.tokens_out;
        Self {
            task: report.run.clone(),
            group: String::new(),
            reason: (report.reason != Reason::Cancelled).then_some(report.reason),
            generations: report.generations,
            judgements: report.evaluations,
            scores: report.history.iter().map(|row| row.score.map(Score::get)).collect(),
            returned: report.best.as_ref().and_then(|best| best.score).map(Score::get),
            truth: None,
            ever_good: None,
            band: band(policy.noise_z, policy.noise_sd.unwrap_or(0.0)),
            elapsed_ms: Some((report.elapsed_seconds * 1000.0) as u64),
            tokens: Some(report.usage.values().map(tokens).sum()),
        }
    }

    /// Whether the policy accepts.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.reason.is_some_and(|reason| reason.class() == Class::Accepted)
    }
}

/// Plays a recorded loop under a policy.
#[must_use]
pub fn replay(trajectory: &Trajectory, policy: &Arc<Policy>) -> Replayed {
    let mut state = State::new(Arc::clone(policy));
    let mut steps = trajectory.steps.iter();
    let mut step: Option<&Step> = None;
    let mut what = What::Begun;
    let mut retries = 0;
    loop {
        let (elapsed_ms, spent) = step.map_or((0, Default::default()), |s| (s.elapsed_ms, s.spent));
        let (next, commands) = decide(state, &Event { elapsed_ms, spent, what });
        state = next;
        what = match commands.into_iter().next() {
            Some(Command::Generate(_)) => {
                step = steps.next();
                retries = 0;
                match step {
                    None => break,
                    Some(step) => match step.fault {
                        Some(fault) => What::AgentFailed(fault),
                        None => What::Generated(step.output.clone()),
                    },
                }
            }
            Some(Command::Judge { round, .. }) => {
                let Some(step) = step else { break };
                let recorded = match round {
                    Round::First => step.rounds.first(),
                    Round::Confirm(k) => step.rounds.get(k as usize),
                    Round::Dispute => step.dispute.as_ref(),
                };
                match recorded {
                    Some(judgement) => What::Judged(Box::new(judgement.clone())),
                    None => break,
                }
            }
            Some(Command::Ask { .. } | Command::Finish(_)) | None => break,
        };
        // A recorded failure of judging is the last word on it, however often it is tried.
        if matches!(&what, What::Judged(j) if !j.has_quorum()) {
            retries += 1;
            if retries > policy.evaluation_retries + 1 {
                break;
            }
        }
    }
    let asked = state.awaiting().map(|_| Reason::AwaitingHuman);
    let reason = state.outcome().map(|outcome| outcome.reason).or(asked);
    let returned = state.best().map(|record| record.generation as usize - 1);
    // Calls that gave no output are no outputs.
    let outputs: Vec<&Step> = trajectory.steps.iter().filter(|s| s.fault.is_none()).collect();
    let truths: Vec<Option<bool>> = outputs.iter().map(|step| step.truth).collect();
    let ever_good = if truths.contains(&Some(true)) {
        Some(true)
    } else {
        (!truths.is_empty() && !truths.contains(&None)).then_some(false)
    };
    Replayed {
        task: trajectory.task.clone(),
        group: trajectory.group.clone(),
        judgements: state.evaluations(),
        reason,
        generations: state.generations(),
        scores: state.records().iter().map(|r| r.score.map(|score| score.get())).collect(),
        returned: state.best().and_then(|record| record.score).map(|score| score.get()),
        truth: returned.and_then(|place| outputs.get(place)?.truth),
        ever_good,
        band: state.noise_band(),
        elapsed_ms: trajectory.timed.then_some(state.elapsed_ms),
        tokens: trajectory.timed.then_some(state.spent.tokens),
    }
}

#[cfg(test)]
mod tests;
