use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;

const HOSTS: [Host; 5] =
    [Host::ClaudeCode, Host::Codex, Host::GeminiCli, Host::OpenHands, Host::Cursor];

fn turn(blocks: u32, unchanged: u32, first_block_ms: Option<u64>) -> Turn {
    Turn { blocks, unchanged, first_block_ms, ..Turn::default() }
}

#[test]
fn a_rejection_blocks_until_each_limit_and_then_never_again() {
    let limits = Limits { turn_ms: 1000, ..Limits::default() };
    let step = |turn: &Turn, session, now| limits.step(Finding::Rejected, turn, session, now);
    assert_eq!(step(&turn(0, 0, None), 0, 5), Step::Block(Cause::Rejected));
    assert_eq!(step(&turn(5, 1, Some(5)), 39, 1004), Step::Block(Cause::Rejected));
    assert_eq!(step(&turn(6, 0, Some(5)), 6, 6), Step::End(Cause::BlocksSpent));
    assert_eq!(step(&turn(0, 0, None), 40, 6), Step::End(Cause::SessionBlocksSpent));
    assert_eq!(step(&turn(1, 0, Some(5)), 1, 1005), Step::End(Cause::TimeSpent));
    assert_eq!(step(&turn(2, 2, Some(5)), 2, 6), Step::End(Cause::NoProgress));
    let quiet = Limits { on_limit: OnLimit::Allow, ..limits };
    let spent = quiet.step(Finding::Rejected, &turn(6, 0, None), 6, 6);
    assert_eq!(spent, Step::Note(Cause::BlocksSpent));
    // A clock that was set back ends nothing early and nothing late.
    assert_eq!(step(&turn(1, 0, Some(5000)), 1, 5), Step::Block(Cause::Rejected));
}

#[test]
fn without_a_decision_the_policy_answers_and_a_rejecting_one_is_bounded_too() {
    let step = |on_undecided, turn: &Turn| {
        Limits { on_undecided, ..Limits::default() }.step(Finding::Undecided, turn, 0, 0)
    };
    let fresh = Turn::default();
    assert_eq!(step(OnUndecided::Accept, &fresh), Step::Note(Cause::Undecided));
    assert_eq!(step(OnUndecided::Reject, &fresh), Step::Block(Cause::Undecided));
    assert_eq!(step(OnUndecided::Fail, &fresh), Step::End(Cause::Undecided));
    assert_eq!(step(OnUndecided::Reject, &turn(6, 0, None)), Step::End(Cause::BlocksSpent));
    let limits = Limits { blocks: 0, ..Limits::default() };
    assert_eq!(limits.step(Finding::Accepted, &fresh, 99, 0), Step::Allow(Cause::Accepted));
    assert_eq!(limits.step(Finding::Unfinished, &fresh, 99, 0), Step::Allow(Cause::Unfinished));
}

#[test]
fn no_answer_ends_in_exit_code_1_and_every_block_says_why() {
    for host in Host::ALL {
        for kind in [EventKind::Stop, EventKind::SubagentStop, EventKind::ToolUsed] {
            assert_eq!(Answer::Allow.encode(host, kind), Reply::default(), "{host:?}");
            for text in ["", "why\n好"] {
                let texts = [
                    Answer::Note(text.into()),
                    Answer::Block(text.into()),
                    Answer::End(text.into()),
                ];
                for answer in texts {
                    let reply = answer.encode(host, kind);
                    let blocks = matches!(answer, Answer::Block(_));
                    let code = if blocks && host == Host::Generic { 2 } else { 0 };
                    assert_eq!(reply.exit_code, code, "{host:?}");
                    assert!(reply.stdout.is_empty() != reply.stderr.is_empty(), "{reply:?}");
                    if !reply.stdout.is_empty() {
                        serde_json::from_str::<Value>(&reply.stdout).unwrap();
                    }
                }
            }
        }
        let said = Answer::Block("why".into()).encode(host, EventKind::Prompt);
        assert_eq!(said, Reply::default(), "a prompt is never held back");
    }
}

