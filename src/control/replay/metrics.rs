//! Metrics over many loops, each with an interval and the number it stands on.
//!
//! Shares have Wilson's 95% interval (Wilson, 1927); medians and means a percentile bootstrap
//! over loops (Efron, 1979) with a fixed seed, so that the same recordings give the same
//! numbers. Censored loops count as not accepted in every share over all tasks, which makes
//! those a lower bound; their number stands beside.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::Serialize;

use super::Replayed;
use crate::control::outcome::Class;

/// The 97.5% quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// A number, its 95% interval, and how many loops it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Metric {
    /// The number; `None` where nothing is there to take it of.
    pub value: Option<f64>,
    /// The lower end.
    pub lower: Option<f64>,
    /// The upper end; `None` where it is beyond what was recorded.
    pub upper: Option<f64>,
    /// How many.
    pub n: usize,
}

/// Metrics over many loops.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Metrics {
    /// Loops.
    pub tasks: usize,
    /// Those that were accepted.
    pub accepted: usize,
    /// Those whose recording ended before the policy did.
    pub censored: usize,
    /// Accepted, of all.
    pub convergence_rate: Metric,
    /// The median over the accepted.
    pub generations_to_accept_median: Metric,
    /// The mean over the accepted.
    pub generations_to_accept_mean: Metric,
    /// The 90th percentile over the accepted.
    pub generations_to_accept_p90: Metric,
    /// The median over all, by Kaplan and Meier (1958): a loop that ended otherwise could
    /// have been accepted later.
    pub generations_to_accept_kaplan_meier: Metric,
    /// Outputs looked at, a loop.
    pub generations_mean: Metric,
    /// The mean score of what was returned, over the accepted.
    pub quality_at_convergence: Metric,
    /// The same over all that returned something.
    pub quality_overall: Metric,
    /// The share of what was returned that is truly good, over the accepted with known truth.
    pub true_quality_at_convergence: Metric,
    /// Loops whose last score lies below their first by more than the noise band.
    pub divergence_rate: Metric,
    /// The median seconds to the end of accepted loops, where recorded.
    pub time_to_convergence_median: Metric,
    /// The 90th percentile of the same.
    pub time_to_convergence_p90: Metric,
    /// Tokens of all loops for each accepted one, where recorded.
    pub tokens_per_accepted: Metric,
    /// Loops with a failed or worsened output that were accepted later, of those with one.
    pub recovery_rate: Metric,
    /// Loops that ended undecided, of all.
    pub undecided_rate: Metric,
    /// Accepted, of the loops none of whose recorded outputs is truly good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_positive_rate: Option<Metric>,
    /// Returned outputs that are truly bad, of the accepted ones with known truth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_acceptance_share: Option<Metric>,
}

/// The metrics of replayed loops.
#[must_use]
pub fn metrics(loops: &[Replayed]) -> Metrics {
    let accepted: Vec<&Replayed> = loops.iter().filter(|l| l.accepted()).collect();
    let generations: Vec<f64> = accepted.iter().map(|l| f64::from(l.generations)).collect();
    let all_generations: Vec<f64> = loops.iter().map(|l| f64::from(l.generations)).collect();
    let seconds: Vec<f64> =
        accepted.iter().filter_map(|l| Some(l.elapsed_ms? as f64 / 1000.0)).collect();
    let known: Vec<bool> = accepted.iter().filter_map(|l| l.truth).collect();
    let never: Vec<&Replayed> = loops.iter().filter(|l| l.ever_good == Some(false)).collect();
    let has_truth = loops.iter().any(|l| l.ever_good.is_some() || l.truth.is_some());
    let dipped: Vec<&Replayed> = loops.iter().filter(|l| dips(l)).collect();
    let undecided =
        loops.iter().filter(|l| l.reason.is_some_and(|r| r.class() == Class::Undecided)).count();
    let survival: Vec<(f64, bool)> =
        loops.iter().map(|l| (f64::from(l.generations), l.accepted())).collect();
    let per_accepted: Vec<(f64, bool)> =
        loops.iter().filter_map(|l| Some((l.tokens? as f64, l.accepted()))).collect();
    let share = |part: usize, whole: usize| wilson(part, whole);
    Metrics {
        tasks: loops.len(),
        accepted: accepted.len(),
        censored: loops.iter().filter(|l| l.reason.is_none()).count(),
        convergence_rate: share(accepted.len(), loops.len()),
        generations_to_accept_median: bootstrap(&generations, |v| quantile(v, 0.5)),
        generations_to_accept_mean: bootstrap(&generations, mean),
        generations_to_accept_p90: bootstrap(&generations, |v| quantile(v, 0.9)),
        generations_to_accept_kaplan_meier: bootstrap(&survival, kaplan_meier),
        generations_mean: bootstrap(&all_generations, mean),
        quality_at_convergence: bootstrap(&returned(accepted.iter().copied()), mean),
        quality_overall: bootstrap(&returned(loops), mean),
        true_quality_at_convergence: share(known.iter().filter(|t| **t).count(), known.len()),
        divergence_rate: share(loops.iter().filter(|l| falls(l)).count(), loops.len()),
        time_to_convergence_median: bootstrap(&seconds, |v| quantile(v, 0.5)),
        time_to_convergence_p90: bootstrap(&seconds, |v| quantile(v, 0.9)),
        tokens_per_accepted: bootstrap(&per_accepted, |v| {
            let accepted = v.iter().filter(|(_, accepted)| *accepted).count();
            let tokens: f64 = v.iter().map(|(tokens, _)| tokens).sum();
            (accepted > 0).then(|| tokens / accepted as f64)
        }),
        recovery_rate: share(dipped.iter().filter(|l| l.accepted()).count(), dipped.len()),
        undecided_rate: share(undecided, loops.len()),
        false_positive_rate: has_truth
            .then(|| share(never.iter().filter(|l| l.accepted()).count(), never.len())),
        false_acceptance_share: has_truth
            .then(|| share(known.iter().filter(|t| !**t).count(), known.len())),
    }
}

