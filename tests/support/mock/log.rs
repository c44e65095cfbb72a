//! What was asked, by whom, and what became of it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::fault::Fault;
use super::lock;

/// Entries kept in full; the counts go on.
const KEPT: usize = 20_000;

/// One request.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) at_ms: u64,
    pub(crate) path: &'static str,
    pub(crate) model: String,
    pub(crate) body_hash: String,
    /// Whether a key was sent, in whatever way of the dialect.
    pub(crate) key_present: bool,
    /// Names of the headers, never their values.
    pub(crate) headers: Vec<String>,
    pub(crate) fault: Option<Value>,
    /// 0 until the response is on its way.
    pub(crate) status: u16,
    pub(crate) answered: bool,
    pub(crate) took_ms: u64,
}

#[derive(Debug)]
struct Book {
    started: Instant,
    entries: Vec<Entry>,
    /// By the hash of the body: how often asked, how often answered well.
    by_hash: HashMap<String, (u64, u64)>,
}

/// The requests of a server.
#[derive(Debug)]
pub(crate) struct Log {
    book: Mutex<Book>,
    requests: AtomicU64,
    in_flight: AtomicU64,
    most_in_flight: AtomicU64,
}

impl Default for Log {
    fn default() -> Self {
        let book = Book { started: Instant::now(), entries: Vec::new(), by_hash: HashMap::new() };
        Self {
            book: Mutex::new(book),
            requests: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            most_in_flight: AtomicU64::new(0),
        }
    }
}

impl Log {
    /// Requests to a model.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Requests that got an answer to keep.
    pub(crate) fn answered(&self) -> u64 {
        lock(&self.book).by_hash.values().map(|(_, answered)| answered).sum()
    }

    /// The most times that one and the same request got an answer to keep.
    pub(crate) fn most_answers_to_one(&self) -> u64 {
        lock(&self.book).by_hash.values().map(|(_, answered)| *answered).max().unwrap_or(0)
    }

    /// The most requests that were in work at once.
    pub(crate) fn most_in_flight(&self) -> u64 {
        self.most_in_flight.load(Ordering::Relaxed)
    }

    /// The requests in order of arrival.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        lock(&self.book).entries.clone()
    }

    pub(super) fn clear(&self) {
        let mut book = lock(&self.book);
        book.entries.clear();
        book.by_hash.clear();
        book.started = Instant::now();
        self.requests.store(0, Ordering::Relaxed);
        self.most_in_flight.store(0, Ordering::Relaxed);
    }

    pub(super) fn to_json(&self) -> Value {
        let book = lock(&self.book);
        let answered: u64 = book.by_hash.values().map(|(_, answered)| answered).sum();
        let most = book.by_hash.values().map(|(_, answered)| *answered).max().unwrap_or(0);
        let last = &book.entries[book.entries.len().saturating_sub(1_000)..];
        json!({
            "requests": self.requests(),
            "answered": answered,
            "distinct": book.by_hash.len(),
            "most_answers_to_one": most,
            "most_in_flight": self.most_in_flight(),
            "by_hash": book.by_hash.iter()
                .map(|(hash, (asked, answered))| {
                    (hash.clone(), json!({"asked": asked, "answered": answered}))
                })
                .collect::<serde_json::Map<_, _>>(),
            "entries": last,
        })
    }

    pub(super) fn arrive(
        &self,
        path: &'static str,
        body: &[u8],
        key_present: bool,
        headers: &HeaderMap,
    ) -> Visit<'_> {
        let hash = blake3::hash(body).to_hex()[..16].to_owned();
        self.requests.fetch_add(1, Ordering::Relaxed);
        let in_flight = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_in_flight.fetch_max(in_flight, Ordering::Relaxed);
        let mut book = lock(&self.book);
        let counts = book.by_hash.entry(hash.clone()).or_default();
        let seen = counts.0;
        counts.0 += 1;
        let at_ms = millis(book.started.elapsed());
        let index = (book.entries.len() < KEPT).then(|| {
            book.entries.push(Entry {
                at_ms,
                path,
                model: String::new(),
                body_hash: hash.clone(),
                key_present,
                headers: headers.keys().map(|name| name.as_str().to_owned()).collect(),
                fault: None,
                status: 0,
                answered: false,
                took_ms: 0,
            });
            book.entries.len() - 1
        });
        Visit { log: self, index, hash, seen }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A request in work. Dropped when it is done, and when the client hangs up.
pub(super) struct Visit<'a> {
    log: &'a Log,
    index: Option<usize>,
    hash: String,
    seen: u64,
}

impl Visit<'_> {
    /// How often the same body came before.
    pub(super) fn seen_before(&self) -> u64 {
        self.seen
    }

    pub(super) fn name_model(&self, model: &str) {
        self.edit(|entry| model.clone_into(&mut entry.model));
    }

    pub(super) fn name_fault(&self, fault: &Fault) {
        let value = serde_json::to_value(fault).ok();
        self.edit(|entry| entry.fault = value);
    }

    pub(super) fn leave(self, status: u16, answered: bool, took: Duration) {
        self.edit(|entry| {
            entry.status = status;
            entry.answered = answered;
            entry.took_ms = millis(took);
        });
        if answered && let Some(counts) = lock(&self.log.book).by_hash.get_mut(&self.hash) {
            counts.1 += 1;
        }
    }

    fn edit(&self, change: impl FnOnce(&mut Entry)) {
        if let Some(index) = self.index
            && let Some(entry) = lock(&self.log.book).entries.get_mut(index)
        {
            change(entry);
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.log.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
