//! Markdown: a summary, the judges, and a table with one row a case.
//!
//! Every text that came from a case or a judge is written as code, so that nothing in it is a
//! link, a mention or HTML. Rows are written as they come.

use std::io::Write;

use super::escape::markdown_code;
use super::words::{self, plural, shortened};
use super::{About, Beside, Judged, ReportError, Worth, Written, totals};
use crate::ruling::{Decision, Ruling};
use crate::run::Tally;
use crate::verdict::Status;

/// Characters of a case's id and of its first finding.
const ID: usize = 40;
const SAID: usize = 160;

/// Writes the report.
///
/// # Errors
/// When the cases can't be read or the report can't be written.
pub fn write(
    out: &mut dyn Write,
    about: &About,
    cases: &dyn Judged,
) -> Result<Written, ReportError> {
    let (tally, worth) = totals(cases)?;
    writeln!(out, "# {}\n", markdown_code(&about.panel))?;
    for note in &about.notes {
        writeln!(out, "> {}\n", markdown_code(note))?;
    }
    for line in summary(about, &tally, &worth) {
        writeln!(out, "- {line}")?;
    }
    judges(out, &tally)?;
    sources(out, &tally)?;
    let names: Vec<&str> = tally.judges.iter().map(|judge| judge.name.as_str()).collect();
    header(out, &names)?;
    let mut written = Written::default();
    cases.each_beside(&mut |_, ruling, beside| {
        written.cases += 1;
        Ok(row(out, ruling, beside, &names)?)
    })?;
    writeln!(out, "\nIn brackets: votes that are not counted. `-`: no score.")?;
    Ok(written)
}

fn summary(about: &About, tally: &Tally, worth: &Worth) -> Vec<String> {
    let mut lines = vec![format!(
        "**{} accepted, {} rejected, {} undecided** of {}",
        tally.accepted,
        tally.rejected,
        tally.undecided,
        plural(tally.cases, "case", "cases")
    )];
    if let Some(share) = share(tally) {
        lines.push(share);
    }
    lines.push(format!("by {}", worth.rule(&about.rule)));
    lines.extend(worth.line().map(|line| markdown_code(&line)));
    let statuses: Vec<String> =
        tally.statuses.present().map(|(status, n)| format!("{status} {n}")).collect();
    let verdicts = plural(tally.verdicts(), "verdict", "verdicts");
    lines.push(format!("{verdicts}: {}", statuses.join(", ")));
    let facts = [("run", &about.run), ("started", &about.created), ("data", &about.data)];
    for (name, value) in facts {
        if let Some(value) = value {
            lines.push(format!("{name} {}", markdown_code(value)));
        }
    }
    lines
}

/// The accepted share in words, with n and its interval.
pub(super) fn share(tally: &Tally) -> Option<String> {
    let share = tally.accepted_share()?;
    let groups = match share.groups {
        None => "by case".to_owned(),
        Some(groups) => format!("by group, {}", plural(groups, "group", "groups")),
    };
    Some(format!(
        "accepted of the decided: {:.2} (95% interval {:.2} to {:.2}, n = {}, {groups})",
        share.point, share.lower, share.upper, share.n
    ))
}

fn judges(out: &mut dyn Write, tally: &Tally) -> Result<(), ReportError> {
    writeln!(out, "\n## Judges\n")?;
    writeln!(out, "| judge | votes | mean | 95% ± | outvoted | without a vote |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | --- |")?;
    for judge in &tally.judges {
        let others: Vec<String> = judge
            .statuses
            .present()
            .filter(|(status, _)| *status != Status::Ok)
            .map(|(status, n)| format!("{status} {n}"))
            .collect();
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            markdown_code(&judge.name),
            judge.votes,
            words::two(judge.mean_score),
            words::two(judge.margin()),
            judge.outvoted,
            others.join(", ")
        )?;
    }
    Ok(())
}

/// How each source fared, where cases name one.
fn sources(out: &mut dyn Write, tally: &Tally) -> Result<(), ReportError> {
    let sources = tally.by_source();
    if sources.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Sources\n")?;
    writeln!(
        out,
        "| source | cases | accepted | rejected | undecided | accepted of the decided, 95% | mean score | 95% ± |"
    )?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for own in &sources {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            markdown_code(&words::source_name(own)),
            own.cases,
            own.accepted,
            own.rejected,
            own.undecided,
            words::of_share(own.accepted_share.as_ref()),
            words::two(own.mean_score),
            words::two(own.margin)
        )?;
    }
    Ok(())
}

fn header(out: &mut dyn Write, names: &[&str]) -> Result<(), ReportError> {
    writeln!(out, "\n## Cases\n")?;
    let judges: String = names.iter().map(|name| format!(" {} |", markdown_code(name))).collect();
    writeln!(out, "| case | decision | score |{judges} why |")?;
    writeln!(out, "| --- | --- | ---: |{} --- |", " ---: |".repeat(names.len()))?;
    Ok(())
}

fn row(
    out: &mut dyn Write,
    ruling: &Ruling,
    beside: Beside,
    names: &[&str],
) -> std::io::Result<()> {
    let by = match words::vetoes(ruling).as_slice() {
        [] => String::new(),
        judges => format!(" by {}", markdown_code(&judges.join(", "))),
    };
    let decision = match ruling.decision {
        Decision::Accept => "accept",
        Decision::Reject => "**reject**",
        Decision::Undecided => "*undecided*",
    };
    let decision = format!("{decision}{by}");
    let marks: Vec<String> =
        words::marks(ruling).into_iter().map(str::to_owned).chain(beside.words()).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    let at = beside.row.map_or_else(String::new, |row| format!(" row {row}"));
    let votes: String = names
        .iter()
        .map(|name| match ruling.votes.iter().find(|vote| vote.judge == *name) {
            Some(vote) => format!(" {} |", words::vote(vote)),
            None => " |".to_owned(),
        })
        .collect();
    let why = match (ruling.decision, words::first_finding(ruling)) {
        (Decision::Accept, _) => String::new(),
        (Decision::Reject, Some(finding)) => {
            let (text, left) = words::beginning(&finding, SAID);
            let more = if left > 0 { "…" } else { "" };
            markdown_code(&format!("{text}{more}"))
        }
        (_, _) => markdown_code(&words::reason(ruling).replace('`', "")),
    };
    writeln!(
        out,
        "| {}{at} | {decision}{marks} | {} |{votes} {why} |",
        markdown_code(&shortened(&ruling.case, ID)),
        words::panel_score(ruling)
    )
}
