//! The `replay` agent: recorded outputs, in their order, and nothing past their end.

use std::path::PathBuf;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Agent, AgentError, Made, Request};
use crate::judge::{BuildContext, BuildError};
use crate::provider::CallContext;
use crate::verdict::{Status, Usage};

/// Configuration of a `replay` agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayAgentSpec {
    /// The outputs, in place of a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// A JSON Lines file: each line a text, or an object with the key `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// The built agent.
#[derive(Debug)]
pub(super) struct ReplayAgent {
    outputs: Vec<String>,
}

impl ReplayAgentSpec {
    pub(super) fn build(&self, context: &BuildContext) -> Result<ReplayAgent, BuildError> {
        let outputs =
            match (&self.file, self.outputs.is_empty()) {
                (None, false) => self.outputs.clone(),
                (Some(file), true) => {
                    let path = context.resolve(file);
                    crate::inputs::note(&path);
                    let text = std::fs::read_to_string(&path).map_err(|source| {
                        BuildError::File { field: "agent.file".into(), path: path.clone(), source }
                    })?;
                    read(&text).map_err(|(line, reason)| {
                        let reason = format!("`{}`, line {line}: {reason}", path.display());
                        BuildError::invalid("agent.file", reason)
                    })?
                }
                _ => {
                    let reason = "expected either `outputs` or `file`";
                    return Err(BuildError::invalid("agent", reason));
                }
            };
        if outputs.is_empty() {
            return Err(BuildError::invalid("agent.file", "holds no output"));
        }
        Ok(ReplayAgent { outputs })
    }
}

fn read(text: &str) -> Result<Vec<String>, (usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| {
            let value = crate::config::json(line).map_err(|message| (i + 1, message))?;
            let output = match &value {
                Value::String(text) => Some(text.clone()),
                other => other.get("output").and_then(Value::as_str).map(str::to_owned),
            };
            output.ok_or_else(|| {
                (i + 1, "expected a text, or an object with the key `output`".to_owned())
            })
        })
        .collect()
}

impl Agent for ReplayAgent {
    fn kind(&self) -> &'static str {
        "replay"
    }

    fn identity(&self) -> Value {
        json!({ "outputs": self.outputs })
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request<'a>,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Made, AgentError>> {
        let made = match self.outputs.get(request.call as usize - 1) {
            None => Err(AgentError::failed(
                Status::ProviderError,
                format!("the recording ends after {} outputs", self.outputs.len()),
            )),
            Some(text) if text.trim().is_empty() => {
                Err(AgentError::empty("the recorded output is empty"))
            }
            Some(text) => Ok(Made {
                text: text.clone(),
                words: None,
                snapshot: None,
                usage: Usage::default(),
                micro_dollars: None,
                booked: false,
            }),
        };
        Box::pin(std::future::ready(made))
    }
}
