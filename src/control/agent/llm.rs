//! The `llm` agent: a chat model with an instruction.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::command::default_timeout;
use super::{Agent, AgentError, Made, Request};
use crate::judge::process::Period;
use crate::judge::{BuildContext, BuildError};
use crate::provider::{
    CallContext, ChatRequest, Client, Endpoint, EndpointSpec, FinishReason, Message, Price, Role,
    WorstCase,
};
use crate::verdict::Status;

/// Configuration of an `llm` agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmAgentSpec {
    /// `provider/model`.
    pub model: String,
    /// The server, where it is not the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key, where it is not the provider's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// What the model is told before every prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// Sampling temperature; the provider's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sampling seed; the number of the call is added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Completion tokens at most; 2,048 when absent.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u32,
    /// How long a call may take; 300 seconds when absent.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Extra request headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Merged into the request body last.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// US dollars per million tokens, where the price table is not right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether a judge on the panel may use this agent's model. The result then says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_self_judging: bool,
}

fn default_max_tokens() -> u32 {
    2048
}

/// The built agent.
#[derive(Debug)]
pub(super) struct LlmAgent {
    spec: LlmAgentSpec,
    client: Client,
    endpoint: Endpoint,
}

impl LlmAgentSpec {
    pub(super) fn build(&self, context: &BuildContext) -> Result<LlmAgent, BuildError> {
        if self.max_tokens == 0 {
            return Err(BuildError::invalid("agent.max_tokens", "expected 1 or more, found 0"));
        }
        if self.timeout.get().is_zero() {
            return Err(BuildError::invalid("agent.timeout", "expected more than 0 seconds"));
        }
        if self.temperature.is_some_and(|t| !(t.is_finite() && t >= 0.0)) {
            return Err(BuildError::invalid("agent.temperature", "expected 0 or more"));
        }
        let endpoint = context.client.endpoint(&EndpointSpec {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            headers: self.headers.clone(),
            extra_body: self.extra_body.clone(),
            price: self.price,
            ..EndpointSpec::default()
        })?;
        Ok(LlmAgent { spec: self.clone(), client: context.client.clone(), endpoint })
    }
}

impl LlmAgent {
    fn request(&self, prompt: &str, call: u32, temperature_factor: Option<f64>) -> ChatRequest {
        let system = self
            .spec
            .instruction
            .iter()
            .map(|text| Message { role: Role::System, content: text.clone() });
        let user = Message { role: Role::User, content: prompt.to_owned() };
        ChatRequest {
            messages: system.chain([user]).collect(),
            temperature: self.spec.temperature.map(|t| t * temperature_factor.unwrap_or(1.0)),
            seed: self.spec.seed.map(|seed| seed.wrapping_add(u64::from(call))),
            max_tokens: Some(self.spec.max_tokens),
            ..ChatRequest::default()
        }
    }
}

impl Agent for LlmAgent {
    fn kind(&self) -> &'static str {
        "llm"
    }

    fn identity(&self) -> Value {
        json!({
            "endpoint": self.endpoint.identity(),
            "instruction": self.spec.instruction,
            "temperature": self.spec.temperature,
            "seed": self.spec.seed,
            "max_tokens": self.spec.max_tokens,
        })
    }

    fn model(&self) -> Option<&str> {
        Some(self.endpoint.model())
    }

    fn worst_case(&self, prompt: &str) -> Option<WorstCase> {
        Some(self.endpoint.worst_case(&self.request(prompt, 0, None)))
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request<'a>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Made, AgentError>> {
        Box::pin(async move {
            let chat = self.request(request.prompt, request.call, request.temperature_factor);
            // The number of the call keeps a repeated prompt from finding its first answer.
            let context = CallContext {
                sample: request.call,
                deadline: context.deadline.min(Instant::now() + self.spec.timeout.get()),
                ..context.clone()
            };
            let reply =
                self.client.chat(&self.endpoint, &chat, &context).await.map_err(|error| {
                    let hint = error.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                    AgentError::failed(error.status, format!("{}{hint}", error.message))
                })?;
            match &reply.finish {
                FinishReason::Length => {
                    return Err(AgentError::failed(
                        Status::Truncated,
                        format!(
                            "`{}` was cut off at {} tokens: raise `agent.max_tokens`",
                            self.endpoint.model(),
                            self.spec.max_tokens
                        ),
                    ));
                }
                FinishReason::Refusal => {
                    return Err(AgentError::failed(
                        Status::Refused,
                        format!("`{}` refused", self.endpoint.model()),
                    ));
                }
                FinishReason::Stop | FinishReason::Other(_) => {}
            }
            if reply.text.trim().is_empty() {
                return Err(AgentError::empty(format!(
                    "`{}` answered with nothing",
                    self.endpoint.model()
                )));
            }
            let micro_dollars =
                self.endpoint.price().map(|price| price.micro_dollars(&reply.usage));
            Ok(Made {
                text: reply.text,
                words: None,
                snapshot: None,
                usage: reply.usage,
                micro_dollars,
                booked: true,
            })
        })
    }
}
