//! `venire loop`: an agent, its judges, and an honest end.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;

use super::Global;
use super::answer::text_or_file;
use super::exit::{Exit, LoopUnwritten};
use super::loop_report;
use super::loop_tasks;
use super::panel::ProfileArgs;
use super::printer::Printer;
use super::review;
use super::run::new_id;
use super::stop::Stop;
use super::targets::Targets;
use crate::control::driver::{self, LoopError, Notice, Options, Question, Watcher};
use crate::control::result::Report;
use crate::control::setup::{Setup, SetupError};
use crate::control::spec::folder;
use crate::control::{self, Answer, Class, LoopSpec, Starts};
use crate::provider::{Client, NoReplies, ReplyStore};
use crate::store::Store;

/// Let an agent improve an output until the panel accepts it, or it is no use going on
///
/// Example: `venire loop -c loop.toml --task @task.txt`
#[derive(Debug, Args)]
pub(super) struct LoopArgs {
    /// The loop: a TOML, YAML or JSON file; `loop.toml` by default, with `--resume` the run's
    /// own
    #[arg(short, long, value_name = "LOOP")]
    config: Option<PathBuf>,
    /// What the agent is asked, instead of the file's own: text, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE")]
    task: Option<String>,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Print the outcome as one JSON object
    #[arg(long)]
    json: bool,
    /// Go on with a run that was cut off or waits: its id, or the newest when none is given
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "latest")]
    resume: Option<String>,
    /// With `--resume`: the answer to what the run asks
    #[arg(long, value_name = "accept|reject[=WHY]|continue[=NOTE]|edit=TEXT|@FILE|stop", requires = "resume", value_parser = review::answer)]
    answer: Option<Answer>,
    /// Write the best output to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Run one loop for each row of a JSON Lines file with the key `task`, and print metrics;
    /// given again, it goes on where it was
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "resume", "output"])]
    tasks: Option<PathBuf>,
    /// With `--tasks`: what the figures over all loops must reach; with `=FILE` another list than
    /// the program's own. Exit code 1 where an interval excludes a target
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, requires = "tasks")]
    targets: Option<Option<PathBuf>>,
    /// With `--tasks`: loops at a time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrency: u32,
}

/// Whether the best output can be written to a file, before anything is paid for.
fn writable(output: &Path) -> anyhow::Result<()> {
    super::export::not_read(output)?;
    let failed = || format!("`-o {}` can't be written", output.display());
    anyhow::ensure!(!output.is_dir(), "`-o {}` is a folder: name a file", output.display());
    tempfile::NamedTempFile::new_in(folder(output)).map(drop).with_context(failed)
}

pub(super) async fn run(
    args: &LoopArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    // A run goes on with what it began with, wherever that came from.
    let beginning =
        args.resume.as_ref().and_then(|run| control::log::beginning_of(&loops(global), run));
    let config = args
        .config
        .clone()
        .or_else(|| beginning.as_ref()?.file.clone())
        .unwrap_or_else(|| PathBuf::from("loop.toml"));
    let mut spec = LoopSpec::read(&config)?;
    if let Some(panel) = &mut spec.panel {
        args.profile.put(args.profile.absolute()?, panel);
        args.profile.check(panel.profile.is_some())?;
    }
    let mut task = args.task.as_deref().map(text_or_file).transpose()?;
    if task.is_none() {
        task = beginning.map(|beginning| beginning.task);
    }
    let base = folder(&config);
    if let Some(tasks) = &args.tasks {
        let many = loop_tasks::Many {
            spec: &spec,
            base: &base,
            loops: loops(global),
            file: std::path::absolute(&config).ok(),
            jobs: args.max_concurrency as usize,
            json: args.json,
            targets: Targets::of(args.targets.as_ref())?,
        };
        return many.run(tasks, global, printer).await;
    }
    let failed = || format!("failed to set up the loop `{}`", config.display());
    let client = Client::default();
    let ready = Ready::new(&spec, task, &base, &client).with_context(failed)?;
    if let Some(output) = &args.output {
        writable(output)?;
    }
    let setup = ready.first();
    printer.say(&loop_report::limits(setup));
    let replies = replies(ready.with_models(), global)?;
    let stop = Stop::listen(*printer, None);
    let options = Options {
        loops: loops(global),
        run: new_id(),
        file: std::path::absolute(&config).ok(),
        resume: args.resume.clone(),
        answer: args.answer.clone(),
        cancel: stop.stop.clone(),
        replies,
    };
    let mut watcher = Terminal { printer: *printer, ask: spec.human.terminal, label: None };
    let report = ready.run(&options, &mut watcher).await;
    stop.judged();
    let report = report?;
    if args.json {
        printer.json(&report)?;
    } else {
        printer.result(&loop_report::text(&report));
    }
    if let (Some(file), Some(best)) = (&args.output, &report.best) {
        std::fs::write(file, &best.output)
            .with_context(|| format!("failed to write `{}`", file.display()))
            .map_err(|error| error.context(LoopUnwritten))?;
    }
    if report.outcome == Class::Interrupted {
        printer.say(&format!("interrupted: `venire loop --resume {}` goes on", report.run));
    }
    if report.outcome == Class::Waiting {
        printer.say(&format!(
            "see it with `venire review {0}`; go on with: venire loop --resume {0} --answer accept|reject[=WHY]|continue[=NOTE]|edit=@FILE|stop",
            report.run
        ));
    }
    Ok(exit(report.outcome))
}

