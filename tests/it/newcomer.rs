//! What someone meets who comes from another evaluation tool: looking at cases, tables for a
//! spreadsheet, reports, lists that explain themselves, hints.

use serde_json::json;

use crate::workbench::Workbench;

/// Two rules that disagree, over cases with labels, groups and metadata.
fn bench() -> Workbench {
    let bench = Workbench::new();
    bench.write(
        "panel.toml",
        r#"name = "rules"
threshold = 0.5
[[judge]]
name = "short"
kind = "rule"
rule = "length"
words = { max = 4 }
graded = false
[[judge]]
name = "polite"
kind = "rule"
rule = "contains"
any = ["please"]
[[judge]]
name = "refused"
kind = "rule"
rule = "equals"
report_only = true
"#,
    );
    bench.write(
        "cases.csv",
        "id,input,output,group,label,rater,team,note\n\
         team/support/0001,q,please wait,g1,1,ann,a,\n\
         team/support/0002,q,go away now,g1,0,ann,b,rude\n\
         team/support/0003,q,please read all of this very long text,g2,1,ben,a,\"=cmd|' /C calc'!A0\"\n\
         team/support/0004,q,<script>alert(1)</script> and a lot of words,g3,,,b,\n",
    );
    bench.run(&["run", "cases.csv", "-q"]).exits(0);
    bench
}

