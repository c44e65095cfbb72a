//! Reports for people and build servers: Markdown, one HTML page, JUnit XML.
//!
//! A report reads its cases as a stream, twice where it needs totals first, and never holds
//! them all. The outputs it shows are hostile: each format has its own defence, tested with
//! hostile text.

pub mod advice;
pub mod calibration;
pub mod chart;
pub mod escape;
pub mod html;
pub mod junit;
pub mod loops;
pub mod markdown;
pub mod page;
mod stored;
#[cfg(test)]
mod tests;
pub mod words;
mod worth;

use std::io::{self, Write};
use std::path::Path;

pub use self::stored::StoredRun;
pub use self::worth::Worth;
use crate::case::Case;
use crate::dataset::Sink;
use crate::panel::PanelSpec;
use crate::ruling::Ruling;
use crate::run::Tally;
use crate::run::truth::Mistake;
use crate::store::StoreError;

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.md`: a summary and a table.
    Markdown,
    /// `.html`: one page without any request to elsewhere.
    Html,
    /// `.xml`: JUnit XML.
    JUnit,
}

impl Format {
    /// The format that a file's extension says; `None` for any other.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            "xml" => Some(Self::JUnit),
            _ => None,
        }
    }
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The rows can't be written.
    #[error("failed to write the rows")]
    Rows(#[from] crate::dataset::DatasetError),
    /// The file can't be written.
    #[error("failed to write the report")]
    Write(#[from] io::Error),
    /// It is no calibration.
    #[error("failed to read the calibration")]
    Calibration(#[from] calibration::SheetError),
    /// A template does not fit its values: a fault of this program.
    #[error("failed to fill in the page")]
    Page(#[from] minijinja::Error),
}

/// What a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The panel's name.
    pub panel: String,
    /// How votes become a score, in words; threshold and profile are read off the rulings.
    pub rule: String,
    /// The run's id; `None` for a case judged by itself.
    pub run: Option<String>,
    /// When it was started, in UTC by RFC 3339.
    pub created: Option<String>,
    /// The data set.
    pub data: Option<String>,
    /// What a reader has to know, such as that the run was interrupted.
    pub notes: Vec<String>,
}

impl About {
    /// A panel, and nothing said yet of what it judged.
    #[must_use]
    pub fn panel(spec: &PanelSpec) -> Self {
        Self { panel: spec.name.clone(), rule: words::rule(spec), ..Self::default() }
    }
}

/// What is known of a judged case beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The row of the data that it was, where its id is a hash and says nothing to a person.
    pub row: Option<u64>,
    /// `good` or `bad`, by its label.
    pub truth: Option<&'static str>,
    /// Which way the decision contradicts the label.
    pub mistake: Option<Mistake>,
}

impl Beside {
    /// The label, and the mistake where there is one, in words.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let truth = self.truth?;
        Some(match self.mistake {
            Some(mistake) => format!("{}: labelled {truth}", mistake.words()),
            None => format!("labelled {truth}"),
        })
    }
}

/// Cases with their rulings, in order, as often as asked.
pub trait Judged {
    /// Calls `visit` with each.
    ///
    /// # Errors
    /// When they can't be read, or `visit` fails.
    fn each(
        &self,
        visit: &mut dyn FnMut(&Case, &Ruling) -> Result<(), ReportError>,
    ) -> Result<(), ReportError>;

    /// The same with what is known of each beside it.
    ///
    /// # Errors
    /// As [`Judged::each`].
    fn each_beside(
        &self,
        visit: &mut dyn FnMut(&Case, &Ruling, Beside) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        self.each(&mut |case, ruling| visit(case, ruling, Beside::default()))
    }
}

/// One case, judged by itself.
impl Judged for (Case, Ruling) {
    fn each(
        &self,
        visit: &mut dyn FnMut(&Case, &Ruling) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        visit(&self.0, &self.1)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Cases in the report.
    pub cases: u64,
    /// Cases beyond what one page holds.
    pub left_out: u64,
}

/// Writes a report.
///
/// # Errors
/// When the cases can't be read or the report can't be written.
pub fn write(
    format: Format,
    out: &mut dyn Write,
    about: &About,
    cases: &dyn Judged,
) -> Result<Written, ReportError> {
    match format {
        Format::Markdown => markdown::write(out, about, cases),
        Format::Html => html::write(out, about, cases),
        Format::JUnit => junit::write(out, about, cases),
    }
}

/// Writes a report to a file, which appears only when it is whole.
///
/// # Errors
/// As [`write`].
pub fn write_file(
    format: Format,
    path: &Path,
    about: &About,
    cases: &dyn Judged,
) -> Result<Written, ReportError> {
    let mut out = io::BufWriter::with_capacity(64 * 1024, Sink::create(path)?);
    let written = write(format, &mut out, about, cases)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
    Ok(written)
}

/// Whether a report can be written to a path.
///
/// # Errors
/// When it is a folder, or its folder can't be written to.
pub fn check(path: &Path) -> Result<(), ReportError> {
    Ok(Sink::create(path).map(drop)?)
}

/// The totals of all cases, and what their rulings are worth.
fn totals(cases: &dyn Judged) -> Result<(Tally, Worth), ReportError> {
    let mut tally = Tally::default();
    let mut worth = Worth::default();
    cases.each(&mut |case, ruling| {
        tally.add(ruling, case.into());
        worth.add(ruling);
        Ok(())
    })?;
    Ok((tally, worth))
}
