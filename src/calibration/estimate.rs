//! The true rate of good cases among all that were judged, from the labels of some.
//!
//! Post-stratified by what the judge or panel said: labels are averaged inside cells of the
//! verdict or score, and cells weighted by their share of all cases. PPI++ and Rogan-Gladen
//! stand beside it, each with the condition under which it may be believed. All assume that
//! inside a cell the labelled cases are like the others; nothing here can check that.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;

use super::contender::share_of;
use super::error::CalibrationError;
use super::estimate_cells::{Cut, Said, said};
use super::figure::{Figure, Measured, UndefinedFigure, list_undefined};
use super::grouping::Groups;
use super::positive::{Accept, Positive};
use super::table::{Counts, Table};
use crate::stats::bootstrap::Resampling;
use crate::stats::confusion::Confusion;
use crate::stats::distribution::normal_critical;
use crate::stats::rate::{
    Cell, Divisor, JudgeCounts, PostStratified, lee_interval, post_stratified, ppi_plus_plus,
    rogan_gladen,
};
use crate::stats::sampling::{neyman, whole_allocation};
use crate::stats::{Defined, Estimate, Interval, Method, Reason};

/// What is asked of an estimate.
#[derive(Clone, Debug)]
pub struct EstimateOptions {
    /// What a graded score must reach to accept; for PPI++ and Rogan-Gladen only, fitted to
    /// the labels where `None`.
    pub accept: Option<Accept>,
    /// Least votes for a verdict of the panel; more than half where `None`.
    pub quorum: Option<usize>,
    /// Nominal coverage, in (0,1).
    pub level: f64,
    /// Numbers of further labels to look ahead to.
    pub more: Vec<u64>,
    /// Bootstrap of the labels-only rate, where groups have several cases.
    pub resampling: Resampling,
}

/// A cell of the verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellReport {
    /// What was said there, such as `accepted` or `score 2 to 3`.
    pub name: String,
    /// All judged cases.
    pub judged: u64,
    /// Labelled ones.
    pub labelled: u64,
    /// Labelled ones that are good.
    pub good: u64,
    /// Rate of good ones as it enters the estimate, `(good + 1) / (labelled + 2)`.
    pub rate: f64,
}

/// What further labels would give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// Further labels.
    pub labels: u64,
    /// Width of the interval then, if they are drawn at random.
    pub width_random: Measured,
    /// Width if they are spread over the cells as [`Self::cells`] says.
    pub width_allocated: Measured,
    /// Where to label, by cell: more where cells are large or undecided (Neyman 1934).
    pub cells: BTreeMap<String, u64>,
}

/// An estimate by another method, with what it takes to believe it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The rate.
    pub rate: Measured<Figure>,
    /// Whether its condition holds.
    pub trusted: bool,
    /// The condition, and what came of it.
    pub note: String,
}

/// The rate of one group of cases.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRate {
    /// The group.
    pub name: String,
    /// Judged cases.
    pub judged: u64,
    /// Labelled ones.
    pub labelled: u64,
    /// Post-stratified rate; undefined without a label.
    pub rate: Measured<Figure>,
}

/// Everything that an estimate says.
#[derive(Clone, Debug, Serialize)]
pub struct RateEstimate {
    /// Version of this form.
    pub version: u32,
    /// The judgements' criterion.
    pub criterion: String,
    /// Which labels are good.
    pub positive: Positive,
    /// What was joined and what was left over.
    pub counts: Counts,
    /// Who is asked: one judge, or the panel of several.
    pub by: String,
    /// Judged cases.
    pub judged: u64,
    /// Judged and labelled ones.
    pub labelled: u64,
    /// Judged and not labelled ones.
    pub unlabelled: u64,
    /// The rate of good cases among all judged, post-stratified.
    pub rate: Measured<Figure>,
    /// The cells it stands on.
    pub cells: Vec<CellReport>,
    /// The share that was accepted, which is no rate of good cases.
    pub accepted: Measured<Figure>,
    /// From the labels alone, as if the judge had said nothing.
    pub labels_only: Measured<Figure>,
    /// PPI++.
    pub ppi_plus_plus: Beside,
    /// Rogan and Gladen's inversion, with its delta interval.
    pub rogan_gladen: Beside,
    /// The same with the interval of Lee et al.
    pub lee: Beside,
    /// What further labels would give.
    pub outlook: Vec<Outlook>,
    /// By group, where asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRate>,
    /// What to know before trusting the figures.
    pub warnings: Vec<String>,
}