fn csv_rows(bench: &Workbench, name: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(bench.path(name)).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

#[test]
fn rows_carry_their_case_with_labels_and_metadata() {
    let bench = bench();
    for what in ["verdicts", "rulings"] {
        bench
            .run(&[
                "export",
                "latest",
                "-o",
                "a.csv",
                "-o",
                "a.jsonl",
                "--what",
                what,
                "--with-case",
            ])
            .exits(0);
        let row = csv_rows(&bench, "a.csv").into_iter().find(|r| r["case"].ends_with("2")).unwrap();
        assert_eq!(row["output"], "go away now");
        assert_eq!(row["labels.overall"], "0.0");
        assert_eq!((row["metadata.team"].as_str(), row["metadata.note"].as_str()), ("b", "rude"));
        assert_eq!(row["group"], "g1");
        let rows = bench.rows("a.jsonl");
        let row = rows.iter().find(|r| r["case"] == "team/support/0002").unwrap();
        assert_eq!(row["metadata"], json!({ "team": "b", "note": "rude" }));
        assert_eq!(row["labels"], json!({ "overall": 0.0 }));
        let last = rows.iter().find(|r| r["case"] == "team/support/0004").unwrap();
        assert!(last.get("labels").is_none(), "an unlabelled case has no label: {last}");
    }
}

#[test]
fn a_wide_row_is_a_case_with_each_judge_s_score_as_a_column() {
    let bench = bench();
    bench.run(&["export", "latest", "-o", "w.csv", "-o", "w.jsonl", "--wide"]).exits(0);
    let rows = csv_rows(&bench, "w.csv");
    assert_eq!(rows.len(), 4);
    let first = &rows[0];
    assert_eq!((first["votes.short"].as_str(), first["votes.polite"].as_str()), ("1.0", "1.0"));
    assert_eq!(first["votes.refused"], "", "no score is an empty cell and never 0");
    assert_eq!(first["without_vote"], "refused: abstained");
    assert_eq!(first["decision"], "accept");
    assert!(first.get("output").is_none(), "only with --with-case");
    let rows = bench.rows("w.jsonl");
    assert_eq!(rows[1]["votes"], json!({ "short": 1.0, "polite": 0.0, "refused": null }));
    bench.run(&["run", "cases.csv", "-q", "-o", "r.csv", "--wide", "--with-case"]).exits(0);
    let rows = csv_rows(&bench, "r.csv");
    assert_eq!(rows[2]["metadata.note"], "=cmd|' /C calc'!A0", "cells are as they came");
    assert_eq!(rows[2]["labels.overall"], "1.0");
    bench.run(&["export", "latest", "-o", "x.csv", "--wide", "--what", "rulings"]).exits(2);
}

#[test]
fn labels_of_data_that_has_changed_are_left_out_and_that_is_said() {
    let bench = bench();
    bench.write("cases.csv", "id,output,label\nx,y,1\n");
    let ran = bench.run(&["export", "latest", "-o", "a.jsonl", "--what", "rulings", "--with-case"]);
    ran.exits(0).says(&["cases.csv", "without its labels"]);
    assert!(bench.rows("a.jsonl").iter().all(|row| row.get("labels").is_none()));
    assert_eq!(bench.rows("a.jsonl")[0]["output"], "please wait", "cases are in the store");
}

#[test]
fn cases_are_chosen_by_decision_status_spread_and_who_was_outvoted() {
    let bench = bench();
    let shown = |more: &[&str]| {
        let ran = bench.run(&[&["show", "latest", "--json"], more].concat()).exits(0);
        let list = ran.json();
        let ids = list.as_array().unwrap().iter().map(|one| one["case"]["id"].as_str().unwrap());
        ids.map(|id| id.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&[]), ["0001", "0002", "0003", "0004"]);
    assert_eq!(shown(&["--decision", "accept"]), ["0001"]);
    assert_eq!(shown(&["--decision", "reject", "--limit", "2"]), ["0002", "0003"]);
    assert_eq!(shown(&["--min-spread", "0.5"]), ["0002", "0003"]);
    assert_eq!(shown(&["--sort", "spread", "--limit", "3"]), ["0002", "0003", "0001"]);
    assert_eq!(shown(&["--outvoted", "--judge", "polite"]), ["0003"]);
    assert_eq!(shown(&["--status", "abstained", "--judge", "refused"]).len(), 4);
    assert_eq!(shown(&["--status", "timeout"]).len(), 0);
    bench.run(&["export", "latest", "-o", "r.csv", "--wide", "--decision", "reject"]).exits(0);
    assert_eq!(csv_rows(&bench, "r.csv").len(), 3);
    let table = bench.run(&["show", "--decision", "reject", "--limit", "1"]).exits(0);
    assert!(table.stdout.contains("3 of 4 cases (decision reject); 2 more"), "{}", table.stdout);
}

#[test]
fn one_case_is_shown_with_its_texts_votes_and_reasons() {
    let bench = bench();
    let ran = bench.run(&["show", "latest", "0002"]).exits(0);
    for part in [
        "case team/support/0002",
        "reject",
        "go away now",
        "short: 1.00",
        "polite: 0.00",
        "refused: abstained",
        "not counted",
        "\"team\": \"b\"",
    ] {
        assert!(ran.stdout.contains(part), "no `{part}` in {}", ran.stdout);
    }
    let whole = bench.run(&["show", "latest", "team/support/0002", "--json"]).exits(0).json();
    assert_eq!(whole["ruling"]["decision"], "reject");
    assert_eq!(whole["case"]["output"], "go away now");
}

#[test]
fn what_is_not_there_is_named_with_what_was_likely_meant() {
    let bench = bench();
    bench.run(&["show", "latest", "team/"]).exits(2).says(&["4 cases", "`team/support/0001`"]);
    bench.run(&["show", "latest", "team/suport/0001"]).exits(2).says(&["did you mean `team/"]);
    bench.run(&["show", "0003"]).exits(2).says(&["`venire show latest 0003`"]);
    bench.run(&["show", "--status", "tiemout"]).exits(2).says(&["did you mean `timeout`?"]);
    bench
        .run(&["show", "--judge", "polit", "--outvoted"])
        .exits(2)
        .says(&["short, polite, refused", "did you mean `polite`?"]);
    bench.run(&["show", "--judge", "polite"]).exits(2).says(&["--status", "--outvoted"]);
}

#[test]
fn a_hostile_output_can_t_steer_the_terminal() {
    let bench = bench();
    bench.write(
        "hostile.jsonl",
        json!({"id": "a\u{1b}[2J", "output": "x\u{1b}]0;t\u{7}\u{202e}y"}).to_string(),
    );
    bench.run(&["run", "hostile.jsonl", "-q"]).exits(0);
    for arguments in [&["show"][..], &["show", "latest", "a\u{1b}[2J"]] {
        let ran = bench.run(arguments).exits(0);
        assert!(!ran.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{:?}", ran.stdout);
    }
}

#[test]
fn reports_are_written_by_run_export_score_and_gate() {
    let bench = bench();
    bench
        .run(&[
            "run",
            "cases.csv",
            "-q",
            "-o",
            "r.md",
            "-o",
            "r.html",
            "-o",
            "r.xml",
            "-o",
            "r.csv",
        ])
        .exits(0);
    assert!(bench.read("r.md").contains("**1 accepted, 3 rejected, 0 undecided** of 4 cases"));
    assert!(!bench.read("r.md").contains("not been finished"), "{}", bench.read("r.md"));
    let page = bench.read("r.html");
    assert!(page.contains("&lt;script&gt;alert(1)") && page.matches("<script").count() == 1);
    let xml = bench.read("r.xml");
    assert!(xml.contains("tests=\"4\" failures=\"3\" errors=\"0\""), "{xml}");
    bench.run(&["export", "latest", "-o", "few.html", "--decision", "accept"]).exits(0);
    assert!(bench.read("few.html").contains("Only a selection of the cases: decision accept."));
    bench.write("a.txt", "please wait");
    bench.run(&["score", "a.txt", "-o", "s.md", "-o", "s.jsonl"]).exits(0);
    assert!(bench.read("s.md").contains("**1 accepted"), "{}", bench.read("s.md"));
    assert_eq!(bench.rows("s.jsonl").len(), 3);
    bench.write("b.txt", "no");
    bench.run(&["gate", "b.txt", "-o", "g.xml", "-o", "g.html"]).exits(1);
    assert!(bench.read("g.xml").contains("<failure type=\"reject\""), "{}", bench.read("g.xml"));
    bench.run(&["gate", "b.txt", "-o", "b.txt"]).exits(2).says(&["b.txt"]);
    bench.run(&["score", "b.txt", "-o", "nowhere/x.html"]).exits(2).says(&["nowhere/x.html"]);
    bench.run(&["run", "cases.csv", "-o", "nowhere/x.md"]).exits(2).says(&["nowhere/x.md"]);
}

#[test]
fn the_accepted_share_honours_groups_and_says_so() {
    let bench = bench();
    let ran = bench.run(&["run", "cases.csv"]).exits(0);
    assert!(ran.stdout.contains("n = 4 in 3 groups)"), "{}", ran.stdout);
    let summary = bench.run(&["run", "cases.csv", "--json"]).exits(0).json();
    let share = &summary["accepted_share"];
    assert_eq!(
        (&share["n"], &share["groups"], &share["point"]),
        (&4.into(), &3.into(), &0.25.into())
    );
    let alone = Workbench::with_rules();
    let summary = alone.run(&["run", "cases.csv", "--json"]).exits(0).json();
    assert_eq!(summary["accepted_share"]["groups"], json!(null));
}

#[test]
fn lists_say_what_each_thing_is_and_the_whole_of_one() {
    let bench = bench();
    for what in ["judges", "rules", "rubrics", "providers", "aggregators", "statuses"] {
        let rows = bench.run(&["list", what, "--json"]).exits(0).json();
        for row in rows.as_array().unwrap() {
            let description = row["description"].as_str().unwrap();
            assert!(description.len() > 8, "{what}: {row}");
        }
    }
    let rule = bench.run(&["list", "rules", "length"]).exits(0).stdout;
    for part in ["words", "{ max, min }", "graded", "true", "[[judge]]", "rule = \"length\""] {
        assert!(rule.contains(part), "no `{part}` in {rule}");
    }
    let judge = bench.run(&["list", "judges", "llm"]).exits(0).stdout;
    for part in
        ["model", "needed", "base_url", "Keys of every judge", "report_only", "kind = \"llm\""]
    {
        assert!(judge.contains(part), "no `{part}` in {judge}");
    }
    let rubric = bench.run(&["list", "rubrics", "helpfulness"]).exits(0).stdout;
    for part in ["scale 1-5", "understanding  weight 25%", "    1  Misunderstands", "tone"] {
        assert!(rubric.contains(part), "no `{part}` in {rubric}");
    }
    let chinese = bench.run(&["list", "rubrics", "general", "--lang", "zh"]).exits(0).stdout;
    assert!(chinese.contains('的'), "{chinese}");
    bench.run(&["list", "rules", "lenght"]).exits(2).says(&["did you mean `length`?"]);
    bench.run(&["list", "runs", "x"]).exits(2).says(&["venire show x"]);
    let runs = bench.run(&["list", "runs"]).exits(0).stdout;
    assert!(runs.contains("accepted") && runs.contains("finished"), "{runs}");
}

#[test]
fn a_printed_rubric_is_a_rubric_file() {
    let bench = bench();
    let json = bench.run(&["list", "rubrics", "summary", "--json"]).exits(0).stdout;
    bench.write("mine.json", json);
    let panel = crate::workbench::model_panel("http://127.0.0.1:9", 1, "")
        .replace("mode = \"yes_no\"\ncriterion = \"Is it right?\"", "rubric = \"mine.json\"");
    bench.write("panel.toml", panel);
    bench.run(&["check"]).exits(0);
}

#[test]
fn a_recording_that_is_not_there_says_what_it_is_and_how_to_make_one() {
    let bench = bench();
    bench.write(
        "panel.toml",
        "[[judge]]\nname = \"r\"\nkind = \"replay\"\nfile = \"recorded.csv\"\n",
    );
    bench.run(&["check"]).exits(2).says(&[
        "line 4",
        "recorded.csv",
        "`item_id`, `judge` and `score`",
        "venire run -c PANEL CASES -o recorded.csv",
    ]);
}

#[test]
fn long_ids_keep_their_ends_in_tables() {
    let bench = bench();
    bench.write(
        "long.csv",
        "id,output\nconversations/2026/november/support/ticket-0017,x\nconversations/2026/november/support/ticket-0018,y\n",
    );
    let ran = bench.run(&["run", "long.csv"]).exits(0);
    assert!(
        ran.stdout.contains("ticket-0017 ") && ran.stdout.contains("ticket-0018 "),
        "{}",
        ran.stdout
    );
}

#[cfg(unix)]
#[test]
fn a_timeout_says_which_limit_whose_and_what_to_change() {
    let bench = bench();
    let slow = "[[judge]]\nname = \"slow\"\nkind = \"command\"\nchecks = [{ argv = [\"sleep\", \"30\"] }]\n";
    for (panel, said) in [
        (
            format!("{slow}timeout = \"200ms\"\n"),
            ["the limit was 200 ms, the judge's `timeout`", "on the judge `slow`"],
        ),
        (
            format!("timeout = \"200ms\"\n{slow}"),
            ["what was left of the panel's `timeout` was ", "at the top of the panel file"],
        ),
    ] {
        bench.write("panel.toml", panel);
        bench.write("a.txt", "x");
        bench.run(&["gate", "a.txt"]).exits(3).says(&said);
    }
}
