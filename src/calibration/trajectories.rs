//! Reading recorded loops in tidy form: a row a generation, with `trajectory`, `generation`,
//! `label`, and `score` or one column a judge.
//!
//! Empty scores are votes that are missing, empty labels generations that nobody labelled.
//! Anything that is no number is refused with its line.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;

use serde_json::{Map, Value};

use super::error::CalibrationError;
use super::grouping::{Grouping, Groups, Items};
use super::loops::{LoopFacts, Loops, Over};
use super::positive::Positive;
use super::read::{Inputs, Joined, Judgements};
use super::table::Orders;
use crate::dataset::{LabelOptions, ReadOptions, Source};
use crate::score::Scale;

/// The criterion of scores and labels.
pub const CRITERION: &str = "overall";

/// Names of the columns with a meaning of their own, and what else they are called.
const TRAJECTORY: [&str; 3] = ["trajectory", "task", "loop"];
const GENERATION: [&str; 4] = ["generation", "step", "attempt", "iteration"];
const LABEL: [&str; 2] = ["label", "truth"];
const OTHERS: [&str; 2] = ["output", "group"];

/// What is read, and how.
pub struct TrajectoryInputs<'a> {
    /// The file.
    pub source: &'a Source,
    /// Which labels are good.
    pub positive: Positive,
    /// K; the last generation recorded where `None`.
    pub generations: Option<u32>,
    /// Which loops a false accept is counted over.
    pub over: Over,
    /// A column, or a pattern in the trajectory's name, whose equal values belong together.
    pub grouping: Grouping,
    /// Scales of judges by name; the empty name is every other judge.
    pub judge_scales: BTreeMap<String, Scale>,
    /// The columns to use; all of them where empty.
    pub judges: Vec<String>,
    /// How labels are read.
    pub options: LabelOptions,
}

/// One generation of a recorded loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Its line in the file.
    pub(crate) line: usize,
    /// From 1.
    pub(crate) generation: u32,
    /// As it is written; empty where nobody labelled it.
    pub(crate) label: String,
    /// What the loop belongs to.
    pub(crate) group: String,
    /// One a judge, as they are written; empty where it gave none.
    pub(crate) scores: Vec<String>,
    /// The output, where the file has it.
    pub(crate) output: Option<String>,
}

/// What of a file is read.
pub(crate) struct Wanted<'a> {
    /// The columns to use as judges; by default `score`, else every column without a meaning
    /// of its own.
    pub(crate) judges: &'a [String],
    /// Judges known from elsewhere: of a file without `score` their columns are used alone,
    /// where it has any.
    pub(crate) seats: &'a [String],
    /// Whether there must be labels.
    pub(crate) labelled: bool,
    /// Which loops belong together.
    pub(crate) grouping: &'a Grouping,
}

/// Recorded loops: the one reader of tables of them.
pub(crate) struct Tidy {
    /// The columns of judges.
    pub(crate) judges: Vec<String>,
    /// Columns that are not used.
    pub(crate) left_out: Vec<String>,
    /// The loops in the order in which they begin in the file, each with its generations in
    /// order and without a gap.
    pub(crate) loops: Vec<(String, Vec<Row>)>,
}

impl Tidy {
    /// Reads a file.
    ///
    /// # Errors
    /// When it can't be read, a column is missing, a generation stands twice or is left out, or
    /// a cell is no number.
    pub(crate) fn read(source: &Source, wanted: &Wanted<'_>) -> Result<Self, CalibrationError> {
        let rows = read_rows(source)?;
        let columns = Columns::of(source, &rows, wanted)?;
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut loops: Vec<(String, Vec<Row>)> = Vec::new();
        for (line, cells) in &rows {
            let (name, row) = columns.row(source, *line, cells, wanted.grouping)?;
            let place = *places.entry(name.clone()).or_insert_with(|| {
                loops.push((name, Vec::new()));
                loops.len() - 1
            });
            loops[place].1.push(row);
        }
        for (name, rows) in &mut loops {
            number(source, name, rows)?;
        }
        Ok(Self { judges: columns.judges, left_out: columns.left_out, loops })
    }
}

