//! The calibrated panel: mapped votes, one decision key a case.
//!
//! Each judge is offset, the lower median of the votes is the score, and the mean of the
//! mapped votes breaks its ties, so that resolution survives. A stack over all judges is
//! opt-in and, like every map, fitted on cases that certify nothing.

use serde::{Deserialize, Serialize};

use super::labelled::{LabelledCase, Target};
use super::map::{FittedMap, MINIMUM_LABELS, Map};
use super::table::{JudgeKind, Table};
use crate::stats::aggregate::{decision_key, lower_median};
use crate::stats::calibration_map::{RidgeStack, SlopePrior, shrunk_affine};
use crate::stats::logistic::firth;
use crate::stats::{Defined, Reason, Undefined};

/// Labels below which no stack is fitted.
pub const MINIMUM_STACK: usize = 100;
/// Penalty of the ridge stack on standardised scores (statistics of LLM panels, section 5.4).
const RIDGE_PENALTY: f64 = 30.0;

/// How the votes become a key.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PanelAggregate {
    /// Lower median of the offset votes, then the mean of the mapped ones.
    #[default]
    Median,
    /// A ridge regression of the label on all votes; from 100 labels.
    Stack,
    /// A bias-reduced logistic regression of good on all votes; from 100 labels.
    Logistic,
}

impl PanelAggregate {
    /// The name in options and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::Stack => "stack",
            Self::Logistic => "logistic",
        }
    }
}

/// A decision key: compared by the first number, then by the second.
pub type Key = (f64, f64);

/// One judge's seat on the calibrated panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seat {
    /// The judge.
    pub judge: String,
    /// What its scores are.
    pub kind: JudgeKind,
    /// From score to the vote whose median is taken.
    pub vote: Map,
    /// From score to the vote whose mean breaks ties.
    pub map: Map,
    /// The lowest and the highest score it can give, as far as is known.
    pub range: [f64; 2],
    /// What a verdict's score of 0 and of 1 are among the calibrated scores, a straight line
    /// between them; `None` where the data do not say, and then no panel can use the profile.
    pub unit: Option<[f64; 2]>,
}

impl Seat {
    /// A verdict's score in the unit that was calibrated.
    #[must_use]
    pub fn calibrated_unit(&self, score: f64) -> Option<f64> {
        let [low, high] = self.unit?;
        // As `Scale::value` writes it: a certified threshold is compared to the last digit.
        Some(low + score * (high - low))
    }

    fn highest(&self, map: &Map) -> f64 {
        map.apply(self.range[0]).max(map.apply(self.range[1]))
    }
}

/// A linear combination of the votes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stack {
    /// Intercept.
    pub intercept: f64,
    /// One weight a judge.
    pub weights: Vec<f64>,
    /// Mean score of each judge, which stands in for a vote that is missing at random.
    pub centre: Vec<f64>,
    /// Labels it was fitted on.
    pub n: u64,
}

/// What is done with a missing vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Left out, as in a running panel; below the quorum there is no key.
    LeftOut,
    /// Counted at its worst for a bad case: the highest vote that the judge can give, or none.
    Highest,
}

/// The calibrated panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PanelModel {
    /// How votes become a key.
    pub aggregate: PanelAggregate,
    /// Least votes for a decision.
    pub quorum: usize,
    /// The judges, in the order of the table.
    pub seats: Vec<Seat>,
    /// The stack, where asked for.
    pub stack: Option<Stack>,
    /// From the key's first number to the labels' scale.
    pub map: Map,
}

impl PanelModel {
    /// Fits the panel on the cases of `rows`, from the judges' maps in the table's order.
    ///
    /// # Errors
    /// `too_few_values` for a stack below 100 labels, and what its regression says.
    pub fn fit(
        table: &Table,
        maps: &[FittedMap],
        comparable: &[bool],
        rows: &[usize],
        aggregate: PanelAggregate,
        quorum: Option<usize>,
    ) -> Defined<Self> {
        let seats: Vec<Seat> =
            (0..table.judges.len()).map(|j| seat(table, j, &maps[j], comparable[j])).collect();
        let quorum = quorum.unwrap_or(seats.len() / 2 + 1);
        let mut model = Self { aggregate, quorum, seats, stack: None, map: Map::None };
        if aggregate != PanelAggregate::Median {
            model.stack = Some(fit_stack(table, rows, aggregate)?);
        }
        model.map = model.fit_map(table, rows);
        Ok(model)
    }

