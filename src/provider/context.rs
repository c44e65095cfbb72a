//! What surrounds one measurement.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::ledger::Ledger;
use super::place::Place;
use super::replies::{NoReplies, ReplyStore};

/// What surrounds one measurement: which sample it is, until when, and what it may spend.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Which of the judge's samples this is, from 0; part of the key of a reply.
    pub sample: u32,
    /// No work goes on after this and the time in `held`; see [`CallContext::due`].
    pub deadline: Instant,
    /// The time spent waiting for one's own turn.
    pub held: Held,
    /// Fires when the user stops the run or the answer is not needed any more.
    pub cancel: CancellationToken,
    /// True to ask again even where a reply is kept (`--retry-errors`); the new one replaces
    /// it.
    pub fresh: bool,
    /// Where replies are kept.
    pub replies: Arc<dyn ReplyStore>,
    /// Money and tokens of the whole run.
    pub ledger: Arc<Ledger>,
    /// The place among the measurements in flight, where their number is limited.
    pub place: Option<Place>,
}

impl CallContext {
    /// A context that keeps nothing and has no limit but a deadline `timeout` from now.
    #[must_use]
    pub fn standalone(timeout: Duration) -> Self {
        Self {
            sample: 0,
            deadline: Instant::now() + timeout,
            held: Held::default(),
            cancel: CancellationToken::new(),
            fresh: false,
            replies: Arc::new(NoReplies),
            ledger: Arc::new(Ledger::default()),
            place: None,
        }
    }

    /// When work ends: the deadline, later by the time spent waiting for one's own turn. A
    /// limit of requests a minute must not make judges time out that were never asked.
    #[must_use]
    pub fn due(&self) -> Instant {
        let held = self.held.total();
        self.deadline.checked_add(held).unwrap_or(self.deadline)
    }

    /// Waits for one's own turn at a limit that the user set: as long as it takes, since the
    /// deadline waits too. `None` when stopped meanwhile.
    pub async fn in_turn<F: Future>(&self, turn: F) -> Option<F::Output> {
        let _holding = self.held.begin();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            output = turn => Some(output),
        }
    }

    /// Returns when [`CallContext::due`] has passed.
    pub async fn past_due(&self) {
        loop {
            let due = self.due();
            if Instant::now() >= due {
                return;
            }
            sleep_until(due).await;
        }
    }
}

/// The time that one measurement spends waiting for its turn at a limit that its own user
/// set, over all its calls; waits at the same time count once. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Held {
    state: Arc<Mutex<HeldState>>,
}

#[derive(Debug, Default)]
struct HeldState {
    ended: Duration,
    waiting: u32,
    since: Option<Instant>,
}

/// One wait; it ends when dropped.
#[derive(Debug)]
pub struct Holding {
    held: Held,
}

impl Held {
    /// Begins a wait.
    #[must_use]
    pub fn begin(&self) -> Holding {
        let mut state = self.lock();
        state.waiting += 1;
        state.since.get_or_insert_with(Instant::now);
        drop(state);
        Holding { held: self.clone() }
    }

    /// The time waited so far, a wait that goes on included.
    #[must_use]
    pub fn total(&self) -> Duration {
        let state = self.lock();
        state.ended + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, HeldState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let mut state = self.held.lock();
        state.waiting -= 1;
        if state.waiting == 0
            && let Some(since) = state.since.take()
        {
            state.ended += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_at_the_same_time_count_once_and_move_the_end() {
        let context = CallContext::standalone(Duration::from_secs(10));
        let started = Instant::now();
        let first = context.held.begin();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let second = context.held.begin();
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(context.held.total().as_secs(), 7, "a wait that goes on counts");
        drop(first);
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(second);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(context.held.total().as_secs(), 8);
        context.past_due().await;
        assert_eq!(started.elapsed().as_secs(), 18);
    }
}
