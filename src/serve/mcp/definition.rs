//! A tool as it is listed: its name, words for the model, and the schemas of what goes in and
//! out, made from the types themselves.
//!
//! The schemas are plain: no references, no `format`, an object at the root. Hosts pass them
//! on to model servers that know little more.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A tool as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// The JSON Schema of its structured answer.
    pub output_schema: Map<String, Value>,
    /// Whether it changes nothing but venire's own records.
    pub reads_only: bool,
    /// Whether it asks other machines.
    pub open_world: bool,
}

/// The schema of arguments.
pub(super) fn input<T: JsonSchema>() -> Map<String, Value> {
    schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of an answer: every key that is always written is required.
pub(super) fn output<T: JsonSchema>() -> Map<String, Value> {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            schema.remove("format");
            // The default of what may be left out is that it is left out.
            if schema.get("default").is_some_and(Value::is_null) {
                schema.remove("default");
            }
        }));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    match schema.to_value() {
        Value::Object(schema) => schema,
        // A derived schema of a struct is an object.
        _ => Map::new(),
    }
}

/// Reads a tool's arguments, or says what is wrong with them.
pub(super) fn read<T: DeserializeOwned>(
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<T, String> {
    crate::config::from_value(Value::Object(arguments))
        .map_err(|problem| format!("the arguments of `{tool}` are not right: {problem}"))
}
