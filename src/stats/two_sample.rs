//! Do two samples of scores come from one distribution? Kolmogorov-Smirnov, Mann-Whitney,
//! Wasserstein distance.

use super::distribution::normal_two_sided;
use super::paired::TestResult;
use super::summary::{mid_ranks, sorted, tie_sizes};
use super::undefined::{Defined, require_finite};

/// Beyond this many lattice points the p-value is the limiting one.
const EXACT_CELLS: usize = 10_000_000;

/// Two-sample Kolmogorov-Smirnov, two-sided: D = max |F - G|. The p-value is exact by
/// counting lattice paths (Hodges 1958) up to ten million cells, else Kolmogorov's limit.
/// Ties make the exact p-value conservative.
///
/// # Errors
/// `no_data`, `not_finite`.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Defined<TestResult> {
    require_finite(a)?;
    require_finite(b)?;
    let (x, y) = (sorted(a), sorted(b));
    let (m, n) = (x.len(), y.len());
    // Distances stay integers, |i n - j m|, so that equal ones compare equal.
    let (mut i, mut j, mut largest) = (0usize, 0usize, 0u64);
    while i < m && j < n {
        let at = x[i].min(y[j]);
        while i < m && x[i] <= at {
            i += 1;
        }
        while j < n && y[j] <= at {
            j += 1;
        }
        largest = largest.max(((i * n) as u64).abs_diff((j * m) as u64));
    }
    let statistic = largest as f64 / (m as f64 * n as f64);
    let p = if m.saturating_mul(n) <= EXACT_CELLS {
        ks_exact(m, n, largest)
    } else {
        let effective = (m as f64 * n as f64) / (m + n) as f64;
        kolmogorov_sf(statistic * effective.sqrt())
    };
    Ok(TestResult { statistic, p })
}

/// Probability that a random path from (0,0) to (m,n) reaches a distance of `limit`.
fn ks_exact(m: usize, n: usize, limit: u64) -> f64 {
    if limit == 0 {
        return 1.0;
    }
    let outside = |i: usize, j: usize| ((i * n) as u64).abs_diff((j * m) as u64) >= limit;
    let mut row = vec![0.0f64; n + 1];
    for i in 0..=m {
        for j in 0..=n {
            row[j] = if outside(i, j) {
                1.0
            } else if i + j == 0 {
                0.0
            } else {
                // A uniform path came from the left with odds j to i.
                let steps = (i + j) as f64;
                let left = if j > 0 { row[j - 1] * j as f64 } else { 0.0 };
                let above = if i > 0 { row[j] * i as f64 } else { 0.0 };
                (left + above) / steps
            };
        }
    }
    row[n].min(1.0)
}

fn kolmogorov_sf(x: f64) -> f64 {
    if x < 0.2 {
        return 1.0;
    }
    let sum: f64 = (1..=100)
        .map(|k| {
            let k = f64::from(k);
            let sign = if k % 2.0 == 1.0 { 1.0 } else { -1.0 };
            sign * (-2.0 * k * k * x * x).exp()
        })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// Wasserstein-1 distance, the area between the two distribution functions.
///
/// # Errors
/// `no_data`, `not_finite`.
pub fn wasserstein(a: &[f64], b: &[f64]) -> Defined {
    require_finite(a)?;
    require_finite(b)?;
    let (x, y) = (sorted(a), sorted(b));
    let all = sorted(&x.iter().chain(&y).copied().collect::<Vec<f64>>());
    let (mut i, mut j, mut area) = (0usize, 0usize, 0.0);
    for pair in all.windows(2) {
        while i < x.len() && x[i] <= pair[0] {
            i += 1;
        }
        while j < y.len() && y[j] <= pair[0] {
            j += 1;
        }
        let gap = i as f64 / x.len() as f64 - j as f64 / y.len() as f64;
        area += gap.abs() * (pair[1] - pair[0]);
    }
    Ok(area)
}

/// Mann-Whitney U of the first sample (1947), two-sided. Exact when the smaller sample has
/// at most 8 values and there are no ties, else normal with continuity and tie correction.
///
/// # Errors
/// `no_data`, `not_finite`.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Defined<TestResult> {
    require_finite(a)?;
    require_finite(b)?;
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = mid_ranks(&all);
    let (m, n) = (a.len(), b.len());
    let rank_sum: f64 = ranks[..m].iter().sum();
    let u = rank_sum - (m * (m + 1)) as f64 / 2.0;
    let product = (m * n) as f64;
    let larger = u.max(product - u);
    let ties = tie_sizes(&sorted(&all));
    if m.min(n) <= 8 && ties.iter().all(|t| *t == 1) && m.max(n) <= 5000 {
        return Ok(TestResult { statistic: u, p: mann_whitney_exact(m, n, larger as usize) });
    }
    let total = (m + n) as f64;
    let correction: f64 = ties.iter().map(|t| (*t as f64).powi(3) - *t as f64).sum();
    let variance = product / 12.0 * (total + 1.0 - correction / (total * (total - 1.0)));
    if variance <= 0.0 {
        // Every value is the same: nothing speaks for a difference.
        return Ok(TestResult { statistic: u, p: 1.0 });
    }
    let z = (larger - product / 2.0 - 0.5) / variance.sqrt();
    let p = if z <= 0.0 { 1.0 } else { normal_two_sided(z) };
    Ok(TestResult { statistic: u, p })
}

