//! Prices under a limit on money: every model needs one, so that the limit can hold.
//!
//! A model without a price is refused, or taken to cost what the file assumes. A price that is
//! known is never replaced.

use super::agent::{Agent, AgentSpec};
use super::policy::Policy;
use super::setup::seats;
use crate::case::Case;
use crate::config::Problem;
use crate::judge::{BuildContext, BuildError, Judge};
use crate::panel::spec::JudgeSpec;
use crate::panel::{Panel, PanelSpec};
use crate::provider::Price;

/// Whether a limit on money can't hold for an agent.
fn is_unpriced(agent: &dyn Agent) -> bool {
    !agent.is_priced() || agent.worst_case("").is_some_and(|worst| worst.micro_dollars.is_none())
}

/// Whether a limit on money can't hold for a judge.
fn is_unpriced_judge(judge: &dyn Judge) -> bool {
    let plan = judge.plan(&Case::new("", ""));
    plan.calls > 0 && plan.cost_usd.is_none()
}

/// Refuses what has no price under a limit on money.
pub(super) fn check(policy: &Policy, agent: &dyn Agent, panel: &Panel) -> Result<(), Problem> {
    if policy.limits.micro_dollars.is_none() {
        return Ok(());
    }
    let told = |who: &str| {
        Problem::new(
            "budget.usd",
            format!(
                "{who} has no price: set its `price` (zeros if it costs nothing), or `budget.assume_price` for all such models, so that the limit can hold"
            ),
        )
    };
    if is_unpriced(agent) {
        return Err(told("the agent's model"));
    }
    match seats(panel).find(|seat| is_unpriced_judge(seat.judge.as_ref())) {
        Some(seat) => Err(told(&format!("the model of the judge `{}`", seat.name))),
        None => Ok(()),
    }
}

/// Gives the agent a price where it has none; whether it did.
pub(super) fn assume_for_agent(
    price: Price,
    agent: &mut AgentSpec,
    context: &BuildContext,
) -> Result<bool, BuildError> {
    let lacks = is_unpriced(agent.build(context)?.as_ref());
    if lacks {
        match agent {
            AgentSpec::Command(own) => own.price = Some(price),
            AgentSpec::Workspace(own) => own.price = Some(price),
            AgentSpec::Llm(own) => own.price = Some(price),
            AgentSpec::Replay(_) => {}
        }
    }
    Ok(lacks)
}

/// Gives the judges a price that have none; their names. One that can't be built is left to
/// the panel to complain of.
pub(super) fn assume_for_judges(
    price: Price,
    panel: &mut PanelSpec,
    context: &BuildContext,
) -> Vec<String> {
    let mut names = Vec::new();
    for seat in &mut panel.judge {
        let JudgeSpec::Llm(llm) = &mut seat.judge else { continue };
        let lacks = llm.build(context).is_ok_and(|judge| is_unpriced_judge(judge.as_ref()));
        if lacks {
            llm.price = Some(price);
            names.push(seat.seat.name.clone());
        }
    }
    names
}

/// What a reader of the result should know of assumed prices.
pub(super) fn warning(price: Price, agent: bool, judges: &[String]) -> Option<String> {
    let judges = judges.iter().map(|name| format!("the judge `{name}`"));
    let whose: Vec<String> =
        agent.then(|| "the agent".to_owned()).into_iter().chain(judges).collect();
    (!whose.is_empty()).then(|| {
        format!(
            "no price is known for {}: ${} per million prompt tokens and ${} per million answer tokens are assumed, and what is said to be spent rests on that",
            whose.join(", "),
            price.input,
            price.output
        )
    })
}
