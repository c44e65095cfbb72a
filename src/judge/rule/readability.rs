//! `readability`: how hard English prose is to read.
//!
//! The formulas were fitted to English school texts and mean nothing in another language: a
//! text that is not mostly in Latin letters is an abstention. (French or German in Latin
//! letters can't be told apart here; the `language` rule can.)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_script::{Script, UnicodeScript};

use super::super::BuildError;
use super::finding::{BetweenNumbers, Check, Finding, NotApplicable, Of, Rule};
use crate::case::Case;
use crate::text;

/// Options of `readability`; at least one range.
///
/// Score: for each index 1 inside its range, falling by 0.1 for each grade outside (for
/// `ease`: each 10 points), 0 from ten grades on; the mean over the indices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadabilitySpec {
    /// The text that is measured.
    #[serde(default)]
    pub of: Of,
    /// Flesch-Kincaid grade: years of school in the United States; 8 is plain.
    #[serde(default)]
    pub grade: Option<BetweenNumbers>,
    /// Flesch reading ease: 0 to 100 for most texts, higher is easier; 60 is plain.
    #[serde(default)]
    pub ease: Option<BetweenNumbers>,
}

/// A readability index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadabilityIndex {
    /// Flesch-Kincaid grade: `0.39 words/sentences + 11.8 syllables/words - 15.59` (Kincaid
    /// et al., 1975).
    Grade,
    /// Flesch reading ease: `206.835 - 1.015 words/sentences - 84.6 syllables/words` (Flesch,
    /// 1948).
    Ease,
}

impl ReadabilityIndex {
    /// The index of a text; `None` where it has no English word.
    #[must_use]
    pub fn of(self, text: &str) -> Option<f64> {
        let (mut words, mut syllables) = (0_u64, 0_u64);
        for word in text::words(text).filter(|word| word.chars().any(char::is_alphabetic)) {
            words += 1;
            syllables += count_syllables(word);
        }
        if words == 0 {
            return None;
        }
        let sentences = text::sentences(text).count().max(1) as f64;
        let (words, syllables) = (words as f64, syllables as f64);
        Some(match self {
            Self::Grade => 0.39 * words / sentences + 11.8 * syllables / words - 15.59,
            Self::Ease => 206.835 - 1.015 * words / sentences - 84.6 * syllables / words,
        })
    }
}

/// Syllables of an English word by its spelling: groups of vowels, less a silent `e`; at
/// least 1. A heuristic: it is wrong for words such as `create` or `being`, so an index can
/// differ from one that a dictionary of pronunciations gives.
fn count_syllables(word: &str) -> u64 {
    let letters: Vec<char> =
        word.chars().flat_map(char::to_lowercase).filter(char::is_ascii_alphabetic).collect();
    let vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y');
    let mut groups = 0;
    for (at, c) in letters.iter().enumerate() {
        if vowel(*c) && (at == 0 || !vowel(letters[at - 1])) {
            groups += 1;
        }
    }
    let ends = |end: &str| {
        letters.iter().rev().zip(end.chars().rev()).filter(|(a, b)| **a == *b).count() == end.len()
            && letters.len() > end.len()
    };
    let before = |back: usize| letters.len().checked_sub(back + 1).map(|at| letters[at]);
    let silent = if ends("es") {
        // The ending is heard after a hiss: `boxes`, `pages`, but not in `makes`.
        before(2)
            .is_some_and(|c| !vowel(c) && !matches!(c, 's' | 'x' | 'z' | 'c' | 'g' | 'h' | 'l'))
    } else if ends("ed") {
        before(2).is_some_and(|c| !vowel(c) && !matches!(c, 't' | 'd'))
    } else if ends("e") {
        let syllabic_l = before(1) == Some('l') && before(2).is_some_and(|c| !vowel(c));
        before(1).is_some_and(|c| !vowel(c)) && !syllabic_l
    } else {
        false
    };
    if silent && groups > 1 {
        groups -= 1;
    }
    groups.max(1)
}

