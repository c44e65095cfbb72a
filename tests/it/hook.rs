//! `venire hook` as hosts call it: payloads recorded from real clients in, answers and
//! outcomes out, and everything that hosts and their settings get wrong.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::workbench::{Ran, Workbench};

/// A panel of one check, and a git workspace beside it.
struct Site {
    bench: Workbench,
}

const HOSTS: [&str; 6] = ["claude-code", "codex", "gemini-cli", "openhands", "cursor", "generic"];

/// Accepts once `done.txt` is there, and counts how often it was asked.
const CHECK: &str =
    "echo asked >> ../asked.txt; test -f done.txt || { echo 'done.txt is missing'; exit 1; }";

fn panel(check: &str) -> String {
    // A check that names the input abstains where there is none.
    let input = if check.contains("$1") { "{input_file}" } else { "no-input" };
    format!(
        "threshold = 0.5\n[[judge]]\nname = \"done\"\nkind = \"command\"\n[[judge.checks]]\n\
         name = \"file\"\nargv = [\"sh\", \"-c\", {check:?}, \"sh\", \"{input}\", \"{{output_file}}\"]\n"
    )
}

impl Site {
    fn new(check: &str) -> Self {
        let site = Self::without_git(check);
        site.git(&["init", "-q"]);
        site.git(&["add", "."]);
        site.git(&["commit", "-qm", "start"]);
        site
    }

    fn without_git(check: &str) -> Self {
        let bench = Workbench::new();
        bench.write("panel.toml", panel(check));
        bench.write("work/README.md", "A small project.\n");
        bench.write("asked.txt", "");
        Self { bench }
    }

    fn work(&self) -> PathBuf {
        self.bench.path("work").canonicalize().unwrap()
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(arguments)
            .current_dir(self.work())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn command(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = self.bench.command(arguments);
        command.current_dir(self.work()).env("HOME", self.bench.path("home"));
        command
    }

    /// One event of a host; `flags` come after the host and the panel.
    fn event(&self, host: &str, payload: &str, flags: &[&str]) -> Ran {
        let panel = self.bench.path("panel.toml");
        let mut words = vec!["hook", host, "-c", panel.to_str().unwrap()];
        words.extend(flags);
        Ran::of(self.command(&words).write_stdin(payload).output().unwrap())
    }

    /// A recorded payload of a host, here.
    fn payload(&self, host: &str, event: &str) -> Value {
        let file = format!("tests/fixtures/hooks/{host}-{event}.json");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
        let text = text.unwrap().replace("WORKSPACE", self.work().to_str().unwrap());
        let home = self.bench.path("home");
        serde_json::from_str(&text.replace("HOME", home.to_str().unwrap())).unwrap()
    }

    fn stop(&self, host: &str, flags: &[&str]) -> Ran {
        self.event(host, &self.payload(host, "stop").to_string(), flags)
    }

    fn prompt(&self, host: &str) {
        let ran = self.event(host, &self.payload(host, "prompt").to_string(), &[]).exits(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""), "{host}");
    }

    /// What was really found: the exit code of `hook status`, and the outcome.
    fn status(&self) -> (i32, Value) {
        let ran = Ran::of(self.command(&["hook", "status", "--json"]).output().unwrap());
        let outcome = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
        (ran.code, outcome)
    }

    fn ledger(&self) -> Value {
        let folder = self.work().join(".venire/hooks/sessions");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
        let text = std::fs::read_to_string(files.next().unwrap()).unwrap();
        assert!(files.next().is_none(), "one session, one ledger");
        serde_json::from_str(&text).unwrap()
    }

    fn asked(&self) -> usize {
        self.bench.read("asked.txt").lines().count()
    }

