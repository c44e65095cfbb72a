//! JSON Schema, behind one door: the only file that names the crate, which breaks often.
//!
//! Never fetches anything: a schema that refers to another document by URL is refused.

use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema(jsonschema::Validator);

impl Schema {
    /// Compiles a schema; the error says what is wrong with it.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        if !(schema.is_object() || schema.is_boolean()) {
            return Err("is not a JSON Schema: expected an object".to_owned());
        }
        jsonschema::validator_for(schema)
            .map(Self)
            .map_err(|error| format!("is not a JSON Schema: {error}"))
    }

    /// What does not fit, at most five findings, each with its place.
    pub(super) fn complaints(&self, value: &Value) -> Vec<String> {
        self.0
            .iter_errors(value)
            .take(5)
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "the document".to_owned() } else { place };
                let message = error.to_string();
                format!("`{place}`: {}", crate::text::excerpt(&message, 160))
            })
            .collect()
    }
}
