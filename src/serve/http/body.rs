//! Bodies of requests: JSON within limits of size and time, every key of an object once.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::timeout;

use super::fault::Fault;
use super::options::Limits;

/// Types of content that are JSON.
const JSON: &[&str] = &["application/json"];
/// Types of content that are JSON, one value a line.
const LINES: &[&str] = &[
    "application/x-ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/jsonlines",
    "application/json-lines",
    "application/json",
];

/// The body of a request as JSON.
pub(super) async fn json(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Value, Fault> {
    is_of_type(headers, JSON)?;
    let bytes = timeout(limits.case_time, whole(headers, body, limits))
        .await
        .map_err(|_| too_slow(limits.case_time))??;
    value(&bytes)
}

/// Bytes as JSON.
pub(super) fn value(bytes: &[u8]) -> Result<Value, Fault> {
    let broken = |message: String| Fault::new(StatusCode::BAD_REQUEST, "bad_json", message);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        broken(format!("the body is not UTF-8 text: byte {} is broken", error.valid_up_to()))
    })?;
    crate::config::json(text).map_err(|message| broken(format!("the body is not JSON: {message}")))
}

/// Refuses lines of another type than JSON Lines.
pub(super) fn are_lines(headers: &HeaderMap) -> Result<(), Fault> {
    is_of_type(headers, LINES)
}

/// Another type is refused: a page on another site can send some of them without asking.
fn is_of_type(headers: &HeaderMap, known: &[&str]) -> Result<(), Fault> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if known.contains(&essence.as_str()) {
        return Ok(());
    }
    let found = if essence.is_empty() { "none" } else { essence.as_str() };
    Err(Fault::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "media_type",
        format!("the header `content-type` says {found}: expected `{}`", known[0]),
    ))
}

/// The whole body, in memory.
async fn whole(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, Fault> {
    let most = limits.body_bytes as u64;
    check_length(headers, most)?;
    let mut parts = Parts::new(body, limits, most);
    let Some(first) = parts.next().await? else { return Ok(Bytes::new()) };
    let Some(second) = parts.next().await? else { return Ok(first) };
    let mut all = Vec::with_capacity(first.len() + second.len());
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    while let Some(part) = parts.next().await? {
        all.extend_from_slice(&part);
    }
    Ok(all.into())
}

/// Refuses a body whose declared length is too large, before any of it is read.
pub(super) fn check_length(headers: &HeaderMap, most: u64) -> Result<(), Fault> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match declared.and_then(|text| text.parse::<u64>().ok()) {
        Some(length) if length > most => Err(too_large(most)),
        _ => Ok(()),
    }
}

/// A body that trickles in would hold its place for ever.
pub(super) fn too_slow(time: Duration) -> Fault {
    Fault::new(
        StatusCode::REQUEST_TIMEOUT,
        "slow_body",
        format!("the body was not whole after {} s", time.as_secs_f64()),
    )
}

fn too_large(most: u64) -> Fault {
    Fault::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        format!("the body is larger than {most} bytes"),
    )
}

/// A body part by part, each within the time for reading.
pub(super) struct Parts<'a> {
    stream: axum::body::BodyDataStream,
    limits: &'a Limits,
    left: u64,
    most: u64,
}

impl<'a> Parts<'a> {
    pub(super) fn new(body: Body, limits: &'a Limits, most: u64) -> Self {
        Self { stream: body.into_data_stream(), limits, left: most, most }
    }

    /// The next part; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let part = timeout(self.limits.read_time, self.stream.next()).await.map_err(|_| {
            let seconds = self.limits.read_time.as_secs_f64();
            Fault::new(
                StatusCode::REQUEST_TIMEOUT,
                "slow_body",
                format!("nothing of the body came for {seconds} s"),
            )
        })?;
        let Some(part) = part else { return Ok(None) };
        let part = part.map_err(|error| {
            Fault::new(
                StatusCode::BAD_REQUEST,
                "broken_body",
                format!("the body broke off: {error}"),
            )
        })?;
        self.left = self.left.checked_sub(part.len() as u64).ok_or_else(|| too_large(self.most))?;
        Ok(Some(part))
    }
}
