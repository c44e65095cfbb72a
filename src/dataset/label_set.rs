//! All labels of a source at once, as calibration needs them.
//!
//! The scale that a criterion's numbers are on is declared or inferred, and said. One rater's
//! two different labels for the same thing are refused, never averaged.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::duplicates::hash_of;
use super::error::{DatasetError, shorten};
use super::fields::AliasUsed;
use super::label_scale::{LabelScale, Observed, Scales};
use super::labels::{Label, LabelOptions, LabelReader};
use super::reader::{ReadOptions, Reader, Skipped};
use super::source::Source;

/// All labels of a source, with the scale of each criterion.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LabelSet {
    /// The labels, in the order of the file.
    pub labels: Vec<Label>,
    /// The scale of each criterion, declared or inferred.
    pub scales: BTreeMap<String, LabelScale>,
    /// Rows whose label is empty.
    pub empty: u64,
    /// Labels that repeat an earlier one with the same value; they count once.
    pub repeated: u64,
    /// Rows left out.
    pub skipped: Skipped,
    /// Columns read as fields of another name.
    pub aliases: Vec<AliasUsed>,
}

/// Reads labels in long form.
///
/// # Errors
/// As [`LabelReader`]; also when one rater labels one case and criterion twice and
/// differently, or a criterion mixes numbers and words.
pub fn read_labels(source: &Source, options: &LabelOptions) -> Result<LabelSet, DatasetError> {
    let mut reader = LabelReader::open(source, options)?;
    let mut collector = Collector::new(source.name());
    while let Some(label) = reader.next() {
        collector.add(reader.line(), label?)?;
    }
    let mut set = collector.finish(&options.scales);
    set.empty = reader.empty();
    set.skipped = reader.skipped().clone();
    set.aliases = reader.aliases();
    Ok(set)
}

/// Reads the labels that stand in the rows of the cases; a row without one is a case not yet
/// labelled, counted as `empty`.
///
/// # Errors
/// As [`Reader`] and [`read_labels`].
pub fn read_inline_labels(
    source: &Source,
    options: &ReadOptions,
) -> Result<LabelSet, DatasetError> {
    let mut reader = Reader::open(source, options)?;
    let mut collector = Collector::new(source.name());
    let mut empty = 0;
    while let Some(row) = reader.next_row() {
        let row = row?;
        empty += u64::from(row.labels.is_empty());
        for label in row.labels {
            collector.add(row.line, label)?;
        }
    }
    let mut set = collector.finish(&options.scales);
    set.empty = empty;
    set.skipped = reader.skipped().clone();
    set.aliases = reader.aliases();
    Ok(set)
}

struct Collector<'a> {
    path: &'a str,
    labels: Vec<Label>,
    lines: Vec<u64>,
    /// Hash of case, rater and criterion to the label's place. A key that is taken by another
    /// label moves on by one, so that equal hashes cost a step and never a wrong answer.
    places: HashMap<u64, usize>,
    observed: BTreeMap<String, Observed>,
    repeated: u64,
}

impl<'a> Collector<'a> {
    fn new(path: &'a str) -> Self {
        Self {
            path,
            labels: Vec::new(),
            lines: Vec::new(),
            places: HashMap::new(),
            observed: BTreeMap::new(),
            repeated: 0,
        }
    }

    fn add(&mut self, line: u64, label: Label) -> Result<(), DatasetError> {
        let mut key = hash_of(&[&label.case, &label.rater, &label.criterion]);
        while let Some(&place) = self.places.get(&key) {
            let held = &self.labels[place];
            let same = held.case == label.case
                && held.rater == label.rater
                && held.criterion == label.criterion;
            if same && held.value == label.value && held.label_source == label.label_source {
                self.repeated += 1;
                return Ok(());
            }
            if same {
                return Err(DatasetError::DuplicateLabel {
                    path: self.path.to_owned(),
                    case: label.case,
                    rater: label.rater,
                    criterion: label.criterion,
                    first: self.lines[place],
                    second: line,
                });
            }
            key = key.wrapping_add(1);
        }
        self.places.insert(key, self.labels.len());
        if !self.observed.contains_key(&label.criterion) {
            self.observed.insert(label.criterion.clone(), Observed::default());
        }
        if let Some(observed) = self.observed.get_mut(&label.criterion) {
            observed.add(line, &label.value);
            if let Some((number, (line, word))) = observed.mixed() {
                return Err(DatasetError::MixedLabels {
                    path: self.path.to_owned(),
                    criterion: label.criterion,
                    number,
                    word: shorten(&word),
                    line,
                });
            }
        }
        self.labels.push(label);
        self.lines.push(line);
        Ok(())
    }

    fn finish(self, declared: &Scales) -> LabelSet {
        let scales = self
            .observed
            .into_iter()
            .map(|(criterion, observed)| {
                let scale = observed.scale(declared.get(&criterion));
                (criterion, scale)
            })
            .collect();
        LabelSet { labels: self.labels, scales, repeated: self.repeated, ..LabelSet::default() }
    }
}
