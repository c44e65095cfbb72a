//! Drift against a profile: labelled anchors judged again, and their rates beside those that
//! the profile was made with.
//!
//! The cases are others, so nothing is paired: the two intervals of a figure are combined.
//! The certified rule is tried on the bad anchors too, and a count that its bound makes
//! unlikely is drift, whatever the rates say.

use std::collections::BTreeSet;

use serde_json::Value;

use super::drift::{Drift, DriftCheck, DriftReport, DriftStatus, check_options, stands};
use super::error::CalibrationError;
use super::figure::{Figure, Measured};
use super::grouping::Groups;
use super::judge_metrics::{IntervalOptions, JudgeMetrics, Series, judge_metrics, series_of};
use super::labelled::Target;
use super::paired_recording::Identity;
use super::pairwise::POWER;
use super::panel::target;
use super::profile::Profile;
use super::table::{JudgeKind, Table};
use crate::ruling::Decision;
use crate::stats::certificate::needed_negatives;
use crate::stats::distribution::{
    binomial_sf_inclusive, normal_critical, normal_quantile, normal_two_sided,
};
use crate::stats::interval::clopper_pearson;
use crate::stats::multiplicity::holm;
use crate::stats::{Method, Reason};

/// Checks labelled anchors against a profile.
///
/// # Errors
/// When an option is out of its range.
pub fn drift_from_profile(
    profile: &Profile,
    table: &Table,
    groups: &Groups,
    after: &str,
    tolerance: f64,
    alpha: f64,
    intervals: IntervalOptions,
) -> Result<Drift, CalibrationError> {
    check_options(tolerance, alpha)?;
    let rows: Vec<usize> = (0..table.cases().len()).collect();
    let mut reports = Vec::new();
    let mut warnings = Vec::new();
    let range = match (table.labels.target, table.labels.scale.scale) {
        (Target::LabelScale, Some(scale)) => scale.high() - scale.low(),
        _ => 1.0,
    };
    if let Some(report) = panel(profile, table, groups, &rows, tolerance, alpha, intervals) {
        reports.push(report);
    } else {
        warnings.push("the profile certifies no threshold: only its judges are checked".to_owned());
    }
    for (j, judge) in table.judges.iter().enumerate() {
        let figures = profile.figures["judges"].as_array();
        let known = figures.into_iter().flatten().find(|own| own["name"] == *judge.name);
        let Some(known) = known else { continue };
        let metrics = anchors(table, groups, &rows, j, known, intervals);
        let mut checks = rates(known, &metrics, tolerance);
        let both = known["comparable"] == true && metrics.bias.value().is_some();
        if let (true, Some(before)) = (both, figure(&known["bias"])) {
            checks.push(check("bias", before, metrics.bias.value(), tolerance * range));
        }
        reports.push(made(judge.name.clone(), checks));
    }
    settle(&mut reports, alpha);
    let mut found = Drift {
        version: 1,
        before: format!("profile {}", profile.name),
        after: after.to_owned(),
        anchors: table.counts.cases,
        labelled: table.counts.cases,
        status: DriftStatus::Inconclusive,
        conclusion: String::new(),
        identities: identities(profile, table),
        reports,
        warnings,
    };
    found.conclude();
    Ok(found)
}

fn identities(profile: &Profile, table: &Table) -> Vec<Identity> {
    let set = |own: Option<&crate::verdict::Fingerprint>| -> BTreeSet<String> {
        own.map(ToString::to_string).into_iter().collect()
    };
    let mut found = Vec::new();
    for judge in &table.judges {
        let (what, first) = match profile.binding.fingerprints.get(&judge.name) {
            None => ("added", BTreeSet::new()),
            Some(Some(known)) if judge.fingerprint.as_ref().is_some_and(|own| own != known) => {
                ("fingerprint", set(Some(known)))
            }
            Some(_) => continue,
        };
        let second = set(judge.fingerprint.as_ref());
        found.push(Identity { judge: judge.name.clone(), what, first, second });
    }
    for (name, known) in &profile.binding.fingerprints {
        if !table.judges.iter().any(|judge| judge.name == *name) {
            let first = set(known.as_ref());
            let second = BTreeSet::new();
            found.push(Identity { judge: name.clone(), what: "removed", first, second });
        }
    }
    found
}

/// A judge on the anchors, accepting as it did when the profile was made.
fn anchors(
    table: &Table,
    groups: &Groups,
    rows: &[usize],
    j: usize,
    known: &Value,
    intervals: IntervalOptions,
) -> JudgeMetrics {
    let judge = &table.judges[j];
    let binary = judge.kind == JudgeKind::Binary;
    let (mut series, _) = series_of(&judge.scores, table.cases(), &groups.of_case, rows, |case| {
        if binary { f64::from(u8::from(case.good)) } else { case.target }
    });
    let threshold = known["operating_point"]["threshold"].as_f64();
    series.accepted =
        threshold.map(|least| series.score.iter().map(|score| *score >= least).collect());
    judge_metrics(&judge.name, judge.kind, None, &series, intervals)
}

