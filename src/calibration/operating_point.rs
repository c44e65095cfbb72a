//! When a judge accepts: its positive class, a declared threshold, or a fitted one.
//!
//! A fitted threshold maximises balanced accuracy on the fit part; of equal ones the strictest
//! is taken. It is no certificate.

use super::figure::least;
use super::judge_metrics::OperatingPoint;
use super::labelled::LabelledCase;
use super::positive::Accept;
use super::table::JudgeKind;

/// The operating point of one judge; `None` where the fit part has one class only.
pub(super) fn operating_point(
    kind: JudgeKind,
    scores: &[Option<f64>],
    cases: &[LabelledCase],
    fit: &[usize],
    accept: Option<Accept>,
) -> Option<OperatingPoint> {
    if kind == JudgeKind::Binary {
        return Some(OperatingPoint {
            accept: "its positive class".to_owned(),
            threshold: Some(1.0),
            origin: "binary",
        });
    }
    let (threshold, origin) = match accept {
        Some(accept) => (accept.0, "declared"),
        None => {
            let pairs = fit.iter().filter_map(|&i| Some((scores[i]?, cases[i].good))).collect();
            (fitted(pairs)?, "fitted")
        }
    };
    Some(OperatingPoint {
        accept: format!("score >= {}", least(threshold)),
        threshold: Some(threshold),
        origin,
    })
}

/// Whether a score is accepted. A binary judge that contradicts itself between orders (1/2)
/// does not accept.
pub(super) fn accepts(point: &OperatingPoint, score: f64) -> bool {
    point.threshold.is_some_and(|threshold| score >= threshold)
}

/// The key from which accepting has the best balanced accuracy.
pub(super) fn fitted<K: PartialOrd + Copy>(mut pairs: Vec<(K, bool)>) -> Option<K> {
    let good = pairs.iter().filter(|pair| pair.1).count() as f64;
    let bad = pairs.len() as f64 - good;
    if good == 0.0 || bad == 0.0 {
        return None;
    }
    pairs.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(std::cmp::Ordering::Equal));
    let (mut hits, mut alarms, mut best) = (0.0, 0.0, None);
    let mut best_gain = f64::NEG_INFINITY;
    for tied in pairs.chunk_by(|a, b| a.0 == b.0) {
        let own = tied.iter().filter(|pair| pair.1).count() as f64;
        hits += own;
        alarms += tied.len() as f64 - own;
        let gain = hits / good - alarms / bad;
        if gain > best_gain {
            (best_gain, best) = (gain, Some(tied[0].0));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fitted_threshold_separates_the_classes_and_needs_both() {
        let pairs = vec![(1.0, false), (2.0, false), (3.0, true), (2.5, true), (2.0, true)];
        assert_eq!(fitted(pairs), Some(2.5));
        assert_eq!(fitted(vec![(1.0, true), (2.0, true)]), None);
        assert_eq!(fitted(vec![((1.0, 0.2), false), ((1.0, 0.4), true)]), Some((1.0, 0.4)));
    }

    #[test]
    fn a_constant_judge_accepts_everything_at_its_only_score() {
        assert_eq!(fitted(vec![(3.0, true), (3.0, false)]), Some(3.0));
    }
}
