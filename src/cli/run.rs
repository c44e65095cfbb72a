//! `venire run`: a panel over a data set, stored and resumable.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::Global;
use super::exit::{Exit, Unwritten};
use super::export::{self, RowArgs};
use super::panel::{Keys, PanelArgs, ProfileArgs, Seated, unit, warn};
use super::printer::{Printer, plural};
use super::progress::Progress;
use super::run_report::{self, Outcome};
use super::select::Chosen;
use super::stop::Stop;
use crate::dataset::{
    self, FieldMap, OnBadRow, ReadOptions, Reader, RowNumbers, Scan, Skipped, Source,
};
use crate::judge::Plan;
use crate::panel::{Panel, PanelSpec};
use crate::provider::{Client, Ledger, LedgerLimits};
use crate::run::{self, Options};
use crate::store::{RunRecord, RunState, Store};

/// Judge a data set: every judge on every case, one ruling each, all of it kept
///
/// Example: `venire run -c panel.toml cases.jsonl -o verdicts.jsonl`
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    panel: PanelArgs,
    /// The data set: CSV, TSV or JSON Lines, gzip or not; `-` for stdin
    #[arg(value_name = "DATA", required_unless_present = "resume")]
    data: Option<PathBuf>,
    #[command(flatten)]
    reading: DataArgs,
    /// Write rows (.jsonl, .json, .csv, .tsv; `-` for stdout) or a report (.md, .html, .xml
    /// for JUnit) when done; may be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    #[command(flatten)]
    rows: RowArgs,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
    /// Measurements in flight at most, over all judges
    #[arg(short = 'j', long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrency: u32,
    /// Go on with a stopped run: its id, or the newest when none is given. Its panel, data
    /// and what shapes them are those it was started with
    #[arg(
        long,
        value_name = "RUN",
        num_args = 0..=1,
        default_missing_value = "latest",
        conflicts_with_all = ["config", "threshold", "profile", "allow_mismatch", "seed", "repeat", "map", "on_bad_row", "split", "limit", "no_cache"]
    )]
    resume: Option<String>,
    /// With `--resume`: ask again for verdicts that failed
    #[arg(long, requires = "resume")]
    retry_errors: bool,
    /// Ask model servers again, whatever replies are kept
    #[arg(long)]
    no_cache: bool,
    /// US dollars for this run at most
    #[arg(long, value_name = "USD", value_parser = dollars)]
    cost_limit: Option<f64>,
    /// Show the plan, the calls and the price, and judge nothing
    #[arg(long)]
    dry_run: bool,
    /// Exit with 1 when a smaller share of the decided cases is accepted
    #[arg(long, value_name = "SHARE", value_parser = unit)]
    fail_under: Option<f64>,
    /// Exit with 3 when a larger share of the cases is undecided
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = unit)]
    max_undecided: f64,
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected an amount of US dollars such as 2.50".into()),
    }
}

/// How a data set is read.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub(super) struct DataArgs {
    /// Read a column as a field, as in `output=completion`; may be repeated
    #[arg(long, value_name = "FIELD=COLUMN")]
    map: Vec<String>,
    /// What to do with a row that can't be used
    #[arg(long, value_enum, default_value_t)]
    on_bad_row: BadRow,
    /// Only the cases of this split
    #[arg(long, value_name = "NAME")]
    split: Option<String>,
    /// At most so many cases
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BadRow {
    /// Stop before anything is judged
    #[default]
    Fail,
    /// Leave it out, and count it
    Skip,
}

impl DataArgs {
    pub(super) fn options(&self, require_output: bool) -> anyhow::Result<ReadOptions> {
        Ok(ReadOptions {
            map: FieldMap::parse(self.map.iter().map(String::as_str))?,
            require_output,
            on_bad_row: match self.on_bad_row {
                BadRow::Fail => OnBadRow::Fail,
                BadRow::Skip => OnBadRow::Skip,
            },
            split: self.split.clone(),
            limit: self.limit,
            ..ReadOptions::default()
        })
    }

    /// Reads a data set through once, and says what was understood.
    pub(super) fn scan(
        &self,
        data: &Path,
        panel: &Panel,
        printer: &Printer,
    ) -> anyhow::Result<(Read, Scan)> {
        let options = self.options(panel.needs_output())?;
        let source = Source::open(data)?;
        let scan = dataset::scan(&source, &options)?;
        for alias in &scan.aliases {
            printer.say(&format!("reading the column `{}` as `{}`", alias.column, alias.field));
        }
        if let Some(said) = left_out(&scan.skipped) {
            printer.warn(&said);
        }
        Ok((Read { source, options }, scan))
    }
}

