//! The page: a table of the loops, then each loop with its pictures and outputs.

use std::io::Write;

use minijinja::{Value, context};
use similar::TextDiff;

use super::read::{Output, Recorded};
use super::{MOST_GENERATIONS, pictures};
use crate::report::chart::{Picture, short};
use crate::report::words::{beginning, plain, plain_lines, plural};
use crate::report::{ReportError, page};
use crate::ruling::Decision;

const BODY: &str = include_str!("page.html");

/// Characters of one text or diff on the page.
const MOST_CHARACTERS: usize = 8_000;

/// Texts longer than this are not compared: a diff takes time in the product of both lengths.
const MOST_COMPARED: usize = 200_000;

pub(super) fn write(
    out: &mut dyn Write,
    loops: &[Recorded],
    left_out: usize,
    damaged: &[String],
) -> Result<(), ReportError> {
    let title = match loops {
        [own] => format!("Loop {}", plain(own.name.as_deref().unwrap_or(&own.run))),
        many => format!("{} loops", many.len()),
    };
    let facts: Vec<String> = match loops {
        [own] => vec![
            format!("run {}", plain(&own.run)),
            format!("started {}", plain(own.started.split('.').next().unwrap_or_default())),
        ],
        _ => Vec::new(),
    };
    let accepted = loops.iter().filter(|own| class(own) == "accepted").count();
    let values = context! {
        loops => loops.iter().map(of_loop).collect::<Vec<_>>(),
        several => loops.len() > 1,
        accepted, total => loops.len(), left_out,
        damaged => damaged.iter().map(|own| plain(own)).collect::<Vec<_>>(),
    };
    let shell = page::Shell::default();
    out.write_all(shell.head(&title, &facts)?.as_bytes())?;
    out.write_all(page::environment().render_str(BODY, values)?.as_bytes())?;
    out.write_all(shell.foot()?.as_bytes())?;
    Ok(())
}

/// What the outcome is worth, as the table has it.
fn class(own: &Recorded) -> String {
    own.outcome.as_ref().map_or("not ended".to_owned(), |own| {
        serde_json::to_value(own.class())
            .ok()
            .and_then(|value| value.as_str().map(|text| text.replace('_', " ")))
            .unwrap_or_default()
    })
}

fn of_loop(own: &Recorded) -> Value {
    let pictures: Vec<Value> = [pictures::scores(own), pictures::budgets(own)]
        .iter()
        .flatten()
        .map(|own: &Picture| {
            context! { title => own.title.as_str(), says => own.says.as_str(), svg => own.svg.as_str() }
        })
        .collect();
    let class = class(own);
    let (reason, also) = own.outcome.as_ref().map_or((String::new(), String::new()), |own| {
        let also: Vec<String> = own.also_fired.iter().map(|own| own.name().to_owned()).collect();
        (own.reason.name().to_owned(), also.join(", "))
    });
    let made = own.outputs.iter().filter(|own| own.hash.is_some()).count();
    let shown = own.outputs.len().min(MOST_GENERATIONS);
    let spent = |name: &str| {
        let found = own.budgets.iter().find(|own| own.name == name);
        found.map_or(String::new(), |own| format!("{}{}", short(own.used), own.unit))
    };
    let best = own.best().and_then(|best| Some((best.generation, best.score()?)));
    context! {
        run => plain(&own.run), name => plain(own.name.as_deref().unwrap_or_default()),
        kind => match class.as_str() { "accepted" => "accept", "rejected" => "reject", _ => "undecided" },
        task => cut(&own.task), class, reason, also, pictures, made,
        ended => own.outcome.is_some(),
        best => best.map(|(generation, score)| format!("{score:.2} (output {generation})")),
        best_score => best.map(|own| own.1), time => spent("time"),
        time_value => own.budgets.iter().find(|own| own.name == "time").map_or(0.0, |own| own.used),
        tokens => spent("tokens"),
        money => own.cost_usd.map_or("price unknown".to_owned(), |cost| format!("${}", short(cost))),
        outputs => own.outputs[..shown].iter().map(|output| of_output(own, output)).collect::<Vec<_>>(),
        left_out => own.outputs.len() - shown,
    }
}

fn of_output(of: &Recorded, own: &Output) -> Value {
    let ruling = own.ruling.as_deref();
    let decision = ruling.map_or("none", |own| match own.decision {
        Decision::Accept => "accept",
        Decision::Reject => "reject",
        Decision::Undecided => "undecided",
    });
    let votes: Vec<Value> = ruling
        .into_iter()
        .flat_map(|own| &own.votes)
        .map(|vote| {
            let shown = vote.score.map_or_else(|| vote.status.to_string(), |own| format!("{:.2}", own.get()));
            context! {
                judge => plain(&vote.judge), shown, required => vote.required, counted => vote.counted,
            }
        })
        .collect();
    let findings: Vec<Value> = ruling
        .into_iter()
        .flat_map(|own| &own.feedback)
        .map(|own| context! { text => cut(&own.text), judges => plain(&own.judges.join(", ")) })
        .collect();
    let confirmations: Vec<String> = own
        .confirmations
        .iter()
        .map(|own| own.map_or("no quorum".to_owned(), |own| format!("{own:.2}")))
        .collect();
    let spread = pictures::span(own)
        .filter(|_| votes.len() > 1)
        .map(|(low, high)| format!("{low:.2} to {high:.2}"));
    context! {
        generation => own.generation, decision, votes, findings, spread,
        score => own.score().map(|own| format!("{own:.2}")),
        score_value => own.score(), reason => own.reason().map(|own| plain(&own.replace('`', ""))),
        fault => own.fault.as_deref().map(plain), confirmations => confirmations.join(", "),
        next => own.next.iter().map(|own| plain(own)).collect::<Vec<_>>().join(", "),
        people => own.people.iter().map(|own| plain(own)).collect::<Vec<_>>(),
        change => own.change.map(|own| format!("{:.0}%", own * 100.0)),
        time => format!("{:.1} s", own.elapsed_ms as f64 / 1000.0),
        time_value => own.elapsed_ms, tokens => own.tokens,
        text => own.text.as_deref().map(cut), diff => diff(of, own), base => own.base,
        lost => own.hash.is_some() && own.text.is_none(),
    }
}

/// What changed against the output that it was made from.
fn diff(of: &Recorded, own: &Output) -> Option<Vec<Value>> {
    let before = of.output(own.base?)?.text.as_deref()?;
    let after = own.text.as_deref()?;
    if before.len() + after.len() > MOST_COMPARED {
        return None;
    }
    let text = TextDiff::from_lines(before, after).unified_diff().context_radius(2).to_string();
    let (shown, more) = beginning(&text, MOST_CHARACTERS);
    let mut lines: Vec<Value> = shown
        .lines()
        .map(|line| {
            let kind = match line.bytes().next() {
                Some(b'+') => "added",
                Some(b'-') => "removed",
                Some(b'@') => "place",
                _ => "same",
            };
            context! { kind, text => plain_lines(line) }
        })
        .collect();
    if lines.is_empty() {
        lines.push(context! { kind => "place", text => "no line differs" });
    }
    if more > 0 {
        let text = format!("… {} more", plural(more as u64, "character", "characters"));
        lines.push(context! { kind => "place", text });
    }
    Some(lines)
}

fn cut(text: &str) -> String {
    let (shown, more) = beginning(text, MOST_CHARACTERS);
    let shown = plain_lines(shown);
    if more == 0 {
        shown
    } else {
        format!("{shown}\n… {} more", plural(more as u64, "character", "characters"))
    }
}
