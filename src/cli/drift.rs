//! `venire drift`: anchors judged again, against an earlier run or a profile.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Global;
use super::compare::identities;
use super::exit::Exit;
use super::figures::{interval, share};
use super::joined::{JoinArgs, OrderArg};
use super::printer::{Printer, table};
use super::sides::SideArgs;
use crate::calibration::Profile;
use crate::calibration::drift::{Drift, DriftOptions, DriftStatus, drift};
use crate::calibration::drift_profile::drift_from_profile;
use crate::calibration::drift_series::{DriftSeries, drift_series};
use crate::calibration::judge_metrics::IntervalOptions;
use crate::calibration::recording::Recording;
use crate::score::Scale;
use crate::stats::bootstrap::Resampling;

/// Judge an anchor set again, and see whether the judges are still the same
///
/// Example: `venire drift latest --baseline 3f2a --labels anchors.csv --positive "=good"`
#[derive(Debug, Args)]
pub(super) struct DriftArgs {
    /// The run of the anchors to check: its id, the beginning of it, or `latest`; or a file of
    /// judgements. Several, in the order of time, are checked one by one and together
    #[arg(value_name = "RUN", required = true)]
    after: Vec<String>,
    /// The earlier run of the same anchors, or a file
    #[arg(long, value_name = "RUN", required_unless_present = "profile")]
    baseline: Option<String>,
    /// A profile, whose rates labelled anchors are held against
    #[arg(long, value_name = "FILE", conflicts_with = "baseline", requires = "labels")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    sides: SideArgs,
    /// With `--profile`: the scale of the labels, as when it was made
    #[arg(long, value_name = "SCALE", requires = "profile")]
    label_scale: Option<Scale>,
    /// With `--profile`: the scale of judges, as when it was made; may be repeated
    #[arg(long, value_name = "[JUDGE=]SCALE", requires = "profile")]
    judge_scale: Vec<String>,
    /// Largest change that does not matter: of a share, or of scores as a share of their range
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    tolerance: f64,
    /// Error rate of all judges together
    #[arg(long, value_name = "RATE", default_value_t = 0.05)]
    alpha: f64,
    /// Bootstrap replicates
    #[arg(long, value_name = "N", default_value_t = 1000)]
    resamples: usize,
    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &DriftArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let found = match (&args.profile, &args.baseline) {
        (Some(profile), _) => {
            let [after] = args.after.as_slice() else {
                anyhow::bail!(
                    "one run is held against a profile: name several with `--baseline`, the first of them"
                );
            };
            args.against_profile(profile, after, global)?
        }
        (None, Some(baseline)) => {
            let before = args.sides.open(baseline, global)?;
            let last = args.after.last().map_or(baseline.as_str(), String::as_str);
            let (truth, pattern) = (args.sides.truth(last, global)?, args.sides.pattern()?);
            let options = DriftOptions {
                labels: truth.as_ref().map(|own| &own.good),
                group: pattern.as_ref(),
                tolerance: args.tolerance,
                alpha: args.alpha,
                resampling: Resampling { resamples: args.resamples, seed: args.seed, level: 0.95 },
            };
            let mut later: Vec<Recording> = Vec::with_capacity(args.after.len());
            for (place, name) in args.after.iter().enumerate() {
                let mut after = args.sides.open(name, global)?;
                if let Some(hint) = args.sides.group(&mut after, name, global)?
                    && place == 0
                {
                    printer.warn(&hint);
                }
                later.push(after);
            }
            match later.as_slice() {
                [after] => drift(&before, after, &options)?,
                later => return args.series(&drift_series(&before, later, &options)?, printer),
            }
        }
        (None, None) => anyhow::bail!("expected `--baseline` or `--profile`"),
    };
    for warning in &found.warnings {
        printer.warn(warning);
    }
    if args.json {
        printer.json(&found.to_json())?;
    } else {
        show(&found, printer);
    }
    Ok(exit(found.status))
}

fn exit(status: DriftStatus) -> Exit {
    match status {
        DriftStatus::Passed => Exit::Done,
        DriftStatus::Drifted => Exit::NotAccepted,
        DriftStatus::Inconclusive => Exit::Inconclusive,
    }
}

impl DriftArgs {
    fn series(&self, found: &DriftSeries, printer: &Printer) -> anyhow::Result<Exit> {
        for warning in &found.warnings {
            printer.warn(warning);
        }
        if self.json {
            printer.json(&found.to_json())?;
        } else {
            show_series(found, printer);
        }
        Ok(exit(found.status))
    }

