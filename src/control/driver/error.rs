//! Why a loop broke off, as against how it ended: faults of agents and judges are outcomes.

use crate::control::agent::AgentError;
use crate::control::feedback::FeedbackError;
use crate::control::log::LogError;
use crate::control::review::ReviewError;

/// Why a loop broke off. What was done until then is in its log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The log refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A prompt could not be made.
    #[error(transparent)]
    Feedback(#[from] FeedbackError),
    /// The agent's own state could not be read or restored.
    #[error("the agent's state")]
    Agent(#[from] AgentError),
    /// The configuration is not the one that the run began with.
    #[error(
        "run `{run}` can't go on: its configuration, task, agent or panel has changed; undo the change, or start a new run"
    )]
    Changed {
        /// The run.
        run: String,
    },
    /// The log does not begin as a log does.
    #[error("run `{run}` has no beginning")]
    NoBeginning {
        /// The run.
        run: String,
    },
    /// A workspace's output is the patch of its folder, which a person edits there.
    #[error("run `{run}` works on a folder: its output can't be edited as a text")]
    NoEdit {
        /// The run.
        run: String,
    },
    /// An edited output that holds nothing.
    #[error("run `{run}`: the edited output is empty")]
    EmptyEdit {
        /// The run.
        run: String,
    },
    /// An answer was given, and nothing was asked.
    #[error("run `{run}` asks nothing that could be answered")]
    NothingAsked {
        /// The run.
        run: String,
    },
    /// An answer was given, and several starts ask.
    #[error(
        "several starts of run `{run}` ask ({}): answer each with `venire review START --answer ...`",
        starts.join(", ")
    )]
    SeveralAsk {
        /// The run.
        run: String,
        /// Its starts that ask.
        starts: Vec<String>,
    },
    /// An answer could not be written down.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

impl LoopError {
    /// Whether the run broke off through a fault of the machine and not of who asked.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        match self {
            Self::Log(LogError::Held { .. } | LogError::Missing { .. })
            | Self::Changed { .. }
            | Self::NoBeginning { .. }
            | Self::NothingAsked { .. }
            | Self::SeveralAsk { .. }
            | Self::NoEdit { .. }
            | Self::EmptyEdit { .. }
            | Self::Feedback(_) => false,
            Self::Review(error) => !matches!(
                error,
                ReviewError::NothingAsked { .. }
                    | ReviewError::Edit { .. }
                    | ReviewError::Log(LogError::Held { .. })
            ),
            Self::Log(_) | Self::Agent(_) => true,
        }
    }
}
