//! The page on loops: how the scores went, what the judges said of each output, what changed
//! between outputs, and what it took. Made from event logs alone; nothing is asked anew.
//!
//! A page holds at most [`MOST_LOOPS`] loops and [`MOST_GENERATIONS`] outputs of each, says how
//! many more there are, and cuts long texts, which it says too.

mod html;
mod pictures;
mod read;

use std::path::{Path, PathBuf};

pub use self::read::LoopReadError;
use super::ReportError;
use crate::control::log::starts_of;
use crate::dataset::Sink;

/// Loops on a page.
pub const MOST_LOOPS: usize = 100;

/// Outputs of one loop on a page.
pub const MOST_GENERATIONS: usize = 200;

/// The logs that a path stands for: a log itself, a run's folder, or a folder of runs; in the
/// order of their names, and of several starts each one's. `None` for a path that is none of these.
#[must_use]
pub fn logs(path: &Path) -> Option<Vec<PathBuf>> {
    let is_log = path.extension().is_some_and(|own| own.eq_ignore_ascii_case("jsonl"));
    if path.is_file() {
        return is_log.then(|| each(path.to_owned()));
    }
    let own = path.join(EVENTS);
    if own.is_file() {
        return Some(each(own));
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(path)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join(EVENTS)))
        .filter(|log| log.is_file())
        .collect();
    found.sort();
    (!found.is_empty()).then(|| found.into_iter().flat_map(each).collect())
}

/// The log of a run, or of several starts the logs of all: their own is in theirs.
fn each(log: PathBuf) -> Vec<PathBuf> {
    let starts = starts_of(&log);
    if starts.is_empty() { vec![log] } else { starts }
}

/// The name of a log in a run's folder.
const EVENTS: &str = "events.jsonl";

/// Reads logs and writes the page, which appears only when it is whole; how many loops it is
/// about.
///
/// # Errors
/// When a log can't be read or is damaged, or the page can't be written.
pub fn write_file(logs: &[PathBuf], output: &Path) -> Result<usize, LoopReadError> {
    let shown = logs.len().min(MOST_LOOPS);
    let loops = logs[..shown].iter().map(|log| read::of_log(log)).collect::<Result<Vec<_>, _>>()?;
    let failed = |error: std::io::Error| LoopReadError::Page(ReportError::from(error));
    let sink = Sink::create(output).map_err(failed)?;
    let mut out = std::io::BufWriter::with_capacity(64 * 1024, sink);
    html::write(&mut out, &loops, logs.len() - shown).map_err(LoopReadError::Page)?;
    let sink = out.into_inner().map_err(|error| failed(error.into_error()))?;
    sink.finish().map_err(failed)?;
    Ok(shown)
}

#[cfg(test)]
mod tests;
