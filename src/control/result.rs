//! What a loop came to, as it is printed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::history::{Record, RecordStatus};
use super::judgement::CriterionMark;
use super::outcome::{Class, Confirmation, Reason};
use crate::calibration::InForce;
use crate::ruling::{Bound, Decision, ProfileMark};
use crate::score::Score;
use crate::verdict::Usage;

/// One output of the result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Shown {
    /// Its number.
    pub generation: u32,
    /// Its score; `None` where it was not judged.
    pub score: Option<Score>,
    /// The least and greatest score that its judgements gave or could have given.
    pub interval: Option<(Score, Score)>,
    /// The output.
    pub output: String,
    /// Its criteria.
    pub criteria: Vec<CriterionMark>,
}

impl Shown {
    pub(super) fn of(record: &Record, output: String) -> Self {
        Self {
            generation: record.generation,
            score: record.score,
            interval: record.interval,
            output,
            criteria: record.criteria.clone(),
        }
    }
}

/// One line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HistoryRow {
    /// The output.
    pub generation: u32,
    /// Its score.
    pub score: Option<Score>,
    /// What became of it.
    pub status: RecordStatus,
    /// What the panel decided.
    pub decision: Option<Decision>,
    /// The required judges and criteria that rejected it, whatever its score.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected_by: Vec<String>,
    /// What was done after it.
    pub next: String,
    /// How much of its base was changed, where measured.
    pub change: Option<f64>,
    /// Whether that was more than cooling allowed.
    pub over_limit: bool,
}

/// What one role took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RoleUsage {
    /// Tokens and calls.
    #[serde(flatten)]
    pub usage: Usage,
    /// US dollars, of calls that have a price.
    pub cost_usd: f64,
}

/// The profile of a loop, and what its outcome is worth.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileOutcome {
    /// The profile's name.
    pub name: String,
    /// Its hash.
    pub hash: String,
    /// `certified`, `uncertified` or `uncalibrated`; `undecided` where the last ruling is.
    pub status: &'static str,
    /// Whether fewer judges voted on the output than have a seat.
    pub degraded: bool,
    /// Why it is not certified.
    pub reasons: Vec<String>,
    /// Generations that the certificate holds for.
    pub generations: u32,
    /// What is bounded, and by how much; `None` when not certified.
    pub bound: Option<Bound>,
}

impl ProfileOutcome {
    /// What a loop's end is worth, from the ruling on the output that it ended with.
    pub(super) fn of(own: &InForce, record: Option<&Record>, reason: Reason) -> Self {
        let mark = record.and_then(|record| record.profile.as_deref());
        let mut reasons = mark.map(|mark| mark.reasons.clone()).unwrap_or_default();
        let mut status = mark.map_or("uncertified", ProfileMark::status);
        if mark.is_none() {
            reasons.push("no output was judged".to_owned());
        }
        // Every other way to accept passes the panel's threshold by.
        let by_panel = matches!(reason, Reason::QualityReached | Reason::PlateauAtTarget);
        if reason.class() == Class::Accepted && !by_panel && status == "certified" {
            status = "uncertified";
            reasons.push(format!("accepted by `{reason}`, which no certificate bounds"));
        }
        Self {
            name: own.profile().name.clone(),
            hash: own.hash().to_owned(),
            status,
            degraded: record.is_some_and(|record| record.degraded),
            reasons,
            generations: own.profile().binding.generations,
            bound: (status == "certified").then(|| own.bound()),
        }
    }
}

/// One of several starts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StartResult {
    /// Which, from 1.
    pub start: u32,
    /// Whether its output is the one returned.
    pub picked: bool,
    /// Its outputs when it was dropped; `None` for one that was not.
    pub dropped_after: Option<u32>,
    /// Why it ended; `None` where it was stopped before its end.
    pub reason: Option<Reason>,
    /// Outputs made.
    pub generations: u32,
    /// The score of its best output, by which it was kept or dropped: the highest of several,
    /// and so too high.
    pub score: Option<Score>,
    /// The score of the same output when finalists were judged afresh.
    pub fresh_score: Option<Score>,
    /// Its event log.
    pub log: String,
}

/// What a loop came to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The run.
    pub run: String,
    /// What the reason is worth.
    pub outcome: Class,
    /// Why it ended.
    pub reason: Reason,
    /// What else held at that moment.
    pub also_fired: Vec<Reason>,
    /// The reason as the published articles spell it, where they do.
    pub classic_reason: Option<&'static str>,
    /// Outputs made.
    pub generations: u32,
    /// Outputs made after the first.
    pub refinements: u32,
    /// Judgements made, retries and confirmations included.
    pub evaluations: u64,
    /// The output that is returned.
    pub best: Option<Shown>,
    /// The newest one.
    pub last: Option<Shown>,
    /// One row an output.
    pub history: Vec<HistoryRow>,
    /// What each role took: `agent`, `judge`, `confirmation`, `dispute`, and with several starts
    /// `final`. Summaries are cut from the outputs, and ask no model.
    pub usage: BTreeMap<String, RoleUsage>,
    /// US dollars; `None` where calls were made that have no price.
    pub cost_usd: Option<f64>,
    /// Pauses for a person not counted.
    pub elapsed_seconds: f64,
    /// What became of the last confirmation.
    pub confirmation: Confirmation,
    /// The profile in force, and what the outcome is worth under it.
    pub profile: Option<ProfileOutcome>,
    /// A hash of configuration, task, agent and panel.
    pub config_hash: String,
    /// How often the run was gone on with.
    pub resumed: u32,
    /// With several starts: each of them. History and generations are then of the one that was
    /// picked; evaluations, usage, cost and time are of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<StartResult>,
    /// The event log.
    pub log: String,
    /// What to know before trusting it.
    pub warnings: Vec<String>,
}
