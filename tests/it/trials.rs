//! Faults that a hostile user found in judges, rows and verbs, each kept as a case.

use serde_json::{Value, json};

use crate::workbench::Workbench;

fn cases(bench: &Workbench, n: usize) {
    let rows: String =
        (0..n).map(|i| format!("{{\"id\":\"c{i}\",\"output\":\"o{i}\"}}\n")).collect();
    bench.write("cases.jsonl", rows);
}

fn script(bench: &Workbench, name: &str, body: &str, more: &str) {
    bench.write(&format!("{name}.sh"), body);
    bench.write(
        "panel.toml",
        format!(
            "threshold = 0.5\n[[judge]]\nname = \"{name}\"\nkind = \"script\"\nargv = [\"sh\", \"{name}.sh\"]\n{more}\n"
        ),
    );
}

const INVERTED: &str = r#"
threshold = 0.7
[[judge]]
name = "promises"
kind = "rule"
rule = "contains"
any = ["guarantee"]
invert = true
"#;

#[test]
fn an_inverted_judge_never_asks_for_the_fault() {
    let bench = Workbench::new();
    bench.write("panel.toml", INVERTED);
    let clean = bench.run_with_stdin(&["gate", "-", "-q"], "clean").exits(0);
    assert!(!clean.stdout.contains("guarantee"), "{}", clean.stdout);
    let faulty = bench.run_with_stdin(&["gate", "-", "-q"], "I guarantee it").exits(1);
    assert!(faulty.stdout.contains("must not"), "{}", faulty.stdout);

    bench.write(
        "panel.toml",
        "threshold = 0.7\n[[judge]]\nname = \"bug\"\nkind = \"command\"\ninvert = true\nchecks = [{ name = \"has TODO\", argv = [\"grep\", \"-q\", \"TODO\", \"{output_file}\"], required = true }]\n",
    );
    bench.run_with_stdin(&["gate", "-", "-q"], "clean").exits(0);
    let faulty = bench.run_with_stdin(&["gate", "-", "-q"], "TODO").exits(1);
    assert!(faulty.stdout.contains("`has TODO` holds, and must not"), "{}", faulty.stdout);
}

#[test]
fn exported_rows_of_an_inverted_judge_give_the_same_rulings_again() {
    let bench = Workbench::new();
    cases(&bench, 4);
    let mut recorded = "item_id,judge,score\n".to_owned();
    for (i, (a, b, c)) in
        [(0.2, 0.9, 0.8), (0.9, 0.9, 0.1), (0.5, 0.3, 0.6), (1.0, 0.0, 0.4)].iter().enumerate()
    {
        recorded.push_str(&format!("c{i},a,{a}\nc{i},b,{b}\nc{i},c,{c}\n"));
    }
    bench.write("rec.csv", recorded);
    let panel = |aggregate: &str, file: &str, invert: bool| {
        let seats = [("a", invert), ("b", false), ("c", false)].map(|(name, invert)| {
            format!(
                "[[judge]]\nname = \"{name}\"\nkind = \"replay\"\nfile = \"{file}\"\nweight = 2\n{}",
                if invert { "invert = true\n" } else { "" }
            )
        });
        format!("threshold = 0.5\naggregate = \"{aggregate}\"\n{}", seats.concat())
    };
    let rulings = |panel: String, also: &[&str]| -> Vec<(Value, Value, Value)> {
        bench.write("panel.toml", panel);
        let rows = ["run", "cases.jsonl", "-q", "-o", "rulings.jsonl", "--what", "rulings"];
        bench.run(&rows).exits(0);
        for output in also {
            bench.run(&["export", "latest", "-q", "-o", output]).exits(0);
        }
        let rows = bench.rows("rulings.jsonl");
        rows.iter()
            .map(|r| (r["case"].clone(), r["score"].clone(), r["decision"].clone()))
            .collect()
    };
    for aggregate in ["median", "weighted_median", "trimmed_mean", "mean", "min", "majority"] {
        let first = rulings(panel(aggregate, "rec.csv", true), &["v.csv", "v.jsonl", "v.tsv"]);
        for file in ["v.csv", "v.jsonl", "v.tsv"] {
            for invert in [true, false] {
                let again = rulings(panel(aggregate, file, invert), &[]);
                assert_eq!(again, first, "{aggregate}, {file}, {invert}");
            }
        }
    }
    let row = &bench.rows("v.jsonl")[0];
    assert_eq!((&row["score"], &row["raw"]), (&json!(0.8), &json!(0.2)), "{row}");
    assert_eq!(row["notes"]["inverted"], true);
}

