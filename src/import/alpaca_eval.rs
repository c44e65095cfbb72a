//! AlpacaEval: `annotations.json`.
//!
//! A pair is a case: `output_2` is judged against `output_1`. The preference runs from 1 (the
//! first) to 2 (the second), 1.5 or 0 is a draw; minus 1 it is the score of the second. In
//! which order the annotator saw the two is not in the file.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::document::Document;
use super::error::ImportError;
use super::sheet::Sheet;
use crate::case::Case;
use crate::dataset::{Judgement, Label};
use crate::verdict::Status;

#[derive(Deserialize)]
struct Row {
    instruction: String,
    output_1: String,
    output_2: String,
    generator_1: Option<String>,
    generator_2: Option<String>,
    dataset: Option<String>,
    annotator: Value,
    #[serde(deserialize_with = "present")]
    preference: Option<f64>,
    raw_completion: Option<Value>,
    price_per_example: Option<f64>,
    time_per_example: Option<f64>,
}

/// A field that must be there, and may be null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(deserializer)
}

pub(super) fn read(document: &Document, sheet: &mut Sheet) -> Result<Option<String>, ImportError> {
    let rows: Vec<Row> = document.parse()?;
    for (i, row) in rows.into_iter().enumerate() {
        let place = format!("row {i}");
        let score = match row.preference {
            None => None,
            // What older annotators wrote for a draw.
            Some(0.0) => Some(0.5),
            Some(own) if (1.0..=2.0).contains(&own) => Some(own - 1.0),
            Some(own) => {
                return Err(sheet.value(&place, "preference", "0, or a number from 1 to 2", own));
            }
        };
        if score.is_none() {
            sheet.note("a preference that could not be read: `unparseable`", &place);
        }
        let judge = match &row.annotator {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string(),
            other => return Err(sheet.value(&place, "annotator", "a name", other)),
        };
        let mut metadata = Map::new();
        for (key, own) in [("baseline_source", row.generator_1), ("dataset", row.dataset)] {
            if let Some(own) = own {
                metadata.insert(key.to_owned(), own.into());
            }
        }
        let group = blake3::hash(row.instruction.as_bytes()).to_hex()[..16].to_owned();
        let mut case = Case {
            input: Some(row.instruction),
            output: Some(row.output_2),
            baseline: Some(row.output_1),
            group: Some(group),
            source: row.generator_2,
            metadata,
            ..Case::default()
        };
        case.id = case.content_id();
        let case = sheet.case(case, &place)?;
        let mut metadata = Map::new();
        for (key, own) in [
            ("cost_usd", row.price_per_example),
            ("latency_ms", row.time_per_example.map(|own| own * 1000.0)),
        ] {
            if let Some(own) = own.and_then(serde_json::Number::from_f64) {
                metadata.insert(key.to_owned(), own.into());
            }
        }
        let own = Judgement {
            case,
            judge,
            criterion: Label::DEFAULT_CRITERION.to_owned(),
            status: if score.is_some() { Status::Ok } else { Status::Unparseable },
            score,
            raw: row.raw_completion.filter(|own| !own.is_null()),
            order: None,
            sample: 0,
            feedback: None,
            metadata,
        };
        sheet.judgement(own, &place)?;
    }
    Ok(None)
}
