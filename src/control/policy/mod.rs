//! When a loop ends and how it goes on: the exit policy, checked.
//!
//! [`ExitSpec`], [`BudgetSpec`] and [`StrategySpec`] are what a file says; [`Policy`] is what
//! the controller runs on. The safety limits are not a part of the tree of conditions and
//! can't be switched off.

mod human;
mod node;
mod spec;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::human::{AskWhen, Gate, HumanSpec, StandIn};
pub use self::node::{Action, Condition, Node};
pub use self::spec::{
    AdaptiveSpec, BaseRule, BudgetSpec, Compat, CoolingSpec, ExitSpec, StrategySpec,
};
use crate::config::Problem;

/// What a run may take at most: of `[budget]` and of the conditions that can end it alone the
/// lower one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Outputs, and calls of the agent.
    pub max_generations: u32,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Tokens of all roles.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar.
    pub micro_dollars: Option<u64>,
    /// Judgements of the panel.
    pub evaluations: Option<u64>,
}

/// A checked policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// When to end.
    pub exit: Node,
    /// What can't be switched off.
    pub limits: Limits,
    /// Soft conditions are silent below this many outputs.
    pub min_generations: u32,
    /// How often an output that passed must pass again.
    pub confirm: u32,
    /// Whether other judges than the panel's confirm: their scores are no repeats of its own.
    pub reserve: bool,
    /// How often a judging without a quorum is tried again.
    pub evaluation_retries: u32,
    /// Outputs in a row that could not be judged, from which on the run ends.
    pub evaluator_failures: u32,
    /// Failed calls of the agent in a row, from which on the run ends.
    pub agent_failures: u32,
    /// The wait before the first retry; doubled for each further one.
    pub backoff_ms: u64,
    /// Vote spreads above this count as disagreement.
    pub max_spread: Option<f64>,
    /// Multiplies the noise band.
    pub noise_z: f64,
    /// The panel's test-retest standard deviation, where a profile or the file gives one.
    pub noise_sd: Option<f64>,
    /// Whether the panel measures the same for the same output.
    pub deterministic: bool,
    /// The forms of conditions.
    pub compat: Compat,
    /// Which version to go on from, and what to stress.
    pub strategy: StrategySpec,
    /// At which points a person is asked.
    pub gate: Gate,
    /// The weights of criteria, for the strategy's focus; 1 for those not named.
    pub weights: BTreeMap<String, f64>,
}

impl Policy {
    /// The policy of a file's sections. `threshold` stands in where a condition names none;
    /// `deterministic` says whether the panel measures the same for the same output.
    ///
    /// # Errors
    /// Empty groups, windows that can't hold what they test, numbers out of range, a minimum
    /// above the maximum.
    pub fn new(
        exit: &ExitSpec,
        budget: &BudgetSpec,
        strategy: &StrategySpec,
        threshold: f64,
        deterministic: bool,
    ) -> Result<Self, Problem> {
        budget.check().map_err(|problem| problem.inside("budget"))?;
        exit.check().map_err(|problem| problem.inside("exit"))?;
        strategy.check().map_err(|problem| problem.inside("strategy"))?;
        let mut node = exit.node();
        node.fill_threshold(threshold);
        let limits = budget.limits(&node);
        if exit.min_generations > limits.max_generations {
            return Err(Problem::new(
                "exit.min_generations",
                format!(
                    "`{}` is above the {} generations that are allowed",
                    exit.min_generations, limits.max_generations
                ),
            ));
        }
        let confirm = exit.confirm.unwrap_or(u32::from(!deterministic));
        let own = Self {
            exit: node,
            limits,
            min_generations: exit.min_generations,
            confirm,
            reserve: false,
            evaluation_retries: exit.evaluation_retries,
            evaluator_failures: exit.evaluator_failures,
            agent_failures: exit.agent_failures,
            backoff_ms: (exit.agent_backoff * 1000.0) as u64,
            max_spread: exit.max_spread,
            noise_z: exit.noise_z,
            noise_sd: if deterministic { Some(0.0) } else { exit.noise_sd },
            deterministic,
            compat: exit.compat,
            strategy: strategy.clone(),
            gate: Gate::default(),
            weights: BTreeMap::new(),
        };
        own.check_evaluations()?;
        Ok(own)
    }

