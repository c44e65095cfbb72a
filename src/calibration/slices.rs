//! Slices: bias and false accepts of a judge by a field of the cases, each pulled to the mean
//! of all as far as its few labels say nothing of their own.
//!
//! A slice of five labels has some extreme rate by luck. Biases are shrunk by empirical Bayes
//! with one within-slice variance for all (a slice's own is too noisy below some twenty
//! labels), rates by a beta-binomial model. Raw figures stand beside the shrunk ones.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::calibrate::{Fitted, Work};
use super::certificate::Certificate;
use super::contender::share_of;
use super::figure::{Figure, Measured};
use super::grouping::Groups;
use super::judge_metrics::Series;
use super::panel::PanelModel;
use super::panel_report::PanelSeries;
use crate::stats::bootstrap::Resampling;
use crate::stats::distribution::{hypergeometric_sf_inclusive, normal_critical};
use crate::stats::grouped_mean::GroupedMean;
use crate::stats::multiplicity::holm;
use crate::stats::shrinkage::{beta_binomial_shrinkage, empirical_bayes, pooled_variances};
use crate::stats::{Defined, Method, Reason};

/// A field of the cases and the slices that its values make.
#[derive(Clone, Debug)]
pub struct SlicedBy {
    /// The field.
    pub field: String,
    /// The slice of each case of the table.
    pub slices: Groups,
}

/// One judge in one slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Slice {
    /// The field's value.
    pub slice: String,
    /// Cases with a score.
    pub n: u64,
    /// Mean of score minus label.
    pub bias: Measured<Figure>,
    /// The same, shrunk; its interval takes the spread between slices as known.
    pub shrunk_bias: Measured<Figure>,
    /// Truly bad cases that were decided.
    pub bad: u64,
    /// Those of them that were accepted.
    pub false_accepts: u64,
    /// P(accepted | bad), with Wilson's interval; cases of one group count each.
    pub false_positive_rate: Measured<Figure>,
    /// The same, shrunk.
    pub shrunk_false_positive_rate: Measured,
    /// One-sided p-value that the slice has no higher rate than the others (Fisher's exact
    /// test), adjusted by Holm over the slices; undefined where groups have several cases.
    pub p_holm: Measured,
}

/// One judge, or the panel, over the slices of a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgeSlices {
    /// The judge, or `panel`.
    pub judge: String,
    /// Standard deviation of bias between slices (DerSimonian and Laird 1986); 0 where the
    /// slices differ no more than chance has them.
    pub bias_between: Measured,
    /// The slices, in the order of their names.
    pub slices: Vec<Slice>,
}

/// All judges by one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SliceReport {
    /// The field.
    pub field: String,
    /// The panel, then the judges.
    pub judges: Vec<JudgeSlices>,
}

impl Work<'_> {
    pub(super) fn slices(
        &self,
        model: &PanelModel,
        fitted: &Fitted,
        fit: &[usize],
        rows: &[usize],
        certificate: &Certificate,
    ) -> Vec<SliceReport> {
        if self.options.slices.is_empty() {
            return Vec::new();
        }
        let PanelSeries { series, decided, .. } =
            self.panel_series(model, fitted, fit, rows, certificate);
        let panel = ("panel".to_owned(), series, decided);
        let judges = self.table.judges.iter().enumerate().map(|(j, judge)| {
            let (series, scored) = self.judge_series(j, fitted, rows);
            (judge.name.clone(), series, scored)
        });
        let all: Vec<(String, Series, Vec<usize>)> = std::iter::once(panel).chain(judges).collect();
        let intervals = self.options.intervals();
        let resampling = Resampling {
            resamples: intervals.resamples,
            seed: intervals.seed,
            level: intervals.level,
        };
        self.options
            .slices
            .iter()
            .map(|by| SliceReport {
                field: by.field.clone(),
                judges: all
                    .iter()
                    .map(|(name, series, which)| {
                        sliced(name, series, which, &by.slices, resampling)
                    })
                    .collect(),
            })
            .collect()
    }
}

