//! Several starts: who is dropped, who is picked, one ledger, and nothing done twice.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::control::scripted;
use crate::workbench::Workbench;

/// As many words as the start's number, and one more with every output.
const AGENT: &str = "cat > /dev/null; echo call >> calls.txt; n=$((VENIRE_START + VENIRE_GENERATION - 1)); i=0; while [ $i -lt $n ]; do printf 'word%s ' $i; i=$((i+1)); done; echo $VENIRE_START\n";

fn bench(agent: &str, more: &str) -> Workbench {
    let bench = Workbench::new();
    scripted(&bench, agent, &format!("[starts]\nn = 4\ngenerations = 1\n{more}"));
    let text = bench.read("loop.toml").replace("min = 5", "min = 8");
    bench.write("loop.toml", text);
    bench
}

fn calls(bench: &Workbench) -> usize {
    std::fs::read_to_string(bench.path("calls.txt")).map_or(0, |text| text.lines().count())
}

/// What must not depend on kills and on who was quicker.
fn essence(result: &Value) -> Value {
    let mut result = result.clone();
    for key in ["run", "elapsed_seconds", "resumed", "log", "cost_usd"] {
        result.as_object_mut().unwrap().remove(key);
    }
    for start in result["starts"].as_array_mut().unwrap() {
        start.as_object_mut().unwrap().remove("log");
    }
    result
}

#[test]
fn the_worse_half_is_dropped_and_the_finalists_are_judged_afresh() {
    let bench = bench(AGENT, "");
    let ran = bench.run(&["loop", "--json"]).exits(0);
    let result = ran.json();
    assert_eq!(result["reason"], "quality_reached");
    let starts = result["starts"].as_array().unwrap();
    let dropped: Vec<&Value> = starts.iter().map(|start| &start["dropped_after"]).collect();
    assert_eq!(dropped, [&json!(1), &json!(1), &Value::Null, &Value::Null]);
    assert_eq!((&starts[0]["reason"], &starts[0]["fresh_score"]), (&Value::Null, &Value::Null));
    for finalist in &starts[2..] {
        assert_eq!(finalist["reason"], "quality_reached");
        assert_eq!((&finalist["score"], &finalist["fresh_score"]), (&json!(1.0), &json!(1.0)));
    }
    assert_eq!(starts.iter().filter(|start| start["picked"] == true).count(), 1);
    assert_eq!(starts[2]["picked"], true, "of equals the first");
    // 1 + 1 of the dropped, and to eight words: six outputs of start 3, five of start 4 (each
    // says its number too).
    assert_eq!(calls(&bench), 2 + 5 + 4);
    assert_eq!(result["evaluations"], 2 + 5 + 4 + 2);
    ran.says(&["start 4, generation 1"]);
    let text = bench.run(&["loop", "-q"]).exits(0).stdout;
    assert!(text.contains("dropped after 1") && text.contains("picked"), "{text}");
    bench.run(&["list", "runs"]).exits(0);
    let log = result["starts"][2]["log"].as_str().unwrap();
    let replayed = bench.run(&["replay", log, "--policy", "loop.toml", "--json"]).exits(0).json();
    assert_eq!(replayed["accepted"], 1);
}

