//! Judges compared by what may be promised of each: the threshold at which its own
//! false-positive rate is bounded, and how many good cases it then accepts.
//!
//! Whoever takes the best of several judges chooses among as many certificates, so delta is
//! divided by their number: all of them hold together.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::calibrate::Work;
use super::certificate::{Certificate, CertificateOptions, CertificateStatus};
use super::figure::{Figure, Measured};
use super::panel::{Missing, PanelModel};
use super::subsets::sets;
use crate::dataset::LabelSource;

/// One judge, or a panel, with its own certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CertifiedAlone {
    /// The contender.
    pub name: String,
    /// How many judges it has.
    pub judges: u64,
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
    pub(super) fn of(name: &str, judges: u64, among: u64, own: Certificate) -> Option<Self> {
        // Nothing that no label could change is a comparison.
        (own.n_bad_cases > 0).then(|| Self {
            name: name.to_owned(),
            judges,
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
        self.alone(rows, self.table.judges.len() as u64)
    }

    /// The options of one certificate among several.
    fn shared(&self, among: u64) -> CertificateOptions {
        let options = self.options.certificate();
        CertificateOptions { delta: options.delta / among.max(1) as f64, ..options }
    }

    fn alone(&self, rows: &[usize], among: u64) -> Vec<CertifiedAlone> {
        let options = self.shared(among);
        self.table
            .judges
            .iter()
            .enumerate()
            .filter_map(|(j, judge)| {
                let certificate = Certificate::certify(&self.own_cases(j, rows)?, options).ok()?;
                CertifiedAlone::of(&judge.name, 1, among, certificate)
            })
            .collect()
    }

    /// Every judge alone and every smaller panel that reaches the quorum, where these can be
    /// listed, each with its own certificate; delta is divided by the number of all of them.
    pub(super) fn certified_smaller(
        &self,
        model: &PanelModel,
        rows: &[usize],
    ) -> Vec<CertifiedAlone> {
        let by_model = self.table.labels.sources.contains_key(&LabelSource::Model);
        if self.refuses(by_model).is_some() || self.table.judges.len() < 2 {
            return Vec::new();
        }
        let listed = sets(model.seats.len(), model.quorum).unwrap_or_default();
        let listed: Vec<Vec<usize>> = listed.into_iter().filter(|own| own.len() > 1).collect();
        let among = (self.table.judges.len() + listed.len()) as u64;
        let options = self.shared(among);
        let mut found = self.alone(rows, among);
        let smaller: Vec<Option<CertifiedAlone>> = listed
            .par_iter()
            .map(|places| {
                let own = model.only(places);
                let key = |i: usize, missing: Missing| {
                    let votes: Vec<Option<f64>> =
                        places.iter().map(|&j| self.table.judges[j].scores[i]).collect();
                    own.key(&votes, missing)
                };
                let names: Vec<&str> = own.seats.iter().map(|seat| seat.judge.as_str()).collect();
                let cases = self.certify_cases(rows, key);
                let certificate = Certificate::certify(&cases, options).ok()?;
                CertifiedAlone::of(&names.join(" + "), names.len() as u64, among, certificate)
            })
            .collect();
        found.extend(smaller.into_iter().flatten());
        found
    }
}

/// Named at most, of those that accept more than the panel.
const NAMED: usize = 3;

/// Says which judges alone, or smaller panels, are promised the same and accept more of the
/// good than the largest panel of the list; also where that one is promised nothing. `None`
/// where there are none.
#[must_use]
pub fn accepting_more(certified: &[CertifiedAlone]) -> Option<String> {
    let panel = certified.iter().filter(|own| own.judges > 1).max_by_key(|own| own.judges)?;
    let own = |of: &CertifiedAlone| {
        (of.status == CertificateStatus::Certified).then(|| of.true_positive_rate.value().copied())
    };
    let rate = own(panel).flatten();
    let least = rate.map_or(0.0, |own| own.estimate);
    let mut better: Vec<(&CertifiedAlone, Figure)> = certified
        .iter()
        .filter(|of| of.judges < panel.judges)
        .filter_map(|of| Some((of, own(of)??)))
        .filter(|(_, figure)| figure.estimate > least)
        .collect();
    better.sort_by(|a, b| b.1.estimate.total_cmp(&a.1.estimate).then(a.0.judges.cmp(&b.0.judges)));
    let first = better.first()?;
    let hundred = |figure: &Figure| {
        let [estimate, lower, upper] =
            [figure.estimate, figure.lower, figure.upper].map(|own| 100.0 * own);
        format!("{estimate:.1}% [{lower:.1}, {upper:.1}]")
    };
    let named: Vec<String> = better
        .iter()
        .take(NAMED)
        .map(|(of, figure)| format!("`{}` ({})", of.name, hundred(figure)))
        .collect();
    let more = match better.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let against = match &rate {
        Some(own) => format!("`{}` accepts {}", panel.name, hundred(own)),
        None => format!("for `{}` nothing can be promised", panel.name),
    };
    let doubt = match &rate {
        Some(own) if first.1.lower <= own.upper => {
            "; the intervals overlap, so these data may not tell them apart"
        }
        _ => "",
    };
    Some(format!(
        "Fewer judges accept more of the good at the same promise (delta divided by the {} they are chosen from): {}{more}; {against} (n = {} good){doubt}.",
        first.0.among,
        named.join(", "),
        first.1.n
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Method;

    fn of(name: &str, judges: u64, rate: Option<f64>) -> CertifiedAlone {
        let figure = |rate| Figure {
            estimate: rate,
            lower: rate - 0.04,
            upper: rate + 0.04,
            n: 500,
            level: 0.95,
            method: Method::Wilson,
        };
        CertifiedAlone {
            name: name.to_owned(),
            judges,
            among: 11,
            status: rate
                .map_or(CertificateStatus::NotCertifiable, |_| CertificateStatus::Certified),
            alpha: 0.05,
            delta: 0.1,
            threshold: rate,
            n_bad: 100,
            true_positive_rate: Measured(
                rate.map(figure).ok_or(crate::stats::Reason::NoData.into()),
            ),
            reason: None,
            labels_needed: None,
        }
    }

    #[test]
    fn a_judge_that_accepts_more_than_the_panel_at_the_same_promise_is_named() {
        let panel = of("panel", 3, Some(0.66));
        let rule = of("rule", 1, Some(0.786));
        let weak = of("weak", 1, Some(0.30));
        let text = accepting_more(&[weak.clone(), rule, panel.clone()]).unwrap();
        assert!(text.contains("`rule` (78.6% [74.6, 82.6])") && !text.contains("weak"), "{text}");
        assert!(text.contains("`panel` accepts 66.0%") && !text.contains("overlap"), "{text}");
        assert_eq!(accepting_more(&[weak, panel.clone()]), None);
        let near = of("near", 2, Some(0.68));
        assert!(accepting_more(&[near, panel]).unwrap().contains("overlap"));
    }

    #[test]
    fn a_panel_without_a_promise_is_beaten_by_any_judge_that_has_one() {
        let text = accepting_more(&[of("rule", 1, Some(0.2)), of("panel", 3, None)]).unwrap();
        assert!(text.contains("for `panel` nothing can be promised"), "{text}");
        assert_eq!(accepting_more(&[of("rule", 1, Some(0.2))]), None, "no panel to beat");
    }
}
