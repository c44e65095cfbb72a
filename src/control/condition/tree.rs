//! The tree of conditions at one moment of a loop.

use super::{classic, diverges, oscillates, plateaus};
use crate::control::event::Spent;
use crate::control::history::Repeat;
use crate::control::judgement::Judgement;
use crate::control::noise::luck;
use crate::control::outcome::Reason;
use crate::control::policy::{Action, Compat, Condition, Node};
use crate::ruling::Decision;

/// Rounding that a difference of two scores may carry.
const ROUNDING: f64 = 1e-9;

/// What conditions look at.
#[derive(Debug)]
pub(in crate::control) struct View<'a> {
    /// The scores since the last new start, the newest last.
    pub(in crate::control) scores: &'a [f64],
    /// Beside each, whether its set of failing checks was a new one.
    pub(in crate::control) progress: &'a [bool],
    /// The newest judgement; its score is `None` where judging failed.
    pub(in crate::control) judgement: &'a Judgement,
    /// How the newest output repeats an earlier one.
    pub(in crate::control) repeat: Option<Repeat>,
    /// The score of the best output since the last new start.
    pub(in crate::control) best: Option<f64>,
    /// The noise band.
    pub(in crate::control) band: f64,
    pub(in crate::control) compat: Compat,
    pub(in crate::control) generations: u32,
    pub(in crate::control) evaluations: u64,
    pub(in crate::control) elapsed_ms: u64,
    pub(in crate::control) spent: Spent,
}

impl View<'_> {
    /// How far the best of `n` scores lies too high by chance. The band alone compares two
    /// scores that nobody chose; a best was chosen for being high.
    fn luck(&self, n: usize) -> f64 {
        self.band / std::f64::consts::SQRT_2 * luck(n)
    }
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::control) struct Fired {
    pub(in crate::control) reason: Reason,
    /// The ladder of a soft condition.
    pub(in crate::control) actions: Vec<Action>,
    /// Judged outputs after an action before the condition speaks again.
    pub(in crate::control) rest: u32,
}

impl Fired {
    pub(in crate::control) fn hard(reason: Reason) -> Self {
        Self { reason, actions: Vec::new(), rest: 0 }
    }
}

/// What holds, by reason and without repeats; empty when the tree does not fire. The order of
/// conditions in the tree makes no difference.
pub(in crate::control) fn evaluate(node: &Node, view: &View<'_>) -> Vec<Fired> {
    let mut fired = collect(node, view);
    // Of two leaves with one reason the shorter ladder stands, whichever comes first.
    fired.sort_by_key(|f| (f.reason, f.actions.len(), f.rest, format!("{:?}", f.actions)));
    fired.dedup_by_key(|f| f.reason);
    fired
}

fn collect(node: &Node, view: &View<'_>) -> Vec<Fired> {
    match node {
        Node::Leaf(condition) => leaf(condition, view).into_iter().collect(),
        Node::Any(members) => members.iter().flat_map(|member| collect(member, view)).collect(),
        Node::All(members) => {
            let each: Vec<_> = members.iter().map(|member| collect(member, view)).collect();
            if each.is_empty() || each.iter().any(Vec::is_empty) {
                return Vec::new();
            }
            each.into_iter().flatten().collect()
        }
    }
}

fn leaf(condition: &Condition, view: &View<'_>) -> Option<Fired> {
    let judgement = view.judgement;
    let clean = judgement.has_quorum() && judgement.required_failed == 0;
    let (holds, reason, rest) = match condition {
        Condition::QualityThreshold { threshold } => {
            let reached = match threshold {
                Some(threshold) => judgement.score.is_some_and(|score| score.get() >= *threshold),
                None => judgement.decision == Decision::Accept,
            };
            (clean && reached, Reason::QualityReached, 0)
        }
        Condition::AllCriteriaPassed { pass_mark } => {
            let passes = judgement.criteria.iter().all(|criterion| match criterion.passed {
                Some(passed) => passed,
                None => criterion.score.is_some_and(|score| score.get() >= *pass_mark),
            });
            (clean && !judgement.criteria.is_empty() && passes, Reason::CriteriaPassed, 0)
        }
        Condition::Command { argv } => {
            let key = serde_json::json!(argv).to_string();
            let satisfied = judgement.commands.get(&key).copied().unwrap_or(false);
            (clean && satisfied, Reason::CommandSatisfied, 0)
        }
        Condition::MaxGenerations { n } => (view.generations >= *n, Reason::MaxGenerations, 0),
        Condition::TimeBudget { seconds } => {
            (view.elapsed_ms as f64 >= seconds * 1000.0, Reason::Deadline, 0)
        }
        Condition::TokenBudget { tokens } => (view.spent.tokens >= *tokens, Reason::TokenBudget, 0),
        Condition::CostBudget { usd } => {
            (view.spent.micro_dollars as f64 >= usd * 1e6, Reason::MoneyBudget, 0)
        }
        Condition::EvaluationBudget { n } => (view.evaluations >= *n, Reason::EvaluationBudget, 0),
        _ => return soft(condition, view),
    };
    holds.then(|| Fired { reason, actions: Vec::new(), rest })
}

