//! The `replay` judge: verdicts that were recorded before, from CSV, TSV, JSON Lines or JSON.
//!
//! It reads judgements in long form (`item_id, judge, criterion, score`) and exported
//! verdicts. What was not recorded is an abstention; what was recorded as failed is replayed
//! as failed; a number off the declared scale is `out_of_range`.

mod reader;
mod recording;
mod rows;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use futures::future::BoxFuture;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use self::recording::{ABSENT, Entry, Recording};
use super::{BoxedJudge, BuildContext, BuildError, Judge};
use crate::case::Case;
use crate::provider::CallContext;
use crate::score::{Scale, Score};
use crate::verdict::{CriterionScore, Fingerprint, Status, Verdict};

/// Configuration of a `replay` judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaySpec {
    /// The recording: `.csv`, `.tsv`, `.jsonl` or `.json`, plain or gzip. Columns: `item_id` (or `case`,
    /// `id`), `judge`, `score`, and where there are some `criterion`, `raw`, `status`,
    /// `detail`, `feedback`, `sample`, `order`, `criteria`, `model_returned`, `tokens_in`,
    /// `tokens_out`, `cost_usd`, `latency_ms`.
    pub file: PathBuf,
    /// Which recorded judge; the judge's own name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
    /// Which recorded criterion is the score; needed where several are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// Several recorded criteria; the score is their mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// The scale of the recorded scores.
    #[serde(default)]
    pub scale: ReplayScale,
    /// What to do with a pair that was judged in both orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Orders>,
}

/// The scale of recorded scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayScale {
    /// A scale of values.
    Values(Scale),
    /// Which of two outputs is preferred: 1 is the case's output, 2 its baseline, 0 neither;
    /// between 1 and 2 a preference by weight.
    Preference,
}

impl Default for ReplayScale {
    fn default() -> Self {
        Self::Values(Scale::UNIT)
    }
}

impl std::fmt::Display for ReplayScale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Values(scale) => scale.fmt(f),
            Self::Preference => f.write_str("preference"),
        }
    }
}

impl ReplayScale {
    fn score(self, value: f64) -> Result<Score, String> {
        let result = match self {
            Self::Values(scale) => scale.score(value),
            Self::Preference if value == 0.0 => Score::new(0.5),
            Self::Preference if (1.0..=2.0).contains(&value) => Score::from_arithmetic(2.0 - value),
            Self::Preference => {
                return Err(format!(
                    "`{value}` is no preference: expected 1 (the output), 2 (the baseline), between them, or 0 (a tie)"
                ));
            }
        };
        result.map_err(|error| error.to_string())
    }
}

impl Serialize for ReplayScale {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReplayScale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim() == "preference" {
            return Ok(Self::Preference);
        }
        text.parse().map(Self::Values).map_err(|error: crate::score::ScaleError| {
            serde::de::Error::custom(format!("{error}, or `preference` for pairs"))
        })
    }
}

impl schemars::JsonSchema for ReplayScale {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReplayScale".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "a scale such as `unit`, `1-5` or `0..10`, or `preference`: 1 is the output, 2 the baseline, 0 a tie",
        })
    }
}

/// What to do with a pair that was judged in both orders. Recorded preferences name the
/// outputs, not the places they were shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Orders {
    /// One vote of both: their mean where they agree on a side, else a tie.
    Combine,
    /// Only the order `ab`: the output first.
    Ab,
    /// Only the order `ba`: the baseline first.
    Ba,
}

/// The built judge.
#[derive(Debug)]
struct ReplayJudge {
    recording: Recording,
    scale: ReplayScale,
    orders: Option<Orders>,
    fingerprint: Fingerprint,
}

impl ReplaySpec {
    /// The same, replaying the recorded judge `name` where the configuration names none.
    #[must_use]
    pub fn with_default_judge(mut self, name: &str) -> Self {
        self.judge.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Loads the recording.
    ///
    /// # Errors
    /// A file that can't be read or a row that makes no sense (with its line), a judge or
    /// criterion that is not in it, the same verdict recorded twice, a pair in both orders
    /// without `orders`, no score on the declared scale.
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        if self.criterion.is_some() && !self.criteria.is_empty() {
            let reason = "stands beside `criterion`: expected one of the two";
            return Err(BuildError::invalid("criteria", reason));
        }
        if let Some(i) =
            (1..self.criteria.len()).find(|i| self.criteria[..*i].contains(&self.criteria[*i]))
        {
            let reason = format!("`{}` is there twice", self.criteria[i]);
            return Err(BuildError::invalid(format!("criteria[{i}]"), reason));
        }
        let path = context.resolve(&self.file);
        let failed = |source| BuildError::File { field: "file".into(), path: path.clone(), source };
        let mut hasher = blake3::Hasher::new();
        crate::inputs::note(&path);
        let file = std::fs::File::open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => BuildError::invalid("file", not_there(&path)),
            _ => failed(error),
        })?;
        hasher.update_reader(file).map_err(failed)?;
        let recording = Recording::load(&path, self)?;
        let identity = json!({
            "content": hasher.finalize().to_hex().as_str(),
            "judge": self.judge,
            "criterion": self.criterion,
            "criteria": self.criteria,
            "scale": self.scale,
            "orders": self.orders,
        });
        Ok(std::sync::Arc::new(ReplayJudge {
            recording,
            scale: self.scale,
            orders: self.orders,
            fingerprint: Fingerprint::of("replay", &identity),
        }))
    }
}

