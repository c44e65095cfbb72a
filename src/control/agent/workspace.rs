//! The `workspace` agent: a command that edits a folder under git.
//!
//! Its output is the patch against the state at the start, untracked files included. The
//! folder is brought to the version to go on from before each call, and to the best one at
//! the end.

use std::path::PathBuf;
use std::sync::OnceLock;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command::{Calling, Program, default_timeout, yes};
use super::git::Repository;
use super::preset::Preset;
use super::{Agent, AgentError, Made, Request};
use crate::judge::process::{Period, SandboxSpec};
use crate::judge::{BuildContext, BuildError};
use crate::provider::{CallContext, Price, WorstCase};
use crate::verdict::Status;

/// Configuration of a `workspace` agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSpec {
    /// The program and its arguments, run in the folder with the prompt on its standard
    /// input. `{generation}` and `{prompt_file}` as for the `command` agent. May be left out
    /// with a preset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// As for the `command` agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// As for the `command` agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// As for the `command` agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// As for the `command` agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The folder, under git. Checks of `command` judges without a `cwd` run in it.
    pub directory: PathBuf,
    /// As for the `command` agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How long a call may take; 300 seconds when absent.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// As for the `command` agent.
    #[serde(default = "yes")]
    pub estimate_tokens: bool,
    /// As for the `command` agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_self_judging: bool,
    /// What the program may see and use.
    #[serde(default)]
    pub sandbox: SandboxSpec,
}

/// The built agent.
#[derive(Debug)]
pub(super) struct WorkspaceAgent {
    program: Program,
    repository: Repository,
    /// The state at the start.
    start: OnceLock<String>,
}

impl WorkspaceSpec {
    pub(super) fn build(&self, context: &BuildContext) -> Result<WorkspaceAgent, BuildError> {
        let path = context.resolve(&self.directory);
        let directory = path.canonicalize().map_err(|source| BuildError::File {
            field: "agent.directory".into(),
            path: path.clone(),
            source,
        })?;
        if !directory.ancestors().any(|folder| folder.join(".git").exists()) {
            let reason = format!(
                "`{}` is not under git: the best version could not be restored; `git init` it",
                path.display()
            );
            return Err(BuildError::invalid("agent.directory", reason));
        }
        let calling = Calling {
            argv: &self.argv,
            preset: self.preset,
            args: &self.args,
            model: self.model.as_deref(),
            price: self.price,
            max_tokens: self.max_tokens,
            timeout: self.timeout,
            estimate: self.estimate_tokens,
            sandbox: &self.sandbox,
            directory: directory.clone(),
            edits: true,
        };
        let program = Program::new(calling, context)?;
        let litter = self.preset.map(Preset::litter).unwrap_or_default();
        Ok(WorkspaceAgent {
            program,
            repository: Repository::new(directory, litter),
            start: OnceLock::new(),
        })
    }
}

impl WorkspaceAgent {
    async fn work(&self, request: &Request<'_>, context: &CallContext) -> Result<Made, AgentError> {
        let Some(start) = self.start.get() else {
            return Err(AgentError::failed(Status::Internal, "the run was not begun"));
        };
        self.repository.restore(request.snapshot.unwrap_or(start)).await?;
        let said = self.program.run(request, context).await?;
        let snapshot = self.repository.snapshot().await?;
        let text = self.repository.diff(start, &snapshot).await?;
        let words = format!("{}{text}", said.text);
        let (usage, micro_dollars) = self.program.taken(request.prompt, &words, Some(&said));
        if text.trim().is_empty() {
            let error = AgentError::empty("the agent changed nothing");
            return Err(error.after(usage, micro_dollars));
        }
        Ok(Made {
            text,
            words: Some(said.text),
            snapshot: Some(snapshot),
            usage,
            micro_dollars,
            booked: false,
        })
    }
}

impl Agent for WorkspaceAgent {
    fn kind(&self) -> &'static str {
        "workspace"
    }

    fn identity(&self) -> Value {
        json!({ "program": self.program.identity(), "directory": self.repository.directory() })
    }

    fn model(&self) -> Option<&str> {
        self.program.model()
    }

    fn is_priced(&self) -> bool {
        self.program.is_priced()
    }

    fn worst_case(&self, prompt: &str) -> Option<WorstCase> {
        self.program.worst_case(prompt)
    }

    fn begin<'a>(
        &'a self,
        start: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, AgentError>> {
        Box::pin(async move {
            let start = match start {
                Some(start) => start.to_owned(),
                None => self.repository.snapshot().await?,
            };
            Ok(Some(self.start.get_or_init(|| start).clone()))
        })
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request<'a>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Made, AgentError>> {
        Box::pin(self.work(request, context))
    }

    fn restore<'a>(&'a self, snapshot: Option<&'a str>) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            match snapshot.or(self.start.get().map(String::as_str)) {
                Some(tree) => self.repository.restore(tree).await,
                None => Ok(()),
            }
        })
    }
}
