//! Does the certificate keep its promise on real judges? Repeated draws of calibration
//! questions from a labelled set, each certified and then checked on questions it never saw.
//!
//! `cargo run --release --example trivia_certificate -- FOLDER [DRAWS]`
//! with the TriviaQA set of *Judging the Judges* (`judgements.csv.gz`, `labels.csv`; the
//! case's id ends in `#QUESTION`). Prints one JSON line a design.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::path::Path;

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use venire::calibration::grouping::{Grouping, Groups, Items};
use venire::calibration::panel::{Key, Missing, PanelAggregate, PanelModel};
use venire::calibration::read::{Inputs, Joined, Judgements};
use venire::calibration::split::SplitPlan;
use venire::calibration::table::{Orders, Table};
use venire::calibration::{Options, certify};
use venire::dataset::{LabelOptions, ReadOptions, Source};
use venire::stats::draw::stream;

type AnyError = Box<dyn std::error::Error>;

/// Questions that calibrate; the rest check.
const QUESTIONS: usize = 300;
const ALPHA: f64 = 0.05;
const DELTA: f64 = 0.10;

#[derive(Clone, Copy)]
struct Design {
    name: &'static str,
    aggregate: PanelAggregate,
    fit: f64,
    /// Rows as if independent: the mistake that groups are for.
    ungrouped: bool,
}

/// One draw: rates on the questions held out, or `None` where nothing was certified.
struct Drawn {
    false_positive_rate: f64,
    true_positive_rate: f64,
    /// Mean over questions of the share of their bad answers accepted: what is certified.
    by_question: f64,
    bad_questions: u64,
}

fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("expected the folder of the data set")?;
    let draws: u64 = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let joined = read(Path::new(&folder))?;
    let design = |name, aggregate, fit| Design { name, aggregate, fit, ungrouped: false };
    let designs = [
        design("median, fit 25 % (default)", PanelAggregate::Median, 0.25),
        design("logistic, fit 25 %", PanelAggregate::Logistic, 0.25),
        Design {
            ungrouped: true,
            ..design("median, fit 25 %, rows as independent", PanelAggregate::Median, 0.25)
        },
        design("stack, fit 25 %", PanelAggregate::Stack, 0.25),
        design("median, fit 15 %", PanelAggregate::Median, 0.15),
        design("median, fit 50 %", PanelAggregate::Median, 0.50),
        design("logistic, fit 15 %", PanelAggregate::Logistic, 0.15),
        design("logistic, fit 50 %", PanelAggregate::Logistic, 0.50),
    ];
    for design in designs {
        for population in [false, true] {
            summarise(&joined, design, population, draws)?;
        }
    }
    Ok(())
}

fn read(folder: &Path) -> Result<Joined, AnyError> {
    let judgements = Source::open(&folder.join("judgements.csv.gz"))?;
    let labels = Source::open(&folder.join("labels.csv"))?;
    let inputs = Inputs {
        judgements: Judgements::File(&judgements),
        labels: Some(&labels),
        items: None,
        criterion: None,
        label_criterion: None,
        positive: "=1".parse()?,
        grouping: Grouping::pattern("#(.+)")?,
        orders: Orders::All,
        judge_scales: BTreeMap::new(),
        scale_units: false,
        judges: Vec::new(),
        voters_only: false,
        keep_unlabelled: false,
        options: LabelOptions::default(),
        case_options: ReadOptions::default(),
    };
    Ok(inputs.join()?)
}

