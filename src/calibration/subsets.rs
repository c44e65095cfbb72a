//! What holds when not every judge answers: a map and a threshold for each set of judges that
//! can reach the quorum, and each judge's own error.
//!
//! The votes that are left are another panel, with other keys: the threshold of the full
//! panel says nothing about them. A set has a threshold of its own, from the same cases, which
//! holds when judges stay away for reasons that have nothing to do with the case. Where the
//! sets are too many to list, one threshold a size holds for all sets of that size, whoever
//! stays away and why. Each has the certificate's confidence by itself, not all of them at
//! once.

use serde::{Deserialize, Serialize};

use super::certificate::{Certificate, CertificateOptions, CertifyCase};
use super::map::Map;
use super::panel::Key;

/// Sets of judges listed one by one; of more there is one threshold a size.
pub const MOST_SUBSETS: usize = 64;

/// A threshold, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnCertificate {
    /// Accept at or above this key: its first number.
    pub threshold: Option<f64>,
    /// Its second number.
    pub tiebreak: Option<f64>,
    /// Bad cases used, one a group.
    pub n_bad: u64,
    /// Of these, accepted.
    pub false_accepts: Option<u64>,
    /// Why there is no threshold.
    pub reason: Option<String>,
    /// Bad cases still needed; `None` where no number helps.
    pub labels_needed: Option<u64>,
}

impl OwnCertificate {
    /// Certifies cases; a refusal keeps its reason.
    pub(super) fn of(cases: &[CertifyCase<'_>], options: CertificateOptions) -> Self {
        match Certificate::search(cases, options) {
            Ok((certificate, found)) => Self {
                threshold: found.map(|key| key.0),
                tiebreak: found.map(|key| key.1),
                n_bad: certificate.n_bad,
                false_accepts: certificate.false_accepts,
                reason: certificate.reason,
                labels_needed: certificate.labels_needed,
            },
            Err(undefined) => Self::refused(&undefined.to_string()),
        }
    }

    /// None, for a reason that has nothing to do with the cases.
    pub(super) fn refused(reason: &str) -> Self {
        Self {
            threshold: None,
            tiebreak: None,
            n_bad: 0,
            false_accepts: None,
            reason: Some(reason.to_owned()),
            labels_needed: None,
        }
    }

    /// The key from which is accepted, if there is one.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        Some((self.threshold?, self.tiebreak?))
    }
}

/// The calibration of one set of judges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Subset {
    /// The judges that answered, in the panel's order.
    pub judges: Vec<String>,
    /// From their key to the labels' scale.
    pub map: Map,
    /// Their threshold.
    #[serde(flatten)]
    pub certificate: OwnCertificate,
}

/// The threshold for all sets of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OfSize {
    /// How many judges answered.
    pub size: usize,
    /// Their threshold.
    #[serde(flatten)]
    pub certificate: OwnCertificate,
}

/// What holds when not every judge answers; the full panel is not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Subsets {
    /// Each set that reaches the quorum, where they can be listed.
    pub sets: Vec<Subset>,
    /// Each size that reaches the quorum, where the sets can't be listed.
    pub sizes: Vec<OfSize>,
}

impl Subsets {
    /// The threshold and the map for the judges that answered; `None` where the profile knows
    /// nothing of them.
    #[must_use]
    pub fn find(&self, answered: &[&str]) -> Option<(&OwnCertificate, Option<&Map>)> {
        let set = self.sets.iter().find(|set| {
            set.judges.len() == answered.len()
                && set.judges.iter().all(|judge| answered.contains(&judge.as_str()))
        });
        set.map(|set| (&set.certificate, Some(&set.map))).or_else(|| {
            let size = self.sizes.iter().find(|own| own.size == answered.len())?;
            Some((&size.certificate, None))
        })
    }
}

