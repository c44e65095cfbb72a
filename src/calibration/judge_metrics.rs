//! What one judge, or the panel, is worth: bias, agreement and error rates against the truth.
//!
//! Every figure carries its count and interval. Cases that share a group are resampled
//! together; without groups the intervals are the usual closed ones. Nothing is fitted here.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figure::{Figure, Measured};
use super::labelled::LabelledCase;
use super::sums::{Columns, GroupBootstrap, Moment};
use super::table::{JudgeColumn, JudgeKind};
use crate::stats::agreement::{CategoryTable, Level, Weighting, krippendorff_alpha};
use crate::stats::bland_altman::bland_altman;
use crate::stats::bootstrap::Resampling;
use crate::stats::calibration_error::{Binning, brier, corp, expected_calibration_error};
use crate::stats::calibration_map::{offset, ordinary_least_squares};
use crate::stats::confusion::Confusion;
use crate::stats::consistency::self_consistency;
use crate::stats::correlation::{kendall_tau_b, pearson_estimate, spearman};
use crate::stats::distribution::{normal_critical, student_critical};
use crate::stats::interval::wilson;
use crate::stats::regression::least_squares_hc3;
use crate::stats::{Defined, Estimate, Interval, Method, Reason, Undefined};

/// The origin of a threshold that keeps a certificate's promise.
pub const CERTIFIED: &str = "certified";

/// When a judge accepts, and who says so.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OperatingPoint {
    /// In words, such as `score >= 4`.
    pub accept: String,
    /// Least accepted score, where the rule is one.
    pub threshold: Option<f64>,
    /// `binary`, `declared`, `fitted`, `majority` or `certified`.
    pub origin: &'static str,
}

/// The cases of a judge that have a score, as columns.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Scores.
    pub score: Vec<f64>,
    /// Targets in the same unit.
    pub target: Vec<f64>,
    /// Truth.
    pub good: Vec<bool>,
    /// Decisions; `None` without an operating point.
    pub accepted: Option<Vec<bool>>,
    /// What orders cases where the score alone ties; the score itself where empty.
    pub rank: Vec<f64>,
    /// Groups.
    pub group: Vec<usize>,
    /// Whether score and target share a unit.
    pub comparable: bool,
}

impl Series {
    fn clustered(&self) -> bool {
        let distinct: std::collections::HashSet<&usize> = self.group.iter().collect();
        distinct.len() < self.group.len()
    }
}

/// CORP parts of the Brier score.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CorpParts {
    /// Miscalibration.
    pub mcb: f64,
    /// Discrimination.
    pub dsc: f64,
    /// Uncertainty.
    pub unc: f64,
}

/// A judge's own noise over repeated measurements.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Repeats {
    /// Cases measured more than once.
    pub n: u64,
    /// Share of equal pairs.
    pub pairwise_agreement: f64,
    /// Share of cases whose measurements are not all equal.
    pub flip_rate: f64,
    /// Mean variance within a case.
    pub within_variance: f64,
}

/// All figures of a judge. Fields of the same name are those of [`crate::stats`].
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[expect(missing_docs, reason = "each is the standard statistic of its name")]
pub struct JudgeMetrics {
    pub name: String,
    pub kind: JudgeKind,
    /// Cases with a score and a label.
    pub n: u64,
    /// Their groups.
    pub groups: u64,
    pub operating_point: Option<OperatingPoint>,
    /// Mean of score minus label; above 0 is lenient.
    pub bias: Measured<Figure>,
    /// `bias ± z s`.
    pub limits_of_agreement: Measured<[f64; 2]>,
    /// Least-squares slope of label on score.
    pub slope: Measured,
    pub mae: Measured,
    pub rmse: Measured,
    pub pearson: Measured,
    pub spearman: Measured,
    pub kendall_tau_b: Measured,
    pub tp: Measured<u64>,
    pub fp: Measured<u64>,
    pub tn: Measured<u64>,
    #[serde(rename = "fn")]
    pub fn_: Measured<u64>,
    pub true_positive_rate: Measured<Figure>,
    pub true_negative_rate: Measured<Figure>,
    pub false_positive_rate: Measured<Figure>,
    pub false_negative_rate: Measured<Figure>,
    pub false_acceptance_share: Measured<Figure>,
    pub accuracy: Measured,
    pub balanced_accuracy: Measured,
    pub cohen_kappa: Measured,
    pub gwet_ac1: Measured,
    pub matthews: Measured,
    pub auc: Measured,
    /// For graded judges on the labels' levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quadratic_kappa: Option<Measured>,
    /// Judge and label as two raters, interval level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub krippendorff_alpha: Option<Measured>,
    /// For scores that are probabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brier: Option<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corp: Option<Measured<CorpParts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_calibration_error: Option<Measured>,
    /// The plain figures above, each with its interval.
    pub intervals: BTreeMap<&'static str, Measured<Figure>>,
}

