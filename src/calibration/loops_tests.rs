use super::*;

const RESAMPLING: Resampling = Resampling { resamples: 500, seed: 1, level: 0.95 };

/// Loops given as (score, good) of each generation.
fn recorded(loops: &[&[(f64, bool)]], generations: u32) -> (Loops, Vec<LabelledCase>, Vec<f64>) {
    let mut own = Loops { generations, ..Loops::default() };
    let (mut cases, mut scores) = (Vec::new(), Vec::new());
    for (place, checks) in loops.iter().enumerate() {
        own.loops.push(LoopFacts {
            name: format!("t{place}"),
            length: checks.len() as u32,
            incomplete: false,
        });
        for (i, (score, good)) in checks.iter().enumerate() {
            let id = format!("t{place}#{}", i + 1);
            own.places.insert(id.clone(), (place, i as u32 + 1));
            let target = f64::from(u8::from(*good));
            cases.push(LabelledCase { id, good: *good, target, ratings: Vec::new() });
            scores.push(*score);
        }
    }
    (own, cases, scores)
}

/// Whether each unit is bad, and its worst score.
fn units(own: &Loops, cases: &[LabelledCase], scores: &[f64]) -> Vec<(bool, f64)> {
    let rows: Vec<usize> = (0..cases.len()).collect();
    let groups: Vec<usize> = cases.iter().map(|case| own.places[&case.id].0).collect();
    let key = |i: usize, _| Some((scores[i], scores[i]));
    own.certify_cases(cases, &groups, &rows, key, |_| false)
        .into_iter()
        .map(|case| (!case.good, case.worst.0))
        .collect()
}

const NEVER: &[(f64, bool)] = &[(0.3, false), (0.6, false), (0.2, false)];
const LATE: &[(f64, bool)] = &[(0.5, false), (0.4, false), (0.9, true)];

#[test]
fn a_loop_counts_by_its_largest_bad_score() {
    let (mut own, cases, scores) = recorded(&[NEVER, LATE], 3);
    assert_eq!(units(&own, &cases, &scores), [(true, 0.6), (false, 0.9)]);
    own.over = Over::AnyBad;
    assert_eq!(units(&own, &cases, &scores), [(true, 0.6), (true, 0.5), (false, 0.9)]);
}

#[test]
fn generations_beyond_k_do_not_count() {
    let (own, cases, scores) = recorded(&[NEVER, LATE], 1);
    assert_eq!(units(&own, &cases, &scores), [(true, 0.3), (true, 0.5)], "not good within 1");
}

#[test]
fn a_loop_stopped_while_bad_counts_as_accepted_at_every_threshold() {
    let stopped: &[(f64, bool)] = &[(0.3, false), (0.7, false)];
    let (own, cases, scores) = recorded(&[NEVER, stopped, &LATE[..2]], 3);
    let worst: Vec<f64> = units(&own, &cases, &scores).iter().map(|unit| unit.1).collect();
    assert_eq!(worst, [0.6, f64::INFINITY, f64::INFINITY]);
    let done: &[(f64, bool)] = &[(0.3, false), (0.9, true)];
    let (own, cases, scores) = recorded(&[NEVER, done], 3);
    assert_eq!(units(&own, &cases, &scores), [(true, 0.6), (false, 0.9)], "good stays good");
    let relapse: &[(f64, bool)] = &[(0.9, true), (0.1, false), (0.1, false)];
    let (mut own, cases, scores) = recorded(&[relapse, done], 3);
    own.over = Over::AnyBad;
    assert_eq!(units(&own, &cases, &scores)[2], (true, f64::INFINITY), "it may have got worse");
}

#[test]
fn loops_with_a_generation_that_nobody_labelled_are_left_out() {
    let (mut own, cases, scores) = recorded(&[NEVER, LATE], 3);
    own.loops[0].incomplete = true;
    assert_eq!(units(&own, &cases, &scores), [(false, 0.9)]);
}

#[test]
fn the_report_follows_each_loop_to_its_first_accept() {
    let early: &[(f64, bool)] = &[(0.9, false), (0.9, true), (0.9, true)];
    let (own, cases, scores) = recorded(&[NEVER, LATE, early], 3);
    let rows: Vec<usize> = (0..cases.len()).collect();
    let key = |i: usize| Some((scores[i], scores[i]));
    // Each loop is a group of its own.
    let alone: Vec<usize> = (0..cases.len()).map(|i| i / 3).collect();
    let report = own.report(&cases, &alone, &rows, key, Some(((0.55, 0.0), "fitted")), RESAMPLING);
    let table: Vec<_> =
        report.by_generation.iter().map(|row| (row.reached, row.accepted, row.bad)).collect();
    assert_eq!(table, [(3, 1, 1), (2, 1, 1), (1, 1, 0)]);
    assert_eq!((report.never_complete, report.complete, report.censored), (1, 2, 0));
    let estimands = report.estimands.unwrap();
    assert_eq!(estimands.trajectory_false_positive_rate.unwrap().point, 1.0);
    assert_eq!(estimands.premature_rate.unwrap().point, 0.5);
    assert_eq!(report.first_accepts.value().unwrap().estimate, 1.0);
    assert_eq!(report.late_accepts.value().unwrap().estimate, 0.5);
    assert_eq!(report.stopped_at, None);
}

#[test]
fn a_log_recorded_while_accepting_is_told_by_where_its_loops_end() {
    let accepted: &[(f64, bool)] = &[(0.3, false), (0.8, true)];
    let other: &[(f64, bool)] = &[(0.75, false)];
    let (own, cases, scores) = recorded(&[accepted, other, NEVER], 3);
    let rows: Vec<usize> = (0..cases.len()).collect();
    let report = own.report(&cases, &rows, &rows, |i| Some((scores[i], 0.0)), None, RESAMPLING);
    assert_eq!((report.stopped_at, report.censored), (Some(0.75), 1));
}

#[test]
fn copies_of_a_loop_are_no_further_evidence() {
    let (own, cases, scores) = recorded(&[NEVER, LATE].repeat(40), 3);
    let rows: Vec<usize> = (0..cases.len()).collect();
    let key = |i: usize| Some((scores[i], scores[i]));
    let width = |loops_a_group: usize| {
        let groups: Vec<usize> = (0..cases.len()).map(|i| i / (3 * loops_a_group)).collect();
        let threshold = Some(((0.55, 0.0), "fitted"));
        let report = own.report(&cases, &groups, &rows, key, threshold, RESAMPLING);
        let rate = report.estimands.unwrap().trajectory_false_positive_rate.unwrap();
        assert_eq!(rate.n, 40);
        rate.interval.upper - rate.interval.lower
    };
    assert!(width(20) > 2.0 * width(1), "{} {}", width(20), width(1));
}
