//! Figures for Prometheus: requests, rulings, verdicts, the queue, money. Never a text.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::fault::Fault;
use super::service::Service;
use crate::ruling::Ruling;

/// Bounds of times in seconds: rules take microseconds, models a minute.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: String,
    method: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Decided {
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judged {
    judge: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judge {
    judge: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Direction {
    direction: &'static str,
}

type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

/// What is counted.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    request_seconds: Seconds<Route>,
    refused: Family<Why, Counter>,
    rulings: Family<Decided, Counter>,
    verdicts: Family<Judged, Counter>,
    verdict_seconds: Seconds<Judge>,
    tokens: Family<Direction, Counter>,
    cost: Counter<f64, AtomicU64>,
    entered: Gauge,
    judging: Gauge,
    pub(super) connections: Gauge,
}

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("venire");
        let metrics = Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(histogram),
            refused: Family::default(),
            rulings: Family::default(),
            verdicts: Family::default(),
            verdict_seconds: Family::new_with_constructor(histogram),
            tokens: Family::default(),
            cost: Counter::default(),
            entered: Gauge::default(),
            judging: Gauge::default(),
            connections: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("requests", "Requests answered", metrics.requests.clone());
        registry.register(
            "request_seconds",
            "Time from a request's headers to its answer's",
            metrics.request_seconds.clone(),
        );
        registry.register(
            "refused",
            "Requests refused before they were read: a full queue, a host, an origin, a token",
            metrics.refused.clone(),
        );
        registry.register("rulings", "Rulings by decision", metrics.rulings.clone());
        registry.register("verdicts", "Verdicts by judge and status", metrics.verdicts.clone());
        registry.register(
            "verdict_seconds",
            "Time of verdicts with status ok that were not found in the store",
            metrics.verdict_seconds.clone(),
        );
        registry.register("tokens", "Tokens of models", metrics.tokens.clone());
        registry.register(
            "cost_usd",
            "US dollars of calls to models that have a price",
            metrics.cost.clone(),
        );
        registry.register(
            "requests_in_hand",
            "Requests that wait or are judged",
            metrics.entered.clone(),
        );
        registry.register("cases_in_judgement", "Cases in judgement", metrics.judging.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        let version = [("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        let info: Family<[(String, String); 1], ConstGauge<i64>> =
            Family::new_with_constructor(|| ConstGauge::new(1));
        drop(info.get_or_create(&version));
        registry.register("build_info", "The version of this program", info);
        Self { registry, ..metrics }
    }

    pub(super) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Why { reason }).inc();
    }

    /// Counts a ruling and its verdicts.
    pub(super) fn ruled(&self, ruling: &Ruling) {
        self.rulings.get_or_create(&Decided { decision: ruling.decision.name() }).inc();
        for verdict in &ruling.verdicts {
            let labels = Judged { judge: verdict.judge.clone(), status: verdict.status.name() };
            self.verdicts.get_or_create(&labels).inc();
            if verdict.score.is_some() && !verdict.cached {
                let judge = Judge { judge: verdict.judge.clone() };
                self.verdict_seconds
                    .get_or_create(&judge)
                    .observe(verdict.latency_ms as f64 / 1000.0);
            }
            // What the store answered was paid for before.
            if verdict.cached {
                continue;
            }
            for (direction, tokens) in
                [("in", verdict.usage.tokens_in), ("out", verdict.usage.tokens_out)]
            {
                if tokens > 0 {
                    self.tokens.get_or_create(&Direction { direction }).inc_by(tokens);
                }
            }
            if let Some(cost) = verdict.cost_usd {
                self.cost.inc_by(cost);
            }
        }
    }
}

/// Notes a request and the time of its answer.
pub(super) async fn measure(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response {
    // By the route's pattern: a path that somebody makes up must not make a new series.
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS" | "PATCH") => known,
        _ => "other",
    };
    let method = method.to_owned();
    let started = Instant::now();
    let response = next.run(request).await;
    let metrics = &service.metrics;
    let seconds = started.elapsed().as_secs_f64();
    metrics.request_seconds.get_or_create(&Route { route: route.clone() }).observe(seconds);
    let status = response.status().as_u16();
    metrics.requests.get_or_create(&Answered { route, method, status }).inc();
    response
}

/// All figures as text.
pub(super) async fn page(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let metrics = &service.metrics;
    metrics.entered.set(service.admission.entered() as i64);
    metrics.judging.set(service.admission.judging() as i64);
    let mut text = String::new();
    prometheus_text::encode(&mut text, &metrics.registry)
        .map_err(|error| Fault::internal(format!("the figures can't be written: {error}")))?;
    let mut response = text.into_response();
    let kind = HeaderValue::from_static(prometheus_text::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
