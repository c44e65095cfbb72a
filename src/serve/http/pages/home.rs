//! The first page: the panel that is served, and the runs in the store.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use minijinja::{Value, context};

use super::super::fault::Fault;
use super::super::runs::all;
use super::super::service::{Judging, Service};
use super::{Place, apart, filled, in_path, page as whole};
use crate::report::words::{plain, plural, shortened};
use crate::store::RunRecord;

/// Runs on the page.
const MOST: usize = 500;

pub(in super::super) async fn page(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let read = service.clone();
    let runs = apart(move || all(read.store())).await?;
    let values = context! {
        panel => service.judging().map(panel),
        runs => runs.iter().take(MOST).map(run).collect::<Vec<_>>(),
        more => runs.len().saturating_sub(MOST),
    };
    let body = filled(include_str!("home.html"), values)?;
    whole(&service, Place::Runs, "venire", &[], &body)
}

/// The panel in force, in words.
fn panel(judging: &Judging) -> Value {
    let panel = &judging.panel;
    let judges: Vec<String> = panel
        .seats
        .iter()
        .map(|seat| {
            let kind = seat.judge.model().unwrap_or_else(|| seat.judge.kind());
            let mark = match (seat.required, seat.report_only) {
                (true, _) => ", required",
                (_, true) => ", not counted",
                _ => "",
            };
            plain(&format!("{} ({kind}{mark})", seat.name))
        })
        .collect();
    let rules = &panel.rules;
    let rule = format!(
        "{} of {}, threshold {:.2}, quorum {}",
        rules.settings.aggregate.name().replace('_', " "),
        plural(judges.len() as u64, "judge", "judges"),
        panel.profile().map_or(rules.threshold, |own| own.threshold()),
        rules.quorum,
    );
    let profile = panel.profile().map(|own| {
        plain(&format!(
            "profile {}, {}",
            own.profile().name,
            &own.hash()[..own.hash().len().min(12)]
        ))
    });
    let lines: Vec<String> = profile
        .into_iter()
        .chain(panel.warnings().iter().map(|line| plain(line).replace('`', "")))
        .collect();
    context! { name => plain(&panel.name), rule, judges, lines }
}

fn run(run: &RunRecord) -> Value {
    let summary: Option<serde_json::Value> =
        run.summary.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let count = |key: &str| {
        let value = summary.as_ref().and_then(|summary| summary.get(key));
        value.map_or_else(|| "-".to_owned(), ToString::to_string)
    };
    context! {
        id => plain(&run.id), link => in_path(&run.id), state => run.state.name(),
        panel => plain(&shortened(&run.panel_name, 40)), data => plain(&shortened(&run.data, 40)),
        cases => count("cases"), accepted => count("accepted"), rejected => count("rejected"),
        undecided => count("undecided"),
    }
}
