//! What `calibrate` keeps apart and counts: looks at labels, a sealed part, slices, and inputs
//! that promise less than they seem to.

use std::fmt::Write as _;

use crate::workbench::{Ran, Workbench};

/// `n` questions with one answer each, half of them good, two judges, and fields beside.
fn bench(n: usize) -> Workbench {
    let bench = Workbench::new();
    let mut cases = String::new();
    let mut judgements = String::from("case,judge,score\n");
    let mut labels = String::from("case,label\n");
    for i in 0..n {
        let good = i % 2;
        writeln!(
            cases,
            r#"{{"id": "c{i}", "output": "o{i}", "topic": "t{}", "question_id": "q{}"}}"#,
            i % 3,
            i / 4
        )
        .unwrap();
        writeln!(labels, "c{i},{good}").unwrap();
        for (judge, off) in [("kind", 7), ("harsh", 11)] {
            let score = good as f64 * 0.5 + ((i * off) % 13) as f64 / 26.0;
            writeln!(judgements, "c{i},{judge},{score:.4}").unwrap();
        }
    }
    bench.write("cases.jsonl", cases);
    bench.write("judgements.csv", judgements);
    bench.write("labels.csv", labels);
    bench
}

const INPUTS: [&str; 7] =
    ["calibrate", "--judgements", "judgements.csv", "--labels", "labels.csv", "--positive", "=1"];

fn calibrate(bench: &Workbench, more: &[&str]) -> Ran {
    bench.run(&[&INPUTS[..], more].concat())
}

#[test]
fn another_candidate_on_the_same_labels_is_said_and_pays_with_half_of_delta() {
    let bench = bench(240);
    let calibrate = |bench: &Workbench, more: &[&str]| {
        calibrate(bench, &[&["--ledger", "looks.json"][..], more].concat())
    };
    let first = calibrate(&bench, &["--json", "-o", "one"]).exits(0).json();
    assert_eq!(first["certificate"]["delta"], 0.1);
    assert_eq!(first["certificate"]["looks"]["number"], 1);
    let again = calibrate(&bench, &["--json"]).exits(0).json();
    assert_eq!(again["certificate"]["delta"], 0.1, "the same candidate is no further look");
    let other = calibrate(&bench, &["--judge", "kind", "--json"]).exits(0);
    assert!(other.stderr.contains("look 2") && other.stderr.contains("`one`"), "{}", other.stderr);
    let other = other.json();
    assert_eq!(other["certificate"]["delta"], 0.05);
    assert_eq!(other["certificate"]["looks"]["delta_asked"], 0.1);
    let described = calibrate(&bench, &["--no-split", "--json"]).exits(0).json();
    assert!(described["certificate"].get("looks").is_none(), "nothing is certified there");
}

#[test]
fn a_sealed_part_is_seen_by_nothing_and_certifies_one_candidate() {
    let bench = bench(400);
    let open = calibrate(&bench, &["--sealed", "0.5", "--json"]).exits(0).json();
    let cases = open["counts"]["cases"].as_u64().unwrap();
    assert!((120..280).contains(&cases), "{cases}");
    let moved = calibrate(&bench, &["--sealed", "0.5", "--seed", "9", "--json"]).exits(0).json();
    assert_eq!(moved["counts"]["cases"].as_u64(), Some(cases), "no seed moves the seal");
    let last = calibrate(&bench, &["--sealed", "0.5", "--unseal", "--json", "-o", "last"]);
    let last = last.exits(0).json();
    assert_eq!(last["split"]["kind"], "sealed");
    assert_eq!(last["split"]["fit"]["cases"].as_u64(), Some(cases));
    assert_eq!(
        last["certificate"]["delta"], 0.1,
        "looks at the open part cost the sealed one nothing"
    );
    calibrate(&bench, &["--sealed", "0.5", "--unseal"]).exits(0);
    calibrate(&bench, &["--sealed", "0.5", "--unseal", "--judge", "kind"]).exits(2).says(&[
        "opened on",
        "`last`",
        "another candidate",
    ]);
}

#[test]
fn groups_that_were_used_are_no_sealed_part() {
    let bench = bench(100);
    calibrate(&bench, &[]).exits(0);
    assert!(!bench.path(".venire/looks.json").exists(), "nobody asked for looks to be counted");
    calibrate(&bench, &["--ledger", ".venire/looks.json"]).exits(0);
    calibrate(&bench, &["--sealed", "0.5", "--unseal"]).exits(2).says(&["not unseen"]);
}

