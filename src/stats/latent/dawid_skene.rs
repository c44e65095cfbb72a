//! Dawid and Skene's (1979) model by EM, with the one-coin variant.
//!
//! `P(label_ij = k | truth = c) = pi^j_ck`. Labels lie in flat arrays sorted by item, the
//! tables in one array with the true class innermost, so an iteration is one linear pass on all cores.
//! It starts from each item's vote shares, and the log-likelihood never falls.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::stats::undefined::{Defined, Reason, undefined};

/// Labels given by raters to items; all ids are positions from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    classes: usize,
    raters: usize,
    /// `start[i]..start[i + 1]` are the labels of item i.
    start: Vec<usize>,
    /// `rater * classes + label` of each label.
    cell: Vec<u32>,
}

impl Observations {
    /// From (item, rater, label) rows in any order; repeated labels of a rater count each.
    ///
    /// # Errors
    /// `no_data`; `single_value_in_domain` for fewer than two classes; `unknown_category`
    /// for a label of `classes` or more; `out_of_range` when the tables would not fit.
    pub fn new(rows: &[(usize, usize, usize)], classes: usize) -> Defined<Self> {
        if rows.is_empty() {
            return undefined(Reason::NoData);
        }
        if classes < 2 {
            return undefined(Reason::SingleValue);
        }
        if rows.iter().any(|r| r.2 >= classes) {
            return undefined(Reason::UnknownCategory);
        }
        let items = rows.iter().map(|r| r.0).max().unwrap_or(0).saturating_add(1);
        let raters = rows.iter().map(|r| r.1).max().unwrap_or(0).saturating_add(1);
        // Ids are positions, so a wild id is a mistake and must not reserve the memory for it.
        let fits = |n: usize| n <= 16 * rows.len().max(1 << 16);
        if !fits(items) || !raters.checked_mul(classes * classes).is_some_and(fits) {
            return undefined(Reason::OutOfRange);
        }
        let mut start = vec![0usize; items + 1];
        rows.iter().for_each(|r| start[r.0 + 1] += 1);
        for i in 0..items {
            start[i + 1] += start[i];
        }
        let mut next = start.clone();
        let mut cell = vec![0u32; rows.len()];
        for &(item, rater, label) in rows {
            cell[next[item]] = (rater * classes + label) as u32;
            next[item] += 1;
        }
        Ok(Self { classes, raters, start, cell })
    }

