//! The clock, the books and the log of a run in one place: an event is written with the time
//! and the spending that the controller is then told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::event::Spent;
use super::log::{Entry, Log, LogError};
use crate::panel::Listener;
use crate::panel::decide::NOT_NEEDED;
use crate::provider::{ChatReply, KeepError, Ledger, ReplyKey, ReplyStore};
use crate::verdict::{Status, Verdict};

/// The clock, the books and the log of a run.
#[derive(Debug)]
pub(super) struct Journal {
    log: Mutex<Log>,
    /// Milliseconds of earlier parts of the run.
    before_ms: u64,
    started: Instant,
    /// Milliseconds that a person took, which are not the run's.
    paused_ms: AtomicU64,
    ledger: Arc<Ledger>,
}

/// Time that is a person's, until it is dropped.
#[derive(Debug)]
pub(super) struct Paused<'a> {
    since: Instant,
    total: &'a AtomicU64,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.total.fetch_add(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
}

impl Journal {
    pub(super) fn new(log: Log, before_ms: u64, ledger: Arc<Ledger>) -> Self {
        Self {
            log: Mutex::new(log),
            before_ms,
            started: Instant::now(),
            paused_ms: AtomicU64::new(0),
            ledger,
        }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn elapsed_ms(&self) -> u64 {
        let here = self.started.elapsed().as_millis() as u64;
        self.before_ms + here.saturating_sub(self.paused_ms.load(Ordering::Relaxed))
    }

    /// Milliseconds of earlier parts of the run alone: what a run took that has ended before.
    pub(super) fn before_ms(&self) -> u64 {
        self.before_ms
    }

    pub(super) fn spent(&self) -> Spent {
        let totals = self.ledger.totals();
        Spent { tokens: totals.tokens_at_most(), micro_dollars: totals.micro_dollars_at_most() }
    }

    /// Stops the clock until what it gives is dropped.
    pub(super) fn pause(&self) -> Paused<'_> {
        Paused { since: Instant::now(), total: &self.paused_ms }
    }

    /// When the time of the run is up.
    pub(super) fn deadline(&self, limit_ms: u64) -> Instant {
        let left = limit_ms.saturating_sub(self.before_ms);
        let paused = self.paused_ms.load(Ordering::Relaxed);
        self.started + std::time::Duration::from_millis(left.saturating_add(paused))
    }

    /// Writes an event, and gives the time and spending it was written with.
    pub(super) fn append(&self, entry: Entry) -> Result<(u64, Spent), LogError> {
        let mut log = self.log();
        let (elapsed_ms, spent) = (self.elapsed_ms(), self.spent());
        log.append(elapsed_ms, spent, entry)?;
        Ok((elapsed_ms, spent))
    }
}

/// Writes each verdict as it comes in.
pub(super) struct Verdicts<'a> {
    pub(super) journal: &'a Journal,
    pub(super) generation: u32,
    pub(super) failed: Mutex<Option<LogError>>,
}

impl Listener for Verdicts<'_> {
    fn verdict<'a>(&'a self, verdict: &'a Verdict) -> BoxFuture<'a, ()> {
        // A judge that was stopped is asked again when the run goes on.
        if verdict.status != Status::Cancelled || verdict.notes.contains_key(NOT_NEEDED) {
            let verdict = Box::new(verdict.clone());
            let entry = Entry::Judged { generation: self.generation, verdict };
            if let Err(error) = self.journal.append(entry) {
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
        Box::pin(std::future::ready(()))
    }
}

/// Replies under keys of one judgement or call: a second judgement of the same output is a
/// fresh measurement, and one that a crash cut off finds its own replies again.
#[derive(Debug)]
pub(super) struct Scoped {
    pub(super) inner: Arc<dyn ReplyStore>,
    pub(super) scope: String,
}

impl Scoped {
    fn key(&self, key: &ReplyKey) -> ReplyKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&key.0).update(self.scope.as_bytes());
        ReplyKey(*hasher.finalize().as_bytes())
    }
}

impl ReplyStore for Scoped {
    fn lookup<'a>(&'a self, key: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>> {
        Box::pin(async move { self.inner.lookup(&self.key(key)).await })
    }

    fn record<'a>(
        &'a self,
        key: &'a ReplyKey,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>> {
        Box::pin(async move { self.inner.record(&self.key(key), reply).await })
    }
}
