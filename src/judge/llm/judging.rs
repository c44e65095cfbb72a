//! An LLM judge without its model server: what it asks, and what verdict follows.
//!
//! Pure functions of a case and a reply, so that replies kept in the store can be read again
//! offline. The sending is in `seat`.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::Value as TemplateValue;
use serde_json::{Value, json};

use super::example::Example;
use super::fixed::fixed_values;
use super::prompt::{Codes, Order, PromptValues, Templates, Values, first_line};
use super::reply::{self, PARSER_VERSION};
use super::shape::{Place, ReadFailure, Reading, Shape};
use super::spec::{Format, LlmSpec, Logprobs, Mode};
use super::{logprobs, schema, verdict};
use crate::case::Case;
use crate::judge::BuildError;
use crate::judge::sources::SCORE_SOURCE;
use crate::provider::{ChatReply, ChatRequest, FinishReason, Message, ResponseFormat, Role};
use crate::rubric::Rubric;
use crate::verdict::{Fingerprint, Status, Verdict};

/// Completion tokens for a one-token answer: room for a leading space, two digits and an end.
const TOKEN_FORM_MAX: u32 = 4;

/// Alternatives asked for per token; the most that the common servers allow.
const TOP_LOGPROBS: u8 = 20;

/// How an answer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One token, read by its log-probabilities.
    Token,
    /// JSON.
    Written,
}

/// One question to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// What is sent.
    pub request: ChatRequest,
    /// How the answer is asked for.
    pub form: Form,
    /// True where the baseline is shown before the output.
    pub swapped: bool,
}

/// What a judge is made from, once its configuration is checked.
pub(super) struct Parts<'a> {
    pub(super) spec: &'a LlmSpec,
    pub(super) shape: Shape,
    pub(super) rubric: Option<Rubric>,
    pub(super) token_form: bool,
    pub(super) reasoning: bool,
    pub(super) template: Option<String>,
    pub(super) examples: Vec<Example>,
    pub(super) identity: &'a Value,
}

/// An LLM judge without its model server.
#[derive(Debug)]
pub struct Judging {
    spec: LlmSpec,
    shape: Shape,
    rubric: Option<Rubric>,
    token_form: bool,
    reasoning: bool,
    examples: Vec<Example>,
    templates: Templates,
    /// What does not depend on the case.
    fixed: Arc<Values>,
    /// Whether the template that shows the case is the judge's own.
    own_template: bool,
    system: String,
    answer_token: String,
    answer_written: String,
    fingerprint: Fingerprint,
}

impl Judging {
    pub(super) fn new(parts: Parts<'_>) -> Result<Self, BuildError> {
        let Parts { spec, shape, rubric, token_form, reasoning, template, examples, identity } =
            parts;
        let fixed = Arc::new(fixed_values(spec, &shape, rubric.as_ref()));
        let in_template =
            |error: &dyn std::fmt::Display| BuildError::invalid("template", error.to_string());
        let templates =
            Templates::new(spec.lang, template.as_deref()).map_err(|error| in_template(&error))?;
        let shown: &[&str] = if spec.mode == Mode::Pairwise { &["a", "b"] } else { &["output"] };
        templates.check(&fixed, shown).map_err(|error| in_template(&error))?;
        let render = |name: &str, form: &str| {
            let mut values = (*fixed).clone();
            values.insert("form", form.into());
            values.insert("reason_first", reasoning.into());
            templates.render(name, values.into()).map_err(|error| in_template(&error))
        };
        let system = render("system", "written")?;
        let answer_token = if token_form { render("answer", "token")? } else { String::new() };
        let answer_written = render("answer", "written")?;
        let fingerprint = Fingerprint::of(
            "llm",
            &json!({
                "endpoint": identity,
                "mode": spec.mode,
                "shape": shape,
                "rubric": rubric,
                "criterion": spec.criterion,
                "questions": spec.questions,
                "system": system,
                "answer_forms": [answer_token, answer_written],
                "templates": templates.sources(),
                "examples": examples,
                "lang": spec.lang,
                "logprobs": spec.logprobs,
                "reasoning": reasoning,
                "temperature": temperature(spec),
                "seed": spec.seed,
                "max_tokens": spec.max_tokens,
                "response_format": spec.response_format,
                "parser_version": PARSER_VERSION,
            }),
        );
        let judging = Self {
            spec: spec.clone(),
            shape,
            rubric,
            token_form,
            reasoning,
            examples,
            templates,
            fixed,
            own_template: template.is_some(),
            system,
            answer_token,
            answer_written,
            fingerprint,
        };
        judging.check_examples()?;
        Ok(judging)
    }

