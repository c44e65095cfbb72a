//! The three wire formats, from the server's side.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::answer::{Answer, Asked};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wire {
    OpenAi,
    Anthropic,
    Gemini,
}

impl Wire {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/v1/chat/completions",
            Self::Anthropic => "/v1/messages",
            Self::Gemini => "/v1beta/models/:generateContent",
        }
    }

    /// The key of a request, from wherever the dialect has it.
    pub(super) fn key(self, headers: &HeaderMap) -> Option<String> {
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        match self {
            Self::OpenAi => text("authorization")
                .and_then(|value| Some(value.strip_prefix("Bearer ")?.to_owned()))
                .or_else(|| text("api-key")),
            Self::Anthropic => text("x-api-key"),
            Self::Gemini => text("x-goog-api-key"),
        }
    }

    pub(super) fn read(self, request: &Value, model: Option<&str>) -> Result<Asked, String> {
        let model = model.or(request["model"].as_str()).ok_or("`model` is missing")?.to_owned();
        let mut texts = Vec::new();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match self {
            Self::OpenAi => {
                let messages = request["messages"].as_array().ok_or("`messages` is missing")?;
                texts.extend(messages.iter().filter_map(|m| text(&m["content"])));
            }
            Self::Anthropic => {
                request["max_tokens"].as_u64().ok_or("max_tokens: Field required")?;
                let messages = request["messages"].as_array().ok_or("`messages` is missing")?;
                texts.extend(text(&request["system"]));
                for message in messages {
                    if message["role"] == "system" {
                        return Err("messages: Unexpected role \"system\"".into());
                    }
                    texts.extend(text(&message["content"]));
                }
            }
            Self::Gemini => {
                let contents = request["contents"].as_array().ok_or("`contents` is missing")?;
                let parts = std::iter::once(&request["systemInstruction"])
                    .chain(contents)
                    .filter_map(|turn| turn["parts"].as_array())
                    .flatten();
                texts.extend(parts.filter_map(|part| text(&part["text"])));
            }
        }
        if texts.is_empty() {
            return Err("there is no message".into());
        }
        let config = &request["generationConfig"];
        let (schema, json, top_logprobs) = match self {
            Self::OpenAi => {
                let format = &request["response_format"];
                let schema = format["json_schema"]["schema"].clone();
                let top = request["logprobs"]
                    .as_bool()
                    .unwrap_or(false)
                    .then(|| request["top_logprobs"].as_u64().unwrap_or(0));
                (schema, format["type"] == "json_object", top)
            }
            Self::Anthropic => (Value::Null, false, None),
            Self::Gemini => (
                config["responseSchema"].clone(),
                config["responseMimeType"] == "application/json",
                config["responseLogprobs"]
                    .as_bool()
                    .unwrap_or(false)
                    .then(|| config["logprobs"].as_u64().unwrap_or(0)),
            ),
        };
        Ok(Asked { model, texts, schema: schema.is_object().then_some(schema), json, top_logprobs })
    }

    pub(super) fn write(self, asked: &Asked, answer: &Answer) -> Value {
        let model = answer.model.as_deref().unwrap_or(&asked.model);
        let prompt = asked.texts.iter().map(|text| text.len() as u64 / 4 + 4).sum::<u64>();
        let output = answer.text.len() as u64 / 4 + 1;
        let top = usize::try_from(asked.top_logprobs.unwrap_or(0)).unwrap_or(0);
        match self {
            Self::OpenAi => {
                let entry = |token: &str, logprob: f64| json!({"token": token, "logprob": logprob, "bytes": token.as_bytes()});
                let logprobs = asked.top_logprobs.map(|_| {
                    let tokens: Vec<Value> = answer
                        .tokens
                        .iter()
                        .map(|token| {
                            let mut value = entry(&token.text, token.logprob);
                            let others: Vec<Value> =
                                token.top.iter().take(top).map(|(t, p)| entry(t, *p)).collect();
                            value["top_logprobs"] = Value::Array(others);
                            value
                        })
                        .collect();
                    json!({"content": tokens})
                });
                let refused = answer.finish == "refusal";
                json!({
                    "id": "chatcmpl-mock", "object": "chat.completion", "created": 0,
                    "model": model,
                    "choices": [{
                        "index": 0,
                        "message": {
                            "role": "assistant",
                            "content": if refused { Value::Null } else { json!(answer.text) },
                            "refusal": if refused { json!(answer.text) } else { Value::Null },
                        },
                        "logprobs": logprobs,
                        "finish_reason": if refused { "stop" } else { answer.finish },
                    }],
                    "usage": {
                        "prompt_tokens": prompt, "completion_tokens": output,
                        "total_tokens": prompt + output,
                    },
                })
            }
            Self::Anthropic => json!({
                "id": "msg_mock", "type": "message", "role": "assistant", "model": model,
                "content": [{"type": "text", "text": answer.text}],
                "stop_reason": match answer.finish {
                    "length" => "max_tokens",
                    "refusal" => "refusal",
                    _ => "end_turn",
                },
                "usage": {"input_tokens": prompt, "output_tokens": output},
            }),
            Self::Gemini => {
                let entry =
                    |token: &str, logprob: f64| json!({"token": token, "logProbability": logprob});
                let logprobs = asked.top_logprobs.map(|_| {
                    let tokens = &answer.tokens;
                    json!({
                        "chosenCandidates":
                            tokens.iter().map(|t| entry(&t.text, t.logprob)).collect::<Vec<_>>(),
                        "topCandidates": tokens.iter().map(|t| json!({"candidates":
                            t.top.iter().take(top).map(|(t, p)| entry(t, *p)).collect::<Vec<_>>()
                        })).collect::<Vec<_>>(),
                    })
                });
                let refused = answer.finish == "refusal";
                let parts = if refused { json!([]) } else { json!([{"text": answer.text}]) };
                let mut candidate = json!({
                    "content": {"role": "model", "parts": parts},
                    "finishReason": match answer.finish {
                        "length" => "MAX_TOKENS",
                        "refusal" => "SAFETY",
                        _ => "STOP",
                    },
                });
                if let Some(logprobs) = logprobs {
                    candidate["logprobsResult"] = logprobs;
                }
                json!({
                    "candidates": [candidate],
                    "usageMetadata": {
                        "promptTokenCount": prompt, "candidatesTokenCount": output,
                        "totalTokenCount": prompt + output,
                    },
                    "modelVersion": model, "responseId": "mock",
                })
            }
        }
    }

    pub(super) fn remove_answer(self, body: &mut Value) {
        self.remove(body, ["choices", "content", "candidates"]);
    }

    pub(super) fn remove_usage(self, body: &mut Value) {
        self.remove(body, ["usage", "usage", "usageMetadata"]);
    }

    fn remove(self, body: &mut Value, names: [&str; 3]) {
        if let Value::Object(map) = body {
            map.remove(names[self as usize]);
        }
    }

    pub(super) fn error(self, status: u16, message: &str, code: &str) -> Value {
        match self {
            Self::OpenAi => json!({"error": {
                "message": message, "type": code, "param": null, "code": code,
            }}),
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": code, "message": message}})
            }
            Self::Gemini => {
                json!({"error": {"code": status, "message": message, "status": code}})
            }
        }
    }
}
