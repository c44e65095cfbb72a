//! What comes into the controller and what it wants done.
//!
//! Every event carries the time since the start (pauses for a person not counted) and what
//! was spent so far, so that the controller needs neither a clock nor a ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::Output;
use super::judgement::Judgement;
use super::outcome::{Outcome, Reason};

/// What a whole run has spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens of all roles, both directions.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
}

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Milliseconds since the start. A value below an earlier one is read as the earlier one,
    /// so a clock that jumps back does no harm.
    pub elapsed_ms: u64,
    /// What was spent until then.
    pub spent: Spent,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The run begins.
    Begun,
    /// The agent gave an output.
    Generated(Output),
    /// The agent gave none.
    AgentFailed(AgentFault),
    /// The panel judged the newest output.
    Judged(Box<Judgement>),
    /// A call would not fit into a budget, and was not sent.
    Refused(Budget),
    /// Stopped from outside.
    Cancelled,
    /// A person answered the question asked.
    Answered(Answer),
    /// A person gave an output of their own in answer.
    Edited(Output),
}

/// Why the agent gave no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentFault {
    /// It failed: an error, a time-out, a crash.
    Failed,
    /// It ended well and gave nothing.
    Empty,
}

/// A budget that a call would not fit into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Tokens.
    Tokens,
    /// Money.
    Money,
}

impl Budget {
    /// The reason for which the run then ends.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Tokens => Reason::TokenBudget,
            Self::Money => Reason::MoneyBudget,
        }
    }
}

/// What a person says to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The best output is good.
    Accept,
    /// It is not, and it is no use going on.
    Reject,
    /// The output in question is not good, and these words say why: they are the agent's
    /// feedback, and the run goes on.
    RejectWith(String),
    /// This output, kept under its hash, is to be judged instead.
    Edit(String),
    /// Go on, with these words for the agent (which may be empty).
    Continue(String),
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// An output is about to be accepted.
    BeforeAccept,
    /// The judges' votes lie far apart.
    OnDisagreement,
    /// The score is close to the threshold.
    NearThreshold,
    /// So many outputs were made.
    Every,
    /// The agent disputes a finding, and the judges that did not raise it take its side, or
    /// there are none.
    OnDispute,
    /// A condition's ladder says so.
    #[serde(untagged)]
    Condition(Reason),
}

impl std::fmt::Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BeforeAccept => "before_accept",
            Self::OnDisagreement => "on_disagreement",
            Self::NearThreshold => "near_threshold",
            Self::Every => "every",
            Self::OnDispute => "on_dispute",
            Self::Condition(reason) => reason.name(),
        })
    }
}

/// Which judgement of an output this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Round {
    /// The first one.
    First,
    /// A confirmation of an output that passed, from 1.
    Confirm(u32),
    /// One by the judges that did not raise what the agent disputes.
    Dispute,
}

/// What the controller wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Ask the agent for the next output.
    Generate(Directive),
    /// Judge the newest output.
    Judge {
        /// Which output.
        generation: u32,
        /// Which judgement of it.
        round: Round,
        /// How often this round was tried before: 0 for the first time.
        retry: u32,
        /// Wait so long before.
        wait_ms: u64,
    },
    /// Ask a person.
    Ask {
        /// Which output is in question; 0 before the first.
        generation: u32,
        /// What is in question.
        about: About,
    },
    /// The run is over.
    Finish(Outcome),
}

/// Which version the agent goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// None: the first output, or a new start.
    Nothing,
    /// The newest output.
    Current,
    /// The best output, because the newest one is worse.
    Best,
}

/// How the next output is to be asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Directive {
    /// The number that the output will have.
    pub generation: u32,
    /// The number of this agent call, from 1; failed ones count.
    pub call: u32,
    /// Wait so long before.
    pub wait_ms: u64,
    /// Which version to go on from.
    pub base: Base,
    /// The generation of that version; `None` for `nothing`.
    pub base_generation: Option<u32>,
    /// What to tell the agent about its course: conditions that fired and were met with
    /// something milder than the end.
    pub nudges: Vec<Reason>,
    /// The criteria to attend to first; empty without an adaptive strategy.
    pub focus: Vec<String>,
    /// The phase of the adaptive strategy, from 0; `None` without one or past its last.
    pub phase: Option<u8>,
    /// How much of the base may change at most, in [0,1], when cooling.
    pub max_change: Option<f64>,
    /// What temperatures are multiplied with, when cooling.
    pub temperature_factor: Option<f64>,
    /// Words of a person for the agent.
    pub note: Option<String>,
    /// Whether the other judges were not of the agent's side in a dispute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overruled: bool,
}
