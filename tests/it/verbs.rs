//! The main job by hand: what each verb prints and how it exits.

use serde_json::{Value, json};

use crate::workbench::Workbench;

#[test]
fn run_prints_one_json_object_whose_numbers_add_up() {
    let bench = Workbench::with_rules();
    let summary = bench.run(&["run", "cases.csv", "--json"]).exits(0).json();
    assert_eq!(summary["cases"], 3);
    assert_eq!(summary["judges"], 2);
    assert_eq!(summary["verdicts"], 6);
    assert_eq!(summary["statuses"], json!({ "ok": 6 }));
    assert_eq!(
        (&summary["accepted"], &summary["rejected"], &summary["undecided"]),
        (&json!(1), &json!(2), &json!(0))
    );
    assert_eq!((&summary["calls"], &summary["cached"]), (&json!(0), &json!(0)));
    assert!(summary["elapsed_seconds"].is_number() && summary["run"].is_string());
}

#[test]
fn exported_rows_have_the_promised_columns_in_the_data_s_order() {
    let bench = Workbench::with_rules();
    bench.run(&["run", "cases.csv", "-o", "verdicts.jsonl"]).exits(0);
    let rows = bench.rows("verdicts.jsonl");
    let cases: Vec<&str> = rows.iter().map(|row| row["case"].as_str().unwrap()).collect();
    assert_eq!(cases, ["a", "a", "b", "b", "c", "c"]);
    let columns = [
        "run",
        "case",
        "judge",
        "fingerprint",
        "sample",
        "status",
        "raw",
        "score",
        "criteria",
        "feedback",
        "model_returned",
        "tokens_in",
        "tokens_out",
        "cost_usd",
        "latency_ms",
        "attempts",
        "cached",
    ];
    for column in columns {
        assert!(rows[0].get(column).is_some(), "no column {column}");
    }
    bench.run(&["export", "latest", "-o", "rulings.jsonl", "--what", "rulings"]).exits(0);
    let rulings = bench.rows("rulings.jsonl");
    assert_eq!(rulings.len(), 3);
    for column in [
        "run",
        "case",
        "score",
        "raw_score",
        "spread",
        "decision",
        "degraded",
        "votes_used",
        "votes_declared",
    ] {
        assert!(rulings[0].get(column).is_some(), "no column {column}");
    }
    assert_eq!(rulings[0]["decision"], "accept");
    assert_eq!(rulings[1]["decision"], "reject");
    bench.run(&["export", "latest", "-o", "rows.csv.gz"]).exits(0);
    assert!(bench.path("rows.csv.gz").is_file());
}

#[test]
fn the_table_shows_votes_medians_decisions_and_what_is_next() {
    let bench = Workbench::with_rules();
    let ran = bench.run(&["run", "cases.csv"]).exits(0);
    for text in
        ["case", "short", "some", "score", "accept", "reject", "next:", "1 accepted, 2 rejected"]
    {
        assert!(ran.stdout.contains(text), "no `{text}` in {}", ran.stdout);
    }
}

#[test]
fn data_can_come_from_stdin_as_jsonl_or_csv() {
    let bench = Workbench::with_rules();
    let rows =
        "{\"prompt\":\"q\",\"completion\":\"x\"}\n\n{\"prompt\":\"q\",\"completion\":\"y\"}\n";
    let ran = bench.run_with_stdin(&["run", "-", "--json"], rows).exits(0);
    assert_eq!(ran.json()["cases"], 2);
    ran.says(&["completion", "output"]);
}

#[test]
fn score_shows_the_votes_and_gate_the_decision() {
    let bench = Workbench::with_rules();
    bench.write("good.txt", "one two");
    bench.write("task.txt", "say two words");
    let ran = bench.run(&["score", "--input", "@task.txt", "good.txt", "--json"]).exits(0);
    let ruling = ran.json();
    assert_eq!(ruling["decision"], "accept");
    assert_eq!(ruling["verdicts"].as_array().unwrap().len(), 2);
    bench.write("long.txt", "one two three four five six seven");
    let ran = bench.run(&["gate", "long.txt"]).exits(1);
    assert!(ran.stdout.starts_with("reject"), "{}", ran.stdout);
    assert!(ran.stdout.lines().count() <= 40);
    assert!(ran.stdout.contains("7 words"), "tells what to change: {}", ran.stdout);
    bench.run_with_stdin(&["gate", "-"], "one two").exits(0);
    bench.write("case.json", json!({ "output": "one", "input": "q" }).to_string());
    bench.run(&["score", "--case", "case.json"]).exits(0);
    bench.run(&["gate", "nothing.txt"]).exits(2).says(&["nothing.txt"]);
}

