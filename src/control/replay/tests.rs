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
    let share = metrics.false_acceptance_share.unwrap();
    assert_eq!((share.n, share.range), (2, Some((Some(1.0 / 3.0), Some(2.0 / 3.0)))));
    // b and c never were good, d is not known; c could be accepted yet.
    let rate = metrics.false_positive_rate.unwrap();
    assert_eq!((rate.n, rate.censored, rate.value), (2, 1, None));
    assert_eq!(rate.range, Some((Some(0.5), Some(1.0))));
    assert_eq!(metrics.divergence_rate.range, Some((Some(0.0), Some(0.5))));
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

/// Loops of one recorded output each.
fn short(loops: usize, score: f64, label: u8) -> String {
    let rows = (0..loops).map(|i| format!("{label}-{score}-{i},1,{score},{label}\n"));
    rows.collect()
}

fn figures(rows: &str, exit: serde_json::Value) -> Metrics {
    metrics(&played("t.csv", &format!("task,generation,score,truth\n{rows}"), exit))
}

#[test]
fn how_a_cut_off_loop_would_have_ended_misses_no_target_and_meets_none() {
    let own = figures(&short(8, 0.2, 0), serde_json::json!({ "any": ["quality_threshold"] }));
    assert_eq!((own.accepted, own.censored), (0, 8));
    for (name, metric) in [
        ("convergence_rate", own.convergence_rate),
        ("false_positive_rate", own.false_positive_rate.unwrap()),
    ] {
        assert_eq!((metric.value, metric.n, metric.censored), (None, 8, 8), "{name}");
        assert_eq!(metric.range, Some((Some(0.0), Some(1.0))), "{name}");
        assert_eq!((metric.lower, metric.upper), (Some(0.0), Some(1.0)), "{name}");
    }
    // All of them accepted by their next output, or none ever.
    let survival = own.generations_to_accept_kaplan_meier;
    assert_eq!((survival.value, survival.lower, survival.upper), (None, Some(2.0), None));
    let median = own.generations_to_accept_median;
    assert_eq!((median.n, median.range), (0, Some((Some(2.0), Some(10.0)))));
    for (name, held) in TargetsSpec::own().unwrap().judge(&own) {
        assert_eq!(held.standing, Standing::Open, "{name}");
    }
    // Under a policy that allows no more, their end is known.
    let exit =
        serde_json::json!({ "any": ["quality_threshold", { "max_generations": { "n": 1 } }] });
    let ended = figures(&short(8, 0.2, 0), exit);
    assert_eq!((ended.censored, ended.convergence_rate.value), (0, Some(0.0)));
    let held = TargetsSpec::own().unwrap().judge(&ended);
    assert_eq!(held["convergence_rate"].standing, Standing::Missed);
    assert_eq!(held["generations_to_accept_kaplan_meier"].standing, Standing::Missed);
}

#[test]
fn a_target_is_decided_where_both_readings_of_cut_off_loops_agree() {
    let rows = format!("{}{}", short(200, 0.95, 1), short(2, 0.5, 0));
    let own = figures(&rows, serde_json::json!({ "any": ["quality_threshold"] }));
    let held = TargetsSpec::own().unwrap().judge(&own);
    assert_eq!(own.censored, 2);
    // Two of 202 can't move a median, nor the rate below its target.
    assert_eq!(own.generations_to_accept_median.value, Some(1.0));
    for name in ["convergence_rate", "generations_to_accept_median", "false_acceptance_share"] {
        assert_eq!(held[name].standing, Standing::Met, "{name}");
    }
    // They may be all of those that are never good.
    assert_eq!(held["false_positive_rate"].standing, Standing::Open);
    let rows = format!("{}{}", short(200, 0.95, 0), short(2, 0.5, 0));
    let bad = figures(&rows, serde_json::json!({ "any": ["quality_threshold"] }));
    let held = TargetsSpec::own().unwrap().judge(&bad);
    assert_eq!(held["false_positive_rate"].standing, Standing::Missed);
    assert_eq!(held["false_acceptance_share"].standing, Standing::Missed);
}

#[test]
fn a_loop_is_never_good_within_the_outputs_that_the_policy_allows() {
    // a is good at its second output, b never, c at once.
    let rows = "a,1,0.95,0\na,2,0.95,1\nb,1,0.5,0\nb,2,0.5,0\nc,1,0.95,1\nc,2,0.95,0\n";
    let within = |n: u32| {
        let exit =
            serde_json::json!({ "any": ["quality_threshold", { "max_generations": { "n": n } }] });
        figures(rows, exit).false_positive_rate.unwrap()
    };
    assert_eq!((within(1).n, within(1).value), (2, Some(0.5)));
    assert_eq!((within(2).n, within(2).value), (1, Some(0.0)));
}

#[test]
fn figures_without_a_value_say_why() {
    let own = figures(&short(3, 0.2, 0), serde_json::json!({ "any": ["quality_threshold"] }));
    let printed = serde_json::to_value(&own).unwrap();
    assert_eq!(
        printed["time_to_convergence_median"],
        serde_json::json!({ "undefined": "no_data" })
    );
    assert_eq!(printed["convergence_rate"]["value"]["undefined"], "censored");
    assert_eq!(printed["quality_overall"]["lower"]["undefined"], "too_few_values");
    assert!(!printed.to_string().contains("null"), "{printed}");
}
