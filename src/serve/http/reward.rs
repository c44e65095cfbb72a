//! Routes of reward models, for trainers: `/get_reward`, `/verify`, `/classify`.
//!
//! What the panel did not decide is never a number that a trainer would learn from: it is
//! answered in the host's own way of saying so, or refused so that the host asks again.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::body;
use super::fault::{self, Fault};
use super::options::{RewardAs, RewardOptions};
use super::service::Service;
use crate::case::Case;
use crate::dataset::aliases_of;
use crate::report::words;
use crate::ruling::{Decision, Ruling};
use crate::run::rows::reason_word;

/// Outputs of one request in judgement at a time at most.
const AT_A_TIME: usize = 16;

/// The reward of a ruling; `None` for what was not decided.
pub(super) fn reward(ruling: &Ruling, options: &RewardOptions) -> Option<f64> {
    let score = ruling.score.map(crate::score::Score::get);
    match (ruling.decision, options.reward) {
        (Decision::Undecided, _) => None,
        (_, RewardAs::Score) => score,
        (decision, RewardAs::Decision) => Some(f64::from(decision == Decision::Accept)),
        (Decision::Reject, RewardAs::Gated) if !ruling.vetoes().is_empty() => Some(0.0),
        (_, RewardAs::Gated) => score,
    }
}

/// What a trainer sends to `/get_reward`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RewardRequest {
    /// The texts as the model has them: prompt and answer in one.
    pub(super) query: Vec<String>,
    /// The prompts, one a text: what of `query` is the answer is what comes after them.
    #[serde(default)]
    pub(super) prompts: Option<Vec<String>>,
    /// The reference answers, one a text; null where there is none.
    #[serde(default)]
    pub(super) labels: Option<Vec<Value>>,
}

/// What `/get_reward` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Rewards {
    /// A reward a text.
    pub(super) rewards: Vec<Option<f64>>,
    /// The same, which trainers filter by.
    pub(super) scores: Vec<Option<f64>>,
    /// Figures for the trainer's log, each one a text.
    pub(super) extra_logs: ExtraLogs,
}

/// Figures for the trainer's log.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExtraLogs {
    /// 1 for accepted.
    pub(super) accepted: Vec<f64>,
    /// Votes with a score.
    pub(super) votes: Vec<f64>,
    /// 1 where a vote was missing.
    pub(super) degraded: Vec<f64>,
    /// 1 where the text was judged whole, its prompt within it: none was sent for it, or the
    /// text does not begin with it.
    pub(super) whole_query: Vec<f64>,
}

/// The rewards of texts.
pub(super) async fn get_reward(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let place = service.enter()?;
    let value = body::json(&headers, body, service.limits()).await?;
    let request: RewardRequest = object(value)?;
    let prompted = request.prompts.is_some();
    let (cases, whole): (Vec<Case>, Vec<bool>) = request.cases()?.into_iter().unzip();
    let unsplit = whole.iter().filter(|whole| **whole).count();
    if prompted && unsplit > 0 {
        tracing::warn!(
            "{unsplit} of {} texts do not begin with their prompts and are judged whole, prompt and all: `extra_logs.whole_query` says which",
            whole.len()
        );
    }
    let rulings = all(&service, &place, cases).await?;
    let options = service.options().reward;
    let rewards: Vec<Option<f64>> = rulings.iter().map(|ruling| reward(ruling, &options)).collect();
    if !options.null_rewards {
        decided(&rulings, "query")?;
    }
    let figure = |of: fn(&Ruling) -> f64| rulings.iter().map(of).collect();
    let answer = Rewards {
        scores: rewards.clone(),
        rewards,
        extra_logs: ExtraLogs {
            accepted: figure(|ruling| f64::from(ruling.decision == Decision::Accept)),
            votes: figure(|ruling| f64::from(ruling.votes_used)),
            degraded: figure(|ruling| f64::from(ruling.degraded)),
            whole_query: whole.into_iter().map(f64::from).collect(),
        },
    };
    Ok(fault::json(StatusCode::OK, &answer))
}

/// Reads an object; a list would be taken for its fields in order.
fn object<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Fault> {
    if !value.is_object() {
        return Err(Fault::unusable("expected a JSON object"));
    }
    Ok(crate::config::from_value(value)?)
}

