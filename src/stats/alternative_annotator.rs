//! The alternative-annotator test: may a judge stand in for a person? (Calderon, Reichart
//! and Dror 2025.)
//!
//! Each person in turn is left out, and judge and person are compared by how well they
//! agree with the remaining people. Ties count for both sides, so a coarse scale inflates
//! the advantage.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::distribution::student_cdf;
use super::paired::{Alternative, wilcoxon_signed_rank};
use super::summary::{raw_mean, sum_of_squares};
use super::undefined::{Defined, Reason, require_finite, require_usable, undefined};

/// How an annotation agrees with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scoring {
    /// Share of equal annotations; values are category codes.
    Accuracy,
    /// Negative root mean squared difference.
    NegRmse,
}

impl Scoring {
    fn score(self, value: f64, others: &[f64]) -> f64 {
        let n = others.len() as f64;
        match self {
            Self::Accuracy => others.iter().filter(|o| **o == value).count() as f64 / n,
            Self::NegRmse => -(others.iter().map(|o| (value - o).powi(2)).sum::<f64>() / n).sqrt(),
        }
    }
}

/// Settings of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Cost advantage of the judge: 0.2 against experts, 0.15 skilled, 0.1 crowd workers.
    pub epsilon: f64,
    /// False-discovery level over the people.
    pub level: f64,
    /// Instances with fewer people are left out.
    pub minimum_people: usize,
    /// People with fewer instances are left out.
    pub minimum_instances: usize,
    /// How agreement is scored.
    pub scoring: Scoring,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            epsilon: 0.2,
            level: 0.05,
            minimum_people: 2,
            minimum_instances: 30,
            scoring: Scoring::Accuracy,
        }
    }
}

/// One person's comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Position of the person in the input.
    pub person: usize,
    /// Share of instances on which the judge is at least as good.
    pub advantage: f64,
    /// One-sided p-value of "the person is better by epsilon or more".
    pub p: f64,
    /// All differences were equal, so no test exists: p is 0 below epsilon and 1 else.
    pub degenerate: bool,
    /// Whether Benjamini-Yekutieli rejects, which counts for the judge.
    pub rejected: bool,
    /// Instances compared.
    pub n: usize,
}

/// The result of the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlternativeAnnotator {
    /// omega: share of people the judge beats; 0.5 or more passes.
    pub winning_rate: f64,
    /// rho: mean advantage.
    pub advantage: f64,
    /// One entry a person tested.
    pub people: Vec<Comparison>,
}

/// One-sided t-test of H0: mean difference >= epsilon.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarginTest {
    /// `(mean - epsilon) / (s / sqrt n)`.
    pub t: f64,
    /// `P(T <= t)`.
    pub p: f64,
}

/// The margin test of differences W^human - W^judge.
///
/// # Errors
/// `no_data`, `not_finite`, `too_few_values` below two; `zero_variance`.
pub fn margin_t_test(differences: &[f64], epsilon: f64) -> Defined<MarginTest> {
    require_finite(differences)?;
    require_finite(&[epsilon])?;
    if differences.len() < 2 {
        return undefined(Reason::TooFewValues);
    }
    let n = differences.len() as f64;
    let variance = sum_of_squares(differences) / (n - 1.0);
    if variance == 0.0 {
        return undefined(Reason::ZeroVariance);
    }
    let t = (raw_mean(differences) - epsilon) / (variance / n).sqrt();
    Ok(MarginTest { t, p: student_cdf(t, n - 1.0) })
}

/// The margin test by Wilcoxon's signed ranks, for fewer than 30 instances.
///
/// # Errors
/// As [`wilcoxon_signed_rank`].
pub fn margin_rank_test(differences: &[f64], epsilon: f64) -> Defined {
    require_finite(differences)?;
    let shifted: Vec<f64> = differences.iter().map(|d| d - epsilon).collect();
    wilcoxon_signed_rank(&shifted, Alternative::Less).map(|r| r.p)
}

