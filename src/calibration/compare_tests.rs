use super::*;
use crate::calibration::recording::RecordingOptions;
use crate::dataset::Source;

const RESAMPLING: Resampling = Resampling { resamples: 200, seed: 1, level: 0.95 };

pub(crate) fn recording(text: &str, name: &str) -> Result<Recording, CalibrationError> {
    let source = Source::spool(text.as_bytes(), "judgements.csv").unwrap();
    Recording::of_file(&source, name, &RecordingOptions::default())
}

/// One judge on `n` cases; `accept` says which it accepts.
pub(crate) fn judged(n: usize, name: &str, accept: impl Fn(usize) -> bool) -> Recording {
    let rows: String = (0..n).map(|i| format!("c{i},j,{}\n", u8::from(accept(i)))).collect();
    recording(&format!("case,judge,score\n{rows}"), name).unwrap()
}

fn compared(a: &Recording, b: &Recording) -> RunComparison {
    let options =
        CompareOptions { labels: None, group: None, certify: None, resampling: RESAMPLING };
    compare(a, b, &options).unwrap()
}

#[test]
fn a_fall_beyond_chance_is_a_regression_and_chance_is_not() {
    let before = judged(200, "a", |i| i % 2 == 0);
    let worse = judged(200, "b", |i| i % 4 == 0);
    let found = compared(&before, &worse);
    assert_eq!(found.flips.len(), 50);
    assert!(found.regressions[0].contains("accepted share of `j`"), "{:?}", found.regressions);
    assert!(compared(&worse, &before).regressions.is_empty(), "more is no regression");
    let same = compared(&before, &judged(200, "c", |i| i % 2 == 0 && i != 0));
    assert!(same.regressions.is_empty(), "one case of 200 can be chance");
    assert_eq!((same.flips[0].case.as_str(), same.flips[0].second), ("c0", "reject"));
}

#[test]
fn with_labels_more_accepted_can_be_the_regression() {
    let truth: HashMap<String, bool> = (0..200).map(|i| (format!("c{i}"), i % 2 == 0)).collect();
    let before = judged(200, "a", |i| i % 2 == 0);
    let lenient = judged(200, "b", |i| i % 2 == 0 || i % 5 == 0);
    let options =
        CompareOptions { labels: Some(&truth), group: None, certify: None, resampling: RESAMPLING };
    let found = compare(&before, &lenient, &options).unwrap();
    assert_eq!((found.labelled, found.judges[0].agreement.as_ref().unwrap().lost), (200, 20));
    assert!(found.regressions.iter().any(|own| own.contains("false-positive rate")));
    assert!(found.flips.iter().all(|own| own.good == Some(false)));
}

#[test]
fn a_judge_that_stops_answering_is_seen_by_its_statuses() {
    let rows =
        |failing: usize| -> String {
            (0..60)
                .map(|i| {
                    if i < failing {
                        format!("c{i},j,,timeout\n")
                    } else {
                        format!("c{i},j,1,ok\n")
                    }
                })
                .collect()
        };
    let text = |failing| format!("case,judge,score,status\n{}", rows(failing));
    let (a, b) = (recording(&text(0), "a").unwrap(), recording(&text(15), "b").unwrap());
    let found = compared(&a, &b);
    assert_eq!(found.judges[0].statuses["ok to timeout"], 15);
    assert!(found.regressions.iter().any(|own| own.contains("without a score")));
    assert_eq!(found.flips.len(), 15);
    assert_eq!(found.flips[0].votes[0].second, Value::from("timeout"));
}

#[test]
fn a_panel_of_a_file_is_its_lower_median_below_a_quorum_nothing() {
    let file =
        recording("case,judge,score\na,x,1\na,y,1\na,z,0\nb,x,1\nb,y,\nb,z,\nc,x,0\nc,y,1\n", "f")
            .unwrap();
    let of = |place: usize| (file.cases[place].score, file.cases[place].accepted);
    assert_eq!(
        [of(0), of(1), of(2)],
        [(Some(1.0), Some(true)), (None, None), (Some(0.0), Some(false))]
    );
}

#[test]
fn nothing_in_common_duplicates_and_mixed_files_are_refused_with_their_cure() {
    let (a, b) = (judged(3, "a", |_| true), recording("case,judge,score\nx,j,1\n", "b").unwrap());
    let options =
        CompareOptions { labels: None, group: None, certify: None, resampling: RESAMPLING };
    let error = compare(&a, &b, &options).unwrap_err().to_string();
    assert!(error.contains("no case in common, such as `c0` and `x`"), "{error}");
    let twice = recording("case,judge,score\na,j,1\na,j,0\n", "t").unwrap_err().to_string();
    assert!(
        twice.contains("recorded twice on case `a`") && twice.contains("lines 2 and 3"),
        "{twice}"
    );
    let mixed = recording("case,judge,criterion,score\na,j,p,1\na,j,q,0\n", "m").unwrap_err();
    assert!(mixed.to_string().contains("--criterion"), "{mixed}");
    let orders = recording("case,judge,score,order\na,j,1,ab\na,j,2,ba\n", "o").unwrap_err();
    assert!(orders.to_string().contains("--order"), "{orders}");
    for bad in ["NaN", "inf", "-inf"] {
        assert!(recording(&format!("case,judge,score\na,j,{bad}\n"), "n").is_err(), "{bad}");
    }
}

