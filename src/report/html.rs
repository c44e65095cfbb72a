//! One HTML page: totals, judges, and a table of cases whose votes and reasons unfold.
//!
//! The page holds at most [`MOST_CASES`] cases and says how many more there are; longer texts
//! are cut, and say so. Cases are written as they come.

use std::io::Write;

use minijinja::{Environment, Value, context};

use super::markdown::share;
use super::words::{
    beginning, decision, first_finding, is_shared, marks, number, panel_score, plain, plain_lines,
    plural, reason, source_name, two, vote,
};
use super::{About, Beside, Judged, ReportError, Worth, Written, page, totals};
use crate::case::Case;
use crate::ruling::{Reason, Ruling, Vote};
use crate::run::{JudgeTally, SourceResult, Tally};
use crate::verdict::{Status, Verdict};

/// Cases on a page: about the most that a browser sorts and filters without a pause.
pub const MOST_CASES: u64 = 2_000;

/// Characters of one text on the page.
const MOST_CHARACTERS: usize = 8_000;

/// Judges with a column of their own; more stand only in the strip and in the details.
const MOST_COLUMNS: usize = 8;

const TOP: &str = include_str!("html/top.html");
const CASE: &str = include_str!("html/case.html");

/// Writes the page.
///
/// # Errors
/// When the cases can't be read or the page can't be written.
pub fn write(
    out: &mut dyn Write,
    about: &About,
    cases: &dyn Judged,
) -> Result<Written, ReportError> {
    write_in(&page::Shell::default(), out, about, cases, MOST_CASES)
}

/// As [`write`], within a shell and with `most` cases at most.
///
/// # Errors
/// As [`write`].
pub fn write_in(
    shell: &page::Shell<'_>,
    out: &mut dyn Write,
    about: &About,
    cases: &dyn Judged,
    most: u64,
) -> Result<Written, ReportError> {
    let (tally, worth) = totals(cases)?;
    let mut environment = page::environment();
    environment.add_template("case.html", CASE)?;
    let names: Vec<&str> =
        tally.judges.iter().take(MOST_COLUMNS).map(|judge| judge.name.as_str()).collect();
    let facts: Vec<String> =
        [("run", &about.run), ("started", &about.created), ("data", &about.data)]
            .into_iter()
            .filter_map(|(name, value)| {
                value.as_ref().map(|value| format!("{name} {}", plain(value)))
            })
            .collect();
    out.write_all(shell.head(&plain(&about.panel), &facts)?.as_bytes())?;
    out.write_all(top(&environment, about, &tally, &worth, &names, most)?.as_bytes())?;
    let mut written = Written::default();
    cases.each_beside(&mut |case, ruling, beside| {
        if written.cases == most {
            written.left_out += 1;
            return Ok(());
        }
        written.cases += 1;
        let row =
            environment.get_template("case.html")?.render(row(case, ruling, beside, &names))?;
        Ok(out.write_all(row.as_bytes())?)
    })?;
    out.write_all(b"</table></div>\n")?;
    out.write_all(shell.foot()?.as_bytes())?;
    Ok(written)
}

/// One case as the `<tbody>` of a table with the columns case, decision, score, spread and
/// votes; texts, findings, criteria and verdicts unfold.
///
/// # Errors
/// A fault of this program.
#[cfg(feature = "server")]
pub(crate) fn case_body(case: &Case, ruling: &Ruling) -> Result<String, ReportError> {
    Ok(page::environment().render_str(CASE, row(case, ruling, Beside::default(), &[]))?)
}

fn top(
    environment: &Environment<'_>,
    about: &About,
    tally: &Tally,
    worth: &Worth,
    names: &[&str],
    most: u64,
) -> Result<String, ReportError> {
    let mut lines: Vec<String> = share(tally).into_iter().collect();
    lines.push(format!("by {}", worth.rule(&about.rule)));
    lines.extend(worth.line());
    let statuses: Vec<String> =
        tally.statuses.present().map(|(status, n)| format!("{status} {n}")).collect();
    lines.push(format!(
        "{}: {}",
        plural(tally.verdicts(), "verdict", "verdicts"),
        statuses.join(", ")
    ));
    let mut x = 0.0;
    let parts =
        [("accept", tally.accepted), ("reject", tally.rejected), ("undecided", tally.undecided)];
    let bar: Vec<Value> = parts
        .into_iter()
        .map(|(name, n)| {
            let width = 1000.0 * n as f64 / tally.cases.max(1) as f64;
            let part = context! { name, x => format!("{x:.2}"), width => format!("{width:.2}") };
            x += width;
            part
        })
        .collect();
    let judges: Vec<Value> = tally.judges.iter().map(judge).collect();
    let shown = tally.cases.min(most);
    let sources: Vec<Value> = tally.by_source().iter().map(source).collect();
    let values = context! {
        notes => about.notes.iter().map(|note| marked(&plain(note))).collect::<Vec<_>>(), accepted => tally.accepted, rejected => tally.rejected,
        undecided => tally.undecided, cases => tally.cases, bar, lines, judges, sources,
        columns => names.iter().map(|name| plain(name)).collect::<Vec<_>>(), shown, left_out => tally.cases - shown,
    };
    Ok(environment.render_str(TOP, values)?)
}

