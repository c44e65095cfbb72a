//! `venire gate`: the decision as an exit code, and what to do next on stdout, for scripts
//! and other people's loops.

use clap::Args;

use super::Global;
use super::answer::{self, AnswerArgs};
use super::exit::Exit;
use super::printer::{Printer, plural};
use super::summary::{missing_flags, number, profile, reason};
use crate::ruling::{Decision, Ruling};

/// Judge one answer for a script: feedback on stdout, the decision in the exit code
///
/// Example: `venire gate -c panel.toml --input @task.txt answer.txt && deploy`
#[derive(Debug, Args)]
pub(super) struct GateArgs {
    #[command(flatten)]
    answer: AnswerArgs,
    /// Print the ruling with its verdicts as JSON
    #[arg(long)]
    json: bool,
}

/// Lines on stdout at most: a loop's next prompt has to hold them.
const MOST_LINES: usize = 40;

pub(super) async fn run(
    args: &GateArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let ruling = args.answer.judge(global, printer).await?;
    if args.json {
        printer.json(&ruling)?;
    } else {
        printer.result(&text(&ruling));
    }
    Ok(answer::exit(&ruling))
}

fn text(ruling: &Ruling) -> String {
    let mut lines = vec![format!(
        "{}: score {}, {} of {}; {}",
        ruling.decision.name(),
        number(ruling.score),
        ruling.votes_used,
        plural(u64::from(ruling.votes_declared), "vote", "votes"),
        reason(ruling)
    )];
    if ruling.degraded {
        lines.push("degraded: a vote is missing".into());
    }
    lines.extend(profile(ruling));
    if ruling.decision == Decision::Accept {
        return lines.join("\n");
    }
    let failed: Vec<_> = ruling.criteria.iter().filter(|c| c.passed == Some(false)).collect();
    if !failed.is_empty() {
        lines.push("failed criteria:".into());
        for criterion in failed {
            let required = if criterion.required { " (required)" } else { "" };
            lines.push(format!("- {}: {}{required}", criterion.name, number(criterion.score)));
        }
    }
    if ruling.decision == Decision::Undecided {
        lines.push("no decision; judges without a vote:".into());
        for vote in ruling.without_vote() {
            let required = if vote.required { " (required)" } else { "" };
            let detail = first_line(ruling.detail_of(&vote.judge));
            lines.push(format!("- {}{required}: {}: {detail}", vote.judge, vote.status));
        }
        lines.push(format!("next: the answer was not rejected; {}", help(ruling)));
    } else if ruling.feedback.is_empty() {
        lines.push("next: the judges gave no reasons; `venire score` shows their votes".into());
    } else {
        lines.push("next, change:".into());
        for finding in &ruling.feedback {
            let criterion =
                finding.criterion.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            let against = match finding.contradicted_by.as_slice() {
                [] => String::new(),
                judges => format!("; {} disagree(s)", judges.join(", ")),
            };
            let text =
                format!("- {criterion}{} [{}{against}]", finding.text, finding.judges.join(", "));
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    if lines.len() > MOST_LINES {
        let left = lines.len() - (MOST_LINES - 1);
        lines.truncate(MOST_LINES - 1);
        lines.push(format!("({left} more lines: `venire score` shows all)"));
    }
    lines.join("\n")
}

/// What gets the judges without a vote to vote.
fn help(ruling: &Ruling) -> String {
    match missing_flags(ruling).as_slice() {
        [] => "make the judges answer and ask again".to_owned(),
        flags => format!("give what the judges compare with: {}", flags.join(", ")),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