#[test]
fn starts_that_are_killed_go_on_and_do_nothing_twice() {
    let slow = AGENT.replace("i=0;", "sleep 0.05; i=0;");
    let whole = bench(&slow, "");
    let expected = whole.run(&["loop", "--json", "-q"]).exits(0).json();
    let paid = calls(&whole);
    for after in [1, 2, 4, 6, 8, 10, paid] {
        let bench = bench(&slow, "");
        let mut child = Command::new(env!("CARGO_BIN_EXE_venire"))
            .current_dir(bench.path(""))
            .args(["loop", "--json", "-q"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patience = Instant::now() + Duration::from_secs(60);
        while calls(&bench) < after {
            assert!(Instant::now() < patience, "no call {after}");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let resumed = bench.run(&["loop", "--json", "-q", "--resume"]).exits(0).json();
        assert_eq!(essence(&resumed), essence(&expected), "killed after call {after}");
        // Each start in flight may have had one call in doubt.
        assert!(calls(&bench) <= paid + 4, "{} calls for {paid}", calls(&bench));
    }
    let told = whole.run(&["loop", "--json", "-q", "--resume"]).exits(0).json();
    assert_eq!(essence(&told), essence(&expected), "a finished run is told again");
    assert_eq!(calls(&whole), paid);
    let changed = whole.read("loop.toml").replace("n = 4", "n = 3");
    whole.write("loop.toml", changed);
    whole.run(&["loop", "--resume"]).exits(2).says(&["changed"]);
}

#[test]
fn b_60_starts_share_the_ledger_and_nothing_else() {
    let more =
        "[budget]\ntokens = 3000\n[exit]\nany = [{ quality_threshold = { threshold = 1.0 } }]\n";
    let bench = bench(AGENT, more);
    let text = bench
        .read("loop.toml")
        .replace("estimate_tokens = false", "max_tokens = 200")
        .replace("min = 8", "min = 5000");
    bench.write("loop.toml", text);
    let result = bench.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!(result["reason"], "token_budget");
    let usage = &result["usage"]["agent"];
    let spent = usage["tokens_in"].as_u64().unwrap() + usage["tokens_out"].as_u64().unwrap();
    assert!(spent > 2000 && spent <= 3000, "{spent} of 3000 by all starts together");
    // A start's own history has its own outputs alone: nothing of another start repeats.
    for start in result["starts"].as_array().unwrap() {
        let log = bench.read(start["log"].as_str().unwrap());
        assert!(!log.contains("repeated_output"));
    }
}

#[test]
fn what_can_not_work_with_several_starts_is_named() {
    let bench = bench(AGENT, "");
    let text = bench.read("loop.toml");
    bench.write("loop.toml", text.replace("n = 4", "n = 1"));
    bench.run(&["loop"]).exits(2).says(&["starts.n"]);
    bench.write("loop.toml", text.replace("n = 4", "n = 2\nagent = [{ argvv = [] }]"));
    bench.run(&["loop"]).exits(2).says(&["starts.agent[0]", "argv"]);
    let workspace =
        "n = 2\nagent = [{ kind = \"workspace\", argv = [\"true\"], directory = \".\" }]";
    bench.write("loop.toml", text.replace("n = 4", workspace));
    bench.run(&["loop"]).exits(2).says(&["one folder"]);
}

/// The questions that wait, as `venire review` lists them.
fn questions(bench: &Workbench) -> Vec<(String, String)> {
    let listed = bench.run(&["review", "--json"]).exits(0).json();
    let text = |own: &Value, key: &str| own[key].as_str().unwrap().to_owned();
    listed.as_array().unwrap().iter().map(|own| (text(own, "run"), text(own, "part_of"))).collect()
}

#[test]
fn starts_that_ask_wait_and_each_is_answered_by_its_own_name() {
    let bench = bench(AGENT, "[human]\nask = [\"every 2\"]\n");
    let text = bench.read("loop.toml").replace("generations = 1", "generations = 3");
    bench.write("loop.toml", text);
    let ran = bench.run(&["loop", "--json"]).exits(4);
    let result = ran.json();
    assert_eq!(
        (&result["outcome"], &result["reason"]),
        (&json!("waiting"), &json!("awaiting_human"))
    );
    let run = result["run"].as_str().unwrap();
    let waiting = questions(&bench);
    assert_eq!(waiting.len(), 4);
    assert!(waiting.iter().all(|(start, of)| of == run && start.starts_with(run)), "{waiting:?}");
    assert_eq!(calls(&bench), 8);
    // Not one question but four: an answer that names none is taken for none.
    bench.run(&["loop", "--resume", run, "--answer", "accept"]).exits(2).says(&["several starts"]);
    bench.run(&["review", run, "--answer", "accept"]).exits(2).says(&["several starts"]);
    assert_eq!(calls(&bench), 8);
    let shown = bench.run(&["review", &waiting[2].0]).exits(4).stdout;
    assert!(shown.contains("start 3, output 2: every?"), "{shown}");
    let listed = bench.run(&["list", "loops", "--json"]).exits(0).json();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["generations"], &listed[0]["starts"]),
        (&json!("awaiting_human"), &json!(8), &json!(4))
    );
    for (start, answer) in [(0, "continue"), (1, "stop"), (2, "accept")] {
        bench.run(&["review", &waiting[start].0, "--answer", answer]).exits(0).says(&[run]);
    }
    let result = bench.run(&["loop", "--resume", run, "--json", "-q"]).exits(0).json();
    assert_eq!(result["reason"], "human_accepted");
    assert_eq!(
        (&result["starts"][2]["picked"], &result["starts"][2]["fresh_score"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(result["starts"][1]["reason"], "human_rejected");
    assert!(questions(&bench).is_empty(), "a run that has ended asks nothing more");
    bench.run(&["loop", "--resume", run, "--answer", "accept"]).exits(2).says(&["asks nothing"]);
}

#[test]
fn a_single_question_of_several_starts_is_answered_with_the_run() {
    let bench = bench(AGENT, "[human]\nask = [\"before_accept\"]\n");
    let text = bench.read("loop.toml").replace("n = 4", "n = 2").replace("min = 8", "min = 4");
    bench.write("loop.toml", text);
    // Start 2 is there first with three words and its number, start 1 a generation later: both
    // are asked about before either counts.
    let result = bench.run(&["loop", "--json", "-q"]).exits(4).json();
    let run = result["run"].as_str().unwrap();
    assert_eq!(questions(&bench).len(), 2);
    let first = format!("{run}-start-1");
    bench.run(&["review", &first, "--answer", "stop"]).exits(0);
    let result =
        bench.run(&["loop", "--resume", run, "--answer", "accept", "--json", "-q"]).exits(0).json();
    assert_eq!(result["reason"], "human_accepted");
    assert_eq!(result["starts"][1]["picked"], true);
}

#[test]
fn many_tasks_with_several_starts_each_are_run_and_resumed() {
    let bench = bench(AGENT, "");
    bench.write("tasks.jsonl", "{\"task\":\"one\"}\n{\"task\":\"two\"}\n");
    let arguments = ["loop", "--tasks", "tasks.jsonl", "--json", "-q"];
    let result = bench.run(&arguments).exits(0).json();
    assert_eq!((&result["tasks"], &result["accepted"]), (&json!(2), &json!(2)));
    assert_eq!(result["generations_to_accept_median"]["value"], 5.0);
    let paid = calls(&bench);
    assert_eq!(bench.run(&arguments).exits(0).json()["runs"], result["runs"]);
    assert_eq!(calls(&bench), paid, "nothing is done twice");
    let log = result["runs"][0]["log"].as_str().unwrap();
    let replayed = bench.run(&["replay", log, "--policy", "loop.toml", "--json"]).exits(0).json();
    assert_eq!((&replayed["tasks"], &replayed["groups"]), (&json!(4), &json!(1)));
    bench.run(&["report", log, "-o", "starts.html"]).exits(0);
    let page = bench.read("starts.html");
    assert!((1..=4).all(|start| page.contains(&format!("-start-{start}"))));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_all_starts_with_the_best_output_and_they_can_go_on() {
    let bench = bench(&AGENT.replace("i=0;", "sleep 0.4; i=0;"), "");
    let child = Command::new(env!("CARGO_BIN_EXE_venire"))
        .current_dir(bench.path(""))
        .args(["loop", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while calls(&bench) < 6 {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["reason"], "cancelled");
    assert!(result["best"]["output"].is_string());
    let resumed = bench.run(&["loop", "--json", "-q", "--resume"]).exits(0).json();
    assert_eq!(resumed["reason"], "quality_reached");
}
