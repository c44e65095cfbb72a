//! Tidy CSV: one row a figure of a judge, the panel, the plain median or a baseline.
//!
//! It walks the JSON and names no figure itself, so that no figure can be forgotten. What is
//! undefined keeps its row and says why.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Map, Value};

use crate::report::ReportError;
use crate::report::words::plain;

/// Keys of numbers that are no figures of a judge.
const FACTS: [&str; 5] = ["n", "groups", "quorum", "distinct_keys", "subsets_compared"];

struct Figure {
    estimate: Option<Value>,
    lower: Option<Value>,
    upper: Option<Value>,
    n: Option<Value>,
    undefined: String,
}

pub(super) fn write(out: &mut dyn Write, calibration: &Value) -> Result<(), ReportError> {
    let mut writer = csv::Writer::from_writer(out);
    let failed = |error: csv::Error| ReportError::Write(std::io::Error::other(error));
    writer
        .write_record(["judge", "metric", "estimate", "lower", "upper", "n", "undefined"])
        .map_err(failed)?;
    for (name, figures) in everyone(calibration) {
        for (metric, own) in figures {
            let text = |value: &Option<Value>| value.as_ref().map(number).unwrap_or_default();
            writer
                .write_record([
                    &cell(&name),
                    &metric,
                    &text(&own.estimate),
                    &text(&own.lower),
                    &text(&own.upper),
                    &text(&own.n),
                    &own.undefined,
                ])
                .map_err(failed)?;
        }
    }
    writer.flush()?;
    Ok(())
}

/// A number with twelve significant digits: the last ones of a sum differ between machines.
fn number(value: &Value) -> String {
    match value.as_f64() {
        Some(own) if value.is_f64() => {
            format!("{own:.11e}").parse::<f64>().unwrap_or(own).to_string()
        }
        _ => value.to_string(),
    }
}

/// A name that no spreadsheet takes for a formula.
fn cell(name: &str) -> String {
    let name = plain(name);
    if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name }
}

fn everyone(calibration: &Value) -> Vec<(String, BTreeMap<String, Figure>)> {
    let list = |key: &str| calibration.get(key).and_then(Value::as_array).into_iter().flatten();
    let name = |of: &Value| of.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
    let mut all: Vec<(String, BTreeMap<String, Figure>)> =
        list("judges").map(|judge| (name(judge), figures(judge))).collect();
    if let Some(panel) = calibration.get("panel") {
        all.push(("panel".to_owned(), figures(panel)));
        for plain in ["plain_median", "plain_median_complete_cases"] {
            if let Some(own) = panel.get(plain) {
                all.push((plain.to_owned(), figures(own)));
            }
        }
    }
    if let Some(own) = calibration.get("certificate") {
        all.push(("certificate".to_owned(), figures(own)));
    }
    all.extend(list("baselines").map(|own| (format!("({})", name(own)), figures(own))));
    all
}

fn figures(of: &Value) -> BTreeMap<String, Figure> {
    let mut found = BTreeMap::new();
    let Some(of) = of.as_object() else { return found };
    let n = of.get("n").or_else(|| of.get("n_bad"));
    collect(of, n, &mut found);
    // Those with an interval replace the bare ones of the same name.
    if let Some(intervals) = of.get("intervals").and_then(Value::as_object) {
        collect(intervals, n, &mut found);
    }
    if let Some(parts) = of.get("corp").and_then(Value::as_object) {
        let mut own = BTreeMap::new();
        collect(parts, n, &mut own);
        found.extend(own.into_iter().map(|(key, figure)| (format!("corp_{key}"), figure)));
    }
    found
}

fn collect(of: &Map<String, Value>, n: Option<&Value>, found: &mut BTreeMap<String, Figure>) {
    for (key, value) in of {
        let own = match value {
            Value::Number(_) if !FACTS.contains(&key.as_str()) => Figure {
                estimate: Some(value.clone()),
                lower: None,
                upper: None,
                n: n.cloned(),
                undefined: String::new(),
            },
            Value::Object(map) if map.contains_key("estimate") => Figure {
                estimate: map.get("estimate").cloned(),
                lower: map.get("lower").cloned(),
                upper: map.get("upper").cloned(),
                n: map.get("n").or(n).cloned(),
                undefined: String::new(),
            },
            Value::Object(map) if map.len() == 1 && map.contains_key("undefined") => Figure {
                estimate: None,
                lower: None,
                upper: None,
                n: n.cloned(),
                undefined: map["undefined"].as_str().unwrap_or_default().to_owned(),
            },
            _ => continue,
        };
        found.insert(key.clone(), own);
    }
}