fn not_there(path: &std::path::Path) -> String {
    let path = path.display();
    format!(
        "`{path}` is not there: expected recorded verdicts, CSV or JSON Lines with the columns `item_id`, `judge` and `score`; to record some, judge the cases once with `venire run -c PANEL CASES -o {path}`"
    )
}

impl Judge for ReplayJudge {
    fn kind(&self) -> &'static str {
        "replay"
    }

    fn needs_output(&self) -> bool {
        false
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn samples(&self) -> u32 {
        self.recording.samples
    }

    fn model(&self) -> Option<&str> {
        self.recording.only_model()
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(std::future::ready(self.replay(&case.id, context.sample)))
    }
}

impl ReplayJudge {
    fn replay(&self, id: &str, sample: u32) -> Verdict {
        let entries = self.recording.find(id, sample);
        if entries.is_empty() {
            let ids = match &self.recording.example {
                Some(example) => format!(
                    "; the recording has ids such as `{}`",
                    super::process::plain::head(example, 80)
                ),
                None => String::new(),
            };
            let mut verdict = Verdict::abstained(format!(
                "no recorded verdict on the case `{}`{ids}",
                super::process::plain::head(id, 80)
            ));
            verdict.attempts = 0;
            return verdict;
        }
        let names = &self.recording.criteria;
        if names.len() < 2 {
            return self.one(entries);
        }
        let mut parts = Vec::new();
        for (slot, name) in names.iter().enumerate() {
            let of_slot: Vec<Entry> =
                entries.iter().filter(|entry| usize::from(entry.slot) == slot).copied().collect();
            if of_slot.is_empty() {
                return Verdict::abstained(format!(
                    "no recorded verdict on the criterion `{name}`"
                ));
            }
            let mut part = self.one(&of_slot);
            if part.status != Status::Ok {
                part.detail = part.detail.map(|why| format!("criterion `{name}`: {why}"));
                return part;
            }
            parts.push(part);
        }
        mean(names, parts)
    }

    /// The verdict of one criterion.
    fn one(&self, entries: &[Entry]) -> Verdict {
        if self.orders != Some(Orders::Combine) {
            return entries.first().map_or_else(
                || Verdict::abstained("no recorded verdict"),
                |entry| self.verdict(entry),
            );
        }
        let of = |order| entries.iter().find(|entry| entry.order == order).map(|e| self.verdict(e));
        match (of(recording::AB), of(recording::BA)) {
            (Some(ab), Some(ba)) => combine(ab, ba),
            _ => Verdict::abstained("recorded in one order only"),
        }
    }

    fn verdict(&self, entry: &Entry) -> Verdict {
        let mut verdict = match entry.status {
            Status::Ok => match self.scale.score(entry.value) {
                Ok(score) => Verdict::ok(score),
                Err(why) => Verdict::failed(Status::OutOfRange, why),
            },
            Status::Abstained => Verdict::abstained("recorded without a score"),
            status => Verdict::failed(status, format!("recorded as {status}")),
        };
        if !entry.value.is_nan() && self.scale != ReplayScale::default() {
            verdict.raw = Some(entry.value.into());
        }
        verdict.cached = true;
        if entry.extra != ABSENT {
            self.recording.extra(entry.extra).fill(&mut verdict);
        }
        verdict
    }
}

/// One vote of two orders: an inconsistent pair is a tie, and counts as position bias.
fn combine(ab: Verdict, ba: Verdict) -> Verdict {
    let (Some(first), Some(second)) = (ab.score, ba.score) else {
        return if ab.status == Status::Ok { ba } else { ab };
    };
    let side = |score: Score| score.get().total_cmp(&0.5);
    let consistent = side(first) == side(second);
    let value = if consistent { f64::midpoint(first.get(), second.get()) } else { 0.5 };
    let mut verdict = match Score::from_arithmetic(value) {
        Ok(score) => Verdict::ok(score),
        Err(error) => return Verdict::failed(Status::Internal, error.to_string()),
    };
    verdict = verdict.note("position_consistent", consistent);
    verdict.raw = Some(json!({ "ab": ab.raw, "ba": ba.raw }));
    verdict.attempts = 2;
    carry(&mut verdict, [ab, ba]);
    verdict
}

fn mean(names: &[String], parts: Vec<Verdict>) -> Verdict {
    let scores: Vec<f64> = parts.iter().filter_map(|part| part.score).map(Score::get).collect();
    let mut verdict = match Score::share(scores.iter().sum(), scores.len() as f64) {
        Ok(score) => Verdict::ok(score),
        Err(error) => return Verdict::failed(Status::Internal, error.to_string()),
    };
    let criteria = names.iter().zip(&parts).map(|(name, part)| CriterionScore {
        name: name.clone(),
        score: part.score,
        raw: part.raw.clone(),
        passed: None,
        required: false,
        feedback: (!part.feedback.is_empty()).then(|| part.feedback.join("\n")),
    });
    verdict.criteria = criteria.collect();
    carry(&mut verdict, parts);
    verdict
}

/// Sums what several recorded verdicts took into the one made of them.
fn carry(verdict: &mut Verdict, parts: impl IntoIterator<Item = Verdict>) {
    verdict.cached = true;
    for part in parts {
        verdict.usage.add(&part.usage);
        verdict.latency_ms += part.latency_ms;
        verdict.cost_usd = match (verdict.cost_usd, part.cost_usd) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        verdict.model_returned = verdict.model_returned.take().or(part.model_returned);
        verdict.feedback.extend(part.feedback);
        for (key, value) in part.notes {
            verdict.notes.entry(key).or_insert(value);
        }
    }
}
