//! Few-shot examples: cases with the answer that a good judge gives.
//!
//! An example from any split but `train` is refused: a judge that has seen the test data in
//! its prompt is not measured by it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::reply;
use super::shape::Shape;
use super::spec::error_chain;
use crate::case::Case;
use crate::config;
use crate::judge::BuildError;
use crate::rubric::Lang;

/// One judged example.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Example {
    /// What was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What is judged.
    pub output: String,
    /// A reference answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Material the output should rest on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The other output, in mode `pairwise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The split it comes from; `train` or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Why the answer is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a good judge answers: a number in `score`, a label in `choice`, `yes` or `no` in
    /// `yes_no`, `A` (the output), `B` (the baseline) or `tie` in `pairwise`, a table of
    /// criterion to number in `rubric`, a list of `yes` and `no` in `checklist`.
    pub answer: Value,
}

impl Example {
    pub(super) fn case(&self) -> Case {
        Case {
            id: String::new(),
            input: self.input.clone(),
            output: Some(self.output.clone()),
            expected: self.expected.clone(),
            context: self.context.clone(),
            baseline: self.baseline.clone(),
            metadata: Map::new(),
            ..Case::default()
        }
    }

    /// The answer as a good judge would give it in one token.
    pub(super) fn one_token(&self, shape: &Shape, lang: Lang, swapped: bool) -> String {
        let value = self.value(shape, swapped);
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match (lang, shape, reply::text::yes_no(&text)) {
            (Lang::Zh, Shape::YesNo, Some(yes)) => if yes { "是" } else { "否" }.to_owned(),
            _ => text,
        }
    }

    /// The answer as a good judge would write it, in JSON, `reasoning` first or after it.
    pub(super) fn written(&self, shape: &Shape, reasoning: bool, swapped: bool) -> String {
        let key = match shape {
            Shape::YesNo => "answer",
            Shape::Score { .. } => "score",
            Shape::Choice { .. } => "choice",
            Shape::Pairwise => "preferred",
            Shape::Checklist { .. } => "answers",
            Shape::Rubric { .. } => "criteria",
        };
        let mut object = Map::from_iter([(key.to_owned(), self.value(shape, swapped))]);
        if let Some(reason) = &self.reason {
            let name = if reasoning { "analysis" } else { "why" };
            object.insert(name.into(), reason.as_str().into());
        }
        Value::Object(object).to_string()
    }

    /// The answer in the reply's own terms; `swapped` where the baseline is shown as A.
    fn value(&self, shape: &Shape, swapped: bool) -> Value {
        let word = |value: &Value| match value {
            Value::Bool(yes) => Value::from(if *yes { "yes" } else { "no" }),
            other => other.clone(),
        };
        match (shape, &self.answer) {
            (Shape::YesNo, value) => word(value),
            (Shape::Pairwise, Value::String(side)) if swapped => match side.as_str() {
                "A" | "a" => Value::from("B"),
                "B" | "b" => Value::from("A"),
                _ => self.answer.clone(),
            },
            (Shape::Rubric { .. }, Value::Object(scores)) => scores
                .iter()
                .map(|(name, score)| (name.clone(), json!({ "score": score })))
                .collect::<Map<_, _>>()
                .into(),
            (Shape::Checklist { .. }, Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(i, item)| (format!("q{}", i + 1), json!({ "answer": word(item) })))
                .collect::<Map<_, _>>()
                .into(),
            (_, answer) => answer.clone(),
        }
    }
}

/// Examples as configuration gives them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Examples {
    /// A file: a list in JSON or YAML, JSON Lines, or TOML with a list named `examples`.
    File(String),
    /// Written out.
    List(Vec<Example>),
}

impl<'de> Deserialize<'de> for Examples {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        match Value::deserialize(deserializer)? {
            Value::String(path) => Ok(Self::File(path)),
            list @ Value::Array(_) => {
                config::from_value(list).map(Self::List).map_err(D::Error::custom)
            }
            _ => Err(D::Error::custom("expected the path of a file or a list of examples")),
        }
    }
}

impl schemars::JsonSchema for Examples {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Examples".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let list = generator.subschema_for::<Vec<Example>>();
        schemars::json_schema!({
            "description": "a file of judged examples, or a list of them",
            "anyOf": [{ "type": "string" }, list],
        })
    }
}

impl Examples {
    /// Reads and checks the examples.
    pub(super) fn read(&self, base: &Path) -> Result<Vec<Example>, BuildError> {
        let examples = match self {
            Self::List(examples) => examples.clone(),
            Self::File(name) => from_file(&base.join(name))?,
        };
        for (i, example) in examples.iter().enumerate() {
            if let Some(split) = example.split.as_deref()
                && split != "train"
            {
                return Err(BuildError::invalid(
                    format!("examples[{i}].split"),
                    format!(
                        "`{split}` must not be shown to a judge: expected examples from `train` only"
                    ),
                ));
            }
        }
        Ok(examples)
    }
}

fn from_file(path: &Path) -> Result<Vec<Example>, BuildError> {
    let invalid = |reason: String| BuildError::invalid("examples", reason);
    let lines = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("jsonl"));
    let value = if lines {
        crate::inputs::note(path);
        let text = std::fs::read_to_string(path).map_err(|source| BuildError::File {
            field: "examples".into(),
            path: path.to_owned(),
            source,
        })?;
        let rows = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        rows.map(|(i, line)| {
            config::json(line)
                .map_err(|e| invalid(format!("`{}` line {}: {e}", path.display(), i + 1)))
        })
        .collect::<Result<Vec<_>, _>>()?
        .into()
    } else {
        match config::read_value(path).map_err(|e| invalid(error_chain(&e)))? {
            Value::Object(mut map) if map.len() == 1 && map.contains_key("examples") => {
                map.remove("examples").unwrap_or_default()
            }
            other => other,
        }
    };
    config::from_value(value).map_err(|p| invalid(format!("`{}`: {p}", path.display())))
}
