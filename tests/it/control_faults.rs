//! Faults that users met in loops, each with what must happen instead.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::control::{COUNTING, scripted};
use crate::workbench::{Workbench, model_panel};

/// As [`scripted`], of a program whose tokens count.
fn counted(agent: &str, more: &str) -> Workbench {
    let bench = Workbench::new();
    scripted(&bench, agent, more);
    let text = bench.read("loop.toml").replace("estimate_tokens = false\n", "");
    bench.write("loop.toml", text);
    bench
}

fn tokens(result: &Value) -> u64 {
    let usage = &result["usage"]["agent"];
    usage["tokens_in"].as_u64().unwrap_or(0) + usage["tokens_out"].as_u64().unwrap_or(0)
}

#[test]
fn a_prompt_of_a_program_that_does_not_fit_the_token_budget_is_not_sent() {
    let agent = format!("echo call >> calls.txt; {COUNTING}");
    let bench = counted(&agent, "[budget]\ntokens = 100\n");
    let task = "word ".repeat(300);
    let ran = bench.run(&["loop", "--json", "--task", &task]).exits(1);
    let result = ran.json();
    assert_eq!((&result["reason"], &result["generations"]), (&json!("token_budget"), &json!(0)));
    assert!(!bench.path("calls.txt").exists(), "the program was not run");
    assert_eq!(tokens(&result), 0);
    ran.says(&[
        "the limit of 100 tokens would be passed",
        "501 tokens for the agent",
        "budget.tokens",
    ]);
    // A short prompt fits, and with the answer declared the second one does not.
    let bench = counted(&agent, "[budget]\ntokens = 100\n");
    let result = bench.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!(result["reason"], "token_budget");
    assert!(result["generations"].as_u64().unwrap() >= 1);
    let text = bench.read("loop.toml").replace("[agent]\n", "[agent]\nmax_tokens = 99\n");
    bench.write("loop.toml", text);
    let result = bench.run(&["loop", "--json", "-q"]).exits(1).json();
    assert_eq!((&result["reason"], &result["generations"]), (&json!("token_budget"), &json!(0)));
}

#[test]
fn a_budget_that_no_call_fits_says_so_with_its_numbers_and_again_when_it_is_resumed() {
    let bench = counted(COUNTING, "[budget]\ntokens = 2\n");
    let ran = bench.run(&["loop", "--json"]).exits(1);
    let result = ran.json();
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("2 tokens") && warnings.contains("budget.tokens"), "{warnings}");
    ran.says(&["does not fit into the budget"]);
    let again = bench.run(&["loop", "--resume", "--json", "-q"]).exits(1).json();
    assert_eq!((&again["reason"], &again["warnings"]), (&result["reason"], &result["warnings"]));
}

