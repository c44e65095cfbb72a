//! Krippendorff's alpha (2004) for any number of raters, missing ratings and four levels of
//! measurement.
//!
//! Works from value counts: observed disagreement from the distinct values inside a unit,
//! expected disagreement in closed form (ordinal is interval on mid-ranks), so the cost
//! grows with the ratings and not with their square. Only `ratio` is quadratic, in the
//! number of distinct values.

use serde::{Deserialize, Serialize};

use crate::stats::Estimate;
use crate::stats::bootstrap::{Resampling, percentile_estimate, weighted_replicates};
use crate::stats::undefined::{Defined, Reason, require_usable, undefined};

/// Level of measurement: what makes two values differ, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// 0 or 1.
    Nominal,
    /// Squared number of values ranked between, ties counted half.
    Ordinal,
    /// `(c - k)^2`.
    Interval,
    /// `((c - k) / (c + k))^2`; values must not be negative.
    Ratio,
}

/// Units reduced to (value position, count), and the distinct values in order.
struct Coded {
    values: Vec<f64>,
    /// The units behind each other: a million small lists would cost more than the sums.
    cells: Vec<(u32, f64)>,
    /// `start[u]..start[u + 1]` are the cells of unit u.
    start: Vec<usize>,
}

fn code(units: &[Vec<f64>], level: Level) -> Defined<Coded> {
    require_usable(units.iter().flatten())?;
    if level == Level::Ratio && units.iter().flatten().any(|&v| v < 0.0) {
        return undefined(Reason::OutOfRange);
    }
    // Units with a single rating cannot agree or disagree.
    let paired = || units.iter().filter(|u| u.len() >= 2);
    let values = distinct(paired().flatten().copied());
    if values.is_empty() {
        return undefined(if units.is_empty() { Reason::NoData } else { Reason::TooFewRaters });
    }
    let (mut cells, mut start) = (Vec::new(), vec![0]);
    let mut codes: Vec<u32> = Vec::new();
    for unit in paired() {
        codes.clear();
        codes.extend(unit.iter().map(|v| values.partition_point(|x| x < v) as u32));
        codes.sort_unstable();
        cells.extend(codes.chunk_by(|a, b| a == b).map(|g| (g[0], g.len() as f64)));
        start.push(cells.len());
    }
    Ok(Coded { values, cells, start })
}

/// The distinct values in order. Ratings repeat a few values, so the list is kept sorted and
/// short as they come, and only a long one is sorted at the end.
fn distinct(ratings: impl Iterator<Item = f64>) -> Vec<f64> {
    const FEW: usize = 64;
    let (mut few, mut rest): (Vec<f64>, Vec<f64>) = Default::default();
    for value in ratings {
        let at = few.partition_point(|x| *x < value);
        if few.get(at).is_some_and(|x| *x == value) {
            continue;
        }
        if few.len() < FEW { few.insert(at, value) } else { rest.push(value) }
    }
    few.append(&mut rest);
    few.sort_unstable_by(f64::total_cmp);
    few.dedup_by(|a, b| a == b);
    few
}

impl Coded {
    fn units(&self) -> impl ExactSizeIterator<Item = &[(u32, f64)]> {
        self.start.windows(2).map(|ends| &self.cells[ends[0]..ends[1]])
    }

    /// Alpha with unit `u` counted `weight[u]` times.
    fn alpha(&self, weight: impl Fn(usize) -> f64, level: Level) -> Defined {
        let mut counts = vec![0.0; self.values.len()];
        for (u, unit) in self.units().enumerate() {
            unit.iter().for_each(|&(c, n)| counts[c as usize] += n * weight(u));
        }
        if counts.iter().filter(|&&c| c > 0.0).count() < 2 {
            return undefined(Reason::SingleValue);
        }
        let total: f64 = counts.iter().sum();
        // Positions whose squared differences are the disagreement.
        let positions: Vec<f64> = match level {
            Level::Nominal | Level::Ratio => self.values.clone(),
            Level::Interval => {
                let mean = counts.iter().zip(&self.values).map(|(n, v)| n * v).sum::<f64>() / total;
                self.values.iter().map(|v| v - mean).collect()
            }
            Level::Ordinal => {
                let mut before = 0.0;
                let mid = counts.iter().map(|n| {
                    before += n;
                    before - n / 2.0 - total / 2.0
                });
                mid.collect()
            }
        };
        let distance = |c: usize, k: usize| match level {
            Level::Nominal => f64::from(u8::from(c != k)),
            Level::Interval | Level::Ordinal => (positions[c] - positions[k]).powi(2),
            Level::Ratio if c == k => 0.0,
            Level::Ratio => ((positions[c] - positions[k]) / (positions[c] + positions[k])).powi(2),
        };
        let mut observed = 0.0;
        for (u, unit) in self.units().enumerate() {
            let w = weight(u);
            if w == 0.0 || unit.len() < 2 {
                continue;
            }
            let ratings: f64 = unit.iter().map(|&(_, n)| n).sum();
            let mut pairs = 0.0;
            for (i, &(c, nc)) in unit.iter().enumerate() {
                for &(k, nk) in &unit[i + 1..] {
                    pairs += 2.0 * nc * nk * distance(c as usize, k as usize);
                }
            }
            observed += w * pairs / (ratings - 1.0);
        }
        let expected = match level {
            Level::Nominal => total * total - counts.iter().map(|n| n * n).sum::<f64>(),
            Level::Interval | Level::Ordinal => {
                let moment = |power: i32| -> f64 {
                    counts.iter().zip(&positions).map(|(n, x)| n * x.powi(power)).sum()
                };
                2.0 * (total * moment(2) - moment(1).powi(2))
            }
            Level::Ratio => {
                let mut sum = 0.0;
                for c in 0..counts.len() {
                    for k in c + 1..counts.len() {
                        sum += 2.0 * counts[c] * counts[k] * distance(c, k);
                    }
                }
                sum
            }
        };
        if expected == 0.0 {
            // Values so close that their squared distances vanish.
            return undefined(Reason::SingleValue);
        }
        Ok(1.0 - (total - 1.0) * observed / expected)
    }
}

