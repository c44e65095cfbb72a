//! What pictures of a calibration are drawn from: curves, bins and grids of bounded size.
//!
//! However many cases there are, a picture keeps at most [`MOST_POINTS`] points a curve. The
//! points that are kept are exact; nothing is smoothed.

mod differences;
mod reliability;
mod threshold;

use serde::{Deserialize, Serialize};

pub use self::differences::{Differences, Dot};
pub use self::reliability::{Band, Reliability, ReliabilityPoint};
pub use self::threshold::{ThresholdCurve, ThresholdPoint};
use super::calibrate::{Fitted, Work};
use super::figure::Measured;
use super::judge_metrics::{Series, series_of};
use super::panel::{Key, Missing, PanelModel, target};
use super::report::PanelReport;
use super::table::JudgeKind;
use crate::calibration::labelled::Target;
use crate::stats::auc::roc;
use crate::stats::{Defined, Reason, Undefined};

/// Points of a curve at most.
pub const MOST_POINTS: usize = 100;
/// Bins of a histogram at most.
const MOST_BINS: usize = 20;

/// One point of a ROC curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RocPoint {
    /// Accepting scores from here on; for the panel the first number of its key.
    pub threshold: f64,
    /// P(accepted | bad).
    pub false_positive_rate: f64,
    /// P(accepted | good).
    pub true_positive_rate: f64,
}

/// Cases with a score in `[lower, upper]`, the upper end in the last bin only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bin {
    /// Lower end.
    pub lower: f64,
    /// Upper end; the lower one where each bin is one score.
    pub upper: f64,
    /// Truly good cases.
    pub good: u64,
    /// Truly bad cases.
    pub bad: u64,
}

/// The curves of one judge, or of the panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgeCurves {
    /// Its name.
    pub name: String,
    /// Truly good cases with a score.
    pub good: u64,
    /// Truly bad cases with a score.
    pub bad: u64,
    /// From the strictest threshold to the most lenient; (0, 0) is not listed.
    pub roc: Measured<Vec<RocPoint>>,
    /// Scores by truth: one bin a score up to 20 of them, else 20 of equal width.
    pub histogram: Measured<Vec<Bin>>,
    /// What a score means; `None` for a judge with fewer than three scores.
    pub reliability: Option<Measured<Reliability>>,
    /// Score minus label against their mean; `None` for a judge with fewer than three scores.
    pub differences: Option<Measured<Differences>>,
}

/// What pictures are drawn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Curves {
    /// Each judge, in the order of `judges`.
    pub judges: Vec<JudgeCurves>,
    /// The panel, by its key.
    pub panel: JudgeCurves,
    /// The panel's error against its threshold, with the certificate's bound.
    pub threshold: Measured<ThresholdCurve>,
}

impl Work<'_> {
    pub(super) fn curves(
        &self,
        model: &PanelModel,
        fitted: &Fitted,
        rows: &[usize],
        panel: &PanelReport,
        by_model: bool,
        certified: Option<Key>,
    ) -> Curves {
        let cases = self.table.cases();
        let judges = self.table.judges.iter().enumerate().map(|(j, judge)| {
            let (mut series, _) =
                series_of(&judge.scores, cases, &self.groups.of_case, rows, |case| {
                    target(self.table, case)
                });
            let comparable =
                fitted.comparable[j] && (judge.kind == JudgeKind::Graded || self.good_is_target());
            series.comparable = comparable;
            self.of_series(&judge.name, &series, &series.score)
        });
        Curves {
            judges: judges.collect(),
            panel: self.panel_curves(model, rows, panel),
            threshold: Measured(self.threshold_curve(model, rows, by_model, certified)),
        }
    }

    fn panel_curves(&self, model: &PanelModel, rows: &[usize], panel: &PanelReport) -> JudgeCurves {
        let keys = model.keys(self.table, rows, Missing::LeftOut);
        let (decided, kept): (Vec<usize>, Vec<Key>) =
            rows.iter().zip(&keys).filter_map(|(&i, key)| Some((i, (*key)?))).unzip();
        let cases = self.table.cases();
        let series = Series {
            score: kept.iter().map(|key| self.held(model.map.apply(key.0))).collect(),
            target: decided.iter().map(|&i| target(self.table, &cases[i])).collect(),
            good: decided.iter().map(|&i| cases[i].good).collect(),
            rank: super::panel::rank(&kept),
            comparable: panel.metrics.bias.value().is_some(),
            ..Series::default()
        };
        let shown: Vec<f64> = kept.iter().map(|key| self.held(key.0)).collect();
        self.of_series("panel", &series, &shown)
    }

    /// A panel's score as a run shows it: offsets may carry a key past the ends of the scale,
    /// where it is held.
    fn held(&self, score: f64) -> f64 {
        self.scale().map_or(score, |[low, high]| score.clamp(low, high))
    }

    /// `shown` is what thresholds are on, where that is not the score itself.
    fn of_series(&self, name: &str, series: &Series, shown: &[f64]) -> JudgeCurves {
        let good = series.good.iter().filter(|good| **good).count() as u64;
        let graded = distinct(&series.score) > 2;
        JudgeCurves {
            name: name.to_owned(),
            good,
            bad: series.good.len() as u64 - good,
            roc: Measured(roc_points(series, shown)),
            histogram: Measured(histogram(shown, &series.good)),
            reliability: graded.then(|| {
                let probability = self.good_is_target() || self.table.labels.target == Target::Good;
                Measured(Reliability::of(
                    series,
                    probability,
                    self.scale(),
                    self.options.level,
                    self.options.seed,
                ))
            }),
            differences: graded.then(|| Measured(Differences::of(series, self.options.level))),
        }
    }
}

