//! The judges that are neither model nor rule, through the library's public interface: as
//! written in a panel file, against a service that misbehaves, and on recorded data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use venire::case::Case;
use venire::judge::{BoxedJudge, BuildContext, command, http, observe, replay, script};
use venire::provider::{CallContext, Client};
use venire::verdict::{Status, Verdict};

use crate::workbench::Workbench;

fn context(seconds: u64) -> CallContext {
    CallContext::standalone(Duration::from_secs(seconds))
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/external")
}

#[tokio::test]
async fn every_kind_is_seated_from_a_file() {
    let build = BuildContext::new(fixtures(), Client::default());
    let panel = venire::config::read_value(&fixtures().join("panel.toml")).unwrap();
    let of = |kind: &str| panel[kind].clone();
    let seats: Vec<BoxedJudge> = vec![
        venire::config::from_value::<command::CommandSpec>(of("command"))
            .unwrap()
            .build(&build)
            .unwrap(),
        venire::config::from_value::<script::ScriptSpec>(of("script"))
            .unwrap()
            .build(&build)
            .unwrap(),
        venire::config::from_value::<observe::ObserveSpec>(of("observe"))
            .unwrap()
            .build(&build)
            .unwrap(),
        venire::config::from_value::<replay::ReplaySpec>(of("replay"))
            .unwrap()
            .build(&build)
            .unwrap(),
    ];
    let mut case = Case::new("Say hello", "Hello there");
    case.id = "c1".into();
    let mut scores = Vec::new();
    for seat in &seats {
        let verdict = seat.judge(&case, &context(20)).await;
        assert_eq!(verdict.status, Status::Ok, "{}: {verdict:?}", seat.kind());
        scores.push(verdict.score.unwrap().get());
    }
    assert_eq!(scores, [1.0, 1.0, 1.0, 0.75]);
    let prints: std::collections::BTreeSet<_> =
        seats.iter().map(|seat| seat.fingerprint()).collect();
    assert_eq!(prints.len(), 4);
}

#[test]
fn a_panel_in_the_current_folder_is_the_same_however_its_file_is_named() {
    let bench = Workbench::new();
    let panel = r#"
        [[judge]]
        name = "command"
        kind = "command"
        checks = [{ argv = ["grep", "good"] }]
        [[judge]]
        name = "script"
        kind = "script"
        argv = ["sh", "judge.sh"]
    "#;
    let file = bench.write("panel.toml", panel);
    bench.write("judge.sh", "echo '{\"score\": 1}'\n");
    bench.write("answer.txt", "good\n");
    bench.run(&["score", "-c", "panel.toml", "answer.txt"]).exits(0);
    let names = ["panel.toml", "./panel.toml", file.to_str().unwrap()];
    let seated = names.map(|name| bench.run(&["check", "-c", name]).exits(0).stdout);
    assert_eq!((&seated[0], &seated[0]), (&seated[1], &seated[2]));
    bench.write("judge.sh", "echo '{\"score\": 0}'\n");
    let changed = bench.run(&["check", "-c", "panel.toml"]).exits(0).stdout;
    assert_ne!(seated[0], changed, "the script's content is part of the fingerprint");
}

