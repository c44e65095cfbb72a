//! The panel that a profile is to be put in force on, and in what it is not the one that was
//! calibrated.

use super::map::Map;
use super::panel::Seat;
use super::profile::Profile;
use super::table::{JudgeKind, SeatFacts};
use crate::verdict::Fingerprint;

/// One seat of the panel that the profile is put in force on.
#[derive(Clone, Debug)]
pub struct SeatedJudge<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is.
    pub fingerprint: &'a Fingerprint,
    /// Whether its vote is counted.
    pub counted: bool,
    /// How it sits.
    pub seat: SeatFacts,
    /// Whether it may accept alone.
    pub accept_alone: bool,
}

/// How the panel makes one score of the votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The lower median.
    Median,
    /// The profile's weights.
    Pooled,
    /// The profile's confusion matrices.
    DawidSkene,
    /// Anything else, by its name: no profile is made for it.
    Other(&'static str),
}

/// The panel that the profile is put in force on.
#[derive(Clone, Debug)]
pub struct SeatedPanel<'a> {
    /// The seats, in the panel's order.
    pub seats: Vec<SeatedJudge<'a>>,
    /// How the panel makes one score of the votes.
    pub pooling: Pooling,
    /// The panel's own threshold, for raw votes.
    pub raw_threshold: f64,
}

/// A seat for a judge that the profile does not know: its vote as it is, on the labels' scale.
pub(super) fn stranger(name: &str, scale: [f64; 2]) -> Seat {
    Seat {
        judge: name.to_owned(),
        kind: JudgeKind::Graded,
        vote: Map::None,
        map: Map::None,
        range: scale,
        unit: Some(scale),
    }
}

/// The score from which a judge accepts alone.
pub(super) fn alone(profile: &Profile, seat: &SeatedJudge<'_>) -> Result<Option<f64>, String> {
    if !seat.accept_alone {
        return Ok(None);
    }
    let name = seat.name;
    let Some(own) = profile.judges.get(name) else {
        return Err(format!("it knows no judge `{name}`, which is to accept alone"));
    };
    own.threshold.map(Some).ok_or_else(|| {
        format!(
            "judge `{name}` is to accept alone, and its own false-positive rate is not certified: {}",
            own.reason.as_deref().unwrap_or("nothing says why")
        )
    })
}

/// Everything in which a panel is not the one that was calibrated; and the judges of which the
/// profile knows the name alone.
pub(super) fn differences(
    profile: &Profile,
    panel: &SeatedPanel<'_>,
) -> (Vec<String>, Vec<String>) {
    let (mut changes, mut unverified) = (Vec::new(), Vec::new());
    let binding = &profile.binding;
    for seat in panel.seats.iter().filter(|seat| seat.counted) {
        let name = seat.name;
        match binding.fingerprints.get(name) {
            None => changes.push(format!("judge `{name}` is new")),
            Some(None) => unverified.push(name.to_owned()),
            Some(Some(known)) if known != seat.fingerprint => changes.push(format!(
                "judge `{name}` is another: its fingerprint was {} and is {}",
                known.as_str(),
                seat.fingerprint.as_str()
            )),
            Some(Some(_)) => {}
        }
        let Some(known) = binding.seats.get(name) else { continue };
        if known.invert != seat.seat.invert {
            let (was, is) = if known.invert { ("", "not ") } else { ("not ", "") };
            changes.push(format!("judge `{name}` was {was}inverted and is {is}inverted"));
        }
        if known.samples != seat.seat.samples {
            changes.push(format!(
                "judge `{name}` voted by {} sample(s) and votes by {}",
                known.samples, seat.seat.samples
            ));
        }
    }
    for name in binding.fingerprints.keys() {
        match panel.seats.iter().find(|seat| seat.name == name) {
            None => changes.push(format!("judge `{name}` is missing")),
            Some(seat) if !seat.counted => changes.push(format!(
                "judge `{name}` has no vote on the panel (`report_only` or `weight = 0`): name the voting judges with `venire calibrate --judge`"
            )),
            Some(_) => {}
        }
    }
    let pooled = profile.panel.stack.is_some();
    let made_for = if pooled { "pooled" } else { "median" };
    let asked = match panel.pooling {
        Pooling::Median if pooled => Some("median"),
        Pooling::Other(name) => Some(name),
        Pooling::Median | Pooling::Pooled | Pooling::DawidSkene => None,
    };
    if let Some(asked) = asked {
        changes.push(format!("the panel's `aggregate` is {asked}, calibrated was {made_for}"));
    }
    (changes, unverified)
}