/// How intervals are made.
#[derive(Clone, Copy, Debug)]
pub struct IntervalOptions {
    /// Nominal coverage.
    pub level: f64,
    /// Bootstrap replicates where groups have several cases.
    pub resamples: usize,
    /// Seed of the replicates.
    pub seed: u64,
}

fn bare(figure: &Measured<Figure>) -> Measured {
    Measured(figure.0.map(|figure| figure.estimate))
}

/// The figures of a series.
#[must_use]
pub fn judge_metrics(
    name: &str,
    kind: JudgeKind,
    operating_point: Option<OperatingPoint>,
    series: &Series,
    options: IntervalOptions,
) -> JudgeMetrics {
    let groups: std::collections::HashSet<&usize> = series.group.iter().collect();
    let figures = Figures::of(series, options);
    let confusion: Defined<Confusion> = match &series.accepted {
        Some(accepted) => Confusion::from_decisions(&series.good, accepted),
        None => Err(Undefined { reason: Reason::NoData }),
    };
    let count = |of: fn(&Confusion) -> u64| Measured(confusion.map(|c| of(&c)));
    let complement = |figure: &Measured<Figure>| {
        Measured(figure.0.map(|f| Figure {
            estimate: 1.0 - f.estimate,
            lower: 1.0 - f.upper,
            upper: 1.0 - f.lower,
            ..f
        }))
    };
    let unit = series.score.iter().all(|score| (0.0..=1.0).contains(score));
    let probability = unit && series.comparable && !series.score.is_empty();
    let agreement = (kind == JudgeKind::Graded && series.comparable).then(|| levels(series));
    let table = confusion.and_then(|c| {
        CategoryTable::new(vec![
            vec![c.true_negative, c.false_positive],
            vec![c.false_negative, c.true_positive],
        ])
    });
    JudgeMetrics {
        name: name.to_owned(),
        kind,
        n: series.score.len() as u64,
        groups: groups.len() as u64,
        operating_point,
        limits_of_agreement: Measured(comparable(series).and_then(|()| {
            let fit = bland_altman(&series.target, &series.score, options.level)?;
            Ok([fit.limits.lower, fit.limits.upper])
        })),
        slope: bare(&figures.slope),
        mae: bare(&figures.mae),
        rmse: bare(&figures.rmse),
        pearson: bare(&figures.pearson),
        spearman: bare(&figures.spearman),
        kendall_tau_b: bare(&figures.kendall),
        tp: count(|c| c.true_positive),
        fp: count(|c| c.false_positive),
        tn: count(|c| c.true_negative),
        fn_: count(|c| c.false_negative),
        true_negative_rate: complement(&figures.false_positive_rate),
        false_negative_rate: complement(&figures.true_positive_rate),
        accuracy: bare(&figures.accuracy),
        balanced_accuracy: bare(&figures.balanced_accuracy),
        cohen_kappa: bare(&figures.kappa),
        gwet_ac1: Measured(table.and_then(|t| t.gwet_ac1())),
        matthews: Measured(confusion.and_then(|c| c.matthews())),
        auc: bare(&figures.auc),
        quadratic_kappa: agreement.clone().map(|(kappa, _)| kappa),
        krippendorff_alpha: agreement.map(|(_, alpha)| alpha),
        brier: probability.then(|| brier(&series.score, &series.good).into()),
        corp: probability.then(|| {
            Measured(corp(&series.score, &series.good).map(|c| CorpParts {
                mcb: c.miscalibration,
                dsc: c.discrimination,
                unc: c.uncertainty,
            }))
        }),
        expected_calibration_error: probability.then(|| {
            expected_calibration_error(&series.score, &series.good, 10, Binning::EqualMass).into()
        }),
        intervals: BTreeMap::from([
            ("slope", figures.slope),
            ("mae", figures.mae),
            ("rmse", figures.rmse),
            ("pearson", figures.pearson),
            ("spearman", figures.spearman),
            ("kendall_tau_b", figures.kendall),
            ("accuracy", figures.accuracy),
            ("balanced_accuracy", figures.balanced_accuracy),
            ("cohen_kappa", figures.kappa),
            ("auc", figures.auc),
        ]),
        bias: figures.bias,
        true_positive_rate: figures.true_positive_rate,
        false_positive_rate: figures.false_positive_rate,
        false_acceptance_share: figures.false_acceptance_share,
    }
}

