//! The tool `gate_status`: how the last judgements ended, as they are recorded.
//!
//! It looks and judges nothing, and what it says outlives the server: the store has the
//! answers that were judged here and the runs, and beside it lie the loops, the sessions of
//! coding agents' hooks and the outcomes of gates.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::definition::{self, Definition};
use super::score::summary;
use crate::control::log::{Kept, kept};
use crate::control::{Class, Reason};
use crate::report::words::plural;
use crate::ruling::{Decision, Ruling};
use crate::score::Score;
use crate::serve::hook::{Cause, Gate, Gates, Outcome as Found, Session, session_files};
use crate::store::{Decisions, ONE_BY_ONE, RunRecord, Store, StoreError};

pub(super) const NAME: &str = "gate_status";

/// How many outcomes are told when nothing is said.
const FEW: usize = 5;
/// How many outcomes are told at most.
const MOST: usize = 50;

/// What `gate_status` takes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// A run, a loop or a coding agent's session: its id, or the beginning of it; or a gate's
    /// outcome file, or the end of its path. Without it, the newest ones.
    #[serde(default)]
    #[schemars(with = "String")]
    id: Option<String>,
    /// Outcomes at most, the newest first: 5 where nothing is said, 50 at most.
    #[serde(default)]
    #[schemars(with = "usize", range(min = 1, max = 50))]
    limit: Option<usize>,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Status {
    /// The newest outcome in one line.
    summary: String,
    /// The newest first.
    outcomes: Vec<Outcome>,
}

/// What something was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Answers that the tool `score` judged, one after the other.
    Scored,
    /// A panel over a data set.
    Run,
    /// A loop of an agent and a panel.
    Loop,
    /// A coding agent's session that a hook gates.
    Hook,
    /// What `venire gate` judged for a file of outcomes.
    Gate,
}

/// How one thing ended, or how far it has come.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Outcome {
    /// What it was.
    kind: Kind,
    /// Its id; for a gate its outcome file.
    id: String,
    /// When it began, or when a hook or gate judged last, in UTC.
    time: String,
    /// `running`, `interrupted` or `finished`; what says `running` may have died.
    state: String,
    /// The last decision; null where there is none, and for a run over many cases.
    decision: Option<Decision>,
    /// The last score; null where nothing was decided.
    score: Option<Score>,
    /// Cases accepted.
    accepted: u64,
    /// Cases rejected.
    rejected: u64,
    /// Cases that could not be decided.
    undecided: u64,
    /// In one line.
    summary: String,
}

pub(super) fn definition() -> Definition {
    Definition {
        name: NAME,
        title: "What was judged last",
        description: "Says how the last judgements ended, from venire's records: answers judged by `score`, sessions gated by a hook, gates with an outcome file, runs and loops, the newest first. Judges nothing and costs nothing.".into(),
        input_schema: definition::input::<Arguments>(),
        output_schema: definition::output::<Status>(),
        reads_only: true,
        open_world: false,
    }
}

/// Looks into the store, and into the folders `loops`, `hooks` and `gates` of `folder`.
pub(super) fn look(arguments: &Arguments, store: &Path, folder: &Path) -> Result<Status, String> {
    let limit = arguments.limit.unwrap_or(FEW);
    if !(1..=MOST).contains(&limit) {
        return Err(format!("`limit` is {limit}: expected 1 to {MOST}"));
    }
    let wanted = |id: &str| arguments.id.as_ref().is_none_or(|begins| id.starts_with(begins));
    let mut outcomes = Vec::new();
    match Store::open(store) {
        Ok(store) => {
            let runs = store.runs().map_err(words)?;
            for run in runs.iter().filter(|run| wanted(&run.id)).take(limit) {
                outcomes.push(of_run(&store, run).map_err(words)?);
            }
        }
        Err(StoreError::Missing { .. }) => {}
        Err(error) => return Err(words(error)),
    }
    let loops = kept(&folder.join("loops"));
    outcomes.extend(loops.iter().filter(|own| wanted(&own.run)).take(limit).map(of_loop));
    let sessions = session_files(&folder.join("hooks")).map_err(|error| error.to_string())?;
    outcomes.extend(sessions.iter().filter(|own| wanted(&own.session)).filter_map(of_session));
    let gates = Gates::in_folder(folder).all();
    let gates = gates.map_err(|error| format!("failed to read the outcomes of gates: {error}"))?;
    let wanted = |file: &str| arguments.id.as_ref().is_none_or(|part| is_part(file, part));
    outcomes.extend(gates.iter().filter(|own| wanted(&own.file)).map(of_gate));
    outcomes.sort_by(|a, b| (&b.time, &b.id).cmp(&(&a.time, &a.id)));
    outcomes.truncate(limit);
    let summary = match (outcomes.first(), &arguments.id) {
        (Some(newest), _) => newest.summary.clone(),
        (None, Some(id)) => {
            return Err(format!(
                "no run, loop, session or gate is known as `{id}`: call `{NAME}` without `id` for those there are"
            ));
        }
        (None, None) => "nothing was judged yet".into(),
    };
    Ok(Status { summary, outcomes })
}

