//! One form for texts that differ only in how they are written.
//!
//! Refuses to change meaning: no stemming, no removal of accents, punctuation or digits.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// The text in Unicode form NFKC (full-width letters and digits become plain ones), in lower
/// case, with every run of white space as one space and none at the ends.
///
/// Idempotent. Format characters stay: see [`strip_format`].
#[must_use]
pub fn normalise(text: &str) -> String {
    if text.is_ascii() {
        return fold_space(text.chars().map(|c| c.to_ascii_lowercase()), text.len());
    }
    // Lower case is taken letter by letter: the context rule for a final sigma would make the
    // result depend on what follows. Lower-casing can leave NFKC, hence the second pass.
    let mut changed = false;
    let lower: String = text
        .nfkc()
        .flat_map(|c| {
            let lower = c.to_lowercase();
            changed |= !lower.clone().eq([c]);
            lower
        })
        .collect();
    if changed {
        fold_space(lower.nfkc(), lower.len())
    } else {
        fold_space(lower.chars(), lower.len())
    }
}

fn fold_space(characters: impl Iterator<Item = char>, capacity: usize) -> String {
    let mut folded = String::with_capacity(capacity);
    let mut space = false;
    for c in characters {
        if c.is_whitespace() {
            space = !folded.is_empty();
        } else {
            if space {
                folded.push(' ');
                space = false;
            }
            folded.push(c);
        }
    }
    folded
}

/// The text in NFKC with letters and white space as they were: what number and pattern
/// reading starts from, so that `１２` and `12` are the same.
#[must_use]
pub fn width_folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect()) }
}

/// Whether a character shows nothing and only steers how its neighbours are shown: zero-width
/// spaces and joiners, direction marks, soft hyphens, tags, variation selectors, fillers.
#[must_use]
pub fn is_format(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The text without its format characters ([`is_format`]), which hide words from a reader of
/// patterns.
#[must_use]
pub fn strip_format(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.contains(is_format) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_format(*c)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_case_and_space_do_not_matter_and_digits_do() {
        assert_eq!(normalise("  Ｈｅｌｌｏ\u{3000}\n\tWORLD　１２ "), "hello world 12");
        assert_eq!(normalise("ﬁne"), "fine");
        assert_eq!(normalise("Ça VA"), "ça va");
        assert_eq!(normalise(""), "");
        assert_eq!(normalise(" \u{00A0}\u{2003} "), "");
        assert_ne!(normalise("41 dollars"), normalise("42 dollars"));
        assert_eq!(normalise("ΟΔΟΣ"), normalise("οδοσ"));
    }

    #[test]
    fn hidden_characters_are_stripped_and_visible_ones_kept() {
        assert_eq!(strip_format("ig\u{200B}no\u{00AD}re\u{FEFF} \u{E0041}me"), "ignore me");
        assert!(matches!(strip_format("naïve 中文 שלום"), Cow::Borrowed(_)));
    }

    proptest::proptest! {
        #[test]
        fn the_short_way_gives_what_the_long_way_gives(text in "[\\PC中文ÀéſΣ①ﬁ \u{0301}]*") {
            let long: String = text.nfkc().flat_map(char::to_lowercase).collect();
            proptest::prop_assert_eq!(normalise(&text), fold_space(long.nfkc(), 0));
        }

        #[test]
        fn normalising_twice_changes_nothing(text in ".*") {
            let once = normalise(&text);
            proptest::prop_assert_eq!(normalise(&once), once);
        }
    }
}
