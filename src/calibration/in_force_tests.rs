use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::calibration::certificate::Mode;
use crate::calibration::map::Map;
use crate::calibration::panel::Stack;
use crate::calibration::profile::tests::profile as fitted;
use crate::calibration::subsets::{OfSize, OwnCertificate, Subset, Subsets};
use crate::calibration::table::SeatFacts;
use crate::verdict::Fingerprint;

fn print(of: &str) -> Fingerprint {
    Fingerprint::of("llm", &json!({ "model": of }))
}

fn seat<'a>(name: &'a str, fingerprint: &'a Fingerprint) -> SeatedJudge<'a> {
    SeatedJudge {
        name,
        fingerprint,
        counted: true,
        seat: SeatFacts { invert: false, samples: 1 },
        accept_alone: false,
    }
}

fn panel<'a>(names: &[&'a str], fingerprint: &'a Fingerprint) -> SeatedPanel<'a> {
    SeatedPanel {
        seats: names.iter().map(|name| seat(name, fingerprint)).collect(),
        pooling: Pooling::Median,
        raw_threshold: 0.7,
    }
}

fn own(threshold: Option<(f64, f64)>) -> OwnCertificate {
    OwnCertificate {
        threshold: threshold.map(|key| key.0),
        tiebreak: threshold.map(|key| key.1),
        n_bad: 60,
        false_accepts: Some(0),
        reason: threshold.is_none().then(|| "60 of 60 bad cases tie".to_owned()),
        labels_needed: None,
    }
}

/// A profile of three judges with these maps, certified at a key.
fn profile(map: Map, key: (f64, f64)) -> Profile {
    let mut profile = fitted();
    for seat in &mut profile.panel.seats {
        (seat.vote, seat.map) = (map.clone(), map.clone());
        seat.kind = crate::calibration::table::JudgeKind::Graded;
    }
    profile.panel.map = Map::None;
    profile.certificate.threshold = Some(key.0);
    profile.certificate.tiebreak = Some(key.1);
    let judges = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    // The report is large, and no ruling looks at it.
    profile.figures = serde_json::Value::Null;
    profile.subsets = Subsets {
        sets: vec![
            Subset {
                judges: judges(&["j0", "j1"]),
                map: Map::Offset { offset: 0.5 },
                certificate: own(Some((0.9, 0.9))),
            },
            Subset { judges: judges(&["j0", "j2"]), map: Map::None, certificate: own(None) },
        ],
        sizes: Vec::new(),
    };
    profile
}

const NAMES: [&str; 3] = ["j0", "j1", "j2"];

fn in_force(profile: Profile, options: ProfileOptions) -> InForce {
    InForce::new(profile, &panel(&NAMES, &print("a")), options).unwrap()
}

fn votes(values: &[Option<f64>]) -> Vec<Option<Score>> {
    values.iter().map(|value| value.map(|value| Score::new(value).unwrap())).collect()
}

fn three(a: f64, b: f64, c: f64) -> Vec<Option<Score>> {
    votes(&[Some(a), Some(b), Some(c)])
}

#[test]
fn the_certified_key_decides_and_its_tiebreak_decides_between_equal_medians() {
    let own = in_force(profile(Map::None, (0.8, 0.7)), ProfileOptions::default());
    let reached = |a, b, c| own.weigh(&three(a, b, c)).reached;
    assert_eq!(reached(0.9, 0.9, 0.1), Ok(true), "the median is above");
    assert_eq!(reached(0.8, 0.8, 0.5), Ok(true), "a tie, and the mean is 0.7");
    assert_eq!(reached(0.8, 0.8, 0.4), Ok(false), "a tie, and the mean is below 0.7");
    assert_eq!(reached(0.79, 0.79, 1.0), Ok(false));
    let weighed = own.weigh(&three(0.8, 0.8, 0.5));
    assert_eq!((weighed.mark.status(), weighed.threshold), ("certified", 0.8));
    assert_eq!(weighed.mark.certified, Some(DecisionKey { score: 0.8, tiebreak: 0.7 }));
    let bound = weighed.mark.bound.unwrap();
    assert_eq!((bound.alpha, bound.delta), (0.05, 0.10));
}

