//! The HTTP server: a panel behind an address, with runs, loops and queues to look at.
//!
//! A request goes through the guards (host, origin, token), takes a place in a bounded queue,
//! and is read within limits of size and time; a judge's failure is a status in the ruling and
//! never an error of the server. Without a token the server refuses any address but this
//! machine's own.

mod accept;
mod admission;
mod body;
mod fault;
mod guard;
mod judge;
mod linger;
mod listen;
mod loops;
mod metrics;
mod openapi;
mod options;
mod pages;
mod reward;
mod runs;
mod service;
mod session;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

pub use self::fault::Fault;
pub use self::listen::{Drained, Server};
pub use self::options::{Limits, Options, OptionsError, RewardAs, RewardOptions};
pub use self::service::{Judging, Labelling, Service};
pub use super::access::{TokenError, Tokens};

/// Every route that the service's parts allow, behind its guards. A further router can be
/// merged in with [`router_with`], so that it stands behind the same guards.
pub fn router(service: Arc<Service>) -> Router {
    router_with(service, Router::new())
}

/// As [`router`], with routes of another module behind the same guards.
pub fn router_with(service: Arc<Service>, more: Router<Arc<Service>>) -> Router {
    let mut routes = Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics::page))
        .route("/openapi.json", get(openapi::page))
        .merge(pages::router(&service))
        .merge(more);
    if service.labelling().is_none() {
        routes = routes
            .route("/v1/runs", get(runs::list))
            .route("/v1/runs/{run}", get(runs::one))
            .route("/v1/runs/{run}/cases", get(runs::cases))
            .route("/v1/runs/{run}/cases/{case}", get(runs::case))
            .route("/v1/loops", get(loops::list))
            .route("/v1/loops/{run}", get(loops::one))
            .route("/v1/reviews", get(loops::reviews))
            .route("/v1/reviews/{run}", post(loops::review));
    }
    if service.judging().is_some() {
        routes = routes
            .route("/v1/score", post(judge::score))
            .route("/v1/gate", post(judge::gate))
            .route("/v1/score/batch", post(judge::batch))
            .route("/get_reward", post(reward::get_reward))
            .route("/verify", post(reward::verify))
            .route("/classify", post(reward::classify));
    }
    routes
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(service.clone(), metrics::measure))
        .fallback(nowhere)
        .layer(CatchPanicLayer::custom(fault::of_panic))
        .layer(DefaultBodyLimit::max(service.limits().body_bytes))
        .layer(middleware::from_fn_with_state(service.clone(), guard::guard))
        .layer(middleware::from_fn(linger::linger))
        .with_state(service)
}

/// The process lives.
async fn health() -> Response {
    fault::json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))
}

/// New work is taken.
async fn ready(State(service): State<Arc<Service>>) -> Response {
    match service.readiness() {
        Ok(()) => fault::json(StatusCode::OK, &serde_json::json!({ "status": "ready" })),
        Err(fault) => fault.into_response(),
    }
}

async fn nowhere() -> Fault {
    Fault::not_found("there is nothing at this path: `/openapi.json` lists what there is")
}

async fn wrong_method() -> Fault {
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path has other methods")
}
