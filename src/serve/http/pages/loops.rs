//! Loops: those that are kept, and one as it goes on.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use minijinja::{Value, context};

use super::super::fault::Fault;
use super::super::runs::path;
use super::super::service::Service;
use super::{Place, apart, filled, in_path, moment, page as whole};
use crate::case::Case;
use crate::control::log::{self, RunEnd};
use crate::control::watch::{Doing, Generation, LoopView, watch};
use crate::control::{Class, Reason};
use crate::report::html::case_body;
use crate::report::words::{beginning, number, plain, plain_lines, shortened};

/// Characters of one output on the page.
const MOST: usize = 20_000;

pub(in super::super) async fn list(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let read = service.clone();
    let kept = apart(move || Ok(log::kept(read.loops()))).await?;
    let loops: Vec<Value> = kept
        .iter()
        .map(|own| {
            context! {
                run => plain(&own.run), link => in_path(&own.run), generations => own.generations,
                state => state(own.end),
                task => plain(&shortened(&own.task, 80)), time => moment(&own.time),
            }
        })
        .collect();
    let running = kept.iter().any(|own| own.end == RunEnd::Running);
    let body = filled(include_str!("loops.html"), context! { loops, running })?;
    whole(&service, Place::Loops, "Loops", &[], &body)
}

pub(in super::super) async fn one(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
) -> Result<Response, Fault> {
    let run = path(run)?;
    let read = service.clone();
    let (view, rows) = apart(move || {
        let view = watch(read.loops(), &run)?;
        let rows = view.generations.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        Ok((view, rows))
    })
    .await?;
    let best = view.generations.iter().filter_map(|own| own.ruling.as_ref()?.score).max();
    let class = match view.outcome {
        Some(Class::Accepted) => "accept",
        Some(Class::NotAccepted) => "reject",
        Some(_) => "undecided",
        None => "",
    };
    let state = view.outcome.map_or(view.doing.name(), Class::name).replace('_', " ");
    let why = match (view.reason, view.about) {
        (Some(reason), _) => reason.name().replace('_', " "),
        (None, Some(about)) => about.to_string().replace('_', " "),
        (None, None) => "so far".to_owned(),
    };
    let values = context! {
        ended => view.doing == Doing::Ended, class, state, why, best => number(best),
        outputs => view.generations.len(), elapsed => format!("{:.0}", view.elapsed_ms as f64 / 1000.0),
        cost => view.cost_usd.filter(|cost| *cost > 0.0).map(|cost| format!("{cost:.4}")),
        unpriced => view.cost_usd.is_none() && view.events > 0,
        asked => view.about.is_some(), link => in_path(&view.run), failed => view.failed_calls,
        task => text(&view.task), rows,
    };
    let body = filled(include_str!("loop.html"), values)?;
    whole(&service, Place::Loops, &title(&view), &facts(&view), &body)
}

/// How a loop stands, in words.
fn state(end: RunEnd) -> String {
    match end {
        RunEnd::Ended(Reason::AwaitingHuman) => "waits for a person".to_owned(),
        end => end.name().replace('_', " "),
    }
}

fn title(view: &LoopView) -> String {
    shortened(&view.task.lines().next().unwrap_or_default().replace('`', ""), 80)
}

fn facts(view: &LoopView) -> Vec<String> {
    vec![
        format!("loop {}", plain(&view.run)),
        format!("started {}, {} events", moment(&view.started), view.events),
    ]
}

fn text(text: &str) -> String {
    let (text, left) = beginning(text, MOST);
    let more = if left > 0 { format!("\n… {left} more characters") } else { String::new() };
    format!("{}{more}", plain_lines(text))
}

/// An output as rows of a table.
fn row(own: &Generation) -> Result<Value, Fault> {
    let by = if own.by_person { ", by a person" } else { "" };
    let name = format!("{}{by}", own.generation);
    if let Some(ruling) = &own.ruling {
        let case = Case { id: name, output: own.output.clone(), ..Case::default() };
        return Ok(Value::from_safe_string(case_body(&case, ruling)?));
    }
    let verdicts: Vec<String> = own
        .verdicts
        .iter()
        .map(|verdict| {
            let outcome = match verdict.score {
                Some(score) => number(Some(score)),
                None => verdict.status.name().to_owned(),
            };
            plain(&format!("{}: {outcome}", verdict.judge))
        })
        .collect();
    let state = if own.verdicts.is_empty() { "not judged yet" } else { "in judgement" };
    let summary = shortened(own.output.as_deref().unwrap_or_default().trim(), 120);
    let values = context! {
        name, state, verdicts, summary => plain(&summary),
        output => text(own.output.as_deref().unwrap_or("its text is gone")),
    };
    Ok(Value::from_safe_string(filled(include_str!("waiting.html"), values)?))
}
