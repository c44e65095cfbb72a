use std::fmt::Write as _;

use rand::RngExt as _;

use super::*;
use crate::calibration::grouping::{Grouping, Items};
use crate::calibration::labelled::Labels;
use crate::calibration::table::TableOptions;
use crate::calibration::table_builder::TableBuilder;
use crate::dataset::{JudgementReader, LabelOptions, Source, read_labels};
use crate::stats::draw::stream;

const RESAMPLING: Resampling = Resampling { resamples: 200, seed: 1, level: 0.95 };

fn options() -> EstimateOptions {
    EstimateOptions {
        accept: None,
        quorum: None,
        level: 0.95,
        more: vec![20, 1000],
        resampling: RESAMPLING,
    }
}

fn table(labels: &str, judgements: &str, positive: &str) -> Table {
    let labels = Source::spool(labels.as_bytes(), "labels.csv").unwrap();
    let judgements = Source::spool(judgements.as_bytes(), "judgements.csv").unwrap();
    let set = read_labels(&labels, &LabelOptions::default()).unwrap();
    let positive: Positive = positive.parse().unwrap();
    let labels = Labels::collect(&set, "overall", &positive).unwrap();
    let options = TableOptions {
        criterion: "overall".into(),
        keep_unlabelled: true,
        ..TableOptions::default()
    };
    let mut builder = TableBuilder::new(labels, positive, options);
    let mut reader = JudgementReader::open(&judgements, &LabelOptions::default()).unwrap();
    while let Some(judgement) = reader.next() {
        builder.judgement(&judgement.unwrap(), reader.line()).unwrap();
    }
    builder.finish().unwrap()
}

fn alone(table: &Table) -> Groups {
    let items = Items::absent(table.cases().len());
    Groups::assign(table.cases(), &items, &Grouping::Automatic).unwrap()
}

/// A lenient graded judge on 300 cases of which 70 % are good; the first `labels` are known.
fn drawn(seed: u64, labels: usize) -> (String, String) {
    let mut rng = stream(seed, 0);
    let mut known = String::from("case,label\n");
    let mut judged = String::from("case,judge,score\n");
    for i in 0..300 {
        let good = rng.random::<f64>() < 0.7;
        let score = 0.5 * rng.random::<f64>() + if good { 0.5 } else { 0.3 * rng.random::<f64>() };
        writeln!(judged, "c{i},j,{score:.3}").unwrap();
        if i < labels {
            writeln!(known, "c{i},{}", u8::from(good)).unwrap();
        }
    }
    (known, judged)
}

#[test]
fn the_rate_of_a_graded_judge_covers_the_truth_over_score_bins() {
    let repeats = 300;
    let held = (0..repeats)
        .filter(|seed| {
            let (labels, judgements) = drawn(*seed, 60);
            let table = table(&labels, &judgements, ">=1");
            let found = estimate(&table, &alone(&table), None, &options()).unwrap();
            assert_eq!((found.judged, found.labelled, found.unlabelled), (300, 60, 240));
            let rate = found.rate.value().unwrap();
            rate.lower <= 0.7 && 0.7 <= rate.upper
        })
        .count();
    let share = held as f64 / repeats as f64;
    assert!(share >= 0.95 - 3.0 * (0.95f64 * 0.05 / repeats as f64).sqrt(), "{share}");
}

#[test]
fn the_cells_follow_the_scores_and_every_case_is_in_one() {
    let (labels, judgements) = drawn(4, 60);
    let table = table(&labels, &judgements, ">=1");
    let found = estimate(&table, &alone(&table), None, &options()).unwrap();
    assert_eq!(found.cells.iter().map(|cell| cell.judged).sum::<u64>(), 300);
    assert_eq!(found.cells.iter().map(|cell| cell.labelled).sum::<u64>(), 60);
    assert_eq!(found.cells.len(), 7, "six of equal size, and one without a score");
    assert!(found.cells[0].rate < found.cells[5].rate);
    assert!(found.cells[0].name.starts_with("score "), "{}", found.cells[0].name);
    let widths: Vec<f64> =
        found.outlook.iter().map(|own| *own.width_random.value().unwrap()).collect();
    let now = found.rate.value().unwrap();
    assert!(widths[0] < now.upper - now.lower && widths[1] < widths[0]);
    assert_eq!(found.outlook[1].labels, 240, "no more than there are");
    for own in &found.outlook {
        assert_eq!(own.cells.values().sum::<u64>(), own.labels, "{own:?}");
        let (spread, random) = (own.width_allocated.value(), own.width_random.value());
        assert!(*spread.unwrap() <= random.unwrap() + 1e-9, "{own:?}");
    }
}