    fn check_evaluations(&self) -> Result<(), Problem> {
        let confirm = self.confirm;
        if self.limits.evaluations.is_some_and(|limit| limit <= u64::from(confirm)) {
            return Err(Problem::new(
                "budget.evaluations",
                format!("too few to judge one output and confirm it {confirm} time(s)"),
            ));
        }
        Ok(())
    }

    /// Lets other judges confirm; `confirm` is what the file says of how often.
    ///
    /// # Errors
    /// When the limit on judgements leaves no room for it.
    pub fn confirm_by_reserve(&mut self, confirm: Option<u32>) -> Result<(), Problem> {
        self.reserve = true;
        self.confirm = confirm.unwrap_or(1);
        self.check_evaluations()
    }

    /// Lets the panel's own decision stand wherever a threshold is asked for: under a profile,
    /// whose threshold is a key and no plain score.
    pub fn leave_threshold_to_panel(&mut self) {
        self.exit.clear_thresholds();
    }

    /// The lowest threshold that a condition of the policy asks for; `None` without one.
    #[must_use]
    pub fn threshold(&self) -> Option<f64> {
        let thresholds = self.exit.leaves().into_iter().filter_map(|leaf| match leaf {
            Condition::QualityThreshold { threshold } => *threshold,
            _ => None,
        });
        thresholds.reduce(f64::min)
    }

    /// Whether a person may be asked.
    #[must_use]
    pub fn asks(&self) -> bool {
        let by_ladder = self.exit.leaves().iter().any(|l| l.actions().contains(&Action::Ask));
        by_ladder || self.gate != Gate::default()
    }

    /// The commands that have to be run with every judgement, by their arguments.
    #[must_use]
    pub fn commands(&self) -> Vec<Vec<String>> {
        let mut commands: Vec<Vec<String>> = self
            .exit
            .leaves()
            .into_iter()
            .filter_map(|leaf| match leaf {
                Condition::Command { argv } => Some(argv.clone()),
                _ => None,
            })
            .collect();
        commands.sort();
        commands.dedup();
        commands
    }

    /// What a reader should know before trusting an outcome under this policy.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let band = super::noise::band(self.noise_z, self.noise_sd.unwrap_or(0.0));
        if !self.deterministic && self.noise_sd.is_none() && self.compat == Compat::None {
            warnings.push(
                "the judges' test-retest noise is not known: until outputs have been judged twice, small differences count and no fall or swing of the scores ends the run; set `exit.noise_sd`".to_owned(),
            );
        }
        for leaf in self.exit.leaves() {
            match leaf {
                Condition::QualityThreshold { threshold: Some(threshold) }
                    if band > 0.0 && threshold + band > 1.0 && *threshold < 1.0 =>
                {
                    warnings.push(format!(
                        "the threshold {threshold} lies within the judges' noise ({band:.3}) of the best possible score: few good outputs will pass"
                    ));
                }
                Condition::ImprovementStall { min_gain, .. } if band > *min_gain => {
                    warnings.push(format!(
                        "`min_gain` {min_gain} is inside the judges' noise: {band:.3} is used"
                    ));
                }
                Condition::Oscillation { window, .. } if *window > self.limits.max_generations => {
                    warnings.push(format!(
                        "`oscillation` can't fire: it needs {window} outputs, and {} are allowed",
                        self.limits.max_generations
                    ));
                }
                Condition::Convergence { window, .. } if *window > self.limits.max_generations => {
                    warnings.push(format!(
                        "`convergence` can't fire: it needs {window} outputs, and {} are allowed",
                        self.limits.max_generations
                    ));
                }
                Condition::MaxGenerations { n } if *n > self.limits.max_generations => {
                    warnings.push(format!(
                        "`max_generations` {n} can't be reached: `budget.max_generations` is {}",
                        self.limits.max_generations
                    ));
                }
                _ => {}
            }
        }
        warnings
    }
}
