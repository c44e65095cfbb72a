//! `venire export`: the rows of a stored run.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::printer::{Printer, plural};
use crate::dataset::{DatasetError, Writer};
use crate::run::rows::{RulingRow, VerdictRow, What, each_ruling, each_verdict};
use crate::store::{RunRecord, Store, StoreError};

/// Write the verdicts or rulings of a run to a file
///
/// Example: `venire export latest -o rulings.csv --what rulings`
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The run: its id, the beginning of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Where to: .jsonl, .json, .csv or .tsv, with .gz if wanted; `-` is stdout in JSON Lines
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    /// What a row is
    #[arg(long, value_enum, default_value_t)]
    what: WhatArg,
}

/// What a row of an export is.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum WhatArg {
    /// One row a verdict
    #[default]
    Verdicts,
    /// One row a case
    Rulings,
}

impl From<WhatArg> for What {
    fn from(what: WhatArg) -> Self {
        match what {
            WhatArg::Verdicts => Self::Verdicts,
            WhatArg::Rulings => Self::Rulings,
        }
    }
}

pub(super) fn run(args: &ExportArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let store = Store::open(&global.store)?;
    let run = store.run(&args.run)?;
    for output in &args.output {
        write(&store, &run, output, args.what.into(), printer)?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Write(#[from] DatasetError),
}

/// Writes the rows of a run, in the data's order. A fault of standard output is the
/// printer's, so that a reader who went away is no error.
pub(super) fn write(
    store: &Store,
    run: &RunRecord,
    output: &Path,
    what: What,
    printer: &Printer,
) -> anyhow::Result<()> {
    let failed = || format!("failed to export run `{}` to `{}`", run.id, output.display());
    let rows = match rows(store, run, output, what) {
        Err(ExportError::Write(DatasetError::Write { path, source })) if path == "-" => {
            printer.failed(source);
            return Ok(());
        }
        rows => rows.with_context(failed)?,
    };
    if output.as_os_str() != "-" {
        printer.say(&format!("wrote {} to {}", plural(rows, "row", "rows"), output.display()));
    }
    Ok(())
}

fn rows(store: &Store, run: &RunRecord, output: &Path, what: What) -> Result<u64, ExportError> {
    let mut writer = Writer::create(output)?;
    match what {
        What::Verdicts => each_verdict(store, run.number, |case, verdict| {
            Ok::<_, ExportError>(writer.write(&VerdictRow::new(&run.id, case, verdict))?)
        }),
        What::Rulings => each_ruling(store, run.number, |ruling| {
            Ok::<_, ExportError>(writer.write(&RulingRow::new(&run.id, &ruling))?)
        }),
    }?;
    Ok(writer.finish()?)
}
