//! Accept thresholds whose false-positive rate is bounded, from scores of bad cases.
//!
//! The bound is an exact order statistic (the Neyman-Pearson umbrella of Tong, Feng and Li
//! 2018), equal to a fixed-sequence test with exact binomial p-values. Too few bad cases
//! give "not certifiable" and how many are missing, never a number.

use serde::{Deserialize, Serialize};

use super::distribution::binomial_cdf;
use super::undefined::{Defined, Reason, require_open_unit, undefined};

/// `k* = max{k : P(Bin(n, alpha) <= k) <= delta}`: how many of `n` bad cases may be
/// accepted; `None` when not even none suffices.
///
/// # Errors
/// `out_of_range` for alpha or delta outside (0,1).
pub fn allowed_false_accepts(n: u64, alpha: f64, delta: f64) -> Defined<Option<u64>> {
    require_open_unit(alpha)?;
    require_open_unit(delta)?;
    if n == 0 || binomial_cdf(0, n, alpha) > delta {
        return Ok(None);
    }
    // The tail grows with k: bisection between a certified and a refused count.
    let (mut certified, mut refused) = (0, n);
    while refused - certified > 1 {
        let middle = certified + (refused - certified) / 2;
        if binomial_cdf(middle, n, alpha) <= delta {
            certified = middle;
        } else {
            refused = middle;
        }
    }
    Ok(Some(certified))
}

/// The smallest number of bad cases with which `false_accepts` still certify:
/// `min{n : P(Bin(n, alpha) <= k) <= delta}`.
///
/// # Errors
/// `out_of_range` for alpha or delta outside (0,1).
pub fn needed_negatives(false_accepts: u64, alpha: f64, delta: f64) -> Defined<u64> {
    require_open_unit(alpha)?;
    require_open_unit(delta)?;
    let enough = |n: u64| binomial_cdf(false_accepts, n, alpha) <= delta;
    let mut high = false_accepts + 1;
    while !enough(high) {
        high = high.saturating_mul(2);
        if high > 1 << 50 {
            return undefined(Reason::OutOfRange);
        }
    }
    let mut low = false_accepts;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    Ok(high)
}

/// Why no threshold is certified, or which one is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Threshold<K = f64> {
    /// Accept keys at or above `threshold`.
    Certified {
        /// The smallest certified key.
        threshold: K,
        /// Bad cases at or above it.
        false_accepts: u64,
        /// Most bad cases that would still certify, k*.
        allowed: u64,
        /// Bad cases used.
        n: u64,
    },
    /// Too few bad cases for any threshold.
    TooFewNegatives {
        /// Bad cases used.
        n: u64,
        /// Bad cases still missing, counted for a judge that accepts none of them.
        missing: u64,
    },
    /// Enough bad cases, but more than k* of them tie at the highest candidate.
    Ties {
        /// Bad cases used.
        n: u64,
        /// Most bad cases that would still certify, k*.
        allowed: u64,
        /// Bad cases tied at the highest key.
        tied: u64,
    },
}

/// The smallest threshold t among `candidates` (the distinct keys of the data) with
/// `#{bad >= t} <= k*`; its false-positive rate is at most alpha with confidence
/// 1 - delta. Keys may be scores, or `(median, mean)` pairs ordered lexicographically.
///
/// Any candidates will do, such as the keys of all cases, good and bad: the threshold lies
/// above the (k*+1)-th largest bad key in every case, and that alone bounds the rate.
///
/// # Errors
/// `not_finite` when keys cannot be ordered, `out_of_range` for alpha or delta.
pub fn certify_threshold<K: PartialOrd + Copy>(
    bad: &[K],
    candidates: &[K],
    alpha: f64,
    delta: f64,
) -> Defined<Threshold<K>> {
    let n = bad.len() as u64;
    let ordered = |keys: &[K]| -> Defined<Vec<K>> {
        if keys.iter().any(|k| k.partial_cmp(k).is_none()) {
            return undefined(Reason::NotFinite);
        }
        let mut keys = keys.to_vec();
        keys.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        Ok(keys)
    };
    let (bad, mut candidates) = (ordered(bad)?, ordered(candidates)?);
    let Some(allowed) = allowed_false_accepts(n, alpha, delta)? else {
        let missing = needed_negatives(0, alpha, delta)?.saturating_sub(n);
        return Ok(Threshold::TooFewNegatives { n, missing });
    };
    candidates.dedup_by(|a, b| a == b);
    let at_or_above = |t: &K| (bad.len() - bad.partition_point(|b| b < t)) as u64;
    let first = candidates.partition_point(|t| at_or_above(t) > allowed);
    match candidates.get(first) {
        Some(threshold) => Ok(Threshold::Certified {
            threshold: *threshold,
            false_accepts: at_or_above(threshold),
            allowed,
            n,
        }),
        None => {
            let tied = candidates.last().map_or(0, at_or_above);
            Ok(Threshold::Ties { n, allowed, tied })
        }
    }
}

