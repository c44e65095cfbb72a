//! What stands in the log of a run: one event a line, from which the whole run can be told.
//!
//! A stored format: fields are added with a default, and never taken away.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dispute::Dispute;
use super::event::{About, AgentFault, Answer, Budget, Directive, Round, Spent};
use super::outcome::Outcome;
use super::policy::Limits;
use crate::ruling::Ruling;
use crate::verdict::{Usage, Verdict};

/// The version of the log's format.
pub const FORMAT: u32 = 1;

/// How a log says that its run was gone on with.
pub(super) const RESUMED: &str = "resumed";

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    /// The run began.
    Started {
        /// The log's format.
        format: u32,
        /// The run.
        run: String,
        /// When, in UTC.
        time: String,
        /// What was asked.
        task: String,
        /// The whole effective configuration.
        config: Value,
        /// A hash of configuration, task, agent and panel.
        config_hash: String,
        /// The panel.
        panel: String,
        /// The loop's file, with its whole path; `None` in logs that do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<PathBuf>,
        /// The limits in force; `None` in logs that do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<Limits>,
        /// The agent's state at the start, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<String>,
    },
    /// The agent is about to be called.
    GenerateIntended {
        /// How.
        directive: Directive,
        /// The hash of the prompt.
        prompt: String,
    },
    /// A call of the agent ended.
    Generated {
        /// The number of the call.
        call: u32,
        /// The hash of the output; `None` when it gave none.
        output: Option<String>,
        /// Where the agent can come back to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<String>,
        /// How much of the base was changed, where measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<f64>,
        /// The findings that the agent disputes beside it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        disputes: Vec<Dispute>,
        /// Why it gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<AgentFault>,
        /// The budget that the call would not fit into.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Budget>,
        /// What happened, for a person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// What it took.
        usage: Usage,
        /// Millionths of a US dollar, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        micro_dollars: Option<u64>,
    },
    /// The panel is about to be asked.
    JudgeIntended {
        /// About which output.
        generation: u32,
        /// For which judgement of it.
        round: Round,
        /// How often that was tried before.
        retry: u32,
    },
    /// A judge's verdict came in.
    Judged {
        /// About which output.
        generation: u32,
        /// The verdict.
        verdict: Box<Verdict>,
    },
    /// The panel ruled.
    Ruled {
        /// About which output.
        generation: u32,
        /// In which judgement of it.
        round: Round,
        /// How often that was tried before.
        retry: u32,
        /// The ruling.
        ruling: Box<Ruling>,
        /// How the policy's commands ended.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        commands: BTreeMap<String, bool>,
        /// The budget that a judge's call would not fit into.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<Budget>,
    },
    /// The controller decided.
    Decided {
        /// After which output.
        generation: u32,
        /// What is done next.
        decision: String,
    },
    /// A person is asked.
    Asked {
        /// About which output.
        generation: u32,
        /// Why.
        about: About,
        /// When, in UTC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time: Option<String>,
    },
    /// A person answered, or what the file declares stands in for an answer.
    Answered {
        /// What.
        answer: Answer,
        /// Whether nobody answered in time.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_deadline: bool,
    },
    /// A person scored an output: a label for calibration.
    Labelled {
        /// Which output.
        generation: u32,
        /// In [0,1].
        score: f64,
    },
    /// Of several starts the worse ones were dropped.
    Dropped {
        /// Which, from 1.
        starts: Vec<u32>,
        /// After so many outputs of each.
        after: u32,
    },
    /// Of several starts a finalist was judged afresh.
    Final {
        /// Which.
        start: u32,
        /// The ruling on its best output.
        ruling: Box<Ruling>,
    },
    /// The run is over.
    Finished {
        /// How.
        outcome: Outcome,
    },
}

/// An event with its place, its time and what was spent until then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// From 0, without gaps.
    pub n: u64,
    /// Milliseconds since the start, pauses for a person not counted.
    pub elapsed_ms: u64,
    /// What was spent until then.
    pub spent: Spent,
    /// The event.
    pub entry: Entry,
}
