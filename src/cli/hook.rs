//! `venire hook`: the answer to a coding agent's hook, its settings, and what was really found.
//!
//! For an event nothing here may end in exit code 1 or 2 by accident: the first reads as a
//! success, the second as "go on" without an end. Mistakes on the command line end in 3.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use tokio::time::Instant;

use super::Global;
use super::exit::Exit;
use super::hook_install::InstallArgs;
use super::hook_status::StatusArgs;
use super::panel::PanelArgs;
use super::printer::Printer;
use super::stop::Stop;
use crate::judge::process::{Period, end_all};
use crate::panel::Panel;
use crate::provider::{CallContext, Client, NoReplies, ReplyStore};
use crate::serve::hook::{
    Bench, Event, EventKind, Hook, Host, Limits, OnLimit, OnUndecided, OutputFrom, Reply, Seating,
    Workspace,
};
use crate::store::Store;

/// Decide for a coding agent whether it may stop: the answer to its host's hook
///
/// The host's JSON comes on stdin. `venire hook install HOST` writes the host's settings.
///
/// Example: `venire hook install claude-code -c panel.toml`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct HookArgs {
    #[command(subcommand)]
    verb: Option<HookVerb>,
    /// Who asks
    #[arg(value_enum, required = true)]
    host: Option<HostArg>,
    #[command(flatten)]
    event: EventArgs,
}

#[derive(Debug, Subcommand)]
enum HookVerb {
    Install(Box<InstallArgs>),
    Status(StatusArgs),
}

/// The hosts, as they are named on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum HostArg {
    /// Claude Code: Stop, SubagentStop, PostToolUse, UserPromptSubmit
    ClaudeCode,
    /// Codex: Stop, UserPromptSubmit
    Codex,
    /// Gemini CLI: AfterAgent, BeforeAgent
    GeminiCli,
    /// OpenHands: Stop, UserPromptSubmit
    #[value(name = "openhands")]
    OpenHands,
    /// Cursor: stop, beforeSubmitPrompt
    Cursor,
    /// Any other: exit code 2 and text on stderr to go on
    Generic,
}

impl HostArg {
    pub(super) fn host(self) -> Host {
        match self {
            Self::ClaudeCode => Host::ClaudeCode,
            Self::Codex => Host::Codex,
            Self::GeminiCli => Host::GeminiCli,
            Self::OpenHands => Host::OpenHands,
            Self::Cursor => Host::Cursor,
            Self::Generic => Host::Generic,
        }
    }
}

/// What an event is answered by. Relative paths start from the workspace's top folder.
#[derive(Clone, Debug, Args)]
pub(super) struct EventArgs {
    #[command(flatten)]
    pub(super) panel: PanelArgs,
    /// The task, for the judges: text, or `@FILE`; else what the person asked for last
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(super) task: Option<String>,
    /// What of the agent's work is judged
    #[arg(long, value_enum, default_value_t = JudgedArg::Auto)]
    pub(super) judged: JudgedArg,
    /// How often a turn is made to go on at most
    #[arg(long, value_name = "N", default_value_t = Limits::default().blocks)]
    pub(super) max_blocks: u32,
    /// How often a session is made to go on at most, over all its turns
    #[arg(long, value_name = "N", default_value_t = Limits::default().session_blocks)]
    pub(super) max_session_blocks: u32,
    /// How often in a row a turn is made to go on without any change
    #[arg(long, value_name = "N", default_value_t = Limits::default().unchanged)]
    pub(super) max_unchanged: u32,
    /// How long a turn is made to go on at most
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(super) time_limit: Period,
    /// US dollars for the judges of a session at most
    #[arg(long, value_name = "USD", value_parser = super::run::dollars)]
    pub(super) cost_limit: Option<f64>,
    /// What to do without a decision: no quorum, an outage, a broken panel, no time left
    #[arg(long, value_enum, default_value_t = OnUndecidedArg::Accept)]
    pub(super) on_undecided: OnUndecidedArg,
    /// What to do when a limit is reached and nothing was accepted
    #[arg(long, value_enum, default_value_t = OnLimitArg::End)]
    pub(super) on_limit: OnLimitArg,
    /// How long the host waits for this hook; the answer comes 5 seconds before. The host's own
    /// default when absent; `install` tells the host 10 minutes
    #[arg(long, value_name = "TIME", value_parser = patience)]
    pub(super) host_timeout: Option<Period>,
    /// Judge again what was judged before
    #[arg(long)]
    pub(super) no_cache: bool,
    /// Where ledgers and rulings are kept, instead of `.venire/hooks` in the workspace
    #[arg(long, value_name = "FOLDER")]
    pub(super) state: Option<PathBuf>,
    /// Write what was really found to this file too
    #[arg(long, value_name = "FILE")]
    pub(super) outcome: Option<PathBuf>,
    /// The session's name, for hosts that give none
    #[arg(long, value_name = "NAME")]
    pub(super) session: Option<String>,
}