/// What is run: one loop, or several starts of it.
pub(super) enum Ready {
    One(Box<Setup>),
    Several(Starts),
}

impl Ready {
    /// What a file says, with this task.
    pub(super) fn new(
        spec: &LoopSpec,
        task: Option<String>,
        base: &Path,
        client: &Client,
    ) -> Result<Self, SetupError> {
        match &spec.starts {
            None => Ok(Self::One(Box::new(Setup::new(spec, task, base, client)?))),
            Some(_) => Ok(Self::Several(Starts::new(spec, task.as_deref(), base, client)?)),
        }
    }

    pub(super) async fn run(
        &self,
        options: &Options,
        watcher: &mut dyn Watcher,
    ) -> Result<Report, LoopError> {
        match self {
            Self::One(setup) => driver::run(setup, options, watcher).await,
            Self::Several(starts) => control::starts::run(starts, options, watcher).await,
        }
    }

    /// A hash of all that makes a run of it that run.
    pub(super) fn config_hash(&self) -> &str {
        match self {
            Self::One(setup) => &setup.config_hash,
            Self::Several(starts) => starts.config_hash(),
        }
    }

    pub(super) fn first(&self) -> &Setup {
        match self {
            Self::One(setup) => setup,
            Self::Several(starts) => starts.first(),
        }
    }

    /// One that asks a model, where one does.
    pub(super) fn with_models(&self) -> &Setup {
        match self {
            Self::One(setup) => setup,
            Self::Several(starts) => {
                let asking = starts.setups().iter().find(|setup| setup.uses_models());
                asking.unwrap_or_else(|| starts.first())
            }
        }
    }
}

/// Where replies of model servers are kept; nowhere when no model is asked.
pub(super) fn replies(setup: &Setup, global: &Global) -> anyhow::Result<Arc<dyn ReplyStore>> {
    if !setup.uses_models() {
        return Ok(Arc::new(NoReplies));
    }
    let store = Store::create(&global.store)?;
    let writer = store.writer()?;
    Ok(Arc::new(store.replies(&writer, None)?))
}

/// Where runs are kept: beside the store.
pub(super) fn loops(global: &Global) -> PathBuf {
    global.store.parent().unwrap_or(Path::new("")).join("loops")
}

fn exit(class: Class) -> Exit {
    match class {
        Class::Accepted => Exit::Done,
        Class::NotAccepted => Exit::NotAccepted,
        Class::Undecided | Class::Failed => Exit::Inconclusive,
        Class::Waiting => Exit::Waiting,
        Class::Interrupted => Exit::Interrupted,
    }
}

/// A live line a generation, and questions where somebody sits.
struct Terminal {
    printer: Printer,
    ask: bool,
    label: Option<f64>,
}

impl Watcher for Terminal {
    fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Began { run, generations: 0 } => self.printer.say(&format!("run {run}")),
            Notice::Began { run, generations } => {
                self.printer.say(&format!("run {run}, going on after generation {generations}"));
            }
            Notice::Warning(text) => self.printer.warn(text),
            Notice::AgentFailed { call, detail } => {
                self.printer.warn(&format!("call {call} of the agent: {detail}"));
            }
            Notice::Start { notice: Notice::Warning(_) | Notice::Began { .. }, .. } => {}
            Notice::Start { start, notice: judged @ Notice::Judged { .. } } => {
                self.printer.say(&format!("start {start}, {}", loop_report::line(judged)));
            }
            Notice::Start { start, notice: Notice::AgentFailed { call, detail } } => {
                self.printer.warn(&format!("start {start}, call {call} of the agent: {detail}"));
            }
            Notice::Start { .. } => {}
            judged @ Notice::Judged { .. } => self.printer.say(&loop_report::line(judged)),
        }
    }

    fn ask(&mut self, question: &Question<'_>) -> Option<Answer> {
        if !self.ask || !std::io::stdin().is_terminal() {
            return None;
        }
        self.printer.say(&format!("\n{}", review::shown(question)));
        let (answer, label) = review::ask(&self.printer);
        self.label = label;
        answer
    }

    fn label(&mut self) -> Option<f64> {
        self.label.take()
    }
}
