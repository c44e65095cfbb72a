//! `venire check`: whether a panel and a data set, or a loop, can be used, without judging
//! anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::loop_report;
use super::panel::{Keys, PanelArgs, Seated, warn};
use super::printer::{Printer, plain, plural, table};
use super::run::DataArgs;
use crate::calibration::InForce;
use crate::config::read_file;
use crate::control::lint::{Host, lint};
use crate::control::spec::folder;
use crate::control::{LoopSpec, Setup, Starts};
use crate::dataset::{Scan, Source};
use crate::panel::Panel;
use crate::provider::{CallContext, Client};

/// Check a panel file, and a data set with it; or a loop file
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
    /// Of a loop file: the program that it is to be the gate of
    #[arg(long, value_enum, value_name = "PROGRAM")]
    host: Option<HostArg>,
}

/// Programs whose gate a loop may be, by the names that `--host` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HostArg {
    /// Stops after 8 refusals in a row, or what `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP` says
    ClaudeCode,
    /// Has no limit of its own
    Codex,
    /// Has no limit of its own
    GeminiCli,
}

impl HostArg {
    fn host(self) -> Host {
        match self {
            Self::ClaudeCode => {
                let own = std::env::var("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").ok();
                let cap = own.and_then(|cap| cap.parse().ok()).unwrap_or(8);
                // 0 takes the limit away.
                Host { name: "claude-code", cap: (cap > 0).then_some(cap) }
            }
            Self::Codex => Host { name: "codex", cap: None },
            Self::GeminiCli => Host { name: "gemini-cli", cap: None },
        }
    }
}

pub(super) async fn run(args: &CheckArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if is_loop(&args.panel.config) {
        return check_loop(args, printer).await;
    }
    if args.host.is_some() {
        anyhow::bail!("`--host` is for loop files, and `{}` is none", args.panel.config.display());
    }
    // Without a panel the data can still be looked at, and what is wrong with it comes first.
    if let Some(data) = args.data.as_ref().filter(|_| !args.panel.config.is_file()) {
        crate::dataset::scan(&Source::open(data)?, &args.reading.options(true)?)?;
    }
    let keys = Keys::default();
    let client = if args.ping { Client::default() } else { keys.client() };
    let Seated { spec, panel } = args.panel.seat(client)?;
    keys.warn(printer);
    printer.result(&seats(&panel));
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
    if args.ping && !ping(&panel, printer).await {
        exit = Exit::Inconclusive;
    }
    Ok(exit)
}

/// Asks each model server of a panel for one token; whether all have answered.
async fn ping(panel: &Panel, printer: &Printer) -> bool {
    let mut all = true;
    let reserve = panel.reserve().into_iter().flat_map(|reserve| &reserve.seats);
    for seat in panel.seats.iter().chain(reserve) {
        let context = CallContext::standalone(Duration::from_secs(30));
        let Some(ping) = seat.judge.ping(&context) else { continue };
        match ping.await {
            Ok(answer) => printer.result(&format!("`{}` answers: {answer}", seat.name)),
            Err(error) => {
                let hint = error.hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                printer.warn(&format!("`{}` does not answer: {}{hint}", seat.name, error.message));
                all = false;
            }
        }
    }
    all
}

/// The judges as a table, those of the reserve last.
fn seats(panel: &Panel) -> String {
    let reserve = panel.reserve().into_iter().flat_map(|reserve| &reserve.seats);
    let all = panel.seats.iter().map(|s| (s, false)).chain(reserve.map(|s| (s, true)));
    let rows = all
        .map(|(seat, reserve)| {
            let mut marks = Vec::new();
            for (mark, is) in [
                ("reserve", reserve),
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
    table(&["judge", "kind", "model", "fingerprint", ""], rows, &[])
}

/// Whether a file is a loop's and no panel's. One that can't be read is for the panel's reader
/// to complain of.
fn is_loop(path: &Path) -> bool {
    let Ok(file) = read_file(path) else { return false };
    let has = |key: &str| file.value.get(key).is_some();
    !has("judge") && ["agent", "exit", "budget", "task", "panel"].into_iter().any(has)
}

/// Builds a loop without running it, and tells what is worth a second look.
async fn check_loop(args: &CheckArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let path = &args.panel.config;
    if let Some(data) = &args.data {
        anyhow::bail!(
            "`{}` is a loop file, and has no use for the data set `{}`",
            path.display(),
            data.display()
        );
    }
    let mut spec = LoopSpec::read(path)?;
    if let Some(panel) = &mut spec.panel {
        args.panel.profile.put(args.panel.profile.absolute()?, panel);
        args.panel.profile.check(panel.profile.is_some())?;
    }
    let keys = Keys::default();
    let client = if args.ping { Client::default() } else { keys.client() };
    let (base, failed) =
        (folder(path), || format!("failed to set up the loop `{}`", path.display()));
    // A file may leave its task to the command line.
    let task = spec.task.is_none().then(|| "the task of the command line".to_owned());
    let starts = match &spec.starts {
        None => None,
        Some(_) => Some(Starts::new(&spec, task.as_deref(), &base, &client).with_context(failed)?),
    };
    let setup = Setup::new(&spec, task, &base, &client).with_context(failed)?;
    keys.warn(printer);
    printer.result(&seats(&setup.panel));
    printer.result(&format!("\n{}", loop_report::limits(&setup)));
    if let Some(starts) = &starts {
        printer.result(&format!("{} starts", starts.setups().len()));
    }
    for doubt in setup.warnings.iter().chain(&lint(&spec, &setup, args.host.map(HostArg::host))) {
        printer.warn(doubt);
    }
    if args.ping && !ping(&setup.panel, printer).await {
        return Ok(Exit::Inconclusive);
    }
    Ok(Exit::Done)
}

/// Which fields a data set has, which of the usual ones not, and what became metadata.
fn understood(scan: &Scan) -> String {
    if scan.count == 0 {
        let names: Vec<String> =
            scan.columns.iter().map(|name| format!("`{}`", plain(name))).collect();
        let columns = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return format!("columns: {columns}");
    }
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
