//! What is made of the history: the material of the next prompt, and the result.

use super::{Driver, EARLIER, LoopError};
use crate::control::event::{Base, Command, Directive, Round};
use crate::control::feedback::{Material, Version};
use crate::control::history::Record;
use crate::control::log::Entry;
use crate::control::outcome::Outcome;
use crate::control::result::{HistoryRow, ProfileOutcome, Report, Shown};

impl Driver<'_> {
    pub(super) fn version(&self, generation: u32) -> Result<Option<Version>, LoopError> {
        let Some(record) = self.state.records().get(generation as usize - 1) else {
            return Ok(None);
        };
        let output = self.journal.log().text(&record.output)?;
        Ok(Some(Version { generation, output, score: record.score }))
    }

    pub(super) fn material(&self, directive: &Directive) -> Result<Material, LoopError> {
        let records = self.state.records();
        let base = directive.base_generation.filter(|_| directive.base != Base::Nothing);
        let best = self.state.best().map(|record| record.generation);
        let other = match (base, best) {
            (Some(base), Some(best)) if best != base => Some(best),
            (Some(base), _) if base > 1 => Some(base - 1),
            _ => None,
        };
        let mut earlier = Vec::new();
        for record in records.iter().rev().filter(|r| Some(r.generation) != base).take(EARLIER) {
            earlier.extend(self.version(record.generation)?);
        }
        earlier.reverse();
        let record = base.and_then(|base| records.get(base as usize - 1));
        Ok(Material {
            task: self.setup.task.clone(),
            current: base.map(|g| self.version(g)).transpose()?.flatten(),
            other: other.map(|g| self.version(g)).transpose()?.flatten(),
            best: self.state.best().and_then(|record| record.score),
            findings: base.and_then(|g| self.findings.get(&g).cloned()).unwrap_or_default(),
            rejected_by: base.and_then(|g| self.vetoes.get(&g).cloned()).unwrap_or_default(),
            criteria: record.map(|record| record.criteria.clone()).unwrap_or_default(),
            told: self.told.iter().cloned().collect(),
            disputed: self.rebutted.clone(),
            earlier,
            directive: directive.clone(),
        })
    }

    pub(super) async fn finish(self, outcome: &Outcome) -> Result<Report, LoopError> {
        if self.told_end {
            // Telling of a run again takes none of its time.
            let took = self.journal.before_ms();
            return self.report(outcome, took);
        }
        if let Some(snapshot) = outcome.best.and_then(|best| self.snapshots.get(&best)) {
            self.setup.agent.restore(Some(snapshot)).await?;
        }
        let (took, _) = self.journal.append(Entry::Finished { outcome: outcome.clone() })?;
        self.report(outcome, took)
    }

    pub(super) fn report(self, outcome: &Outcome, took_ms: u64) -> Result<Report, LoopError> {
        let records = self.state.records();
        let log = self.journal.log();
        let shown = |record: &Record| -> Result<Shown, LoopError> {
            Ok(Shown::of(record, log.text(&record.output)?))
        };
        let best = outcome.best.and_then(|best| records.get(best as usize - 1));
        let history = records
            .iter()
            .map(|record| HistoryRow {
                generation: record.generation,
                score: record.score,
                status: record.status,
                decision: record.decision,
                rejected_by: self.vetoes.get(&record.generation).cloned().unwrap_or_default(),
                next: self.next.get(&record.generation).cloned().unwrap_or_default(),
                change: record.change,
                over_limit: record.over_limit,
            })
            .collect();
        Ok(Report {
            run: self.run.clone(),
            outcome: outcome.class(),
            reason: outcome.reason,
            also_fired: outcome.also_fired.clone(),
            classic_reason: outcome.reason.classic(),
            generations: records.len() as u32,
            refinements: (records.len() as u32).saturating_sub(1),
            evaluations: self.state.evaluations(),
            best: best.map(shown).transpose()?,
            last: records.last().map(shown).transpose()?,
            history,
            usage: self.usage.clone(),
            cost_usd: self.ledger.totals().cost_usd(),
            elapsed_seconds: took_ms as f64 / 1000.0,
            confirmation: self.state.confirmation(),
            profile: self
                .setup
                .panel
                .profile()
                .map(|own| ProfileOutcome::of(own, best.or(records.last()), outcome.reason)),
            config_hash: self.setup.config_hash.clone(),
            resumed: self.resumed,
            starts: Vec::new(),
            log: log.path().display().to_string(),
            warnings: self.warnings.clone(),
        })
    }
}

/// What is done next, in a word or two.
pub(super) fn describe(command: &Command) -> String {
    match command {
        Command::Finish(outcome) => outcome.reason.name().to_owned(),
        Command::Ask { .. } => "ask".to_owned(),
        Command::Judge { round: Round::Confirm(_), retry: 0, .. } => "confirm".to_owned(),
        Command::Judge { round: Round::Dispute, .. } => "judge the dispute".to_owned(),
        Command::Judge { retry: 0, .. } => "judge".to_owned(),
        Command::Judge { .. } => "judge again".to_owned(),
        Command::Generate(directive) => {
            let how = match directive.base {
                Base::Best => "revert to best",
                Base::Nothing if directive.generation > 1 => "restart",
                _ if directive.wait_ms > 0 => "try again",
                _ => "go on",
            };
            match directive.nudges.first() {
                Some(nudge) => format!("{how} ({nudge})"),
                None => how.to_owned(),
            }
        }
    }
}
