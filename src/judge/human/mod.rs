//! The `human` judge: asks a person on the terminal.
//!
//! One person answers one question at a time, whatever the number of cases in flight. What
//! is shown is escaped, so that an output can't redraw the screen or forge a prompt. Without a
//! terminal there is no such judge.

mod console;
mod page;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use self::console::Console;
use super::process::plain;
use super::{BoxedJudge, BuildContext, BuildError, Judge};
use crate::case::Case;
use crate::provider::CallContext;
use crate::score::{Scale, Score, ScoreError};
use crate::verdict::{CriterionScore, Fingerprint, Status, Verdict};

/// Configuration of a `human` judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HumanSpec {
    /// What is asked about each output; "How good is this output?" when absent. Not with
    /// `criteria`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The scale of answers; `1-5` when absent.
    #[serde(default = "five_levels")]
    pub scale: Scale,
    /// What levels mean, by value: `"1" = "useless"`. Not with `criteria`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub anchors: BTreeMap<String, String>,
    /// Several questions; the score is their weighted mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<HumanCriterion>,
    /// Whether a comment is asked for, which becomes feedback.
    #[serde(default = "yes")]
    pub comment: bool,
}

/// One question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HumanCriterion {
    /// Its name.
    pub name: String,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The scale of answers; the judge's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// What levels mean, by value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub anchors: BTreeMap<String, String>,
    /// Its share of the score; above 0.
    #[serde(default = "one")]
    pub weight: f64,
    /// The answer, on the scale, from which on it counts as passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<f64>,
    /// Whether the output is rejected when it is not passed; needs `pass`.
    #[serde(default)]
    pub required: bool,
}

fn five_levels() -> Scale {
    // 1 is below 5, so this can't fail; the unit scale stands in for the type's sake.
    Scale::levels_between(1, 5).unwrap_or(Scale::UNIT)
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

/// A question ready to be asked.
#[derive(Clone, Debug)]
struct Question {
    name: Option<String>,
    text: String,
    scale: Scale,
    /// By value, in ascending order.
    anchors: Vec<(f64, String)>,
    weight: f64,
    pass: Option<Score>,
    required: bool,
}

#[derive(Debug)]
struct HumanJudge {
    questions: Vec<Question>,
    comment: bool,
    console: Arc<Console>,
    fingerprint: Fingerprint,
}

impl HumanSpec {
    /// A judge that asks on this process's terminal.
    ///
    /// # Errors
    /// Standard input or standard error is not a terminal; else as [`HumanSpec::build_with`].
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            let reason = "`human` asks on a terminal and this is none: run it in a terminal, or write the scores to a CSV file with the columns `item_id`, `judge`, `score` and seat a `replay` judge of that";
            return Err(BuildError::invalid("kind", reason));
        }
        self.build_with(context, Console::terminal())
    }

    /// A judge that asks on a console.
    ///
    /// # Errors
    /// A question beside criteria, an anchor that is no value of its scale, a weight that is
    /// not above 0, a pass mark off the scale, `required` without `pass`, a name twice.
    pub fn build_with(
        &self,
        _context: &BuildContext,
        console: Arc<Console>,
    ) -> Result<BoxedJudge, BuildError> {
        let questions = if self.criteria.is_empty() {
            vec![Question {
                name: None,
                text: self
                    .question
                    .clone()
                    .unwrap_or_else(|| "How good is this output?".to_owned()),
                scale: self.scale,
                anchors: anchors(&self.anchors, self.scale, "anchors")?,
                weight: 1.0,
                pass: None,
                required: false,
            }]
        } else {
            self.criteria_questions()?
        };
        let identity = serde_json::to_value(self).unwrap_or_default();
        Ok(Arc::new(HumanJudge {
            questions,
            comment: self.comment,
            console,
            fingerprint: Fingerprint::of("human", &identity),
        }))
    }

    fn criteria_questions(&self) -> Result<Vec<Question>, BuildError> {
        if self.question.is_some() {
            let reason =
                "stands beside `criteria`, each of which is a question: expected one of the two";
            return Err(BuildError::invalid("question", reason));
        }
        if !self.anchors.is_empty() {
            let reason = "stands beside `criteria`: put the anchors into each of them";
            return Err(BuildError::invalid("anchors", reason));
        }
        let mut questions: Vec<Question> = Vec::new();
        for (i, criterion) in self.criteria.iter().enumerate() {
            let at = |key: &str| format!("criteria[{i}].{key}");
            if criterion.name.trim().is_empty() {
                return Err(BuildError::invalid(at("name"), "expected a name, found none"));
            }
            if questions.iter().any(|q| q.name.as_ref() == Some(&criterion.name)) {
                let reason = format!("`{}` is there twice", criterion.name);
                return Err(BuildError::invalid(at("name"), reason));
            }
            crate::config::check_weight(criterion.weight, false)
                .map_err(|reason| BuildError::invalid(at("weight"), reason))?;
            if criterion.required && criterion.pass.is_none() {
                let reason =
                    "a required criterion needs `pass`, the answer from which on it is met";
                return Err(BuildError::invalid(at("required"), reason));
            }
            let scale = criterion.scale.unwrap_or(self.scale);
            let pass = criterion.pass.map(|pass| scale.position(pass)).transpose();
            let pass = pass.map_err(|error| BuildError::invalid(at("pass"), error.to_string()))?;
            questions.push(Question {
                text: criterion.description.clone().unwrap_or_else(|| criterion.name.clone()),
                name: Some(criterion.name.clone()),
                scale,
                anchors: anchors(&criterion.anchors, scale, &at("anchors"))?,
                weight: criterion.weight,
                pass,
                required: criterion.required,
            });
        }
        Ok(questions)
    }
}

