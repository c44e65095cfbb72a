//! Comparisons on the same cases: McNemar, Cochran's Q, sign and signed-rank tests.
//!
//! Identical systems have p = 1, never an undefined one, because no difference was seen.

use serde::{Deserialize, Serialize};

use super::distribution::{
    binomial_pmf, chi_squared_sf, normal_cdf, normal_critical, sign_two_sided,
};
use super::summary::{mid_ranks, sorted, tie_sizes};
use super::undefined::{Defined, Reason, require_finite, require_open_unit, undefined};
use super::{Estimate, Interval, Method};

/// McNemar's test (1947) of two judges right and wrong on the same cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct McNemar {
    /// Exact binomial p-value.
    pub exact_p: f64,
    /// Mid-p (Fagerland et al. 2013): exact minus half the probability of the outcomes as
    /// extreme as the observed one.
    pub mid_p: f64,
    /// Chi-squared with continuity correction, `(|b-c|-1)^2/(b+c)`; 0 without discordance.
    pub chi_squared: f64,
    /// Its p-value.
    pub chi_squared_p: f64,
}

/// From the discordant counts: first right alone, second right alone.
#[must_use]
pub fn mcnemar(first_only: u64, second_only: u64) -> McNemar {
    let n = first_only + second_only;
    if n == 0 {
        return McNemar { exact_p: 1.0, mid_p: 1.0, chi_squared: 0.0, chi_squared_p: 1.0 };
    }
    let smaller = first_only.min(second_only);
    let exact_p = sign_two_sided(smaller, n);
    // Half the probability of the outcomes exactly as extreme: of one for an even split, of
    // both mirrored ones else.
    let mass = binomial_pmf(smaller, n, 0.5);
    let mid_p = if 2 * smaller == n { 1.0 - mass / 2.0 } else { exact_p - mass };
    let gap = (first_only.abs_diff(second_only) as f64 - 1.0).abs();
    let chi_squared = gap * gap / n as f64;
    McNemar { exact_p, mid_p, chi_squared, chi_squared_p: chi_squared_sf(chi_squared, 1.0) }
}

/// First share minus second on the same `n` cases, with the score interval of Tango (1998):
/// all D with `|(b - c - n D) / sqrt(n (2 q(D) + D (1 - D)))| <= z`, where q(D) is the
/// restricted estimate of the second's discordant probability. It has a width without any
/// discordance: `z^2 / (n + z^2)` to both sides.
///
/// # Errors
/// `no_data`; `bad_counts` for more discordant cases than there are; `out_of_range` for the
/// level.
pub fn paired_difference(
    first_only: u64,
    second_only: u64,
    n: u64,
    level: f64,
) -> Defined<Estimate> {
    require_open_unit(level)?;
    if n == 0 {
        return undefined(Reason::NoData);
    }
    if first_only.checked_add(second_only).is_none_or(|flips| flips > n) {
        return undefined(Reason::BadCounts);
    }
    let (b, c, size) = (first_only as f64, second_only as f64, n as f64);
    let point = (b - c) / size;
    let z = normal_critical(level);
    let score = |d: f64| {
        let linear = (2.0 * size - b + c) * d - b - c;
        let constant = -c * d * (1.0 - d);
        let root = (linear * linear - 8.0 * size * constant).max(0.0).sqrt();
        let restricted = (root - linear) / (4.0 * size);
        let variance = size * (2.0 * restricted + d * (1.0 - d));
        let gap = b - c - size * d;
        if variance > 0.0 { gap / variance.sqrt() } else { gap * f64::INFINITY }
    };
    // The score falls as D grows.
    let solve = |target: f64, mut low: f64, mut high: f64| {
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                break;
            }
            if score(middle) > target { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    };
    let interval = Interval {
        lower: if point <= -1.0 { -1.0 } else { solve(z, -1.0, point) },
        upper: if point >= 1.0 { 1.0 } else { solve(-z, point, 1.0) },
        level,
    };
    Ok(Estimate { point, interval, n: n as usize, method: Method::Tango })
}

/// A statistic with its p-value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The test statistic.
    pub statistic: f64,
    /// Its p-value.
    pub p: f64,
}

