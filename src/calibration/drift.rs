//! Drift: an anchor set judged again, against an earlier run or a profile.
//!
//! Three answers and not two. *Passed*: the whole interval of every change lies within the
//! tolerance. *Drifted*: a change is beyond chance and not within it. *Inconclusive*: the
//! anchors are too few to say either, and how small a change they would have shown is said.
//! A changed fingerprint or model is named whatever the anchors say.

use std::collections::HashMap;

use rand::RngExt as _;
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::error::CalibrationError;
use super::figure::{Figure, Measured, UndefinedFigure, list_undefined};
use super::paired_recording::{Change, Identity, MeanChange, Paired, ShareChange};
use super::recording::Recording;
use crate::stats::Defined;
use crate::stats::bootstrap::Resampling;
use crate::stats::draw::stream;
use crate::stats::drift::cusum;
use crate::stats::summary::{mean, variance};

/// Allowance and draws of the CUSUM: half a deviation, and orders to compare with.
const ALLOWANCE: f64 = 0.5;
const ORDERS: u64 = 1000;
/// Higher than any sum of deviations.
const NO_LIMIT: f64 = 1e12;

/// What is asked of a drift check.
#[derive(Clone, Debug)]
pub struct DriftOptions<'a> {
    /// Truth by case, where known.
    pub labels: Option<&'a HashMap<String, bool>>,
    /// What in a case's id says which cases belong together.
    pub group: Option<&'a regex::Regex>,
    /// Largest change that does not matter: of a share as it is, of scores as a share of
    /// their range. In (0,1).
    pub tolerance: f64,
    /// Error rate of all judges together, in (0,1).
    pub alpha: f64,
    /// Intervals and the orders of the CUSUM.
    pub resampling: Resampling,
}

/// What is to be said of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DriftStatus {
    /// The whole interval lies within the tolerance.
    Passed,
    /// Too few anchors to say.
    Inconclusive,
    /// Beyond chance and not within the tolerance.
    Drifted,
}

impl DriftStatus {
    /// The name in JSON and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Inconclusive => "inconclusive",
            Self::Drifted => "drifted",
        }
    }
}

/// One figure that is looked at.
#[derive(Clone, Debug, Serialize)]
pub struct DriftCheck {
    /// `agreement`, `false_positive_rate`, `accepted` or `score`, and with a profile the rates.
    pub what: &'static str,
    /// How it stands.
    pub status: DriftStatus,
    /// Anchors it stands on.
    pub n: u64,
    /// After minus before.
    pub difference: Measured<Figure>,
    /// Two-sided p-value of no change, adjusted by Holm over judges and panel.
    pub p_holm: Measured,
    /// The smallest change that would be found four times in five.
    pub smallest_visible: Measured,
    /// Largest change that does not matter.
    pub tolerance: f64,
}

/// Whether scores begin to shift somewhere on the way through the anchors.
#[derive(Clone, Debug, Serialize)]
pub struct CusumCheck {
    /// Largest sum, in deviations of the difference.
    pub peak: f64,
    /// The anchor where it stands.
    pub at: String,
    /// Share of random orders of the same differences with a peak as large: small means that
    /// it depends on when an anchor was judged.
    pub p: f64,
}

/// One judge, or the panel.
#[derive(Clone, Debug, Serialize)]
pub struct DriftReport {
    /// The judge, or `panel`.
    pub name: String,
    /// The worst of its checks.
    pub status: DriftStatus,
    /// What is looked at.
    pub checks: Vec<DriftCheck>,
    /// Share of anchors whose decision flipped, either way.
    pub flips: Measured<Figure>,
    /// The CUSUM of its scores; undefined where no score changed.
    pub cusum: Measured<CusumCheck>,
    /// Everything that changed.
    pub change: Option<Change>,
}

/// What a drift check says.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    /// Version of this form.
    pub version: u32,
    /// The earlier run, file or profile.
    pub before: String,
    /// The run or file that is checked.
    pub after: String,
    /// Anchors of both.
    pub anchors: u64,
    /// Anchors with a label.
    pub labelled: u64,
    /// The worst of all.
    pub status: DriftStatus,
    /// What to conclude.
    pub conclusion: String,
    /// Judges that are another than before, or whose model is.
    pub identities: Vec<Identity>,
    /// The panel and the judges.
    pub reports: Vec<DriftReport>,
    /// What to know before trusting the figures.
    pub warnings: Vec<String>,
}

impl Drift {
    /// The report as JSON, with every undefined figure listed in `undefined`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut report = serde_json::to_value(self).unwrap_or(Value::Null);
        let undefined: Vec<UndefinedFigure> = list_undefined(&report);
        if let (Some(map), Ok(list)) = (report.as_object_mut(), serde_json::to_value(undefined)) {
            map.insert("undefined".to_owned(), list);
        }
        report
    }

    pub(super) fn conclude(&mut self) {
        self.status =
            self.reports.iter().map(|own| own.status).max().unwrap_or(DriftStatus::Inconclusive);
        self.conclusion = conclusion(self);
    }
}