fn anchors(
    written: &BTreeMap<String, String>,
    scale: Scale,
    field: &str,
) -> Result<Vec<(f64, String)>, BuildError> {
    let mut anchors = Vec::new();
    for (level, meaning) in written {
        let value: f64 = level.trim().parse().map_err(|_| {
            BuildError::invalid(field, format!("`{level}` is not a value of the scale {scale}"))
        })?;
        scale.score(value).map_err(|error| BuildError::invalid(field, error.to_string()))?;
        anchors.push((value, meaning.clone()));
    }
    anchors.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(anchors)
}

/// What a person typed.
#[derive(Debug, PartialEq)]
enum Typed {
    Value(f64, Score),
    Skip,
    Quit,
    /// Not understood, and what was expected.
    Unclear(String),
}

impl Question {
    fn read(&self, line: &str) -> Typed {
        let text = line.trim();
        match text.to_lowercase().as_str() {
            "s" | "skip" => return Typed::Skip,
            "q" | "quit" => return Typed::Quit,
            _ => {}
        }
        let binary = (self.scale == Scale::BINARY).then(|| match text.to_lowercase().as_str() {
            "y" | "yes" => Some(1.0),
            "n" | "no" => Some(0.0),
            _ => None,
        });
        let number = || text.parse::<f64>().ok().filter(|value| value.is_finite());
        let Some(value) = binary.flatten().or_else(number) else {
            return Typed::Unclear(format!("expected a value on {}", page::levels(self.scale)));
        };
        match self.scale.score(value) {
            Ok(score) => Typed::Value(value, score),
            Err(ScoreError::NotALevel { .. } | ScoreError::OutOfRange { .. }) => {
                Typed::Unclear(format!("`{value}` is not on {}", page::levels(self.scale)))
            }
            Err(error) => Typed::Unclear(error.to_string()),
        }
    }
}

impl Judge for HumanJudge {
    fn kind(&self) -> &'static str {
        "human"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => {
                    Verdict::failed(Status::Cancelled, "stopped while waiting for the person")
                }
                verdict = tokio::time::timeout_at(context.deadline, self.ask(case)) => {
                    verdict.unwrap_or_else(|_| {
                        Verdict::failed(Status::Timeout, "the person gave no answer before the deadline")
                    })
                }
            }
        })
    }
}

impl HumanJudge {
    async fn ask(&self, case: &Case) -> Verdict {
        let mut turn = self.console.turn().await;
        if turn.has_quit() {
            return quit();
        }
        match self.dialogue(case, &mut turn).await {
            Ok(verdict) => verdict,
            Err(error) => {
                let detail = format!("failed to talk to the terminal: {error}");
                Verdict::failed(Status::ProviderError, detail)
            }
        }
    }

    async fn dialogue(
        &self,
        case: &Case,
        turn: &mut console::Turn<'_>,
    ) -> std::io::Result<Verdict> {
        turn.write(&page::case(case, turn.width()))?;
        let mut criteria = Vec::new();
        let (mut sum, mut weights) = (0.0, 0.0);
        let mut only = None;
        for question in &self.questions {
            turn.write(&page::question(question, turn.width()))?;
            let (value, score) = loop {
                turn.write(&format!("{} (s skips, q quits): ", page::levels(question.scale)))?;
                let Some(line) = turn.read_line().await? else {
                    turn.quit();
                    return Ok(quit());
                };
                match question.read(&line) {
                    Typed::Value(value, score) => break (value, score),
                    Typed::Skip => return Ok(Verdict::abstained("the person skipped this case")),
                    Typed::Quit => {
                        turn.quit();
                        return Ok(quit());
                    }
                    Typed::Unclear(expected) => turn.write(&format!("{expected}\n"))?,
                }
            };
            sum += question.weight * score.get();
            weights += question.weight;
            only = Some(value);
            if let Some(name) = &question.name {
                criteria.push(CriterionScore {
                    name: name.clone(),
                    score: Some(score),
                    raw: Some(value.into()),
                    passed: question.pass.map(|mark| score >= mark),
                    required: question.required,
                    feedback: None,
                });
            }
        }
        let mut verdict = match Score::share(sum, weights) {
            Ok(score) => Verdict::ok(score),
            Err(error) => return Ok(Verdict::failed(Status::Internal, error.to_string())),
        };
        verdict.raw = only.filter(|_| self.criteria_free()).map(Into::into);
        verdict.criteria = criteria;
        if self.comment {
            turn.write("comment (Enter for none): ")?;
            if let Some(line) = turn.read_line().await? {
                let comment = plain::strip(line.trim());
                if !comment.is_empty() {
                    verdict.feedback.push(comment);
                }
            }
        }
        Ok(verdict)
    }

    fn criteria_free(&self) -> bool {
        self.questions.iter().all(|question| question.name.is_none())
    }
}

fn quit() -> Verdict {
    Verdict::failed(Status::Cancelled, "the person quit")
}
