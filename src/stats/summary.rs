//! Means, variances, ranks and order statistics that the other files share.

use super::undefined::{Defined, Reason, require_finite, undefined};

/// Arithmetic mean.
///
/// # Errors
/// `no_data`, `not_finite`.
pub fn mean(values: &[f64]) -> Defined {
    require_finite(values)?;
    Ok(raw_mean(values))
}

pub(crate) fn raw_mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of squared deviations from the mean (two passes).
pub(crate) fn sum_of_squares(values: &[f64]) -> f64 {
    let m = raw_mean(values);
    values.iter().map(|v| (v - m) * (v - m)).sum()
}

/// Sum of products of deviations.
pub(crate) fn sum_of_products(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (raw_mean(x), raw_mean(y));
    x.iter().zip(y).map(|(a, b)| (a - mx) * (b - my)).sum()
}

/// Whether all values are the same (a constant judge), or so close that the squares of
/// their deviations vanish.
pub(crate) fn is_constant(values: &[f64]) -> bool {
    values.windows(2).all(|w| w[0] == w[1]) || sum_of_squares(values) == 0.0
}

/// Unbiased sample variance, divisor n - 1.
///
/// # Errors
/// `too_few_values` below two, `not_finite`.
pub fn variance(values: &[f64]) -> Defined {
    require_finite(values)?;
    if values.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    Ok(sum_of_squares(values) / (values.len() - 1) as f64)
}

/// Sorted copy.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// Median, the mean of the two middle values when their number is even.
///
/// # Errors
/// `no_data`, `not_finite`.
pub fn median(values: &[f64]) -> Defined {
    require_finite(values)?;
    Ok(median_of_sorted(&sorted(values)))
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]) }
}

/// Quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan
/// 1996) of values already sorted; `p` in \[0,1\].
///
/// # Errors
/// `no_data`, `out_of_range`.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> Defined {
    if sorted.is_empty() {
        return undefined(Reason::NoData);
    }
    if !(0.0..=1.0).contains(&p) {
        return undefined(Reason::OutOfRange);
    }
    let position = p * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Ok(sorted[below] + (position - below as f64) * (sorted[above] - sorted[below]))
}

/// Mid-ranks, 1-based; ties share the mean of their ranks.
#[must_use]
pub fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && values[order[end]] == values[order[start]] {
            end += 1;
        }
        let rank = (start + end + 1) as f64 / 2.0;
        for &i in &order[start..end] {
            ranks[i] = rank;
        }
        start = end;
    }
    ranks
}

/// Sizes of the groups of equal values.
pub(crate) fn tie_sizes(sorted: &[f64]) -> Vec<usize> {
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_mean_rank() {
        assert_eq!(mid_ranks(&[2.0, 1.0, 2.0, 3.0]), [2.5, 1.0, 2.5, 4.0]);
        assert!(mid_ranks(&[]).is_empty());
    }

    #[test]
    fn nothing_and_nan_have_no_mean() {
        assert_eq!(mean(&[]).unwrap_err().reason, Reason::NoData);
        assert_eq!(median(&[1.0, f64::NAN]).unwrap_err().reason, Reason::NotFinite);
        assert_eq!(variance(&[1.0]).unwrap_err().reason, Reason::TooFewValues);
    }
}
