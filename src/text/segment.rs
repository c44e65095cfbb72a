//! Words, sentences, paragraphs and characters.
//!
//! Word and sentence boundaries are those of Unicode Standard Annex #29. Scripts that are
//! written without spaces are cut into characters, or into dictionary words where the feature
//! `cjk` is built in; [`SEGMENTATION`] says which, because counts depend on it.

use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

/// How scripts without spaces are cut into words in this build: part of what identifies a
/// judge that counts words.
pub const SEGMENTATION: &str = if cfg!(feature = "cjk") { "dictionary" } else { "character" };

/// Whether a character belongs to a script written without spaces between words: Han,
/// Hiragana, Katakana, Bopomofo, Thai, Lao, Khmer, Myanmar.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    // Thai is the first of them in code point order; the large block needs no look-up.
    matches!(c, '\u{4E00}'..='\u{9FFF}')
        || c >= '\u{0E00}'
            && matches!(
                c.script(),
                Script::Han
                    | Script::Hiragana
                    | Script::Katakana
                    | Script::Bopomofo
                    | Script::Thai
                    | Script::Lao
                    | Script::Khmer
                    | Script::Myanmar
            )
}

/// The words of a text: its segments that hold a letter or a digit.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    tokens(text).filter(|token| token.chars().any(char::is_alphanumeric))
}

/// The words of a text and between them every sign: each punctuation mark, operator or emoji
/// is a token. White space is none.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    pieces(text)
        .flat_map(|piece| {
            let unspaced = !piece.is_ascii() && piece.contains(is_unspaced);
            let whole = (!unspaced).then_some(piece);
            whole.into_iter().chain(unspaced.then(|| cut_unspaced(piece)).into_iter().flatten())
        })
        .filter(|token| !token.chars().all(char::is_whitespace))
}

#[cfg(not(feature = "cjk"))]
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_word_bounds()
}

#[cfg(not(feature = "cjk"))]
fn cut_unspaced(piece: &str) -> impl Iterator<Item = &str> {
    piece.graphemes(true)
}

/// Runs of unspaced script in one piece each (a dictionary needs its context), the rest cut
/// as elsewhere.
#[cfg(feature = "cjk")]
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    runs(text).flat_map(|(run, unspaced)| {
        let whole = unspaced.then_some(run);
        let cut = (!unspaced).then(|| run.split_word_bounds());
        whole.into_iter().chain(cut.into_iter().flatten())
    })
}

#[cfg(feature = "cjk")]
fn runs(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let unspaced = is_unspaced(rest.chars().next()?);
        let end = rest
            .char_indices()
            .find(|(_, c)| {
                // Marks and the long-vowel sign have no script of their own and stay where
                // they stand.
                !matches!(c.script(), Script::Inherited)
                    && *c != 'ー'
                    && is_unspaced(*c) != unspaced
            })
            .map_or(rest.len(), |(i, _)| i);
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((run, unspaced))
    })
}

#[cfg(feature = "cjk")]
fn cut_unspaced(piece: &str) -> impl Iterator<Item = &str> {
    let segmenter = icu_segmenter::WordSegmenter::new_dictionary(
        icu_segmenter::options::WordBreakInvariantOptions::default(),
    );
    let ends: Vec<usize> = segmenter.segment_str(piece).skip(1).collect();
    let mut start = 0;
    ends.into_iter().map(move |end| {
        let word = &piece[start..end];
        start = end;
        word
    })
}

/// How many words a text has.
#[must_use]
pub fn count_words(text: &str) -> usize {
    words(text).count()
}

/// The length of a text as Chinese and Japanese authors count it: each character of an
/// unspaced script is one, each other word is one, punctuation is none. Independent of the
/// feature `cjk`.
#[must_use]
pub fn count_ideographic(text: &str) -> usize {
    text.split_word_bounds()
        .filter(|piece| piece.chars().any(char::is_alphanumeric))
        .map(|piece| {
            if !piece.is_ascii() && piece.contains(is_unspaced) {
                piece.graphemes(true).count()
            } else {
                1
            }
        })
        .sum()
}

/// The characters as a reader sees them: extended grapheme clusters.
pub fn graphemes(text: &str) -> impl Iterator<Item = &str> {
    text.graphemes(true)
}

/// How many characters a reader sees, white space included.
#[must_use]
pub fn count_graphemes(text: &str) -> usize {
    // A carriage return and its line feed are one cluster, the only such pair in ASCII.
    if text.is_ascii() {
        return text.len() - text.as_bytes().windows(2).filter(|pair| pair == b"\r\n").count();
    }
    text.graphemes(true).count()
}

/// Lines that are not blank.
#[must_use]
pub fn count_lines(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

/// Paragraphs: blocks of lines with a blank line between them, trimmed.
pub fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut start = None;
        let mut position = 0;
        for line in rest.split_inclusive('\n') {
            let blank = line.trim().is_empty();
            match start {
                None if !blank => start = Some(position),
                Some(from) if blank => {
                    let paragraph = rest[from..position].trim();
                    rest = &rest[position..];
                    return Some(paragraph);
                }
                _ => {}
            }
            position += line.len();
        }
        let last = start.map(|from| rest[from..].trim());
        rest = "";
        last
    })
}

/// Abbreviations whose full stop ends no sentence, in lower case and without the stop.
const ABBREVIATIONS: [&str; 21] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "e.g", "i.e", "cf", "fig", "eq", "al",
    "approx", "dept", "gen", "rev", "sec", "vol",
];

