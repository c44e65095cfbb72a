//! How far judges err together, and what that costs a panel.

use serde::Serialize;

use statrs::function::gamma::ln_gamma;

use super::Estimate;
use super::correlation::pearson;
use super::distribution::{binomial_sf_inclusive, ln_beta};
use super::interval::clopper_pearson;
use super::linear::inverse;
use super::undefined::{
    Defined, Reason, require_finite, require_open_unit, require_unit, undefined,
};

/// phi of two judges' error indicators = Pearson's r of 0/1 series, in \[-1,1\].
///
/// # Errors
/// `length_mismatch`, `too_few_values`, `constant_input` when a judge is always right or
/// always wrong.
pub fn phi(first: &[bool], second: &[bool]) -> Defined {
    let numbers = |v: &[bool]| -> Vec<f64> { v.iter().map(|&b| f64::from(u8::from(b))).collect() };
    pearson(&numbers(first), &numbers(second))
}

/// The symmetric matrix of [`phi`], judges x judges, 1 on the diagonal.
#[must_use]
pub fn phi_matrix(errors: &[Vec<bool>]) -> Vec<Vec<Defined>> {
    (0..errors.len())
        .map(|i| {
            (0..errors.len())
                .map(|j| if i == j { Ok(1.0) } else { phi(&errors[i], &errors[j]) })
                .collect()
        })
        .collect()
}

/// Effective number of equally correlated judges, `m / (1 + (m-1) rho)` (Kish 1965).
///
/// # Errors
/// `no_data` for m = 0, `out_of_range` for rho outside \[-1,1\], `zero_denominator`.
pub fn effective_judges(m: u64, correlation: f64) -> Defined {
    require_finite(&[correlation])?;
    if m == 0 {
        return undefined(Reason::NoData);
    }
    if correlation.abs() > 1.0 {
        return undefined(Reason::OutOfRange);
    }
    let design = 1.0 + (m as f64 - 1.0) * correlation;
    if design <= 0.0 { undefined(Reason::ZeroDenominator) } else { Ok(m as f64 / design) }
}

/// Effective number of judges of a correlation matrix, `m^2 / sum C`.
///
/// # Errors
/// `no_data`, `length_mismatch`, `not_finite`; `zero_denominator` when the sum is not
/// positive.
pub fn effective_judges_of(matrix: &[Vec<f64>]) -> Defined {
    if matrix.is_empty() {
        return undefined(Reason::NoData);
    }
    if matrix.iter().any(|row| row.len() != matrix.len()) {
        return undefined(Reason::LengthMismatch);
    }
    matrix.iter().try_for_each(|row| require_finite(row))?;
    let sum: f64 = matrix.iter().flatten().sum();
    if sum <= 0.0 {
        return undefined(Reason::ZeroDenominator);
    }
    Ok((matrix.len() as f64).powi(2) / sum)
}

/// Accuracy of a strict majority of `m` independent judges of accuracy p (Condorcet 1785):
/// `P(Bin(m, p) > m/2)`.
///
/// # Errors
/// `no_data` for m = 0, `out_of_range`.
pub fn majority_accuracy(m: u64, accuracy: f64) -> Defined {
    require_unit(&[accuracy])?;
    if m == 0 {
        return undefined(Reason::NoData);
    }
    Ok(binomial_sf_inclusive(m / 2 + 1, m, accuracy))
}

/// The same for judges whose correctness has intraclass correlation rho, by a
/// beta-binomial with `a = p(1-rho)/rho`.
///
/// # Errors
/// As [`majority_accuracy`].
pub fn majority_accuracy_correlated(m: u64, accuracy: f64, correlation: f64) -> Defined {
    require_unit(&[accuracy, correlation])?;
    if m == 0 {
        return undefined(Reason::NoData);
    }
    if correlation == 0.0 || accuracy == 0.0 || accuracy == 1.0 {
        return majority_accuracy(m, accuracy);
    }
    if correlation == 1.0 {
        return Ok(accuracy);
    }
    let scale = (1.0 - correlation) / correlation;
    let (a, b) = (accuracy * scale, (1.0 - accuracy) * scale);
    let n = m as f64;
    let base = ln_gamma(n + 1.0) - ln_beta(a, b);
    let sum: f64 = (m / 2 + 1..=m)
        .map(|k| {
            let k = k as f64;
            (base - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0) + ln_beta(a + k, b + n - k)).exp()
        })
        .sum();
    Ok(sum.min(1.0))
}

/// What a panel of these judges would reach if they were independent, what it reaches, and
/// how often nobody is right.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SharedError {
    /// Majority accuracy of independent judges of these accuracies.
    pub independent_majority: f64,
    /// Majority accuracy observed; an even split counts as wrong.
    pub observed_majority: f64,
    /// Condorcet gap, the former minus the latter.
    pub condorcet_gap: f64,
    /// Share of cases on which all judges are wrong: no vote can be right there.
    pub all_wrong: Estimate,
    /// The same share for independent judges.
    pub all_wrong_independent: f64,
}

