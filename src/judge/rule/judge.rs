//! The judge around a rule: identity, threads, and what becomes of a fault.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::super::{BoxedJudge, BuildContext, BuildError, Judge};
use super::RuleSpec;
use super::finding::{Check, Finding, Rule};
use crate::case::Case;
use crate::provider::CallContext;
use crate::score::Score;
use crate::text::SEGMENTATION;
use crate::verdict::{CriterionScore, Fingerprint, Status, Verdict};

/// Raised when any rule gives another score for the same options and case.
const RULE_VERSION: u32 = 2;

/// Text beyond which a case is judged on a thread of its own: below it a rule takes less time
/// than the hand-over, above it the runtime would stall.
const INLINE_BYTES: usize = 16 * 1024;

#[derive(Debug)]
struct RuleJudge {
    fingerprint: Fingerprint,
    rule: Arc<dyn Rule>,
}

pub(super) fn build(spec: &RuleSpec, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
    let rule = spec.compile(context, 0)?;
    let options = serde_json::to_value(spec)
        .map_err(|error| BuildError::invalid("rule", error.to_string()))?;
    let identity = json!({
        "version": RULE_VERSION,
        "segmentation": spec.counts_words().then_some(SEGMENTATION),
        "options": options,
        "beyond": rule.identity(),
    });
    let fingerprint = Fingerprint::of("rule", &identity);
    Ok(Arc::new(RuleJudge { fingerprint, rule: Arc::from(rule) }))
}

impl Judge for RuleJudge {
    fn kind(&self) -> &'static str {
        "rule"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn judge<'a>(&'a self, case: &'a Case, _: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            if case.text_bytes() <= INLINE_BYTES {
                return measure(self.rule.as_ref(), case);
            }
            let (rule, owned) = (Arc::clone(&self.rule), case.clone());
            match tokio::task::spawn_blocking(move || measure(rule.as_ref(), &owned)).await {
                Ok(verdict) => verdict,
                Err(error) if error.is_cancelled() => {
                    Verdict::failed(Status::Cancelled, "the runtime is shutting down")
                }
                Err(error) => Verdict::failed(Status::Internal, error.to_string()),
            }
        })
    }
}

fn measure(rule: &dyn Rule, case: &Case) -> Verdict {
    // A rule holds nothing that a panic could leave half-written.
    match catch_unwind(AssertUnwindSafe(|| rule.measure(case))) {
        Ok(Ok(finding)) => verdict(finding),
        Ok(Err(reason)) => Verdict::abstained(reason.0),
        Err(panic) => Verdict::failed(Status::Internal, panic_message(panic.as_ref())),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!("the rule panicked: {message}")
}

fn verdict(finding: Finding) -> Verdict {
    let criteria: Result<Vec<_>, _> = finding.checks.into_iter().map(criterion).collect();
    match (Score::from_arithmetic(finding.score), criteria) {
        (Ok(score), Ok(criteria)) => {
            let mut verdict = Verdict::ok(score);
            verdict.raw = finding.raw.or_else(|| Some(Value::from(finding.score)));
            verdict.criteria = criteria;
            verdict.feedback = finding.feedback;
            verdict.notes = finding.notes;
            verdict
        }
        (Err(error), _) | (_, Err(error)) => Verdict::failed(Status::Internal, error.to_string()),
    }
}

fn criterion(check: Check) -> Result<CriterionScore, crate::score::ScoreError> {
    Ok(CriterionScore {
        name: check.name,
        score: Some(Score::from_arithmetic(check.score)?),
        raw: check.raw,
        passed: Some(check.passed),
        required: check.required,
        feedback: check.feedback,
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::NotApplicable;
    use super::*;
    use std::time::Duration;

    #[derive(Debug)]
    struct Faulty(f64);

    impl Rule for Faulty {
        fn measure(&self, _: &Case) -> Result<Finding, NotApplicable> {
            if self.0 < 0.0 {
                panic!("planned fault");
            }
            Ok(Finding::new(self.0))
        }
    }

    fn judge(score: f64) -> RuleJudge {
        RuleJudge { fingerprint: Fingerprint::default(), rule: Arc::new(Faulty(score)) }
    }

    #[tokio::test]
    async fn a_panic_in_a_rule_is_internal_on_either_path() {
        let context = CallContext::standalone(Duration::from_secs(5));
        for length in [1, INLINE_BYTES + 1] {
            let case = Case::new("", "x".repeat(length));
            let verdict = judge(-1.0).judge(&case, &context).await;
            assert_eq!((verdict.status, verdict.score), (Status::Internal, None));
            assert!(verdict.detail.unwrap().contains("planned fault"));
        }
    }

    #[tokio::test]
    async fn a_number_that_is_no_score_is_internal_and_never_clamped() {
        let context = CallContext::standalone(Duration::from_secs(5));
        for wrong in [f64::NAN, 1.5, f64::INFINITY] {
            let verdict = judge(wrong).judge(&Case::new("", ""), &context).await;
            assert_eq!((verdict.status, verdict.score), (Status::Internal, None));
        }
    }
}