impl TrajectoryInputs<'_> {
    /// Reads the loops as a table whose cases are generations and whose groups are loops.
    ///
    /// # Errors
    /// When the file can't be read, a column is missing, a generation stands twice or is left
    /// out, or a cell is no number.
    pub fn join(self) -> Result<(Joined, Loops), CalibrationError> {
        if self.generations == Some(0) {
            let (option, expected) = ("--generations", "at least one");
            return Err(CalibrationError::OutOfRange { option, value: 0.0, expected });
        }
        let wanted =
            Wanted { judges: &self.judges, seats: &[], labelled: true, grouping: &self.grouping };
        let tidy = Tidy::read(self.source, &wanted)?;
        let longest = tidy.loops.iter().map(|(_, rows)| rows.len() as u32).max().unwrap_or(0);
        let generations = self.generations.unwrap_or(longest);
        let mut text = Texts::new(&tidy.judges);
        let mut places = HashMap::new();
        let mut group_of = HashMap::new();
        let mut facts = Vec::with_capacity(tidy.loops.len());
        for (place, (name, rows)) in tidy.loops.iter().enumerate() {
            for row in rows.iter().filter(|row| row.generation <= generations) {
                let case = format!("{name}#{}", row.generation);
                text.add(&case, row)?;
                places.insert(case.clone(), (place, row.generation));
                group_of.insert(case, row.group.clone());
            }
            facts.push(LoopFacts {
                name: name.clone(),
                length: rows.len() as u32,
                incomplete: rows
                    .iter()
                    .any(|row| row.generation <= generations && row.label.is_empty()),
            });
        }
        let (labels, judgements) = text.finish(self.source)?;
        let inputs = Inputs {
            scale_units: false,
            voters_only: false,
            keep_unlabelled: false,
            judgements: Judgements::File(&judgements),
            labels: Some(&labels),
            items: None,
            criterion: Some(CRITERION),
            label_criterion: None,
            positive: self.positive,
            grouping: Grouping::Automatic,
            orders: Orders::All,
            judge_scales: self.judge_scales,
            judges: Vec::new(),
            options: self.options,
            case_options: ReadOptions::default(),
        };
        let mut joined = inputs.join()?;
        let names = joined.table.cases().iter().map(|case| group_of[&case.id].clone()).collect();
        joined.groups = Groups::numbered(names);
        joined.items = Items::absent(joined.table.cases().len());
        joined.group = match &self.grouping {
            Grouping::Automatic => "trajectory".to_owned(),
            Grouping::Field(field) => format!("column `{field}`"),
            Grouping::Pattern(pattern) => format!("pattern `{pattern}`"),
        };
        Ok((joined, Loops { generations, over: self.over, loops: facts, places }))
    }
}

type Cells = Map<String, Value>;

fn problem(source: &Source, line: usize, message: impl Into<String>) -> CalibrationError {
    CalibrationError::Trajectories { path: source.name().to_owned(), line, message: message.into() }
}

fn read_rows(source: &Source) -> Result<Vec<(usize, Cells)>, CalibrationError> {
    let mut text = String::new();
    let mut input = source.bytes(None)?;
    input
        .reader
        .read_to_string(&mut text)
        .map_err(|error| problem(source, 0, format!("it is no UTF-8 text: {error}")))?;
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let rows = if first.trim_start().starts_with('{') {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(i, line)| match crate::config::json(line) {
                Ok(Value::Object(row)) => Ok((i + 1, row)),
                Ok(_) => Err(problem(source, i + 1, "expected an object")),
                Err(message) => Err(problem(source, i + 1, message)),
            })
            .collect::<Result<Vec<_>, _>>()?
    } else {
        csv_rows(source, &text)?
    };
    if rows.is_empty() {
        return Err(problem(source, 0, "it holds no row"));
    }
    Ok(rows)
}

