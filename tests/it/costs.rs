//! What a process spent, what the verdicts of its run cost in all, and what is not asked twice.

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
async fn a_cost_limit_is_the_run_s_and_holds_when_it_is_resumed() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    let all = bench.run(&["run", "cases.jsonl", "-q", "--json", "--no-cache"]).exits(0).json();
    // Enough for some of the calls; each is set aside at its worst case.
    let limit = format!("{}", usd(&all, "cost_usd") * 0.7);
    let arguments = ["run", "cases.jsonl", "-q", "--json", "-j", "1", "--no-cache"];
    let limited = [&arguments[..], &["--cost-limit", &limit, "--max-undecided", "1"]].concat();
    let first = bench.run(&limited).exits(0).json();
    assert!(first["statuses"]["budget"].as_u64().unwrap() > 0, "{first}");
    let spent = usd(&first, "run_cost_usd");
    for _ in 0..3 {
        let again = ["run", "--resume", "--retry-errors", "-q", "--json", "--max-undecided", "1"];
        let resumed = bench.run(&again).exits(0).json();
        assert!(usd(&resumed, "run_cost_usd") <= limit.parse::<f64>().unwrap() + 1e-9, "{resumed}");
        assert!(usd(&resumed, "run_cost_usd") >= spent - 1e-9);
    }
    let raised = ["run", "--resume", "--retry-errors", "-q", "--json", "--cost-limit", "1000"];
    let done = bench.run(&raised).exits(0).json();
    assert_eq!(done["statuses"]["ok"], CASES);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_than_the_one_asked_for_is_warned_about_and_headers_are_not_kept() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url(), "headers = { x-secret = \"hdr-secret-1\" }");
    server.script(vec![Fault::OtherModel { name: "gpt-evil".into() }; 3]);
    let ran = bench.run(&["run", "cases.jsonl", "--json", "-j", "1"]).exits(0);
    let ran = ran.says(&["gpt-evil", "3 of 10 verdicts"]);
    let summary = ran.json();
    assert_eq!(summary["by_judge"][0]["model_mismatches"], 3);
    assert!(summary["warnings"].to_string().contains("gpt-evil"), "{summary}");
    server.script(vec![Fault::OtherModel { name: "gpt-evil".into() }]);
    bench.write("a.txt", "yes");
    bench.run(&["score", "--input", "q", "a.txt", "--no-cache"]).says(&["gpt-evil"]);
    let kept = std::fs::read(bench.path(".venire/store.db")).unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("hdr-secret-1"));
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

#[tokio::test(flavor = "multi_thread")]
async fn a_judge_whose_scores_are_on_two_scales_is_named_in_the_run_and_in_its_calibration() {
    let answer = |asked: &crate::mock::Asked| {
        let without = asked.texts.iter().any(|text| text.contains("answer 7"));
        without
            .then(|| crate::mock::Answer { tokens: Vec::new(), ..crate::mock::Answer::of("Yes") })
    };
    let options = Options { answer: Some(std::sync::Arc::new(answer)), ..Options::default() };
    let server = Mock::start(options).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    let said = ["`m0`", "9 of its scores", "1 from written", "require", "never"];
    let ran = bench.run(&["run", "cases.jsonl", "-q", "--json", "-o", "v.csv", "-o", "v.jsonl"]);
    let summary = ran.exits(0).says(&said).json();
    let sources = &summary["by_judge"][0]["score_sources"];
    assert_eq!((&sources["logprobs"], &sources["text"]), (&9.into(), &1.into()));
    assert!(summary["warnings"].to_string().contains("two scales"), "{summary}");
    let labels: String = (0..CASES).map(|i| format!("c{i},{}\n", i % 2)).collect();
    bench.write("labels.csv", format!("case,label\n{labels}"));
    let calibrate = ["calibrate", "--labels", "labels.csv", "--positive", "=1", "--no-split"];
    for from in [["--run", "latest"], ["--judgements", "v.csv"], ["--judgements", "v.jsonl"]] {
        bench.run(&[&calibrate[..], &from].concat()).says(&said);
    }
    bench.write("panel.toml", model_panel(&server.url(), 1, "logprobs = \"require\""));
    let ran = bench.run(&["run", "cases.jsonl", "-q", "--json"]).exits(0);
    assert!(!ran.stderr.contains("two scales"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_too_long_is_sent_once() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    for message in [
        "the request exceeds the available context size, exceed_context_size_error",
        "context_length_exceeded: maximum context length is 8192 tokens",
    ] {
        let before = server.log().requests();
        server.script([Fault::Status { status: 400, message: Some(message.into()) }]);
        bench.write(
            "one.jsonl",
            format!("{{\"id\":\"x\",\"input\":\"q\",\"output\":\"{message}\"}}\n"),
        );
        let ran = bench.run(&["run", "one.jsonl", "-q", "-o", "one.out.jsonl"]).exits(3);
        assert_eq!(server.log().requests() - before, 1, "{}", ran.stderr);
        let detail = bench.rows("one.out.jsonl")[0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("does not fit in the context"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_are_asked_for_as_one_token_and_read_from_its_log_probabilities() {
    let server = Mock::start(Options::default()).await.unwrap();
    let bench = bench(&server.url(), PRICE);
    for lang in ["en", "zh"] {
        let mode =
            format!("mode = \"score\"\nlang = \"{lang}\"\ncriterion = \"Is it right, yes or no?\"");
        let panel = model_panel(&server.url(), 1, PRICE)
            .replace("mode = \"yes_no\"\ncriterion = \"Is it right?\"", &mode);
        bench.write("panel.toml", panel);
        bench.run(&["run", "cases.jsonl", "-q", "-o", "v.jsonl"]).exits(0);
        for row in bench.rows("v.jsonl") {
            assert_eq!(
                (&row["status"], &row["notes"]["score_source"]),
                (&"ok".into(), &"logprobs".into())
            );
        }
    }
}
