//! People and several starts: a start that asks waits, and the others go on; what a person is
//! asked comes when none is at work, so that nobody's calls time out meanwhile.
//!
//! A question that nobody answers is left to `venire review`, by the name of its start.

use std::collections::BTreeMap;

use super::{Group, LoopError};
use crate::control::driver::Driven;
use crate::control::event::Answer;
use crate::control::outcome::Reason;
use crate::control::review::{self, Pending};

/// Whether a start waits for a person.
pub(super) fn waits(driven: &Driven) -> bool {
    !driven.paused && driven.report.reason == Reason::AwaitingHuman
}

/// Whether a person has accepted a start's output: nobody overrules that.
pub(super) fn is_accepted_by_person(driven: &Driven) -> bool {
    !driven.paused && driven.report.reason == Reason::HumanAccepted
}

impl Group<'_, '_> {
    /// The questions of starts whose logs are there.
    fn questions(&self, starts: &[u32]) -> Result<Vec<(u32, Pending)>, LoopError> {
        let mut asked = Vec::new();
        for start in starts {
            let path = self.folder.join(self.name(*start)).join("events.jsonl");
            if path.is_file()
                && let Some(question) = review::of_start(&self.run, &path)?
            {
                asked.push((*start, question));
            }
        }
        Ok(asked)
    }

    /// Takes the answer that was given with the command, for the one start that asks.
    ///
    /// # Errors
    /// When none asks, or several do.
    pub(super) fn take_answer(&mut self) -> Result<(), LoopError> {
        let Some(answer) = self.options.answer.clone().filter(|_| self.options.resume.is_some())
        else {
            return Ok(());
        };
        if self.told_end {
            return Err(LoopError::NothingAsked { run: self.run.clone() });
        }
        let all: Vec<u32> = (1..=self.starts.setups.len() as u32).collect();
        let mut asked = self.questions(&all)?;
        match (asked.pop(), asked.is_empty()) {
            (None, _) => Err(LoopError::NothingAsked { run: self.run.clone() }),
            (Some((_, question)), true) => self.write_answer(&question, None, Some(answer)),
            (Some((_, last)), false) => {
                asked.push((0, last));
                let starts = asked.into_iter().map(|(_, question)| question.run).collect();
                Err(LoopError::SeveralAsk { run: self.run.clone(), starts })
            }
        }
    }

    /// Asks whoever is there about each start that waits; the starts that got an answer.
    pub(super) fn ask(&mut self, known: &BTreeMap<u32, Driven>) -> Result<Vec<u32>, LoopError> {
        let waiting: Vec<u32> =
            known.iter().filter(|(_, own)| waits(own)).map(|(start, _)| *start).collect();
        let mut answered = Vec::new();
        for (start, question) in self.questions(&waiting)? {
            let began = tokio::time::Instant::now();
            let (answer, label) = {
                let mut watcher =
                    self.watcher.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                (watcher.ask(&question.question()), watcher.label())
            };
            // The time of a person is not the run's.
            self.paused += began.elapsed();
            let given = answer.is_some();
            if given || label.is_some() {
                self.write_answer(&question, label, answer)?;
            }
            if given {
                answered.push(start);
            }
        }
        Ok(answered)
    }

    fn write_answer(
        &self,
        question: &Pending,
        label: Option<f64>,
        answer: Option<Answer>,
    ) -> Result<(), LoopError> {
        review::answer(&self.folder, &question.run, label, answer)?;
        Ok(())
    }
}
