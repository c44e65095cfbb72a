//! Pacing of one address: requests and tokens a minute, and requests in flight.
//!
//! Requests a minute and tokens a minute are taken together or not at all, first come first
//! served. The number in flight adapts as TCP's window does (Jacobson, 1988): halved when the
//! server is overloaded, doubled each round while it is far below what went well before, then
//! one more after each round of answers. All time is tokio's, so that tests can pause it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Requests in flight at most where nothing is configured.
const DEFAULT_IN_FLIGHT: u32 = 256;
/// The share of a minute's allowance that may be taken at once.
const BURST: f64 = 0.1;
const MINUTE: f64 = 60.0;

/// Limits of an address, as configured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub(super) in_flight: Option<u32>,
    pub(super) requests_per_minute: Option<u32>,
    pub(super) tokens_per_minute: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<State>,
    /// The queue: whoever holds it waits for room, the others wait for it, in order.
    line: tokio::sync::Mutex<()>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    in_flight: u32,
    /// Requests in flight at most, where that is configured.
    configured: Option<u32>,
    /// Requests in flight at most just now; a fraction grows to the next whole number.
    window: f64,
    /// Below this the window grows by one with each answer.
    threshold: f64,
    shrunk: Option<Instant>,
}

impl State {
    fn ceiling(&self) -> u32 {
        self.configured.unwrap_or(DEFAULT_IN_FLIGHT)
    }
}

/// A token bucket so small that no half-open minute ever sees more than the limit: a full
/// bucket and a minute's refill together are the limit.
#[derive(Debug)]
struct Bucket {
    limit: f64,
    capacity: f64,
    per_second: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    /// `unit` is the least amount that is ever taken.
    fn new(limit: f64, unit: f64) -> Self {
        let capacity = (limit * BURST).floor().max(unit);
        // The last unit of a full bucket is regained only after the minute has ended.
        let per_second = (limit - (capacity - unit)) / MINUTE;
        Self { limit, capacity, per_second, level: capacity, at: Instant::now() }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.capacity);
        self.at = now;
    }

    /// When there is room for `amount`; `None` when there is now. An amount larger than the
    /// bucket goes when the bucket is full, and leaves a debt.
    fn ready(&self, amount: f64, now: Instant) -> Option<Instant> {
        let lack = amount.min(self.capacity) - self.level;
        // Rounding must not make a wait of nothing.
        (lack > 1e-9).then(|| now + Duration::from_secs_f64((lack / self.per_second).max(1e-6)))
    }
}

