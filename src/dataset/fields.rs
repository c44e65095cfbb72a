//! The fields of cases, labels and judgements, and the names that other tools give them.
//!
//! An alias is understood only where it means one thing in every tool we know: `system` may
//! be a system prompt, `messages` may end with the output, `uid` may be a user, so none of
//! them is one; a question's id is a group's, since many answer it. What is not
//! understood is metadata, never dropped.

use std::collections::BTreeMap;

use serde::Serialize;

use super::error::DatasetError;

/// A field, and the column names that mean it.
#[derive(Debug)]
pub(crate) struct FieldSpec {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
}

const fn field(name: &'static str, aliases: &'static [&'static str]) -> FieldSpec {
    FieldSpec { name, aliases }
}

/// Places of the fields in [`CASE`].
pub(crate) mod case {
    pub(crate) const ID: usize = 0;
    pub(crate) const INPUT: usize = 1;
    pub(crate) const OUTPUT: usize = 2;
    pub(crate) const EXPECTED: usize = 3;
    pub(crate) const CONTEXT: usize = 4;
    pub(crate) const BASELINE: usize = 5;
    pub(crate) const GROUP: usize = 6;
    pub(crate) const SPLIT: usize = 7;
    pub(crate) const SOURCE: usize = 8;
    pub(crate) const METADATA: usize = 9;
    pub(crate) const LABEL: usize = 10;
    pub(crate) const LABELS: usize = 11;
    pub(crate) const RATER: usize = 12;
    pub(crate) const LABEL_SOURCE: usize = 13;
}

/// A row of cases. The last four fields are labels in the same row; they are no part of the
/// case, so that no judge sees them.
pub(crate) static CASE: [FieldSpec; 14] = [
    field("id", &["item_id", "case_id", "example_id", "sample_id"]),
    field(
        "input",
        &["prompt", "question", "instruction", "user_input", "inputs", "query", "user_prompt"],
    ),
    field(
        "output",
        &[
            "response",
            "answer",
            "completion",
            "actual_output",
            "prediction",
            "model_output",
            "model_response",
            "generated_text",
            "generation",
            "outputs",
            "sampled",
        ],
    ),
    field(
        "expected",
        &[
            "target",
            "reference",
            "ideal",
            "gold",
            "expected_output",
            "expected_answer",
            "reference_answer",
            "reference_output",
            "reference_outputs",
            "references",
            "ground_truth",
            "gold_answer",
            "correct_answer",
        ],
    ),
    field("context", &["contexts", "retrieval_context", "retrieved_contexts", "documents"]),
    field("baseline", &["baseline_output", "baseline_response"]),
    field("group", &["group_id", "task_id", "conversation_id", "question_id", "prompt_id"]),
    field("split", &["data_split", "partition"]),
    field("source", &["generator", "model", "model_name", "model_id"]),
    field("metadata", &["meta", "additional_metadata"]),
    field("label", &["human_score", "rating", "oracle_label"]),
    field("labels", &[]),
    field("rater", &[]),
    field("label_source", &[]),
];

/// Places of the fields in [`LABEL`].
pub(crate) mod label {
    pub(crate) const CASE: usize = 0;
    pub(crate) const RATER: usize = 1;
    pub(crate) const CRITERION: usize = 2;
    pub(crate) const LABEL: usize = 3;
    pub(crate) const LABEL_SOURCE: usize = 4;
}

/// A row of labels in long form.
pub(crate) static LABEL: [FieldSpec; 5] = [
    field("case", &["item_id", "id", "case_id", "example_id", "sample_id"]),
    field("rater", &["annotator", "rater_id", "annotator_id"]),
    field("criterion", &["dimension"]),
    field("label", &["human_score", "rating", "oracle_label", "value", "score"]),
    field("label_source", &[]),
];

/// Places of the fields in [`JUDGEMENT`].
pub(crate) mod judgement {
    pub(crate) const CASE: usize = 0;
    pub(crate) const JUDGE: usize = 1;
    pub(crate) const CRITERION: usize = 2;
    pub(crate) const SCORE: usize = 3;
    pub(crate) const RAW: usize = 4;
    pub(crate) const ORDER: usize = 5;
    pub(crate) const SAMPLE: usize = 6;
    pub(crate) const STATUS: usize = 7;
    pub(crate) const FEEDBACK: usize = 8;
    pub(crate) const METADATA: usize = 9;
}

/// A row of judgements in long form.
pub(crate) static JUDGEMENT: [FieldSpec; 10] = [
    field("case", &["item_id", "id", "case_id", "example_id", "sample_id"]),
    field("judge", &["judge_id", "judge_name", "evaluator", "grader", "scorer"]),
    field("criterion", &["dimension", "metric"]),
    field("score", &[]),
    field("raw", &["raw_score"]),
    field("order", &[]),
    field("sample", &[]),
    field("status", &[]),
    field("feedback", &["reason", "explanation", "rationale"]),
    field("metadata", &["meta"]),
];

/// The column names that are understood as `field`, besides its own; empty for an unknown
/// field. Letter case, blanks, hyphens and underscores make no difference.
#[must_use]
pub fn aliases_of(field: &str) -> &'static [&'static str] {
    let all = CASE.iter().chain(&LABEL).chain(&JUDGEMENT);
    all.into_iter().find(|spec| spec.name == field).map(|spec| spec.aliases).unwrap_or_default()
}

