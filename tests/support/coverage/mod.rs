//! Simulations with a known truth: how often intervals hold it, and how often a certified
//! threshold breaks its bound. Shared by the tests and by `examples/coverage.rs`.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use venire::stats::certificate::{Threshold, certify_threshold};
use venire::stats::confusion::Confusion;
use venire::stats::distribution::{normal_cdf, normal_quantile};
use venire::stats::draw::{binomial, stream};
use venire::stats::interval::wilson;
use venire::stats::looping::{Check, largest_incomplete_score};
use venire::stats::rate::{
    Cell, Divisor, JudgeCounts, post_stratified, ppi_plus_plus, rogan_gladen,
};

/// Judged cases of a rate's simulation.
pub(crate) const JUDGED: u64 = 1000;
/// True rate, sensitivity and specificity of the judge.
pub(crate) const JUDGES: [(f64, f64, f64); 7] = [
    (0.50, 0.80, 0.80),
    (0.70, 0.90, 0.80),
    (0.80, 0.90, 0.60),
    (0.90, 0.97, 0.50),
    (0.95, 0.97, 0.60),
    (0.97, 0.97, 0.60),
    (0.99, 0.98, 0.50),
];
/// Labels.
pub(crate) const LABELS: [u64; 4] = [20, 50, 100, 200];
/// Bound and one minus confidence of the certificates.
pub(crate) const ALPHA: f64 = 0.05;
pub(crate) const DELTA: f64 = 0.10;

const LEVEL: f64 = 0.95;

/// Three standard errors of a share near `rate` over `repeats`.
pub(crate) fn slack(rate: f64, repeats: u64) -> f64 {
    3.0 * (rate * (1.0 - rate) / repeats as f64).sqrt()
}

/// How often an interval held the truth, and how wide it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) held: u64,
    pub(crate) of: u64,
    pub(crate) width: f64,
}

impl Held {
    fn add(&mut self, lower: f64, upper: f64, truth: f64) {
        let (lower, upper) = (lower.clamp(0.0, 1.0), upper.clamp(0.0, 1.0));
        self.of += 1;
        self.held += u64::from((lower..=upper).contains(&truth));
        self.width += upper - lower;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            held: self.held + other.held,
            of: self.of + other.of,
            width: self.width + other.width,
        }
    }

    pub(crate) fn share(self) -> f64 {
        self.held as f64 / self.of as f64
    }

    pub(crate) fn mean_width(self) -> f64 {
        self.width / self.of as f64
    }
}

/// The methods of `venire estimate` on one setting.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateCoverage {
    pub(crate) post_stratified: Held,
    pub(crate) ppi: Held,
    /// PPI++ in the draws where its condition holds.
    pub(crate) ppi_trusted: Held,
    pub(crate) labels_only: Held,
    pub(crate) rogan_gladen: Held,
}

impl RateCoverage {
    fn plus(self, other: Self) -> Self {
        Self {
            post_stratified: self.post_stratified.plus(other.post_stratified),
            ppi: self.ppi.plus(other.ppi),
            ppi_trusted: self.ppi_trusted.plus(other.ppi_trusted),
            labels_only: self.labels_only.plus(other.labels_only),
            rogan_gladen: self.rogan_gladen.plus(other.rogan_gladen),
        }
    }
}

/// Good cases, and how the judge splits them and the bad ones.
struct Draw {
    good: u64,
    good_passed: u64,
    bad_passed: u64,
}

fn draw(
    rng: &mut ChaCha8Rng,
    size: u64,
    (rate, sensitivity, specificity): (f64, f64, f64),
) -> Draw {
    let good = binomial(rng, size, rate);
    let good_passed = binomial(rng, good, sensitivity);
    let bad_passed = binomial(rng, size - good, 1.0 - specificity);
    Draw { good, good_passed, bad_passed }
}

/// Coverage of 95 % intervals with `n` labels drawn at random among [`JUDGED`] cases.
pub(crate) fn rate_coverage(judge: (f64, f64, f64), n: u64, repeats: u64) -> RateCoverage {
    (0..repeats)
        .into_par_iter()
        .map(|i| one_rate(judge, n, i))
        .reduce(RateCoverage::default, RateCoverage::plus)
}

