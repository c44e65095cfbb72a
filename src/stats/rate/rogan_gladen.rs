//! Inverting a judge's error rates: Rogan-Gladen with its delta, Lee and bootstrap
//! intervals, and the allocation of labels between the classes.
//!
//! All are undefined for a judge no better than a coin (sensitivity + specificity <= 1).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::stats::bootstrap::{Resampling, percentile_estimate};
use crate::stats::distribution::normal_critical;
use crate::stats::draw::{binomial, stream};
use crate::stats::undefined::{Defined, Reason, require_open_unit, require_unit, undefined};
use crate::stats::{Estimate, Interval, Method};

/// What is known of a judge: its verdicts on all cases and its rates on labelled ones.
///
/// Rates rather than counts, because published error rates come without counts; use
/// [`JudgeCounts::from_counts`] where counts exist.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgeCounts {
    /// Share of all `judged` cases that the judge passed.
    pub pass_rate: f64,
    /// Judged cases.
    pub judged: u64,
    /// P(passed | truly good) on `labelled_good` cases.
    pub sensitivity: f64,
    /// P(failed | truly bad) on `labelled_bad` cases.
    pub specificity: f64,
    /// Labelled good cases.
    pub labelled_good: u64,
    /// Labelled bad cases.
    pub labelled_bad: u64,
}

impl JudgeCounts {
    /// From counts: passed of judged, and the labelled confusion.
    ///
    /// # Errors
    /// `no_data`, `bad_counts`, `no_positives`, `no_negatives`.
    pub fn from_counts(
        passed: u64,
        judged: u64,
        table: crate::stats::confusion::Confusion,
    ) -> Defined<Self> {
        if judged == 0 {
            return undefined(Reason::NoData);
        }
        if passed > judged {
            return undefined(Reason::BadCounts);
        }
        Ok(Self {
            pass_rate: passed as f64 / judged as f64,
            judged,
            sensitivity: table.true_positive_rate()?,
            specificity: table.true_negative_rate()?,
            labelled_good: table.positives(),
            labelled_bad: table.negatives(),
        })
    }

    fn check(&self) -> Defined<f64> {
        require_unit(&[self.pass_rate, self.sensitivity, self.specificity])?;
        if self.judged == 0 {
            return undefined(Reason::NoData);
        }
        if self.labelled_good == 0 {
            return undefined(Reason::NoPositives);
        }
        if self.labelled_bad == 0 {
            return undefined(Reason::NoNegatives);
        }
        youden(self.sensitivity, self.specificity)
    }
}

fn youden(sensitivity: f64, specificity: f64) -> Defined {
    let j = sensitivity + specificity - 1.0;
    if j <= 0.0 { undefined(Reason::YoudenNotPositive) } else { Ok(j) }
}

/// Rogan and Gladen's (1978) rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoganGladen {
    /// `(p + q0 - 1) / J`; outside \[0,1\] when the rates contradict the verdicts.
    pub raw: f64,
    /// `raw` cut to \[0,1\].
    pub clipped: f64,
    /// Delta variance of `raw`.
    pub variance: f64,
    /// Normal interval around `raw`, not clipped.
    pub interval: Interval,
}

/// `theta = (p + q0 - 1)/J`,
/// `V = [p(1-p)/N + (1-theta)^2 q0(1-q0)/m0 + theta^2 q1(1-q1)/m1]/J^2`.
///
/// # Errors
/// `youden_not_positive` (J <= 0), `no_positives`, `no_negatives`, `no_data`,
/// `out_of_range`, `not_finite`.
pub fn rogan_gladen(judge: &JudgeCounts, level: f64) -> Defined<RoganGladen> {
    require_open_unit(level)?;
    let j = judge.check()?;
    let (p, q1, q0) = (judge.pass_rate, judge.sensitivity, judge.specificity);
    let raw = (p + q0 - 1.0) / j;
    let variance = (p * (1.0 - p) / judge.judged as f64
        + (1.0 - raw).powi(2) * q0 * (1.0 - q0) / judge.labelled_bad as f64
        + raw * raw * q1 * (1.0 - q1) / judge.labelled_good as f64)
        / (j * j);
    Ok(RoganGladen {
        raw,
        clipped: raw.clamp(0.0, 1.0),
        variance,
        interval: Interval::around(raw, normal_critical(level) * variance.sqrt(), level),
    })
}

/// The interval of Lee et al. (2025): adjusted proportions, a shift, and a normal margin,
/// cut to \[0,1\]; `point` is the adjusted rate cut to \[0,1\].
///
/// # Errors
/// As [`rogan_gladen`], with J taken from the adjusted rates too.
pub fn lee_interval(judge: &JudgeCounts, level: f64) -> Defined<Estimate> {
    require_open_unit(level)?;
    judge.check()?;
    let z = normal_critical(level);
    let (n, m0, m1) = (judge.judged as f64, judge.labelled_bad as f64, judge.labelled_good as f64);
    let p = (n * judge.pass_rate + z * z / 2.0) / (n + z * z);
    let q0 = (m0 * judge.specificity + 1.0) / (m0 + 2.0);
    let q1 = (m1 * judge.sensitivity + 1.0) / (m1 + 2.0);
    let j = youden(q1, q0)?;
    // Outside [0,1] the adjusted rate stays as it is: only the end points are cut.
    let theta = (p + q0 - 1.0) / j;
    let (v0, v1) = (q0 * (1.0 - q0) / (m0 + 2.0), q1 * (1.0 - q1) / (m1 + 2.0));
    let shift = 2.0 * z * z * (theta * v1 - (1.0 - theta) * v0);
    let error =
        (p * (1.0 - p) / (n + z * z) + (1.0 - theta).powi(2) * v0 + theta * theta * v1).sqrt() / j;
    let interval = Interval::around(theta + shift, z * error, level).clipped(0.0, 1.0);
    let point = theta.clamp(0.0, 1.0);
    Ok(Estimate { point, interval, n: judge.judged as usize, method: Method::Lee })
}

