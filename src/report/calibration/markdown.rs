//! Markdown: the sentences and the tables, for a pull request or a terminal.

use std::io::Write;

use super::sheet::Sheet;
use super::summary::summary;
use super::tables::{Cell, Table, tables};
use crate::report::ReportError;
use crate::report::escape::markdown_code;

pub(super) fn write(out: &mut dyn Write, sheet: &Sheet) -> Result<(), ReportError> {
    let own = summary(sheet);
    writeln!(out, "# Calibration of {}\n", markdown_code(&sheet.criterion))?;
    writeln!(out, "**{}**\n", words(&own.headline))?;
    for line in &own.lines {
        writeln!(out, "- {}", words(line))?;
    }
    if !sheet.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &sheet.warnings {
        writeln!(out, "> {}\n", markdown_code(&warning.replace('`', "")))?;
    }
    for own in tables(sheet) {
        table(out, &own)?;
    }
    writeln!(
        out,
        "\n{}, data {}. In square brackets: intervals; n: cases that a figure stands on.",
        markdown_code(&sheet.certificate.date),
        markdown_code(&sheet.certificate.data_hash)
    )?;
    Ok(())
}

/// A sentence in which names from the data could stand: nothing in it is a link or HTML.
fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::report::words::plain(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '@' | '!' | '&')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn table(out: &mut dyn Write, own: &Table) -> Result<(), ReportError> {
    writeln!(out, "\n## {}\n\n{}\n", own.title, words(&own.says))?;
    let names: Vec<String> = own.columns.iter().map(|(name, _)| words(name)).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    let lines: Vec<&str> =
        own.columns.iter().map(|(_, number)| if *number { "---:" } else { "---" }).collect();
    writeln!(out, "| {} |", lines.join(" | "))?;
    for row in &own.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn cell(own: &Cell) -> String {
    let detail =
        if own.detail.is_empty() { String::new() } else { format!(" {}", words(&own.detail)) };
    let text = if own.name { markdown_code(&own.text) } else { words(&own.text) };
    format!("{text}{detail}")
}
