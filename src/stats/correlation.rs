//! Association of two series: Pearson, Spearman, Kendall, Somers, Lin.
//!
//! A constant series has no correlation and gives `constant_input`, never 0. Kendall's
//! counts take O(n log n) (Knight 1966).

use serde::Serialize;

use super::distribution::{normal_critical, normal_two_sided, student_two_sided};
use super::summary::{
    is_constant, mid_ranks, raw_mean, sorted, sum_of_products, sum_of_squares, tie_sizes,
};
use super::undefined::{Defined, Reason, require_open_unit, require_pairs, undefined};
use super::{Estimate, Interval, Method};

fn require_varying(x: &[f64], y: &[f64]) -> Defined<()> {
    require_pairs(x, y)?;
    if x.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    if is_constant(x) || is_constant(y) { undefined(Reason::ConstantInput) } else { Ok(()) }
}

/// Pearson's r = Sxy / sqrt(Sxx Syy), in \[-1,1\].
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `too_few_values`, `constant_input`.
pub fn pearson(x: &[f64], y: &[f64]) -> Defined {
    require_varying(x, y)?;
    let product = (sum_of_squares(x) * sum_of_squares(y)).sqrt();
    if product == 0.0 {
        return undefined(Reason::ConstantInput);
    }
    Ok((sum_of_products(x, y) / product).clamp(-1.0, 1.0))
}

/// Two-sided p-value of a correlation `r` on `n` pairs: t with n - 2 degrees of freedom.
///
/// # Errors
/// `too_few_values` below three pairs.
pub fn correlation_p(r: f64, n: usize) -> Defined {
    if n < 3 {
        return undefined(Reason::TooFewValues);
    }
    let df = (n - 2) as f64;
    Ok(student_two_sided(r * (df / ((1.0 - r) * (1.0 + r))).sqrt(), df))
}

/// Pearson's r with Fisher's (1915) interval `tanh(atanh r ± z / sqrt(n - 3))`.
///
/// # Errors
/// As [`pearson`]; `too_few_values` below four pairs.
pub fn pearson_estimate(x: &[f64], y: &[f64], level: f64) -> Defined<Estimate> {
    require_open_unit(level)?;
    let r = pearson(x, y)?;
    if x.len() < 4 {
        return undefined(Reason::TooFewValues);
    }
    let margin = normal_critical(level) / ((x.len() - 3) as f64).sqrt();
    let interval =
        Interval { lower: (r.atanh() - margin).tanh(), upper: (r.atanh() + margin).tanh(), level };
    Ok(Estimate { point: r, interval, n: x.len(), method: Method::FisherZ })
}

/// Spearman's rho: Pearson's r of mid-ranks.
///
/// # Errors
/// As [`pearson`].
pub fn spearman(x: &[f64], y: &[f64]) -> Defined {
    require_varying(x, y)?;
    pearson(&mid_ranks(x), &mid_ranks(y))
}

/// The pair counts of Kendall's statistics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairCounts {
    /// Pairs ordered alike.
    pub concordant: u64,
    /// Pairs ordered oppositely.
    pub discordant: u64,
    /// Pairs tied in x, whether or not tied in y.
    pub tied_x: u64,
    /// Pairs tied in y, whether or not tied in x.
    pub tied_y: u64,
    /// Pairs tied in both.
    pub tied_both: u64,
    /// All pairs.
    pub pairs: u64,
}

fn pairs_of(size: usize) -> u64 {
    (size as u64) * (size as u64).saturating_sub(1) / 2
}

/// Counts concordant and discordant pairs by merge sort.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`.
pub fn pair_counts(x: &[f64], y: &[f64]) -> Defined<PairCounts> {
    require_pairs(x, y)?;
    let mut order: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // -0.0 sorts before 0.0 yet is equal to it; make them one so that ties are seen.
    for pair in &mut order {
        pair.0 += 0.0;
        pair.1 += 0.0;
    }
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let tied_both = order.chunk_by(|a, b| a == b).map(|group| pairs_of(group.len())).sum::<u64>();
    let tied_x = order.chunk_by(|a, b| a.0 == b.0).map(|g| pairs_of(g.len())).sum::<u64>();
    let tied_y = tie_sizes(&sorted(y)).into_iter().map(pairs_of).sum::<u64>();
    let mut values: Vec<f64> = order.into_iter().map(|pair| pair.1).collect();
    let mut buffer = values.clone();
    let discordant = count_inversions(&mut values, &mut buffer);
    let pairs = pairs_of(x.len());
    let concordant = pairs + tied_both - discordant - tied_x - tied_y;
    Ok(PairCounts { concordant, discordant, tied_x, tied_y, tied_both, pairs })
}