/// Checks anchors judged again against the same anchors judged earlier.
///
/// # Errors
/// When no anchor is in both, one stands twice, one has no group by the pattern, or an option
/// is out of its range.
pub fn drift(
    before: &Recording,
    after: &Recording,
    options: &DriftOptions<'_>,
) -> Result<Drift, CalibrationError> {
    check_options(options.tolerance, options.alpha)?;
    let paired = Paired::new(before, after, options.labels, options.group)?;
    let (panel, judges) = paired.changes(options.alpha, options.resampling);
    let places: HashMap<String, (usize, usize)> =
        paired.judges().into_iter().map(|(name, a, b)| (name, (a, b))).collect();
    let reports = panel
        .into_iter()
        .map(|own| (None, own))
        .chain(judges.into_iter().map(|own| (places.get(&own.name).copied(), own)))
        .map(|(judge, change)| report(&paired, judge, change, options))
        .collect();
    let mut warnings = Vec::new();
    if paired.only_first + paired.only_second > 0 {
        warnings.push(format!(
            "{} anchors are in the earlier one only and {} in the later one only: they are left out",
            paired.only_first, paired.only_second
        ));
    }
    let mut found = Drift {
        version: 1,
        before: before.name.clone(),
        after: after.name.clone(),
        anchors: paired.cases.len() as u64,
        labelled: paired.cases.iter().filter(|case| case.good.is_some()).count() as u64,
        status: DriftStatus::Inconclusive,
        conclusion: String::new(),
        identities: paired.identities(),
        reports,
        warnings,
    };
    found.conclude();
    Ok(found)
}

pub(super) fn check_options(tolerance: f64, alpha: f64) -> Result<(), CalibrationError> {
    for (option, value) in [("--tolerance", tolerance), ("--alpha", alpha)] {
        if !(value > 0.0 && value < 1.0) {
            let expected = "a number between 0 and 1";
            return Err(CalibrationError::OutOfRange { option, value, expected });
        }
    }
    Ok(())
}

/// How a change stands to its tolerance.
pub(super) fn stands(
    difference: &Measured<Figure>,
    p: &Measured,
    tolerance: f64,
    alpha: f64,
) -> DriftStatus {
    let Some(own) = difference.value() else { return DriftStatus::Inconclusive };
    if own.lower >= -tolerance && own.upper <= tolerance {
        DriftStatus::Passed
    } else if p.value().is_some_and(|p| *p <= alpha) {
        DriftStatus::Drifted
    } else {
        DriftStatus::Inconclusive
    }
}

fn report(
    paired: &Paired<'_>,
    judge: Option<(usize, usize)>,
    change: Change,
    options: &DriftOptions<'_>,
) -> DriftReport {
    let mut checks = Vec::new();
    let share = |what, own: &ShareChange| DriftCheck {
        what,
        status: stands(&own.difference, &own.p_holm, options.tolerance, options.alpha),
        n: own.n,
        difference: own.difference.clone(),
        p_holm: own.p_holm.clone(),
        smallest_visible: own.smallest_visible.clone(),
        tolerance: options.tolerance,
    };
    match (&change.agreement, &change.false_positive_rate) {
        (Some(agreement), rate) => {
            checks.push(share("agreement", agreement));
            checks.extend(
                rate.as_ref().filter(|own| own.n > 0).map(|own| share("false_positive_rate", own)),
            );
        }
        (None, _) if change.accepted.n > 0 => checks.push(share("accepted", &change.accepted)),
        (None, _) => {}
    }
    let says = paired.says(judge);
    let scores: Vec<(usize, f64, f64)> =
        says.iter().enumerate().filter_map(|(i, (a, b))| Some((i, a.score?, b.score?))).collect();
    checks.push(score_check(&change.score, &scores, options));
    // A judge that stopped answering is no judge that stayed the same.
    checks.push(share("unscored", &change.unscored));
    let status = checks.iter().map(|own| own.status).max().unwrap_or(DriftStatus::Inconclusive);
    let cusum =
        Measured(shift(paired, &scores, options.resampling.seed).map(|(peak, place, p)| {
            CusumCheck { peak, at: paired.cases[place].second.id.clone(), p }
        }));
    DriftReport {
        name: change.name.clone(),
        status,
        checks,
        flips: change.accepted.flips.clone(),
        cusum,
        change: Some(change),
    }
}

