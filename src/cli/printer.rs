//! What a person sees: data on stdout, words on stderr.

use std::io::Write as _;

use anstream::eprintln;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

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
        // A closed pipe (`venire ... | head`) is no fault.
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// Data as JSON, on one line when it goes to a script.
    pub(super) fn json<T: serde::Serialize>(self, value: &T) -> anyhow::Result<()> {
        self.data(&serde_json::to_string(value)?);
        Ok(())
    }

    /// Words for a person.
    pub(super) fn say(self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// Something to know before trusting the result.
    pub(super) fn warn(self, text: &str) {
        eprintln!("warning: {text}");
    }

    /// A result in words: on stdout, since it is what was asked for.
    pub(super) fn result(self, text: &str) {
        if self.aside {
            self.say(text);
            return;
        }
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// An error, one line a cause.
    pub(super) fn error(self, error: &anyhow::Error) {
        let mut causes = error.chain();
        if let Some(first) = causes.next() {
            eprintln!("error: {first}");
        }
        let mut last = error.to_string();
        for cause in causes {
            let text = cause.to_string();
            // A transparent wrapper says the same words again.
            if text != last {
                eprintln!("caused by: {text}");
            }
            last = text;
        }
    }
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

/// A text without control and direction characters, which in an id or a name could draw a
/// row of their own.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || crate::text::is_format(c) { '\u{fffd}' } else { c })
        .collect()
}

/// `1 case`, `2 cases`.
pub(super) fn plural(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
