//! `venire calibrate`: labels x verdicts become error rates, maps and a certificate.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::calibrate_report;
use super::exit::Exit;
use super::joined::{JoinArgs, judge_scales};
use super::printer::Printer;
use super::report;
use crate::calibration::certificate::{CertificateStatus, Mode};
use crate::calibration::ledger::{Candidate, Held, Ledger, Looks};
use crate::calibration::loops::{Loops, Over};
use crate::calibration::panel::PanelAggregate;
use crate::calibration::read::{Joined, ruled_panels};
use crate::calibration::slices::SlicedBy;
use crate::calibration::split::SplitPlan;
use crate::calibration::trajectories::TrajectoryInputs;
use crate::calibration::{Accept, Options, Positive, Profile, calibrate};
use crate::dataset::{LabelOptions, Source};
use crate::report::calibration::Format;
use crate::store::Store;

/// Examine judges against labels, and bound the panel's error
///
/// Example: `venire calibrate --judgements verdicts.csv --labels labels.csv --positive ">=4" -o support`
#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    #[command(flatten)]
    join: JoinArgs,
    /// Recorded loops in tidy form: trajectory, generation, label, and score or one column a
    /// judge. What is certified is then a whole loop
    #[arg(long, value_name = "FILE", conflicts_with_all = ["judgements", "runs", "labels", "items", "criterion", "label_criterion", "order", "map"])]
    trajectories: Option<PathBuf>,
    /// With `--trajectories`: the most generations that the certificate is to hold for; the
    /// last recorded one if not given
    #[arg(long, value_name = "K", requires = "trajectories")]
    generations: Option<u32>,
    /// With `--trajectories`: the loops that a false accept is counted over
    #[arg(long, value_enum, default_value_t, requires = "trajectories")]
    over: OverArg,
    /// What a graded judge's score must reach, as in `>=4`; fitted if not given
    #[arg(long, value_name = "RULE")]
    accept: Option<Accept>,
    /// Bound of the certified error rate
    #[arg(long, value_name = "RATE", default_value_t = 0.05)]
    alpha: f64,
    /// One minus the confidence of the bound
    #[arg(long, value_name = "RATE", default_value_t = 0.10)]
    delta: f64,
    /// What is bounded
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArg,
    /// Share of the groups that maps are fitted on, or `data` for the field `split` of the cases
    #[arg(long, value_name = "SHARE|data", value_parser = split_plan, default_value = "0.25", conflicts_with = "no_split")]
    split: SplitPlan,
    /// Describe all labels, and certify nothing
    #[arg(long)]
    no_split: bool,
    /// Keep this share of the groups out of everything, for one last certificate
    #[arg(long, value_name = "SHARE", value_parser = sealed_share, conflicts_with = "no_split")]
    sealed: Option<f64>,
    /// Certify on the sealed part, once, and fit on all other labels
    #[arg(long, requires = "sealed")]
    unseal: bool,
    /// Count the looks at these labels in this file: each further candidate that is certified
    /// on them halves `--delta`. With `--sealed` it is `looks.json` beside the store if not given
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Bias and false accepts for each value of this field of the cases, shrunk; needs
    /// `--items`. May be repeated
    #[arg(long, value_name = "FIELD", conflicts_with = "trajectories")]
    slice: Vec<String>,
    /// How votes become the key that decides
    #[arg(long, value_enum, default_value_t)]
    aggregate: AggregateArg,
    /// Least votes for a decision; more than half of the judges if not given
    #[arg(long, value_name = "N")]
    quorum: Option<usize>,
    /// What a judge may be worse than a person and still stand in for one
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    epsilon: f64,
    /// Bootstrap replicates, where groups have several cases
    #[arg(long, value_name = "N", default_value_t = 1000)]
    resamples: usize,
    /// Seed of the split, the draws and the resampling
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write the profile: a name (`calibration/NAME.json`) or a file ending in `.json`; or a
    /// report, to a file ending in .html, .md or .csv. May be repeated
    #[arg(short, long, value_name = "NAME|FILE")]
    output: Vec<PathBuf>,
    /// The date that the profile carries; now if not given
    #[arg(long, value_name = "DATE", value_parser = date)]
    date: Option<String>,
    /// Exit with 3 when no threshold is certified
    #[arg(long)]
    require_certificate: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ModeArg {
    /// P(accepted | truly bad), with confidence
    #[default]
    FalsePositiveRate,
    /// P(truly bad | accepted), with confidence, for this mix of cases
    FalseAcceptanceShare,
    /// The expected false-positive rate only; weaker
    Expected,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
enum OverArg {
    /// Those that are never good; the stricter one
    #[default]
    NeverComplete,
    /// Those with a bad generation
    AnyBad,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum AggregateArg {
    /// The median of the offset votes, then the mean of the mapped ones
    #[default]
    Median,
    /// A ridge regression over all votes; from 100 labels
    Stack,
    /// A logistic regression over all votes; from 100 labels
    Logistic,
}

pub(super) fn split_plan(text: &str) -> Result<SplitPlan, String> {
    if text == "data" {
        return Ok(SplitPlan::Data);
    }
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(SplitPlan::Share(share)),
        _ => Err("expected a share between 0 and 1, or `data`".to_owned()),
    }
}

/// A day, or a moment, as it was written.
fn date(text: &str) -> Result<String, String> {
    let is_date = text.parse::<jiff::civil::Date>().is_ok()
        || text.parse::<jiff::civil::DateTime>().is_ok()
        || text.parse::<jiff::Timestamp>().is_ok();
    is_date
        .then(|| text.to_owned())
        .ok_or_else(|| "expected a date such as 2026-11-30, or 2026-11-30T12:00:00Z".to_owned())
}

fn sealed_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("expected a share between 0 and 1".to_owned()),
    }
}