fn count_inversions(values: &mut [f64], buffer: &mut [f64]) -> u64 {
    let n = values.len();
    let mut inversions = 0u64;
    let mut width = 1;
    while width < n {
        for start in (0..n).step_by(2 * width) {
            let (middle, end) = ((start + width).min(n), (start + 2 * width).min(n));
            let (mut i, mut j) = (start, middle);
            for slot in &mut buffer[start..end] {
                if j >= end || (i < middle && values[i] <= values[j]) {
                    *slot = values[i];
                    i += 1;
                } else {
                    inversions += (middle - i) as u64;
                    *slot = values[j];
                    j += 1;
                }
            }
        }
        values.copy_from_slice(buffer);
        width *= 2;
    }
    inversions
}

/// Kendall's tau-b = (C - D) / sqrt((P - Tx)(P - Ty)) (1945), in \[-1,1\].
///
/// # Errors
/// As [`pearson`].
pub fn kendall_tau_b(x: &[f64], y: &[f64]) -> Defined {
    require_varying(x, y)?;
    let counts = pair_counts(x, y)?;
    let difference = counts.concordant as f64 - counts.discordant as f64;
    let scale = ((counts.pairs - counts.tied_x) as f64).sqrt()
        * ((counts.pairs - counts.tied_y) as f64).sqrt();
    Ok((difference / scale).clamp(-1.0, 1.0))
}

/// Stuart's tau-c = 2m (C - D) / (n^2 (m - 1)), m the smaller number of distinct values.
///
/// # Errors
/// As [`pearson`].
pub fn kendall_tau_c(x: &[f64], y: &[f64]) -> Defined {
    require_varying(x, y)?;
    let counts = pair_counts(x, y)?;
    let m = tie_sizes(&sorted(x)).len().min(tie_sizes(&sorted(y)).len()) as f64;
    let n = x.len() as f64;
    let difference = counts.concordant as f64 - counts.discordant as f64;
    Ok(2.0 * m * difference / (n * n * (m - 1.0)))
}

/// Two-sided p-value of Kendall's tau: exact without ties up to 33 pairs (or when nearly
/// perfectly ordered), else normal with the tie-corrected variance (Kendall 1970).
///
/// # Errors
/// As [`pearson`].
pub fn kendall_p(x: &[f64], y: &[f64]) -> Defined {
    require_varying(x, y)?;
    let counts = pair_counts(x, y)?;
    let n = x.len();
    let extreme = counts.discordant.min(counts.pairs - counts.discordant);
    if counts.tied_x == 0 && counts.tied_y == 0 && (n <= 33 || (extreme <= 1 && n <= 170)) {
        return Ok(kendall_exact(n, extreme, counts.pairs));
    }
    let size = n as f64;
    let sums = |values: &[f64]| {
        tie_sizes(&sorted(values)).into_iter().fold((0.0, 0.0, 0.0), |(a, b, c), t| {
            let t = t as f64;
            let pairs = t * (t - 1.0);
            (a + pairs, b + pairs * (t - 2.0), c + pairs * (2.0 * t + 5.0))
        })
    };
    let ((x0, x1, x2), (y0, y1, y2)) = (sums(x), sums(y));
    let m = size * (size - 1.0);
    let mut variance = (m * (2.0 * size + 5.0) - x2 - y2) / 18.0 + x0 * y0 / (2.0 * m);
    if n > 2 {
        variance += x1 * y1 / (9.0 * m * (size - 2.0));
    }
    let difference = counts.concordant as f64 - counts.discordant as f64;
    Ok(normal_two_sided(difference / variance.sqrt()))
}

/// P of at most `extreme` inversions or at least their mirror, all orders equally likely.
fn kendall_exact(n: usize, extreme: u64, pairs: u64) -> f64 {
    if 2 * extreme >= pairs {
        return 1.0;
    }
    let limit = extreme as usize;
    let mut probability = vec![0.0; limit + 1];
    probability[0] = 1.0;
    for size in 2..=n {
        // A new element adds 0..size-1 inversions, equally likely: a sliding mean.
        let mut next = vec![0.0; limit + 1];
        let mut window = 0.0;
        for k in 0..=limit {
            window += probability[k];
            if k >= size {
                window -= probability[k - size];
            }
            next[k] = window / size as f64;
        }
        probability = next;
    }
    (2.0 * probability.iter().sum::<f64>()).min(1.0)
}

