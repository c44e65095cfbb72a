//! The cost of a judge that tells it only with its answer, held to the run's limit.
//!
//! What a script or service will cost is not known before it is asked. Under a limit its first
//! case is asked alone; from then on the most that any of its answers has cost is set aside
//! before each further case. A judge that never tells a cost is never held up for long, and
//! never refused.

use std::sync::{Mutex, PoisonError};

use crate::provider::{CallContext, Held, Reservation, WorstCase};
use crate::verdict::{Status, Verdict};

/// US dollars beyond which an answer's cost is a slip: sums of such stay finite.
pub(crate) const MOST_USD: f64 = 1e6;

/// What one judge's answers have cost.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    /// The most that an answer has cost, once one has come in.
    most: Mutex<Option<f64>>,
    /// Held by the first case under a limit.
    first: tokio::sync::Mutex<()>,
}

impl Reported {
    /// Measures with `work`, and books what the verdict says that it cost. The context that
    /// `work` gets ends later by the time spent waiting here.
    pub(crate) async fn ask(
        &self,
        context: &CallContext,
        work: impl AsyncFnOnce(&CallContext) -> Verdict,
    ) -> Verdict {
        if context.ledger.limits().micro_dollars.is_none() {
            let verdict = work(context).await;
            if let Some(usd) = verdict.cost_usd {
                context.ledger.book_reported(usd);
            }
            return verdict;
        }
        let stopped = || Verdict::failed(Status::Cancelled, "stopped before it was asked");
        let mut alone = None;
        if self.most().is_none() {
            let Some(guard) = context.in_turn(self.first.lock()).await else { return stopped() };
            alone = self.most().is_none().then_some(guard);
        }
        let mut reservation = match self.reserve(context).await {
            None => return stopped(),
            Some(Err(over)) => return *over,
            Some(Ok(reservation)) => reservation,
        };
        let context =
            CallContext { deadline: context.due(), held: Held::default(), ..context.clone() };
        let verdict = work(&context).await;
        let usd = verdict.cost_usd.unwrap_or(0.0);
        reservation.spend_reported(usd);
        // A case that never ran tells nothing of what one costs.
        if verdict.cost_usd.is_some() || verdict.status == Status::Ok {
            let mut most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
            *most = Some(most.unwrap_or(0.0).max(usd));
        }
        drop(alone);
        verdict
    }

    fn most(&self) -> Option<f64> {
        *self.most.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets aside what a case may cost; `None` when stopped.
    async fn reserve(&self, context: &CallContext) -> Option<Result<Reservation, Box<Verdict>>> {
        let usd = self.most().unwrap_or(0.0);
        let worst =
            WorstCase { micro_dollars: Some((usd * 1e6).ceil() as u64), ..WorstCase::default() };
        let reserved = context.in_turn(context.ledger.reserve_in_turn(worst)).await?;
        Some(reserved.map_err(|_| {
            let totals = context.ledger.totals();
            let limit = context.ledger.limits().micro_dollars.unwrap_or(0) as f64 / 1e6;
            Box::new(Verdict {
                attempts: 0,
                ..Verdict::failed(
                    Status::Budget,
                    format!(
                        "the cost limit of ${limit} would be passed: ${} spent, and an answer of this judge has cost ${usd} (hint: raise the cost limit)",
                        totals.micro_dollars as f64 / 1e6
                    ),
                )
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::provider::{Ledger, LedgerLimits};
    use crate::score::Score;

    fn context(limit: Option<u64>) -> CallContext {
        let limits = LedgerLimits { micro_dollars: limit, ..LedgerLimits::default() };
        let ledger = Arc::new(Ledger::new(limits));
        CallContext { ledger, ..CallContext::standalone(Duration::from_secs(60)) }
    }

    async fn thirty(context: &CallContext, cost: Option<f64>) -> (Vec<Verdict>, u32) {
        let (reported, asked) = (Reported::default(), AtomicU32::new(0));
        let one = || {
            reported.ask(context, async |_: &CallContext| {
                asked.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                Verdict { cost_usd: cost, ..Verdict::ok(Score::ONE) }
            })
        };
        let verdicts = futures::future::join_all((0..30).map(|_| one())).await;
        (verdicts, asked.load(Ordering::SeqCst))
    }

    #[tokio::test(start_paused = true)]
    async fn no_case_is_asked_that_would_pass_the_limit_however_many_wait_at_once() {
        let context = context(Some(1_000_000));
        let (verdicts, asked) = thirty(&context, Some(0.5)).await;
        assert_eq!(asked, 2);
        let refused = verdicts.iter().filter(|v| v.status == Status::Budget).count();
        assert_eq!(refused, 28);
        let totals = context.ledger.totals();
        assert_eq!((totals.micro_dollars, totals.micro_dollars_reserved), (1_000_000, 0));
        assert_eq!((totals.spent_usd(), totals.calls_sent), (Some(1.0), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_judge_that_costs_nothing_is_never_refused() {
        for cost in [None, Some(0.0)] {
            let context = context(Some(0));
            assert_eq!(thirty(&context, cost).await.1, 30);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_costs_are_counted_all_the_same() {
        let context = context(None);
        assert_eq!(thirty(&context, Some(0.5)).await.1, 30);
        assert_eq!(context.ledger.totals().spent_usd(), Some(15.0));
        assert_eq!(context.ledger.totals().reported_usd, 15.0);
    }
}
