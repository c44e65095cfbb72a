//! The configuration of an LLM judge, and everything that can be wrong with it.
//!
//! A judge that is built will not fail later because of its configuration: rubric, template,
//! examples and their fit to the mode are all checked here.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::example::{Example, Examples};
use super::judging::{Judging, Parts};
use super::logprobs::token_levels;
use super::seat::LlmJudge;
use super::shape::{Choice, Shape};
use crate::judge::{BoxedJudge, BuildContext, BuildError, MOST_SAMPLES};
use crate::provider::{EndpointSpec, Price};
use crate::rubric::{Lang, Rubric, folded};
use crate::score::{Scale, Score};

/// The most levels that are asked for as an enumeration.
pub(super) const MOST_LEVELS: usize = 20;

/// The form of the question.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One question; the score is the probability of yes.
    YesNo,
    /// A score for each criterion of a rubric; the overall score is computed.
    #[default]
    Rubric,
    /// One number on a scale.
    Score,
    /// One of several labels with scores.
    Choice,
    /// Yes or no to each of several questions.
    Checklist,
    /// The output against the case's `baseline`, in both orders.
    Pairwise,
}

impl Mode {
    /// The name in configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::YesNo => "yes_no",
            Self::Rubric => "rubric",
            Self::Score => "score",
            Self::Choice => "choice",
            Self::Checklist => "checklist",
            Self::Pairwise => "pairwise",
        }
    }
}

/// Whether scores are read from token log-probabilities.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Logprobs {
    /// Where the server gives them, else the written answer.
    #[default]
    Auto,
    /// Never asked for.
    Never,
    /// A reply without them is a failed measurement.
    Require,
}

/// The form that a written answer is asked for in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// JSON by a schema, and what the server can do of it.
    #[default]
    Auto,
    /// JSON by a schema.
    JsonSchema,
    /// Any JSON object.
    JsonObject,
    /// Free text; JSON is asked for in words only.
    Text,
}

/// A question of a checklist: a text, or a table with a weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// The question; yes is good.
    pub text: String,
    /// Its share in the score, relative to the other weights; 1 when absent.
    pub weight: f64,
    /// Whether an output that fails it is rejected.
    pub required: bool,
}

fn one() -> f64 {
    1.0
}

/// A question as a table.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The question; yes is good.
    text: String,
    /// Its share in the score, relative to the other weights.
    #[serde(default = "one")]
    weight: f64,
    /// Whether an output that fails it is rejected.
    #[serde(default)]
    required: bool,
}

impl schemars::JsonSchema for Question {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Question".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = Table::json_schema(generator);
        schemars::json_schema!({
            "description": "a question, or a table with a weight",
            "anyOf": [{ "type": "string" }, table],
        })
    }
}

impl<'de> Deserialize<'de> for Question {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self { text, weight: 1.0, required: false }),
            table => {
                let Table { text, weight, required } =
                    Table::deserialize(table).map_err(serde::de::Error::custom)?;
                Ok(Self { text, weight, required })
            }
        }
    }
}