fn one_rate(judge: (f64, f64, f64), n: u64, i: u64) -> RateCoverage {
    let truth = judge.0;
    let mut rng = stream(n * 1000 + (truth * 100.0) as u64, i);
    let (own, rest) = (draw(&mut rng, n, judge), draw(&mut rng, JUDGED - n, judge));
    let passed = own.good_passed + own.bad_passed;
    let rest_passed = rest.good_passed + rest.bad_passed;
    let mut found = RateCoverage::default();
    let cells = [
        Cell { judged: passed + rest_passed, labelled: passed, good: own.good_passed },
        Cell {
            judged: JUDGED - passed - rest_passed,
            labelled: n - passed,
            good: own.good - own.good_passed,
        },
    ];
    if let Ok(fit) = post_stratified(&cells, LEVEL) {
        let interval = fit.estimate.interval;
        found.post_stratified.add(interval.lower, interval.upper, truth);
    }
    let table = Confusion {
        true_positive: own.good_passed,
        false_negative: own.good - own.good_passed,
        false_positive: own.bad_passed,
        true_negative: n - own.good - own.bad_passed,
    };
    let mut label = Vec::new();
    let mut verdict = Vec::new();
    for (count, y, f) in [
        (table.true_positive, 1.0, 1.0),
        (table.false_negative, 1.0, 0.0),
        (table.false_positive, 0.0, 1.0),
        (table.true_negative, 0.0, 0.0),
    ] {
        label.extend((0..count).map(|_| y));
        verdict.extend((0..count).map(|_| f));
    }
    let unlabelled: Vec<f64> =
        (0..JUDGED - n).map(|k| f64::from(u8::from(k < rest_passed))).collect();
    if let Ok(ppi) = ppi_plus_plus(&label, &verdict, &unlabelled, Divisor::Sample, LEVEL) {
        let interval = ppi.estimate.interval;
        found.ppi.add(interval.lower, interval.upper, truth);
        if ppi.trusted {
            found.ppi_trusted.add(interval.lower, interval.upper, truth);
        }
    }
    if let Ok(own) = wilson(own.good, n, LEVEL) {
        found.labels_only.add(own.interval.lower, own.interval.upper, truth);
    }
    let counts = JudgeCounts::from_counts(passed + rest_passed, JUDGED, table);
    if let Ok(own) = counts.and_then(|counts| rogan_gladen(&counts, LEVEL)) {
        found.rogan_gladen.add(own.interval.lower, own.interval.upper, truth);
    }
    found
}

/// What a certified threshold does, over draws of the data it was made from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promise {
    pub(crate) draws: u64,
    pub(crate) certified: u64,
    pub(crate) violated: u64,
    pub(crate) rate: f64,
    pub(crate) accepted_good: f64,
}

impl Promise {
    fn plus(self, other: Self) -> Self {
        Self {
            draws: self.draws + other.draws,
            certified: self.certified + other.certified,
            violated: self.violated + other.violated,
            rate: self.rate + other.rate,
            accepted_good: self.accepted_good + other.accepted_good,
        }
    }

    fn of(found: Option<(f64, f64)>) -> Self {
        match found {
            None => Self { draws: 1, ..Self::default() },
            Some((rate, accepted_good)) => Self {
                draws: 1,
                certified: 1,
                violated: u64::from(rate > ALPHA),
                rate,
                accepted_good,
            },
        }
    }

    /// Share of all draws with a true rate above alpha.
    pub(crate) fn violation(self) -> f64 {
        self.violated as f64 / self.draws as f64
    }

    /// Mean true rate of the certified.
    pub(crate) fn mean_rate(self) -> f64 {
        self.rate / self.certified as f64
    }