/// Scores that are nearer to each other, as a share of their size, differ by rounding.
const SAME: f64 = 1e-12;

fn distinct(values: &[f64]) -> usize {
    let mut seen: Vec<u64> = Vec::new();
    for value in values {
        let bits = (value + 0.0).to_bits();
        if !seen.contains(&bits) {
            seen.push(bits);
            if seen.len() > MOST_BINS {
                break;
            }
        }
    }
    seen.len()
}

fn roc_points(series: &Series, shown: &[f64]) -> Defined<Vec<RocPoint>> {
    let order = if series.rank.is_empty() { &series.score } else { &series.rank };
    let points = roc(order, &series.good)?;
    let (good, bad) = points.last().map_or((0, 0), |p| (p.true_positive, p.false_positive));
    let first = |rank: f64| order.iter().position(|own| *own == rank).map_or(rank, |i| shown[i]);
    let kept = thinned(points.len(), |i| {
        points[i].true_positive as f64 / good as f64 + points[i].false_positive as f64 / bad as f64
    });
    Ok(kept
        .into_iter()
        .map(|i| RocPoint {
            threshold: first(points[i].threshold),
            false_positive_rate: points[i].false_positive as f64 / bad as f64,
            true_positive_rate: points[i].true_positive as f64 / good as f64,
        })
        .collect())
}

fn histogram(score: &[f64], good: &[bool]) -> Defined<Vec<Bin>> {
    let (low, high) = score
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| (low.min(*s), high.max(*s)));
    if score.is_empty() {
        return Err(Undefined { reason: Reason::NoData });
    }
    let mut bins: Vec<Bin> = if distinct(score) <= MOST_BINS {
        let mut values: Vec<f64> = score.iter().map(|value| value + 0.0).collect();
        values.sort_unstable_by(f64::total_cmp);
        // What rounding parts is one value.
        values.dedup_by(|next, kept| *next - *kept <= SAME * kept.abs().max(1.0));
        values
            .into_iter()
            .map(|value| Bin { lower: value, upper: value, good: 0, bad: 0 })
            .collect()
    } else {
        let edge = |i: usize| low + (high - low) * i as f64 / MOST_BINS as f64;
        (0..MOST_BINS)
            .map(|i| Bin { lower: edge(i), upper: edge(i + 1), good: 0, bad: 0 })
            .collect()
    };
    for (score, good) in score.iter().zip(good) {
        let reach = *score + SAME * score.abs().max(1.0);
        let place = bins.partition_point(|bin| bin.lower <= reach).max(1) - 1;
        let bin = &mut bins[place];
        if *good { bin.good += 1 } else { bin.bad += 1 }
    }
    Ok(bins)
}

/// The places of at most [`MOST_POINTS`] of `n` points, spread evenly over a measure that
/// grows along them; the first and the last are among them.
fn thinned(n: usize, at: impl Fn(usize) -> f64) -> Vec<usize> {
    if n <= MOST_POINTS {
        return (0..n).collect();
    }
    let (first, last) = (at(0), at(n - 1));
    let step = (last - first) / (MOST_POINTS - 2) as f64;
    let mut kept = vec![0];
    let mut next = first + step;
    for i in 1..n - 1 {
        if at(i) >= next {
            kept.push(i);
            next = at(i) + step;
        }
    }
    kept.push(n - 1);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_every_case_once_and_keeps_few_scores_apart() {
        let bins = histogram(&[1.0, 3.0, 3.0, 5.0], &[false, true, false, true]).unwrap();
        let counts: Vec<_> = bins.iter().map(|bin| (bin.lower, bin.good, bin.bad)).collect();
        assert_eq!(counts, [(1.0, 0, 1), (3.0, 1, 1), (5.0, 1, 0)]);
        let many: Vec<f64> = (0..10_000).map(|i| f64::from(i) / 9_999.0).collect();
        let bins = histogram(&many, &vec![true; many.len()]).unwrap();
        assert_eq!(bins.len(), MOST_BINS);
        assert_eq!(bins.iter().map(|bin| bin.good).sum::<u64>(), 10_000);
        assert!(bins.iter().all(|bin| bin.good.abs_diff(500) <= 1));
    }

    #[test]
    fn scores_that_differ_by_rounding_share_a_bar() {
        let bins = histogram(&[0.1 + 0.2, 0.3, 0.3, 0.9], &[true, false, true, true]).unwrap();
        let counts: Vec<_> = bins.iter().map(|bin| (bin.good, bin.bad)).collect();
        assert_eq!(counts, [(2, 1), (1, 0)]);
    }

    #[test]
    fn a_thinned_curve_keeps_its_ends_and_its_size() {
        let kept = thinned(100_000, |i| (i as f64).sqrt());
        assert!(kept.len() <= MOST_POINTS && kept.len() > MOST_POINTS / 2, "{}", kept.len());
        assert_eq!((kept.first(), kept.last()), (Some(&0), Some(&99_999)));
        assert!(kept.is_sorted());
        assert_eq!(thinned(3, |_| 0.0), [0, 1, 2]);
    }

    #[test]
    fn a_roc_curve_ends_where_everything_is_accepted() {
        let series = Series {
            score: (0..5_000).map(f64::from).collect(),
            good: (0..5_000).map(|i| i % 3 == 0).collect(),
            ..Series::default()
        };
        let points = roc_points(&series, &series.score).unwrap();
        assert!(points.len() <= MOST_POINTS);
        let last = points[points.len() - 1];
        assert_eq!((last.false_positive_rate, last.true_positive_rate), (1.0, 1.0));
        assert_eq!(last.threshold, 0.0);
        let one_class = Series { score: vec![1.0], good: vec![true], ..Series::default() };
        assert!(roc_points(&one_class, &one_class.score).is_err());
    }
}
