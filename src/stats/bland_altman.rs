//! Bias of a judge against people, with its interval and limits of agreement.

use serde::Serialize;

use super::distribution::{normal_critical, student_critical, student_two_sided};
use super::summary::{raw_mean, sum_of_products, sum_of_squares};
use super::undefined::{
    Defined, Reason, require_open_unit, require_pairs, serialize_defined, undefined,
};
use super::{Estimate, Interval, Method};

/// Bland and Altman (1986, 1999) on differences judge - human.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlandAltman {
    /// Mean difference with its t interval; positive means the judge is lenient.
    pub bias: Estimate,
    /// Standard deviation of the differences (n - 1).
    pub standard_deviation: f64,
    /// `bias ± z s`, within which about `level` of the differences fall.
    pub limits: Interval,
    /// Standard error of a limit, `s sqrt(1/n + z^2 / (2 (n - 1)))`.
    pub limits_standard_error: f64,
    /// t interval of the lower limit.
    pub lower_limit: Interval,
    /// t interval of the upper limit.
    pub upper_limit: Interval,
    /// Paired t statistic; undefined when the differences do not vary.
    #[serde(serialize_with = "serialize_defined")]
    pub t: Defined,
    /// Its two-sided p-value.
    #[serde(serialize_with = "serialize_defined")]
    pub p: Defined,
    /// Slope of the difference on the mean of both: proportional bias.
    #[serde(serialize_with = "serialize_defined")]
    pub proportional_bias: Defined,
    /// Mean absolute difference.
    pub mean_absolute_error: f64,
    /// Root mean squared difference.
    pub root_mean_squared_error: f64,
}

/// Bias and limits of agreement. `level` serves both the intervals and the limits.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `out_of_range`; `too_few_values` below two.
pub fn bland_altman(human: &[f64], judge: &[f64], level: f64) -> Defined<BlandAltman> {
    bland_altman_with(human, judge, level, normal_critical(level))
}

/// As [`bland_altman`] with the multiplier of the limits given, such as 1.96.
///
/// # Errors
/// As [`bland_altman`].
pub fn bland_altman_with(
    human: &[f64],
    judge: &[f64],
    level: f64,
    multiplier: f64,
) -> Defined<BlandAltman> {
    require_open_unit(level)?;
    require_pairs(human, judge)?;
    if human.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    if !(multiplier.is_finite() && multiplier > 0.0) {
        return undefined(Reason::OutOfRange);
    }
    let n = human.len() as f64;
    let difference: Vec<f64> = judge.iter().zip(human).map(|(j, h)| j - h).collect();
    let middle: Vec<f64> = judge.iter().zip(human).map(|(j, h)| f64::midpoint(*j, *h)).collect();
    let bias = raw_mean(&difference);
    let deviation = (sum_of_squares(&difference) / (n - 1.0)).sqrt();
    let error = deviation / n.sqrt();
    let critical = student_critical(level, n - 1.0);
    let limits = Interval::around(bias, multiplier * deviation, level);
    let limits_error = deviation * (1.0 / n + multiplier * multiplier / (2.0 * (n - 1.0))).sqrt();
    let t = if error == 0.0 { undefined(Reason::ZeroVariance) } else { Ok(bias / error) };
    let spread = sum_of_squares(&middle);
    Ok(BlandAltman {
        bias: Estimate {
            point: bias,
            interval: Interval::around(bias, critical * error, level),
            n: human.len(),
            method: Method::StudentT,
        },
        standard_deviation: deviation,
        limits,
        limits_standard_error: limits_error,
        lower_limit: Interval::around(limits.lower, critical * limits_error, level),
        upper_limit: Interval::around(limits.upper, critical * limits_error, level),
        t,
        p: t.map(|t| student_two_sided(t, n - 1.0)),
        proportional_bias: if spread == 0.0 {
            undefined(Reason::ConstantInput)
        } else {
            Ok(sum_of_products(&middle, &difference) / spread)
        },
        mean_absolute_error: difference.iter().map(|d| d.abs()).sum::<f64>() / n,
        root_mean_squared_error: (difference.iter().map(|d| d * d).sum::<f64>() / n).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_offset_is_all_bias_and_no_test() {
        let r = bland_altman(&[1.0, 2.0, 3.0], &[1.5, 2.5, 3.5], 0.95).unwrap();
        assert_eq!((r.bias.point, r.standard_deviation), (0.5, 0.0));
        assert_eq!(r.t.unwrap_err().reason, Reason::ZeroVariance);
        assert_eq!(r.proportional_bias, Ok(0.0));
    }

    #[test]
    fn one_pair_and_nan_are_undefined() {
        assert_eq!(bland_altman(&[1.0], &[2.0], 0.95).unwrap_err().reason, Reason::TooFewValues);
        let nan = bland_altman(&[1.0, f64::NAN], &[2.0, 1.0], 0.95);
        assert_eq!(nan.unwrap_err().reason, Reason::NotFinite);
    }
}
