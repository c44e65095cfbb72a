//! Rows out: JSON Lines, a JSON list, CSV or TSV, plain or gzip, as the extension says.
//!
//! A file appears only when it is whole: rows go to a temporary file beside it, which takes
//! its name in [`Writer::finish`]. Cells are written as they are, so that what is written can
//! be read again; only [`Writer::spreadsheet`] changes those that a spreadsheet would run.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::error::DatasetError;
use super::format::Format;
use super::json_rows::Object;
use super::sink::Sink;

/// The columns of cases, in order.
pub const CASE_COLUMNS: [&str; 10] = [
    "id", "input", "output", "expected", "context", "baseline", "group", "split", "source",
    "metadata",
];

enum Stream {
    Plain(BufWriter<Sink>),
    Gzip(Box<GzEncoder<BufWriter<Sink>>>),
}

impl Stream {
    fn end(self) -> io::Result<Sink> {
        let buffered = match self {
            Self::Plain(stream) => stream,
            Self::Gzip(stream) => stream.finish()?,
        };
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Gzip(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Gzip(stream) => stream.flush(),
        }
    }
}

enum Layout {
    Lines(Stream),
    List(Stream),
    Table(Box<csv::Writer<Stream>>),
}

fn table(stream: Stream, delimiter: u8) -> Layout {
    let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(stream);
    Layout::Table(Box::new(writer))
}

/// Writes rows, each of them any [`Serialize`] value with named fields.
///
/// JSON keeps values as they are; NaN and infinities are `null`. In CSV and TSV the columns
/// are the first row's fields in their order, or those of [`Writer::columns`]; null, NaN and
/// absent fields are empty cells; lists and objects are compact JSON. Dropping the writer
/// before [`Writer::finish`] leaves nothing behind.
pub struct Writer {
    name: String,
    layout: Layout,
    columns: Vec<String>,
    header: bool,
    rows: u64,
    spreadsheet: bool,
}

/// What a cell of text begins with that a spreadsheet takes for a formula: the list of OWASP
/// (CSV injection), full-width forms included.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

impl Writer {
    /// Writes to `path` in the format that its extension says; `-` is standard output, in
    /// JSON Lines.
    ///
    /// # Errors
    /// When the extension is unknown or the folder can't be written to.
    pub fn create(path: &Path) -> Result<Self, DatasetError> {
        if path.as_os_str() == "-" {
            return Ok(Self::stdout(Format::JsonLines));
        }
        let name = path.display().to_string();
        let Some((format, gzip)) = Format::from_path(path) else {
            return Err(DatasetError::Extension { path: name });
        };
        let target = Sink::create(path)
            .map_err(|source| DatasetError::Write { path: name.clone(), source })?;
        Ok(Self::new(name, target, format, gzip))
    }

    /// Writes to standard output.
    #[must_use]
    pub fn stdout(format: Format) -> Self {
        Self::new("-".into(), Sink::Stdout(io::stdout()), format, false)
    }

    fn new(name: String, target: Sink, format: Format, gzip: bool) -> Self {
        let buffered = BufWriter::with_capacity(64 * 1024, target);
        let stream = if gzip {
            Stream::Gzip(Box::new(GzEncoder::new(buffered, Compression::default())))
        } else {
            Stream::Plain(buffered)
        };
        let layout = match format {
            Format::JsonLines => Layout::Lines(stream),
            Format::Json => Layout::List(stream),
            Format::Csv => table(stream, b','),
            Format::SemicolonCsv => table(stream, b';'),
            Format::Tsv => table(stream, b'\t'),
        };
        Self { name, layout, columns: Vec::new(), header: false, rows: 0, spreadsheet: false }
    }

