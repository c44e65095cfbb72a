//! Runs a loop: executes the controller's commands, and writes down everything before
//! anything follows from it.
//!
//! A run that was cut off goes on from its log: the log is folded through the controller, and
//! the last command, whose end is not known, is executed anew.

mod error;
mod fold;
mod generate;
mod judge;
mod people;
mod report;
mod watcher;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::error::LoopError;
pub(super) use self::judge::no_room;
use self::report::describe;
pub use self::watcher::{Notice, Question, Watcher};
use super::decide;
use super::dispute::Dispute;
use super::event::{Answer, Command, Directive, Event, Spent, What};
use super::journal::{Journal, Scoped};
use super::log::{Entry, FORMAT, Log};
use super::outcome::{Outcome, Reason};
use super::result::{Report, RoleUsage};
use super::setup::Setup;
use super::state::State;
use crate::provider::{CallContext, Held, Ledger, LedgerLimits, ReplyStore};
use crate::ruling::{Finding, Ruling};
use crate::verdict::{Usage, Verdict};

/// Earlier outputs that a prompt can mention.
const EARLIER: usize = 20;

/// Findings that are remembered as told, the newest.
const TOLD: usize = 200;

/// How long a command of the policy may run.
const CHECK_TIMEOUT: Duration = Duration::from_secs(120);

const IN_DOUBT: &str =
    "a call with side effects was cut off: resume with `--answer continue` to make it again";

/// Where and how a loop runs.
#[derive(Debug)]
pub struct Options {
    /// The folder of all runs' logs.
    pub loops: PathBuf,
    /// The id of a new run.
    pub run: String,
    /// The loop's file, noted for whoever goes on with the run.
    pub file: Option<PathBuf>,
    /// The run to go on with instead; `latest` is the newest.
    pub resume: Option<String>,
    /// A person's answer to what the resumed run asks.
    pub answer: Option<Answer>,
    /// Fires to end the run.
    pub cancel: CancellationToken,
    /// Replies of model servers.
    pub replies: Arc<dyn ReplyStore>,
}

/// What of a whole run this loop is.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Which start, from 1; 0 for the only one.
    pub(super) start: u32,
    /// The books of the whole run, where others share them: what this loop's log says was spent
    /// is in them already.
    pub(super) ledger: Option<Arc<Ledger>>,
    /// Stop, to be gone on with, before an output beyond this one.
    pub(super) pause_after: Option<u32>,
    /// Milliseconds of the whole run that are over at least.
    pub(super) elapsed_ms: u64,
}

/// A loop that has ended or was stopped to be gone on with.
#[derive(Debug)]
pub(super) struct Driven {
    pub(super) report: Report,
    /// Whether it has not ended: its reason says nothing then.
    pub(super) paused: bool,
}

struct Driver<'a> {
    setup: &'a Setup,
    options: &'a Options,
    part: &'a Part,
    watcher: &'a mut dyn Watcher,
    journal: Journal,
    ledger: Arc<Ledger>,
    state: State,
    run: String,
    resumed: u32,
    usage: BTreeMap<String, RoleUsage>,
    findings: BTreeMap<u32, Vec<Finding>>,
    /// Who rejected an output whatever its score, by generation.
    vetoes: BTreeMap<u32, Vec<String>>,
    snapshots: BTreeMap<u32, String>,
    next: BTreeMap<u32, String>,
    told: VecDeque<String>,
    /// What the agent disputes beside the newest output, and every finding it has disputed.
    disputes: Vec<Dispute>,
    rebutted: BTreeSet<String>,
    /// Verdicts of a judgement that was cut off.
    known: Vec<Verdict>,
    /// Set when a call with side effects was cut off and nobody has said to repeat it.
    in_doubt: bool,
    /// Set when the log tells of the run's end already.
    told_end: bool,
    /// The answer given with the command; it answers one question.
    answer: Option<Answer>,
    /// When the open question was first asked.
    asked: Option<String>,
    /// The newest ruling.
    ruling: Option<Ruling>,
    warnings: Vec<String>,
}

/// Runs a loop to its end, or goes on with one.
///
/// # Errors
/// When the log can't be written or read, a prompt can't be made, or the run can't be gone on
/// with. Faults of agents and judges are outcomes, not errors.
pub async fn run(
    setup: &Setup,
    options: &Options,
    watcher: &mut dyn Watcher,
) -> Result<Report, LoopError> {
    Ok(run_part(setup, options, &Part::default(), watcher).await?.report)
}

