//! Resampling intervals that are the same on any number of threads.
//!
//! Replicate `i` draws from its own ChaCha8 stream `(seed, i)`, so the work can be split
//! freely. Statistics of a table need only multinomial counts, which is exact in
//! distribution and independent of the number of rows. Replicates on which the statistic
//! is undefined are left out, and an interval of zero width is refused rather than shown.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::distribution::{normal_cdf, normal_quantile};
use super::draw::{multinomial, stream};
use super::interval::clopper_pearson;
use super::summary::quantile_of_sorted;
use super::undefined::{Defined, Reason, Undefined, require_open_unit, undefined};
use super::{Estimate, Interval, Method};

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resampling {
    /// Number of replicates.
    pub resamples: usize,
    /// Seed of all streams.
    pub seed: u64,
    /// Nominal coverage in (0,1).
    pub level: f64,
}

fn collect(resampling: Resampling, one: impl Fn(&mut ChaCha8Rng) -> Defined + Sync) -> Vec<f64> {
    (0..resampling.resamples as u64)
        .into_par_iter()
        .map(|i| one(&mut stream(resampling.seed, i)))
        .collect::<Vec<Defined>>()
        .into_iter()
        .filter_map(Result::ok)
        .filter(|v| v.is_finite())
        .collect()
}

/// Replicates of a statistic of row indices: each replicate draws `n` rows with replacement.
pub fn index_replicates(
    n: usize,
    resampling: Resampling,
    statistic: impl Fn(&[usize]) -> Defined + Sync,
) -> Vec<f64> {
    if n == 0 {
        return Vec::new();
    }
    collect(resampling, |rng| {
        let rows: Vec<usize> = (0..n).map(|_| rng.random_range(0..n)).collect();
        statistic(&rows)
    })
}

/// As [`index_replicates`], but the statistic sees how often each row was drawn.
pub fn weighted_replicates(
    n: usize,
    resampling: Resampling,
    statistic: impl Fn(&[u32]) -> Defined + Sync,
) -> Vec<f64> {
    if n == 0 {
        return Vec::new();
    }
    collect(resampling, |rng| {
        let mut times = vec![0u32; n];
        for _ in 0..n {
            times[rng.random_range(0..n)] += 1;
        }
        statistic(&times)
    })
}

/// Replicates of a statistic of rows, drawing whole clusters: `cluster[i]` is row i's group.
pub fn cluster_replicates(
    cluster: &[usize],
    resampling: Resampling,
    statistic: impl Fn(&[usize]) -> Defined + Sync,
) -> Vec<f64> {
    let members = members_of(cluster);
    if members.is_empty() {
        return Vec::new();
    }
    collect(resampling, |rng| {
        let mut rows = Vec::with_capacity(cluster.len());
        for _ in 0..members.len() {
            rows.extend_from_slice(&members[rng.random_range(0..members.len())]);
        }
        statistic(&rows)
    })
}

/// Row numbers by cluster, clusters in the order of first appearance.
fn members_of(cluster: &[usize]) -> Vec<Vec<usize>> {
    let mut position = std::collections::HashMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (row, id) in cluster.iter().enumerate() {
        let at = *position.entry(*id).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[at].push(row);
    }
    members
}

/// Replicates of a statistic of the counts of a table: multinomial resampling of the cells,
/// O(cells) a replicate whatever the number of rows.
pub fn table_replicates(
    counts: &[u64],
    resampling: Resampling,
    statistic: impl Fn(&[u64]) -> Defined + Sync,
) -> Vec<f64> {
    let n: u64 = counts.iter().sum();
    if n == 0 {
        return Vec::new();
    }
    collect(resampling, |rng| statistic(&multinomial(rng, n, counts)))
}

/// Percentile interval of replicates around a point.
///
/// # Errors
/// `no_replicates` without replicates; `zero_variance` when the interval has no width,
/// because an interval of width zero would claim certainty; use an exact one.
pub fn percentile_estimate(
    point: f64,
    mut replicates: Vec<f64>,
    n: usize,
    level: f64,
) -> Defined<Estimate> {
    require_open_unit(level)?;
    if replicates.is_empty() {
        return undefined(Reason::NoReplicates);
    }
    replicates.sort_unstable_by(f64::total_cmp);
    let half = (1.0 - level) / 2.0;
    let lower = quantile_of_sorted(&replicates, half)?;
    let upper = quantile_of_sorted(&replicates, 1.0 - half)?;
    if lower == upper {
        return undefined(Reason::ZeroVariance);
    }
    let interval = Interval { lower, upper, level };
    Ok(Estimate { point, interval, n, method: Method::BootstrapPercentile })
}