/// Which rows were left out and why, the first few by name; `None` where none was.
fn left_out(skipped: &Skipped) -> Option<String> {
    let more = skipped.count.checked_sub(skipped.first.len() as u64)?;
    let rows = match skipped.count {
        0 => return None,
        count => plural(count, "row was", "rows were"),
    };
    let mut said = format!("{rows} left out:\n{}", skipped.first.join("\n"));
    if more > 0 {
        said.push_str(&format!("\nand {}", plural(more, "more row", "more rows")));
    }
    Some(said)
}

/// A data set that was read through once and can be read again.
pub(super) struct Read {
    source: Source,
    options: ReadOptions,
}

impl Read {
    fn cases(&self) -> anyhow::Result<Reader> {
        Ok(Reader::open(&self.source, &self.options)?)
    }
}

/// What a run was started with: what a resumed run must be the same in.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Started {
    config: PathBuf,
    data: PathBuf,
    reading: DataArgs,
    threshold: Option<f64>,
    seed: Option<u64>,
    repeat: u32,
    no_cache: bool,
    #[serde(default)]
    profile: Option<PathBuf>,
    #[serde(default)]
    allow_mismatch: bool,
    /// The hash of the profile in force, from the flag or the panel's own key.
    #[serde(default)]
    profile_hash: Option<String>,
    /// US dollars for the whole run; another one may be set when it is resumed.
    #[serde(default)]
    cost_limit: Option<f64>,
    /// Rows of the data that could not be used and were left out. Reports read it here.
    #[serde(default)]
    skipped_rows: u64,
    /// Which row of the data each case is. Tables and reports read it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<RowNumbers>,
}

/// The data of a run, looked at again.
pub(super) enum DataAgain {
    /// As it was judged.
    Same { source: Source, options: ReadOptions, scan: Box<Scan> },
    /// Another file by now.
    Changed,
    /// It came by a pipe, or case by case: there is nothing to look at.
    Gone,
}

/// The data of a run as it was judged, where it is still there.
pub(super) fn data_again(run: &RunRecord) -> anyhow::Result<DataAgain> {
    if run.data == crate::store::ONE_BY_ONE {
        return Ok(DataAgain::Gone);
    }
    let started: Started = serde_json::from_str(&run.options)
        .with_context(|| format!("the options of run `{}` can't be read", run.id))?;
    if started.data.as_os_str() == "-" {
        return Ok(DataAgain::Gone);
    }
    let (source, options) = started.source()?;
    let scan = dataset::scan(&source, &options)?;
    if scan.data_hash != run.data_hash {
        return Ok(DataAgain::Changed);
    }
    Ok(DataAgain::Same { source, options, scan: Box::new(scan) })
}

impl RunArgs {
    fn started(&self) -> anyhow::Result<Started> {
        let Some(data) = &self.data else { anyhow::bail!("expected a data set") };
        let absolute = |path: &Path| {
            if path.as_os_str() == "-" { Ok(path.to_owned()) } else { std::path::absolute(path) }
        };
        Ok(Started {
            config: absolute(&self.panel.config)?,
            data: absolute(data)?,
            reading: self.reading.clone(),
            threshold: self.panel.threshold,
            seed: self.panel.seed,
            repeat: self.panel.repeat,
            cost_limit: self.cost_limit,
            no_cache: self.no_cache,
            profile: self.panel.profile.profile.as_deref().map(absolute).transpose()?,
            allow_mismatch: self.panel.profile.allow_mismatch,
            profile_hash: None,
            skipped_rows: 0,
            rows: None,
        })
    }
}

impl Started {
    /// The data and how it was read; rows without an output are no matter any more.
    fn source(&self) -> anyhow::Result<(Source, ReadOptions)> {
        Ok((Source::open(&self.data)?, self.reading.options(false)?))
    }

    fn panel(&self) -> PanelArgs {
        PanelArgs {
            config: self.config.clone(),
            threshold: self.threshold,
            seed: self.seed,
            repeat: self.repeat,
            profile: ProfileArgs {
                profile: self.profile.clone(),
                allow_mismatch: self.allow_mismatch,
            },
        }
    }
}

