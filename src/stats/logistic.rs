//! Logistic regression by Newton's method: plain, Firth-penalised, ordinal.
//!
//! A perfect separation has no finite maximum-likelihood fit; that is detected and
//! returned as `perfect_separation`, never as a huge coefficient.

use serde::Serialize;

use super::distribution::{log1p_exp, sigmoid};
use super::linear::{inverse, solve};
use super::undefined::{Defined, Reason, require_finite, require_unit, undefined};

/// A fitted logistic regression, `p = 1 / (1 + exp(-(x . coefficients)))`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogisticFit {
    /// One a column of the design, intercept included where the caller put one.
    pub coefficients: Vec<f64>,
    /// From the inverse Fisher information at the fit.
    pub standard_errors: Vec<f64>,
    /// Bernoulli log-likelihood at the fit, unpenalised.
    pub log_likelihood: f64,
}

impl LogisticFit {
    /// `-2 log L`, the deviance for 0/1 outcomes.
    #[must_use]
    pub fn deviance(&self) -> f64 {
        -2.0 * self.log_likelihood
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn log_likelihood(design: &[Vec<f64>], y: &[f64], beta: &[f64]) -> f64 {
    design
        .iter()
        .zip(y)
        .map(|(row, &t)| {
            let eta = dot(row, beta);
            t * eta - log1p_exp(eta)
        })
        .sum()
}

fn information(design: &[Vec<f64>], beta: &[f64]) -> Vec<Vec<f64>> {
    let k = beta.len();
    let mut matrix = vec![vec![0.0; k]; k];
    for row in design {
        let p = sigmoid(dot(row, beta));
        let w = p * (1.0 - p);
        for i in 0..k {
            for j in 0..k {
                matrix[i][j] += w * row[i] * row[j];
            }
        }
    }
    matrix
}

fn check(design: &[Vec<f64>], y: &[f64]) -> Defined<usize> {
    if design.len() != y.len() {
        return undefined(Reason::LengthMismatch);
    }
    require_unit(y)?;
    let k = design[0].len();
    if k == 0 || design.iter().any(|row| row.len() != k) {
        return undefined(Reason::LengthMismatch);
    }
    design.iter().try_for_each(|row| require_finite(row))?;
    Ok(k)
}

/// Linear predictors beyond this mean fitted probabilities within 1e-13 of 0 or 1, which
/// only a diverging fit reaches.
const DIVERGED: f64 = 30.0;

fn largest_change(design: &[Vec<f64>], step: &[f64]) -> f64 {
    design.iter().map(|row| dot(row, step).abs()).fold(0.0, f64::max)
}

/// Maximum likelihood; `design` rows include the intercept column, `y` may be soft targets
/// in \[0,1\]. Newton with step halving; the result does not depend on the columns' scale.
///
/// # Errors
/// `no_data`, `length_mismatch`, `not_finite`, `out_of_range` for targets outside \[0,1\],
/// `singular_matrix`, `perfect_separation`, `no_convergence`.
pub fn logistic(design: &[Vec<f64>], y: &[f64]) -> Defined<LogisticFit> {
    let k = check(design, y)?;
    let mut beta = vec![0.0; k];
    let mut value = log_likelihood(design, y, &beta);
    let diverged = |beta: &[f64]| design.iter().any(|row| dot(row, beta).abs() > DIVERGED);
    for _ in 0..200 {
        let mut score = vec![0.0; k];
        for (row, &t) in design.iter().zip(y) {
            let residual = t - sigmoid(dot(row, &beta));
            score.iter_mut().zip(row).for_each(|(s, x)| *s += residual * x);
        }
        let step = match solve(&information(design, &beta), &score) {
            Ok(step) => step,
            Err(_) if largest_change(design, &beta) > DIVERGED / 2.0 => {
                return undefined(Reason::Separation);
            }
            Err(error) => return Err(error),
        };
        let (mut factor, mut next, mut next_value);
        factor = 1.0;
        loop {
            next = beta.iter().zip(&step).map(|(b, s)| b + factor * s).collect::<Vec<f64>>();
            next_value = log_likelihood(design, y, &next);
            if next_value >= value - 1e-12 * value.abs() || factor < 1e-8 {
                break;
            }
            factor /= 2.0;
        }
        beta = next;
        value = next_value;
        if largest_change(design, &step) < 1e-10 {
            if diverged(&beta) && step.iter().any(|s| *s != 0.0) && value > -1e-9 {
                return undefined(Reason::Separation);
            }
            let covariance = inverse(&information(design, &beta))?;
            return Ok(LogisticFit {
                standard_errors: (0..k).map(|i| covariance[i][i].max(0.0).sqrt()).collect(),
                coefficients: beta,
                log_likelihood: value,
            });
        }
        if diverged(&beta) && largest_change(design, &step) > 0.5 {
            return undefined(Reason::Separation);
        }
    }
    undefined(if diverged(&beta) { Reason::Separation } else { Reason::NoConvergence })
}

/// Firth's (1993) bias-reduced fit: score `sum (y - p + h (1/2 - p)) x` with leverages h,
/// the mode under Jeffreys' prior. Finite even when the classes are separated.
///
/// # Errors
/// As [`logistic`], without `perfect_separation`.
pub fn firth(design: &[Vec<f64>], y: &[f64]) -> Defined<LogisticFit> {
    let k = check(design, y)?;
    let mut beta = vec![0.0; k];
    for iteration in 0..2000 {
        let covariance = inverse(&information(design, &beta))?;
        let mut score = vec![0.0; k];
        for (row, &t) in design.iter().zip(y) {
            let p = sigmoid(dot(row, &beta));
            let spread: f64 = (0..k).map(|i| row[i] * dot(&covariance[i], row)).sum();
            let leverage = p * (1.0 - p) * spread;
            let residual = t - p + leverage * (0.5 - p);
            score.iter_mut().zip(row).for_each(|(s, x)| *s += residual * x);
        }
        let mut step: Vec<f64> = covariance.iter().map(|row| dot(row, &score)).collect();
        // The information is that of the unpenalised fit, so long first steps can overshoot.
        let change = largest_change(design, &step);
        let limit = if iteration < 100 { 2.0 } else { 0.25 };
        if change > limit {
            step.iter_mut().for_each(|s| *s *= limit / change);
        }
        beta.iter_mut().zip(&step).for_each(|(b, s)| *b += s);
        if change < 1e-13 {
            let covariance = inverse(&information(design, &beta))?;
            return Ok(LogisticFit {
                log_likelihood: log_likelihood(design, y, &beta),
                standard_errors: (0..k).map(|i| covariance[i][i].max(0.0).sqrt()).collect(),
                coefficients: beta,
            });
        }
    }
    undefined(Reason::NoConvergence)
}

/// A cumulative logit fit, `P(Y <= k) = 1 / (1 + exp(-(thresholds[k] - slope x)))`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrdinalFit {
    /// Effect of x on the latent scale.
    pub slope: f64,
    /// Increasing cut points, one fewer than the categories.
    pub thresholds: Vec<f64>,
    /// Log-likelihood at the fit.
    pub log_likelihood: f64,
}

impl OrdinalFit {
    /// Probabilities of the categories at `x`.
    #[must_use]
    pub fn probabilities(&self, x: f64) -> Vec<f64> {
        let mut below = 0.0;
        let mut out = Vec::with_capacity(self.thresholds.len() + 1);
        for threshold in &self.thresholds {
            let upto = sigmoid(threshold - self.slope * x);
            out.push(upto - below);
            below = upto;
        }
        out.push(1.0 - below);
        out
    }
}

/// Proportional-odds model (McCullagh 1980) of ordered categories 0..K on one covariate.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `constant_input` when x is constant,
/// `single_class` with fewer than two categories, `unknown_category` when a category
/// between the lowest and highest never occurs, `perfect_separation`, `no_convergence`.
pub fn ordinal_logit(x: &[f64], y: &[usize]) -> Defined<OrdinalFit> {
    if x.len() != y.len() {
        return undefined(Reason::LengthMismatch);
    }
    require_finite(x)?;
    if super::summary::is_constant(x) {
        return undefined(Reason::ConstantInput);
    }
    let top = y.iter().copied().max().unwrap_or(0);
    if top == 0 {
        return undefined(Reason::SingleClass);
    }
    if top >= y.len() {
        return undefined(Reason::UnknownCategory);
    }
    let mut counts = vec![0usize; top + 1];
    y.iter().for_each(|&c| counts[c] += 1);
    if counts.contains(&0) {
        return undefined(Reason::UnknownCategory);
    }
    // Standardised x: the iteration then does not depend on the covariate's scale.
    let n = x.len() as f64;
    let centre = super::summary::raw_mean(x);
    let scale = (super::summary::sum_of_squares(x) / n).sqrt();
    let z: Vec<f64> = x.iter().map(|v| (v - centre) / scale).collect();
    let mut parameters: Vec<f64> = Vec::with_capacity(top + 1);
    let mut cumulative = 0usize;
    for &count in &counts[..top] {
        cumulative += count;
        parameters.push(super::distribution::logit(cumulative as f64 / n));
    }
    parameters.push(0.0);
    let mut value = ordinal_value(&z, y, &parameters);
    for _ in 0..200 {
        let (gradient, hessian) = ordinal_derivatives(&z, y, &parameters);
        let Ok(step) = solve(&hessian, &gradient) else {
            return undefined(Reason::Separation);
        };
        let mut factor = 1.0;
        let (mut next, mut next_value);
        loop {
            next = parameters.iter().zip(&step).map(|(p, s)| p + factor * s).collect::<Vec<f64>>();
            next_value = ordinal_value(&z, y, &next);
            if next_value >= value - 1e-12 * value.abs() || factor < 1e-10 {
                break;
            }
            factor /= 2.0;
        }
        parameters = next;
        value = next_value;
        let change = step.iter().fold(0.0f64, |m, s| m.max(s.abs()));
        if parameters.iter().any(|p| p.abs() > 2.0 * DIVERGED) {
            return undefined(Reason::Separation);
        }
        if change < 1e-10 {
            let slope = parameters[top] / scale;
            let thresholds = parameters[..top].iter().map(|t| t + slope * centre).collect();
            return Ok(OrdinalFit { slope, thresholds, log_likelihood: value });
        }
    }
    undefined(Reason::NoConvergence)
}

fn cut(parameters: &[f64], index: usize, x: f64) -> f64 {
    sigmoid(parameters[index] - parameters[parameters.len() - 1] * x)
}

fn ordinal_value(x: &[f64], y: &[usize], parameters: &[f64]) -> f64 {
    let top = parameters.len() - 1;
    x.iter()
        .zip(y)
        .map(|(&x, &c)| {
            let upper = if c == top { 1.0 } else { cut(parameters, c, x) };
            let lower = if c == 0 { 0.0 } else { cut(parameters, c - 1, x) };
            let p = upper - lower;
            if p > 0.0 { p.ln() } else { f64::NEG_INFINITY }
        })
        .sum()
}

/// Gradient, and the negative Hessian, of the log-likelihood.
fn ordinal_derivatives(x: &[f64], y: &[usize], parameters: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
    let k = parameters.len();
    let top = k - 1;
    let (mut gradient, mut hessian) = (vec![0.0; k], vec![vec![0.0; k]; k]);
    for (&x, &c) in x.iter().zip(y) {
        // Each bound contributes with its sign: density f = F(1-F), slope f' = f(1-2F).
        let mut bounds: Vec<(usize, f64, f64, f64)> = Vec::with_capacity(2);
        let (mut upper, mut lower) = (1.0, 0.0);
        if c < top {
            upper = cut(parameters, c, x);
            bounds.push((c, 1.0, upper * (1.0 - upper), 1.0 - 2.0 * upper));
        }
        if c > 0 {
            lower = cut(parameters, c - 1, x);
            bounds.push((c - 1, -1.0, lower * (1.0 - lower), 1.0 - 2.0 * lower));
        }
        let p = (upper - lower).max(f64::MIN_POSITIVE);
        let mut first = vec![0.0; k];
        for &(index, sign, density, slope) in &bounds {
            first[index] += sign * density;
            first[top] -= sign * density * x;
            let second = sign * density * slope / p;
            hessian[index][index] -= second;
            hessian[index][top] += second * x;
            hessian[top][index] += second * x;
            hessian[top][top] -= second * x * x;
        }
        for i in 0..k {
            gradient[i] += first[i] / p;
            for j in 0..k {
                hessian[i][j] += first[i] * first[j] / (p * p);
            }
        }
    }
    (gradient, hessian)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_intercept(x: &[f64]) -> Vec<Vec<f64>> {
        x.iter().map(|&v| vec![1.0, v]).collect()
    }

    #[test]
    fn separation_is_named_whatever_the_scale() {
        for scale in [1e-3, 1.0, 1e4] {
            let x: Vec<f64> = [-2.0, -1.0, 1.0, 2.0].iter().map(|v| v * scale).collect();
            let y = [0.0, 0.0, 1.0, 1.0];
            let error = logistic(&with_intercept(&x), &y).unwrap_err();
            assert_eq!(error.reason, Reason::Separation, "{scale}");
            assert!(firth(&with_intercept(&x), &y).unwrap().coefficients[1] > 0.0);
        }
        // Quasi-separation: one boundary value carries both classes.
        let y = [0.0, 0.0, 1.0, 1.0, 1.0];
        let error = logistic(&with_intercept(&[1.0, 2.0, 2.0, 3.0, 4.0]), &y).unwrap_err();
        assert_eq!(error.reason, Reason::Separation);
        let one_class = logistic(&with_intercept(&[1.0, 2.0, 4.0]), &[1.0; 3]).unwrap_err();
        assert_eq!(one_class.reason, Reason::Separation);
    }

    #[test]
    fn a_constant_covariate_is_singular() {
        let error = logistic(&with_intercept(&[3.0; 4]), &[0.0, 1.0, 1.0, 0.0]).unwrap_err();
        assert_eq!(error.reason, Reason::SingularMatrix);
    }

    #[test]
    fn the_fit_scales_with_its_covariate() {
        let x = [-1.0, -0.5, 0.0, 0.3, 0.8, 1.0];
        let y = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        let a = logistic(&with_intercept(&x), &y).unwrap();
        let big: Vec<f64> = x.iter().map(|v| v * 1e6).collect();
        let b = logistic(&with_intercept(&big), &y).unwrap();
        assert!((a.coefficients[1] - b.coefficients[1] * 1e6).abs() < 1e-8);
        assert!((a.log_likelihood - b.log_likelihood).abs() < 1e-12);
    }

    #[test]
    fn ordinal_probabilities_sum_to_one_and_degenerate_data_are_refused() {
        let fit = ordinal_logit(&[1.0, 2.0, 3.0, 4.0, 2.5, 1.5], &[0, 1, 1, 2, 2, 1]).unwrap();
        assert!((fit.probabilities(2.2).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(fit.thresholds[0] < fit.thresholds[1]);
        let f = |x: &[f64], y: &[usize]| ordinal_logit(x, y).unwrap_err().reason;
        assert_eq!(f(&[1.0, 2.0], &[0, 0]), Reason::SingleClass);
        assert_eq!(f(&[1.0, 2.0, 3.0], &[0, 2, 2]), Reason::UnknownCategory);
        assert_eq!(f(&[1.0, 1.0], &[0, 1]), Reason::ConstantInput);
        assert_eq!(f(&[1.0, 2.0, 3.0, 4.0], &[0, 0, 1, 1]), Reason::Separation);
    }
}
