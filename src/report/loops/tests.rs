use super::read::{Output, Recorded};
use super::*;
use crate::control::{Outcome, Reason};

/// A ruling of two votes.
fn ruled(generation: u32, scores: [f64; 2], threshold: f64, text: &str) -> Output {
    let decision = if scores[0] >= threshold { "accept" } else { "reject" };
    let vote = |judge: &str, score: f64| {
        serde_json::json!({
            "judge": judge, "score": score, "status": "ok", "weight": 1.0, "counted": true,
            "required": false, "samples": 1, "samples_ok": 1, "sample_spread": null,
        })
    };
    let ruling = serde_json::json!({
        "case": "c", "score": scores[0], "raw_score": scores[0], "tiebreak": scores[0], "spread": scores[1] - scores[0],
        "decision": decision, "reason": {"kind": "threshold"}, "threshold": threshold, "degraded": false,
        "votes_used": 2, "votes_declared": 2, "quorum": 2, "criteria": [],
        "feedback": [{"text": "</script><b>too short</b>", "judges": ["a<b>"]}],
        "votes": [vote("a<b>", scores[0]), vote("b", scores[1])], "verdicts": [],
    });
    Output {
        generation,
        text: Some(text.to_owned()),
        hash: Some("00".to_owned()),
        base: (generation > 1).then(|| generation - 1),
        ruling: Some(Box::new(serde_json::from_value(ruling).unwrap())),
        next: vec!["go on".to_owned()],
        ..Output::default()
    }
}

fn recorded(outputs: Vec<Output>) -> Recorded {
    Recorded {
        run: "r1".into(),
        name: Some("<i>loop</i>".into()),
        started: "2026".into(),
        task: "写".into(),
        outputs,
        outcome: Some(Outcome {
            reason: Reason::QualityReached,
            also_fired: Vec::new(),
            best: Some(2),
        }),
        budgets: vec![read::Budget { name: "generations", used: 2.0, limit: Some(8.0), unit: "" }],
        threshold: Some(0.8),
        cost_usd: Some(0.0),
    }
}

fn page(loops: &[Recorded]) -> String {
    let mut out = Vec::new();
    html::write(&mut out, loops, 0, &[]).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_page_has_scores_votes_reasons_and_changes_and_nothing_in_them_is_html() {
    let own = recorded(vec![
        ruled(1, [0.4, 0.7], 0.8, "first line\nsecond\n"),
        ruled(2, [0.9, 0.95], 0.8, "first line\nthird <img src=x>\n"),
    ]);
    let page = page(&[own]);
    for part in [
        "Scores by output",
        "threshold 0.80",
        "0.40 to 0.70",
        "Budgets used",
        "too short",
        "changes against output 1",
        "class=\"removed\">-second",
        "class=\"added\">+third",
        "写",
        "0.90 (output 2)",
        "Accepted: quality reached",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["<b>too short", "<img src=x", "<i>loop", "a<b>"] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn an_output_without_a_score_breaks_the_line_and_is_never_zero() {
    let lost = Output {
        generation: 2,
        fault: Some("the agent failed: exit code 1".into()),
        ..Output::default()
    };
    let own = recorded(vec![ruled(1, [0.4, 0.7], 0.8, "a"), lost, ruled(3, [0.5, 0.6], 0.8, "b")]);
    let page = page(&[own]);
    assert!(page.contains("not judged") && page.contains("exit code 1"));
    assert!(page.contains("data-v=\"\">-</td>"), "no number where there is none");
}

#[test]
fn several_loops_have_a_table_and_a_log_that_breaks_off_says_so() {
    let done = recorded(vec![ruled(1, [0.9, 0.9], 0.8, "a")]);
    let mut open = recorded(vec![ruled(1, [0.1, 0.9], 0.8, "a")]);
    (open.outcome, open.run) = (None, "r2".into());
    let page = page(&[done, open]);
    for part in ["2 loops", "href=\"#r2\"", "not ended", "The log ends before the loop did"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_loop_without_outputs_or_budgets_is_a_page_all_the_same() {
    let mut own = recorded(Vec::new());
    (own.budgets, own.outcome) = (Vec::new(), None);
    assert!(!page(&[own]).contains("<svg class=\"chart\""));
}

#[test]
fn what_is_no_log_is_refused_and_folders_are_searched_one_level_deep() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a").join("events.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, "").unwrap();
    assert_eq!(logs(folder.path()), Some(vec![log.clone()]));
    assert_eq!(logs(log.parent().unwrap()), Some(vec![log.clone()]));
    assert_eq!(logs(&log), Some(vec![log.clone()]));
    assert_eq!(logs(&folder.path().join("none")), None);
    let refused = read::of_log(&log).unwrap_err().to_string();
    assert!(refused.contains("no event log"), "{refused}");
}