pub(super) fn words(error: StoreError) -> String {
    error.to_string()
}

fn of_run(store: &Store, run: &RunRecord) -> Result<Outcome, StoreError> {
    let decisions = store.decisions(run.number)?;
    let scored = run.data == ONE_BY_ONE;
    let last = match decisions.last.filter(|_| scored) {
        Some(position) => store.ruling(run.number, position)?,
        None => None,
    };
    let Decisions { accepted, rejected, undecided, .. } = decisions;
    let counts = format!("{accepted} accepted, {rejected} rejected, {undecided} undecided");
    let summary = match &last {
        Some(ruling) => format!(
            "{}; of {} so far {counts}",
            self::summary(ruling),
            plural(accepted + rejected + undecided, "answer", "answers")
        ),
        None => format!(
            "run of `{}` over `{}`: {}, {counts}",
            run.panel_name,
            run.data,
            run.state.name()
        ),
    };
    let decided = |ruling: &&Ruling| ruling.decision != Decision::Undecided;
    Ok(Outcome {
        kind: if scored { Kind::Scored } else { Kind::Run },
        id: run.id.clone(),
        time: run.created.clone(),
        state: run.state.name().into(),
        decision: last.as_ref().map(|ruling| ruling.decision),
        score: last.as_ref().filter(decided).and_then(|ruling| ruling.score),
        accepted,
        rejected,
        undecided,
        summary,
    })
}

/// Whether a text names a file: by all of its path, or by whole parts at the end of it.
fn is_part(file: &str, text: &str) -> bool {
    !text.is_empty() && Path::new(file).ends_with(text)
}

/// A coding agent's session; `None` before it was judged.
fn of_session(own: &Session) -> Option<Outcome> {
    let found = own.outcome.as_ref()?;
    let decision = found.decision.unwrap_or(Decision::Undecided);
    let summary = format!(
        "{decision} ({}) in a session of {}, which was answered `{}`",
        found.cause.name(),
        own.host,
        found.answer
    );
    // A host that was told so makes its agent go on.
    let state = if found.answer == "block" { "running" } else { "finished" };
    Some(of_found(Kind::Hook, &own.session, found, state, summary))
}

fn of_gate(own: &Gate) -> Outcome {
    let found = &own.outcome;
    let decision = found.decision.unwrap_or(Decision::Undecided);
    let cause = found.cause.name();
    let (state, summary) = if found.cause == Cause::Judging {
        ("running", format!("a gate that judges, or was killed while it did; see {}", own.file))
    } else {
        let code = found.exit_code;
        let passed =
            if code == 0 && !found.accepted { ", though nothing was accepted" } else { "" };
        let summary = format!("{decision} ({cause}) by a gate that ended with {code}{passed}");
        ("finished", format!("{summary}; see {}", own.file))
    };
    of_found(Kind::Gate, &own.file, found, state, summary)
}

/// What a hook or a gate found. What could not be judged counts as undecided.
fn of_found(kind: Kind, id: &str, found: &Found, state: &str, summary: String) -> Outcome {
    let decision = found.decision.unwrap_or(Decision::Undecided);
    let one = |this: Decision| u64::from(decision == this);
    let decided = decision != Decision::Undecided;
    Outcome {
        kind,
        id: id.to_owned(),
        time: found.time.clone(),
        state: state.to_owned(),
        decision: Some(decision),
        score: found.score.filter(|_| decided).and_then(|score| Score::new(score).ok()),
        accepted: one(Decision::Accept),
        rejected: one(Decision::Reject),
        undecided: one(Decision::Undecided),
        summary,
    }
}

fn of_loop(own: &Kept) -> Outcome {
    let reason = own.end.reason();
    let class = reason.map(Reason::class);
    let decision = class.map(|class| match class {
        Class::Accepted => Decision::Accept,
        Class::NotAccepted => Decision::Reject,
        Class::Undecided | Class::Failed | Class::Waiting | Class::Interrupted => {
            Decision::Undecided
        }
    });
    let one = |this: Decision| u64::from(decision == Some(this));
    let outputs = plural(own.generations, "output", "outputs");
    let summary = match (reason, class) {
        (Some(reason), Some(class)) => {
            format!("loop {class} ({}) after {outputs}", reason.name())
        }
        _ => match &own.damaged {
            Some(why) => format!("the log of the loop is damaged: {why}"),
            None => format!("loop not ended, {outputs} so far"),
        },
    };
    Outcome {
        kind: Kind::Loop,
        id: own.run.clone(),
        time: own.time.clone(),
        state: match class {
            None => own.end.name(),
            Some(Class::Interrupted | Class::Waiting) => "interrupted",
            Some(_) => "finished",
        }
        .into(),
        decision,
        score: None,
        accepted: one(Decision::Accept),
        rejected: one(Decision::Reject),
        undecided: one(Decision::Undecided),
        summary,
    }
}
