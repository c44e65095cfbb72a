use super::*;
use crate::calibration::figure::{Figure, Measured};
use crate::stats::Method;

fn seat(judge: &str, vote: Map, map: Map, range: [f64; 2]) -> Seat {
    Seat { judge: judge.to_owned(), kind: JudgeKind::Graded, vote, map, range, unit: Some(range) }
}

fn model(quorum: usize) -> PanelModel {
    PanelModel {
        aggregate: PanelAggregate::Median,
        quorum,
        seats: vec![
            seat(
                "a",
                Map::Offset { offset: 1.0 },
                Map::Affine { slope: 0.5, intercept: 2.0 },
                [1.0, 5.0],
            ),
            seat("b", Map::None, Map::None, [1.0, 5.0]),
            seat("c", Map::None, Map::None, [1.0, 5.0]),
        ],
        stack: None,
        map: Map::None,
    }
}

#[test]
fn the_key_is_the_lower_median_of_offset_votes_and_the_mean_of_mapped_ones() {
    let key = model(2).key(&[Some(2.0), Some(3.0), Some(5.0)], Missing::LeftOut).unwrap();
    assert_eq!(key, (3.0, 11.0 / 3.0));
    let even = model(2).key(&[Some(4.0), None, Some(3.0)], Missing::LeftOut).unwrap();
    assert_eq!(even.0, 3.0, "the lower of 3 and 5");
}

#[test]
fn below_the_quorum_there_is_no_key() {
    assert_eq!(model(2).key(&[Some(2.0), None, None], Missing::LeftOut), None);
    assert_eq!(model(1).key(&[None, None, None], Missing::LeftOut), None);
}

#[test]
fn a_missing_vote_at_its_highest_never_lowers_the_key() {
    let panel = model(1);
    for bits in 0..8u32 {
        for value in [1.0, 2.0, 4.5] {
            let votes: Vec<Option<f64>> = (0..3)
                .map(|j| (bits & (1 << j) != 0).then_some(value + f64::from(j) * 0.1))
                .collect();
            let worst = panel.key(&votes, Missing::Highest).unwrap();
            if let Some(own) = panel.key(&votes, Missing::LeftOut) {
                assert!(worst >= own, "{votes:?}");
            }
        }
    }
}

#[test]
fn a_stack_replaces_the_median_and_missing_votes_count_by_their_weight_s_sign() {
    let mut panel = model(1);
    panel.stack =
        Some(Stack { intercept: 1.0, weights: vec![2.0, -1.0, 0.0], centre: vec![3.0; 3], n: 100 });
    assert_eq!(panel.key(&[Some(1.0), Some(1.0), Some(1.0)], Missing::LeftOut).unwrap().0, 2.0);
    assert_eq!(panel.key(&[None, None, Some(1.0)], Missing::LeftOut).unwrap().0, 4.0);
    assert_eq!(panel.key(&[None, None, Some(1.0)], Missing::Highest).unwrap().0, 10.0);
}

#[test]
fn ranks_follow_the_dictionary_order_of_keys() {
    assert_eq!(rank(&[(1.0, 0.5), (0.0, 9.0), (1.0, 0.2), (1.0, 0.5)]), [2.0, 0.0, 1.0, 2.0]);
}

#[test]
fn a_judge_with_few_labels_votes_as_it_is() {
    let table = crate::calibration::table::tests::table(
        "case,label\na,1\nb,5\n",
        "case,judge,score\na,j,2\nb,j,4\n",
        ">=3",
    )
    .unwrap();
    let offset = Figure {
        estimate: 0.5,
        lower: 0.0,
        upper: 1.0,
        n: 2,
        level: 0.95,
        method: Method::StudentT,
    };
    let fitted = FittedMap {
        map: Map::None,
        n: 2,
        offset: Measured(Ok(offset)),
        candidates: Vec::new(),
        reason: String::new(),
    };
    let model = PanelModel::fit(
        &table,
        std::slice::from_ref(&fitted),
        &[true],
        &[0, 1],
        PanelAggregate::Median,
        None,
    )
    .unwrap();
    assert_eq!((model.seats[0].vote.clone(), model.quorum), (Map::None, 1));
    assert_eq!(model.seats[0].range, [1.0, 5.0], "the scale says how far it may go");
    let many = FittedMap { n: 20, ..fitted };
    let model =
        PanelModel::fit(&table, &[many], &[true], &[0, 1], PanelAggregate::Median, None).unwrap();
    assert_eq!(model.seats[0].vote, Map::Offset { offset: 0.5 });
    let stack = PanelModel::fit(
        &table,
        &[FittedMap {
            n: 2,
            map: Map::None,
            offset: Measured::undefined(Reason::NoData),
            candidates: Vec::new(),
            reason: String::new(),
        }],
        &[true],
        &[0, 1],
        PanelAggregate::Stack,
        None,
    );
    assert_eq!(stack.unwrap_err().reason, Reason::TooFewValues);
}

