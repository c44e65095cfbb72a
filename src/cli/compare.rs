//! `venire compare`: two runs on the same cases.

use clap::Args;

use super::Global;
use super::exit::Exit;
use super::figures::{interval, percent, short};
use super::printer::{Printer, plural, table};
use super::sides::SideArgs;
use crate::calibration::compare::{CompareOptions, RunComparison, compare};
use crate::calibration::compare_certified::{CertifiedPair, Certify};
use crate::calibration::paired_recording::{Change, Identity, MeanChange};
use crate::stats::bootstrap::Resampling;

/// Compare two runs, or two files of judgements, on the same cases
///
/// Example: `venire compare 3f2a latest --labels labels.csv --positive "=good"`
#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The run before: its id, the beginning of it, or `latest`; or a file of judgements
    #[arg(value_name = "BEFORE")]
    before: String,
    /// The run after
    #[arg(value_name = "AFTER")]
    after: String,
    #[command(flatten)]
    sides: SideArgs,
    /// Exit with 1 when something got worse by more than chance
    #[arg(long)]
    fail_on_regression: bool,
    /// With labels: the false-positive rate that both are certified at, to be compared there
    #[arg(long, value_name = "RATE", default_value_t = 0.05, value_parser = rate)]
    alpha: f64,
    /// One minus the confidence that both certificates hold
    #[arg(long, value_name = "RATE", default_value_t = 0.10, value_parser = rate)]
    delta: f64,
    /// Flipped cases that are shown
    #[arg(long, value_name = "N", default_value_t = 20)]
    flips: usize,
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

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1.0 => Ok(value),
        _ => Err("expected a rate between 0 and 1, such as 0.05".into()),
    }
}

pub(super) fn run(args: &CompareArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let before = args.sides.open(&args.before, global)?;
    let mut after = args.sides.open(&args.after, global)?;
    if let Some(hint) = args.sides.group(&mut after, &args.after, global)? {
        printer.warn(&hint);
    }
    let (truth, pattern) = (args.sides.truth(&args.after, global)?, args.sides.pattern()?);
    let options = CompareOptions {
        labels: truth.as_ref().map(|own| &own.good),
        group: pattern.as_ref(),
        certify: truth
            .as_ref()
            .filter(|own| !own.by_model)
            .map(|_| Certify { alpha: args.alpha, delta: args.delta }),
        resampling: Resampling { resamples: args.resamples, seed: args.seed, level: 0.95 },
    };
    let found = compare(&before, &after, &options)?;
    if truth.is_some() && !found.decides() && args.sides.lacks_accept([&args.before, &args.after]) {
        printer.warn(
            "graded votes decide nothing by themselves, so no decision is held against the labels: say what accepts, as in `--accept \">=4\"`; until then only scores are compared",
        );
    }
    if args.json {
        printer.json(&found.to_json())?;
    } else {
        show(&found, args.flips, printer);
    }
    if found.subject().is_none_or(|own| own.score.n == 0) {
        printer.warn("no case has a score in both: nothing could be compared");
        return Ok(Exit::Inconclusive);
    }
    if args.fail_on_regression {
        for regression in &found.regressions {
            printer.warn(&format!("regression: {regression}"));
        }
        if !found.regressions.is_empty() {
            return Ok(Exit::NotAccepted);
        }
    }
    Ok(Exit::Done)
}

fn show(found: &RunComparison, flips: usize, printer: &Printer) {
    printer.result(&found.conclusion);
    printer.result("");
    printer.result(&format!(
        "`{}` before, `{}` after: {} in both ({}), {} before only, {} after only",
        found.first.name,
        found.second.name,
        plural(found.cases, "case", "cases"),
        plural(found.groups, "group", "groups"),
        found.first.alone,
        found.second.alone
    ));
    let changes: Vec<&Change> = found.panel.iter().chain(&found.judges).collect();
    if !changes.is_empty() {
        printer.result("");
        printer.result(&rows(&changes, found.labelled > 0));
        printer.result("Differences are after minus before, with 95 % intervals.");
    }
    if let Some(own) = &found.certified {
        printer.result("");
        printer.result(&certified(own));
    }
    for change in &changes {
        for (status, n) in &change.statuses {
            printer.result(&format!(
                "`{}`: {status} on {}",
                change.name,
                plural(*n, "case", "cases")
            ));
        }
    }
    identities(&found.identities, printer);
    if !found.flips.is_empty() && flips > 0 {
        printer.result("");
        printer.result(&flipped(found, flips));
    }
}

