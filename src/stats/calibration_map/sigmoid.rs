//! Probability maps of logistic shape: Platt, Firth, beta, temperature.

use serde::{Deserialize, Serialize};

use crate::stats::distribution::{log1p_exp, sigmoid};
use crate::stats::logistic::{LogisticFit, firth, logistic};
use crate::stats::undefined::{Defined, Reason, require_pairs, undefined};

/// `p = 1 / (1 + exp(-(intercept + slope * score)))`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogitLine {
    /// Slope on the score.
    pub slope: f64,
    /// Intercept.
    pub intercept: f64,
}

impl LogitLine {
    /// The probability at `score`, in (0,1).
    #[must_use]
    pub fn apply(self, score: f64) -> f64 {
        sigmoid(self.slope.mul_add(score, self.intercept))
    }
}

fn design(score: &[f64]) -> Vec<Vec<f64>> {
    score.iter().map(|&s| vec![1.0, s]).collect()
}

fn line(fit: &LogisticFit) -> LogitLine {
    LogitLine { intercept: fit.coefficients[0], slope: fit.coefficients[1] }
}

fn numbers(labels: &[bool]) -> Vec<f64> {
    labels.iter().map(|&good| f64::from(u8::from(good))).collect()
}

fn require_both_classes(score: &[f64], labels: &[bool]) -> Defined<()> {
    if score.len() != labels.len() {
        return undefined(Reason::LengthMismatch);
    }
    crate::stats::undefined::require_finite(score)?;
    if labels.iter().all(|l| *l) || labels.iter().all(|l| !*l) {
        return undefined(Reason::SingleClass);
    }
    Ok(())
}

/// Platt's (1999) soft targets `(N1 + 1) / (N1 + 2)` and `1 / (N0 + 2)` for the counts of
/// good and bad labels.
#[must_use]
pub fn platt_targets(good: usize, bad: usize) -> (f64, f64) {
    ((good as f64 + 1.0) / (good as f64 + 2.0), 1.0 / (bad as f64 + 2.0))
}

/// Platt scaling: logistic fit to the soft targets, finite under separation.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `single_class`; `singular_matrix` for a
/// constant judge.
pub fn platt(score: &[f64], labels: &[bool]) -> Defined<LogitLine> {
    require_both_classes(score, labels)?;
    let good = labels.iter().filter(|l| **l).count();
    let (high, low) = platt_targets(good, labels.len() - good);
    let targets: Vec<f64> = labels.iter().map(|&l| if l { high } else { low }).collect();
    logistic(&design(score), &targets).map(|fit| line(&fit))
}

/// The plain maximum-likelihood line.
///
/// # Errors
/// As [`platt`], and `perfect_separation`.
pub fn platt_unregularised(score: &[f64], labels: &[bool]) -> Defined<LogitLine> {
    require_both_classes(score, labels)?;
    logistic(&design(score), &numbers(labels)).map(|fit| line(&fit))
}

/// Firth's bias-reduced line, finite under separation.
///
/// # Errors
/// As [`platt`].
pub fn firth_sigmoid(score: &[f64], labels: &[bool]) -> Defined<LogitLine> {
    require_both_classes(score, labels)?;
    firth(&design(score), &numbers(labels)).map(|fit| line(&fit))
}

/// `logit p' = c + a ln p - b ln(1 - p)` with a, b >= 0 (Kull et al. 2017).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BetaMap {
    /// Weight of `ln p`.
    pub a: f64,
    /// Weight of `-ln(1 - p)`.
    pub b: f64,
    /// Intercept.
    pub c: f64,
    /// Deviance of the fit.
    pub deviance: f64,
}

impl BetaMap {
    /// The calibrated probability of `p` in \[0,1\].
    #[must_use]
    pub fn apply(self, p: f64) -> f64 {
        // 0 * inf must count as 0: an unused feature has no say at the ends either.
        let part = |weight: f64, log: f64| if weight == 0.0 { 0.0 } else { weight * log };
        sigmoid(self.c + part(self.a, p.ln()) - part(self.b, (-p).ln_1p()))
    }

    /// The probability that maps to 1/2, by bisection; `None` when the map never crosses.
    #[must_use]
    pub fn midpoint(self) -> Option<f64> {
        let (mut low, mut high) = (0.0, 1.0);
        if !(self.apply(low) < 0.5 && self.apply(high) > 0.5) {
            return None;
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if self.apply(middle) < 0.5 { low = middle } else { high = middle }
        }
        Some(f64::midpoint(low, high))
    }
}