impl RateEstimate {
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

/// The rate of good cases in a table that keeps unlabelled cases
/// ([`super::table::TableOptions::keep_unlabelled`]). `groups` are the cases that belong
/// together; `slices` names the group of each case that a rate of its own is asked for.
///
/// # Errors
/// When no judged case is labelled, or an option is out of its range.
pub fn estimate(
    table: &Table,
    groups: &Groups,
    slices: Option<&Groups>,
    options: &EstimateOptions,
) -> Result<RateEstimate, CalibrationError> {
    if !(options.level > 0.0 && options.level < 1.0) {
        let (option, expected) = ("--level", "a number between 0 and 1");
        return Err(CalibrationError::OutOfRange { option, value: options.level, expected });
    }
    let cases = table.cases();
    let labelled: Vec<usize> = (0..cases.len()).filter(|&i| cases[i].is_labelled()).collect();
    if labelled.is_empty() {
        return Err(CalibrationError::NoLabelledCase { judged: cases.len() as u64 });
    }
    let said = said(table, &labelled, options);
    let cut = Cut::new(&said, labelled.len());
    let of_case: Vec<usize> = (0..cases.len()).map(|i| cut.cell(&said, i)).collect();
    let counts = |rows: &mut dyn Iterator<Item = usize>| {
        let mut cells = vec![Cell { judged: 0, labelled: 0, good: 0 }; cut.names.len()];
        for i in rows {
            let cell = &mut cells[of_case[i]];
            cell.judged += 1;
            if cases[i].is_labelled() {
                cell.labelled += 1;
                cell.good += u64::from(cases[i].good);
            }
        }
        cells
    };
    let cells = counts(&mut (0..cases.len()));
    let clustered = groups.clustered();
    let fit = post_stratified(&cells, options.level)
        .map(|fit| over_groups(fit, table, groups, &of_case, &cells, options.level));
    let mut warnings = warnings(table, &said, &cells, &cut.names, labelled.len());
    if clustered {
        warnings.push(
            "cases come in groups: the interval is the wider of the one over cases and the one over groups; PPI++ and Rogan-Gladen count each case as independent"
                .to_owned(),
        );
    }
    let shares = |rows: &[usize], holds: &dyn Fn(usize) -> bool| {
        share_of(rows.iter().map(|&i| (groups.of_case[i], holds(i))), options.resampling)
    };
    let decided: Vec<usize> = (0..cases.len()).filter(|&i| said.accepted[i].is_some()).collect();
    let (ppi, rogan, lee) = beside(table, &said, &labelled, options);
    let report = RateEstimate {
        version: 1,
        criterion: table.criterion.clone(),
        positive: table.positive.clone(),
        counts: table.counts.clone(),
        by: said.by.clone(),
        judged: cases.len() as u64,
        labelled: labelled.len() as u64,
        unlabelled: (cases.len() - labelled.len()) as u64,
        rate: figure(&fit, labelled.len()),
        cells: cells
            .iter()
            .zip(&cut.names)
            .map(|(cell, name)| CellReport {
                name: name.clone(),
                judged: cell.judged,
                labelled: cell.labelled,
                good: cell.good,
                rate: (cell.good as f64 + 1.0) / (cell.labelled as f64 + 2.0),
            })
            .collect(),
        accepted: shares(&decided, &|i| said.accepted[i] == Some(true)),
        labels_only: shares(&labelled, &|i| cases[i].good),
        ppi_plus_plus: ppi,
        rogan_gladen: rogan,
        lee,
        outlook: outlook(&cells, &cut.names, options, &fit),
        groups: slices
            .map_or_else(Vec::new, |slices| by_group(slices, |rows| (counts(rows), options.level))),
        warnings,
    };
    Ok(report)
}

fn figure(fit: &Defined<PostStratified>, n: usize) -> Measured<Figure> {
    Measured(fit.map(|fit| Figure { n: n as u64, ..Figure::from(fit.estimate).clipped(0.0, 1.0) }))
}

/// With groups, the variance is the larger of the one over cases and the linearised one over
/// groups: groups can only be less than the sum of their cases.
fn over_groups(
    fit: PostStratified,
    table: &Table,
    groups: &Groups,
    of_case: &[usize],
    cells: &[Cell],
    level: f64,
) -> PostStratified {
    if !groups.clustered() {
        return fit;
    }
    let total = of_case.len() as f64;
    let mean = |cell: &Cell| (cell.good as f64 + 1.0) / (cell.labelled as f64 + 2.0);
    let mut within: HashMap<usize, f64> = HashMap::new();
    let mut between: HashMap<usize, f64> = HashMap::new();
    for (i, case) in table.cases().iter().enumerate() {
        let cell = &cells[of_case[i]];
        let group = groups.of_case[i];
        *between.entry(group).or_default() += (mean(cell) - fit.estimate.point) / total;
        if case.is_labelled() {
            let weight = cell.judged as f64 / total / (cell.labelled as f64 + 2.0);
            *within.entry(group).or_default() +=
                weight * (f64::from(u8::from(case.good)) - mean(cell));
        }
    }
    let square = |sums: HashMap<usize, f64>| {
        let g = sums.len() as f64;
        let mut squares: Vec<f64> = sums.into_values().map(|sum| sum * sum).collect();
        squares.sort_unstable_by(f64::total_cmp);
        if g < 2.0 { 0.0 } else { g / (g - 1.0) * squares.iter().sum::<f64>() }
    };
    let variance = fit.variance.max(square(within) + square(between));
    let point = fit.estimate.point;
    let interval = Interval::around(point, normal_critical(level) * variance.sqrt(), level);
    PostStratified { estimate: Estimate { interval, ..fit.estimate }, variance }
}

fn by_group(
    slices: &Groups,
    count: impl Fn(&mut dyn Iterator<Item = usize>) -> (Vec<Cell>, f64),
) -> Vec<GroupRate> {
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); slices.len()];
    for (i, group) in slices.of_case.iter().enumerate() {
        members[*group].push(i);
    }
    members
        .into_iter()
        .zip(&slices.names)
        .filter(|(rows, _)| !rows.is_empty())
        .map(|(rows, name)| {
            let (cells, level) = count(&mut rows.iter().copied());
            let labelled: u64 = cells.iter().map(|cell| cell.labelled).sum();
            let rate = if labelled == 0 {
                Measured::undefined(Reason::NoData)
            } else {
                figure(&post_stratified(&cells, level), labelled as usize)
            };
            GroupRate { name: name.clone(), judged: rows.len() as u64, labelled, rate }
        })
        .collect()
}