fn comparable(series: &Series) -> Defined<()> {
    if series.comparable { Ok(()) } else { Err(Undefined { reason: Reason::OutOfRange }) }
}

/// Agreement on the labels' levels: quadratic kappa where both are few levels, and alpha.
fn levels(series: &Series) -> (Measured, Measured) {
    let mut domain: Vec<f64> = series.score.iter().chain(&series.target).copied().collect();
    domain.sort_unstable_by(f64::total_cmp);
    domain.dedup();
    let kappa = if domain.len() > 20 {
        Measured::undefined(Reason::OutOfRange)
    } else {
        // The declared domain must be evenly spaced: positions stand for values.
        let whole = |v: &f64| v.fract() == 0.0;
        let even = domain.iter().all(whole);
        match (domain.first(), domain.last()) {
            (Some(low), Some(high)) if even => {
                let domain: Vec<f64> =
                    (*low as i64..=*high as i64).map(|level| level as f64).collect();
                CategoryTable::from_ratings(&series.target, &series.score, &domain)
                    .and_then(|table| table.kappa(Weighting::Quadratic))
                    .into()
            }
            _ => Measured::undefined(Reason::UnknownCategory),
        }
    };
    let units: Vec<Vec<f64>> =
        series.score.iter().zip(&series.target).map(|(x, y)| vec![*x, *y]).collect();
    (kappa, krippendorff_alpha(&units, Level::Interval).into())
}

struct Figures {
    bias: Measured<Figure>,
    slope: Measured<Figure>,
    mae: Measured<Figure>,
    rmse: Measured<Figure>,
    pearson: Measured<Figure>,
    spearman: Measured<Figure>,
    kendall: Measured<Figure>,
    true_positive_rate: Measured<Figure>,
    false_positive_rate: Measured<Figure>,
    false_acceptance_share: Measured<Figure>,
    accuracy: Measured<Figure>,
    balanced_accuracy: Measured<Figure>,
    kappa: Measured<Figure>,
    auc: Measured<Figure>,
}

impl Figures {
    fn of(series: &Series, options: IntervalOptions) -> Self {
        let closed = Self::closed(series, options.level);
        if !series.clustered() {
            return closed;
        }
        let columns = Columns {
            score: &series.score,
            target: &series.target,
            good: &series.good,
            accepted: series.accepted.as_deref(),
            group: &series.group,
        };
        let resampling =
            Resampling { resamples: options.resamples, seed: options.seed, level: options.level };
        let bootstrap = GroupBootstrap::run(columns, resampling);
        // What is undefined without groups is undefined with them, for the same reason.
        let with = |plain: Measured<Figure>, moment| {
            Measured(plain.0.and_then(|own| bootstrap.figure(moment, own.n).0))
        };
        let rank = if series.rank.is_empty() { &series.score } else { &series.rank };
        Self {
            bias: with(closed.bias, Moment::Bias),
            slope: with(closed.slope, Moment::Slope),
            mae: with(closed.mae, Moment::MeanAbsoluteError),
            rmse: with(closed.rmse, Moment::RootMeanSquaredError),
            pearson: with(closed.pearson, Moment::Pearson),
            spearman: with(closed.spearman, Moment::Spearman),
            kendall: closed.kendall,
            true_positive_rate: with(closed.true_positive_rate, Moment::TruePositiveRate),
            false_positive_rate: with(closed.false_positive_rate, Moment::FalsePositiveRate),
            false_acceptance_share: with(
                closed.false_acceptance_share,
                Moment::FalseAcceptanceShare,
            ),
            accuracy: with(closed.accuracy, Moment::Accuracy),
            balanced_accuracy: with(closed.balanced_accuracy, Moment::BalancedAccuracy),
            kappa: with(closed.kappa, Moment::Kappa),
            auc: Measured(closed.auc.0.and_then(|own| {
                clustered_auc(rank, &series.good, &series.group, own, options.level)
            })),
        }
    }