#[test]
fn each_host_is_told_in_the_one_form_that_works_there() {
    let said = |answer: Answer, host| -> Value {
        serde_json::from_str(&answer.encode(host, EventKind::Stop).stdout).unwrap()
    };
    let block = || Answer::Block("why".into());
    let blocked = json!({ "decision": "block", "reason": "why" });
    assert_eq!(said(block(), Host::ClaudeCode), blocked);
    assert_eq!(said(block(), Host::Codex), blocked);
    let denied = json!({ "decision": "deny", "reason": "why" });
    assert_eq!(said(block(), Host::GeminiCli), denied);
    assert_eq!(said(block(), Host::OpenHands), denied);
    assert_eq!(said(block(), Host::Cursor), json!({ "followup_message": "why" }));
    let ended = json!({ "continue": false, "stopReason": "why" });
    for host in Host::ALL {
        if host.can_end() {
            assert_eq!(said(Answer::End("why".into()), host), ended);
        }
    }
}

/// A payload of a host that wants to stop, with nothing but what it must have.
fn stop(host: Host) -> Value {
    match host {
        Host::OpenHands => json!({ "event_type": "Stop" }),
        Host::GeminiCli => json!({ "hook_event_name": "AfterAgent" }),
        Host::Cursor => json!({ "hook_event_name": "stop" }),
        _ => json!({ "hook_event_name": "Stop" }),
    }
}

#[test]
fn unknown_fields_are_passed_over_and_missing_ones_are_nothing() {
    for host in HOSTS {
        let mut payload = stop(host);
        let bare = Event::read(host, &payload.to_string()).unwrap();
        assert_eq!(bare.kind, EventKind::Stop);
        assert_eq!((&bare.session, &bare.directory, &bare.answer), (&None, &None, &None));
        payload["from_a_later_version"] = json!([{ "deep": [1, null, "好"] }]);
        payload["session_id"] = Value::Null;
        assert_eq!(Event::read(host, &payload.to_string()).unwrap(), bare, "{host:?}");
    }
    let generic = Event::read(Host::Generic, "").unwrap();
    assert_eq!(generic, Event::bare(EventKind::Stop, "stop"));
}

