//! lm-evaluation-harness: `samples_TASK_DATE.jsonl`, written with `--log_samples`.
//!
//! A document is a case, a metric a judge; with a filter its name follows after a comma, as in
//! the tool's own tables. Choices that were compared by their likelihood have no output that a
//! judge could read: such cases have none, and their choices stand in the metadata.

use std::io::BufRead as _;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::document::{finite, number_of, parse, text_of};
use super::error::ImportError;
use super::sheet::Sheet;
use crate::case::Case;
use crate::dataset::{DatasetError, Judgement, Label, Source};
use crate::verdict::Status;

/// The fields that every row has; the metrics stand beside them.
const FIELDS: [&str; 7] =
    ["doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "metrics"];

/// The first line that is not blank, and its number.
pub(super) fn first_line(path: &Path) -> Result<Option<(String, u64)>, ImportError> {
    let mut first = None;
    each_line(path, |text, line| {
        if first.is_none() {
            first = Some((finite(text).into_owned(), line));
        }
        Ok(first.is_none())
    })?;
    Ok(first)
}

/// Calls `then` with every line that is not blank, until it says false.
fn each_line(
    path: &Path,
    mut then: impl FnMut(&str, u64) -> Result<bool, ImportError>,
) -> Result<(), ImportError> {
    let source = Source::open(path)?;
    let failed = |error| {
        ImportError::Dataset(DatasetError::Read { path: path.display().to_string(), source: error })
    };
    let mut reader = source.bytes(None)?.reader;
    let (mut text, mut line) = (String::new(), 0);
    loop {
        text.clear();
        if reader.read_line(&mut text).map_err(failed)? == 0 {
            return Ok(());
        }
        line += 1;
        if !text.trim().is_empty() && !then(&text, line)? {
            return Ok(());
        }
    }
}

pub(super) fn read(path: &Path, sheet: &mut Sheet) -> Result<Option<String>, ImportError> {
    let name = path.display().to_string();
    let task = task_of(path);
    each_line(path, |text, line| {
        let text = finite(text);
        let row: Map<String, Value> = parse(&text, &name, line - 1)?;
        let place = format!("line {line}");
        if let Some(missing) = FIELDS.iter().find(|key| !row.contains_key(**key)) {
            return Err(ImportError::Field {
                path: name.clone(),
                line,
                field: (*missing).to_owned(),
                message: "missing: expected a row of `--log_samples` (lm-eval 0.4.5 or newer)"
                    .to_owned(),
            });
        }
        let case = case(&row, task.as_deref(), sheet, &place)?;
        let id = sheet.case(case, &place)?;
        metrics(&row, &id, sheet, &place)?;
        Ok(true)
    })?;
    Ok(None)
}

/// The task that the file's name says.
fn task_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_prefix("samples_")?;
    let name = name.split(".jsonl").next()?;
    // The date is behind the last underscore and begins with a year.
    let (task, date) = name.rsplit_once('_')?;
    let year = date.get(..5)?;
    (year.ends_with('-') && year[..4].bytes().all(|b| b.is_ascii_digit())).then(|| task.to_owned())
}

fn case(
    row: &Map<String, Value>,
    task: Option<&str>,
    sheet: &mut Sheet,
    place: &str,
) -> Result<Case, ImportError> {
    let id = match &row["doc_id"] {
        Value::Number(id) => id.to_string(),
        Value::String(id) => id.clone(),
        other => return Err(sheet.value(place, "doc_id", "a number", other)),
    };
    let requests = requests(&row["arguments"]);
    let prompts: Vec<&str> = requests.iter().filter_map(|own| own.first()?.as_str()).collect();
    let Some(replies) = row["resps"].as_array() else {
        return Err(sheet.value(place, "resps", "a list", &row["resps"]));
    };
    let mut metadata = Map::new();
    metadata.insert("doc".to_owned(), row["doc"].clone());
    let output = match replies.as_slice() {
        // One request, answered once, with a text.
        [Value::Array(one)] if one.len() == 1 && one[0].is_string() => text_of(&one[0]),
        [Value::Array(several)] if several.len() > 1 && several[0].is_string() => {
            sheet.note("several replies to one request: no single output", place);
            metadata.insert("replies".to_owned(), json!(several));
            None
        }
        _ => {
            sheet.note("no output: choices were compared by their likelihood", place);
            let choices: Vec<&Value> =
                requests.iter().filter_map(|own| own.get(1).copied()).collect();
            metadata.insert("choices".to_owned(), json!(choices));
            None
        }
    };
    // The choices of one document share their prompt.
    let same = prompts.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(Case {
        id: task.map_or_else(|| id.clone(), |task| format!("{task}/{id}")),
        input: prompts.first().filter(|_| same).map(|own| (*own).to_owned()),
        output,
        expected: text_of(&row["target"]),
        metadata,
        ..Case::default()
    })
}

/// The requests of a document: `{"gen_args_0": {"arg_0": ..}}`, or lists in older files.
fn requests(arguments: &Value) -> Vec<Vec<&Value>> {
    let parts = |own: &'_ Value| -> usize { own.as_object().map_or(0, Map::len) };
    match arguments {
        Value::Object(map) => (0..map.len())
            .filter_map(|i| map.get(&format!("gen_args_{i}")))
            .map(|own| {
                (0..parts(own)).filter_map(|j| own.get(format!("arg_{j}").as_str())).collect()
            })
            .collect(),
        Value::Array(list) => {
            list.iter().map(|own| own.as_array().into_iter().flatten().collect()).collect()
        }
        _ => Vec::new(),
    }
}

fn metrics(
    row: &Map<String, Value>,
    id: &str,
    sheet: &mut Sheet,
    place: &str,
) -> Result<(), ImportError> {
    let Some(names) = row["metrics"].as_array() else {
        return Err(sheet.value(place, "metrics", "a list of names", &row["metrics"]));
    };
    let filter = row.get("filter").and_then(Value::as_str).filter(|own| *own != "none");
    for name in names {
        let Some(metric) = name.as_str() else {
            return Err(sheet.value(place, "metrics", "a list of names", name));
        };
        let Some(value) = row.get(metric) else {
            return Err(sheet.value(place, metric, "the metric that `metrics` names", "nothing"));
        };
        if value.is_array() || value.is_object() {
            sheet.note(format!("`{metric}` is no number of one document: left out"), place);
            continue;
        }
        let score = number_of(value);
        if score.is_none() && !value.is_null() {
            return Err(sheet.value(place, metric, "a number", value));
        }
        if score.is_none() {
            sheet.note(format!("`{metric}` has no value: `abstained`"), place);
        }
        let judge = filter.map_or_else(|| metric.to_owned(), |filter| format!("{metric},{filter}"));
        let mut metadata = Map::new();
        metadata.insert("filtered".to_owned(), row["filtered_resps"].clone());
        let own = Judgement {
            case: id.to_owned(),
            judge,
            criterion: Label::DEFAULT_CRITERION.to_owned(),
            status: if score.is_some() { Status::Ok } else { Status::Abstained },
            score,
            raw: None,
            order: None,
            sample: 0,
            feedback: None,
            metadata,
        };
        sheet.judgement(own, place)?;
    }
    Ok(())
}
