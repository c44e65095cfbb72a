//! Accuracies of three judges from their pairwise agreement alone (Fu et al. 2020).

use serde::{Deserialize, Serialize};

use crate::stats::undefined::{Defined, Reason, require_finite, undefined};

/// Three judges' parameters, assuming that they err independently and beat a coin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TripletAccuracy {
    /// `a_i = sqrt|E_ij E_ik / E_jk|`, the mean of vote times truth, in (0,1].
    pub correlation: [f64; 3],
    /// `(1 + a_i) / 2`.
    pub accuracy: [f64; 3],
}

/// From the mean products of votes coded ±1 for the pairs (1,2), (1,3), (2,3).
///
/// # Errors
/// `zero_denominator` when a product is 0; `not_identified` when the products contradict
/// independent judges (an a above 1); `out_of_range` outside \[-1,1\]; `not_finite`.
pub fn triplet(e12: f64, e13: f64, e23: f64) -> Defined<TripletAccuracy> {
    require_finite(&[e12, e13, e23])?;
    if [e12, e13, e23].iter().any(|e| e.abs() > 1.0) {
        return undefined(Reason::OutOfRange);
    }
    if [e12, e13, e23].contains(&0.0) {
        return undefined(Reason::ZeroDenominator);
    }
    let correlation = [
        (e12 * e13 / e23).abs().sqrt(),
        (e12 * e23 / e13).abs().sqrt(),
        (e13 * e23 / e12).abs().sqrt(),
    ];
    if correlation.iter().any(|a| *a > 1.0 + 1e-12) {
        return undefined(Reason::NotIdentified);
    }
    Ok(TripletAccuracy { correlation, accuracy: correlation.map(|a| f64::midpoint(1.0, a)) })
}

/// From the votes of three judges on the same cases.
///
/// # Errors
/// As [`triplet`]; `no_data`, `length_mismatch`; `constant_input` for a constant judge.
pub fn triplet_from_votes(a: &[bool], b: &[bool], c: &[bool]) -> Defined<TripletAccuracy> {
    if a.len() != b.len() || a.len() != c.len() {
        return undefined(Reason::LengthMismatch);
    }
    if a.is_empty() {
        return undefined(Reason::NoData);
    }
    if [a, b, c].iter().any(|v| v.windows(2).all(|w| w[0] == w[1])) {
        return undefined(Reason::ConstantInput);
    }
    let product = |x: &[bool], y: &[bool]| {
        let equal = x.iter().zip(y).filter(|(x, y)| x == y).count() as f64;
        2.0 * equal / x.len() as f64 - 1.0
    };
    triplet(product(a, b), product(a, c), product(b, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_agreement_beyond_chance_is_undefined() {
        assert_eq!(triplet(0.3, 0.2, 0.0).unwrap_err().reason, Reason::ZeroDenominator);
        assert_eq!(triplet(0.9, 0.9, 0.1).unwrap_err().reason, Reason::NotIdentified);
        let (t, f) = ([true; 2], [true, false]);
        assert_eq!(triplet_from_votes(&t, &f, &f).unwrap_err().reason, Reason::ConstantInput);
        assert_eq!(triplet_from_votes(&f, &f, &f).unwrap().accuracy, [1.0; 3]);
    }
}
