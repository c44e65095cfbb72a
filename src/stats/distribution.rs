//! Tails and quantiles of the distributions the formulas use.
//!
//! Total: arguments are finite by the callers' checks. Two functions are our own, because
//! binomial tails decide certificates: the incomplete beta function, which statrs stops
//! after 140 steps and so loses for large counts, and the complementary error function,
//! of which statrs 0.19 keeps ten digits.

use statrs::distribution::{DiscreteCDF as _, Hypergeometric};
use statrs::function::erf::erfc_inv;
use statrs::function::gamma::{gamma_ur, ln_gamma};

/// Complementary error function to the last digits: a series of positive terms below 1.5,
/// Laplace's continued fraction above.
#[must_use]
pub fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let kernel = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 1.5 {
        let (mut term, mut sum, mut n) = (x, x, 1.0);
        while term > 1e-17 * sum {
            n += 2.0;
            term *= 2.0 * x * x / n;
            sum += term;
        }
        return 1.0 - 2.0 * kernel * sum;
    }
    if kernel == 0.0 {
        return 0.0;
    }
    // x + (1/2)/(x + 1/(x + (3/2)/(x + ...))), from the far end.
    let mut fraction = x;
    for k in (1..=120).rev() {
        fraction = x + f64::from(k) / 2.0 / fraction;
    }
    kernel / fraction
}

/// P(Z <= z) of the standard normal.
#[must_use]
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// Two-sided normal p-value, `P(|Z| >= |z|)`.
#[must_use]
pub fn normal_two_sided(z: f64) -> f64 {
    erfc(z.abs() / std::f64::consts::SQRT_2).min(1.0)
}

/// Quantile of the standard normal; infinite at 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let mut z = -std::f64::consts::SQRT_2 * erfc_inv(2.0 * p);
    // Newton steps on the smaller tail bring the last digits.
    for _ in 0..2 {
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let error = if p < 0.5 { normal_cdf(z) - p } else { (1.0 - p) - normal_cdf(-z) };
        if density > 1e-300 {
            z -= error / density;
        }
    }
    z
}

/// The two-sided critical value: `level` 0.95 gives 1.95996.
#[must_use]
pub fn normal_critical(level: f64) -> f64 {
    -normal_quantile((1.0 - level) / 2.0)
}

/// Stirling's correction, `ln gamma(x) - ((x - 1/2) ln x - x + ln(2 pi)/2)`, for x >= 15.
fn stirling_correction(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    (1.0 / 12.0
        + y * (-1.0 / 360.0
            + y * (1.0 / 1260.0
                + y * (-1.0 / 1680.0 + y * (1.0 / 1188.0 - y * 691.0 / 360_360.0)))))
        / x
}

const HALF_LN_2_PI: f64 = 0.918_938_533_204_672_8;

/// ln of the beta function for a, b > 0.
#[must_use]
pub fn ln_beta(a: f64, b: f64) -> f64 {
    if a.min(b) < 15.0 {
        return ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    }
    // The large terms of the three log-gammas cancel on paper, not in floating point.
    let sum = a + b;
    (a - 0.5) * (a / sum).ln() + b * (b / sum).ln() - 0.5 * b.ln()
        + HALF_LN_2_PI
        + stirling_correction(a)
        + stirling_correction(b)
        - stirling_correction(sum)
}

/// Regularised incomplete beta `I_x(a, b)` by Lentz's continued fraction; a, b > 0.
#[must_use]
pub fn beta_cdf(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let log_front = a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b);
    if x < (a + 1.0) / (a + b + 2.0) {
        (log_front.exp() * beta_fraction(x, a, b) / a).clamp(0.0, 1.0)
    } else {
        (1.0 - log_front.exp() * beta_fraction(1.0 - x, b, a) / b).clamp(0.0, 1.0)
    }
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    // Converges in O(sqrt(max(a, b))) steps; the cap allows for counts of 1e9.
    for m in 1..100_000u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    h
}

