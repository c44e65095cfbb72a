//! Looks at real files, ports and servers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::routing::{get, post};
use serde_json::json;

use super::*;
use crate::case::Case;
use crate::provider::{CallContext, Client};
use crate::score::Score;
use crate::verdict::{Status, Verdict};

fn build_in(folder: &Path, spec: Value) -> Result<BoxedJudge, String> {
    let spec: ObserveSpec = crate::config::from_value(spec).map_err(|e| e.to_string())?;
    spec.build(&BuildContext::new(folder, Client::default())).map_err(|e| e.to_string())
}

fn context() -> CallContext {
    CallContext::standalone(Duration::from_secs(20))
}

async fn look_in(folder: &Path, expect: Value) -> Verdict {
    let judge = build_in(folder, json!({"expect": [expect]})).unwrap();
    judge.judge(&Case::new("t", "o"), &context()).await
}

async fn look(expect: Value) -> Verdict {
    look_in(&std::env::temp_dir(), expect).await
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}")
}

/// A port that nobody listens on.
fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn met(verdict: &Verdict) -> bool {
    assert_eq!(verdict.status, Status::Ok, "{verdict:?}");
    verdict.score.unwrap() == Score::ONE
}

#[tokio::test]
async fn files_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.json"), "{\"a\": {\"b\": 1.0, \"c\": \"好\"}}").unwrap();
    let blake3 =
        blake3::hash(b"{\"a\": {\"b\": 1.0, \"c\": \"\xe5\xa5\xbd\"}}").to_hex().to_string();
    for (expect, expected) in [
        (json!({"file": "f.json"}), true),
        (json!({"file": "none"}), false),
        (json!({"file": "f.json/none"}), false),
        (json!({"file": "none", "exists": false}), true),
        (json!({"file": "f.json", "exists": false}), false),
        (json!({"file": "f.json", "contains": "好"}), true),
        (json!({"file": "f.json", "contains": "坏"}), false),
        (json!({"file": "f.json", "regex": "\"b\": [0-9]"}), true),
        (json!({"file": "f.json", "regex": "^b"}), false),
        (json!({"file": "f.json", "json": {"/a/b": 1}}), true),
        (json!({"file": "f.json", "json": {"/a": {"c": "好", "b": 1}}}), true),
        (json!({"file": "f.json", "json": {"/a/b": 2}}), false),
        (json!({"file": "f.json", "json": {"/a/x": null}}), false),
        (json!({"file": "f.json", "size": {"min": 1, "max": 100}}), true),
        (json!({"file": "f.json", "size": {"min": 1000}}), false),
        (json!({"file": "f.json", "size": {"max": 1}}), false),
        (json!({"file": "f.json", "blake3": blake3}), true),
        (json!({"file": "f.json", "sha256": "0".repeat(64)}), false),
        (json!({"file": ".", "contains": "x"}), false),
    ] {
        let verdict = look_in(folder.path(), expect.clone()).await;
        assert_eq!(met(&verdict), expected, "{expect}: {:?}", verdict.feedback);
        assert_eq!(verdict.feedback.is_empty(), expected);
    }
}

#[tokio::test]
async fn urls_are_looked_at() {
    let router = Router::new()
        .route("/ok", get(|| async { "{\"status\": \"up\"}" }))
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                "late"
            }),
        )
        .route(
            "/case/{id}",
            get(|axum::extract::Path(id): axum::extract::Path<String>| async move { id }),
        )
        .route("/moved", get(|| async { axum::response::Redirect::permanent("/ok") }));
    let url = serve(router).await;
    let at = |path: &str| format!("{url}{path}");
    for (expect, expected) in [
        (json!({"url": at("/ok")}), true),
        (
            json!({"url": at("/ok"), "status": 200, "contains": "up", "json": {"/status": "up"}}),
            true,
        ),
        (json!({"url": at("/ok"), "json": {"/status": "down"}}), false),
        (json!({"url": at("/none")}), false),
        (json!({"url": at("/none"), "status": 404}), true),
        (json!({"url": at("/moved")}), false),
        (json!({"url": at("/moved"), "status": 308}), true),
        (json!({"url": at("/slow"), "max_latency": "50ms"}), false),
        (json!({"url": at("/slow"), "max_latency": "10s"}), true),
        (json!({"url": format!("http://127.0.0.1:{}/", closed_port())}), false),
    ] {
        let verdict = look(expect.clone()).await;
        assert_eq!(met(&verdict), expected, "{expect}: {:?}", verdict.feedback);
    }
    let judge = build_in(
        &std::env::temp_dir(),
        json!({"expect": [{"url": at("/case/{id}"), "contains": "a/b ?"}]}),
    );
    let case = Case { id: "a/b ?".into(), ..Case::default() };
    assert!(met(&judge.unwrap().judge(&case, &context()).await));
}