    /// The shrunk line from the key to the label; none under 20 labels.
    fn fit_map(&self, table: &Table, rows: &[usize]) -> Map {
        let key = |i: usize| self.key(&votes(table, i), Missing::LeftOut);
        Self::map_of(rows.iter().map(|&i| Some((key(i)?.0, target(table, &table.cases()[i])))))
    }

    /// The shrunk line through pairs of key and label; none under 20 of them.
    pub(super) fn map_of(pairs: impl Iterator<Item = Option<(f64, f64)>>) -> Map {
        let pairs: Vec<(f64, f64)> = pairs.flatten().collect();
        if pairs.len() < MINIMUM_LABELS {
            return Map::None;
        }
        let (score, label): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        match shrunk_affine(&score, &label, SlopePrior::default()) {
            Ok(fit) => Map::Affine { slope: fit.map.slope, intercept: fit.map.intercept },
            Err(_) => Map::None,
        }
    }

    /// The key of one case's votes, in the order of the seats; `None` below the quorum.
    #[must_use]
    pub fn key(&self, votes: &[Option<f64>], missing: Missing) -> Option<Key> {
        let present = votes.iter().flatten().count();
        if missing == Missing::LeftOut && present < self.quorum.max(1) {
            return None;
        }
        self.key_of_present(votes, missing)
    }

    /// As [`Self::key`], whatever the quorum; `None` without votes.
    #[must_use]
    pub fn key_of_present(&self, votes: &[Option<f64>], missing: Missing) -> Option<Key> {
        let mean = |votes: &[f64]| decision_key(votes).ok().map(|key| key.mean);
        let second = self.combine(votes, missing, |seat| &seat.map, mean)?;
        let first = match &self.stack {
            None => {
                let median = |votes: &[f64]| lower_median(votes).ok();
                self.combine(votes, missing, |seat| &seat.vote, median)?
            }
            Some(stack) => self.stacked(stack, votes, missing),
        };
        Some((first, second))
    }

