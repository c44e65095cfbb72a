//! Area under the ROC curve with DeLong's interval, its points, and average precision.

use serde::{Deserialize, Serialize};

use super::distribution::{normal_critical, normal_two_sided};
use super::summary::{mid_ranks, sum_of_products, sum_of_squares};
use super::undefined::{Defined, Reason, require_finite, require_open_unit, undefined};
use super::{Estimate, Interval, Method};

/// One point of the ROC curve, accepting scores at or above the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RocPoint {
    /// The threshold; an observed score.
    pub threshold: f64,
    /// Accepted bad cases.
    pub false_positive: u64,
    /// Accepted good cases.
    pub true_positive: u64,
}

/// DeLong's result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AreaUnderCurve {
    /// Area and normal interval, not clipped.
    pub estimate: Estimate,
    /// DeLong variance.
    pub variance: f64,
}

fn split(score: &[f64], good: &[bool]) -> Defined<(Vec<f64>, Vec<f64>)> {
    if score.len() != good.len() {
        return undefined(Reason::LengthMismatch);
    }
    require_finite(score)?;
    let of = |class: bool| -> Vec<f64> {
        score.iter().zip(good).filter(|(_, g)| **g == class).map(|(s, _)| *s).collect()
    };
    let (positive, negative) = (of(true), of(false));
    if positive.is_empty() {
        return undefined(Reason::NoPositives);
    }
    if negative.is_empty() {
        return undefined(Reason::NoNegatives);
    }
    Ok((positive, negative))
}

/// Placement values: for each positive the share of negatives below it, and the reverse.
fn placements(positive: &[f64], negative: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (m, n) = (positive.len() as f64, negative.len() as f64);
    let all: Vec<f64> = positive.iter().chain(negative).copied().collect();
    let (pooled, own, other) = (mid_ranks(&all), mid_ranks(positive), mid_ranks(negative));
    let v10 = own.iter().zip(&pooled).map(|(r, p)| (p - r) / n).collect();
    let v01 = other.iter().zip(&pooled[positive.len()..]).map(|(r, p)| 1.0 - (p - r) / m).collect();
    (v10, v01)
}

/// AUC = P(score of a good case > of a bad case) + half the ties (Hanley and McNeil 1982),
/// in \[0,1\]; O(n log n).
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `no_positives`, `no_negatives`.
pub fn auc(score: &[f64], good: &[bool]) -> Defined {
    let (positive, negative) = split(score, good)?;
    let (v10, _) = placements(&positive, &negative);
    Ok(v10.iter().sum::<f64>() / v10.len() as f64)
}

/// AUC with the variance of DeLong, DeLong and Clarke-Pearson (1988).
///
/// # Errors
/// As [`auc`]; `too_few_values` when a class has one case.
pub fn delong(score: &[f64], good: &[bool], level: f64) -> Defined<AreaUnderCurve> {
    require_open_unit(level)?;
    let (positive, negative) = split(score, good)?;
    let (m, n) = (positive.len() as f64, negative.len() as f64);
    if positive.len() < 2 || negative.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    let (v10, v01) = placements(&positive, &negative);
    let point = v10.iter().sum::<f64>() / m;
    let variance = sum_of_squares(&v10) / (m - 1.0) / m + sum_of_squares(&v01) / (n - 1.0) / n;
    let interval = Interval::around(point, normal_critical(level) * variance.sqrt(), level);
    let estimate = Estimate { point, interval, n: score.len(), method: Method::DeLong };
    Ok(AreaUnderCurve { estimate, variance })
}

/// Difference of two AUCs on the same cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AucDifference {
    /// First minus second, with a normal interval.
    pub estimate: Estimate,
    /// Two-sided p-value; 1 for identical rankings.
    pub p: f64,
}

