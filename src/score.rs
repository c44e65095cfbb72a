//! Scores and the scales they are read from.
//!
//! A [`Score`] is a number in [0,1] and nothing else: NaN, infinities and values outside
//! the range cannot be represented, so no later step has to check again. A [`Scale`] turns
//! a judge's or rater's own number into a score, or says why it cannot.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A finite number in \[0,1\]; higher is better.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Score(f64);

impl Eq for Score {}

#[expect(
    clippy::derive_ord_xor_partial_ord,
    reason = "a score is never NaN, so the order is total"
)]
impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Why a number is not a score.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// NaN or infinite.
    #[error("`{0}` is not a finite number")]
    NotFinite(f64),
    /// Finite but outside the scale.
    #[error("`{value}` is outside the scale {scale}")]
    OutOfRange {
        /// The number found.
        value: f64,
        /// The scale it was read on, as written in configuration.
        scale: String,
    },
    /// Inside the range, but not one of the scale's levels.
    #[error("`{value}` is not a level of the scale {scale}")]
    NotALevel {
        /// The number found.
        value: f64,
        /// The scale it was read on, as written in configuration.
        scale: String,
    },
}

impl Score {
    /// The worst score.
    pub const ZERO: Self = Self(0.0);
    /// The best score.
    pub const ONE: Self = Self(1.0);

    /// A score from a number in [0,1].
    ///
    /// # Errors
    /// NaN, infinities and numbers outside the range are refused; nothing is clamped.
    pub fn new(value: f64) -> Result<Self, ScoreError> {
        if !value.is_finite() {
            return Err(ScoreError::NotFinite(value));
        }
        if !(0.0..=1.0).contains(&value) {
            return Err(ScoreError::OutOfRange { value, scale: "unit".into() });
        }
        // -0.0 would order below 0.0 under `total_cmp`.
        Ok(Self(value + 0.0))
    }

    /// A score from a number that arithmetic on scores produced, rounded to twelve decimals:
    /// the rounding error beyond the ends (at most 1e-9) is cut, anything further is an error
    /// as in [`Score::new`].
    ///
    /// # Errors
    /// As [`Score::new`].
    pub fn from_arithmetic(value: f64) -> Result<Self, ScoreError> {
        // Sums of decimal fractions are off in the sixteenth digit: a mean of three times 0.7
        // must be 0.7, or it would fail a threshold of 0.7.
        const DIGITS: f64 = 1e12;
        const ROUNDING: f64 = 1e-9;
        if !value.is_finite() {
            return Err(ScoreError::NotFinite(value));
        }
        if value < 0.0 && value > -ROUNDING {
            return Ok(Self::ZERO);
        }
        if value > 1.0 && value < 1.0 + ROUNDING {
            return Ok(Self::ONE);
        }
        Self::new((value * DIGITS).round() / DIGITS)
    }

    /// The share `part / whole`; `whole` of 0 is an error (not finite).
    ///
    /// # Errors
    /// As [`Score::new`].
    pub fn share(part: f64, whole: f64) -> Result<Self, ScoreError> {
        Self::from_arithmetic(part / whole)
    }

    /// The number, in [0,1].
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// `1 - score`.
    #[must_use]
    pub fn inverted(self) -> Self {
        Self::from_arithmetic(1.0 - self.0).unwrap_or(self)
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Score {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Score".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// A judge's or rater's own scale: a closed range, with or without fixed levels.
///
/// Written in configuration as `unit` (any number in [0,1]), `binary` (0 or 1), `1-5`
/// (whole numbers), `0-1/0.25` (levels a step apart) or `0..10` (any number in the range).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    step: Option<f64>,
}

/// Why a text is not a scale.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a scale: expected `unit`, `binary`, whole levels such as `1-5`, levels a step apart such as `0-1/0.25`, or a range such as `0..10`"
)]
pub struct ScaleError {
    /// What was written.
    pub text: String,
}

impl Scale {
    /// Any number in [0,1].
    pub const UNIT: Self = Self { low: 0.0, high: 1.0, step: None };
    /// 0 or 1.
    pub const BINARY: Self = Self { low: 0.0, high: 1.0, step: Some(1.0) };

    /// Whole-number levels from `low` to `high`.
    ///
    /// # Errors
    /// When `low` is not below `high`.
    pub fn levels_between(low: i32, high: i32) -> Result<Self, ScaleError> {
        if low >= high {
            return Err(ScaleError { text: format!("{low}-{high}") });
        }
        Ok(Self { low: f64::from(low), high: f64::from(high), step: Some(1.0) })
    }

