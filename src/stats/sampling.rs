//! How many cases to label, and which strata to take them from.

use serde::{Deserialize, Serialize};

use super::distribution::{normal_critical, normal_quantile};
use super::undefined::{
    Defined, Reason, require_finite, require_open_unit, require_pairs, undefined,
};

/// Allocation of a labelling budget over strata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeymanAllocation {
    /// `n N_h S_h / sum N S`, not rounded.
    pub optimal: Vec<f64>,
    /// `n N_h / N`, not rounded.
    pub proportional: Vec<f64>,
    /// Variance of the stratified mean at the optimum, with finite-population correction.
    pub variance: f64,
}

/// Neyman's (1934) allocation of `n` labels to strata of sizes N and deviations S.
///
/// # Errors
/// `length_mismatch`, `no_data`, `not_finite`; `out_of_range` for negative sizes or
/// deviations; `zero_denominator` when no stratum has both size and spread.
pub fn neyman(sizes: &[f64], deviations: &[f64], n: u64) -> Defined<NeymanAllocation> {
    require_pairs(sizes, deviations)?;
    if sizes.iter().chain(deviations).any(|v| *v < 0.0) {
        return undefined(Reason::OutOfRange);
    }
    if n == 0 {
        return undefined(Reason::NoData);
    }
    let total: f64 = sizes.iter().sum();
    let products: Vec<f64> = sizes.iter().zip(deviations).map(|(n, s)| n * s).collect();
    let sum: f64 = products.iter().sum();
    if total == 0.0 || sum == 0.0 {
        return undefined(Reason::ZeroDenominator);
    }
    let budget = n as f64;
    let mean = sum / total;
    let square: f64 = sizes.iter().zip(deviations).map(|(n, s)| n / total * s * s).sum();
    Ok(NeymanAllocation {
        optimal: products.iter().map(|p| budget * p / sum).collect(),
        proportional: sizes.iter().map(|s| budget * s / total).collect(),
        variance: mean * mean / budget - square / total,
    })
}

/// Whole numbers that add up to `n`, by largest remainder; ties go to the earlier stratum.
///
/// # Errors
/// `no_data`, `not_finite`; `out_of_range` for a negative share; `zero_denominator`.
pub fn whole_allocation(shares: &[f64], n: u64) -> Defined<Vec<u64>> {
    require_finite(shares)?;
    if shares.iter().any(|s| *s < 0.0) {
        return undefined(Reason::OutOfRange);
    }
    let total: f64 = shares.iter().sum();
    if total == 0.0 {
        return undefined(Reason::ZeroDenominator);
    }
    let exact: Vec<f64> = shares.iter().map(|s| s / total * n as f64).collect();
    let mut out: Vec<u64> = exact.iter().map(|e| e.floor() as u64).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&i, &j| exact[j].fract().total_cmp(&exact[i].fract()).then(i.cmp(&j)));
    let left = n.saturating_sub(out.iter().sum::<u64>()) as usize;
    order.iter().cycle().take(left).for_each(|&i| out[i] += 1);
    Ok(out)
}

/// Labels for a normal interval of half width `h` around a rate near p:
/// `ceil(z^2 p (1-p) / h^2)`.
///
/// # Errors
/// `out_of_range`.
pub fn proportion_sample_size(half_width: f64, rate: f64, level: f64) -> Defined<u64> {
    require_open_unit(half_width)?;
    require_open_unit(rate)?;
    require_open_unit(level)?;
    let z = normal_critical(level);
    Ok((z * z * rate * (1.0 - rate) / (half_width * half_width)).ceil() as u64)
}

/// Paired cases for McNemar to find a net shift `d` when a share `f` of cases flips
/// (Connor 1987): `ceil((z_alpha sqrt(f) + z_power sqrt(f - d^2))^2 / d^2)`.
///
/// # Errors
/// `out_of_range` unless 0 < d <= f <= 1.
pub fn paired_sample_size(shift: f64, flips: f64, alpha: f64, power: f64) -> Defined<u64> {
    require_open_unit(alpha)?;
    require_open_unit(power)?;
    if !(shift > 0.0 && shift <= flips && flips <= 1.0) {
        return undefined(Reason::OutOfRange);
    }
    let (z_alpha, z_power) = (normal_critical(1.0 - alpha), normal_quantile(power));
    let root = z_alpha * flips.sqrt() + z_power * (flips - shift * shift).sqrt();
    Ok((root * root / (shift * shift)).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_anchor_counts() {
        assert_eq!(paired_sample_size(0.05, 0.11, 0.05, 0.8), Ok(343));
        assert_eq!(paired_sample_size(0.05, 0.07, 0.05, 0.8), Ok(218));
        assert_eq!(paired_sample_size(0.10, 0.14, 0.05, 0.8), Ok(108));
    }

    #[test]
    fn whole_allocations_spend_the_budget() {
        assert_eq!(whole_allocation(&[1.0, 1.0, 1.0], 10), Ok(vec![4, 3, 3]));
        assert_eq!(whole_allocation(&[0.0, 2.0], 3), Ok(vec![0, 3]));
        assert!(whole_allocation(&[0.0], 3).is_err() && whole_allocation(&[], 3).is_err());
    }

    #[test]
    fn strata_without_spread_have_no_optimum() {
        let f = neyman(&[10.0, 20.0], &[0.0, 0.0], 5);
        assert_eq!(f.unwrap_err().reason, Reason::ZeroDenominator);
        assert!(neyman(&[10.0], &[-1.0], 5).is_err());
    }
}
