//! What is said: to the agent when it has to go on, and to the person else.

use super::outcome::Cause;
use super::policy::Step;
use crate::report::advice::{Reader, advice};
use crate::ruling::Ruling;

/// What is said, to the agent when it has to go on and to the person else.
pub(super) fn words(
    step: Step,
    blocks: u32,
    ruling: Option<&Ruling>,
    detail: Option<&str>,
) -> String {
    let found = match (ruling, detail) {
        (Some(ruling), _) => advice(ruling, Reader::Agent),
        (None, Some(detail)) => detail.to_owned(),
        (None, None) => "no reason is known".to_owned(),
    };
    let times = crate::report::words::plural(u64::from(blocks), "round", "rounds");
    match step {
        Step::Allow(_) => String::new(),
        Step::Block(Cause::Undecided) => {
            format!("venire: the work could not be judged, and may not end so.\n{found}")
        }
        Step::Block(_) => format!(
            "venire: not accepted. Change the work so that each finding is met, then finish.\n{found}"
        ),
        Step::Note(Cause::Undecided) => {
            format!(
                "venire: NOT JUDGED, the agent may stop all the same. Nothing was accepted.\n{found}"
            )
        }
        Step::End(Cause::Undecided) => {
            format!(
                "venire: ended, since the work could not be judged. Nothing was accepted.\n{found}"
            )
        }
        Step::Note(cause) | Step::End(cause) => {
            let limit = match cause {
                Cause::SessionBlocksSpent => "the session's limit is reached",
                Cause::TimeSpent => "the time is up",
                Cause::NoProgress => "nothing changed",
                _ => "the limit is reached",
            };
            format!("venire: NOT ACCEPTED after {times} of feedback; {limit}.\n{found}")
        }
    }
}

/// An error with its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
