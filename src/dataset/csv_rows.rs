//! CSV and TSV records, with the line each begins on.
//!
//! Quoting is that of RFC 4180 (Shafranovich 2005): a quoted cell may hold delimiters, line
//! ends and doubled quotes; a quote inside an unquoted cell is text. Done here and not by the
//! csv crate, which takes a quote that is never closed for one row to the end of the file,
//! joins text behind a closing quote to the cell, and counts a row's line from before the
//! blank ones; on well-formed files the two agree, which a test checks.

use std::io::{BufRead, Read};

use super::error::RowProblem;

/// A stream of CSV records; one is held at a time.
pub(crate) struct CsvRows<R> {
    input: R,
    delimiter: u8,
    max_row_bytes: usize,
    /// Lines taken from the input so far.
    lines: u64,
    /// The physical line or lines of the record.
    raw: Vec<u8>,
    /// The cells' bytes, quotes taken off, one after the other.
    bytes: Vec<u8>,
    /// Where each cell ends in `bytes`.
    ends: Vec<usize>,
    /// `bytes` as text, once it is known to be UTF-8.
    text: String,
}

impl<R: BufRead> CsvRows<R> {
    pub(crate) fn new(input: R, delimiter: u8, max_row_bytes: usize) -> Self {
        Self {
            input,
            delimiter,
            max_row_bytes,
            lines: 0,
            raw: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            text: String::new(),
        }
    }

    /// Reads the next record that is not a blank line: the line it begins on, and whether it
    /// can be used. `None` at the end.
    pub(crate) fn advance(&mut self) -> Option<(u64, Result<(), RowProblem>)> {
        self.raw.clear();
        self.bytes.clear();
        self.ends.clear();
        loop {
            match self.read_line() {
                Ok(0) => return None,
                Ok(_) if matches!(self.raw.as_slice(), b"\n" | b"\r\n" | b"\r") => self.raw.clear(),
                Ok(_) => break,
                Err(problem) => return Some((self.lines, Err(problem))),
            }
        }
        let line = self.lines;
        Some((line, self.split().and_then(|()| self.decode())))
    }

    /// The cells of the record that [`CsvRows::advance`] read.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let cell = &self.text[start..end];
            start = end;
            cell
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Reads what is left, for the sake of a digest.
    pub(crate) fn drain(&mut self) -> std::io::Result<()> {
        std::io::copy(&mut self.input, &mut std::io::sink()).map(|_| ())
    }

    /// Appends one physical line to `raw`.
    fn read_line(&mut self) -> Result<usize, RowProblem> {
        let room = (self.max_row_bytes + 1).saturating_sub(self.raw.len()) as u64;
        let n = self
            .input
            .by_ref()
            .take(room)
            .read_until(b'\n', &mut self.raw)
            .map_err(RowProblem::Io)?;
        if self.raw.len() > self.max_row_bytes {
            return Err(RowProblem::TooLong { limit: self.max_row_bytes });
        }
        self.lines += u64::from(n > 0);
        Ok(n)
    }

    /// Splits `raw` into cells, reading on where a quoted cell goes over a line end. The
    /// record is read to its end also when it is faulty, so that the next one is intact.
    fn split(&mut self) -> Result<(), RowProblem> {
        let mut fault = None;
        let mut at = 0;
        loop {
            if self.raw.get(at) == Some(&b'"') {
                at = self.quoted(at + 1)?;
            }
            let rest = &self.raw[at..];
            let length =
                rest.iter().position(|&b| b == self.delimiter || b == b'\n').unwrap_or(rest.len());
            let last = rest.get(length) != Some(&self.delimiter);
            let mut cell = &rest[..length];
            if last {
                cell = cell.strip_suffix(b"\r").unwrap_or(cell);
            }
            let number = self.ends.len() + 1;
            let was_quoted = at > 0 && self.raw[at - 1] == b'"';
            if was_quoted && !cell.is_empty() {
                fault.get_or_insert(RowProblem::TextAfterQuote { cell: number });
            } else if cell.contains(&b'\r') {
                fault.get_or_insert(RowProblem::CarriageReturn { cell: number });
            }
            self.bytes.extend_from_slice(cell);
            self.ends.push(self.bytes.len());
            if last {
                return fault.map_or(Ok(()), Err);
            }
            at += length + 1;
        }
    }

    /// Takes a quoted cell whose text begins at `at`; the place behind its closing quote.
    fn quoted(&mut self, mut at: usize) -> Result<usize, RowProblem> {
        loop {
            let rest = &self.raw[at..];
            match rest.iter().position(|&b| b == b'"') {
                Some(length) if rest.get(length + 1) == Some(&b'"') => {
                    self.bytes.extend_from_slice(&rest[..=length]);
                    at += length + 2;
                }
                Some(length) => {
                    self.bytes.extend_from_slice(&rest[..length]);
                    return Ok(at + length + 1);
                }
                None => {
                    self.bytes.extend_from_slice(rest);
                    at = self.raw.len();
                    if self.read_line()? == 0 {
                        return Err(RowProblem::UnclosedQuote);
                    }
                }
            }
        }
    }

    fn decode(&mut self) -> Result<(), RowProblem> {
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|error| RowProblem::NotUtf8 { byte: error.valid_up_to() + 1 })?;
        // Two halves of a character in neighbouring cells are valid only when put together.
        if let Some(end) = self.ends.iter().find(|&&end| !text.is_char_boundary(end)) {
            return Err(RowProblem::NotUtf8 { byte: end + 1 });
        }
        self.text.clear();
        self.text.push_str(text);
        Ok(())
    }
}
