//! One cell of a row, and how it becomes text, a number or metadata.
//!
//! A CSV cell is text; a JSON value is kept as it is written until it is asked for. Nothing
//! is trimmed or normalised: numbers become the digits that were written.

use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{RowProblem, shorten};
use super::json_rows::{Object, kind};

/// A cell, borrowed from its row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    /// CSV.
    Text(&'a str),
    /// JSON text of a value.
    Json(&'a str),
}

impl<'a> Cell<'a> {
    /// Whether the cell says nothing: JSON null, or empty text.
    pub(crate) fn is_empty(self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Json(raw) => matches!(raw, "null" | "\"\""),
        }
    }

    /// Whether the cell is JSON null.
    pub(crate) fn is_null(self) -> bool {
        matches!(self, Self::Json("null"))
    }

    /// Whether two cells hold the same value.
    pub(crate) fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Json(a), Self::Json(b)) => {
                a == b
                    || matches!(
                        (serde_json::from_str::<Value>(a), serde_json::from_str::<Value>(b)),
                        (Ok(a), Ok(b)) if a == b
                    )
            }
            _ => false,
        }
    }

    /// The cell as a text field holds it. Strings are themselves; numbers and booleans are
    /// their JSON text; a list of chat messages becomes `role: content` blocks; a list of
    /// strings one line each, where `join` says so; other lists and objects are compact JSON
    /// with keys in the order written. `None` for JSON null.
    pub(crate) fn text(self, join: bool) -> Result<Option<String>, RowProblem> {
        let raw = match self {
            Self::Text(text) => return Ok(Some(text.to_owned())),
            Self::Json(raw) => raw,
        };
        match raw.as_bytes().first() {
            Some(b'n') => Ok(None),
            Some(b'"') => string(raw).map(Some),
            Some(b'[') => list(raw, join).map(Some),
            Some(b'{') => Ok(Some(compact(raw))),
            _ => Ok(Some(raw.to_owned())),
        }
    }

    /// The cell as a name: an id, a group, a split, a source, a rater. Empty is `None`; lists
    /// and objects are refused.
    pub(crate) fn name(self) -> Result<Option<String>, RowProblem> {
        match self {
            _ if self.is_empty() => Ok(None),
            Self::Json(raw) if raw.starts_with(['[', '{']) => {
                Err(RowProblem::WrongType { expected: "text or a number", found: kind(raw) })
            }
            _ => self.text(false),
        }
    }

    /// The cell as a finite number, also where it is written as text. Empty is `None`.
    pub(crate) fn number(self, expected: &'static str) -> Result<Option<f64>, RowProblem> {
        if self.is_empty() {
            return Ok(None);
        }
        if let Self::Json(raw) = self
            && raw.starts_with(['[', '{', 't', 'f'])
        {
            return Err(RowProblem::WrongType { expected, found: kind(raw) });
        }
        let text = self.text(false)?.unwrap_or_default();
        parse_number(&text)
            .map(Some)
            .ok_or_else(|| RowProblem::NotANumber { text: shorten(&text), expected })
    }

    /// The cell as a JSON value: text where it comes from CSV.
    pub(crate) fn value(self) -> Result<Value, RowProblem> {
        match self {
            Self::Text(text) => Ok(Value::String(text.to_owned())),
            Self::Json(raw) => {
                crate::config::json(raw).map_err(|message| RowProblem::Json { message })
            }
        }
    }

    /// The keys and values of an object, also where CSV holds it as JSON text; `None` for
    /// anything else. CSV text that begins as an object and is none is an error.
    pub(crate) fn object(self) -> Result<Option<Object<'a>>, RowProblem> {
        let (Self::Text(text) | Self::Json(text)) = self;
        let text = text.trim_ascii();
        if text.starts_with('{') { Object::parse(text).map(Some) } else { Ok(None) }
    }
}

/// A JSON value as the text of a case: as [`Cell::text`] has it, lists of texts one line each.
/// `None` for null, and for text that is no JSON.
pub(crate) fn json_text(raw: &str) -> Option<String> {
    Cell::Json(raw).text(true).ok().flatten()
}

/// A finite number, written in decimal; not `inf` or `nan`.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let decimal = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse().ok().filter(|number: &f64| decimal && number.is_finite())
}

fn string(raw: &str) -> Result<String, RowProblem> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Ok(inner.to_owned());
    }
    serde_json::from_str(raw).map_err(|e| RowProblem::Json { message: e.to_string() })
}

fn list(raw: &str, join: bool) -> Result<String, RowProblem> {
    let items: Vec<&RawValue> =
        serde_json::from_str(raw).map_err(|e| RowProblem::Json { message: e.to_string() })?;
    let items: Vec<&str> = items.into_iter().map(RawValue::get).collect();
    if let Some(text) = chat(&items)? {
        return Ok(text);
    }
    if join && items.iter().all(|item| item.starts_with('"')) {
        return Ok(items.into_iter().map(string).collect::<Result<Vec<_>, _>>()?.join("\n"));
    }
    Ok(compact(raw))
}