fn sliced(
    name: &str,
    series: &Series,
    which: &[usize],
    slices: &Groups,
    resampling: Resampling,
) -> JudgeSlices {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut members: Vec<(usize, Vec<usize>)> = Vec::new();
    for (place, &case) in which.iter().enumerate() {
        let slice = slices.of_case[case];
        let next = members.len();
        let own = *places.entry(slice).or_insert(next);
        if own == next {
            members.push((slice, Vec::new()));
        }
        members[own].1.push(place);
    }
    members.sort_by(|a, b| slices.names[a.0].cmp(&slices.names[b.0]));
    let gaps: Vec<Vec<(usize, f64)>> = members
        .iter()
        .map(|(_, own)| {
            own.iter().map(|&i| (series.group[i], gap(series.score[i], series.target[i]))).collect()
        })
        .collect();
    let shrunk = if series.comparable {
        shrunk_biases(&gaps, resampling.level)
    } else {
        Err(Reason::NotIdentified.into())
    };
    let counts: Vec<(u64, u64)> =
        members.iter().map(|(_, own)| false_accepts(series, own)).collect();
    let rates = shrunk_rates(&counts);
    let clustered = GroupedMean::new(series.group.iter().map(|group| (*group, 0.0)));
    let p = if clustered.groups() < clustered.n() {
        vec![Measured::undefined(Reason::NotIdentified); counts.len()]
    } else {
        higher(&counts)
    };
    let rows = members.iter().enumerate().map(|(k, (slice, own))| {
        let (wrong, bad) = counts[k];
        Slice {
            slice: slices.names[*slice].clone(),
            n: own.len() as u64,
            bias: if series.comparable {
                GroupedMean::new(gaps[k].iter().copied()).estimate(resampling).into()
            } else {
                Measured::undefined(Reason::NotIdentified)
            },
            shrunk_bias: match &shrunk {
                Ok((figures, _)) => Measured(Ok(figures[k])),
                Err(undefined) => Measured(Err(*undefined)),
            },
            bad,
            false_accepts: wrong,
            false_positive_rate: if series.accepted.is_some() {
                share_of(bad_members(series, own), resampling)
            } else {
                Measured::undefined(Reason::NoData)
            },
            shrunk_false_positive_rate: rates[k].clone(),
            p_holm: p[k].clone(),
        }
    });
    JudgeSlices {
        judge: name.to_owned(),
        slices: rows.collect(),
        bias_between: Measured(shrunk.map(|(_, between)| between)),
    }
}

/// Score minus label; what rounding leaves of equal ones is nothing.
fn gap(score: f64, target: f64) -> f64 {
    let gap = score - target;
    if gap.abs() <= 1e-12 * score.abs().max(target.abs()) { 0.0 } else { gap }
}

/// Shrunk biases with their intervals, and the deviation between slices. Cases of one group in
/// a slice are one observation, their mean.
fn shrunk_biases(gaps: &[Vec<(usize, f64)>], level: f64) -> Defined<(Vec<Figure>, f64)> {
    let units: Vec<Vec<f64>> = gaps
        .iter()
        .map(|own| {
            let mut sums: HashMap<usize, (f64, f64)> = HashMap::new();
            for (group, gap) in own {
                let sum = sums.entry(*group).or_default();
                *sum = (sum.0 + gap, sum.1 + 1.0);
            }
            let mut means: Vec<f64> = sums.into_values().map(|(sum, n)| sum / n).collect();
            means.sort_unstable_by(f64::total_cmp);
            means
        })
        .collect();
    let (means, variances) = pooled_variances(&units)?;
    let pooled = empirical_bayes(&means, &variances)?;
    let z = normal_critical(level);
    let figures = pooled
        .shrunk
        .iter()
        .zip(&variances)
        .zip(gaps)
        .map(|((bias, variance), own)| {
            // Morris (1983): what is left of the slice's own variance, and the mean's.
            let pull = variance / (variance + pooled.tau2);
            let error =
                (variance * (1.0 - pull) + (pull * pooled.mean_standard_error).powi(2)).sqrt();
            Figure {
                estimate: *bias,
                lower: bias - z * error,
                upper: bias + z * error,
                n: own.len() as u64,
                level,
                method: Method::Normal,
            }
        })
        .collect();
    Ok((figures, pooled.tau2.sqrt()))
}

/// The bad cases of a slice: their groups, and whether they are accepted.
fn bad_members<'a>(
    series: &'a Series,
    members: &'a [usize],
) -> impl Iterator<Item = (usize, bool)> + 'a {
    let accepted = series.accepted.as_deref().unwrap_or_default();
    members.iter().filter(|&&i| !series.good[i]).map(|&i| (series.group[i], accepted[i]))
}

fn false_accepts(series: &Series, members: &[usize]) -> (u64, u64) {
    let Some(accepted) = &series.accepted else { return (0, 0) };
    let bad = || members.iter().filter(|&&i| !series.good[i]);
    (bad().filter(|&&i| accepted[i]).count() as u64, bad().count() as u64)
}

fn shrunk_rates(counts: &[(u64, u64)]) -> Vec<Measured> {
    let with: Vec<(u64, u64)> = counts.iter().copied().filter(|own| own.1 > 0).collect();
    let (k, n): (Vec<u64>, Vec<u64>) = with.into_iter().unzip();
    let shrunk = if k.len() < 2 {
        Err(Reason::TooFewValues.into())
    } else {
        beta_binomial_shrinkage(&k, &n)
    };
    let mut next = 0;
    counts
        .iter()
        .map(|own| {
            if own.1 == 0 {
                return Measured::undefined(Reason::NoNegatives);
            }
            next += 1;
            Measured(shrunk.as_ref().map(|found| found.shrunk[next - 1]).map_err(|error| *error))
        })
        .collect()
}

