//! Published data with reference figures computed by other programs. The data are not part
//! of the project: `VENIRE_DATA=FOLDER cargo nextest run calibrate_data`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

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

struct Set {
    folder: PathBuf,
    expected: Value,
}

impl Set {
    fn open(name: &str) -> Option<Self> {
        let folder = data(name)?;
        let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        Some(Self { folder, expected: serde_json::from_str(&text).unwrap() })
    }

    fn file(&self, name: &str) -> PathBuf {
        let packed = self.folder.join(format!("{name}.gz"));
        if packed.exists() { packed } else { self.folder.join(name) }
    }

    fn calibrate(&self, more: &[&str]) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_venire"))
            .current_dir(std::env::temp_dir())
            .args(["calibrate", "--no-split", "--json", "--judgements"])
            .arg(self.file("judgements.csv"))
            .arg("--labels")
            .arg(self.file("labels.csv"))
            .args(more)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn judge<'a>(report: &'a Value, name: &str) -> &'a Value {
    let judges = report["judges"].as_array().unwrap();
    judges.iter().find(|judge| judge["name"] == name).unwrap()
}

/// Where a reference figure stands in a report.
const FIGURES: [(&str, &str); 18] = [
    ("n", "/n"),
    ("tp", "/tp"),
    ("tn", "/tn"),
    ("fp", "/fp"),
    ("fn", "/fn"),
    ("accuracy", "/accuracy"),
    ("balanced_accuracy", "/balanced_accuracy"),
    ("cohen_kappa", "/cohen_kappa"),
    ("tpr", "/true_positive_rate/estimate"),
    ("fpr", "/false_positive_rate/estimate"),
    ("fnr", "/false_negative_rate/estimate"),
    ("false_discovery", "/false_acceptance_share/estimate"),
    ("spearman", "/spearman"),
    ("kendall_tau_b", "/kendall_tau_b"),
    ("pearson", "/pearson"),
    ("bias", "/bias/estimate"),
    ("mae", "/mae"),
    ("rmse", "/rmse"),
];

