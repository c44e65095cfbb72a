//! JSON Schemas for written answers.
//!
//! Values are enumerations: servers do not enforce number ranges, or enforce them by cutting
//! digits. Texts have no length limit: a server that enforces one may fill the rest with white
//! space. Servers that build a grammar from the schema keep the order of its properties, and
//! the order here is that of their names, so the names are chosen for it: `analysis` stands
//! before every answer and `why` after.

use serde_json::{Map, Value, json};

use super::shape::Shape;
use super::spec::asked_levels;
use crate::score::Scale;

/// The schema of a reply.
pub(super) fn of(shape: &Shape, reason_first: bool) -> Value {
    match shape {
        Shape::YesNo => entry("answer", yes_no(), reason_first),
        Shape::Score { scale } => entry("score", levels(*scale), reason_first),
        Shape::Choice { choices } => {
            let labels: Vec<Value> = choices
                .iter()
                .map(|c| Value::from(c.label.as_str()))
                .chain([Value::Null])
                .collect();
            entry("choice", json!({ "type": ["string", "null"], "enum": labels }), reason_first)
        }
        Shape::Pairwise => {
            entry("preferred", json!({ "type": "string", "enum": ["A", "B", "tie"] }), reason_first)
        }
        Shape::Checklist { questions } => {
            let parts = (1..=*questions)
                .map(|i| (format!("q{i}"), entry("answer", yes_no(), reason_first)));
            object([("answers".to_owned(), object(parts))])
        }
        Shape::Rubric { scale, criteria } => {
            let parts = criteria
                .iter()
                .map(|name| (name.clone(), entry("score", levels(*scale), reason_first)));
            object([("criteria".to_owned(), object(parts))])
        }
    }
}

fn yes_no() -> Value {
    json!({ "type": ["string", "null"], "enum": ["yes", "no", null] })
}

fn levels(scale: Scale) -> Value {
    let levels = asked_levels(scale);
    let whole = levels.iter().all(|level| level.fract() == 0.0);
    let mut values: Vec<Value> =
        levels.iter().map(|level| super::reply::text::raw_number(*level)).collect();
    values.push(Value::Null);
    json!({ "type": [if whole { "integer" } else { "number" }, "null"], "enum": values })
}

fn entry(name: &str, value: Value, reason_first: bool) -> Value {
    let reason = if reason_first { "analysis" } else { "why" };
    object([(reason.to_owned(), json!({ "type": "string" })), (name.to_owned(), value)])
}

fn object(properties: impl IntoIterator<Item = (String, Value)>) -> Value {
    let properties: Map<String, Value> = properties.into_iter().collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_stands_where_it_was_asked_for_in_every_mode() {
        for shape in [
            Shape::YesNo,
            Shape::Score { scale: "1-5".parse().unwrap() },
            Shape::Choice { choices: Vec::new() },
            Shape::Pairwise,
        ] {
            for first in [true, false] {
                let schema = of(&shape, first);
                let names: Vec<&String> =
                    schema["properties"].as_object().unwrap().keys().collect();
                assert_eq!(names.len(), 2, "{schema}");
                assert_eq!(names[0] == "analysis", first, "{names:?}");
                assert_eq!(names[1] == "why", !first, "{names:?}");
            }
        }
    }

    #[test]
    fn levels_are_an_enumeration_with_null_for_what_cannot_be_judged() {
        let shape = Shape::Score { scale: Scale::UNIT };
        let values = &of(&shape, true)["properties"]["score"]["enum"];
        assert_eq!(values.to_string(), "[0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,null]");
    }
}
