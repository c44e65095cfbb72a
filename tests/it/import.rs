//! `venire import`: another tool's file becomes what `calibrate` reads.

use crate::workbench::Workbench;

/// Results of `cases` tests with a rubric judge that is mostly right, and a person's rating.
fn results(cases: usize) -> String {
    let rows: Vec<String> = (0..cases)
        .map(|i| {
            let good = i % 3 != 0;
            let score = if good != (i % 10 == 0) { 0.9 } else { 0.2 };
            format!(
                r#"{{"testIdx": {i}, "promptIdx": 0, "provider": {{"id": "p"}}, "prompt": {{"raw": "q{i}"}},
                "vars": {{"n": {i}}}, "response": {{"output": "o{i}"}}, "gradingResult": {{"pass": true, "score": 1,
                "componentResults": [
                  {{"pass": true, "score": {score}, "reason": "r", "assertion": {{"type": "llm-rubric"}}}},
                  {{"pass": {good}, "score": 1, "reason": "Manual result", "assertion": {{"type": "human"}}}}]}}}}"#
            )
        })
        .collect();
    format!(
        r#"{{"evalId": "e", "config": {{}}, "results": {{"version": 3, "results": [{}]}}}}"#,
        rows.join(",")
    )
}

#[test]
fn an_imported_file_is_calibrated_as_it_stands() {
    let bench = Workbench::new();
    bench.write("results.json", results(60));
    let summary = bench.run(&["import", "results.json", "-o", "in", "--json"]).exits(0).json();
    assert_eq!(summary["tool"], "promptfoo");
    assert_eq!((summary["cases"].as_u64(), summary["labels"].as_u64()), (Some(60), Some(60)));
    assert_eq!(summary["judges"]["llm-rubric"]["ok"], 60);
    let report = bench
        .run(&[
            "calibrate",
            "--judgements",
            "in/judgements.jsonl",
            "--labels",
            "in/labels.jsonl",
            "--items",
            "in/cases.jsonl",
            "--positive",
            "=1",
            "--group",
            "group",
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(report["counts"]["cases"], 60);
    assert_eq!(report["judges"][0]["name"], "llm-rubric");
}

#[test]
fn a_look_writes_nothing_and_says_so() {
    let bench = Workbench::new();
    bench.write("results.json", results(3));
    let ran = bench.run(&["import", "results.json"]).exits(0).says(&["nothing is written"]);
    assert!(ran.stdout.contains("llm-rubric"), "{}", ran.stdout);
    assert!(!bench.path("cases.jsonl").exists());
}

#[test]
fn files_of_an_earlier_import_do_not_pass_for_this_one() {
    let bench = Workbench::new();
    bench.write("results.json", results(3));
    bench.run(&["import", "results.json", "-o", "in"]).exits(0);
    bench.write("other.json", results(3).replace("\"human\"", "\"equals\""));
    bench
        .run(&["import", "other.json", "-o", "in"])
        .exits(2)
        .says(&["labels.jsonl` is of another import"]);
}

#[test]
fn a_file_without_results_is_inconclusive_and_a_wrong_one_an_error() {
    let bench = Workbench::new();
    bench.write("empty.json", results(0));
    bench.run(&["import", "empty.json"]).exits(3).says(&["holds no results"]);
    bench.write("wrong.json", "{}");
    bench.run(&["import", "wrong.json"]).exits(2).says(&["--from", "promptfoo"]);
    bench.run(&["import", "missing.json"]).exits(2).says(&["missing.json"]);
    bench.write("t.csv", "answer,gpt\na,4\n");
    bench.run(&["import", "t.csv", "--judge", "gpt", "-o", "t.csv"]).exits(2);
}

#[test]
fn an_import_never_writes_over_what_it_reads() {
    let bench = Workbench::new();
    bench.write("in/cases.jsonl", "{\"output\": \"a\", \"gpt\": 4}\n");
    bench
        .run(&["import", "in/cases.jsonl", "--judge", "gpt", "-o", "in"])
        .exits(2)
        .says(&["would overwrite"]);
    assert!(bench.read("in/cases.jsonl").contains("gpt"));
}
