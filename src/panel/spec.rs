//! The panel as configuration says it.
//!
//! A judge's table holds the keys of its seat (name, weight, veto) and the keys of its kind
//! side by side; they are parted here, so that each kind's own type can refuse what it does
//! not know.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::vote::Aggregate;
use crate::calibration::in_force::ProfileOptions;
use crate::config::{Problem, from_value};
use crate::judge::command::CommandSpec;
use crate::judge::http::HttpSpec;
use crate::judge::human::HumanSpec;
use crate::judge::llm::LlmSpec;
use crate::judge::observe::ObserveSpec;
use crate::judge::process::Period;
use crate::judge::replay::ReplaySpec;
use crate::judge::rule::RuleSpec;
use crate::judge::script::ScriptSpec;
use crate::judge::{BoxedJudge, BuildContext, BuildError};

/// A panel: its judges and how their votes become a ruling.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PanelSpec {
    /// The panel's name in reports.
    #[serde(default = "default_name")]
    pub name: String,
    /// The score that an accepted output must reach, in [0,1].
    #[serde(default = "default_threshold")]
    pub threshold: f64,
    /// The least number of votes for a decision; a majority of the counted seats by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// How votes become one score.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// For an even count, the middle of the two middle votes instead of the lower one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub midpoint: bool,
    /// The share of votes that `trimmed_mean` cuts at each end, in [0, 0.5).
    #[serde(default = "default_trim")]
    pub trim: f64,
    /// Ask one judge after the other, cheap ones first, and stop when the remaining votes
    /// can't change the decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// The time for all judges of one case together; each judge's own limit holds too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
    /// The profile under which votes are mapped and the certified threshold decides: a file
    /// that `venire calibrate` wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PathBuf>,
    /// What is asked of the profile. Not a key of the file.
    #[serde(skip)]
    pub profile_options: ProfileOptions,
    /// How often every sample is asked for. Not a key of the file.
    #[serde(skip, default = "once")]
    pub repeat: u32,
    /// The judges.
    #[serde(default)]
    pub judge: Vec<SeatSpec>,
}

fn default_name() -> String {
    "panel".into()
}

pub(super) fn default_threshold() -> f64 {
    0.7
}

fn default_trim() -> f64 {
    0.2
}

fn once() -> u32 {
    1
}

fn default_weight() -> f64 {
    1.0
}

/// One judge and its place on the panel.
#[derive(Clone, Debug)]
pub struct SeatSpec {
    /// The keys that every kind of judge has.
    pub seat: SeatKeys,
    /// The judge.
    pub judge: JudgeSpec,
}

/// The keys that every kind of judge has.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeatKeys {
    /// The judge's name in votes and reports; unique on the panel.
    pub name: String,
    /// The weight of its vote, where the aggregator uses weights; above 0, or 0 for a
    /// `required` judge that vetoes and does not vote.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// A vote below the threshold rejects, whatever the others say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// A vote from which the profile certifies this judge's own error accepts, whatever the
    /// others say; vetoes and the quorum still hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_alone: bool,
    /// The vote is shown and not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report_only: bool,
    /// The vote is 1 minus the score: for judges of a fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert: bool,
    /// The time for one verdict; 120 seconds by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Period>,
}

impl SeatKeys {
    /// Whether its vote is counted.
    #[must_use]
    pub fn votes(&self) -> bool {
        !self.report_only && self.weight > 0.0
    }
}

/// A judge of some kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JudgeSpec {
    /// A language model with a rubric or question.
    Llm(Box<LlmSpec>),
    /// A deterministic rule.
    Rule(Box<RuleSpec>),
    /// Commands that pass or fail.
    Command(CommandSpec),
    /// An executable that reads cases and writes verdicts.
    Script(ScriptSpec),
    /// A URL that the case is posted to.
    Http(HttpSpec),
    /// Expectations on the environment.
    Observe(ObserveSpec),
    /// A person at the terminal.
    Human(HumanSpec),
    /// Recorded verdicts.
    Replay(ReplaySpec),
}

