//! `venire loop --tasks`: one loop a row, several at a time, resumable.
//!
//! A run's id follows from its task and configuration, so that the same command goes on where
//! it was: finished loops are told again, cut-off ones gone on with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};

use super::Global;
use super::exit::Exit;
use super::loop_::Ready;
use super::printer::{Printer, plural};
use super::stop::Stop;
use super::targets::{Judged, Targets};
use crate::control::driver::{Notice, Options, Question, Watcher};
use crate::control::replay::{Reading, Replayed, metrics, read};
use crate::control::result::{ProfileOutcome, Report};
use crate::control::{Answer, Class, LoopSpec, Reason};
use crate::provider::Client;

/// What many loops share.
pub(super) struct Many<'a> {
    pub(super) spec: &'a LoopSpec,
    pub(super) base: &'a Path,
    pub(super) loops: PathBuf,
    pub(super) file: Option<PathBuf>,
    pub(super) jobs: usize,
    pub(super) json: bool,
    pub(super) targets: Targets,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    task: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    expected: Option<String>,
    #[serde(default)]
    context: Option<String>,
}

#[derive(Debug, Serialize)]
struct Ended {
    task: String,
    run: String,
    outcome: Class,
    reason: Reason,
    generations: u32,
    score: Option<f64>,
    cost_usd: Option<f64>,
    elapsed_seconds: f64,
    log: String,
    profile: Option<ProfileOutcome>,
}

#[derive(Debug, Serialize)]
struct Summary {
    #[serde(flatten)]
    figures: Judged,
    runs: Vec<Ended>,
}

/// Says nothing, and has nobody to ask.
struct Silent;

impl Watcher for Silent {
    fn notice(&mut self, _: &Notice<'_>) {}

    fn ask(&mut self, _: &Question<'_>) -> Option<Answer> {
        None
    }
}

impl Many<'_> {
    pub(super) async fn run(
        &self,
        file: &Path,
        global: &Global,
        printer: &Printer,
    ) -> anyhow::Result<Exit> {
        let client = Client::default();
        let mut equal: BTreeMap<String, u32> = BTreeMap::new();
        let setups: Vec<(String, String, Ready)> = rows(file)?
            .into_iter()
            .map(|(name, row)| {
                let mut spec = self.spec.clone();
                spec.expected = row.expected.or(spec.expected);
                spec.context = row.context.or(spec.context);
                let setup = Ready::new(&spec, Some(row.task), self.base, &client)
                    .with_context(|| format!("failed to set up the loop of task `{name}`"))?;
                // Rows with one task are loops of their own all the same.
                let hash = setup.config_hash().to_owned();
                let place = equal.entry(hash.clone()).or_default();
                *place += 1;
                let run = match place {
                    1 => format!("task-{hash}"),
                    place => format!("task-{hash}-{place}"),
                };
                Ok((name, run, setup))
            })
            .collect::<anyhow::Result<_>>()?;
        let Some((_, _, first)) = setups.first() else {
            printer.warn(&format!("`{}` has no tasks: nothing was done", file.display()));
            return Ok(Exit::Inconclusive);
        };
        for warning in &first.first().warnings {
            printer.warn(warning);
        }
        let replies = super::loop_::replies(first.with_models(), global)?;
        let policy = Arc::clone(&first.first().policy);
        let stop = Stop::listen(*printer, None);
        let each = setups.iter().map(|(name, run, setup)| {
            let (cancel, replies) = (stop.stop.clone(), Arc::clone(&replies));
            async move {
                let begun = self.loops.join(run).join("events.jsonl").is_file();
                let options = Options {
                    loops: self.loops.clone(),
                    resume: begun.then(|| run.clone()),
                    run: run.clone(),
                    file: self.file.clone(),
                    answer: None,
                    cancel,
                    replies,
                };
                let report = setup
                    .run(&options, &mut Silent)
                    .await
                    .with_context(|| format!("the loop of task `{name}` broke off"))?;
                printer.say(&format!(
                    "task {name}: {} ({}), {}",
                    report.outcome,
                    report.reason,
                    plural(u64::from(report.generations), "generation", "generations")
                ));
                anyhow::Ok((name.clone(), report))
            }
        });
        let reports: Vec<(String, Report)> =
            futures::stream::iter(each).buffered(self.jobs).try_collect().await?;
        stop.judged();
        self.summary(reports, &policy, printer)
    }

    fn summary(
        &self,
        reports: Vec<(String, Report)>,
        policy: &Arc<crate::control::Policy>,
        printer: &Printer,
    ) -> anyhow::Result<Exit> {
        let mut replayed = Vec::new();
        for (_, report) in &reports {
            // Of several starts no single log says how the whole went.
            if !report.starts.is_empty() {
                replayed.push(Replayed::of_report(report, policy));
                continue;
            }
            for trajectory in read(Path::new(&report.log), &Reading::default())?.trajectories {
                replayed.push(crate::control::replay::replay(&trajectory, policy));
            }
        }
        let figures = self.targets.judge(metrics(&replayed));
        let all = |class: &[Class]| reports.iter().all(|(_, r)| class.contains(&r.outcome));
        let any = |class: Class| reports.iter().any(|(_, r)| r.outcome == class);
        let exit = if any(Class::Interrupted) {
            Exit::Interrupted
        } else if any(Class::Waiting) {
            Exit::Waiting
        } else if all(&[Class::Undecided, Class::Failed]) {
            Exit::Inconclusive
        } else {
            self.targets.exit(&figures)
        };
        if !self.json {
            printer.result(&figures.text());
            return Ok(exit);
        }
        let runs = reports.into_iter().map(|(task, report)| Ended {
            task,
            run: report.run,
            outcome: report.outcome,
            reason: report.reason,
            generations: report.generations,
            score: report.best.and_then(|best| best.score).map(|score| score.get()),
            cost_usd: report.cost_usd,
            elapsed_seconds: report.elapsed_seconds,
            log: report.log,
            profile: report.profile,
        });
        printer.json(&Summary { figures, runs: runs.collect() })?;
        Ok(exit)
    }
}

/// The rows, each with its name: its `id`, else its place.
fn rows(file: &Path) -> anyhow::Result<Vec<(String, Row)>> {
    crate::inputs::note(file);
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("failed to read `{}`", file.display()))?;
    let mut rows: Vec<(String, Row)> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("`{}`, line {}", file.display(), i + 1);
        let row: Row = crate::config::from_json(line).with_context(|| {
            format!(
                "{}: expected an object with `task`, and `id`, `expected`, `context` where wanted",
                place()
            )
        })?;
        let name = row.id.clone().unwrap_or_else(|| (rows.len() + 1).to_string());
        if let Some(first) = lines.insert(name.clone(), i + 1) {
            anyhow::bail!(
                "{}: the id `{name}` stands in line {first} already: ids tell tasks apart (a row without one has its number)",
                place()
            );
        }
        rows.push((name, row));
    }
    Ok(rows)
}