/// Which field a column means by its own name.
pub(crate) fn field_of(specs: &[FieldSpec], column: &str) -> Option<usize> {
    // promptfoo's `__expected` and its like are assertions, not data.
    if column.starts_with("__") {
        return None;
    }
    let means = |name: &str| letters(column).eq(letters(name));
    specs.iter().position(|spec| means(spec.name) || spec.aliases.iter().any(|alias| means(alias)))
}

/// A name without what people write differently: `Expected Output`, `expectedOutput`.
fn letters(name: &str) -> impl Iterator<Item = char> + '_ {
    name.trim().chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase())
}

/// A column that was read as a field under another name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AliasUsed {
    /// The field.
    pub field: &'static str,
    /// The column in the file.
    pub column: String,
}

/// What the rows of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// Cases, with or without labels beside them.
    Case,
    /// Labels in long form.
    Label,
    /// Judgements in long form.
    Judgement,
}

impl RowKind {
    fn specs(self) -> &'static [FieldSpec] {
        match self {
            Self::Case => &CASE,
            Self::Label => &LABEL,
            Self::Judgement => &JUDGEMENT,
        }
    }
}

/// The user's own mapping of columns to fields, as in `--map output=completion`.
///
/// A mapped field is filled from its column alone, whatever other columns are named; an empty
/// column (`group=`) leaves the field unfilled. The columns not used are metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMap(BTreeMap<String, String>);

