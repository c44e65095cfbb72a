//! What a score means: the mean label at each score, monotone (CORP: Dimitriadis, Gneiting and
//! Jordan 2021), with the band that it would stay in if the scores were true.
//!
//! Where scores and labels share no unit there is nothing that a score should mean: then the
//! share of good cases is shown with its interval, and no band.

use serde::{Deserialize, Serialize};

use crate::calibration::judge_metrics::Series;
use crate::stats::calibration_map::{IsotonicMap, pava};
use crate::stats::distribution::normal_quantile;
use crate::stats::draw::{binomial, stream};
use crate::stats::interval::wilson;
use crate::stats::summary::quantile_of_sorted;
use crate::stats::{Defined, Undefined};

/// Groups of scores at most; up to this many distinct scores each is a group.
const MOST_GROUPS: usize = 40;
/// Replicates of the band.
const REPLICATES: u64 = 400;

/// What the band of a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// Where the mean label would lie if every score were the truth, pointwise.
    Consistency,
    /// Wilson's interval of the share of good cases.
    Confidence,
}

/// Cases of like scores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReliabilityPoint {
    /// Their mean score.
    pub score: f64,
    /// Their mean label, or share of good ones.
    pub observed: f64,
    /// The same by isotonic regression over all cases.
    pub isotonic: f64,
    /// Lower end of the band.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Cases.
    pub n: u64,
}

/// The reliability of a judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reliability {
    /// Cases.
    pub n: u64,
    /// Nominal coverage of the bands, pointwise.
    pub level: f64,
    /// What the bands are.
    pub band: Band,
    /// From the lowest score to the highest.
    pub points: Vec<ReliabilityPoint>,
}

struct Group {
    score: f64,
    observed: f64,
    good: u64,
    n: u64,
}

impl Reliability {
    /// `probability` where labels are 1 and 0; no band leaves the labels' `scale`.
    pub(super) fn of(
        series: &Series,
        probability: bool,
        scale: Option<[f64; 2]>,
        level: f64,
        seed: u64,
    ) -> Defined<Self> {
        let label: Vec<f64> = if series.comparable {
            series.target.clone()
        } else {
            series.good.iter().map(|good| f64::from(u8::from(*good))).collect()
        };
        let isotonic = IsotonicMap::fit(&series.score, &label, None)?;
        let groups = groups(&series.score, &label, &series.good);
        let bands: Vec<(f64, f64)> = if series.comparable {
            let residual = label
                .iter()
                .zip(&series.score)
                .map(|(label, score)| (label - isotonic.apply(*score)).powi(2));
            let deviation = (residual.sum::<f64>() / label.len() as f64).sqrt();
            let held = |value: f64| scale.map_or(value, |[low, high]| value.clamp(low, high));
            consistency(&groups, (!probability).then_some(deviation), level, seed)
                .into_iter()
                .map(|(lower, upper)| (held(lower), held(upper)))
                .collect()
        } else {
            groups
                .iter()
                .map(|group| {
                    let share = wilson(group.good, group.n, level)?;
                    Ok((share.interval.lower, share.interval.upper))
                })
                .collect::<Result<_, Undefined>>()?
        };
        Ok(Self {
            n: label.len() as u64,
            level,
            band: if series.comparable { Band::Consistency } else { Band::Confidence },
            points: groups
                .iter()
                .zip(bands)
                .map(|(group, (lower, upper))| ReliabilityPoint {
                    score: group.score,
                    observed: group.observed,
                    isotonic: isotonic.apply(group.score),
                    lower,
                    upper,
                    n: group.n,
                })
                .collect(),
        })
    }
}

/// Groups of like scores that never part ties.
fn groups(score: &[f64], label: &[f64], good: &[bool]) -> Vec<Group> {
    let mut order: Vec<usize> = (0..score.len()).collect();
    order.sort_unstable_by(|&i, &j| score[i].total_cmp(&score[j]).then(i.cmp(&j)));
    let ties: Vec<&[usize]> = order.chunk_by(|&i, &j| score[i] == score[j]).collect();
    let least = if ties.len() <= MOST_GROUPS { 1 } else { score.len().div_ceil(MOST_GROUPS) };
    let (mut groups, mut members): (Vec<Group>, Vec<usize>) = Default::default();
    for (place, tied) in ties.iter().enumerate() {
        members.extend_from_slice(tied);
        if members.len() < least && place + 1 < ties.len() {
            continue;
        }
        let n = members.len() as f64;
        let mean = |of: &[f64]| members.iter().map(|&i| of[i]).sum::<f64>() / n;
        groups.push(Group {
            score: mean(score),
            observed: mean(label),
            good: members.iter().filter(|&&i| good[i]).count() as u64,
            n: members.len() as u64,
        });
        members.clear();
    }
    groups
}

