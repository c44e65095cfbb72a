//! `venire list`: what is there to choose from.

use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::printer::{Printer, table};
use crate::panel::spec::KINDS;
use crate::panel::vote::Aggregate;
use crate::store::Store;
use crate::verdict::Status;

/// List runs, judge kinds, rules, rubrics, aggregators or statuses
///
/// Example: `venire list runs`
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: Listed,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Listed {
    /// The runs in the store, the newest first
    Runs,
    /// The kinds of judges
    Judges,
    /// The rules that a judge of kind `rule` can be
    Rules,
    /// The built-in rubrics
    Rubrics,
    /// How votes can become one score
    Aggregators,
    /// What can become of a verdict
    Statuses,
}

pub(super) fn run(args: &ListArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let names: Vec<String> = match args.what {
        Listed::Runs => return runs(args, global, printer),
        Listed::Judges => KINDS.map(str::to_owned).to_vec(),
        Listed::Rules => crate::judge::rule::RULES.iter().map(|&rule| rule.to_owned()).collect(),
        Listed::Rubrics => {
            crate::rubric::BUILTIN_NAMES.iter().map(|&name| name.to_owned()).collect()
        }
        Listed::Aggregators => Aggregate::ALL.iter().map(|a| a.name().to_owned()).collect(),
        Listed::Statuses => Status::ALL.iter().map(|s| s.name().to_owned()).collect(),
    };
    if args.json {
        printer.json(&names)?;
    } else {
        printer.data(&names.join("\n"));
    }
    Ok(Exit::Done)
}

fn runs(args: &ListArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let runs = Store::open(&global.store)?.runs()?;
    if args.json {
        printer.json(&runs)?;
        return Ok(Exit::Done);
    }
    let rows = runs
        .into_iter()
        .map(|run| vec![run.id, run.state.name().to_owned(), run.panel_name, run.data, run.created])
        .collect();
    printer.result(&table(&["run", "state", "panel", "data", "started"], rows, &[]));
    Ok(Exit::Done)
}
