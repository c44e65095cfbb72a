//! Circuit breaker of one model at one address, and the pauses that its server asks for.
//!
//! After several requests in a row have failed, nothing is sent for a while: callers wait,
//! then one tries, and the others follow if it is answered. A server that is really gone is
//! not waited for without end: after some failed trials callers are told so at once. The
//! failures of one request count once, however often it is repeated, and those of requests
//! that were in flight together are one event; so neither one bad prompt nor one dropped
//! connection pool opens it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Failures in a row that open it.
const THRESHOLD: u32 = 5;
/// How long it stays open the first time; doubled at each failed trial.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest it stays open while callers wait for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The longest it stays open when nobody waits for it any more.
const LONGEST_PAUSE_DOWN: Duration = Duration::from_secs(60);
/// Failed trials in a row after which nobody waits any more: half a minute.
const MOST_TRIALS: u32 = 6;
/// Callers wait at least so long, however short their own time is: a server restarts in that.
const LEAST_PATIENCE: Duration = Duration::from_secs(30);
/// As good as for ever.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
    /// The queue of those who wait: whoever holds it tries first.
    line: tokio::sync::Mutex<()>,
    /// Told when a trial has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Whether anything ever answered there, if only with an error.
    reached: bool,
    failures: u32,
    last_failure: Option<Instant>,
    open: Option<Open>,
    trial: bool,
    frozen_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: Instant,
    until: Instant,
    failed_trials: u32,
}

/// Why nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shut {
    /// The server fails; the next trial is so far off.
    Down(Duration),
    /// The server asks for a pause that is longer than anyone should wait.
    Paused(Duration),
}

enum Look<'a> {
    Go(Admission<'a>),
    Down(Duration),
    Frozen(Instant),
    Wait(Instant),
}

impl Open {
    /// When a caller of this patience waits no more.
    fn given_up(&self, patience: Duration) -> Instant {
        let patience = patience.clamp(LEAST_PATIENCE, FAR);
        self.since + patience
    }
}

impl Breaker {
    /// Leave to send one request, once there is: after the pauses that the server asked for,
    /// as far as `pauses` lasts (what was waited is taken off it), and while it fails, for
    /// `patience` from the first failure on.
    ///
    /// # Errors
    /// [`Shut`], where waiting is no use.
    pub(super) async fn admit(
        &self,
        patience: Duration,
        pauses: &mut Duration,
    ) -> Result<Admission<'_>, Shut> {
        // The usual case takes no place in the line.
        if self.lock().is_clear(Instant::now()) {
            return Ok(Admission { breaker: self, sent: Instant::now(), trial: false });
        }
        let entered = Instant::now();
        let _head = self.line.lock().await;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listening before looking, so that no trial ends in between.
            changed.as_mut().enable();
            let until = match self.look(patience) {
                Look::Go(admission) => {
                    *pauses = pauses.saturating_sub(entered.elapsed());
                    return Ok(admission);
                }
                Look::Down(pause) => return Err(Shut::Down(pause)),
                Look::Frozen(until) => {
                    let pause = until.saturating_duration_since(Instant::now());
                    if pause > pauses.saturating_sub(entered.elapsed()) {
                        return Err(Shut::Paused(pause));
                    }
                    until
                }
                Look::Wait(until) => until,
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = changed => {}
            }
        }
    }

    /// Nothing is sent before `until`: the server asked for it.
    pub(super) fn freeze(&self, until: Instant) {
        let mut state = self.lock();
        state.frozen_until = state.frozen_until.max(Some(until));
    }

    /// Whether anything ever answered there.
    pub(super) fn was_reached(&self) -> bool {
        self.lock().reached
    }

    fn look(&self, patience: Duration) -> Look<'_> {
        let now = Instant::now();
        let mut state = self.lock();
        if let Some(until) = state.frozen_until.filter(|until| now < *until) {
            return Look::Frozen(until);
        }
        state.frozen_until = None;
        let Some(open) = state.open else {
            return Look::Go(Admission { breaker: self, sent: now, trial: false });
        };
        if now >= open.until && !state.trial {
            state.trial = true;
            return Look::Go(Admission { breaker: self, sent: now, trial: true });
        }
        let given_up = open.given_up(patience);
        // Nobody waits for a server that was never there.
        if !state.reached || open.failed_trials >= MOST_TRIALS || now >= given_up {
            return Look::Down(open.until.saturating_duration_since(now));
        }
        Look::Wait(if state.trial { given_up } else { open.until.min(given_up) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_clear(&self, now: Instant) -> bool {
        self.open.is_none() && self.frozen_until.is_none_or(|until| until <= now)
    }
}

/// Leave to send one request. Dropped without a word, it says nothing about the server.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    breaker: &'a Breaker,
    sent: Instant,
    trial: bool,
}

