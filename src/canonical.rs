//! One text for one JSON value: what hashes are taken of.

use serde_json::Value;

/// The value as JSON text with the keys of every object in byte order and no white space,
/// whatever order the keys were written in.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_matter_and_list_order_does() {
        let a: Value = serde_json::from_str(r#"{"b":[1,2],"a":{"d":null,"c":"\""}}"#).unwrap();
        assert_eq!(canonical_json(&a), r#"{"a":{"c":"\"","d":null},"b":[1,2]}"#);
    }
}
