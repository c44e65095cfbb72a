//! Near-duplicate similarity: Jaccard of word shingles (Broder, 1997).
//!
//! A text becomes the set of its runs of n tokens, kept as sorted hashes, so that two texts
//! of a megabyte are compared in milliseconds and a caller can keep the set of an old text
//! in place of the text. It measures wording, not meaning, so its tokens need no dictionary
//! and no boundary rules: a run of letters and digits, or any other visible character.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::{FixedState, FoldHasher};
use rayon::prelude::*;

use super::{is_unspaced, normalise};

/// The shingles of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shingles {
    /// Sorted, without repeats.
    hashes: Vec<u64>,
}

impl Shingles {
    /// The runs of `size` tokens of the normalised text. Signs count as tokens: `a + b` and
    /// `a - b` differ, and so do two emoji; so does each character of a script without spaces. A text with fewer tokens is one shingle; a text
    /// with none has no shingle. A `size` of 0 is read as 1.
    #[must_use]
    pub fn of(text: &str, size: usize) -> Self {
        let tokens: Vec<u64> = tokens(&normalise(text)).map(hash).collect();
        if tokens.is_empty() {
            return Self { hashes: Vec::new() };
        }
        let mut hashes: Vec<u64> =
            tokens.windows(size.clamp(1, tokens.len())).map(combine).collect();
        hashes.par_sort_unstable();
        hashes.dedup();
        Self { hashes }
    }

    /// How many different shingles the text has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether the text had no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Jaccard similarity in [0,1]: shared shingles over all shingles. Two empty texts are
    /// alike (1.0); an empty text and another share nothing (0.0).
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f64 {
        let (a, b) = (&self.hashes, &other.hashes);
        if a.is_empty() && b.is_empty() {
            return 1.0;
        }
        let (mut i, mut j, mut shared) = (0, 0, 0_usize);
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    shared += 1;
                    i += 1;
                    j += 1;
                }
            }
        }
        shared as f64 / (a.len() + b.len() - shared) as f64
    }
}

/// Runs of letters and digits, and between them every sign and every character of a script
/// written without spaces.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| c.is_alphanumeric() && !is_unspaced(c);
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = if joins(first) {
            rest.find(|c| !joins(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        rest = after.trim_start();
        Some(token)
    })
}

fn hasher() -> FoldHasher<'static> {
    // The same in every process of one build, and these hashes never leave the process.
    FixedState::default().build_hasher()
}

fn hash(token: &str) -> u64 {
    let mut hasher = hasher();
    hasher.write(token.as_bytes());
    hasher.finish()
}

fn combine(run: &[u64]) -> u64 {
    let mut hasher = hasher();
    for token in run {
        hasher.write_u64(*token);
    }
    hasher.finish()
}

/// How alike the wording of two texts is, in [0,1]: Jaccard similarity of their shingles of
/// three tokens (of fewer where the shorter text has fewer). 1.0 for texts that are equal
/// once normalised, two empty ones included.
#[must_use]
pub fn similarity(a: &str, b: &str) -> f64 {
    const SIZE: usize = 3;
    let (a, b) = rayon::join(|| normalise(a), || normalise(b));
    if a == b {
        return 1.0;
    }
    let shorter = tokens(&a).take(SIZE).count().min(tokens(&b).take(SIZE).count());
    let (a, b) = rayon::join(|| Shingles::of(&a, shorter), || Shingles::of(&b, shorter));
    a.similarity(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_texts_are_alike_and_unlike_any_other() {
        assert_eq!(similarity("", ""), 1.0);
        assert_eq!(similarity("", " \n"), 1.0);
        assert_eq!(similarity("", "word"), 0.0);
        assert!(Shingles::of(" ", 3).is_empty());
    }

    #[test]
    fn one_changed_number_is_not_a_repeat() {
        assert!(similarity("41 dollars", "42 dollars") < 1.0);
        assert!(similarity("It costs 41 dollars.", "It costs 42 dollars.") < 0.5);
        assert_eq!(similarity("It costs 41 dollars", "it  COSTS ４１ dollars"), 1.0);
    }

    #[test]
    fn one_changed_sign_or_emoji_is_not_a_repeat() {
        assert!(similarity("return a + b", "return a - b") < 1.0);
        assert!(similarity("well done 👍", "well done 👎") < 1.0);
    }

    #[test]
    fn reordered_words_are_less_than_alike() {
        let a = "the quick brown fox jumps over the lazy dog near the river bank";
        let b = "near the river bank the lazy dog jumps over the quick brown fox";
        let value = similarity(a, b);
        assert!(value > 0.2 && value < 0.9, "{value}");
        assert!(similarity("dog bites man", "man bites dog") < 1.0);
    }

    #[test]
    fn near_duplicate_chinese_is_seen_as_such() {
        let a = "人工智能正在改变我们的生活方式，越来越多的企业开始使用大语言模型来提高工作效率，减少重复劳动。";
        let b = "人工智能正在改变我们的生活方式，越来越多的公司开始使用大语言模型来提高工作效率，减少重复劳动。";
        let c = "昨天晚上我和朋友去看了一场电影，回家的时候下起了大雨，路上几乎没有行人。";
        assert!(similarity(a, b) > 0.7, "{}", similarity(a, b));
        assert!(similarity(a, c) < 0.1, "{}", similarity(a, c));
    }

    #[test]
    fn jaccard_of_known_sets_is_exact() {
        // {ab, bc, cd} and {bc, cd, de}: 2 shared of 4.
        let (a, b) = (Shingles::of("a b c d", 2), Shingles::of("b c d e", 2));
        assert_eq!(a.similarity(&b), 0.5);
        assert_eq!(a.len(), 3);
    }

    #[test]
    fn a_megabyte_is_compared_in_bounded_time() {
        let a = "some words that repeat and go on 12345 ".repeat(27_000);
        let b = format!("{a} end");
        let value = similarity(&a, &b);
        assert!(value > 0.7 && value < 1.0, "{value}");
    }

    proptest::proptest! {
        #[test]
        fn similarity_is_symmetric_reflexive_and_in_range(a in ".{0,80}", b in ".{0,80}") {
            let value = similarity(&a, &b);
            proptest::prop_assert!((0.0..=1.0).contains(&value));
            proptest::prop_assert_eq!(value, similarity(&b, &a));
            proptest::prop_assert_eq!(similarity(&a, &a), 1.0);
        }
    }
}
