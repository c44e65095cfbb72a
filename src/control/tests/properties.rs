//! What holds for every policy and every course of events.

use proptest::prelude::*;
use serde_json::json;

use super::super::{AgentFault, Class, Reason};
use super::*;

fn leaf() -> impl Strategy<Value = Value> {
    let actions = prop::collection::vec(
        prop::sample::select(vec!["nudge", "cool", "revert", "restart", "exit"]),
        0..3,
    );
    prop_oneof![
        (0.3..1.0).prop_map(|t| json!({ "kind": "quality_threshold", "threshold": t })),
        Just(json!("all_criteria_passed")),
        (1..12_u32).prop_map(|n| json!({ "kind": "max_generations", "n": n })),
        (1..40_u32).prop_map(|s| json!({ "kind": "time_budget", "seconds": s })),
        (1..400_u64).prop_map(|t| json!({ "kind": "token_budget", "tokens": t })),
        actions.clone().prop_map(|a| json!({ "kind": "repeated_output", "actions": a })),
        actions.clone().prop_map(|a| json!({ "kind": "quality_regression", "actions": a })),
        actions.clone().prop_map(|a| json!({ "kind": "improvement_stall", "actions": a })),
        actions.clone().prop_map(|a| json!({ "kind": "convergence", "actions": a })),
        actions.clone().prop_map(|a| json!({ "kind": "divergence", "actions": a })),
        actions.prop_map(|a| json!({ "kind": "oscillation", "actions": a })),
    ]
}

