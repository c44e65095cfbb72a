//! A calibration in words and tables, for a person.

use super::calibrate_loops;
use super::printer::{Printer, plural, table};
use crate::calibration::certificate::{Certificate, CertificateStatus, Mode, bad_units};
use crate::calibration::certified_alone::accepting_more;
use crate::calibration::figure::{Figure, Measured};
use crate::calibration::judge_metrics::JudgeMetrics;
use crate::calibration::report::Calibration;
use crate::calibration::slices::{Slice, SliceReport};
use crate::calibration::subsets::Subsets;

/// What the table's rows and last columns are.
const LEGEND: &str = "FPR: accepted of the bad, TPR: accepted of the good, each with its interval. map: how votes are brought to the labels; accepts: the vote from which an answer counts as accepted. plain_median: the median of the votes as given; as_run: what the panel of the run decided, with its own threshold and vetoes; panel: that of the mapped votes; in brackets what needs no judge, such as (accept_all).";

/// Under so many cases a bias is not shown: its interval by Student's t rests on the shape of
/// a distribution that nobody has seen.
const FEW: u64 = 5;

/// Slices that are listed.
const SLICES: usize = 20;

/// Suspect labels and subsets that are named.
const SHOWN: usize = 5;

pub(super) fn show(calibration: &Calibration, printer: &Printer) {
    printer.result(&joined(calibration));
    printer.result("");
    printer.result(&judges(calibration));
    printer.result("");
    if calibration.judges.len() > 1 {
        printer.result(&dependence(calibration));
        printer.result("");
    }
    printer.result(&promise(
        &calibration.certificate.certificate,
        calibration.certificate.binding.generations,
        calibration.loops.is_some(),
        calibration.loops.is_none() && !calibration.split.clustered,
    ));
    let certified = calibration.certificate.certificate.certified_key().is_some();
    if let Some(more) = accepting_more(&calibration.certified_alone) {
        printer.result(&more);
    }
    if let Some(subsets) = subsets(&calibration.subsets).filter(|_| certified) {
        printer.result(&subsets);
    }
    if let Some(own) = &calibration.retest {
        let once = match own.once.as_slice() {
            [] => String::new(),
            names => format!("; {} measured nothing twice, and count as exact", names.join(", ")),
        };
        printer.result("");
        printer.result(&format!(
            "The panel's score varies by {:.3} [{:.3}, {:.3}] (standard deviation) when it judges the same output again (n = {}){once}",
            own.sd, own.lower, own.upper, own.n
        ));
    }
    if let Some(loops) = &calibration.loops {
        printer.result("");
        printer.result(&calibrate_loops::text(loops));
    }
    for own in &calibration.slices {
        printer.result("");
        printer.result(&slices(own, &certify(calibration)));
    }
    let noise = &calibration.label_noise;
    if noise.suspects_total > 0 {
        let first: Vec<String> = noise
            .check_first
            .iter()
            .take(SHOWN)
            .map(|suspect| {
                let row = suspect.row.map_or_else(String::new, |row| format!(" row {row}"));
                format!("`{}`{row}", suspect.case)
            })
            .collect();
        printer.result("");
        printer.result(&format!(
            "Labels to check first: all judges contradict {} of the {} labels on whose cases every judge decided ({}): {}",
            noise.suspects_total,
            noise.compared,
            whole(calibration),
            first.join(", ")
        ));
    }
}