/// Somers' D of y given x = (C - D) / (P - Tx) (1962), in \[-1,1\].
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`; `constant_input` when x is constant.
pub fn somers_d(x: &[f64], y: &[f64]) -> Defined {
    let counts = pair_counts(x, y)?;
    if counts.pairs == counts.tied_x {
        return undefined(Reason::ConstantInput);
    }
    let difference = counts.concordant as f64 - counts.discordant as f64;
    Ok(difference / (counts.pairs - counts.tied_x) as f64)
}

/// Lin's concordance = 2 Sxy / (Sxx + Syy + n (mx - my)^2) with variances over n (1989),
/// in \[-1,1\]. Falls below Pearson's r when the scales differ.
///
/// # Errors
/// As [`pearson`].
pub fn lin_concordance(x: &[f64], y: &[f64]) -> Defined {
    require_varying(x, y)?;
    let n = x.len() as f64;
    let shift = raw_mean(x) - raw_mean(y);
    Ok(2.0 * sum_of_products(x, y) / (sum_of_squares(x) + sum_of_squares(y) + n * shift * shift))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_pairs(x: &[f64], y: &[f64]) -> (u64, u64) {
        let (mut c, mut d) = (0, 0);
        for i in 0..x.len() {
            for j in 0..i {
                let s = (x[i] - x[j]) * (y[i] - y[j]);
                c += u64::from(s > 0.0);
                d += u64::from(s < 0.0);
            }
        }
        (c, d)
    }

    proptest! {
        #[test]
        fn merge_sort_counts_the_same_pairs(
            rows in prop::collection::vec((0u8..6, 0u8..6), 1..60)
        ) {
            let x: Vec<f64> = rows.iter().map(|r| f64::from(r.0)).collect();
            let y: Vec<f64> = rows.iter().map(|r| f64::from(r.1)).collect();
            let counts = pair_counts(&x, &y).unwrap();
            prop_assert_eq!((counts.concordant, counts.discordant), by_pairs(&x, &y));
        }

        #[test]
        fn correlations_ignore_increasing_maps_and_stay_in_range(
            rows in prop::collection::vec((-5.0f64..5.0, -5.0f64..5.0), 4..40)
        ) {
            let (x, y): (Vec<f64>, Vec<f64>) = rows.into_iter().unzip();
            let stretched: Vec<f64> = x.iter().map(|v| v.exp() * 3.0).collect();
            for f in [kendall_tau_b, spearman, somers_d] {
                let (a, b) = (f(&x, &y).unwrap(), f(&stretched, &y).unwrap());
                prop_assert!((a - b).abs() < 1e-12 && a.abs() <= 1.0 + 1e-12);
            }
            prop_assert!(lin_concordance(&x, &y).unwrap() <= pearson(&x, &y).unwrap().abs() + 1e-12);
        }
    }

    #[test]
    fn constants_pairs_and_nan_are_undefined() {
        let line = [1.0, 2.0, 3.0];
        for f in [pearson, spearman, kendall_tau_b, kendall_tau_c, kendall_p, lin_concordance] {
            assert_eq!(f(&[2.0; 3], &line).unwrap_err().reason, Reason::ConstantInput);
            assert_eq!(f(&line, &[1.0]).unwrap_err().reason, Reason::LengthMismatch);
            assert_eq!(f(&[], &[]).unwrap_err().reason, Reason::NoData);
            assert_eq!(f(&line, &[1.0, f64::NAN, 2.0]).unwrap_err().reason, Reason::NotFinite);
        }
        assert!(somers_d(&[1.0; 3], &line).is_err());
    }

    #[test]
    fn negative_zero_ties_with_zero() {
        let counts = pair_counts(&[0.0, -0.0, 1.0], &[2.0, 1.0, -0.0]).unwrap();
        assert_eq!((counts.tied_x, counts.concordant, counts.discordant), (1, 0, 2));
    }

    #[test]
    fn the_exact_p_of_perfect_order_is_two_over_n_factorial() {
        let x: Vec<f64> = (0..5).map(f64::from).collect();
        assert!((kendall_p(&x, &x).unwrap() - 2.0 / 120.0).abs() < 1e-15);
    }
}