/// Both at their certified thresholds, or what is missing for that.
fn certified(own: &CertifiedPair) -> String {
    let (alpha, delta) = (own.first.alpha, own.first.delta);
    let head = format!(
        "`{}` where at most {} of the bad are accepted, each certified on the same labelled cases ({} confidence each, {} that both hold)",
        own.name,
        percent(alpha),
        percent(1.0 - delta),
        percent(1.0 - 2.0 * delta)
    );
    let rows = [&own.first, &own.second].map(|side| {
        let missing = || {
            side.labels_needed
                .map_or("not certifiable, no number of labels helps".to_owned(), |n| {
                    format!("not certifiable, {n} more bad cases needed, one a group")
                })
        };
        vec![
            side.name.clone(),
            side.threshold.map_or("-".to_owned(), short),
            if side.threshold.is_some() { interval(&side.true_positive_rate) } else { missing() },
            side.true_positive_rate.value().map_or("-".to_owned(), |rate| rate.n.to_string()),
            side.n_bad.to_string(),
        ]
    });
    let header = ["", "from score", "good accepted", "n good", "n bad"];
    let mut text = format!("{head}\n{}", table(&header, rows.to_vec(), &[1, 2, 3, 4]));
    if let Some(change) = &own.true_positive_rate {
        text.push_str(&format!(
            "\ngood cases accepted, after minus before: {} ({} gained, {} lost of {})",
            interval(&change.difference),
            change.gained,
            change.lost,
            change.n
        ));
    }
    text
}

/// Judges that are another than before.
pub(super) fn identities(identities: &[Identity], printer: &Printer) {
    for own in identities {
        let list = |set: &std::collections::BTreeSet<String>| {
            set.iter().map(|own| format!("`{own}`")).collect::<Vec<String>>().join(", ")
        };
        let text = match own.what {
            "added" => format!("judge `{}` is new", own.judge),
            "removed" => format!("judge `{}` is gone", own.judge),
            what => format!(
                "{what} of judge `{}` was {} and is {}",
                own.judge,
                list(&own.first),
                list(&own.second)
            ),
        };
        printer.result(&text);
    }
}

fn mean(own: &MeanChange) -> String {
    match (own.difference.value(), own.first.value(), own.second.value()) {
        (Some(_), ..) => interval(&own.difference),
        (None, Some(a), Some(b)) => format!("{} (all alike)", short(b - a)),
        _ => "-".to_owned(),
    }
}

fn rows(changes: &[&Change], labelled: bool) -> String {
    let mut header = vec!["", "n", "score", "accepted", "flips"];
    if labelled {
        header.extend(["agreement", "FPR"]);
    }
    header.extend(["unscored", "$ a case", "ms a case"]);
    let rows = changes
        .iter()
        .map(|own| {
            let flips = own.accepted.flips.value().map_or("-".to_owned(), |share| {
                format!(
                    "{} ({} up, {} down)",
                    percent(share.estimate),
                    own.accepted.gained,
                    own.accepted.lost
                )
            });
            let mut cells = vec![
                own.name.clone(),
                own.score.n.to_string(),
                mean(&own.score),
                interval(&own.accepted.difference),
                flips,
            ];
            if labelled {
                let of = |own: &Option<crate::calibration::paired_recording::ShareChange>| {
                    own.as_ref().map_or("-".to_owned(), |own| interval(&own.difference))
                };
                cells.push(of(&own.agreement));
                cells.push(of(&own.false_positive_rate));
            }
            cells.push(interval(&own.unscored.difference));
            cells.push(own.cost_usd.difference.value().map_or_else(
                || mean(&own.cost_usd),
                |own| format!("{:.6} [{:.6}, {:.6}]", own.estimate, own.lower, own.upper),
            ));
            cells.push(own.latency_ms.difference.value().map_or_else(
                || mean(&own.latency_ms),
                |own| format!("{:.1} [{:.1}, {:.1}]", own.estimate, own.lower, own.upper),
            ));
            cells
        })
        .collect();
    let numbers: Vec<usize> = (1..header.len()).collect();
    table(&header, rows, &numbers)
}

fn flipped(found: &RunComparison, most: usize) -> String {
    let mut header: Vec<&str> = vec!["flipped case", "before", "after"];
    if found.labelled > 0 {
        header.push("label");
    }
    let judges: Vec<&str> = found.judges.iter().map(|own| own.name.as_str()).collect();
    header.extend(&judges);
    let value = |own: &serde_json::Value| match own {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::Number(number) => {
            number.as_f64().map_or_else(|| number.to_string(), |own| format!("{own:.2}"))
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let rows = found
        .flips
        .iter()
        .take(most)
        .map(|own| {
            let mut cells = vec![own.case.clone(), own.first.to_owned(), own.second.to_owned()];
            if found.labelled > 0 {
                let label = own.good.map_or("-", |good| if good { "good" } else { "bad" });
                cells.push(label.to_owned());
            }
            cells.extend(
                own.votes
                    .iter()
                    .map(|vote| format!("{} to {}", value(&vote.first), value(&vote.second))),
            );
            cells
        })
        .collect();
    let mut text = table(&header, rows, &[]);
    if found.flips.len() > most {
        text.push_str(&format!(
            "\nand {} more: `--flips N` shows more, `--json` all",
            found.flips.len() - most
        ));
    }
    text
}
