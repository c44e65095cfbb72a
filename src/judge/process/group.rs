//! The end of a child: its whole process group, and on Linux whatever left the group but
//! still carries its mark.
//!
//! A group is what `sh -c "a & b"` dies with. A program that starts a session of its own
//! leaves the group; it is found by a mark in its environment. One that also clears its
//! environment is out of reach without control groups, and this is said in the manual.

use std::time::Duration;

/// The environment variable that marks everything a child starts.
pub(crate) const MARK: &str = "VENIRE_PROCESS";

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
        Self {
            #[cfg(unix)]
            leader,
            mark,
            over: false,
        }
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
        let mark = self.mark.clone();
        let _ = tokio::task::spawn_blocking(move || kill_marked(&mark)).await;
        // SIGKILL can't be refused; a child stuck in the kernel is left to it.
        let _ = tokio::time::timeout(Duration::from_secs(5), child.wait()).await;
        self.over = true;
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
            kill_marked(&self.mark);
        }
    }
}

/// Kills every process that carries the mark in its environment, until there is none.
#[cfg(target_os = "linux")]
fn kill_marked(mark: &str) {
    // One that forks while it is looked for is found in the next round.
    for _ in 0..5 {
        let found = marked(mark);
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_: &str) {}

#[cfg(target_os = "linux")]
fn marked(mark: &str) -> Vec<rustix::process::Pid> {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let id: i32 = entry.file_name().to_str()?.parse().ok()?;
            // Unreadable means another user's, a zombie's environment is empty: neither is
            // ours to kill.
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
                .then(|| rustix::process::Pid::from_raw(id))?
        })
        .collect()
}
