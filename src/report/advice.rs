//! What to do next, in few lines: for the next prompt of an agent, or a person at a terminal.
//!
//! Short by force: a test command's output goes into a prompt twice on some hosts, so every
//! line has to earn its place.

use super::words::{
    degraded, finding, missing_flags, number, panel_score, plural, profile, reason,
};
use crate::ruling::{Decision, Reason, Ruling};

/// Lines at most: a loop's next prompt has to hold them.
const MOST_LINES: usize = 40;
/// Characters of one line at most, since a judge may pass on what a program printed.
const MOST_OF_LINE: usize = 400;
/// Characters at most in all.
const MOST: usize = 6000;

/// Who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A person, who can call other verbs.
    Person,
    /// An agent, who should change its work and nothing else.
    Agent,
}

/// The decision on its line, and what would change it: at most 40 lines and 6000 characters.
#[must_use]
pub fn advice(ruling: &Ruling, reader: Reader) -> String {
    let mut lines = vec![format!(
        "{}: score {}, {} of {}; {}",
        ruling.decision.name(),
        panel_score(ruling),
        ruling.votes_used,
        plural(u64::from(ruling.votes_declared), "vote", "votes"),
        reason(ruling)
    )];
    lines.extend(degraded(ruling));
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
        match &ruling.reason {
            Reason::RequiredCriterionMissing { criterion } => {
                lines.push(format!("no decision: nothing says whether `{criterion}` holds"));
            }
            _ => lines.push("no decision; judges without a vote:".into()),
        }
        for vote in ruling.without_vote() {
            let required = if vote.required { " (required)" } else { "" };
            let detail = first_line(ruling.detail_of(&vote.judge));
            lines.push(format!("- {}{required}: {}: {detail}", vote.judge, vote.status));
        }
        lines.push(format!("next: the answer was not rejected; {}", help(ruling)));
    } else if ruling.feedback.is_empty() {
        lines.push(match reader {
            Reader::Person => {
                "next: the judges gave no reasons; `venire score` shows their votes".into()
            }
            Reader::Agent => "next: the judges gave no reasons; check the work once more".into(),
        });
    } else {
        lines.push("next, change:".into());
        for own in &ruling.feedback {
            lines.extend(format!("- {}", finding(own)).lines().map(str::to_owned));
        }
    }
    shortened(lines, reader)
}

fn shortened(mut lines: Vec<String>, reader: Reader) -> String {
    for line in &mut lines {
        if let Some((at, _)) = line.char_indices().nth(MOST_OF_LINE) {
            line.truncate(at);
            line.push('…');
        }
    }
    let mut room = MOST;
    let fit = lines.iter().take_while(|line| {
        let taken = line.chars().count() + 1;
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    });
    let fit = fit.count();
    let kept = if fit < lines.len() || lines.len() > MOST_LINES {
        fit.min(MOST_LINES - 1)
    } else {
        lines.len()
    };
    if kept < lines.len() {
        let left = lines.len() - kept;
        lines.truncate(kept);
        lines.push(match reader {
            Reader::Person => format!("({left} more lines: `venire score` shows all)"),
            Reader::Agent => format!("({left} more lines)"),
        });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_advice_is_cut_to_its_lines_and_characters_and_says_so() {
        let lines = |count: usize, text: &str| vec![text.to_owned(); count];
        let text = shortened(lines(40, "short"), Reader::Person);
        assert_eq!(text.lines().count(), 40);
        assert!(!text.contains("more lines"));
        let text = shortened(lines(41, "short"), Reader::Agent);
        assert_eq!(text.lines().count(), 40);
        assert!(text.ends_with("(2 more lines)"), "{text}");
        let text = shortened(lines(3, &"好".repeat(401)), Reader::Agent);
        assert_eq!(text.lines().next().map(|line| line.chars().count()), Some(401));
        let text = shortened(lines(30, &"字".repeat(399)), Reader::Person);
        assert_eq!(text.lines().count(), 16);
        assert!(text.ends_with("(15 more lines: `venire score` shows all)"), "{text}");
    }
}
