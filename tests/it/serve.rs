//! The HTTP API: what it answers, whom it lets in, and that no judge's failure is its own.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::mock::{Fault, Mock, Options};
use crate::serving::{Serving, answer};
use crate::workbench::{Workbench, model_panel};

const TOKEN: &str = "0123456789abcdef0123";

fn rules() -> (Workbench, Serving) {
    let bench = Workbench::with_rules();
    let serving = Serving::start(&bench, &["serve"]);
    (bench, serving)
}

/// A ruling without what differs from one measurement to the next.
fn settled(mut ruling: Value) -> Value {
    for verdict in ruling["verdicts"].as_array_mut().unwrap() {
        verdict["latency_ms"] = 0.into();
    }
    ruling
}

/// A panel whose judges can't reach its quorum: one gives no answer, one does not apply.
const NO_QUORUM: &str = r#"
threshold = 0.5
quorum = 2
[[judge]]
name = "gone"
kind = "http"
url = "http://127.0.0.1:1/judge"
timeout = "5s"
[[judge]]
name = "same"
kind = "rule"
rule = "equals"
[[judge]]
name = "some"
kind = "rule"
rule = "length"
words = { min = 1 }
"#;

/// A judge that takes as many seconds as the case's id says.
#[cfg(unix)]
const SLOW: &str = r#"
threshold = 0.5
[[judge]]
name = "slow"
kind = "command"
checks = [{ argv = ["sleep", "{id}"], timeout = "60s", stdin = "none" }]
"#;

#[tokio::test]
async fn score_and_gate_answer_with_the_json_that_the_program_prints() {
    let (bench, serving) = rules();
    let case =
        json!({ "id": "c1", "input": "q", "output": "one 二 three", "metadata": { "a": 1 } });
    bench.write("case.json", case.to_string());
    let printed = settled(bench.run(&["score", "--case", "case.json", "--json"]).exits(0).json());
    let scored = serving.post("/v1/score", &case).await.is(200);
    assert_eq!(scored.header("content-type"), "application/json");
    assert_eq!(settled(scored.json()), printed);
    let gated = serving.post("/v1/gate", &case).await.is(200);
    assert_eq!(settled(gated.json()), printed);
    assert_eq!(gated.header("venire-exit-code"), "0");
    let long = json!({ "output": "" });
    let gated = serving.post("/v1/gate", &long).await.is(200);
    assert_eq!(
        (gated.header("venire-exit-code"), &gated.json()["decision"]),
        ("1", &json!("reject"))
    );
    assert_eq!(gated.json()["case"], printed_id(&bench, &long));
}

#[tokio::test]
async fn a_gate_answers_in_the_words_of_the_program_where_text_is_asked_for() {
    let (bench, serving) = rules();
    let gate = |case: Value, accept: &'static str| {
        let request = serving.request(Method::POST, "/v1/gate").header("accept", accept);
        answer(request.json(&case))
    };
    let good = gate(json!({ "output": "one 二" }), "text/plain").await.is(200);
    assert_eq!(good.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!((good.header("venire-exit-code"), good.header("vary")), ("0", "accept"));
    bench.write("good.txt", "one 二");
    assert_eq!(good.text, bench.run(&["gate", "good.txt"]).exits(0).stdout);
    let bad = gate(json!({ "output": "" }), "text/plain, application/json").await.is(200);
    assert_eq!(bad.header("venire-exit-code"), "1");
    assert!(bad.text.starts_with("reject: score ") && bad.text.contains("next"), "{}", bad.text);
    assert!(bad.text.lines().count() <= 40 && bad.text.ends_with('\n'), "{}", bad.text);
    let other = gate(json!({ "output": "one" }), "application/json, text/plain").await.is(200);
    assert_eq!(other.json()["decision"], "accept");
    // Weights go before the order.
    for accept in
        ["text/plain;q=0, application/json", "text/html, text/plain;q=0.1, application/json;q=0.9"]
    {
        let other = gate(json!({ "output": "one" }), accept).await.is(200);
        assert_eq!(other.header("content-type"), "application/json", "{accept}");
    }
    // An error is one to programs too, whatever they read otherwise.
    let wrong = gate(json!({ "outputt": "one" }), "text/plain").await.is(422);
    assert_eq!(wrong.kind(), "unusable");
}

