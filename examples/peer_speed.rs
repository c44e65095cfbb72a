//! One side of a race: the statistics that other libraries are timed at, on the same numbers.
//!
//! `scripts/peer-ratios` writes the numbers to a folder, runs both sides and prints the ratios.
//! Reading and laying out is not timed on either side.
//!
//! ```text
//! cargo run --release --example peer_speed -- FOLDER
//! ```

use std::path::Path;
use std::time::Instant;

use venire::stats::agreement::{CategoryTable, Level, Weighting, krippendorff_alpha};
use venire::stats::bootstrap::{Resampling, bootstrap_table};
use venire::stats::calibration_map::IsotonicMap;
use venire::stats::latent::{DawidSkene, Fit, Observations};

type AnyError = Box<dyn std::error::Error>;

/// Times are the median of so many rounds.
const ROUNDS: usize = 7;

fn main() -> Result<(), AnyError> {
    let folder = std::env::args().nth(1).ok_or("expected the folder with the numbers")?;
    let folder = Path::new(&folder);

    let labels = numbers(folder, "labels")?;
    let raters = 10;
    let rows: Vec<(usize, usize, usize)> = labels
        .iter()
        .enumerate()
        .map(|(i, label)| (i / raters, i % raters, *label as usize))
        .collect();
    let data = Observations::new(&rows, 5)?;
    let settings = Fit { smoothing: 0.0, tolerance: 1e-6, max_iterations: 500 };
    let (seconds, fit) = timed(|| DawidSkene::fit(&data, settings))?;
    let iterations = fit.log_likelihood.len();
    print("dawid_skene_iteration", seconds / iterations as f64, iterations as f64)?;

    let ratings = numbers(folder, "ratings")?;
    let (first, second) = ratings.split_at(ratings.len() / 2);
    let resampling = Resampling { resamples: 10_000, seed: 0, level: 0.95 };
    let kappa = |counts: &[u64]| {
        CategoryTable::new(counts.chunks(2).map(<[u64]>::to_vec).collect())?
            .kappa(Weighting::Unweighted)
    };
    let (seconds, found) = timed(|| {
        // From the rows, as the other side has them.
        let table = CategoryTable::from_ratings(first, second, &[0.0, 1.0])?;
        bootstrap_table(&table.counts().concat(), resampling, kappa)
    })?;
    print("kappa_bootstrap", seconds, found.interval.lower)?;

    let points = numbers(folder, "points")?;
    let (score, label) = points.split_at(points.len() / 2);
    let (seconds, map) = timed(|| IsotonicMap::fit(score, label, None))?;
    print("isotonic", seconds, map.apply(0.5))?;

    let units = numbers(folder, "units")?;
    let units: Vec<Vec<f64>> = units.chunks(5).map(<[f64]>::to_vec).collect();
    let (seconds, alpha) = timed(|| krippendorff_alpha(&units, Level::Nominal))?;
    print("krippendorff", seconds, alpha)
}

/// Numbers as 64-bit floats, the lowest byte first.
fn numbers(folder: &Path, name: &str) -> Result<Vec<f64>, AnyError> {
    let bytes = std::fs::read(folder.join(name).with_extension("f64"))?;
    let words = bytes.chunks_exact(8);
    Ok(words.map(|word| word.try_into().map(f64::from_le_bytes)).collect::<Result<_, _>>()?)
}

fn timed<T, E>(run: impl Fn() -> Result<T, E>) -> Result<(f64, T), E> {
    let mut seconds = Vec::with_capacity(ROUNDS);
    let mut found = run()?;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        found = run()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_unstable_by(f64::total_cmp);
    Ok((seconds[ROUNDS / 2], found))
}

fn print(name: &str, seconds: f64, value: f64) -> Result<(), AnyError> {
    use std::io::Write as _;
    let line = serde_json::json!({ "name": name, "seconds": seconds, "value": value });
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
