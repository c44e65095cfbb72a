//! Intervals of a proportion from its counts.
//!
//! Wilson for display, Clopper-Pearson for guarantees, Jeffreys for Bayesian reading. All
//! take integer counts and refuse k > n or n = 0.

use super::distribution::{beta_quantile, normal_critical};
use super::undefined::{Defined, Reason, require_open_unit, undefined};
use super::{Estimate, Interval, Method};

fn checked(k: u64, n: u64, level: f64) -> Defined<(f64, f64)> {
    if n == 0 {
        return undefined(Reason::NoData);
    }
    if k > n {
        return undefined(Reason::BadCounts);
    }
    require_open_unit(level)?;
    Ok((k as f64, n as f64))
}

fn estimate(k: f64, n: f64, lower: f64, upper: f64, level: f64, method: Method) -> Estimate {
    Estimate { point: k / n, interval: Interval { lower, upper, level }, n: n as usize, method }
}

/// Wilson (1927) score interval: `(p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`.
/// Exactly 0 at k = 0 and exactly 1 at k = n; never empty width.
///
/// # Errors
/// `no_data` for n = 0, `bad_counts` for k > n, `out_of_range` for a level outside (0,1).
pub fn wilson(k: u64, n: u64, level: f64) -> Defined<Estimate> {
    let (kf, nf) = checked(k, n, level)?;
    let z = normal_critical(level);
    let (p, z2) = (kf / nf, z * z);
    let centre = (p + z2 / (2.0 * nf)) / (1.0 + z2 / nf);
    let margin = z * (p * (1.0 - p) / nf + z2 / (4.0 * nf * nf)).sqrt() / (1.0 + z2 / nf);
    let lower = if k == 0 { 0.0 } else { (centre - margin).max(0.0) };
    let upper = if k == n { 1.0 } else { (centre + margin).min(1.0) };
    Ok(estimate(kf, nf, lower, upper, level, Method::Wilson))
}

/// Clopper and Pearson (1934): beta quantiles `B(a/2; k, n-k+1)` and `B(1-a/2; k+1, n-k)`,
/// lower 0 at k = 0, upper 1 at k = n. Coverage is never below the level.
///
/// # Errors
/// As [`wilson`].
pub fn clopper_pearson(k: u64, n: u64, level: f64) -> Defined<Estimate> {
    let (kf, nf) = checked(k, n, level)?;
    let half = (1.0 - level) / 2.0;
    let lower = clopper_pearson_lower(k, n, half)?;
    let upper = clopper_pearson_upper(k, n, half)?;
    Ok(estimate(kf, nf, lower, upper, level, Method::ClopperPearson))
}

/// One-sided exact upper bound at error `delta`: the largest rate p with
/// `P(Bin(n, p) <= k) > delta`. 1 at k = n.
///
/// # Errors
/// As [`wilson`], for `delta` in place of the level.
pub fn clopper_pearson_upper(k: u64, n: u64, delta: f64) -> Defined {
    let (kf, nf) = checked(k, n, delta)?;
    Ok(if k == n { 1.0 } else { beta_quantile(1.0 - delta, kf + 1.0, nf - kf) })
}

/// One-sided exact lower bound at error `delta`. 0 at k = 0.
///
/// # Errors
/// As [`clopper_pearson_upper`].
pub fn clopper_pearson_lower(k: u64, n: u64, delta: f64) -> Defined {
    let (kf, nf) = checked(k, n, delta)?;
    Ok(if k == 0 { 0.0 } else { beta_quantile(delta, kf, nf - kf + 1.0) })
}

/// Jeffreys: equal-tailed quantiles of Beta(k+1/2, n-k+1/2). The ends are not forced to 0
/// at k = 0 or to 1 at k = n.
///
/// # Errors
/// As [`wilson`].
pub fn jeffreys(k: u64, n: u64, level: f64) -> Defined<Estimate> {
    let (kf, nf) = checked(k, n, level)?;
    let half = (1.0 - level) / 2.0;
    let (a, b) = (kf + 0.5, nf - kf + 0.5);
    let (lower, upper) = (beta_quantile(half, a, b), beta_quantile(1.0 - half, a, b));
    Ok(estimate(kf, nf, lower, upper, level, Method::Jeffreys))
}

