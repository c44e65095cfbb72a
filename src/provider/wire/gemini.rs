//! Gemini's `generateContent`. The key travels in a header and never in the URL.

use serde::ser::SerializeSeq;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::body::Body;
use super::{Decoded, Form, Plan, Side, Target, Undecodable, count, leniently, word};
use crate::provider::chat::{
    ChatRequest, FinishReason, Message, ResponseFormat, Role, TokenLogprobs,
};
use crate::verdict::Usage;

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    parts: [Part<'a>; 1],
}

struct Turns<'a>(&'a [Message]);

impl Serialize for Turns<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut turns = serializer.serialize_seq(None)?;
        for message in self.0 {
            let role = match message.role {
                Role::System => continue,
                Role::User => "user",
                Role::Assistant => "model",
            };
            turns.serialize_element(&Turn { role, parts: [Part { text: &message.content }] })?;
        }
        turns.end()
    }
}

#[derive(Serialize)]
struct Instructions<'a> {
    parts: Vec<Part<'a>>,
}

pub(super) fn encode(target: Target<'_>, request: &ChatRequest, plan: Plan) -> Vec<u8> {
    let text: usize = request.messages.iter().map(|m| m.content.len() + 60).sum();
    let mut body = Body::new(target.extra_body, text + text / 8 + 256);
    let parts: Vec<Part<'_>> = request
        .messages
        .iter()
        .filter(|message| message.role == Role::System)
        .map(|message| Part { text: &message.content })
        .collect();
    if !parts.is_empty() {
        body.field("systemInstruction", &Instructions { parts });
    }
    body.field("contents", &Turns(&request.messages));
    body.object("generationConfig", generation_config(request, plan));
    body.finish()
}

fn generation_config(request: &ChatRequest, plan: Plan) -> Map<String, Value> {
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| config.insert(name.to_owned(), value);
    if let Some(temperature) = request.temperature.filter(|_| plan.temperature) {
        set("temperature", json!(temperature));
    }
    if let Some(seed) = request.seed.filter(|_| plan.seed) {
        // The field is a signed 32-bit number; the low 31 bits are as good a seed.
        set("seed", json!(seed & 0x7fff_ffff));
    }
    if let Some(limit) = request.max_tokens {
        set("maxOutputTokens", json!(limit));
    }
    if plan.form != Form::Text {
        set("responseMimeType", json!("application/json"));
    }
    if let (Form::JsonSchema, ResponseFormat::JsonSchema { schema, .. }) =
        (plan.form, &request.response_format)
    {
        set("responseSchema", supported_schema(schema));
    }
    if let Some(top) = plan.top_logprobs {
        set("responseLogprobs", json!(true));
        set("logprobs", json!(top));
    }
    config
}

