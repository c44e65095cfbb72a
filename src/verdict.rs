//! The verdict: what became of one judge on one case.
//!
//! The set of statuses is closed, and a failed measurement never carries a score: it is not
//! zero, not neutral, and not dropped.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::score::Score;

/// What became of one measurement.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A score was measured.
    Ok,
    /// The judge declined, or its rule does not apply to this case.
    Abstained,
    /// The reply held no score that can be read without guessing.
    Unparseable,
    /// The reply held a number outside the judge's scale.
    OutOfRange,
    /// The reply was cut off before its end.
    Truncated,
    /// The model refused, or a content filter stopped it.
    Refused,
    /// No answer before the deadline.
    Timeout,
    /// The provider, server or process failed.
    ProviderError,
    /// The provider asked for a pause longer than the deadline allows.
    RateLimited,
    /// A limit on money, tokens or calls was reached before the call.
    Budget,
    /// Stopped by the user, or not needed any more.
    Cancelled,
    /// A fault of this program or of a judge's own code.
    Internal,
}

impl Status {
    /// Every status, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::Ok,
        Self::Abstained,
        Self::Unparseable,
        Self::OutOfRange,
        Self::Truncated,
        Self::Refused,
        Self::Timeout,
        Self::ProviderError,
        Self::RateLimited,
        Self::Budget,
        Self::Cancelled,
        Self::Internal,
    ];

    /// The name in JSON, configuration and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Abstained => "abstained",
            Self::Unparseable => "unparseable",
            Self::OutOfRange => "out_of_range",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::ProviderError => "provider_error",
            Self::RateLimited => "rate_limited",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// The status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether asking again may help: what `--retry-errors` judges anew. An abstention is an
    /// answer, so it is not retried.
    #[must_use]
    pub fn is_error(self) -> bool {
        !matches!(self, Self::Ok | Self::Abstained)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What makes a judge that judge: a hash of its kind, model, rubric, template, scale,
/// parameters and parser version. Names, weights, limits, prices and keys are not part of it.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of a kind of judge and everything that can change its answers, as
    /// JSON: 32 hexadecimal digits of BLAKE3.
    #[must_use]
    pub fn of(kind: &str, identity: &Value) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(kind.as_bytes()).update(&[0]);
        hasher.update(crate::canonical::canonical_json(identity).as_bytes());
        Self(hasher.finalize().to_hex()[..32].to_owned())
    }

    /// The hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Tokens and calls that a verdict took, summed over its attempts that were paid for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Usage {
    /// Prompt tokens, those read from the provider's cache included.
    pub tokens_in: u64,
    /// Completion tokens, reasoning included.
    pub tokens_out: u64,
    /// Prompt tokens that the provider read from its own cache.
    #[serde(default)]
    pub tokens_cached: u64,
    /// Completion tokens spent on reasoning.
    #[serde(default)]
    pub tokens_reasoning: u64,
    /// Requests answered.
    pub calls: u32,
    /// True where the provider gave no usage and an upper bound stands in.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Adds another call's usage.
    pub fn add(&mut self, other: &Self) {
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.tokens_cached += other.tokens_cached;
        self.tokens_reasoning += other.tokens_reasoning;
        self.calls += other.calls;
        self.estimated |= other.estimated;
    }
}

/// One criterion of a rubric, as one judge scored it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CriterionScore {
    /// The criterion's name in the rubric.
    pub name: String,
    /// The score; `None` where the judge left this criterion out.
    pub score: Option<Score>,
    /// The value on the judge's own scale, as it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// Whether the score reaches the criterion's pass mark; `None` without a score.
    pub passed: Option<bool>,
    /// Whether the output is rejected when this criterion fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// What the judge said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
}

/// The note on a verdict whose score and criteria are 1 minus the judge's own.
pub(crate) const INVERTED: &str = "inverted";

/// What became of one judge on one case (and one of its samples).
///
/// A judge fills in what it measured; `judge`, `fingerprint`, `sample` and `latency_ms` are
/// the seat's, which knows them for every kind of judge alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// The judge's name in its panel.
    pub judge: String,
    /// Which judge that was, exactly.
    pub fingerprint: Fingerprint,
    /// Which of the judge's samples, from 0.
    pub sample: u32,
    /// What became of it.
    pub status: Status,
    /// The score; present exactly when the status is `ok`.
    pub score: Option<Score>,
    /// The value on the judge's own scale, as it was read.
    pub raw: Option<Value>,
    /// Scores by criterion, in the rubric's order.
    pub criteria: Vec<CriterionScore>,
    /// What the judge found, one finding an entry.
    pub feedback: Vec<String>,
    /// Why there is no score, in words for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Facts about how it was measured, such as `score_source` or `position_consistent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, Value>,
    /// Tokens and calls.
    pub usage: Usage,
    /// US dollars; `None` where the model has no price.
    pub cost_usd: Option<f64>,
    /// From the start of the work to its end, waiting for a free slot not counted.
    pub latency_ms: u64,
    /// Requests or runs made, failed ones included.
    pub attempts: u32,
    /// The model that the server says it used.
    pub model_returned: Option<String>,
    /// Whether every reply came from the store.
    pub cached: bool,
}