    /// Any number between `low` and `high`.
    ///
    /// # Errors
    /// When the ends are not finite or `low` is not below `high`.
    pub fn range(low: f64, high: f64) -> Result<Self, ScaleError> {
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Err(ScaleError { text: format!("{low}..{high}") });
        }
        Ok(Self { low, high, step: None })
    }

    /// The lowest value.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The highest value.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The levels in ascending order; `None` for a continuous scale.
    #[must_use]
    pub fn levels(&self) -> Option<Vec<f64>> {
        let step = self.step?;
        let count = ((self.high - self.low) / step).round() as usize;
        Some((0..=count).map(|i| self.low + step * i as f64).collect())
    }

    /// The score of a value on this scale: `(value - low) / (high - low)`.
    ///
    /// # Errors
    /// A value that is not finite, outside the range, or between levels is refused; nothing
    /// is clamped or rounded.
    pub fn score(&self, value: f64) -> Result<Score, ScoreError> {
        self.position(value).and_then(|position| {
            if let Some(step) = self.step {
                let steps = (value - self.low) / step;
                if (steps - steps.round()).abs() > 1e-9 {
                    return Err(ScoreError::NotALevel { value, scale: self.to_string() });
                }
            }
            Ok(position)
        })
    }

    /// As [`Scale::score`], but a value between levels is allowed: for means of several
    /// raters and expectations over levels.
    ///
    /// # Errors
    /// A value that is not finite or outside the range is refused.
    pub fn position(&self, value: f64) -> Result<Score, ScoreError> {
        if !value.is_finite() {
            return Err(ScoreError::NotFinite(value));
        }
        if value < self.low || value > self.high {
            return Err(ScoreError::OutOfRange { value, scale: self.to_string() });
        }
        if (self.low, self.high) == (0.0, 1.0) {
            // Nothing to compute, so nothing to round: a score is read as it was written.
            return Score::new(value);
        }
        Score::from_arithmetic((value - self.low) / (self.high - self.low))
    }

    /// The value on this scale that has `score`.
    #[must_use]
    pub fn value(&self, score: Score) -> f64 {
        self.low + score.get() * (self.high - self.low)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.step) {
            (Self::UNIT, _) => f.write_str("unit"),
            (Self::BINARY, _) => f.write_str("binary"),
            (_, None) => write!(f, "{}..{}", self.low, self.high),
            (_, Some(1.0)) => write!(f, "{}-{}", self.low, self.high),
            (_, Some(step)) => write!(f, "{}-{}/{step}", self.low, self.high),
        }
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ScaleError { text: text.to_owned() };
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| error());
        match text.trim() {
            "unit" => return Ok(Self::UNIT),
            "binary" => return Ok(Self::BINARY),
            _ => {}
        }
        if let Some((low, high)) = text.split_once("..") {
            return Self::range(number(low)?, number(high)?).map_err(|_| error());
        }
        let (ends, step) = match text.split_once('/') {
            Some((ends, step)) => (ends, number(step)?),
            None => (text, 1.0),
        };
        // The separator is the first hyphen after a digit, so that `-1-1` reads as -1 to 1.
        let separator = ends
            .char_indices()
            .skip(1)
            .find(|(i, c)| *c == '-' && ends[..*i].ends_with(|c: char| c.is_ascii_digit()))
            .map(|(i, _)| i)
            .ok_or_else(error)?;
        let (low, high) = (number(&ends[..separator])?, number(&ends[separator + 1..])?);
        let steps = (high - low) / step;
        let whole = (steps - steps.round()).abs() < 1e-9;
        if !(low < high && step > 0.0 && high.is_finite() && low.is_finite() && whole) {
            return Err(error());
        }
        Ok(Self { low, high, step: Some(step) })
    }
}

impl Serialize for Scale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Scale {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scale".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "`unit`, `binary`, whole levels such as `1-5`, levels a step apart such as `0-1/0.25`, or a range such as `0..10`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_finite_and_in_the_unit_interval() {
        assert!(Score::new(f64::NAN).is_err());
        assert!(Score::new(f64::INFINITY).is_err());
        assert!(Score::new(1.0 + 1e-12).is_err());
        assert!(Score::new(-1e-300).is_err());
        assert_eq!(Score::new(-0.0).unwrap().cmp(&Score::ZERO), std::cmp::Ordering::Equal);
        assert!(Score::share(1.0, 0.0).is_err());
        assert!(serde_json::from_str::<Score>("1.5").is_err());
    }

    #[test]
    fn arithmetic_on_equal_scores_gives_that_score() {
        let three = Score::from_arithmetic((0.7 + 0.7 + 0.7) / 3.0).unwrap();
        assert_eq!(three.get(), 0.7);
        assert_eq!(Score::new(0.9).unwrap().inverted().get(), 0.1);
        let exact = 0.302_056_718_472_042;
        assert_eq!(Scale::UNIT.score(exact).unwrap().get(), exact);
        assert!(Score::from_arithmetic(f64::NAN).is_err());
    }

    #[test]
    fn scales_round_trip_through_their_text() {
        for text in ["unit", "binary", "1-5", "1-10", "-1-1", "0..10", "0-1/0.25", "-4-4"] {
            let scale: Scale = text.parse().unwrap();
            assert_eq!(scale.to_string(), text);
            assert_eq!(scale.score(scale.high()).unwrap(), Score::ONE);
            assert_eq!(scale.score(scale.low()).unwrap(), Score::ZERO);
        }
        for text in ["", "5-1", "1-1", "a-b", "1", "0-1/0.3", "0-1/0", "1-5-7", "nan..1"] {
            assert!(text.parse::<Scale>().is_err(), "{text} is no scale");
        }
    }

    #[test]
    fn a_value_off_the_scale_is_refused_and_never_clamped() {
        let stars: Scale = "1-5".parse().unwrap();
        assert_eq!(stars.score(4.0).unwrap().get(), 0.75);
        assert!(matches!(stars.score(10.0), Err(ScoreError::OutOfRange { .. })));
        assert!(matches!(stars.score(0.0), Err(ScoreError::OutOfRange { .. })));
        assert!(matches!(stars.score(3.5), Err(ScoreError::NotALevel { .. })));
        assert_eq!(stars.position(3.5).unwrap().get(), 0.625);
        assert!(matches!(stars.score(f64::NAN), Err(ScoreError::NotFinite(_))));
        assert_eq!(stars.levels().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!("0-1/0.25".parse::<Scale>().unwrap().levels().unwrap().len(), 5);
    }
}
