//! The sections `[exit]`, `[budget]` and `[strategy]` of a loop file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Limits;
use super::node::{Condition, Node};
use crate::config::Problem;
use crate::provider::Price;

/// The section `[exit]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExitSpec {
    /// End when one of these holds. Without `any` and `all`: the quality threshold and
    /// repeated outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any: Option<Vec<Node>>,
    /// End when all of these hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Node>>,
    /// Conditions on progress are silent below this many outputs.
    pub min_generations: u32,
    /// How often an output that passed must pass again, with fresh samples or before the judges
    /// that are a `reserve`; 1 when the panel has a reserve, or a judge samples or is a person,
    /// else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<u32>,
    /// Whether votes that can no longer change the decision are not waited for; the score is
    /// then an interval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub early_decision: bool,
    /// How often a judging with too few votes is tried again.
    pub evaluation_retries: u32,
    /// End after so many outputs in a row that could not be judged, or on which the judges
    /// disagreed.
    pub evaluator_failures: u32,
    /// End after so many failed calls of the agent in a row.
    pub agent_failures: u32,
    /// Seconds before the first retry of the agent; doubled for each further one.
    pub agent_backoff: f64,
    /// Votes further apart than this count as disagreement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_spread: Option<f64>,
    /// Multiplies the noise band; 0 takes every difference at face value.
    pub noise_z: f64,
    /// The panel's test-retest standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_sd: Option<f64>,
    /// The forms of conditions.
    pub compat: Compat,
}

impl Default for ExitSpec {
    fn default() -> Self {
        Self {
            any: None,
            all: None,
            min_generations: 1,
            confirm: None,
            early_decision: false,
            evaluation_retries: 2,
            evaluator_failures: 2,
            agent_failures: 3,
            agent_backoff: 1.0,
            max_spread: None,
            noise_z: 1.0,
            noise_sd: None,
            compat: Compat::None,
        }
    }
}

/// The forms of conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// Ours.
    #[default]
    None,
    /// The textbook forms: convergence by variance alone, oscillation over four points,
    /// regression and stall against earlier scores instead of the best, no noise band, and
    /// every condition ends the run at once.
    Classic,
}

impl ExitSpec {
    /// The tree.
    pub(in crate::control) fn node(&self) -> Node {
        match (&self.any, &self.all) {
            (Some(members), _) => Node::Any(members.clone()),
            (None, Some(members)) => Node::All(members.clone()),
            (None, None) => {
                let by_default = ["quality_threshold", "repeated_output"];
                Node::Any(
                    by_default
                        .iter()
                        .filter_map(|kind| Node::from_value((*kind).into()).ok())
                        .collect(),
                )
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.any.is_some() && self.all.is_some() {
            return Err(Problem::new(
                "",
                "`any` and `all` side by side: nest one in the other, as in `any = [{ all = [...] }, ...]`",
            ));
        }
        self.node().check()?;
        for (key, value) in [
            ("min_generations", self.min_generations),
            ("evaluator_failures", self.evaluator_failures),
            ("agent_failures", self.agent_failures),
        ] {
            if value == 0 {
                return Err(Problem::new(key, "expected 1 or more, found 0"));
            }
        }
        let not_negative = |value: f64| value.is_finite() && value >= 0.0;
        if !(not_negative(self.agent_backoff) && self.agent_backoff <= 3600.0) {
            return Err(Problem::new("agent_backoff", "expected seconds between 0 and 3600"));
        }
        if !not_negative(self.noise_z) {
            return Err(Problem::new("noise_z", "expected 0 or more"));
        }
        for (key, value) in [("noise_sd", self.noise_sd), ("max_spread", self.max_spread)] {
            if value.is_some_and(|value| !(0.0..=1.0).contains(&value)) {
                return Err(Problem::new(key, "expected a number between 0 and 1"));
            }
        }
        Ok(())
    }
}

/// The section `[budget]`: limits that stand whatever `[exit]` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSpec {
    /// Outputs, and calls of the agent; 10 by default.
    pub max_generations: u32,
    /// Seconds; 600 by default. Bounds calls in flight too.
    pub seconds: f64,
    /// Tokens of all roles; 50 000 by default.
    pub tokens: u64,
    /// US dollars of all roles. With it, models without a price are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// US dollars per million tokens that a model without a price is taken to cost, so that it
    /// is not refused; the result then says so. Only with a limit on money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assume_price: Option<Price>,
    /// Judgements of the panel, retries and confirmations included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluations: Option<u64>,
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self {
            max_generations: 10,
            seconds: 600.0,
            tokens: 50_000,
            usd: None,
            assume_price: None,
            evaluations: None,
        }
    }
}

/// US dollars in whole millionths, as they are written: 8.2 is 8 200 000 and no less.
fn micro(usd: f64) -> u64 {
    (usd * 1e6).round() as u64
}