    /// Number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        self.start.len() - 1
    }

    /// Number of raters.
    #[must_use]
    pub fn raters(&self) -> usize {
        self.raters
    }

    fn vote_shares(&self) -> Vec<f64> {
        let k = self.classes;
        let mut shares = vec![0.0; self.items() * k];
        for (i, share) in shares.chunks_exact_mut(k).enumerate() {
            let cells = &self.cell[self.start[i]..self.start[i + 1]];
            if cells.is_empty() {
                share.fill(1.0 / k as f64);
                continue;
            }
            let part = 1.0 / cells.len() as f64;
            cells.iter().for_each(|c| share[*c as usize % k] += part);
        }
        shares
    }

    /// The first M-step: sums of posteriors by rater, label and true class.
    fn expected_counts(&self, posterior: &[f64]) -> Vec<f64> {
        let k = self.classes;
        let mut counts = vec![0.0; self.raters * k * k];
        for (i, q) in posterior.chunks_exact(k).enumerate() {
            self.add_counts(i, q, &mut counts);
        }
        counts
    }

    #[inline]
    fn add_counts(&self, item: usize, posterior: &[f64], counts: &mut [f64]) {
        let k = posterior.len();
        for &cell in &self.cell[self.start[item]..self.start[item + 1]] {
            let at = cell as usize * k;
            counts[at..at + k].iter_mut().zip(posterior).for_each(|(c, q)| *c += q);
        }
    }

    /// Posteriors in place, and what the next M-step needs, in one walk over the labels.
    ///
    /// Items are cut into a fixed number of blocks whose sums are added in their order, so the
    /// result is the same on any number of threads.
    fn expectation(&self, log_prior: &[f64], log_table: &[f64], posterior: &mut [f64]) -> Step {
        const BLOCKS: usize = 16;
        let k = self.classes;
        let size = self.items().div_ceil(BLOCKS).max(1);
        let blocks: Vec<Step> = posterior
            .par_chunks_mut(size * k)
            .enumerate()
            .map(|(block, part)| match k {
                // The usual numbers of classes, with loops of a length known when compiled.
                2 => self.block::<2>(block * size, log_prior, log_table, part),
                3 => self.block::<3>(block * size, log_prior, log_table, part),
                4 => self.block::<4>(block * size, log_prior, log_table, part),
                5 => self.block::<5>(block * size, log_prior, log_table, part),
                _ => self.block::<0>(block * size, log_prior, log_table, part),
            })
            .collect();
        let empty = Step { log_likelihood: 0.0, change: 0.0, counts: vec![0.0; log_table.len()] };
        blocks.into_iter().fold(empty, Step::plus)
    }

    /// One block of items from `first` on. `K` is the number of classes, 0 for one that is
    /// known only now.
    fn block<const K: usize>(
        &self,
        first: usize,
        log_prior: &[f64],
        log_table: &[f64],
        posterior: &mut [f64],
    ) -> Step {
        let k = if K == 0 { self.classes } else { K };
        let mut step =
            Step { log_likelihood: 0.0, change: 0.0, counts: vec![0.0; log_table.len()] };
        let mut log = vec![0.0; k];
        let log = &mut log[..k];
        for (i, q) in posterior.chunks_exact_mut(k).enumerate() {
            log.copy_from_slice(&log_prior[..k]);
            for &cell in &self.cell[self.start[first + i]..self.start[first + i + 1]] {
                let at = cell as usize * k;
                log.iter_mut().zip(&log_table[at..at + k]).for_each(|(l, t)| *l += t);
            }
            let top = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for l in log.iter_mut() {
                *l = (*l - top).exp();
                sum += *l;
            }
            for (q, l) in q.iter_mut().zip(&*log) {
                let value = l / sum;
                step.change = step.change.max((value - *q).abs());
                *q = value;
            }
            step.log_likelihood += top + sum.ln();
            self.add_counts(first + i, q, &mut step.counts);
        }
        step
    }

    fn class_prior(&self, posterior: &[f64]) -> Vec<f64> {
        let k = self.classes;
        let mut prior = vec![0.0; k];
        for q in posterior.chunks_exact(k) {
            prior.iter_mut().zip(q).for_each(|(p, q)| *p += q);
        }
        prior.iter_mut().for_each(|p| *p /= self.items() as f64);
        prior
    }
}

/// What one E-step yields: sums over items.
struct Step {
    log_likelihood: f64,
    /// Largest change of a posterior.
    change: f64,
    /// Sums of the new posteriors by rater, label and true class.
    counts: Vec<f64>,
}

impl Step {
    fn plus(mut self, other: Self) -> Self {
        self.log_likelihood += other.log_likelihood;
        self.change = self.change.max(other.change);
        self.counts.iter_mut().zip(&other.counts).for_each(|(c, o)| *c += o);
        self
    }
}

/// When EM stops, and the smoothing of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Pseudo-count added to every cell of every rater's table, 0 or more.
    pub smoothing: f64,
    /// Stops when no posterior moves by more.
    pub tolerance: f64,
    /// Gives `no_convergence` beyond.
    pub max_iterations: usize,
}

impl Default for Fit {
    fn default() -> Self {
        Self { smoothing: 0.01, tolerance: 1e-9, max_iterations: 2000 }
    }
}

impl Fit {
    fn check(self) -> Defined<()> {
        let ok = self.smoothing >= 0.0 && self.smoothing.is_finite() && self.tolerance > 0.0;
        if ok { Ok(()) } else { undefined(Reason::OutOfRange) }
    }
}

/// A fitted Dawid-Skene model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DawidSkene {
    /// P(truth = c).
    pub class_prior: Vec<f64>,
    /// P(truth = c | labels), item by item.
    pub posterior: Vec<f64>,
    /// `confusion[(j K + c) K + k]` = P(rater j says k | truth c); all zero in a row where
    /// no label of the rater carries weight for the class.
    pub confusion: Vec<f64>,
    /// Log-likelihood after each iteration; never falls without smoothing.
    pub log_likelihood: Vec<f64>,
    /// Number of classes.
    pub classes: usize,
}