fn node() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(2, 8, 3, |inner| {
        let members = prop::collection::vec(inner, 1..4);
        prop_oneof![
            members.clone().prop_map(|m| json!({ "any": m })),
            members.prop_map(|m| json!({ "all": m })),
        ]
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let said = || {
        prop_oneof![
            4 => (0..=20_u32, any::<bool>()).prop_map(|(score, passed)| {
                with_criteria(f64::from(score) / 20.0, &[("a", passed, true)])
            }),
            1 => any::<bool>().prop_map(Judgement::failed),
        ]
    };
    prop_oneof![
        6 => prop::collection::vec(said(), 6).prop_map(Turn::Rounds),
        1 => (0..=20_u32).prop_map(|score| Turn::Text("the same text", f64::from(score) / 20.0)),
        1 => prop_oneof![Just(AgentFault::Failed), Just(AgentFault::Empty)].prop_map(Turn::Fault),
    ]
}

prop_compose! {
    fn policies()(
        members in prop::collection::vec(node(), 1..5),
        group in prop_oneof![Just("any"), Just("all")],
        most in 1..12_u32,
        confirm in 0..2_u32,
        retries in 0..2_u32,
    ) -> (Value, Value) {
        let exit = json!({ group: members, "confirm": confirm, "evaluation_retries": retries });
        (exit, json!({ "max_generations": most }))
    }
}

proptest! {
    #[test]
    fn every_loop_ends_within_its_calls_and_returns_the_best(
        (exit, budget) in policies(),
        turns in prop::collection::vec(turn(), 14),
    ) {
        let most = budget["max_generations"].as_u64().unwrap() as u32;
        let policy = policy(exit, budget, json!({})).unwrap();
        let limit = policy.limits.max_generations;
        let played = play(policy, &turns);
        prop_assert!(played.ended);
        prop_assert!(limit <= most);
        prop_assert!(played.directives.len() as u32 <= limit);
        prop_assert!(played.generations() <= limit);
        let scored = played.state.records().iter().any(|record| record.score.is_some());
        prop_assert_eq!(played.outcome().best.is_some(), scored);
        if played.outcome().class() == Class::Accepted {
            let best = played.state.best().unwrap();
            prop_assert_eq!(best.generation, played.generations());
            prop_assert_eq!(best.required_failed, 0);
        }
        // The reason is the earliest of all that held; of soft ones the earliest that was not
        // resting after an action of its own or held back.
        let reason = played.outcome().reason;
        prop_assert!(played.outcome().also_fired.iter().all(|other| *other > reason
            || (other.is_soft() && reason.is_soft())
            || reason.class() == Class::Failed));
    }

    #[test]
    fn the_best_never_gets_worse(
        (exit, budget) in policies(),
        turns in prop::collection::vec(turn(), 14),
    ) {
        let policy = policy(exit, budget, json!({})).unwrap();
        let records = play(policy, &turns).state.records().to_vec();
        let best = records.iter().filter_map(|record| record.rank()).max();
        let mut so_far = None;
        for record in &records {
            let next = so_far.max(record.rank());
            prop_assert!(next >= so_far);
            so_far = next;
        }
        prop_assert_eq!(so_far, best);
    }

    #[test]
    fn the_order_of_conditions_changes_no_outcome(
        members in prop::collection::vec(node(), 1..5),
        turns in prop::collection::vec(turn(), 12),
    ) {
        let mut reversed = members.clone();
        reversed.reverse();
        let run = |members: Vec<Value>| {
            play(policy(json!({ "any": members }), json!({}), json!({})).unwrap(), &turns)
        };
        let (a, b) = (run(members), run(reversed));
        prop_assert_eq!(a.outcome().reason, b.outcome().reason);
        prop_assert_eq!(a.outcome().best, b.outcome().best);
        prop_assert_eq!(a.generations(), b.generations());
    }

    #[test]
    fn success_beats_everything_at_the_same_generation(
        members in prop::collection::vec(leaf(), 0..5),
        turns in prop::collection::vec(turn(), 8),
    ) {
        let mut members = members;
        members.push(json!({ "kind": "quality_threshold", "threshold": 0.9 }));
        let policy = policy(json!({ "any": members }), json!({}), json!({})).unwrap();
        let played = play(policy, &turns);
        let last = played.state.records().last();
        if last.is_some_and(|r| {
            r.score.is_some_and(|s| s.get() >= 0.9) && r.required_failed == 0
        }) {
            let reason = played.outcome().reason;
            prop_assert!(reason.class() == Class::Accepted, "{}", reason);
        }
    }

    #[test]
    fn events_out_of_place_change_nothing(
        turns in prop::collection::vec(turn(), 4),
    ) {
        let played = play(exit(json!({})), &turns);
        let event = |what| Event { elapsed_ms: 0, spent: Spent::default(), what };
        let before = played.state.records().to_vec();
        if played.ended {
            for what in [What::Begun, What::Cancelled, What::Judged(Box::new(judgement(1.0)))] {
                let (state, commands) = decide(played.state.clone(), &event(what));
                prop_assert!(commands.is_empty());
                prop_assert_eq!(state.records(), before.as_slice());
            }
        }
    }
}

#[test]
fn ten_thousand_steps_are_quick_and_small() {
    let policy = policy(
        json!({ "any": ["quality_threshold", "repeated_output", { "kind": "oscillation", "actions": ["nudge", "nudge", "nudge", "nudge"] }] }),
        json!({ "max_generations": 100_000, "seconds": 1e9, "tokens": 1_000_000_000_u64 }),
        json!({}),
    )
    .unwrap();
    let mut state = State::new(Arc::new(policy));
    let mut clock = 0;
    let mut step = |state: State, what| {
        clock += 1;
        decide(state, &Event { elapsed_ms: clock, spent: Spent::default(), what })
    };
    (state, _) = step(state, What::Begun);
    for generation in 0..10_000_u32 {
        (state, _) = step(state, What::Generated(Output::unknown(generation.to_string())));
        let score = 0.5 + f64::from(generation) / 100_000.0;
        (state, _) = step(state, What::Judged(Box::new(judgement(score))));
    }
    assert_eq!(state.generations(), 10_000);
    assert_eq!(state.best().map(|best| best.generation), Some(10_000));
    assert_eq!(state.outcome().map(|outcome| outcome.reason), None::<Reason>);
}

#[test]
fn records_that_nobody_goes_on_from_keep_no_criteria() {
    let policy = policy(
        json!({ "any": ["quality_threshold"] }),
        json!({ "max_generations": 1000, "seconds": 1e9, "tokens": 1_000_000_000_u64 }),
        json!({}),
    )
    .unwrap();
    let scores = [0.5, 0.7, 0.6, 0.8, 0.2, 0.3, 0.1, 0.4];
    let turns: Vec<Turn> = scores
        .iter()
        .map(|score| Turn::Rounds(vec![with_criteria(*score, &[("a", false, false)])]))
        .collect();
    let played = play(policy, &turns);
    let whole: Vec<u32> = played
        .state
        .records()
        .iter()
        .filter(|record| !record.criteria.is_empty())
        .map(|record| record.generation)
        .collect();
    assert_eq!(whole, [1, 4, 7, 8], "the first, the best, and the last two");
    assert!(played.state.records().iter().all(|record| record.score.is_some()));
}
