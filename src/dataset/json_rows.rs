//! JSON rows: one object a line, or one list of objects read element by element.
//!
//! Rows are cut out of the stream before they are parsed, so that a row with a fault in it
//! costs only itself. Values stay as they are written until a field asks for them: a number
//! with thirty digits stays one.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read};

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::RowProblem;

/// A stream of JSON rows; one is held at a time.
pub(crate) struct JsonRows<R> {
    input: R,
    layout: Layout,
    max_row_bytes: usize,
    /// Lines taken from the input so far (in a list: line ends passed).
    lines: u64,
    row: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Lines,
    /// Before the opening bracket.
    ListStart,
    /// Behind the opening bracket.
    ListFirst,
    /// Behind an element.
    ListNext,
    Ended,
}

impl<R: BufRead> JsonRows<R> {
    pub(crate) fn lines(input: R, max_row_bytes: usize) -> Self {
        Self { input, layout: Layout::Lines, max_row_bytes, lines: 0, row: Vec::new() }
    }

    pub(crate) fn list(input: R, max_row_bytes: usize) -> Self {
        Self { input, layout: Layout::ListStart, max_row_bytes, lines: 0, row: Vec::new() }
    }

    /// Cuts out the next row: the line it begins on, and whether that worked. `None` at the
    /// end.
    pub(crate) fn advance(&mut self) -> Option<(u64, Result<(), RowProblem>)> {
        self.row.clear();
        if self.layout == Layout::Lines {
            return self.next_line();
        }
        match self.next_element() {
            Ok(Some(line)) => Some((line, Ok(()))),
            Ok(None) => None,
            Err(problem) => {
                self.layout = Layout::Ended;
                Some((self.lines + 1, Err(problem)))
            }
        }
    }

    /// The row that [`JsonRows::advance`] cut out, as text.
    pub(crate) fn text(&self) -> Result<&str, RowProblem> {
        std::str::from_utf8(&self.row)
            .map_err(|error| RowProblem::NotUtf8 { byte: error.valid_up_to() + 1 })
    }