impl BudgetSpec {
    pub(super) fn check(&self) -> Result<(), Problem> {
        // A zero budget would end the run at its first step and is never what was meant.
        if self.max_generations == 0 {
            return Err(Problem::new("max_generations", "expected 1 or more, found 0"));
        }
        // A hundred years: beyond it milliseconds overflow what schedulers take.
        if !(self.seconds > 0.0 && self.seconds <= 3.2e9) {
            return Err(Problem::new(
                "seconds",
                format!("`{}` is not a number of seconds above 0", self.seconds),
            ));
        }
        if self.tokens == 0 {
            return Err(Problem::new("tokens", "expected 1 or more, found 0"));
        }
        if self.usd.is_some_and(|usd| !(usd.is_finite() && micro(usd) > 0)) {
            return Err(Problem::new("usd", "expected US dollars, a millionth or more"));
        }
        if self.assume_price.is_some_and(|price| !price.is_valid()) {
            return Err(Problem::new("assume_price", "expected numbers that are 0 or more"));
        }
        if self.evaluations == Some(0) {
            return Err(Problem::new("evaluations", "expected 1 or more, found 0"));
        }
        Ok(())
    }

    /// The limits, with those of conditions that can end the run alone.
    pub(super) fn limits(&self, exit: &Node) -> Limits {
        let mut limits = Limits {
            max_generations: self.max_generations,
            elapsed_ms: (self.seconds * 1000.0) as u64,
            tokens: Some(self.tokens),
            micro_dollars: self.usd.map(micro),
            evaluations: self.evaluations,
        };
        let least = |own: Option<u64>, other: u64| Some(own.map_or(other, |own| own.min(other)));
        for leaf in exit.sufficient() {
            match leaf {
                Condition::MaxGenerations { n } => {
                    limits.max_generations = limits.max_generations.min(*n);
                }
                Condition::TimeBudget { seconds } => {
                    limits.elapsed_ms = limits.elapsed_ms.min((seconds * 1000.0) as u64);
                }
                Condition::TokenBudget { tokens } => limits.tokens = least(limits.tokens, *tokens),
                Condition::CostBudget { usd } => {
                    limits.micro_dollars = least(limits.micro_dollars, micro(*usd));
                }
                Condition::EvaluationBudget { n } => {
                    limits.evaluations = least(limits.evaluations, *n);
                }
                _ => {}
            }
        }
        limits
    }
}

/// The section `[strategy]`: which version is gone on from, and what the agent is told to
/// attend to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StrategySpec {
    /// The version to go on from when nothing fired.
    pub base: BaseRule,
    /// Emphasis by phases, where wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveSpec>,
    /// Ever smaller changes, where wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooling: Option<CoolingSpec>,
}

/// The version to go on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaseRule {
    /// The newest output.
    #[default]
    Current,
    /// The best output.
    Best,
}

/// Emphasis by phases: the phase is the number of targets at or below the best score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveSpec {
    /// Strictly ascending scores; at least one, at most three. Past the last the feedback
    /// stresses nothing.
    pub targets: Vec<f64>,
    /// How many criteria are named.
    pub criteria: u32,
}

impl Default for AdaptiveSpec {
    fn default() -> Self {
        Self { targets: vec![0.6, 0.75, 0.85], criteria: 3 }
    }
}

/// Ever smaller changes: at most `max(start x decay^k, floor)` of the base, for the k-th
/// refinement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoolingSpec {
    /// In (0,1].
    pub start: f64,
    /// In (0,1].
    pub decay: f64,
    /// In (0,1].
    pub floor: f64,
}

impl Default for CoolingSpec {
    fn default() -> Self {
        Self { start: 0.5, decay: 0.7, floor: 0.05 }
    }
}

impl CoolingSpec {
    /// The share of the base that the k-th step may change.
    #[must_use]
    pub fn max_change(&self, k: u32) -> f64 {
        (self.start * self.decay.powi(k.min(10_000) as i32)).max(self.floor)
    }
}

impl StrategySpec {
    pub(super) fn check(&self) -> Result<(), Problem> {
        if let Some(adaptive) = &self.adaptive {
            let targets = &adaptive.targets;
            let ascending = targets.windows(2).all(|pair| pair[0] < pair[1]);
            let in_range = targets.iter().all(|target| (0.0..=1.0).contains(target));
            if targets.is_empty() || targets.len() > 3 || !ascending || !in_range {
                return Err(Problem::new(
                    "adaptive.targets",
                    "expected one to three strictly ascending numbers between 0 and 1",
                ));
            }
            if adaptive.criteria == 0 {
                return Err(Problem::new("adaptive.criteria", "expected 1 or more, found 0"));
            }
        }
        if let Some(cooling) = &self.cooling {
            for (key, value) in
                [("start", cooling.start), ("decay", cooling.decay), ("floor", cooling.floor)]
            {
                if !(value > 0.0 && value <= 1.0) {
                    return Err(Problem::new(
                        format!("cooling.{key}"),
                        format!("`{value}` is not above 0 and at most 1"),
                    ));
                }
            }
        }
        Ok(())
    }
}
