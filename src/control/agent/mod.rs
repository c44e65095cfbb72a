//! Agents: what makes outputs from prompts.
//!
//! An agent does not know its judges, its score or its budget. Whatever it does (hang, print
//! a gigabyte, leave children behind), what comes back is an output or a fault.

mod batch;
mod command;
mod git;
mod llm;
mod preset;
mod replay;
mod workspace;

use std::fmt;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::command::CommandAgentSpec;
pub(crate) use self::git::Repository;
pub use self::llm::LlmAgentSpec;
pub use self::preset::Preset;
pub use self::replay::ReplayAgentSpec;
pub use self::workspace::WorkspaceSpec;
use super::event::AgentFault;
use crate::judge::{BuildContext, BuildError};
use crate::provider::{CallContext, WorstCase};
use crate::verdict::{Status, Usage};

/// The section `[agent]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AgentSpec {
    /// A program: prompt on its standard input, output on its standard output.
    Command(CommandAgentSpec),
    /// A program that edits a folder under git; its changes are the output.
    Workspace(WorkspaceSpec),
    /// A chat model.
    Llm(Box<LlmAgentSpec>),
    /// Recorded outputs.
    Replay(ReplayAgentSpec),
}

impl AgentSpec {
    /// Whether a judge may use the agent's model.
    #[must_use]
    pub fn allows_self_judging(&self) -> bool {
        match self {
            Self::Command(own) => own.allow_self_judging,
            Self::Workspace(own) => own.allow_self_judging,
            Self::Llm(own) => own.allow_self_judging,
            Self::Replay(_) => false,
        }
    }

    /// The agent itself.
    ///
    /// # Errors
    /// A program, folder, file or key that is not there; numbers that can't work.
    pub fn build(&self, context: &BuildContext) -> Result<Box<dyn Agent>, BuildError> {
        Ok(match self {
            Self::Command(spec) => Box::new(spec.build(context)?),
            Self::Workspace(spec) => Box::new(spec.build(context)?),
            Self::Llm(spec) => Box::new(spec.build(context)?),
            Self::Replay(spec) => Box::new(spec.build(context)?),
        })
    }
}

/// What an agent is asked.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The whole prompt.
    pub prompt: &'a str,
    /// The number of the output, from 1.
    pub generation: u32,
    /// The number of the call, from 1.
    pub call: u32,
    /// Which of several starts, from 1; 0 for the only one.
    pub start: u32,
    /// The snapshot of the version to go on from; `None` for the state at the start. For
    /// agents that have one.
    pub snapshot: Option<&'a str>,
    /// What temperatures are multiplied with, when cooling.
    pub temperature_factor: Option<f64>,
}

/// What an agent made.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// The output.
    pub text: String,
    /// What it said beside its output; `None` where the output is what it said.
    pub words: Option<String>,
    /// Where the agent can come back to; `None` for agents without a state.
    pub snapshot: Option<String>,
    /// Tokens, from the provider or estimated.
    pub usage: Usage,
    /// Millionths of a US dollar; `None` where the model has no price or there is no model.
    pub micro_dollars: Option<u64>,
    /// Whether the ledger knows of it already.
    pub booked: bool,
}

/// Why an agent gave no output.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct AgentError {
    /// The kind of failure.
    pub status: Status,
    /// Whether it ended well and gave nothing.
    pub empty: bool,
    /// What happened, for a person.
    pub detail: String,
    /// What the call took all the same, where no client has booked it.
    pub usage: Usage,
    /// Millionths of a US dollar of it; `None` where nobody knows.
    pub micro_dollars: Option<u64>,
}

impl AgentError {
    pub(super) fn failed(status: Status, detail: impl Into<String>) -> Self {
        let usage = Usage::default();
        Self { status, empty: false, detail: detail.into(), usage, micro_dollars: None }
    }

    pub(super) fn empty(detail: impl Into<String>) -> Self {
        Self { empty: true, ..Self::failed(Status::Internal, detail) }
    }

    /// The same with what the call took.
    #[must_use]
    pub(super) fn after(self, usage: Usage, micro_dollars: Option<u64>) -> Self {
        Self { usage, micro_dollars, ..self }
    }

    /// What the controller is told.
    #[must_use]
    pub fn fault(&self) -> AgentFault {
        if self.empty { AgentFault::Empty } else { AgentFault::Failed }
    }
}

/// Makes outputs from prompts.
pub trait Agent: fmt::Debug + Send + Sync {
    /// The kind in configuration.
    fn kind(&self) -> &'static str;

    /// What makes this agent this agent, for the hash of a run's configuration.
    fn identity(&self) -> Value;

    /// The model behind it, as `provider/model`, where it is known.
    fn model(&self) -> Option<&str> {
        None
    }

    /// The most that a call with this prompt can take, as far as that is known before: of a
    /// program its prompt at least. `None` where nothing is paid for.
    fn worst_case(&self, _prompt: &str) -> Option<WorstCase> {
        None
    }

    /// Whether what a call costs is known once it was made, so that a limit on money holds.
    fn is_priced(&self) -> bool {
        true
    }

    /// Whether a call whose end is not known may not simply be made again.
    fn has_side_effects(&self) -> bool {
        false
    }

    /// Takes note of the agent's own state at the start of a run, or takes up the one noted
    /// before when a run is resumed; `None` for agents without a state.
    fn begin<'a>(
        &'a self,
        _start: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, AgentError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Makes one output. Dropping the future cancels the work.
    fn generate<'a>(
        &'a self,
        request: &'a Request<'a>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Made, AgentError>>;

    /// Brings the agent's own state to a snapshot, at the end of a run.
    fn restore<'a>(&'a self, _snapshot: Option<&'a str>) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Tokens of a text where nobody counts them: a third of its ASCII bytes and one and a half
/// for every other character, which is above what common tokenizers make of prose and code.
pub(super) fn estimated_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|c| !c.is_ascii()).count() as u64;
    ascii.div_ceil(3) + (3 * other).div_ceil(2)
}
