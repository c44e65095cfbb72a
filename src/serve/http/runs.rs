//! `/v1/runs`: what the store holds, for reading only.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fault::{self, Fault};
use super::service::Service;
use crate::report::{Judged as _, StoredRun};
use crate::ruling::Decision;
use crate::run::rows::RulingRow;
use crate::run::select::Selection;
use crate::store::{RunRecord, Store, StoreError};
use crate::verdict::Status;

/// Rows of an answer where the request names no number, and at most.
const USUAL: usize = 100;
const MOST: usize = 1000;

/// A part of a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// Rows at most, up to 1000; 100 if not given.
    #[serde(default)]
    pub(super) limit: Option<usize>,
    /// Rows to pass over first.
    #[serde(default)]
    pub(super) offset: u32,
}

/// Which cases of a run, and which part of them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CasesQuery {
    /// Only cases with this decision.
    #[serde(default)]
    pub(super) decision: Option<Decision>,
    /// Only cases with a verdict of this status.
    #[serde(default)]
    pub(super) status: Option<Status>,
    /// Only cases where a judge was outvoted.
    #[serde(default)]
    pub(super) outvoted: bool,
    /// The judge that `status` and `outvoted` are about, instead of any.
    #[serde(default)]
    pub(super) judge: Option<String>,
    /// Only cases on which the votes differ by so much, in [0,1].
    #[serde(default)]
    pub(super) min_spread: Option<f64>,
    /// Rows at most, up to 1000; 100 if not given.
    #[serde(default)]
    pub(super) limit: Option<usize>,
    /// Rows to pass over first.
    #[serde(default)]
    pub(super) offset: u32,
}

/// Runs, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunList {
    /// This part of them.
    pub(super) runs: Vec<RunView>,
    /// All there are.
    pub(super) total: usize,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunView {
    /// Its id.
    pub(super) id: String,
    /// When it was started, in UTC by RFC 3339.
    pub(super) created: String,
    /// `running`, `interrupted` or `finished`.
    pub(super) state: String,
    /// The panel's name.
    pub(super) panel_name: String,
    /// What the panel was, exactly.
    pub(super) panel_fingerprint: String,
    /// The data set, as it was named.
    pub(super) data: String,
    /// The data set's content.
    pub(super) data_hash: String,
    /// What was counted, once the run has ended or was interrupted.
    pub(super) summary: Option<Value>,
}

/// Rulings of a run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CaseList {
    /// The run's id.
    pub(super) run: String,
    /// This part of the rulings, in the data's order.
    pub(super) cases: Vec<RulingRow>,
    /// All that the query takes.
    pub(super) total: usize,
}

/// Reads the query of a request.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Fault> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|Query(value)| value).map_err(|error| {
        use std::error::Error as _;
        let mut said = error.to_string();
        if let Some(cause) = error.source() {
            said = cause.to_string();
        }
        Fault::new(StatusCode::BAD_REQUEST, "bad_query", said)
    })
}

/// The parts of a path, which must be text.
pub(super) fn path<T>(path: Result<Path<T>, PathRejection>) -> Result<T, Fault> {
    path.map(|Path(value)| value)
        .map_err(|_| Fault::not_found("a part of the path is not UTF-8 text"))
}

fn page(limit: Option<usize>) -> Result<usize, Fault> {
    match limit.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit),
        _ => {
            let message = format!("expected a number from 1 to {MOST}");
            Err(Fault::new(StatusCode::BAD_REQUEST, "bad_query", message).at("limit"))
        }
    }
}

/// Reads the store, away from the threads that answer requests.
pub(super) async fn reading<T: Send + 'static>(
    service: &Arc<Service>,
    read: impl FnOnce(&Store) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let service = service.clone();
    let task = tokio::task::spawn_blocking(move || read(&Store::open(service.store())?));
    task.await.map_err(|error| Fault::internal(format!("reading the store ended: {error}")))?
}

