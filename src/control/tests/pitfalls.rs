//! What naive controllers get wrong about limits, accepts, judges and agents, by the id of each
//! defect.

use serde_json::json;

use super::super::{
    AgentFault, Answer, Base, Confirmation, Event, Reason, Spent, State, What, decide,
};
use super::*;

pub(super) fn any(conditions: Value) -> Policy {
    exit(json!({ "any": conditions }))
}

#[test]
fn b_04_windows_that_hold_nothing_are_configuration_errors() {
    for leaf in [
        json!({ "kind": "convergence", "window": 0 }),
        json!({ "kind": "convergence", "window": 1 }),
        json!({ "kind": "convergence", "variance": 0.0 }),
        json!({ "kind": "convergence", "epsilon": 0.0 }),
        json!({ "kind": "improvement_stall", "patience": 0 }),
        json!({ "kind": "oscillation", "window": 4 }),
        json!({ "kind": "divergence", "window": 2 }),
        json!({ "kind": "max_generations", "n": 0 }),
        json!({ "kind": "repeated_output", "similarity": 0.0 }),
        json!({ "kind": "command", "argv": [] }),
        json!({ "kind": "quality_threshold", "threshold": 1.5 }),
    ] {
        let error = policy(json!({ "any": [leaf] }), json!({}), json!({})).unwrap_err();
        assert!(error.at.starts_with("exit.any[0]"), "{error}");
    }
}

#[test]
fn b_05_success_beats_every_condition_on_progress() {
    let all = json!(["quality_threshold", "convergence", "oscillation", "improvement_stall",
        { "kind": "max_generations", "n": 3 }]);
    let played = play(any(all), &scores(&[0.84, 0.86, 0.90]));
    assert_eq!(played.reason(), "quality_reached");
    assert_eq!(played.outcome().also_fired, [Reason::MaxGenerations]);
    let played = play(
        exit(
            json!({ "compat": "classic", "any": ["quality_threshold", "oscillation", "convergence"] }),
        ),
        &scores(&[0.5, 0.8, 0.7, 0.9]),
    );
    assert_eq!(played.reason(), "quality_reached");
    assert_eq!(played.outcome().also_fired, [Reason::Oscillating]);
}

#[test]
fn b_09_b_10_a_failed_judging_is_retried_and_its_output_never_best() {
    let policy = exit(json!({ "any": ["quality_threshold"], "evaluation_retries": 1 }));
    let turns = [
        Turn::Score(0.5),
        Turn::Rounds(vec![Judgement::failed(false), Judgement::failed(false)]),
        Turn::Rounds(vec![Judgement::failed(false), judgement(0.95)]),
    ];
    let played = play(policy, &turns);
    assert_eq!(played.reason(), "quality_reached");
    assert_eq!(played.generations(), 3);
    assert_eq!(played.state.evaluations(), 5);
    assert_eq!(played.state.records()[1].score, None);
    // After an output that was not judged the agent goes on from the best one.
    assert_eq!(played.directives[2].base, Base::Best);
    assert_eq!(played.directives[2].base_generation, Some(1));
}

#[test]
fn b_10_judges_that_never_answer_end_the_run_as_undecided_and_not_as_rejected() {
    let policy = || exit(json!({ "any": ["quality_threshold"], "evaluation_retries": 0 }));
    let gone = || Turn::Rounds(vec![Judgement::failed(false)]);
    let few = || Turn::Rounds(vec![Judgement::failed(true)]);
    assert_eq!(play(policy(), &[gone(), gone()]).reason(), "evaluator_unavailable");
    let played = play(policy(), &[Turn::Score(0.6), few(), few()]);
    assert_eq!(played.reason(), "no_quorum");
    assert_eq!(played.outcome().class().exit_code(), 3);
    assert_eq!(played.outcome().best, Some(1), "what was judged before is kept");
}

#[test]
fn b_15_b_56_an_output_is_kept_when_its_first_judging_fails() {
    let policy = exit(
        json!({ "any": ["quality_threshold"], "evaluation_retries": 0, "evaluator_failures": 1 }),
    );
    let played = play(policy, &[Turn::Rounds(vec![Judgement::failed(false)])]);
    assert_eq!(played.reason(), "evaluator_unavailable");
    assert_eq!(played.state.records().len(), 1);
    assert_eq!(played.outcome().best, None);
}