/// Agresti and Coull (1998): Wald around `(k + z^2/2)/(n + z^2)`, cut to \[0,1\].
///
/// # Errors
/// As [`wilson`].
pub fn agresti_coull(k: u64, n: u64, level: f64) -> Defined<Estimate> {
    let (kf, nf) = checked(k, n, level)?;
    let z = normal_critical(level);
    let adjusted = nf + z * z;
    let p = (kf + z * z / 2.0) / adjusted;
    let margin = z * (p * (1.0 - p) / adjusted).sqrt();
    let interval = Interval::around(p, margin, level).clipped(0.0, 1.0);
    Ok(Estimate { point: kf / nf, interval, n: n as usize, method: Method::AgrestiCoull })
}

/// "Rule of three": with no event among `n`, the exact upper bound `1 - delta^(1/n)`.
///
/// # Errors
/// `no_data`, `out_of_range`.
pub fn rule_of_three(n: u64, delta: f64) -> Defined {
    checked(0, n, delta)?;
    Ok(-(delta.ln() / n as f64).exp_m1())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::distribution::binomial_pmf;
    use super::*;

    /// Exact coverage at rate `p`: the sum of the binomial probabilities of the counts
    /// whose interval holds `p`.
    fn coverage(n: u64, p: f64, f: impl Fn(u64) -> Interval) -> f64 {
        (0..=n).filter(|&k| f(k).contains(p)).map(|k| binomial_pmf(k, n, p)).sum()
    }

    #[test]
    fn clopper_pearson_never_covers_less_than_its_level() {
        for n in [1, 5, 20, 60, 150] {
            for p in [0.001, 0.01, 0.05, 0.2, 0.5, 0.77, 0.97] {
                let c = coverage(n, p, |k| clopper_pearson(k, n, 0.95).unwrap().interval);
                assert!(c >= 0.95 - 1e-12, "n {n} p {p}: {c}");
            }
        }
    }

    #[test]
    fn wilson_covers_its_level_on_average() {
        // Uniform p from 0.02 to 0.98: the mean coverage is within 1.5 points of 95 %.
        for n in [10, 50, 200] {
            let rates: Vec<f64> = (1..50).map(|i| f64::from(i) / 50.0).collect();
            let mean: f64 = rates
                .iter()
                .map(|&p| coverage(n, p, |k| wilson(k, n, 0.95).unwrap().interval))
                .sum::<f64>()
                / rates.len() as f64;
            assert!((mean - 0.95).abs() < 0.015, "n {n}: {mean}");
        }
    }

    #[test]
    fn impossible_counts_are_refused() {
        assert_eq!(wilson(0, 0, 0.95).unwrap_err().reason, Reason::NoData);
        assert_eq!(clopper_pearson(3, 2, 0.95).unwrap_err().reason, Reason::BadCounts);
        assert_eq!(jeffreys(1, 2, 1.0).unwrap_err().reason, Reason::OutOfRange);
        assert_eq!(wilson(1, 2, f64::NAN).unwrap_err().reason, Reason::OutOfRange);
    }

    proptest! {
        #[test]
        fn every_interval_holds_its_point_and_mirrors(n in 1u64..2000, share in 0.0f64..=1.0) {
            let k = (share * n as f64) as u64;
            for f in [wilson, clopper_pearson, agresti_coull] {
                let e = f(k, n, 0.95).unwrap();
                let mirrored = f(n - k, n, 0.95).unwrap();
                prop_assert!(e.interval.contains(e.point));
                prop_assert!(e.interval.width() > 0.0);
                prop_assert!((e.interval.lower - (1.0 - mirrored.interval.upper)).abs() < 1e-9);
            }
        }
    }
}
