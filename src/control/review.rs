//! Questions that runs wait on, read from their logs, and the answers written there.
//!
//! An answer is an event like any other: the run takes it up when it is gone on with. Nothing
//! is answered that is not asked, and nothing twice.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::dispute::Dispute;
use super::driver::Question;
use super::event::{About, Answer, Round};
use super::log::{self, Entry, Line, Log, LogError};
use super::outcome::Reason;
use crate::ruling::Ruling;

/// A question that a run waits on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pending {
    /// The run; of several starts the one that asks.
    pub run: String,
    /// The run of several starts that it is one of: the one to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Why a person is asked.
    pub about: About,
    /// When, in UTC; `None` in logs that do not say.
    pub asked: Option<String>,
    /// The task.
    pub task: String,
    /// The output in question; 0 when there is none.
    pub generation: u32,
    /// Its text.
    pub output: Option<String>,
    /// The number of the best other output, and its text.
    pub before: Option<(u32, String)>,
    /// The newest ruling on it: votes and findings.
    pub ruling: Option<Ruling>,
    /// What the agent disputes beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disputes: Vec<Dispute>,
}

impl Pending {
    /// The run that is gone on with once this is answered.
    #[must_use]
    pub fn resumes(&self) -> &str {
        self.part_of.as_deref().unwrap_or(&self.run)
    }

    /// The question as a person is asked it.
    #[must_use]
    pub fn question(&self) -> Question<'_> {
        let start = self.run.rsplit_once(log::START).filter(|_| self.part_of.is_some());
        Question {
            about: self.about,
            start: start.and_then(|(_, number)| number.parse().ok()).unwrap_or(0),
            task: &self.task,
            generation: self.generation,
            output: self.output.as_deref(),
            before: self.before.as_ref().map(|(_, text)| text.as_str()),
            ruling: self.ruling.as_ref(),
            disputes: &self.disputes,
        }
    }

    /// What differs between the best other output and the one in question, as a unified diff;
    /// `None` without either.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let (_, before) = self.before.as_ref()?;
        Some(difference(before, self.output.as_deref()?))
    }
}

/// What differs between the best other output and the one in question, as a unified diff.
#[must_use]
pub fn difference(before: &str, output: &str) -> String {
    similar::TextDiff::from_lines(before, output)
        .unified_diff()
        .context_radius(2)
        .header("best other output", "output in question")
        .to_string()
}

/// Why a question can't be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// The log refused.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The run waits for nobody.
    #[error("run `{run}` asks nothing that could be answered")]
    NothingAsked {
        /// The run.
        run: String,
    },
    /// An edit that can't be judged.
    #[error("run `{run}`: {reason}")]
    Edit {
        /// The run.
        run: String,
        /// Why.
        reason: &'static str,
    },
}

/// Every question that the runs below `loops` wait on, oldest run first. Damaged logs are
/// named beside them.
///
/// # Errors
/// When the folder is there and can't be read.
pub fn pending(loops: &Path) -> std::io::Result<(Vec<Pending>, Vec<LogError>)> {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let folder = match std::fs::read_dir(loops) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((found, damaged)),
        Err(error) => return Err(error),
    };
    let mut runs: Vec<String> =
        folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    runs.sort();
    for run in runs {
        let path = loops.join(&run).join("events.jsonl");
        if !path.is_file() {
            continue;
        }
        let lines = match log::read(&path) {
            Ok(lines) => lines,
            Err(error) => {
                damaged.push(error);
                continue;
            }
        };
        let starts = log::starts_of(&path);
        // A run that has ended asks nothing, whatever its starts were at.
        let ended = lines.iter().rev().find_map(|line| match &line.entry {
            Entry::Finished { outcome } => Some(outcome.reason != Reason::Cancelled),
            _ => None,
        });
        if starts.is_empty() {
            match question(&run, &loops.join(&run), &lines) {
                Ok(question) => found.extend(question),
                Err(error) => damaged.push(error),
            }
        } else if ended != Some(true) {
            for start in starts {
                match of_start(&run, &start) {
                    Ok(question) => found.extend(question),
                    Err(error) => damaged.push(error),
                }
            }
        }
    }
    Ok((found, damaged))
}

