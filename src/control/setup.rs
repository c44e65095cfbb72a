//! A loop ready to run: everything of its file found, built and checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::agent::{Agent, AgentSpec};
use super::event::Round;
use super::feedback::{Feedback, FeedbackError};
use super::policy::{Condition, HumanSpec, Node, Policy};
use super::prices;
use super::spec::LoopSpec;
use crate::calibration::CalibrationError;
use crate::case::Case;
use crate::config::Problem;
use crate::judge::process::{Sandbox, SandboxSpec, find_program};
use crate::judge::{BuildContext, BuildError};
use crate::panel::spec::JudgeSpec;
use crate::panel::{Panel, PanelError, PanelSpec, Seat};
use crate::provider::{Client, WorstCase};
use crate::verdict::Fingerprint;

/// Prompt tokens a planned token: plans estimate, reservations must hold.
const PLAN_MARGIN: u64 = 4;

/// Why a loop can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The file lacks something, or a key in it is not right.
    #[error(transparent)]
    Config(#[from] Problem),
    /// The agent, or a command of the policy, can't be built.
    #[error("failed to set up the loop")]
    Build(#[from] BuildError),
    /// The panel can't be seated.
    #[error("failed to seat the panel")]
    Panel(#[from] PanelError),
    /// The feedback can't be built.
    #[error(transparent)]
    Feedback(#[from] FeedbackError),
    /// The profile does not hold for this loop.
    #[error(transparent)]
    Profile(#[from] CalibrationError),
}

/// A command of the policy.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Its arguments as JSON: the key in judgements.
    pub(super) key: String,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) directory: PathBuf,
    pub(super) sandbox: Sandbox,
}

/// A loop ready to run.
#[derive(Debug)]
pub struct Setup {
    /// The loop's name.
    pub name: String,
    /// What the agent is asked.
    pub task: String,
    /// What judges compare outputs with, where there is something; the agent never sees it.
    pub expected: Option<String>,
    /// What judges are shown beside the task.
    pub context: Option<String>,
    /// When to end.
    pub policy: Arc<Policy>,
    /// What judges.
    pub panel: Panel,
    /// The whole effective configuration, without the values of headers.
    pub config: Value,
    /// A hash of all that makes this run this run.
    pub config_hash: String,
    /// What a reader of the result should know.
    pub warnings: Vec<String>,
    /// How a person is asked.
    pub human: HumanSpec,
    /// Whether the agent may dispute what is found.
    pub disputes: bool,
    pub(super) agent: Box<dyn Agent>,
    pub(super) feedback: Feedback,
    pub(super) checks: Vec<Check>,
}

impl Setup {
    /// Builds a loop. `task` replaces the file's own; `base` is the folder of the file.
    ///
    /// # Errors
    /// No agent, panel or task; anything that can't be built; a judge that uses the agent's
    /// model; a limit on money with a model that has no price.
    pub fn new(
        spec: &LoopSpec,
        task: Option<String>,
        base: &Path,
        client: &Client,
    ) -> Result<Self, SetupError> {
        let missing = |section: &str| Problem::new(section, "this section is missing");
        let mut agent_spec = spec.agent.clone().ok_or_else(|| missing("agent"))?;
        let mut panel_spec = spec.panel.clone().ok_or_else(|| missing("panel"))?;
        let task = task
            .or_else(|| spec.task.clone())
            .filter(|task| !task.trim().is_empty())
            .ok_or_else(|| Problem::new("task", "no task: set it here, or give `--task`"))?;
        let context = BuildContext::new(base, client.clone());
        let panel_context = BuildContext::new(spec.panel_base.clone(), client.clone());
        if let AgentSpec::Workspace(workspace) = &agent_spec {
            run_checks_in(&mut panel_spec, &context.resolve(&workspace.directory));
        }
        let mut policy = Policy::new(
            &spec.exit,
            &spec.budget,
            &spec.strategy,
            spec.threshold,
            is_deterministic(&panel_spec),
        )?;
        let mut warnings = Vec::new();
        if let Some(price) = spec.budget.assume_price {
            if policy.limits.micro_dollars.is_none() {
                let message = "has no effect without a limit on money: set `usd` too";
                return Err(Problem::new("budget.assume_price", message).into());
            }
            let agent = prices::assume_for_agent(price, &mut agent_spec, &context)?;
            let judges = prices::assume_for_judges(price, &mut panel_spec, &panel_context);
            warnings.extend(prices::warning(price, agent, &judges));
        }
        let agent = agent_spec.build(&context)?;
        policy.gate = spec.human.gate().map_err(|problem| problem.inside("human"))?;
        if policy.gate.on_dispute && !spec.feedback.disputes {
            let message = "`on_dispute` has no effect without `feedback.disputes = true`";
            return Err(Problem::new("human.ask", message).into());
        }
        // One threshold in the policy is the panel's too, so that vetoes and rulings agree.
        if panel_spec.profile.is_some() {
            decide_by_profile(spec, &mut panel_spec, &mut policy)?;
        } else if let Some(threshold) = only_threshold(&policy.exit) {
            panel_spec.threshold = threshold;
        }
        let mut panel = Panel::seat(&panel_spec, &panel_context)?;
        panel.allow_generations(policy.limits.max_generations)?;
        if panel.reserve().is_some() {
            policy.confirm_by_reserve(spec.exit.confirm)?;
        }
        if spec.exit.early_decision {
            panel.decide_early();
        }
        warnings.extend(take_noise(&mut policy, &panel_spec, &panel));
        policy.weights = criterion_weights(&panel);
        warnings.extend(policy.warnings());
        warnings.extend(panel.warnings());
        warnings.extend(judges_itself(&agent_spec, agent.as_ref(), &panel)?);
        prices::check(&policy, agent.as_ref(), &panel)?;
        let checks = checks(&policy, &context)?;
        let mut config = serde_json::to_value(spec).unwrap_or_default();
        crate::config::secret::hide(&mut config);
        let mut identity = json!({
            "config": config, "task": task, "agent": agent.identity(),
            "panel": panel.fingerprint(),
        });
        if let (Some(reserve), Some(map)) = (panel.reserve(), identity.as_object_mut()) {
            map.insert("reserve".to_owned(), json!(reserve.fingerprint()));
        }
        Ok(Self {
            name: spec.name.clone(),
            config_hash: Fingerprint::of("loop", &identity).to_string(),
            task,
            expected: spec.expected.clone(),
            context: spec.context.clone(),
            policy: Arc::new(policy),
            panel,
            config,
            warnings,
            human: spec.human.clone(),
            disputes: spec.feedback.disputes,
            agent,
            feedback: spec.feedback.build(base)?,
            checks,
        })
    }
}

impl Setup {
    /// Whether a model is asked for anything.
    #[must_use]
    pub fn uses_models(&self) -> bool {
        self.agent.model().is_some() || seats(&self.panel).any(|s| s.judge.model().is_some())
    }

    /// The case of an output.
    pub(super) fn case(&self, output: &str) -> Case {
        let mut case = Case::new(self.task.clone(), output);
        case.expected.clone_from(&self.expected);
        case.context.clone_from(&self.context);
        case
    }

    /// The most that the judges of these panels take, each so many times over.
    pub(super) fn judging(&self, output: &str, rounds: &[(&Panel, u64)]) -> WorstCase {
        let case = self.case(output);
        let mut worst = WorstCase { micro_dollars: Some(0), ..WorstCase::default() };
        for (panel, rounds) in rounds {
            for seat in &panel.seats {
                let plan = seat.judge.plan(&case);
                let times = rounds * u64::from(seat.samples);
                worst.tokens_in += plan.tokens_in * PLAN_MARGIN * times;
                worst.tokens_out += plan.tokens_out * times;
                let cost = plan.cost_usd.unwrap_or(0.0) * times as f64 * PLAN_MARGIN as f64;
                worst.micro_dollars =
                    worst.micro_dollars.map(|sum| sum + (cost * 1e6).ceil() as u64);
            }
        }
        worst
    }

    /// What a call of the agent with this prompt takes, as far as that is known before, and the
    /// most that judging and confirming an output of this size takes.
    pub(super) fn worst_case(&self, prompt: &str, output: &str) -> (WorstCase, WorstCase) {
        let nothing = WorstCase { micro_dollars: Some(0), ..WorstCase::default() };
        let call = self.agent.worst_case(prompt).unwrap_or(nothing);
        (call, self.judging(output, &self.rounds()))
    }

    /// The panel of a judgement.
    pub(super) fn panel_of(&self, round: Round) -> &Panel {
        match round {
            Round::First | Round::Dispute => &self.panel,
            Round::Confirm(_) => self.panel.reserve().unwrap_or(&self.panel),
        }
    }

    /// The panels that judge an output until it is accepted, and how often each.
    pub(super) fn rounds(&self) -> [(&Panel, u64); 2] {
        [
            (self.panel_of(Round::First), 1 + u64::from(self.disputes)),
            (self.panel_of(Round::Confirm(1)), u64::from(self.policy.confirm)),
        ]
    }
}

/// Every seat, those of the reserve included.
pub(super) fn seats(panel: &Panel) -> impl Iterator<Item = &Seat> {
    panel.seats.iter().chain(panel.reserve().into_iter().flat_map(|reserve| &reserve.seats))
}

/// Checks without a folder of their own run in the workspace.
pub(crate) fn run_checks_in(panel: &mut PanelSpec, directory: &Path) {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    for seat in &mut panel.judge {
        let JudgeSpec::Command(command) = &mut seat.judge else { continue };
        if command.files.is_none() {
            for check in &mut command.checks {
                check.cwd.get_or_insert_with(|| directory.clone());
            }
        }
    }
}

/// Whether every counted judge measures the same for the same output.
#[must_use]
pub fn is_deterministic(panel: &PanelSpec) -> bool {
    let counted = panel.judge.iter().filter(|seat| !seat.seat.report_only && !seat.seat.reserve);
    counted.map(|seat| &seat.judge).all(is_exact)
}

/// Whether a judge measures the same for the same output.
fn is_exact(judge: &JudgeSpec) -> bool {
    match judge {
        // A model asked once runs at temperature 0 unless the file says otherwise.
        JudgeSpec::Llm(llm) => {
            llm.samples.unwrap_or(1) <= 1 && llm.temperature.unwrap_or(0.0) == 0.0
        }
        JudgeSpec::Human(_) | JudgeSpec::Http(_) => false,
        JudgeSpec::Rule(_)
        | JudgeSpec::Command(_)
        | JudgeSpec::Script(_)
        | JudgeSpec::Observe(_)
        | JudgeSpec::Replay(_) => true,
    }
}

/// Takes the noise of a panel that varies from its profile, where the file names none and the
/// profile has measured every judge that varies. What the profile lacks is said.
pub fn take_noise(policy: &mut Policy, spec: &PanelSpec, panel: &Panel) -> Option<String> {
    let own = panel.profile()?.profile();
    if policy.noise_sd.is_some() {
        return None;
    }
    let Some(noise) = &own.noise else {
        return Some(format!(
            "profile `{}` holds no test-retest noise: calibrate on judgements with several samples to have it",
            own.name
        ));
    };
    let varies = |name: &str| {
        let mut seats = spec.judge.iter().filter(|seat| seat.seat.name == name);
        seats.any(|seat| seat.seat.votes() && !is_exact(&seat.judge))
    };
    let lacks: Vec<&str> =
        noise.once.iter().map(String::as_str).filter(|name| varies(name)).collect();
    if lacks.is_empty() {
        policy.noise_sd = Some(noise.sd);
        return None;
    }
    Some(format!(
        "the test-retest noise of profile `{}` is not used: it has measured nothing of {} twice",
        own.name,
        lacks.join(", ")
    ))
}

/// The weights of the criteria that the voting judges score, 1 on average: each judge's own
/// add up to its weight on the panel.
fn criterion_weights(panel: &Panel) -> BTreeMap<String, f64> {
    let mut weights: BTreeMap<String, f64> = BTreeMap::new();
    for seat in panel.seats.iter().filter(|seat| !seat.report_only) {
        let own = seat.criterion_weights();
        let whole: f64 = own.iter().map(|(_, weight)| weight).sum();
        for (name, weight) in own.into_iter().filter(|_| whole > 0.0) {
            *weights.entry(name).or_default() += seat.weight * weight / whole;
        }
    }
    let mean = weights.values().sum::<f64>() / weights.len().max(1) as f64;
    if mean > 0.0 {
        weights.values_mut().for_each(|weight| *weight /= mean);
    }
    weights
}

fn thresholds(exit: &Node) -> Vec<f64> {
    let leaves = exit.leaves().into_iter().filter_map(|leaf| match leaf {
        Condition::QualityThreshold { threshold } => *threshold,
        _ => None,
    });
    let mut thresholds: Vec<f64> = leaves.collect();
    thresholds.dedup();
    thresholds
}

/// The threshold that a tree of conditions asks for, where it asks for one only.
pub fn only_threshold(exit: &Node) -> Option<f64> {
    match thresholds(exit).as_slice() {
        [threshold] => Some(*threshold),
        _ => None,
    }
}

/// Under a profile the panel decides, by a key and not by a plain score. A threshold that the
/// file's conditions ask for is one for the calibrated score.
///
/// # Errors
/// When they ask for several.
pub fn decide_by_profile(
    spec: &LoopSpec,
    panel: &mut PanelSpec,
    policy: &mut Policy,
) -> Result<(), Problem> {
    let own = own_threshold(&spec.exit.node())?;
    panel.profile_options.threshold = panel.profile_options.threshold.or(own);
    policy.leave_threshold_to_panel();
    Ok(())
}

/// The threshold that a file's conditions ask for; under a profile there can be one only.
fn own_threshold(exit: &Node) -> Result<Option<f64>, Problem> {
    match thresholds(exit).as_slice() {
        [] => Ok(None),
        [threshold] => Ok(Some(*threshold)),
        _ => Err(Problem::new(
            "exit",
            "several thresholds: under a profile one threshold decides; leave them out to use the certified one",
        )),
    }
}

/// A judge that uses the agent's model likes what it wrote.
fn judges_itself(
    spec: &AgentSpec,
    agent: &dyn Agent,
    panel: &Panel,
) -> Result<Option<String>, Problem> {
    let Some(model) = agent.model() else { return Ok(None) };
    let Some(seat) = seats(panel).find(|seat| {
        let own = seat.judge.model();
        // Coding agents name their models without a provider.
        let bare = own.and_then(|own| own.split_once('/')).map(|(_, name)| name);
        !seat.report_only && (own == Some(model) || bare == Some(model))
    }) else {
        return Ok(None);
    };
    if spec.allows_self_judging() {
        return Ok(Some(format!("the judge `{}` uses the agent's model `{model}`", seat.name)));
    }
    Err(Problem::new(
        "panel",
        format!(
            "the judge `{}` uses the agent's model `{model}`: models favour their own outputs; seat another, or set `agent.allow_self_judging = true`",
            seat.name
        ),
    ))
}

fn checks(policy: &Policy, context: &BuildContext) -> Result<Vec<Check>, BuildError> {
    let directory = std::path::absolute(&context.base).unwrap_or_else(|_| context.base.clone());
    policy
        .commands()
        .into_iter()
        .map(|argv| {
            Ok(Check {
                key: json!(argv).to_string(),
                program: find_program(&argv[0], "exit.command.argv[0]", context, &[])?,
                arguments: argv[1..].to_vec(),
                directory: directory.clone(),
                sandbox: SandboxSpec::default().build("exit.command", context)?,
            })
        })
        .collect()
}
