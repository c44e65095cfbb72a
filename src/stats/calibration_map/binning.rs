//! Histogram binning: each bin of scores gets the mean label of its cases.

use serde::{Deserialize, Serialize};

use crate::stats::undefined::{Defined, Reason, require_pairs, require_unit, undefined};

/// The bin of `p` in \[0,1\] among `bins` of equal width: `[i/B, (i+1)/B)`, the last closed.
/// Decided by comparing with the edges `i/B` themselves, so that a score equal to an edge
/// never falls below it through the rounding of `p * B`.
pub(crate) fn equal_width_bin(p: f64, bins: usize) -> usize {
    let mut bin = ((p * bins as f64) as usize).min(bins - 1);
    while bin + 1 < bins && p >= (bin + 1) as f64 / bins as f64 {
        bin += 1;
    }
    while bin > 0 && p < bin as f64 / bins as f64 {
        bin -= 1;
    }
    bin
}

/// A step map over equal-width bins of \[0,1\].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistogramBinning {
    /// Mean label of each bin; `None` where no case fell.
    pub means: Vec<Option<f64>>,
    /// Cases of each bin.
    pub counts: Vec<usize>,
}

impl HistogramBinning {
    /// Bin means (Zadrozny and Elkan 2001).
    ///
    /// # Errors
    /// `length_mismatch`, `no_data`, `not_finite`; `out_of_range` for scores outside \[0,1\]
    /// or no bins.
    pub fn fit(score: &[f64], label: &[f64], bins: usize) -> Defined<Self> {
        require_pairs(score, label)?;
        require_unit(score)?;
        if bins == 0 {
            return undefined(Reason::OutOfRange);
        }
        let (mut sums, mut counts) = (vec![0.0; bins], vec![0usize; bins]);
        for (s, y) in score.iter().zip(label) {
            let bin = equal_width_bin(*s, bins);
            sums[bin] += y;
            counts[bin] += 1;
        }
        let means = sums.iter().zip(&counts).map(|(s, &n)| (n > 0).then(|| s / n as f64)).collect();
        Ok(Self { means, counts })
    }

    /// The mean label of the score's bin.
    ///
    /// # Errors
    /// `no_data` for a bin without cases, `out_of_range`, `not_finite`.
    pub fn apply(&self, score: f64) -> Defined {
        require_unit(&[score])?;
        match self.means[equal_width_bin(score, self.means.len())] {
            Some(mean) => Ok(mean),
            None => undefined(Reason::NoData),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_on_an_edge_opens_the_upper_bin() {
        for bins in [3usize, 7, 10, 100, 1000] {
            for i in 0..bins {
                assert_eq!(equal_width_bin(i as f64 / bins as f64, bins), i);
            }
            assert_eq!(equal_width_bin(1.0, bins), bins - 1);
        }
    }

    #[test]
    fn an_empty_bin_has_no_value() {
        let map = HistogramBinning::fit(&[0.1, 0.2, 0.9], &[0.0, 1.0, 1.0], 2).unwrap();
        assert_eq!((map.apply(0.3), map.apply(0.5)), (Ok(0.5), Ok(1.0)));
        let sparse = HistogramBinning::fit(&[0.1], &[0.0], 2).unwrap();
        assert_eq!(sparse.apply(0.7).unwrap_err().reason, Reason::NoData);
        assert!(HistogramBinning::fit(&[1.5], &[0.0], 2).is_err());
    }
}
