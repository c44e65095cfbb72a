//! Flags that name judgements, labels and cases, for every verb that joins them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Global;
use crate::calibration::Positive;
use crate::calibration::grouping::{Grouping, Groups, Items};
use crate::calibration::read::{Inputs, Joined, Judgements};
use crate::calibration::table::Orders;
use crate::dataset::{FieldMap, LabelOptions, Order, ReadOptions, Scales, Source};
use crate::score::Scale;
use crate::store::Store;

/// What is joined, and how it is read.
#[derive(Clone, Debug, Args)]
pub(super) struct JoinArgs {
    /// Recorded judgements in long form: case, judge, criterion, score; gzip or not
    #[arg(long, value_name = "FILE")]
    pub(super) judgements: Option<PathBuf>,
    /// Judgements of a stored run: its id, the beginning of it, or `latest`
    #[arg(long = "run", value_name = "RUN", conflicts_with = "judgements")]
    pub(super) runs: Vec<String>,
    /// Labels in long form: case, rater, criterion, label; those of `--items` if not given
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// The cases, for groups, splits and lengths
    #[arg(long, value_name = "FILE")]
    pub(super) items: Option<PathBuf>,
    /// The judgements' criterion; not needed where there is one only
    #[arg(long, value_name = "NAME")]
    pub(super) criterion: Option<String>,
    /// The labels' criterion, where it has another name than the judgements'
    #[arg(long, value_name = "NAME")]
    pub(super) label_criterion: Option<String>,
    /// Which labels are good: `>=4`, `=yes`, or a list such as `good,excellent`
    #[arg(long, value_name = "RULE")]
    pub(super) positive: Option<Positive>,
    /// Cases with the same value of this field belong together
    #[arg(long, value_name = "FIELD", conflicts_with = "group_regex")]
    pub(super) group: Option<String>,
    /// Cases with the same first capture in their id belong together
    #[arg(long, value_name = "RE")]
    pub(super) group_regex: Option<String>,
    /// The scale of the labels, as in `1-5`; inferred if not given
    #[arg(long, value_name = "SCALE")]
    pub(super) label_scale: Option<Scale>,
    /// The scale of judges, brought onto the labels' one: `SCALE` or `JUDGE=SCALE`; may be
    /// repeated
    #[arg(long, value_name = "[JUDGE=]SCALE")]
    pub(super) judge_scale: Vec<String>,
    /// Use only this judge; may be repeated
    #[arg(long = "judge", value_name = "NAME")]
    pub(super) judges: Vec<String>,
    /// Which presentation of a pair is used
    #[arg(long, value_enum, default_value_t)]
    pub(super) order: OrderArg,
    /// Read a column as a field, in labels, judgements and cases, as in `label=verdict`
    #[arg(long, value_name = "FIELD=COLUMN")]
    pub(super) map: Vec<String>,
}

/// Which presentation of a pair is used.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum OrderArg {
    /// Both: a judge that contradicts itself counts half
    #[default]
    Both,
    /// The output first
    Ab,
    /// The baseline first
    Ba,
}

impl JoinArgs {
    /// Reads everything and joins it; `items` stands in for cases that are not named.
    pub(super) fn join(
        &self,
        global: &Global,
        items: Option<&Path>,
        keep_unlabelled: bool,
    ) -> anyhow::Result<Joined> {
        self.join_judges(global, items, keep_unlabelled, false)
    }

    /// The same for a profile: judges without a vote on the run's panel are left out.
    pub(super) fn join_voters(&self, global: &Global) -> anyhow::Result<Joined> {
        self.join_judges(global, None, false, true)
    }

    fn join_judges(
        &self,
        global: &Global,
        items: Option<&Path>,
        keep_unlabelled: bool,
        voters_only: bool,
    ) -> anyhow::Result<Joined> {
        let open = |path: &PathBuf| Source::open(path);
        let judgements = self.judgements.as_ref().map(open).transpose()?;
        let labels = self.labels.as_ref().map(open).transpose()?;
        let items = match (&self.items, items) {
            (Some(path), _) => Some(Source::open(path)?),
            (None, Some(path)) => Some(Source::open(path)?),
            (None, None) => None,
        };
        let store = (!self.runs.is_empty()).then(|| Store::open(&global.store)).transpose()?;
        let from = match (&judgements, &store) {
            (Some(source), _) => Judgements::File(source),
            (None, Some(store)) => Judgements::Runs(store, &self.runs),
            (None, None) => {
                anyhow::bail!(
                    "no judgements: name a file with `--judgements` or a run with `--run`"
                )
            }
        };
        let Some(positive) = &self.positive else {
            anyhow::bail!(
                "which labels are good? name them with `--positive`, as in `--positive \">=4\"` or `--positive =yes`"
            )
        };
        let scales = self.scales();
        let map = FieldMap::parse(self.map.iter().map(String::as_str))?;
        let inputs = Inputs {
            judgements: from,
            labels: labels.as_ref(),
            items: items.as_ref(),
            criterion: self.criterion.as_deref(),
            label_criterion: self.label_criterion.as_deref(),
            positive: positive.clone(),
            grouping: self.grouping()?,
            orders: self.orders(),
            judge_scales: judge_scales(&self.judge_scale)?,
            judges: self.judges.clone(),
            voters_only,
            keep_unlabelled,
            options: LabelOptions { map, scales: scales.clone(), ..LabelOptions::default() },
            case_options: ReadOptions { scales, require_output: false, ..ReadOptions::default() },
        };
        Ok(inputs.join()?)
    }

    /// The groups of the cases by another field, for figures by group.
    pub(super) fn slices(&self, joined: &Joined, field: &str) -> anyhow::Result<Groups> {
        let Some(path) = &self.items else {
            anyhow::bail!("`--slice` reads the cases: name them with `--items`");
        };
        let options = ReadOptions { require_output: false, ..ReadOptions::default() };
        let grouping = Grouping::Field(field.to_owned());
        let cases = joined.table.cases();
        let items = Items::read(&Source::open(path)?, &options, cases, &grouping)?;
        Ok(Groups::assign(cases, &items, &grouping)?)
    }

    pub(super) fn scales(&self) -> Scales {
        Scales { default: self.label_scale, ..Scales::default() }
    }

    pub(super) fn grouping(&self) -> anyhow::Result<Grouping> {
        Ok(match (&self.group, &self.group_regex) {
            (Some(field), _) => Grouping::Field(field.clone()),
            (None, Some(pattern)) => Grouping::pattern(pattern)?,
            (None, None) => Grouping::Automatic,
        })
    }

    fn orders(&self) -> Orders {
        match self.order {
            OrderArg::Both => Orders::All,
            OrderArg::Ab => Orders::Only(Order::Ab),
            OrderArg::Ba => Orders::Only(Order::Ba),
        }
    }
}

pub(super) fn judge_scales(texts: &[String]) -> anyhow::Result<BTreeMap<String, Scale>> {
    let mut scales = BTreeMap::new();
    for text in texts {
        let (judge, scale) = text.rsplit_once('=').unwrap_or(("", text));
        scales.insert(judge.to_owned(), scale.parse()?);
    }
    Ok(scales)
}