/// The configuration of an LLM judge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LlmSpec {
    /// `provider/model`.
    pub model: String,
    /// The server, where it is not the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key, where it is not the provider's usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The form of the question.
    pub mode: Mode,
    /// A built-in rubric or a rubric file; `general` in mode `rubric` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rubric: Option<String>,
    /// What counts, in free words: the question of `yes_no`, the standard of `score`, `choice`
    /// and `pairwise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// The scale of `score` (default `1-5`) or, over the rubric's own, of `rubric`: anchors
    /// move to the same position, and those that fall between levels are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// The labels of `choice` and their scores in [0,1]. They are shown from the worst to the
    /// best.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub choice_scores: BTreeMap<String, f64>,
    /// The questions of `checklist`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// How many times the model is asked for one vote; 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u32>,
    /// Whether scores are read from token log-probabilities.
    pub logprobs: Logprobs,
    /// Whether the reason comes before the answer. True by default where the answer is written
    /// as JSON; in `yes_no`, `score` and `pairwise` true means that log-probabilities are not
    /// used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
    /// Sampling temperature; 0 with one sample, else 0.7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sampling seed; the sample's index is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Completion tokens at most for a written answer; models that reason at length need more
    /// than the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The form that a written answer is asked for in.
    pub response_format: Format,
    /// A file, or a text with `{{ }}`: the template that shows the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Judged examples from the training split: a file or a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<Examples>,
    /// The language of the prompt and of built-in rubrics.
    pub lang: Lang,
    /// Extra request headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Merged into the request body last.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra_body: Map<String, Value>,
    /// Requests in flight at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u32>,
    /// Requests a minute at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens a minute at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Overrides the price table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl LlmSpec {
    /// A judge, ready to be seated.
    ///
    /// # Errors
    /// When a key can't work, a file it names can't be read, or the endpoint can't be used.
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        if self.model.trim().is_empty() {
            return Err(BuildError::invalid("model", "is missing: expected `provider/model`"));
        }
        let endpoint = context.client.endpoint(&self.endpoint())?;
        let judging = self.judging(&context.base, &endpoint.identity())?;
        Ok(std::sync::Arc::new(LlmJudge::new(judging, context.client.clone(), endpoint)))
    }

    /// The judge without its model server.
    ///
    /// # Errors
    /// When a key can't work or a file it names can't be read.
    pub fn judging(&self, base: &Path, identity: &Value) -> Result<Judging, BuildError> {
        self.check_keys()?;
        let rubric = self.find_rubric(base)?;
        let shape = self.shape(rubric.as_ref())?;
        let one_token = match &shape {
            Shape::YesNo | Shape::Pairwise => true,
            Shape::Score { scale } => token_levels(*scale).is_some(),
            _ => false,
        };
        let reasoning = self.reasoning.unwrap_or(!one_token);
        let token_form = one_token && !reasoning && self.logprobs != Logprobs::Never;
        if self.logprobs == Logprobs::Require && !token_form {
            let reason = if one_token {
                "can't be had together with `reasoning`: expected one of the two".to_owned()
            } else {
                format!(
                    "mode `{}` has no one-token answers here: expected `yes_no`, `pairwise`, or `score` on whole levels from 0 to 10",
                    self.mode.name()
                )
            };
            return Err(BuildError::invalid("logprobs", reason));
        }
        let template = self.template_text(base)?;
        let examples = self.read_examples(base)?;
        Judging::new(Parts {
            spec: self,
            shape,
            rubric,
            token_form,
            reasoning,
            template,
            examples,
            identity,
        })
    }

    fn endpoint(&self) -> EndpointSpec {
        EndpointSpec {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            headers: self.headers.clone(),
            extra_body: self.extra_body.clone(),
            max_in_flight: self.max_in_flight,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            price: self.price,
        }
    }

    fn check_keys(&self) -> Result<(), BuildError> {
        let only = |field: &str, set: bool, modes: &[Mode]| {
            if set && !modes.contains(&self.mode) {
                let modes: Vec<String> = modes.iter().map(|m| format!("`{}`", m.name())).collect();
                return Err(BuildError::invalid(
                    field,
                    format!(
                        "does nothing in mode `{}`: expected mode {}",
                        self.mode.name(),
                        modes.join(" or ")
                    ),
                ));
            }
            Ok(())
        };
        only("scale", self.scale.is_some(), &[Mode::Score, Mode::Rubric])?;
        only("choice_scores", !self.choice_scores.is_empty(), &[Mode::Choice])?;
        only("questions", !self.questions.is_empty(), &[Mode::Checklist])?;
        only(
            "rubric",
            self.rubric.is_some(),
            &[Mode::Rubric, Mode::Score, Mode::Choice, Mode::YesNo, Mode::Pairwise],
        )?;
        only(
            "criterion",
            self.criterion.is_some(),
            &[Mode::Score, Mode::Choice, Mode::YesNo, Mode::Pairwise],
        )?;
        if self.criterion.is_some() && self.rubric.is_some() {
            return Err(BuildError::invalid(
                "criterion",
                "stands beside `rubric`: expected one of the two",
            ));
        }
        if self.criterion.as_ref().is_some_and(|c| c.trim().is_empty()) {
            return Err(BuildError::invalid(
                "criterion",
                "is empty: expected what counts, in words",
            ));
        }
        let fixed = [("criterion".to_owned(), self.criterion.as_deref())].into_iter().chain(
            self.questions.iter().enumerate().map(|(i, question)| {
                (format!("questions[{i}].text"), Some(question.text.as_str()))
            }),
        );
        for (field, text) in fixed {
            if text.is_some_and(|text| text.contains("{{") || text.contains("{%")) {
                return Err(BuildError::invalid(
                    field,
                    "is not filled in for each case, so `{{ … }}` would be shown to the model as it stands: what depends on the case goes into `template`",
                ));
            }
        }
        if self.samples == Some(0) {
            return Err(BuildError::invalid("samples", "`0` gives no vote: expected 1 or more"));
        }
        if let Some(samples) = self.samples.filter(|samples| *samples > MOST_SAMPLES) {
            return Err(BuildError::invalid(
                "samples",
                format!("`{samples}` are too many: expected at most {MOST_SAMPLES}"),
            ));
        }
        if self.max_tokens == Some(0) {
            return Err(BuildError::invalid(
                "max_tokens",
                "`0` leaves no room for an answer: expected 1 or more",
            ));
        }
        if let Some(temperature) = self.temperature
            && !(0.0..=2.0).contains(&temperature)
        {
            return Err(BuildError::invalid(
                "temperature",
                format!("`{temperature}` is no temperature: expected a number in [0,2]"),
            ));
        }
        for (i, question) in self.questions.iter().enumerate() {
            if question.text.trim().is_empty() {
                return Err(BuildError::invalid(
                    format!("questions[{i}].text"),
                    "is empty: expected a question",
                ));
            }
            crate::config::check_weight(question.weight, true)
                .map_err(|reason| BuildError::invalid(format!("questions[{i}].weight"), reason))?;
        }
        Ok(())
    }

    fn find_rubric(&self, base: &Path) -> Result<Option<Rubric>, BuildError> {
        let name = match (&self.rubric, self.mode) {
            (Some(name), _) => name.as_str(),
            (None, Mode::Rubric) => "general",
            (None, _) => return Ok(None),
        };
        let rubric = Rubric::find(name, self.lang, base)
            .map_err(|error| BuildError::invalid("rubric", error_chain(&error)))?;
        Ok(Some(match self.scale {
            Some(scale) if self.mode == Mode::Rubric => rubric.on_scale(scale),
            _ => rubric,
        }))
    }

    fn shape(&self, rubric: Option<&Rubric>) -> Result<Shape, BuildError> {
        Ok(match self.mode {
            Mode::YesNo => Shape::YesNo,
            Mode::Pairwise => Shape::Pairwise,
            Mode::Score => {
                let scale = self.scale.unwrap_or_else(stars);
                check_levels(scale, "scale")?;
                Shape::Score { scale }
            }
            Mode::Rubric => {
                let rubric = rubric.ok_or_else(|| {
                    BuildError::invalid("rubric", "is missing: expected a rubric")
                })?;
                check_levels(rubric.scale, if self.scale.is_some() { "scale" } else { "rubric" })?;
                let criteria = rubric.criteria.iter().map(|c| c.name.clone()).collect();
                Shape::Rubric { scale: rubric.scale, criteria }
            }
            Mode::Checklist => {
                if self.questions.is_empty() {
                    return Err(BuildError::invalid(
                        "questions",
                        "is empty: mode `checklist` needs at least one question",
                    ));
                }
                if self.questions.iter().map(|q| q.weight).sum::<f64>() <= 0.0 {
                    return Err(BuildError::invalid(
                        "questions",
                        "the weights sum to 0: expected a sum above 0",
                    ));
                }
                Shape::Checklist { questions: self.questions.len() }
            }
            Mode::Choice => Shape::Choice { choices: self.choices()? },
        })
    }

    fn choices(&self) -> Result<Vec<Choice>, BuildError> {
        if !(2..=MOST_LEVELS).contains(&self.choice_scores.len()) {
            return Err(BuildError::invalid(
                "choice_scores",
                format!(
                    "mode `choice` needs 2 to {MOST_LEVELS} labels, each with a score in [0,1]"
                ),
            ));
        }
        let mut choices: Vec<Choice> = Vec::new();
        for (label, score) in &self.choice_scores {
            let at = format!("choice_scores.{label}");
            let score = Score::new(*score).map_err(|e| {
                BuildError::invalid(at.as_str(), format!("{e}: expected a score in [0,1]"))
            })?;
            if folded(label).is_empty() {
                return Err(BuildError::invalid(at, "is an empty label"));
            }
            if let Some(other) = choices.iter().find(|c| folded(&c.label) == folded(label)) {
                return Err(BuildError::invalid(
                    at,
                    format!("reads the same as `{}`: expected distinct labels", other.label),
                ));
            }
            choices.push(Choice { label: label.clone(), score });
        }
        choices.sort_by_key(|c| c.score);
        Ok(choices)
    }

    fn template_text(&self, base: &Path) -> Result<Option<String>, BuildError> {
        let Some(template) = &self.template else { return Ok(None) };
        if template.contains("{{") || template.contains("{%") || template.contains('\n') {
            return Ok(Some(template.clone()));
        }
        let path = base.join(template);
        crate::inputs::note(&path);
        std::fs::read_to_string(&path).map(Some).map_err(|source| BuildError::File {
            field: "template".into(),
            path,
            source,
        })
    }

    fn read_examples(&self, base: &Path) -> Result<Vec<Example>, BuildError> {
        match &self.examples {
            Some(examples) => examples.read(base),
            None => Ok(Vec::new()),
        }
    }
}

/// Whole levels from 1 to 5: the scale of mode `score` when none is named.
fn stars() -> Scale {
    Scale::levels_between(1, 5).unwrap_or(Scale::UNIT)
}

fn check_levels(scale: Scale, field: &str) -> Result<(), BuildError> {
    let count = asked_levels(scale).len();
    if (2..=MOST_LEVELS).contains(&count) {
        return Ok(());
    }
    Err(BuildError::invalid(
        field,
        format!(
            "`{scale}` can't be asked for as an enumeration: expected `unit`, or 2 to {MOST_LEVELS} levels such as `1-5`"
        ),
    ))
}

/// The levels that the model is offered: the scale's own; on a continuous scale eleven, a
/// tenth of the range apart.
#[must_use]
pub(super) fn asked_levels(scale: Scale) -> Vec<f64> {
    let levels = scale.levels().unwrap_or_else(|| {
        let step = (scale.high() - scale.low()) / 10.0;
        (0..=10).map(|i| scale.low() + step * f64::from(i)).collect()
    });
    // 0.1 x 3 is not 0.3; nine digits are.
    levels.into_iter().map(|level| (level * 1e9).round() / 1e9).collect()
}

/// An error and its causes on one line.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
