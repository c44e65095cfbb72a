//! `json`: whether the text is JSON, fits a schema, and holds values at given paths.

use std::path::PathBuf;

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::{QueryRef, js_path_process};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::super::{BuildContext, BuildError};
use super::fence::fences;
use super::finding::{Check, Finding, NotApplicable, Of, Rule};
use crate::case::Case;
use crate::text;

/// Options of `json`.
///
/// Score: 0 when the text is not JSON; else the share of the checks (the schema, each path)
/// that hold, 1 where there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonSpec {
    /// The text that is read.
    #[serde(default)]
    pub of: Of,
    /// Whether JSON in a fenced block (the first marked `json`, or unmarked) is accepted,
    /// words around it included.
    #[serde(default = "yes")]
    pub fenced: bool,
    /// A JSON Schema; needs a build with the feature `schema`.
    #[serde(default)]
    pub schema: Option<Value>,
    /// A file with a JSON Schema.
    #[serde(default)]
    pub schema_file: Option<PathBuf>,
    /// Values that must be there.
    #[serde(default)]
    pub paths: Vec<PathCheck>,
}

fn yes() -> bool {
    true
}

/// A place in the document and what must stand there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathCheck {
    /// A JSON Pointer (RFC 6901, `/items/0/name`) or a JSONPath (RFC 9535, `$.items[*].name`).
    pub path: String,
    /// The value that must stand there (at one of the places at least, for a JSONPath with
    /// several). Left out: any value, `null` included.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
}

/// Tells a `null` that is written from a key left out.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl JsonSpec {
    pub(super) fn compile(&self, context: &BuildContext) -> Result<Box<dyn Rule>, BuildError> {
        let mut paths = Vec::new();
        for (index, check) in self.paths.iter().enumerate() {
            let place = Place::parse(&format!("paths[{index}].path"), &check.path)?;
            paths.push((place, check.clone()));
        }
        let schema = self.schema_value(context)?;
        Ok(Box::new(Json {
            of: self.of,
            fenced: self.fenced,
            paths,
            // An inline schema is among the options already.
            file: self.schema_file.as_ref().and(schema.as_ref().map(|(_, value)| value.clone())),
            schema: schema.map(|(field, value)| compile_schema(field, &value)).transpose()?,
        }))
    }

    fn schema_value(
        &self,
        context: &BuildContext,
    ) -> Result<Option<(&'static str, Value)>, BuildError> {
        match (&self.schema, &self.schema_file) {
            (Some(_), Some(_)) => {
                Err(BuildError::invalid("schema_file", "is given beside `schema`: expected one"))
            }
            (Some(schema), None) => Ok(Some(("schema", schema.clone()))),
            (None, None) => Ok(None),
            (None, Some(path)) => {
                let path = context.resolve(path);
                crate::inputs::note(&path);
                let text = std::fs::read_to_string(&path).map_err(|source| BuildError::File {
                    field: "schema_file".into(),
                    path: path.clone(),
                    source,
                })?;
                let value = serde_json::from_str(&text).map_err(|error| {
                    BuildError::invalid(
                        "schema_file",
                        format!("`{}` is not JSON: {error}", path.display()),
                    )
                })?;
                Ok(Some(("schema_file", value)))
            }
        }
    }
}

#[cfg(feature = "schema")]
type Schema = super::schema::Schema;
#[cfg(not(feature = "schema"))]
type Schema = std::convert::Infallible;

#[cfg(feature = "schema")]
fn compile_schema(field: &'static str, value: &Value) -> Result<Schema, BuildError> {
    Schema::compile(value).map_err(|reason| BuildError::invalid(field, reason))
}

#[cfg(not(feature = "schema"))]
fn compile_schema(field: &'static str, _: &Value) -> Result<Schema, BuildError> {
    Err(BuildError::Feature { field: field.into(), feature: "schema" })
}

#[cfg(feature = "schema")]
fn schema_complaints(schema: &Schema, value: &Value) -> Vec<String> {
    schema.complaints(value)
}

