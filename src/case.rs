//! The case: one thing to judge.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing to judge: what was asked, what came back, and what is known beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique in its data set; a content hash where the data names none.
    pub id: String,
    /// What was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What is judged. `None` where a data set of recorded verdicts holds no text; the empty
    /// text is an output like any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// A reference answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Material the output should rest on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Another output for the same input, for pairwise judging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Cases of one group (a task, a conversation) are never split apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The part of the data this case belongs to, such as `train` or `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Which system wrote the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Everything else that the data holds.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Case {
    /// A case with an input and an output, and its content hash as id.
    #[must_use]
    pub fn new(input: impl Into<String>, output: impl Into<String>) -> Self {
        let mut case =
            Self { input: Some(input.into()), output: Some(output.into()), ..Self::default() };
        case.id = case.content_id();
        case
    }

    /// A case as people and programs send it: JSON, whose `id` may be left out or empty and is
    /// then the content hash.
    ///
    /// # Errors
    /// When a key is unknown, or a value has the wrong type: the path to it and what was
    /// expected.
    pub fn from_value(mut value: Value) -> Result<Self, crate::config::Problem> {
        let Some(object) = value.as_object_mut() else {
            return Err(crate::config::Problem::new("", "expected a JSON object with `output`"));
        };
        object.entry("id").or_insert_with(|| Value::String(String::new()));
        let mut case: Self = crate::config::from_value(value)?;
        if case.id.is_empty() {
            case.id = case.content_id();
        }
        Ok(case)
    }

    /// A hash of all that is judged (not of the id, group, split or source): 16 hexadecimal
    /// digits. The same content has the same id in every run and on every machine.
    #[must_use]
    pub fn content_id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for field in [&self.input, &self.output, &self.expected, &self.context, &self.baseline] {
            // Length and presence go in too, so that text can't move between fields unseen.
            match field {
                Some(text) => {
                    hasher.update(&[1]).update(&(text.len() as u64).to_le_bytes());
                    hasher.update(text.as_bytes());
                }
                None => {
                    hasher.update(&[0]);
                }
            }
        }
        if !self.metadata.is_empty() {
            let metadata = Value::Object(self.metadata.clone());
            hasher.update(crate::canonical::canonical_json(&metadata).as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    /// Whether its id is its content hash, which says nothing to a person: the data named none.
    #[must_use]
    pub fn has_content_id(&self) -> bool {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        self.id.len() == 16 && self.id.bytes().all(digit) && self.id == self.content_id()
    }

    /// Its texts by the names of their fields, in the order in which people read them;
    /// metadata left out.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, &Option<String>); 8] {
        [
            ("input", &self.input),
            ("output", &self.output),
            ("expected", &self.expected),
            ("context", &self.context),
            ("baseline", &self.baseline),
            ("group", &self.group),
            ("split", &self.split),
            ("source", &self.source),
        ]
    }

    /// Bytes of text in the case: what decides whether judging it is worth a thread.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        [&self.input, &self.output, &self.expected, &self.context, &self.baseline]
            .into_iter()
            .flatten()
            .map(String::len)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_id_tells_fields_apart() {
        let a = Case::new("ab", "c");
        let b = Case::new("a", "bc");
        assert_ne!(a.id, b.id);
        assert_eq!(a.id, Case::new("ab", "c").id);
        let empty = Case { output: Some(String::new()), ..Case::default() };
        assert_ne!(empty.content_id(), Case::default().content_id());
    }

    #[test]
    fn an_id_that_looks_like_a_hash_is_one_of_its_own_content_alone() {
        let case = Case::new("a", "b");
        assert!(case.has_content_id());
        assert!(!Case { id: "0123456789abcdef".into(), ..case.clone() }.has_content_id());
        assert!(!Case { id: "c1".into(), ..case }.has_content_id());
    }
}