/// Pointwise quantiles of isotonic fits to labels drawn as if every score were the mean label:
/// 0 and 1 by that probability, else normal with `deviation`.
fn consistency(groups: &[Group], deviation: Option<f64>, level: f64, seed: u64) -> Vec<(f64, f64)> {
    use rand::RngExt as _;
    let weights: Vec<f64> = groups.iter().map(|group| group.n as f64).collect();
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); groups.len()];
    for replicate in 0..REPLICATES {
        let mut rng = stream(seed, replicate);
        let means: Vec<f64> = groups
            .iter()
            .map(|group| match deviation {
                None => {
                    let p = group.score.clamp(0.0, 1.0);
                    binomial(&mut rng, group.n, p) as f64 / group.n as f64
                }
                Some(deviation) => {
                    let u: f64 = rng.random_range(1e-12..1.0);
                    group.score + normal_quantile(u) * deviation / (group.n as f64).sqrt()
                }
            })
            .collect();
        for (own, value) in drawn.iter_mut().zip(pava(&means, &weights)) {
            own.push(value);
        }
    }
    let tail = (1.0 - level) / 2.0;
    drawn
        .into_iter()
        .map(|mut own| {
            own.sort_unstable_by(f64::total_cmp);
            let at = |q: f64| quantile_of_sorted(&own, q).unwrap_or(f64::NAN);
            (at(tail), at(1.0 - tail))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;

    fn series(n: usize, truth: impl Fn(f64) -> f64) -> Series {
        let mut rng = stream(1, 0);
        let score: Vec<f64> = (0..n).map(|_| rng.random::<f64>()).collect();
        let good: Vec<bool> = score.iter().map(|s| rng.random::<f64>() < truth(*s)).collect();
        let target = good.iter().map(|good| f64::from(u8::from(*good))).collect();
        Series { score, target, good, comparable: true, ..Series::default() }
    }

    fn outside(found: &Reliability) -> usize {
        found.points.iter().filter(|p| p.isotonic < p.lower || p.isotonic > p.upper).count()
    }

    #[test]
    fn true_scores_stay_in_the_band_and_exaggerated_ones_leave_it() {
        let honest = Reliability::of(&series(20_000, |s| s), true, None, 0.95, 0).unwrap();
        assert_eq!(honest.band, Band::Consistency);
        assert_eq!(honest.points.len(), MOST_GROUPS);
        assert!(outside(&honest) <= 6, "{}", outside(&honest));
        let flat = Reliability::of(&series(20_000, |_| 0.5), true, None, 0.95, 0).unwrap();
        assert!(outside(&flat) > 30, "{}", outside(&flat));
    }

    #[test]
    fn a_band_ends_where_the_scale_does() {
        let mut own = series(60, |s| s);
        own.score = own.score.iter().map(|s| 1.0 + (s * 8.0).round() / 2.0).collect();
        own.target = own.score.iter().rev().copied().collect();
        let found = Reliability::of(&own, false, Some([1.0, 5.0]), 0.95, 0).unwrap();
        assert!(found.points.iter().all(|p| p.lower >= 1.0 && p.upper <= 5.0), "{found:?}");
        let free = Reliability::of(&own, false, None, 0.95, 0).unwrap();
        assert!(free.points.iter().any(|p| p.lower < 1.0 || p.upper > 5.0), "{free:?}");
    }

    #[test]
    fn scores_of_another_unit_get_an_interval_and_no_band() {
        let mut own = series(500, |s| s);
        own.comparable = false;
        own.score = own.score.iter().map(|s| (s * 10.0).round()).collect();
        let found = Reliability::of(&own, true, None, 0.95, 0).unwrap();
        assert_eq!(found.band, Band::Confidence);
        assert_eq!(found.points.iter().map(|p| p.n).sum::<u64>(), 500);
        assert!(found.points.iter().all(|p| p.lower <= p.observed && p.observed <= p.upper));
    }
}
