//! A ridge stack: one line over all judges' scores, for panels with a hundred labels or
//! more. Fit it on labels that certify nothing.

use serde::{Deserialize, Serialize};

use crate::stats::linear::solve;
use crate::stats::summary::{is_constant, raw_mean, sum_of_products, sum_of_squares};
use crate::stats::undefined::{Defined, Reason, require_finite, undefined};

/// `label = intercept + sum weight_j score_j`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RidgeStack {
    /// Intercept.
    pub intercept: f64,
    /// One weight a judge, on the judge's own scale; 0 for a constant judge.
    pub weights: Vec<f64>,
    /// Positions of constant judges, which the stack leaves out.
    pub excluded: Vec<usize>,
}

impl RidgeStack {
    /// Ridge regression (Hoerl and Kennard 1970) on standardised scores,
    /// `(Z'Z + penalty I) w = Z'(y - mean y)`; the intercept is not penalised. `scores[j]`
    /// are judge j's scores.
    ///
    /// # Errors
    /// `no_data`, `length_mismatch`, `not_finite`; `out_of_range` for a negative penalty;
    /// `too_few_values` below two labels; `singular_matrix` without penalty when judges
    /// repeat each other.
    pub fn fit(scores: &[Vec<f64>], label: &[f64], penalty: f64) -> Defined<Self> {
        require_finite(label)?;
        if scores.is_empty() {
            return undefined(Reason::NoData);
        }
        if scores.iter().any(|s| s.len() != label.len()) {
            return undefined(Reason::LengthMismatch);
        }
        scores.iter().try_for_each(|s| require_finite(s))?;
        if !(penalty.is_finite() && penalty >= 0.0) {
            return undefined(Reason::OutOfRange);
        }
        if label.len() < 2 {
            return undefined(Reason::TooFewValues);
        }
        let (excluded, used): (Vec<usize>, Vec<usize>) =
            (0..scores.len()).partition(|&j| is_constant(&scores[j]));
        let deviation: Vec<f64> = used
            .iter()
            .map(|&j| (sum_of_squares(&scores[j]) / label.len() as f64).sqrt())
            .collect();
        let mut weights = vec![0.0; scores.len()];
        if !used.is_empty() {
            let gram: Vec<Vec<f64>> = (0..used.len())
                .map(|a| {
                    (0..used.len())
                        .map(|b| {
                            sum_of_products(&scores[used[a]], &scores[used[b]])
                                / (deviation[a] * deviation[b])
                                + if a == b { penalty } else { 0.0 }
                        })
                        .collect()
                })
                .collect();
            let right: Vec<f64> = used
                .iter()
                .zip(&deviation)
                .map(|(&j, d)| sum_of_products(&scores[j], label) / d)
                .collect();
            for ((w, &j), d) in solve(&gram, &right)?.iter().zip(&used).zip(&deviation) {
                weights[j] = w / d;
            }
        }
        let intercept =
            raw_mean(label) - weights.iter().zip(scores).map(|(w, s)| w * raw_mean(s)).sum::<f64>();
        Ok(Self { intercept, weights, excluded })
    }

    /// The stacked score of one case's votes, in the order of the fit.
    ///
    /// # Errors
    /// `length_mismatch` when a judge is missing, `not_finite`.
    pub fn apply(&self, votes: &[f64]) -> Defined {
        if votes.len() != self.weights.len() {
            return undefined(Reason::LengthMismatch);
        }
        require_finite(votes)?;
        Ok(self.intercept + self.weights.iter().zip(votes).map(|(w, v)| w * v).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> (Vec<Vec<f64>>, Vec<f64>) {
        let a: Vec<f64> = (0..40).map(|i| f64::from(i % 7)).collect();
        let b: Vec<f64> = (0..40).map(|i| f64::from(i * i % 11)).collect();
        let label = a.iter().zip(&b).map(|(a, b)| 1.0 + 0.5 * a - 0.2 * b).collect();
        (vec![a, b, vec![3.0; 40]], label)
    }

    #[test]
    fn without_penalty_an_exact_relation_is_found_and_a_constant_judge_left_out() {
        let (scores, label) = panel();
        let stack = RidgeStack::fit(&scores, &label, 0.0).unwrap();
        assert_eq!(stack.excluded, [2]);
        assert!((stack.weights[0] - 0.5).abs() < 1e-12 && (stack.weights[1] + 0.2).abs() < 1e-12);
        assert!((stack.apply(&[2.0, 5.0, 3.0]).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_heavy_penalty_leaves_the_mean_of_the_labels() {
        let (scores, label) = panel();
        let stack = RidgeStack::fit(&scores, &label, 1e12).unwrap();
        let mean = label.iter().sum::<f64>() / 40.0;
        assert!((stack.apply(&[6.0, 0.0, 3.0]).unwrap() - mean).abs() < 1e-6);
    }

    #[test]
    fn copies_need_a_penalty_and_missing_votes_are_refused() {
        let (scores, label) = panel();
        let twice = vec![scores[0].clone(), scores[0].clone()];
        let error = RidgeStack::fit(&twice, &label, 0.0).unwrap_err();
        assert_eq!(error.reason, Reason::SingularMatrix);
        let stack = RidgeStack::fit(&twice, &label, 1.0).unwrap();
        assert!((stack.weights[0] - stack.weights[1]).abs() < 1e-12);
        assert_eq!(stack.apply(&[1.0]).unwrap_err().reason, Reason::LengthMismatch);
        assert_eq!(RidgeStack::fit(&[], &label, 1.0).unwrap_err().reason, Reason::NoData);
    }
}