fn judge(judge: &JudgeTally) -> Value {
    let others: Vec<String> = judge
        .statuses
        .present()
        .filter(|(status, _)| *status != Status::Ok)
        .map(|(status, n)| format!("{status} {n}"))
        .collect();
    context! {
        name => plain(&judge.name), required => judge.required, votes => judge.votes, mean => two(judge.mean_score),
        margin => two(judge.margin()), outvoted => judge.outvoted, others => others.join(", "),
        time => judge.mean_latency_ms.map_or_else(|| "-".into(), |ms| format!("{ms:.0} ms")),
    }
}

/// One source's row.
fn source(own: &SourceResult) -> Value {
    let share = own.accepted_share.as_ref();
    context! {
        name => plain(&source_name(own)), cases => own.cases, accepted => own.accepted,
        rejected => own.rejected, undecided => own.undecided,
        share => context! {
            value => share.map(|share| share.point.to_string()).unwrap_or_default(),
            text => two(share.map(|share| share.point)),
            detail => share
                .map(|own| format!("[{:.2}, {:.2}] n={}", own.lower, own.upper, own.n))
                .unwrap_or_default(),
        },
        mean => figure(own.mean_score),
        detail => own
            .margin
            .map(|margin| format!("± {margin:.2} n={}", own.scored))
            .unwrap_or_else(|| format!("n={}", own.scored)),
    }
}

/// A number as it is sorted by and as it is shown.
fn figure(value: Option<f64>) -> Value {
    context! {
        value => value.map(|value| value.to_string()).unwrap_or_default(),
        text => value.map_or_else(|| "-".into(), |value| format!("{value:.2}")),
    }
}

fn row(case: &Case, ruling: &Ruling, beside: Beside, names: &[&str]) -> Value {
    let found = |name: &str| ruling.votes.iter().find(|vote| vote.judge == name);
    let columns: Vec<Value> = names
        .iter()
        .map(|name| {
            let value = found(name).and_then(|vote| vote.score);
            context! {
                value => value.map(|score| score.get().to_string()).unwrap_or_default(),
                text => found(name).map(vote).unwrap_or_default(),
            }
        })
        .collect();
    let at = |value: f64| format!("{:.1}", value * 100.0);
    let dots: Vec<Value> = ruling
        .votes
        .iter()
        .filter_map(|vote| {
            vote.score.map(|score| {
                let title = plain(&format!("{} {:.2}", vote.judge, score.get()));
                context! { x => at(score.get()), counted => vote.counted, title }
            })
        })
        .collect();
    // What one judge alone says stands at its vote.
    let findings: Vec<Value> = ruling
        .feedback
        .iter()
        .filter(|finding| is_shared(finding))
        .map(|finding| {
            let (text, left) = beginning(&finding.text, MOST_CHARACTERS);
            let more = if left > 0 { "…" } else { "" };
            marked(&plain_lines(&format!("{text}{more} [{}]", finding.judges.join(", "))))
        })
        .collect();
    let criteria: Vec<String> = ruling
        .criteria
        .iter()
        .map(|criterion| {
            let passed = match criterion.passed {
                Some(true) => ", passed",
                Some(false) if criterion.required => ", failed (required)",
                Some(false) => ", failed",
                None => "",
            };
            let votes = plural(u64::from(criterion.votes), "vote", "votes");
            plain(&format!("{}: {}{passed} ({votes})", criterion.name, number(criterion.score)))
        })
        .collect();
    let verdicts: Vec<Value> = ruling.verdicts.iter().map(|v| verdict(v, &ruling.votes)).collect();
    context! {
        id => plain(&case.id), row => beside.row, label => beside.words(), wrong => beside.mistake.is_some(), decision => ruling.decision.name(), marks => marks(ruling).join(", "),
        by => decision(ruling).strip_prefix(ruling.decision.name()).unwrap_or_default().trim_start_matches(": "),
        score => context! {
            value => ruling.score.map(|score| score.get().to_string()).unwrap_or_default(),
            text => panel_score(ruling),
        },
        spread => figure(ruling.spread), threshold => at(ruling.threshold),
        dots, columns, why => marked(&plain(&one_line(&why(ruling)))), texts => texts(case), findings, criteria, verdicts,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text as HTML, with what stands between backticks of one line as code.
fn marked(text: &str) -> Value {
    let mut html = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, left)) = after.split_once('`') else { break };
        // Fences and stray backticks are text.
        if code.is_empty() {
            html.push_str(&minijinja::HtmlEscape(&format!("{before}``")).to_string());
            rest = left;
            continue;
        }
        if code.contains('\n') {
            html.push_str(&minijinja::HtmlEscape(&format!("{before}`")).to_string());
            rest = after;
            continue;
        }
        html.push_str(&minijinja::HtmlEscape(before).to_string());
        html.push_str(&format!("<code>{}</code>", minijinja::HtmlEscape(code)));
        rest = left;
    }
    html.push_str(&minijinja::HtmlEscape(rest).to_string());
    Value::from_safe_string(html)
}

