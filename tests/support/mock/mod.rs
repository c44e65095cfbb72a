//! A model server for tests: three wire formats, answers that follow from the request, and
//! misbehaviour on demand.
//!
//! Quality can be set from outside: a candidate that holds `[[quality:0.8]]` is scored 0.8 on
//! whatever scale is asked for. Without the mark the score follows from a hash of the model
//! and the request, so it is arbitrary but always the same.
//!
//! Control from another process: `GET /_log`, `POST /_script` (a JSON list of faults, see
//! [`Fault`]), `POST /_reset`.

mod answer;
mod connection;
mod fault;
mod log;
mod speech;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use futures::StreamExt;
use serde_json::{Value, json};

pub(crate) use answer::{Answer, Asked};
pub(crate) use fault::Fault;
pub(crate) use log::Log;

use connection::{Cutter, KillableListener};
use speech::Wire;

/// Answers a request in the test's own way; `None` leaves it to the usual answer.
pub(crate) type AnswerFn = Arc<dyn Fn(&Asked) -> Option<Answer> + Send + Sync>;

/// How the server behaves.
#[derive(Clone, Default)]
pub(crate) struct Options {
    /// The port; 0 takes a free one.
    pub(crate) port: u16,
    /// Time from the request to the answer.
    pub(crate) latency: Duration,
    /// The share of requests that go wrong at random, in [0, 1].
    pub(crate) faults: f64,
    /// Makes the random faults repeatable: they follow from it, the request, and how often
    /// the request was seen before.
    pub(crate) seed: u64,
    /// Requests without this key are answered 401.
    pub(crate) key: Option<String>,
    /// Features to refuse: `json_schema`, `json_object`, `logprobs`, `temperature`,
    /// `max_tokens`.
    pub(crate) refuses: Vec<String>,
    /// How far a score may be off the marked quality, by model and request, in [0, 1].
    pub(crate) noise: f64,
    /// The test's own answers.
    pub(crate) answer: Option<AnswerFn>,
}

struct Shared {
    options: Options,
    script: Mutex<VecDeque<Fault>>,
    log: Log,
}

/// A running server; dropping it stops it.
pub(crate) struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Mock {
    /// Starts a server on the loopback address.
    pub(crate) async fn start(options: Options) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listener = tokio::net::TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { options, script: Mutex::default(), log: Log::default() });
        let app = router(Arc::clone(&shared)).into_make_service_with_connect_info::<Cutter>();
        let task = tokio::spawn(async move {
            // Runs until aborted; a failed accept is retried inside.
            let _ = axum::serve(KillableListener(listener), app).await;
        });
        Ok(Self { address, shared, task })
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues faults: one a request, in order.
    pub(crate) fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.shared.script).extend(faults);
    }

    /// What was asked so far.
    pub(crate) fn log(&self) -> &Log {
        &self.shared.log
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat_completions))
        .route("/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .route("/v1beta/models/{call}", post(generate_content))
        .route("/v1/models", get(models))
        .route("/health", get(async || Json(json!({"status": "ok"}))))
        .route("/_log", get(read_log))
        .route("/_reset", post(reset))
        .route("/_script", post(script))
        .with_state(shared)
}

async fn models() -> Json<Value> {
    let data = ["mock-small", "mock-large"].map(|id| json!({"id": id, "object": "model"}));
    Json(json!({"object": "list", "data": data}))
}

async fn read_log(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.log.to_json())
}

async fn reset(State(shared): State<Arc<Shared>>) {
    lock(&shared.script).clear();
    shared.log.clear();
}

async fn script(State(shared): State<Arc<Shared>>, Json(faults): Json<Vec<Fault>>) -> Json<Value> {
    let mut script = lock(&shared.script);
    script.extend(faults);
    Json(json!({"queued": script.len()}))
}

type Context = (State<Arc<Shared>>, ConnectInfo<Cutter>, HeaderMap);

async fn chat_completions(context: Context, body: Bytes) -> Response<Body> {
    serve(Wire::OpenAi, None, context, body).await
}

async fn messages(context: Context, body: Bytes) -> Response<Body> {
    serve(Wire::Anthropic, None, context, body).await
}

async fn generate_content(
    Path(call): Path<String>,
    context: Context,
    body: Bytes,
) -> Response<Body> {
    match call.strip_suffix(":generateContent") {
        Some(model) => serve(Wire::Gemini, Some(model), context, body).await,
        None => error(Wire::Gemini, 404, "unknown method", "NOT_FOUND"),
    }
}

