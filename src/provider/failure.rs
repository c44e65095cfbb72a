//! What a failed attempt means: whether asking again may help, what it says about the server,
//! and the words for a person.

use std::time::Duration;

use super::chat::ChatRequest;
use super::endpoint::Inner;
use super::error::ProviderError;
use super::retry::MAX_ATTEMPTS;
use super::transport::{OUT_OF_FILES_HINT, TransportFault, Trouble};
use super::wire::ServerFault;
use crate::verdict::Status;

/// One attempt that failed.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// No response.
    Transport(TransportFault),
    /// A response that is an error.
    Server { status: u16, wait: Option<Duration>, fault: ServerFault },
    /// A response with a good status that is no reply.
    Unreadable { status: u16, reason: String },
}

/// Requests to send at most while nobody listens at an address where nobody ever answered.
const ATTEMPTS_UNREACHED: u32 = 4;

/// Server errors' words are cut to this many characters.
const LONGEST_QUOTE: usize = 300;

impl Failure {
    /// Requests to send at most, this one included, while this is what comes back; `reached`
    /// where anything ever answered at the address.
    pub(super) fn attempts(&self, reached: bool) -> u32 {
        match self {
            Self::Transport(fault) => match fault.trouble {
                Trouble::Tls | Trouble::TooLarge | Trouble::Setup => 1,
                Trouble::Refused if !reached => ATTEMPTS_UNREACHED,
                _ => MAX_ATTEMPTS,
            },
            Self::Server { status: 429, fault, .. } => {
                if exhausted(fault) {
                    1
                } else {
                    u32::MAX
                }
            }
            Self::Server { status, fault, .. } if is_too_long(*status, fault) => 1,
            Self::Server { status, fault, .. } if is_filtered(*status, fault) => 1,
            // It says that it will come: until the deadline.
            Self::Server { status: 503, fault, .. } if is_loading(fault) => u32::MAX,
            Self::Server { status, .. } => match status {
                408 | 409 | 425 => MAX_ATTEMPTS,
                // Not implemented, and not this version: nothing that time heals.
                501 | 505 => 1,
                500..=599 => MAX_ATTEMPTS,
                _ => 1,
            },
            Self::Unreadable { .. } => 2,
        }
    }

    /// The wait that the server asks for.
    pub(super) fn wait(&self) -> Option<Duration> {
        match self {
            Self::Server { wait, .. } => *wait,
            _ => None,
        }
    }

    /// Whether fewer requests at a time may help.
    pub(super) fn is_overload(&self) -> bool {
        match self {
            Self::Transport(fault) => fault.trouble == Trouble::Files,
            Self::Server { status: 429 | 503 | 529, fault, .. } => !exhausted(fault),
            _ => false,
        }
    }

    /// Whether the server took part in this failure at all.
    pub(super) fn is_of_server(&self) -> bool {
        !matches!(self, Self::Transport(fault) if matches!(fault.trouble, Trouble::Files | Trouble::Setup))
    }

    /// Whether something answered at the address, if only with an error.
    pub(super) fn was_reached(&self) -> bool {
        match self {
            Self::Transport(fault) => {
                matches!(fault.trouble, Trouble::Broken | Trouble::TooLarge)
            }
            _ => true,
        }
    }

    /// Whether the provider may bill what was sent although no usage came back: the request
    /// was taken, and what came of it is not known.
    pub(super) fn may_have_cost(&self) -> bool {
        match self {
            Self::Transport(fault) => {
                matches!(fault.trouble, Trouble::Broken | Trouble::TooLarge)
            }
            Self::Unreadable { .. } => true,
            Self::Server { .. } => false,
        }
    }