#[cfg(not(feature = "schema"))]
fn schema_complaints(schema: &Schema, _: &Value) -> Vec<String> {
    match *schema {}
}

/// A path, parsed.
#[derive(Debug)]
enum Place {
    Pointer(String),
    Query(JpQuery),
}

impl Place {
    fn parse(field: &str, path: &str) -> Result<Self, BuildError> {
        if path.starts_with('$') {
            return parse_json_path(path).map(Self::Query).map_err(|error| {
                BuildError::invalid(field, format!("`{path}` is not a JSONPath: {error}"))
            });
        }
        if path.is_empty() || path.starts_with('/') {
            return Ok(Self::Pointer(path.to_owned()));
        }
        Err(BuildError::invalid(
            field,
            format!(
                "`{path}` is no path: expected a JSON Pointer such as `/{path}` or a JSONPath such as `$.{path}`"
            ),
        ))
    }

    fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Pointer(pointer) => value.pointer(pointer).into_iter().collect(),
            // A query that fails on this document (a comparison of unlike things) finds
            // nothing in it.
            Self::Query(query) => js_path_process(query, value)
                .map(|found| found.into_iter().map(QueryRef::val).collect())
                .unwrap_or_default(),
        }
    }
}

#[derive(Debug)]
struct Json {
    of: Of,
    fenced: bool,
    paths: Vec<(Place, PathCheck)>,
    schema: Option<Schema>,
    file: Option<Value>,
}

impl Rule for Json {
    fn identity(&self) -> Value {
        self.file.clone().unwrap_or_default()
    }

    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let value = match parse(self.of.text(case)?, self.fenced) {
            Ok(value) => value,
            Err(complaint) => return Ok(Finding::plain(Some(complaint))),
        };
        let mut checks = Vec::new();
        if let Some(schema) = &self.schema {
            let complaints = schema_complaints(schema, &value);
            let complaint = (!complaints.is_empty())
                .then(|| format!("does not fit the schema: {}", complaints.join("; ")));
            checks.push(Check::plain("schema", complaint));
        }
        for (place, check) in &self.paths {
            checks.push(Check::plain(&check.path, path_complaint(place, check, &value)));
        }
        Ok(if checks.is_empty() { Finding::new(1.0) } else { Finding::mean(checks) })
    }
}

/// The JSON value of a text: the whole text, or a fenced block in it.
pub(super) fn parse(text: &str, fenced: bool) -> Result<Value, String> {
    let error = match serde_json::from_str(text.trim()) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let blocks = if fenced { fences(text) } else { Vec::new() };
    let block = blocks
        .iter()
        .find(|block| block.language.eq_ignore_ascii_case("json"))
        .or_else(|| blocks.iter().find(|block| block.language.is_empty()));
    match block {
        Some(block) => serde_json::from_str(block.body).map_err(|error| {
            format!("the fenced block at line {} is not JSON: {error}", block.line)
        }),
        None if text.trim().is_empty() => Err("is empty: expected JSON".to_owned()),
        None => Err(format!("is not JSON: {error}")),
    }
}

fn path_complaint(place: &Place, check: &PathCheck, value: &Value) -> Option<String> {
    let found = place.find(value);
    let place = if check.path.is_empty() { "the document" } else { &check.path };
    let Some(first) = found.first() else {
        return Some(format!("`{place}` is missing: add it"));
    };
    let expected = check.equals.as_ref()?;
    if found.iter().any(|value| same(value, expected)) {
        return None;
    }
    let show = |value: &Value| text::excerpt(&value.to_string(), 60).into_owned();
    Some(format!("`{place}` is `{}`: expected `{}`", show(first), show(expected)))
}

/// Equality of JSON values in which `1` and `1.0` are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y
                || x.as_f64() == y.as_f64()
                    && !(x.is_u64() && y.is_u64() || x.is_i64() && y.is_i64())
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}