/// The panel's slices, or a lone judge's: raw figures, and the shrunk ones beside them.
fn slices(report: &SliceReport, on: &str) -> String {
    let header = ["slice", "n", "bias", "shrunk", "bad", "accepted", "FPR", "shrunk", "p"];
    let Some(own) = report.judges.first() else { return String::new() };
    let number = |own: &Measured| plain(own);
    let mut listed: Vec<&Slice> = own.slices.iter().collect();
    let rate = |own: &Slice| own.shrunk_false_positive_rate.value().copied().unwrap_or(-1.0);
    listed.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let more = listed.len().saturating_sub(SLICES);
    let rows = listed
        .into_iter()
        .take(SLICES)
        .map(|own| {
            vec![
                own.slice.clone(),
                own.n.to_string(),
                interval(&own.bias),
                interval(&own.shrunk_bias),
                own.bad.to_string(),
                own.false_accepts.to_string(),
                interval(&own.false_positive_rate),
                number(&own.shrunk_false_positive_rate),
                number(&own.p_holm),
            ]
        })
        .collect();
    let mut text = format!(
        "The {} by `{}` on {on}, highest shrunk FPR first; every judge stands in `--json`\n{}",
        own.judge,
        report.field,
        table(&header, rows, &[1, 2, 3, 4, 5, 6, 7, 8])
    );
    if more > 0 {
        text.push_str(&format!("\n… and {more} more slices"));
    }
    text
}

fn joined(calibration: &Calibration) -> String {
    let counts = &calibration.counts;
    let mut text = match calibration.kind {
        "calibration" => "Calibration".to_owned(),
        _ => "Agreement with a model's labels (not a calibration)".to_owned(),
    };
    text.push_str(&format!(
        " of criterion `{}`: {} ({} good, {} bad by `{}`), labels {}",
        calibration.criterion,
        plural(counts.cases, "labelled case", "labelled cases"),
        counts.good,
        counts.bad,
        calibration.positive,
        calibration.labels.scale.note,
    ));
    let split = &calibration.split;
    if let (Some(fit), Some(certify)) = (&split.fit, &split.certify) {
        text.push_str(&format!(
            "\nSplit by {}, seed {}: fit part {} ({}), from which maps, thresholds and smaller panels come; certify part {} ({}), for the certificate and every figure that says nothing else",
            split.group,
            split.seed,
            plural(fit.cases, "case", "cases"),
            plural(fit.groups, "group", "groups"),
            plural(certify.cases, "case", "cases"),
            plural(certify.groups, "group", "groups"),
        ));
    } else {
        text.push_str("\nNo split: figures describe the fitted cases, and nothing is certified");
    }
    if let Some(left) = counts.left_out() {
        text.push_str(&format!("\nNot used: {left}"));
    }
    text
}

fn judges(calibration: &Calibration) -> String {
    let header = [
        "judge",
        "n",
        "bias",
        "FPR",
        "TPR",
        "bad of accepted",
        "accuracy",
        "kappa",
        "AUC",
        "map",
        "accepts",
    ];
    let mut rows: Vec<Vec<String>> =
        calibration.judges.iter().map(|j| row(&j.metrics, j.map.map.kind())).collect();
    rows.push(row(&calibration.panel.plain_median, ""));
    rows.extend(calibration.panel.as_run.as_ref().map(|own| row(own, "")));
    rows.push(row(&calibration.panel.metrics, calibration.panel.aggregate.name()));
    for baseline in &calibration.baselines {
        if baseline.accuracy.value().is_none() {
            continue;
        }
        let mut row = vec![format!("({})", baseline.name), baseline.n.to_string(), String::new()];
        row.push(plain(&baseline.false_positive_rate));
        row.push(plain(&baseline.true_positive_rate));
        row.push(plain(&baseline.false_acceptance_share));
        row.push(point(&baseline.accuracy));
        row.push(String::new());
        row.push(plain(&baseline.auc));
        row.extend([String::new(), String::new()]);
        rows.push(row);
    }
    let on = certify(calibration);
    format!(
        "Judges and panel on {on}\n{}\n{LEGEND}",
        table(&header, rows, &[1, 2, 3, 4, 5, 6, 7, 8])
    )
}

/// The part that figures stand on, with its cases; all labelled ones without a split.
fn certify(calibration: &Calibration) -> String {
    match &calibration.split.certify {
        Some(part) => format!("the certify part ({})", plural(part.cases, "case", "cases")),
        None => whole(calibration),
    }
}

