//! The section `[human]`: at which points a person is asked, and what stands in for an answer
//! that does not come.
//!
//! Nothing stands in for an answer unless the file declares it, with a deadline.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::config::Problem;
use crate::judge::process::Period;

/// The section `[human]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HumanSpec {
    /// Ask at the terminal, where there is one. Otherwise the run ends as `awaiting_human`
    /// and goes on with an answer.
    pub terminal: bool,
    /// At which points a person is asked, beside those of conditions whose ladder says `ask`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<AskWhen>,
    /// Votes further apart than this are a disagreement; in [0,1].
    pub spread: f64,
    /// Scores closer to the threshold than this are near it; in [0,1].
    pub margin: f64,
    /// How long an answer is waited for. After it `on_deadline` stands in, once the run is
    /// gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Period>,
    /// What stands in for an answer that did not come in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_deadline: Option<StandIn>,
}

impl Default for HumanSpec {
    fn default() -> Self {
        Self {
            terminal: true,
            ask: Vec::new(),
            spread: 0.3,
            margin: 0.05,
            deadline: None,
            on_deadline: None,
        }
    }
}

/// What stands in for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StandIn {
    /// The best output is taken.
    Accept,
    /// The run ends without an accept.
    Reject,
    /// The run goes on as if nothing had been asked.
    Continue,
}

/// A point at which a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskWhen {
    /// Before an output is accepted.
    BeforeAccept,
    /// When the judges' votes lie far apart.
    OnDisagreement,
    /// When the score is close to the threshold.
    NearThreshold,
    /// After every so many outputs.
    Every(u32),
    /// When the judges that did not raise what the agent disputes take its side.
    OnDispute,
}

impl AskWhen {
    fn read(text: &str) -> Result<Self, String> {
        match text.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["before_accept"] => Ok(Self::BeforeAccept),
            ["on_disagreement"] => Ok(Self::OnDisagreement),
            ["near_threshold"] => Ok(Self::NearThreshold),
            ["on_dispute"] => Ok(Self::OnDispute),
            ["every", n] => match n.parse() {
                Ok(n) if n > 0 => Ok(Self::Every(n)),
                _ => Err(format!("`every {n}`: expected a number of outputs, 1 or more")),
            },
            _ => Err(format!(
                "unknown point `{text}`: expected `before_accept`, `on_disagreement`, `near_threshold`, `on_dispute` or `every N`"
            )),
        }
    }
}

impl std::fmt::Display for AskWhen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BeforeAccept => f.write_str("before_accept"),
            Self::OnDisagreement => f.write_str("on_disagreement"),
            Self::NearThreshold => f.write_str("near_threshold"),
            Self::OnDispute => f.write_str("on_dispute"),
            Self::Every(n) => write!(f, "every {n}"),
        }
    }
}

impl Serialize for AskWhen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AskWhen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for AskWhen {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AskWhen".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A point at which a person is asked.",
            "type": "string",
            "pattern": "^(before_accept|on_disagreement|near_threshold|on_dispute|every [1-9][0-9]*)$",
        })
    }
}

/// The points at which a person is asked, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gate {
    /// Before an output is accepted.
    pub before_accept: bool,
    /// When votes lie further apart than this.
    pub disagreement: Option<f64>,
    /// When the score is closer to the threshold than this.
    pub near_threshold: Option<f64>,
    /// After every so many outputs.
    pub every: Option<u32>,
    /// When a dispute is upheld, or nobody is there to look at it.
    pub on_dispute: bool,
}

impl HumanSpec {
    /// The points, checked.
    ///
    /// # Errors
    /// Numbers out of range; a deadline without what stands in for an answer, and the other
    /// way round.
    pub fn gate(&self) -> Result<Gate, Problem> {
        for (key, value) in [("spread", self.spread), ("margin", self.margin)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Problem::new(key, format!("`{value}` is not between 0 and 1")));
            }
        }
        match (self.deadline, self.on_deadline) {
            (Some(_), None) => {
                let message = "a deadline without `on_deadline`: no answer is invented; say what stands in for one, `accept`, `reject` or `continue`";
                return Err(Problem::new("deadline", message));
            }
            (None, Some(_)) => {
                return Err(Problem::new("on_deadline", "has no effect without a `deadline`"));
            }
            _ => {}
        }
        let mut gate = Gate::default();
        for when in &self.ask {
            match when {
                AskWhen::BeforeAccept => gate.before_accept = true,
                AskWhen::OnDisagreement => gate.disagreement = Some(self.spread),
                AskWhen::OnDispute => gate.on_dispute = true,
                AskWhen::NearThreshold => gate.near_threshold = Some(self.margin),
                AskWhen::Every(n) => gate.every = Some(gate.every.map_or(*n, |own| own.min(*n))),
            }
        }
        Ok(gate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_value;

    fn gate(value: serde_json::Value) -> Result<Gate, String> {
        let spec: HumanSpec = from_value(value).map_err(|problem| problem.to_string())?;
        spec.gate().map_err(|problem| problem.to_string())
    }

    #[test]
    fn points_are_read_and_what_is_wrong_with_them_is_named() {
        let all = serde_json::json!({
            "ask": ["before_accept", "on_disagreement", "near_threshold", "every 3"],
            "deadline": "24h", "on_deadline": "reject",
        });
        let gate_of_all = gate(all).unwrap();
        assert_eq!((gate_of_all.before_accept, gate_of_all.every), (true, Some(3)));
        assert_eq!(gate_of_all.near_threshold, Some(0.05));
        for (bad, word) in [
            (serde_json::json!({ "ask": ["sometimes"] }), "near_threshold"),
            (serde_json::json!({ "ask": ["every 0"] }), "1 or more"),
            (serde_json::json!({ "margin": 2.0 }), "margin"),
            (serde_json::json!({ "deadline": "1h" }), "on_deadline"),
            (serde_json::json!({ "on_deadline": "accept" }), "deadline"),
        ] {
            let error = gate(bad.clone()).unwrap_err();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}
