//! Rows of a run for other programs: one a verdict, or one a case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::case::Case;
use crate::dataset::RowNumbers;
use crate::ruling::{Reason, Ruling};
use crate::store::{ONE_BY_ONE, RunRecord, Store, StoreError};
use crate::verdict::{CriterionScore, Verdict};

/// A verdict as a row.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerdictRow {
    /// The run's id.
    pub run: String,
    /// The case's id.
    pub case: String,
    /// The judge's name.
    pub judge: String,
    /// What makes it this judge.
    pub fingerprint: String,
    /// Which of its samples, from 0.
    pub sample: u32,
    /// What became of it.
    pub status: &'static str,
    /// The value on the judge's own scale.
    pub raw: Option<Value>,
    /// The score in [0,1]; present exactly when the status is `ok`.
    pub score: Option<f64>,
    /// Scores by criterion; null where the judge left one out.
    pub criteria: Option<BTreeMap<String, Option<f64>>>,
    /// What the judge found.
    pub feedback: Option<Vec<String>>,
    /// Why there is no score.
    pub detail: Option<String>,
    /// The model that the server says it used.
    pub model_returned: Option<String>,
    /// Prompt tokens.
    pub tokens_in: u64,
    /// Completion tokens.
    pub tokens_out: u64,
    /// US dollars; null where the model has no price.
    pub cost_usd: Option<f64>,
    /// The time of the verdict in milliseconds.
    pub latency_ms: u64,
    /// Requests or runs made, failed ones included.
    pub attempts: u32,
    /// Whether every reply came from the store.
    pub cached: bool,
    /// Facts about how it was measured.
    pub notes: Option<BTreeMap<String, Value>>,
}

/// A ruling as a row.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RulingRow {
    /// The run's id.
    pub run: String,
    /// The case's id.
    pub case: String,
    /// The panel's score in [0,1]; null below the quorum.
    pub score: Option<f64>,
    /// The least and the greatest score that the full panel could have given, where a
    /// sequential panel left votes out; else null.
    pub score_bounds: Option<[f64; 2]>,
    /// The same over the votes as given.
    pub raw_score: Option<f64>,
    /// The mean of the votes.
    pub tiebreak: Option<f64>,
    /// Largest minus smallest vote; null below two votes.
    pub spread: Option<f64>,
    /// `accept`, `reject` or `undecided`.
    pub decision: &'static str,
    /// Why, where it is not the threshold: `required_judge`, `no_quorum`, ...
    pub reason: String,
    /// The score that an accepted output must reach.
    pub threshold: f64,
    /// Whether fewer votes were used than declared.
    pub degraded: bool,
    /// Votes with a score.
    pub votes_used: u32,
    /// Counted seats.
    pub votes_declared: u32,
    /// The least votes for a decision.
    pub quorum: u32,
    /// The profile in force; null without one, as all that follows.
    pub profile: Option<String>,
    /// Its hash.
    pub profile_hash: Option<String>,
    /// Whether the votes are not those that were calibrated.
    pub uncalibrated: Option<bool>,
    /// Whether nothing bounds the error of this ruling.
    pub uncertified: Option<bool>,
    /// Why it is uncalibrated or uncertified.
    pub profile_reasons: Option<String>,
    /// The key's first number, on the labels' scale.
    pub key_score: Option<f64>,
    /// The key's second number.
    pub key_tiebreak: Option<f64>,
}

impl VerdictRow {
    /// The row of a verdict.
    #[must_use]
    pub fn new(run: &str, case: &str, verdict: Verdict) -> Self {
        let criterion = |c: CriterionScore| (c.name, c.score.map(crate::score::Score::get));
        Self {
            run: run.to_owned(),
            case: case.to_owned(),
            judge: verdict.judge,
            fingerprint: verdict.fingerprint.to_string(),
            sample: verdict.sample,
            status: verdict.status.name(),
            raw: verdict.raw,
            score: verdict.score.map(crate::score::Score::get),
            criteria: (!verdict.criteria.is_empty())
                .then(|| verdict.criteria.into_iter().map(criterion).collect()),
            feedback: (!verdict.feedback.is_empty()).then_some(verdict.feedback),
            detail: verdict.detail,
            model_returned: verdict.model_returned,
            tokens_in: verdict.usage.tokens_in,
            tokens_out: verdict.usage.tokens_out,
            cost_usd: verdict.cost_usd,
            latency_ms: verdict.latency_ms,
            attempts: verdict.attempts,
            cached: verdict.cached,
            notes: (!verdict.notes.is_empty()).then_some(verdict.notes),
        }
    }
}

impl VerdictRow {
    /// The row of a verdict for people: its feedback with the criterion that each is about,
    /// those of criteria that passed included.
    #[must_use]
    pub fn for_people(run: &str, case: &str, verdict: Verdict) -> Self {
        let of_criteria = verdict.criteria.iter().filter_map(|criterion| {
            Some(format!("{}: {}", criterion.name, criterion.feedback.as_ref()?))
        });
        let lines: Vec<String> = of_criteria.chain(verdict.new_findings().cloned()).collect();
        Self { feedback: (!lines.is_empty()).then_some(lines), ..Self::new(run, case, verdict) }
    }
}

