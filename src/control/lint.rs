//! What is worth a second look in a loop file that can be run: conditions that can't fire,
//! limits that are none, accepts that are worth little.
//!
//! Errors are found before, when the loop is built. Here is only what a person may have meant
//! and probably did not, each with what to change.

use super::agent::{AgentSpec, Preset};
use super::policy::{Action, Condition, Policy};
use super::setup::Setup;
use super::spec::LoopSpec;
use crate::case::Case;
use crate::judge::llm::Mode;
use crate::panel::{family, spec::JudgeSpec};

/// A day, in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// Outputs from which on a limit on them is none in practice.
const MANY_GENERATIONS: u32 = 1000;

/// A program that asks an agent to go on, and its own limit on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: &'static str,
    /// How often in a row it lets itself be sent on; `None` for as often as one likes.
    pub cap: Option<u32>,
}

/// The doubts about a loop, as sentences; `host` is the program whose gate it is to be.
#[must_use]
pub fn lint(spec: &LoopSpec, setup: &Setup, host: Option<Host>) -> Vec<String> {
    let mut doubts = Vec::new();
    conditions(spec, setup, &mut doubts);
    limits(spec, setup, &mut doubts);
    accepts(spec, setup, &mut doubts);
    money(spec, setup, &mut doubts);
    if let Some((host, cap)) = host.and_then(|host| Some((host.name, host.cap?)))
        && setup.policy.limits.max_generations > cap
    {
        doubts.push(format!(
            "`{host}` stops by itself after {cap} refusals in a row and calls that success: {} generations are above it; lower `budget.max_generations`, or raise its own limit",
            setup.policy.limits.max_generations
        ));
    }
    doubts
}

/// The name of a condition in a file.
fn name(condition: &Condition) -> &'static str {
    match condition {
        Condition::QualityThreshold { .. } => "quality_threshold",
        Condition::AllCriteriaPassed { .. } => "all_criteria_passed",
        Condition::MaxGenerations { .. } => "max_generations",
        Condition::TimeBudget { .. } => "time_budget",
        Condition::TokenBudget { .. } => "token_budget",
        Condition::CostBudget { .. } => "cost_budget",
        Condition::EvaluationBudget { .. } => "evaluation_budget",
        Condition::RepeatedOutput { .. } => "repeated_output",
        Condition::QualityRegression { .. } => "quality_regression",
        Condition::Divergence { .. } => "divergence",
        Condition::ImprovementStall { .. } => "improvement_stall",
        Condition::Convergence { .. } => "convergence",
        Condition::Oscillation { .. } => "oscillation",
        Condition::Command { .. } => "command",
    }
}

/// Outputs that a condition on progress needs before it can fire; `None` for the others.
fn needs(condition: &Condition) -> Option<u32> {
    match condition {
        Condition::RepeatedOutput { .. } | Condition::QualityRegression { .. } => Some(2),
        Condition::ImprovementStall { patience, .. } => Some(patience.saturating_add(1)),
        Condition::Divergence { window, .. }
        | Condition::Convergence { window, .. }
        | Condition::Oscillation { window, .. } => Some(*window),
        _ => None,
    }
}

