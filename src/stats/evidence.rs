//! Conformal p-values against a pool of bad cases, and e-values that accumulate evidence
//! over checks without a fixed number of them.
//!
//! Reusing one finite pool makes the e-values of a loop dependent; the product is a valid
//! test only as far as each p-value is valid given the past.

use serde::{Deserialize, Serialize};

use super::undefined::{Defined, Reason, require_finite, require_open_unit, undefined};

/// `p = (1 + #{reference >= score}) / (n + 1)` (Vovk et al. 2005), in (0,1].
///
/// # Errors
/// `no_data` for an empty pool, `not_finite`.
pub fn conformal_p(reference: &[f64], score: f64) -> Defined {
    require_finite(reference)?;
    require_finite(&[score])?;
    let above = reference.iter().filter(|r| **r >= score).count();
    Ok((above + 1) as f64 / (reference.len() + 1) as f64)
}

/// How a p-value becomes an e-value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calibrator {
    /// `kappa p^(kappa - 1)`, kappa in (0,1).
    Power {
        /// The exponent; 1/2 is usual.
        kappa: f64,
    },
    /// The power calibrators averaged over kappa: `(1 - p + p ln p) / (p ln^2 p)`.
    Integrated,
}

/// The e-value of a p-value in (0,1] (Vovk and Wang 2021); its mean under the null is at
/// most 1.
///
/// # Errors
/// `out_of_range` for p outside (0,1] or kappa outside (0,1), `not_finite`.
pub fn e_value(p: f64, calibrator: Calibrator) -> Defined {
    require_finite(&[p])?;
    if !(p > 0.0 && p <= 1.0) {
        return undefined(Reason::OutOfRange);
    }
    match calibrator {
        Calibrator::Power { kappa } => {
            require_open_unit(kappa)?;
            Ok(kappa * p.powf(kappa - 1.0))
        }
        Calibrator::Integrated => {
            let log = p.ln();
            // Near p = 1 the quotient is 0/0; its series is used there.
            if log.abs() < 1e-4 {
                return Ok(0.5 - log / 6.0 + log * log / 24.0);
            }
            Ok((1.0 - p + p * log) / (p * log * log))
        }
    }
}

/// The state of an e-process over checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EProcess {
    /// P-value of each check.
    pub p: Vec<f64>,
    /// E-value of each check.
    pub e: Vec<f64>,
    /// Running product.
    pub cumulative: Vec<f64>,
    /// First check at which the product reached `1/alpha` (Ville 1939), if any.
    pub release: Option<usize>,
}

/// Runs conformal e-values over the scores of a loop's checks.
///
/// # Errors
/// As [`conformal_p`] and [`e_value`]; `out_of_range` for alpha outside (0,1).
pub fn e_process(
    reference: &[f64],
    scores: &[f64],
    calibrator: Calibrator,
    alpha: f64,
) -> Defined<EProcess> {
    require_open_unit(alpha)?;
    let mut out = EProcess { p: Vec::new(), e: Vec::new(), cumulative: Vec::new(), release: None };
    let mut product = 1.0;
    for (i, &score) in scores.iter().enumerate() {
        let p = conformal_p(reference, score)?;
        let e = e_value(p, calibrator)?;
        product *= e;
        out.p.push(p);
        out.e.push(e);
        out.cumulative.push(product);
        if out.release.is_none() && product >= 1.0 / alpha {
            out.release = Some(i);
        }
    }
    Ok(out)
}

/// Running likelihood ratio of Bernoulli outcomes, `p1/p0` for a success and
/// `(1-p1)/(1-p0)` for a failure (Wald 1945).
///
/// # Errors
/// `out_of_range` for rates outside (0,1).
pub fn likelihood_ratio(outcomes: &[bool], p0: f64, p1: f64) -> Defined<Vec<f64>> {
    require_open_unit(p0)?;
    require_open_unit(p1)?;
    let mut product = 1.0;
    Ok(outcomes
        .iter()
        .map(|&success| {
            product *= if success { p1 / p0 } else { (1.0 - p1) / (1.0 - p0) };
            product
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibrators_have_mean_at_most_one_under_the_null() {
        // On the grid i/(n+1) of conformal p-values.
        for calibrator in [Calibrator::Power { kappa: 0.5 }, Calibrator::Integrated] {
            for n in [1usize, 19, 200] {
                let mean = (1..=n + 1)
                    .map(|i| e_value(i as f64 / (n + 1) as f64, calibrator).unwrap())
                    .sum::<f64>()
                    / (n + 1) as f64;
                assert!(mean <= 1.0, "{mean}");
            }
        }
    }

    #[test]
    fn the_integrated_calibrator_is_continuous_at_one() {
        let f = |p| e_value(p, Calibrator::Integrated).unwrap();
        assert!((f(1.0) - 0.5).abs() < 1e-12);
        let (below, above) = (f((-1.01e-4f64).exp()), f((-0.99e-4f64).exp()));
        assert!((below - above).abs() < 1e-5);
    }

    #[test]
    fn an_empty_pool_and_wild_values_are_undefined() {
        assert_eq!(conformal_p(&[], 0.5).unwrap_err().reason, Reason::NoData);
        assert_eq!(conformal_p(&[0.1], f64::NAN).unwrap_err().reason, Reason::NotFinite);
        assert_eq!(e_value(0.0, Calibrator::Integrated).unwrap_err().reason, Reason::OutOfRange);
        assert!(e_process(&[0.5], &[], Calibrator::Integrated, 0.05).unwrap().e.is_empty());
    }
}
