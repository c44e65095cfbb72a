//! The corpus of replies: each has one right outcome, and a reader that guesses fails here.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use venire::judge::llm::{Shape, reply};
use venire::provider::{ChatReply, FinishReason};
use venire::verdict::{Status, Usage};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    shape: Shape,
    reply: String,
    #[serde(default = "stop")]
    finish: FinishReason,
    outcome: Outcome,
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    status: Status,
    score: Option<f64>,
    raw: Option<Value>,
    criteria: Option<BTreeMap<String, Value>>,
}

fn stop() -> FinishReason {
    FinishReason::Stop
}

fn corpus() -> Vec<(String, Entry)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/replies");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    let mut entries = Vec::new();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for (i, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let at = format!("{file}:{}", i + 1);
            let entry = serde_json::from_str(line).unwrap_or_else(|e| panic!("{at}: {e}"));
            entries.push((at, entry));
        }
    }
    entries
}

fn chat_reply(text: &str, finish: FinishReason) -> ChatReply {
    ChatReply {
        text: text.to_owned(),
        reasoning: None,
        finish,
        logprobs: None,
        usage: Usage::default(),
        model: None,
        request_id: None,
        latency_ms: 0,
        attempts: 1,
        cost_usd: None,
        downgraded: None,
        cached: false,
    }
}

/// What is wrong with how an entry is read, if anything.
fn fault(entry: &Entry) -> Option<String> {
    let outcome = &entry.outcome;
    let reply = chat_reply(&entry.reply, entry.finish.clone());
    let reading = match reply::read(&reply, &entry.shape) {
        Ok(reading) => reading,
        Err(failure) if failure.status == outcome.status => return None,
        Err(failure) => return Some(format!("{}: {}", failure.status, failure.message)),
    };
    let read: BTreeMap<String, Value> = reading
        .answers
        .iter()
        .map(|a| (a.name.clone(), a.raw.clone().unwrap_or(Value::Null)))
        .collect();
    if outcome.status != Status::Ok {
        return Some(format!("ok: {read:?}"));
    }
    if let Some(criteria) = &outcome.criteria {
        return (&read != criteria).then(|| format!("read {read:?}"));
    }
    let answer = &reading.answers[0];
    let score = answer.score.map(venire::score::Score::get);
    let near = score.zip(outcome.score).is_some_and(|(a, b)| (a - b).abs() < 1e-9);
    (!near || answer.raw != outcome.raw).then(|| format!("read {read:?}, score {score:?}"))
}

#[test]
fn every_reply_of_the_corpus_has_its_one_right_outcome() {
    let corpus = corpus();
    assert!(corpus.len() >= 200, "only {} replies were found", corpus.len());
    let faults: Vec<String> = corpus
        .iter()
        .filter_map(|(at, entry)| {
            let fault = fault(entry)?;
            Some(format!(
                "{at} `{}`: expected {}, since {}; found {fault}",
                entry.name, entry.outcome.status, entry.why
            ))
        })
        .collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), corpus.len(), faults.join("\n"));
}

#[test]
fn every_mode_and_outcome_of_reading_is_in_the_corpus() {
    let corpus = corpus();
    let mut names = std::collections::BTreeSet::new();
    for (at, entry) in &corpus {
        assert!(names.insert(&entry.name), "{at}: a second reply is named `{}`", entry.name);
    }
    for status in [
        Status::Ok,
        Status::Abstained,
        Status::Unparseable,
        Status::OutOfRange,
        Status::Truncated,
        Status::Refused,
    ] {
        assert!(corpus.iter().any(|(_, e)| e.outcome.status == status), "{status}");
    }
    let modes: std::collections::HashSet<_> =
        corpus.iter().map(|(_, e)| std::mem::discriminant(&e.shape)).collect();
    assert_eq!(modes.len(), 6);
}

#[test]
fn a_reply_that_was_cut_off_gives_a_score_in_no_case() {
    for (at, mut entry) in corpus() {
        entry.finish = FinishReason::Length;
        entry.outcome.status = Status::Truncated;
        assert_eq!(fault(&entry), None, "{at} `{}`", entry.name);
    }
}