/// Every set of places of this size among three.
fn sets_of(size: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..8u32)
        .filter(move |bits| bits.count_ones() as usize == size)
        .map(|bits| (0..3).filter(|j| bits >> j & 1 == 1).collect())
}

fn stacked(weights: [f64; 3]) -> PanelModel {
    PanelModel {
        aggregate: PanelAggregate::Stack,
        stack: Some(Stack {
            intercept: 0.2,
            weights: weights.to_vec(),
            centre: vec![2.0, 3.0, 4.0],
            n: 100,
        }),
        ..model(1)
    }
}

#[test]
fn a_part_of_a_panel_gives_the_key_that_the_whole_gives_without_the_others() {
    for panel in [model(1), stacked([0.5, -0.2, 0.7])] {
        for size in 1..=3 {
            for set in sets_of(size) {
                let all = [2.0, 4.5, 3.0];
                let masked: Vec<Option<f64>> =
                    (0..3).map(|j| set.contains(&j).then_some(all[j])).collect();
                let own: Vec<Option<f64>> = set.iter().map(|&j| Some(all[j])).collect();
                let part = panel.only(&set).key(&own, Missing::LeftOut).unwrap();
                let whole = panel.key_of_present(&masked, Missing::LeftOut).unwrap();
                assert!((part.0 - whole.0).abs() < 1e-12 && part.1 == whole.1, "{set:?}");
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_set_of_a_size_has_a_key_above_the_highest_of_its_size(
        votes in proptest::collection::vec(proptest::option::of(1.0..=5.0f64), 3),
        stay in 1.0..=5.0f64,
        weights in proptest::array::uniform3(-1.0..1.0f64),
    ) {
        for panel in [model(1), stacked(weights)] {
            for size in 1..=3 {
                let bound = panel.highest_key_of_size(&votes, size).unwrap();
                for set in sets_of(size) {
                    // Who is missing may answer after all, with any vote.
                    let masked: Vec<Option<f64>> = (0..3)
                        .map(|j| set.contains(&j).then_some(votes[j].unwrap_or(stay)))
                        .collect();
                    let key = panel.key_of_present(&masked, Missing::LeftOut).unwrap();
                    let above = (key.0 - 1e-9, key.1 - 1e-9) > bound;
                    proptest::prop_assert!(!above, "{key:?} above {bound:?}");
                }
            }
        }
    }
}

#[test]
fn a_size_that_the_panel_does_not_have_has_no_key() {
    assert_eq!(model(1).highest_key_of_size(&[Some(1.0); 3], 0), None);
    assert_eq!(model(1).highest_key_of_size(&[Some(1.0); 3], 4), None);
}

#[test]
fn a_panel_is_rising_when_no_map_and_no_weight_turns_a_vote_round() {
    assert!(model(1).is_increasing() && stacked([0.1, 0.0, 0.3]).is_increasing());
    assert!(!stacked([0.1, -0.1, 0.3]).is_increasing());
    let mut turned = model(1);
    turned.seats[0].map = Map::Affine { slope: -0.1, intercept: 0.0 };
    assert!(!turned.is_increasing());
    let mut unit = model(1);
    unit.seats[2].unit = Some([1.0, 0.0]);
    assert!(!unit.is_increasing());
}