    fn spawn(&self, host: &str, flags: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
        command.args(["hook", host, "-c"]).arg(self.bench.path("panel.toml")).args(flags);
        command.current_dir(self.work()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// Whether an answer makes a host's agent go on, and with what.
fn blocked(host: &str, ran: &Ran) -> Option<String> {
    assert!(matches!(ran.code, 0 | 2), "{host}: exit code {}", ran.code);
    if host == "generic" {
        return (ran.code == 2).then(|| ran.stderr.clone());
    }
    assert_eq!(ran.code, 0, "{host}");
    if ran.stdout.is_empty() {
        return None;
    }
    let said = ran.json();
    let word = match host {
        "claude-code" | "codex" => "block",
        "gemini-cli" | "openhands" => "deny",
        _ => return said["followup_message"].as_str().map(str::to_owned),
    };
    (said["decision"] == word).then(|| said["reason"].as_str().unwrap().to_owned())
}

#[test]
fn recorded_payloads_block_with_the_feedback_and_pass_in_silence() {
    for host in HOSTS {
        let site = Site::new(&format!("grep -q 'Write done.txt' \"$1\" || exit 127; {CHECK}"));
        site.prompt(host);
        let reason = blocked(host, &site.stop(host, &[])).unwrap();
        assert!(reason.contains("done.txt is missing"), "{host}: {reason}");
        assert_eq!(site.status().0, 1, "{host}");
        site.bench.write("work/done.txt", "yes");
        let ran = site.stop(host, &[]).exits(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""), "{host}");
        let (code, outcome) = site.status();
        assert_eq!((code, &outcome["accepted"]), (0, &json!(true)), "{host}: {outcome}");
        assert_eq!(outcome["output"], "changes", "{host}");
        assert_eq!(site.ledger()["task"], "Write done.txt", "{host}");
    }
}

/// Stop events until the agent may stop, and no more than 30.
fn blocks(site: &Site, host: &str, flags: &[&str], between: impl Fn(usize)) -> usize {
    for round in 0..30 {
        if blocked(host, &site.stop(host, flags)).is_none() {
            return round;
        }
        between(round);
    }
    panic!("{host} was made to go on without an end");
}

#[test]
fn an_agent_that_never_gets_there_is_let_go_and_nothing_says_it_was_accepted() {
    for host in HOSTS {
        let site = Site::new(CHECK);
        site.prompt(host);
        assert_eq!(blocks(&site, host, &[], |_| {}), 2, "{host}");
        let (code, outcome) = site.status();
        assert_eq!((code, &outcome["cause"]), (1, &json!("no_progress")), "{host}");
        assert_eq!(site.asked(), 1, "{host}: the same is not judged twice");
        site.prompt(host);
        let grow = |round: usize| {
            site.bench.write(&format!("work/{round}.txt"), "more");
        };
        assert_eq!(blocks(&site, host, &[], grow), 6, "{host}");
        let (code, outcome) = site.status();
        assert_eq!((code, &outcome["cause"]), (1, &json!("blocks_spent")), "{host}");
        assert_eq!(outcome["session_blocks"], 8, "{host}");
        let after = site.stop(host, &[]);
        assert_eq!(blocked(host, &after), None, "{host}: a turn that was ended stays so");
    }
}

#[test]
fn limits_of_the_session_and_of_time_hold_too() {
    let site = Site::new(CHECK);
    let host = "claude-code";
    let ask = || site.stop(host, &["--max-session-blocks", "1", "--on-limit", "allow"]);
    site.prompt(host);
    assert!(blocked(host, &ask()).is_some());
    site.prompt(host);
    let ran = ask();
    assert_eq!(blocked(host, &ran), None);
    assert!(ran.json()["systemMessage"].as_str().unwrap().contains("NOT ACCEPTED"));
    assert_eq!(site.status().1["cause"], "session_blocks_spent");
    let site = Site::new(CHECK);
    assert_eq!(blocks(&site, host, &["--time-limit", "0"], |_| {}), 1);
    assert_eq!(site.status().1["cause"], "time_spent");
}

#[test]
fn what_a_host_says_of_stop_hook_active_changes_nothing() {
    let wrong = [json!(true), json!(false), json!(null), json!("maybe")];
    let hosts = ["codex", "claude-code", "gemini-cli", "codex"];
    for (said, host) in wrong.into_iter().zip(hosts) {
        let site = Site::new(CHECK);
        site.prompt(host);
        let mut payload = site.payload(host, "stop");
        payload["stop_hook_active"] = said.clone();
        let stop = || blocked(host, &site.event(host, &payload.to_string(), &[]));
        let forced = (0..10).take_while(|_| stop().is_some()).count();
        assert_eq!(forced, 2, "{host}: {said}");
        assert_eq!(site.status().1["stop_hook_active"].as_bool(), said.as_bool(), "{host}");
    }
}

#[test]
fn fields_of_a_later_version_are_no_fault_of_any_host() {
    for host in HOSTS {
        let site = Site::new(CHECK);
        site.bench.write("work/done.txt", "yes");
        let mut payload = site.payload(host, "stop");
        payload["of_a_later_version"] = json!({ "deep": [1, null, "二"] });
        let ran = site.event(host, &payload.to_string(), &[]).exits(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""), "{host}");
        assert_eq!(site.status().1["accepted"], true, "{host}");
    }
}

#[test]
fn a_payload_beyond_all_measure_is_an_error_on_record() {
    let site = Site::new(CHECK);
    let mut payload = site.payload("codex", "stop");
    payload["last_assistant_message"] = json!("x".repeat(64 << 20));
    let ran = site.event("codex", &payload.to_string(), &[]).exits(0);
    assert!(
        ran.json()["systemMessage"].as_str().unwrap().contains("longer than"),
        "{}",
        ran.stdout
    );
    assert_eq!(site.status().1["cause"], "error");
}

#[test]
fn unknown_fields_and_a_missing_transcript_are_no_fault() {
    let site = Site::new(CHECK);
    site.bench.write("work/done.txt", "yes");
    let mut payload = site.payload("claude-code", "stop");
    payload["of_a_later_version"] = json!({ "deep": [1, 2] });
    let ran = site.event("claude-code", &payload.to_string(), &[]).exits(0);
    assert_eq!(ran.stdout, "");
    let (_, outcome) = site.status();
    assert_eq!(outcome["accepted"], true);
    let warning = outcome["warnings"][0].as_str().unwrap();
    assert!(warning.contains("transcript") && warning.contains("can't be read"), "{warning}");
}

#[test]
fn the_task_is_found_in_the_transcript_where_no_prompt_was_hooked() {
    let site = Site::new("grep -q '把灯打开' \"$1\"");
    let payload = site.payload("claude-code", "stop");
    let path = PathBuf::from(payload["transcript_path"].as_str().unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{\"type\":\"user\",\"message\":{\"content\":\"把灯打开\"}}\n").unwrap();
    assert_eq!(site.event("claude-code", &payload.to_string(), &[]).exits(0).stdout, "");
    // A task of one's own stands above it.
    let ran = site.event("claude-code", &payload.to_string(), &["--task", "another"]);
    assert!(blocked("claude-code", &ran).is_some());
}

#[test]
fn a_workspace_without_git_is_judged_by_the_answer_each_time() {
    let site = Site::without_git("echo asked >> ../asked.txt; grep -q done \"$2\"");
    for _ in 0..2 {
        assert_eq!(site.stop("codex", &[]).exits(0).stdout, "");
    }
    assert_eq!(site.asked(), 2, "nothing says that nothing changed");
    let (code, outcome) = site.status();
    assert_eq!((code, &outcome["output"]), (0, &json!("answer")));
    assert!(outcome.get("workspace").is_none());
    let ran = site.stop("codex", &["--judged", "changes"]).exits(0);
    assert!(ran.json()["systemMessage"].as_str().unwrap().contains("not under git"));
    assert_eq!(site.status().0, 3);
}

#[test]
fn an_unchanged_workspace_is_not_judged_twice_and_untracked_files_are_a_change() {
    let site = Site::new(CHECK);
    site.bench.write("work/.gitignore", "*.log\n");
    site.bench.write("work/done.txt", "yes");
    let pass = || assert_eq!(site.stop("codex", &[]).exits(0).stdout, "");
    pass();
    pass();
    site.bench.write("work/ignored.log", "noise");
    pass();
    assert_eq!(site.asked(), 1);
    assert_eq!(site.status().1["cached"], true);
    site.bench.write("work/untracked.txt", "new");
    pass();
    assert_eq!(site.asked(), 2);
    site.bench.write("panel.toml", panel(&format!("{CHECK} # another")));
    pass();
    assert_eq!(site.asked(), 3, "another panel is asked");
    assert_eq!(site.status().1["panel_changed"], true);
    assert_eq!(site.stop("codex", &["--no-cache"]).exits(0).stdout, "");
    assert_eq!(site.asked(), 4);
    // A file that git was told to take for unchanged is changed all the same.
    site.git(&["update-index", "--assume-unchanged", "README.md"]);
    site.bench.write("work/README.md", "Another project.\n");
    pass();
    assert_eq!(site.asked(), 5);
}

#[test]
fn work_that_the_agent_has_committed_is_still_judged() {
    let site = Site::new("grep -q '^+yes' \"$2\"");
    site.prompt("claude-code");
    site.bench.write("work/done.txt", "yes\n");
    site.git(&["add", "done.txt"]);
    site.git(&["commit", "-qm", "done"]);
    assert_eq!(site.stop("claude-code", &[]).exits(0).stdout, "");
    assert_eq!(site.status().1["output"], "changes");
}

#[test]
fn two_hooks_at_once_judge_once_and_count_once() {
    use std::io::Write as _;
    let site = Site::new(&format!("sleep 1; {CHECK}"));
    let payload = site.payload("codex", "stop").to_string();
    let mut children: Vec<Child> = (0..2).map(|_| site.spawn("codex", &[])).collect();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    }
    let answers: Vec<String> = children
        .into_iter()
        .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    assert!(answers[0].contains("done.txt is missing"), "{answers:?}");
    assert_eq!(answers[0], answers[1]);
    let ledger = site.ledger();
    assert_eq!((&ledger["blocks"], site.asked()), (&json!(1), 1), "{ledger}");
}

#[test]
fn a_panel_that_can_not_decide_follows_the_policy_and_is_never_an_acceptance() {
    for (policy, host) in [
        ("accept", "claude-code"),
        ("reject", "claude-code"),
        ("fail", "gemini-cli"),
        ("reject", "generic"),
        ("fail", "openhands"),
    ] {
        let site = Site::new("exit 127");
        let flags = ["--on-undecided", policy];
        site.prompt(host);
        let ran = site.stop(host, &flags);
        match policy {
            "reject" => {
                assert!(blocked(host, &ran).is_some(), "{host}");
                assert!(blocks(&site, host, &flags, |_| {}) <= 5, "{host}");
            }
            "fail" if host == "openhands" => {
                assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
                assert!(ran.stderr.contains("Nothing was accepted"), "{}", ran.stderr);
            }
            "fail" => assert_eq!(ran.json()["continue"], false),
            _ => assert!(ran.json()["systemMessage"].as_str().unwrap().contains("NOT JUDGED")),
        }
        let (code, outcome) = site.status();
        assert_eq!((code, &outcome["accepted"]), (3, &json!(false)), "{policy} {host}: {outcome}");
        assert_eq!(outcome["on_undecided"], policy);
    }
}

#[test]
fn a_broken_panel_payload_or_env_file_is_an_error_on_record_and_neither_1_nor_2() {
    let site = Site::new(CHECK);
    let good = site.payload("claude-code", "stop").to_string();
    let cases: [(&str, &str, &[&str]); 5] = [
        ("payload", "{ not JSON", &[]),
        ("payload", "", &[]),
        ("threshold", &good, &["--threshold", "0.5", "--profile", "none.json"]),
        ("none.env", &good, &["--env-file", "none.env"]),
        ("none.txt", &good, &["--task", "@none.txt"]),
    ];
    for (i, (_, payload, flags)) in cases.into_iter().enumerate() {
        let ran = site.event("claude-code", payload, flags).exits(0);
        assert!(ran.json()["systemMessage"].as_str().unwrap().contains("NOT JUDGED"), "{i}");
        let (code, outcome) = site.status();
        assert_eq!((code, &outcome["cause"]), (3, &json!("error")), "{i}: {outcome}");
    }
    std::fs::remove_file(site.bench.path("panel.toml")).unwrap();
    let ran = site.event("claude-code", &good, &["--on-undecided", "reject"]);
    assert!(blocked("claude-code", &ran).unwrap().contains("no panel file"), "{}", ran.stdout);
    // A host takes 2 for "go on", and nobody would count.
    site.event("claude-code", &good, &["--host-timeout", "1000000h"]).exits(3).says(&["1 day"]);
    let ran = site.event("claude-code", &good, &["--no-such-flag"]).exits(3);
    assert!(ran.stderr.contains("--no-such-flag"));
    site.bench.run(&["hook", "status", "--no-such-flag"]).exits(2);
}

#[test]
fn a_folder_that_is_not_there_is_on_record_where_the_hook_runs() {
    let site = Site::new(CHECK);
    let mut payload = site.payload("codex", "stop");
    payload["cwd"] = json!("/no/such/folder");
    let ran = site.event("codex", &payload.to_string(), &[]).exits(0);
    assert!(ran.json()["systemMessage"].as_str().unwrap().contains("/no/such/folder"));
    assert_eq!(site.status().1["cause"], "error");
}

#[test]
fn without_a_ledger_nothing_is_forced() {
    let site = Site::new(CHECK);
    site.bench.write("state", "a file where the folder should be");
    let state = site.bench.path("state");
    let outcome = site.bench.path("outcome.json");
    let paths = [state.to_str().unwrap(), outcome.to_str().unwrap()];
    let flags = ["--state", paths[0], "--on-undecided", "reject", "--outcome", paths[1]];
    let ran = site.stop("generic", &flags).exits(0);
    assert!(ran.stderr.contains("NOT JUDGED"), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&site.bench.read("outcome.json")).unwrap();
    assert_eq!((&found["cause"], &found["accepted"]), (&json!("no_ledger"), &json!(false)));
    // Whatever else lies there is not written over.
    site.bench.write("outcome.json", "{\"mine\": 1}");
    assert_eq!(site.stop("generic", &["--outcome", paths[1]]).code, 0);
    assert_eq!(site.bench.read("outcome.json"), "{\"mine\": 1}");
}

#[test]
fn the_answer_comes_before_the_host_loses_patience() {
    let site = Site::new("sleep 60");
    let started = Instant::now();
    let ran = site.stop("claude-code", &["--host-timeout", "6s"]).exits(0);
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(ran.json()["systemMessage"].as_str().unwrap().contains("NOT JUDGED"));
    assert_eq!(site.status().0, 3);
    // A host that never closes the hook's input does not hold it up either.
    let started = Instant::now();
    let mut child = site.spawn("claude-code", &["--host-timeout", "6s"]);
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(String::from_utf8_lossy(&output.stdout).contains("stdin did not end in time"));
}

#[test]
fn a_hook_that_was_killed_leaves_behind_that_nothing_was_found() {
    use std::io::Write as _;
    let site =
        Site::new(&format!("echo asked >> ../asked.txt; test -f go.txt || sleep 60; {CHECK}"));
    let payload = site.payload("codex", "stop").to_string();
    let mut child = site.spawn("codex", &[]);
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    let started = Instant::now();
    while site.asked() == 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "it never judged");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, outcome) = site.status();
    assert_eq!((code, &outcome["cause"]), (3, &json!("judging")), "{outcome}");
    site.bench.write("work/go.txt", "");
    site.bench.write("work/done.txt", "yes");
    assert_eq!(site.stop("codex", &[]).exits(0).stdout, "");
    let (code, outcome) = site.status();
    assert_eq!((code, site.ledger()["lost"].as_u64()), (0, Some(1)));
    assert!(outcome["warnings"].to_string().contains("killed"), "{outcome}");
}