/// Runs the test. Each person and the judge map instance ids to annotations; categories
/// are numbered by the caller. p-values that are undefined because all differences are
/// equal count as rejections iff the mean is below epsilon, and are flagged.
///
/// # Errors
/// `no_data` when nobody has enough instances, `not_finite`, `out_of_range`.
pub fn alternative_annotator<K: Ord>(
    people: &[BTreeMap<K, f64>],
    judge: &BTreeMap<K, f64>,
    settings: Settings,
) -> Defined<AlternativeAnnotator> {
    super::undefined::require_open_unit(settings.level)?;
    require_usable(people.iter().flat_map(BTreeMap::values).chain(judge.values()))?;
    let mut raters: BTreeMap<&K, usize> = BTreeMap::new();
    people.iter().flat_map(BTreeMap::keys).for_each(|k| *raters.entry(k).or_default() += 1);
    // A person alone on an instance leaves nobody to agree with.
    let least = settings.minimum_people.max(2);
    let mut out = Vec::new();
    for (index, person) in people.iter().enumerate() {
        let (mut wins, mut differences) = (0usize, Vec::new());
        for (key, &own) in person {
            let Some(&other) = judge.get(key) else { continue };
            if raters.get(key).is_none_or(|n| *n < least) {
                continue;
            }
            let rest: Vec<f64> = people
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != index)
                .filter_map(|(_, p)| p.get(key).copied())
                .collect();
            let (human, machine) =
                (settings.scoring.score(own, &rest), settings.scoring.score(other, &rest));
            wins += usize::from(machine >= human);
            let sign = f64::from(i8::from(human >= machine) - i8::from(machine >= human));
            differences.push(sign);
        }
        if differences.is_empty() || differences.len() < settings.minimum_instances {
            continue;
        }
        let n = differences.len();
        let test = if n < 30 {
            margin_rank_test(&differences, settings.epsilon)
        } else {
            margin_t_test(&differences, settings.epsilon).map(|t| t.p)
        };
        let fallback = if raw_mean(&differences) < settings.epsilon { 0.0 } else { 1.0 };
        out.push(Comparison {
            person: index,
            advantage: wins as f64 / n as f64,
            p: test.unwrap_or(fallback),
            degenerate: test.is_err(),
            rejected: false,
            n,
        });
    }
    if out.is_empty() {
        return undefined(Reason::NoData);
    }
    let p: Vec<f64> = out.iter().map(|c| c.p).collect();
    let adjusted = super::multiplicity::benjamini_yekutieli(&p)?;
    for (comparison, adjusted) in out.iter_mut().zip(adjusted) {
        comparison.rejected = adjusted <= settings.level;
    }
    let count = out.len() as f64;
    Ok(AlternativeAnnotator {
        winning_rate: out.iter().filter(|c| c.rejected).count() as f64 / count,
        advantage: out.iter().map(|c| c.advantage).sum::<f64>() / count,
        people: out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(f: impl Fn(u32) -> f64) -> BTreeMap<u32, f64> {
        (0..60).map(|i| (i, f(i))).collect()
    }

    #[test]
    fn a_judge_that_repeats_the_consensus_beats_noisy_people() {
        let truth = |i: u32| f64::from(i % 3);
        let noisy = |k: u32| person(move |i| if i % 5 == k { 9.0 } else { f64::from(i % 3) });
        let people = [noisy(0), noisy(1), noisy(2)];
        let result = alternative_annotator(&people, &person(truth), Settings::default()).unwrap();
        assert_eq!(result.winning_rate, 1.0);
        assert_eq!(result.advantage, 1.0);
        let wrong = alternative_annotator(&people, &person(|_| 7.0), Settings::default()).unwrap();
        assert_eq!(wrong.winning_rate, 0.0);
    }

    #[test]
    fn identical_annotations_are_flagged_and_count_for_the_judge() {
        let same = person(|i| f64::from(i % 2));
        let people = [same.clone(), same.clone(), same.clone()];
        let result = alternative_annotator(&people, &same, Settings::default()).unwrap();
        assert!(result.people.iter().all(|c| c.degenerate && c.rejected));
    }

    #[test]
    fn too_few_instances_or_people_leave_nothing_to_test() {
        let few: BTreeMap<u32, f64> = (0..5).map(|i| (i, 1.0)).collect();
        let f = |p: &[BTreeMap<u32, f64>]| {
            alternative_annotator(p, &few, Settings::default()).unwrap_err().reason
        };
        assert_eq!(f(&[few.clone(), few.clone()]), Reason::NoData);
        assert_eq!(f(&[person(|_| 1.0)]), Reason::NoData);
        assert_eq!(margin_t_test(&[0.0; 5], 0.1).unwrap_err().reason, Reason::ZeroVariance);
    }
}
