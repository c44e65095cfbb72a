//! `venire bench` on published data with reference figures computed by other programs. The
//! data are not part of the project: `VENIRE_DATA=FOLDER cargo nextest run bench_data`.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::workbench::Workbench;

/// The folder of a data set, or a loud note that its test did not run.
fn data(name: &str) -> Option<PathBuf> {
    match std::env::var_os("VENIRE_DATA") {
        Some(folder) => Some(PathBuf::from(folder).join(name)),
        None => {
            eprintln!("SKIPPED {name}: set VENIRE_DATA to the folder of the data sets");
            None
        }
    }
}

/// A file of a set as text, packed or not.
fn text(folder: &std::path::Path, name: &str) -> String {
    let packed = folder.join(format!("{name}.gz"));
    if !packed.exists() {
        return std::fs::read_to_string(folder.join(name)).unwrap();
    }
    let mut text = String::new();
    let file = std::fs::File::open(packed).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

fn expected(folder: &std::path::Path) -> Value {
    serde_json::from_str(&text(folder, "expected.json")).unwrap()
}

/// The lines of a file that hold, header included.
fn only(text: &str, holds: impl Fn(&str) -> bool) -> String {
    let mut lines = text.lines();
    let mut kept = format!("{}\n", lines.next().unwrap());
    for line in lines.filter(|line| holds(line)) {
        writeln!(kept, "{line}").unwrap();
    }
    kept
}

fn bench(bench: &Workbench, more: &[&str]) -> Value {
    let mut arguments = vec![
        "bench",
        "--no-split",
        "--json",
        "--judgements",
        "judgements.csv",
        "--labels",
        "labels.csv",
    ];
    arguments.extend(more);
    bench.run(&arguments).exits(0).json()
}

#[track_caller]
fn close(own: &Value, expected: &Value, place: &str) {
    let (own, expected) = (own.as_f64().unwrap(), expected.as_f64().unwrap());
    assert!((own - expected).abs() < 1.1e-6, "{place}: {own} is not {expected}");
}

/// Compares every rate of a reference table with a row of the board.
fn compare(board: &Value, name: &str, expected: &Value, place: &str) {
    let rows = board["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(row["n"], expected["n"], "{place}");
    for (own, theirs) in [
        ("agreement", "accuracy"),
        ("balanced_accuracy", "balanced_accuracy"),
        ("cohen_kappa", "cohen_kappa"),
        ("true_positive_rate", "tpr"),
        ("false_positive_rate", "fpr"),
        ("false_negative_rate", "fnr"),
        ("false_acceptance_share", "false_discovery"),
    ] {
        if expected[theirs].is_number() {
            close(&row[own]["estimate"], &expected[theirs], &format!("{place} {own}"));
        }
    }
    close(&row["false_positive_rate"]["lower"], &expected["fpr_wilson95"][0], place);
    close(&row["false_positive_rate"]["upper"], &expected["fpr_wilson95"][1], place);
}

#[test]
fn every_run_of_debugging_loops_has_the_reference_s_rates_of_its_candidates() {
    let Some(folder) = data("ldb_loop") else { return };
    let (judgements, labels) = (text(&folder, "judgements.csv"), text(&folder, "labels.csv"));
    let runs = expected(&folder)["runs"].as_object().unwrap().clone();
    let mut compared = 0;
    for (run, expected) in &runs {
        let own = Workbench::new();
        let of_run = |line: &str| match run.strip_prefix("pooled:") {
            Some("all") => true,
            Some(source) => line.starts_with(&format!("{source}:")),
            None => line.starts_with(&format!("{run}|")),
        };
        own.write("judgements.csv", only(&judgements, of_run));
        own.write("labels.csv", only(&labels, of_run));
        let more = ["--criterion", "pass", "--label-criterion", "correct", "--positive", "=1"];
        let board = bench(&own, &more);
        compare(&board, "rule:visible_tests", &expected["candidate_level"], run);
        compared += 1;
    }
    assert!(compared >= 15, "only {compared} runs");
}

#[test]
fn the_rules_on_chosen_attempts_have_the_reference_s_rates() {
    let Some(folder) = data("aider_swebench") else { return };
    let own = Workbench::new();
    // The reference counts a check that did not run as failed; venire never does, so the file
    // says 0 here.
    let judgements = text(&folder, "judgements.csv").replace(",pass,,", ",pass,0,");
    own.write("judgements.csv", judgements);
    own.write("labels.csv", text(&folder, "labels.csv"));
    let more = ["--criterion", "pass", "--label-criterion", "resolved", "--positive", "=1"];
    let board = bench(&own, &more);
    for (name, expected) in expected(&folder)["judges_on_the_chosen_attempt"].as_object().unwrap() {
        compare(&board, name, expected, name);
    }
}

#[test]
fn a_constant_text_is_accepted_as_often_as_was_published() {
    let Some(folder) = data("nullmodel") else { return };
    let own = Workbench::new();
    own.write("judgements.csv", text(&folder, "judgements.csv"));
    own.write("labels.csv", text(&folder, "labels.csv"));
    let board = bench(&own, &["--positive", "=2", "--accept", ">=1.5"]);
    let expected = expected(&folder);
    for (name, expected) in expected["judges"].as_object().unwrap() {
        let rows = board["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == *name).unwrap();
        close(&row["false_positive_rate"]["estimate"], &expected["false_accept_rate"], name);
        assert_eq!(row["false_acceptance_share"]["estimate"], 1.0);
        assert_eq!(row["true_positive_rate"]["undefined"], "no_positives");
    }
}

#[test]
fn iclr_decisions_have_the_reference_s_rates() {
    let Some(folder) = data("iclr_reviews") else { return };
    let own = Workbench::new();
    own.write("judgements.csv", text(&folder, "judgements.csv"));
    own.write("labels.csv", text(&folder, "labels.csv"));
    let board = bench(&own, &["--criterion", "Decision", "--positive", "=1"]);
    for (name, expected) in expected(&folder)["judges"].as_object().unwrap() {
        compare(&board, name, &expected["decision"], name);
    }
}

#[test]
fn llmbar_s_accuracy_is_the_agreement_of_both_orders() {
    let Some(folder) = data("llmbar") else { return };
    let own = Workbench::new();
    own.write("judgements.csv", text(&folder, "judgements.csv"));
    own.write("labels.csv", text(&folder, "labels.csv"));
    let boards: Vec<Value> = ["ab", "ba"]
        .iter()
        .map(|order| bench(&own, &["--positive", "=1", "--order", order]))
        .collect();
    let agreement = |board: &Value, name: &str| -> Option<f64> {
        let rows = board["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name)?["agreement"]["estimate"].as_f64()
    };
    let mut compared = 0;
    for (name, expected) in expected(&folder)["judges"].as_object().unwrap() {
        let subsets: Vec<&Value> =
            expected.as_object().unwrap().values().filter(|own| own["n"].is_u64()).collect();
        if subsets.iter().any(|own| own["unparsed"] != 0 || own["ties"] != 0) {
            continue;
        }
        let right: f64 = subsets
            .iter()
            .map(|own| own["n"].as_f64().unwrap() * own["accuracy"].as_f64().unwrap())
            .sum();
        let (Some(ab), Some(ba)) = (agreement(&boards[0], name), agreement(&boards[1], name))
        else {
            continue;
        };
        let both = f64::midpoint(ab, ba);
        assert!((both - right / 419.0).abs() < 1e-4, "{name}: {both}");
        compared += 1;
    }
    assert!(compared > 20, "only {compared} judges were compared");
}
