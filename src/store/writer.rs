//! The one writer: a thread that owns the writing connection and commits in batches.
//!
//! Handles send rows through a bounded channel, so a slow disk slows the judges down instead
//! of filling memory. Whatever piled up while the last batch was committed is the next
//! batch: the busier the run, the larger the batches. The thread ends when the last handle
//! is dropped, after writing what it was sent.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::Checkpoints;
use super::sqlite::{Database, Row};
use super::{RunState, StoreError};
use crate::case::Case;
use crate::ruling::Ruling;
use crate::verdict::Verdict;

/// Rows waiting for the writer at most.
const QUEUE: usize = 4096;
/// How long a commit waits for more rows: beside the time of any answer it is nothing.
const GATHER: Duration = Duration::from_millis(2);
/// How long in a busy run, where many answers share the wait.
const GATHER_BUSY: Duration = Duration::from_millis(8);
/// Rows in the batch before that make a run busy.
const BUSY: usize = 32;
/// Rows that are a batch without waiting for more.
const ENOUGH: usize = 1024;
/// Rows in one transaction at most: bounds how long writers of other processes wait.
const BATCH: usize = 4096;

/// Tells who waits for a row whether it is on disk.
type Done = oneshot::Sender<Result<(), StoreError>>;

struct Request {
    row: Option<Row>,
    /// Told when the row is on disk.
    done: Option<Done>,
}

/// A handle on the writer. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Writer {
    sender: mpsc::Sender<Request>,
    failure: Arc<OnceLock<StoreError>>,
    ended: Arc<AtomicBool>,
    replies: Arc<KnownReplies>,
}

/// What is known of the replies in the store without looking there: a search costs a good
/// part of what a judgement costs, and in a new store there is nothing to find.
#[derive(Debug, Default)]
struct KnownReplies {
    /// Whether the store has replies that did not come through this writer.
    others: AtomicBool,
    /// The beginnings of the keys of those that did, while there are no others.
    own: Mutex<HashSet<u64>>,
}

impl KnownReplies {
    fn beginning(key: &[u8; 32]) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| key[i]))
    }

    fn own(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may_hold(&self, key: &[u8; 32]) -> bool {
        self.others.load(Ordering::Acquire) || self.own().contains(&Self::beginning(key))
    }

    fn add(&self, key: &[u8; 32]) {
        if !self.others.load(Ordering::Acquire) {
            self.own().insert(Self::beginning(key));
        }
    }
}

impl Writer {
    pub(super) fn start(mut database: Database) -> Result<Self, StoreError> {
        let replies = Arc::new(KnownReplies::default());
        let known = replies.clone();
        let version = database.data_version()?;
        database.keep_log()?;
        let mut checkpoints = Checkpoints::of(database.path());
        known.others.store(database.has_replies()?, Ordering::Release);
        let (sender, mut receiver) = mpsc::channel::<Request>(QUEUE);
        let failure = Arc::new(OnceLock::new());
        let failed = failure.clone();
        let ended = Arc::new(AtomicBool::new(false));
        let has_ended = ended.clone();
        let runtime = Handle::try_current().ok();
        let run = move || {
            let mut rows = Vec::new();
            let mut waiting = Vec::new();
            let mut gather = GATHER;
            while let Some(first) = receiver.blocking_recv() {
                // A commit costs far more than a row: what comes in the next moment shares it.
                if receiver.len() < ENOUGH {
                    std::thread::sleep(gather);
                }
                let mut next = Some(first);
                while let Some(request) = next {
                    rows.extend(request.row);
                    waiting.extend(request.done);
                    next = if rows.len() < BATCH { receiver.try_recv().ok() } else { None };
                }
                let outcome = match failed.get() {
                    // After a fault nothing later is written: a run with holes in the middle
                    // would look finished where it is not.
                    Some(error) => Err(StoreError::clone(error)),
                    None if rows.is_empty() => Ok(()),
                    None => database.write(&rows),
                };
                if outcome.is_ok()
                    && let Err(error) = database.index_replies(false)
                {
                    // They are on disk all the same, and the next batch tries again.
                    tracing::warn!("the newest replies are not in the index yet: {error}");
                }
                if !known.others.load(Ordering::Relaxed)
                    && database.data_version().ok() != Some(version)
                {
                    known.others.store(true, Ordering::Release);
                }
                if let Err(error) = &outcome {
                    let _ = failed.set(error.clone());
                }
                let written = rows.drain(..).len();
                gather = if written < BUSY { GATHER } else { GATHER_BUSY };
                tell(std::mem::take(&mut waiting), outcome, runtime.as_ref());
                checkpoints.written(written, &database);
            }
            checkpoints.end();
            database.fold();
            drop(database);
            has_ended.store(true, Ordering::Release);
        };
        std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(run)
            .map_err(|error| StoreError::Start { message: error.to_string() })?;
        Ok(Self { sender, failure, ended, replies })
    }