    fn against_profile(&self, path: &Path, after: &str, global: &Global) -> anyhow::Result<Drift> {
        let profile = Profile::read(path)?;
        let file = Path::new(after).is_file();
        if let Some(positive) = &self.sides.positive {
            anyhow::ensure!(
                *positive == profile.positive,
                "the profile was made with `--positive \"{}\"`, not \"{positive}\": leave the option out, or calibrate again",
                profile.positive
            );
        }
        // Scores are brought onto the labels' scale where the profile's were, and onto the same.
        let as_scored =
            profile.panel.seats.iter().all(|seat| seat.unit.is_none_or(|unit| unit == [0.0, 1.0]));
        let made_on = profile.scale.and_then(|[low, high]| Scale::range(low, high).ok());
        let join = JoinArgs {
            judgements: file.then(|| PathBuf::from(after)),
            runs: if file { Vec::new() } else { vec![after.to_owned()] },
            labels: self.sides.labels.clone(),
            items: self.sides.items.clone(),
            criterion: Some(
                self.sides.criterion.clone().unwrap_or_else(|| profile.criterion.clone()),
            ),
            label_criterion: self.sides.label_criterion.clone(),
            positive: Some(profile.positive.clone()),
            group: self.sides.group.clone(),
            group_regex: self.sides.group_regex.clone(),
            label_scale: self.label_scale.or(if as_scored { None } else { made_on }),
            judge_scale: self.judge_scale.clone(),
            judges: Vec::new(),
            order: OrderArg::Both,
            map: self.sides.map.clone(),
            as_scored,
        };
        let joined = join.join(global, None, false)?;
        let intervals = IntervalOptions { level: 0.95, resamples: self.resamples, seed: self.seed };
        Ok(drift_from_profile(
            &profile,
            &joined.table,
            &joined.groups,
            after,
            self.tolerance,
            self.alpha,
            intervals,
        )?)
    }
}

fn show_series(found: &DriftSeries, printer: &Printer) {
    printer.result(&found.conclusion);
    printer.result("");
    let mut rows = Vec::new();
    for own in &found.series {
        for (place, point) in own.points.iter().enumerate() {
            rows.push(vec![
                if place == 0 { own.name.clone() } else { String::new() },
                point.run.clone(),
                point.status.name().to_owned(),
                point.n.to_string(),
                interval(&point.score),
                if point.flips.value().is_some() { share(&point.flips) } else { "-".to_owned() },
            ]);
        }
    }
    printer.result(&table(&["", "run", "", "n", "score", "flips"], rows, &[3, 4, 5]));
    printer.result(&format!(
        "Changes are against `{}`, with 95 % intervals. Each look spends its part of alpha {}: look {} has {:.4}.",
        found.baseline, found.alpha, found.looks, found.alpha_spent
    ));
    identities(&found.last.identities, printer);
}

fn show(found: &Drift, printer: &Printer) {
    printer.result(&found.conclusion);
    printer.result("");
    let header = ["", "check", "", "n", "change", "tolerance", "p", "visible", "flips", "CUSUM"];
    let mut rows = Vec::new();
    for report in &found.reports {
        for (place, own) in report.checks.iter().enumerate() {
            let number =
                |value: Option<&f64>| value.map_or("-".to_owned(), |own| format!("{own:.3}"));
            let first = |text: String| if place == 0 { text } else { String::new() };
            let flips =
                if report.flips.value().is_some() { share(&report.flips) } else { "-".to_owned() };
            let cusum = report.cusum.value().map_or("-".to_owned(), |own| {
                format!("{:.1} at `{}`, p {:.3}", own.peak, own.at, own.p)
            });
            rows.push(vec![
                first(report.name.clone()),
                own.what.to_owned(),
                own.status.name().to_owned(),
                own.n.to_string(),
                interval(&own.difference),
                format!("{:.3}", own.tolerance),
                number(own.p_holm.value()),
                number(own.smallest_visible.value()),
                first(flips),
                first(cusum),
            ]);
        }
    }
    printer.result(&table(&header, rows, &[3, 4, 5, 6, 7]));
    printer.result(&format!(
        "`{}` before, `{}` after. Changes are after minus before with 95 % intervals; p is Holm-adjusted; `visible` is the least change found four times in five.",
        found.before, found.after
    ));
    identities(&found.identities, printer);
}
