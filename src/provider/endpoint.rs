//! One model behind one address: read from configuration once, checked, and shared.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::breaker::Breaker;
use super::capability::Capability;
use super::chat::ChatRequest;
use super::cost::{Price, listed};
use super::error::EndpointError;
use super::failure::scrubbed;
use super::key::KeyParts;
use super::ledger::WorstCase;
use super::pace::{Limits, Pace};
use super::service::{Auth, Service, provider_names};
use super::transport::is_loopback;
use super::wire::{DEFAULT_MAX_TOKENS, Target, Wire};
use crate::verdict::Usage;

/// One model behind one address, as configuration says it.
#[derive(Clone, Default, PartialEq)]
pub struct EndpointSpec {
    /// `provider/model`; `provider:model` is understood; split at the first separator only.
    pub model: String,
    /// The server, where it is not the provider's own. Without a path, the dialect's usual
    /// one (`/v1`, `/v1beta`) is meant.
    pub base_url: Option<String>,
    /// The environment variable that holds the key, where it is not the provider's usual one.
    /// With a `base_url` of one's own, a key is sent only when this is set.
    pub api_key_env: Option<String>,
    /// Extra request headers.
    pub headers: BTreeMap<String, String>,
    /// Merged into the request body last: a field replaces ours, `null` removes ours, an
    /// object is merged into ours.
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

impl fmt::Debug for EndpointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSpec")
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("api_key_env", &self.api_key_env)
            // Their values may be credentials.
            .field("headers", &self.headers.keys())
            .field("extra_body", &self.extra_body)
            .field("max_in_flight", &self.max_in_flight)
            .field("requests_per_minute", &self.requests_per_minute)
            .field("tokens_per_minute", &self.tokens_per_minute)
            .field("price", &self.price)
            .finish()
    }
}

/// What all endpoints of one address and key share.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) pace: Pace,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self { pace: Pace::new() }
    }
}

/// One model behind one address, with its key, limits and price. Cheap to clone.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) service: &'static Service,
    /// The model as its server names it: without the provider.
    pub(super) served_model: String,
    /// `provider/model`.
    pub(super) name: String,
    /// Without a trailing slash; for people and for keys.
    pub(super) base_url: String,
    /// Where requests go.
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// Whatever must not appear in an error: the key, and values of configured headers.
    secrets: Vec<SecretString>,
    /// The environment variable that the key came from; `None` where no key is sent.
    pub(super) key_variable: Option<String>,
    pub(super) extra_body: Map<String, Value>,
    pub(super) price: Option<Price>,
    pub(super) key_parts: KeyParts,
    pub(super) lane: Arc<Lane>,
    pub(super) breaker: Arc<Breaker>,
    pub(super) capability: Arc<Capability>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("model", &self.inner.name)
            .field("base_url", &self.inner.base_url)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The model as `provider/model`.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.inner.name
    }

    /// The address that requests go to, without the path of the request.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.inner.base_url
    }

    /// What of the endpoint can change an answer, for a judge's fingerprint: provider,
    /// model and extra body (not the address, the key, headers or limits).
    #[must_use]
    pub fn identity(&self) -> Value {
        json!({
            "provider": self.inner.service.name,
            "model": self.inner.served_model,
            "extra_body": self.inner.extra_body,
        })
    }

    /// US dollars per million tokens, from configuration or the price table.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.inner.price
    }

    /// The most that one request can take: as many prompt tokens as the messages have bytes,
    /// and `max_tokens` of completion (4,096 where the request does not say).
    #[must_use]
    pub fn worst_case(&self, request: &ChatRequest) -> WorstCase {
        self.inner.worst_case(request)
    }
}

/// Tokens of markup that a chat template puts around one message, generously.
const TOKENS_AROUND_MESSAGE: u64 = 16;

impl Inner {
    pub(super) fn wire(&self) -> Wire {
        self.service.wire
    }

    pub(super) fn target(&self) -> Target<'_> {
        Target {
            model: &self.served_model,
            seed_field: self.service.seed_field,
            extra_body: &self.extra_body,
        }
    }

    /// Prompt tokens at most.
    pub(super) fn tokens_in(request: &ChatRequest) -> u64 {
        request.messages.iter().map(|m| m.content.len() as u64 + TOKENS_AROUND_MESSAGE).sum()
    }

    pub(super) fn worst_case(&self, request: &ChatRequest) -> WorstCase {
        let usage = Usage {
            tokens_in: Self::tokens_in(request),
            tokens_out: u64::from(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)),
            ..Usage::default()
        };
        WorstCase {
            micro_dollars: self.price.map(|price| price.micro_dollars(&usage)),
            tokens_in: usage.tokens_in,
            tokens_out: usage.tokens_out,
        }
    }

    /// A server's words without keys and prompts.
    pub(super) fn scrub(&self, text: &str, request: &ChatRequest) -> String {
        scrubbed(text, self.secrets.iter().map(ExposeSecret::expose_secret), request)
    }
}

