//! `repetition`: how much of the text says again what it has said.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Check, Finding, NotApplicable, Of, Rule};
use crate::case::Case;
use crate::text;

/// Options of `repetition`.
///
/// For each measure, the share repeated is `(n - distinct) / n` over its n pieces (0 for
/// fewer than two). Score: for each measure with a limit 1 up to the limit, then
/// `(1 - share) / (1 - limit)`; the mean over the measures. Without any limit `ngrams = 0.3`
/// stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepetitionSpec {
    /// The text that is measured.
    #[serde(default)]
    pub of: Of,
    /// The largest share of repeated runs of `size` words, 0 up to 1.
    #[serde(default)]
    pub ngrams: Option<f64>,
    /// How many words make a run; 4 by default.
    #[serde(default)]
    pub size: Option<u32>,
    /// The largest share of repeated sentences.
    #[serde(default)]
    pub sentences: Option<f64>,
    /// The largest share of repeated lines, those with no letter or digit not counted.
    #[serde(default)]
    pub lines: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Run(usize),
    Sentence,
    Line,
}

impl RepetitionSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        // A judgement, not a measurement: far above what prose repeats by chance, and below
        // text that loops.
        let default = (self.ngrams, self.sentences, self.lines) == (None, None, None);
        let size = match self.size {
            Some(0) => return Err(BuildError::invalid("size", "is 0: expected 1 or more")),
            Some(_) if self.ngrams.is_none() && !default => {
                return Err(BuildError::invalid("size", "needs `ngrams`"));
            }
            size => size.unwrap_or(4) as usize,
        };
        let ngrams = if default { Some(0.3) } else { self.ngrams };
        let mut limits = Vec::new();
        for (field, piece, limit) in [
            ("ngrams", Piece::Run(size), ngrams),
            ("sentences", Piece::Sentence, self.sentences),
            ("lines", Piece::Line, self.lines),
        ] {
            let Some(limit) = limit else { continue };
            if !(0.0..1.0).contains(&limit) {
                return Err(BuildError::invalid(
                    field,
                    format!("is {limit}: expected the largest share repeated, 0 up to 1"),
                ));
            }
            limits.push((field, piece, limit));
        }
        Ok(Box::new(Repetition { of: self.of, limits }))
    }
}

#[derive(Debug)]
struct Repetition {
    of: Of,
    limits: Vec<(&'static str, Piece, f64)>,
}

/// The share of pieces that repeat an earlier one, and the piece repeated most (of several
/// the first).
fn repeated<'a, T: std::hash::Hash + Eq + Copy + 'a>(
    pieces: impl Iterator<Item = T>,
) -> (f64, Option<(T, u64)>) {
    let mut counts: HashMap<T, (u64, u64)> = HashMap::new();
    let mut total = 0_u64;
    for piece in pieces {
        counts.entry(piece).or_insert((0, total)).0 += 1;
        total += 1;
    }
    if total < 2 {
        return (0.0, None);
    }
    let share = (total - counts.len() as u64) as f64 / total as f64;
    let most = counts
        .into_iter()
        .filter(|(_, (count, _))| *count > 1)
        .max_by_key(|(_, (count, first))| (*count, std::cmp::Reverse(*first)))
        .map(|(piece, (count, _))| (piece, count));
    (share, most)
}

impl Rule for Repetition {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let written = self.of.text(case)?;
        let mut checks = Vec::new();
        for (name, piece, limit) in &self.limits {
            let (share, most) = match piece {
                Piece::Run(size) => {
                    let normal = text::normalise(written);
                    let words: Vec<&str> = text::words(&normal).collect();
                    let (share, most) = repeated(words.windows(*size));
                    (share, most.map(|(run, count)| (run.join(" "), count)))
                }
                Piece::Sentence => {
                    let sentences: Vec<String> =
                        text::sentences(written).map(text::normalise).collect();
                    let (share, most) = repeated(sentences.iter().map(String::as_str));
                    (share, most.map(|(sentence, count)| (sentence.to_owned(), count)))
                }
                Piece::Line => {
                    let lines: Vec<String> = written
                        .lines()
                        .filter(|line| line.chars().any(char::is_alphanumeric))
                        .map(text::normalise)
                        .collect();
                    let (share, most) = repeated(lines.iter().map(String::as_str));
                    (share, most.map(|(line, count)| (line.to_owned(), count)))
                }
            };
            let over = share > *limit;
            let score = if over { (1.0 - share) / (1.0 - limit) } else { 1.0 };
            let complaint = over.then(|| {
                let example = most.map_or_else(String::new, |(piece, count)| {
                    format!("; `{}` occurs {count} times", text::excerpt(&piece, 60))
                });
                format!(
                    "repeats {:.0}% of its {}: expected at most {:.0}%{example}",
                    share * 100.0,
                    if *name == "ngrams" { "runs of words" } else { name },
                    limit * 100.0
                )
            });
            checks.push(Check::graded(*name, score, complaint).raw(share));
        }
        Ok(Finding::mean(checks))
    }
}
