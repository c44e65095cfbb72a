//! The sender against a scripted server, under paused time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::super::transport::{TransportFault, Trouble};
use super::*;
use crate::provider::{
    Held, KeepError, Ledger, LedgerLimits, Message, Price, ReplyStore, ResponseFormat, Role,
};

const KEY: &str = "sk-very-secret-0123456789";
const GOOD: &str = r#"{"model":"m-1","choices":[{"message":{"content":"4"},
    "finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}"#;

/// What the server does with one request.
#[derive(Clone, Debug)]
enum Act {
    Say(u16, &'static str),
    SayWith(u16, &'static str, &'static str, &'static str),
    Fail(Trouble),
    Hang,
    /// A good reply after so many milliseconds.
    Slow(u64),
}

#[derive(Debug, Default)]
struct Scripted {
    acts: Mutex<VecDeque<Act>>,
    /// When each request came, in milliseconds, and its body.
    seen: Mutex<Vec<(Instant, Value)>>,
    in_flight: AtomicU32,
    most: AtomicU32,
}

struct InFlight<'a>(&'a Scripted);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Transport for Scripted {
    fn send<'a>(
        &'a self,
        outgoing: Outgoing<'a>,
    ) -> BoxFuture<'a, Result<Incoming, TransportFault>> {
        Box::pin(async move {
            let body = serde_json::from_slice(&outgoing.body).unwrap();
            self.seen.lock().unwrap().push((Instant::now(), body));
            let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            let _in_flight = InFlight(self);
            let act = self.acts.lock().unwrap().pop_front();
            let say = |status: u16, body: &str| Incoming {
                status,
                headers: reqwest::header::HeaderMap::new(),
                body: body.as_bytes().to_vec(),
            };
            match act.unwrap_or(Act::Slow(10)) {
                Act::Say(status, body) => Ok(say(status, body)),
                Act::SayWith(status, body, name, value) => {
                    let mut incoming = say(status, body);
                    let name = HeaderName::from_static(name);
                    incoming.headers.insert(name, HeaderValue::from_static(value));
                    Ok(incoming)
                }
                Act::Fail(trouble) => Err(TransportFault { trouble, cause: "told to".into() }),
                Act::Hang => std::future::pending().await,
                Act::Slow(ms) => {
                    sleep(Duration::from_millis(ms)).await;
                    Ok(say(200, GOOD))
                }
            }
        })
    }
}

/// A store in memory that may fail.
#[derive(Debug, Default)]
struct Kept {
    replies: Mutex<HashMap<ReplyKey, ChatReply>>,
    broken: bool,
}

impl ReplyStore for Kept {
    fn lookup<'a>(&'a self, key: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>> {
        Box::pin(async { self.replies.lock().unwrap().get(key).cloned() })
    }

    fn record<'a>(
        &'a self,
        key: &'a ReplyKey,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>> {
        Box::pin(async {
            sleep(Duration::from_millis(50)).await;
            if self.broken {
                return Err(KeepError { reason: "disk full".into() });
            }
            self.replies.lock().unwrap().insert(*key, reply.clone());
            Ok(())
        })
    }
}

struct Bench {
    server: Arc<Scripted>,
    client: Client,
    endpoint: Endpoint,
    context: CallContext,
}

fn bench_with(acts: impl IntoIterator<Item = Act>, spec: EndpointSpec) -> Bench {
    let server = Arc::new(Scripted::default());
    server.acts.lock().unwrap().extend(acts);
    let client = Client::with_transport(server.clone(), |_| Some(KEY.to_owned()));
    let endpoint = client.endpoint(&spec).unwrap();
    let context = CallContext {
        replies: Arc::new(Kept::default()),
        ..CallContext::standalone(Duration::from_secs(600))
    };
    Bench { server, client, endpoint, context }
}

fn bench(acts: impl IntoIterator<Item = Act>) -> Bench {
    bench_with(
        acts,
        EndpointSpec {
            model: "openai/m".into(),
            price: Some(Price { input: 2.0, output: 8.0, cached_input: None }),
            ..EndpointSpec::default()
        },
    )
}

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![Message { role: Role::User, content: "is this a fine answer?".into() }],
        temperature: Some(0.0),
        max_tokens: Some(16),
        ..ChatRequest::default()
    }
}

impl Bench {
    async fn ask(&self) -> Result<ChatReply, ProviderError> {
        self.client.chat(&self.endpoint, &request(), &self.context).await
    }

