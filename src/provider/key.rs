//! Names of replies: a hash of everything that can change an answer, and of nothing else.
//!
//! Hashed are the provider and its wire format, the base URL, the model, headers that hold no
//! credential, the extra body, the messages, every parameter of the request and the sample's
//! index. Not hashed are keys, limits, prices, deadlines, and what a server turned out not to
//! support: the name says what was asked, not how it had to be asked.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::chat::{ChatRequest, ResponseFormat};
use crate::canonical::canonical_json;

/// Raised whenever the same request would be put to a model in other words, or its key be
/// hashed in another way.
const KEY_VERSION: u32 = 2;

/// Names a reply: BLAKE3 over the canonical JSON of everything that can change it, with the
/// hash of the messages in their place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyKey(pub [u8; 32]);

impl fmt::Debug for ReplyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyKey({})", blake3::Hash::from(self.0).to_hex())
    }
}

/// The endpoint's share of a key, written once: a request adds its own share between the
/// pieces, so that no value is built and no message is copied into one.
#[derive(Debug)]
pub(super) struct KeyParts {
    head: Vec<u8>,
    middle: Vec<u8>,
    tail: Vec<u8>,
}

impl KeyParts {
    pub(super) fn new(
        provider: &str,
        wire: &str,
        base_url: &str,
        model: &str,
        headers: &BTreeMap<String, String>,
        extra_body: &Map<String, Value>,
    ) -> Self {
        let mut head = b"{\"base_url\":".to_vec();
        push(&mut head, base_url);
        head.extend_from_slice(b",\"extra_body\":");
        head.extend_from_slice(canonical_json(&Value::Object(extra_body.clone())).as_bytes());
        head.extend_from_slice(b",\"headers\":");
        push(&mut head, headers);
        head.extend_from_slice(
            format!(",\"key_version\":{KEY_VERSION},\"max_tokens\":").as_bytes(),
        );

        let mut middle = b",\"model\":".to_vec();
        push(&mut middle, model);
        middle.extend_from_slice(b",\"provider\":");
        push(&mut middle, provider);
        middle.extend_from_slice(b",\"response_format\":");

        let mut tail = b",\"wire\":".to_vec();
        push(&mut tail, wire);
        tail.push(b'}');
        Self { head, middle, tail }
    }

    pub(super) fn key(&self, request: &ChatRequest, sample: u32) -> ReplyKey {
        ReplyKey(*blake3::hash(&self.text(request, sample)).as_bytes())
    }

    /// The canonical JSON that is hashed: keys in byte order at every level.
    fn text(&self, request: &ChatRequest, sample: u32) -> Vec<u8> {
        let fixed = self.head.len() + self.middle.len() + self.tail.len();
        let mut text = Vec::with_capacity(fixed + 320);
        text.extend_from_slice(&self.head);
        push(&mut text, &request.max_tokens);
        text.extend_from_slice(b",\"messages\":\"");
        text.extend_from_slice(messages(request).to_hex().as_bytes());
        text.push(b'"');
        text.extend_from_slice(&self.middle);
        match &request.response_format {
            ResponseFormat::Text => text.extend_from_slice(b"\"text\""),
            ResponseFormat::JsonObject => text.extend_from_slice(b"\"json_object\""),
            ResponseFormat::JsonSchema { name, schema } => {
                text.extend_from_slice(b"{\"json_schema\":{\"name\":");
                push(&mut text, name);
                text.extend_from_slice(b",\"schema\":");
                text.extend_from_slice(canonical_json(schema).as_bytes());
                text.extend_from_slice(b"}}");
            }
        }
        text.extend_from_slice(b",\"sample\":");
        push(&mut text, &sample);
        text.extend_from_slice(b",\"seed\":");
        push(&mut text, &request.seed);
        text.extend_from_slice(b",\"temperature\":");
        push(&mut text, &request.temperature);
        text.extend_from_slice(b",\"top_logprobs\":");
        push(&mut text, &request.top_logprobs);
        text.extend_from_slice(&self.tail);
        text
    }
}

/// The hash of the messages as they are: long texts need not be written as JSON for it. The
/// lengths keep two lists apart whose texts are the same in a row.
fn messages(request: &ChatRequest) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for message in &request.messages {
        hasher.update(message.role.name().as_bytes());
        hasher.update(&(message.content.len() as u64).to_le_bytes());
        hasher.update(message.content.as_bytes());
    }
    hasher.finalize()
}