#[tokio::test]
async fn a_case_without_an_output_is_refused_by_name_and_nothing_is_judged() {
    let (_bench, serving) = rules();
    for case in [json!({}), json!({ "output": null }), json!({ "id": "c1", "input": "q" })] {
        for route in ["/v1/score", "/v1/gate"] {
            let refused = serving.post(route, &case).await.is(400);
            assert_eq!(refused.kind(), "no_output", "{route} {case}");
            let error = refused.json()["error"].clone();
            assert_eq!(error["field"], "output");
            assert!(error["message"].as_str().unwrap().contains("missing"), "{error}");
        }
    }
    let lines = "{}\n{\"output\": \"a b\"}\n{\"output\": null}\n{\"output\": \"\"}\n";
    let answer = serving.send("/v1/score/batch", "application/x-ndjson", lines).await.is(200);
    let rows: Vec<Value> =
        answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in [0, 2] {
        assert_eq!(rows[line]["error"]["kind"], "no_output", "{}", rows[line]);
        assert_eq!(rows[line]["error"]["field"], "output");
    }
    assert_eq!(rows[1]["ruling"]["decision"], "accept");
    assert_eq!(rows[3]["ruling"]["decision"], "reject", "the empty text is an output");
    let sums = json!({ "lines": 4, "accepted": 1, "rejected": 1, "undecided": 0, "errors": 2 });
    assert_eq!(rows[4]["summary"], sums);
}

/// The content hash that the program gives a case without an id.
fn printed_id(bench: &Workbench, case: &Value) -> Value {
    bench.write("other.json", case.to_string());
    bench.run(&["score", "--case", "other.json", "--json"]).json()["case"].clone()
}

#[tokio::test]
async fn a_batch_answers_every_line_in_order_and_ends_with_the_sums() {
    let (_bench, serving) = rules();
    let mut lines: Vec<String> =
        (0..100).map(|i| json!({ "id": format!("c{i}"), "output": "a b" }).to_string()).collect();
    lines[3] = "{\"output\": \"broken".into();
    lines[5] = String::new();
    lines[7] = json!({ "id": "c7", "output": "" }).to_string();
    lines[9] = json!({ "id": "c9", "output": "x".repeat(2 << 20) }).to_string();
    lines[11] = json!({ "id": "c11", "outptu": "a b" }).to_string();
    let answer =
        serving.send("/v1/score/batch", "application/x-ndjson", lines.join("\n")).await.is(200);
    let rows: Vec<Value> =
        answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 100, "99 lines that are not empty, and the sums");
    let mut expected = (1..=100).filter(|line| *line != 6);
    for row in &rows[..99] {
        let line = row["line"].as_u64().unwrap();
        assert_eq!(Some(line), expected.next());
        match line {
            4 => assert_eq!(row["error"]["kind"], "bad_json"),
            10 => assert_eq!(row["error"]["kind"], "too_large"),
            12 => assert_eq!(row["error"]["field"], "outptu"),
            line => assert_eq!(row["ruling"]["case"], format!("c{}", line - 1)),
        }
    }
    let sums = json!({ "lines": 99, "accepted": 95, "rejected": 1, "undecided": 0, "errors": 3 });
    assert_eq!(rows[99]["summary"], sums);
    let empty = serving.send("/v1/score/batch", "application/jsonl", "").await.is(200);
    assert_eq!(empty.json()["summary"]["lines"], 0);
}

