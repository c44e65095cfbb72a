//! From verdicts to a ruling.
//!
//! A pure function of the panel's rules and the verdicts, so that rulings can be made anew
//! from stored verdicts, under other rules, and in any order of answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::feedback;
use super::vote::{self, Settings};
use crate::calibration::InForce;
use crate::calibration::in_force::Weighed;
use crate::ruling::{CriterionRuling, Decision, Reason, Ruling, Vote};
use crate::score::Score;
use crate::verdict::{Status, Verdict};

/// What the panel knows of one seat.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatRules {
    /// The judge's name.
    pub name: String,
    /// The weight of its vote; 0 for one that vetoes and does not vote.
    pub weight: f64,
    /// Whether a vote below the threshold rejects.
    pub required: bool,
    /// Whether it is shown and not counted.
    pub report_only: bool,
    /// Samples that make one vote.
    pub samples: u32,
}

impl SeatRules {
    /// Whether its vote is counted.
    #[must_use]
    pub fn votes(&self) -> bool {
        !self.report_only && self.weight > 0.0
    }
}

/// How a panel turns verdicts into a ruling.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The seats, in the panel's order.
    pub seats: Vec<SeatRules>,
    /// The aggregator.
    pub settings: Settings,
    /// The score that an accepted output must reach.
    pub threshold: f64,
    /// The least number of counted votes for a decision.
    pub quorum: u32,
    /// The profile in force: votes are mapped, and its threshold decides.
    pub profile: Option<Arc<InForce>>,
}

/// What the votes alone say, before criteria and feedback.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) score: Option<Score>,
    pub(super) raw_score: Option<Score>,
    pub(super) tiebreak: Option<Score>,
    pub(super) decision: Decision,
    pub(super) reason: Reason,
    /// What the profile in force makes of the votes.
    pub(super) weighed: Option<Weighed>,
}

impl Rules {
    /// Counted seats.
    #[must_use]
    pub fn declared(&self) -> u32 {
        self.seats.iter().filter(|seat| seat.votes()).count() as u32
    }

    /// The ruling on a case from the verdicts of its judges, given in any order.
    ///
    /// Verdicts of judges that have no seat are kept and not counted.
    #[must_use]
    pub fn rule(&self, case: &str, mut verdicts: Vec<Verdict>) -> Ruling {
        self.sort(&mut verdicts);
        let mut votes: Vec<Vote> = self.seats.iter().map(|seat| fold(seat, &verdicts)).collect();
        let whole: Vec<Option<Score>> = votes.iter().map(|vote| vote.score).collect();
        let weighed = self.weighed(&verdicts);
        let criteria = self.criteria(&verdicts);
        let mut outcome = self.outcome_of(&whole, weighed.as_deref().unwrap_or(&whole));
        if outcome.decision == Decision::Accept {
            let failed = criteria.iter().find(|c| c.required && c.passed == Some(false));
            if let Some(failed) = failed {
                outcome.decision = Decision::Reject;
                outcome.reason = Reason::RequiredCriterion { criterion: failed.name.clone() };
            } else if let Some(criterion) = self.unscored(&verdicts) {
                outcome.decision = Decision::Undecided;
                outcome.reason = Reason::RequiredCriterionMissing { criterion };
            }
        }
        let in_vote = weighed.unwrap_or(whole);
        let counted = || votes.iter().zip(&in_vote).filter(|(vote, _)| vote.counted);
        let used: Vec<Score> = counted().filter_map(|(_, score)| *score).collect();
        let declared = self.declared();
        // A vote that the decision did not need was not lost.
        let missing =
            counted().any(|(vote, score)| score.is_none() && !not_needed(vote, &verdicts));
        let profile = outcome.weighed.map(|mut weighed| {
            for (vote, mapped) in votes.iter_mut().zip(weighed.mapped) {
                vote.mapped = mapped;
            }
            if let Some(own) = &self.profile {
                own.check_models(&verdicts, &mut weighed.mark);
            }
            // Nothing was decided that a bound could be about.
            if outcome.decision == Decision::Undecided {
                weighed.mark.bound = None;
            }
            (weighed.threshold, weighed.mark)
        });
        let threshold = profile.as_ref().map_or(self.threshold, |own| own.0);
        Ruling {
            case: case.to_owned(),
            score: outcome.score,
            score_bounds: None,
            raw_score: outcome.raw_score,
            tiebreak: outcome.tiebreak,
            spread: spread(&used),
            decision: outcome.decision,
            reason: outcome.reason,
            threshold,
            profile: profile.map(|own| own.1),
            degraded: missing,
            votes_used: used.len() as u32,
            votes_declared: declared,
            quorum: self.quorum,
            criteria,
            feedback: feedback::merge(&self.seats, &verdicts),
            votes,
            verdicts,
        }
    }

