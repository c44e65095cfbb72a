//! Who is told how a loop goes, and asked where a person is wanted.

use crate::control::dispute::Dispute;
use crate::control::event::{About, Answer, Round};
use crate::ruling::Ruling;

/// What a watcher is told.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The run begins, or goes on.
    Began {
        /// The run.
        run: &'a str,
        /// Outputs that are there already.
        generations: u32,
    },
    /// Something to know.
    Warning(&'a str),
    /// The agent gave no output.
    AgentFailed {
        /// The number of the call.
        call: u32,
        /// What happened.
        detail: &'a str,
    },
    /// Something happened in one of several starts.
    Start {
        /// Which, from 1.
        start: u32,
        /// What.
        notice: &'a Notice<'a>,
    },
    /// An output was judged.
    Judged {
        /// Which.
        generation: u32,
        /// In which judgement of it.
        round: Round,
        /// The ruling.
        ruling: &'a Ruling,
        /// The score before, where there is one.
        before: Option<f64>,
        /// What is done next.
        next: &'a str,
    },
}

/// What a person is asked, with what they need to answer.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Why they are asked.
    pub about: About,
    /// Which of several starts asks, from 1; 0 for the only one.
    pub start: u32,
    /// The task.
    pub task: &'a str,
    /// The output in question.
    pub generation: u32,
    /// Its text.
    pub output: Option<&'a str>,
    /// The text of the best output before it, where it is another.
    pub before: Option<&'a str>,
    /// The newest ruling: votes and findings.
    pub ruling: Option<&'a Ruling>,
    /// What the agent disputes beside the output.
    pub disputes: &'a [Dispute],
}

/// Is told how a loop goes, and asks a person where there is one.
pub trait Watcher: Send {
    /// Something happened.
    fn notice(&mut self, notice: &Notice<'_>);

    /// A person's answer to a question; `None` where nobody is there. The text of
    /// [`Answer::Edit`] is the output itself here.
    fn ask(&mut self, question: &Question<'_>) -> Option<Answer>;

    /// The score that the person gave the output in question beside the last answer.
    fn label(&mut self) -> Option<f64> {
        None
    }
}
