//! `venire hook status`: what was really found, whatever a host reported.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::exit::Exit;
use super::printer::{Printer, plural};
use crate::ruling::Decision;
use crate::serve::hook::{Workspace, session_files};

/// Print what was really found, whatever the host reported: exit code 0 accepted, 1 rejected,
/// 3 not judged
///
/// Example: `claude -p "$TASK"; venire hook status`
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Where ledgers are kept, instead of `.venire/hooks` in the workspace
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// A session; the one that was answered last when absent
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &StatusArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let state = match &args.state {
        Some(state) => state.clone(),
        None => Workspace::find(Path::new("."))?.root().join(".venire").join("hooks"),
    };
    let sessions = session_files(&state)?;
    let wanted = |name: &String| sessions.iter().find(|session| session.session == *name);
    let session = match &args.session {
        Some(name) => Some(
            wanted(name)
                .with_context(|| format!("no session `{name}` in `{}`", state.display()))?,
        ),
        None => sessions.first(),
    };
    let Some((session, outcome)) =
        session.and_then(|session| Some((session, session.outcome.as_ref()?)))
    else {
        printer.result(&format!("nothing was judged: no outcome in `{}`", state.display()));
        return Ok(Exit::Inconclusive);
    };
    if args.json {
        printer.json(outcome)?;
    } else {
        let said = match (outcome.accepted, outcome.decision) {
            (true, _) => "accepted".to_owned(),
            (false, Some(decision)) => format!("not accepted: {decision}"),
            (false, None) => "not judged".to_owned(),
        };
        let mut text = format!(
            "{said} ({}), {} {}, {} of feedback in the last turn, {} in the session",
            outcome.cause.name(),
            session.host,
            session.session,
            plural(outcome.blocks.into(), "round", "rounds"),
            outcome.session_blocks,
        );
        if let (Some(score), Some(threshold)) = (outcome.score, outcome.threshold) {
            text.push_str(&format!("\nscore {score:.2}, threshold {threshold:.2}"));
        }
        for line in outcome.detail.iter().chain(&outcome.warnings).chain(&outcome.feedback) {
            text.push_str(&format!("\n{line}"));
        }
        printer.result(&text);
    }
    Ok(match (outcome.accepted, outcome.decision) {
        (true, _) => Exit::Done,
        (false, Some(Decision::Reject)) => Exit::NotAccepted,
        _ => Exit::Inconclusive,
    })
}
