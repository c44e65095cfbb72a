//! The noise band: how far two scores of the same quality lie apart by chance.
//!
//! `noise_z x sqrt(2) x sd`, where sd is the panel's test-retest standard deviation: from a
//! profile, else from outputs that were judged more than once within the run (Dahlberg, 1940:
//! half the mean squared difference of pairs), else 0.

/// Pairs below which an estimate from within the run is not used.
const LEAST_PAIRS: u32 = 2;

/// Repeated judgements of the same outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Retest {
    squares: f64,
    pairs: u32,
}

impl Retest {
    /// Adds two scores of one output.
    pub(super) fn add(&mut self, first: f64, second: f64) {
        self.squares += (first - second).powi(2);
        self.pairs += 1;
    }

    /// The standard deviation of one score; `None` with fewer than two pairs.
    pub(super) fn standard_deviation(&self) -> Option<f64> {
        (self.pairs >= LEAST_PAIRS).then(|| (self.squares / (2.0 * f64::from(self.pairs))).sqrt())
    }
}

/// Half the width within which two scores are no different.
pub(super) fn band(noise_z: f64, standard_deviation: f64) -> f64 {
    noise_z * std::f64::consts::SQRT_2 * standard_deviation
}

/// How far the largest of `n` scores of one quality lies above it by chance, in standard
/// deviations of a score: the expected maximum of `n` standard normal numbers (Blom, 1958).
/// 0 for fewer than two.
pub(super) fn luck(n: usize) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let n = n as f64;
    crate::stats::distribution::normal_quantile((n - 0.375) / (n + 0.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retests_give_the_standard_deviation_of_one_score() {
        let mut retest = Retest::default();
        retest.add(0.8, 0.7);
        assert_eq!(retest.standard_deviation(), None);
        retest.add(0.6, 0.7);
        // sqrt((0.01 + 0.01) / 4)
        assert!((retest.standard_deviation().unwrap() - 0.070_710_678).abs() < 1e-6);
        assert!((band(1.0, 0.06) - 0.084_852_8).abs() < 1e-6);
    }

    #[test]
    fn the_luck_of_the_best_grows_with_the_number_of_tries() {
        assert_eq!((luck(0), luck(1)), (0.0, 0.0));
        // The exact expectations are 0.5642, 1.0294 and 1.5388.
        for (n, exact) in [(2, 0.5642), (4, 1.0294), (10, 1.5388)] {
            assert!((luck(n) - exact).abs() < 0.03, "{n}: {}", luck(n));
        }
    }
}
