//! Chat completions: OpenAI's dialect, which most servers speak.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::Body;
use super::{Decoded, Form, Plan, Side, Target, Undecodable, count, leniently, word};
use crate::canonical::push_string;
use crate::provider::chat::{ChatRequest, FinishReason, ResponseFormat, TokenLogprobs};
use crate::verdict::Usage;

pub(super) fn encode(target: Target<'_>, request: &ChatRequest, plan: Plan) -> Vec<u8> {
    let text: usize = request.messages.iter().map(|m| m.content.len() + 40).sum();
    let mut body = Body::new(target.extra_body, text + text / 8 + 256);
    body.field("model", target.model);
    body.field_with("messages", |json| {
        json.push(b'[');
        for (i, message) in request.messages.iter().enumerate() {
            json.extend_from_slice(if i == 0 { b"{\"role\":\"" } else { b",{\"role\":\"" });
            json.extend_from_slice(message.role.name().as_bytes());
            json.extend_from_slice(b"\",\"content\":");
            push_string(json, &message.content);
            json.push(b'}');
        }
        json.push(b']');
    });
    if let Some(temperature) = request.temperature.filter(|_| plan.temperature) {
        body.field("temperature", &temperature);
    }
    if let Some(seed) = request.seed.filter(|_| plan.seed) {
        body.field(target.seed_field, &seed);
    }
    if let Some(limit) = request.max_tokens {
        let name = if plan.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.field(name, &limit);
    }
    if let Some(format) = format(&request.response_format, plan.form) {
        body.object("response_format", format);
    }
    if let Some(top) = plan.top_logprobs {
        body.field("logprobs", &true);
        body.field("top_logprobs", &top);
    }
    body.finish()
}

