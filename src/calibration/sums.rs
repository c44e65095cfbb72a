//! Group sums: what every moment statistic of a judge needs to be resampled by group.
//!
//! A bootstrap that draws groups needs only each group's sums, so that a replicate costs one
//! addition a group and all statistics share it. Spearman's ranks are those of the full data.

use rand::RngExt as _;
use rayon::prelude::*;

use super::figure::{Figure, Measured};
use crate::stats::bootstrap::{Resampling, acceleration, bca_estimate};
use crate::stats::confusion::Confusion;
use crate::stats::draw::stream;
use crate::stats::interval::clopper_pearson;
use crate::stats::summary::mid_ranks;
use crate::stats::{Defined, Reason};

/// Sums over a set of cases; scores, targets and ranks are centred at the means of all data.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    difference: f64,
    difference2: f64,
    absolute: f64,
    pair: Products,
    ranks: Products,
    table: [f64; 4],
}

#[derive(Clone, Copy, Debug, Default)]
struct Products {
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Products {
    fn of(x: f64, y: f64) -> Self {
        Self { x, y, xx: x * x, yy: y * y, xy: x * y }
    }

    fn plus(self, o: Self, sign: f64) -> Self {
        Self {
            x: self.x + sign * o.x,
            y: self.y + sign * o.y,
            xx: self.xx + sign * o.xx,
            yy: self.yy + sign * o.yy,
            xy: self.xy + sign * o.xy,
        }
    }

    /// Centred sums of squares and products.
    fn spread(self, n: f64) -> (f64, f64, f64) {
        let rounding = 1e-12;
        let centred = |square: f64, sum: f64| {
            let spread = square - sum * sum / n;
            if spread <= rounding * square { 0.0 } else { spread }
        };
        (centred(self.xx, self.x), centred(self.yy, self.y), self.xy - self.x * self.y / n)
    }

    fn correlation(self, n: f64) -> f64 {
        let (xx, yy, xy) = self.spread(n);
        if xx > 0.0 && yy > 0.0 { (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0) } else { f64::NAN }
    }
}

impl Sums {
    fn plus(self, o: Self, sign: f64) -> Self {
        let mut table = self.table;
        for (own, other) in table.iter_mut().zip(o.table) {
            *own += sign * other;
        }
        Self {
            n: self.n + sign * o.n,
            difference: self.difference + sign * o.difference,
            difference2: self.difference2 + sign * o.difference2,
            absolute: self.absolute + sign * o.absolute,
            pair: self.pair.plus(o.pair, sign),
            ranks: self.ranks.plus(o.ranks, sign),
            table,
        }
    }

    fn confusion(&self) -> Confusion {
        let [tp, fn_, fp, tn] = self.table.map(|count| count.round() as u64);
        Confusion { true_positive: tp, false_negative: fn_, false_positive: fp, true_negative: tn }
    }
}

/// The statistics that group sums give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Bias,
    MeanAbsoluteError,
    RootMeanSquaredError,
    Slope,
    Pearson,
    Spearman,
    TruePositiveRate,
    FalsePositiveRate,
    FalseAcceptanceShare,
    Accuracy,
    BalancedAccuracy,
    Kappa,
}

impl Moment {
    const ALL: [Self; 12] = [
        Self::Bias,
        Self::MeanAbsoluteError,
        Self::RootMeanSquaredError,
        Self::Slope,
        Self::Pearson,
        Self::Spearman,
        Self::TruePositiveRate,
        Self::FalsePositiveRate,
        Self::FalseAcceptanceShare,
        Self::Accuracy,
        Self::BalancedAccuracy,
        Self::Kappa,
    ];

    /// NaN where undefined.
    fn of(self, sums: &Sums) -> f64 {
        let defined = |value: Defined| value.unwrap_or(f64::NAN);
        let confusion = sums.confusion();
        match self {
            Self::Bias => sums.difference / sums.n,
            Self::MeanAbsoluteError => sums.absolute / sums.n,
            Self::RootMeanSquaredError => (sums.difference2.max(0.0) / sums.n).sqrt(),
            Self::Slope => {
                let (xx, _, xy) = sums.pair.spread(sums.n);
                if xx > 0.0 { xy / xx } else { f64::NAN }
            }
            Self::Pearson => sums.pair.correlation(sums.n),
            Self::Spearman => sums.ranks.correlation(sums.n),
            Self::TruePositiveRate => defined(confusion.true_positive_rate()),
            Self::FalsePositiveRate => defined(confusion.false_positive_rate()),
            Self::FalseAcceptanceShare => defined(confusion.false_acceptance_share()),
            Self::Accuracy => defined(confusion.accuracy()),
            Self::BalancedAccuracy => defined(confusion.balanced_accuracy()),
            Self::Kappa => defined(confusion.kappa()),
        }
    }

