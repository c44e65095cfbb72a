//! The accept rule beyond one judgement: reserve judges, and disputes.

use serde_json::json;

use super::super::{Confirmation, Reason, RecordStatus};
use super::*;

fn by_reserve(confirm: Option<u32>) -> Policy {
    let mut policy = exit(json!({ "any": ["quality_threshold"] }));
    policy.confirm_by_reserve(confirm).unwrap();
    policy
}

#[test]
fn a_reserve_confirms_once_unless_the_file_says_otherwise() {
    assert_eq!(by_reserve(None).confirm, 1);
    assert_eq!(by_reserve(Some(2)).confirm, 2);
    let mut policy =
        policy(json!({ "any": ["quality_threshold"] }), json!({ "evaluations": 1 }), json!({}))
            .unwrap();
    assert!(policy.confirm_by_reserve(None).unwrap_err().to_string().contains("evaluations"));
}

#[test]
fn what_the_reserve_rejects_is_a_judged_try_and_tells_nothing_of_the_panels_noise() {
    let turns = [
        Turn::Rounds(vec![judgement(0.95), judgement(0.2)]),
        Turn::Rounds(vec![judgement(0.95), judgement(0.3)]),
        Turn::Rounds(vec![judgement(0.95), judgement(0.92)]),
    ];
    let played = play(by_reserve(None), &turns);
    assert_eq!((played.reason(), played.generations()), ("quality_reached", 3));
    let first = &played.state.records()[0];
    assert_eq!(
        (first.status, first.score.unwrap().get()),
        (RecordStatus::ConfirmationRejected, 0.2)
    );
    assert_eq!(played.state.confirmation(), Confirmation::Confirmed);
    assert_eq!(played.state.noise_band(), 0.0, "other judges' scores are no repeats");
}

fn disputing(ask: bool) -> Policy {
    let mut policy = exit(json!({ "any": ["quality_threshold"] }));
    policy.gate.on_dispute = ask;
    policy
}

#[test]
fn a_dispute_that_the_other_judges_uphold_goes_to_a_person_or_ends_the_run() {
    let upheld = || Turn::Disputes("rhyme", vec![judgement(0.3), judgement(0.95)]);
    let played = play(disputing(false), &[Turn::Score(0.2), upheld()]);
    assert_eq!(played.reason(), "evaluator_unreliable");
    assert_eq!(played.outcome().class().exit_code(), 3, "it is no accept");
    assert_eq!(played.rounds, [Round::First, Round::First, Round::Dispute]);
    assert_eq!(played.outcome().best, Some(2));
    assert_eq!(played.state.best().unwrap().score.unwrap().get(), 0.3, "the panel's score stands");
    let played = play(disputing(true), &[Turn::Score(0.2), upheld()]);
    assert_eq!(played.state.awaiting(), Some(About::OnDispute));
}

#[test]
fn a_dispute_that_is_lost_is_told_once_and_can_not_be_raised_again() {
    let turns = [
        Turn::Score(0.2),
        Turn::Disputes("rhyme", vec![judgement(0.3), judgement(0.4)]),
        Turn::Disputes("rhyme", vec![judgement(0.3), judgement(0.95)]),
        Turn::Score(0.35),
    ];
    let played = play(disputing(true), &turns);
    assert!(!played.asked && !played.ended);
    let overruled: Vec<bool> = played.directives.iter().map(|d| d.overruled).collect();
    assert_eq!(overruled, [false, false, true, false, false]);
    let disputes = played.rounds.iter().filter(|round| **round == Round::Dispute).count();
    assert_eq!(disputes, 1, "never endless");
}

#[test]
fn a_dispute_of_what_passes_is_not_looked_at_and_one_that_nobody_can_judge_is_open() {
    let passes = Turn::Disputes("rhyme", vec![judgement(0.95)]);
    assert_eq!(play(disputing(false), &[passes]).reason(), "quality_reached");
    let open = || Turn::Disputes("rhyme", vec![judgement(0.3), Judgement::failed(false)]);
    assert!(!play(disputing(false), &[open()]).ended, "the finding stands");
    assert_eq!(play(disputing(true), &[open()]).state.awaiting(), Some(About::OnDispute));
}

#[test]
fn a_limit_comes_before_a_dispute() {
    let mut policy =
        policy(json!({ "any": ["quality_threshold"] }), json!({ "max_generations": 1 }), json!({}))
            .unwrap();
    policy.gate.on_dispute = true;
    let played = play(policy, &[Turn::Disputes("a", vec![judgement(0.3), judgement(0.95)])]);
    assert_eq!(played.reason(), "max_generations");
    assert!(!played.outcome().also_fired.contains(&Reason::EvaluatorUnreliable));
}
