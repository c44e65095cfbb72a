//! Numbers and reasons in words, the same in every report and on the terminal.

use crate::panel::PanelSpec;
use crate::panel::decide::NOT_NEEDED;
use crate::ruling::{Decision, Finding, Reason, Ruling, Vote};
use crate::run::{Share, SourceResult};
use crate::score::Score;

/// A score with two decimals, or a dash.
#[must_use]
pub fn number(score: Option<Score>) -> String {
    score.map_or_else(|| "-".into(), |score| format!("{:.2}", score.get()))
}

/// The panel's score, with as many decimals as it takes to stand on its side of the threshold:
/// 0.498 against 0.50 is not shown as 0.50.
#[must_use]
pub fn panel_score(ruling: &Ruling) -> String {
    let Some(score) = ruling.score.map(Score::get) else { return number(None) };
    let as_shown = |decimals: usize| format!("{score:.decimals$}");
    let reaches = score >= ruling.threshold;
    let is_true = |text: &String| {
        text.parse::<f64>().is_ok_and(|shown| (shown >= ruling.threshold) == reaches)
    };
    (2..=6).map(as_shown).find(is_true).unwrap_or_else(|| as_shown(2))
}

/// A judge's vote, or why there is none; in brackets where it is not counted.
#[must_use]
pub fn vote(vote: &Vote) -> String {
    let text = match vote.score {
        Some(score) => format!("{:.2}", score.get()),
        None => vote.status.name().to_owned(),
    };
    if vote.counted { text } else { format!("({text})") }
}

/// Whose vote is missing, and why; `None` where none is.
#[must_use]
pub fn degraded(ruling: &Ruling) -> Option<String> {
    if !ruling.degraded {
        return None;
    }
    let needed = |judge: &str| {
        !ruling.verdicts.iter().any(|own| own.judge == judge && own.notes.contains_key(NOT_NEEDED))
    };
    let silent: Vec<String> = ruling
        .votes
        .iter()
        .filter(|own| own.counted && own.score.is_none() && needed(&own.judge))
        .map(|own| format!("`{}` ({})", own.judge, own.status))
        .collect();
    Some(format!("degraded: no vote of {}", silent.join(", ")))
}

/// A finding with its criterion before it and its judges behind.
#[must_use]
pub fn finding(own: &Finding) -> String {
    let criterion = own.criterion.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let against = match own.contradicted_by.as_slice() {
        [] => String::new(),
        judges => format!("; {} disagree(s)", judges.join(", ")),
    };
    format!("{criterion}{} [{}{against}]", own.text, own.judges.join(", "))
}

/// Why a panel decided so.
#[must_use]
pub fn reason(ruling: &Ruling) -> String {
    match &ruling.reason {
        Reason::Threshold => threshold(ruling),
        Reason::RequiredJudge { judge } => match vetoes(ruling).as_slice() {
            [] | [_] => format!("the required judge `{judge}` rejects"),
            several => {
                let names: Vec<String> = several.iter().map(|name| format!("`{name}`")).collect();
                format!("the required judges {} reject", names.join(", "))
            }
        },
        Reason::RequiredJudgeMissing { judge } => {
            format!("the required judge `{judge}` gave no vote")
        }
        Reason::RequiredCriterion { criterion } => {
            format!("the required criterion `{criterion}` fails")
        }
        Reason::RequiredCriterionMissing { criterion } => {
            format!("too few judges scored the required criterion `{criterion}`")
        }
        Reason::NoQuorum => {
            format!("a decision needs {}", plural(u64::from(ruling.quorum), "vote", "votes"))
        }
        Reason::AcceptedAlone { judge } => {
            format!("`{judge}` accepts alone, below the threshold {:.2}", ruling.threshold)
        }
        Reason::NoCalibration { detail } => detail.clone(),
    }
}

