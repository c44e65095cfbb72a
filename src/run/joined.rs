//! Rows that carry their case, and rows of one case with all its votes side by side.
//!
//! In JSON `labels`, `metadata` and `votes` are objects; in a table each of their keys is a
//! column, `metadata.KEY`, so that a spreadsheet can sort by it.

use std::collections::BTreeSet;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::rows::RulingRow;
use crate::case::Case;
use crate::dataset::Label;
use crate::ruling::Ruling;
use crate::store::{Store, StoreError};

/// Keys of metadata beyond which a table has them in one column, as JSON.
const MOST_KEYS: usize = 100;

/// Which columns the keys of a case become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Objects, as JSON has them.
    Nested,
    /// One column a key.
    Flat {
        /// The keys of `metadata`; `None` for one column with JSON.
        metadata: Option<Vec<String>>,
        /// The criteria of the labels.
        labels: Vec<String>,
    },
}

impl Columns {
    /// The columns of a table, from the metadata of all cases of a run.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn of_table(store: &Store, run: i64, labels: Vec<String>) -> Result<Self, StoreError> {
        let mut keys = Some(BTreeSet::new());
        store.each_case(run, |position, _| {
            if let (Some(known), Some(case)) = (&mut keys, store.case(run, position)?) {
                known.extend(case.metadata.into_iter().map(|(key, _)| key));
                if known.len() > MOST_KEYS {
                    keys = None;
                }
            }
            Ok(())
        })?;
        Ok(Self::Flat { metadata: keys.map(|keys| keys.into_iter().collect()), labels })
    }
}

/// A row with its case's fields after its own.
#[derive(Debug, Serialize)]
pub struct WithCase<'a, R: Serialize> {
    /// The row.
    #[serde(flatten)]
    pub row: &'a R,
    /// The case.
    #[serde(flatten)]
    pub case: CaseFields<'a>,
}

/// The fields of a case, all of them in every row, so that a table has them as columns.
#[derive(Clone, Copy, Debug)]
pub struct CaseFields<'a> {
    /// The case.
    pub case: &'a Case,
    /// The row of the data that it was, from 1, where that is known.
    pub row: Option<u64>,
    /// Its labels, where they are known.
    pub labels: &'a [Label],
    /// How they are laid out.
    pub columns: &'a Columns,
}

impl CaseFields<'_> {
    fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let case = self.case;
        map.serialize_entry("row", &self.row)?;
        for (name, value) in case.fields() {
            map.serialize_entry(name, value)?;
        }
        let label = |criterion: &str| self.labels.iter().find(|label| label.criterion == criterion);
        match self.columns {
            Columns::Nested => {
                if !self.labels.is_empty() {
                    let labels: serde_json::Map<String, serde_json::Value> = self
                        .labels
                        .iter()
                        .map(|label| (label.criterion.clone(), serde_json::json!(label.value)))
                        .collect();
                    map.serialize_entry("labels", &labels)?;
                }
                map.serialize_entry("metadata", &case.metadata)?;
            }
            Columns::Flat { metadata, labels } => {
                for criterion in labels {
                    let value = label(criterion).map(|label| &label.value);
                    map.serialize_entry(&format!("labels.{criterion}"), &value)?;
                }
                match metadata {
                    None => map.serialize_entry("metadata", &case.metadata)?,
                    Some(keys) => {
                        for key in keys {
                            let value = case.metadata.get(key);
                            map.serialize_entry(&format!("metadata.{key}"), &value)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Serialize for CaseFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}

/// A row with what the label of its case says after its own fields.
#[derive(Debug, Serialize)]
pub struct WithTruth<'a, R: Serialize> {
    /// The row.
    #[serde(flatten)]
    pub row: &'a R,
    /// `good`, `bad`, or nothing without a label.
    pub truth: Option<&'static str>,
    /// `false_acceptance` or `false_rejection` where the decision contradicts the label.
    pub mistake: Option<&'static str>,
}

/// One case as a row: its ruling, and each judge's vote as a column.
#[derive(Clone, Copy, Debug)]
pub struct WideRow<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The ruling.
    pub ruling: &'a Ruling,
    /// The judges, in the order of their columns.
    pub judges: &'a [String],
    /// The case's own fields, where they are wanted.
    pub case: Option<CaseFields<'a>>,
    /// Whether votes are an object or a column each.
    pub nested: bool,
}

impl Serialize for WideRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = RulingRow::new(self.run, self.ruling);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("run", self.run)?;
        map.serialize_entry("case", &row.case)?;
        if let Some(case) = &self.case {
            case.entries(&mut map)?;
        }
        map.serialize_entry("decision", row.decision)?;
        map.serialize_entry("score", &row.score)?;
        let vote = |judge: &String| self.ruling.votes.iter().find(|vote| vote.judge == *judge);
        let score =
            |judge: &String| vote(judge).and_then(|v| v.score).map(crate::score::Score::get);
        if self.nested {
            let votes: serde_json::Map<String, serde_json::Value> =
                self.judges.iter().map(|judge| (judge.clone(), score(judge).into())).collect();
            map.serialize_entry("votes", &votes)?;
        } else {
            for judge in self.judges {
                map.serialize_entry(&format!("votes.{judge}"), &score(judge))?;
            }
        }
        map.serialize_entry("spread", &row.spread)?;
        map.serialize_entry("reason", &row.reason)?;
        let missing: Vec<String> = self
            .ruling
            .votes
            .iter()
            .filter(|vote| vote.score.is_none())
            .map(|vote| format!("{}: {}", vote.judge, vote.status))
            .collect();
        let found: Vec<String> = self
            .ruling
            .feedback
            .iter()
            .map(|finding| {
                let about =
                    finding.criterion.as_ref().map_or_else(String::new, |c| format!("{c}: "));
                format!("{about}{} [{}]", finding.text, finding.judges.join(", "))
            })
            .collect();
        let text = |lines: Vec<String>| (!lines.is_empty()).then(|| lines.join("\n"));
        map.serialize_entry("without_vote", &text(missing))?;
        map.serialize_entry("feedback", &text(found))?;
        map.end()
    }
}