fn conditions(spec: &LoopSpec, setup: &Setup, doubts: &mut Vec<String>) {
    let policy = &setup.policy;
    let most = policy.limits.max_generations;
    for leaf in policy.exit.leaves() {
        let own = name(leaf);
        // At the last generation the limit on them comes first.
        if let Some(least) = needs(leaf)
            && least.max(policy.min_generations) >= most
            && !warned_already(leaf, most)
        {
            doubts.push(format!(
                "`{own}` can't fire: it needs {} outputs, and the run ends at {most}",
                least.max(policy.min_generations)
            ));
        }
        let exit = leaf.actions().iter().position(|action| *action == Action::Exit);
        if let Some(at) = exit
            && at + 1 < leaf.actions().len()
        {
            doubts.push(format!("`{own}`: nothing follows the action `exit`"));
        }
        let (shadowed, by) = match leaf {
            Condition::TimeBudget { seconds } => (*seconds > spec.budget.seconds, "seconds"),
            Condition::TokenBudget { tokens } => (*tokens > spec.budget.tokens, "tokens"),
            Condition::CostBudget { usd } => {
                (spec.budget.usd.is_some_and(|limit| *usd > limit), "usd")
            }
            Condition::EvaluationBudget { n } => {
                (spec.budget.evaluations.is_some_and(|limit| *n > limit), "evaluations")
            }
            _ => (false, ""),
        };
        if shadowed {
            doubts.push(format!("`{own}` can't be reached: `budget.{by}` is lower"));
        }
        if matches!(leaf, Condition::AllCriteriaPassed { .. }) && !may_have_criteria(spec) {
            doubts.push(
                "`all_criteria_passed` can't fire: no judge on the panel scores criteria"
                    .to_owned(),
            );
        }
    }
    let one = spec.panel.as_ref().is_some_and(|panel| panel.counted() == 1);
    if one && policy.max_spread.is_some() {
        doubts.push("`exit.max_spread` can't fire: one vote has no spread".to_owned());
    }
    if one && policy.gate.disagreement.is_some() {
        doubts.push("`on_disagreement` can't fire: one vote has no spread".to_owned());
    }
    if one && spec.feedback.disputes {
        doubts.push(
            "`feedback.disputes`: with one judge nobody is left to look at a dispute".to_owned(),
        );
    }
    if let Some(starts) = &spec.starts
        && starts.n > 2
        && starts.generations >= most
    {
        doubts.push(format!(
            "`starts.generations` {} leaves nothing to drop: each start ends at {most}",
            starts.generations
        ));
    }
}

/// What every run is warned of.
fn warned_already(leaf: &Condition, most: u32) -> bool {
    match leaf {
        Condition::Oscillation { window, .. } | Condition::Convergence { window, .. } => {
            *window > most
        }
        _ => false,
    }
}

/// Whether some judge may score criteria.
fn may_have_criteria(spec: &LoopSpec) -> bool {
    let mut judges = spec.panel.iter().flat_map(|panel| &panel.judge);
    judges.any(|seat| match &seat.judge {
        JudgeSpec::Llm(llm) => matches!(llm.mode, Mode::Rubric | Mode::Checklist),
        JudgeSpec::Rule(_) | JudgeSpec::Human(_) => false,
        JudgeSpec::Command(_)
        | JudgeSpec::Script(_)
        | JudgeSpec::Http(_)
        | JudgeSpec::Observe(_)
        | JudgeSpec::Replay(_) => true,
    })
}

fn limits(spec: &LoopSpec, setup: &Setup, doubts: &mut Vec<String>) {
    let limits = &setup.policy.limits;
    if limits.max_generations >= MANY_GENERATIONS && limits.elapsed_ms >= DAY_MS {
        doubts.push(format!(
            "no hard stop that would be reached within a day: {} generations and {} s; set `budget.max_generations` or `budget.seconds`",
            limits.max_generations,
            limits.elapsed_ms / 1000
        ));
    }
    let timeout = match &spec.agent {
        Some(AgentSpec::Command(own)) => Some(own.timeout),
        Some(AgentSpec::Workspace(own)) => Some(own.timeout),
        Some(AgentSpec::Llm(own)) => Some(own.timeout),
        Some(AgentSpec::Replay(_)) | None => None,
    };
    if let Some(timeout) = timeout
        && timeout.get().as_millis() > u128::from(limits.elapsed_ms)
    {
        doubts.push(format!(
            "`agent.timeout` {} s is above the whole loop's {} s: one call may take all of it",
            timeout.get().as_secs(),
            limits.elapsed_ms / 1000
        ));
    }
    let (call, judging) = setup.worst_case(&setup.task, &setup.task);
    let first = call.tokens_in + call.tokens_out + judging.tokens_in + judging.tokens_out;
    if let Some(most) = limits.tokens.filter(|most| first > *most) {
        doubts.push(format!(
            "no output fits the budget: the first one and its judging may take {first} tokens, and `budget.tokens` is {most}"
        ));
    }
    let rounds = 1 + u64::from(setup.policy.confirm);
    if let Some(most) = limits.evaluations
        && most < u64::from(limits.max_generations) + rounds - 1
    {
        doubts.push(format!(
            "`budget.evaluations` {most} ends the run before its {} generations: each is judged once, and the last {rounds} times",
            limits.max_generations
        ));
    }
}

