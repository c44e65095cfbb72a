//! The asking: a judge, its model server, and what the two cost.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::future::{BoxFuture, join_all};

use super::judging::{Form, Judging, Prompt};
use super::model_name::same_model;
use super::shape::{ReadFailure, Reading};
use super::spec::{Logprobs, Mode};
use crate::case::Case;
use crate::judge::{Judge, Plan};
use crate::provider::{
    CallContext, ChatReply, ChatRequest, Client, Endpoint, Message, Price, ProviderError,
    ResponseFormat, Role,
};
use crate::verdict::{Fingerprint, Status, Usage, Verdict};

/// What a judge needs of its model server.
trait Server: fmt::Debug + Send + Sync {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ChatReply, ProviderError>>;
    fn model(&self) -> &str;
    fn price(&self) -> Option<Price>;
}

#[derive(Debug)]
struct Remote {
    client: Client,
    endpoint: Endpoint,
}

impl Server for Remote {
    fn chat<'a>(
        &'a self,
        request: &'a ChatRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ChatReply, ProviderError>> {
        Box::pin(self.client.chat(&self.endpoint, request, context))
    }

    fn model(&self) -> &str {
        self.endpoint.model()
    }

    fn price(&self) -> Option<Price> {
        self.endpoint.price()
    }
}

/// An LLM judge, ready to be seated.
#[derive(Debug)]
pub struct LlmJudge {
    judging: Judging,
    server: Box<dyn Server>,
    /// Set when the server refused a request for log-probabilities, so that it is not asked
    /// for them before every case.
    no_logprobs: AtomicBool,
    /// Set when log-probabilities have come: a later refusal that does not speak of them is
    /// about something else.
    logprobs_came: AtomicBool,
    /// The model named by the last reply, and whether it is the one asked for: nearly every
    /// reply names the same.
    last_model: Mutex<Option<(String, bool)>>,
}

/// What became of one question.
struct Asked {
    result: Result<Reading, Failure>,
    replies: Vec<ChatReply>,
    /// Requests that got no reply.
    failed_attempts: u32,
    asked_again: bool,
    /// Whether a request may have cost what nobody tells.
    cost_unknown: bool,
}

enum Failure {
    Provider(ProviderError),
    Read(ReadFailure),
}

impl LlmJudge {
    /// A judge with the server that it asks.
    #[must_use]
    pub fn new(judging: Judging, client: Client, endpoint: Endpoint) -> Self {
        Self::with_server(judging, Box::new(Remote { client, endpoint }))
    }

    fn with_server(judging: Judging, server: Box<dyn Server>) -> Self {
        Self {
            judging,
            server,
            no_logprobs: AtomicBool::new(false),
            logprobs_came: AtomicBool::new(false),
            last_model: Mutex::default(),
        }
    }

