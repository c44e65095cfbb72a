//! The post-stratified rate: labels averaged inside cells of the judge's verdict, cells
//! weighted by their share of all cases.

use serde::{Deserialize, Serialize};

use crate::stats::distribution::normal_critical;
use crate::stats::undefined::{Defined, Reason, require_open_unit, undefined};
use crate::stats::{Estimate, Interval, Method};

/// One cell: a verdict, a bin of scores, or a verdict within a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// All judged cases of the cell.
    pub judged: u64,
    /// Labelled cases of the cell.
    pub labelled: u64,
    /// Labelled cases found truly good.
    pub good: u64,
}

/// The rate, and the variance it was built from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostStratified {
    /// Rate with a normal interval, not clipped; `n` is the number of labels.
    pub estimate: Estimate,
    /// Estimated variance.
    pub variance: f64,
}

/// `mu_c = (k_c+1)/(n_c+2)`, `w_c = N_c/N`, `theta = sum w_c mu_c`,
/// `V = sum w_c^2 mu_c(1-mu_c)/(n_c+2) + (1/N) sum w_c (mu_c-theta)^2`.
///
/// Works without failures, with an empty cell, with an uninformative judge and with labels
/// spread unequally over the cells on purpose. The end points may pass 0 and 1; display
/// them clipped.
///
/// # Errors
/// `no_data` when nothing was judged; `bad_counts` for more good than labelled, or more
/// labelled than judged; `out_of_range` for the level.
pub fn post_stratified(cells: &[Cell], level: f64) -> Defined<PostStratified> {
    require_open_unit(level)?;
    if cells.iter().any(|c| c.good > c.labelled || c.labelled > c.judged) {
        return undefined(Reason::BadCounts);
    }
    let total: f64 = cells.iter().map(|c| c.judged as f64).sum();
    if total == 0.0 {
        return undefined(Reason::NoData);
    }
    let parts: Vec<(f64, f64, f64)> = cells
        .iter()
        .map(|c| {
            let size = c.labelled as f64 + 2.0;
            (c.judged as f64 / total, (c.good as f64 + 1.0) / size, size)
        })
        .collect();
    let point: f64 = parts.iter().map(|(w, mu, _)| w * mu).sum();
    let within: f64 = parts.iter().map(|(w, mu, size)| w * w * mu * (1.0 - mu) / size).sum();
    let between: f64 = parts.iter().map(|(w, mu, _)| w * (mu - point).powi(2)).sum();
    let variance = within + between / total;
    let n = cells.iter().map(|c| c.labelled as f64).sum::<f64>() as usize;
    let interval = Interval::around(point, normal_critical(level) * variance.sqrt(), level);
    Ok(PostStratified {
        estimate: Estimate { point, interval, n, method: Method::PostStratified },
        variance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::draw::{binomial, stream};

    /// Labels `n` of `all` judged cases drawn at random, `repeats` times; the share of 95 %
    /// intervals that hold the true rate.
    fn coverage(rate: f64, sensitivity: f64, specificity: f64, n: u64, repeats: u64) -> f64 {
        let all = 1000u64;
        let mut held = 0u32;
        for i in 0..repeats {
            let mut rng = stream(20, i);
            // Labelled and unlabelled cases are drawn separately: sampling at random.
            let mut draw = |size: u64| {
                let good = binomial(&mut rng, size, rate);
                let good_pass = binomial(&mut rng, good, sensitivity);
                let bad_pass = binomial(&mut rng, size - good, 1.0 - specificity);
                (good, good_pass, bad_pass)
            };
            let (good, good_pass, bad_pass) = draw(n);
            let (_, rest_good, rest_bad) = draw(all - n);
            let (pass, rest_pass) = (good_pass + bad_pass, rest_good + rest_bad);
            let cells = [
                Cell { judged: pass + rest_pass, labelled: pass, good: good_pass },
                Cell { judged: all - pass - rest_pass, labelled: n - pass, good: good - good_pass },
            ];
            let result = post_stratified(&cells, 0.95).unwrap();
            held += u32::from(result.estimate.interval.contains(rate));
        }
        f64::from(held) / repeats as f64
    }

    #[test]
    fn the_interval_covers_its_level_from_70_to_99_percent() {
        let (level, repeats) = (0.95f64, 2000u64);
        // Three standard errors of the simulation below the level.
        let floor = level - 3.0 * (level * (1.0 - level) / repeats as f64).sqrt();
        for (rate, sensitivity, specificity) in
            [(0.7, 0.9, 0.8), (0.9, 0.97, 0.5), (0.97, 0.97, 0.6), (0.99, 0.98, 0.5)]
        {
            for n in [20, 50, 100, 200] {
                let c = coverage(rate, sensitivity, specificity, n, repeats);
                assert!(c >= floor, "rate {rate} n {n}: {c} below {floor}");
            }
        }
    }

    #[test]
    fn contradicting_counts_and_no_cases_are_refused() {
        let f = |judged, labelled, good| {
            post_stratified(&[Cell { judged, labelled, good }], 0.95).unwrap_err().reason
        };
        assert_eq!(f(0, 0, 0), Reason::NoData);
        assert_eq!(f(10, 5, 6), Reason::BadCounts);
        assert_eq!(f(4, 5, 5), Reason::BadCounts);
        assert!(post_stratified(&[], 0.95).is_err());
    }
}
