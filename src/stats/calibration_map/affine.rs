//! Straight-line maps: offset, least squares, shrunk, Theil-Sen, Deming.
//!
//! With few labels the shrunk line wins; a constant judge gets the labels' mean and a flag.

use serde::{Deserialize, Serialize};

use crate::stats::distribution::{normal_quantile, student_critical};
use crate::stats::summary::{
    is_constant, median_of_sorted, raw_mean, sorted, sum_of_products, sum_of_squares, tie_sizes,
};
use crate::stats::undefined::{Defined, Reason, require_open_unit, require_pairs, undefined};
use crate::stats::{Estimate, Interval, Method};

/// `label = intercept + slope * score`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffineMap {
    /// Slope.
    pub slope: f64,
    /// Intercept.
    pub intercept: f64,
}

impl AffineMap {
    /// The mapped score.
    #[must_use]
    pub fn apply(self, score: f64) -> f64 {
        self.slope.mul_add(score, self.intercept)
    }
}

/// A least-squares line with its errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffineFit {
    /// The line.
    pub map: AffineMap,
    /// Standard error of the slope.
    pub slope_standard_error: f64,
    /// Standard error of the intercept.
    pub intercept_standard_error: f64,
    /// Residual variance, divisor n - 2.
    pub residual_variance: f64,
    /// Labels used.
    pub n: usize,
    /// The judge gave one score throughout, so the line is the labels' mean.
    pub constant_judge: bool,
}

/// The mean correction `b = mean(label - score)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offset {
    /// The correction with its t interval.
    pub estimate: Estimate,
    /// `b` times the James-Stein factor `max(0, 1 - (s^2/n) / b^2)`.
    pub shrunk: f64,
}

/// Offset of a judge: what to add to its scores.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `too_few_values` below two, `out_of_range`.
pub fn offset(score: &[f64], label: &[f64], level: f64) -> Defined<Offset> {
    require_open_unit(level)?;
    require_pairs(score, label)?;
    if score.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    let n = score.len() as f64;
    let difference: Vec<f64> = label.iter().zip(score).map(|(y, s)| y - s).collect();
    let point = raw_mean(&difference);
    let error2 = sum_of_squares(&difference) / (n - 1.0) / n;
    let factor = if point == 0.0 { 0.0 } else { (1.0 - error2 / (point * point)).max(0.0) };
    let margin = student_critical(level, n - 1.0) * error2.sqrt();
    Ok(Offset {
        estimate: Estimate {
            point,
            interval: Interval::around(point, margin, level),
            n: score.len(),
            method: Method::StudentT,
        },
        shrunk: factor * point,
    })
}

/// Ordinary least squares of label on score: slope `Sxy / Sxx`.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `too_few_values` below three,
/// `constant_input` for a constant judge.
pub fn ordinary_least_squares(score: &[f64], label: &[f64]) -> Defined<AffineFit> {
    require_pairs(score, label)?;
    if score.len() < 3 {
        return undefined(Reason::TooFewValues);
    }
    let spread = sum_of_squares(score);
    if is_constant(score) || spread == 0.0 {
        return undefined(Reason::ConstantInput);
    }
    let n = score.len() as f64;
    let slope = sum_of_products(score, label) / spread;
    let centre = raw_mean(score);
    let intercept = raw_mean(label) - slope * centre;
    let map = AffineMap { slope, intercept };
    let residual: f64 =
        score.iter().zip(label).map(|(s, y)| (y - map.apply(*s)).powi(2)).sum::<f64>();
    let residual_variance = residual / (n - 2.0);
    Ok(AffineFit {
        map,
        slope_standard_error: (residual_variance / spread).sqrt(),
        intercept_standard_error: (residual_variance * (1.0 / n + centre * centre / spread)).sqrt(),
        residual_variance,
        n: score.len(),
        constant_judge: false,
    })
}

/// Prior of a slope in units of sd(label) / sd(score).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlopePrior {
    /// Centre.
    pub slope: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl Default for SlopePrior {
    /// 0.5 ± 0.3: what LLM judges on Likert data showed before any label was seen.
    fn default() -> Self {
        Self { slope: 0.5, deviation: 0.3 }
    }
}

