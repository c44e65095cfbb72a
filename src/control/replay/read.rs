//! Recorded loops: event logs of runs, and tidy tables in CSV or JSON Lines.
//!
//! A table has a row an output: `task`, `generation`, and either `score` or one column a
//! judge (their lower median is the score); optional `truth` and `output`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::control::event::{AgentFault, Round, Spent};
use crate::control::history::Output;
use crate::control::judgement::Judgement;
use crate::control::log::{self, Entry, LogError};
use crate::panel::{Rules, SeatRules};
use crate::score::Score;
use crate::verdict::{Status, Verdict};

/// Columns with a meaning of their own.
const KNOWN: [&str; 5] = ["task", "generation", "score", "truth", "output"];

/// One recorded output, or a call that gave none.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is known of the output.
    pub output: Output,
    /// Why there is none.
    pub fault: Option<AgentFault>,
    /// Its judgements: the first one, then confirmations.
    pub rounds: Vec<Judgement>,
    /// Whether it is truly good, where known.
    pub truth: Option<bool>,
    /// Milliseconds since the loop's start.
    pub elapsed_ms: u64,
    /// What was spent until then.
    pub spent: Spent,
}

/// One recorded loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The task.
    pub task: String,
    /// Its outputs, in order.
    pub steps: Vec<Step>,
    /// Whether time and spending were recorded.
    pub timed: bool,
    /// Whether confirmations were recorded where they were made.
    pub confirms: bool,
}

/// Why a recording can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It can't be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The log of a run is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A row is not right.
    #[error("`{path}`, line {line}: {reason}")]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// There is nothing in it.
    #[error("`{path}` holds no loop")]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the loops of a file. `rules` are those of the policy's panel, which apply to judges
/// that have a seat on it; `threshold` decides where there is no panel.
///
/// # Errors
/// See [`ReplayError`].
pub fn read(
    path: &Path,
    rules: Option<&Rules>,
    threshold: f64,
) -> Result<Vec<Trajectory>, ReplayError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ReplayError::Read { path: path.to_owned(), source })?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_log = first.trim_start().starts_with('{')
        && serde_json::from_str::<Value>(first)
            .is_ok_and(|value| value.get("sum").is_some() && value.get("line").is_some());
    if is_log {
        return Ok(vec![of_log(path)?]);
    }
    let rows = if first.trim_start().starts_with('{') {
        json_rows(path, text)?
    } else {
        csv_rows(path, text)?
    };
    let trajectories = of_rows(path, rows, rules, threshold)?;
    if trajectories.is_empty() {
        return Err(ReplayError::Empty { path: path.to_owned() });
    }
    Ok(trajectories)
}

fn of_log(path: &Path) -> Result<Trajectory, ReplayError> {
    let mut trajectory =
        Trajectory { task: String::new(), steps: Vec::new(), timed: true, confirms: true };
    for line in log::read(path)? {
        match line.entry {
            Entry::Started { run, .. } => trajectory.task = run,
            Entry::Generated { output, change, fault, refused: None, .. } => {
                // Near repeats need the text, which is kept beside the log.
                let known = output.as_ref().map(|hash| {
                    let kept = path.with_file_name("texts").join(hash);
                    match std::fs::read_to_string(kept) {
                        Ok(text) => Output { change, ..Output::of(&text) },
                        Err(_) => Output { change, ..Output::unknown(hash.as_str()) },
                    }
                });
                trajectory.steps.push(Step {
                    fault: if known.is_none() { fault.or(Some(AgentFault::Failed)) } else { None },
                    output: known.unwrap_or_else(|| Output::unknown("")),
                    rounds: Vec::new(),
                    truth: None,
                    elapsed_ms: line.elapsed_ms,
                    spent: line.spent,
                });
            }
            Entry::Ruled { round, ruling, commands, .. } => {
                let Some(step) = trajectory.steps.last_mut() else { continue };
                let place = match round {
                    Round::First => 0,
                    Round::Confirm(k) => k as usize,
                };
                let judgement = Judgement { commands, ..Judgement::of(&ruling) };
                // A retry replaces what failed before it.
                step.rounds.truncate(place);
                step.rounds.push(judgement);
                (step.elapsed_ms, step.spent) = (line.elapsed_ms, line.spent);
            }
            _ => {}
        }
    }
    // An output whose judging was cut off says nothing.
    while trajectory.steps.last().is_some_and(|s| s.fault.is_none() && s.rounds.is_empty()) {
        trajectory.steps.pop();
    }
    Ok(trajectory)
}

type Row = (usize, Map<String, Value>);

fn row_error(path: &Path, line: usize, reason: impl Into<String>) -> ReplayError {
    ReplayError::Row { path: path.to_owned(), line, reason: reason.into() }
}

fn json_rows(path: &Path, text: &str) -> Result<Vec<Row>, ReplayError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| match crate::config::json(line) {
            Ok(Value::Object(row)) => Ok((i + 1, row)),
            Ok(_) => Err(row_error(path, i + 1, "expected an object")),
            Err(message) => Err(row_error(path, i + 1, message)),
        })
        .collect()
}