/// Weights beyond this would only lose digits in sums.
const MOST_WEIGHT: f64 = 1e6;

/// The kinds of judges, as `kind` names them.
pub const KINDS: [&str; 8] =
    ["llm", "rule", "command", "script", "http", "observe", "human", "replay"];

const SEAT_KEYS: [&str; 7] =
    ["name", "weight", "required", "accept_alone", "report_only", "invert", "timeout"];

impl SeatSpec {
    fn from_table(mut table: Map<String, Value>) -> Result<Self, Problem> {
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => kind,
            Some(other) => {
                return Err(Problem::new("kind", format!("expected a text, found `{other}`")));
            }
            None => {
                let list = KINDS.map(|kind| format!("`{kind}`")).join(", ");
                return Err(Problem::new(
                    "",
                    format!("missing key `kind`: expected one of {list}"),
                ));
            }
        };
        let mut seat = Map::new();
        for key in SEAT_KEYS {
            if let Some(value) = table.remove(key) {
                seat.insert(key.to_owned(), value);
            }
        }
        let seat: SeatKeys = from_value(Value::Object(seat))?;
        let rest = Value::Object(table);
        let judge = match kind.as_str() {
            "llm" => JudgeSpec::Llm(Box::new(from_value(rest)?)),
            "rule" => JudgeSpec::Rule(Box::new(from_value(rest)?)),
            "command" => JudgeSpec::Command(from_value(rest)?),
            "script" => JudgeSpec::Script(from_value(rest)?),
            "http" => JudgeSpec::Http(from_value(rest)?),
            "observe" => JudgeSpec::Observe(from_value(rest)?),
            "human" => JudgeSpec::Human(from_value(rest)?),
            "replay" => {
                let spec: ReplaySpec = from_value(rest)?;
                JudgeSpec::Replay(spec.with_default_judge(&seat.name))
            }
            _ => return Err(Problem::unknown("kind", "judge kind", &kind, &KINDS)),
        };
        Ok(Self { seat, judge })
    }

    fn to_table(&self) -> Result<Map<String, Value>, serde_json::Error> {
        let mut table = Map::new();
        for part in [serde_json::to_value(&self.seat)?, serde_json::to_value(&self.judge)?] {
            if let Value::Object(part) = part {
                table.extend(part);
            }
        }
        Ok(table)
    }
}

impl<'de> Deserialize<'de> for SeatSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = Map::deserialize(deserializer)?;
        Self::from_table(table).map_err(serde::de::Error::custom)
    }
}

impl Serialize for SeatSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_table().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl JsonSchema for SeatSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Judge".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let seat = generator.subschema_for::<SeatKeys>();
        let judge = generator.subschema_for::<JudgeSpec>();
        schemars::json_schema!({
            "description": "The keys of the seat and the keys of the judge's kind, side by side.",
            "allOf": [seat, judge],
        })
    }
}

impl PanelSpec {
    /// A panel from a configuration value, with the place of what is wrong.
    ///
    /// # Errors
    /// Unknown keys and kinds, wrong types, and numbers that can't work together.
    pub fn from_value(mut value: Value) -> Result<Self, Problem> {
        // Judges are read one by one: a problem inside one then has its own path and name.
        let judges = match value.as_object_mut().and_then(|table| table.remove("judge")) {
            None => Vec::new(),
            Some(Value::Array(judges)) => judges,
            Some(_) => {
                return Err(Problem::new("judge", "expected a list of tables (`[[judge]]`)"));
            }
        };
        let mut spec: Self = from_value(value)?;
        for (i, judge) in judges.into_iter().enumerate() {
            let name = judge.get("name").and_then(Value::as_str).map(str::to_owned);
            let place = match name {
                Some(name) => format!("judge[{i}] ({name})"),
                None => format!("judge[{i}]"),
            };
            let Value::Object(table) = judge else {
                return Err(Problem::new(place, "expected a table"));
            };
            spec.judge.push(SeatSpec::from_table(table).map_err(|p| p.inside(&place))?);
        }
        spec.check()?;
        Ok(spec)
    }

