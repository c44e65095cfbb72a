//! The command-line program: parse, run a verb, map the outcome to an exit code.

use std::process::ExitCode;

/// Judging makes many small, short-lived values on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    venire::cli::main()
}