/// Beta calibration; a negative coefficient is dropped and the rest refitted.
///
/// # Errors
/// As [`platt_unregularised`]; `out_of_range` for a probability that is not inside (0,1).
pub fn beta_calibration(p: &[f64], labels: &[bool]) -> Defined<BetaMap> {
    require_both_classes(p, labels)?;
    if p.iter().any(|v| !(*v > 0.0 && *v < 1.0)) {
        return undefined(Reason::OutOfRange);
    }
    let y = numbers(labels);
    let fit = |use_a: bool, use_b: bool| {
        let rows: Vec<Vec<f64>> = p
            .iter()
            .map(|v| {
                let mut row = vec![1.0];
                if use_a {
                    row.push(v.ln());
                }
                if use_b {
                    row.push(-(-v).ln_1p());
                }
                row
            })
            .collect();
        logistic(&rows, &y).map(|fit| {
            let w = &fit.coefficients;
            let a = if use_a { w[1] } else { 0.0 };
            let b = if use_b { w[w.len() - 1] } else { 0.0 };
            BetaMap { a, b, c: w[0], deviance: fit.deviance() }
        })
    };
    let full = fit(true, true)?;
    let (mut use_a, mut use_b) = (full.a >= 0.0, full.b >= 0.0);
    let mut map = full;
    while (use_a || use_b) && (map.a < 0.0 || map.b < 0.0) {
        map = fit(use_a, use_b)?;
        (use_a, use_b) = (use_a && map.a >= 0.0, use_b && map.b >= 0.0);
    }
    if map.a < 0.0 || map.b < 0.0 { fit(false, false) } else { Ok(map) }
}

/// One temperature on the logits, `p = sigmoid(logit / temperature)` (Guo et al. 2017).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// Above 0; above 1 makes the judge less sure.
    pub temperature: f64,
    /// Summed negative log-likelihood at the fit.
    pub negative_log_likelihood: f64,
}

impl Temperature {
    /// The probability of a logit.
    #[must_use]
    pub fn apply(self, logit: f64) -> f64 {
        sigmoid(logit / self.temperature)
    }
}

/// Temperature scaling: the root of `sum (sigmoid(s/T) - y) s = 0`.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`; `perfect_separation` when T tends to 0;
/// `not_identified` when the logits do not point the labels' way (T tends to infinity).
pub fn temperature(logit: &[f64], labels: &[bool]) -> Defined<Temperature> {
    let y = numbers(labels);
    require_pairs(logit, &y)?;
    let score =
        |u: f64| -> f64 { logit.iter().zip(&y).map(|(s, y)| (sigmoid(u * s) - y) * s).sum() };
    if score(0.0) >= 0.0 {
        return undefined(Reason::NotIdentified);
    }
    let limit: f64 = logit.iter().zip(&y).map(|(s, y)| s.max(0.0) - y * s).sum();
    if limit <= 0.0 {
        return undefined(Reason::Separation);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while score(high) < 0.0 {
        low = high;
        high *= 2.0;
        if high > 1e300 {
            return undefined(Reason::Separation);
        }
    }
    for _ in 0..300 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if score(middle) < 0.0 { low = middle } else { high = middle }
    }
    let u = f64::midpoint(low, high);
    let loss = logit.iter().zip(&y).map(|(s, y)| log1p_exp(u * s) - y * u * s).sum();
    Ok(Temperature { temperature: 1.0 / u, negative_log_likelihood: loss })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATED: ([f64; 4], [bool; 4]) = ([-2.0, -1.0, 1.0, 2.0], [false, false, true, true]);

    #[test]
    fn separation_is_finite_with_targets_and_refused_without() {
        let (s, y) = SEPARATED;
        assert!(platt(&s, &y).unwrap().slope.is_finite());
        assert_eq!(platt_unregularised(&s, &y).unwrap_err().reason, Reason::Separation);
        assert_eq!(temperature(&s, &y).unwrap_err().reason, Reason::Separation);
    }

    #[test]
    fn one_class_and_a_reversed_judge_are_undefined() {
        assert_eq!(platt(&[1.0, 2.0], &[true; 2]).unwrap_err().reason, Reason::SingleClass);
        let reversed = temperature(&[2.0, -2.0, 1.0], &[false, true, false]).unwrap_err();
        assert_eq!(reversed.reason, Reason::NotIdentified);
        let edge = beta_calibration(&[0.0, 0.4, 0.6], &[false, true, false]).unwrap_err();
        assert_eq!(edge.reason, Reason::OutOfRange);
    }

    #[test]
    fn a_reversed_judge_gets_a_constant_beta_map() {
        let p = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1, 0.6, 0.4];
        let y = [false, false, true, true, true, false, false, true];
        let map = beta_calibration(&p, &y).unwrap();
        assert!(map.a >= 0.0 && map.b >= 0.0);
        assert!((0.0..=1.0).contains(&map.apply(0.0)) && (0.0..=1.0).contains(&map.apply(1.0)));
    }
}
