//! How far the judges of a panel err together, and which of them the panel needs.
//!
//! All figures stand on the cases that every judge decided, so that no missing vote looks
//! like agreement. Subsets vote by plain majority, an even split rejecting, as the lower
//! median of their verdicts does.

use std::collections::HashMap;

use serde::Serialize;

use super::contender::share_of;
use super::figure::{Figure, Measured};
use super::table::{Table, price_of};
use crate::stats::bootstrap::Resampling;
use crate::stats::confusion::Confusion;
use crate::stats::correlation::pearson;
use crate::stats::dependence::{effective_judges, phi_matrix, shared_error};
use crate::stats::interval::wilson;
use crate::stats::{Defined, Reason, Undefined};

/// Judges compared in subsets, and the largest subset.
const MAX_SUBSET_JUDGES: usize = 14;
const MAX_SUBSET: usize = 5;
/// Subsets listed: the best of each size fill it.
const LISTED: usize = 60;

/// One entry of a matrix, or why it has none.
type Matrix = Vec<Vec<Measured>>;

/// Share of cases on which every judge is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct AllWrong {
    /// The share.
    pub estimate: f64,
    /// Lower end of its exact interval.
    pub lower: f64,
    /// Upper end: no vote can be better than one minus the truth of this.
    pub upper: f64,
    /// Cases.
    pub n: u64,
    /// The share if the judges were independent.
    pub if_independent: f64,
}

/// A panel of some of the judges.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Subset {
    /// Its judges.
    pub judges: Vec<String>,
    /// Accuracy of its majority.
    pub accuracy: Figure,
    /// Good cases among these: what the true-positive rate is of.
    #[serde(default)]
    pub good: u64,
    /// Bad ones: what the false-positive rate is of.
    #[serde(default)]
    pub bad: u64,
    /// Mean of its two rates.
    pub balanced_accuracy: Measured,
    /// P(accepted | bad).
    pub false_positive_rate: Measured,
    /// P(accepted | good).
    pub true_positive_rate: Measured,
    /// Price of one case, where known.
    pub price_usd: Measured,
}

/// What the majority loses or gains without one judge.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct LeaveOneOut {
    /// The judge left out.
    pub name: String,
    /// Accuracy without it minus accuracy with it: below 0 the judge helps.
    pub accuracy_change: f64,
    /// The same of the false-positive rate.
    pub false_positive_rate_change: Measured,
    /// The same of the true-positive rate.
    pub true_positive_rate_change: Measured,
}

/// Shared error of the judges.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Dependence {
    /// Cases that every judge decided.
    pub complete_cases: u64,
    /// phi of the error indicators, in the order of `judges`.
    pub error_correlation: Matrix,
    /// Mean of its entries off the diagonal.
    pub mean_error_correlation: Measured,
    /// Kish's effective number of judges at that mean.
    pub effective_judges: Measured,
    /// Pearson correlation of score errors, for judges in the labels' unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_error_correlation: Option<ScoreErrors>,
    /// Accuracy of an independent majority minus the one observed.
    pub condorcet_gap: Measured,
    /// Accuracy of a majority of independent judges.
    pub independent_majority: Measured,
    /// Accuracy of the majority.
    pub observed_majority: Measured,
    /// Cases on which no judge is right.
    pub all_wrong: Measured<AllWrong>,
    /// The most accurate judge on these cases.
    pub best_single: Option<BestSingle>,
    /// The majority without each judge.
    pub leave_one_out: Vec<LeaveOneOut>,
    /// Panels of up to five judges, the most accurate first.
    pub subsets: Vec<Subset>,
    /// How many were compared.
    pub subsets_compared: u64,
    /// Judges left out of the comparison, because more would be too many subsets.
    pub subsets_without: Vec<String>,
    /// The cheapest subset whose accuracy lies within the interval of the best.
    pub cheapest_subset: Option<Subset>,
}

/// The most accurate judge.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct BestSingle {
    /// Its name.
    pub name: String,
    /// Its accuracy on the complete cases.
    pub accuracy: Figure,
}

/// Correlation of score errors, raw and without the raters' noise.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct ScoreErrors {
    /// Cases with every score.
    pub n: u64,
    /// Mean over pairs.
    pub mean: Measured,
    /// Mean variance of the mean label over raters; undefined with one rater.
    pub rater_noise_variance: Measured,
    /// Mean over pairs with that variance taken out, since it is in every judge's error.
    pub mean_without_rater_noise: Measured,
    /// Effective judges at the raw mean.
    pub effective_judges: Measured,
}

