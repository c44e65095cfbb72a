//! Partial pooling: slices and judges borrow strength from each other.

use serde::{Deserialize, Serialize};

use super::undefined::{Defined, Reason, require_finite, require_pairs, undefined};

/// Random-effects pooling of biases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmpiricalBayes {
    /// Between-slice variance, DerSimonian and Laird (1986), 0 or more.
    pub tau2: f64,
    /// Between-slice variance, Paule and Mandel (1982).
    pub tau2_paule_mandel: f64,
    /// Pooled mean.
    pub mean: f64,
    /// Its standard error.
    pub mean_standard_error: f64,
    /// Each bias pulled to the mean by `v / (v + tau2)`.
    pub shrunk: Vec<f64>,
    /// Cochran's Q of heterogeneity.
    pub q: f64,
}

/// `b_k ~ N(beta_k, v_k)`, `beta_k ~ N(mu, tau2)`;
/// `tau2 = max(0, (Q - (K-1)) / (S1 - S2/S1))` with `S_r = sum v^-r`. tau2 = 0 pools
/// completely. With few labels a slice, pass variances from [`pooled_variances`].
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `too_few_values` below two slices,
/// `out_of_range` for a variance that is not positive.
pub fn empirical_bayes(bias: &[f64], variance: &[f64]) -> Defined<EmpiricalBayes> {
    require_pairs(bias, variance)?;
    if bias.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    if variance.iter().any(|v| *v <= 0.0) {
        return undefined(Reason::OutOfRange);
    }
    let degrees = (bias.len() - 1) as f64;
    // Weighted mean, total weight, and Q at a given between-slice variance.
    let pooled = |tau2: f64| {
        let weight: Vec<f64> = variance.iter().map(|v| 1.0 / (v + tau2)).collect();
        let total: f64 = weight.iter().sum();
        let mean = weight.iter().zip(bias).map(|(w, b)| w * b).sum::<f64>() / total;
        let q: f64 = weight.iter().zip(bias).map(|(w, b)| w * (b - mean).powi(2)).sum();
        (mean, total, q)
    };
    let (_, first, q) = pooled(0.0);
    let second: f64 = variance.iter().map(|v| v.powi(-2)).sum();
    let tau2 = ((q - degrees) / (first - second / first)).max(0.0);
    let (mean, total, _) = pooled(tau2);
    let shrunk =
        bias.iter().zip(variance).map(|(b, v)| mean + tau2 / (v + tau2) * (b - mean)).collect();
    Ok(EmpiricalBayes {
        tau2,
        tau2_paule_mandel: paule_mandel(degrees, q, |t| pooled(t).2),
        mean,
        mean_standard_error: (1.0 / total).sqrt(),
        shrunk,
        q,
    })
}

