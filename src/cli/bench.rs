//! `venire bench`: judges and panels compared on labelled data.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};

use super::Global;
use super::bench_report;
use super::calibrate::split_plan;
use super::exit::Exit;
use super::joined::JoinArgs;
use super::printer::Printer;
use super::run::RunArgs;
use crate::calibration::leaderboard::{LeaderboardOptions, PanelOf, leaderboard};
use crate::calibration::limit::{Limit, LimitStatus, Metric};
use crate::calibration::pairwise::Measure;
use crate::calibration::read::ruled_panels;
use crate::calibration::split::SplitPlan;
use crate::calibration::{Accept, Options};
use crate::store::Store;

/// Compare judges and panels on labelled data
///
/// Example: `venire bench --judgements verdicts.csv --labels labels.csv --positive ">=4"`
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Panels that are run on DATA first; may be repeated
    #[arg(short, long, value_name = "PANEL", requires = "data", conflicts_with_all = ["judgements", "runs"])]
    config: Vec<PathBuf>,
    /// Labelled cases for `--config`: CSV, TSV or JSON Lines
    #[arg(value_name = "DATA", requires = "config")]
    data: Option<PathBuf>,
    #[command(flatten)]
    join: JoinArgs,
    /// Some judges as a panel of their own, as in `small=gpt,rule`; may be repeated
    #[arg(long, value_name = "NAME=JUDGE,JUDGE", value_parser = panel_of)]
    panel: Vec<PanelOf>,
    /// What a graded judge's score must reach, as in `>=4`; fitted if not given
    #[arg(long, value_name = "RULE")]
    accept: Option<Accept>,
    /// Share of the groups that thresholds and maps are fitted on, or `data` for the field
    /// `split` of the cases
    #[arg(long, value_name = "SHARE|data", value_parser = split_plan, default_value = "0.25", conflicts_with = "no_split")]
    split: SplitPlan,
    /// Compare on all labels, those that thresholds and maps are fitted on included
    #[arg(long)]
    no_split: bool,
    /// Least votes for a decision of a panel; more than half of its judges if not given
    #[arg(long, value_name = "N")]
    quorum: Option<usize>,
    /// What orders the board and decides who can be told apart
    #[arg(long, value_enum, default_value_t)]
    by: ByArg,
    /// Exit with 1 unless the whole interval of a figure is at least this: `METRIC=VALUE` for
    /// the panel, `CONTENDER:METRIC=VALUE` for another; may be repeated
    #[arg(long, value_name = "[CONTENDER:]METRIC=VALUE")]
    fail_under: Vec<Limit>,
    /// Exit with 1 unless the whole interval of a figure is at most this; may be repeated
    #[arg(long, value_name = "[CONTENDER:]METRIC=VALUE")]
    fail_above: Vec<Limit>,
    /// The same as `--fail-above false_positive_rate=RATE`
    #[arg(long, value_name = "RATE", value_parser = super::panel::unit)]
    fail_fpr_above: Option<f64>,
    /// Bootstrap replicates
    #[arg(long, value_name = "N", default_value_t = 1000)]
    resamples: usize,
    /// Seed of the split and the resampling
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// US dollars for each panel's run at most
    #[arg(long, value_name = "USD", value_parser = super::run::dollars, requires = "config")]
    cost_limit: Option<f64>,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ByArg {
    /// Share of decisions that are right
    #[default]
    Agreement,
    /// Area under the ROC curve
    Auc,
    /// Mean distance of score and label
    AbsoluteError,
}

fn panel_of(text: &str) -> Result<PanelOf, String> {
    let wrong = || "expected a name and judges, as in `small=gpt,rule`".to_owned();
    let (name, judges) = text.split_once('=').ok_or_else(wrong)?;
    let judges: Vec<String> = judges.split(',').map(|judge| judge.trim().to_owned()).collect();
    if name.trim().is_empty() || judges.iter().any(String::is_empty) {
        return Err(wrong());
    }
    if judges.iter().enumerate().any(|(i, judge)| judges[..i].contains(judge)) {
        return Err("a judge is named twice".to_owned());
    }
    Ok(PanelOf { name: name.trim().to_owned(), judges, ruled: None })
}

