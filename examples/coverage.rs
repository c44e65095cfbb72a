//! Prints the tables of `docs/evidence/coverage.md`: how often intervals hold a known truth
//! and certified thresholds break their bound, by simulation with fixed seeds.
//!
//! `cargo run --release --example coverage -- [REPEATS]` (3000 if not given)

#![expect(clippy::print_stdout, reason = "an example prints")]

#[path = "../tests/support/coverage/mod.rs"]
mod coverage;

use coverage::{
    ALPHA, DELTA, Held, JUDGES, LABELS, LoopRule, Promise, certificate, loops, rate_coverage, slack,
};

fn held(own: Held) -> String {
    if own.of == 0 {
        "-".to_owned()
    } else {
        format!("{:.3} / {:.3}", own.share(), own.mean_width())
    }
}

fn promise(own: Promise) -> String {
    if own.certified == 0 {
        return format!("{:.3} | - | - | 1.000", own.violation());
    }
    format!(
        "{:.3} | {:.3} | {:.3} | {:.3}",
        own.violation(),
        own.mean_rate(),
        own.mean_accepted_good(),
        1.0 - own.certified as f64 / own.draws as f64
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repeats: u64 = std::env::args().nth(1).map_or(Ok(3000), |text| text.parse())?;
    println!("Rates: coverage / mean width of 95 % intervals, {repeats} draws a row\n");
    println!(
        "| rate, sens, spec | labels | post-stratified | PPI++ | PPI++ where trusted (share of draws) | labels only | Rogan-Gladen (undefined) |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut least = 1.0f64;
    for judge in JUDGES {
        for n in LABELS {
            let own = rate_coverage(judge, n, repeats);
            least = least.min(own.post_stratified.share());
            println!(
                "| {:.2} {:.2} {:.2} | {n} | {} | {} | {} ({:.3}) | {} | {} ({:.3}) |",
                judge.0,
                judge.1,
                judge.2,
                held(own.post_stratified),
                held(own.ppi),
                held(own.ppi_trusted),
                own.ppi_trusted.of as f64 / repeats as f64,
                held(own.labels_only),
                held(own.rogan_gladen),
                1.0 - own.rogan_gladen.of as f64 / repeats as f64,
            );
        }
    }
    println!("\nLeast coverage of the post-stratified interval: {least:.3}\n");
    let most = DELTA + slack(DELTA, repeats);
    println!(
        "Certificates: alpha {ALPHA}, delta {DELTA}; violations may be up to {most:.3} of {repeats} draws\n"
    );
    println!("| bad cases | scores | violation | mean FPR | mean TPR | not certified |");
    println!("|---|---|---|---|---|---|");
    for bad in [44, 45, 60, 100, 200, 400] {
        for (name, step) in [("distinct", None), ("in steps of 0.5", Some(0.5))] {
            println!("| {bad} | {name} | {} |", promise(certificate(bad, step, repeats)));
        }
    }
    println!("\nLoops of at most K generations\n");
    println!(
        "| K, rho | rule | violation | mean rate of false accepts | complete versions accepted | not certified |"
    );
    println!("|---|---|---|---|---|---|");
    for checks in [1, 5, 10, 20] {
        for rho in [0.0, 0.5, 0.8] {
            for (name, rule) in
                [("largest of a trajectory", LoopRule::Trajectory), ("each check", LoopRule::Check)]
            {
                println!(
                    "| {checks}, {rho} | {name} | {} |",
                    promise(loops(rule, checks, rho, repeats))
                );
            }
        }
    }
    Ok(())
}