#[test]
fn a_required_criterion_that_a_script_leaves_out_is_undecided_and_named() {
    let bench = Workbench::new();
    let answer =
        r#"cat > /dev/null; echo '{"score":1,"criteria":[{"name":"facts","required":true}]}'"#;
    script(&bench, "s", answer, "");
    let ran = bench.run_with_stdin(&["score", "-", "-q", "--json"], "x").exits(3).json();
    let reason = json!({ "kind": "required_criterion_missing", "criterion": "facts" });
    assert_eq!((&ran["decision"], &ran["reason"]), (&json!("undecided"), &reason));
    let said = bench.run_with_stdin(&["score", "-", "-q"], "x").exits(3).stdout;
    assert!(said.contains("facts"), "{said}");
}

#[test]
fn costs_that_a_script_reports_count_against_the_limit_and_are_said() {
    let bench = Workbench::new();
    cases(&bench, 30);
    script(&bench, "s", r#"cat > /dev/null; echo '{"score":1,"cost_usd":0.5}'"#, "");
    let plan = bench.run(&["run", "cases.jsonl", "--dry-run", "--json"]).exits(0).json();
    assert_eq!((&plan["cost_usd"], &plan["cost_unknown_of"]), (&Value::Null, &json!(["s"])));
    let said = bench.run(&["run", "cases.jsonl", "--dry-run"]).exits(0).stdout;
    assert!(said.contains("what `s` may cost is not known"), "{said}");
    let limited = ["run", "cases.jsonl", "--cost-limit", "1", "--max-undecided", "1"];
    let ran = bench.run(&[&limited[..], &["--json"]].concat()).exits(0).json();
    assert_eq!(ran["statuses"], json!({ "ok": 2, "budget": 28 }));
    assert_eq!((&ran["cost_usd"], &ran["run_cost_usd"]), (&json!(1.0), &json!(1.0)));
    let said = bench.run(&limited).exits(0).stdout;
    assert!(said.contains("report 1.0000 US dollars"), "{said}");
    script(&bench, "s", r#"cat > /dev/null; echo '{"score":1,"cost_usd":1e308}'"#, "");
    let ran = bench.run(&["run", "cases.jsonl", "--json", "-q"]).exits(3).json();
    assert_eq!(
        (&ran["statuses"], &ran["run_cost_usd"]),
        (&json!({ "unparseable": 30 }), &json!(0.0))
    );
}

#[test]
fn waiting_for_a_free_worker_is_not_the_script_s_time() {
    let bench = Workbench::new();
    cases(&bench, 8);
    let slow = r#"while read -r line; do sleep 0.3; echo '{"score":1}'; done"#;
    script(&bench, "w", slow, "mode = \"lines\"\ntimeout = \"1s\"");
    let ran = bench.run(&["run", "cases.jsonl", "--json", "-q"]).exits(0).json();
    assert_eq!(ran["statuses"], json!({ "ok": 8 }));
}

#[test]
fn credentials_in_urls_are_refused_or_masked_and_never_kept() {
    let bench = Workbench::new();
    cases(&bench, 1);
    let panel = |judge: &str| bench.write("panel.toml", format!("threshold = 0.1\n{judge}"));
    for url in ["http://user:pa55word@127.0.0.1:9/x", "http://127.0.0.1:9/x?api_key=pa55word"] {
        panel(&format!("[[judge]]\nname = \"h\"\nkind = \"http\"\nurl = \"{url}\"\n"));
        let said = bench.run(&["check"]).exits(2).says(&["api_key_env"]).stderr;
        assert!(!said.contains("pa55word"), "{said}");
    }
    let observe = |url: &str| {
        panel(&format!(
            "[[judge]]\nname = \"o\"\nkind = \"observe\"\nexpect = [{{ url = \"{url}\", headers = {{ X-K = \"pa55word\" }} }}]\n"
        ));
    };
    observe("http://user:pa55word@127.0.0.1:9/x");
    bench.run(&["check"]).exits(2).says(&["user or password", "headers"]);
    observe("http://127.0.0.1:9/x?token=pa55word&page=2");
    let ran = bench.run(&["run", "cases.jsonl", "-vv", "-o", "v.jsonl", "-o", "r.html", "--json"]);
    let ran = ran.exits(0);
    let kept = std::fs::read(bench.path(".venire/store.db")).unwrap();
    let all = [ran.stdout, ran.stderr, bench.read("v.jsonl"), bench.read("r.html")].concat()
        + &String::from_utf8_lossy(&kept);
    assert!(!all.contains("pa55word"));
    assert!(bench.read("v.jsonl").contains("token=***&page=2"));
}

#[test]
fn rows_that_were_left_out_leave_a_trace_everywhere() {
    let bench = Workbench::with_rules();
    let bad = "{bad\n".repeat(8);
    bench.write("cases.jsonl", format!("{{\"id\":\"a\",\"output\":\"one two three\"}}\n{bad}"));
    let ran = bench.run(&["run", "cases.jsonl", "--on-bad-row", "skip", "--json", "-o", "r.md"]);
    let ran = ran.exits(0).says(&["8 rows were left out", "and 3 more rows"]);
    let summary = ran.json();
    assert_eq!(summary["skipped_rows"], 8);
    assert!(summary["warnings"].to_string().contains("8 rows were left out"), "{summary}");
    assert!(bench.read("r.md").contains("8 rows of the data could not be used"));
    bench.run(&["export", "latest", "-o", "r.html"]).exits(0);
    assert!(bench.read("r.html").contains("8 rows of the data could not be used"));
}

#[test]
fn what_has_no_effect_or_is_not_there_is_said_truly() {
    let bench = Workbench::with_rules();
    bench.write("empty.csv", "id,output\n");
    let said = bench.run(&["check", "empty.csv"]).exits(3).stdout;
    assert!(said.contains("columns: `id`, `output`") && !said.contains("missing"), "{said}");
    bench.run(&["run", "cases.csv", "--limit", "0"]).exits(3).says(&["`--limit 0` takes no case"]);
    bench.run(&["run", "cases.csv", "--wide", "--with-case"]).says(&["`--wide`", "`-o FILE`"]);
    bench.run(&["check", "-c", "none.toml", "gone.csv"]).exits(2).says(&["gone.csv"]);
    bench.write("answer.txt", "one two three");
    let shown = bench.run(&["gate", "answer.txt", "--json", "-o", "x.json"]).json();
    let written: Value = serde_json::from_str(&bench.read("x.json")).unwrap();
    assert_eq!(written, shown);
    for list in ["[1, 20]", "[20]"] {
        bench.write(
            "list.toml",
            format!(
                "[[judge]]\nname = \"l\"\nkind = \"rule\"\nrule = \"length\"\nwords = {list}\n"
            ),
        );
        bench.run(&["check", "-c", "list.toml"]).exits(2).says(&["words", "found a list"]);
    }
}

#[test]
fn a_template_that_asks_for_what_is_not_there_is_told_in_one_line() {
    let bench = Workbench::new();
    let judge = |template: &str| {
        bench.write(
            "panel.toml",
            format!(
                "threshold = 0.5\n[[judge]]\nname = \"l\"\nkind = \"llm\"\nmodel = \"openai/m\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmode = \"score\"\ntemplate = '''{template}'''\n"
            ),
        );
    };
    judge("{{ question }} {{ output }}");
    bench.run(&["check"]).exits(2).says(&["did you mean `input`?"]);
    judge("{{ metadata.topic }} {{ output }}");
    let ran = bench.run_with_stdin(&["score", "-", "--json", "-q"], "x").exits(3).json();
    let detail = ran["verdicts"][0]["detail"].as_str().unwrap();
    assert!(!detail.contains('\n') && detail.contains("metadata.topic"), "{detail}");
}