fn beside(
    table: &Table,
    said: &Said,
    labelled: &[usize],
    options: &EstimateOptions,
) -> (Beside, Beside, Beside) {
    let cases = table.cases();
    let number = |yes: bool| f64::from(u8::from(yes));
    let known: Vec<(bool, bool)> =
        labelled.iter().filter_map(|&i| Some((cases[i].good, said.accepted[i]?))).collect();
    let label: Vec<f64> = known.iter().map(|(good, _)| number(*good)).collect();
    let judge: Vec<f64> = known.iter().map(|(_, accepted)| number(*accepted)).collect();
    let rest: Vec<f64> = (0..cases.len())
        .filter(|&i| !cases[i].is_labelled())
        .filter_map(|i| said.accepted[i].map(number))
        .collect();
    let lenient = known.iter().filter(|(good, accepted)| !good && *accepted).count();
    let strict = known.iter().filter(|(good, accepted)| *good && !accepted).count();
    let ppi = ppi_plus_plus(&label, &judge, &rest, Divisor::Sample, options.level);
    let trusted = ppi.is_ok_and(|ppi| ppi.trusted);
    let of_labels = format!("{lenient} accepted cases are labelled bad, {strict} others good");
    let ppi = Beside {
        rate: Measured(ppi.map(|ppi| Figure::from(ppi.estimate).clipped(0.0, 1.0))),
        trusted,
        note: if trusted {
            format!("{of_labels}: at least 10 of each, as it needs")
        } else {
            format!(
                "not to be trusted: {of_labels}; under 10 of each its interval is far too narrow"
            )
        },
    };
    let good: Vec<bool> = known.iter().map(|(good, _)| *good).collect();
    let accepted: Vec<bool> = known.iter().map(|(_, accepted)| *accepted).collect();
    let confusion = Confusion::from_decisions(&good, &accepted).unwrap_or_default();
    let decided = said.accepted.iter().flatten().count() as u64;
    let passed = said.accepted.iter().flatten().filter(|yes| **yes).count() as u64;
    let counts = JudgeCounts::from_counts(passed, decided, confusion);
    let inverted = counts.and_then(|counts| rogan_gladen(&counts, options.level));
    let n = known.len() as u64;
    let inside = inverted.is_ok_and(|own| own.raw == own.clipped);
    let few = confusion.positives() < 10 || confusion.negatives() < 10;
    let note = match inverted {
        Err(undefined) => format!("{undefined}"),
        Ok(own) if !inside => format!(
            "not to be trusted: the verdicts contradict the error rates (the raw rate is {:.3})",
            own.raw
        ),
        Ok(_) if few => format!(
            "not to be trusted: its error rates stand on {} good and {} bad labels, under 10 each",
            confusion.positives(),
            confusion.negatives()
        ),
        Ok(_) => "needs error rates that are the same in labelled and unlabelled cases".to_owned(),
    };
    let rate = inverted.map(|own| Figure {
        n,
        ..Figure::from(Estimate {
            point: own.clipped,
            interval: own.interval.clipped(0.0, 1.0),
            n: n as usize,
            method: Method::Delta,
        })
    });
    let trusted = inside && !few;
    let rogan = Beside { rate: Measured(rate), trusted, note: note.clone() };
    let adjusted = counts.and_then(|counts| lee_interval(&counts, options.level));
    let lee = Beside {
        rate: Measured(adjusted.map(|own| Figure { n, ..Figure::from(own) })),
        trusted,
        note,
    };
    (ppi, rogan, lee)
}