    /// The votes that a profile in force weighs, where its criterion is one of the judges' own
    /// and not their score as a whole.
    fn weighed(&self, verdicts: &[Verdict]) -> Option<Vec<Option<Score>>> {
        let criterion = &self.profile.as_ref()?.profile().criterion;
        let vote = |seat: &SeatRules| {
            let mine = verdicts.iter().filter(|v| v.judge == seat.name && v.status == Status::Ok);
            let scores: Vec<Score> = mine.filter_map(|v| v.score_of(criterion)).collect();
            vote::lower_median(&scores)
        };
        Some(self.seats.iter().map(vote).collect())
    }

    /// The decision from one score a seat, in the panel's order. Monotone: with the same
    /// votes present, raising one never turns an accept into a reject.
    pub(super) fn outcome(&self, votes: &[Option<Score>]) -> Outcome {
        self.outcome_of(votes, votes)
    }

    /// The decision from the judges' scores, which vetoes look at, and the votes.
    fn outcome_of(&self, scores: &[Option<Score>], votes: &[Option<Score>]) -> Outcome {
        let seats = |of: &'_ [Option<Score>]| -> Vec<(usize, Option<Score>)> {
            of.iter().copied().enumerate().filter(|(i, _)| !self.seats[*i].report_only).collect()
        };
        let mut counted: Vec<(Score, f64)> = seats(votes)
            .into_iter()
            .filter(|(i, _)| self.seats[*i].votes())
            .filter_map(|(i, vote)| Some((vote?, self.seats[i].weight)))
            .collect();
        let weigh = |votes: &[Option<Score>]| self.profile.as_ref().map(|own| own.weigh(votes));
        if (counted.len() as u32) < self.quorum {
            // Too few votes have no key, and nothing is said of them.
            let weighed = weigh(&vec![None; votes.len()]);
            return Outcome {
                score: None,
                raw_score: None,
                tiebreak: None,
                decision: Decision::Undecided,
                reason: Reason::NoQuorum,
                weighed,
            };
        }
        let weighed = weigh(votes);
        let raw_score = vote::aggregate(&counted, &self.settings);
        // Sorted by the aggregator's rule: the mean must not depend on the order either.
        counted.sort_by_key(|vote| vote.0);
        let mean = vote::mean(counted.iter().map(|(score, _)| (*score, 1.0)));
        let (score, tiebreak) = match &weighed {
            Some(weighed) => (weighed.score, weighed.tiebreak),
            None => (raw_score, mean),
        };
        let below = |score: Score| score.get() < self.threshold;
        let required: Vec<(usize, Option<Score>)> =
            seats(scores).into_iter().filter(|(i, _)| self.seats[*i].required).collect();
        let name = |i: usize| self.seats[i].name.clone();
        let vetoed = required.iter().find(|(_, vote)| vote.is_some_and(below));
        let missing = required.iter().find(|(_, vote)| vote.is_none());
        let (decision, reason) = if let Some((i, _)) = vetoed {
            (Decision::Reject, Reason::RequiredJudge { judge: name(*i) })
        } else {
            let (decision, reason) = match &weighed {
                Some(weighed) => self.reached_under(weighed),
                None => {
                    let reached = score.is_some_and(|score| match self.settings.aggregate {
                        vote::Aggregate::Majority => score.get() > 0.5,
                        _ => !below(score),
                    });
                    (if reached { Decision::Accept } else { Decision::Reject }, Reason::Threshold)
                }
            };
            match missing {
                Some((i, _)) if decision == Decision::Accept => {
                    (Decision::Undecided, Reason::RequiredJudgeMissing { judge: name(*i) })
                }
                _ => (decision, reason),
            }
        };
        Outcome { score, raw_score, tiebreak, decision, reason, weighed }
    }

    /// What a profile in force decides, vetoes aside.
    fn reached_under(&self, weighed: &Weighed) -> (Decision, Reason) {
        match (&weighed.reached, weighed.alone) {
            (Ok(true), _) => (Decision::Accept, Reason::Threshold),
            (_, Some(seat)) => {
                let judge = self.seats[seat].name.clone();
                (Decision::Accept, Reason::AcceptedAlone { judge })
            }
            (Ok(false), None) => (Decision::Reject, Reason::Threshold),
            (Err(detail), None) => {
                (Decision::Undecided, Reason::NoCalibration { detail: detail.clone() })
            }
        }
    }

    /// Puts verdicts into the panel's order, then by sample.
    pub(super) fn sort(&self, verdicts: &mut [Verdict]) {
        let place: BTreeMap<&str, usize> =
            self.seats.iter().enumerate().map(|(i, seat)| (seat.name.as_str(), i)).collect();
        let place = |verdict: &Verdict| place.get(verdict.judge.as_str()).copied();
        verdicts.sort_by(|a, b| {
            let key = |v: &Verdict| (place(v).unwrap_or(usize::MAX), v.sample);
            key(a).cmp(&key(b)).then_with(|| a.judge.cmp(&b.judge))
        });
    }

    /// Medians by criterion, in the order in which the panel's judges first name them.
    fn criteria(&self, verdicts: &[Verdict]) -> Vec<CriterionRuling> {
        let mut order: Vec<&str> = Vec::new();
        let mut scores: BTreeMap<&str, BTreeMap<&str, Vec<Score>>> = BTreeMap::new();
        let mut marks: BTreeMap<&str, (bool, Vec<bool>)> = BTreeMap::new();
        for verdict in verdicts.iter().filter(|v| v.status == Status::Ok && self.counts(&v.judge)) {
            for criterion in &verdict.criteria {
                let name = criterion.name.as_str();
                if !order.contains(&name) {
                    order.push(name);
                }
                let mark = marks.entry(name).or_default();
                mark.0 |= criterion.required;
                mark.1.extend(criterion.passed);
                if let Some(score) = criterion.score {
                    let of_judge = scores.entry(name).or_default();
                    of_judge.entry(&verdict.judge).or_default().push(score);
                }
            }
        }
        let rulings = order.into_iter().map(|name| {
            // A judge has one vote on a criterion however often it was sampled.
            let votes: Vec<Score> = scores
                .get(name)
                .into_iter()
                .flat_map(BTreeMap::values)
                .filter_map(|samples| vote::lower_median(samples))
                .collect();
            let (required, passed) = marks.remove(name).unwrap_or_default();
            // Judges may have different pass marks: more than half of them must pass it.
            let passing = passed.iter().filter(|passed| **passed).count();
            CriterionRuling {
                name: name.to_owned(),
                score: vote::lower_median(&votes),
                votes: votes.len() as u32,
                passed: (!passed.is_empty()).then_some(2 * passing > passed.len()),
                required,
            }
        });
        rulings.collect()
    }

    /// The first required criterion that no majority of the verdicts which name it has passed,
    /// once none is known to fail: what was left out can't be said to have passed.
    fn unscored(&self, verdicts: &[Verdict]) -> Option<String> {
        let mut asked: Vec<(&str, bool, usize, usize)> = Vec::new();
        for verdict in verdicts.iter().filter(|v| v.status == Status::Ok && self.counts(&v.judge)) {
            for criterion in &verdict.criteria {
                let at = asked.iter().position(|(name, ..)| *name == criterion.name);
                let at = at.unwrap_or_else(|| {
                    asked.push((&criterion.name, false, 0, 0));
                    asked.len() - 1
                });
                let (_, required, of, passing) = &mut asked[at];
                *required |= criterion.required;
                *of += 1;
                // A script may score a criterion and say nothing of passing.
                let scored = criterion.passed.is_none() && criterion.score.is_some();
                *passing += usize::from(criterion.passed == Some(true) || scored);
            }
        }
        let open = asked.iter().find(|(_, required, of, passing)| *required && 2 * passing <= *of);
        open.map(|(name, ..)| (*name).to_owned())
    }

    fn counts(&self, judge: &str) -> bool {
        self.seats.iter().any(|seat| seat.name == judge && !seat.report_only)
    }
}