/// A fitted one-coin model: each rater errs at one rate, uniformly over wrong classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OneCoin {
    /// P(truth = c).
    pub class_prior: Vec<f64>,
    /// P(truth = c | labels), item by item.
    pub posterior: Vec<f64>,
    /// P(correct) of each rater; 1/K for a rater without labels.
    pub accuracy: Vec<f64>,
    /// Log-likelihood after each iteration.
    pub log_likelihood: Vec<f64>,
    /// Number of classes.
    pub classes: usize,
}

/// The most probable class of each item; the first on a tie.
#[must_use]
pub fn most_probable(posterior: &[f64], classes: usize) -> Vec<usize> {
    posterior
        .chunks_exact(classes)
        .map(|q| (1..classes).fold(0, |best, c| if q[c] > q[best] { c } else { best }))
        .collect()
}

impl DawidSkene {
    /// Fits by EM from vote shares.
    ///
    /// # Errors
    /// `out_of_range` for settings, `no_convergence`.
    pub fn fit(data: &Observations, settings: Fit) -> Defined<Self> {
        settings.check()?;
        let k = data.classes;
        let mut posterior = data.vote_shares();
        let mut counts = data.expected_counts(&posterior);
        let mut trace = Vec::new();
        let mut table = vec![0.0; data.raters * k * k];
        for _ in 0..settings.max_iterations {
            let prior = data.class_prior(&posterior);
            for (rater, block) in table.chunks_exact_mut(k * k).enumerate() {
                let block_counts = &counts[rater * k * k..(rater + 1) * k * k];
                for c in 0..k {
                    let sum: f64 =
                        (0..k).map(|l| block_counts[l * k + c] + settings.smoothing).sum();
                    for l in 0..k {
                        let cell = block_counts[l * k + c] + settings.smoothing;
                        block[l * k + c] = if sum > 0.0 { cell / sum } else { 0.0 };
                    }
                }
            }
            let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
            let step = data.expectation(&logs(&prior), &logs(&table), &mut posterior);
            trace.push(step.log_likelihood);
            counts = step.counts;
            if step.change <= settings.tolerance {
                let mut confusion = vec![0.0; table.len()];
                for rater in 0..data.raters {
                    for c in 0..k {
                        for l in 0..k {
                            confusion[(rater * k + c) * k + l] = table[(rater * k + l) * k + c];
                        }
                    }
                }
                return Ok(Self {
                    class_prior: prior,
                    posterior,
                    confusion,
                    log_likelihood: trace,
                    classes: k,
                });
            }
        }
        undefined(Reason::NoConvergence)
    }

    /// P(rater says k | truth c).
    #[must_use]
    pub fn confusion_of(&self, rater: usize, truth: usize, label: usize) -> f64 {
        self.confusion[(rater * self.classes + truth) * self.classes + label]
    }
}