#[tokio::test]
async fn bad_bodies_are_refused_in_one_shape_and_never_a_fault_of_the_server() {
    let (_bench, serving) = rules();
    let json = "application/json";
    let long = json!({ "output": "x".repeat(1 << 20) }).to_string();
    let deep = "[".repeat(100_000);
    let cases = vec![
        (json, b"{\"output\": ".to_vec(), 400, "bad_json", None::<&str>),
        (json, b"".to_vec(), 400, "bad_json", None),
        (json, b"{\"output\": \"a\", \"output\": \"b\"}".to_vec(), 400, "bad_json", None),
        (json, b"{\"output\": \"\xff\"}".to_vec(), 400, "bad_json", None),
        (json, b"{\"output\": NaN}".to_vec(), 400, "bad_json", None),
        (json, deep.into_bytes(), 400, "bad_json", None),
        (json, b"[\"id\", \"in\", \"out\"]".to_vec(), 422, "unusable", None),
        (json, b"null".to_vec(), 422, "unusable", None),
        (json, b"{\"output\": 7}".to_vec(), 422, "unusable", Some("output")),
        (
            json,
            b"{\"metadata\": {\"a\": 1}, \"expcted\": \"\"}".to_vec(),
            422,
            "unusable",
            Some("expcted"),
        ),
        (json, long.into_bytes(), 413, "too_large", None),
        ("text/plain", b"{\"output\": \"a\"}".to_vec(), 415, "media_type", None),
        ("application/x-www-form-urlencoded", b"output=a".to_vec(), 415, "media_type", None),
    ];
    for (kind, body, status, word, field) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        for path in ["/v1/score", "/v1/gate"] {
            let answer = serving.send(path, kind, body.clone()).await;
            assert_eq!(
                (answer.status, answer.kind().as_str()),
                (status, word),
                "{shown}: {}",
                answer.text
            );
            assert_eq!(answer.json()["error"]["field"].as_str(), field, "{shown}");
        }
    }
    let lone = serving.send("/v1/score", json, "{\"output\": \"a b\"}").await;
    assert_eq!(lone.status, 200, "the server lives on");
    for (method, path, status) in [
        (Method::GET, "/v1/score", 405),
        (Method::POST, "/health", 405),
        (Method::GET, "/v1", 404),
        (Method::GET, "/v1/runs/%ff", 404),
        (Method::GET, "/v1/runs?limit=0", 400),
        (Method::GET, "/v1/runs?limit=x", 400),
        (Method::GET, "/v1/runs?lmit=1", 400),
        (Method::GET, "/v1/runs/latest", 404),
    ] {
        let answer = answer(serving.request(method, path)).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        answer.kind();
    }
}

#[tokio::test]
async fn a_body_without_a_length_is_cut_off_at_the_limit() {
    let bench = Workbench::with_rules();
    let serving = Serving::start(&bench, &["serve", "--max-body", "1000", "--max-batch", "3000"]);
    for (path, parts) in [("/v1/score", 3), ("/v1/score/batch", 7)] {
        let answer = chunked(&serving, path, parts).await;
        assert!(
            answer.starts_with("HTTP/1.1 413 ") && answer.contains("too_large"),
            "{path}: {answer}"
        );
    }
    serving.post("/v1/score", &json!({ "output": "a" })).await.is(200);
}