impl RunView {
    fn new(run: RunRecord) -> Self {
        Self {
            summary: run.summary.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            state: run.state.name().to_owned(),
            id: run.id,
            created: run.created,
            panel_name: run.panel_name,
            panel_fingerprint: run.panel_fingerprint,
            data: run.data,
            data_hash: run.data_hash,
        }
    }
}

/// All runs; none where there is no store yet.
pub(super) fn all(store: &std::path::Path) -> Result<Vec<RunRecord>, Fault> {
    match Store::open(store) {
        Err(StoreError::Missing { .. }) => Ok(Vec::new()),
        store => Ok(store?.runs()?),
    }
}

pub(super) async fn list(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Fault> {
    let part: Part = query(&uri)?;
    let limit = page(part.limit)?;
    let task = tokio::task::spawn_blocking(move || all(service.store()));
    let runs = task.await.map_err(|error| Fault::internal(error.to_string()))??;
    let total = runs.len();
    let runs = runs.into_iter().skip(part.offset as usize).take(limit).map(RunView::new).collect();
    Ok(fault::json(StatusCode::OK, &RunList { runs, total }))
}

pub(super) async fn one(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
) -> Result<Response, Fault> {
    let id = path(run)?;
    let run = reading(&service, move |store| Ok(store.run(&id)?)).await?;
    Ok(fault::json(StatusCode::OK, &RunView::new(run)))
}

impl CasesQuery {
    /// The selection, once its parts fit together.
    pub(super) fn selection(&self) -> Result<Selection, Fault> {
        let wrong = |field: &str, message: &str| {
            Err(Fault::new(StatusCode::BAD_REQUEST, "bad_query", message).at(field))
        };
        if self.min_spread.is_some_and(|spread| !(0.0..=1.0).contains(&spread)) {
            return wrong("min_spread", "expected a number between 0 and 1");
        }
        if self.judge.is_some() && !self.outvoted && self.status.is_none() {
            return wrong(
                "judge",
                "says whom `status` or `outvoted` is about: give one of them too",
            );
        }
        Ok(Selection {
            decisions: self.decision.into_iter().collect(),
            statuses: self.status.into_iter().collect(),
            judge: self.judge.clone(),
            outvoted: self.outvoted,
            least_spread: self.min_spread,
            ..Selection::default()
        })
    }
}

pub(super) async fn cases(
    State(service): State<Arc<Service>>,
    run: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Result<Response, Fault> {
    let id = path(run)?;
    let asked: CasesQuery = query(&uri)?;
    let (selection, limit) = (asked.selection()?, page(asked.limit)?);
    let list = reading(&service, move |store| {
        let run = store.run(&id)?;
        let mut list = CaseList { run: run.id.clone(), cases: Vec::new(), total: 0 };
        let judged = StoredRun { store, run: &run, selection: &selection };
        judged
            .each(&mut |_, ruling| {
                if list.total >= asked.offset as usize && list.cases.len() < limit {
                    list.cases.push(RulingRow::new(&run.id, ruling));
                }
                list.total += 1;
                Ok(())
            })
            .map_err(|error| Fault::internal(error.to_string()))?;
        Ok(list)
    })
    .await?;
    Ok(fault::json(StatusCode::OK, &list))
}

pub(super) async fn case(
    State(service): State<Arc<Service>>,
    parts: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Fault> {
    let (run, id) = path(parts)?;
    let found = reading(&service, move |store| {
        let run = store.run(&run)?;
        let position = store.position(&run, &id)?;
        let Some(case) = store.case(run.number, position)? else {
            return Err(Fault::not_found(format!("run `{}` has no case `{id}`", run.id)));
        };
        Ok(json!({
            "run": run.id,
            "case": case,
            "ruling": store.ruling(run.number, position)?,
            "verdicts": store.verdicts(run.number, position)?,
        }))
    })
    .await?;
    Ok(fault::json(StatusCode::OK, &found))
}
