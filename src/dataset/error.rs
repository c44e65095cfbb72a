//! What can be wrong with a data set, and where.
//!
//! A [`RowError`] is about one row, most of which can be skipped; a [`DatasetError`] is about
//! the whole. Messages say what was expected and what to do, never a row's full text.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::score::ScoreError;

/// Why a data set can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// The file can't be opened or read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file can't be written.
    #[error("failed to write `{path}`")]
    Write {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The extension is none that is understood.
    #[error(
        "`{path}` has an unknown extension: expected .jsonl, .ndjson, .json, .csv or .tsv, each also with .gz{}",
        instead(path)
    )]
    Extension {
        /// The file.
        path: String,
    },
    /// A JSON file that is one object.
    #[error(
        "`{path}` is one JSON object with the keys {keys}: expected a list of rows, or a row a line; the results of another tool become cases and judgements with `venire import`"
    )]
    OneObject {
        /// The file.
        path: String,
        /// Its first keys by name.
        keys: String,
    },
    /// A `--map` that is not `field=column`.
    #[error("`{text}` is no field mapping: expected `field=column`, such as `output=completion`")]
    MapSyntax {
        /// What was written.
        text: String,
    },
    /// A `--map` for a field that this kind of file has not.
    #[error("unknown field `{field}` in a mapping: expected one of {}{}", list(.known), did_you_mean(.suggestion))]
    MapField {
        /// The field named.
        field: String,
        /// The fields there are.
        known: Vec<String>,
        /// What was likely meant.
        suggestion: Option<String>,
    },
    /// A field or a column that is mapped twice.
    #[error("`{name}` is mapped twice: a field takes one column, and a column fills one field")]
    MapTwice {
        /// The field or column.
        name: String,
    },
    /// Two columns of one name.
    #[error("`{path}` has two columns named `{column}`: rename one of them")]
    RepeatedColumn {
        /// The file.
        path: String,
        /// The name.
        column: String,
    },
    /// A row that can't be used.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Two rows with one id.
    #[error("`{path}` has the id `{id}` twice, on lines {first} and {second}: ids must be unique")]
    DuplicateId {
        /// The file.
        path: String,
        /// The id.
        id: String,
        /// The line of the first row.
        first: u64,
        /// The line of the second row.
        second: u64,
    },
    /// Two rows without an id and with the same content.
    #[error(
        "`{path}` has the same case on lines {first} and {second}: remove one, or give each an `id`"
    )]
    IdenticalRows {
        /// The file.
        path: String,
        /// The line of the first row.
        first: u64,
        /// The line of the second row.
        second: u64,
    },
    /// One rater's two different labels for one case and criterion.
    #[error(
        "`{path}` lines {first} and {second} label case `{case}`, rater `{rater}`, criterion `{criterion}` with different values: keep one"
    )]
    DuplicateLabel {
        /// The file.
        path: String,
        /// The case.
        case: String,
        /// The rater.
        rater: String,
        /// The criterion.
        criterion: String,
        /// The line of the first label.
        first: u64,
        /// The line of the second label.
        second: u64,
    },
    /// A criterion with numbers and words for labels, so that no scale holds both.
    #[error(
        "`{path}` labels criterion `{criterion}` with a number on line {number} and with the word `{word}` on line {line}: use one kind of value"
    )]
    MixedLabels {
        /// The file.
        path: String,
        /// The criterion.
        criterion: String,
        /// The line of the first number.
        number: u64,
        /// The first word.
        word: String,
        /// The line of the first word.
        line: u64,
    },
    /// One judge's two recorded scores for the same case, criterion, order and sample.
    #[error(
        "`{path}` lines {first} and {second} record judge `{judge}` on case `{case}`, criterion `{criterion}` twice: number them in a `sample` column, or keep one"
    )]
    DuplicateJudgement {
        /// The file.
        path: String,
        /// The judge.
        judge: String,
        /// The case.
        case: String,
        /// The criterion.
        criterion: String,
        /// The line of the first.
        first: u64,
        /// The line of the second.
        second: u64,
    },
    /// No case belongs to the split asked for.
    #[error("`{path}` has no case with split `{split}`{}; its splits are {}", did_you_mean(.suggestion), list(.present))]
    UnknownSplit {
        /// The file.
        path: String,
        /// The split asked for.
        split: String,
        /// The splits there are.
        present: Vec<String>,
        /// What was likely meant.
        suggestion: Option<String>,
    },
    /// A row to be written that is no flat record.
    #[error("row {row} for `{path}` is no record: expected named fields")]
    NotARecord {
        /// The file.
        path: String,
        /// Which row, from 1.
        row: u64,
    },
    /// A row to be written that can't be turned into JSON.
    #[error("row {row} for `{path}` can't be written as JSON: {message}")]
    Unserialisable {
        /// The file.
        path: String,
        /// Which row, from 1.
        row: u64,
        /// The serializer's own words.
        message: String,
    },
    /// A CSV row with a field that the header, already written, has not.
    #[error(
        "row {row} for `{path}` has the field `{field}`, which the header has not: name all columns before the first row"
    )]
    ExtraField {
        /// The file.
        path: String,
        /// Which row, from 1.
        row: u64,
        /// The field.
        field: String,
    },
}

