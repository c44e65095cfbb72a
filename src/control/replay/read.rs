//! Recorded loops: event logs of runs, and tables in CSV or JSON Lines.
//!
//! A table has a row a generation, and is read by the reader that calibration uses: what is no
//! evidence there is none here.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::calibration::grouping::Grouping;
use crate::calibration::trajectories::{Tidy, Wanted};
use crate::calibration::{CalibrationError, Positive};
use crate::control::dispute::Dispute;
use crate::control::event::{AgentFault, Round, Spent};
use crate::control::history::Output;
use crate::control::judgement::Judgement;
use crate::control::log::{self, Entry, LogError};
use crate::dataset::{DatasetError, LabelValue, Source};
use crate::panel::{Rules, SeatRules};
use crate::ruling::Ruling;
use crate::score::Score;
use crate::verdict::{Status, Verdict};

/// One recorded output, or a call that gave none.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is known of the output.
    pub output: Output,
    /// Why there is none.
    pub fault: Option<AgentFault>,
    /// Its judgements: the first one, then confirmations.
    pub rounds: Vec<Judgement>,
    /// What the other judges said of what the agent disputes.
    pub dispute: Option<Judgement>,
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
    /// What it belongs to; empty for a loop that stands alone.
    pub group: String,
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
    /// A judge that can veto has no verdict in a log.
    #[error(
        "`{path}` holds no verdict of the judge `{judge}`, which the policy's panel requires: what it would have said is not known; take it off the panel"
    )]
    NotRecorded {
        /// The log.
        path: PathBuf,
        /// The judge.
        judge: String,
    },
    /// It is no file that tables are read from.
    #[error(transparent)]
    Table(#[from] DatasetError),
    /// It holds no loops in tidy form.
    #[error(transparent)]
    Tidy(#[from] CalibrationError),
}

/// How a file is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// The rules of the policy's panel: they hold for tables with columns of its judges, and
    /// for logs with verdicts of some.
    pub rules: Option<&'a Rules>,
    /// The rules of its reserve, where it has one.
    pub reserve: Option<&'a Rules>,
    /// The fingerprint of the policy's panel: logs of this panel are taken as they were ruled.
    pub panel: Option<&'a str>,
    /// What decides where there is no panel.
    pub threshold: f64,
    /// The columns of judges; by default `score`, else those of the panel's judges, else every
    /// column without a meaning of its own.
    pub judges: &'a [String],
    /// Which labels are good; 1 and `true` where nothing is said.
    pub positive: Option<&'a Positive>,
    /// Which loops of a table belong together; each stands alone where nothing is said.
    pub grouping: Option<&'a Grouping>,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its loops.
    pub trajectories: Vec<Trajectory>,
    /// Columns that were not used.
    pub left_out: Vec<String>,
    /// Judges of the policy's panel that some recorded ruling has no verdict of: their votes
    /// are missing there.
    pub missing: Vec<String>,
}

/// Reads the loops of a file: the event log of a run, or a table, which is held to the same
/// rules as one that loops are calibrated on.
///
/// # Errors
/// See [`ReplayError`].
pub fn read(path: &Path, reading: &Reading<'_>) -> Result<Recorded, ReplayError> {
    let first = first_line(path)?;
    let is_log = first.trim_start().starts_with('{')
        && serde_json::from_str::<Value>(&first)
            .is_ok_and(|value| value.get("sum").is_some() && value.get("line").is_some());
    if !is_log {
        return of_table(path, reading);
    }
    let mut recorded =
        Recorded { trajectories: Vec::new(), left_out: Vec::new(), missing: Vec::new() };
    let starts = log::starts_of(path);
    if starts.is_empty() {
        recorded.add(of_log(path, reading)?);
        return Ok(recorded);
    }
    // Each start is a loop of its own, and they belong together.
    let run = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let run = run.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    for start in starts {
        let mut own = of_log(&start, reading)?;
        own.0.group.clone_from(&run);
        recorded.add(own);
    }
    Ok(recorded)
}

impl Recorded {
    fn add(&mut self, (trajectory, missing): (Trajectory, BTreeSet<String>)) {
        self.trajectories.push(trajectory);
        self.missing.extend(missing);
        self.missing.sort();
        self.missing.dedup();
    }
}

