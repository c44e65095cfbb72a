//! Signals: what stops judging, and how the program is left.
//!
//! The first Ctrl-C starts nothing more and waits for what is in flight; the second gives that
//! up; SIGTERM and SIGHUP do both by themselves, a moment apart. What was judged is kept, and
//! no child is left behind in any of these. A hangup that was ignored when the program
//! started (`nohup`) stays ignored.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::printer::Printer;
use crate::judge::process::end_all;

/// How long SIGTERM and SIGHUP leave for the calls in flight: they are paid for.
const CALLS: Duration = Duration::from_secs(2);
/// How long an orderly end may take once everything in flight is given up.
const ORDERLY: Duration = Duration::from_secs(3);

/// The signals of one verb, listened to until the program ends.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    /// Fires at the first signal: nothing new is begun.
    pub(super) stop: CancellationToken,
    /// Fires when what is in flight is given up.
    pub(super) abandon: CancellationToken,
    /// Fires when there is nothing left to wait for: a signal then leaves at once.
    done: CancellationToken,
}

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Ctrl-C: once to stop, twice to leave.
    Stop,
    /// SIGTERM or SIGHUP: leave, soon.
    Leave,
    /// SIGQUIT: leave now.
    Quit,
}

impl Stop {
    /// Listens; `resume` is the line that says how to go on.
    pub(super) fn listen(printer: Printer, resume: Option<String>) -> Self {
        let stop = Self {
            stop: CancellationToken::new(),
            abandon: CancellationToken::new(),
            done: CancellationToken::new(),
        };
        match Signals::new() {
            Ok(signals) => drop(tokio::spawn(stop.clone().obey(signals, printer, resume))),
            Err(error) => tracing::warn!("signals can't be listened to: {error}"),
        }
        stop
    }

    /// Nothing is judged any more: the next signal leaves at once.
    pub(super) fn judged(&self) {
        self.done.cancel();
    }

    async fn obey(self, mut signals: Signals, printer: Printer, resume: Option<String>) {
        let mut abandon_at = None;
        let mut leave_at = None;
        loop {
            tokio::select! {
                wish = signals.next() => {
                    let first = !self.stop.is_cancelled();
                    self.stop.cancel();
                    match wish {
                        _ if self.done.is_cancelled() => break,
                        Wish::Quit => break,
                        Wish::Leave => {
                            abandon_at = abandon_at.or(Some(Instant::now() + CALLS));
                            printer.warn("stopping: the calls in flight have a moment to end");
                        }
                        Wish::Stop if first => printer.warn(
                            "stopping: waiting for the calls in flight (Ctrl-C again leaves at once)",
                        ),
                        Wish::Stop if !self.abandon.is_cancelled() => {
                            abandon_at = Some(Instant::now());
                        }
                        Wish::Stop => break,
                    }
                }
                () = at(abandon_at) => {
                    self.abandon.cancel();
                    abandon_at = None;
                    leave_at = Some(Instant::now() + ORDERLY);
                }
                () = at(leave_at) => break,
            }
        }
        if let Some(resume) = resume {
            printer.warn(&resume);
        }
        leave();
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

#[expect(clippy::exit, reason = "somebody asked for just that, and the orderly way takes too long")]
fn leave() {
    end_all();
    std::process::exit(Exit::Interrupted.code().into());
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: Option<tokio::signal::unix::Signal>,
    quit: tokio::signal::unix::Signal,
    /// Only so that a write past a limit of the shell (`ulimit -f`) is an error that can be
    /// told, and not the end.
    _too_large: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        /// The number of SIGXFSZ wherever there is one.
        const TOO_LARGE: i32 = 25;
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
            quit: signal(SignalKind::quit())?,
            _too_large: signal(SignalKind::from_raw(TOO_LARGE)).ok(),
        })
    }

    async fn next(&mut self) -> Wish {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.terminate.recv() => Wish::Leave,
            _ = hangup => Wish::Leave,
            _ = self.quit.recv() => Wish::Quit,
        }
    }
}

/// Whether the program was started to outlive its terminal.
#[cfg(target_os = "linux")]
fn hangup_is_ignored() -> bool {
    /// The bit of SIGHUP in a mask of signals.
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & HANGUP != 0)
}

/// Whether the program was started to outlive its terminal: then it writes to none.
#[cfg(all(unix, not(target_os = "linux")))]
fn hangup_is_ignored() -> bool {
    use std::io::IsTerminal as _;
    !std::io::stdout().is_terminal() && !std::io::stderr().is_terminal()
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Wish {
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
        Wish::Stop
    }
}
