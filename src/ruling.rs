//! The ruling: what a panel says about one case.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::score::Score;
use crate::verdict::{Status, Verdict};

/// What the panel decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The score reaches the threshold, with a quorum and no veto.
    Accept,
    /// The score is below the threshold, or a required judge or criterion failed.
    Reject,
    /// Too few votes to say.
    Undecided,
}

impl Decision {
    /// The name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Undecided => "undecided",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why the panel decided so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The score stands against the threshold, and nothing else did.
    Threshold,
    /// A `required` judge's vote is below the threshold.
    RequiredJudge {
        /// Its name.
        judge: String,
    },
    /// A `required` judge gave no vote, so it cannot be said to have passed.
    RequiredJudgeMissing {
        /// Its name.
        judge: String,
    },
    /// A `required` criterion's median is below its pass mark.
    RequiredCriterion {
        /// The criterion's name.
        criterion: String,
    },
    /// A `required` criterion was not scored by enough of the judges that were asked about it,
    /// so it cannot be said to have passed.
    RequiredCriterionMissing {
        /// The criterion's name.
        criterion: String,
    },
    /// Fewer `ok` votes than the quorum.
    NoQuorum,
    /// A judge whose own error is certified accepts alone.
    AcceptedAlone {
        /// Its name.
        judge: String,
    },
    /// The profile has no certified threshold for the judges that answered.
    NoCalibration {
        /// Who answered, and why there is none.
        detail: String,
    },
}

/// A key as it decides: by the score, then by the tiebreak, both on the labels' scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionKey {
    /// The median of the mapped votes, or what the profile's weights make of them.
    pub score: f64,
    /// The mean of the mapped votes.
    pub tiebreak: f64,
}

/// What a certificate promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bound {
    /// What is bounded: `false_positive_rate`, `false_acceptance_share` or `expected`.
    pub mode: String,
    /// By how much; where a judge may accept alone, the sum of both bounds.
    pub alpha: f64,
    /// One minus the confidence.
    pub delta: f64,
}

/// The profile under which a ruling was made, and what the ruling is worth by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProfileMark {
    /// The profile's name.
    pub name: String,
    /// Its hash.
    pub hash: String,
    /// Whether the votes are not those that were calibrated: another judge, another model.
    pub uncalibrated: bool,
    /// Whether nothing would bound the error of this ruling: no certificate, or another panel.
    pub uncertified: bool,
    /// Why, one entry a reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The bound; `None` when uncertified, and where nothing was decided.
    pub bound: Option<Bound>,
    /// The key; `None` below the quorum and for `dawid_skene`.
    pub key: Option<DecisionKey>,
    /// The certified key, at or above which is accepted; `None` where the threshold is a
    /// plain score.
    pub certified: Option<DecisionKey>,
    /// The label that the key predicts, on the labels' scale.
    pub expected_label: Option<f64>,
    /// The panel's own threshold, which raw votes of `required` judges are held against.
    pub raw_threshold: f64,
}

impl ProfileMark {
    /// `certified`, `uncertified` or `uncalibrated`; `undecided` where a certificate holds and
    /// nothing was decided under it.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match (self.uncalibrated, self.uncertified, &self.bound) {
            (true, _, _) => "uncalibrated",
            (false, true, _) => "uncertified",
            (false, false, Some(_)) => "certified",
            (false, false, None) => "undecided",
        }
    }
}

/// One judge's vote: its samples folded into one score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Vote {
    /// The judge.
    pub judge: String,
    /// The median of the judge's `ok` samples (the lower one of an even count); `None` when
    /// it has none.
    pub score: Option<Score>,
    /// The status of a single sample, or of the first sample that is not `ok` when none is.
    pub status: Status,
    /// The vote after its map, on the labels' scale; `None` without a profile or a vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<f64>,
    /// Its weight in the weighted aggregators.
    pub weight: f64,
    /// Whether it counts: a `report_only` judge is shown and never counted.
    pub counted: bool,
    /// Whether it may veto.
    pub required: bool,
    /// Samples asked for.
    pub samples: u32,
    /// Samples with status `ok`.
    pub samples_ok: u32,
    /// Largest minus smallest `ok` sample; `None` below two.
    pub sample_spread: Option<f64>,
}

