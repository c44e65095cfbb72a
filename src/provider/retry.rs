//! How long to wait before asking again: exponential with jitter, and never less where the
//! server asks for less.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Requests sent at most for failures that are not a rate limit; a rate limit is waited out
/// until the deadline.
pub(super) const MAX_ATTEMPTS: u32 = 6;

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The waits of one call.
#[derive(Debug)]
pub(super) struct Waits(ExponentialBackoff);

impl Waits {
    pub(super) fn new() -> Self {
        Self(
            ExponentialBuilder::new()
                .with_min_delay(FIRST_DELAY)
                .with_max_delay(LONGEST_DELAY)
                .with_factor(2.0)
                .without_max_times()
                .build(),
        )
    }

    /// The next wait: evenly distributed from half the exponential one to the whole, so that
    /// callers that failed together do not come back together, and none comes back at once.
    pub(super) fn next(&mut self) -> Duration {
        self.0.next().unwrap_or(LONGEST_DELAY).mul_f64(0.5 + 0.5 * rand::random::<f64>())
    }

    /// The next wait where the server asked for one, which is kept: `Retry-After: 0` or a date
    /// that has passed must not become a request every millisecond.
    pub(super) fn after(&mut self, asked: Option<Duration>) -> Duration {
        self.next().max(asked.unwrap_or(Duration::ZERO))
    }
}

/// The wait that a server asks for: `retry-after-ms`, or `retry-after` in seconds or as a
/// date. A date that has passed is no wait; a value that can't be read is none given.
pub(super) fn asked_for(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|ms| seconds(ms, 1e-3)) {
        return Some(wait);
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Some(wait) = seconds(value, 1.0) {
        return Some(wait);
    }
    let second = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_second();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(second).unwrap_or(0));
    Some(at.duration_since(now).unwrap_or(Duration::ZERO))
}

fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    if number.is_nan() {
        return None;
    }
    // More than a Duration holds is still a wait: the longest there is.
    Some(Duration::try_from_secs_f64((number * unit).max(0.0)).unwrap_or(Duration::MAX))
}

/// The wait in a Gemini error's details: `"retryDelay": "34.5s"`.
pub(super) fn asked_for_in_body(body: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("\"retryDelay\"")?;
    let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    seconds(value.split_once("s\"")?.0, 1.0)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn asked(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        asked_for(&headers, now)
    }

    #[test]
    fn every_form_of_the_header_is_read() {
        assert_eq!(asked("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(asked("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        let date = "Sun, 06 Nov 1994 08:50:07 GMT";
        assert_eq!(asked("retry-after", date), Some(Duration::from_secs(30)));
        assert_eq!(asked("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(asked("retry-after", "-3"), Some(Duration::ZERO));
        assert_eq!(asked("retry-after", "1e300"), Some(Duration::MAX));
        for nonsense in ["soon", "", "NaN", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(asked("retry-after", nonsense), None, "{nonsense}");
        }
        let body = br#"{"error":{"details":[{"retryDelay" : "34.5s"}]}}"#;
        assert_eq!(asked_for_in_body(body), Some(Duration::from_millis(34_500)));
        assert_eq!(asked_for_in_body(b"{}"), None);
    }

    #[test]
    fn a_server_can_ask_for_more_than_the_usual_wait_and_never_for_less() {
        for asked in [None, Some(Duration::ZERO), Some(Duration::from_millis(1))] {
            let mut waits = Waits::new();
            let total: Duration = (0..6).map(|_| waits.after(asked)).sum();
            assert!(total >= Duration::from_millis(15_750), "{asked:?} {total:?}");
        }
        let long = Duration::from_secs(90);
        assert_eq!(Waits::new().after(Some(long)), long);
    }

    #[test]
    fn waits_grow_and_are_never_longer_than_the_longest() {
        let longest: Vec<Duration> = (0..12)
            .map(|n| {
                (0..200)
                    .map(|_| {
                        let mut waits = Waits::new();
                        for _ in 0..n {
                            waits.next();
                        }
                        waits.next()
                    })
                    .max()
                    .unwrap()
            })
            .collect();
        assert!(longest[0] <= FIRST_DELAY && longest[0] > FIRST_DELAY / 2);
        assert!(longest[3] > FIRST_DELAY * 4 && longest[3] <= FIRST_DELAY * 8);
        assert!(longest.iter().all(|wait| *wait <= LONGEST_DELAY));
        assert!(longest[11] > LONGEST_DELAY / 2);
    }
}
