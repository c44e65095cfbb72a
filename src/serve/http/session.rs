//! Browsers that have signed in: a random name in a cookie, kept as its hash, in memory only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE as COOKIES;
use tokio::time::Instant;

/// The cookie's name.
pub(super) const COOKIE: &str = "venire";
/// How long a browser stays signed in.
pub(super) const LASTS: Duration = Duration::from_secs(12 * 3600);
/// Browsers at a time; the one that signed in first goes when there is one more.
const MOST: usize = 256;

/// The sessions of a server.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<blake3::Hash, Instant>>);

impl Sessions {
    fn known(&self) -> MutexGuard<'_, HashMap<blake3::Hash, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one, and gives its name.
    pub(super) fn begin(&self) -> String {
        let name = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
        let mut known = self.known();
        let now = Instant::now();
        known.retain(|_, until| *until > now);
        if known.len() >= MOST
            && let Some(oldest) = known.iter().min_by_key(|(_, until)| **until).map(|(own, _)| *own)
        {
            known.remove(&oldest);
        }
        known.insert(blake3::hash(name.as_bytes()), now + LASTS);
        name
    }

    /// Whether a request comes from a browser that is signed in.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(own) = name(headers) else { return false };
        self.known().get(&own).is_some_and(|until| *until > Instant::now())
    }

    /// Ends the session of a request.
    pub(super) fn end(&self, headers: &HeaderMap) {
        if let Some(own) = name(headers) {
            self.known().remove(&own);
        }
    }
}

fn name(headers: &HeaderMap) -> Option<blake3::Hash> {
    let cookies = headers.get_all(COOKIES).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, name) = pairs.find(|(name, _)| name.trim() == COOKIE)?;
    Some(blake3::hash(name.trim().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(cookie: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIES, cookie.parse().unwrap());
        headers
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_lasts_its_time_and_ends_when_asked() {
        let sessions = Sessions::default();
        let name = sessions.begin();
        assert_eq!(name.len(), 64);
        assert!(sessions.admits(&with(&format!("a=b; venire={name}"))));
        assert!(!sessions.admits(&with(&format!("venire={}", &name[1..]))));
        assert!(!sessions.admits(&HeaderMap::new()));
        let other = sessions.begin();
        sessions.end(&with(&format!("venire={other}")));
        assert!(!sessions.admits(&with(&format!("venire={other}"))));
        tokio::time::advance(LASTS).await;
        assert!(!sessions.admits(&with(&format!("venire={name}"))));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_browsers_are_kept() {
        let sessions = Sessions::default();
        let first = sessions.begin();
        for _ in 0..MOST {
            tokio::time::advance(Duration::from_secs(1)).await;
            sessions.begin();
        }
        assert_eq!(sessions.known().len(), MOST);
        assert!(!sessions.admits(&with(&format!("venire={first}"))));
    }
}
