//! One event from its payload to its answer.
//!
//! Everything that can go wrong on the way ends in an answer by the policy and an outcome that
//! says so, never in a crash. Time is bounded below the host's own limit, since a hook that
//! the host kills has let the agent stop.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use super::answer::{Answer, Reply};
use super::event::{Event, EventKind, ToolUse};
use super::host::Host;
use super::ledger::{Answered, Ledger, LedgerError};
use super::outcome::{Cause, Outcome};
use super::policy::{Finding, Limits, Step};
use super::verdicts::Verdicts;
use super::words::{chain, words};
use super::work::{OutputFrom, latest, written};
use super::workspace::Workspace;
use crate::case::Case;
use crate::panel::spec::JudgeSpec;
use crate::panel::{Panel, PanelSpec};
use crate::provider::CallContext;
use crate::report::advice::{Reader, advice};
use crate::ruling::{Decision, Ruling};

/// How long judges may take over one use of a tool.
const TOOL_TIME: Duration = Duration::from_secs(1);

/// Which judges are seated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seating {
    /// All of them.
    Whole,
    /// The rules and commands alone, which cost nothing and say the same each time.
    Deterministic,
}

impl Seating {
    /// Takes the seating over into a panel, and lets checks without a folder of their own run
    /// in the workspace.
    pub fn put(self, spec: &mut PanelSpec, workspace: &Path) {
        if self == Self::Deterministic {
            spec.judge
                .retain(|seat| matches!(seat.judge, JudgeSpec::Rule(_) | JudgeSpec::Command(_)));
            spec.quorum = None;
            // It was fitted for the whole panel.
            spec.profile = None;
        }
        crate::control::setup::run_checks_in(spec, workspace);
    }
}

/// What a hook judges with.
pub trait Bench: Send + Sync {
    /// Seats the panel for a workspace.
    ///
    /// # Errors
    /// When it can't be seated, in words.
    fn seat(&self, workspace: &Path, seating: Seating) -> Result<Panel, String>;

    /// What surrounds a judgement, with the micro-dollars that the session has spent.
    ///
    /// # Errors
    /// When replies can't be kept, in words.
    fn context(&self, panel: &Panel, spent: u64, until: Instant) -> Result<CallContext, String>;
}

/// A hook as it is configured.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The host.
    pub host: Host,
    /// What is bounded.
    pub limits: Limits,
    /// When there has to be an answer.
    pub until: Instant,
    /// When the process began, in milliseconds since 1970.
    pub started_ms: u64,
    /// Where ledgers and rulings are kept; `.venire/hooks` in the workspace when `None`.
    pub state: Option<PathBuf>,
    /// The task, in place of what the host says.
    pub task: Option<String>,
    /// What is judged.
    pub output: OutputFrom,
    /// Whether rulings are kept and used again.
    pub use_cache: bool,
    /// A file for the outcome, beside the ledger.
    pub outcome: Option<PathBuf>,
    /// The session, for hosts that give none.
    pub session: Option<String>,
    /// What went wrong before there was a hook: reported in place of a judgement.
    pub fault: Option<String>,
}

/// What became of a judgement.
struct Judged {
    finding: Finding,
    outcome: Outcome,
    ruling: Option<Ruling>,
    /// A hash of what was judged.
    what: Option<String>,
    micro_dollars: u64,
}