#[test]
fn work_that_still_runs_in_the_background_is_let_be_and_not_accepted() {
    let site = Site::new(CHECK);
    let mut payload = site.payload("claude-code", "stop");
    payload["background_tasks"] = json!([{ "id": "b1", "type": "shell" }]);
    let ran = site.event("claude-code", &payload.to_string(), &[]).exits(0);
    assert_eq!(ran.stdout, "");
    let (code, outcome) = site.status();
    assert_eq!((code, &outcome["cause"], site.asked()), (3, &json!("unfinished"), 0));
}

#[test]
fn subagents_are_judged_with_counters_of_their_own() {
    let site = Site::new(CHECK);
    site.prompt("claude-code");
    let mut payload = site.payload("claude-code", "stop");
    assert!(
        blocked("claude-code", &site.event("claude-code", &payload.to_string(), &[])).is_some()
    );
    payload["hook_event_name"] = json!("SubagentStop");
    payload["agent_id"] = json!("a1");
    payload["agent_type"] = json!("explorer");
    let ran = site.event("claude-code", &payload.to_string(), &[]);
    assert!(blocked("claude-code", &ran).is_some());
    let ledger = site.ledger();
    let counts = (&ledger["turn"]["blocks"], &ledger["agents"]["a1"]["blocks"], &ledger["blocks"]);
    assert_eq!(counts, (&json!(1), &json!(1), &json!(2)));
}

