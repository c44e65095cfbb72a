//! Metrics over many loops, each with an interval and the number it stands on.
//!
//! Shares have Wilson's 95% interval (Wilson, 1927); medians and means a percentile bootstrap
//! (Efron, 1979) with a fixed seed, so that the same recordings give the same numbers, and none
//! below six loops, where it would be narrower than anything that is known. Where
//! loops are grouped, both are drawn over groups. Censored loops count as not accepted in every
//! share over all tasks, which makes those a lower bound; their number stands beside.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::Serialize;

use super::Replayed;
use crate::control::outcome::Class;
use crate::stats::bootstrap::{Resampling, clustered_proportion};

/// The 97.5% quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// Groups of loops below which a bootstrap gives no interval: of five values not even the range
/// of all holds the median with a confidence of 95%.
const LEAST: usize = 6;

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
    /// Whether the loops are enough for an interval; an end that is not there is then beyond
    /// every number.
    #[serde(skip)]
    pub has_interval: bool,
}

impl Metric {
    /// Nothing to take a number of.
    const NONE: Self = Self { value: None, lower: None, upper: None, n: 0, has_interval: false };
}

/// Metrics over many loops.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Metrics {
    /// Loops.
    pub tasks: usize,
    /// Groups of loops that belong together, which intervals are drawn over; as many as loops
    /// where each stands alone.
    pub groups: usize,
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
    /// Judgements made, a loop: retries and confirmations included.
    pub judgements_mean: Metric,
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

impl Metrics {
    /// The names of the figures that have an interval.
    pub const NAMES: [&str; 18] = [
        "convergence_rate",
        "generations_to_accept_median",
        "generations_to_accept_mean",
        "generations_to_accept_p90",
        "generations_to_accept_kaplan_meier",
        "generations_mean",
        "judgements_mean",
        "quality_at_convergence",
        "quality_overall",
        "true_quality_at_convergence",
        "divergence_rate",
        "time_to_convergence_median",
        "time_to_convergence_p90",
        "tokens_per_accepted",
        "recovery_rate",
        "undecided_rate",
        "false_positive_rate",
        "false_acceptance_share",
    ];

    /// The figures that have an interval, by their names; those on the truth where it is known.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, Metric)> {
        let all = [
            Some(self.convergence_rate),
            Some(self.generations_to_accept_median),
            Some(self.generations_to_accept_mean),
            Some(self.generations_to_accept_p90),
            Some(self.generations_to_accept_kaplan_meier),
            Some(self.generations_mean),
            Some(self.judgements_mean),
            Some(self.quality_at_convergence),
            Some(self.quality_overall),
            Some(self.true_quality_at_convergence),
            Some(self.divergence_rate),
            Some(self.time_to_convergence_median),
            Some(self.time_to_convergence_p90),
            Some(self.tokens_per_accepted),
            Some(self.recovery_rate),
            Some(self.undecided_rate),
            self.false_positive_rate,
            self.false_acceptance_share,
        ];
        Self::NAMES.into_iter().zip(all).filter_map(|(name, own)| Some((name, own?))).collect()
    }
}

/// The metrics of replayed loops.
#[must_use]
pub fn metrics(loops: &[Replayed]) -> Metrics {
    let over = Over::of(loops);
    let accepted: Vec<&Replayed> = loops.iter().filter(|l| l.accepted()).collect();
    let censored = loops.iter().filter(|l| l.reason.is_none()).count();
    let undecided = |l: &Replayed| l.reason.is_some_and(|r| r.class() == Class::Undecided);
    let has_truth = loops.iter().any(|l| l.ever_good.is_some() || l.truth.is_some());
    let generations = |l: &Replayed| l.accepted().then(|| f64::from(l.generations));
    let seconds = |l: &Replayed| l.accepted().then_some(l.elapsed_ms?).map(|ms| ms as f64 / 1000.0);
    Metrics {
        tasks: loops.len(),
        groups: over.clusters.len(),
        accepted: accepted.len(),
        censored,
        convergence_rate: over.share(|l| Some(l.accepted())),
        generations_to_accept_median: over.bootstrap(generations, |v| quantile(v, 0.5)),
        generations_to_accept_mean: over.bootstrap(generations, mean),
        generations_to_accept_p90: over.bootstrap(generations, |v| quantile(v, 0.9)),
        generations_to_accept_kaplan_meier: over
            .bootstrap(|l| Some((f64::from(l.generations), l.accepted())), kaplan_meier),
        generations_mean: over.bootstrap(|l| Some(f64::from(l.generations)), mean),
        judgements_mean: over.bootstrap(|l| Some(l.judgements as f64), mean),
        quality_at_convergence: over.bootstrap(|l| l.accepted().then_some(l.returned?), mean),
        quality_overall: over.bootstrap(|l| l.returned, mean),
        true_quality_at_convergence: over.share(|l| l.accepted().then_some(l.truth?)),
        divergence_rate: over.share(|l| Some(falls(l))),
        time_to_convergence_median: over.bootstrap(seconds, |v| quantile(v, 0.5)),
        time_to_convergence_p90: over.bootstrap(seconds, |v| quantile(v, 0.9)),
        tokens_per_accepted: over.bootstrap(
            |l| Some((l.tokens? as f64, l.accepted())),
            |v: &[(f64, bool)]| {
                let accepted = v.iter().filter(|(_, accepted)| *accepted).count();
                let tokens: f64 = v.iter().map(|(tokens, _)| tokens).sum();
                (accepted > 0).then(|| tokens / accepted as f64)
            },
        ),
        recovery_rate: over.share(|l| dips(l).then(|| l.accepted())),
        undecided_rate: over.share(|l| Some(undecided(l))),
        false_positive_rate: has_truth
            .then(|| over.share(|l| (l.ever_good == Some(false)).then(|| l.accepted()))),
        false_acceptance_share: has_truth
            .then(|| over.share(|l| l.accepted().then_some(!l.truth?))),
    }
}

