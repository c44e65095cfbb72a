//! Chance-corrected agreement of many raters with missing ratings (Gwet 2014): AC1/AC2 and
//! the Brennan-Prediger, generalised Fleiss and Conger coefficients on one footing.
//!
//! Ratings are positions in a declared domain of `k` categories; `None` is missing.

use serde::Serialize;

use super::kappa::Weighting;
use crate::stats::distribution::student_critical;
use crate::stats::undefined::{Defined, Reason, serialize_defined, undefined};
use crate::stats::{Estimate, Interval, Method};

/// One coefficient: `(observed - expected) / (1 - expected)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChanceCorrected {
    /// The coefficient, at most 1, negative values legal.
    #[serde(serialize_with = "serialize_defined")]
    pub coefficient: Defined,
    /// Chance agreement.
    pub expected: f64,
}

/// The family of coefficients over one set of ratings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WeightedAgreement {
    /// Weighted observed agreement over units with two or more ratings.
    pub observed: f64,
    /// AC1 (unweighted) or AC2 (weighted): chance `T_w / (K(K-1)) sum pi_k (1 - pi_k)`.
    pub gwet: ChanceCorrected,
    /// AC with its standard error over units and a t interval cut at 1 (Gwet 2008).
    #[serde(serialize_with = "serialize_defined")]
    pub gwet_estimate: Defined<Estimate>,
    /// Standard error of AC.
    #[serde(serialize_with = "serialize_defined")]
    pub gwet_standard_error: Defined,
    /// Brennan and Prediger (1981): chance `T_w / K^2`.
    pub brennan_prediger: ChanceCorrected,
    /// Fleiss generalised to missing ratings: chance from pooled category shares.
    pub fleiss: ChanceCorrected,
    /// Conger (1980): chance from each pair of raters' own shares.
    pub conger: ChanceCorrected,
    /// Units with two or more ratings.
    pub n: usize,
}

fn corrected(observed: f64, expected: f64) -> ChanceCorrected {
    let coefficient = if expected >= 1.0 {
        undefined(Reason::SingleValue)
    } else {
        Ok((observed - expected) / (1.0 - expected))
    };
    ChanceCorrected { coefficient, expected }
}