/// One judge's samples as one vote.
fn fold(seat: &SeatRules, verdicts: &[Verdict]) -> Vote {
    let mine: Vec<&Verdict> = verdicts.iter().filter(|v| v.judge == seat.name).collect();
    let scores: Vec<Score> =
        mine.iter().filter(|v| v.status == Status::Ok).filter_map(|v| v.score).collect();
    let status = match mine.iter().find(|v| v.status == Status::Ok) {
        Some(_) => Status::Ok,
        None => mine.first().map_or(Status::Cancelled, |v| v.status),
    };
    Vote {
        judge: seat.name.clone(),
        score: vote::lower_median(&scores),
        mapped: None,
        status,
        weight: seat.weight,
        counted: seat.votes(),
        required: seat.required,
        samples: seat.samples,
        samples_ok: scores.len() as u32,
        sample_spread: spread(&scores),
    }
}

/// The note on a verdict that was not asked for because the decision was settled.
pub(crate) const NOT_NEEDED: &str = "not_needed";

fn not_needed(vote: &Vote, verdicts: &[Verdict]) -> bool {
    verdicts.iter().any(|v| v.judge == vote.judge && v.notes.contains_key(NOT_NEEDED))
}

/// Largest minus smallest; `None` below two.
fn spread(scores: &[Score]) -> Option<f64> {
    let (low, high) = (scores.iter().min()?, scores.iter().max()?);
    (scores.len() > 1).then(|| high.get() - low.get())
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
