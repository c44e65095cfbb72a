//! Recorded judgements in long form: what judges have said already.
//!
//! A judgement without a score is a failed measurement and stays one: its status is the
//! file's, or where the file has none `unparseable` beside
//! something raw, else `abstained`. It is never read as 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cell::{Cell, parse_number};
use super::duplicates::{Place, Seen, hash_of};
use super::error::{DatasetError, Fault, RowError, RowProblem, shorten};
use super::fields::{AliasUsed, JUDGEMENT, judgement as at};
use super::labels::{Label, LabelOptions, required_name};
use super::reader::{OnBadRow, Skipped};
use super::source::Source;
use super::table::{Row, Table};
use crate::score::{Scale, Score, ScoreError};
use crate::verdict::{Status, StatusCounts};

/// How a judge of two outputs was shown them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The output, then the baseline.
    Ab,
    /// The baseline, then the output.
    Ba,
    /// Each alone, in a request of its own.
    Pointwise,
}

impl Order {
    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ab => "ab",
            Self::Ba => "ba",
            Self::Pointwise => "pointwise",
        }
    }
}

/// What one judge said about one case and criterion.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The case's id.
    pub case: String,
    /// The judge.
    pub judge: String,
    /// What it is about; `overall` where the data does not say.
    pub criterion: String,
    /// What became of the measurement.
    pub status: Status,
    /// The score on the judge's own scale; present exactly when the status is `ok`.
    pub score: Option<f64>,
    /// What the judge wrote, as recorded.
    pub raw: Option<Value>,
    /// For a judge of two outputs, how it was shown them.
    pub order: Option<Order>,
    /// Which of the judge's samples, from 0.
    pub sample: u32,
    /// What the judge found.
    pub feedback: Option<String>,
    /// Everything else in the row.
    pub metadata: Map<String, Value>,
}

impl Judgement {
    /// The score between 0 and 1, given the judge's scale; `None` for a failed measurement.
    ///
    /// # Errors
    /// When the recorded score is not on the scale. A score between levels is allowed, since
    /// recorded scores are often means of samples.
    pub fn score_on(&self, scale: &Scale) -> Result<Option<Score>, ScoreError> {
        self.score.map(|score| scale.position(score)).transpose()
    }
}

/// Reads judgements in long form (`case, judge, criterion, score, raw, order, sample,
/// status`), one at a time.
pub struct JudgementReader {
    table: Table,
    on_bad_row: OnBadRow,
    skipped: Skipped,
    place: Place,
    done: bool,
}

impl JudgementReader {
    /// Opens a source; declared scales in the options are not used.
    ///
    /// # Errors
    /// When it can't be read, its CSV header has no column for the case, the judge or the
    /// score, or a mapping does not fit.
    pub fn open(source: &Source, options: &LabelOptions) -> Result<Self, DatasetError> {
        let table = Table::open(source, &JUDGEMENT, &options.map, options.max_row_bytes, None)?;
        for field in [at::CASE, at::JUDGE, at::SCORE] {
            table.require(field)?;
        }
        Ok(Self {
            table,
            on_bad_row: options.on_bad_row,
            skipped: Skipped::default(),
            place: Place { number: 0, line: 0 },
            done: false,
        })
    }

    /// The line of the judgement given last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.place.line
    }

    /// Rows left out so far.
    #[must_use]
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Columns read as fields of another name so far.
    #[must_use]
    pub fn aliases(&self) -> Vec<AliasUsed> {
        self.table.aliases()
    }
}

impl Iterator for JudgementReader {
    type Item = Result<Judgement, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let result = match self.table.next() {
                None => break,
                Some(Ok(row)) => {
                    self.place = Place { number: row.number, line: row.line };
                    read_judgement(&row).map_err(|fault| row.error(fault))
                }
                Some(Err(error)) => Err(error),
            };
            if let Err(error) = &result {
                if !error.is_skippable() {
                    self.done = true;
                } else if self.on_bad_row == OnBadRow::Skip {
                    self.skipped.add(error);
                    continue;
                }
            }
            return Some(result);
        }
        if self.done {
            return None;
        }
        self.done = true;
        self.table.end().map(Err)
    }
}

fn read_judgement(row: &Row<'_>) -> Result<Judgement, Fault> {
    let case = required_name(row, at::CASE)?;
    let judge = required_name(row, at::JUDGE)?;
    if row.cell(at::SCORE).is_none() && row.filled(at::STATUS).is_none() {
        return Err(row.missing(at::SCORE).into());
    }
    let score = row.read(at::SCORE, |cell| cell.number("a number, or nothing"))?;
    let status = match (row.read(at::STATUS, read_status)?, score) {
        (None, Some(_)) => Status::Ok,
        // Something raw could not be read; nothing at all is no answer.
        (None, None) if row.filled(at::RAW).is_some() => Status::Unparseable,
        (None, None) => Status::Abstained,
        (Some(status), _) if (status == Status::Ok) != score.is_some() => {
            let problem =
                RowProblem::StatusAndScore { status: status.name(), has_score: score.is_some() };
            return Err(problem.of(row.column(at::STATUS)));
        }
        (Some(status), _) => status,
    };
    let raw = match row.filled(at::RAW) {
        Some(cell) => Some(cell.value().map_err(|problem| problem.of(row.column(at::RAW)))?),
        None => None,
    };
    Ok(Judgement {
        case,
        judge,
        criterion: row
            .read(at::CRITERION, Cell::name)?
            .unwrap_or_else(|| Label::DEFAULT_CRITERION.to_owned()),
        status,
        score,
        raw,
        order: row.read(at::ORDER, read_order)?,
        sample: row.read(at::SAMPLE, read_sample)?.unwrap_or(0),
        feedback: match row.filled(at::FEEDBACK) {
            Some(cell) => {
                cell.text(true).map_err(|problem| problem.of(row.column(at::FEEDBACK)))?
            }
            None => None,
        },
        metadata: super::reader::read_metadata(row, at::METADATA, &[])?,
    })
}