    /// Whether the server itself is in trouble, which the circuit breaker counts. One that
    /// says when to come back, or that it is loading its model, is not.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Transport(fault) => {
                !matches!(fault.trouble, Trouble::TooLarge | Trouble::Setup | Trouble::Files)
            }
            Self::Server { status, wait, fault } => {
                *status >= 500
                    && *status != 501
                    && wait.is_none()
                    && !is_loading(fault)
                    && !is_too_long(*status, fault)
            }
            Self::Unreadable { .. } => false,
        }
    }

    /// The error of a call that ends with this failure.
    pub(super) fn into_error(self, endpoint: &Inner, request: &ChatRequest) -> ProviderError {
        match self {
            Self::Transport(fault) => transport_error(&fault, endpoint),
            Self::Server { status, fault, .. } => {
                server_error(status, &fault, endpoint, request).http(status)
            }
            Self::Unreadable { status, reason } => ProviderError::new(
                Status::ProviderError,
                format!("`{}` did not reply: {}", endpoint.name, endpoint.scrub(&reason, request)),
            )
            .hint(format!("is `{}` the address of a model server's API?", endpoint.base_url))
            .http(status),
        }
    }
}

fn transport_error(fault: &TransportFault, endpoint: &Inner) -> ProviderError {
    let at = &endpoint.base_url;
    let cause = &fault.cause;
    let error = |what: &str| {
        ProviderError::new(Status::ProviderError, format!("`{}`: {what}", endpoint.name))
    };
    match fault.trouble {
        Trouble::Refused => error(&format!("connection refused by `{at}`"))
            .hint(format!("is a server listening at `{at}`?")),
        Trouble::ConnectTimeout => ProviderError::new(
            Status::Timeout,
            format!("`{}`: no connection to `{at}` in time", endpoint.name),
        )
        .hint(format!("is `{at}` reachable from here, or is a proxy needed (`HTTPS_PROXY`)?")),
        Trouble::Name => error(&format!("the host of `{at}` has no address ({cause})"))
            .hint("check the spelling of `base_url`, and the network"),
        Trouble::Tls => error(&format!("no secure connection to `{at}` ({cause})"))
            .hint("a local server usually speaks `http://`, not `https://`"),
        Trouble::Files => {
            error(&format!("too many open files in this process ({cause})")).hint(OUT_OF_FILES_HINT)
        }
        Trouble::Connect => error(&format!("no connection to `{at}` ({cause})")),
        Trouble::Broken => error(&format!("the connection to `{at}` broke ({cause})")),
        Trouble::TooLarge => error(cause),
        Trouble::Setup => error(&format!("failed to set up an HTTP client ({cause})")),
    }
}

fn server_error(
    status: u16,
    fault: &ServerFault,
    endpoint: &Inner,
    request: &ChatRequest,
) -> ProviderError {
    let name = &endpoint.name;
    let words = endpoint.scrub(&fault.message, request);
    let says = if words.is_empty() { String::new() } else { format!(": {words}") };
    let error = |status, what: String| ProviderError::new(status, what);
    match status {
        _ if is_too_long(status, fault) => error(
            Status::ProviderError,
            format!("the prompt does not fit in the context of `{name}`{says}"),
        )
        .too_long()
        .hint("shorten the case or the rubric's examples, or use a model with a longer context"),
        _ if is_filtered(status, fault) => error(
            Status::Refused,
            format!("the content filter of `{name}` refused the prompt{says}"),
        ),
        401 | 403 => {
            let denied = error(
                Status::ProviderError,
                format!("`{name}` denied access (HTTP {status}){says}"),
            );
            match &endpoint.key_variable {
                Some(variable) => denied
                    .hint(format!("check the API key in the environment variable `{variable}`")),
                None => denied.hint(
                    "no API key was sent: name the environment variable that holds it with \
                     `api_key_env`",
                ),
            }
        }
        402 => error(Status::ProviderError, format!("the account of `{name}` has no credit{says}"))
            .hint("add credit with the provider, then run again: finished calls are kept"),
        404 => error(
            Status::ProviderError,
            format!("`{}` was not found at `{}`{says}", endpoint.served_model, endpoint.base_url),
        )
        .hint(models_hint(endpoint)),
        400 | 422 if unknown_model(fault) => error(
            Status::ProviderError,
            format!("`{}` is no model of `{}`{says}", endpoint.served_model, endpoint.base_url),
        )
        .hint(models_hint(endpoint)),
        429 if exhausted(fault) => {
            error(Status::RateLimited, format!("the quota of `{name}` is used up{says}")).hint(
                "check plan and billing with the provider; waiting a few minutes will not help",
            )
        }
        429 => error(Status::RateLimited, format!("`{name}` is rate limited{says}"))
            .hint("set `requests_per_minute` or `tokens_per_minute`, or lower `max_in_flight`"),
        300..=399 => error(
            Status::ProviderError,
            format!(
                "`{}` redirects elsewhere (HTTP {status}), which is not followed",
                endpoint.base_url
            ),
        )
        .hint("set `base_url` to the address that it redirects to"),
        _ => error(Status::ProviderError, format!("`{name}` failed with HTTP {status}{says}")),
    }
}

