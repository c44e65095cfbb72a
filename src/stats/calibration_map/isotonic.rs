//! Monotone maps: pool adjacent violators, and Venn-Abers on top of it.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::stats::undefined::{Defined, Reason, require_finite, require_pairs, undefined};

/// Weighted isotonic regression of values already ordered by their abscissa (Ayer et al.
/// 1955); O(n). Ties of the abscissa must have been pooled.
#[must_use]
pub fn pava(values: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(values.len());
    for (&value, &weight) in values.iter().zip(weights) {
        let mut block = (value * weight, weight, 1);
        // Compare sums over weights, so that pooled means carry no rounding from merging.
        while let Some(&(sum, w, count)) = blocks.last() {
            if sum / w < block.0 / block.1 {
                break;
            }
            block = (block.0 + sum, block.1 + w, block.2 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    blocks
        .into_iter()
        .flat_map(|(sum, weight, count)| std::iter::repeat_n(sum / weight, count))
        .collect()
}

/// A non-decreasing map by linear interpolation between knots, constant outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IsotonicMap {
    /// Distinct scores in increasing order.
    pub knots: Vec<f64>,
    /// Fitted value at each knot, not decreasing.
    pub values: Vec<f64>,
}

impl IsotonicMap {
    /// Fits by pooling tied scores to their weighted mean first, then PAVA.
    ///
    /// # Errors
    /// `length_mismatch`, `no_data`, `not_finite`; `bad_weights` for a weight that is not
    /// positive.
    pub fn fit(score: &[f64], label: &[f64], weights: Option<&[f64]>) -> Defined<Self> {
        require_pairs(score, label)?;
        if let Some(weights) = weights {
            require_pairs(score, weights)?;
            if weights.iter().any(|w| *w <= 0.0) {
                return undefined(Reason::BadWeights);
            }
        }
        // The numbers themselves are sorted, not positions that point at them; the position
        // behind breaks ties, so that sums are the same in any order of threads.
        let mut order: Vec<(f64, usize)> = score.iter().copied().zip(0..).collect();
        order.par_sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let (mut knots, mut means, mut masses): (Vec<f64>, Vec<f64>, Vec<f64>) = Default::default();
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
            let mass: f64 = group.iter().map(|&(_, i)| weight(i)).sum();
            knots.push(group[0].0);
            means.push(group.iter().map(|&(_, i)| weight(i) * label[i]).sum::<f64>() / mass);
            masses.push(mass);
        }
        let values = pava(&means, &masses);
        Ok(Self { knots, values })
    }

    /// The fitted value at `score`.
    #[must_use]
    pub fn apply(&self, score: f64) -> f64 {
        let above = self.knots.partition_point(|k| *k < score);
        if above == self.knots.len() {
            return self.values[above - 1];
        }
        if above == 0 || self.knots[above] == score {
            return self.values[above];
        }
        let (x0, x1) = (self.knots[above - 1], self.knots[above]);
        let (y0, y1) = (self.values[above - 1], self.values[above]);
        y0 + (score - x0) / (x1 - x0) * (y1 - y0)
    }
}

/// The two probabilities of a Venn-Abers predictor and their merger.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VennAbers {
    /// Isotonic value at the score with the case counted as bad.
    pub lower: f64,
    /// Isotonic value at the score with the case counted as good.
    pub upper: f64,
    /// `upper / (1 - lower + upper)`.
    pub probability: f64,
}

/// Venn-Abers prediction (Vovk and Petej 2014): the isotonic fit with the new score added
/// once with label 0 and once with label 1.
///
/// # Errors
/// As [`IsotonicMap::fit`]; `out_of_range` for labels outside \[0,1\].
pub fn venn_abers(score: &[f64], label: &[f64], at: f64) -> Defined<VennAbers> {
    require_pairs(score, label)?;
    crate::stats::undefined::require_unit(label)?;
    require_finite(&[at])?;
    let with = |extra: f64| {
        let (mut s, mut y) = (score.to_vec(), label.to_vec());
        s.push(at);
        y.push(extra);
        IsotonicMap::fit(&s, &y, None).map(|map| map.apply(at))
    };
    let (lower, upper) = (with(0.0)?, with(1.0)?);
    Ok(VennAbers { lower, upper, probability: upper / (1.0 - lower + upper) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_fit_is_monotone_keeps_the_mean_and_ignores_the_order_of_rows(
            rows in prop::collection::vec((0u8..20, 0u8..2), 1..60), turn in 0usize..60
        ) {
            let mut rows = rows;
            let split = |rows: &[(u8, u8)]| -> (Vec<f64>, Vec<f64>) {
                rows.iter().map(|r| (f64::from(r.0), f64::from(r.1))).unzip()
            };
            let (x, y) = split(&rows);
            let map = IsotonicMap::fit(&x, &y, None).unwrap();
            prop_assert!(map.values.windows(2).all(|w| w[0] <= w[1]));
            let fitted: f64 = x.iter().map(|v| map.apply(*v)).sum();
            prop_assert!((fitted - y.iter().sum::<f64>()).abs() < 1e-9);
            let middle = turn % rows.len();
            rows.rotate_left(middle);
            let (x, y) = split(&rows);
            let turned = IsotonicMap::fit(&x, &y, None).unwrap();
            prop_assert!(map.values.iter().zip(&turned.values).all(|(a, b)| (a - b).abs() < 1e-12));
        }

        #[test]
        fn venn_abers_brackets_its_probability(
            rows in prop::collection::vec((0.0f64..1.0, 0u8..2), 1..30), at in 0.0f64..1.0
        ) {
            let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().map(|r| (r.0, f64::from(r.1))).unzip();
            let v = venn_abers(&x, &y, at).unwrap();
            prop_assert!(v.lower <= v.probability + 1e-12 && v.probability <= v.upper + 1e-12);
        }
    }

    #[test]
    fn decreasing_labels_give_a_constant_map() {
        let map = IsotonicMap::fit(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0], None).unwrap();
        assert_eq!(map.values, [2.0, 2.0, 2.0]);
        assert_eq!((map.apply(-9.0), map.apply(9.0)), (2.0, 2.0));
        assert!(IsotonicMap::fit(&[], &[], None).is_err());
        assert!(IsotonicMap::fit(&[1.0], &[1.0], Some(&[0.0])).is_err());
    }
}