/// Compares every reference figure that is there; the references have six decimals.
fn compare(place: &str, expected: &Value, found: &Value) -> usize {
    let near = |figure: &str, expected: f64, found: Option<f64>| {
        let found = found.unwrap_or_else(|| panic!("{place}: no `{figure}`"));
        assert!((found - expected).abs() < 1.1e-6, "{place} {figure}: {found} for {expected}");
    };
    let mut compared = 0;
    for (figure, pointer) in FIGURES {
        if let Some(reference) = expected.get(figure).and_then(Value::as_f64) {
            near(figure, reference, found.pointer(pointer).and_then(Value::as_f64));
            compared += 1;
        }
    }
    if let Some(ends) = expected.get("fpr_wilson95").and_then(Value::as_array) {
        for (end, pointer) in ends.iter().zip(["/lower", "/upper"]) {
            let own = found["false_positive_rate"].pointer(pointer).and_then(Value::as_f64);
            near("fpr_wilson95", end.as_f64().unwrap(), own);
            compared += 1;
        }
    }
    assert!(compared > 0, "{place}: nothing to compare");
    compared
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn close(found: &Value, expected: &Value) {
    let (found, expected) = (number(found), number(expected));
    assert!((found - expected).abs() < 1.1e-6, "{found} for {expected}");
}

#[test]
fn triviaqa_judges_majorities_and_error_correlations_are_those_of_the_reference() {
    let Some(set) = Set::open("triviaqa_v1") else { return };
    let report = set.calibrate(&["--positive", "=1"]);
    for (name, expected) in set.expected["judges"].as_object().unwrap() {
        compare(name, expected, judge(&report, name));
    }
    let panels = &set.expected["panel"];
    let all = &panels["all_judges"]["majority_of_all"];
    compare("all judges", all, &report["panel"]["plain_median_complete_cases"]);
    let names: Vec<&str> = panels["llm_judges"]["judges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_str().unwrap())
        .collect();
    let mut arguments = vec!["--positive", "=1"];
    for name in names {
        arguments.extend(["--judge", name]);
    }
    let report = set.calibrate(&arguments);
    let panel = &report["panel"];
    compare(
        "LLM judges",
        &panels["llm_judges"]["majority_of_all"],
        &panel["plain_median_complete_cases"],
    );
    let correlation = &set.expected["error_correlation"]["llm_judges"];
    close(&panel["mean_error_correlation"], &correlation["mean_phi"]);
    close(&panel["effective_judges"], &correlation["effective_judges"]);
    assert_eq!(panel["complete_cases"], correlation["n_items"]);
}

#[test]
fn iclr_scores_decisions_and_thresholds_are_those_of_the_reference() {
    let Some(set) = Set::open("iclr_reviews") else { return };
    let judges = set.expected["judges"].as_object().unwrap();
    let scores = set.calibrate(&["--criterion", "Overall", "--positive", ">=6"]);
    let decisions = set.calibrate(&["--criterion", "Decision", "--positive", "=1"]);
    for (name, expected) in judges {
        compare(name, &expected["score_vs_human_mean"], judge(&scores, name));
        compare(name, &expected["decision"], judge(&decisions, name));
    }
    close(
        &scores["raters"]["krippendorff_alpha_interval"],
        &set.expected["human"]["krippendorff_alpha_interval"],
    );
    for threshold in [5, 6, 7, 8] {
        let accept = format!(">={threshold}");
        let report = set.calibrate(&[
            "--criterion",
            "Overall",
            "--label-criterion",
            "Decision",
            "--positive",
            "=1",
            "--accept",
            &accept,
        ]);
        for (name, expected) in judges {
            let own = judge(&report, name);
            compare(name, &expected[format!("overall{accept}")], own);
            close(&own["auc"], &expected["auc"]);
        }
    }
}

#[test]
fn summeval_judges_panels_raters_and_shared_errors_are_those_of_the_reference() {
    let Some(set) = Set::open("summeval") else { return };
    for criterion in set.expected["criteria"].as_array().unwrap() {
        let name = criterion.as_str().unwrap();
        let report = set.calibrate(&["--criterion", name, "--positive", ">=4", "--accept", ">=4"]);
        for (judge_name, expected) in set.expected["judges"][name].as_object().unwrap() {
            let own = judge(&report, judge_name);
            compare(judge_name, expected, own);
            compare(judge_name, &expected["accept_at_4"], own);
        }
        let panel = &report["panel"];
        let at_4 = format!("{name}_accept_at_4");
        compare(&at_4, &set.expected["panel"][&at_4]["majority_of_all"], &panel["plain_median"]);
        let correlation = &set.expected["error_correlation"];
        close(&panel["mean_error_correlation"], &correlation[&at_4]["mean_phi"]);
        close(&panel["effective_judges"], &correlation[&at_4]["effective_judges"]);
        let scores = &panel["score_error_correlation"];
        let expected = &correlation[name];
        close(&scores["mean"], &expected["mean_error_pearson"]);
        close(&scores["rater_noise_variance"], &expected["gold_noise_var"]);
        close(&scores["mean_without_rater_noise"], &expected["mean_error_pearson_noise_corrected"]);
        close(&scores["effective_judges"], &expected["effective_judges"]);
        let human = &set.expected["human"][name];
        let raters = &report["raters"];
        close(&raters["krippendorff_alpha_interval"], &human["krippendorff_alpha_interval"]);
        close(&raters["krippendorff_alpha_ordinal"], &human["krippendorff_alpha_ordinal"]);
    }
}

#[test]
fn devai_s_one_judge_is_that_of_the_reference() {
    let Some(set) = Set::open("devai") else { return };
    let report = set.calibrate(&["--positive", "=1"]);
    for (name, expected) in set.expected["judges"].as_object().unwrap() {
        compare(name, &expected["all"]["requirement_level"], judge(&report, name));
    }
}

#[test]
fn pandalm_s_categories_and_annotators_are_those_of_the_reference() {
    let Some(set) = Set::open("pandalm") else { return };
    let report = set.calibrate(&["--positive", "=1"]);
    for (name, expected) in set.expected["judges"].as_object().unwrap() {
        let own = &judge(&report, name)["categories"];
        assert_eq!(own["n"], expected["n"]);
        close(&own["agreement"]["estimate"], &expected["accuracy"]);
        close(&own["cohen_kappa"], &expected["cohen_kappa"]);
    }
    let human = &set.expected["human"];
    close(&report["raters"]["krippendorff_alpha_nominal"], &human["krippendorff_alpha_nominal"]);
    for pair in report["raters"]["pairs"].as_array().unwrap() {
        let name = pair["name"].as_str().unwrap().replace(" | ", "|");
        close(&pair["cohen_kappa"], &human["cohen_kappa"][&name]);
    }
}

#[test]
fn llmbar_s_accuracy_over_both_orders_and_positional_agreement_are_those_of_the_reference() {
    let Some(set) = Set::open("llmbar") else { return };
    let orders: Vec<Value> = ["ab", "ba"]
        .iter()
        .map(|order| set.calibrate(&["--positive", "=1", "--order", order]))
        .collect();
    let both = set.calibrate(&["--positive", "=1"]);
    let mut compared = 0;
    for (name, expected) in set.expected["judges"].as_object().unwrap() {
        let subsets = expected.as_object().unwrap().values();
        let (mut right, mut agreeing, mut complete) = (0.0, 0.0, true);
        for subset in subsets.filter(|subset| subset["n"].is_u64()) {
            let n = number(&subset["n"]);
            complete &= subset["unparsed"] == 0 && subset["ties"] == 0;
            right += n * number(&subset["accuracy"]);
            agreeing += n * number(&subset["agreement_of_orders"]);
        }
        // Where a reply is missing, the reference's denominators differ from ours.
        // Prompts that rate each output alone have no order.
        let known = |report: &Value| {
            report["judges"].as_array().unwrap().iter().any(|judge| judge["name"] == *name)
        };
        if !complete || !orders.iter().all(known) {
            continue;
        }
        let accuracy: f64 = orders
            .iter()
            .map(|report| number(&judge(report, name)["categories"]["agreement"]["estimate"]))
            .sum::<f64>()
            / 2.0;
        let consistency = number(&judge(&both, name)["position_consistency"]["estimate"]);
        assert!((accuracy - right / 419.0).abs() < 1e-4, "{name}: {accuracy}");
        assert!((consistency - agreeing / 419.0).abs() < 1e-4, "{name}: {consistency}");
        compared += 1;
    }
    assert!(compared > 20, "only {compared} judges were compared");
}
