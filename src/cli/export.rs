//! `venire export`: the rows of a stored run, or a report on it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Global;
use super::exit::Exit;
use super::printer::{Printer, plural};
use super::run::{DataAgain, data_again};
use super::select::{Chosen, SelectArgs};
use crate::case::Case;
use crate::dataset::{self, DatasetError, Label, Reader, Writer};
use crate::panel::PanelSpec;
use crate::report::{self, About, Beside, Judged, ReportError, StoredRun};
use crate::ruling::Ruling;
use crate::run::joined::{CaseFields, Columns, WideRow, WithCase, WithTruth};
use crate::run::rows::{RulingRow, VerdictRow, each_judged_at, row_numbers};
use crate::run::select::Selection;
use crate::run::truth::{Mistake, MistakeCounts};
use crate::store::{RunRecord, Store};
use crate::verdict::Verdict;

/// Write the verdicts or rulings of a run to a file, or a report on it
///
/// Example: `venire export latest -o cases.csv --wide --with-case`
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The run: its id, the beginning of it, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Where to: rows as .jsonl, .json, .csv or .tsv, with .gz if wanted (`-` is stdout in JSON
    /// Lines); a report as .md, .html or .xml (JUnit). May be repeated
    #[arg(short, long, value_name = "FILE", required = true)]
    output: Vec<PathBuf>,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    select: SelectArgs,
}

/// What stands in a row.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RowArgs {
    /// What a row is
    #[arg(long, value_enum, default_value_t)]
    pub(super) what: WhatArg,
    /// Rows carry their case: input, output, expected, labels, metadata and the rest
    #[arg(long)]
    with_case: bool,
    /// One row a case with every judge's score as a column, and the ruling
    #[arg(long, conflicts_with = "what")]
    wide: bool,
    /// CSV and TSV as spreadsheets open them safely: a byte order mark, no cell that is run as
    /// a formula, feedback as lines with their criterion. Not meant to be read again by venire
    #[arg(long)]
    spreadsheet: bool,
}

/// What a row of an export is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum WhatArg {
    /// One row a verdict
    #[default]
    Verdicts,
    /// One row a case
    Rulings,
}

impl RowArgs {
    /// Says that flags which shape rows shape none where none are written.
    pub(super) fn warn_without_output(&self, printer: &Printer) {
        let what = self.what != WhatArg::default();
        let set = [
            ("--what", what),
            ("--with-case", self.with_case),
            ("--wide", self.wide),
            ("--spreadsheet", self.spreadsheet),
        ];
        let set: Vec<String> =
            set.iter().filter(|(_, is)| *is).map(|(flag, _)| format!("`{flag}`")).collect();
        if !set.is_empty() {
            printer.warn(&format!(
                "{} shapes the rows of `-o FILE`, and none is named: no rows are written",
                set.join(", ")
            ));
        }
    }
}

pub(super) fn run(args: &ExportArgs, global: &Global, printer: &Printer) -> anyhow::Result<Exit> {
    let store = Store::open(&global.store)?;
    let run = store.run(&args.run)?;
    let chosen = args.select.chosen(&store, &run, printer)?;
    // `--resume`, and labels in rows, need the data as it was judged.
    crate::inputs::note(Path::new(&run.data));
    for output in &args.output {
        writable(output, &args.rows)?;
    }
    for output in &args.output {
        write(&store, &run, output, &args.rows, &chosen, printer)?;
    }
    for line in chosen.mistakes.iter().flat_map(MistakeCounts::lines) {
        printer.say(&line);
    }
    Ok(Exit::Done)
}

/// Refuses to write over a file that the command reads, or one whose name says no format.
fn writable(output: &Path, rows: &RowArgs) -> anyhow::Result<()> {
    not_read(output)?;
    let table = match dataset::Format::from_path(output) {
        Some((format, _)) => format.is_table(),
        None => report::Format::from_path(output).is_some(),
    };
    anyhow::ensure!(
        !rows.spreadsheet || table,
        "`--spreadsheet` is about .csv and .tsv: `-o {}` is neither",
        output.display()
    );
    anyhow::ensure!(
        output.as_os_str() == "-"
            || dataset::Format::from_path(output).is_some()
            || report::Format::from_path(output).is_some(),
        "`-o` can't be written: {}; a report is .html, .md or .xml (JUnit)",
        DatasetError::Extension { path: output.display().to_string() }
    );
    Ok(())
}

