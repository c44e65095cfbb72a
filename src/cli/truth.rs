//! Flags that hold a run's decisions against labels.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::printer::Printer;
use super::run::{DataAgain, data_again};
use crate::calibration::{CalibrationError, Positive};
use crate::dataset::{FieldMap, LabelOptions, LabelSet, Source, read_inline_labels, read_labels};
use crate::run::truth::Truth;
use crate::store::RunRecord;

/// Labels beside a run.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct TruthArgs {
    /// Labels in long form: case, rater, criterion, label; those in the run's own data if not
    /// given
    #[arg(long, value_name = "FILE", requires = "positive")]
    labels: Option<PathBuf>,
    /// Which labels are good: `>=4`, `=yes`, or a list such as `good,excellent`; then every
    /// case shows its label, and how often the decisions contradict them is counted
    #[arg(long, value_name = "RULE")]
    positive: Option<Positive>,
    /// The labels' criterion; not needed where there is one only
    #[arg(long, value_name = "NAME", requires = "positive")]
    criterion: Option<String>,
    /// Read a column of the labels as a field, as in `label=verdict`; may be repeated
    #[arg(long, value_name = "FIELD=COLUMN", requires = "labels")]
    map: Vec<String>,
    /// Only cases whose decision contradicts the label: false acceptances and false rejections
    #[arg(long, requires = "positive")]
    pub(super) wrong: bool,
}

impl TruthArgs {
    /// Whether decisions are held against labels.
    pub(super) fn is_asked_for(&self) -> bool {
        self.positive.is_some()
    }

    /// What the labels say, where they are asked for.
    pub(super) fn truth(
        &self,
        run: &RunRecord,
        printer: &Printer,
    ) -> anyhow::Result<Option<Arc<Truth>>> {
        let Some(positive) = &self.positive else { return Ok(None) };
        let set = self.set(run)?;
        let truth = Truth::new(&set, self.criterion.as_deref(), positive)?;
        for warning in truth.warnings() {
            printer.warn(warning);
        }
        Ok(Some(Arc::new(truth)))
    }

    fn set(&self, run: &RunRecord) -> anyhow::Result<LabelSet> {
        if let Some(path) = &self.labels {
            let map = FieldMap::parse(self.map.iter().map(String::as_str))?;
            let options = LabelOptions { map, ..LabelOptions::default() };
            return Ok(read_labels(&Source::open(path)?, &options)?);
        }
        match data_again(run)? {
            DataAgain::Same { source, options, .. } => {
                let set = read_inline_labels(&source, &options)?;
                if set.labels.is_empty() {
                    return Err(CalibrationError::NoLabels { path: run.data.clone() }.into());
                }
                Ok(set)
            }
            DataAgain::Changed => anyhow::bail!(
                "`{}` is not what it was when run `{}` read it, so its labels are not read: name a file of labels with `--labels`",
                run.data,
                run.id
            ),
            DataAgain::Gone => anyhow::bail!(
                "the data of run `{}` can't be read again: name a file of labels with `--labels`",
                run.id
            ),
        }
    }
}
