//! The report on a calibration: what it says, and what hostile data can't make it do.

use serde_json::{Value, json};

use crate::workbench::{Ran, Workbench};

const HOSTILE: &str = "</title><script>alert(1)</script>";
const FORMULA: &str = "=HYPERLINK(\"http://evil\")|`*";
const CHINESE: &str = "严格的中文评审模型第一号加强版";

/// Three judges over `n` cases, every third of which is bad.
fn bench(n: usize) -> Workbench {
    let bench = Workbench::new();
    let mut labels = "case,criterion,label\n".to_owned();
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(["case", "judge", "criterion", "score"]).unwrap();
    for i in 0..n {
        let good = i % 3 != 0;
        labels.push_str(&format!("c{i},overall,{}\n", u8::from(good)));
        for (j, judge) in [HOSTILE, FORMULA, CHINESE].iter().enumerate() {
            let noise = ((i * 37 + j * 101) % 97) as f64 / 97.0;
            let score = if good { 0.45 } else { 0.1 } + 0.5 * noise;
            rows.write_record([&format!("c{i}"), *judge, "overall", &format!("{score:.3}")])
                .unwrap();
        }
    }
    bench.write("labels.csv", labels);
    bench.write("judgements.csv", rows.into_inner().unwrap());
    bench
}

fn calibrate(bench: &Workbench, more: &[&str]) -> Ran {
    let base = [
        "calibrate",
        "--judgements",
        "judgements.csv",
        "--labels",
        "labels.csv",
        "--positive",
        "=1",
    ];
    bench.run(&[&base[..], more].concat())
}

#[test]
fn a_report_promises_what_the_certificate_does_in_every_format() {
    let bench = bench(900);
    let ran = calibrate(&bench, &["-o", "r.html", "-o", "r.md", "-o", "r.csv", "--json"]).exits(0);
    let json = ran.json();
    assert_eq!(json["certificate"]["status"], "certified");
    let rate = &json["certificate"]["true_positive_rate"];
    let promise = format!(
        "The panel accepts {:.0} of 100 good answers; of bad ones it accepts at most 5 in 100, with 90% confidence.",
        rate["estimate"].as_f64().unwrap() * 100.0
    );
    for report in ["r.html", "r.md"] {
        assert!(bench.read(report).contains(&promise), "{report}: no `{promise}`");
    }
    let mut rows = csv::Reader::from_reader(bench.read("r.csv").into_bytes().leak() as &[u8]);
    assert_eq!(
        rows.headers().unwrap(),
        vec!["judge", "metric", "estimate", "lower", "upper", "n", "undefined"]
    );
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let auc = rows.iter().find(|row| &row[0] == CHINESE && &row[1] == "auc").unwrap();
    let own = &json["judges"][2]["intervals"]["auc"];
    for (place, key) in [(2, "estimate"), (3, "lower"), (4, "upper"), (5, "n")] {
        let (said, meant) = (auc[place].parse::<f64>().unwrap(), own[key].as_f64().unwrap());
        assert!((said - meant).abs() < 1e-9, "{key}");
    }
    let promised = rows.iter().find(|row| &row[0] == "certificate" && &row[1] == "threshold");
    assert!(promised.is_some());
}

#[test]
fn the_certified_threshold_lies_on_the_curve_and_its_bound_below_the_limit() {
    let json = calibrate(&bench(900), &["--json"]).exits(0).json();
    let own = &json["certificate"];
    let points = json["curves"]["threshold"]["points"].as_array().unwrap();
    let at = points
        .iter()
        .find(|p| p["threshold"] == own["threshold"] && p["tiebreak"] == own["tiebreak"])
        .unwrap();
    assert_eq!(at["upper"], own["upper_bound"]);
    assert_eq!(at["n"], own["n_bad"]);
    assert!(at["upper"].as_f64().unwrap() <= 0.05);
    assert!(points.len() <= 101);
    assert_eq!(json["curves"]["judges"].as_array().unwrap().len(), 3);
}

#[test]
fn hostile_names_stay_text_and_the_page_asks_for_nothing() {
    let bench = bench(300);
    calibrate(&bench, &["-o", "r.html", "-o", "r.md", "-o", "r.csv"]).exits(0);
    let page = bench.read("r.html");
    assert_eq!(page.matches("<script>").count(), 1, "only the page's own");
    assert!(!page.contains(" style=") && !page.contains("src=") && !page.contains("href="));
    assert!(page.contains(CHINESE) && page.contains("&lt;script&gt;"));
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 5 + 3 * 4);
    for (open, close) in [("<svg ", "</svg>"), ("<figure>", "</figure>"), ("<title>", "</title>")] {
        assert_eq!(page.matches(open).count(), page.matches(close).count(), "{open}");
    }
    let markdown = bench.read("r.md");
    assert!(markdown.contains("``=HYPERLINK(\"http://evil\")\\|`*``"), "{markdown}");
    assert!(bench.read("r.csv").contains("\"'=HYPERLINK"));
}

