//! The page: the promise first, then pictures, then tables.

use std::io::Write;

use minijinja::{Value, context};

use super::pictures::{large, small};
use super::sheet::Sheet;
use super::summary::summary;
use super::tables::{Table, tables};
use crate::report::chart::Picture;
use crate::report::words::plain;
use crate::report::{ReportError, page};

const BODY: &str = include_str!("page.html");

pub(super) fn write(
    shell: &page::Shell<'_>,
    out: &mut dyn Write,
    sheet: &Sheet,
) -> Result<(), ReportError> {
    let own = summary(sheet);
    let facts = vec![
        format!(
            "criterion {}, labels {}",
            plain(&sheet.criterion),
            plain(&sheet.labels.scale.note.replace('`', ""))
        ),
        format!(
            "{}, data {}",
            plain(sheet.certificate.date.split('.').next().unwrap_or_default()),
            plain(&sheet.certificate.data_hash.chars().take(12).collect::<String>())
        ),
    ];
    let groups: Vec<Value> = small(sheet)
        .iter()
        .map(|group| {
            let pictures: Vec<Value> = group.pictures.iter().map(picture).collect();
            context! { title => group.title, says => group.says.as_str(), pictures }
        })
        .collect();
    let values = context! {
        certified => own.certified,
        headline => plain(&own.headline),
        lines => own.lines.iter().map(|line| plain(line)).collect::<Vec<_>>(),
        warnings => sheet.warnings.iter().map(|line| plain(line)).collect::<Vec<_>>(),
        pictures => large(sheet).iter().map(picture).collect::<Vec<_>>(),
        groups,
        tables => tables(sheet).iter().map(table).collect::<Vec<_>>(),
    };
    let title = format!("Calibration of {}", plain(&sheet.criterion));
    out.write_all(shell.head(&title, &facts)?.as_bytes())?;
    out.write_all(page::environment().render_str(BODY, values)?.as_bytes())?;
    out.write_all(shell.foot()?.as_bytes())?;
    Ok(())
}

fn picture(own: &Picture) -> Value {
    context! { title => own.title.as_str(), says => own.says.as_str(), svg => own.svg.as_str() }
}

fn table(own: &Table) -> Value {
    let columns: Vec<Value> = own
        .columns
        .iter()
        .map(|(name, number)| context! { name => *name, number => *number })
        .collect();
    let rows: Vec<Vec<Value>> = own
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&own.columns)
                .map(|(cell, (column, number))| {
                    context! {
                        text => plain(&cell.text), number, column => *column,
                        // An interval stays on one line; before its n it may break.
                        detail => plain(&cell.detail).replace(", ", ",\u{a0}"),
                        sort => cell.sort.map(|value| format!("{value:.8}")),
                        name => cell.name,
                    }
                })
                .collect()
        })
        .collect();
    context! { id => own.id, title => own.title, says => own.says.as_str(), columns, rows }
}