#[test]
fn equal_tasks_are_loops_of_their_own_and_equal_ids_are_refused() {
    let bench = Workbench::new();
    scripted(&bench, &format!("echo call >> calls.txt; {COUNTING}"), "");
    bench.write("tasks.jsonl", "{\"task\":\"one\"}\n{\"task\":\"one\"}\n{\"task\":\"one\"}\n");
    let arguments = ["loop", "--tasks", "tasks.jsonl", "--json", "-q"];
    let first = bench.run(&arguments).exits(0).json();
    assert_eq!((&first["tasks"], &first["accepted"]), (&json!(3), &json!(3)));
    let runs: std::collections::BTreeSet<&str> =
        first["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(runs.len(), 3);
    assert_eq!(bench.read("calls.txt").lines().count(), 15);
    assert_eq!(bench.run(&arguments).exits(0).json()["runs"], first["runs"]);
    assert_eq!(bench.read("calls.txt").lines().count(), 15, "nothing is done twice");
    bench.write("tasks.jsonl", "{\"task\":\"a\",\"id\":\"x\"}\n\n{\"task\":\"b\",\"id\":\"x\"}\n");
    bench.run(&arguments).exits(2).says(&["line 3", "`x`", "line 1"]);
}

#[test]
fn a_run_is_gone_on_with_by_the_file_it_began_with() {
    let bench = Workbench::new();
    scripted(&bench, "cat > /dev/null; echo the same\n", "[human]\nask = [\"every 1\"]\n");
    std::fs::create_dir_all(bench.path("deep")).unwrap();
    let text = bench.read("loop.toml").replace("agent.sh", "../agent.sh");
    bench.write("deep/mine.toml", text);
    std::fs::remove_file(bench.path("loop.toml")).unwrap();
    let ran = bench.run(&["loop", "-c", "deep/mine.toml", "--json"]).exits(4);
    ran.says(&["venire loop --resume"]);
    let resume = ["loop", "--resume", "--answer", "accept", "--json", "-q"];
    assert_eq!(bench.run(&resume).exits(0).json()["reason"], "human_accepted");
    bench.run(&["loop", "--resume", "none"]).exits(2).says(&["no run `none`"]);
}

/// The state of the only row that `list runs` prints.
fn listed(bench: &Workbench, name: &str) -> bool {
    let ran = bench.run(&["list", "runs"]).exits(0);
    ran.stdout.lines().skip(1).any(|line| line.split_whitespace().any(|word| word == name))
}

#[test]
fn a_killed_loop_is_listed_as_interrupted_and_one_that_runs_as_running() {
    let bench = Workbench::new();
    scripted(&bench, "cat > /dev/null; sleep 30\n", "");
    let mut child = Command::new(env!("CARGO_BIN_EXE_venire"))
        .current_dir(bench.path(""))
        .args(["loop", "-q"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    while !bench.path(".venire/loops").exists() || !listed(&bench, "running") {
        assert!(Instant::now() < patience, "it never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The agent that it has left goes down by itself; the hold is the killed process's.
    assert!(listed(&bench, "interrupted"));
    let waiting = Workbench::new();
    scripted(&waiting, COUNTING, "[human]\nask = [\"every 1\"]\n");
    waiting.run(&["loop", "-q"]).exits(4);
    assert!(listed(&waiting, "awaiting_human"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_of_a_panel_is_listed_as_interrupted() {
    let latency = Duration::from_secs(20);
    let options = crate::mock::Options { latency, ..crate::mock::Options::default() };
    let server = crate::mock::Mock::start(options).await.unwrap();
    let bench = Workbench::with_rules();
    bench.write("panel.toml", model_panel(&server.url(), 1, ""));
    let mut child = Command::new(env!("CARGO_BIN_EXE_venire"))
        .current_dir(bench.path(""))
        .args(["run", "cases.csv", "-q"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let state = || {
        let rows = bench.run(&["list", "runs", "--json"]).json();
        rows[0]["state"].as_str().map(str::to_owned)
    };
    let patience = Instant::now() + Duration::from_secs(30);
    while !bench.path(".venire/store.db").exists() || state().as_deref() != Some("running") {
        assert!(Instant::now() < patience, "it never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state().as_deref(), Some("interrupted"));
}

#[test]
fn replay_is_as_strict_as_calibrate_on_the_same_table() {
    let bench = Workbench::new();
    bench.write("policy.toml", "[exit]\nany = [{ quality_threshold = { threshold = 0.9 } }]\n");
    for (table, words) in [
        ("trajectory,generation,score,label\na,1,0.5,0\na,3,0.9,1\n", "left out"),
        ("trajectory,generation,score,label\na,2,0.5,0\n", "begins with generation 2"),
        ("trajectory,generation,judge,notes,label\na,1,0.5,fine,0\n", "--judge"),
        ("trajectory,generation,score,label\na,1,much,0\n", "no score"),
    ] {
        bench.write("t.csv", table);
        let replay = bench.run(&["replay", "t.csv", "--policy", "policy.toml"]).exits(2);
        replay.says(&[words]);
        let calibrate = ["calibrate", "--trajectories", "t.csv", "--positive", "=1", "--no-split"];
        bench.run(&calibrate).exits(2).says(&[words]);
    }
    bench.write(
        "t.csv",
        "trajectory,generation,score,seconds,label,family\nx1,0,0.5,3,2,f\nx2,0,0.95,4,5,f\ny1,0,0.95,4,1,g\n",
    );
    let arguments = ["replay", "t.csv", "--policy", "policy.toml", "--positive", ">=4", "--json"];
    let ran = bench.run(&[&arguments[..], &["--group", "family"]].concat()).exits(0);
    let metrics = ran.json();
    assert_eq!((&metrics["tasks"], &metrics["groups"]), (&json!(3), &json!(2)));
    assert_eq!(metrics["false_acceptance_share"]["least"], json!(1.0 / 3.0));
    ran.says(&["not used", "`seconds`"]);
    let by_name = bench.run(&[&arguments[..], &["--group-regex", "^(.)"]].concat()).exits(0);
    assert_eq!(by_name.json()["groups"], 2);
}
