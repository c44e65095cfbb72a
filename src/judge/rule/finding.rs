//! What rules have in common: the text they look at, the bounds they check, what they find.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::BuildError;
use crate::case::Case;

/// A rule, compiled.
pub trait Rule: fmt::Debug + Send + Sync {
    /// Looks at a case. The same case gives the same finding, always.
    ///
    /// # Errors
    /// When the case lacks what the rule needs, or is of a kind the rule does not measure:
    /// the judge abstains.
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable>;

    /// What identifies the rule beyond its options, such as the content of a file.
    fn identity(&self) -> Value {
        Value::Null
    }
}

/// Why a rule does not apply to a case, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotApplicable(pub String);

impl NotApplicable {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Which text of the case a rule looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// What is judged.
    #[default]
    Output,
    /// What was asked.
    Input,
    /// The reference answer.
    Expected,
    /// The material the output should rest on.
    Context,
}

impl Of {
    /// The field's name in a case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Input => "input",
            Self::Expected => "expected",
            Self::Context => "context",
        }
    }

    /// The text of a case.
    ///
    /// # Errors
    /// When the case has none.
    pub fn text(self, case: &Case) -> Result<&str, NotApplicable> {
        let text = match self {
            Self::Output => &case.output,
            Self::Input => &case.input,
            Self::Expected => &case.expected,
            Self::Context => &case.context,
        };
        text.as_deref().ok_or_else(|| NotApplicable(format!("the case has no `{}`", self.name())))
    }
}

/// A range of counts; an end left out is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The least, itself allowed.
    #[serde(default)]
    pub min: Option<u64>,
    /// The most, itself allowed.
    #[serde(default)]
    pub max: Option<u64>,
}

impl Between {
    pub(super) fn check(self, field: &str) -> Result<Self, BuildError> {
        match (self.min, self.max) {
            (None, None) => Err(BuildError::invalid(field, "expected `min`, `max` or both")),
            (Some(min), Some(max)) if min > max => Err(BuildError::invalid(
                field,
                format!("`min` is {min} and `max` is {max}: expected `min` at most `max`"),
            )),
            _ => Ok(self),
        }
    }

    /// 1 within the range; below it `count / min`, above it `max / count`.
    pub(super) fn score(self, count: u64) -> f64 {
        match (self.min, self.max) {
            (Some(min), _) if count < min => count as f64 / min as f64,
            (_, Some(max)) if count > max => max as f64 / count as f64,
            _ => 1.0,
        }
    }

    /// What is wrong with a count, and what to change; `None` within the range.
    pub(super) fn complaint(self, count: u64, one: &str, many: &str) -> Option<String> {
        let change = match (self.min, self.max) {
            (Some(min), _) if count < min => format!("add {}", min - count),
            (_, Some(max)) if count > max => format!("cut {}", count - max),
            _ => return None,
        };
        let unit = if count == 1 { one } else { many };
        Some(format!("has {count} {unit}: expected {self}; {change}"))
    }
}

impl fmt::Display for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max => write!(f, "exactly {min}"),
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("any number"),
        }
    }
}

/// A range of numbers; an end left out is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BetweenNumbers {
    /// The least, itself allowed.
    #[serde(default)]
    pub min: Option<f64>,
    /// The most, itself allowed.
    #[serde(default)]
    pub max: Option<f64>,
}

impl BetweenNumbers {
    pub(super) fn check(self, field: &str) -> Result<Self, BuildError> {
        if [self.min, self.max].into_iter().flatten().any(|end| !end.is_finite()) {
            return Err(BuildError::invalid(field, "expected finite numbers"));
        }
        match (self.min, self.max) {
            (None, None) => Err(BuildError::invalid(field, "expected `min`, `max` or both")),
            (Some(min), Some(max)) if min > max => Err(BuildError::invalid(
                field,
                format!("`min` is {min} and `max` is {max}: expected `min` at most `max`"),
            )),
            _ => Ok(self),
        }
    }

    /// How far a value is outside; 0 within.
    pub(super) fn distance(self, value: f64) -> f64 {
        let below = self.min.map_or(0.0, |min| min - value);
        let above = self.max.map_or(0.0, |max| value - max);
        below.max(above).max(0.0)
    }
}

