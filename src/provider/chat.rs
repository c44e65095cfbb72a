//! What is asked of a chat model and what it answers, in no provider's dialect.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::verdict::Usage;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The asker.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The form that an answer must take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Free text.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON by a schema.
    JsonSchema {
        /// A short name, which some providers demand.
        name: String,
        /// The schema.
        schema: Value,
    },
}

/// One request to a chat model, in no provider's dialect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// Sampling temperature; the provider's default when `None`.
    pub temperature: Option<f64>,
    /// Sampling seed, sent where the dialect has one.
    pub seed: Option<u64>,
    /// Completion tokens at most.
    pub max_tokens: Option<u32>,
    /// The form of the answer. What the server can't do is asked for in the next simpler
    /// form, which is remembered for the endpoint.
    pub response_format: ResponseFormat,
    /// How many alternatives per token to return log-probabilities for; `None` asks for none.
    pub top_logprobs: Option<u8>,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It reached `max_tokens` or the end of its context.
    Length,
    /// A content filter, or the provider's own mark of a refusal.
    Refusal,
    /// Something else, in the provider's word.
    Other(String),
}

/// The log-probabilities of one token of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprobs {
    /// The token that was produced.
    pub token: String,
    /// Its natural log-probability.
    pub logprob: f64,
    /// The likeliest tokens at this place and their natural log-probabilities.
    pub top: Vec<(String, f64)>,
}

/// A model's answer, in no provider's dialect. This is also the form kept in the store, so
/// that reading it can be redone offline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatReply {
    /// The answer's text, reasoning not included where the provider keeps it apart.
    pub text: String,
    /// Reasoning that the provider keeps apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// Log-probabilities by token, where asked for and given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<TokenLogprobs>>,
    /// Tokens and calls.
    pub usage: Usage,
    /// The model that the server says it used.
    pub model: Option<String>,
    /// The provider's id of this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// From sending to the last byte, of the attempt that was answered.
    pub latency_ms: u64,
    /// Requests sent, failed ones included.
    pub attempts: u32,
    /// US dollars; `None` where the model has no price.
    pub cost_usd: Option<f64>,
    /// The response format that the server took, when it was not the one asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downgraded: Option<ResponseFormat>,
    /// Whether this reply came from the store. Never stored.
    #[serde(skip)]
    pub cached: bool,
}