    /// The combination of the mapped votes that are there; with [`Missing::Highest`] the
    /// largest one over every set of missing judges that may answer after all, each with its
    /// highest vote. A judge whose ceiling is low can lower a median, so the set of all of
    /// them is not always the worst.
    fn combine(
        &self,
        votes: &[Option<f64>],
        missing: Missing,
        map: fn(&Seat) -> &Map,
        combine: impl Fn(&[f64]) -> Option<f64>,
    ) -> Option<f64> {
        let seats = || self.seats.iter().zip(votes);
        let mut mapped: Vec<f64> =
            seats().filter_map(|(seat, vote)| Some(map(seat).apply((*vote)?))).collect();
        let mut best = combine(&mapped);
        if missing == Missing::LeftOut {
            return best;
        }
        let absent = seats().filter(|(_, vote)| vote.is_none());
        let mut ceilings: Vec<f64> = absent.map(|(seat, _)| seat.highest(map(seat))).collect();
        // Of all sets of one size, that with the highest ceilings has the largest combination.
        ceilings.sort_unstable_by(|a, b| b.total_cmp(a));
        for ceiling in ceilings {
            mapped.push(ceiling);
            best = match (best, combine(&mapped)) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        best
    }

    fn stacked(&self, stack: &Stack, votes: &[Option<f64>], missing: Missing) -> f64 {
        let mut sum = stack.intercept;
        for (j, vote) in votes.iter().enumerate() {
            let weight = stack.weights[j];
            let value = match (vote, missing) {
                (Some(vote), _) => *vote,
                (None, Missing::LeftOut) => stack.centre[j],
                (None, Missing::Highest) => self.seats[j].range[usize::from(weight >= 0.0)],
            };
            sum += weight * value;
        }
        sum
    }

    /// The panel of some of its judges, given by place, which all have to answer. A stack
    /// takes the others' mean scores for their votes.
    #[must_use]
    pub fn only(&self, places: &[usize]) -> Self {
        let stack = self.stack.as_ref().map(|stack| {
            let others = (0..self.seats.len()).filter(|j| !places.contains(j));
            let rest: f64 = others.map(|j| stack.weights[j] * stack.centre[j]).sum();
            let of = |values: &[f64]| places.iter().map(|&j| values[j]).collect();
            Stack {
                intercept: stack.intercept + rest,
                weights: of(&stack.weights),
                centre: of(&stack.centre),
                n: stack.n,
            }
        });
        Self {
            aggregate: self.aggregate,
            quorum: places.len(),
            seats: places.iter().map(|&j| self.seats[j].clone()).collect(),
            stack,
            map: self.map.clone(),
        }
    }

    /// An upper bound of the keys that any `size` of the judges can give on a case, a missing
    /// vote counting at its highest: each number of the key at its own largest. Whoever stays
    /// away, and for whatever reason, the key of those who answer is not above it.
    #[must_use]
    pub fn highest_key_of_size(&self, votes: &[Option<f64>], size: usize) -> Option<Key> {
        if size == 0 || size > self.seats.len() {
            return None;
        }
        // The largest median, and the largest mean, are those of the highest votes.
        let top = |map: fn(&Seat) -> &Map| {
            let mut mapped: Vec<f64> = self
                .seats
                .iter()
                .zip(votes)
                .map(|(seat, vote)| match vote {
                    Some(vote) => map(seat).apply(*vote),
                    None => seat.highest(map(seat)),
                })
                .collect();
            mapped.sort_unstable_by(|a, b| b.total_cmp(a));
            mapped.truncate(size);
            mapped
        };
        let second = decision_key(&top(|seat| &seat.map)).ok()?.mean;
        let first = match &self.stack {
            None => lower_median(&top(|seat| &seat.vote)).ok()?,
            Some(stack) => {
                let mut gains: Vec<f64> = (0..self.seats.len())
                    .map(|j| {
                        let highest = self.seats[j].range[usize::from(stack.weights[j] >= 0.0)];
                        stack.weights[j] * (stack.centre[j] - votes[j].unwrap_or(highest))
                    })
                    .collect();
                gains.sort_unstable_by(|a, b| b.total_cmp(a));
                let away: f64 = gains[..self.seats.len() - size].iter().sum();
                self.stacked(stack, votes, Missing::Highest) + away
            }
        };
        Some((first, second))
    }

    /// Whether a higher score of any judge never lowers the key: what a sequential panel
    /// needs to stop early.
    #[must_use]
    pub fn is_increasing(&self) -> bool {
        let rising = |seat: &Seat| {
            let unit = seat.unit.is_none_or(|[low, high]| high >= low);
            unit && seat.map.is_increasing() && seat.vote.is_increasing()
        };
        let weights = self.stack.iter().flat_map(|stack| &stack.weights);
        self.seats.iter().all(rising) && weights.copied().all(|weight| weight >= 0.0)
    }

    /// The keys of the cases of `rows`.
    #[must_use]
    pub fn keys(&self, table: &Table, rows: &[usize], missing: Missing) -> Vec<Option<Key>> {
        rows.iter().map(|&i| self.key(&votes(table, i), missing)).collect()
    }

    /// The same panel without one judge; the stack is not refitted, so only for the median.
    #[must_use]
    pub fn without(&self, judge: usize) -> Self {
        let mut model = self.clone();
        model.seats.remove(judge);
        model.quorum = model.quorum.min(model.seats.len());
        model.stack = None;
        model
    }
}

/// The votes on a case, in the order of the judges.
#[must_use]
pub fn votes(table: &Table, case: usize) -> Vec<Option<f64>> {
    table.judges.iter().map(|judge| judge.scores[case]).collect()
}

/// The label that a panel's key is mapped to: graded labels for a panel with a graded judge,
/// good or bad for one of binary judges.
#[must_use]
pub fn target(table: &Table, case: &LabelledCase) -> f64 {
    if table.all_binary() || table.labels.target == Target::Good {
        f64::from(u8::from(case.good))
    } else {
        case.target
    }
}

/// Lower median of the raw scores: the panel without any calibration.
#[must_use]
pub fn plain_median(table: &Table, case: usize, quorum: usize) -> Option<f64> {
    let present: Vec<f64> = table.judges.iter().filter_map(|judge| judge.scores[case]).collect();
    (present.len() >= quorum.max(1)).then(|| lower_median(&present).ok()).flatten()
}

fn seat(table: &Table, place: usize, fitted: &FittedMap, comparable: bool) -> Seat {
    let judge = &table.judges[place];
    let observed = judge.scores.iter().flatten();
    let (mut low, mut high) =
        observed.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), s| (l.min(*s), h.max(*s)));
    if judge.kind == JudgeKind::Binary {
        (low, high) = (0.0, 1.0);
    } else if let (true, Some(scale)) = (comparable, table.labels.scale.scale) {
        (low, high) = (low.min(scale.low()), high.max(scale.high()));
    }
    if let Some([zero, one]) = judge.unit {
        (low, high) = (low.min(zero.min(one)), high.max(zero.max(one)));
    }
    if low > high {
        (low, high) = (0.0, 0.0);
    }
    let enough = fitted.n >= MINIMUM_LABELS as u64;
    let vote = match (judge.kind, fitted.offset.value()) {
        (JudgeKind::Graded, Some(offset)) if comparable && enough => {
            Map::Offset { offset: offset.estimate }
        }
        _ => fitted.map.clone(),
    };
    Seat {
        judge: judge.name.clone(),
        kind: judge.kind,
        vote,
        map: fitted.map.clone(),
        range: [low, high],
        unit: judge.unit,
    }
}

