//! Figures of the loop controller, with fixed seeds: what lucky scores do to accepts, what
//! noise does to stops, and what a step takes in time and memory.
//!
//! `cargo run --example loop_figures` prints the tables of `docs/evidence/loops.md`. Shares have
//! Wilson's 95% interval. Only the times depend on the machine and on how it was built.

#![expect(clippy::print_stdout, reason = "what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use venire::control::condition::classic;
use venire::control::policy::{BudgetSpec, ExitSpec, StrategySpec};
use venire::control::{
    Class, Command, Event, Judgement, Outcome, Output, Policy, Round, Spent, State, What, decide,
};
use venire::ruling::Decision;
use venire::score::Score;
use venire::stats::interval::wilson;
use venire::text::{Shingles, similarity};

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

const LOOPS: u64 = 4000;
const QUALITY: f64 = 0.75;
const SD: f64 = 0.06;
const THRESHOLD: f64 = 0.85;

/// Judges around a true quality. Of their noise the share `common` is the same for all judges
/// of one judgement; `lasting` of that stays with the output, however often it is judged.
struct Noise {
    random: ChaCha8Rng,
    quality: f64,
    common: f64,
    lasting: bool,
    held: Option<f64>,
}

impl Noise {
    fn new(quality: f64, common: f64, lasting: bool) -> Self {
        let random = ChaCha8Rng::seed_from_u64(7);
        Self { random, quality, common, lasting, held: None }
    }

    /// A standard normal number (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (u, v): (f64, f64) = (self.random.random(), self.random.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// A new output.
    fn next_output(&mut self) {
        self.held = self.lasting.then(|| self.normal());
    }

    /// The lower median of so many judges.
    fn median(&mut self, judges: usize) -> f64 {
        let shared = self.held.unwrap_or_else(|| self.normal()) * self.common.sqrt();
        let own = (1.0 - self.common).sqrt();
        let mut votes: Vec<f64> = (0..judges)
            .map(|_| (self.quality + SD * (shared + own * self.normal())).clamp(0.0, 1.0))
            .collect();
        votes.sort_by(f64::total_cmp);
        votes[(judges - 1) / 2]
    }
}

fn policy(exit: Value, deterministic: bool) -> Anything<Arc<Policy>> {
    let exit: ExitSpec = serde_json::from_value(exit)?;
    let budget = BudgetSpec { max_generations: 100_000, seconds: 1e9, ..BudgetSpec::default() };
    let strategy = StrategySpec::default();
    Ok(Arc::new(Policy::new(&exit, &budget, &strategy, THRESHOLD, deterministic)?))
}

fn judgement(score: f64) -> Anything<Judgement> {
    let decision = if score >= THRESHOLD { Decision::Accept } else { Decision::Reject };
    Ok(Judgement::of_score(Score::new(score)?, decision))
}

/// How a loop of so many outputs ends, and after how many; each judgement asks `score`, which is
/// told whether the output is new.
fn play(
    policy: &Arc<Policy>,
    outputs: u32,
    mut score: impl FnMut(u32, bool) -> f64,
) -> Anything<Option<(Outcome, u32)>> {
    let mut state = State::new(Arc::clone(policy));
    let mut what = What::Begun;
    loop {
        let event = Event { elapsed_ms: 0, spent: Spent::default(), what };
        let (next, commands) = decide(state, &event);
        state = next;
        what = match commands.first() {
            Some(Command::Generate(directive)) if directive.generation <= outputs => {
                What::Generated(Output::unknown(directive.generation.to_string()))
            }
            Some(Command::Judge { round, generation, .. }) => {
                What::Judged(Box::new(judgement(score(*generation, *round == Round::First))?))
            }
            Some(Command::Finish(outcome)) => {
                return Ok(Some((outcome.clone(), state.generations())));
            }
            _ => return Ok(None),
        };
    }
}

/// A share in per cent with its interval.
fn share(part: u64, whole: u64) -> Anything<String> {
    let own = wilson(part, whole, 0.95)?;
    Ok(format!(
        "{:.1}% [{:.1}, {:.1}]",
        100.0 * own.point,
        100.0 * own.interval.lower,
        100.0 * own.interval.upper
    ))
}