/// The policy's panel on recorded verdicts.
struct Again<'a> {
    reading: &'a Reading<'a>,
    /// Judges of the panel that the recording has no verdicts of.
    missing: BTreeSet<String>,
}

impl Again<'_> {
    /// What the policy's panel would have ruled: with its own rules where it has recorded
    /// judges, else as it was ruled.
    fn judge(
        &mut self,
        path: &Path,
        round: Round,
        ruling: &Ruling,
    ) -> Result<Judgement, ReplayError> {
        let given = |rules: &&Rules| {
            let known = |name: &String| ruling.verdicts.iter().any(|own| own.judge == *name);
            rules.seats.iter().any(|seat| known(&seat.name))
        };
        let reserve = self.reading.reserve.filter(|_| matches!(round, Round::Confirm(_)));
        let rules = match round {
            // What some judges said of one finding is no ruling of the panel.
            Round::Dispute => None,
            Round::First | Round::Confirm(_) => {
                reserve.filter(given).or(self.reading.rules.filter(given))
            }
        };
        let Some(rules) = rules else { return Ok(Judgement::of(ruling)) };
        let lacks = |seat: &&SeatRules| !ruling.verdicts.iter().any(|own| own.judge == seat.name);
        for seat in rules.seats.iter().filter(lacks) {
            if seat.required {
                return Err(ReplayError::NotRecorded {
                    path: path.to_owned(),
                    judge: seat.name.clone(),
                });
            }
            if seat.votes() {
                self.missing.insert(seat.name.clone());
            }
        }
        Ok(Judgement::of(&rules.rule("recorded", ruling.verdicts.clone())))
    }
}

