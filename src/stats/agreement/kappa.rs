//! Cohen's kappa, plain and weighted, with its standard errors; Scott's pi; PABAK.
//!
//! Everything is computed from the K x K table of two raters over a declared domain, so a
//! category nobody used still counts for the weights.

use serde::{Deserialize, Serialize};

use crate::stats::distribution::normal_critical;
use crate::stats::undefined::{Defined, Reason, undefined};
use crate::stats::{Estimate, Interval, Method};

/// How far apart two categories are: the disagreement weight between positions i and j.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// 0 if equal, else 1.
    Unweighted,
    /// `|i - j| / (K - 1)`.
    Linear,
    /// `((i - j) / (K - 1))^2`.
    Quadratic,
}

impl Weighting {
    /// Disagreement in \[0,1\] between category positions `i` and `j` of `k` categories.
    #[must_use]
    pub fn disagreement(self, i: usize, j: usize, k: usize) -> f64 {
        if i == j {
            return 0.0;
        }
        let distance = i.abs_diff(j) as f64 / (k - 1) as f64;
        match self {
            Self::Unweighted => 1.0,
            Self::Linear => distance,
            Self::Quadratic => distance * distance,
        }
    }
}

/// Kappa with both standard errors (Fleiss, Cohen and Everitt 1969).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KappaEstimate {
    /// Kappa and its normal interval from the non-null standard error, not clipped.
    pub estimate: Estimate,
    /// Standard error for intervals.
    pub standard_error: f64,
    /// Standard error under kappa = 0, for tests.
    pub standard_error_null: f64,
}

/// Counts of (category of rater a, category of rater b).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryTable {
    counts: Vec<Vec<u64>>,
}

impl CategoryTable {
    /// A square table of counts; rows are rater a.
    ///
    /// # Errors
    /// `no_data` without categories, `length_mismatch` when it is not square.
    pub fn new(counts: Vec<Vec<u64>>) -> Defined<Self> {
        if counts.is_empty() {
            return undefined(Reason::NoData);
        }
        if counts.iter().any(|row| row.len() != counts.len()) {
            return undefined(Reason::LengthMismatch);
        }
        Ok(Self { counts })
    }

    /// The table of two series over the declared `domain`, in its order.
    ///
    /// # Errors
    /// `length_mismatch`, or `unknown_category` for a value outside the domain.
    pub fn from_ratings<T: PartialEq>(a: &[T], b: &[T], domain: &[T]) -> Defined<Self> {
        if a.len() != b.len() {
            return undefined(Reason::LengthMismatch);
        }
        let position = |value: &T| {
            domain.iter().position(|c| c == value).ok_or(Reason::UnknownCategory.into())
        };
        let mut counts = vec![vec![0; domain.len()]; domain.len()];
        for (x, y) in a.iter().zip(b) {
            let (i, j): (Defined<usize>, Defined<usize>) = (position(x), position(y));
            counts[i?][j?] += 1;
        }
        Self::new(counts)
    }

    /// The counts; rows are rater a.
    #[must_use]
    pub fn counts(&self) -> &[Vec<u64>] {
        &self.counts
    }

