//! Long-lived scripts: each worker has one case at a time, a line in and a line out.
//!
//! A worker that is late, dies, answers for another case or says more than it was asked is
//! killed, so no later case can get its answer. The next case starts a new one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::answer::AnswerForm;
use super::{died, private_home};
use crate::case::Case;
use crate::judge::process::{Capture, Launch, Running, SpawnError, Until, spawn};
use crate::provider::CallContext;
use crate::verdict::{Status, Verdict};

/// The workers of one judge.
#[derive(Debug)]
pub(super) struct Workers {
    /// One permit a worker. A case holds it from before it takes a worker until the worker
    /// is back or dead.
    permits: Semaphore,
    /// Workers that wait for a case.
    idle: Mutex<Vec<Worker>>,
}

/// A running script. Dropping it kills it and removes its home.
#[derive(Debug)]
struct Worker {
    // Field order is drop order: the processes go before their folder.
    running: Running,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Written by the task that drains the script's standard error, which ends with it.
    stderr: Arc<Mutex<Capture>>,
    answered: u64,
    limit: usize,
    _home: tempfile::TempDir,
}

/// How long a second line is watched for after a worker's first answer: one that writes two
/// to every case is then found out at once, and later answers wait for nothing.
const WATCH: std::time::Duration = std::time::Duration::from_millis(20);

/// What became of one exchange with a worker.
enum Reply {
    Line(Vec<u8>),
    /// It closed its output before a whole line.
    Ended {
        partial: bool,
    },
    TooLong,
}

impl Workers {
    pub(super) fn new(count: u32) -> Self {
        Self { permits: Semaphore::new(count as usize), idle: Mutex::new(Vec::new()) }
    }

    /// Asks a worker about a case.
    pub(super) async fn ask(
        &self,
        launch: impl Fn(PathBuf) -> Launch,
        form: &AnswerForm,
        case: &Case,
        line: &str,
        until: Until<'_>,
    ) -> Verdict {
        let Until { context, timeout } = until;
        // The number of workers is the user's own limit: waiting for one counts neither as the
        // script's time nor against the deadline.
        let Some(permit) = context.in_turn(self.permits.acquire()).await else {
            return over(context, "waiting for a free worker");
        };
        let Ok(_permit) = permit else {
            return Verdict::failed(Status::Internal, "the workers are gone");
        };
        let stop = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut attempts = 0;
        loop {
            attempts += 1;
            let exchange = async {
                let mut worker = match self.take() {
                    Some(worker) => worker,
                    None => Worker::start(&launch).await?,
                };
                let reply = worker.exchange(line).await;
                Ok::<_, Box<Verdict>>((worker, reply))
            };
            // Where this future ends early, the worker is dropped and with it killed.
            let mut verdict = match within(context, stop, exchange).await {
                None => over(context, "waiting for the script's answer"),
                Some(Err(verdict)) => *verdict,
                Some(Ok((mut worker, reply))) => match reply {
                    Reply::Line(bytes) => {
                        let mut verdict = form.read(&bytes, case);
                        if let Some(level) = &worker.running.isolation {
                            verdict = verdict.note("isolation", level.as_str());
                        }
                        worker.answered += 1;
                        if worker.speaks_again().await {
                            verdict = Verdict::failed(
                                Status::ProviderError,
                                "the script wrote a second line for one case: `mode = \"lines\"` is one line of answer for each line of input",
                            );
                        }
                        // After an answer out of form the two may be out of step.
                        let in_step =
                            !matches!(verdict.status, Status::Unparseable | Status::ProviderError);
                        if in_step {
                            self.put_back(worker);
                        }
                        verdict
                    }
                    // A script may end itself between cases, say to give memory back; the
                    // case that met its end is asked once more.
                    Reply::Ended { partial: false } if worker.answered > 0 && attempts == 1 => {
                        continue;
                    }
                    Reply::Ended { partial } => worker.died(partial).await,
                    Reply::TooLong => Verdict::failed(
                        Status::Unparseable,
                        "the script wrote a line longer than `sandbox.output_kb` allows",
                    ),
                },
            };
            verdict.attempts = attempts;
            return verdict;
        }
    }

    /// An idle worker that is alive and has said nothing unasked.
    fn take(&self) -> Option<Worker> {
        loop {
            let mut worker = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if worker.is_ready() {
                return Some(worker);
            }
            if worker.has_unread() || !worker.stdout.buffer().is_empty() {
                tracing::warn!(
                    "a script wrote a line that no case asked for, after its answer: it is started anew"
                );
            }
        }
    }

