//! `venire init`: a first panel and a few cases to try it on, or a first loop.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::exit::Exit;
use super::printer::Printer;

/// Write a starter panel and a few cases, or a starter loop
///
/// Example: `venire init && venire run cases.jsonl`
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The folder to write to
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// A loop instead, with a script as its agent and a test command as its judge: it runs
    /// without any model
    #[arg(long = "loop")]
    of_loop: bool,
}

const FILES: [(&str, &str); 2] = [
    ("panel.toml", include_str!("init/panel.toml")),
    ("cases.jsonl", include_str!("init/cases.jsonl")),
];

/// The offline example, so that there is one of it.
const LOOP: [(&str, &str); 3] = [
    ("loop.toml", include_str!("../../examples/loops/leap-year/loop.toml")),
    ("agent.sh", include_str!("../../examples/loops/leap-year/agent.sh")),
    ("check.sh", include_str!("../../examples/loops/leap-year/check.sh")),
];

pub(super) fn run(args: &InitArgs, printer: &Printer) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("failed to make `{}`", args.folder.display()))?;
    let files: &[(&str, &str)] = if args.of_loop { &LOOP } else { &FILES };
    // All or nothing: half a starter set beside a user's own file would only confuse.
    if let Some((name, _)) = files.iter().find(|(name, _)| args.folder.join(name).exists()) {
        anyhow::bail!(
            "`{}` is there already and was not changed: move it away, or name another folder",
            args.folder.join(name).display()
        );
    }
    for (name, content) in files {
        write_new(&args.folder.join(name), content)?;
        printer.result(&format!("wrote {}", args.folder.join(name).display()));
    }
    let folder = &args.folder;
    if args.of_loop {
        let file = folder.join("loop.toml");
        printer.result(&format!("\nnext:\n  venire loop -c {}", file.display()));
        return Ok(Exit::Done);
    }
    printer.result(&format!(
        "\nnext:\n  venire run -c {} {}",
        folder.join("panel.toml").display(),
        folder.join("cases.jsonl").display()
    ));
    Ok(Exit::Done)
}

fn write_new(path: &Path, content: &str) -> anyhow::Result<()> {
    std::fs::File::create_new(path)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("failed to write `{}`", path.display()))
}
