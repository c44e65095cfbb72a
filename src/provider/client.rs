//! The one sender: looks up, reserves, paces, sends, reads, retries, records.
//!
//! A reply is booked as spent as soon as it is read, and returned only when it is on disk.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use super::breaker::{Breaker, Shut};
use super::capability::Capability;
use super::chat::{ChatReply, ChatRequest};
use super::context::CallContext;
use super::endpoint::{Checked, Endpoint, EndpointSpec, Inner, Lane};
use super::error::{EndpointError, ProviderError};
use super::failure::{Failure, is_filtered, is_too_long};
use super::flight::Flights;
use super::key::ReplyKey;
use super::ledger::Reservation;
use super::place::Place;
use super::replies::Claim;
use super::retry::{Waits, asked_for, asked_for_in_body};
use super::transport::{Http, Incoming, Outgoing, Transport};
use super::wire::{Decoded, Plan, ServerFault, Undecodable, downgraded};
use crate::verdict::{Status, Usage};

/// A wait of a server's that is longer than this is as good as for ever.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an answer that another process is asking for is waited for. One that stands still
/// for longer is overtaken: paying twice is then better than waiting for ever.
const LONGEST_CLAIM: Duration = Duration::from_secs(10 * 60);
/// Pauses between looks at a claim: the first, and the longest.
const CLAIM_PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];
/// Pauses that a server asks for are waited for at least so long in all, and for twice a
/// judge's own time.
const LEAST_PAUSES: Duration = Duration::from_secs(60);
/// Bytes a token, for pacing only: real usage corrects it afterwards.
const BYTES_PER_TOKEN: u64 = 4;

/// Reads an environment variable.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// An address and the variable that the key is in: limits belong to an account.
type Account = (String, Option<String>);

/// Sends requests to model servers. Cheap to clone; clones share connections, pacing and
/// circuit breakers. Nothing is opened before the first request.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    variables: Variables,
    transport: Arc<dyn Transport>,
    lanes: Mutex<HashMap<Account, Arc<Lane>>>,
    /// By account and model: a model that fails must not stop the others at its address.
    breakers: Mutex<HashMap<(Account, String), Arc<Breaker>>>,
    /// By address and model.
    capabilities: Mutex<HashMap<(String, String), Arc<Capability>>>,
    flights: Flights,
}

impl Default for Client {
    fn default() -> Self {
        Self::with_variables(|name| std::env::var(name).ok())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Why waiting ended before what was waited for.
enum Ended {
    Cancelled,
    Deadline,
}

/// Waits for `work` until the context says otherwise. Dropping `work` cancels it.
async fn within<F: Future>(context: &CallContext, work: F) -> Result<F::Output, Ended> {
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(Ended::Cancelled),
        output = work => Ok(output),
        () = context.past_due() => Err(Ended::Deadline),
    }
}

/// Waits for one's own turn: as long as it takes, since the deadline waits too.
async fn in_turn<F: Future>(context: &CallContext, turn: F) -> Result<F::Output, Ended> {
    let _holding = context.held.begin();
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(Ended::Cancelled),
        output = turn => Ok(output),
    }
}

impl Client {
    /// A client that reads keys with `variable` instead of from the environment.
    pub fn with_variables(
        variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self::with_transport(Arc::new(Http::default()), variable)
    }

