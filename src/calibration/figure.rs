//! Figures as calibration reports them: a point, its interval, its count, or why there is none.
//!
//! In JSON an undefined figure is `{"undefined": "reason"}`; [`list_undefined`] collects every
//! one of a report, so that none hides in the depth.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::stats::{Defined, Estimate, Method, Reason, deserialize_defined, serialize_defined};

/// A point with its interval and count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The point estimate.
    pub estimate: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Observations it stands on.
    pub n: u64,
    /// Nominal coverage of the interval.
    pub level: f64,
    /// How the interval was made.
    pub method: Method,
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Self {
        Self {
            estimate: estimate.point,
            lower: estimate.interval.lower,
            upper: estimate.interval.upper,
            n: estimate.n as u64,
            level: estimate.interval.level,
            method: estimate.method,
        }
    }
}

impl Figure {
    /// With both ends moved into `[low, high]`.
    #[must_use]
    pub fn clipped(self, low: f64, high: f64) -> Self {
        Self { lower: self.lower.clamp(low, high), upper: self.upper.clamp(low, high), ..self }
    }
}

/// A least accepted score in words: at most four decimals, rounded up, so that nobody accepts
/// below it by reading. JSON has it exactly.
#[must_use]
pub fn least(value: f64) -> String {
    let scaled = value * 1e4;
    // What rounding adds to a round number is no reason to go up.
    let near = scaled.round();
    let up =
        if (scaled - near).abs() <= 1e-9 * scaled.abs().max(1.0) { near } else { scaled.ceil() };
    // Adding 0.0 turns a negative nothing into nothing.
    let text = format!("{:.4}", up / 1e4 + 0.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A value, or the reason why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured<T = f64>(pub Defined<T>);

impl<T> Measured<T> {
    /// The value, where there is one.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        self.0.as_ref().ok()
    }

    /// Undefined for a reason.
    #[must_use]
    pub fn undefined(reason: Reason) -> Self {
        Self(Err(reason.into()))
    }
}

impl<T> From<Defined<T>> for Measured<T> {
    fn from(value: Defined<T>) -> Self {
        Self(value)
    }
}

impl From<Defined<Estimate>> for Measured<Figure> {
    fn from(value: Defined<Estimate>) -> Self {
        Self(value.map(Figure::from))
    }
}

impl<T: JsonSchema> JsonSchema for Measured<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Measured_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({
            "description": "A value, or the reason why there is none.",
            "anyOf": [value, {
                "type": "object",
                "properties": {"undefined": {"type": "string"}},
                "required": ["undefined"],
                "additionalProperties": false,
            }],
        })
    }
}

impl<T: Serialize> Serialize for Measured<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_defined(&self.0, serializer)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Measured<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_defined(deserializer).map(Self)
    }
}

/// One figure without a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UndefinedFigure {
    /// Where it stands, such as `judges[gpt].cohen_kappa`.
    pub figure: String,
    /// The reason's code.
    pub reason: String,
    /// The reason in words.
    pub explanation: &'static str,
}

/// Every `{"undefined": ...}` of a report, in its order. Entries of lists are named by their
/// `name` where they have one.
#[must_use]
pub fn list_undefined(report: &Value) -> Vec<UndefinedFigure> {
    let mut found = Vec::new();
    walk(report, &mut String::new(), &mut found);
    found
}

fn walk(value: &Value, path: &mut String, found: &mut Vec<UndefinedFigure>) {
    let length = path.len();
    match value {
        Value::Object(map) => {
            if let (1, Some(Value::String(code))) = (map.len(), map.get("undefined")) {
                let known = Reason::ALL.iter().find(|reason| reason.code() == code);
                found.push(UndefinedFigure {
                    figure: path.clone(),
                    reason: code.clone(),
                    explanation: known.map_or("", |reason| reason.explanation()),
                });
                return;
            }
            for (key, value) in map {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                walk(value, path, found);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                match item.get("name").and_then(Value::as_str) {
                    Some(name) => path.push_str(&format!("[{name}]")),
                    None => path.push_str(&format!("[{place}]")),
                }
                walk(item, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_undefined_figure_is_listed_with_its_place() {
        let report = json!({
            "judges": [{"name": "a", "auc": {"undefined": "no_negatives"}, "n": 3}],
            "panel": {"undefined_note": "x", "phi": [1, {"undefined": "constant_input"}]},
        });
        let listed = list_undefined(&report);
        let places: Vec<&str> = listed.iter().map(|entry| entry.figure.as_str()).collect();
        assert_eq!(places, ["judges[a].auc", "panel.phi[1]"]);
        assert_eq!(listed[1].explanation, "a series is constant");
    }

    #[test]
    fn a_threshold_in_words_is_short_and_never_below_itself() {
        assert_eq!(least(4.817500000000001), "4.8175");
        assert_eq!(least(4.287059412701866), "4.2871");
        assert_eq!(
            [4.0, 0.5, -0.00001, -2.34567, 0.0].map(least),
            ["4", "0.5", "0", "-2.3456", "0"]
        );
        assert_eq!(least(f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn a_measured_value_survives_json() {
        for value in [Measured(Ok(0.25)), Measured::undefined(Reason::NoData)] {
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Measured>(&text).unwrap(), value);
        }
    }
}