fn returned<'a>(loops: impl IntoIterator<Item = &'a Replayed>) -> Vec<f64> {
    loops.into_iter().filter_map(|l| l.returned).collect()
}

/// Whether the last score lies below the first by more than the noise band.
fn falls(replayed: &Replayed) -> bool {
    let scores: Vec<f64> = replayed.scores.iter().filter_map(|score| *score).collect();
    match scores.as_slice() {
        [first, .., last] => first - last > replayed.band + 1e-9,
        _ => false,
    }
}

/// Whether an output was not judged or was worse than the one before.
fn dips(replayed: &Replayed) -> bool {
    replayed.scores.iter().any(Option::is_none)
        || replayed.scores.windows(2).any(|pair| match pair {
            [Some(before), Some(after)] => before - after > replayed.band + 1e-9,
            _ => false,
        })
}

fn wilson(part: usize, whole: usize) -> Metric {
    if whole == 0 {
        return Metric { value: None, lower: None, upper: None, n: 0 };
    }
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Metric {
        value: Some(share),
        lower: Some((centre - half).max(0.0)),
        upper: Some((centre + half).min(1.0)),
        n: whole,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The smallest value that at least the share `q` does not exceed.
fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = ((q * sorted.len() as f64).ceil() as usize).saturating_sub(1);
    sorted.get(place).copied()
}

/// The first generation by which half are accepted; `None` where that is never reached.
fn kaplan_meier(loops: &[(f64, bool)]) -> Option<f64> {
    let mut sorted = loops.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut open = 1.0;
    let mut i = 0;
    while i < sorted.len() {
        let at = sorted[i].0;
        let risk = sorted.len() - i;
        let here = sorted[i..].iter().take_while(|(generation, _)| *generation == at);
        let (count, accepted) =
            here.fold((0, 0), |(n, a), (_, yes)| (n + 1, a + usize::from(*yes)));
        open *= 1.0 - accepted as f64 / risk as f64;
        if open <= 0.5 {
            return Some(at);
        }
        i += count;
    }
    None
}

/// A statistic with its percentile interval. A resample without a value is beyond every
/// number.
fn bootstrap<T: Copy>(values: &[T], statistic: impl Fn(&[T]) -> Option<f64>) -> Metric {
    let n = values.len();
    if n == 0 {
        return Metric { value: None, lower: None, upper: None, n };
    }
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut found: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sample: Vec<T> = (0..n).map(|_| values[random.random_range(0..n)]).collect();
            statistic(&sample).unwrap_or(f64::INFINITY)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let end = |share: f64| {
        let place = (share * (RESAMPLES - 1) as f64).round() as usize;
        found.get(place).copied().filter(|value| value.is_finite())
    };
    Metric { value: statistic(values), lower: end(0.025), upper: end(0.975), n }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_s_interval_is_the_textbook_one() {
        // 8 of 10: 0.490 to 0.943 (Brown, Cai and DasGupta, 2001).
        let metric = wilson(8, 10);
        assert!((metric.lower.unwrap() - 0.4902).abs() < 1e-3, "{metric:?}");
        assert!((metric.upper.unwrap() - 0.9433).abs() < 1e-3, "{metric:?}");
        assert_eq!(wilson(0, 0).value, None);
        assert_eq!(wilson(0, 5).lower, Some(0.0));
    }

    #[test]
    fn kaplan_and_meier_count_what_was_cut_off_as_still_open() {
        let all = [(1.0, true), (2.0, true), (3.0, true), (4.0, true)];
        assert_eq!(kaplan_meier(&all), Some(2.0));
        let censored = [(1.0, false), (1.0, true), (2.0, false), (3.0, true), (4.0, false)];
        assert_eq!(kaplan_meier(&censored), Some(3.0));
        assert_eq!(kaplan_meier(&[(3.0, false), (4.0, false)]), None);
        assert_eq!(kaplan_meier(&[]), None);
    }

    #[test]
    fn a_bootstrap_is_the_same_every_time_and_holds_its_value() {
        let values = [1.0, 2.0, 3.0, 4.0, 10.0];
        let metric = bootstrap(&values, mean);
        assert_eq!(metric, bootstrap(&values, mean));
        assert!(metric.lower.unwrap() <= 4.0 && metric.upper.unwrap() >= 4.0);
        assert_eq!(quantile(&values, 0.9), Some(10.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.0));
    }
}
