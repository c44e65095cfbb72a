//! Shares and statistics over loops, drawn over groups of them, with both readings of those
//! whose end is not known.
//!
//! Nothing is taken of a loop that was cut off but what it can't fall below or rise above.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::Replayed;
use super::figure::Metric;
use crate::stats::bootstrap::{Resampling, clustered_proportion};
use crate::stats::interval;

/// Nominal coverage of intervals.
const LEVEL: f64 = 0.95;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// Groups of loops below which a bootstrap gives no interval: of five values not even the range
/// of all holds the median with a confidence of 95%.
const LEAST: usize = 6;

/// How loops whose end is not known are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// As far as they were recorded.
    Seen,
    /// So that the figure is the lowest.
    Low,
    /// So that it is the highest.
    High,
}

/// Loops by their group: what of them is drawn together.
pub(super) struct Over<'a> {
    clusters: Vec<Vec<&'a Replayed>>,
    /// Whether each loop is a group of its own.
    alone: bool,
}

impl<'a> Over<'a> {
    pub(super) fn of(loops: &'a [Replayed]) -> Self {
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

    /// How many groups there are.
    pub(super) fn groups(&self) -> usize {
        self.clusters.len()
    }

    /// Loops whose end is not known, and for which `counts`.
    fn open(&self, counts: impl Fn(&Replayed) -> bool) -> usize {
        self.clusters.iter().flatten().filter(|own| own.is_open() && counts(own)).count()
    }

    /// A share of the loops for which `of` says something. A loop whose end is not known, and
    /// for which `may` holds, is no success in the low reading and one in the high reading.
    /// Where several loops are of one group, by cluster bootstrap, and never narrower than by
    /// loop.
    pub(super) fn share(
        &self,
        of: impl Fn(&Replayed) -> Option<bool>,
        may: impl Fn(&Replayed) -> bool,
    ) -> Metric {
        let read = |side| {
            self.share_of(|own| match side {
                Side::Low if own.is_open() && may(own) => Some(false),
                Side::High if own.is_open() && may(own) => Some(true),
                _ => of(own),
            })
        };
        both(self.open(&may), read)
    }

    fn share_of(&self, of: impl Fn(&Replayed) -> Option<bool>) -> Metric {
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
        let resampling = Resampling { resamples: RESAMPLES, seed: 0, level: LEVEL };
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
    pub(super) fn bootstrap<T: Copy>(
        &self,
        of: impl Fn(&Replayed, Side) -> Option<T>,
        statistic: impl Fn(&[T]) -> Option<f64>,
    ) -> Metric {
        let read = |side| {
            let clusters: Vec<Vec<T>> = self
                .clusters
                .iter()
                .map(|cluster| cluster.iter().filter_map(|own| of(own, side)).collect::<Vec<T>>())
                .filter(|values| !values.is_empty())
                .collect();
            bootstrap(&clusters, &statistic)
        };
        let counts = |own: &Replayed| [Side::Low, Side::High].iter().any(|s| of(own, *s).is_some());
        both(self.open(counts), read)
    }

    /// A statistic over the accepted loops alone, `of` which `value` speaks; it must not fall
    /// when a value that none exceeds is added. A loop whose end is not known may be accepted or
    /// not; if it is, its value lies between those of `bounds`, the greater of which no other
    /// value exceeds.
    pub(super) fn accepted(
        &self,
        value: impl Fn(&Replayed) -> Option<f64>,
        bounds: impl Fn(&Replayed) -> Option<(f64, f64)>,
        statistic: impl Fn(&[f64]) -> Option<f64>,
    ) -> Metric {
        let of = |own: &Replayed, side| match side {
            _ if own.accepted() => Some((value(own)?, true)),
            Side::Low if own.is_open() => Some((bounds(own)?.0, false)),
            Side::High if own.is_open() => Some((bounds(own)?.1, true)),
            _ => None,
        };
        self.bootstrap(of, |values| lowest(values, &statistic))
    }
}

/// A statistic with as many of the values that are not sure as make it the lowest: the low
/// ones first, as long as they lie below it.
fn lowest(values: &[(f64, bool)], statistic: &impl Fn(&[f64]) -> Option<f64>) -> Option<f64> {
    let of = |sure| values.iter().filter(move |own| own.1 == sure).map(|own| own.0);
    let mut taken: Vec<f64> = of(true).collect();
    let mut rest: Vec<f64> = of(false).collect();
    rest.sort_by(f64::total_cmp);
    let mut found = statistic(&taken);
    // As many as are equal at a time: they count alike.
    for same in rest.chunk_by(|a, b| a == b) {
        if found.is_some_and(|found| same[0] >= found) {
            break;
        }
        taken.extend(same);
        found = statistic(&taken);
    }
    found
}

/// What holds in both readings of loops whose end is not known.
fn both(open: usize, read: impl Fn(Side) -> Metric) -> Metric {
    let seen = read(Side::Seen);
    if open == 0 {
        return seen;
    }
    let (low, high) = (read(Side::Low), read(Side::High));
    let has_interval = low.has_interval && high.has_interval;
    let agree = low.value == high.value && low.value.is_some_and(f64::is_finite);
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    Metric {
        value: low.value.filter(|_| agree),
        range: (!agree).then(|| (finite(low.value), finite(high.value))),
        lower: low.lower.filter(|_| has_interval),
        upper: high.upper.filter(|_| has_interval),
        n: seen.n,
        censored: open,
        has_interval,
    }
}

fn wilson(part: usize, whole: usize) -> Metric {
    let Ok(share) = interval::wilson(part as u64, whole as u64, LEVEL) else {
        return Metric::NONE;
    };
    Metric {
        value: Some(share.point),
        lower: Some(share.interval.lower),
        upper: Some(share.interval.upper),
        n: whole,
        has_interval: true,
        ..Metric::NONE
    }
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The smallest value that at least the share `q` does not exceed.
pub(super) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = ((q * sorted.len() as f64).ceil() as usize).saturating_sub(1);
    sorted.get(place).copied()
}

/// The first generation by which half are accepted; `None` where that is never reached.
pub(super) fn kaplan_meier(loops: &[(f64, bool)]) -> Option<f64> {
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
    let tail = (1.0 - LEVEL) / 2.0;
    let (lower, upper) = (end(tail), end(1.0 - tail));
    Metric { value: statistic(&all), lower, upper, n, has_interval: true, ..Metric::NONE }
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
}
