//! `venire review`: the questions that loops wait on, and a person's answers.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::Global;
use super::answer::text_or_file;
use super::exit::Exit;
use super::printer::{Printer, plural, table};
use super::summary::{number, panel_score};
use crate::control::Answer;
use crate::control::driver::Question;
use crate::control::labels::labelled;
use crate::control::review::{self, Pending};
use crate::dataset::Writer;
use crate::run::rows::VerdictRow;

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
    /// Write what people scored in loops for a calibration: labels.csv, judgements.jsonl and
    /// items.jsonl in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["run", "json"])]
    export: Option<PathBuf>,
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
    if let Some(folder) = &args.export {
        return export(&loops, folder, printer);
    }
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
        run => {
            let asks = |pending: &&Pending| pending.run == run || pending.resumes() == run;
            let mut asking = waiting.iter().filter(asks);
            let first = asking.next();
            if asking.next().is_some() {
                let starts: Vec<&str> =
                    waiting.iter().filter(asks).map(|pending| pending.run.as_str()).collect();
                anyhow::bail!(
                    "several starts of run `{run}` ask: name one of {}",
                    starts.join(", ")
                );
            }
            first
        }
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
        printer.result(&shown(&pending.question()));
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
        let run = pending.resumes();
        printer.say(&format!("answered; go on with: venire loop --resume {run}"));
    }
    Ok(if answered { Exit::Done } else { Exit::Waiting })
}

/// A person's score as a label.
#[derive(Serialize)]
struct LabelRow<'a> {
    item_id: &'a str,
    rater: &'static str,
    criterion: &'static str,
    label: f64,
}

/// An output that was scored, as a case.
#[derive(Serialize)]
struct ItemRow<'a> {
    id: &'a str,
    input: &'a str,
    output: Option<&'a str>,
    group: &'a str,
}

fn export(loops: &Path, folder: &Path, printer: &Printer) -> anyhow::Result<Exit> {
    let (outputs, damaged) = labelled(loops)?;
    for error in &damaged {
        printer.warn(&error.to_string());
    }
    if outputs.is_empty() {
        printer.say("no output of a loop has a person's score: nothing was written");
        return Ok(Exit::Inconclusive);
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make the folder `{}`", folder.display()))?;
    let place = |name: &str| folder.join(name);
    let mut labels = Writer::create(&place("labels.csv"))?;
    let mut judgements = Writer::create(&place("judgements.jsonl"))?;
    let mut items = Writer::create(&place("items.jsonl"))?;
    for own in &outputs {
        let (item_id, label) = (own.id.as_str(), own.score);
        labels.write(&LabelRow { item_id, rater: "person", criterion: "overall", label })?;
        let (input, output, group) = (own.task.as_str(), own.output.as_deref(), own.run.as_str());
        items.write(&ItemRow { id: item_id, input, output, group })?;
        for verdict in &own.verdicts {
            judgements.write(&VerdictRow::new(&own.run, item_id, verdict.clone()))?;
        }
    }
    for writer in [labels, judgements, items] {
        writer.finish()?;
    }
    let (labels, judgements, items) =
        (place("labels.csv"), place("judgements.jsonl"), place("items.jsonl"));
    printer.say(&format!(
        "{} in `{}`; calibrate with: venire calibrate --judgements {} --labels {} --items {} --group group --positive '>=0.8'",
        plural(outputs.len() as u64, "scored output", "scored outputs"),
        folder.display(),
        judgements.display(),
        labels.display(),
        items.display()
    ));
    Ok(if damaged.is_empty() { Exit::Done } else { Exit::Inconclusive })
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
    let start = match question.start {
        0 => String::new(),
        start => format!("start {start}, "),
    };
    let asked = if question.generation == 0 {
        format!("{start}{}?", question.about)
    } else {
        format!("{start}output {}: {}?", question.generation, question.about)
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
