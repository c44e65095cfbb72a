//! `venire check`: whether a panel and a data set can be used, without judging anything.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::exit::Exit;
use super::panel::{Keys, PanelArgs, Seated, warn};
use super::printer::{Printer, plural, table};
use super::run::DataArgs;
use crate::calibration::InForce;
use crate::provider::{CallContext, Client};

/// Check a panel file, and a data set with it
///
/// Example: `venire check -c panel.toml cases.jsonl --ping`
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    panel: PanelArgs,
    /// A data set to read through
    #[arg(value_name = "DATA")]
    data: Option<PathBuf>,
    #[command(flatten)]
    reading: DataArgs,
    /// Ask each model server for one token
    #[arg(long)]
    ping: bool,
}

pub(super) async fn run(args: &CheckArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let keys = Keys::default();
    let client = if args.ping { Client::default() } else { keys.client() };
    let Seated { spec, panel } = args.panel.seat(client)?;
    keys.warn(printer);
    let rows = panel
        .seats
        .iter()
        .map(|seat| {
            let mut marks = Vec::new();
            for (mark, is) in [
                ("required", seat.required),
                ("accepts alone", seat.accept_alone),
                ("report only", seat.report_only),
                ("inverted", seat.invert),
            ] {
                if is {
                    marks.push(mark.to_owned());
                }
            }
            if seat.samples > 1 {
                marks.push(format!("{} samples", seat.samples));
            }
            vec![
                seat.name.clone(),
                seat.judge.kind().to_owned(),
                seat.judge.model().unwrap_or("-").to_owned(),
                seat.judge.fingerprint().as_str()[..12].to_owned(),
                marks.join(", "),
            ]
        })
        .collect();
    printer.result(&table(&["judge", "kind", "model", "fingerprint", ""], rows, &[]));
    printer.result(&format!(
        "\npanel `{}`: {}, {}, threshold {}, quorum {}",
        panel.name,
        plural(panel.seats.len() as u64, "judge", "judges"),
        spec.aggregate.name(),
        panel.profile().map_or(spec.threshold, InForce::threshold),
        spec.quorum()
    ));
    if let Some(own) = panel.profile() {
        let (profile, bound) = (own.profile(), own.bound());
        let certificate = &profile.certificate;
        let worth = match certificate.certified_key() {
            Some(_) => format!(
                "certified: {} at most {} with confidence {} (from {}), for at most {}",
                bound.mode,
                bound.alpha,
                1.0 - bound.delta,
                super::run_report::bad(own),
                plural(u64::from(profile.binding.generations), "generation", "generations")
            ),
            None => "no certificate".to_owned(),
        };
        printer.result(&format!("profile `{}` ({}): {worth}", profile.name, &own.hash()[..12]));
    }
    warn(&panel, printer);
    let mut exit = Exit::Done;
    if let Some(data) = &args.data {
        let (_, scan) = args.reading.scan(data, &panel, printer)?;
        printer.result(&format!("data `{}`: {}", scan.path, plural(scan.count, "case", "cases")));
        if scan.count == 0 {
            exit = Exit::Inconclusive;
        }
    }
    if args.ping {
        for seat in &panel.seats {
            let context = CallContext::standalone(Duration::from_secs(30));
            let Some(ping) = seat.judge.ping(&context) else { continue };
            match ping.await {
                Ok(answer) => printer.result(&format!("`{}` answers: {answer}", seat.name)),
                Err(error) => {
                    let hint = error.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                    printer
                        .warn(&format!("`{}` does not answer: {}{hint}", seat.name, error.message));
                    exit = Exit::Inconclusive;
                }
            }
        }
    }
    Ok(exit)
}
