//! Money, tokens and calls of a whole run.
//!
//! Before a call its worst case is reserved; after it the real usage is booked and the rest
//! given back. So a limit holds however many calls are in flight, at the price of refusing a
//! call that might have fitted. Money is in whole millionths of a dollar, rounded up.

mod reported;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::error::ProviderError;
use crate::verdict::{Status, Usage};

/// What a run may take at most; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerLimits {
    /// Millionths of a US dollar.
    pub micro_dollars: Option<u64>,
    /// Prompt and completion tokens together.
    pub tokens: Option<u64>,
    /// Requests sent, repeated ones included.
    pub calls: Option<u64>,
}

/// What a run has taken so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LedgerTotals {
    /// Millionths of a US dollar spent on calls that have a price, each rounded up.
    pub micro_dollars: u64,
    /// The same in US dollars, not rounded.
    pub priced_usd: f64,
    /// Of these, what judges of the user's own said that they cost.
    pub reported_usd: f64,
    /// Millionths of a US dollar reserved by calls in flight.
    pub micro_dollars_reserved: u64,
    /// Millionths of a US dollar at most of requests whose cost nobody tells: those that were
    /// sent and given up, and replies that could not be read. They count against a limit.
    pub micro_dollars_unknown: u64,
    /// Tokens at most of these requests.
    pub tokens_unknown: u64,
    /// How many of them there are, to models that cost something.
    pub calls_unknown: u64,
    /// Tokens of the calls that were answered; `calls` saturates.
    pub usage: Usage,
    /// Tokens reserved by calls in flight.
    pub tokens_reserved: u64,
    /// Requests sent, repeated and failed ones included.
    pub calls_sent: u64,
    /// Of these, requests to models without a price.
    pub calls_sent_unpriced: u64,
    /// Requests that a model answered. The others may have cost something that nobody tells.
    pub calls_answered: u64,
    /// Answered requests whose model has no price.
    pub calls_unpriced: u64,
    /// Replies that were found instead of asked for.
    pub cached_hits: u64,
}

impl LedgerTotals {
    /// Tokens of both directions.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.usage.tokens_in.saturating_add(self.usage.tokens_out)
    }

    /// Tokens of both directions at most: what is known, and what nobody tells.
    #[must_use]
    pub fn tokens_at_most(&self) -> u64 {
        self.tokens().saturating_add(self.tokens_unknown)
    }

    /// Millionths of a US dollar spent at most: what is known, and what nobody tells.
    #[must_use]
    pub fn micro_dollars_at_most(&self) -> u64 {
        self.micro_dollars.saturating_add(self.micro_dollars_unknown)
    }

    /// US dollars known to be spent; `None` where no call's cost is known, although some were
    /// made.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        let priced = self.calls_unpriced == 0 && self.calls_sent_unpriced == 0;
        let priced = priced && self.calls_unknown == 0;
        (priced || self.micro_dollars > 0).then(|| self.micro_dollars as f64 / 1e6)
    }

    /// US dollars spent in all; `None` where any call was made to a model without a price,
    /// answered or not, or where nobody tells what a call cost.
    #[must_use]
    pub fn spent_usd(&self) -> Option<f64> {
        let priced = self.calls_unpriced == 0 && self.calls_sent_unpriced == 0;
        let known = priced && self.calls_unknown == 0;
        known.then_some(self.priced_usd)
    }
}

/// The most that one call can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorstCase {
    /// Millionths of a US dollar; `None` where the model has no price.
    pub micro_dollars: Option<u64>,
    /// Prompt tokens: no tokenizer makes more tokens than there are bytes.
    pub tokens_in: u64,
    /// Completion tokens.
    pub tokens_out: u64,
}

/// Money and tokens of a whole run: reserved at the worst case before a call, then committed
/// or given back. The default has no limits and counts all the same.
#[derive(Debug, Default)]
pub struct Ledger {
    limits: LedgerLimits,
    totals: Mutex<LedgerTotals>,
    /// Told when a call gives back what it had set aside.
    freed: Notify,
}