#[test]
fn b_16_one_failure_of_the_agent_is_retried_with_backoff() {
    let failed = || Turn::Fault(AgentFault::Failed);
    let played = play(any(json!(["quality_threshold"])), &[failed(), failed(), Turn::Score(0.95)]);
    assert_eq!(played.reason(), "quality_reached");
    let waits: Vec<u64> = played.directives.iter().map(|d| d.wait_ms).collect();
    assert_eq!(waits, [0, 1000, 2000]);
    assert_eq!(played.directives[2].generation, 1);
    let played = play(any(json!(["quality_threshold"])), &[failed(), failed(), failed()]);
    assert_eq!(played.reason(), "agent_failed");
    let empty = || Turn::Fault(AgentFault::Empty);
    let played = play(any(json!(["quality_threshold"])), &[empty(), empty(), empty()]);
    assert_eq!((played.reason(), played.outcome().class().exit_code()), ("agent_empty", 3));
}

#[test]
fn b_17_limits_are_set_without_being_named_and_zero_is_an_error() {
    let policy = exit(json!({}));
    assert_eq!(policy.limits.max_generations, 10);
    assert_eq!(policy.limits.elapsed_ms, 600_000);
    assert_eq!(policy.limits.tokens, Some(50_000));
    for budget in [json!({ "max_generations": 0 }), json!({ "seconds": 0 }), json!({ "tokens": 0 })]
    {
        assert!(super::policy(json!({}), budget, json!({})).is_err());
    }
}

