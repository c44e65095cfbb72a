//! Ctrl-C, SIGTERM, a hangup: the program leaves in order, keeps what was judged, and no
//! child of it is left behind.

#![cfg(target_os = "linux")]

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::mock::{Mock, Options};
use crate::workbench::{Workbench, model_panel};

/// A judge whose check writes down who it is, starts a child of its own and one in a session
/// of its own, and sleeps on every case but the first.
const SLOW: &str = r#"
threshold = 0.5
[[judge]]
name = "slow"
kind = "command"
checks = [{ argv = ["sh", "slow.sh", "{id}"], timeout = "10m", stdin = "none" }]
"#;

const SCRIPT: &str = r#"
[ -e again ] && echo "$1" >> again
[ "$1" = c0 ] || [ -e again ] && exit 0
trap '' INT HUP
sleep 300 &
echo $! >> pids
setsid sleep 300 &
echo $! >> pids
echo $$ >> pids
wait
"#;

fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("panel.toml", SLOW);
    bench.write("slow.sh", SCRIPT);
    let rows: String =
        (0..3).map(|i| format!("{{\"id\":\"c{i}\",\"output\":\"answer {i}\"}}\n")).collect();
    bench.write("cases.jsonl", rows);
    bench
}

fn start(bench: &Workbench, arguments: &[&str]) -> Child {
    // The tests may themselves run where a hangup is ignored, as under `nohup`.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_venire")]);
    command.current_dir(bench.path("")).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn pids(bench: &Workbench) -> Vec<Pid> {
    let text = std::fs::read_to_string(bench.path("pids")).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

/// Alive, and no zombie that waits for its reaper.
fn is_alive(pid: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    test_kill_process(pid).is_ok() && status.is_ok_and(|stat| !stat.contains(") Z "))
}

/// The verdicts of the newest run; nothing while there is no store.
fn kept(bench: &Workbench) -> String {
    bench.run(&["export", "latest", "-o", "-"]).stdout
}

/// Starts a run, waits for `children` processes of its checks, sends signals a moment apart,
/// and gives what the run said; no child is alive then.
fn interrupted(
    bench: &Workbench,
    arguments: &[&str],
    children: usize,
    signals: &[Signal],
) -> Output {
    let child = start(bench, arguments);
    until("the checks run", || pids(bench).len() >= children);
    if arguments[0] == "run" {
        // The case that is judged at once has its verdict on disk.
        until("one case is kept", || kept(bench).contains("\"c0\""));
    }
    for signal in signals {
        kill_process(Pid::from_child(&child), *signal).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(sent.elapsed() < Duration::from_secs(8), "took {:?}", sent.elapsed());
    // What was killed may need a moment to be gone; what was missed sleeps for minutes.
    for pid in pids(bench) {
        until("no child is alive", || !is_alive(pid));
    }
    output
}

#[test]
fn no_child_outlives_a_second_ctrl_c_a_term_or_a_hangup() {
    for signals in [
        &[Signal::INT, Signal::INT][..],
        &[Signal::INT, Signal::INT, Signal::INT],
        &[Signal::TERM],
        &[Signal::TERM, Signal::INT, Signal::INT],
        &[Signal::HUP],
        &[Signal::INT, Signal::TERM],
        &[Signal::QUIT],
    ] {
        let bench = bench();
        let output = interrupted(&bench, &["run", "cases.jsonl", "-q", "--json"], 6, signals);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{signals:?}: {said}");
        assert!(said.contains("venire run --resume 20"), "{signals:?}: {said}");
        let kept = kept(&bench);
        assert!(kept.contains("\"c0\"") && !kept.contains("cancelled"), "{signals:?}: {kept}");
    }
}

#[test]
fn what_was_judged_before_a_term_is_not_judged_again() {
    let bench = bench();
    let output = interrupted(&bench, &["run", "cases.jsonl", "-q", "--json"], 6, &[Signal::TERM]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["cases"], &summary["finished"]), (&1.into(), &false.into()));
    bench.write("again", "");
    let resumed = bench.run(&["run", "--resume", "--json", "-q"]).exits(0).json();
    assert_eq!(resumed["cases"], 3);
    let mut again: Vec<String> = bench.read("again").lines().map(str::to_owned).collect();
    again.sort();
    assert_eq!(again, ["c1", "c2"]);
}

#[test]
fn score_and_gate_leave_no_child_either() {
    for verb in ["score", "gate"] {
        for signals in [&[Signal::INT, Signal::INT][..], &[Signal::TERM], &[Signal::HUP]] {
            let bench = bench();
            bench.write("answer.txt", "x");
            let output = interrupted(&bench, &[verb, "answer.txt"], 3, signals);
            assert_eq!(output.status.code(), Some(130), "{verb} {signals:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_ctrl_c_lets_the_paid_call_of_score_and_gate_end_and_keeps_its_reply() {
    for verb in ["score", "gate"] {
        let latency = Duration::from_millis(1500);
        let server = Mock::start(Options { latency, ..Options::default() }).await.unwrap();
        let bench = Workbench::new();
        bench.write("panel.toml", model_panel(&server.url(), 1, ""));
        bench.write("answer.txt", "x");
        let child = start(&bench, &[verb, "answer.txt", "--json"]);
        until("a call is in flight", || server.log().requests() > 0);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let waited = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
        let output = waited.await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("waiting for the calls in flight"), "{said}");
        assert_eq!(output.status.code(), Some(130), "{said}");
        let ruling: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(ruling["verdicts"][0]["status"], "ok", "{ruling}");
        assert_eq!(bench.run(&["cache", "--json"]).json()["replies"], 1);
    }
}

#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let bench = bench();
    bench.write("slow.sh", "[ \"$1\" = c0 ] && exit 0\necho $$ >> pids\nsleep 1\n");
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_venire");
    let line = format!("trap '' HUP; exec {program} run cases.jsonl -q --json");
    command.current_dir(bench.path("")).args(["-c", &line]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    until("the checks run", || !pids(&bench).is_empty());
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