/// The line with its slope shrunk toward a prior:
/// `a' = (a/va + a0/tau^2) / (1/va + 1/tau^2)`, `va = sigma^2 / Sxx`, intercept
/// `mean(y) - a' mean(s)`. A constant judge gets slope 0 and the labels' mean, flagged.
///
/// # Errors
/// As [`ordinary_least_squares`] without `constant_input`; `out_of_range` for a prior
/// deviation that is not positive.
pub fn shrunk_affine(score: &[f64], label: &[f64], prior: SlopePrior) -> Defined<AffineFit> {
    if !(prior.slope.is_finite() && prior.deviation > 0.0) {
        return undefined(Reason::OutOfRange);
    }
    let fit = fit_affine(score, label)?;
    if fit.constant_judge {
        return Ok(fit);
    }
    let unit = (sum_of_squares(label) / sum_of_squares(score)).sqrt();
    let (target, tau2) = (prior.slope * unit, (prior.deviation * unit).powi(2));
    let own = fit.slope_standard_error.powi(2);
    // own = 0 (a perfect line) and tau2 = 0 (constant labels) both leave the own slope.
    let weight = if own + tau2 == 0.0 { 1.0 } else { tau2 / (own + tau2) };
    let slope = weight * fit.map.slope + (1.0 - weight) * target;
    let map = AffineMap { slope, intercept: raw_mean(label) - slope * raw_mean(score) };
    let residual: f64 = score.iter().zip(label).map(|(s, y)| (y - map.apply(*s)).powi(2)).sum();
    Ok(AffineFit {
        map,
        slope_standard_error: if own == 0.0 { 0.0 } else { (own * weight).sqrt() },
        residual_variance: residual / (score.len() - 2) as f64,
        ..fit
    })
}

/// [`ordinary_least_squares`], with slope 0 and the labels' mean for a constant judge.
///
/// # Errors
/// As [`ordinary_least_squares`] without `constant_input`.
pub fn fit_affine(score: &[f64], label: &[f64]) -> Defined<AffineFit> {
    match ordinary_least_squares(score, label) {
        Err(error) if error.reason == Reason::ConstantInput => {
            let n = label.len() as f64;
            let variance = sum_of_squares(label) / (n - 1.0);
            Ok(AffineFit {
                map: AffineMap { slope: 0.0, intercept: raw_mean(label) },
                slope_standard_error: 0.0,
                intercept_standard_error: (variance / n).sqrt(),
                residual_variance: variance,
                n: label.len(),
                constant_judge: true,
            })
        }
        other => other,
    }
}

/// A Theil-Sen line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TheilSen {
    /// The line; intercept `median(y) - slope median(x)`.
    pub map: AffineMap,
    /// Sen's (1968) rank interval of the slope.
    pub slope: Estimate,
}

/// Median of the pairwise slopes (Theil 1950, Sen 1968), robust to a share of 29 % of bad
/// labels. O(n^2) slopes are held, so it is meant for labels by the thousand at most.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `constant_input`, `out_of_range`.
pub fn theil_sen(score: &[f64], label: &[f64], level: f64) -> Defined<TheilSen> {
    require_open_unit(level)?;
    require_pairs(score, label)?;
    if is_constant(score) {
        return undefined(Reason::ConstantInput);
    }
    let n = score.len();
    let mut slopes: Vec<f64> = (0..n)
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|&(i, j)| score[i] != score[j])
        .map(|(i, j)| (label[i] - label[j]) / (score[i] - score[j]))
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = median_of_sorted(&slopes);
    let intercept = median_of_sorted(&sorted(label)) - slope * median_of_sorted(&sorted(score));
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let ties =
        |v: &[f64]| -> f64 { tie_sizes(&sorted(v)).into_iter().map(|t| term(t as f64)).sum() };
    let deviation = ((term(n as f64) - ties(score) - ties(label)) / 18.0).max(0.0).sqrt();
    let z = normal_quantile((1.0 - level) / 2.0);
    let count = slopes.len() as f64;
    let last = count - 1.0;
    let upper = ((count - z * deviation) / 2.0).round_ties_even().clamp(0.0, last) as usize;
    let lower = (((count + z * deviation) / 2.0).round_ties_even() - 1.0).clamp(0.0, last) as usize;
    Ok(TheilSen {
        map: AffineMap { slope, intercept },
        slope: Estimate {
            point: slope,
            interval: Interval { lower: slopes[lower], upper: slopes[upper], level },
            n,
            method: Method::Sen,
        },
    })
}