/// Everything of an endpoint that comes from configuration and environment; the client adds
/// what is shared.
pub(super) struct Checked {
    service: &'static Service,
    model: String,
    pub(super) base_url: String,
    url: Url,
    headers: HeaderMap,
    secrets: Vec<SecretString>,
    pub(super) key_variable: Option<String>,
    key_parts: KeyParts,
    pub(super) limits: Limits,
    price: Option<Price>,
    extra_body: Map<String, Value>,
}

impl Checked {
    pub(super) fn new(
        spec: &EndpointSpec,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, EndpointError> {
        let (service, model) = parse_model(&spec.model)?;
        let own = service.base_url.map(str::to_owned);
        let written = match (&spec.base_url, &own) {
            (Some(url), _) => url,
            (None, Some(url)) => url,
            (None, None) => {
                return Err(EndpointError::Invalid {
                    field: "base_url",
                    reason: format!(
                        "`{}` needs the address of your own resource, such as \
                         `https://NAME.openai.azure.com/openai/v1`",
                        service.name
                    ),
                });
            }
        };
        let base = parse_base_url(written, service.wire)?;
        let base_url = base.as_str().trim_end_matches('/').to_owned();
        let is_own_server = own.as_deref() != Some(base_url.as_str()) && service.base_url.is_some()
            || is_loopback(&base);
        let key = find_key(spec, service, is_own_server, variable)?;

        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in service.wire.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let mut secrets = Vec::new();
        let mut key_variable = None;
        if let Some((variable, key)) = key {
            let (name, value) = match service.auth {
                Auth::Bearer => (AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
                Auth::Header(name) => {
                    (HeaderName::from_static(name), key.expose_secret().to_owned())
                }
            };
            let mut value = HeaderValue::from_str(&value).map_err(|_| EndpointError::Invalid {
                field: "api_key_env",
                reason: format!("the key in `{variable}` has characters that no key has"),
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
            secrets.push(key);
            key_variable = Some(variable);
        }
        let mut hashed = BTreeMap::new();
        for (name, value) in &spec.headers {
            let invalid = |what: &str| EndpointError::Invalid {
                field: "headers",
                reason: format!("`{}` {what}", name.escape_debug()),
            };
            let parsed = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| invalid("is not a header's name"))?;
            let mut header = HeaderValue::from_str(value)
                .map_err(|_| invalid("has a value that a header can't hold"))?;
            header.set_sensitive(true);
            if !holds_credential(parsed.as_str()) {
                hashed.insert(parsed.as_str().to_owned(), value.clone());
            }
            headers.insert(parsed, header);
            // Short values are words, and would blank out half of an error.
            if value.len() >= 8 {
                secrets.push(SecretString::from(value.trim_start_matches("Bearer ").to_owned()));
            }
        }
        let price = spec.price.or_else(|| {
            (own.as_deref() == Some(base_url.as_str())).then(|| listed(service.name, &model))?
        });
        if price.is_some_and(|price| !price.is_valid()) {
            return Err(EndpointError::Invalid {
                field: "price",
                reason: "expected finite numbers of at least 0".into(),
            });
        }
        let mut url = base;
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(service.wire.path(&model));
        }
        Ok(Self {
            key_parts: KeyParts::new(
                service.name,
                service.wire.name(),
                &base_url,
                &model,
                &hashed,
                &spec.extra_body,
            ),
            service,
            model,
            base_url,
            url,
            headers,
            secrets,
            key_variable,
            limits: limits(spec)?,
            price,
            extra_body: spec.extra_body.clone(),
        })
    }

    /// What a model behind an address is assumed to take before it says otherwise.
    pub(super) fn first_capability(&self) -> Capability {
        // OpenAI's own server takes the new name for every model, and only that for some.
        if Some(self.base_url.as_str()) == self.service.base_url && self.service.name == "openai" {
            Capability::with_completion_tokens()
        } else {
            Capability::default()
        }
    }

    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.service.name, self.model)
    }

    pub(super) fn into_endpoint(
        self,
        lane: Arc<Lane>,
        breaker: Arc<Breaker>,
        capability: Arc<Capability>,
    ) -> Endpoint {
        Endpoint {
            inner: Arc::new(Inner {
                name: self.name(),
                service: self.service,
                served_model: self.model,
                base_url: self.base_url,
                url: self.url,
                headers: self.headers,
                secrets: self.secrets,
                key_variable: self.key_variable,
                extra_body: self.extra_body,
                price: self.price,
                key_parts: self.key_parts,
                lane,
                breaker,
                capability,
            }),
        }
    }
}

