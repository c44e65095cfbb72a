//! `venire replay`: what another policy would have made of recorded loops.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;

use super::exit::Exit;
use super::panel::Keys;
use super::printer::Printer;
use super::targets::Targets;
use crate::calibration::Positive;
use crate::calibration::grouping::Grouping;
use crate::control::replay::{Reading, Recorded, Replayed, metrics, read, replay};
use crate::control::setup::{decide_by_profile, is_deterministic, only_threshold, take_noise};
use crate::control::{LoopSpec, Policy};
use crate::judge::BuildContext;
use crate::panel::Panel;

/// Play recorded loops under another policy, without asking any model
///
/// Takes event logs of runs, and tables in CSV or JSON Lines with the columns `trajectory`,
/// `generation`, `score` (or one column a judge) and optional `label`: the tables that
/// `venire calibrate --trajectories` takes.
///
/// Example: `venire replay trajectories.csv --policy loop.toml`
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// Event logs and tables
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The loop file whose `[exit]`, `[budget]`, `[strategy]` and `[panel]` hold
    #[arg(long, value_name = "LOOP")]
    policy: PathBuf,
    /// In tables: a column to use as a judge, repeatable; by default `score`, else those of the
    /// policy's panel, else every column without a meaning of its own
    #[arg(long = "judge", value_name = "COLUMN")]
    judges: Vec<String>,
    /// In tables: which labels are good, such as `>=4`, `=yes` or `good,excellent`; 1 and `true`
    /// if not given
    #[arg(long, value_name = "RULE")]
    positive: Option<Positive>,
    /// In tables: loops with the same value of this column belong together, and intervals are
    /// drawn over such groups
    #[arg(long, value_name = "COLUMN", conflicts_with = "group_regex")]
    group: Option<String>,
    /// In tables: loops with the same first capture in their name belong together
    #[arg(long, value_name = "RE")]
    group_regex: Option<String>,
    /// What the figures must reach; with `=FILE` another list than the program's own. Exit code
    /// 1 where an interval excludes a target
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    targets: Option<Option<PathBuf>>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ReplayArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let targets = Targets::of(args.targets.as_ref())?;
    let spec = LoopSpec::read(&args.policy)?;
    // Without a panel nothing is known of its noise but what the file says.
    let deterministic = match &spec.panel {
        Some(panel) => is_deterministic(panel),
        None => spec.exit.noise_sd.is_none(),
    };
    let mut policy =
        Policy::new(&spec.exit, &spec.budget, &spec.strategy, spec.threshold, deterministic)
            .with_context(|| format!("failed to read the policy `{}`", args.policy.display()))?;
    let panel = panel(&spec, &mut policy, printer)?;
    if spec.panel.is_none() {
        policy.confirm = spec.exit.confirm.unwrap_or(0);
    }
    let mut loops: Vec<Replayed> = Vec::new();
    let mut unconfirmed = false;
    let grouping = match (&args.group, &args.group_regex) {
        (Some(column), _) => Some(Grouping::Field(column.clone())),
        (None, Some(pattern)) => Some(Grouping::pattern(pattern)?),
        (None, None) => None,
    };
    let fingerprint = panel.as_ref().map(|panel| panel.fingerprint().to_string());
    let reading = Reading {
        rules: panel.as_ref().map(|panel| &panel.rules),
        reserve: panel.as_ref().and_then(Panel::reserve).map(|panel| &panel.rules),
        panel: fingerprint.as_deref(),
        threshold: spec.threshold,
        judges: &args.judges,
        positive: args.positive.as_ref(),
        grouping: grouping.as_ref(),
    };
    for file in &args.files {
        let Recorded { trajectories, left_out, missing } = read(file, &reading)?;
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            printer.warn(&format!(
                "`{}` has no verdicts of {}, which the policy's panel has: their votes are missing",
                file.display(),
                names.join(", ")
            ));
        }
        if !left_out.is_empty() {
            let names: Vec<String> = left_out.iter().map(|name| format!("`{name}`")).collect();
            printer.warn(&format!("`{}`: not used: {}", file.display(), names.join(", ")));
        }
        for trajectory in trajectories {
            let mut policy = policy.clone();
            if !trajectory.confirms && policy.confirm > 0 {
                policy.confirm = 0;
                unconfirmed = true;
            }
            loops.push(replay(&trajectory, &Arc::new(policy)));
        }
    }
    if unconfirmed {
        printer.warn("tables hold no second judgements: outputs are accepted unconfirmed");
    }
    let judged = targets.judge(metrics(&loops));
    if args.json {
        printer.json(&judged)?;
    } else {
        printer.result(&judged.text());
    }
    Ok(targets.exit(&judged))
}

/// The policy's panel, where it can be seated.
fn panel(spec: &LoopSpec, policy: &mut Policy, printer: &Printer) -> anyhow::Result<Option<Panel>> {
    let Some(panel) = &spec.panel else { return Ok(None) };
    let mut panel = panel.clone();
    // Nobody is asked, so that no key is needed.
    let context = BuildContext::new(spec.panel_base.clone(), Keys::default().client());
    if panel.profile.is_some() {
        // Without its profile the panel would decide otherwise, and nobody would see it.
        decide_by_profile(spec, &mut panel, policy)?;
        let seated = Panel::seat(&panel, &context)?;
        // What the profile lacks is no matter here: a recording has the noise that it has.
        let _ = take_noise(policy, &panel, &seated);
        return Ok(Some(seated));
    }
    if let Some(threshold) = only_threshold(&policy.exit) {
        panel.threshold = threshold;
    }
    match Panel::seat(&panel, &context) {
        Ok(seated) => Ok(Some(seated)),
        Err(error) => {
            printer.warn(&format!(
                "the policy's panel can't be seated here, and logs are taken as they were ruled: {:#}",
                anyhow::Error::from(error)
            ));
            Ok(None)
        }
    }
}
