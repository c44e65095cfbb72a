//! Numbers and reasons in words, for all verbs alike.

pub(super) use crate::report::words::{
    decision, degraded, missing_flags, number, panel_score, profile, reason, vote,
};
use crate::verdict::Status;

/// What a status means and what helps, for statuses that are no score; `of_model` where a
/// language model gave it.
pub(super) fn cure(status: Status, of_model: bool) -> Option<&'static str> {
    match status {
        Status::Ok | Status::Abstained | Status::Cancelled => None,
        Status::Unparseable if !of_model => {
            Some("no score in the answer: `venire show RUN --status unparseable`")
        }
        Status::Unparseable => Some(
            "no score in the answer, `venire show RUN --status unparseable` shows it; small models keep best to `mode = \"yes_no\"`",
        ),
        Status::OutOfRange => Some(
            "a number off the judge's `scale`: declare the scale (`venire show RUN --status out_of_range`)",
        ),
        Status::Truncated => Some("raise the judge's `max_tokens`"),
        Status::Refused => Some("look at the replies: the model declines to judge these cases"),
        Status::Timeout => Some("raise the judge's `timeout`, or lower `-j`"),
        Status::ProviderError => {
            Some("`venire show RUN --status provider_error` says what was answered")
        }
        Status::RateLimited => Some("lower `-j`, or set the judge's `requests_per_minute`"),
        Status::Budget => Some("raise `--cost-limit`"),
        Status::Internal => {
            Some("a fault of a judge's own code: `venire show RUN --status internal`")
        }
    }
}