impl OneCoin {
    /// Fits by EM from vote shares; `smoothing` adds that many correct and wrong labels.
    ///
    /// # Errors
    /// As [`DawidSkene::fit`].
    pub fn fit(data: &Observations, settings: Fit) -> Defined<Self> {
        settings.check()?;
        let k = data.classes;
        let mut posterior = data.vote_shares();
        let mut counts = data.expected_counts(&posterior);
        let mut trace = Vec::new();
        let mut accuracy = vec![0.0; data.raters];
        let mut log_table = vec![0.0; data.raters * k * k];
        for _ in 0..settings.max_iterations {
            let prior = data.class_prior(&posterior);
            for (rater, block) in counts.chunks_exact(k * k).enumerate() {
                let correct: f64 = (0..k).map(|l| block[l * k + l]).sum::<f64>();
                let total: f64 = block.iter().sum();
                let weight = total + 2.0 * settings.smoothing;
                accuracy[rater] = if weight > 0.0 {
                    (correct + settings.smoothing) / weight
                } else {
                    1.0 / k as f64
                };
                let right = accuracy[rater].ln();
                let wrong = ((1.0 - accuracy[rater]).max(0.0) / (k - 1) as f64).ln();
                for l in 0..k {
                    for c in 0..k {
                        log_table[(rater * k + l) * k + c] = if l == c { right } else { wrong };
                    }
                }
            }
            let log_prior: Vec<f64> = prior.iter().map(|v| v.ln()).collect();
            let step = data.expectation(&log_prior, &log_table, &mut posterior);
            trace.push(step.log_likelihood);
            counts = step.counts;
            if step.change <= settings.tolerance {
                return Ok(Self {
                    class_prior: prior,
                    posterior,
                    accuracy,
                    log_likelihood: trace,
                    classes: k,
                });
            }
        }
        undefined(Reason::NoConvergence)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXACT: Fit = Fit { smoothing: 0.0, tolerance: 1e-10, max_iterations: 5000 };

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_log_likelihood_never_falls(
            labels in prop::collection::vec(0usize..3, 12..120), raters in 2usize..5
        ) {
            let rows: Vec<_> =
                labels.iter().enumerate().map(|(i, &l)| (i / raters, i % raters, l)).collect();
            let data = Observations::new(&rows, 3).unwrap();
            let capped = Fit { max_iterations: 400, tolerance: 1e-6, ..EXACT };
            let traces = [
                DawidSkene::fit(&data, capped).map(|m| m.log_likelihood),
                OneCoin::fit(&data, capped).map(|m| m.log_likelihood),
            ];
            for trace in traces.into_iter().flatten() {
                prop_assert!(trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * w[0].abs()));
                prop_assert!(trace.iter().all(|v| v.is_finite()));
            }
        }
    }

    #[test]
    fn renaming_classes_raters_and_rows_changes_nothing() {
        let rows: Vec<(usize, usize, usize)> = (0..60)
            .map(|i| {
                let (item, rater): (usize, usize) = (i / 3, i % 3);
                (
                    item,
                    rater,
                    usize::from((item % 2 == 0) != (item * 7 + rater * 5).is_multiple_of(4)),
                )
            })
            .collect();
        let fit = |rows: &[(usize, usize, usize)]| {
            DawidSkene::fit(&Observations::new(rows, 2).unwrap(), EXACT).unwrap()
        };
        let base = fit(&rows);
        let flipped: Vec<_> = rows.iter().rev().map(|&(i, r, l)| (i, 2 - r, 1 - l)).collect();
        let other = fit(&flipped);
        for i in 0..20 {
            assert!((base.posterior[2 * i] - other.posterior[2 * i + 1]).abs() < 1e-6);
        }
    }

    #[test]
    fn a_bad_rater_is_told_from_good_ones() {
        // Raters 0 to 3 are right nine times of ten on different items, rater 4 is a coin.
        let rows: Vec<_> = (0..500usize)
            .map(|i| {
                let (item, rater) = (i / 5, i % 5);
                let truth = (item / 3) % 2;
                let wrong = if rater == 4 {
                    item.is_multiple_of(2)
                } else {
                    (item + 3 * rater).is_multiple_of(10)
                };
                (item, rater, if wrong { 1 - truth } else { truth })
            })
            .collect();
        let model = OneCoin::fit(&Observations::new(&rows, 2).unwrap(), EXACT).unwrap();
        assert!(model.accuracy[..4].iter().all(|a| *a > 0.8), "{:?}", model.accuracy);
        assert!(model.accuracy[4] < 0.65);
    }

    #[test]
    fn impossible_input_is_refused() {
        let f = |rows: &[(usize, usize, usize)], k| Observations::new(rows, k).unwrap_err().reason;
        assert_eq!(f(&[], 2), Reason::NoData);
        assert_eq!(f(&[(0, 0, 2)], 2), Reason::UnknownCategory);
        assert_eq!(f(&[(0, 0, 0)], 1), Reason::SingleValue);
        assert_eq!(f(&[(usize::MAX, 0, 0)], 2), Reason::OutOfRange);
        let data = Observations::new(&[(0, 0, 0), (0, 1, 1)], 2).unwrap();
        let none = Fit { max_iterations: 0, ..EXACT };
        assert_eq!(DawidSkene::fit(&data, none).unwrap_err().reason, Reason::NoConvergence);
    }
}