#[test]
fn a_broken_ledger_is_refused_and_one_that_cannot_be_written_is_said() {
    let bench = bench(60);
    bench.write("looks.json", "{");
    calibrate(&bench, &["--ledger", "looks.json"]).exits(2).says(&["ledger of looks `looks.json`"]);
    bench.write("file", "");
    calibrate(&bench, &["--ledger", "other/looks.json"]).exits(0);
    assert!(bench.read("other/looks.json").contains("candidate"));
}

#[test]
fn slices_have_raw_and_shrunk_figures_for_the_panel_and_each_judge() {
    let bench = bench(240);
    let printed = calibrate(&bench, &["--items", "cases.jsonl", "--slice", "topic"]).exits(0);
    assert!(printed.stdout.contains("The panel by `topic`"), "{}", printed.stdout);
    let report = calibrate(&bench, &["--items", "cases.jsonl", "--slice", "topic", "--json"])
        .exits(0)
        .json();
    let slices = &report["slices"][0];
    assert_eq!(slices["field"], "topic");
    let judges: Vec<&str> = slices["judges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["judge"].as_str().unwrap())
        .collect();
    assert_eq!(judges, ["panel", "kind", "harsh"]);
    let own = &slices["judges"][0]["slices"][0];
    assert_eq!(own["slice"], "t0");
    assert!(own["shrunk_bias"]["n"].as_u64().unwrap() > 0, "{own}");
    assert!(own["false_positive_rate"]["estimate"].is_number(), "{own}");
}

#[test]
fn a_field_that_looks_like_a_group_is_named_once_and_not_when_one_was_chosen() {
    let bench = bench(120);
    // Columns that mean a group, such as `question_id`, are taken for one unasked.
    let cases = bench.read("cases.jsonl").replace("question_id", "customer");
    bench.write("cases.jsonl", cases);
    let hinted = calibrate(&bench, &["--items", "cases.jsonl", "--json"]).exits(0).json();
    let hint = hinted["group_hint"].as_str().unwrap();
    assert!(hint.contains("30 different values of `customer`"), "{hint}");
    let chosen = ["--items", "cases.jsonl", "--group", "customer", "--json"];
    assert!(calibrate(&bench, &chosen).exits(0).json().get("group_hint").is_none());
}

#[test]
fn a_rule_that_no_label_can_fit_is_an_error_with_the_labels_seen() {
    let bench = bench(40);
    let run = |rule: &str| {
        bench.run(&[
            "calibrate",
            "--judgements",
            "judgements.csv",
            "--labels",
            "labels.csv",
            "--positive",
            rule,
        ])
    };
    run(">=4").exits(2).says(&["no label", "`>=4`", "`0`, `1`"]);
    run("=good").exits(2).says(&["`=good`", "`0`, `1`"]);
    bench.write("labels.csv", "case,label\nc0,0\nc1,0\nc2,0\n");
    run("=1").exits(0).says(&["all 3 labelled cases are bad"]);
}

#[test]
fn files_with_a_header_alone_are_no_data_and_no_usage_error() {
    let bench = bench(4);
    bench.write("none.csv", "case,label\n");
    bench.write("nothing.csv", "case,judge,score\n");
    let run = |judgements: &str, labels: &str| {
        bench.run(&[
            "calibrate",
            "--judgements",
            judgements,
            "--labels",
            labels,
            "--positive",
            "=1",
        ])
    };
    run("judgements.csv", "none.csv").exits(3).says(&["there is no label"]);
    run("nothing.csv", "labels.csv").exits(3).says(&["there is no judgement"]);
    bench
        .run(&["compare", "nothing.csv", "judgements.csv"])
        .exits(3)
        .says(&["there is no judgement"]);
}

#[test]
fn outputs_that_can_be_neither_profile_nor_report_are_refused_before_anything_is_read() {
    let bench = bench(20);
    std::fs::create_dir(bench.path("folder")).unwrap();
    for (output, said) in [
        ("folder", "is a folder"),
        ("name/", "is a folder"),
        ("report.txt", "neither a profile nor a report"),
        ("out/support", "`out/support.json`"),
        ("missing/report.html", "no folder `missing`"),
        ("labels.csv/x.html", "no folder"),
    ] {
        let ran = calibrate(&bench, &["-o", output]);
        assert_eq!(ran.code, 2, "{output}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{output}: {}", ran.stderr);
    }
    calibrate(&bench, &["-o", "new/profile.json", "-o", "name"]).exits(0);
    assert!(
        bench.path("calibration/name.json").exists() && bench.path("new/profile.json").exists()
    );
}

#[test]
fn the_panel_says_its_map_and_statuses_and_a_handful_of_cases_has_no_bias() {
    let own = bench(60);
    let report = calibrate(&own, &["--json"]).exits(0).json();
    assert_eq!(report["panel"]["statuses"]["ok"], 120, "cases x judges");
    assert!(report["panel"]["map"].is_object() || report["panel"]["map"].is_string());
    let few = bench(4);
    calibrate(&few, &["--no-split"]).exits(0).prints(&["too few to say (n=4)"]);
}

#[test]
fn judges_without_a_vote_stay_out_of_a_profile_and_the_run_stands_beside_it() {
    let bench = bench(60);
    bench.write(
        "panel.toml",
        "name = \"p\"\nthreshold = 0.5\n\
         [[judge]]\nname = \"kind\"\nkind = \"replay\"\nfile = \"judgements.csv\"\nscale = \"unit\"\n\
         [[judge]]\nname = \"harsh\"\nkind = \"replay\"\nfile = \"judgements.csv\"\nscale = \"unit\"\n\
         [[judge]]\nname = \"aside\"\nkind = \"rule\"\nrule = \"length\"\nwords = { min = 1 }\nweight = 0\nrequired = true\n",
    );
    bench.run(&["run", "-c", "panel.toml", "cases.jsonl"]).exits(0);
    let run = |more: &[&str]| {
        bench.run(
            &[
                &["calibrate", "--run", "latest", "--labels", "labels.csv", "--positive", "=1"],
                more,
            ]
            .concat(),
        )
    };
    let ran = run(&["--json"]).exits(0);
    assert!(ran.stderr.contains("`aside` has no vote"), "{}", ran.stderr);
    let report = ran.json();
    let names: Vec<&str> = report["judges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|own| own["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["kind", "harsh"]);
    assert_eq!(report["panel"]["as_run"]["name"], "as_run");
    assert!(report["panel"]["as_run"]["false_positive_rate"]["estimate"].is_number());
    run(&[]).exits(0).prints(&["as_run"]);
}

#[test]
fn judges_are_compared_by_what_may_be_promised_of_each() {
    let bench = bench(400);
    let more =
        ["bench", "--judgements", "judgements.csv", "--labels", "labels.csv", "--positive", "=1"];
    let report = bench.run(&[&more[..], &["--json"]].concat()).exits(0).json();
    let own = report["certified"].as_array().unwrap();
    let facts: Vec<(&str, f64)> = own
        .iter()
        .map(|own| (own["name"].as_str().unwrap(), own["delta"].as_f64().unwrap()))
        .collect();
    assert_eq!(facts, [("kind", 0.05), ("harsh", 0.05), ("panel", 0.1)]);
    bench.run(&more).exits(0).prints(&["Accepted of the good, where at most 0.05 of the bad"]);
}

#[test]
fn several_runs_are_checked_one_by_one_and_together() {
    let bench = Workbench::new();
    for (run, shift) in [("r0", 0.0), ("r1", 0.0), ("r2", 0.0), ("r3", 0.25)] {
        let mut text = String::from("case,judge,score\n");
        for i in 0..60_usize {
            let noise =
                ((i * 37 + run.len() * 11 + run.as_bytes()[1] as usize * 17) % 23) as f64 / 100.0;
            writeln!(text, "c{i},j,{:.3}", 0.3 + noise + shift).unwrap();
        }
        bench.write(&format!("{run}.csv"), text);
    }
    let ran = bench
        .run(&["drift", "r1.csv", "r2.csv", "r3.csv", "--baseline", "r0.csv", "--json"])
        .exits(1);
    let report = ran.json();
    assert_eq!(report["looks"], 3);
    assert!((report["alpha_spent"].as_f64().unwrap() - 0.05 / 12.0).abs() < 1e-12);
    let own = &report["series"][0];
    assert_eq!(own["change_point"]["run"], "r3.csv");
    assert_eq!(own["points"].as_array().unwrap().len(), 3);
    bench
        .run(&["drift", "r1.csv", "r2.csv", "r3.csv", "--baseline", "r0.csv"])
        .exits(1)
        .prints(&["since `r3.csv`", "look 3 has 0.0042"]);
    bench.run(&["drift", "r1.csv", "r2.csv", "--profile", "x.json", "--labels", "r0.csv"]).exits(2);
}