fn csv_rows(source: &Source, text: &str) -> Result<Vec<(usize, Cells)>, CalibrationError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let failed = |error: csv::Error| {
        let line = error.position().map_or(1, |position| position.line() as usize);
        problem(source, line, error.to_string())
    };
    let header = reader.headers().map_err(failed)?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, |position| position.line() as usize);
        let cells = header
            .iter()
            .zip(record.iter())
            .map(|(name, cell)| (name.trim().to_owned(), Value::String(cell.to_owned())));
        rows.push((line, cells.collect()));
    }
    Ok(rows)
}

/// A cell as text; nothing for null.
fn text_of(cell: Option<&Value>) -> String {
    match cell {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Bool(flag)) => u8::from(*flag).to_string(),
        Some(other) => other.to_string(),
    }
}

struct Columns {
    trajectory: String,
    generation: String,
    label: Option<String>,
    judges: Vec<String>,
    left_out: Vec<String>,
}

impl Columns {
    fn of(
        source: &Source,
        rows: &[(usize, Cells)],
        wanted: &Wanted<'_>,
    ) -> Result<Self, CalibrationError> {
        let mut present: Vec<&String> = Vec::new();
        for (_, row) in rows {
            for name in row.keys().filter(|name| !name.is_empty()) {
                if !present.contains(&name) {
                    present.push(name);
                }
            }
        }
        let find = |names: &[&str]| {
            names
                .iter()
                .find(|name| present.iter().any(|own| own == *name))
                .map(|name| (*name).to_owned())
                .ok_or_else(|| problem(source, 1, format!("the column `{}` is missing", names[0])))
        };
        let (trajectory, generation) = (find(&TRAJECTORY)?, find(&GENERATION)?);
        let label = match find(&LABEL) {
            Ok(label) => Some(label),
            Err(_) if !wanted.labelled => None,
            Err(error) => return Err(error),
        };
        let taken = [Some(&trajectory), Some(&generation), label.as_ref()];
        let others: Vec<String> = present
            .iter()
            .filter(|name| !taken.contains(&Some(*name)) && !OTHERS.contains(&name.as_str()))
            .map(|name| (*name).clone())
            .collect();
        let seats: Vec<String> =
            wanted.seats.iter().filter(|seat| others.contains(seat)).cloned().collect();
        let judges = if !wanted.judges.is_empty() {
            if let Some(name) = wanted.judges.iter().find(|name| !others.contains(name)) {
                return Err(CalibrationError::UnknownJudge {
                    judge: name.clone(),
                    suggestion: crate::config::nearest(name, others.iter().map(String::as_str)),
                    present: others,
                });
            }
            wanted.judges.to_vec()
        } else if others.iter().any(|name| name == "score") {
            vec!["score".to_owned()]
        } else if seats.is_empty() {
            others.clone()
        } else {
            seats
        };
        if judges.is_empty() {
            return Err(problem(source, 1, "expected the column `score`, or one column a judge"));
        }
        let left_out = others.into_iter().filter(|name| !judges.contains(name)).collect();
        Ok(Self { trajectory, generation, label, judges, left_out })
    }