    /// Reads what is left, for the sake of a digest.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        io::copy(&mut self.input, &mut io::sink()).map(|_| ())
    }

    fn next_line(&mut self) -> Option<(u64, Result<(), RowProblem>)> {
        loop {
            self.row.clear();
            let room = self.max_row_bytes as u64 + 1;
            match self.input.by_ref().take(room).read_until(b'\n', &mut self.row) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some((self.lines + 1, Err(RowProblem::Io(error)))),
            }
            self.lines += 1;
            if self.row.len() > self.max_row_bytes {
                let problem = RowProblem::TooLong { limit: self.max_row_bytes };
                return Some((self.lines, Err(problem)));
            }
            if !self.row.trim_ascii().is_empty() {
                return Some((self.lines, Ok(())));
            }
        }
    }

    /// The line of the next element of the list, its text in `row`.
    fn next_element(&mut self) -> Result<Option<u64>, RowProblem> {
        let bad = |message| Err(RowProblem::ListSyntax { message });
        match (self.layout, self.skip_space()?) {
            (Layout::Ended, _) | (Layout::ListStart, None) => return Ok(None),
            (Layout::ListStart, Some(b'[')) => {
                self.take_byte();
                self.layout = Layout::ListFirst;
                return self.next_element();
            }
            (Layout::ListStart, _) => return bad("expected `[` at the beginning"),
            (_, None) => return bad("the file ends before `]`"),
            (Layout::ListFirst | Layout::ListNext, Some(b']')) => {
                self.take_byte();
                self.layout = Layout::Ended;
                return match self.skip_space()? {
                    None => Ok(None),
                    Some(_) => bad("something follows the closing `]`"),
                };
            }
            (Layout::ListNext, Some(b',')) => {
                self.take_byte();
                match self.skip_space()? {
                    None => return bad("the file ends before `]`"),
                    Some(b']' | b',') => return bad("expected a value after `,`"),
                    Some(_) => {}
                }
            }
            (Layout::ListNext, _) => return bad("expected `,` or `]` after an element"),
            (_, Some(b',')) => return bad("expected a value before `,`"),
            (_, Some(_)) => {}
        }
        self.layout = Layout::ListNext;
        let line = self.lines + 1;
        self.take_value()?;
        Ok(Some(line))
    }

    /// Passes white space; the byte behind it, not yet taken.
    fn skip_space(&mut self) -> Result<Option<u8>, RowProblem> {
        loop {
            let chunk = self.input.fill_buf().map_err(RowProblem::Io)?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let space = chunk.iter().take_while(|b| b.is_ascii_whitespace()).count();
            let found = chunk.get(space).copied();
            self.lines += chunk[..space].iter().filter(|&&b| b == b'\n').count() as u64;
            self.input.consume(space);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Takes the byte that [`JsonRows::skip_space`] showed.
    fn take_byte(&mut self) {
        self.input.consume(1);
    }

    /// Moves one value to `row` by counting its brackets outside strings.
    fn take_value(&mut self) -> Result<(), RowProblem> {
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let chunk = self.input.fill_buf().map_err(RowProblem::Io)?;
            if chunk.is_empty() {
                let message = "the file ends inside an element";
                return Err(RowProblem::ListSyntax { message });
            }
            let mut taken = 0;
            let mut done = false;
            for &byte in chunk {
                if in_string {
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => in_string = false,
                        _ => {}
                    }
                } else {
                    match byte {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        // The bracket of the list itself, or the comma behind a scalar.
                        b'}' | b']' | b',' if depth == 0 => {
                            done = true;
                            break;
                        }
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                }
                taken += 1;
                if depth == 0 && !in_string && matches!(byte, b'}' | b']') {
                    done = true;
                    break;
                }
            }
            self.row.extend_from_slice(&chunk[..taken]);
            self.lines += chunk[..taken].iter().filter(|&&b| b == b'\n').count() as u64;
            self.input.consume(taken);
            if self.row.len() > self.max_row_bytes {
                return Err(RowProblem::TooLong { limit: self.max_row_bytes });
            }
            if done {
                return Ok(());
            }
        }
    }
}

/// An object's keys and the text of their values, in the order written.
#[derive(Default)]
pub(crate) struct Object<'a>(pub(crate) Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    /// Parses a row.
    pub(crate) fn parse(text: &'a str) -> Result<Self, RowProblem> {
        let trimmed = text.trim_ascii();
        if !trimmed.starts_with('{') {
            // A scalar or a list is no row; text that is no JSON at all is said to be that.
            serde_json::from_str::<de::IgnoredAny>(trimmed).map_err(|e| syntax(&e, trimmed))?;
            return Err(RowProblem::NotAnObject { found: kind(trimmed) });
        }
        serde_json::from_str(trimmed).map_err(|error| syntax(&error, trimmed))
    }
}

/// The parser's words without its line, which is the row's own, and with the cure for the
/// words that Python writes.
fn syntax(error: &serde_json::Error, text: &str) -> RowProblem {
    let mut message = error.to_string();
    if let Some(end) = message.rfind(" at line ") {
        message.truncate(end);
    }
    if error.line() <= 1 {
        message.push_str(&format!(" at column {}", error.column()));
        let rest = text.as_bytes().get(error.column().saturating_sub(2)..).unwrap_or_default();
        for word in ["NaN", "Infinity"] {
            if rest.windows(word.len()).take(3).any(|window| window == word.as_bytes()) {
                message.push_str(&format!(": `{word}` is not JSON, write `null`"));
            }
        }
    }
    RowProblem::Json { message }
}

/// What a value is, by its first character.
pub(crate) fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    entries.push((key, value.get()));
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A key, borrowed where it holds no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