/// Loops by their group: what of them is drawn together.
struct Over<'a> {
    clusters: Vec<Vec<&'a Replayed>>,
    /// Whether each loop is a group of its own.
    alone: bool,
}

impl<'a> Over<'a> {
    fn of(loops: &'a [Replayed]) -> Self {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut clusters: Vec<Vec<&Replayed>> = Vec::new();
        for own in loops {
            // Without a name nothing says that two belong together.
            let place = if own.group.is_empty() { None } else { places.get(own.group.as_str()) };
            match place {
                Some(place) => clusters[*place].push(own),
                None => {
                    places.insert(&own.group, clusters.len());
                    clusters.push(vec![own]);
                }
            }
        }
        Self { alone: clusters.len() == loops.len(), clusters }
    }

    /// A share of the loops for which `of` says something. Where several loops are of one
    /// group, by cluster bootstrap, and never narrower than by loop.
    fn share(&self, of: impl Fn(&Replayed) -> Option<bool>) -> Metric {
        let counts: Vec<(u64, u64)> = self
            .clusters
            .iter()
            .map(|cluster| {
                let said = cluster.iter().filter_map(|own| of(own));
                said.fold((0, 0), |(part, whole), yes| (part + u64::from(yes), whole + 1))
            })
            .collect();
        let (part, whole) =
            counts.iter().fold((0, 0), |(part, whole), (k, n)| (part + k, whole + n));
        let mut metric = wilson(part as usize, whole as usize);
        let resampling = Resampling { resamples: RESAMPLES, seed: 0, level: 0.95 };
        if !self.alone
            && let Ok(clustered) = clustered_proportion(&counts, resampling)
        {
            let (lower, upper) = (clustered.interval.lower, clustered.interval.upper);
            metric.lower = metric.lower.map(|own| own.min(lower));
            metric.upper = metric.upper.map(|own| own.max(upper));
        }
        metric
    }

    /// A statistic of what `of` says of loops, with its percentile interval over groups. A
    /// resample without a value is beyond every number.
    fn bootstrap<T: Copy>(
        &self,
        of: impl Fn(&Replayed) -> Option<T>,
        statistic: impl Fn(&[T]) -> Option<f64>,
    ) -> Metric {
        let clusters: Vec<Vec<T>> = self
            .clusters
            .iter()
            .map(|cluster| cluster.iter().filter_map(|own| of(own)).collect::<Vec<T>>())
            .filter(|values| !values.is_empty())
            .collect();
        bootstrap(&clusters, statistic)
    }
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
        return Metric::NONE;
    }
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let centre = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Metric {
        value: Some(share),
        lower: Some((centre - half).max(0.0)),
        upper: Some((centre + half).min(1.0)),
        n: whole,
        has_interval: true,
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

/// A statistic with its percentile interval over clusters.
fn bootstrap<T: Copy>(clusters: &[Vec<T>], statistic: impl Fn(&[T]) -> Option<f64>) -> Metric {
    let all: Vec<T> = clusters.iter().flatten().copied().collect();
    let n = all.len();
    if n == 0 {
        return Metric::NONE;
    }
    if clusters.len() < LEAST {
        return Metric { value: statistic(&all), n, ..Metric::NONE };
    }
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut sample: Vec<T> = Vec::with_capacity(n);
    let mut found: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            sample.clear();
            for _ in 0..clusters.len() {
                sample.extend_from_slice(&clusters[random.random_range(0..clusters.len())]);
            }
            statistic(&sample).unwrap_or(f64::INFINITY)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let end = |share: f64| {
        let place = (share * (RESAMPLES - 1) as f64).round() as usize;
        found.get(place).copied().filter(|value| value.is_finite())
    };
    let (lower, upper) = (end(0.025), end(0.975));
    Metric { value: statistic(&all), lower, upper, n, has_interval: true }
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
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0];
        let alone = values.map(|value| vec![value]);
        let metric = bootstrap(&alone, mean);
        assert_eq!(metric, bootstrap(&alone, mean));
        let pairs = values.map(|value| vec![value, value]);
        assert_eq!(bootstrap(&pairs, mean), Metric { n: 12, ..metric }, "pairs say nothing more");
        assert!(metric.lower.unwrap() <= 4.0 && metric.upper.unwrap() >= 4.0);
        let few = bootstrap(&alone[..5], mean);
        assert_eq!((few.value, few.lower, few.upper, few.n), (Some(3.0), None, None, 5));
        assert_eq!(quantile(&values, 0.9), Some(10.0));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), Some(1.0));
    }

    #[test]
    fn every_figure_with_an_interval_has_the_name_that_it_is_printed_by() {
        let own = Replayed {
            task: String::new(),
            group: String::new(),
            reason: None,
            generations: 1,
            judgements: 1,
            scores: vec![Some(0.5)],
            returned: Some(0.5),
            truth: Some(true),
            ever_good: Some(true),
            band: 0.0,
            elapsed_ms: None,
            tokens: None,
        };
        let metrics = metrics(&[own]);
        let printed = serde_json::to_value(&metrics).unwrap();
        let printed = printed.as_object().unwrap().iter();
        let printed: std::collections::BTreeSet<&str> =
            printed.filter(|(_, own)| own.is_object()).map(|(name, _)| name.as_str()).collect();
        assert_eq!(printed, Metrics::NAMES.into_iter().collect());
        for (name, metric) in metrics.named() {
            let own = serde_json::to_value(&metrics).unwrap()[name].clone();
            assert_eq!(serde_json::to_value(metric).unwrap(), own, "{name}");
        }
    }
}
