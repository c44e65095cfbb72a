//! What a person sees: data on stdout, words on stderr.
//!
//! Data that could not be written is no result: the first fault of stdout is kept, nothing is
//! written after it, and [`Printer::end`] makes it the verb's. Words that nobody can read are
//! no fault.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::exit::Exit;
pub(super) use crate::report::words::{plain, plural};

/// What went wrong with standard output, of which a process has one.
static FAULT: OnceLock<io::Error> = OnceLock::new();

/// Writes to the two streams. The only place that prints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printer {
    quiet: bool,
    /// Whether results go to stderr, for a verb inside another one.
    aside: bool,
}

impl Printer {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, aside: false }
    }

    /// For a verb that another one runs: its result is not the result, and goes to stderr.
    pub(super) fn aside(self) -> Self {
        Self { aside: true, ..self }
    }

    pub(super) fn quiet(self) -> bool {
        self.quiet
    }

    /// Data: what a script reads.
    pub(super) fn data(self, text: &str) {
        if FAULT.get().is_none()
            && let Err(error) = writeln!(anstream::stdout(), "{text}")
        {
            self.failed(error);
        }
    }

    /// Notes that standard output could not be written to.
    pub(super) fn failed(self, error: io::Error) {
        let _ = FAULT.set(error);
    }

    /// How a verb ends that would end with `exit`, all that was printed considered.
    pub(super) fn end(self, exit: Exit) -> anyhow::Result<Exit> {
        if let Err(error) = io::stdout().flush() {
            self.failed(error);
        }
        match FAULT.get() {
            // Whoever hung up or pressed Ctrl-C knows.
            Some(_) if exit == Exit::Interrupted => Ok(exit),
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::ClosedPipe),
            Some(error) => Err(anyhow::anyhow!("failed to write to standard output: {error}")),
            None => Ok(exit),
        }
    }

    /// Data as JSON, on one line when it goes to a script.
    pub(super) fn json<T: serde::Serialize>(self, value: &T) -> anyhow::Result<()> {
        self.data(&serde_json::to_string(value)?);
        Ok(())
    }

    /// Words for a person.
    pub(super) fn say(self, text: &str) {
        if !self.quiet {
            words(text);
        }
    }

    /// Something to know before trusting the result.
    pub(super) fn warn(self, text: &str) {
        words(&format!("warning: {text}"));
    }

    /// A result in words: on stdout, since it is what was asked for.
    pub(super) fn result(self, text: &str) {
        if self.aside {
            self.say(text);
            return;
        }
        self.data(text);
    }

    /// An error, one line a cause.
    pub(super) fn error(self, error: &anyhow::Error) {
        let mut causes = error.chain();
        if let Some(first) = causes.next() {
            words(&format!("error: {first}"));
        }
        let mut last = error.to_string();
        for cause in causes {
            let text = cause.to_string();
            // A transparent wrapper says the same words again.
            if text != last {
                words(&format!("caused by: {text}"));
            }
            last = text;
        }
    }
}

/// A line on stderr.
fn words(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// A table whose columns are set apart by spaces; `numbers` are aligned right.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>, numbers: &[usize]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| plain(cell)));
    }
    for column in numbers {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