/// Sends a body of parts of 500 bytes that says nothing of its length, and gives the answer.
async fn chunked(serving: &Serving, path: &str, parts: usize) -> String {
    let host = serving.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..parts {
        let part = format!("1f4\r\n{}\r\n", " ".repeat(500));
        stream.write_all(part.as_bytes()).await.unwrap();
    }
    let mut answer = vec![0; 2000];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn a_refusal_arrives_although_the_body_was_not_read() {
    let bench = Workbench::with_rules();
    bench.write("tokens", TOKEN);
    let serving = Serving::start(&bench, &["serve", "--token-file", "tokens"]);
    for _ in 0..20 {
        let large = vec![b'x'; 3 << 20];
        serving.send("/v1/score", "application/json", large.clone()).await.is(401);
        let request = serving.request(Method::POST, "/v1/score").bearer_auth(TOKEN);
        let request = request.header("content-type", "application/json").body(large);
        answer(request).await.is(413);
    }
}

#[tokio::test]
async fn without_the_right_token_nothing_is_answered_but_that_the_server_lives() {
    let bench = Workbench::with_rules();
    bench.write("tokens", format!("# one of two\n{TOKEN}\n"));
    let other = "another-token-from-outside";
    let serving = Serving::start_with(
        &bench,
        &["serve", "--token-file", "tokens"],
        &[("VENIRE_TOKEN", other)],
    );
    for path in ["/health", "/ready"] {
        serving.get(path).await.is(200);
    }
    let paths = ["/metrics", "/openapi.json", "/v1/runs", "/v1/runs/latest/cases", "/nowhere"];
    for path in paths {
        let refused = serving.get(path).await.is(401);
        assert_eq!(refused.kind(), "unauthorized", "{path}");
        assert!(refused.header("www-authenticate").starts_with("Bearer"), "{path}");
    }
    let case = json!({ "output": "a b" });
    let with =
        |value: String| serving.request(Method::POST, "/v1/score").header("authorization", value);
    for wrong in [
        format!("Bearer {}", &TOKEN[1..]),
        format!("Bearer {TOKEN}x"),
        format!("Basic {TOKEN}"),
        TOKEN.to_owned(),
        "Bearer".to_owned(),
    ] {
        let refused = answer(with(wrong.clone()).json(&case)).await.is(401);
        assert!(!refused.text.contains(&TOKEN[1..]), "{wrong}: {}", refused.text);
    }
    for right in [TOKEN, other] {
        answer(with(format!("Bearer {right}")).json(&case)).await.is(200);
    }
}

#[test]
fn an_address_that_others_reach_needs_a_token_that_can_t_be_guessed() {
    let bench = Workbench::with_rules();
    for address in ["0.0.0.0:0", "[::]:0"] {
        bench
            .run(&["serve", "--listen", address])
            .exits(2)
            .says(&["there is no token", "--token-file"]);
    }
    bench.run(&["serve", "--listen", "example.org:80"]).exits(2).says(&["is no address"]);
    bench.write("tokens", "short\n");
    let weak = bench.run(&["serve", "--listen", "0.0.0.0:0", "--token-file", "tokens"]).exits(2);
    assert!(
        weak.stderr.contains("5 characters") && !weak.stderr.contains("short"),
        "{}",
        weak.stderr
    );
    bench.write("tokens", "# none\n");
    bench.run(&["serve", "--token-file", "tokens"]).exits(2).says(&["holds no token"]);
    bench.run(&["serve", "--allow-host", "http://x"]).exits(2).says(&["is no name of a host"]);
    bench.run(&["serve", "-c", "none.toml"]).exits(2).says(&["no panel file"]);
    bench.run(&["serve", "-j", "0"]).exits(2);
}

#[tokio::test]
async fn a_page_of_another_site_can_neither_ask_nor_pose_as_this_server() {
    let bench = Workbench::with_rules();
    let serving = Serving::start(&bench, &["serve", "--allow-host", "venire.example.org"]);
    let case = json!({ "output": "a b" });
    let post = |name: &'static str, value: String| {
        answer(serving.request(Method::POST, "/v1/score").header(name, value).json(&case))
    };
    let port = serving.url.rsplit(':').next().unwrap().to_owned();
    for host in ["evil.example".to_owned(), format!("evil.example:{port}"), "a b".to_owned()] {
        let refused = post("host", host.clone()).await;
        assert!(matches!(refused.status, 400 | 403), "{host}: {}", refused.text);
        assert_eq!(refused.kind(), "host");
    }
    for host in
        [format!("localhost:{port}"), "venire.example.org".to_owned(), format!("[::1]:{port}")]
    {
        post("host", host).await.is(200);
    }
    for origin in
        ["http://evil.example".to_owned(), "null".to_owned(), format!("http://127.0.0.1:{}", 1)]
    {
        let refused = post("origin", origin.clone()).await.is(403);
        assert_eq!(refused.kind(), "origin", "{origin}");
        assert_eq!(refused.header("access-control-allow-origin"), "");
    }
    post("origin", serving.url.clone()).await.is(200);
    post("origin", "https://venire.example.org".to_owned()).await.is(200);
    post("sec-fetch-site", "cross-site".to_owned()).await.is(403);
    post("sec-fetch-site", "same-origin".to_owned()).await.is(200);
}