fn fit_stack(table: &Table, rows: &[usize], aggregate: PanelAggregate) -> Defined<Stack> {
    if rows.len() < MINIMUM_STACK {
        return Err(Undefined { reason: Reason::TooFewValues });
    }
    let centre: Vec<f64> = table
        .judges
        .iter()
        .map(|judge| {
            let known: Vec<f64> = rows.iter().filter_map(|&i| judge.scores[i]).collect();
            if known.is_empty() { 0.0 } else { known.iter().sum::<f64>() / known.len() as f64 }
        })
        .collect();
    let scores: Vec<Vec<f64>> = table
        .judges
        .iter()
        .zip(&centre)
        .map(|(judge, centre)| rows.iter().map(|&i| judge.scores[i].unwrap_or(*centre)).collect())
        .collect();
    let cases = table.cases();
    let n = rows.len() as u64;
    if aggregate == PanelAggregate::Stack {
        let label: Vec<f64> = rows.iter().map(|&i| target(table, &cases[i])).collect();
        let fit = RidgeStack::fit(&scores, &label, RIDGE_PENALTY)?;
        return Ok(Stack { intercept: fit.intercept, weights: fit.weights, centre, n });
    }
    // A constant judge can't enter a regression: its weight is 0.
    let used: Vec<usize> = (0..scores.len())
        .filter(|&j| scores[j].iter().any(|score| *score != scores[j][0]))
        .collect();
    let design: Vec<Vec<f64>> = (0..rows.len())
        .map(|i| std::iter::once(1.0).chain(used.iter().map(|&j| scores[j][i])).collect())
        .collect();
    let good: Vec<f64> = rows.iter().map(|&i| f64::from(u8::from(cases[i].good))).collect();
    if good.iter().all(|y| *y == good[0]) {
        return Err(Undefined { reason: Reason::SingleClass });
    }
    let fit = firth(&design, &good)?;
    let mut weights = vec![0.0; scores.len()];
    for (weight, &j) in fit.coefficients[1..].iter().zip(&used) {
        weights[j] = *weight;
    }
    Ok(Stack { intercept: fit.coefficients[0], weights, centre, n })
}

/// Dense ranks of keys, as numbers: what an AUC needs of a pair.
#[must_use]
pub fn rank(keys: &[Key]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let compare = |a: &Key, b: &Key| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    order.sort_unstable_by(|&a, &b| compare(&keys[a], &keys[b]));
    let mut ranks = vec![0.0; keys.len()];
    let mut current = 0.0;
    for pair in 0..order.len() {
        if pair > 0 && compare(&keys[order[pair - 1]], &keys[order[pair]]).is_lt() {
            current += 1.0;
        }
        ranks[order[pair]] = current;
    }
    ranks
}

#[cfg(test)]
#[path = "panel_tests.rs"]
mod tests;
