//! Score minus label against their mean (Bland and Altman 1986), as dots of counted cases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::calibration::judge_metrics::Series;
use crate::stats::bland_altman::bland_altman;
use crate::stats::{Defined, Reason, Undefined};

/// Dots that are drawn apart; more are gathered in a grid.
const MOST_DOTS: usize = 120;
/// Cells of that grid a side.
const SIDE: f64 = 14.0;

/// Cases at one place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Dot {
    /// Mean of score and label.
    pub mean: f64,
    /// Score minus label.
    pub difference: f64,
    /// Cases there.
    pub n: u64,
}

/// Where the limits of agreement lie, and the cases around them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Differences {
    /// Cases.
    pub n: u64,
    /// Mean difference.
    pub bias: f64,
    /// Limits of agreement.
    pub limits: [f64; 2],
    /// The cases; means of their cells of a grid where they would be too many.
    pub dots: Vec<Dot>,
}

impl Differences {
    pub(super) fn of(series: &Series, level: f64) -> Defined<Self> {
        if !series.comparable {
            return Err(Undefined { reason: Reason::OutOfRange });
        }
        let fit = bland_altman(&series.target, &series.score, level)?;
        let pairs: Vec<(f64, f64)> =
            series.score.iter().zip(&series.target).map(|(s, t)| ((s + t) / 2.0, s - t)).collect();
        let bias = pairs.iter().map(|pair| pair.1).sum::<f64>() / pairs.len() as f64;
        Ok(Self {
            n: pairs.len() as u64,
            bias,
            limits: [fit.limits.lower, fit.limits.upper],
            dots: dots(&pairs),
        })
    }
}

fn dots(pairs: &[(f64, f64)]) -> Vec<Dot> {
    let exact = gather(pairs, |pair| (pair.0.to_bits(), pair.1.to_bits()), MOST_DOTS);
    exact.unwrap_or_else(|| {
        let span = |of: fn(&(f64, f64)) -> f64| {
            let values = pairs.iter().map(of);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
        };
        let (x, y) = (span(|pair| pair.0), span(|pair| pair.1));
        let cell = |value: f64, (low, high): (f64, f64)| {
            if high > low {
                ((value - low) / (high - low) * SIDE).min(SIDE - 1.0) as u64
            } else {
                0
            }
        };
        gather(pairs, |pair| (cell(pair.0, x), cell(pair.1, y)), usize::MAX).unwrap_or_default()
    })
}

/// `None` beyond `most` places.
fn gather(
    pairs: &[(f64, f64)],
    place: impl Fn(&(f64, f64)) -> (u64, u64),
    most: usize,
) -> Option<Vec<Dot>> {
    let mut found: BTreeMap<(u64, u64), (f64, f64, u64)> = BTreeMap::new();
    for pair in pairs {
        let own = found.entry(place(pair)).or_default();
        *own = (own.0 + pair.0, own.1 + pair.1, own.2 + 1);
        if found.len() > most {
            return None;
        }
    }
    Some(
        found
            .into_values()
            .map(|(x, y, n)| Dot { mean: x / n as f64, difference: y / n as f64, n })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_hold_every_case_in_bounded_number() {
        let few = [(1.0, 0.0), (1.0, 0.0), (2.0, 1.0)];
        assert_eq!(dots(&few).iter().map(|dot| dot.n).collect::<Vec<_>>(), [2, 1]);
        let many: Vec<(f64, f64)> =
            (0..50_000).map(|i| (f64::from(i % 977), f64::from(i % 613))).collect();
        let dots = dots(&many);
        assert!(dots.len() <= (SIDE * SIDE) as usize);
        assert_eq!(dots.iter().map(|dot| dot.n).sum::<u64>(), 50_000);
    }
}