/// How many labels to spend on each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Labels of bad cases.
    pub bad: u64,
    /// Labels of good cases.
    pub good: u64,
}

/// Lee et al.'s allocation of `labels` after a pilot of `pilot` labels a class:
/// `kappa = (m_p(1-q0)+1)/(m_p(1-q1)+1)`, `m1 = m/(1+(1/p-1) sqrt(kappa))`, rounded and
/// kept in `[m_p, m-m_p]`.
///
/// # Errors
/// `out_of_range` for a pass rate that is not inside (0,1) or rates outside \[0,1\];
/// `bad_counts` when twice the pilot exceeds the budget.
pub fn allocate_labels(
    labels: u64,
    pass_rate: f64,
    specificity: f64,
    sensitivity: f64,
    pilot: u64,
) -> Defined<Allocation> {
    require_open_unit(pass_rate)?;
    require_unit(&[specificity, sensitivity])?;
    if 2 * pilot > labels {
        return undefined(Reason::BadCounts);
    }
    let m = pilot as f64;
    let ratio = (m * (1.0 - specificity) + 1.0) / (m * (1.0 - sensitivity) + 1.0);
    let good = labels as f64 / (1.0 + (1.0 / pass_rate - 1.0) * ratio.sqrt());
    let good = (good.round_ties_even() as u64).clamp(pilot, labels - pilot);
    Ok(Allocation { bad: labels - good, good })
}

/// Rogan-Gladen with a percentile bootstrap of the labelled set alone, the pass rate held
/// fixed: what the judgy package reports. It understates the uncertainty of a small
/// unlabelled set, so it is offered for comparison only. Replicates with J <= 0 are left
/// out. `point` and replicates are cut to \[0,1\].
///
/// # Errors
/// As [`rogan_gladen`]; `no_replicates`, `zero_variance`.
pub fn judge_bootstrap(
    table: crate::stats::confusion::Confusion,
    pass_rate: f64,
    resampling: Resampling,
) -> Defined<Estimate> {
    require_unit(&[pass_rate])?;
    let rate = |sensitivity: f64, specificity: f64| -> Defined {
        let j = youden(sensitivity, specificity)?;
        Ok(((pass_rate + specificity - 1.0) / j).clamp(0.0, 1.0))
    };
    let point = rate(table.true_positive_rate()?, table.true_negative_rate()?)?;
    let n = table.n();
    let replicates: Vec<f64> = (0..resampling.resamples as u64)
        .into_par_iter()
        .map(|i| {
            let mut rng = stream(resampling.seed, i);
            // Rows are drawn jointly, so the class sizes vary as well.
            let good = binomial(&mut rng, n, table.positives() as f64 / n as f64);
            if good == 0 || good == n {
                return undefined(Reason::SingleClass);
            }
            let hit = binomial(&mut rng, good, table.true_positive_rate()?);
            let correct = binomial(&mut rng, n - good, table.true_negative_rate()?);
            rate(hit as f64 / good as f64, correct as f64 / (n - good) as f64)
        })
        .collect::<Vec<Defined>>()
        .into_iter()
        .filter_map(Result::ok)
        .collect();
    percentile_estimate(point, replicates, n as usize, resampling.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGE: JudgeCounts = JudgeCounts {
        pass_rate: 0.5,
        judged: 100,
        sensitivity: 0.9,
        specificity: 0.8,
        labelled_good: 50,
        labelled_bad: 50,
    };

    #[test]
    fn a_coin_and_a_missing_class_leave_the_rate_undefined() {
        let coin = JudgeCounts { sensitivity: 0.5, specificity: 0.5, ..JUDGE };
        assert_eq!(rogan_gladen(&coin, 0.95).unwrap_err().reason, Reason::YoudenNotPositive);
        assert_eq!(lee_interval(&coin, 0.95).unwrap_err().reason, Reason::YoudenNotPositive);
        let none = JudgeCounts { labelled_bad: 0, ..JUDGE };
        assert_eq!(rogan_gladen(&none, 0.95).unwrap_err().reason, Reason::NoNegatives);
        let nan = JudgeCounts { pass_rate: f64::NAN, ..JUDGE };
        assert_eq!(rogan_gladen(&nan, 0.95).unwrap_err().reason, Reason::NotFinite);
    }

    #[test]
    fn a_perfect_judge_reports_the_rate_itself() {
        let perfect = JudgeCounts { sensitivity: 1.0, specificity: 1.0, ..JUDGE };
        assert_eq!(rogan_gladen(&perfect, 0.95).unwrap().raw, 0.5);
    }

    #[test]
    fn the_allocation_spends_the_budget_and_keeps_the_pilot() {
        for p in [0.001, 0.5, 0.999] {
            let a = allocate_labels(100, p, 0.7, 0.9, 10).unwrap();
            assert_eq!(a.bad + a.good, 100);
            assert!(a.bad >= 10 && a.good >= 10);
        }
        assert!(allocate_labels(10, 0.5, 0.7, 0.9, 6).is_err());
        assert!(allocate_labels(10, 0.0, 0.7, 0.9, 1).is_err());
    }
}
