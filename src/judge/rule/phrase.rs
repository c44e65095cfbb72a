//! Phrases of natural language as patterns, and texts made ready to be searched for them.

use std::borrow::Cow;

use ::regex::{Regex, RegexBuilder};

use super::super::BuildError;
use crate::text;

/// Compiles a pattern of ours for a text that [`plain`] made. A space stands for any white
/// space, so that a line break does not hide a phrase (` ?` for any or none); `.` matches a
/// line break.
pub(super) fn phrase(pattern: &str) -> Result<Regex, BuildError> {
    RegexBuilder::new(&pattern.replace(" ?", r"\s*").replace(' ', r"\s+"))
        .dot_matches_new_line(true)
        .multi_line(true)
        .build()
        .map_err(|error| BuildError::invalid("rule", format!("built-in pattern: {error}")))
}

/// Compiles several.
pub(super) fn phrases(patterns: &[&str]) -> Result<Vec<Regex>, BuildError> {
    patterns.iter().map(|pattern| phrase(pattern)).collect()
}

/// The text in NFKC and lower case with its line breaks, without format characters, and with
/// typographic quotes as plain ones.
pub(super) fn plain(written: &str) -> String {
    fold(written, true)
}

/// As [`plain`], with letter case as written.
pub(super) fn plain_cased(written: &str) -> String {
    fold(written, false)
}

fn fold(written: &str, lower: bool) -> String {
    let visible = text::strip_format(written);
    let width: Cow<'_, str> = text::width_folded(&visible);
    let quotes = width.chars().map(|c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{02BC}' => '\'',
        '\u{201C}' | '\u{201D}' | '\u{201E}' => '"',
        '\u{2010}'..='\u{2013}' => '-',
        other => other,
    });
    if lower { quotes.flat_map(char::to_lowercase).collect() } else { quotes.collect() }
}

/// Whether what stands before a match turns it into its opposite (`do not ignore ...`).
pub(super) fn negated(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end();
    ["not", "n't", "never", "without", "cannot", "不要", "不得", "不能", "请勿", "别"]
        .iter()
        .any(|word| before.ends_with(word))
}
