//! A loop file: agent, panel, and when to end.

use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::AgentSpec;
use super::feedback::FeedbackSpec;
use super::policy::{BudgetSpec, ExitSpec, HumanSpec, StrategySpec};
use super::starts::StartsSpec;
use crate::config::{ConfigError, Problem, Problems, from_value_all, read_file};
use crate::panel::PanelSpec;

/// The threshold where neither the policy nor the panel names one.
const DEFAULT_THRESHOLD: f64 = 0.9;

/// A loop file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoopSpec {
    /// The loop's name in reports.
    #[serde(default = "default_name")]
    pub name: String,
    /// What the agent is asked, where the command line does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What judges compare outputs with, such as the right answer. The agent never sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What judges are shown beside the task, such as sources. The agent sees only the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// What makes outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSpec>,
    /// What judges them: a panel's own keys, or `path` (and a `threshold`, where it is to be
    /// another).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "panel_schema")]
    pub panel: Option<PanelSpec>,
    /// When to end.
    #[serde(default)]
    pub exit: ExitSpec,
    /// How the next prompt is made.
    #[serde(default)]
    pub feedback: FeedbackSpec,
    /// Which version is gone on from.
    #[serde(default)]
    pub strategy: StrategySpec,
    /// Several independent starts, where wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<StartsSpec>,
    /// When a person is asked.
    #[serde(default)]
    pub human: HumanSpec,
    /// What can't be passed.
    #[serde(default)]
    pub budget: BudgetSpec,
    /// The score that outputs must reach where a condition names none. Not a key of the file.
    #[serde(skip, default = "default_threshold")]
    pub threshold: f64,
    /// The folder that the panel's paths start from. Not a key of the file.
    #[serde(skip)]
    pub panel_base: PathBuf,
}

fn default_name() -> String {
    "loop".to_owned()
}

fn default_threshold() -> f64 {
    DEFAULT_THRESHOLD
}

/// The folder of a file. The one of a bare name is `.`: an empty path is none at all.
#[must_use]
pub fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The ways in which a loop names its panel.
fn panel_schema(generator: &mut SchemaGenerator) -> Schema {
    let panel = generator.subschema_for::<PanelSpec>();
    json_schema!({
        "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": { "path": { "type": "string" }, "threshold": { "type": "number" } },
                "required": ["path"],
                "additionalProperties": false,
            },
            panel,
        ],
    })
}

impl LoopSpec {
    /// Reads a loop file.
    ///
    /// # Errors
    /// When it, or the panel file that it names, can't be read or is not right.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = read_file(path)?;
        let mut value = file.value.clone();
        let panel = value.as_object_mut().and_then(|table| table.remove("panel"));
        let mut problems = Problems::default();
        let spec = from_value_all::<Self>(value);
        let feedback = spec.as_ref().map_or(Ok(()), |spec| spec.feedback.check());
        if let Err(problem) = feedback {
            problems.push(problem.inside("feedback"));
        }
        let panel = match panel.map(|panel| PanelSection::read(panel, &folder(path))).transpose() {
            Ok(panel) => panel,
            Err(PanelFault::Elsewhere(error)) => return Err(error),
            Err(PanelFault::Here(found)) => {
                problems.extend_inside("panel", found);
                None
            }
        };
        let mut spec = match spec {
            Ok(spec) if problems.is_empty() => spec,
            Ok(_) => return Err(ConfigError::invalid(&file, problems)),
            Err(found) => {
                problems.extend_inside("", found);
                return Err(ConfigError::invalid(&file, problems));
            }
        };
        if let Some(PanelSection { panel, base }) = panel {
            spec.threshold = panel.threshold;
            spec.panel_base = base;
            spec.panel = Some(panel);
        }
        Ok(spec)
    }
}

/// The section `[panel]`, read.
struct PanelSection {
    panel: PanelSpec,
    /// The folder that its paths start from.
    base: PathBuf,
}

/// Where the panel is not right: in the loop's file, or in the one that it names.
enum PanelFault {
    Here(Problems),
    Elsewhere(ConfigError),
}

impl From<Problem> for PanelFault {
    fn from(problem: Problem) -> Self {
        Self::Here(problem.into())
    }
}

impl PanelSection {
    fn read(section: Value, base: &Path) -> Result<Self, PanelFault> {
        let mut table = match section {
            Value::String(file) => serde_json::Map::from_iter([("path".to_owned(), file.into())]),
            Value::Object(table) => table,
            other => {
                let message = format!("expected a table or a path, found `{other}`");
                return Err(Problem::new("", message).into());
            }
        };
        let mut explicit = table.get("threshold").cloned();
        let (mut panel, base) = match table.remove("path") {
            None => {
                let panel =
                    PanelSpec::from_value(Value::Object(table)).map_err(PanelFault::Here)?;
                (panel, base.to_owned())
            }
            Some(Value::String(name)) => {
                table.remove("threshold");
                if let Some(key) = table.keys().next() {
                    let message = "has no effect beside `path`: set it in the panel's file";
                    return Err(Problem::new(key.as_str(), message).into());
                }
                let path = base.join(name);
                let file = read_file(&path).map_err(PanelFault::Elsewhere)?;
                let mut value = file.value.clone();
                match (&explicit, value.as_object_mut()) {
                    (Some(threshold), Some(panel)) => {
                        panel.insert("threshold".to_owned(), threshold.clone());
                    }
                    (None, Some(panel)) => explicit = panel.get("threshold").cloned(),
                    _ => {}
                }
                let panel = PanelSpec::from_value(value).map_err(|problems| {
                    PanelFault::Elsewhere(ConfigError::invalid(&file, problems))
                })?;
                (panel, folder(&path))
            }
            Some(other) => {
                return Err(
                    Problem::new("path", format!("expected a path, found `{other}`")).into()
                );
            }
        };
        if explicit.is_none() {
            panel.threshold = DEFAULT_THRESHOLD;
        }
        Ok(Self { panel, base })
    }
}
