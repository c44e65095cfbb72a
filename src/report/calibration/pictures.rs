//! Which pictures a calibration has, and how each is to be read.

use super::sheet::{Metrics, Sheet};
use super::tables::ranked;
use crate::calibration::certificate::{CertificateStatus, Mode};
use crate::report::chart::forest::{Forest, Row};
use crate::report::chart::{
    Picture, agreement, correlation, histogram, percent, reliability, roc, threshold,
};
use crate::report::words::plural;

/// Pictures under one heading: one large, or one small a judge.
pub(super) struct Group {
    /// The heading.
    pub(super) title: &'static str,
    /// How to read them, with n where it is the same for all.
    pub(super) says: String,
    /// The pictures.
    pub(super) pictures: Vec<Picture>,
}

/// The large pictures, one a heading.
pub(super) fn large(sheet: &Sheet) -> Vec<Picture> {
    // In this order the two columns of a wide page end at about the same height.
    [threshold(sheet), leaderboard(sheet), bias(sheet), roc(sheet), correlation(sheet)]
        .into_iter()
        .flatten()
        .collect()
}

/// One picture a judge, by kind.
pub(super) fn small(sheet: &Sheet) -> Vec<Group> {
    [histograms(sheet), reliabilities(sheet), differences(sheet)]
        .into_iter()
        .filter(|group| !group.pictures.is_empty())
        .collect()
}

fn label(own: &Metrics) -> String {
    if own.name == "plain_median" { "plain median".to_owned() } else { own.name.clone() }
}

fn threshold(sheet: &Sheet) -> Option<Picture> {
    let curve = sheet.curves.threshold.value()?;
    let own = &sheet.certificate.certificate;
    let certified = (own.status == CertificateStatus::Certified)
        .then_some(own.threshold.zip(own.tiebreak))
        .flatten();
    let error = match own.mode {
        Mode::FalseAcceptanceShare => "bad among accepted",
        Mode::FalsePositiveRate | Mode::Expected => "bad accepted",
    };
    let limits = threshold::Limits {
        alpha: own.alpha,
        confidence: 1.0 - own.delta,
        certified,
        error: error.to_owned(),
    };
    let (unit, bad) =
        if sheet.loops.is_some() { ("loops", "bad loops") } else { ("cases", "bad cases") };
    let end = match certified {
        Some(_) => "The certificate takes the lowest threshold that keeps the promise.",
        None => "No threshold keeps the promise.",
    };
    let says = format!(
        "The line: {error}, counted on {} {bad}, one a group, of {} {unit} of {}. The shaded band ends at its upper bound at {} confidence, which has to stay below the limit. {end}",
        curve.n_bad,
        curve.n,
        sheet.certify(),
        percent(limits.confidence)
    );
    threshold::draw(curve, &limits, &says)
}

fn leaderboard(sheet: &Sheet) -> Option<Picture> {
    let rows: Vec<Row> = ranked(sheet)
        .into_iter()
        .map(|own| Row {
            name: label(own),
            figure: own.interval("balanced_accuracy"),
            panel: own.name == sheet.panel.metrics.name,
        })
        .collect();
    Forest {
        title: "Balanced accuracy".into(),
        says: format!(
            "Mean of good answers accepted and bad ones refused, with its interval, on {}; 50% is what chance reaches. A certified threshold is strict: it costs the panel good answers, and so places here.",
            sheet.certify()
        ),
        reference: Some(0.5),
        percent: true,
        axis: "balanced accuracy".into(),
    }
    .draw(&rows)
}

fn bias(sheet: &Sheet) -> Option<Picture> {
    let mut rows: Vec<Row> = sheet
        .judges
        .iter()
        .map(|judge| Row {
            name: label(&judge.metrics),
            figure: judge.metrics.bias.clone(),
            panel: false,
        })
        .collect();
    rows.push(Row {
        name: label(&sheet.panel.plain_median),
        figure: sheet.panel.plain_median.bias.clone(),
        panel: false,
    });
    rows.push(Row {
        name: label(&sheet.panel.metrics),
        figure: sheet.panel.metrics.bias.clone(),
        panel: true,
    });
    Forest {
        title: "Bias".into(),
        says: format!(
            "Mean of score minus label, with its interval, on {}. Right of 0 a judge is too lenient, left of it too strict. The panel's is what remains after the maps.",
            sheet.certify()
        ),
        reference: Some(0.0),
        percent: false,
        axis: "score minus label".into(),
    }
    .draw(&rows)
}

