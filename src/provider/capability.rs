//! What a model behind an address turned out not to take, learned from its refusals and
//! remembered for as long as the client lives.
//!
//! Only a server's own complaint teaches: nothing is concluded from a model's name or from
//! an answer that ignores what was asked.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

use super::chat::{ChatRequest, ResponseFormat};
use super::wire::{Form, Plan, ServerFault, Wire};

const SCHEMA: u16 = 1;
const OBJECT: u16 = 1 << 1;
const LOGPROBS: u16 = 1 << 2;
/// More than [`FEW`] alternatives a token.
const MANY_LOGPROBS: u16 = 1 << 3;
const PLAIN_TOKEN_LIMIT: u16 = 1 << 4;
const COMPLETION_TOKEN_LIMIT: u16 = 1 << 5;
const TEMPERATURE: u16 = 1 << 6;
const SEED: u16 = 1 << 7;

/// The alternatives a token that every server with log-probabilities gives.
const FEW: u8 = 5;

/// How long a request waits for the first one to show what the server takes. A refusal comes
/// at once; a server that is still writing its answer has taken the request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Features refused and features seen to work, of one model behind one address.
#[derive(Debug, Default)]
pub(super) struct Capability {
    refused: AtomicU16,
    confirmed: AtomicU16,
    trial: Mutex<()>,
}

impl Capability {
    /// For a server that is known to want `max_completion_tokens`.
    pub(super) fn with_completion_tokens() -> Self {
        Self { refused: AtomicU16::new(PLAIN_TOKEN_LIMIT), ..Self::default() }
    }

    /// What to send of a request.
    pub(super) fn plan(&self, wire: Wire, request: &ChatRequest) -> Plan {
        let refused = self.refused.load(Ordering::Acquire);
        let takes = |feature| refused & feature == 0;
        let dialect = wire.capabilities();
        let form = match (&request.response_format, dialect.form) {
            (ResponseFormat::Text, _) | (_, Form::Text) => Form::Text,
            (ResponseFormat::JsonSchema { .. }, Form::JsonSchema) if takes(SCHEMA) => {
                Form::JsonSchema
            }
            _ if takes(OBJECT) => Form::JsonObject,
            _ => Form::Text,
        };
        let most = if takes(MANY_LOGPROBS) { u8::MAX } else { FEW };
        Plan {
            form,
            top_logprobs: request
                .top_logprobs
                .filter(|_| takes(LOGPROBS) && dialect.top_logprobs.is_some())
                .map(|top| top.min(most)),
            temperature: dialect.temperature && takes(TEMPERATURE),
            seed: dialect.seed && takes(SEED),
            completion_tokens: !takes(PLAIN_TOKEN_LIMIT) && takes(COMPLETION_TOKEN_LIMIT),
        }
    }

    /// Lets one request at a time try what nobody has tried yet, so that concurrent ones do
    /// not all run into the same refusal. `None` where there is nothing to try, or where the
    /// one that tries takes long.
    pub(super) async fn trial(
        &self,
        plan: Plan,
        request: &ChatRequest,
    ) -> Option<MutexGuard<'_, ()>> {
        if self.is_confirmed(plan, request) {
            return None;
        }
        let guard = tokio::time::timeout(PATIENCE, self.trial.lock()).await.ok()?;
        (!self.is_confirmed(plan, request)).then_some(guard)
    }

    fn is_confirmed(&self, plan: Plan, request: &ChatRequest) -> bool {
        used(plan, request) & !self.confirmed.load(Ordering::Acquire) == 0
    }

    /// The server took this plan.
    pub(super) fn confirm(&self, plan: Plan, request: &ChatRequest) {
        let used = used(plan, request);
        // Read first: a write would have every core fetch the line anew at each call.
        if used & !self.confirmed.load(Ordering::Relaxed) != 0 {
            self.confirmed.fetch_or(used, Ordering::AcqRel);
        }
    }

    /// Learns from a refusal. True where it was about something that another plan avoids.
    pub(super) fn learn(
        &self,
        wire: Wire,
        fault: &ServerFault,
        plan: Plan,
        request: &ChatRequest,
    ) -> bool {
        let refused = complaint(fault, plan, request);
        self.refused.fetch_or(refused, Ordering::AcqRel);
        refused != 0 && self.plan(wire, request) != plan
    }
}

/// The features that a request makes use of under a plan.
fn used(plan: Plan, request: &ChatRequest) -> u16 {
    let form = match plan.form {
        Form::JsonSchema => SCHEMA,
        Form::JsonObject => OBJECT,
        Form::Text => 0,
    };
    let logprobs = match plan.top_logprobs {
        None => 0,
        Some(top) if top > FEW => LOGPROBS | MANY_LOGPROBS,
        Some(_) => LOGPROBS,
    };
    let limit = match (request.max_tokens, plan.completion_tokens) {
        (None, _) => 0,
        (Some(_), true) => COMPLETION_TOKEN_LIMIT,
        (Some(_), false) => PLAIN_TOKEN_LIMIT,
    };
    let temperature =
        if plan.temperature && request.temperature.is_some() { TEMPERATURE } else { 0 };
    let seed = if plan.seed && request.seed.is_some() { SEED } else { 0 };
    form | logprobs | limit | temperature | seed
}

