//! `venire show`: the cases of a stored run, some of them, or one with all that was said.

use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::printer::{Printer, plain, plural, table};
use super::select::{Chosen, SelectArgs};
use super::summary::{decision, number, panel_score, reason, vote};
use crate::case::Case;
use crate::report::words::{beginning, case_name, is_shared, plain_lines};
use crate::report::{Beside, Judged as _, StoredRun};
use crate::ruling::{Ruling, Vote};
use crate::run::rows::row_numbers;
use crate::run::truth::{Mistake, MistakeCounts};
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
    /// The case: its id, the beginning or end of it, or `row 12` of the data
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
    /// Print JSON: with CASE an object of its case, ruling and verdicts; else a list of objects
    /// with `case` and `ruling`; with labels (`--positive`) an object of `cases`, that list, and
    /// `mistakes`, the counts
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
    let rows = row_numbers(run);
    let position = match row_of(id) {
        Some(row) => match store.position(run, id) {
            Ok(position) => position,
            Err(_) => rows.place(row).ok_or_else(|| {
                anyhow::anyhow!("run `{}` has no case from row {row} of its data", run.id)
            })?,
        },
        None => store.position(run, id)?,
    };
    let Some(case) = store.case(run.number, position)? else {
        anyhow::bail!("the case `{id}` of run `{}` is not in the store", run.id);
    };
    let ruling = store.ruling(run.number, position)?;
    let verdicts = store.verdicts(run.number, position)?;
    let chosen = args.select.chosen(store, run, printer)?;
    let beside = Beside {
        row: rows.of(position),
        truth: chosen.selection.truth.as_ref().and_then(|truth| truth.word(&case.id)),
        mistake: ruling.as_ref().and_then(|ruling| chosen.selection.mistake(ruling)),
    };
    if args.json {
        let mut shown = serde_json::json!({
            "run": run.id, "case": case, "ruling": ruling, "verdicts": verdicts,
        });
        if case.has_content_id() {
            shown["row"] = beside.row.into();
        }
        if chosen.selection.truth.is_some() {
            shown["truth"] = beside.truth.into();
            shown["mistake"] = beside.mistake.map(Mistake::name).into();
        }
        printer.json(&shown)?;
        return Ok(Exit::Done);
    }
    printer.result(&whole(&case, beside, ruling.as_ref(), &verdicts, args.full));
    Ok(Exit::Done)
}

/// `row 12` as a number.
fn row_of(id: &str) -> Option<u64> {
    id.strip_prefix("row ")?.trim().parse().ok()
}

fn whole(
    case: &Case,
    beside: Beside,
    ruling: Option<&Ruling>,
    verdicts: &[Verdict],
    full: bool,
) -> String {
    let row = beside.row.filter(|_| case.has_content_id());
    let row = row.map_or_else(String::new, |row| format!(", row {row} of the data"));
    let mut text = format!("case {}{row}\n", plain(&case.id));
    if let Some(words) = beside.words() {
        text.push_str(&format!("{words}\n"));
    }
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
    for line in verdict.detail.iter().chain(verdict.new_findings()) {
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
    let Chosen { selection, mistakes } = args.select.chosen(store, run, printer)?;
    let cases = StoredRun { store, run, selection: &selection };
    let mut kept: Vec<(f64, Case, Ruling, Beside)> = Vec::new();
    let (mut all, mut fitting) = (0u64, 0u64);
    store.each_case(run.number, |_, _| {
        all += 1;
        Ok::<_, crate::store::StoreError>(())
    })?;
    cases.each_beside(&mut |case, ruling, beside| {
        fitting += 1;
        let key = match args.sort {
            Sort::Data => fitting as f64,
            // Cases without a spread or score come last.
            Sort::Spread => ruling.spread.map_or(f64::INFINITY, |spread| -spread),
            Sort::Score => ruling.score.map_or(f64::INFINITY, crate::score::Score::get),
        };
        // In order as they come, the last cut off: memory is that of what is shown.
        let at = kept.partition_point(|(other, ..)| *other <= key);
        if at < args.limit {
            kept.insert(at, (key, case.clone(), ruling.clone(), beside));
            kept.truncate(args.limit);
        }
        Ok(())
    })?;
    if args.json {
        let list: Vec<_> = kept
            .iter()
            .map(|(_, case, ruling, beside)| {
                let mut shown = serde_json::json!({ "case": case, "ruling": ruling });
                if mistakes.is_some() {
                    shown["truth"] = beside.truth.into();
                    shown["mistake"] = beside.mistake.map(Mistake::name).into();
                }
                shown
            })
            .collect();
        match &mistakes {
            Some(counts) => {
                printer.json(&serde_json::json!({ "mistakes": counts, "cases": list }))?;
            }
            None => printer.json(&list)?,
        }
        return Ok(Exit::Done);
    }
    if let Some((_, _, first, _)) = kept.first() {
        let judges = first.votes.iter().map(|vote| vote.judge.as_str());
        let mut header: Vec<&str> =
            std::iter::once("case").chain(judges).chain(["score", "spread", "decision"]).collect();
        let numbers: Vec<usize> = (1..header.len() - 1).collect();
        if mistakes.is_some() {
            header.extend(["label", "wrong"]);
        }
        let rows = kept
            .iter()
            .map(|(_, _, ruling, beside)| row(ruling, *beside, mistakes.is_some()))
            .collect();
        printer.result(&format!("{}\n", table(&header, rows, &numbers)));
    }
    let chosen = selection.words().map(|words| format!(" ({words})")).unwrap_or_default();
    let left = match fitting - kept.len() as u64 {
        0 => String::new(),
        left => format!("; {left} more: `--limit N`"),
    };
    printer.result(&format!("{fitting} of {}{chosen}{left}", plural(all, "case", "cases")));
    for line in mistakes.iter().flat_map(MistakeCounts::lines) {
        printer.result(&line);
    }
    if let Some((_, case, ..)) = kept.first() {
        printer.say(&format!("one of them: venire show {} {}", run.id, plain(&case.id)));
    }
    Ok(Exit::Done)
}

fn row(ruling: &Ruling, beside: Beside, labelled: bool) -> Vec<String> {
    let mut row = vec![case_name(&ruling.case, beside.row, 32)];
    row.extend(ruling.votes.iter().map(vote));
    row.push(panel_score(ruling));
    row.push(ruling.spread.map_or_else(|| "-".into(), |spread| format!("{spread:.2}")));
    row.push(decision(ruling));
    if labelled {
        row.push(beside.truth.unwrap_or("-").to_owned());
        row.push(beside.mistake.map(Mistake::words).unwrap_or_default().to_owned());
    }
    row
}
