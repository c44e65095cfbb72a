//! `venire calibrate`: labels x verdicts become error rates, maps and a certificate.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::calibrate_report;
use super::exit::Exit;
use super::joined::JoinArgs;
use super::printer::Printer;
use crate::calibration::certificate::{CertificateStatus, Mode};
use crate::calibration::panel::PanelAggregate;
use crate::calibration::split::SplitPlan;
use crate::calibration::{Accept, Options, Profile, calibrate};

/// Examine judges against labels, and bound the panel's error
///
/// Example: `venire calibrate --judgements verdicts.csv --labels labels.csv --positive ">=4" -o support`
#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    #[command(flatten)]
    join: JoinArgs,
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
    /// Write the profile: a name (`calibration/NAME.json`) or a file ending in `.json`
    #[arg(short, long, value_name = "NAME|FILE")]
    output: Option<PathBuf>,
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

pub(super) fn run(
    args: &CalibrateArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    anyhow::ensure!(args.join.runs.len() < 2, "one run is calibrated: `--run` is named twice");
    let joined = args.join.join(global, None, false)?;
    let options = args.options();
    let calibration =
        calibrate(&joined.table, &joined.groups, &joined.items, &joined.group, &options)?;
    for warning in &calibration.warnings {
        printer.warn(warning);
    }
    if let Some(output) = &args.output {
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
    let certified = calibration.certificate.certificate.status == CertificateStatus::Certified;
    Ok(if args.require_certificate && !certified { Exit::Inconclusive } else { Exit::Done })
}

impl CalibrateArgs {
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
            split: if self.no_split { SplitPlan::None } else { self.split },
            seed: self.seed,
            aggregate: match self.aggregate {
                AggregateArg::Median => PanelAggregate::Median,
                AggregateArg::Stack => PanelAggregate::Stack,
                AggregateArg::Logistic => PanelAggregate::Logistic,
            },
            quorum: self.quorum,
            resamples: self.resamples,
            epsilon: self.epsilon,
            date: jiff::Timestamp::now().to_string(),
            ..Options::default()
        }
    }
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