/// The root of `Q(tau2) = K - 1`, 0 when Q starts below; Q falls with tau2.
fn paule_mandel(degrees: f64, at_zero: f64, q: impl Fn(f64) -> f64) -> f64 {
    if at_zero <= degrees {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while q(high) > degrees {
        low = high;
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if q(middle) > degrees { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Means and variances `s_pooled^2 / n_k` of slices, from the raw differences of each: the
/// slices' own variances are too noisy below some twenty labels.
///
/// # Errors
/// `no_data`, `not_finite`; `too_few_values` when no slice has two values or one is empty;
/// `zero_variance` when no slice varies inside.
pub fn pooled_variances(slices: &[Vec<f64>]) -> Defined<(Vec<f64>, Vec<f64>)> {
    if slices.is_empty() {
        return undefined(Reason::NoData);
    }
    if slices.iter().any(Vec::is_empty) {
        return undefined(Reason::TooFewValues);
    }
    slices.iter().try_for_each(|s| require_finite(s))?;
    let values: usize = slices.iter().map(Vec::len).sum();
    if values <= slices.len() {
        return undefined(Reason::TooFewValues);
    }
    let within: f64 = slices.iter().map(|s| super::summary::sum_of_squares(s)).sum();
    let size: f64 = slices.iter().flatten().map(|value| value * value).sum();
    // Rounding alone leaves about this much of constant values.
    if within <= 1e-24 * size || within == 0.0 {
        return undefined(Reason::ZeroVariance);
    }
    let pooled = within / (values - slices.len()) as f64;
    Ok((
        slices.iter().map(|s| super::summary::raw_mean(s)).collect(),
        slices.iter().map(|s| pooled / s.len() as f64).collect(),
    ))
}

/// Shrunk proportions of several groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BetaBinomialShrinkage {
    /// Pooled rate `sum k / sum n`.
    pub mean: f64,
    /// `k / n` of each group.
    pub raw: Vec<f64>,
    /// Intraclass correlation by moments (Kleinman 1973), in \[0,1\].
    pub correlation: f64,
    /// `(k + M mu) / (n + M)` with `M = (1 - rho) / rho`; the pooled rate when rho = 0.
    pub shrunk: Vec<f64>,
}

/// Beta-binomial shrinkage of groups with `k` of `n`.
///
/// # Errors
/// `length_mismatch`, `no_data` (also for a group without trials), `bad_counts`.
pub fn beta_binomial_shrinkage(k: &[u64], n: &[u64]) -> Defined<BetaBinomialShrinkage> {
    if k.len() != n.len() {
        return undefined(Reason::LengthMismatch);
    }
    if k.is_empty() || n.contains(&0) {
        return undefined(Reason::NoData);
    }
    if k.iter().zip(n).any(|(k, n)| k > n) {
        return undefined(Reason::BadCounts);
    }
    let total = n.iter().sum::<u64>() as f64;
    let mean = k.iter().sum::<u64>() as f64 / total;
    let raw: Vec<f64> = k.iter().zip(n).map(|(k, n)| *k as f64 / *n as f64).collect();
    let degrees = k.len() as f64 - 1.0;
    let spread: f64 = raw.iter().zip(n).map(|(p, n)| *n as f64 * (p - mean).powi(2)).sum();
    let square: f64 = n.iter().map(|n| (*n as f64).powi(2)).sum::<f64>() / total;
    let scale = total - square - degrees;
    let unit = mean * (1.0 - mean);
    let correlation = if unit == 0.0 || scale <= 0.0 {
        0.0
    } else {
        ((spread / unit - degrees) / scale).clamp(0.0, 1.0)
    };
    let shrunk = k
        .iter()
        .zip(n)
        .map(|(&k, &n)| {
            if correlation == 0.0 {
                return mean;
            }
            let prior = (1.0 - correlation) / correlation;
            (k as f64 + prior * mean) / (n as f64 + prior)
        })
        .collect();
    Ok(BetaBinomialShrinkage { mean, raw, correlation, shrunk })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_slices_pool_completely() {
        let e = empirical_bayes(&[0.2, 0.2, 0.2], &[0.01, 0.05, 0.02]).unwrap();
        assert_eq!((e.tau2, e.tau2_paule_mandel), (0.0, 0.0));
        assert!(e.shrunk.iter().all(|b| (b - 0.2).abs() < 1e-15));
    }

    #[test]
    fn shrinkage_lies_between_the_slice_and_the_mean() {
        let e = empirical_bayes(&[1.0, -1.0, 3.0], &[0.1, 0.2, 0.3]).unwrap();
        for (s, b) in e.shrunk.iter().zip([1.0, -1.0, 3.0]) {
            assert!((s - e.mean).abs() <= (b - e.mean).abs() && (s - e.mean) * (b - e.mean) >= 0.0);
        }
        let r = beta_binomial_shrinkage(&[2, 6, 14, 18], &[20; 4]).unwrap();
        assert!(r.shrunk[0] > 0.1 && r.shrunk[3] < 0.9 && r.correlation < 1.0);
    }

    #[test]
    fn lone_slices_and_flat_variances_are_undefined() {
        assert_eq!(empirical_bayes(&[0.1], &[0.1]).unwrap_err().reason, Reason::TooFewValues);
        assert_eq!(
            empirical_bayes(&[0.1, 0.2], &[0.1, 0.0]).unwrap_err().reason,
            Reason::OutOfRange
        );
        assert_eq!(
            pooled_variances(&[vec![1.0], vec![2.0]]).unwrap_err().reason,
            Reason::TooFewValues
        );
        let noisy = vec![0.1 + 0.2, 0.3, 0.6 - 0.3];
        assert_eq!(pooled_variances(&[noisy, vec![0.3]]).unwrap_err().reason, Reason::ZeroVariance);
        assert_eq!(beta_binomial_shrinkage(&[3], &[2]).unwrap_err().reason, Reason::BadCounts);
        assert_eq!(beta_binomial_shrinkage(&[0], &[0]).unwrap_err().reason, Reason::NoData);
    }
}