    fn is_own_model(&self, returned: &str) -> bool {
        let mut last = self.last_model.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((name, own)) if name == returned => *own,
            _ => {
                let own = same_model(self.server.model(), returned);
                *last = Some((returned.to_owned(), own));
                own
            }
        }
    }

    fn first_form(&self) -> Form {
        match self.judging.first_form() {
            Form::Token
                if self.judging.logprobs() == Logprobs::Auto
                    && self.no_logprobs.load(Ordering::Relaxed) =>
            {
                Form::Written
            }
            form => form,
        }
    }

    async fn measure(&self, case: &Case, context: &CallContext) -> Verdict {
        let prompts = match self.judging.requests(case, context.sample, self.first_form()) {
            Ok(prompts) => prompts,
            Err(verdict) => return Verdict { attempts: 0, ..*verdict },
        };
        let asked =
            join_all(prompts.into_iter().map(|prompt| self.ask(case, prompt, context))).await;
        let mut readings = Vec::with_capacity(asked.len());
        let mut failure = None;
        let (mut replies, mut attempts, mut asked_again) = (Vec::new(), 0, false);
        let mut cost_unknown = false;
        let mut latency_ms = 0;
        for one in asked {
            match one.result {
                Ok(reading) => readings.push(reading),
                Err(error) => failure = failure.or(Some(error)),
            }
            attempts += one.failed_attempts;
            asked_again |= one.asked_again;
            cost_unknown |= one.cost_unknown;
            latency_ms = latency_ms.max(one.replies.iter().map(|r| r.latency_ms).sum());
            replies.extend(one.replies);
        }
        let mut verdict = match failure {
            None => self.judging.verdict(&readings),
            Some(Failure::Read(failure)) => Verdict::failed(failure.status, failure.message),
            Some(Failure::Provider(error)) => {
                let hint = error.hint.map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
                Verdict::failed(error.status, format!("{}{hint}", error.message))
            }
        };
        if asked_again {
            verdict = verdict.note("asked_again", true);
        }
        let verdict = self.account(verdict, &replies, attempts, latency_ms);
        Verdict { cost_usd: verdict.cost_usd.filter(|_| !cost_unknown), ..verdict }
    }

    /// Asks, and once more where the reply could not be read.
    async fn ask(&self, case: &Case, prompt: Prompt, context: &CallContext) -> Asked {
        let mut asked = Asked {
            result: Err(Failure::Read(ReadFailure::unparseable("nothing was asked"))),
            replies: Vec::new(),
            failed_attempts: 0,
            asked_again: false,
            cost_unknown: false,
        };
        let mut prompt = prompt;
        // Whether a request was refused, and whether the server spoke of log-probabilities.
        let mut refused: Option<bool> = None;
        loop {
            match self.server.chat(&prompt.request, context).await {
                Err(error) => {
                    asked.failed_attempts += error.attempts;
                    asked.cost_unknown |= error.cost_unknown;
                    if let Some(written) = self.without_logprobs(case, &prompt, &error, context) {
                        prompt = written;
                        refused = Some(speaks_of_logprobs(&error.message));
                        continue;
                    }
                    asked.result = Err(Failure::Provider(error));
                    return asked;
                }
                Ok(reply) => {
                    if prompt.form == Form::Token && reply.logprobs.is_some() {
                        self.logprobs_came.store(true, Ordering::Relaxed);
                        self.no_logprobs.store(false, Ordering::Relaxed);
                    }
                    // Without log-probabilities it went through, so they were why, unless they
                    // have come for another case meanwhile.
                    if let Some(spoken_of) = refused.take()
                        && (spoken_of || !self.logprobs_came.load(Ordering::Relaxed))
                    {
                        self.no_logprobs.store(true, Ordering::Relaxed);
                    }
                    let read = self.judging.read(&reply, prompt.form);
                    let again = match &read {
                        Err(failure) if !asked.asked_again => {
                            self.judging.again(&prompt, context.sample, &reply, failure)
                        }
                        _ => None,
                    };
                    asked.replies.push(reply);
                    match again {
                        Some(next) => {
                            asked.asked_again = true;
                            prompt = next;
                        }
                        None => {
                            asked.result = read.map_err(Failure::Read);
                            return asked;
                        }
                    }
                }
            }
        }
    }

    /// The same question in the written form, where the server refused the request and the
    /// log-probabilities may be why.
    fn without_logprobs(
        &self,
        case: &Case,
        prompt: &Prompt,
        error: &ProviderError,
        context: &CallContext,
    ) -> Option<Prompt> {
        let refused = matches!(error.http_status, Some(400 | 422))
            && !error.too_long
            && error.status != Status::Refused;
        // Two ways of asking give two scales: once log-probabilities have come, only a refusal
        // that speaks of them turns the judge to the other one.
        let refused = refused
            && (!self.logprobs_came.load(Ordering::Relaxed) || speaks_of_logprobs(&error.message));
        if !refused || prompt.form != Form::Token || self.judging.logprobs() != Logprobs::Auto {
            return None;
        }
        let prompts = self.judging.requests(case, context.sample, Form::Written).ok()?;
        prompts.into_iter().find(|written| written.swapped == prompt.swapped)
    }

    /// US dollars of so many tokens; `None` where the model has no price.
    fn cost(&self, tokens_in: u64, tokens_out: u64) -> Option<f64> {
        let price = self.server.price()?;
        Some((tokens_in as f64 * price.input + tokens_out as f64 * price.output) / 1e6)
    }

    /// Adds what the replies took to a verdict.
    fn account(
        &self,
        mut verdict: Verdict,
        replies: &[ChatReply],
        failed_attempts: u32,
        latency_ms: u64,
    ) -> Verdict {
        let mut usage = Usage::default();
        for reply in replies {
            usage.add(&reply.usage);
        }
        verdict.usage = usage;
        verdict.attempts = failed_attempts + replies.iter().map(|r| r.attempts).sum::<u32>();
        verdict.latency_ms = latency_ms;
        verdict.cached = !replies.is_empty() && replies.iter().all(|r| r.cached);
        // One call without a price leaves the sum unknown, a failed one too; no call costs
        // nothing. (`+ 0.0`: the sum of no floats is -0.0.)
        let known = failed_attempts == 0 || self.server.price().is_some();
        let cost = replies.iter().map(|r| r.cost_usd).sum::<Option<f64>>().map(|c| c + 0.0);
        verdict.cost_usd = cost.filter(|_| known);
        verdict.model_returned = replies.iter().rev().find_map(|r| r.model.clone());
        if let Some(returned) = &verdict.model_returned
            && !self.is_own_model(returned)
        {
            let note = format!("asked for `{}`, answered by `{returned}`", self.server.model());
            verdict = verdict.note("model_mismatch", note);
        }
        if let Some(format) = replies.iter().rev().find_map(|r| r.downgraded.as_ref()) {
            let name = match format {
                ResponseFormat::Text => "text",
                ResponseFormat::JsonObject => "json_object",
                ResponseFormat::JsonSchema { .. } => "json_schema",
            };
            verdict = verdict.note("response_format", name);
        }
        verdict
    }
}