/// The decision, with the judge or criterion behind it where the score does not say why.
#[must_use]
pub fn decision(ruling: &Ruling) -> String {
    let by = match &ruling.reason {
        Reason::RequiredJudge { judge } => match vetoes(ruling).as_slice() {
            [] | [_] => format!(" by {}", plain(judge)),
            several => format!(" by {}", plain(&several.join(", "))),
        },
        Reason::RequiredCriterion { criterion } => format!(" by {}", plain(criterion)),
        Reason::RequiredJudgeMissing { judge } => format!(": no vote of {}", plain(judge)),
        Reason::RequiredCriterionMissing { criterion } => {
            format!(": no score for {}", plain(criterion))
        }
        _ => String::new(),
    };
    format!("{}{by}", ruling.decision.name())
}

/// The judges whose votes reject alone: required, and below the threshold.
#[must_use]
pub fn vetoes(ruling: &Ruling) -> Vec<&str> {
    let Reason::RequiredJudge { judge: first } = &ruling.reason else { return Vec::new() };
    let below = |vote: &Vote| vote.required && ruling.vote_accepts(vote) == Some(false);
    let others = ruling.votes.iter().filter(|vote| vote.judge != *first && below(vote));
    std::iter::once(first.as_str()).chain(others.map(|vote| vote.judge.as_str())).collect()
}

/// What was said first, by a judge that rejects alone where one does, with who said it.
#[must_use]
pub fn first_finding(ruling: &Ruling) -> Option<String> {
    let vetoes = vetoes(ruling);
    let of_veto =
        |finding: &&Finding| finding.judges.iter().any(|judge| vetoes.contains(&judge.as_str()));
    let finding = if vetoes.is_empty() {
        ruling.feedback.first()
    } else {
        ruling.feedback.iter().find(of_veto)
    }?;
    Some(format!("{}: {}", plain(&finding.judges.join(", ")), finding.text))
}

/// What a case lacks and some judge needs, as flags of `score` and `gate`.
#[must_use]
pub fn missing_flags(ruling: &Ruling) -> Vec<&'static str> {
    const FLAGS: [(&str, &str); 4] = [
        ("input", "--input"),
        ("expected", "--expected"),
        ("context", "--context"),
        ("baseline", "--baseline"),
    ];
    let lacks = |field: &str| {
        ruling.without_vote().any(|vote| {
            let detail = ruling.detail_of(&vote.judge);
            [format!("has no {field}"), format!("has no `{field}`")]
                .iter()
                .any(|said| detail.contains(said))
        })
    };
    FLAGS.into_iter().filter(|(field, _)| lacks(field)).map(|(_, flag)| flag).collect()
}

/// Whether a finding says more than one judge's verdict does: several found it, or some
/// judge contradicts it.
#[must_use]
pub fn is_shared(finding: &Finding) -> bool {
    finding.judges.len() > 1 || !finding.contradicted_by.is_empty()
}

/// The threshold, with its tiebreak where that decides.
fn threshold(ruling: &Ruling) -> String {
    let mut text = format!("threshold {:.2}", ruling.threshold);
    let key = ruling.profile.as_ref().and_then(|own| own.key.zip(own.certified));
    if let Some((own, certified)) = key
        && own.score == certified.score
    {
        text.push_str(&format!(
            " reached exactly, tiebreak {:.4} against {:.4}",
            own.tiebreak, certified.tiebreak
        ));
    }
    text
}

/// The profile and what a ruling is worth under it; nothing without a profile.
#[must_use]
pub fn profile(ruling: &Ruling) -> Option<String> {
    let own = ruling.profile.as_ref()?;
    let mut text = format!("profile {} ({})", own.name, &own.hash[..own.hash.len().min(12)]);
    match (own.status(), &own.bound) {
        (_, _) if ruling.decision == Decision::Undecided && !own.uncertified => {
            text.push_str(": nothing was decided, so nothing is certified");
        }
        ("certified", Some(bound)) => text.push_str(&format!(
            ": certified, {} at most {} with confidence {}",
            bound.mode,
            bound.alpha,
            1.0 - bound.delta
        )),
        (status, _) => {
            let why = if own.reasons.is_empty() {
                String::new()
            } else {
                format!(": {}", own.reasons.join("; "))
            };
            text.push_str(&format!(": {status}{why}"));
        }
    }
    Some(text)
}

