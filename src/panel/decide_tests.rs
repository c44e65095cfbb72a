use proptest::prelude::*;

use super::*;
use crate::panel::vote::Aggregate;
use crate::verdict::CriterionScore;

fn score(value: f64) -> Score {
    Score::new(value).unwrap()
}

fn seat(name: &str) -> SeatRules {
    SeatRules { name: name.into(), weight: 1.0, required: false, report_only: false, samples: 1 }
}

fn rules(seats: Vec<SeatRules>) -> Rules {
    let quorum = seats.iter().filter(|s| !s.report_only).count() as u32 / 2 + 1;
    Rules { seats, settings: Settings::default(), threshold: 0.7, quorum, profile: None }
}

fn ok(judge: &str, value: f64) -> Verdict {
    Verdict { judge: judge.into(), ..Verdict::ok(score(value)) }
}

fn failed(judge: &str, status: Status) -> Verdict {
    Verdict { judge: judge.into(), ..Verdict::failed(status, "x") }
}

fn three() -> Rules {
    rules(vec![seat("a"), seat("b"), seat("c")])
}

#[test]
fn the_median_decides() {
    let ruling = three().rule("x", vec![ok("a", 0.1), ok("b", 0.8), ok("c", 0.9)]);
    assert_eq!(ruling.score, Some(score(0.8)));
    assert_eq!(ruling.decision, Decision::Accept);
    assert_eq!((ruling.votes_used, ruling.votes_declared, ruling.degraded), (3, 3, false));
    assert!((ruling.spread.unwrap() - 0.8).abs() < 1e-12);
}

#[test]
fn below_the_quorum_the_decision_is_undecided_and_never_reject() {
    let verdicts = vec![ok("a", 0.0), failed("b", Status::Timeout), failed("c", Status::Refused)];
    let ruling = three().rule("x", verdicts);
    assert_eq!((ruling.decision, ruling.score), (Decision::Undecided, None));
    assert_eq!(ruling.reason, Reason::NoQuorum);
}

#[test]
fn a_lost_vote_above_the_quorum_is_said_and_is_no_zero() {
    let ruling = three().rule("x", vec![ok("a", 0.9), ok("b", 0.8), failed("c", Status::Timeout)]);
    assert_eq!((ruling.decision, ruling.degraded), (Decision::Accept, true));
    assert_eq!(ruling.score, Some(score(0.8)));
}

#[test]
fn a_required_judge_can_not_be_outvoted() {
    let mut tests = seat("tests");
    tests.required = true;
    let rules = rules(vec![seat("a"), seat("b"), tests]);
    let ruling = rules.rule("x", vec![ok("a", 1.0), ok("b", 1.0), ok("tests", 0.0)]);
    assert_eq!(ruling.decision, Decision::Reject);
    assert_eq!(ruling.reason, Reason::RequiredJudge { judge: "tests".into() });
    let missing =
        rules.rule("x", vec![ok("a", 1.0), ok("b", 1.0), failed("tests", Status::Timeout)]);
    assert_eq!(missing.decision, Decision::Undecided);
    let rejected =
        rules.rule("x", vec![ok("a", 0.0), ok("b", 0.0), failed("tests", Status::Timeout)]);
    assert_eq!(rejected.decision, Decision::Reject);
}

#[test]
fn a_judge_without_weight_vetoes_and_does_not_vote() {
    let mut veto = seat("veto");
    veto.required = true;
    veto.weight = 0.0;
    let rules = rules(vec![seat("a"), veto]);
    assert_eq!((rules.declared(), rules.quorum), (1, 2), "the test's own quorum counts seats");
    let rules = Rules { quorum: 1, ..rules };
    let low = rules.rule("x", vec![ok("a", 0.1), ok("veto", 1.0)]);
    assert_eq!((low.decision, low.score), (Decision::Reject, Some(score(0.1))));
    let vetoed = rules.rule("x", vec![ok("a", 0.9), ok("veto", 0.0)]);
    assert_eq!(vetoed.decision, Decision::Reject);
    let down = rules.rule("x", vec![failed("a", Status::ProviderError), ok("veto", 1.0)]);
    assert_eq!(down.decision, Decision::Undecided, "a veto fills no quorum");
}

#[test]
fn a_report_only_judge_is_shown_and_not_counted() {
    let mut shown = seat("shown");
    shown.report_only = true;
    let rules = rules(vec![seat("a"), shown]);
    let ruling = rules.rule("x", vec![ok("a", 0.9), ok("shown", 0.0)]);
    assert_eq!((ruling.decision, ruling.votes_declared), (Decision::Accept, 1));
    assert_eq!(ruling.votes.len(), 2);
    assert_eq!(ruling.spread, None);
}

