//! Judges compared by what may be promised of each: the threshold at which its own
//! false-positive rate is bounded, and how many good cases it then accepts.
//!
//! Whoever takes the best of several judges chooses among as many certificates, so delta is
//! divided by their number: all of them hold together.

use serde::Serialize;

use super::calibrate::Work;
use super::certificate::{Certificate, CertificateOptions, CertificateStatus};
use super::figure::{Figure, Measured};
use crate::dataset::LabelSource;

/// One judge, or a panel, with its own certificate.
#[derive(Clone, Debug, Serialize)]
pub struct CertifiedAlone {
    /// The contender.
    pub name: String,
    /// Among how many it was chosen: delta was divided by this.
    pub among: u64,
    /// Whether there is a threshold.
    pub status: CertificateStatus,
    /// The bound.
    pub alpha: f64,
    /// One minus the confidence of this certificate by itself.
    pub delta: f64,
    /// Accept at or above this score; a panel's first number.
    pub threshold: Option<f64>,
    /// Bad cases used, one a group.
    pub n_bad: u64,
    /// Accepted good cases at the threshold.
    pub true_positive_rate: Measured<Figure>,
    /// Why not.
    pub reason: Option<String>,
    /// Bad cases still needed.
    pub labels_needed: Option<u64>,
}

impl CertifiedAlone {
    pub(super) fn of(name: &str, among: u64, own: Certificate) -> Option<Self> {
        // Nothing that no label could change is a comparison.
        (own.n_bad_cases > 0).then(|| Self {
            name: name.to_owned(),
            among,
            status: own.status,
            alpha: own.alpha,
            delta: own.delta,
            threshold: own.threshold,
            n_bad: own.n_bad,
            true_positive_rate: own.true_positive_rate,
            reason: own.reason,
            labels_needed: own.labels_needed,
        })
    }
}

impl Work<'_> {
    /// Every judge with its own certificate, delta divided by their number.
    pub(super) fn certified_alone(&self, rows: &[usize]) -> Vec<CertifiedAlone> {
        let by_model = self.table.labels.sources.contains_key(&LabelSource::Model);
        if self.refuses(by_model).is_some() {
            return Vec::new();
        }
        let among = self.table.judges.len() as u64;
        let options = self.options.certificate();
        let options = CertificateOptions { delta: options.delta / among.max(1) as f64, ..options };
        self.table
            .judges
            .iter()
            .enumerate()
            .filter_map(|(j, judge)| {
                let certificate = Certificate::certify(&self.own_cases(j, rows)?, options).ok()?;
                CertifiedAlone::of(&judge.name, among, certificate)
            })
            .collect()
    }
}
