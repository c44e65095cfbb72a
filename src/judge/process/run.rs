//! Starts a child, feeds and drains it, and says how it ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::group::{self, Group};
use super::{Capture, Isolation, Sandbox, drain};
use crate::provider::CallContext;
use crate::verdict::{Status, Verdict};

/// One program to start.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The folder it runs in; readable behind a wall.
    pub(crate) directory: PathBuf,
    /// Its home where it has one of its own; writable behind a wall.
    pub(crate) private: PathBuf,
    /// Variables beside those of the sandbox.
    pub(crate) variables: Vec<(String, OsString)>,
    pub(crate) sandbox: Sandbox,
}

/// Until when a child may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until<'a> {
    pub(crate) context: &'a CallContext,
    /// Its own limit, which the context's deadline may cut short.
    pub(crate) timeout: Option<Duration>,
}

/// Why a child was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("failed to start `{program}`: {source}", program = .program.display())]
    Start { program: PathBuf, source: std::io::Error },
    #[error("`isolation = \"{level}\"` was asked for and {reason}: set `isolation = \"none\"` to run without walls, or use a kernel with Landlock", level = .isolation.name())]
    Isolation { isolation: Isolation, reason: String },
    #[error("failed to limit `{program}`: {source}", program = .program.display())]
    Limit { program: PathBuf, source: std::io::Error },
}

impl SpawnError {
    /// The failed measurement that follows.
    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::failed(Status::ProviderError, self.to_string())
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that its own doing raised, such as SIGSEGV or SIGABRT.
    Crashed(i32),
    /// By a signal from outside that was not ours: another process, or the kernel short of
    /// memory.
    KilledFromOutside(i32),
    /// By a limit of its sandbox.
    Limit(&'static str),
    /// By us: its own timeout passed.
    TimedOut(Duration),
    /// By us: the deadline of the measurement passed.
    Deadline,
    /// By us: the measurement is not wanted any more.
    Cancelled,
}

impl Ending {
    /// The failed measurement that an ending is, with words for it; `None` where the program
    /// ended by its own doing.
    pub(crate) fn failure(self) -> Option<(Status, String)> {
        match self {
            Self::Exited(_) | Self::Crashed(_) => None,
            Self::KilledFromOutside(signal) => Some((
                Status::ProviderError,
                format!(
                    "was killed from outside by signal {signal}; if it was 9, look for an out-of-memory kill"
                ),
            )),
            Self::Limit("cpu_seconds") => {
                Some((Status::Timeout, "reached the limit `cpu_seconds`".to_owned()))
            }
            Self::Limit(limit) => {
                Some((Status::ProviderError, format!("reached the limit `{limit}`")))
            }
            Self::TimedOut(limit) => Some((
                Status::Timeout,
                format!("ran longer than {limit:?}, its `timeout`: raise that if it needs longer"),
            )),
            Self::Deadline => {
                Some((Status::Timeout, "was still running at the judge's deadline".to_owned()))
            }
            Self::Cancelled => Some((Status::Cancelled, "was stopped".to_owned())),
        }
    }

    fn of(status: std::process::ExitStatus, sandbox: &Sandbox) -> Self {
        // Linux numbers; the limits exist on Linux only.
        const SIGXCPU: i32 = 24;
        const SIGXFSZ: i32 = 25;
        let limit = |signal| match signal {
            SIGXCPU if sandbox.limits_cpu() => Some(Self::Limit("cpu_seconds")),
            SIGXFSZ if sandbox.limits_file_size() => Some(Self::Limit("file_mb")),
            _ => None,
        };
        if let Some(code) = status.code() {
            // A shell passes its child's signal on as 128 + signal.
            return limit(code - 128).unwrap_or(Self::Exited(code));
        }
        let signal = signal_of(status);
        // SIGHUP, SIGINT, SIGKILL, SIGTERM: nothing that a program's own fault raises.
        let outside = matches!(signal, 1 | 2 | 9 | 15);
        limit(signal).unwrap_or(if outside {
            Self::KilledFromOutside(signal)
        } else {
            Self::Crashed(signal)
        })
    }
}

#[cfg(unix)]
fn signal_of(status: std::process::ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()
}

#[cfg(not(unix))]
fn signal_of(_: std::process::ExitStatus) -> i32 {
    0
}

/// A child that ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ending: Ending,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    /// The wall that stood around it, as a verdict's note; `None` without one.
    pub(crate) isolation: Option<String>,
}

/// A started child. Dropping it kills its whole group.
#[derive(Debug)]
pub(crate) struct Running {
    // Before `child`, so that the group is killed while its leader is not yet reaped and its
    // number can't have been given to another.
    pub(crate) group: Group,
    pub(crate) child: Child,
    pub(crate) isolation: Option<String>,
}

/// Starts a child with all three streams piped.
pub(crate) async fn spawn(launch: &Launch) -> Result<Running, SpawnError> {
    match launch.sandbox.isolation() {
        Isolation::None => start(launch, None).await,
        isolation => spawn_walled(launch, isolation).await,
    }
}

