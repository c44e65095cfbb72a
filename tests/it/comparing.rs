//! `venire bench`, `estimate`, `drift` and `compare`: what they print, refuse and exit with.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::workbench::Workbench;

/// 240 labelled answers, 1 to 5; `keen` follows the label, `kind` lets the middling pass,
/// `blunt` says yes or no and is wrong on every eighth. The first `labels` are labelled.
fn bench(labels: usize) -> Workbench {
    let bench = Workbench::new();
    let mut known = String::from("item_id,rater,criterion,label\n");
    let mut judged = String::from("item_id,judge,criterion,score,cost_usd,latency_ms\n");
    for i in 0..240usize {
        let truth = 1 + i * 7 % 5;
        if i < labels {
            writeln!(known, "a{i}#{},p,help,{truth}", i / 2).unwrap();
        }
        let noise = (i * 13 % 7) as f64 / 10.0;
        let kind = (truth as f64 + 0.9 - noise).clamp(1.0, 5.0);
        let keen = (truth as f64 + 0.3 - noise).clamp(1.0, 5.0);
        let blunt = u8::from((truth >= 4) != (i % 8 == 0));
        writeln!(judged, "a{i}#{},keen,help,{keen:.1},0.002,{}", i / 2, 100 + i % 9).unwrap();
        writeln!(judged, "a{i}#{},kind,help,{kind:.1},0.001,50", i / 2).unwrap();
        writeln!(judged, "a{i}#{},blunt,help,{blunt},0,1", i / 2).unwrap();
    }
    bench.write("labels.csv", known);
    bench.write("judgements.csv", judged);
    bench
}

const FILES: [&str; 8] = [
    "--judgements",
    "judgements.csv",
    "--labels",
    "labels.csv",
    "--criterion",
    "help",
    "--positive",
    ">=4",
];

fn with<'a>(verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[verb][..], &FILES[..], more].concat()
}

fn row<'a>(board: &'a Value, name: &str) -> &'a Value {
    let rows = board["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no `{name}` in {board}"))
}

#[test]
fn a_board_has_every_figure_with_its_count_and_interval() {
    let board = bench(240).run(&with("bench", &["--json", "--label-scale", "1-5"])).exits(0).json();
    for name in ["keen", "kind", "blunt", "panel", "panel (plain median)", "accept_all", "random"] {
        for figure in ["agreement", "false_positive_rate", "false_negative_rate", "auc", "unscored"]
        {
            let own = &row(&board, name)[figure];
            let of =
                |key: &str| own[key].as_f64().unwrap_or_else(|| panic!("{name} {figure} {own}"));
            assert!(of("lower") <= of("estimate") && of("estimate") <= of("upper"), "{own}");
            assert!(own["n"].as_u64().unwrap() > 0);
        }
    }
    let cost = &row(&board, "panel")["cost_usd"]["estimate"];
    assert!((cost.as_f64().unwrap() - 0.003).abs() < 1e-9, "{cost}");
    assert!(row(&board, "keen")["latency_ms"]["upper"].as_f64().unwrap() > 100.0);
    assert_eq!(row(&board, "kind")["bias"]["estimate"].as_f64().map(|b| b > 0.3), Some(true));
    assert_eq!(board["comparisons"][0]["comparisons"], 10);
    assert!(board["conclusion"].as_str().unwrap().contains("is first with agreement"));
    assert!(board["undefined"].is_array() && board["split"]["fit"]["cases"].as_u64() == Some(60));
}

#[test]
fn the_same_seed_gives_the_same_board_whatever_the_order_of_rows() {
    let bench = bench(240);
    let first = bench.run(&with("bench", &["--json", "--group-regex", "#(.+)"])).exits(0).stdout;
    let again = bench.run(&with("bench", &["--json", "--group-regex", "#(.+)"])).exits(0).stdout;
    assert_eq!(first, again);
}

#[test]
fn limits_decide_the_exit_by_the_interval_and_say_what_they_saw() {
    let bench = bench(240);
    let none: [&str; 0] = [];
    bench.run(&with("bench", &none)).exits(0);
    bench.run(&with("bench", &["--fail-under", "keen:agreement=0.6"])).exits(0);
    bench
        .run(&with("bench", &["--fail-under", "blunt:agreement=0.875"]))
        .exits(1)
        .says(&["agreement of `blunt`", "at least 0.875 is not shown"]);
    bench
        .run(&with("bench", &["--fail-above", "blunt:false_positive_rate=0.01"]))
        .exits(1)
        .says(&["at most 0.01 is broken"]);
    bench.run(&with("bench", &["--fail-fpr-above", "0.9"])).exits(0);
    bench
        .run(&with("bench", &["--fail-under", "reject_all:spearman=0.5"]))
        .exits(3)
        .says(&["can't be measured"]);
    bench
        .run(&with("bench", &["--fail-under", "false_positive_rate=0.1"]))
        .exits(2)
        .says(&["--fail-above"]);
    bench
        .run(&with("bench", &["--fail-under", "goodness=1"]))
        .exits(2)
        .says(&["balanced_accuracy"]);
}

