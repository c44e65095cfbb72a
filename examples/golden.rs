//! Checks venire's statistics against a file of independent reference values:
//! `cargo run --example golden -- FILE` prints one JSON line a case
//! (`id`, `stat`, `ok`, `detail`) and exits 1 if a case is off its tolerance or names an
//! unknown statistic. `ok` is null for a case whose data lie outside the file.

#[path = "../tests/support/golden/mod.rs"]
mod golden;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use golden::Outcome;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(file), None) = (arguments.next(), arguments.next()) else {
        let _ = writeln!(std::io::stderr(), "usage: golden FILE");
        return ExitCode::from(2);
    };
    let cases = match golden::load(&PathBuf::from(file)) {
        Ok(cases) => cases,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "error: {message}");
            return ExitCode::from(2);
        }
    };
    let mut failed = cases.is_empty();
    let mut out = std::io::stdout().lock();
    for case in &cases {
        let (ok, detail) = match case.run() {
            Outcome::Met => (Some(true), String::new()),
            Outcome::Off(detail) => (Some(false), detail),
            Outcome::Unknown => (Some(false), format!("unknown statistic `{}`", case.stat)),
            Outcome::NoData(detail) => (None, format!("not checked: {detail}")),
        };
        failed |= ok == Some(false);
        let line =
            serde_json::json!({ "id": case.id, "stat": case.stat, "ok": ok, "detail": detail });
        if writeln!(out, "{line}").is_err() {
            return ExitCode::FAILURE;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
