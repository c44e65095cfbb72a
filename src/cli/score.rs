//! `venire score`: one case, its votes and its median.

use clap::Args;

use super::Global;
use super::answer::AnswerArgs;
use super::exit::Exit;
use super::printer::{Printer, plural, table};
use super::summary::{degraded, missing_flags, number, panel_score, profile, reason, vote};
use crate::ruling::Ruling;

/// Judge one answer: each judge's vote, and their median
///
/// Example: `venire score -c panel.toml --input @task.txt answer.txt`
#[derive(Debug, Args)]
pub(super) struct ScoreArgs {
    #[command(flatten)]
    answer: AnswerArgs,
    /// Print the ruling with its verdicts as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    args: &ScoreArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let judged = args.answer.judge(global, printer).await?;
    if args.json {
        printer.json(&judged.ruling)?;
    } else {
        printer.result(&text(&judged.ruling));
    }
    Ok(judged.exit())
}

fn text(ruling: &Ruling) -> String {
    let rows = ruling
        .votes
        .iter()
        .map(|v| {
            let verdict = ruling.verdicts.iter().find(|verdict| verdict.judge == v.judge);
            let said = verdict.and_then(|verdict| {
                verdict.detail.clone().or_else(|| verdict.feedback.first().cloned())
            });
            let said = said.unwrap_or_default().replace('\n', " ");
            let mut row = vec![v.judge.clone(), vote(v)];
            if ruling.profile.is_some() {
                row.push(v.mapped.map_or_else(|| "-".to_owned(), |m| format!("{m:.2}")));
            }
            row.push(said);
            row
        })
        .collect();
    let mut text = if ruling.profile.is_some() {
        table(&["judge", "vote", "mapped", "said"], rows, &[1, 2])
    } else {
        table(&["judge", "vote", "said"], rows, &[1])
    };
    let measured = ruling.criteria.iter().filter(|criterion| criterion.score.is_some());
    let criteria: Vec<Vec<String>> = measured
        .map(|criterion| {
            let passed = match criterion.passed {
                Some(true) => "passed",
                Some(false) => "failed",
                None => "",
            };
            vec![criterion.name.clone(), number(criterion.score), passed.to_owned()]
        })
        .collect();
    if !criteria.is_empty() {
        text.push_str("\n\n");
        text.push_str(&table(&["criterion", "median", ""], criteria, &[1]));
    }
    text.push_str(&format!(
        "\n\nscore {}  {}  {}\n",
        panel_score(ruling),
        ruling.decision.name(),
        reason(ruling)
    ));
    text.push_str(&format!(
        "{} of {}{}",
        ruling.votes_used,
        plural(u64::from(ruling.votes_declared), "vote", "votes"),
        ruling.spread.map(|spread| format!(", spread {spread:.2}")).unwrap_or_default(),
    ));
    if let Some(own) = &ruling.profile {
        text.push_str(&format!(
            "; raw score {}, tiebreak {}",
            number(ruling.raw_score),
            number(ruling.tiebreak)
        ));
        if let Some(label) = own.expected_label {
            text.push_str(&format!(", expected label {label:.2}"));
        }
    }
    if let Some(degraded) = degraded(ruling) {
        text.push_str(&format!("; {degraded}"));
    }
    if let Some(profile) = profile(ruling) {
        text.push_str(&format!("\n{profile}"));
    }
    let flags = missing_flags(ruling);
    if !flags.is_empty() {
        text.push_str(&format!("\nnext: judges without a vote compare with {}", flags.join(", ")));
    }
    text
}