/// The sets of places among `seats`, smaller than all of them and not below `quorum`, the
/// largest first; `None` where there are more than [`MOST_SUBSETS`].
pub(super) fn sets(seats: usize, quorum: usize) -> Option<Vec<Vec<usize>>> {
    // 2^20 is far beyond the limit already unless the quorum is near the whole panel.
    if seats > 20 {
        return if quorum >= seats { Some(Vec::new()) } else { None };
    }
    let mut sets: Vec<Vec<usize>> = (0u32..1 << seats)
        .filter(|bits| {
            let size = bits.count_ones() as usize;
            size >= quorum.max(1) && size < seats
        })
        .take(MOST_SUBSETS + 1)
        .map(|bits| (0..seats).filter(|j| bits >> j & 1 == 1).collect())
        .collect();
    if sets.len() > MOST_SUBSETS {
        return None;
    }
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    Some(sets)
}

/// How often each judge accepts good and bad cases: the confusion matrices of two classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Confusion {
    /// Share of good cases, `(k + 1) / (n + 2)`.
    pub good: f64,
    /// The judges, in the panel's order.
    pub seats: Vec<ConfusionSeat>,
}

/// One judge's confusion matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ConfusionSeat {
    /// The judge.
    pub judge: String,
    /// The calibrated score from which it accepts.
    pub accept: f64,
    /// P(accepts | good), `(k + 1) / (n + 2)`.
    pub accepts_good: f64,
    /// P(accepts | bad), `(k + 1) / (n + 2)`.
    pub accepts_bad: f64,
}

impl Confusion {
    /// P(good | votes) by the model of Dawid and Skene (1979) with these matrices: judges that
    /// err independently given the truth. `None` without a vote that the matrices know.
    #[must_use]
    pub fn posterior(&self, vote: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        let logit = |p: f64| (p / (1.0 - p)).ln();
        let mut evidence: Vec<f64> = Vec::new();
        for seat in &self.seats {
            let Some(vote) = vote(&seat.judge) else { continue };
            evidence.push(if vote >= seat.accept {
                (seat.accepts_good / seat.accepts_bad).ln()
            } else {
                ((1.0 - seat.accepts_good) / (1.0 - seat.accepts_bad)).ln()
            });
        }
        if evidence.is_empty() {
            return None;
        }
        // Sorted, so that the sum does not depend on the order of judges.
        evidence.sort_unstable_by(f64::total_cmp);
        let sum = logit(self.good) + evidence.iter().sum::<f64>();
        Some(1.0 / (1.0 + (-sum).exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_reach_the_quorum_and_are_listed_while_they_are_few() {
        let three = sets(3, 2).unwrap();
        assert_eq!(three, [vec![0, 1], vec![0, 2], vec![1, 2]]);
        assert_eq!(sets(5, 3).unwrap().len(), 15);
        assert_eq!(sets(7, 4).unwrap().len(), 63);
        assert_eq!(sets(8, 5), None);
        assert_eq!(sets(1, 1), Some(Vec::new()));
        assert_eq!(sets(40, 21), None);
        assert_eq!(sets(40, 40), Some(Vec::new()));
    }

    #[test]
    fn the_posterior_is_bayes_rule_and_its_order_does_not_matter() {
        let seat = |judge: &str, good, bad| ConfusionSeat {
            judge: judge.to_owned(),
            accept: 0.5,
            accepts_good: good,
            accepts_bad: bad,
        };
        let mut model =
            Confusion { good: 0.5, seats: vec![seat("a", 0.9, 0.2), seat("b", 0.8, 0.4)] };
        let votes = |judge: &str| Some(if judge == "a" { 1.0 } else { 0.0 });
        let expected = 0.9 * 0.2 / (0.9 * 0.2 + 0.2 * 0.6);
        let found = model.posterior(votes).unwrap();
        assert!((found - expected).abs() < 1e-12);
        model.seats.reverse();
        assert_eq!(model.posterior(votes), Some(found));
        assert_eq!(model.posterior(|_| None), None);
    }
}
