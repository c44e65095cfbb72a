//! The calibration in sentences that need no statistics to be understood, and that promise no
//! more than the certificate does.

use super::sheet::Sheet;
use crate::calibration::certificate::{CertificateStatus, Mode};
use crate::calibration::certified_alone::accepting_more;
use crate::calibration::figure::{Figure, Measured};
use crate::report::chart::{percent, short};
use crate::report::words::plural;

/// The first sentence, what stands behind it, and the rest.
pub(super) struct Summary {
    /// Whether there is a promise.
    pub(super) certified: bool,
    /// The sentence to remember.
    pub(super) headline: String,
    /// More sentences.
    pub(super) lines: Vec<String>,
}

pub(super) fn summary(sheet: &Sheet) -> Summary {
    let certified = sheet.certificate.certificate.status == CertificateStatus::Certified;
    let headline = if certified { promise(sheet) } else { missing(sheet) };
    let mut lines = Vec::new();
    lines.push(if certified { behind(sheet) } else { observed(sheet) });
    lines.extend(accepting_more(&sheet.certified_alone).map(|text| text.replace('`', "")));
    // What judges share takes two of them.
    if sheet.judges.len() > 1 {
        lines.push(together(sheet));
        lines.extend(best(sheet));
    }
    let noise = &sheet.label_noise;
    if noise.suspects_total > 0 {
        lines.push(format!(
            "All judges contradict {} of the {} on whose cases every judge decided ({}): check those first.",
            plural(noise.suspects_total, "label", "labels"),
            noise.compared,
            sheet.whole()
        ));
    }
    lines.push(data(sheet));
    Summary { certified, headline, lines }
}

/// A share as so many of a hundred; finer where that would be none.
fn of_hundred(share: f64) -> String {
    let hundred = share * 100.0;
    if hundred.fract().abs() < 1e-9 || hundred >= 10.0 {
        format!("{hundred:.0} in 100")
    } else if hundred >= 1.0 {
        format!("{hundred:.1} in 100")
    } else {
        format!("{:.1} in 1000", hundred * 10.0)
    }
}

fn interval(figure: &Figure) -> String {
    format!(
        "{} interval {} to {}, n = {}",
        percent(figure.level),
        percent(figure.lower),
        percent(figure.upper),
        figure.n
    )
}

fn what(sheet: &Sheet) -> (String, &'static str) {
    match (&sheet.loops, sheet.certificate.generations) {
        (Some(_), k) => (
            format!(
                "of loops that stay bad for {}",
                plural(u64::from(k), "generation", "generations")
            ),
            "loops",
        ),
        (None, _) => ("of bad ones".to_owned(), "answers"),
    }
}

fn promise(sheet: &Sheet) -> String {
    let own = &sheet.certificate.certificate;
    let accepts = match own.true_positive_rate.value() {
        Some(rate) => format!(
            "The panel accepts {:.0} of 100 good answers; ",
            (rate.estimate * 100.0).clamp(0.0, 100.0)
        ),
        None => "The panel: ".to_owned(),
    };
    let (bad, _) = what(sheet);
    let confidence = percent(1.0 - own.delta);
    match own.mode {
        Mode::FalsePositiveRate => format!(
            "{accepts}{bad} it accepts at most {}, with {confidence} confidence.",
            of_hundred(own.alpha)
        ),
        Mode::FalseAcceptanceShare => format!(
            "{accepts}of all that it accepts at most {} are bad, with {confidence} confidence, as long as the mix of good and bad stays.",
            of_hundred(own.alpha)
        ),
        Mode::Expected => format!(
            "{accepts}{bad} it accepts at most {} on average over many calibrations; this is weaker than a bound with confidence.",
            of_hundred(own.alpha)
        ),
    }
}

/// Why nothing can be promised.
fn missing(sheet: &Sheet) -> String {
    let own = &sheet.certificate.certificate;
    if sheet.labels.by_model {
        return "Nothing is promised: labels by a model show agreement with that model, and not the truth.".to_owned();
    }
    let reason = own.reason.as_deref().unwrap_or("no reason is known");
    let Some(more) = own.labels_needed else {
        return format!("Nothing can be promised yet: {reason}.");
    };
    // The reason says it too, in the certificate's own terms.
    let reason = reason.split(": collect").next().unwrap_or(reason);
    let kind = match (own.mode, &sheet.loops) {
        (Mode::FalseAcceptanceShare, _) => "labelled cases",
        (_, Some(_)) => "bad loops",
        _ => "labelled bad answers",
    };
    let groups = if sheet.split.clustered { ", each of a group of its own," } else { "" };
    let all = match sheet.split.fit_share {
        Some(share) => format!(
            " (about {:.0} more in all, as {} of the groups go to the fit)",
            (more as f64 / (1.0 - share)).ceil(),
            percent(share)
        ),
        None => String::new(),
    };
    format!(
        "Nothing can be promised yet: {reason}. {more} more {kind}{groups} are missing from the part that certifies{all}."
    )
}

