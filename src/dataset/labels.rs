//! Labels: what people or ground truth say about cases.
//!
//! They come apart from the cases, one row a label, or in the rows of the cases. A label is
//! never changed: words stay words. Empty cells are no labels; they are counted.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::cell::{Cell, parse_number};
use super::error::{DatasetError, Fault, RowError, RowProblem, shorten};
use super::fields::{AliasUsed, FieldMap, LABEL, label as at};
use super::json_rows::{Object, kind};
use super::label_scale::Scales;
use super::reader::{DEFAULT_MAX_ROW_BYTES, OnBadRow, Skipped};
use super::source::Source;
use super::table::{Row, Table};

/// A label's value, as it is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LabelValue {
    /// A finite number, also where the file holds it as text.
    Number(f64),
    /// Any other text; JSON true and false are `true` and `false`.
    Text(String),
}

impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// Where a label comes from.
#[derive(
    Clone,
    Copy,
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
#[serde(rename_all = "snake_case")]
pub enum LabelSource {
    /// A person.
    #[default]
    Human,
    /// Something that can't be wrong, such as hidden tests.
    GroundTruth,
    /// Another model: what is fitted to it is never called calibration.
    Model,
}

impl LabelSource {
    const NAMES: [&'static str; 3] = ["human", "ground_truth", "model"];

    /// The name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub(crate) fn read(cell: Cell<'_>) -> Result<Option<Self>, RowProblem> {
        Ok(match cell.name()?.as_deref() {
            None => None,
            Some("human") => Some(Self::Human),
            Some("ground_truth") => Some(Self::GroundTruth),
            Some("model") => Some(Self::Model),
            Some(word) => return Err(RowProblem::unknown_word(word, &Self::NAMES)),
        })
    }
}

/// One value for one case and criterion, by one rater.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// The case's id.
    pub case: String,
    /// Who says so; `human` where the data does not say.
    pub rater: String,
    /// What it is about; `overall` where the data does not say.
    pub criterion: String,
    /// The value.
    #[serde(rename = "label")]
    pub value: LabelValue,
    /// Where it comes from; `human` where the data does not say.
    pub label_source: LabelSource,
}

impl Label {
    /// The rater where the data names none.
    pub const DEFAULT_RATER: &'static str = "human";
    /// The criterion where the data names none.
    pub const DEFAULT_CRITERION: &'static str = "overall";
}

/// A cell as a label; `None` for an empty one.
pub(crate) fn label_value(cell: Cell<'_>) -> Result<Option<LabelValue>, RowProblem> {
    const EXPECTED: &str = "a number or a word";
    if cell.is_empty() {
        return Ok(None);
    }
    if let Cell::Json(raw) = cell
        && raw.starts_with(['[', '{'])
    {
        return Err(RowProblem::WrongType { expected: EXPECTED, found: kind(raw) });
    }
    let text = cell.text(false)?.unwrap_or_default();
    if let Some(number) = parse_number(&text) {
        return Ok(Some(LabelValue::Number(number)));
    }
    // What numeric programs write for a missing or impossible number is no category.
    let word = text.trim().to_lowercase();
    if matches!(word.trim_start_matches(['-', '+']), "nan" | "inf" | "infinity" | "") {
        return Err(RowProblem::NotANumber { text: shorten(&text), expected: EXPECTED });
    }
    Ok(Some(LabelValue::Text(text)))
}

/// The labels of an object with a value for each criterion.
pub(crate) fn named_labels(object: Object<'_>) -> Result<Vec<(String, LabelValue)>, Fault> {
    let mut labels: Vec<(String, LabelValue)> = Vec::new();
    for (criterion, raw) in object.0 {
        if labels.iter().any(|(name, _)| *name == criterion) {
            return Err(RowProblem::RepeatedKey.of(criterion));
        }
        let value = label_value(Cell::Json(raw)).map_err(|p| p.of(criterion.as_ref()))?;
        labels.extend(value.map(|value| (criterion.into_owned(), value)));
    }
    Ok(labels)
}

/// How labels in long form are read.
#[derive(Clone, Debug)]
pub struct LabelOptions {
    /// Columns to read as fields, before any alias.
    pub map: FieldMap,
    /// Declared scales.
    pub scales: Scales,
    /// What to do with a row that can't be used.
    pub on_bad_row: OnBadRow,
    /// The longest row, in bytes of its file.
    pub max_row_bytes: usize,
}

impl Default for LabelOptions {
    /// No declared scale, and the first bad row an error.
    fn default() -> Self {
        Self {
            map: FieldMap::default(),
            scales: Scales::default(),
            on_bad_row: OnBadRow::Fail,
            max_row_bytes: DEFAULT_MAX_ROW_BYTES,
        }
    }
}

/// Reads labels in long form (`case, rater, criterion, label, label_source`), one at a time.
pub struct LabelReader {
    table: Table,
    options: LabelOptions,
    skipped: Skipped,
    empty: u64,
    line: u64,
    done: bool,
}

impl LabelReader {
    /// Opens a source.
    ///
    /// # Errors
    /// When it can't be read, its CSV header has no column for the case or the label, or a
    /// mapping does not fit.
    pub fn open(source: &Source, options: &LabelOptions) -> Result<Self, DatasetError> {
        let table = Table::open(source, &LABEL, &options.map, options.max_row_bytes, None)?;
        table.require(at::CASE)?;
        table.require(at::LABEL)?;
        Ok(Self {
            table,
            options: options.clone(),
            skipped: Skipped::default(),
            empty: 0,
            line: 0,
            done: false,
        })
    }

    /// The line of the label given last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Rows whose label is empty so far: the rater gave none.
    #[must_use]
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// Rows left out so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Columns read as fields of another name so far.
    #[must_use]
    pub fn aliases(&self) -> Vec<AliasUsed> {
        self.table.aliases()
    }
}

impl Iterator for LabelReader {
    type Item = Result<Label, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let scales = &self.options.scales;
            let result = match self.table.next() {
                None => break,
                Some(Ok(row)) => {
                    self.line = row.line;
                    read_label(&row, scales).map_err(|fault| row.error(fault))
                }
                Some(Err(error)) => Err(error),
            };
            match result {
                Ok(Some(label)) => return Some(Ok(label)),
                Ok(None) => self.empty += 1,
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
}

fn read_label(row: &Row<'_>, scales: &Scales) -> Result<Option<Label>, Fault> {
    let case = required_name(row, at::CASE)?;
    if row.cell(at::LABEL).is_none() {
        return Err(row.missing(at::LABEL).into());
    }
    let name = |field, default: &str| {
        Ok::<_, Fault>(row.read(field, Cell::name)?.unwrap_or_else(|| default.to_owned()))
    };
    let rater = name(at::RATER, Label::DEFAULT_RATER)?;
    let criterion = name(at::CRITERION, Label::DEFAULT_CRITERION)?;
    let label_source = row.read(at::LABEL_SOURCE, LabelSource::read)?.unwrap_or_default();
    let Some(value) = row.read(at::LABEL, label_value)? else { return Ok(None) };
    scales.check(&criterion, &value).map_err(|problem| problem.of(row.column(at::LABEL)))?;
    Ok(Some(Label { case, rater, criterion, value, label_source }))
}

/// A name that every row must have.
pub(crate) fn required_name(row: &Row<'_>, field: usize) -> Result<String, Fault> {
    if row.cell(field).is_none() {
        return Err(row.missing(field).into());
    }
    row.read(field, Cell::name)?
        .ok_or_else(|| RowProblem::NoValue { expected: "a name" }.of(row.column(field)))
}
