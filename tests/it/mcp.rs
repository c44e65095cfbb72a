//! `venire mcp` as a host meets it: a process, lines in and lines out, and HTTP.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use crate::mock;
use crate::workbench::{Workbench, model_panel};

/// What a test waits for at most: far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server with its two streams.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    next: u64,
}

fn lines_of(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Server {
    fn start(bench: &Workbench, arguments: &[&str]) -> Self {
        Self::start_with(bench, arguments, None)
    }

    fn start_with(bench: &Workbench, arguments: &[&str], token: Option<&str>) -> Self {
        let template = bench.command(arguments);
        let mut command = Command::new(template.get_program());
        command.args(template.get_args()).current_dir(bench.path(""));
        for (name, value) in template.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(token) = token {
            command.env("VENIRE_TOKEN", token);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let errors = lines_of(child.stderr.take().unwrap());
        let stdin = child.stdin.take();
        Self { child, stdin, lines, errors, next: 1 }
    }

    fn begun(bench: &Workbench) -> Self {
        let mut server = Self::start(bench, &["mcp"]);
        server.initialize("2025-11-25");
        server
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    fn say_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// The next message has to say that a line could not be parsed, and why.
    fn refuses(&self, why: &str) {
        let message = self.message();
        assert_eq!(message.get("id"), Some(&Value::Null), "{message}");
        assert_eq!(message["error"]["code"], -32700, "{message}");
        assert!(message["error"]["message"].as_str().unwrap().contains(why), "{message}");
    }

    fn send(&mut self, method: &str, parameters: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.say(
            &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters })
                .to_string(),
        );
        id
    }

    /// The next line on stdout.
    fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.unwrap_or_else(|error| panic!("no line on stdout: {error}"))
    }

    /// The next line, which has to be a message of the protocol.
    fn message(&self) -> Value {
        let line = self.line();
        let message: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("stdout has `{line}`, which is no message: {error}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        let message = self.message();
        assert_eq!(message["id"], id, "{message}");
        message
    }

    fn initialize(&mut self, version: &str) -> Value {
        let answer = self.ask(
            "initialize",
            json!({
                "protocolVersion": version, "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        answer["result"].clone()
    }

    /// The result of a tool call.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The structured answer of a call that has to have one.
    fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// Ends the input and gives the exit code with what was still said on both streams.
    fn end(mut self) -> (i32, Vec<Value>, String) {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let errors: Vec<String> = self.errors.iter().collect();
        (code, rest, errors.join("\n"))
    }

    /// Where it listens over HTTP.
    fn url(&self) -> String {
        self.line()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What every request of the era without a handshake carries.
fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const TOOLS: [&str; 3] = ["score", "gate_status", "explain"];

#[test]
fn the_era_with_a_handshake_gets_the_version_it_asks_for_and_three_tools() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let bench = Workbench::with_rules();
        let mut server = Server::start(&bench, &["mcp"]);
        let begun = server.initialize(version);
        assert_eq!(begun["protocolVersion"], version);
        assert_eq!(begun["serverInfo"]["name"], "venire");
        let list = server.ask("tools/list", json!({}))["result"].clone();
        assert_eq!(names(&list), TOOLS, "{version}");
        assert!(list.get("resultType").is_none(), "{version} has no such key: {list}");
        assert_eq!(server.end().0, 0);
    }
}

#[test]
fn the_era_without_a_handshake_is_discovered_and_answered_request_by_request() {
    let bench = Workbench::with_rules();
    let mut server = Server::start(&bench, &["mcp"]);
    let found = server.ask("server/discover", json!({ "_meta": meta("2026-07-28") }));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
    let list = server.ask("tools/list", json!({ "_meta": meta("2026-07-28") }));
    assert_eq!(names(&list["result"]), TOOLS);
    assert_eq!(list["result"]["resultType"], "complete");
    let judged = server.ask(
        "tools/call",
        json!({
            "name": "score", "arguments": { "task": "q", "answer": "one two" },
            "_meta": meta("2026-07-28"),
        }),
    );
    assert_eq!(judged["result"]["structuredContent"]["decision"], "accept");
    let other = server.ask("tools/list", json!({ "_meta": meta("2031-01-01") }));
    assert_eq!(other["error"]["code"], -32022, "{other}");
    assert!(other["error"]["data"]["supported"].is_array(), "{other}");
}

#[test]
#[cfg(feature = "schema")]
fn an_answer_is_text_and_the_same_structured_and_fits_its_schema() {
    let bench = Workbench::with_rules();
    let mut server = Server::begun(&bench);
    let list = server.ask("tools/list", json!({}))["result"].clone();
    let calls = [
        ("score", json!({ "task": "q", "answer": "one two three four five" })),
        ("explain", json!({})),
        ("gate_status", json!({ "limit": 1 })),
    ];
    for (tool, arguments) in calls {
        let result = server.call(tool, arguments);
        let structured = &result["structuredContent"];
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 1);
        let text: Value = serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(&text, structured);
        let listed = list["tools"].as_array().unwrap().iter();
        let schema = listed.clone().find(|listed| listed["name"] == tool).unwrap();
        assert_eq!(schema["outputSchema"]["type"], "object");
        assert_eq!(schema["inputSchema"]["type"], "object");
        for schema in [&schema["inputSchema"], &schema["outputSchema"]] {
            let schema = schema.to_string();
            assert!(!schema.contains("$ref") && !schema.contains("\"format\""), "{schema}");
        }
        // Our own rule is the judge of it.
        bench.write("schema.json", schema["outputSchema"].to_string());
        bench.write("answer.json", structured.to_string());
        bench.write(
            "schema.toml",
            "threshold = 1.0\n[[judge]]\nname = \"fits\"\nkind = \"rule\"\nrule = \"json\"\nschema_file = \"schema.json\"\n",
        );
        bench.run(&["score", "-c", "schema.toml", "answer.json"]).exits(0);
        let required = schema["outputSchema"]["required"].as_array().unwrap();
        let mut wrong = structured.clone();
        wrong.as_object_mut().unwrap().remove(required[0].as_str().unwrap()).unwrap();
        bench.write("answer.json", wrong.to_string());
        bench.run(&["score", "-c", "schema.toml", "answer.json"]).exits(1);
    }
}

#[test]
fn what_was_not_decided_has_no_score_and_says_what_is_missing() {
    let bench = Workbench::new();
    bench.write(
        "panel.toml",
        "threshold = 0.5\n[[judge]]\nname = \"same\"\nkind = \"rule\"\nrule = \"equals\"\nrequired = true\n\
         [[judge]]\nname = \"short\"\nkind = \"rule\"\nrule = \"length\"\nwords = { max = 4 }\n",
    );
    let mut server = Server::begun(&bench);
    let judged = server.structured("score", json!({ "task": "1+1", "answer": "2" }));
    assert_eq!(judged["decision"], "undecided");
    assert_eq!(judged["score"], Value::Null);
    let summary = judged["summary"].as_str().unwrap();
    assert!(summary.contains("not rejected") && summary.contains("`expected`"), "{summary}");
    assert_eq!(judged["judges"][0]["status"], "abstained");
    assert_eq!(judged["judges"][1]["score"], 1.0, "votes that came in are shown as votes");
    let status = server.structured("gate_status", json!({}));
    assert_eq!(status["outcomes"][0]["decision"], "undecided");
    assert_eq!(status["outcomes"][0]["score"], Value::Null);
    let decided =
        server.structured("score", json!({ "task": "1+1", "answer": "2", "expected": "2" }));
    assert_eq!((&decided["decision"], &decided["score"]), (&json!("accept"), &json!(1.0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn judges_that_fail_are_an_undecided_answer_and_no_error() {
    let model =
        mock::Mock::start(mock::Options { key: Some("other".into()), ..Default::default() })
            .await
            .unwrap();
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(&model.url(), 2, ""));
    bench.write(".env", "OPENAI_API_KEY=sk-secret-of-mine\n");
    let ended = tokio::task::spawn_blocking(move || {
        let mut server = Server::begun(&bench);
        let result = server.call("score", json!({ "task": "q", "answer": "a" }));
        assert_eq!(result["isError"], false, "{result}");
        let judged = &result["structuredContent"];
        assert_eq!((&judged["decision"], &judged["score"]), (&json!("undecided"), &Value::Null));
        assert_eq!(judged["judges"][0]["status"], "provider_error", "{judged}");
        let (code, rest, errors) = server.end();
        assert_eq!((code, rest.len()), (0, 0));
        assert!(errors.contains("`m0` has no vote"), "{errors}");
        format!("{result}{errors}")
    });
    assert!(!ended.await.unwrap().contains("sk-secret"), "a key was told");
}

#[test]
fn wrong_arguments_are_text_for_the_model_and_an_unknown_tool_is_an_error() {
    let bench = Workbench::with_rules();
    let mut server = Server::begun(&bench);
    for (tool, arguments, said) in [
        ("score", json!({ "task": "q", "anser": "a" }), "did you mean `answer`?"),
        ("score", json!({ "answer": "a" }), "missing key `task`"),
        ("score", json!({ "task": "q", "answer": 7 }), "answer"),
        ("score", json!({ "task": "q", "answer": "a", "input": "q" }), "task"),
        ("gate_status", json!({ "limit": 0 }), "expected 1 to 50"),
        ("gate_status", json!({ "id": "nowhere" }), "`nowhere`"),
        ("explain", json!({}), "call `score` first"),
        ("explain", json!({ "run": "nowhere" }), "`nowhere`"),
    ] {
        let result = server.call(tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(said), "{tool} {arguments}: {text}");
    }
    for parameters in [json!({ "name": "evaluate", "arguments": {} }), json!({ "name": "" })] {
        let answer = server.ask("tools/call", parameters);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("`gate_status`"));
    }
    for method in ["nope", "prompts/list", "resources/list", "logging/setLevel", "工具/列表"] {
        let parameters = match method {
            "logging/setLevel" => json!({ "level": "info" }),
            _ => json!({}),
        };
        let answer = server.ask(method, parameters);
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("unknown method `{method}`")), "{message}");
        assert!(message.contains("`tools/call`"), "{message}");
    }
}

#[test]
fn what_is_not_json_is_answered_as_such_and_the_conversation_goes_on() {
    let bench = Workbench::with_rules();
    let mut server = Server::start(&bench, &["mcp", "-v"]);
    server.say("Loading profile… done");
    server.refuses("not JSON");
    server.say("");
    server.say(" \t\r");
    server.initialize("2025-11-25");
    server.say("{ \"jsonrpc\": \"2.0\", \"id\": 7, \"method\": ");
    server.refuses("not JSON");
    server.say("\u{feff}garbage \u{1b}[31m");
    server.refuses("not JSON");
    server.say_bytes(b"{\"jsonrpc\": \"2.0\", \"id\": 8, \"method\": \"\xff\"}\n");
    server.refuses("not JSON");
    server.say(&"[".repeat(100_000));
    server.refuses("not JSON");
    server.say(&"x".repeat((16 << 20) + 1));
    server.refuses("longer than 16777216 bytes");
    server.say("\u{feff}{\"jsonrpc\": \"2.0\", \"id\": 9, \"method\": \"ping\"}");
    assert_eq!(server.message()["id"], 9);
    let answer = server.structured("score", json!({ "task": "q", "answer": "中文 answer" }));
    assert_eq!(answer["decision"], "accept");
    // JSON that is no message is told so, and the conversation goes on.
    server.say("{\"hello\": true}");
    assert!(server.message()["error"]["code"].is_number());
    let huge = "word ".repeat(200_000);
    let answer = server.structured("score", json!({ "task": "q", "answer": huge }));
    assert_eq!(answer["decision"], "reject");
    let (code, rest, errors) = server.end();
    assert_eq!((code, rest.len()), (0, 0));
    assert!(!errors.contains('\u{1b}'), "colours in what is no terminal: {errors}");
}

#[test]
fn the_last_line_counts_without_an_end_too() {
    for (line, code, id) in [
        ("{\"jsonrpc\": \"2.0\", \"id\": 5, \"method\": \"nope\"}", -32601, json!(5)),
        ("{\"jsonrpc\": \"2.0\", \"id\": 5, \"meth", -32700, Value::Null),
    ] {
        let bench = Workbench::with_rules();
        let mut server = Server::begun(&bench);
        server.say_bytes(line.as_bytes());
        let (exit, rest, errors) = server.end();
        assert_eq!((exit, rest.len()), (0, 1), "{rest:?} {errors}");
        assert_eq!((&rest[0]["error"]["code"], &rest[0]["id"]), (&json!(code), &id));
    }
}

#[test]
fn a_client_that_leaves_at_once_ends_the_server_well() {
    let bench = Workbench::with_rules();
    let server = Server::start(&bench, &["mcp"]);
    let (code, rest, errors) = server.end();
    assert_eq!((code, rest.len()), (0, 0), "{errors}");
}

/// A panel of one command.
#[cfg(unix)]
fn command_panel(script: &str) -> Workbench {
    let bench = Workbench::new();
    bench.write(
        "panel.toml",
        format!(
            "threshold = 0.5\n[[judge]]\nname = \"check\"\nkind = \"command\"\ntimeout = \"60s\"\n\
             [[judge.checks]]\nname = \"it\"\nargv = [\"sh\", \"-c\", {script:?}]\n"
        ),
    );
    bench
}

#[test]
#[cfg(unix)]
fn a_call_in_flight_at_the_end_of_the_input_is_still_answered() {
    let bench = command_panel("sleep 1");
    let mut server = Server::begun(&bench);
    let id = server.send(
        "tools/call",
        json!({ "name": "score", "arguments": { "task": "q", "answer": "a" } }),
    );
    let (code, rest, errors) = server.end();
    assert_eq!((code, rest.len()), (0, 1), "{errors}");
    assert_eq!(rest[0]["id"], id);
    assert_eq!(rest[0]["result"]["structuredContent"]["decision"], "accept");
}

#[test]
#[cfg(target_os = "linux")]
fn a_cancelled_call_ends_its_judges_and_is_not_answered() {
    let bench = Workbench::new();
    let mark = bench.path("pid");
    let bench_of = command_panel(&format!("echo $$ > {}; sleep 60", mark.display()));
    let mut server = Server::begun(&bench_of);
    let id = server.send(
        "tools/call",
        json!({ "name": "score", "arguments": { "task": "q", "answer": "a" } }),
    );
    let alive = || is_alive(&mark);
    wait_until(|| alive() == Some(true));
    server.say(
        &json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": id, "reason": "the user changed their mind" },
        })
        .to_string(),
    );
    wait_until(|| alive() == Some(false));
    // The next message is the answer to the next question, not to the cancelled one.
    let status = server.structured("gate_status", json!({}));
    assert_eq!(status["summary"], "nothing was judged yet");
    assert_eq!(server.end().0, 0);
}

/// Whether the process whose id stands in a file lives; `None` before it stands there.
#[cfg(target_os = "linux")]
fn is_alive(mark: &std::path::Path) -> Option<bool> {
    let pid = std::fs::read_to_string(mark).unwrap_or_default();
    let pid = pid.strip_suffix('\n')?;
    // A process that has ended and is not collected yet has no command line, and another one
    // that got its number has another.
    let command = std::path::Path::new("/proc").join(pid).join("cmdline");
    Some(std::fs::read_to_string(command).unwrap_or_default().contains("sleep"))
}

#[cfg(target_os = "linux")]
fn wait_until(done: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn rulings_outlive_the_server_and_are_a_run_like_any_other() {
    let bench = Workbench::with_rules();
    let mut server = Server::begun(&bench);
    let answer = json!({ "task": "q", "answer": "one two three four five" });
    let first = server.structured("score", answer.clone());
    let again = server.structured("score", answer);
    assert_eq!(again["case"], format!("{}-2", first["case"].as_str().unwrap()));
    assert_eq!(again["run"], first["run"]);
    assert_eq!(server.end().0, 0);

    let mut server = Server::begun(&bench);
    let explained = server.structured("explain", json!({ "case": first["case"] }));
    assert_eq!(explained["ruling"]["decision"], "reject");
    assert_eq!(explained["ruling"]["case"], first["case"]);
    assert_eq!(explained["verdicts"][0]["judge"], "short");
    assert_eq!(explained["output"], "one two three four five");
    let status = server.structured("gate_status", json!({}));
    assert_eq!(status["outcomes"].as_array().unwrap().len(), 1, "looking leaves no run");
    assert_eq!(status["outcomes"][0]["kind"], "scored");
    assert_eq!(status["outcomes"][0]["state"], "finished");
    assert_eq!(status["outcomes"][0]["rejected"], 2);

    bench.run(&["run", "cases.csv"]).exits(0);
    let status = server.structured("gate_status", json!({ "limit": 1 }));
    assert_eq!(status["outcomes"][0]["kind"], "run");
    assert_eq!(status["outcomes"][0]["decision"], Value::Null);
    let explained = server.structured("explain", json!({ "run": "latest", "case": "c" }));
    assert_eq!(explained["ruling"]["decision"], "reject");

    let run = first["run"].as_str().unwrap();
    let shown = bench.run(&["show", run, "--json"]).exits(0).json();
    assert_eq!(shown.as_array().unwrap().len(), 2);
    bench.run(&["export", run, "-o", "rows.csv"]).exits(0);
    bench.run(&["run", "--resume", run]).exits(2).says(&["one by one", "list runs"]);
}

#[test]
fn loops_are_told_too() {
    let bench = Workbench::with_rules();
    bench.write(
        "loop.toml",
        "task = \"say it\"\n[agent]\nkind = \"command\"\nargv = [\"echo\", \"one two\"]\n[panel]\npath = \"panel.toml\"\n",
    );
    bench.run(&["loop", "-c", "loop.toml"]).exits(0);
    let mut server = Server::begun(&bench);
    let status = server.structured("gate_status", json!({}));
    let outcome = &status["outcomes"][0];
    assert_eq!((&outcome["kind"], &outcome["decision"]), (&json!("loop"), &json!("accept")));
    assert_eq!(outcome["state"], "finished");
}

#[test]
fn sessions_that_a_hook_gates_are_told_and_let_through_is_not_accepted() {
    let bench = Workbench::with_rules();
    let ledger = |session: &str, decision: Value, cause: &str, time: &str| {
        json!({
            "format": 1, "host": "claude-code", "session": session, "blocks": 2,
            "outcome": {
                "time": time, "accepted": decision == "accept", "decision": decision,
                "cause": cause, "answer": "allow", "exit_code": 0, "score": 0.75,
                "on_undecided": "accept",
            },
        })
        .to_string()
    };
    let folder = ".venire/hooks/sessions";
    let later = ledger("s-2", json!("undecided"), "undecided", "2999-01-01T00:00:00Z");
    bench.write(&format!("{folder}/a.json"), later);
    let before = ledger("s-1", json!("accept"), "accepted", "2001-01-01T00:00:00Z");
    bench.write(&format!("{folder}/b.json"), before);
    bench.write(&format!("{folder}/c.json"), "torn {");
    bench.write(&format!("{folder}/a.lock"), "");
    let mut server = Server::begun(&bench);
    server.structured("score", json!({ "task": "q", "answer": "one" }));
    let status = server.structured("gate_status", json!({}));
    let told: Vec<_> = status["outcomes"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
    assert_eq!(told, ["hook", "scored", "hook"]);
    let newest = &status["outcomes"][0];
    assert_eq!((&newest["id"], &newest["decision"]), (&json!("s-2"), &json!("undecided")));
    assert_eq!((&newest["score"], &newest["accepted"]), (&Value::Null, &json!(0)));
    assert!(newest["summary"].as_str().unwrap().contains("answered `allow`"));
    let one = server.structured("gate_status", json!({ "id": "s-1" }));
    assert_eq!(one["outcomes"].as_array().unwrap().len(), 1);
    assert_eq!(one["outcomes"][0]["score"], 0.75);
}

#[test]
fn gates_with_an_outcome_file_are_told_and_a_policy_is_no_acceptance() {
    let bench = Workbench::with_rules();
    bench.write("good.txt", "one two");
    bench.write("long.txt", "one two three four five six");
    bench.run(&["gate", "good.txt"]).exits(0);
    let mut server = Server::begun(&bench);
    assert_eq!(server.structured("gate_status", json!({}))["outcomes"], json!([]));
    bench.run(&["gate", "long.txt", "--outcome", "out/a.json"]).exits(1);
    bench.run(&["gate", "good.txt", "--outcome", "out/a.json"]).exits(0);
    bench.write("broken.toml", "[[judge]]\nname = \"c\"\nkind = \"command\"\nchecks = [{ argv = [\"sh\", \"-c\", \"exit 127\"] }]\n");
    let words = ["gate", "-c", "broken.toml", "good.txt", "--outcome", "b.json"];
    bench.run(&[&words[..], &["--on-undecided", "accept"]].concat()).exits(0);
    let status = server.structured("gate_status", json!({}));
    let outcomes = status["outcomes"].as_array().unwrap();
    let told: Vec<_> =
        outcomes.iter().map(|own| (own["kind"].as_str().unwrap(), &own["decision"])).collect();
    assert_eq!(told, [("gate", &json!("undecided")), ("gate", &json!("accept"))]);
    assert!(outcomes[0]["id"].as_str().unwrap().ends_with("b.json"), "{status}");
    assert!(
        outcomes[0]["summary"].as_str().unwrap().contains("0, though nothing was accepted"),
        "{status}"
    );
    let one = server.structured("gate_status", json!({ "id": "out/a.json" }));
    assert_eq!(one["outcomes"][0]["accepted"], 1, "{one}");
    for none in ["a", "json", "b.jso", ""] {
        let refused = server.call("gate_status", json!({ "id": none }));
        let known = none.is_empty() || refused["isError"] == true;
        assert!(known, "{none}: {refused}");
    }
}

#[test]
fn a_panel_that_can_t_be_seated_is_said_on_stderr_and_nothing_on_stdout() {
    let bench = Workbench::new();
    bench.write("panel.toml", "[[judge]]\nname = \"a\"\nkind = \"rule\"\nrule = \"lenght\"\n");
    let ran = bench.run_with_stdin(&["mcp"], "").exits(2).says(&["lenght", "length"]);
    assert_eq!(ran.stdout, "");
    bench.run(&["mcp", "-c", "nowhere.toml"]).exits(2).says(&["no panel file `nowhere.toml`"]);
    bench.write("notes.txt", "not a store");
    let bench = Workbench::with_rules();
    bench.write("notes.txt", "not a store");
    bench.run(&["mcp", "--store", "notes.txt"]).exits(2).says(&["`notes.txt`"]);
}

#[test]
fn addresses_that_others_reach_are_refused_without_a_good_token() {
    let bench = Workbench::with_rules();
    bench.run(&["mcp", "--http", "0.0.0.0:0"]).exits(2).says(&["VENIRE_TOKEN", "127.0.0.1"]);
    bench.run(&["mcp", "--http", "[::]:0"]).exits(2).says(&["VENIRE_TOKEN"]);
    bench.run(&["mcp", "--allow-host", "x"]).exits(2).says(&["--http"]);
    bench.run(&["mcp", "--http", "--allow-host", "http://x"]).exits(2).says(&["no name of a host"]);
    let weak = bench.command(&["mcp", "--http"]).env("VENIRE_TOKEN", "secret").output().unwrap();
    let said = String::from_utf8_lossy(&weak.stderr).into_owned();
    assert_eq!(weak.status.code(), Some(2));
    assert!(said.contains("6 characters") && !said.contains("secret"), "{said}");
}

/// Posts one message and gives the status with the answer, read from the event stream.
async fn post(url: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
    let mut request = reqwest::Client::new()
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    let message = data.rfind(|data| !data.is_empty()).unwrap_or(&text);
    (status, serde_json::from_str(message).unwrap_or(Value::Null))
}

fn request(method: &str, parameters: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters })
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_both_eras_are_answered_without_a_session() {
    let bench = Workbench::with_rules();
    let server = Server::start(&bench, &["mcp", "--http", "127.0.0.1:0"]);
    let url = server.url();
    let begin = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let (status, begun) = post(&url, &[], &request("initialize", &begin)).await;
    assert_eq!((status, &begun["result"]["protocolVersion"]), (200, &json!("2025-11-25")));
    let old = [("mcp-protocol-version", "2025-11-25")];
    let (_, list) = post(&url, &old, &request("tools/list", &json!({}))).await;
    assert_eq!(names(&list["result"]), TOOLS);
    let call = json!({ "name": "score", "arguments": { "task": "q", "answer": "one" } });
    let (_, judged) = post(&url, &old, &request("tools/call", &call)).await;
    assert_eq!(judged["result"]["structuredContent"]["decision"], "accept");

    let new = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "score"),
    ];
    let mut call = call;
    call["_meta"] = meta("2026-07-28");
    let (status, judged) = post(&url, &new, &request("tools/call", &call)).await;
    assert_eq!(status, 200, "{judged}");
    assert_eq!(judged["result"]["structuredContent"]["decision"], "accept");
    assert_eq!(judged["result"]["resultType"], "complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_broken_and_oversized_bodies_are_refused_and_the_next_is_answered() {
    let bench = Workbench::with_rules();
    let server = Server::start(&bench, &["mcp", "--http", "127.0.0.1:0"]);
    let url = server.url();
    let huge =
        json!({ "name": "score", "arguments": { "task": "q", "answer": "x".repeat(8 << 20) } });
    let bodies = [
        "{".to_owned(),
        String::new(),
        "[]".to_owned(),
        "[".repeat(100_000),
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": NaN}".to_owned(),
        request("tools/call", &huge).to_string(),
    ];
    for body in bodies {
        let shown: String = body.chars().take(60).collect();
        let sent = reqwest::Client::new()
            .post(&url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body);
        // A server that refuses before it has read all may hang up on who still writes.
        if let Ok(answer) = sent.send().await {
            assert!(answer.status().is_client_error(), "{shown}: {}", answer.status());
        }
    }
    let call = json!({ "name": "score", "arguments": { "task": "q", "answer": "one" } });
    let version = [("mcp-protocol-version", "2025-11-25")];
    let (status, judged) = post(&url, &version, &request("tools/call", &call)).await;
    assert_eq!((status, &judged["result"]["isError"]), (200, &json!(false)), "{judged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_and_origins_are_turned_away() {
    let bench = Workbench::with_rules();
    let server = Server::start(
        &bench,
        &["mcp", "--http", "127.0.0.1:0", "--allow-host", "venire.example.org"],
    );
    let url = server.url();
    let list = request("tools/list", &json!({}));
    for headers in [
        [("host", "evil.example")],
        [("host", "127.0.0.1.evil.example")],
        [("origin", "http://evil.example")],
        [("origin", "null")],
        [("origin", "http://localhost.evil.example")],
    ] {
        let (status, _) = post(&url, &headers, &list).await;
        assert_eq!(status, 403, "{headers:?}");
    }
    for headers in [
        [("host", "localhost")],
        [("host", "venire.example.org")],
        [("origin", "http://localhost:6274")],
        [("origin", "https://venire.example.org")],
    ] {
        let (status, answer) = post(&url, &headers, &list).await;
        assert_eq!(status, 200, "{headers:?}");
        assert_eq!(names(&answer["result"]), TOOLS);
    }
    let elsewhere = url.replace("/mcp", "/other");
    assert_eq!(post(&elsewhere, &[], &list).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_token_nobody_is_answered_without_it() {
    let bench = Workbench::with_rules();
    let arguments = ["mcp", "--http", "127.0.0.1:0"];
    let server = Server::start_with(&bench, &arguments, Some("0123456789abcdef0123"));
    let url = server.url();
    let list = request("tools/list", &json!({}));
    for headers in [
        vec![],
        vec![("authorization", "Bearer 0123456789abcdef012")],
        vec![("authorization", "Basic 0123456789abcdef0123")],
        vec![("authorization", "0123456789abcdef0123")],
    ] {
        let (status, _) = post(&url, &headers, &list).await;
        assert_eq!(status, 401, "{headers:?}");
    }
    let with = [("authorization", "Bearer 0123456789abcdef0123")];
    assert_eq!(post(&url, &with, &list).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_client_that_hangs_up_ends_its_judges() {
    let bench = Workbench::new();
    let mark = bench.path("pid");
    let bench_of = command_panel(&format!("echo $$ > {}; sleep 60", mark.display()));
    let server = Server::start(&bench_of, &["mcp", "--http", "127.0.0.1:0"]);
    let url = server.url();
    let call = json!({ "name": "score", "arguments": { "task": "q", "answer": "a" } });
    let asking = tokio::spawn(async move { post(&url, &[], &request("tools/call", &call)).await });
    let alive = || is_alive(&mark);
    tokio::task::block_in_place(|| wait_until(|| alive() == Some(true)));
    asking.abort();
    tokio::task::block_in_place(|| wait_until(|| alive() == Some(false)));
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_terminated_http_server_ends_its_judges() {
    let bench = Workbench::new();
    let mark = bench.path("pid");
    let bench_of = command_panel(&format!("echo $$ > {}; sleep 60", mark.display()));
    let mut server = Server::start(&bench_of, &["mcp", "--http", "127.0.0.1:0"]);
    let url = server.url();
    let call = json!({ "name": "score", "arguments": { "task": "q", "answer": "a" } });
    let asking = tokio::spawn(async move { post(&url, &[], &request("tools/call", &call)).await });
    tokio::task::block_in_place(|| {
        wait_until(|| is_alive(&mark) == Some(true));
        let own = rustix::process::Pid::from_child(&server.child);
        rustix::process::kill_process(own, rustix::process::Signal::TERM).unwrap();
        let started = std::time::Instant::now();
        let status = server.child.wait().unwrap();
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(status.code(), Some(0));
        wait_until(|| is_alive(&mark) == Some(false));
    });
    asking.abort();
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminated_server_ends_its_judges_and_its_run() {
    let bench = Workbench::new();
    let mark = bench.path("pid");
    let bench_of = command_panel(&format!("echo $$ > {}; sleep 60", mark.display()));
    let mut server = Server::begun(&bench_of);
    server.send(
        "tools/call",
        json!({ "name": "score", "arguments": { "task": "q", "answer": "a" } }),
    );
    wait_until(|| is_alive(&mark) == Some(true));
    let own = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(own, rustix::process::Signal::TERM).unwrap();
    let started = std::time::Instant::now();
    server.child.wait().unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    wait_until(|| is_alive(&mark) == Some(false));
}