/// A case's decisions as bits, with its truth, counted.
struct Patterns {
    counts: HashMap<(u64, bool), u64>,
}

impl Patterns {
    fn confusion(&self, mask: u64) -> Confusion {
        let size = mask.count_ones();
        let mut table = Confusion::default();
        for (&(bits, good), &count) in &self.counts {
            let accepted = 2 * (bits & mask).count_ones() > size;
            match (good, accepted) {
                (true, true) => table.true_positive += count,
                (true, false) => table.false_negative += count,
                (false, true) => table.false_positive += count,
                (false, false) => table.true_negative += count,
            }
        }
        table
    }
}

/// What the decisions of the judges share. `decisions[j]` is judge j's decision on each case
/// of the table, `None` where it has none; `rows` are the cases looked at, `choice` those
/// that subsets are compared on.
#[must_use]
pub fn dependence(
    table: &Table,
    decisions: &[Vec<Option<bool>>],
    comparable: &[bool],
    rows: &[usize],
    choice: &[usize],
    groups: &[usize],
    resampling: Resampling,
) -> Dependence {
    let level = resampling.level;
    let complete = complete_rows(decisions, rows);
    let cases = table.cases();
    let errors: Vec<Vec<bool>> = decisions
        .iter()
        .map(|judge| complete.iter().map(|&i| judge[i] != Some(cases[i].good)).collect())
        .collect();
    let matrix = phi_matrix(&errors);
    let mean = mean_off_diagonal(&matrix);
    let shared = if errors.is_empty() {
        Err(Undefined { reason: Reason::NoData })
    } else {
        shared_error(&errors, level)
    };
    let accuracy = |judge: &Vec<bool>| judge.iter().filter(|wrong| !**wrong).count() as u64;
    let best = errors.iter().enumerate().max_by_key(|(j, e)| (accuracy(e), std::cmp::Reverse(*j)));
    let best_single = best.and_then(|(j, errors)| {
        let right = complete.iter().zip(errors).map(|(&i, wrong)| (groups[i], !wrong));
        let accuracy = share_of(right, resampling).0.ok()?;
        Some(BestSingle { name: table.judges[j].name.clone(), accuracy })
    });
    let all_wrong = (0..complete.len())
        .map(|row| (groups[complete[row]], errors.iter().all(|judge| judge[row])));
    let all_wrong = share_of(all_wrong, resampling).0;
    let subsets = Subsets::compare(table, decisions, choice, groups, resampling);
    Dependence {
        complete_cases: complete.len() as u64,
        mean_error_correlation: Measured(mean),
        effective_judges: Measured(mean.and_then(|rho| effective_judges(errors.len() as u64, rho))),
        error_correlation: matrix
            .into_iter()
            .map(|row| row.into_iter().map(Measured).collect())
            .collect(),
        score_error_correlation: score_errors(table, comparable, rows),
        condorcet_gap: Measured(shared.map(|s| s.condorcet_gap)),
        independent_majority: Measured(shared.map(|s| s.independent_majority)),
        observed_majority: Measured(shared.map(|s| s.observed_majority)),
        all_wrong: Measured(shared.and_then(|s| {
            let (own, by_case) = (all_wrong?, s.all_wrong.interval);
            Ok(AllWrong {
                estimate: own.estimate,
                // So rare that groups may hold one or two: never less sure than case by case.
                lower: own.lower.min(by_case.lower),
                upper: own.upper.max(by_case.upper),
                n: own.n,
                if_independent: s.all_wrong_independent,
            })
        })),
        best_single,
        leave_one_out: leave_one_out(table, decisions, &complete),
        cheapest_subset: subsets.cheapest,
        subsets_compared: subsets.all.len() as u64,
        subsets_without: subsets.without,
        subsets: subsets.all.into_iter().take(LISTED).collect(),
    }
}

fn complete_rows(decisions: &[Vec<Option<bool>>], rows: &[usize]) -> Vec<usize> {
    rows.iter().copied().filter(|&i| decisions.iter().all(|judge| judge[i].is_some())).collect()
}

/// Mean over the pairs that are defined; undefined where none is.
fn mean_off_diagonal(matrix: &[Vec<Defined>]) -> Defined {
    let (mut sum, mut n) = (0.0, 0);
    let mut reason = Reason::TooFewRaters;
    for (i, row) in matrix.iter().enumerate() {
        for value in &row[i + 1..] {
            match value {
                Ok(value) => {
                    sum += value;
                    n += 1;
                }
                Err(undefined) => reason = undefined.reason,
            }
        }
    }
    if n == 0 { Err(Undefined { reason }) } else { Ok(sum / f64::from(n)) }
}