#[test]
fn other_judges_are_named_and_the_common_ones_compared() {
    let a = recording("case,judge,score\na,x,1\na,y,1\nb,x,0\nb,y,1\n", "a").unwrap();
    let b = recording("case,judge,score\na,x,1\na,z,1\nb,x,0\nb,z,1\n", "b").unwrap();
    let found = compared(&a, &b);
    let changed: Vec<(&str, &str)> =
        found.identities.iter().map(|own| (own.judge.as_str(), own.what)).collect();
    assert_eq!(changed, [("z", "added"), ("y", "removed")]);
    assert_eq!(found.judges.len(), 1);
}

/// A graded judge whose good cases score `lift` higher than its bad ones, in steps of 0.001.
fn graded(n: usize, name: &str, lift: f64) -> Recording {
    let rows: String = (0..n)
        .map(|i| {
            let noise = (i * 7919 % n) as f64 / n as f64;
            let lift = if i % 2 == 0 { lift } else { 0.0 };
            format!("c{i},j,{:.3}\n", 0.5 * noise + lift)
        })
        .collect();
    recording(&format!("case,judge,score\n{rows}"), name).unwrap()
}

#[test]
fn both_are_compared_at_certified_thresholds_with_delta_halved() {
    let truth: HashMap<String, bool> = (0..400).map(|i| (format!("c{i}"), i % 2 == 0)).collect();
    let certify = Some(Certify { alpha: 0.05, delta: 0.10 });
    let options =
        CompareOptions { labels: Some(&truth), group: None, certify, resampling: RESAMPLING };
    let (weak, strong) = (graded(400, "a", 0.1), graded(400, "b", 0.4));
    let found = compare(&weak, &strong, &options).unwrap().certified.unwrap();
    assert!(found.is_certified());
    assert_eq!((found.first.delta, found.second.delta, found.first.among), (0.05, 0.05, 2));
    assert_eq!(found.first.n_bad, 200);
    let change = found.true_positive_rate.unwrap();
    let difference = change.difference.value().unwrap();
    assert!(difference.lower > 0.3 && change.n == 200, "{difference:?}");
    let same = compare(&weak, &weak, &options).unwrap().certified.unwrap();
    let change = same.true_positive_rate.unwrap();
    assert_eq!((change.gained, change.lost), (0, 0));
}

#[test]
fn too_few_bad_cases_certify_neither_and_say_how_many_are_needed() {
    let truth: HashMap<String, bool> = (0..60).map(|i| (format!("c{i}"), i % 2 == 0)).collect();
    let certify = Some(Certify { alpha: 0.05, delta: 0.10 });
    let options =
        CompareOptions { labels: Some(&truth), group: None, certify, resampling: RESAMPLING };
    let found = compare(&graded(60, "a", 0.1), &graded(60, "b", 0.4), &options).unwrap();
    let found = found.certified.unwrap();
    assert!(!found.is_certified() && found.true_positive_rate.is_none());
    // 59 bad ones are needed at 0.05 and 0.05 (Clopper and Pearson, no false accept).
    assert_eq!((found.first.n_bad, found.first.labels_needed), (30, Some(29)));
}

#[test]
fn graded_votes_that_decide_nothing_are_still_compared_by_their_scores() {
    let graded = |name: &str, less: f64| {
        let rows: String = (0..120)
            .map(|i| format!("c{i},j,{}\n", f64::from(i % 5) - less * f64::from(1 + i % 2)))
            .collect();
        recording(&format!("case,judge,score\n{rows}"), name).unwrap()
    };
    let truth: HashMap<String, bool> = (0..120).map(|i| (format!("c{i}"), i % 2 == 0)).collect();
    let options =
        CompareOptions { labels: Some(&truth), group: None, certify: None, resampling: RESAMPLING };
    let found = compare(&graded("a", 0.0), &graded("b", 2.0), &options).unwrap();
    assert!(!found.decides());
    assert!(found.regressions[0].contains("mean score of `j`"), "{:?}", found.regressions);
    assert!(found.conclusion.contains("Nothing accepts or rejects"), "{}", found.conclusion);
    assert!(!found.conclusion.contains("flipped"), "{}", found.conclusion);
}
