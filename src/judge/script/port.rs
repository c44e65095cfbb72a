//! Answers as other evaluation tools want them, and how to write the same here.
//!
//! Only for messages: such an answer stays unreadable, since what its author meant by
//! `pass` beside a `score`, or by a word, can't be known.

use serde_json::Value;

/// What a key of another tool's answer is here.
fn key(name: &str) -> Option<&'static str> {
    Some(match name {
        "pass" | "passed" | "success" | "is_successful" | "ok" => {
            "`score` (1 for a pass, 0 for a fail)"
        }
        "value" | "result" | "grade" | "rating" | "Score" => {
            "`score`, a number on the judge's `scale`"
        }
        "reason" | "explanation" | "rationale" | "comment" | "comments" | "critique"
        | "justification" | "message" | "reasoning" | "details" => {
            "`feedback` (a text or a list of texts)"
        }
        "componentResults" | "component_results" | "namedScores" | "named_scores" | "scores"
        | "metrics" | "score_breakdown" | "breakdown" | "subscores" => {
            "`criteria` (an object of name and score)"
        }
        "error" | "skipped" | "skip" => {
            "`abstain` with the reason, or no answer and an exit code other than 0"
        }
        "metadata" | "meta" | "extra" | "evaluation_model" => "`notes` (an object)",
        "cost" | "evaluation_cost" | "evaluationCost" => "`cost_usd`",
        "threshold" => "the panel's own `threshold`: leave it out",
        "name" | "metric" | "key" => "the judge's `name` in the panel: leave it out",
        _ => return None,
    })
}

/// How to write an unreadable answer so that it is read; empty where nothing is known.
pub(super) fn hint(text: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return String::new() };
    match value {
        Value::Object(table) => {
            let parts: Vec<String> = table
                .keys()
                .filter_map(|name| key(name).map(|here| format!("`{name}` is {here}")))
                .collect();
            if parts.is_empty() { String::new() } else { format!("; here {}", parts.join(", ")) }
        }
        Value::Bool(pass) => {
            format!("; here a pass or fail alone is {{\"score\": {}}}", u8::from(pass))
        }
        Value::Number(number) => format!("; here a score alone is {{\"score\": {number}}}"),
        Value::Array(_) => "; here one case has one answer: give parts in `criteria`".into(),
        _ => String::new(),
    }
}

/// What to write for a score that is not a number.
pub(super) fn score_hint(written: &Value) -> String {
    match written {
        Value::Bool(pass) => format!("; write {} for {pass}", u8::from(*pass)),
        Value::String(text) if text.trim().parse::<f64>().is_ok() => {
            "; write it without quotes".into()
        }
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "pass" | "passed" | "yes" | "true" | "correct" | "c" => "; write 1 for it".into(),
            "fail" | "failed" | "no" | "false" | "incorrect" | "i" => "; write 0 for it".into(),
            _ => "; words need a number each, as on the judge's `scale`".into(),
        },
        Value::Null => "; for no score write `abstain` with the reason".into(),
        _ => String::new(),
    }
}