fn false_accepts() -> Anything<()> {
    println!("### False accepts\n");
    println!("| judges | one judgement | confirmed once |\n| --- | --- | --- |");
    for (name, judges, common, lasting) in [
        ("one", 1, 0.0, false),
        ("three, independent", 3, 0.0, false),
        ("three, correlated 0.5", 3, 0.5, false),
        ("three, correlated 0.5, the common part stays with the output", 3, 0.5, true),
    ] {
        let mut cells = Vec::new();
        for confirm in [0, 1] {
            let exit = json!({
                "any": [{ "kind": "quality_threshold", "threshold": THRESHOLD }], "confirm": confirm
            });
            let policy = policy(exit, false)?;
            let mut noise = Noise::new(QUALITY, common, lasting);
            let mut accepted = 0;
            for _ in 0..LOOPS {
                let ended = play(&policy, 10, |_, new| {
                    if new {
                        noise.next_output();
                    }
                    noise.median(judges)
                })?;
                let passed = ended.is_some_and(|(own, _)| own.class() == Class::Accepted);
                accepted += u64::from(passed);
            }
            cells.push(share(accepted, LOOPS)?);
        }
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!("\nn = {LOOPS} loops of ten outputs each\n");
    Ok(())
}

/// Loops that end on a condition within so many outputs, and the outputs that it took on average.
fn stops(policy: &Arc<Policy>, outputs: u32, quality: impl Fn(u32) -> f64) -> Anything<(u64, f64)> {
    let mut noise = Noise::new(0.0, 0.0, false);
    let (mut ended, mut taken) = (0, 0);
    for _ in 0..LOOPS {
        let end = play(policy, outputs, |generation, _| {
            noise.quality = quality(generation);
            noise.median(1)
        })?;
        if let Some((_, generations)) = end {
            ended += 1;
            taken += u64::from(generations);
        }
    }
    Ok((ended, taken as f64 / ended.max(1) as f64))
}

fn noise_stops() -> Anything<()> {
    let mut noise = Noise::new(0.7, 0.0, false);
    let windows: Vec<Vec<f64>> =
        (0..LOOPS).map(|_| (0..4).map(|_| noise.median(1)).collect()).collect();
    let textbook = windows.iter().filter(|window| classic::oscillates(window)).count() as u64;
    println!("### Stops on noise\n");
    println!(
        "The four-point oscillation test of the textbook fires on {} of windows of pure noise (n = {LOOPS}).\n",
        share(textbook, LOOPS)?
    );
    println!(
        "| conditions | judges' noise | before generation 6 | within ten | a fall from 0.8 to 0.4 that stays: ended within six | outputs then |\n| --- | --- | --- | --- | --- | --- |"
    );
    let all = json!(["repeated_output", "quality_regression", "divergence", "oscillation"]);
    for (name, conditions, known, compat) in [
        ("default", json!(["quality_threshold", "repeated_output"]), None, "none"),
        ("repeats, regression, divergence, oscillation", all.clone(), Some(SD), "none"),
        ("the same", all.clone(), None, "none"),
        ("the same, `compat = \"classic\"`", all, None, "classic"),
    ] {
        let mut exit = json!({ "any": conditions, "compat": compat, "confirm": 0 });
        if let Some(sd) = known {
            exit["noise_sd"] = json!(sd);
        }
        let policy = policy(exit, false)?;
        let (early, _) = stops(&policy, 5, |_| 0.7)?;
        let (late, _) = stops(&policy, 10, |_| 0.7)?;
        let (fell, taken) =
            stops(&policy, 6, |generation| if generation == 1 { 0.8 } else { 0.4 })?;
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            match known {
                Some(_) => "known",
                None if compat == "classic" => "not used",
                None => "not known",
            },
            share(early, LOOPS)?,
            share(late, LOOPS)?,
            share(fell, LOOPS)?,
            if fell == 0 { "-".to_owned() } else { format!("{taken:.1}") }
        );
    }
    println!(
        "\nn = {LOOPS} loops each; true quality 0.7 throughout in the first two shares, standard deviation {SD}\n"
    );
    Ok(())
}

