//! Rules: which labels are good, and which scores accept.
//!
//! A rule is read once and said in every report. Labels and scores are compared as they are
//! written; nothing is rounded and no word is guessed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::CalibrationError;
use crate::dataset::LabelValue;
use crate::score::Scale;

/// Which labels are good: `>=x`, `=label`, or a list of labels.
#[derive(Clone, Debug, PartialEq)]
pub enum Positive {
    /// Numbers at or above this one.
    AtLeast(f64),
    /// One of these values.
    OneOf(Vec<LabelValue>),
}

impl Positive {
    /// Whether one label is good; `None` for a word where numbers are compared.
    #[must_use]
    pub fn matches(&self, label: &LabelValue) -> Option<bool> {
        match (self, label) {
            (Self::AtLeast(least), LabelValue::Number(number)) => Some(number >= least),
            (Self::AtLeast(_), LabelValue::Text(_)) => None,
            (Self::OneOf(values), label) => Some(values.contains(label)),
        }
    }

    /// What to ask of a rule that names single numbers while higher labels count as bad:
    /// `labels` are all of them. `None` for other rules, for words, and where there are just
    /// two values, which are names and no scale.
    #[must_use]
    pub fn doubt(&self, labels: impl Iterator<Item = f64> + Clone) -> Option<String> {
        let Self::OneOf(values) = self else { return None };
        let mut named = Vec::with_capacity(values.len());
        for value in values {
            match value {
                LabelValue::Number(number) => named.push(*number),
                LabelValue::Text(_) => return None,
            }
        }
        let most = named.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = named.iter().copied().fold(f64::INFINITY, f64::min);
        let first = labels.clone().next()?;
        let second = labels.clone().find(|label| *label != first)?;
        labels.clone().find(|label| *label != first && *label != second)?;
        let n = labels.clone().count();
        let above = labels.filter(|label| *label > most).count();
        (above > 0).then(|| {
            format!(
                "by the rule `{self}` {above} of {n} labels are above {most} and count as bad: is `>={least}` meant?"
            )
        })
    }

    /// Whether a label on this scale can be good, though none that was seen is. Words have no
    /// scale, and numbers may lie on none.
    #[must_use]
    pub fn possible(&self, scale: Option<&Scale>) -> bool {
        let Some(scale) = scale else { return false };
        match self {
            Self::AtLeast(least) => *least <= scale.high(),
            Self::OneOf(values) => values.iter().any(|value| match value {
                LabelValue::Number(number) => (scale.low()..=scale.high()).contains(number),
                LabelValue::Text(_) => false,
            }),
        }
    }

    /// Whether a judge's score is one of the good values.
    #[must_use]
    pub fn holds(&self, score: f64) -> bool {
        self.matches(&LabelValue::Number(score)).unwrap_or(false)
    }
}

fn value(text: &str) -> LabelValue {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => LabelValue::Number(number),
        _ => LabelValue::Text(text.to_owned()),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

impl FromStr for Positive {
    type Err = CalibrationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || CalibrationError::Positive { text: text.to_owned() };
        let trimmed = text.trim();
        if let Some(rest) = trimmed.strip_prefix(">=") {
            return number(rest).map(Self::AtLeast).ok_or_else(wrong);
        }
        // On a graded scale `4` is meant as `>=4` and would be read as "exactly 4". Labels of 0
        // and 1 are the only numbers that are commonly names.
        if let Some(bare) = number(trimmed)
            && bare != 0.0
            && bare != 1.0
        {
            return Err(CalibrationError::BareNumber { text: trimmed.to_owned() });
        }
        let list = trimmed.strip_prefix('=').unwrap_or(trimmed);
        // `<4` and `>4` would be read as words that no label has.
        if list.starts_with(['<', '>', '=', '!']) {
            return Err(wrong());
        }
        let values: Vec<LabelValue> = list.split(',').map(|part| value(part.trim())).collect();
        if values.iter().any(|value| *value == LabelValue::Text(String::new())) {
            return Err(wrong());
        }
        Ok(Self::OneOf(values))
    }
}