fn read_status(cell: Cell<'_>) -> Result<Option<Status>, RowProblem> {
    let Some(word) = cell.name()? else { return Ok(None) };
    Status::from_name(&word)
        .map(Some)
        .ok_or_else(|| RowProblem::unknown_word(&word, &Status::ALL.map(Status::name)))
}

fn read_order(cell: Cell<'_>) -> Result<Option<Order>, RowProblem> {
    match cell.name()?.as_deref() {
        None => Ok(None),
        Some("ab" | "AB") => Ok(Some(Order::Ab)),
        Some("ba" | "BA") => Ok(Some(Order::Ba)),
        Some("pointwise") => Ok(Some(Order::Pointwise)),
        Some(word) => Err(RowProblem::unknown_word(word, &["ab", "ba", "pointwise"])),
    }
}

fn read_sample(cell: Cell<'_>) -> Result<Option<u32>, RowProblem> {
    const EXPECTED: &str = "a whole number from 0";
    let Some(text) = cell.name()? else { return Ok(None) };
    // pandas writes whole numbers as `1.0` in a column with gaps.
    let whole = parse_number(&text).filter(|n| n.fract() == 0.0 && (0.0..=4e9).contains(n));
    match whole {
        Some(number) => Ok(Some(number as u32)),
        None => Err(RowProblem::NotANumber { text: shorten(&text), expected: EXPECTED }),
    }
}

/// What a file of judgements holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct JudgementScan {
    /// Judgements.
    pub count: u64,
    /// Statuses of each judge.
    pub judges: BTreeMap<String, StatusCounts>,
    /// Judgements of each criterion.
    pub criteria: BTreeMap<String, u64>,
    /// Rows left out.
    pub skipped: Skipped,
    /// Columns read as fields of another name.
    pub aliases: Vec<AliasUsed>,
}

/// Checks a whole file of judgements: every row can be used (or is skipped and counted), and
/// no judge's sample is recorded twice for one case, criterion and order.
///
/// # Errors
/// As [`JudgementReader`]; also when a judgement stands twice.
pub fn scan_judgements(
    source: &Source,
    options: &LabelOptions,
) -> Result<JudgementScan, DatasetError> {
    let mut reader = JudgementReader::open(source, options)?;
    let mut scan = JudgementScan::default();
    let mut seen = Seen::default();
    while let Some(judgement) = reader.next() {
        let judgement = judgement?;
        let hash = hash_of(&[
            &judgement.case,
            &judgement.judge,
            &judgement.criterion,
            judgement.order.map(Order::name).unwrap_or_default(),
            &judgement.sample.to_string(),
        ]);
        let held = seen.add(hash, reader.place, |held| {
            Ok::<_, DatasetError>(
                judgement_at(source, options, held)?.is_some_and(|other| same(&other, &judgement)),
            )
        })?;
        if let Some(held) = held {
            return Err(DatasetError::DuplicateJudgement {
                path: source.name().to_owned(),
                judge: judgement.judge,
                case: judgement.case,
                criterion: judgement.criterion,
                first: held.line,
                second: reader.line(),
            });
        }
        scan.count += 1;
        scan.judges.entry(judgement.judge).or_default().add(judgement.status);
        *scan.criteria.entry(judgement.criterion).or_default() += 1;
    }
    scan.skipped = reader.skipped().clone();
    scan.aliases = reader.aliases();
    Ok(scan)
}

fn same(a: &Judgement, b: &Judgement) -> bool {
    (&a.case, &a.judge, &a.criterion, a.order, a.sample)
        == (&b.case, &b.judge, &b.criterion, b.order, b.sample)
}

/// The judgement at a place, read again from the file.
fn judgement_at(
    source: &Source,
    options: &LabelOptions,
    place: Place,
) -> Result<Option<Judgement>, DatasetError> {
    let options = LabelOptions { on_bad_row: OnBadRow::Skip, ..options.clone() };
    let mut reader = JudgementReader::open(source, &options)?;
    while let Some(judgement) = reader.next() {
        let judgement = judgement?;
        if reader.place.number >= place.number {
            return Ok((reader.place == place).then_some(judgement));
        }
    }
    Ok(None)
}