async fn serve(
    wire: Wire,
    model: Option<&str>,
    (State(shared), ConnectInfo(cutter), headers): Context,
    body: Bytes,
) -> Response<Body> {
    let given = wire.key(&headers);
    let visit = shared.log.arrive(wire.path(), &body, given.is_some(), &headers);
    if let Some(expected) = &shared.options.key
        && given.as_deref() != Some(expected)
    {
        // The key is echoed on purpose: a client must not pass it on.
        let message = format!("Incorrect API key provided: {}", given.unwrap_or_default());
        return error(wire, 401, &message, "invalid_api_key");
    }
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return error(wire, 400, "the body is not JSON", "invalid_request_error");
    };
    let asked = match wire.read(&request, model) {
        Ok(asked) => asked,
        Err(message) => return error(wire, 400, &message, "invalid_request_error"),
    };
    visit.name_model(&asked.model);
    if let Some((status, message)) = refusal(&shared.options.refuses, &request) {
        return error(wire, status, message, "invalid_request_error");
    }
    let scripted = lock(&shared.script).pop_front();
    let fault = scripted.or_else(|| {
        let Options { seed, faults, .. } = shared.options;
        Fault::at_random(seed, faults, &body, visit.seen_before())
    });
    if shared.options.latency > Duration::ZERO {
        tokio::time::sleep(shared.options.latency).await;
    }
    if let Some(fault) = &fault {
        visit.name_fault(fault);
    }
    let own = shared.options.answer.as_ref().and_then(|answer| answer(&asked));
    let answer = own.unwrap_or_else(|| answer::usual(&asked, shared.options.noise));
    let started = Instant::now();
    let response = respond(wire, &asked, answer, fault.as_ref(), &cutter).await;
    let done = response.status().is_success() && fault.as_ref().is_none_or(Fault::is_answered);
    visit.leave(response.status().as_u16(), done, started.elapsed());
    response
}

/// A refusal of a feature, in the words of real servers.
fn refusal(refuses: &[String], request: &Value) -> Option<(u16, &'static str)> {
    let has = |feature: &str| refuses.iter().any(|refused| refused == feature);
    let format = request["response_format"]["type"].as_str();
    let temperature = request.get("temperature").is_some();
    match () {
        () if has("json_schema") && format == Some("json_schema") => Some((
            500,
            "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \
             \"Input should be 'text' or 'json_object'\"}]",
        )),
        () if has("json_object") && format == Some("json_object") => {
            Some((400, "response_format json_object is not supported by this model"))
        }
        () if has("logprobs") && request.get("logprobs").is_some() => {
            Some((400, "logprobs are not supported with reasoning models."))
        }
        () if has("max_tokens") && request.get("max_tokens").is_some() => Some((
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
             'max_completion_tokens' instead.",
        )),
        () if has("temperature") && temperature => Some((
            400,
            "Unsupported value: 'temperature' does not support 0 with this model. Only the \
             default (1) value is supported.",
        )),
        () => None,
    }
}

async fn respond(
    wire: Wire,
    asked: &Asked,
    mut answer: Answer,
    fault: Option<&Fault>,
    cutter: &Cutter,
) -> Response<Body> {
    let good = |answer: &Answer| wire.write(asked, answer).to_string();
    match fault {
        None | Some(Fault::None) => json_response(200, good(&answer)),
        Some(Fault::RateLimit { retry_after }) => {
            let mut response = error(wire, 429, "Rate limit reached", "rate_limit_exceeded");
            if let Some(wait) = retry_after
                && let Ok(value) = wait.parse()
            {
                response.headers_mut().insert("retry-after", value);
            }
            response
        }
        Some(Fault::Quota) => error(
            wire,
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
        ),
        Some(Fault::Status { status, message }) => {
            error(wire, *status, message.as_deref().unwrap_or("the mock was told to fail"), "mock")
        }
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Slow { ms }) => {
            tokio::time::sleep(Duration::from_millis(*ms)).await;
            json_response(200, good(&answer))
        }
        Some(Fault::Trickle { ms }) => {
            let pause = Duration::from_millis(*ms);
            let pieces: Vec<Bytes> =
                good(&answer).into_bytes().chunks(64).map(Bytes::copy_from_slice).collect();
            let slowly = futures::stream::iter(pieces).then(move |piece| async move {
                tokio::time::sleep(pause).await;
                Ok::<_, Infallible>(piece)
            });
            json_response(200, Body::from_stream(slowly))
        }
        Some(Fault::Reset) => {
            cutter.cut();
            json_response(200, good(&answer))
        }
        Some(Fault::BreakBody) => {
            let body = good(&answer).into_bytes();
            let half = Bytes::copy_from_slice(&body[..body.len() / 2]);
            let pieces = [Ok(half), Err(io::Error::other("told to break"))];
            json_response(200, Body::from_stream(futures::stream::iter(pieces)))
        }
        Some(Fault::Truncate) => {
            let body = good(&answer);
            let mut half = body.len() / 2;
            while !body.is_char_boundary(half) {
                half += 1;
            }
            json_response(200, body[..half].to_owned())
        }
        Some(Fault::Html) => Response::new(Body::from(
            "<!DOCTYPE html><html><head><title>Sign in</title></head><body></body></html>",
        )),
        Some(Fault::EmptyBody) => json_response(200, String::new()),
        Some(Fault::Nan) => {
            answer.text = "NaN".into();
            answer.tokens.clear();
            let mut body = good(&answer);
            body.insert_str(1, "\"score\": NaN, ");
            json_response(200, body)
        }
        Some(Fault::NoChoices) => {
            let mut body = wire.write(asked, &answer);
            wire.remove_answer(&mut body);
            json_response(200, body.to_string())
        }
        Some(Fault::NoUsage) => {
            let mut body = wire.write(asked, &answer);
            wire.remove_usage(&mut body);
            json_response(200, body.to_string())
        }
        Some(Fault::Huge { bytes }) => {
            answer.text = "x".repeat(*bytes);
            answer.tokens.clear();
            json_response(200, good(&answer))
        }
        Some(spoken) => {
            spoken.spoil(&mut answer);
            json_response(200, good(&answer))
        }
    }
}

fn json_response(status: u16, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = axum::http::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

fn error(wire: Wire, status: u16, message: &str, code: &str) -> Response<Body> {
    json_response(status, wire.error(status, message, code).to_string())
}