impl fmt::Display for Positive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">={least}"),
            Self::OneOf(values) => {
                let values: Vec<String> = values.iter().map(LabelValue::to_string).collect();
                write!(f, "={}", values.join(","))
            }
        }
    }
}

/// What a graded score must reach to accept: `>=x`, on the judge's own scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accept(pub f64);

impl FromStr for Accept {
    type Err = CalibrationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.trim().strip_prefix(">=").and_then(number);
        rest.map(Self).ok_or_else(|| CalibrationError::Accept { text: text.to_owned() })
    }
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ">={}", self.0)
    }
}

macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

as_text!(Positive, Accept);

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: &str) -> LabelValue {
        LabelValue::Text(word.to_owned())
    }

    #[test]
    fn the_three_forms_are_understood_and_written_back() {
        for rule in [">=4", "=1", "=good,很好", "=0.5,1"] {
            assert_eq!(rule.parse::<Positive>().unwrap().to_string(), rule);
        }
        assert_eq!(
            "a, b".parse::<Positive>().unwrap(),
            Positive::OneOf(vec![text("a"), text("b")])
        );
        assert_eq!(
            "1.0".parse::<Positive>().unwrap().matches(&LabelValue::Number(1.0)),
            Some(true)
        );
    }

    #[test]
    fn other_comparisons_and_empty_values_are_refused() {
        for rule in ["", "=", ">4", "<=2", ">=x", ">=", "a,,b", ">=nan", "==1", "!=1", ">=inf"] {
            assert!(rule.parse::<Positive>().is_err(), "{rule}");
        }
        for rule in ["4", ">4", ">=", "=4", ">=inf"] {
            assert!(rule.parse::<Accept>().is_err(), "{rule}");
        }
    }

    #[test]
    fn a_bare_number_of_a_graded_scale_is_refused_with_both_readings() {
        for bare in ["4", "2", "0.5", " 3 ", "-1"] {
            let refused = bare.parse::<Positive>().unwrap_err().to_string();
            let bare = bare.trim();
            assert!(refused.contains(&format!("`>={bare}`")), "{refused}");
            assert!(refused.contains(&format!("`={bare}`")), "{refused}");
        }
        for clear in ["1", "0", "4,5", "=4", ">=4"] {
            assert!(clear.parse::<Positive>().is_ok(), "{clear}");
        }
    }

    #[test]
    fn labels_above_a_named_number_are_doubted_on_a_scale_alone() {
        let doubt = |rule: &str, labels: &[f64]| {
            rule.parse::<Positive>().unwrap().doubt(labels.iter().copied())
        };
        let said = doubt("=4", &[1.0, 2.0, 4.0, 5.0, 5.0]).unwrap();
        assert!(said.contains("2 of 5 labels are above 4 and count as bad"), "{said}");
        assert!(said.contains("is `>=4` meant?"), "{said}");
        assert!(doubt("=3,4", &[1.0, 3.0, 5.0]).unwrap().contains("`>=3`"));
        assert_eq!(doubt("=4,5", &[1.0, 4.0, 5.0]), None);
        assert_eq!(doubt(">=4", &[1.0, 4.0, 5.0]), None);
        assert_eq!(doubt("=0", &[0.0, 1.0, 1.0]), None, "two values are names");
        assert_eq!(doubt("=yes", &[0.0, 1.0, 2.0]), None);
        assert_eq!(doubt("=4", &[]), None);
    }

    #[test]
    fn a_word_is_neither_above_nor_below_a_number() {
        assert_eq!(Positive::AtLeast(1.0).matches(&text("yes")), None);
        assert_eq!("=yes".parse::<Positive>().unwrap().matches(&text("no")), Some(false));
    }
}
