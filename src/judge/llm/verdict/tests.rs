use serde_json::json;

use super::*;
use crate::judge::llm::{LlmSpec, reply};
use crate::verdict::Status;

fn verdict(config: Value, text: &str) -> Verdict {
    let mut config = config;
    config["model"] = json!("openai/m");
    let spec: LlmSpec = crate::config::from_value(config).unwrap();
    let judging = spec.judging(std::path::Path::new(""), &Value::Null).unwrap();
    let reading = reply::read_text(text, judging.shape()).unwrap();
    judging.verdict(&[reading])
}

#[test]
fn a_rubric_verdict_has_criteria_in_order_and_the_mean_by_weight() {
    let verdict = verdict(
        json!({"rubric": "summary"}),
        r#"{"criteria": {"coherence": {"score": 5}, "coverage": {"score": 2, "analysis": "misses the point"},
            "faithfulness": {"score": 5}, "conciseness": {"score": 1, "analysis": "wordy"}}, "summary": "so-so"}"#,
    );
    // 0.40 x 1 + 0.30 x 0.25 + 0.15 x 0 + 0.15 x 1
    assert!((verdict.score.unwrap().get() - 0.625).abs() < 1e-12);
    let names: Vec<&str> = verdict.criteria.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["faithfulness", "coverage", "conciseness", "coherence"]);
    let passed: Vec<_> = verdict.criteria.iter().map(|c| c.passed).collect();
    assert_eq!(passed, [Some(true), Some(false), Some(false), Some(true)]);
    assert!(verdict.criteria[0].required && !verdict.criteria[1].required);
    assert_eq!(verdict.criteria[1].raw, Some(json!(2)));
    assert_eq!(verdict.feedback, ["coverage: misses the point", "conciseness: wordy", "so-so"]);
    assert!(!verdict.notes.contains_key("contradiction"));
}

#[test]
fn less_than_half_of_the_weight_is_an_abstention_and_half_is_a_score() {
    let little = verdict(json!({"rubric": "summary"}), r#"{"coverage": 5, "coherence": 5}"#);
    assert_eq!((little.status, little.score), (Status::Abstained, None));
    assert!(little.detail.unwrap().contains("45%"));
    assert_eq!(little.criteria.len(), 4, "what was scored is kept");
    let enough = verdict(json!({"rubric": "summary"}), r#"{"faithfulness": 3, "coherence": 3}"#);
    assert_eq!(enough.score.unwrap().get(), 0.5);
    assert_eq!(enough.criteria[1].score, None);
}

#[test]
fn the_judges_own_overall_is_kept_never_used_and_its_contradiction_noted() {
    let criteria = r#""faithfulness": 2, "coverage": 2, "conciseness": 2, "coherence": 2"#;
    let with = |rest: &str| verdict(json!({"rubric": "summary"}), &format!("{{{criteria}{rest}}}"));
    let honest = with(r#", "overall": 2, "passed": false"#);
    assert!(!honest.notes.contains_key("contradiction"), "{honest:?}");
    for rest in [r#", "overall": 5"#, r#", "passed": true"#, r#", "overall": 0.9"#] {
        let verdict = with(rest);
        assert_eq!(verdict.score.unwrap().get(), 0.25);
        assert!(verdict.notes.contains_key("contradiction"), "{rest}");
    }
    assert_eq!(with(r#", "overall": 5"#).raw.unwrap()["overall"], json!(5));
}

#[test]
fn a_checklist_weighs_its_questions() {
    let config = json!({"mode": "checklist", "questions": [
        {"text": "Is it short?", "weight": 3}, {"text": "Is it true?", "required": true}, "Is it kind?",
    ]});
    let all = verdict(
        config.clone(),
        r#"{"q1": "yes", "q2": {"answer": "no", "why": "false date"}, "q3": "no"}"#,
    );
    assert!((all.score.unwrap().get() - 0.6).abs() < 1e-12);
    assert_eq!(all.criteria[1].name, "Is it true?");
    assert_eq!((all.criteria[1].passed, all.criteria[1].required), (Some(false), true));
    assert_eq!(all.feedback, ["Is it true?: false date"]);
    let part = verdict(config, r#"{"q1": null, "q2": "yes", "q3": "yes"}"#);
    assert_eq!(part.status, Status::Abstained);
}

#[test]
fn the_reason_before_or_after_the_answer_is_feedback() {
    let config = json!({"mode": "choice", "choice_scores": {"bad": 0, "fair": 0.4, "good": 1}});
    let verdict = verdict(config, r#"{"analysis": "some faults", "choice": "fair"}"#);
    assert_eq!(verdict.score.unwrap().get(), 0.4);
    assert_eq!(
        (verdict.raw, verdict.feedback),
        (Some(json!("fair")), vec!["some faults".to_owned()])
    );
}

fn picked(score: f64, place: Place) -> Reading {
    Reading {
        answers: vec![Answer {
            name: "preferred".into(),
            raw: None,
            score: Some(Score::new(score).unwrap()),
            reason: None,
        }],
        reason: None,
        overall: None,
        passed: None,
        place,
        mass: None,
    }
}

#[test]
fn a_written_pair_counts_only_when_both_orders_agree() {
    // Scores are of the answer shown first: (given, swapped, score of the output, consistent).
    for (given, swapped, score, consistent) in [
        (1.0, 0.0, 1.0, true),
        (0.0, 1.0, 0.0, true),
        (0.5, 0.5, 0.5, true),
        (1.0, 1.0, 0.5, false),
        (0.0, 0.0, 0.5, false),
        (1.0, 0.5, 0.5, false),
    ] {
        let verdict = pairwise(&picked(given, Place::Whole), &picked(swapped, Place::Whole));
        assert_eq!(verdict.score.unwrap().get(), score, "{given} {swapped}");
        assert_eq!(verdict.notes["position_consistent"], consistent);
    }
    // One order by log-probabilities only: the picks decide.
    let mixed = pairwise(&picked(0.9, Place::Logprobs), &picked(0.0, Place::Text));
    assert_eq!(mixed.score.unwrap().get(), 1.0);
    assert!(!mixed.notes.contains_key("p_first"));
}