impl RewardRequest {
    /// Its cases, each with whether all of its text is taken for the answer.
    fn cases(self) -> Result<Vec<(Case, bool)>, Fault> {
        let count = self.query.len();
        let lengths = [
            ("prompts", self.prompts.as_ref().map(Vec::len)),
            ("labels", self.labels.as_ref().map(Vec::len)),
        ];
        for (field, length) in lengths {
            if let Some(length) = length.filter(|length| *length != count) {
                let message = format!("expected {count} values, as in `query`, found {length}");
                return Err(Fault::unusable(message).at(field));
            }
        }
        let mut prompts = self.prompts.unwrap_or_default().into_iter();
        let mut labels = self.labels.unwrap_or_default().into_iter();
        let case = |query: String| {
            let input = prompts.next();
            // The whole text is the answer where it does not begin with its prompt.
            let (output, whole) =
                match input.as_deref().and_then(|prompt| query.strip_prefix(prompt)) {
                    Some(answer) => (answer.to_owned(), false),
                    None => (query, true),
                };
            let expected = labels.next().and_then(text);
            (named(Case { input, output: Some(output), expected, ..Case::default() }), whole)
        };
        Ok(self.query.into_iter().map(case).collect())
    }
}

fn named(mut case: Case) -> Case {
    case.id = case.content_id();
    case
}

/// A reference as a text; numbers and lists as they are written in JSON.
fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// Judges all of a request's cases, a few at a time.
async fn all(
    service: &Arc<Service>,
    place: &Arc<super::admission::Place>,
    cases: Vec<Case>,
) -> Result<Vec<Ruling>, Fault> {
    let at_a_time = service.limits().concurrency.min(AT_A_TIME);
    let rulings = stream::iter(cases)
        .map(|case| service.rule(place, case, Instant::now()))
        .buffered(at_a_time)
        .collect::<Vec<_>>()
        .await;
    rulings.into_iter().collect()
}

/// Refuses an answer in which something was not decided: the host then asks again, and counts
/// it as missing in the end.
fn decided(rulings: &[Ruling], field: &str) -> Result<(), Fault> {
    let Some((i, ruling)) =
        rulings.iter().enumerate().find(|(_, ruling)| ruling.decision == Decision::Undecided)
    else {
        return Ok(());
    };
    let message = format!(
        "nothing was decided, and no number stands for that: {}",
        words::plain(&words::reason(ruling))
    );
    let fault = Fault::new(StatusCode::SERVICE_UNAVAILABLE, "not_measured", message);
    Err(fault.at(format!("{field}[{i}]")).after(1))
}

/// What `/verify` answers, beside everything that it was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Verified {
    /// The reward; null where nothing was decided and no number is to stand beside
    /// `mask_sample`.
    pub(super) reward: Option<f64>,
    /// Whether this sample is to be left out: nothing was decided.
    pub(super) mask_sample: bool,
    /// Why, in a word; null where something was decided.
    pub(super) failure_kind: Option<String>,
    /// Why, in words.
    pub(super) failure_reason: Option<String>,
    /// The judges' votes by name; only where something was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reward_components: Option<Map<String, Value>>,
}

/// Verifies a response of a model, with the request that it answers.
pub(super) async fn verify(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let arrived = Instant::now();
    let place = service.enter()?;
    let value = body::json(&headers, body, service.limits()).await?;
    let Value::Object(mut sent) = value else {
        return Err(Fault::unusable("expected a JSON object"));
    };
    let case = asked(&sent)?;
    let ruling = service.rule(&place, case, arrived).await?;
    let options = service.options().reward;
    let reward = reward(&ruling, &options);
    let missing = reward.is_none();
    let votes = ruling
        .votes
        .iter()
        .filter_map(|vote| vote.score.map(|score| (vote.judge.clone(), json!(score.get()))));
    let verified = Verified {
        reward: reward.or(options.masked),
        mask_sample: missing,
        failure_kind: missing.then(|| reason_word(&ruling.reason).to_owned()),
        failure_reason: missing.then(|| words::plain(&words::reason(&ruling))),
        reward_components: (!missing).then(|| votes.collect()),
    };
    if let Ok(Value::Object(own)) = serde_json::to_value(&verified) {
        // What was sent under these names was not measured here.
        sent.remove("reward_components");
        sent.extend(own);
    }
    Ok(fault::json(StatusCode::OK, &sent))
}

