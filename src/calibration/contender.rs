//! A contender: a judge, a panel or a trivial rule on the cases that all are compared on.
//!
//! Decisions and scores are kept by case, so that any two contenders can be compared on the
//! cases that both answered. A case without a score is neither right nor wrong.

use serde::Serialize;

use super::figure::{Figure, Measured};
use super::grouping::Groups;
use super::judge_metrics::{
    CERTIFIED, IntervalOptions, JudgeMetrics, OperatingPoint, Series, judge_metrics,
};
use super::labelled::LabelledCase;
use super::table::JudgeKind;
use crate::stats::Method;
use crate::stats::bootstrap::Resampling;
use crate::stats::grouped_mean::GroupedMean;
use crate::stats::interval::wilson;

/// What a contender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContenderKind {
    /// One judge.
    Judge,
    /// Several judges' votes as one.
    Panel,
    /// A rule that looks at no content.
    Baseline,
}

/// A contender over the cases compared; vectors have one entry a case.
#[derive(Clone, Debug)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ContenderKind,
    /// Whether it is right; `None` without a decision.
    pub right: Vec<Option<bool>>,
    /// What orders the cases; `None` without a score.
    pub rank: Vec<Option<f64>>,
    /// Distance of score and label, where they share the labels' scale.
    pub error: Option<Vec<Option<f64>>>,
    /// Its figures.
    pub metrics: JudgeMetrics,
    /// Share of the cases without a score.
    pub unscored: Measured<Figure>,
    /// US dollars a case.
    pub cost_usd: Measured<Figure>,
    /// Milliseconds a case.
    pub latency_ms: Measured<Figure>,
}

/// The cases that contenders are compared on.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// All cases of the table.
    pub cases: &'a [LabelledCase],
    /// Their groups.
    pub groups: &'a Groups,
    /// Positions of those compared.
    pub rows: &'a [usize],
    /// How intervals are made.
    pub intervals: IntervalOptions,
}

impl Field<'_> {
    /// The group of each case compared.
    #[must_use]
    pub fn group(&self) -> Vec<usize> {
        self.rows.iter().map(|&i| self.groups.of_case[i]).collect()
    }

    fn resampling(&self) -> Resampling {
        let IntervalOptions { level, resamples, seed } = self.intervals;
        Resampling { resamples, seed, level }
    }

    /// A share of the cases compared, with an interval that counts each group once.
    #[must_use]
    pub fn share(&self, holds: impl Fn(usize) -> bool) -> Measured<Figure> {
        share_of(self.rows.iter().map(|&i| (self.groups.of_case[i], holds(i))), self.resampling())
    }
}

/// A share of cases given with their groups: Wilson without groups, over groups with them.
pub(super) fn share_of(
    cases: impl Iterator<Item = (usize, bool)>,
    resampling: Resampling,
) -> Measured<Figure> {
    let cases: Vec<(usize, bool)> = cases.collect();
    let held = cases.iter().filter(|(_, holds)| *holds).count() as u64;
    let mean = GroupedMean::new(cases.iter().map(|(g, holds)| (*g, f64::from(u8::from(*holds)))));
    let n = cases.len() as u64;
    if mean.groups() as u64 == n {
        return wilson(held, n, resampling.level).into();
    }
    match mean.estimate(resampling) {
        Ok(estimate) => Measured(Ok(Figure::from(estimate).clipped(0.0, 1.0))),
        // No spread between groups: each counts as one case.
        Err(_) => {
            let groups = mean.groups() as u64;
            let share = held as f64 / n.max(1) as f64;
            let k = (share * groups as f64).round() as u64;
            Measured(wilson(k, groups, resampling.level).map(|own| Figure {
                estimate: share,
                n,
                method: Method::Wilson,
                ..Figure::from(own)
            }))
        }
    }
}

/// What [`Contender::new`] is made of.
pub(super) struct Made {
    pub(super) name: String,
    pub(super) kind: ContenderKind,
    pub(super) scores: JudgeKind,
    pub(super) point: Option<OperatingPoint>,
    /// The scored cases as columns, and which they are among those of the table.
    pub(super) series: Series,
    pub(super) scored: Vec<usize>,
    pub(super) cost_usd: Measured<Figure>,
    pub(super) latency_ms: Measured<Figure>,
}

impl Contender {
    /// A contender with its figures.
    pub(super) fn new(field: Field<'_>, made: Made) -> Self {
        let Made { name, kind, scores, point, series, scored, cost_usd, latency_ms } = made;
        let mut places = vec![usize::MAX; field.cases.len()];
        for (place, &row) in field.rows.iter().enumerate() {
            places[row] = place;
        }
        let n = field.rows.len();
        let (mut right, mut rank) = (vec![None; n], vec![None; n]);
        let ranks = if series.rank.is_empty() { &series.score } else { &series.rank };
        // Errors of 0/1 scores are decisions again.
        let measured = scores == JudgeKind::Graded && series.comparable;
        let mut error = measured.then(|| vec![None; n]);
        for (at, &row) in scored.iter().enumerate() {
            let place = places[row];
            rank[place] = Some(ranks[at]);
            right[place] = series.accepted.as_ref().map(|own| own[at] == series.good[at]);
            if let Some(error) = &mut error {
                error[place] = Some((series.score[at] - series.target[at]).abs());
            }
        }
        let unscored = field.share(|row| rank[places[row]].is_none());
        let metrics = judge_metrics(&name, scores, point, &series, field.intervals);
        Self { name, kind, right, rank, error, metrics, unscored, cost_usd, latency_ms }
    }

    /// Whether its threshold keeps a promise, which costs agreement.
    pub(super) fn is_certified(&self) -> bool {
        self.metrics.operating_point.as_ref().is_some_and(|own| own.origin == CERTIFIED)
    }
}