/// Quantile of Beta(a, b) by bisection with Newton steps.
#[must_use]
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0f64, 1.0f64);
    let mut x = a / (a + b);
    let log_norm = ln_beta(a, b);
    for _ in 0..400 {
        let error = beta_cdf(x, a, b) - p;
        if error > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let density = ((a - 1.0) * x.ln() + (b - 1.0) * (-x).ln_1p() - log_norm).exp();
        let mut next = x - error / density;
        if !(next > low && next < high) {
            // Halving on the log scale finds quantiles such as 1e-200 as well.
            next = if low > 0.0 && high / low > 4.0 {
                (low * high).sqrt()
            } else if low == 0.0 && high < 1e-3 {
                high * 1e-3
            } else {
                f64::midpoint(low, high)
            };
        }
        let done = (next - x).abs() <= 1e-16 * x.abs() || high - low <= f64::EPSILON * low;
        x = next;
        if done || x == 0.0 {
            break;
        }
    }
    x
}

/// P(Bin(n, p) <= k).
#[must_use]
pub fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n || p <= 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    beta_cdf(1.0 - p, (n - k) as f64, k as f64 + 1.0)
}

/// P(Bin(n, p) >= k).
#[must_use]
pub fn binomial_sf_inclusive(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 || (p >= 1.0 && k <= n) {
        return 1.0;
    }
    if k > n || p <= 0.0 {
        return 0.0;
    }
    beta_cdf(p, k as f64, (n - k) as f64 + 1.0)
}

/// P(at least k marked among `draws` without replacement) of a `population` with `marked`:
/// the one-sided p-value of Fisher's exact test.
#[must_use]
pub fn hypergeometric_sf_inclusive(k: u64, population: u64, marked: u64, draws: u64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    match Hypergeometric::new(population, marked, draws) {
        Ok(own) => own.sf(k - 1).clamp(0.0, 1.0),
        Err(_) => f64::NAN,
    }
}

/// P(Bin(n, p) = k).
#[must_use]
pub fn binomial_pmf(k: u64, n: u64, p: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    if p <= 0.0 {
        return if k == 0 { 1.0 } else { 0.0 };
    }
    if p >= 1.0 {
        return if k == n { 1.0 } else { 0.0 };
    }
    let (kf, nf) = (k as f64, n as f64);
    (ln_gamma(nf + 1.0) - ln_gamma(kf + 1.0) - ln_gamma(nf - kf + 1.0)
        + kf * p.ln()
        + (nf - kf) * (-p).ln_1p())
    .exp()
}

/// Two-sided exact sign p-value for `k` of `n` at 1/2: twice the smaller tail, at most 1.
#[must_use]
pub fn sign_two_sided(k: u64, n: u64) -> f64 {
    (2.0 * binomial_cdf(k.min(n.saturating_sub(k)), n, 0.5)).min(1.0)
}

/// P(T <= t) of Student's t with `df` > 0 degrees of freedom.
#[must_use]
pub fn student_cdf(t: f64, df: f64) -> f64 {
    let tail = 0.5 * student_two_sided(t, df);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// P(|T| >= |t|).
#[must_use]
pub fn student_two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    let t2 = t * t;
    // The complementary argument keeps the digits of small |t|.
    if t2 < df {
        1.0 - beta_cdf(t2 / (df + t2), 0.5, df / 2.0)
    } else {
        beta_cdf(df / (df + t2), df / 2.0, 0.5)
    }
}

/// Quantile of Student's t.
#[must_use]
pub fn student_quantile(p: f64, df: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    let tail = 2.0 * p.min(1.0 - p);
    let x = beta_quantile(tail, df / 2.0, 0.5);
    let mut t = (df * (1.0 - x) / x).sqrt();
    if !t.is_finite() {
        t = f64::INFINITY;
    } else if t > 0.0 {
        // 1 - x cancels for central quantiles; Newton on the tail itself restores it.
        for _ in 0..3 {
            let density = ((-0.5 * (df + 1.0)) * (t * t / df).ln_1p()
                - 0.5 * df.ln()
                - ln_beta(0.5, df / 2.0))
            .exp();
            let step = (student_two_sided(t, df) - tail) / (2.0 * density);
            t += step;
            if step.abs() < 1e-15 * t {
                break;
            }
        }
    }
    if p < 0.5 { -t } else { t }
}

/// The two-sided critical value of Student's t.
#[must_use]
pub fn student_critical(level: f64, df: f64) -> f64 {
    -student_quantile((1.0 - level) / 2.0, df)
}

