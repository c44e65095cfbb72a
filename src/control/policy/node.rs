//! The tree of conditions and its leaves, as a file writes them.
//!
//! A leaf is a table with `kind` and the condition's keys, or a table of one key that is the
//! condition's name (`{ max_generations = { n = 5 } }`), or for a condition with defaults
//! alone its name as a text.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use crate::config::{Problem, from_value};

/// What is done when a soft condition fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Tell the agent.
    Nudge,
    /// Ask for smaller changes.
    Cool,
    /// Go on from the best output.
    Revert,
    /// Start anew.
    Restart,
    /// Ask a person.
    Ask,
    /// End the run.
    Exit,
}

/// A leaf of the tree. `actions` is what is done the first, second, ... time it fires; past
/// its end the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// The accept rule: a quorum, every required judge and criterion passed, and the score
    /// at or above the threshold.
    #[serde(alias = "quality_threshold_reached", alias = "quality_reached")]
    QualityThreshold {
        /// In [0,1]; the panel's own when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threshold: Option<f64>,
    },
    /// Every criterion at or above its pass mark; at least one criterion.
    #[serde(alias = "criteria_passed")]
    AllCriteriaPassed {
        /// The mark of criteria whose judges name none.
        #[serde(default = "pass_mark")]
        pass_mark: f64,
    },
    /// So many outputs were made.
    #[serde(alias = "max_iterations", alias = "max_iterations_reached")]
    MaxGenerations {
        /// At least 1.
        #[serde(default = "ten", alias = "max_generations", alias = "max")]
        n: u32,
    },
    /// So much time has passed.
    #[serde(alias = "deadline", alias = "time_budget_exhausted")]
    TimeBudget {
        /// Above 0.
        #[serde(default = "ten_minutes")]
        seconds: f64,
    },
    /// So many tokens were used.
    #[serde(alias = "token_budget_exhausted")]
    TokenBudget {
        /// At least 1.
        #[serde(default = "fifty_thousand")]
        tokens: u64,
    },
    /// So much money was spent.
    #[serde(alias = "money_budget", alias = "cost_budget_exhausted")]
    CostBudget {
        /// US dollars.
        usd: f64,
    },
    /// So many judgements were made.
    EvaluationBudget {
        /// At least 1.
        n: u64,
    },
    /// The same output again, a return to an older one, or the wording of one without gain.
    RepeatedOutput {
        /// In (0,1].
        #[serde(default = "similarity")]
        similarity: f64,
        /// What is done.
        #[serde(default = "nudge_exit")]
        actions: Vec<Action>,
    },
    /// The last score lies below the best.
    #[serde(alias = "regressed")]
    QualityRegression {
        /// By more than this.
        #[serde(default = "tenth")]
        threshold: f64,
        /// What is done.
        #[serde(default = "revert_exit")]
        actions: Vec<Action>,
    },
    /// The scores fall strictly.
    #[serde(alias = "diverged")]
    Divergence {
        /// Over so many scores, at least 3.
        #[serde(default = "three")]
        window: u32,
        /// What is done.
        #[serde(default = "revert_exit")]
        actions: Vec<Action>,
    },
    /// No significant new best.
    #[serde(alias = "stalled", alias = "improvement_stalled")]
    ImprovementStall {
        /// For so many judged outputs, at least 1.
        #[serde(default = "two")]
        patience: u32,
        /// A gain below this is none; above 0.
        #[serde(default = "twentieth")]
        min_gain: f64,
        /// What is done.
        #[serde(default = "exit")]
        actions: Vec<Action>,
    },
    /// The scores have stopped moving.
    #[serde(alias = "converged", alias = "plateau")]
    Convergence {
        /// Over so many scores, at least 3.
        #[serde(default = "four")]
        window: u32,
        /// The sample variance is below this; above 0.
        #[serde(default = "hundredth")]
        variance: f64,
        /// Trend and range stay below this and twice this; above 0.
        #[serde(default = "hundredth")]
        epsilon: f64,
        /// With `compat = "classic"`: every adjacent difference below `epsilon`, instead of
        /// the variance.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        differences: bool,
        /// What is done.
        #[serde(default = "exit")]
        actions: Vec<Action>,
    },
    /// The scores go up and down without gain.
    #[serde(alias = "oscillating", alias = "oscillation_detected")]
    Oscillation {
        /// Over so many scores, at least 6.
        #[serde(default = "six")]
        window: u32,
        /// A swing below this is none; 0 or more.
        #[serde(default = "fiftieth")]
        min_amplitude: f64,
        /// What is done.
        #[serde(default = "cool_exit")]
        actions: Vec<Action>,
    },
    /// A command exits with 0. It reads the output on its standard input.
    #[serde(alias = "command_satisfied")]
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
    },
}

