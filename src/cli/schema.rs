//! `venire schema`: JSON Schemas of what is read and written.

use clap::{Args, ValueEnum};
use schemars::schema_for;

use super::exit::Exit;
use super::printer::Printer;
use crate::calibration::report::Printed;
use crate::case::Case;
use crate::control::LoopSpec;
use crate::panel::PanelSpec;
use crate::rubric::Rubric;
use crate::ruling::Ruling;
use crate::run::rows::{RulingRow, VerdictRow};
use crate::serve::hook::Outcome;

/// Print the JSON Schema of a file that is read or written
///
/// Example: `venire schema panel > panel.schema.json`
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Of what
    #[arg(value_enum)]
    what: Described,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Described {
    /// A panel file
    Panel,
    /// A loop file
    Loop,
    /// A rubric file
    Rubric,
    /// A case in JSON
    Case,
    /// What `score --json` prints
    Ruling,
    /// What a hook or `gate --outcome` found
    Outcome,
    /// What `calibrate --json` prints
    Calibration,
    /// A row of exported verdicts
    VerdictRow,
    /// A row of exported rulings
    RulingRow,
}

pub(super) fn run(args: &SchemaArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let schema = match args.what {
        Described::Panel => schema_for!(PanelSpec),
        Described::Loop => schema_for!(LoopSpec),
        Described::Rubric => schema_for!(Rubric),
        Described::Case => schema_for!(Case),
        Described::Ruling => schema_for!(Ruling),
        Described::Outcome => schema_for!(Outcome),
        Described::Calibration => schema_for!(Printed),
        Described::VerdictRow => schema_for!(VerdictRow),
        Described::RulingRow => schema_for!(RulingRow),
    };
    printer.data(&serde_json::to_string_pretty(&schema)?);
    Ok(Exit::Done)
}
