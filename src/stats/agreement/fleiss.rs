//! Fleiss' kappa and its free-marginal relative for a fixed number of ratings per item.

use serde::Serialize;

use crate::stats::undefined::{Defined, Reason, serialize_defined, undefined};

/// Agreement of many raters on nominal categories.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FleissKappa {
    /// kappa = (P_bar - P_e) / (1 - P_e); undefined when one category holds everything.
    #[serde(serialize_with = "serialize_defined")]
    pub kappa: Defined,
    /// Mean share of agreeing pairs of raters on an item, in \[0,1\].
    pub observed: f64,
    /// Chance agreement, the sum of squared category shares.
    pub expected: f64,
    /// Randolph's (2005) free-marginal kappa, chance 1/K.
    #[serde(serialize_with = "serialize_defined")]
    pub free_marginal: Defined,
    /// Standard error under kappa = 0 (Fleiss, Nee and Landis 1979).
    #[serde(serialize_with = "serialize_defined")]
    pub standard_error_null: Defined,
    /// Items.
    pub n: usize,
    /// Ratings of each item.
    pub raters: u64,
}

/// Fleiss' kappa (1971) from counts by item and category.
///
/// # Errors
/// `no_data`; `missing_cells` when items have different numbers of ratings (use
/// Krippendorff's alpha or Gwet's coefficients); `too_few_raters` below two ratings.
pub fn fleiss_kappa(counts: &[Vec<u64>]) -> Defined<FleissKappa> {
    let Some(first) = counts.first() else { return undefined(Reason::NoData) };
    let k = first.len();
    if k == 0 || counts.iter().any(|row| row.len() != k) {
        return undefined(Reason::LengthMismatch);
    }
    let raters: u64 = first.iter().sum();
    if counts.iter().any(|row| row.iter().sum::<u64>() != raters) {
        return undefined(Reason::MissingCells);
    }
    if raters < 2 {
        return undefined(Reason::TooFewRaters);
    }
    let (n, m) = (counts.len() as f64, raters as f64);
    let agreeing: u64 = counts.iter().flatten().map(|&c| c * c.saturating_sub(1)).sum();
    let observed = agreeing as f64 / (n * m * (m - 1.0));
    let totals: Vec<u64> = (0..k).map(|j| counts.iter().map(|row| row[j]).sum()).collect();
    let single = totals.iter().filter(|&&t| t > 0).count() < 2;
    let shares: Vec<f64> = totals.iter().map(|&t| t as f64 / (n * m)).collect();
    let expected: f64 = shares.iter().map(|p| p * p).sum();
    let chance = 1.0 / k as f64;
    let spread: f64 = shares.iter().map(|p| p * (1.0 - p)).sum();
    let skew: f64 = shares.iter().map(|p| p * (1.0 - p) * (1.0 - 2.0 * p)).sum();
    let variance = 2.0 * (spread * spread - skew) / (n * m * (m - 1.0) * spread * spread);
    let when_varied = |v: f64| if single { undefined(Reason::SingleValue) } else { Ok(v) };
    Ok(FleissKappa {
        kappa: when_varied((observed - expected) / (1.0 - expected)),
        observed,
        expected,
        free_marginal: if k < 2 {
            undefined(Reason::SingleValue)
        } else {
            Ok((observed - chance) / (1.0 - chance))
        },
        standard_error_null: when_varied(variance.max(0.0).sqrt()),
        n: counts.len(),
        raters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_category_leaves_kappa_undefined_but_not_the_observed_agreement() {
        let result = fleiss_kappa(&[vec![3, 0], vec![3, 0]]).unwrap();
        assert_eq!(result.kappa.unwrap_err().reason, Reason::SingleValue);
        assert_eq!(result.observed, 1.0);
        assert_eq!(result.free_marginal, Ok(1.0));
    }

    #[test]
    fn unequal_numbers_of_ratings_are_refused() {
        assert_eq!(
            fleiss_kappa(&[vec![3, 0], vec![1, 1]]).unwrap_err().reason,
            Reason::MissingCells
        );
        assert_eq!(fleiss_kappa(&[]).unwrap_err().reason, Reason::NoData);
        assert_eq!(fleiss_kappa(&[vec![1, 0]]).unwrap_err().reason, Reason::TooFewRaters);
    }
}