/// Refuses to write over a file that the command reads.
pub(super) fn not_read(output: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        !crate::inputs::was_read(output),
        "`-o {}` would overwrite a file that is read here: name another one",
        output.display()
    );
    Ok(())
}

/// Whether a file can be written, and in a format that its extension says.
pub(super) fn check(output: &Path, rows: &RowArgs) -> anyhow::Result<()> {
    let failed = || format!("`-o {}` can't be written", output.display());
    writable(output, rows)?;
    if report::Format::from_path(output).is_some() {
        return report::check(output).with_context(failed);
    }
    Writer::create(output).map(drop).with_context(failed)
}

/// Writes the rows of a run, in the data's order, or a report on it. A fault of standard
/// output is the printer's, so that a reader who went away is no error.
pub(super) fn write(
    store: &Store,
    run: &RunRecord,
    output: &Path,
    rows: &RowArgs,
    chosen: &Chosen,
    printer: &Printer,
) -> anyhow::Result<()> {
    match write_rows(store, run, output, rows, chosen, printer) {
        Err(error) => match fault_of_stdout(&error) {
            Some(fault) => {
                printer.failed(fault);
                Ok(())
            }
            None => Err(error),
        },
        written => written,
    }
}

fn fault_of_stdout(error: &anyhow::Error) -> Option<std::io::Error> {
    error.chain().find_map(|cause| match cause.downcast_ref::<DatasetError>() {
        Some(DatasetError::Write { path, source }) if path == "-" => {
            Some(std::io::Error::new(source.kind(), source.to_string()))
        }
        _ => None,
    })
}

fn write_rows(
    store: &Store,
    run: &RunRecord,
    output: &Path,
    rows: &RowArgs,
    chosen: &Chosen,
    printer: &Printer,
) -> anyhow::Result<()> {
    let failed = || format!("failed to export run `{}` to `{}`", run.id, output.display());
    let selection = &chosen.selection;
    let cases = StoredRun { store, run, selection };
    if let Some(format) = report::Format::from_path(output) {
        let mut about = cases.about();
        about.notes.extend(chosen.mistakes.iter().map(|counts| counts.lines().join("; ")));
        let written = write_report(format, output, &about, &cases, printer).with_context(failed)?;
        warn_if_empty(written, run, selection, output, printer);
        return Ok(());
    }
    let mut writer = Writer::create(output).with_context(failed)?;
    if rows.spreadsheet {
        writer = writer.spreadsheet();
    }
    let mut labels = if rows.with_case { Labels::of_run(run, printer) } else { Labels::default() };
    let columns = match (rows.with_case, writer.is_table()) {
        (true, true) => Columns::of_table(store, run.number, labels.criteria.clone())?,
        _ => Columns::Nested,
    };
    let judges = judges(run);
    let labelled = selection.truth.is_some();
    let heading = false;
    let mut sheet = Sheet { writer, rows, run: &run.id, columns, judges, labelled, heading };
    // A case that is not chosen, for a header where none is.
    let mut unchosen: Option<(Case, Ruling)> = None;
    let numbers = row_numbers(run);
    // Cases of a stopped run may have verdicts and no ruling yet.
    if rows.what == WhatArg::Verdicts && !rows.wide && selection.is_all() {
        store
            .each_case(run.number, |position, id| {
                let case = if rows.with_case { store.case(run.number, position)? } else { None };
                let case = case.unwrap_or_else(|| Case { id, ..Case::default() });
                let verdicts = store.verdicts(run.number, position)?;
                let beside = Beside {
                    row: numbers.of(position),
                    truth: selection.truth.as_ref().and_then(|truth| truth.word(&case.id)),
                    mistake: match &selection.truth {
                        Some(_) => store
                            .ruling(run.number, position)?
                            .and_then(|ruling| selection.mistake(&ruling)),
                        None => None,
                    },
                };
                sheet
                    .verdicts(&case, &verdicts, beside, &labels.of(&case.id))
                    .map_err(ReportError::from)
            })
            .with_context(failed)?;
    } else {
        each_judged_at(store, run.number, |position, case, ruling| {
            if !selection.takes(&ruling) {
                unchosen.get_or_insert((case, ruling));
                return Ok(());
            }
            let beside = Beside { row: numbers.of(position), ..cases.beside(&case, &ruling) };
            sheet.ruling(&case, &ruling, beside, &labels.of(&case.id)).map_err(ReportError::from)
        })
        .with_context(failed)?;
    }
    if let Some((case, ruling)) = &unchosen {
        sheet.header(case, ruling).map_err(ReportError::from).with_context(failed)?;
    }
    let written = sheet.finish(output, printer).with_context(failed)?;
    warn_if_empty(written, run, selection, output, printer);
    Ok(())
}

