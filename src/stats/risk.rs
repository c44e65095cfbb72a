//! Bounds on a risk from bounded losses: p-values for "the risk exceeds alpha" and upper
//! confidence bounds.
//!
//! For 0/1 losses the exact binomial is the tightest; the others serve graded losses in
//! \[0,1\]. Error counts are integers and are never rebuilt from ratios.

use serde::{Deserialize, Serialize};

use super::distribution::binomial_cdf;
use super::summary::{raw_mean, sum_of_squares};
use super::undefined::{Defined, Reason, require_open_unit, require_unit, undefined};

fn checked(errors: u64, n: u64, alpha: f64) -> Defined<()> {
    if n == 0 {
        return undefined(Reason::NoData);
    }
    if errors > n {
        return undefined(Reason::BadCounts);
    }
    require_open_unit(alpha)
}

/// Exact p-value `P(Bin(n, alpha) <= errors)` of H0: risk > alpha.
///
/// # Errors
/// `no_data`, `bad_counts`, `out_of_range` for alpha outside (0,1).
pub fn exact_p(errors: u64, n: u64, alpha: f64) -> Defined {
    checked(errors, n, alpha)?;
    Ok(binomial_cdf(errors, n, alpha))
}

/// Hoeffding's (1963) p-value in its Kullback-Leibler form,
/// `exp(-n KL(min(errors/n, alpha), alpha))`.
///
/// # Errors
/// As [`exact_p`].
pub fn hoeffding_kl_p(errors: u64, n: u64, alpha: f64) -> Defined {
    checked(errors, n, alpha)?;
    hoeffding_kl_p_of_mean(errors as f64 / n as f64, n, alpha)
}

/// As [`hoeffding_kl_p`] for the mean of `n` losses in \[0,1\].
///
/// # Errors
/// As [`exact_p`].
pub fn hoeffding_kl_p_of_mean(mean: f64, n: u64, alpha: f64) -> Defined {
    checked(0, n, alpha)?;
    require_unit(&[mean])?;
    let r = mean.min(alpha);
    let term = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * (a / b).ln() };
    let divergence = term(r, alpha) + term(1.0 - r, 1.0 - alpha);
    Ok((-(n as f64) * divergence).exp().min(1.0))
}

/// Bentkus' (2004) p-value, `e P(Bin(n, alpha) <= errors)`, at most 1.
///
/// # Errors
/// As [`exact_p`].
pub fn bentkus_p(errors: u64, n: u64, alpha: f64) -> Defined {
    Ok((std::f64::consts::E * exact_p(errors, n, alpha)?).min(1.0))
}

/// The smaller of Hoeffding's and Bentkus' (Bates et al. 2021, Angelopoulos et al. 2021).
///
/// # Errors
/// As [`exact_p`].
pub fn hoeffding_bentkus_p(errors: u64, n: u64, alpha: f64) -> Defined {
    Ok(hoeffding_kl_p(errors, n, alpha)?.min(bentkus_p(errors, n, alpha)?))
}

/// Hoeffding's upper bound, `mean + sqrt(ln(1/delta) / 2n)`, at most 1.
///
/// # Errors
/// `no_data`, `not_finite`, `out_of_range`.
pub fn hoeffding_upper(losses: &[f64], delta: f64) -> Defined {
    require_unit(losses)?;
    require_open_unit(delta)?;
    let n = losses.len() as f64;
    Ok((raw_mean(losses) + ((1.0 / delta).ln() / (2.0 * n)).sqrt()).min(1.0))
}

/// Empirical Bernstein upper bound (Maurer and Pontil 2009):
/// `mean + sqrt(2 s^2 ln(2/delta) / n) + 7 ln(2/delta) / (3 (n - 1))`, at most 1.
///
/// # Errors
/// As [`hoeffding_upper`]; `too_few_values` below two.
pub fn empirical_bernstein_upper(losses: &[f64], delta: f64) -> Defined {
    require_unit(losses)?;
    require_open_unit(delta)?;
    if losses.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    let n = losses.len() as f64;
    let log = (2.0 / delta).ln();
    let variance = sum_of_squares(losses) / (n - 1.0);
    let bound =
        raw_mean(losses) + (2.0 * variance * log / n).sqrt() + 7.0 * log / (3.0 * (n - 1.0));
    Ok(bound.min(1.0))
}

/// Betting upper bound of Waudby-Smith and Ramdas (2023) as in Bates et al. (2021): the
/// smallest m at which the capital `prod (1 - nu_i (x_i - m))` reaches `1/delta` at some
/// time, with predictable bets
/// `nu_i = min(1, sqrt(2 ln(1/delta) / (n s_{i-1}^2)))`, at most 1.
///
/// The value depends on the order of the losses: fix it, or shuffle with a recorded seed.
///
/// # Errors
/// As [`hoeffding_upper`].
pub fn betting_upper(losses: &[f64], delta: f64) -> Defined {
    require_unit(losses)?;
    require_open_unit(delta)?;
    let n = losses.len() as f64;
    let target = (1.0 / delta).ln();
    let (mut sum, mut squares, mut variance) = (0.5, 0.25, 0.25);
    let mut bets = Vec::with_capacity(losses.len());
    for (i, x) in losses.iter().enumerate() {
        bets.push((2.0 * target / (n * variance)).sqrt().min(1.0));
        let count = i as f64 + 2.0;
        sum += x;
        let mean: f64 = sum / count;
        squares += (x - mean).powi(2);
        variance = squares / count;
    }
    // Where the large losses come last the crossing can lie below their mean. Larger is still
    // a bound, and one below the estimate would mislead.
    let mean = raw_mean(losses);
    // The largest log capital over time grows with m, so bisection finds the crossing.
    let capital = |m: f64| {
        let (mut log, mut best) = (0.0f64, f64::NEG_INFINITY);
        for (x, bet) in losses.iter().zip(&bets) {
            log += (-bet * (x - m)).ln_1p();
            best = best.max(log);
        }
        best
    };
    if capital(1.0) < target {
        return Ok(1.0);
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if capital(middle) >= target { high = middle } else { low = middle }
    }
    Ok(high.max(mean))
}

