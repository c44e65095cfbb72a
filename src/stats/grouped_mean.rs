//! A mean of cases that come in groups, with an interval and a test that count each group
//! once.
//!
//! Groups are resampled where there are few of them; beyond [`BOOTSTRAP_GROUPS`] a bootstrap
//! adds nothing to the standard error over groups, which is then used. Cases without a group
//! of their own are groups of one.

use std::collections::HashMap;

use rand::RngExt as _;
use rayon::prelude::*;

use super::bootstrap::{Resampling, acceleration, bca_estimate};
use super::distribution::{normal_quantile, student_critical, student_two_sided};
use super::draw::stream;
use super::undefined::{Defined, Reason, require_open_unit, undefined};
use super::{Estimate, Interval, Method};

/// Most groups that are resampled.
pub const BOOTSTRAP_GROUPS: usize = 2000;

/// Sums of a value over groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupedMean {
    groups: Vec<(f64, f64)>,
    sum: f64,
    n: f64,
}

impl GroupedMean {
    /// From (group, value) pairs. The value must be finite.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = (usize, f64)>) -> Self {
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut mean = Self::default();
        for (group, value) in values {
            let place = *places.entry(group).or_insert(mean.groups.len());
            if place == mean.groups.len() {
                mean.groups.push((0.0, 0.0));
            }
            mean.groups[place].0 += value;
            mean.groups[place].1 += 1.0;
            mean.sum += value;
            mean.n += 1.0;
        }
        mean
    }

    /// How many groups have a value.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// How many values there are.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n as usize
    }

    /// The mean over cases.
    ///
    /// # Errors
    /// `no_data`.
    pub fn point(&self) -> Defined {
        if self.n == 0.0 { undefined(Reason::NoData) } else { Ok(self.sum / self.n) }
    }

    /// `sqrt(G/(G-1) sum_g (s_g - mean n_g)^2) / n` (Liang and Zeger 1986 for a mean).
    ///
    /// # Errors
    /// `no_data`; `too_few_values` below two groups; `zero_variance` when every group has the
    /// mean.
    pub fn standard_error(&self) -> Defined {
        let mean = self.point()?;
        let g = self.groups.len() as f64;
        if self.groups.len() < 2 {
            return undefined(Reason::TooFewValues);
        }
        let spread: f64 = self.groups.iter().map(|(s, n)| (s - mean * n).powi(2)).sum();
        // Rounding alone leaves about this much of constant values.
        if spread <= 1e-24 * self.sum * self.sum || spread == 0.0 {
            return undefined(Reason::ZeroVariance);
        }
        Ok((g / (g - 1.0) * spread).sqrt() / self.n)
    }

    /// Two-sided p-value of a mean of 0; 1 where every value is 0.
    ///
    /// # Errors
    /// As [`Self::standard_error`]; no variance around another mean than 0 has no test.
    pub fn p(&self) -> Defined {
        if self.n > 0.0 && self.groups.iter().all(|(s, _)| *s == 0.0) {
            return Ok(1.0);
        }
        let t = self.point()? / self.standard_error()?;
        Ok(student_two_sided(t, self.groups.len() as f64 - 1.0))
    }

    /// The mean with its interval: BCa over groups, or Student t with the error over groups
    /// beyond [`BOOTSTRAP_GROUPS`].
    ///
    /// # Errors
    /// As [`Self::standard_error`], and `out_of_range` for the level.
    pub fn estimate(&self, resampling: Resampling) -> Defined<Estimate> {
        require_open_unit(resampling.level)?;
        let (point, error) = (self.point()?, self.standard_error()?);
        if self.groups.len() <= BOOTSTRAP_GROUPS
            && let Ok(estimate) = self.bootstrap(point, resampling)
        {
            return Ok(estimate);
        }
        let margin = student_critical(resampling.level, self.groups.len() as f64 - 1.0) * error;
        let interval = Interval::around(point, margin, resampling.level);
        Ok(Estimate { point, interval, n: self.n(), method: Method::ClusterRobust })
    }

    /// The least true mean that a two-sided test at `alpha` finds with probability `power`:
    /// `(z_(1-alpha/2) + z_power) se`.
    ///
    /// # Errors
    /// As [`Self::standard_error`], and `out_of_range`.
    pub fn smallest_visible(&self, alpha: f64, power: f64) -> Defined {
        require_open_unit(alpha)?;
        require_open_unit(power)?;
        let z = normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power);
        Ok(z * self.standard_error()?)
    }

    fn bootstrap(&self, point: f64, resampling: Resampling) -> Defined<Estimate> {
        let groups = &self.groups;
        let replicates: Vec<f64> = (0..resampling.resamples as u64)
            .into_par_iter()
            .map(|i| {
                let mut rng = stream(resampling.seed, i);
                let (mut sum, mut n) = (0.0, 0.0);
                for _ in 0..groups.len() {
                    let own = groups[rng.random_range(0..groups.len())];
                    sum += own.0;
                    n += own.1;
                }
                sum / n
            })
            .collect();
        let without: Vec<f64> = groups
            .iter()
            .map(|(s, n)| (self.sum - s) / (self.n - n))
            .filter(|value| value.is_finite())
            .collect();
        let a = acceleration(&without, &vec![1.0; without.len()])?;
        bca_estimate(point, replicates, a, self.n(), resampling.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Resampling = Resampling { resamples: 500, seed: 3, level: 0.95 };

    #[test]
    fn groups_of_one_have_the_usual_standard_error() {
        let x = [1.0, 2.0, 4.0, 9.0];
        let mean = GroupedMean::new(x.iter().copied().enumerate());
        let usual = crate::stats::summary::variance(&x).unwrap().sqrt() / 2.0;
        assert!((mean.standard_error().unwrap() - usual).abs() < 1e-12);
        let interval = mean.estimate(HOW).unwrap().interval;
        assert!(interval.contains(4.0) && interval.width() > 0.0);
    }

    #[test]
    fn copies_of_a_case_in_its_group_add_no_certainty() {
        let once = GroupedMean::new((0..50).map(|i| (i, f64::from(i as u32 % 5))));
        let copied = GroupedMean::new((0..200).map(|i| (i / 4, f64::from((i / 4) as u32 % 5))));
        let (a, b) = (once.standard_error().unwrap(), copied.standard_error().unwrap());
        assert!((a - b).abs() < 1e-12, "{a} {b}");
        assert!((once.p().unwrap() - copied.p().unwrap()).abs() < 1e-12);
    }

    #[test]
    fn nothing_one_group_and_no_spread_are_undefined() {
        let reason = |mean: &GroupedMean| mean.estimate(HOW).unwrap_err().reason;
        assert_eq!(reason(&GroupedMean::default()), Reason::NoData);
        assert_eq!(reason(&GroupedMean::new([(7, 1.0), (7, 2.0)])), Reason::TooFewValues);
        let flat = GroupedMean::new([(0, 0.1), (1, 0.1), (2, 0.1)]);
        assert_eq!(reason(&flat), Reason::ZeroVariance);
        assert_eq!(GroupedMean::new([(0, 0.0), (1, 0.0)]).p(), Ok(1.0));
    }

    #[test]
    fn many_groups_use_the_error_over_groups() {
        let n = BOOTSTRAP_GROUPS + 1;
        let mean = GroupedMean::new((0..n).map(|i| (i, (i % 7) as f64)));
        assert_eq!(mean.estimate(HOW).unwrap().method, Method::ClusterRobust);
    }
}
