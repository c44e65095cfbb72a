//! Has a judge changed? Distances between binned scores, and control charts.
//!
//! A shift of scores is not a loss of accuracy: without labels these only say "look again".

use serde::{Deserialize, Serialize};

use super::distribution::chi_squared_sf;
use super::paired::TestResult;
use super::undefined::{Defined, Reason, require_finite, require_open_unit, undefined};

/// Two histograms over the same bins as shares.
struct Shares {
    baseline: Vec<f64>,
    current: Vec<f64>,
    smoothed: bool,
}

fn shares(baseline: &[f64], current: &[f64]) -> Defined<Shares> {
    super::undefined::require_pairs(baseline, current)?;
    if baseline.iter().chain(current).any(|c| *c < 0.0) {
        return undefined(Reason::BadCounts);
    }
    if baseline.iter().sum::<f64>() == 0.0 || current.iter().sum::<f64>() == 0.0 {
        return undefined(Reason::NoData);
    }
    let smoothed = baseline.iter().chain(current).any(|c| *c == 0.0);
    let normalise = |counts: &[f64]| {
        let extra = if smoothed { 0.5 } else { 0.0 };
        let total: f64 = counts.iter().map(|c| c + extra).sum();
        counts.iter().map(|c| (c + extra) / total).collect()
    };
    Ok(Shares { baseline: normalise(baseline), current: normalise(current), smoothed })
}

/// Population stability index.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StabilityIndex {
    /// `sum (c - b) ln(c / b)`, 0 or more.
    pub value: f64,
    /// An empty bin made us add 1/2 to every bin of both; say so.
    pub smoothed: bool,
}

/// PSI of two histograms over the same bins. The customary limits 0.1 and 0.25 are
/// folklore; calibrate by permutation.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`, `bad_counts` for negative counts.
pub fn stability_index(baseline: &[f64], current: &[f64]) -> Defined<StabilityIndex> {
    let s = shares(baseline, current)?;
    let value = s.baseline.iter().zip(&s.current).map(|(b, c)| (c - b) * (c / b).ln()).sum();
    Ok(StabilityIndex { value, smoothed: s.smoothed })
}

/// Jensen-Shannon divergence in nats (Lin 1991), in \[0, ln 2\]; no smoothing needed.
///
/// # Errors
/// As [`stability_index`].
pub fn jensen_shannon(baseline: &[f64], current: &[f64]) -> Defined {
    shares(baseline, current)?;
    let (bt, ct) = (baseline.iter().sum::<f64>(), current.iter().sum::<f64>());
    let term = |p: f64, m: f64| if p == 0.0 { 0.0 } else { p * (p / m).ln() };
    Ok(baseline
        .iter()
        .zip(current)
        .map(|(b, c)| {
            let (p, q) = (b / bt, c / ct);
            let m = f64::midpoint(p, q);
            f64::midpoint(term(p, m), term(q, m))
        })
        .sum())
}

/// Pearson's chi-squared of homogeneity of two histograms; bins empty in both are dropped.
///
/// # Errors
/// As [`stability_index`]; `single_class` when one bin holds everything.
pub fn chi_squared(baseline: &[f64], current: &[f64]) -> Defined<TestResult> {
    shares(baseline, current)?;
    let (bt, ct) = (baseline.iter().sum::<f64>(), current.iter().sum::<f64>());
    let used: Vec<(f64, f64)> = baseline
        .iter()
        .copied()
        .zip(current.iter().copied())
        // Below this share a bin's expected counts vanish in floating point.
        .filter(|(b, c)| b + c > 1e-200 * (bt + ct))
        .collect();
    if used.len() < 2 {
        return undefined(Reason::SingleClass);
    }
    let statistic = used
        .iter()
        .map(|(b, c)| {
            let (eb, ec) = ((b + c) * bt / (bt + ct), (b + c) * ct / (bt + ct));
            (b - eb).powi(2) / eb + (c - ec).powi(2) / ec
        })
        .sum();
    Ok(TestResult { statistic, p: chi_squared_sf(statistic, (used.len() - 1) as f64) })
}

/// A two-sided tabular CUSUM (Page 1954).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cusum {
    /// `max(0, S + x - k)`.
    pub upper: Vec<f64>,
    /// `max(0, S - x - k)`.
    pub lower: Vec<f64>,
    /// First index at which either exceeds h.
    pub alarm: Option<usize>,
}