/// A threshold whose false-acceptance share P(truly bad | accepted) is at most alpha with
/// confidence 1 - delta, by a fixed sequence of exact binomial tests from the strictest
/// candidate to the most lenient. The sequence starts where enough cases are accepted for
/// a test to pass at all, which depends on the keys and not on the labels. `None` when
/// nothing is certified. The share moves with the share of bad cases: certify it anew when
/// that changes.
///
/// # Errors
/// `length_mismatch`, `not_finite`, `out_of_range`.
pub fn certify_acceptance_share<K: PartialOrd + Copy>(
    keys: &[K],
    good: &[bool],
    alpha: f64,
    delta: f64,
) -> Defined<Option<AcceptanceShare<K>>> {
    if keys.len() != good.len() {
        return undefined(Reason::LengthMismatch);
    }
    if keys.iter().any(|k| k.partial_cmp(k).is_none()) {
        return undefined(Reason::NotFinite);
    }
    let enough = needed_negatives(0, alpha, delta)?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&i, &j| keys[j].partial_cmp(&keys[i]).unwrap_or(std::cmp::Ordering::Equal));
    let (mut accepted, mut false_accepts, mut best) = (0u64, 0u64, None);
    for group in order.chunk_by(|&i, &j| keys[i] == keys[j]) {
        accepted += group.len() as u64;
        false_accepts += group.iter().filter(|&&i| !good[i]).count() as u64;
        if accepted < enough {
            continue;
        }
        if binomial_cdf(false_accepts, accepted, alpha) > delta {
            break;
        }
        best = Some(AcceptanceShare { threshold: keys[group[0]], false_accepts, accepted });
    }
    Ok(best)
}

/// A certified false-acceptance share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptanceShare<K = f64> {
    /// Accept keys at or above.
    pub threshold: K,
    /// Labelled bad cases accepted.
    pub false_accepts: u64,
    /// Labelled cases accepted.
    pub accepted: u64,
}

/// The largest threshold t among `candidates` such that rejecting keys below t rejects a
/// truly good case with probability at most alpha, with confidence 1 - delta:
/// `#{good < t} <= k*`. `None` when no candidate or too few good cases allow it. Between
/// this and an accept threshold lies the part that needs a person.
///
/// # Errors
/// As [`certify_threshold`].
pub fn certify_rejection<K: PartialOrd + Copy>(
    good: &[K],
    candidates: &[K],
    alpha: f64,
    delta: f64,
) -> Defined<Option<K>> {
    if good.iter().chain(candidates).any(|k| k.partial_cmp(k).is_none()) {
        return undefined(Reason::NotFinite);
    }
    let Some(allowed) = allowed_false_accepts(good.len() as u64, alpha, delta)? else {
        return Ok(None);
    };
    Ok(candidates
        .iter()
        .filter(|t| good.iter().filter(|g| g < t).count() as u64 <= allowed)
        .copied()
        .reduce(|best, t| if t > best { t } else { best }))
}

/// The threshold of conformal risk control (Angelopoulos et al. 2022) for 0/1 losses: the
/// smallest t with `(#{bad >= t} + 1) / (n + 1) <= alpha`. It bounds the *expected*
/// false-positive rate only, a visibly weaker promise than [`certify_threshold`].
///
/// # Errors
/// As [`certify_threshold`].
pub fn expected_threshold<K: PartialOrd + Copy>(
    bad: &[K],
    candidates: &[K],
    alpha: f64,
) -> Defined<Option<K>> {
    require_open_unit(alpha)?;
    if bad.iter().chain(candidates).any(|k| k.partial_cmp(k).is_none()) {
        return undefined(Reason::NotFinite);
    }
    let fits = |t: &K| {
        let losses = bad.iter().filter(|b| *b >= t).count();
        (losses + 1) as f64 <= alpha * (bad.len() + 1) as f64
    };
    Ok(candidates
        .iter()
        .filter(|t| fits(t))
        .copied()
        .reduce(|best, t| if t < best { t } else { best }))
}

