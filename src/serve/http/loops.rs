//! `/v1/loops` and `/v1/reviews`: loops as their logs have them, and the questions that wait.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body;
use super::fault::{self, Fault};
use super::runs::path;
use super::service::Service;
use crate::control::review::{self, Pending, ReviewError};
use crate::control::watch::watch;
use crate::control::{Answer, Reason, log};
use crate::score::Score;

/// Loops, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LoopList {
    /// All that are kept.
    pub(super) loops: Vec<LoopRow>,
}

/// A loop.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LoopRow {
    /// The run.
    pub(super) run: String,
    /// When it began, in UTC.
    pub(super) started: String,
    /// What was asked.
    pub(super) task: String,
    /// Outputs made.
    pub(super) generations: u64,
    /// Why it ended; null where it has not.
    pub(super) reason: Option<Reason>,
    /// What is wrong with its log, where it is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) damaged: Option<String>,
}

/// The questions that wait, the oldest run first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ReviewList {
    /// The questions.
    pub(super) reviews: Vec<Pending>,
    /// Logs that can't be read.
    pub(super) damaged: Vec<String>,
}

/// What a person says to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewRequest {
    /// The answer; without one the question goes on waiting.
    #[serde(default)]
    pub(super) answer: Option<AnswerBody>,
    /// A score of the output in question, in [0,1]: kept as a label.
    #[serde(default)]
    pub(super) score: Option<f64>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "text", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum AnswerBody {
    /// The best output is good: the run ends.
    Accept,
    /// It is no use going on: the run ends.
    Stop,
    /// The output is not good, for this reason, and the run goes on.
    Reject(String),
    /// Go on, with these words for the agent.
    Continue(String),
    /// Judge this text instead.
    Edit(String),
}

impl From<AnswerBody> for Answer {
    fn from(body: AnswerBody) -> Self {
        match body {
            AnswerBody::Accept => Self::Accept,
            AnswerBody::Stop => Self::Reject,
            AnswerBody::Reject(why) => Self::RejectWith(why),
            AnswerBody::Continue(note) => Self::Continue(note),
            AnswerBody::Edit(text) => Self::Edit(text),
        }
    }
}

/// Work on logs, away from the threads that answer requests.
pub(super) async fn apart<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(PathBuf) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let loops = service.loops().to_owned();
    let task = tokio::task::spawn_blocking(move || work(loops));
    task.await.map_err(|error| Fault::internal(format!("reading the loops ended: {error}")))?
}

/// The questions that wait.
pub(super) fn waiting(loops: &std::path::Path) -> Result<(Vec<Pending>, Vec<String>), Fault> {
    let (waiting, damaged) = review::pending(loops)
        .map_err(|error| Fault::internal(format!("the loops can't be read: {error}")))?;
    Ok((waiting, damaged.iter().map(ToString::to_string).collect()))
}

/// Writes what a person said.
pub(super) fn answer(
    loops: &std::path::Path,
    run: &str,
    label: Option<f64>,
    answer: Option<Answer>,
) -> Result<(), Fault> {
    if matches!(&answer, Some(Answer::RejectWith(why)) if why.trim().is_empty()) {
        let message = "a rejection with which the run goes on needs a reason";
        return Err(Fault::unusable(message).at("text"));
    }
    if label.is_some_and(|score| Score::new(score).is_err()) {
        return Err(Fault::unusable("expected a score between 0 and 1").at("score"));
    }
    // A run that is named is one that is listed: no name leads out of the folder.
    if !waiting(loops)?.0.iter().any(|pending| pending.run == run) {
        return Err(ReviewError::NothingAsked { run: run.to_owned() }.into());
    }
    review::answer(loops, run, label, answer)?;
    Ok(())
}

pub(super) async fn list(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let kept = apart(&service, |loops| Ok(log::kept(&loops))).await?;
    let row = |own: log::Kept| LoopRow {
        run: own.run,
        started: own.time,
        task: own.task,
        generations: own.generations,
        reason: own.end.reason(),
        damaged: own.damaged,
    };
    let list = LoopList { loops: kept.into_iter().map(row).collect() };
    Ok(fault::json(StatusCode::OK, &list))
}

pub(super) async fn one(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
) -> Result<Response, Fault> {
    let run = path(run)?;
    let view = apart(&service, move |loops| Ok(watch(&loops, &run)?)).await?;
    Ok(fault::json(StatusCode::OK, &view))
}

pub(super) async fn reviews(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let (reviews, damaged) = apart(&service, |loops| waiting(&loops)).await?;
    Ok(fault::json(StatusCode::OK, &ReviewList { reviews, damaged }))
}

pub(super) async fn review(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let run = path(run)?;
    let value = body::json(&headers, body, service.limits()).await?;
    if !value.is_object() {
        return Err(Fault::unusable("expected a JSON object"));
    }
    let given: ReviewRequest = crate::config::from_value(value)?;
    if given.answer.is_none() && given.score.is_none() {
        return Err(Fault::unusable("expected `answer`, `score` or both"));
    }
    apart(&service, move |loops| answer(&loops, &run, given.score, given.answer.map(Answer::from)))
        .await?;
    Ok(fault::json(StatusCode::OK, &serde_json::json!({ "status": "kept" })))
}

impl From<log::LogError> for Fault {
    fn from(error: log::LogError) -> Self {
        let message = error.to_string();
        match error {
            log::LogError::Missing { .. } => Self::not_found(message),
            log::LogError::Held { .. } => Self::new(StatusCode::CONFLICT, "held", message).after(2),
            _ => Self::internal(message),
        }
    }
}

impl From<ReviewError> for Fault {
    fn from(error: ReviewError) -> Self {
        let message = error.to_string();
        match error {
            ReviewError::Log(error) => error.into(),
            ReviewError::NothingAsked { .. } => {
                Self::new(StatusCode::CONFLICT, "nothing_asked", message)
            }
            ReviewError::Edit { .. } => Self::unusable(message).at("text"),
        }
    }
}