/// Cochran's Q (1950) over items x judges of 0/1 outcomes, chi-squared with k - 1 degrees
/// of freedom. Without any item on which judges differ, Q is 0 and p is 1.
///
/// # Errors
/// `no_data`, `length_mismatch` for ragged rows, `too_few_raters` below two judges.
pub fn cochran_q(items: &[Vec<bool>]) -> Defined<TestResult> {
    let Some(first) = items.first() else { return undefined(Reason::NoData) };
    let k = first.len();
    if items.iter().any(|row| row.len() != k) {
        return undefined(Reason::LengthMismatch);
    }
    if k < 2 {
        return undefined(Reason::TooFewRaters);
    }
    let rows: Vec<u64> =
        items.iter().map(|row| row.iter().filter(|v| **v).count() as u64).collect();
    let columns: Vec<u64> =
        (0..k).map(|j| items.iter().filter(|row| row[j]).count() as u64).collect();
    let total: u64 = rows.iter().sum();
    let bottom = k as u64 * total - rows.iter().map(|r| r * r).sum::<u64>();
    if bottom == 0 {
        return Ok(TestResult { statistic: 0.0, p: 1.0 });
    }
    let square = columns.iter().map(|c| c * c).sum::<u64>();
    let top = (k - 1) as f64 * ((k as u64 * square) as f64 - (total * total) as f64);
    let statistic = top / bottom as f64;
    Ok(TestResult { statistic, p: chi_squared_sf(statistic, (k - 1) as f64) })
}

/// Exact two-sided sign test of `wins` against `losses`; ties are left out by the caller.
#[must_use]
pub fn sign_test(wins: u64, losses: u64) -> f64 {
    if wins + losses == 0 { 1.0 } else { sign_two_sided(wins, wins + losses) }
}

/// Which tail of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alternative {
    /// The differences lie below 0.
    Less,
    /// The differences lie above 0.
    Greater,
    /// Either.
    TwoSided,
}

/// Wilcoxon's signed-rank test (1945) of differences against 0. Zero differences are left
/// out. Up to 50 differences without zeros the null distribution is that of untied ranks
/// (mid-rank sums are rounded down), else it is normal with the tie correction.
///
/// # Errors
/// `no_data`, `not_finite`; `no_discordant_pairs` when all differences are 0.
pub fn wilcoxon_signed_rank(differences: &[f64], alternative: Alternative) -> Defined<TestResult> {
    require_finite(differences)?;
    let moved: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if moved.is_empty() {
        return undefined(Reason::NoDiscordantPairs);
    }
    let size: Vec<f64> = moved.iter().map(|d| d.abs()).collect();
    let ranks = mid_ranks(&size);
    let plus: f64 = ranks.iter().zip(&moved).filter(|(_, d)| **d > 0.0).map(|(r, _)| r).sum();
    let n = moved.len();
    let total = (n * (n + 1) / 2) as f64;
    if n <= 50 && n == differences.len() {
        let mut mass = vec![0.0; n * (n + 1) / 2 + 1];
        mass[0] = 1.0;
        for rank in 1..=n {
            for sum in (rank..mass.len()).rev() {
                mass[sum] = f64::midpoint(mass[sum], mass[sum - rank]);
            }
            mass[..rank].iter_mut().for_each(|m| *m /= 2.0);
        }
        let at = plus as usize;
        let (below, above) = (mass[..=at].iter().sum::<f64>(), mass[at..].iter().sum::<f64>());
        let p = match alternative {
            Alternative::Less => below,
            Alternative::Greater => above,
            Alternative::TwoSided => 2.0 * below.min(above),
        };
        return Ok(TestResult { statistic: plus, p: p.min(1.0) });
    }
    let size_n = n as f64;
    let ties: f64 =
        tie_sizes(&sorted(&size)).into_iter().map(|t| (t as f64).powi(3) - t as f64).sum();
    let variance = (size_n * (size_n + 1.0) * (2.0 * size_n + 1.0) - ties / 2.0) / 24.0;
    let z = (plus - total / 2.0) / variance.sqrt();
    let p = match alternative {
        Alternative::Less => normal_cdf(z),
        Alternative::Greater => normal_cdf(-z),
        Alternative::TwoSided => 2.0 * normal_cdf(-z.abs()),
    };
    Ok(TestResult { statistic: plus, p })
}

