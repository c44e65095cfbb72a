//! A table with one row a case and one column a judge: what spreadsheets and notebooks hold.
//!
//! Only named columns are scores or labels, and they leave the case, so that no judge sees
//! them. An empty cell is no score.

use std::path::Path;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::ImportOptions;
use super::document::number_of;
use super::error::ImportError;
use super::sheet::Sheet;
use crate::dataset::{
    Judgement, Label, LabelSource, LabelValue, OnBadRow, ReadOptions, Reader, Skipped, Source,
};
use crate::verdict::Status;

/// A column, and the judge or rater that it belongs to: `NAME=COLUMN`, or `COLUMN` for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedColumn {
    /// The judge or rater.
    pub name: String,
    /// The column.
    pub column: String,
}

impl FromStr for NamedColumn {
    type Err = ImportError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, column) = text.split_once('=').unwrap_or((text, text));
        if name.is_empty() || column.is_empty() {
            return Err(ImportError::ColumnSyntax { text: text.to_owned() });
        }
        Ok(Self { name: name.to_owned(), column: column.to_owned() })
    }
}

pub(super) fn read(
    path: &Path,
    options: &ImportOptions,
    sheet: &mut Sheet,
) -> Result<Skipped, ImportError> {
    if options.judges.is_empty() && options.labels.is_empty() {
        return Err(ImportError::NoColumns);
    }
    let named = || options.judges.iter().chain(&options.labels);
    for (i, own) in named().enumerate() {
        if let Some(first) = named().take(i).find(|first| first.column == own.column) {
            return Err(ImportError::ColumnTwice {
                column: own.column.clone(),
                first: first.name.clone(),
                second: own.name.clone(),
            });
        }
    }
    let mut map = options.map.clone();
    // `rating` would be read as a label, and may be a judge's.
    named().for_each(|own| map.free(&own.column));
    let reading = ReadOptions {
        map,
        require_output: false,
        on_bad_row: options.on_bad_row,
        ..ReadOptions::default()
    };
    let source = Source::open(path)?;
    let mut reader = Reader::open(&source, &reading)?;
    let mut met = vec![false; named().count()];
    let mut skipped = Skipped::default();
    while let Some(row) = reader.next_row() {
        let row = row.map_err(crate::dataset::DatasetError::from)?;
        let place = format!("line {}", row.line);
        let mut case = row.case;
        let cells: Vec<Option<Value>> =
            named().map(|own| case.metadata.get(&own.column).cloned()).collect();
        for (own, met) in named().zip(&mut met) {
            *met |= case.metadata.remove(&own.column).is_some();
        }
        if row.generated_id {
            case.id = case.content_id();
        }
        let cells = match cells_of(cells, options, sheet, &place) {
            Err(error) if options.on_bad_row == OnBadRow::Skip => {
                skipped.add(&error);
                continue;
            }
            cells => cells?,
        };
        let id = sheet.case(case, &place)?;
        for label in row.labels {
            sheet.label(Label { case: id.clone(), ..label })?;
        }
        for (own, score) in options.judges.iter().zip(cells.scores) {
            if score.is_none() {
                sheet.note(format!("no score of `{}`: `abstained`", own.name), &place);
            }
            let judgement = Judgement {
                case: id.clone(),
                judge: own.name.clone(),
                criterion: Label::DEFAULT_CRITERION.to_owned(),
                status: if score.is_some() { Status::Ok } else { Status::Abstained },
                score,
                raw: None,
                order: None,
                sample: 0,
                feedback: None,
                metadata: Map::new(),
            };
            sheet.judgement(judgement, &place)?;
        }
        for (own, label) in options.labels.iter().zip(cells.labels) {
            match label {
                Some(value) => sheet.label(Label {
                    case: id.clone(),
                    rater: own.name.clone(),
                    criterion: Label::DEFAULT_CRITERION.to_owned(),
                    value,
                    label_source: LabelSource::Human,
                })?,
                None => sheet.note(format!("no label of `{}`", own.name), &place),
            }
        }
    }
    let columns = reader.columns();
    let missing = |own: &&NamedColumn| !columns.contains(&own.column);
    if let Some(own) = named().find(missing) {
        Err(ImportError::NoColumn {
            path: sheet.file().to_owned(),
            column: own.column.clone(),
            columns: columns.iter().map(|own| format!("`{own}`")).collect(),
        })?;
    }
    for (own, _) in named().zip(&met).filter(|(_, met)| !**met) {
        sheet.note(format!("the column `{}` is empty throughout", own.column), "header");
    }
    skipped.extend(reader.skipped());
    Ok(skipped)
}

/// What the named columns of a row hold.
struct Cells {
    scores: Vec<Option<f64>>,
    labels: Vec<Option<LabelValue>>,
}

fn cells_of(
    cells: Vec<Option<Value>>,
    options: &ImportOptions,
    sheet: &Sheet,
    place: &str,
) -> Result<Cells, ImportError> {
    let mut cells = cells.into_iter();
    let scores = options.judges.iter().zip(&mut cells);
    let scores = scores
        .map(|(own, cell)| score(cell, &own.column, sheet, place))
        .collect::<Result<_, _>>()?;
    let labels = options.labels.iter().zip(cells);
    let labels = labels
        .map(|(own, cell)| label(cell, &own.column, sheet, place))
        .collect::<Result<_, _>>()?;
    Ok(Cells { scores, labels })
}

fn score(
    cell: Option<Value>,
    column: &str,
    sheet: &Sheet,
    place: &str,
) -> Result<Option<f64>, ImportError> {
    let number = match &cell {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => text.trim().parse().ok().filter(|own: &f64| own.is_finite()),
        Some(other) => number_of(other),
    };
    match (number, cell) {
        (None, Some(found)) => Err(sheet.value(place, column, "a number, or nothing", found)),
        (number, _) => Ok(number),
    }
}

fn label(
    cell: Option<Value>,
    column: &str,
    sheet: &Sheet,
    place: &str,
) -> Result<Option<LabelValue>, ImportError> {
    Ok(match cell {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Some(LabelValue::Number(number)),
            Ok(_) => return Err(sheet.value(place, column, "a number or a word", text)),
            Err(_) => Some(LabelValue::Text(text)),
        },
        Some(Value::Number(number)) => number.as_f64().map(LabelValue::Number),
        Some(Value::Bool(own)) => Some(LabelValue::Text(own.to_string())),
        Some(other) => return Err(sheet.value(place, column, "a number or a word", other)),
    })
}