    fn row(
        &self,
        source: &Source,
        line: usize,
        cells: &Cells,
        grouping: &Grouping,
    ) -> Result<(String, Row), CalibrationError> {
        let name = text_of(cells.get(&self.trajectory));
        if name.is_empty() {
            let message = format!("`{}`: expected the name of a loop", self.trajectory);
            return Err(problem(source, line, message));
        }
        let generation = text_of(cells.get(&self.generation));
        let generation = generation.parse().map_err(|_| {
            let message =
                format!("`{}`: `{generation}` is no whole number from 0", self.generation);
            problem(source, line, message)
        })?;
        let scores = self
            .judges
            .iter()
            .map(|judge| {
                let text = text_of(cells.get(judge));
                let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
                if text.is_empty() || is_number {
                    return Ok(text);
                }
                let message = format!(
                    "`{judge}`: `{text}` is no score: expected a number or nothing; name the judges with `--judge` where other columns stand beside them"
                );
                Err(problem(source, line, message))
            })
            .collect::<Result<_, _>>()?;
        let group = match grouping {
            Grouping::Automatic => name.clone(),
            Grouping::Field(field) => text_of(cells.get(field)),
            Grouping::Pattern(pattern) => pattern
                .captures(&name)
                .and_then(|captures| captures.get(1).or_else(|| captures.get(0)))
                .map(|found| found.as_str().to_owned())
                .unwrap_or_default(),
        };
        if group.is_empty() {
            let rule = grouping.describe();
            return Err(CalibrationError::NoGroup { case: name, rule });
        }
        let label = self.label.as_ref().map(|label| text_of(cells.get(label))).unwrap_or_default();
        let output = match cells.get("output") {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        Ok((name, Row { line, generation, label, group, scores, output }))
    }
}

/// Puts a loop's rows in order and counts them from 1.
fn number(source: &Source, name: &str, rows: &mut [Row]) -> Result<(), CalibrationError> {
    rows.sort_by_key(|row| row.generation);
    let first = rows[0].generation;
    if first > 1 {
        let message = format!("trajectory `{name}` begins with generation {first}, not 0 or 1");
        return Err(problem(source, rows[0].line, message));
    }
    for (i, row) in rows.iter_mut().enumerate() {
        let expected = first + i as u32;
        if row.generation != expected {
            let message = if row.generation < expected {
                format!("generation {} of trajectory `{name}` stands twice", row.generation)
            } else {
                format!(
                    "trajectory `{name}` has generation {} and not {expected}: a generation that is left out may be one that was accepted",
                    row.generation
                )
            };
            return Err(problem(source, row.line, message));
        }
        if row.group.is_empty() {
            return Err(problem(source, row.line, "no group"));
        }
    }
    for (i, row) in rows.iter_mut().enumerate() {
        row.generation = i as u32 + 1;
    }
    Ok(())
}

/// Labels and judgements in long form.
struct Texts<'a> {
    judges: &'a [String],
    labels: csv::Writer<Vec<u8>>,
    judgements: csv::Writer<Vec<u8>>,
    header: bool,
}

impl<'a> Texts<'a> {
    fn new(judges: &'a [String]) -> Self {
        let writer = || csv::Writer::from_writer(Vec::new());
        Self { judges, labels: writer(), judgements: writer(), header: false }
    }

    fn add(&mut self, case: &str, row: &Row) -> Result<(), CalibrationError> {
        let failed = |error: csv::Error| CalibrationError::Trajectories {
            path: case.to_owned(),
            line: row.line,
            message: error.to_string(),
        };
        if !self.header {
            self.header = true;
            self.labels.write_record(["case", "criterion", "label"]).map_err(failed)?;
            self.judgements
                .write_record(["case", "judge", "criterion", "score"])
                .map_err(failed)?;
        }
        if !row.label.is_empty() {
            self.labels.write_record([case, CRITERION, &row.label]).map_err(failed)?;
        }
        for (judge, score) in self.judges.iter().zip(&row.scores) {
            self.judgements.write_record([case, judge, CRITERION, score]).map_err(failed)?;
        }
        Ok(())
    }

    fn finish(self, source: &Source) -> Result<(Source, Source), CalibrationError> {
        let whole = |writer: csv::Writer<Vec<u8>>| {
            let bytes =
                writer.into_inner().map_err(|error| problem(source, 0, error.to_string()))?;
            Ok::<_, CalibrationError>(Source::spool(bytes.as_slice(), source.name())?)
        };
        Ok((whole(self.labels)?, whole(self.judgements)?))
    }
}
