//! Expectations of a text: a response's body or a file's content.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Seen;
use crate::judge::process::plain;

/// What is said of a text: a response's body or a file's content.
#[derive(Clone, Debug, Default)]
pub(super) struct TextRules {
    pub(super) contains: Option<String>,
    pub(super) regex: Option<regex::Regex>,
    pub(super) json: BTreeMap<String, Value>,
}

impl TextRules {
    pub(super) fn is_empty(&self) -> bool {
        self.contains.is_none() && self.regex.is_none() && self.json.is_empty()
    }

    pub(super) fn look(&self, bytes: &[u8]) -> Seen {
        let text = String::from_utf8_lossy(bytes);
        if let Some(wanted) = &self.contains
            && !text.contains(wanted.as_str())
        {
            return Seen::Unmet(format!("does not contain `{wanted}`"));
        }
        if let Some(regex) = &self.regex
            && !regex.is_match(&text)
        {
            return Seen::Unmet(format!("does not match `{regex}`"));
        }
        if self.json.is_empty() {
            return Seen::Met;
        }
        let value: Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(error) => return Seen::Unmet(format!("is not JSON: {error}")),
        };
        for (pointer, wanted) in &self.json {
            match value.pointer(pointer) {
                Some(found) if same(found, wanted) => {}
                Some(found) => {
                    let shown = plain::head(&found.to_string(), 200);
                    return Seen::Unmet(format!("`{pointer}` is {shown}, expected {wanted}"));
                }
                None => return Seen::Unmet(format!("has no `{pointer}`, expected {wanted}")),
            }
        }
        Seen::Met
    }
}

/// Equal as JSON, with 1 and 1.0 the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}