#[test]
fn some_judges_can_be_a_panel_of_their_own() {
    let bench = bench(240);
    let more = ["--panel", "pair=keen,kind", "--json", "--label-scale", "1-5"];
    let board = bench.run(&with("bench", &more)).exits(0).json();
    assert_eq!(board["subject"], "pair");
    assert!(row(&board, "pair (plain median)")["n"].as_u64() == Some(180));
    bench.run(&with("bench", &["--panel", "pair=keen,nobody"])).exits(2).says(&["`nobody`"]);
    bench.run(&with("bench", &["--panel", "pair=keen,keen"])).exits(2).says(&["twice"]);
}

const CASES: &str = "id,output,expected_label\n";

/// Short answers are good: the panel `short` sees it, the panel `any` accepts everything.
fn panels() -> Workbench {
    let bench = Workbench::new();
    let length = |name: &str, max: u32| {
        format!(
            "name = \"{name}\"\nthreshold = 0.5\n[[judge]]\nname = \"words\"\nkind = \"rule\"\nrule = \"length\"\nwords = {{ max = {max} }}\ngraded = false\n"
        )
    };
    bench.write("short.toml", length("short", 3));
    bench.write("any.toml", length("any", 50));
    let mut cases = CASES.replace("expected_label", "label");
    for i in 0..80 {
        let words = if i % 2 == 0 { "one two" } else { "one two three four five" };
        writeln!(cases, "c{i},{words} {i},{}", u8::from(i % 2 == 0)).unwrap();
    }
    bench.write("cases.csv", cases);
    bench
}

#[test]
fn panels_are_run_on_the_data_and_compared_as_they_ruled() {
    let bench = panels();
    let ran = bench.run(&[
        "bench",
        "-c",
        "short.toml",
        "-c",
        "any.toml",
        "cases.csv",
        "--positive",
        "=1",
        "--no-split",
        "--json",
    ]);
    let board = ran.exits(0).json();
    assert_eq!(row(&board, "short")["agreement"]["estimate"], 1.0);
    assert_eq!(row(&board, "any")["agreement"]["estimate"], 0.5);
    assert_eq!(row(&board, "any")["false_positive_rate"]["estimate"], 1.0);
    assert_eq!(row(&board, "any/words")["kind"], "judge");
    assert!(row(&board, "longest")["n"].as_u64() == Some(80), "the outputs are at hand");
    assert_eq!(board["subject"], "short");
    assert_eq!(bench.run(&["list", "runs"]).exits(0).stdout.lines().count(), 3);
    // The stored runs compare the same again.
    let runs = bench.run(&["bench", "--run", "latest", "--items", "cases.csv", "--positive", "=1"]);
    assert!(runs.exits(0).stdout.contains("any"), "the newest run");
}

#[test]
fn runs_are_compared_case_by_case_and_a_regression_can_fail() {
    let bench = panels();
    bench.run(&["run", "-c", "any.toml", "cases.csv"]).exits(0);
    let first = bench.run(&["list", "runs"]).exits(0).stdout;
    let id = first.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    bench.run(&["run", "-c", "short.toml", "cases.csv"]).exits(0);
    let found = bench.run(&["compare", &id, "latest", "--json"]).exits(0).json();
    assert_eq!(found["cases"], 80);
    assert_eq!(found["flips"].as_array().unwrap().len(), 40);
    assert_eq!(found["flips"][0]["case"], "c1");
    assert_eq!(
        found["flips"][0]["votes"][0],
        json!({"judge": "words", "first": 1.0, "second": 0.0})
    );
    assert_eq!(found["identities"][0]["what"], "fingerprint");
    bench
        .run(&["compare", &id, "latest", "--fail-on-regression"])
        .exits(1)
        .says(&["the accepted share of `panel` changed by -0.500"]);
    bench.run(&["compare", "latest", &id, "--fail-on-regression"]).exits(0);
    bench.run(&["compare", &id, "nosuch"]).exits(2);
    bench.run(&["compare", &id, "no/such.csv"]).exits(2).says(&["no file"]);
    // A changed judge is drift, and is named.
    let drifted = bench.run(&["drift", "latest", "--baseline", &id]).exits(1);
    assert!(drifted.stdout.contains("a certificate for the earlier ones is suspended"));
    bench.run(&["drift", "latest", "--baseline", "latest", "--tolerance", "0.2"]).exits(0);
    bench.run(&["drift", "latest", "--baseline", "latest", "--tolerance", "0.01"]).exits(3);
}