/// `min(1, 2 P(U >= u))` with all orders equally likely.
fn mann_whitney_exact(m: usize, n: usize, u: usize) -> f64 {
    let (small, large) = (m.min(n), m.max(n));
    let size = small * large;
    // P(sum of s uniform parts) by the recursion over the largest element's sample.
    let mut table = vec![vec![0.0f64; size + 1]; small + 1];
    table.iter_mut().for_each(|row| row[0] = 1.0);
    for j in 1..=large {
        for i in 1..=small {
            let (before, rest) = table.split_at_mut(i);
            let (share_i, share_j) = (i as f64 / (i + j) as f64, j as f64 / (i + j) as f64);
            let row = &mut rest[0];
            // rest[0] still holds (i, j-1); before[i-1] already holds (i-1, j).
            for value in (0..=size).rev() {
                let from_i = if value >= j { before[i - 1][value - j] } else { 0.0 };
                row[value] = share_i * from_i + share_j * row[value];
            }
        }
    }
    (2.0 * table[small][u..].iter().sum::<f64>()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_separation_has_the_combinatorial_p_value() {
        let (a, b) = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]);
        // 2 of the C(7,3) = 35 orders separate completely.
        assert!((kolmogorov_smirnov(&a, &b).unwrap().p - 2.0 / 35.0).abs() < 1e-14);
        let u = mann_whitney(&a, &b).unwrap();
        assert_eq!(u.statistic, 0.0);
        assert!((u.p - 2.0 / 35.0).abs() < 1e-14, "{}", u.p);
    }

    #[test]
    fn the_exact_u_distribution_sums_to_one() {
        // P(U >= 0) doubled is capped; the middle splits in half.
        assert_eq!(mann_whitney_exact(3, 4, 0), 1.0);
        let upper = mann_whitney_exact(3, 5, 8) / 2.0;
        let lower = 1.0 - upper;
        assert!((upper - lower).abs() < 1e-12, "{upper}");
    }

    #[test]
    fn identical_samples_do_not_differ() {
        let a = [0.1, 0.5, 0.9];
        let ks = kolmogorov_smirnov(&a, &a).unwrap();
        assert_eq!((ks.statistic, ks.p), (0.0, 1.0));
        assert_eq!(wasserstein(&a, &a), Ok(0.0));
        assert_eq!(mann_whitney(&[1.0; 9], &[1.0; 9]).unwrap().p, 1.0);
        assert!(kolmogorov_smirnov(&[], &a).is_err() && wasserstein(&a, &[f64::NAN]).is_err());
    }

    #[test]
    fn a_shift_is_its_own_distance() {
        assert!((wasserstein(&[0.0, 1.0], &[0.25, 1.25]).unwrap() - 0.25).abs() < 1e-15);
    }
}