/// Conditions on progress: silent on an output without a score.
fn soft(condition: &Condition, view: &View<'_>) -> Option<Fired> {
    let last = *view.scores.last()?;
    if !view.judgement.has_quorum() {
        return None;
    }
    let classic = view.compat == Compat::Classic;
    let (holds, reason, rest) = match condition {
        Condition::RepeatedOutput { similarity, .. } => match view.repeat? {
            Repeat::Exact => (true, Reason::RepeatedOutput, 1),
            Repeat::Cycle => (true, Reason::Cycle, 1),
            Repeat::Near(found) => {
                let before = view.scores[..view.scores.len() - 1].iter().copied();
                let gained = before.fold(None, |best: Option<f64>, score| {
                    Some(best.map_or(score, |best| best.max(score)))
                });
                let gains = gained.is_some_and(|best| last - best > view.band + ROUNDING);
                (found >= *similarity && !gains, Reason::RepeatedOutput, 1)
            }
        },
        Condition::QualityRegression { threshold, .. } => {
            let holds = if classic {
                classic::regressed(view.scores, *threshold)
            } else {
                let noise = view.band + view.luck(view.scores.len());
                view.best.is_some_and(|best| best - last > threshold.max(noise) + ROUNDING)
            };
            (holds, Reason::Regressed, 1)
        }
        Condition::Divergence { window, .. } => {
            let window = *window as usize;
            let holds = if classic {
                classic::diverged(view.scores, window)
            } else {
                diverges(view.scores, window, view.band + view.luck(window))
            };
            (holds, Reason::Diverged, 1)
        }
        Condition::ImprovementStall { patience, min_gain, .. } => {
            let holds = if classic {
                classic::stalled(view.scores, *patience as usize, *min_gain)
            } else {
                since_significant_best(view, *min_gain) >= *patience
            };
            (holds, Reason::Stalled, *patience)
        }
        Condition::Convergence { window, variance, epsilon, differences, .. } => {
            let window = *window as usize;
            let holds = match (classic, differences) {
                (true, true) => classic::flat(view.scores, window, *epsilon),
                (true, false) => classic::converged(view.scores, window, *variance),
                (false, _) => {
                    let moves = view.progress.iter().rev().take(window.saturating_sub(1));
                    plateaus(view.scores, window, *variance, *epsilon, view.band)
                        && !moves.into_iter().any(|new| *new)
                }
            };
            let at_target =
                view.judgement.decision == Decision::Accept && view.judgement.required_failed == 0;
            let reason =
                if at_target { Reason::PlateauAtTarget } else { Reason::PlateauBelowTarget };
            (holds, reason, (window as u32).div_ceil(2))
        }
        Condition::Oscillation { window, min_amplitude, .. } => {
            let holds = if classic {
                classic::oscillates(view.scores)
            } else {
                oscillates(view.scores, *window as usize, min_amplitude.max(view.band))
            };
            (holds, Reason::Oscillating, window.div_ceil(2))
        }
        _ => return None,
    };
    let actions = if classic { vec![Action::Exit] } else { condition.actions().to_vec() };
    holds.then_some(Fired { reason, actions, rest })
}

/// Judged outputs since the last score that beat the last significant best by `min_gain` and
/// the band, or since the last new set of failing checks. Small gains add up: they count as
/// soon as their sum is significant.
fn since_significant_best(view: &View<'_>, min_gain: f64) -> u32 {
    let mut best: Option<f64> = None;
    let mut since = 0;
    for (score, progress) in view.scores.iter().zip(view.progress) {
        let significant = best.is_none_or(|best| {
            let gain = score - best;
            gain >= min_gain - ROUNDING && gain > view.band + ROUNDING
        });
        if significant {
            best = Some(*score);
        }
        since = if significant || *progress { 0 } else { since + 1 };
    }
    since
}