fn score_check(
    own: &MeanChange,
    scores: &[(usize, f64, f64)],
    options: &DriftOptions<'_>,
) -> DriftCheck {
    let low = scores.iter().map(|own| own.1.min(own.2)).fold(f64::INFINITY, f64::min);
    let high = scores.iter().map(|own| own.1.max(own.2)).fold(f64::NEG_INFINITY, f64::max);
    // Scores in [0,1] have that range, whatever was seen of it.
    let range = if low >= 0.0 && high <= 1.0 { 1.0 } else { high - low };
    let tolerance = options.tolerance * range;
    let mut status = stands(&own.difference, &own.p_holm, tolerance, options.alpha);
    if own.changed == 0 && own.n > 0 {
        // No score changed: at most 1 - 0.05^(1/n) of the scores do, each by the range at most.
        let most = crate::stats::interval::rule_of_three(own.n, 0.05).unwrap_or(1.0);
        status =
            if most <= options.tolerance { DriftStatus::Passed } else { DriftStatus::Inconclusive };
    } else if own.difference.value().is_none()
        && let Some(change) = own.second.value().zip(own.first.value()).map(|(b, a)| b - a)
    {
        // Every score moved by the same: nothing varies, and nothing is left to chance.
        if change.abs() > tolerance && own.n > 1 {
            status = DriftStatus::Drifted;
        } else if own.n > 1 {
            status = DriftStatus::Passed;
        }
    }
    DriftCheck {
        what: "score",
        status,
        n: own.n,
        difference: own.difference.clone(),
        p_holm: own.p_holm.clone(),
        smallest_visible: own.smallest_visible.clone(),
        tolerance,
    }
}

/// The peak of the two-sided CUSUM of centred differences, where it stands, and how often a
/// random order of them has one as large. Anchors of a group stand at the place of its first
/// and are one difference, their mean: in any other order they would still move together.
fn shift(
    paired: &Paired<'_>,
    scores: &[(usize, f64, f64)],
    seed: u64,
) -> Defined<(f64, usize, f64)> {
    let mut place_of: HashMap<usize, usize> = HashMap::new();
    let mut sums: Vec<(usize, f64, f64)> = Vec::new();
    for (i, a, b) in scores {
        let place = *place_of.entry(paired.cases[*i].group).or_insert_with(|| {
            sums.push((*i, 0.0, 0.0));
            sums.len() - 1
        });
        sums[place].1 += b - a;
        sums[place].2 += 1.0;
    }
    let differences: Vec<f64> = sums.iter().map(|(_, sum, n)| sum / n).collect();
    let centre = mean(&differences)?;
    let deviation = variance(&differences)?.sqrt();
    if deviation <= 0.0 {
        return Err(crate::stats::Reason::ZeroVariance.into());
    }
    let standard: Vec<f64> = differences.iter().map(|own| (own - centre) / deviation).collect();
    let peak_of = |values: &[f64]| -> Defined<(f64, usize)> {
        let sums = cusum(values, ALLOWANCE, NO_LIMIT)?;
        let mut best = (0.0, 0);
        for (i, (up, down)) in sums.upper.iter().zip(&sums.lower).enumerate() {
            let own = up.max(*down);
            if own > best.0 {
                best = (own, i);
            }
        }
        Ok(best)
    };
    let (peak, place) = peak_of(&standard)?;
    let as_large = (0..ORDERS)
        .into_par_iter()
        .filter(|i| {
            let mut rng = stream(seed, *i);
            let mut order = standard.clone();
            for last in (1..order.len()).rev() {
                order.swap(last, rng.random_range(0..=last));
            }
            // A last digit less is the same peak in another order of additions.
            peak_of(&order).is_ok_and(|(own, _)| own >= peak - 1e-9)
        })
        .count();
    Ok((peak, sums[place].0, (as_large as f64 + 1.0) / (ORDERS as f64 + 1.0)))
}

fn conclusion(found: &Drift) -> String {
    let of = |status| {
        let names: Vec<String> = found
            .reports
            .iter()
            .filter(|own| own.status == status)
            .map(|own| format!("`{}`", own.name))
            .collect();
        names.join(", ")
    };
    let mut text = match found.status {
        DriftStatus::Passed => format!(
            "No drift: on {} anchors every change lies within its tolerance.",
            found.anchors
        ),
        DriftStatus::Drifted => format!(
            "Drifted: {} changed beyond chance and tolerance on {} anchors.",
            of(DriftStatus::Drifted),
            found.anchors
        ),
        DriftStatus::Inconclusive => {
            let mut text = format!(
                "Inconclusive: {} anchors are too few to say for {}.",
                found.anchors,
                of(DriftStatus::Inconclusive)
            );
            let visible = found
                .reports
                .iter()
                .flat_map(|own| &own.checks)
                .filter(|own| own.status == DriftStatus::Inconclusive)
                .filter_map(|own| Some((own.what, own.n, half(own)?)))
                .max_by(|a, b| a.2.total_cmp(&b.2));
            if let Some((what, n, least)) = visible {
                text.push_str(&format!(
                    " The widest: {what} may have changed by {least:.3} unseen on {n}."
                ));
            }
            text
        }
    };
    if !found.identities.is_empty() {
        let changed: Vec<String> =
            found.identities.iter().map(|own| format!("`{}` ({})", own.judge, own.what)).collect();
        text.push_str(&format!(
            " Not the same judges: {}; a certificate for the earlier ones is suspended{}",
            changed.join(", "),
            if found.status == DriftStatus::Passed {
                " until it is made again, though the anchors show no change."
            } else {
                "."
            }
        ));
    }
    text
}

/// How far the true change may lie from none.
fn half(own: &DriftCheck) -> Option<f64> {
    let figure = own.difference.value()?;
    Some(figure.lower.abs().max(figure.upper.abs()))
}

#[cfg(test)]
#[path = "drift_tests.rs"]
mod tests;
