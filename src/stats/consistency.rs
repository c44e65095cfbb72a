//! Does a judge agree with itself? Repeats of one question, and both orders of a pair.
//!
//! Identical cached replies show no variation by construction; only fresh repeats count.

use serde::Serialize;

use super::agreement::fleiss_kappa;
use super::paired::sign_test;
use super::undefined::{
    Defined, Reason, require_finite, require_usable, serialize_defined, undefined,
};

/// Test-retest agreement over repeats of each item.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SelfConsistency {
    /// Mean over items of the share of equal pairs of repeats.
    pub pairwise_agreement: f64,
    /// `1 - pairwise_agreement`: the chance that asking again changes the answer.
    pub flip_rate: f64,
    /// Share of items with equal repeats throughout.
    pub unanimous: f64,
    /// Mean over items of the sample variance of the repeats.
    pub within_item_variance: f64,
    /// Variance within items over variance of all values around their mean (n - 1).
    #[serde(serialize_with = "serialize_defined")]
    pub noise_share: Defined,
    /// Fleiss' kappa with repeats as raters; needs equally many repeats.
    #[serde(serialize_with = "serialize_defined")]
    pub fleiss: Defined,
    /// Items with two or more repeats.
    pub n: usize,
}

/// Self-consistency of items x repeats; items with fewer than two repeats are left out.
///
/// # Errors
/// `no_data`, `not_finite`; `too_few_raters` when no item has two repeats.
pub fn self_consistency(items: &[Vec<f64>]) -> Defined<SelfConsistency> {
    if items.is_empty() {
        return undefined(Reason::NoData);
    }
    require_usable(items.iter().flatten())?;
    let repeated: Vec<&Vec<f64>> = items.iter().filter(|r| r.len() >= 2).collect();
    if repeated.is_empty() {
        return undefined(Reason::TooFewRaters);
    }
    let mut values: Vec<f64> = repeated.iter().flat_map(|r| r.iter().copied()).collect();
    let total = super::summary::sum_of_squares(&values) / (values.len() - 1) as f64;
    values.sort_unstable_by(f64::total_cmp);
    values.dedup_by(|a, b| a == b);
    let counts: Vec<Vec<u64>> = repeated
        .iter()
        .map(|row| {
            let mut counts = vec![0; values.len()];
            row.iter().for_each(|v| counts[values.partition_point(|x| x < v)] += 1);
            counts
        })
        .collect();
    let n = repeated.len() as f64;
    let pairwise = counts
        .iter()
        .map(|row| {
            let m = row.iter().sum::<u64>();
            row.iter().map(|c| c * c.saturating_sub(1)).sum::<u64>() as f64 / (m * (m - 1)) as f64
        })
        .sum::<f64>()
        / n;
    let unanimous =
        counts.iter().filter(|row| row.iter().filter(|c| **c > 0).count() == 1).count() as f64 / n;
    let within = repeated
        .iter()
        .map(|row| super::summary::sum_of_squares(row) / (row.len() - 1) as f64)
        .sum::<f64>()
        / n;
    Ok(SelfConsistency {
        pairwise_agreement: pairwise,
        flip_rate: 1.0 - pairwise,
        unanimous,
        within_item_variance: within,
        noise_share: if total == 0.0 {
            undefined(Reason::ConstantInput)
        } else {
            Ok(within / total)
        },
        fleiss: fleiss_kappa(&counts).and_then(|f| f.kappa),
        n: repeated.len(),
    })
}

/// Share of decisions at or above a threshold that change between repeats: the mean over
/// items of the disagreeing pairs.
///
/// # Errors
/// As [`self_consistency`].
pub fn decision_flip_rate(items: &[Vec<f64>], threshold: f64) -> Defined {
    require_finite(&[threshold])?;
    let decisions: Vec<Vec<f64>> = items
        .iter()
        .map(|row| {
            row.iter()
                .map(|v| if v.is_nan() { *v } else { f64::from(u8::from(*v >= threshold)) })
                .collect()
        })
        .collect();
    self_consistency(&decisions).map(|c| c.flip_rate)
}

/// Pairwise judgements asked in both orders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PositionBias {
    /// Share of pairs with the same winner in both orders.
    pub consistency: f64,
    /// Pairs won by whichever output stood first.
    pub first_position_flips: u64,
    /// Pairs won by whichever output stood second.
    pub second_position_flips: u64,
    /// Exact sign test between the two; 1 without flips.
    pub p: f64,
    /// Pairs.
    pub n: u64,
}

/// `first[i]`: A wins pair i when shown first; `swapped[i]`: A wins when shown second.
///
/// # Errors
/// `length_mismatch`, `no_data`.
pub fn position_bias(first: &[bool], swapped: &[bool]) -> Defined<PositionBias> {
    if first.len() != swapped.len() {
        return undefined(Reason::LengthMismatch);
    }
    if first.is_empty() {
        return undefined(Reason::NoData);
    }
    let count = |a: bool, b: bool| {
        first.iter().zip(swapped).filter(|(x, y)| **x == a && **y == b).count() as u64
    };
    let (front, back) = (count(true, false), count(false, true));
    let n = first.len() as u64;
    Ok(PositionBias {
        consistency: (n - front - back) as f64 / n as f64,
        first_position_flips: front,
        second_position_flips: back,
        p: sign_test(front, back),
        n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_that_never_varies_is_unanimous_without_kappa() {
        let c = self_consistency(&[vec![1.0, 1.0], vec![1.0, 1.0]]).unwrap();
        assert_eq!((c.flip_rate, c.unanimous, c.within_item_variance), (0.0, 1.0, 0.0));
        assert_eq!(c.fleiss.unwrap_err().reason, Reason::SingleValue);
        assert_eq!(c.noise_share.unwrap_err().reason, Reason::ConstantInput);
    }

    #[test]
    fn single_answers_and_nan_are_undefined() {
        let f = |r: &[Vec<f64>]| self_consistency(r).unwrap_err().reason;
        assert_eq!(f(&[]), Reason::NoData);
        assert_eq!(f(&[vec![1.0]]), Reason::TooFewRaters);
        assert_eq!(f(&[vec![1.0, f64::NAN]]), Reason::NotFinite);
        assert!(decision_flip_rate(&[vec![f64::NAN, 1.0]], 0.5).is_err());
        assert_eq!(decision_flip_rate(&[vec![0.6, 0.7], vec![0.4, 0.6]], 0.5), Ok(0.5));
    }

    #[test]
    fn no_flips_mean_no_position_bias() {
        let b = position_bias(&[true, false], &[true, false]).unwrap();
        assert_eq!((b.consistency, b.p), (1.0, 1.0));
        assert!(position_bias(&[], &[]).is_err());
    }
}
