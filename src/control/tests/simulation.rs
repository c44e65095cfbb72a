//! What the controller is worth on noise: simulations with a fixed seed.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::super::Class;
use super::super::condition::classic;
use super::*;

const LOOPS: usize = 1000;

/// Judges around a true quality: noise of standard deviation `sd`, of which the share
/// `common` is the same for all judges of one judgement.
struct Noise {
    random: ChaCha8Rng,
    quality: f64,
    sd: f64,
    common: f64,
}

impl Noise {
    fn new(quality: f64, common: f64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(7), quality, sd: 0.06, common }
    }

    /// A standard normal number (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (u, v): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// The median of so many judges.
    fn median(&mut self, judges: usize) -> f64 {
        let shared = self.normal() * self.common.sqrt();
        let mut votes: Vec<f64> = (0..judges)
            .map(|_| {
                let own = self.normal() * (1.0 - self.common).sqrt();
                (self.quality + self.sd * (shared + own)).clamp(0.0, 1.0)
            })
            .collect();
        votes.sort_by(f64::total_cmp);
        votes[(judges - 1) / 2]
    }
}

/// The share of loops over outputs of quality 0.75 that are accepted at 0.85 within ten
/// generations.
fn false_accepts(judges: usize, common: f64, confirm: u32) -> f64 {
    let mut noise = Noise::new(0.75, common);
    let policy = exit(json!({
        "any": [{ "kind": "quality_threshold", "threshold": 0.85 }], "confirm": confirm
    }));
    let accepted = (0..LOOPS).filter(|_| {
        let turns: Vec<Turn> = (0..10)
            .map(|_| Turn::Rounds((0..2).map(|_| judgement(noise.median(judges))).collect()))
            .collect();
        play(policy.clone(), &turns).outcome().class() == Class::Accepted
    });
    accepted.count() as f64 / LOOPS as f64
}

#[test]
fn b_27_confirmation_and_independent_judges_keep_lucky_scores_out() {
    let one = false_accepts(1, 0.0, 0);
    let confirmed = false_accepts(1, 0.0, 1);
    let three = false_accepts(3, 0.0, 0);
    let three_confirmed = false_accepts(3, 0.0, 1);
    let correlated = false_accepts(3, 0.5, 0);
    let correlated_confirmed = false_accepts(3, 0.5, 1);
    eprintln!(
        "false accepts: one {one:.3}, confirmed {confirmed:.3}; three {three:.3}, {three_confirmed:.3}; correlated {correlated:.3}, {correlated_confirmed:.3}"
    );
    // 1 - (1 - P(z > 0.1 / 0.06))^10 = 0.386, and with both of two scores 0.022.
    assert!((one - 0.386).abs() < 0.03, "{one}");
    assert!((confirmed - 0.022).abs() < 0.012, "{confirmed}");
    assert!(three < one / 2.0 && three_confirmed < 0.005, "{three} {three_confirmed}");
    assert!(three < correlated && correlated < one, "{three} {correlated} {one}");
    assert!(correlated_confirmed < 0.02, "{correlated_confirmed}");
}

#[test]
fn b_06_on_pure_noise_the_classic_test_fires_often_and_ours_hardly_ever() {
    let mut noise = Noise::new(0.7, 0.0);
    let scores: Vec<Vec<f64>> =
        (0..LOOPS).map(|_| (0..6).map(|_| noise.median(1)).collect()).collect();
    let share = |fires: &dyn Fn(&[f64]) -> bool| {
        scores.iter().filter(|s| fires(s)).count() as f64 / LOOPS as f64
    };
    let textbook = share(&|s| classic::oscillates(&s[..4]));
    assert!(textbook > 0.4, "{textbook}");
    let stopped = |conditions: Value, noise_sd: Option<f64>, compat: &str, outputs: usize| {
        let mut spec = json!({ "any": conditions, "compat": compat, "confirm": 0 });
        if let Some(sd) = noise_sd {
            spec["noise_sd"] = json!(sd);
        }
        let spec: ExitSpec = from_value(spec).unwrap();
        let budget = BudgetSpec::default();
        let policy = Policy::new(&spec, &budget, &StrategySpec::default(), 0.9, false).unwrap();
        share(&|s| play(policy.clone(), &super::scores(&s[..outputs])).ended)
    };
    let oscillation = json!([{ "kind": "oscillation", "actions": ["exit"] }]);
    let by_default = json!(["quality_threshold", "repeated_output"]);
    let falling = json!(["quality_regression", "divergence", "oscillation", "repeated_output"]);
    let ours = stopped(oscillation, Some(0.06), "none", 6);
    let usual = stopped(by_default, None, "none", 5);
    let known = stopped(falling.clone(), Some(0.06), "none", 5);
    let unknown = stopped(falling.clone(), None, "none", 5);
    let classic = stopped(falling, None, "classic", 5);
    eprintln!(
        "on noise, n = {LOOPS}: textbook oscillation {textbook:.3}, ours {ours:.3}; stops before generation 6: default policy {usual:.3}; regression, divergence and oscillation: noise known {known:.3}, not known {unknown:.3}, classic {classic:.3}"
    );
    assert!(ours < 0.05 && usual < 0.05, "{ours} {usual}");
    assert!(known < 0.05 && unknown < 0.05, "{known} {unknown}");
    assert!(classic > 0.5, "{classic}");
}

#[test]
fn a_true_fall_beyond_the_noise_still_ends_the_run() {
    let spec: ExitSpec =
        from_value(json!({ "any": ["quality_regression"], "noise_sd": 0.06, "confirm": 0 }))
            .unwrap();
    let budget = BudgetSpec::default();
    let policy = Policy::new(&spec, &budget, &StrategySpec::default(), 0.9, false).unwrap();
    let mut noise = Noise::new(0.0, 0.0);
    let mut turns = || {
        (0..6)
            .map(|i| {
                noise.quality = if i == 0 { 0.8 } else { 0.4 };
                Turn::Score(noise.median(1))
            })
            .collect::<Vec<_>>()
    };
    let ended = (0..LOOPS).filter(|_| play(policy.clone(), &turns()).ended).count();
    assert!(ended as f64 / LOOPS as f64 > 0.95, "{ended} of {LOOPS}");
}

#[test]
fn without_a_noise_band_a_fall_reverts_and_does_not_end_the_run_nor_silence_other_conditions() {
    let policy = |any: Value| {
        let spec: ExitSpec = from_value(json!({ "any": any, "confirm": 0 })).unwrap();
        let budget = BudgetSpec::default();
        Policy::new(&spec, &budget, &StrategySpec::default(), 0.9, false).unwrap()
    };
    let falls = scores(&[0.8, 0.5, 0.5, 0.5, 0.5]);
    let played = play(policy(json!(["quality_regression"])), &falls);
    assert!(!played.ended);
    assert!(played.directives.iter().any(|directive| directive.base == super::super::Base::Best));
    let stall = json!(["quality_regression", { "kind": "improvement_stall", "patience": 2 }]);
    assert_eq!(play(policy(stall), &falls).reason(), "stalled");
}
