//! Import: result files of other tools as cases, judgements and labels.
//!
//! What a tool recorded is carried over and never read into: a grader that failed has a status
//! and no score, a value that is none is said, and what a file does not hold (an output, a
//! person's label) is missing here too. A layout or version that is not known is refused, with
//! file, place and field. Nothing is asked of any judge or network.
//!
//! ```
//! use venire::import::{ImportOptions, import};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = folder.path().join("annotations.json");
//! std::fs::write(&file, r#"[{"instruction": "Hi", "output_1": "Yo", "output_2": "Hello",
//!     "generator_1": "base", "generator_2": "mine", "annotator": "gpt", "preference": 1.75}]"#)?;
//! let imported = import(&file, &ImportOptions::default())?;
//! assert_eq!(imported.judgements[0].score, Some(0.75));
//! # Ok(())
//! # }
//! ```

mod alpaca_eval;
mod columns;
mod deepeval;
mod document;
mod error;
mod inspect;
mod lm_eval;
mod promptfoo;
mod sheet;
mod truth;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

pub use self::columns::NamedColumn;
use self::document::Document;
pub use self::error::ImportError;
pub use self::sheet::Note;
use self::sheet::Sheet;
pub use self::truth::Truth;
use crate::case::Case;
use crate::dataset::{FieldMap, Judgement, Label, OnBadRow, Skipped};
use crate::verdict::StatusCounts;

/// A tool whose result files are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// `promptfoo eval -o FILE.json`, results version 3.
    Promptfoo,
    /// Inspect: an eval log in JSON, version 2.
    Inspect,
    /// lm-evaluation-harness: `samples_*.jsonl` of `--log_samples`.
    LmEval,
    /// AlpacaEval: `annotations.json`.
    AlpacaEval,
    /// DeepEval: a test run in JSON.
    Deepeval,
    /// A table, CSV or JSON Lines, with a column a judge.
    Table,
}

impl Tool {
    /// Every tool.
    pub const ALL: [Self; 6] = [
        Self::Promptfoo,
        Self::Inspect,
        Self::LmEval,
        Self::AlpacaEval,
        Self::Deepeval,
        Self::Table,
    ];

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Promptfoo => "promptfoo",
            Self::Inspect => "inspect",
            Self::LmEval => "lm_eval",
            Self::AlpacaEval => "alpaca_eval",
            Self::Deepeval => "deepeval",
            Self::Table => "table",
        }
    }
}

/// What is asked of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Which tool wrote the file; told by its content where `None`. A table is never guessed:
    /// it is one where [`ImportOptions::judges`] or [`ImportOptions::labels`] name columns.
    pub tool: Option<Tool>,
    /// What every id begins with, so that the cases of several files keep apart.
    pub id_prefix: String,
    /// Judges whose scores are the truth, and become labels.
    pub truths: Vec<Truth>,
    /// For tables: columns read as fields of the case, before any alias.
    pub map: FieldMap,
    /// For tables: the columns with the judges' scores.
    pub judges: Vec<NamedColumn>,
    /// For tables: the columns with the raters' labels.
    pub labels: Vec<NamedColumn>,
    /// For tables: what to do with a row that can't be used.
    pub on_bad_row: OnBadRow,
}

/// What a file held.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The file as it was named.
    pub file: String,
    /// The tool that wrote it.
    pub tool: Tool,
    /// The version of the tool or of its layout, where the file says one.
    pub version: Option<String>,
    /// The cases, in the order of the file.
    pub cases: Vec<Case>,
    /// What the judges said.
    pub judgements: Vec<Judgement>,
    /// What people, or ground truth, said.
    pub labels: Vec<Label>,
    /// What to know: what was left out, missing, or read in a way that is not plain.
    pub notes: Vec<Note>,
    /// Rows of a table that were left out.
    pub skipped: Skipped,
}

impl Imported {
    /// What became of every judge's measurements.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<&str, StatusCounts> {
        let mut statuses: BTreeMap<&str, StatusCounts> = BTreeMap::new();
        for own in &self.judgements {
            statuses.entry(&own.judge).or_default().add(own.status);
        }
        statuses
    }

    /// The criteria of the judgements, and how many each has.
    #[must_use]
    pub fn criteria(&self) -> BTreeMap<&str, u64> {
        let mut criteria: BTreeMap<&str, u64> = BTreeMap::new();
        for own in &self.judgements {
            *criteria.entry(&own.criterion).or_default() += 1;
        }
        criteria
    }

    /// How many cases have no output: nothing can be judged anew on these.
    #[must_use]
    pub fn without_output(&self) -> u64 {
        self.cases.iter().filter(|case| case.output.is_none()).count() as u64
    }
}

/// Reads a result file.
///
/// # Errors
/// When the file can't be read, is of no known tool, layout or version, a field has another
/// type than the tool writes, one id stands for two different cases, or a judge that is to be
/// the truth is not in it.
pub fn import(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let name = path.display().to_string();
    document::refuse_archive(path)?;
    let table = !options.judges.is_empty() || !options.labels.is_empty();
    let tool = match options.tool {
        None if table => Tool::Table,
        Some(other) if table && other != Tool::Table => {
            return Err(ImportError::ColumnsOfNoTable { tool: other.name() });
        }
        Some(tool) => tool,
        None => document::recognise(path)?,
    };
    let mut sheet = Sheet::new(&name, &options.id_prefix);
    let mut skipped = Skipped::default();
    let version = match tool {
        Tool::Promptfoo => promptfoo::read(&Document::read(path)?, &mut sheet)?,
        Tool::Inspect => inspect::read(&Document::read(path)?, &mut sheet)?,
        Tool::LmEval => lm_eval::read(path, &mut sheet)?,
        Tool::AlpacaEval => alpaca_eval::read(&Document::read(path)?, &mut sheet)?,
        Tool::Deepeval => deepeval::read(&Document::read(path)?, &mut sheet)?,
        Tool::Table => {
            skipped = columns::read(path, options, &mut sheet)?;
            None
        }
    };
    let mut imported = sheet.end(tool, version, skipped)?;
    truth::take(&mut imported, &options.truths)?;
    Ok(imported)
}

#[cfg(test)]
mod tests;
