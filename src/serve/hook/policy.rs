//! What follows from what was found: allow, block, or give up. Pure, so that every limit can
//! be tested without a host, a clock or a disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ledger::Turn;
use super::outcome::Cause;

/// What to do when there is no decision: no quorum, an outage, a broken panel, no time left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUndecided {
    /// Let the agent stop; the outcome says that nothing was judged.
    #[default]
    Accept,
    /// As a rejection, which counts against the limits.
    Reject,
    /// End the session, where the host can be told to.
    Fail,
}

/// What to do when a limit is reached and the panel has not accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// End the session, so that the host's own record is no success either.
    #[default]
    End,
    /// Let the agent stop, and tell the person.
    Allow,
}

/// The limits of what hosts do not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Forced continuations of one turn.
    pub blocks: u32,
    /// Forced continuations of a session, over all its turns.
    pub session_blocks: u32,
    /// Forced continuations of one turn in a row without any change in what is judged.
    pub unchanged: u32,
    /// Milliseconds from a turn's first forced continuation on.
    pub turn_ms: u64,
    /// What to do without a decision.
    pub on_undecided: OnUndecided,
    /// What to do at a limit.
    pub on_limit: OnLimit,
}

impl Default for Limits {
    /// Six continuations a turn, which is below the eight at which Claude Code goes on without
    /// its hook; forty a session; two without a change; an hour.
    fn default() -> Self {
        Self {
            blocks: 6,
            session_blocks: 40,
            unchanged: 2,
            turn_ms: 3_600_000,
            on_undecided: OnUndecided::default(),
            on_limit: OnLimit::default(),
        }
    }
}

/// What became of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The panel accepts.
    Accepted,
    /// The panel rejects.
    Rejected,
    /// There is no decision.
    Undecided,
    /// There is nothing to judge yet.
    Unfinished,
}

/// What the agent may do, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Stop, without a word.
    Allow(Cause),
    /// Stop, and the person is told.
    Note(Cause),
    /// Go on.
    Block(Cause),
    /// The session ends.
    End(Cause),
}

impl Step {
    /// Why.
    #[must_use]
    pub fn cause(self) -> Cause {
        match self {
            Self::Allow(cause) | Self::Note(cause) | Self::Block(cause) | Self::End(cause) => cause,
        }
    }
}

impl Limits {
    /// What follows from a finding. `turn` holds the counters before it, its field `unchanged`
    /// this one included.
    #[must_use]
    pub fn step(&self, finding: Finding, turn: &Turn, session_blocks: u32, now_ms: u64) -> Step {
        let rejected = match (finding, self.on_undecided) {
            (Finding::Accepted, _) => return Step::Allow(Cause::Accepted),
            (Finding::Unfinished, _) => return Step::Allow(Cause::Unfinished),
            (Finding::Undecided, OnUndecided::Accept) => return Step::Note(Cause::Undecided),
            (Finding::Undecided, OnUndecided::Fail) => return Step::End(Cause::Undecided),
            (Finding::Undecided, OnUndecided::Reject) => Cause::Undecided,
            (Finding::Rejected, _) => Cause::Rejected,
        };
        let late =
            turn.first_block_ms.is_some_and(|first| now_ms.saturating_sub(first) >= self.turn_ms);
        let reached = if turn.blocks >= self.blocks {
            Cause::BlocksSpent
        } else if session_blocks >= self.session_blocks {
            Cause::SessionBlocksSpent
        } else if late {
            Cause::TimeSpent
        } else if turn.unchanged >= self.unchanged {
            Cause::NoProgress
        } else {
            return Step::Block(rejected);
        };
        match self.on_limit {
            OnLimit::End => Step::End(reached),
            OnLimit::Allow => Step::Note(reached),
        }
    }
}