/// Says that nothing of a run is in a file, and why: an empty file looks like a good end.
fn warn_if_empty(
    written: u64,
    run: &RunRecord,
    selection: &Selection,
    output: &Path,
    printer: &Printer,
) {
    if written > 0 {
        return;
    }
    let why = match selection.words() {
        Some(words) => format!("no case of run `{}` matches ({words})", run.id),
        None => format!("run `{}` has nothing judged", run.id),
    };
    printer.warn(&format!("{why}: nothing of it is in `{}`", output.display()));
}

/// Writes the rows of one case that is in no run, or a report on it.
pub(super) fn write_one(
    output: &Path,
    spec: &PanelSpec,
    judged: &(Case, Ruling),
    printer: &Printer,
) -> anyhow::Result<()> {
    let failed = || format!("failed to write `{}`", output.display());
    if let Some(format) = report::Format::from_path(output) {
        let about = About::panel(spec);
        return write_report(format, output, &about, judged, printer)
            .map(drop)
            .with_context(failed);
    }
    // One case is one object, the one that `--json` prints.
    if dataset::Format::from_path(output) == Some((dataset::Format::Json, false)) {
        let mut json = serde_json::to_string_pretty(&judged.1)?;
        json.push('\n');
        std::fs::write(output, json).with_context(failed)?;
        printer.say(&format!("wrote the ruling to {}", output.display()));
        return Ok(());
    }
    let writer = Writer::create(output).with_context(failed)?;
    let rows = RowArgs::default();
    let judges = Vec::new();
    let columns = Columns::Nested;
    let (labelled, heading) = (false, false);
    let mut sheet = Sheet { writer, rows: &rows, run: "", columns, judges, labelled, heading };
    let (case, ruling) = judged;
    let beside = Beside::default();
    sheet.ruling(case, ruling, beside, &[]).map_err(ReportError::from).with_context(failed)?;
    sheet.finish(output, printer).map(drop).with_context(failed)
}

/// Writes a report; the number of its cases.
fn write_report(
    format: report::Format,
    output: &Path,
    about: &About,
    cases: &dyn Judged,
    printer: &Printer,
) -> anyhow::Result<u64> {
    let written = report::write_file(format, output, about, cases)?;
    let cases = plural(written.cases, "case", "cases");
    printer.say(&format!("wrote {cases} to {}", output.display()));
    if written.left_out > 0 {
        printer.warn(&format!(
            "{} more cases are not on the page: choose some, as with `venire export RUN -o report.html --decision reject`, or write a table with `-o rows.csv --wide`",
            written.left_out
        ));
    }
    Ok(written.cases)
}

/// The names of a run's judges, in the panel's order.
fn judges(run: &RunRecord) -> Vec<String> {
    let panel = serde_json::from_str::<PanelSpec>(&run.panel);
    panel.map_or_else(
        |_| Vec::new(),
        |spec| {
            spec.judge
                .into_iter()
                .map(|judge| judge.seat)
                .filter(|seat| !seat.reserve)
                .map(|seat| seat.name)
                .collect()
        },
    )
}

/// Rows on their way to a file.
struct Sheet<'a> {
    writer: Writer,
    rows: &'a RowArgs,
    run: &'a str,
    columns: Columns,
    judges: Vec<String>,
    /// Whether rows say what the label says, and whether the decision contradicts it.
    labelled: bool,
    /// Whether rows are not written and only name the columns.
    heading: bool,
}

