//! Comparing two runs on the same cases: what changed, for whom, and which cases flipped.
//!
//! A difference is the second minus the first, with its interval. A regression is a worsening
//! whose whole interval lies on the wrong side; what could be chance is not called one.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::compare_certified::{CertifiedPair, Certify, certified};
use super::error::CalibrationError;
use super::figure::{UndefinedFigure, list_undefined};
use super::paired_recording::{Change, Identity, Paired};
use super::recording::Recording;
use crate::stats::bootstrap::Resampling;

/// What is asked of a comparison.
#[derive(Clone, Debug)]
pub struct CompareOptions<'a> {
    /// Truth by case, where known.
    pub labels: Option<&'a HashMap<String, bool>>,
    /// What in a case's id says which cases belong together.
    pub group: Option<&'a regex::Regex>,
    /// What to certify of both, where labels are the truth.
    pub certify: Option<Certify>,
    /// Intervals.
    pub resampling: Resampling,
}

/// One of the two.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The run's id, or the file.
    pub name: String,
    /// The panel, for a run.
    pub panel: Option<String>,
    /// Its cases.
    pub cases: u64,
    /// Cases that the other does not have.
    pub alone: u64,
    /// The score that accepts.
    pub threshold: Option<f64>,
}

/// A judge's votes on a flipped case.
#[derive(Clone, Debug, Serialize)]
pub struct FlippedVote {
    /// The judge.
    pub judge: String,
    /// Its vote in the first: a score, or the status that stands for none.
    pub first: Value,
    /// Its vote in the second.
    pub second: Value,
}

/// A case whose decision changed.
#[derive(Clone, Debug, Serialize)]
pub struct Flip {
    /// The case.
    pub case: String,
    /// `accept`, `reject` or `undecided` in the first.
    pub first: &'static str,
    /// The same in the second.
    pub second: &'static str,
    /// The panel's scores.
    pub scores: [Option<f64>; 2],
    /// Whether it is truly good, where labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<bool>,
    /// The votes.
    pub votes: Vec<FlippedVote>,
}

/// What a comparison says.
#[derive(Clone, Debug, Serialize)]
pub struct RunComparison {
    /// Version of this form.
    pub version: u32,
    /// The first.
    pub first: Side,
    /// The second.
    pub second: Side,
    /// Cases of both.
    pub cases: u64,
    /// Their groups.
    pub groups: u64,
    /// Common cases with a label.
    pub labelled: u64,
    /// What to conclude.
    pub conclusion: String,
    /// What got worse beyond chance.
    pub regressions: Vec<String>,
    /// Judges that are not the same.
    pub identities: Vec<Identity>,
    /// The panel; `None` where both are one judge of a file.
    pub panel: Option<Change>,
    /// The judges of both.
    pub judges: Vec<Change>,
    /// The panel, or the only judge, of both at certified thresholds; `None` without labels.
    pub certified: Option<CertifiedPair>,
    /// Cases whose decision changed, in the order of the second.
    pub flips: Vec<Flip>,
}

impl RunComparison {
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

    /// Whether the panel, or the only judge, decides any case in both; graded votes without a
    /// rule that says what accepts decide none.
    #[must_use]
    pub fn decides(&self) -> bool {
        self.subject().is_some_and(|own| own.accepted.n > 0)
    }

    /// The panel, or the only judge there is.
    #[must_use]
    pub fn subject(&self) -> Option<&Change> {
        self.panel.as_ref().or_else(|| self.judges.first())
    }
}

/// Compares two recordings on the cases of both.
///
/// # Errors
/// When no case is in both, a case stands twice in one, or one has no group by the pattern.
pub fn compare(
    first: &Recording,
    second: &Recording,
    options: &CompareOptions<'_>,
) -> Result<RunComparison, CalibrationError> {
    let paired = Paired::new(first, second, options.labels, options.group)?;
    let (panel, judges) = paired.changes(0.05, options.resampling);
    let alone = [paired.only_first, paired.only_second];
    let side = |own: &Recording, alone: u64| Side {
        name: own.name.clone(),
        panel: own.panel.clone(),
        cases: own.cases.len() as u64,
        alone,
        threshold: own.threshold,
    };
    let only = paired.judges().into_iter().next();
    let certified = options.certify.and_then(|wanted| match (&panel, only) {
        (Some(_), _) => certified(&paired, "panel", None, wanted, options.resampling),
        (None, Some((name, a, b))) => {
            certified(&paired, &name, Some((a, b)), wanted, options.resampling)
        }
        (None, None) => None,
    });
    let groups: std::collections::HashSet<usize> =
        paired.cases.iter().map(|case| case.group).collect();
    let mut found = RunComparison {
        version: 1,
        first: side(first, alone[0]),
        second: side(second, alone[1]),
        cases: paired.cases.len() as u64,
        groups: groups.len() as u64,
        labelled: paired.cases.iter().filter(|case| case.good.is_some()).count() as u64,
        conclusion: String::new(),
        regressions: Vec::new(),
        identities: paired.identities(),
        flips: flips(&paired, panel.is_some()),
        panel,
        judges,
        certified,
    };
    found.regressions = found.subject().map(regressions).unwrap_or_default();
    found.conclusion = conclusion(&found);
    Ok(found)
}

