use std::fmt::Write as _;

use super::*;
use crate::calibration::limit::{Limit, LimitStatus};
use crate::calibration::table::tests::table;

/// Labels 0/1 and judges that are wrong on every `period`-th case; `None` is constant.
fn bench(n: usize, judges: &[(&str, Option<usize>)]) -> Table {
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score\n");
    for i in 0..n {
        let good = i % 3 != 0;
        writeln!(labels, "c{i},{}", u8::from(good)).unwrap();
        for (place, (judge, period)) in judges.iter().enumerate() {
            let said = match period {
                Some(period) if (i / 3 + place) % period == 0 => !good,
                Some(_) => good,
                None => true,
            };
            writeln!(judgements, "c{i},{judge},{}", u8::from(said)).unwrap();
        }
    }
    table(&labels, &judgements, ">=1").unwrap()
}

fn board(table: &Table, by: Measure) -> Leaderboard {
    let items = Items::absent(table.cases().len());
    let groups = Groups::assign(table.cases(), &items, &Default::default()).unwrap();
    let calibration = Options { split: SplitPlan::None, ..Options::default() };
    let options = LeaderboardOptions { calibration, by };
    leaderboard(table, &groups, &items, "case", &[], &[], &options).unwrap()
}

fn difference<'a>(board: &'a Leaderboard, a: &str, b: &str) -> &'a Difference {
    board.comparisons[0]
        .differences
        .iter()
        .find(|own| (own.first == a && own.second == b) || (own.first == b && own.second == a))
        .unwrap()
}

#[test]
fn judges_that_differ_share_no_letter_and_equal_ones_do() {
    let table = bench(600, &[("good", Some(50)), ("same", Some(50)), ("poor", Some(3))]);
    let board = board(&table, Measure::Agreement);
    let letters = |name: &str| board.row(name).unwrap().letters.clone();
    assert!(letters("good").iter().any(|own| letters("same").contains(own)));
    assert!(!letters("good").iter().any(|own| letters("poor").contains(own)));
    assert!(is_told(difference(&board, "good", "poor")));
    let alike = difference(&board, "good", "same");
    let figure = alike.difference.value().unwrap();
    assert_eq!((alike.first_only, alike.second_only, figure.estimate), (Some(12), Some(12), 0.0));
    assert!(figure.lower < 0.0 && figure.upper > 0.0 && figure.n == 600);
    assert!(board.conclusion.contains("can't tell it from"), "{}", board.conclusion);
}

#[test]
fn every_p_value_is_adjusted_upwards_and_identical_judges_have_one() {
    let table = bench(300, &[("a", Some(7)), ("b", Some(5)), ("c", Some(4)), ("d", None)]);
    let board = board(&table, Measure::Agreement);
    for own in &board.comparisons[0].differences {
        let (p, adjusted) = (own.p.value().unwrap(), own.p_holm.value().unwrap());
        assert!(adjusted >= p && *adjusted <= 1.0, "{own:?}");
    }
    let names = [("x", Some(6)), ("y", Some(6))];
    let mut same = bench(90, &names);
    same.judges[1].scores = same.judges[0].scores.clone();
    let board = super::tests::board(&same, Measure::Agreement);
    let own = difference(&board, "x", "y");
    assert_eq!(own.p_holm.value(), Some(&1.0));
    assert!(own.difference.value().unwrap().upper > 0.0, "no difference seen is not none");
    assert_eq!(own.smallest_visible.0.unwrap_err().reason, Reason::NoDiscordantPairs);
}

#[test]
fn baselines_are_rows_and_a_constant_judge_is_named_as_no_better() {
    let table = bench(300, &[("good", Some(40)), ("constant", None)]);
    let board = board(&table, Measure::Agreement);
    for name in ["accept_all", "reject_all", "random"] {
        let row = board.row(name).unwrap();
        assert!(row.agreement.value().is_some() && row.kind == ContenderKind::Baseline);
    }
    assert_eq!(board.row("accept_all").unwrap().false_positive_rate.value().unwrap().estimate, 1.0);
    assert!(board.row("longest").is_none(), "there are no outputs");
    assert_eq!(board.best_baseline, "accept_all");
    let text = &board.conclusion;
    assert!(text.contains("Not shown to agree") && text.contains("`constant`"), "{text}");
    assert!(board.rows.iter().rposition(|row| row.kind != ContenderKind::Baseline).unwrap() < 4);
}

