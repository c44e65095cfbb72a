//! The scale that labels are on: declared by the user, or inferred from the values and said.
//!
//! Inference is a reading of the values, not a measurement, so its note says what it rests on
//! and whether the ends of the scale occur. Rules, first match: whole numbers in {0, 1} are
//! `binary`; fractions in [0,1] are `unit`; other numbers take the least of `LOW-5`, `LOW-10`
//! and `LOW-100` that holds them, where `LOW` is 1 if no value is below 1 and else 0 (whole
//! numbers from 0 to at most 5 end at the highest seen, and 1 and 2 alone are `1-2`, as in
//! pairwise labels; fractions make it a range, `1..5`); numbers beyond these span what was
//! seen. A pair of words such as true and false is `binary`; any other words are categories
//! without a scale.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::error::{RowProblem, shorten};
use super::labels::LabelValue;
use crate::score::{Scale, ScaleError, Score, ScoreError};

/// Words that are 0 and 1, in lower case.
const PAIRS: [(&str, &str); 3] = [("false", "true"), ("no", "yes"), ("fail", "pass")];

/// More different words than this are no categories but free text; the rest is not listed.
const MAX_CATEGORIES: usize = 100;

/// Declared scales: one for all criteria, and others for single ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scales {
    /// The scale of the criteria that are not named.
    pub default: Option<Scale>,
    /// The scale of each criterion named.
    pub criteria: BTreeMap<String, Scale>,
}

impl Scales {
    /// Reads `SCALE` or `CRITERION=SCALE`, such as `1-5` and `Decision=binary`. The last one
    /// for a criterion holds.
    ///
    /// # Errors
    /// When a text is no scale.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, ScaleError> {
        let mut scales = Self::default();
        for text in texts {
            match text.rsplit_once('=') {
                Some((criterion, scale)) => {
                    scales.criteria.insert(criterion.to_owned(), scale.parse()?);
                }
                None => scales.default = Some(text.parse()?),
            }
        }
        Ok(scales)
    }

    /// The declared scale of a criterion.
    #[must_use]
    pub fn get(&self, criterion: &str) -> Option<Scale> {
        self.criteria.get(criterion).copied().or(self.default)
    }

    /// Refuses a value off its declared scale; anything goes where none is declared.
    pub(crate) fn check(&self, criterion: &str, value: &LabelValue) -> Result<(), RowProblem> {
        let Some(scale) = self.get(criterion) else { return Ok(()) };
        match value {
            LabelValue::Number(number) => {
                scale.score(*number).map(|_| ()).map_err(RowProblem::OffScale)
            }
            LabelValue::Text(word) if scale == Scale::BINARY && word_score(word).is_some() => {
                Ok(())
            }
            LabelValue::Text(word) => {
                Err(RowProblem::NotOnScale { text: shorten(word), scale: scale.to_string() })
            }
        }
    }
}

fn word_score(word: &str) -> Option<Score> {
    let word = word.trim().to_lowercase();
    PAIRS.iter().find_map(|(bad, good)| match word.as_str() {
        w if w == *bad => Some(Score::ZERO),
        w if w == *good => Some(Score::ONE),
        _ => None,
    })
}

/// Where a scale comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScaleOrigin {
    /// The user says so.
    Declared,
    /// The values say so.
    Inferred,
}

/// The scale of one criterion's labels.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LabelScale {
    /// The scale; `None` for words that have no order, or a single number that no rule fits.
    pub scale: Option<Scale>,
    /// Where it comes from.
    pub origin: ScaleOrigin,
    /// The words that occur, in alphabetical order; empty for numbers.
    pub categories: Vec<String>,
    /// What is said about it, such as ``inferred `1-5` from 1200 numbers between 1 and 4``.
    pub note: String,
}

/// Why a label has no score.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelScoreError {
    /// The criterion's labels are on no scale.
    #[error("label `{0}` is on no scale: declare one")]
    NoScale(String),
    /// The value is off the scale.
    #[error(transparent)]
    OffScale(#[from] ScoreError),
}

impl LabelScale {
    /// The score of a label on this scale.
    ///
    /// # Errors
    /// When there is no scale, or the label is not on it.
    pub fn score(&self, label: &LabelValue) -> Result<Score, LabelScoreError> {
        let none = || LabelScoreError::NoScale(shorten(&label.to_string()));
        let scale = self.scale.ok_or_else(none)?;
        match label {
            LabelValue::Number(number) => Ok(scale.score(*number)?),
            LabelValue::Text(word) if scale == Scale::BINARY => word_score(word).ok_or_else(none),
            LabelValue::Text(_) => Err(none()),
        }
    }
}