fn pass_mark() -> f64 {
    0.7
}
fn ten() -> u32 {
    10
}
fn ten_minutes() -> f64 {
    600.0
}
fn fifty_thousand() -> u64 {
    50_000
}
fn similarity() -> f64 {
    0.95
}
fn tenth() -> f64 {
    0.10
}
fn twentieth() -> f64 {
    0.05
}
fn fiftieth() -> f64 {
    0.02
}
fn hundredth() -> f64 {
    0.01
}
fn two() -> u32 {
    2
}
fn three() -> u32 {
    3
}
fn four() -> u32 {
    4
}
fn six() -> u32 {
    6
}
fn nudge_exit() -> Vec<Action> {
    vec![Action::Nudge, Action::Exit]
}
fn revert_exit() -> Vec<Action> {
    vec![Action::Revert, Action::Exit]
}
fn cool_exit() -> Vec<Action> {
    vec![Action::Cool, Action::Exit]
}
fn exit() -> Vec<Action> {
    vec![Action::Exit]
}

impl Condition {
    /// The ladder of a soft condition; empty for the others, which end the run at once.
    #[must_use]
    pub fn actions(&self) -> &[Action] {
        match self {
            Self::RepeatedOutput { actions, .. }
            | Self::QualityRegression { actions, .. }
            | Self::Divergence { actions, .. }
            | Self::ImprovementStall { actions, .. }
            | Self::Convergence { actions, .. }
            | Self::Oscillation { actions, .. } => actions,
            _ => &[],
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let unit = |key: &str, value: f64| {
            if (0.0..=1.0).contains(&value) {
                Ok(())
            } else {
                Err(Problem::new(key, format!("`{value}` is not between 0 and 1")))
            }
        };
        let above_zero = |key: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(Problem::new(key, format!("`{value}` is not above 0")))
            }
        };
        let at_least = |key: &str, value: u64, least: u64| {
            if value >= least {
                Ok(())
            } else {
                Err(Problem::new(key, format!("`{value}` is below {least}, the least that works")))
            }
        };
        match self {
            Self::QualityThreshold { threshold } => {
                threshold.map_or(Ok(()), |threshold| unit("threshold", threshold))
            }
            Self::AllCriteriaPassed { pass_mark } => unit("pass_mark", *pass_mark),
            Self::MaxGenerations { n } => at_least("n", u64::from(*n), 1),
            Self::TimeBudget { seconds } => above_zero("seconds", *seconds),
            Self::TokenBudget { tokens } => at_least("tokens", *tokens, 1),
            Self::CostBudget { usd } => above_zero("usd", *usd),
            Self::EvaluationBudget { n } => at_least("n", *n, 1),
            Self::RepeatedOutput { similarity, .. } => {
                above_zero("similarity", *similarity)?;
                unit("similarity", *similarity)
            }
            Self::QualityRegression { threshold, .. } => unit("threshold", *threshold),
            Self::Divergence { window, .. } => at_least("window", u64::from(*window), 3),
            Self::ImprovementStall { patience, min_gain, .. } => {
                at_least("patience", u64::from(*patience), 1)?;
                above_zero("min_gain", *min_gain)
            }
            Self::Convergence { window, variance, epsilon, .. } => {
                at_least("window", u64::from(*window), 3)?;
                above_zero("variance", *variance)?;
                above_zero("epsilon", *epsilon)
            }
            Self::Oscillation { window, min_amplitude, .. } => {
                at_least("window", u64::from(*window), 6)?;
                unit("min_amplitude", *min_amplitude)
            }
            Self::Command { argv } => match argv.first() {
                Some(program) if !program.is_empty() => Ok(()),
                _ => Err(Problem::new("argv", "expected a program and its arguments")),
            },
        }
    }
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One condition.
    Leaf(Condition),
    /// Fires when one of its members does.
    Any(Vec<Node>),
    /// Fires when all of its members do.
    All(Vec<Node>),
}