#[tokio::test]
async fn a_panel_that_can_t_reach_its_quorum_answers_undecided_and_no_number() {
    let bench = Workbench::new();
    bench.write("panel.toml", NO_QUORUM);
    let case = json!({ "output": "a b" });
    let serving = Serving::start(&bench, &["serve"]);
    let ruling = serving.post("/v1/score", &case).await.is(200).json();
    assert_eq!(
        (&ruling["decision"], &ruling["reason"]["kind"]),
        (&json!("undecided"), &json!("no_quorum"))
    );
    assert_eq!(ruling["score"], Value::Null);
    let statuses: Vec<&str> = ruling["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["provider_error", "abstained", "ok"]);
    assert_eq!(serving.post("/v1/gate", &case).await.is(200).header("venire-exit-code"), "3");
    let query = json!({ "query": ["p: a", "p: b"], "prompts": ["p: ", "p: "] });
    for (path, body, field) in
        [("/get_reward", &query, "query[0]"), ("/classify", &json!({ "input": "a" }), "input[0]")]
    {
        let refused = serving.post(path, body).await.is(503);
        assert_eq!(refused.kind(), "not_measured", "{path}");
        assert_eq!(refused.json()["error"]["field"], field);
        assert!(!refused.header("retry-after").is_empty(), "{path}");
    }
    let sent = response_of("a", json!({ "own": [1, 2] }));
    let verified = serving.post("/verify", &sent).await.is(200).json();
    assert_eq!((&verified["reward"], &verified["mask_sample"]), (&Value::Null, &json!(true)));
    assert_eq!(
        (&verified["failure_kind"], &verified["own"]),
        (&json!("no_quorum"), &json!([1, 2]))
    );
    assert!(verified["failure_reason"].as_str().unwrap().contains("2 votes"), "{verified}");
    assert!(verified.get("reward_components").is_none());
    drop(serving);
    let flags = ["serve", "--null-rewards", "--masked-reward", "0"];
    let serving = Serving::start(&bench, &flags);
    let rewards = serving.post("/get_reward", &query).await.is(200).json();
    assert_eq!(rewards["rewards"], json!([null, null]));
    let verified = serving.post("/verify", &sent).await.is(200).json();
    assert_eq!((&verified["reward"], &verified["mask_sample"]), (&json!(0.0), &json!(true)));
}

/// A response of the Responses API with its request, and more beside them.
fn response_of(text: &str, more: Value) -> Value {
    let mut sent = json!({
        "responses_create_params": { "input": [
            { "role": "system", "content": "be short" },
            { "role": "user", "content": [{ "type": "input_text", "text": "what?" }] },
        ] },
        "response": { "id": "r", "output": [
            { "type": "reasoning", "summary": [] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "first" }] },
            { "type": "function_call", "name": "f", "arguments": "{}" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] },
        ] },
    });
    sent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sent
}

/// The median accepts, and the required judge rejects what holds `bad`.
const VETO: &str = r#"
threshold = 0.5
[[judge]]
name = "near"
kind = "rule"
rule = "similarity"
metric = "rouge_l"
[[judge]]
name = "clean"
kind = "rule"
rule = "contains"
none = ["bad"]
required = true
[[judge]]
name = "some"
kind = "rule"
rule = "length"
words = { min = 1 }
"#;

#[tokio::test]
async fn what_a_required_judge_rejects_is_not_paid_for_unless_that_is_asked_for() {
    let bench = Workbench::new();
    bench.write("panel.toml", VETO);
    let query = json!({
        "query": ["say: a good thing", "say: a bad thing", "a bad thing"],
        "prompts": ["say: ", "say: ", "say: "],
        "labels": ["a good thing", "a bad thing", 7],
    });
    for (flag, rewards) in
        [("gated", [1.0, 0.0, 0.0]), ("score", [1.0, 1.0, 0.0]), ("decision", [1.0, 0.0, 0.0])]
    {
        let serving = Serving::start(&bench, &["serve", "--reward", flag]);
        let answer = serving.post("/get_reward", &query).await.is(200).json();
        let given: Vec<f64> =
            answer["rewards"].as_array().unwrap().iter().map(|r| r.as_f64().unwrap()).collect();
        assert_eq!(given, rewards, "{flag}: {answer}");
        assert_eq!(answer["extra_logs"]["accepted"], json!([1.0, 0.0, 0.0]));
        let whole = &answer["extra_logs"]["whole_query"];
        assert_eq!(*whole, json!([0.0, 0.0, 1.0]), "the last does not begin with its prompt");
        let sent = response_of("a bad thing", json!({ "expected_answer": "a bad thing" }));
        let verified = serving.post("/verify", &sent).await.is(200).json();
        assert_eq!(verified["reward"].as_f64(), Some(rewards[1]), "{flag}");
        assert_eq!(verified["reward_components"]["near"], 1.0, "the last message is judged");
        assert_eq!(verified["mask_sample"], false);
        let classes = serving.post("/classify", &json!({ "input": ["bad"] })).await.is(200).json();
        assert_eq!(classes["data"][0]["label"], "reject", "{flag}");
    }
    let serving = Serving::start(&bench, &["serve"]);
    for (body, field) in [
        (json!({ "query": ["a"], "prompts": [] }), Some("prompts")),
        (json!({ "query": ["a"], "labels": [1, 2] }), Some("labels")),
        (json!({ "query": "a" }), Some("query")),
        (json!([["a"]]), None),
        (json!({}), None),
    ] {
        let refused = serving.post("/get_reward", &body).await.is(422);
        assert_eq!(refused.json()["error"]["field"].as_str(), field, "{body}");
    }
    for body in [json!({}), json!({ "responses_create_params": {}, "response": [] }), json!([1])] {
        serving.post("/verify", &body).await.is(422);
    }
    serving.post("/classify", &json!({ "input": 7 })).await.is(422);
    assert_eq!(
        serving.post("/get_reward", &json!({ "query": [] })).await.is(200).json()["rewards"],
        json!([])
    );
}

