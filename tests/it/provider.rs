//! The provider layer against a real server on the loopback address: every wire format and
//! every way a server goes wrong, over real connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use venire::provider::{
    CallContext, ChatReply, ChatRequest, Client, Endpoint, EndpointSpec, FinishReason, KeepError,
    Ledger, LedgerLimits, Message, Price, ProviderError, ReplyKey, ReplyStore, ResponseFormat,
    Role,
};
use venire::verdict::Status;

use crate::mock::{Answer, Fault, Mock, Options};

const KEY: &str = "sk-very-secret-0123456789";

struct Bench {
    mock: Mock,
    client: Client,
    endpoint: Endpoint,
    context: CallContext,
}

async fn bench(options: Options) -> Bench {
    bench_for("openai/mock-small", options, EndpointSpec::default()).await
}

async fn bench_for(model: &str, options: Options, spec: EndpointSpec) -> Bench {
    let mock = Mock::start(options).await.unwrap();
    let client = Client::with_variables(|name| (name == "MOCK_KEY").then(|| KEY.to_owned()));
    let spec = EndpointSpec { model: model.to_owned(), base_url: Some(mock.url()), ..spec };
    let endpoint = client.endpoint(&spec).unwrap();
    Bench { mock, client, endpoint, context: CallContext::standalone(Duration::from_secs(30)) }
}

fn ask(text: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![
            Message { role: Role::System, content: "You grade answers.".into() },
            Message { role: Role::User, content: text.to_owned() },
        ],
        temperature: Some(0.0),
        max_tokens: Some(64),
        ..ChatRequest::default()
    }
}

fn with_schema(text: &str) -> ChatRequest {
    let schema = json!({
        "type": "object",
        "properties": {
            "reasoning": {"type": "string", "maxLength": 80},
            "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
        },
        "required": ["reasoning", "score"],
        "additionalProperties": false,
    });
    ChatRequest {
        response_format: ResponseFormat::JsonSchema { name: "verdict".into(), schema },
        ..ask(text)
    }
}

impl Bench {
    async fn chat(&self, request: &ChatRequest) -> Result<ChatReply, ProviderError> {
        self.client.chat(&self.endpoint, request, &self.context).await
    }
}

#[tokio::test]
async fn every_dialect_gives_the_same_reply() {
    for (model, schema_kept) in
        [("openai/mock-small", true), ("anthropic/mock-small", false), ("gemini/mock-small", true)]
    {
        let bench = bench_for(model, Options::default(), EndpointSpec::default()).await;
        let reply = bench.chat(&ask("[[quality:0.9]] Rate from 1 to 5.")).await.unwrap();
        assert_eq!((reply.text.as_str(), &reply.finish), ("5", &FinishReason::Stop), "{model}");
        assert_eq!(reply.model.as_deref(), Some("mock-small"));
        assert!(reply.usage.tokens_in > 0 && !reply.usage.estimated);
        assert_eq!((reply.attempts, reply.cost_usd, reply.cached), (1, None, false));
        let json = bench.chat(&with_schema("[[quality:0.5]] Answer in JSON.")).await.unwrap();
        let expected = (!schema_kept).then_some(ResponseFormat::Text);
        assert_eq!(json.downgraded, expected, "{model}");
        let value: Value = serde_json::from_str(&json.text).unwrap();
        assert!(value.get("score").is_some(), "{value}");
        if schema_kept {
            assert_eq!(value["score"], 3);
        }
    }
}

#[tokio::test]
async fn log_probabilities_come_through_where_the_dialect_has_them() {
    for (model, has) in [("openai/m", true), ("gemini/m", true), ("anthropic/m", false)] {
        let bench = bench_for(model, Options::default(), EndpointSpec::default()).await;
        let request = ChatRequest {
            top_logprobs: Some(5),
            ..ask("[[quality:0.8]] Is it right? Answer yes or no.")
        };
        let reply = bench.chat(&request).await.unwrap();
        assert_eq!(reply.text, "Yes");
        assert_eq!(reply.logprobs.is_some(), has, "{model}");
        if let Some(tokens) = reply.logprobs {
            let p: HashMap<_, _> =
                tokens[0].top.iter().map(|(token, p)| (token.as_str(), p.exp())).collect();
            assert!((p["Yes"] - 0.8).abs() < 1e-6 && (p["No"] - 0.2).abs() < 1e-6, "{p:?}");
        }
    }
}

