//! What naive controllers get wrong about progress (plateaus, falls, swings, repeats) and about
//! what to do next, by the id of each defect.

use serde_json::json;

use super::super::{Base, Reason};
use super::pitfalls::any;
use super::*;

#[test]
fn b_02_a_flat_line_far_below_the_target_is_a_failure() {
    let played = play(any(json!(["convergence"])), &scores(&[0.1, 0.1, 0.1, 0.1]));
    assert_eq!(played.reason(), "plateau_below_target");
    assert_eq!(played.outcome().class().exit_code(), 1);
    let played = play(any(json!(["convergence"])), &scores(&[0.95, 0.95, 0.95, 0.95]));
    assert_eq!(played.reason(), "plateau_at_target");
}

#[test]
fn b_08_oscillation_cools_first_and_exits_when_it_persists() {
    let swinging: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { 0.5 } else { 0.8 }).collect();
    let policy =
        policy(json!({ "any": ["oscillation"] }), json!({ "max_generations": 12 }), json!({}))
            .unwrap();
    let played = play(policy, &scores(&swinging));
    assert_eq!(played.reason(), "oscillating");
    assert_eq!(played.generations(), 9);
    let cooled = &played.directives[6];
    assert_eq!(cooled.nudges, [Reason::Oscillating]);
    assert_eq!(cooled.max_change, Some(0.5));
}

#[test]
fn b_29_a_stall_is_counted_from_the_last_best() {
    let stall = json!([{ "kind": "improvement_stall", "patience": 3 }]);
    let played = play(any(stall.clone()), &scores(&[0.9, 0.3, 0.5, 0.55]));
    assert_eq!((played.reason(), played.generations()), ("stalled", 4));
    let played = play(any(stall), &scores(&[0.5, 0.3, 0.56, 0.4, 0.62]));
    assert!(!played.ended, "every new best counts");
}

#[test]
fn b_30_small_steady_gains_add_up() {
    let stall = json!([{ "kind": "improvement_stall", "patience": 3 }]);
    let played = play(any(stall), &scores(&[0.50, 0.52, 0.54, 0.56, 0.58, 0.60, 0.62]));
    assert!(!played.ended, "{:?}", played.state.outcome());
}

#[test]
fn b_31_b_33_a_dip_reverts_to_the_best_and_only_a_second_one_exits() {
    let played = play(any(json!(["quality_regression"])), &scores(&[0.85, 0.70, 0.86, 0.6]));
    assert_eq!(played.directives[2].base, Base::Best);
    assert_eq!(played.directives[2].base_generation, Some(1));
    assert_eq!(played.directives[2].nudges, [Reason::Regressed]);
    assert_eq!(played.directives[3].base, Base::Current);
    assert_eq!(played.reason(), "regressed");
    assert_eq!(played.outcome().best, Some(3));
}

#[test]
fn b_38_similar_wording_with_a_gain_is_no_repeat() {
    let a = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let turns = |gain: f64| {
        [
            Turn::Text(a, 0.5),
            Turn::Text(
                "one two three four five six seven eight nine ten eleven twelve thirteen fifteen",
                0.5 + gain,
            ),
        ]
    };
    let repeats = json!([{ "kind": "repeated_output", "similarity": 0.8, "actions": ["exit"] }]);
    assert!(!play(any(repeats.clone()), &turns(0.1)).ended);
    assert_eq!(play(any(repeats), &turns(0.0)).reason(), "repeated_output");
}

#[test]
fn repeats_are_told_once_and_then_end_the_run_and_a_return_is_a_cycle() {
    let turns = [Turn::Text("a", 0.5), Turn::Text("a", 0.5), Turn::Text("a", 0.5)];
    let played = play(exit(json!({})), &turns);
    assert_eq!((played.reason(), played.generations()), ("repeated_output", 3));
    assert_eq!(played.directives[2].nudges, [Reason::RepeatedOutput]);
    let turns = ["a", "b", "c", "a", "b"].map(|text| Turn::Text(text, 0.5));
    let played = play(exit(json!({})), &turns);
    assert_eq!((played.reason(), played.generations()), ("cycle", 5));
}

#[test]
fn b_42_the_phase_is_the_number_of_targets_reached_and_can_not_fall_back() {
    let policy =
        policy(json!({ "any": ["quality_threshold"] }), json!({}), json!({ "adaptive": {} }))
            .unwrap();
    let played = play(policy, &scores(&[0.5, 0.7, 0.3, 0.8, 0.87, 0.5]));
    let phases: Vec<Option<u8>> = played.directives.iter().map(|d| d.phase).collect();
    assert_eq!(phases, [Some(0), Some(0), Some(1), Some(1), Some(2), None, None]);
    for targets in [json!([]), json!([0.7, 0.6]), json!([0.6, 0.6]), json!([0.6, 1.2])] {
        let strategy = json!({ "adaptive": { "targets": targets } });
        assert!(super::policy(json!({}), json!({}), strategy).is_err());
    }
}

#[test]
fn b_43_the_focus_is_the_criterion_with_the_largest_weighted_gap() {
    let mut policy = policy(
        json!({ "any": ["quality_threshold"] }),
        json!({}),
        json!({ "adaptive": { "criteria": 2 } }),
    )
    .unwrap();
    policy.weights = [("style".to_owned(), 0.05), ("accuracy".to_owned(), 0.20)].into();
    let mut said = judgement(0.5);
    said.criteria = [("style", 0.2), ("accuracy", 0.6), ("structure", 1.0)]
        .map(|(name, score)| CriterionMark {
            name: name.to_owned(),
            score: Some(Score::new(score).unwrap()),
            passed: None,
            required: false,
        })
        .to_vec();
    let played = play(policy, &[Turn::Rounds(vec![said])]);
    assert_eq!(played.directives[1].focus, ["accuracy", "style"]);
}

