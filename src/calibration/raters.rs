//! The people: how they agree with each other, and whether a judge could stand in for one.
//!
//! With one rater there is nothing to compare, which is said. The alternative-annotator test
//! is that of Calderon, Reichart and Dror (2025).

use std::collections::BTreeMap;

use serde::Serialize;

use super::figure::{Figure, Measured};
use super::labelled::Target;
use super::table::{JudgeKind, Table};
use crate::stats::agreement::{CategoryTable, Level, Weighting, krippendorff_alpha};
use crate::stats::alternative_annotator::{Scoring, Settings, alternative_annotator};
use crate::stats::confusion::Confusion;
use crate::stats::correlation::{pearson, spearman};
use crate::stats::interval::wilson;
use crate::stats::{Defined, Reason, Undefined};

/// Pairs listed at most; raters by the hundred would fill a report.
const MAX_PAIRS: usize = 45;

/// One rater.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Rater {
    /// Its name.
    pub name: String,
    /// Labels.
    pub n: u64,
    /// Share of good labels.
    pub share_good: Measured<Figure>,
    /// Against the majority of the others: cases compared.
    pub compared: u64,
    /// P(says good | the others say bad).
    pub false_positive_rate: Measured,
    /// P(says good | the others say good).
    pub true_positive_rate: Measured,
    /// Share of equal decisions.
    pub agreement: Measured<Figure>,
}

/// Two raters.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct RaterPair {
    /// The first and the second.
    pub name: String,
    /// Cases that both labelled.
    pub n: u64,
    /// Share of equal labels.
    pub agreement: Measured<Figure>,
    /// Cohen's kappa over the labels as categories.
    pub cohen_kappa: Measured,
    /// Pearson's r, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pearson: Option<Measured>,
    /// Spearman's rho, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spearman: Option<Measured>,
    /// Mean absolute difference, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_absolute_difference: Option<Measured>,
}

/// A judge in the place of a person.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct AlternativeTest {
    /// The judge.
    pub name: String,
    /// Share of people that it beats; from 0.5 it passes.
    pub winning_rate: Measured,
    /// Mean share of cases on which it is at least as good as a person.
    pub advantage: Measured,
    /// People compared.
    pub people: u64,
    /// Whether it passes.
    pub passes: Measured<bool>,
}

/// What the raters say about each other and the judges.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Raters {
    /// How many.
    pub count: u64,
    /// Cases with two labels or more.
    pub cases_with_several: u64,
    /// Krippendorff's alpha, categories.
    pub krippendorff_alpha_nominal: Measured,
    /// The same for ordered levels.
    pub krippendorff_alpha_ordinal: Measured,
    /// The same for numbers.
    pub krippendorff_alpha_interval: Measured,
    /// Each rater.
    pub raters: Vec<Rater>,
    /// Each pair, of the raters with most labels.
    pub pairs: Vec<RaterPair>,
    /// The cost advantage granted to a judge.
    pub epsilon: f64,
    /// Each judge in the place of a person.
    pub alternative_annotator: Vec<AlternativeTest>,
}

/// The raters of a table; `comparable` says which judges score in the labels' unit.
#[must_use]
pub fn raters(table: &Table, comparable: &[bool], epsilon: f64, level: f64) -> Raters {
    let cases = table.cases();
    let several = cases.iter().filter(|case| case.ratings.len() > 1).count() as u64;
    let units: Vec<Vec<f64>> =
        cases.iter().map(|case| case.ratings.iter().map(|r| r.value).collect()).collect();
    let alpha = |level| Measured(krippendorff_alpha(&units, level));
    let numeric = table.labels.words.is_empty();
    let number = |level| {
        if numeric { alpha(level) } else { Measured::undefined(Reason::UnknownCategory) }
    };
    let mut by_rater: Vec<BTreeMap<usize, (f64, bool)>> =
        vec![BTreeMap::new(); table.labels.raters.len()];
    for (i, case) in cases.iter().enumerate() {
        for rating in &case.ratings {
            by_rater[rating.rater as usize].insert(i, (rating.value, rating.good));
        }
    }
    Raters {
        count: by_rater.len() as u64,
        cases_with_several: several,
        krippendorff_alpha_nominal: alpha(Level::Nominal),
        krippendorff_alpha_ordinal: number(Level::Ordinal),
        krippendorff_alpha_interval: number(Level::Interval),
        raters: by_rater
            .iter()
            .enumerate()
            .map(|(r, labels)| one(table, r, labels, level))
            .collect(),
        pairs: pairs(table, &by_rater, numeric, level),
        epsilon,
        alternative_annotator: alternative(table, comparable, &by_rater, epsilon),
    }
}

