//! The map of one judge: from its score to the labels' scale, by a ladder.
//!
//! Under 20 labels there is none; a shrunk line up to 200 labels with distinct scores; beyond
//! that an isotonic map or Platt's, and only where its cross-validated loss is lower by more
//! than one standard error. "None" is always a candidate. A binary judge gets smoothed rates.

use serde::{Deserialize, Serialize};

use super::figure::{Figure, Measured};
use super::split::shuffled;
use super::table::JudgeKind;
use crate::stats::calibration_map::{
    IsotonicMap, LogitLine, SlopePrior, offset, platt, shrunk_affine,
};
use crate::stats::{Defined, Reason, Undefined};

/// Fewer labels than this fit no map.
pub const MINIMUM_LABELS: usize = 20;
/// Fewer labels with distinct scores than this fit no isotonic or Platt map.
pub const MINIMUM_DISTINCT: usize = 200;
const FOLDS: usize = 10;

/// A map from a score to the labels' scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Map {
    /// The score as it is.
    None,
    /// `score + offset`.
    Offset {
        /// What is added.
        offset: f64,
    },
    /// `intercept + slope * score`.
    Affine {
        /// Slope.
        slope: f64,
        /// Intercept.
        intercept: f64,
    },
    /// A non-decreasing step map, interpolated.
    Isotonic(IsotonicMap),
    /// `1 / (1 + exp(-(intercept + slope * score)))`.
    Platt {
        /// Slope.
        slope: f64,
        /// Intercept.
        intercept: f64,
    },
    /// Smoothed mean label of what a binary judge rejects and accepts.
    Rates {
        /// Mean label where it rejects.
        reject: f64,
        /// Mean label where it accepts.
        accept: f64,
    },
}

impl Map {
    /// The name in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Offset { .. } => "offset",
            Self::Affine { .. } => "affine",
            Self::Isotonic(_) => "isotonic",
            Self::Platt { .. } => "platt",
            Self::Rates { .. } => "rates",
        }
    }

    /// The mapped score.
    #[must_use]
    pub fn apply(&self, score: f64) -> f64 {
        match self {
            Self::None => score,
            Self::Offset { offset } => score + offset,
            Self::Affine { slope, intercept } => slope.mul_add(score, *intercept),
            Self::Isotonic(map) => map.apply(score),
            Self::Platt { slope, intercept } => {
                LogitLine { slope: *slope, intercept: *intercept }.apply(score)
            }
            // A pair that was not judged alike in both orders stands between.
            Self::Rates { reject, accept } => reject + (accept - reject) * score,
        }
    }

    /// Whether a higher score never maps lower; only then may a map be used before a vote.
    #[must_use]
    pub fn is_increasing(&self) -> bool {
        match self {
            Self::Affine { slope, .. } | Self::Platt { slope, .. } => *slope >= 0.0,
            Self::Rates { reject, accept } => accept >= reject,
            Self::None | Self::Offset { .. } | Self::Isotonic(_) => true,
        }
    }
}

/// One candidate of the ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Candidate {
    /// The map's kind.
    pub kind: String,
    /// Cross-validated mean squared error.
    pub loss: f64,
    /// Standard error of the loss's difference to the line; 0 for the line.
    pub standard_error: f64,
}

/// The map chosen, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FittedMap {
    /// The map.
    #[serde(flatten)]
    pub map: Map,
    /// Labels used.
    pub n: u64,
    /// The plain offset, reported beside any map: mean of label minus score.
    pub offset: Measured<Figure>,
    /// What was compared.
    pub candidates: Vec<Candidate>,
    /// Why this map.
    pub reason: String,
}

/// Scores and targets of one judge's fitted cases.
#[derive(Clone, Copy, Debug)]
pub struct FitData<'a> {
    /// Scores.
    pub score: &'a [f64],
    /// Targets.
    pub target: &'a [f64],
    /// Groups: a group is never in two folds.
    pub group: &'a [usize],
    /// Whether score and target share a unit, so that the score itself is a candidate.
    pub comparable: bool,
    /// Whether targets are 0 and 1, so that Platt's map is a candidate.
    pub probability: bool,
}

/// The map of a judge by the ladder.
#[must_use]
pub fn fit_map(kind: JudgeKind, data: FitData<'_>, seed: u64, level: f64) -> FittedMap {
    let n = data.score.len();
    let plain = if data.comparable {
        Measured(offset(data.score, data.target, level).map(|fit| Figure::from(fit.estimate)))
    } else {
        Measured::undefined(Reason::OutOfRange)
    };
    let done = |map, candidates, reason: String| FittedMap {
        map,
        n: n as u64,
        offset: plain.clone(),
        candidates,
        reason,
    };
    if n < MINIMUM_LABELS {
        let reason = format!("{n} labels: under {MINIMUM_LABELS} no map is fitted");
        return done(Map::None, Vec::new(), reason);
    }
    if kind == JudgeKind::Binary {
        let reason = "a binary judge gets smoothed rates".to_owned();
        return done(rates(data), Vec::new(), reason);
    }
    ladder(data, seed).map_or_else(
        |undefined| done(Map::None, Vec::new(), undefined.to_string()),
        |(map, candidates, reason)| done(map, candidates, reason),
    )
}