/// Acceleration of the BCa interval from leave-one-out values:
/// `sum (m - v)^3 / (6 (sum (m - v)^2)^1.5)` (Efron 1987). `weights[i]` says how many rows
/// share the value.
///
/// # Errors
/// `no_data`; `zero_variance` when all values are the same.
pub fn acceleration(values: &[f64], weights: &[f64]) -> Defined {
    let total: f64 = weights.iter().sum();
    if values.is_empty() || values.len() != weights.len() || total <= 0.0 {
        return undefined(Reason::NoData);
    }
    let mean = values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>() / total;
    let moment = |power: i32| -> f64 {
        values.iter().zip(weights).map(|(v, w)| w * (mean - v).powi(power)).sum()
    };
    let spread = moment(2);
    if spread.is_nan() {
        return undefined(Reason::NotFinite);
    }
    if spread == 0.0 {
        return undefined(Reason::ZeroVariance);
    }
    Ok(moment(3) / (6.0 * spread.powf(1.5)))
}

/// Bias-corrected and accelerated interval (Efron 1987) of given replicates.
///
/// # Errors
/// As [`percentile_estimate`].
pub fn bca_estimate(
    point: f64,
    mut replicates: Vec<f64>,
    acceleration: f64,
    n: usize,
    level: f64,
) -> Defined<Estimate> {
    require_open_unit(level)?;
    if replicates.is_empty() {
        return undefined(Reason::NoReplicates);
    }
    replicates.sort_unstable_by(f64::total_cmp);
    // Replicates equal to the point count half, which matters for statistics of counts.
    let below = replicates.partition_point(|&r| r < point) as f64;
    let upto = replicates.partition_point(|&r| r <= point) as f64;
    let share = f64::midpoint(below, upto) / replicates.len() as f64;
    if share == 0.0 || share == 1.0 {
        // The point lies outside its own replicates: the bias correction is infinite.
        return percentile_estimate(point, replicates, n, level);
    }
    let bias = normal_quantile(share);
    let half = (1.0 - level) / 2.0;
    let position = |z: f64| {
        let sum = bias + z;
        normal_cdf(bias + sum / (1.0 - acceleration * sum))
    };
    let z = normal_quantile(half);
    let lower = quantile_of_sorted(&replicates, position(z))?;
    let upper = quantile_of_sorted(&replicates, position(-z))?;
    if lower == upper {
        return undefined(Reason::ZeroVariance);
    }
    let interval = Interval { lower, upper, level };
    Ok(Estimate { point, interval, n, method: Method::BootstrapBca })
}

/// BCa bootstrap of a statistic of rows; `cluster` groups rows that belong together (pass
/// `None` when rows are independent). The jackknife leaves out a row, or a cluster.
///
/// # Errors
/// That of the statistic on the full data, and those of [`percentile_estimate`].
pub fn bootstrap(
    n: usize,
    cluster: Option<&[usize]>,
    resampling: Resampling,
    statistic: impl Fn(&[usize]) -> Defined + Sync,
) -> Defined<Estimate> {
    if n == 0 {
        return undefined(Reason::NoData);
    }
    if cluster.is_some_and(|c| c.len() != n) {
        return undefined(Reason::LengthMismatch);
    }
    let all: Vec<usize> = (0..n).collect();
    let point = statistic(&all)?;
    let members = cluster.map_or_else(|| all.iter().map(|&i| vec![i]).collect(), members_of);
    let replicates = match cluster {
        Some(cluster) => cluster_replicates(cluster, resampling, &statistic),
        None => index_replicates(n, resampling, &statistic),
    };
    let leave_out: Vec<f64> = members
        .par_iter()
        .map(|gone| {
            let mut skip = gone.iter().peekable();
            let kept: Vec<usize> = (0..n).filter(|i| skip.next_if(|s| *s == i).is_none()).collect();
            statistic(&kept)
        })
        .collect::<Vec<Defined>>()
        .into_iter()
        .filter_map(Result::ok)
        .collect();
    let a = acceleration(&leave_out, &vec![1.0; leave_out.len()]).unwrap_or(0.0);
    bca_estimate(point, replicates, a, n, resampling.level)
}

/// BCa bootstrap of a statistic of a table's counts, by multinomial resampling.
///
/// # Errors
/// As [`bootstrap`].
pub fn bootstrap_table(
    counts: &[u64],
    resampling: Resampling,
    statistic: impl Fn(&[u64]) -> Defined + Sync,
) -> Defined<Estimate> {
    let point = statistic(counts)?;
    let replicates = table_replicates(counts, resampling, &statistic);
    let (mut values, mut weights) = (Vec::new(), Vec::new());
    for (cell, &count) in counts.iter().enumerate().filter(|(_, c)| **c > 0) {
        let mut less = counts.to_vec();
        less[cell] -= 1;
        if let Ok(value) = statistic(&less) {
            values.push(value);
            weights.push(count as f64);
        }
    }
    let a = acceleration(&values, &weights).unwrap_or(0.0);
    let n = counts.iter().sum::<u64>() as usize;
    bca_estimate(point, replicates, a, n, resampling.level)
}

