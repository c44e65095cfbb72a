//! The certificate: a threshold on the panel's key whose error is bounded, or what is missing.
//!
//! Only cases of the certify part count, one bad case a group, and a vote that is missing on
//! a bad case counts as the highest. Too few bad cases give "not certifiable, collect N more",
//! never a number.

use serde::{Deserialize, Serialize};

use super::figure::{Figure, Measured, least};
use super::panel::Key;
use super::split::shuffled;
use crate::stats::bootstrap::{Resampling, grouped_proportion};
use crate::stats::certificate::{
    Threshold, allowed_false_accepts, certify_threshold, needed_negatives,
};
use crate::stats::interval::{clopper_pearson, clopper_pearson_upper};
use crate::stats::risk::exact_p;
use crate::stats::{Defined, Reason};

/// What is bounded.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// P(accepted | truly bad), with confidence: the exact order statistic.
    #[default]
    FalsePositiveRate,
    /// P(truly bad | accepted), with confidence: a fixed sequence of exact tests. It holds for
    /// the mix of good and bad cases that was labelled.
    FalseAcceptanceShare,
    /// The *expected* false-positive rate only: conformal risk control, visibly weaker.
    Expected,
}

impl Mode {
    /// The name in options and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FalsePositiveRate => "false_positive_rate",
            Self::FalseAcceptanceShare => "false_acceptance_share",
            Self::Expected => "expected",
        }
    }
}

/// `n` of what a certificate counts, by its `sampling`: bad cases, or the groups with one where
/// one case a group was drawn; of loops, bad loops.
#[must_use]
pub fn bad_units(n: u64, sampling: &str, loops: bool) -> String {
    let grouped = sampling == "one_bad_case_a_group";
    let noun = match (grouped, loops, n == 1) {
        (true, true, true) => "group with a bad loop",
        (true, true, false) => "groups with a bad loop",
        (true, false, true) => "group with a bad case",
        (true, false, false) => "groups with a bad case",
        (false, true, true) => "bad loop",
        (false, true, false) => "bad loops",
        (false, false, true) => "bad case",
        (false, false, false) => "bad cases",
    };
    format!("{n} {noun}")
}

/// Whether there is a certified threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CertificateStatus {
    /// There is.
    Certified,
    /// There is not, and `reason` says why.
    NotCertifiable,
}

/// What may be promised of the panel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Certificate {
    /// Whether there is a threshold.
    pub status: CertificateStatus,
    /// What is bounded.
    pub mode: Mode,
    /// The bound.
    pub alpha: f64,
    /// One minus the confidence; not used by `expected`.
    pub delta: f64,
    /// Bad cases used, one a group.
    pub n_bad: u64,
    /// Bad cases of the part, all of them.
    pub n_bad_cases: u64,
    /// How bad cases of one group were reduced to one.
    pub sampling: String,
    /// Bad cases used that the threshold accepts.
    pub false_accepts: Option<u64>,
    /// Most of them that still certify, k*; accepted cases needed for the share.
    pub k: Option<u64>,
    /// Accept at or above this key: its first number.
    pub threshold: Option<f64>,
    /// Its second number: where the first ties.
    pub tiebreak: Option<f64>,
    /// The rule in words.
    pub rule: Option<String>,
    /// Upper bound of the bounded rate at `1 - delta` from the cases used.
    pub upper_bound: Option<f64>,
    /// Accepted good cases of the part.
    pub true_positive_rate: Measured<Figure>,
    /// Accepted bad cases of the part, all of them.
    pub false_positive_rate: Measured<Figure>,
    /// Bad cases of the part that tie at the threshold.
    pub ties: Option<u64>,
    /// Why not.
    pub reason: Option<String>,
    /// Bad cases (groups with one) still needed; `None` where no number helps.
    pub labels_needed: Option<u64>,
    /// Bad cases with a vote missing, counted as the highest.
    pub missing_votes: u64,
    /// Bad loops that were stopped before generation K, counted as accepted at every threshold.
    #[serde(default)]
    pub censored: u64,
}

/// One case of the certify part.
#[derive(Clone, Debug)]
pub struct CertifyCase<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its group.
    pub group: usize,
    /// Truth.
    pub good: bool,
    /// The key of a running panel; `None` below the quorum, where nothing is accepted.
    pub key: Option<Key>,
    /// The key with missing votes at their highest.
    pub worst: Key,
    /// Whether a vote is missing.
    pub missing: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct CertificateOptions {
    /// What is bounded.
    pub mode: Mode,
    /// The bound.
    pub alpha: f64,
    /// One minus the confidence.
    pub delta: f64,
    /// Seed of the draw of one case a group.
    pub seed: u64,
    /// Nominal coverage of the displayed intervals.
    pub level: f64,
    /// Bootstrap replicates of displayed rates where groups have several cases.
    pub resamples: usize,
    /// Whether a case is a whole loop.
    pub loops: bool,
}