impl fmt::Display for BetweenNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, "{min} to {max}"),
            (Some(min), None) => write!(f, "at least {min}"),
            (None, Some(max)) => write!(f, "at most {max}"),
            (None, None) => f.write_str("any number"),
        }
    }
}

/// One named part of a finding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    pub(super) name: String,
    pub(super) score: f64,
    pub(super) passed: bool,
    pub(super) required: bool,
    pub(super) raw: Option<Value>,
    pub(super) feedback: Option<String>,
}

impl Check {
    /// A check that holds, or doesn't and says why.
    pub(super) fn plain(name: impl Into<String>, complaint: Option<String>) -> Self {
        let passed = complaint.is_none();
        Self::graded(name, if passed { 1.0 } else { 0.0 }, complaint)
    }

    /// A check with a score of its own; it holds when there is no complaint.
    pub(super) fn graded(name: impl Into<String>, score: f64, complaint: Option<String>) -> Self {
        Self {
            name: name.into(),
            score,
            passed: complaint.is_none(),
            required: false,
            raw: None,
            feedback: complaint,
        }
    }

    pub(super) fn raw(mut self, raw: impl Into<Value>) -> Self {
        self.raw = Some(raw.into());
        self
    }
}

/// What a rule found on a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    pub(super) score: f64,
    pub(super) raw: Option<Value>,
    pub(super) checks: Vec<Check>,
    pub(super) feedback: Vec<String>,
    pub(super) notes: BTreeMap<String, Value>,
}

impl Finding {
    pub(super) fn new(score: f64) -> Self {
        Self { score, ..Self::default() }
    }

    /// 1 without a complaint, 0 with one.
    pub(super) fn plain(complaint: Option<String>) -> Self {
        Self::new(if complaint.is_none() { 1.0 } else { 0.0 }).say(complaint)
    }

    /// The mean of checks (there must be one at least), their complaints as feedback.
    pub(super) fn mean(checks: Vec<Check>) -> Self {
        let score = checks.iter().map(|check| check.score).sum::<f64>() / checks.len() as f64;
        Self::of(score, checks)
    }

    /// A score and the checks it came from, their complaints as feedback.
    pub(super) fn of(score: f64, checks: Vec<Check>) -> Self {
        let feedback = checks.iter().filter_map(|check| check.feedback.clone()).collect();
        Self { score, checks, feedback, ..Self::default() }
    }

    pub(super) fn say(mut self, feedback: impl IntoIterator<Item = String>) -> Self {
        self.feedback.extend(feedback);
        self
    }

    pub(super) fn raw(mut self, raw: impl Into<Value>) -> Self {
        self.raw = Some(raw.into());
        self
    }

    pub(super) fn note(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.notes.insert(key.to_owned(), value.into());
        self
    }

    /// Whether nothing is to be complained about.
    pub(super) fn passed(&self) -> bool {
        if self.checks.is_empty() {
            self.score >= 1.0
        } else {
            self.checks.iter().all(|check| check.passed)
        }
    }
}

/// `a`, `b` and `c`, at most eight of them, for a message.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let items: Vec<&str> = items.into_iter().collect();
    let mut text = items
        .iter()
        .take(SHOWN)
        .map(|item| format!("`{}`", crate::text::excerpt(item, 60)))
        .collect::<Vec<_>>()
        .join(", ");
    if items.len() > SHOWN {
        text.push_str(&format!(" and {} more", items.len() - SHOWN));
    }
    text
}

/// Refuses a list with nothing in it, or with an empty text among it.
pub(super) fn check_terms(field: &str, terms: &[String]) -> Result<(), BuildError> {
    if terms.iter().any(|term| term.trim().is_empty()) {
        return Err(BuildError::invalid(field, "holds an empty text: expected words to look for"));
    }
    Ok(())
}

/// A list must have an entry.
pub(super) fn check_filled<T>(field: &str, list: &[T]) -> Result<(), BuildError> {
    if list.is_empty() {
        return Err(BuildError::invalid(field, "is empty: expected at least one entry"));
    }
    Ok(())
}