    /// Seats that are counted.
    #[must_use]
    pub fn counted(&self) -> u32 {
        self.judge.iter().filter(|judge| judge.seat.votes()).count() as u32
    }

    /// The least number of votes for a decision.
    #[must_use]
    pub fn quorum(&self) -> u32 {
        self.quorum.unwrap_or(self.counted() / 2 + 1)
    }

    /// The panel's own numbers, which no single key's type can check.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), Problem> {
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(Problem::new(
                "threshold",
                format!("`{}` is not between 0 and 1", self.threshold),
            ));
        }
        if !(0.0..0.5).contains(&self.trim) {
            return Err(Problem::new(
                "trim",
                format!("`{}` is not at least 0 and below 0.5", self.trim),
            ));
        }
        if self.judge.is_empty() {
            return Err(Problem::new("judge", "a panel needs at least one `[[judge]]`"));
        }
        not_zero("timeout", self.timeout)?;
        let mut names = std::collections::BTreeSet::new();
        for (i, SeatSpec { seat, .. }) in self.judge.iter().enumerate() {
            let at = |key: &str| format!("judge[{i}] ({}).{key}", seat.name);
            if seat.name.trim().is_empty() {
                return Err(Problem::new(format!("judge[{i}].name"), "expected a name"));
            }
            if !names.insert(&seat.name) {
                return Err(Problem::new(
                    at("name"),
                    format!("another judge is named `{}`: names must differ", seat.name),
                ));
            }
            if seat.weight > MOST_WEIGHT {
                return Err(Problem::new(
                    at("weight"),
                    format!("expected at most {MOST_WEIGHT}: weights are relative"),
                ));
            }
            let veto_only = seat.weight == 0.0 && seat.required;
            if !(seat.weight.is_finite() && (seat.weight > 0.0 || veto_only)) {
                return Err(Problem::new(
                    at("weight"),
                    format!(
                        "`{}` is not above 0; 0 is for a `required` judge that vetoes without voting, and to show a vote without counting it use `report_only = true`",
                        seat.weight
                    ),
                ));
            }
            if seat.required && seat.report_only {
                return Err(Problem::new(
                    at("required"),
                    "a judge that is `report_only` can't be `required`",
                ));
            }
            if seat.accept_alone && !seat.votes() {
                return Err(Problem::new(
                    at("accept_alone"),
                    "a judge that has no vote (`report_only`, or `weight = 0`) can't accept",
                ));
            }
            not_zero(&at("timeout"), seat.timeout)?;
        }
        let counted = self.counted();
        if counted == 0 {
            return Err(Problem::new(
                "judge",
                "every judge is `report_only` or has the weight 0: no vote would count",
            ));
        }
        let quorum = self.quorum();
        if quorum == 0 || quorum > counted {
            return Err(Problem::new(
                "quorum",
                format!("`{quorum}` is not between 1 and the {counted} counted seat(s)"),
            ));
        }
        Ok(())
    }
}

fn not_zero(at: &str, period: Option<Period>) -> Result<(), Problem> {
    match period {
        Some(period) if period.get().is_zero() => {
            Err(Problem::new(at, "expected more than 0 seconds"))
        }
        _ => Ok(()),
    }
}

impl JudgeSpec {
    /// The judge itself.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        match self {
            Self::Llm(spec) => spec.build(context),
            Self::Rule(spec) => spec.build(context),
            Self::Command(spec) => spec.build(context),
            Self::Script(spec) => spec.build(context),
            Self::Http(spec) => spec.build(context),
            Self::Observe(spec) => spec.build(context),
            Self::Human(spec) => spec.build(context),
            Self::Replay(spec) => spec.build(context),
        }
    }
}