fn format(asked: &ResponseFormat, form: Form) -> Option<Map<String, Value>> {
    let value = match (form, asked) {
        (Form::JsonSchema, ResponseFormat::JsonSchema { name, schema }) => json!({
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": true},
        }),
        (Form::JsonObject, _) => json!({"type": "json_object"}),
        _ => return None,
    };
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Completion<const LENIENT: bool> {
    #[serde(default, deserialize_with = "word")]
    id: Option<String>,
    #[serde(default, deserialize_with = "word")]
    model: Option<String>,
    choices: Option<Vec<Choice<LENIENT>>>,
    #[serde(default)]
    usage: Side<Counts<LENIENT>, LENIENT>,
}

#[derive(Deserialize)]
struct Choice<const LENIENT: bool> {
    message: Option<Answer>,
    #[serde(default, deserialize_with = "word")]
    finish_reason: Option<String>,
    #[serde(default)]
    logprobs: Side<Logprobs, LENIENT>,
}

#[derive(Deserialize)]
struct Answer {
    content: Option<Value>,
    #[serde(default, deserialize_with = "word")]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "word")]
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
}

#[derive(Deserialize)]
struct Logprobs {
    content: Option<Vec<Token>>,
}

#[derive(Deserialize)]
struct Token {
    token: String,
    /// Null from servers whose own value is infinite.
    logprob: Option<f64>,
    #[serde(default)]
    top_logprobs: Option<Vec<Alternative>>,
}

#[derive(Deserialize)]
struct Alternative {
    token: String,
    logprob: Option<f64>,
}

#[derive(Deserialize)]
struct Counts<const LENIENT: bool> {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Side<Details, LENIENT>,
    #[serde(default)]
    completion_tokens_details: Side<Details, LENIENT>,
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

impl<const LENIENT: bool> Counts<LENIENT> {
    /// The usage, if the server counted both sides.
    fn usage(&self) -> Option<Usage> {
        let cached = self.prompt_tokens_details.0.as_ref().and_then(|d| d.cached_tokens);
        let reasoning = self.completion_tokens_details.0.as_ref().and_then(|d| d.reasoning_tokens);
        Some(Usage {
            tokens_in: self.prompt_tokens?,
            tokens_out: self.completion_tokens?,
            tokens_cached: cached.or(self.prompt_cache_hit_tokens).unwrap_or(0),
            tokens_reasoning: reasoning.unwrap_or(0),
            calls: 1,
            estimated: false,
        })
    }
}

pub(super) fn decode(body: &[u8]) -> Result<Decoded, Undecodable> {
    leniently(body, read::<false>, read::<true>)
}

fn read<const LENIENT: bool>(completion: Completion<LENIENT>) -> Result<Decoded, Undecodable> {
    let usage = completion.usage.0.as_ref().and_then(Counts::usage);
    let missing = |what: &str| Undecodable::NotAReply { reason: what.to_owned(), usage };
    let choice = completion
        .choices
        .and_then(|choices| choices.into_iter().next())
        .ok_or_else(|| missing("the reply has no `choices`"))?;
    if choice.finish_reason.as_deref() == Some("error") {
        return Err(missing("the server says that the model behind it failed"));
    }
    let answer = choice.message.ok_or_else(|| missing("the reply's choice has no `message`"))?;
    let (mut text, mut reasoning) = content(answer.content);
    let apart = answer.reasoning_content.or(match answer.reasoning {
        Some(Value::String(text)) => Some(text),
        _ => None,
    });
    if let Some(apart) = apart.filter(|text| !text.is_empty()) {
        reasoning = Some(apart);
    }
    let mut finish = match choice.finish_reason.as_deref() {
        // Some servers leave it out when nothing cut the answer short.
        None | Some("" | "stop" | "eos" | "end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("length" | "max_tokens" | "model_length") => FinishReason::Length,
        Some("content_filter" | "refusal" | "safety") => FinishReason::Refusal,
        Some(other) => FinishReason::Other(other.to_owned()),
    };
    if let Some(refusal) = answer.refusal.filter(|refusal| !refusal.is_empty()) {
        finish = FinishReason::Refusal;
        if text.is_empty() {
            text = refusal;
        }
    }
    let logprobs = choice.logprobs.0.and_then(|logprobs| logprobs.content).and_then(read_logprobs);
    Ok(Decoded {
        text,
        reasoning,
        finish,
        logprobs,
        usage,
        model: completion.model,
        id: completion.id,
    })
}

/// Log-probabilities by token. A token without one makes all of them unusable; an alternative
/// without one is impossible, and left out.
fn read_logprobs(tokens: Vec<Token>) -> Option<Vec<TokenLogprobs>> {
    let read = |token: Token| {
        let top = token.top_logprobs.unwrap_or_default().into_iter();
        Some(TokenLogprobs {
            token: token.token,
            logprob: token.logprob?,
            top: top.filter_map(|other| Some((other.token, other.logprob?))).collect(),
        })
    };
    tokens.into_iter().map(read).collect()
}

/// The text and the reasoning of a message's content: a string, or a list of parts.
fn content(value: Option<Value>) -> (String, Option<String>) {
    match value {
        Some(Value::String(text)) => (text, None),
        Some(Value::Array(parts)) => {
            let (mut text, mut reasoning) = (String::new(), String::new());
            for part in &parts {
                match part {
                    Value::String(piece) => text.push_str(piece),
                    part => {
                        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
                        let into = match kind {
                            "text" | "output_text" | "refusal" => &mut text,
                            "thinking" | "reasoning" => &mut reasoning,
                            _ => continue,
                        };
                        // Mistral nests the parts of its reasoning once more.
                        let piece = ["text", "thinking", "reasoning", "refusal"]
                            .iter()
                            .find_map(|key| part.get(*key));
                        match piece {
                            Some(Value::String(piece)) => into.push_str(piece),
                            Some(nested @ Value::Array(_)) => {
                                into.push_str(&content(Some(nested.clone())).0);
                            }
                            _ => {}
                        }
                    }
                }
            }
            (text, (!reasoning.is_empty()).then_some(reasoning))
        }
        _ => (String::new(), None),
    }
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