#[test]
fn a_limit_is_kept_by_the_whole_interval_only() {
    let table = bench(300, &[("good", Some(10)), ("other", Some(9))]);
    let board = board(&table, Measure::Agreement);
    let figure = *board.row("good").unwrap().agreement.value().unwrap();
    let status = |value: f64| {
        let limit: Limit = format!("good:agreement={value}").parse().unwrap();
        limit.check(&board).unwrap().status
    };
    assert_eq!(status(figure.lower - 0.001), LimitStatus::Kept);
    assert_eq!(status(figure.lower + 0.001), LimitStatus::NotShown);
    assert_eq!(status(figure.upper + 0.001), LimitStatus::Broken);
    let near: Limit = format!("good:agreement={}", figure.lower + 0.001).parse().unwrap();
    let text = near.check(&board).unwrap().to_string();
    assert!(text.contains("is not shown; about"), "{text}");
    let unknown: Limit = "godo:agreement=0.1".parse().unwrap();
    assert!(unknown.check(&board).unwrap_err().to_string().contains("did you mean `good`"));
    let bias: Limit = "reject_all:false_acceptance_share=0.1".parse().unwrap();
    assert_eq!(bias.check(&board).unwrap().status, LimitStatus::Undefined);
}

#[test]
fn one_class_a_single_judge_and_three_labels_give_a_board_with_reasons() {
    let all_good =
        table("case,label\na,1\nb,1\nc,1\n", "case,judge,score\na,j,1\nb,j,0\nc,j,1\n", ">=1")
            .unwrap();
    let board = board(&all_good, Measure::Agreement);
    let row = board.row("j").unwrap();
    assert_eq!(row.false_positive_rate.0.unwrap_err().reason, Reason::NoNegatives);
    assert_eq!(row.agreement.value().unwrap().n, 3);
    assert!(board.row("panel").is_none(), "one judge is no panel");
    assert_eq!(board.subject, "j");
    assert!(board.comparisons[0].differences.is_empty());
    let json = board.to_json();
    assert!(json["undefined"].as_array().unwrap().len() > 3);
}

#[test]
fn all_ties_leave_no_order_by_area() {
    let rows: String = (0..40).map(|i| format!("c{i},j,3\nc{i},k,3\n")).collect();
    let labels: String = (0..40).map(|i| format!("c{i},{}\n", 1 + i % 5)).collect();
    let tied = table(&format!("case,label\n{labels}"), &format!("case,judge,score\n{rows}"), ">=4");
    let board = board(&tied.unwrap(), Measure::Auc);
    let own = &board.comparisons[1].differences[0];
    assert_eq!(own.p.value(), Some(&1.0));
    assert_eq!(own.difference.0.unwrap_err().reason, Reason::ZeroVariance);
}

#[test]
fn areas_differ_as_delong_says() {
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score\n");
    let (mut a, mut b, mut good) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..80u32 {
        let truth = i % 2 == 0;
        let x = f64::from(i * 37 % 41) + if truth { 12.0 } else { 0.0 };
        let y = f64::from(i * 23 % 47) + if truth { 4.0 } else { 0.0 };
        writeln!(labels, "c{i},{}", if truth { 60 } else { 0 }).unwrap();
        writeln!(judgements, "c{i},a,{x}\nc{i},b,{y}").unwrap();
        a.push(x);
        b.push(y);
        good.push(truth);
    }
    let board = board(&table(&labels, &judgements, ">=60").unwrap(), Measure::Auc);
    let own =
        board.comparisons[1].differences.iter().find(|own| own.first == "a" && own.second == "b");
    let own = own.unwrap();
    let expected = crate::stats::auc::delong_difference(&a, &b, &good, 0.95).unwrap();
    let figure = own.difference.value().unwrap();
    assert!((figure.estimate - expected.estimate.point).abs() < 1e-12);
    assert!((figure.lower - expected.estimate.interval.lower).abs() < 1e-12);
    assert!((own.p.value().unwrap() - expected.p).abs() < 1e-12);
}