    fn closed(series: &Series, level: f64) -> Self {
        let (x, y) = (&series.score, &series.target);
        let n = x.len();
        let same_unit = comparable(series);
        let rank = if series.rank.is_empty() { x } else { &series.rank };
        let bias = same_unit.and_then(|()| offset(x, y, level)).map(|fit| {
            let interval = fit.estimate.interval;
            Figure {
                estimate: -fit.estimate.point,
                lower: -interval.upper,
                upper: -interval.lower,
                ..Figure::from(fit.estimate)
            }
        });
        let slope = ordinary_least_squares(x, y).map(|fit| {
            let margin = student_critical(level, n as f64 - 2.0) * fit.slope_standard_error;
            let interval = Interval::around(fit.map.slope, margin, level);
            Figure::from(Estimate { point: fit.map.slope, interval, n, method: Method::StudentT })
        });
        let groups: std::collections::HashSet<&usize> = series.group.iter().collect();
        let confusion = match &series.accepted {
            Some(accepted) => Confusion::from_decisions(&series.good, accepted),
            None => Err(Undefined { reason: Reason::NoData }),
        };
        let share = |k: u64, n: u64, empty| {
            if n == 0 { Err(Undefined { reason: empty }) } else { wilson(k, n, level) }
        };
        Self {
            bias: Measured(bias),
            slope: Measured(slope),
            mae: Measured(same_unit.and_then(|()| mean_absolute(x, y, level))),
            rmse: Measured(same_unit.and_then(|()| root_mean_squared(x, y, level))),
            pearson: pearson_estimate(x, y, level).into(),
            // Bonett and Wright (2000) and Fieller et al. (1957) on Fisher's scale.
            spearman: fisher(spearman(x, y), |r| (1.0 + r * r / 2.0) / (n as f64 - 3.0), n, level),
            kendall: fisher(kendall_tau_b(x, y), |_| 0.437 / (groups.len() as f64 - 4.0), n, level),
            true_positive_rate: confusion
                .and_then(|c| share(c.true_positive, c.positives(), Reason::NoPositives))
                .into(),
            false_positive_rate: confusion
                .and_then(|c| share(c.false_positive, c.negatives(), Reason::NoNegatives))
                .into(),
            false_acceptance_share: confusion
                .and_then(|c| share(c.false_positive, c.accepted(), Reason::NoPredictedPositives))
                .into(),
            accuracy: confusion
                .and_then(|c| share(c.true_positive + c.true_negative, c.n(), Reason::NoData))
                .into(),
            balanced_accuracy: Measured(confusion.and_then(|c| balanced(&c, level))),
            kappa: confusion
                .and_then(|c| {
                    CategoryTable::new(vec![
                        vec![c.true_negative, c.false_positive],
                        vec![c.false_negative, c.true_positive],
                    ])?
                    .kappa_estimate(Weighting::Unweighted, level)
                    .map(|kappa| kappa.estimate)
                })
                .into(),
            auc: Measured(
                crate::stats::auc::delong(rank, &series.good, level)
                    .map(|area| Figure::from(area.estimate).clipped(0.0, 1.0)),
            ),
        }
    }
}

fn mean_absolute(x: &[f64], y: &[f64], level: f64) -> Defined<Figure> {
    let absolute: Vec<f64> = x.iter().zip(y).map(|(x, y)| (x - y).abs()).collect();
    let zero = vec![0.0; absolute.len()];
    let fit = offset(&zero, &absolute, level)?;
    Ok(Figure::from(fit.estimate).clipped(0.0, f64::INFINITY))
}

/// The interval of the mean squared error, on the scale of its root.
fn root_mean_squared(x: &[f64], y: &[f64], level: f64) -> Defined<Figure> {
    let squares: Vec<f64> = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).collect();
    let zero = vec![0.0; squares.len()];
    let fit = offset(&zero, &squares, level)?;
    let figure = Figure::from(fit.estimate).clipped(0.0, f64::INFINITY);
    let root = |value: f64| value.sqrt();
    Ok(Figure {
        estimate: root(figure.estimate),
        lower: root(figure.lower),
        upper: root(figure.upper),
        ..figure
    })
}

fn fisher(value: Defined, variance: impl Fn(f64) -> f64, n: usize, level: f64) -> Measured<Figure> {
    Measured(value.and_then(|r| {
        let variance = variance(r);
        if !(variance.is_finite() && variance > 0.0) {
            return Err(Undefined { reason: Reason::TooFewValues });
        }
        let margin = normal_critical(level) * variance.sqrt();
        // A perfect correlation has no width on Fisher's scale.
        let end = |sign: f64| {
            if r.abs() >= 1.0 { r } else { (r.atanh() + sign * margin).tanh() }
        };
        Ok(Figure {
            estimate: r,
            lower: end(-1.0),
            upper: end(1.0),
            n: n as u64,
            level,
            method: Method::FisherZ,
        })
    }))
}

