//! Several independent starts of one loop: the worse half is dropped from time to time, and
//! the finalists are judged afresh before one is picked.
//!
//! Each start is a loop with a log and a state of its own; money, tokens and time are shared.
//! A start is picked by scores that nobody chose it for: those of the loops are the highest of
//! many, and so too high. What is dropped or judged is written down, so that a run that was cut
//! off goes on and does nothing twice.

mod finals;
mod people;
mod spec;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use self::finals::is_accepted;
use self::people::{is_accepted_by_person, waits};
pub use self::spec::StartsSpec;
use super::agent::AgentSpec;
use super::driver::{Driven, LoopError, Notice, Options, Part, Question, Watcher, run_part};
use super::event::{Answer, Spent};
use super::log::{self, Entry, FORMAT, Line, Log, LogError, RESUMED};
use super::outcome::Reason;
use super::result::Report;
use super::setup::{Setup, SetupError};
use super::spec::LoopSpec;
use crate::config::Problem;
use crate::provider::{Client, Ledger, LedgerLimits};
use crate::ruling::Ruling;
use crate::verdict::{Fingerprint, Usage};

/// Starts that are judged afresh at the end.
const FINALISTS: usize = 2;

/// Several starts, ready to run.
#[derive(Debug)]
pub struct Starts {
    spec: StartsSpec,
    setups: Vec<Setup>,
    config_hash: String,
}

impl Starts {
    /// Builds the starts of a loop file that has the section `[starts]`.
    ///
    /// # Errors
    /// As [`Setup::new`]; a folder as the agent's place: several starts would be in each other's
    /// way.
    pub fn new(
        spec: &LoopSpec,
        task: Option<&str>,
        base: &Path,
        client: &Client,
    ) -> Result<Self, SetupError> {
        let missing = |section: &str| Problem::new(section, "this section is missing");
        let starts = spec.starts.clone().ok_or_else(|| missing("starts"))?;
        starts.check().map_err(|problem| problem.inside("starts"))?;
        let agent = spec.agent.as_ref().ok_or_else(|| missing("agent"))?;
        let mut setups = Vec::new();
        for start in 1..=starts.n {
            let own = starts.agent_of(agent, start)?;
            if matches!(own, AgentSpec::Workspace(_)) {
                let message = "several starts would edit one folder: use a `command` agent";
                return Err(Problem::new("starts", message).into());
            }
            let spec = LoopSpec { agent: Some(own), ..spec.clone() };
            setups.push(Setup::new(&spec, task.map(str::to_owned), base, client)?);
        }
        let hashes: Vec<&str> = setups.iter().map(|setup| setup.config_hash.as_str()).collect();
        let identity = serde_json::json!({ "starts": starts, "setups": hashes });
        Ok(Self {
            config_hash: Fingerprint::of("starts", &identity).to_string(),
            spec: starts,
            setups,
        })
    }

    /// The first start: what all have in common can be read from it.
    #[must_use]
    pub fn first(&self) -> &Setup {
        &self.setups[0]
    }

    /// A hash of all that makes this run this run.
    #[must_use]
    pub fn config_hash(&self) -> &str {
        &self.config_hash
    }

    /// All of them.
    #[must_use]
    pub fn setups(&self) -> &[Setup] {
        &self.setups
    }
}

/// Tells of one start, and asks nobody: a start that asks waits.
struct Told<'a, 'b> {
    start: u32,
    inner: &'a Mutex<&'b mut dyn Watcher>,
}

impl Watcher for Told<'_, '_> {
    fn notice(&mut self, notice: &Notice<'_>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.notice(&Notice::Start { start: self.start, notice });
    }

    fn ask(&mut self, _: &Question<'_>) -> Option<Answer> {
        None
    }
}

