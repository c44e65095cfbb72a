//! Asks the panel, and runs the commands of the policy.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::report::describe;
use super::{CHECK_TIMEOUT, Driver, LoopError, Notice};
use crate::control::dispute::Dispute;
use crate::control::event::{Command, Round, What};
use crate::control::journal::Verdicts;
use crate::control::log::Entry;
use crate::control::setup::Check;
use crate::judge::process::{Ending, Launch, Until, run as run_program};
use crate::panel::{Known, Panel};
use crate::provider::CallContext;
use crate::ruling::Ruling;
use crate::verdict::Status;

impl Driver<'_> {
    pub(super) async fn judge(
        &mut self,
        generation: u32,
        round: Round,
        retry: u32,
        wait_ms: u64,
    ) -> Result<Option<Command>, LoopError> {
        let again = Command::Judge { generation, round, retry, wait_ms: 0 };
        self.pause(wait_ms).await;
        if self.options.cancel.is_cancelled() {
            return Ok(Some(again));
        }
        let output = self.output()?;
        // Checks look at the agent's own state, which a crash or an earlier check may have
        // changed.
        if let Some(snapshot) = self.snapshots.get(&generation) {
            self.setup.agent.restore(Some(snapshot)).await?;
        }
        self.journal.append(Entry::JudgeIntended { generation, round, retry })?;
        let known = Known { verdicts: std::mem::take(&mut self.known), retry: Vec::new() };
        for verdict in &known.verdicts {
            self.journal
                .append(Entry::Judged { generation, verdict: Box::new(verdict.clone()) })?;
        }
        let mut case = self.setup.case(&output);
        if round == Round::Dispute {
            let dispute = Dispute::context(&self.disputes);
            case.context = Some(match case.context {
                Some(context) => format!("{context}\n\n{dispute}"),
                None => dispute,
            });
        }
        let context = self.context(format!("{}/judge/{generation}/{round:?}/{retry}", self.run));
        let verdicts = Verdicts { journal: &self.journal, generation, failed: Default::default() };
        let others = (round == Round::Dispute).then(|| self.others());
        let panel = others.as_ref().unwrap_or_else(|| self.setup.panel_of(round));
        let ruling = panel.judge_with(&case, &context, known, &verdicts).await;
        if let Some(error) = verdicts.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        let commands = self.run_checks(&output, &context).await;
        if self.options.cancel.is_cancelled() && ruling.score.is_none() {
            return Ok(Some(again));
        }
        let short = ruling.score.is_none()
            && ruling.verdicts.iter().any(|verdict| verdict.status == Status::Budget);
        let refused = short.then(|| self.short_of());
        if let Some(why) = refused.and_then(|_| no_room(&ruling)) {
            self.warn(&why);
        }
        let judgement = self.take_in(generation, round, &ruling, commands.clone(), refused);
        let before = self.state.records().last().and_then(|record| record.score);
        let entry = Entry::Ruled {
            generation,
            round,
            retry,
            ruling: Box::new(ruling.clone()),
            commands,
            refused,
        };
        let command = self.write(entry, What::Judged(Box::new(judgement)))?;
        let next = command.as_ref().map(describe).unwrap_or_default();
        self.watcher.notice(&Notice::Judged {
            generation,
            round,
            ruling: &ruling,
            before: before.map(crate::score::Score::get),
            next: &next,
        });
        Ok(command)
    }

    /// The judges that have not raised what is disputed.
    fn others(&self) -> Panel {
        let raised = |name: &str| self.disputes.iter().any(|d| d.judges.iter().any(|j| j == name));
        self.setup.panel.without(raised)
    }

    /// The commands of the policy, each on the output. One that can't run is not satisfied.
    pub(super) async fn run_checks(
        &self,
        output: &str,
        context: &CallContext,
    ) -> BTreeMap<String, bool> {
        let mut ended = BTreeMap::new();
        for Check { key, program, arguments, directory, sandbox } in &self.setup.checks {
            let launch = Launch {
                program: program.clone(),
                arguments: arguments.iter().map(Into::into).collect(),
                directory: directory.clone(),
                private: directory.clone(),
                variables: Vec::new(),
                sandbox: sandbox.clone(),
            };
            let until = Until { context, timeout: Some(CHECK_TIMEOUT) };
            let finished = run_program(&launch, output.as_bytes(), until).await;
            let satisfied = finished.is_ok_and(|f| f.ending == Ending::Exited(0));
            ended.insert(key.clone(), satisfied);
        }
        ended
    }

    /// The output that is being judged.
    pub(super) fn output(&self) -> Result<String, LoopError> {
        let hash = self.state.judging().unwrap_or_default();
        Ok(self.journal.log().text(hash)?)
    }
}

/// Why a judge's call was not sent, where a budget was too small for it.
pub(in crate::control) fn no_room(ruling: &Ruling) -> Option<String> {
    let short = ruling.verdicts.iter().find(|verdict| verdict.status == Status::Budget)?;
    let said = short.detail.as_deref().unwrap_or("it does not fit into the budget");
    Some(format!("the judge `{}` was not asked: {said}", short.judge))
}
