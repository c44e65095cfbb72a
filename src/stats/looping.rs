//! What repeated checks do to error rates, and what a log of trajectories says about them.
//!
//! A trajectory is the scores of one task's checks in order, each with whether the work was
//! truly complete. A missing score accepts nothing and proves nothing. All rates are
//! carried as counts.

use serde::{Deserialize, Serialize};

use super::Estimate;
use super::distribution::ln_beta;
use super::interval::clopper_pearson;
use super::undefined::{Defined, Reason, require_unit, serialize_defined, undefined};

/// P(at least one false accept in `checks` independent checks) = `1 - (1-f)^K`.
///
/// # Errors
/// `out_of_range`, `not_finite`.
pub fn false_accept_independent(rate: f64, checks: u32) -> Defined {
    require_unit(&[rate])?;
    Ok(-(f64::from(checks) * (-rate).ln_1p()).exp_m1())
}

/// The same for exchangeable checks with intraclass correlation rho (beta-binomial):
/// `1 - B(a, b+K)/B(a, b)`, `a = f(1-rho)/rho`, `b = (1-f)(1-rho)/rho`. rho = 0 is
/// independence, rho = 1 gives f.
///
/// # Errors
/// `out_of_range` for f or rho outside \[0,1\], `not_finite`.
pub fn false_accept_correlated(rate: f64, correlation: f64, checks: u32) -> Defined {
    require_unit(&[rate, correlation])?;
    if checks == 0 || rate == 0.0 {
        return Ok(0.0);
    }
    if rate == 1.0 || correlation == 1.0 {
        return Ok(rate);
    }
    if correlation == 0.0 {
        return false_accept_independent(rate, checks);
    }
    let scale = (1.0 - correlation) / correlation;
    let (a, b) = (rate * scale, (1.0 - rate) * scale);
    if checks <= 10_000 {
        // The product of (b+i)/(a+b+i) keeps the digits that log-gamma differences lose.
        let log: f64 = (0..checks)
            .map(|i| {
                let i = f64::from(i);
                (-a / (a + b + i)).ln_1p()
            })
            .sum();
        return Ok(-log.exp_m1());
    }
    Ok(-(ln_beta(a, b + f64::from(checks)) - ln_beta(a, b)).exp_m1())
}

/// What a gate that retries up to `checks` times does, attempts being independent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryGate {
    /// P(accepted within K), `1 - (1-q)^K` with `q = pi s + (1-pi) f`.
    pub accept: f64,
    /// P(accepted and truly good).
    pub true_accept: f64,
    /// P(accepted and truly bad).
    pub false_accept: f64,
    /// P(truly bad | accepted) = `(1-pi) f / q`.
    pub false_acceptance_share: f64,
    /// Mean number of checks, `(1-(1-q)^K)/q`.
    pub expected_checks: f64,
}

/// The gate for attempts that succeed with probability `success`, judged with
/// `sensitivity` and `false_positive_rate`.
///
/// # Errors
/// `out_of_range`, `not_finite`; `zero_denominator` when nothing can ever be accepted.
pub fn retry_gate(
    success: f64,
    sensitivity: f64,
    false_positive_rate: f64,
    checks: u32,
) -> Defined<RetryGate> {
    require_unit(&[success, sensitivity, false_positive_rate])?;
    let good = success * sensitivity;
    let bad = (1.0 - success) * false_positive_rate;
    let q = good + bad;
    if q == 0.0 || checks == 0 {
        return undefined(Reason::ZeroDenominator);
    }
    let accept = false_accept_independent(q.min(1.0), checks)?;
    Ok(RetryGate {
        accept,
        true_accept: accept * (good / q),
        false_accept: accept * (bad / q),
        false_acceptance_share: bad / q,
        expected_checks: accept / q,
    })
}

/// One check of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The panel's key; `None` when the check gave no ruling.
    pub score: Option<f64>,
    /// Whether the work was truly complete at this check.
    pub complete: bool,
}

/// A task's checks in order.
pub type Trajectory = [Check];

/// The largest score over the incomplete checks, the one number a loop certificate needs:
/// a completed task stays completed, so the first accept is false iff this reaches the
/// threshold. `None` without an incomplete, scored check.
#[must_use]
pub fn largest_incomplete_score(trajectory: &Trajectory) -> Option<f64> {
    trajectory.iter().filter(|c| !c.complete).filter_map(|c| c.score).reduce(f64::max)
}

/// Whether completion, once reached, is kept: only then the largest incomplete score
/// decides; otherwise use a fixed-sequence test over thresholds.
#[must_use]
pub fn completion_is_absorbing(trajectory: &Trajectory) -> bool {
    trajectory.windows(2).all(|w| !w[0].complete || w[1].complete)
}

