//! Hooks of coding agents: whether an agent may stop, said in the words of its host.
//!
//! A host starts one process an event, hands it JSON, and takes what is printed and the exit
//! code for an answer. Every host fails open: a hook that crashes, takes too long or prints
//! noise lets the agent stop, as a success. So the counters, the clock and the failure policy
//! are kept here, on disk, and an [`Outcome`] says what was really found. What is not
//! promised: a wall against an agent that edits the ledger, the panel or its host's settings.

mod answer;
mod event;
mod gates;
mod host;
mod install;
mod judging;
mod ledger;
mod outcome;
mod policy;
mod transcript;
mod verdicts;
mod words;
mod work;
mod workspace;

pub use self::answer::{Answer, Reply};
pub use self::event::{Event, EventError, EventKind, ToolUse};
pub use self::gates::{Gate, Gates};
pub use self::host::Host;
pub use self::install::{Entry, InstallError, Scope, merged, settings_file};
pub use self::judging::{Bench, Hook, Seating};
pub use self::ledger::{Ledger, LedgerError, Session, Turn, session_files};
pub use self::outcome::{Cause, Outcome};
pub use self::policy::{Finding, Limits, OnLimit, OnUndecided, Step};
pub use self::verdicts::Verdicts;
pub use self::work::OutputFrom;
pub use self::workspace::{Changes, Workspace, WorkspaceError};

#[cfg(test)]
mod tests;