impl FieldMap {
    /// Reads `field=column` pairs; the first `=` separates.
    ///
    /// # Errors
    /// When a pair has no `=` or no field, or a field or column stands twice.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Self, DatasetError> {
        let mut map = Self::default();
        for pair in pairs {
            let (field, column) = pair
                .split_once('=')
                .filter(|(field, _)| !field.trim().is_empty())
                .ok_or_else(|| DatasetError::MapSyntax { text: pair.to_owned() })?;
            map.set(field.trim(), column)?;
        }
        Ok(map)
    }

    /// Maps one field.
    ///
    /// # Errors
    /// When the field or the column is mapped already.
    pub fn set(&mut self, field: &str, column: &str) -> Result<(), DatasetError> {
        let twice = |name: &str| Err(DatasetError::MapTwice { name: name.to_owned() });
        if self.0.contains_key(field) {
            return twice(field);
        }
        if !column.is_empty() && self.0.values().any(|taken| taken == column) {
            return twice(column);
        }
        self.0.insert(field.to_owned(), column.to_owned());
        Ok(())
    }

    /// These mappings and those of `more`, which win where both are about one field.
    #[must_use]
    pub fn overlaid(&self, more: &Self) -> Self {
        let mut map = self.clone();
        map.0.extend(more.0.iter().map(|(field, column)| (field.clone(), column.clone())));
        map
    }

    /// Keeps a column from filling a field by its name, since it is something else. A field
    /// that is mapped by hand stays so.
    pub(crate) fn free(&mut self, column: &str) {
        if let Some(place) = field_of(&CASE, column) {
            self.0.entry(CASE[place].name.to_owned()).or_default();
        }
    }

    /// Those of a case's columns that mean no field.
    pub(crate) fn metadata_of(&self, columns: &[String]) -> Vec<String> {
        let is_metadata = |column: &&String| {
            if self.0.values().any(|mapped| mapped == *column) {
                return false;
            }
            // What is mapped by hand is filled from its own column alone.
            field_of(&CASE, column).is_none_or(|place| self.0.contains_key(CASE[place].name))
        };
        columns.iter().filter(is_metadata).cloned().collect()
    }

    /// The mapping as far as it is about fields of one kind of row, for flags that are given
    /// once for several files.
    #[must_use]
    pub fn only(&self, kind: RowKind) -> Self {
        let specs = kind.specs();
        let known = |field: &&String| specs.iter().any(|spec| spec.name == *field);
        let pairs = self.0.iter().filter(|(field, _)| known(field));
        Self(pairs.map(|(field, column)| (field.clone(), column.clone())).collect())
    }

    /// Refuses a field that none of these kinds of rows has.
    ///
    /// # Errors
    /// `MapField`, with the fields that there are.
    pub fn check(&self, kinds: &[RowKind]) -> Result<(), DatasetError> {
        let mut known: Vec<&str> = Vec::new();
        for name in kinds.iter().flat_map(|kind| kind.specs()).map(|spec| spec.name) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        match self.0.keys().find(|field| !known.contains(&field.as_str())) {
            None => Ok(()),
            Some(field) => Err(DatasetError::MapField {
                field: field.clone(),
                suggestion: crate::config::nearest(field, known.iter().copied()),
                known: known.into_iter().map(str::to_owned).collect(),
            }),
        }
    }

    /// The mapped column of each field of `specs`: `Some("")` where none is to be read.
    pub(crate) fn resolve(
        &self,
        specs: &'static [FieldSpec],
    ) -> Result<Vec<Option<String>>, DatasetError> {
        let mut columns = vec![None; specs.len()];
        for (field, column) in &self.0 {
            let place = specs.iter().position(|spec| spec.name == field).ok_or_else(|| {
                let known: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
                DatasetError::MapField {
                    field: field.clone(),
                    suggestion: crate::config::nearest(field, known.iter().copied()),
                    known: known.into_iter().map(str::to_owned).collect(),
                }
            })?;
            columns[place] = Some(column.clone());
        }
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_fields_of_one_kind_of_row() {
        for specs in [&CASE[..], &LABEL[..], &JUDGEMENT[..]] {
            for (place, spec) in specs.iter().enumerate() {
                for name in spec.aliases.iter().chain([&spec.name]) {
                    assert_eq!(field_of(specs, name), Some(place), "{name}");
                }
            }
        }
    }

    #[test]
    fn spelling_makes_no_difference_and_assertions_are_no_alias() {
        for name in ["expectedOutput", "Expected Output", "EXPECTED-OUTPUT", " expected_output "] {
            assert_eq!(field_of(&CASE, name), Some(case::EXPECTED), "{name}");
        }
        for name in ["__expected", "system", "messages", "score", "", "输出"] {
            assert_eq!(field_of(&CASE, name), None, "{name}");
        }
    }

    #[test]
    fn a_mapping_is_read_at_its_first_equals_sign_and_only_once() {
        let map = FieldMap::parse(["output=a=b", "group="]).unwrap();
        let columns = map.resolve(&CASE).unwrap();
        assert_eq!(columns[case::OUTPUT].as_deref(), Some("a=b"));
        assert_eq!(columns[case::GROUP].as_deref(), Some(""));
        assert!(matches!(FieldMap::parse(["output"]), Err(DatasetError::MapSyntax { .. })));
        assert!(matches!(FieldMap::parse(["=x"]), Err(DatasetError::MapSyntax { .. })));
        assert!(matches!(
            FieldMap::parse(["output=a", "output=b"]),
            Err(DatasetError::MapTwice { .. })
        ));
        assert!(matches!(
            FieldMap::parse(["output=a", "input=a"]),
            Err(DatasetError::MapTwice { .. })
        ));
        let error = FieldMap::parse(["ouput=a"]).unwrap().resolve(&CASE).unwrap_err();
        assert!(error.to_string().contains("did you mean `output`?"), "{error}");
    }
}