#[tokio::test]
async fn faults_that_pass_are_got_over() {
    let bench = bench(Options::default()).await;
    for fault in [
        Fault::RateLimit { retry_after: Some("0".into()) },
        Fault::RateLimit { retry_after: None },
        Fault::Status { status: 500, message: None },
        Fault::Status { status: 502, message: None },
        Fault::Status { status: 503, message: Some("Loading model".into()) },
        Fault::Reset,
        Fault::BreakBody,
        Fault::Truncate,
        Fault::Html,
        Fault::EmptyBody,
        Fault::Nan,
        Fault::NoChoices,
    ] {
        bench.mock.script([fault.clone(), Fault::None]);
        let reply = bench.chat(&ask(&format!("{fault:?}"))).await;
        let reply = reply.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(reply.attempts, 2, "{fault:?}");
    }
    assert_eq!(bench.mock.log().most_answers_to_one(), 1);
}

#[tokio::test]
async fn faults_that_stay_end_in_a_clear_error() {
    let bench = bench(Options::default()).await;
    for (fault, attempts, status, words) in [
        (Fault::Html, 2, Status::ProviderError, "HTML page, \"Sign in\""),
        (Fault::Truncate, 2, Status::ProviderError, "cut off"),
        (Fault::Nan, 2, Status::ProviderError, "NaN"),
        (Fault::NoChoices, 2, Status::ProviderError, "no `choices`"),
        (Fault::EmptyBody, 2, Status::ProviderError, "empty"),
        (Fault::Quota, 1, Status::RateLimited, "used up"),
        (Fault::Huge { bytes: 17 << 20 }, 1, Status::ProviderError, "larger than 16 MiB"),
        (
            Fault::Status { status: 400, message: Some("context_length_exceeded".into()) },
            1,
            Status::ProviderError,
            "does not fit",
        ),
        (
            Fault::Status { status: 404, message: Some("model does not exist".into()) },
            1,
            Status::ProviderError,
            "`mock-small` was not found",
        ),
    ] {
        bench.mock.script(vec![fault.clone(); attempts as usize]);
        let error = bench.chat(&ask(&format!("{fault:?}"))).await.unwrap_err();
        assert_eq!((error.attempts, error.status), (attempts, status), "{fault:?}: {error}");
        assert!(error.message.contains(words), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn spoilt_answers_come_through_as_they_are() {
    for model in ["openai/m", "anthropic/m", "gemini/m"] {
        let bench = bench_for(model, Options::default(), EndpointSpec::default()).await;
        for (fault, finish, text) in [
            (Fault::Length, FinishReason::Length, None),
            (Fault::Refusal, FinishReason::Refusal, None),
            (Fault::Empty, FinishReason::Stop, Some("")),
            (Fault::Malformed, FinishReason::Stop, None),
            (Fault::Injection, FinishReason::Stop, None),
            (Fault::WrongScale, FinishReason::Stop, None),
            (Fault::OtherModel { name: "cheaper".into() }, FinishReason::Stop, None),
        ] {
            bench.mock.script([fault.clone()]);
            let reply = bench.chat(&ask(&format!("{fault:?}"))).await.unwrap();
            assert_eq!((&reply.finish, reply.attempts), (&finish, 1), "{model} {fault:?}");
            assert!(text.is_none_or(|text| reply.text == text), "{model} {fault:?}");
            let model_returned = reply.model.as_deref();
            let expected = if matches!(fault, Fault::OtherModel { .. }) { "cheaper" } else { "m" };
            assert_eq!(model_returned, Some(expected));
        }
        bench.mock.script([Fault::NoUsage]);
        assert!(bench.chat(&ask("no usage")).await.unwrap().usage.estimated, "{model}");
    }
}

#[tokio::test]
async fn a_hang_and_a_trickle_end_at_the_deadline_and_free_the_server() {
    for fault in [Fault::Hang, Fault::Trickle { ms: 10_000 }] {
        let mut bench = bench(Options::default()).await;
        bench.mock.script([fault.clone()]);
        bench.context.deadline = tokio::time::Instant::now() + Duration::from_millis(300);
        let start = Instant::now();
        let error = bench.chat(&ask("slow")).await.unwrap_err();
        assert_eq!((error.status, error.attempts), (Status::Timeout, 1), "{fault:?}: {error}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    let bench = bench(Options::default()).await;
    bench.mock.script([Fault::Trickle { ms: 5 }]);
    let reply = bench.chat(&ask("a slow trickle is still a reply")).await.unwrap();
    assert!(reply.attempts == 1 && reply.latency_ms >= 10, "{reply:?}");
}

#[tokio::test]
async fn a_cancel_ends_a_call_at_once() {
    let bench = bench(Options::default()).await;
    bench.mock.script([Fault::Hang]);
    let cancel = bench.context.cancel.clone();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let request = ask("x");
    let (outcome, ()) = tokio::join!(bench.chat(&request), stop);
    assert_eq!(outcome.unwrap_err().status, Status::Cancelled);
}

#[tokio::test]
async fn keys_are_sent_only_when_told_and_never_come_back() {
    let options = || Options { key: Some(KEY.to_owned()), ..Options::default() };
    for model in ["openai/m", "anthropic/m", "gemini/m", "azure/m"] {
        let told = EndpointSpec { api_key_env: Some("MOCK_KEY".into()), ..EndpointSpec::default() };
        let keyed = bench_for(model, options(), told.clone()).await;
        assert!(keyed.chat(&ask("x")).await.is_ok(), "{model}");
        assert!(keyed.mock.log().entries().iter().all(|entry| entry.key_present));

        let bare = bench_for(model, options(), EndpointSpec::default()).await;
        let error = bare.chat(&ask("x")).await.unwrap_err();
        assert_eq!((error.http_status, error.attempts), (Some(401), 1));
        assert!(error.hint.unwrap().contains("api_key_env"));
        assert!(bare.mock.log().entries().iter().all(|entry| !entry.key_present));

        // A server that expects another key echoes the one it got.
        let other = Options { key: Some("another".into()), ..Options::default() };
        let wrong = bench_for(model, other, told).await;
        let error = wrong.chat(&ask("x")).await.unwrap_err();
        let said = format!("{error} {error:?} {:?} {:?}", wrong.endpoint, wrong.client);
        assert!(!said.contains(KEY), "{said}");
        assert!(said.contains("[key]") && said.contains("MOCK_KEY"), "{said}");
    }
}

#[tokio::test]
async fn nobody_listening_is_said_so() {
    let mock = Mock::start(Options::default()).await.unwrap();
    let url = mock.url();
    drop(mock);
    let client = Client::default();
    let spec = EndpointSpec {
        model: "openai/m".into(),
        base_url: Some(url.clone()),
        ..EndpointSpec::default()
    };
    let endpoint = client.endpoint(&spec).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let context = CallContext::standalone(Duration::from_secs(30));
    let error = client.chat(&endpoint, &ask("x"), &context).await.unwrap_err();
    assert_eq!(error.status, Status::ProviderError);
    assert!(error.message.contains("connection refused"), "{error}");
    assert!(error.hint.unwrap().contains(&format!("is a server listening at `{url}/v1`?")));
}

#[tokio::test]
async fn tls_to_a_plain_server_is_explained() {
    let mock = Mock::start(Options::default()).await.unwrap();
    let spec = EndpointSpec {
        model: "openai/m".into(),
        base_url: Some(mock.url().replace("http://", "https://")),
        ..EndpointSpec::default()
    };
    let client = Client::default();
    let endpoint = client.endpoint(&spec).unwrap();
    let context = CallContext::standalone(Duration::from_secs(30));
    let error = client.chat(&endpoint, &ask("x"), &context).await.unwrap_err();
    assert_eq!((error.status, error.attempts), (Status::ProviderError, 1), "{error}");
    assert!(error.hint.unwrap().contains("http://"));
}

#[tokio::test]
async fn what_a_server_does_not_take_is_left_out_and_remembered() {
    let refuses = ["json_schema", "json_object", "logprobs", "temperature", "max_tokens"];
    let options = Options { refuses: refuses.map(str::to_owned).to_vec(), ..Options::default() };
    let bench = bench(options).await;
    let request = |i: usize| ChatRequest {
        top_logprobs: Some(5),
        ..with_schema(&format!("[[quality:1]] Answer in JSON with \"score\": ({i})"))
    };
    let first = bench.chat(&request(0)).await.unwrap();
    assert_eq!(first.downgraded, Some(ResponseFormat::Text));
    assert_eq!((first.attempts, first.logprobs.is_none()), (6, true));
    let requests: Vec<_> = (1..30).map(request).collect();
    for reply in join_all(requests.iter().map(|request| bench.chat(request))).await {
        let reply = reply.unwrap();
        assert_eq!((reply.attempts, reply.downgraded), (1, Some(ResponseFormat::Text)));
    }
    assert_eq!(bench.mock.log().requests(), 6 + 29);
}

#[tokio::test]
async fn concurrent_first_calls_do_not_all_run_into_the_same_refusal() {
    let bench = bench(Options { refuses: vec!["json_schema".into()], ..Options::default() }).await;
    let requests: Vec<_> = (0..50).map(|i| with_schema(&format!("JSON, please ({i})"))).collect();
    for reply in join_all(requests.iter().map(|request| bench.chat(request))).await {
        assert_eq!(reply.unwrap().downgraded, Some(ResponseFormat::JsonObject));
    }
    assert_eq!(bench.mock.log().requests(), 51);
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_allowed() {
    let options = Options { latency: Duration::from_millis(10), ..Options::default() };
    let spec = EndpointSpec { max_in_flight: Some(4), ..EndpointSpec::default() };
    let bench = bench_for("openai/m", options, spec).await;
    let requests: Vec<_> = (0..60).map(|i| ask(&format!("({i})"))).collect();
    let replies = join_all(requests.iter().map(|request| bench.chat(request))).await;
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(bench.mock.log().most_in_flight(), 4);
}

/// Replies in memory.
#[derive(Debug, Default)]
struct Kept(Mutex<HashMap<ReplyKey, ChatReply>>);

impl ReplyStore for Kept {
    fn lookup<'a>(&'a self, key: &'a ReplyKey) -> BoxFuture<'a, Option<ChatReply>> {
        Box::pin(async { self.0.lock().unwrap().get(key).cloned() })
    }

    fn record<'a>(
        &'a self,
        key: &'a ReplyKey,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<(), KeepError>> {
        Box::pin(async {
            self.0.lock().unwrap().insert(*key, reply.clone());
            Ok(())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_random_faults_every_call_is_finished_once_and_paid_once() {
    let options =
        Options { faults: 0.2, seed: 7, latency: Duration::from_millis(1), ..Options::default() };
    let spec = EndpointSpec {
        price: Some(Price { input: 1.0, output: 1.0, cached_input: None }),
        ..EndpointSpec::default()
    };
    let mut bench = bench_for("openai/m", options, spec).await;
    bench.context.replies = Arc::new(Kept::default());
    bench.context.ledger = Arc::new(Ledger::new(LedgerLimits {
        micro_dollars: Some(10_000_000),
        ..LedgerLimits::default()
    }));
    // Every question twice, at the same time.
    let requests: Vec<_> = (0..200).map(|i| ask(&format!("({})", i / 2))).collect();
    let replies = join_all(requests.iter().map(|request| bench.chat(request))).await;
    let failed: Vec<_> = replies.iter().filter_map(|reply| reply.as_ref().err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let log = bench.mock.log();
    assert_eq!((log.answered(), log.most_answers_to_one()), (100, 1));
    assert!(log.requests() > 110, "{} requests: no faults?", log.requests());
    let totals = bench.context.ledger.totals();
    assert_eq!((totals.calls_answered, totals.cached_hits), (100, 100));
    assert_eq!(totals.micro_dollars, totals.tokens());
    assert_eq!((totals.micro_dollars_reserved, totals.tokens_reserved), (0, 0));
    // Once more: all found.
    let again = join_all(requests.iter().map(|request| bench.chat(request))).await;
    assert!(again.iter().all(|reply| reply.as_ref().unwrap().cached));
    assert_eq!(log.answered(), 100);
}

#[tokio::test]
async fn a_test_can_give_its_own_answers() {
    let answer: crate::mock::AnswerFn = Arc::new(|asked: &crate::mock::Asked| {
        let own = asked.texts.iter().any(|text| text.contains("mine"));
        own.then(|| Answer::of("Own words."))
    });
    let bench = bench(Options { answer: Some(answer), ..Options::default() }).await;
    assert_eq!(bench.chat(&ask("mine")).await.unwrap().text, "Own words.");
    assert_ne!(bench.chat(&ask("other")).await.unwrap().text, "Own words.");
}

#[tokio::test]
async fn the_mock_is_controlled_over_http_as_well() {
    let bench = bench(Options::default()).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let script = json!([{"kind": "status", "status": 418}, {"kind": "none"}]);
    let url = bench.mock.url();
    let queued = http.post(format!("{url}/_script")).json(&script).send().await.unwrap();
    assert_eq!(queued.json::<Value>().await.unwrap(), json!({"queued": 2}));
    let error = bench.chat(&ask("x")).await.unwrap_err();
    assert_eq!(error.http_status, Some(418));
    bench.chat(&ask("x")).await.unwrap();
    let log: Value = http.get(format!("{url}/_log")).send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&log["requests"], &log["answered"], &log["distinct"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(
        log["entries"][0]["fault"],
        json!({"kind": "status", "status": 418, "message": null})
    );
    let cleared = http.post(format!("{url}/_reset")).send().await.unwrap();
    assert!(cleared.status().is_success());
    assert_eq!(bench.mock.log().requests(), 0);
    let health = http.get(format!("{url}/health")).send().await.unwrap();
    assert!(health.status().is_success());
}

/// Run by hand against a server that is not ours: with `VENIRE_TEST_BASE_URL` set to its
/// address, and a model that follows simple instructions.
#[tokio::test]
#[ignore = "needs a model server"]
async fn live_a_real_server_replies() {
    let base_url = std::env::var("VENIRE_TEST_BASE_URL").unwrap();
    let model = std::env::var("VENIRE_TEST_MODEL").unwrap_or_else(|_| "openai/default".into());
    let client = Client::default();
    let spec = EndpointSpec { model, base_url: Some(base_url), ..EndpointSpec::default() };
    let endpoint = client.endpoint(&spec).unwrap();
    let context = CallContext::standalone(Duration::from_secs(120));
    let request = ChatRequest {
        top_logprobs: Some(5),
        max_tokens: Some(1),
        ..ask("Is 2 + 2 = 4? Answer yes or no.")
    };
    let reply = client.chat(&endpoint, &request, &context).await.unwrap();
    println!("{reply:#?}");
    assert!(!reply.logprobs.unwrap()[0].top.is_empty());
    assert!(reply.usage.tokens_in > 0 && !reply.usage.estimated);
    let reply = client.chat(&endpoint, &with_schema("Rate 2 + 2 = 5."), &context).await.unwrap();
    println!("{reply:#?}");
    let long = ask(&"word ".repeat(20_000));
    let error = client.chat(&endpoint, &long, &context).await.unwrap_err();
    println!("{error:#?}");
    assert!(error.message.contains("does not fit"), "{error}");
}

/// Run by hand in a release build: `cargo test --release --test provider live_ -- --ignored`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures time"]
async fn live_this_layer_costs_at_most_twice_a_bare_loop() {
    const CALLS: usize = 5_000;
    const AT_ONCE: usize = 64;
    let bench = bench(Options::default()).await;
    let url = format!("{}/v1/chat/completions", bench.mock.url());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let requests: Vec<_> = (0..CALLS).map(|i| ask(&format!("Rate from 1 to 5 ({i})"))).collect();
    let rate = |start: Instant| CALLS as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    let bare = async |request: &ChatRequest| {
        let body = json!({"model": "m", "messages": request.messages, "max_tokens": 64});
        let reply = http.post(&url).json(&body).send().await.unwrap();
        reply.json::<Value>().await.unwrap();
    };
    futures::stream::StreamExt::for_each_concurrent(
        futures::stream::iter(&requests),
        AT_ONCE,
        bare,
    )
    .await;
    let bare = rate(start);
    let start = Instant::now();
    futures::stream::StreamExt::for_each_concurrent(
        futures::stream::iter(&requests),
        AT_ONCE,
        async |request: &ChatRequest| {
            bench.chat(request).await.unwrap();
        },
    )
    .await;
    let ours = rate(start);
    println!("bare loop {bare:.0}/s, this layer {ours:.0}/s");
    assert!(ours * 2.0 > bare);
}
