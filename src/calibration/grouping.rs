//! Groups: cases that belong together (a task, a conversation, a question) and are never
//! split apart nor counted as independent.
//!
//! Groups come from a field of the cases, from the first capture of a pattern in the case's
//! id, or are the cases themselves. A case without a group is refused, not given one.

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

use super::error::CalibrationError;
use super::group_hint::GroupHint;
use super::labelled::LabelledCase;
use crate::case::Case;
use crate::dataset::{ReadOptions, Reader, Source};

/// Where groups come from.
#[derive(Clone, Debug, Default)]
pub enum Grouping {
    /// The field `group` where every case has one, else each case by itself.
    #[default]
    Automatic,
    /// A field of the cases: `group`, `source`, `split`, `input`, or a path into the metadata.
    Field(String),
    /// The first capture in the case's id, or the whole match without one.
    Pattern(Regex),
}

impl Grouping {
    /// Groups by a pattern.
    ///
    /// # Errors
    /// When it is no regular expression.
    pub fn pattern(pattern: &str) -> Result<Self, CalibrationError> {
        let refused = |message: String| CalibrationError::GroupPattern {
            pattern: pattern.to_owned(),
            message,
        };
        let read = Regex::new(pattern).map_err(|error| refused(error.to_string()))?;
        if read.captures_len() < 2 {
            return Err(refused(
                "it has no capture: put what names the group in brackets, as in `^(q[0-9]+)-`"
                    .into(),
            ));
        }
        Ok(Self::Pattern(read))
    }

    /// What it is called in reports.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Automatic => "case".to_owned(),
            Self::Field(field) => format!("field `{field}`"),
            Self::Pattern(pattern) => format!("pattern `{pattern}`"),
        }
    }
}

/// What calibration needs to know of a case's text.
#[derive(Clone, Debug, Default)]
pub struct ItemFacts {
    /// The group by the chosen field.
    pub group: Option<String>,
    /// The part named in the data.
    pub split: Option<String>,
    /// Characters of the output.
    pub length: Option<u64>,
    /// Hash of what is judged; `None` where the data hold no text.
    pub content: Option<String>,
    /// The row of the file, from 1, of a case whose id is a hash.
    pub row: Option<u64>,
}

/// Facts of the labelled cases, by their position in the table.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// One entry a case; `None` where the file has no such case.
    pub facts: Vec<Option<ItemFacts>>,
    /// Whether there is a file of cases.
    pub present: bool,
    /// What looks like a group that nobody named, in words.
    pub group_hint: Option<String>,
}

impl Items {
    /// Facts of these cases, without a file.
    #[must_use]
    pub fn absent(cases: usize) -> Self {
        Self { facts: vec![None; cases], ..Self::default() }
    }

    /// Reads the facts of the labelled cases; others are passed over.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn read(
        source: &Source,
        options: &ReadOptions,
        cases: &[LabelledCase],
        grouping: &Grouping,
    ) -> Result<Self, CalibrationError> {
        let places: HashMap<&str, usize> =
            cases.iter().enumerate().map(|(i, case)| (case.id.as_str(), i)).collect();
        let mut facts = vec![None; cases.len()];
        let mut reader = Reader::open(source, options)?;
        let mut hint = GroupHint::default();
        while let Some(row) = reader.next_row() {
            let row = row?;
            if let Some(&place) = places.get(row.case.id.as_str()) {
                let number = row.generated_id.then_some(row.number);
                facts[place] =
                    Some(ItemFacts { row: number, ..ItemFacts::of(&row.case, grouping) });
                hint.add(&row.case);
            }
        }
        // One text for all cases stands for texts that are elsewhere, as beside recorded
        // verdicts: it makes no case the copy of another.
        let mut contents = facts.iter().flatten().filter_map(|facts| facts.content.as_ref());
        if let Some(one) = contents.next()
            && facts.iter().flatten().all(|facts| facts.content.as_ref() == Some(one))
        {
            facts.iter_mut().flatten().for_each(|facts| facts.content = None);
        }
        let automatic = matches!(grouping, Grouping::Automatic);
        let group_hint = if automatic { hint.said() } else { None };
        Ok(Self { facts, present: true, group_hint })
    }
}

