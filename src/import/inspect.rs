//! Inspect: an eval log in JSON, version 2.
//!
//! A sample's epoch is a case, a scorer a judge, and each key of a score with several values a
//! criterion. The letters C, I, P and N are read as Inspect reads them (1, 0, 0.5, 0). A value
//! of NaN is Inspect's *unscored* and a failed measurement here. Where somebody edited a score,
//! the scorer's own word is the judgement and the edit a label by its author.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::document::{Document, number_of, text_of};
use super::error::ImportError;
use super::sheet::Sheet;
use crate::case::Case;
use crate::dataset::{Judgement, Label, LabelSource, LabelValue};
use crate::verdict::Status;

const KNOWN: u64 = 2;
const UNCHANGED: &str = "UNCHANGED";
/// How a log names a text that it keeps once and apart.
const ATTACHMENT: &str = "attachment://";

#[derive(Deserialize)]
struct Probe {
    version: Value,
}

#[derive(Deserialize)]
struct Log {
    status: String,
    eval: Eval,
    samples: Option<Vec<Sample>>,
}

#[derive(Deserialize)]
struct Eval {
    task: String,
    model: String,
    #[serde(default)]
    packages: Map<String, Value>,
}

#[derive(Deserialize)]
struct Sample {
    id: Value,
    epoch: u64,
    input: Value,
    choices: Option<Vec<String>>,
    #[serde(default)]
    target: Value,
    output: Option<Output>,
    scores: Option<BTreeMap<String, Score>>,
    #[serde(default)]
    metadata: Map<String, Value>,
    error: Option<Value>,
    #[serde(default)]
    attachments: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Output {
    completion: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Value,
}

#[derive(Deserialize)]
struct Score {
    #[serde(default)]
    value: Value,
    answer: Option<String>,
    explanation: Option<String>,
    reason: Option<String>,
    #[serde(default)]
    history: Vec<Edit>,
}

#[derive(Deserialize)]
struct Edit {
    #[serde(default = "unchanged")]
    value: Value,
    explanation: Option<String>,
    provenance: Option<Provenance>,
}

#[derive(Deserialize)]
struct Provenance {
    author: String,
}

fn unchanged() -> Value {
    UNCHANGED.into()
}

pub(super) fn read(document: &Document, sheet: &mut Sheet) -> Result<Option<String>, ImportError> {
    let version = document.parse::<Probe>()?.version;
    if version.as_u64() != Some(KNOWN) {
        return Err(ImportError::Version {
            path: document.name().to_owned(),
            tool: "Inspect",
            found: version.to_string(),
            known: "2",
            cure: "write it again with `inspect log convert FILE --to json --output-dir FOLDER` of a current Inspect",
        });
    }
    let log: Log = document.parse()?;
    if log.status != "success" {
        sheet.note(format!("the log's status is `{}`: samples may be missing", log.status), "log");
    }
    let epochs = log.samples.iter().flatten().any(|own| own.epoch > 1);
    for (i, sample) in log.samples.into_iter().flatten().enumerate() {
        let place = format!("sample {i}");
        let own = case(&sample, &log.eval, epochs, sheet, &place)?;
        let id = sheet.case(own, &place)?;
        for (scorer, score) in &sample.scores.unwrap_or_default() {
            scored(scorer, score, &id, sheet, &place)?;
        }
    }
    let package = log.eval.packages.get("inspect_ai").and_then(Value::as_str);
    Ok(package.map(str::to_owned))
}

fn case(
    sample: &Sample,
    eval: &Eval,
    epochs: bool,
    sheet: &mut Sheet,
    place: &str,
) -> Result<Case, ImportError> {
    let name = match &sample.id {
        Value::String(id) => id.clone(),
        Value::Number(id) => id.to_string(),
        other => return Err(sheet.value(place, "id", "text or a number", other)),
    };
    let resolve = |text: String| resolved(text, &sample.attachments, sheet, place);
    let input = text_of(&plain_chat(&sample.input)).map(resolve).transpose()?;
    let output = match &sample.output {
        Some(own) => match (&own.completion, own.choices.first()) {
            // A completion without a choice is what Inspect writes where there was none.
            (Some(completion), first) if first.is_some() || !completion.is_empty() => {
                Some(completion.clone())
            }
            (_, Some(first)) => text_of(&first.message.content),
            _ => None,
        },
        None => None,
    };
    let output = output.map(resolve).transpose()?;
    if sample.error.is_some() {
        sheet.note("a sample that ended in an error", place);
    }
    if output.is_none() {
        sheet.note("no output: there is nothing to judge", place);
    }
    let mut metadata = sample.metadata.clone();
    metadata.entry("task").or_insert_with(|| eval.task.clone().into());
    if let Some(choices) = &sample.choices {
        metadata.entry("choices").or_insert_with(|| json!(choices));
    }
    Ok(Case {
        id: if epochs { format!("{name}/{}", sample.epoch) } else { name.clone() },
        input,
        output,
        expected: text_of(&sample.target).filter(|own| !own.is_empty()),
        group: Some(name),
        source: Some(eval.model.clone()),
        metadata,
        ..Case::default()
    })
}

/// Messages with what was said in them alone: ids and origins are the log's own affair.
fn plain_chat(input: &Value) -> Value {
    let Value::Array(messages) = input else { return input.clone() };
    let kept = messages.iter().map(|message| {
        let mut own = Map::new();
        for key in ["role", "content", "tool_calls"] {
            if let Some(value) = message.get(key).filter(|value| !value.is_null()) {
                own.insert(key.to_owned(), value.clone());
            }
        }
        Value::Object(own)
    });
    Value::Array(kept.collect())
}

/// A text with the parts that the log keeps apart in their place.
fn resolved(
    text: String,
    attachments: &HashMap<String, String>,
    sheet: &Sheet,
    place: &str,
) -> Result<String, ImportError> {
    if !text.contains(ATTACHMENT) {
        return Ok(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(ATTACHMENT) {
        let (before, from) = rest.split_at(start);
        let key = &from[ATTACHMENT.len()..];
        let end = key.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(key.len());
        let Some(own) = attachments.get(&key[..end]) else {
            return Err(sheet.value(
                place,
                "attachments",
                "the text that an `attachment://` stands for",
                &key[..end],
            ));
        };
        whole.push_str(before);
        whole.push_str(own);
        rest = &key[end..];
    }
    whole.push_str(rest);
    Ok(whole)
}

fn scored(
    scorer: &str,
    score: &Score,
    id: &str,
    sheet: &mut Sheet,
    place: &str,
) -> Result<(), ImportError> {
    // The first entry of a history is what the scorer said.
    let original = score.history.first().filter(|own| own.provenance.is_none());
    let value = original.map_or(&score.value, |own| &own.value);
    let value = if value.as_str() == Some(UNCHANGED) { &score.value } else { value };
    for (criterion, value) in criteria(value) {
        let field = format!("scores.{scorer}.value");
        if value.is_array() || value.is_object() {
            sheet.note(format!("a score of `{scorer}` is a list: left out"), place);
            continue;
        }
        let number = number(value);
        let status = match (number, value) {
            (Some(_), _) => Status::Ok,
            (None, Value::Null) => {
                sheet.note(format!("`{scorer}` is unscored: no score"), place);
                match score.reason.as_deref() {
                    Some("grader_failed") => Status::Unparseable,
                    Some("scoring_failed") => Status::Internal,
                    _ => Status::Abstained,
                }
            }
            (None, word) => return Err(sheet.value(place, &field, "a number, C, I, P or N", word)),
        };
        if value.is_string() {
            sheet.note(
                format!("a word of `{scorer}`: C and yes are 1, P is 0.5, I, N and no are 0"),
                place,
            );
        }
        let mut metadata = Map::new();
        for (key, text) in [("answer", &score.answer), ("reason", &score.reason)] {
            if let Some(text) = text {
                metadata.insert(key.to_owned(), text.clone().into());
            }
        }
        let own = Judgement {
            case: id.to_owned(),
            judge: scorer.to_owned(),
            criterion: criterion.to_owned(),
            status,
            score: number,
            raw: (!value.is_null()).then(|| value.clone()),
            order: None,
            sample: 0,
            // The explanation of an edit is its author's.
            feedback: original.map_or(&score.explanation, |own| &own.explanation).clone(),
            metadata,
        };
        sheet.judgement(own, place)?;
    }
    let edits = score.history.iter().rev();
    let last = edits
        .filter(|own| own.value.as_str() != Some(UNCHANGED))
        .find_map(|own| own.provenance.as_ref().map(|by| (by.author.as_str(), &own.value)));
    if let Some((author, value)) = last {
        for (criterion, value) in criteria(value) {
            let Some(number) = number(value) else { continue };
            sheet.note(
                format!("an edited score of `{scorer}`: the edit is a label by its author"),
                place,
            );
            sheet.label(Label {
                case: id.to_owned(),
                rater: author.to_owned(),
                criterion: criterion.to_owned(),
                value: LabelValue::Number(number),
                label_source: LabelSource::Human,
            })?;
        }
    }
    Ok(())
}

fn criteria(value: &Value) -> Vec<(&str, &Value)> {
    match value {
        Value::Object(values) => values.iter().map(|(key, own)| (key.as_str(), own)).collect(),
        own => vec![(Label::DEFAULT_CRITERION, own)],
    }
}

/// A score as Inspect's own metrics read it.
fn number(value: &Value) -> Option<f64> {
    let Value::String(word) = value else { return number_of(value) };
    match word.as_str() {
        "C" => Some(1.0),
        "P" => Some(0.5),
        "I" | "N" => Some(0.0),
        other => match other.to_lowercase().as_str() {
            "yes" | "true" => Some(1.0),
            "no" | "false" => Some(0.0),
            text => text.parse().ok().filter(|own: &f64| own.is_finite()),
        },
    }
}
