//! `venire review`: the questions that loops wait on, and a person's answers.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use super::Global;
use super::answer::text_or_file;
use super::exit::Exit;
use super::printer::{Printer, table};
use super::summary::{number, panel_score};
use crate::control::Answer;
use crate::control::driver::Question;
use crate::control::review::{self, Pending};

/// List the questions that loops wait on, or answer one
///
/// Example: `venire review latest --answer reject="the second point is missing"`
#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    /// The run whose question is shown and answered (`latest` for the newest that waits);
    /// without one, all that wait are listed
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The answer, in place of being asked
    #[arg(long, value_name = "accept|reject[=WHY]|continue[=NOTE]|edit=TEXT|@FILE|stop", requires = "run", value_parser = answer)]
    answer: Option<Answer>,
    /// A score of the output in question, between 0 and 1: kept as a label
    #[arg(long, value_name = "SCORE", requires = "run", value_parser = score)]
    score: Option<f64>,
    /// Print what waits as JSON
    #[arg(long)]
    json: bool,
}

/// What can be answered.
const ANSWERS: &str = "accept, reject, reject=WHY, continue[=NOTE], edit=TEXT, edit=@FILE, or stop";

/// Reads an answer. `reject` alone and `stop` end the run; with a reason it goes on.
pub(super) fn answer(text: &str) -> Result<Answer, String> {
    match text.split_once('=').unwrap_or((text, "")) {
        ("accept", "") => Ok(Answer::Accept),
        ("reject" | "stop", "") => Ok(Answer::Reject),
        ("reject", why) => Ok(Answer::RejectWith(why.to_owned())),
        ("continue", note) => Ok(Answer::Continue(note.to_owned())),
        ("edit", output) if !output.is_empty() => {
            text_or_file(output).map(Answer::Edit).map_err(|error| format!("{error:#}"))
        }
        _ => Err(format!("expected {ANSWERS}")),
    }
}

pub(super) fn score(text: &str) -> Result<f64, String> {
    let score = text.parse::<f64>().ok().filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| format!("`{text}` is not a score between 0 and 1"))
}

pub(super) fn run(args: &ReviewArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let loops = super::loop_::loops(global);
    let (waiting, damaged) = review::pending(&loops)?;
    for error in &damaged {
        printer.warn(&error.to_string());
    }
    let Some(run) = &args.run else {
        list(&waiting, args.json, printer)?;
        return Ok(if damaged.is_empty() { Exit::Done } else { Exit::Inconclusive });
    };
    let found = match run.as_str() {
        "latest" => waiting.last(),
        run => waiting.iter().find(|pending| pending.run == run),
    };
    let Some(pending) = found else {
        anyhow::bail!("no question of a run `{run}` waits in `{}`", loops.display());
    };
    let mut label = args.score;
    let mut given = args.answer.clone();
    if given.is_none() && label.is_none() {
        if args.json {
            printer.json(pending)?;
            return Ok(Exit::Waiting);
        }
        printer.result(&shown(&of(pending)));
        if !std::io::stdin().is_terminal() {
            return Ok(Exit::Waiting);
        }
        (given, label) = ask(printer);
    }
    if given.is_none() && label.is_none() {
        return Ok(Exit::Waiting);
    }
    let answered = given.is_some();
    review::answer(&loops, &pending.run, label, given)?;
    if answered {
        let run = &pending.run;
        printer.say(&format!("answered; go on with: venire loop --resume {run}"));
    }
    Ok(if answered { Exit::Done } else { Exit::Waiting })
}

fn of(pending: &Pending) -> Question<'_> {
    Question {
        about: pending.about,
        task: &pending.task,
        generation: pending.generation,
        output: pending.output.as_deref(),
        before: pending.before.as_ref().map(|(_, text)| text.as_str()),
        ruling: pending.ruling.as_ref(),
        disputes: &pending.disputes,
    }
}

fn list(waiting: &[Pending], json: bool, printer: &Printer) -> anyhow::Result<()> {
    if json {
        return printer.json(&waiting);
    }
    if waiting.is_empty() {
        printer.say("no loop waits for a person");
        return Ok(());
    }
    let rows = waiting
        .iter()
        .map(|pending| {
            vec![
                pending.run.clone(),
                pending.generation.to_string(),
                pending.about.to_string(),
                number(pending.ruling.as_ref().and_then(|ruling| ruling.score)),
                pending.asked.clone().unwrap_or_default(),
                crate::text::truncate(pending.task.lines().next().unwrap_or_default(), 60)
                    .to_owned(),
            ]
        })
        .collect();
    let header = ["run", "generation", "about", "score", "asked", "task"];
    printer.result(&table(&header, rows, &[1, 3]));
    Ok(())
}

/// Task, output, what changed, votes and findings.
pub(super) fn shown(question: &Question<'_>) -> String {
    let mut parts = vec![format!("task\n{}", question.task.trim_end())];
    if let Some(output) = question.output {
        parts.push(format!("output {}\n{}", question.generation, output.trim_end()));
        if let Some(before) = question.before {
            let patch = review::difference(before, output);
            parts.push(format!("what differs\n{}", patch.trim_end()));
        }
    }
    if let Some(ruling) = question.ruling {
        let votes: Vec<String> = ruling
            .votes
            .iter()
            .map(|vote| format!("  {}  {}", number(vote.score), vote.judge))
            .collect();
        parts.push(format!(
            "votes: score {}, {}\n{}",
            panel_score(ruling),
            ruling.decision,
            votes.join("\n")
        ));
        let findings: Vec<String> =
            ruling.feedback.iter().map(|finding| format!("  - {}", finding.text)).collect();
        if !findings.is_empty() {
            parts.push(format!("feedback\n{}", findings.join("\n")));
        }
    }
    let disputes: Vec<String> = question
        .disputes
        .iter()
        .map(|own| format!("  - {}: {}\n    {}", own.judges.join(", "), own.finding, own.rebuttal))
        .collect();
    if !disputes.is_empty() {
        parts.push(format!("disputed by the agent\n{}", disputes.join("\n")));
    }
    let asked = if question.generation == 0 {
        format!("{}?", question.about)
    } else {
        format!("output {}: {}?", question.generation, question.about)
    };
    parts.push(asked);
    parts.join("\n\n")
}

/// Asks at the terminal until there is an answer or the input ends. A score alone is kept
/// and asked on.
pub(super) fn ask(printer: &Printer) -> (Option<Answer>, Option<f64>) {
    let mut label = None;
    loop {
        printer.say(&format!("{ANSWERS}; or score=NUMBER first"));
        let _ = std::io::stderr().flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => return (None, label),
            Ok(_) => {}
        }
        let line = line.trim();
        if let Some(number) = line.strip_prefix("score=") {
            match score(number) {
                Ok(score) => label = Some(score),
                Err(expected) => printer.say(&expected),
            }
            continue;
        }
        match answer(line) {
            Ok(answer) => return (Some(answer), label),
            Err(expected) => printer.say(&expected),
        }
    }
}