/// The part that was fitted on, in the same way.
fn fit(calibration: &Calibration) -> String {
    match &calibration.split.fit {
        Some(part) => format!("the fit part ({})", plural(part.cases, "case", "cases")),
        None => whole(calibration),
    }
}

/// Both parts together.
fn whole(calibration: &Calibration) -> String {
    let both = if calibration.split.fit.is_some() { ", both parts" } else { "" };
    format!("all {}{both}", plural(calibration.counts.cases, "labelled case", "labelled cases"))
}

/// A bias of a handful of cases is a number about those cases alone.
fn bias(metrics: &JudgeMetrics) -> String {
    match metrics.bias.value() {
        Some(own) if own.n < FEW => format!("too few to say (n={})", own.n),
        _ => interval(&metrics.bias),
    }
}

fn row(metrics: &JudgeMetrics, map: &str) -> Vec<String> {
    let accepts = metrics.operating_point.as_ref().map_or("nothing fitted".to_owned(), |point| {
        match point.origin {
            "binary" => "its positive class".to_owned(),
            "majority" => "majority".to_owned(),
            "certified" => "certified threshold".to_owned(),
            origin => match point.threshold {
                Some(threshold) => format!(">= {} ({origin})", number(threshold)),
                None => origin.to_owned(),
            },
        }
    });
    vec![
        metrics.name.clone(),
        metrics.n.to_string(),
        bias(metrics),
        interval(&metrics.false_positive_rate),
        interval(&metrics.true_positive_rate),
        point(&metrics.false_acceptance_share),
        plain(&metrics.accuracy),
        plain(&metrics.cohen_kappa),
        plain(&metrics.auc),
        map.to_owned(),
        accepts,
    ]
}

fn dependence(calibration: &Calibration) -> String {
    let own = &calibration.panel.dependence;
    let m = calibration.judges.len();
    let judges = plural(m as u64, "judge", "judges");
    let correlation = plain(&own.mean_error_correlation);
    let of = format!(", those of {} that every judge decided", certify(calibration));
    let mut text = match own.effective_judges.value() {
        None => format!("How far {judges} err together can't be said from these cases."),
        Some(like) if *like >= m as f64 => format!(
            "{judges} act like at least as many independent ones (mean error correlation {correlation}, n = {}{of}).",
            own.complete_cases
        ),
        Some(like) => format!(
            "{judges} act like {like:.1} independent ones (mean error correlation {correlation}, n = {}{of}).",
            own.complete_cases
        ),
    };
    if let Some(all) = own.all_wrong.value() {
        text.push_str(&format!(
            " All are wrong on {} of these cases (at most {}).",
            percent(all.estimate),
            percent(all.upper)
        ));
    }
    if let Some(gap) = own.condorcet_gap.value() {
        let word = if *gap >= 0.0 { "less" } else { "more" };
        text.push_str(&format!(
            " Their majority is right {} {word} often than that of independent judges.",
            percent(gap.abs())
        ));
    }
    if let Some(best) = &own.best_single {
        text.push_str(&format!(
            "\nBest single judge: `{}`, accuracy {}, on the same cases of {}.",
            best.name,
            share(&best.accuracy),
            certify(calibration)
        ));
    }
    if let Some(cheapest) = &own.cheapest_subset {
        text.push_str(&format!(
            "\nSmallest panel within the interval of the best of {}, compared by majority on {}: {}, accuracy {}",
            plural(own.subsets_compared, "subset", "subsets"),
            fit(calibration),
            cheapest.judges.join(" + "),
            share(&cheapest.accuracy)
        ));
        // What it has to be better than, on the same cases.
        let alone = own.subsets.iter().filter(|set| set.judges.len() == 1);
        let alone = alone.max_by(|a, b| a.accuracy.estimate.total_cmp(&b.accuracy.estimate));
        if let Some(alone) = alone.filter(|_| cheapest.judges.len() > 1) {
            text.push_str(&format!(
                "; the best single judge there: `{}`, {}",
                alone.judges.join(""),
                share(&alone.accuracy)
            ));
        }
        text.push('.');
    }
    text
}

