//! Prediction-powered means: the judge's mean on many cases, corrected by labelled ones.
//!
//! Its normal interval is too narrow when the labels hardly disagree with the judge, so it
//! is shown beside the post-stratified rate and flagged by [`PredictionPowered::trusted`].

use serde::{Deserialize, Serialize};

use crate::stats::distribution::normal_critical;
use crate::stats::summary::{raw_mean, sum_of_products, sum_of_squares};
use crate::stats::undefined::{
    Defined, Reason, require_finite, require_open_unit, require_pairs, undefined,
};
use crate::stats::{Estimate, Interval, Method};

/// A prediction-powered mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictionPowered {
    /// The mean with a normal interval, not clipped.
    pub estimate: Estimate,
    /// Weight of the judge, in \[0,1\].
    pub weight: f64,
    /// Whether the labels disagree with the judge at least ten times in each direction;
    /// below that the interval is known to cover far less than it claims.
    pub trusted: bool,
}

/// Divisors of the two variances in the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// n, as the reference implementation of the authors.
    Population,
    /// n - 1.
    Sample,
}

/// `theta_l = l mean(f_unlabelled) + mean(y - l f)`,
/// `V = l^2 Var(f_unlabelled)/N + Var(y - l f)/n` (Angelopoulos et al. 2023).
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `out_of_range` for a weight outside \[0,1\];
/// `too_few_values` below two labels or two unlabelled cases.
pub fn ppi_with_weight(
    label: &[f64],
    judge_labelled: &[f64],
    judge_unlabelled: &[f64],
    weight: f64,
    divisor: Divisor,
    level: f64,
) -> Defined<PredictionPowered> {
    require_open_unit(level)?;
    require_pairs(label, judge_labelled)?;
    require_finite(judge_unlabelled)?;
    if !(0.0..=1.0).contains(&weight) {
        return undefined(Reason::OutOfRange);
    }
    if label.len() < 2 || judge_unlabelled.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    let less = match divisor {
        Divisor::Population => 0.0,
        Divisor::Sample => 1.0,
    };
    let residual: Vec<f64> =
        label.iter().zip(judge_labelled).map(|(y, f)| y - weight * f).collect();
    let (n, many) = (label.len() as f64, judge_unlabelled.len() as f64);
    let variance = weight * weight * sum_of_squares(judge_unlabelled) / (many - less) / many
        + sum_of_squares(&residual) / (n - less) / n;
    let point = weight * raw_mean(judge_unlabelled) + raw_mean(&residual);
    let above = label.iter().zip(judge_labelled).filter(|(y, f)| y > f).count();
    let below = label.iter().zip(judge_labelled).filter(|(y, f)| y < f).count();
    Ok(PredictionPowered {
        estimate: Estimate {
            point,
            interval: Interval::around(point, normal_critical(level) * variance.sqrt(), level),
            n: label.len(),
            method: Method::PpiPlusPlus,
        },
        weight,
        trusted: above >= 10 && below >= 10,
    })
}

/// The weight that minimises the variance:
/// `l* = Cov(y, f) / (Var(f) (1 + n/N))` cut to \[0,1\]; 0 for a constant judge.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`.
pub fn optimal_weight(label: &[f64], judge_labelled: &[f64], judge_unlabelled: &[f64]) -> Defined {
    require_pairs(label, judge_labelled)?;
    require_finite(judge_unlabelled)?;
    let (n, many) = (label.len() as f64, judge_unlabelled.len() as f64);
    let all: Vec<f64> = judge_labelled.iter().chain(judge_unlabelled).copied().collect();
    let variance = sum_of_squares(&all) / (n + many - 1.0);
    if variance == 0.0 {
        return Ok(0.0);
    }
    let covariance = sum_of_products(label, judge_labelled) / n;
    Ok((covariance / (variance * (1.0 + n / many))).clamp(0.0, 1.0))
}

/// PPI++ (Angelopoulos, Duchi and Zrnic 2023): [`ppi_with_weight`] at [`optimal_weight`].
///
/// # Errors
/// As [`ppi_with_weight`].
pub fn ppi_plus_plus(
    label: &[f64],
    judge_labelled: &[f64],
    judge_unlabelled: &[f64],
    divisor: Divisor,
    level: f64,
) -> Defined<PredictionPowered> {
    let weight = optimal_weight(label, judge_labelled, judge_unlabelled)?;
    ppi_with_weight(label, judge_labelled, judge_unlabelled, weight, divisor, level)
}