/// Paired DeLong comparison of two judges on the same cases.
///
/// # Errors
/// As [`delong`].
pub fn delong_difference(
    first: &[f64],
    second: &[f64],
    good: &[bool],
    level: f64,
) -> Defined<AucDifference> {
    require_open_unit(level)?;
    let (a, b) = (split(first, good)?, split(second, good)?);
    let (m, n) = (a.0.len() as f64, a.1.len() as f64);
    if m < 2.0 || n < 2.0 {
        return undefined(Reason::TooFewValues);
    }
    let (a10, a01) = placements(&a.0, &a.1);
    let (b10, b01) = placements(&b.0, &b.1);
    let point = (a10.iter().sum::<f64>() - b10.iter().sum::<f64>()) / m;
    let part = |x: &[f64], y: &[f64], size: f64| {
        (sum_of_squares(x) + sum_of_squares(y) - 2.0 * sum_of_products(x, y)) / (size - 1.0) / size
    };
    let deviation = (part(&a10, &b10, m) + part(&a01, &b01, n)).max(0.0).sqrt();
    let p = if point == 0.0 { 1.0 } else { normal_two_sided(point / deviation) };
    let interval = Interval::around(point, normal_critical(level) * deviation, level);
    let estimate = Estimate { point, interval, n: good.len(), method: Method::DeLong };
    Ok(AucDifference { estimate, p })
}

/// ROC points at every distinct score, from the strictest threshold to the most lenient.
///
/// # Errors
/// As [`auc`].
pub fn roc(score: &[f64], good: &[bool]) -> Defined<Vec<RocPoint>> {
    split(score, good)?;
    let mut order: Vec<usize> = (0..score.len()).collect();
    order.sort_unstable_by(|&i, &j| score[j].total_cmp(&score[i]));
    let (mut false_positive, mut true_positive) = (0, 0);
    Ok(order
        .chunk_by(|&i, &j| score[i] == score[j])
        .map(|group| {
            let hits = group.iter().filter(|&&i| good[i]).count() as u64;
            true_positive += hits;
            false_positive += group.len() as u64 - hits;
            RocPoint { threshold: score[group[0]], false_positive, true_positive }
        })
        .collect())
}

/// Average precision = sum of precision times the gain in recall over distinct thresholds,
/// in (0,1].
///
/// # Errors
/// As [`auc`], without `no_negatives`.
pub fn average_precision(score: &[f64], good: &[bool]) -> Defined {
    if score.len() == good.len() && !good.is_empty() && good.iter().all(|g| *g) {
        require_finite(score)?;
        return Ok(1.0);
    }
    let points = roc(score, good)?;
    let positives = good.iter().filter(|g| **g).count() as f64;
    let mut before = 0;
    Ok(points
        .iter()
        .map(|point| {
            let gain = (point.true_positive - before) as f64 / positives;
            before = point.true_positive;
            gain * point.true_positive as f64 / (point.true_positive + point.false_positive) as f64
        })
        .sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_area_counts_ordered_pairs(
            rows in prop::collection::vec((0u8..8, any::<bool>()), 2..60)
        ) {
            let (s, y): (Vec<f64>, Vec<bool>) =
                rows.into_iter().map(|r| (f64::from(r.0), r.1)).unzip();
            if let Ok(area) = auc(&s, &y) {
                let (mut wins, mut pairs) = (0.0, 0.0);
                for i in (0..s.len()).filter(|&i| y[i]) {
                    for j in (0..s.len()).filter(|&j| !y[j]) {
                        pairs += 1.0;
                        wins += if s[i] > s[j] { 1.0 } else if s[i] == s[j] { 0.5 } else { 0.0 };
                    }
                }
                prop_assert!((area - wins / pairs).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_constant_judge_has_area_one_half() {
        assert_eq!(auc(&[1.0; 4], &[true, false, true, false]), Ok(0.5));
    }

    #[test]
    fn one_class_has_no_area() {
        assert_eq!(auc(&[1.0, 2.0], &[true, true]).unwrap_err().reason, Reason::NoNegatives);
        assert_eq!(auc(&[1.0, 2.0], &[false; 2]).unwrap_err().reason, Reason::NoPositives);
        assert_eq!(auc(&[f64::NAN], &[true]).unwrap_err().reason, Reason::NotFinite);
        assert_eq!(average_precision(&[1.0, 2.0], &[true; 2]), Ok(1.0));
    }

    #[test]
    fn identical_judges_differ_with_p_one() {
        let (s, y) = ([0.1, 0.4, 0.35, 0.8], [false, false, true, true]);
        assert_eq!(delong_difference(&s, &s, &y, 0.95).unwrap().p, 1.0);
    }
}
