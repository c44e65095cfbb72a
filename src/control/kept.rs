//! Which runs of loops there are, how each began and how it ended, read from their logs.
//!
//! Only looks: nothing is held, written or mended, and a log that can't be read is left out.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::event::Answer;
use super::log::{Entry, Line, RESUMED, read};
use super::outcome::Reason;

/// The name of a log in the folder of its run.
const EVENTS: &str = "events.jsonl";

/// What stands between the name of a run and the number of one of its starts.
pub(super) const START: &str = "-start-";

/// Ids begin with their time, so the newest is the last by name.
pub(super) fn newest(loops: &Path) -> Option<String> {
    std::fs::read_dir(loops)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        // Those of `--tasks` are gone on with by giving the tasks again, each by its own name.
        .filter(|name| !name.starts_with("task-"))
        .filter(|name| loops.join(name).join(EVENTS).is_file())
        .max()
}

/// How a run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// What was asked.
    pub task: String,
    /// The loop's file, where the log says it.
    pub file: Option<PathBuf>,
}

/// How a run began; `latest` names the newest run. `None` where there is no such run, or its
/// log does not begin as one.
#[must_use]
pub fn beginning_of(loops: &Path, run: &str) -> Option<Beginning> {
    let run = if run == "latest" { newest(loops)? } else { run.to_owned() };
    let first = read(&loops.join(run).join(EVENTS)).ok()?.into_iter().next()?;
    match first.entry {
        Entry::Started { task, file, .. } => Some(Beginning { task, file }),
        _ => None,
    }
}

/// The logs of the starts of a run, in their order, from the run's own log or its folder; none
/// for a run that began once.
#[must_use]
pub fn starts_of(log: &Path) -> Vec<PathBuf> {
    let folder = if log.is_dir() { Some(log) } else { log.parent() };
    let folder = folder.map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
    let Some(Ok(entries)) = folder.map(std::fs::read_dir) else { return Vec::new() };
    let mut starts: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let number = name.rsplit_once(START)?.1.parse().ok()?;
            let log = entry.path().join(EVENTS);
            log.is_file().then_some((number, log))
        })
        .collect();
    starts.sort();
    starts.into_iter().map(|(_, log)| log).collect()
}

/// The runs that are kept in a folder, those of `--tasks` included, the newest first by the
/// time they began; nothing where the folder is not there. A log that can't be read is left
/// out.
#[must_use]
pub fn kept(loops: &Path) -> Vec<Kept> {
    let Ok(folders) = std::fs::read_dir(loops) else { return Vec::new() };
    let mut kept: Vec<Kept> =
        folders.filter_map(|folder| Kept::of(&folder.ok()?.path().join(EVENTS))).collect();
    kept.sort_by(|a, b| (&b.time, &b.run).cmp(&(&a.time, &a.run)));
    kept
}

/// A run of a loop that is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// The run.
    pub run: String,
    /// When it began, in UTC.
    pub time: String,
    /// What was asked.
    pub task: String,
    /// Outputs made, by all starts together.
    pub generations: u64,
    /// Starts; 0 for a run that began once.
    #[serde(skip_serializing_if = "is_zero")]
    pub starts: usize,
    /// How it ended, if it has.
    #[serde(rename = "state")]
    pub end: RunEnd,
    /// Its log.
    #[serde(rename = "log")]
    pub path: PathBuf,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Kept {
    fn of(path: &Path) -> Option<Self> {
        let lines = read(path).ok()?;
        let Entry::Started { run, time, task, .. } = lines.first()?.entry.clone() else {
            return None;
        };
        let starts: Vec<Vec<Line>> =
            starts_of(path).iter().filter_map(|log| read(log).ok()).collect();
        let ends = || starts.iter().map(|lines| last_word(lines));
        let end = match last_word(&lines) {
            RunEnd::Ended(reason) if reason != Reason::AwaitingHuman => RunEnd::Ended(reason),
            _ if crate::hold::is_taken(&path.with_file_name("lock")) => RunEnd::Running,
            _ if ends().any(|end| end == RunEnd::Ended(Reason::AwaitingHuman)) => {
                RunEnd::Ended(Reason::AwaitingHuman)
            }
            last => last,
        };
        let made = outputs(&lines) + starts.iter().map(|lines| outputs(lines)).sum::<u64>();
        let starts = starts.len();
        Some(Self { run, time, task, generations: made, starts, end, path: path.to_owned() })
    }
}

/// Outputs made, those that a person wrote included.
fn outputs(lines: &[Line]) -> u64 {
    let made = lines.iter().filter(|line| {
        matches!(
            line.entry,
            Entry::Generated { output: Some(_), .. }
                | Entry::Answered { answer: Answer::Edit(_), .. }
        )
    });
    made.count() as u64
}

/// What a log says last of the run's end.
fn last_word(lines: &[Line]) -> RunEnd {
    let last = lines.iter().rev().find_map(|line| match &line.entry {
        Entry::Finished { outcome } => Some(RunEnd::Ended(outcome.reason)),
        Entry::Asked { .. } => Some(RunEnd::Ended(Reason::AwaitingHuman)),
        Entry::Decided { decision, .. } if decision == RESUMED => Some(RunEnd::Interrupted),
        Entry::Decided { .. } | Entry::Labelled { .. } => None,
        _ => Some(RunEnd::Interrupted),
    });
    last.unwrap_or(RunEnd::Interrupted)
}

/// How a run ended, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// A process holds it.
    Running,
    /// No process holds it, and it has no end: it was killed, or the machine went down.
    Interrupted,
    /// For this reason; `awaiting_human` where it waits for an answer.
    Ended(Reason),
}

impl RunEnd {
    /// Why it ended; `None` while it has not.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        match self {
            Self::Running | Self::Interrupted => None,
            Self::Ended(reason) => Some(reason),
        }
    }

    /// The name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Ended(reason) => reason.name(),
        }
    }
}

impl Serialize for RunEnd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