#[test]
fn a_payload_that_is_not_what_it_should_be_is_named() {
    for host in HOSTS {
        for text in
            ["", "not JSON", "[1]", "null", "{\"hook_event_name\": \"Stop\"} trailing", "{}"]
        {
            let error = Event::read(host, text).unwrap_err().to_string();
            assert!(error.contains(host.name()), "{error}");
        }
        let field = match host {
            Host::OpenHands => "working_dir",
            Host::Cursor => "workspace_roots",
            _ => "cwd",
        };
        let mut payload = stop(host);
        payload[field] = json!(7);
        let error = Event::read(host, &payload.to_string()).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
}

#[test]
fn stop_hook_active_of_any_kind_is_no_fault_and_no_other_event_asks() {
    for value in [json!(true), json!("yes"), json!(null), json!(3)] {
        let payload = json!({ "hook_event_name": "Stop", "stop_hook_active": value });
        let event = Event::read(Host::ClaudeCode, &payload.to_string()).unwrap();
        assert_eq!(event.stop_hook_active, value.as_bool());
    }
    for name in ["SessionEnd", "PreToolUse", "Notification", "NewInSomeVersion"] {
        let payload = json!({ "hook_event_name": name }).to_string();
        assert_eq!(Event::read(Host::ClaudeCode, &payload).unwrap().kind, EventKind::Other);
    }
}

#[test]
fn work_in_the_background_and_a_person_s_stop_are_nothing_to_judge() {
    let payload = json!({ "hook_event_name": "Stop", "background_tasks": [{ "id": 1 }] });
    let event = Event::read(Host::ClaudeCode, &payload.to_string()).unwrap();
    assert!(event.unfinished.unwrap().starts_with("1 of the agent's tasks"));
    for (status, unfinished) in [("completed", false), ("aborted", true), ("error", true)] {
        let payload = json!({ "hook_event_name": "stop", "status": status });
        let event = Event::read(Host::Cursor, &payload.to_string()).unwrap();
        assert_eq!(event.unfinished.is_some(), unfinished, "{status}");
    }
}

fn session() -> Session {
    serde_json::from_value(json!({ "format": 1, "host": "codex", "session": "s" })).unwrap()
}

/// Counts one block of a turn, as an answer does.
fn block(turn: &mut Turn) {
    turn.blocks += 1;
    turn.told = Some("venire: change it".into());
}

#[test]
fn counters_go_on_while_the_agent_is_made_to_go_on_and_end_with_the_turn() {
    let mut session = session();
    for expected in 0..5 {
        let turn = session.turn(None, None);
        assert_eq!(turn.blocks, expected);
        block(turn);
    }
    session.turn.told = None;
    assert_eq!(session.turn(None, None).blocks, 0, "it was let go: another turn");
    block(session.turn(None, None));
    session.begin(Some("next".into()), None, None);
    assert_eq!(session.turn(None, None).blocks, 0, "the person asked for something else");
}

#[test]
fn a_turn_that_a_limit_ended_stays_ended_where_the_host_tells_turns() {
    let mut session = session();
    block(session.turn(None, Some("p1")));
    session.turn.told = None;
    session.turn.spent = true;
    assert!(session.turn(None, Some("p1")).spent);
    assert!(!session.turn(None, Some("p2")).spent, "another prompt");
    session.turn.spent = true;
    session.turn.prompt_id = None;
    assert!(!session.turn(None, None).spent, "without ids and prompts nothing else would end it");
    session.begin(None, None, None);
    session.turn.spent = true;
    assert!(session.turn(None, None).spent, "the next prompt will end it");
}

#[test]
fn subagents_have_counters_of_their_own() {
    let mut session = session();
    block(session.turn(None, None));
    block(session.turn(Some("a"), None));
    block(session.turn(Some("a"), None));
    assert_eq!(session.turn(Some("b"), None).blocks, 0);
    assert_eq!((session.turn(Some("a"), None).blocks, session.turn(None, None).blocks), (2, 1));
}

#[test]
fn a_hook_s_own_words_are_no_prompt() {
    let mut session = session();
    assert!(!session.is_own_words("anything"));
    block(session.turn(None, None));
    assert!(session.is_own_words("Stop hook feedback:\nvenire: change it"));
    assert!(!session.is_own_words("do something else"));
}

#[test]
fn a_broken_ledger_is_moved_aside_and_one_in_use_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let open = |ms| {
            let until = Instant::now() + Duration::from_millis(ms);
            Ledger::open(folder.path(), Host::Codex, "s/../好", until)
        };
        let ledger = open(500).await.unwrap();
        ledger.save().unwrap();
        assert!(matches!(open(60).await, Err(LedgerError::Busy)));
        drop(ledger);
        drop(open(500).await.unwrap());
        let sessions = folder.path().join("sessions");
        let mut files = std::fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.extension().is_some_and(|e| e == "json")).unwrap();
        for text in
            ["{\"format\": 1", "", "{\"format\": 9, \"host\": \"codex\", \"session\": \"s\"}"]
        {
            std::fs::write(&file, text).unwrap();
            assert!(matches!(open(500).await, Err(LedgerError::Broken { .. })), "{text}");
            assert_eq!(open(500).await.unwrap().session.blocks, 0);
        }
    });
    assert_eq!(std::fs::read_to_string(folder.path().join(".gitignore")).unwrap(), "*\n");
}

fn entry(command: &str) -> Entry {
    Entry { command: command.into(), timeout: Duration::from_secs(600), blocks: 6, tools: true }
}

fn merge(host: Host, text: Option<&str>, entry: Option<&Entry>) -> Result<String, InstallError> {
    merged(host, Path::new("settings.json"), text, entry)
}

#[test]
fn settings_keep_their_order_and_other_hooks_and_are_the_same_when_installed_twice() {
    let before = "{\n    \"zeta\": 1.50,\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n        ]\n    },\n    \"alpha\": [true, null]\n}\n";
    let ours = entry("/usr/bin/venire hook claude-code -c panel.toml");
    let once = merge(Host::ClaudeCode, Some(before), Some(&ours)).unwrap();
    let order =
        |text: &str| ["zeta", "say done", "hook claude-code", "alpha"].map(|w| text.find(w));
    assert!(order(&once).is_sorted() && order(&once)[0].is_some(), "{once}");
    assert!(once.starts_with("{\n    \"zeta\": 1.5"), "{once}");
    assert_eq!(merge(Host::ClaudeCode, Some(&once), Some(&ours)).unwrap(), once);
    let other = entry("/opt/venire hook claude-code -c other.toml");
    let changed = merge(Host::ClaudeCode, Some(&once), Some(&other)).unwrap();
    assert!(!changed.contains("/usr/bin/venire") && changed.contains("say done"), "{changed}");
    let removed = merge(Host::ClaudeCode, Some(&changed), None).unwrap();
    let value: Value = serde_json::from_str(&removed).unwrap();
    assert_eq!(value, serde_json::from_str::<Value>(before).unwrap());
}

