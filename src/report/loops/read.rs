//! A loop as its event log tells it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::words::reason as words;
use crate::control::Outcome;
use crate::control::log::{self, Entry, LogError};
use crate::control::{AgentFault, Answer, Round};
use crate::report::ReportError;
use crate::ruling::Ruling;

/// Why no page can be made of a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopReadError {
    /// It can't be read, or is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It is no log of a loop.
    #[error("`{path}` is no event log of a loop: expected the `events.jsonl` of a run")]
    NoLog {
        /// The file.
        path: PathBuf,
    },
    /// The page can't be written.
    #[error(transparent)]
    Page(ReportError),
}

/// One limit of a budget.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Budget {
    /// Which.
    pub(super) name: &'static str,
    /// What was used.
    pub(super) used: f64,
    /// What was allowed; `None` without a limit.
    pub(super) limit: Option<f64>,
    /// Its unit.
    pub(super) unit: &'static str,
}

/// One output, or a call that gave none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Output {
    pub(super) generation: u32,
    /// The text, where it is kept beside the log.
    pub(super) text: Option<String>,
    pub(super) hash: Option<String>,
    /// The generation that it was made from.
    pub(super) base: Option<u32>,
    /// Why there is none.
    pub(super) fault: Option<String>,
    /// The newest ruling of the first judgement.
    pub(super) ruling: Option<Box<Ruling>>,
    /// Scores of confirmations; `None` where one had no quorum.
    pub(super) confirmations: Vec<Option<f64>>,
    /// What the controller did next.
    pub(super) next: Vec<String>,
    /// What people said.
    pub(super) people: Vec<String>,
    pub(super) change: Option<f64>,
    pub(super) elapsed_ms: u64,
    pub(super) tokens: u64,
    pub(super) micro_dollars: u64,
}

impl Output {
    pub(super) fn score(&self) -> Option<f64> {
        Some(self.ruling.as_ref()?.score?.get())
    }

    /// Why the panel ruled so, in words.
    pub(super) fn reason(&self) -> Option<String> {
        self.ruling.as_ref().map(|own| words(own))
    }
}

/// A recorded loop.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recorded {
    pub(super) run: String,
    pub(super) name: Option<String>,
    pub(super) started: String,
    pub(super) task: String,
    pub(super) outputs: Vec<Output>,
    /// `None` where the log ends before the loop did.
    pub(super) outcome: Option<Outcome>,
    pub(super) budgets: Vec<Budget>,
    pub(super) threshold: Option<f64>,
}

impl Recorded {
    pub(super) fn best(&self) -> Option<&Output> {
        let best = self.outcome.as_ref()?.best?;
        self.outputs.iter().find(|own| own.generation == best)
    }

    /// The output of a generation.
    pub(super) fn output(&self, generation: u32) -> Option<&Output> {
        self.outputs.iter().rfind(|own| own.generation == generation && own.text.is_some())
    }
}

