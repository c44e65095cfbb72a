//! Writes a request's body straight into bytes, with the configured extra body merged in.
//!
//! The extra body wins: a field of it replaces ours, `null` removes ours, and an object is
//! merged into ours key by key.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::canonical::push_string;

pub(super) struct Body<'a> {
    bytes: Vec<u8>,
    extra: &'a Map<String, Value>,
    merged: Vec<&'static str>,
}

impl<'a> Body<'a> {
    pub(super) fn new(extra: &'a Map<String, Value>, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        bytes.push(b'{');
        Self { bytes, extra, merged: Vec::new() }
    }

    /// A field, unless the extra body has it.
    pub(super) fn field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) {
        if self.extra.is_empty() || !self.extra.contains_key(name) {
            self.write(name, value);
        }
    }

    /// A field whose value `write` appends as JSON, unless the extra body has it.
    pub(super) fn field_with(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        if self.extra.is_empty() || !self.extra.contains_key(name) {
            self.name(name);
            write(&mut self.bytes);
        }
    }

    /// A field that is an object, with the extra body's object of that name merged in.
    pub(super) fn object(&mut self, name: &'static str, mut value: Map<String, Value>) {
        match self.extra.get(name) {
            Some(Value::Object(extra)) => {
                merge(&mut value, extra);
                self.merged.push(name);
            }
            Some(_) => return,
            None => {}
        }
        if !value.is_empty() {
            self.write(name, &value);
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        for (name, value) in self.extra {
            if !value.is_null() && !self.merged.contains(&name.as_str()) {
                self.write(name, value);
            }
        }
        self.bytes.push(b'}');
        self.bytes
    }

    fn write<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.name(name);
        // Into memory, with string keys only: there is nothing that can fail.
        let written = serde_json::to_writer(&mut self.bytes, value);
        debug_assert!(written.is_ok());
    }

    fn name(&mut self, name: &str) {
        if self.bytes.len() > 1 {
            self.bytes.push(b',');
        }
        push_string(&mut self.bytes, name);
        self.bytes.push(b':');
    }
}

fn merge(into: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        match (into.get_mut(name), value) {
            (_, Value::Null) => {
                into.remove(name);
            }
            (Some(Value::Object(ours)), Value::Object(theirs)) => merge(ours, theirs),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_extra_body_replaces_removes_and_merges() {
        let Value::Object(extra) = json!({
            "model": "other", "seed": null, "top_p": 0.9,
            "config": {"b": {"y": 2}, "c": null},
        }) else {
            unreachable!()
        };
        let mut body = Body::new(&extra, 16);
        body.field("model", "mine");
        body.field("seed", &7);
        body.field("n\"", &1);
        let Value::Object(config) = json!({"a": 1, "b": {"x": 1}, "c": 3}) else { unreachable!() };
        body.object("config", config);
        let value: Value = serde_json::from_slice(&body.finish()).unwrap();
        let expected = json!({
            "model": "other", "n\"": 1, "top_p": 0.9,
            "config": {"a": 1, "b": {"x": 1, "y": 2}},
        });
        assert_eq!(value, expected);
    }
}