#[tokio::test]
async fn a_classifier_s_client_reads_the_reward_as_its_last_probability() {
    let (_bench, serving) = rules();
    let body = json!({ "input": ["a b", ""], "model": "mine" });
    let answer = serving.post("/classify", &body).await.is(200).json();
    assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!("mine")));
    assert_eq!(
        answer["data"][0],
        json!({ "index": 0, "label": "accept", "probs": [0.0, 1.0], "num_classes": 2 })
    );
    assert_eq!(answer["data"][1]["label"], "reject");
    let one = serving.post("/classify", &json!({ "input": "a b" })).await.is(200).json();
    assert_eq!((one["data"].as_array().unwrap().len(), &one["model"]), (1, &json!("rules")));
}

#[cfg(unix)]
#[tokio::test]
async fn when_the_queue_is_full_the_next_is_told_when_to_come_back() {
    let bench = Workbench::new();
    bench.write("panel.toml", SLOW);
    let serving = Serving::start(&bench, &["serve", "-j", "1", "--queue", "1"]);
    let requests = (0..6).map(|_| {
        let case = json!({ "id": "0.5", "output": "x" });
        let serving = &serving;
        async move { serving.post("/v1/score", &case).await }
    });
    let answers = futures::future::join_all(requests).await;
    let of = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((of(200), of(429)), (2, 4), "one is judged and one waits");
    for refused in answers.iter().filter(|answer| answer.status == 429) {
        assert_eq!(refused.kind(), "busy");
        assert!((1..=60).contains(&refused.header("retry-after").parse::<u64>().unwrap()));
    }
    serving.post("/v1/score", &json!({ "id": "0", "output": "x" })).await.is(200);
    let metrics = serving.get("/metrics").await.is(200).text;
    assert!(metrics.contains("venire_refused_total{reason=\"busy\"} 4"), "{metrics}");
    assert!(metrics.contains("venire_rulings_total{decision=\"accept\"} 3"), "{metrics}");
    assert!(metrics.contains("venire_requests_in_hand 0"), "{metrics}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_case_that_takes_too_long_is_undecided_and_not_an_error() {
    let bench = Workbench::new();
    bench.write("panel.toml", SLOW);
    let serving = Serving::start(&bench, &["serve", "--case-time", "300ms"]);
    let ruling =
        serving.post("/v1/score", &json!({ "id": "20", "output": "x" })).await.is(200).json();
    assert_eq!(
        (&ruling["decision"], &ruling["verdicts"][0]["status"]),
        (&json!("undecided"), &json!("timeout"))
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_stopped_server_answers_what_is_in_hand_and_takes_nothing_more() {
    use rustix::process::Signal;
    let bench = Workbench::new();
    bench.write("panel.toml", SLOW);
    let serving = Serving::start(&bench, &["serve"]);
    let request =
        serving.request(Method::POST, "/v1/score").json(&json!({ "id": "1", "output": "x" }));
    let in_hand = tokio::spawn(answer(request));
    tokio::time::sleep(Duration::from_millis(400)).await;
    serving.signal(Signal::INT);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let late = serving.request(Method::GET, "/health").send().await;
    assert!(late.is_err(), "nobody listens any more");
    assert_eq!(in_hand.await.unwrap().is(200).json()["decision"], "accept");
    let (status, said) = serving.end_of_itself();
    assert_eq!(status.code(), Some(0), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn when_the_time_to_drain_runs_out_the_rest_is_told_to_come_back() {
    use rustix::process::Signal;
    let bench = Workbench::new();
    bench.write("panel.toml", SLOW);
    let serving = Serving::start(&bench, &["serve", "--drain-time", "200ms"]);
    let request =
        serving.request(Method::POST, "/v1/score").json(&json!({ "id": "50", "output": "x" }));
    let in_hand = tokio::spawn(answer(request));
    tokio::time::sleep(Duration::from_millis(400)).await;
    serving.signal(Signal::INT);
    let refused = in_hand.await.unwrap().is(503);
    assert_eq!(refused.kind(), "draining");
    let (status, said) = serving.end_of_itself();
    assert_eq!(status.code(), Some(0), "{said}");
}

#[tokio::test]
async fn an_answer_that_was_paid_for_is_kept_when_whoever_asked_has_gone() {
    let mock = Mock::start(Options::default()).await.unwrap();
    mock.script([Fault::Slow { ms: 600 }]);
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(&mock.url(), 1, ""));
    let serving = Serving::start_with(&bench, &["serve"], &[("OPENAI_API_KEY", "k")]);
    let case = json!({ "input": "q", "output": "[[quality:0.8]]" });
    let impatient = serving.request(Method::POST, "/v1/score").timeout(Duration::from_millis(200));
    assert!(impatient.json(&case).send().await.is_err());
    tokio::time::sleep(Duration::from_millis(800)).await;
    let ruling = serving.post("/v1/score", &case).await.is(200).json();
    assert_eq!(
        (&ruling["decision"], &ruling["verdicts"][0]["cached"]),
        (&json!("accept"), &json!(true))
    );
    let metrics = serving.get("/metrics").await.text;
    assert!(metrics.contains("venire_rulings_total{decision=\"accept\"} 2"), "{metrics}");
}

#[tokio::test]
async fn faults_of_model_servers_are_statuses_in_rulings() {
    let mock = Mock::start(Options::default()).await.unwrap();
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(&mock.url(), 1, "timeout = \"4s\""));
    let serving = Serving::start_with(&bench, &["serve"], &[("OPENAI_API_KEY", "k")]);
    let faults = [
        Fault::Status { status: 401, message: None },
        Fault::Nan,
        Fault::NoChoices,
        Fault::Html,
        Fault::EmptyBody,
        Fault::Quota,
    ];
    for (i, fault) in faults.into_iter().enumerate() {
        let said = format!("{fault:?}");
        mock.script((0..8).map(|_| fault.clone()));
        let case = json!({ "input": "q", "output": format!("{i}") });
        let answer = serving.post("/v1/score", &case).await;
        assert_eq!(answer.status, 200, "{said}: {}", answer.text);
        let ruling = answer.json();
        assert_eq!(ruling["decision"], "undecided", "{said}: {ruling}");
        // What is left of the script is another case's.
        reset(&mock).await;
    }
}

async fn reset(mock: &Mock) {
    reqwest::Client::new().post(format!("{}/_reset", mock.url())).send().await.unwrap();
}

#[tokio::test]
async fn runs_are_listed_filtered_and_shown_as_the_program_shows_them() {
    let (bench, serving) = rules();
    assert_eq!(serving.get("/v1/runs").await.is(200).json(), json!({ "runs": [], "total": 0 }));
    let serving = {
        drop(serving);
        bench.write("cases.csv", "id,input,output\na/1,q,one two\nb,q,\nc,q,a b c d e f\n二,q,x\n");
        bench.run(&["run", "cases.csv"]).exits(0);
        bench.run(&["run", "cases.csv", "--limit", "1"]).exits(0);
        Serving::start(&bench, &["serve", "--no-panel"])
    };
    let runs = serving.get("/v1/runs").await.is(200).json();
    assert_eq!(
        (runs["total"].as_u64(), &runs["runs"][0]["summary"]["cases"]),
        (Some(2), &json!(1))
    );
    let part = serving.get("/v1/runs?limit=1&offset=1").await.is(200).json();
    let id = part["runs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(part["runs"].as_array().unwrap().len(), 1);
    assert_eq!(serving.get(&format!("/v1/runs/{id}")).await.is(200).json()["state"], "finished");
    let cases =
        serving.get(&format!("/v1/runs/{id}/cases?decision=accept&limit=1")).await.is(200).json();
    assert_eq!((cases["total"].as_u64(), &cases["cases"][0]["case"]), (Some(2), &json!("a/1")));
    let outvoted = serving.get(&format!("/v1/runs/{id}/cases?outvoted=true")).await.is(200).json();
    assert_eq!(outvoted["total"], 2, "each of the two rules alone, once");
    let one = serving.get(&format!("/v1/runs/{id}/cases/a%2F1")).await.is(200).json();
    let shown = bench.run(&["show", &id, "a/1", "--json"]).exits(0).json();
    assert_eq!(one, shown);
    serving.get(&format!("/v1/runs/{id}/cases/%E4%BA%8C")).await.is(200);
    assert_eq!(serving.get(&format!("/v1/runs/{id}/cases/none")).await.is(404).kind(), "not_found");
    for query in ["decision=maybe", "min_spread=2", "judge=short", "limit=1001", "offset=-1"] {
        let refused = serving.get(&format!("/v1/runs/{id}/cases?{query}")).await.is(400);
        assert_eq!(refused.kind(), "bad_query", "{query}");
    }
    serving.post("/v1/score", &json!({ "output": "a" })).await.is(404);
}

#[tokio::test]
async fn the_openapi_document_names_what_is_there_and_nothing_else() {
    let (_bench, serving) = rules();
    let document = serving.get("/openapi.json").await.is(200).json();
    let text = document.to_string();
    for (at, _) in text.match_indices("\"$ref\":\"") {
        let reference = text[at + 8..].split('"').next().unwrap();
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 18, "{:?}", paths.keys());
    for (path, methods) in paths {
        let (method, operation) = methods.as_object().unwrap().iter().next().unwrap();
        assert!(operation["operationId"].is_string() && operation["responses"]["200"].is_object());
        let filled = path.replace("{run}", "none").replace("{case}", "none");
        let method = method.to_uppercase().parse().unwrap();
        let answer = answer(serving.request(method, &filled)).await;
        let documented = &operation["responses"][answer.status.to_string()];
        assert!(documented.is_object(), "{path} answered {}: {}", answer.status, answer.text);
    }
    assert_eq!(document["components"]["schemas"]["NewCase"]["required"], json!([]));
}

/// A server within this process, with limits that no flag sets.
async fn within(
    limits: venire::serve::http::Limits,
    more: axum::Router<std::sync::Arc<venire::serve::Service>>,
) -> (String, tokio_util::sync::CancellationToken) {
    use venire::serve::http::{Options, Server, Service, router_with};
    let options = Options { limits, ..Options::new("127.0.0.1:0".parse().unwrap()) };
    let none = std::path::Path::new("/nonexistent");
    let service = std::sync::Arc::new(Service::new(options, None, none, none).unwrap());
    let server = Server::bind(service.clone()).await.unwrap();
    let address = server.address().to_string();
    let stop = tokio_util::sync::CancellationToken::new();
    let router = router_with(service, more);
    tokio::spawn(server.run(router, stop.clone(), stop.clone()));
    (address, stop)
}

#[tokio::test]
async fn a_client_that_sends_slowly_is_let_go_and_holds_up_nobody() {
    let time = Duration::from_millis(300);
    let limits =
        venire::serve::http::Limits { read_time: time, connections: 2, ..Default::default() };
    let (address, stop) = within(limits, axum::Router::new()).await;
    for head in [
        "GET /health HT".to_owned(),
        format!(
            "POST /v1/reviews/x HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{{"
        ),
    ] {
        let mut slow = Vec::new();
        for _ in 0..2 {
            let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            slow.push(stream);
        }
        // Both connections are taken until the slow ones are let go.
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let health =
            client.get(format!("http://{address}/health")).timeout(Duration::from_secs(10));
        assert_eq!(health.send().await.unwrap().status(), 200);
        for mut stream in slow {
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said).await;
            assert!(said.is_empty() || said.starts_with("HTTP/1.1 408 "), "{said}");
        }
    }
    stop.cancel();
}

#[tokio::test]
async fn routes_of_another_module_stand_behind_the_same_guards() {
    let more = axum::Router::new()
        .route("/more", axum::routing::get(async || "more"))
        .route("/panics", axum::routing::get(async || -> &'static str { panic!("a fault") }));
    let (address, stop) = within(Default::default(), more).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = |path: &str, host: &str| {
        answer(client.get(format!("http://{address}{path}")).header("host", host.to_owned()))
    };
    assert_eq!(get("/more", &address).await.is(200).text, "more");
    assert_eq!(get("/more", "evil.example").await.is(403).kind(), "host");
    assert_eq!(get("/panics", &address).await.is(500).kind(), "internal");
    get("/more", &address).await.is(200);
    stop.cancel();
}