    /// Mean share of good ones accepted, of the certified.
    pub(crate) fn mean_accepted_good(self) -> f64 {
        self.accepted_good / self.certified as f64
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    loop {
        let p: f64 = rng.random();
        if p > 0.0 {
            return normal_quantile(p);
        }
    }
}

fn threshold(bad: &[f64], all: &[f64]) -> Option<f64> {
    match certify_threshold(bad, all, ALPHA, DELTA) {
        Ok(Threshold::Certified { threshold, .. }) => Some(threshold),
        _ => None,
    }
}

/// Bad cases score N(0,1), good ones N(2,1); with a `step`, scores are rounded to it and tie.
/// The true rate of a threshold is known.
pub(crate) fn certificate(bad: u64, step: Option<f64>, repeats: u64) -> Promise {
    let round = |x: f64| step.map_or(x, |step| (x / step).round() * step);
    // A rounded score reaches t when the exact one reaches t less half a step.
    let exact = |t: f64| t - step.unwrap_or(0.0) / 2.0;
    (0..repeats)
        .into_par_iter()
        .map(|i| {
            let mut rng = stream(bad, i);
            let low: Vec<f64> = (0..bad).map(|_| round(normal(&mut rng))).collect();
            let high = (0..bad).map(|_| round(2.0 + normal(&mut rng)));
            let all: Vec<f64> = low.iter().copied().chain(high).collect();
            Promise::of(
                threshold(&low, &all)
                    .map(|t| (1.0 - normal_cdf(exact(t)), 1.0 - normal_cdf(exact(t) - 2.0))),
            )
        })
        .reduce(Promise::default, Promise::plus)
}

/// How trajectories make a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopRule {
    /// One number a trajectory: the largest score of its incomplete checks.
    Trajectory,
    /// Every check as if it were a case of its own: the mistake that the rule is for.
    Check,
}

/// Trajectories of a simulated loop.
const TRAJECTORIES: u64 = 150;
/// Share of the tasks that are never completed.
const INFEASIBLE: f64 = 0.4;
/// How much higher a complete version scores.
const COMPLETE: f64 = 2.2;

/// Loops of at most `checks` generations whose incomplete scores are N(0,1) with correlation
/// `rho` inside a task. A false accept is one on a task that is never completed.
pub(crate) fn loops(rule: LoopRule, checks: u32, rho: f64, repeats: u64) -> Promise {
    (0..repeats)
        .into_par_iter()
        .map(|i| {
            let mut rng = stream(u64::from(checks) * 100 + (rho * 10.0) as u64, i);
            let mut bad = Vec::new();
            let mut all = Vec::new();
            for _ in 0..TRAJECTORIES {
                let feasible = rng.random::<f64>() >= INFEASIBLE;
                let trajectory = trajectory(&mut rng, checks, rho, feasible);
                all.extend(trajectory.iter().filter_map(|check| check.score));
                match rule {
                    LoopRule::Trajectory if feasible => {}
                    LoopRule::Trajectory => bad.extend(largest_incomplete_score(&trajectory)),
                    LoopRule::Check => bad.extend(
                        trajectory.iter().filter(|check| !check.complete).filter_map(|c| c.score),
                    ),
                }
            }
            Promise::of(
                threshold(&bad, &all)
                    .map(|t| (reaches(t, checks, rho), 1.0 - normal_cdf(t - COMPLETE))),
            )
        })
        .reduce(Promise::default, Promise::plus)
}

fn trajectory(rng: &mut ChaCha8Rng, checks: u32, rho: f64, feasible: bool) -> Vec<Check> {
    let task = normal(rng);
    let mut complete = false;
    (0..checks)
        .map(|_| {
            complete |= feasible && rng.random::<f64>() < 0.5;
            let noise = rho.sqrt() * task + (1.0 - rho).sqrt() * normal(rng);
            Check { score: Some(noise + if complete { COMPLETE } else { 0.0 }), complete }
        })
        .collect()
}

/// P(the largest of `checks` correlated N(0,1) scores reaches t): the mean over the task's
/// part of `1 - Phi((t - sqrt(rho) u) / sqrt(1 - rho))^K`, by the trapezoidal rule.
fn reaches(t: f64, checks: u32, rho: f64) -> f64 {
    let steps = 400;
    let (low, width) = (-8.0, 16.0 / f64::from(steps));
    let below: f64 = (0..=steps)
        .map(|k| {
            let u = low + f64::from(k) * width;
            let density = (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let single = normal_cdf((t - rho.sqrt() * u) / (1.0 - rho).sqrt());
            density * width * single.powi(checks as i32)
        })
        .sum();
    1.0 - below
}
