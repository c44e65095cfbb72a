//! A run is killed at random moments, stopped by Ctrl-C, and met with faults: what was paid
//! for is never lost, and never paid for twice.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use crate::mock::{Fault, Mock, Options};
use crate::workbench::{Workbench, model_panel};

const CASES: usize = 60;
const JUDGES: usize = 3;
const IN_FLIGHT: usize = 8;

fn bench(url: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(url, JUDGES, ""));
    let rows: String = (0..CASES)
        .map(|i| format!("{{\"id\":\"c{i}\",\"input\":\"q{i}\",\"output\":\"answer {i}\"}}\n"))
        .collect();
    bench.write("cases.jsonl", rows);
    bench
}

fn start(bench: &Workbench, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
    command
        .current_dir(bench.path(""))
        .args(arguments)
        .args(["-q", "--json", "-j", &IN_FLIGHT.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn replies(bench: &Workbench) -> u64 {
    let ran = bench.run(&["cache", "--json"]);
    // Killed before the store was made.
    if ran.code != 0 { 0 } else { ran.json()["replies"].as_u64().unwrap() }
}

/// What was ruled, without what differs between two runs by its nature.
fn rulings(bench: &Workbench) -> Vec<Value> {
    bench.run(&["export", "latest", "-o", "r.jsonl", "--what", "rulings"]).exits(0);
    let mut rows = bench.rows("r.jsonl");
    for row in &mut rows {
        row.as_object_mut().unwrap().remove("run");
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_at_random_moments_ends_as_an_uninterrupted_one() {
    let latency = Duration::from_millis(15);
    let server = Mock::start(Options { latency, ..Options::default() }).await.unwrap();
    let whole = bench(&server.url());
    whole.run(&["run", "cases.jsonl", "-q", "--json"]).exits(0);
    let expected = rulings(&whole);
    assert_eq!(expected.len(), CASES);

    let bench = bench(&server.url());
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let mut kills = 0;
    let paid_before = server.log().answered();
    let summary = loop {
        // Killed while the store was being made: its file is there, and no store yet.
        let listed = bench.run(&["list", "runs", "--json"]);
        let has_run = listed.code == 0 && listed.json().as_array().is_some_and(|r| !r.is_empty());
        let kept = replies(&bench);
        let before = server.log().requests();
        let arguments: &[&str] =
            if has_run { &["run", "--resume"] } else { &["run", "cases.jsonl"] };
        let mut child = start(&bench, arguments);
        // The first run is killed early, later ones later, the last not at all.
        if kills < 6 {
            let wait = random.random_range(40..220);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            child.kill().unwrap();
            let status = child.wait().unwrap();
            if !status.success() {
                kills += 1;
                continue;
            }
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let asked = server.log().requests() - before;
        let whole = (CASES * JUDGES) as u64;
        assert_eq!(asked, whole - kept, "{kept} replies were kept of {whole}");
        break serde_json::from_slice::<Value>(&output.stdout).unwrap();
    };
    assert!(kills >= 3, "only {kills} kills hit a run");
    assert_eq!(summary["cases"], CASES);
    assert_eq!(summary["verdicts"], CASES * JUDGES);
    assert_eq!(rulings(&bench), expected);
    let lost = server.log().answered() - paid_before - (CASES * JUDGES) as u64;
    let most = kills * IN_FLIGHT as u64;
    assert!(lost <= most, "{lost} answers were lost in {kills} kills of {IN_FLIGHT} in flight");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_new_calls_keeps_what_is_there_and_says_how_to_go_on() {
    let latency = Duration::from_millis(30);
    let server = Mock::start(Options { latency, ..Options::default() }).await.unwrap();
    let bench = bench(&server.url());
    let child = start(&bench, &["run", "cases.jsonl"]);
    while server.log().answered() < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["finished"], false);
    // What was in flight was waited for, so nothing that was answered is lost.
    assert_eq!(replies(&bench), server.log().answered());
    let before = server.log().answered();
    let resumed = bench.run(&["run", "--resume", "--json"]).exits(0).json();
    assert_eq!(resumed["cases"], CASES);
    let whole = (CASES * JUDGES) as u64;
    assert_eq!(server.log().answered() - before, whole - before);
    assert_eq!(server.log().most_answers_to_one(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_can_not_judge_one_run() {
    let latency = Duration::from_millis(100);
    let server = Mock::start(Options { latency, ..Options::default() }).await.unwrap();
    let bench = bench(&server.url());
    let mut first = start(&bench, &["run", "cases.jsonl"]);
    while server.log().requests() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bench.run(&["run", "--resume"]).exits(2).says(&["another process"]);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_mixed_kinds_leave_every_verdict_with_a_status_and_nothing_paid_twice() {
    let options = Options { faults: 0.05, seed: 3, ..Options::default() };
    let server = Mock::start(options).await.unwrap();
    let bench = bench(&server.url());
    bench.write("panel.toml", model_panel(&server.url(), JUDGES, "timeout = 2"));
    let ran = bench.run(&["run", "cases.jsonl", "-q", "--json", "-j", "32"]);
    let summary = ran.json();
    assert_eq!(summary["verdicts"], CASES * JUDGES, "{}", ran.stderr);
    let sum: u64 =
        summary["statuses"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, (CASES * JUDGES) as u64);
    // A second run finds every kept reply and asks only for what has none.
    let before = server.log().requests();
    let again = bench.run(&["run", "cases.jsonl", "-q", "--json", "-j", "32"]).json();
    let kept = again["cached"].as_u64().unwrap();
    assert!(kept > 0);
    assert!(server.log().requests() - before <= (CASES * JUDGES) as u64 * 2 - kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_run_asks_nothing_and_no_cache_asks_all() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url());
    let first = bench.run(&["run", "cases.jsonl", "-q", "--json"]).exits(0).json();
    assert_eq!((&first["calls"], &first["cached"]), (&180.into(), &0.into()));
    let second = bench.run(&["run", "cases.jsonl", "-q", "--json"]).exits(0).json();
    assert_eq!((&second["calls"], &second["cached"]), (&0.into(), &180.into()));
    let third = bench.run(&["run", "cases.jsonl", "-q", "--json", "--no-cache"]).exits(0).json();
    assert_eq!((&third["calls"], &third["cached"]), (&180.into(), &0.into()));
    for key in ["accepted", "rejected", "undecided"] {
        assert_eq!(first[key], second[key]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cost_limit_holds_and_its_verdicts_can_be_asked_for_later() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url());
    let ran = bench.run(&["run", "cases.jsonl", "--cost-limit", "1"]);
    ran.exits(2).says(&["--cost-limit", "price"]);
    let price = "price = { input = 1000, output = 1000 }";
    bench.write("panel.toml", model_panel(&server.url(), JUDGES, price));
    let ran = bench.run(&["run", "cases.jsonl", "-q", "--json", "--cost-limit", "20"]).exits(3);
    let summary = ran.json();
    assert!(summary["cost_usd"].as_f64().unwrap() <= 20.0);
    assert!(summary["statuses"]["budget"].as_u64().unwrap() > 0);
    assert_eq!(summary["verdicts"], 180);
    let again = bench
        .run(&["run", "--resume", "--retry-errors", "-q", "--json", "--cost-limit", "10000"])
        .exits(0)
        .json();
    assert_eq!(again["statuses"]["ok"], 180);
    assert_eq!(server.log().most_answers_to_one(), 1, "nothing was paid for twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_never_reaches_output_store_or_export() {
    let key = "sk-test-1234567890abcdef";
    let server =
        Mock::start(Options { key: Some(key.to_owned()), ..Options::default() }).await.unwrap();
    let bench = bench(&server.url());
    bench.write("panel.toml", model_panel(&server.url(), 1, "api_key_env = \"MY_TEST_KEY\""));
    bench.run(&["run", "cases.jsonl"]).exits(2).says(&["MY_TEST_KEY"]);
    bench.write(".env", format!("MY_TEST_KEY={key}\n"));
    let ran = bench.run(&["run", "cases.jsonl", "-vv", "-o", "v.jsonl"]).exits(0);
    bench.write(".env", "MY_TEST_KEY=sk-wrong-key-000000\n");
    let denied = bench.run(&["run", "cases.jsonl", "--no-cache", "-vv", "-o", "d.jsonl"]).exits(3);
    for text in [&ran.stdout, &ran.stderr, &denied.stdout, &denied.stderr, &bench.read("v.jsonl")] {
        assert!(!text.contains(key) && !text.contains("sk-wrong"), "{text}");
    }
    assert!(bench.read("d.jsonl").contains("MY_TEST_KEY"), "the variable is named");
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(bench.path(".venire").join(file)).unwrap_or_default();
        let found = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!found(key) && !found("sk-wrong"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_with_another_model_is_named_and_one_without_it_is_an_error() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(&server.url(), 1, ""));
    bench.write("cases.jsonl", "{\"id\":\"a\",\"input\":\"q\",\"output\":\"x\"}\n");
    server.script([Fault::OtherModel { name: "cheaper-9b".into() }]);
    bench.run(&["run", "cases.jsonl", "-o", "v.jsonl"]).exits(0);
    let row = &bench.rows("v.jsonl")[0];
    assert_eq!(row["model_returned"], "cheaper-9b");
    assert!(
        row["notes"]["model_mismatch"].is_string() || row["notes"]["model_mismatch"] == true,
        "{row}"
    );

    let missing = Fault::Status { status: 404, message: Some("model mock-0 not found".into()) };
    server.script([missing.clone(), missing]);
    bench.run(&["run", "cases.jsonl", "--no-cache", "-o", "w.jsonl"]).exits(3);
    let row = &bench.rows("w.jsonl")[0];
    assert_eq!((&row["status"], &row["attempts"]), (&"provider_error".into(), &1.into()));
    assert!(row["detail"].as_str().unwrap().contains("mock-0"), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_a_minute_delays_judges_and_never_times_them_out() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = Workbench::new();
    // A minute's worth goes at once; the twelve calls over it wait for three seconds in all,
    // longer than the second that each judge has.
    let limits = "requests_per_minute = 240\nmax_in_flight = 1\ntimeout = 1";
    bench.write("panel.toml", model_panel(&server.url(), 1, limits));
    let rows: String = (0..252)
        .map(|i| format!("{{\"id\":\"c{i}\",\"input\":\"q\",\"output\":\"answer {i}\"}}\n"))
        .collect();
    bench.write("cases.jsonl", rows);
    let ran = bench.run(&["run", "cases.jsonl", "-q", "--json", "-j", "64"]).exits(0);
    assert_eq!(ran.json()["statuses"], serde_json::json!({ "ok": 252 }));
}
