//! `regex`: which patterns match. The engine takes linear time on any text.

use ::regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Finding, NotApplicable, Of, Rule, check_filled, quoted};
use crate::case::Case;

/// Options of `regex`.
///
/// Score: with `mode = "all"` the share of patterns that match; with `any` 1 when one does;
/// with `none` 1 when none does, else 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexSpec {
    /// The text that is searched.
    #[serde(default)]
    pub of: Of,
    /// A pattern in the syntax of the Rust crate `regex` (no look-around, no
    /// back-references).
    #[serde(default)]
    pub pattern: Option<String>,
    /// More patterns.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// How many must match.
    #[serde(default)]
    pub mode: RegexMode,
    /// Whether the whole text must match, white space at its ends aside.
    #[serde(default)]
    pub full_match: bool,
    /// Whether letter case does not matter.
    #[serde(default)]
    pub ignore_case: bool,
    /// Whether `^` and `$` match at line ends.
    #[serde(default)]
    pub multi_line: bool,
    /// Whether `.` matches a line break.
    #[serde(default)]
    pub dot_matches_new_line: bool,
}

/// How many patterns must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegexMode {
    /// All of them.
    #[default]
    All,
    /// One at least.
    Any,
    /// None.
    None,
}

impl RegexSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        let given: Vec<&String> = self.pattern.iter().chain(&self.patterns).collect();
        check_filled("pattern", &given)?;
        let mut patterns = Vec::new();
        for (index, written) in given.into_iter().enumerate() {
            let field = match (index, &self.pattern) {
                (0, Some(_)) => "pattern".to_owned(),
                (_, first) => format!("patterns[{}]", index - usize::from(first.is_some())),
            };
            // An empty pattern matches everything, which no one asks for on purpose.
            if written.is_empty() {
                return Err(BuildError::invalid(field, "is empty: expected a pattern"));
            }
            patterns.push((written.clone(), self.regex(&field, written)?));
        }
        Ok(Box::new(Patterns { of: self.of, patterns, mode: self.mode, trim: self.full_match }))
    }

    fn regex(&self, field: &str, written: &str) -> Result<Regex, BuildError> {
        let build = |pattern: &str| {
            RegexBuilder::new(pattern)
                .case_insensitive(self.ignore_case)
                .multi_line(self.multi_line)
                .dot_matches_new_line(self.dot_matches_new_line)
                .build()
        };
        // Checked as written first, so that the message shows the author's own pattern.
        let regex = build(written).map_err(|error| {
            BuildError::invalid(field, format!("is not a regular expression: {error}"))
        })?;
        if !self.full_match {
            return Ok(regex);
        }
        build(&format!("\\A(?:{written})\\z")).map_err(|error| {
            BuildError::invalid(field, format!("can't be matched in full: {error}"))
        })
    }
}

#[derive(Debug)]
struct Patterns {
    of: Of,
    patterns: Vec<(String, Regex)>,
    mode: RegexMode,
    trim: bool,
}

impl Rule for Patterns {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let text = self.of.text(case)?;
        let text = if self.trim { text.trim() } else { text };
        let names = |wanted: bool| -> Vec<&str> {
            self.patterns
                .iter()
                .filter(|(_, regex)| regex.is_match(text) == wanted)
                .map(|(written, _)| written.as_str())
                .collect()
        };
        Ok(match self.mode {
            RegexMode::All => {
                let missing = names(false);
                let share = 1.0 - missing.len() as f64 / self.patterns.len() as f64;
                let complaint =
                    (!missing.is_empty()).then(|| format!("does not match {}", quoted(missing)));
                Finding::new(share).say(complaint)
            }
            RegexMode::Any => {
                let found = self.patterns.iter().any(|(_, regex)| regex.is_match(text));
                let all = self.patterns.iter().map(|(written, _)| written.as_str());
                Finding::plain((!found).then(|| format!("matches none of {}", quoted(all))))
            }
            RegexMode::None => {
                let found = names(true);
                Finding::plain(
                    (!found.is_empty()).then(|| format!("matches {}: remove it", quoted(found))),
                )
            }
        })
    }
}
