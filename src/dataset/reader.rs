//! Cases, one after the other.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::cell::Cell;
use super::error::{DatasetError, Fault, RowError, RowProblem};
use super::fields::{AliasUsed, CASE, FieldMap, case as at};
use super::label_scale::Scales;
use super::labels::{Label, LabelSource, label_value, named_labels};
use super::source::{Digest, Source};
use super::table::{Row, Table};
use crate::case::Case;

/// Longer than any row of text, short enough that a file with one quote missing does not fill
/// the memory.
pub(crate) const DEFAULT_MAX_ROW_BYTES: usize = 256 * 1024 * 1024;

/// Enough split names for a message; the counts of further ones are not kept.
const MAX_SPLITS: usize = 1000;

/// What to do with a row that can't be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBadRow {
    /// Stop with its error.
    #[default]
    Fail,
    /// Leave it out and count it.
    Skip,
}

/// How cases are read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Columns to read as fields, before any alias.
    pub map: FieldMap,
    /// Whether a case without an output is an error; it is none where verdicts are recorded
    /// already.
    pub require_output: bool,
    /// What to do with a row that can't be used.
    pub on_bad_row: OnBadRow,
    /// Only the cases of this split.
    pub split: Option<String>,
    /// At most so many cases, counted after the split is chosen.
    pub limit: Option<u64>,
    /// Declared scales of the labels in the same rows.
    pub scales: Scales,
    /// The longest row, in bytes of its file.
    pub max_row_bytes: usize,
}

impl Default for ReadOptions {
    /// Every case, each with an output, and the first bad row an error.
    fn default() -> Self {
        Self {
            map: FieldMap::default(),
            require_output: true,
            on_bad_row: OnBadRow::Fail,
            split: None,
            limit: None,
            scales: Scales::default(),
            max_row_bytes: DEFAULT_MAX_ROW_BYTES,
        }
    }
}

/// Rows left out, and what was wrong with the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The messages of the first few.
    pub first: Vec<String>,
}

impl Skipped {
    const SHOWN: usize = 5;

    pub(crate) fn add(&mut self, error: &impl std::fmt::Display) {
        self.count += 1;
        if self.first.len() < Self::SHOWN {
            self.first.push(error.to_string());
        }
    }

    /// Adds what others left out.
    pub(crate) fn extend(&mut self, others: &Self) {
        self.count += others.count;
        self.first.extend_from_slice(&others.first);
        self.first.truncate(Self::SHOWN);
    }
}

/// A case with what else its row holds.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseRow {
    /// The case.
    pub case: Case,
    /// Labels in the same row; no part of the case, so that no judge sees them.
    pub labels: Vec<Label>,
    /// The line of the file on which the row begins, from 1.
    pub line: u64,
    /// Which row of the file, from 1, bad rows counted.
    pub number: u64,
    /// Whether the id is a content hash, because the row names none.
    pub generated_id: bool,
}

/// Reads the cases of a source, one at a time.
///
/// As an iterator it gives cases; [`Reader::next_row`] gives their labels and lines too. A
/// row that can't be used is an error, after which reading can go on if
/// [`RowError::is_skippable`]; with [`OnBadRow::Skip`] such rows are left out and counted.
pub struct Reader {
    table: Table,
    options: ReadOptions,
    given: u64,
    skipped: Skipped,
    splits: BTreeMap<String, u64>,
    done: bool,
}

impl Reader {
    /// Opens a source.
    ///
    /// # Errors
    /// When it can't be read, its CSV header has no output column though one is required, or
    /// a mapping does not fit.
    pub fn open(source: &Source, options: &ReadOptions) -> Result<Self, DatasetError> {
        Self::open_with(source, options, None)
    }

    pub(crate) fn open_with(
        source: &Source,
        options: &ReadOptions,
        digest: Option<&Digest>,
    ) -> Result<Self, DatasetError> {
        let table = Table::open(source, &CASE, &options.map, options.max_row_bytes, digest)?;
        if options.require_output {
            table.require(at::OUTPUT)?;
        }
        Ok(Self {
            table,
            options: options.clone(),
            given: 0,
            skipped: Skipped::default(),
            splits: BTreeMap::new(),
            done: false,
        })
    }

    /// The next case with its labels and line; `None` at the end or at the limit.
    pub fn next_row(&mut self) -> Option<Result<CaseRow, RowError>> {
        while !self.done {
            if self.options.limit.is_some_and(|limit| self.given >= limit) {
                break;
            }
            let options = &self.options;
            let result = match self.table.next() {
                None => break,
                Some(Ok(row)) => read_case(&row, options).map_err(|fault| row.error(fault)),
                Some(Err(error)) => Err(error),
            };
            match result {
                Ok(row) => {
                    if let Some(split) = &row.case.split {
                        self.count_split(split.clone());
                    }
                    let wanted =
                        self.options.split.is_none() || self.options.split == row.case.split;
                    if wanted {
                        self.given += 1;
                        return Some(Ok(row));
                    }
                }
                Err(error) => {
                    if !error.is_skippable() {
                        self.done = true;
                    } else if self.options.on_bad_row == OnBadRow::Skip {
                        self.skipped.add(&error);
                        continue;
                    }
                    return Some(Err(error));
                }
            }
        }
        if self.done {
            return None;
        }
        self.done = true;
        self.table.end().map(Err)
    }

    fn count_split(&mut self, split: String) {
        if self.splits.len() < MAX_SPLITS || self.splits.contains_key(&split) {
            *self.splits.entry(split).or_default() += 1;
        }
    }