/// The smallest net shift that a paired comparison of `n` cases would find: d with
/// `n d^2 = (z_alpha sqrt(f) + z_power sqrt(f - d^2))^2` for a share `f` of flips
/// (Connor 1987).
///
/// # Errors
/// `no_data`, `out_of_range`; `too_few_values` when even d = f would go unseen.
pub fn smallest_visible_shift(n: u64, flips: f64, alpha: f64, power: f64) -> Defined {
    if n == 0 {
        return undefined(Reason::NoData);
    }
    let needed = |d: f64| super::sampling::paired_sample_size(d, flips, alpha, power);
    let (mut low, mut high) = (0.0, flips);
    if needed(flips)? > n {
        return undefined(Reason::TooFewValues);
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if needed(middle)? <= n { high = middle } else { low = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_systems_have_p_one() {
        let m = mcnemar(0, 0);
        assert_eq!((m.exact_p, m.mid_p, m.chi_squared_p), (1.0, 1.0, 1.0));
        assert_eq!(sign_test(0, 0), 1.0);
        assert_eq!(sign_test(4, 4), 1.0);
        let q = cochran_q(&[vec![true, true], vec![false, false]]).unwrap();
        assert_eq!((q.statistic, q.p), (0.0, 1.0));
    }

    #[test]
    fn mid_p_is_uniform_on_average_under_the_null() {
        // Its mean under the null is 1/2, whatever the number of discordant pairs.
        for n in [1u64, 2, 7, 20] {
            let mean: f64 =
                (0..=n).map(|k| binomial_pmf(k, n, 0.5) * mcnemar(k, n - k).mid_p).sum();
            assert!((mean - 0.5).abs() < 1e-12, "{n}: {mean}");
        }
    }

    #[test]
    fn the_signed_rank_null_distribution_sums_to_one() {
        let d: Vec<f64> =
            (1..=12).map(|i| if i % 3 == 0 { -f64::from(i) } else { f64::from(i) }).collect();
        let p = |a| wilcoxon_signed_rank(&d, a).unwrap().p;
        // The observed sum is counted on both sides.
        assert!(p(Alternative::Less) + p(Alternative::Greater) > 1.0);
        assert!(p(Alternative::Less) + p(Alternative::Greater) < 1.1);
        // All twelve positive: the single most extreme of 2^12 sign patterns.
        let all: Vec<f64> = (1..=12).map(f64::from).collect();
        let least = wilcoxon_signed_rank(&all, Alternative::Greater).unwrap().p;
        assert!((least - 1.0 / 4096.0).abs() < 1e-15);
        assert_eq!(
            wilcoxon_signed_rank(&[0.0; 3], Alternative::Less).unwrap_err().reason,
            Reason::NoDiscordantPairs
        );
    }

    #[test]
    fn the_paired_interval_has_its_closed_form_without_discordance_and_mirrors() {
        let z2 = normal_critical(0.95).powi(2);
        for n in [1u64, 20, 500] {
            let e = paired_difference(0, 0, n, 0.95).unwrap();
            let end = z2 / (n as f64 + z2);
            assert!((e.interval.upper - end).abs() < 1e-9 && (e.interval.lower + end).abs() < 1e-9);
        }
        let (e, m) =
            (paired_difference(9, 2, 60, 0.9).unwrap(), paired_difference(2, 9, 60, 0.9).unwrap());
        assert!((e.interval.lower + m.interval.upper).abs() < 1e-9);
        assert!(e.interval.contains(e.point));
        assert_eq!(paired_difference(5, 0, 5, 0.95).unwrap().interval.upper, 1.0);
        assert_eq!(paired_difference(5, 1, 5, 0.95).unwrap_err().reason, Reason::BadCounts);
        assert_eq!(paired_difference(0, 0, 0, 0.95).unwrap_err().reason, Reason::NoData);
    }

    #[test]
    fn the_paired_interval_covers_its_level_within_three_points() {
        use super::super::draw::{multinomial, stream};
        let repeats = 2000u64;
        for (n, b, c) in [(30u64, 10u64, 2u64), (100, 5, 5), (200, 2, 0)] {
            let held = (0..repeats)
                .filter(|i| {
                    let draw = multinomial(&mut stream(n, *i), n, &[b, c, 100 - b - c]);
                    let e = paired_difference(draw[0], draw[1], n, 0.95).unwrap();
                    e.interval.contains((b as f64 - c as f64) / 100.0)
                })
                .count();
            let share = held as f64 / repeats as f64;
            assert!(share > 0.92, "n {n} b {b} c {c}: {share}");
        }
    }

    #[test]
    fn the_visible_shift_inverts_the_sample_size() {
        let d = smallest_visible_shift(343, 0.11, 0.05, 0.8).unwrap();
        assert!((d - 0.05).abs() < 2e-4, "{d}");
        assert!(smallest_visible_shift(2, 0.1, 0.05, 0.8).is_err());
    }
}
