//! `venire calibrate`: what it prints, what it refuses, and what its figures must obey.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::workbench::{Ran, Workbench};

/// `groups` questions with `each` answers, of which the judges see a noisy truth. Numbers
/// come from a fixed sequence, so that every run is the same.
fn bench(groups: usize, each: usize) -> Workbench {
    let bench = Workbench::new();
    let mut labels = String::from("item_id,rater,criterion,label\n");
    let mut judgements = String::from("item_id,judge,criterion,score\n");
    let mut state = 1u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    for question in 0..groups {
        for answer in 0..each {
            let id = format!("m{answer}#{question}");
            let truth = 1 + (random() * 5.0) as i32;
            for (rater, shift) in [("p", 0.0), ("q", 0.3)] {
                let label = if random() < shift { truth.max(2) - 1 } else { truth };
                writeln!(labels, "{id},{rater},help,{label}").unwrap();
            }
            for (judge, bias, noise) in
                [("kind", 0.6, 0.8), ("harsh", -0.7, 0.5), ("fair", 0.0, 0.6)]
            {
                let score = f64::from(truth) + bias + (random() - 0.5) * 2.0 * noise;
                writeln!(judgements, "{id},{judge},help,{:.2}", score.clamp(1.0, 5.0)).unwrap();
            }
        }
    }
    bench.write("labels.csv", labels);
    bench.write("judgements.csv", judgements);
    bench
}

