//! Under which threshold and profile the cases of a report were decided, and what the rulings
//! are worth by it.
//!
//! Read off the rulings themselves: the panel's file knows neither a profile given at the
//! command line nor the threshold that it certified.

use std::collections::BTreeSet;

use super::words::plain;
use crate::ruling::{Bound, Decision, Ruling};

/// Reasons for a mark that are written out.
const MOST_REASONS: usize = 5;

/// What a report says of its rulings besides their decisions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worth {
    /// The lowest and the highest threshold; `None` without rulings.
    thresholds: Option<[f64; 2]>,
    /// Name and hash of every profile: one, in a run.
    profiles: BTreeSet<(String, String)>,
    bound: Option<Bound>,
    reasons: BTreeSet<String>,
    certified: u64,
    uncertified: u64,
    uncalibrated: u64,
    undecided: u64,
    degraded: u64,
}

impl Worth {
    /// Looks at one more ruling.
    pub fn add(&mut self, ruling: &Ruling) {
        let [low, high] = self.thresholds.unwrap_or([ruling.threshold; 2]);
        self.thresholds = Some([low.min(ruling.threshold), high.max(ruling.threshold)]);
        self.degraded += u64::from(ruling.degraded);
        let Some(own) = &ruling.profile else { return };
        self.profiles.insert((own.name.clone(), own.hash.clone()));
        if ruling.decision == Decision::Undecided {
            self.undecided += 1;
            return;
        }
        self.uncalibrated += u64::from(own.uncalibrated);
        self.uncertified += u64::from(own.uncertified && !own.uncalibrated);
        if let Some(bound) = &own.bound {
            self.certified += 1;
            self.bound = Some(bound.clone());
        }
        self.reasons.extend(own.reasons.iter().cloned());
    }

    /// The panel's rule with the threshold and the profile by which was decided.
    #[must_use]
    pub fn rule(&self, rule: &str) -> String {
        let mut text = rule.to_owned();
        match self.thresholds {
            Some([low, high]) if low == high => text.push_str(&format!(", threshold {low:.2}")),
            Some([low, high]) => {
                text.push_str(&format!(", thresholds {low:.2} to {high:.2} by who answered"));
            }
            None => {}
        }
        if !self.profiles.is_empty() {
            text.push_str(", votes mapped by a profile");
        }
        text
    }

    /// The profile, what is certified, and the marks; nothing where there are none.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let profiles: Vec<String> = self
            .profiles
            .iter()
            .map(|(name, hash)| {
                let short: String = hash.chars().take(12).collect();
                format!("profile {} ({})", plain(name), plain(&short))
            })
            .collect();
        let mut parts = Vec::new();
        match (&self.bound, profiles.is_empty()) {
            (_, true) => {}
            (Some(bound), _) => parts.push(format!(
                "{} certified, {} at most {} with confidence {}",
                self.certified,
                bound.mode,
                bound.alpha,
                1.0 - bound.delta
            )),
            (None, _) => parts.push("0 certified".to_owned()),
        }
        for (n, what) in [
            (self.uncalibrated, "uncalibrated"),
            (self.uncertified, "uncertified"),
            (self.undecided, "undecided"),
            (self.degraded, "degraded (fewer votes than declared)"),
        ] {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        }
        if parts.is_empty() {
            return None;
        }
        let mut text = match profiles.as_slice() {
            [] => String::new(),
            profiles => format!("{}: ", profiles.join(", ")),
        };
        text.push_str(&parts.join("; "));
        let reasons: Vec<String> =
            self.reasons.iter().take(MOST_REASONS).map(|reason| plain(reason)).collect();
        if !reasons.is_empty() {
            text.push_str(&format!(" (why: {})", reasons.join("; ")));
        }
        Some(text)
    }
}
