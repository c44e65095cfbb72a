//! How a panel's votes become one number.
//!
//! Votes are present ones only: a missing judge is left out by the caller, never a zero.

use serde::{Deserialize, Serialize};

use super::summary::{median_of_sorted, raw_mean, sorted};
use super::undefined::{Defined, Reason, require_finite, require_pairs, undefined};

/// Lower median: the middle vote, the lower of the two middle ones when even. Always a
/// vote that was given; breaks down only when half the panel is wrong.
///
/// # Errors
/// `no_data`, `not_finite`.
pub fn lower_median(votes: &[f64]) -> Defined {
    require_finite(votes)?;
    Ok(sorted(votes)[(votes.len() - 1) / 2])
}

/// Upper median: the higher of the two middle votes when even.
///
/// # Errors
/// As [`lower_median`].
pub fn upper_median(votes: &[f64]) -> Defined {
    require_finite(votes)?;
    Ok(sorted(votes)[votes.len() / 2])
}

/// The decision key (lower median, mean), ordered lexicographically: resolution survives
/// where coarse scores tie.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct DecisionKey {
    /// Lower median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
}

/// [`DecisionKey`] of the votes.
///
/// # Errors
/// As [`lower_median`].
pub fn decision_key(votes: &[f64]) -> Defined<DecisionKey> {
    // Summed in order of size, so that the same votes in any order give the same key.
    let ordered = sorted(votes);
    Ok(DecisionKey { median: lower_median(votes)?, mean: raw_mean(&ordered) })
}

fn require_weights(votes: &[f64], weights: &[f64]) -> Defined<f64> {
    require_pairs(votes, weights)?;
    let total: f64 = weights.iter().sum();
    if total <= 0.0 || weights.iter().any(|w| *w < 0.0) {
        return undefined(Reason::BadWeights);
    }
    Ok(total)
}

/// Lower weighted median: the smallest vote whose cumulative weight reaches half.
///
/// # Errors
/// As [`lower_median`]; `length_mismatch`; `bad_weights` for a negative weight or none.
pub fn weighted_median(votes: &[f64], weights: &[f64]) -> Defined {
    let total = require_weights(votes, weights)?;
    let mut order: Vec<(f64, f64)> =
        votes.iter().copied().zip(weights.iter().copied()).filter(|(_, w)| *w > 0.0).collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut cumulative = 0.0;
    for &(vote, weight) in &order {
        cumulative += weight;
        // Thirds and tenths do not add up exactly; half within rounding counts as reached.
        if cumulative >= total / 2.0 - 1e-12 * total {
            return Ok(vote);
        }
    }
    order.last().map_or(undefined(Reason::NoData), |(vote, _)| Ok(*vote))
}

/// Weighted mean.
///
/// # Errors
/// As [`weighted_median`].
pub fn weighted_mean(votes: &[f64], weights: &[f64]) -> Defined {
    let total = require_weights(votes, weights)?;
    Ok(votes.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total)
}

/// Mean after leaving out `floor(share m)` votes at each end; `share` in [0, 1/2).
///
/// # Errors
/// As [`lower_median`]; `out_of_range` for the share.
pub fn trimmed_mean(votes: &[f64], share: f64) -> Defined {
    require_finite(votes)?;
    if !(0.0..0.5).contains(&share) {
        return undefined(Reason::OutOfRange);
    }
    let ordered = sorted(votes);
    // 0.2 * 5 must cut one vote, not none, whatever the rounding of the product.
    let cut = (share * votes.len() as f64 + 1e-9).floor() as usize;
    Ok(raw_mean(&ordered[cut..ordered.len() - cut]))
}

/// Hodges-Lehmann: the median of all pairwise means, each vote with itself included
/// (1963); breakdown about 29 %.
///
/// # Errors
/// As [`lower_median`].
pub fn hodges_lehmann(votes: &[f64]) -> Defined {
    require_finite(votes)?;
    let mut means: Vec<f64> = (0..votes.len())
        .flat_map(|i| (i..votes.len()).map(move |j| (i, j)))
        .map(|(i, j)| f64::midpoint(votes[i], votes[j]))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    Ok(median_of_sorted(&means))
}

