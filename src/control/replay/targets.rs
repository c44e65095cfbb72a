//! What many loops together should reach, and whether they did.
//!
//! A target is missed only where the whole interval of its figure lies on the wrong side: ten
//! loops prove little, and a report that failed on them would be a coin toss.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metrics::{Metric, Metrics};
use crate::config::{ConfigError, Problem, Problems, from_value, from_value_all, read_file};

/// The program's own targets.
const OWN: &str = include_str!("targets.toml");

/// The bound of a figure: one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// It should be above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// It should be below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

/// Whether a figure reaches its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Its whole interval does.
    Met,
    /// Its interval holds the target, or there is no figure.
    Open,
    /// Its whole interval does not.
    Missed,
}

impl Standing {
    /// The name in JSON and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Open => "open",
            Self::Missed => "missed",
        }
    }
}

/// A target, and how a figure stands to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Held {
    /// The target.
    #[serde(flatten)]
    pub target: Target,
    /// Whether it is reached.
    pub standing: Standing,
}

/// Targets by the names of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetsSpec(BTreeMap<String, Target>);

impl Target {
    fn check(&self) -> Result<(), Problem> {
        match (self.above, self.below) {
            (Some(bound), None) | (None, Some(bound)) if bound.is_finite() => Ok(()),
            _ => Err(Problem::new("", "expected one number: `above` or `below`")),
        }
    }

    /// How a figure stands to it. An end that is not there is beyond every number.
    #[must_use]
    pub fn standing(&self, metric: &Metric) -> Standing {
        if !metric.has_interval {
            return Standing::Open;
        }
        let lower = metric.lower.unwrap_or(f64::INFINITY);
        let upper = metric.upper.unwrap_or(f64::INFINITY);
        match (self.above, self.below) {
            (Some(bound), _) if lower > bound => Standing::Met,
            (Some(bound), _) if upper <= bound => Standing::Missed,
            (_, Some(bound)) if upper < bound => Standing::Met,
            (_, Some(bound)) if lower >= bound => Standing::Missed,
            _ => Standing::Open,
        }
    }
}

impl TargetsSpec {
    /// The program's own.
    ///
    /// # Errors
    /// Never: they are a part of the program, and tested.
    pub fn own() -> Result<Self, Problems> {
        let value: serde_json::Value =
            toml::from_str(OWN).map_err(|error| Problem::new("", error.to_string()))?;
        Self::of(value)
    }

    /// Those of a file.
    ///
    /// # Errors
    /// When it can't be read, names a figure that there is not, or a bound that is none.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = read_file(path)?;
        Self::of(file.value.clone()).map_err(|problems| ConfigError::invalid(&file, problems))
    }

    fn of(value: serde_json::Value) -> Result<Self, Problems> {
        let targets: BTreeMap<String, serde_json::Value> = from_value_all(value)?;
        let names = Metrics::NAMES;
        let mut problems = Problems::default();
        let mut read = BTreeMap::new();
        for (name, value) in targets {
            if !names.contains(&name.as_str()) {
                let near = crate::config::nearest(&name, names.iter().copied())
                    .map(|near| format!("did you mean `{near}`?"))
                    .unwrap_or_else(|| format!("expected one of {}", names.join(", ")));
                problems.push(Problem::new(name, format!("is no figure over loops: {near}")));
                continue;
            }
            let target = from_value::<Target>(value).and_then(|own| own.check().map(|()| own));
            match target {
                Ok(target) => {
                    read.insert(name, target);
                }
                Err(problem) => problems.push(problem.inside(&name)),
            }
        }
        if problems.is_empty() && read.is_empty() {
            problems.push(Problem::new("", "no target: expected at least one"));
        }
        if problems.is_empty() { Ok(Self(read)) } else { Err(problems) }
    }

    /// How the figures stand to those targets that they have.
    #[must_use]
    pub fn judge(&self, metrics: &Metrics) -> BTreeMap<&'static str, Held> {
        metrics
            .named()
            .into_iter()
            .filter_map(|(name, metric)| {
                let target = *self.0.get(name)?;
                Some((name, Held { target, standing: target.standing(&metric) }))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(lower: f64, upper: f64) -> Metric {
        let end = |value: f64| value.is_finite().then_some(value);
        Metric { value: end(lower), lower: end(lower), upper: end(upper), n: 9, has_interval: true }
    }

    #[test]
    fn a_target_is_missed_only_where_the_whole_interval_lies_on_the_wrong_side() {
        let above = Target { above: Some(0.95), below: None };
        let below = Target { above: None, below: Some(3.0) };
        for (target, lower, upper, expected) in [
            (above, 0.96, 1.0, Standing::Met),
            (above, 0.9, 1.0, Standing::Open),
            (above, 0.95, 1.0, Standing::Open),
            (above, 0.5, 0.95, Standing::Missed),
            (below, 1.0, 2.0, Standing::Met),
            (below, 1.0, 3.0, Standing::Open),
            (below, 3.0, 3.0, Standing::Missed),
            (below, 2.0, f64::INFINITY, Standing::Open),
            (below, f64::INFINITY, f64::INFINITY, Standing::Missed),
        ] {
            assert_eq!(target.standing(&metric(lower, upper)), expected, "{target:?} {lower}");
        }
        for few in [metric(1.0, 1.0), metric(9.0, 9.0)] {
            let few = Metric { has_interval: false, ..few };
            assert_eq!(below.standing(&few), Standing::Open);
        }
    }

    #[test]
    fn the_program_s_own_targets_name_figures_and_others_are_refused_by_name() {
        assert_eq!(TargetsSpec::own().unwrap().0.len(), 8);
        for (bad, word) in [
            (serde_json::json!({ "convergence": { "above": 1 } }), "convergence_rate"),
            (serde_json::json!({ "recovery_rate": {} }), "above"),
            (serde_json::json!({ "recovery_rate": { "above": 1, "below": 2 } }), "one number"),
            (serde_json::json!({ "recovery_rate": { "over": 1 } }), "over"),
            (serde_json::json!({}), "at least one"),
        ] {
            let told = TargetsSpec::of(bad.clone()).unwrap_err().to_string();
            assert!(told.contains(word), "{bad}: {told}");
        }
    }
}