#[tokio::test]
async fn a_service_on_this_machine_is_not_looked_for_behind_a_proxy() {
    let (url, asked) = serve(|_, _, _| r#"{"score":1}"#.into_response()).await;
    let bench = Workbench::new();
    bench.write(
        "panel.toml",
        format!("[[judge]]\nname = \"s\"\nkind = \"http\"\nurl = \"{url}\"\n"),
    );
    bench.write("answer.txt", "yes");
    let mut command = bench.command(&["score", "answer.txt"]);
    // Nothing listens on port 1.
    command.env("HTTP_PROXY", "http://127.0.0.1:1").env("http_proxy", "http://127.0.0.1:1");
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = run.await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[test]
fn every_kind_has_a_schema_that_names_its_keys() {
    let schemas = [
        (schemars::schema_for!(command::CommandSpec), "checks"),
        (schemars::schema_for!(script::ScriptSpec), "argv"),
        (schemars::schema_for!(http::HttpSpec), "url"),
        (schemars::schema_for!(observe::ObserveSpec), "expect"),
        (schemars::schema_for!(replay::ReplaySpec), "file"),
        (schemars::schema_for!(venire::judge::human::HumanSpec), "question"),
    ];
    for (schema, key) in schemas {
        let schema = schema.to_value();
        assert!(schema["properties"][key].is_object(), "{schema}");
        assert_eq!(schema["additionalProperties"], false);
    }
}

/// A service whose answer depends on how often it was asked.
async fn serve<F>(answer: F) -> (String, Arc<AtomicU32>)
where
    F: Fn(u32, HeaderMap, Bytes) -> Response + Clone + Send + Sync + 'static,
{
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let handler = move |headers: HeaderMap, body: Bytes| async move {
        answer(counter.fetch_add(1, Ordering::SeqCst), headers, body)
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge", listener.local_addr().unwrap());
    let router = Router::new().route("/judge", post(handler));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, asked)
}

fn http_judge(spec: Value) -> Result<BoxedJudge, String> {
    let spec: http::HttpSpec = venire::config::from_value(spec).map_err(|e| e.to_string())?;
    spec.build(&BuildContext::new("/", Client::default())).map_err(|e| e.to_string())
}

async fn post_to(url: &str, seconds: u64) -> Verdict {
    let judge = http_judge(json!({ "url": url })).unwrap();
    judge.judge(&Case::new("问", "答"), &context(seconds)).await
}

#[tokio::test]
async fn a_service_is_sent_the_case_and_the_key_and_its_answer_is_read() {
    let key = std::env::var("CARGO_PKG_NAME").unwrap();
    let (url, _) = serve(move |_, headers, body| {
        let case: Case = serde_json::from_slice(&body).unwrap();
        assert_eq!(headers["authorization"], format!("Bearer {key}"));
        assert_eq!(headers["x-team"], "red");
        assert_eq!(headers["content-type"], "application/json");
        axum::Json(json!({"id": case.id, "score": 4, "feedback": case.output})).into_response()
    })
    .await;
    // Cargo sets this variable for every test; it stands for a key.
    let spec = json!({
        "url": url, "scale": "1-5", "echo_id": true, "headers": {"X-Team": "red"},
        "api_key_env": "CARGO_PKG_NAME",
    });
    let judge = http_judge(spec).unwrap();
    let verdict = judge.judge(&Case::new("问", "答"), &context(10)).await;
    assert_eq!(verdict.status, Status::Ok, "{verdict:?}");
    assert_eq!(verdict.score.unwrap().get(), 0.75);
    assert_eq!(verdict.feedback, ["答"]);
    assert!(!format!("{judge:?}").contains("venire\""), "no key in {judge:?}");
    assert!(judge.ping(&context(10)).unwrap().await.unwrap().contains("405"));
}

#[tokio::test]
async fn a_busy_service_is_asked_again_after_the_pause_it_names() {
    let (url, asked) = serve(|n, _, _| match n {
        0 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], "busy").into_response(),
        1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => axum::Json(json!({"score": 1})).into_response(),
    })
    .await;
    let start = Instant::now();
    let verdict = post_to(&url, 20).await;
    assert_eq!((verdict.status, verdict.attempts), (Status::Ok, 3), "{verdict:?}");
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_pause_longer_than_the_deadline_is_not_waited_for() {
    let (url, asked) = serve(|_, _, _| {
        (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")], "tomorrow").into_response()
    })
    .await;
    let start = Instant::now();
    let verdict = post_to(&url, 20).await;
    assert_eq!((verdict.status, verdict.score), (Status::RateLimited, None));
    assert!(verdict.detail.unwrap().contains("tomorrow"));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_asking_again_can_not_mend_is_asked_once() {
    for (code, status) in [
        (StatusCode::BAD_REQUEST, Status::ProviderError),
        (StatusCode::UNAUTHORIZED, Status::ProviderError),
        (StatusCode::INTERNAL_SERVER_ERROR, Status::ProviderError),
        (StatusCode::PERMANENT_REDIRECT, Status::ProviderError),
        (StatusCode::NO_CONTENT, Status::Unparseable),
    ] {
        let (url, asked) = serve(move |_, _, _| {
            (code, [("location", "http://elsewhere.invalid/")], "\u{1b}[31mno").into_response()
        })
        .await;
        let verdict = post_to(&url, 10).await;
        assert_eq!((verdict.status, verdict.score), (status, None), "{code}: {verdict:?}");
        assert!(!verdict.detail.unwrap().contains('\u{1b}'));
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{code}");
    }
}

#[tokio::test]
async fn an_answer_out_of_form_is_no_score() {
    let endless = || {
        Body::from_stream(futures::stream::repeat_with(|| {
            Ok::<_, std::io::Error>(" ".repeat(65536))
        }))
    };
    for (answer, status) in [
        ("score: 1", Status::Unparseable),
        ("{\"score\": NaN}", Status::Unparseable),
        ("{\"score\": \"1\"}", Status::Unparseable),
        ("{\"score\": 2}", Status::OutOfRange),
        ("{\"abstain\": \"not mine\"}", Status::Abstained),
        ("endless", Status::Unparseable),
    ] {
        let (url, _) = serve(move |_, _, _| match answer {
            "endless" => endless().into_response(),
            text => text.into_response(),
        })
        .await;
        let verdict = post_to(&url, 10).await;
        assert_eq!((verdict.status, verdict.score), (status, None), "{answer}: {verdict:?}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_or_hangs_is_a_failed_measurement() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let verdict = post_to(&format!("http://127.0.0.1:{port}/?q=secret"), 10).await;
    assert_eq!(verdict.status, Status::ProviderError);
    let detail = verdict.detail.unwrap();
    assert!(detail.contains("is the service running?"), "{detail}");
    assert!(!detail.contains("secret"), "{detail}");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    assert_eq!(post_to(&url, 1).await.status, Status::Timeout);
    let judge = http_judge(json!({"url": url, "timeout": "100ms"})).unwrap();
    assert_eq!(judge.judge(&Case::new("a", "b"), &context(10)).await.status, Status::Timeout);
    let stopped = context(60);
    let cancel = stopped.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let judge = http_judge(json!({"url": url})).unwrap();
    assert_eq!(judge.judge(&Case::new("a", "b"), &stopped).await.status, Status::Cancelled);
}

#[test]
fn an_http_configuration_that_can_not_work_is_refused_by_key() {
    let url = "http://localhost:1/";
    for (spec, key) in [
        (json!({"url": "localhost:1"}), "url"),
        (json!({"url": ""}), "url"),
        (json!({"url": url, "headers": {"a b": "c"}}), "headers.a b"),
        (json!({"url": url, "headers": {"a": "b\nc"}}), "headers.a"),
        (json!({"url": url, "api_key_env": "NOT_SET_ANYWHERE_AT_ALL"}), "api_key_env"),
        (json!({"url": url, "timeout": 0}), "timeout"),
        (
            json!({"url": url, "api_key_env": "CARGO_PKG_NAME", "headers": {"Authorization": "x"}}),
            "headers.authorization",
        ),
    ] {
        let message = http_judge(spec.clone()).unwrap_err();
        assert!(message.contains(&format!("`{key}`")), "{spec}: {message}");
    }
    let print = |spec: Value| http_judge(spec).unwrap().fingerprint().clone();
    let plain = print(json!({ "url": url }));
    assert_eq!(plain, print(json!({"url": url, "headers": {"X-API-Key": "k"}})));
    assert_ne!(plain, print(json!({"url": url, "version": "2"})));
}

/// The folder of labelled data sets, or `None` said loudly.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("VENIRE_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: set VENIRE_DATA to the folder of labelled data sets");
    }
    folder
}

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let file = std::fs::File::open(path).unwrap();
    let text: Box<dyn std::io::Read> = if path.extension().unwrap() == "gz" {
        Box::new(flate2::read::GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    csv::Reader::from_reader(text).deserialize().map(Result::unwrap).collect()
}

fn replayed(path: &Path, spec: Value) -> BoxedJudge {
    let mut full = json!({ "file": path });
    for (key, value) in spec.as_object().unwrap() {
        full[key] = value.clone();
    }
    let spec: replay::ReplaySpec = venire::config::from_value(full).unwrap();
    spec.build(&BuildContext::new("/", Client::default())).unwrap()
}

async fn ask(judge: &BoxedJudge, id: &str) -> Verdict {
    judge.judge(&Case { id: id.into(), ..Case::default() }, &context(10)).await
}

#[tokio::test]
async fn every_recorded_row_of_the_data_sets_comes_back() {
    let Some(data) = data() else { return };
    let scales: BTreeMap<&str, &str> = [
        ("triviaqa_v1", "binary"),
        ("summeval", "1..5"),
        ("devai", "binary"),
        ("nullmodel", "1..2"),
        ("ldb_loop", "unit"),
        ("aider_swebench", "binary"),
        ("pandalm", "preference"),
        ("iclr_reviews", "0..10"),
        ("llmbar", "preference"),
    ]
    .into();
    let mut checked = 0;
    for (set, scale) in scales {
        let folder = data.join(set);
        let path = ["judgements.csv", "judgements.csv.gz"]
            .map(|name| folder.join(name))
            .into_iter()
            .find(|path| path.exists())
            .unwrap();
        // By judge, criterion and order: the case, what was written, what silence there means.
        type Judged = (String, String, String);
        let mut by_judge: BTreeMap<Judged, Vec<(String, String, Status)>> = BTreeMap::new();
        for row in rows(&path) {
            let order = row.get("order").cloned().unwrap_or_default();
            let key = (row["judge"].clone(), row["criterion"].clone(), order);
            // What a row without a score means: a reply that could not be read is kept in `raw`.
            let replied = row.get("raw").is_some_and(|raw| !raw.is_empty());
            let silent = if replied { Status::Unparseable } else { Status::Abstained };
            let recorded = (row["item_id"].clone(), row["score"].clone(), silent);
            by_judge.entry(key).or_default().push(recorded);
        }
        for ((judge, criterion, order), recorded) in by_judge {
            let scale = if criterion.starts_with("rating:") { "0..10" } else { scale };
            let mut spec = json!({"judge": judge, "criterion": criterion, "scale": scale});
            if matches!(order.as_str(), "ab" | "ba") {
                spec["orders"] = order.as_str().into();
            }
            let judge = replayed(&path, spec);
            for (id, written, silent) in recorded {
                let verdict = ask(&judge, &id).await;
                let Ok(value) = written.parse::<f64>() else {
                    assert_eq!(verdict.status, silent, "{set} {id}");
                    continue;
                };
                let expected = match scale {
                    "1..5" => (value - 1.0) / 4.0,
                    "1..2" => value - 1.0,
                    "0..10" => value / 10.0,
                    "preference" if value == 0.0 => 0.5,
                    "preference" => 2.0 - value,
                    _ => value,
                };
                let found = verdict.score.map(|score| score.get());
                assert!((found.unwrap() - expected).abs() < 1e-12, "{set} {id}: {verdict:?}");
                checked += 1;
            }
        }
    }
    assert!(checked > 180_000, "{checked} rows");
}

#[tokio::test]
async fn position_consistency_is_that_of_the_published_tables() {
    let Some(data) = data() else { return };
    let folder = data.join("llmbar");
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let mut checked = 0;
    for (judge, subsets) in expected["judges"].as_object().unwrap() {
        let first = subsets.as_object().unwrap().values().next().unwrap();
        // Outputs that were rated alone have no order.
        if first["agreement_of_orders"].is_null() || judge.contains("/Rating") {
            continue;
        }
        let spec = json!({
            "judge": judge, "criterion": "preference", "scale": "preference", "orders": "combine",
        });
        let judge = replayed(&folder.join("judgements.csv.gz"), spec);
        for (subset, figures) in subsets.as_object().unwrap() {
            let (Some(count), Some(published)) =
                (figures["n"].as_u64(), figures["agreement_of_orders"].as_f64())
            else {
                continue;
            };
            if figures["unparsed"] != 0
                || count != expected["subsets"][subset].as_u64().unwrap_or(0)
            {
                continue;
            }
            let mut consistent = 0_u64;
            for i in 0..count {
                let verdict = ask(&judge, &format!("{subset}-{i:03}")).await;
                consistent += u64::from(verdict.notes["position_consistent"] == true);
            }
            let share = consistent as f64 / count as f64;
            assert!((share - published).abs() < 1e-6, "{subset}: {share} and {published}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked} figures");
}
