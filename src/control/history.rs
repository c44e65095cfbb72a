//! The history of a loop: one record an output, small however large the outputs are.
//!
//! Texts are kept on disk by their hash; here are only hashes, scores, and the shingles of the
//! last outputs, which is what conditions need.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judgement::CriterionMark;
use crate::ruling::{Decision, ProfileMark};
use crate::score::Score;
use crate::text::Shingles;

/// How many outputs back near repeats are looked for. Exact ones are found over the whole
/// history.
const SIMILAR_BACK: usize = 32;

/// Tokens a shingle.
const SHINGLE: usize = 3;

/// What conditions need to know of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// A hash of its bytes.
    pub hash: String,
    /// Its shingles; `None` where the text is not known (a recording of scores).
    pub shingles: Option<Shingles>,
    /// Whether it holds nothing but white space.
    pub empty: bool,
    /// How much of its base was changed, in [0,1]; `None` where nobody measured.
    pub change: Option<f64>,
    /// The findings that the agent disputes beside it, by their hashes.
    pub disputes: Vec<String>,
}

impl Output {
    /// The facts of a text. Takes time in proportion to its length.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            hash: content_hash(text),
            shingles: Some(Shingles::of(text, SHINGLE)),
            empty: text.trim().is_empty(),
            change: None,
            disputes: Vec::new(),
        }
    }

    /// An output of which only an identity is known; outputs with different ones are taken
    /// for different.
    #[must_use]
    pub fn unknown(identity: impl Into<String>) -> Self {
        let (hash, disputes) = (identity.into(), Vec::new());
        Self { hash, shingles: None, empty: false, change: None, disputes }
    }
}

/// The hash by which an output is kept: 32 hexadecimal digits.
#[must_use]
pub(super) fn content_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// What became of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// It has a score.
    Judged,
    /// Its judging failed: it has no score, and is not zero.
    Unjudged,
    /// It passed once and not again.
    ConfirmationRejected,
    /// It passed once, and could not be judged again.
    ConfirmationNotMade,
    /// It passed as often as the policy asks.
    Accepted,
}

/// One output and what the panel said of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The first is 1.
    pub generation: u32,
    /// The hash of the output.
    pub output: String,
    /// Its score: of several judgements the lower median when it was accepted, the lowest
    /// when a confirmation failed. `None` where it was not judged.
    pub score: Option<Score>,
    /// The least and greatest score of its judgements, or the bounds that a sequential panel
    /// gives.
    pub interval: Option<(Score, Score)>,
    /// What became of it.
    pub status: RecordStatus,
    /// The panel's decision by its own threshold; `None` where it was not judged.
    pub decision: Option<Decision>,
    /// Required judges and criteria that failed.
    pub required_failed: u32,
    /// The criteria, in the rubric's order; kept for the first, the best and the last two
    /// outputs.
    pub criteria: Vec<CriterionMark>,
    /// Largest minus smallest vote.
    pub spread: Option<f64>,
    /// How much of the base was changed, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// Whether that was more than cooling allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_limit: bool,
    /// Whether fewer judges voted on it than have a seat.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
    /// What its ruling is worth under the profile in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Box<ProfileMark>>,
}

impl Record {
    /// Lets go of what only the first, the best and the newest outputs are asked for.
    pub(super) fn slim(&mut self) {
        self.criteria = Vec::new();
        self.profile = None;
    }

    /// By what outputs are ranked: accepted ones first, then those that fail the fewest
    /// required judges and criteria, then by score. `None` without a score.
    pub(super) fn rank(&self) -> Option<(bool, std::cmp::Reverse<u32>, Score)> {
        let accepted = self.status == RecordStatus::Accepted;
        Some((accepted, std::cmp::Reverse(self.required_failed), self.score?))
    }

    /// The criteria that failed, sorted.
    pub(super) fn failing(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .criteria
            .iter()
            .filter(|criterion| criterion.passed == Some(false))
            .map(|criterion| criterion.name.clone())
            .collect();
        names.sort();
        names
    }

    /// Whether the criteria are checks that pass or fail, with nothing between.
    pub(super) fn is_discrete(&self) -> bool {
        let plain = |mark: &CriterionMark| {
            mark.passed.is_some()
                && mark.score.is_none_or(|score| score == Score::ZERO || score == Score::ONE)
        };
        !self.criteria.is_empty() && self.criteria.iter().all(plain)
    }
}

/// A repeat of an earlier output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Repeat {
    /// The same as the output before.
    Exact,
    /// The same as one `period` outputs ago.
    Cycle,
    /// Near the wording of an earlier one, in [0,1].
    Near(f64),
}

/// What repeats are looked for in.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    last: BTreeMap<String, u32>,
    shingles: VecDeque<Shingles>,
}

impl Seen {
    /// How `output`, the output of `generation`, repeats an earlier one. Pure: asking twice
    /// gives the same answer, since an output enters the history only by [`Seen::add`].
    pub(super) fn repeat(&self, generation: u32, output: &Output) -> Option<Repeat> {
        match self.last.get(&output.hash) {
            Some(before) if generation - before == 1 => return Some(Repeat::Exact),
            Some(_) => return Some(Repeat::Cycle),
            None => {}
        }
        let own = output.shingles.as_ref()?;
        let most = self.shingles.iter().map(|other| own.similarity(other)).fold(0.0, f64::max);
        (!self.shingles.is_empty()).then_some(Repeat::Near(most))
    }

    /// The last generation that gave this output.
    pub(super) fn generation(&self, hash: &str) -> Option<u32> {
        self.last.get(hash).copied()
    }

    pub(super) fn add(&mut self, generation: u32, output: Output) {
        self.last.insert(output.hash, generation);
        if let Some(shingles) = output.shingles {
            if self.shingles.len() == SIMILAR_BACK {
                self.shingles.pop_front();
            }
            self.shingles.push_back(shingles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &str, b: &str) -> f64 {
        let mut seen = Seen::default();
        seen.add(1, Output::of(a));
        match seen.repeat(2, &Output::of(b)) {
            Some(Repeat::Near(similarity)) => similarity,
            Some(_) => 1.0,
            None => 0.0,
        }
    }

    #[test]
    fn b_34_looking_for_a_repeat_twice_is_no_repeat() {
        let mut seen = Seen::default();
        seen.add(1, Output::of("one"));
        let second = Output::of("two");
        assert_eq!(seen.repeat(2, &second), seen.repeat(2, &second));
        assert_eq!(seen.repeat(2, &second), Some(Repeat::Near(0.0)));
    }

    #[test]
    fn b_37_chinese_is_segmented_order_counts_and_one_digit_is_another_output() {
        let a = "人工智能正在改变我们的生活方式，越来越多的企业开始使用大语言模型来提高工作效率。";
        let b = "人工智能正在改变我们的生活方式，越来越多的公司开始使用大语言模型来提高工作效率。";
        assert!(near(a, b) > 0.6, "{}", near(a, b));
        assert!(near("a b c d", "d c b a") < 0.5);
        assert!(near("It costs 41 dollars", "It costs 42 dollars") < 0.95);
        assert!(near("41 dollars", "42 dollars") < 0.95);
    }

    #[test]
    fn b_39_b_40_the_first_output_is_found_after_any_number_of_others() {
        let mut seen = Seen::default();
        for generation in 1..=1000 {
            seen.add(generation, Output::of(&format!("output number {generation}")));
        }
        assert_eq!(seen.repeat(1001, &Output::of("output number 1")), Some(Repeat::Cycle));
        assert!(seen.shingles.len() <= SIMILAR_BACK);
    }
}