    pub(super) fn with_transport(
        transport: Arc<dyn Transport>,
        variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                variables: Arc::new(variable),
                transport,
                lanes: Mutex::default(),
                breakers: Mutex::default(),
                capabilities: Mutex::default(),
                flights: Flights::default(),
            }),
        }
    }

    /// An endpoint of this client. The key is read from the environment here.
    ///
    /// # Errors
    /// An unknown provider, a malformed URL or header, a missing key.
    pub fn endpoint(&self, spec: &EndpointSpec) -> Result<Endpoint, EndpointError> {
        let checked = Checked::new(spec, &*self.shared.variables)?;
        let account = (checked.base_url.clone(), checked.key_variable.clone());
        let lane = {
            let mut lanes = self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lanes.entry(account.clone()).or_insert_with(|| Arc::new(Lane::new())))
        };
        let breaker = {
            let mut known = self.shared.breakers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry((account, checked.name())).or_default())
        };
        lane.pace.tighten(checked.limits);
        let capability = {
            let mut known = self.shared.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
            let model = (checked.base_url.clone(), checked.name());
            Arc::clone(known.entry(model).or_insert_with(|| Arc::new(checked.first_capability())))
        };
        Ok(checked.into_endpoint(lane, breaker, capability))
    }

    /// Asks a model, or finds its reply in the store. Identical requests at the same time are
    /// sent once. Dropping the future cancels the request.
    ///
    /// # Errors
    /// See [`ProviderError`]; what may help was retried until the deadline.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use venire::provider::{CallContext, ChatRequest, Client, EndpointSpec, Message, Role};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::default();
    /// let endpoint = client.endpoint(&EndpointSpec {
    ///     model: "openai/qwen2.5-1.5b".into(),
    ///     base_url: Some("http://localhost:8080/v1".into()),
    ///     ..EndpointSpec::default()
    /// })?;
    /// let request = ChatRequest {
    ///     messages: vec![Message { role: Role::User, content: "Is 7 prime? yes or no".into() }],
    ///     max_tokens: Some(1),
    ///     top_logprobs: Some(5),
    ///     ..ChatRequest::default()
    /// };
    /// let context = CallContext::standalone(Duration::from_secs(60));
    /// let reply = client.chat(&endpoint, &request, &context).await?;
    /// assert_eq!(reply.attempts, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn chat(
        &self,
        endpoint: &Endpoint,
        request: &ChatRequest,
        context: &CallContext,
    ) -> Result<ChatReply, ProviderError> {
        let endpoint = &*endpoint.inner;
        if request.temperature.is_some_and(|temperature| !temperature.is_finite()) {
            let message = "`temperature` must be a finite number".to_owned();
            return Err(ProviderError::new(Status::Internal, message));
        }
        let key = endpoint.key_parts.key(request, context.sample);
        let flight = self.shared.flights.enter(key, context);
        let mut slot = within(context, flight.slot.lock())
            .await
            .map_err(|ended| stopped(&ended, endpoint, "waiting for an identical request"))?;
        if let Some(reply) = &*slot {
            context.ledger.count_cached();
            return Ok(found(reply.clone(), endpoint));
        }
        let patience = context.due().saturating_duration_since(Instant::now());
        let mut call = Call {
            transport: &*self.shared.transport,
            endpoint,
            request,
            context,
            attempts: 0,
            patience,
            pauses: patience.saturating_mul(2).max(LEAST_PAUSES),
            counted: false,
            cost_unknown: false,
        };
        let outcome = call.run(&key).await;
        let (attempts, cost_unknown) = (call.attempts, call.cost_unknown);
        match outcome {
            Ok(reply) => {
                if flight.close() {
                    *slot = Some(reply.clone());
                }
                Ok(reply)
            }
            Err(error) => Err(ProviderError { attempts, cost_unknown, ..error }),
        }
    }
}

/// A reply that was not paid for now. Its cost is what was paid for it then, or where that is
/// not known, what it would be.
fn found(reply: ChatReply, endpoint: &Inner) -> ChatReply {
    let cost_usd = reply.cost_usd.or_else(|| Some(endpoint.price.as_ref()?.cost_usd(&reply.usage)));
    ChatReply { cached: true, attempts: 0, cost_usd, ..reply }
}

fn stopped(ended: &Ended, endpoint: &Inner, doing: &str) -> ProviderError {
    match ended {
        Ended::Cancelled => ProviderError::new(Status::Cancelled, "stopped before the reply"),
        Ended::Deadline => ProviderError::new(
            Status::Timeout,
            format!("`{}`: the deadline passed while {doing}", endpoint.name),
        )
        .hint("raise `timeout`, or lower `max_in_flight` if the server is slow under load"),
    }
}

/// One call: a lookup, and requests until one is answered.
struct Call<'a> {
    transport: &'a dyn Transport,
    endpoint: &'a Inner,
    request: &'a ChatRequest,
    context: &'a CallContext,
    attempts: u32,
    /// The time that the call has for itself.
    patience: Duration,
    /// How long pauses that the server asks for may still be waited for.
    pauses: Duration,
    /// Whether the circuit breaker has counted a failure of this call.
    counted: bool,
    /// Whether a request of this call may have cost what nobody tells.
    cost_unknown: bool,
}

/// An attempt's reply, with what is known only while it is made.
struct Answer {
    decoded: Decoded,
    plan: Plan,
    latency: Duration,
    request_id: Option<String>,
}