fn patterns(decisions: &[&Vec<Option<bool>>], table: &Table, rows: &[usize]) -> Patterns {
    let mut counts: HashMap<(u64, bool), u64> = HashMap::new();
    for &i in rows {
        let bits = decisions
            .iter()
            .enumerate()
            .fold(0, |bits, (j, judge)| bits | (u64::from(judge[i] == Some(true)) << j));
        *counts.entry((bits, table.cases()[i].good)).or_default() += 1;
    }
    Patterns { counts }
}

fn leave_one_out(
    table: &Table,
    decisions: &[Vec<Option<bool>>],
    complete: &[usize],
) -> Vec<LeaveOneOut> {
    let m = decisions.len();
    // Patterns of more than 64 judges would not fit their bits.
    if !(2..=63).contains(&m) || complete.is_empty() {
        return Vec::new();
    }
    let all: Vec<&Vec<Option<bool>>> = decisions.iter().collect();
    let patterns = patterns(&all, table, complete);
    let full = (1u64 << m) - 1;
    let with = patterns.confusion(full);
    let change = |without: &Confusion, of: fn(&Confusion) -> Defined| {
        Measured(of(without).and_then(|own| Ok(own - of(&with)?)))
    };
    (0..m)
        .filter_map(|j| {
            let without = patterns.confusion(full & !(1 << j));
            Some(LeaveOneOut {
                name: table.judges[j].name.clone(),
                accuracy_change: without.accuracy().ok()? - with.accuracy().ok()?,
                false_positive_rate_change: change(&without, Confusion::false_positive_rate),
                true_positive_rate_change: change(&without, Confusion::true_positive_rate),
            })
        })
        .collect()
}

struct Subsets {
    all: Vec<Subset>,
    without: Vec<String>,
    cheapest: Option<Subset>,
}

impl Subsets {
    fn compare(
        table: &Table,
        decisions: &[Vec<Option<bool>>],
        rows: &[usize],
        groups: &[usize],
        resampling: Resampling,
    ) -> Self {
        let (chosen, without) = candidates(table, decisions, rows);
        let kept: Vec<&Vec<Option<bool>>> = chosen.iter().map(|&j| &decisions[j]).collect();
        let complete: Vec<usize> =
            rows.iter().copied().filter(|&i| kept.iter().all(|judge| judge[i].is_some())).collect();
        let patterns = patterns(&kept, table, &complete);
        let mut all: Vec<Subset> = (1u64..1 << kept.len())
            .filter(|mask| mask.count_ones() as usize <= MAX_SUBSET)
            .filter_map(|mask| {
                let confusion = patterns.confusion(mask);
                let right = confusion.true_positive + confusion.true_negative;
                let members: Vec<_> = (0..chosen.len())
                    .filter(|j| mask & (1 << j) != 0)
                    .map(|j| &table.judges[chosen[j]])
                    .collect();
                Some(Subset {
                    accuracy: wilson(right, confusion.n(), resampling.level).ok()?.into(),
                    good: confusion.true_positive + confusion.false_negative,
                    bad: confusion.false_positive + confusion.true_negative,
                    balanced_accuracy: confusion.balanced_accuracy().into(),
                    false_positive_rate: confusion.false_positive_rate().into(),
                    true_positive_rate: confusion.true_positive_rate().into(),
                    price_usd: price_of(&members),
                    judges: members.iter().map(|judge| judge.name.clone()).collect(),
                })
            })
            .collect();
        all.sort_by(|a, b| {
            b.accuracy
                .estimate
                .total_cmp(&a.accuracy.estimate)
                .then_with(|| a.judges.len().cmp(&b.judges.len()))
                .then_with(|| a.judges.cmp(&b.judges))
        });
        // Of all subsets only the shown ones and those in question are counted by group.
        let right = |subset: &Subset, i: usize| {
            let votes = (0..chosen.len())
                .filter(|j| subset.judges.contains(&table.judges[chosen[*j]].name))
                .filter(|j| kept[*j][i] == Some(true));
            (2 * votes.count() > subset.judges.len()) == table.cases()[i].good
        };
        let grouped = |subset: &mut Subset| {
            let cases = complete.iter().map(|&i| (groups[i], right(subset, i)));
            if let Ok(accuracy) = share_of(cases, resampling).0 {
                subset.accuracy = accuracy;
            }
        };
        all.iter_mut().take(LISTED).for_each(grouped);
        let mut own = Self { all, without, cheapest: None };
        if let Some(place) = own.cheapest(table) {
            grouped(&mut own.all[place]);
            own.cheapest = Some(own.all[place].clone());
        }
        own
    }

