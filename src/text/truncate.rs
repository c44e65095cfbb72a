//! Cutting texts short where a reader would.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

/// The first `max` characters as a reader counts them (grapheme clusters), or the whole text.
/// A cluster may be of any size in bytes: see [`truncate_bytes`] for a bound on memory.
#[must_use]
pub fn truncate(text: &str, max: usize) -> &str {
    // No cluster is shorter than a byte.
    if text.len() <= max {
        return text;
    }
    text.grapheme_indices(true).nth(max).map_or(text, |(end, _)| &text[..end])
}

/// At most `max` characters, cut at the last word boundary within them where that keeps at
/// least half; white space at the cut is dropped.
#[must_use]
pub fn truncate_at_word(text: &str, max: usize) -> &str {
    let cut = truncate(text, max);
    if cut.len() == text.len() {
        return text;
    }
    // Whether the cut falls inside a word shows only with what follows it.
    let boundary = text
        .split_word_bound_indices()
        .map(|(start, _)| start)
        .take_while(|start| *start <= cut.len())
        .last()
        .unwrap_or(0);
    if boundary * 2 >= cut.len() { text[..boundary].trim_end() } else { cut }
}

/// At most `max` bytes, cut between grapheme clusters; inside one where a single cluster is
/// longer than that, but never inside a character.
#[must_use]
pub fn truncate_bytes(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let whole = text
        .grapheme_indices(true)
        .map(|(start, _)| start)
        .take_while(|start| *start <= end)
        .last()
        .unwrap_or(0);
    &text[..if whole == 0 { end } else { whole }]
}

/// A short piece for a message: line breaks as spaces, at most `max` characters and 8 bytes
/// for each, with `...` where something was cut.
#[must_use]
pub fn excerpt(text: &str, max: usize) -> Cow<'_, str> {
    let text = text.trim();
    let short = truncate(truncate_bytes(text, max.saturating_mul(8)), max).trim_end();
    let cut = short.len() < text.len();
    if !cut && !short.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut line: String = short.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut {
        line.push_str("...");
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character_or_cluster() {
        assert_eq!(truncate("e\u{301}a👨‍👩‍👧b", 3), "e\u{301}a👨‍👩‍👧");
        assert_eq!(truncate("abc", 0), "");
        assert_eq!(truncate_bytes("中文", 4), "中");
        assert_eq!(truncate_bytes("a👨‍👩‍👧", 6), "a");
        assert_eq!(truncate_bytes("👨‍👩‍👧", 5), "👨");
        assert_eq!(truncate_bytes("中", 2), "");
    }

    #[test]
    fn a_cut_at_a_word_keeps_words_whole_or_keeps_half() {
        assert_eq!(truncate_at_word("hello brave world", 13), "hello brave");
        assert_eq!(truncate_at_word("hello", 13), "hello");
        assert_eq!(truncate_at_word("a incomprehensibilities", 10), "a incompre");
    }

    #[test]
    fn an_excerpt_is_one_short_line_even_of_stacked_marks() {
        assert_eq!(excerpt("one\ntwo", 20), "one two");
        assert_eq!(excerpt("one two three", 7), "one two...");
        let stacked = format!("a{}", "\u{301}".repeat(100_000));
        assert!(excerpt(&stacked, 40).len() < 400);
    }

    proptest::proptest! {
        #[test]
        fn truncated_texts_are_prefixes_within_the_limit(text in "(?s).{0,60}", max in 0_usize..80) {
            proptest::prop_assert!(text.starts_with(truncate_at_word(&text, max)));
            proptest::prop_assert!(truncate_bytes(&text, max).len() <= max);
            proptest::prop_assert!(truncate(&text, max).graphemes(true).count() <= max);
        }
    }
}
