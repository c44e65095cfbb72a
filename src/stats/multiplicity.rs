//! p-values adjusted for looking at many comparisons.
//!
//! Input order is kept. An adjusted value at or below q rejects at q.

use super::undefined::{Defined, require_unit};

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    order
}

/// Bonferroni: `min(1, m p)`.
///
/// # Errors
/// `no_data`, `not_finite`, `out_of_range`.
pub fn bonferroni(p: &[f64]) -> Defined<Vec<f64>> {
    require_unit(p)?;
    Ok(p.iter().map(|v| (v * p.len() as f64).min(1.0)).collect())
}

/// Holm (1979) step-down: controls the chance of any false rejection.
///
/// # Errors
/// As [`bonferroni`].
pub fn holm(p: &[f64]) -> Defined<Vec<f64>> {
    require_unit(p)?;
    let mut out = vec![0.0; p.len()];
    let mut running = 0.0f64;
    for (rank, i) in ascending(p).into_iter().enumerate() {
        running = running.max((p[i] * (p.len() - rank) as f64).min(1.0));
        out[i] = running;
    }
    Ok(out)
}

fn step_up(p: &[f64], factor: f64) -> Vec<f64> {
    let mut out = vec![0.0; p.len()];
    let mut running = 1.0f64;
    for (rank, i) in ascending(p).into_iter().enumerate().rev() {
        running = running.min(p[i] * factor * p.len() as f64 / (rank + 1) as f64);
        out[i] = running;
    }
    out
}

/// Benjamini and Hochberg (1995): controls the share of false rejections for independent
/// or positively dependent tests.
///
/// # Errors
/// As [`bonferroni`].
pub fn benjamini_hochberg(p: &[f64]) -> Defined<Vec<f64>> {
    require_unit(p)?;
    Ok(step_up(p, 1.0))
}

/// Benjamini and Yekutieli (2001): the same under any dependence, dearer by `sum 1/i`.
///
/// # Errors
/// As [`bonferroni`].
pub fn benjamini_yekutieli(p: &[f64]) -> Defined<Vec<f64>> {
    require_unit(p)?;
    let harmonic: f64 = (1..=p.len()).map(|i| 1.0 / i as f64).sum();
    Ok(step_up(p, harmonic))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn adjustment_never_lowers_a_p_value_and_keeps_their_order(
            p in prop::collection::vec(0.0f64..=1.0, 1..30)
        ) {
            let all = [bonferroni(&p), holm(&p), benjamini_hochberg(&p), benjamini_yekutieli(&p)];
            for adjusted in all {
                let adjusted = adjusted.unwrap();
                for i in 0..p.len() {
                    prop_assert!(adjusted[i] >= p[i] - 1e-15 && adjusted[i] <= 1.0);
                    for j in 0..p.len() {
                        prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_and_wild_values_are_refused() {
        assert!(holm(&[]).is_err() && holm(&[1.2]).is_err() && holm(&[f64::NAN]).is_err());
    }
}