/// Deming regression with `ratio` = error variance of the label over that of the score:
/// `b = [Syy - d Sxx + sqrt((Syy - d Sxx)^2 + 4 d Sxy^2)] / (2 Sxy)` (Deming 1943).
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `out_of_range` for a ratio that is not
/// positive, `constant_input`, `zero_denominator` when the covariance is 0.
pub fn deming(score: &[f64], label: &[f64], ratio: f64) -> Defined<AffineMap> {
    require_pairs(score, label)?;
    if !(ratio.is_finite() && ratio > 0.0) {
        return undefined(Reason::OutOfRange);
    }
    if is_constant(score) {
        return undefined(Reason::ConstantInput);
    }
    let (sxx, syy, sxy) =
        (sum_of_squares(score), sum_of_squares(label), sum_of_products(score, label));
    if sxy == 0.0 {
        return undefined(Reason::ZeroDenominator);
    }
    let gap = syy - ratio * sxx;
    let root = (gap * gap + 4.0 * ratio * sxy * sxy).sqrt();
    // The form without cancellation for either sign of the gap.
    let slope =
        if gap >= 0.0 { (gap + root) / (2.0 * sxy) } else { 2.0 * ratio * sxy / (root - gap) };
    Ok(AffineMap { slope, intercept: raw_mean(label) - slope * raw_mean(score) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: [f64; 6] = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9];
    const Y: [f64; 6] = [0.2, 0.2, 0.5, 0.4, 0.9, 0.7];

    #[test]
    fn a_constant_judge_predicts_the_mean_and_is_flagged() {
        let fit = shrunk_affine(&[0.5; 6], &Y, SlopePrior::default()).unwrap();
        assert!(fit.constant_judge);
        assert_eq!(fit.map.slope, 0.0);
        assert!((fit.map.apply(0.123) - Y.iter().sum::<f64>() / 6.0).abs() < 1e-15);
        assert_eq!(
            ordinary_least_squares(&[0.5; 6], &Y).unwrap_err().reason,
            Reason::ConstantInput
        );
        assert!(theil_sen(&[0.5; 6], &Y, 0.95).is_err() && deming(&[0.5; 6], &Y, 1.0).is_err());
    }

    #[test]
    fn a_tight_prior_wins_and_a_wide_prior_changes_nothing() {
        let own = ordinary_least_squares(&S, &Y).unwrap().map.slope;
        let tight = SlopePrior { slope: 0.5, deviation: 1e-6 };
        let wide = SlopePrior { slope: 0.5, deviation: 1e6 };
        let unit = (sum_of_squares(&Y) / sum_of_squares(&S)).sqrt();
        assert!((shrunk_affine(&S, &Y, tight).unwrap().map.slope - 0.5 * unit).abs() < 1e-6);
        assert!((shrunk_affine(&S, &Y, wide).unwrap().map.slope - own).abs() < 1e-6);
        let fitted = shrunk_affine(&S, &Y, SlopePrior::default()).unwrap().map.slope;
        assert!(fitted > 0.5 * unit && fitted < own);
    }

    #[test]
    fn theil_sen_ignores_one_wild_label() {
        let mut wild = S.map(|s| 2.0 * s);
        wild[5] = 100.0;
        assert!((theil_sen(&S, &wild, 0.95).unwrap().map.slope - 2.0).abs() < 1e-12);
    }

    #[test]
    fn deming_of_swapped_axes_is_the_inverse() {
        let (a, b) = (deming(&S, &Y, 1.0).unwrap(), deming(&Y, &S, 1.0).unwrap());
        assert!((a.slope * b.slope - 1.0).abs() < 1e-12);
    }

    #[test]
    fn an_offset_within_its_noise_shrinks_to_zero() {
        let noisy = offset(&[0.0, 1.0, 0.0, 1.0], &[1.0, 0.0, 0.9, 0.2], 0.95).unwrap();
        assert_eq!(noisy.shrunk, 0.0);
        let clear = offset(&S, &S.map(|s| s + 0.2), 0.95).unwrap();
        assert!((clear.shrunk - 0.2).abs() < 1e-12);
        assert!(offset(&[1.0], &[1.0], 0.95).is_err());
    }
}
