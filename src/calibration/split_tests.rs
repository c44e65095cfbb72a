use super::*;
use crate::calibration::grouping::{Grouping, ItemFacts};

fn cases(n: usize) -> Vec<LabelledCase> {
    (0..n)
        .map(|i| LabelledCase {
            id: format!("m{}#{:03}", i % 3, i / 3),
            good: i % 5 != 0,
            target: f64::from(u8::from(i % 5 != 0)),
            ratings: Vec::new(),
        })
        .collect()
}

fn by_question(cases: &[LabelledCase]) -> Groups {
    let grouping = Grouping::pattern("#([0-9]+)").unwrap();
    Groups::assign(cases, &Items::absent(cases.len()), &grouping).unwrap()
}

fn split(cases: &[LabelledCase], seed: u64) -> Split {
    let groups = by_question(cases);
    let items = Items::absent(cases.len());
    Split::make(SplitPlan::Share(0.3), seed, cases, &groups, &items, "question").unwrap()
}

#[test]
fn a_group_is_never_split_and_each_part_has_its_share_of_bad_ones() {
    let cases = cases(300);
    let split = split(&cases, 7);
    for of_question in 0..100 {
        let parts: std::collections::HashSet<_> =
            (0..3).map(|i| split.parts[3 * of_question + i]).collect();
        assert_eq!(parts.len(), 1);
    }
    let (fit, certify) = (split.report.fit.unwrap(), split.report.certify.unwrap());
    assert_eq!((fit.groups, certify.groups), (30, 70));
    assert_eq!((fit.groups_with_bad, certify.groups_with_bad), (18, 42));
    assert_ne!(fit.hash, certify.hash);
}

#[test]
fn the_split_depends_on_the_seed_and_not_on_the_order_of_the_file() {
    let forward = cases(300);
    let mut backward = forward.clone();
    backward.reverse();
    let (a, b) = (split(&forward, 7), split(&backward, 7));
    let reversed: Vec<_> = b.parts.iter().rev().copied().collect();
    assert_eq!(a.parts, reversed);
    assert_eq!(a.report.fit, b.report.fit);
    assert_ne!(a.parts, split(&forward, 8).parts);
}

#[test]
fn groups_with_the_same_text_go_to_one_part() {
    let cases = cases(60);
    let groups = by_question(&cases);
    let mut items = Items { facts: vec![None; 60], present: true, ..Items::default() };
    // Question 0 and question 9 hold one text.
    for place in [0, 27] {
        let content = Some("same".to_owned());
        items.facts[place] = Some(ItemFacts { content, ..ItemFacts::default() });
    }
    for seed in 0..20 {
        let split =
            Split::make(SplitPlan::Share(0.5), seed, &cases, &groups, &items, "question").unwrap();
        assert_eq!(split.parts[0], split.parts[27]);
    }
}

#[test]
fn a_case_in_both_parts_is_refused() {
    let cases = cases(6);
    let groups = by_question(&cases);
    let fact = |split: &str| Some(ItemFacts { split: Some(split.into()), ..ItemFacts::default() });
    let facts = ["fit", "fit", "certify", "test", "test", "test"].map(fact).to_vec();
    let items = Items { facts, present: true, ..Items::default() };
    let error = Split::make(SplitPlan::Data, 0, &cases, &groups, &items, "q").unwrap_err();
    assert!(error.to_string().contains("of one group"), "{error}");
    let strange = Items { facts: vec![fact("holdout"); 6], present: true, ..Items::default() };
    let error = Split::make(SplitPlan::Data, 0, &cases, &groups, &strange, "q").unwrap_err();
    assert!(error.to_string().contains("`holdout`"), "{error}");
}

#[test]
fn shares_outside_the_unit_interval_and_ids_without_a_group_are_refused() {
    let cases = cases(6);
    let (groups, items) = (by_question(&cases), Items::absent(6));
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(Split::make(SplitPlan::Share(share), 0, &cases, &groups, &items, "q").is_err());
    }
    let none = Groups::assign(&cases, &items, &Grouping::pattern("@(.+)").unwrap()).unwrap_err();
    assert!(none.to_string().contains("has no group by pattern"), "{none}");
    assert!(Grouping::pattern("(").is_err());
}
