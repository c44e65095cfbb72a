//! `venire check`: whether a panel and a data set can be used, without judging anything.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::exit::Exit;
use super::panel::{Keys, PanelArgs, Seated, warn};
use super::printer::{Printer, plain, plural, table};
use super::run::DataArgs;
use crate::calibration::InForce;
use crate::dataset::Scan;
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
        printer.result(&understood(&scan));
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

/// Which fields a data set has, which of the usual ones not, and what became metadata.
fn understood(scan: &Scan) -> String {
    let (mut has, mut lacks) = (Vec::new(), Vec::new());
    let (generated, all) = (scan.generated_ids, scan.count);
    match all - generated.min(all) {
        0 => lacks.push("`id` (each gets a hash of its content)".to_owned()),
        n if n == all => has.push("id".to_owned()),
        n => has.push(format!("id {n} of {all}")),
    }
    for field in ["input", "output", "expected", "context", "baseline", "group", "split"] {
        let usual = matches!(field, "input" | "output" | "expected");
        match scan.fields.get(field).copied().unwrap_or_default() {
            0 if usual => lacks.push(format!("`{field}`")),
            0 => {}
            n if n == all => has.push(field.to_owned()),
            n => has.push(format!("{field} {n} of {all}")),
        }
    }
    let mut text =
        format!("fields: {}", if has.is_empty() { "none".into() } else { has.join(", ") });
    if !lacks.is_empty() {
        text.push_str(&format!(
            "\nmissing: {}: `--map FIELD=COLUMN` names a column",
            lacks.join(", ")
        ));
    }
    if !scan.metadata_columns.is_empty() {
        let names: Vec<String> =
            scan.metadata_columns.iter().map(|name| format!("`{}`", plain(name))).collect();
        text.push_str(&format!("\nmetadata: {}", names.join(", ")));
    }
    text
}
