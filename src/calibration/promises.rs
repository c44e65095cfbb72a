//! What a calibration promises: the certificate of the panel, of every smaller panel, of each
//! judge alone and of whole loops. Everything here looks at the certify part, the confusion
//! matrices alone at the fit part.

use rayon::prelude::*;

use super::calibrate::{Fitted, Work};
use super::certificate::{Certificate, CertifyCase};
use super::loops::LoopReport;
use super::operating_point::fitted;
use super::options::Options;
use super::panel::{Key, Missing, PanelModel, target, votes};
use super::split::SplitPlan;
use super::subsets::{Confusion, ConfusionSeat, OfSize, OwnCertificate, Subset, Subsets, sets};
use crate::stats::bootstrap::Resampling;

impl Work<'_> {
    /// Why nothing may be certified, whatever the figures.
    pub(super) fn refuses(&self, by_model: bool) -> Option<String> {
        if by_model {
            return Some("the labels are a model's: nothing is certified".to_owned());
        }
        (self.options.split == SplitPlan::None).then(|| {
            "without a split nothing is certified: what was fitted can't certify itself".to_owned()
        })
    }

    pub(super) fn certificate(
        &self,
        model: &PanelModel,
        rows: &[usize],
        by_model: bool,
    ) -> Certificate {
        let options = self.options.certificate();
        if let Some(reason) = self.refuses(by_model) {
            return Certificate::refused(options, &reason);
        }
        let key = |i: usize, missing| model.key(&votes(self.table, i), missing);
        Certificate::certify(&self.certify_cases(rows, key), options)
            .unwrap_or_else(|undefined| Certificate::refused(options, &undefined.to_string()))
    }

    /// What is certified on: a case a row, or one a loop.
    pub(super) fn certify_cases(
        &self,
        rows: &[usize],
        key: impl Fn(usize, Missing) -> Option<Key>,
    ) -> Vec<CertifyCase<'_>> {
        let cases = self.table.cases();
        let missing = |i: usize| self.table.judges.iter().any(|judge| judge.scores[i].is_none());
        if let Some(loops) = &self.options.loops {
            return loops.certify_cases(cases, &self.groups.of_case, rows, key, missing);
        }
        rows.iter()
            .filter_map(|&i| {
                Some(CertifyCase {
                    id: &cases[i].id,
                    group: self.groups.of_case[i],
                    good: cases[i].good,
                    key: key(i, Missing::LeftOut),
                    worst: key(i, Missing::Highest)?,
                    missing: missing(i),
                })
            })
            .collect()
    }

    /// One judge's own threshold; a missing score counts as the highest.
    pub(super) fn own_certificate(
        &self,
        j: usize,
        rows: &[usize],
        refused: Option<&str>,
    ) -> OwnCertificate {
        if let Some(reason) = refused {
            return OwnCertificate::refused(reason);
        }
        match self.own_cases(j, rows) {
            Some(cases) => OwnCertificate::of(&cases, self.options.certificate()),
            None => OwnCertificate::refused("it has no score on a labelled case"),
        }
    }

    /// What a judge's own threshold is certified on; `None` without a single score.
    pub(super) fn own_cases(&self, j: usize, rows: &[usize]) -> Option<Vec<CertifyCase<'_>>> {
        let judge = &self.table.judges[j];
        let highest = judge.scores.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let highest = judge.unit.map_or(highest, |[zero, one]| highest.max(zero).max(one));
        if highest == f64::NEG_INFINITY {
            return None;
        }
        let key = |i: usize, missing| match (judge.scores[i], missing) {
            (Some(score), _) => Some((score, score)),
            (None, Missing::Highest) => Some((highest, highest)),
            (None, Missing::LeftOut) => None,
        };
        Some(self.certify_cases(rows, key))
    }

    /// The thresholds for fewer judges than all.
    pub(super) fn subsets(
        &self,
        model: &PanelModel,
        fit: &[usize],
        rows: &[usize],
        refused: Option<&str>,
    ) -> Subsets {
        let options = self.options.certificate();
        let certify = |key: &dyn Fn(usize, Missing) -> Option<Key>| match refused {
            Some(reason) => OwnCertificate::refused(reason),
            None => OwnCertificate::of(&self.certify_cases(rows, key), options),
        };
        let cases = self.table.cases();
        let Some(listed) = sets(model.seats.len(), model.quorum) else {
            let sizes = model.quorum.max(1)..model.seats.len();
            let of_size = |size| {
                let key = |i: usize, _| model.highest_key_of_size(&votes(self.table, i), size);
                OfSize { size, certificate: certify(&key) }
            };
            return Subsets { sets: Vec::new(), sizes: sizes.rev().map(of_size).collect() };
        };
        let of_set = |places: &Vec<usize>| {
            let own = model.only(places);
            let of_case = |i: usize| -> Vec<Option<f64>> {
                places.iter().map(|&j| self.table.judges[j].scores[i]).collect()
            };
            let key = |i: usize, missing| own.key(&of_case(i), missing);
            let pairs = fit.iter().map(|&i| {
                let key = own.key(&of_case(i), Missing::LeftOut)?;
                Some((key.0, target(self.table, &cases[i])))
            });
            Subset {
                judges: own.seats.iter().map(|seat| seat.judge.clone()).collect(),
                map: PanelModel::map_of(pairs),
                certificate: certify(&key),
            }
        };
        Subsets { sets: listed.par_iter().map(of_set).collect(), sizes: Vec::new() }
    }

    /// The judges' confusion matrices, from the fit part alone.
    pub(super) fn confusion(&self, fitted: &Fitted, fit: &[usize]) -> Option<Confusion> {
        let cases = self.table.cases();
        let smoothed = |k: usize, n: usize| (k as f64 + 1.0) / (n as f64 + 2.0);
        let rate = |j: usize, good: bool| {
            let of = || fit.iter().filter(|&&i| cases[i].good == good);
            let decided = of().filter_map(|&i| fitted.decisions[j][i]);
            let n = decided.clone().count();
            smoothed(decided.filter(|accepts| *accepts).count(), n)
        };
        let seats: Vec<ConfusionSeat> = (0..self.table.judges.len())
            .filter_map(|j| {
                Some(ConfusionSeat {
                    judge: self.table.judges[j].name.clone(),
                    accept: fitted.points[j].as_ref()?.threshold?,
                    accepts_good: rate(j, true),
                    accepts_bad: rate(j, false),
                })
            })
            .collect();
        let good = fit.iter().filter(|&&i| cases[i].good).count();
        (!seats.is_empty()).then(|| Confusion { good: smoothed(good, fit.len()), seats })
    }

    /// The ends of the scale that keys are on.
    pub(super) fn scale(&self) -> Option<[f64; 2]> {
        if self.good_is_target() {
            return Some([0.0, 1.0]);
        }
        self.table.labels.scale.scale.map(|scale| [scale.low(), scale.high()])
    }

    pub(super) fn loop_report(
        &self,
        model: &PanelModel,
        fit: &[usize],
        rows: &[usize],
        certificate: &Certificate,
    ) -> Option<LoopReport> {
        let loops = self.options.loops.as_ref()?;
        let cases = self.table.cases();
        let key = |i: usize| model.key(&votes(self.table, i), Missing::LeftOut);
        let threshold = certificate.certified_key().map(|key| (key, "certified")).or_else(|| {
            let pairs = fit.iter().filter_map(|&i| Some((key(i)?, cases[i].good))).collect();
            Some((fitted(pairs)?, "fitted"))
        });
        let Options { resamples, seed, level, .. } = *self.options;
        let resampling = Resampling { resamples, seed, level };
        Some(loops.report(cases, &self.groups.of_case, rows, key, threshold, resampling))
    }
}