/// Runs the starts to their end, or goes on with them.
///
/// # Errors
/// As of one loop.
pub async fn run(
    starts: &Starts,
    options: &Options,
    watcher: &mut dyn Watcher,
) -> Result<Report, LoopError> {
    let (log, lines, torn) = match &options.resume {
        None => (Log::create(&options.loops, &options.run)?, Vec::new(), Vec::new()),
        Some(run) => Log::open(&options.loops, run)?,
    };
    let run = log.run().to_owned();
    watcher.notice(&Notice::Began { run: &run, generations: 0 });
    let mut warnings: Vec<String> = torn;
    for warning in starts.setups.iter().flat_map(|setup| &setup.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    for warning in &warnings {
        watcher.notice(&Notice::Warning(warning));
    }
    let limits = &starts.first().policy.limits;
    let ledger = Arc::new(Ledger::new(LedgerLimits {
        micro_dollars: limits.micro_dollars,
        tokens: limits.tokens,
        calls: None,
    }));
    let mut group = Group {
        starts,
        options,
        watcher: Mutex::new(watcher),
        folder: options.loops.join(&run),
        run,
        log,
        ledger,
        before_ms: 0,
        began: Instant::now(),
        paused: Duration::ZERO,
        drops: Vec::new(),
        finals: BTreeMap::new(),
        resumed: 0,
        told_end: false,
        warnings,
    };
    group.take_up(lines)?;
    group.take_answer()?;
    group.drive().await
}

struct Group<'a, 'b> {
    starts: &'a Starts,
    options: &'a Options,
    watcher: Mutex<&'b mut dyn Watcher>,
    run: String,
    /// The folder of the starts' logs.
    folder: std::path::PathBuf,
    log: Log,
    ledger: Arc<Ledger>,
    before_ms: u64,
    began: Instant,
    /// The time that people took.
    paused: Duration,
    /// Starts that were dropped, in the order of the drops, and after how many outputs.
    drops: Vec<(Vec<u32>, u32)>,
    /// The fresh rulings on finalists.
    finals: BTreeMap<u32, Ruling>,
    resumed: u32,
    told_end: bool,
    warnings: Vec<String>,
}

impl Group<'_, '_> {
    /// Notes what has happened already: in the group's own log, and in those of the starts what
    /// was spent.
    fn take_up(&mut self, lines: Vec<Line>) -> Result<(), LoopError> {
        let mut spent = Spent::default();
        let mut note = |line: &Line| {
            spent.tokens = spent.tokens.max(line.spent.tokens);
            spent.micro_dollars = spent.micro_dollars.max(line.spent.micro_dollars);
        };
        for start in 1..=self.starts.setups.len() as u32 {
            let path = self.folder.join(self.name(start)).join("events.jsonl");
            if let Some(last) = path
                .is_file()
                .then(|| log::read(&path))
                .transpose()?
                .and_then(|own| own.into_iter().next_back())
            {
                note(&last);
                self.before_ms = self.before_ms.max(last.elapsed_ms);
            }
        }
        let fresh = lines.is_empty();
        for (i, line) in lines.into_iter().enumerate() {
            note(&line);
            self.before_ms = self.before_ms.max(line.elapsed_ms);
            match line.entry {
                Entry::Started { config_hash, .. }
                    if i == 0 && config_hash == self.starts.config_hash => {}
                Entry::Started { .. } if i == 0 => {
                    return Err(LoopError::Changed { run: self.run.clone() });
                }
                _ if i == 0 => return Err(LoopError::NoBeginning { run: self.run.clone() }),
                Entry::Dropped { starts, after } => self.drops.push((starts, after)),
                Entry::Final { start, ruling } => {
                    self.finals.insert(start, *ruling);
                }
                Entry::Decided { decision, .. } if decision == RESUMED => self.resumed += 1,
                Entry::Finished { outcome } => {
                    self.told_end = outcome.reason != Reason::Cancelled;
                }
                _ => {}
            }
        }
        if spent != Spent::default() {
            let usage = Usage { tokens_in: spent.tokens, ..Usage::default() };
            self.ledger.book(&usage, Some(spent.micro_dollars));
        }
        if fresh {
            let first = self.starts.first();
            self.append(Entry::Started {
                format: FORMAT,
                run: self.run.clone(),
                time: jiff::Timestamp::now().to_string(),
                task: first.task.clone(),
                config: first.config.clone(),
                config_hash: self.starts.config_hash.clone(),
                panel: first.panel.fingerprint().to_string(),
                file: self.options.file.clone(),
                limits: Some(first.policy.limits),
                snapshot: None,
            })?;
        } else if !self.told_end {
            self.resumed += 1;
            self.append(Entry::Decided { generation: 0, decision: RESUMED.to_owned() })?;
        }
        Ok(())
    }

    fn name(&self, start: u32) -> String {
        format!("{}-start-{start}", self.run)
    }

    fn elapsed_ms(&self) -> u64 {
        let here = self.began.elapsed().saturating_sub(self.paused);
        self.before_ms + here.as_millis() as u64
    }

    fn append_at(&mut self, elapsed_ms: u64, entry: Entry) -> Result<(), LogError> {
        let totals = self.ledger.totals();
        let (tokens, micro_dollars) = (totals.tokens_at_most(), totals.micro_dollars_at_most());
        let spent = Spent { tokens, micro_dollars };
        self.log.append(elapsed_ms, spent, entry)
    }

    fn append(&mut self, entry: Entry) -> Result<(), LogError> {
        self.append_at(self.elapsed_ms(), entry)
    }

    fn warn(&mut self, text: String) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.notice(&Notice::Warning(&text));
        drop(watcher);
        self.warnings.push(text);
    }

    async fn drive(mut self) -> Result<Report, LoopError> {
        let mut kept_back = self.keep_back();
        let mut known: BTreeMap<u32, Driven> = BTreeMap::new();
        let mut live: Vec<u32> = (1..=self.starts.setups.len() as u32).collect();
        let mut cap = self.starts.spec.generations;
        // What an earlier process has dropped stays so, whatever the others have done since.
        for (dropped, after) in self.drops.clone() {
            self.stage(&dropped, Some(after), &mut known).await?;
            live.retain(|start| !dropped.contains(start));
            cap = after + self.starts.spec.generations;
        }
        loop {
            let last = live.len() <= FINALISTS;
            self.stage(&live, (!last).then_some(cap), &mut known).await?;
            if self.options.cancel.is_cancelled() {
                return self.finish(&known, &live, Some(Reason::Cancelled));
            }
            // What a person has accepted is judged by nobody afresh.
            if let Some(start) = live.iter().find(|start| is_accepted_by_person(&known[*start])) {
                return self.finish(&known, &[*start], None);
            }
            let waiting = live.iter().any(|start| waits(&known[start]));
            let mut finalists = self.best_first(&live, &known);
            finalists.retain(|start| {
                let all = last && !waiting;
                known[start].report.best.is_some() && (all || is_accepted(&known[start]))
            });
            finalists.truncate(FINALISTS);
            if !finalists.is_empty() {
                kept_back = None;
                self.judge_afresh(&finalists, &known).await?;
                if self.options.cancel.is_cancelled() {
                    return self.finish(&known, &live, Some(Reason::Cancelled));
                }
            }
            let passes = |start: &u32| self.afresh(*start).is_some_and(|(passes, _)| passes);
            if (last && !waiting) || finalists.iter().any(passes) {
                return self.finish(&known, &finalists, None);
            }
            if waiting {
                return self.finish(&known, &live, Some(Reason::AwaitingHuman));
            }
            let keep = live.len().div_ceil(2).max(FINALISTS);
            let dropped = self.best_first(&live, &known).split_off(keep);
            live.retain(|start| !dropped.contains(start));
            self.append(Entry::Dropped { starts: dropped.clone(), after: cap })?;
            self.drops.push((dropped, cap));
            cap += self.starts.spec.generations;
            if kept_back.is_none() {
                kept_back = self.keep_back();
            }
        }
    }

    /// Lets every start go on to its end, to so many outputs, or to a question that nobody here
    /// answers.
    async fn stage(
        &mut self,
        live: &[u32],
        pause_after: Option<u32>,
        known: &mut BTreeMap<u32, Driven>,
    ) -> Result<(), LoopError> {
        let mut open: Vec<u32> = live
            .iter()
            .copied()
            .filter(|start| known.get(start).is_none_or(|driven| driven.paused))
            .collect();
        while !open.is_empty() {
            self.go_on(&open, pause_after, known).await?;
            let cancelled = self.options.cancel.is_cancelled();
            open = if cancelled { Vec::new() } else { self.ask(known)? };
        }
        Ok(())
    }

    /// Lets these starts go on, side by side.
    async fn go_on(
        &self,
        open: &[u32],
        pause_after: Option<u32>,
        known: &mut BTreeMap<u32, Driven>,
    ) -> Result<(), LoopError> {
        let elapsed_ms = self.elapsed_ms();
        let each = open.iter().map(|start| async move {
            let setup = &self.starts.setups[*start as usize - 1];
            let name = self.name(*start);
            let begun = self.folder.join(&name).join("events.jsonl").is_file();
            let options = Options {
                loops: self.folder.clone(),
                resume: begun.then(|| name.clone()),
                run: name,
                file: None,
                answer: None,
                cancel: self.options.cancel.clone(),
                replies: Arc::clone(&self.options.replies),
            };
            let part = Part {
                start: *start,
                ledger: Some(Arc::clone(&self.ledger)),
                pause_after,
                elapsed_ms,
            };
            let mut told = Told { start: *start, inner: &self.watcher };
            (*start, run_part(setup, &options, &part, &mut told).await)
        });
        for (start, driven) in futures::future::join_all(each).await {
            known.insert(start, driven?);
        }
        Ok(())
    }
}
