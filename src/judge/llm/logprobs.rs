//! Answers from the log-probabilities of one token.
//!
//! The probability that the model puts on each possible answer is finer than the answer it
//! writes: it breaks ties and ranks far better with small models. Servers give the values
//! before any grammar, so the share on the answers asked for can be small; below
//! [`LEAST_MASS`] nothing is read from them.

use std::collections::HashMap;

use serde_json::Value;

use super::reply::text;
use super::shape::{Answer, Place, Reading, Shape};
use crate::provider::TokenLogprobs;
use crate::score::{Scale, Score};

/// The least share of the probability that must lie on the answers asked for. Below a tenth
/// the model was about to say something else, and what it wrote is read instead.
pub const LEAST_MASS: f64 = 0.1;

/// The share of ambiguous probability that may be ignored: a `1` that could be the start of a
/// `10`.
const NEGLIGIBLE: f64 = 0.01;

/// Reads the first token that says something; `None` where the shape has no one-token
/// answers, or too little probability lies on them.
#[must_use]
pub fn read(tokens: &[TokenLogprobs], shape: &Shape) -> Option<Reading> {
    let at = tokens.iter().position(|t| !trimmed(&t.token).is_empty())?;
    // A server whose value for its own token is none can't be believed about the others.
    if !is_probability(tokens[at].logprob) {
        return None;
    }
    let alternatives = alternatives(&tokens[at]);
    let (raw, score, mass) = match shape {
        Shape::YesNo => {
            let (yes, no) = two(&alternatives, text::yes_no);
            share(yes, no)?
        }
        Shape::Pairwise => {
            let (a, b) = two(&alternatives, |word| match word.to_uppercase().as_str() {
                "A" => Some(true),
                "B" => Some(false),
                _ => None,
            });
            share(a, b)?
        }
        Shape::Score { scale } => {
            // What follows is known only for the token that was produced.
            let after_one =
                if trimmed(&tokens[at].token) == "1" { Some(tokens.get(at + 1)) } else { None };
            expectation(&alternatives, after_one, *scale)?
        }
        Shape::Choice { .. } | Shape::Checklist { .. } | Shape::Rubric { .. } => return None,
    };
    let name = match shape {
        Shape::YesNo => "answer",
        Shape::Pairwise => "preferred",
        _ => "score",
    };
    Some(Reading {
        answers: vec![Answer {
            name: name.into(),
            raw: Some(Value::from(raw)),
            score: Some(score),
            reason: None,
        }],
        reason: None,
        overall: None,
        passed: None,
        place: Place::Logprobs,
        mass: Some(mass),
    })
}

/// The levels of a scale as one token each, where they can be: whole numbers from 0 to 10.
#[must_use]
pub fn token_levels(scale: Scale) -> Option<Vec<f64>> {
    let levels = scale.levels()?;
    levels.iter().all(|l| l.fract() == 0.0 && (0.0..=10.0).contains(l)).then_some(levels)
}

/// A token without white space and the marks that tokenizers write for it.
fn trimmed(token: &str) -> &str {
    token.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '\u{2581}' | '\u{120}' | '\u{10a}' | '*' | '"')
    })
}

/// Probability by trimmed token, the produced one included. Different tokens that trim to the
/// same word are summed; the same token listed twice counts once.
fn alternatives(token: &TokenLogprobs) -> HashMap<String, f64> {
    let mut seen: HashMap<&str, f64> = HashMap::new();
    for (text, logprob) in token
        .top
        .iter()
        .map(|(t, l)| (t.as_str(), *l))
        .chain([(token.token.as_str(), token.logprob)])
    {
        if is_probability(logprob) {
            seen.entry(text).or_insert_with(|| logprob.exp().min(1.0));
        }
    }
    let mut sums = HashMap::new();
    for (text, probability) in seen {
        *sums.entry(trimmed(text).to_owned()).or_insert(0.0) += probability;
    }
    sums
}

/// A log-probability above 0 (but for rounding) or NaN is no probability.
fn is_probability(logprob: f64) -> bool {
    logprob <= 1e-6
}

fn two(alternatives: &HashMap<String, f64>, side: impl Fn(&str) -> Option<bool>) -> (f64, f64) {
    let sum = |wanted: bool| {
        // Sorted, so that the sum does not depend on the order of a hash map.
        let mut parts: Vec<f64> =
            alternatives.iter().filter(|(w, _)| side(w) == Some(wanted)).map(|(_, p)| *p).collect();
        parts.sort_by(f64::total_cmp);
        parts.iter().sum::<f64>()
    };
    (sum(true), sum(false))
}

fn share(yes: f64, no: f64) -> Option<(f64, Score, f64)> {
    let mass = yes + no;
    if mass < LEAST_MASS {
        return None;
    }
    let score = Score::share(yes, mass).ok()?;
    Some((score.get(), score, mass.min(1.0)))
}

/// The mean of the levels by their probability.
///
/// Where a scale ends at 10 and the tokenizer has no token `10`, a `1` may be the start of
/// one: its probability is split by that of a following `0`, which is known only if `1` was
/// the token produced.
fn expectation(
    alternatives: &HashMap<String, f64>,
    after_one: Option<Option<&TokenLogprobs>>,
    scale: Scale,
) -> Option<(f64, Score, f64)> {
    let levels = token_levels(scale)?;
    let probability = |level: f64| alternatives.get(&level.to_string()).copied().unwrap_or(0.0);
    let mut weights: Vec<f64> = levels.iter().map(|level| probability(*level)).collect();
    let mass: f64 = weights.iter().sum();
    if mass < LEAST_MASS {
        return None;
    }
    let ten = levels.iter().position(|l| *l == 10.0);
    if let Some(ten) = ten
        && !alternatives.contains_key("10")
    {
        let one = levels.iter().position(|l| *l == 1.0);
        let ambiguous = probability(1.0);
        if ambiguous / mass > NEGLIGIBLE {
            if after_one.flatten().is_some_and(|next| !is_probability(next.logprob)) {
                return None;
            }
            // Nothing after the `1` means that it was the end of the answer.
            let zero = after_one?.map_or(0.0, |next| {
                self::alternatives(next).get("0").copied().unwrap_or(0.0).min(1.0)
            });
            weights[ten] = ambiguous * zero;
            if let Some(one) = one {
                weights[one] = ambiguous * (1.0 - zero);
            }
        }
    }
    let total: f64 = weights.iter().sum();
    let mean = levels.iter().zip(&weights).map(|(level, w)| level * w).sum::<f64>() / total;
    let score = scale.position(mean.clamp(scale.low(), scale.high())).ok()?;
    Some((mean, score, mass.min(1.0)))
}

#[cfg(test)]
mod tests;
