use std::path::PathBuf;

use super::super::policy::{BudgetSpec, ExitSpec, StrategySpec};
use super::*;
use crate::config::from_value;

fn policy(exit: serde_json::Value) -> Arc<Policy> {
    let exit: ExitSpec = from_value(exit).unwrap();
    let (budget, strategy) = (BudgetSpec::default(), StrategySpec::default());
    Arc::new(Policy::new(&exit, &budget, &strategy, 0.9, true).unwrap())
}

fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn played(name: &str, text: &str, exit: serde_json::Value) -> Vec<Replayed> {
    let (_folder, path) = file(name, text);
    let policy = policy(exit);
    let recorded = read(&path, &Reading { threshold: 0.9, ..Reading::default() }).unwrap();
    recorded.trajectories.iter().map(|t| replay(t, &policy)).collect()
}

const TABLE: &str = "task,generation,score,truth\n\
    a,1,0.5,0\na,2,0.95,1\nb,1,0.92,0\nc,2,0.4,0\nc,1,0.6,0\nd,1,,\nd,2,0.3,0\n";

#[test]
fn a_table_is_played_and_its_end_is_no_guess() {
    let loops = played(
        "t.csv",
        TABLE,
        serde_json::json!({ "any": ["quality_threshold"], "evaluation_retries": 0 }),
    );
    let reasons: Vec<Option<&str>> = loops.iter().map(|l| l.reason.map(Reason::name)).collect();
    assert_eq!(reasons, [Some("quality_reached"), Some("quality_reached"), None, None]);
    assert_eq!(loops[2].scores, [Some(0.6), Some(0.4)], "rows are put in order");
    assert_eq!(loops[3].scores, [None, Some(0.3)], "an empty cell is no score");
    let metrics = metrics(&loops);
    assert_eq!((metrics.tasks, metrics.accepted, metrics.censored), (4, 2, 2));
    assert_eq!(metrics.false_acceptance_share.unwrap().value, Some(0.5));
    // b and c never were good, d is not known.
    assert_eq!(metrics.false_positive_rate.unwrap().n, 2);
    assert_eq!(metrics.false_positive_rate.unwrap().value, Some(0.5));
    assert_eq!(metrics.divergence_rate.value, Some(0.25));
}

#[test]
fn b_57_censored_loops_are_told_and_no_mean_is_taken_of_survivors_alone() {
    let loops = played(
        "t.csv",
        TABLE,
        serde_json::json!({ "any": ["quality_threshold"], "evaluation_retries": 0 }),
    );
    let metrics = metrics(&loops);
    assert_eq!(metrics.convergence_rate.n, 4);
    assert_eq!(metrics.generations_to_accept_mean.n, 2);
    assert_eq!(metrics.generations_to_accept_kaplan_meier.n, 4);
    let none = played("t.csv", "task,generation,score\na,1,0.1\n", serde_json::json!({}));
    let metrics = super::metrics(&none);
    assert_eq!(metrics.false_positive_rate, None);
    assert_eq!(metrics.generations_to_accept_mean.value, None);
}

#[test]
fn a_column_a_judge_is_a_median_and_a_missing_vote_is_none() {
    let rows = r#"{"task":"x","generation":1,"a":0.9,"b":0.2,"c":0.8}
{"task":"x","generation":2,"a":0.9,"b":null,"c":null}
{"task":"x","generation":3,"a":"0.95","b":0.1,"c":0.95}
"#;
    let exit = serde_json::json!({ "any": ["quality_threshold"], "evaluation_retries": 0, "evaluator_failures": 5 });
    let loops = played("t.jsonl", rows, exit);
    assert_eq!(loops[0].scores, [Some(0.8), None, Some(0.95)]);
    assert_eq!(loops[0].reason, Some(Reason::QualityReached));
}

#[test]
fn what_is_wrong_with_a_row_is_named_with_its_line() {
    for (text, words) in [
        ("task,generation,score\na,1,0.5\na,1,0.6\n", vec!["line 3", "twice"]),
        ("task,generation,score\na,one,0.5\n", vec!["line 2", "generation"]),
        ("task,generation,score\na,-1,0.5\n", vec!["line 2", "generation"]),
        ("task,generation,score\na,1,0.5\na,3,0.5\n", vec!["line 3", "generation 3 and not 2"]),
        ("task,generation,score\na,2,0.5\n", vec!["line 2", "begins with generation 2"]),
        ("task,generation,score\na,1,1.5\n", vec!["line 2", "score", "1.5"]),
        ("task,generation,score\na,1,NaN\n", vec!["line 2", "NaN"]),
        ("task,generation,judge\na,1,good\n", vec!["line 2", "judge", "good", "--judge"]),
        ("task,generation,a,notes\na,1,0.5,fine\n", vec!["line 2", "notes", "--judge"]),
        ("task,generation,score,truth\na,1,0.5,maybe\n", vec!["line 2", "maybe", "--positive"]),
        ("generation,score\n1,0.5\n", vec!["trajectory", "missing"]),
        ("task,generation\na,1\n", vec!["score"]),
        ("task,generation,score\n", vec!["no row"]),
        ("{\"task\": \"a\"", vec!["line 1"]),
    ] {
        let (_folder, path) = file("t.csv", text);
        let error = read(&path, &Reading::default()).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "no `{word}` in {error}");
        }
    }
}

#[test]
fn loops_may_be_counted_from_0_and_columns_have_the_names_that_calibration_knows() {
    let (_folder, path) = file("t.csv", "trajectory,attempt,score,label\na,0,0.5,2\na,1,0.9,5\n");
    let good = ">=4".parse().unwrap();
    let reading = Reading { threshold: 0.9, positive: Some(&good), ..Reading::default() };
    let recorded = read(&path, &reading).unwrap();
    let truths: Vec<_> = recorded.trajectories[0].steps.iter().map(|step| step.truth).collect();
    assert_eq!(truths, [Some(false), Some(true)]);
    let played = replay(&recorded.trajectories[0], &policy(serde_json::json!({})));
    assert_eq!((played.generations, played.truth), (2, Some(true)));
}

#[test]
fn columns_that_are_not_used_are_told() {
    let text = "task,generation,score,seconds,a\nx,1,0.5,12,0.4\n";
    let (_folder, path) = file("t.csv", text);
    assert_eq!(read(&path, &Reading::default()).unwrap().left_out, ["a", "seconds"]);
    let judges = ["a".to_owned()];
    let reading = Reading { judges: &judges, ..Reading::default() };
    let recorded = read(&path, &reading).unwrap();
    assert_eq!(recorded.left_out, ["score", "seconds"]);
    assert_eq!(recorded.trajectories[0].steps[0].rounds[0].score.unwrap().get(), 0.4);
}