impl Items {
    /// The row of a case whose id is a hash; `None` for others, and without a file of cases.
    #[must_use]
    pub fn row(&self, case: usize) -> Option<u64> {
        self.facts.get(case)?.as_ref()?.row
    }

    /// What a message calls a case: its id, with its row where the id alone says nothing.
    pub(super) fn name(&self, case: usize, id: &str) -> String {
        self.row(case).map_or_else(|| id.to_owned(), |row| format!("{id} (row {row})"))
    }
}

impl ItemFacts {
    fn of(case: &Case, grouping: &Grouping) -> Self {
        let group = match grouping {
            Grouping::Field(field) => field_of(case, field),
            Grouping::Automatic | Grouping::Pattern(_) => case.group.clone(),
        };
        Self {
            group,
            split: case.split.clone(),
            length: case.output.as_ref().map(|text| text.chars().count() as u64),
            // Without the output, equal inputs are one question and not one case.
            content: case.output.is_some().then(|| case.content_id()),
            row: None,
        }
    }
}

fn field_of(case: &Case, field: &str) -> Option<String> {
    match field {
        "group" => return case.group.clone(),
        "source" => return case.source.clone(),
        "split" => return case.split.clone(),
        "input" => return case.input.clone(),
        _ => {}
    }
    let path = field.strip_prefix("metadata.").or_else(|| field.strip_prefix("meta."));
    let mut keys = path.unwrap_or(field).split('.');
    let mut value = case.metadata.get(keys.next()?)?;
    for key in keys {
        value = value.get(key)?;
    }
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A group number a case, groups numbered by first appearance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The group of each case.
    pub of_case: Vec<usize>,
    /// The groups' names.
    pub names: Vec<String>,
}

impl Groups {
    /// The groups of the cases.
    ///
    /// # Errors
    /// When a field is asked for without a file of cases, or a case has no group.
    pub fn assign(
        cases: &[LabelledCase],
        items: &Items,
        grouping: &Grouping,
    ) -> Result<Self, CalibrationError> {
        let missing = |i: usize| CalibrationError::NoGroup {
            case: items.name(i, &cases[i].id),
            rule: grouping.describe(),
        };
        let from_item = |i: usize| items.facts[i].as_ref().and_then(|facts| facts.group.clone());
        let mut names = Vec::with_capacity(cases.len());
        match grouping {
            Grouping::Field(_) if !items.present => {
                return Err(CalibrationError::ItemsNeeded { option: "`--group`" });
            }
            Grouping::Field(_) => {
                for i in 0..cases.len() {
                    names.push(from_item(i).ok_or_else(|| missing(i))?);
                }
            }
            Grouping::Pattern(pattern) => {
                for (i, case) in cases.iter().enumerate() {
                    let captures = pattern.captures(&case.id).ok_or_else(|| missing(i))?;
                    let group = captures.get(1).or_else(|| captures.get(0));
                    names.push(group.ok_or_else(|| missing(i))?.as_str().to_owned());
                }
            }
            Grouping::Automatic => {
                let grouped: Option<Vec<String>> = (0..cases.len()).map(from_item).collect();
                names =
                    grouped.unwrap_or_else(|| cases.iter().map(|case| case.id.clone()).collect());
            }
        }
        Ok(Self::numbered(names))
    }

    pub(super) fn numbered(of_case: Vec<String>) -> Self {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut names = Vec::new();
        let of_case = of_case
            .into_iter()
            .map(|name| {
                *places.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() - 1
                })
            })
            .collect();
        Self { of_case, names }
    }

    /// How many groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no cases.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether some group has several cases.
    #[must_use]
    pub fn clustered(&self) -> bool {
        self.names.len() < self.of_case.len()
    }
}