fn models_hint(endpoint: &Inner) -> String {
    format!("`{}/models` lists the models there are", endpoint.base_url)
}

/// A quota of a day or of an account, which no wait within a run refills.
fn exhausted(fault: &ServerFault) -> bool {
    let long = ["per day", "perday", "per_day", "daily", "(rpd)", "(tpd)", "monthly", "per month"];
    let short =
        ["per minute", "perminute", "per_minute", "per min", "per second", "(rpm)", "(tpm)"];
    let account = [
        "insufficient_quota",
        "billing",
        "credit balance",
        "insufficient balance",
        "insufficient credit",
    ];
    // Gemini speaks of billing at a limit of a minute too.
    fault.mentions(&long) || (fault.mentions(&account) && !fault.mentions(&short))
}

/// Whether the prompt is longer than the model's context. A limit of a minute speaks of too
/// many tokens as well, with another status.
pub(super) fn is_too_long(status: u16, fault: &ServerFault) -> bool {
    let phrases = [
        "context_length_exceeded",
        "exceed_context_size",
        "maximum context length",
        "context length",
        "context size",
        "context window",
        "prompt is too long",
        "input is too long",
        "maximum number of tokens",
        "reduce the length",
        "too many tokens",
    ];
    matches!(status, 400 | 413 | 422 | 500) && fault.mentions(&phrases)
}

/// Whether a filter of the provider's refused the prompt for its content, which says nothing
/// of the request's form. Azure, OpenAI, OpenRouter, DashScope and DeepSeek say it so.
pub(super) fn is_filtered(status: u16, fault: &ServerFault) -> bool {
    let phrases = [
        "content_filter",
        "responsibleaipolicyviolation",
        "content management policy",
        "content_policy_violation",
        "input was flagged",
        "data_inspection_failed",
        "datainspectionfailed",
        "content exists risk",
    ];
    matches!(status, 400 | 403 | 422) && fault.mentions(&phrases)
}

fn is_loading(fault: &ServerFault) -> bool {
    fault.mentions(&["loading"])
}

fn unknown_model(fault: &ServerFault) -> bool {
    fault.mentions(&["model_not_found", "invalid model", "unknown model", "no such model"])
        || (fault.mentions(&["model"]) && fault.mentions(&["does not exist", "not found"]))
}

/// A server's words on one line, without keys, without the prompt, and not too long.
pub(super) fn scrubbed<'a>(
    text: &str,
    secrets: impl Iterator<Item = &'a str>,
    request: &ChatRequest,
) -> String {
    let mut text = text.to_owned();
    for secret in secrets.filter(|secret| !secret.is_empty()) {
        text = text.replace(secret, "[key]");
    }
    for message in &request.messages {
        // A short message, such as "yes", may well be a word of the error.
        if message.content.len() >= 16 {
            text = text.replace(&message.content, "[prompt]");
            text = without_start_of(&text, &message.content);
        }
    }
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()));
    }
    if line.chars().count() > LONGEST_QUOTE {
        line = line.chars().take(LONGEST_QUOTE).collect();
        line.push('…');
    }
    line
}

