//! Turns the rows of a recording into entries, and refuses what makes no sense.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::recording::{AB, ABSENT, BA, Entry, Extra, OTHER, UNSAID, key};
use super::rows::{Row, RowError};
use super::{Orders, ReplayScale, ReplaySpec};
use crate::config::nearest;
use crate::judge::MOST_SAMPLES;
use crate::judge::process::plain;
use crate::judge::reported::MOST_USD;
use crate::score::Score;
use crate::verdict::{CriterionScore, INVERTED, Status};

/// What is gathered while the file is read.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) entries: Vec<Entry>,
    pub(super) extras: Vec<Extra>,
    pub(super) models: Vec<String>,
    criteria: Vec<String>,
    pub(super) judges: BTreeSet<String>,
    /// Where an extra stands, by its hash: many rows share one, such as a raw `True`.
    seen: HashMap<[u8; 16], u32>,
    pub(super) rows: u64,
    has_judges: bool,
    has_criteria: bool,
    /// The columns of the first row, until a row has one of scores.
    pub(super) unscored: Option<Vec<String>>,
    has_scores: bool,
    /// An id in the recording, as an example.
    pub(super) example: Option<String>,
}

/// Columns that say what became of a verdict.
const SCORES: [&str; 4] = ["score", "raw", "status", "criteria"];

impl Reader {
    pub(super) fn take(&mut self, row: &Row<'_>, spec: &ReplaySpec) -> Result<(), RowError> {
        self.rows += 1;
        let at = |reason: String| RowError::at(row.line, reason);
        if !self.has_scores {
            let columns = row.columns();
            self.has_scores = columns.iter().any(|column| SCORES.contains(&column.as_str()));
            if self.has_scores {
                self.unscored = None;
            } else {
                self.unscored.get_or_insert(columns);
            }
        }
        let id = case_id(row)?;
        self.example.get_or_insert_with(|| id.clone());
        if let Some(judge) = row.name("judge")? {
            if !self.has_judges && self.rows > 1 {
                return Err(at("has a `judge`, which the rows before have not".to_owned()));
            }
            self.has_judges = true;
            let wanted = spec.judge.as_ref() == Some(&judge);
            if !self.judges.contains(&judge) {
                self.judges.insert(judge);
            }
            if !wanted && spec.judge.is_some() {
                return Ok(());
            }
        } else if self.has_judges {
            return Err(at("has no `judge`".to_owned()));
        }
        let slot = match row.name("criterion")? {
            None => 0,
            Some(criterion) => {
                self.has_criteria = true;
                let wanted = spec.criterion.as_ref().is_none_or(|only| *only == criterion)
                    && (spec.criteria.is_empty() || spec.criteria.contains(&criterion));
                let slot = position(&mut self.criteria, criterion);
                if !wanted {
                    return Ok(());
                }
                u16::try_from(slot).map_err(|_| at("more than 65536 criteria".to_owned()))?
            }
        };
        let sample = row.count("sample")?.unwrap_or(0);
        let sample = u16::try_from(sample)
            .ok()
            .filter(|sample| u32::from(*sample) < MOST_SAMPLES)
            .ok_or_else(|| {
                at(format!("`sample` is {sample}: expected less than {MOST_SAMPLES}"))
            })?;
        let order = match row.name("order")?.as_deref() {
            None => UNSAID,
            Some("ab") => AB,
            Some("ba") => BA,
            Some(_) => OTHER,
        };
        let value = row.number("score")?;
        let status = status(row, value)?;
        let extra = self.extra(row, value)?;
        self.entries.push(Entry {
            key: key(&id),
            value: value.unwrap_or(f64::NAN),
            extra,
            line: u32::try_from(row.line).unwrap_or(u32::MAX),
            sample,
            slot,
            order,
            status,
        });
        Ok(())
    }

    fn extra(&mut self, row: &Row<'_>, value: Option<f64>) -> Result<u32, RowError> {
        let model = row.name("model_returned")?;
        let says_the_same = |raw: &Value| match raw {
            Value::String(text) => text.trim().parse::<f64>().ok() == value,
            raw => raw.as_f64() == value,
        };
        let mut extra = Extra {
            raw: row.get("raw").filter(|raw| value.is_none() || !says_the_same(raw)),
            detail: row.name("detail")?.map(|text| plain::strip(&text)),
            feedback: feedback(row)?,
            criteria: criteria(row)?,
            model: model.map(|model| position(&mut self.models, model) as u32),
            tokens_in: row.count("tokens_in")?.unwrap_or(0),
            tokens_out: row.count("tokens_out")?.unwrap_or(0),
            calls: 0,
            latency_ms: row.count("latency_ms")?.unwrap_or(0),
            cost_usd: row.number("cost_usd")?,
            inverted: is_inverted(row),
        };
        if let Some(usage) = row.json("usage")? {
            let usage: crate::verdict::Usage = crate::config::from_value(usage)
                .map_err(|problem| RowError::at(row.line, problem.inside("usage").to_string()))?;
            extra.tokens_in = usage.tokens_in;
            extra.tokens_out = usage.tokens_out;
            extra.calls = usage.calls;
        }
        if let Some(cost) = extra.cost_usd.filter(|cost| !(0.0..=MOST_USD).contains(cost)) {
            let reason = format!("`cost_usd` is {cost}: expected US dollars, from 0 to {MOST_USD}");
            return Err(RowError::at(row.line, reason));
        }
        if extra == Extra::default() {
            return Ok(ABSENT);
        }
        if let Some(index) = self.seen.get(&key(&format!("{extra:?}"))) {
            return Ok(*index);
        }
        let index = u32::try_from(self.extras.len())
            .ok()
            .filter(|index| *index != ABSENT)
            .ok_or_else(|| RowError::at(row.line, "more rows than can be held"))?;
        self.seen.insert(key(&format!("{extra:?}")), index);
        self.extras.push(extra);
        Ok(index)
    }

