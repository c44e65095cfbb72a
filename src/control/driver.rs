//! Runs a loop: executes the controller's commands, and writes down everything before
//! anything follows from it.
//!
//! A run that was cut off goes on from its log: the log is folded through the controller, and
//! the last command, whose end is not known, is executed anew.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::agent::{AgentError, Made, Request};
use super::decide;
use super::event::{Answer, Base, Budget, Command, Directive, Event, Round, Spent, What};
use super::feedback::{FeedbackError, Material, Version};
use super::history::Output;
use super::journal::{Journal, Scoped, Verdicts, book};
use super::judgement::Judgement;
use super::log::{Entry, FORMAT, Line, Log, LogError};
use super::outcome::{Outcome, Reason};
use super::result::{HistoryRow, Report, RoleUsage, Shown};
use super::setup::{Check, Setup};
use super::state::State;
use crate::case::Case;
use crate::judge::process::{Ending, Launch, Until, run as run_program};
use crate::panel::Known;
use crate::provider::{CallContext, Ledger, LedgerLimits, ReplyStore, Reservation, WorstCase};
use crate::ruling::{Finding, Ruling};
use crate::verdict::{Status, Usage, Verdict};

/// Earlier outputs that a prompt can mention.
const EARLIER: usize = 20;

/// How long a command of the policy may run.
const CHECK_TIMEOUT: Duration = Duration::from_secs(120);

/// How the log says that a run was gone on with.
const RESUMED: &str = "resumed";

const IN_DOUBT: &str =
    "a call with side effects was cut off: resume with `--answer continue` to make it again";

/// Prompt tokens a planned token: plans estimate, reservations must hold.
const PLAN_MARGIN: u64 = 4;

/// Where and how a loop runs.
#[derive(Debug)]
pub struct Options {
    /// The folder of all runs' logs.
    pub loops: PathBuf,
    /// The id of a new run.
    pub run: String,
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

/// Is told how a loop goes, and asks a person where there is one.
pub trait Watcher: Send {
    /// Something happened.
    fn notice(&mut self, notice: &Notice<'_>);

    /// A person's answer to a question about the output of `generation`; `None` where nobody
    /// is there.
    fn ask(&mut self, generation: u32, about: Reason, best: Option<&str>) -> Option<Answer>;
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
    /// An answer was given, and nothing was asked.
    #[error("run `{run}` asks nothing that could be answered")]
    NothingAsked {
        /// The run.
        run: String,
    },
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
            | Self::Feedback(_) => false,
            Self::Log(_) | Self::Agent(_) => true,
        }
    }
}