/// What of an agent's work is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum JudgedArg {
    /// The changes of the workspace where there are some, else the last answer
    Auto,
    /// The changes of the workspace, untracked files included
    Changes,
    /// The agent's last answer
    Answer,
}

/// What is done without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnUndecidedArg {
    /// Let it pass, and say so
    Accept,
    /// As a rejection
    Reject,
    /// Fail: a gate ends with exit code 3, a hook ends the session
    Fail,
}

impl From<OnUndecidedArg> for OnUndecided {
    fn from(argument: OnUndecidedArg) -> Self {
        match argument {
            OnUndecidedArg::Accept => Self::Accept,
            OnUndecidedArg::Reject => Self::Reject,
            OnUndecidedArg::Fail => Self::Fail,
        }
    }
}

/// What is done at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnLimitArg {
    /// End the session, where the host can be told to
    End,
    /// Let the agent stop, and tell the person
    Allow,
}

impl HookArgs {
    /// Whether a host waits for an answer.
    pub(super) fn is_event(&self) -> bool {
        self.verb.is_none()
    }
}

/// Installs, or says how a session ended.
pub(super) fn run(args: &HookArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    match &args.verb {
        Some(HookVerb::Install(install)) => super::hook_install::run(install, global, printer),
        Some(HookVerb::Status(status)) => super::hook_status::run(status, printer),
        None => anyhow::bail!("expected a host"),
    }
}

/// Whether a command line is about an event, also one that can't be understood.
pub(super) fn is_asked(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let mut words = Vec::new();
    let mut arguments = arguments.skip(1);
    while let Some(word) = arguments.next() {
        if word == "--store" || word == "--env-file" {
            arguments.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            words.push(word);
        }
    }
    words.first().is_some_and(|verb| verb == "hook")
        && words.get(1).is_none_or(|word| word != "install" && word != "status")
}

/// Answers an event. Whatever happens, what is printed is an answer.
pub(super) fn event(args: &HookArgs, global: &Global) -> ExitCode {
    let guarded = std::panic::AssertUnwindSafe(|| answer(args, global));
    let reply = std::panic::catch_unwind(guarded).unwrap_or_else(|_| Reply {
        stderr: "venire: NOT JUDGED: a fault of this program".to_owned(),
        ..Reply::default()
    });
    let printer = Printer::new(false);
    if !reply.stdout.is_empty() {
        printer.data(&reply.stdout);
    }
    if !reply.stderr.is_empty() {
        printer.say(&reply.stderr);
    }
    // A host that closed its end is not told either way.
    let _ = printer.end(Exit::Done);
    ExitCode::from(reply.exit_code)
}

fn answer(args: &HookArgs, global: &Global) -> Reply {
    let started_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    let started = Instant::now();
    let host = args.host.map_or(Host::Generic, HostArg::host);
    let limit = args.event.host_timeout.map_or_else(|| host.default_timeout(), Period::get);
    let until = started + inner(limit);
    let mut hook = Hook {
        host,
        limits: args.event.limits(),
        until,
        started_ms,
        state: args.event.state.clone(),
        task: None,
        output: match args.event.judged {
            JudgedArg::Auto => OutputFrom::Auto,
            JudgedArg::Changes => OutputFrom::Changes,
            JudgedArg::Answer => OutputFrom::Answer,
        },
        use_cache: !args.event.no_cache,
        outcome: args.event.outcome.clone(),
        session: args.event.session.clone(),
        fault: None,
    };
    let (payload, mut fault) = match read_payload(until) {
        Ok(payload) => (payload, None),
        Err(error) => (String::new(), Some(error)),
    };
    if let Err(error) = enter(host, &payload) {
        fault.get_or_insert(error);
    }
    // A line that is no entry stops nothing; what a host does with words on stderr is its own.
    if let Err(error) = super::env_file::read(global) {
        fault.get_or_insert(format!("{error:#}"));
    }
    match args.event.task.as_deref().map(super::answer::text_or_file).transpose() {
        Ok(task) => hook.task = task,
        Err(error) => {
            fault.get_or_insert(format!("{error:#}"));
        }
    }
    hook.fault = fault;
    let runtime = match super::runtime() {
        Ok(runtime) => runtime,
        // Without threads there is nothing that could be judged or counted.
        Err(error) => return Reply { stderr: format!("{error:#}"), ..Reply::default() },
    };
    let reply = runtime.block_on(async {
        let stop = Stop::listen(Printer::new(true), None);
        let bench = Seats { args: &args.event, global, stop: &stop };
        let reply = hook.answer(&payload, &bench).await;
        stop.judged();
        reply
    });
    // Threads that still read stdin or wait for a child are not waited for.
    runtime.shutdown_background();
    end_all();
    reply
}

