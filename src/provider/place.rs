//! Places among the measurements in flight.
//!
//! A measurement holds a place from its start to its verdict, so a crash loses no more than the
//! calls in flight. Where there are many, one exception keeps a fast server busy: while a
//! reply that has come in is written to disk, the next measurement may begin. What is on its
//! way to the disk is bounded too: as many as there are places.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places from which on some are lent.
const MANY: usize = 64;

/// The places of a run. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Places {
    asking: Arc<Semaphore>,
    keeping: Arc<Semaphore>,
}

impl Places {
    /// So many places; at least one.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let count = count.max(1);
        let keeping = if count < MANY { 0 } else { count };
        Self { asking: Arc::new(Semaphore::new(count)), keeping: Arc::new(Semaphore::new(keeping)) }
    }

    /// Waits for a place; `None` when they are closed.
    pub async fn take(&self) -> Option<Place> {
        let permit = self.asking.clone().acquire_owned().await.ok()?;
        Some(Place { places: self.clone(), permit: Arc::new(Mutex::new(Some(permit))) })
    }

    /// Lets what is in flight end, and nothing begin.
    pub fn close(&self) {
        self.asking.close();
    }

    /// Whether nothing may begin any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.asking.is_closed()
    }
}

/// A measurement's place; free for others when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Place {
    places: Places,
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Place {
    /// Lets another measurement begin while a reply is written to disk, as long as not too
    /// many are; the guard is to be held until it is written.
    pub(super) fn lend(&self) -> Option<OwnedSemaphorePermit> {
        let keeping = self.places.keeping.clone().try_acquire_owned().ok()?;
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some(keeping)
    }

    /// Whether it was lent and not regained.
    pub(super) fn is_lent(&self) -> bool {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Waits for a place again where this one was lent: a measurement may ask several times.
    /// When they are closed the measurement still goes on: it began before.
    pub(super) async fn regain(&self) {
        let permit = self.places.asking.clone().acquire_owned().await.ok();
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn all(places: &Places, count: usize) -> Vec<Place> {
        (0..count).map(|_| places.take().now_or_never().flatten().unwrap()).collect()
    }

    #[test]
    fn few_places_are_never_lent() {
        let places = Places::new(MANY - 1);
        let held = all(&places, MANY - 1);
        assert!(held.iter().all(|place| place.lend().is_none()));
        assert!(places.take().now_or_never().is_none());
    }

    #[test]
    fn a_lent_place_is_taken_by_another_and_regained_later() {
        let places = Places::new(MANY);
        let held = all(&places, MANY);
        assert!(places.take().now_or_never().is_none(), "all are taken");
        let keeping: Vec<_> = held.iter().map(|own| own.lend().unwrap()).collect();
        let next = all(&places, MANY);
        assert!(next[0].lend().is_none(), "as many as there are places are on their way to disk");
        assert!(held[0].is_lent() && held[0].regain().now_or_never().is_none(), "it is taken");
        drop(keeping);
        assert!(next[0].lend().is_some());
        assert!(held[0].regain().now_or_never().is_some());
        assert!(places.take().now_or_never().is_none());
    }

    #[test]
    fn closed_places_begin_nothing_and_let_a_measurement_end() {
        let places = Places::new(MANY);
        let begun = places.take().now_or_never().flatten().unwrap();
        let _keeping = begun.lend();
        places.close();
        assert!(places.is_closed());
        assert!(places.take().now_or_never().unwrap().is_none());
        assert!(begun.regain().now_or_never().is_some());
    }
}
