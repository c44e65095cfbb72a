//! A JSON document and what it is.
//!
//! Python writes `NaN` and `Infinity` where JSON has no word; they are no values and become
//! `null`. Errors name the line and the way to the field.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Tool;
use super::error::ImportError;
use crate::dataset::Source;

/// Enough of an unknown file's keys to tell it by.
const KEYS_SHOWN: usize = 8;

/// The text of a file.
pub(super) struct Document {
    name: String,
    text: String,
}

impl Document {
    /// Reads a file, gzip or not.
    pub(super) fn read(path: &Path) -> Result<Self, ImportError> {
        let source = Source::open(path)?;
        let mut bytes = Vec::new();
        let input = source.bytes(None)?;
        let mut reader = input.reader;
        reader.read_to_end(&mut bytes).map_err(|error| source.read_error(error))?;
        let name = path.display().to_string();
        let text = String::from_utf8(bytes).map_err(|error| ImportError::Json {
            path: name.clone(),
            line: 1,
            message: format!(
                "broken UTF-8 at byte {}: save the file as UTF-8",
                error.utf8_error().valid_up_to() + 1
            ),
        })?;
        let text = match finite(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(changed) => changed,
        };
        Ok(Self { name, text })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The document as what a tool writes.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ImportError> {
        parse(&self.text, &self.name, 0)
    }
}

/// Parses JSON; `before` are the lines of the file in front of it.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    text: &'a str,
    name: &str,
    before: u64,
) -> Result<T, ImportError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let said = |error: &serde_json::Error| {
        let mut message = error.to_string();
        if let Some(end) = message.rfind(" at line ") {
            message.truncate(end);
        }
        (before + error.line().max(1) as u64, message)
    };
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = error.path().to_string();
        let (line, message) = said(error.inner());
        let path = name.to_owned();
        match error.inner().classify() {
            serde_json::error::Category::Data => {
                let field = if field == "." { "the whole".to_owned() } else { field };
                ImportError::Field { path, line, field, message }
            }
            _ => ImportError::Json { path, line, message },
        }
    })?;
    deserializer.end().map_err(|error| {
        let (line, message) = said(&error);
        ImportError::Json { path: name.to_owned(), line, message }
    })?;
    Ok(parsed)
}

/// JSON with `null` for what Python writes and JSON has not.
pub(super) fn finite(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut changed = String::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped, mut kept) = (false, false, 0);
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let byte = bytes[i];
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else if byte == b'"' {
            in_string = true;
        } else if let Some(word) =
            ["NaN", "-Infinity", "Infinity"].into_iter().find(|own| text[i..].starts_with(own))
        {
            changed.push_str(&text[kept..i]);
            changed.push_str("null");
            i += word.len();
            kept = i;
            continue;
        }
        // Words are looked for at the start of characters alone.
        i += 1;
        while !text.is_char_boundary(i) {
            i += 1;
        }
    }
    changed.push_str(&text[kept..]);
    Cow::Owned(changed)
}

/// Refuses what is packed: Inspect's own format compresses with Zstandard, which would bring a
/// C library into every build for what one command of the tool does.
pub(super) fn refuse_archive(path: &Path) -> Result<(), ImportError> {
    let is = |wanted: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(wanted));
    if is("eval") {
        return Err(ImportError::PackedLog { path: path.display().to_string() });
    }
    if is("db") {
        return Err(ImportError::Unknown {
            path: path.display().to_string(),
            found: "a database (of DeepEval, run it with `DEEPEVAL_LOCAL_STORE=json`)".to_owned(),
        });
    }
    Ok(())
}

/// Tells the tool by what the file begins with or holds.
pub(super) fn recognise(path: &Path) -> Result<Tool, ImportError> {
    let name = path.display().to_string();
    let unknown = |found: String| Err(ImportError::Unknown { path: name.clone(), found });
    let lines = crate::dataset::Format::from_path(path);
    match lines {
        Some((crate::dataset::Format::Csv | crate::dataset::Format::Tsv, _)) => {
            return unknown("a table, and no column of it is named".to_owned());
        }
        Some((crate::dataset::Format::JsonLines, _)) => {
            let Some((text, line)) = super::lm_eval::first_line(path)? else {
                return Err(ImportError::Empty { path: name });
            };
            let keys: BTreeMap<String, IgnoredAny> = parse(&text, &name, line - 1)?;
            if ["doc_id", "doc", "resps"].iter().all(|key| keys.contains_key(*key)) {
                return Ok(Tool::LmEval);
            }
            return unknown(format!("its rows have the fields {}", listed(keys.keys())));
        }
        _ => {}
    }
    let document = Document::read(path)?;
    let text = document.text.trim_start_matches('\u{feff}').trim_ascii_start();
    if text.starts_with('[') {
        let rows: Vec<Value> = document.parse()?;
        return match rows.first() {
            None => Err(ImportError::Empty { path: name }),
            Some(Value::Object(row)) if row.contains_key("preference") => Ok(Tool::AlpacaEval),
            Some(Value::Object(row)) => {
                unknown(format!("a list of rows with the fields {}", listed(row.keys())))
            }
            Some(_) => unknown("a list of something else than rows".to_owned()),
        };
    }
    let keys: BTreeMap<String, IgnoredAny> = document.parse()?;
    let has = |key: &str| keys.contains_key(key);
    if has("eval") && has("version") {
        Ok(Tool::Inspect)
    } else if has("testCases") || has("conversationalTestCases") || has("testRunData") {
        Ok(Tool::Deepeval)
    } else if has("results") && (has("evalId") || has("config")) {
        Ok(Tool::Promptfoo)
    } else {
        unknown(format!("its fields are {}", listed(keys.keys())))
    }
}

fn listed<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
    match keys.len() {
        0 => "none".to_owned(),
        n if n > KEYS_SHOWN => format!("{} and more", keys[..KEYS_SHOWN].join(", ")),
        _ => keys.join(", "),
    }
}

/// A value as text: text itself, anything else as JSON, `null` as nothing. Chat messages become
/// `role: content` blocks and lists of texts one line each.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => {
            let raw = other.to_string();
            Some(crate::dataset::json_text(&raw).unwrap_or(raw))
        }
    }
}

/// A finite number, or true and false as 1 and 0.
pub(super) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(own) => Some(f64::from(u8::from(*own))),
        other => other.as_f64().filter(|own| own.is_finite()),
    }
}