/// For how many smaller panels there is a threshold.
fn subsets(subsets: &Subsets) -> Option<String> {
    let sets = subsets.sets.iter().map(|set| &set.certificate);
    let sizes = subsets.sizes.iter().map(|size| &size.certificate);
    let certified = sets.chain(sizes).filter(|own| own.key().is_some()).count();
    let (all, what) = match (subsets.sets.len(), subsets.sizes.len()) {
        (0, 0) => return None,
        (0, n) => (n, "sizes of a smaller panel"),
        (n, _) => (n, "smaller panels that reach the quorum"),
    };
    let rest = if certified < all { "; the others leave a case undecided" } else { "" };
    Some(format!(
        "When judges fail to answer: {certified} of {all} {what} have a threshold of their own{rest}."
    ))
}

fn promise(certificate: &Certificate, generations: u32, loops: bool, independent: bool) -> String {
    let bad_loops = format!("of loops that stay bad for {generations} generations it accepts");
    let what = match certificate.mode {
        Mode::FalsePositiveRate | Mode::Expected if loops => bad_loops.as_str(),
        Mode::FalsePositiveRate | Mode::Expected => "of truly bad answers it accepts",
        Mode::FalseAcceptanceShare => "of the accepted answers bad are",
    };
    if certificate.status == CertificateStatus::NotCertifiable {
        let reason = certificate.reason.as_deref().unwrap_or("no reason is known");
        return format!("Not certifiable: {reason}.");
    }
    let strength = if certificate.mode == Mode::Expected {
        "on average".to_owned()
    } else {
        format!("with {} confidence", percent(1.0 - certificate.delta))
    };
    let mut text = format!(
        "Certified: {what} at most {}, {strength} (in the certify part {} of {} accepted, {} allowed).",
        percent(certificate.alpha),
        certificate.false_accepts.unwrap_or_default(),
        bad_units(certificate.n_bad, &certificate.sampling, loops),
        certificate.k.unwrap_or_default(),
    );
    if certificate.mode == Mode::FalseAcceptanceShare {
        text = format!(
            "Certified: {what} at most {}, {strength} (in the certify part {} of {} accepted cases are bad).",
            percent(certificate.alpha),
            certificate.false_accepts.unwrap_or_default(),
            certificate.k.unwrap_or_default(),
        );
    }
    if certificate.n_bad_cases > certificate.n_bad && !loops {
        text.push_str(&format!(
            " One bad case was drawn from each of these groups; the certify part has {} bad cases in all.",
            certificate.n_bad_cases
        ));
    }
    if independent {
        text.push_str(" Each case counted as independent.");
    }
    if let Some(rate) = certificate.true_positive_rate.value() {
        text.push_str(&format!(
            "\nOf {} it accepts {} there.",
            if loops { "loops that become good" } else { "truly good answers" },
            share(rate)
        ));
    }
    if let Some(rule) = &certificate.rule {
        text.push_str(&format!("\nRule: {rule}."));
    }
    text
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn percent(value: f64) -> String {
    format!("{}%", number((value * 1000.0).round() / 10.0))
}

/// A share with its interval and n.
fn share(figure: &Figure) -> String {
    format!(
        "{} [{} to {}, n = {}]",
        percent(figure.estimate),
        percent(figure.lower),
        percent(figure.upper),
        figure.n
    )
}

fn plain(value: &Measured) -> String {
    value.value().map_or("undefined".to_owned(), |value| format!("{value:.3}"))
}

fn point(value: &Measured<Figure>) -> String {
    value.value().map_or("undefined".to_owned(), |figure| format!("{:.3}", figure.estimate))
}

fn interval(value: &Measured<Figure>) -> String {
    value.value().map_or("undefined".to_owned(), |figure| {
        format!("{:.3} [{:.3}, {:.3}]", figure.estimate, figure.lower, figure.upper)
    })
}