    pub(super) fn why_no_judge(&self, spec: &ReplaySpec) -> String {
        let judges: Vec<&str> = self.judges.iter().map(String::as_str).collect();
        let wanted = spec.judge.as_deref().unwrap_or_default();
        if judges.contains(&wanted) {
            let what = spec.criterion.as_deref().unwrap_or("any of `criteria`");
            return format!("holds no verdict of `{wanted}` on `{what}`: {}", list(&self.criteria));
        }
        let near = nearest(wanted, judges.iter().copied())
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        format!("holds no judge `{wanted}`: {}{near}", list(&judges))
    }

    /// Which criteria make the score.
    pub(super) fn chosen(&self, spec: &ReplaySpec) -> Result<Vec<String>, String> {
        let asked: Vec<String> = spec.criterion.iter().chain(&spec.criteria).cloned().collect();
        if !self.has_criteria {
            return if asked.is_empty() {
                Ok(Vec::new())
            } else {
                Err("has no column `criterion`".to_owned())
            };
        }
        if let Some(missing) = asked.iter().find(|asked| !self.criteria.contains(asked)) {
            let near = nearest(missing, self.criteria.iter().map(String::as_str))
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            return Err(format!("holds no criterion `{missing}`: {}{near}", list(&self.criteria)));
        }
        match (asked.is_empty(), self.criteria.as_slice()) {
            (false, _) => Ok(asked),
            (true, [only]) => Ok(vec![only.clone()]),
            (true, several) => Err(format!(
                "several criteria are recorded, set `criterion` or `criteria`: {}",
                list(several)
            )),
        }
    }

    /// Keeps the entries of the chosen criteria and order, numbered as chosen, and sorts them.
    pub(super) fn keep(&mut self, criteria: &[String], orders: Option<Orders>) {
        let slots: Vec<Option<u16>> = self
            .criteria
            .iter()
            .map(|name| criteria.iter().position(|c| c == name).map(|at| at as u16))
            .collect();
        self.entries.retain_mut(|entry| {
            let slot = slots.get(usize::from(entry.slot)).copied();
            match (slot, self.has_criteria) {
                (_, false) => {}
                (Some(Some(slot)), true) => entry.slot = slot,
                _ => return false,
            }
            match orders {
                None => true,
                Some(Orders::Combine) => matches!(entry.order, AB | BA),
                Some(Orders::Ab) => entry.order == AB,
                Some(Orders::Ba) => entry.order == BA,
            }
        });
        self.entries.sort_by_key(Entry::place);
    }

    pub(super) fn check(&self, spec: &ReplaySpec) -> Result<(), (&'static str, String)> {
        for pair in self.entries.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            if a.place() == b.place() {
                let lines = (a.line.min(b.line), a.line.max(b.line));
                let reason = format!("lines {} and {} record the same verdict", lines.0, lines.1);
                return Err(("file", reason));
            }
            let same = (a.key, a.sample, a.slot) == (b.key, b.sample, b.slot);
            if same && spec.orders.is_none() {
                let reason =
                    "pairs are recorded in both orders: set `orders` to `combine`, `ab` or `ba`";
                return Err(("orders", reason.to_owned()));
            }
        }
        let scored = || self.entries.iter().filter(|entry| entry.status == Status::Ok);
        let off = |entry: &&Entry| spec.scale.score(entry.value).is_err();
        let (n, outside) = (scored().count(), scored().filter(off).count());
        // What both scales share, 1 of 1 to 5 above all, does not speak for the declared one.
        let inside = scored().filter(|entry| !off(entry));
        let mut shared = inside.map(|entry| entry.value);
        let first = shared.next();
        let one_value = shared.all(|value| Some(value) == first);
        // A scale that was declared is believed as long as some score lies on it.
        let undeclared = spec.scale == ReplayScale::default();
        let many = undeclared && (outside * MOST_OFF_SCALE >= n || one_value);
        if outside > 0 && (outside == n || many) {
            let low = scored().map(|entry| entry.value).fold(f64::INFINITY, f64::min);
            let high = scored().map(|entry| entry.value).fold(f64::NEG_INFINITY, f64::max);
            let default = if spec.scale == ReplayScale::default() { " (the default)" } else { "" };
            let count = if outside == n {
                "no recorded score lies".to_owned()
            } else {
                format!("{outside} of {n} recorded scores do not lie")
            };
            let reason = format!(
                "{count} on the scale `{}`{default}: scores run from {low} to {high}{}",
                spec.scale,
                if spec.scale == ReplayScale::Preference {
                    String::new()
                } else {
                    likely(low, high)
                }
            );
            return Err(("scale", reason));
        }
        Ok(())
    }
}

