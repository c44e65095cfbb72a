//! Takes up a run from its log, and keeps the books of what happened.

use std::collections::BTreeMap;

use super::judge::no_room;
use super::{Driver, LoopError, Notice, TOLD};
use crate::control::event::{AgentFault, Answer, Budget, Command, Directive, Event, Round, What};
use crate::control::history::Output;
use crate::control::judgement::Judgement;
use crate::control::log::{Entry, Line, RESUMED};
use crate::control::outcome::Reason;
use crate::ruling::Ruling;
use crate::verdict::Usage;

impl Driver<'_> {
    /// Takes up a run from its log: everything that happened goes through the controller
    /// again, nothing is done again.
    pub(super) async fn fold(&mut self, lines: Vec<Line>) -> Result<Option<Command>, LoopError> {
        let mut command = None;
        let mut intended: Option<Directive> = None;
        let mut first = true;
        for line in lines {
            let event = |what| Event { elapsed_ms: line.elapsed_ms, spent: line.spent, what };
            if first != matches!(line.entry, Entry::Started { .. }) {
                return Err(LoopError::NoBeginning { run: self.run.clone() });
            }
            first = false;
            if !matches!(line.entry, Entry::Decided { .. }) {
                self.in_doubt = false;
            }
            match line.entry {
                Entry::Started { config_hash, snapshot, .. } => {
                    if config_hash != self.setup.config_hash {
                        return Err(LoopError::Changed { run: self.run.clone() });
                    }
                    self.setup.agent.begin(snapshot.as_deref()).await?;
                    command = self.step(event(What::Begun));
                }
                Entry::GenerateIntended { directive, .. } => {
                    intended = Some(directive);
                    self.in_doubt = true;
                }
                Entry::Generated {
                    output,
                    snapshot,
                    change,
                    disputes,
                    fault,
                    refused,
                    usage,
                    micro_dollars,
                    detail,
                    ..
                } => {
                    if refused.is_some() {
                        self.warnings.extend(detail);
                    }
                    self.count("agent", &usage, micro_dollars.map(|micro| micro as f64 / 1e6));
                    let what = match (output, refused, fault) {
                        (Some(hash), _, _) => {
                            self.tell(intended.as_ref());
                            self.remember(snapshot);
                            let text = self.journal.log().text(&hash)?;
                            let output = Output { change, ..Output::of(&text) };
                            What::Generated(self.disputing(disputes, output))
                        }
                        (None, Some(budget), _) => What::Refused(budget),
                        (None, None, fault) => {
                            What::AgentFailed(fault.unwrap_or(AgentFault::Failed))
                        }
                    };
                    command = self.step(event(what));
                }
                Entry::JudgeIntended { .. } => self.known.clear(),
                Entry::Judged { verdict, .. } => self.known.push(*verdict),
                Entry::Ruled { generation, round, ruling, commands, refused, .. } => {
                    self.known.clear();
                    self.warnings.extend(refused.and_then(|_| no_room(&ruling)));
                    let judgement = self.take_in(generation, round, &ruling, commands, refused);
                    command = self.step(event(What::Judged(Box::new(judgement))));
                }
                Entry::Answered { answer: Answer::Edit(hash), .. } => {
                    self.asked = None;
                    let text = self.journal.log().text(&hash)?;
                    command = self.step(event(What::Edited(Output::of(&text))));
                }
                Entry::Answered { answer, .. } => {
                    self.asked = None;
                    command = self.step(event(What::Answered(answer)));
                }
                Entry::Decided { decision, .. } if decision == RESUMED => self.resumed += 1,
                // What was stopped goes on; every other end is the controller's own.
                Entry::Finished { outcome } => self.told_end = outcome.reason != Reason::Cancelled,
                Entry::Asked { time, .. } => self.asked = time,
                // Those of several starts have a log of their own.
                Entry::Dropped { .. } | Entry::Final { .. } => {
                    return Err(LoopError::Changed { run: self.run.clone() });
                }
                Entry::Decided { .. } | Entry::Labelled { .. } => {}
            }
        }
        let generations = self.state.generations();
        self.in_doubt &= self.setup.agent.has_side_effects();
        if self.answer.is_some() && self.state.awaiting().is_none() && !self.in_doubt {
            return Err(LoopError::NothingAsked { run: self.run.clone() });
        }
        if self.state.outcome().is_none() {
            self.resumed += 1;
            let decision = RESUMED.to_owned();
            self.journal.append(Entry::Decided { generation: generations, decision })?;
        }
        self.watcher.notice(&Notice::Began { run: &self.run, generations });
        Ok(command)
    }

    /// What a ruling means for the controller, the feedback and the books.
    pub(super) fn take_in(
        &mut self,
        generation: u32,
        round: Round,
        ruling: &Ruling,
        commands: BTreeMap<String, bool>,
        refused: Option<Budget>,
    ) -> Judgement {
        let role = match round {
            Round::First => "judge",
            Round::Confirm(_) => "confirmation",
            Round::Dispute => "dispute",
        };
        for verdict in ruling.verdicts.iter().filter(|verdict| !verdict.cached) {
            self.count(role, &verdict.usage, verdict.cost_usd);
        }
        if round == Round::Dispute {
            // What the whole panel found stands.
            return Judgement { commands, refused, ..Judgement::of(ruling) };
        }
        if ruling.score.is_some() {
            // Nobody goes on from other versions than the best and the newest.
            let best = self.state.best().map(|record| record.generation);
            self.findings.retain(|own, _| *own + 1 >= generation || Some(*own) == best);
            self.findings.insert(generation, ruling.feedback.clone());
            let vetoes = ruling.vetoes().into_iter().map(str::to_owned).collect();
            self.vetoes.insert(generation, vetoes);
        }
        self.ruling = Some(ruling.clone());
        Judgement { commands, refused, ..Judgement::of(ruling) }
    }

    pub(super) fn count(&mut self, role: &str, usage: &Usage, cost_usd: Option<f64>) {
        self.usage.entry(role.to_owned()).or_default().add_call(usage, cost_usd);
    }

    /// Notes which findings the agent has been told.
    pub(super) fn tell(&mut self, directive: Option<&Directive>) {
        let base = directive.and_then(|directive| directive.base_generation);
        if let Some(findings) = base.and_then(|generation| self.findings.get(&generation)) {
            let texts = findings.iter().map(|finding| finding.text.clone());
            let new: Vec<String> = texts.filter(|text| !self.told.contains(text)).collect();
            self.told.extend(new);
            while self.told.len() > TOLD {
                self.told.pop_front();
            }
        }
    }

    pub(super) fn remember(&mut self, snapshot: Option<String>) {
        if let Some(snapshot) = snapshot {
            self.snapshots.insert(self.state.records().len() as u32 + 1, snapshot);
        }
    }
}
