//! Metrics over many loops, each with an interval and the number it stands on.
//!
//! Shares have Wilson's 95% interval (Wilson, 1927); medians and means a percentile bootstrap
//! (Efron, 1979) with a fixed seed, so that the same recordings give the same numbers, and none
//! below six loops, where it would be narrower than anything that is known. Where loops are
//! grouped, both are drawn over groups. How a censored loop would have ended is not guessed:
//! a figure that depends on it has the least and the greatest that it can be instead of a
//! value, and its interval holds both (Manski, 1989).

use schemars::JsonSchema;
use serde::Serialize;

use super::Replayed;
use super::figure::Metric;
use super::over::{Over, Side, kaplan_meier, mean, quantile};
use crate::control::outcome::Class;

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
    /// Those whose recording ended before the policy did, that wait for a person, or that were
    /// stopped: how they would have ended is not known.
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
    /// have been accepted later. The interval holds what it would be if censored loops were
    /// accepted at once, and if they never were.
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
    /// Accepted, of the loops none of whose outputs is truly good, of as many as the policy
    /// allows.
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
    let any = |_: &Replayed| true;
    let undecided = |l: &Replayed| l.reason.is_some_and(|r| r.class() == Class::Undecided);
    let has_truth = loops.iter().any(|l| l.ever_good.is_some() || l.truth.is_some());
    let labelled = |l: &Replayed| l.ever_good.is_some();
    let never_good = |l: &Replayed| l.ever_good == Some(false);
    let to_accept = |statistic: fn(&[f64]) -> Option<f64>| {
        let allowed = |l: &Replayed| Some((f64::from(l.earliest_accept), f64::from(l.allowed)));
        over.accepted(|l| Some(f64::from(l.generations)), allowed, statistic)
    };
    let seconds = |l: &Replayed| l.elapsed_ms.map(|ms| ms as f64 / 1000.0);
    let time = |statistic: fn(&[f64]) -> Option<f64>| {
        over.accepted(seconds, |l| Some((seconds(l)?, f64::INFINITY)), statistic)
    };
    Metrics {
        tasks: loops.len(),
        groups: over.groups(),
        accepted: loops.iter().filter(|l| l.accepted()).count(),
        censored: loops.iter().filter(|l| l.is_open()).count(),
        convergence_rate: over.share(|l| Some(l.accepted()), any),
        generations_to_accept_median: to_accept(|v| quantile(v, 0.5)),
        generations_to_accept_mean: to_accept(mean),
        generations_to_accept_p90: to_accept(|v| quantile(v, 0.9)),
        generations_to_accept_kaplan_meier: kaplan_meier_over(&over),
        generations_mean: over.bootstrap(
            |l, side| match side {
                Side::High if l.is_open() => Some(f64::from(l.allowed.max(l.generations))),
                _ => Some(f64::from(l.generations)),
            },
            mean,
        ),
        judgements_mean: over.bootstrap(|l, side| beyond(l, side, l.judgements as f64), mean),
        quality_at_convergence: over.accepted(|l| l.returned, |_| Some((0.0, 1.0)), mean),
        // The best output of a loop only gets better.
        quality_overall: over.bootstrap(
            |l, side| match side {
                Side::Low if l.is_open() => Some(l.returned.unwrap_or(0.0)),
                Side::High if l.is_open() => Some(1.0),
                _ => l.returned,
            },
            mean,
        ),
        true_quality_at_convergence: over.share(|l| l.accepted().then_some(l.truth?), labelled),
        divergence_rate: over.share(|l| Some(falls(l)), any),
        time_to_convergence_median: time(|v| quantile(v, 0.5)),
        time_to_convergence_p90: time(|v| quantile(v, 0.9)),
        tokens_per_accepted: over.bootstrap(
            |l, side| {
                let tokens = beyond(l, side, l.tokens? as f64)?;
                Some((tokens, l.accepted() || (side == Side::Low && l.is_open())))
            },
            |v: &[(f64, bool)]| {
                let accepted = v.iter().filter(|(_, accepted)| *accepted).count();
                let tokens: f64 = v.iter().map(|(tokens, _)| tokens).sum();
                (accepted > 0).then(|| tokens / accepted as f64)
            },
        ),
        recovery_rate: over.share(|l| dips(l).then(|| l.accepted()), any),
        undecided_rate: over.share(|l| Some(undecided(l)), any),
        false_positive_rate: has_truth
            .then(|| over.share(|l| never_good(l).then(|| l.accepted()), never_good)),
        false_acceptance_share: has_truth
            .then(|| over.share(|l| l.accepted().then_some(!l.truth?), labelled)),
    }
}

/// What can only grow while a loop goes on, and nobody knows how far.
fn beyond(own: &Replayed, side: Side, seen: f64) -> Option<f64> {
    Some(if side == Side::High && own.is_open() { f64::INFINITY } else { seen })
}

/// The estimate takes loops that were cut off to be like those that went on; its interval does
/// not.
fn kaplan_meier_over(over: &Over<'_>) -> Metric {
    let seen = |l: &Replayed| (f64::from(l.generations), l.accepted());
    let held = over.bootstrap(
        |l, side| match side {
            Side::Low if l.is_open() => Some((f64::from(l.earliest_accept), true)),
            Side::High if l.is_open() => Some((f64::INFINITY, false)),
            _ => Some(seen(l)),
        },
        kaplan_meier,
    );
    let value = over.bootstrap(|l, _| Some(seen(l)), kaplan_meier).value;
    Metric { value, range: None, ..held }
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

#[cfg(test)]
mod tests {
    use super::*;

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
            earliest_accept: 2,
            allowed: 10,
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