/// Means of the targets by verdict, each with two added labels at the middle: for good and
/// bad that is `(k + 1) / (n + 2)`.
fn rates(data: FitData<'_>) -> Map {
    let n = data.target.len() as f64;
    let middle = if data.probability { 0.5 } else { data.target.iter().sum::<f64>() / n };
    let smoothed = |accepts: bool| {
        let of = data.score.iter().zip(data.target).filter(|(s, _)| (**s > 0.5) == accepts);
        let (sum, count) = of.fold((0.0, 0.0), |(sum, count), (_, y)| (sum + y, count + 1.0));
        (sum + 2.0 * middle) / (count + 2.0)
    };
    Map::Rates { reject: smoothed(false), accept: smoothed(true) }
}

fn line(score: &[f64], target: &[f64]) -> Defined<Map> {
    let fit = shrunk_affine(score, target, SlopePrior::default())?;
    Ok(Map::Affine { slope: fit.map.slope, intercept: fit.map.intercept })
}

fn isotonic(score: &[f64], target: &[f64]) -> Defined<Map> {
    IsotonicMap::fit(score, target, None).map(Map::Isotonic)
}

fn platt_line(score: &[f64], target: &[f64]) -> Defined<Map> {
    let good: Vec<bool> = target.iter().map(|y| *y > 0.5).collect();
    let fit = platt(score, &good)?;
    Ok(Map::Platt { slope: fit.slope, intercept: fit.intercept })
}

type Fit = fn(&[f64], &[f64]) -> Defined<Map>;

fn ladder(data: FitData<'_>, seed: u64) -> Defined<(Map, Vec<Candidate>, String)> {
    let fold = folds(data.group, seed);
    let affine = losses(data, &fold, line)?;
    let loss = mean(&affine);
    let candidate = |kind: &str, own: &[f64]| {
        let difference: Vec<f64> = own.iter().zip(&affine).map(|(a, b)| a - b).collect();
        Candidate {
            kind: kind.to_owned(),
            loss: mean(own),
            standard_error: standard_error(&difference, data.group),
        }
    };
    let mut candidates = vec![candidate("affine", &affine)];
    let mut best = (line(data.score, data.target)?, loss);
    let mut reason = format!("a shrunk line over {} labels", data.score.len());
    if data.comparable {
        let none: Vec<f64> =
            data.score.iter().zip(data.target).map(|(x, y)| (x - y).powi(2)).collect();
        candidates.push(candidate("none", &none));
        if mean(&none) <= loss {
            best = (Map::None, mean(&none));
            reason = "no map predicts the labels better than the score itself".to_owned();
        }
    }
    let distinct = distinct_count(data.score);
    if distinct < MINIMUM_DISTINCT {
        reason.push_str(&format!(
            "; {distinct} distinct scores: under {MINIMUM_DISTINCT} no isotonic or Platt map is tried"
        ));
        return Ok((best.0, candidates, reason));
    }
    let mut flexible: Vec<(&str, Fit)> = vec![("isotonic", isotonic)];
    if data.probability {
        flexible.push(("platt", platt_line));
    }
    for (kind, fit) in flexible {
        let Ok(own) = losses(data, &fold, fit) else { continue };
        let entry = candidate(kind, &own);
        let gain = loss - entry.loss;
        if gain > entry.standard_error && entry.loss < best.1 {
            best = (fit(data.score, data.target)?, entry.loss);
            reason = format!(
                "{kind}: its cross-validated loss is lower by {gain:.4}, more than one standard error ({:.4})",
                entry.standard_error
            );
        }
        candidates.push(entry);
    }
    Ok((best.0, candidates, reason))
}