impl RulingRow {
    /// The row of a ruling.
    #[must_use]
    pub fn new(run: &str, ruling: &Ruling) -> Self {
        let profile = ruling.profile.as_ref();
        let key = profile.and_then(|own| own.key);
        let word = reason_word(&ruling.reason);
        let reason = match &ruling.reason {
            Reason::Threshold | Reason::NoQuorum => word.to_owned(),
            Reason::RequiredJudge { judge: name }
            | Reason::RequiredJudgeMissing { judge: name }
            | Reason::RequiredCriterion { criterion: name }
            | Reason::RequiredCriterionMissing { criterion: name }
            | Reason::AcceptedAlone { judge: name }
            | Reason::NoCalibration { detail: name } => format!("{word}: {name}"),
        };
        Self {
            run: run.to_owned(),
            case: ruling.case.clone(),
            score: ruling.score.map(crate::score::Score::get),
            score_bounds: ruling.score_bounds.map(|(least, most)| [least.get(), most.get()]),
            raw_score: ruling.raw_score.map(crate::score::Score::get),
            tiebreak: ruling.tiebreak.map(crate::score::Score::get),
            spread: ruling.spread,
            decision: ruling.decision.name(),
            reason,
            threshold: ruling.threshold,
            degraded: ruling.degraded,
            votes_used: ruling.votes_used,
            votes_declared: ruling.votes_declared,
            quorum: ruling.quorum,
            profile: profile.map(|own| own.name.clone()),
            profile_hash: profile.map(|own| own.hash.clone()),
            uncalibrated: profile.map(|own| own.uncalibrated),
            uncertified: profile.map(|own| own.uncertified),
            profile_reasons: profile
                .filter(|own| !own.reasons.is_empty())
                .map(|own| own.reasons.join("; ")),
            key_score: key.map(|key| key.score),
            key_tiebreak: key.map(|key| key.tiebreak),
        }
    }
}

/// Why a ruling was made, in a word: that of its JSON.
#[must_use]
pub fn reason_word(reason: &Reason) -> &'static str {
    match reason {
        Reason::Threshold => "threshold",
        Reason::RequiredJudge { .. } => "required_judge",
        Reason::RequiredJudgeMissing { .. } => "required_judge_missing",
        Reason::RequiredCriterion { .. } => "required_criterion",
        Reason::RequiredCriterionMissing { .. } => "required_criterion_missing",
        Reason::NoQuorum => "no_quorum",
        Reason::AcceptedAlone { .. } => "accepted_alone",
        Reason::NoCalibration { .. } => "no_calibration",
    }
}

/// Calls `each` with the ruling of every case that has one, in the data's order.
///
/// # Errors
/// When the store refuses or `each` does.
pub fn each_ruling<E: From<StoreError>>(
    store: &Store,
    run: i64,
    mut each: impl FnMut(Ruling) -> Result<(), E>,
) -> Result<(), E> {
    each_ruling_at(store, run, |_, ruling| each(ruling))
}

/// The same with the place of each case, from 0.
///
/// # Errors
/// As [`each_ruling`].
pub fn each_ruling_at<E: From<StoreError>>(
    store: &Store,
    run: i64,
    mut each: impl FnMut(u64, Ruling) -> Result<(), E>,
) -> Result<(), E> {
    let mut failure = None;
    store.each_case(run, |position, _| {
        if failure.is_none()
            && let Some(ruling) = store.ruling(run, position)?
        {
            failure = each(position, ruling).err();
        }
        Ok(())
    })?;
    failure.map_or(Ok(()), Err)
}

/// Which row of its data each case of a run was, by its place; unknown for a run of an earlier
/// version that left rows out or took a split, and where there were no rows.
#[must_use]
pub fn row_numbers(run: &RunRecord) -> RowNumbers {
    // The verb that started the run kept them among its options.
    let options: Value = serde_json::from_str(&run.options).unwrap_or_default();
    if run.data == ONE_BY_ONE {
        return RowNumbers::unknown();
    }
    if let Some(kept) = options.get("rows") {
        return serde_json::from_value(kept.clone()).unwrap_or_else(|_| RowNumbers::unknown());
    }
    let skipped = options.get("skipped_rows").and_then(Value::as_u64).unwrap_or_default();
    let split = options.pointer("/reading/split").is_some_and(|split| !split.is_null());
    if skipped > 0 || split { RowNumbers::unknown() } else { RowNumbers::default() }
}

/// Calls `each` with every case that has a ruling, and the ruling, in the data's order.
///
/// # Errors
/// When the store refuses or `each` does.
pub fn each_judged<E: From<StoreError>>(
    store: &Store,
    run: i64,
    mut each: impl FnMut(Case, Ruling) -> Result<(), E>,
) -> Result<(), E> {
    each_judged_at(store, run, |_, case, ruling| each(case, ruling))
}

/// The same with the place of each case, from 0.
///
/// # Errors
/// As [`each_judged`].
pub fn each_judged_at<E: From<StoreError>>(
    store: &Store,
    run: i64,
    mut each: impl FnMut(u64, Case, Ruling) -> Result<(), E>,
) -> Result<(), E> {
    let mut failure = None;
    store.each_case(run, |position, _| {
        if failure.is_none()
            && let Some(ruling) = store.ruling(run, position)?
            && let Some(case) = store.case(run, position)?
        {
            failure = each(position, case, ruling).err();
        }
        Ok(())
    })?;
    failure.map_or(Ok(()), Err)
}

/// Calls `each` with the case id and verdict of everything that was judged, cases without a
/// ruling included, in the data's order.
///
/// # Errors
/// When the store refuses or `each` does.
pub fn each_verdict<E: From<StoreError>>(
    store: &Store,
    run: i64,
    mut each: impl FnMut(&str, Verdict) -> Result<(), E>,
) -> Result<(), E> {
    let mut failure = None;
    store.each_case(run, |position, id| {
        for verdict in store.verdicts(run, position)? {
            if failure.is_none() {
                failure = each(&id, verdict).err();
            }
        }
        Ok(())
    })?;
    failure.map_or(Ok(()), Err)
}
