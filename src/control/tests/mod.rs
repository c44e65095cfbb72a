//! The controller without any driver: loops of given scores.

mod accept;
mod pitfalls;
mod progress;
mod properties;
mod simulation;

use std::sync::Arc;

use serde_json::{Value, json};

use super::policy::{BudgetSpec, ExitSpec, Policy, StrategySpec};
use super::{
    About, AgentFault, Command, CriterionMark, Directive, Event, Judgement, Outcome, Output, Round,
    Spent, State, What, decide,
};
use crate::config::{Problem, from_value};
use crate::ruling::Decision;
use crate::score::Score;

/// A policy of the three sections as JSON, with deterministic judges and the threshold 0.9.
pub(super) fn policy(exit: Value, budget: Value, strategy: Value) -> Result<Policy, Problem> {
    let exit: ExitSpec = from_value(exit)?;
    let budget: BudgetSpec = from_value(budget)?;
    let strategy: StrategySpec = from_value(strategy)?;
    Policy::new(&exit, &budget, &strategy, 0.9, true)
}

pub(super) fn exit(exit: Value) -> Policy {
    policy(exit, json!({}), json!({})).unwrap()
}

/// What becomes of one generation.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    Score(f64),
    /// A text and its score.
    Text(&'static str, f64),
    /// The judges' answers, round by round.
    Rounds(Vec<Judgement>),
    /// An output with a dispute of a finding, and the judges' answers, round by round.
    Disputes(&'static str, Vec<Judgement>),
    /// An agent's failure.
    Fault(AgentFault),
}

pub(super) fn judgement(score: f64) -> Judgement {
    Judgement::of_score(
        Score::new(score).unwrap(),
        if score >= 0.9 { Decision::Accept } else { Decision::Reject },
    )
}

pub(super) fn with_criteria(score: f64, criteria: &[(&str, bool, bool)]) -> Judgement {
    let mut judgement = judgement(score);
    judgement.criteria = criteria
        .iter()
        .map(|(name, passed, required)| CriterionMark {
            name: (*name).to_owned(),
            score: Some(if *passed { Score::ONE } else { Score::ZERO }),
            passed: Some(*passed),
            required: *required,
        })
        .collect();
    judgement.required_failed =
        criteria.iter().filter(|(_, passed, required)| *required && !passed).count() as u32;
    judgement
}

/// A loop played to its end.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) state: State,
    pub(super) directives: Vec<Directive>,
    pub(super) rounds: Vec<Round>,
    /// False when the turns ran out first.
    pub(super) ended: bool,
    pub(super) asked: bool,
}

impl Played {
    #[track_caller]
    pub(super) fn outcome(&self) -> &Outcome {
        self.state.outcome().expect("the loop ended")
    }

    #[track_caller]
    pub(super) fn reason(&self) -> &'static str {
        self.outcome().reason.name()
    }

    pub(super) fn generations(&self) -> u32 {
        self.state.generations()
    }
}

/// Plays turns under a policy. Each event takes a second and 10 tokens.
pub(super) fn play(policy: Policy, turns: &[Turn]) -> Played {
    let mut played = Played {
        state: State::new(Arc::new(policy)),
        directives: Vec::new(),
        rounds: Vec::new(),
        ended: false,
        asked: false,
    };
    let mut turns = turns.iter();
    let mut turn: Option<&Turn> = None;
    let mut answered = 0;
    let mut clock = 0;
    let mut what = What::Begun;
    loop {
        let spent = Spent { tokens: clock * 10, micro_dollars: 0 };
        let event = Event { elapsed_ms: clock * 1000, spent, what };
        clock += 1;
        let (state, commands) = decide(played.state.clone(), &event);
        played.state = state;
        assert!(commands.len() <= 1);
        let Some(command) = commands.into_iter().next() else { return played };
        what = match command {
            Command::Finish(_) => {
                played.ended = true;
                return played;
            }
            Command::Ask { .. } => {
                played.asked = true;
                return played;
            }
            Command::Generate(directive) => {
                played.directives.push(directive);
                turn = turns.next();
                answered = 0;
                match turn {
                    None => return played,
                    Some(Turn::Fault(fault)) => What::AgentFailed(*fault),
                    Some(Turn::Text(text, _)) => What::Generated(Output::of(text)),
                    Some(Turn::Disputes(finding, _)) => What::Generated(Output {
                        disputes: vec![(*finding).to_owned()],
                        ..Output::of(&format!("the output of call {}", played.directives.len()))
                    }),
                    Some(_) => What::Generated(Output::of(&format!(
                        "the output of call {} says {}",
                        played.directives.len(),
                        "word ".repeat(played.directives.len())
                    ))),
                }
            }
            Command::Judge { round, .. } => {
                played.rounds.push(round);
                let said = match turn {
                    Some(Turn::Score(score) | Turn::Text(_, score)) => judgement(*score),
                    Some(Turn::Rounds(rounds) | Turn::Disputes(_, rounds)) => {
                        match rounds.get(answered) {
                            Some(judgement) => judgement.clone(),
                            None => return played,
                        }
                    }
                    _ => return played,
                };
                answered += 1;
                What::Judged(Box::new(said))
            }
        };
    }
}

pub(super) fn scores(scores: &[f64]) -> Vec<Turn> {
    scores.iter().map(|score| Turn::Score(*score)).collect()
}
