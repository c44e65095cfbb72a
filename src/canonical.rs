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

/// Bytes looked at together: no branch stands between them, so that they are compared with
/// vector instructions.
const STRIDE: usize = 32;

/// Appends a text as a JSON string, in exactly the form of `serde_json`, which looks at one
/// byte at a time: for long texts that is a good part of what a request costs.
pub(crate) fn push_string(json: &mut Vec<u8>, text: &str) {
    json.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let clean = clean(rest);
        json.extend_from_slice(&rest[..clean]);
        let Some(&byte) = rest.get(clean) else { break };
        rest = &rest[clean + 1..];
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            _ => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                json.extend_from_slice(b"\\u00");
                json.push(DIGITS[usize::from(byte >> 4)]);
                json.push(DIGITS[usize::from(byte & 15)]);
                continue;
            }
        };
        json.extend_from_slice(&[b'\\', short]);
    }
    json.push(b'"');
}

/// How many bytes at the start stand in a JSON string as they are.
fn clean(bytes: &[u8]) -> usize {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let mut at = 0;
    for stride in bytes.chunks_exact(STRIDE) {
        if stride.iter().fold(false, |found, byte| found | special(byte)) {
            break;
        }
        at += STRIDE;
    }
    at + bytes[at..].iter().position(special).unwrap_or(bytes.len() - at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushed(text: &str) -> String {
        let mut json = Vec::new();
        push_string(&mut json, text);
        String::from_utf8(json).unwrap()
    }

    #[test]
    fn every_character_below_the_space_is_escaped_as_serde_json_does() {
        let text: String = (0..0xff).map(char::from).collect();
        assert_eq!(pushed(&text), serde_json::to_string(&text).unwrap());
    }

    proptest! {
        #[test]
        fn a_string_is_written_as_serde_json_does(text in "(.|[\n\"\\\\]|[a-z ]{40}|答案){0,60}") {
            prop_assert_eq!(pushed(&text), serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn key_order_does_not_matter_and_list_order_does() {
        let a: Value = serde_json::from_str(r#"{"b":[1,2],"a":{"d":null,"c":"\""}}"#).unwrap();
        assert_eq!(canonical_json(&a), r#"{"a":{"c":"\"","d":null},"b":[1,2]}"#);
    }
}