/// What is wrong with one row, and where it stands.
#[derive(Debug)]
pub struct RowError {
    path: Arc<str>,
    line: u64,
    field: Option<String>,
    problem: Box<RowProblem>,
}

impl RowError {
    pub(crate) fn new(path: &Arc<str>, line: u64, fault: Fault) -> Self {
        Self { path: Arc::clone(path), line, field: fault.field, problem: Box::new(fault.problem) }
    }

    /// The file, as the user named it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The line of the (decompressed) file on which the row begins, from 1; 0 where the
    /// problem is the whole file's.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The field or column at fault, if it is one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &RowProblem {
        &self.problem
    }

    /// Whether the rows after this one can still be read.
    #[must_use]
    pub fn is_skippable(&self) -> bool {
        !matches!(
            *self.problem,
            RowProblem::Io(_)
                | RowProblem::UnclosedQuote
                | RowProblem::TooLong { .. }
                | RowProblem::Encoding { .. }
                | RowProblem::CarriageReturns
                | RowProblem::ListSyntax { .. }
        )
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.path)?;
        if self.line > 0 {
            write!(f, " line {}", self.line)?;
        }
        if let Some(field) = &self.field {
            write!(f, ", field `{field}`")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for RowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.problem {
            RowProblem::Io(source) => Some(source),
            _ => None,
        }
    }
}

/// What is wrong with a row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// Reading stopped here, for example at the end of a gzip file that was cut short.
    #[error("failed to read further")]
    Io(io::Error),
    /// The file is UTF-16 or UTF-32.
    #[error("the file is {encoding}: save it as UTF-8")]
    Encoding {
        /// The encoding that the byte order mark names.
        encoding: &'static str,
    },
    /// Bytes that are no text.
    #[error("broken UTF-8 at byte {byte} of the row: save the file as UTF-8")]
    NotUtf8 {
        /// Where, from 1, counted in the row's text.
        byte: usize,
    },
    /// The row is longer than the limit.
    #[error("the row is longer than {limit} bytes: a quote or bracket may not be closed")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A CSV quote that no other closes before the end of the file.
    #[error("a quote opened in this row is never closed")]
    UnclosedQuote,
    /// CSV text between a closing quote and the next delimiter.
    #[error(
        "text follows the closing quote of cell {cell}: double the quotes inside a quoted cell"
    )]
    TextAfterQuote {
        /// Which cell, from 1.
        cell: usize,
    },
    /// A carriage return in a CSV cell without quotes.
    #[error("a carriage return stands in cell {cell}: quote the cell")]
    CarriageReturn {
        /// Which cell, from 1.
        cell: usize,
    },
    /// A CSV file whose lines end with carriage returns alone.
    #[error("the lines end with a carriage return alone: save the file with LF or CRLF line ends")]
    CarriageReturns,
    /// More or fewer CSV cells than the header has.
    #[error(
        "{found} cells where the header has {expected}: quote cells that hold the delimiter or a line end"
    )]
    CellCount {
        /// Cells in the row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// Text that is not JSON.
    #[error("not valid JSON: {message}")]
    Json {
        /// The parser's own words, or ours.
        message: String,
    },
    /// A JSON list that is not a list of values with commas between them.
    #[error("not a valid JSON list: {message}")]
    ListSyntax {
        /// What was found and expected.
        message: &'static str,
    },
    /// JSON that is no object.
    #[error("expected a JSON object, found {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A key that stands twice in one object.
    #[error("the key stands twice in the row")]
    RepeatedKey,
    /// More different keys than any data set has columns.
    #[error("more than {limit} different columns: put varying keys into `metadata`")]
    TooManyColumns {
        /// The limit.
        limit: usize,
    },
    /// Two columns that mean the same field and say different things.
    #[error(
        "columns `{first}` and `{second}` both mean `{field}` and differ: choose one with `--map {field}=COLUMN`"
    )]
    Conflict {
        /// The field.
        field: String,
        /// A column.
        first: String,
        /// Another column.
        second: String,
    },
    /// A key that stands in `metadata` and as a column of its own.
    #[error("the key stands in `{metadata}` and beside it with another value")]
    MetadataConflict {
        /// The metadata column.
        metadata: String,
    },
    /// A `--map` to a column that the file has not.
    #[error("no column `{column}` to read as `{field}`, nor such a path inside one{}; the columns are {}", did_you_mean(.suggestion), list(.columns))]
    MapColumn {
        /// The field to be filled.
        field: &'static str,
        /// The column asked for.
        column: String,
        /// The columns there are.
        columns: Vec<String>,
        /// What was likely meant.
        suggestion: Option<String>,
    },
    /// A field that must be there is not.
    #[error("{}", missing(.field, .columns))]
    Missing {
        /// The field.
        field: &'static str,
        /// The row's columns.
        columns: Vec<String>,
    },
    /// A field that must have a value has none.
    #[error("no value: expected {expected}")]
    NoValue {
        /// What was expected.
        expected: &'static str,
    },
    /// A value of a kind that the field can't hold.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
    /// Text that should be a number.
    #[error("`{text}` is no number: expected {expected}")]
    NotANumber {
        /// The text, shortened.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A word that is none of the known ones.
    #[error("unknown word `{word}`: expected one of {}{}", list(.known), did_you_mean(.suggestion))]
    UnknownWord {
        /// The word, shortened.
        word: String,
        /// The known ones.
        known: Vec<String>,
        /// What was likely meant.
        suggestion: Option<String>,
    },
    /// A number off its declared scale.
    #[error(transparent)]
    OffScale(ScoreError),
    /// A word where the declared scale wants a number.
    #[error("`{text}` is not on the declared scale {scale}")]
    NotOnScale {
        /// The word, shortened.
        text: String,
        /// The scale.
        scale: String,
    },
    /// A status that contradicts the score beside it.
    #[error("status `{status}` {}", if *.has_score { "can't have a score" } else { "needs a score" })]
    StatusAndScore {
        /// The status.
        status: &'static str,
        /// Whether there is a score.
        has_score: bool,
    },
}

