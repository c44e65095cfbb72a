//! Data sets: cases, labels and recorded judgements in, rows out.
//!
//! Files are streamed, never held whole: CSV, TSV, JSON Lines or a JSON list, plain or gzip,
//! from a path or standard input. Every error names the file, the line and the field. Text is
//! never trimmed, repaired or normalised, and no row disappears without being counted.
//!
//! ```
//! use venire::dataset::{ReadOptions, Reader, Source};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let csv = "id,prompt,completion\n1,What is 2+2?,4\n";
//! let source = Source::spool(csv.as_bytes(), "example")?;
//! let cases = Reader::open(&source, &ReadOptions::default())?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(cases[0].output.as_deref(), Some("4"));
//! # Ok(())
//! # }
//! ```

mod cell;
mod csv_rows;
mod duplicates;
mod error;
mod fields;
mod format;
pub(crate) mod json_rows;
mod judgements;
mod label_scale;
mod label_set;
mod labels;
mod reader;
mod row_numbers;
mod scan;
mod sink;
mod source;
mod table;
mod writer;

pub(crate) use cell::json_text;
pub use error::{DatasetError, RowError, RowProblem};
pub use fields::{AliasUsed, FieldMap, RowKind, aliases_of};
pub use format::Format;
pub use judgements::{Judgement, JudgementReader, JudgementScan, Order, scan_judgements};
pub use label_scale::{LabelScale, LabelScoreError, ScaleOrigin, Scales};
pub use label_set::{LabelSet, read_inline_labels, read_labels};
pub use labels::{Label, LabelOptions, LabelReader, LabelSource, LabelValue};
pub use reader::{CaseRow, OnBadRow, ReadOptions, Reader, Skipped};
pub use row_numbers::RowNumbers;
pub use scan::{Scan, scan};
pub(crate) use sink::Sink;
pub use source::Source;
pub use writer::{CASE_COLUMNS, Writer};

#[cfg(test)]
mod tests;
