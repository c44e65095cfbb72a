//! Every statistic against independent reference values, case by case.

#[path = "support/golden/mod.rs"]
mod golden;

use std::path::Path;

use golden::Outcome;

/// Their annotations belong to others and are not shipped; they are checked when a copy is
/// at hand.
const OUTSIDE: [&str; 1] = ["alt_test_datasets"];

#[test]
fn every_golden_case_is_met() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden_stats.json");
    let cases = golden::load(&file).unwrap();
    assert!(cases.len() >= 89, "only {} cases were read", cases.len());
    let mut off = Vec::new();
    for case in &cases {
        match case.run() {
            Outcome::Met => {}
            Outcome::Off(detail) => off.push(format!("{}: {detail}", case.id)),
            Outcome::Unknown => off.push(format!("{}: unknown statistic {}", case.id, case.stat)),
            Outcome::NoData(_) if OUTSIDE.contains(&case.id.as_str()) => {}
            Outcome::NoData(detail) => off.push(format!("{}: {detail}", case.id)),
        }
    }
    assert!(off.is_empty(), "{} cases are off:\n{}", off.len(), off.join("\n"));
}