/// Widths after further labels: the variance of the same formula with more labels a cell.
fn outlook(
    cells: &[Cell],
    names: &[String],
    options: &EstimateOptions,
    now: &Defined<PostStratified>,
) -> Vec<Outlook> {
    let unlabelled: Vec<u64> = cells.iter().map(|cell| cell.judged - cell.labelled).collect();
    let left: u64 = unlabelled.iter().sum();
    let total: f64 = cells.iter().map(|cell| cell.judged as f64).sum();
    let mean = |cell: &Cell| (cell.good as f64 + 1.0) / (cell.labelled as f64 + 2.0);
    // How much groups widen the interval now is what they will widen it then.
    let plain = post_stratified(cells, options.level).map(|fit| fit.variance);
    let design = match (now, plain) {
        (Ok(now), Ok(plain)) if plain > 0.0 => now.variance / plain,
        _ => 1.0,
    };
    let width = |more: &[f64]| -> Defined {
        let now = now.as_ref().map_err(|undefined| *undefined)?;
        let point = now.estimate.point;
        let variance: f64 = cells
            .iter()
            .zip(more)
            .map(|(cell, more)| {
                let (w, mu) = (cell.judged as f64 / total, mean(cell));
                w * w * mu * (1.0 - mu) / (cell.labelled as f64 + more + 2.0)
                    + w * (mu - point).powi(2) / total
            })
            .sum();
        let margin = normal_critical(options.level) * (design * variance).sqrt();
        let interval = Interval::around(point, margin, options.level).clipped(0.0, 1.0);
        Ok(interval.width())
    };
    let mut wanted: Vec<u64> = options.more.iter().map(|more| (*more).min(left)).collect();
    wanted.retain(|more| *more > 0);
    wanted.dedup();
    wanted
        .into_iter()
        .map(|labels| {
            let share = labels as f64 / left as f64;
            let random: Vec<f64> = unlabelled.iter().map(|n| *n as f64 * share).collect();
            let spread = allocate(cells, &unlabelled, labels);
            let allocated: Vec<f64> = spread.iter().map(|n| *n as f64).collect();
            Outlook {
                labels,
                width_random: Measured(width(&random)),
                width_allocated: Measured(width(&allocated)),
                cells: names
                    .iter()
                    .zip(&spread)
                    .filter(|(_, n)| **n > 0)
                    .map(|(name, n)| (name.clone(), *n))
                    .collect(),
            }
        })
        .collect()
}

