//! Why a loop ended, and what that is worth.
//!
//! The variants of [`Reason`] stand in the order of a step: of several that hold at once the
//! earliest is the reason, whatever the order of conditions in a file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a loop ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The accept rule held.
    QualityReached,
    /// Every criterion reached its pass mark.
    CriteriaPassed,
    /// A command of the policy exited with 0.
    CommandSatisfied,
    /// The scores stopped moving, with an output that the panel accepts.
    PlateauAtTarget,
    /// A person accepted.
    HumanAccepted,
    /// A person rejected.
    HumanRejected,
    /// Stopped from outside.
    Cancelled,
    /// The time was up.
    Deadline,
    /// The money was used up, or the next call could not be paid.
    MoneyBudget,
    /// The tokens were used up, or the next call could not fit.
    TokenBudget,
    /// The judgements were used up.
    EvaluationBudget,
    /// As many outputs as allowed.
    MaxGenerations,
    /// Too few votes, several times in a row.
    NoQuorum,
    /// No judge measured anything, several times in a row.
    EvaluatorUnavailable,
    /// The judges disagreed beyond the limit, several times in a row.
    EvaluatorUnreliable,
    /// An output passed, and the judgement that was to confirm it could not be made.
    ConfirmationFailed,
    /// The agent failed several times in a row.
    AgentFailed,
    /// The agent gave nothing several times in a row.
    AgentEmpty,
    /// The agent repeated an output.
    RepeatedOutput,
    /// The agent came back to an older output.
    Cycle,
    /// The last output was worse than the best one.
    Regressed,
    /// The scores kept falling.
    Diverged,
    /// No new best for some time.
    Stalled,
    /// The scores stopped moving below the target.
    PlateauBelowTarget,
    /// The scores went up and down without gain.
    Oscillating,
    /// A person has to answer first.
    AwaitingHuman,
}

/// What a reason is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The best output is good.
    Accepted,
    /// It is not, or not known to be within the limits.
    NotAccepted,
    /// The judges could not say.
    Undecided,
    /// The agent did not do its part.
    Failed,
    /// A person has to answer.
    Waiting,
    /// Stopped from outside.
    Interrupted,
}

