//! Votes: how a panel's scores become one score.
//!
//! Pure arithmetic on the scores that are there. Nothing here knows about quorums, clocks or
//! judges. Every function gives the same number for the same votes in any order, and every
//! aggregator is monotone: raising a vote never lowers the result, which is what lets a
//! sequential panel stop early.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::score::Score;

/// How votes become one score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// The middle vote; the lower of the two middle ones of an even count, so that the score
    /// is one that a judge gave.
    #[default]
    Median,
    /// The smallest vote at which the weights reach half of the total.
    WeightedMedian,
    /// The mean without the share `trim` of votes at each end.
    TrimmedMean,
    /// The weighted mean.
    Mean,
    /// The lowest vote: unanimity.
    Min,
    /// The weighted share of votes at or above the threshold; accepted above one half.
    Majority,
    /// What the profile's weights make of the votes; needs a profile with weights.
    Pooled,
    /// The probability that the output is good, by the profile's confusion matrices and the
    /// model of Dawid and Skene (1979); needs a profile, and is never certified.
    DawidSkene,
}

impl Aggregate {
    /// Every aggregator.
    pub const ALL: [Self; 8] = [
        Self::Median,
        Self::WeightedMedian,
        Self::TrimmedMean,
        Self::Mean,
        Self::Min,
        Self::Majority,
        Self::Pooled,
        Self::DawidSkene,
    ];

    /// The name in configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::WeightedMedian => "weighted_median",
            Self::TrimmedMean => "trimmed_mean",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Majority => "majority",
            Self::Pooled => "pooled",
            Self::DawidSkene => "dawid_skene",
        }
    }

    /// Whether the weights of seats have a part in it.
    #[must_use]
    pub fn uses_weights(self) -> bool {
        matches!(self, Self::WeightedMedian | Self::Mean | Self::Majority)
    }

    /// Whether it is nothing without a profile.
    #[must_use]
    pub fn needs_profile(self) -> bool {
        matches!(self, Self::Pooled | Self::DawidSkene)
    }
}

/// What an aggregator needs beside the votes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The aggregator.
    pub aggregate: Aggregate,
    /// The middle of the two middle votes instead of the lower one.
    pub midpoint: bool,
    /// The share of votes cut at each end by `trimmed_mean`, in [0, 0.5).
    pub trim: f64,
    /// What a vote must reach to count as an accept for `majority`.
    pub threshold: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { aggregate: Aggregate::Median, midpoint: false, trim: 0.2, threshold: 0.7 }
    }
}

/// The score of some weighted votes; `None` without any, or when all weights are 0.
#[must_use]
pub fn aggregate(votes: &[(Score, f64)], settings: &Settings) -> Option<Score> {
    if votes.is_empty() {
        return None;
    }
    // Sorted, so that sums of floats do not depend on the order in which judges answered.
    let mut sorted = votes.to_vec();
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let scores: Vec<Score> = sorted.iter().map(|vote| vote.0).collect();
    match settings.aggregate {
        // Of raw votes the profile's aggregators have the median: their own needs the maps.
        Aggregate::Median | Aggregate::Pooled | Aggregate::DawidSkene => {
            Some(median_of_sorted(&scores, settings.midpoint))
        }
        Aggregate::WeightedMedian => weighted_median_of_sorted(&sorted, settings.midpoint),
        Aggregate::TrimmedMean => {
            let cut = ((scores.len() as f64 * settings.trim) + 1e-9).floor() as usize;
            let kept = &scores[cut.min(scores.len() / 2)..scores.len() - cut.min(scores.len() / 2)];
            // Cutting half from each end of an even count leaves nothing: the median stands in.
            if kept.is_empty() {
                return Some(median_of_sorted(&scores, settings.midpoint));
            }
            mean(kept.iter().map(|score| (*score, 1.0)))
        }
        Aggregate::Mean => mean(sorted.iter().copied()),
        Aggregate::Min => scores.first().copied(),
        Aggregate::Majority => {
            let vote = |score: Score| if score.get() >= settings.threshold { 1.0 } else { 0.0 };
            let total: f64 = sorted.iter().map(|vote| vote.1).sum();
            let accepting: f64 = sorted.iter().map(|(score, weight)| vote(*score) * weight).sum();
            Score::share(accepting, total).ok()
        }
    }
}