/// What a ruling is marked with: `degraded`, `uncertified`, `uncalibrated`.
#[must_use]
pub fn marks(ruling: &Ruling) -> Vec<&'static str> {
    let mut marks = Vec::new();
    if ruling.degraded {
        marks.push("degraded");
    }
    if let Some(profile) = &ruling.profile
        && profile.uncertified
    {
        marks.push(profile.status());
    }
    marks
}

/// How a panel's votes become a score; the threshold is the rulings' to say, since a profile
/// replaces the panel's own.
#[must_use]
pub fn rule(spec: &PanelSpec) -> String {
    format!(
        "the {} of {}, quorum {}",
        spec.aggregate.name().replace('_', " "),
        plural(u64::from(spec.counted()), "vote", "votes"),
        spec.quorum()
    )
}

/// `1 case`, `2 cases`.
#[must_use]
pub fn plural(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// A text without control and direction characters, which in an id or a name could draw a
/// row of their own, or turn the words after them round.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || crate::text::is_format(c) { '\u{fffd}' } else { c })
        .collect()
}

/// The same with its lines and tabs kept.
#[must_use]
pub fn plain_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() || crate::text::is_format(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// A text of at most `most` characters (4 at least), cut in the middle: long ids differ at
/// their ends.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    let most = most.max(4);
    if count <= most {
        return text.to_owned();
    }
    let tail = (most - 1).div_ceil(2);
    let head = most - 1 - tail;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// A number with two decimals, or a dash.
#[must_use]
pub fn two(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

/// A share with its interval and n, or a dash.
#[must_use]
pub fn of_share(share: Option<&Share>) -> String {
    share.map_or_else(
        || "-".into(),
        |own| format!("{:.2} [{:.2}, {:.2}] n = {}", own.point, own.lower, own.upper, own.n),
    )
}

/// What a source is called; in brackets the cases that name none.
#[must_use]
pub fn source_name(of: &SourceResult) -> String {
    of.source.clone().unwrap_or_else(|| "(no source)".to_owned())
}

/// A case's id, shortened to `most` characters, with its row where the id alone says nothing.
#[must_use]
pub fn case_name(id: &str, row: Option<u64>, most: usize) -> String {
    match row {
        Some(row) => {
            let row = format!("row {row}");
            format!("{} {row}", shortened(id, most.saturating_sub(row.len() + 1)))
        }
        None => shortened(id, most),
    }
}

/// The beginning of a text, and how much was left out.
#[must_use]
pub fn beginning(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        None => (text, 0),
        Some((byte, _)) => (&text[..byte], text[byte..].chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_id_keeps_both_its_ends() {
        assert_eq!(shortened("short", 28), "short");
        let id = "conversations/2026/support/team-a/ticket-0017";
        let cut = shortened(id, 28);
        assert_eq!(cut.chars().count(), 28);
        assert!(cut.starts_with("conversations") && cut.ends_with("ticket-0017"), "{cut}");
        assert_eq!(shortened("一二三四五六七八", 5), "一二…七八");
        assert_eq!(shortened("abcdefgh", 0), "a…gh");
    }

    #[test]
    fn a_beginning_says_how_much_is_left() {
        assert_eq!(beginning("文字列", 2), ("文字", 1));
        assert_eq!(beginning("ab", 2), ("ab", 0));
    }

    #[test]
    fn nothing_that_steers_a_terminal_or_turns_text_round_is_left() {
        assert_eq!(plain("a\u{1b}[2J\u{202e}b\n"), "a\u{fffd}[2J\u{fffd}b\u{fffd}");
        assert_eq!(plain_lines("a\r\n\u{1b}b\tc"), "a\n\u{fffd}b\tc");
    }
}