/// Probability that a threshold is certified at a judge whose true false-positive rate at
/// it is `rate`: `P(Bin(n, rate) <= k*)`, 0 when n is too small.
///
/// # Errors
/// `out_of_range`.
pub fn certification_power(n: u64, alpha: f64, delta: f64, rate: f64) -> Defined {
    super::undefined::require_unit(&[rate])?;
    Ok(allowed_false_accepts(n, alpha, delta)?.map_or(0.0, |k| binomial_cdf(k, n, rate)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::draw::stream;
    use rand::RngExt;

    #[test]
    fn the_published_label_budget() {
        assert_eq!(needed_negatives(0, 0.05, 0.05), Ok(59));
        assert_eq!(needed_negatives(0, 0.05, 0.10), Ok(45));
        assert_eq!(needed_negatives(5, 0.01, 0.05), Ok(1049));
        assert_eq!(allowed_false_accepts(58, 0.05, 0.05), Ok(None));
        assert_eq!(allowed_false_accepts(0, 0.05, 0.05), Ok(None));
    }

    #[test]
    fn too_few_negatives_say_how_many_are_missing() {
        let scores = [0.1; 40];
        assert_eq!(
            certify_threshold(&scores, &scores, 0.05, 0.10),
            Ok(Threshold::TooFewNegatives { n: 40, missing: 5 })
        );
        assert_eq!(
            certify_threshold::<f64>(&[], &[], 0.05, 0.10),
            Ok(Threshold::TooFewNegatives { n: 0, missing: 45 })
        );
    }

    #[test]
    fn bad_cases_that_all_tie_cannot_be_certified_below_a_better_case() {
        let bad = [0.8; 60];
        let tied = certify_threshold(&bad, &bad, 0.05, 0.10);
        assert_eq!(tied, Ok(Threshold::Ties { n: 60, allowed: 0, tied: 60 }));
        // A good case above the tie gives a threshold that no bad case reaches.
        let certified = certify_threshold(&bad, &[0.8, 0.9], 0.05, 0.10).unwrap();
        assert!(matches!(certified, Threshold::Certified { threshold: 0.9, false_accepts: 0, .. }));
    }

    #[test]
    fn the_pair_key_resolves_ties_of_the_median() {
        let bad: Vec<(f64, f64)> = (0..60).map(|i| (0.8, f64::from(i) / 100.0)).collect();
        let good = [(0.8, 0.9)];
        let keys: Vec<(f64, f64)> = bad.iter().chain(&good).copied().collect();
        let t = certify_threshold(&bad, &keys, 0.05, 0.10).unwrap();
        assert!(matches!(t, Threshold::Certified { threshold: (_, m), .. } if m == 0.9));
        assert!(certify_threshold(&[(0.5, f64::NAN)], &keys, 0.05, 0.1).is_err());
    }

    /// Scores uniform on (0,1), so the true rate at threshold t is 1 - t.
    #[test]
    fn the_true_rate_exceeds_alpha_no_more_often_than_delta() {
        for (n, alpha, delta, steps) in [
            (60, 0.05, 0.05, 0u32),
            (100, 0.05, 0.10, 0),
            (200, 0.05, 0.05, 0),
            (150, 0.1, 0.1, 20),
        ] {
            let repeats = 3000u64;
            let mut violations = 0u32;
            for i in 0..repeats {
                let mut rng = stream(99, i);
                let bad: Vec<f64> = (0..n)
                    .map(|_| {
                        let u: f64 = rng.random();
                        // A coarse scale of `steps` levels has ties.
                        if steps == 0 {
                            u
                        } else {
                            (u * f64::from(steps)).floor() / f64::from(steps)
                        }
                    })
                    .collect();
                if let Threshold::Certified { threshold, .. } =
                    certify_threshold(&bad, &bad, alpha, delta).unwrap()
                {
                    violations += u32::from(1.0 - threshold > alpha + 1e-12);
                }
            }
            let share = f64::from(violations) / repeats as f64;
            let ceiling = delta + 3.0 * (delta * (1.0 - delta) / repeats as f64).sqrt();
            assert!(share <= ceiling, "n {n}: {share} above {ceiling}");
        }
    }

    #[test]
    fn the_acceptance_share_stops_at_the_first_test_that_fails() {
        // 60 good cases on top, then bad ones: certified down to the first few bad.
        let keys: Vec<f64> = (0..200).map(|i| 1.0 - f64::from(i) / 200.0).collect();
        let good: Vec<bool> = (0..200).map(|i| i < 60).collect();
        let share = certify_acceptance_share(&keys, &good, 0.05, 0.05).unwrap().unwrap();
        assert_eq!((share.accepted, share.false_accepts), (60, 0));
        let few = certify_acceptance_share(&keys[..58], &good[..58], 0.05, 0.05).unwrap();
        assert_eq!(few, None);
        assert!(certify_acceptance_share(&keys, &good[1..], 0.05, 0.05).is_err());
        assert!(certify_acceptance_share(&[f64::NAN], &[true], 0.05, 0.05).is_err());
    }

    #[test]
    fn the_true_acceptance_share_exceeds_alpha_no_more_often_than_delta() {
        // Keys uniform; a case of key u is bad with probability 0.3 (1 - u), so the share
        // above t is 0.15 (1 - t).
        let (alpha, delta, repeats) = (0.05, 0.1, 2000u64);
        let mut violations = 0u32;
        for i in 0..repeats {
            let mut rng = stream(55, i);
            let keys: Vec<f64> = (0..300).map(|_| rng.random()).collect();
            let good: Vec<bool> =
                keys.iter().map(|u| rng.random::<f64>() >= 0.3 * (1.0 - u)).collect();
            if let Some(share) = certify_acceptance_share(&keys, &good, alpha, delta).unwrap() {
                violations += u32::from(0.15 * (1.0 - share.threshold) > alpha);
            }
        }
        let share = f64::from(violations) / repeats as f64;
        assert!(share <= delta + 3.0 * (delta * (1.0 - delta) / repeats as f64).sqrt(), "{share}");
    }

    #[test]
    fn rejection_mirrors_acceptance() {
        let good: Vec<f64> = (0..100).map(|i| f64::from(i) / 100.0).collect();
        let accept = certify_threshold(
            &good.iter().map(|g| -g).collect::<Vec<f64>>(),
            &good.iter().map(|g| -g).collect::<Vec<f64>>(),
            0.05,
            0.1,
        )
        .unwrap();
        let allowed = allowed_false_accepts(100, 0.05, 0.1).unwrap().unwrap();
        let reject = certify_rejection(&good, &good, 0.05, 0.1).unwrap().unwrap();
        assert_eq!(good.iter().filter(|g| **g < reject).count() as u64, allowed);
        assert!(
            matches!(accept, Threshold::Certified { false_accepts, .. } if false_accepts == allowed)
        );
        assert_eq!(certify_rejection(&good[..10], &good, 0.05, 0.1), Ok(None));
    }

    proptest! {
        #[test]
        fn more_cases_more_risk_and_less_confidence_allow_more(
            n in 1u64..2000, alpha in 0.01f64..0.3, delta in 0.01f64..0.3
        ) {
            let k = |n, a, d| allowed_false_accepts(n, a, d).unwrap().map_or(-1, |k| k as i64);
            let base = k(n, alpha, delta);
            prop_assert!(k(n + 1, alpha, delta) >= base);
            prop_assert!(k(n, alpha * 1.1, delta) >= base);
            prop_assert!(k(n, alpha, delta * 1.1) >= base);
            if base >= 0 {
                prop_assert!(needed_negatives(base as u64, alpha, delta).unwrap() <= n);
            }
        }

        #[test]
        fn thresholds_fall_as_alpha_grows(
            scores in prop::collection::vec(0u8..40, 60..200)
        ) {
            let scores: Vec<f64> = scores.into_iter().map(f64::from).collect();
            let at = |alpha| match certify_threshold(&scores, &scores, alpha, 0.1).unwrap() {
                Threshold::Certified { threshold, .. } => threshold,
                _ => f64::INFINITY,
            };
            prop_assert!(at(0.05) >= at(0.1) && at(0.1) >= at(0.3));
        }
    }
}