fn of_log(
    path: &Path,
    reading: &Reading<'_>,
) -> Result<(Trajectory, BTreeSet<String>), ReplayError> {
    let mut again = Again { reading, missing: BTreeSet::new() };
    // The panel that was recorded has ruled already.
    let mut as_ruled = reading.rules.is_none();
    let mut trajectory = Trajectory {
        task: String::new(),
        group: String::new(),
        steps: Vec::new(),
        timed: true,
        confirms: true,
    };
    for line in log::read(path)? {
        match line.entry {
            Entry::Started { run, panel, .. } => {
                trajectory.task = run;
                as_ruled |= reading.panel.is_some_and(|own| own == panel);
            }
            Entry::Generated { output, change, disputes, fault, refused: None, .. } => {
                let disputes: Vec<String> = disputes.iter().map(Dispute::key).collect();
                // Near repeats need the text, which is kept beside the log.
                let known = output.as_ref().map(|hash| {
                    let kept = path.with_file_name("texts").join(hash);
                    match std::fs::read_to_string(kept) {
                        Ok(text) => Output { change, disputes, ..Output::of(&text) },
                        Err(_) => Output { change, disputes, ..Output::unknown(hash.as_str()) },
                    }
                });
                trajectory.steps.push(Step {
                    fault: if known.is_none() { fault.or(Some(AgentFault::Failed)) } else { None },
                    output: known.unwrap_or_else(|| Output::unknown("")),
                    rounds: Vec::new(),
                    dispute: None,
                    truth: None,
                    elapsed_ms: line.elapsed_ms,
                    spent: line.spent,
                });
            }
            Entry::Ruled { round, ruling, commands, .. } => {
                let Some(step) = trajectory.steps.last_mut() else { continue };
                let judged = if as_ruled {
                    Judgement::of(&ruling)
                } else {
                    again.judge(path, round, &ruling)?
                };
                let judgement = Judgement { commands, ..judged };
                let place = match round {
                    Round::First => 0,
                    Round::Confirm(k) => k as usize,
                    Round::Dispute => {
                        step.dispute = Some(judgement);
                        continue;
                    }
                };
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
    Ok((trajectory, again.missing))
}

/// The first line that says something; empty where the file is no text.
fn first_line(path: &Path) -> Result<String, ReplayError> {
    let failed = |source| ReplayError::Read { path: path.to_owned(), source };
    let mut lines = BufReader::new(File::open(path).map_err(failed)?).lines();
    let first = lines.find(|line| !line.as_ref().is_ok_and(|line| line.trim().is_empty()));
    Ok(first.and_then(Result::ok).unwrap_or_default())
}

fn of_table(path: &Path, reading: &Reading<'_>) -> Result<Recorded, ReplayError> {
    let source = Source::open(path)?;
    let seats: Vec<String> = reading
        .rules
        .iter()
        .flat_map(|rules| rules.seats.iter().map(|seat| seat.name.clone()))
        .collect();
    let wanted = Wanted {
        judges: reading.judges,
        seats: &seats,
        labelled: false,
        grouping: reading.grouping.unwrap_or(&Grouping::Automatic),
    };
    let Tidy { judges, left_out, loops } = Tidy::read(&source, &wanted)?;
    let rules = rules_for(&judges, reading);
    let mut trajectories = Vec::with_capacity(loops.len());
    for (task, rows) in loops {
        let mut steps = Vec::with_capacity(rows.len());
        let group = rows[0].group.clone();
        for row in rows {
            let wrong =
                |reason: String| ReplayError::Row { path: path.to_owned(), line: row.line, reason };
            let output = match &row.output {
                Some(text) => Output::of(text),
                None => Output::unknown(format!("{task}#{}", row.generation)),
            };
            steps.push(Step {
                fault: output.empty.then_some(AgentFault::Empty),
                rounds: vec![judgement(&judges, &row.scores, &rules).map_err(wrong)?],
                dispute: None,
                truth: truth(&row.label, reading.positive).map_err(wrong)?,
                output,
                elapsed_ms: 0,
                spent: Spent::default(),
            });
        }
        trajectories.push(Trajectory { task, group, steps, timed: false, confirms: false });
    }
    Ok(Recorded { trajectories, left_out, missing: Vec::new() })
}

/// Whether a label says good; `None` where there is none.
fn truth(label: &str, positive: Option<&Positive>) -> Result<Option<bool>, String> {
    if label.is_empty() {
        return Ok(None);
    }
    let number = label.parse::<f64>().ok().filter(|number| number.is_finite());
    if let Some(rule) = positive {
        let value = number.map_or_else(|| LabelValue::Text(label.to_owned()), LabelValue::Number);
        return match rule.matches(&value) {
            Some(good) => Ok(Some(good)),
            None => {
                Err(format!("the label `{label}` is a word, and the rule `{rule}` needs numbers"))
            }
        };
    }
    match (label.to_ascii_lowercase().as_str(), number) {
        ("true", _) => Ok(Some(true)),
        ("false", _) => Ok(Some(false)),
        (_, Some(1.0)) => Ok(Some(true)),
        (_, Some(0.0)) => Ok(Some(false)),
        _ => Err(format!(
            "the label `{label}` is neither of 0, 1, true, false: say with `--positive` which are good"
        )),
    }
}

/// With the panel's own judges in the table its rules hold, else a plain median.
fn rules_for(judges: &[String], reading: &Reading<'_>) -> Rules {
    let seated = |rules: &&Rules| rules.seats.iter().any(|seat| judges.contains(&seat.name));
    match reading.rules.filter(seated) {
        Some(rules) => rules.clone(),
        None => Rules {
            seats: judges
                .iter()
                .map(|name| SeatRules {
                    name: name.clone(),
                    weight: 1.0,
                    required: false,
                    report_only: false,
                    samples: 1,
                })
                .collect(),
            settings: reading.rules.map(|rules| rules.settings).unwrap_or_default(),
            threshold: reading.threshold,
            quorum: (judges.len() / 2 + 1) as u32,
            profile: None,
        },
    }
}

/// The judgement of a row. An empty cell is no vote.
fn judgement(judges: &[String], scores: &[String], rules: &Rules) -> Result<Judgement, String> {
    let verdicts = judges
        .iter()
        .zip(scores)
        .map(|(name, text)| {
            let verdict = match text.parse::<f64>() {
                Ok(number) => {
                    Verdict::ok(Score::new(number).map_err(|error| format!("`{name}`: {error}"))?)
                }
                // Everything but numbers and nothing was refused by the reader.
                Err(_) => Verdict::failed(Status::Internal, "not recorded"),
            };
            Ok(Verdict { judge: name.clone(), ..verdict })
        })
        .collect::<Result<_, String>>()?;
    Ok(Judgement::of(&rules.rule("recorded", verdicts)))
}
