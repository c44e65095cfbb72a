//! `venire completions`: shell completions on stdout.

use clap::{Args, CommandFactory};

use super::exit::Exit;
use super::printer::Printer;

/// Print completions for a shell
///
/// Example: `venire completions bash > ~/.local/share/bash-completion/completions/venire`
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &CompletionsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "venire", &mut script);
    printer.data(String::from_utf8(script)?.trim_end());
    Ok(Exit::Done)
}
