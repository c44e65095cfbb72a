//! The command-line program: parse, run a verb, map the outcome to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    venire::cli::main()
}
