//! How far probabilities are from the outcomes they announce.
//!
//! CORP needs no bins and is the primary view; ECE is biased upward on few cases and is
//! kept for comparison. Probabilities are in \[0,1\], outcomes are booleans.

use serde::{Deserialize, Serialize};

use super::calibration_map::IsotonicMap;
use super::calibration_map::binning::equal_width_bin;
use super::distribution::{logit, normal_two_sided};
use super::logistic::logistic;
use super::summary::raw_mean;
use super::undefined::{Defined, Reason, require_unit, undefined};

/// How cases are put into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binning {
    /// `[i/B, (i+1)/B)`, the last closed.
    EqualWidth,
    /// Consecutive runs of the sorted cases, the first `n mod B` one longer.
    EqualMass,
}

/// One non-empty bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReliabilityBin {
    /// Cases.
    pub count: usize,
    /// Mean announced probability.
    pub confidence: f64,
    /// Share of good outcomes.
    pub frequency: f64,
}

fn numbers(p: &[f64], good: &[bool]) -> Defined<Vec<f64>> {
    if p.len() != good.len() {
        return undefined(Reason::LengthMismatch);
    }
    require_unit(p)?;
    Ok(good.iter().map(|&g| f64::from(u8::from(g))).collect())
}

fn bin_members(p: &[f64], bins: usize, binning: Binning) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); bins];
    match binning {
        Binning::EqualWidth => {
            for (i, v) in p.iter().enumerate() {
                members[equal_width_bin(*v, bins)].push(i);
            }
        }
        Binning::EqualMass => {
            let mut order: Vec<usize> = (0..p.len()).collect();
            order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
            let (size, longer) = (p.len() / bins, p.len() % bins);
            let mut rest = order.as_slice();
            for (b, bin) in members.iter_mut().enumerate() {
                let (head, tail) = rest.split_at(size + usize::from(b < longer));
                *bin = head.to_vec();
                rest = tail;
            }
        }
    }
    members.retain(|bin| !bin.is_empty());
    members
}

/// Gives cases of equal probability their mean outcome, so that the edge of a bin may run
/// through a tie and no order of the cases says which of them fall on which side.
fn share_ties(p: &[f64], y: &mut [f64]) {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&i, &j| p[i].total_cmp(&p[j]));
    for tie in order.chunk_by(|&i, &j| p[i] == p[j]) {
        // Whole numbers, whose sum is exact.
        let mean = tie.iter().map(|&i| y[i]).sum::<f64>() / tie.len() as f64;
        tie.iter().for_each(|&i| y[i] = mean);
    }
}

/// The reliability diagram: non-empty bins in order.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `out_of_range` (also for no bins).
pub fn reliability(
    p: &[f64],
    good: &[bool],
    bins: usize,
    binning: Binning,
) -> Defined<Vec<ReliabilityBin>> {
    let mut y = numbers(p, good)?;
    if bins == 0 {
        return undefined(Reason::OutOfRange);
    }
    if binning == Binning::EqualMass {
        share_ties(p, &mut y);
    }
    Ok(bin_members(p, bins, binning)
        .into_iter()
        .map(|bin| {
            let n = bin.len() as f64;
            ReliabilityBin {
                count: bin.len(),
                confidence: bin.iter().map(|&i| p[i]).sum::<f64>() / n,
                frequency: bin.iter().map(|&i| y[i]).sum::<f64>() / n,
            }
        })
        .collect())
}

/// ECE = sum n_b/n |frequency - confidence| (Naeini et al. 2015); with equal-mass bins this
/// is the ACE of Nixon et al. (2019). In \[0,1\].
///
/// # Errors
/// As [`reliability`].
pub fn expected_calibration_error(
    p: &[f64],
    good: &[bool],
    bins: usize,
    binning: Binning,
) -> Defined {
    let n = p.len() as f64;
    Ok(reliability(p, good, bins, binning)?
        .iter()
        .map(|b| b.count as f64 / n * (b.frequency - b.confidence).abs())
        .sum())
}