#[test]
fn the_rate_of_unlabelled_answers_is_estimated_from_some_labels() {
    let bench = bench(80);
    let judge = ["--judge", "blunt", "--json"];
    let found = bench.run(&with("estimate", &judge)).exits(0).json();
    assert_eq!(
        (&found["judged"], &found["labelled"], &found["unlabelled"]),
        (&json!(240), &json!(80), &json!(160))
    );
    let rate = &found["rate"];
    // 2 of 5 answers are good; the judge passes 96 +- 30.
    assert!(
        rate["lower"].as_f64().unwrap() < 0.4 && rate["upper"].as_f64().unwrap() > 0.4,
        "{rate}"
    );
    assert_eq!(rate["method"], "post_stratified");
    assert_eq!(found["cells"][1]["name"], "accepted");
    for method in ["ppi_plus_plus", "rogan_gladen", "lee"] {
        assert!(found[method]["note"].is_string() && found[method]["trusted"].is_boolean());
    }
    assert_eq!(found["outlook"].as_array().unwrap().len(), 3);
    let text = bench.run(&with("estimate", &[])).exits(0).stdout;
    assert!(text.contains("of the 240 judged cases are truly good"), "{text}");
    bench.run(&with("estimate", &["--fail-under", "0.9"])).exits(1).says(&["is broken"]);
    bench.run(&with("estimate", &["--slice", "group"])).exits(2).says(&["--items"]);
}

#[test]
fn anchors_are_held_against_a_profile() {
    let bench = bench(240);
    let made = ["-o", "p.json", "--label-scale", "1-5", "--accept", ">=4"];
    bench.run(&with("calibrate", &made)).exits(0);
    let same = [
        "drift",
        "judgements.csv",
        "--profile",
        "p.json",
        "--labels",
        "labels.csv",
        "--label-scale",
        "1-5",
        "--json",
        "--tolerance",
        "0.3",
    ];
    let found = bench.run(&same).exits(0).json();
    assert_eq!(found["status"], "passed", "{found}");
    let text = bench.read("judgements.csv");
    let lenient: Vec<String> = text
        .lines()
        .map(|line| {
            if line.contains(",blunt,") {
                line.replace("help,0,", "help,1,")
            } else {
                line.to_owned()
            }
        })
        .collect();
    bench.write("lenient.csv", lenient.join("\n"));
    let mut changed = same;
    changed[1] = "lenient.csv";
    let found = bench.run(&changed).exits(1).json();
    let blunt =
        found["reports"].as_array().unwrap().iter().find(|own| own["name"] == "blunt").unwrap();
    assert_eq!(blunt["status"], "drifted");
    bench
        .run(&[
            "drift",
            "judgements.csv",
            "--profile",
            "p.json",
            "--labels",
            "labels.csv",
            "--positive",
            ">=3",
        ])
        .exits(2)
        .says(&["the profile was made with"]);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let bench = bench(240);
    bench.write("other.csv", "item_id,rater,criterion,label\nx,p,help,4\n");
    let other = |verb| {
        [verb, "--judgements", "judgements.csv", "--labels", "other.csv", "--positive", ">=4"]
    };
    bench.run(&other("bench")).exits(2).says(&["no case has both a label and a judgement"]);
    bench.run(&other("estimate")).exits(2).says(&["none of the 240 judged cases has a label"]);
    for (score, word) in [("NaN", "NaN"), ("inf", "inf")] {
        bench.write(
            "wild.csv",
            format!("item_id,judge,criterion,score\na0#0,keen,help,3\na1#0,keen,help,{score}\n"),
        );
        for verb in ["bench", "estimate"] {
            let wild =
                [verb, "--judgements", "wild.csv", "--labels", "labels.csv", "--positive", ">=4"];
            bench.run(&wild).exits(2).says(&["line 3", word]);
        }
    }
    bench.write("twice.csv", "item_id,judge,criterion,score\na0#0,k,help,3\na0#0,k,help,4\n");
    let twice =
        ["bench", "--judgements", "twice.csv", "--labels", "labels.csv", "--positive", ">=4"];
    bench.run(&twice).exits(2).says(&["recorded twice on case `a0#0`"]);
    bench.run(&with("bench", &["--label-scale", "1-4"])).exits(2).says(&["labels.csv"]);
    bench
        .run(&["bench", "--labels", "labels.csv", "--positive", ">=4"])
        .exits(2)
        .says(&["--judgements"]);
}
