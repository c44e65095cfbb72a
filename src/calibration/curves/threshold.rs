//! The panel's error against its threshold, on the very cases that the certificate stands on,
//! so that curve and certificate can't disagree.

use serde::{Deserialize, Serialize};

use super::thinned;
use crate::calibration::calibrate::Work;
use crate::calibration::certificate::{Mode, one_a_group};
use crate::calibration::panel::{Key, PanelModel, votes};
use crate::stats::interval::clopper_pearson_upper;
use crate::stats::{Defined, Reason, Undefined};

/// What accepting from one key on does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThresholdPoint {
    /// The key's first number.
    pub threshold: f64,
    /// Its second number.
    pub tiebreak: f64,
    /// Share of the cases that are accepted.
    pub accepted: f64,
    /// The error that the certificate bounds.
    pub error: f64,
    /// Its upper bound at `1 - delta` (Clopper and Pearson 1934), for this threshold by itself.
    pub upper: f64,
    /// Cases that the error is a share of.
    pub n: u64,
    /// P(accepted | good).
    pub true_positive_rate: f64,
}

/// From the strictest key to the most lenient.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ThresholdCurve {
    /// Cases of the part, or loops.
    pub n: u64,
    /// Truly good ones.
    pub good: u64,
    /// Bad ones that the error stands on, one a group.
    pub n_bad: u64,
    /// The points.
    pub points: Vec<ThresholdPoint>,
}

impl Work<'_> {
    pub(super) fn threshold_curve(
        &self,
        model: &PanelModel,
        rows: &[usize],
        by_model: bool,
        certified: Option<Key>,
    ) -> Defined<ThresholdCurve> {
        if self.refuses(by_model).is_some() {
            return Err(Undefined { reason: Reason::NoData });
        }
        let options = self.options.certificate();
        let key = |i: usize, missing| model.key(&votes(self.table, i), missing);
        let cases = self.certify_cases(rows, key);
        let share = options.mode == Mode::FalseAcceptanceShare;
        let drawn = one_a_group(&cases, options.seed, |case| share || !case.good);
        // Sorted, so that what reaches a key is a matter of counting.
        let sorted = |keys: Vec<Key>| {
            let mut keys = keys;
            keys.sort_by(compare);
            keys
        };
        let bad: Vec<Key> =
            sorted(drawn.iter().filter(|i| !cases[**i].good).map(|&i| cases[i].worst).collect());
        let drawn_good: Vec<Key> = sorted(
            drawn.iter().filter(|i| cases[**i].good).filter_map(|&i| cases[i].key).collect(),
        );
        let good_total = cases.iter().filter(|case| case.good).count();
        let good: Vec<Key> =
            sorted(cases.iter().filter(|case| case.good).filter_map(|case| case.key).collect());
        let every: Vec<Key> = sorted(cases.iter().filter_map(|case| case.key).collect());
        if bad.is_empty() {
            return Err(Undefined { reason: Reason::NoNegatives });
        }
        if good_total == 0 {
            return Err(Undefined { reason: Reason::NoPositives });
        }
        let mut keys = every.clone();
        keys.extend(bad.iter().filter(|key| key.0 < f64::INFINITY));
        let mut keys = sorted(keys);
        keys.dedup();
        keys.reverse();
        let reach = |of: &[Key], key: &Key| {
            (of.len() - of.partition_point(|own| compare(own, key).is_lt())) as u64
        };
        let mut kept = thinned(keys.len(), |i| {
            reach(&good, &keys[i]) as f64 / good_total as f64
                + reach(&bad, &keys[i]) as f64 / bad.len() as f64
        });
        // The certified threshold itself is on the curve, whatever else is thinned out.
        if let Some(place) = certified.and_then(|own| keys.iter().position(|key| *key == own))
            && let Err(before) = kept.binary_search(&place)
        {
            kept.insert(before, place);
        }
        let points = kept
            .into_iter()
            .map(|i| {
                let key = &keys[i];
                let wrong = reach(&bad, key);
                let n = if share { wrong + reach(&drawn_good, key) } else { bad.len() as u64 };
                Ok(ThresholdPoint {
                    threshold: key.0,
                    tiebreak: key.1,
                    accepted: reach(&every, key) as f64 / cases.len() as f64,
                    error: if n == 0 { 0.0 } else { wrong as f64 / n as f64 },
                    upper: if n == 0 {
                        1.0
                    } else {
                        clopper_pearson_upper(wrong, n, options.delta)?
                    },
                    n,
                    true_positive_rate: reach(&good, key) as f64 / good_total as f64,
                })
            })
            .collect::<Result<_, Undefined>>()?;
        let (n, good) = (cases.len() as u64, good_total as u64);
        Ok(ThresholdCurve { n, good, n_bad: bad.len() as u64, points })
    }
}

fn compare(a: &Key, b: &Key) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
}