/// Counts of a replay at one threshold, stopping each trajectory at its first score at or
/// above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// Trajectories.
    pub n: u64,
    /// Trajectories accepted at some check.
    pub accepted: u64,
    /// Accepted at an incomplete check.
    pub false_accepted: u64,
    /// Accepted at a complete check.
    pub true_accepted: u64,
    /// Never complete at any check.
    pub never_complete: u64,
    /// Never complete, yet accepted.
    pub false_accepted_never_complete: u64,
    /// Accepted before the first completion, in trajectories that do complete.
    pub premature: u64,
    /// Complete at some check.
    pub completed: u64,
    /// Complete at some check and never accepted.
    pub missed: u64,
    /// Incomplete checks with a score.
    pub incomplete_checks: u64,
    /// Of those, scores at or above the threshold.
    pub incomplete_checks_accepted: u64,
}

impl Replay {
    /// Replays recorded trajectories at a threshold.
    #[must_use]
    pub fn at(trajectories: &[&Trajectory], threshold: f64) -> Self {
        let mut out = Self { n: trajectories.len() as u64, ..Self::default() };
        for checks in trajectories {
            let passes = |c: &&Check| c.score.is_some_and(|s| s >= threshold);
            let incomplete = || checks.iter().filter(|c| !c.complete && c.score.is_some());
            out.incomplete_checks += incomplete().count() as u64;
            out.incomplete_checks_accepted += incomplete().filter(passes).count() as u64;
            let completes = checks.iter().any(|c| c.complete);
            let accepted = checks.iter().position(|c| passes(&c));
            let (complete, never) = (u64::from(completes), u64::from(!completes));
            out.completed += complete;
            out.never_complete += never;
            let Some(at) = accepted else {
                out.missed += complete;
                continue;
            };
            out.accepted += 1;
            if checks[at].complete {
                out.true_accepted += 1;
            } else {
                out.false_accepted += 1;
                out.false_accepted_never_complete += never;
                let before_completion = !checks[..at].iter().any(|c| c.complete);
                out.premature += u64::from(completes && before_completion);
            }
        }
        out
    }

    /// The five rates with Clopper-Pearson intervals.
    #[must_use]
    pub fn estimands(&self, level: f64) -> LoopEstimands {
        let rate = |k: u64, n: u64| clopper_pearson(k, n, level);
        LoopEstimands {
            check_false_positive_rate: rate(
                self.incomplete_checks_accepted,
                self.incomplete_checks,
            ),
            trajectory_false_positive_rate: rate(
                self.false_accepted_never_complete,
                self.never_complete,
            ),
            premature_rate: rate(self.premature, self.completed),
            false_acceptance_share: rate(self.false_accepted, self.accepted),
            missed_rate: rate(self.missed, self.completed),
        }
    }
}

/// The five ways in which a loop's gate can be wrong. Check-level intervals treat checks as
/// independent, which checks of one task are not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoopEstimands {
    /// P(a check accepts | incomplete).
    #[serde(serialize_with = "serialize_defined")]
    pub check_false_positive_rate: Defined<Estimate>,
    /// P(false accept | the task is never complete within K).
    #[serde(serialize_with = "serialize_defined")]
    pub trajectory_false_positive_rate: Defined<Estimate>,
    /// P(accepted before the first completion | the task does complete).
    #[serde(serialize_with = "serialize_defined")]
    pub premature_rate: Defined<Estimate>,
    /// P(incomplete | accepted).
    #[serde(serialize_with = "serialize_defined")]
    pub false_acceptance_share: Defined<Estimate>,
    /// P(never accepted | the task does complete).
    #[serde(serialize_with = "serialize_defined")]
    pub missed_rate: Defined<Estimate>,
}

/// Whether a log can speak about `threshold`: a log recorded while accepting at
/// `logged_threshold` is censored above it and supports thresholds up to it only; `None`
/// means acceptance was disabled and every threshold is supported.
#[must_use]
pub fn log_supports(threshold: f64, logged_threshold: Option<f64>) -> bool {
    logged_threshold.is_none_or(|logged| threshold <= logged)
}