#[test]
fn a_panel_of_unknown_judges_and_a_name_that_is_taken_are_refused() {
    let table = bench(60, &[("a", Some(5)), ("b", Some(4))]);
    let items = Items::absent(60);
    let groups = Groups::assign(table.cases(), &items, &Default::default()).unwrap();
    let run = |name: &str, judge: &str| {
        let panels = [PanelOf { name: name.into(), judges: vec![judge.into()], ruled: None }];
        let options = LeaderboardOptions::default();
        leaderboard(&table, &groups, &items, "case", &panels, &[], &options).map(|_| ())
    };
    assert!(run("p", "x").unwrap_err().to_string().contains("no judge is named `x`"));
    assert!(run("a", "b").unwrap_err().to_string().contains("two contenders are named `a`"));
    assert!(run("p", "b").is_ok());
}

/// Graded judges whose scores of good and bad cases overlap: a promise costs good cases.
fn overlapping(n: u32) -> Table {
    let mut labels = String::from("case,label\n");
    let mut judgements = String::from("case,judge,score\n");
    for i in 0..n {
        let good = i % 2 == 0;
        writeln!(labels, "c{i},{}", u8::from(good)).unwrap();
        for (judge, step) in [("a", 37), ("b", 53), ("c", 71)] {
            let noise = f64::from(i * step % 101) / 200.0;
            writeln!(judgements, "c{i},{judge},{}", noise + if good { 0.25 } else { 0.0 }).unwrap();
        }
    }
    table(&labels, &judgements, ">=1").unwrap()
}

#[test]
fn a_certified_threshold_is_marked_and_ranked_against_none_of_another_kind() {
    let table = overlapping(1200);
    let items = Items::absent(table.cases().len());
    let groups = Groups::assign(table.cases(), &items, &Default::default()).unwrap();
    let of = |by| {
        let options = LeaderboardOptions { calibration: Options::default(), by };
        leaderboard(&table, &groups, &items, "case", &[], &[], &options).unwrap()
    };
    let own = of(Measure::Agreement);
    let panel = own.row("panel").unwrap();
    assert!(panel.is_certified() && panel.letters.is_empty(), "{panel:?}");
    let twin = own.row(panel.without_promise.as_ref().unwrap()).unwrap();
    assert_eq!(
        (twin.name.as_str(), twin.threshold_kind()),
        ("panel (fitted threshold)", Some("fitted"))
    );
    assert!(!twin.letters.is_empty());
    let pairs = own.comparisons[0].differences.iter().chain(&own.against_baseline);
    assert!(pairs.into_iter().all(|pair| pair.first != "panel" && pair.second != "panel"));
    let facing: Vec<&Row> =
        own.rows.iter().filter(|row| row.kind != ContenderKind::Baseline).collect();
    assert_eq!(facing.last().unwrap().name, "panel", "it stands below those that are ranked");
    let text = &own.conclusion;
    assert!(!text.starts_with("`panel` is first"), "{text}");
    assert!(text.contains("`panel` stands at its certified threshold"), "{text}");
    assert!(text.contains("without the promise (`panel (fitted threshold)`)"), "{text}");
    let by_area = of(Measure::Auc);
    let panel = by_area.row("panel").unwrap();
    assert!(!panel.letters.is_empty(), "its scores are compared as any other");
    assert_eq!(panel.letters, by_area.row("panel (fitted threshold)").unwrap().letters);
}

#[test]
fn under_twenty_labels_agreement_is_all_that_is_shown() {
    let own = board(&bench(4, &[("a", Some(3)), ("b", Some(2))]), Measure::Agreement);
    for row in &own.rows {
        assert!(row.agreement.value().is_some(), "{row:?}");
        let rest = [&row.bias, &row.false_positive_rate, &row.false_negative_rate, &row.auc];
        assert!(rest.iter().all(|figure| figure.value().is_none()), "{row:?}");
    }
    let own = board(&bench(20, &[("a", Some(3)), ("b", Some(2))]), Measure::Agreement);
    assert!(own.row("a").unwrap().false_positive_rate.value().is_some());
}
