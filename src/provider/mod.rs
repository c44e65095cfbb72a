//! Model servers: one request in, one normalised reply out.
//!
//! A wire format is two pure functions (request to bytes, bytes to reply); one [`Client`]
//! does the sending, with retry, pacing, circuit breaker, ledger and the store of replies.
//! Nothing here knows what a judge is.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::verdict::{Status, Usage};

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

/// Names a reply: a hash of everything that can change it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplyKey(pub [u8; 32]);

impl fmt::Debug for ReplyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyKey({})", blake3::Hash::from(self.0).to_hex())
    }
}

/// Where replies are kept. The store implements it; [`NoReplies`] keeps nothing.
pub trait ReplyStore: fmt::Debug + Send + Sync {
    /// The reply kept under this key.
    fn lookup<'a>(&'a self, key: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>>;

    /// Keeps a reply. When this returns, the reply survives the death of the process.
    ///
    /// # Errors
    /// When it could not be kept: the caller then reports the reply as failed, since an
    /// answer that is not on disk must not be counted.
    fn record<'a>(
        &'a self,
        key: &'a ReplyKey,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>>;
}

/// A reply that could not be kept.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to keep a reply in the store: {reason}")]
pub struct KeepError {
    /// Why.
    pub reason: String,
}

/// Keeps nothing, finds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReplies;

impl ReplyStore for NoReplies {
    fn lookup<'a>(&'a self, _: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>> {
        Box::pin(std::future::ready(None))
    }

    fn record<'a>(
        &'a self,
        _: &'a ReplyKey,
        _: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What surrounds one measurement: which sample it is, until when, and what it may spend.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Which of the judge's samples this is, from 0; part of the key of a reply.
    pub sample: u32,
    /// No work goes on after this.
    pub deadline: Instant,
    /// Fires when the user stops the run or the answer is not needed any more.
    pub cancel: CancellationToken,
    /// True to ask again even where a reply is kept (`--retry-errors`); the new one replaces
    /// it.
    pub fresh: bool,
    /// Where replies are kept.
    pub replies: Arc<dyn ReplyStore>,
    /// Money and tokens of the whole run.
    pub ledger: Arc<Ledger>,
}

impl CallContext {
    /// A context that keeps nothing and has no limit but a deadline `timeout` from now.
    #[must_use]
    pub fn standalone(timeout: std::time::Duration) -> Self {
        Self {
            sample: 0,
            deadline: Instant::now() + timeout,
            cancel: CancellationToken::new(),
            fresh: false,
            replies: Arc::new(NoReplies),
            ledger: Arc::new(Ledger::default()),
        }
    }
}

/// Money and tokens of a whole run: reserved at the worst case before a call, then committed
/// or given back.
#[derive(Debug, Default)]
pub struct Ledger {}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens.
    pub input: f64,
    /// Completion tokens.
    pub output: f64,
    /// Prompt tokens that the provider read from its own cache; as `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

/// One model behind one address, as configuration says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointSpec {
    /// `provider/model`; `provider:model` is understood; split at the first separator only.
    pub model: String,
    /// The server, where it is not the provider's own.
    pub base_url: Option<String>,
    /// The environment variable that holds the key, where it is not the provider's usual one.
    pub api_key_env: Option<String>,
    /// Extra request headers.
    pub headers: std::collections::BTreeMap<String, String>,
    /// Merged into the request body last.
    pub extra_body: Map<String, Value>,
    /// Requests in flight at most.
    pub max_in_flight: Option<u32>,
    /// Requests a minute at most.
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute at most.
    pub tokens_per_minute: Option<u64>,
    /// Overrides the price table.
    pub price: Option<Price>,
}

/// Sends requests to model servers. Cheap to clone; clones share connections, pacing and
/// circuit breakers. Nothing is opened before the first request.
#[derive(Clone, Debug, Default)]
pub struct Client {}

/// One model behind one address, with its key, limits and price. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Endpoint {}

impl Endpoint {
    /// The model as `provider/model`.
    #[must_use]
    pub fn model(&self) -> &str {
        ""
    }

    /// What of the endpoint can change an answer, for a judge's fingerprint: provider,
    /// model and extra body (not the address, the key, headers or limits).
    #[must_use]
    pub fn identity(&self) -> Value {
        Value::Null
    }

    /// US dollars per million tokens, from configuration or the price table.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        None
    }
}

impl Client {
    /// An endpoint of this client. The key is read from the environment here.
    ///
    /// # Errors
    /// An unknown provider, a malformed URL or header, a missing key.
    pub fn endpoint(&self, _spec: &EndpointSpec) -> Result<Endpoint, EndpointError> {
        Ok(Endpoint {})
    }

    /// Asks a model, or finds its reply in the store.
    ///
    /// # Errors
    /// See [`ProviderError`]; what may help was retried until the deadline.
    pub async fn chat(
        &self,
        _endpoint: &Endpoint,
        _request: &ChatRequest,
        _context: &CallContext,
    ) -> Result<ChatReply, ProviderError> {
        std::future::ready(()).await;
        Err(ProviderError {
            status: Status::Internal,
            message: String::new(),
            http_status: None,
            attempts: 0,
            hint: None,
        })
    }
}

/// Why a request has no reply.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The verdict's status that follows.
    pub status: Status,
    /// What happened, in words for a person; never a key, a prompt or a whole reply.
    pub message: String,
    /// The HTTP status, where a server answered.
    pub http_status: Option<u16>,
    /// Requests sent.
    pub attempts: u32,
    /// What to do about it, where we know.
    pub hint: Option<String>,
}

/// Why an endpoint can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The model does not say its provider, or the provider is not known.
    #[error("`{model}`: {reason}")]
    Model {
        /// As written.
        model: String,
        /// What was expected.
        reason: String,
    },
    /// A key of the configuration can't work.
    #[error("`{field}`: {reason}")]
    Invalid {
        /// The key.
        field: &'static str,
        /// What was expected.
        reason: String,
    },
    /// No API key.
    #[error("no API key for `{model}`: expected it in the environment variable `{variable}`")]
    MissingKey {
        /// The model, as `provider/model`.
        model: String,
        /// The variable looked for.
        variable: String,
    },
}