    /// The fault that ended writing, if there was one.
    #[must_use]
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.get()
    }

    /// Writes a case. It is on disk after the next [`Writer::flush`].
    ///
    /// # Errors
    /// When the writer has ended.
    pub async fn case(&self, run: i64, position: u64, case: &Case) -> Result<(), StoreError> {
        let body = text("case", case)?;
        self.send(Row::Case { run, position, id: case.id.clone(), body }).await
    }

    /// Writes a verdict of the seat number `seat`.
    ///
    /// # Errors
    /// When the writer has ended.
    pub async fn verdict(
        &self,
        run: i64,
        position: u64,
        seat: u32,
        verdict: &Verdict,
    ) -> Result<(), StoreError> {
        let row = Row::Verdict {
            run,
            position,
            seat,
            sample: verdict.sample,
            status: verdict.status.name(),
            score: verdict.score.map(crate::score::Score::get),
            body: text("verdict", verdict)?,
        };
        self.send(row).await
    }

    /// Writes a ruling. Its verdicts are rows of their own and do not stand in its body.
    ///
    /// # Errors
    /// When the writer has ended.
    pub async fn ruling(
        &self,
        run: i64,
        position: u64,
        ruling: &mut Ruling,
    ) -> Result<(), StoreError> {
        let verdicts = std::mem::take(&mut ruling.verdicts);
        let body = text("ruling", ruling);
        ruling.verdicts = verdicts;
        let body = body?;
        let (decision, score) =
            (ruling.decision.name(), ruling.score.map(crate::score::Score::get));
        self.send(Row::Ruling { run, position, decision, score, body }).await
    }

    /// Keeps a reply; it is on disk when this returns.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn reply(&self, key: [u8; 32], body: String) -> Result<(), StoreError> {
        self.replies.add(&key);
        let created = jiff::Timestamp::now().as_second();
        self.send_and_wait(Some(Row::Reply { key, created, body })).await
    }

    /// Takes note that another process asks questions too.
    pub(super) fn others_ask(&self) {
        self.replies.others.store(true, Ordering::Release);
    }

    /// Whether the store may hold a reply under this key; if not, there is nothing to look for.
    pub(super) fn may_hold(&self, key: &[u8; 32]) -> bool {
        self.replies.may_hold(key)
    }

    /// Says how far a run has come.
    ///
    /// # Errors
    /// When it could not be written.
    pub async fn run_state(
        &self,
        run: i64,
        state: RunState,
        summary: Option<String>,
    ) -> Result<(), StoreError> {
        self.send_and_wait(Some(Row::RunState { run, state, summary })).await
    }

    /// Lets go of this handle, and waits a moment for the thread to end when it was the last.
    pub async fn close(self) {
        let ended = self.ended.clone();
        drop(self);
        for _ in 0..500 {
            if ended.load(Ordering::Acquire) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Returns when everything sent before is on disk.
    ///
    /// # Errors
    /// When something could not be written.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.send_and_wait(None).await
    }

    async fn send(&self, row: Row) -> Result<(), StoreError> {
        if let Some(error) = self.failure() {
            return Err(error.clone());
        }
        self.request(Request { row: Some(row), done: None }).await
    }

    async fn send_and_wait(&self, row: Option<Row>) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        self.request(Request { row, done: Some(done) }).await?;
        outcome.await.unwrap_or_else(|_| Err(self.has_ended()))
    }

    async fn request(&self, request: Request) -> Result<(), StoreError> {
        self.sender.send(request).await.map_err(|_| self.has_ended())
    }

    fn has_ended(&self) -> StoreError {
        let message = self.failure().map_or_else(|| "it stopped".into(), ToString::to_string);
        StoreError::Ended { message }
    }
}

/// Tells all who wait, from within the runtime where there is one: woken from outside, each of
/// them would wake a thread of it.
fn tell(waiting: Vec<Done>, outcome: Result<(), StoreError>, runtime: Option<&Handle>) {
    let told = move || {
        for done in waiting {
            let _ = done.send(outcome.clone());
        }
    };
    match runtime {
        Some(runtime) => drop(runtime.spawn(async move { told() })),
        None => told(),
    }
}

fn text<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| StoreError::Unwritable { what, message: error.to_string() })
}
