//! `venire import`: result files of other tools as cases, judgements and labels.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::exit::Exit;
use super::printer::{Printer, plural, table};
use crate::dataset::{FieldMap, Label, OnBadRow, Writer};
use crate::import::{ImportError, ImportOptions, Imported, NamedColumn, Tool, Truth, import};

/// Turn a result file of another tool into cases, judgements and labels
///
/// Example: `venire import results.json -o imported && venire calibrate --judgements imported/judgements.jsonl --labels labels.csv --positive =1`
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file: promptfoo's `-o results.json`, an Inspect log in JSON, lm-eval's
    /// `samples_*.jsonl`, AlpacaEval's `annotations.json`, a test run of DeepEval, or a table
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The tool that wrote it; told by the content if not given
    #[arg(long, value_enum, value_name = "TOOL")]
    from: Option<ToolArg>,
    /// The folder that `cases.jsonl`, `judgements.jsonl` and `labels.jsonl` go to; without it
    /// the file is only looked at
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// What every id begins with, so that the cases of several files keep apart
    #[arg(long, value_name = "TEXT", default_value = "")]
    id_prefix: String,
    /// Take a judge's scores as labels, as in `exact_match=ground_truth`; `human` and `model`
    /// are the other sources. May be repeated
    #[arg(long, value_name = "JUDGE=SOURCE")]
    label_from: Vec<Truth>,
    /// Of a table: a column with a judge's scores. May be repeated
    #[arg(long, value_name = "[NAME=]COLUMN")]
    judge: Vec<NamedColumn>,
    /// Of a table: a column with a rater's labels. May be repeated
    #[arg(long, value_name = "[RATER=]COLUMN")]
    label: Vec<NamedColumn>,
    /// Of a table: read a column as a field of the case, as in `output=completion`
    #[arg(long, value_name = "FIELD=COLUMN")]
    map: Vec<String>,
    /// Of a table: what to do with a row that can't be used
    #[arg(long, value_enum, default_value_t)]
    on_bad_row: BadRowArg,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum ToolArg {
    Promptfoo,
    Inspect,
    LmEval,
    AlpacaEval,
    Deepeval,
    Table,
}

impl ToolArg {
    fn tool(self) -> Tool {
        match self {
            Self::Promptfoo => Tool::Promptfoo,
            Self::Inspect => Tool::Inspect,
            Self::LmEval => Tool::LmEval,
            Self::AlpacaEval => Tool::AlpacaEval,
            Self::Deepeval => Tool::Deepeval,
            Self::Table => Tool::Table,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum BadRowArg {
    /// Stop with its error
    #[default]
    Fail,
    /// Leave it out and count it
    Skip,
}

pub(super) fn run(args: &ImportArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let options = ImportOptions {
        tool: args.from.map(ToolArg::tool),
        id_prefix: args.id_prefix.clone(),
        truths: args.label_from.clone(),
        map: FieldMap::parse(args.map.iter().map(String::as_str))?,
        judges: args.judge.clone(),
        labels: args.label.clone(),
        on_bad_row: match args.on_bad_row {
            BadRowArg::Fail => OnBadRow::Fail,
            BadRowArg::Skip => OnBadRow::Skip,
        },
    };
    let imported = match import(&args.file, &options) {
        Err(error @ ImportError::Empty { .. }) => {
            printer.error(&error.into());
            return Ok(Exit::Inconclusive);
        }
        imported => imported?,
    };
    let written = match &args.output {
        Some(folder) => write(&imported, folder)?,
        None => Vec::new(),
    };
    if args.json {
        printer.json(&summary(&imported, &written))?;
    } else {
        show(&imported, &written, args.output.is_some(), printer);
    }
    Ok(Exit::Done)
}

/// Writes what there is; a part without rows has no file.
fn write(imported: &Imported, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make the folder `{}`", folder.display()))?;
    let parts = [
        rows(&folder.join("cases.jsonl"), &imported.cases)?,
        rows(&folder.join("judgements.jsonl"), &imported.judgements)?,
        rows(&folder.join("labels.jsonl"), &imported.labels)?,
    ];
    Ok(parts.into_iter().flatten().collect())
}

fn rows<T: Serialize>(path: &Path, rows: &[T]) -> anyhow::Result<Option<PathBuf>> {
    super::export::not_read(path)?;
    if rows.is_empty() {
        // One of an earlier import would pass for this one's.
        anyhow::ensure!(
            !path.exists(),
            "`{}` is of another import, and this one has no such rows: remove it, or name another folder",
            path.display()
        );
        return Ok(None);
    }
    let mut writer = Writer::create(path)?;
    for row in rows {
        writer.write(row)?;
    }
    writer.finish()?;
    Ok(Some(path.to_owned()))
}

fn summary(imported: &Imported, written: &[PathBuf]) -> serde_json::Value {
    json!({
        "version": 1,
        "file": imported.file,
        "tool": imported.tool,
        "tool_version": imported.version,
        "cases": imported.cases.len(),
        "cases_without_output": imported.without_output(),
        "judgements": imported.judgements.len(),
        "labels": imported.labels.len(),
        "judges": imported.statuses(),
        "criteria": imported.criteria(),
        "skipped": imported.skipped,
        "notes": imported.notes,
        "written": written,
    })
}

fn show(imported: &Imported, written: &[PathBuf], asked: bool, printer: &Printer) {
    let version = imported.version.as_ref().map_or(String::new(), |own| format!(" {own}"));
    printer.result(&format!(
        "{} of {}{version}: {}, {}, {}",
        imported.file,
        imported.tool.name(),
        plural(imported.cases.len() as u64, "case", "cases"),
        plural(imported.judgements.len() as u64, "judgement", "judgements"),
        plural(imported.labels.len() as u64, "label", "labels"),
    ));
    let statuses = imported.statuses();
    if !statuses.is_empty() {
        let rows = statuses
            .iter()
            .map(|(judge, counts)| {
                let counts: Vec<String> =
                    counts.present().map(|(status, n)| format!("{status} {n}")).collect();
                vec![(*judge).to_owned(), counts.join(", ")]
            })
            .collect();
        printer.result(&table(&["judge", "statuses"], rows, &[]));
    }
    let criteria = imported.criteria();
    if criteria.len() > 1 || criteria.keys().any(|own| *own != Label::DEFAULT_CRITERION) {
        let listed: Vec<String> =
            criteria.iter().map(|(name, n)| format!("`{name}` {n}")).collect();
        printer.result(&format!("criteria: {}", listed.join(", ")));
    }
    for note in &imported.notes {
        printer.warn(&note.to_string());
    }
    if imported.skipped.count > 0 {
        printer.warn(&format!(
            "{} left out: {}",
            plural(imported.skipped.count, "row", "rows"),
            imported.skipped.first.join("; ")
        ));
    }
    if imported.labels.is_empty() {
        printer.say("the file holds no labels: to calibrate, give some with `--labels`, or take a judge that is the truth with `--label-from`");
    }
    for path in written {
        printer.say(&format!("wrote {}", path.display()));
    }
    if !asked {
        printer.say("nothing is written: name a folder with `-o`");
    }
}