#[test]
fn a_written_file_is_judged_by_rules_alone_and_in_silence_unless_they_reject() {
    let site = Site::new(CHECK);
    // Nobody listens there: a model that was asked would be an outage, and slow.
    let model = crate::workbench::model_panel("http://127.0.0.1:9", 1, "");
    let secrets =
        "[[judge]]\nname = \"no-todo\"\nkind = \"rule\"\nrule = \"contains\"\nnone = [\"TODO\"]\n";
    site.bench.write("panel.toml", format!("{model}{secrets}"));
    let payload = |file: &Path| {
        json!({
            "session_id": "s", "cwd": site.work(), "hook_event_name": "PostToolUse",
            "tool_name": "Write", "tool_input": { "file_path": file, "content": "…" },
            "tool_response": { "type": "create" }, "tool_use_id": "t", "duration_ms": 3,
        })
        .to_string()
    };
    let good = site.bench.write("work/good.txt", "all there");
    let bad = site.bench.write("work/bad.txt", "TODO: the rest");
    let outside = site.bench.write("outside.txt", "TODO: not yours");
    let started = Instant::now();
    for silent in [&good, &outside, &site.work().join("none.txt")] {
        let ran = site.event("claude-code", &payload(silent), &[]).exits(0);
        assert_eq!(ran.stdout, "", "{}", silent.display());
    }
    let reason = blocked("claude-code", &site.event("claude-code", &payload(&bad), &[])).unwrap();
    assert!(reason.contains("TODO"), "{reason}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert!(!site.work().join(".venire/hooks/sessions").exists(), "no turn was ended");
}

#[test]
fn events_that_are_not_for_us_are_not_answered() {
    let site = Site::new(CHECK);
    for (host, field) in [("claude-code", "hook_event_name"), ("openhands", "event_type")] {
        let ran = site.event(host, &json!({ field: "SessionEnd" }).to_string(), &[]).exits(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
    assert_eq!(site.asked(), 0);
    assert_eq!(site.status().0, 3, "nothing was judged");
}

#[test]
fn a_cost_limit_of_the_session_leaves_nothing_judged() {
    let site = Site::new(CHECK);
    let price = "price = { input = 1.0, output = 1.0 }";
    let model = crate::workbench::model_panel("http://127.0.0.1:9", 1, price);
    site.bench.write("panel.toml", model);
    let mut command = site.command(&["hook", "codex", "-c", "../panel.toml", "--cost-limit", "0"]);
    command.env("OPENAI_API_KEY", "none");
    let ran =
        Ran::of(command.write_stdin(site.payload("codex", "stop").to_string()).output().unwrap());
    assert!(ran.exits(0).stdout.contains("NOT JUDGED"));
    let (code, outcome) = site.status();
    assert_eq!((code, &outcome["cause"]), (3, &json!("undecided")), "{outcome}");
}

#[test]
fn install_shows_the_difference_writes_only_when_told_and_can_be_taken_back() {
    let site = Site::new(CHECK);
    let before = "{\n  \"model\": \"opus\",\n  \"permissions\": {\"allow\": [\"Bash\"]}\n}\n";
    site.bench.write("work/.claude/settings.json", before);
    let install = |flags: &[&str]| {
        let mut words = vec!["hook", "install", "claude-code", "-c", "../panel.toml"];
        words.extend(flags);
        Ran::of(site.command(&words).output().unwrap())
    };
    let ran = install(&["--dry-run"]).exits(0);
    assert!(ran.stdout.contains("+    \"Stop\": ["), "{}", ran.stdout);
    install(&[]).exits(2).says(&["--yes"]);
    assert_eq!(site.bench.read("work/.claude/settings.json"), before);
    install(&["--yes", "--max-blocks", "3", "--task", "it's a task"]).exits(0);
    let settings = site.bench.read("work/.claude/settings.json");
    let value: Value = serde_json::from_str(&settings).unwrap();
    let handler = &value["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!((&value["model"], &handler["timeout"]), (&json!("opus"), &json!(600)));
    assert!(
        install(&["--yes", "--max-blocks", "3", "--task", "it's a task"])
            .stdout
            .contains("as it should be")
    );
    // What was written is a command that a shell runs.
    let mut shell = Command::new("sh")
        .args(["-c", handler["command"].as_str().unwrap()])
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let payload = site.payload("claude-code", "stop").to_string();
    std::io::Write::write_all(&mut shell.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let output = shell.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("done.txt is missing"));
    assert_eq!(site.status().0, 1);
    install(&["--yes", "--remove"]).exits(0);
    let value: Value =
        serde_json::from_str(&site.bench.read("work/.claude/settings.json")).unwrap();
    assert_eq!(value, serde_json::from_str::<Value>(before).unwrap());
}

#[test]
fn every_flag_of_a_hook_can_be_installed_and_reaches_it() {
    let site = Site::new(CHECK);
    let words = [
        "hook",
        "install",
        "claude-code",
        "-c",
        "../panel.toml",
        "--yes",
        "--max-blocks",
        "9",
        "--max-unchanged",
        "1",
        "--max-session-blocks",
        "30",
        "--time-limit",
        "90s",
        "--outcome",
        "../outcome.json",
        "--session",
        "a b",
        "--no-cache",
        "--host-timeout",
        "20s",
        "--on-limit",
        "allow",
        "--judged",
        "changes",
        "--env-file",
        "../keys.env",
        "--store",
        "../store.db",
    ];
    site.bench.write("keys.env", "A_B=1\n");
    let ran = Ran::of(site.command(&words).output().unwrap()).exits(0);
    assert!(ran.stderr.contains("goes on without its hook after 8 in a row"), "{}", ran.stderr);
    let settings: Value =
        serde_json::from_str(&site.bench.read("work/.claude/settings.json")).unwrap();
    let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    for flag in words.iter().filter(|word| word.starts_with("--") && **word != "--yes") {
        assert!(command.contains(flag), "no {flag} in {command}");
    }
    assert!(command.contains("--time-limit 90000ms") && command.contains("'a b'"), "{command}");
    let payload = site.payload("claude-code", "stop").to_string();
    let stop = || {
        let mut shell = assert_cmd::Command::new("sh");
        shell.args(["-c", command]).current_dir(site.work()).env("HOME", site.bench.path("home"));
        Ran::of(shell.write_stdin(payload.as_str()).output().unwrap()).exits(0)
    };
    assert!(blocked("claude-code", &stop()).is_some());
    // One round without a change is allowed, and no more; the agent may then stop.
    let noted = stop();
    assert!(blocked("claude-code", &noted).is_none() && noted.stdout.contains("systemMessage"));
    let outcome: Value = serde_json::from_str(&site.bench.read("outcome.json")).unwrap();
    assert_eq!(outcome["cause"], "no_progress", "{outcome}");
}

#[test]
fn install_refuses_what_could_not_work() {
    let site = Site::new(CHECK);
    let install = |words: &[&str]| {
        let mut all = vec!["hook", "install"];
        all.extend(words);
        Ran::of(site.command(&all).output().unwrap()).exits(2)
    };
    install(&["claude-code", "-c", "none.toml", "--yes"]).says(&["no panel file `none.toml`"]);
    install(&["generic", "-c", "../panel.toml"]).says(&["has no settings file"]);
    install(&["cursor", "-c", "../panel.toml", "--on-undecided", "fail"]).says(&["can't"]);
    install(&["codex", "-c", "../panel.toml", "--tools"]).says(&["--tools"]);
    install(&["codex", "-c", "../panel.toml", "--host-timeout", "3s"]).says(&["10 seconds"]);
    site.bench.write("work/.gemini/settings.json", "{ // mine\n}");
    install(&["gemini-cli", "-c", "../panel.toml", "--yes"])
        .says(&["add this by hand", "AfterAgent"]);
    assert_eq!(site.bench.read("work/.gemini/settings.json"), "{ // mine\n}");
}

/// A gate on a file.
fn gate(bench: &Workbench, flags: &[&str]) -> Ran {
    let mut words = vec!["gate", "--outcome", "outcome.json"];
    words.extend(flags);
    bench.run(&words)
}

fn outcome(bench: &Workbench) -> Value {
    serde_json::from_str(&bench.read("outcome.json")).unwrap()
}

#[test]
fn a_gate_without_a_decision_does_what_it_was_told_and_says_so_on_stdout() {
    let bench = Workbench::new();
    bench.write("panel.toml", panel("exit 127"));
    bench.write("a.txt", "x");
    for (policy, code, said) in [
        ("accept", 0, "NOT JUDGED, let pass"),
        ("reject", 1, "NOT JUDGED, rejected"),
        ("fail", 3, "undecided"),
    ] {
        let ran = gate(&bench, &["--on-undecided", policy, "a.txt"]).exits(code);
        assert!(ran.stdout.starts_with(said), "{}", ran.stdout);
        let found = outcome(&bench);
        assert_eq!((&found["accepted"], &found["exit_code"]), (&json!(false), &json!(code)));
        assert_eq!(
            (&found["cause"], &found["on_undecided"]),
            (&json!("undecided"), &json!(policy))
        );
    }
}

#[test]
fn the_outcome_of_a_gate_is_that_of_its_last_call_however_it_ended() {
    let bench = Workbench::with_rules();
    bench.write("a.txt", "one two");
    gate(&bench, &["a.txt"]).exits(0);
    assert_eq!(
        (&outcome(&bench)["accepted"], &outcome(&bench)["decision"]),
        (&json!(true), &json!("accept"))
    );
    bench.write("b.txt", "one two three four five six");
    gate(&bench, &["b.txt"]).exits(1);
    assert_eq!(
        (&outcome(&bench)["accepted"], &outcome(&bench)["exit_code"]),
        (&json!(false), &json!(1))
    );
    gate(&bench, &["a.txt"]).exits(0);
    gate(&bench, &["a.txt", "-c", "none.toml"]).exits(2);
    let found = outcome(&bench);
    assert_eq!((&found["accepted"], &found["cause"]), (&json!(false), &json!("error")));
    assert!(found["detail"].as_str().unwrap().contains("none.toml"), "{found}");
    let ran = bench.run(&["gate", "a.txt", "--outcome", "panel.toml"]).exits(2);
    assert!(ran.stderr.contains("is no outcome"), "{}", ran.stderr);
}

#[test]
fn a_gate_on_changes_judges_the_branch_untracked_files_included() {
    let site = Site::new("grep -q '^+yes' \"$2\" && test -f done.txt");
    let run = |flags: &[&str]| {
        let mut words = vec!["gate", "-c", "../panel.toml", "--changes"];
        words.extend(flags);
        Ran::of(site.command(&words).output().unwrap())
    };
    run(&["HEAD"]).exits(1);
    site.bench.write("work/done.txt", "yes\n");
    run(&["HEAD"]).exits(0);
    site.git(&["checkout", "-qb", "feature"]);
    site.git(&["add", "."]);
    site.git(&["commit", "-qm", "done"]);
    run(&["HEAD"]).exits(1);
    run(&["HEAD~1"]).exits(0);
    run(&["no-such-branch"]).exits(2).says(&["git knows no revision `no-such-branch`"]);
    run(&["--upload-pack=x"]).exits(2);
    let plain = Site::without_git(CHECK);
    let words = ["gate", "-c", "../panel.toml", "--changes", "HEAD"];
    Ran::of(plain.command(&words).output().unwrap()).exits(2).says(&["not under git"]);
}