impl Ledger {
    /// A ledger with limits.
    #[must_use]
    pub fn new(limits: LedgerLimits) -> Self {
        Self { limits, totals: Mutex::default(), freed: Notify::new() }
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> LedgerLimits {
        self.limits
    }

    /// What was taken so far.
    #[must_use]
    pub fn totals(&self) -> LedgerTotals {
        *self.books()
    }

    /// Sets aside what a call may take. Dropping the reservation gives back what of it was
    /// not spent.
    ///
    /// # Errors
    /// With status `budget` where it would not fit in a limit together with what is spent and
    /// reserved, or where there is a limit on money and the model has no price.
    pub fn reserve(self: &Arc<Self>, worst: WorstCase) -> Result<Reservation, ProviderError> {
        let tokens = worst.tokens_in.saturating_add(worst.tokens_out);
        let mut books = self.books();
        if let Some(limit) = self.limits.micro_dollars {
            let Some(cost) = worst.micro_dollars else {
                return Err(refused("there is a limit on cost, and the model has no price")
                    .hint("set `price` for the judge, with zeros if the model costs nothing"));
            };
            let spent = books.micro_dollars_at_most();
            let taken = spent.saturating_add(books.micro_dollars_reserved);
            if taken.saturating_add(cost) > limit {
                let unknown = match books.micro_dollars_unknown {
                    0 => String::new(),
                    micro => {
                        let micro = dollars(micro);
                        format!(" (up to ${micro} of it by calls that nobody told the cost of)")
                    }
                };
                return Err(refused(format!(
                    "the cost limit of ${} would be passed: ${} spent{unknown}, ${} reserved by \
                     calls in flight, and this call may cost ${}",
                    dollars(limit),
                    dollars(spent),
                    dollars(books.micro_dollars_reserved),
                    dollars(cost),
                ))
                .hint("raise the cost limit, or lower `max_tokens`"));
            }
        }
        if let Some(limit) = self.limits.tokens {
            let taken = books.tokens_at_most().saturating_add(books.tokens_reserved);
            if taken.saturating_add(tokens) > limit {
                return Err(refused(format!(
                    "the limit of {limit} tokens would be passed: {taken} are spent or reserved, \
                     and this call may take {tokens}"
                ))
                .hint("raise the token limit, or lower `max_tokens`"));
            }
        }
        self.check_calls(&books)?;
        let micro_dollars = worst.micro_dollars.unwrap_or(0);
        books.micro_dollars_reserved = books.micro_dollars_reserved.saturating_add(micro_dollars);
        books.tokens_reserved = books.tokens_reserved.saturating_add(tokens);
        let priced = worst.micro_dollars.is_some();
        let ledger = Arc::clone(self);
        Ok(Reservation {
            ledger,
            worst,
            micro_dollars,
            tokens,
            priced,
            outstanding: false,
            lost: false,
        })
    }

    /// As [`Ledger::reserve`], but where only what calls in flight have set aside stands in
    /// the way, waits for them to give some of it back.
    ///
    /// # Errors
    /// As [`Ledger::reserve`].
    pub async fn reserve_in_turn(
        self: &Arc<Self>,
        worst: WorstCase,
    ) -> Result<Reservation, ProviderError> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Listening before looking, so that what is given back in between is not missed.
            freed.as_mut().enable();
            match self.reserve(worst) {
                Err(_) if self.may_fit_later(worst) => freed.await,
                outcome => return outcome,
            }
        }
    }

    /// Whether the call would fit if every call in flight gave all back.
    fn may_fit_later(&self, worst: WorstCase) -> bool {
        let books = self.books();
        let tokens = worst.tokens_in.saturating_add(worst.tokens_out);
        let fits = |limit: Option<u64>, spent: u64, more: u64| {
            limit.is_none_or(|limit| spent.saturating_add(more) <= limit)
        };
        let reserved = books.micro_dollars_reserved > 0 || books.tokens_reserved > 0;
        let priced = worst.micro_dollars.is_some() || self.limits.micro_dollars.is_none();
        reserved
            && priced
            && fits(
                self.limits.micro_dollars,
                books.micro_dollars_at_most(),
                worst.micro_dollars.unwrap_or(0),
            )
            && fits(self.limits.tokens, books.tokens_at_most(), tokens)
            && self.check_calls(&books).is_ok()
    }

    /// Books what a call took that nothing was set aside for. It was spent, and so counts even
    /// beyond a limit.
    pub fn book(self: &Arc<Self>, usage: &Usage, micro_dollars: Option<u64>) {
        let ledger = Arc::clone(self);
        Reservation {
            ledger,
            worst: WorstCase::default(),
            micro_dollars: 0,
            tokens: 0,
            priced: true,
            outstanding: false,
            lost: false,
        }
        .spend(usage, micro_dollars);
    }

    /// Counts a reply that was found instead of asked for.
    pub fn count_cached(&self) {
        self.books().cached_hits += 1;
    }

    fn check_calls(&self, books: &LedgerTotals) -> Result<(), ProviderError> {
        match self.limits.calls {
            Some(limit) if books.calls_sent >= limit => {
                Err(refused(format!("the limit of {limit} calls is reached")))
            }
            _ => Ok(()),
        }
    }

    fn books(&self) -> MutexGuard<'_, LedgerTotals> {
        // Every change is whole before the lock is released, so a panic elsewhere leaves
        // nothing half-written.
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(message: impl Into<String>) -> ProviderError {
    ProviderError::new(Status::Budget, message)
}