/// Whether a slice accepts more bad cases than the others do.
fn higher(counts: &[(u64, u64)]) -> Vec<Measured> {
    let (wrong, bad) = counts.iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    let p: Vec<Option<f64>> = counts
        .iter()
        .map(|(k, n)| (*n > 0 && *n < bad).then(|| hypergeometric_sf_inclusive(*k, bad, wrong, *n)))
        .collect();
    let given: Vec<f64> = p.iter().flatten().copied().collect();
    let mut adjusted = holm(&given).unwrap_or_default().into_iter();
    p.into_iter()
        .map(|own| match own.and_then(|_| adjusted.next()) {
            Some(p) => Measured(Ok(p)),
            None => Measured::undefined(Reason::NoData),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESAMPLING: Resampling = Resampling { resamples: 200, seed: 1, level: 0.95 };

    /// Slices of `(n, bias, false accepts of bad)`; half of each slice is bad.
    fn figures(slices: &[(usize, f64, usize)]) -> JudgeSlices {
        let mut series = Series { comparable: true, ..Series::default() };
        let mut accepted = Vec::new();
        let mut names = Vec::new();
        for (s, (n, bias, wrong)) in slices.iter().enumerate() {
            for i in 0..*n {
                let bad = i < n / 2;
                series.score.push(bias + if i % 2 == 0 { 0.1 } else { -0.1 });
                series.target.push(0.0);
                series.good.push(!bad);
                series.group.push(names.len());
                accepted.push(!bad || i < *wrong);
                names.push(format!("s{s}"));
            }
        }
        series.accepted = Some(accepted);
        let which: Vec<usize> = (0..names.len()).collect();
        sliced("j", &series, &which, &Groups::numbered(names), RESAMPLING)
    }

    #[test]
    fn a_small_slice_is_pulled_further_than_a_large_one() {
        let own = figures(&[(4, 1.0, 0), (400, 1.0, 0), (100, 0.0, 0), (100, 0.2, 0)]);
        let gap = |k: usize| {
            let slice = &own.slices[k];
            (slice.bias.value().unwrap().estimate - slice.shrunk_bias.value().unwrap().estimate)
                .abs()
        };
        assert!(gap(0) > gap(1) && gap(0) > 0.0, "{own:?}");
        let small = own.slices[0].shrunk_bias.value().unwrap();
        assert!(small.lower < small.estimate && small.estimate < small.upper);
    }

    #[test]
    fn where_a_bias_has_no_variance_the_shrunk_one_has_no_interval_either() {
        let mut series = Series { comparable: true, ..Series::default() };
        for i in 0..12 {
            // 0.1 + 0.2 is not 0.3: rounding is no spread.
            series.score.push(if i % 2 == 0 { 0.1 + 0.2 } else { 0.3 });
            series.target.push(0.0);
            series.good.push(i % 2 == 0);
            series.group.push(i);
        }
        let names = (0..12).map(|i| format!("s{}", i % 2)).collect();
        let which: Vec<usize> = (0..12).collect();
        let own = sliced("j", &series, &which, &Groups::numbered(names), RESAMPLING);
        for slice in &own.slices {
            assert_eq!(slice.bias.0.unwrap_err().reason, Reason::ZeroVariance);
            assert_eq!(slice.shrunk_bias.0.unwrap_err().reason, Reason::ZeroVariance);
        }
    }

    #[test]
    fn slices_that_differ_by_chance_alone_are_one() {
        let own = figures(&[(40, 0.3, 2), (40, 0.3, 2), (40, 0.3, 2)]);
        assert_eq!(own.bias_between.value(), Some(&0.0));
        assert!(own.slices.iter().all(|own| *own.p_holm.value().unwrap() == 1.0));
    }

    #[test]
    fn a_slice_that_lets_more_bad_ones_through_is_found_and_a_lone_slice_has_no_test() {
        let own = figures(&[(60, 0.0, 1), (60, 0.0, 20), (60, 0.0, 1)]);
        assert_eq!((own.slices[1].false_accepts, own.slices[1].bad), (20, 30));
        assert!(*own.slices[1].p_holm.value().unwrap() < 0.001);
        assert!(*own.slices[0].p_holm.value().unwrap() > 0.9);
        let rate = *own.slices[1].shrunk_false_positive_rate.value().unwrap();
        assert!(rate < 20.0 / 30.0 && rate > 0.3, "{rate}");
        let lone = figures(&[(60, 0.0, 1)]);
        assert!(
            lone.slices[0].p_holm.value().is_none() && lone.slices[0].shrunk_bias.value().is_none()
        );
    }
}