    /// Successes, trials and groups with a trial, for shares that a bootstrap can't spread.
    fn exact(self, total: &Sums, groups: &[Sums]) -> Option<(u64, u64, u64)> {
        let part = |sums: &Sums| -> Option<(u64, u64)> {
            let c = sums.confusion();
            match self {
                Self::TruePositiveRate => Some((c.true_positive, c.positives())),
                Self::FalsePositiveRate => Some((c.false_positive, c.negatives())),
                Self::FalseAcceptanceShare => Some((c.false_positive, c.accepted())),
                Self::Accuracy => Some((c.true_positive + c.true_negative, c.n())),
                _ => None,
            }
        };
        let (k, n) = part(total)?;
        let trials = groups.iter().filter(|sums| part(sums).is_some_and(|(_, n)| n > 0)).count();
        Some((k, n, trials as u64))
    }

    fn range(self) -> (f64, f64) {
        match self {
            Self::Bias | Self::Slope => (f64::NEG_INFINITY, f64::INFINITY),
            Self::MeanAbsoluteError | Self::RootMeanSquaredError => (0.0, f64::INFINITY),
            Self::Pearson | Self::Spearman | Self::Kappa => (-1.0, 1.0),
            _ => (0.0, 1.0),
        }
    }
}

/// The cases of one judge as columns: score, target, truth, decision and group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a> {
    pub(super) score: &'a [f64],
    pub(super) target: &'a [f64],
    pub(super) good: &'a [bool],
    pub(super) accepted: Option<&'a [bool]>,
    pub(super) group: &'a [usize],
}

/// Bootstrap intervals of all moments by drawing groups.
pub(super) struct GroupBootstrap {
    groups: Vec<Sums>,
    total: Sums,
    replicates: Vec<[f64; 12]>,
    level: f64,
}

impl GroupBootstrap {
    pub(super) fn run(columns: Columns<'_>, resampling: Resampling) -> Self {
        let groups = group_sums(columns);
        let total = groups.iter().fold(Sums::default(), |sum, own| sum.plus(*own, 1.0));
        let replicates = (0..resampling.resamples as u64)
            .into_par_iter()
            .map(|i| {
                let mut rng = stream(resampling.seed, i);
                let mut sums = Sums::default();
                for _ in 0..groups.len() {
                    sums = sums.plus(groups[rng.random_range(0..groups.len())], 1.0);
                }
                Moment::ALL.map(|moment| moment.of(&sums))
            })
            .collect();
        Self { groups, total, replicates, level: resampling.level }
    }

    /// A moment with its BCa interval; shares without spread get an exact one that counts
    /// each group once.
    pub(super) fn figure(&self, moment: Moment, n: u64) -> Measured<Figure> {
        let point = moment.of(&self.total);
        if point.is_nan() {
            return Measured::undefined(Reason::ConstantInput);
        }
        let place = Moment::ALL.iter().position(|m| *m == moment).unwrap_or_default();
        let replicates: Vec<f64> =
            self.replicates.iter().map(|r| r[place]).filter(|value| !value.is_nan()).collect();
        let jackknife: Vec<f64> = self
            .groups
            .iter()
            .map(|own| moment.of(&self.total.plus(*own, -1.0)))
            .filter(|value| value.is_finite())
            .collect();
        let bootstrap = acceleration(&jackknife, &vec![1.0; jackknife.len()])
            .and_then(|a| bca_estimate(point, replicates, a, n as usize, self.level));
        let (low, high) = moment.range();
        match (bootstrap, moment.exact(&self.total, &self.groups)) {
            (Ok(estimate), _) => Measured(Ok(Figure::from(estimate).clipped(low, high))),
            (Err(_), Some((k, n, trials))) => Measured(exact(k, n, trials, self.level)),
            (Err(undefined), None) => Measured(Err(undefined)),
        }
    }
}

