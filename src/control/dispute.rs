//! Disputes: an agent's rebuttal of a finding, which it writes after its output.
//!
//! The judges that did not raise the finding look at the output once more, with the rebuttal
//! before them. What they say overturns nothing: when they would accept, the judges contradict
//! each other, and a person decides or the run ends as such. A finding is disputed once.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::content_hash;
use crate::ruling::Finding;
use crate::text::excerpt;

/// Characters of a rebuttal that are kept.
const REBUTTAL: usize = 1000;

/// A rebuttal of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dispute {
    /// What was found.
    pub finding: String,
    /// The judges that found it.
    pub judges: Vec<String>,
    /// What the agent says against it.
    pub rebuttal: String,
}

impl Dispute {
    /// What a finding is known by.
    pub(super) fn key(&self) -> String {
        content_hash(&self.finding)
    }

    /// What judges are told of some disputes.
    pub(super) fn context(disputes: &[Self]) -> String {
        let each = disputes.iter().map(|own| {
            format!("Another reviewer said: {}\nThe author answers: {}", own.finding, own.rebuttal)
        });
        each.collect::<Vec<_>>().join("\n\n")
    }
}

/// What became of a dispute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejudged {
    /// The other judges would accept.
    Upheld,
    /// They would not.
    Overruled,
    /// Too few other judges are there, or could say.
    Open,
}

/// A last line `DISPUTE 2: why`.
static LINE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*[*_`>]*DISPUTE\s+#?(\d{1,4})\s*[:：]\s*(.*\S)").ok());

/// Takes the disputes off the end of what an agent said: what is left, and the disputes, those
/// of numbers that no finding has left out. Only whole last lines count, so that a text about
/// disputes stays as it is.
pub(super) fn take(said: &str, findings: &[Finding]) -> (String, Vec<Dispute>) {
    let mut lines: Vec<&str> = said.lines().collect();
    let mut disputes: Vec<Dispute> = Vec::new();
    let mut cut = false;
    while let Some(last) = lines.last() {
        if last.trim().is_empty() {
            lines.pop();
            continue;
        }
        let Some(found) = LINE.as_ref().and_then(|line| line.captures(last)) else { break };
        let finding = found[1].parse::<usize>().ok().and_then(|n| findings.get(n.checked_sub(1)?));
        let Some(finding) = finding else { break };
        disputes.push(Dispute {
            finding: finding.text.clone(),
            judges: finding.judges.clone(),
            rebuttal: excerpt(&found[2], REBUTTAL).into_owned(),
        });
        cut = true;
        lines.pop();
    }
    disputes.reverse();
    (if cut { lines.join("\n") } else { said.to_owned() }, disputes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        ["It has no rhyme.", "It is short."]
            .map(|text| Finding {
                text: text.to_owned(),
                judges: vec!["strict".to_owned()],
                criterion: None,
                contradicted_by: Vec::new(),
            })
            .to_vec()
    }

    #[test]
    fn last_lines_are_taken_as_disputes_and_nothing_else() {
        let said = "A poem.\n\nDISPUTE 1: free verse was asked for\n\n**DISPUTE #2：它够长**\n";
        let (text, disputes) = take(said, &findings());
        assert_eq!(text, "A poem.");
        let numbers: Vec<&str> = disputes.iter().map(|own| own.finding.as_str()).collect();
        assert_eq!(numbers, ["It has no rhyme.", "It is short."]);
        assert_eq!(disputes[0].rebuttal, "free verse was asked for");
        for same in [
            "DISPUTE 1: in the middle\nand an end\n",
            "A poem.\nDISPUTE 3: no such finding",
            "A poem.\nDISPUTE 0: no such finding",
            "A poem.\nDISPUTE 99999999999999999999: no such finding",
            "A poem.\nDISPUTE 1:",
            "About the word dispute 1: nothing.",
            "",
        ] {
            assert_eq!(take(same, &findings()), (same.to_owned(), Vec::new()), "{same}");
        }
        assert_eq!(take("DISPUTE 1: all", &[]).1, []);
    }

    #[test]
    fn a_rebuttal_without_end_is_cut() {
        let said = format!("x\nDISPUTE 1: {}", "词".repeat(100_000));
        let (_, disputes) = take(&said, &findings());
        assert!(disputes[0].rebuttal.chars().count() <= REBUTTAL + 3);
    }
}
