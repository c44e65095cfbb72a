//! Wire formats: pure functions from a request to bytes and from bytes to a reply.
//!
//! Nothing here opens a connection, waits, or knows a key. A dialect has what its server
//! really has: a parameter that a dialect lacks is left out, and [`Wire::capabilities`] says
//! so beforehand.

mod anthropic;
mod body;
mod fault;
mod gemini;
mod openai;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::chat::{ChatRequest, FinishReason, ResponseFormat, TokenLogprobs};
use crate::verdict::Usage;

pub(super) use fault::ServerFault;

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Chat completions, as of OpenAI and everyone who speaks its dialect.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
}

/// The form of answer that is asked for on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    JsonObject,
    JsonSchema,
}

/// What of a request is really sent, after what the server was found not to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) form: Form,
    pub(super) top_logprobs: Option<u8>,
    pub(super) temperature: bool,
    pub(super) seed: bool,
    /// `max_completion_tokens` instead of `max_tokens`.
    pub(super) completion_tokens: bool,
}

/// Whom a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) model: &'a str,
    pub(super) seed_field: &'static str,
    pub(super) extra_body: &'a Map<String, Value>,
}

/// A reply as the server gave it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
    pub(super) finish: FinishReason,
    pub(super) logprobs: Option<Vec<TokenLogprobs>>,
    /// `None` where the server gave none.
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
    pub(super) id: Option<String>,
}

/// Why a body with a good HTTP status is no reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Undecodable {
    /// An error wrapped in a status of 200, with the status that the body names.
    Fault(Option<u16>, ServerFault),
    /// Not a reply at all. The usage is what the body says was spent on it all the same.
    NotAReply { reason: String, usage: Option<Usage> },
}

impl Undecodable {
    fn reason(reason: impl Into<String>) -> Self {
        Self::NotAReply { reason: reason.into(), usage: None }
    }
}

/// Completion tokens asked for where the dialect demands a number and the request has none.
pub(super) const DEFAULT_MAX_TOKENS: u32 = 4096;

impl Wire {
    /// The name in keys.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The path segment that a base URL without a path gets: nobody serves the API at the
    /// root of a host.
    pub(super) fn version(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Anthropic => "v1",
            Self::Gemini => "v1beta",
        }
    }

    /// Path segments below the base URL.
    pub(super) fn path(self, model: &str) -> Vec<String> {
        match self {
            Self::OpenAi => vec!["chat".into(), "completions".into()],
            Self::Anthropic => vec!["messages".into()],
            Self::Gemini => {
                // `models/` is optional in a name, and tuned models live elsewhere.
                let (family, name) = model.split_once('/').unwrap_or(("models", model));
                vec![family.into(), format!("{name}:generateContent")]
            }
        }
    }

    /// Headers of the dialect, no key among them.
    pub(super) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenAi | Self::Gemini => &[],
            Self::Anthropic => &[("anthropic-version", "2023-06-01")],
        }
    }

    /// What the dialect has at all.
    pub(super) fn capabilities(self) -> Plan {
        let all = Plan {
            form: Form::JsonSchema,
            top_logprobs: Some(u8::MAX),
            temperature: true,
            seed: true,
            completion_tokens: false,
        };
        match self {
            Self::OpenAi | Self::Gemini => all,
            Self::Anthropic => Plan { form: Form::Text, top_logprobs: None, seed: false, ..all },
        }
    }

    /// The request's body.
    pub(super) fn encode(self, target: Target<'_>, request: &ChatRequest, plan: Plan) -> Vec<u8> {
        match self {
            Self::OpenAi => openai::encode(target, request, plan),
            Self::Anthropic => anthropic::encode(target, request, plan),
            Self::Gemini => gemini::encode(target, request, plan),
        }
    }

    /// The reply in a body that came with a good HTTP status.
    pub(super) fn decode(self, body: &[u8]) -> Result<Decoded, Undecodable> {
        if let Some(page) = fault::html(body) {
            return Err(Undecodable::reason(page));
        }
        let decoded = match self {
            Self::OpenAi => openai::decode(body),
            Self::Anthropic => anthropic::decode(body),
            Self::Gemini => gemini::decode(body),
        };
        let decoded =
            decoded.map(|decoded| Decoded { usage: decoded.usage.filter(is_plausible), ..decoded });
        decoded.map_err(|undecodable| match undecodable {
            Undecodable::NotAReply { usage: Some(usage), reason } if !is_plausible(&usage) => {
                Undecodable::NotAReply { usage: None, reason }
            }
            Undecodable::NotAReply { usage: None, reason } => match fault::wrapped(body) {
                Some((status, fault)) => Undecodable::Fault(status, fault),
                None => Undecodable::NotAReply { usage: None, reason },
            },
            known => known,
        })
    }
}

