//! What a judge's scores were read from.
//!
//! A score from log-probabilities is an expectation, one from a written answer a level: two
//! scales, which no mean, threshold or calibration of one judge can mix in silence.

use serde::Serialize;
use serde_json::Value;

/// The note of a verdict that says what its score was read from.
pub const SCORE_SOURCE: &str = "score_source";

/// Scores of one judge by what they were read from. Judges that are no language models have
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ScoreSources {
    /// From the log-probabilities of one token.
    pub logprobs: u64,
    /// From a written answer.
    pub text: u64,
}

impl ScoreSources {
    /// Counts the note of a verdict with a score; anything else says nothing.
    pub fn add(&mut self, note: Option<&Value>) {
        match note.and_then(Value::as_str) {
            Some("logprobs") => self.logprobs += 1,
            Some("text") => self.text += 1,
            _ => {}
        }
    }

    /// What to know of a judge whose scores are on two scales; `None` where they are not.
    #[must_use]
    pub fn warning(&self, judge: &str) -> Option<String> {
        let Self { logprobs, text } = self;
        if *logprobs == 0 || *text == 0 {
            return None;
        }
        Some(format!(
            "`{judge}` has two scales: {logprobs} of its scores were read from log-probabilities \
             and {text} from written answers, and the two can't be compared; set `logprobs = \
             \"require\"` to leave the {text} without a score, or `logprobs = \"never\"` to have \
             all of them written, and run again"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_with_two_scales_is_named_with_both_counts_and_one_with_one_is_not() {
        let mut sources = ScoreSources::default();
        for (note, times) in [("logprobs", 40), ("text", 3), ("elsewhere", 9)] {
            assert_eq!(sources.warning("gpt").is_some(), sources.text > 0, "{note}");
            (0..times).for_each(|_| sources.add(Some(&note.into())));
        }
        sources.add(None);
        let warning = sources.warning("gpt").unwrap();
        for part in ["`gpt`", "40", "3", "require", "never"] {
            assert!(warning.contains(part), "{warning}");
        }
    }
}