/// How long a host may wait: a second at least, a day at most.
pub(super) fn patience(text: &str) -> Result<Period, String> {
    let period: Period = text.parse()?;
    if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&period.get()) {
        Ok(period)
    } else {
        Err("expected a length of time from 1 second to 1 day".into())
    }
}

/// When the answer has to be there, for a host that waits this long.
fn inner(limit: Duration) -> Duration {
    const MARGIN: Duration = Duration::from_secs(5);
    if limit >= MARGIN * 2 { limit - MARGIN } else { limit / 2 }
}

/// All of stdin. A host that never closes it must not hold the answer up.
fn read_payload(until: Instant) -> Result<String, String> {
    /// Bytes of a payload at most.
    const MOST: u64 = 64 << 20;
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(MOST + 1).read_to_end(&mut bytes).map(|_| bytes);
        // Nobody may be there any more to be told.
        let _ = sender.send(read);
    });
    let left = until.saturating_duration_since(Instant::now());
    match receiver.recv_timeout(left) {
        Ok(Ok(bytes)) if bytes.len() as u64 > MOST => {
            Err(format!("the payload is longer than {MOST} bytes"))
        }
        Ok(Ok(bytes)) => String::from_utf8(bytes).map_err(|_| "the payload is not UTF-8".into()),
        Ok(Err(error)) => Err(format!("failed to read stdin: {error}")),
        Err(_) => Err("stdin did not end in time".into()),
    }
}

/// Goes to the top of the workspace, where relative paths start and `.env` lies.
fn enter(host: Host, payload: &str) -> Result<(), String> {
    let event = Event::read(host, payload).ok();
    if event.as_ref().is_some_and(|event| event.kind == EventKind::Other) {
        return Ok(());
    }
    let here = event.and_then(|event| event.directory).unwrap_or_else(|| PathBuf::from("."));
    // A folder that is not there is the library's to report.
    let Ok(workspace) = Workspace::find(&here) else { return Ok(()) };
    std::env::set_current_dir(workspace.root())
        .map_err(|error| format!("`{}` can't be entered: {error}", workspace.root().display()))
}

impl EventArgs {
    /// The limits.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            blocks: self.max_blocks,
            session_blocks: self.max_session_blocks,
            unchanged: self.max_unchanged,
            turn_ms: u64::try_from(self.time_limit.get().as_millis()).unwrap_or(u64::MAX),
            on_undecided: self.on_undecided.into(),
            on_limit: match self.on_limit {
                OnLimitArg::End => OnLimit::End,
                OnLimitArg::Allow => OnLimit::Allow,
            },
        }
    }
}

/// The panel and the replies of this program.
struct Seats<'a> {
    args: &'a EventArgs,
    global: &'a Global,
    stop: &'a Stop,
}

impl Bench for Seats<'_> {
    fn seat(&self, workspace: &Path, seating: Seating) -> Result<Panel, String> {
        let seated = self
            .args
            .panel
            .seat_with(Client::default(), |spec| seating.put(spec, workspace))
            .map_err(|error| format!("{error:#}"))?;
        if seated.panel.seats.is_empty() {
            return Err("the panel has no deterministic judge".into());
        }
        Ok(seated.panel)
    }

    fn context(&self, panel: &Panel, spent: u64, until: Instant) -> Result<CallContext, String> {
        let uses_models = panel.seats.iter().any(|seat| seat.judge.model().is_some());
        let replies: Arc<dyn ReplyStore> = if uses_models {
            let kept = || -> anyhow::Result<Arc<dyn ReplyStore>> {
                let store = Store::create(&self.global.store)?;
                let writer = store.writer()?;
                let scope = self.args.no_cache.then(super::run::new_id);
                Ok(Arc::new(store.replies(&writer, scope.as_deref())?))
            };
            kept().map_err(|error| format!("{error:#}"))?
        } else {
            Arc::new(NoReplies)
        };
        let left = self.args.cost_limit.map(|usd| (usd - spent as f64 / 1e6).max(0.0));
        let ledger = super::run::ledger(left).map_err(|error| format!("{error:#}"))?;
        let left = until.saturating_duration_since(Instant::now());
        Ok(CallContext {
            replies,
            ledger: Arc::new(ledger),
            cancel: self.stop.stop.clone(),
            ..CallContext::standalone(left)
        })
    }
}