/// CUSUM of standardised values with allowance k and decision limit h.
///
/// # Errors
/// `not_finite`; `out_of_range` for negative k or h.
pub fn cusum(values: &[f64], allowance: f64, limit: f64) -> Defined<Cusum> {
    if !values.is_empty() {
        require_finite(values)?;
    }
    require_finite(&[allowance, limit])?;
    if allowance < 0.0 || limit < 0.0 {
        return undefined(Reason::OutOfRange);
    }
    let (mut up, mut down) = (0.0f64, 0.0f64);
    let mut out = Cusum { upper: Vec::new(), lower: Vec::new(), alarm: None };
    for (i, x) in values.iter().enumerate() {
        up = (up + x - allowance).max(0.0);
        down = (down - x - allowance).max(0.0);
        out.upper.push(up);
        out.lower.push(down);
        // Sums of tenths land a rounding error beside h; touching it is not exceeding it.
        let slack = 1e-12 * limit.max(1.0);
        if out.alarm.is_none() && up.max(down) > limit + slack {
            out.alarm = Some(i);
        }
    }
    Ok(out)
}

/// Log-likelihood-ratio CUSUM of failures between rates p0 and p1:
/// `S = max(0, S + ln(p1/p0))` on an event, `ln((1-p1)/(1-p0))` else.
///
/// # Errors
/// `out_of_range` for rates outside (0,1).
pub fn bernoulli_cusum(events: &[bool], p0: f64, p1: f64) -> Defined<Vec<f64>> {
    require_open_unit(p0)?;
    require_open_unit(p1)?;
    let (hit, miss) = ((p1 / p0).ln(), ((1.0 - p1) / (1.0 - p0)).ln());
    let mut sum = 0.0f64;
    Ok(events
        .iter()
        .map(|&event| {
            sum = (sum + if event { hit } else { miss }).max(0.0);
            sum
        })
        .collect())
}

/// Exponentially weighted moving average from 0: `z = lambda x + (1 - lambda) z`
/// (Roberts 1959).
///
/// # Errors
/// `not_finite`, `out_of_range` for lambda outside (0,1].
pub fn ewma(values: &[f64], lambda: f64) -> Defined<Vec<f64>> {
    if !values.is_empty() {
        require_finite(values)?;
    }
    if !(lambda > 0.0 && lambda <= 1.0) {
        return undefined(Reason::OutOfRange);
    }
    let mut z = 0.0;
    Ok(values
        .iter()
        .map(|x| {
            z = lambda * x + (1.0 - lambda) * z;
            z
        })
        .collect())
}

/// Control limit of the EWMA after `t` values:
/// `width sigma sqrt(lambda/(2-lambda) (1 - (1-lambda)^(2t)))`.
///
/// # Errors
/// `not_finite`, `out_of_range`.
pub fn ewma_limit(lambda: f64, width: f64, sigma: f64, t: u32) -> Defined {
    require_finite(&[width, sigma])?;
    if !(lambda > 0.0 && lambda <= 1.0) || width < 0.0 || sigma < 0.0 {
        return undefined(Reason::OutOfRange);
    }
    let growth = 1.0 - (1.0 - lambda).powf(2.0 * f64::from(t));
    Ok(width * sigma * (lambda / (2.0 - lambda) * growth).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_bins_are_smoothed_and_said() {
        let r = stability_index(&[10.0, 0.0], &[5.0, 5.0]).unwrap();
        assert!(r.smoothed && r.value.is_finite());
        assert!(!stability_index(&[10.0, 1.0], &[5.0, 5.0]).unwrap().smoothed);
        assert!(jensen_shannon(&[1.0, 0.0], &[0.0, 1.0]).unwrap() - 2f64.ln() < 1e-15);
    }

    #[test]
    fn equal_histograms_have_no_distance() {
        let h = [3.0, 4.0, 0.0];
        assert_eq!(stability_index(&h, &h).unwrap().value, 0.0);
        assert_eq!(jensen_shannon(&h, &h), Ok(0.0));
        assert_eq!(chi_squared(&h, &h).unwrap().p, 1.0);
    }

    #[test]
    fn nothing_and_negative_counts_are_refused() {
        assert_eq!(stability_index(&[], &[]).unwrap_err().reason, Reason::NoData);
        assert_eq!(stability_index(&[0.0], &[1.0]).unwrap_err().reason, Reason::NoData);
        assert_eq!(stability_index(&[-1.0], &[1.0]).unwrap_err().reason, Reason::BadCounts);
        assert_eq!(chi_squared(&[5.0], &[6.0]).unwrap_err().reason, Reason::SingleClass);
        assert!(cusum(&[f64::NAN], 0.5, 2.0).is_err() && ewma(&[1.0], 0.0).is_err());
    }

    #[test]
    fn touching_the_limit_is_no_alarm() {
        let c = cusum(&[0.6; 20], 0.5, 0.5).unwrap();
        assert_eq!(c.alarm, Some(5));
        assert_eq!(cusum(&[], 0.5, 2.0).unwrap().alarm, None);
        let down = cusum(&[-1.5; 4], 0.5, 2.0).unwrap();
        assert_eq!(down.alarm, Some(2));
    }
}
