//! Behaviour of the data set readers and writers, from bytes to cases and back.

use std::io::Write as _;

use super::*;
use crate::case::Case;

mod judgements;
mod labels;
mod reader;
mod recorded;
mod scan;
mod tools;
mod writer;

/// A source of the given text, its format told by its first bytes.
fn source(text: impl AsRef<[u8]>) -> Source {
    Source::spool(text.as_ref(), "data").unwrap()
}

fn options() -> ReadOptions {
    ReadOptions::default()
}

/// Options that ask for no output.
fn bare() -> ReadOptions {
    ReadOptions { require_output: false, ..options() }
}

fn skip() -> ReadOptions {
    ReadOptions { on_bad_row: OnBadRow::Skip, ..options() }
}

fn mapped(pairs: &[&str]) -> ReadOptions {
    ReadOptions { map: FieldMap::parse(pairs.iter().copied()).unwrap(), ..options() }
}

fn read_with(source: &Source, options: &ReadOptions) -> Result<Vec<Case>, DatasetError> {
    Reader::open(source, options)?.map(|row| row.map_err(DatasetError::from)).collect()
}

fn read(text: impl AsRef<[u8]>) -> Vec<Case> {
    read_with(&source(text), &options()).unwrap()
}

/// The message of the first error, with the messages of its causes.
fn error_of(text: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    read_with(&source(text), options).unwrap_err().to_string()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The outputs of the cases.
fn outputs(cases: &[Case]) -> Vec<&str> {
    cases.iter().map(|case| case.output.as_deref().unwrap()).collect()
}