fn one(table: &Table, rater: usize, labels: &BTreeMap<usize, (f64, bool)>, level: f64) -> Rater {
    let (mut truth, mut own) = (Vec::new(), Vec::new());
    for (&i, &(_, good)) in labels {
        let others: Vec<bool> = table.cases()[i]
            .ratings
            .iter()
            .filter(|rating| rating.rater as usize != rater)
            .map(|rating| rating.good)
            .collect();
        let saying = others.iter().filter(|good| **good).count();
        // An even split of the others is no truth.
        if !others.is_empty() && 2 * saying != others.len() {
            truth.push(2 * saying > others.len());
            own.push(good);
        }
    }
    let confusion = if truth.is_empty() {
        Err(Undefined { reason: Reason::TooFewRaters })
    } else {
        Confusion::from_decisions(&truth, &own)
    };
    let good = labels.values().filter(|(_, good)| *good).count() as u64;
    Rater {
        name: table.labels.raters[rater].clone(),
        n: labels.len() as u64,
        share_good: wilson(good, labels.len() as u64, level).into(),
        compared: truth.len() as u64,
        false_positive_rate: Measured(confusion.and_then(|c| c.false_positive_rate())),
        true_positive_rate: Measured(confusion.and_then(|c| c.true_positive_rate())),
        agreement: confusion
            .and_then(|c| wilson(c.true_positive + c.true_negative, c.n(), level))
            .into(),
    }
}

fn pairs(
    table: &Table,
    by_rater: &[BTreeMap<usize, (f64, bool)>],
    numeric: bool,
    level: f64,
) -> Vec<RaterPair> {
    let mut order: Vec<usize> = (0..by_rater.len()).collect();
    order.sort_by_key(|&r| (std::cmp::Reverse(by_rater[r].len()), r));
    let mut found = Vec::new();
    for (place, &a) in order.iter().enumerate() {
        for &b in &order[place + 1..] {
            if found.len() == MAX_PAIRS {
                return found;
            }
            let (x, y): (Vec<f64>, Vec<f64>) = by_rater[a]
                .iter()
                .filter_map(|(i, own)| Some((own.0, by_rater[b].get(i)?.0)))
                .unzip();
            if x.is_empty() {
                continue;
            }
            let equal = x.iter().zip(&y).filter(|(x, y)| x == y).count() as u64;
            let names = &table.labels.raters;
            let for_numbers =
                |of: fn(&[f64], &[f64]) -> Defined| numeric.then(|| Measured(of(&x, &y)));
            found.push(RaterPair {
                name: format!("{} | {}", names[a], names[b]),
                n: x.len() as u64,
                agreement: wilson(equal, x.len() as u64, level).into(),
                cohen_kappa: categories_kappa(&x, &y, Weighting::Unweighted),
                pearson: for_numbers(pearson),
                spearman: for_numbers(spearman),
                mean_absolute_difference: for_numbers(|x, y| {
                    let differences: Vec<f64> =
                        x.iter().zip(y).map(|(x, y)| (x - y).abs()).collect();
                    crate::stats::summary::mean(&differences)
                }),
            });
        }
    }
    found
}

/// Kappa of two series of categories over the values that occur.
#[must_use]
pub fn categories_kappa(x: &[f64], y: &[f64], weighting: Weighting) -> Measured {
    let mut domain: Vec<f64> = x.iter().chain(y).copied().collect();
    domain.sort_unstable_by(f64::total_cmp);
    domain.dedup();
    if domain.len() > 100 {
        return Measured::undefined(Reason::OutOfRange);
    }
    Measured(CategoryTable::from_ratings(x, y, &domain).and_then(|table| table.kappa(weighting)))
}

fn alternative(
    table: &Table,
    comparable: &[bool],
    by_rater: &[BTreeMap<usize, (f64, bool)>],
    epsilon: f64,
) -> Vec<AlternativeTest> {
    let graded = table.labels.target == Target::LabelScale;
    let settings = Settings {
        epsilon,
        scoring: if graded { Scoring::NegRmse } else { Scoring::Accuracy },
        ..Settings::default()
    };
    // Named values are compared as good or not, which every judge can say.
    let value = |own: &(f64, bool)| if graded { own.0 } else { f64::from(u8::from(own.1)) };
    let people: Vec<BTreeMap<usize, f64>> = by_rater
        .iter()
        .map(|labels| labels.iter().map(|(i, own)| (*i, value(own))).collect())
        .collect();
    table
        .judges
        .iter()
        .zip(comparable)
        .map(|(judge, comparable)| {
            let same_unit = *comparable && (!graded || judge.kind == JudgeKind::Graded);
            let scores: BTreeMap<usize, f64> = judge
                .scores
                .iter()
                .enumerate()
                .filter_map(|(i, score)| Some((i, (*score)?)))
                .collect();
            let test = if people.len() < 2 {
                Err(Undefined { reason: Reason::TooFewRaters })
            } else if !same_unit {
                Err(Undefined { reason: Reason::OutOfRange })
            } else {
                alternative_annotator(&people, &scores, settings)
            };
            let of =
                |get: fn(&crate::stats::alternative_annotator::AlternativeAnnotator) -> f64| {
                    Measured(test.as_ref().map(get).map_err(|undefined| *undefined))
                };
            AlternativeTest {
                name: judge.name.clone(),
                winning_rate: of(|test| test.winning_rate),
                advantage: of(|test| test.advantage),
                people: test.as_ref().map_or(0, |test| test.people.len() as u64),
                passes: Measured(
                    test.as_ref().map(|t| t.winning_rate >= 0.5).map_err(|undefined| *undefined),
                ),
            }
        })
        .collect()
}