struct Driver<'a> {
    setup: &'a Setup,
    options: &'a Options,
    watcher: &'a mut dyn Watcher,
    journal: Journal,
    ledger: Arc<Ledger>,
    state: State,
    run: String,
    resumed: u32,
    usage: BTreeMap<String, RoleUsage>,
    findings: BTreeMap<u32, Vec<Finding>>,
    snapshots: BTreeMap<u32, String>,
    next: BTreeMap<u32, String>,
    told: BTreeSet<String>,
    /// Verdicts of a judgement that was cut off.
    known: Vec<Verdict>,
    /// Set when a call with side effects was cut off and nobody has said to repeat it.
    in_doubt: bool,
    /// Set when the log tells of the run's end already.
    told_end: bool,
    /// The answer given with the command; it answers one question.
    answer: Option<Answer>,
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
    let limits = &setup.policy.limits;
    let ledger = Arc::new(Ledger::new(LedgerLimits {
        micro_dollars: limits.micro_dollars,
        tokens: limits.tokens,
        calls: None,
    }));
    let (log, lines, torn) = match &options.resume {
        None => (Log::create(&options.loops, &options.run)?, Vec::new(), Vec::new()),
        Some(run) => Log::open(&options.loops, run)?,
    };
    let run = log.run().to_owned();
    let (before_ms, spent) =
        lines.last().map_or((0, Spent::default()), |line| (line.elapsed_ms, line.spent));
    let usage = Usage { tokens_in: spent.tokens, ..Usage::default() };
    if spent != Spent::default() {
        book(&ledger, &usage, Some(spent.micro_dollars));
    }
    let mut driver = Driver {
        setup,
        options,
        watcher,
        journal: Journal::new(log, before_ms, Arc::clone(&ledger)),
        ledger,
        state: State::new(Arc::clone(&setup.policy)),
        run,
        resumed: 0,
        usage: BTreeMap::new(),
        findings: BTreeMap::new(),
        snapshots: BTreeMap::new(),
        next: BTreeMap::new(),
        told: BTreeSet::new(),
        known: Vec::new(),
        in_doubt: false,
        told_end: false,
        answer: options.answer.clone().filter(|_| options.resume.is_some()),
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

    /// Takes up a run from its log: everything that happened goes through the controller
    /// again, nothing is done again.
    async fn fold(&mut self, lines: Vec<Line>) -> Result<Option<Command>, LoopError> {
        let mut command = None;
        let mut intended: Option<Directive> = None;
        let mut first = true;
        for line in lines {
            let event = |what| Event { elapsed_ms: line.elapsed_ms, spent: line.spent, what };
            if first != matches!(line.entry, Entry::Started { .. }) {
                return Err(LoopError::NoBeginning { run: self.run.clone() });
            }
            first = false;
            if !matches!(line.entry, Entry::Decided { .. }) {
                self.in_doubt = false;
            }
            match line.entry {
                Entry::Started { config_hash, snapshot, .. } => {
                    if config_hash != self.setup.config_hash {
                        return Err(LoopError::Changed { run: self.run.clone() });
                    }
                    self.setup.agent.begin(snapshot.as_deref()).await?;
                    command = self.step(event(What::Begun));
                }
                Entry::GenerateIntended { directive, .. } => {
                    intended = Some(directive);
                    self.in_doubt = true;
                }
                Entry::Generated {
                    output,
                    snapshot,
                    change,
                    fault,
                    refused,
                    usage,
                    micro_dollars,
                    ..
                } => {
                    self.count("agent", &usage, micro_dollars.map(|micro| micro as f64 / 1e6));
                    let what = match (output, refused, fault) {
                        (Some(hash), _, _) => {
                            self.tell(intended.as_ref());
                            self.remember(snapshot);
                            let text = self.journal.log().text(&hash)?;
                            What::Generated(Output { change, ..Output::of(&text) })
                        }
                        (None, Some(budget), _) => What::Refused(budget),
                        (None, None, fault) => {
                            What::AgentFailed(fault.unwrap_or(super::AgentFault::Failed))
                        }
                    };
                    command = self.step(event(what));
                }
                Entry::JudgeIntended { .. } => self.known.clear(),
                Entry::Judged { verdict, .. } => self.known.push(*verdict),
                Entry::Ruled { generation, round, ruling, commands, refused, .. } => {
                    self.known.clear();
                    let judgement = self.take_in(generation, round, &ruling, commands, refused);
                    command = self.step(event(What::Judged(Box::new(judgement))));
                }
                Entry::Answered { answer } => command = self.step(event(What::Answered(answer))),
                Entry::Decided { decision, .. } if decision == RESUMED => self.resumed += 1,
                // What was stopped goes on; every other end is the controller's own.
                Entry::Finished { outcome } => self.told_end = outcome.reason != Reason::Cancelled,
                Entry::Decided { .. } | Entry::Asked { .. } => {}
            }
        }
        let generations = self.state.generations();
        self.in_doubt &= self.setup.agent.has_side_effects();
        if self.answer.is_some() && self.state.awaiting().is_none() && !self.in_doubt {
            return Err(LoopError::NothingAsked { run: self.run.clone() });
        }
        if self.state.outcome().is_none() {
            self.resumed += 1;
            let decision = RESUMED.to_owned();
            self.journal.append(Entry::Decided { generation: generations, decision })?;
        }
        self.watcher.notice(&Notice::Began { run: &self.run, generations });
        Ok(command)
    }

    async fn drive(mut self, mut command: Option<Command>) -> Result<Report, LoopError> {
        loop {
            if let Some(outcome) = self.state.outcome().cloned() {
                return self.finish(&outcome).await;
            }
            if self.options.cancel.is_cancelled() {
                command = self.cancel();
                continue;
            }
            command = match command {
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
            sample: 0,
            deadline: self.journal.deadline(self.setup.policy.limits.elapsed_ms),
            cancel: self.options.cancel.clone(),
            fresh: false,
            replies: Arc::new(Scoped { inner: Arc::clone(&self.options.replies), scope }),
            ledger: Arc::clone(&self.ledger),
        }
    }

    async fn generate(&mut self, directive: Directive) -> Result<Option<Command>, LoopError> {
        self.pause(directive.wait_ms).await;
        if self.options.cancel.is_cancelled() {
            return Ok(Some(Command::Generate(directive)));
        }
        let material = self.material(&directive)?;
        let prompt = self.setup.feedback.prompt(&material)?;
        // Kept back until the output is there, so that it can be judged and confirmed.
        let kept_back = match self.keep_back(&prompt, material.current.as_ref()) {
            Ok(kept_back) => kept_back,
            Err(budget) => {
                let entry = generated(&directive, None).refused(budget);
                return self.write(entry.0, What::Refused(budget));
            }
        };
        let hash = self.journal.log().keep(&prompt)?;
        self.journal
            .append(Entry::GenerateIntended { directive: directive.clone(), prompt: hash })?;
        let snapshot = directive.base_generation.and_then(|g| self.snapshots.get(&g).cloned());
        let request = Request {
            prompt: &prompt,
            generation: directive.generation,
            call: directive.call,
            snapshot: snapshot.as_deref(),
            temperature_factor: directive.temperature_factor,
        };
        let context = self.context(format!("{}/call/{}", self.run, directive.call));
        let made = self.setup.agent.generate(&request, &context).await;
        drop(kept_back);
        match made {
            Ok(made) => self.made(&directive, &material, made),
            Err(_) if self.options.cancel.is_cancelled() => Ok(Some(Command::Generate(directive))),
            Err(error) => {
                self.watcher
                    .notice(&Notice::AgentFailed { call: directive.call, detail: &error.detail });
                if error.status == Status::Budget {
                    let budget = self.short_of();
                    let entry = generated(&directive, Some(error.detail)).refused(budget);
                    return self.write(entry.0, What::Refused(budget));
                }
                let fault = error.fault();
                let entry = generated(&directive, Some(error.detail)).fault(fault);
                self.write(entry.0, What::AgentFailed(fault))
            }
        }
    }

    fn made(
        &mut self,
        directive: &Directive,
        material: &Material,
        made: Made,
    ) -> Result<Option<Command>, LoopError> {
        if !made.booked {
            book(&self.ledger, &made.usage, made.micro_dollars);
        }
        self.count("agent", &made.usage, made.micro_dollars.map(|micro| micro as f64 / 1e6));
        let hash = self.journal.log().keep(&made.text)?;
        let change = directive
            .max_change
            .and(material.current.as_ref())
            .map(|base| 1.0 - crate::text::similarity(&base.output, &made.text));
        self.tell(Some(directive));
        self.remember(made.snapshot.clone());
        let entry = Entry::Generated {
            call: directive.call,
            output: Some(hash),
            snapshot: made.snapshot,
            change,
            fault: None,
            refused: None,
            detail: None,
            usage: made.usage,
            micro_dollars: made.micro_dollars,
        };
        self.write(entry, What::Generated(Output { change, ..Output::of(&made.text) }))
    }

    /// Sets aside what judging the next output will take, and makes sure that the agent's
    /// call fits beside it.
    fn keep_back(
        &self,
        prompt: &str,
        current: Option<&Version>,
    ) -> Result<Option<Reservation>, Budget> {
        let case = Case::new(
            self.setup.task.clone(),
            current.map_or(prompt, |version| version.output.as_str()),
        );
        let rounds = u64::from(1 + self.setup.policy.confirm);
        let mut worst = WorstCase { micro_dollars: Some(0), ..WorstCase::default() };
        for seat in &self.setup.panel.seats {
            let plan = seat.judge.plan(&case);
            let times = rounds * u64::from(seat.samples);
            worst.tokens_in += plan.tokens_in * PLAN_MARGIN * times;
            worst.tokens_out += plan.tokens_out * times;
            let cost = plan.cost_usd.unwrap_or(0.0) * times as f64 * PLAN_MARGIN as f64;
            worst.micro_dollars = worst.micro_dollars.map(|sum| sum + (cost * 1e6).ceil() as u64);
        }
        let fits =
            |worst: WorstCase| self.ledger.reserve(worst).map_err(|_| self.short_of_beside(worst));
        let kept_back = fits(worst)?;
        if let Some(call) = self.setup.agent.worst_case(prompt) {
            fits(call)?;
        }
        Ok(Some(kept_back))
    }

    fn short_of(&self) -> Budget {
        self.short_of_beside(WorstCase::default())
    }

    /// The budget that is the shorter one for another call.
    fn short_of_beside(&self, worst: WorstCase) -> Budget {
        let (limits, totals) = (self.ledger.limits(), self.ledger.totals());
        let share = |used: u64, limit: Option<u64>| {
            limit.map_or(0.0, |limit| used as f64 / limit.max(1) as f64)
        };
        let tokens = totals.tokens() + totals.tokens_reserved + worst.tokens_in + worst.tokens_out;
        let money =
            totals.micro_dollars + totals.micro_dollars_reserved + worst.micro_dollars.unwrap_or(0);
        if share(money, limits.micro_dollars) > share(tokens, limits.tokens) {
            Budget::Money
        } else {
            Budget::Tokens
        }
    }

    async fn judge(
        &mut self,
        generation: u32,
        round: Round,
        retry: u32,
        wait_ms: u64,
    ) -> Result<Option<Command>, LoopError> {
        let again = Command::Judge { generation, round, retry, wait_ms: 0 };
        self.pause(wait_ms).await;
        if self.options.cancel.is_cancelled() {
            return Ok(Some(again));
        }
        let output = self.output()?;
        self.journal.append(Entry::JudgeIntended { generation, round, retry })?;
        let known = Known { verdicts: std::mem::take(&mut self.known), retry: Vec::new() };
        for verdict in &known.verdicts {
            self.journal
                .append(Entry::Judged { generation, verdict: Box::new(verdict.clone()) })?;
        }
        let case = Case::new(self.setup.task.clone(), output.clone());
        let context = self.context(format!("{}/judge/{generation}/{round:?}/{retry}", self.run));
        let verdicts = Verdicts { journal: &self.journal, generation, failed: Default::default() };
        let ruling = self.setup.panel.judge_with(&case, &context, known, &verdicts).await;
        if let Some(error) = verdicts.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let commands = self.run_checks(&output, &context).await;
        if self.options.cancel.is_cancelled() && ruling.score.is_none() {
            return Ok(Some(again));
        }
        let short = ruling.score.is_none()
            && ruling.verdicts.iter().any(|verdict| verdict.status == Status::Budget);
        let refused = short.then(|| self.short_of());
        let judgement = self.take_in(generation, round, &ruling, commands.clone(), refused);
        let before = self.state.records().last().and_then(|record| record.score);
        let entry = Entry::Ruled {
            generation,
            round,
            retry,
            ruling: Box::new(ruling.clone()),
            commands,
            refused,
        };
        let command = self.write(entry, What::Judged(Box::new(judgement)))?;
        let next = command.as_ref().map(describe).unwrap_or_default();
        self.watcher.notice(&Notice::Judged {
            generation,
            round,
            ruling: &ruling,
            before: before.map(crate::score::Score::get),
            next: &next,
        });
        Ok(command)
    }

    /// The commands of the policy, each on the output. One that can't run is not satisfied.
    async fn run_checks(&self, output: &str, context: &CallContext) -> BTreeMap<String, bool> {
        let mut ended = BTreeMap::new();
        for Check { key, program, arguments, directory, sandbox } in &self.setup.checks {
            let launch = Launch {
                program: program.clone(),
                arguments: arguments.iter().map(Into::into).collect(),
                directory: directory.clone(),
                private: directory.clone(),
                variables: Vec::new(),
                sandbox: sandbox.clone(),
            };
            let until = Until { context, timeout: Some(CHECK_TIMEOUT) };
            let finished = run_program(&launch, output.as_bytes(), until).await;
            let satisfied = finished.is_ok_and(|f| f.ending == Ending::Exited(0));
            ended.insert(key.clone(), satisfied);
        }
        ended
    }

    /// What a ruling means for the controller, the feedback and the books.
    fn take_in(
        &mut self,
        generation: u32,
        round: Round,
        ruling: &Ruling,
        commands: BTreeMap<String, bool>,
        refused: Option<Budget>,
    ) -> Judgement {
        let role = if round == Round::First { "judge" } else { "confirmation" };
        for verdict in ruling.verdicts.iter().filter(|verdict| !verdict.cached) {
            self.count(role, &verdict.usage, verdict.cost_usd);
        }
        if ruling.score.is_some() {
            self.findings.insert(generation, ruling.feedback.clone());
        }
        Judgement { commands, refused, ..Judgement::of(ruling) }
    }

    fn count(&mut self, role: &str, usage: &Usage, cost_usd: Option<f64>) {
        let books = self.usage.entry(role.to_owned()).or_default();
        books.usage.add(usage);
        books.cost_usd += cost_usd.unwrap_or(0.0);
    }

    /// Notes which findings the agent has been told.
    fn tell(&mut self, directive: Option<&Directive>) {
        let base = directive.and_then(|directive| directive.base_generation);
        if let Some(findings) = base.and_then(|generation| self.findings.get(&generation)) {
            self.told.extend(findings.iter().map(|finding| finding.text.clone()));
        }
    }

    fn remember(&mut self, snapshot: Option<String>) {
        if let Some(snapshot) = snapshot {
            self.snapshots.insert(self.state.records().len() as u32 + 1, snapshot);
        }
    }

    /// The output that is being judged.
    fn output(&self) -> Result<String, LoopError> {
        let hash = self.state.judging().unwrap_or_default();
        Ok(self.journal.log().text(hash)?)
    }

    fn version(&self, generation: u32) -> Result<Option<Version>, LoopError> {
        let Some(record) = self.state.records().get(generation as usize - 1) else {
            return Ok(None);
        };
        let output = self.journal.log().text(&record.output)?;
        Ok(Some(Version { generation, output, score: record.score }))
    }

    fn material(&self, directive: &Directive) -> Result<Material, LoopError> {
        let records = self.state.records();
        let base = directive.base_generation.filter(|_| directive.base != Base::Nothing);
        let best = self.state.best().map(|record| record.generation);
        let other = match (base, best) {
            (Some(base), Some(best)) if best != base => Some(best),
            (Some(base), _) if base > 1 => Some(base - 1),
            _ => None,
        };
        let mut earlier = Vec::new();
        for record in records.iter().rev().filter(|r| Some(r.generation) != base).take(EARLIER) {
            earlier.extend(self.version(record.generation)?);
        }
        earlier.reverse();
        let record = base.and_then(|base| records.get(base as usize - 1));
        Ok(Material {
            task: self.setup.task.clone(),
            current: base.map(|g| self.version(g)).transpose()?.flatten(),
            other: other.map(|g| self.version(g)).transpose()?.flatten(),
            best: self.state.best().and_then(|record| record.score),
            findings: base.and_then(|g| self.findings.get(&g).cloned()).unwrap_or_default(),
            criteria: record.map(|record| record.criteria.clone()).unwrap_or_default(),
            told: self.told.clone(),
            earlier,
            directive: directive.clone(),
        })
    }

    fn ask(&mut self, generation: u32, about: Reason) -> Result<Option<Command>, LoopError> {
        let answer = match self.answer.take() {
            Some(answer) => Some(answer),
            None => {
                self.journal.append(Entry::Asked { generation, about })?;
                let best = match self.state.best() {
                    Some(record) => Some(self.journal.log().text(&record.output)?),
                    None => None,
                };
                self.watcher.ask(generation, about, best.as_deref())
            }
        };
        let Some(answer) = answer else { return Ok(None) };
        self.write(Entry::Answered { answer: answer.clone() }, What::Answered(answer))
    }

    /// Ends this process's part of the run; the run itself goes on with an answer.
    fn wait(mut self, why: &str) -> Result<Report, LoopError> {
        self.warnings.push(why.to_owned());
        self.watcher.notice(&Notice::Warning(why));
        let best = self.state.best().map(|record| record.generation);
        self.report(&Outcome { reason: Reason::AwaitingHuman, also_fired: Vec::new(), best })
    }

    async fn finish(self, outcome: &Outcome) -> Result<Report, LoopError> {
        if self.told_end {
            return self.report(outcome);
        }
        if let Some(snapshot) = outcome.best.and_then(|best| self.snapshots.get(&best)) {
            self.setup.agent.restore(Some(snapshot)).await?;
        }
        self.journal.append(Entry::Finished { outcome: outcome.clone() })?;
        self.report(outcome)
    }

    fn report(self, outcome: &Outcome) -> Result<Report, LoopError> {
        let records = self.state.records();
        let log = self.journal.log();
        let shown = |record: &super::Record| -> Result<Shown, LoopError> {
            Ok(Shown::of(record, log.text(&record.output)?))
        };
        let best = outcome.best.and_then(|best| records.get(best as usize - 1));
        let history = records
            .iter()
            .map(|record| HistoryRow {
                generation: record.generation,
                score: record.score,
                status: record.status,
                decision: record.decision,
                next: self.next.get(&record.generation).cloned().unwrap_or_default(),
                change: record.change,
                over_limit: record.over_limit,
            })
            .collect();
        Ok(Report {
            run: self.run.clone(),
            outcome: outcome.class(),
            reason: outcome.reason,
            also_fired: outcome.also_fired.clone(),
            classic_reason: outcome.reason.classic(),
            generations: records.len() as u32,
            refinements: (records.len() as u32).saturating_sub(1),
            evaluations: self.state.evaluations(),
            best: best.map(shown).transpose()?,
            last: records.last().map(shown).transpose()?,
            history,
            usage: self.usage.clone(),
            cost_usd: self.ledger.totals().cost_usd(),
            elapsed_seconds: self.journal.elapsed_ms() as f64 / 1000.0,
            confirmation: self.state.confirmation(),
            profile: None,
            config_hash: self.setup.config_hash.clone(),
            resumed: self.resumed,
            log: log.path().display().to_string(),
            warnings: self.warnings.clone(),
        })
    }
}

/// A call that gave no output, as an entry.
struct NoOutput(Entry);

fn generated(directive: &Directive, detail: Option<String>) -> NoOutput {
    NoOutput(Entry::Generated {
        call: directive.call,
        output: None,
        snapshot: None,
        change: None,
        fault: None,
        refused: None,
        detail,
        usage: Usage::default(),
        micro_dollars: None,
    })
}

impl NoOutput {
    fn refused(mut self, budget: Budget) -> Self {
        if let Entry::Generated { refused, .. } = &mut self.0 {
            *refused = Some(budget);
        }
        self
    }

    fn fault(mut self, what: super::AgentFault) -> Self {
        if let Entry::Generated { fault, .. } = &mut self.0 {
            *fault = Some(what);
        }
        self
    }
}

/// What is done next, in a word or two.
fn describe(command: &Command) -> String {
    match command {
        Command::Finish(outcome) => outcome.reason.name().to_owned(),
        Command::Ask { .. } => "ask".to_owned(),
        Command::Judge { round: Round::Confirm(_), retry: 0, .. } => "confirm".to_owned(),
        Command::Judge { retry: 0, .. } => "judge".to_owned(),
        Command::Judge { .. } => "judge again".to_owned(),
        Command::Generate(directive) => {
            let how = match directive.base {
                Base::Best => "revert to best",
                Base::Nothing if directive.generation > 1 => "restart",
                _ if directive.wait_ms > 0 => "try again",
                _ => "go on",
            };
            match directive.nudges.first() {
                Some(nudge) => format!("{how} ({nudge})"),
                None => how.to_owned(),
            }
        }
    }
}
