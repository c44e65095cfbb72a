//! Configuration files: TOML first, YAML and JSON by extension.
//!
//! Every file is read into one value and from there into its type, so that all formats have
//! the same messages: the place in the file, what was expected, and for an unknown key the
//! one that was likely meant.

mod place;
mod problems;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::place::Position;
pub use self::problems::{Problems, from_value_all};

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file can't be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The extension is none that is understood.
    #[error("`{path}` has an unknown extension: expected .toml, .yaml, .yml or .json")]
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// The text is not in its format.
    #[error("`{path}` is not valid {format}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// TOML, YAML or JSON.
        format: &'static str,
        /// The parser's own words, with line and column.
        message: String,
    },
    /// The text is well-formed, and keys or values in it are not right.
    #[error("{}", problems.of_file(path))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and what: all that could be found.
        problems: Problems,
    },
}

/// A key or value that is not right, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", place(.at), near(.suggestion))]
pub struct Problem {
    /// The path to it, such as `judge[1].rubric`; empty for the whole.
    pub at: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// What was likely meant.
    pub suggestion: Option<String>,
    /// Where in the file, when that is known.
    pub position: Option<Position>,
}

impl ConfigError {
    /// What is wrong with a file that was read from this text, with lines and columns.
    pub(crate) fn invalid(file: &File, problems: impl Into<Problems>) -> Self {
        let extension = file.path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let problems = problems.into().located(&file.text, extension);
        Self::Invalid { path: file.path.clone(), problems }
    }
}

/// A configuration file as it was read.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) value: Value,
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("`{at}`: ") }
}

fn near(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

impl Problem {
    /// A problem at a place.
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self { at: at.into(), message: message.into(), suggestion: None, position: None }
    }

    /// A word that is none of the known ones, with the nearest of them.
    pub fn unknown(at: impl Into<String>, what: &str, word: &str, known: &[&str]) -> Self {
        let suggestion = nearest(word, known.iter().copied());
        let list = known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
        Self {
            at: at.into(),
            message: format!("unknown {what} `{word}`: expected one of {list}"),
            suggestion,
            position: None,
        }
    }

    /// The same problem, further down a path.
    #[must_use]
    pub fn inside(mut self, prefix: &str) -> Self {
        self.at = match (prefix, self.at.as_str()) {
            ("", _) => self.at,
            (_, "") => prefix.to_owned(),
            (_, at) if at.starts_with('[') => format!("{prefix}{at}"),
            (_, at) => format!("{prefix}.{at}"),
        };
        self
    }
}

/// The known word that `word` most likely stands for, if any is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (candidate.to_lowercase(), candidate))
        .map(|(name, candidate)| {
            let edits = strsim::osa_distance(&lower, &name);
            // Letters that changed places are a slip more often than one left out.
            let longer = name.chars().count().abs_diff(lower.chars().count());
            (edits, longer, strsim::jaro_winkler(&lower, &name), candidate)
        })
        .filter(|(_, _, similarity, _)| *similarity >= 0.8)
        .min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)))
        .map(|(_, _, _, candidate)| candidate.to_owned())
}

/// Reads a configuration file into a value, by its extension.
///
/// # Errors
/// When it can't be read, or is not in its format.
pub fn read_value(path: &Path) -> Result<Value, ConfigError> {
    read_file(path).map(|file| file.value)
}

/// As [`read_value`], with the text, so that problems found later have a line.
pub(crate) fn read_file(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let syntax = |format, message: String| ConfigError::Syntax {
        path: path.to_owned(),
        format,
        message: message.trim().to_owned(),
    };
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let value = match extension.to_ascii_lowercase().as_str() {
        "toml" => toml::from_str(&text).map_err(|e| syntax("TOML", e.to_string())),
        "yaml" | "yml" => serde_saphyr::from_str(&text).map_err(|e| syntax("YAML", e.to_string())),
        "json" => serde_json::from_str(&text).map_err(|e| syntax("JSON", e.to_string())),
        _ => Err(ConfigError::Extension { path: path.to_owned() }),
    }?;
    Ok(File { path: path.to_owned(), text, value })
}

/// Turns a value into a type, with the path to what is wrong and a near miss for an unknown
/// key or variant.
///
/// # Errors
/// When a key is unknown or missing, or a value has the wrong type.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { path };
        let message = error.into_inner().to_string();
        let suggestion = suggestion_in(&message);
        // serde_path_to_error names an unknown key as the last part of the path.
        Problem { at, message, suggestion, position: None }
    })
}

/// The near miss for serde's "unknown field `x`, expected one of `a`, `b`".
fn suggestion_in(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let word = quoted.next()?;
    nearest(word, quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Outer {
        judges: Vec<Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Inner {
        rubric: String,
        #[serde(default)]
        model: String,
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_a_near_miss() {
        let value = serde_json::json!({"judges": [{"rubric": "a"}, {"rubrc": "b"}]});
        let problem = from_value::<Outer>(value).unwrap_err();
        assert_eq!(problem.at, "judges[1].rubrc");
        assert_eq!(problem.suggestion.as_deref(), Some("rubric"));
        assert!(problem.to_string().contains("did you mean `rubric`?"), "{problem}");
    }

    #[test]
    fn nothing_is_suggested_for_a_word_that_is_near_none() {
        assert_eq!(nearest("zzz", ["rubric", "model"]), None);
        assert_eq!(nearest("rulle", ["rule", "llm"]).as_deref(), Some("rule"));
        assert_eq!(nearest("modle", ["mode", "model"]).as_deref(), Some("model"));
    }
}
