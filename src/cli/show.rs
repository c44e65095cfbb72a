//! `venire show`: the cases of a stored run, some of them, or one with all that was said.

use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::printer::{Printer, plain, plural, table};
use super::select::SelectArgs;
use super::summary::{decision, number, panel_score, reason, vote};
use crate::case::Case;
use crate::report::words::{beginning, is_shared, new_findings, plain_lines, shortened};
use crate::report::{Judged as _, StoredRun};
use crate::ruling::{Ruling, Vote};
use crate::store::{RunRecord, Store, StoreError};
use crate::verdict::Verdict;

/// Show the cases of a run, or one of them with its texts, votes and reasons
///
/// Example: `venire show latest --decision reject --sort spread`
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The run: its id, the beginning of it, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    run: String,
    /// The case: its id, or the beginning or end of it
    #[arg(value_name = "CASE")]
    case: Option<String>,
    #[command(flatten)]
    select: SelectArgs,
    /// The order of the cases
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Cases at most
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// With CASE: long texts whole
    #[arg(long)]
    full: bool,
    /// Print JSON: a case with its ruling, or a list of them
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// As in the data
    #[default]
    Data,
    /// The most disputed first
    Spread,
    /// The lowest score first
    Score,
}

/// Lines and characters of a text that are shown of one case without `--full`.
const LINES: usize = 40;
const CHARACTERS: usize = 4_000;

pub(super) fn run(args: &ShowArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let store = Store::open(&global.store)?;
    let run = store.run(&args.run).map_err(|error| misplaced(error, args, &store))?;
    match &args.case {
        Some(id) => one(args, &store, &run, id, printer),
        None => several(args, &store, &run, printer),
    }
}

/// `venire show CASE` is a natural slip, answered with what was meant.
fn misplaced(error: StoreError, args: &ShowArgs, store: &Store) -> anyhow::Error {
    if let StoreError::NoSuchRun { id, .. } = &error
        && args.case.is_none()
        && let Ok(latest) = store.run("latest")
        && store.position(&latest, id).is_ok()
    {
        return anyhow::anyhow!(
            "no run `{id}`, and the newest run has such a case: `venire show latest {id}`"
        );
    }
    error.into()
}

fn one(
    args: &ShowArgs,
    store: &Store,
    run: &RunRecord,
    id: &str,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let position = store.position(run, id)?;
    let Some(case) = store.case(run.number, position)? else {
        anyhow::bail!("the case `{id}` of run `{}` is not in the store", run.id);
    };
    let ruling = store.ruling(run.number, position)?;
    let verdicts = store.verdicts(run.number, position)?;
    if args.json {
        printer.json(&serde_json::json!({
            "run": run.id, "case": case, "ruling": ruling, "verdicts": verdicts,
        }))?;
        return Ok(Exit::Done);
    }
    printer.result(&whole(&case, ruling.as_ref(), &verdicts, args.full));
    Ok(Exit::Done)
}

fn whole(case: &Case, ruling: Option<&Ruling>, verdicts: &[Verdict], full: bool) -> String {
    let mut text = format!("case {}\n", plain(&case.id));
    match ruling {
        Some(ruling) => {
            text.push_str(&format!(
                "{}: score {}, {}\n",
                ruling.decision.name(),
                panel_score(ruling),
                reason(ruling)
            ));
            let spread = ruling.spread.map(|s| format!(", spread {s:.2}")).unwrap_or_default();
            let votes = plural(u64::from(ruling.votes_declared), "vote", "votes");
            text.push_str(&format!("{} of {votes}{spread}\n", ruling.votes_used));
        }
        None => text.push_str("no ruling yet: the run was stopped before its judges were done\n"),
    }
    let metadata = (!case.metadata.is_empty())
        .then(|| serde_json::to_string_pretty(&case.metadata).unwrap_or_default());
    for (name, part) in case.fields().into_iter().chain([("metadata", &metadata)]) {
        if let Some(part) = part {
            text.push_str(&format!("\n{name}\n{}\n", indented(part, full)));
        }
    }
    text.push_str("\nvotes\n");
    for verdict in verdicts {
        let of = ruling.and_then(|r| r.votes.iter().find(|vote| vote.judge == verdict.judge));
        text.push_str(&said(verdict, of, full));
    }
    if let Some(ruling) = ruling {
        text.push_str(&found(ruling));
    }
    text.trim_end().to_owned()
}

/// One judge's verdict and its reasons.
fn said(verdict: &Verdict, of: Option<&Vote>, full: bool) -> String {
    let mut marks = Vec::new();
    if let Some(vote) = of {
        if vote.samples > 1 {
            marks.push(format!("sample {} of {}", verdict.sample + 1, vote.samples));
        }
        if vote.required {
            marks.push("required".into());
        }
        if !vote.counted {
            marks.push("not counted".into());
        }
    }
    let marks = if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
    let outcome = match verdict.score {
        Some(score) => number(Some(score)),
        None => verdict.status.name().to_owned(),
    };
    let mut text = format!("  {}: {outcome}{marks}\n", plain(&verdict.judge));
    for criterion in &verdict.criteria {
        let because = criterion.feedback.as_ref().map(|t| format!(": {t}")).unwrap_or_default();
        let line = format!("{} {}{because}", criterion.name, number(criterion.score));
        text.push_str(&item(&line, full));
    }
    for line in verdict.detail.iter().chain(new_findings(verdict)) {
        text.push_str(&item(line, full));
    }
    text
}

