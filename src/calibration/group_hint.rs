//! A hint that cases belong together: a field that looks like a group, where none was named.
//!
//! Copies of a question that count as so many questions make every interval too narrow and
//! every certificate void. A hint is only said; nothing is grouped by a guess.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::labelled::LabelledCase;
use crate::case::Case;

/// Words in the names of fields that usually name a group.
const WORDS: [&str; 17] = [
    "group",
    "question",
    "conversation",
    "dialog",
    "dialogue",
    "thread",
    "session",
    "task",
    "problem",
    "prompt",
    "instruction",
    "document",
    "doc",
    "article",
    "customer",
    "user",
    "seed",
];
/// Signs that part an id into a group and what is different in it.
const SIGNS: [char; 4] = ['#', '/', ':', '|'];
/// Fields that are looked at, so that a file with many can't fill the memory.
const MAX_FIELDS: usize = 64;

/// What the fields of the cases hold, by hash.
#[derive(Debug, Default)]
pub(super) struct GroupHint {
    fields: HashMap<String, HashSet<[u8; 16]>>,
    counts: HashMap<String, u64>,
    cases: u64,
    grouped: u64,
}

impl GroupHint {
    pub(super) fn add(&mut self, case: &Case) {
        self.cases += 1;
        self.grouped += u64::from(case.group.is_some());
        if let Some(input) = &case.input {
            self.value("input", input);
        }
        for (field, value) in &case.metadata {
            let words = field.split(['_', '-', ' ', '.']).map(str::to_lowercase);
            if !words.into_iter().any(|word| WORDS.contains(&word.as_str())) {
                continue;
            }
            match value {
                Value::String(text) => self.value(field, text),
                Value::Number(number) => self.value(field, &number.to_string()),
                _ => {}
            }
        }
    }

    fn value(&mut self, field: &str, value: &str) {
        if !self.fields.contains_key(field) && self.fields.len() >= MAX_FIELDS {
            return;
        }
        let hash = blake3::hash(value.as_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&hash.as_bytes()[..16]);
        self.fields.entry(field.to_owned()).or_default().insert(short);
        *self.counts.entry(field.to_owned()).or_default() += 1;
    }

    /// What to say; `None` where the cases bring their groups, or nothing repeats.
    pub(super) fn said(&self) -> Option<String> {
        if self.grouped == self.cases {
            return None;
        }
        let mut found: Vec<(&String, u64)> = self
            .fields
            .iter()
            .map(|(field, values)| (field, values.len() as u64))
            .filter(|(field, distinct)| {
                let n = self.counts[*field];
                // A field that half of the cases lack is no group, nor one that never repeats
                // or is the same throughout.
                2 * n > self.cases && *distinct > 1 && 10 * distinct < 9 * n
            })
            .collect();
        // The finest grouping keeps the most evidence.
        found.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let (field, distinct) = found.first()?;
        Some(format!(
            "{} cases have {distinct} different values of `{field}`: if those with the same one belong together, name it with `--group {field}`; they count as independent now",
            self.counts[*field]
        ))
    }
}

/// The same from ids alone, as in `m3#q17`.
pub(super) fn of_ids(cases: &[LabelledCase]) -> Option<String> {
    for sign in SIGNS {
        let parts: Option<Vec<(&str, &str)>> =
            cases.iter().map(|case| case.id.split_once(sign)).collect();
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else { continue };
        let n = parts.len();
        let first: HashSet<&str> = parts.iter().map(|own| own.0).collect();
        let second: HashSet<&str> = parts.iter().map(|own| own.1).collect();
        let (count, pattern) = if first.len() >= second.len() {
            (first.len(), format!("^([^{sign}]+){sign}"))
        } else {
            (second.len(), format!("{sign}(.+)$"))
        };
        if count > 1 && 10 * count < 9 * n {
            return Some(format!(
                "the ids of {n} cases have {count} different parts beside `{sign}`: if those with the same one belong together, say so with `--group-regex \"{pattern}\"`; they count as independent now"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(i: usize, field: &str, value: String) -> Case {
        let mut case = Case { id: i.to_string(), ..Case::default() };
        case.metadata.insert(field.to_owned(), value.into());
        case
    }

    fn said(field: &str, value: impl Fn(usize) -> String) -> Option<String> {
        let mut hint = GroupHint::default();
        (0..20).for_each(|i| hint.add(&case(i, field, value(i))));
        hint.said()
    }

    #[test]
    fn a_repeated_question_is_named_and_a_name_of_each_case_is_not() {
        let own = said("question_id", |i| (i / 4).to_string()).unwrap();
        assert!(own.contains("5 different values of `question_id`"), "{own}");
        assert_eq!(said("question_id", |i| i.to_string()), None, "never repeats");
        assert_eq!(said("task", |_| "same".to_owned()), None, "one value is no grouping");
        assert_eq!(said("colour", |i| (i / 4).to_string()), None, "no name of a group");
    }

    #[test]
    fn cases_that_bring_their_groups_need_no_hint() {
        let mut hint = GroupHint::default();
        for i in 0..9 {
            let own = case(i, "task", (i / 3).to_string());
            hint.add(&Case { group: Some("g".into()), ..own });
        }
        assert_eq!(hint.said(), None);
    }

    #[test]
    fn ids_in_two_parts_are_grouped_by_the_part_with_more_values() {
        let ids = |id: &dyn Fn(usize) -> String| -> Option<String> {
            let cases: Vec<LabelledCase> = (0..30)
                .map(|i| LabelledCase { id: id(i), good: true, target: 1.0, ratings: Vec::new() })
                .collect();
            of_ids(&cases)
        };
        let own = ids(&|i| format!("m{}#q{}", i % 3, i / 3)).unwrap();
        assert!(own.contains("10 different") && own.contains("#(.+)$"), "{own}");
        assert_eq!(ids(&|i| format!("a#{i}")), None);
        assert_eq!(ids(&|i| i.to_string()), None);
    }
}
