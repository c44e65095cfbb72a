//! The panel as configuration says it.
//!
//! A judge's table holds the keys of its seat (name, weight, veto) and the keys of its kind
//! side by side; they are parted here, so that each kind's own type can refuse what it does
//! not know.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::foreign;
use super::vote::Aggregate;
use crate::calibration::in_force::ProfileOptions;
use crate::config::{Problem, Problems, from_value_all};
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
    /// Not asked at first: in a loop it judges again what has passed. Other verbs leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserve: bool,
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
        !self.report_only && !self.reserve && self.weight > 0.0
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

const SEAT_KEYS: [&str; 8] =
    ["name", "weight", "required", "accept_alone", "report_only", "reserve", "invert", "timeout"];

impl SeatSpec {
    /// The judge of a table, or everything that is wrong with it.
    fn from_table(mut table: Map<String, Value>) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let kind = match table.remove("kind") {
            Some(Value::String(kind)) => Some(kind),
            Some(other) => {
                problems.push(Problem::new("kind", format!("expected a text, found `{other}`")));
                None
            }
            None => {
                let list = KINDS.map(|kind| format!("`{kind}`")).join(", ");
                problems.push(Problem::new(
                    "",
                    format!("missing key `kind`: expected one of {list}{}", foreign::kind(&table)),
                ));
                None
            }
        };
        let mut seat = Map::new();
        for key in SEAT_KEYS {
            if let Some(value) = table.remove(key) {
                seat.insert(key.to_owned(), value);
            }
        }
        let seat: Result<SeatKeys, _> = from_value_all(Value::Object(seat));
        let name = seat.as_ref().map(|seat| seat.name.clone()).unwrap_or_default();
        if let Err(found) = &seat {
            problems.extend_inside("", found.clone());
        }
        let rest = Value::Object(table);
        let judge = match kind.as_deref() {
            None => None,
            Some("llm") => {
                keep(from_value_all(rest), &mut problems, |s| JudgeSpec::Llm(Box::new(s)))
            }
            Some("rule") => {
                keep(from_value_all(rest), &mut problems, |s| JudgeSpec::Rule(Box::new(s)))
            }
            Some("command") => keep(from_value_all(rest), &mut problems, JudgeSpec::Command),
            Some("script") => keep(from_value_all(rest), &mut problems, JudgeSpec::Script),
            Some("http") => keep(from_value_all(rest), &mut problems, JudgeSpec::Http),
            Some("observe") => keep(from_value_all(rest), &mut problems, JudgeSpec::Observe),
            Some("human") => keep(from_value_all(rest), &mut problems, JudgeSpec::Human),
            Some("replay") => keep(from_value_all(rest), &mut problems, |spec: ReplaySpec| {
                JudgeSpec::Replay(spec.with_default_judge(&name))
            }),
            Some(other) => {
                let mut problem = Problem::unknown("kind", "judge kind", other, &KINDS);
                if let Some(hint) = foreign::kind_named(other) {
                    problem.suggestion = None;
                    problem.message.push_str(&format!("; {hint}"));
                }
                problems.push(problem);
                None
            }
        };
        match (seat, judge) {
            (Ok(seat), Some(judge)) if problems.is_empty() => Ok(Self { seat, judge }),
            _ => Err(problems.explained(foreign::judge_key)),
        }
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

fn keep<T>(
    read: Result<T, Problems>,
    problems: &mut Problems,
    make: impl FnOnce(T) -> JudgeSpec,
) -> Option<JudgeSpec> {
    match read {
        Ok(spec) => Some(make(spec)),
        Err(found) => {
            problems.extend_inside("", found);
            None
        }
    }
}

/// The judges of a panel that could be read, each with its place in the file's list.
pub(super) struct Gathered {
    /// The panel with those judges; `None` where its own keys can't be read.
    pub(super) spec: Option<PanelSpec>,
    /// The judges, where there is no `spec` to hold them.
    pub(super) judges: Vec<SeatSpec>,
    /// The place of each judge.
    pub(super) places: Vec<usize>,
    /// What is wrong.
    pub(super) problems: Problems,
}

/// How messages name a judge: by its place, and its name where it has one.
pub(super) fn judge_at(place: usize, name: &str) -> String {
    if name.is_empty() { format!("judge[{place}]") } else { format!("judge[{place}] ({name})") }
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
        super::published::judge(generator)
    }
}

impl PanelSpec {
    /// A panel from a configuration value, or everything that is wrong with it, each with its
    /// place.
    ///
    /// # Errors
    /// Unknown keys and kinds, wrong types, and numbers that can't work together.
    pub fn from_value(value: Value) -> Result<Self, Problems> {
        match Self::gather(value) {
            Gathered { spec: Some(spec), problems, .. } if problems.is_empty() => Ok(spec),
            Gathered { problems, .. } => Err(problems),
        }
    }

