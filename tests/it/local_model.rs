//! A real small model behind a real OpenAI-compatible server: that every mode gets through,
//! that what is spent is counted, and that what goes wrong is said. Nothing here asks whether
//! the model judges well.
//!
//! `scripts/test-local-model` starts the server and names it in the environment; without it
//! each test says that it was skipped.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::workbench::{Ran, Workbench};

const URL: &str = "VENIRE_TEST_MODEL_URL";
const KEY: &str = "VENIRE_TEST_MODEL_KEY";
const NAME: &str = "VENIRE_TEST_MODEL_NAME";

/// The variable that the panels read the key from.
const KEY_VARIABLE: &str = "LOCAL_MODEL_KEY";

/// Written out here, so that a status added to the code is added to the contract too.
const STATUSES: [&str; 12] = [
    "ok",
    "abstained",
    "unparseable",
    "out_of_range",
    "truncated",
    "refused",
    "timeout",
    "provider_error",
    "rate_limited",
    "budget",
    "cancelled",
    "internal",
];

const CASES: &str = r#"{"id":"right","input":"What is the capital of France?","output":"Paris.","baseline":"Berlin, I think."}
{"id":"wrong","input":"What is the capital of France?","output":"Berlin, I think.","baseline":"Paris."}
{"id":"中文","input":"法国的首都是哪里？","output":"巴黎。","baseline":"柏林。"}
"#;

/// Puts the question right before the answer: else a model as small as this one begins with
/// anything but yes or no.
const QUESTION_LAST: &str = r#"template = """
Asked: {{ input }}

The output to judge: {{ output }}