/// MCE = max |frequency - confidence| over non-empty bins, in \[0,1\].
///
/// # Errors
/// As [`reliability`].
pub fn maximum_calibration_error(
    p: &[f64],
    good: &[bool],
    bins: usize,
    binning: Binning,
) -> Defined {
    Ok(reliability(p, good, bins, binning)?
        .iter()
        .map(|b| (b.frequency - b.confidence).abs())
        .fold(0.0, f64::max))
}

/// Brier score = mean (p - y)^2 (1950), in \[0,1\], lower is better.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `out_of_range`.
pub fn brier(p: &[f64], good: &[bool]) -> Defined {
    let y = numbers(p, good)?;
    Ok(p.iter().zip(&y).map(|(p, y)| (p - y) * (p - y)).sum::<f64>() / p.len() as f64)
}

/// Log loss = -mean (y ln p + (1-y) ln(1-p)); infinite when a certain forecast was wrong,
/// which is the truth about it and is not clipped.
///
/// # Errors
/// As [`brier`].
pub fn log_loss(p: &[f64], good: &[bool]) -> Defined {
    numbers(p, good)?;
    let total: f64 =
        p.iter().zip(good).map(|(p, &g)| if g { -p.ln() } else { -(-p).ln_1p() }).sum();
    Ok(total / p.len() as f64)
}

/// Murphy's (1973) partition with the within-bin terms of Stephenson et al. (2008):
/// Brier = reliability - resolution + uncertainty + variance - covariance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MurphyPartition {
    /// `sum n_b/n (confidence - frequency)^2`.
    pub reliability: f64,
    /// `sum n_b/n (frequency - base rate)^2`.
    pub resolution: f64,
    /// `base rate (1 - base rate)`.
    pub uncertainty: f64,
    /// Mean squared deviation of p inside its bin.
    pub within_bin_variance: f64,
    /// Twice the mean product of the deviations of y and p inside the bin.
    pub within_bin_covariance: f64,
}

/// The Murphy partition over equal-width bins.
///
/// # Errors
/// As [`reliability`].
pub fn murphy_partition(p: &[f64], good: &[bool], bins: usize) -> Defined<MurphyPartition> {
    let y = numbers(p, good)?;
    if bins == 0 {
        return undefined(Reason::OutOfRange);
    }
    let n = p.len() as f64;
    let base = raw_mean(&y);
    let mut out = MurphyPartition {
        reliability: 0.0,
        resolution: 0.0,
        uncertainty: base * (1.0 - base),
        within_bin_variance: 0.0,
        within_bin_covariance: 0.0,
    };
    for bin in bin_members(p, bins, Binning::EqualWidth) {
        let size = bin.len() as f64;
        let confidence = bin.iter().map(|&i| p[i]).sum::<f64>() / size;
        let frequency = bin.iter().map(|&i| y[i]).sum::<f64>() / size;
        out.reliability += size / n * (confidence - frequency).powi(2);
        out.resolution += size / n * (frequency - base).powi(2);
        for &i in &bin {
            out.within_bin_variance += (p[i] - confidence).powi(2) / n;
            out.within_bin_covariance += 2.0 * (y[i] - frequency) * (p[i] - confidence) / n;
        }
    }
    Ok(out)
}

/// CORP (Dimitriadis, Gneiting and Jordan 2021): Brier = MCB - DSC + UNC, no bin choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corp {
    /// MCB = BS(p) - BS(recalibrated p), at least 0; 0 is perfectly calibrated.
    pub miscalibration: f64,
    /// DSC = BS(base rate) - BS(recalibrated p), at least 0; 0 does not discriminate.
    pub discrimination: f64,
    /// UNC = BS(base rate).
    pub uncertainty: f64,
}

/// The CORP decomposition by isotonic recalibration.
///
/// # Errors
/// As [`brier`].
pub fn corp(p: &[f64], good: &[bool]) -> Defined<Corp> {
    let y = numbers(p, good)?;
    let n = p.len() as f64;
    let map = IsotonicMap::fit(p, &y, None)?;
    let recalibrated = p.iter().zip(&y).map(|(p, y)| (map.apply(*p) - y).powi(2)).sum::<f64>() / n;
    let base = raw_mean(&y);
    let uncertainty = base * (1.0 - base);
    Ok(Corp {
        miscalibration: brier(p, good)? - recalibrated,
        discrimination: uncertainty - recalibrated,
        uncertainty,
    })
}

