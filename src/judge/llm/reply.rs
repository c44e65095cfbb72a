//! Reading a model's reply: the one answer it states, or why there is none.
//!
//! Nothing is guessed, clamped or repaired. These are the rules, for a reply that was neither
//! cut off nor refused:
//!
//! 1. Reasoning (`<think>…</think>`, closed or not, or everything before a `</think>` that
//!    nothing opened) says nothing, unless the whole reply is JSON that holds such a tag in a
//!    text.
//! 2. A verdict is a JSON object with the fields asked for. Objects inside broken JSON, inside
//!    lists, inside code of another language, in quotation marks or on a line that starts with
//!    `>` are no verdicts.
//! 3. A lone verdict counts where it opens the reply, is fenced, has its lines to itself, or
//!    closes the reply after words such as `My verdict:`; in any other sentence it may be a
//!    quotation, so it does not.
//! 4. Of several that differ, the last counts if it closes the reply (the final verdict wins
//!    over echoes) and the reply did not open with one. Otherwise it is ambiguous.
//! 5. Broken JSON after the verdict, or words after it that state another answer, make it
//!    ambiguous.
//! 6. Without JSON, a reply counts that is nothing but the answer, or closes with a sentence
//!    or line that states it.
//!
//! What is ambiguous is unparseable. [`PARSER_VERSION`] is part of a judge's fingerprint.

mod fields;
mod json;
mod scan;
pub(crate) mod text;

use json::Node;
use scan::{Piece, Scan, is_blank, prose_of, scan};

use super::shape::{Place, ReadFailure, Reading, Shape};
use crate::provider::{ChatReply, FinishReason};
use crate::verdict::Status;

/// Changes whenever some reply would be read differently.
pub const PARSER_VERSION: u32 = 3;

/// Reads a reply.
///
/// # Errors
/// The status that the verdict then has, and what was wrong.
pub fn read(reply: &ChatReply, shape: &Shape) -> Result<Reading, ReadFailure> {
    match reply.finish {
        FinishReason::Length => {
            return Err(ReadFailure::new(
                Status::Truncated,
                "the reply was cut off at its length limit: raise `max_tokens`",
            ));
        }
        FinishReason::Refusal => {
            return Err(ReadFailure::new(Status::Refused, "the model or its filter refused"));
        }
        FinishReason::Stop | FinishReason::Other(_) => {}
    }
    read_text(&reply.text, shape)
}

/// Reads the text of a reply that was finished.
///
/// # Errors
/// As [`read`].
pub fn read_text(text: &str, shape: &Shape) -> Result<Reading, ReadFailure> {
    let text = text.trim_start_matches('\u{feff}').trim();
    match Node::whole(text) {
        Some(node @ Node::Object(_)) => {
            let object = fields::unwrapped(&node);
            if !fields::is_verdict(object, shape) {
                return Err(nothing_found(shape));
            }
            return fields::reading(object, shape, Place::Whole);
        }
        // JSON written as a JSON string, or a quoted word.
        Some(Node::Text(inner))
            if Node::whole(inner.trim()).is_none_or(|n| !matches!(n, Node::Text(_))) =>
        {
            return read_text(&inner, shape);
        }
        Some(Node::List(_)) => {
            return Err(ReadFailure::unparseable("the reply is a list: expected one JSON object"));
        }
        _ => {}
    }
    // A reply that is one span of inline code is not a quotation.
    let text = match text.strip_prefix('`').and_then(|t| t.strip_suffix('`')) {
        Some(inner) if !inner.contains('`') => inner.trim(),
        _ => text,
    };
    from_scan(&scan(text), shape)
}

/// An object that has the fields asked for.
struct Verdict<'a> {
    /// Its place among the pieces.
    at: usize,
    node: &'a Node,
    place: Place,
    /// Fenced, or with lines of its own.
    apart: bool,
    led: bool,
}

