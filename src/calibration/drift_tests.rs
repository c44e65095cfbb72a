use super::*;
use crate::calibration::compare::tests::{judged, recording};

const RESAMPLING: Resampling = Resampling { resamples: 200, seed: 1, level: 0.95 };

fn options() -> DriftOptions<'static> {
    DriftOptions { labels: None, group: None, tolerance: 0.1, alpha: 0.05, resampling: RESAMPLING }
}

fn status(a: &Recording, b: &Recording) -> DriftStatus {
    drift(a, b, &options()).unwrap().status
}

#[test]
fn few_anchors_are_inconclusive_many_unchanged_pass_and_a_shift_is_drift() {
    let even = |i: usize| i.is_multiple_of(2);
    assert_eq!(status(&judged(10, "a", even), &judged(10, "b", even)), DriftStatus::Inconclusive);
    assert_eq!(status(&judged(100, "a", even), &judged(100, "b", even)), DriftStatus::Passed);
    let lenient = judged(100, "b", |i| i % 2 == 0 || i % 3 == 0);
    assert_eq!(status(&judged(100, "a", even), &lenient), DriftStatus::Drifted);
    let found = drift(&judged(10, "a", even), &judged(10, "b", even), &options()).unwrap();
    assert!(found.conclusion.contains("may have changed by"), "{}", found.conclusion);
}

#[test]
fn a_change_within_the_tolerance_passes_however_sure_it_is() {
    let before = judged(4000, "a", |i| i % 2 == 0);
    let after = judged(4000, "b", |i| i % 2 == 0 || i % 101 == 1);
    let found = drift(&before, &after, &options()).unwrap();
    let own = &found.reports[0].checks[0];
    assert!(*own.p_holm.value().unwrap() < 0.01 && own.status == DriftStatus::Passed, "{own:?}");
}

#[test]
fn a_constant_shift_of_all_scores_has_no_interval_and_is_drift() {
    let rows = |shift: f64| -> String {
        (0..50).map(|i| format!("c{i},j,{}\n", 1.0 + f64::from(i % 4) + shift)).collect()
    };
    let text = |shift| format!("case,judge,score\n{}", rows(shift));
    let before = recording(&text(0.0), "a").unwrap();
    assert_eq!(status(&before, &recording(&text(1.0), "b").unwrap()), DriftStatus::Drifted);
    assert_eq!(status(&before, &recording(&text(0.0), "b").unwrap()), DriftStatus::Passed);
}

#[test]
fn a_shift_that_begins_on_the_way_has_a_small_cusum_p_and_a_scattered_one_has_not() {
    let text = |changed: &dyn Fn(usize) -> bool| {
        let rows: String = (0..120).map(|i| format!("c{i},j,{}\n", u8::from(changed(i)))).collect();
        recording(&format!("case,judge,score\n{rows}"), "r").unwrap()
    };
    let before = text(&|_| false);
    let p = |after: &Recording| {
        let found = drift(&before, after, &options()).unwrap();
        found.reports[0].cusum.value().unwrap().p
    };
    assert!(p(&text(&|i| i >= 90)) < 0.01);
    assert!(p(&text(&|i| i % 4 == 0)) > 0.2);
}

#[test]
fn copies_of_one_anchor_are_one_step_of_the_cusum() {
    // Thirty groups of ten copies; every third group changes, scattered over the file.
    let text = |changed: &dyn Fn(usize) -> bool| {
        let rows: String = (0..300)
            .map(|i| format!("g{}_{i},j,{}\n", i / 10, u8::from(changed(i / 10))))
            .collect();
        recording(&format!("case,judge,score\n{rows}"), "r").unwrap()
    };
    let before = text(&|_| false);
    let pattern = regex::Regex::new("^(g[0-9]+)_").unwrap();
    let p = |after: &Recording, group| {
        let found = drift(&before, after, &DriftOptions { group, ..options() }).unwrap();
        found.reports[0].cusum.value().unwrap().p
    };
    let scattered = text(&|g| g % 3 == 0);
    assert!(p(&scattered, None) < 0.01, "as independent anchors the copies look like a shift");
    assert!(p(&scattered, Some(&pattern)) > 0.2);
    assert!(p(&text(&|g| g >= 20), Some(&pattern)) < 0.01, "a shift of whole groups is seen");
}

#[test]
fn a_judge_that_stops_answering_does_not_pass() {
    let rows = |failing: usize| -> String {
        (0..100).map(|i| format!("c{i},j,{}\n", if i < failing { "" } else { "1" })).collect()
    };
    let text = |failing| recording(&format!("case,judge,score\n{}", rows(failing)), "r").unwrap();
    assert_eq!(status(&text(0), &text(30)), DriftStatus::Drifted);
}

#[test]
fn labels_look_at_agreement_and_at_false_accepts() {
    let truth: HashMap<String, bool> = (0..300).map(|i| (format!("c{i}"), i % 3 == 0)).collect();
    let own = DriftOptions { labels: Some(&truth), ..options() };
    let before = judged(300, "a", |i| i % 3 == 0);
    let lenient = judged(300, "b", |i| i % 3 == 0 || i % 4 == 0);
    let found = drift(&before, &lenient, &own).unwrap();
    let checks: Vec<(&str, DriftStatus)> =
        found.reports[0].checks.iter().map(|own| (own.what, own.status)).collect();
    assert_eq!(checks[0].0, "agreement");
    assert_eq!(checks[1], ("false_positive_rate", DriftStatus::Drifted));
}

#[test]
fn a_tolerance_outside_its_range_is_refused() {
    let anchors = judged(5, "a", |_| true);
    for tolerance in [0.0, 1.0, f64::NAN] {
        let error = drift(&anchors, &anchors, &DriftOptions { tolerance, ..options() });
        assert!(error.unwrap_err().to_string().contains("--tolerance"));
    }
}