fn summarise(
    joined: &Joined,
    design: Design,
    population: bool,
    draws: u64,
) -> Result<(), AnyError> {
    let mut drawn = Vec::new();
    for seed in 0..draws {
        drawn.push(draw(joined, design, population, seed)?);
    }
    let certified: Vec<&Drawn> = drawn.iter().flatten().collect();
    let n = certified.len() as f64;
    let mean = |of: fn(&Drawn) -> f64| certified.iter().map(|own| of(own)).sum::<f64>() / n;
    let violated = |of: fn(&Drawn) -> f64| {
        certified.iter().filter(|own| of(own) > ALPHA).count() as f64 / draws as f64
    };
    let line = serde_json::json!({
        "design": design.name,
        "check": if population { "all 400 questions, drawn with replacement" } else { "100 questions held out" },
        "draws": draws,
        "not_certified": 1.0 - n / draws as f64,
        "bad_questions": mean(|own| own.bad_questions as f64),
        "false_positive_rate": mean(|own| own.false_positive_rate),
        "true_positive_rate": mean(|own| own.true_positive_rate),
        "violation": violated(|own| own.false_positive_rate),
        "violation_by_question": violated(|own| own.by_question),
        "limit": DELTA + 3.0 * (DELTA * (1.0 - DELTA) / draws as f64).sqrt(),
    });
    println!("{line}");
    Ok(())
}

/// Without `population`, 300 questions calibrate and the other 100 check. With it, the 400
/// questions are the whole world: 300 are drawn with replacement, and the rates checked are
/// exact, so that no noise of a test part is counted as a violation.
fn draw(
    joined: &Joined,
    design: Design,
    population: bool,
    seed: u64,
) -> Result<Option<Drawn>, AnyError> {
    let mut rng = stream(2026, seed);
    let mut questions: Vec<usize> = (0..joined.groups.len()).collect();
    questions.shuffle(&mut rng);
    let (chosen, checked): (Vec<usize>, Vec<usize>) = if population {
        let chosen = (0..QUESTIONS).map(|_| questions[rng.random_range(0..questions.len())]);
        (chosen.collect(), questions.clone())
    } else {
        (questions[..QUESTIONS].to_vec(), questions[QUESTIONS..].to_vec())
    };
    let mut of_question: Vec<Vec<usize>> = vec![Vec::new(); joined.groups.len()];
    for (row, &question) in joined.groups.of_case.iter().enumerate() {
        of_question[question].push(row);
    }
    let mut rows = Vec::new();
    let mut names = Vec::new();
    for (place, &question) in chosen.iter().enumerate() {
        for &row in &of_question[question] {
            rows.push(row);
            names.push(format!("{place}"));
        }
    }
    let mut table = joined.table.select(&rows);
    for (case, name) in table.labels.cases.iter_mut().zip(&names) {
        // A question drawn twice is two questions.
        case.id = format!("{}@{name}", case.id);
    }
    let grouping = Grouping::pattern(if design.ungrouped { "(.+)" } else { "@(.+)" })?;
    let items = Items::absent(rows.len());
    let groups = Groups::assign(table.cases(), &items, &grouping)?;
    let options = Options {
        alpha: ALPHA,
        delta: DELTA,
        split: SplitPlan::Share(design.fit),
        seed,
        aggregate: design.aggregate,
        resamples: 1,
        ..Options::default()
    };
    let (model, certificate) = certify(&table, &groups, &items, "question", &options)?;
    let Some(threshold) = certificate.certified_key() else { return Ok(None) };
    let (mut bad, mut good) = ((0, 0), (0, 0));
    let (mut shares, mut with_bad) = (0.0, 0);
    for question in checked {
        let (mut own, mut n) = (0, 0);
        for &row in &of_question[question] {
            let accepted = u64::from(accepts(&joined.table, &model, row, threshold));
            if joined.table.cases()[row].good {
                good = (good.0 + accepted, good.1 + 1);
            } else {
                own += accepted;
                n += 1;
            }
        }
        bad = (bad.0 + own, bad.1 + n);
        if n > 0 {
            shares += own as f64 / n as f64;
            with_bad += 1;
        }
    }
    Ok(Some(Drawn {
        false_positive_rate: bad.0 as f64 / bad.1 as f64,
        true_positive_rate: good.0 as f64 / good.1 as f64,
        by_question: shares / f64::from(with_bad),
        bad_questions: certificate.n_bad,
    }))
}

fn accepts(table: &Table, model: &PanelModel, row: usize, threshold: Key) -> bool {
    let votes: Vec<Option<f64>> = table.judges.iter().map(|judge| judge.scores[row]).collect();
    model.key(&votes, Missing::LeftOut).is_some_and(|key| key >= threshold)
}