#[test]
fn b_18_max_generations_counts_outputs() {
    let played = play(
        any(json!(["quality_threshold", { "max_generations": { "n": 5 } }])),
        &scores(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    );
    assert_eq!(played.reason(), "max_generations");
    assert_eq!((played.generations(), played.state.agent_calls()), (5, 5));
    assert_eq!(played.outcome().best, Some(5));
}

#[test]
fn b_19_below_min_generations_soft_conditions_are_silent_and_limits_are_not() {
    let soft = json!({ "any": ["improvement_stall"], "min_generations": 6 });
    let played = play(exit(soft), &scores(&[0.5; 8]));
    assert_eq!((played.reason(), played.generations()), ("stalled", 6));
    let hard = json!({ "any": ["quality_threshold"], "min_generations": 6 });
    let policy = policy(hard, json!({ "seconds": 3 }), json!({})).unwrap();
    assert_eq!(play(policy, &scores(&[0.5; 8])).reason(), "deadline");
}

#[test]
fn b_22_a_call_that_does_not_fit_is_not_sent_and_ends_the_run() {
    let state = State::new(Arc::new(exit(json!({}))));
    let event = |what| Event { elapsed_ms: 0, spent: Spent::default(), what };
    let (state, _) = decide(state, &event(What::Begun));
    let (state, _) = decide(state, &event(What::Refused(super::super::Budget::Tokens)));
    assert_eq!(state.outcome().unwrap().reason, Reason::TokenBudget);
}

#[test]
fn b_25_an_empty_group_is_a_configuration_error() {
    for exit in [json!({ "any": [] }), json!({ "all": [] }), json!({ "any": [{ "all": [] }] })] {
        let error = policy(exit, json!({}), json!({})).unwrap_err().to_string();
        assert!(error.contains("empty group"), "{error}");
    }
}

#[test]
fn b_26_the_order_of_conditions_makes_no_difference() {
    let forward = json!(["improvement_stall", { "max_generations": { "n": 3 } }, "convergence"]);
    let backward = json!(["convergence", { "max_generations": { "n": 3 } }, "improvement_stall"]);
    let turns = scores(&[0.5, 0.5, 0.5]);
    let (a, b) = (play(any(forward), &turns), play(any(backward), &turns));
    assert_eq!(a.outcome(), b.outcome());
    assert_eq!(a.reason(), "max_generations");
    assert_eq!(a.outcome().also_fired, [Reason::Stalled]);
}

#[test]
fn b_27_a_lucky_score_has_to_be_repeated() {
    let policy = exit(json!({ "any": ["quality_threshold"], "confirm": 1 }));
    let turns = [
        Turn::Rounds(vec![judgement(0.92), judgement(0.75)]),
        Turn::Rounds(vec![judgement(0.91), judgement(0.93)]),
    ];
    let played = play(policy, &turns);
    assert_eq!(played.reason(), "quality_reached");
    assert_eq!(played.generations(), 2);
    let lucky = &played.state.records()[0];
    assert_eq!(lucky.score.unwrap().get(), 0.75);
    assert_eq!(played.state.confirmation(), Confirmation::Confirmed);
    assert_eq!(played.state.records()[1].score.unwrap().get(), 0.91);
}

#[test]
fn b_27_a_confirmation_that_can_not_be_made_is_no_accept() {
    let policy =
        exit(json!({ "any": ["quality_threshold"], "confirm": 1, "evaluation_retries": 0 }));
    let played = play(policy, &[Turn::Rounds(vec![judgement(0.92), Judgement::failed(true)])]);
    assert_eq!(played.reason(), "confirmation_failed");
    assert_eq!(played.outcome().class().exit_code(), 3);
    assert_eq!(played.outcome().best, Some(1));
}

#[test]
fn b_28_a_required_criterion_can_not_be_outvoted() {
    let failing = with_criteria(0.96, &[("tests", false, true)]);
    let passing = with_criteria(0.91, &[("tests", true, true)]);
    let played = play(
        any(json!(["quality_threshold"])),
        &[Turn::Rounds(vec![failing]), Turn::Rounds(vec![passing])],
    );
    assert_eq!((played.reason(), played.generations()), ("quality_reached", 2));
    assert_eq!(played.outcome().best, Some(2), "not the higher score that failed a requirement");
}

#[test]
fn b_32_b_48_what_is_no_score_can_not_become_one() {
    assert!(Score::new(f64::NAN).is_err());
    let turns = [Turn::Rounds(vec![Judgement::failed(true); 3]), Turn::Score(0.4)];
    let played = play(exit(json!({})), &turns);
    assert_eq!(played.state.best().unwrap().generation, 2);
}

#[test]
fn b_49_b_47_an_agent_that_gives_nothing_does_not_replace_the_best() {
    let turns = [Turn::Score(0.8), Turn::Fault(AgentFault::Empty), Turn::Score(0.3)];
    let played = play(any(json!(["quality_threshold"])), &turns);
    assert_eq!(played.state.best().unwrap().score.unwrap().get(), 0.8);
    assert_eq!(played.generations(), 2);
}

#[test]
fn b_53_no_criteria_are_no_pass() {
    let played = play(any(json!(["all_criteria_passed"])), &scores(&[1.0]));
    assert!(!played.ended);
    let passing = Turn::Rounds(vec![with_criteria(0.2, &[("a", true, false)])]);
    assert_eq!(play(any(json!(["all_criteria_passed"])), &[passing]).reason(), "criteria_passed");
}

#[test]
fn a_group_of_all_needs_all_its_members() {
    let both = json!([{ "all": ["quality_threshold", { "command": { "argv": ["check"] } }] }]);
    let mut satisfied = judgement(0.95);
    satisfied.commands = [(json!(["check"]).to_string(), true)].into();
    let turns = [Turn::Score(0.95), Turn::Rounds(vec![satisfied])];
    let played = play(any(both), &turns);
    assert_eq!((played.reason(), played.generations()), ("quality_reached", 2));
    assert_eq!(played.outcome().also_fired, [Reason::CommandSatisfied]);
}

#[test]
fn an_unknown_condition_or_key_is_named_with_what_was_meant() {
    let error = |exit: Value| policy(exit, json!({}), json!({})).unwrap_err().to_string();
    assert!(error(json!({ "any": ["qualty_threshold"] })).contains("quality_threshold"));
    assert!(error(json!({ "any": [{ "kind": "convergence", "windw": 4 }] })).contains("window"));
    assert!(error(json!({ "any": ["stalled"], "all": ["stalled"] })).contains("side by side"));
    assert!(error(json!({ "minimum": 3 })).contains("minimum"));
    assert!(error(json!({ "any": ["oscillation"], "min_generations": 30 })).contains("30"));
}

#[test]
fn a_person_is_asked_where_a_ladder_says_so_and_the_answer_counts() {
    let ask = json!([{ "kind": "improvement_stall", "patience": 1, "actions": ["ask", "exit"] }]);
    let played = play(any(ask), &scores(&[0.5, 0.5]));
    assert!(played.asked);
    assert_eq!(played.state.awaiting(), Some(About::Condition(Reason::Stalled)));
    let event =
        |answer| Event { elapsed_ms: 0, spent: Spent::default(), what: What::Answered(answer) };
    let (state, _) = decide(played.state.clone(), &event(Answer::Accept));
    assert_eq!(state.outcome().unwrap().reason, Reason::HumanAccepted);
    let (state, commands) = decide(played.state, &event(Answer::Continue("be shorter".to_owned())));
    assert!(state.outcome().is_none());
    let Some(Command::Generate(directive)) = commands.first() else { panic!("goes on") };
    assert_eq!(directive.note.as_deref(), Some("be shorter"));
}

#[test]
fn b_23_money_is_in_whole_micro_dollars_and_as_it_is_written() {
    for (usd, micro) in [(8.2, 8_200_000), (0.29, 290_000), (1.1, 1_100_000), (0.000_001, 1)] {
        let limits = policy(json!({}), json!({ "usd": usd }), json!({})).unwrap().limits;
        assert_eq!(limits.micro_dollars, Some(micro), "{usd}");
        let leaf = json!({ "any": ["quality_threshold", { "cost_budget": { "usd": usd } }] });
        assert_eq!(exit(leaf).limits.micro_dollars, Some(micro), "{usd}");
    }
    for usd in [0.0, -1.0, 0.000_000_1] {
        assert!(policy(json!({}), json!({ "usd": usd }), json!({})).is_err(), "{usd}");
    }
}

#[test]
fn b_24_a_clock_that_jumps_back_neither_ends_nor_lengthens_a_run() {
    let policy = policy(json!({}), json!({ "seconds": 10 }), json!({})).unwrap();
    let at = |elapsed_ms, what| Event { elapsed_ms, spent: Spent::default(), what };
    let state = State::new(Arc::new(policy));
    let (state, _) = decide(state, &at(0, What::Begun));
    let (state, _) = decide(state, &at(9_000, What::Generated(Output::of("a"))));
    // Back by hours: the time that is known to be over stays over.
    let (state, commands) = decide(state, &at(5, What::Judged(Box::new(judgement(0.5)))));
    assert!(matches!(commands.first(), Some(Command::Generate(_))), "{commands:?}");
    let (state, _) = decide(state, &at(9_500, What::Generated(Output::of("b"))));
    // Forward by a day.
    let (state, _) = decide(state, &at(86_400_000, What::Judged(Box::new(judgement(0.6)))));
    assert_eq!(state.outcome().unwrap().reason, Reason::Deadline);
    assert_eq!(state.outcome().unwrap().best, Some(2), "what was judged counts all the same");
}

#[test]
fn b_35_an_output_is_remembered_even_where_its_judging_failed() {
    let policy = exit(json!({
        "any": ["quality_threshold", { "kind": "repeated_output", "actions": ["exit"] }],
        "evaluation_retries": 0, "evaluator_failures": 9,
    }));
    let mut state = State::new(Arc::new(policy));
    let mut clock = 0;
    let mut step = |state: State, what| {
        clock += 1;
        decide(state, &Event { elapsed_ms: clock, spent: Spent::default(), what }).0
    };
    state = step(state, What::Begun);
    state = step(state, What::Generated(Output::of("one")));
    state = step(state, What::Judged(Box::new(Judgement::failed(true))));
    state = step(state, What::Generated(Output::of("one")));
    state = step(state, What::Judged(Box::new(judgement(0.5))));
    assert_eq!(state.outcome().unwrap().reason, Reason::RepeatedOutput);
    assert_eq!(
        state.records()[0].output,
        state.records()[1].output,
        "by generation, with its hash"
    );
}

#[test]
fn b_60_two_loops_share_nothing() {
    let policy = Arc::new(exit(json!({})));
    let event = |what| Event { elapsed_ms: 0, spent: Spent::default(), what };
    let begin = || decide(State::new(Arc::clone(&policy)), &event(What::Begun)).0;
    let (mut a, mut b) = (begin(), begin());
    for state in [&mut a, &mut b] {
        let (next, _) = decide(state.clone(), &event(What::Generated(Output::of("same"))));
        let (next, _) = decide(next, &event(What::Judged(Box::new(judgement(0.5)))));
        *state = next;
    }
    assert!(a.outcome().is_none() && b.outcome().is_none(), "no start repeats another's output");
    assert_eq!(a.records(), b.records());
}