pub(super) fn run(args: &BenchArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let limits = args.limits()?;
    let mut join = args.join.clone();
    if let Some(data) = &args.data {
        anyhow::ensure!(
            data.as_os_str() != "-",
            "DATA is read once for each panel and once for its labels: name a file, not `-`"
        );
        for config in &args.config {
            match judged(args, config, data, global, printer)? {
                Ok(run) => join.runs.push(run),
                Err(exit) => return Ok(exit),
            }
        }
    }
    let joined = join.join(global, args.data.as_deref(), false)?;
    for note in &joined.notes {
        printer.say(note);
    }
    let (mut panels, ruled) = if join.runs.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        ruled_panels(&Store::open(&global.store)?, &join.runs, &joined.table)?
    };
    panels.extend(args.panel.iter().cloned());
    let board = leaderboard(
        &joined.table,
        &joined.groups,
        &joined.items,
        &joined.group,
        &panels,
        &ruled,
        &args.options(),
    )?;
    for warning in &board.warnings {
        printer.warn(warning);
    }
    let found = limits.iter().map(|limit| limit.check(&board)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let mut report = board.to_json();
        if let Some(map) = report.as_object_mut() {
            map.insert("limits".to_owned(), serde_json::to_value(&found)?);
        }
        printer.json(&report)?;
    } else {
        bench_report::show(&board, printer);
    }
    for own in &found {
        if own.status == LimitStatus::Kept {
            printer.say(&own.to_string());
        } else {
            printer.warn(&own.to_string());
        }
    }
    if !joined.table.is_measured() {
        printer.warn("no judge has a score on a labelled case: nothing could be measured");
        return Ok(Exit::Inconclusive);
    }
    let any = |wanted: &[LimitStatus]| found.iter().any(|own| wanted.contains(&own.status));
    Ok(if any(&[LimitStatus::Broken, LimitStatus::NotShown]) {
        Exit::NotAccepted
    } else if any(&[LimitStatus::Undefined]) {
        Exit::Inconclusive
    } else {
        Exit::Done
    })
}

impl BenchArgs {
    fn limits(&self) -> anyhow::Result<Vec<Limit>> {
        let mut limits = Vec::new();
        for (option, given, higher) in
            [("--fail-under", &self.fail_under, true), ("--fail-above", &self.fail_above, false)]
        {
            for limit in given {
                let name = limit.metric.name();
                anyhow::ensure!(
                    limit.metric.higher_is_better() == higher,
                    "`{option}` can't take {name}, of which {} is better: use `{}`",
                    if higher { "less" } else { "more" },
                    if higher { "--fail-above" } else { "--fail-under" },
                );
                limits.push(limit.clone());
            }
        }
        if let Some(value) = self.fail_fpr_above {
            let metric = Metric::FalsePositiveRate;
            limits.push(Limit { contender: None, metric, value });
        }
        Ok(limits)
    }

    fn options(&self) -> LeaderboardOptions {
        LeaderboardOptions {
            calibration: Options {
                accept: self.accept,
                split: if self.no_split { SplitPlan::None } else { self.split },
                seed: self.seed,
                quorum: self.quorum,
                resamples: self.resamples,
                ..Options::default()
            },
            by: match self.by {
                ByArg::Agreement => Measure::Agreement,
                ByArg::Auc => Measure::Auc,
                ByArg::AbsoluteError => Measure::AbsoluteError,
            },
        }
    }
}

/// The flags of `venire run`, parsed as it would parse them.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Inner {
    #[command(flatten)]
    run: RunArgs,
}

/// Runs a panel on the data, as `venire run` does; the run's id, or how it ended early.
fn judged(
    args: &BenchArgs,
    config: &Path,
    data: &Path,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Result<String, Exit>> {
    let mut words = vec!["-c".into(), config.as_os_str().to_owned()];
    if let Some(limit) = args.cost_limit {
        words.extend(["--cost-limit".into(), limit.to_string().into()]);
    }
    for map in &args.join.map {
        words.extend(["--map".into(), map.into()]);
    }
    words.extend(["--".into(), data.as_os_str().to_owned()]);
    let inner = Inner::try_parse_from(words)?;
    let before = newest(global);
    let exit = super::runtime()?.block_on(super::run::run(&inner.run, global, &printer.aside()))?;
    let after = newest(global);
    match (exit, after) {
        // Undecided cases are what the comparison counts as unscored.
        (Exit::Done | Exit::NotAccepted | Exit::Inconclusive, Some(run))
            if before.as_ref() != Some(&run) =>
        {
            Ok(Ok(run))
        }
        (exit, _) => Ok(Err(exit)),
    }
}

fn newest(global: &Global) -> Option<String> {
    Store::open(&global.store).ok()?.run("latest").ok().map(|run| run.id)
}