    fn check_examples(&self) -> Result<(), BuildError> {
        for (i, example) in self.examples.iter().enumerate() {
            let at = |field: &str| format!("examples[{i}].{field}");
            if self.spec.mode == Mode::Pairwise && example.baseline.is_none() {
                return Err(BuildError::invalid(
                    at("baseline"),
                    "is missing: mode `pairwise` compares two outputs",
                ));
            }
            let text = self.example_answer(example, Form::Written, false);
            reply::read_text(&text, &self.shape)
                .map_err(|failure| BuildError::invalid(at("answer"), failure.message))?;
            self.templates
                .render("task", self.values(&example.case(), &Codes::probe(), false))
                .map_err(|error| {
                    BuildError::invalid(format!("examples[{i}]"), error.to_string())
                })?;
        }
        Ok(())
    }

    /// What makes this judge this judge.
    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// How many samples make one vote.
    #[must_use]
    pub fn samples(&self) -> u32 {
        self.spec.samples.unwrap_or(1).max(1)
    }

    /// What its replies must hold.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether its verdicts hold a `required` criterion or question.
    #[must_use]
    pub fn may_fail_criterion(&self) -> bool {
        match self.spec.mode {
            // In other modes a rubric is only shown; its criteria are not scored.
            Mode::Rubric => {
                self.rubric.as_ref().is_some_and(|r| r.criteria.iter().any(|c| c.required))
            }
            Mode::Checklist => self.spec.questions.iter().any(|q| q.required),
            _ => false,
        }
    }