/// Appends a value as JSON.
fn push<T: Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) {
    // Strings, numbers and maps of strings into memory: there is nothing that can fail.
    let written = serde_json::to_writer(&mut *text, value);
    debug_assert!(written.is_ok());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::provider::{Message, Role};

    fn parts() -> KeyParts {
        KeyParts::new("openai", "openai", "http://h/v1", "m", &BTreeMap::new(), &Map::new())
    }

    fn request() -> ChatRequest {
        ChatRequest {
            messages: vec![
                Message { role: Role::System, content: "grade".into() },
                Message { role: Role::User, content: "答案 \"x\"\n".into() },
            ],
            temperature: Some(0.0),
            seed: Some(7),
            max_tokens: Some(100),
            response_format: ResponseFormat::JsonSchema {
                name: "verdict".into(),
                schema: json!({"type": "object", "properties": {"b": {}, "a": {}}}),
            },
            top_logprobs: Some(5),
        }
    }

    #[test]
    fn the_hashed_text_is_the_canonical_json_of_the_same_value() {
        let text = String::from_utf8(parts().text(&request(), 3)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, canonical_json(&value));
        assert_eq!(value["messages"], messages(&request()).to_string());
        assert_eq!(
            value["response_format"],
            serde_json::to_value(request().response_format).unwrap()
        );
        assert_eq!(value["sample"], 3);
    }

    #[test]
    fn the_key_of_a_request_does_not_drift() {
        assert_eq!(parts().key(&request(), 0), parts().key(&request(), 0));
        insta::assert_snapshot!(
            String::from_utf8(parts().text(&ChatRequest::default(), 0)).unwrap(),
            @r#"{"base_url":"http://h/v1","extra_body":{},"headers":{},"key_version":2,"max_tokens":null,"messages":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","model":"m","provider":"openai","response_format":"text","sample":0,"seed":null,"temperature":null,"top_logprobs":null,"wire":"openai"}"#
        );
    }

    #[test]
    fn every_ingredient_changes_the_key() {
        let mut keys = vec![parts().key(&request(), 0), parts().key(&request(), 1)];
        let changes: Vec<fn(&mut ChatRequest)> = vec![
            |r| r.messages[0].content.push('!'),
            |r| r.messages[0].role = Role::User,
            |r| r.messages.swap(0, 1),
            // The same texts in a row, cut elsewhere.
            |r| {
                let first = r.messages[1].content.remove(0);
                r.messages[0].content.push(first);
            },
            |r| {
                r.messages.pop();
            },
            |r| r.temperature = Some(0.1),
            |r| r.temperature = None,
            |r| r.seed = Some(8),
            |r| r.seed = None,
            |r| r.max_tokens = Some(101),
            |r| r.max_tokens = None,
            |r| r.response_format = ResponseFormat::JsonObject,
            |r| r.response_format = ResponseFormat::Text,
            |r| {
                if let ResponseFormat::JsonSchema { schema, .. } = &mut r.response_format {
                    schema["type"] = json!("array");
                }
            },
            |r| {
                if let ResponseFormat::JsonSchema { name, .. } = &mut r.response_format {
                    name.push('2');
                }
            },
            |r| r.top_logprobs = Some(4),
            |r| r.top_logprobs = None,
        ];
        for change in changes {
            let mut changed = request();
            change(&mut changed);
            keys.push(parts().key(&changed, 0));
        }
        let (none, empty) = (BTreeMap::new(), Map::new());
        let headers = BTreeMap::from([("anthropic-beta".to_owned(), "x".to_owned())]);
        let Value::Object(extra) = json!({"top_p": 0.5}) else { unreachable!() };
        for other in [
            KeyParts::new("vllm", "openai", "http://h/v1", "m", &none, &empty),
            KeyParts::new("openai", "gemini", "http://h/v1", "m", &none, &empty),
            KeyParts::new("openai", "openai", "http://h/v2", "m", &none, &empty),
            KeyParts::new("openai", "openai", "http://h/v1", "m2", &none, &empty),
            KeyParts::new("openai", "openai", "http://h/v1", "m", &headers, &empty),
            KeyParts::new("openai", "openai", "http://h/v1", "m", &none, &extra),
        ] {
            keys.push(other.key(&request(), 0));
        }
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    proptest! {
        #[test]
        fn two_texts_never_share_a_key(a in ".{0,40}", b in ".{0,40}") {
            prop_assume!(a != b);
            let ask = |text: &str| ChatRequest {
                messages: vec![Message { role: Role::User, content: text.to_owned() }],
                ..ChatRequest::default()
            };
            prop_assert_ne!(parts().key(&ask(&a), 0), parts().key(&ask(&b), 0));
        }
    }
}