#[test]
fn b_50_configured_numbers_reach_the_condition() {
    let flat = |epsilon: f64| {
        let leaf = json!({ "kind": "convergence", "window": 4, "epsilon": epsilon });
        play(any(json!([leaf])), &scores(&[0.5, 0.51, 0.52, 0.53])).ended
    };
    assert!(!flat(0.01) && flat(0.05));
}

#[test]
fn b_51_a_shrinking_set_of_failing_checks_is_progress() {
    let names = ["a", "b", "c", "d", "e"];
    let failing = |from: usize| {
        let criteria: Vec<(&str, bool, bool)> =
            names.iter().enumerate().map(|(i, name)| (*name, i < from, true)).collect();
        Turn::Rounds(vec![with_criteria(0.0, &criteria)])
    };
    let both = json!(["convergence", "improvement_stall"]);
    let turns: Vec<Turn> = (0..5).map(failing).collect();
    assert!(!play(any(both.clone()), &turns).ended);
    let stuck: Vec<Turn> = [0, 1, 1, 1, 1].map(failing).to_vec();
    assert_eq!(play(any(both), &stuck).reason(), "stalled");
}

#[test]
fn the_noise_band_hides_differences_that_are_none() {
    let noisy = json!({ "any": [{ "kind": "quality_regression", "threshold": 0.05 }], "noise_sd": 0.1, "confirm": 0 });
    let spec: ExitSpec = from_value(noisy).unwrap();
    let policy =
        Policy::new(&spec, &BudgetSpec::default(), &StrategySpec::default(), 0.9, false).unwrap();
    // The band, 0.141, and the luck of the best of four, 0.103.
    let played = play(policy, &scores(&[0.8, 0.68, 0.8, 0.54]));
    assert_eq!(played.directives.len(), 5);
    let reverted: Vec<bool> = played.directives.iter().map(|d| !d.nudges.is_empty()).collect();
    assert_eq!(reverted, [false, false, false, false, true]);
}

#[test]
fn cooling_narrows_the_change_allowed_down_to_its_floor() {
    let strategy = json!({ "cooling": { "start": 0.4, "decay": 0.5, "floor": 0.1 } });
    let policy = policy(json!({ "any": ["quality_threshold"] }), json!({}), strategy).unwrap();
    let played = play(policy, &scores(&[0.1, 0.2, 0.3, 0.4]));
    let limits: Vec<Option<f64>> = played.directives.iter().map(|d| d.max_change).collect();
    assert_eq!(limits, [None, Some(0.4), Some(0.2), Some(0.1), Some(0.1)]);
}

#[test]
fn classic_forms_end_at_once() {
    let classic = json!({ "compat": "classic", "any": [{ "kind": "converged", "window": 3 }] });
    let played = play(exit(classic), &scores(&[0.5, 0.6, 0.7]));
    assert_eq!(played.reason(), "plateau_below_target");
    assert_eq!(played.outcome().reason.classic(), Some("converged"));
}

#[test]
fn b_20_the_strategy_picks_base_and_emphasis_and_says_so_in_the_directive() {
    let play_with = |strategy: Value| {
        let policy = policy(json!({ "any": ["quality_threshold"] }), json!({}), strategy).unwrap();
        play(policy, &scores(&[0.7, 0.4, 0.5]))
    };
    let bases = |played: &Played| {
        let of = |d: &Directive| (d.base, d.base_generation);
        played.directives.iter().map(of).collect::<Vec<_>>()
    };
    let newest = bases(&play_with(json!({})));
    assert_eq!(newest[2..], [(Base::Current, Some(2)), (Base::Current, Some(3))]);
    let best = bases(&play_with(json!({ "base": "best" })));
    assert_eq!(best[2..], [(Base::Best, Some(1)), (Base::Best, Some(1))]);
    let stressed = play_with(json!({ "adaptive": {} }));
    assert!(stressed.directives[1].phase.is_some(), "a strategy that is declared is used");
}

#[test]
fn b_36_repeats_are_looked_for_from_the_second_output_on_and_by_the_configured_mark() {
    let turns = [
        Turn::Text("one two three four five six", 0.5),
        Turn::Text("one two three four five seven", 0.5),
    ];
    let repeats = |similarity: f64| {
        let leaf =
            json!({ "kind": "repeated_output", "similarity": similarity, "actions": ["exit"] });
        play(any(json!([leaf])), &turns)
    };
    // Three shingles of five are shared.
    assert_eq!((repeats(0.6).reason(), repeats(0.6).generations()), ("repeated_output", 2));
    assert!(!repeats(0.7).ended);
}

#[test]
fn of_judges_that_vary_a_fall_ends_the_run_only_when_it_lasts() {
    let spec = json!({ "any": ["quality_regression"], "noise_sd": 0.05, "confirm": 0 });
    let spec: ExitSpec = from_value(spec).unwrap();
    let budget = BudgetSpec::default();
    let policy = || Policy::new(&spec, &budget, &StrategySpec::default(), 0.9, false).unwrap();
    let once = play(policy(), &scores(&[0.8, 0.4, 0.8, 0.4, 0.8, 0.4, 0.8]));
    assert!(!once.ended, "{:?}", once.state.outcome());
    let reverts = once.directives.iter().filter(|d| d.nudges == [Reason::Regressed]).count();
    assert_eq!(reverts, 1, "it was met with the first action");
    let lasting = play(policy(), &scores(&[0.8, 0.4, 0.4, 0.4]));
    assert_eq!((lasting.reason(), lasting.generations()), ("regressed", 4));
}
