//! Every file of the recorded sets that `VENIRE_DATA` names. They are too large and too
//! variously licensed to be part of the project, so the test says when it did not run.

use std::path::PathBuf;

use super::*;

fn files(name: &str) -> Option<Vec<PathBuf>> {
    let Some(root) = std::env::var_os("VENIRE_DATA") else {
        eprintln!("NOT RUN: set VENIRE_DATA to the folder of the recorded data sets");
        return None;
    };
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        for extension in ["", ".gz"] {
            let path = folder.join(format!("{name}{extension}"));
            if path.exists() {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty(), "VENIRE_DATA holds no `{name}`");
    Some(files)
}

#[test]
fn all_recorded_items_are_read() {
    for path in files("items.jsonl").unwrap_or_default() {
        let scan = scan(&Source::open(&path).unwrap(), &bare()).unwrap();
        assert!(scan.count > 0 && scan.skipped.count == 0, "{}", path.display());
        assert_eq!(scan.generated_ids, 0);
    }
}

#[test]
fn all_recorded_labels_are_read() {
    for path in files("labels.csv").unwrap_or_default() {
        let set = read_labels(&Source::open(&path).unwrap(), &LabelOptions::default()).unwrap();
        assert!(!set.labels.is_empty());
        for label in &set.labels {
            let scale = &set.scales[&label.criterion];
            scale.score(&label.value).unwrap();
        }
        for (criterion, scale) in &set.scales {
            println!("{}: {criterion}: {}", path.display(), scale.note);
        }
    }
}

#[test]
fn all_recorded_judgements_are_read() {
    for path in files("judgements.csv").unwrap_or_default() {
        let source = Source::open(&path).unwrap();
        let scan = scan_judgements(&source, &LabelOptions::default()).unwrap();
        let statuses: u64 = scan.judges.values().map(|counts| counts.total()).sum();
        assert!(scan.count > 0);
        assert_eq!(statuses, scan.count);
        println!("{}: {} judgements, {} judges", path.display(), scan.count, scan.judges.len());
    }
}
