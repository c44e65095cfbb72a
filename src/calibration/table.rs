//! The table: cases x judges x labels of one criterion, joined by the case's id.
//!
//! A judgement without a label and a judge without a score are counted and never guessed.
//! Everything after this stands on columns of equal length, one entry a labelled case.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::figure::{Figure, Measured};
use super::labelled::{LabelledCase, Labels};
use super::positive::Positive;
use crate::dataset::Order;
use crate::score::Scale;
use crate::stats::distribution::student_critical;
use crate::stats::interval::wilson;
use crate::stats::{Estimate, Interval, Method, Reason};
use crate::verdict::{Fingerprint, StatusCounts};

/// What a judge's scores are.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JudgeKind {
    /// Accept or not: scores are 1 and 0 after orientation.
    Binary,
    /// A number, more of which is better.
    Graded,
}

/// Which presentations of a pair are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orders {
    /// All that there are; a judge that was shown both must agree with itself, or half counts.
    #[default]
    All,
    /// One only.
    Only(Order),
}

/// How the table is made.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// The judgements' criterion.
    pub criterion: String,
    /// Presentations of a pair.
    pub orders: Orders,
    /// Scales of judges, to be brought onto the labels' scale; the empty name is every other
    /// judge.
    pub judge_scales: BTreeMap<String, Scale>,
    /// The judges to use; all of them where empty.
    pub judges: Vec<String>,
    /// Whether scores without a declared scale are in [0,1] by their making: those of a run.
    pub unit_scores: bool,
    /// Whether such scores, where they are graded and of no declared scale, are brought onto
    /// the labels' scale: a score is the place on the judge's scale, and means the label in
    /// that place.
    pub scale_units: bool,
    /// Whether judged cases without a label stay in the table: [`LabelledCase::is_labelled`]
    /// tells them apart, and nothing else about them is a truth. For the rate of unlabelled
    /// data only.
    pub keep_unlabelled: bool,
}

/// How a judge sat on the panel of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct SeatFacts {
    /// Whether its vote was 1 minus its score.
    pub invert: bool,
    /// Samples that made one vote.
    pub samples: u32,
}

/// Two votes of a judge on one case, from different samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retest {
    /// The case's place in the table.
    pub case: usize,
    /// The votes.
    pub votes: [f64; 2],
}

/// One judge over the cases of the table.
#[derive(Clone, Debug)]
pub struct JudgeColumn {
    /// Its name.
    pub name: String,
    /// What it was, where a run says so.
    pub fingerprint: Option<Fingerprint>,
    /// The models that its server said it used, where the data say so.
    pub models: BTreeSet<String>,
    /// How it sat on its panel, where a run says so.
    pub seat: Option<SeatFacts>,
    /// What its scores are.
    pub kind: JudgeKind,
    /// What a verdict's score of 0 and of 1 are among these scores, a straight line between
    /// them; `None` where the data do not say.
    pub unit: Option<[f64; 2]>,
    /// One score a case; `None` where the measurement failed or there is none.
    pub scores: Vec<Option<f64>>,
    /// The scores as categories, for judges whose values are the labels' categories.
    pub categories: Option<Vec<Option<f64>>>,
    /// What became of its measurements of labelled cases.
    pub statuses: StatusCounts,
    /// The same for truly good cases.
    pub statuses_good: StatusCounts,
    /// The same for truly bad cases.
    pub statuses_bad: StatusCounts,
    /// Labelled cases without a row of this judge.
    pub missing: u64,
    /// Repeated measurements: the ok samples of each case with two or more.
    pub repeats: Vec<Vec<f64>>,
    /// Of the cases of the whole table with two or more ok samples: two votes, each of half of
    /// the samples, as `scores` has them. Not of pairs.
    pub retests: Vec<Retest>,
    /// Pairs shown in both orders, and on how many of them the judge agreed with itself.
    pub orders: (u64, u64),
    /// Mean price of one of its judgements, where known.
    pub price_usd: Option<f64>,
    /// Mean time of one of its judgements in milliseconds, where known.
    pub latency_ms: Option<f64>,
    /// Judgements of a case: more than one with repeats and with pairs in both orders.
    pub judgements_a_case: f64,
    /// Prices of its judgements.
    pub prices: Moments,
    /// Times of its judgements in milliseconds.
    pub latencies: Moments,
}

/// Count, mean and spread of numbers that are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a number (Welford 1962).
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let gap = value - self.mean;
        self.mean += gap / self.n as f64;
        self.squares += gap * (value - self.mean);
    }

    /// The mean; `None` without numbers.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// The mean with its Student interval. Numbers that are all the same are a fact and have
    /// an interval without width.
    ///
    /// # Errors
    /// `no_data`; `too_few_values` for a single number.
    pub fn estimate(&self, level: f64) -> crate::stats::Defined<Estimate> {
        let n = self.n as f64;
        match self.n {
            0 => return Err(Reason::NoData.into()),
            1 => return Err(Reason::TooFewValues.into()),
            _ => {}
        }
        let margin = student_critical(level, n - 1.0) * (self.squares / (n - 1.0) / n).sqrt();
        let interval = Interval::around(self.mean, margin, level).clipped(0.0, f64::INFINITY);
        Ok(Estimate { point: self.mean, interval, n: self.n as usize, method: Method::StudentT })
    }
}

