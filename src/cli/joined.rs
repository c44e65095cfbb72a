//! Flags that name judgements, labels and cases, for every verb that joins them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Global;
use super::run::{DataAgain, data_again};
use crate::calibration::Positive;
use crate::calibration::grouping::{Grouping, Groups, Items};
use crate::calibration::read::{Inputs, Joined, Judgements};
use crate::calibration::table::Orders;
use crate::dataset::{FieldMap, LabelOptions, Order, ReadOptions, RowKind, Scales, Source};
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
    /// Labels in long form: case, rater, criterion, label; those of the cases if not given
    #[arg(long, value_name = "FILE")]
    pub(super) labels: Option<PathBuf>,
    /// The cases, for groups, splits and lengths; those of the run if not given
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
    /// Whether a run's scores stay in [0,1] whatever the labels' scale: for profiles that were
    /// made so.
    #[arg(skip)]
    pub(super) as_scored: bool,
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

/// Where the cases are, or why they are not.
#[derive(Default)]
pub(super) struct Cases {
    pub(super) items: Option<Source>,
    pub(super) options: ReadOptions,
    /// Why a run's own cases are not known.
    pub(super) missing: Option<String>,
}

impl Cases {
    fn of_file(path: &Path) -> anyhow::Result<Self> {
        Ok(Self { items: Some(Source::open(path)?), ..Self::default() })
    }

    fn missing(why: String) -> Self {
        Self { missing: Some(why), ..Self::default() }
    }

    /// Those named, or those of the runs where all have the same and they are still what they
    /// were.
    pub(super) fn of(
        items: Option<&Path>,
        runs: &[String],
        global: &Global,
    ) -> anyhow::Result<Self> {
        if let Some(path) = items {
            return Self::of_file(path);
        }
        let Some(first) = runs.first() else { return Ok(Self::default()) };
        let store = Store::open(&global.store)?;
        let run = store.run(first)?;
        for other in &runs[1..] {
            if store.run(other)?.data_hash != run.data_hash {
                return Ok(Self::missing("the runs are of different data".to_owned()));
            }
        }
        Ok(match data_again(&run) {
            Ok(DataAgain::Same { source, options, .. }) => {
                Self { items: Some(source), options, missing: None }
            }
            Ok(DataAgain::Changed) => Self::missing(format!(
                "`{}` is not what it was when run `{}` read it",
                run.data, run.id
            )),
            Ok(DataAgain::Gone) => {
                Self::missing(format!("the data of run `{}` came by a pipe", run.id))
            }
            Err(error) => Self::missing(format!("`{}` can't be read again ({error:#})", run.data)),
        })
    }
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
        let scales = self.scales();
        let map = FieldMap::parse(self.map.iter().map(String::as_str))?;
        let store = (!self.runs.is_empty()).then(|| Store::open(&global.store)).transpose()?;
        let Cases { items, options: read, missing } = match items {
            Some(path) if self.items.is_none() => Cases::of_file(path)?,
            _ => self.cases(global)?,
        };
        if labels.is_none()
            && let Some(why) = &missing
        {
            anyhow::bail!("no labels: {why}; name labels with `--labels`, or cases with `--items`");
        }
        let case_options = ReadOptions {
            map: read.map.overlaid(&map.only(RowKind::Case)),
            scales: scales.clone(),
            require_output: false,
            ..read
        };
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
            scale_units: !self.as_scored,
            judges: self.judges.clone(),
            voters_only,
            keep_unlabelled,
            options: LabelOptions { map, scales, ..LabelOptions::default() },
            case_options,
        };
        let mut joined = inputs.join()?;
        joined.notes.extend(missing.map(|why| {
            format!("{why}: groups, splits and lengths are not known; name cases with `--items`")
        }));
        Ok(joined)
    }

    fn cases(&self, global: &Global) -> anyhow::Result<Cases> {
        Cases::of(self.items.as_deref(), &self.runs, global)
    }

    /// The groups of the cases by another field, for figures by group.
    pub(super) fn slices(
        &self,
        joined: &Joined,
        field: &str,
        global: &Global,
    ) -> anyhow::Result<Groups> {
        let Cases { items, options, .. } = self.cases(global)?;
        let Some(source) = items else {
            anyhow::bail!("`--slice` reads the cases: name them with `--items`");
        };
        let map = FieldMap::parse(self.map.iter().map(String::as_str))?.only(RowKind::Case);
        let map = options.map.overlaid(&map);
        let options = ReadOptions { require_output: false, map, ..options };
        let grouping = Grouping::Field(field.to_owned());
        let cases = joined.table.cases();
        let items = Items::read(&source, &options, cases, &grouping)?;
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
