//! The end of a child: its whole process group, and on Linux whatever left the group but
//! still carries its mark.
//!
//! A group is what `sh -c "a & b"` dies with. A program that starts a session of its own
//! leaves the group; it is found by a mark in its environment. One that also clears its
//! environment is out of reach without control groups, and this is said in the manual.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The environment variable that marks everything a child starts: a mark for each program of
/// this kind on the way to it, apart by spaces, so that the outermost one finds all.
const MARK: &str = "VENIRE_PROCESS";

/// What every mark of this process begins with.
static SESSION: LazyLock<String> =
    LazyLock::new(|| format!("{}-{:016x}", std::process::id(), rand::random::<u64>()));

/// True once the process is about to leave: nothing is started then. Held for reading while a
/// child is started, so that none is born unseen.
static LEAVING: RwLock<bool> = RwLock::new(false);

/// The leaders of the groups that are alive.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A mark for a new child.
pub(crate) fn mark() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", *SESSION, COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// The variable that marks a child.
pub(crate) fn marked_by(mark: &str) -> (&'static str, String) {
    match std::env::var(MARK) {
        Ok(outer) if !outer.is_empty() => (MARK, format!("{outer} {mark}")),
        _ => (MARK, mark.to_owned()),
    }
}

/// Admission to start a child, held until its [`Group`] is made; `None` once the process is
/// about to leave.
pub(crate) fn admission() -> Option<RwLockReadGuard<'static, bool>> {
    let leaving = LEAVING.read().unwrap_or_else(PoisonError::into_inner);
    (!*leaving).then_some(leaving)
}

/// Kills every child of this process at once and lets none be started any more: for a process
/// that leaves without unwinding.
#[cfg(feature = "cli")]
pub(crate) fn end_all() {
    *LEAVING.write().unwrap_or_else(PoisonError::into_inner) = true;
    #[cfg(unix)]
    {
        let leaders = LEADERS.lock().unwrap_or_else(PoisonError::into_inner);
        if leaders.is_empty() {
            return;
        }
        for leader in leaders.iter().filter_map(|id| rustix::process::Pid::from_raw(*id)) {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
    kill_marked(|mark| mark.starts_with(&**SESSION));
}

/// How long SIGTERM is given to work before SIGKILL.
const GRACE: Duration = Duration::from_millis(300);

/// A child's process group. Dropped before [`Group::end`], it kills all of it at once, so a
/// cancelled future leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
    mark: String,
    over: bool,
}

impl Group {
    pub(crate) fn new(child: &tokio::process::Child, mark: String) -> Self {
        #[cfg(unix)]
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        #[cfg(not(unix))]
        let _ = child;
        let group = Self {
            #[cfg(unix)]
            leader,
            mark,
            over: false,
        };
        group.list(true);
        group
    }

    /// Puts it on the list of those alive, or takes it off.
    fn list(&self, alive: bool) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            let id = leader.as_raw_nonzero().get();
            let mut leaders = LEADERS.lock().unwrap_or_else(PoisonError::into_inner);
            if alive {
                leaders.insert(id)
            } else {
                leaders.remove(&id)
            };
        }
        #[cfg(not(unix))]
        let _ = alive;
    }

    #[cfg(unix)]
    pub(crate) fn leader(&self) -> Option<rustix::process::Pid> {
        self.leader
    }

    /// Ends the group: SIGTERM, a short grace, SIGKILL. Returns at once when nobody is left.
    pub(crate) async fn end(&mut self, child: &mut tokio::process::Child) {
        self.terminate();
        let step = Duration::from_millis(5);
        let patience = tokio::time::Instant::now() + GRACE;
        while self.is_alive(child) && tokio::time::Instant::now() < patience {
            tokio::time::sleep(step).await;
        }
        self.kill();
        let _ = child.start_kill();
        let own = self.mark.clone();
        let _ = tokio::task::spawn_blocking(move || kill_marked(|mark| mark == own)).await;
        // SIGKILL can't be refused; a child stuck in the kernel is left to it.
        let _ = tokio::time::timeout(Duration::from_secs(5), child.wait()).await;
        self.over = true;
        self.list(false);
    }

    #[cfg(unix)]
    fn is_alive(&self, child: &mut tokio::process::Child) -> bool {
        // Waiting also reaps the leader, which would else keep its group alive as a zombie.
        let leader_runs = matches!(child.try_wait(), Ok(None));
        leader_runs
            || self
                .leader
                .is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
    }

    #[cfg(not(unix))]
    fn is_alive(&self, child: &mut tokio::process::Child) -> bool {
        matches!(child.try_wait(), Ok(None))
    }

    #[cfg(unix)]
    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    #[cfg(unix)]
    fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.leader {
            // An error means that the group is empty: what was wanted.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    #[cfg(not(unix))]
    fn terminate(&self) {}

    #[cfg(not(unix))]
    fn kill(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.over {
            self.kill();
            kill_marked(|mark| mark == self.mark);
            self.list(false);
        }
    }
}

/// Kills every process with such a mark in its environment, until there is none.
#[cfg(target_os = "linux")]
fn kill_marked(wanted: impl Fn(&str) -> bool) {
    // One that forks while it is looked for is found in the next round.
    for _ in 0..5 {
        let found = marked(&wanted);
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_: impl Fn(&str) -> bool) {}

#[cfg(target_os = "linux")]
fn marked(wanted: &impl Fn(&str) -> bool) -> Vec<rustix::process::Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_wanted = |variable: &[u8]| {
        let marks = variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        Some(std::str::from_utf8(marks).ok()?.split(' ').any(wanted))
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let id: i32 = entry.file_name().to_str()?.parse().ok()?;
            // Unreadable means another user's, a zombie's environment is empty: neither is
            // ours to kill.
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment
                .split(|byte| *byte == 0)
                .any(|variable| is_wanted(variable) == Some(true))
                .then(|| rustix::process::Pid::from_raw(id))?
        })
        .collect()
}
