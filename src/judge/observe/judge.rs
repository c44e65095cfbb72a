//! Looks at every expectation of one case, at once and until its time is over.

use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use serde_json::json;
use tokio::time::Instant;

use super::{ObserveJudge, Ready, Seen, Target};
use crate::case::Case;
use crate::judge::Judge;
use crate::judge::process::plain;
use crate::provider::CallContext;
use crate::score::Score;
use crate::verdict::{CriterionScore, Fingerprint, Status, Verdict};

impl Judge for ObserveJudge {
    fn kind(&self) -> &'static str {
        "observe"
    }

    fn needs_output(&self) -> bool {
        false
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            // Before a receipt is opened, so that a case which was never looked at has none.
            if context.cancel.is_cancelled() {
                return Verdict::failed(Status::Cancelled, "stopped before observing");
            }
            match &self.receipts {
                None => self.bounded(case, context).await,
                Some(receipts) => match receipts.open(case, context.sample) {
                    Ok(receipt) => {
                        let verdict = self.bounded(case, context).await;
                        receipt.keep(verdict)
                    }
                    Err(verdict) => *verdict,
                },
            }
        })
    }
}

impl ObserveJudge {
    async fn bounded(&self, case: &Case, context: &CallContext) -> Verdict {
        let grace = Duration::from_millis(500);
        let last = context.deadline.checked_add(grace).unwrap_or(context.deadline);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                Verdict::failed(Status::Cancelled, "stopped while observing")
            }
            verdict = self.observe(case, context.deadline) => verdict,
            // Looks end by the deadline on their own; this holds against one that hangs.
            () = tokio::time::sleep_until(last) => {
                Verdict::failed(Status::Timeout, "still observing at the judge's deadline")
            }
        }
    }

    async fn observe(&self, case: &Case, deadline: Instant) -> Verdict {
        let start = Instant::now();
        let until = start.checked_add(self.within).unwrap_or(deadline).min(deadline);
        let looks = self.expectations.iter().map(|ready| self.poll(ready, case, until, deadline));
        let results = join_all(looks).await;
        let mut attempts = 1;
        let mut met_weight = 0.0;
        let mut criteria = Vec::new();
        let mut feedback = Vec::new();
        for (ready, (seen, looks)) in self.expectations.iter().zip(results) {
            attempts = attempts.max(looks);
            let (passed, said) = match seen {
                Seen::Met => (true, None),
                Seen::Unmet(found) => {
                    (false, Some(plain::strip(&format!("`{}` {found}", ready.name))))
                }
                Seen::Unable(why) => {
                    let detail = format!("`{}` can't be observed: {why}", ready.name);
                    let mut verdict = Verdict::failed(Status::ProviderError, detail);
                    verdict.attempts = looks;
                    return verdict;
                }
            };
            if passed {
                met_weight += ready.weight;
            }
            feedback.extend(said.clone());
            criteria.push(CriterionScore {
                name: ready.name.clone(),
                score: Some(if passed { Score::ONE } else { Score::ZERO }),
                raw: Some(json!(passed)),
                passed: Some(passed),
                required: ready.required,
                feedback: said,
            });
        }
        let whole: f64 = self.expectations.iter().map(|ready| ready.weight).sum();
        let mut verdict = match Score::share(met_weight, whole) {
            Ok(score) => Verdict::ok(score),
            Err(error) => return Verdict::failed(Status::Internal, error.to_string()),
        };
        verdict.criteria = criteria;
        verdict.feedback = feedback;
        verdict.attempts = attempts;
        verdict
    }

    /// Looks until the expectation is met or its time is over; the last look counts.
    async fn poll(
        &self,
        ready: &Ready,
        case: &Case,
        until: Instant,
        deadline: Instant,
    ) -> (Seen, u32) {
        let mut looks = 0;
        loop {
            looks += 1;
            let seen = match &ready.target {
                Target::Url(target) => target.look(&self.client, case, deadline).await,
                Target::Port(target) => target.look(deadline).await,
                Target::File(target) => target.look(case).await,
            };
            let next = Instant::now().checked_add(self.every).filter(|next| *next <= until);
            match next {
                Some(next) if seen != Seen::Met && !ready.once => {
                    tokio::time::sleep_until(next).await;
                }
                _ => return (seen, looks),
            }
        }
    }
}