impl Certificate {
    /// No certificate, for a reason that has nothing to do with the data.
    #[must_use]
    pub fn refused(options: CertificateOptions, reason: &str) -> Self {
        Self {
            status: CertificateStatus::NotCertifiable,
            mode: options.mode,
            alpha: options.alpha,
            delta: options.delta,
            n_bad: 0,
            n_bad_cases: 0,
            sampling: "none".to_owned(),
            false_accepts: None,
            k: None,
            threshold: None,
            tiebreak: None,
            rule: None,
            upper_bound: None,
            true_positive_rate: Measured::undefined(Reason::NoData),
            false_positive_rate: Measured::undefined(Reason::NoData),
            ties: None,
            reason: Some(reason.to_owned()),
            labels_needed: None,
            missing_votes: 0,
            censored: 0,
        }
    }

    /// The certified key, if there is one.
    #[must_use]
    pub fn certified_key(&self) -> Option<Key> {
        if self.status == CertificateStatus::Certified {
            Some((self.threshold?, self.tiebreak?))
        } else {
            None
        }
    }

    /// Certifies the smallest threshold that keeps the promise.
    ///
    /// # Errors
    /// `out_of_range` for alpha or delta outside (0,1), `not_finite` for keys that are NaN.
    pub fn certify(cases: &[CertifyCase<'_>], options: CertificateOptions) -> Defined<Self> {
        let (mut certificate, found) = Self::search(cases, options)?;
        if let Some(key) = found {
            certificate.accept_at(key, cases, options);
        }
        Ok(certificate)
    }

    /// The threshold alone, without the rates displayed beside it.
    pub(super) fn search(
        cases: &[CertifyCase<'_>],
        options: CertificateOptions,
    ) -> Defined<(Self, Option<Key>)> {
        let mut certificate = Self::refused(options, "");
        certificate.reason = None;
        let bad = one_a_group(cases, options.seed, |case| !case.good);
        certificate.n_bad = bad.len() as u64;
        certificate.n_bad_cases = cases.iter().filter(|case| !case.good).count() as u64;
        certificate.sampling = if certificate.n_bad == certificate.n_bad_cases {
            "every_bad_case".to_owned()
        } else {
            "one_bad_case_a_group".to_owned()
        };
        certificate.missing_votes = bad.iter().filter(|&&i| cases[i].missing).count() as u64;
        let worst: Vec<Key> = bad.iter().map(|&i| cases[i].worst).collect();
        let mut candidates: Vec<Key> = cases.iter().map(|case| case.worst).collect();
        candidates.extend(cases.iter().filter_map(|case| case.key));
        // A loop that was stopped while bad counts as accepted at every threshold.
        candidates.retain(|key| key.0 < f64::INFINITY);
        certificate.censored = worst.iter().filter(|key| key.0 == f64::INFINITY).count() as u64;
        let found = match options.mode {
            Mode::FalsePositiveRate => {
                certificate.order_statistic(&worst, &candidates, options.loops)?
            }
            Mode::Expected => certificate.expected(&worst, &candidates, options.loops)?,
            Mode::FalseAcceptanceShare => certificate.fixed_sequence(cases, options)?,
        };
        Ok((certificate, found))
    }

    fn order_statistic(
        &mut self,
        bad: &[Key],
        candidates: &[Key],
        loops: bool,
    ) -> Defined<Option<Key>> {
        let n = bad.len() as u64;
        let units = bad_units(n, &self.sampling, loops);
        match certify_threshold(bad, candidates, self.alpha, self.delta)? {
            Threshold::Certified { threshold, false_accepts, allowed, .. } => {
                self.false_accepts = Some(false_accepts);
                self.k = Some(allowed);
                self.upper_bound = Some(clopper_pearson_upper(false_accepts, n, self.delta)?);
                Ok(Some(threshold))
            }
            Threshold::TooFewNegatives { missing, .. } => {
                self.ties = hopeless(bad, candidates, self.alpha)?;
                if let Some(tied) = self.ties {
                    let reason = format!(
                        "{tied} of {units} tie at the highest key, more than may be accepted of any number: no number of labels helps, add judges with finer scores"
                    );
                    self.fail(reason, None);
                } else {
                    let are = if n == 1 { "is" } else { "are" };
                    let reason =
                        format!("{units} {are} too few for any threshold: collect {missing} more");
                    self.fail(reason, Some(missing));
                }
                Ok(None)
            }
            Threshold::Ties { allowed, .. } if self.censored > allowed => {
                self.k = Some(allowed);
                self.fail(
                    format!(
                        "{} of {n} bad loops were stopped while their output was bad, and at most {allowed} may count as accepted: the log can't say what a higher threshold would have done; record loops that run to the last generation with acceptance switched off",
                        self.censored
                    ),
                    None,
                );
                Ok(None)
            }
            Threshold::Ties { allowed, tied, .. } => {
                self.k = Some(allowed);
                self.ties = Some(tied);
                let needed = labels_against_ties(tied, n, self.alpha, self.delta)?;
                let more = match needed {
                    Some(more) => format!("collect {more} more, or add judges with finer scores"),
                    None => "no number of labels helps: add judges with finer scores".to_owned(),
                };
                self.fail(
                    format!(
                        "{tied} of {units} tie at the highest key and at most {allowed} may be accepted: {more}"
                    ),
                    needed,
                );
                Ok(None)
            }
        }
    }

    /// Conformal risk control for 0/1 losses: `(#{bad >= t} + 1) / (n + 1) <= alpha`.
    fn expected(&mut self, bad: &[Key], candidates: &[Key], loops: bool) -> Defined<Option<Key>> {
        let n = bad.len() as u64;
        let units = bad_units(n, &self.sampling, loops);
        // Also refuses an alpha outside (0,1).
        needed_negatives(0, self.alpha, 0.5)?;
        let budget = self.alpha * (n as f64 + 1.0);
        if budget < 1.0 {
            let needed = (1.0 / self.alpha - 1e-9).ceil() as u64 - 1;
            let missing = needed.saturating_sub(n);
            self.fail(
                format!(
                    "{units} {} too few for an expected rate: collect {missing} more",
                    if n == 1 { "is" } else { "are" }
                ),
                Some(missing),
            );
            return Ok(None);
        }
        let allowed = (budget + 1e-9).floor() as u64 - 1;
        self.k = Some(allowed);
        let mut sorted = bad.to_vec();
        sorted.sort_by(compare);
        let mut candidates = candidates.to_vec();
        candidates.sort_by(compare);
        let above = |t: &Key| (sorted.len() - sorted.partition_point(|b| b < t)) as u64;
        let first = candidates.partition_point(|t| above(t) > allowed);
        let Some(key) = candidates.get(first) else {
            self.fail("too many bad cases tie at the highest key".to_owned(), None);
            return Ok(None);
        };
        self.false_accepts = Some(above(key));
        Ok(Some(*key))
    }

    /// From strict to lenient over the distinct keys of one case a group, exact tests of
    /// "the share of bad among the accepted exceeds alpha" until the first that does not
    /// reject. It starts where enough cases are accepted to reject at all, which the keys
    /// alone decide.
    fn fixed_sequence(
        &mut self,
        cases: &[CertifyCase<'_>],
        options: CertificateOptions,
    ) -> Defined<Option<Key>> {
        let drawn = one_a_group(cases, options.seed, |_| true);
        self.sampling = "one_case_a_group".to_owned();
        let least = needed_negatives(0, self.alpha, self.delta)?;
        let mut keyed: Vec<(Key, bool)> = drawn
            .iter()
            .map(|&i| {
                let case = &cases[i];
                (if case.good { case.key.unwrap_or(LOWEST) } else { case.worst }, case.good)
            })
            .collect();
        keyed.sort_by(|a, b| compare(&b.0, &a.0));
        self.n_bad = keyed.iter().filter(|(_, good)| !good).count() as u64;
        let (mut accepted, mut bad, mut found) = (0, 0, None);
        for tied in keyed.chunk_by(|a, b| a.0 == b.0) {
            accepted += tied.len() as u64;
            bad += tied.iter().filter(|(_, good)| !good).count() as u64;
            if accepted < least {
                continue;
            }
            if tied[0].0 == LOWEST || exact_p(bad, accepted, self.alpha)? > self.delta {
                break;
            }
            found = Some((tied[0].0, bad, accepted));
        }
        let Some((key, bad, accepted)) = found else {
            let missing = least.saturating_sub(keyed.len() as u64);
            let reason = if missing > 0 {
                let what = if keyed.len() < cases.len() { "groups" } else { "cases" };
                format!("{} {what} are too few: collect {missing} more", keyed.len())
            } else {
                format!("of the {least} cases with the highest keys too many are bad")
            };
            self.fail(reason, (missing > 0).then_some(missing));
            return Ok(None);
        };
        self.false_accepts = Some(bad);
        self.k = Some(accepted);
        self.upper_bound = Some(clopper_pearson_upper(bad, accepted, self.delta)?);
        Ok(Some(key))
    }

    fn fail(&mut self, reason: String, labels_needed: Option<u64>) {
        self.reason = Some(reason);
        self.labels_needed = labels_needed;
    }

    fn accept_at(&mut self, key: Key, cases: &[CertifyCase<'_>], options: CertificateOptions) {
        self.status = CertificateStatus::Certified;
        self.threshold = Some(key.0);
        self.tiebreak = Some(key.1);
        self.rule = Some(format!(
            "accept when the panel's score is above {0}, or is {0} and its tiebreak is at least {1}",
            least(key.0),
            least(key.1)
        ));
        self.ties =
            Some(cases.iter().filter(|case| !case.good && case.worst == key).count() as u64);
        self.true_positive_rate =
            rate(cases, options, |case| case.good, |case| case.key.is_some_and(|own| own >= key));
        self.false_positive_rate =
            rate(cases, options, |case| !case.good, |case| case.worst >= key);
    }
}

/// Below every key.
const LOWEST: Key = (f64::NEG_INFINITY, f64::NEG_INFINITY);

fn compare(a: &Key, b: &Key) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
}

/// One case of each group among those wanted, drawn by the seed and the case's name.
pub(super) fn one_a_group(
    cases: &[CertifyCase<'_>],
    seed: u64,
    wanted: impl Fn(&CertifyCase<'_>) -> bool,
) -> Vec<usize> {
    let mut taken = std::collections::HashSet::new();
    let mut drawn: Vec<usize> = shuffled(seed, cases.iter().map(|case| case.id))
        .into_iter()
        .filter(|&i| wanted(&cases[i]) && taken.insert(cases[i].group))
        .collect();
    drawn.sort_unstable();
    drawn
}

fn rate(
    cases: &[CertifyCase<'_>],
    options: CertificateOptions,
    of: impl Fn(&CertifyCase<'_>) -> bool,
    accepted: impl Fn(&CertifyCase<'_>) -> bool,
) -> Measured<Figure> {
    let mut groups: std::collections::BTreeMap<usize, (u64, u64)> =
        std::collections::BTreeMap::new();
    for case in cases.iter().filter(|case| of(case)) {
        let entry = groups.entry(case.group).or_default();
        entry.0 += u64::from(accepted(case));
        entry.1 += 1;
    }
    let groups: Vec<(u64, u64)> = groups.into_values().collect();
    let resampling =
        Resampling { resamples: options.resamples, seed: options.seed, level: options.level };
    grouped_proportion(&groups, resampling).into()
}

/// How many bad cases tie at the highest key, where their share is surely above `alpha` (its lower
/// bound at 95% is), so that more of them would change nothing.
fn hopeless(bad: &[Key], candidates: &[Key], alpha: f64) -> Defined<Option<u64>> {
    let Some(highest) = candidates.iter().copied().max_by(compare) else { return Ok(None) };
    let tied = bad.iter().filter(|key| **key >= highest).count() as u64;
    // One may be chance.
    if tied < 2 {
        return Ok(None);
    }
    let share = clopper_pearson(tied, bad.len() as u64, 0.90)?;
    Ok((share.interval.lower > alpha).then_some(tied))
}

/// How many more bad cases would certify the highest key if the share tied there stays.
fn labels_against_ties(tied: u64, n: u64, alpha: f64, delta: f64) -> Defined<Option<u64>> {
    let share = tied as f64 / n as f64;
    if share >= alpha {
        return Ok(None);
    }
    let enough = |size: u64| -> Defined<bool> {
        let expected = (share * size as f64).ceil() as u64;
        Ok(allowed_false_accepts(size, alpha, delta)?.is_some_and(|k| k >= expected))
    };
    let mut size = n;
    while !enough(size)? {
        size += size / 50 + 1;
        if size > 10_000_000 {
            return Ok(None);
        }
    }
    Ok(Some(size - n))
}

#[cfg(test)]
#[path = "certificate_tests.rs"]
mod tests;
