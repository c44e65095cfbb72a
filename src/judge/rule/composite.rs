//! `composite`: several rules as one judge, with one vote.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::{BuildContext, BuildError};
use super::RuleSpec;
use super::finding::{Check, Finding, NotApplicable, Rule, check_filled};
use crate::case::Case;

/// Composites in composites; deeper nesting is a mistake, and would use up the stack.
const DEPTH: usize = 8;

/// Options of `composite`.
///
/// Score, over the parts that apply to the case: with `combine = "mean"` the weighted mean;
/// with `all` the lowest score; with `any` the highest. A `required` part that fails makes
/// the whole 0. Parts that abstain are left out and named in the notes; when all abstain, or
/// a required one does, so does the composite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompositeSpec {
    /// How the parts' scores become one.
    #[serde(default)]
    pub combine: Combine,
    /// The parts.
    pub parts: Vec<Part>,
}

/// How the parts' scores become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// The weighted mean.
    #[default]
    Mean,
    /// The lowest: all must be good.
    All,
    /// The highest: one good is enough.
    Any,
}

/// One rule of a composite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The criterion's name; by default the rule's, with a number where it occurs again.
    #[serde(default)]
    pub name: Option<String>,
    /// The part's weight in the mean, above 0.
    #[serde(default = "one")]
    pub weight: f64,
    /// Whether the whole fails when this part does.
    #[serde(default)]
    pub required: bool,
    /// The rule, as in a judge of its own.
    pub check: RuleSpec,
}

fn one() -> f64 {
    1.0
}

impl CompositeSpec {
    pub(super) fn compile(
        &self,
        context: &BuildContext,
        depth: usize,
    ) -> Result<Box<dyn Rule>, BuildError> {
        check_filled("parts", &self.parts)?;
        if depth >= DEPTH {
            return Err(BuildError::invalid("parts", format!("are nested more than {DEPTH} deep")));
        }
        let mut parts: Vec<CompiledPart> = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let field = format!("parts[{index}]");
            crate::config::check_weight(part.weight, false)
                .map_err(|reason| BuildError::invalid(format!("{field}.weight"), reason))?;
            if part.weight != 1.0 && self.combine != Combine::Mean {
                return Err(BuildError::invalid(
                    format!("{field}.weight"),
                    "has no effect without `combine = \"mean\"`",
                ));
            }
            let taken = |name: &str| parts.iter().any(|part| part.name == name);
            let name = match &part.name {
                Some(name) if name.trim().is_empty() => {
                    return Err(BuildError::invalid(format!("{field}.name"), "is empty"));
                }
                Some(name) if taken(name) => {
                    return Err(BuildError::invalid(
                        format!("{field}.name"),
                        format!("`{name}` is taken: expected a name of its own"),
                    ));
                }
                Some(name) => name.clone(),
                None => {
                    let base = part.check.name();
                    std::iter::once(base.to_owned())
                        .chain((2..).map(|number| format!("{base} {number}")))
                        .find(|name| !taken(name))
                        .unwrap_or_default()
                }
            };
            let rule = part
                .check
                .compile(context, depth + 1)
                .map_err(|error| inside(error, &format!("{field}.check")))?;
            parts.push(CompiledPart { name, weight: part.weight, required: part.required, rule });
        }
        Ok(Box::new(Composite { combine: self.combine, parts }))
    }
}

/// The same error, with the way to the key.
fn inside(error: BuildError, prefix: &str) -> BuildError {
    let within = |field: String| format!("{prefix}.{field}");
    match error {
        BuildError::Invalid { field, reason } => {
            BuildError::Invalid { field: within(field), reason }
        }
        BuildError::File { field, path, source } => {
            BuildError::File { field: within(field), path, source }
        }
        BuildError::Feature { field, feature } => {
            BuildError::Feature { field: within(field), feature }
        }
        other => other,
    }
}

#[derive(Debug)]
struct CompiledPart {
    name: String,
    weight: f64,
    required: bool,
    rule: Box<dyn Rule>,
}

#[derive(Debug)]
struct Composite {
    combine: Combine,
    parts: Vec<CompiledPart>,
}

impl Rule for Composite {
    fn identity(&self) -> Value {
        let beyond: Vec<Value> = self.parts.iter().map(|part| part.rule.identity()).collect();
        if beyond.iter().all(Value::is_null) { Value::Null } else { Value::Array(beyond) }
    }

    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let mut checks = Vec::new();
        let mut feedback = Vec::new();
        let mut left_out = serde_json::Map::new();
        let (mut sum, mut weights) = (0.0, 0.0);
        let mut vetoed = false;
        for part in &self.parts {
            let finding = match part.rule.measure(case) {
                Ok(finding) => finding,
                Err(reason) if part.required => {
                    return Err(NotApplicable(format!("`{}`: {}", part.name, reason.0)));
                }
                Err(reason) => {
                    left_out.insert(part.name.clone(), Value::from(reason.0));
                    continue;
                }
            };
            let passed = finding.passed();
            vetoed |= part.required && !passed;
            sum += part.weight * finding.score;
            weights += part.weight;
            feedback.extend(finding.feedback.iter().map(|line| format!("{}: {line}", part.name)));
            checks.push(Check {
                name: part.name.clone(),
                score: finding.score,
                passed,
                required: part.required,
                raw: finding.raw,
                feedback: (!finding.feedback.is_empty()).then(|| finding.feedback.join("; ")),
            });
        }
        if checks.is_empty() {
            let reasons: Vec<String> = left_out
                .iter()
                .map(|(name, why)| format!("`{name}`: {}", why.as_str().unwrap_or_default()))
                .collect();
            return Err(NotApplicable(format!("no part applies: {}", reasons.join("; "))));
        }
        let scores = checks.iter().map(|check| check.score);
        let score = match self.combine {
            _ if vetoed => 0.0,
            Combine::Mean => sum / weights,
            Combine::All => scores.fold(1.0, f64::min),
            Combine::Any => scores.fold(0.0, f64::max),
        };
        // What is wrong with one alternative is no news where another is right.
        if self.combine == Combine::Any && !vetoed && checks.iter().any(|check| check.passed) {
            feedback.clear();
        }
        let mut finding = Finding { score, checks, feedback, ..Finding::default() };
        if !left_out.is_empty() {
            finding = finding.note("abstained", Value::Object(left_out));
        }
        Ok(finding)
    }
}