    /// The criteria or questions that its verdicts hold, with their weights.
    #[must_use]
    pub fn criterion_weights(&self) -> Vec<(String, f64)> {
        match self.spec.mode {
            Mode::Rubric => self
                .rubric
                .iter()
                .flat_map(|rubric| &rubric.criteria)
                .map(|criterion| (criterion.name.clone(), criterion.weight))
                .collect(),
            Mode::Checklist => {
                let questions = self.spec.questions.iter();
                questions.map(|question| (question.text.clone(), question.weight)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How an answer is asked for first.
    #[must_use]
    pub fn first_form(&self) -> Form {
        if self.token_form { Form::Token } else { Form::Written }
    }

    pub(super) fn logprobs(&self) -> Logprobs {
        self.spec.logprobs
    }

    pub(super) fn mode(&self) -> Mode {
        self.spec.mode
    }

    pub(super) fn rubric(&self) -> Option<&Rubric> {
        self.rubric.as_ref()
    }

    pub(super) fn spec(&self) -> &LlmSpec {
        &self.spec
    }

    /// The questions for one sample of a case: one, or two in mode `pairwise`.
    ///
    /// # Errors
    /// The verdict `abstained`, where the case lacks what the judge needs.
    pub fn requests(
        &self,
        case: &Case,
        sample: u32,
        form: Form,
    ) -> Result<Vec<Prompt>, Box<Verdict>> {
        if case.output.is_none() {
            return Err(Box::new(Verdict::abstained("the case has no `output` to judge")));
        }
        let pairwise = self.spec.mode == Mode::Pairwise;
        if pairwise && case.baseline.is_none() {
            return Err(Box::new(Verdict::abstained("the case has no `baseline` to compare with")));
        }
        let orders: &[bool] = if pairwise { &[false, true] } else { &[false] };
        orders
            .iter()
            .map(|swapped| {
                let messages = self.messages(case, form, *swapped).map_err(|error| {
                    Box::new(Verdict::abstained(format!(
                        "the template does not apply to this case: {}",
                        first_line(&error)
                    )))
                })?;
                Ok(Prompt {
                    request: self.request(messages, sample, form),
                    form,
                    swapped: *swapped,
                })
            })
            .collect()
    }

    fn messages(
        &self,
        case: &Case,
        form: Form,
        swapped: bool,
    ) -> Result<Vec<Message>, minijinja::Error> {
        // A case that is itself an example would be shown its own label.
        let shown: Vec<(&Example, Case)> = self
            .examples
            .iter()
            .map(|example| (example, example.case()))
            .filter(|(_, shown)| shown.input != case.input || shown.output != case.output)
            .collect();
        let extra: Vec<&str> = shown
            .iter()
            .flat_map(|(_, c)| [&c.input, &c.output, &c.expected, &c.context, &c.baseline])
            .flatten()
            .map(String::as_str)
            .collect();
        let codes = Codes::new(case, self.fingerprint.as_str(), &extra);
        let answer = self.answer_form(form);
        let user = |case: &Case| {
            let task = self.templates.render("task", self.values(case, &codes, swapped))?;
            Ok::<_, minijinja::Error>(Message {
                role: Role::User,
                content: [&task, "\n\n", answer].concat(),
            })
        };
        let mut messages = vec![Message { role: Role::System, content: self.system.clone() }];
        for (example, case) in &shown {
            messages.push(user(case)?);
            messages.push(Message {
                role: Role::Assistant,
                content: self.example_answer(example, form, swapped),
            });
        }
        messages.push(user(case)?);
        Ok(messages)
    }

    fn values(&self, case: &Case, codes: &Codes, swapped: bool) -> TemplateValue {
        let side_by_side = self.own_template || self.spec.mode == Mode::Pairwise;
        let order = if side_by_side { Order::both(swapped) } else { Order::Alone };
        TemplateValue::from_object(PromptValues::new(case, codes, order, &self.fixed))
    }

    fn answer_form(&self, form: Form) -> &str {
        match form {
            Form::Token => &self.answer_token,
            Form::Written => &self.answer_written,
        }
    }

    fn request(&self, messages: Vec<Message>, sample: u32, form: Form) -> ChatRequest {
        let token = form == Form::Token;
        ChatRequest {
            messages,
            temperature: Some(temperature(&self.spec)),
            seed: self.spec.seed.map(|seed| seed.wrapping_add(u64::from(sample))),
            max_tokens: Some(if token { TOKEN_FORM_MAX } else { self.max_tokens() }),
            response_format: if token { ResponseFormat::Text } else { self.response_format() },
            top_logprobs: token.then_some(TOP_LOGPROBS),
        }
    }

    fn max_tokens(&self) -> u32 {
        let parts = match &self.shape {
            Shape::Rubric { criteria, .. } => criteria.len(),
            Shape::Checklist { questions } => *questions,
            _ => 0,
        };
        // Two sentences and the JSON around them take about 100 tokens.
        let default = 1024 + 128 * u32::try_from(parts).unwrap_or(1024).min(1024);
        self.spec.max_tokens.unwrap_or(default)
    }

    fn response_format(&self) -> ResponseFormat {
        match self.spec.response_format {
            Format::Auto | Format::JsonSchema => ResponseFormat::JsonSchema {
                name: "verdict".into(),
                schema: schema::of(&self.shape, self.reasoning),
            },
            Format::JsonObject => ResponseFormat::JsonObject,
            Format::Text => ResponseFormat::Text,
        }
    }

    /// The answer of an example, in the form that is asked for.
    fn example_answer(&self, example: &Example, form: Form, swapped: bool) -> String {
        match form {
            Form::Token => example.one_token(&self.shape, self.spec.lang, swapped),
            Form::Written => example.written(&self.shape, self.reasoning, swapped),
        }
    }

    /// Reads a reply to a question of this form.
    ///
    /// # Errors
    /// The status that the verdict then has, and what was wrong.
    pub fn read(&self, reply: &ChatReply, form: Form) -> Result<Reading, ReadFailure> {
        if form == Form::Token && reply.finish != FinishReason::Refusal {
            if let Some(reading) =
                reply.logprobs.as_deref().and_then(|tokens| logprobs::read(tokens, &self.shape))
            {
                return Ok(reading);
            }
            if self.spec.logprobs == Logprobs::Require {
                return Err(if reply.logprobs.is_some() {
                    ReadFailure::unparseable(
                        "the log-probabilities lie on none of the answers asked for",
                    )
                } else {
                    ReadFailure::new(
                        Status::ProviderError,
                        "the server gave no log-probabilities, and `logprobs = \"require\"`",
                    )
                });
            }
        }
        reply::read(reply, &self.shape)
    }

    /// The question asked once more after a reply that could not be read, with the reply and
    /// what was wrong with it; `None` where asking again does not help. After a one-token
    /// answer the written form is asked for.
    #[must_use]
    pub fn again(
        &self,
        prompt: &Prompt,
        sample: u32,
        reply: &ChatReply,
        failure: &ReadFailure,
    ) -> Option<Prompt> {
        // What was cut off at one token may be whole at more.
        let cut = prompt.form == Form::Token && failure.status == Status::Truncated;
        // The written form has no log-probabilities.
        let barred = prompt.form == Form::Token && self.spec.logprobs == Logprobs::Require;
        if barred || !(failure.may_be_mended() || cut) {
            return None;
        }
        let problem = if cut { "the answer was not a single word" } else { &failure.message };
        let values: Values = BTreeMap::from([
            ("problem", TemplateValue::from(problem)),
            ("answer", TemplateValue::from(self.answer_written.as_str())),
        ]);
        let retry = self.templates.render("retry", values.into()).ok()?;
        let said = reply.text.trim();
        let mut messages = prompt.request.messages.clone();
        messages.push(Message {
            role: Role::Assistant,
            // Some servers refuse a message without text.
            content: if said.is_empty() { "(no text)".into() } else { said.to_owned() },
        });
        messages.push(Message { role: Role::User, content: retry });
        Some(Prompt {
            request: self.request(messages, sample, Form::Written),
            form: Form::Written,
            swapped: prompt.swapped,
        })
    }

    /// What is said where a reply has to be asked for again, with room for what was wrong with
    /// it; `None` where it never is.
    pub(super) fn retry_text(&self) -> Option<String> {
        if self.token_form && self.spec.logprobs == Logprobs::Require {
            return None;
        }
        let values: Values = BTreeMap::from([
            ("problem", TemplateValue::from("what was wrong ".repeat(20))),
            ("answer", TemplateValue::from(self.answer_written.as_str())),
        ]);
        self.templates.render("retry", values.into()).ok()
    }

    /// The verdict that follows from what was read: one reading, or in mode `pairwise` that of
    /// the order as given and then that of the swapped one.
    #[must_use]
    pub fn verdict(&self, readings: &[Reading]) -> Verdict {
        let verdict = match (self.spec.mode, readings) {
            (Mode::Pairwise, [given, swapped]) => verdict::pairwise(given, swapped),
            (_, [reading]) => verdict::single(self, reading),
            _ => Verdict::failed(Status::Internal, "a wrong number of replies was read"),
        };
        let by_logprobs = readings.iter().all(|r| r.place == Place::Logprobs);
        let verdict = verdict.note(SCORE_SOURCE, if by_logprobs { "logprobs" } else { "text" });
        match readings.iter().filter_map(|r| r.mass).reduce(f64::min) {
            Some(mass) => verdict.note("answer_mass", mass),
            None => verdict,
        }
    }
}

/// The temperature asked for: 0 for a single sample, 0.7 where several must differ.
fn temperature(spec: &LlmSpec) -> f64 {
    spec.temperature.unwrap_or(if spec.samples.unwrap_or(1) > 1 { 0.7 } else { 0.0 })
}

#[cfg(test)]
mod tests;