#[test]
fn votes_are_mapped_before_the_vote_and_the_raw_ones_are_left_alone() {
    let shift = profile(Map::Offset { offset: 0.25 }, (0.5, 0.0));
    let weighed = in_force(shift, ProfileOptions::default()).weigh(&three(0.25, 0.5, 1.0));
    assert_eq!(weighed.mapped, [Some(0.5), Some(0.75), Some(1.25)]);
    assert_eq!(weighed.score.map(Score::get), Some(0.75));
    assert_eq!(weighed.mark.key.unwrap().score, 0.75);
}

#[test]
fn a_score_beyond_the_scale_is_held_to_its_end_and_the_key_is_not() {
    let shift = profile(Map::Offset { offset: 0.5 }, (1.2, 0.0));
    let own = in_force(shift, ProfileOptions::default());
    let low = own.weigh(&three(0.6, 0.6, 0.6));
    let high = own.weigh(&three(0.8, 0.8, 0.8));
    assert_eq!((low.score, high.score), (Some(Score::ONE), Some(Score::ONE)));
    assert_eq!((low.reached, high.reached), (Ok(false), Ok(true)));
    assert!((low.mark.key.unwrap().score - 1.1).abs() < 1e-12);
}

#[test]
fn a_vote_comes_into_the_unit_that_was_calibrated() {
    let mut graded = profile(Map::None, (4.0, 0.0));
    graded.scale = Some([1.0, 5.0]);
    for seat in &mut graded.panel.seats {
        seat.unit = Some([1.0, 5.0]);
    }
    let own = in_force(graded, ProfileOptions::default());
    assert_eq!(own.weigh(&three(0.75, 0.75, 0.0)).reached, Ok(true), "0.75 is a 4 of 1-5");
    assert_eq!(own.weigh(&three(0.74, 0.74, 0.0)).reached, Ok(false));
    assert_eq!(own.weigh(&three(0.75, 0.75, 0.0)).threshold, 0.75);
}

#[test]
fn fewer_judges_have_a_threshold_and_a_map_of_their_own_or_leave_the_case_undecided() {
    let own = in_force(profile(Map::None, (0.5, 0.0)), ProfileOptions::default());
    let two = own.weigh(&votes(&[Some(0.8), Some(0.8), None]));
    assert_eq!((two.reached, two.threshold), (Ok(false), 0.9), "three would have accepted");
    assert!((two.mark.expected_label.unwrap() - 1.3).abs() < 1e-12);
    let high = own.weigh(&votes(&[Some(0.9), Some(0.9), None]));
    assert_eq!((high.reached, high.mark.status()), (Ok(true), "certified"));
    let tied = own.weigh(&votes(&[Some(1.0), None, Some(1.0)]));
    let why = tied.reached.unwrap_err();
    assert!(why.contains("`j0`, `j2` alone") && why.contains("tie"), "{why}");
    assert_eq!(tied.mark.status(), "uncertified");
    let unknown = own.weigh(&votes(&[None, Some(1.0), Some(1.0)]));
    assert!(unknown.reached.unwrap_err().contains("knows nothing of them"));
}

#[test]
fn where_sets_are_too_many_the_threshold_of_their_size_holds_for_all() {
    let mut sized = profile(Map::None, (0.5, 0.0));
    sized.subsets = Subsets {
        sets: Vec::new(),
        sizes: vec![OfSize { size: 2, certificate: own(Some((0.6, 0.6))) }],
    };
    let own = in_force(sized, ProfileOptions::default());
    for away in 0..3 {
        let mut values = [Some(0.59), Some(0.59), Some(0.59)];
        values[away] = None;
        assert_eq!(own.weigh(&votes(&values)).reached, Ok(false));
        values = values.map(|value| value.map(|_| 0.61));
        assert_eq!(own.weigh(&votes(&values)).reached, Ok(true));
    }
}

#[test]
fn a_threshold_of_the_user_s_own_is_certified_only_above_the_certified_one() {
    let of = |threshold| {
        let options = ProfileOptions { threshold: Some(threshold), allow_mismatch: false };
        in_force(profile(Map::None, (0.8, 0.7)), options).weigh(&three(0.85, 0.85, 0.85))
    };
    assert_eq!((of(0.82).reached, of(0.82).mark.status()), (Ok(true), "certified"));
    assert_eq!((of(0.9).reached, of(0.9).mark.status()), (Ok(false), "certified"));
    // Equal first numbers: the certificate also asks for the tiebreak, the user does not.
    for below in [0.8, 0.5, 0.0] {
        let weighed = of(below);
        assert_eq!((weighed.reached, weighed.mark.status()), (Ok(true), "uncertified"));
        assert!(weighed.mark.reasons[0].contains("not above the certified one"), "{below}");
        assert_eq!(weighed.mark.bound, None);
    }
}

