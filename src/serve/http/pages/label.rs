//! The queue in which a person labels cases. What the judges said is not shown before.

use std::sync::{Arc, MutexGuard, PoisonError};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use minijinja::{Value, context};
use serde::Deserialize;

use super::super::fault::Fault;
use super::super::service::{Labelling, Service};
use super::{Place, apart, filled, form, go_to, page as whole};
use crate::label::{BookError, Queue, QueueError};
use crate::report::html::case_body;
use crate::report::words::{plain, plain_lines};

/// The fields of a label.
#[derive(Debug, Deserialize)]
struct Given {
    case: String,
    label: String,
}

/// The field of a case that waits.
#[derive(Debug, Deserialize)]
struct Waits {
    case: String,
}

impl From<QueueError> for Fault {
    fn from(error: QueueError) -> Self {
        let message = error.to_string();
        match error {
            QueueError::NoLabel { .. } => Self::unusable(message).at("label"),
            QueueError::NotAsked { .. } | QueueError::Book(BookError::Labelled { .. }) => {
                Self::new(StatusCode::CONFLICT, "labelled", message)
            }
            QueueError::Store(error) => error.into(),
            _ => Self::internal(message),
        }
    }
}

fn labelling(service: &Service) -> Result<&Labelling, Fault> {
    service.labelling().ok_or_else(|| Fault::not_found("this server has no labelling queue"))
}

fn queue(own: &Labelling) -> MutexGuard<'_, Queue> {
    own.queue.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(in super::super) async fn page(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let read = service.clone();
    let (title, body) = apart(move || {
        let own = labelling(&read)?;
        let queue = queue(own);
        let (done, total) = queue.progress();
        let next = queue.next();
        let texts = next.map(|entry| {
            let texts = entry.texts().into_iter();
            texts
                .map(|(name, text)| context! { name, text => plain_lines(&text) })
                .collect::<Vec<_>>()
        });
        let values = context! {
            done, total, share => format!("{:.1}", 1000.0 * done as f64 / total.max(1) as f64),
            rater => plain(queue.book().rater()), criterion => plain(queue.book().criterion()),
            path => plain(&queue.book().path().display().to_string()), wrong => "",
            last => last(&queue)?, question => plain(&own.question),
            case => next.map(|entry| entry.case.id.as_str()), texts,
            levels => levels(own, &queue),
            low => queue.options().scale.map(|scale| scale.low()),
            high => queue.options().scale.map(|scale| scale.high()),
        };
        let title = match next {
            Some(_) => format!("Case {} of {total}", done + 1),
            None => "Labelled".to_owned(),
        };
        Ok((title, filled(include_str!("label.html"), values)?))
    })
    .await?;
    whole(&service, Place::Label, &title, &[], &body)
}

/// The labels to choose from, each with its key and what it means.
fn levels(own: &Labelling, queue: &Queue) -> Vec<Value> {
    let choices = queue.choices().into_iter().map(|choice| {
        let meaning = own.anchors.iter().find(|(level, _)| *level == choice.label);
        context! {
            value => choice.label, key => choice.key,
            meaning => meaning.map(|(_, words)| plain(words)).unwrap_or_default(),
        }
    });
    choices.collect()
}

/// What was labelled last, with what the judges said of it.
fn last(queue: &Queue) -> Result<Option<Value>, Fault> {
    let Some((case, label)) = queue.last() else { return Ok(None) };
    let body = match queue.said()? {
        Some(said) => Some(Value::from_safe_string(case_body(case, &said.ruling)?)),
        None => None,
    };
    Ok(Some(context! { case => plain(&case.id), label => plain(&label.to_string()), body }))
}

pub(in super::super) async fn label(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Fault> {
    let given: Given = form(request).await?;
    apart(move || Ok(queue(labelling(&service)?).label(&given.case, &given.label)?)).await?;
    Ok(go_to("/label"))
}

pub(in super::super) async fn skip(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Fault> {
    let waits: Waits = form(request).await?;
    apart(move || Ok(queue(labelling(&service)?).skip(&waits.case)?)).await?;
    Ok(go_to("/label"))
}