impl Class {
    /// The name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::NotAccepted => "not_accepted",
            Self::Undecided => "undecided",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
        }
    }

    /// The exit code of the command line.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Accepted => 0,
            Self::NotAccepted => 1,
            Self::Undecided | Self::Failed => 3,
            Self::Waiting => 4,
            Self::Interrupted => 130,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Reason {
    /// Every reason, in the order of a step.
    pub const ALL: [Self; 26] = [
        Self::QualityReached,
        Self::CriteriaPassed,
        Self::CommandSatisfied,
        Self::PlateauAtTarget,
        Self::HumanAccepted,
        Self::HumanRejected,
        Self::Cancelled,
        Self::Deadline,
        Self::MoneyBudget,
        Self::TokenBudget,
        Self::EvaluationBudget,
        Self::MaxGenerations,
        Self::NoQuorum,
        Self::EvaluatorUnavailable,
        Self::EvaluatorUnreliable,
        Self::ConfirmationFailed,
        Self::AgentFailed,
        Self::AgentEmpty,
        Self::RepeatedOutput,
        Self::Cycle,
        Self::Regressed,
        Self::Diverged,
        Self::Stalled,
        Self::PlateauBelowTarget,
        Self::Oscillating,
        Self::AwaitingHuman,
    ];

    /// The name in JSON, reports and configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::QualityReached => "quality_reached",
            Self::CriteriaPassed => "criteria_passed",
            Self::CommandSatisfied => "command_satisfied",
            Self::PlateauAtTarget => "plateau_at_target",
            Self::HumanAccepted => "human_accepted",
            Self::HumanRejected => "human_rejected",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
            Self::MoneyBudget => "money_budget",
            Self::TokenBudget => "token_budget",
            Self::EvaluationBudget => "evaluation_budget",
            Self::MaxGenerations => "max_generations",
            Self::NoQuorum => "no_quorum",
            Self::EvaluatorUnavailable => "evaluator_unavailable",
            Self::EvaluatorUnreliable => "evaluator_unreliable",
            Self::ConfirmationFailed => "confirmation_failed",
            Self::AgentFailed => "agent_failed",
            Self::AgentEmpty => "agent_empty",
            Self::RepeatedOutput => "repeated_output",
            Self::Cycle => "cycle",
            Self::Regressed => "regressed",
            Self::Diverged => "diverged",
            Self::Stalled => "stalled",
            Self::PlateauBelowTarget => "plateau_below_target",
            Self::Oscillating => "oscillating",
            Self::AwaitingHuman => "awaiting_human",
        }
    }

    /// What it is worth.
    #[must_use]
    pub fn class(self) -> Class {
        match self {
            Self::QualityReached
            | Self::CriteriaPassed
            | Self::CommandSatisfied
            | Self::PlateauAtTarget
            | Self::HumanAccepted => Class::Accepted,
            Self::NoQuorum
            | Self::EvaluatorUnavailable
            | Self::EvaluatorUnreliable
            | Self::ConfirmationFailed => Class::Undecided,
            Self::AgentFailed | Self::AgentEmpty => Class::Failed,
            Self::AwaitingHuman => Class::Waiting,
            Self::Cancelled => Class::Interrupted,
            _ => Class::NotAccepted,
        }
    }

    /// Whether a ladder of actions stands before the end: the conditions on progress.
    #[must_use]
    pub fn is_soft(self) -> bool {
        matches!(
            self,
            Self::RepeatedOutput
                | Self::Cycle
                | Self::Regressed
                | Self::Diverged
                | Self::Stalled
                | Self::PlateauBelowTarget
                | Self::Oscillating
        )
    }

    /// The spelling of the published loop articles, where they have one for it.
    #[must_use]
    pub fn classic(self) -> Option<&'static str> {
        Some(match self {
            Self::QualityReached => "quality_threshold_reached",
            Self::CriteriaPassed => "all_criteria_passed",
            Self::MaxGenerations => "max_iterations_reached",
            Self::Deadline => "time_budget_exhausted",
            Self::TokenBudget => "token_budget_exhausted",
            Self::MoneyBudget => "cost_budget_exhausted",
            Self::PlateauAtTarget | Self::PlateauBelowTarget => "converged",
            Self::Oscillating => "oscillation_detected",
            Self::Stalled => "improvement_stalled",
            Self::Regressed => "quality_regression",
            Self::Diverged => "diverged",
            Self::RepeatedOutput | Self::Cycle => "repeated_output",
            Self::AgentFailed | Self::AgentEmpty => "iteration_failed",
            Self::Cancelled => "cancelled",
            _ => return None,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What became of the confirmation of an output that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// The policy asks for none.
    NotAsked,
    /// It passed every time.
    Confirmed,
    /// It was judged again and did not pass.
    Rejected,
    /// The judgement could not be made.
    NotMade,
}

/// How a loop ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Why.
    pub reason: Reason,
    /// What else held at that moment, in the order of a step.
    pub also_fired: Vec<Reason>,
    /// The generation of the best output; `None` when no output has a score.
    pub best: Option<u32>,
}

impl Outcome {
    /// What the reason is worth.
    #[must_use]
    pub fn class(&self) -> Class {
        self.reason.class()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_reasons_is_the_order_of_a_step() {
        let mut sorted = Reason::ALL;
        sorted.sort();
        assert_eq!(sorted, Reason::ALL);
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
        assert!(Reason::QualityReached < Reason::Oscillating);
    }

    #[test]
    fn b_59_one_enum_has_one_spelling_and_the_old_ones_beside_it() {
        assert_eq!(Reason::MaxGenerations.classic(), Some("max_iterations_reached"));
        assert_eq!(Reason::TokenBudget.classic(), Some("token_budget_exhausted"));
        assert_eq!(Reason::PlateauBelowTarget.classic(), Some("converged"));
        assert_eq!(Reason::NoQuorum.classic(), None);
    }

    #[test]
    fn an_outage_is_never_a_rejection() {
        assert_eq!(Reason::EvaluatorUnavailable.class().exit_code(), 3);
        assert_eq!(Reason::AgentFailed.class().exit_code(), 3);
        assert_eq!(Reason::MaxGenerations.class().exit_code(), 1);
        assert_eq!(Reason::AwaitingHuman.class().exit_code(), 4);
        assert_eq!(Reason::Cancelled.class().exit_code(), 130);
    }
}
