//! Configuration files: TOML first, YAML and JSON by extension.
//!
//! Every file is read into one value and from there into its type, so that all formats have
//! the same messages: the place in the file, what was expected, and for an unknown key the
//! one that was likely meant.

mod place;
mod problems;
pub(crate) mod secret;
mod strict;
pub(crate) mod words;

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use self::strict::Strict;

/// Weights lie between these or are 0: they are relative, and beyond the range sums would
/// lose digits, overflow or vanish.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

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
    crate::inputs::note(path);
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let syntax = |format, message: String| ConfigError::Syntax {
        path: path.to_owned(),
        format,
        message: message.trim().to_owned(),
    };
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let value = match extension.to_ascii_lowercase().as_str() {
        "toml" => toml::from_str(&text)
            .map(|Strict(value)| value)
            .map_err(|e| syntax("TOML", e.to_string())),
        "yaml" | "yml" => serde_saphyr::from_str(&text)
            .map(|Strict(value)| value)
            .map_err(|e| syntax("YAML", e.to_string())),
        "json" => json(&text).map_err(|message| syntax("JSON", message)),
        _ => Err(ConfigError::Extension { path: path.to_owned() }),
    }?;
    Ok(File { path: path.to_owned(), text, value })
}

/// Reads JSON in which every key of an object stands once.
///
/// # Errors
/// What is wrong, with line and column.
pub fn json(text: &str) -> Result<Value, String> {
    // Editors of some systems begin every file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map(|Strict(value)| value).map_err(|e| words::plain(&e.to_string()))
}

/// Reads JSON, in which every key stands once, into a type.
///
/// # Errors
/// As [`json`] and [`from_value`].
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    from_value(json(text).map_err(|message| Problem::new("", format!("not JSON: {message}")))?)
}

/// Whether a number can be a weight, 0 included where `zero` says so.
///
/// # Errors
/// What was expected.
pub fn check_weight(weight: f64, zero: bool) -> Result<(), String> {
    if WEIGHTS.contains(&weight) || (zero && weight == 0.0) {
        return Ok(());
    }
    let (least, most) = WEIGHTS.into_inner();
    let zero = if zero { "0, or one" } else { "a number above 0," };
    Err(format!(
        "`{weight}` is no weight: expected {zero} from {least} to {most}; weights are relative"
    ))
}

/// Turns a value into a type, with the path to what is wrong and a near miss for an unknown
/// key or variant.
///
/// # Errors
/// When a key is unknown or missing, or a value has the wrong type.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    let given = value.clone();
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { path };
        let message = error.inner().to_string();
        let suggestion = suggestion_in(&message);
        // serde_path_to_error names an unknown key as the last part of the path.
        let problem = Problem { at, message: words::plain(&message), suggestion, position: None };
        match culprit::<T>(&given, error.path(), &message) {
            Some(key) => Problem { at: key, ..problem.clone() }.inside(&problem.at),
            None => problem,
        }
    })
}

/// The key that is to blame where the path ends at a table: what says by a key of its own
/// which kind it is (`kind`, `rule`) is read as a whole, and its parts lose their place. It is
/// the one without which the message is another.
fn culprit<T: DeserializeOwned>(
    given: &Value,
    path: &serde_path_to_error::Path,
    message: &str,
) -> Option<String> {
    /// Tables of more keys are data, not configuration.
    const MOST_KEYS: usize = 64;
    /// Without these every message is another.
    const TAGS: [&str; 3] = ["kind", "rule", "mode"];
    if message.starts_with("unknown ") || message.starts_with("missing ") {
        return None;
    }
    let mut pointer = String::new();
    for part in path {
        let part = match part {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.replace('~', "~0").replace('/', "~1"),
            Segment::Enum { .. } | Segment::Unknown => return None,
        };
        pointer = format!("{pointer}/{part}");
    }
    let table = given.pointer(&pointer)?.as_object().filter(|table| table.len() <= MOST_KEYS)?;
    let is_to_blame = |key: &&String| {
        let mut rest = given.clone();
        if let Some(Value::Object(table)) = rest.pointer_mut(&pointer) {
            table.remove(*key);
        }
        serde_path_to_error::deserialize::<_, T>(rest)
            .map_or_else(|error| error.inner().to_string() != message, |_| true)
    };
    let own = table.keys().filter(|key| !TAGS.contains(&key.as_str())).find(is_to_blame);
    own.or_else(|| table.keys().find(is_to_blame)).cloned()
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

    #[derive(Debug, serde::Deserialize)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its errors are looked at")]
    enum Tagged {
        One { size: f64, name: Option<String> },
    }

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Holder {
        parts: Vec<Tagged>,
    }

    #[test]
    fn a_key_of_a_table_that_names_its_kind_is_found_all_the_same() {
        let at = |part: Value| {
            let given = serde_json::json!({"parts": [{"kind": "one", "size": 1}, part]});
            from_value::<Holder>(given).unwrap_err().at
        };
        let json = |size: Value, name: Value| serde_json::json!({"kind": "one", "size": size, "name": name, "a/b~": 1});
        assert_eq!(at(json("big".into(), "x".into())), "parts[1].size");
        assert_eq!(at(json(1.into(), Value::Array(Vec::new()))), "parts[1].name");
        assert_eq!(at(serde_json::json!({"kind": 5, "size": 1})), "parts[1].kind");
        assert_eq!(at(serde_json::json!({"kind": "one"})), "parts[1]");
        assert_eq!(at(serde_json::json!("x")), "parts[1]");
    }

    #[test]
    fn nothing_is_suggested_for_a_word_that_is_near_none() {
        assert_eq!(nearest("zzz", ["rubric", "model"]), None);
        assert_eq!(nearest("rulle", ["rule", "llm"]).as_deref(), Some("rule"));
        assert_eq!(nearest("modle", ["mode", "model"]).as_deref(), Some("model"));
    }
}
