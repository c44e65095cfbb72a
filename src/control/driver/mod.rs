//! Runs a loop: executes the controller's commands, and writes down everything before
//! anything follows from it.
//!
//! A run that was cut off goes on from its log: the log is folded through the controller, and
//! the last command, whose end is not known, is executed anew.

mod fold;
mod generate;
mod judge;
mod report;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub(super) use self::judge::no_room;
use self::report::describe;
use super::agent::AgentError;
use super::decide;
use super::dispute::Dispute;
use super::event::{About, Answer, Command, Directive, Event, Round, Spent, What};
use super::feedback::FeedbackError;
use super::history::Output;
use super::journal::{Journal, Scoped};
use super::log::{Entry, FORMAT, Log, LogError};
use super::outcome::{Outcome, Reason};
use super::policy::StandIn;
use super::result::{Report, RoleUsage};
use super::review::ReviewError;
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

/// What a watcher is told.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The run begins, or goes on.
    Began {
        /// The run.
        run: &'a str,
        /// Outputs that are there already.
        generations: u32,
    },
    /// Something to know.
    Warning(&'a str),
    /// The agent gave no output.
    AgentFailed {
        /// The number of the call.
        call: u32,
        /// What happened.
        detail: &'a str,
    },
    /// Something happened in one of several starts.
    Start {
        /// Which, from 1.
        start: u32,
        /// What.
        notice: &'a Notice<'a>,
    },
    /// An output was judged.
    Judged {
        /// Which.
        generation: u32,
        /// In which judgement of it.
        round: Round,
        /// The ruling.
        ruling: &'a Ruling,
        /// The score before, where there is one.
        before: Option<f64>,
        /// What is done next.
        next: &'a str,
    },
}

/// What a person is asked, with what they need to answer.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Why they are asked.
    pub about: About,
    /// Which of several starts asks, from 1; 0 for the only one.
    pub start: u32,
    /// The task.
    pub task: &'a str,
    /// The output in question.
    pub generation: u32,
    /// Its text.
    pub output: Option<&'a str>,
    /// The text of the best output before it, where it is another.
    pub before: Option<&'a str>,
    /// The newest ruling: votes and findings.
    pub ruling: Option<&'a Ruling>,
    /// What the agent disputes beside the output.
    pub disputes: &'a [Dispute],
}

/// Is told how a loop goes, and asks a person where there is one.
pub trait Watcher: Send {
    /// Something happened.
    fn notice(&mut self, notice: &Notice<'_>);

    /// A person's answer to a question; `None` where nobody is there. The text of
    /// [`Answer::Edit`] is the output itself here.
    fn ask(&mut self, question: &Question<'_>) -> Option<Answer>;

    /// The score that the person gave the output in question beside the last answer.
    fn label(&mut self) -> Option<f64> {
        None
    }
}

/// Why a loop broke off. What was done until then is in its log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The log refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A prompt could not be made.
    #[error(transparent)]
    Feedback(#[from] FeedbackError),
    /// The agent's own state could not be read or restored.
    #[error("the agent's state")]
    Agent(#[from] AgentError),
    /// The configuration is not the one that the run began with.
    #[error(
        "run `{run}` can't go on: its configuration, task, agent or panel has changed; undo the change, or start a new run"
    )]
    Changed {
        /// The run.
        run: String,
    },
    /// The log does not begin as a log does.
    #[error("run `{run}` has no beginning")]
    NoBeginning {
        /// The run.
        run: String,
    },
    /// A workspace's output is the patch of its folder, which a person edits there.
    #[error("run `{run}` works on a folder: its output can't be edited as a text")]
    NoEdit {
        /// The run.
        run: String,
    },
    /// An edited output that holds nothing.
    #[error("run `{run}`: the edited output is empty")]
    EmptyEdit {
        /// The run.
        run: String,
    },
    /// An answer was given, and nothing was asked.
    #[error("run `{run}` asks nothing that could be answered")]
    NothingAsked {
        /// The run.
        run: String,
    },
    /// An answer was given, and several starts ask.
    #[error(
        "several starts of run `{run}` ask ({}): answer each with `venire review START --answer ...`",
        starts.join(", ")
    )]
    SeveralAsk {
        /// The run.
        run: String,
        /// Its starts that ask.
        starts: Vec<String>,
    },
    /// An answer could not be written down.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