impl Sheet<'_> {
    /// Names the columns by a case that is not written, for a table without rows.
    fn header(&mut self, case: &Case, ruling: &Ruling) -> Result<(), dataset::DatasetError> {
        self.heading = true;
        let named = self.ruling(case, ruling, Beside::default(), &[]);
        self.heading = false;
        named
    }

    fn verdicts(
        &mut self,
        case: &Case,
        verdicts: &[Verdict],
        beside: Beside,
        labels: &[Label],
    ) -> Result<(), dataset::DatasetError> {
        for verdict in verdicts {
            let make = if self.rows.spreadsheet { VerdictRow::for_people } else { VerdictRow::new };
            let row = make(self.run, &case.id, verdict.clone());
            self.row(&row, case, beside, labels)?;
        }
        Ok(())
    }

    fn ruling(
        &mut self,
        case: &Case,
        ruling: &Ruling,
        beside: Beside,
        labels: &[Label],
    ) -> Result<(), dataset::DatasetError> {
        if self.rows.wide {
            if self.judges.is_empty() {
                self.judges = ruling.votes.iter().map(|vote| vote.judge.clone()).collect();
            }
            let fields = CaseFields { case, row: beside.row, labels, columns: &self.columns };
            let row = WideRow {
                run: self.run,
                ruling,
                judges: &self.judges,
                case: self.rows.with_case.then_some(fields),
                nested: !self.writer.is_table(),
            };
            return written(&mut self.writer, self.labelled, self.heading, &row, beside);
        }
        match self.rows.what {
            WhatArg::Verdicts => self.verdicts(case, &ruling.verdicts, beside, labels),
            WhatArg::Rulings => self.row(&RulingRow::new(self.run, ruling), case, beside, labels),
        }
    }

    fn row<R: serde::Serialize>(
        &mut self,
        row: &R,
        case: &Case,
        beside: Beside,
        labels: &[Label],
    ) -> Result<(), dataset::DatasetError> {
        if !self.rows.with_case {
            return written(&mut self.writer, self.labelled, self.heading, row, beside);
        }
        let case = CaseFields { case, row: beside.row, labels, columns: &self.columns };
        written(&mut self.writer, self.labelled, self.heading, &WithCase { row, case }, beside)
    }

    /// Ends the file; the number of its rows.
    fn finish(self, output: &Path, printer: &Printer) -> anyhow::Result<u64> {
        let rows = self.writer.finish()?;
        if output.as_os_str() != "-" {
            printer.say(&format!("wrote {} to {}", plural(rows, "row", "rows"), output.display()));
        }
        Ok(rows)
    }
}

/// Writes a row, with what its label says where labels were asked for; in a `heading` it only
/// names the columns.
fn written<R: serde::Serialize>(
    writer: &mut Writer,
    labelled: bool,
    heading: bool,
    row: &R,
    beside: Beside,
) -> Result<(), dataset::DatasetError> {
    let mistake = beside.mistake.map(Mistake::name);
    let with_truth = WithTruth { row, truth: beside.truth, mistake };
    match (labelled, heading) {
        (false, false) => writer.write(row),
        (true, false) => writer.write(&with_truth),
        (false, true) => writer.header(row),
        (true, true) => writer.header(&with_truth),
    }
}

/// The labels in the rows of a run's own data, read again beside its cases. The store does
/// not have them: no judge may see a label.
#[derive(Default)]
struct Labels {
    criteria: Vec<String>,
    rows: Option<LabelRows>,
}

struct LabelRows(Reader);

impl Iterator for LabelRows {
    type Item = (String, Vec<Label>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_row()?.ok().map(|row| (row.case.id, row.labels))
    }
}

impl Labels {
    fn of_run(run: &RunRecord, printer: &Printer) -> Self {
        match Self::read(run) {
            Ok(Some(labels)) => labels,
            Ok(None) => {
                printer.warn(&format!(
                    "`{}` is not what it was when run `{}` read it: rows are without its labels",
                    run.data, run.id
                ));
                Self::default()
            }
            Err(error) => {
                printer.warn(&format!(
                    "the labels of `{}` can't be read again, rows are without them: {error:#}",
                    run.data
                ));
                Self::default()
            }
        }
    }

    /// `None` when the data has changed since.
    fn read(run: &RunRecord) -> anyhow::Result<Option<Self>> {
        let (source, options, scan) = match data_again(run)? {
            DataAgain::Same { source, options, scan } => (source, options, scan),
            DataAgain::Changed => return Ok(None),
            // What came by a pipe is gone; its cases are in the store.
            DataAgain::Gone => return Ok(Some(Self::default())),
        };
        if scan.labelled == 0 {
            return Ok(Some(Self::default()));
        }
        let rows = LabelRows(Reader::open(&source, &options)?);
        Ok(Some(Self { criteria: scan.labels.into_keys().collect(), rows: Some(rows) }))
    }

    /// The labels of a case; cases must come in the data's order.
    fn of(&mut self, id: &str) -> Vec<Label> {
        let Some(rows) = &mut self.rows else { return Vec::new() };
        rows.find(|(case, _)| case == id).map(|(_, labels)| labels).unwrap_or_default()
    }
}
