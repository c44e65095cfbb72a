//! What is asked of a calibration, and what can't be.

use super::as_run::Ruled;
use super::certificate::{CertificateOptions, Mode};
use super::error::CalibrationError;
use super::judge_metrics::IntervalOptions;
use super::ledger::Looks;
use super::loops::Loops;
use super::panel::PanelAggregate;
use super::positive::Accept;
use super::slices::SlicedBy;
use super::split::SplitPlan;
use crate::stats::bootstrap::Resampling;

/// What is asked of a calibration.
#[derive(Clone, Debug)]
pub struct Options {
    /// What graded scores must reach to accept; fitted where `None`.
    pub accept: Option<Accept>,
    /// Bound of the certified error, in (0,1).
    pub alpha: f64,
    /// One minus the confidence, in (0,1).
    pub delta: f64,
    /// What is bounded.
    pub mode: Mode,
    /// How labels are split.
    pub split: SplitPlan,
    /// Seed of the split, the draws and the resampling.
    pub seed: u64,
    /// How votes become a key.
    pub aggregate: PanelAggregate,
    /// Least votes for a decision; a majority of the judges where `None`.
    pub quorum: Option<usize>,
    /// Nominal coverage of intervals, in (0,1).
    pub level: f64,
    /// Bootstrap replicates where groups have several cases.
    pub resamples: usize,
    /// Cost advantage of a judge in the alternative-annotator test.
    pub epsilon: f64,
    /// When, for the certificate.
    pub date: String,
    /// The loops whose generations the cases are, where loops are calibrated.
    pub loops: Option<Loops>,
    /// How often the certify part was looked at, this time included, where a ledger says so:
    /// recorded with the certificate. Correcting delta for it is the caller's
    /// ([`Looks::delta`]).
    pub looks: Option<Looks>,
    /// What the panel decided when it ran, where it did.
    pub ruled: Option<Ruled>,
    /// Fields of the cases that figures are given by.
    pub slices: Vec<SlicedBy>,
}

impl Options {
    /// How groups are resampled.
    #[must_use]
    pub fn resampling(&self) -> Resampling {
        Resampling { resamples: self.resamples, seed: self.seed, level: self.level }
    }
}

impl Default for Options {
    /// alpha 0.05, delta 0.10, 95 % intervals, a quarter of the groups to fit, seed 0.
    fn default() -> Self {
        Self {
            accept: None,
            alpha: 0.05,
            delta: 0.10,
            mode: Mode::default(),
            split: SplitPlan::default(),
            seed: 0,
            aggregate: PanelAggregate::default(),
            quorum: None,
            level: 0.95,
            resamples: 1000,
            epsilon: 0.2,
            date: String::new(),
            loops: None,
            looks: None,
            ruled: None,
            slices: Vec::new(),
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), CalibrationError> {
        for (option, value) in
            [("--alpha", self.alpha), ("--delta", self.delta), ("--level", self.level)]
        {
            if !(value > 0.0 && value < 1.0) {
                let expected = "a number between 0 and 1";
                return Err(CalibrationError::OutOfRange { option, value, expected });
            }
        }
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            let (option, expected) = ("--epsilon", "a number from 0");
            return Err(CalibrationError::OutOfRange { option, value: self.epsilon, expected });
        }
        if let Some(loops) = &self.loops {
            if loops.generations == 0 {
                let (option, expected) = ("--generations", "at least one");
                return Err(CalibrationError::OutOfRange { option, value: 0.0, expected });
            }
            if self.mode == Mode::FalseAcceptanceShare {
                return Err(CalibrationError::LoopMode);
            }
        }
        if self.quorum == Some(0) {
            let (option, expected) = ("--quorum", "at least one vote");
            return Err(CalibrationError::OutOfRange { option, value: 0.0, expected });
        }
        Ok(())
    }

    /// A quorum that no case can reach would certify a panel that never decides.
    pub(super) fn check_quorum(&self, judges: usize) -> Result<(), CalibrationError> {
        match self.quorum {
            Some(quorum) if quorum > judges => Err(CalibrationError::OutOfRange {
                option: "--quorum",
                value: quorum as f64,
                expected: "at most one vote for each judge",
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn intervals(&self) -> IntervalOptions {
        IntervalOptions { level: self.level, resamples: self.resamples, seed: self.seed }
    }

    pub(super) fn certificate(&self) -> CertificateOptions {
        CertificateOptions {
            mode: self.mode,
            alpha: self.alpha,
            delta: self.delta,
            seed: self.seed,
            level: self.level,
            resamples: self.resamples,
            loops: self.loops.is_some(),
        }
    }
}