/// One score in so many off the scale, and the scale is the wrong one; fewer are slips, each
/// `out_of_range` by itself.
const MOST_OFF_SCALE: usize = 20;

/// The scale that scores from `low` to `high` are likely on, as a question; empty where none
/// is.
fn likely(low: f64, high: f64) -> String {
    let scale = [(0.0, 1.0), (1.0, 5.0), (1.0, 7.0), (0.0, 10.0), (1.0, 10.0), (0.0, 100.0)]
        .into_iter()
        .find(|(least, most)| (*least..=*most).contains(&low) && high <= *most);
    match scale {
        Some((least, most)) => format!(": `scale = \"{least}-{most}\"`?"),
        None => String::new(),
    }
}

pub(super) fn list(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", name.as_ref())).collect();
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("expected one of {}{rest}", shown.join(", "))
}

/// The place of a name in a list, added where it is new. The lists are short.
fn position(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// The case's id under any of its names; two of them that differ are refused.
fn case_id(row: &Row<'_>) -> Result<String, RowError> {
    let mut found: BTreeMap<String, &str> = BTreeMap::new();
    for column in ["case", "item_id", "id"] {
        if let Some(id) = row.name(column)? {
            found.entry(id).or_insert(column);
        }
    }
    let mut ids = found.into_iter();
    match (ids.next(), ids.next()) {
        (Some((id, _)), None) => Ok(id),
        (None, _) => Err(RowError::at(row.line, "has no case: expected `item_id`, `case` or `id`")),
        (Some((a, in_a)), Some((b, in_b))) => {
            let reason = format!("`{in_a}` is `{a}` and `{in_b}` is `{b}`: expected one case");
            Err(RowError::at(row.line, reason))
        }
    }
}

fn status(row: &Row<'_>, value: Option<f64>) -> Result<Status, RowError> {
    let at = |reason: String| RowError::at(row.line, reason);
    let Some(name) = row.name("status")? else {
        // Without a score a judge was asked and gave what could not be read where there is
        // something raw, and said nothing, or was not asked, where there is not.
        return Ok(match (value, row.get("raw")) {
            (Some(_), _) => Status::Ok,
            (None, Some(_)) => Status::Unparseable,
            (None, None) => Status::Abstained,
        });
    };
    let status = Status::from_name(&name).ok_or_else(|| {
        let known = Status::ALL.map(Status::name);
        crate::config::Problem::unknown("", "status", &name, &known).to_string()
    });
    let status = status.map_err(at)?;
    match (status, value) {
        (Status::Ok, None) => Err(at("`status` is `ok` and there is no `score`".to_owned())),
        (Status::Ok, Some(_)) | (_, None) => Ok(status),
        (_, Some(_)) => Err(at(format!("`status` is `{status}` and there is a `score`"))),
    }
}

/// Whether an exported row says that its score is 1 minus the judge's own. Notes in another
/// form are someone else's column.
fn is_inverted(row: &Row<'_>) -> bool {
    let notes: Option<Value> = match row.get("notes") {
        Some(Value::String(text)) => serde_json::from_str(&text).ok(),
        notes => notes,
    };
    notes.is_some_and(|notes| notes.get(INVERTED) == Some(&Value::Bool(true)))
}

fn feedback(row: &Row<'_>) -> Result<Vec<String>, RowError> {
    let texts = match row.get("feedback") {
        None => Vec::new(),
        Some(Value::String(text)) => {
            // Exported CSV holds a list as JSON text.
            let list = if row.is_csv { serde_json::from_str(&text).ok() } else { None };
            list.unwrap_or_else(|| vec![text])
        }
        Some(value) => serde_json::from_value(value).map_err(|_| {
            RowError::at(row.line, "`feedback` is neither a text nor a list of texts")
        })?,
    };
    Ok(texts.iter().map(|text| plain::strip(text)).collect())
}

fn criteria(row: &Row<'_>) -> Result<Vec<CriterionScore>, RowError> {
    let wrong = |why: String| RowError::at(row.line, format!("`criteria`: {why}"));
    match row.json("criteria")? {
        None => Ok(Vec::new()),
        Some(Value::Object(map)) => map
            .into_iter()
            .map(|(name, value)| {
                let score: Option<Score> = crate::config::from_value(value)
                    .map_err(|e| wrong(format!("`{name}`: {e}")))?;
                let (raw, passed, required, feedback) = (None, None, false, None);
                Ok(CriterionScore { name, score, raw, passed, required, feedback })
            })
            .collect(),
        Some(list) => crate::config::from_value(list).map_err(|e| wrong(e.to_string())),
    }
}