pub(super) fn run(
    args: &CalibrateArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    anyhow::ensure!(args.join.runs.len() < 2, "one run is calibrated: `--run` is named twice");
    args.output.iter().try_for_each(|output| check_output(output))?;
    let (joined, loops) = match &args.trajectories {
        Some(file) => {
            let (joined, loops) = args.loops(file)?;
            (joined, Some(loops))
        }
        None => (args.join.join_voters(global)?, None),
    };
    let joined = match args.sealed {
        Some(share) if !args.unseal => joined.without_sealed(share)?,
        _ => joined,
    };
    for note in &joined.notes {
        printer.say(note);
    }
    let slices = args.slice.iter().map(|field| {
        let slices = args.join.slices(&joined, field, global)?;
        Ok(SlicedBy { field: field.clone(), slices })
    });
    let slices = slices.collect::<anyhow::Result<Vec<_>>>()?;
    let ruled = match args.join.runs.first() {
        Some(_) => {
            let store = Store::open(&global.store)?;
            ruled_panels(&store, &args.join.runs, &joined.table)?.1.pop()
        }
        None => None,
    };
    let mut options = Options { loops, slices, ruled, ..args.options() };
    let mut looked = args.look(&joined, &options, global)?;
    if let Some((_, _, looks)) = &looked {
        options.delta = looks.delta();
        options.looks = Some(looks.clone());
    }
    let calibration =
        calibrate(&joined.table, &joined.groups, &joined.items, &joined.group, &options)?;
    if let Some((held, candidate, _)) = &mut looked {
        let profile = args.output.iter().find(|own| Format::from_path(own).is_none());
        let profile = profile.map(|own| profile_name(&profile_path(own)));
        held.ledger.record(candidate, &options.date, profile.as_deref());
        if let Err(error) = held.write() {
            printer.warn(&format!("this look at the labels is not recorded: {error}"));
        }
    }
    for warning in joined.warnings.iter().chain(&calibration.warnings) {
        printer.warn(warning);
    }
    for output in &args.output {
        if let Some(format) = Format::from_path(output) {
            report::of_calibration(format, output, &calibration.to_json(), printer)?;
            continue;
        }
        let path = profile_path(output);
        Profile::new(&profile_name(&path), &calibration)
            .write(&path)
            .with_context(|| format!("failed to keep the calibration in `{}`", path.display()))?;
        printer.say(&format!("wrote {}", path.display()));
    }
    if args.json {
        printer.json(&calibration.to_json())?;
    } else {
        calibrate_report::show(&calibration, printer);
    }
    if !joined.table.is_measured() {
        printer.warn("no judge has a score on a labelled case: nothing could be measured");
        return Ok(Exit::Inconclusive);
    }
    let certified = calibration.certificate.certificate.status == CertificateStatus::Certified;
    Ok(if args.require_certificate && !certified { Exit::Inconclusive } else { Exit::Done })
}