/// An interval that is never empty: the rate as if each group were one trial.
fn exact(k: u64, n: u64, trials: u64, level: f64) -> Defined<Figure> {
    let rate = k as f64 / n as f64;
    let estimate = clopper_pearson((rate * trials as f64).round() as u64, trials, level)?;
    Ok(Figure { estimate: rate, n, ..Figure::from(estimate) })
}

fn group_sums(columns: Columns<'_>) -> Vec<Sums> {
    let n = columns.score.len().max(1) as f64;
    let centre = |values: &[f64]| values.iter().sum::<f64>() / n;
    let (x0, y0) = (centre(columns.score), centre(columns.target));
    let ranks = (mid_ranks(columns.score), mid_ranks(columns.target));
    let middle = (n + 1.0) / 2.0;
    let mut places: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
    let mut groups: Vec<Sums> = Vec::new();
    for i in 0..columns.score.len() {
        let place = *places.entry(columns.group[i]).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Sums::default());
        }
        let (x, y) = (columns.score[i], columns.target[i]);
        let mut table = [0.0; 4];
        if let Some(accepted) = columns.accepted {
            let cell = match (columns.good[i], accepted[i]) {
                (true, true) => 0,
                (true, false) => 1,
                (false, true) => 2,
                (false, false) => 3,
            };
            table[cell] = 1.0;
        }
        let rank = Products::of((ranks.0[i] - middle) / n, (ranks.1[i] - middle) / n);
        let own = Sums {
            n: 1.0,
            difference: x - y,
            difference2: (x - y).powi(2),
            absolute: (x - y).abs(),
            pair: Products::of(x - x0, y - y0),
            ranks: rank,
            table,
        };
        groups[place] = groups[place].plus(own, 1.0);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::correlation::{pearson, spearman};

    fn data() -> (Vec<f64>, Vec<f64>, Vec<bool>, Vec<bool>) {
        let score: Vec<f64> = (0..60).map(|i| f64::from(i * i % 11)).collect();
        let target: Vec<f64> = (0..60).map(|i| f64::from((i * i % 11 + i % 3) % 9)).collect();
        let good = target.iter().map(|y| *y >= 4.0).collect();
        let accepted = score.iter().map(|x| *x >= 4.0).collect();
        (score, target, good, accepted)
    }

    #[test]
    fn the_points_are_those_of_the_direct_formulas() {
        let (score, target, good, accepted) = data();
        let group: Vec<usize> = (0..60).map(|i| i / 3).collect();
        let columns = Columns {
            score: &score,
            target: &target,
            good: &good,
            accepted: Some(&accepted),
            group: &group,
        };
        let run = GroupBootstrap::run(columns, Resampling { resamples: 200, seed: 1, level: 0.95 });
        let near = |moment, value: f64| {
            let figure = run.figure(moment, 60).0.unwrap();
            assert!((figure.estimate - value).abs() < 1e-12, "{moment:?}");
            assert!(figure.lower <= value && value <= figure.upper, "{moment:?} {figure:?}");
        };
        let confusion = Confusion::from_decisions(&good, &accepted).unwrap();
        near(Moment::Pearson, pearson(&score, &target).unwrap());
        near(Moment::Spearman, spearman(&score, &target).unwrap());
        near(Moment::FalsePositiveRate, confusion.false_positive_rate().unwrap());
        near(Moment::Kappa, confusion.kappa().unwrap());
        let bias = score.iter().zip(&target).map(|(x, y)| x - y).sum::<f64>() / 60.0;
        near(Moment::Bias, bias);
    }

    #[test]
    fn a_share_without_spread_gets_an_interval_from_the_number_of_groups() {
        let group: Vec<usize> = (0..40).map(|i| i / 4).collect();
        let score = vec![1.0; 40];
        let columns = Columns {
            score: &score,
            target: &score,
            good: &[true; 40],
            accepted: Some(&[true; 40]),
            group: &group,
        };
        let run = GroupBootstrap::run(columns, Resampling { resamples: 50, seed: 1, level: 0.95 });
        let figure = run.figure(Moment::TruePositiveRate, 40).0.unwrap();
        assert_eq!((figure.estimate, figure.upper, figure.n), (1.0, 1.0, 40));
        assert!((figure.lower - 0.025f64.powf(0.1)).abs() < 1e-9, "ten groups, not forty cases");
        assert!(run.figure(Moment::FalsePositiveRate, 40).0.is_err());
    }
}