    /// Whether a row is cells (CSV, TSV), which have no lists or objects inside.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.layout, Layout::Table(_))
    }

    /// Names the columns of CSV and TSV before the first row: needed where the first row may
    /// lack a field that a later one has, and for a header where there are no rows.
    #[must_use]
    pub fn columns<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.columns = columns.into_iter().map(str::to_owned).collect();
        self
    }

    /// Makes CSV and TSV such that a spreadsheet opens them as they are meant: a byte order
    /// mark says that they are UTF-8; text that would be run as a formula gets an apostrophe
    /// before it, and stays changed when it is read again; a list of texts becomes one line
    /// each. Numbers are numbers, negative ones too.
    #[must_use]
    pub fn spreadsheet(mut self) -> Self {
        self.spreadsheet = true;
        self
    }

    /// Takes the columns of CSV and TSV from a row without writing it, where none are named
    /// yet: a header also where no row follows. Nothing in JSON.
    ///
    /// # Errors
    /// When the row has no named fields.
    pub fn header<T: Serialize + ?Sized>(&mut self, row: &T) -> Result<(), DatasetError> {
        if !self.is_table() || !self.columns.is_empty() {
            return Ok(());
        }
        let failed = |message| DatasetError::Unserialisable {
            path: self.name.clone(),
            row: self.rows,
            message,
        };
        let text = serde_json::to_string(row).map_err(|error| failed(error.to_string()))?;
        let Object(fields) = Object::parse(&text).map_err(|error| failed(error.to_string()))?;
        self.columns = fields.iter().map(|(name, _)| name.to_string()).collect();
        Ok(())
    }

    /// Writes one row.
    ///
    /// # Errors
    /// When the row has no named fields, has one that the CSV header has not, or can't be
    /// written.
    pub fn write<T: Serialize + ?Sized>(&mut self, row: &T) -> Result<(), DatasetError> {
        self.rows += 1;
        // Through JSON text, since serde_json's own map does not keep the fields' order.
        let text = serde_json::to_string(row).map_err(|error| DatasetError::Unserialisable {
            path: self.name.clone(),
            row: self.rows,
            message: error.to_string(),
        })?;
        if !text.starts_with('{') {
            return Err(DatasetError::NotARecord { path: self.name.clone(), row: self.rows });
        }
        let first = self.rows == 1;
        let written = match &mut self.layout {
            Layout::Lines(stream) => {
                stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n"))
            }
            Layout::List(stream) => stream
                .write_all(if first { b"[\n" } else { b",\n" })
                .and_then(|()| stream.write_all(text.as_bytes())),
            Layout::Table(_) => return self.write_cells(&text),
        };
        written.map_err(|source| self.failed(source))
    }

    fn write_cells(&mut self, text: &str) -> Result<(), DatasetError> {
        let unserialisable = |message| DatasetError::Unserialisable {
            path: self.name.clone(),
            row: self.rows,
            message,
        };
        let Object(fields) = Object::parse(text).map_err(|e| unserialisable(e.to_string()))?;
        if self.columns.is_empty() {
            self.columns = fields.iter().map(|(name, _)| name.to_string()).collect();
        }
        let mut cells = vec![String::new(); self.columns.len()];
        for (name, raw) in fields {
            let Some(column) = self.columns.iter().position(|column| *column == name) else {
                return Err(DatasetError::ExtraField {
                    path: self.name.clone(),
                    row: self.rows,
                    field: name.into_owned(),
                });
            };
            cells[column] = if raw.starts_with('"') {
                let text = serde_json::from_str(raw).map_err(|e| unserialisable(e.to_string()))?;
                if self.spreadsheet { unrun(text) } else { text }
            } else if let Some(lines) =
                serde_json::from_str::<Vec<String>>(raw).ok().filter(|_| self.spreadsheet)
            {
                unrun(lines.join("\n"))
            } else if raw == "null" {
                String::new()
            } else {
                raw.to_owned()
            };
        }
        self.write_header()?;
        self.record(&cells)
    }

    fn write_header(&mut self) -> Result<(), DatasetError> {
        if self.header || self.columns.is_empty() {
            return Ok(());
        }
        self.header = true;
        let mut columns = self.columns.clone();
        if self.spreadsheet {
            columns = columns.into_iter().map(unrun).collect();
            columns[0].insert(0, '\u{feff}');
        }
        self.record(&columns)
    }

    fn record(&mut self, cells: &[String]) -> Result<(), DatasetError> {
        let Layout::Table(writer) = &mut self.layout else { return Ok(()) };
        writer.write_record(cells).map_err(|error| self.failed(error.into()))
    }

    /// Hands on what is buffered, so that a reader of standard output sees it. A file stays
    /// out of sight until [`Writer::finish`].
    ///
    /// # Errors
    /// When it can't be written.
    pub fn flush(&mut self) -> Result<(), DatasetError> {
        let flushed = match &mut self.layout {
            Layout::Lines(stream) | Layout::List(stream) => stream.flush(),
            Layout::Table(writer) => writer.flush(),
        };
        flushed.map_err(|source| self.failed(source))
    }

    /// Ends the file and puts it in place; the number of rows written.
    ///
    /// # Errors
    /// When it can't be written. What stood in its place before is then still there.
    pub fn finish(mut self) -> Result<u64, DatasetError> {
        self.write_header()?;
        let rows = self.rows;
        let name = self.name;
        let failed = |source| DatasetError::Write { path: name.clone(), source };
        let stream = match self.layout {
            Layout::Lines(stream) => stream,
            Layout::List(mut stream) => {
                let end: &[u8] = if rows == 0 { b"[]\n" } else { b"\n]\n" };
                stream.write_all(end).map_err(failed)?;
                stream
            }
            Layout::Table(writer) => writer
                .into_inner()
                .map_err(|error| failed(io::Error::from(error.error().kind())))?,
        };
        stream.end().and_then(Sink::finish).map_err(failed)?;
        Ok(rows)
    }

    fn failed(&self, source: io::Error) -> DatasetError {
        DatasetError::Write { path: self.name.clone(), source }
    }
}

/// Text that a spreadsheet shows and does not run.
fn unrun(text: String) -> String {
    if text.starts_with(FORMULA) { format!("'{text}") } else { text }
}