/// What follows from a failed attempt.
enum Next {
    /// Ask again at once: in another way.
    Otherwise,
    /// Ask again after a wait, or give up.
    Failed(Failure),
    /// Ask again in turn: this request only found out that the server is not back yet.
    Still(Failure),
    /// Nothing was sent, and waiting is no use.
    Shut(Shut),
}

impl Call<'_> {
    async fn run(&mut self, key: &ReplyKey) -> Result<ChatReply, ProviderError> {
        let context = self.context;
        // Before the look-up: what another process has asked for meanwhile is then found.
        let mut _claim = None;
        if !context.fresh {
            _claim = Some(self.claim(key).await?);
            let lookup = within(context, context.replies.lookup(key)).await;
            let kept = lookup
                .map_err(|ended| stopped(&ended, self.endpoint, "looking for a kept reply"))?;
            if let Some(kept) = kept {
                context.ledger.count_cached();
                return Ok(found(kept, self.endpoint));
            }
        }
        let worst = self.endpoint.worst_case(self.request);
        let mut reservation = in_turn(context, context.ledger.reserve_in_turn(worst))
            .await
            .map_err(|ended| stopped(&ended, self.endpoint, "waiting for the budget"))??;
        if let Some(place) = context.place.as_ref().filter(|place| place.is_lent()) {
            in_turn(context, place.regain())
                .await
                .map_err(|ended| stopped(&ended, self.endpoint, "waiting for a free place"))?;
        }
        let answer = self.ask(&mut reservation).await?;
        let usage = answer.decoded.usage.unwrap_or_else(|| self.upper_bound(&answer.decoded));
        let price = self.endpoint.price;
        reservation.spend(&usage, price.map(|price| price.micro_dollars(&usage)));
        let cost_usd = price.map(|price| price.cost_usd(&usage));
        cost_usd.inspect(|cost| reservation.paid(*cost));
        // What an earlier request of this call cost besides is not known.
        let cost_usd = cost_usd.filter(|_| !self.cost_unknown);
        drop(reservation);
        let reply = ChatReply {
            text: answer.decoded.text,
            reasoning: answer.decoded.reasoning,
            finish: answer.decoded.finish,
            logprobs: answer.decoded.logprobs,
            usage,
            model: answer.decoded.model,
            request_id: answer.request_id.or(answer.decoded.id),
            latency_ms: u64::try_from(answer.latency.as_millis()).unwrap_or(u64::MAX),
            attempts: self.attempts,
            cost_usd,
            downgraded: downgraded(self.request, answer.plan.form),
            cached: false,
        };
        // The next measurement need not wait for the disk.
        let _keeping = context.place.as_ref().map(Place::lend);
        // No deadline here: it is paid for, and keeping it takes milliseconds.
        match context.replies.record(key, &reply).await {
            Ok(()) => Ok(reply),
            Err(error) => Err(ProviderError::new(
                Status::Internal,
                format!("`{}` replied, but the reply does not count: {error}", self.endpoint.name),
            )
            .hint("check that the store's disk has room and can be written to")),
        }
    }

    /// Waits until no other process is asking the same.
    async fn claim(&self, key: &ReplyKey) -> Result<Claim, ProviderError> {
        let context = self.context;
        let started = Instant::now();
        let [mut pause, longest] = CLAIM_PAUSES;
        loop {
            if let Some(claim) = context.replies.claim(key) {
                return Ok(claim);
            }
            if started.elapsed() >= LONGEST_CLAIM {
                tracing::warn!(
                    model = self.endpoint.name,
                    "another process has been asking the same for long: asking anew"
                );
                return Ok(Box::new(()));
            }
            in_turn(context, sleep(pause)).await.map_err(|ended| {
                stopped(&ended, self.endpoint, "waiting for another process that asks the same")
            })?;
            pause = (pause * 2).min(longest);
        }
    }

    /// Sends requests until one is answered.
    async fn ask(&mut self, reservation: &mut Reservation) -> Result<Answer, ProviderError> {
        let mut waits = Waits::new();
        let mut failures = 0;
        let mut last: Option<Failure> = None;
        loop {
            let failure = match self.attempt(reservation).await? {
                Ok(answer) => return Ok(answer),
                Err(Next::Otherwise) => continue,
                Err(Next::Failed(failure)) => failure,
                Err(Next::Still(failure)) => {
                    last = Some(failure);
                    continue;
                }
                // This call knows better than the breaker what is wrong.
                Err(Next::Shut(shut)) => {
                    return Err(match (shut, last) {
                        (Shut::Paused(pause), _) => paused(pause, self.endpoint),
                        (_, Some(last)) => last.into_error(self.endpoint, self.request),
                        (Shut::Down(pause), None) => broken(pause, self.endpoint),
                    });
                }
            };
            failures += 1;
            let breaker = &self.endpoint.breaker;
            let wait = waits.after(failure.wait()).min(LONGEST_WAIT);
            let now = Instant::now();
            let asked = failure.wait().filter(|_| failure.is_overload());
            if let Some(asked) = asked {
                breaker.freeze(now + asked.min(LONGEST_WAIT));
            }
            let may_help = failures < failure.attempts(breaker.was_reached());
            let left = self.context.due().saturating_duration_since(now);
            if !may_help || wait >= left {
                let is_long = !left.is_zero() && asked.is_some_and(|asked| asked >= left);
                if may_help && is_long && wait <= self.pauses {
                    // As for everyone there: the pause is the server's, not this call's time.
                    last = Some(failure);
                    continue;
                }
                let error = failure.into_error(self.endpoint, self.request);
                return Err(if may_help { too_late(error, wait) } else { error });
            }
            tracing::debug!(
                model = self.endpoint.name,
                attempts = self.attempts,
                wait_ms = wait.as_millis() as u64,
                failure = failure_name(&failure),
                "asking again"
            );
            within(self.context, sleep(wait))
                .await
                .map_err(|ended| stopped(&ended, self.endpoint, "waiting to ask again"))?;
            last = Some(failure);
        }
    }

    /// Sends one request. The outer error ends the call.
    async fn attempt(
        &mut self,
        reservation: &mut Reservation,
    ) -> Result<Result<Answer, Next>, ProviderError> {
        let (endpoint, request, context) = (self.endpoint, self.request, self.context);
        let wire = endpoint.wire();
        // First, so that nobody who waits for the server holds a place or a trial.
        let admitted = endpoint.breaker.admit(self.patience, &mut self.pauses);
        let mut admission = match in_turn(context, admitted)
            .await
            .map_err(|ended| stopped(&ended, endpoint, "waiting for the server to come back"))?
        {
            Ok(admission) => admission,
            Err(shut) => return Ok(Err(Next::Shut(shut))),
        };
        let first = endpoint.capability.plan(wire, request);
        let _trial = within(context, endpoint.capability.trial(first, request))
            .await
            .map_err(|ended| stopped(&ended, endpoint, "waiting for the first reply"))?;
        // Whoever tried may have learned something meanwhile.
        let plan = endpoint.capability.plan(wire, request);
        let permit = in_turn(context, endpoint.lane.pace.acquire(self.paced_tokens()))
            .await
            .map_err(|ended| stopped(&ended, endpoint, "waiting for a free place"))?;
        if context.cancel.is_cancelled() {
            return Err(stopped(&Ended::Cancelled, endpoint, ""));
        }
        if !admission.holds() {
            permit.unused();
            return Ok(Err(Next::Otherwise));
        }
        reservation.renew()?;
        reservation.count_sent()?;
        let body = wire.encode(endpoint.target(), request, plan);
        self.attempts += 1;
        let sent = Instant::now();
        let outgoing = Outgoing { url: &endpoint.url, headers: &endpoint.headers, body };
        let outcome = tokio::select! {
            biased;
            // First, so that a reply that is here already, and paid for, is never thrown away.
            outcome = self.transport.send(outgoing) => Ok(outcome),
            () = context.cancel.cancelled() => Err(Ended::Cancelled),
            () = context.past_due() => Err(Ended::Deadline),
        }
        .map_err(|ended| {
            // The server goes on, and whoever bills for it does not know that nobody listens.
            self.cost_unknown |= reservation.lose();
            stopped(&ended, endpoint, "waiting for the reply")
        })?;
        let (failure, usage) = match outcome {
            Err(fault) => (Failure::Transport(fault), None),
            Ok(incoming) => match self.read(&incoming) {
                Ok(decoded) => {
                    admission.answered();
                    permit
                        .answered(decoded.usage.map(|u| u.tokens_in.saturating_add(u.tokens_out)));
                    endpoint.capability.confirm(plan, request);
                    let request_id = ["x-request-id", "request-id", "apim-request-id"]
                        .iter()
                        .find_map(|name| incoming.headers.get(*name)?.to_str().ok())
                        .map(str::to_owned);
                    return Ok(Ok(Answer { decoded, plan, latency: sent.elapsed(), request_id }));
                }
                Err(failed) => failed,
            },
        };
        if let Some(usage) = usage {
            let price = endpoint.price;
            reservation.spend(&usage, price.map(|price| price.micro_dollars(&usage)));
            price.inspect(|price| reservation.paid(price.cost_usd(&usage)));
        } else if failure.may_have_cost() {
            self.cost_unknown |= reservation.lose();
        } else {
            reservation.cost_nothing();
        }
        if let Failure::Server { status: status @ (400 | 422 | 500 | 501), fault, .. } = &failure
            && !is_too_long(*status, fault)
            && !is_filtered(*status, fault)
            && endpoint.capability.learn(wire, fault, plan, request)
        {
            admission.answered();
            tracing::debug!(model = endpoint.name, "asking in a form that the server takes");
            return Ok(Err(Next::Otherwise));
        }
        if failure.is_overload() {
            permit.overloaded();
        }
        if failure.is_outage() {
            let trial = admission.is_trial();
            self.counted = admission.failed(failure.was_reached(), self.counted);
            if trial {
                return Ok(Err(Next::Still(failure)));
            }
        } else if failure.is_of_server() {
            admission.answered();
        }
        Ok(Err(Next::Failed(failure)))
    }

    /// A response's reply, or why there is none and what was spent on it all the same.
    fn read(&self, incoming: &Incoming) -> Result<Decoded, (Failure, Option<Usage>)> {
        let Incoming { status, headers, body } = incoming;
        let wait = || {
            asked_for(headers, SystemTime::now())
                .or_else(|| (*status == 429).then(|| asked_for_in_body(body)).flatten())
        };
        if !(200..300).contains(status) {
            let fault = ServerFault::read(body);
            return Err((Failure::Server { status: *status, wait: wait(), fault }, None));
        }
        self.endpoint.wire().decode(body).map_err(|undecodable| match undecodable {
            Undecodable::Fault(inner, fault) => {
                // A server that wraps an error without a status most likely failed itself.
                (Failure::Server { status: inner.unwrap_or(502), wait: wait(), fault }, None)
            }
            Undecodable::NotAReply { reason, usage } => {
                (Failure::Unreadable { status: *status, reason }, usage)
            }
        })
    }

    /// Tokens that this request takes of a minute's allowance, before usage is known.
    fn paced_tokens(&self) -> u64 {
        let worst = self.endpoint.worst_case(self.request);
        worst.tokens_in / BYTES_PER_TOKEN + u64::from(self.request.max_tokens.unwrap_or(0))
    }

    /// Usage at most, for a server that gives none.
    fn upper_bound(&self, decoded: &Decoded) -> Usage {
        let reasoning = decoded.reasoning.as_ref().map_or(0, |text| text.len() as u64);
        Usage {
            tokens_in: Inner::tokens_in(self.request),
            tokens_out: decoded.text.len() as u64 + reasoning,
            tokens_cached: 0,
            tokens_reasoning: reasoning,
            calls: 1,
            estimated: true,
        }
    }
}

