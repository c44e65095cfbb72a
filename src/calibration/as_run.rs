//! A panel as it ruled when it ran: its own threshold, vetoes and quorum, beside what a
//! calibration would make of its votes.

use std::collections::HashMap;

use super::calibrate::Work;
use super::judge_metrics::{OperatingPoint, Series};
use super::labelled::Target;
use super::panel::target;
use super::table::Moments;
use crate::score::Score;

/// What a panel that ran decided.
#[derive(Clone, Debug, Default)]
pub struct Ruled {
    /// Score and decision by case; `None` for an undecided one.
    pub rulings: HashMap<String, (Option<f64>, Option<bool>)>,
    /// US dollars a case.
    pub costs: Moments,
    /// Milliseconds a case, judges working side by side.
    pub latencies: Moments,
    /// The score an accepted case must reach.
    pub threshold: Option<f64>,
}

impl Work<'_> {
    /// The cases of `rows` that the panel decided as columns, which they are, and when it
    /// accepted.
    pub(super) fn as_run(
        &self,
        ran: &Ruled,
        rows: &[usize],
    ) -> (Series, Vec<usize>, OperatingPoint) {
        let table = self.table;
        // Where votes were brought onto the labels' scale, so are the panel's scores.
        let brought = table.labels.scale.scale.filter(|own| {
            let unit = [own.low(), own.high()];
            unit != [0.0, 1.0] && table.judges.iter().any(|judge| judge.unit == Some(unit))
        });
        let place = |score: f64| match (brought, Score::new(score)) {
            (Some(scale), Ok(score)) => scale.value(score),
            _ => score,
        };
        let ruled: Vec<(usize, f64, bool)> = rows
            .iter()
            .filter_map(|&i| {
                let (score, accepted) = ran.rulings.get(&table.cases()[i].id)?;
                Some((i, (*score)?, (*accepted)?))
            })
            .collect();
        let series = Series {
            score: ruled.iter().map(|own| place(own.1)).collect(),
            target: ruled.iter().map(|own| target(table, &table.cases()[own.0])).collect(),
            good: ruled.iter().map(|own| table.cases()[own.0].good).collect(),
            accepted: Some(ruled.iter().map(|own| own.2).collect()),
            group: ruled.iter().map(|own| self.groups.of_case[own.0]).collect(),
            // Scores of a run lie in [0,1].
            comparable: table.labels.target == Target::Good
                || brought.is_some()
                || table
                    .labels
                    .scale
                    .scale
                    .is_some_and(|own| (own.low(), own.high()) == (0.0, 1.0)),
            rank: Vec::new(),
        };
        let point = OperatingPoint {
            accept: "as the panel ruled".to_owned(),
            threshold: ran.threshold.map(place),
            origin: "declared",
        };
        (series, ruled.into_iter().map(|own| own.0).collect(), point)
    }
}