/// The case in a request and a response of the Responses API.
fn asked(sent: &Map<String, Value>) -> Result<Case, Fault> {
    let part = |path: &str| {
        let found = sent.get(path).ok_or_else(|| Fault::unusable("is missing").at(path))?;
        found.as_object().ok_or_else(|| Fault::unusable("expected an object").at(path))
    };
    let (request, response) = (part("responses_create_params")?, part("response")?);
    let input = match request.get("input") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(items)) => {
            objects(items, "responses_create_params.input")?;
            Some(conversation(items))
        }
        Some(_) => {
            let fault = Fault::unusable("expected a text or a list of messages");
            return Err(fault.at("responses_create_params.input"));
        }
    };
    let Some(items) = response.get("output").and_then(Value::as_array) else {
        return Err(Fault::unusable("expected a list of items").at("response.output"));
    };
    objects(items, "response.output")?;
    // The last message is the answer; what came before it led there.
    let answer = items.iter().rev().find(|item| is_message(item)).map(message_text);
    let expected = std::iter::once("expected")
        .chain(aliases_of("expected").iter().copied())
        .find_map(|name| sent.get(name).cloned().and_then(text));
    Ok(named(Case { input, output: Some(answer.unwrap_or_default()), expected, ..Case::default() }))
}

/// Refuses items that are none.
fn objects(items: &[Value], field: &str) -> Result<(), Fault> {
    match items.iter().position(|item| !item.is_object()) {
        Some(i) => Err(Fault::unusable("expected an object").at(format!("{field}[{i}]"))),
        None => Ok(()),
    }
}

fn is_message(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "message")
}

/// A conversation as one text; a single message of the user as what it says.
fn conversation(items: &[Value]) -> String {
    let role = |item: &Value| item.get("role").and_then(Value::as_str).unwrap_or("user").to_owned();
    let messages: Vec<&Value> = items.iter().filter(|item| is_message(item)).collect();
    match messages.as_slice() {
        [only] if role(only) == "user" => message_text(only),
        all => all
            .iter()
            .map(|item| format!("{}: {}", role(item), message_text(item)))
            .collect::<Vec<_>>()
            .join("\n\n"),
    }
}

/// The text of a message: its content, or the texts among its parts.
fn message_text(item: &Value) -> String {
    match item.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// What a classifier's client sends.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ClassifyRequest {
    /// Repeated in the answer; the panel's name if not given.
    #[serde(default)]
    pub(super) model: Option<String>,
    /// A text, or a list of texts.
    pub(super) input: Input,
}

/// A text, or a list of texts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(super) enum Input {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// What `/classify` answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Classified {
    /// A name of this answer.
    pub(super) id: String,
    /// `list`.
    pub(super) object: &'static str,
    /// When, in seconds since 1970.
    pub(super) created: i64,
    /// The model that was asked for, or the panel's name.
    pub(super) model: String,
    /// One a text.
    pub(super) data: Vec<Class>,
    /// What was used.
    pub(super) usage: ClassUsage,
}

/// A text's class.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Class {
    /// Which text, from 0.
    pub(super) index: usize,
    /// `accept` or `reject`.
    pub(super) label: &'static str,
    /// 1 minus the reward, and the reward: the order is `reject`, `accept`.
    pub(super) probs: [f64; 2],
    /// 2.
    pub(super) num_classes: usize,
}

/// Tokens of all judges.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ClassUsage {
    /// Prompt tokens.
    pub(super) prompt_tokens: u64,
    /// Completion tokens.
    pub(super) completion_tokens: u64,
    /// Both.
    pub(super) total_tokens: u64,
}

/// The classes of texts.
pub(super) async fn classify(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Fault> {
    let place = service.enter()?;
    let value = body::json(&headers, body, service.limits()).await?;
    let request: ClassifyRequest = object(value)?;
    let texts = match request.input {
        Input::One(text) => vec![text],
        Input::Several(texts) => texts,
    };
    let cases = texts.into_iter().map(|text| named(Case { output: Some(text), ..Case::default() }));
    let rulings = all(&service, &place, cases.collect()).await?;
    decided(&rulings, "input")?;
    let options = service.options().reward;
    let data = rulings.iter().enumerate().filter_map(|(index, ruling)| {
        let reward = reward(ruling, &options)?;
        let label = ruling.decision.name();
        Some(Class { index, label, probs: [1.0 - reward, reward], num_classes: 2 })
    });
    let verdicts = || rulings.iter().flat_map(|ruling| &ruling.verdicts);
    let prompt_tokens = verdicts().map(|verdict| verdict.usage.tokens_in).sum();
    let completion_tokens = verdicts().map(|verdict| verdict.usage.tokens_out).sum();
    let panel = service.judging().map(|judging| judging.panel.name.clone()).unwrap_or_default();
    let now = jiff::Timestamp::now();
    let answer = Classified {
        id: format!("classify-{:016x}", rand::random::<u64>()),
        object: "list",
        created: now.as_second(),
        model: request.model.unwrap_or(panel),
        data: data.collect(),
        usage: ClassUsage {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens + completion_tokens,
        },
    };
    Ok(fault::json(StatusCode::OK, &answer))
}
