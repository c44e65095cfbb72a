//! The queue of questions that loops wait on, and a person's answers.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::response::Response;
use minijinja::{Value, context};
use serde::Deserialize;

use super::super::fault::Fault;
use super::super::loops::{answer as keep, apart, waiting};
use super::super::runs::{path, query};
use super::super::service::Service;
use super::{Place, filled, form, go_to, in_path, moment, page as whole};
use crate::case::Case;
use crate::control::Answer;
use crate::control::review::Pending;
use crate::report::html::case_body;
use crate::report::words::{plain, plain_lines, shortened};

/// What a page says of the answer before.
#[derive(Debug, Default, Deserialize)]
struct Shown {
    /// The run that was answered.
    #[serde(default)]
    answered: Option<String>,
    /// Whether only a score was kept.
    #[serde(default)]
    scored: bool,
}

/// The fields of an answer.
#[derive(Debug, Deserialize)]
struct Given {
    answer: String,
    #[serde(default)]
    text: String,
}

/// The question that waits longest.
pub(in super::super) async fn first(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Response, Fault> {
    shown(&service, None, &uri).await
}

/// One question.
pub(in super::super) async fn one(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, Fault> {
    let run = path(run)?;
    shown(&service, Some(run), &uri).await
}

async fn shown(service: &Arc<Service>, run: Option<String>, uri: &Uri) -> Result<Response, Fault> {
    let before: Shown = query(uri)?;
    let (waiting, damaged) = apart(service, |loops| waiting(&loops)).await?;
    let place = match &run {
        Some(run) => match waiting.iter().position(|pending| pending.run == *run) {
            Some(place) => Some(place),
            None => return Err(Fault::not_found(format!("no question of a run `{run}` waits"))),
        },
        None => (!waiting.is_empty()).then_some(0),
    };
    let chosen = place.map(|place| question(&waiting[place])).transpose()?;
    // The one after the one shown comes first, so that a person can go round.
    let turn = place.map_or(0, |place| place + 1);
    let others: Vec<Value> = waiting
        .iter()
        .cycle()
        .skip(turn)
        .take(waiting.len().saturating_sub(usize::from(place.is_some())))
        .map(|other| {
            context! {
                run => plain(&other.run), link => in_path(&other.run),
                about => other.about.to_string().replace('_', " "),
                task => plain(&shortened(other.task.lines().next().unwrap_or_default(), 80)),
            }
        })
        .collect();
    let said = before.answered.as_deref().map(|run| {
        let run = plain(run);
        if before.scored {
            format!("the score is kept; {run} still waits for an answer")
        } else {
            format!("answered; go on with: venire loop -c LOOP --resume {run}")
        }
    });
    let values = context! {
        said, others, question => chosen,
        damaged => damaged.iter().map(|error| plain(error)).collect::<Vec<_>>(),
    };
    let body = filled(include_str!("review.html"), values)?;
    whole(service, Place::Review, "Review", &[], &body)
}

fn question(own: &Pending) -> Result<Value, Fault> {
    let about = own.about.to_string().replace('_', " ");
    let asked = match own.generation {
        0 => format!("{about}?"),
        generation => format!("output {generation}: {about}?"),
    };
    let body = match &own.ruling {
        Some(ruling) => {
            // The output stands below in full.
            let case = Case { id: own.generation.to_string(), ..Case::default() };
            Some(Value::from_safe_string(case_body(&case, ruling)?))
        }
        None => None,
    };
    Ok(context! {
        asked, run => plain(&own.run), link => in_path(&own.run),
        when => own.asked.as_deref().map(moment), body, task => plain_lines(&own.task),
        generation => own.generation, output => own.output.as_deref().map(plain_lines),
        difference => own.difference().map(|text| plain_lines(&text)),
    })
}

/// Takes an answer.
pub(in super::super) async fn answer(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Fault> {
    let run = path(run)?;
    let given: Given = form(request).await?;
    // Browsers send line breaks as two characters.
    let text = given.text.replace("\r\n", "\n");
    let (label, answer) = match given.answer.as_str() {
        "accept" => (None, Some(Answer::Accept)),
        "stop" => (None, Some(Answer::Reject)),
        "reject" => (None, Some(Answer::RejectWith(text))),
        "continue" => (None, Some(Answer::Continue(text))),
        "edit" => (None, Some(Answer::Edit(text))),
        "score" => (Some(score(&text)?), None),
        other => {
            let message = format!(
                "`{}` is no answer: expected accept, reject, continue, edit, score or stop",
                plain(other)
            );
            return Err(Fault::unusable(message).at("answer"));
        }
    };
    let scored = label.is_some();
    let name = run.clone();
    apart(&service, move |loops| keep(&loops, &name, label, answer)).await?;
    Ok(go_to(&match scored {
        true => format!("/review/{0}?scored=true&answered={0}", in_path(&run)),
        false => format!("/review?answered={}", in_path(&run)),
    }))
}

fn score(text: &str) -> Result<f64, Fault> {
    let number = text.trim().parse::<f64>();
    number.map_err(|_| Fault::unusable("expected a score between 0 and 1").at("text"))
}