fn roc(sheet: &Sheet) -> Option<Picture> {
    let curve =
        |own: &Metrics, points: &crate::calibration::curves::JudgeCurves, panel: bool| roc::Curve {
            name: label(own),
            points: points.roc.value().cloned().unwrap_or_default(),
            works_at: own
                .false_positive_rate
                .value()
                .zip(own.true_positive_rate.value())
                .map(|(x, y)| (x.estimate, y.estimate)),
            auc: own.interval("auc"),
            panel,
        };
    let mut curves: Vec<roc::Curve> = sheet
        .judges
        .iter()
        .zip(&sheet.curves.judges)
        .map(|(judge, points)| curve(&judge.metrics, points, false))
        .collect();
    curves.push(curve(&sheet.panel.metrics, &sheet.curves.panel, true));
    let own = &sheet.curves.panel;
    roc::draw(
        &curves,
        &format!(
            "The numbered points are where each judge, and the panel, work now. Up and to the left is better; the diagonal is chance. {} good and {} bad cases of {} have a panel's key.",
            own.good,
            own.bad,
            sheet.certify()
        ),
    )
}

fn correlation(sheet: &Sheet) -> Option<Picture> {
    if sheet.judges.len() < 2 {
        return None;
    }
    let own = &sheet.panel.dependence;
    let effective = own.effective_judges.value().map_or_else(
        || "How many independent judges they are worth is not known.".to_owned(),
        |effective| {
            format!(
                "{} are worth {effective:.1} independent ones.",
                plural(sheet.judges.len() as u64, "judge", "judges")
            )
        },
    );
    correlation::draw(
        &sheet.names(),
        &own.error_correlation,
        own.complete_cases,
        &format!(
            "Correlation of errors given the truth, on the {} cases of {} that every judge decided; 0 is independence, 1 one judge twice. {effective}",
            own.complete_cases,
            sheet.certify()
        ),
    )
}

/// Judges and panel with their curves.
fn everyone(
    sheet: &Sheet,
) -> impl Iterator<Item = (&Metrics, &crate::calibration::curves::JudgeCurves)> {
    sheet
        .judges
        .iter()
        .map(|judge| &judge.metrics)
        .zip(&sheet.curves.judges)
        .chain([(&sheet.panel.metrics, &sheet.curves.panel)])
}

fn histograms(sheet: &Sheet) -> Group {
    Group {
        title: "Scores of good and bad answers",
        says: format!(
            "On {}. Good answers upwards, bad ones downwards, each as a share of its kind. The upright line is where the judge starts to accept; the panel is shown by the first number of its key.",
            sheet.certify()
        ),
        pictures: everyone(sheet)
            .filter_map(|(own, curves)| {
                let threshold = own.operating_point.as_ref().and_then(|point| point.threshold);
                histogram::draw(curves, threshold)
            })
            .collect(),
    }
}

fn reliabilities(sheet: &Sheet) -> Group {
    let band = everyone(sheet)
        .filter_map(|(_, curves)| curves.reliability.as_ref()?.value())
        .any(|own| own.band == crate::calibration::curves::Band::Consistency);
    let says = if band {
        "The label found at each score (dots, larger for more cases) and its monotone fit (line; CORP). On the diagonal scores mean what they say; in the shaded band the distance may be chance. Upright bars, where scores have another unit than labels: share of good cases with its interval."
    } else {
        "Share of good cases at each score (dots, larger for more cases; bars: interval) and its monotone fit (line; CORP)."
    };
    Group {
        title: "What scores mean (reliability)",
        says: format!(
            "On {}. {says} Judges that only accept or refuse have none.",
            sheet.certify()
        ),
        pictures: everyone(sheet)
            .filter_map(|(own, curves)| {
                reliability::draw(&own.name, curves.reliability.as_ref()?.value()?)
            })
            .collect(),
    }
}

fn differences(sheet: &Sheet) -> Group {
    Group {
        title: "Score minus label (Bland-Altman)",
        says: format!(
            "On {}. Each dot stands for cases at that place, larger for more. The line is the mean difference, the broken ones its limits of agreement: 95% of differences lie between them if they are normal.",
            sheet.certify()
        ),
        pictures: everyone(sheet)
            .filter_map(|(own, curves)| {
                agreement::draw(&own.name, curves.differences.as_ref()?.value()?, &own.bias)
            })
            .collect(),
    }
}