#[test]
fn samples_fold_into_one_vote_and_their_spread_is_kept() {
    let mut sampled = seat("a");
    sampled.samples = 3;
    let rules = rules(vec![sampled]);
    let verdicts = (0..3).map(|i| Verdict { sample: i, ..ok("a", [0.2, 0.9, 0.8][i as usize]) });
    let ruling = rules.rule("x", verdicts.collect());
    assert_eq!(ruling.score, Some(score(0.8)));
    assert_eq!((ruling.votes[0].samples_ok, ruling.votes_used), (3, 1));
    assert!((ruling.votes[0].sample_spread.unwrap() - 0.7).abs() < 1e-12);
}

#[test]
fn a_required_criterion_that_fails_turns_an_accept_into_a_reject() {
    let criterion = CriterionScore {
        name: "safety".into(),
        score: Some(score(0.1)),
        raw: None,
        passed: Some(false),
        required: true,
        feedback: None,
    };
    let verdict = Verdict { criteria: vec![criterion], ..ok("a", 0.9) };
    let ruling = rules(vec![seat("a")]).rule("x", vec![verdict]);
    assert_eq!(ruling.decision, Decision::Reject);
    assert_eq!(ruling.reason, Reason::RequiredCriterion { criterion: "safety".into() });
}

#[test]
fn a_required_criterion_that_too_few_judges_scored_leaves_the_case_undecided() {
    let verdict = |judge: &str, passed: Option<bool>| {
        let value = passed.map(|passed| score(if passed { 1.0 } else { 0.0 }));
        let criterion = CriterionScore {
            name: "facts".into(),
            score: value,
            raw: None,
            passed,
            required: true,
            feedback: None,
        };
        Verdict { criteria: vec![criterion], ..ok(judge, 0.9) }
    };
    let missing = Reason::RequiredCriterionMissing { criterion: "facts".into() };
    let failed = Reason::RequiredCriterion { criterion: "facts".into() };
    let (yes, no, open) = (Some(true), Some(false), None);
    for (passed, decision, reason) in [
        (vec![open], Decision::Undecided, &missing),
        (vec![open, open, open], Decision::Undecided, &missing),
        (vec![yes, open, open], Decision::Undecided, &missing),
        (vec![yes, open], Decision::Undecided, &missing),
        (vec![yes, yes, open], Decision::Accept, &Reason::Threshold),
        (vec![no, open, open], Decision::Reject, &failed),
        (vec![yes, yes, no], Decision::Accept, &Reason::Threshold),
    ] {
        let names = ["a", "b", "c"];
        let seats = names[..passed.len()].iter().map(|name| seat(name)).collect();
        let verdicts = names.iter().zip(&passed).map(|(name, passed)| verdict(name, *passed));
        let ruling = rules(seats).rule("x", verdicts.collect());
        assert_eq!((ruling.decision, &ruling.reason), (decision, reason), "{passed:?}");
    }
}

#[test]
fn majority_accepts_above_one_half_only() {
    let mut rules = rules(vec![seat("a"), seat("b")]);
    rules.settings.aggregate = Aggregate::Majority;
    assert_eq!(rules.rule("x", vec![ok("a", 1.0), ok("b", 0.0)]).decision, Decision::Reject);
    assert_eq!(rules.rule("x", vec![ok("a", 1.0), ok("b", 0.7)]).decision, Decision::Accept);
}

fn any_verdict(judge: usize) -> impl Strategy<Value = Verdict> {
    let status = prop::sample::select(Status::ALL.to_vec());
    (0.0..=1.0, status, 0.0..1.0_f64).prop_map(move |(value, status, coin)| {
        let name = format!("j{judge}");
        if coin < 0.7 { ok(&name, value) } else { failed(&name, status) }
    })
}

proptest! {
    #[test]
    fn the_order_of_answers_changes_nothing(
        verdicts in (1usize..7).prop_flat_map(|n| (0..n).map(any_verdict).collect::<Vec<_>>()),
        turn in 0usize..7,
    ) {
        let rules = rules((0..verdicts.len()).map(|i| seat(&format!("j{i}"))).collect());
        let mut turned = verdicts.clone();
        turned.rotate_left(turn % verdicts.len());
        turned.reverse();
        prop_assert_eq!(rules.rule("x", verdicts), rules.rule("x", turned));
    }

    #[test]
    fn a_decision_needs_its_quorum(
        verdicts in (1usize..7).prop_flat_map(|n| (0..n).map(any_verdict).collect::<Vec<_>>()),
    ) {
        let rules = rules((0..verdicts.len()).map(|i| seat(&format!("j{i}"))).collect());
        let ruling = rules.rule("x", verdicts);
        prop_assert_eq!(ruling.votes_used < rules.quorum, ruling.decision == Decision::Undecided);
        prop_assert_eq!(ruling.score.is_none(), ruling.decision == Decision::Undecided);
    }
}
