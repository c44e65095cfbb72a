//! Text: what rules, panels and loops know about the texts they compare.
//!
//! Normalisation, segmentation by Unicode's rules, counts, near-duplicate similarity and
//! truncation. Everything runs in time linear in the text, on any Unicode, without a locale;
//! nothing here knows about cases or judges, and nothing translates, stems or spells.

mod normalise;
mod segment;
mod shingle;
mod truncate;

pub use normalise::{is_format, normalise, strip_format, width_folded};
pub use segment::{
    SEGMENTATION, count_graphemes, count_ideographic, count_lines, count_words, graphemes,
    is_unspaced, paragraphs, sentences, tokens, words,
};
pub use shingle::{Shingles, similarity};
pub use truncate::{excerpt, truncate, truncate_at_word, truncate_bytes};