/// Whether a server can mean these numbers: no context is a thousand million tokens long. Others
/// are as good as none, and must not end up in sums.
fn is_plausible(usage: &Usage) -> bool {
    const MOST: u64 = 1_000_000_000;
    [usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.tokens_reasoning]
        .into_iter()
        .all(|tokens| tokens <= MOST)
}

/// Reads a body into the dialect's own type; the error says what is wrong with it, and never
/// quotes it.
fn parse<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, Undecodable> {
    serde_json::from_slice(body).map_err(|error| {
        Undecodable::reason(if body.iter().all(u8::is_ascii_whitespace) {
            "the body is empty".to_owned()
        } else if error.is_eof() {
            format!("the body is JSON cut off after {} bytes", body.len())
        } else if error.is_data() {
            format!("the body is JSON of another shape ({})", place(&error))
        } else if names_no_number(body) {
            format!("the body holds NaN or Infinity, which is not JSON ({})", place(&error))
        } else {
            format!("the body is not JSON ({})", place(&error))
        })
    })
}

/// Reads a body as if all its fields were as they should be, as nearly all are; where they are
/// not, with an eye closed to those beside the answer.
fn leniently<'a, Strict, Lenient, T>(
    body: &'a [u8],
    strict: impl FnOnce(Strict) -> Result<T, Undecodable>,
    lenient: impl FnOnce(Lenient) -> Result<T, Undecodable>,
) -> Result<T, Undecodable>
where
    Strict: serde::Deserialize<'a>,
    Lenient: serde::Deserialize<'a>,
{
    match serde_json::from_slice(body) {
        Ok(reply) => strict(reply),
        Err(_) => lenient(parse(body)?),
    }
}

/// A field beside the answer. When `LENIENT`, one of another shape is as good as none, since a
/// good answer that was paid for must not be lost over it.
struct Side<T, const LENIENT: bool>(Option<T>);

impl<T, const LENIENT: bool> Default for Side<T, LENIENT> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T, const LENIENT: bool> serde::Deserialize<'de> for Side<T, LENIENT>
where
    T: serde::Deserialize<'de>,
{
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !LENIENT {
            return Option::deserialize(deserializer).map(Self);
        }
        let text = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(text.get()).ok()))
    }
}

/// A count of tokens, however it is written: `100`, `100.0`, `"100"`. What is no count is none.
fn count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = <Value as serde::Deserialize>::deserialize(deserializer)?;
    let whole = |number: f64| {
        // Up to 2^53 a float holds every whole number.
        (number.fract() == 0.0 && (0.0..9.0e15).contains(&number)).then_some(number as u64)
    };
    Ok(match &value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => match text.trim().parse::<u64>() {
            Ok(number) => Some(number),
            Err(_) => text.trim().parse::<f64>().ok().and_then(whole),
        },
        _ => None,
    })
}