fn distinct_count(score: &[f64]) -> usize {
    let mut sorted = score.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.dedup();
    sorted.len()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A fold a case; whole groups, dealt out by the seed.
fn folds(group: &[usize], seed: u64) -> Vec<usize> {
    let mut names: Vec<usize> = group.to_vec();
    names.sort_unstable();
    names.dedup();
    let texts: Vec<String> = names.iter().map(usize::to_string).collect();
    let order = shuffled(seed, texts.iter().map(String::as_str));
    let mut fold = std::collections::HashMap::with_capacity(names.len());
    for (rank, place) in order.into_iter().enumerate() {
        fold.insert(names[place], rank % FOLDS);
    }
    group.iter().map(|g| fold[g]).collect()
}

/// Squared error of each case under the map fitted on the other folds.
fn losses(data: FitData<'_>, fold: &[usize], fit: Fit) -> Defined<Vec<f64>> {
    let mut losses = vec![0.0; data.score.len()];
    for held_out in 0..FOLDS {
        let keep = |i: &usize| fold[*i] != held_out;
        let train: Vec<usize> = (0..fold.len()).filter(keep).collect();
        if train.len() == fold.len() {
            continue;
        }
        let score: Vec<f64> = train.iter().map(|&i| data.score[i]).collect();
        let target: Vec<f64> = train.iter().map(|&i| data.target[i]).collect();
        let map = fit(&score, &target)?;
        for i in (0..fold.len()).filter(|i| fold[*i] == held_out) {
            losses[i] = (map.apply(data.score[i]) - data.target[i]).powi(2);
        }
    }
    if losses.iter().all(|loss| loss.is_finite()) {
        Ok(losses)
    } else {
        Err(Undefined { reason: Reason::NotFinite })
    }
}

/// Standard error of a mean over cases whose groups are the independent units.
fn standard_error(values: &[f64], group: &[usize]) -> f64 {
    let centre = mean(values);
    let mut sums: std::collections::BTreeMap<usize, f64> = std::collections::BTreeMap::new();
    for (value, group) in values.iter().zip(group) {
        *sums.entry(*group).or_default() += value - centre;
    }
    let groups = sums.len() as f64;
    if groups < 2.0 {
        return f64::INFINITY;
    }
    let total: f64 = sums.values().map(|sum| sum * sum).sum();
    (groups / (groups - 1.0) * total).sqrt() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(score: &[f64], target: &[f64], probability: bool) -> FittedMap {
        let group: Vec<usize> = (0..score.len()).collect();
        let data = FitData { score, target, group: &group, comparable: true, probability };
        fit_map(JudgeKind::Graded, data, 1, 0.95)
    }

    fn noise(i: usize) -> f64 {
        ((i * 7919 + 13) % 101) as f64 / 101.0 - 0.5
    }

    #[test]
    fn nineteen_labels_fit_no_map_and_twenty_a_line() {
        let score: Vec<f64> = (0..20).map(|i| f64::from(i % 5)).collect();
        let target: Vec<f64> = score.iter().map(|s| s + 1.0).collect();
        assert_eq!(fit(&score[..19], &target[..19], false).map, Map::None);
        let fitted = fit(&score, &target, false);
        assert_eq!(fitted.map.kind(), "affine");
        assert!((fitted.offset.0.unwrap().estimate - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_curve_is_taken_only_with_many_distinct_scores_and_a_clear_gain() {
        let score: Vec<f64> = (0..400).map(|i| i as f64 / 400.0).collect();
        let curved: Vec<f64> =
            score.iter().enumerate().map(|(i, s)| s.powi(8) + 0.02 * noise(i)).collect();
        assert_eq!(fit(&score, &curved, false).map.kind(), "isotonic");
        assert_eq!(fit(&score[201..], &curved[201..], false).map.kind(), "affine", "199 labels");
        let straight: Vec<f64> =
            score.iter().enumerate().map(|(i, s)| 0.2 + 0.5 * s + 0.3 * noise(i)).collect();
        let fitted = fit(&score, &straight, false);
        assert_eq!(fitted.map.kind(), "affine");
        assert!(fitted.candidates.iter().any(|c| c.kind == "isotonic"));
    }

    #[test]
    fn the_score_itself_stays_when_it_is_right() {
        let score: Vec<f64> = (0..60).map(|i| f64::from(i % 5)).collect();
        let fitted = fit(&score, &score, false);
        assert_eq!(fitted.map, Map::None);
    }

    #[test]
    fn a_binary_judge_gets_smoothed_rates_and_a_constant_one_too() {
        let score: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i < 20))).collect();
        let target: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i < 18))).collect();
        let group: Vec<usize> = (0..40).collect();
        let of = |score: &[f64]| {
            let data = FitData {
                score,
                target: &target,
                group: &group,
                comparable: true,
                probability: true,
            };
            fit_map(JudgeKind::Binary, data, 1, 0.95).map
        };
        assert_eq!(of(&score), Map::Rates { reject: 1.0 / 22.0, accept: 19.0 / 22.0 });
        assert_eq!(of(&[1.0; 40]), Map::Rates { reject: 0.5, accept: 19.0 / 42.0 });
    }

    #[test]
    fn maps_survive_json() {
        let steps = IsotonicMap { knots: vec![0.0, 1.0], values: vec![0.1, 0.9] };
        for map in [Map::None, Map::Isotonic(steps), Map::Offset { offset: 0.1 }] {
            let text = serde_json::to_string(&map).unwrap();
            assert_eq!(serde_json::from_str::<Map>(&text).unwrap(), map);
        }
    }
}