impl Verdict {
    /// A measured score.
    #[must_use]
    pub fn ok(score: Score) -> Self {
        Self { score: Some(score), ..Self::with_status(Status::Ok) }
    }

    /// The judge declined or does not apply.
    #[must_use]
    pub fn abstained(why: impl Into<String>) -> Self {
        Self::failed(Status::Abstained, why)
    }

    /// A measurement that gave no score.
    ///
    /// A `status` of `ok` would be a contradiction and becomes `internal`.
    #[must_use]
    pub fn failed(status: Status, detail: impl Into<String>) -> Self {
        let status = if status == Status::Ok { Status::Internal } else { status };
        Self { detail: Some(detail.into()), ..Self::with_status(status) }
    }

    /// Adds a fact about how the verdict was measured.
    #[must_use]
    pub fn note(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.notes.insert(key.to_owned(), value.into());
        self
    }

    /// The score on a criterion, where the judge has one of this name, else its score.
    #[must_use]
    pub fn score_of(&self, criterion: &str) -> Option<Score> {
        let own = self.criteria.iter().find(|own| own.name == criterion);
        own.map_or(self.score, |own| own.score)
    }

    /// The findings that do not stand in the criteria already.
    pub fn new_findings(&self) -> impl Iterator<Item = &String> {
        let said = |finding: &str| {
            self.criteria.iter().any(|criterion| {
                let own = criterion.feedback.as_deref().map(str::trim);
                let rest = finding
                    .strip_prefix(criterion.name.as_str())
                    .and_then(|rest| rest.strip_prefix(':'))
                    .map(str::trim);
                own.is_some_and(|own| own == finding.trim() || Some(own) == rest)
            })
        };
        self.feedback.iter().filter(move |finding| !said(finding))
    }

    fn with_status(status: Status) -> Self {
        Self {
            judge: String::new(),
            fingerprint: Fingerprint::default(),
            sample: 0,
            status,
            score: None,
            raw: None,
            criteria: Vec::new(),
            feedback: Vec::new(),
            detail: None,
            notes: BTreeMap::new(),
            usage: Usage::default(),
            cost_usd: None,
            latency_ms: 0,
            attempts: 1,
            model_returned: None,
            cached: false,
        }
    }
}

/// How many verdicts have each status. Zero counts are kept, so that the sum and the set are
/// plain to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts([u64; Status::ALL.len()]);

impl StatusCounts {
    /// Counts one more verdict.
    pub fn add(&mut self, status: Status) {
        self.0[status as usize] += 1;
    }

    /// Adds another judge's counts.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, more)| *own += more);
    }

    /// How many have this status.
    #[must_use]
    pub fn get(&self, status: Status) -> u64 {
        self.0[status as usize]
    }

    /// All verdicts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The statuses that occur, in the order of reports.
    pub fn present(&self) -> impl Iterator<Item = (Status, u64)> + '_ {
        Status::ALL.into_iter().map(|s| (s, self.get(s))).filter(|(_, n)| *n > 0)
    }
}

impl Serialize for StatusCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.present().map(|(status, n)| (status.name(), n)))
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = std::collections::BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut own = Self::default();
        for (name, n) in counts {
            let status = Status::from_name(&name)
                .ok_or_else(|| serde::de::Error::custom(format!("unknown status `{name}`")))?;
            own.0[status as usize] = n;
        }
        Ok(own)
    }
}

impl schemars::JsonSchema for StatusCounts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StatusCounts".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, u64>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_one_name_each_in_code_and_json() {
        for status in Status::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
            assert_eq!(Status::from_name(status.name()), Some(status));
            assert_eq!(Status::ALL[status as usize], status);
        }
    }

    #[test]
    fn a_failed_measurement_never_carries_a_score() {
        let verdict = Verdict::failed(Status::Ok, "contradiction");
        assert_eq!((verdict.status, verdict.score), (Status::Internal, None));
    }

    #[test]
    fn fingerprints_do_not_depend_on_key_order() {
        let a: Value = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!(Fingerprint::of("rule", &a), Fingerprint::of("rule", &b));
        assert_ne!(Fingerprint::of("rule", &a), Fingerprint::of("llm", &a));
    }
}