    fn put_back(&self, worker: Worker) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }
}

impl Worker {
    async fn start(launch: &impl Fn(PathBuf) -> Launch) -> Result<Self, Box<Verdict>> {
        let home = private_home()?;
        let launch = launch(home.path().to_owned());
        let failed = |error: SpawnError| Box::new(error.verdict());
        let mut running = spawn(&launch).await.map_err(failed)?;
        let child = &mut running.child;
        let (Some(stdin), Some(stdout), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Box::new(Verdict::failed(Status::Internal, "a stream is not piped")));
        };
        let limit = launch.sandbox.output_bytes();
        let stderr = Arc::new(Mutex::new(Capture::new(limit.min(64 * 1024))));
        let kept = Arc::clone(&stderr);
        tokio::spawn(async move {
            let mut buffer = vec![0; 8 * 1024];
            while let Ok(count @ 1..) = errors.read(&mut buffer).await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..count]);
            }
        });
        let stdout = BufReader::new(stdout);
        Ok(Self { running, stdin, stdout, stderr, answered: 0, limit, _home: home })
    }

    /// Whether it waits for a case: alive, and nothing to read.
    fn is_ready(&mut self) -> bool {
        let alive = matches!(self.running.child.try_wait(), Ok(None));
        alive && self.stdout.buffer().is_empty() && !self.has_unread()
    }

    /// Whether more follows the answer that was just read.
    async fn speaks_again(&mut self) -> bool {
        if self.answered == 1 {
            let more = tokio::time::timeout(WATCH, self.stdout.fill_buf()).await;
            return more.is_ok_and(|read| read.is_ok_and(|bytes| !bytes.is_empty()));
        }
        !self.stdout.buffer().is_empty() || self.has_unread()
    }

    /// Asks the pipe itself: the runtime may not have heard of its new bytes yet.
    #[cfg(unix)]
    fn has_unread(&self) -> bool {
        rustix::io::ioctl_fionread(self.stdout.get_ref()).is_ok_and(|count| count > 0)
    }

    #[cfg(not(unix))]
    fn has_unread(&self) -> bool {
        false
    }

    async fn exchange(&mut self, line: &str) -> Reply {
        let Self { stdin, stdout, limit, .. } = self;
        let send = async {
            let sent = stdin.write_all(line.as_bytes()).await;
            if sent.is_ok() { stdin.flush().await } else { sent }
        };
        let limit = *limit as u64;
        let receive = async {
            let mut answer = Vec::new();
            let read = stdout.take(limit).read_until(b'\n', &mut answer).await;
            (read, answer)
        };
        // Both at once: a script may answer before it has read all of a long line.
        let (_, (read, answer)) = tokio::join!(send, receive);
        match read {
            Ok(_) if answer.ends_with(b"\n") => Reply::Line(answer),
            Ok(_) if answer.len() as u64 >= limit => Reply::TooLong,
            _ => Reply::Ended { partial: !answer.is_empty() },
        }
    }

    /// Why there is no answer: how it ended and what it last said.
    async fn died(mut self, partial: bool) -> Verdict {
        let patience = std::time::Duration::from_millis(500);
        let status = tokio::time::timeout(patience, self.running.child.wait()).await;
        // The drain task may still hold the last words.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
        let how = match status {
            Ok(Ok(status)) => format!("ended ({status})"),
            _ => "closed its output".to_owned(),
        };
        let what = if partial { "in the middle of an answer" } else { "without an answer" };
        died(&format!("{how} {what}"), &stderr)
    }
}

/// The future's result, or `None` when the measurement is cancelled, past its due time or
/// past `stop`.
async fn within<T>(
    context: &CallContext,
    stop: Option<Instant>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let own = async {
        match stop {
            Some(stop) => tokio::time::sleep_until(stop).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => None,
        result = work => Some(result),
        () = context.past_due() => None,
        () = own => None,
    }
}

fn over(context: &CallContext, during: &str) -> Verdict {
    if context.cancel.is_cancelled() {
        Verdict::failed(Status::Cancelled, format!("stopped while {during}"))
    } else {
        Verdict::failed(
            Status::Timeout,
            format!(
                "time ran out while {during}; a script that stays alive must flush after each line (Python: `print(…, flush=True)` or `python3 -u`)"
            ),
        )
    }
}