/// Kilobytes that this process has in memory, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split_whitespace().nth(1)?.parse::<u64>().ok().map(|pages| pages * 4)
}

/// A text of about so many bytes.
fn text(random: &mut ChaCha8Rng, bytes: usize, chinese: bool) -> String {
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        if chinese {
            let code = random.random_range(0x4e00..0x5e00_u32);
            text.extend(char::from_u32(code));
            if random.random_range(0..12) == 0 {
                text.push('。');
            }
        } else {
            let letters = random.random_range(2..9);
            text.extend((0..letters).map(|_| char::from(random.random_range(b'a'..=b'z'))));
            text.push(' ');
        }
    }
    text
}

fn steps_and_memory() -> Anything<()> {
    println!("### Time and memory\n");
    let build = if cfg!(debug_assertions) { "without optimisation" } else { "optimised" };
    let exit = json!({ "any": [
        { "kind": "quality_threshold", "threshold": 1.0 },
        { "kind": "repeated_output" },
        { "kind": "quality_regression" },
        { "kind": "divergence" },
        { "kind": "convergence", "window": 6 },
        { "kind": "oscillation" },
    ]});
    let policy = policy(exit, true)?;
    let mut times: Vec<Duration> = Vec::new();
    let mut noise = Noise::new(0.5, 0.0, false);
    for _ in 0..1000 {
        let mut state = State::new(Arc::clone(&policy));
        let mut step = |state: State, what| {
            let event = Event { elapsed_ms: 0, spent: Spent::default(), what };
            let began = Instant::now();
            let (state, _) = decide(state, &event);
            times.push(began.elapsed());
            state
        };
        state = step(state, What::Begun);
        for generation in 0..10_u32 {
            if state.outcome().is_some() {
                break;
            }
            state = step(state, What::Generated(Output::unknown(generation.to_string())));
            state = step(state, What::Judged(Box::new(judgement(noise.median(1))?)));
        }
    }
    times.sort();
    let at =
        |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_nanos() as f64 / 1e3;
    println!(
        "A step of the controller, six conditions, loops of up to ten outputs: median {:.1} µs, 99th percentile {:.1} µs, longest {:.1} µs (n = {} steps, built {build}).\n",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
    let exit = json!({ "any": [{ "kind": "quality_threshold", "threshold": 1.0 }] });
    let policy = self::policy(exit, true)?;
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut state = State::new(policy);
    let mut clock = 0;
    let mut step = |state: State, what| {
        clock += 1;
        decide(state, &Event { elapsed_ms: clock, spent: Spent::default(), what }).0
    };
    state = step(state, What::Begun);
    let mut at = Vec::new();
    for generation in 1..=10_000_u32 {
        let output = Output::of(&text(&mut random, 10_000, false));
        state = step(state, What::Generated(output));
        state = step(state, What::Judged(Box::new(judgement(0.5)?)));
        if matches!(generation, 100 | 1000 | 10_000) {
            at.extend(resident().map(|own| format!("{own} kB after {generation}")));
        }
    }
    println!(
        "Memory of a process that plays 10 000 outputs of 10 kB each (100 MB in all) through the controller: {}.\n",
        if at.is_empty() { "not told by this system".to_owned() } else { at.join(", ") }
    );
    for (name, chinese) in [("English-like", false), ("Chinese", true)] {
        let (a, b) = (text(&mut random, 1_000_000, chinese), text(&mut random, 1_000_000, chinese));
        let began = Instant::now();
        let similarity = similarity(&a, &b);
        let both = began.elapsed();
        let began = Instant::now();
        let _ = Shingles::of(&a, 3);
        println!(
            "- Two {name} texts of 1 MB are compared in {:.0} ms (similarity {similarity:.3}); reading one alone, as a loop does that keeps the other's shingles, takes {:.0} ms (built {build})",
            both.as_secs_f64() * 1e3,
            began.elapsed().as_secs_f64() * 1e3
        );
    }
    Ok(())
}

fn main() -> Anything<()> {
    false_accepts()?;
    noise_stops()?;
    steps_and_memory()
}