/// The window-minimum statistic of "accept after `window` consecutive passes": score i is
/// the least of the last `window` scores, missing until there are that many or when one of
/// them is missing.
#[must_use]
pub fn consecutive(trajectory: &Trajectory, window: usize) -> Vec<Check> {
    (0..trajectory.len())
        .map(|i| {
            let score = (window > 0 && i + 1 >= window)
                .then(|| &trajectory[i + 1 - window..=i])
                .and_then(|w| w.iter().map(|c| c.score).collect::<Option<Vec<f64>>>())
                .and_then(|w| w.into_iter().reduce(f64::min));
            Check { score, complete: trajectory[i].complete }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trajectory(rows: &[(Option<f64>, bool)]) -> Vec<Check> {
        rows.iter().map(|&(score, complete)| Check { score, complete }).collect()
    }

    #[test]
    fn correlation_moves_from_independence_to_one_check() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        near(
            false_accept_correlated(0.05, 1e-9, 10).unwrap(),
            false_accept_independent(0.05, 10).unwrap(),
        );
        near(false_accept_correlated(0.05, 1.0 - 1e-9, 10).unwrap(), 0.05);
        near(
            false_accept_correlated(0.05, 0.3, 20_000).unwrap(),
            1.0 - {
                let (a, b) = (0.05 * 0.7 / 0.3, 0.95 * 0.7 / 0.3);
                (0..20_000).map(|i| (b + f64::from(i)) / (a + b + f64::from(i))).product::<f64>()
            },
        );
        assert!(false_accept_independent(1.5, 3).is_err());
        assert_eq!(false_accept_independent(0.0, 3), Ok(0.0));
    }

    #[test]
    fn a_gate_that_accepts_nothing_is_undefined() {
        assert_eq!(retry_gate(0.0, 0.9, 0.0, 5).unwrap_err().reason, Reason::ZeroDenominator);
        let sure = retry_gate(1.0, 1.0, 0.0, 5).unwrap();
        assert_eq!((sure.accept, sure.expected_checks), (1.0, 1.0));
    }

    #[test]
    fn missing_scores_accept_nothing_and_empty_logs_have_no_rates() {
        let t = trajectory(&[(None, false), (None, true)]);
        let r = Replay::at(&[&t], 0.0);
        assert_eq!((r.accepted, r.missed, r.incomplete_checks), (0, 1, 0));
        let none = Replay::at(&[], 0.5).estimands(0.95);
        assert_eq!(none.missed_rate.unwrap_err().reason, Reason::NoData);
        assert_eq!(largest_incomplete_score(&t), None);
    }

    #[test]
    fn a_relapse_is_seen_and_its_false_accept_is_not_premature() {
        let t = trajectory(&[(Some(0.2), true), (Some(0.9), false)]);
        assert!(!completion_is_absorbing(&t));
        let r = Replay::at(&[&t], 0.5);
        assert_eq!((r.false_accepted, r.premature, r.missed), (1, 0, 0));
    }

    #[test]
    fn consecutive_passes_need_the_whole_window() {
        let t =
            trajectory(&[(Some(0.9), false), (Some(0.6), false), (None, false), (Some(0.8), true)]);
        let scores: Vec<_> = consecutive(&t, 2).iter().map(|c| c.score).collect();
        assert_eq!(scores, [None, Some(0.6), None, None]);
        assert!(consecutive(&t, 0).iter().all(|c| c.score.is_none()));
        assert!(log_supports(0.8, Some(0.8)) && !log_supports(0.9, Some(0.8)));
    }

    /// Never-complete trajectories of K checks whose scores share a task effect: score =
    /// sqrt(rho) task + sqrt(1 - rho) check. The true rate of a threshold t is that of the
    /// largest score, estimated on a large independent sample.
    #[test]
    fn the_trajectory_rule_keeps_its_promise_for_any_number_of_checks() {
        use crate::stats::certificate::{Threshold, certify_threshold};
        use crate::stats::distribution::normal_quantile;
        use crate::stats::draw::stream;
        use rand::RngExt;

        let (alpha, delta, n, repeats, truth) = (0.1, 0.1, 60usize, 400u64, 8000usize);
        for (series, (checks, rho)) in
            [(1, 0.0), (5, 0.5), (10, 0.8), (20, 0.0)].into_iter().enumerate()
        {
            let largest = |rng: &mut rand_chacha::ChaCha8Rng| {
                let mut draw = || normal_quantile(rng.random::<f64>().max(1e-12));
                let task = draw() * f64::sqrt(rho);
                (0..checks)
                    .map(|_| task + draw() * f64::sqrt(1.0 - rho))
                    .fold(f64::NEG_INFINITY, f64::max)
            };
            let mut rng = stream(1000 + series as u64, 0);
            let mut population: Vec<f64> = (0..truth).map(|_| largest(&mut rng)).collect();
            population.sort_unstable_by(f64::total_cmp);
            let mut violations = 0u32;
            for i in 1..=repeats {
                let mut rng = stream(1000 + series as u64, i);
                let bad: Vec<f64> = (0..n).map(|_| largest(&mut rng)).collect();
                if let Ok(Threshold::Certified { threshold, .. }) =
                    certify_threshold(&bad, &bad, alpha, delta)
                {
                    let above = truth - population.partition_point(|m| *m < threshold);
                    violations += u32::from(above as f64 / truth as f64 > alpha);
                }
            }
            let share = f64::from(violations) / repeats as f64;
            let ceiling = delta + 3.0 * (delta * (1.0 - delta) / repeats as f64).sqrt();
            assert!(share <= ceiling, "K {checks} rho {rho}: {share} above {ceiling}");
        }
    }

    proptest! {
        #[test]
        fn absorbing_completion_reduces_to_the_largest_incomplete_score(
            scores in prop::collection::vec(0u8..20, 1..10), done in 0usize..12, t in 0u8..20
        ) {
            let rows: Vec<Check> = scores
                .iter()
                .enumerate()
                .map(|(i, &s)| Check { score: Some(f64::from(s)), complete: i >= done })
                .collect();
            let replay = Replay::at(&[&rows], f64::from(t));
            let expected = largest_incomplete_score(&rows).is_some_and(|m| m >= f64::from(t));
            prop_assert_eq!(replay.false_accepted == 1, expected);
        }
    }
}