/// As [`run`], of a part of a run.
pub(super) async fn run_part(
    setup: &Setup,
    options: &Options,
    part: &Part,
    watcher: &mut dyn Watcher,
) -> Result<Driven, LoopError> {
    let limits = &setup.policy.limits;
    let own = || {
        Arc::new(Ledger::new(LedgerLimits {
            micro_dollars: limits.micro_dollars,
            tokens: limits.tokens,
            calls: None,
        }))
    };
    let ledger = part.ledger.clone().unwrap_or_else(own);
    let (log, lines, torn) = match &options.resume {
        None => (Log::create(&options.loops, &options.run)?, Vec::new(), Vec::new()),
        Some(run) => Log::open(&options.loops, run)?,
    };
    let run = log.run().to_owned();
    let (before_ms, spent) =
        lines.last().map_or((0, Spent::default()), |line| (line.elapsed_ms, line.spent));
    let before_ms = before_ms.max(part.elapsed_ms);
    let usage = Usage { tokens_in: spent.tokens, ..Usage::default() };
    if part.ledger.is_none() && spent != Spent::default() {
        ledger.book(&usage, Some(spent.micro_dollars));
    }
    let mut driver = Driver {
        setup,
        options,
        part,
        watcher,
        journal: Journal::new(log, before_ms, Arc::clone(&ledger)),
        ledger,
        state: State::new(Arc::clone(&setup.policy)),
        run,
        resumed: 0,
        usage: BTreeMap::new(),
        findings: BTreeMap::new(),
        vetoes: BTreeMap::new(),
        snapshots: BTreeMap::new(),
        next: BTreeMap::new(),
        told: VecDeque::new(),
        disputes: Vec::new(),
        rebutted: BTreeSet::new(),
        known: Vec::new(),
        in_doubt: false,
        told_end: false,
        answer: options.answer.clone().filter(|_| options.resume.is_some()),
        asked: None,
        ruling: None,
        warnings: setup.warnings.clone(),
    };
    driver.warnings.extend(torn);
    for warning in driver.warnings.clone() {
        driver.watcher.notice(&Notice::Warning(&warning));
    }
    let command = if lines.is_empty() { driver.begin().await? } else { driver.fold(lines).await? };
    driver.drive(command).await
}

impl Driver<'_> {
    async fn begin(&mut self) -> Result<Option<Command>, LoopError> {
        let snapshot = self.setup.agent.begin(None).await?;
        let entry = Entry::Started {
            format: FORMAT,
            run: self.run.clone(),
            time: jiff::Timestamp::now().to_string(),
            task: self.setup.task.clone(),
            config: self.setup.config.clone(),
            config_hash: self.setup.config_hash.clone(),
            panel: self.setup.panel.fingerprint().to_string(),
            file: self.options.file.clone(),
            limits: Some(self.setup.policy.limits),
            snapshot,
        };
        self.watcher.notice(&Notice::Began { run: &self.run, generations: 0 });
        self.write(entry, What::Begun)
    }

    /// Writes an event down, and then lets the controller decide on it.
    fn write(&mut self, entry: Entry, what: What) -> Result<Option<Command>, LoopError> {
        let (elapsed_ms, spent) = self.journal.append(entry)?;
        let command = self.step(Event { elapsed_ms, spent, what });
        if let Some(command) = &command {
            let (generation, decision) = (self.state.generations(), describe(command));
            self.journal.append(Entry::Decided { generation, decision })?;
        }
        Ok(command)
    }

    fn step(&mut self, event: Event) -> Option<Command> {
        let fresh = State::new(Arc::clone(&self.setup.policy));
        let (state, commands) = decide(std::mem::replace(&mut self.state, fresh), &event);
        self.state = state;
        let command = commands.into_iter().next();
        match &command {
            // A retry of a call does not change what was decided on the output before it.
            None | Some(Command::Generate(Directive { wait_ms: 1.., .. })) => {}
            Some(command) => {
                self.next.insert(self.state.generations(), describe(command));
            }
        }
        command
    }

    async fn drive(mut self, mut command: Option<Command>) -> Result<Driven, LoopError> {
        loop {
            if let Some(outcome) = self.state.outcome().cloned() {
                let report = self.finish(&outcome).await?;
                return Ok(Driven { report, paused: false });
            }
            if self.options.cancel.is_cancelled() {
                command = self.cancel();
                continue;
            }
            let enough = |directive: &Directive| {
                self.part.pause_after.is_some_and(|most| directive.generation > most)
            };
            command = match command {
                Some(Command::Generate(directive)) if enough(&directive) => {
                    let best = self.state.best().map(|record| record.generation);
                    let reason = Reason::MaxGenerations;
                    let outcome = Outcome { reason, also_fired: Vec::new(), best };
                    let took = self.journal.elapsed_ms();
                    let report = self.report(&outcome, took)?;
                    return Ok(Driven { report, paused: true });
                }
                Some(Command::Generate(directive)) => {
                    if std::mem::take(&mut self.in_doubt) {
                        match self.answer.take() {
                            Some(Answer::Continue(_)) => {}
                            _ => return self.wait(IN_DOUBT),
                        }
                    }
                    self.generate(directive).await?
                }
                Some(Command::Judge { generation, round, retry, wait_ms }) => {
                    self.judge(generation, round, retry, wait_ms).await?
                }
                Some(Command::Ask { generation, about }) => match self.ask(generation, about)? {
                    Some(next) => Some(next),
                    None => return self.wait("the run waits for a person"),
                },
                Some(Command::Finish(_)) | None => {
                    return Err(LoopError::NothingAsked { run: self.run.clone() });
                }
            };
        }
    }

    /// Tells now and in the result what a reader should know.
    fn warn(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
        self.watcher.notice(&Notice::Warning(text));
    }

    fn cancel(&mut self) -> Option<Command> {
        let event = Event {
            elapsed_ms: self.journal.elapsed_ms(),
            spent: self.journal.spent(),
            what: What::Cancelled,
        };
        self.step(event)
    }

    /// Waits, unless the run is stopped.
    async fn pause(&self, wait_ms: u64) {
        let until = self.journal.deadline(self.setup.policy.limits.elapsed_ms);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            () = self.options.cancel.cancelled() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    fn context(&self, scope: String) -> CallContext {
        CallContext {
            held: Held::default(),
            sample: 0,
            deadline: self.journal.deadline(self.setup.policy.limits.elapsed_ms),
            cancel: self.options.cancel.clone(),
            fresh: false,
            replies: Arc::new(Scoped { inner: Arc::clone(&self.options.replies), scope }),
            ledger: Arc::clone(&self.ledger),
            place: None,
        }
    }
}
