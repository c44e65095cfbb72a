//! Rule judges, from configuration to verdict.

mod any_text;
mod configuration;
mod content;
mod hostile;
mod precision;
mod reference;
mod structure;

use std::time::Duration;

use serde_json::{Value, json};

use super::RuleSpec;
use crate::case::Case;
use crate::judge::{BoxedJudge, BuildContext, BuildError};
use crate::provider::{CallContext, Client};
use crate::verdict::{Status, Verdict};

fn spec(options: Value) -> RuleSpec {
    crate::config::from_value(options).unwrap_or_else(|problem| panic!("{problem}"))
}

fn try_build(options: Value) -> Result<BoxedJudge, BuildError> {
    spec(options).build(&BuildContext::new("tests/fixtures/rule", Client::default()))
}

fn build(options: Value) -> BoxedJudge {
    try_build(options).unwrap_or_else(|error| panic!("{error}"))
}

/// The message of a build that must fail.
fn refused(options: Value) -> String {
    try_build(options.clone()).map(|_| panic!("{options} was built")).unwrap_err().to_string()
}

fn run(judge: &BoxedJudge, case: &Case) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = CallContext::standalone(Duration::from_secs(60));
    runtime.block_on(judge.judge(case, &context))
}

fn judge(options: Value, case: &Case) -> Verdict {
    run(&build(options), case)
}

/// The verdict on an output alone.
fn on(options: Value, output: &str) -> Verdict {
    judge(options, &Case::new("", output))
}

fn answer(input: &str, output: &str, expected: &str) -> Case {
    Case { expected: Some(expected.into()), ..Case::new(input, output) }
}

#[track_caller]
fn score(verdict: &Verdict) -> f64 {
    assert_eq!(verdict.status, Status::Ok, "{:?}", verdict.detail);
    verdict.score.unwrap().get()
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

#[track_caller]
fn abstains(verdict: &Verdict, why: &str) {
    assert_eq!(verdict.status, Status::Abstained, "{verdict:?}");
    let detail = verdict.detail.as_deref().unwrap();
    assert!(detail.contains(why), "{detail}");
}

/// One sensible configuration of every rule that this build has.
fn every_rule() -> Vec<Value> {
    let mut rules = vec![
        json!({"rule": "length", "words": {"min": 5, "max": 20}, "characters": {"min": 3}, "sentences": {"max": 3}, "paragraphs": {"max": 2}, "lines": {"min": 1}}),
        json!({"rule": "contains", "all": ["a"], "any": ["b", "é"], "none": ["中"], "whole_words": true}),
        json!({"rule": "regex", "patterns": ["a+", "(?i)b$"], "multi_line": true}),
        json!({"rule": "regex", "pattern": ".*", "full_match": true, "mode": "any"}),
        json!({"rule": "equals"}),
        json!({"rule": "equals", "strip_articles": true, "any_line": true}),
        json!({"rule": "equals", "mode": "exact"}),
        json!({"rule": "equals", "mode": "numeric", "last_number": true, "references": ["42"], "tolerance": {"relative": 0.1}}),
        json!({"rule": "similarity", "metric": "jaccard", "shingle": 2}),
        json!({"rule": "similarity", "metric": "edit"}),
        json!({"rule": "similarity", "metric": "rouge_l", "min": 0.5}),
        json!({"rule": "similarity", "metric": "bleu", "against": "input"}),
        json!({"rule": "similarity", "metric": "chrf", "min": 0.5, "graded": false}),
        json!({"rule": "json", "paths": [{"path": "/a", "equals": 1}, {"path": "$..b"}]}),
        json!({"rule": "markdown", "headings": ["A", "B"], "in_order": true, "table": true, "list": false, "no_html": true, "closed_fences": true, "max_heading_level": 2, "no_skipped_levels": true, "items": {"max": 3}}),
        json!({"rule": "readability", "grade": {"max": 8}, "ease": {"min": 60}}),
        json!({"rule": "repetition", "ngrams": 0.2, "sentences": 0.1, "lines": 0.1}),
        json!({"rule": "requirements"}),
        json!({"rule": "refusal"}),
        json!({"rule": "pii"}),
        json!({"rule": "secrets"}),
        json!({"rule": "injection", "claims": true, "allow_quotes": true}),
        json!({"rule": "code", "language": "json"}),
        json!({"rule": "code", "language": "toml"}),
        json!({"rule": "code", "language": "yaml", "extract": true}),
        json!({"rule": "composite", "parts": [
            {"check": {"rule": "refusal"}, "weight": 2},
            {"check": {"rule": "length", "words": {"min": 1}}, "required": true},
        ]}),
    ];
    if cfg!(feature = "language") {
        rules.push(json!({"rule": "language", "expect": "en"}));
    }
    if cfg!(feature = "syntax") {
        for language in ["python", "javascript", "rust"] {
            rules.push(json!({"rule": "code", "language": language}));
        }
    }
    if cfg!(feature = "schema") {
        rules.push(json!({"rule": "json", "schema": {"type": "object", "required": ["a"]}}));
    }
    rules
}