fn from_scan(scan: &Scan, shape: &Shape) -> Result<Reading, ReadFailure> {
    let verdicts: Vec<Verdict<'_>> = scan
        .pieces
        .iter()
        .enumerate()
        .filter_map(|(at, piece)| match piece {
            Piece::Object { node, fenced, own_lines, led, quoted: false } => {
                let node = fields::unwrapped(node);
                let place = if *fenced { Place::Fenced } else { Place::Embedded };
                let apart = *fenced || *own_lines;
                fields::is_verdict(node, shape).then_some(Verdict {
                    at,
                    node,
                    place,
                    apart,
                    led: *led,
                })
            }
            _ => None,
        })
        .collect();
    let (Some(first), Some(last)) = (verdicts.first(), verdicts.last()) else {
        return from_words(scan, shape);
    };
    let place = last.place;
    let after = &scan.pieces[last.at + 1..];
    if after.iter().any(|p| matches!(p, Piece::Broken)) {
        return Err(ReadFailure::unparseable("broken JSON follows the verdict"));
    }
    let blank =
        |pieces: &[Piece]| pieces.iter().all(|p| matches!(p, Piece::Prose(text) if is_blank(text)));
    let closes = blank(after) && (last.led || last.apart);
    let reading = fields::reading(last.node, shape, place);
    let opens = blank(&scan.pieces[..first.at]) && scan.opening.is_none();
    let differs = |other: &Node| {
        // An echo of the form asked for, with placeholders, is no verdict to differ from.
        match (fields::reading(other, shape, place), &reading) {
            (Ok(theirs), Ok(ours)) => theirs
                .answers
                .iter()
                .map(|a| (&a.raw, a.score))
                .ne(ours.answers.iter().map(|a| (&a.raw, a.score))),
            (Err(theirs), Ok(_)) => theirs.status != Status::Unparseable,
            (Ok(_), Err(_)) => true,
            (Err(_), Err(_)) => false,
        }
    };
    let disagreement = verdicts.iter().any(|verdict| differs(verdict.node));
    if disagreement && (!closes || (opens && differs(first.node))) {
        return Err(ReadFailure::unparseable("the reply holds two verdicts that differ"));
    }
    let opening = scan.opening.as_ref().map(fields::unwrapped);
    if opening.is_some_and(|other| fields::is_verdict(other, shape) && differs(other)) {
        return Err(ReadFailure::unparseable("the reply opens and closes with different verdicts"));
    }
    if !(closes || opens || last.apart) {
        return Err(ReadFailure::unparseable(
            "the JSON object stands inside a sentence, where it may be a quotation",
        ));
    }
    let reading = reading?;
    if let Some(stated) = text::stated(&prose_of(after), shape) {
        let same = stated.is_ok_and(|answer| {
            reading.answers.first().is_some_and(|first| first.score == answer.score)
        });
        if !same {
            return Err(ReadFailure::unparseable(
                "the words after the JSON object state another answer",
            ));
        }
    }
    Ok(reading)
}

fn from_words(scan: &Scan, shape: &Shape) -> Result<Reading, ReadFailure> {
    if scan.pieces.iter().any(|p| matches!(p, Piece::Broken)) {
        return Err(ReadFailure::unparseable("the reply holds JSON that is not valid"));
    }
    if scan.pieces.iter().any(|p| matches!(p, Piece::Object { .. })) {
        return Err(nothing_found(shape));
    }
    let prose = scan.prose();
    if let Some(stated) = text::stated(&prose, shape) {
        let answer = stated?;
        return Ok(Reading {
            reason: None,
            answers: vec![answer],
            overall: None,
            passed: None,
            place: Place::Text,
            mass: None,
        });
    }
    if text::is_refusal(&prose) {
        return Err(ReadFailure::new(Status::Refused, "the model refused in words"));
    }
    if prose.trim().is_empty() {
        return Err(ReadFailure::unparseable("the reply is empty"));
    }
    Err(nothing_found(shape))
}

fn nothing_found(shape: &Shape) -> ReadFailure {
    ReadFailure::unparseable(format!("the reply holds no {}", fields::wanted(shape)))
}

#[cfg(test)]
mod tests;