/// The certified panel on the anchors.
fn panel(
    profile: &Profile,
    table: &Table,
    groups: &Groups,
    rows: &[usize],
    tolerance: f64,
    alpha: f64,
    intervals: IntervalOptions,
) -> Option<DriftReport> {
    profile.certificate.certified_key()?;
    let cases = table.cases();
    let mut series = Series { comparable: false, ..Series::default() };
    let mut accepted = Vec::new();
    for &i in rows {
        let vote = |name: &str| {
            table.judges.iter().find(|judge| judge.name == name).and_then(|own| own.scores[i])
        };
        let ruled = profile.rule(vote);
        let decision = match ruled.decision {
            Decision::Accept => true,
            Decision::Reject => false,
            Decision::Undecided => continue,
        };
        series.score.push(ruled.score.unwrap_or_default());
        series.target.push(target(table, &cases[i]));
        series.good.push(cases[i].good);
        series.group.push(groups.of_case[i]);
        accepted.push(decision);
    }
    let (bad, false_accepts) = drawn(&series, &accepted);
    series.accepted = Some(accepted);
    let metrics = judge_metrics("panel", JudgeKind::Graded, None, &series, intervals);
    let known = &profile.figures["panel"];
    let mut checks = rates(known, &metrics, tolerance);
    let bound = profile.certificate.alpha;
    let exact = clopper_pearson(false_accepts, bad, intervals.level);
    let p = if bad == 0 { 1.0 } else { binomial_sf_inclusive(false_accepts, bad, bound) };
    // Fewer than could certify the bound anew say nothing for it.
    let enough = needed_negatives(0, bound, alpha).is_ok_and(|least| bad >= least);
    checks.push(DriftCheck {
        what: "certified_bound",
        status: match (p <= alpha, enough) {
            (true, _) => DriftStatus::Drifted,
            (false, true) => DriftStatus::Passed,
            (false, false) => DriftStatus::Inconclusive,
        },
        n: bad,
        difference: Measured(exact.map(|own| {
            let own = Figure::from(own);
            Figure {
                estimate: own.estimate - bound,
                lower: own.lower - bound,
                upper: own.upper - bound,
                ..own
            }
        })),
        p_holm: Measured(Ok(p)),
        smallest_visible: Measured::undefined(Reason::NotIdentified),
        tolerance: 0.0,
    });
    Some(made("panel".to_owned(), checks))
}

/// How many groups have a bad anchor, and of how many the drawn one is accepted. One bad anchor
/// a group is counted, as the certificate counts them: the first of it, whatever was decided.
fn drawn(series: &Series, accepted: &[bool]) -> (u64, u64) {
    let mut seen = std::collections::HashSet::new();
    let (mut bad, mut false_accepts) = (0, 0);
    for ((good, group), accepted) in series.good.iter().zip(&series.group).zip(accepted) {
        if !good && seen.insert(*group) {
            bad += 1;
            false_accepts += u64::from(*accepted);
        }
    }
    (bad, false_accepts)
}

fn made(name: String, checks: Vec<DriftCheck>) -> DriftReport {
    DriftReport {
        name,
        status: DriftStatus::Inconclusive,
        checks,
        flips: Measured::undefined(Reason::NoData),
        cusum: Measured::undefined(Reason::NoData),
        change: None,
    }
}

fn figure(value: &Value) -> Option<Figure> {
    serde_json::from_value(value.clone()).ok()
}

fn rates(known: &Value, metrics: &JudgeMetrics, tolerance: f64) -> Vec<DriftCheck> {
    let pairs = [
        ("false_positive_rate", &metrics.false_positive_rate),
        ("true_positive_rate", &metrics.true_positive_rate),
    ];
    pairs
        .into_iter()
        .filter_map(|(what, now)| Some(check(what, figure(&known[what])?, now.value(), tolerance)))
        .collect()
}

/// Second minus first, from the two intervals (Newcombe 1998, method 10; Zou and Donner 2008).
fn check(what: &'static str, before: Figure, now: Option<&Figure>, tolerance: f64) -> DriftCheck {
    let undefined = |what| DriftCheck {
        what,
        status: DriftStatus::Inconclusive,
        n: 0,
        difference: Measured::undefined(Reason::NoData),
        p_holm: Measured::undefined(Reason::NoData),
        smallest_visible: Measured::undefined(Reason::NoData),
        tolerance,
    };
    let Some(now) = now else { return undefined(what) };
    let gap = now.estimate - before.estimate;
    let down = (now.estimate - now.lower).hypot(before.upper - before.estimate);
    let up = (now.upper - now.estimate).hypot(before.estimate - before.lower);
    // The side towards no change is the one that a test looks at.
    let error = if gap > 0.0 { down } else { up } / normal_critical(now.level);
    let p = if gap == 0.0 { 1.0 } else { normal_two_sided(gap / error) };
    DriftCheck {
        n: now.n,
        difference: Measured(Ok(Figure {
            estimate: gap,
            lower: gap - down,
            upper: gap + up,
            n: now.n,
            level: now.level,
            method: Method::Normal,
        })),
        p_holm: Measured(if p.is_nan() { Err(Reason::ZeroVariance.into()) } else { Ok(p) }),
        smallest_visible: Measured(Ok((normal_quantile(0.975) + normal_quantile(POWER)) * error)),
        ..undefined(what)
    }
}

/// Adjusts the p-values of one kind for their number, and says how each check stands.
fn settle(reports: &mut [DriftReport], alpha: f64) {
    for what in ["false_positive_rate", "true_positive_rate", "bias"] {
        let mut own: Vec<&mut DriftCheck> = reports
            .iter_mut()
            .flat_map(|own| &mut own.checks)
            .filter(|own| own.what == what && own.p_holm.value().is_some())
            .collect();
        let p: Vec<f64> = own.iter().filter_map(|own| own.p_holm.value().copied()).collect();
        let Ok(adjusted) = holm(&p) else { continue };
        for (own, p) in own.iter_mut().zip(adjusted) {
            own.p_holm = Measured(Ok(p));
            own.status = stands(&own.difference, &own.p_holm, own.tolerance, alpha);
        }
    }
    for report in reports {
        report.status =
            report.checks.iter().map(|own| own.status).max().unwrap_or(DriftStatus::Inconclusive);
    }
}