fn behind(sheet: &Sheet) -> String {
    let own = &sheet.certificate.certificate;
    let (_, kind) = what(sheet);
    let drawn = match own.n_bad_cases {
        all if all > own.n_bad => {
            format!(" (one drawn from each group of the certify part that has one; {all} in all)")
        }
        _ => String::new(),
    };
    let tested = match (own.mode, own.false_accepts, own.k) {
        (Mode::FalseAcceptanceShare, Some(wrong), Some(accepted)) => {
            format!("In the test {wrong} of {accepted} accepted cases were bad")
        }
        (_, Some(wrong), Some(k)) => {
            format!(
                "In the test it accepted {wrong} of {} bad {kind}{drawn}; up to {k} may be",
                own.n_bad
            )
        }
        _ => format!("It stands on {} bad {kind}{drawn}", own.n_bad),
    };
    let bound = own.upper_bound.map_or_else(String::new, |upper| {
        format!("; upper bound {} with {} confidence", percent(upper), percent(1.0 - own.delta))
    });
    let good = own.true_positive_rate.value().map_or_else(String::new, |rate| {
        format!(". Good answers accepted: {} ({})", percent(rate.estimate), interval(rate))
    });
    format!("{tested}{bound}{good}.")
}

/// What was seen, where nothing is promised.
fn observed(sheet: &Sheet) -> String {
    let own = &sheet.panel.metrics;
    let side = |figure: &Measured<Figure>, what: &str| match figure.value() {
        Some(rate) => {
            format!("{} of the {what} answers ({})", percent(rate.estimate), interval(rate))
        }
        None => format!("an unknown share of the {what} answers"),
    };
    let Some(point) = &own.operating_point else {
        return "No threshold could be fitted: both good and bad labelled cases are needed."
            .to_owned();
    };
    format!(
        "With its {} threshold the panel accepted, on {}, {} and {}: an observation, not a promise.",
        point.origin,
        sheet.certify(),
        side(&own.true_positive_rate, "good"),
        side(&own.false_positive_rate, "bad")
    )
}

fn together(sheet: &Sheet) -> String {
    let own = &sheet.panel.dependence;
    let judges = plural(sheet.judges.len() as u64, "judge", "judges");
    let mut text = match own.effective_judges.value() {
        Some(effective) => {
            let correlation = own.mean_error_correlation.value().map_or_else(String::new, |mean| {
                format!(", mean error correlation {}", short(*mean))
            });
            format!(
                "{judges} err together like {:.1} independent ones (n = {}, those of {} that every judge decided{correlation}).",
                effective,
                own.complete_cases,
                sheet.certify()
            )
        }
        None => format!("{judges}; how far they err together is not known."),
    };
    if let Some(all) = own.all_wrong.value() {
        text.push_str(&format!(
            " All of them are wrong on {} of these cases (interval {} to {}, n = {}): no vote can mend that.",
            percent(all.estimate),
            percent(all.lower),
            percent(all.upper),
            all.n
        ));
    }
    text
}

fn best(sheet: &Sheet) -> Option<String> {
    let own = sheet.panel.dependence.best_single.as_ref()?;
    let name = crate::report::words::plain(&own.name);
    Some(format!(
        "The best judge by itself is {name}, right on {} of the same cases ({}). With its own threshold, and chosen for being the best here: on new cases expect less.",
        percent(own.accuracy.estimate),
        interval(&own.accuracy)
    ))
}

fn data(sheet: &Sheet) -> String {
    let counts = &sheet.counts;
    let mut text = format!(
        "Data: {}, {} good and {} bad by {}.",
        plural(counts.cases, "labelled case", "labelled cases"),
        counts.good,
        counts.bad,
        sheet.positive
    );
    if let (Some(fit), Some(certify)) = (&sheet.split.fit, &sheet.split.certify) {
        text.push_str(&format!(
            " Maps, thresholds and smaller panels come from the fit part ({}); the certificate, and every figure that says nothing else, from the certify part (the other {}).",
            plural(fit.cases, "case", "cases"),
            certify.cases
        ));
    } else {
        text.push_str(" No split: the figures describe the cases that were fitted.");
    }
    text
}
