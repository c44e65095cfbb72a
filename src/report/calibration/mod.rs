//! The report on a calibration: in words, in pictures, in tables; as a page, as Markdown, as
//! tidy CSV.
//!
//! All formats are made from the calibration's JSON, so that a file kept earlier gives the same
//! report as the calibration itself. Every figure stands with its count and its interval.

mod csv;
mod html;
mod markdown;
mod pictures;
mod sheet;
mod summary;
mod tables;

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use self::sheet::Sheet;
pub use self::sheet::SheetError;
use super::ReportError;
use super::page::Shell;
use crate::dataset::Sink;

/// What a report on a calibration is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.html`: one page with pictures.
    Html,
    /// `.md`: the words and tables.
    Markdown,
    /// `.csv`: one row a figure.
    Csv,
}

impl Format {
    /// The format that a file's extension says; `None` for any other.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Self::Html),
            "md" | "markdown" => Some(Self::Markdown),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Writes the report on a calibration, given as its JSON.
///
/// # Errors
/// When the JSON is no calibration of this version, or the report can't be written.
pub fn write(format: Format, out: &mut dyn Write, calibration: &Value) -> Result<(), ReportError> {
    let sheet = Sheet::read(calibration)?;
    match format {
        Format::Html => html::write(&Shell::default(), out, &sheet),
        Format::Markdown => markdown::write(out, &sheet),
        Format::Csv => csv::write(out, calibration),
    }
}

/// Writes the report as a page within a shell.
///
/// # Errors
/// As [`write`].
pub fn write_in(
    shell: &Shell<'_>,
    out: &mut dyn Write,
    calibration: &Value,
) -> Result<(), ReportError> {
    html::write(shell, out, &Sheet::read(calibration)?)
}

/// Writes the report to a file, which appears only when it is whole.
///
/// # Errors
/// As [`write`].
pub fn write_file(format: Format, path: &Path, calibration: &Value) -> Result<(), ReportError> {
    let mut out = std::io::BufWriter::with_capacity(64 * 1024, Sink::create(path)?);
    write(format, &mut out, calibration)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish()?;
    Ok(())
}
