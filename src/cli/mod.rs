//! The command line: one file a verb, no logic that the library lacks.
//!
//! Data goes to stdout, words to stderr. Every verb ends in an [`Exit`].

mod answer;
mod bench;
mod bench_report;
mod cache;
mod calibrate;
mod calibrate_loops;
mod calibrate_report;
mod check;
mod compare;
mod completions;
mod describe;
mod drift;
mod env_file;
mod estimate;
mod exit;
mod export;
mod figures;
mod gate;
mod hook;
mod hook_install;
mod hook_status;
mod import;
mod init;
mod joined;
mod label;
mod label_terminal;
mod list;
mod loop_;
mod loop_report;
mod loop_tasks;
#[cfg(feature = "mcp")]
mod mcp;
mod panel;
mod printer;
mod progress;
mod replay;
mod report;
mod review;
mod run;
mod run_report;
mod schema;
mod score;
mod select;
#[cfg(feature = "server")]
mod serve;
mod show;
mod sides;
mod stop;
mod summary;
mod targets;
mod truth;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use self::exit::Exit;
use self::printer::Printer;
use crate::store;

/// Seat a panel of independent judges, let the median of their votes decide, and know how
/// often that decision is wrong.
#[derive(Debug, Parser)]
#[command(name = "venire", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: Global,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done, accepted, within limits
  1    judged, and not accepted or over a limit
  2    usage, configuration or input error; nothing was judged
  3    inconclusive: no quorum, too many unscored, no cases, outage, budget, profile
       mismatch, or a result that could not be written
  4    waiting for a person
  130  interrupted
  141  whoever read standard output went away";

/// What every verb takes.
#[derive(Clone, Debug, Args)]
struct Global {
    /// Where runs, replies and verdicts are kept
    #[arg(long, global = true, env = "VENIRE_STORE", default_value = store::DEFAULT_PATH)]
    store: PathBuf,
    /// A file of NAME=value lines with API keys; never overrides the environment
    #[arg(long, global = true, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// No progress and no notes on stderr: warnings, errors and the result alone
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more; twice for every request
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Init(init::InitArgs),
    Score(score::ScoreArgs),
    Gate(gate::GateArgs),
    Hook(Box<hook::HookArgs>),
    Run(run::RunArgs),
    Loop(loop_::LoopArgs),
    Replay(replay::ReplayArgs),
    Review(review::ReviewArgs),
    Calibrate(Box<calibrate::CalibrateArgs>),
    Show(show::ShowArgs),
    Bench(Box<bench::BenchArgs>),
    Estimate(Box<estimate::EstimateArgs>),
    Drift(Box<drift::DriftArgs>),
    Compare(Box<compare::CompareArgs>),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Report(report::ReportArgs),
    #[cfg(feature = "mcp")]
    Mcp(Box<mcp::McpArgs>),
    #[cfg(feature = "server")]
    Serve(Box<serve::ServeArgs>),
    Label(Box<label::LabelArgs>),
    Check(check::CheckArgs),
    List(list::ListArgs),
    Schema(schema::SchemaArgs),
    Cache(cache::CacheArgs),
    Completions(completions::CompletionsArgs),
}

/// Runs the program: what `main` calls.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(asked) => return explained(&asked).into(),
    };
    if let Verb::Hook(args) = &cli.verb
        && args.is_event()
    {
        start_logging("off");
        return hook::event(args, &cli.global);
    }
    let printer = Printer::new(cli.global.quiet);
    match dispatch(&cli, &printer) {
        Ok(exit) => ended(printer, exit).into(),
        Err(error) => {
            printer.error(&error);
            exit::of_error(&error).into()
        }
    }
}

/// Prints the help, the version or the usage error that parsing ended in.
fn explained(asked: &clap::Error) -> Exit {
    let printer = Printer::new(false);
    let exit = match asked.use_stderr() {
        // To a host 2 means that its agent has to go on, for ever.
        true if hook::is_asked(std::env::args_os()) => Exit::Inconclusive,
        true => Exit::Usage,
        false => Exit::Done,
    };
    if let Err(error) = asked.print()
        && exit == Exit::Done
    {
        printer.failed(error);
    }
    ended(printer, exit)
}

/// How it ends that would end with `exit`, once all that was printed is written.
fn ended(printer: Printer, exit: Exit) -> Exit {
    printer.end(exit).unwrap_or_else(|error| {
        printer.error(&error);
        Exit::Inconclusive
    })
}

fn dispatch(cli: &Cli, printer: &Printer) -> anyhow::Result<Exit> {
    start_logging(match cli.global.verbose {
        0 => "warn",
        1 => "venire=info,warn",
        _ => "venire=debug,warn",
    });
    for warning in env_file::read(&cli.global)? {
        printer.warn(&warning);
    }
    let global = &cli.global;
    match &cli.verb {
        Verb::Init(args) => init::run(args, printer),
        Verb::Score(args) => runtime()?.block_on(score::run(args, global, printer)),
        Verb::Gate(args) => runtime()?.block_on(gate::run(args, global, printer)),
        Verb::Hook(args) => hook::run(args, global, printer),
        Verb::Run(args) => runtime()?.block_on(run::run(args, global, printer)),
        Verb::Loop(args) => runtime()?.block_on(loop_::run(args, global, printer)),
        Verb::Replay(args) => replay::run(args, printer),
        Verb::Review(args) => review::run(args, global, printer),
        Verb::Calibrate(args) => calibrate::run(args, global, printer),
        Verb::Show(args) => show::run(args, global, printer),
        Verb::Bench(args) => bench::run(args, global, printer),
        Verb::Estimate(args) => estimate::run(args, global, printer),
        Verb::Drift(args) => drift::run(args, global, printer),
        Verb::Compare(args) => compare::run(args, global, printer),
        Verb::Export(args) => export::run(args, global, printer),
        Verb::Import(args) => import::run(args, printer),
        Verb::Report(args) => report::run(args, global, printer),
        #[cfg(feature = "mcp")]
        Verb::Mcp(args) => mcp::run(args, global, printer),
        #[cfg(feature = "server")]
        Verb::Serve(args) => runtime()?.block_on(serve::run(args, global, printer)),
        Verb::Label(args) => label::run(args, global, printer),
        Verb::Check(args) => runtime()?.block_on(check::run(args, printer)),
        Verb::List(args) => list::run(args, global, printer),
        Verb::Schema(args) => schema::run(args, printer),
        Verb::Cache(args) => cache::run(args, global, printer),
        Verb::Completions(args) => completions::run(args, printer),
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

fn start_logging(level: &str) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("VENIRE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        // As words go: in colour on a terminal alone, and not under `NO_COLOR`.
        .with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
        // A log that nobody can read, as after a hangup, is no fault.
        .log_internal_errors(false)
        .without_time()
        .init();
}
