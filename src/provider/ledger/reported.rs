//! Costs that a judge of the user's own tells with its answer: booked when they come in.
//!
//! No call to a model server is behind them, so none is counted.

use super::{Ledger, Reservation};

/// Millionths of a dollar, rounded up; what is beyond the books' numbers fills them.
fn micro_dollars(usd: f64) -> u64 {
    (usd * 1e6).ceil() as u64
}

impl Reservation {
    /// Books what an answer says that it cost. More than was set aside is booked in full: it
    /// was spent.
    pub(crate) fn spend_reported(&mut self, usd: f64) {
        let micro = micro_dollars(usd);
        self.ledger.book_reported(usd);
        let mut books = self.ledger.books();
        let given_back = micro.min(self.micro_dollars);
        books.micro_dollars_reserved = books.micro_dollars_reserved.saturating_sub(given_back);
        self.micro_dollars -= given_back;
    }
}

impl Ledger {
    /// Books what an answer says that it cost, where nothing was set aside for it. `usd` is
    /// finite and 0 or more.
    pub(crate) fn book_reported(&self, usd: f64) {
        let mut books = self.books();
        books.micro_dollars = books.micro_dollars.saturating_add(micro_dollars(usd));
        books.priced_usd += usd;
        books.reported_usd += usd;
    }
}