/// Half the sum of two independent shares; the variance is that of smoothed shares, so that
/// it is never 0.
fn balanced(c: &Confusion, level: f64) -> Defined<Figure> {
    let point = c.balanced_accuracy()?;
    let variance = |k: u64, n: u64| {
        let (k, n) = (k as f64 + 1.0, n as f64 + 2.0);
        k / n * (1.0 - k / n) / n
    };
    let total = variance(c.true_positive, c.positives()) + variance(c.true_negative, c.negatives());
    let margin = normal_critical(level) * total.sqrt() / 2.0;
    Ok(Figure::from(Estimate {
        point,
        interval: Interval::around(point, margin, level).clipped(0.0, 1.0),
        n: c.n() as usize,
        method: Method::Normal,
    }))
}

/// AUC whose variance sums placement values within groups (Obuchowski 1997).
fn clustered_auc(
    rank: &[f64],
    good: &[bool],
    group: &[usize],
    plain: Figure,
    level: f64,
) -> Defined<Figure> {
    let side = |wanted: bool| {
        let mut scores: Vec<f64> =
            rank.iter().zip(good).filter(|(_, g)| **g == wanted).map(|(x, _)| *x).collect();
        scores.sort_unstable_by(f64::total_cmp);
        scores
    };
    let (positives, negatives) = (side(true), side(false));
    // Share of the other side below, ties half.
    let placement = |x: f64, others: &[f64]| {
        let below = others.partition_point(|o| *o < x);
        let upto = others.partition_point(|o| *o <= x);
        (below + upto) as f64 / 2.0 / others.len() as f64
    };
    let mut parts: BTreeMap<usize, f64> = BTreeMap::new();
    for ((x, good), group) in rank.iter().zip(good).zip(group) {
        let part = if *good {
            (placement(*x, &negatives) - plain.estimate) / positives.len() as f64
        } else {
            (1.0 - placement(*x, &positives) - plain.estimate) / negatives.len() as f64
        };
        *parts.entry(*group).or_default() += part;
    }
    let groups = parts.len() as f64;
    if groups < 2.0 {
        return Err(Undefined { reason: Reason::TooFewValues });
    }
    let variance = groups / (groups - 1.0) * parts.values().map(|p| p * p).sum::<f64>();
    let margin = normal_critical(level) * variance.sqrt();
    Ok(Figure { lower: plain.estimate - margin, upper: plain.estimate + margin, ..plain }
        .clipped(0.0, 1.0))
}

/// A judge's noise over repeated measurements; `None` without any.
#[must_use]
pub fn repeats(judge: &JudgeColumn) -> Option<Measured<Repeats>> {
    (!judge.repeats.is_empty()).then(|| {
        Measured(self_consistency(&judge.repeats).map(|own| Repeats {
            n: own.n as u64,
            pairwise_agreement: own.pairwise_agreement,
            flip_rate: own.flip_rate,
            within_variance: own.within_item_variance,
        }))
    })
}

/// Effect of the output's length on the judge's error: the slope of score minus target on the
/// logarithm of length (heteroscedasticity-robust errors). `None` without lengths.
#[must_use]
pub fn length_effect(
    series: &Series,
    lengths: &[Option<u64>],
    level: f64,
) -> Option<Measured<Figure>> {
    let known: Vec<usize> = (0..lengths.len()).filter(|&i| lengths[i].is_some()).collect();
    if known.is_empty() || !series.comparable {
        return None;
    }
    let x: Vec<f64> =
        known.iter().map(|&i| (lengths[i].unwrap_or_default() as f64 + 1.0).ln()).collect();
    let y: Vec<f64> = known.iter().map(|&i| series.score[i] - series.target[i]).collect();
    Some(Measured(least_squares_hc3(&y, &[x]).map(|fit| {
        let (slope, error) = (fit.coefficients[1], fit.standard_errors[1]);
        Figure::from(Estimate {
            point: slope,
            interval: Interval::around(slope, normal_critical(level) * error, level),
            n: fit.n,
            method: Method::Normal,
        })
    })))
}

/// The series of a judge's scored cases among `rows`.
#[must_use]
pub fn series_of(
    scores: &[Option<f64>],
    cases: &[LabelledCase],
    groups: &[usize],
    rows: &[usize],
    target: impl Fn(&LabelledCase) -> f64,
) -> (Series, Vec<usize>) {
    let scored: Vec<usize> = rows.iter().copied().filter(|&i| scores[i].is_some()).collect();
    let series = Series {
        score: scored.iter().filter_map(|&i| scores[i]).collect(),
        target: scored.iter().map(|&i| target(&cases[i])).collect(),
        good: scored.iter().map(|&i| cases[i].good).collect(),
        group: scored.iter().map(|&i| groups[i]).collect(),
        comparable: true,
        ..Series::default()
    };
    (series, scored)
}