/// Reads a log.
pub(super) fn of_log(path: &Path) -> Result<Recorded, LoopReadError> {
    let lines = log::read(path)?;
    let mut lines = lines.into_iter();
    let Some(Entry::Started { run, time, task, config, limits, .. }) =
        lines.next().map(|own| own.entry)
    else {
        return Err(LoopReadError::NoLog { path: path.to_owned() });
    };
    let mut outputs: Vec<Output> = Vec::new();
    let (mut generation, mut base, mut outcome) = (0, None, None);
    let (mut elapsed_ms, mut tokens, mut micro_dollars, mut evaluations) = (0, 0, 0, 0_u64);
    for line in lines {
        elapsed_ms = line.elapsed_ms;
        (tokens, micro_dollars) = (line.spent.tokens, line.spent.micro_dollars);
        match line.entry {
            Entry::GenerateIntended { directive, .. } => {
                (generation, base) = (directive.generation, directive.base_generation);
            }
            Entry::Generated { output, change, fault, refused, detail, .. } => {
                let text = output.as_ref().and_then(|hash| kept(path, hash));
                let fault = match (&output, fault, refused) {
                    (Some(_), _, _) => None,
                    (None, _, Some(budget)) => Some(format!("not called: {}", budget.reason())),
                    (None, _, None) => {
                        let named = fault.map_or("none", |own| match own {
                            AgentFault::Failed => "the agent failed",
                            AgentFault::Empty => "the agent gave nothing",
                        });
                        Some(detail.map_or(named.to_owned(), |own| format!("{named}: {own}")))
                    }
                };
                outputs.push(Output {
                    generation,
                    text,
                    hash: output,
                    base,
                    fault,
                    change,
                    ..Output::default()
                });
            }
            Entry::Ruled { round, ruling, .. } => {
                evaluations += 1;
                if let Some(own) = outputs.last_mut() {
                    match round {
                        Round::First => own.ruling = Some(ruling),
                        // What other judges said of one finding, not of the output.
                        Round::Dispute => {}
                        Round::Confirm(_) => {
                            own.confirmations.push(ruling.score.map(crate::score::Score::get));
                        }
                    }
                }
            }
            Entry::Decided { decision, .. } => {
                if let Some(own) = outputs.last_mut().filter(|_| decision != "judge") {
                    own.next.push(decision);
                }
            }
            Entry::Answered { answer, by_deadline } => {
                if let Some(own) = outputs.last_mut() {
                    own.people.push(answered(&answer, by_deadline));
                }
            }
            Entry::Labelled { score, .. } => {
                if let Some(own) = outputs.last_mut() {
                    own.people.push(format!("a person scores it {score:.2}"));
                }
            }
            Entry::Finished { outcome: own } => outcome = Some(own),
            Entry::Started { .. }
            | Entry::JudgeIntended { .. }
            | Entry::Judged { .. }
            | Entry::Asked { .. }
            // Of the log of several starts, each of which has a log and a page of its own.
            | Entry::Dropped { .. }
            | Entry::Final { .. } => {}
        }
        if let Some(own) = outputs.last_mut() {
            (own.elapsed_ms, own.tokens, own.micro_dollars) = (elapsed_ms, tokens, micro_dollars);
        }
    }
    let limit = |name: &str| match &limits {
        Some(own) => match name {
            "max_generations" => Some(f64::from(own.max_generations)),
            "seconds" => Some(own.elapsed_ms as f64 / 1000.0),
            "tokens" => own.tokens.map(|own| own as f64),
            "usd" => own.micro_dollars.map(|own| own as f64 / 1e6),
            _ => own.evaluations.map(|own| own as f64),
        },
        // Of logs that do not say, what the file says.
        None => config.pointer(&format!("/budget/{name}")).and_then(Value::as_f64),
    };
    let made = outputs.iter().filter(|own| own.hash.is_some()).count();
    let budgets = vec![
        Budget {
            name: "generations",
            used: made as f64,
            limit: limit("max_generations"),
            unit: "",
        },
        Budget {
            name: "judgements",
            used: evaluations as f64,
            limit: limit("evaluations"),
            unit: "",
        },
        Budget {
            name: "time",
            used: elapsed_ms as f64 / 1000.0,
            limit: limit("seconds"),
            unit: " s",
        },
        Budget { name: "tokens", used: tokens as f64, limit: limit("tokens"), unit: "" },
        Budget { name: "money", used: micro_dollars as f64 / 1e6, limit: limit("usd"), unit: "" },
    ];
    let threshold = outputs.iter().rev().find_map(|own| Some(own.ruling.as_ref()?.threshold));
    Ok(Recorded {
        run,
        name: config.get("name").and_then(Value::as_str).map(str::to_owned),
        started: time,
        task,
        outputs,
        outcome,
        budgets,
        threshold,
    })
}

/// A text that is kept beside the log under its hash; nothing else is read.
fn kept(log: &Path, hash: &str) -> Option<String> {
    let plain = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !plain {
        return None;
    }
    let bytes = std::fs::read(log.with_file_name("texts").join(hash)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn answered(answer: &Answer, by_deadline: bool) -> String {
    let who = if by_deadline { "nobody answered in time" } else { "a person" };
    let says = match answer {
        Answer::Accept => "accepts".to_owned(),
        Answer::Reject => "rejects".to_owned(),
        Answer::RejectWith(words) => format!("rejects: {words}"),
        Answer::Edit(_) => "gives an output instead".to_owned(),
        Answer::Continue(words) if words.is_empty() => "lets it go on".to_owned(),
        Answer::Continue(words) => format!("lets it go on: {words}"),
    };
    if by_deadline { format!("{who}, by default: {says}") } else { format!("{who} {says}") }
}
