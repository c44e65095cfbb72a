//! DeepEval: a test run in JSON (`.deepeval/.latest_run_full.json`, or `test_run_*.json` in the
//! results folder).
//!
//! A test case is a case, a metric a judge. A metric with an error has no score. Of a
//! conversation the turns are the output.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::document::{Document, text_of};
use super::error::ImportError;
use super::sheet::Sheet;
use crate::case::Case;
use crate::dataset::{Judgement, Label};
use crate::verdict::Status;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wrapped {
    test_run_data: Option<Run>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    #[serde(default)]
    test_cases: Vec<Single>,
    #[serde(default)]
    conversational_test_cases: Vec<Conversation>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Single {
    name: String,
    input: Value,
    actual_output: Option<Value>,
    expected_output: Option<Value>,
    context: Option<Value>,
    retrieval_context: Option<Value>,
    metrics_data: Option<Vec<Metric>>,
    metadata: Option<Map<String, Value>>,
    #[serde(alias = "additionalMetadata")]
    additional_metadata: Option<Map<String, Value>>,
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conversation {
    name: String,
    #[serde(default)]
    turns: Vec<Turn>,
    scenario: Option<String>,
    expected_outcome: Option<String>,
    context: Option<Value>,
    metrics_data: Option<Vec<Metric>>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric {
    name: String,
    threshold: Option<f64>,
    success: Option<bool>,
    score: Option<f64>,
    reason: Option<String>,
    evaluation_model: Option<String>,
    error: Option<String>,
    evaluation_cost: Option<f64>,
}

pub(super) fn read(document: &Document, sheet: &mut Sheet) -> Result<Option<String>, ImportError> {
    let run = match document.parse::<Wrapped>()?.test_run_data {
        Some(run) => run,
        None => document.parse::<Run>()?,
    };
    // One test function with many parameters has one name for all its cases.
    let mut times: HashMap<&str, u32> = HashMap::new();
    let names = run.test_cases.iter().map(|own| own.name.as_str());
    for name in names.chain(run.conversational_test_cases.iter().map(|own| own.name.as_str())) {
        *times.entry(name).or_default() += 1;
    }
    let id = |name: &str, i: usize| {
        if times.get(name) == Some(&1) { name.to_owned() } else { format!("{name}/{i}") }
    };
    for (i, own) in run.test_cases.iter().enumerate() {
        let place = format!("test case {i}");
        let mut metadata = own.metadata.clone().unwrap_or_default();
        metadata.extend(own.additional_metadata.clone().unwrap_or_default());
        if let Some(tags) = &own.tags {
            metadata.entry("tags").or_insert_with(|| json!(tags));
        }
        let case = Case {
            id: id(&own.name, i),
            input: text_of(&own.input),
            output: own.actual_output.as_ref().and_then(text_of),
            expected: own.expected_output.as_ref().and_then(text_of),
            context: own.retrieval_context.as_ref().or(own.context.as_ref()).and_then(text_of),
            metadata,
            ..Case::default()
        };
        if own.retrieval_context.is_some() && own.context.is_some() {
            sheet.note("both contexts: the retrieved one is taken", &place);
        }
        metrics(case, own.metrics_data.as_deref(), sheet, &place)?;
    }
    for (i, own) in run.conversational_test_cases.iter().enumerate() {
        let place = format!("conversation {i}");
        let turns: Vec<String> =
            own.turns.iter().map(|turn| format!("{}: {}", turn.role, turn.content)).collect();
        let case = Case {
            id: id(&own.name, run.test_cases.len() + i),
            input: own.scenario.clone(),
            output: (!turns.is_empty()).then(|| turns.join("\n\n")),
            expected: own.expected_outcome.clone(),
            context: own.context.as_ref().and_then(text_of),
            metadata: own.metadata.clone().unwrap_or_default(),
            ..Case::default()
        };
        metrics(case, own.metrics_data.as_deref(), sheet, &place)?;
    }
    Ok(None)
}

fn metrics(
    case: Case,
    metrics: Option<&[Metric]>,
    sheet: &mut Sheet,
    place: &str,
) -> Result<(), ImportError> {
    if case.output.is_none() {
        sheet.note("no output: there is nothing to judge", place);
    }
    let id = sheet.case(case, place)?;
    let metrics = metrics.unwrap_or_default();
    if metrics.is_empty() {
        sheet.note("a test case without metrics: a case, and no judgement", place);
    }
    for own in metrics {
        let status = match (&own.error, own.score) {
            (Some(_), _) => Status::ProviderError,
            (None, Some(score)) if score.is_finite() => Status::Ok,
            (None, _) => Status::Abstained,
        };
        if status != Status::Ok {
            sheet.note(format!("a metric without a score: `{status}`"), place);
        }
        let mut metadata = Map::new();
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                metadata.insert(key.to_owned(), value);
            }
        };
        add("threshold", own.threshold.map(Value::from));
        add("pass", own.success.map(Value::from));
        add("model", own.evaluation_model.clone().map(Value::from));
        add("cost_usd", own.evaluation_cost.map(Value::from));
        let judgement = Judgement {
            case: id.clone(),
            judge: own.name.clone(),
            criterion: Label::DEFAULT_CRITERION.to_owned(),
            status,
            score: own.score.filter(|_| status == Status::Ok),
            raw: None,
            order: None,
            sample: 0,
            feedback: own.error.clone().or_else(|| own.reason.clone()),
            metadata,
        };
        sheet.judgement(judgement, place)?;
    }
    Ok(())
}
