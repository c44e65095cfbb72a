//! Anthropic's Messages. No seed, no log-probabilities, and the form of the answer is asked
//! for in words: the caller is told that it got free text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::Body;
use super::{DEFAULT_MAX_TOKENS, Decoded, Plan, Side, Target, Undecodable, count, leniently, word};
use crate::provider::chat::{ChatRequest, FinishReason, Message, Role};
use crate::verdict::Usage;

/// The messages that are not instructions: the dialect has those apart.
struct Turns<'a>(&'a [Message]);

impl Serialize for Turns<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter(|message| message.role != Role::System))
    }
}

pub(super) fn encode(target: Target<'_>, request: &ChatRequest, plan: Plan) -> Vec<u8> {
    let text: usize = request.messages.iter().map(|m| m.content.len() + 40).sum();
    let mut body = Body::new(target.extra_body, text + text / 8 + 256);
    body.field("model", target.model);
    body.field("max_tokens", &request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS));
    let mut system =
        request.messages.iter().filter(|m| m.role == Role::System).map(|m| m.content.as_str());
    match (system.next(), system.next()) {
        (None, _) => {}
        (Some(only), None) => body.field("system", only),
        (Some(first), Some(second)) => {
            let all: Vec<&str> = [first, second].into_iter().chain(system).collect();
            body.field("system", &all.join("\n\n"));
        }
    }
    body.field("messages", &Turns(&request.messages));
    if let Some(temperature) = request.temperature.filter(|_| plan.temperature) {
        body.field("temperature", &temperature);
    }
    body.finish()
}

#[derive(Deserialize)]
struct Reply<const LENIENT: bool> {
    #[serde(default, deserialize_with = "word")]
    id: Option<String>,
    #[serde(default, deserialize_with = "word")]
    model: Option<String>,
    content: Option<Vec<Block>>,
    #[serde(default, deserialize_with = "word")]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Side<Counts, LENIENT>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<Value>,
}

impl Counts {
    /// The dialect counts cached prompt tokens apart from the others.
    fn usage(&self) -> Option<Usage> {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let reasoning = self
            .output_tokens_details
            .as_ref()
            .and_then(|details| details.get("thinking_tokens")?.as_u64());
        Some(Usage {
            tokens_in: self
                .input_tokens?
                .saturating_add(cached)
                .saturating_add(self.cache_creation_input_tokens.unwrap_or(0)),
            tokens_out: self.output_tokens?,
            tokens_cached: cached,
            tokens_reasoning: reasoning.unwrap_or(0),
            calls: 1,
            estimated: false,
        })
    }
}

pub(super) fn decode(body: &[u8]) -> Result<Decoded, Undecodable> {
    leniently(body, read::<false>, read::<true>)
}

fn read<const LENIENT: bool>(reply: Reply<LENIENT>) -> Result<Decoded, Undecodable> {
    let usage = reply.usage.0.as_ref().and_then(Counts::usage);
    let blocks = reply.content.ok_or_else(|| Undecodable::NotAReply {
        reason: "the reply has no `content`".to_owned(),
        usage,
    })?;
    let (mut text, mut reasoning) = (String::new(), String::new());
    for block in blocks {
        match block.kind.as_deref() {
            Some("text") => text.push_str(&block.text.unwrap_or_default()),
            Some("thinking") => reasoning.push_str(&block.thinking.unwrap_or_default()),
            _ => {}
        }
    }
    let finish = match reply.stop_reason.as_deref() {
        None | Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("refusal") => FinishReason::Refusal,
        Some(other) => FinishReason::Other(other.to_owned()),
    };
    Ok(Decoded {
        text,
        reasoning: (!reasoning.is_empty()).then_some(reasoning),
        finish,
        logprobs: None,
        usage,
        model: reply.model,
        id: reply.id,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::{Form, Wire};
    use super::*;
    use crate::provider::ResponseFormat;

    const REPLY: &str = r#"{"id":"msg_01","type":"message","role":"assistant",
        "model":"claude-haiku-4-5-20251001","content":[
        {"type":"thinking","thinking":"Both claims hold.","signature":"x"},
        {"type":"text","text":"{\"score\": "},{"type":"text","text":"4}"}],
        "stop_reason":"end_turn","stop_sequence":null,
        "usage":{"input_tokens":20,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,
        "output_tokens":9}}"#;

    fn encoded(request: &ChatRequest) -> Value {
        let extra = Map::new();
        let target = Target { model: "claude-x", seed_field: "seed", extra_body: &extra };
        let bytes = encode(target, request, Wire::Anthropic.capabilities());
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn instructions_are_apart_and_a_token_limit_is_always_sent() {
        let say = |role, content: &str| Message { role, content: content.into() };
        let request = ChatRequest {
            messages: vec![say(Role::System, "a"), say(Role::System, "b"), say(Role::User, "c")],
            temperature: Some(0.0),
            seed: Some(1),
            top_logprobs: Some(5),
            response_format: ResponseFormat::JsonObject,
            ..ChatRequest::default()
        };
        let expected = json!({
            "model": "claude-x", "max_tokens": DEFAULT_MAX_TOKENS, "system": "a\n\nb",
            "messages": [{"role": "user", "content": "c"}], "temperature": 0.0,
        });
        assert_eq!(encoded(&request), expected);
        assert_eq!(Wire::Anthropic.capabilities().form, Form::Text);
    }

    #[test]
    fn thinking_is_kept_apart_and_cached_tokens_are_part_of_the_prompt() {
        let decoded = decode(REPLY.as_bytes()).unwrap();
        assert_eq!(decoded.text, "{\"score\": 4}");
        assert_eq!(decoded.reasoning.as_deref(), Some("Both claims hold."));
        assert_eq!(decoded.finish, FinishReason::Stop);
        let usage = decoded.usage.unwrap();
        assert_eq!((usage.tokens_in, usage.tokens_cached, usage.tokens_out), (125, 100, 9));
        assert_eq!(decoded.model.as_deref(), Some("claude-haiku-4-5-20251001"));
    }

    #[test]
    fn a_refusal_and_a_cut_answer_are_marked() {
        for (reason, finish) in [
            ("refusal", FinishReason::Refusal),
            ("max_tokens", FinishReason::Length),
            ("tool_use", FinishReason::Other("tool_use".into())),
        ] {
            let body = format!(r#"{{"content":[],"stop_reason":"{reason}"}}"#);
            let decoded = decode(body.as_bytes()).unwrap();
            assert_eq!((decoded.finish, decoded.text.as_str()), (finish, ""));
            assert_eq!(decoded.usage, None);
        }
    }

    #[test]
    fn a_reply_without_content_is_refused_and_its_usage_kept() {
        let body = r#"{"id":"x","usage":{"input_tokens":3,"output_tokens":4}}"#;
        let Err(Undecodable::NotAReply { usage: Some(usage), .. }) = decode(body.as_bytes()) else {
            panic!()
        };
        assert_eq!((usage.tokens_in, usage.tokens_out), (3, 4));
        assert!(decode(br#"{"content": "text"}"#).is_err());
        assert!(decode(&REPLY.as_bytes()[..200]).is_err());
    }
}