/// A word or an id, as a number too.
fn word<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match <Value as serde::Deserialize>::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn place(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

fn names_no_number(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    ["NaN", "Infinity"].iter().any(|word| text.contains(word))
}

/// The form that a plan asks for, as the request would have written it; `None` where that is
/// what the request asked for.
pub(super) fn downgraded(request: &ChatRequest, form: Form) -> Option<ResponseFormat> {
    match (&request.response_format, form) {
        (ResponseFormat::JsonSchema { .. }, Form::JsonObject) => Some(ResponseFormat::JsonObject),
        (ResponseFormat::JsonSchema { .. } | ResponseFormat::JsonObject, Form::Text) => {
            Some(ResponseFormat::Text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_an_empty_body_and_a_cut_body_are_told_apart() {
        let reason = |body: &str| match Wire::OpenAi.decode(body.as_bytes()) {
            Err(Undecodable::NotAReply { reason, .. }) => reason,
            other => format!("{other:?}"),
        };
        assert!(reason("<!DOCTYPE html><title>Login</title>").contains("HTML"));
        assert!(reason("").contains("empty"));
        assert!(reason(r#"{"choices":[{"mess"#).contains("cut off"));
        assert!(reason(r#"{"choices": NaN}"#).contains("NaN"));
        assert!(reason("[1,2]").contains("another shape"));
        assert!(reason("secret words").contains("not JSON"));
        assert!(!reason("secret words").contains("secret"));
    }

    #[test]
    fn an_error_inside_a_good_status_keeps_its_own_status() {
        let body = br#"{"error":{"message":"upstream is busy","code":429}}"#;
        for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
            let Err(Undecodable::Fault(status, fault)) = wire.decode(body) else { panic!() };
            assert_eq!((status, fault.message.as_str()), (Some(429), "upstream is busy"));
        }
    }

    #[test]
    fn a_usage_that_nobody_can_mean_is_as_good_as_none() {
        let body = |tokens: &str| {
            format!(
                r#"{{"choices":[{{"message":{{"content":"x"}}}}],
                "usage":{{"prompt_tokens":{tokens},"completion_tokens":1}}}}"#
            )
        };
        let usage = |tokens| Wire::OpenAi.decode(body(tokens).as_bytes()).unwrap().usage;
        assert!(usage("12").is_some());
        assert_eq!(usage("18446744073709551615"), None);
        for tokens in ["-1", "1.5", "1e30", "null", "[]", "\"many\"", "\"\""] {
            assert_eq!(usage(tokens), None, "{tokens}");
        }
        for tokens in ["100.0", "\"100\"", "\" 100.0 \"", "1e2"] {
            assert_eq!(usage(tokens).unwrap().tokens_in, 100, "{tokens}");
        }
    }

    #[test]
    fn odd_fields_beside_the_answer_lose_nothing_of_it() {
        for (wire, body) in [
            (
                Wire::OpenAi,
                r#"{"id":5,"created":"x","model":7,"choices":[{"message":{"content":"Yes",
                "refusal":0,"reasoning_content":[]},"finish_reason":5,"logprobs":[]}],
                "usage":"none"}"#,
            ),
            (
                Wire::OpenAi,
                r#"{"id":{},"model":null,"choices":[{"message":{"content":"Yes"},"finish_reason":{},
                "logprobs":{"content":[{"token":1}]}}],
                "usage":{"prompt_tokens_details":"x","completion_tokens_details":[1]}}"#,
            ),
            (
                Wire::Anthropic,
                r#"{"id":5,"model":[],"content":[{"type":"text","text":"Yes"}],"stop_reason":{},
                "usage":[]}"#,
            ),
            (
                Wire::Gemini,
                r#"{"responseId":5,"modelVersion":{},"promptFeedback":"","usageMetadata":[],
                "candidates":[{"content":{"parts":[{"text":"Yes"}]},"finishReason":{},
                "logprobsResult":[]}]}"#,
            ),
        ] {
            let decoded = wire.decode(body.as_bytes()).unwrap_or_else(|e| panic!("{e:?} {body}"));
            assert_eq!((decoded.text.as_str(), decoded.usage), ("Yes", None), "{body}");
            assert_eq!(decoded.logprobs, None, "{body}");
        }
    }

    #[test]
    fn no_dialect_panics_on_any_json() {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("[]".to_owned()),
            Just("{}".to_owned()),
            Just("\"x\"".to_owned()),
            any::<i64>().prop_map(|n| n.to_string()),
        ];
        let key = prop_oneof![
            Just("choices"),
            Just("message"),
            Just("content"),
            Just("candidates"),
            Just("parts"),
            Just("usage"),
            Just("logprobs"),
            Just("finish_reason"),
            Just("error"),
            Just("usageMetadata"),
            Just("text"),
            Just("type"),
            Just("prompt_tokens"),
        ];
        let json = leaf.prop_recursive(6, 40, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec((key.clone(), inner), 0..4).prop_map(|fields| {
                    let fields: Vec<_> =
                        fields.into_iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                    format!("{{{}}}", fields.join(","))
                }),
            ]
        });
        proptest!(|(body in json)| {
            for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
                let _ = wire.decode(body.as_bytes());
            }
        });
    }
}