fn decision(accepted: Option<bool>) -> &'static str {
    match accepted {
        Some(true) => "accept",
        Some(false) => "reject",
        None => "undecided",
    }
}

fn flips(paired: &Paired<'_>, panel: bool) -> Vec<Flip> {
    let judges = paired.judges();
    let only = judges.first().map(|(_, a, b)| (*a, *b));
    let says = paired.says(if panel { None } else { only });
    let mut found = Vec::new();
    for (case, (a, b)) in paired.cases.iter().zip(says) {
        if a.accepted == b.accepted {
            continue;
        }
        let shown = |own: Option<super::recording::RecordedVote>| match own {
            Some(own) => own.score.map_or_else(|| own.status.name().into(), Value::from),
            None => Value::Null,
        };
        found.push(Flip {
            case: case.second.id.clone(),
            first: decision(a.accepted),
            second: decision(b.accepted),
            scores: [a.score, b.score],
            good: case.good,
            votes: judges
                .iter()
                .map(|(name, a, b)| FlippedVote {
                    judge: name.clone(),
                    first: shown(case.first.votes[*a]),
                    second: shown(case.second.votes[*b]),
                })
                .collect(),
        });
    }
    found
}

/// What got worse, the interval wholly on the wrong side.
fn regressions(change: &Change) -> Vec<String> {
    let mut found = Vec::new();
    let name = &change.name;
    let mut worse =
        |what: &str, figure: &super::figure::Measured<super::figure::Figure>, sign: f64| {
            if let Some(own) = figure.value() {
                let worst = if sign > 0.0 { own.upper < 0.0 } else { own.lower > 0.0 };
                if worst {
                    found.push(format!(
                        "{what} of `{name}` changed by {:+.3} [{:+.3}, {:+.3}] on {} cases",
                        own.estimate, own.lower, own.upper, own.n
                    ));
                }
            }
        };
    // Labels say which change is for the worse, but only of decisions.
    match (&change.agreement, &change.false_positive_rate) {
        (Some(agreement), rate) if agreement.n > 0 => {
            worse("agreement with the labels", &agreement.difference, 1.0);
            if let Some(rate) = rate {
                worse("the false-positive rate", &rate.difference, -1.0);
            }
        }
        _ => {
            worse("the accepted share", &change.accepted.difference, 1.0);
            worse("the mean score", &change.score.difference, 1.0);
        }
    }
    worse("the share of cases without a score", &change.unscored.difference, -1.0);
    found
}

fn conclusion(found: &RunComparison) -> String {
    let Some(change) = found.subject() else {
        return "The two have no judge in common: nothing can be compared.".to_owned();
    };
    let mut text = String::new();
    let (what, own) = match &change.agreement {
        Some(own) if own.n > 0 => ("agrees with the labels", own),
        _ => ("accepts", &change.accepted),
    };
    if let (Some(figure), Some(a), Some(b)) =
        (own.difference.value(), own.first.value(), own.second.value())
    {
        text.push_str(&format!(
            "`{}` {what} in {:.1}% of {} cases and in {:.1}% before: {:+.1} points [{:+.1}, {:+.1}]",
            change.name,
            100.0 * b,
            own.n,
            100.0 * a,
            100.0 * figure.estimate,
            100.0 * figure.lower,
            100.0 * figure.upper,
        ));
        let told = figure.lower > 0.0 || figure.upper < 0.0;
        let visible = own.smallest_visible.value();
        match (told, visible) {
            (true, _) => text.push_str(", more than chance."),
            (false, Some(least)) => text.push_str(&format!(
                ", which can be chance (a change under about {:.1} points would go unseen).",
                100.0 * least
            )),
            (false, None) => text.push('.'),
        }
    } else if let (Some(a), Some(b)) = (change.score.first.value(), change.score.second.value()) {
        text.push_str(&format!(
            "The mean score of `{}` is {b:.3}, and {a:.3} before ({} cases).",
            change.name, change.score.n
        ));
    }
    let undecided = found
        .flips
        .iter()
        .filter(|own| own.first == "undecided" || own.second == "undecided")
        .count();
    if !found.decides() {
        text.push_str(" Nothing accepts or rejects a case here, so no decision is compared.");
        return text;
    }
    text.push_str(&format!(" {} of {} cases flipped", found.flips.len(), found.cases));
    if undecided > 0 {
        text.push_str(&format!(", {undecided} of them to or from undecided"));
    }
    text.push('.');
    if !found.identities.is_empty() {
        text.push_str(" The judges are not the same: see below.");
    }
    text
}

#[cfg(test)]
#[path = "compare_tests.rs"]
pub(super) mod tests;
