//! Phrases of natural language as patterns, and texts made ready to be searched for them.

use std::borrow::Cow;

use ::regex::{Regex, RegexBuilder};

use super::super::BuildError;
use crate::text;

/// Compiles a pattern of ours for a text that [`plain`] made. A space stands for a space or
/// line break, one or more (` ?` for any or none), so that wrapping does not hide a phrase;
/// `.` matches a line break. Word boundaries and digits are those of ASCII: a phrase may
/// touch Chinese, and such patterns compile many times faster.
pub(super) fn phrase(pattern: &str) -> Result<Regex, BuildError> {
    let pattern = pattern
        .replace(" ?", "\u{1}")
        .replace(' ', r"[ \n]+")
        .replace('\u{1}', r"[ \n]*")
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\d", "[0-9]")
        .replace(r"\s", r"[ \n]");
    RegexBuilder::new(&pattern)
        .dot_matches_new_line(true)
        .multi_line(true)
        .build()
        .map_err(|error| BuildError::invalid("rule", format!("built-in pattern: {error}")))
}

/// Compiles several.
pub(super) fn phrases(patterns: &[&str]) -> Result<Vec<Regex>, BuildError> {
    patterns.iter().map(|pattern| phrase(pattern)).collect()
}

/// The text in NFKC and lower case with its line breaks (other white space as spaces), without
/// format characters, and with typographic quotes and hyphens as plain ones.
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
    let plain = width.chars().map(|c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{02BC}' => '\'',
        '\u{201C}' | '\u{201D}' | '\u{201E}' => '"',
        '\u{2010}'..='\u{2013}' => '-',
        '\n' | '\u{2028}' | '\u{2029}' => '\n',
        c if c.is_whitespace() => ' ',
        other => other,
    });
    if lower { plain.flat_map(char::to_lowercase).collect() } else { plain.collect() }
}

/// The text in lower case, every letter in its old place: one whose small form has another
/// length in bytes stays as it is.
pub(super) fn lower_in_place(text: &str) -> String {
    text.chars()
        .map(|c| {
            let mut small = c.to_lowercase();
            match (small.next(), small.next()) {
                (Some(one), None) if one.len_utf8() == c.len_utf8() => one,
                _ => c,
            }
        })
        .collect()
}

/// Whether what stands before a match turns it into its opposite (`do not ignore ...`).
pub(super) fn negated(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end();
    ["not", "n't", "never", "without", "cannot", "不要", "不得", "不能", "请勿", "别"]
        .iter()
        .any(|word| before.ends_with(word))
}