/// A mean when labels were chosen with known, unequal probabilities (Horvitz and Thompson
/// 1952 on the residuals): `mean_i [l f_i + xi_i / pi_i (y_i - l f_i)]`, normal interval
/// from the sample variance of the terms. `labels[i]` is `None` where no label was drawn.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `too_few_values` below two cases or without
/// a label; `out_of_range` for a probability outside (0,1\] or a weight outside \[0,1\].
pub fn inverse_probability(
    judge: &[f64],
    labels: &[Option<f64>],
    probability: &[f64],
    weight: f64,
    level: f64,
) -> Defined<PredictionPowered> {
    require_open_unit(level)?;
    require_pairs(judge, probability)?;
    if labels.len() != judge.len() {
        return undefined(Reason::LengthMismatch);
    }
    let given: Vec<f64> = labels.iter().flatten().copied().collect();
    if given.is_empty() || judge.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    require_finite(&given)?;
    let outside = |p: &f64| !(*p > 0.0 && *p <= 1.0);
    if !(0.0..=1.0).contains(&weight) || probability.iter().any(outside) {
        return undefined(Reason::OutOfRange);
    }
    let terms: Vec<f64> = judge
        .iter()
        .zip(labels)
        .zip(probability)
        .map(|((f, y), p)| weight * f + y.map_or(0.0, |y| (y - weight * f) / p))
        .collect();
    require_finite(&terms)?;
    let n = terms.len() as f64;
    let point = raw_mean(&terms);
    let error = (sum_of_squares(&terms) / (n - 1.0) / n).sqrt();
    let count = |side: fn(&f64, &f64) -> bool| {
        judge.iter().zip(labels).filter(|(f, y)| y.is_some_and(|y| side(&y, f))).count()
    };
    Ok(PredictionPowered {
        estimate: Estimate {
            point,
            interval: Interval::around(point, normal_critical(level) * error, level),
            n: given.len(),
            method: Method::PpiPlusPlus,
        },
        weight,
        trusted: count(|y, f| y > f) >= 10 && count(|y, f| y < f) >= 10,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::draw::stream;
    use rand::RngExt;

    #[test]
    fn unequal_label_probabilities_do_not_bias_the_mean() {
        // Good cases are 70 %; labels are drawn four times as often where the judge fails.
        let repeats = 600u64;
        let (mut sum, mut held) = (0.0, 0u32);
        for i in 0..repeats {
            let mut rng = stream(31, i);
            let (mut judge, mut labels, mut chance) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..600 {
                let good = rng.random::<f64>() < 0.7;
                let right = rng.random::<f64>() < 0.8;
                let passed = good == right;
                let p = if passed { 0.15 } else { 0.6 };
                judge.push(f64::from(u8::from(passed)));
                let drawn = rng.random::<f64>() < p;
                labels.push(drawn.then(|| f64::from(u8::from(good))));
                chance.push(p);
            }
            let r = inverse_probability(&judge, &labels, &chance, 0.6, 0.95).unwrap();
            sum += r.estimate.point;
            held += u32::from(r.estimate.interval.contains(0.7));
        }
        assert!((sum / repeats as f64 - 0.7).abs() < 0.006, "{}", sum / repeats as f64);
        let coverage = f64::from(held) / repeats as f64;
        assert!((coverage - 0.95).abs() < 0.03, "{coverage}");
        let none = inverse_probability(&[1.0, 0.0], &[None, None], &[0.5, 0.5], 1.0, 0.95);
        assert_eq!(none.unwrap_err().reason, Reason::TooFewValues);
        let zero = inverse_probability(&[1.0, 0.0], &[None, Some(1.0)], &[0.0, 0.5], 1.0, 0.95);
        assert_eq!(zero.unwrap_err().reason, Reason::OutOfRange);
    }

    #[test]
    fn a_constant_judge_gets_no_weight() {
        let r = ppi_plus_plus(&[1.0, 0.0, 1.0], &[1.0; 3], &[1.0; 50], Divisor::Population, 0.95)
            .unwrap();
        assert_eq!(r.weight, 0.0);
        assert!((r.estimate.point - 2.0 / 3.0).abs() < 1e-15);
        assert!(!r.trusted);
    }

    #[test]
    fn nothing_labelled_is_undefined() {
        let f = |y: &[f64], u: &[f64]| {
            ppi_plus_plus(y, y, u, Divisor::Population, 0.95).unwrap_err().reason
        };
        assert_eq!(f(&[], &[1.0]), Reason::NoData);
        assert_eq!(f(&[1.0], &[1.0, 0.0]), Reason::TooFewValues);
        assert_eq!(f(&[1.0, f64::NAN], &[1.0, 0.0]), Reason::NotFinite);
    }
}