#[test]
fn a_gate_without_a_quorum_is_inconclusive_and_never_a_reject() {
    let bench = Workbench::with_rules();
    bench.write("panel.toml", "[[judge]]\nname = \"same\"\nkind = \"rule\"\nrule = \"equals\"\n");
    bench.write("a.txt", "x");
    let ran = bench.run(&["gate", "a.txt"]).exits(3);
    assert!(ran.stdout.starts_with("undecided") && ran.stdout.contains("same"), "{}", ran.stdout);
}

#[test]
fn init_makes_a_panel_that_runs_and_never_overwrites() {
    let bench = Workbench::new();
    bench.run(&["init"]).exits(0);
    let summary = bench.run(&["run", "cases.jsonl", "--json"]).exits(0).json();
    assert_eq!(summary["cases"], 3);
    assert_eq!(summary["rejected"], 2);
    bench.run(&["init"]).exits(2).says(&["panel.toml", "not changed"]);
}

#[test]
fn every_schema_is_json_and_knows_the_panel_s_keys() {
    let bench = Workbench::new();
    for what in ["panel", "rubric", "case", "ruling", "verdict-row", "ruling-row"] {
        let schema = bench.run(&["schema", what]).exits(0).json();
        assert!(schema["$schema"].is_string(), "{what}");
    }
    let panel = bench.run(&["schema", "panel"]).json();
    for key in ["threshold", "quorum", "aggregate", "judge"] {
        assert!(panel["properties"][key].is_object(), "no {key}");
    }
}

#[test]
fn list_cache_and_completions_answer() {
    let bench = Workbench::with_rules();
    for what in ["judges", "rules", "rubrics", "aggregators", "statuses"] {
        let names: Value = bench.run(&["list", what, "--json"]).exits(0).json();
        assert!(names.as_array().unwrap().len() > 3, "{what}: {names}");
    }
    bench.run(&["run", "cases.csv"]).exits(0);
    let runs = bench.run(&["list", "runs", "--json"]).exits(0).json();
    assert_eq!(runs[0]["state"], "finished");
    assert_eq!(bench.run(&["cache", "--json"]).exits(0).json()["replies"], 0);
    let script = bench.run(&["completions", "bash"]).exits(0);
    assert!(script.stdout.contains("venire"));
}

#[test]
fn a_dry_run_judges_nothing() {
    let bench = Workbench::with_rules();
    let plan = bench.run(&["run", "cases.csv", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(
        (&plan["cases"], &plan["verdicts"], &plan["calls"]),
        (&json!(3), &json!(6), &json!(0))
    );
    assert!(!bench.path(".venire").exists());
}

#[test]
fn fail_under_turns_a_low_share_into_exit_code_one() {
    let bench = Workbench::with_rules();
    bench.run(&["run", "cases.csv", "--fail-under", "0.3"]).exits(0);
    bench.run(&["run", "cases.csv", "--fail-under", "0.9"]).exits(1).says(&["0.9"]);
}

#[test]
fn quiet_says_nothing_and_help_has_an_example() {
    let bench = Workbench::with_rules();
    let ran = bench.run(&["run", "cases.csv", "--json", "-q"]).exits(0);
    assert_eq!(ran.stderr, "");
    for verb in [
        "run",
        "score",
        "gate",
        "export",
        "check",
        "list",
        "schema",
        "cache",
        "init",
        "completions",
    ] {
        let ran = bench.run(&[verb, "--help"]).exits(0);
        assert!(ran.stdout.contains("Example:"), "{verb} has no example");
    }
}

#[test]
fn a_ruling_of_a_sequential_run_says_where_the_full_score_lies() {
    let bench = Workbench::with_rules();
    let judge = |name: &str, more: &str| {
        format!(
            "[[judge]]\nname = \"{name}\"\nkind = \"rule\"\nrule = \"length\"\n{more}\ngraded = false\n"
        )
    };
    let panel = ["a", "b", "c"].map(|name| judge(name, "words = { min = 1 }")).concat();
    let row = |bench: &Workbench| {
        bench.run(&["run", "cases.csv", "-q", "-o", "r.jsonl", "--what", "rulings"]).exits(0);
        bench.run(&["export", "latest", "-o", "r.csv", "--what", "rulings"]).exits(0);
        bench.rows("r.jsonl")[0].clone()
    };
    bench.write("panel.toml", format!("sequential = true\nthreshold = 0.5\n{panel}"));
    assert_eq!(row(&bench)["score_bounds"], json!([1.0, 1.0]));
    assert!(bench.read("r.csv").lines().next().unwrap().contains("score_bounds"));
    bench.write("panel.toml", format!("threshold = 0.5\n{panel}"));
    assert_eq!(row(&bench)["score_bounds"], Value::Null);
}