#[test]
fn too_few_bad_cases_are_said_with_how_many_are_missing() {
    let bench = bench(60);
    let json = calibrate(&bench, &["-o", "r.html", "-o", "r.md", "--json"]).exits(0).json();
    let missing = json["certificate"]["labels_needed"].as_u64().unwrap();
    let says =
        format!("{missing} more labelled bad answers are missing from the part that certifies");
    for report in ["r.html", "r.md"] {
        let text = bench.read(report);
        assert!(text.contains("Nothing can be promised yet"), "{report}");
        assert!(text.contains(&says), "{report}: no `{says}`");
        assert!(!text.contains("it accepts at most"), "{report}");
    }
}

#[test]
fn three_labels_and_one_class_still_give_a_report() {
    for (n, labels) in [(3, None), (40, Some("1"))] {
        let bench = bench(n);
        if let Some(label) = labels {
            let rows: String = (0..n).map(|i| format!("c{i},overall,{label}\n")).collect();
            bench.write("labels.csv", format!("case,criterion,label\n{rows}"));
        }
        calibrate(&bench, &["--no-split", "-o", "r.html", "-o", "r.md", "-o", "r.csv"]).exits(0);
        assert!(bench.read("r.html").contains("Nothing can be promised yet"));
        for cell in ["NaN", "inf"] {
            assert!(!bench.read("r.html").contains(&format!("\"{cell}")), "{n} labels: {cell}");
        }
    }
}

#[test]
fn a_kept_calibration_gives_the_same_report_and_a_profile_none() {
    let bench = bench(300);
    let date = ["--date", "2026-01-01"];
    let ran =
        calibrate(&bench, &[&date[..], &["-o", "a.html", "-o", "own.json", "--json"]].concat());
    bench.write("kept.json", ran.exits(0).stdout);
    bench.run(&["report", "kept.json", "-o", "b.html"]).exits(0).says(&["wrote b.html"]);
    assert_eq!(bench.read("a.html"), bench.read("b.html"));
    bench
        .run(&["report", "own.json", "-o", "c.html"])
        .exits(2)
        .says(&["this is a profile", "calibrate --json"]);
    bench
        .run(&["report", "kept.json", "-o", "c.xml"])
        .exits(2)
        .says(&["expected .html, .md or .csv"]);
    let mut broken: Value = serde_json::from_str(&bench.read("kept.json")).unwrap();
    broken["judges"][0]["missing"] = json!("many");
    bench.write("broken.json", broken.to_string());
    bench.run(&["report", "broken.json", "-o", "c.html"]).exits(2).says(&["broken.json"]);
    broken["version"] = json!(9);
    bench.write("broken.json", broken.to_string());
    bench.run(&["report", "broken.json", "-o", "c.html"]).exits(2).says(&["has version 9"]);
    assert!(!bench.path("c.html").exists());
}

#[test]
fn printed_calibrations_fit_the_published_schema() {
    let bench = bench(300);
    let schema = bench.run(&["schema", "calibration"]).exits(0).json();
    let json = calibrate(&bench, &["--json"]).exits(0).json();
    let known = schema["properties"].as_object().unwrap();
    for key in json.as_object().unwrap().keys() {
        assert!(known.contains_key(key), "`{key}` is not in the schema");
    }
    #[cfg(feature = "schema")]
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&json)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn every_figure_says_which_part_it_stands_on_and_no_two_headings_are_alike() {
    let bench = bench(900);
    let ran = calibrate(&bench, &["-o", "r.html", "-o", "r.md"]).exits(0);
    let html = bench.read("r.html");
    let mut headings: Vec<&str> =
        html.split("<h2").skip(1).filter_map(|part| part.split(['>', '<']).nth(1)).collect();
    let all = headings.len();
    headings.sort_unstable();
    headings.dedup();
    assert_eq!(headings.len(), all, "{headings:?}");
    // What stands below each heading of Markdown names its part, with its cases.
    let report = bench.read("r.md");
    for section in report.split("\n## ").skip(1) {
        let says = section.lines().nth(2).unwrap();
        let parts = ["certify part (", "fit part (", "900 labelled cases, both parts"];
        assert!(parts.iter().any(|part| says.contains(part)), "{section}");
    }
    ran.prints(&[
        "Judges and panel on the certify part (",
        "compared by majority on the fit part (",
        "on the same cases of the certify part (",
    ]);
    // A rule without judgement has the n of what its rates are of.
    let row = report.lines().find(|line| line.contains("accept all")).unwrap();
    let n: Vec<u64> = row
        .split("n=")
        .skip(1)
        .filter_map(|rest| rest.split([' ', '|']).next()?.parse().ok())
        .collect();
    assert_eq!(n[0], n[1] + n[2], "all cases are the bad and the good ones: {row}");
    let whole = calibrate(&bench, &["--no-split"]).exits(0);
    whole.prints(&["Judges and panel on all 900 labelled cases"]);
}

#[test]
fn one_bad_case_a_group_is_said_to_be_drawn() {
    let bench = bench(900);
    let ran = calibrate(&bench, &["--group-regex", "^c(.*).$", "-o", "r.html"]).exits(0);
    ran.prints(&["One bad case was drawn from each of these groups"]);
    assert!(bench.read("r.html").contains("one drawn from each group of the certify part"));
}
