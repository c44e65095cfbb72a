//! `venire gate`: the decision as an exit code, and what to do next on stdout, for scripts
//! and other people's loops.
//!
//! What is done without a decision is the caller's to choose, is said on stdout, and never
//! makes the outcome file say that anything was accepted.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::Global;
use super::answer::{self, AnswerArgs, Judged};
use super::exit::Exit;
use super::hook::OnUndecidedArg;
use super::printer::Printer;
use crate::report::advice::{Reader, advice};
use crate::ruling::{Decision, Ruling};
use crate::serve::hook::{Cause, Gates, Outcome};

/// Judge one answer for a script: feedback on stdout, the decision in the exit code
///
/// Example: `venire gate -c panel.toml --input @task.txt answer.txt && deploy`
#[derive(Debug, Args)]
pub(super) struct GateArgs {
    #[command(flatten)]
    answer: AnswerArgs,
    /// What to do without a decision: no quorum, an outage, a budget spent
    #[arg(long, value_enum, default_value_t = OnUndecidedArg::Fail)]
    on_undecided: OnUndecidedArg,
    /// Write what was really found to this JSON file, in place of what an earlier call wrote;
    /// `gate_status` of `venire mcp` tells of it too
    #[arg(long, value_name = "FILE")]
    outcome: Option<PathBuf>,
    /// Print the ruling with its verdicts as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    args: &GateArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let outcome =
        Outcome { on_undecided: args.on_undecided.into(), ..Outcome::new(Cause::Judging) };
    // What an earlier call found must not stand for this one, however this one ends.
    args.publish(&outcome, global, printer)?;
    match args.judge(global, printer).await {
        Ok((judged, exit)) => {
            args.publish(&args.outcome_of(&judged, exit), global, printer)?;
            Ok(exit)
        }
        Err(error) => {
            let exit_code = super::exit::of_error(&error).code();
            let detail = Some(format!("{error:#}"));
            let cause = Cause::Error;
            let answer = "exit".to_owned();
            let outcome = Outcome { detail, cause, answer, exit_code, ..outcome };
            args.publish(&outcome, global, printer)?;
            Err(error)
        }
    }
}

impl GateArgs {
    async fn judge(&self, global: &Global, printer: &Printer) -> anyhow::Result<(Judged, Exit)> {
        let judged = self.answer.judge(global, printer).await?;
        let exit = match (judged.exit(), self.on_undecided) {
            (Exit::Inconclusive, OnUndecidedArg::Accept) => Exit::Done,
            (Exit::Inconclusive, OnUndecidedArg::Reject) => Exit::NotAccepted,
            (exit, _) => exit,
        };
        let ruling = &judged.ruling;
        if self.json {
            printer.json(ruling)?;
        } else {
            let mut text = advice(ruling, Reader::Person);
            if let Some(policy) = self.policy(ruling) {
                text = format!("{policy}\n{text}");
            }
            printer.result(&text);
        }
        Ok((judged, exit))
    }

    /// The policy in words, where it decided in place of the panel.
    fn policy(&self, ruling: &Ruling) -> Option<&'static str> {
        let undecided = answer::exit(ruling) == Exit::Inconclusive;
        match self.on_undecided {
            OnUndecidedArg::Accept if undecided => {
                Some("NOT JUDGED, let pass by `--on-undecided accept`: nothing was accepted")
            }
            OnUndecidedArg::Reject if undecided => {
                Some("NOT JUDGED, rejected by `--on-undecided reject`")
            }
            _ => None,
        }
    }

    fn outcome_of(&self, judged: &Judged, exit: Exit) -> Outcome {
        let ruling = &judged.ruling;
        let mut outcome = Outcome {
            answer: "exit".to_owned(),
            exit_code: exit.code(),
            on_undecided: self.on_undecided.into(),
            panel: Some(judged.panel.clone()),
            output: Some(if judged.tree.is_some() { "changes" } else { "answer" }.to_owned()),
            workspace: judged.tree.clone(),
            cost_usd: judged.cost_usd,
            ..Outcome::new(match ruling.decision {
                Decision::Accept => Cause::Accepted,
                Decision::Reject => Cause::Rejected,
                Decision::Undecided => Cause::Undecided,
            })
        };
        outcome.rule(ruling);
        outcome
    }

    fn publish(&self, outcome: &Outcome, global: &Global, printer: &Printer) -> anyhow::Result<()> {
        let Some(path) = &self.outcome else { return Ok(()) };
        outcome
            .write(path)
            .with_context(|| format!("failed to write `--outcome {}`", path.display()))?;
        // The caller has its file; that others find it too is worth no failure.
        let folder = global.store.parent().unwrap_or(Path::new(""));
        if let Err(error) = Gates::in_folder(folder).put(path, outcome) {
            printer.warn(&format!("`gate_status` won't tell of this gate: {error}"));
        }
        Ok(())
    }
}