impl JudgeColumn {
    /// What it costs to have it judge one case in US dollars, all its judgements together.
    #[must_use]
    pub fn cost_of_a_case(&self, level: f64) -> Measured<Figure> {
        let times = self.judgements_a_case;
        Measured(self.prices.estimate(level).map(|own| {
            let own = Figure::from(own);
            Figure {
                estimate: times * own.estimate,
                lower: times * own.lower,
                upper: times * own.upper,
                ..own
            }
        }))
    }

    /// Share of pairs on which the judge agrees with itself in both orders.
    #[must_use]
    pub fn position_consistency(&self) -> Option<Measured<Figure>> {
        let (pairs, consistent) = self.orders;
        (pairs > 0).then(|| wilson(consistent, pairs, 0.95).into())
    }
}

/// What was joined, and what was left over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Counts {
    /// Cases with a label and a judgement.
    pub cases: u64,
    /// Truly good ones.
    pub good: u64,
    /// Truly bad ones.
    pub bad: u64,
    /// Judgements of the criterion.
    pub judgements: u64,
    /// Judgements of cases without a label.
    pub judgements_without_label: u64,
    /// Cases judged and not labelled.
    pub cases_without_label: u64,
    /// Cases labelled and not judged.
    pub cases_without_judgement: u64,
    /// Judgements without a score.
    pub judgements_without_score: u64,
    /// Judgements of other criteria, not used.
    pub other_criteria: u64,
    /// Judgements of judges that were not asked for, not used.
    pub other_judges: u64,
    /// Cases left out because their raters are evenly split.
    pub tied_labels: u64,
}

impl Counts {
    /// What was left out, in words; `None` where everything was used.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let left: Vec<String> = [
            (self.judgements_without_label, "judgements without a label"),
            (self.judgements_without_score, "judgements without a score"),
            (self.cases_without_judgement, "labelled cases without a judgement"),
            (self.tied_labels, "cases whose raters are evenly split"),
        ]
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
        (!left.is_empty()).then(|| left.join(", "))
    }
}

/// Cases x judges x labels.
#[derive(Clone, Debug)]
pub struct Table {
    /// The judgements' criterion.
    pub criterion: String,
    /// The labels.
    pub labels: Labels,
    /// Which labels are good.
    pub positive: Positive,
    /// The judges, in the order of the file.
    pub judges: Vec<JudgeColumn>,
    /// What was joined.
    pub counts: Counts,
}

impl Table {
    /// The labelled and judged cases.
    #[must_use]
    pub fn cases(&self) -> &[LabelledCase] {
        &self.labels.cases
    }

    /// The table of some of its cases, in the order given; a case may be named repeatedly and
    /// then stands there as often, for resampling. Statuses, repeats and what was left over
    /// stay those of the whole.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut table = self.clone();
        table.labels.cases = rows.iter().map(|&i| self.labels.cases[i].clone()).collect();
        for judge in &mut table.judges {
            judge.scores = rows.iter().map(|&i| judge.scores[i]).collect();
            judge.categories =
                judge.categories.as_ref().map(|own| rows.iter().map(|&i| own[i]).collect());
        }
        let good = table.labels.cases.iter().filter(|case| case.good).count() as u64;
        table.counts.cases = rows.len() as u64;
        table.counts.good = good;
        table.counts.bad = rows.len() as u64 - good;
        table
    }

    /// The table of some of its judges, by position.
    #[must_use]
    pub fn with_judges(&self, judges: &[usize]) -> Self {
        Self {
            criterion: self.criterion.clone(),
            labels: self.labels.clone(),
            positive: self.positive.clone(),
            judges: judges.iter().map(|&j| self.judges[j].clone()).collect(),
            counts: self.counts.clone(),
        }
    }

    /// Whether any judge has a score on any case.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.judges.iter().any(|judge| judge.scores.iter().any(Option::is_some))
    }

    /// Whether every judge only accepts or not.
    #[must_use]
    pub fn all_binary(&self) -> bool {
        self.judges.iter().all(|judge| judge.kind == JudgeKind::Binary)
    }
}

/// A number in a row's other columns: CSV holds it as text.
pub(super) fn recorded_number(value: &serde_json::Value) -> Option<f64> {
    let number = match value {
        serde_json::Value::Number(number) => number.as_f64(),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

/// The mean price of a subset of judges; undefined while one has none.
#[must_use]
pub fn price_of(judges: &[&JudgeColumn]) -> Measured {
    let prices: Option<Vec<f64>> = judges.iter().map(|judge| judge.price_usd).collect();
    prices.map_or_else(|| Measured::undefined(Reason::NoData), |p| Measured(Ok(p.iter().sum())))
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(super) mod tests;
