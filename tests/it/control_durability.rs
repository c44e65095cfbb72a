//! Loops that are killed, stopped, torn and changed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control::scripted;
use crate::workbench::Workbench;

/// Each call leaves a line, and is slow enough to be killed in.
const COUNTED: &str = "cat > /dev/null; echo call >> calls.txt; sleep 0.03; i=0; while [ $i -lt $VENIRE_GENERATION ]; do printf 'word%s ' $i; i=$((i+1)); done\n";

fn start(bench: &Workbench, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_venire"))
        .current_dir(bench.path(""))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lines in the log of the only run.
fn lines(bench: &Workbench) -> usize {
    let loops = bench.path(".venire/loops");
    let Ok(mut runs) = std::fs::read_dir(loops) else { return 0 };
    let Some(Ok(run)) = runs.next() else { return 0 };
    std::fs::read(run.path().join("events.jsonl"))
        .map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count())
}

fn calls(bench: &Workbench) -> usize {
    std::fs::read_to_string(bench.path("calls.txt")).map_or(0, |text| text.lines().count())
}

/// What must not depend on kills.
fn essence(result: &Value) -> Value {
    let mut result = result.clone();
    for key in ["run", "elapsed_seconds", "resumed", "log", "cost_usd"] {
        result.as_object_mut().unwrap().remove(key);
    }
    result
}

#[test]
fn kill_9_at_every_event_changes_neither_outcome_nor_calls_but_the_one_in_doubt() {
    let bench = Workbench::new();
    scripted(&bench, COUNTED, "");
    let whole = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    let (events, paid) = (lines(&bench), calls(&bench));
    assert_eq!(paid, 5);
    assert!(events > 25, "{events}");
    for boundary in 1..events {
        let bench = Workbench::new();
        scripted(&bench, COUNTED, "");
        let mut child = start(&bench, &["loop", "--json", "-q"]);
        let patience = Instant::now() + Duration::from_secs(60);
        while lines(&bench) < boundary {
            assert!(Instant::now() < patience, "no event {boundary}");
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let resumed = bench.run(&["loop", "--json", "-q", "--resume"]).exits(0).json();
        assert_eq!(essence(&resumed), essence(&whole), "killed at event {boundary}");
        assert!(calls(&bench) <= paid + 1, "{} calls, killed at {boundary}", calls(&bench));
    }
}

#[test]
fn a_torn_line_is_dropped_a_changed_configuration_refused_and_a_finished_run_told_again() {
    let bench = Workbench::new();
    scripted(&bench, COUNTED, "");
    let first = bench.run(&["loop", "--json", "-q"]).exits(0).json();
    let log = std::path::PathBuf::from(first["log"].as_str().unwrap());
    let log = bench.path(log.to_str().unwrap());
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, &text[..text.len() - 20]).unwrap();
    let ran = bench.run(&["loop", "--json", "--resume"]).exits(0);
    assert_eq!(ran.json()["generations"], 5);
    ran.says(&["torn"]);
    assert_eq!(calls(&bench), 5, "nothing is done again");
    scripted(&bench, COUNTED, "[exit]\nmin_generations = 2\n");
    bench.run(&["loop", "--resume"]).exits(2).says(&["changed"]);
    bench.run(&["loop", "--resume", "nothing"]).exits(2).says(&["no run `nothing`"]);
}

#[test]
fn two_processes_can_not_drive_one_run() {
    let bench = Workbench::new();
    scripted(&bench, &COUNTED.replace("0.03", "5"), "");
    let mut child = start(&bench, &["loop", "--json"]);
    while lines(&bench) < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    bench.run(&["loop", "--resume"]).exits(2).says(&["another process"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_as_cancelled_with_the_best_output_and_the_run_can_go_on() {
    let bench = Workbench::new();
    scripted(&bench, &COUNTED.replace("0.03", "0.3"), "");
    let child = start(&bench, &["loop", "--json"]);
    while lines(&bench) < 9 {
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