#[cfg(target_os = "linux")]
async fn spawn_walled(launch: &Launch, isolation: Isolation) -> Result<Running, SpawnError> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let launch = launch.clone();
    let runtime = tokio::runtime::Handle::current();
    // If the receiver is gone the child comes back from `send`, and dropping it kills it.
    let work = move || {
        let mut read = launch.sandbox.read().to_vec();
        read.push(launch.directory.clone());
        let mut write = launch.sandbox.write().to_vec();
        write.push(launch.private.clone());
        let level = super::wall::raise(isolation, &read, &write, &launch.program)
            .map(|level| format!("{}: {level}", isolation.name()));
        let result = match level {
            Ok(level) => runtime.block_on(start(&launch, Some(level))),
            Err(reason) => Err(SpawnError::Isolation { isolation, reason }),
        };
        let _ = sender.send(result);
    };
    let failed = |reason: &str| SpawnError::Isolation { isolation, reason: reason.to_owned() };
    std::thread::Builder::new()
        .name("venire-wall".to_owned())
        .spawn(work)
        .map_err(|error| failed(&format!("no thread could be started for it ({error})")))?;
    receiver.await.unwrap_or_else(|_| Err(failed("the thread that raises it died")))
}

#[cfg(not(target_os = "linux"))]
async fn spawn_walled(_: &Launch, isolation: Isolation) -> Result<Running, SpawnError> {
    std::future::ready(()).await;
    Err(SpawnError::Isolation { isolation, reason: "this system has no Landlock".to_owned() })
}

async fn start(launch: &Launch, isolation: Option<String>) -> Result<Running, SpawnError> {
    let mark = group::mark();
    let (name, value) = group::marked_by(&mark);
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .current_dir(&launch.directory)
        .env_clear()
        .envs(launch.sandbox.environment(&launch.private))
        .envs(launch.variables.iter().map(|(name, value)| (name, value)))
        .env(name, value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    // A program copied a moment ago is "busy" while another thread's fork still holds its
    // file open for writing.
    let mut tries = 0;
    let started = loop {
        match started(&mut command, &mark) {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && tries < 20 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            other => break other,
        }
    };
    let (group, child) =
        started.map_err(|source| SpawnError::Start { program: launch.program.clone(), source })?;
    let running = Running { group, child, isolation };
    #[cfg(target_os = "linux")]
    if let Some(leader) = running.group.leader() {
        launch
            .sandbox
            .limit(leader)
            .map_err(|source| SpawnError::Limit { program: launch.program.clone(), source })?;
    }
    Ok(running)
}

/// Starts a child and its group in one step, so that none is ever without the other.
fn started(command: &mut Command, mark: &str) -> std::io::Result<(Group, Child)> {
    let Some(_admission) = group::admission() else {
        return Err(std::io::Error::other("the program is leaving"));
    };
    let child = command.spawn()?;
    Ok((Group::new(&child, mark.to_owned()), child))
}

/// Runs a child to its end. Dropping the future kills it.
pub(crate) async fn run(
    launch: &Launch,
    input: &[u8],
    until: Until<'_>,
) -> Result<Finished, SpawnError> {
    let mut running = spawn(launch).await?;
    let own =
        until.timeout.and_then(|timeout| Some((Instant::now().checked_add(timeout)?, timeout)));
    let (stop, at_stop) = match own {
        Some((at, timeout)) if at < until.context.deadline => (at, Ending::TimedOut(timeout)),
        _ => (until.context.deadline, Ending::Deadline),
    };
    let limit = launch.sandbox.output_bytes();
    let (mut stdout, mut stderr) = (Capture::new(limit), Capture::new(limit));
    let ending = {
        let child = &mut running.child;
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A program need not read what it is given.
                let _ = stdin.write_all(input).await;
                let _ = stdin.shutdown().await;
            }
        };
        let streams = async {
            tokio::join!(feed, drain(out, &mut stdout), drain(err, &mut stderr));
        };
        tokio::pin!(streams);
        let mut open = true;
        let ending = loop {
            tokio::select! {
                biased;
                () = until.context.cancel.cancelled() => break Ending::Cancelled,
                status = child.wait() => match status {
                    Ok(status) => break Ending::of(status, &launch.sandbox),
                    Err(source) => {
                        return Err(SpawnError::Start { program: launch.program.clone(), source });
                    }
                },
                () = tokio::time::sleep_until(stop) => break at_stop,
                () = &mut streams, if open => open = false,
            }
        };
        running.group.end(child).await;
        if open {
            // What was written before the end is in the pipes. A process out of our reach
            // may still hold them open, so the wait has an end.
            let _ = tokio::time::timeout(Duration::from_millis(500), &mut streams).await;
        }
        ending
    };
    Ok(Finished { ending, stdout, stderr, isolation: running.isolation })
}

/// Whether a path stays inside the folder it is joined to.
pub(crate) fn is_inside(path: &Path) -> bool {
    use std::path::Component;
    path.file_name().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}