impl Node {
    /// Reads a node of a file.
    ///
    /// # Errors
    /// An unknown condition or key, a group with other keys beside it.
    pub fn from_value(value: Value) -> Result<Self, Problem> {
        let mut table = match value {
            // A condition with its defaults.
            Value::String(kind) => Map::from_iter([("kind".to_owned(), Value::String(kind))]),
            Value::Object(table) => table,
            other => {
                return Err(Problem::new(
                    "",
                    format!("expected a condition or a group (`any`, `all`), found `{other}`"),
                ));
            }
        };
        for (key, group) in [("any", Self::Any as fn(Vec<Self>) -> Self), ("all", Self::All)] {
            let Some(members) = table.remove(key) else { continue };
            if let Some(other) = table.keys().next() {
                return Err(Problem::new(
                    other.as_str(),
                    format!("a group has no key beside `{key}`"),
                ));
            }
            return Ok(group(Self::list(members).map_err(|problem| problem.inside(key))?));
        }
        if !table.contains_key("kind") && table.len() == 1 {
            let mut only = table.into_iter();
            let (kind, inner) = only.next().unwrap_or_default();
            table = match inner {
                Value::Object(inner) => inner,
                Value::Bool(true) => Map::new(),
                other => {
                    return Err(Problem::new(
                        kind,
                        format!("expected a table of the condition's keys, found `{other}`"),
                    ));
                }
            };
            table.insert("kind".to_owned(), Value::String(kind));
        }
        from_value(Value::Object(table)).map(Self::Leaf)
    }

    fn list(value: Value) -> Result<Vec<Self>, Problem> {
        let Value::Array(members) = value else {
            return Err(Problem::new("", "expected a list of conditions"));
        };
        let read = |(i, member)| {
            Self::from_value(member).map_err(|problem| problem.inside(&format!("[{i}]")))
        };
        members.into_iter().enumerate().map(read).collect()
    }

    /// Every leaf, from left to right.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Condition> {
        match self {
            Self::Leaf(condition) => vec![condition],
            Self::Any(members) | Self::All(members) => {
                members.iter().flat_map(Self::leaves).collect()
            }
        }
    }

    /// The leaves that can end the run alone: those reached through `any` only.
    pub(super) fn sufficient(&self) -> Vec<&Condition> {
        match self {
            Self::Leaf(condition) => vec![condition],
            Self::Any(members) => members.iter().flat_map(Self::sufficient).collect(),
            Self::All(members) if members.len() == 1 => members[0].sufficient(),
            Self::All(_) => Vec::new(),
        }
    }

    pub(super) fn fill_threshold(&mut self, own: f64) {
        match self {
            Self::Leaf(Condition::QualityThreshold { threshold }) => {
                threshold.get_or_insert(own);
            }
            Self::Leaf(_) => {}
            Self::Any(members) | Self::All(members) => {
                members.iter_mut().for_each(|member| member.fill_threshold(own));
            }
        }
    }

    /// Leaves every threshold to the panel's own decision.
    pub(super) fn clear_thresholds(&mut self) {
        match self {
            Self::Leaf(Condition::QualityThreshold { threshold }) => *threshold = None,
            Self::Leaf(_) => {}
            Self::Any(members) | Self::All(members) => {
                members.iter_mut().for_each(Self::clear_thresholds);
            }
        }
    }

    /// What no single key's type can check.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), Problem> {
        let (key, members) = match self {
            Self::Leaf(condition) => return condition.check(),
            Self::Any(members) => ("any", members),
            Self::All(members) => ("all", members),
        };
        if members.is_empty() {
            return Err(Problem::new(key, "an empty group: expected at least one condition"));
        }
        for (i, member) in members.iter().enumerate() {
            member.check().map_err(|problem| problem.inside(&format!("{key}[{i}]")))?;
        }
        Ok(())
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(condition) => condition.serialize(serializer),
            Self::Any(members) => serializer.collect_map([("any", members)]),
            Self::All(members) => serializer.collect_map([("all", members)]),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for Node {
    fn schema_name() -> Cow<'static, str> {
        "Node".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let leaf = generator.subschema_for::<Condition>();
        let members = serde_json::json!({
            "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/Node" }
        });
        schemars::json_schema!({
            "description": "A condition, or a group of them.",
            "anyOf": [
                leaf,
                { "type": "object", "properties": { "any": members }, "required": ["any"], "additionalProperties": false },
                { "type": "object", "properties": { "all": members }, "required": ["all"], "additionalProperties": false },
                { "type": "object", "minProperties": 1, "maxProperties": 1, "description": "The condition's name and a table of its keys." },
                { "type": "string", "description": "The name of a condition with defaults for all its keys." },
            ],
        })
    }
}