impl Admission<'_> {
    /// Whether the leave still holds, now that the request is about to be sent.
    pub(super) fn holds(&mut self) -> bool {
        self.sent = Instant::now();
        self.trial || self.breaker.lock().is_clear(self.sent)
    }

    /// Whether this request finds out if the server is back.
    pub(super) fn is_trial(&self) -> bool {
        self.trial
    }

    /// The server answered, whatever it said.
    pub(super) fn answered(self) {
        let mut state = self.breaker.lock();
        state.reached = true;
        // An answer to a request from before the failures says nothing about now.
        if self.trial || state.open.is_none() {
            state.failures = 0;
            state.last_failure = None;
            state.open = None;
        }
    }

    /// The server could not be reached (`reached` is false) or failed. A request that was
    /// counted before is not counted again, except as a trial. Says whether it was counted.
    pub(super) fn failed(self, reached: bool, counted: bool) -> bool {
        let now = Instant::now();
        let mut state = self.breaker.lock();
        state.reached |= reached;
        if self.trial {
            if let Some(open) = &mut state.open {
                open.failed_trials = open.failed_trials.saturating_add(1);
                let longest = if open.failed_trials < MOST_TRIALS {
                    LONGEST_PAUSE
                } else {
                    LONGEST_PAUSE_DOWN
                };
                let pause = FIRST_PAUSE.saturating_mul(1 << open.failed_trials.min(10));
                open.until = now + pause.min(longest);
            }
            return true;
        }
        let same_event = state.last_failure.is_some_and(|last| self.sent < last);
        if counted || same_event || state.open.is_some() {
            return counted;
        }
        state.failures += 1;
        state.last_failure = Some(now);
        if state.failures >= THRESHOLD {
            state.open = Some(Open { since: now, until: now + FIRST_PAUSE, failed_trials: 0 });
        }
        true
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.trial {
            self.breaker.lock().trial = false;
            self.breaker.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::{advance, sleep};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(120);

    async fn admit(breaker: &Breaker) -> Result<Admission<'_>, Shut> {
        breaker.admit(PATIENCE, &mut PATIENCE.clone()).await
    }

    async fn fail_in_a_row(breaker: &Breaker, times: u32, reached: bool) {
        for _ in 0..times {
            admit(breaker).await.unwrap().failed(reached, false);
            advance(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_callers_wait_for_the_trial_that_closes_it() {
        let breaker = Arc::new(Breaker::default());
        fail_in_a_row(&breaker, THRESHOLD - 1, true).await;
        admit(&breaker).await.unwrap().answered();
        fail_in_a_row(&breaker, THRESHOLD, true).await;
        let start = Instant::now();
        let trial = admit(&breaker).await.unwrap();
        assert!(trial.is_trial());
        assert!(start.elapsed() <= FIRST_PAUSE && start.elapsed() > FIRST_PAUSE / 2);
        let others: Vec<_> = (0..20)
            .map(|_| {
                let breaker = breaker.clone();
                tokio::spawn(async move { admit(&breaker).await.map(|a| a.is_trial()) })
            })
            .collect();
        sleep(Duration::from_secs(1)).await;
        assert!(others.iter().all(|other| !other.is_finished()), "one trial at a time");
        trial.answered();
        for other in others {
            assert_eq!(other.await.unwrap(), Ok(false));
        }
        assert!(start.elapsed() < Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn after_enough_failed_trials_nobody_waits_and_an_abandoned_trial_frees_its_place() {
        let breaker = Breaker::default();
        fail_in_a_row(&breaker, THRESHOLD, true).await;
        drop(admit(&breaker).await.unwrap());
        let start = Instant::now();
        for _ in 0..MOST_TRIALS {
            let trial = admit(&breaker).await.unwrap();
            assert!(trial.is_trial());
            trial.failed(true, true);
        }
        assert!(start.elapsed() >= Duration::from_secs(25), "{:?}", start.elapsed());
        assert!(start.elapsed() <= Duration::from_secs(40), "{:?}", start.elapsed());
        let before = Instant::now();
        let shut = admit(&breaker).await.unwrap_err();
        assert_eq!((shut, before.elapsed()), (Shut::Down(LONGEST_PAUSE_DOWN), Duration::ZERO));
        advance(LONGEST_PAUSE_DOWN).await;
        admit(&breaker).await.unwrap().answered();
        assert!(!admit(&breaker).await.unwrap().is_trial());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_hangs_is_not_waited_for_longer_than_patience() {
        let breaker = Breaker::default();
        fail_in_a_row(&breaker, THRESHOLD, true).await;
        let _hanging = admit(&breaker).await.unwrap();
        let start = Instant::now();
        assert!(matches!(admit(&breaker).await, Err(Shut::Down(_))));
        assert!(start.elapsed() <= PATIENCE && start.elapsed() > PATIENCE / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_was_never_there_is_not_waited_for() {
        let breaker = Breaker::default();
        fail_in_a_row(&breaker, THRESHOLD, false).await;
        let start = Instant::now();
        assert!(matches!(admit(&breaker).await, Err(Shut::Down(_))));
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!(!breaker.was_reached());
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_counts_once_however_often_it_fails() {
        let breaker = Breaker::default();
        let mut counted = false;
        for _ in 0..50 {
            counted = admit(&breaker).await.unwrap().failed(true, counted);
            advance(Duration::from_millis(1)).await;
        }
        assert!(counted);
        assert!(!admit(&breaker).await.unwrap().is_trial());
        assert_eq!(breaker.lock().failures, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_fail_together_are_one_event() {
        let breaker = Breaker::default();
        let mut wave = Vec::new();
        for _ in 0..100 {
            wave.push(admit(&breaker).await.unwrap());
        }
        for admission in wave {
            advance(Duration::from_millis(1)).await;
            admission.failed(true, false);
        }
        assert!(breaker.lock().open.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_waited_for_and_one_beyond_measure_is_not() {
        let breaker = Breaker::default();
        breaker.freeze(Instant::now() + Duration::from_secs(125));
        let mut early = Admission { breaker: &breaker, sent: Instant::now(), trial: false };
        assert!(!early.holds(), "leave from before the pause does not hold");
        let start = Instant::now();
        let mut pauses = Duration::from_secs(240);
        breaker.admit(PATIENCE, &mut pauses).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 125);
        // Timers are exact to a millisecond.
        assert!(pauses <= Duration::from_secs(115) && pauses > Duration::from_secs(114));
        breaker.freeze(Instant::now() + Duration::from_secs(116));
        let shut = breaker.admit(PATIENCE, &mut pauses).await.unwrap_err();
        assert_eq!(shut, Shut::Paused(Duration::from_secs(116)));
        assert_eq!(start.elapsed().as_secs(), 125);
    }
}