fn item(line: &str, full: bool) -> String {
    let indented = cut(line, full).replace('\n', "\n      ");
    format!("    - {indented}\n")
}

/// The criteria and what the panel found, merged.
fn found(ruling: &Ruling) -> String {
    let mut text = String::new();
    let criteria: Vec<Vec<String>> = ruling
        .criteria
        .iter()
        .filter(|criterion| criterion.score.is_some())
        .map(|criterion| {
            let passed = match criterion.passed {
                Some(true) => "passed",
                Some(false) if criterion.required => "failed (required)",
                Some(false) => "failed",
                None => "",
            };
            vec![format!("  {}", criterion.name), number(criterion.score), passed.to_owned()]
        })
        .collect();
    if !criteria.is_empty() {
        text.push_str(&format!("\n{}\n", table(&["criterion", "median", ""], criteria, &[1])));
    }
    // What one judge alone says stands at its vote.
    let shared = || ruling.feedback.iter().filter(|finding| is_shared(finding));
    if shared().next().is_some() {
        text.push_str("\nfeedback of several\n");
        for finding in shared() {
            text.push_str(&item(
                &format!("{} [{}]", finding.text, finding.judges.join(", ")),
                true,
            ));
        }
    }
    text
}

fn indented(text: &str, full: bool) -> String {
    cut(text, full).lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// A text without control characters, and no longer than a screen or two.
fn cut(text: &str, full: bool) -> String {
    if full {
        return plain_lines(text);
    }
    let (shown, mut left) = beginning(text, CHARACTERS);
    let lines: Vec<&str> = shown.split_inclusive('\n').collect();
    let kept: String = lines.iter().take(LINES).copied().collect();
    left += shown.chars().count() - kept.chars().count();
    let more =
        if left > 0 { format!("\n… {left} more characters: `--full`") } else { String::new() };
    format!("{}{more}", plain_lines(kept.trim_end_matches('\n')))
}

fn several(
    args: &ShowArgs,
    store: &Store,
    run: &RunRecord,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let selection = args.select.selection(run)?;
    let cases = StoredRun { store, run, selection: &selection };
    let mut kept: Vec<(f64, Case, Ruling)> = Vec::new();
    let (mut all, mut fitting) = (0u64, 0u64);
    store.each_case(run.number, |_, _| {
        all += 1;
        Ok::<_, crate::store::StoreError>(())
    })?;
    cases.each(&mut |case, ruling| {
        fitting += 1;
        let key = match args.sort {
            Sort::Data => fitting as f64,
            // Cases without a spread or score come last.
            Sort::Spread => ruling.spread.map_or(f64::INFINITY, |spread| -spread),
            Sort::Score => ruling.score.map_or(f64::INFINITY, crate::score::Score::get),
        };
        // In order as they come, the last cut off: memory is that of what is shown.
        let at = kept.partition_point(|(other, _, _)| *other <= key);
        if at < args.limit {
            kept.insert(at, (key, case.clone(), ruling.clone()));
            kept.truncate(args.limit);
        }
        Ok(())
    })?;
    if args.json {
        let list: Vec<_> = kept
            .iter()
            .map(|(_, case, ruling)| serde_json::json!({ "case": case, "ruling": ruling }))
            .collect();
        printer.json(&list)?;
        return Ok(Exit::Done);
    }
    if let Some((_, _, first)) = kept.first() {
        let judges = first.votes.iter().map(|vote| vote.judge.as_str());
        let header: Vec<&str> =
            std::iter::once("case").chain(judges).chain(["score", "spread", "decision"]).collect();
        let numbers: Vec<usize> = (1..header.len() - 1).collect();
        let rows = kept.iter().map(|(_, _, ruling)| row(ruling)).collect();
        printer.result(&format!("{}\n", table(&header, rows, &numbers)));
    }
    let chosen = selection.words().map(|words| format!(" ({words})")).unwrap_or_default();
    let left = match fitting - kept.len() as u64 {
        0 => String::new(),
        left => format!("; {left} more: `--limit N`"),
    };
    printer.result(&format!("{fitting} of {}{chosen}{left}", plural(all, "case", "cases")));
    if let Some((_, case, _)) = kept.first() {
        printer.say(&format!("one of them: venire show {} {}", run.id, plain(&case.id)));
    }
    Ok(Exit::Done)
}

fn row(ruling: &Ruling) -> Vec<String> {
    let mut row = vec![shortened(&ruling.case, 32)];
    row.extend(ruling.votes.iter().map(vote));
    row.push(panel_score(ruling));
    row.push(ruling.spread.map_or_else(|| "-".into(), |spread| format!("{spread:.2}")));
    row.push(decision(ruling));
    row
}