pub(super) async fn run(
    args: &RunArgs,
    global: &Global,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    // The parser does not hold to `requires` where what is required conflicts with `-c`.
    anyhow::ensure!(
        args.resume.is_some() || !args.retry_errors,
        "`--retry-errors` goes with `--resume [RUN]`: it asks again for what failed in a run that is kept"
    );
    if args.output.is_empty() {
        args.rows.warn_without_output(printer);
    }
    let earlier = match &args.resume {
        None => None,
        Some(id) => Some(Store::open(&global.store)?.run(id)?),
    };
    let mut started = match &earlier {
        None => args.started()?,
        Some(run) => {
            anyhow::ensure!(
                run.data != crate::store::ONE_BY_ONE,
                "run `{}` holds answers that `venire mcp` was asked about one by one, and can't go on: name a run of a data set (`venire list runs` shows them)",
                run.id
            );
            let mut started: Started = serde_json::from_str(&run.options)
                .with_context(|| format!("the options of run `{}` can't be read", run.id))?;
            if let Some(data) = &args.data {
                started.data.clone_from(data);
            }
            started.cost_limit = args.cost_limit.or(started.cost_limit);
            started
        }
    };
    let keys = Keys::default();
    let client = if args.dry_run { keys.client() } else { Client::default() };
    let Seated { spec, panel } = started.panel().seat(client)?;
    keys.warn(printer);
    let profile_hash = panel.profile().map(|own| own.hash().to_owned());
    if let Some(run) = &earlier {
        same_profile(run, started.profile_hash.as_deref(), profile_hash.as_deref())?;
    }
    started.profile_hash = profile_hash;
    let (read, scan) = started.reading.scan(&started.data, &panel, printer)?;
    started.skipped_rows = scan.skipped.count;
    started.rows = Some(scan.rows.clone());
    if scan.count == 0 {
        let why = if started.reading.limit == Some(0) {
            "`--limit 0` takes no case".to_owned()
        } else if scan.skipped.count > 0 {
            format!("no row of `{}` can be used", scan.path)
        } else {
            format!("`{}` has no cases", scan.path)
        };
        printer.warn(&format!("{why}: nothing was judged"));
        if args.json {
            printer.json(&run_report::nothing(&panel, &spec, &scan))?;
        }
        return Ok(Exit::Inconclusive);
    }
    warn(&panel, printer);
    let plan = plan(&panel, &read, args.dry_run || started.cost_limit.is_some())?;
    check_outputs(args, global)?;
    if args.dry_run {
        run_report::plan(&panel, &scan, &plan, args.json, printer)?;
        return Ok(Exit::Done);
    }
    if started.cost_limit.is_some() && plan.once.cost_usd.is_none() {
        let unpriced = unpriced(&panel, &read)?;
        anyhow::bail!(
            "`--cost-limit` needs a price for every model, and {unpriced} has none: set `price = {{ input = …, output = … }}` (US dollars per million tokens; zeros for a model that costs nothing)"
        );
    }
    let mut store = Store::create(&global.store)?;
    let record = match earlier {
        Some(run) => same(run, &panel, &scan)?,
        None => {
            let mut record = RunRecord {
                number: 0,
                id: new_id(),
                created: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                state: RunState::Running,
                panel_name: panel.name.clone(),
                panel_fingerprint: panel.fingerprint().to_string(),
                panel: serde_json::to_string(&kept(&spec)?)?,
                data: scan.path.clone(),
                data_hash: scan.data_hash.clone(),
                options: serde_json::to_string(&started)?,
                summary: None,
            };
            record.number = store.add_run(&record)?;
            record
        }
    };
    let _lock = lock(&global.store, &record)?;
    let resumed = args.resume.is_some();
    printer.say(&format!(
        "run {}: {} x {}",
        record.id,
        plural(scan.count, "case", "cases"),
        plural(panel.seats.len() as u64, "judge", "judges")
    ));
    let resume = format!("interrupted: `venire run --resume {}` goes on", record.id);
    let stop = Stop::listen(*printer, Some(resume.clone()));
    let writer = store.writer()?;
    let scope = started.no_cache.then_some(record.id.as_str());
    let replies = Arc::new(store.replies(&writer, scope)?);
    let left = match started.cost_limit {
        // What an earlier process spent on this run counts.
        Some(limit) if resumed => Some((limit - store.spent_usd(record.number)?).max(0.0)),
        limit => limit,
    };
    let ledger = Arc::new(ledger(left)?);
    let options = Options {
        concurrency: args.max_concurrency as usize,
        retry_errors: args.retry_errors,
        resumed,
        stop: stop.stop.clone(),
        abandon: stop.abandon.clone(),
        ledger: ledger.clone(),
    };
    let mut warnings = panel.warnings();
    warnings.extend(left_out(&scan.skipped));
    let in_force = panel.rules.profile.clone();
    // A bar would be drawn over what a person is asked on the same terminal.
    let asks_a_person = panel.seats.iter().any(|seat| seat.judge.kind() == "human");
    let shown = if asks_a_person { Printer::new(true) } else { *printer };
    let mut progress = Progress::new(scan.count, shown);
    let place = run::Place {
        store: store.path().to_owned(),
        run: record.number,
        writer: writer.clone(),
        replies,
    };
    let cases = read.cases()?;
    // On a worker thread: what the main thread waits for wakes it with a system call each time.
    let judging = tokio::spawn(async move {
        let mut shown = |tally: &_| progress.update(tally);
        let report = run::execute(panel, cases, &place, &options, &mut shown).await;
        progress.finish();
        report
    });
    let report = judging.await?;
    stop.judged();
    let report = report.with_context(|| {
        format!(
            "run `{}` broke off; what was judged is kept: go on with `venire run --resume {}`",
            record.id, record.id
        )
    })?;
    for warning in report.tally.warnings() {
        printer.warn(&warning);
        warnings.push(warning);
    }
    let mut ended = record.clone();
    ended.state = if report.finished { RunState::Finished } else { RunState::Interrupted };
    for output in &args.output {
        export::write(&store, &ended, output, &args.rows, &Chosen::default(), printer)
            .map_err(|error| error.context(Unwritten { run: record.id.clone() }))?;
    }
    let outcome = Outcome {
        run: &record,
        store: &store,
        report: &report,
        totals: ledger.totals(),
        skipped_rows: scan.skipped.count,
        spec: &spec,
        profile: in_force,
        warnings,
    };
    // The writer's thread ends with its last handle, and its connection with it: the store is
    // then one whole file again.
    writer.close().await;
    if args.json {
        printer.json(&outcome.summary())?;
    } else if args.output.iter().any(|output| output.as_os_str() == "-") {
        printer.say("the rows are on stdout");
    } else {
        outcome.print(printer)?;
    }
    if !report.finished {
        printer.warn(&resume);
    }
    Ok(exit(args, &report, printer))
}