fn csv_rows(path: &Path, text: &str) -> Result<Vec<Row>, ReplayError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let at = |error: &csv::Error| error.position().map_or(1, |p| p.line() as usize);
    let header =
        reader.headers().map_err(|error| row_error(path, at(&error), error.to_string()))?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| row_error(path, at(&error), error.to_string()))?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let cells = header.iter().zip(record.iter()).map(|(name, cell)| {
            let cell = if cell.trim().is_empty() && name != "output" {
                Value::Null
            } else {
                Value::String(cell.to_owned())
            };
            (name.trim().to_owned(), cell)
        });
        rows.push((line, cells.collect()));
    }
    Ok(rows)
}

fn of_rows(
    path: &Path,
    rows: Vec<Row>,
    rules: Option<&Rules>,
    threshold: f64,
) -> Result<Vec<Trajectory>, ReplayError> {
    let mut order: Vec<String> = Vec::new();
    let mut tasks: BTreeMap<String, BTreeMap<u64, Step>> = BTreeMap::new();
    for (line, row) in rows {
        let error = |reason: String| row_error(path, line, reason);
        let task = match row.get("task") {
            Some(Value::String(task)) if !task.trim().is_empty() => task.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(error("`task`: expected the name of a task".to_owned())),
        };
        let generation = number(row.get("generation"))
            .filter(|n| n.fract() == 0.0 && *n >= 0.0 && *n < 1e9)
            .ok_or_else(|| error("`generation`: expected a whole number".to_owned()))?
            as u64;
        let judgement = judgement(&row, rules, threshold).map_err(error)?;
        let truth = match row.get("truth") {
            None | Some(Value::Null) => None,
            Some(value) => Some(truth(value).ok_or_else(|| {
                error(format!("`truth`: `{value}` is neither of 0, 1, true, false"))
            })?),
        };
        let output = match row.get("output") {
            Some(Value::String(text)) => Output::of(text),
            _ => Output::unknown(format!("{task}#{generation}")),
        };
        let fault = output.empty.then_some(AgentFault::Empty);
        if !tasks.contains_key(&task) {
            order.push(task.clone());
        }
        let step = Step {
            output,
            fault,
            rounds: vec![judgement],
            truth,
            elapsed_ms: 0,
            spent: Spent::default(),
        };
        if tasks.entry(task.clone()).or_default().insert(generation, step).is_some() {
            return Err(error(format!("generation {generation} of task `{task}` stands twice")));
        }
    }
    let of_task = |task: String| {
        let steps = tasks.remove(&task).unwrap_or_default().into_values().collect();
        Trajectory { task, steps, timed: false, confirms: false }
    };
    Ok(order.into_iter().map(of_task).collect())
}

fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "1" | "1.0" | "true" => Some(true),
            "0" | "0.0" | "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The judgement of a row, by its score or its judges. An empty cell is no vote.
fn judgement(
    row: &Map<String, Value>,
    rules: Option<&Rules>,
    threshold: f64,
) -> Result<Judgement, String> {
    let score = |name: &str, value: &Value| -> Result<Option<Score>, String> {
        if value.is_null() {
            return Ok(None);
        }
        let found = number(Some(value)).ok_or_else(|| {
            format!(
                "`{name}`: `{value}` is no score: expected a number between 0 and 1, or nothing"
            )
        })?;
        Score::new(found).map(Some).map_err(|error| format!("`{name}`: {error}"))
    };
    let votes: Vec<(&str, Option<Score>)> = match row.get("score") {
        Some(value) => vec![("score", score("score", value)?)],
        None => row
            .iter()
            .filter(|(name, _)| !KNOWN.contains(&name.as_str()))
            .map(|(name, value)| Ok((name.as_str(), score(name, value)?)))
            .collect::<Result<_, String>>()?,
    };
    if votes.is_empty() {
        return Err("expected the column `score`, or one column a judge".to_owned());
    }
    let seated = |name: &str| rules.and_then(|r| r.seats.iter().find(|seat| seat.name == name));
    let own = |name: &str| SeatRules {
        name: name.to_owned(),
        weight: 1.0,
        required: false,
        report_only: false,
        samples: 1,
    };
    let known = votes.iter().any(|(name, _)| seated(name).is_some());
    // With the panel's own judges in the table its rules hold, else a plain median.
    let rules = match rules {
        Some(rules) if known => rules.clone(),
        _ => Rules {
            seats: votes.iter().map(|(name, _)| own(name)).collect(),
            settings: rules.map(|rules| rules.settings).unwrap_or_default(),
            threshold,
            quorum: (votes.len() / 2 + 1) as u32,
            profile: None,
        },
    };
    let verdicts = votes
        .iter()
        .map(|(name, score)| {
            let verdict = match score {
                Some(score) => Verdict::ok(*score),
                None => Verdict::failed(Status::Internal, "not recorded"),
            };
            Verdict { judge: (*name).to_owned(), ..verdict }
        })
        .collect();
    Ok(Judgement::of(&rules.rule("recorded", verdicts)))
}