impl LoopError {
    /// Whether the run broke off through a fault of the machine and not of who asked.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        match self {
            Self::Log(LogError::Held { .. } | LogError::Missing { .. })
            | Self::Changed { .. }
            | Self::NoBeginning { .. }
            | Self::NothingAsked { .. }
            | Self::SeveralAsk { .. }
            | Self::NoEdit { .. }
            | Self::EmptyEdit { .. }
            | Self::Feedback(_) => false,
            Self::Review(error) => !matches!(
                error,
                ReviewError::NothingAsked { .. }
                    | ReviewError::Edit { .. }
                    | ReviewError::Log(LogError::Held { .. })
            ),
            Self::Log(_) | Self::Agent(_) => true,
        }
    }
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

    fn ask(&mut self, generation: u32, about: About) -> Result<Option<Command>, LoopError> {
        let stands_in = self.stands_in();
        let by_deadline = self.answer.is_none() && stands_in.is_some();
        let answer = match self.answer.take().or(stands_in) {
            Some(answer) => Some(answer),
            None => {
                if self.asked.is_none() {
                    let time = Some(jiff::Timestamp::now().to_string());
                    self.journal.append(Entry::Asked { generation, about, time: time.clone() })?;
                    self.asked = time;
                }
                let output = self.version(generation)?.map(|version| version.output);
                let before = self.before(generation)?;
                let question = Question {
                    about,
                    start: self.part.start,
                    task: &self.setup.task,
                    generation,
                    output: output.as_deref(),
                    before: before.as_deref(),
                    ruling: self.ruling.as_ref(),
                    disputes: &self.disputes,
                };
                // The time of a person is not the run's.
                let paused = self.journal.pause();
                let answer = self.watcher.ask(&question);
                drop(paused);
                if let Some(score) = self.watcher.label() {
                    self.journal.append(Entry::Labelled { generation, score })?;
                }
                answer
            }
        };
        let Some(answer) = answer else { return Ok(None) };
        self.asked = None;
        match answer {
            Answer::Edit(text) => {
                if self.snapshots.contains_key(&generation) {
                    return Err(LoopError::NoEdit { run: self.run.clone() });
                }
                let output = Output::of(&text);
                if output.empty {
                    return Err(LoopError::EmptyEdit { run: self.run.clone() });
                }
                let hash = self.journal.log().keep(&text)?;
                let entry = Entry::Answered { answer: Answer::Edit(hash), by_deadline };
                self.write(entry, What::Edited(output))
            }
            answer => {
                let entry = Entry::Answered { answer: answer.clone(), by_deadline };
                self.write(entry, What::Answered(answer))
            }
        }
    }

    /// What the file declares in place of an answer that did not come in time.
    fn stands_in(&self) -> Option<Answer> {
        let human = &self.setup.human;
        let (deadline, stand_in) = (human.deadline?, human.on_deadline?);
        let asked: jiff::Timestamp = self.asked.as_ref()?.parse().ok()?;
        let waited = jiff::Timestamp::now().duration_since(asked);
        let over = std::time::Duration::try_from(waited).is_ok_and(|own| own >= deadline.get());
        over.then(|| match stand_in {
            StandIn::Accept => Answer::Accept,
            StandIn::Reject => Answer::Reject,
            StandIn::Continue => Answer::Continue(String::new()),
        })
    }

    /// The best output other than the one in question.
    fn before(&self, generation: u32) -> Result<Option<String>, LoopError> {
        let others = self.state.records().iter().filter(|record| record.generation != generation);
        let best = others
            .filter_map(|r| Some((r.score?, r.generation)))
            .reduce(|best, own| if own.0 > best.0 { own } else { best });
        match best {
            Some((_, generation)) => Ok(self.version(generation)?.map(|version| version.output)),
            None => Ok(None),
        }
    }

    /// Ends this process's part of the run; the run itself goes on with an answer.
    fn wait(mut self, why: &str) -> Result<Driven, LoopError> {
        self.warn(why);
        let best = self.state.best().map(|record| record.generation);
        let outcome = Outcome { reason: Reason::AwaitingHuman, also_fired: Vec::new(), best };
        let took = self.journal.elapsed_ms();
        Ok(Driven { report: self.report(&outcome, took)?, paused: false })
    }
}
