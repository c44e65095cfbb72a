//! What a judge's error depends on: least squares with heteroscedasticity-consistent
//! errors, and the length-controlled win rate.
//!
//! Length-adjusted scores describe; they never feed an accept gate, because length control
//! has been seen to reward an attack.

use serde::{Deserialize, Serialize};

use super::distribution::{normal_two_sided, sigmoid};
use super::linear::inverse;
use super::logistic::logistic;
use super::summary::{is_constant, raw_mean};
use super::undefined::{Defined, Reason, require_finite, undefined};

/// Coefficients with robust standard errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RobustRegression {
    /// Intercept first, then one a covariate.
    pub coefficients: Vec<f64>,
    /// HC3 standard errors.
    pub standard_errors: Vec<f64>,
    /// Two-sided normal p-values; 1 for a coefficient that is exactly 0 without error.
    pub p: Vec<f64>,
    /// Observations.
    pub n: usize,
}

/// Least squares of `outcome` on an intercept and `covariates` (one series each), with
/// HC3 errors `(X'X)^-1 X' diag(e^2/(1-h)^2) X (X'X)^-1` (MacKinnon and White 1985).
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`; `too_few_values` when observations do not
/// exceed coefficients; `singular_matrix` (a constant covariate); `zero_denominator` when
/// an observation determines its own fit (leverage 1).
pub fn least_squares_hc3(outcome: &[f64], covariates: &[Vec<f64>]) -> Defined<RobustRegression> {
    require_finite(outcome)?;
    for series in covariates {
        if series.len() != outcome.len() {
            return undefined(Reason::LengthMismatch);
        }
        require_finite(series)?;
    }
    let n = outcome.len();
    let k = covariates.len() + 1;
    if n <= k {
        return undefined(Reason::TooFewValues);
    }
    if covariates.iter().any(|c| is_constant(c)) {
        return undefined(Reason::SingularMatrix);
    }
    // Centred covariates make X'X well conditioned; the intercept is moved back at the end.
    let centre: Vec<f64> = covariates.iter().map(|c| raw_mean(c)).collect();
    let rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            std::iter::once(1.0)
                .chain(covariates.iter().zip(&centre).map(|(c, m)| c[i] - m))
                .collect()
        })
        .collect();
    let gram: Vec<Vec<f64>> =
        (0..k).map(|a| (0..k).map(|b| rows.iter().map(|r| r[a] * r[b]).sum()).collect()).collect();
    let bread = inverse(&gram)?;
    let moments: Vec<f64> =
        (0..k).map(|a| rows.iter().zip(outcome).map(|(r, y)| r[a] * y).sum()).collect();
    let product = |m: &[Vec<f64>], v: &[f64]| -> Vec<f64> {
        m.iter().map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum()).collect()
    };
    let mut coefficients = product(&bread, &moments);
    // Rows of back: original coefficients as combinations of the centred ones.
    let mut covariance = vec![vec![0.0; k]; k];
    for (row, y) in rows.iter().zip(outcome) {
        let mut influence = product(&bread, row);
        let leverage: f64 = influence.iter().zip(row).map(|(a, b)| a * b).sum();
        if 1.0 - leverage < 1e-12 {
            return undefined(Reason::ZeroDenominator);
        }
        let fitted: f64 = row.iter().zip(&coefficients).map(|(a, b)| a * b).sum();
        let scaled = (y - fitted) / (1.0 - leverage);
        influence[0] -= centre.iter().zip(&influence[1..]).map(|(m, v)| m * v).sum::<f64>();
        for a in 0..k {
            for b in 0..k {
                covariance[a][b] += influence[a] * influence[b] * scaled * scaled;
            }
        }
    }
    coefficients[0] -= centre.iter().zip(&coefficients[1..]).map(|(m, b)| m * b).sum::<f64>();
    let standard_errors: Vec<f64> = (0..k).map(|a| covariance[a][a].sqrt()).collect();
    let p = coefficients
        .iter()
        .zip(&standard_errors)
        .map(|(b, s)| if *b == 0.0 { 1.0 } else { normal_two_sided(b / s) })
        .collect();
    Ok(RobustRegression { coefficients, standard_errors, p, n })
}

/// Win rate with the effect of length taken out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LengthControlled {
    /// Share of wins.
    pub raw: f64,
    /// `sigmoid(intercept)`: the win rate at equal length.
    pub controlled: f64,
    /// Logit at equal length.
    pub intercept: f64,
    /// Effect of one unit of standardised length difference on the logit.
    pub slope: f64,
    /// Its standard error.
    pub slope_standard_error: f64,
}

/// Logistic regression of wins on standardised length difference, read at difference 0
/// (Dubois et al. 2024).
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `single_class`, `singular_matrix`,
/// `perfect_separation`.
pub fn length_controlled(length_difference: &[f64], win: &[bool]) -> Defined<LengthControlled> {
    if length_difference.len() != win.len() {
        return undefined(Reason::LengthMismatch);
    }
    require_finite(length_difference)?;
    let wins = win.iter().filter(|w| **w).count();
    if wins == 0 || wins == win.len() {
        return undefined(Reason::SingleClass);
    }
    let design: Vec<Vec<f64>> = length_difference.iter().map(|d| vec![1.0, *d]).collect();
    let y: Vec<f64> = win.iter().map(|&w| f64::from(u8::from(w))).collect();
    let fit = logistic(&design, &y)?;
    Ok(LengthControlled {
        raw: wins as f64 / win.len() as f64,
        controlled: sigmoid(fit.coefficients[0]),
        intercept: fit.coefficients[0],
        slope: fit.coefficients[1],
        slope_standard_error: fit.standard_errors[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_line_has_no_error() {
        let x: Vec<f64> = (0..8).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|v| 2.0 + 0.5 * v).collect();
        let fit = least_squares_hc3(&y, &[x]).unwrap();
        assert!((fit.coefficients[0] - 2.0).abs() < 1e-12);
        assert!(fit.standard_errors[1] < 1e-12 && fit.p[1] < 1e-12);
    }

    #[test]
    fn large_offsets_of_a_covariate_change_nothing() {
        let x: Vec<f64> = [1.0, 5.0, 2.0, 8.0, 3.0, 7.0].to_vec();
        let far: Vec<f64> = x.iter().map(|v| v + 1e6).collect();
        let y = [0.1, 0.6, 0.2, 0.7, 0.5, 0.6];
        let a = least_squares_hc3(&y, &[x]).unwrap();
        let b = least_squares_hc3(&y, &[far]).unwrap();
        assert!((a.coefficients[1] - b.coefficients[1]).abs() < 1e-9);
        assert!((a.standard_errors[1] - b.standard_errors[1]).abs() < 1e-9);
    }

    #[test]
    fn degenerate_designs_are_undefined() {
        let f = |y: &[f64], x: &[Vec<f64>]| least_squares_hc3(y, x).unwrap_err().reason;
        assert_eq!(f(&[1.0, 2.0, 3.0], &[vec![2.0; 3]]), Reason::SingularMatrix);
        assert_eq!(f(&[1.0, 2.0], &[vec![1.0, 2.0]]), Reason::TooFewValues);
        assert_eq!(f(&[1.0, 2.0, 3.0], &[vec![0.0, 0.0, 1.0]]), Reason::ZeroDenominator);
        assert_eq!(
            length_controlled(&[1.0, 2.0], &[true; 2]).unwrap_err().reason,
            Reason::SingleClass
        );
    }
}
