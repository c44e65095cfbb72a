//! The published schemas against the files that the program itself accepts.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::workbench::Workbench;

fn published(bench: &Workbench, what: &str) -> Validator {
    let schema = bench.run(&["schema", what]).exits(0).json();
    jsonschema::validator_for(&schema).unwrap()
}

fn toml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            toml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

fn errors(validator: &Validator, file: &Value) -> Vec<String> {
    let said =
        |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    validator.iter_errors(file).map(said).collect()
}

fn read(path: &Path) -> Value {
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_panel_and_loop_that_is_shipped_fits_the_published_schema() {
    let bench = Workbench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["datasets", "examples", "calibration"] {
        toml_files(&root.join(folder), &mut files);
    }
    bench.run(&["init", "first"]).exits(0);
    files.push(bench.path("first/panel.toml"));
    let (panel, loops) = (published(&bench, "panel"), published(&bench, "loop"));
    let (mut panels_seen, mut loops_seen) = (0, 0);
    for path in files {
        let file = read(&path);
        let found = if file.get("judge").is_some() {
            panels_seen += 1;
            errors(&panel, &file)
        } else if ["agent", "exit", "budget", "panel"].iter().any(|key| file.get(key).is_some()) {
            loops_seen += 1;
            errors(&loops, &file)
        } else {
            continue;
        };
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
    assert!(panels_seen > 15 && loops_seen > 0, "{panels_seen} panels, {loops_seen} loops");
}

#[test]
fn every_kind_of_judge_fits_and_keys_of_another_kind_do_not() {
    let bench = Workbench::new();
    let panel = published(&bench, "panel");
    let judges = json!([
        { "kind": "llm", "model": "openai/m", "rubric": "helpfulness", "timeout": "30s" },
        { "kind": "rule", "rule": "length", "words": { "min": 1 }, "required": true, "weight": 0 },
        { "kind": "rule", "rule": "composite", "parts": [
            { "check": { "rule": "length", "words": { "max": 80 } } },
        ] },
        { "kind": "command", "checks": [{ "argv": ["true"] }], "invert": true },
        { "kind": "script", "argv": ["x"], "mode": "lines" },
        { "kind": "http", "url": "http://localhost/x", "report_only": true },
        { "kind": "observe", "expect": [{ "port": "127.0.0.1:80" }], "reserve": true },
        { "kind": "human", "timeout": 30 },
        { "kind": "replay", "file": "x.csv" },
    ]);
    for mut judge in judges.as_array().unwrap().clone() {
        judge["name"] = "j".into();
        let found = errors(&panel, &json!({ "judge": [judge] }));
        assert!(found.is_empty(), "{judge}: {found:#?}");
        judge["weigth"] = 2.into();
        assert!(!panel.is_valid(&json!({ "judge": [judge] })), "{judge}");
    }
    for wrong in [
        json!({ "name": "j", "kind": "rule", "rule": "length", "model": "m" }),
        json!({ "name": "j", "kind": "rule", "rule": "lenght" }),
        json!({ "name": "j", "kind": "rule", "rule": "length", "words": [1, 20] }),
        json!({ "kind": "human" }),
        json!({ "name": "j" }),
    ] {
        assert!(!panel.is_valid(&json!({ "judge": [wrong] })), "{wrong}");
    }
}

#[test]
fn a_loop_names_its_panel_in_each_way_that_is_read() {
    let bench = Workbench::new();
    let loops = published(&bench, "loop");
    let judge = json!({ "name": "j", "kind": "human" });
    for panel in [
        json!("panel.toml"),
        json!({ "path": "panel.toml", "threshold": 0.8 }),
        json!({ "judge": [judge] }),
    ] {
        let found = errors(&loops, &json!({ "panel": panel }));
        assert!(found.is_empty(), "{panel}: {found:#?}");
    }
    let both = json!({ "panel": { "path": "panel.toml", "quorum": 2 } });
    assert!(!loops.is_valid(&both));
}
