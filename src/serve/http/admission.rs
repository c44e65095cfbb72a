//! Who is let in at a time: a bounded number of requests in the house, fewer in judgement.
//!
//! A request takes a place before its body is read, so memory is bounded by places times the
//! size of a body. When no place is left it is refused at once, with the time after which one
//! should be free, and nothing piles up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::fault::Fault;

/// The longest pause that a client is asked for.
const LONGEST: u64 = 60;

/// The counted places and slots.
#[derive(Debug)]
pub(super) struct Admission {
    /// Requests in the house: waiting and in judgement.
    places: Arc<Semaphore>,
    most_places: usize,
    /// Cases in judgement.
    slots: Arc<Semaphore>,
    most_slots: usize,
    /// The mean time of a judgement in microseconds, the newest counting most; 0 before the
    /// first.
    mean_us: AtomicU64,
}

/// A request's place; given up when dropped.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    _permit: OwnedSemaphorePermit,
}

/// A case's slot; given up, and its time noted, when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    admission: Arc<Admission>,
    started: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    pub(super) fn new(concurrency: usize, queue: usize) -> Arc<Self> {
        let most = Semaphore::MAX_PERMITS;
        let most_slots = concurrency.clamp(1, most);
        let most_places = most_slots.saturating_add(queue).min(most);
        Arc::new(Self {
            places: Arc::new(Semaphore::new(most_places)),
            most_places,
            slots: Arc::new(Semaphore::new(most_slots)),
            most_slots,
            mean_us: AtomicU64::new(0),
        })
    }

    /// A place, or a refusal at once.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Place, Fault> {
        match self.places.clone().try_acquire_owned() {
            Ok(permit) => Ok(Place { admission: self.clone(), _permit: permit }),
            Err(_) => Err(Fault::new(
                StatusCode::TOO_MANY_REQUESTS,
                "busy",
                format!("{} requests are in hand already: ask again later", self.most_places),
            )
            .after(self.retry_after())),
        }
    }

    /// Whether a place is free.
    pub(super) fn is_open(&self) -> bool {
        self.places.available_permits() > 0
    }

    /// Requests in the house.
    pub(super) fn entered(&self) -> usize {
        self.most_places - self.places.available_permits()
    }

    /// Cases in judgement.
    pub(super) fn judging(&self) -> usize {
        self.most_slots - self.slots.available_permits()
    }

    /// Seconds after which a place should be free: the time that those before one take.
    fn retry_after(&self) -> u64 {
        let rounds = self.entered().div_ceil(self.most_slots) as u64;
        let wait = self.mean_us.load(Ordering::Relaxed).saturating_mul(rounds);
        wait.div_ceil(1_000_000).clamp(1, LONGEST)
    }

    fn note(&self, time: Duration) {
        let new = (time.as_micros() as u64).max(1);
        let old = self.mean_us.load(Ordering::Relaxed);
        let mean = if old == 0 { new } else { (old * 7 + new) / 8 };
        self.mean_us.store(mean, Ordering::Relaxed);
    }
}

impl Place {
    /// A slot, once it is this case's turn.
    pub(super) async fn slot(&self, until: Instant) -> Result<Slot, Fault> {
        let admission = self.admission.clone();
        match tokio::time::timeout_at(until, admission.slots.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Slot { admission, started: Instant::now(), _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(Fault::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "the time for this case ran out before its turn came",
            )
            .after(admission.retry_after())),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.note(self.started.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn beyond_slots_and_queue_a_request_is_refused_with_the_time_to_wait() {
        let admission = Admission::new(2, 1);
        let soon = || Instant::now() + Duration::from_secs(5);
        let first = admission.enter().unwrap();
        let slot = first.slot(soon()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        drop(slot);
        let (_a, _b) = (first.slot(soon()).await.unwrap(), first.slot(soon()).await.unwrap());
        let (second, _third) = (admission.enter().unwrap(), admission.enter().unwrap());
        assert_eq!((admission.entered(), admission.judging()), (3, 2));
        let refused = admission.enter().unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        // Three requests by two at a time, four seconds each.
        assert_eq!(refused.retry_after, Some(8));
        let late = second.slot(soon()).await.unwrap_err();
        assert_eq!(late.status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(admission.is_open());
    }
}
