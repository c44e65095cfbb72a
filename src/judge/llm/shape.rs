//! What a reply must hold, and what was read from it.
//!
//! A [`Shape`] is all that the reader of replies knows of a judge: no prompt, no weights. It
//! can be written as JSON, so that the corpus of replies needs no judge.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::score::{Scale, Score};
use crate::verdict::Status;

/// What a reply must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// A yes or a no.
    YesNo,
    /// One number on a scale.
    Score {
        /// The scale.
        scale: Scale,
    },
    /// One of several labels.
    Choice {
        /// The labels in the order they were offered, so that the first is also `A`.
        choices: Vec<Choice>,
    },
    /// A yes or a no for each question, `q1` the first.
    Checklist {
        /// How many questions.
        questions: usize,
    },
    /// One number on a scale for each criterion.
    Rubric {
        /// The scale.
        scale: Scale,
        /// The names of the criteria.
        criteria: Vec<String>,
    },
    /// `A`, `B` or a tie.
    Pairwise,
}

/// One label and what it is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The label.
    pub label: String,
    /// Its score.
    pub score: Score,
}

/// Where in the reply the answer stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The reply is one JSON object.
    Whole,
    /// In a fenced block.
    Fenced,
    /// A JSON object beside prose or reasoning.
    Embedded,
    /// Words, without JSON.
    Text,
    /// The log-probabilities of a token.
    Logprobs,
}

/// One answer: a yes or no, a number, a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The criterion, `q1` and so on, or the mode's own word (`answer`, `score`, `choice`,
    /// `preferred`).
    pub name: String,
    /// The value on the judge's own scale; `None` where the judge left it out.
    pub raw: Option<Value>,
    /// Its score. In pairwise mode 1 stands for A, the answer shown first.
    pub score: Option<Score>,
    /// What the judge said about it.
    pub reason: Option<String>,
}

/// What was read from a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The answers, in the order of the shape; one but for checklists and rubrics.
    pub answers: Vec<Answer>,
    /// The general reason.
    pub reason: Option<String>,
    /// The judge's own overall score, unread.
    pub overall: Option<Value>,
    /// The judge's own word on passing, unread.
    pub passed: Option<Value>,
    /// Where it stood.
    pub place: Place,
    /// With log-probabilities, the share of the probability that lay on the answers asked
    /// for, before renormalising.
    pub mass: Option<f64>,
}

/// Why a reply gives no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ReadFailure {
    /// The verdict's status that follows.
    pub status: Status,
    /// What was wrong, in words that also tell the model what to mend.
    pub message: String,
}

impl ReadFailure {
    pub(super) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(super) fn unparseable(message: impl Into<String>) -> Self {
        Self::new(Status::Unparseable, message)
    }

    /// Whether asking once more, with the error, may help.
    #[must_use]
    pub fn may_be_mended(&self) -> bool {
        matches!(self.status, Status::Unparseable | Status::OutOfRange)
    }
}