    fn sent(&self) -> usize {
        self.server.seen.lock().unwrap().len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_paid_kept_and_then_found() {
    let bench = bench([Act::SayWith(200, GOOD, "x-request-id", "req-7")]);
    let paid = bench.ask().await.unwrap();
    assert_eq!((paid.text.as_str(), paid.attempts, paid.cached), ("4", 1, false));
    assert_eq!(paid.request_id.as_deref(), Some("req-7"));
    assert_eq!(paid.model.as_deref(), Some("m-1"));
    assert_eq!(paid.cost_usd, Some(36e-6));
    let found = bench.ask().await.unwrap();
    assert_eq!((found.attempts, found.cached, found.cost_usd), (0, true, Some(36e-6)));
    assert_eq!((found.text, found.usage), (paid.text, paid.usage));
    assert_eq!(bench.sent(), 1);
    let totals = bench.context.ledger.totals();
    assert_eq!((totals.calls_sent, totals.calls_answered, totals.cached_hits), (1, 1, 1));
    assert_eq!((totals.micro_dollars, totals.micro_dollars_reserved), (36, 0));
}

#[tokio::test(start_paused = true)]
async fn fresh_asks_again_and_replaces_what_was_kept() {
    let mut bench = bench([]);
    bench.ask().await.unwrap();
    bench.context.fresh = true;
    assert!(!bench.ask().await.unwrap().cached);
    bench.context.fresh = false;
    assert!(bench.ask().await.unwrap().cached);
    bench.context.sample = 1;
    assert!(!bench.ask().await.unwrap().cached);
    assert_eq!(bench.sent(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_may_heal_is_asked_again_and_attempts_are_counted() {
    for act in [
        Act::Say(500, "{}"),
        Act::Say(502, "<html><title>Bad Gateway</title>"),
        Act::Say(503, r#"{"error":{"message":"Loading model"}}"#),
        Act::Say(529, "{}"),
        Act::Say(408, "{}"),
        Act::Say(409, "{}"),
        Act::Say(425, "{}"),
        Act::Say(429, "{}"),
        Act::Fail(Trouble::Broken),
        Act::Fail(Trouble::ConnectTimeout),
        Act::Fail(Trouble::Name),
        Act::Say(200, "<!doctype html><title>Sign in</title>"),
        Act::Say(200, r#"{"choices":[{"mess"#),
        Act::Say(200, r#"{"choices": NaN}"#),
        Act::Say(200, ""),
    ] {
        let bench = bench([act.clone()]);
        let reply = bench.ask().await.unwrap();
        assert_eq!((reply.attempts, reply.text.as_str()), (2, "4"), "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_will_not_heal_is_asked_once_and_explained() {
    let quota =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    let overflow = r#"{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
    for (act, status, words) in [
        (Act::Say(400, r#"{"error":{"message":"bad thing"}}"#), Status::ProviderError, "bad thing"),
        (Act::Say(401, "{}"), Status::ProviderError, "OPENAI_API_KEY"),
        (Act::Say(403, "{}"), Status::ProviderError, "OPENAI_API_KEY"),
        (Act::Say(402, "{}"), Status::ProviderError, "credit"),
        (Act::Say(404, "{}"), Status::ProviderError, "/models` lists"),
        (Act::Say(422, "{}"), Status::ProviderError, "422"),
        (Act::Say(301, ""), Status::ProviderError, "not followed"),
        (Act::Say(400, overflow), Status::ProviderError, "shorten"),
        (Act::Say(429, quota), Status::RateLimited, "used up"),
        (Act::Fail(Trouble::Tls), Status::ProviderError, "secure"),
        (Act::Fail(Trouble::TooLarge), Status::ProviderError, "told to"),
    ] {
        let bench = bench([act.clone()]);
        let error = bench.ask().await.unwrap_err();
        let said = format!("{error} {}", error.hint.clone().unwrap_or_default());
        assert_eq!((error.status, error.attempts), (status, 1), "{act:?}: {said}");
        assert!(said.contains(words), "{act:?}: {said}");
        assert_eq!(bench.context.ledger.totals().micro_dollars_reserved, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_that_go_on_end_in_an_error_after_six_attempts_and_unreadable_ones_after_two() {
    let bench_500 = bench(vec![Act::Say(500, r#"{"error":"boom"}"#); 20]);
    let error = bench_500.ask().await.unwrap_err();
    assert_eq!((error.status, error.attempts), (Status::ProviderError, 6));
    let bench = bench(vec![Act::Say(200, "<html>"); 20]);
    let error = bench.ask().await.unwrap_err();
    assert_eq!((error.status, error.attempts), (Status::ProviderError, 2));
    assert!(error.message.contains("HTML"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_and_holds_everyone_who_asks_that_model() {
    let bench = bench([Act::SayWith(429, "{}", "retry-after", "7")]);
    let start = Instant::now();
    let other = async {
        sleep(Duration::from_secs(1)).await;
        let request = ChatRequest { seed: Some(1), ..request() };
        bench.client.chat(&bench.endpoint, &request, &bench.context).await.unwrap();
    };
    let (reply, ()) = tokio::join!(bench.ask(), other);
    assert_eq!(reply.unwrap().attempts, 2);
    let seen = bench.server.seen.lock().unwrap();
    assert!(seen[1..].iter().all(|(at, _)| *at - start >= Duration::from_secs(7)), "{seen:?}");
    assert!(start.elapsed() < Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn a_wait_long_past_the_deadline_is_not_waited_for() {
    for (act, status) in [
        (Act::SayWith(429, "{}", "retry-after", "3600"), Status::RateLimited),
        (Act::SayWith(429, "{}", "retry-after", "1e300"), Status::RateLimited),
        (Act::SayWith(503, "{}", "retry-after-ms", "3600000"), Status::ProviderError),
    ] {
        let bench = bench([act]);
        let start = Instant::now();
        let error = bench.ask().await.unwrap_err();
        assert_eq!((error.status, error.attempts), (status, 1));
        assert!(error.message.contains("after the deadline"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(1));
        // The pause holds for the next call too, which is not even sent.
        let error = bench.ask().await.unwrap_err();
        assert_eq!((error.status, error.attempts), (Status::RateLimited, 0));
        assert_eq!(bench.sent(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_longer_than_a_call_s_own_time_is_waited_for_by_everyone() {
    for (own, asked) in [(3, "4"), (120, "125")] {
        let mut bench = bench([Act::SayWith(429, "{}", "retry-after", asked)]);
        bench.context.deadline = Instant::now() + Duration::from_secs(own);
        // As the panel does it: every measurement has its own time.
        let of = |seed| {
            let context = CallContext { held: Held::default(), ..bench.context.clone() };
            let (client, endpoint) = (bench.client.clone(), bench.endpoint.clone());
            async move {
                sleep(Duration::from_millis(50 * seed)).await;
                let request = ChatRequest { seed: Some(seed), ..request() };
                client.chat(&endpoint, &request, &context).await
            }
        };
        let start = Instant::now();
        for reply in futures::future::join_all((0..20).map(of)).await {
            assert!(reply.is_ok(), "{reply:?}");
        }
        assert!(start.elapsed() < Duration::from_secs(own + 10));
        assert_eq!(bench.sent(), 21);
    }
}

#[tokio::test(start_paused = true)]
async fn no_answer_to_when_makes_a_hot_loop() {
    for asked in ["0", "-5", "0.0", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let mut bench = bench(vec![Act::SayWith(429, "{}", "retry-after", asked); 20_000]);
        bench.context.deadline = Instant::now() + Duration::from_secs(6);
        let error = bench.ask().await.unwrap_err();
        assert_eq!(error.status, Status::RateLimited);
        assert!(bench.sent() <= 8, "{asked}: {}", bench.sent());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_out_for_as_long_as_the_deadline_allows() {
    let bench = bench(vec![Act::Say(429, "{}"); 12]);
    assert_eq!(bench.ask().await.unwrap().attempts, 13);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_server_is_left_at_the_deadline_and_at_a_cancel() {
    let hung = bench([Act::Hang]);
    let start = Instant::now();
    let error = hung.ask().await.unwrap_err();
    assert_eq!((error.status, error.attempts), (Status::Timeout, 1));
    assert_eq!(start.elapsed(), Duration::from_secs(600));
    assert_eq!(hung.server.in_flight.load(Ordering::SeqCst), 0);

    let stopped = bench([Act::Hang]);
    let cancel = stopped.context.cancel.clone();
    let stop = async {
        sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(stopped.ask(), stop);
    let error = outcome.unwrap_err();
    assert_eq!((error.status, error.attempts), (Status::Cancelled, 1));
    assert_eq!(stopped.server.in_flight.load(Ordering::SeqCst), 0);
    assert_eq!(stopped.context.ledger.totals().micro_dollars_reserved, 0);
    // Nothing is sent after a cancel.
    assert_eq!(stopped.ask().await.unwrap_err().status, Status::Cancelled);
    assert_eq!(stopped.sent(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_call_cancels_the_request_and_gives_the_reservation_back() {
    let bench = bench([Act::Hang]);
    let dropped = tokio::time::timeout(Duration::from_secs(1), bench.ask()).await;
    assert!(dropped.is_err());
    assert_eq!(bench.server.in_flight.load(Ordering::SeqCst), 0);
    let totals = bench.context.ledger.totals();
    assert_eq!((totals.calls_sent, totals.calls_answered), (1, 0));
    assert_eq!((totals.micro_dollars_reserved, totals.tokens_reserved), (0, 0));
    assert!(bench.ask().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn identical_requests_at_once_are_paid_for_once() {
    let bench = bench([Act::Slow(500)]);
    let replies = futures::future::join_all((0..20).map(|_| bench.ask())).await;
    assert_eq!(bench.sent(), 1);
    let paid = replies.iter().filter(|reply| !reply.as_ref().unwrap().cached).count();
    assert_eq!(paid, 1);
    assert!(replies.iter().all(|reply| reply.as_ref().unwrap().text == "4"));
    assert_eq!(bench.context.ledger.totals().calls_answered, 1);
}

#[tokio::test(start_paused = true)]
async fn when_the_one_that_flies_is_given_up_the_next_one_flies() {
    let bench = bench([Act::Hang, Act::Slow(10)]);
    let first = tokio::time::timeout(Duration::from_secs(2), bench.ask());
    let (gone, reply) = tokio::join!(first, bench.ask());
    assert!(gone.is_err());
    assert!(!reply.unwrap().cached);
    assert_eq!(bench.sent(), 2);
    assert!(bench.client.shared.flights_are_closed());
}

impl Shared {
    fn flights_are_closed(&self) -> bool {
        format!("{:?}", self.flights).contains("{}")
    }
}

#[tokio::test(start_paused = true)]
async fn a_paid_reply_that_can_not_be_kept_fails_and_stays_spent() {
    let mut bench = bench([]);
    bench.context.replies = Arc::new(Kept { broken: true, ..Kept::default() });
    let error = bench.ask().await.unwrap_err();
    assert_eq!((error.status, error.attempts), (Status::Internal, 1));
    assert!(error.message.contains("disk full"), "{error}");
    assert_eq!(bench.context.ledger.totals().micro_dollars, 36);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_stops_before_anything_is_sent() {
    let mut bench = bench([]);
    let limits = LedgerLimits { micro_dollars: Some(10), ..LedgerLimits::default() };
    bench.context.ledger = Arc::new(Ledger::new(limits));
    let error = bench.ask().await.unwrap_err();
    assert_eq!((error.status, error.attempts, bench.sent()), (Status::Budget, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_an_unreadable_reply_cost_is_booked() {
    let empty = r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":0}}"#;
    let bench = bench([Act::Say(200, empty)]);
    assert_eq!(bench.ask().await.unwrap().attempts, 2);
    assert_eq!(bench.context.ledger.totals().micro_dollars, 236);
}

#[tokio::test(start_paused = true)]
async fn usage_that_is_not_given_is_bounded_from_above_and_marked() {
    let bench = bench([Act::Say(200, r#"{"choices":[{"message":{"content":"四"}}]}"#)]);
    let usage = bench.ask().await.unwrap().usage;
    assert!(usage.estimated);
    assert_eq!((usage.tokens_in, usage.tokens_out), (22 + 16, 3));
}

#[tokio::test(start_paused = true)]
async fn a_refused_form_is_learned_once_whatever_runs_beside_it() {
    let schema = |seed| ChatRequest {
        seed: Some(seed),
        response_format: ResponseFormat::JsonSchema { name: "v".into(), schema: json!({}) },
        ..request()
    };
    let complaint = r#"{"detail":[{"loc":["body","response_format","type"],
        "msg":"Input should be 'text' or 'json_object'"}]}"#;
    let bench = bench([Act::Say(500, complaint)]);
    let requests: Vec<_> = (0..32).map(schema).collect();
    let calls = requests.iter().map(|r| bench.client.chat(&bench.endpoint, r, &bench.context));
    let replies = futures::future::join_all(calls).await;
    for reply in replies {
        assert_eq!(reply.unwrap().downgraded, Some(ResponseFormat::JsonObject));
    }
    let seen = bench.server.seen.lock().unwrap();
    assert_eq!(seen.len(), 33);
    let tried = seen.iter().filter(|(_, b)| b["response_format"]["type"] == "json_schema").count();
    assert_eq!(tried, 1, "one request runs into the refusal, not all");
}

/// So many different calls at once, each with a time of its own.
async fn many(bench: &Bench, calls: u64) -> Vec<Result<ChatReply, ProviderError>> {
    let call = |seed| {
        let context = CallContext { held: Held::default(), ..bench.context.clone() };
        async move {
            let request = ChatRequest { seed: Some(seed), ..request() };
            bench.client.chat(&bench.endpoint, &request, &context).await
        }
    };
    futures::future::join_all((0..calls).map(call)).await
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_never_there_is_given_up_soon_and_may_come_back() {
    let bench = bench(vec![Act::Fail(Trouble::Refused); 1_000]);
    let start = Instant::now();
    let error = bench.ask().await.unwrap_err();
    assert!(error.message.contains("connection refused"), "{error}");
    assert_eq!(error.attempts, 4);
    for outcome in many(&bench, 100).await {
        let error = outcome.unwrap_err();
        assert_eq!(error.status, Status::ProviderError);
        assert!(error.hint.unwrap().contains("is a server listening"));
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(bench.sent() < 40, "{}", bench.sent());
    bench.server.acts.lock().unwrap().clear();
    sleep(Duration::from_secs(60)).await;
    assert!(bench.ask().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_for_a_while_costs_no_call() {
    let boom = Act::Say(500, r#"{"error":{"message":"x"}}"#);
    let loading = Act::Say(503, r#"{"error":{"message":"model is loading"}}"#);
    for (act, failures) in [
        (boom.clone(), 5),
        (boom, 8),
        (Act::Say(503, "{}"), 8),
        (Act::Fail(Trouble::Broken), 8),
        (loading, 60),
    ] {
        let mut bench = bench(vec![act.clone(); failures]);
        bench.context.deadline = Instant::now() + Duration::from_secs(120);
        let failed: Vec<_> = many(&bench, 200).await.into_iter().filter_map(Result::err).collect();
        assert!(failed.is_empty(), "{act:?} {failures}: {} {:?}", failed.len(), failed.first());
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_restarts_costs_no_call_and_one_that_is_gone_ends_them() {
    for (down, back) in [(8, true), (20, true), (10_000, false)] {
        let mut bench = bench([]);
        bench.ask().await.unwrap();
        bench.context.deadline = Instant::now() + Duration::from_secs(120);
        bench.server.acts.lock().unwrap().extend(vec![Act::Fail(Trouble::Refused); 100_000]);
        let start = Instant::now();
        let server = bench.server.clone();
        let restart = async move {
            sleep(Duration::from_secs(down)).await;
            server.acts.lock().unwrap().clear();
        };
        tokio::spawn(restart);
        let outcomes = many(&bench, 200).await;
        let good = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(good, if back { 200 } else { 0 }, "{down} s");
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        assert!(bench.sent() < 1_200, "{}", bench.sent());
    }
}

#[tokio::test(start_paused = true)]
async fn one_poisoned_prompt_stops_nobody_else() {
    let boom = Act::Say(500, r#"{"error":{"message":"crash on this prompt"}}"#);
    let bench = bench(vec![boom; 6]);
    assert_eq!(bench.ask().await.unwrap_err().attempts, 6);
    let start = Instant::now();
    let request = ChatRequest { seed: Some(1), ..request() };
    bench.client.chat(&bench.endpoint, &request, &bench.context).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_tells_the_cost_of_counts_at_most_and_is_reported_as_unknown() {
    // One call may cost 22 + 16 tokens in at $2 and 16 out at $8 a million: 204 micro-dollars.
    let limits = LedgerLimits { micro_dollars: Some(500), ..LedgerLimits::default() };
    let mut hung = bench([Act::Hang]);
    hung.context.ledger = Arc::new(Ledger::new(limits));
    hung.context.deadline = Instant::now() + Duration::from_secs(1);
    let error = hung.ask().await.unwrap_err();
    assert_eq!((error.status, error.cost_unknown), (Status::Timeout, true));
    let totals = hung.context.ledger.totals();
    assert_eq!((totals.micro_dollars_at_most(), totals.spent_usd()), (204, None));

    let cut = r#"{"choices":[{"mess"#;
    let mut unread = bench(vec![Act::Say(200, cut); 20]);
    unread.context.ledger = Arc::new(Ledger::new(limits));
    assert_eq!(unread.ask().await.unwrap_err().attempts, 2);
    assert_eq!(unread.context.ledger.totals().micro_dollars_at_most(), 408);
    let error = unread.ask().await.unwrap_err();
    assert_eq!((error.status, unread.sent()), (Status::Budget, 2));

    let read_later = bench([Act::Fail(Trouble::Broken)]);
    let reply = read_later.ask().await.unwrap();
    assert_eq!((reply.attempts, reply.cost_usd), (2, None));

    for act in [Act::Fail(Trouble::Refused), Act::Say(500, "{}"), Act::Say(400, "{}")] {
        let free = bench(vec![act.clone(); 20]);
        let error = free.ask().await.unwrap_err();
        assert!(!error.cost_unknown, "{act:?}");
        assert_eq!(free.context.ledger.totals().spent_usd(), Some(0.0), "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn overload_shrinks_the_number_in_flight() {
    let spec = EndpointSpec {
        model: "openai/m".into(),
        max_in_flight: Some(16),
        ..EndpointSpec::default()
    };
    let bench = bench_with([], spec);
    bench.ask().await.unwrap();
    bench.server.acts.lock().unwrap().extend(vec![Act::Say(503, "loading"); 16]);
    let requests: Vec<_> =
        (0..64).map(|seed| ChatRequest { seed: Some(seed), ..request() }).collect();
    let calls = requests.iter().map(|r| bench.client.chat(&bench.endpoint, r, &bench.context));
    let replies = futures::future::join_all(calls).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    assert!(bench.server.most.load(Ordering::SeqCst) <= 16);
}

#[tokio::test(start_paused = true)]
async fn no_error_ever_holds_the_key_or_the_prompt() {
    for status in [400, 401, 403, 404, 429, 500, 503] {
        let body: &'static str = Box::leak(
            json!({"error": {"message":
                format!("key {KEY} with prompt 'is this a fine answer?' was refused")}})
            .to_string()
            .into_boxed_str(),
        );
        let mut bench = bench(vec![Act::Say(status, body); 50]);
        bench.context.deadline = Instant::now() + Duration::from_secs(20);
        let error = bench.ask().await.unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains(KEY) && !said.contains("fine answer"), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_temperature_that_is_no_number_is_refused_before_it_is_sent() {
    let bench = bench([]);
    let odd = ChatRequest { temperature: Some(f64::NAN), ..request() };
    let error = bench.client.chat(&bench.endpoint, &odd, &bench.context).await.unwrap_err();
    assert_eq!((error.attempts, bench.sent()), (0, 0));
}

#[test]
fn an_address_has_one_lane_for_all_its_models_and_one_for_each_account() {
    let client = Client::with_variables(|name| Some(format!("key-of-{name}")));
    let lane = |model: &str, variable: Option<&str>| {
        let spec = EndpointSpec {
            model: model.into(),
            api_key_env: variable.map(str::to_owned),
            ..EndpointSpec::default()
        };
        client.endpoint(&spec).unwrap().inner
    };
    let first = lane("openai/a", None);
    assert!(Arc::ptr_eq(&first.lane, &lane("openai/b", None).lane));
    assert!(!Arc::ptr_eq(&first.lane, &lane("openai/a", Some("OTHER")).lane));
    assert!(!Arc::ptr_eq(&first.lane, &lane("groq/a", None).lane));
    // A model that fails opens its own breaker and no other's.
    assert!(Arc::ptr_eq(&first.breaker, &lane("openai/a", None).breaker));
    assert!(!Arc::ptr_eq(&first.breaker, &lane("openai/b", None).breaker));
    assert!(!Arc::ptr_eq(&first.breaker, &lane("openai/a", Some("OTHER")).breaker));
    // What one key's model takes, another key's takes too.
    assert!(Arc::ptr_eq(&first.capability, &lane("openai/a", Some("OTHER")).capability));
    assert!(!Arc::ptr_eq(&first.capability, &lane("openai/b", None).capability));
}
