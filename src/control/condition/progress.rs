//! Trends over windows of scores: plateau, oscillation, divergence.

/// Theil-Sen slope (Theil, 1950; Sen, 1968): the median of the slopes of all pairs, per
/// step. 0 for fewer than two scores.
#[must_use]
pub fn robust_slope(scores: &[f64]) -> f64 {
    let mut slopes: Vec<f64> = Vec::with_capacity(scores.len() * scores.len() / 2);
    for (i, first) in scores.iter().enumerate() {
        for (j, second) in scores.iter().enumerate().skip(i + 1) {
            slopes.push((second - first) / (j - i) as f64);
        }
    }
    slopes.sort_by(f64::total_cmp);
    let middle = slopes.len() / 2;
    match slopes.len() {
        0 => 0.0,
        n if n % 2 == 1 => slopes[middle],
        _ => f64::midpoint(slopes[middle - 1], slopes[middle]),
    }
}

/// Whether the last `window` scores have stopped moving: sample variance (divided by n - 1)
/// below `variance`, robust trend over the window within max(`epsilon`, `band`), and range
/// within twice that. False while the window is not full.
#[must_use]
pub fn plateaus(scores: &[f64], window: usize, variance: f64, epsilon: f64, band: f64) -> bool {
    if window < 2 || scores.len() < window {
        return false;
    }
    let last = &scores[scores.len() - window..];
    let mean = last.iter().sum::<f64>() / window as f64;
    let spread = last.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (window - 1) as f64;
    let low = last.iter().copied().fold(f64::INFINITY, f64::min);
    let high = last.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let still = epsilon.max(band);
    spread < variance
        && robust_slope(last).abs() * ((window - 1) as f64) < still
        && high - low < 2.0 * still
}

/// Whether the last `window` scores fall strictly, in total by more than `band`.
#[must_use]
pub fn diverges(scores: &[f64], window: usize, band: f64) -> bool {
    if window < 2 || scores.len() < window {
        return false;
    }
    let last = &scores[scores.len() - window..];
    last.windows(2).all(|pair| pair[1] < pair[0]) && last[0] - last[window - 1] > band
}

/// Whether the last `window` scores go up and down without gain: at least three changes of
/// direction, every swing beyond `amplitude`, and the middle of the last swing no more than
/// `amplitude` above that of the first. Ties neither continue nor break a swing.
#[must_use]
pub fn oscillates(scores: &[f64], window: usize, amplitude: f64) -> bool {
    if window < 4 || scores.len() < window {
        return false;
    }
    let turns = turning_points(&scores[scores.len() - window..]);
    // n turning points, ends included, bound n - 1 swings with n - 2 changes of direction.
    if turns.len() < 5 {
        return false;
    }
    let swings_wide = turns.windows(2).all(|pair| (pair[1] - pair[0]).abs() > amplitude);
    // The middle of a swing does not depend on whether the window begins low or high.
    let middle = |i: usize| f64::midpoint(turns[i], turns[i + 1]);
    swings_wide && middle(turns.len() - 2) - middle(0) <= amplitude
}

/// The first score, those at which the direction changes, and the last one.
fn turning_points(scores: &[f64]) -> Vec<f64> {
    let mut turns: Vec<f64> = Vec::new();
    for score in scores {
        match turns.as_slice() {
            [.., last] if last == score => {}
            [.., before, last] if (last > before) == (score > last) => {
                turns.pop();
                turns.push(*score);
            }
            _ => turns.push(*score),
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_01_a_steadily_rising_loop_has_not_converged() {
        for scores in [[0.30, 0.38, 0.46], [0.2, 0.3, 0.4], [0.5, 0.6, 0.7]] {
            assert!(!plateaus(&scores, 3, 0.02, 0.01, 0.0), "{scores:?}");
        }
        assert!(plateaus(&[0.7, 0.701, 0.7, 0.699], 4, 0.01, 0.01, 0.0));
    }

    #[test]
    fn b_03_the_variance_is_the_sample_variance() {
        // 0.2, 0.3, 0.4: population 0.0067, sample 0.0100. A wide epsilon leaves the variance
        // alone to decide.
        assert!(!plateaus(&[0.2, 0.3, 0.4], 3, 0.0099, 1.0, 0.0));
        assert!(plateaus(&[0.2, 0.3, 0.4], 3, 0.0101, 1.0, 0.0));
    }

    #[test]
    fn b_06_small_swings_and_gains_are_no_oscillation() {
        assert!(!oscillates(&[0.80, 0.8001, 0.80, 0.8001, 0.80, 0.8001], 6, 0.02));
        assert!(!oscillates(&[0.5, 0.7, 0.69, 0.9], 6, 0.02));
        assert!(!oscillates(&[0.3, 0.5, 0.4, 0.6, 0.5, 0.7, 0.6], 6, 0.02), "it gains");
        assert!(oscillates(&[0.5, 0.8, 0.5, 0.8, 0.5, 0.8], 6, 0.02));
        assert!(oscillates(&[0.8, 0.5, 0.8, 0.5, 0.8, 0.5], 6, 0.02));
    }

    #[test]
    fn b_07_ties_are_neutral() {
        assert!(oscillates(&[0.5, 0.8, 0.8, 0.5, 0.8, 0.5], 6, 0.02));
        assert!(!oscillates(&[0.5; 6], 6, 0.02));
    }

    #[test]
    fn b_52_a_fall_inside_the_noise_is_no_divergence() {
        assert!(!diverges(&[0.900, 0.899, 0.898], 3, 0.08));
        assert!(diverges(&[0.9, 0.8, 0.7], 3, 0.08));
        assert!(!diverges(&[0.9, 0.8, 0.8], 3, 0.0));
    }

    #[test]
    fn the_robust_slope_shrugs_at_one_outlier() {
        assert!((robust_slope(&[0.1, 0.2, 0.3, 0.4]) - 0.1).abs() < 1e-12);
        assert_eq!(robust_slope(&[0.5, 0.5, 0.9, 0.5, 0.5]), 0.0);
        assert_eq!(robust_slope(&[]), 0.0);
    }
}