/// The error while the circuit breaker is open.
fn broken(pause: Duration, endpoint: &Inner) -> ProviderError {
    ProviderError::new(
        Status::ProviderError,
        format!(
            "`{}` failed several times in a row: nothing is sent for {} s more",
            endpoint.base_url,
            pause.as_secs_f64().ceil()
        ),
    )
    .hint(format!("is a server listening at `{}`?", endpoint.base_url))
}

/// The error where asking again might help, but not before the deadline.
fn too_late(error: ProviderError, wait: Duration) -> ProviderError {
    let message = format!(
        "{}; the next try would be in {:.1} s, after the deadline",
        error.message,
        wait.as_secs_f64()
    );
    ProviderError { message, ..error }
}

fn paused(pause: Duration, endpoint: &Inner) -> ProviderError {
    let message = format!(
        "`{}`: the server asked for a pause that ends in {:.0} s, long after the deadline",
        endpoint.name,
        pause.as_secs_f64().ceil()
    );
    ProviderError::new(Status::RateLimited, message).hint("raise `timeout`, or run again later")
}

fn failure_name(failure: &Failure) -> String {
    match failure {
        Failure::Transport(fault) => format!("{:?}", fault.trouble),
        Failure::Server { status, .. } => format!("HTTP {status}"),
        Failure::Unreadable { reason, .. } => reason.clone(),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