    /// What of a panel can be read, and everything that is wrong with the rest.
    pub(super) fn gather(mut value: Value) -> Gathered {
        let mut problems = Problems::default();
        // Judges are read one by one: a problem inside one then has its own path and name.
        let judges = match value.as_object_mut().and_then(|table| table.remove("judge")) {
            None => Vec::new(),
            Some(Value::Array(judges)) => judges,
            Some(_) => {
                problems.push(Problem::new("judge", "expected a list of tables (`[[judge]]`)"));
                Vec::new()
            }
        };
        let listed = judges.len();
        let mut spec: Option<Self> = match from_value_all(value) {
            Ok(spec) => Some(spec),
            Err(found) => {
                problems.extend_inside("", found.explained(foreign::panel_key));
                None
            }
        };
        let mut read = Vec::new();
        let mut places = Vec::new();
        for (i, judge) in judges.into_iter().enumerate() {
            let name = judge.get("name").and_then(Value::as_str).unwrap_or_default();
            let place = judge_at(i, name);
            let Value::Object(table) = judge else {
                problems.push(Problem::new(place, "expected a table"));
                continue;
            };
            match SeatSpec::from_table(table) {
                Ok(judge) => {
                    read.push(judge);
                    places.push(i);
                }
                Err(found) => problems.extend_inside(&place, found),
            }
        }
        // Of a list that is not right, or not whole, no number can be said to be wrong.
        let whole = read.len() == listed && !problems.iter().any(|p| p.at == "judge");
        let mut judges = Vec::new();
        match &mut spec {
            Some(spec) => {
                spec.judge = read;
                spec.check(&places, whole, &mut problems);
            }
            None => {
                seats(&read, &places, &mut problems);
                judges = read;
            }
        }
        Gathered { spec, judges, places, problems }
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
    fn check(&self, places: &[usize], whole: bool, problems: &mut Problems) {
        if !(0.0..=1.0).contains(&self.threshold) {
            let message = format!("`{}` is not between 0 and 1", self.threshold);
            problems.push(Problem::new("threshold", message));
        }
        if !(0.0..0.5).contains(&self.trim) {
            let message = format!("`{}` is not at least 0 and below 0.5", self.trim);
            problems.push(Problem::new("trim", message));
        }
        problems.extend(not_zero("timeout", self.timeout));
        seats(&self.judge, places, problems);
        if !whole {
            return;
        }
        if self.judge.is_empty() {
            problems.push(Problem::new("judge", "a panel needs at least one `[[judge]]`"));
            return;
        }
        let counted = self.counted();
        if counted == 0 {
            problems.push(Problem::new(
                "judge",
                "every judge is `report_only` or `reserve`, or has the weight 0: no vote would count",
            ));
            return;
        }
        let quorum = self.quorum();
        if quorum == 0 || quorum > counted {
            let seats = if counted == 1 { "seat" } else { "seats" };
            problems.push(Problem::new(
                "quorum",
                format!("`{quorum}` is not between 1 and the {counted} counted {seats}"),
            ));
        }
    }
}

/// What no single key of a seat's type can check.
fn seats(judges: &[SeatSpec], places: &[usize], problems: &mut Problems) {
    let mut names = std::collections::BTreeSet::new();
    for (SeatSpec { seat, .. }, place) in judges.iter().zip(places) {
        let at = |key: &str| format!("{}.{key}", judge_at(*place, &seat.name));
        if seat.name.trim().is_empty() {
            problems.push(Problem::new(format!("judge[{place}].name"), "expected a name"));
        } else if seat.name.contains(char::is_control) {
            // It stands in tables, file names of reports and on terminals.
            problems.push(Problem::new(
                format!("judge[{place}].name"),
                format!(
                    "expected a name without line breaks and control characters, found {:?}",
                    seat.name
                ),
            ));
        } else if !names.insert(&seat.name) {
            problems.push(Problem::new(
                at("name"),
                format!("another judge is named `{}`: names must differ", seat.name),
            ));
        }
        let veto_only = seat.weight == 0.0 && seat.required;
        if seat.weight > MOST_WEIGHT {
            problems.push(Problem::new(
                at("weight"),
                format!("expected at most {MOST_WEIGHT}: weights are relative"),
            ));
        } else if !(seat.weight.is_finite() && (seat.weight > 0.0 || veto_only)) {
            problems.push(Problem::new(
                at("weight"),
                format!(
                    "`{}` is not above 0; 0 is for a `required` judge that vetoes without voting, and to show a vote without counting it use `report_only = true`",
                    seat.weight
                ),
            ));
        }
        if seat.required && seat.report_only {
            problems.push(Problem::new(
                at("required"),
                "a judge that is `report_only` can't be `required`",
            ));
        }
        if seat.reserve && seat.report_only {
            problems.push(Problem::new(
                at("reserve"),
                "a judge that is `report_only` can't confirm what has passed",
            ));
        }
        if seat.accept_alone && !seat.votes() {
            problems.push(Problem::new(
                at("accept_alone"),
                "a judge that has no vote (`report_only`, `reserve`, or `weight = 0`) can't accept",
            ));
        }
        problems.extend(not_zero(&at("timeout"), seat.timeout));
    }
}

fn not_zero(at: &str, period: Option<Period>) -> Option<Problem> {
    period
        .filter(|period| period.get().is_zero())
        .map(|_| Problem::new(at, "expected more than 0 seconds"))
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
