//! Numbers and reasons in words, for all verbs alike.

use super::printer::plural;
use crate::ruling::{Reason, Ruling, Vote};
use crate::score::Score;
use crate::verdict::Status;

/// A score with two decimals, or a dash.
pub(super) fn number(score: Option<Score>) -> String {
    score.map_or_else(|| "-".into(), |score| format!("{:.2}", score.get()))
}

/// A judge's vote, or why there is none.
pub(super) fn vote(vote: &Vote) -> String {
    let text = match vote.score {
        Some(score) => format!("{:.2}", score.get()),
        None => vote.status.name().to_owned(),
    };
    if vote.counted { text } else { format!("({text})") }
}

/// Why a panel decided so.
pub(super) fn reason(ruling: &Ruling) -> String {
    match &ruling.reason {
        Reason::Threshold => threshold(ruling),
        Reason::RequiredJudge { judge } => format!("the required judge `{judge}` rejects"),
        Reason::RequiredJudgeMissing { judge } => {
            format!("the required judge `{judge}` gave no vote")
        }
        Reason::RequiredCriterion { criterion } => {
            format!("the required criterion `{criterion}` fails")
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
pub(super) fn profile(ruling: &Ruling) -> Option<String> {
    let own = ruling.profile.as_ref()?;
    let mut text = format!("profile {} ({})", own.name, &own.hash[..own.hash.len().min(12)]);
    match (own.status(), &own.bound) {
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

/// What a status means and what helps, for statuses that are no score.
pub(super) fn cure(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok | Status::Abstained | Status::Cancelled => None,
        Status::Unparseable => Some(
            "no score in the answer, see `detail` in the export; small models keep best to `mode = \"yes_no\"`",
        ),
        Status::OutOfRange => {
            Some("a number off the judge's `scale`: declare the scale, see `detail` in the export")
        }
        Status::Truncated => Some("raise the judge's `max_tokens`"),
        Status::Refused => Some("look at the replies: the model declines to judge these cases"),
        Status::Timeout => Some("raise the judge's `timeout`, or lower `-j`"),
        Status::ProviderError => Some("see the details with `venire export RUN -o verdicts.csv`"),
        Status::RateLimited => Some("lower `-j`, or set the judge's `requests_per_minute`"),
        Status::Budget => Some("raise `--cost-limit`"),
        Status::Internal => Some("a fault of a judge's own code: see the details in the export"),
    }
}