/// Gwet's family from units x raters, category positions below `k`.
///
/// # Errors
/// `no_data`; `single_value_in_domain` when the domain has fewer than two categories;
/// `unknown_category`; `too_few_raters` when no unit has two ratings; `length_mismatch` for
/// ragged rows.
pub fn gwet_coefficients(
    units: &[Vec<Option<usize>>],
    k: usize,
    weighting: Weighting,
    level: f64,
) -> Defined<WeightedAgreement> {
    let Some(first) = units.first() else { return undefined(Reason::NoData) };
    let raters = first.len();
    if units.iter().any(|row| row.len() != raters) {
        return undefined(Reason::LengthMismatch);
    }
    if k < 2 {
        return undefined(Reason::SingleValue);
    }
    if units.iter().flatten().flatten().any(|&c| c >= k) {
        return undefined(Reason::UnknownCategory);
    }
    let agree = |i, j| 1.0 - weighting.disagreement(i, j, k);
    let total_weight: f64 =
        (0..k).flat_map(|i| (0..k).map(move |j| (i, j))).map(|(i, j)| agree(i, j)).sum();
    // Units without any rating carry no information at all.
    let counts: Vec<Vec<f64>> = units
        .iter()
        .filter(|row| row.iter().any(Option::is_some))
        .map(|row| {
            let mut counts = vec![0.0; k];
            row.iter().flatten().for_each(|&c| counts[c] += 1.0);
            counts
        })
        .collect();
    if counts.is_empty() {
        return undefined(Reason::NoData);
    }
    let rated: Vec<f64> = counts.iter().map(|row| row.iter().sum()).collect();
    let paired = rated.iter().filter(|&&r| r >= 2.0).count();
    if paired == 0 {
        return undefined(Reason::TooFewRaters);
    }
    let unit_agreement: Vec<f64> = counts
        .iter()
        .zip(&rated)
        .map(|(row, &r)| {
            if r < 2.0 {
                return 0.0;
            }
            let sum: f64 = (0..k)
                .map(|i| row[i] * ((0..k).map(|j| agree(i, j) * row[j]).sum::<f64>() - 1.0))
                .sum();
            sum / (r * (r - 1.0))
        })
        .collect();
    let observed = unit_agreement.iter().sum::<f64>() / paired as f64;
    let n = counts.len() as f64;
    let share: Vec<f64> = (0..k)
        .map(|c| counts.iter().zip(&rated).map(|(row, r)| row[c] / r).sum::<f64>() / n)
        .collect();
    let ac_scale = total_weight / (k * (k - 1)) as f64;
    let chance = ac_scale * share.iter().map(|p| p * (1.0 - p)).sum::<f64>();
    let gwet = corrected(observed, chance);
    let gwet_standard_error = gwet.coefficient.and_then(|ac| {
        if counts.len() < 2 {
            return undefined(Reason::TooFewValues);
        }
        let sum: f64 = (0..counts.len())
            .map(|u| {
                let usable = if rated[u] >= 2.0 { 1.0 } else { 0.0 };
                let own =
                    n / paired as f64 * (unit_agreement[u] - chance * usable) / (1.0 - chance);
                let own_chance = ac_scale
                    * (0..k).map(|c| counts[u][c] * (1.0 - share[c])).sum::<f64>()
                    / rated[u];
                let value = own - 2.0 * (1.0 - ac) * (own_chance - chance) / (1.0 - chance);
                (value - ac).powi(2)
            })
            .sum();
        Ok((sum / (n * (n - 1.0))).sqrt())
    });
    let gwet_estimate = gwet_standard_error.and_then(|error| {
        crate::stats::undefined::require_open_unit(level)?;
        let point = gwet.coefficient?;
        let margin = student_critical(level, n - 1.0) * error;
        let mut interval = Interval::around(point, margin, level);
        interval.upper = interval.upper.min(1.0);
        Ok(Estimate { point, interval, n: counts.len(), method: Method::StudentT })
    });
    let pairwise = |p: &[f64], q: &[f64]| -> f64 {
        (0..k)
            .flat_map(|i| (0..k).map(move |j| (i, j)))
            .map(|(i, j)| agree(i, j) * p[i] * q[j])
            .sum()
    };
    let own: Vec<Vec<f64>> = (0..raters)
        .filter_map(|g| {
            let mut counts = vec![0.0; k];
            units.iter().filter_map(|row| row[g]).for_each(|c| counts[c] += 1.0);
            let total: f64 = counts.iter().sum();
            (total > 0.0).then(|| counts.iter().map(|c| c / total).collect())
        })
        .collect();
    let r = own.len() as f64;
    let pooled: Vec<f64> = (0..k).map(|c| own.iter().map(|p| p[c]).sum::<f64>()).collect();
    // Sum over ordered pairs of different raters = all pairs minus each with itself.
    let conger_chance = (pairwise(&pooled, &pooled)
        - own.iter().map(|p| pairwise(p, p)).sum::<f64>())
        / (r * (r - 1.0));
    Ok(WeightedAgreement {
        observed,
        gwet,
        gwet_estimate,
        gwet_standard_error,
        brennan_prediger: corrected(observed, total_weight / (k * k) as f64),
        fleiss: corrected(observed, pairwise(&share, &share)),
        conger: corrected(observed, conger_chance),
        n: paired,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_panel_has_full_agreement_under_ac1_and_none_defined_under_fleiss() {
        let units = vec![vec![Some(1), Some(1)]; 5];
        let result = gwet_coefficients(&units, 3, Weighting::Unweighted, 0.95).unwrap();
        assert_eq!(result.gwet.coefficient, Ok(1.0));
        assert_eq!(result.fleiss.coefficient.unwrap_err().reason, Reason::SingleValue);
    }

    #[test]
    fn no_pairs_and_one_category_are_undefined() {
        let alone = vec![vec![Some(0), None], vec![None, Some(1)]];
        let f = |u: &[Vec<Option<usize>>], k| gwet_coefficients(u, k, Weighting::Linear, 0.95);
        assert_eq!(f(&alone, 2).unwrap_err().reason, Reason::TooFewRaters);
        assert_eq!(f(&alone, 1).unwrap_err().reason, Reason::SingleValue);
        assert_eq!(f(&[vec![Some(5), Some(0)]], 2).unwrap_err().reason, Reason::UnknownCategory);
        assert_eq!(f(&[], 2).unwrap_err().reason, Reason::NoData);
        assert_eq!(f(&[vec![None, None]], 2).unwrap_err().reason, Reason::NoData);
    }
}
