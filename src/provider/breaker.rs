//! Circuit breaker of one address: after several failures in a row nothing is sent for a
//! while, then one request tries, and the others follow if it is answered.
//!
//! Failures of requests that were in flight together are one event, so that a single dropped
//! connection pool does not open it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row that open it.
const THRESHOLD: u32 = 5;
/// How long it stays open the first time; doubled at each failed trial.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest it stays open.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    last_failure: Option<Instant>,
    open_until: Option<Instant>,
    pauses: u32,
    trial: bool,
}

impl Breaker {
    /// Leave to send one request, or how long there is none.
    pub(super) fn admit(&self) -> Result<Admission<'_>, Duration> {
        let now = Instant::now();
        let mut state = self.lock();
        let Some(until) = state.open_until else {
            return Ok(Admission { breaker: self, sent: now, trial: false });
        };
        if now < until {
            return Err(until - now);
        }
        if state.trial {
            return Err(Duration::ZERO);
        }
        state.trial = true;
        Ok(Admission { breaker: self, sent: now, trial: true })
    }

    /// How long nothing is sent any more, where it is open. Takes no place.
    pub(super) fn pause(&self) -> Option<Duration> {
        let state = self.lock();
        let left = state.open_until?.saturating_duration_since(Instant::now());
        (state.trial || !left.is_zero()).then_some(left)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// The server answered, whatever it said.
    pub(super) fn answered(self) {
        let mut state = self.breaker.lock();
        // An answer to a request from before the failures says nothing about now.
        if self.trial || state.open_until.is_none() {
            *state = State::default();
        }
    }

    /// The server could not be reached, or failed.
    pub(super) fn failed(self) {
        let now = Instant::now();
        let mut state = self.breaker.lock();
        let same_event = state.last_failure.is_some_and(|last| self.sent < last);
        if !self.trial && (same_event || state.open_until.is_some()) {
            return;
        }
        state.failures += 1;
        state.last_failure = Some(now);
        if self.trial || state.failures >= THRESHOLD {
            let pause = FIRST_PAUSE.saturating_mul(1 << state.pauses.min(10)).min(LONGEST_PAUSE);
            state.open_until = Some(now + pause);
            state.pauses += 1;
        }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.trial {
            self.breaker.lock().trial = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    async fn fail_in_a_row(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.admit().unwrap().failed();
            advance(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_a_trial_closes_it() {
        let breaker = Breaker::default();
        fail_in_a_row(&breaker, THRESHOLD - 1).await;
        breaker.admit().unwrap().answered();
        fail_in_a_row(&breaker, THRESHOLD).await;
        assert!(breaker.admit().unwrap_err() <= FIRST_PAUSE);
        advance(FIRST_PAUSE).await;
        let trial = breaker.admit().unwrap();
        assert!(breaker.admit().is_err(), "one trial at a time");
        trial.answered();
        assert!(breaker.admit().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_trial_doubles_the_pause_and_an_abandoned_one_frees_its_place() {
        let breaker = Breaker::default();
        fail_in_a_row(&breaker, THRESHOLD).await;
        advance(FIRST_PAUSE).await;
        drop(breaker.admit().unwrap());
        breaker.admit().unwrap().failed();
        assert_eq!(breaker.admit().unwrap_err(), FIRST_PAUSE * 2);
        for _ in 0..10 {
            advance(LONGEST_PAUSE).await;
            breaker.admit().unwrap().failed();
        }
        assert_eq!(breaker.admit().unwrap_err(), LONGEST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_fail_together_are_one_event() {
        let breaker = Breaker::default();
        let wave: Vec<_> = (0..100).map(|_| breaker.admit().unwrap()).collect();
        for admission in wave {
            advance(Duration::from_millis(1)).await;
            admission.failed();
        }
        assert!(breaker.admit().is_ok());
    }
}