/// Removes a quote that was cut off: everything from the first 32 characters of the prompt.
fn without_start_of(text: &str, prompt: &str) -> String {
    let start: String = prompt.chars().take(32).collect();
    match text.find(&start) {
        Some(at) if start.len() >= 16 => format!("{}[prompt]", &text[..at]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Message, Role};

    fn server(status: u16, body: &str) -> Failure {
        Failure::Server { status, wait: None, fault: ServerFault::read(body.as_bytes()) }
    }

    #[test]
    fn only_what_time_may_heal_is_asked_again() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
            assert!(server(status, "{}").attempts(true) > 1, "{status}");
        }
        for status in [301, 400, 401, 402, 403, 404, 405, 413, 422, 501] {
            assert_eq!(server(status, "{}").attempts(true), 1, "{status}");
        }
    }

    #[test]
    fn a_quota_of_a_day_or_an_account_is_told_from_a_burst_limit() {
        for body in [
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","code":"insufficient_quota"}}"#,
            r#"{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}}"#,
            r#"{"error":{"message":"Rate limit reached for requests per day (RPD): Limit 200"}}"#,
        ] {
            assert_eq!(server(429, body).attempts(true), 1, "{body}");
            assert!(!server(429, body).is_overload(), "{body}");
        }
        for body in [
            r#"{"error":{"message":"Rate limit reached on tokens per min (TPM): Limit 30000","code":"rate_limit_exceeded"}}"#,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]}]}}"#,
        ] {
            assert!(server(429, body).attempts(true) > MAX_ATTEMPTS, "{body}");
            assert!(server(429, body).is_overload(), "{body}");
        }
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_asked_once_whatever_the_status() {
        for body in [
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
        ] {
            for status in [400, 413, 422, 500] {
                assert_eq!(server(status, body).attempts(true), 1, "{status} {body}");
                assert!(!server(status, body).is_outage(), "{status} {body}");
            }
        }
        assert!(
            server(429, r#"{"error":{"message":"too many tokens per minute"}}"#).attempts(true) > 1
        );
    }

    #[test]
    fn a_content_filter_is_a_refusal_whichever_field_says_so() {
        for body in [
            r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","param":"prompt","code":"content_filter","status":400}}"#,
            r#"{"error":{"message":"Filtered.","code":"400","innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"violence":{"filtered":true}}}}}"#,
            r#"{"error":{"message":"Rejected.","code":"content_policy_violation"}}"#,
        ] {
            let Failure::Server { fault, .. } = server(400, body) else { unreachable!() };
            assert!(is_filtered(400, &fault), "{body}");
            assert_eq!(server(400, body).attempts(true), 1, "{body}");
        }
        let Failure::Server { fault, .. } =
            server(400, r#"{"error":{"message":"bad `temperature`"}}"#)
        else {
            unreachable!()
        };
        assert!(!is_filtered(400, &fault));
    }

    #[test]
    fn what_was_taken_and_not_answered_may_have_cost_something() {
        let broken = |trouble| {
            Failure::Transport(TransportFault { trouble, cause: String::new() }).may_have_cost()
        };
        assert!(broken(Trouble::Broken) && broken(Trouble::TooLarge));
        for trouble in [Trouble::Refused, Trouble::Name, Trouble::ConnectTimeout, Trouble::Files] {
            assert!(!broken(trouble), "{trouble:?}");
        }
        assert!(Failure::Unreadable { status: 200, reason: String::new() }.may_have_cost());
        assert!(!server(500, "{}").may_have_cost() && !server(400, "{}").may_have_cost());
    }

    #[test]
    fn a_loading_model_is_no_outage() {
        assert!(!server(503, r#"{"error":{"message":"Loading model"}}"#).is_outage());
        assert!(server(503, "").is_outage());
        assert!(server(503, r#"{"error":{"message":"Loading model"}}"#).attempts(true) > 1);
    }

    #[test]
    fn keys_and_prompts_are_scrubbed_and_the_rest_is_one_short_line() {
        let prompt = "机密：这是一个很长的提示，不能出现在错误里。It goes on and on and on.";
        let request = ChatRequest {
            messages: vec![Message { role: Role::User, content: prompt.into() }],
            ..ChatRequest::default()
        };
        let scrub = |text: &str| scrubbed(text, ["sk-12345"].into_iter(), &request);
        assert_eq!(scrub("bad key sk-12345,\n\n  x\u{7}"), "bad key [key], x");
        assert_eq!(scrub(&format!("input '{prompt}' is bad")), "input '[prompt]' is bad");
        let cut: String = prompt.chars().take(40).collect();
        assert_eq!(scrub(&format!("input '{cut}...")), "input '[prompt]");
        let long = scrub(&"长 ".repeat(5_000));
        assert_eq!(long.chars().count(), LONGEST_QUOTE + 1);
    }
}