/// Chat messages as blocks with an empty line between them; `None` unless every item has a
/// `role` and a `content`.
fn chat(items: &[&str]) -> Result<Option<String>, RowProblem> {
    let mut blocks = Vec::with_capacity(items.len());
    for item in items {
        if !item.starts_with('{') {
            return Ok(None);
        }
        let Object(entries) = Object::parse(item)?;
        let find = |name: &str| entries.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw);
        let (Some(role), Some(content)) = (find("role"), find("content")) else {
            return Ok(None);
        };
        if !role.starts_with('"') {
            return Ok(None);
        }
        let mut block = format!("{}: {}", string(role)?, content_text(content)?);
        // Tool calls and the like are part of what was said.
        for (key, raw) in &entries {
            if !matches!(key.as_ref(), "role" | "content") && *raw != "null" {
                block.push_str(&format!("\n{key}: {}", content_text(raw)?));
            }
        }
        blocks.push(block);
    }
    Ok(if blocks.is_empty() { None } else { Some(blocks.join("\n\n")) })
}

/// A message's content: text, or a list of parts of which the text ones are read.
fn content_text(raw: &str) -> Result<String, RowProblem> {
    match raw.as_bytes().first() {
        Some(b'"') => string(raw),
        Some(b'n') => Ok(String::new()),
        Some(b'[') => {
            let parts: Vec<&RawValue> = serde_json::from_str(raw)
                .map_err(|e| RowProblem::Json { message: e.to_string() })?;
            let parts: Result<Vec<String>, RowProblem> =
                parts.into_iter().map(|part| part_text(part.get())).collect();
            Ok(parts?.join("\n"))
        }
        _ => Ok(compact(raw)),
    }
}

fn part_text(raw: &str) -> Result<String, RowProblem> {
    if raw.starts_with('"') {
        return string(raw);
    }
    if raw.starts_with('{') {
        let Object(entries) = Object::parse(raw)?;
        let text = entries.iter().find(|(key, raw)| key == "text" && raw.starts_with('"'));
        let known = |key: &str| matches!(key, "type" | "text");
        if let Some((_, text)) = text
            && entries.iter().all(|(key, _)| known(key))
        {
            return string(text);
        }
    }
    Ok(compact(raw))
}

/// JSON text without the white space between its tokens.
fn compact(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in raw.chars() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if c == '"' {
            in_string = true;
        } else if c.is_ascii_whitespace() {
            continue;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(raw: &str) -> Option<String> {
        Cell::Json(raw).text(true).unwrap()
    }

    #[test]
    fn json_values_become_the_text_that_was_written() {
        assert_eq!(text("null"), None);
        assert_eq!(text(r#""""#).as_deref(), Some(""));
        assert_eq!(text(r#""a\n\"\u00e9 \\""#).as_deref(), Some("a\n\"\u{e9} \\"));
        assert_eq!(text("1.10").as_deref(), Some("1.10"));
        assert_eq!(text("123456789012345678901234567890").unwrap().len(), 30);
        assert_eq!(text("true").as_deref(), Some("true"));
        assert_eq!(
            text(r#"{"b": [1, 2], "a": "x y"}"#).as_deref(),
            Some(r#"{"b":[1,2],"a":"x y"}"#)
        );
        assert!(Cell::Json(r#""\ud83d""#).text(true).is_err(), "half a surrogate pair is no text");
    }

    #[test]
    fn lists_of_strings_are_joined_only_where_asked() {
        assert_eq!(text(r#"["a", "b\nc"]"#).as_deref(), Some("a\nb\nc"));
        assert_eq!(
            Cell::Json(r#"["a", "b"]"#).text(false).unwrap().as_deref(),
            Some(r#"["a","b"]"#)
        );
        assert_eq!(text(r#"["a", 1]"#).as_deref(), Some(r#"["a",1]"#));
    }

    #[test]
    fn chat_messages_become_readable_blocks_and_lose_nothing() {
        let raw = r#"[{"role":"system","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"你好"},{"type":"image_url","image_url":{"url":"x"}}]},
            {"role":"assistant","content":null,"tool_calls":[{"name":"f"}]}]"#;
        assert_eq!(
            text(raw).unwrap(),
            "system: Be brief.\n\nuser: 你好\n{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}\n\n\
             assistant: \ntool_calls: {\"name\":\"f\"}"
        );
        assert_eq!(text(r#"[{"role":"user"}]"#).as_deref(), Some(r#"[{"role":"user"}]"#));
        assert_eq!(text("[]").as_deref(), Some(""), "no lines at all");
        assert_eq!(Cell::Json("[]").text(false).unwrap().as_deref(), Some("[]"));
    }

    #[test]
    fn only_finite_decimal_numbers_are_numbers() {
        for (written, number) in [("1", 1.0), (" 0.5 ", 0.5), ("-3", -3.0), ("1e-3", 0.001)] {
            assert_eq!(parse_number(written), Some(number), "{written}");
        }
        for written in ["", "nan", "NaN", "inf", "infinity", "1e999", "1,5", "0x1", "--1", "e"] {
            assert_eq!(parse_number(written), None, "{written}");
        }
        assert!(Cell::Json("true").number("a number").is_err());
        assert_eq!(Cell::Json("\"4\"").number("a number").unwrap(), Some(4.0));
    }
}