/// The features that a server's words complain about, of those that were used.
fn complaint(fault: &ServerFault, plan: Plan, request: &ChatRequest) -> u16 {
    let says = |words: &[&str]| fault.mentions(words);
    let unsupported = says(&[
        "support",
        "not allowed",
        "not permitted",
        "unknown",
        "unrecognized",
        "unexpected",
        "extra_forbidden",
        "extra inputs",
        "extra fields",
        "deprecated",
        "only the default",
        "cannot be used",
        "can't be used",
        "invalid parameter",
        "unavailable",
        "not enabled",
    ]);
    let used = used(plan, request);
    let mut refused = 0;
    if used & (LOGPROBS | MANY_LOGPROBS) != 0 && says(&["logprob", "log prob"]) {
        let range = says(&["less than", "at most", "maximum", "between", "<=", "range", "exceed"]);
        refused |= if range && used & MANY_LOGPROBS != 0 { MANY_LOGPROBS } else { LOGPROBS };
    }
    if used & COMPLETION_TOKEN_LIMIT != 0 && unsupported && says(&["max_completion_tokens"]) {
        refused |= COMPLETION_TOKEN_LIMIT;
    }
    if used & PLAIN_TOKEN_LIMIT != 0 && says(&["max_completion_tokens"]) {
        refused |= PLAIN_TOKEN_LIMIT;
    }
    if used & TEMPERATURE != 0 && unsupported && says(&["temperature"]) {
        refused |= TEMPERATURE;
    }
    if used & SEED != 0 && unsupported && says(&["seed"]) {
        refused |= SEED;
    }
    if refused != 0 {
        return refused;
    }
    let about_form = says(&[
        "response_format",
        "response format",
        "responseformat",
        "json_schema",
        "json schema",
        "json_object",
        "json mode",
        "structured output",
        "response_schema",
        "responseschema",
        "response schema",
        "response_mime_type",
        "responsemimetype",
        "response mime type",
        "grammar",
        "guided",
        "invalid schema",
    ]);
    if about_form { used & (SCHEMA | OBJECT) } else { 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> ChatRequest {
        ChatRequest {
            temperature: Some(0.0),
            seed: Some(1),
            max_tokens: Some(9),
            response_format: ResponseFormat::JsonSchema { name: "v".into(), schema: json!({}) },
            top_logprobs: Some(20),
            ..ChatRequest::default()
        }
    }

    fn learn(capability: &Capability, message: &str) -> bool {
        let plan = capability.plan(Wire::OpenAi, &request());
        let body = json!({"error": {"message": message}}).to_string();
        capability.learn(Wire::OpenAi, &ServerFault::read(body.as_bytes()), plan, &request())
    }

    #[test]
    fn each_real_complaint_changes_the_one_thing_it_is_about() {
        let full = Capability::default().plan(Wire::OpenAi, &request());
        for (message, expected) in [
            (
                "body.response_format.type: Input should be 'text' or 'json_object'",
                Plan { form: Form::JsonObject, ..full },
            ),
            (
                "Invalid schema for response_format 'v': In context=(), 'additionalProperties' \
                 is required to be supplied and to be false.",
                Plan { form: Form::JsonObject, ..full },
            ),
            ("failed to parse grammar", Plan { form: Form::JsonObject, ..full }),
            (
                "logprobs are not supported with reasoning models.",
                Plan { top_logprobs: None, ..full },
            ),
            (
                "top_logprobs must be less than or equal to 5",
                Plan { top_logprobs: Some(5), ..full },
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                 'max_completion_tokens' instead.",
                Plan { completion_tokens: true, ..full },
            ),
            (
                "Unsupported value: 'temperature' does not support 0 with this model. Only the \
                 default (1) value is supported.",
                Plan { temperature: false, ..full },
            ),
            ("body.seed: Extra inputs are not permitted", Plan { seed: false, ..full }),
        ] {
            let capability = Capability::default();
            assert!(learn(&capability, message), "{message}");
            assert_eq!(capability.plan(Wire::OpenAi, &request()), expected, "{message}");
        }
    }

    #[test]
    fn the_form_goes_down_step_by_step_and_then_there_is_nothing_left_to_learn() {
        let capability = Capability::default();
        let complaint = "response_format is not supported";
        assert!(learn(&capability, complaint));
        assert!(learn(&capability, complaint));
        assert_eq!(capability.plan(Wire::OpenAi, &request()).form, Form::Text);
        assert!(!learn(&capability, complaint));
    }

    #[test]
    fn a_wrong_value_is_the_callers_fault_and_teaches_nothing() {
        let capability = Capability::default();
        let full = capability.plan(Wire::OpenAi, &request());
        for message in [
            "temperature must be between 0 and 2",
            "This model's maximum context length is 8192 tokens",
            "invalid api key",
            "",
        ] {
            assert!(!learn(&capability, message), "{message}");
        }
        assert_eq!(capability.plan(Wire::OpenAi, &request()), full);
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_tries_and_the_others_wait_for_it_but_not_for_long() {
        let capability = Capability::default();
        let plan = capability.plan(Wire::OpenAi, &request());
        let trial = capability.trial(plan, &request()).await.unwrap();
        let start = tokio::time::Instant::now();
        assert!(capability.trial(plan, &request()).await.is_none());
        assert_eq!(start.elapsed(), PATIENCE);
        capability.confirm(plan, &request());
        drop(trial);
        assert!(capability.trial(plan, &request()).await.is_none());
        assert_eq!(start.elapsed(), PATIENCE);
    }
}