    /// The least price, or where prices are unknown the fewest judges, among the subsets
    /// whose accuracy reaches the lower end of the best one's interval.
    fn cheapest(&self, table: &Table) -> Option<usize> {
        let floor = self.all.first()?.accuracy.lower;
        let priced = table.judges.iter().all(|judge| judge.price_usd.is_some());
        let price = |subset: &Subset| match subset.price_usd.value() {
            Some(price) if priced => *price,
            _ => subset.judges.len() as f64,
        };
        (0..self.all.len())
            .filter(|&place| self.all[place].accuracy.estimate >= floor)
            .min_by(|&a, &b| price(&self.all[a]).total_cmp(&price(&self.all[b])))
    }
}

/// The judges whose subsets are compared: all of them, or the most accurate ones.
fn candidates(
    table: &Table,
    decisions: &[Vec<Option<bool>>],
    rows: &[usize],
) -> (Vec<usize>, Vec<String>) {
    let accuracy = |j: usize| {
        let decided: Vec<usize> =
            rows.iter().copied().filter(|&i| decisions[j][i].is_some()).collect();
        let right =
            decided.iter().filter(|&&i| decisions[j][i] == Some(table.cases()[i].good)).count();
        right as f64 / decided.len().max(1) as f64
    };
    let mut order: Vec<(usize, f64)> = (0..decisions.len()).map(|j| (j, accuracy(j))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut chosen: Vec<usize> = order.iter().take(MAX_SUBSET_JUDGES).map(|(j, _)| *j).collect();
    let without =
        order.iter().skip(MAX_SUBSET_JUDGES).map(|(j, _)| table.judges[*j].name.clone()).collect();
    chosen.sort_unstable();
    (chosen, without)
}

fn score_errors(table: &Table, comparable: &[bool], rows: &[usize]) -> Option<ScoreErrors> {
    if table.all_binary() || !comparable.iter().all(|c| *c) || comparable.len() < 2 {
        return None;
    }
    let complete: Vec<usize> = rows
        .iter()
        .copied()
        .filter(|&i| table.judges.iter().all(|judge| judge.scores[i].is_some()))
        .collect();
    let cases = table.cases();
    let errors: Vec<Vec<f64>> = table
        .judges
        .iter()
        .map(|judge| {
            complete
                .iter()
                .map(|&i| judge.scores[i].unwrap_or_default() - cases[i].target)
                .collect()
        })
        .collect();
    let noise = rater_noise(table, &complete);
    let (mut raw, mut corrected) = (Vec::new(), Vec::new());
    for i in 0..errors.len() {
        for j in i + 1..errors.len() {
            raw.push(pearson(&errors[i], &errors[j]));
            corrected.push(noise.and_then(|noise| {
                let covariance = covariance(&errors[i], &errors[j]) - noise;
                let own = (covariance_of(&errors[i]) - noise) * (covariance_of(&errors[j]) - noise);
                if own > 0.0 {
                    Ok(covariance / own.sqrt())
                } else {
                    Err(Undefined { reason: Reason::ZeroVariance })
                }
            }));
        }
    }
    let mean = |values: Vec<Defined>| -> Defined {
        let values: Vec<f64> = values.into_iter().collect::<Result<_, _>>()?;
        crate::stats::summary::mean(&values)
    };
    let raw = mean(raw);
    Some(ScoreErrors {
        n: complete.len() as u64,
        mean: Measured(raw),
        rater_noise_variance: Measured(noise),
        mean_without_rater_noise: Measured(mean(corrected)),
        effective_judges: Measured(raw.and_then(|rho| effective_judges(errors.len() as u64, rho))),
    })
}

/// Mean over cases of `s^2 / raters`, the variance of the mean label.
fn rater_noise(table: &Table, rows: &[usize]) -> Defined {
    let variances: Vec<f64> = rows
        .iter()
        .filter_map(|&i| {
            let values: Vec<f64> =
                table.cases()[i].ratings.iter().map(|rating| rating.value).collect();
            let variance = crate::stats::summary::variance(&values).ok()?;
            Some(variance / values.len() as f64)
        })
        .collect();
    if variances.len() < rows.len() || variances.is_empty() {
        return Err(Undefined { reason: Reason::TooFewRaters });
    }
    crate::stats::summary::mean(&variances)
}

fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len() as f64;
    let (mx, my) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / n
}

fn covariance_of(x: &[f64]) -> f64 {
    covariance(x, x)
}
