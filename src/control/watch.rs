//! A loop as it goes on, read from its log by somebody who looks and holds nothing.
//!
//! Nothing is judged or decided here: the view is what the log says, up to its last whole
//! line.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::event::{About, Answer, Round};
use super::log::{self, Entry, LogError};
use super::outcome::{Class, Reason};
use crate::ruling::Ruling;
use crate::verdict::Verdict;

/// What a run is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Nothing yet, or between two steps.
    #[default]
    Deciding,
    /// The agent makes an output.
    Generating,
    /// The panel judges one.
    Judging,
    /// A person is asked.
    Waiting,
    /// It has ended.
    Ended,
}

impl Doing {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deciding => "deciding",
            Self::Generating => "generating",
            Self::Judging => "judging",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
        }
    }
}

/// One output of a loop.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Generation {
    /// Its number, from 1.
    pub generation: u32,
    /// The output; `None` where its text is gone.
    pub output: Option<String>,
    /// Whether a person wrote it.
    pub by_person: bool,
    /// The newest ruling on it; `None` before it has one.
    pub ruling: Option<Ruling>,
    /// Rulings on it, confirmations included.
    pub rulings: u32,
    /// Verdicts of a judgement that goes on.
    pub verdicts: Vec<Verdict>,
    /// What was decided after it.
    pub next: Option<String>,
    /// A person's score for it.
    pub label: Option<f64>,
}

/// A loop as its log has it.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LoopView {
    /// The run.
    pub run: String,
    /// When it began, in UTC.
    pub started: String,
    /// What was asked.
    pub task: String,
    /// What it is at, or was at when its log was last written: whether its process lives is
    /// not known here.
    pub doing: Doing,
    /// Why a person is asked, while one is.
    pub about: Option<About>,
    /// Why it ended.
    pub reason: Option<Reason>,
    /// What that is worth.
    pub outcome: Option<Class>,
    /// Its outputs.
    pub generations: Vec<Generation>,
    /// Calls of the agent that gave no output.
    pub failed_calls: u32,
    /// Milliseconds since the start, pauses for a person not counted.
    pub elapsed_ms: u64,
    /// Tokens of all roles.
    pub tokens: u64,
    /// US dollars, of calls that have a price.
    pub cost_usd: f64,
    /// Events in the log.
    pub events: u64,
}

/// Reads a run below `loops`.
///
/// # Errors
/// When there is none, or its log is damaged.
pub fn watch(loops: &Path, run: &str) -> Result<LoopView, LogError> {
    let folder = super::review::above(loops, run).join(run);
    let path = folder.join("events.jsonl");
    // A name that leads elsewhere is no run.
    let is_name = Path::new(run).components().count() == 1 && !run.contains(['/', '\\']);
    if !is_name || run.starts_with('.') || !path.is_file() {
        return Err(LogError::Missing { run: run.to_owned(), folder: loops.to_owned() });
    }
    let mut view = LoopView::default();
    for line in log::read(&path)? {
        view.events += 1;
        view.elapsed_ms = line.elapsed_ms;
        view.tokens = line.spent.tokens;
        view.cost_usd = line.spent.micro_dollars as f64 / 1e6;
        view.take(line.entry, &|hash| log::text_in(&folder, run, hash).ok());
    }
    Ok(view)
}

impl LoopView {
    fn take(&mut self, entry: Entry, text: &dyn Fn(&str) -> Option<String>) {
        match entry {
            Entry::Started { run, time, task, .. } => {
                (self.run, self.started, self.task) = (run, time, task);
            }
            Entry::GenerateIntended { .. } => self.doing = Doing::Generating,
            Entry::Generated { output: Some(hash), .. } => {
                self.doing = Doing::Deciding;
                self.add(text(&hash), false);
            }
            Entry::Generated { .. } => {
                self.doing = Doing::Deciding;
                self.failed_calls += 1;
            }
            Entry::JudgeIntended { generation, .. } => {
                self.doing = Doing::Judging;
                if let Some(own) = self.generation(generation) {
                    own.verdicts.clear();
                }
            }
            Entry::Judged { generation, verdict } => {
                if let Some(own) = self.generation(generation) {
                    own.verdicts.push(*verdict);
                }
            }
            Entry::Ruled { generation, round, ruling, .. } => {
                self.doing = Doing::Deciding;
                if let Some(own) = self.generation(generation) {
                    own.verdicts.clear();
                    own.rulings += 1;
                    // A confirmation that decided nothing does not hide what was decided.
                    if round == Round::First || ruling.score.is_some() {
                        own.ruling = Some(*ruling);
                    }
                }
            }
            // Of the log over several starts; each start has a log of its own.
            Entry::Dropped { .. } | Entry::Final { .. } => {}
            Entry::Decided { generation, decision } => {
                if let Some(own) = self.generation(generation) {
                    own.next = Some(decision);
                }
            }
            Entry::Asked { about, .. } => {
                self.doing = Doing::Waiting;
                self.about = Some(about);
            }
            Entry::Answered { answer, .. } => {
                self.doing = Doing::Deciding;
                self.about = None;
                if let Answer::Edit(hash) = answer {
                    self.add(text(&hash), true);
                }
            }
            Entry::Labelled { generation, score } => {
                if let Some(own) = self.generation(generation) {
                    own.label = Some(score);
                }
            }
            Entry::Finished { outcome } => {
                self.doing = Doing::Ended;
                self.about = None;
                self.outcome = Some(outcome.class());
                self.reason = Some(outcome.reason);
            }
        }
    }

    fn add(&mut self, output: Option<String>, by_person: bool) {
        let generation = self.generations.len() as u32 + 1;
        self.generations.push(Generation {
            generation,
            output,
            by_person,
            ..Generation::default()
        });
    }

    fn generation(&mut self, generation: u32) -> Option<&mut Generation> {
        self.generations.get_mut((generation as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Log;
    use super::*;

    #[test]
    fn a_name_that_leads_elsewhere_is_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let loops = folder.path().join("loops");
        drop(Log::create(&loops, "one").unwrap());
        drop(Log::create(folder.path(), "outside").unwrap());
        assert_eq!(watch(&loops, "one").unwrap().events, 0);
        for other in ["../outside", "", ".", "..", "one/", "none", "/etc"] {
            assert!(matches!(watch(&loops, other), Err(LogError::Missing { .. })), "{other}");
        }
    }
}