impl ReadabilitySpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        let mut indices = Vec::new();
        if let Some(range) = self.grade {
            indices.push((ReadabilityIndex::Grade, range.check("grade")?));
        }
        if let Some(range) = self.ease {
            indices.push((ReadabilityIndex::Ease, range.check("ease")?));
        }
        if indices.is_empty() {
            return Err(BuildError::invalid(
                "rule",
                "`readability` has nothing to check: expected `grade` or `ease`, such as `grade = { max = 9 }`",
            ));
        }
        Ok(Box::new(Readability { of: self.of, indices }))
    }
}

#[derive(Debug)]
struct Readability {
    of: Of,
    indices: Vec<(ReadabilityIndex, BetweenNumbers)>,
}

impl Rule for Readability {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let text = self.of.text(case)?;
        let (mut letters, mut latin) = (0_u64, 0_u64);
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            letters += 1;
            latin += u64::from(c.is_ascii() || c.script() == Script::Latin);
        }
        if letters == 0 || latin * 10 < letters * 9 {
            return Err(NotApplicable::new(format!(
                "the case's `{}` is not English prose, the only kind the formulas are for",
                self.of.name()
            )));
        }
        let mut checks = Vec::new();
        for (index, range) in &self.indices {
            let Some(value) = index.of(text) else {
                return Err(NotApplicable::new(format!(
                    "the case's `{}` has no words",
                    self.of.name()
                )));
            };
            let (name, step) = match index {
                ReadabilityIndex::Grade => ("grade", 10.0),
                ReadabilityIndex::Ease => ("ease", 100.0),
            };
            let distance = range.distance(value);
            let hard = match index {
                ReadabilityIndex::Grade => range.max.is_some_and(|max| value > max),
                ReadabilityIndex::Ease => range.min.is_some_and(|min| value < min),
            };
            let advice = if hard {
                "use shorter sentences and words"
            } else {
                "use longer sentences and more exact words"
            };
            let complaint = (distance > 0.0).then(|| {
                let title = match index {
                    ReadabilityIndex::Grade => "Flesch-Kincaid grade",
                    ReadabilityIndex::Ease => "Flesch reading ease",
                };
                format!("{title} is {value:.1}: expected {range}; {advice}")
            });
            checks
                .push(Check::graded(name, (1.0 - distance / step).max(0.0), complaint).raw(value));
        }
        let raw = (checks.len() == 1).then(|| checks[0].raw.clone()).flatten();
        let mut finding = Finding::mean(checks);
        finding.raw = raw;
        Ok(finding.note("language", "en"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syllables_of_common_words_are_right() {
        for (word, expected) in [
            ("cat", 1),
            ("table", 2),
            ("the", 1),
            ("make", 1),
            ("makes", 1),
            ("boxes", 2),
            ("walked", 1),
            ("wanted", 2),
            ("beautiful", 3),
            ("education", 4),
            ("rhythm", 1),
            ("I", 1),
            ("apple", 2),
            ("people", 2),
            ("be", 1),
            ("pages", 2),
            ("it's", 1),
            ("syllable", 3),
        ] {
            assert_eq!(count_syllables(word), expected, "{word}");
        }
    }

    #[test]
    fn indices_agree_with_the_formulas_worked_by_hand() {
        // 6 words, 1 sentence, 6 syllables.
        let text = "The cat sat on the mat.";
        let grade = ReadabilityIndex::Grade.of(text).unwrap();
        assert!((grade - (0.39 * 6.0 + 11.8 - 15.59)).abs() < 1e-12, "{grade}");
        assert!((grade - -1.45).abs() < 1e-9);
        let ease = ReadabilityIndex::Ease.of(text).unwrap();
        assert!((ease - 116.145).abs() < 1e-9, "{ease}");
        // 9 words, 2 sentences, 13 syllables: ta-ble, ed-u-ca-tion, wan-ted.
        let text = "She wanted a table. Education is good for all.";
        let ease = ReadabilityIndex::Ease.of(text).unwrap();
        assert!((ease - (206.835 - 1.015 * 4.5 - 84.6 * 14.0 / 9.0)).abs() < 1e-9, "{ease}");
        assert_eq!(ReadabilityIndex::Ease.of("... 12"), None);
    }
}