/// Median absolute deviation from the median, unscaled: the spread of a panel.
///
/// # Errors
/// As [`lower_median`].
pub fn median_absolute_deviation(votes: &[f64]) -> Defined {
    require_finite(votes)?;
    let centre = median_of_sorted(&sorted(votes));
    let deviations: Vec<f64> = votes.iter().map(|v| (v - centre).abs()).collect();
    Ok(median_of_sorted(&sorted(&deviations)))
}

/// Smallest vote: unanimity.
///
/// # Errors
/// As [`lower_median`].
pub fn minimum(votes: &[f64]) -> Defined {
    require_finite(votes)?;
    Ok(votes.iter().copied().fold(f64::INFINITY, f64::min))
}

/// Largest vote.
///
/// # Errors
/// As [`lower_median`].
pub fn maximum(votes: &[f64]) -> Defined {
    require_finite(votes)?;
    Ok(votes.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// Strict majority of yes votes; `None` on an even split.
///
/// # Errors
/// `no_data`.
pub fn majority(votes: &[bool]) -> Defined<Option<bool>> {
    let yes = votes.iter().filter(|v| **v).count();
    match (votes.len(), (2 * yes).cmp(&votes.len())) {
        (0, _) => undefined(Reason::NoData),
        (_, std::cmp::Ordering::Equal) => Ok(None),
        (_, order) => Ok(Some(order == std::cmp::Ordering::Greater)),
    }
}

/// The category with most votes among positions; `None` when several share the lead.
///
/// # Errors
/// `no_data`.
pub fn plurality(votes: &[usize]) -> Defined<Option<usize>> {
    let mut counts = std::collections::BTreeMap::new();
    votes.iter().for_each(|v| *counts.entry(*v).or_insert(0usize) += 1);
    let Some(&best) = counts.values().max() else { return undefined(Reason::NoData) };
    let mut leaders = counts.iter().filter(|(_, c)| **c == best).map(|(v, _)| *v);
    let first = leaders.next();
    Ok(if leaders.next().is_some() { None } else { first })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_even_panel_takes_the_lower_median() {
        assert_eq!(lower_median(&[0.6, 0.4]), Ok(0.4));
        assert_eq!(upper_median(&[0.6, 0.4]), Ok(0.6));
        assert_eq!(majority(&[true, false]), Ok(None));
        assert_eq!(plurality(&[2, 1, 2, 1]), Ok(None));
        assert_eq!(plurality(&[2, 1, 2]), Ok(Some(2)));
    }

    #[test]
    fn no_votes_and_bad_weights_are_undefined() {
        for f in [lower_median, upper_median, hodges_lehmann, minimum, median_absolute_deviation] {
            assert_eq!(f(&[]).unwrap_err().reason, Reason::NoData);
            assert_eq!(f(&[f64::NAN]).unwrap_err().reason, Reason::NotFinite);
        }
        assert_eq!(weighted_median(&[1.0], &[0.0]).unwrap_err().reason, Reason::BadWeights);
        assert_eq!(
            weighted_mean(&[1.0, 2.0], &[2.0, -1.0]).unwrap_err().reason,
            Reason::BadWeights
        );
        assert!(trimmed_mean(&[1.0], 0.5).is_err() && majority(&[]).is_err());
        assert!(decision_key(&[]).is_err());
    }

    proptest! {
        #[test]
        fn every_rule_stays_within_the_votes_and_ignores_their_order(
            votes in prop::collection::vec(0.0f64..=1.0, 1..15), turn in 0usize..15
        ) {
            let (low, high) = (minimum(&votes).unwrap(), maximum(&votes).unwrap());
            let mut turned = votes.clone();
            turned.rotate_left(turn % votes.len());
            let weights = vec![1.0; votes.len()];
            type Rule<'a> = &'a dyn Fn(&[f64]) -> Defined;
            let rules: [Rule; 6] = [
                &lower_median, &upper_median, &hodges_lehmann,
                &|v| trimmed_mean(v, 0.2), &|v| weighted_median(v, &weights),
                &|v| decision_key(v).map(|k| k.mean),
            ];
            for rule in rules {
                let value = rule(&votes).unwrap();
                prop_assert!(value >= low - 1e-12 && value <= high + 1e-12);
                prop_assert_eq!(value, rule(&turned).unwrap());
            }
            prop_assert!(votes.contains(&lower_median(&votes).unwrap()));
            prop_assert_eq!(weighted_median(&votes, &weights), lower_median(&votes));
        }
    }
}