/// The part of a JSON Schema that `responseSchema` takes; it answers 400 to any other keyword.
/// An enum may hold strings only, so one of numbers becomes the range that it spans, and a
/// `null` in it is said apart.
fn supported_schema(schema: &Value) -> Value {
    const KEPT: [&str; 14] = [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "maxItems",
        "minItems",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "required",
    ];
    let Value::Object(schema) = schema else { return Value::Object(Map::new()) };
    let mut kept = Map::new();
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("type", Value::Array(types)) => {
                if let Some(kind) = types.iter().find(|kind| *kind != "null") {
                    kept.insert("type".into(), kind.clone());
                }
                if types.iter().any(|kind| kind == "null") {
                    kept.insert("nullable".into(), Value::Bool(true));
                }
            }
            ("properties", Value::Object(properties)) => {
                let properties: Map<String, Value> = properties
                    .iter()
                    .map(|(name, property)| (name.clone(), supported_schema(property)))
                    .collect();
                kept.insert(key.clone(), Value::Object(properties));
            }
            ("items", item) => {
                kept.insert(key.clone(), supported_schema(item));
            }
            ("anyOf" | "oneOf", Value::Array(options)) => {
                let options = options.iter().map(supported_schema).collect();
                kept.insert("anyOf".into(), Value::Array(options));
            }
            ("enum", Value::Array(values)) => {
                let named: Vec<Value> = values.iter().filter(|v| !v.is_null()).cloned().collect();
                if named.len() < values.len() {
                    kept.insert("nullable".into(), Value::Bool(true));
                }
                if !named.is_empty() && named.iter().all(Value::is_string) {
                    kept.insert(key.clone(), Value::Array(named));
                    kept.entry("type").or_insert_with(|| json!("string"));
                } else if let Some((least, most)) = span(&named) {
                    kept.insert("minimum".into(), least);
                    kept.insert("maximum".into(), most);
                }
            }
            (key, value) if KEPT.contains(&key) => {
                kept.insert(key.to_owned(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

fn span(values: &[Value]) -> Option<(Value, Value)> {
    let by_size =
        |a: &&Value, b: &&Value| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0));
    if !values.iter().all(Value::is_number) {
        return None;
    }
    Some((values.iter().min_by(by_size)?.clone(), values.iter().max_by(by_size)?.clone()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reply<const LENIENT: bool> {
    candidates: Option<Vec<Candidate<LENIENT>>>,
    #[serde(default)]
    prompt_feedback: Side<Feedback, LENIENT>,
    #[serde(default)]
    usage_metadata: Side<Counts, LENIENT>,
    #[serde(default, deserialize_with = "word")]
    model_version: Option<String>,
    #[serde(default, deserialize_with = "word")]
    response_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<const LENIENT: bool> {
    content: Option<Content>,
    #[serde(default, deserialize_with = "word")]
    finish_reason: Option<String>,
    #[serde(default)]
    logprobs_result: Side<Logprobs, LENIENT>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<ReplyPart>>,
}

#[derive(Deserialize)]
struct ReplyPart {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default, deserialize_with = "count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cached_content_token_count: Option<u64>,
}

impl Counts {
    /// Thinking is counted apart from the answer, and a blocked answer has no count at all.
    fn usage(&self) -> Option<Usage> {
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        Some(Usage {
            tokens_in: self.prompt_token_count?,
            tokens_out: self.candidates_token_count.unwrap_or(0).saturating_add(thoughts),
            tokens_cached: self.cached_content_token_count.unwrap_or(0),
            tokens_reasoning: thoughts,
            calls: 1,
            estimated: false,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Logprobs {
    chosen_candidates: Option<Vec<Token>>,
    top_candidates: Option<Vec<Tokens>>,
}

#[derive(Deserialize)]
struct Tokens {
    candidates: Option<Vec<Token>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    #[serde(default)]
    token: String,
    #[serde(default)]
    log_probability: f64,
}

pub(super) fn decode(body: &[u8]) -> Result<Decoded, Undecodable> {
    leniently(body, read::<false>, read::<true>)
}

fn read<const LENIENT: bool>(reply: Reply<LENIENT>) -> Result<Decoded, Undecodable> {
    let usage = reply.usage_metadata.0.as_ref().and_then(Counts::usage);
    let blocked = reply.prompt_feedback.0.and_then(|feedback| feedback.block_reason);
    let candidate = match reply.candidates.and_then(|all| all.into_iter().next()) {
        Some(candidate) => candidate,
        // A blocked prompt has no candidate: it is a refusal, not a broken reply.
        None if blocked.is_some() => Candidate {
            content: None,
            finish_reason: Some("SAFETY".to_owned()),
            logprobs_result: Side(None),
        },
        None => {
            let reason = "the reply has no `candidates`".to_owned();
            return Err(Undecodable::NotAReply { reason, usage });
        }
    };
    let finish = match candidate.finish_reason.as_deref() {
        None | Some("STOP") => FinishReason::Stop,
        Some("MAX_TOKENS") => FinishReason::Length,
        Some(
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY",
        ) => FinishReason::Refusal,
        Some(other) => FinishReason::Other(other.to_owned()),
    };
    let (mut text, mut reasoning) = (String::new(), String::new());
    for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
        let into = if part.thought { &mut reasoning } else { &mut text };
        into.push_str(&part.text.unwrap_or_default());
    }
    Ok(Decoded {
        text,
        reasoning: (!reasoning.is_empty()).then_some(reasoning),
        finish,
        logprobs: candidate.logprobs_result.0.and_then(logprobs),
        usage,
        model: reply.model_version,
        id: reply.response_id,
    })
}

fn logprobs(result: Logprobs) -> Option<Vec<TokenLogprobs>> {
    let mut top = result.top_candidates.unwrap_or_default().into_iter();
    let tokens = result.chosen_candidates?.into_iter().map(|chosen| TokenLogprobs {
        token: chosen.token,
        logprob: chosen.log_probability,
        top: top
            .next()
            .and_then(|tokens| tokens.candidates)
            .unwrap_or_default()
            .into_iter()
            .map(|other| (other.token, other.log_probability))
            .collect(),
    });
    Some(tokens.collect())
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