/// The lower median; `None` without scores.
#[must_use]
pub fn lower_median(scores: &[Score]) -> Option<Score> {
    let mut sorted = scores.to_vec();
    sorted.sort_unstable();
    (!sorted.is_empty()).then(|| median_of_sorted(&sorted, false))
}

/// The weighted mean; `None` without scores or when all weights are 0.
pub fn mean(votes: impl Iterator<Item = (Score, f64)>) -> Option<Score> {
    let (mut sum, mut total) = (0.0, 0.0);
    for (score, weight) in votes {
        sum += score.get() * weight;
        total += weight;
    }
    Score::share(sum, total).ok()
}

fn median_of_sorted(sorted: &[Score], midpoint: bool) -> Score {
    let lower = sorted[(sorted.len() - 1) / 2];
    let upper = sorted[sorted.len() / 2];
    if midpoint { middle(lower, upper) } else { lower }
}

fn middle(lower: Score, upper: Score) -> Score {
    Score::from_arithmetic(f64::midpoint(lower.get(), upper.get())).unwrap_or(lower)
}

fn weighted_median_of_sorted(sorted: &[(Score, f64)], midpoint: bool) -> Option<Score> {
    let total: f64 = sorted.iter().map(|vote| vote.1).sum();
    if total <= 0.0 {
        return None;
    }
    let mut below = 0.0;
    for (i, (score, weight)) in sorted.iter().enumerate() {
        below += weight;
        // Relative slack: weights such as 0.1 + 0.2 must count as half of 0.6.
        let tolerance = total * 1e-12;
        if below + tolerance >= total / 2.0 {
            let exactly_half = (below - total / 2.0).abs() <= tolerance;
            let next = sorted[i + 1..].iter().find(|vote| vote.1 > 0.0);
            return match next {
                Some((upper, _)) if midpoint && exactly_half => Some(middle(*score, *upper)),
                _ => Some(*score),
            };
        }
    }
    sorted.last().map(|vote| vote.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(value: f64) -> Score {
        Score::new(value).unwrap()
    }

    fn of(values: &[f64], settings: &Settings) -> f64 {
        let votes: Vec<_> = values.iter().map(|v| (score(*v), 1.0)).collect();
        aggregate(&votes, settings).unwrap().get()
    }

    fn with(aggregate: Aggregate) -> Settings {
        Settings { aggregate, ..Settings::default() }
    }

    #[test]
    fn the_median_of_an_even_panel_is_a_score_that_a_judge_gave() {
        assert_eq!(of(&[0.2, 0.9], &with(Aggregate::Median)), 0.2);
        assert_eq!(of(&[0.1, 0.4, 0.6, 0.9], &with(Aggregate::Median)), 0.4);
        let midpoint = Settings { midpoint: true, ..Settings::default() };
        assert_eq!(of(&[0.1, 0.4, 0.6, 0.9], &midpoint), 0.5);
    }

    #[test]
    fn no_votes_have_no_score() {
        for aggregator in Aggregate::ALL {
            assert_eq!(aggregate(&[], &with(aggregator)), None);
        }
        let weightless = [(score(0.5), 0.0)];
        for aggregator in [Aggregate::Mean, Aggregate::WeightedMedian, Aggregate::Majority] {
            assert_eq!(aggregate(&weightless, &with(aggregator)), None);
        }
    }

    #[test]
    fn the_weighted_median_is_the_first_vote_that_carries_half_of_the_weight() {
        let votes = [(score(0.1), 1.0), (score(0.5), 1.0), (score(0.9), 3.0)];
        assert_eq!(aggregate(&votes, &with(Aggregate::WeightedMedian)), Some(score(0.9)));
        let half = [(score(0.1), 0.1), (score(0.2), 0.2), (score(0.9), 0.3)];
        assert_eq!(aggregate(&half, &with(Aggregate::WeightedMedian)), Some(score(0.2)));
    }

    #[test]
    fn trimming_cuts_the_same_number_at_both_ends() {
        let votes = [0.0, 0.5, 0.6, 0.7, 1.0];
        assert!((of(&votes, &with(Aggregate::TrimmedMean)) - 0.6).abs() < 1e-12);
        assert!((of(&[0.0, 1.0], &with(Aggregate::TrimmedMean)) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn majority_is_the_share_of_votes_at_the_threshold() {
        assert_eq!(of(&[0.7, 0.69, 1.0, 0.0], &with(Aggregate::Majority)), 0.5);
    }

    fn votes() -> impl Strategy<Value = Vec<(Score, f64)>> {
        let vote = (prop_oneof![0.0..=1.0, Just(0.5), Just(0.7)], 0.01..10.0_f64);
        prop::collection::vec(vote.prop_map(|(v, w)| (score(v), w)), 1..9)
    }

    fn any_settings() -> impl Strategy<Value = Settings> {
        let aggregate = prop::sample::select(Aggregate::ALL.to_vec());
        (aggregate, any::<bool>(), 0.0..0.5).prop_map(|(aggregate, midpoint, trim)| Settings {
            aggregate,
            midpoint,
            trim,
            threshold: 0.7,
        })
    }

    proptest! {
        #[test]
        fn the_order_of_votes_changes_nothing(votes in votes(), settings in any_settings(), turn in 0usize..8) {
            let mut turned = votes.clone();
            turned.rotate_left(turn % votes.len());
            turned.reverse();
            prop_assert_eq!(aggregate(&votes, &settings), aggregate(&turned, &settings));
        }

        #[test]
        fn the_score_lies_between_the_lowest_and_the_highest_vote(votes in votes(), settings in any_settings()) {
            prop_assume!(settings.aggregate != Aggregate::Majority);
            let result = aggregate(&votes, &settings).unwrap();
            let low = votes.iter().map(|v| v.0).min().unwrap();
            let high = votes.iter().map(|v| v.0).max().unwrap();
            prop_assert!(result.get() >= low.get() - 1e-12 && result.get() <= high.get() + 1e-12);
        }

        #[test]
        fn a_unanimous_panel_gives_its_one_score(value in 0.0..=1.0, n in 1usize..9, settings in any_settings()) {
            prop_assume!(settings.aggregate != Aggregate::Majority);
            let votes = vec![(score(value), 1.0); n];
            prop_assert!((aggregate(&votes, &settings).unwrap().get() - value).abs() < 1e-12);
        }

        #[test]
        fn raising_a_vote_never_lowers_the_score(votes in votes(), settings in any_settings(), at in 0usize..8, to in 0.0..=1.0) {
            let mut raised = votes.clone();
            let at = at % raised.len();
            raised[at].0 = raised[at].0.max(score(to));
            let (before, after) = (aggregate(&votes, &settings).unwrap(), aggregate(&raised, &settings).unwrap());
            prop_assert!(after.get() >= before.get() - 1e-12);
        }

        #[test]
        fn one_outlier_moves_the_median_at_most_to_its_neighbour(values in prop::collection::vec(0.0..=1.0f64, 3..9), at in 0usize..8, to in 0.0..=1.0) {
            let mut sorted: Vec<Score> = values.iter().map(|v| score(*v)).collect();
            sorted.sort_unstable();
            let middle = (sorted.len() - 1) / 2;
            let mut moved: Vec<Score> = values.iter().map(|v| score(*v)).collect();
            let at = at % moved.len();
            moved[at] = score(to);
            let after = lower_median(&moved).unwrap();
            prop_assert!(after >= sorted[middle.saturating_sub(1)]);
            prop_assert!(after <= sorted[(middle + 1).min(sorted.len() - 1)]);
        }
    }
}
