//! The finals: who is in them, the fresh look at their outputs, and who is picked.
//!
//! Nobody is picked by the score that brought it here: that is the highest of many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{FINALISTS, Group};
use crate::control::driver::{Driven, LoopError, no_room};
use crate::control::event::Round;
use crate::control::judgement::Judgement;
use crate::control::log::Entry;
use crate::control::outcome::{Class, Outcome, Reason};
use crate::control::result::{Report, StartResult};
use crate::provider::{CallContext, Held};
use crate::score::Score;

impl Group<'_, '_> {
    /// What judging the finalists will take, as far as it can be known from the task.
    pub(super) fn keep_back(&self) -> Option<crate::provider::Reservation> {
        let setup = self.starts.first();
        let finals = [(setup.panel_of(Round::Confirm(1)), FINALISTS as u64)];
        let worst = setup.judging(&setup.task, &finals);
        // Where not even this fits, the starts themselves will say so.
        self.ledger.reserve(worst).ok()
    }

    /// Accepted ones first that have not failed afresh, then by the score of their best output,
    /// then the first ones.
    pub(super) fn best_first(&self, starts: &[u32], known: &BTreeMap<u32, Driven>) -> Vec<u32> {
        let mut ranked = starts.to_vec();
        let key = |start: &u32| {
            let driven = &known[start];
            let failed = self.afresh(*start).is_some_and(|(passes, _)| !passes);
            let rejected = driven.report.reason == Reason::HumanRejected && !driven.paused;
            (is_accepted(driven) && !failed, !rejected, driven.score())
        };
        ranked.sort_by(|a, b| key(b).cmp(&key(a)).then(a.cmp(b)));
        ranked
    }

    /// Judges the best output of each finalist once more, by judges or samples that had no part
    /// in its being chosen.
    pub(super) async fn judge_afresh(
        &mut self,
        finalists: &[u32],
        known: &BTreeMap<u32, Driven>,
    ) -> Result<(), LoopError> {
        for start in finalists {
            if self.finals.contains_key(start) {
                continue;
            }
            let setup = &self.starts.setups[*start as usize - 1];
            let Some(best) = &known[start].report.best else { continue };
            let case = setup.case(&best.output);
            let left = setup.policy.limits.elapsed_ms.saturating_sub(self.elapsed_ms());
            let scope = format!("{}/final/{start}", self.run);
            let inner = Arc::clone(&self.options.replies);
            let context = CallContext {
                held: Held::default(),
                sample: 0,
                deadline: Instant::now() + Duration::from_millis(left),
                cancel: self.options.cancel.clone(),
                fresh: false,
                replies: Arc::new(crate::control::journal::Scoped { inner, scope }),
                ledger: Arc::clone(&self.ledger),
                place: None,
            };
            let ruling = setup.panel_of(Round::Confirm(1)).judge(&case, &context).await;
            if self.options.cancel.is_cancelled() {
                return Ok(());
            }
            if let Some(why) = no_room(&ruling) {
                self.warn(format!("start {start} could not be judged afresh: {why}"));
            }
            let entry = Entry::Final { start: *start, ruling: Box::new(ruling.clone()) };
            self.append(entry)?;
            self.finals.insert(*start, ruling);
        }
        Ok(())
    }

    /// What the fresh ruling on a start says: whether it passes, and its score.
    pub(super) fn afresh(&self, start: u32) -> Option<(bool, Score)> {
        let ruling = self.finals.get(&start)?;
        let judgement = Judgement::of(ruling);
        let policy = &self.starts.setups[start as usize - 1].policy;
        let passes = judgement.required_failed == 0
            && match policy.threshold() {
                Some(threshold) => judgement.score?.get() >= threshold,
                None => judgement.decision == crate::ruling::Decision::Accept,
            };
        Some((passes, judgement.score?))
    }

    /// Picks a start, and tells of all.
    pub(super) fn finish(
        mut self,
        known: &BTreeMap<u32, Driven>,
        finalists: &[u32],
        stopped: Option<Reason>,
    ) -> Result<Report, LoopError> {
        let picked = finalists
            .iter()
            .copied()
            .max_by(|a, b| {
                let key = |start: u32| {
                    let (passes, score) = self.afresh(start).unzip();
                    let accepted = is_accepted(&known[&start]) && passes == Some(true);
                    (accepted, score, known[&start].score())
                };
                // Of equals the first.
                key(*a).cmp(&key(*b)).then(b.cmp(a))
            })
            .or_else(|| known.keys().next().copied());
        let Some(picked) = picked else {
            return Err(LoopError::NoBeginning { run: self.run.clone() });
        };
        let own = &known[&picked].report;
        let passes = self.afresh(picked).map(|(passes, _)| passes);
        let reason = stopped.unwrap_or(match own.outcome {
            // It passed in its loop, and not before fresh eyes, or nobody could look.
            Class::Accepted if passes != Some(true) && own.reason != Reason::HumanAccepted => {
                Reason::ConfirmationFailed
            }
            _ => own.reason,
        });
        let mut report = own.clone();
        report.run.clone_from(&self.run);
        report.reason = reason;
        report.outcome = reason.class();
        report.classic_reason = reason.classic();
        report.also_fired.retain(|other| *other != reason);
        report.evaluations = self.finals.len() as u64;
        report.usage = BTreeMap::new();
        for driven in known.values() {
            report.evaluations += driven.report.evaluations;
            for (role, usage) in &driven.report.usage {
                let books = report.usage.entry(role.clone()).or_default();
                books.usage.add(&usage.usage);
                books.cost_usd += usage.cost_usd;
            }
        }
        let finals = self.finals.values().flat_map(|ruling| &ruling.verdicts);
        for verdict in finals.filter(|verdict| !verdict.cached) {
            let books = report.usage.entry("final".to_owned()).or_default();
            books.usage.add(&verdict.usage);
            books.cost_usd += verdict.cost_usd.unwrap_or(0.0);
        }
        report.starts = known
            .iter()
            .map(|(start, driven)| StartResult {
                start: *start,
                picked: *start == picked,
                dropped_after: self
                    .drops
                    .iter()
                    .find(|(starts, _)| starts.contains(start))
                    .map(|_| driven.report.generations),
                reason: (!driven.paused).then_some(driven.report.reason),
                generations: driven.report.generations,
                score: driven.score(),
                fresh_score: self.afresh(*start).map(|(_, score)| score),
                log: driven.report.log.clone(),
            })
            .collect();
        report.cost_usd = self.ledger.totals().cost_usd();
        let elapsed_ms = if self.told_end { self.before_ms } else { self.elapsed_ms() };
        report.elapsed_seconds = elapsed_ms as f64 / 1000.0;
        report.config_hash.clone_from(&self.starts.config_hash);
        report.resumed = self.resumed;
        report.log = self.log.path().display().to_string();
        for warning in &own.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        report.warnings.clone_from(&self.warnings);
        // A run that waits has not ended.
        if !self.told_end && reason != Reason::AwaitingHuman {
            let outcome = Outcome {
                reason,
                also_fired: report.also_fired.clone(),
                best: report.best.as_ref().map(|best| best.generation),
            };
            self.append_at(elapsed_ms, Entry::Finished { outcome })?;
        }
        Ok(report)
    }
}

pub(super) fn is_accepted(driven: &Driven) -> bool {
    driven.report.outcome == Class::Accepted && !driven.paused
}

impl Driven {
    /// The score of its best output.
    pub(super) fn score(&self) -> Option<Score> {
        self.report.best.as_ref().and_then(|best| best.score)
    }
}