{{ criterion }}"""
criterion = "Is this a right answer to the question?""#;

/// Writes on until `max_tokens`.
const ENDLESS: &str = "reasoning = true\nresponse_format = \"text\"\n\
                       extra_body = { ignore_eos = true }";

struct Model {
    url: String,
    key: String,
    name: String,
}

/// The model server, or a loud word that there is none.
fn model() -> Option<Model> {
    let Ok(url) = std::env::var(URL) else {
        eprintln!("SKIPPED: no real model: `{URL}` is not set; run scripts/test-local-model");
        return None;
    };
    Some(Model { url, key: std::env::var(KEY).unwrap(), name: std::env::var(NAME).unwrap() })
}

impl Model {
    /// A panel of one judge on this server.
    fn panel(&self, mode: &str, more: &str) -> String {
        self.panel_for(&self.name, mode, more)
    }

    fn panel_for(&self, name: &str, mode: &str, more: &str) -> String {
        let timeout = if more.contains("timeout") { "" } else { "timeout = \"5m\"" };
        format!(
            "name = \"real\"\nthreshold = 0.5\n[[judge]]\nname = \"small\"\nkind = \"llm\"\n\
             model = \"openai/{name}\"\nbase_url = \"{}/v1\"\napi_key_env = \"{KEY_VARIABLE}\"\n\
             mode = \"{mode}\"\n{timeout}\n{more}\n",
            self.url
        )
    }

    fn bench(&self, mode: &str, more: &str) -> Workbench {
        let bench = Workbench::new();
        bench.write("panel.toml", self.panel(mode, more));
        bench.write("cases.jsonl", CASES);
        bench
    }

    fn run(&self, bench: &Workbench, arguments: &[&str]) -> Ran {
        Self::run_with_key(bench, &self.key, arguments)
    }

    fn run_with_key(bench: &Workbench, key: &str, arguments: &[&str]) -> Ran {
        Ran::of(bench.command(arguments).env(KEY_VARIABLE, key).output().unwrap())
    }

    /// Judges the bench's cases, holds the outcome to what is true of every run on this server,
    /// and returns the summary and the verdicts.
    #[track_caller]
    fn judge(&self, bench: &Workbench) -> (Value, Vec<Value>) {
        let ran = self.run(bench, &["run", "cases.jsonl", "-j", "1", "--json", "-o", "v.jsonl"]);
        assert!(matches!(ran.code, 0 | 3), "exit {}: {}", ran.code, ran.stderr);
        let summary = ran.json();
        let rows = bench.rows("v.jsonl");
        let cases = bench.read("cases.jsonl").lines().count();
        assert_eq!(summary["cases"], cases);
        assert_eq!(summary["verdicts"], cases);
        let counted: u64 =
            summary["statuses"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, cases as u64, "{summary}");
        assert_eq!(rows.len(), cases);
        for row in &rows {
            let status = row["status"].as_str().unwrap();
            assert!(STATUSES.contains(&status), "{row}");
            match row["score"].as_f64() {
                Some(score) => assert!(status == "ok" && (0.0..=1.0).contains(&score), "{row}"),
                None => assert!(status != "ok" && row["detail"].is_string(), "{row}"),
            }
        }
        (summary, rows)
    }

    /// Judges in a mode, where every question is answered by the model in one way or another.
    #[track_caller]
    fn judge_in(&self, mode: &str, more: &str) -> Vec<Value> {
        let bench = self.bench(mode, more);
        let (summary, rows) = self.judge(&bench);
        let each = if mode == "pairwise" { 2 } else { 1 };
        assert!(summary["calls"].as_u64().unwrap() >= each * rows.len() as u64, "{summary}");
        for row in &rows {
            assert!(row["tokens_in"].as_u64().unwrap() > 20, "{row}");
            assert!(row["tokens_out"].as_u64().unwrap() > 0, "{row}");
            assert!(row["latency_ms"].as_u64().unwrap() > 0, "{row}");
            assert!(row["attempts"].as_u64().unwrap() >= each, "{row}");
            assert_eq!(row["model_returned"], self.name.as_str(), "{row}");
            assert_eq!(row["cached"], false, "{row}");
            assert_eq!(row["cost_usd"], Value::Null, "a model without a price: {row}");
            assert_eq!(row["notes"]["model_mismatch"], Value::Null, "{row}");
            // This server takes JSON Schemas, so nothing less may be asked for.
            assert_eq!(row["notes"]["response_format"], Value::Null, "{row}");
        }
        assert!(rows.iter().any(|row| row["status"] == "ok"), "nothing was scored: {rows:#?}");
        rows
    }

    /// The completion tokens so far of the request that the server works on; `None` when it
    /// works on none.
    async fn decoded(&self) -> Option<u64> {
        let url = format!("{}/slots", self.url);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let reply = client.get(url).bearer_auth(&self.key).send().await.unwrap();
        let slots: Value = serde_json::from_str(&reply.text().await.unwrap()).unwrap();
        let slot = &slots[0];
        slot["is_processing"]
            .as_bool()
            .unwrap()
            .then(|| slot["next_token"][0]["n_decoded"].as_u64().unwrap_or(0))
    }

    async fn wait_until_it_writes(&self) {
        let started = Instant::now();
        while self.decoded().await.unwrap_or(0) == 0 {
            assert!(started.elapsed() < Duration::from_secs(60), "the server does not begin");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the server works on nothing. It looks for a client that hung up only when
    /// nothing else was answered for a second, so asking it more often would keep it busy.
    async fn wait_until_it_is_free(&self, at_most: Duration) -> Duration {
        let started = Instant::now();
        loop {
            tokio::time::sleep(Duration::from_millis(1_300)).await;
            let Some(decoded) = self.decoded().await else { return started.elapsed() };
            assert!(started.elapsed() < at_most, "at work after {at_most:?}: {decoded} tokens");
        }
    }
}

/// What was scored.
fn ok(rows: &[Value]) -> impl Iterator<Item = &Value> {
    rows.iter().filter(|row| row["status"] == "ok")
}

#[test]
fn yes_no_reads_log_probabilities_and_a_second_run_makes_no_call() {
    let Some(model) = model() else { return };
    let bench = model.bench("yes_no", QUESTION_LAST);
    let (first, rows) = model.judge(&bench);
    assert_eq!(first["calls"], 3, "one token, one call: {first}");
    for row in &rows {
        assert_eq!(row["status"], "ok", "{row}");
        assert_eq!(row["notes"]["score_source"], "logprobs", "{row}");
        let mass = row["notes"]["answer_mass"].as_f64().unwrap();
        assert!(mass > 0.0 && mass <= 1.0, "{row}");
        let score = row["score"].as_f64().unwrap();
        assert!(score > 0.0 && score < 1.0, "a probability, and no word: {row}");
        assert!(row["tokens_out"].as_u64().unwrap() <= 4, "{row}");
    }
    let (second, again) = model.judge(&bench);
    assert_eq!((&second["calls"], &second["cached"]), (&Value::from(0), &Value::from(3)));
    for (row, again) in rows.iter().zip(&again) {
        assert_eq!(again["cached"], true, "{again}");
        for field in ["case", "score", "raw", "tokens_in", "model_returned", "fingerprint"] {
            assert_eq!(row[field], again[field], "{field}");
        }
    }
    // The same question put to the model itself once more has the same answer.
    let ran = model.run(
        &bench,
        &["run", "cases.jsonl", "--no-cache", "--limit", "1", "--json", "-o", "n.jsonl"],
    );
    assert_eq!(ran.exits(0).json()["calls"], 1);
    let fresh = bench.rows("n.jsonl")[0]["score"].as_f64().unwrap();
    assert!((fresh - rows[0]["score"].as_f64().unwrap()).abs() < 1e-3, "{fresh}");
}

#[test]
fn yes_no_in_the_default_words_gets_an_answer_from_one_source_or_the_other() {
    let Some(model) = model() else { return };
    for row in ok(&model.judge_in("yes_no", "")) {
        let source = row["notes"]["score_source"].as_str().unwrap();
        assert!(["logprobs", "text"].contains(&source), "{row}");
        assert_eq!(source == "logprobs", row["notes"]["answer_mass"].is_number(), "{row}");
    }
}

#[test]
fn score_is_a_level_or_an_expectation_over_levels() {
    let Some(model) = model() else { return };
    for row in ok(&model.judge_in("score", "scale = \"1-5\"\nmax_tokens = 200")) {
        let raw = row["raw"].as_f64().unwrap();
        assert!((1.0..=5.0).contains(&raw), "{row}");
        assert!((row["score"].as_f64().unwrap() - (raw - 1.0) / 4.0).abs() < 1e-9, "{row}");
        if row["notes"]["score_source"] == "text" {
            assert!(raw.fract().abs() < 1e-9, "{row}");
        }
    }
}

#[test]
fn rubric_scores_each_criterion_and_computes_the_whole() {
    let Some(model) = model() else { return };
    let rubric = "name = \"two\"\nscale = \"1-5\"\n\
                  [[criteria]]\nname = \"truth\"\nweight = 3\ndescription = \"It is true.\"\n\
                  [[criteria]]\nname = \"language\"\nweight = 1\ndescription = \"It reads well.\"\n";
    let bench = model.bench("rubric", "rubric = \"rubric.toml\"\nmax_tokens = 200");
    bench.write("rubric.toml", rubric);
    let (_, rows) = model.judge(&bench);
    assert!(ok(&rows).count() > 0, "nothing was scored: {rows:#?}");
    for row in ok(&rows) {
        assert_eq!(row["notes"]["score_source"], "text", "{row}");
        assert!(row["tokens_in"].as_u64().unwrap() > 20, "{row}");
        let part = |name: &str| row["criteria"][name].as_f64();
        if let (Some(truth), Some(language)) = (part("truth"), part("language")) {
            let whole = (3.0 * truth + language) / 4.0;
            assert!((row["score"].as_f64().unwrap() - whole).abs() < 1e-9, "{row}");
        }
    }
}

#[test]
fn choice_scores_are_those_of_the_labels() {
    let Some(model) = model() else { return };
    let labels = "choice_scores = { wrong = 0.0, vague = 0.4, right = 1.0 }\nmax_tokens = 200";
    for row in ok(&model.judge_in("choice", labels)) {
        let expected = match row["raw"].as_str().unwrap() {
            "wrong" => 0.0,
            "vague" => 0.4,
            "right" => 1.0,
            _ => panic!("no label of ours: {row}"),
        };
        assert_eq!(row["score"], expected, "{row}");
    }
}

#[test]
fn checklist_answers_each_question() {
    let Some(model) = model() else { return };
    let questions = "questions = [{ text = \"Is it true?\", weight = 3 }, \
                     { text = \"Is it short?\" }]\nmax_tokens = 200";
    for row in ok(&model.judge_in("checklist", questions)) {
        let answers = row["criteria"].as_object().unwrap();
        assert_eq!(answers.len(), 2, "{row}");
        for answer in answers.values().filter_map(Value::as_f64) {
            assert!(answer == 0.0 || answer == 1.0, "{row}");
        }
    }
}

#[test]
fn pairwise_asks_in_both_orders_and_reports_that_this_model_takes_the_first() {
    let Some(model) = model() else { return };
    let rows = model.judge_in("pairwise", "max_tokens = 200");
    for row in ok(&rows) {
        assert!(row["notes"]["position_consistent"].is_boolean(), "{row}");
        assert!(row["notes"]["picked_first"].as_u64().unwrap() <= 2, "{row}");
        assert!(!row["raw"]["given"].is_null() && !row["raw"]["swapped"].is_null(), "{row}");
    }
    // A model of 135 million parameters prefers a place, whatever stands there.
    assert!(
        ok(&rows).any(|row| row["notes"]["position_consistent"] == false),
        "a position bias that was measured before is not reported: {rows:#?}"
    );
}

#[test]
fn a_wrong_key_is_refused_once_and_the_variable_is_named() {
    let Some(model) = model() else { return };
    let bench = model.bench("yes_no", "");
    let wrong = "sk-wrong-0123456789";
    let arguments = ["run", "cases.jsonl", "-j", "1", "--json", "-o", "v.jsonl"];
    let ran = Model::run_with_key(&bench, wrong, &arguments).exits(3);
    assert_eq!(ran.json()["statuses"]["provider_error"], 3, "{}", ran.stdout);
    for row in bench.rows("v.jsonl") {
        let detail = row["detail"].as_str().unwrap();
        assert!(detail.contains("401") && detail.contains(KEY_VARIABLE), "{detail}");
        assert_eq!(row["attempts"], 1, "asking again does not help: {row}");
    }
    let shown = Model::run_with_key(&bench, wrong, &["run", "cases.jsonl"]).exits(3);
    let all = format!("{}{}", shown.stdout, shown.stderr);
    assert!(all.contains(KEY_VARIABLE), "a person is not told which key: {all}");
    assert_eq!(bench.rows("v.jsonl")[0]["cost_usd"].to_string(), "null");
    assert!(!all.contains(wrong) && !bench.read("v.jsonl").contains(wrong));
    let store = std::fs::read(bench.path(".venire/store.db")).unwrap();
    assert!(!store.windows(wrong.len()).any(|w| w == wrong.as_bytes()), "the key is in the store");
}

#[test]
fn a_ping_reaches_the_model_and_a_refused_one_is_no_success() {
    let Some(model) = model() else { return };
    let bench = model.bench("yes_no", "");
    let ran = model.run(&bench, &["check", "--ping"]).exits(0);
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains(&format!("`{}` answered", model.name)), "{all}");
    let ran = Model::run_with_key(&bench, "sk-wrong", &["check", "--ping"]).exits(3);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains(KEY_VARIABLE), "{}", ran.stderr);
}

#[test]
fn a_prompt_over_the_context_is_an_error_with_a_hint() {
    let Some(model) = model() else { return };
    let bench = model.bench("yes_no", "");
    let long = "one more sentence that says nothing. ".repeat(2_000);
    let case = serde_json::json!({ "id": "long", "input": "Say little.", "output": long });
    bench.write("cases.jsonl", format!("{case}\n"));
    let (summary, rows) = model.judge(&bench);
    assert_eq!(summary["statuses"]["provider_error"], 1, "{summary}");
    let detail = rows[0]["detail"].as_str().unwrap();
    assert!(detail.contains("does not fit in the context"), "{detail}");
    assert!(detail.contains("hint: shorten the case"), "{detail}");
    assert!(detail.len() < 700, "the case is quoted: {detail}");
}

#[tokio::test]
async fn a_time_out_is_told_and_sets_the_server_free() {
    let Some(model) = model() else { return };
    let bench = model.bench("score", &format!("{ENDLESS}\nmax_tokens = 3000\ntimeout = \"50ms\""));
    let (summary, rows) = model.judge(&bench);
    assert_eq!(summary["statuses"]["timeout"], 3, "{summary}");
    for row in &rows {
        assert!(row["latency_ms"].as_u64().unwrap() < 5_000, "{row}");
        assert!(row["detail"].as_str().unwrap().contains("hint: raise `timeout`"), "{row}");
    }
    // Writing 3000 tokens would take a minute.
    model.wait_until_it_is_free(Duration::from_secs(20)).await;
}

#[test]
fn an_answer_under_another_name_is_noted() {
    let Some(model) = model() else { return };
    let bench = model.bench("yes_no", "");
    bench.write("panel.toml", model.panel_for("gpt-4.1-mini", "yes_no", QUESTION_LAST));
    let (_, rows) = model.judge(&bench);
    for row in &rows {
        assert_eq!(row["model_returned"], model.name.as_str(), "{row}");
        let note = row["notes"]["model_mismatch"].as_str().unwrap();
        assert!(note.contains("gpt-4.1-mini") && note.contains(&model.name), "{row}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_second_ctrl_c_leaves_at_once_frees_the_server_and_can_be_resumed() {
    let Some(model) = model() else { return };
    let bench = model.bench("score", &format!("{ENDLESS}\nmax_tokens = 400"));
    bench.write("cases.jsonl", CASES.lines().next().unwrap());
    model.wait_until_it_is_free(Duration::from_secs(60)).await;
    let mut child = start(&bench, &model, &["run", "cases.jsonl", "-q", "--json"]);
    model.wait_until_it_writes().await;
    interrupt(&child);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(child.try_wait().unwrap().is_none(), "the call in flight was not waited for");
    interrupt(&child);
    let left = Instant::now();
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    assert!(left.elapsed() < Duration::from_secs(2), "left after {:?}", left.elapsed());
    assert_eq!(status.code(), Some(130));
    // Less than the 400 tokens take.
    model.wait_until_it_is_free(Duration::from_secs(4)).await;

    let resumed = model.run(&bench, &["run", "--resume", "--json", "-o", "v.jsonl"]).exits(3);
    let summary = resumed.json();
    assert_eq!(summary["finished"], true, "{summary}");
    assert_eq!((&summary["cases"], &summary["calls"]), (&Value::from(1), &Value::from(1)));
    let row = &bench.rows("v.jsonl")[0];
    assert_eq!(row["status"], "truncated", "cut at the limit, so no score: {row}");
    assert_eq!(row["tokens_out"], 400, "{row}");
}

fn start(bench: &Workbench, model: &Model, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_venire"))
        .current_dir(bench.path(""))
        .args(arguments)
        .env(KEY_VARIABLE, &model.key)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[cfg(target_os = "linux")]
fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}