/// Whether something in the tree accepts.
fn can_accept(policy: &Policy) -> bool {
    let by_condition = policy.exit.leaves().into_iter().any(|leaf| {
        matches!(
            leaf,
            Condition::QualityThreshold { .. }
                | Condition::AllCriteriaPassed { .. }
                | Condition::Command { .. }
                | Condition::Convergence { .. }
        )
    });
    by_condition || policy.asks()
}

fn accepts(spec: &LoopSpec, setup: &Setup, doubts: &mut Vec<String>) {
    let policy = &setup.policy;
    if !can_accept(policy) {
        doubts.push(
            "nothing accepts: without `quality_threshold`, `all_criteria_passed` or `command` every run ends as not accepted".to_owned(),
        );
    }
    let reserve = setup.panel.reserve().is_some();
    match (policy.confirm, reserve, policy.deterministic) {
        (0, true, _) => {
            doubts.push("the judges on the reserve are never asked: `exit.confirm` is 0".to_owned());
        }
        (0, false, false) => doubts.push(
            "`exit.confirm` is 0: a lucky score of judges that vary is accepted, and a loop takes the highest of many".to_owned(),
        ),
        (1.., false, true) => doubts.push(
            "`exit.confirm`: these judges say the same of the same output each time; judges with `reserve = true` would confirm something".to_owned(),
        ),
        _ => {}
    }
    let Some(model) = setup.agent.model() else { return };
    let own = family(model);
    for seat in &setup.panel.seats {
        let Some(theirs) = seat.judge.model() else { continue };
        if seat.report_only || theirs == model || family(theirs) != own {
            continue;
        }
        doubts.push(format!(
            "the judge `{}` is of the agent's model family `{own}`: models favour the wording of their kin; seat another family, or a rule beside it",
            seat.name
        ));
    }
    if let Some(AgentSpec::Llm(llm)) = &spec.agent
        && llm.temperature == Some(0.0)
        && llm.seed.is_none()
        && spec.starts.as_ref().is_some_and(|starts| starts.agent.is_empty())
    {
        doubts.push(
            "`[starts]`: at temperature 0 all starts write the same; set `starts.agent`".to_owned(),
        );
    }
}

/// Whether an address is on this machine.
fn is_local(base_url: Option<&str>) -> bool {
    let hosts = ["://127.", "://localhost", "://[::1]", "://0.0.0.0"];
    base_url.is_some_and(|url| hosts.iter().any(|host| url.contains(host)))
}

fn money(spec: &LoopSpec, setup: &Setup, doubts: &mut Vec<String>) {
    if setup.policy.limits.micro_dollars.is_some() {
        return;
    }
    let mut paid: Vec<String> = Vec::new();
    match &spec.agent {
        Some(AgentSpec::Llm(llm)) if !is_local(llm.base_url.as_deref()) => {
            let free = setup.agent.worst_case("x").and_then(|worst| worst.micro_dollars) == Some(0);
            if !free {
                paid.push("the agent".to_owned());
            }
        }
        Some(AgentSpec::Command(own)) if calls_a_model(own.preset, own.price.is_some()) => {
            paid.push("the agent".to_owned());
        }
        Some(AgentSpec::Workspace(own)) if calls_a_model(own.preset, own.price.is_some()) => {
            paid.push("the agent".to_owned());
        }
        _ => {}
    }
    let case = Case::new("x", "x");
    let local = |name: &str| {
        let mut judges = spec.panel.iter().flat_map(|panel| &panel.judge);
        judges.any(|seat| match &seat.judge {
            JudgeSpec::Llm(llm) => seat.seat.name == name && is_local(llm.base_url.as_deref()),
            _ => false,
        })
    };
    let reserve = setup.panel.reserve().into_iter().flat_map(|reserve| &reserve.seats);
    for seat in setup.panel.seats.iter().chain(reserve) {
        let plan = seat.judge.plan(&case);
        if plan.calls > 0 && plan.cost_usd != Some(0.0) && !local(&seat.name) {
            paid.push(format!("the judge `{}`", seat.name));
        }
    }
    if !paid.is_empty() {
        doubts.push(format!(
            "no limit on money, and {} may cost some: set `budget.usd`",
            paid.join(", ")
        ));
    }
}

fn calls_a_model(preset: Option<Preset>, priced: bool) -> bool {
    preset.is_some() || priced
}
