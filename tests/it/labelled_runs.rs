//! A run beside its labels: where it was wrong, tables for spreadsheets, cases without an id,
//! calibrating without naming anything twice, results by source.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::workbench::Workbench;

const PANEL: &str = r#"name = "short"
threshold = 0.5
[[judge]]
name = "words"
kind = "rule"
rule = "length"
words = { max = 3 }
graded = false
[[judge]]
name = "polite"
kind = "rule"
rule = "contains"
any = ["please"]
report_only = true
"#;

/// Four labelled cases, one of each outcome, and one without a label.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write("panel.toml", PANEL);
    bench.write(
        "cases.csv",
        "id,input,output,label,source\n\
         right-yes,q,please wait,1,bot\n\
         wrong-yes,q,go away,0,bot\n\
         right-no,q,a rather long and rude answer,0,ann\n\
         wrong-no,q,please read this very carefully,1,ann\n\
         unlabelled,q,well,,bot\n",
    );
    bench.run(&["run", "cases.csv", "-q"]).exits(0);
    bench
}

fn cases(shown: &Value) -> Vec<&str> {
    let list = shown["cases"].as_array().unwrap();
    list.iter().map(|one| one["case"]["id"].as_str().unwrap()).collect()
}

fn table(bench: &Workbench, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = bench.read(name);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn only_the_cases_whose_decision_contradicts_the_label_are_shown_and_which_way() {
    let bench = bench();
    // The labels stand in the data set itself.
    let wrong = ["show", "latest", "--positive", "=1", "--wrong"];
    let shown = bench.run(&[&wrong[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(cases(&shown), ["wrong-yes", "wrong-no"]);
    assert_eq!(shown["cases"][0]["mistake"], "false_acceptance");
    assert_eq!(shown["cases"][1]["mistake"], "false_rejection");
    assert_eq!(shown["cases"][1]["truth"], "good");
    let counts = &shown["mistakes"];
    assert_eq!(
        (&counts["n"], &counts["false_acceptances"], &counts["false_rejections"]),
        (&json!(4), &json!(1), &json!(1))
    );
    assert_eq!((&counts["undecided"], &counts["unlabelled"]), (&json!(0), &json!(1)));
    let rate = &counts["false_positive_rate"];
    assert_eq!((&rate["point"], &rate["n"]), (&json!(0.5), &json!(2)));
    assert!(rate["lower"].as_f64().unwrap() < 0.1 && rate["upper"].as_f64().unwrap() > 0.9);
    bench.run(&wrong).exits(0).prints(&[
        "false acceptance",
        "false rejection",
        "contradicts the label in 2 of 4 cases",
        "1 of 2 bad cases accepted: 0.50 (95% interval",
        "1 without a label",
        "2 of 5 cases (decision against the label",
    ]);
    // Without `--wrong` every case stands beside its label.
    let all = bench.run(&["show", "latest", "--positive", "=1", "--json"]).exits(0).json();
    assert_eq!(cases(&all).len(), 5);
    assert_eq!(all["cases"][4]["truth"], Value::Null);
    bench
        .run(&["show", "latest", "wrong-yes", "--positive", "=1"])
        .exits(0)
        .prints(&["false acceptance: labelled bad"]);
}

#[test]
fn labels_of_a_file_and_the_vote_of_one_judge_are_held_against_each_other() {
    let bench = bench();
    bench.write(
        "labels.csv",
        "item_id,rater,criterion,label\nright-yes,a,tone,5\nright-yes,a,facts,1\n\
         wrong-yes,a,tone,1\nright-no,a,tone,2\nwrong-no,a,tone,4\nelsewhere,a,tone,5\n",
    );
    let with =
        |more: &[&str]| bench.run(&[&["show", "latest", "--labels", "labels.csv"], more].concat());
    with(&["--positive", ">=4"]).exits(2).says(&["several criteria", "--criterion"]);
    let tone = ["--positive", ">=4", "--criterion", "tone"];
    let shown = with(&[&tone[..], &["--wrong", "--json"]].concat()).exits(0).json();
    assert_eq!(cases(&shown), ["wrong-yes", "wrong-no"]);
    // A judge that is only reported has votes all the same; this one is always right.
    let judge = [&tone[..], &["--wrong", "--judge", "polite", "--json"]].concat();
    let shown = with(&judge).exits(0).json();
    assert_eq!(cases(&shown), Vec::<&str>::new());
    assert_eq!((&shown["mistakes"]["of"], &shown["mistakes"]["n"]), (&json!("polite"), &json!(4)));
    with(&["--wrong"]).exits(2).says(&["--positive"]);
    with(&["--positive", "4"]).exits(2).says(&["`>=4`"]);
    with(&["--positive", ">=9", "--criterion", "tone"]).exits(2).says(&["no label of criterion"]);
    bench.run(&["show", "latest", "--judge", "polite"]).exits(2).says(&["--positive"]);
    bench.write("others.csv", "item_id,label\nx,1\ny,0\n");
    let ran = bench.run(&["show", "latest", "--labels", "others.csv", "--positive", "=1"]);
    ran.exits(2).says(&["none of the 2 labelled cases", "`x`", "same ids"]);
}

#[test]
fn labels_of_data_that_has_changed_are_not_read_and_the_cure_is_named() {
    let bench = bench();
    bench.write("cases.csv", "id,output,label\nright-yes,y,0\n");
    let ran = bench.run(&["show", "latest", "--positive", "=1"]);
    ran.exits(2).says(&["is not what it was", "--labels"]);
    let data = "id,output,label\na,x,1\n";
    bench.run_with_stdin(&["run", "-", "-q"], data).exits(0);
    let ran = bench.run(&["show", "latest", "--positive", "=1"]);
    ran.exits(2).says(&["can't be read again", "--labels"]);
}

#[test]
fn mistakes_are_exported_with_their_counts_to_rows_and_reports() {
    let bench = bench();
    let export = |more: &[&str]| {
        let base = ["export", "latest", "--positive", "=1"];
        bench.run(&[&base[..], more].concat()).exits(0)
    };
    export(&["-o", "w.csv", "-o", "w.jsonl", "--wide", "--wrong"])
        .says(&["contradicts the label in 2 of 4"]);
    let rows = table(&bench, "w.csv");
    let of = |row: &BTreeMap<String, String>| {
        (row["case"].clone(), row["truth"].clone(), row["mistake"].clone())
    };
    assert_eq!(
        rows.iter().map(of).collect::<Vec<_>>(),
        [
            ("wrong-yes".into(), "bad".into(), "false_acceptance".into()),
            ("wrong-no".into(), "good".into(), "false_rejection".into())
        ]
    );
    assert_eq!(bench.rows("w.jsonl")[0]["votes"], json!({ "words": 1.0, "polite": 0.0 }));
    for what in ["verdicts", "rulings"] {
        export(&["-o", "r.jsonl", "--what", what, "--with-case"]);
        let rows = bench.rows("r.jsonl");
        let of = |id: &str| rows.iter().find(|row| row["case"] == id).unwrap();
        assert_eq!(of("right-no")["truth"], "bad");
        assert_eq!(of("right-no")["mistake"], Value::Null);
        assert_eq!(of("wrong-no")["mistake"], "false_rejection");
        assert_eq!(of("unlabelled")["truth"], Value::Null);
        assert_eq!(of("wrong-no")["row"], 4, "where it stands in the data");
    }
    export(&["-o", "w.html", "-o", "w.md", "-o", "w.xml", "--wrong"]);
    for report in ["w.html", "w.md", "w.xml"] {
        let text = bench.read(report);
        assert!(text.contains("false acceptance: labelled bad"), "{report}: {text}");
        assert!(!text.contains("right-yes"), "{report}");
    }
    assert!(bench.read("w.html").contains("1 of 2 bad cases accepted"));
    // Without labels rows are as they were.
    bench.run(&["export", "latest", "-o", "p.jsonl"]).exits(0);
    assert!(bench.rows("p.jsonl")[0].get("truth").is_none());
}

#[test]
fn a_spreadsheet_opens_as_utf_8_and_runs_no_cell() {
    let bench = Workbench::new();
    bench.write("panel.toml", PANEL);
    bench.write(
        "cases.jsonl",
        [
            json!({ "id": "=1", "output": "=HYPERLINK(\"http://x\")", "input": "你好", "n": -3 }),
            json!({ "id": "b", "output": "-5 degrees", "input": "@you", "n": 2 }),
            json!({ "id": "c", "output": "fine = good", "input": "\tx" }),
        ]
        .map(|row| row.to_string())
        .join("\n"),
    );
    bench.run(&["run", "cases.jsonl", "-q", "-o", "plain.csv", "--with-case"]).exits(0);
    assert!(bench.read("plain.csv").contains(",=1,"), "plain cells are as they came");
    for name in ["s.csv", "s.tsv"] {
        let rows = ["--wide", "--with-case", "--spreadsheet"];
        let ran = bench.run(&[&["export", "latest", "-o", name][..], &rows].concat());
        ran.exits(0);
        let text = bench.read(name);
        assert!(text.starts_with("\u{feff}run"), "{text}");
        assert_eq!(text.matches('\u{feff}').count(), 1);
    }
    let rows = table(&bench, "s.csv");
    assert_eq!(rows[0]["case"], "'=1");
    assert_eq!(rows[0]["output"], "'=HYPERLINK(\"http://x\")");
    assert_eq!(rows[0]["input"], "你好");
    assert_eq!(rows[0]["metadata.n"], "-3", "a number is no formula");
    assert_eq!((rows[1]["output"].as_str(), rows[1]["input"].as_str()), ("'-5 degrees", "'@you"));
    assert_eq!((rows[2]["output"].as_str(), rows[2]["input"].as_str()), ("fine = good", "'\tx"));
    for (name, why) in [("s.jsonl", ".csv and .tsv"), ("-", ".csv and .tsv")] {
        bench.run(&["export", "latest", "-o", name, "--spreadsheet"]).exits(2).says(&[why]);
        assert!(!bench.path("s.jsonl").exists());
    }
}

#[test]
fn a_spreadsheet_says_which_criterion_a_finding_is_about() {
    let bench = Workbench::new();
    bench.write(
        "judge.sh",
        "#!/bin/sh\ncat >/dev/null\necho '{\"score\": 0.4, \"criteria\": [{\"name\": \"tone\", \"score\": 0.2, \"feedback\": \"too harsh\"}, {\"name\": \"facts\", \"score\": 1.0, \"feedback\": \"all right\"}], \"feedback\": [\"tone: too harsh\", \"=rewrite it\"]}'\n",
    );
    bench.write(
        "panel.toml",
        "[[judge]]\nname = \"s\"\nkind = \"script\"\nargv = [\"sh\", \"judge.sh\"]\n",
    );
    bench.write("cases.jsonl", "{\"id\": \"a\", \"output\": \"x\"}\n");
    bench.run(&["run", "cases.jsonl", "-q"]).exits(0);
    bench.run(&["export", "latest", "-o", "v.csv", "--spreadsheet"]).exits(0);
    let rows = table(&bench, "v.csv");
    let feedback = &rows[0]["feedback"];
    assert_eq!(feedback, "tone: too harsh\nfacts: all right\n=rewrite it", "once each");
    bench.run(&["export", "latest", "-o", "v.jsonl"]).exits(0);
    let plain = &bench.rows("v.jsonl")[0]["feedback"];
    assert_eq!(*plain, json!(["tone: too harsh", "=rewrite it"]), "rows for programs as ever");
}

#[test]
fn a_case_without_an_id_is_shown_with_its_row() {
    let bench = Workbench::new();
    bench.write("panel.toml", PANEL);
    bench.write(
        "cases.csv",
        "input,output,split\nq,one two,dev\nq,\"two, with too many words\",test\nq\nq,three,test\n",
    );
    let ran = bench.run(&["run", "cases.csv", "--on-bad-row", "skip"]).exits(0);
    ran.prints(&["row 1 ", "row 2 ", "row 4 "]);
    let ids = bench.run(&["show", "latest", "--json"]).exits(0).json();
    let id = ids[2]["case"]["id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 16, "ids stay what they were");
    bench.run(&["show", "latest"]).exits(0).prints(&[&format!("{id} row 4")]);
    let one = bench.run(&["show", "latest", "row 4"]).exits(0);
    one.prints(&[&format!("case {id}, row 4 of the data"), "three"]);
    bench.run(&["show", "latest", "row 3"]).exits(2).says(&["no case from row 3"]);
    bench.run(&["export", "latest", "-o", "r.html", "-o", "r.md"]).exits(0);
    assert!(bench.read("r.html").contains("row 4"));
    assert!(bench.read("r.md").contains("` row 4 |"), "{}", bench.read("r.md"));
    // A split has its own rows, and a case with an id needs none.
    bench
        .run(&["run", "cases.csv", "--on-bad-row", "skip", "--split", "test"])
        .exits(0)
        .prints(&["row 2 ", "row 4 "]);
    bench.write("named.csv", "id,output\nc1,one\n");
    let ran = bench.run(&["run", "named.csv"]).exits(0);
    assert!(!ran.stdout.contains("row 1"), "{}", ran.stdout);
}

/// Sixty cases in groups, judged by a rule of words, with labels from 1 to 5 in the data.
fn graded() -> Workbench {
    let bench = Workbench::new();
    bench.write(
        "panel.toml",
        "name = \"graded\"\n[[judge]]\nname = \"jaccard\"\nkind = \"rule\"\nrule = \"similarity\"\nmetric = \"jaccard\"\n[[judge]]\nname = \"flag\"\nkind = \"rule\"\nrule = \"contains\"\nany = [\"alpha\"]\n",
    );
    let words = ["alpha", "beta", "gamma", "delta", "epsilon"];
    let rows: Vec<String> = (0..60)
        .map(|i| {
            let n = i % 5 + 1;
            json!({
                "question": format!("q{i}"), "completion": words[..n].join(" "),
                "ideal": words.join(" "), "team": format!("t{}", i / 6),
                "source": if i % 2 == 0 { "bot-1" } else { "bot-2" }, "mark": n,
            })
            .to_string()
        })
        .collect();
    bench.write("cases.jsonl", rows.join("\n"));
    bench.run(&["run", "cases.jsonl", "-q", "--map", "group=team", "--map", "label=mark"]).exits(0);
    bench
}

#[test]
fn a_run_is_calibrated_without_naming_its_cases_columns_or_scales_again() {
    let bench = graded();
    let ran = bench.run(&["calibrate", "--run", "latest", "--positive", ">=4", "--json"]);
    let found = ran.exits(0).json();
    assert_eq!(found["counts"]["cases"], 60, "labels are those in the data, by its mapping");
    assert_eq!(found["split"]["clustered"], true, "groups too");
    let judge = |name: &str| {
        let all = found["judges"].as_array().unwrap();
        all.iter().find(|judge| judge["name"] == name).unwrap().clone()
    };
    // The overlap is n/5 where the label is n on 1 to 5: a bias of 1 + 4 n/5 - n.
    let bias = judge("jaccard")["bias"]["estimate"].as_f64().unwrap();
    assert!((bias - 0.4).abs() < 0.1, "{bias}");
    assert_eq!(judge("jaccard")["comparable"], true);
    assert!(judge("flag")["bias"]["undefined"].is_string() || judge("flag")["n"].is_u64());
    let said = bench.run(&["calibrate", "--run", "latest", "--positive", ">=4"]).exits(0);
    said.says(&["brought onto the labels' scale 1-5"]);
    // By slices of a field of the run's own cases.
    let sliced = ["calibrate", "--run", "latest", "--positive", ">=4", "--slice", "source"];
    bench.run(&sliced).exits(0).prints(&["bot-1", "bot-2"]);
    // A profile made so is used by the panel, whose scores are in [0,1].
    bench.run(&["calibrate", "--run", "latest", "--positive", ">=4", "-o", "p.json"]).exits(0);
    let ran = bench.run(&[
        "run",
        "cases.jsonl",
        "--map",
        "group=team",
        "--map",
        "label=mark",
        "--profile",
        "p.json",
        "--json",
    ]);
    let ran = ran.exits(0).json();
    assert_eq!(ran["profile"]["uncalibrated"], 0);
    // The same judges against the same labels have not drifted.
    bench.write(
        "labels.csv",
        "item_id,label\n".to_owned()
            + &bench
                .run(&["show", "latest", "--limit", "100", "--json"])
                .exits(0)
                .json()
                .as_array()
                .unwrap()
                .iter()
                .enumerate()
                .map(|(i, one)| format!("{},{}\n", one["case"]["id"].as_str().unwrap(), i % 5 + 1))
                .collect::<String>(),
    );
    let drift = ["drift", "latest", "--profile", "p.json", "--labels", "labels.csv", "--json"];
    let drift = bench.run(&drift);
    assert!(drift.code == 0 || drift.code == 3, "{}", drift.stderr);
}

#[test]
fn a_run_whose_data_has_changed_is_calibrated_from_labels_alone_and_that_is_said() {
    let bench = graded();
    let ids = bench.run(&["show", "latest", "--limit", "100", "--json"]).exits(0).json();
    let labels: String = ids
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(i, one)| format!("{},{}\n", one["case"]["id"].as_str().unwrap(), i % 5 + 1))
        .collect();
    bench.write("labels.csv", format!("item_id,label\n{labels}"));
    bench.write("cases.jsonl", "{\"completion\": \"x\"}\n");
    let base = ["calibrate", "--run", "latest", "--positive", ">=4"];
    let from_labels = || bench.run(&[&base[..], &["--labels", "labels.csv"]].concat()).exits(0);
    // Without the columns that the run was told to read it can't even be read.
    bench.run(&base).exits(2).says(&["can't be read again", "no column `team`", "--labels"]);
    from_labels().says(&["can't be read again", "--items"]);
    bench.write("cases.jsonl", "{\"completion\": \"x\", \"team\": \"t\", \"mark\": 1}\n");
    bench.run(&base).exits(2).says(&["is not what it was", "--labels"]);
    from_labels().says(&["is not what it was", "--items"]);
    std::fs::remove_file(bench.path("cases.jsonl")).unwrap();
    bench.run(&base).exits(2).says(&["can't be read again", "--labels"]);
    from_labels().says(&["can't be read again", "--items"]);
}

#[test]
fn results_are_shown_by_source_with_n_and_interval() {
    let bench = bench();
    let summary = bench.run(&["run", "cases.csv", "--json"]).exits(0).json();
    let by = summary["by_source"].as_array().unwrap();
    let names: Vec<&str> = by.iter().map(|own| own["source"].as_str().unwrap()).collect();
    assert_eq!(names, ["ann", "bot"]);
    assert_eq!((&by[1]["cases"], &by[1]["accepted"]), (&json!(3), &json!(3)));
    assert_eq!(by[1]["accepted_share"]["n"], 3);
    let sum: u64 = by.iter().map(|own| own["cases"].as_u64().unwrap()).sum();
    assert_eq!(sum, 5);
    let ran = bench.run(&["run", "cases.csv", "-o", "r.html", "-o", "r.md"]).exits(0);
    ran.prints(&["accepted of the decided", "ann", "bot", "1.00 [0.44, 1.00] n = 3"]);
    assert!(bench.read("r.md").contains("## Sources"));
    assert!(bench.read("r.html").contains("<h2>Sources</h2>"));
    bench.write("plain.csv", "id,output\na,x\n");
    let ran = bench.run(&["run", "plain.csv", "-o", "p.md"]).exits(0);
    assert!(!ran.stdout.contains("source") && !bench.read("p.md").contains("Sources"));
}

#[test]
fn an_export_that_no_case_matches_has_its_header_and_says_so() {
    let bench = bench();
    for (i, more) in [
        &[][..],
        &["--what", "rulings"],
        &["--wide", "--with-case"],
        &["--with-case", "--positive", "=1"],
    ]
    .into_iter()
    .enumerate()
    {
        let (none, all) = (format!("none{i}.csv"), format!("all{i}.csv"));
        let export = |file: &str, more: &[&str]| {
            bench.run(&[&["export", "latest", "-o", file][..], more].concat()).exits(0)
        };
        export(&none, &[more, &["--decision", "undecided"]].concat()).says(&[
            "warning: no case of run",
            "undecided",
            &none,
        ]);
        let ran = export(&all, more);
        assert!(!ran.stderr.contains("warning: no case"), "{}", ran.stderr);
        let all = bench.read(&all);
        assert_eq!(Some(bench.read(&none).trim_end()), all.lines().next(), "{more:?}");
        assert!(all.lines().count() > 1);
    }
    let outputs = ["-o", "n.jsonl", "-o", "n.json", "-o", "n.tsv", "-o", "n.xml", "-o", "n.md"];
    let base = ["export", "latest", "--decision", "undecided"];
    let ran = bench.run(&[&base[..], &outputs].concat()).exits(0);
    assert_eq!(ran.stderr.matches("warning: no case of run").count(), 5, "{}", ran.stderr);
    assert_eq!((bench.read("n.jsonl").as_str(), bench.read("n.json").trim()), ("", "[]"));
    assert!(bench.read("n.tsv").starts_with("run\tcase\tjudge\t"));
    assert!(bench.read("n.xml").contains("tests=\"0\""), "{}", bench.read("n.xml"));
}