impl Judge for LlmJudge {
    fn kind(&self) -> &'static str {
        "llm"
    }

    fn fingerprint(&self) -> &Fingerprint {
        self.judging.fingerprint()
    }

    fn samples(&self) -> u32 {
        self.judging.samples()
    }

    fn model(&self) -> Option<&str> {
        Some(self.server.model())
    }

    fn may_fail_criterion(&self) -> bool {
        self.judging.may_fail_criterion()
    }

    fn criterion_weights(&self) -> Vec<(String, f64)> {
        self.judging.criterion_weights()
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(self.measure(case, context))
    }

    /// The prompt once more, with the reply and what was wrong with it, in the written form.
    fn plan_again(&self, case: &Case) -> Plan {
        let nothing = Plan { cost_usd: Some(0.0), ..Plan::default() };
        let first = self.judging.requests(case, 0, self.first_form());
        let written = self.judging.requests(case, 0, Form::Written);
        let (Ok(first), Ok(written), Some(retry)) = (first, written, self.judging.retry_text())
        else {
            return nothing;
        };
        let out = |prompts: &[Prompt]| -> u64 {
            prompts.iter().filter_map(|p| p.request.max_tokens).map(u64::from).sum()
        };
        let said = ChatRequest {
            messages: vec![Message { role: Role::User, content: retry }],
            ..ChatRequest::default()
        };
        let calls = first.len() as u32;
        let tokens_in = first.iter().map(|p| tokens(&p.request)).sum::<u64>()
            + out(&first)
            + tokens(&said) * u64::from(calls);
        let tokens_out = out(&written);
        let cost_usd = self.cost(tokens_in, tokens_out);
        Plan { calls, tokens_in, tokens_out, cost_usd }
    }

    /// Counts a reply that can be read at once; asking again comes on top.
    fn plan(&self, case: &Case) -> Plan {
        // Where a server refuses log-probabilities, the written form is what is paid for.
        let Ok(prompts) = self.judging.requests(case, 0, self.first_form()) else {
            return Plan { cost_usd: Some(0.0), ..Plan::default() };
        };
        let tokens_in = prompts.iter().map(|p| tokens(&p.request)).sum();
        let tokens_out = prompts.iter().filter_map(|p| p.request.max_tokens).map(u64::from).sum();
        let cost_usd = self.cost(tokens_in, tokens_out);
        let calls = if self.judging.mode() == Mode::Pairwise { 2 } else { 1 };
        Plan { calls, tokens_in, tokens_out, cost_usd }
    }

    fn ping<'a>(
        &'a self,
        context: &'a CallContext,
    ) -> Option<BoxFuture<'a, Result<String, ProviderError>>> {
        Some(Box::pin(async move {
            let request = ChatRequest {
                messages: vec![Message { role: Role::User, content: "Say OK.".into() }],
                max_tokens: Some(1),
                ..ChatRequest::default()
            };
            let reply = self.server.chat(&request, context).await?;
            let model = reply.model.as_deref().unwrap_or_else(|| self.server.model());
            Ok(format!("`{model}` answered in {} ms", reply.latency_ms))
        }))
    }
}

/// Prompt tokens of a request, estimated: a quarter of the ASCII bytes, one for every other
/// character (a Chinese character is about one token), and a few for each message.
fn tokens(request: &ChatRequest) -> u64 {
    const PER_MESSAGE: u64 = 8;
    request
        .messages
        .iter()
        .map(|message| {
            let ascii = message.content.bytes().filter(u8::is_ascii).count() as u64;
            let other = message.content.chars().filter(|c| !c.is_ascii()).count() as u64;
            ascii.div_ceil(4) + other + PER_MESSAGE
        })
        .sum()
}

/// Whether a server's words are about log-probabilities.
fn speaks_of_logprobs(message: &str) -> bool {
    let message = message.to_lowercase();
    ["logprob", "log prob", "log-prob", "log_prob"].iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests;