#[tokio::test]
async fn ports_are_looked_at() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (open, closed) = (listener.local_addr().unwrap().port(), closed_port());
    for (port, wanted, expected) in
        [(open, true, true), (open, false, false), (closed, true, false), (closed, false, true)]
    {
        let expect = json!({"port": format!("127.0.0.1:{port}"), "open": wanted});
        assert_eq!(met(&look(expect).await), expected);
    }
}

#[tokio::test]
async fn our_own_inability_is_a_failed_measurement() {
    for expect in [
        json!({"url": "http://no-such-host.invalid/"}),
        json!({"port": "no-such-host.invalid:80", "open": false}),
    ] {
        let verdict = look(expect).await;
        assert_eq!((verdict.status, verdict.score), (Status::ProviderError, None));
        assert!(verdict.detail.unwrap().contains("can't be resolved"));
    }
    let judge = build_in(&std::env::temp_dir(), json!({"expect": [{"file": "{id}.txt"}]})).unwrap();
    for id in ["../../etc/passwd", "a/b", "..", ""] {
        let case = Case { id: id.into(), ..Case::default() };
        assert_eq!(judge.judge(&case, &context()).await.status, Status::ProviderError, "{id}");
    }
}

#[tokio::test]
async fn expectations_are_weighted_criteria() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "").unwrap();
    let spec = json!({"expect": [
        {"file": "a", "weight": 3, "name": "there"}, {"file": "b", "required": true},
    ]});
    let judge = build_in(folder.path(), spec).unwrap();
    let verdict = judge.judge(&Case::new("t", "o"), &context()).await;
    assert_eq!(verdict.score.unwrap().get(), 0.75);
    assert_eq!(
        (verdict.criteria[0].name.as_str(), verdict.criteria[0].passed),
        ("there", Some(true))
    );
    assert_eq!((verdict.criteria[1].passed, verdict.criteria[1].required), (Some(false), true));
    assert_eq!(verdict.feedback, ["`b` does not exist"]);
}

#[tokio::test]
async fn what_comes_true_in_time_is_met() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late");
    let spec =
        |within: &str| json!({"within": within, "every": "20ms", "expect": [{"file": "late"}]});
    let case = Case::new("t", "o");
    let early = build_in(folder.path(), spec("100ms")).unwrap().judge(&case, &context()).await;
    assert!(!met(&early));
    assert!(early.attempts > 1);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        std::fs::write(path, "").unwrap();
    });
    assert!(met(&build_in(folder.path(), spec("10s")).unwrap().judge(&case, &context()).await));
}

#[tokio::test]
async fn endless_times_are_cut_at_the_deadline() {
    let spec = json!({"within": 1e15, "every": 1e15, "expect": [
        {"file": "never"}, {"url": format!("http://127.0.0.1:{}/", closed_port()), "max_latency": 1e15},
    ]});
    let folder = tempfile::tempdir().unwrap();
    let judge = build_in(folder.path(), spec).unwrap();
    assert!(!met(&judge.judge(&Case::new("t", "o"), &context()).await));
}

#[tokio::test]
async fn a_cancelled_observation_is_cancelled() {
    let spec = json!({"within": "60s", "expect": [{"file": "never"}]});
    let folder = tempfile::tempdir().unwrap();
    let judge = build_in(folder.path(), spec).unwrap();
    let context = context();
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let verdict = judge.judge(&Case::new("t", "o"), &context).await;
    assert_eq!(verdict.status, Status::Cancelled);
    let soon = CallContext::standalone(Duration::from_millis(100));
    let verdict = judge.judge(&Case::new("t", "o"), &soon).await;
    assert!(!met(&verdict), "the last look before the deadline counts");
}

