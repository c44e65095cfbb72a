//! A run: a panel over a data set, every verdict on disk as it comes.
//!
//! Cases stream from their source through a bounded number of measurements in flight into
//! the store. A run that was stopped, or whose process died, goes on where it was: finished
//! cases are skipped, verdicts that are on disk are not asked for again, and replies that
//! were paid for are found in the store.

pub mod joined;
pub mod rows;
pub mod select;
mod share;
mod sources;
mod tally;
pub mod truth;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::share::Share;
pub use self::sources::{MOST_SOURCES, SourceResult};
pub use self::tally::{JudgeTally, Origin, Tally};
use crate::case::Case;
use crate::panel::decide::NOT_NEEDED;
use crate::panel::{Known, Listener, Panel};
use crate::provider::{CallContext, Ledger, Places, ReplyStore};
use crate::ruling::Ruling;
use crate::store::{RunState, Store, StoreError, Writer};
use crate::verdict::{Status, Verdict};

/// Cases read ahead of the judges.
const READ_AHEAD: usize = 64;

/// Where a run is kept. Owned, so that a task of its own can run it.
#[derive(Clone, Debug)]
pub struct Place {
    /// Path of the store that has the run's record.
    pub store: PathBuf,
    /// The record's number.
    pub run: i64,
    /// The store's writer.
    pub writer: Writer,
    /// Replies of model servers.
    pub replies: Arc<dyn ReplyStore>,
}

/// What shapes a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Measurements in flight at most, over all judges; at least 1.
    pub concurrency: usize,
    /// Whether verdicts that failed are asked for again.
    pub retry_errors: bool,
    /// Whether the run was begun before.
    pub resumed: bool,
    /// Fires to stop: no new measurement starts, those in flight end.
    pub stop: CancellationToken,
    /// Fires to give up what is in flight too: those verdicts are not kept.
    pub abandon: CancellationToken,
    /// Money and tokens.
    pub ledger: Arc<Ledger>,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was counted, cases of an earlier part of the run included.
    pub tally: Tally,
    /// Whether every case has a ruling.
    pub finished: bool,
    /// The time of this part of the run.
    pub elapsed: Duration,
}

/// Why a run broke off. What was judged until then is in the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The data could not be read on.
    #[error("failed to read on in the data set")]
    Data(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A part of the run itself died.
    #[error("a task of the run died: {0}")]
    Task(String),
}

/// A ruling with its case's group and source.
type Ruled = (Ruling, Option<String>, Option<String>);

/// A case on its way to the panel.
struct Work {
    position: u64,
    case: Case,
    known: Known,
    /// The ruling it has already; then there is nothing to do.
    ruling: Option<Ruling>,
}

/// Runs a panel over cases, in a store that has the run's record.
///
/// `cases` must give the same cases in the same order each time a run is resumed. `progress`
/// is called after each case.
///
/// # Errors
/// When the data or the store fails. The record then says `interrupted`.
pub async fn execute<C, E>(
    mut panel: Panel,
    cases: C,
    place: &Place,
    options: &Options,
    progress: &mut (dyn FnMut(&Tally) + Send),
) -> Result<Report, RunError>
where
    C: Iterator<Item = Result<Case, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Place { store, run, writer, replies } = place;
    let started = Instant::now();
    let places = Places::new(options.concurrency);
    panel.places = Some(places.clone());
    let panel = Arc::new(panel);
    let mut tally =
        Tally::new(panel.seats.iter().map(|s| (s.name.clone(), s.judge.fingerprint().to_string())));
    for (judge, seat) in tally.judges.iter_mut().zip(&panel.seats) {
        let kind = seat.judge.kind();
        judge.asks_models = kind == "llm";
        judge.can_change = matches!(kind, "llm" | "http" | "human" | "observe");
        judge.measures = matches!(kind, "rule" | "command" | "script" | "observe");
    }
    let mut source = read(cases, Store::open(store)?, *run, options.clone());
    let mut open: JoinSet<Result<Option<Ruled>, StoreError>> = JoinSet::new();
    let mut exhausted = false;
    let mut complete = true;
    let mut failure = None;
    // A case needs at least one place, so more cases than places would only wait in memory;
    // as many again may have been judged and be on their way to the disk.
    let most_open = options.concurrency.max(1).saturating_mul(2);
    while !(exhausted && open.is_empty()) {
        tokio::select! {
            () = options.stop.cancelled(), if !places.is_closed() => {
                places.close();
                complete = false;
                exhausted = true;
            }
            work = source.recv(), if !exhausted && open.len() < most_open => match work {
                None => exhausted = true,
                // What is in flight still ends and is kept.
                Some(Err(error)) => {
                    failure = Some(error);
                    exhausted = true;
                }
                Some(Ok(Work { ruling: Some(ruling), case, .. })) => {
                    tally.add(&ruling, Origin::from(&case));
                    progress(&tally);
                }
                Some(Ok(work)) => {
                    let judged = judge(
                        panel.clone(), work, *run, writer.clone(), replies.clone(),
                        options.clone(),
                    );
                    open.spawn(judged);
                }
            },
            Some(done) = open.join_next() => match done {
                Ok(Ok(Some((ruling, group, source)))) => {
                    let origin = Origin { group: group.as_deref(), source: source.as_deref() };
                    tally.add(&ruling, origin);
                    progress(&tally);
                }
                Ok(Ok(None)) => complete = false,
                Ok(Err(error)) => {
                    failure.get_or_insert(RunError::Store(error));
                    places.close();
                    exhausted = true;
                }
                Err(error) => {
                    failure.get_or_insert(RunError::Task(error.to_string()));
                    complete = false;
                }
            },
        }
    }
    let state =
        if complete && failure.is_none() { RunState::Finished } else { RunState::Interrupted };
    let summary = serde_json::to_string(&tally).ok();
    let closed = writer.run_state(*run, state, summary).await;
    match failure {
        Some(error) => Err(error),
        None => {
            closed?;
            let finished = state == RunState::Finished;
            Ok(Report { tally, finished, elapsed: started.elapsed() })
        }
    }
}