/// A pooled proportion `sum k / sum n` over clusters of (successes, trials), by cluster
/// bootstrap. All-success and all-failure data would give zero width and fall back to
/// Clopper-Pearson on the number of clusters, the safe reading of dependent rows.
///
/// # Errors
/// `no_data`, `bad_counts`.
pub fn clustered_proportion(clusters: &[(u64, u64)], resampling: Resampling) -> Defined<Estimate> {
    if clusters.iter().any(|(k, n)| k > n) {
        return undefined(Reason::BadCounts);
    }
    let used: Vec<(u64, u64)> = clusters.iter().copied().filter(|(_, n)| *n > 0).collect();
    let total: u64 = used.iter().map(|(_, n)| n).sum();
    let successes: u64 = used.iter().map(|(k, _)| k).sum();
    if total == 0 {
        return undefined(Reason::NoData);
    }
    let groups = used.len() as u64;
    let share = |rows: &[usize]| {
        let (k, n) = rows.iter().fold((0, 0), |(k, n), &row| (k + used[row].0, n + used[row].1));
        if n == 0 { undefined(Reason::NoData) } else { Ok(k as f64 / n as f64) }
    };
    match bootstrap(used.len(), None, resampling, share) {
        Err(Undefined { reason: Reason::ZeroVariance }) => {
            // Extreme shares: one cluster counts once. Equal shares in between: there is no
            // spread between clusters to estimate, so the rows' own binomial noise is left.
            let (k, n) = match successes {
                0 => (0, groups),
                all if all == total => (groups, groups),
                _ if groups < 2 => return undefined(Reason::TooFewValues),
                some => (some, total),
            };
            let exact = clopper_pearson(k, n, resampling.level)?;
            Ok(Estimate { point: successes as f64 / total as f64, n: total as usize, ..exact })
        }
        other => other.map(|e| Estimate { n: total as usize, ..e }),
    }
}

/// A proportion of (successes, trials), one entry for what belongs together: by
/// [`clustered_proportion`], or exact (Clopper and Pearson 1934) where nothing does.
///
/// # Errors
/// `no_data`, `bad_counts`.
pub fn grouped_proportion(groups: &[(u64, u64)], resampling: Resampling) -> Defined<Estimate> {
    if groups.iter().any(|(_, n)| *n > 1) {
        return clustered_proportion(groups, resampling);
    }
    let (k, n) = groups.iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    clopper_pearson(k, n, resampling.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Resampling = Resampling { resamples: 2000, seed: 11, level: 0.95 };

    fn mean_of(x: &[f64]) -> impl Fn(&[usize]) -> Defined + Sync + '_ {
        |rows| {
            if rows.is_empty() {
                return undefined(Reason::NoData);
            }
            Ok(rows.iter().map(|&i| x[i]).sum::<f64>() / rows.len() as f64)
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_result() {
        let x: Vec<f64> = (0..50).map(|i| f64::from(i % 7)).collect();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bootstrap(x.len(), None, SETTINGS, mean_of(&x)).unwrap())
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn table_and_row_bootstrap_agree() {
        let counts = [30u64, 70];
        let table = bootstrap_table(&counts, SETTINGS, |c| {
            let n = c.iter().sum::<u64>();
            if n == 0 { undefined(Reason::NoData) } else { Ok(c[1] as f64 / n as f64) }
        })
        .unwrap();
        let x: Vec<f64> = (0..100).map(|i| f64::from(u8::from(i >= 30))).collect();
        let rows = bootstrap(100, None, SETTINGS, mean_of(&x)).unwrap();
        assert!((table.interval.lower - rows.interval.lower).abs() < 0.02);
        assert!((table.interval.upper - rows.interval.upper).abs() < 0.02);
    }

    #[test]
    fn clusters_widen_the_interval_of_duplicated_rows() {
        let x: Vec<f64> = (0..200).map(|i| f64::from((i / 10) % 2)).collect();
        let groups: Vec<usize> = (0..200).map(|i| i / 10).collect();
        let plain = bootstrap(200, None, SETTINGS, mean_of(&x)).unwrap();
        let grouped = bootstrap(200, Some(&groups), SETTINGS, mean_of(&x)).unwrap();
        assert!(grouped.interval.width() > 2.0 * plain.interval.width());
    }

    #[test]
    fn a_zero_width_interval_is_replaced_by_an_exact_one() {
        let all = clustered_proportion(&[(5, 5); 12], SETTINGS).unwrap();
        assert_eq!(all.method, Method::ClopperPearson);
        assert!(all.interval.lower < 0.8 && all.interval.upper == 1.0);
        let x = [1.0; 8];
        let error = bootstrap(8, None, SETTINGS, mean_of(&x)).unwrap_err();
        assert_eq!(error.reason, Reason::ZeroVariance);
        assert!(clustered_proportion(&[], SETTINGS).is_err());
        assert!(clustered_proportion(&[(2, 1)], SETTINGS).is_err());
    }
}
