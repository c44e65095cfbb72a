//! Two recordings by what may be promised of each: a threshold on the score at which the
//! false-positive rate is bounded, found for both in the same way on the same cases, and how
//! many good cases each then accepts.
//!
//! A decision made by some threshold says as much about the threshold as about the judges;
//! here both work at the same certified error. Whoever then takes the better one has chosen
//! among two certificates, so delta is halved, and both hold together.

use serde::Serialize;

use super::certificate::{Certificate, CertificateOptions, CertificateStatus, CertifyCase, Mode};
use super::certified_alone::CertifiedAlone;
use super::paired_recording::{Paired, Say, ShareChange, share_change};
use crate::stats::bootstrap::Resampling;

/// Which error is bounded, and how surely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certify {
    /// The bound of the false-positive rate.
    pub alpha: f64,
    /// One minus the confidence that both certificates hold.
    pub delta: f64,
}

/// Both at their certified thresholds.
#[derive(Clone, Debug, Serialize)]
pub struct CertifiedPair {
    /// Who: `panel`, or the only judge.
    pub name: String,
    /// The first.
    pub first: CertifiedAlone,
    /// The second.
    pub second: CertifiedAlone,
    /// Good cases accepted, the second minus the first, each at its own certified threshold;
    /// `None` unless both have one. What the interval does not hold is the chance in the
    /// thresholds.
    pub true_positive_rate: Option<ShareChange>,
}

impl CertifiedPair {
    /// Whether both have a threshold.
    #[must_use]
    pub fn is_certified(&self) -> bool {
        [&self.first, &self.second].iter().all(|own| own.status == CertificateStatus::Certified)
    }
}

/// Certifies both sides on the labelled cases that both have; `None` without a bad case or a
/// score on either side.
pub(super) fn certified(
    paired: &Paired<'_>,
    name: &str,
    judge: Option<(usize, usize)>,
    wanted: Certify,
    resampling: Resampling,
) -> Option<CertifiedPair> {
    let says = paired.says(judge);
    let judges = if judge.is_some() { 1 } else { paired.judges().len() as u64 };
    let options = CertificateOptions {
        mode: Mode::FalsePositiveRate,
        alpha: wanted.alpha,
        delta: wanted.delta / 2.0,
        seed: resampling.seed,
        level: resampling.level,
        resamples: resampling.resamples,
        loops: false,
    };
    let one = |say: fn(&(Say, Say)) -> Say| -> Option<(Certificate, Option<f64>)> {
        let score = |i: usize| say(&says[i]).score;
        let scores = (0..says.len()).filter_map(score);
        // A measurement that failed may have been a high one.
        let highest = scores.fold(f64::NEG_INFINITY, f64::max);
        if highest == f64::NEG_INFINITY {
            return None;
        }
        let highest = highest.max(1.0);
        let cases: Vec<CertifyCase<'_>> = paired
            .cases
            .iter()
            .enumerate()
            .filter_map(|(i, case)| {
                let key = score(i).map(|score| (score, score));
                Some(CertifyCase {
                    id: &case.second.id,
                    group: case.group,
                    good: case.good?,
                    key,
                    worst: key.unwrap_or((highest, highest)),
                    missing: key.is_none(),
                })
            })
            .collect();
        let own = Certificate::certify(&cases, options).ok()?;
        let threshold = own.certified_key().map(|key| key.0);
        Some((own, threshold))
    };
    let (first, before) = one(|says| says.0)?;
    let (second, after) = one(|says| says.1)?;
    let true_positive_rate = before.zip(after).map(|(before, after)| {
        let accepts = |say: &Say, least: f64| say.score.is_some_and(|score| score >= least);
        let pairs: Vec<(usize, bool, bool)> = paired
            .cases
            .iter()
            .zip(&says)
            .filter(|(case, _)| case.good == Some(true))
            .map(|(case, (a, b))| (case.group, accepts(a, before), accepts(b, after)))
            .collect();
        share_change(&pairs, 0.05, resampling)
    });
    Some(CertifiedPair {
        name: name.to_owned(),
        first: CertifiedAlone::of("before", judges, 2, first)?,
        second: CertifiedAlone::of("after", judges, 2, second)?,
        true_positive_rate,
    })
}