fn calibrate(bench: &Workbench, more: &[&str]) -> Ran {
    let mut arguments =
        vec!["calibrate", "--judgements", "judgements.csv", "--labels", "labels.csv"];
    arguments.extend(more);
    bench.run(&arguments)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn one_json_object_holds_everything_that_was_promised() {
    let bench = bench(200, 3);
    let more = [
        "--criterion",
        "help",
        "--positive",
        ">=4",
        "--label-scale",
        "1-5",
        "--group-regex",
        "#(.+)",
        "--json",
    ];
    let report = calibrate(&bench, &more).exits(0).json();
    for judge in report["judges"].as_array().unwrap() {
        for field in [
            "name",
            "n",
            "bias",
            "slope",
            "mae",
            "rmse",
            "pearson",
            "spearman",
            "kendall_tau_b",
            "tp",
            "fp",
            "tn",
            "fn",
            "false_positive_rate",
            "true_positive_rate",
            "false_acceptance_share",
            "accuracy",
            "balanced_accuracy",
            "cohen_kappa",
            "auc",
            "map",
            "statuses",
        ] {
            assert!(judge.get(field).is_some(), "no `{field}` in {judge}");
        }
        for figure in ["bias", "false_positive_rate", "true_positive_rate"] {
            let figure = &judge[figure];
            assert!(number(&figure["lower"]) <= number(&figure["estimate"]), "{figure}");
            assert!(number(&figure["estimate"]) <= number(&figure["upper"]), "{figure}");
            assert!(figure["n"].is_u64() && figure["method"].is_string());
        }
        assert!(judge["intervals"]["auc"]["lower"].is_f64());
        assert_eq!(judge["map"]["kind"], "affine");
        assert_eq!(judge["operating_point"]["origin"], "fitted");
    }
    for field in [
        "effective_judges",
        "mean_error_correlation",
        "error_correlation",
        "all_wrong",
        "condorcet_gap",
        "best_single",
        "subsets",
        "leave_one_out",
        "auc",
        "plain_median",
    ] {
        assert!(report["panel"].get(field).is_some(), "no `{field}` in the panel");
    }
    for field in [
        "status",
        "mode",
        "alpha",
        "delta",
        "n_bad",
        "k",
        "threshold",
        "true_positive_rate",
        "reason",
        "labels_needed",
        "data_hash",
        "date",
        "generations",
    ] {
        assert!(report["certificate"].get(field).is_some(), "no `{field}` in the certificate");
    }
    for field in ["raters", "baselines", "split", "label_noise", "undefined", "counts"] {
        assert!(report.get(field).is_some(), "no `{field}`");
    }
    let bias = |place: usize| number(&report["judges"][place]["bias"]["estimate"]);
    assert!(bias(0) > 0.4 && bias(1) < -0.3, "kind is lenient and harsh is not");
    assert_eq!(report["certificate"]["status"], "certified");
    assert_eq!(report["split"]["clustered"], true);
}

#[test]
fn the_same_seed_gives_the_same_figures_in_any_order_of_rows() {
    let bench = bench(80, 2);
    let more = ["--positive", ">=4", "--group-regex", "#(.+)", "--json", "--seed", "5"];
    let without_date = |mut report: Value| {
        report["certificate"]["date"] = Value::Null;
        report
    };
    let first = without_date(calibrate(&bench, &more).exits(0).json());
    let again = without_date(calibrate(&bench, &more).exits(0).json());
    assert_eq!(first, again);
    let text = bench.read("labels.csv");
    let mut rows: Vec<&str> = text.lines().collect();
    rows[1..].reverse();
    bench.write("labels.csv", rows.join("\n"));
    let reversed = without_date(calibrate(&bench, &more).exits(0).json());
    assert_eq!(first["split"], reversed["split"]);
    assert_eq!(first["certificate"]["data_hash"], reversed["certificate"]["data_hash"]);
    assert_eq!(first["certificate"]["threshold"], reversed["certificate"]["threshold"]);
}

#[test]
fn without_a_split_everything_is_described_and_nothing_certified() {
    let bench = bench(60, 1);
    let report = calibrate(&bench, &["--positive", ">=4", "--no-split", "--json"]).exits(0).json();
    assert_eq!((&report["part"], &report["judges"][0]["n"]), (&json!("all"), &json!(60)));
    assert_eq!(report["certificate"]["status"], "not_certifiable");
    assert!(report["certificate"]["reason"].as_str().unwrap().contains("without a split"));
}

#[test]
fn too_few_bad_cases_say_how_many_are_missing_and_may_fail_a_script() {
    let bench = bench(60, 1);
    let ran = calibrate(&bench, &["--positive", ">=4", "--json"]).exits(0).json();
    let certificate = &ran["certificate"];
    assert_eq!(certificate["status"], "not_certifiable");
    let needed = certificate["labels_needed"].as_u64().unwrap();
    assert_eq!(needed + certificate["n_bad"].as_u64().unwrap(), 45);
    assert_eq!(certificate["threshold"], Value::Null);
    let text = calibrate(&bench, &["--positive", ">=4", "--require-certificate"]).exits(3).stdout;
    assert!(text.contains(&format!("collect {needed} more")), "{text}");
}

#[test]
fn three_labels_fit_nothing_and_say_so() {
    let bench = Workbench::new();
    bench.write("labels.csv", "case,label\na,1\nb,0\nc,1\n");
    bench.write("judgements.csv", "case,judge,score\na,j,1\nb,j,0\nc,j,1\n");
    let ran = calibrate(&bench, &["--positive", "=1", "--json", "--no-split"]).exits(0);
    assert!(ran.stderr.contains("only agreement is worth a look"), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(report["judges"][0]["map"]["kind"], "none");
    assert_eq!(report["judges"][0]["accuracy"], 1.0);
    assert!(
        report["undefined"].as_array().unwrap().iter().all(|entry| entry["reason"].is_string())
    );
}

#[test]
fn one_class_and_a_constant_judge_are_undefined_with_their_reason() {
    let bench = Workbench::new();
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score\n");
    for i in 0..30 {
        writeln!(labels, "c{i},1").unwrap();
        writeln!(judgements, "c{i},yes,1\nc{i},odd,{}", i % 2).unwrap();
    }
    bench.write("labels.csv", labels);
    bench.write("judgements.csv", judgements);
    let ran = calibrate(&bench, &["--positive", "=1", "--json", "--no-split"]).exits(0);
    assert!(ran.stderr.contains("all 30 labelled cases are good"), "{}", ran.stderr);
    assert!(ran.stderr.contains("judge `yes` gives one score throughout"), "{}", ran.stderr);
    let report = ran.json();
    let yes = &report["judges"][0];
    assert_eq!(yes["false_positive_rate"], json!({"undefined": "no_negatives"}));
    assert_eq!(yes["cohen_kappa"], json!({"undefined": "constant_raters"}));
    assert_eq!(yes["pearson"], json!({"undefined": "constant_input"}));
    let listed: Vec<&str> = report["undefined"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["figure"].as_str().unwrap())
        .collect();
    for figure in ["judges[yes].false_positive_rate", "judges[yes].cohen_kappa", "judges[odd].auc"]
    {
        assert!(listed.contains(&figure), "{figure} is not listed");
    }
}

#[test]
fn labels_by_a_model_are_never_called_a_calibration() {
    let bench = Workbench::new();
    let mut labels = String::from("case,label,label_source\n");
    let mut judgements = String::from("case,judge,score\n");
    for i in 0..200 {
        writeln!(labels, "c{i},{},model", i % 2).unwrap();
        writeln!(judgements, "c{i},j,{}", i % 2).unwrap();
    }
    bench.write("labels.csv", labels);
    bench.write("judgements.csv", judgements);
    let ran = calibrate(&bench, &["--positive", "=1"]).exits(0);
    assert!(
        ran.stdout.starts_with("Agreement with a model's labels (not a calibration)"),
        "{}",
        ran.stdout
    );
    assert!(ran.stderr.contains("not calibration"), "{}", ran.stderr);
    let report = calibrate(&bench, &["--positive", "=1", "--json"]).exits(0).json();
    assert_eq!(report["kind"], "agreement_with_a_model");
    assert_eq!(report["certificate"]["status"], "not_certifiable");
}

#[test]
fn a_judge_on_another_scale_has_no_bias_until_its_scale_is_declared() {
    let bench = Workbench::new();
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score\n");
    for i in 0..60 {
        writeln!(labels, "c{i},{}", 1 + i % 5).unwrap();
        writeln!(judgements, "c{i},percent,{}", (i % 5) * 25).unwrap();
    }
    bench.write("labels.csv", labels);
    bench.write("judgements.csv", judgements);
    let more = ["--positive", ">=4", "--no-split", "--json"];
    let ran = calibrate(&bench, &more).exits(0);
    assert!(ran.stderr.contains("another scale"), "{}", ran.stderr);
    assert_eq!(ran.json()["judges"][0]["bias"], json!({"undefined": "out_of_range"}));
    let declared = calibrate(&bench, &[&more[..], &["--judge-scale", "percent=0..100"]].concat())
        .exits(0)
        .json();
    assert_eq!(number(&declared["judges"][0]["bias"]["estimate"]), 0.0);
    assert_eq!(number(&declared["judges"][0]["mae"]), 0.0);
}

#[test]
fn a_profile_is_written_with_its_hash_and_a_name_goes_to_the_folder_of_profiles() {
    let bench = bench(200, 1);
    calibrate(&bench, &["--positive", ">=4", "--label-scale", "1-5", "-o", "help"])
        .exits(0)
        .says(&["wrote calibration/help.json"]);
    let profile: Value = serde_json::from_str(&bench.read("calibration/help.json")).unwrap();
    assert_eq!((&profile["version"], &profile["name"]), (&json!(2), &json!("help")));
    assert!(profile["hash"].is_string() && profile["certificate"]["threshold"].is_f64());
    let read = venire::calibration::Profile::read(&bench.path("calibration/help.json")).unwrap();
    assert_eq!(read.panel.seats.len(), 3);
}

#[test]
fn bad_input_is_refused_with_what_to_do() {
    let bench = bench(30, 1);
    let refuse = |more: &[&str], says: &[&str]| {
        calibrate(&bench, more).exits(2).says(says);
    };
    refuse(&["--positive", "<4"], &["is no rule for a good label"]);
    refuse(&["--positive", ">=4", "--accept", "4"], &["is no accept rule"]);
    refuse(&["--positive", ">=4", "--alpha", "0"], &["`--alpha` is 0", "between 0 and 1"]);
    refuse(&["--positive", ">=4", "--criterion", "helpp"], &["did you mean `help`?"]);
    refuse(&["--positive", ">=4", "--group", "topic"], &["name them with `--items`"]);
    refuse(&["--positive", ">=4", "--group-regex", "@(.*)"], &["has no group by pattern"]);
    refuse(&["--positive", ">=4", "--split", "1.5"], &["a share between 0 and 1"]);
    refuse(&["--positive", ">=4", "--judge", "kindd"], &["did you mean `kind`?"]);
    refuse(&["--positive", ">=4", "--label-scale", "1-3"], &["`4` is outside the scale 1-3"]);
    bench.write("judgements.csv", "case,judge,score\nm0#0,j,NaN\n");
    refuse(&["--positive", ">=4", "--criterion", "help"], &["line 2", "NaN"]);
    bench.write("judgements.csv", "case,judge,criterion,score\nz,j,help,3\n");
    refuse(&["--positive", ">=4"], &["no case has both a label and a judgement"]);
    bench.write("judgements.csv", "case,judge,criterion,score\nm0#0,j,help,3\nm0#0,j,help,4\n");
    refuse(&["--positive", ">=4"], &["recorded twice on case `m0#0` (lines 2 and 3)"]);
}

#[test]
fn a_run_in_the_store_is_calibrated_with_its_judges_fingerprints() {
    let bench = Workbench::with_rules();
    bench.run(&["run", "cases.csv"]).exits(0);
    bench.write("labels.csv", "case,label\na,1\nb,0\nc,0\n");
    let report = bench
        .run(&[
            "calibrate",
            "--run",
            "latest",
            "--labels",
            "labels.csv",
            "--positive",
            "=1",
            "--no-split",
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(report["counts"]["cases"], 3);
    let fingerprints = report["certificate"]["fingerprints"].as_object().unwrap();
    assert!(fingerprints.values().all(Value::is_string), "{fingerprints:?}");
    assert_eq!(report["judges"][0]["statuses"], json!({"ok": 3}));
}