#[tokio::test]
async fn side_effects_happen_once_for_each_case() {
    let hits = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&hits);
    let router = Router::new().route(
        "/",
        post(move || async move {
            counter.fetch_add(1, Ordering::SeqCst);
            "done"
        }),
    );
    let url = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let spec = json!({"side_effects": true, "within": "1s", "every": "20ms", "expect": [
        {"url": url, "method": "POST", "contains": "never said"},
    ]});
    let judge = build_in(folder.path(), spec.clone()).unwrap();
    let case = Case::new("t", "o");
    let first = context();
    let both = tokio::join!(judge.judge(&case, &first), judge.judge(&case, &first));
    let again = build_in(folder.path(), spec).unwrap().judge(&case, &context()).await;
    assert_eq!(hits.load(Ordering::SeqCst), 1, "not even to poll: {both:?}");
    assert!(!met(&again));
    assert_eq!(again.notes["receipt"], "replayed");
    let changed = Case { output: Some("another".into()), ..case.clone() };
    let refused = judge.judge(&changed, &context()).await;
    assert_eq!(refused.status, Status::ProviderError);
    assert!(refused.detail.unwrap().contains("another content"));
    let mut second = context();
    second.sample = 1;
    judge.judge(&case, &second).await;
    judge.judge(&Case::new("t", "other"), &context()).await;
    assert_eq!(hits.load(Ordering::SeqCst), 3, "another sample and another case are new");
}

#[tokio::test]
async fn an_observation_that_never_ended_is_not_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let spec = json!({"side_effects": true, "within": "60s", "expect": [{"file": "never"}]});
    let judge = build_in(folder.path(), spec).unwrap();
    let case = Case::new("t", "o");
    let context = context();
    let dropped =
        tokio::time::timeout(Duration::from_millis(100), judge.judge(&case, &context)).await;
    assert!(dropped.is_err());
    let verdict = judge.judge(&case, &context).await;
    assert_eq!((verdict.status, verdict.score), (Status::ProviderError, None));
    let detail = verdict.detail.unwrap();
    assert!(detail.contains("never ended") && detail.contains(".venire/receipts"), "{detail}");
    context.cancel.cancel();
    let new = judge.judge(&Case::new("t", "new"), &context).await;
    assert_eq!(new.status, Status::Cancelled);
    let receipts = std::fs::read_dir(folder.path().join(".venire/receipts")).unwrap().count();
    assert_eq!(receipts, 1, "a case that was never looked at has no receipt");
}

#[test]
fn a_configuration_that_can_not_work_is_refused_by_key() {
    for (expect, key) in [
        (json!([]), "expect"),
        (json!([{}]), "expect[0]"),
        (json!([{"file": "a", "port": "h:1"}]), "expect[0]"),
        (json!([{"file": ""}]), "expect[0].file"),
        (json!([{"file": "a", "weight": 0}]), "expect[0].weight"),
        (json!([{"file": "a", "status": 200}]), "expect[0].status"),
        (json!([{"url": "http://h/", "exists": true}]), "expect[0].exists"),
        (json!([{"port": "h:1", "contains": "x"}]), "expect[0].contains"),
        (json!([{"url": "ftp://h/"}]), "expect[0].url"),
        (json!([{"url": "not a url"}]), "expect[0].url"),
        (json!([{"url": "http://h/", "status": 99}]), "expect[0].status"),
        (json!([{"url": "http://h/", "method": "POST"}]), "expect[0].method"),
        (json!([{"url": "http://h/", "method": "A B"}]), "expect[0].method"),
        (json!([{"url": "http://h/", "headers": {"a b": "c"}}]), "expect[0].headers.a b"),
        (json!([{"port": "h"}]), "expect[0].port"),
        (json!([{"file": "a", "regex": "("}]), "expect[0].regex"),
        (json!([{"file": "a", "json": {"a": 1}}]), "expect[0].json"),
        (json!([{"file": "a", "sha256": "abc"}]), "expect[0].sha256"),
        (json!([{"file": "a", "size": {}}]), "expect[0].size"),
        (json!([{"file": "a", "size": {"min": 2, "max": 1}}]), "expect[0].size"),
        (json!([{"file": "a", "exists": false, "contains": "x"}]), "expect[0].exists"),
        (json!([{"file": "a"}, {"file": "a"}]), "expect[1].name"),
    ] {
        let message = build_in(Path::new("/"), json!({"expect": expect})).unwrap_err();
        assert!(message.contains(&format!("`{key}`")), "{expect}: {message}");
    }
}
