//! What a server serves: a panel, the store, the loops; and the one way to a ruling.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::admission::{Admission, Place};
use super::fault::Fault;
use super::metrics::Metrics;
use super::options::{Limits, Options, OptionsError};
use super::session::Sessions;
use crate::case::Case;
use crate::label::Queue;
use crate::panel::Panel;
use crate::panel::decide::NOT_NEEDED;
use crate::provider::{CallContext, Ledger, ReplyStore};
use crate::ruling::Ruling;
use crate::store::Writer;
use crate::verdict::{Status, Verdict};

/// Where profiles are, when nothing else is said.
const PROFILES: &str = "calibration";

/// A panel ready to judge.
#[derive(Clone, Debug)]
pub struct Judging {
    /// The panel.
    pub panel: Arc<Panel>,
    /// Where replies of models are kept.
    pub replies: Arc<dyn ReplyStore>,
    /// The writer behind them, where there is one: when it has failed, nothing that is paid
    /// for can be kept, and the server is not ready.
    pub writer: Option<Writer>,
    /// Money and tokens of all requests together.
    pub ledger: Arc<Ledger>,
}

/// A labelling queue with what a person is asked.
#[derive(Debug)]
pub struct Labelling {
    /// The queue; held for one look or one label at a time, never across an await.
    pub queue: Mutex<Queue>,
    /// The question.
    pub question: String,
    /// What labels mean, by the label as it is written.
    pub anchors: Vec<(String, String)>,
}

/// What a server serves. Every request holds it; it ends with the last of them.
#[derive(Debug)]
pub struct Service {
    judging: Option<Judging>,
    store: PathBuf,
    loops: PathBuf,
    options: Options,
    pub(super) admission: Arc<Admission>,
    pub(super) metrics: Metrics,
    pub(super) sessions: Sessions,
    profiles: PathBuf,
    labelling: Option<Labelling>,
    /// Fires when no new request is taken.
    draining: CancellationToken,
    /// Fires when what is in judgement is given up.
    abandon: CancellationToken,
}

impl Service {
    /// A service over a store and a folder of loops, which need not be there.
    ///
    /// # Errors
    /// When the options would open it to everybody.
    pub fn new(
        options: Options,
        judging: Option<Judging>,
        store: &Path,
        loops: &Path,
    ) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(Self {
            judging,
            store: store.to_owned(),
            loops: loops.to_owned(),
            admission: Admission::new(options.limits.concurrency, options.limits.queue),
            metrics: Metrics::new(),
            sessions: Sessions::default(),
            profiles: PathBuf::from(PROFILES),
            labelling: None,
            draining: CancellationToken::new(),
            abandon: CancellationToken::new(),
            options,
        })
    }

    /// With a labelling queue.
    #[must_use]
    pub fn with_labelling(self, labelling: Labelling) -> Self {
        Self { labelling: Some(labelling), ..self }
    }

    /// With profiles of another folder than `calibration`.
    #[must_use]
    pub fn with_profiles(self, folder: &Path) -> Self {
        Self { profiles: folder.to_owned(), ..self }
    }

    /// The labelling queue, where there is one.
    #[must_use]
    pub fn labelling(&self) -> Option<&Labelling> {
        self.labelling.as_ref()
    }

    /// The folder of profiles.
    #[must_use]
    pub fn profiles(&self) -> &Path {
        &self.profiles
    }

    /// The panel, where there is one.
    #[must_use]
    pub fn judging(&self) -> Option<&Judging> {
        self.judging.as_ref()
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The folder of loops.
    #[must_use]
    pub fn loops(&self) -> &Path {
        &self.loops
    }

    /// Takes no new requests from now on.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Gives up what is in judgement.
    pub fn abandon(&self) {
        self.draining.cancel();
        self.abandon.cancel();
    }

    /// Whether the server is about to end.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// Whether a request would be taken now, and why not.
    pub(super) fn readiness(&self) -> Result<(), Fault> {
        if self.is_draining() {
            return Err(draining());
        }
        let writer = self.judging.as_ref().and_then(|judging| judging.writer.as_ref());
        if let Some(error) = writer.and_then(Writer::failure) {
            return Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "store", error.to_string()));
        }
        if !self.admission.is_open() {
            let fault = Fault::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "the queue is full");
            return Err(fault.after(1));
        }
        Ok(())
    }

    /// Takes a place for a request, before its body is read.
    pub(super) fn enter(&self) -> Result<Arc<Place>, Fault> {
        if self.is_draining() {
            return Err(draining());
        }
        let place = self.admission.enter().inspect_err(|_| self.metrics.refused("busy"))?;
        Ok(Arc::new(place))
    }

    /// Judges a case that has a place. Once it is its turn the judging goes on when whoever
    /// asked is gone: what was paid for is kept, and found when they ask again.
    pub(super) async fn rule(
        self: &Arc<Self>,
        place: &Arc<Place>,
        case: Case,
        arrived: Instant,
    ) -> Result<Ruling, Fault> {
        let Some(judging) = self.judging.clone() else {
            return Err(Fault::not_found("this server has no panel"));
        };
        judging.panel.takes(&case).map_err(|problem| Fault {
            status: StatusCode::BAD_REQUEST,
            kind: "no_output",
            ..problem.into()
        })?;
        let deadline = arrived + self.limits().case_time;
        let slot = place.slot(deadline).await?;
        let (service, place) = (self.clone(), place.clone());
        let task = tokio::spawn(async move {
            let _held = (slot, place);
            let context = CallContext {
                deadline,
                replies: judging.replies,
                ledger: judging.ledger,
                cancel: service.abandon.clone(),
                ..CallContext::standalone(service.limits().case_time)
            };
            let ruling = judging.panel.judge(&case, &context).await;
            service.metrics.ruled(&ruling);
            ruling
        });
        let ruling = task.await.map_err(|error| {
            Fault::internal(format!("the judging of a case ended by itself: {error}"))
        })?;
        if self.abandon.is_cancelled() && ruling.verdicts.iter().any(was_stopped) {
            return Err(draining());
        }
        Ok(ruling)
    }
}

/// Whether a verdict says nothing but that the server was stopped.
fn was_stopped(verdict: &Verdict) -> bool {
    verdict.status == Status::Cancelled && !verdict.notes.contains_key(NOT_NEEDED)
}

fn draining() -> Fault {
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is being stopped").after(5)
}