fn exit(args: &RunArgs, report: &run::Report, printer: &Printer) -> Exit {
    let tally = &report.tally;
    if !report.finished {
        return Exit::Interrupted;
    }
    let undecided = tally.undecided as f64 / tally.cases.max(1) as f64;
    if tally.undecided == tally.cases || undecided > args.max_undecided {
        printer.warn(&format!(
            "inconclusive: {} of {} cases are undecided",
            tally.undecided, tally.cases
        ));
        return Exit::Inconclusive;
    }
    let decided = tally.accepted + tally.rejected;
    let share = tally.accepted as f64 / decided.max(1) as f64;
    match args.fail_under {
        Some(least) if share < least => {
            printer.warn(&format!(
                "{} of {decided} decided cases are accepted: fewer than the share {least}",
                tally.accepted
            ));
            Exit::NotAccepted
        }
        _ => Exit::Done,
    }
}

/// What a whole run will take.
pub(super) struct Planned {
    /// Where every reply can be read.
    pub(super) once: Plan,
    /// Where every reply has to be asked for once more.
    pub(super) again: Plan,
}

/// The plan of a whole run; only a glance at the judges when nothing depends on it.
fn plan(panel: &Panel, read: &Read, whole: bool) -> anyhow::Result<Planned> {
    let nothing = Plan { cost_usd: Some(0.0), ..Plan::default() };
    let mut planned = Planned { once: nothing, again: nothing };
    if !whole {
        return Ok(planned);
    }
    for case in read.cases()? {
        let case = case?;
        for seat in &panel.seats {
            let plan = seat.judge.plan(&case);
            planned.once.add(&plan, seat.samples);
            planned.again.add(&plan, seat.samples);
            planned.again.add(&seat.judge.plan_again(&case), seat.samples);
        }
    }
    Ok(planned)
}