    /// Columns read as fields of another name so far; complete at the end.
    #[must_use]
    pub fn aliases(&self) -> Vec<AliasUsed> {
        self.table.aliases()
    }

    /// The columns met so far; for CSV all of them, from the start.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        self.table.columns()
    }

    /// Rows left out so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Cases of each split so far, those not asked for included.
    #[must_use]
    pub fn splits(&self) -> &BTreeMap<String, u64> {
        &self.splits
    }

    pub(crate) fn drain(&mut self) -> std::io::Result<()> {
        self.table.drain()
    }
}

impl Iterator for Reader {
    type Item = Result<Case, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row().map(|row| row.map(|row| row.case))
    }
}

fn read_case(row: &Row<'_>, options: &ReadOptions) -> Result<CaseRow, Fault> {
    // An empty CSV cell says nothing, except for the output: an empty output is one.
    let text = |field, join| {
        row.read(field, |cell| match cell {
            Cell::Text("") if field != at::OUTPUT => Ok(None),
            cell => cell.text(join),
        })
    };
    let name = |field| row.read(field, Cell::name);
    let mut case = Case {
        id: String::new(),
        input: text(at::INPUT, false)?,
        output: text(at::OUTPUT, false)?,
        expected: text(at::EXPECTED, true)?,
        context: text(at::CONTEXT, true)?,
        baseline: text(at::BASELINE, false)?,
        group: name(at::GROUP)?,
        split: name(at::SPLIT)?,
        source: name(at::SOURCE)?,
        metadata: Map::new(),
    };
    if options.require_output && case.output.is_none() {
        return Err(match row.cell(at::OUTPUT) {
            Some(_) => {
                RowProblem::NoValue { expected: "the text to be judged" }.of(row.column(at::OUTPUT))
            }
            None => row.missing(at::OUTPUT).into(),
        });
    }
    let values = read_labels(row, options)?;
    // Without a label these say something about the case, or we don't know what.
    let about_labels: &[usize] =
        if values.is_empty() { &[at::RATER, at::LABEL_SOURCE] } else { &[] };
    case.metadata = read_metadata(row, at::METADATA, about_labels)?;
    let id = name(at::ID)?;
    let generated_id = id.is_none();
    case.id = id.unwrap_or_else(|| case.content_id());
    let rater = name(at::RATER)?.unwrap_or_else(|| Label::DEFAULT_RATER.to_owned());
    let label_source = row.read(at::LABEL_SOURCE, LabelSource::read)?.unwrap_or_default();
    let labels = values
        .into_iter()
        .map(|(criterion, value)| Label {
            case: case.id.clone(),
            rater: rater.clone(),
            criterion,
            value,
            label_source,
        })
        .collect();
    Ok(CaseRow { case, labels, line: row.line, number: row.number, generated_id })
}

/// The row's labels by criterion.
fn read_labels(
    row: &Row<'_>,
    options: &ReadOptions,
) -> Result<Vec<(String, super::labels::LabelValue)>, Fault> {
    let mut values = Vec::new();
    for field in [at::LABEL, at::LABELS] {
        let Some(cell) = row.filled(field) else { continue };
        let column = row.column(field);
        let found = match cell.object().map_err(|problem| problem.of(column))? {
            Some(object) => named_labels(object)?,
            None if field == at::LABELS => {
                return Err(RowProblem::WrongType {
                    expected: "an object with a value for each criterion",
                    found: "something else",
                }
                .of(column));
            }
            None => label_value(cell)
                .map_err(|problem| problem.of(column))?
                .map(|value| (Label::DEFAULT_CRITERION.to_owned(), value))
                .into_iter()
                .collect(),
        };
        for (criterion, value) in found {
            options.scales.check(&criterion, &value).map_err(|problem| problem.of(column))?;
            match values.iter().find(|(name, _)| *name == criterion) {
                Some((_, held)) if *held != value => {
                    return Err(RowProblem::Conflict {
                        field: criterion,
                        first: row.column(at::LABEL).to_owned(),
                        second: column.to_owned(),
                    }
                    .into());
                }
                Some(_) => {}
                None => values.push((criterion, value)),
            }
        }
    }
    Ok(values)
}

/// The metadata field, the columns that mean no field, and the fields in `more`.
pub(crate) fn read_metadata(
    row: &Row<'_>,
    field: usize,
    more: &[usize],
) -> Result<Map<String, Value>, Fault> {
    let mut metadata = Map::new();
    let column = row.column(field);
    if let Some(cell) = row.filled(field) {
        match cell.object().map_err(|problem| problem.of(column))? {
            Some(object) => {
                for (key, raw) in object.0 {
                    let value = Cell::Json(raw).value().map_err(|problem| problem.of(column))?;
                    if metadata.insert(key.to_string(), value).is_some() {
                        return Err(RowProblem::RepeatedKey.of(format!("{column}.{key}")));
                    }
                }
            }
            None => {
                let value = cell.value().map_err(|problem| problem.of(column))?;
                metadata.insert(column.to_owned(), value);
            }
        }
    }
    let mut add = |name: &str, cell: Cell<'_>| {
        let value = cell.value().map_err(|problem| problem.of(name))?;
        match metadata.get(name) {
            Some(held) if *held != value => {
                Err(RowProblem::MetadataConflict { metadata: column.to_owned() }.of(name))
            }
            _ => {
                metadata.insert(name.to_owned(), value);
                Ok(())
            }
        }
    };
    for (name, cell) in row.others() {
        add(name, cell)?;
    }
    for &field in more {
        if let Some(cell) = row.filled(field) {
            add(row.column(field), cell)?;
        }
    }
    Ok(metadata)
}