fn dollars(micro: u64) -> String {
    format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

/// What one call has set aside.
#[derive(Debug)]
pub struct Reservation {
    ledger: Arc<Ledger>,
    worst: WorstCase,
    micro_dollars: u64,
    tokens: u64,
    priced: bool,
    /// A request is on its way of which nobody knows yet what it cost.
    outstanding: bool,
    /// What was set aside is gone: booked as spent at most.
    lost: bool,
}

impl Reservation {
    /// Sets aside the worst case once more, where an earlier request of the call has taken
    /// what was set aside with it.
    ///
    /// # Errors
    /// As [`Ledger::reserve`].
    pub fn renew(&mut self) -> Result<(), ProviderError> {
        if self.lost {
            *self = self.ledger.reserve(self.worst)?;
        }
        Ok(())
    }

    /// The request that was counted last cost nothing: it never arrived, or was refused.
    pub fn cost_nothing(&mut self) {
        self.outstanding = false;
    }

    /// Nobody tells what the request that was counted last cost: what was set aside stays
    /// spent, at most. Dropping the reservation while a request is on its way does the same.
    /// Says whether it may have cost anything.
    pub fn lose(&mut self) -> bool {
        let mut books = self.ledger.books();
        books.micro_dollars_reserved =
            books.micro_dollars_reserved.saturating_sub(self.micro_dollars);
        books.tokens_reserved = books.tokens_reserved.saturating_sub(self.tokens);
        books.micro_dollars_unknown =
            books.micro_dollars_unknown.saturating_add(self.micro_dollars);
        books.tokens_unknown = books.tokens_unknown.saturating_add(self.tokens);
        let may_have_cost = self.micro_dollars > 0 || !self.priced;
        books.calls_unknown += u64::from(may_have_cost);
        drop(books);
        (self.micro_dollars, self.tokens) = (0, 0);
        (self.outstanding, self.lost) = (false, true);
        may_have_cost
    }

    /// Counts a request that is about to be sent.
    ///
    /// # Errors
    /// With status `budget` where the limit on calls is reached.
    pub fn count_sent(&mut self) -> Result<(), ProviderError> {
        let mut books = self.ledger.books();
        self.ledger.check_calls(&books)?;
        books.calls_sent += 1;
        books.calls_sent_unpriced += u64::from(!self.priced);
        drop(books);
        self.outstanding = true;
        Ok(())
    }

    /// Books what an answered request cost, not rounded, beside [`Reservation::spend`].
    pub fn paid(&self, usd: f64) {
        self.ledger.books().priced_usd += usd;
    }

    /// Books what an answered request took; `micro_dollars` is `None` without a price. More
    /// than was reserved is booked in full: it was spent.
    pub fn spend(&mut self, usage: &Usage, micro_dollars: Option<u64>) {
        let mut books = self.ledger.books();
        books.calls_answered += 1;
        books.calls_unpriced += u64::from(micro_dollars.is_none());
        books.usage.tokens_in = books.usage.tokens_in.saturating_add(usage.tokens_in);
        books.usage.tokens_out = books.usage.tokens_out.saturating_add(usage.tokens_out);
        books.usage.tokens_cached = books.usage.tokens_cached.saturating_add(usage.tokens_cached);
        books.usage.tokens_reasoning =
            books.usage.tokens_reasoning.saturating_add(usage.tokens_reasoning);
        books.usage.calls = books.usage.calls.saturating_add(1);
        books.usage.estimated |= usage.estimated;
        books.micro_dollars = books.micro_dollars.saturating_add(micro_dollars.unwrap_or(0));
        // What is spent is not reserved any more.
        let cost = micro_dollars.unwrap_or(0).min(self.micro_dollars);
        let tokens = usage.tokens_in.saturating_add(usage.tokens_out).min(self.tokens);
        books.micro_dollars_reserved -= cost;
        books.tokens_reserved -= tokens;
        self.micro_dollars -= cost;
        self.tokens -= tokens;
        self.outstanding = false;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.outstanding {
            self.lose();
        }
        let mut books = self.ledger.books();
        books.micro_dollars_reserved =
            books.micro_dollars_reserved.saturating_sub(self.micro_dollars);
        books.tokens_reserved = books.tokens_reserved.saturating_sub(self.tokens);
        drop(books);
        self.ledger.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[tokio::test]
    async fn a_call_waits_for_what_others_have_set_aside_and_never_for_what_is_spent() {
        let limits = LedgerLimits { micro_dollars: Some(100), ..LedgerLimits::default() };
        let ledger = Arc::new(Ledger::new(limits));
        let worst = |micro_dollars| WorstCase {
            micro_dollars: Some(micro_dollars),
            ..WorstCase::default()
        };
        let mut first = ledger.reserve(worst(80)).unwrap();
        let waiting = tokio::spawn({
            let ledger = ledger.clone();
            async move { ledger.reserve_in_turn(worst(50)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        first.spend(&Usage::default(), Some(10));
        drop(first);
        waiting.await.unwrap().unwrap();
        let mut second = ledger.reserve(worst(80)).unwrap();
        second.spend(&Usage::default(), Some(60));
        let refused = ledger.reserve_in_turn(worst(50)).await.map(drop).unwrap_err();
        assert_eq!(refused.status, Status::Budget);
    }

    fn usage(tokens_in: u64, tokens_out: u64) -> Usage {
        Usage { tokens_in, tokens_out, calls: 1, ..Usage::default() }
    }

    fn worst(micro_dollars: u64, tokens: u64) -> WorstCase {
        WorstCase { micro_dollars: Some(micro_dollars), tokens_in: tokens, tokens_out: 0 }
    }

    #[test]
    fn a_dropped_reservation_gives_everything_back() {
        let ledger = Arc::new(Ledger::new(LedgerLimits {
            micro_dollars: Some(10),
            ..LedgerLimits::default()
        }));
        let reservation = ledger.reserve(worst(10, 5)).unwrap();
        let refusal = ledger.reserve(worst(1, 1)).unwrap_err();
        assert_eq!(refusal.status, Status::Budget);
        assert!(refusal.message.contains("$0.000010"), "{}", refusal.message);
        drop(reservation);
        assert_eq!(ledger.totals(), LedgerTotals::default());
        assert!(ledger.reserve(worst(10, 5)).is_ok());
    }

    #[test]
    fn what_was_spent_stays_spent_even_beyond_the_reservation() {
        let ledger = Arc::new(Ledger::default());
        let mut reservation = ledger.reserve(worst(10, 5)).unwrap();
        reservation.count_sent().unwrap();
        reservation.spend(&usage(8, 1), Some(12));
        drop(reservation);
        let totals = ledger.totals();
        assert_eq!((totals.micro_dollars, totals.tokens()), (12, 9));
        assert_eq!((totals.micro_dollars_reserved, totals.tokens_reserved), (0, 0));
        assert_eq!((totals.calls_sent, totals.calls_answered), (1, 1));
    }

    #[test]
    fn a_cost_limit_refuses_a_model_without_a_price() {
        let limits = LedgerLimits { micro_dollars: Some(1_000_000), ..LedgerLimits::default() };
        let ledger = Arc::new(Ledger::new(limits));
        let refusal = ledger.reserve(WorstCase::default()).unwrap_err();
        assert_eq!(refusal.status, Status::Budget);
        assert!(refusal.hint.unwrap().contains("price"));
    }

    #[test]
    fn repeated_requests_count_against_the_limit_on_calls() {
        let ledger =
            Arc::new(Ledger::new(LedgerLimits { calls: Some(2), ..LedgerLimits::default() }));
        let mut reservation = ledger.reserve(WorstCase::default()).unwrap();
        reservation.count_sent().unwrap();
        reservation.count_sent().unwrap();
        assert_eq!(reservation.count_sent().unwrap_err().status, Status::Budget);
        assert!(ledger.reserve(WorstCase::default()).is_err());
        assert_eq!(ledger.totals().calls_sent, 2);
    }

    #[test]
    fn a_request_that_nobody_told_the_cost_of_stays_spent_at_most_and_its_cost_is_unknown() {
        let limits = LedgerLimits { micro_dollars: Some(25), ..LedgerLimits::default() };
        let ledger = Arc::new(Ledger::new(limits));
        let mut given_up = ledger.reserve(worst(10, 5)).unwrap();
        given_up.count_sent().unwrap();
        drop(given_up);
        let totals = ledger.totals();
        assert_eq!((totals.micro_dollars, totals.micro_dollars_at_most()), (0, 10));
        assert_eq!((totals.micro_dollars_reserved, totals.tokens_at_most()), (0, 5));
        assert_eq!((totals.cost_usd(), totals.spent_usd()), (None, None));
        // A second request of a call sets its worst case aside anew, as far as there is room.
        let mut unread = ledger.reserve(worst(10, 5)).unwrap();
        unread.count_sent().unwrap();
        assert!(unread.lose());
        let refusal = unread.renew().unwrap_err();
        assert_eq!(refusal.status, Status::Budget);
        assert!(refusal.message.contains("nobody told"), "{}", refusal.message);
        drop(unread);
        assert_eq!(ledger.totals().micro_dollars_at_most(), 20);
        // What was refused, and what is free, cost nothing.
        let mut refused = ledger.reserve(worst(5, 5)).unwrap();
        refused.count_sent().unwrap();
        refused.cost_nothing();
        drop(refused);
        let free = Arc::new(Ledger::default());
        let mut given_up = free.reserve(worst(0, 5)).unwrap();
        given_up.count_sent().unwrap();
        drop(given_up);
        assert_eq!(ledger.totals().micro_dollars_at_most(), 20);
        assert_eq!(free.totals().spent_usd(), Some(0.0));
    }

    #[test]
    fn unknown_cost_is_not_zero_cost() {
        let ledger = Arc::new(Ledger::default());
        assert_eq!(ledger.totals().cost_usd(), Some(0.0));
        ledger.reserve(WorstCase::default()).unwrap().spend(&usage(1, 1), None);
        assert_eq!(ledger.totals().cost_usd(), None);
    }

    proptest! {
        #[test]
        fn no_order_of_threads_passes_the_limits(
            limit in 0u64..2_000,
            calls in prop::collection::vec((0u64..100, 0u64..100, any::<bool>()), 1..64),
        ) {
            let ledger = Arc::new(Ledger::new(LedgerLimits {
                micro_dollars: Some(limit),
                tokens: Some(limit),
                calls: None,
            }));
            let answered: u64 = std::thread::scope(|scope| {
                let threads: Vec<_> = calls
                    .chunks(16)
                    .map(|chunk| {
                        let ledger = Arc::clone(&ledger);
                        scope.spawn(move || {
                            let mut answered = 0;
                            for (cost, tokens, answers) in chunk {
                                let Ok(mut held) = ledger.reserve(worst(*cost, *tokens)) else {
                                    continue;
                                };
                                let totals = ledger.totals();
                                assert!(
                                    totals.micro_dollars + totals.micro_dollars_reserved <= limit
                                );
                                if *answers {
                                    held.spend(&usage(tokens / 2, 0), Some(cost / 2));
                                    answered += 1;
                                }
                            }
                            answered
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            let totals = ledger.totals();
            prop_assert!(totals.micro_dollars <= limit && totals.tokens() <= limit);
            prop_assert_eq!((totals.micro_dollars_reserved, totals.tokens_reserved), (0, 0));
            prop_assert_eq!(totals.calls_answered, answered);
        }
    }
}
