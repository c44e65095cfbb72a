//! The JSON Schema of a judge's table: one object for each kind (and for each rule), which
//! holds the keys of the seat and those of the kind, and no others.
//!
//! Two objects side by side would each refuse the keys of the other.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use super::spec::{JudgeSpec, SeatKeys};

/// The schema of a judge's table.
pub(super) fn judge(generator: &mut SchemaGenerator) -> Schema {
    let seat = SeatKeys::json_schema(generator).to_value();
    let kinds = JudgeSpec::json_schema(generator).to_value();
    let mut objects = Vec::new();
    for kind in kinds.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
        match kind.get("oneOf").and_then(Value::as_array) {
            // A kind that is itself one of several, told apart by another key.
            Some(variants) => {
                objects.extend(variants.iter().map(|own| together([own, kind, &seat])));
            }
            None => objects.push(together([kind, &seat])),
        }
    }
    json_schema!({
        "description": "The keys of the seat and the keys of the judge's kind, side by side.",
        "oneOf": objects,
    })
}

/// One object with the keys of several, described by the first.
fn together<const N: usize>(parts: [&Value; N]) -> Value {
    let mut object = Map::from_iter([("type".to_owned(), "object".into())]);
    if let Some(description) = parts[0].get("description") {
        object.insert("description".to_owned(), description.clone());
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in parts {
        let own = part.get("properties").and_then(Value::as_object);
        for (key, schema) in own.into_iter().flatten() {
            properties.entry(key.clone()).or_insert_with(|| schema.clone());
        }
        let needed = part.get("required").and_then(Value::as_array);
        required.extend(needed.into_iter().flatten().cloned());
    }
    object.insert("properties".to_owned(), properties.into());
    object.insert("required".to_owned(), required.into());
    object.insert("additionalProperties".to_owned(), false.into());
    object.into()
}