/// alpha = 1 - Do/De with the coincidences `o_ck = sum_u pairs / (m_u - 1)`. Each unit is
/// the list of its present ratings; units with fewer than two are left out. At most 1;
/// negative values are legal and mean disagreement beyond chance.
///
/// # Errors
/// `no_data`, `too_few_raters` when no unit has two ratings, `single_value_in_domain`,
/// `not_finite`; `out_of_range` for negative values on the ratio level.
pub fn krippendorff_alpha(units: &[Vec<f64>], level: Level) -> Defined {
    code(units, level)?.alpha(|_| 1.0, level)
}

/// Alpha with a percentile bootstrap over units (never over raters or cells); negative
/// replicates are kept, replicates with a single value are undefined and left out.
///
/// # Errors
/// As [`krippendorff_alpha`]; `no_replicates` when all resamples are undefined.
pub fn krippendorff_bootstrap(
    units: &[Vec<f64>],
    level: Level,
    resampling: Resampling,
) -> Defined<Estimate> {
    let coded = code(units, level)?;
    let point = coded.alpha(|_| 1.0, level)?;
    let n = coded.units().len();
    let replicates =
        weighted_replicates(n, resampling, |w| coded.alpha(|u| f64::from(w[u]), level));
    percentile_estimate(point, replicates, n, resampling.level)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, pair by pair.
    fn by_pairs(units: &[Vec<f64>], level: Level) -> f64 {
        let all: Vec<f64> =
            units.iter().filter(|u| u.len() > 1).flat_map(|u| u.iter().copied()).collect();
        let between = |c: f64, k: f64| {
            let (a, b) = if c < k { (c, k) } else { (k, c) };
            let count = |f: &dyn Fn(f64) -> bool| all.iter().filter(|&&v| f(v)).count() as f64;
            count(&|v| v >= a && v <= b) - (count(&|v| v == a) + count(&|v| v == b)) / 2.0
        };
        let d = |c: f64, k: f64| match level {
            _ if c == k => 0.0,
            Level::Nominal => 1.0,
            Level::Interval => (c - k).powi(2),
            Level::Ratio => ((c - k) / (c + k)).powi(2),
            Level::Ordinal => between(c, k).powi(2),
        };
        let sum =
            |v: &[f64]| -> f64 { v.iter().flat_map(|&a| v.iter().map(move |&b| d(a, b))).sum() };
        let observed: f64 =
            units.iter().filter(|u| u.len() > 1).map(|u| sum(u) / (u.len() - 1) as f64).sum();
        1.0 - (all.len() - 1) as f64 * observed / sum(&all)
    }

    proptest! {
        #[test]
        fn counting_values_equals_comparing_pairs(
            units in prop::collection::vec(prop::collection::vec(0u8..5, 0..5), 2..12)
        ) {
            let units: Vec<Vec<f64>> =
                units.iter().map(|u| u.iter().map(|&v| f64::from(v)).collect()).collect();
            for level in [Level::Nominal, Level::Ordinal, Level::Interval, Level::Ratio] {
                if let Ok(alpha) = krippendorff_alpha(&units, level) {
                    prop_assert!((alpha - by_pairs(&units, level)).abs() < 1e-9);
                }
            }
        }
    }

    #[test]
    fn lone_ratings_and_nan_are_undefined() {
        let f = |u: &[Vec<f64>]| krippendorff_alpha(u, Level::Nominal).unwrap_err().reason;
        assert_eq!(f(&[]), Reason::NoData);
        assert_eq!(f(&[vec![1.0], vec![2.0]]), Reason::TooFewRaters);
        assert_eq!(f(&[vec![1.0, f64::NAN]]), Reason::NotFinite);
        assert_eq!(f(&[vec![1.0, 1.0]]), Reason::SingleValue);
    }

    #[test]
    fn the_bootstrap_interval_holds_the_point_and_repeats() {
        let units: Vec<Vec<f64>> =
            (0..40).map(|i| vec![f64::from(i % 4), f64::from((i + i % 3 / 2) % 4)]).collect();
        let r = Resampling { resamples: 500, seed: 7, level: 0.95 };
        let e = krippendorff_bootstrap(&units, Level::Interval, r).unwrap();
        assert!(e.interval.contains(e.point));
        assert_eq!(e, krippendorff_bootstrap(&units, Level::Interval, r).unwrap());
    }
}
