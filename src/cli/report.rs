//! `venire report`: a page on a calibration or a stored run.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::Global;
use super::exit::Exit;
use super::export::{RowArgs, write};
use super::printer::Printer;
use super::select::Chosen;
use crate::report::{self, calibration, loops};
use crate::store::Store;

/// Write a report on a calibration, a stored run, or recorded loops
///
/// Example: `venire calibrate --judgements verdicts.csv --labels labels.csv --positive ">=4" --json > calibration.json && venire report calibration.json -o report.html`
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// What `calibrate --json` printed, as a file ending in .json; a run: its id, the beginning
    /// of it, or `latest`; or event logs of loops ending in .jsonl, or folders with them
    #[arg(value_name = "FILE|RUN", required = true)]
    source: Vec<String>,
    /// Where to: of a calibration .html, .md or .csv, of a run .html, .md or .xml (JUnit), of
    /// loops .html. May be repeated
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
}

pub(super) fn run(args: &ReportArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let found: Vec<_> = args.source.iter().map(|own| loops::logs(Path::new(own))).collect();
    if let [first, rest @ ..] = found.as_slice()
        && (first.is_some() || rest.iter().any(Option::is_some))
    {
        return of_loops(args, found, printer);
    }
    let [source] = args.source.as_slice() else {
        anyhow::bail!(
            "one run or calibration is reported on at a time: several names are for logs of loops"
        );
    };
    let file = Path::new(source);
    let is_file = file.extension().is_some_and(|own| own.eq_ignore_ascii_case("json"));
    if is_file {
        let failed = || format!("failed to read `{}`", file.display());
        let text = std::fs::read_to_string(file).with_context(failed)?;
        let json: Value = serde_json::from_str(&text).with_context(failed)?;
        for output in &args.output {
            let Some(format) = calibration::Format::from_path(output) else {
                anyhow::bail!(
                    "`-o {}` is no report on a calibration: expected .html, .md or .csv",
                    output.display()
                );
            };
            of_calibration(format, output, &json, printer)
                .with_context(|| format!("failed to report on `{}`", file.display()))?;
        }
        return Ok(Exit::Done);
    }
    let store = Store::open(&global.store)?;
    let run = store.run(source)?;
    for output in &args.output {
        if report::Format::from_path(output).is_none() {
            anyhow::bail!(
                "`-o {}` is no report on a run: expected .html, .md or .xml; `venire export` writes rows",
                output.display()
            );
        }
        write(&store, &run, output, &RowArgs::default(), &Chosen::default(), printer)?;
    }
    Ok(Exit::Done)
}

/// Writes the page on loops.
fn of_loops(
    args: &ReportArgs,
    found: Vec<Option<Vec<PathBuf>>>,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let mut logs: Vec<PathBuf> = Vec::new();
    for (source, found) in args.source.iter().zip(found) {
        let Some(found) = found else {
            anyhow::bail!("`{source}` is neither an event log of a loop nor a folder with some");
        };
        logs.extend(found);
    }
    logs.iter().for_each(|log| crate::inputs::note(log));
    for output in &args.output {
        let is_page = output
            .extension()
            .is_some_and(|own| own.eq_ignore_ascii_case("html") || own.eq_ignore_ascii_case("htm"));
        anyhow::ensure!(is_page, "`-o {}` is no report on loops: expected .html", output.display());
        super::export::not_read(output)?;
        let shown = loops::write_file(&logs, output)
            .with_context(|| format!("failed to write the report `{}`", output.display()))?;
        if shown < logs.len() {
            printer.warn(&format!("{} of {} loops are on the page", shown, logs.len()));
        }
        printer.say(&format!("wrote {}", output.display()));
    }
    Ok(Exit::Done)
}

/// Writes the report on a calibration's JSON.
pub(super) fn of_calibration(
    format: calibration::Format,
    output: &Path,
    json: &Value,
    printer: &Printer,
) -> anyhow::Result<()> {
    calibration::write_file(format, output, json)
        .with_context(|| format!("failed to write the report `{}`", output.display()))?;
    printer.say(&format!("wrote {}", output.display()));
    Ok(())
}