/// Further labels by cell: Neyman's shares of all labels, less those there are, within what is
/// left to label.
fn allocate(cells: &[Cell], unlabelled: &[u64], labels: u64) -> Vec<u64> {
    let sizes: Vec<f64> = cells.iter().map(|cell| cell.judged as f64).collect();
    let deviations: Vec<f64> = cells
        .iter()
        .map(|cell| {
            let mu = (cell.good as f64 + 1.0) / (cell.labelled as f64 + 2.0);
            (mu * (1.0 - mu)).sqrt()
        })
        .collect();
    let have: u64 = cells.iter().map(|cell| cell.labelled).sum();
    let ideal: Vec<f64> = neyman(&sizes, &deviations, have + labels)
        .map_or_else(|_| vec![0.0; cells.len()], |own| own.optimal);
    let mut room: Vec<f64> = ideal
        .iter()
        .zip(cells)
        .zip(unlabelled)
        .map(|((ideal, cell), left)| (ideal - cell.labelled as f64).clamp(0.0, *left as f64))
        .collect();
    if room.iter().sum::<f64>() < 1.0 {
        room = unlabelled.iter().map(|n| *n as f64).collect();
    }
    let scale = labels as f64 / room.iter().sum::<f64>();
    let shares: Vec<f64> = room.iter().map(|own| own * scale).collect();
    let mut whole = whole_allocation(&shares, labels).unwrap_or_else(|_| vec![0; cells.len()]);
    // What does not fit into a cell goes to those with the most left.
    let mut over: u64 = 0;
    for (own, left) in whole.iter_mut().zip(unlabelled) {
        over += own.saturating_sub(*left);
        *own = (*own).min(*left);
    }
    while over > 0 {
        let Some(place) = (0..whole.len())
            .filter(|&i| whole[i] < unlabelled[i])
            .max_by_key(|&i| unlabelled[i] - whole[i])
        else {
            break;
        };
        let take = over.min(unlabelled[place] - whole[place]);
        whole[place] += take;
        over -= take;
    }
    whole
}

fn warnings(
    table: &Table,
    said: &Said,
    cells: &[Cell],
    names: &[String],
    labelled: usize,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let by_model = table.labels.sources.get(&crate::dataset::LabelSource::Model);
    if let Some(n) = by_model {
        warnings.push(format!(
            "{n} labels are a model's: this is the rate that the model would find, not the true one"
        ));
    }
    if labelled < 20 {
        warnings.push(format!("{labelled} labels: the interval is mostly what is not known"));
    }
    let empty: Vec<String> = cells
        .iter()
        .zip(names)
        .filter(|(cell, _)| cell.judged > 0 && cell.labelled == 0)
        .map(|(cell, name)| format!("`{name}` ({} cases)", cell.judged))
        .collect();
    if !empty.is_empty() {
        warnings.push(format!(
            "no label in {}: counted as one half, give or take everything",
            empty.join(", ")
        ));
    }
    warnings.extend(said.note.clone());
    warnings
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