    /// Number of pairs.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    fn margins(&self) -> (Vec<u64>, Vec<u64>) {
        let k = self.counts.len();
        let rows = self.counts.iter().map(|row| row.iter().sum()).collect();
        let columns = (0..k).map(|j| self.counts.iter().map(|row| row[j]).sum()).collect();
        (rows, columns)
    }

    fn require_pairs(&self) -> Defined<f64> {
        match self.n() {
            0 => undefined(Reason::NoData),
            n => Ok(n as f64),
        }
    }

    /// Share of equal pairs, in \[0,1\].
    ///
    /// # Errors
    /// `no_data`.
    pub fn observed_agreement(&self) -> Defined {
        let n = self.require_pairs()?;
        Ok((0..self.counts.len()).map(|i| self.counts[i][i]).sum::<u64>() as f64 / n)
    }

    /// kappa = 1 - sum w O / sum w E (Cohen 1960, 1968), at most 1. Exactly 0 when exactly
    /// one rater is constant.
    ///
    /// # Errors
    /// `no_data`; `constant_raters` when both raters used one and the same category (0/0).
    pub fn kappa(&self, weighting: Weighting) -> Defined {
        let n = self.require_pairs()?;
        let (rows, columns) = self.margins();
        let constant = |m: &[u64]| m.iter().filter(|&&c| c > 0).count() == 1;
        let k = self.counts.len();
        match (constant(&rows), constant(&columns)) {
            (true, true) => {
                let same = rows.iter().zip(&columns).any(|(r, c)| *r > 0 && *c > 0);
                return if same { undefined(Reason::ConstantRaters) } else { Ok(0.0) };
            }
            (true, false) | (false, true) => return Ok(0.0),
            (false, false) => {}
        }
        let (mut observed, mut expected) = (0.0, 0.0);
        for (i, (row, counts)) in rows.iter().zip(&self.counts).enumerate() {
            for (j, (column, count)) in columns.iter().zip(counts).enumerate() {
                let w = weighting.disagreement(i, j, k);
                observed += w * *count as f64;
                expected += w * *row as f64 * *column as f64 / n;
            }
        }
        Ok(1.0 - observed / expected)
    }

    /// Kappa with its interval. With agreement weights w and margins p, q:
    /// `var = [sum p_ij (w_ij - (wr_i + wc_j)(1-k))^2 - (k - pe(1-k))^2] / (n (1-pe)^2)`,
    /// `var0 = [sum p_i q_j (w_ij - (wr_i + wc_j))^2 - pe^2] / (n (1-pe)^2)`
    /// (Fleiss, Cohen and Everitt 1969).
    ///
    /// # Errors
    /// As [`Self::kappa`]; `out_of_range` for a level outside (0,1).
    pub fn kappa_estimate(&self, weighting: Weighting, level: f64) -> Defined<KappaEstimate> {
        crate::stats::undefined::require_open_unit(level)?;
        let kappa = self.kappa(weighting)?;
        let n = self.require_pairs()?;
        let k = self.counts.len();
        let (rows, columns) = self.margins();
        let p: Vec<f64> = rows.iter().map(|&c| c as f64 / n).collect();
        let q: Vec<f64> = columns.iter().map(|&c| c as f64 / n).collect();
        let agree = |i, j| 1.0 - weighting.disagreement(i, j, k);
        // Mean agreement weight of a row category against the columns' margin, and vice versa.
        let row_mean: Vec<f64> = (0..k).map(|i| (0..k).map(|j| q[j] * agree(i, j)).sum()).collect();
        let column_mean: Vec<f64> =
            (0..k).map(|j| (0..k).map(|i| p[i] * agree(i, j)).sum()).collect();
        let chance: f64 = (0..k).map(|i| p[i] * row_mean[i]).sum();
        let (mut full, mut null) = (0.0, 0.0);
        for i in 0..k {
            for j in 0..k {
                let (w, m) = (agree(i, j), row_mean[i] + column_mean[j]);
                full += self.counts[i][j] as f64 / n * (w - m * (1.0 - kappa)).powi(2);
                null += p[i] * q[j] * (w - m).powi(2);
            }
        }
        let scale = n * (1.0 - chance).powi(2);
        let variance = (full - (kappa - chance * (1.0 - kappa)).powi(2)) / scale;
        let variance_null = (null - chance * chance) / scale;
        let (standard_error, standard_error_null) =
            (variance.max(0.0).sqrt(), variance_null.max(0.0).sqrt());
        Ok(KappaEstimate {
            estimate: Estimate {
                point: kappa,
                interval: Interval::around(kappa, normal_critical(level) * standard_error, level),
                n: self.n() as usize,
                method: Method::Normal,
            },
            standard_error,
            standard_error_null,
        })
    }

    /// The largest kappa that these margins allow: `(sum min(p_i, q_i) - pe) / (1 - pe)`.
    ///
    /// # Errors
    /// `no_data`, `constant_raters`.
    pub fn max_kappa(&self) -> Defined {
        let n = self.require_pairs()?;
        let (rows, columns) = self.margins();
        let pairs = || rows.iter().zip(&columns);
        let chance = pairs().map(|(&r, &c)| (r as f64 / n) * (c as f64 / n)).sum::<f64>();
        let best = pairs().map(|(&r, &c)| r.min(c)).sum::<u64>() as f64 / n;
        if pairs().any(|(&r, &c)| r == c && r == self.n()) {
            return undefined(Reason::ConstantRaters);
        }
        Ok((best - chance) / (1.0 - chance))
    }

    /// Scott's pi (1955): chance agreement from the pooled margins.
    ///
    /// # Errors
    /// `no_data`, `constant_raters`.
    pub fn scott_pi(&self) -> Defined {
        let n = self.require_pairs()?;
        let (rows, columns) = self.margins();
        if rows.iter().zip(&columns).any(|(r, c)| r + c == 2 * self.n()) {
            return undefined(Reason::ConstantRaters);
        }
        let chance: f64 =
            rows.iter().zip(&columns).map(|(r, c)| ((r + c) as f64 / (2.0 * n)).powi(2)).sum();
        Ok((self.observed_agreement()? - chance) / (1.0 - chance))
    }

    /// Gwet's AC1 (2008) for two raters: chance `sum pi_k (1 - pi_k) / (K - 1)`.
    ///
    /// # Errors
    /// `no_data`; `single_value_in_domain` when the domain has one category.
    pub fn gwet_ac1(&self) -> Defined {
        let n = self.require_pairs()?;
        let k = self.counts.len();
        if k < 2 {
            return undefined(Reason::SingleValue);
        }
        let (rows, columns) = self.margins();
        let chance: f64 = rows
            .iter()
            .zip(&columns)
            .map(|(r, c)| (r + c) as f64 / (2.0 * n))
            .map(|share| share * (1.0 - share))
            .sum::<f64>()
            / (k - 1) as f64;
        Ok((self.observed_agreement()? - chance) / (1.0 - chance))
    }

    /// Prevalence- and bias-adjusted kappa (Byrt et al. 1993): `(K po - 1) / (K - 1)`.
    ///
    /// # Errors
    /// As [`Self::gwet_ac1`].
    pub fn pabak(&self) -> Defined {
        let k = self.counts.len();
        if k < 2 {
            return undefined(Reason::SingleValue);
        }
        Ok((k as f64 * self.observed_agreement()? - 1.0) / (k - 1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_declared_domain_changes_the_weights() {
        // 4 is unused: by position among the used categories 3 and 5 would be neighbours.
        let (a, b) = ([1, 3, 5, 5, 1, 3], [1, 5, 5, 3, 3, 3]);
        let full = CategoryTable::from_ratings(&a, &b, &[1, 2, 3, 4, 5]).unwrap();
        let gap = CategoryTable::from_ratings(&a, &b, &[1, 2, 3, 5]).unwrap();
        let weighted = |t: &CategoryTable| t.kappa(Weighting::Quadratic).unwrap();
        assert!((weighted(&full) - weighted(&gap)).abs() > 1e-3);
        let missing = CategoryTable::from_ratings(&a, &b, &[1, 3]);
        assert_eq!(missing.unwrap_err().reason, Reason::UnknownCategory);
    }

    #[test]
    fn raters_constant_on_different_categories_agree_no_more_than_chance() {
        let t = CategoryTable::from_ratings(&[0, 0, 0], &[1, 1, 1], &[0, 1]).unwrap();
        assert_eq!(t.kappa(Weighting::Unweighted), Ok(0.0));
        assert_eq!(t.observed_agreement(), Ok(0.0));
    }

    #[test]
    fn the_table_bootstrap_of_kappa_agrees_with_its_asymptotic_error() {
        use crate::stats::bootstrap::{Resampling, bootstrap_table};

        let kappa = |c: &[u64]| {
            CategoryTable::new(c.chunks(2).map(<[u64]>::to_vec).collect())?
                .kappa(Weighting::Unweighted)
        };
        let counts = [400u64, 70, 90, 440];
        let table = CategoryTable::new(counts.chunks(2).map(<[u64]>::to_vec).collect()).unwrap();
        let asymptotic = table.kappa_estimate(Weighting::Unweighted, 0.95).unwrap().estimate;
        let resampling = Resampling { resamples: 4000, seed: 3, level: 0.95 };
        let resampled = bootstrap_table(&counts, resampling, kappa).unwrap();
        assert_eq!(resampled.n, 1000);
        assert!((resampled.interval.lower - asymptotic.interval.lower).abs() < 0.005);
        assert!((resampled.interval.upper - asymptotic.interval.upper).abs() < 0.005);
    }

    #[test]
    fn an_empty_table_defines_nothing() {
        let t = CategoryTable::new(vec![vec![0, 0], vec![0, 0]]).unwrap();
        assert_eq!(t.kappa(Weighting::Linear).unwrap_err().reason, Reason::NoData);
        assert_eq!(t.scott_pi().unwrap_err().reason, Reason::NoData);
        assert!(CategoryTable::new(vec![]).is_err());
        assert!(CategoryTable::new(vec![vec![1, 2]]).is_err());
    }

    proptest! {
        #[test]
        fn kappa_is_symmetric_and_at_most_one(cells in prop::collection::vec(0u64..50, 9)) {
            let rows: Vec<Vec<u64>> = cells.chunks(3).map(<[u64]>::to_vec).collect();
            let flipped: Vec<Vec<u64>> =
                (0..3).map(|j| (0..3).map(|i| rows[i][j]).collect()).collect();
            let (a, b) = (CategoryTable::new(rows).unwrap(), CategoryTable::new(flipped).unwrap());
            for w in [Weighting::Unweighted, Weighting::Linear, Weighting::Quadratic] {
                match (a.kappa(w), b.kappa(w)) {
                    (Ok(x), Ok(y)) => {
                        prop_assert!((x - y).abs() < 1e-12);
                        prop_assert!(x <= 1.0 + 1e-12);
                    }
                    (x, y) => prop_assert_eq!(x, y),
                }
            }
        }
    }
}
