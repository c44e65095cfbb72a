//! Drift over several runs of the same anchors: each against the baseline, and all of them
//! together.
//!
//! Who looks after every run finds a change sooner or later, so the error rate is spent over
//! the looks: the m-th later run is checked at `alpha / (m (m+1))`, and these sum to alpha
//! however long the series becomes. The test over all runs takes the runs of one anchor as
//! exchangeable while nothing changes; it needs no model of the noise and is exact.

use std::collections::HashMap;

use rand::RngExt as _;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::drift::{Drift, DriftOptions, DriftStatus, drift};
use super::error::CalibrationError;
use super::figure::{Figure, Measured, UndefinedFigure, list_undefined};
use super::recording::Recording;
use crate::stats::draw::stream;
use crate::stats::multiplicity::holm;
use crate::stats::{Defined, Reason};

/// Orders that the change point is compared with.
const ORDERS: u64 = 2000;

/// One run of a series, for one judge.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesPoint {
    /// The run or file.
    pub run: String,
    /// How it stands against the baseline.
    pub status: DriftStatus,
    /// Anchors with a score in both.
    pub n: u64,
    /// Mean score minus that of the baseline.
    pub score: Measured<Figure>,
    /// Share of anchors whose decision flipped against the baseline.
    pub flips: Measured<Figure>,
}

/// Where a series changes most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// The first run after the change.
    pub run: String,
    /// Mean score from there on minus the mean before.
    pub change: f64,
    /// Anchors with a score in every run.
    pub n: u64,
    /// Share of random orders of the runs, anchor by anchor, with a change as large anywhere.
    pub p: f64,
    /// The same, adjusted by Holm over judges and panel.
    pub p_holm: f64,
}

/// One judge, or the panel, over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesReport {
    /// The judge, or `panel`.
    pub name: String,
    /// The last run's status; `drifted` too where only all runs together show a change.
    pub status: DriftStatus,
    /// Each later run.
    pub points: Vec<SeriesPoint>,
    /// The change point; undefined where no score changed.
    pub change_point: Measured<ChangePoint>,
}

/// What a series of runs says.
#[derive(Clone, Debug, Serialize)]
pub struct DriftSeries {
    /// Version of this form.
    pub version: u32,
    /// The run that all are held against.
    pub baseline: String,
    /// Later runs, which are looks at the same question.
    pub looks: u64,
    /// Error rate of all looks together.
    pub alpha: f64,
    /// Error rate of this one.
    pub alpha_spent: f64,
    /// The worst of all.
    pub status: DriftStatus,
    /// What to conclude.
    pub conclusion: String,
    /// The panel and the judges.
    pub series: Vec<SeriesReport>,
    /// The last run against the baseline, in full.
    pub last: Drift,
    /// What to know before trusting the figures.
    pub warnings: Vec<String>,
}

impl DriftSeries {
    /// The report as JSON, with every undefined figure listed in `undefined`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut report = serde_json::to_value(self).unwrap_or(Value::Null);
        let undefined: Vec<UndefinedFigure> = list_undefined(&report);
        if let (Some(map), Ok(list)) = (report.as_object_mut(), serde_json::to_value(undefined)) {
            map.insert("undefined".to_owned(), list);
        }
        report
    }
}

/// What is left of the error rate for the m-th look of as many as there will be.
#[must_use]
pub fn spent(alpha: f64, look: u64) -> f64 {
    let look = look.max(1) as f64;
    alpha / (look * (look + 1.0))
}

/// Checks later runs, in the order of time, against one baseline.
///
/// # Errors
/// As [`drift`], for any of the runs; also without any.
pub fn drift_series(
    baseline: &Recording,
    later: &[Recording],
    options: &DriftOptions<'_>,
) -> Result<DriftSeries, CalibrationError> {
    let looks = later.len() as u64;
    let alpha_spent = spent(options.alpha, looks);
    let mut drifts = Vec::with_capacity(later.len());
    for (m, run) in later.iter().enumerate() {
        let alpha = spent(options.alpha, m as u64 + 1);
        drifts.push(drift(baseline, run, &DriftOptions { alpha, ..options.clone() })?);
    }
    let Some(last) = drifts.last().cloned() else {
        let (option, expected) = ("RUN", "at least one later run");
        return Err(CalibrationError::OutOfRange { option, value: 0.0, expected });
    };
    let mut series: Vec<SeriesReport> = last
        .reports
        .iter()
        .map(|own| SeriesReport {
            name: own.name.clone(),
            status: own.status,
            points: points(&own.name, later, &drifts),
            change_point: Measured(change_point(&own.name, baseline, later, options)),
        })
        .collect();
    adjust(&mut series);
    for own in &mut series {
        let together = own.change_point.value().is_some_and(|found| found.p_holm <= alpha_spent);
        // A change within the tolerance passes, however sure it is.
        if together && own.status == DriftStatus::Inconclusive {
            own.status = DriftStatus::Drifted;
        }
    }
    let mut warnings = last.warnings.clone();
    for (own, run) in drifts.iter().zip(later).take(later.len() - 1) {
        if !own.warnings.is_empty() {
            warnings.push(format!("`{}`: {}", run.name, own.warnings.join("; ")));
        }
    }
    let status = series.iter().map(|own| own.status).max().unwrap_or(DriftStatus::Inconclusive);
    let mut found = DriftSeries {
        version: 1,
        baseline: baseline.name.clone(),
        looks,
        alpha: options.alpha,
        alpha_spent,
        status,
        conclusion: String::new(),
        series,
        last,
        warnings,
    };
    found.conclusion = conclusion(&found);
    Ok(found)
}

