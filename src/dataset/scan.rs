//! The first pass over a data set, before anything is paid.
//!
//! Reads every row that a run would read, and keeps counts and hashes, never rows.

use std::collections::BTreeMap;

use serde::Serialize;

use super::duplicates::{Place, Seen, hash_of};
use super::error::DatasetError;
use super::fields::AliasUsed;
use super::reader::{CaseRow, OnBadRow, ReadOptions, Reader, Skipped};
use super::row_numbers::RowNumbers;
use super::source::{Digest, Source};

/// What a data set holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scan {
    /// The file as the user named it.
    pub path: String,
    /// Cases that a run would read: of the split asked for, up to the limit. 0 is no error
    /// here.
    pub count: u64,
    /// BLAKE3 of the whole file's decompressed bytes, in hexadecimal: a CSV file and the same
    /// one in gzip have one hash. Neither split nor limit changes it.
    pub data_hash: String,
    /// Decompressed bytes of the whole file.
    pub bytes: u64,
    /// Bytes of text in the cases: what a price can be estimated from.
    pub text_bytes: u64,
    /// The columns, in the order met.
    pub columns: Vec<String>,
    /// Columns read as fields of another name.
    pub aliases: Vec<AliasUsed>,
    /// Columns that mean no field and are metadata, in the order met.
    pub metadata_columns: Vec<String>,
    /// How many cases have each optional field.
    pub fields: BTreeMap<&'static str, u64>,
    /// Cases whose id is a content hash, because their row names none.
    pub generated_ids: u64,
    /// Cases of each split, those not asked for included.
    pub splits: BTreeMap<String, u64>,
    /// Cases that have a label in their row.
    pub labelled: u64,
    /// Labels of each criterion in the rows of the cases.
    pub labels: BTreeMap<String, u64>,
    /// Rows left out.
    pub skipped: Skipped,
    /// Which row each case is.
    #[serde(skip)]
    pub rows: RowNumbers,
}

/// Checks a whole data set: every row can be used (or is skipped and counted, as the options
/// say), and no two cases have one id.
///
/// # Errors
/// As [`Reader`]; also when an id stands twice, or no case has the split asked for.
pub fn scan(source: &Source, options: &ReadOptions) -> Result<Scan, DatasetError> {
    let digest = Digest::default();
    let mut reader = Reader::open_with(source, options, Some(&digest))?;
    let mut scan = Scan {
        path: source.name().to_owned(),
        count: 0,
        data_hash: String::new(),
        bytes: 0,
        text_bytes: 0,
        columns: Vec::new(),
        aliases: Vec::new(),
        metadata_columns: Vec::new(),
        fields: BTreeMap::new(),
        generated_ids: 0,
        splits: BTreeMap::new(),
        labelled: 0,
        labels: BTreeMap::new(),
        skipped: Skipped::default(),
        rows: RowNumbers::default(),
    };
    let mut seen = Seen::default();
    while let Some(row) = reader.next_row() {
        let row = row?;
        let place = Place { number: row.number, line: row.line };
        let held = seen.add(hash_of(&[&row.case.id]), place, |held| {
            id_at(source, options, held).map(|id| id.as_ref() == Some(&row.case.id))
        })?;
        if let Some(held) = held {
            return Err(duplicate(source, &row, held));
        }
        scan.count_case(&row);
    }
    reader.drain().map_err(|error| source.read_error(error))?;
    (scan.data_hash, scan.bytes) = digest.value();
    scan.columns = reader.columns().to_vec();
    scan.aliases = reader.aliases();
    scan.metadata_columns = options.map.metadata_of(&scan.columns);
    scan.splits = reader.splits().clone();
    scan.skipped = reader.skipped().clone();
    match &options.split {
        Some(split) if scan.count == 0 && !scan.columns.is_empty() && options.limit != Some(0) => {
            Err(DatasetError::UnknownSplit {
                path: scan.path,
                split: split.clone(),
                suggestion: crate::config::nearest(split, scan.splits.keys().map(String::as_str)),
                present: scan.splits.into_keys().collect(),
            })
        }
        _ => Ok(scan),
    }
}

impl Scan {
    fn count_case(&mut self, row: &CaseRow) {
        let case = &row.case;
        self.rows.add(self.count, row.number);
        self.count += 1;
        self.text_bytes += case.text_bytes() as u64;
        self.generated_ids += u64::from(row.generated_id);
        self.labelled += u64::from(!row.labels.is_empty());
        for label in &row.labels {
            match self.labels.get_mut(&label.criterion) {
                Some(count) => *count += 1,
                None => {
                    self.labels.insert(label.criterion.clone(), 1);
                }
            }
        }
        for (field, present) in [
            ("input", case.input.is_some()),
            ("output", case.output.is_some()),
            ("expected", case.expected.is_some()),
            ("context", case.context.is_some()),
            ("baseline", case.baseline.is_some()),
            ("group", case.group.is_some()),
            ("split", case.split.is_some()),
            ("source", case.source.is_some()),
            ("metadata", !case.metadata.is_empty()),
        ] {
            *self.fields.entry(field).or_default() += u64::from(present);
        }
    }
}

/// The id of the case at a place, read again from the file.
fn id_at(
    source: &Source,
    options: &ReadOptions,
    place: Place,
) -> Result<Option<String>, DatasetError> {
    let options = ReadOptions { on_bad_row: OnBadRow::Skip, limit: None, ..options.clone() };
    let mut reader = Reader::open(source, &options)?;
    while let Some(row) = reader.next_row() {
        let row = row?;
        if row.number >= place.number {
            return Ok((row.number == place.number).then_some(row.case.id));
        }
    }
    Ok(None)
}

fn duplicate(source: &Source, row: &CaseRow, held: Place) -> DatasetError {
    let path = source.name().to_owned();
    let (first, second) = (held.line, row.line);
    if row.generated_id {
        DatasetError::IdenticalRows { path, first, second }
    } else {
        DatasetError::DuplicateId { path, id: row.case.id.clone(), first, second }
    }
}