/// The question that one of several starts waits on, from its log.
pub(super) fn of_start(run: &str, path: &Path) -> Result<Option<Pending>, LogError> {
    let lines = log::read(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let asked = question(&name, folder, &lines)?;
    Ok(asked.map(|own| Pending { part_of: Some(run.to_owned()), ..own }))
}

/// The folder that holds the folder of a run: that of its run for one of several starts.
pub(super) fn above(loops: &Path, run: &str) -> PathBuf {
    let of = run.rsplit_once(log::START).map(|(of, _)| loops.join(of));
    match of {
        Some(of) if of.join(run).is_dir() => of,
        _ => loops.to_owned(),
    }
}

/// The question that these lines end with.
fn question(run: &str, folder: &Path, lines: &[Line]) -> Result<Option<Pending>, LogError> {
    let mut task = String::new();
    let mut outputs: Vec<String> = Vec::new();
    let mut disputes: Vec<Dispute> = Vec::new();
    let mut rulings: Vec<(u32, &Ruling)> = Vec::new();
    let mut open: Option<(u32, About, Option<String>)> = None;
    for line in lines {
        match &line.entry {
            Entry::Started { task: own, .. } => task.clone_from(own),
            Entry::Generated { output: Some(hash), disputes: own, .. } => {
                outputs.push(hash.clone());
                disputes.clone_from(own);
            }
            Entry::Ruled { round: Round::Dispute, .. } => {}
            Entry::Ruled { generation, ruling, .. } => rulings.push((*generation, ruling)),
            Entry::Asked { generation, about, time } => {
                open = Some((*generation, *about, time.clone()));
            }
            Entry::Answered { answer, .. } => {
                open = None;
                if let Answer::Edit(hash) = answer {
                    outputs.push(hash.clone());
                }
            }
            Entry::Finished { .. } => open = None,
            _ => {}
        }
    }
    let Some((generation, about, asked)) = open else { return Ok(None) };
    let text = |generation: u32| {
        let place = (generation as usize).checked_sub(1);
        place.and_then(|place| outputs.get(place)).map(|hash| log::text_in(folder, run, hash))
    };
    let others =
        rulings.iter().filter(|(own, ruling)| *own != generation && ruling.score.is_some());
    let best = others.fold(None, |best: Option<&(u32, &Ruling)>, own| match best {
        Some(best) if best.1.score >= own.1.score => Some(best),
        _ => Some(own),
    });
    let before = match best {
        Some((own, _)) => text(*own).transpose()?.map(|text| (*own, text)),
        None => None,
    };
    Ok(Some(Pending {
        run: run.to_owned(),
        part_of: None,
        about,
        asked,
        task,
        generation,
        output: text(generation).transpose()?,
        before,
        ruling: rulings.iter().rev().find(|(own, _)| *own == generation).map(|(_, r)| (*r).clone()),
        disputes,
    }))
}

/// Writes what a person said into a run's log: a score of the output in question (a label),
/// an answer, or both. The text of [`Answer::Edit`] is the output itself.
///
/// # Errors
/// When the run asks nothing, is held by a process, or an edit can't be judged.
pub fn answer(
    loops: &Path,
    run: &str,
    label: Option<f64>,
    answer: Option<Answer>,
) -> Result<Pending, ReviewError> {
    let loops = above(loops, run);
    let (mut log, lines, _) = Log::open(&loops, run)?;
    let run = log.run().to_owned();
    let folder = loops.join(&run);
    let Some(pending) = question(&run, &folder, &lines)? else {
        return Err(ReviewError::NothingAsked { run });
    };
    let (elapsed_ms, spent) =
        lines.last().map_or_else(Default::default, |line| (line.elapsed_ms, line.spent));
    let answer = match answer {
        Some(Answer::Edit(text)) => {
            let patches = lines
                .iter()
                .any(|line| matches!(&line.entry, Entry::Generated { snapshot: Some(_), .. }));
            if patches {
                let reason = "it works on a folder: its output can't be edited as a text";
                return Err(ReviewError::Edit { run, reason });
            }
            if text.trim().is_empty() {
                return Err(ReviewError::Edit { run, reason: "the edited output is empty" });
            }
            Some(Answer::Edit(log.keep(&text)?))
        }
        other => other,
    };
    if let Some(score) = label {
        let entry = Entry::Labelled { generation: pending.generation, score };
        log.append(elapsed_ms, spent, entry)?;
    }
    if let Some(answer) = answer {
        log.append(elapsed_ms, spent, Entry::Answered { answer, by_deadline: false })?;
    }
    Ok(pending)
}
