//! A recording in memory: one judge's rows, sorted by a hash of the case's id, 40 bytes
//! each; texts only where there are some.

use std::path::Path;

use serde_json::Value;

use super::ReplaySpec;
use super::reader::{Reader, list};
use super::rows;
use crate::judge::BuildError;
use crate::verdict::{CriterionScore, INVERTED, Status, Verdict};

/// Orders of a pair; anything else, such as a judgement of one output alone, is `OTHER`.
pub(super) const AB: u8 = 1;
pub(super) const BA: u8 = 2;
pub(super) const UNSAID: u8 = 0;
pub(super) const OTHER: u8 = 3;

/// No texts or counts are recorded.
pub(super) const ABSENT: u32 = u32::MAX;

/// One recorded value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// 128 bits of BLAKE3 of the case's id.
    pub(super) key: [u8; 16],
    /// The number as recorded; NaN where there is none.
    pub(super) value: f64,
    pub(super) extra: u32,
    pub(super) line: u32,
    pub(super) sample: u16,
    pub(super) slot: u16,
    pub(super) order: u8,
    pub(super) status: Status,
}

impl Entry {
    pub(super) fn place(&self) -> ([u8; 16], u16, u16, u8) {
        (self.key, self.sample, self.slot, self.order)
    }
}

/// Texts and counts of a recorded verdict.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Extra {
    pub(super) raw: Option<Value>,
    pub(super) detail: Option<String>,
    pub(super) feedback: Vec<String>,
    pub(super) criteria: Vec<CriterionScore>,
    /// Index into the models' names.
    pub(super) model: Option<u32>,
    pub(super) tokens_in: u64,
    pub(super) tokens_out: u64,
    pub(super) calls: u32,
    pub(super) latency_ms: u64,
    pub(super) cost_usd: Option<f64>,
    /// Whether the score is 1 minus the judge's own: the seat that gave it was inverted.
    pub(super) inverted: bool,
}

/// An [`Extra`] with its model's name.
pub(super) struct Recorded<'a> {
    extra: &'a Extra,
    model: Option<&'a String>,
}

impl Recorded<'_> {
    /// Carries what was recorded over to a verdict.
    pub(super) fn fill(&self, verdict: &mut Verdict) {
        let extra = self.extra;
        if extra.raw.is_some() {
            verdict.raw.clone_from(&extra.raw);
        }
        if verdict.status != Status::Ok && extra.detail.is_some() {
            verdict.detail.clone_from(&extra.detail);
        }
        verdict.feedback.clone_from(&extra.feedback);
        verdict.criteria.clone_from(&extra.criteria);
        verdict.model_returned = self.model.cloned();
        verdict.usage.tokens_in = extra.tokens_in;
        verdict.usage.tokens_out = extra.tokens_out;
        verdict.usage.calls = extra.calls;
        verdict.cost_usd = extra.cost_usd;
        verdict.latency_ms = extra.latency_ms;
        if extra.inverted {
            verdict.notes.insert(INVERTED.to_owned(), true.into());
        }
        if extra.latency_ms > 0 {
            verdict.notes.insert("recorded_latency_ms".to_owned(), extra.latency_ms.into());
        }
    }
}

/// One judge's recorded verdicts.
#[derive(Debug)]
pub(super) struct Recording {
    entries: Vec<Entry>,
    extras: Vec<Extra>,
    models: Vec<String>,
    /// The criteria that make the score; empty where the recording has none.
    pub(super) criteria: Vec<String>,
    /// At least 1.
    pub(super) samples: u32,
    /// An id that is in it.
    pub(super) example: Option<String>,
}

pub(super) fn key(id: &str) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..16]);
    key
}

impl Recording {
    pub(super) fn load(path: &Path, spec: &ReplaySpec) -> Result<Self, BuildError> {
        let invalid = |field: &str, reason: String| {
            BuildError::invalid(field, format!("`{}`: {reason}", path.display()))
        };
        let mut reader = Reader::default();
        rows::read(path, |row| reader.take(row, spec)).map_err(|error| {
            let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            invalid("file", format!("{line}{}", error.reason))
        })?;
        if reader.rows == 0 {
            return Err(invalid("file", "holds no rows".to_owned()));
        }
        if let Some(columns) = &reader.unscored {
            let columns: Vec<&String> = columns.iter().collect();
            let reason = format!(
                "has no column `score`; its columns are {}: name the one with the scores `score`",
                list(&columns)
            );
            return Err(invalid("file", reason));
        }
        if spec.judge.is_none() && reader.judges.len() > 1 {
            let judges: Vec<&String> = reader.judges.iter().collect();
            return Err(invalid("judge", format!("holds several, {}", list(&judges))));
        }
        if reader.entries.is_empty() {
            return Err(invalid("judge", reader.why_no_judge(spec)));
        }
        let criteria = reader.chosen(spec).map_err(|reason| {
            let field = if spec.criteria.is_empty() { "criterion" } else { "criteria" };
            invalid(field, reason)
        })?;
        reader.keep(&criteria, spec.orders);
        if reader.entries.is_empty() {
            return Err(invalid("orders", "no verdict is recorded in this order".to_owned()));
        }
        reader.check(spec).map_err(|(field, reason)| invalid(field, reason))?;
        let samples = reader.entries.iter().map(|e| u32::from(e.sample) + 1).max().unwrap_or(1);
        reader.entries.shrink_to_fit();
        Ok(Self {
            entries: reader.entries,
            extras: reader.extras,
            models: reader.models,
            criteria,
            samples,
            example: reader.example,
        })
    }

    /// Every entry of a case and sample, by criterion.
    pub(super) fn find(&self, id: &str, sample: u32) -> &[Entry] {
        let Ok(sample) = u16::try_from(sample) else { return &[] };
        let wanted = (key(id), sample);
        let place = |entry: &Entry| (entry.key, entry.sample);
        let start = self.entries.partition_point(|entry| place(entry) < wanted);
        let count = self.entries[start..].partition_point(|entry| place(entry) == wanted);
        &self.entries[start..start + count]
    }

    pub(super) fn extra(&self, index: u32) -> Recorded<'_> {
        let extra = &self.extras[index as usize];
        Recorded { extra, model: extra.model.map(|model| &self.models[model as usize]) }
    }

    /// The model behind all verdicts, where one alone is recorded.
    pub(super) fn only_model(&self) -> Option<&str> {
        match self.models.as_slice() {
            [model] => Some(model),
            _ => None,
        }
    }
}