/// Whether every output can be written, before anything is judged and paid for.
fn check_outputs(args: &RunArgs, global: &Global) -> anyhow::Result<()> {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    for (i, output) in args.output.iter().enumerate() {
        let name = output.display();
        if output.as_os_str() == "-" {
            anyhow::ensure!(
                !args.json,
                "`-o -` and `--json` both write to stdout: name a file for the rows"
            );
            continue;
        }
        anyhow::ensure!(
            !same(output, &global.store),
            "`-o {name}` would overwrite the store `{}`",
            global.store.display()
        );
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        anyhow::ensure!(
            !args.output[..i].iter().any(|other| absolute(other) == absolute(output)),
            "`-o {name}` is named twice"
        );
        export::check(output, &args.rows)?;
    }
    Ok(())
}

/// A panel as it is kept in the store: without what may be a secret.
pub(super) fn kept(spec: &PanelSpec) -> serde_json::Result<serde_json::Value> {
    let mut panel = serde_json::to_value(spec)?;
    crate::config::secret::hide(&mut panel);
    Ok(panel)
}

/// The judges whose calls have no price.
fn unpriced(panel: &Panel, read: &Read) -> anyhow::Result<String> {
    let Some(case) = read.cases()?.next().transpose()? else { return Ok(String::new()) };
    let names: Vec<String> = panel
        .seats
        .iter()
        .filter(|seat| {
            let plan = seat.judge.plan(&case);
            plan.calls > 0 && plan.cost_usd.is_none()
        })
        .map(|seat| format!("`{}`", seat.name))
        .collect();
    Ok(names.join(", "))
}

/// Rulings under two profiles can't stand in one run.
fn same_profile(run: &RunRecord, was: Option<&str>, is: Option<&str>) -> anyhow::Result<()> {
    let name = |hash: Option<&str>| match hash {
        Some(hash) => format!("profile {}", &hash[..hash.len().min(12)]),
        None => "no profile".to_owned(),
    };
    anyhow::ensure!(
        was == is,
        "run `{}` can't go on: it was begun under {}, and now there is {}; put the old one back, or start a new run (replies that are kept are not paid for again)",
        run.id,
        name(was),
        name(is)
    );
    Ok(())
}

/// The record of a run that is gone on with, if panel and data are still what they were.
fn same(run: RunRecord, panel: &Panel, scan: &Scan) -> anyhow::Result<RunRecord> {
    let changed = if run.panel_fingerprint != panel.fingerprint().as_str() {
        "its panel has changed since"
    } else if run.data_hash != scan.data_hash {
        "its data set has changed since"
    } else {
        return Ok(run);
    };
    anyhow::bail!(
        "run `{}` can't go on: {changed}; undo the change, or start a new run (replies that are kept are not paid for again)",
        run.id
    )
}

/// The file by which a process holds a run.
fn hold_of(store: &Path, run: &str) -> PathBuf {
    store.parent().unwrap_or(Path::new("")).join("locks").join(run)
}

/// Whether a process is judging a run.
pub(super) fn is_held(store: &Path, run: &str) -> bool {
    crate::hold::is_taken(&hold_of(store, run))
}

/// Keeps a second process off a run; released when dropped, or when the process dies.
fn lock(store: &Path, run: &RunRecord) -> anyhow::Result<File> {
    let path = hold_of(store, &run.id);
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("failed to make `{}`", folder.display()))?;
    match crate::hold::take(&path) {
        Ok(file) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            anyhow::bail!("run `{}` is being judged by another process", run.id)
        }
        Err(std::fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock `{}`", path.display()))
        }
    }
}

/// An id that sorts by time: `20260102-030405-1a2b3c4d`. Many may begin in one second, in one store
/// or none.
pub(super) fn new_id() -> String {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    format!("{now}-{:08x}", rand::random::<u32>())
}

/// A ledger with a limit in US dollars.
pub(super) fn ledger(cost_limit: Option<f64>) -> anyhow::Result<Ledger> {
    let micro_dollars = cost_limit.map(|usd| (usd * 1e6).floor() as u64);
    Ok(Ledger::new(LedgerLimits { micro_dollars, ..LedgerLimits::default() }))
}