#[test]
fn failed_measurements_are_a_cell_of_their_own() {
    let mut judged = String::from("case,judge,score\n");
    let mut known = String::from("case,label\n");
    for i in 0..90 {
        let score = if i % 9 == 0 { String::new() } else { u8::from(i % 3 == 0).to_string() };
        writeln!(judged, "c{i},j,{score}").unwrap();
        if i < 45 {
            writeln!(known, "c{i},{}", u8::from(i % 3 == 0)).unwrap();
        }
    }
    let table = table(&known, &judged, ">=1");
    let found = estimate(&table, &alone(&table), None, &options()).unwrap();
    let cells: Vec<(&str, u64, u64)> =
        found.cells.iter().map(|c| (c.name.as_str(), c.judged, c.labelled)).collect();
    assert_eq!(cells, [("not accepted", 60, 30), ("accepted", 20, 10), ("without a score", 10, 5)]);
    assert!(!found.ppi_plus_plus.trusted && found.ppi_plus_plus.note.contains("not to be trusted"));
}

#[test]
fn copies_of_a_case_in_its_group_do_not_narrow_the_interval() {
    let mut judged = String::from("case,judge,score\n");
    let mut known = String::from("case,label\n");
    for i in 0..400 {
        let of_group = i / 4;
        let good = of_group * 7 % 10 < 6;
        let said = if of_group % 5 == 0 { !good } else { good };
        writeln!(judged, "c{i}#{of_group},j,{}", u8::from(said)).unwrap();
        if i < 200 {
            writeln!(known, "c{i}#{of_group},{}", u8::from(good)).unwrap();
        }
    }
    let table = table(&known, &judged, ">=1");
    let items = Items::absent(400);
    let pattern = Grouping::pattern("#(.+)").unwrap();
    let groups = Groups::assign(table.cases(), &items, &pattern).unwrap();
    let width = |groups: &Groups| {
        let found = estimate(&table, groups, None, &options()).unwrap();
        let rate = found.rate.value().unwrap();
        rate.upper - rate.lower
    };
    assert!(width(&groups) > 1.6 * width(&alone(&table)), "four copies are one case");
}

#[test]
fn slices_have_rates_of_their_own_or_say_that_they_have_no_label() {
    let judged: String = (0..60).map(|i| format!("c{i},j,{}\n", i % 2)).collect();
    let known: String = (10..30).map(|i| format!("c{i},{}\n", i % 2)).collect();
    let table =
        table(&format!("case,label\n{known}"), &format!("case,judge,score\n{judged}"), ">=1");
    let pattern = Grouping::pattern("c(.).?").unwrap();
    let slices = Groups::assign(table.cases(), &Items::absent(60), &pattern).unwrap();
    let found = estimate(&table, &alone(&table), Some(&slices), &options()).unwrap();
    let of = |name: &str| found.groups.iter().find(|own| own.name == name).unwrap();
    assert_eq!((of("1").judged, of("1").labelled), (11, 10));
    assert!(of("1").rate.value().is_some());
    assert_eq!(of("3").rate.0.unwrap_err().reason, Reason::NoData);
}

#[test]
fn no_label_one_class_and_a_constant_judge_are_said_and_never_guessed() {
    let judged = "case,judge,score\na,j,1\nb,j,1\nc,j,1\nd,j,1\n";
    let no_overlap = table("case,label\nx,1\n", judged, ">=1");
    let error = estimate(&no_overlap, &alone(&no_overlap), None, &options()).unwrap_err();
    assert!(error.to_string().contains("none of the 4 judged cases has a label"), "{error}");
    let three = table("case,label\na,1\nb,1\nc,1\n", judged, ">=1");
    let found = estimate(&three, &alone(&three), None, &options()).unwrap();
    let rate = found.rate.value().unwrap();
    assert!(rate.lower < 0.6 && rate.upper == 1.0, "three labels know little: {rate:?}");
    assert!(found.rogan_gladen.rate.value().is_none());
    assert!(found.warnings.iter().any(|own| own.starts_with("3 labels")), "{:?}", found.warnings);
    let error =
        estimate(&three, &alone(&three), None, &EstimateOptions { level: 1.0, ..options() });
    assert!(error.unwrap_err().to_string().contains("--level"));
}
