//! `venire estimate`: the true pass rate of data of which some is labelled.

use clap::Args;

use super::Global;
use super::exit::Exit;
use super::figures::{percent, share};
use super::joined::JoinArgs;
use super::printer::{Printer, plural, table};
use crate::calibration::Accept;
use crate::calibration::estimate::{Beside, EstimateOptions, RateEstimate, estimate};
use crate::calibration::figure::Measured;
use crate::stats::bootstrap::Resampling;

/// Estimate how many of all judged cases are truly good, from labels of some
///
/// Example: `venire estimate --run latest --labels some.csv --positive "=good"`
#[derive(Debug, Args)]
pub(super) struct EstimateArgs {
    #[command(flatten)]
    join: JoinArgs,
    /// What a graded score must reach, for the methods beside; fitted if not given
    #[arg(long, value_name = "RULE")]
    accept: Option<Accept>,
    /// Least votes for a verdict of several judges; more than half if not given
    #[arg(long, value_name = "N")]
    quorum: Option<usize>,
    /// A rate of its own for each value of this field of the cases; needs `--items`
    #[arg(long, value_name = "FIELD")]
    slice: Option<String>,
    /// Numbers of further labels to look ahead to
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [50, 100, 200])]
    more: Vec<u64>,
    /// Nominal coverage of the intervals
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    level: f64,
    /// Exit with 1 unless the whole interval of the rate is at least this
    #[arg(long, value_name = "RATE", value_parser = super::panel::unit)]
    fail_under: Option<f64>,
    /// Seed of the resampling, where cases come in groups
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &EstimateArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    anyhow::ensure!(args.join.runs.len() < 2, "one run is estimated from: `--run` is named twice");
    let joined = args.join.join(global, None, true)?;
    for note in &joined.notes {
        printer.say(note);
    }
    let of_field = |field: &String| args.join.slices(&joined, field, global);
    let slices = args.slice.as_ref().map(of_field).transpose()?;
    let options = EstimateOptions {
        accept: args.accept,
        quorum: args.quorum,
        level: args.level,
        more: args.more.clone(),
        resampling: Resampling { resamples: 1000, seed: args.seed, level: args.level },
    };
    let found = estimate(&joined.table, &joined.groups, slices.as_ref(), &options)?;
    for warning in &found.warnings {
        printer.warn(warning);
    }
    if args.json {
        printer.json(&found.to_json())?;
    } else {
        show(&found, printer);
    }
    Ok(match (args.fail_under, found.rate.value()) {
        (None, _) => Exit::Done,
        (Some(_), None) => Exit::Inconclusive,
        (Some(least), Some(rate)) if rate.lower >= least => Exit::Done,
        (Some(least), Some(rate)) => {
            let how = if rate.upper < least { "is broken" } else { "is not shown" };
            printer.warn(&format!(
                "the rate of good cases is {}: at least {} {how}",
                share(&found.rate),
                percent(least)
            ));
            Exit::NotAccepted
        }
    })
}

fn show(found: &RateEstimate, printer: &Printer) {
    let accepted = match found.accepted.value() {
        Some(own) => format!("; {} accepts {} of them", found.by, percent(own.estimate)),
        None => String::new(),
    };
    printer.result(&format!(
        "About {} of the {} judged cases are truly good by `{}`{accepted}.",
        share(&found.rate),
        found.judged,
        found.positive,
    ));
    printer.result(&format!(
        "It stands on {}; {} have none.",
        plural(found.labelled, "labelled case", "labelled cases"),
        found.unlabelled
    ));
    printer.result("");
    printer.result(&cells(found));
    printer.result("");
    printer.result(&methods(found));
    if !found.outlook.is_empty() {
        printer.result("");
        printer.result(&outlook(found));
    }
    if !found.groups.is_empty() {
        printer.result("");
        let rows = found
            .groups
            .iter()
            .map(|own| {
                vec![
                    own.name.clone(),
                    own.judged.to_string(),
                    own.labelled.to_string(),
                    share(&own.rate),
                ]
            })
            .collect();
        printer.result(&table(
            &["group", "judged", "labelled", "rate of good cases"],
            rows,
            &[1, 2, 3],
        ));
    }
}

fn cells(found: &RateEstimate) -> String {
    let rows = found
        .cells
        .iter()
        .filter(|cell| cell.judged > 0)
        .map(|cell| {
            vec![
                cell.name.clone(),
                cell.judged.to_string(),
                cell.labelled.to_string(),
                cell.good.to_string(),
            ]
        })
        .collect();
    let header = [&format!("what {} says", found.by), "judged", "labelled", "good of these"];
    table(&header, rows, &[1, 2, 3])
}

fn methods(found: &RateEstimate) -> String {
    let beside =
        |name: &str, own: &Beside| vec![name.to_owned(), share(&own.rate), own.note.clone()];
    let rows = vec![
        vec![
            "post-stratified".to_owned(),
            share(&found.rate),
            "needs labels that are drawn at random inside each row above".to_owned(),
        ],
        vec![
            "labels only".to_owned(),
            share(&found.labels_only),
            "needs labels that are drawn at random from all cases".to_owned(),
        ],
        beside("PPI++", &found.ppi_plus_plus),
        beside("Rogan-Gladen", &found.rogan_gladen),
        beside("Rogan-Gladen, Lee et al.", &found.lee),
    ];
    table(&["method", "rate of good cases", ""], rows, &[1])
}

fn outlook(found: &RateEstimate) -> String {
    let width = |own: &Measured| own.value().map_or("undefined".to_owned(), |own| percent(*own));
    let now =
        found.rate.value().map_or("undefined".to_owned(), |own| percent(own.upper - own.lower));
    let mut rows = vec![vec!["0".to_owned(), now.clone(), now, String::new()]];
    for own in &found.outlook {
        let mut largest: Vec<(&String, &u64)> = own.cells.iter().collect();
        largest.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let mut spread: Vec<String> =
            largest.iter().take(3).map(|(name, n)| format!("{n} of `{name}`")).collect();
        let rest: u64 = largest.iter().skip(3).map(|(_, n)| **n).sum();
        if rest > 0 {
            spread.push(format!("{rest} of the others"));
        }
        rows.push(vec![
            own.labels.to_string(),
            width(&own.width_random),
            width(&own.width_allocated),
            spread.join(", "),
        ]);
    }
    table(
        &["further labels", "width if at random", "width if so spread", "spread"],
        rows,
        &[0, 1, 2],
    )
}
