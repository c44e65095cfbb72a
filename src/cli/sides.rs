//! Runs or files that are laid side by side, with labels where there are some.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Global;
use super::joined::OrderArg;
use crate::calibration::labelled::{Labels, resolve_criterion};
use crate::calibration::recording::{Recording, RecordingOptions};
use crate::calibration::{Accept, CalibrationError, Positive};
use crate::dataset::{FieldMap, LabelOptions, LabelSource, Order, Source, read_labels};
use crate::store::Store;

/// How runs or files of judgements are read.
#[derive(Clone, Debug, Args)]
pub(super) struct SideArgs {
    /// Labels in long form: case, rater, criterion, label
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// Which labels are good: `>=4`, `=yes`, or a list such as `good,excellent`
    #[arg(long, value_name = "RULE", requires = "labels")]
    pub(super) positive: Option<Positive>,
    /// The criterion of files and labels; not needed where there is one only
    #[arg(long, value_name = "NAME")]
    pub(super) criterion: Option<String>,
    /// The labels' criterion, where it has another name than the judgements'
    #[arg(long, value_name = "NAME")]
    pub(super) label_criterion: Option<String>,
    /// For files: what a graded vote must reach to accept, as in `>=4`
    #[arg(long, value_name = "RULE")]
    accept: Option<Accept>,
    /// Which presentation of a pair is used, where a file has both
    #[arg(long, value_enum, default_value_t)]
    order: OrderArg,
    /// Cases with the same first capture in their id belong together
    #[arg(long, value_name = "RE")]
    pub(super) group_regex: Option<String>,
    /// Read a column as a field, in labels and judgements, as in `case=example`
    #[arg(long, value_name = "FIELD=COLUMN")]
    pub(super) map: Vec<String>,
}

/// What labels say.
pub(super) struct Truth {
    /// Whether each case is truly good.
    pub(super) good: HashMap<String, bool>,
    /// Whether some label is a model's: nothing is certified by these.
    pub(super) by_model: bool,
}

impl SideArgs {
    fn reading(&self) -> anyhow::Result<LabelOptions> {
        let map = FieldMap::parse(self.map.iter().map(String::as_str))?;
        Ok(LabelOptions { map, ..LabelOptions::default() })
    }

    /// A file where there is one of this name, else a stored run.
    pub(super) fn open(&self, name: &str, global: &Global) -> anyhow::Result<Recording> {
        if Path::new(name).is_file() {
            let options = RecordingOptions {
                criterion: self.criterion.clone(),
                accept: self.accept,
                order: match self.order {
                    OrderArg::Both => None,
                    OrderArg::Ab => Some(Order::Ab),
                    OrderArg::Ba => Some(Order::Ba),
                },
                labels: self.reading()?,
            };
            return Ok(Recording::of_file(&Source::open(Path::new(name))?, name, &options)?);
        }
        anyhow::ensure!(
            !name.contains(['/', '\\']) && !name.contains('.'),
            "no file `{name}`: expected a file of judgements, or the id of a stored run"
        );
        Ok(Recording::of_run(&Store::open(&global.store)?, name)?)
    }

    /// Whether one of the two is a file, and nothing says which of its graded votes accept.
    pub(super) fn lacks_accept(&self, names: [&str; 2]) -> bool {
        self.accept.is_none() && names.iter().any(|name| Path::new(name).is_file())
    }

    /// Truth by case, where labels are named.
    pub(super) fn truth(&self) -> anyhow::Result<Option<Truth>> {
        let Some(path) = &self.labels else { return Ok(None) };
        let Some(positive) = &self.positive else {
            anyhow::bail!("`--labels` needs `--positive`: which labels are good, such as `>=4`");
        };
        let set = read_labels(&Source::open(path)?, &self.reading()?)?;
        let named = self.label_criterion.as_deref().or(self.criterion.as_deref());
        let criterion = resolve_criterion(&set, named)?;
        let labels = Labels::collect(&set, &criterion, positive)?;
        Ok(Some(Truth {
            by_model: labels.sources.contains_key(&LabelSource::Model),
            good: labels.cases.into_iter().map(|case| (case.id, case.good)).collect(),
        }))
    }

    /// What in an id says which cases belong together.
    pub(super) fn pattern(&self) -> Result<Option<regex::Regex>, CalibrationError> {
        self.group_regex
            .as_ref()
            .map(|pattern| {
                regex::Regex::new(pattern).map_err(|error| CalibrationError::GroupPattern {
                    pattern: pattern.clone(),
                    message: error.to_string(),
                })
            })
            .transpose()
    }
}
