//! Flags that choose among the cases of a run.

use clap::{Args, ValueEnum};

use super::panel::unit;
use super::printer::Printer;
use super::truth::TruthArgs;
use crate::panel::PanelSpec;
use crate::ruling::Decision;
use crate::run::rows::each_judged;
use crate::run::select::Selection;
use crate::run::truth::{MistakeCounts, Mistakes};
use crate::store::{RunRecord, Store, StoreError};
use crate::verdict::Status;

/// Which cases.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SelectArgs {
    /// Only cases with this decision; may be repeated
    #[arg(long, value_enum, value_name = "DECISION")]
    decision: Vec<DecisionArg>,
    /// Only cases with a verdict of this status, such as `timeout`; may be repeated
    #[arg(long, value_parser = status, value_name = "STATUS")]
    status: Vec<Status>,
    /// Only cases where a judge was outvoted: its vote is on the other side of the threshold
    /// than the decision
    #[arg(long)]
    outvoted: bool,
    /// The judge that `--status` and `--outvoted` are about, instead of any; and whose votes are
    /// held against labels, instead of the panel's decisions
    #[arg(long, value_name = "NAME")]
    judge: Option<String>,
    /// Only cases on which the judges disagree by so much: largest minus smallest vote
    #[arg(long, value_name = "SPREAD", value_parser = unit)]
    min_spread: Option<f64>,
    #[command(flatten)]
    truth: TruthArgs,
}

/// The cases chosen, and how decisions stand against labels where these are asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) selection: Selection,
    /// Over all cases of the run, chosen or not.
    pub(super) mistakes: Option<MistakeCounts>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DecisionArg {
    Accept,
    Reject,
    Undecided,
}

fn status(text: &str) -> Result<Status, String> {
    Status::from_name(text).ok_or_else(|| {
        let names = Status::ALL.map(Status::name);
        let near = crate::config::nearest(text, names)
            .map(|name| format!("; did you mean `{name}`?"))
            .unwrap_or_default();
        format!("expected one of {}{near}", names.join(", "))
    })
}

impl SelectArgs {
    /// The selection, once it fits the run and its labels.
    pub(super) fn chosen(
        &self,
        store: &Store,
        run: &RunRecord,
        printer: &Printer,
    ) -> anyhow::Result<Chosen> {
        let mut selection = self.selection(run)?;
        selection.truth = self.truth.truth(run, printer)?;
        selection.wrong = self.truth.wrong;
        let mistakes = counted(store, run, &selection)?;
        if let (Some(counts), Some(truth)) = (&mistakes, &selection.truth)
            && counts.has_no_label()
            && counts.unlabelled > 0
        {
            anyhow::bail!(
                "none of the {} labelled cases, such as `{}`, is a case of run `{}`: check that labels and data use the same ids",
                truth.len(),
                truth.example().unwrap_or_default(),
                run.id
            );
        }
        Ok(Chosen { selection, mistakes })
    }

    fn selection(&self, run: &RunRecord) -> anyhow::Result<Selection> {
        if let Some(judge) = &self.judge
            && let Ok(spec) = serde_json::from_str::<PanelSpec>(&run.panel)
        {
            let names: Vec<&str> = spec.judge.iter().map(|j| j.seat.name.as_str()).collect();
            if !names.contains(&judge.as_str()) {
                let near = crate::config::nearest(judge, names.iter().copied())
                    .map(|name| format!("; did you mean `{name}`?"))
                    .unwrap_or_default();
                anyhow::bail!(
                    "run `{}` has no judge `{judge}`: its judges are {}{near}",
                    run.id,
                    names.join(", ")
                );
            }
        }
        anyhow::ensure!(
            self.judge.is_none()
                || self.outvoted
                || !self.status.is_empty()
                || self.truth.is_asked_for(),
            "`--judge` says whom `--status`, `--outvoted` or `--positive` is about: give one of them too"
        );
        Ok(Selection {
            decisions: self
                .decision
                .iter()
                .map(|decision| match decision {
                    DecisionArg::Accept => Decision::Accept,
                    DecisionArg::Reject => Decision::Reject,
                    DecisionArg::Undecided => Decision::Undecided,
                })
                .collect(),
            statuses: self.status.clone(),
            judge: self.judge.clone(),
            outvoted: self.outvoted,
            least_spread: self.min_spread,
            ..Selection::default()
        })
    }
}

/// Every decision of the run against its label; `None` without labels.
fn counted(
    store: &Store,
    run: &RunRecord,
    selection: &Selection,
) -> Result<Option<MistakeCounts>, StoreError> {
    let Some(truth) = &selection.truth else { return Ok(None) };
    let judge = selection.judge.as_deref();
    let mut mistakes = Mistakes::default();
    each_judged(store, run.number, |case, ruling| {
        mistakes.add(truth, &ruling, judge, case.group.as_deref());
        Ok::<_, StoreError>(())
    })?;
    Ok(Some(mistakes.counts(truth, judge)))
}
