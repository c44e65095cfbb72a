//! Rows of a recording: CSV, TSV, JSON Lines or a JSON list, plain or gzip, streamed.
//!
//! Only what a recording needs: fields by name, with the line they stand on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value};

use crate::config;
use crate::dataset::json_rows::JsonRows;

/// Bytes of one row at most.
const LONGEST_ROW: usize = 64 * 1024 * 1024;

/// Why a row can't be read: the line (the header is line 1) and the reason.
#[derive(Debug)]
pub(super) struct RowError {
    pub(super) line: Option<u64>,
    pub(super) reason: String,
}

impl RowError {
    pub(super) fn at(line: u64, reason: impl Into<String>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }

    fn whole(reason: impl Into<String>) -> Self {
        Self { line: None, reason: reason.into() }
    }
}

/// One row. In CSV every value is a text and an empty field is absent.
pub(super) struct Row<'a> {
    pub(super) line: u64,
    /// True where numbers are written as texts.
    pub(super) is_csv: bool,
    fields: Fields<'a>,
}

enum Fields<'a> {
    Csv { header: &'a csv::StringRecord, record: &'a csv::StringRecord },
    Json(Map<String, Value>),
}

impl Row<'_> {
    /// A field; `None` where it is absent, empty or null.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        match &self.fields {
            Fields::Csv { header, record } => {
                let at = header.iter().position(|column| column == name)?;
                let text = record.get(at)?;
                (!text.is_empty()).then(|| Value::from(text))
            }
            Fields::Json(map) => map.get(name).filter(|value| !value.is_null()).cloned(),
        }
    }

    /// The names of its columns.
    pub(super) fn columns(&self) -> Vec<String> {
        match &self.fields {
            Fields::Csv { header, .. } => header.iter().map(str::to_owned).collect(),
            Fields::Json(map) => map.keys().cloned().collect(),
        }
    }

    /// A field that names something: a text, or a whole number in JSON.
    pub(super) fn name(&self, name: &str) -> Result<Option<String>, RowError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Number(number)) if !number.is_f64() => Ok(Some(number.to_string())),
            Some(other) => {
                Err(RowError::at(self.line, format!("`{name}` is not a text: found {other}")))
            }
        }
    }

    /// A field that is a finite number; a NaN counts as absent.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, RowError> {
        let wrong = |found: &Value| {
            RowError::at(self.line, format!("`{name}` is not a number: found {found}"))
        };
        match self.get(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(value @ Value::String(_)) if self.is_csv => {
                let text = value.as_str().unwrap_or_default().trim();
                let number: f64 = text.parse().map_err(|_| wrong(&value))?;
                if number.is_infinite() {
                    return Err(wrong(&value));
                }
                Ok((!number.is_nan()).then_some(number))
            }
            Some(other) => Err(wrong(&other)),
        }
    }

    /// A field that is a whole number, 0 or more.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, RowError> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        if number < 0.0 || number.fract() != 0.0 || number > 9e15 {
            let reason = format!("`{name}` is not a whole number of 0 or more: found {number}");
            return Err(RowError::at(self.line, reason));
        }
        Ok(Some(number as u64))
    }

    /// A field that is JSON: itself in JSON Lines, a text that holds JSON in CSV.
    pub(super) fn json(&self, name: &str) -> Result<Option<Value>, RowError> {
        match self.get(name) {
            Some(Value::String(text)) if self.is_csv => config::json(&text)
                .map(Some)
                .map_err(|error| RowError::at(self.line, format!("`{name}` is not JSON: {error}"))),
            other => Ok(other),
        }
    }
}

/// Calls `each` with every row of a file.
pub(super) fn read(
    path: &Path,
    mut each: impl FnMut(&Row<'_>) -> Result<(), RowError>,
) -> Result<(), RowError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let reader = open(path).map_err(|error| RowError::whole(error.to_string()))?;
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("csv") => read_csv(reader, b',', &mut each),
        Some("tsv") => read_csv(reader, b'\t', &mut each),
        Some("jsonl" | "ndjson") => read_json(JsonRows::lines(reader, LONGEST_ROW), &mut each),
        Some("json") => read_json(JsonRows::list(reader, LONGEST_ROW), &mut each),
        _ => Err(RowError::whole(
            "expected a name that ends in .csv, .tsv, .jsonl, .ndjson or .json, plain or with .gz",
        )),
    }
}

/// The file's text, unpacked where it begins as gzip does, without a byte order mark.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut raw = BufReader::new(File::open(path)?);
    let packed = raw.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let mut text: Box<dyn BufRead> =
        if packed { Box::new(BufReader::new(MultiGzDecoder::new(raw))) } else { Box::new(raw) };
    if text.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
        text.consume(3);
    }
    Ok(text)
}

fn read_csv(
    reader: impl Read,
    delimiter: u8,
    each: &mut impl FnMut(&Row<'_>) -> Result<(), RowError>,
) -> Result<(), RowError> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).from_reader(LineCounter::new(reader));
    let at = |error: &csv::Error| RowError {
        line: error.position().map(csv::Position::line),
        reason: error.to_string(),
    };
    let header = reader.headers().map_err(|error| at(&error))?.clone();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| at(&error))? {
        let end = reader.position().byte();
        let inside: usize = record.iter().map(|field| field.matches('\n').count()).sum();
        let line = reader.get_mut().line_ending_at(end).saturating_sub(inside as u64);
        let fields = Fields::Csv { header: &header, record: &record };
        each(&Row { line, is_csv: true, fields })?;
    }
    Ok(())
}

/// Knows on which line a record ends. The csv crate gives the place where it began to look
/// for a record, which is before any blank lines.
struct LineCounter<R> {
    inner: R,
    read: u64,
    /// Where line ends stand that were read and not yet counted.
    ends: VecDeque<u64>,
    counted: u64,
}

impl<R: Read> LineCounter<R> {
    fn new(inner: R) -> Self {
        Self { inner, read: 0, ends: VecDeque::new(), counted: 0 }
    }

    /// The line of the last byte before the terminator of a record that ends at `byte`.
    fn line_ending_at(&mut self, byte: u64) -> u64 {
        while self.ends.front().is_some_and(|end| end + 1 < byte) {
            self.ends.pop_front();
            self.counted += 1;
        }
        self.counted + 1
    }
}

impl<R: Read> Read for LineCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let ends = buffer[..count].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        self.ends.extend(ends.map(|(i, _)| self.read + i as u64));
        self.read += count as u64;
        Ok(count)
    }
}

fn read_json(
    mut rows: JsonRows<impl BufRead>,
    each: &mut impl FnMut(&Row<'_>) -> Result<(), RowError>,
) -> Result<(), RowError> {
    while let Some((line, cut)) = rows.advance() {
        let at = |reason: String| RowError::at(line, reason);
        let text = cut.and_then(|()| rows.text()).map_err(|problem| at(problem.to_string()))?;
        let value =
            config::json(text).map_err(|message| at(format!("not a JSON object: {message}")))?;
        let Value::Object(map) = value else {
            return Err(at(format!("not a JSON object: found {value}")));
        };
        each(&Row { line, is_csv: false, fields: Fields::Json(map) })?;
    }
    Ok(())
}
