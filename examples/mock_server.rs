//! A model server that costs nothing, for trying venire out and for tests in other
//! processes: `cargo run --example mock_server -- --port 0 --latency-ms 50 --faults 0.05`.
//!
//! Prints `ready http://127.0.0.1:PORT` when it listens, and stops at Ctrl-C.

use std::io::{self, Write};
use std::time::Duration;

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../tests/support/mock/mod.rs"]
mod mock;

const USAGE: &str = "usage: mock_server [--port N] [--latency-ms N] [--faults SHARE] [--seed N]
                   [--noise SHARE] [--key KEY] [--refuse FEATURE]...
features: json_schema, json_object, logprobs, temperature, max_tokens";

fn options(mut words: impl Iterator<Item = String>) -> Result<mock::Options, String> {
    let mut options = mock::Options::default();
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Err(USAGE.to_owned());
        }
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value\n{USAGE}"))?;
        let bad = |_| format!("`{word}` can't be `{value}`\n{USAGE}");
        let share = || match value.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
            _ => Err(format!("`{word}` can't be `{value}`: expected a number in [0, 1]")),
        };
        match word.as_str() {
            "--port" => options.port = value.parse().map_err(bad)?,
            "--latency-ms" => {
                options.latency = Duration::from_millis(value.parse().map_err(bad)?);
            }
            "--seed" => options.seed = value.parse().map_err(bad)?,
            "--faults" => options.faults = share()?,
            "--noise" => options.noise = share()?,
            "--key" => options.key = Some(value),
            "--refuse" => options.refuses.push(value),
            _ => return Err(format!("unknown option `{word}`\n{USAGE}")),
        }
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => return Err(io::Error::other(message)),
    };
    let server = mock::Mock::start(options).await?;
    let mut stdout = io::stdout();
    writeln!(stdout, "ready {}", server.url())?;
    stdout.flush()?;
    tokio::signal::ctrl_c().await
}
