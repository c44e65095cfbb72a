//! One flight a key: of identical requests at the same time one is sent, and the others take
//! its reply. When the one that flies fails or is given up, the next in line flies itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chat::ChatReply;
use super::context::CallContext;
use super::key::ReplyKey;

/// Requests share a flight when they have the same key, look in the same store and agree on
/// whether to look.
type FlightKey = (ReplyKey, usize, bool);

#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Mutex<HashMap<FlightKey, Arc<Slot>>>,
}

/// Holds the reply for those who wait. Whoever holds the lock of an empty one flies.
type Slot = tokio::sync::Mutex<Option<ChatReply>>;

impl Flights {
    pub(super) fn enter(&self, key: ReplyKey, context: &CallContext) -> Flight<'_> {
        let store = Arc::as_ptr(&context.replies).cast::<()>() as usize;
        let key = (key, store, context.fresh);
        let slot = Arc::clone(self.lock().entry(key).or_default());
        Flight { flights: self, key, slot }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FlightKey, Arc<Slot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place on a flight.
#[derive(Debug)]
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    key: FlightKey,
    pub(super) slot: Arc<Slot>,
}

impl Flight<'_> {
    /// Closes the flight to newcomers, who find the reply in the store. Says whether anyone
    /// waits for the reply.
    pub(super) fn close(&self) -> bool {
        let mut open = self.flights.lock();
        if open.get(&self.key).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot)) {
            open.remove(&self.key);
        }
        Arc::strong_count(&self.slot) > 1
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut open = self.flights.lock();
        // The map's and this one: nobody else is on it.
        if Arc::strong_count(&self.slot) == 2
            && open.get(&self.key).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot))
        {
            open.remove(&self.key);
        }
    }
}