/// The panel's median on one criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CriterionRuling {
    /// The criterion.
    pub name: String,
    /// The lower median of the judges that scored it; `None` when none did.
    pub score: Option<Score>,
    /// The judges that scored it.
    pub votes: u32,
    /// Whether it passes: by the median against the strictest pass mark seen.
    pub passed: Option<bool>,
    /// Whether the output is rejected when it fails.
    pub required: bool,
}

/// One thing the panel found, with the judges that said so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// What was said; of near-duplicates the first in the panel's order.
    pub text: String,
    /// Who said it, in the panel's order.
    pub judges: Vec<String>,
    /// The criterion it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// Judges that passed the criterion which this finding's judge failed, or the other way
    /// round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradicted_by: Vec<String>,
}

/// What a panel says about one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ruling {
    /// The case.
    pub case: String,
    /// The panel's score by its aggregator, after mapping where a profile is in force;
    /// `None` below the quorum.
    pub score: Option<Score>,
    /// The least and the greatest score that the full panel could have given, where a
    /// sequential panel left votes out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_bounds: Option<(Score, Score)>,
    /// The same over the votes as given.
    pub raw_score: Option<Score>,
    /// The mean of the mapped votes: the second part of the decision key.
    pub tiebreak: Option<Score>,
    /// Largest minus smallest counted vote; `None` below two votes.
    pub spread: Option<f64>,
    /// What is decided.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// The score that an accepted output must reach; under a certificate the first number of
    /// its key, where the tiebreak decides between equal scores.
    pub threshold: f64,
    /// The profile in force; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileMark>,
    /// True when fewer votes were used than declared.
    pub degraded: bool,
    /// Counted votes with a score.
    pub votes_used: u32,
    /// Counted seats.
    pub votes_declared: u32,
    /// The least `votes_used` for a decision.
    pub quorum: u32,
    /// Medians by criterion, in the rubric's order.
    pub criteria: Vec<CriterionRuling>,
    /// What the judges found, merged.
    pub feedback: Vec<Finding>,
    /// Each judge's vote, in the panel's order.
    pub votes: Vec<Vote>,
    /// Each judge's verdicts, in the panel's order, then by sample.
    pub verdicts: Vec<Verdict>,
}

impl Ruling {
    /// The required judges and criteria that reject, whatever the score is: their names, the
    /// judges first, each in the panel's order. Votes are held against the panel's own
    /// threshold, as they are in the decision.
    #[must_use]
    pub fn vetoes(&self) -> Vec<&str> {
        let below = |vote: &&Vote| vote.required && self.vote_accepts(vote) == Some(false);
        let judges = self.votes.iter().filter(below).map(|vote| vote.judge.as_str());
        let failed = self.criteria.iter().filter(|c| c.required && c.passed == Some(false));
        judges.chain(failed.map(|criterion| criterion.name.as_str())).collect()
    }

    /// Whether a vote by itself would accept, held as it was given against the panel's own
    /// threshold; `None` without a vote.
    #[must_use]
    pub fn vote_accepts(&self, vote: &Vote) -> Option<bool> {
        let threshold = self.profile.as_ref().map_or(self.threshold, |own| own.raw_threshold);
        vote.score.map(|score| score.get() >= threshold)
    }

    /// The judges that a decision waits for, those that only veto included: counted or
    /// required, and without a vote.
    pub fn without_vote(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(|v| v.score.is_none() && (v.counted || v.required))
    }

    /// Why a judge has no vote; empty where it has one, or gave no reason.
    #[must_use]
    pub fn detail_of(&self, judge: &str) -> &str {
        let of = |verdict: &&Verdict| verdict.judge == judge && verdict.status != Status::Ok;
        let verdict = self.verdicts.iter().find(of);
        verdict.and_then(|verdict| verdict.detail.as_deref()).unwrap_or_default()
    }
}
