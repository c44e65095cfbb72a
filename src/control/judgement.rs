//! What the controller needs to know of a ruling.
//!
//! Whether a judgement vetoes is read from its votes and criteria, not from its decision: a
//! policy may have a threshold of its own, and a veto holds under every threshold.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Budget;
use crate::ruling::{Decision, ProfileMark, Reason, Ruling};
use crate::score::Score;
use crate::verdict::Status;

/// One criterion of a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionMark {
    /// The criterion.
    pub name: String,
    /// The panel's median on it.
    pub score: Option<Score>,
    /// Whether it passed its mark.
    pub passed: Option<bool>,
    /// Whether an output is rejected when it fails.
    pub required: bool,
}

/// What a panel says about one output, as far as the controller looks at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The score; `None` below the quorum.
    pub score: Option<Score>,
    /// What the full panel could have given, where a sequential one stopped early.
    pub bounds: Option<(Score, Score)>,
    /// The decision by the panel's own threshold.
    pub decision: Decision,
    /// Required judges and criteria that failed, and required judges that gave no vote.
    pub required_failed: u32,
    /// Whether at least one judge measured something.
    pub any_vote: bool,
    /// Largest minus smallest vote.
    pub spread: Option<f64>,
    /// The criteria, in the rubric's order.
    pub criteria: Vec<CriterionMark>,
    /// How the commands of the policy ended: true for exit code 0. By the command's
    /// arguments as JSON.
    pub commands: BTreeMap<String, bool>,
    /// A budget that a judge's call did not fit into.
    pub refused: Option<Budget>,
    /// Whether fewer judges voted than have a seat.
    pub degraded: bool,
    /// What the ruling is worth under the profile in force.
    pub profile: Option<Box<ProfileMark>>,
}

impl Judgement {
    /// A judgement with a score alone.
    #[must_use]
    pub fn of_score(score: Score, decision: Decision) -> Self {
        Self {
            score: Some(score),
            bounds: None,
            decision,
            required_failed: 0,
            any_vote: true,
            spread: None,
            criteria: Vec::new(),
            commands: BTreeMap::new(),
            refused: None,
            degraded: false,
            profile: None,
        }
    }

    /// A judging that failed; `any_vote` says whether some judge measured something.
    #[must_use]
    pub fn failed(any_vote: bool) -> Self {
        Self {
            score: None,
            decision: Decision::Undecided,
            any_vote,
            ..Self::of_score(Score::ZERO, Decision::Undecided)
        }
    }

    /// What a ruling says.
    #[must_use]
    pub fn of(ruling: &Ruling) -> Self {
        // Without a decision by the profile there is no judgement either.
        let quorum = !matches!(ruling.reason, Reason::NoQuorum | Reason::NoCalibration { .. });
        // Vetoes look at raw votes, and so at the panel's own threshold.
        let threshold = ruling.profile.as_ref().map_or(ruling.threshold, |own| own.raw_threshold);
        let vetoing = ruling
            .votes
            .iter()
            .filter(|vote| vote.required)
            .filter(|vote| vote.score.is_none_or(|score| score.get() < threshold))
            .count();
        let failing =
            ruling.criteria.iter().filter(|c| c.required && c.passed == Some(false)).count();
        Self {
            score: if quorum { ruling.score } else { None },
            bounds: ruling.score_bounds,
            decision: ruling.decision,
            required_failed: (vetoing + failing) as u32,
            any_vote: ruling.verdicts.iter().any(|v| v.status == Status::Ok),
            spread: ruling.spread,
            criteria: ruling
                .criteria
                .iter()
                .map(|criterion| CriterionMark {
                    name: criterion.name.clone(),
                    score: criterion.score,
                    passed: criterion.passed,
                    required: criterion.required,
                })
                .collect(),
            commands: BTreeMap::new(),
            refused: None,
            degraded: ruling.degraded,
            profile: ruling.profile.clone().map(Box::new),
        }
    }

    /// Whether there were votes enough to say anything.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.score.is_some()
    }
}