impl CalibrateArgs {
    fn ledger(&self, global: &Global) -> PathBuf {
        self.ledger.clone().unwrap_or_else(|| global.store.with_file_name("looks.json"))
    }

    /// How often these labels were looked at before, where something is certified on them.
    fn look(
        &self,
        joined: &Joined,
        options: &Options,
        global: &Global,
    ) -> anyhow::Result<Option<(Held, Candidate, Looks)>> {
        // Who wants looks to be counted says so: by sealing a part, or by naming the ledger.
        if self.ledger.is_none() && self.sealed.is_none() && !self.unseal {
            return Ok(None);
        }
        let Joined { table, groups, items, group, .. } = joined;
        let Some(candidate) = Candidate::of(table, groups, items, group, options)? else {
            return Ok(None);
        };
        let held = Ledger::hold(&self.ledger(global))?;
        let looks = held.ledger.looks(&candidate, options.delta)?;
        Ok(Some((held, candidate, looks)))
    }

    fn loops(&self, file: &Path) -> anyhow::Result<(Joined, Loops)> {
        let source = Source::open(file)?;
        let inputs = TrajectoryInputs {
            source: &source,
            positive: match &self.join.positive {
                Some(positive) => positive.clone(),
                None => "=1".parse::<Positive>()?,
            },
            generations: self.generations,
            over: match self.over {
                OverArg::NeverComplete => Over::NeverComplete,
                OverArg::AnyBad => Over::AnyBad,
            },
            grouping: self.join.grouping()?,
            judge_scales: judge_scales(&self.join.judge_scale)?,
            judges: self.join.judges.clone(),
            options: LabelOptions { scales: self.join.scales(), ..LabelOptions::default() },
        };
        Ok(inputs.join()?)
    }

    fn options(&self) -> Options {
        Options {
            accept: self.accept,
            alpha: self.alpha,
            delta: self.delta,
            mode: match self.mode {
                ModeArg::FalsePositiveRate => Mode::FalsePositiveRate,
                ModeArg::FalseAcceptanceShare => Mode::FalseAcceptanceShare,
                ModeArg::Expected => Mode::Expected,
            },
            split: match self.sealed {
                _ if self.no_split => SplitPlan::None,
                Some(share) if self.unseal => SplitPlan::Sealed(share),
                _ => self.split,
            },
            seed: self.seed,
            aggregate: match self.aggregate {
                AggregateArg::Median => PanelAggregate::Median,
                AggregateArg::Stack => PanelAggregate::Stack,
                AggregateArg::Logistic => PanelAggregate::Logistic,
            },
            quorum: self.quorum,
            resamples: self.resamples,
            epsilon: self.epsilon,
            date: self.date.clone().unwrap_or_else(|| jiff::Timestamp::now().to_string()),
            ..Options::default()
        }
    }
}

/// Refuses what can't be written, before anything is read.
fn check_output(output: &Path) -> anyhow::Result<()> {
    let shown = output.display();
    let text = output.as_os_str().to_string_lossy();
    anyhow::ensure!(
        !output.is_dir() && !text.ends_with(['/', '\\']) && !text.is_empty(),
        "`-o {shown}` is a folder: name a profile, or a file ending in .json, .html, .md or .csv"
    );
    if Format::from_path(output).is_none() && profile_path(output) != output {
        // A name; with a dot or a folder in it, it was meant as a file.
        anyhow::ensure!(
            output.extension().is_none(),
            "`-o {shown}` is neither a profile nor a report: expected a name, or a file ending in .json, .html, .md or .csv"
        );
        anyhow::ensure!(
            output.components().count() == 1,
            "`-o {shown}` is a name with a folder in it: for a profile there, name the file `{shown}.json`"
        );
    }
    let path =
        if Format::from_path(output).is_some() { output.to_owned() } else { profile_path(output) };
    super::export::not_read(&path)?;
    let missing = path.parent().filter(|own| !own.as_os_str().is_empty() && !own.is_dir());
    if let Some(folder) = missing.filter(|_| Format::from_path(output).is_some()) {
        anyhow::bail!("`-o {shown}`: there is no folder `{}`", folder.display());
    }
    Ok(())
}

fn profile_path(output: &Path) -> PathBuf {
    if output.extension().is_some_and(|extension| extension == "json") {
        return output.to_owned();
    }
    let mut name = output.as_os_str().to_owned();
    name.push(".json");
    Path::new("calibration").join(name)
}

fn profile_name(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