#[test]
fn without_a_certificate_the_panel_s_own_threshold_decides_and_it_is_said() {
    let mut profile = profile(Map::None, (0.8, 0.7));
    profile.certificate.status = CertificateStatus::NotCertifiable;
    profile.certificate.reason = Some("12 bad cases are too few".to_owned());
    let own = in_force(profile, ProfileOptions::default());
    let weighed = own.weigh(&three(0.7, 0.7, 0.7));
    assert_eq!((weighed.reached, weighed.threshold), (Ok(true), 0.7));
    assert_eq!(weighed.mark.status(), "uncertified");
    assert!(weighed.mark.reasons[0].contains("12 bad cases"));
    assert!(own.warnings().iter().any(|text| text.contains("every result is uncertified")));
    let two = own.weigh(&votes(&[Some(0.7), Some(0.7), None]));
    assert_eq!(two.reached, Ok(true), "nothing certified is lost with a vote");
}

#[test]
fn everything_that_differs_is_named_and_refused() {
    let known = print("known");
    let other = print("other");
    let mut bound = profile(Map::None, (0.8, 0.7));
    for name in NAMES {
        bound.binding.fingerprints.insert(name.to_owned(), Some(known.clone()));
    }
    bound.binding.seats.insert("j1".to_owned(), SeatFacts { invert: true, samples: 3 });
    let mut seats = panel(&["j0", "j1", "new"], &known);
    seats.seats[0].fingerprint = &other;
    seats.pooling = Pooling::Other("mean");
    let error = InForce::new(bound.clone(), &seats, ProfileOptions::default()).unwrap_err();
    assert!(error.refuses_profile());
    let text = error.to_string();
    for part in [
        "`j0` is another: its fingerprint was",
        "`j1` was inverted and is not inverted",
        "`j1` voted by 3 sample(s) and votes by 1",
        "`new` is new",
        "`j2` is missing",
        "`aggregate` is mean, calibrated was median",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let allow = ProfileOptions { threshold: None, allow_mismatch: true };
    let own = InForce::new(bound.clone(), &seats, allow).unwrap();
    let weighed = own.weigh(&three(1.0, 1.0, 1.0));
    assert_eq!(weighed.mark.status(), "uncalibrated");
    assert!(weighed.mark.uncertified && weighed.mark.bound.is_none());
    bound.binding.seats.clear();
    let fits = InForce::new(bound, &panel(&NAMES, &known), ProfileOptions::default());
    assert_eq!(fits.unwrap().weigh(&three(1.0, 1.0, 1.0)).mark.status(), "certified");
}

#[test]
fn a_judge_that_lost_its_vote_is_not_taken_for_one_that_has_it() {
    let fingerprint = print("a");
    let mut seats = panel(&NAMES, &fingerprint);
    seats.seats[2].counted = false;
    let profile = profile(Map::None, (0.8, 0.7));
    let error = InForce::new(profile, &seats, ProfileOptions::default()).unwrap_err();
    assert!(error.to_string().contains("`j2` has no vote on the panel"), "{error}");
}

#[test]
fn another_model_behind_the_same_name_is_uncalibrated() {
    let mut profile = profile(Map::None, (0.8, 0.7));
    profile.binding.models.insert("j0".to_owned(), BTreeSet::from(["m-1".to_owned()]));
    let own = in_force(profile, ProfileOptions::default());
    let verdict = |model: &str| Verdict {
        judge: "j0".to_owned(),
        model_returned: Some(model.to_owned()),
        ..Verdict::ok(Score::ONE)
    };
    let mark = |model: &str| {
        let mut mark = own.weigh(&three(1.0, 1.0, 1.0)).mark;
        own.check_models(&[verdict(model), verdict(model)], &mut mark);
        mark
    };
    assert_eq!(mark("m-1").status(), "certified");
    let other = mark("m-2");
    assert_eq!((other.status(), other.reasons.len()), ("uncalibrated", 1));
    assert!(other.reasons[0].contains("`m-2`, calibrated was `m-1`"), "{:?}", other.reasons);
}

#[test]
fn a_judge_accepts_alone_only_where_its_own_error_is_certified() {
    let fingerprint = print("a");
    let mut seats = panel(&NAMES, &fingerprint);
    seats.seats[1].accept_alone = true;
    let mut profile = profile(Map::None, (0.8, 0.7));
    profile.judges.insert("j1".to_owned(), own(None));
    let refused = InForce::new(profile.clone(), &seats, ProfileOptions::default()).unwrap_err();
    assert!(refused.to_string().contains("not certified: 60 of 60 bad cases tie"), "{refused}");
    profile.judges.insert("j1".to_owned(), own(Some((0.9, 0.9))));
    let own = InForce::new(profile, &seats, ProfileOptions::default()).unwrap();
    assert_eq!(own.weigh(&three(0.0, 0.95, 0.0)).alone, Some(1));
    assert_eq!(own.weigh(&three(0.0, 0.85, 0.0)).alone, None);
    let bound = own.weigh(&three(0.0, 0.95, 0.0)).mark.bound.unwrap();
    assert_eq!((bound.alpha, bound.delta), (0.10, 0.20), "two ways to be accepted");
}

#[test]
fn pooled_and_dawid_skene_need_what_they_stand_on() {
    let fingerprint = print("a");
    let mut seats = panel(&NAMES, &fingerprint);
    seats.pooling = Pooling::Pooled;
    let plain = profile(Map::None, (0.8, 0.7));
    let error = InForce::new(plain.clone(), &seats, ProfileOptions::default()).unwrap_err();
    assert!(error.to_string().contains("`--aggregate stack`"), "{error}");
    let mut stacked = plain.clone();
    stacked.panel.aggregate = PanelAggregate::Stack;
    stacked.panel.stack = Some(Stack {
        intercept: 0.1,
        weights: vec![0.5, 0.25, 0.25],
        centre: vec![0.5; 3],
        n: 100,
    });
    let own = InForce::new(stacked.clone(), &seats, ProfileOptions::default()).unwrap();
    let key = own.weigh(&three(1.0, 0.0, 0.4)).mark.key.unwrap();
    assert!((key.score - 0.7).abs() < 1e-12);
    seats.pooling = Pooling::Median;
    let error = InForce::new(stacked, &seats, ProfileOptions::default()).unwrap_err();
    assert!(error.to_string().contains("is median, calibrated was pooled"), "{error}");
    seats.pooling = Pooling::DawidSkene;
    let own = InForce::new(plain.clone(), &seats, ProfileOptions::default()).unwrap();
    let weighed = own.weigh(&three(1.0, 1.0, 1.0));
    assert!(weighed.score.unwrap().get() > 0.95);
    assert_eq!((weighed.reached, weighed.mark.status()), (Ok(true), "uncertified"));
    let mut without = plain;
    without.confusion = None;
    assert!(InForce::new(without, &seats, ProfileOptions::default()).is_err());
}

#[test]
fn scales_that_are_not_known_are_asked_for() {
    let refused = |change: fn(&mut Profile)| {
        let mut profile = profile(Map::None, (0.8, 0.7));
        change(&mut profile);
        InForce::new(profile, &panel(&NAMES, &print("a")), ProfileOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert!(refused(|profile| profile.scale = None).contains("--label-scale"));
    assert!(refused(|profile| profile.panel.seats[1].unit = None).contains("--judge-scale j1="));
}

#[test]
fn a_loop_longer_than_the_certificate_is_refused_or_uncertified() {
    let mut profile = profile(Map::None, (0.8, 0.7));
    profile.binding.generations = 5;
    let mut own = in_force(profile.clone(), ProfileOptions::default());
    assert!(own.allow_generations(5).is_ok());
    let error = own.allow_generations(6).unwrap_err();
    assert!(error.refuses_profile() && error.to_string().contains("max_generations = 5"));
    let options = ProfileOptions { threshold: None, allow_mismatch: true };
    let mut own = in_force(profile.clone(), options);
    own.allow_generations(6).unwrap();
    let mark = own.weigh(&three(1.0, 1.0, 1.0)).mark;
    assert_eq!(mark.status(), "uncertified");
    assert!(mark.reasons[0].contains("holds for 5 generation(s)"), "{:?}", mark.reasons);
    profile.certificate.status = CertificateStatus::NotCertifiable;
    let mut own = in_force(profile, ProfileOptions::default());
    assert!(own.allow_generations(100).is_ok(), "nothing is certified, so nothing is lost");
}

#[test]
fn the_other_modes_say_what_they_bound() {
    let mut profile = profile(Map::None, (0.8, 0.7));
    profile.certificate.mode = Mode::Expected;
    let own = in_force(profile, ProfileOptions::default());
    assert_eq!(own.weigh(&three(1.0, 1.0, 1.0)).mark.bound.unwrap().mode, "expected");
}

fn maps() -> impl Strategy<Value = Map> {
    prop_oneof![
        Just(Map::None),
        (-0.5..0.5f64).prop_map(|offset| Map::Offset { offset }),
        (-1.0..2.0f64, -0.5..0.5f64)
            .prop_map(|(slope, intercept)| Map::Affine { slope, intercept }),
        (0.0..1.0f64, 0.0..1.0f64).prop_map(|(reject, accept)| Map::Rates { reject, accept }),
    ]
}

fn vote() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![4 => (0.0..=1.0f64).prop_map(Some), 1 => Just(None), 2 => Just(Some(0.5))]
}

proptest! {
    #[test]
    fn the_order_of_seats_changes_nothing(
        maps in prop::collection::vec(maps(), 3),
        values in prop::collection::vec(vote(), 3),
        turn in 0usize..3,
        key in (0.0..1.0f64, 0.0..1.0f64),
    ) {
        let mut own = profile(Map::None, key);
        for (seat, map) in own.panel.seats.iter_mut().zip(maps) {
            (seat.vote, seat.map) = (map.clone(), map);
        }
        let fingerprint = print("a");
        let mut names = NAMES;
        let mut turned = values.clone();
        names.rotate_left(turn);
        turned.rotate_left(turn);
        let seated = |names: &[&str]| {
            let panel = SeatedPanel {
                seats: names.iter().map(|name| seat(name, &fingerprint)).collect(),
                pooling: Pooling::Median,
                raw_threshold: 0.7,
            };
            InForce::new(own.clone(), &panel, ProfileOptions::default()).unwrap()
        };
        let straight = seated(&NAMES).weigh(&votes(&values));
        let mut other = seated(&names).weigh(&votes(&turned));
        other.mapped.rotate_right(turn);
        prop_assert_eq!(straight, other);
    }

    #[test]
    fn a_profile_that_maps_nothing_changes_neither_score_nor_tiebreak(
        values in prop::collection::vec(0.0..=1.0f64, 3)
    ) {
        use crate::panel::vote::{Settings, aggregate, mean};
        let own = in_force(profile(Map::None, (0.8, 0.7)), ProfileOptions::default());
        let given = votes(&values.iter().copied().map(Some).collect::<Vec<_>>());
        let weighed = own.weigh(&given);
        let mut plain: Vec<(Score, f64)> = given.iter().flatten().map(|vote| (*vote, 1.0)).collect();
        plain.sort_by_key(|vote| vote.0);
        let near = |a: Option<Score>, b: Option<Score>| {
            (a.unwrap().get() - b.unwrap().get()).abs() < 1e-11
        };
        prop_assert!(near(weighed.score, aggregate(&plain, &Settings::default())));
        prop_assert!(near(weighed.tiebreak, mean(plain.iter().copied())));
    }

    #[test]
    fn a_rising_profile_never_punishes_a_higher_vote(
        values in prop::collection::vec(0.0..=1.0f64, 3), at in 0usize..3, to in 0.0..=1.0f64,
        map in maps(), key in (0.0..1.0f64, 0.0..1.0f64),
    ) {
        let own = in_force(profile(map, key), ProfileOptions::default());
        prop_assume!(own.is_increasing());
        let mut higher = values.clone();
        higher[at] = higher[at].max(to);
        let reached = |values: &[f64]| {
            let given: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
            own.weigh(&votes(&given)).reached.unwrap()
        };
        prop_assert!(!reached(&values) || reached(&higher));
    }
}
