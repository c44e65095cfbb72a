//! Runs or files that are laid side by side, with labels where there are some.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Global;
use super::joined::{Cases, OrderArg};
use crate::calibration::grouping::Grouping;
use crate::calibration::labelled::{Labels, resolve_criterion};
use crate::calibration::recording::{Recording, RecordingOptions};
use crate::calibration::{Accept, CalibrationError, Positive};
use crate::dataset::{
    FieldMap, LabelOptions, LabelSource, Order, ReadOptions, RowKind, Source, read_inline_labels,
    read_labels,
};
use crate::store::Store;

/// How runs or files of judgements are read.
#[derive(Clone, Debug, Args)]
pub(super) struct SideArgs {
    /// Labels in long form: case, rater, criterion, label; those of the cases if not given
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// Which labels are good: `>=4`, `=yes`, or a list such as `good,excellent`
    #[arg(long, value_name = "RULE")]
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
    /// The cases, for groups and labels; those of the run if not given
    #[arg(long, value_name = "FILE")]
    pub(super) items: Option<PathBuf>,
    /// Cases with the same value of this field belong together
    #[arg(long, value_name = "FIELD", conflicts_with = "group_regex")]
    pub(super) group: Option<String>,
    /// Cases with the same first capture in their id belong together
    #[arg(long, value_name = "RE")]
    pub(super) group_regex: Option<String>,
    /// Read a column as a field, in labels, judgements and cases, as in `case=example`
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

    /// The cases of a side: those that are named, or those of its run.
    fn cases(&self, name: &str, global: &Global) -> anyhow::Result<Cases> {
        let run = (!Path::new(name).is_file()).then(|| name.to_owned());
        let mut found = Cases::of(self.items.as_deref(), run.as_slice(), global)?;
        let map = FieldMap::parse(self.map.iter().map(String::as_str))?.only(RowKind::Case);
        found.options = ReadOptions {
            map: found.options.map.overlaid(&map),
            require_output: false,
            ..found.options
        };
        Ok(found)
    }

    /// Gives the cases of a recording their groups, by the field that is named or by what the
    /// cases say; without any, what looks like a group.
    ///
    /// # Errors
    /// When a field is named and the cases are not known, or one of them has none.
    pub(super) fn group(
        &self,
        recording: &mut Recording,
        name: &str,
        global: &Global,
    ) -> anyhow::Result<Option<String>> {
        if self.group_regex.is_some() {
            return Ok(None);
        }
        let grouping = self.group.clone().map_or(Grouping::Automatic, Grouping::Field);
        let found = self.cases(name, global)?;
        Ok(recording.regroup(found.items.as_ref(), &found.options, &grouping)?)
    }

    /// Truth by case, where labels are asked for: those of `--labels`, or of the rows of the
    /// cases.
    pub(super) fn truth(&self, after: &str, global: &Global) -> anyhow::Result<Option<Truth>> {
        let Some(positive) = &self.positive else {
            anyhow::ensure!(
                self.labels.is_none(),
                "`--labels` needs `--positive`: which labels are good, such as `>=4`"
            );
            return Ok(None);
        };
        let set = if let Some(path) = &self.labels {
            read_labels(&Source::open(path)?, &self.reading()?)?
        } else {
            let Cases { items, options, missing } = self.cases(after, global)?;
            let Some(source) = items else {
                let why = missing.map_or_else(String::new, |why| format!(": {why}"));
                anyhow::bail!(
                    "`--positive` without labels{why}; name labels with `--labels`, or cases with `--items`"
                );
            };
            let set = read_inline_labels(&source, &options)?;
            if set.labels.is_empty() {
                return Err(CalibrationError::NoLabels { path: source.name().to_owned() }.into());
            }
            set
        };
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
