//! `length`: how many words, characters, sentences, paragraphs or lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Between, Check, Finding, NotApplicable, Of, Rule};
use crate::case::Case;
use crate::text;

/// Options of `length`; at least one range.
///
/// Score: for each range 1 inside, `count / min` below, `max / count` above (with
/// `graded = false`: 0 outside); the mean over the ranges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthSpec {
    /// The text that is counted.
    #[serde(default)]
    pub of: Of,
    /// Words; scripts without spaces are cut into characters, or into dictionary words in a
    /// build with the feature `cjk`.
    #[serde(default)]
    pub words: Option<Between>,
    /// Characters as a reader counts them, white space included, that at the ends not.
    #[serde(default)]
    pub characters: Option<Between>,
    /// Sentences.
    #[serde(default)]
    pub sentences: Option<Between>,
    /// Blocks of text with a blank line between them.
    #[serde(default)]
    pub paragraphs: Option<Between>,
    /// Lines that are not blank.
    #[serde(default)]
    pub lines: Option<Between>,
    /// Whether a near miss scores more than a far one.
    #[serde(default = "yes")]
    pub graded: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Debug)]
enum Unit {
    Words,
    Characters,
    Sentences,
    Paragraphs,
    Lines,
}

impl Unit {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Words => ("word", "words"),
            Self::Characters => ("character", "characters"),
            Self::Sentences => ("sentence", "sentences"),
            Self::Paragraphs => ("paragraph", "paragraphs"),
            Self::Lines => ("line", "lines"),
        }
    }

    fn count(self, text: &str) -> u64 {
        let count = match self {
            Self::Words => text::count_words(text),
            Self::Characters => text::count_graphemes(text.trim()),
            Self::Sentences => text::sentences(text).count(),
            Self::Paragraphs => text::paragraphs(text).count(),
            Self::Lines => text::count_lines(text),
        };
        count as u64
    }
}

impl LengthSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        let given = [
            (Unit::Words, self.words),
            (Unit::Characters, self.characters),
            (Unit::Sentences, self.sentences),
            (Unit::Paragraphs, self.paragraphs),
            (Unit::Lines, self.lines),
        ];
        let mut ranges = Vec::new();
        for (unit, range) in given {
            if let Some(range) = range {
                ranges.push((unit, range.check(unit.names().1)?));
            }
        }
        if ranges.is_empty() {
            return Err(BuildError::invalid(
                "rule",
                "`length` has nothing to count: expected `words`, `characters`, `sentences`, `paragraphs` or `lines`, such as `words = { max = 150 }`",
            ));
        }
        Ok(Box::new(Length { of: self.of, ranges, graded: self.graded }))
    }
}

#[derive(Debug)]
struct Length {
    of: Of,
    ranges: Vec<(Unit, Between)>,
    graded: bool,
}

impl Rule for Length {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let text = self.of.text(case)?;
        let checks: Vec<Check> = self
            .ranges
            .iter()
            .map(|(unit, range)| {
                let count = unit.count(text);
                let (one, many) = unit.names();
                let complaint = range.complaint(count, one, many);
                let check = if self.graded {
                    Check::graded(many, range.score(count), complaint)
                } else {
                    Check::plain(many, complaint)
                };
                check.raw(count)
            })
            .collect();
        let count = checks.first().and_then(|check| check.raw.clone());
        let mut finding = Finding::mean(checks);
        if self.ranges.len() == 1 {
            finding.raw = count;
        }
        Ok(finding)
    }
}
