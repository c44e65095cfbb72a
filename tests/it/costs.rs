//! What a process spent, and what the verdicts of its run cost in all.

use std::time::Duration;

use serde_json::Value;

use crate::mock::{Fault, Mock, Options};
use crate::workbench::{Workbench, model_panel};

const CASES: u64 = 10;
const PRICE: &str = "price = { input = 1000, output = 1000 }";

fn bench(url: &str, more: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(url, 1, more));
    let rows: String = (0..CASES)
        .map(|i| format!("{{\"id\":\"c{i}\",\"input\":\"q{i}\",\"output\":\"answer {i}\"}}\n"))
        .collect();
    bench.write("cases.jsonl", rows);
    bench
}

fn usd(summary: &Value, key: &str) -> f64 {
    summary[key].as_f64().unwrap_or_else(|| panic!("no {key} in {summary}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_run_costs_what_all_its_verdicts_cost_and_a_process_what_it_spent() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    // Four calls fail for good, so that there is something left to ask.
    let fault = Fault::Status { status: 400, message: None };
    server.script(vec![fault; 4]);
    let json = ["-q", "--json", "-j", "1"];
    let first = bench.run(&[&["run", "cases.jsonl", "--max-undecided", "1"][..], &json].concat());
    let first = first.exits(0).json();
    assert!(usd(&first, "cost_usd") > 0.0);
    assert!((usd(&first, "cost_usd") - usd(&first, "run_cost_usd")).abs() < 1e-9, "{first}");
    let resumed =
        bench.run(&[&["run", "--resume", "--retry-errors"][..], &json].concat()).exits(0).json();
    assert_eq!(resumed["run_calls"], CASES);
    let both = usd(&first, "cost_usd") + usd(&resumed, "cost_usd");
    assert!((usd(&resumed, "run_cost_usd") - both).abs() < 1e-9, "{first} {resumed}");
    assert!(usd(&resumed, "cost_usd") < both);
    // A run that finds every reply spends nothing, and rests on the same replies.
    let again = bench.run(&[&["run", "cases.jsonl"][..], &json].concat()).exits(0).json();
    assert_eq!((&again["calls"], usd(&again, "cost_usd")), (&0.into(), 0.0));
    assert_eq!((&again["cached"], &again["run_calls"]), (&CASES.into(), &CASES.into()));
    assert!((usd(&again, "run_cost_usd") - both).abs() < 1e-9);
    assert_eq!(again["by_judge"][0]["run_cost_usd"], again["run_cost_usd"]);
    let words = bench.run(&["run", "--resume"]).exits(0).stdout;
    assert!(words.contains("10 replies, in all"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_without_a_price_cost_is_unknown_even_where_every_call_failed() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url(), "");
    server.script(vec![Fault::Status { status: 400, message: None }; 40]);
    let summary = bench.run(&["run", "cases.jsonl", "-q", "--json"]).exits(3).json();
    assert!(summary["calls"].as_u64().unwrap() > 0);
    assert_eq!((&summary["cost_usd"], &summary["run_cost_usd"]), (&Value::Null, &Value::Null));
    let rules = Workbench::with_rules();
    let free = rules.run(&["run", "cases.csv", "--json"]).exits(0).json();
    assert_eq!((usd(&free, "cost_usd"), usd(&free, "run_cost_usd")), (0.0, 0.0));
}

/// Two processes that are started together on the same questions.
async fn together(server: &Mock, bench: &Workbench, kill_first: bool) -> Value {
    let start = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_venire"));
        command.current_dir(bench.path("")).args(["run", "cases.jsonl", "-q", "--json", "-j", "4"]);
        let piped = std::process::Stdio::piped;
        command.stdout(piped()).stderr(piped()).spawn().unwrap()
    };
    let (mut first, second) = (start(), start());
    if kill_first {
        while server.log().requests() < 3 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        first.kill().unwrap();
    }
    let first = tokio::task::spawn_blocking(move || first.wait_with_output().unwrap());
    let second = tokio::task::spawn_blocking(move || second.wait_with_output().unwrap());
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!(first.status.success(), !kill_first);
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    serde_json::from_slice(&second.stdout).unwrap()
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_started_together_pay_once_for_the_same_question() {
    let latency = Duration::from_millis(60);
    let server = Mock::start(Options { latency, ..Options::default() }).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    let second = together(&server, &bench, false).await;
    assert_eq!(second["statuses"]["ok"], CASES);
    assert_eq!(server.log().requests(), CASES, "each question is asked once");
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_was_asking_is_asked_by_the_one_that_waits() {
    let latency = Duration::from_millis(200);
    let server = Mock::start(Options { latency, ..Options::default() }).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    let second = together(&server, &bench, true).await;
    assert_eq!(second["statuses"]["ok"], CASES);
    assert!(server.log().requests() <= CASES + 4, "only what was in flight is asked twice");
}