fn points(name: &str, later: &[Recording], drifts: &[Drift]) -> Vec<SeriesPoint> {
    let of = later.iter().zip(drifts);
    of.filter_map(|(run, own)| {
        let report = own.reports.iter().find(|own| own.name == name)?;
        let change = report.change.as_ref()?;
        Some(SeriesPoint {
            run: run.name.clone(),
            status: report.status,
            n: change.score.n,
            score: change.score.difference.clone(),
            flips: report.flips.clone(),
        })
    })
    .collect()
}

/// The scores of one judge, or the panel, by anchor.
fn scores<'a>(name: &str, run: &'a Recording) -> HashMap<&'a str, f64> {
    let judge = run.judges.iter().position(|own| own.name == name);
    run.cases
        .iter()
        .filter_map(|case| {
            let score = match judge {
                Some(judge) => case.votes[judge]?.score,
                None => case.score,
            };
            Some((case.id.as_str(), score?))
        })
        .collect()
}

/// The largest change of the mean score, wherever it is: the standardised CUSUM of run means
/// (Page 1954), its p-value by exchanging the runs of each group of anchors.
fn change_point(
    name: &str,
    baseline: &Recording,
    later: &[Recording],
    options: &DriftOptions<'_>,
) -> Defined<ChangePoint> {
    let columns: Vec<HashMap<&str, f64>> =
        std::iter::once(baseline).chain(later).map(|run| scores(name, run)).collect();
    let mut groups: HashMap<String, usize> = HashMap::new();
    // One row of sums a group: anchors of a group are exchanged together.
    let mut sums: Vec<Vec<f64>> = Vec::new();
    let mut n = 0_u64;
    for case in &baseline.cases {
        let row: Option<Vec<f64>> =
            columns.iter().map(|own| own.get(case.id.as_str()).copied()).collect();
        let Some(row) = row else { continue };
        n += 1;
        let group = match options.group {
            Some(pattern) => pattern
                .captures(&case.id)
                .and_then(|own| own.get(1).or_else(|| own.get(0)))
                .map_or(case.id.as_str(), |own| own.as_str())
                .to_owned(),
            None => case.group.clone().unwrap_or_else(|| case.id.clone()),
        };
        let next = groups.len();
        let place = *groups.entry(group).or_insert(next);
        match sums.get_mut(place) {
            Some(own) => own.iter_mut().zip(row).for_each(|(sum, value)| *sum += value),
            None => sums.push(row),
        }
    }
    if sums.is_empty() {
        return Err(Reason::NoData.into());
    }
    // Rows without a change say nothing, in any order.
    sums.retain(|row| row.iter().any(|value| *value != row[0]));
    if sums.is_empty() {
        return Err(Reason::ZeroVariance.into());
    }
    let runs = columns.len();
    let peak = |rows: &[Vec<f64>]| -> (f64, usize) {
        let mut totals = vec![0.0; runs];
        for row in rows {
            totals.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        let centre = totals.iter().sum::<f64>() / runs as f64;
        let (mut sum, mut best) = (0.0, (0.0, 1));
        for (k, total) in totals.iter().enumerate().take(runs - 1) {
            sum += total - centre;
            // Weighted so that a change at the ends is found as well as one in the middle.
            let before = (k + 1) as f64;
            let own = f64::abs(sum) / (before * (runs as f64 - before)).sqrt();
            if own > best.0 {
                best = (own, k + 1);
            }
        }
        best
    };
    let (found, place) = peak(&sums);
    let as_large = (0..ORDERS)
        .into_par_iter()
        .filter(|i| {
            let mut rng = stream(options.resampling.seed, *i);
            let mut order = sums.clone();
            for row in &mut order {
                for last in (1..row.len()).rev() {
                    row.swap(last, rng.random_range(0..=last));
                }
            }
            peak(&order).0 >= found - 1e-9 * found.max(1.0)
        })
        .count();
    let p = (as_large as f64 + 1.0) / (ORDERS as f64 + 1.0);
    let mean = |from: usize, to: usize| {
        let all: f64 = sums.iter().map(|row| row[from..to].iter().sum::<f64>()).sum();
        all / (n as f64 * (to - from) as f64)
    };
    Ok(ChangePoint {
        run: later[place - 1].name.clone(),
        change: mean(place, runs) - mean(0, place),
        n,
        p,
        p_holm: p,
    })
}

fn adjust(series: &mut [SeriesReport]) {
    let p: Vec<f64> =
        series.iter().filter_map(|own| own.change_point.value().map(|found| found.p)).collect();
    let Ok(adjusted) = holm(&p) else { return };
    let held = series.iter_mut().filter_map(|own| own.change_point.0.as_mut().ok());
    held.zip(adjusted).for_each(|(found, p)| found.p_holm = p);
}

fn conclusion(found: &DriftSeries) -> String {
    let mut text = format!("{} later runs. Last: {}", found.looks, found.last.conclusion);
    for own in &found.series {
        if let Some(change) = own.change_point.value()
            && change.p_holm <= found.alpha_spent
        {
            text.push_str(&format!(
                " All runs together: `{}` scores {:+.3} since `{}` (n = {}, p = {:.4}).",
                own.name, change.change, change.run, change.n, change.p_holm
            ));
        }
        let earlier = own.points.iter().rev().skip(1);
        if own.status != DriftStatus::Drifted
            && let Some(point) = earlier.clone().find(|own| own.status == DriftStatus::Drifted)
        {
            text.push_str(&format!(
                " `{}` had drifted in `{}` and has not now.",
                own.name, point.run
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::compare::tests::recording;
    use crate::stats::bootstrap::Resampling;

    fn options() -> DriftOptions<'static> {
        DriftOptions {
            labels: None,
            group: None,
            tolerance: 0.1,
            alpha: 0.05,
            resampling: Resampling { resamples: 200, seed: 1, level: 0.95 },
        }
    }

    /// Scores with noise of their own in each run, and a shift.
    fn run(name: &str, anchors: u64, seed: u64, shift: f64) -> Recording {
        let rows: String = (0..anchors)
            .map(|i| {
                let mut rng = stream(seed, i);
                let noise: f64 = rng.random_range(-0.25..0.25);
                format!("c{i},j,{}\n", 0.5 + noise + shift)
            })
            .collect();
        recording(&format!("case,judge,score\n{rows}"), name).unwrap()
    }

    #[test]
    fn the_looks_never_spend_more_than_the_error_rate() {
        let all: f64 = (1..=1_000_000).map(|m| spent(0.05, m)).sum();
        assert!(all < 0.05 && all > 0.0499, "{all}");
    }

    #[test]
    fn a_series_that_shifts_names_the_run_where_it_began() {
        let later: Vec<Recording> = [("r1", 0.0), ("r2", 0.0), ("r3", 0.2), ("r4", 0.2)]
            .into_iter()
            .enumerate()
            .map(|(i, (name, shift))| run(name, 80, 10 + i as u64, shift))
            .collect();
        let found = drift_series(&run("r0", 80, 1, 0.0), &later, &options()).unwrap();
        let own = found.series.iter().find(|own| own.name == "j").unwrap();
        let change = own.change_point.value().unwrap();
        assert_eq!(change.run, "r3");
        assert!(change.p < 0.01 && (change.change - 0.2).abs() < 0.06, "{change:?}");
        assert_eq!(found.status, DriftStatus::Drifted);
        assert_eq!((found.looks, own.points.len()), (4, 4));
        assert!(found.conclusion.contains("since `r3`"), "{}", found.conclusion);
    }

    #[test]
    fn a_judge_that_is_the_same_in_every_run_alarms_no_oftener_than_it_may() {
        let alarms = (0..60_u64)
            .filter(|draw| {
                let name = |m: u64| format!("r{m}");
                let later: Vec<Recording> =
                    (1..4).map(|m| run(&name(m), 12, 1000 * draw + m, 0.0)).collect();
                let found = change_point("j", &run("r0", 12, 1000 * draw, 0.0), &later, &options());
                found.unwrap().p <= 0.05
            })
            .count();
        // 0.05 and three standard errors of 60 draws.
        assert!(alarms as f64 / 60.0 <= 0.05 + 3.0 * (0.05_f64 * 0.95 / 60.0).sqrt(), "{alarms}");
    }

    #[test]
    fn runs_that_repeat_the_baseline_have_no_change_point() {
        let base = run("r0", 50, 1, 0.0);
        let same = Recording { name: "r1".into(), ..base.clone() };
        let found = drift_series(&base, &[same.clone(), same], &options()).unwrap();
        assert!(found.series[0].change_point.value().is_none());
        assert!(drift_series(&base, &[], &options()).is_err());
    }
}