/// What the folded row says: not what is the same on every row.
fn why(ruling: &Ruling) -> String {
    let mut said = Vec::new();
    if ruling.votes_used != ruling.votes_declared {
        let votes = plural(u64::from(ruling.votes_declared), "vote", "votes");
        said.push(format!("{} of {votes}", ruling.votes_used));
    }
    let words = reason(ruling);
    if ruling.reason != Reason::Threshold || words.contains("tiebreak") {
        said.push(words);
    }
    if let Some(finding) = first_finding(ruling) {
        let (text, left) = beginning(&finding, 160);
        said.push(format!("{text}{}", if left > 0 { "…" } else { "" }));
    }
    if said.is_empty() { "texts and votes".to_owned() } else { said.join(" · ") }
}

fn texts(case: &Case) -> Vec<Value> {
    let metadata = (!case.metadata.is_empty())
        .then(|| serde_json::to_string_pretty(&case.metadata).unwrap_or_default());
    case.fields()
        .into_iter()
        .filter(|(name, _)| *name != "split")
        .chain([("metadata", &metadata)])
        .filter_map(|(name, text)| {
            let (text, left) = beginning(text.as_deref()?, MOST_CHARACTERS);
            Some(context! { name, text => plain_lines(text), left })
        })
        .collect()
}

fn verdict(verdict: &Verdict, votes: &[Vote]) -> Value {
    let of = votes.iter().find(|vote| vote.judge == verdict.judge);
    let outcome = match verdict.score {
        Some(score) => format!("{:.2}", score.get()),
        None => verdict.status.name().to_owned(),
    };
    let sample = match of {
        Some(vote) if vote.samples > 1 => format!(" (sample {})", verdict.sample + 1),
        _ => String::new(),
    };
    let required = if of.is_some_and(|vote| vote.required) { ", required" } else { "" };
    let uncounted = if of.is_some_and(|vote| !vote.counted) { ", not counted" } else { "" };
    let mut said: Vec<String> =
        verdict.detail.iter().chain(verdict.new_findings()).cloned().collect();
    for criterion in &verdict.criteria {
        let because = criterion.feedback.as_ref().map(|t| format!(": {t}")).unwrap_or_default();
        said.push(format!("{} {}{because}", criterion.name, number(criterion.score)));
    }
    let said: Vec<Value> = said
        .iter()
        .map(|text| {
            let (text, left) = beginning(text, MOST_CHARACTERS);
            marked(&plain_lines(&format!("{text}{}", if left > 0 { "…" } else { "" })))
        })
        .collect();
    let mut facts = Vec::new();
    facts.extend(verdict.model_returned.clone());
    if verdict.cached {
        facts.push("recorded or from the store".into());
    } else {
        facts.push(format!("{} ms", verdict.latency_ms));
    }
    if let Some(cost) = verdict.cost_usd.filter(|cost| *cost > 0.0) {
        facts.push(format!("{cost:.5} US dollars"));
    }
    context! {
        head => plain(&format!("{}{sample}: {outcome}{required}{uncounted}", verdict.judge)), said,
        facts => plain(&facts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_of_one_line_are_code_and_empty_ones_are_text() {
        for (text, html) in [
            ("`a` b", "<code>a</code> b"),
            ("for ``, found `no <x>`", "for ``, found <code>no &lt;x&gt;</code>"),
            ("one ` alone", "one ` alone"),
            ("`", "`"),
            ("``", "``"),
            ("```\nx\n```", "```\nx\n```"),
        ] {
            assert_eq!(marked(text).to_string(), html, "{text}");
        }
    }
}
