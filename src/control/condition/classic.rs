//! The textbook forms of conditions, as published loop articles print them.
//!
//! Kept for configurations written to those formulas (`compat = "classic"`) and to measure
//! how much better ours are. Each has a known defect, which its documentation names.

/// Population variance of the last `window` scores below `variance`. Three scores rising by
/// 0.1 pass with the usual 0.01, so a steadily improving loop is cut.
#[must_use]
pub fn converged(scores: &[f64], window: usize, variance: f64) -> bool {
    let Some(last) = tail(scores, window) else { return false };
    let mean = last.iter().sum::<f64>() / last.len() as f64;
    last.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (last.len() as f64) < variance
}

/// Every adjacent difference of the last `window` scores below `epsilon`. A slow steady gain
/// counts as a plateau.
#[must_use]
pub fn flat(scores: &[f64], window: usize, epsilon: f64) -> bool {
    tail(scores, window)
        .is_some_and(|last| last.windows(2).all(|pair| (pair[1] - pair[0]).abs() < epsilon))
}

/// The last four scores change direction twice. Fires on 42% of windows of pure noise.
#[must_use]
pub fn oscillates(scores: &[f64]) -> bool {
    let Some(last) = tail(scores, 4) else { return false };
    let up: Vec<bool> = last.windows(2).map(|pair| pair[1] > pair[0]).collect();
    let down: Vec<bool> = last.windows(2).map(|pair| pair[1] < pair[0]).collect();
    (up[0] && down[1] && up[2]) || (down[0] && up[1] && down[2])
}

/// The last score lies below the one before by more than `threshold`: one noisy dip ends a
/// run.
#[must_use]
pub fn regressed(scores: &[f64], threshold: f64) -> bool {
    tail(scores, 2).is_some_and(|last| last[0] - last[1] > threshold)
}

/// The last score gains less than `min_gain` over the score `patience` outputs earlier: a
/// recovery from a dip hides that nothing beat the best.
#[must_use]
pub fn stalled(scores: &[f64], patience: usize, min_gain: f64) -> bool {
    tail(scores, patience + 1).is_some_and(|last| last[patience] - last[0] < min_gain)
}

/// The last `window` scores fall strictly, by however little.
#[must_use]
pub fn diverged(scores: &[f64], window: usize) -> bool {
    tail(scores, window).is_some_and(|last| last.windows(2).all(|pair| pair[1] < pair[0]))
}

fn tail(scores: &[f64], window: usize) -> Option<&[f64]> {
    (window > 0 && scores.len() >= window).then(|| &scores[scores.len() - window..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classic_forms_do_what_the_articles_print() {
        assert!(converged(&[0.5, 0.6, 0.7], 3, 0.01));
        assert!(!converged(&[0.5, 0.6], 3, 0.01));
        assert!(oscillates(&[0.80, 0.8001, 0.80, 0.8001]));
        assert!(!oscillates(&[0.2, 0.8, 0.5, 0.5]));
        assert!(regressed(&[0.91, 0.80], 0.10));
        assert!(stalled(&[0.9, 0.5, 0.58], 2, 0.05));
        assert!(!stalled(&[0.9, 0.3, 0.5, 0.55], 2, 0.05));
        assert!(flat(&[0.50, 0.509, 0.518], 3, 0.01));
        assert!(diverged(&[0.900, 0.899, 0.898], 3));
        assert!(!converged(&[], 0, 0.01) && !stalled(&[], 2, 0.1));
    }
}