/// A problem and the field it is about, before the line is known.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) field: Option<String>,
    pub(crate) problem: RowProblem,
}

impl From<RowProblem> for Fault {
    fn from(problem: RowProblem) -> Self {
        Self { field: None, problem }
    }
}

impl RowProblem {
    /// The problem, as one of a field.
    pub(crate) fn of(self, field: impl Into<String>) -> Fault {
        Fault { field: Some(field.into()), problem: self }
    }

    /// A word that is none of the known ones.
    pub(crate) fn unknown_word(word: &str, known: &[&str]) -> Self {
        Self::UnknownWord {
            word: shorten(word),
            known: known.iter().map(|&k| k.to_owned()).collect(),
            suggestion: crate::config::nearest(word, known.iter().copied()),
        }
    }
}

/// The first 40 characters: enough to find the place, too little to flood a terminal.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn list(words: &[String]) -> String {
    const SHOWN: usize = 30;
    if words.is_empty() {
        return "none".into();
    }
    let mut text = words
        .iter()
        .take(SHOWN)
        .map(|w| format!("`{}`", shorten(w)))
        .collect::<Vec<_>>()
        .join(", ");
    if words.len() > SHOWN {
        text.push_str(&format!(" and {} more", words.len() - SHOWN));
    }
    text
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|word| format!(" (did you mean `{word}`?)")).unwrap_or_default()
}

fn missing(field: &str, columns: &[String]) -> String {
    let aliases: Vec<String> =
        super::fields::aliases_of(field).iter().map(|&alias| alias.to_owned()).collect();
    let understood = if aliases.is_empty() {
        String::new()
    } else {
        format!("; also understood: {}", list(&aliases))
    };
    format!(
        "no `{field}`; the columns are {}{understood}: name the right one with `--map {field}=COLUMN`",
        list(columns)
    )
}

/// What helps with a file whose format is known and not read.
fn instead(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("parquet") => {
            "; Parquet is neither read nor written: convert it, for example in Python with `pandas.read_parquet(\"x.parquet\").to_json(\"x.jsonl\", orient=\"records\", lines=True)`"
        }
        Some("xlsx" | "xls" | "ods") => {
            "; spreadsheets are neither read nor written: save the sheet to be read as CSV (UTF-8), write `.csv` and open that"
        }
        Some("txt") => "; one answer is judged by `venire score FILE`",
        _ => "",
    }
}
