//! Seeded random draws: the streams that replicates use, and exact binomial and
//! multinomial counts.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The generator of replicate `index`.
#[must_use]
pub fn stream(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}

/// One multinomial draw of `n` with probabilities proportional to `counts`.
pub fn multinomial(rng: &mut ChaCha8Rng, n: u64, counts: &[u64]) -> Vec<u64> {
    let mut left = n;
    let mut mass: u64 = counts.iter().sum();
    counts
        .iter()
        .map(|&c| {
            if left == 0 || c == 0 {
                mass -= c;
                return 0;
            }
            let drawn = if c == mass { left } else { binomial(rng, left, c as f64 / mass as f64) };
            mass -= c;
            left -= drawn;
            drawn
        })
        .collect()
}

/// An exact binomial draw: Devroye's (1986) recursion on a beta order statistic halves `n`
/// until inversion is cheap.
pub fn binomial(rng: &mut ChaCha8Rng, mut n: u64, mut p: f64) -> u64 {
    let mut found = 0;
    while n as f64 * p.min(1.0 - p) > 16.0 {
        let i = n.div_ceil(2);
        let x = beta(rng, i as f64, (n + 1 - i) as f64);
        if x <= p {
            found += i;
            n -= i;
            p = (p - x) / (1.0 - x);
        } else {
            n = i - 1;
            p /= x;
        }
    }
    let p = p.clamp(0.0, 1.0);
    if p > 0.5 { found + n - invert(rng, n, 1.0 - p) } else { found + invert(rng, n, p) }
}

/// Inversion by the waiting times between successes (Devroye 1986): expected O(n p) steps.
fn invert(rng: &mut ChaCha8Rng, n: u64, p: f64) -> u64 {
    if p <= 0.0 {
        return 0;
    }
    let log_fail = (-p).ln_1p();
    let (mut position, mut found) = (0.0, 0);
    loop {
        let u: f64 = rng.random();
        position += ((-u).ln_1p() / log_fail).floor() + 1.0;
        if position > n as f64 {
            return found;
        }
        found += 1;
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    // Marsaglia's polar method, one of the pair.
    loop {
        let (u, v) = (2.0 * rng.random::<f64>() - 1.0, 2.0 * rng.random::<f64>() - 1.0);
        let s = u * u + v * v;
        if s > 0.0 && s < 1.0 {
            return u * (-2.0 * s.ln() / s).sqrt();
        }
    }
}

fn gamma(rng: &mut ChaCha8Rng, shape: f64) -> f64 {
    // Marsaglia and Tsang (2000); shapes here are at least 1.
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let u: f64 = rng.random();
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

fn beta(rng: &mut ChaCha8Rng, a: f64, b: f64) -> f64 {
    let x = gamma(rng, a);
    x / (x + gamma(rng, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::distribution::binomial_cdf;

    #[test]
    fn binomial_draws_follow_the_binomial() {
        let (n, p, draws) = (500u64, 0.3, 20_000u64);
        let mut counts = vec![0u32; n as usize + 1];
        for i in 0..draws {
            counts[binomial(&mut stream(5, i), n, p) as usize] += 1;
        }
        let (mut seen, mut worst) = (0u32, 0.0f64);
        for k in 0..=n {
            seen += counts[k as usize];
            worst = worst.max((f64::from(seen) / draws as f64 - binomial_cdf(k, n, p)).abs());
        }
        // The Kolmogorov distance of a true sample exceeds 1.95/sqrt(draws) once in a thousand.
        assert!(worst < 1.95 / (draws as f64).sqrt(), "{worst}");
    }

    #[test]
    fn multinomial_draws_keep_their_total_and_leave_empty_cells_empty() {
        for i in 0..200 {
            let draw = multinomial(&mut stream(1, i), 1000, &[3, 0, 500, 1, 0]);
            assert_eq!(draw.iter().sum::<u64>(), 1000);
            assert_eq!((draw[1], draw[4]), (0, 0));
        }
    }
}
