//! Asks a person, and waits for one: nothing stands in for an answer but what the file declares.

use super::{Driven, Driver, LoopError, Question};
use crate::control::event::{About, Answer, Command, What};
use crate::control::history::Output;
use crate::control::log::Entry;
use crate::control::outcome::{Outcome, Reason};
use crate::control::policy::StandIn;

impl Driver<'_> {
    pub(super) fn ask(
        &mut self,
        generation: u32,
        about: About,
    ) -> Result<Option<Command>, LoopError> {
        let stands_in = self.stands_in();
        let by_deadline = self.answer.is_none() && stands_in.is_some();
        let answer = match self.answer.take().or(stands_in) {
            Some(answer) => Some(answer),
            None => {
                if self.asked.is_none() {
                    let time = Some(jiff::Timestamp::now().to_string());
                    self.journal.append(Entry::Asked { generation, about, time: time.clone() })?;
                    self.asked = time;
                }
                let output = self.version(generation)?.map(|version| version.output);
                let before = self.before(generation)?;
                let question = Question {
                    about,
                    start: self.part.start,
                    task: &self.setup.task,
                    generation,
                    output: output.as_deref(),
                    before: before.as_deref(),
                    ruling: self.ruling.as_ref(),
                    disputes: &self.disputes,
                };
                // The time of a person is not the run's.
                let paused = self.journal.pause();
                let answer = self.watcher.ask(&question);
                drop(paused);
                if let Some(score) = self.watcher.label() {
                    self.journal.append(Entry::Labelled { generation, score })?;
                }
                answer
            }
        };
        let Some(answer) = answer else { return Ok(None) };
        self.asked = None;
        match answer {
            Answer::Edit(text) => {
                if self.snapshots.contains_key(&generation) {
                    return Err(LoopError::NoEdit { run: self.run.clone() });
                }
                let output = Output::of(&text);
                if output.empty {
                    return Err(LoopError::EmptyEdit { run: self.run.clone() });
                }
                let hash = self.journal.log().keep(&text)?;
                let entry = Entry::Answered { answer: Answer::Edit(hash), by_deadline };
                self.write(entry, What::Edited(output))
            }
            answer => {
                let entry = Entry::Answered { answer: answer.clone(), by_deadline };
                self.write(entry, What::Answered(answer))
            }
        }
    }

    /// What the file declares in place of an answer that did not come in time.
    fn stands_in(&self) -> Option<Answer> {
        let human = &self.setup.human;
        let (deadline, stand_in) = (human.deadline?, human.on_deadline?);
        let asked: jiff::Timestamp = self.asked.as_ref()?.parse().ok()?;
        let waited = jiff::Timestamp::now().duration_since(asked);
        let over = std::time::Duration::try_from(waited).is_ok_and(|own| own >= deadline.get());
        over.then(|| match stand_in {
            StandIn::Accept => Answer::Accept,
            StandIn::Reject => Answer::Reject,
            StandIn::Continue => Answer::Continue(String::new()),
        })
    }

    /// The best output other than the one in question.
    fn before(&self, generation: u32) -> Result<Option<String>, LoopError> {
        let others = self.state.records().iter().filter(|record| record.generation != generation);
        let best = others
            .filter_map(|r| Some((r.score?, r.generation)))
            .reduce(|best, own| if own.0 > best.0 { own } else { best });
        match best {
            Some((_, generation)) => Ok(self.version(generation)?.map(|version| version.output)),
            None => Ok(None),
        }
    }

    /// Ends this process's part of the run; the run itself goes on with an answer.
    pub(super) fn wait(mut self, why: &str) -> Result<Driven, LoopError> {
        self.warn(why);
        let best = self.state.best().map(|record| record.generation);
        let outcome = Outcome { reason: Reason::AwaitingHuman, also_fired: Vec::new(), best };
        let took = self.journal.elapsed_ms();
        Ok(Driven { report: self.report(&outcome, took)?, paused: false })
    }
}