fn limits(spec: &EndpointSpec) -> Result<Limits, EndpointError> {
    for (field, is_zero) in [
        ("max_in_flight", spec.max_in_flight == Some(0)),
        ("requests_per_minute", spec.requests_per_minute == Some(0)),
        ("tokens_per_minute", spec.tokens_per_minute == Some(0)),
    ] {
        if is_zero {
            let reason = "expected at least 1; leave it out for no limit".to_owned();
            return Err(EndpointError::Invalid { field, reason });
        }
    }
    Ok(Limits {
        in_flight: spec.max_in_flight,
        requests_per_minute: spec.requests_per_minute,
        tokens_per_minute: spec.tokens_per_minute,
    })
}

fn parse_model(written: &str) -> Result<(&'static Service, String), EndpointError> {
    let error = |reason: String| EndpointError::Model { model: written.to_owned(), reason };
    let trimmed = written.trim();
    let Some(at) = trimmed.find(['/', ':']) else {
        let guess = match trimmed.to_lowercase() {
            name if name.starts_with("gpt-") || name.starts_with("o3") => "openai",
            name if name.starts_with("claude") => "anthropic",
            name if name.starts_with("gemini") => "gemini",
            _ => {
                return Err(error(
                    "expected `provider/model`, such as `openai/gpt-4.1-mini`".into(),
                ));
            }
        };
        let reason = format!("expected `provider/model`; did you mean `{guess}/{trimmed}`?");
        return Err(error(reason));
    };
    let (provider, model) = (trimmed[..at].trim(), trimmed[at + 1..].trim());
    let Some(service) = Service::named(provider) else {
        let near = match Service::near(provider) {
            Some(near) => format!("did you mean `{near}/{model}`?"),
            None => {
                let known: Vec<_> = provider_names().collect();
                format!(
                    "expected one of {}, or `openai/MODEL` with `base_url` for any other server \
                     that speaks OpenAI's dialect",
                    known.join(", ")
                )
            }
        };
        return Err(error(format!("`{provider}` is not a provider; {near}")));
    };
    if model.is_empty() || model.chars().any(char::is_control) {
        return Err(error(format!("expected a model after `{provider}{}`", &trimmed[at..=at])));
    }
    Ok((service, model.to_owned()))
}

fn parse_base_url(written: &str, wire: Wire) -> Result<Url, EndpointError> {
    let invalid = |reason: String| EndpointError::Invalid { field: "base_url", reason };
    let mut url = Url::parse(written.trim()).map_err(|error| {
        // What stands there may hold a credential, so it is not repeated.
        invalid(format!("not a URL ({error}): expected one such as `http://localhost:8080/v1`"))
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("expected a URL that begins with `http://` or `https://`".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("holds a user or password: use `api_key_env` or `headers`".into()));
    }
    if let Some((name, _)) = url.query_pairs().find(|(name, _)| holds_credential(name)) {
        return Err(invalid(format!("holds a credential in `{name}`: use `api_key_env`")));
    }
    url.set_fragment(None);
    for suffix in ["/chat/completions", "/messages", "/completions"] {
        if url.path().trim_end_matches('/').ends_with(suffix) {
            return Err(invalid(format!("leave out `{suffix}`, which is added to each request")));
        }
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(if path.is_empty() { wire.version() } else { &path });
    Ok(url)
}

/// Whether a header or query parameter of this name may hold a credential, and so must not
/// be part of a key.
fn holds_credential(name: &str) -> bool {
    let name = name.to_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password", "signature", "credential"]
        .iter()
        .any(|word| name.contains(word))
}

/// The key and the variable it was found in.
fn find_key(
    spec: &EndpointSpec,
    service: &Service,
    is_own_server: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(String, SecretString)>, EndpointError> {
    let read = |name: &str| {
        let key = variable(name)?.trim().to_owned();
        (!key.is_empty()).then(|| (name.to_owned(), SecretString::from(key)))
    };
    let missing = |variable: String| EndpointError::MissingKey {
        model: format!("{}{}", service.name, model_suffix(&spec.model)),
        variable,
    };
    if let Some(name) = &spec.api_key_env {
        return read(name).map(Some).ok_or_else(|| missing(name.clone()));
    }
    // A key of the provider's must not be sent to a server that is not the provider's.
    if is_own_server || service.variables.is_empty() {
        return Ok(None);
    }
    match service.variables.iter().find_map(|name| read(name)) {
        Some(found) => Ok(Some(found)),
        None => Err(missing(service.variables.join("` or `"))),
    }
}

fn model_suffix(written: &str) -> String {
    match written.find(['/', ':']) {
        Some(at) => format!("/{}", &written[at + 1..]),
        None => String::new(),
    }
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