/// What the labels of one criterion were so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    numbers: u64,
    low: f64,
    high: f64,
    fractions: bool,
    words: BTreeSet<String>,
    first_number: Option<u64>,
    first_word: Option<(u64, String)>,
}

impl Observed {
    pub(crate) fn add(&mut self, line: u64, value: &LabelValue) {
        match value {
            LabelValue::Number(number) => {
                let first = self.numbers == 0;
                self.low = if first { *number } else { self.low.min(*number) };
                self.high = if first { *number } else { self.high.max(*number) };
                self.fractions |= number.fract() != 0.0;
                self.numbers += 1;
                self.first_number.get_or_insert(line);
            }
            LabelValue::Text(word) => {
                self.first_word.get_or_insert_with(|| (line, word.clone()));
                if self.words.len() <= MAX_CATEGORIES && !self.words.contains(word) {
                    self.words.insert(word.clone());
                }
            }
        }
    }

    /// The line of the first number, and of the first word with it, when there are both.
    pub(crate) fn mixed(&self) -> Option<(u64, (u64, String))> {
        Some((self.first_number?, self.first_word.clone()?))
    }

    pub(crate) fn scale(self, declared: Option<Scale>) -> LabelScale {
        let (scale, origin, note) = match declared {
            Some(scale) => (Some(scale), ScaleOrigin::Declared, format!("declared `{scale}`")),
            None if self.numbers > 0 => {
                let (scale, note) = self.infer_numbers();
                (scale, ScaleOrigin::Inferred, note)
            }
            None => {
                let (scale, note) = self.infer_words();
                (scale, ScaleOrigin::Inferred, note)
            }
        };
        LabelScale { scale, origin, categories: self.words.into_iter().collect(), note }
    }

    fn infer_numbers(&self) -> (Option<Scale>, String) {
        let Self { low, high, fractions, numbers, .. } = *self;
        let seen = if low == high {
            format!("{numbers} numbers, all {low}")
        } else {
            format!("{numbers} numbers between {low} and {high}")
        };
        let Some(scale) = fit(low, high, fractions) else {
            return (None, format!("no scale fits {seen}: declare one"));
        };
        let mut note = format!("inferred `{scale}` from {seen}");
        let absent: Vec<String> = [scale.low(), scale.high()]
            .into_iter()
            .filter(|end| *end != low && *end != high)
            .map(|end| end.to_string())
            .collect();
        if !absent.is_empty() {
            note.push_str(&format!(
                ", none of them {}: declare the scale if it is another",
                absent.join(" or ")
            ));
        }
        (Some(scale), note)
    }

    fn infer_words(&self) -> (Option<Scale>, String) {
        let lower: BTreeSet<String> =
            self.words.iter().map(|word| word.trim().to_lowercase()).collect();
        for (bad, good) in PAIRS {
            if !lower.is_empty() && lower.iter().all(|word| word == bad || word == good) {
                let note = format!("inferred `binary` from the words `{bad}` (0) and `{good}` (1)");
                return (Some(Scale::BINARY), note);
            }
        }
        let more = if self.words.len() > MAX_CATEGORIES { "more than " } else { "" };
        let count = self.words.len().min(MAX_CATEGORIES);
        (None, format!("{more}{count} categories without a scale"))
    }
}

fn fit(low: f64, high: f64, fractions: bool) -> Option<Scale> {
    if low >= 0.0 && high <= 1.0 {
        return Some(if fractions { Scale::UNIT } else { Scale::BINARY });
    }
    let (mut from, mut to) = (low, high);
    if low >= 0.0 && high <= 100.0 {
        from = if low >= 1.0 { 1.0 } else { 0.0 };
        to = [5.0, 10.0, 100.0].into_iter().find(|end| high <= *end)?;
        let short = (from == 0.0 && high <= 5.0) || (from == 1.0 && low < high && high <= 2.0);
        if short && !fractions {
            to = high;
        }
    }
    if fractions {
        return Scale::range(from, to).ok();
    }
    // Whole numbers beyond 32 bits are no rating levels.
    let whole = |number: f64| format!("{number}").parse::<i32>().ok();
    Scale::levels_between(whole(from)?, whole(to)?).ok()
}
