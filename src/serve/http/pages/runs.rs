//! A run's page, and that of one of its cases.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use minijinja::{Value, context};

use super::super::fault::Fault;
use super::super::runs::{CasesQuery, path, query, reading};
use super::super::service::Service;
use super::{Place, filled, html, in_path, links, page as whole, shell};
use crate::report::StoredRun;
use crate::report::html::{MOST_CASES, case_body, write_in};
use crate::report::words::plain;

/// The run as its report shows it, within the pages of the server.
pub(in super::super) async fn run(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, Fault> {
    let id = path(run)?;
    let asked: CasesQuery = query(&uri)?;
    let selection = asked.selection()?;
    let most = asked.limit.map_or(MOST_CASES, |limit| limit as u64).min(MOST_CASES);
    let links = links(&service, Place::Runs);
    let own = links.clone();
    let text = reading(&service, move |store| {
        let run = store.run(&id)?;
        let judged = StoredRun { store, run: &run, selection: &selection };
        let mut text = Vec::new();
        write_in(&shell(&own), &mut text, &judged.about(), &judged, most)?;
        Ok(text)
    })
    .await?;
    Ok(html(StatusCode::OK, &shell(&links), text))
}

/// One case, unfolded.
pub(in super::super) async fn case(
    State(service): State<Arc<Service>>,
    parts: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Fault> {
    let (run, id) = path(parts)?;
    let (run, case, body) = reading(&service, move |store| {
        let run = store.run(&run)?;
        let position = store.position(&run, &id)?;
        let missing = || Fault::not_found(format!("run `{}` has no case `{id}`", run.id));
        let case = store.case(run.number, position)?.ok_or_else(missing)?;
        let Some(ruling) = store.ruling(run.number, position)? else {
            return Err(Fault::not_found("this case has no ruling yet"));
        };
        let body = case_body(&case, &ruling)?;
        Ok((run, case, body))
    })
    .await?;
    let values = context! { link => in_path(&run.id), body => open(body) };
    let body = filled(include_str!("case.html"), values)?;
    let facts = [format!("run {}, {}", plain(&run.id), plain(&run.panel_name))];
    whole(&service, Place::Runs, &case.id, &facts, &body)
}

/// The rows of a case with their details unfolded; hostile text in them is escaped, so the
/// first tag of this name is the template's.
pub(super) fn open(body: String) -> Value {
    Value::from_safe_string(body.replacen("<details>", "<details open>", 1))
}