/// Spiegelhalter's (1986) test of calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spiegelhalter {
    /// `sum (y - p)(1 - 2p) / sqrt(sum (1 - 2p)^2 p (1 - p))`.
    pub z: f64,
    /// Two-sided normal p-value.
    pub p: f64,
}

/// Spiegelhalter's z.
///
/// # Errors
/// As [`brier`]; `zero_variance` when every p is 0, 1/2 or 1.
pub fn spiegelhalter(p: &[f64], good: &[bool]) -> Defined<Spiegelhalter> {
    let y = numbers(p, good)?;
    let (mut top, mut bottom) = (0.0, 0.0);
    for (p, y) in p.iter().zip(&y) {
        top += (y - p) * (1.0 - 2.0 * p);
        bottom += (1.0 - 2.0 * p).powi(2) * p * (1.0 - p);
    }
    if bottom == 0.0 {
        return undefined(Reason::ZeroVariance);
    }
    let z = top / bottom.sqrt();
    Ok(Spiegelhalter { z, p: normal_two_sided(z) })
}

/// Logistic recalibration `logit P(y) = intercept + slope logit p` (Cox 1958); 0 and 1 are
/// perfect, a slope below 1 means overconfidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// Intercept.
    pub intercept: f64,
    /// Slope.
    pub slope: f64,
}

/// Calibration intercept and slope.
///
/// # Errors
/// As [`brier`]; `out_of_range` when a p is 0 or 1 (no logit), `single_class`,
/// `perfect_separation`, `singular_matrix` for constant p.
pub fn recalibration(p: &[f64], good: &[bool]) -> Defined<Recalibration> {
    let y = numbers(p, good)?;
    if p.iter().any(|v| *v == 0.0 || *v == 1.0) {
        return undefined(Reason::OutOfRange);
    }
    if good.iter().all(|g| *g) || good.iter().all(|g| !*g) {
        return undefined(Reason::SingleClass);
    }
    let design: Vec<Vec<f64>> = p.iter().map(|v| vec![1.0, logit(*v)]).collect();
    let fit = logistic(&design, &y)?;
    Ok(Recalibration { intercept: fit.coefficients[0], slope: fit.coefficients[1] })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_partitions_add_up_to_the_brier_score(
            rows in prop::collection::vec((0u8..=100, any::<bool>()), 1..80), bins in 1usize..15
        ) {
            let (p, y): (Vec<f64>, Vec<bool>) =
                rows.into_iter().map(|r| (f64::from(r.0) / 100.0, r.1)).unzip();
            let score = brier(&p, &y).unwrap();
            let m = murphy_partition(&p, &y, bins).unwrap();
            let sum = m.reliability - m.resolution + m.uncertainty + m.within_bin_variance
                - m.within_bin_covariance;
            prop_assert!((sum - score).abs() < 1e-12);
            let c = corp(&p, &y).unwrap();
            prop_assert!((c.miscalibration - c.discrimination + c.uncertainty - score).abs() < 1e-12);
            prop_assert!(c.miscalibration > -1e-12 && c.discrimination > -1e-12);
        }
    }

    #[test]
    fn a_wrong_certain_forecast_costs_infinitely() {
        assert_eq!(log_loss(&[1.0], &[false]), Ok(f64::INFINITY));
        assert_eq!(log_loss(&[1.0, 0.0], &[true, false]), Ok(0.0));
    }

    #[test]
    fn degenerate_forecasts_are_undefined() {
        assert_eq!(
            spiegelhalter(&[0.5, 1.0], &[true, true]).unwrap_err().reason,
            Reason::ZeroVariance
        );
        assert_eq!(
            recalibration(&[0.2, 0.7], &[true, true]).unwrap_err().reason,
            Reason::SingleClass
        );
        assert_eq!(brier(&[], &[]).unwrap_err().reason, Reason::NoData);
        assert_eq!(brier(&[1.1], &[true]).unwrap_err().reason, Reason::OutOfRange);
        assert_eq!(brier(&[f64::NAN], &[true]).unwrap_err().reason, Reason::NotFinite);
    }
}