/// Sentences that hold a letter or digit, trimmed. Ends are those of UAX #29, among them
/// `.`, `!`, `?`, `。`, `！` and `？`; a line break ends a sentence too, unless the next line
/// goes on in lower case (wrapped prose). A common abbreviation before a full stop ends none.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut bounds = text.split_sentence_bound_indices().peekable();
    std::iter::from_fn(move || {
        let (start, mut piece) = bounds.next()?;
        let mut end = start + piece.len();
        while let Some((_, next)) = bounds.peek().copied() {
            if !goes_on(piece, next) {
                break;
            }
            end += next.len();
            piece = next;
            bounds.next();
        }
        Some(text[start..end].trim())
    })
    .filter(|sentence| sentence.chars().any(char::is_alphanumeric))
}

fn goes_on(piece: &str, next: &str) -> bool {
    let body = piece.trim_end();
    let wrapped = piece.ends_with(['\n', '\r'])
        && !body.is_empty()
        && !body.ends_with(['.', '!', '?', '。', '！', '？', '…', ':', '：', ';', '；'])
        && next.trim_start_matches([' ', '\t']).starts_with(char::is_lowercase);
    wrapped || ends_in_abbreviation(body)
}

fn ends_in_abbreviation(body: &str) -> bool {
    let Some(body) = body.strip_suffix('.') else { return false };
    // Bounded by bytes: a body may be a megabyte without a space.
    let tail = &body.as_bytes()[body.len().saturating_sub(8)..];
    let word = tail
        .iter()
        .rposition(|b| b.is_ascii_whitespace() || matches!(b, b'(' | b'"' | b'['))
        .map_or(tail, |i| &tail[i + 1..]);
    ABBREVIATIONS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<'a>(items: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        items.collect()
    }

    #[test]
    fn words_keep_decimals_and_apostrophes_whole() {
        assert_eq!(list(words("It's 3.14, isn't it?")), ["It's", "3.14", "isn't", "it"]);
        assert_eq!(count_words(""), 0);
        assert_eq!(count_words(" ... — !"), 0);
        assert_eq!(count_words("שלום עולם"), 2);
        assert_eq!(count_words("مرحبا بالعالم"), 2);
    }

    #[test]
    fn signs_and_emoji_are_tokens_and_space_is_none() {
        assert_eq!(list(tokens("a + b")), ["a", "+", "b"]);
        assert_eq!(list(tokens("ok 👍🏽\n")), ["ok", "👍🏽"]);
    }

    #[cfg(not(feature = "cjk"))]
    #[test]
    fn scripts_without_spaces_are_cut_into_characters() {
        assert_eq!(list(words("我爱北京。")), ["我", "爱", "北", "京"]);
        assert_eq!(list(words("コンピュータ")).len(), 6);
        assert_eq!(list(words("GPT模型")), ["GPT", "模", "型"]);
        assert!(count_words("ภาษาไทย") >= 4);
    }

    #[cfg(feature = "cjk")]
    #[test]
    fn scripts_without_spaces_are_cut_by_dictionary() {
        assert_eq!(list(words("我爱北京。")), ["我", "爱", "北京"]);
        assert_eq!(list(words("GPT模型")), ["GPT", "模型"]);
        assert_eq!(list(words("ภาษาไทย")), ["ภาษา", "ไทย"]);
        assert_eq!(list(words("コンピュータ を使う")).first(), Some(&"コンピュータ"));
    }

    #[test]
    fn ideographic_length_counts_characters_and_foreign_words() {
        assert_eq!(count_ideographic("我用GPT写了100字。"), 7);
        assert_eq!(count_ideographic(""), 0);
    }

    #[test]
    fn sentences_end_at_stops_of_any_script() {
        assert_eq!(list(sentences("One. Two! Three?")), ["One.", "Two!", "Three?"]);
        assert_eq!(list(sentences("今天下雨。你去吗？好！")), ["今天下雨。", "你去吗？", "好！"]);
        assert_eq!(list(sentences("Dr. Smith paid 3.50 euros. Fine.")).len(), 2);
        assert_eq!(list(sentences("This line is\nwrapped here. Done.")).len(), 2);
        assert_eq!(list(sentences("- First item\n- Second item")).len(), 2);
        assert_eq!(list(sentences("Say no. Then go.")).len(), 2);
        assert_eq!(list(sentences("...")), Vec::<&str>::new());
        assert_eq!(list(sentences("")), Vec::<&str>::new());
    }

    #[test]
    fn paragraphs_are_parted_by_blank_lines_only() {
        assert_eq!(list(paragraphs("\n\na\nb\n \n\nc\r\n\r\nd")), ["a\nb", "c", "d"]);
        assert_eq!(list(paragraphs(" \n ")), Vec::<&str>::new());
        assert_eq!(count_lines("a\n\nb\r\n \nc"), 3);
    }

    #[test]
    fn graphemes_are_what_a_reader_counts() {
        assert_eq!(count_graphemes("e\u{301}👨‍👩‍👧🇩🇪"), 3);
        assert_eq!(count_graphemes("a\r\nb"), 3);
        assert_eq!(count_graphemes("中文"), 2);
    }

    proptest::proptest! {
        #[test]
        fn tokens_lose_nothing_but_white_space(text in "(?s).{0,200}") {
            let kept: String = tokens(&text).collect();
            let strip = |t: &str| t.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            proptest::prop_assert_eq!(strip(&kept), strip(&text));
        }

        #[test]
        fn ascii_graphemes_are_counted_as_elsewhere(text in "[ -~\r\n]{0,50}") {
            proptest::prop_assert_eq!(count_graphemes(&text), text.graphemes(true).count());
        }
    }
}
