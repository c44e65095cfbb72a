//! `/v1/score`, `/v1/gate` and `/v1/score/batch`: a case in, a ruling out.
//!
//! The JSON is that of `venire score --json` and `venire gate --json`; a gate also answers in
//! words, for whoever asks for text. A ruling is an answer whatever it says: a judge that
//! failed is a status in it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt as _};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::fs::File;
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::{Instant, timeout};

use super::accept::wants_text;
use super::admission::Place;
use super::body;
use super::fault::{self, ErrorDetail, Fault};
use super::service::Service;
use crate::case::Case;
use crate::report::advice::{Reader, advice};
use crate::report::words::plain_lines;
use crate::ruling::{Decision, Ruling};
use crate::serve::lines::next_line;

/// Cases of one batch in judgement at a time at most: other requests have their turn too.
const AT_A_TIME: usize = 16;

/// How much longer than a case a whole batch may take to arrive.
const UPLOAD: u32 = 10;

/// The exit code of `venire gate` for the decision, for clients that are shell scripts.
const EXIT_CODE: HeaderName = HeaderName::from_static("venire-exit-code");

/// Judges a case.
pub(super) async fn score(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let ruling = one(&service, &headers, body).await?;
    Ok(fault::json(StatusCode::OK, &ruling))
}

/// Judges a case, with the decision as a header too; in words where text is asked for.
pub(super) async fn gate(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let ruling = one(&service, &headers, body).await?;
    let code = match ruling.decision {
        Decision::Accept => "0",
        Decision::Reject => "1",
        Decision::Undecided => "3",
    };
    let mut response = if wants_text(&headers) {
        fault::text(plain_lines(&advice(&ruling, Reader::Agent)))
    } else {
        fault::json(StatusCode::OK, &ruling)
    };
    response.headers_mut().insert(EXIT_CODE, HeaderValue::from_static(code));
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

async fn one(service: &Arc<Service>, headers: &HeaderMap, body: Body) -> Result<Ruling, Fault> {
    let arrived = Instant::now();
    let place = service.enter()?;
    let value = body::json(headers, body, service.limits()).await?;
    let case = Case::from_value(value)?;
    service.rule(&place, case, arrived).await
}

/// A line of a batch's answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) struct BatchLine {
    /// The line of the request, from 1.
    pub(super) line: u64,
    /// The ruling on its case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ruling: Option<Ruling>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ErrorDetail>,
}

/// The last line of a batch's answer: without it the answer is not whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BatchEnd {
    /// The sums.
    pub(super) summary: BatchSummary,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub(super) struct BatchSummary {
    /// Lines that were answered; empty ones are not.
    pub(super) lines: u64,
    /// Cases accepted.
    pub(super) accepted: u64,
    /// Cases rejected.
    pub(super) rejected: u64,
    /// Cases on which nothing was decided.
    pub(super) undecided: u64,
    /// Lines that hold no case, or could not be judged.
    pub(super) errors: u64,
}

/// Judges JSON Lines of cases, and answers a line each, in their order, as they come.
pub(super) async fn batch(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let place = service.enter()?;
    body::are_lines(&headers)?;
    let limits = *service.limits();
    body::check_length(&headers, limits.batch_bytes)?;
    // The whole request is taken before the first answer: a client that writes all before it
    // reads would else wait for a server that waits for it.
    let time = limits.case_time * UPLOAD;
    let file = timeout(time, spool(&service, body)).await.map_err(|_| body::too_slow(time))??;
    let answer = Body::from_stream(answers(service, place, file));
    let mut response = (StatusCode::OK, answer).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Puts a body into a file without a name.
async fn spool(service: &Service, body: Body) -> Result<File, Fault> {
    let limits = service.limits();
    let failed = |error: std::io::Error| {
        Fault::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "no_room",
            format!("the batch can't be kept while it is judged: {error}"),
        )
    };
    let mut file = File::from_std(tempfile::tempfile().map_err(failed)?);
    let mut parts = body::Parts::new(body, limits, limits.batch_bytes);
    while let Some(part) = parts.next().await? {
        file.write_all(&part).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    file.rewind().await.map_err(failed)?;
    Ok(file)
}

/// The lines of the answer, with the sums as the last one.
fn answers(
    service: Arc<Service>,
    place: Arc<Place>,
    file: File,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    let most = service.limits().body_bytes;
    let at_a_time = service.limits().concurrency.min(AT_A_TIME);
    let lines =
        stream::unfold((BufReader::new(file), 0), move |(mut reader, mut line)| async move {
            loop {
                line += 1;
                return match next_line(&mut reader, most).await {
                    Ok(Some(Some(bytes))) if bytes.trim_ascii().is_empty() => continue,
                    Ok(Some(text)) => Some((Ok((line, text)), (reader, line))),
                    Ok(None) => None,
                    Err(error) => Some((Err(error), (reader, line))),
                };
            }
        });
    let judged = lines.map(move |line| {
        let (service, place) = (service.clone(), place.clone());
        async move {
            let (line, text) = line?;
            let ruling = match text {
                Some(bytes) => judged(&service, &place, &bytes).await,
                None => Err(Fault::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "too_large",
                    format!("the line is longer than {most} bytes"),
                )),
            };
            Ok(match ruling {
                Ok(ruling) => BatchLine { line, ruling: Some(ruling), error: None },
                Err(fault) => BatchLine { line, ruling: None, error: Some(fault.body().error) },
            })
        }
    });
    let mut sums = BatchSummary::default();
    let ends = stream::once(async { None });
    judged.buffered(at_a_time).map(Some).chain(ends).map(move |line| match line {
        None => written(&BatchEnd { summary: sums }),
        Some(Err(error)) => Err(error),
        Some(Ok(line)) => {
            sums.lines += 1;
            match line.ruling.as_ref().map(|ruling| ruling.decision) {
                Some(Decision::Accept) => sums.accepted += 1,
                Some(Decision::Reject) => sums.rejected += 1,
                Some(Decision::Undecided) => sums.undecided += 1,
                None => sums.errors += 1,
            }
            written(&line)
        }
    })
}

async fn judged(service: &Arc<Service>, place: &Arc<Place>, bytes: &[u8]) -> Result<Ruling, Fault> {
    let case = Case::from_value(body::value(bytes)?)?;
    service.rule(place, case, Instant::now()).await
}

fn written<T: Serialize>(line: &T) -> Result<Bytes, std::io::Error> {
    let mut text = serde_json::to_vec(line).map_err(std::io::Error::other)?;
    text.push(b'\n');
    Ok(text.into())
}