/// Shared error of judges, `errors[j][i]` = judge j is wrong on case i.
///
/// # Errors
/// `no_data`, `length_mismatch`, `out_of_range` for the level.
pub fn shared_error(errors: &[Vec<bool>], level: f64) -> Defined<SharedError> {
    let n = errors.first().map_or(0, Vec::len);
    if n == 0 {
        return undefined(Reason::NoData);
    }
    if errors.iter().any(|judge| judge.len() != n) {
        return undefined(Reason::LengthMismatch);
    }
    let m = errors.len();
    let wrong: Vec<usize> = (0..n).map(|i| errors.iter().filter(|e| e[i]).count()).collect();
    let accuracy: Vec<f64> =
        errors.iter().map(|e| e.iter().filter(|w| !**w).count() as f64 / n as f64).collect();
    // Distribution of the number of right judges, one judge at a time.
    let mut right = vec![1.0];
    for p in &accuracy {
        let mut next = vec![0.0; right.len() + 1];
        for (k, q) in right.iter().enumerate() {
            next[k] += q * (1.0 - p);
            next[k + 1] += q * p;
        }
        right = next;
    }
    let independent_majority = right[m / 2 + 1..].iter().sum::<f64>();
    let majority = wrong.iter().filter(|w| 2 * **w < m).count();
    let observed_majority = majority as f64 / n as f64;
    let all = wrong.iter().filter(|w| **w == m).count() as u64;
    Ok(SharedError {
        independent_majority,
        observed_majority,
        condorcet_gap: independent_majority - observed_majority,
        all_wrong: clopper_pearson(all, n as u64, level)?,
        all_wrong_independent: right[0],
    })
}

/// Best linear unbiased combination of judges with error covariance S:
/// `w = S^-1 1 / (1' S^-1 1)` (Aitken 1936); weights sum to 1 and may be negative.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    /// One a judge.
    pub weights: Vec<f64>,
    /// Error variance of the combination.
    pub variance: f64,
}

/// The [`Combination`] of a covariance matrix.
///
/// # Errors
/// `no_data`, `length_mismatch`, `singular_matrix`, `not_finite`; `zero_denominator` when
/// the matrix is not positive definite.
pub fn best_combination(covariance: &[Vec<f64>]) -> Defined<Combination> {
    if covariance.is_empty() {
        return undefined(Reason::NoData);
    }
    let inverse = inverse(covariance)?;
    let rows: Vec<f64> = inverse.iter().map(|row| row.iter().sum()).collect();
    let total: f64 = rows.iter().sum();
    if total.is_nan() || total <= 0.0 {
        return undefined(Reason::ZeroDenominator);
    }
    Ok(Combination { weights: rows.iter().map(|r| r / total).collect(), variance: 1.0 / total })
}

/// Optimal vote weight of an independent judge of accuracy p, `ln(p/(1-p))` (Nitzan and
/// Paroush 1982); negative for a judge worse than a coin.
///
/// # Errors
/// `out_of_range` unless p is inside (0,1): an infinite weight would make a dictator.
pub fn log_odds_weight(accuracy: f64) -> Defined {
    require_open_unit(accuracy)?;
    Ok(super::distribution::logit(accuracy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_one_judge_are_one_judge() {
        let errors: Vec<bool> = (0..40).map(|i| i % 5 == 0).collect();
        let panel = vec![errors.clone(), errors.clone(), errors];
        let matrix = phi_matrix(&panel);
        let numbers: Vec<Vec<f64>> =
            matrix.iter().map(|r| r.iter().map(|v| v.unwrap()).collect()).collect();
        assert!((effective_judges_of(&numbers).unwrap() - 1.0).abs() < 1e-12);
        let shared = shared_error(&panel, 0.95).unwrap();
        assert!((shared.all_wrong.point - 0.2).abs() < 1e-12);
        assert!((shared.all_wrong_independent - 0.008).abs() < 1e-12);
        assert!(shared.condorcet_gap > 0.09);
    }

    #[test]
    fn a_judge_without_errors_has_no_phi() {
        let f = phi(&[false; 3], &[true, false, true]);
        assert_eq!(f.unwrap_err().reason, Reason::ConstantInput);
        assert_eq!(shared_error(&[], 0.95).unwrap_err().reason, Reason::NoData);
    }

    #[test]
    fn impossible_parameters_are_undefined() {
        assert_eq!(effective_judges(3, -0.5).unwrap_err().reason, Reason::ZeroDenominator);
        assert_eq!(effective_judges(0, 0.5).unwrap_err().reason, Reason::NoData);
        assert_eq!(log_odds_weight(1.0).unwrap_err().reason, Reason::OutOfRange);
        let singular = best_combination(&[vec![1.0, 1.0], vec![1.0, 1.0]]);
        assert_eq!(singular.unwrap_err().reason, Reason::SingularMatrix);
    }

    #[test]
    fn correlation_one_leaves_the_single_judge() {
        assert_eq!(majority_accuracy_correlated(9, 0.7, 1.0), Ok(0.7));
        let near = majority_accuracy_correlated(9, 0.7, 1e-7).unwrap();
        assert!((near - majority_accuracy(9, 0.7).unwrap()).abs() < 1e-5);
    }
}
