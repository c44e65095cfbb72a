//! Seat a panel of independent judges, let the median of their votes decide, and know how
//! often that decision is wrong.
//!
//! The parts, from the ground up; arrows of dependency point from later to earlier ones:
//!
//! - [`case`], [`score`], [`verdict`], [`ruling`]: the domain's own types. A
//!   [`Score`](score::Score) is finite and in \[0,1\]; a failed measurement is a
//!   [`Status`](verdict::Status), never a score.
//! - [`text`], [`stats`], [`canonical`], [`config`]: text, numbers, hashing, files.
//! - [`dataset`]: cases, labels and recorded judgements in, rows out, streamed.
//! - [`import`]: result files of other tools as cases, judgements and labels.
//! - [`rubric`]: what is scored.
//! - [`provider`]: model servers: one request in, one normalised reply out.
//! - [`judge`]: the [`Judge`](judge::Judge) trait and its kinds.
//! - [`panel`]: judges seated together, their votes and the ruling.
//! - [`store`]: runs, cases, replies, verdicts and rulings in one file.
//! - [`run`]: a panel over a data set, resumable.
//! - [`report`]: what a run came to, for people and build servers.
//! - [`serve`]: ways in for other programs: hooks of coding agents, HTTP and web pages, MCP.
//!
//! # Example
//!
//! ```
//! use venire::case::Case;
//! use venire::judge::BuildContext;
//! use venire::panel::{Panel, PanelSpec};
//! use venire::provider::{CallContext, Client};
//! use venire::ruling::Decision;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = PanelSpec::from_value(serde_json::json!({
//!     "threshold": 0.5,
//!     "judge": [
//!         { "name": "short", "kind": "rule", "rule": "length", "words": { "max": 10 } },
//!         { "name": "close", "kind": "rule", "rule": "similarity", "metric": "rouge_l" },
//!         { "name": "no-refusal", "kind": "rule", "rule": "refusal", "required": true },
//!     ],
//! }))?;
//! let panel = Panel::seat(&spec, &BuildContext::new(".", Client::default()))?;
//! let case = Case {
//!     expected: Some("Canberra is the capital of Australia.".into()),
//!     ..Case::new("What is the capital of Australia?", "The capital is Canberra.")
//! };
//! let context = CallContext::standalone(std::time::Duration::from_secs(60));
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! let ruling = runtime.block_on(panel.judge(&case, &context));
//! assert_eq!(ruling.votes.len(), 3);
//! assert_eq!(ruling.decision, Decision::Accept);
//! # Ok(())
//! # }
//! ```

pub mod calibration;
pub mod canonical;
pub mod case;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
pub mod control;
pub mod dataset;
mod hold;
pub mod import;
mod inputs;
pub mod judge;
pub mod label;
pub mod panel;
pub mod provider;
pub mod report;
pub mod rubric;
pub mod ruling;
pub mod run;
pub mod score;
pub mod serve;
pub mod stats;
pub mod store;
pub mod text;
pub mod verdict;