impl Judged {
    fn failed(outcome: Outcome, detail: impl Into<String>) -> Self {
        let outcome = Outcome { detail: Some(detail.into()), ..outcome };
        let finding = Finding::Undecided;
        Self { finding, outcome, ruling: None, what: None, micro_dollars: 0 }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// Where a workspace's ledgers are when nothing else is said.
pub(super) fn state_folder(root: &Path) -> PathBuf {
    root.join(".venire").join("hooks")
}

impl Hook {
    /// Answers one event.
    pub async fn answer(&self, payload: &str, bench: &dyn Bench) -> Reply {
        let (event, fault) = match Event::read(self.host, payload) {
            Ok(event) => (event, None),
            Err(error) => (Event::bare(EventKind::Stop, "unreadable"), Some(error.to_string())),
        };
        let fault = self.fault.clone().or(fault);
        if event.kind == EventKind::Other {
            return Reply::default();
        }
        let here = event.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        let (workspace, fault) = match Workspace::find(&here) {
            Ok(workspace) => (workspace, fault),
            Err(error) => match Workspace::find(Path::new(".")) {
                Ok(workspace) => (workspace, Some(fault.unwrap_or_else(|| error.to_string()))),
                Err(_) => return self.unkept(&event, error.to_string()),
            },
        };
        if let (EventKind::ToolUsed, Some(tool)) = (event.kind, &event.tool) {
            return self.tool(&event, tool, &workspace, bench).await;
        }
        let state = self.state.clone().unwrap_or_else(|| state_folder(workspace.root()));
        let workspace = workspace.with_index(state.join("index"));
        let session = event.session.clone().or_else(|| self.session.clone());
        let session = session.unwrap_or_else(|| format!("folder {}", workspace.root().display()));
        let mut ledger = match Ledger::open(&state, self.host, &session, self.until).await {
            Ok(ledger) => ledger,
            Err(error) => return self.unkept(&event, chain(&error)),
        };
        match event.kind {
            EventKind::Prompt => {
                self.begin(&event, &workspace, &mut ledger).await;
                Reply::default()
            }
            _ => self.stop(&event, fault, payload, &workspace, &state, &mut ledger, bench).await,
        }
    }

    /// A turn begins: what is asked, and what the folder held before. Whatever fails here is
    /// found again when the agent stops, and must not keep a person's prompt back.
    async fn begin(&self, event: &Event, workspace: &Workspace, ledger: &mut Ledger) {
        let prompt = event.prompt.as_deref().unwrap_or_default();
        if ledger.session.is_own_words(prompt) {
            return;
        }
        let until = tokio::time::timeout_at(self.until, workspace.tree());
        let base = until.await.ok().and_then(Result::ok).flatten();
        ledger.session.begin(event.prompt.clone(), event.prompt_id.clone(), base);
        if let Err(error) = ledger.save() {
            tracing::warn!("{}", chain(&error));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one event with all that it is answered from")]
    async fn stop(
        &self,
        event: &Event,
        fault: Option<String>,
        payload: &str,
        workspace: &Workspace,
        state: &Path,
        ledger: &mut Ledger,
        bench: &dyn Bench,
    ) -> Reply {
        let hash = blake3::hash(payload.as_bytes()).to_hex()[..32].to_owned();
        // A second hook with the same event: hosts start all that match at once.
        if let Some(last) = &ledger.session.answered
            && last.payload == hash
            && last.at_ms >= self.started_ms
        {
            return last.reply.clone();
        }
        let killed = ledger.session.outcome.as_ref().is_some_and(|o| o.cause == Cause::Judging);
        if killed {
            ledger.session.lost = ledger.session.lost.saturating_add(1);
        }
        let mut outcome = Outcome {
            host: Some(self.host.name().to_owned()),
            event: Some(event.name.clone()),
            session: Some(ledger.session.session.clone()),
            agent: event.agent.clone(),
            stop_hook_active: event.stop_hook_active,
            on_undecided: self.limits.on_undecided,
            ..Outcome::new(Cause::Judging)
        };
        if killed {
            outcome.warnings.push("the hook before this one was killed while it judged".into());
        }
        let agent = (event.kind == EventKind::SubagentStop)
            .then(|| event.agent.clone().unwrap_or_else(|| "subagent".into()));
        let turn = ledger.session.turn(agent.as_deref(), event.prompt_id.as_deref());
        let latest = (self.host == Host::GeminiCli).then(|| latest(event, turn)).flatten();
        let latest = latest.map(|answer| Event { answer: Some(answer), ..event.clone() });
        let event = latest.as_ref().unwrap_or(event);
        ledger.session.outcome = Some(outcome.clone());
        if let Err(error) = ledger.save().and_then(|()| self.publish(&outcome)) {
            return self.unkept(event, chain(&error));
        }
        let judged = match (fault, &event.unfinished) {
            (Some(fault), _) => Judged::failed(Outcome { cause: Cause::Error, ..outcome }, fault),
            (None, Some(why)) => {
                let outcome = Outcome { detail: Some(why.clone()), ..outcome };
                let finding = Finding::Unfinished;
                Judged { finding, outcome, ruling: None, what: None, micro_dollars: 0 }
            }
            (None, None) => {
                let judging = self.judge(event, outcome.clone(), workspace, state, ledger, bench);
                let guarded = AssertUnwindSafe(judging).catch_unwind();
                match tokio::time::timeout_at(self.until, guarded).await {
                    Ok(Ok(judged)) => judged,
                    Ok(Err(_)) => Judged::failed(
                        Outcome { cause: Cause::Error, ..outcome },
                        "a fault of this program",
                    ),
                    Err(_) => Judged::failed(outcome, "the hook's time was up"),
                }
            }
        };
        self.settle(event, agent.as_deref(), hash, judged, ledger)
    }

    /// Counts, answers, and writes both down before the host is told.
    fn settle(
        &self,
        event: &Event,
        agent: Option<&str>,
        payload: String,
        judged: Judged,
        ledger: &mut Ledger,
    ) -> Reply {
        let Judged { finding, mut outcome, ruling, what, micro_dollars } = judged;
        let now = now_ms();
        let session = &mut ledger.session;
        session.micro_dollars = session.micro_dollars.saturating_add(micro_dollars);
        let session_blocks = session.blocks;
        let turn = match agent {
            Some(agent) => session.agents.entry(agent.to_owned()).or_default(),
            None => &mut session.turn,
        };
        let same = turn.told.is_some() && what.is_some() && turn.judged == what;
        turn.unchanged = if same { turn.unchanged.saturating_add(1) } else { 0 };
        turn.judged = what;
        let mut step = self.limits.step(finding, turn, session_blocks, now);
        if turn.spent && matches!(step, Step::Block(_)) {
            // Another hook of the host makes the agent go on after a limit of ours.
            step = Step::Note(Cause::BlocksSpent);
        }
        let text = words(step, turn.blocks, ruling.as_ref(), outcome.detail.as_deref());
        let answer = match step {
            Step::Allow(_) => Answer::Allow,
            Step::Note(_) => Answer::Note(text),
            Step::Block(_) => Answer::Block(text),
            Step::End(_) => Answer::End(text),
        };
        match &answer {
            Answer::Block(text) => {
                turn.blocks = turn.blocks.saturating_add(1);
                turn.first_block_ms.get_or_insert(now);
                turn.told = Some(text.clone());
                session.blocks = session.blocks.saturating_add(1);
            }
            _ if finding == Finding::Unfinished => {}
            _ => {
                turn.told = None;
                turn.spent |= !matches!(step.cause(), Cause::Accepted | Cause::Undecided);
            }
        }
        outcome.blocks = turn.blocks;
        let reply = answer.encode(self.host, event.kind);
        outcome.session_blocks = session.blocks;
        // What went wrong says more than that there is no decision.
        if outcome.cause != Cause::Error || step.cause() != Cause::Undecided {
            outcome.cause = step.cause();
        }
        outcome.accepted = finding == Finding::Accepted;
        outcome.answer = answer.name().to_owned();
        outcome.exit_code = reply.exit_code;
        outcome.time = jiff::Timestamp::now().to_string();
        session.answered = Some(Answered { payload, at_ms: now_ms(), reply: reply.clone() });
        session.outcome = Some(outcome.clone());
        match ledger.save().and_then(|()| self.publish(&outcome)) {
            Ok(()) => reply,
            Err(error) => self.unkept(event, chain(&error)),
        }
    }

    /// Judges the work as it is now.
    async fn judge(
        &self,
        event: &Event,
        mut outcome: Outcome,
        workspace: &Workspace,
        state: &Path,
        ledger: &mut Ledger,
        bench: &dyn Bench,
    ) -> Judged {
        let panel = match bench.seat(workspace.root(), Seating::Whole) {
            Ok(panel) => panel,
            Err(error) => {
                return Judged::failed(Outcome { cause: Cause::Error, ..outcome }, error);
            }
        };
        let fingerprint = panel.fingerprint().to_string();
        let first = ledger.session.panel.get_or_insert_with(|| fingerprint.clone());
        if *first != fingerprint {
            outcome.panel_changed = true;
            outcome
                .warnings
                .push("the panel has changed since the session's first judgement".into());
        }
        outcome.panel = Some(fingerprint);
        let (case, tree) = match self.case(event, &mut outcome, workspace, &ledger.session).await {
            Ok(case) => case,
            Err(error) => {
                return Judged::failed(Outcome { cause: Cause::Error, ..outcome }, error);
            }
        };
        let what = Some(format!("{}-{}", case.content_id(), tree.as_deref().unwrap_or("")));
        let verdicts = Verdicts::in_folder(state);
        let key =
            tree.as_deref().map(|tree| Verdicts::key(&panel, &case, (workspace.root(), tree)));
        let kept = key.as_ref().filter(|_| self.use_cache).and_then(|key| verdicts.get(key));
        let (ruling, micro_dollars, cost_usd) = match kept {
            Some(ruling) => {
                ledger.session.cached = ledger.session.cached.saturating_add(1);
                outcome.cached = true;
                (ruling, 0, Some(0.0))
            }
            None => {
                let spent = ledger.session.micro_dollars;
                // The panel's time ends first, so that the votes that are in are still counted.
                let left = self.until.saturating_duration_since(Instant::now());
                let until = self.until - (left / 10).min(Duration::from_secs(1));
                let context = match bench.context(&panel, spent, until) {
                    Ok(context) => context,
                    Err(error) => {
                        return Judged::failed(Outcome { cause: Cause::Error, ..outcome }, error);
                    }
                };
                ledger.session.judgements = ledger.session.judgements.saturating_add(1);
                let ruling = panel.judge(&case, &context).await;
                if let (Some(key), true) = (&key, self.use_cache)
                    && let Err(error) = verdicts.put(key, &ruling)
                {
                    outcome.warnings.push(format!("the ruling is not kept: {error}"));
                }
                let totals = context.ledger.totals();
                (ruling, totals.micro_dollars_at_most(), totals.cost_usd())
            }
        };
        outcome.rule(&ruling);
        outcome.cost_usd = cost_usd;
        let finding = match ruling.decision {
            Decision::Accept => Finding::Accepted,
            Decision::Reject => Finding::Rejected,
            Decision::Undecided => Finding::Undecided,
        };
        Judged { finding, outcome, ruling: Some(ruling), what, micro_dollars }
    }

    /// One file that a tool wrote, by the judges that cost nothing. Silence unless they
    /// reject: whatever else there is to say is said when the agent stops.
    async fn tool(
        &self,
        event: &Event,
        tool: &ToolUse,
        workspace: &Workspace,
        bench: &dyn Bench,
    ) -> Reply {
        let Some(text) = tool.file.as_deref().and_then(|file| written(file, workspace)) else {
            return Reply::default();
        };
        let Ok(panel) = bench.seat(workspace.root(), Seating::Deterministic) else {
            return Reply::default();
        };
        let mut case = Case { output: Some(text), ..Case::default() };
        case.id = case.content_id();
        let until = self.until.min(Instant::now() + TOOL_TIME);
        let Ok(context) = bench.context(&panel, 0, until) else { return Reply::default() };
        let judging = AssertUnwindSafe(panel.judge(&case, &context)).catch_unwind();
        match tokio::time::timeout_at(until, judging).await {
            Ok(Ok(ruling)) if ruling.decision == Decision::Reject => {
                let said = advice(&ruling, Reader::Agent);
                Answer::Block(format!("venire: {said}")).encode(self.host, event.kind)
            }
            _ => Reply::default(),
        }
    }

    /// The answer when nothing can be counted: never to go on, since that could not be bounded.
    fn unkept(&self, event: &Event, detail: String) -> Reply {
        let answer = Answer::Note(format!(
            "venire: NOT JUDGED, the agent may stop: {detail}. Nothing was accepted."
        ));
        let reply = answer.encode(self.host, event.kind);
        let outcome = Outcome {
            host: Some(self.host.name().to_owned()),
            event: Some(event.name.clone()),
            session: event.session.clone().or_else(|| self.session.clone()),
            answer: answer.name().to_owned(),
            detail: Some(detail),
            on_undecided: self.limits.on_undecided,
            ..Outcome::new(Cause::NoLedger)
        };
        if let Err(error) = self.publish(&outcome) {
            tracing::warn!("{}", chain(&error));
        }
        reply
    }

    fn publish(&self, outcome: &Outcome) -> Result<(), LedgerError> {
        let Some(path) = &self.outcome else { return Ok(()) };
        outcome.write(path).map_err(|source| LedgerError::Io {
            what: "write",
            path: path.clone(),
            source,
        })
    }
}