/// Reads cases on a thread of its own, with what the store knows of each.
fn read<C, E>(
    cases: C,
    store: Store,
    run: i64,
    options: Options,
) -> mpsc::Receiver<Result<Work, RunError>>
where
    C: Iterator<Item = Result<Case, E>> + Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    tokio::task::spawn_blocking(move || {
        for (position, case) in (0u64..).zip(cases) {
            let work = match case {
                Err(error) => Err(RunError::Data(error.into())),
                Ok(case) if options.resumed => known(&store, run, position, case, &options),
                Ok(case) => Ok(Work { position, case, known: Known::default(), ruling: None }),
            };
            let failed = work.is_err();
            if sender.blocking_send(work).is_err() || failed {
                break;
            }
        }
    });
    receiver
}

/// What the store knows of a case, less what is to be asked again.
fn known(
    store: &Store,
    run: i64,
    position: u64,
    case: Case,
    options: &Options,
) -> Result<Work, RunError> {
    let again = |verdict: &Verdict| {
        options.retry_errors && verdict.status.is_error() && !verdict.notes.contains_key(NOT_NEEDED)
    };
    let ruling = store.ruling(run, position)?;
    if let Some(ruling) = ruling
        && !ruling.verdicts.iter().any(again)
    {
        return Ok(Work { position, case, known: Known::default(), ruling: Some(ruling) });
    }
    let (retry, verdicts): (Vec<_>, Vec<_>) =
        store.verdicts(run, position)?.into_iter().partition(again);
    let retry = retry.into_iter().map(|verdict| (verdict.judge, verdict.sample)).collect();
    Ok(Work { position, case, known: Known { verdicts, retry }, ruling: None })
}

/// Whether a verdict says nothing but that the run was stopped: it is not kept, so that the
/// resumed run asks for it.
fn stopped(verdict: &Verdict) -> bool {
    verdict.status == Status::Cancelled && !verdict.notes.contains_key(NOT_NEEDED)
}

/// Judges one case and keeps what came of it; `None` when it was stopped on the way.
async fn judge(
    panel: Arc<Panel>,
    work: Work,
    run: i64,
    writer: Writer,
    replies: Arc<dyn ReplyStore>,
    options: Options,
) -> Result<Option<Ruled>, StoreError> {
    let Work { position, case, known, .. } = work;
    writer.case(run, position, &case).await?;
    let Options { ledger, abandon: cancel, .. } = options;
    let context = CallContext { replies, ledger, cancel, ..CallContext::standalone(FOREVER) };
    let keeper = Keeper { panel: &panel, run, position, writer: &writer };
    let mut ruling = panel.judge_with(&case, &context, known, &keeper).await;
    if ruling.verdicts.iter().any(stopped) {
        return Ok(None);
    }
    writer.ruling(run, position, &mut ruling).await?;
    Ok(Some((ruling, case.group, case.source)))
}

/// A case has no deadline of its own: its judges and its panel have.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Writes verdicts as they come.
struct Keeper<'a> {
    panel: &'a Panel,
    run: i64,
    position: u64,
    writer: &'a Writer,
}

impl Listener for Keeper<'_> {
    fn verdict<'a>(&'a self, verdict: &'a Verdict) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if stopped(verdict) {
                return;
            }
            let seat = self.panel.seats.iter().position(|seat| seat.name == verdict.judge);
            let seat = seat.unwrap_or(usize::MAX) as u32;
            // A fault ends the writer, and the ruling that follows reports it.
            if let Err(error) = self.writer.verdict(self.run, self.position, seat, verdict).await {
                tracing::error!("failed to keep a verdict: {error}");
            }
        })
    }
}

#[cfg(test)]
mod tests;