/// P(X >= x) of chi-squared with `df` degrees of freedom.
#[must_use]
pub fn chi_squared_sf(x: f64, df: f64) -> f64 {
    if x <= 0.0 {
        1.0
    } else if x.is_infinite() {
        0.0
    } else {
        gamma_ur(df / 2.0, x / 2.0)
    }
}

/// Quantile of F with `d1` and `d2` degrees of freedom.
#[must_use]
pub fn f_quantile(p: f64, d1: f64, d2: f64) -> f64 {
    // The smaller of the two complementary beta quantiles keeps its digits.
    let x = beta_quantile(p, d1 / 2.0, d2 / 2.0);
    if x < 0.5 {
        d2 * x / (d1 * (1.0 - x))
    } else {
        let y = beta_quantile(1.0 - p, d2 / 2.0, d1 / 2.0);
        d2 * (1.0 - y) / (d1 * y)
    }
}

/// `1 / (1 + exp(-x))` without overflow.
#[must_use]
pub fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `ln(1 + exp(x))` without overflow.
#[must_use]
pub fn log1p_exp(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// `ln(p / (1 - p))`.
#[must_use]
pub fn logit(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1e-3), "{a} is not {b}");
    }

    #[test]
    fn the_normal_tail_keeps_its_digits() {
        // Values of Abramowitz and Stegun, and of arbitrary-precision arithmetic.
        let relative = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-13, "{a} is not {b}");
        relative(erfc(0.5), 0.479_500_122_186_953_5);
        relative(erfc(1.0), 0.157_299_207_050_285_13);
        relative(erfc(2.0), 0.004_677_734_981_047_266);
        relative(erfc(5.0), 1.537_459_794_428_035e-12);
        relative(erfc(-1.0), 2.0 - 0.157_299_207_050_285_13);
        assert_eq!((erfc(0.0), erfc(40.0), erfc(f64::INFINITY)), (1.0, 0.0, 0.0));
        // Both branches meet.
        assert!((erfc(1.5 - 1e-12) / erfc(1.5) - 1.0).abs() < 1e-11);
    }

    #[test]
    fn both_forms_of_log_beta_agree() {
        for (a, b) in [(20.0, 30.0), (15.0, 4000.0), (15.0, 15.0)] {
            let plain = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
            assert!((ln_beta(a, b) / plain - 1.0).abs() < 1e-13);
        }
    }

    #[test]
    fn chi_squared_with_one_and_two_degrees_has_closed_forms() {
        for x in [0.1, 1.0, 3.0, 10.0, 60.0] {
            close(chi_squared_sf(x, 1.0), normal_two_sided(x.sqrt()));
            assert!((chi_squared_sf(x, 2.0) / (-x / 2.0).exp() - 1.0).abs() < 1e-13);
        }
        assert_eq!(chi_squared_sf(0.0, 3.0), 1.0);
    }

    #[test]
    fn quantiles_match_printed_tables() {
        close(normal_quantile(0.975), 1.959963984540054);
        close(student_quantile(0.975, 9.0), 2.262_157_162_798_205);
        // With one degree of freedom the quantile is a tangent.
        close(student_quantile(0.975, 1.0), (0.475 * std::f64::consts::PI).tan());
        close(f_quantile(0.95, 5.0, 10.0), 3.325834530413011);
        close(beta_quantile(0.975, 1.0, 20.0), 1.0 - 0.025f64.powf(0.05));
    }

    #[test]
    fn binomial_tails_agree_with_the_sum_for_large_counts() {
        let (n, p) = (100_000u64, 0.05);
        let sum: f64 = (0..=4_900).map(|k| binomial_pmf(k, n, p)).sum();
        assert!((binomial_cdf(4_900, n, p) - sum).abs() < 1e-9);
        assert!(
            (binomial_cdf(4_900, n, p) + binomial_sf_inclusive(4_901, n, p) - 1.0).abs() < 1e-9
        );
    }

    #[test]
    fn tiny_beta_quantiles_invert() {
        for (p, a, b) in [(0.025, 0.01, 3.0), (1e-9, 0.5, 60.5), (0.999, 300.0, 0.5)] {
            let x = beta_quantile(p, a, b);
            assert!((beta_cdf(x, a, b) - p).abs() < 1e-9 * p.max(1e-3), "{p} {a} {b} {x}");
        }
    }
}