/// What stands in the way now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A limit a minute has room then.
    Until(Instant),
    /// Too many in flight: until one of them ends.
    Place,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                requests: None,
                tokens: None,
                in_flight: 0,
                configured: None,
                window: f64::from(DEFAULT_IN_FLIGHT),
                threshold: 0.0,
                shrunk: None,
            }),
            line: tokio::sync::Mutex::new(()),
            freed: Notify::new(),
        }
    }

    /// Adds limits; of two, the tighter one holds.
    pub(super) fn tighten(&self, limits: Limits) {
        let mut state = self.lock();
        if let Some(in_flight) = limits.in_flight {
            let before = state.configured.unwrap_or(in_flight);
            state.configured = Some(before.min(in_flight).max(1));
            state.window = f64::from(state.ceiling());
        }
        fn tighter(bucket: &mut Option<Bucket>, limit: Option<f64>, unit: f64) {
            if let Some(limit) = limit
                && bucket.as_ref().is_none_or(|bucket| bucket.limit > limit)
            {
                *bucket = Some(Bucket::new(limit.max(unit), unit));
            }
        }
        tighter(&mut state.requests, limits.requests_per_minute.map(f64::from), 1.0);
        tighter(&mut state.tokens, limits.tokens_per_minute.map(|limit| limit as f64), 1.0);
    }

    /// Leave to send one request of about `tokens` tokens, when there is room: however long
    /// the limits that the user set make it wait.
    pub(super) async fn acquire(&self, tokens: u64) -> Permit<'_> {
        let _head = self.line.lock().await;
        loop {
            let until = match self.take(tokens as f64) {
                Ok(permit) => return permit,
                Err(Wait::Until(until)) => until,
                Err(Wait::Place) => {
                    self.freed.notified().await;
                    continue;
                }
            };
            tokio::select! {
                () = sleep_until(until) => {}
                () = self.freed.notified() => {}
            }
        }
    }

    fn take(&self, tokens: f64) -> Result<Permit<'_>, Wait> {
        let now = Instant::now();
        let mut guard = self.lock();
        let state = &mut *guard;
        if f64::from(state.in_flight) + 1.0 > state.window.max(1.0) {
            return Err(Wait::Place);
        }
        let mut wait: Option<Instant> = None;
        for (bucket, amount) in [(&mut state.requests, 1.0), (&mut state.tokens, tokens)] {
            let Some(bucket) = bucket else { continue };
            bucket.refill(now);
            wait = wait.max(bucket.ready(amount, now));
        }
        if let Some(until) = wait {
            return Err(Wait::Until(until));
        }
        if let Some(bucket) = &mut state.requests {
            bucket.level -= 1.0;
        }
        if let Some(bucket) = &mut state.tokens {
            bucket.level -= tokens;
        }
        state.in_flight += 1;
        Ok(Permit { pace: self, since: now, tokens })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to have one request in flight, until dropped.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    pace: &'a Pace,
    since: Instant,
    tokens: f64,
}