/// Which p-value a fixed-sequence test uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RiskTest {
    /// [`exact_p`]: 0/1 losses.
    Exact,
    /// [`hoeffding_bentkus_p`].
    HoeffdingBentkus,
}

/// Learn-then-test by fixed sequence (Angelopoulos et al. 2021): candidates from strict to
/// lenient as (errors, n); all before the first whose p-value exceeds `delta` are
/// certified. Returns how many. A candidate with n = 0 stops the sequence, because nothing
/// is known about it.
///
/// # Errors
/// `bad_counts`, `out_of_range`.
pub fn fixed_sequence(
    candidates: &[(u64, u64)],
    alpha: f64,
    delta: f64,
    test: RiskTest,
) -> Defined<usize> {
    require_open_unit(alpha)?;
    require_open_unit(delta)?;
    for (index, &(errors, n)) in candidates.iter().enumerate() {
        if errors > n {
            return undefined(Reason::BadCounts);
        }
        let certified = n > 0
            && match test {
                RiskTest::Exact => exact_p(errors, n, alpha)?,
                RiskTest::HoeffdingBentkus => hoeffding_bentkus_p(errors, n, alpha)?,
            } <= delta;
        if !certified {
            return Ok(index);
        }
    }
    Ok(candidates.len())
}

/// The false-positive rate if a share `mislabelled` of the cases labelled bad is in truth
/// good: the observed rate is `(1 - e) FPR + e TPR`, so `FPR = (observed - e TPR)/(1 - e)`,
/// cut at 0.
///
/// # Errors
/// `out_of_range` for rates outside \[0,1\] or a share of 1.
pub fn rate_under_label_noise(observed: f64, true_positive_rate: f64, mislabelled: f64) -> Defined {
    require_unit(&[observed, true_positive_rate, mislabelled])?;
    if mislabelled >= 1.0 {
        return undefined(Reason::OutOfRange);
    }
    Ok(((observed - mislabelled * true_positive_rate) / (1.0 - mislabelled)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::draw::{binomial, stream};

    #[test]
    fn the_count_is_never_rebuilt_from_the_ratio() {
        // 187 * (3/187) rounds up to 4 in floating point, which costs other tools certificates.
        assert!((exact_p(3, 187, 0.05).unwrap() - 0.0147063346695).abs() < 1e-12);
        let bentkus = bentkus_p(3, 187, 0.05).unwrap();
        assert!((bentkus - std::f64::consts::E * 0.0147063346695).abs() < 1e-11);
    }

    #[test]
    fn bounds_hold_at_their_confidence() {
        // Losses 0/1 at rate 0.1, n = 80: a bound fails when it falls below the rate.
        let (rate, n, delta, repeats) = (0.1, 80u64, 0.1, 1500u64);
        let mut failures = [0u32; 3];
        for i in 0..repeats {
            let mut rng = stream(3, i);
            let losses: Vec<f64> = (0..n).map(|_| binomial(&mut rng, 1, rate) as f64).collect();
            for (f, count) in [betting_upper, hoeffding_upper, empirical_bernstein_upper]
                .into_iter()
                .zip(&mut failures)
            {
                *count += u32::from(f(&losses, delta).unwrap() < rate);
            }
        }
        let ceiling = delta + 3.0 * (delta * (1.0 - delta) / repeats as f64).sqrt();
        for count in failures {
            assert!(f64::from(count) / repeats as f64 <= ceiling, "{failures:?}");
        }
    }

    #[test]
    fn the_sequence_stops_at_the_first_failure_and_at_nothing() {
        let f = |c: &[(u64, u64)]| fixed_sequence(c, 0.05, 0.05, RiskTest::Exact).unwrap();
        assert_eq!(f(&[(0, 100), (1, 100), (9, 100), (0, 100)]), 2);
        assert_eq!(f(&[(0, 58)]), 0);
        assert_eq!(f(&[(0, 0), (0, 1000)]), 0);
        assert_eq!(f(&[]), 0);
    }

    #[test]
    fn label_noise_can_explain_the_whole_rate() {
        assert_eq!(rate_under_label_noise(0.03, 1.0, 0.03), Ok(0.0));
        assert!(rate_under_label_noise(0.03, 1.0, 1.0).is_err());
    }

    proptest! {
        #[test]
        fn p_values_fall_with_alpha_and_rise_with_errors(
            n in 1u64..400, share in 0.0f64..1.0, alpha in 0.01f64..0.4
        ) {
            let k = (share * n as f64) as u64;
            for f in [exact_p, hoeffding_kl_p, bentkus_p, hoeffding_bentkus_p] {
                let p = f(k, n, alpha).unwrap();
                prop_assert!((0.0..=1.0).contains(&p));
                prop_assert!(f(k, n, alpha * 1.2).unwrap() <= p + 1e-12);
                if k < n {
                    prop_assert!(f(k + 1, n, alpha).unwrap() >= p - 1e-12);
                }
            }
        }

        #[test]
        fn the_betting_bound_is_above_the_mean(
            losses in prop::collection::vec(0.0f64..=1.0, 1..60)
        ) {
            let bound = betting_upper(&losses, 0.05).unwrap();
            prop_assert!(bound >= raw_mean(&losses) - 1e-9 && bound <= 1.0);
        }
    }
}
