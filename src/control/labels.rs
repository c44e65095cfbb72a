//! What people scored in loops: labels for the next calibration, with the verdicts that the
//! judges gave on the same outputs.
//!
//! Only looks. Outputs of one run belong together: a calibration has to keep them in one part.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::event::{Answer, Round};
use super::history::content_hash;
use super::kept::starts_of;
use super::log::{self, Entry, LogError};
use crate::verdict::Verdict;

/// An output that a person scored.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledOutput {
    /// The run and the number of the output.
    pub id: String,
    /// The run, of several starts the whole.
    pub run: String,
    /// What was asked.
    pub task: String,
    /// The output; `None` where its text is gone.
    pub output: Option<String>,
    /// The person's score, in [0,1]; of several the last.
    pub score: f64,
    /// The verdicts of the first judgement of it.
    pub verdicts: Vec<Verdict>,
}

/// Every output below `loops` that a person scored, the oldest run first. Damaged logs are
/// named beside them.
///
/// # Errors
/// When the folder is there and can't be read.
pub fn labelled(loops: &Path) -> std::io::Result<(Vec<LabelledOutput>, Vec<LogError>)> {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let folder = match std::fs::read_dir(loops) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((found, damaged)),
        Err(error) => return Err(error),
    };
    let mut runs: Vec<PathBuf> =
        folder.filter_map(|entry| Some(entry.ok()?.path().join("events.jsonl"))).collect();
    runs.retain(|log| log.is_file());
    runs.sort();
    for log in runs {
        let whole = name_of(&log);
        for own in starts_of(&log).into_iter().chain([log]) {
            match of_log(&own, &whole) {
                Ok(outputs) => found.extend(outputs),
                Err(error) => damaged.push(error),
            }
        }
    }
    Ok((found, damaged))
}

/// The name of the folder that a log lies in.
fn name_of(log: &Path) -> String {
    let folder = log.parent().and_then(Path::file_name).unwrap_or_default();
    folder.to_string_lossy().into_owned()
}

fn of_log(path: &Path, whole: &str) -> Result<Vec<LabelledOutput>, LogError> {
    let run = name_of(path);
    let mut task = String::new();
    let mut outputs: Vec<String> = Vec::new();
    let mut verdicts: BTreeMap<u32, Vec<Verdict>> = BTreeMap::new();
    let mut scores: BTreeMap<u32, f64> = BTreeMap::new();
    for line in log::read(path)? {
        match line.entry {
            Entry::Started { task: own, .. } => task = own,
            Entry::Generated { output: Some(hash), .. }
            | Entry::Answered { answer: Answer::Edit(hash), .. } => outputs.push(hash),
            // A retry replaces what failed before it.
            Entry::Ruled { generation, round: Round::First, ruling, .. } => {
                verdicts.insert(generation, ruling.verdicts);
            }
            Entry::Labelled { generation, score } => {
                scores.insert(generation, score);
            }
            _ => {}
        }
    }
    let text = |generation: u32| {
        let hash = outputs.get((generation as usize).checked_sub(1)?)?;
        let folder = path.parent()?.join("texts");
        let text = std::fs::read_to_string(folder.join(hash)).ok()?;
        (content_hash(&text) == *hash).then_some(text)
    };
    Ok(scores
        .into_iter()
        .map(|(generation, score)| LabelledOutput {
            id: format!("{run}/{generation}"),
            run: whole.to_owned(),
            task: task.clone(),
            output: text(generation),
            score,
            verdicts: verdicts.remove(&generation).unwrap_or_default(),
        })
        .collect())
}