impl Permit<'_> {
    /// Nothing was sent after all.
    pub(super) fn unused(self) {
        let mut state = self.pace.lock();
        if let Some(bucket) = &mut state.requests {
            bucket.level = (bucket.level + 1.0).min(bucket.capacity);
        }
        if let Some(bucket) = &mut state.tokens {
            bucket.level = (bucket.level + self.tokens).min(bucket.capacity);
        }
    }

    /// The server answered; `tokens` is what it really took, where it says so.
    pub(super) fn answered(&self, tokens: Option<u64>) {
        let mut guard = self.pace.lock();
        let state = &mut *guard;
        let growth = if state.window < state.threshold { 1.0 } else { 1.0 / state.window.max(1.0) };
        state.window = (state.window + growth).min(f64::from(state.ceiling()));
        if let (Some(bucket), Some(tokens)) = (&mut state.tokens, tokens) {
            bucket.level = (bucket.level + self.tokens - tokens as f64).min(bucket.capacity);
        }
    }

    /// The server is overloaded. Requests that were in flight together shrink the window once.
    pub(super) fn overloaded(&self) {
        let mut state = self.pace.lock();
        if state.shrunk.is_none_or(|shrunk| self.since > shrunk) {
            state.threshold = state.window / 2.0;
            state.window = (state.window.min(f64::from(state.in_flight)) / 2.0).max(1.0);
            state.shrunk = Some(Instant::now());
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.pace.lock().in_flight -= 1;
        self.pace.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    fn limited(limits: Limits) -> Arc<Pace> {
        let pace = Pace::new();
        pace.tighten(limits);
        Arc::new(pace)
    }

    /// The times, in milliseconds, at which `n` requests of `tokens` tokens were let go.
    async fn departures(pace: &Arc<Pace>, n: usize, tokens: u64) -> Vec<u128> {
        let start = Instant::now();
        let mut times = Vec::new();
        for _ in 0..n {
            drop(pace.acquire(tokens).await);
            times.push(start.elapsed().as_millis());
        }
        times
    }

    fn most_in_a_minute(times: &[u128]) -> usize {
        (0..times.len())
            .map(|i| times[i..].iter().take_while(|time| **time < times[i] + 60_000).count())
            .max()
            .unwrap_or(0)
    }

    #[tokio::test(start_paused = true)]
    async fn no_minute_ever_sees_more_requests_than_the_limit() {
        for limit in [1u32, 2, 7, 60, 600] {
            let pace = limited(Limits { requests_per_minute: Some(limit), ..Limits::default() });
            let times = departures(&pace, limit as usize * 3 + 1, 1).await;
            assert!(most_in_a_minute(&times) <= limit as usize, "limit {limit}");
            // And the limit is made use of: three minutes' worth takes less than four.
            assert!(*times.last().unwrap() <= 4 * 60_000, "limit {limit}: {times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_minute_ever_sees_more_tokens_than_the_limit() {
        let pace = limited(Limits { tokens_per_minute: Some(10_000), ..Limits::default() });
        let times = departures(&pace, 60, 500).await;
        assert!(most_in_a_minute(&times) * 500 <= 10_000);
        assert!(*times.last().unwrap() <= 4 * 60_000, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_larger_than_the_bucket_still_goes_and_the_next_one_pays() {
        let pace = limited(Limits { tokens_per_minute: Some(1_000), ..Limits::default() });
        let times = departures(&pace, 2, 900).await;
        assert_eq!(times[0], 0);
        assert!(times[1] > 50_000, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn real_usage_gives_back_what_the_estimate_took_too_much() {
        let pace = limited(Limits { tokens_per_minute: Some(1_000), ..Limits::default() });
        let permit = pace.acquire(900).await;
        permit.answered(Some(10));
        drop(permit);
        let start = Instant::now();
        drop(pace.acquire(50).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_waited_for_and_what_was_not_sent_is_given_back() {
        let pace = limited(Limits { requests_per_minute: Some(1), ..Limits::default() });
        pace.acquire(1).await.unused();
        let start = Instant::now();
        departures(&pace, 1, 1).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(pace.acquire(1).await);
        assert!(start.elapsed() >= Duration::from_secs(59));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_in_flight_than_allowed_and_none_is_forgotten() {
        let pace = limited(Limits { in_flight: Some(3), ..Limits::default() });
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let tasks: Vec<_> = (0..50)
            .map(|i| {
                let (pace, now, most) = (pace.clone(), now.clone(), most.clone());
                tokio::spawn(async move {
                    let _permit = pace.acquire(1).await;
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep(Duration::from_millis(10 + i % 7)).await;
                    now.fetch_sub(1, Ordering::SeqCst);
                })
            })
            .collect();
        // Some give up while they wait; that must not strand the others.
        tasks[10].abort();
        tasks[49].abort();
        let done = futures::future::join_all(tasks).await;
        assert_eq!(done.iter().filter(|task| task.is_ok()).count(), 48);
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_halves_once_for_each_event_and_grows_back() {
        let pace = limited(Limits { in_flight: Some(16), ..Limits::default() });
        let window = || pace.lock().window;
        let mut permits = Vec::new();
        for _ in 0..16 {
            permits.push(pace.acquire(1).await);
        }
        for permit in permits.drain(..) {
            advance(Duration::from_millis(1)).await;
            permit.overloaded();
        }
        assert!((window() - 8.0).abs() < 1e-9);
        let mut rounds = 0;
        while window() < 16.0 {
            for _ in 0..window() as u32 {
                pace.acquire(1).await.answered(None);
            }
            rounds += 1;
        }
        assert!((8..=10).contains(&rounds), "{rounds}");
        for _ in 0..20 {
            advance(Duration::from_millis(1)).await;
            pace.acquire(1).await.overloaded();
        }
        assert!((window() - 1.0).abs() < 1e-9, "one request may always be in flight");
    }

    #[tokio::test(start_paused = true)]
    async fn one_overload_while_nearly_idle_is_soon_forgotten() {
        let pace = limited(Limits::default());
        pace.acquire(1).await.overloaded();
        let window = || pace.lock().window;
        assert!((window() - 1.0).abs() < 1e-9);
        for _ in 0..7 {
            for _ in 0..window() as u32 {
                pace.acquire(1).await.answered(None);
            }
        }
        assert!(window() >= 128.0, "{}", window());
    }
}