#[test]
fn each_host_has_its_own_events_units_and_limits() {
    for host in HOSTS {
        let ours = entry(&format!("venire hook {}", host.name()));
        let text = merge(host, None, Some(&ours)).unwrap();
        let hooks = &serde_json::from_str::<Value>(&text).unwrap()["hooks"];
        let (stop, prompt) = match host {
            Host::GeminiCli => ("AfterAgent", "BeforeAgent"),
            Host::Cursor => ("stop", "beforeSubmitPrompt"),
            _ => ("Stop", "UserPromptSubmit"),
        };
        assert!(hooks[prompt].is_array(), "{text}");
        let entry = &hooks[stop][0];
        match host {
            Host::Cursor => assert_eq!(entry["loop_limit"], 6),
            Host::GeminiCli => assert_eq!(entry["hooks"][0]["timeout"], 600_000),
            _ => assert_eq!(entry["hooks"][0]["timeout"], 600),
        }
        assert_eq!(hooks["PostToolUse"].is_array(), host == Host::ClaudeCode);
        assert!(!merge(host, Some(&text), None).unwrap().contains("venire"));
    }
    assert!(settings_file(Host::Generic, Path::new(".")).is_err());
}

#[test]
fn openhands_files_in_their_other_form_stay_in_it() {
    let before = "{\"stop\": [{\"matcher\": \"*\", \"hooks\": [{\"command\": \"mine\"}]}]}";
    let text = merge(Host::OpenHands, Some(before), Some(&entry("venire hook openhands"))).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["stop"].as_array().unwrap().len(), 2, "{text}");
    assert!(value.get("hooks").is_none() && value.get("Stop").is_none(), "{text}");
}

#[test]
fn settings_that_are_not_plain_json_are_left_alone_with_what_to_add() {
    let ours = entry("venire hook gemini-cli");
    let error = merge(Host::GeminiCli, Some("{ // mine\n}"), Some(&ours)).unwrap_err();
    assert!(error.to_string().contains("venire hook gemini-cli"), "{error}");
    for text in ["[]", "{\"hooks\": 1}", "{\"hooks\": {\"AfterAgent\": {}}}"] {
        let error = merge(Host::GeminiCli, Some(text), Some(&ours)).unwrap_err();
        assert!(matches!(error, InstallError::Shape { .. }), "{error}");
    }
}

#[test]
fn the_last_prompt_is_found_among_results_remarks_and_feedback() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let user = |content: Value| json!({ "type": "user", "message": { "content": content } });
    let meta = json!({ "type": "user", "isMeta": true, "message": { "content": "remark" } });
    let result = user(json!([{ "type": "tool_result", "content": "x" }]));
    let lines = [
        user(json!("first")),
        user(json!([{ "type": "text", "text": "写 done.txt" }])),
        result,
        meta,
        user(json!("Stop hook feedback:\nvenire: change it")),
        json!({ "type": "assistant" }),
    ];
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    text.push_str("{\"type\": \"user\", \"message\": half a li");
    std::fs::write(&path, text).unwrap();
    let last = |own: &str| transcript::last_prompt(&path, |prompt| prompt == own).unwrap();
    assert_eq!(last("").as_deref(), Some("写 done.txt"));
    assert_eq!(last("写 done.txt").as_deref(), Some("first"));
    let codex =
        json!({ "type": "event_msg", "payload": { "type": "user_message", "message": "m" } });
    std::fs::write(&path, codex.to_string()).unwrap();
    assert_eq!(last("").as_deref(), Some("m"));
    std::fs::write(&path, b"\xff\xfe not a log").unwrap();
    assert_eq!(last(""), None);
    assert!(transcript::last_prompt(&folder.path().join("none"), |_| false).is_err());
}
