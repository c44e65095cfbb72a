//! The `command` agent: any executable, prompt in, output out.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Agent, AgentError, Made, Request, estimated_tokens};
use crate::judge::process::{
    Ending, Finished, Launch, Period, Sandbox, SandboxSpec, Until, file_identity, find_program,
    plain, run,
};
use crate::judge::{BuildContext, BuildError};
use crate::provider::CallContext;
use crate::verdict::{Status, Usage};

/// What of a failing program's words is told: lines and characters.
const TOLD: (usize, usize) = (12, 1200);

/// Output kept where the file says nothing, in KiB.
const OUTPUT_KB: u64 = 4096;

/// Configuration of a `command` agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandAgentSpec {
    /// The program and its arguments. `{generation}` stands for the output's number.
    pub argv: Vec<String>,
    /// How long a call may take; 300 seconds when absent.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Whether the program calls a model whose tokens nobody reports: its prompt and output
    /// are then counted as tokens, marked as estimated. Set to false for a program without a
    /// model.
    #[serde(default = "yes")]
    pub estimate_tokens: bool,
    /// Whether a call whose end is not known (the machine went down) may not be repeated
    /// without asking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub side_effects: bool,
    /// What the program may see and use.
    #[serde(default)]
    pub sandbox: SandboxSpec,
}

pub(super) fn default_timeout() -> Period {
    Period::new(Duration::from_secs(300))
}

pub(super) fn yes() -> bool {
    true
}

/// A program that is run for each output.
#[derive(Clone, Debug)]
pub(super) struct Program {
    argv: Vec<String>,
    program: PathBuf,
    directory: PathBuf,
    timeout: Duration,
    sandbox: Sandbox,
    identity: Value,
}

impl Program {
    pub(super) fn new(
        argv: &[String],
        timeout: Period,
        sandbox: &SandboxSpec,
        directory: PathBuf,
        context: &BuildContext,
    ) -> Result<Self, BuildError> {
        let Some(first) = argv.first() else {
            return Err(BuildError::invalid("agent.argv", "expected a program, found none"));
        };
        if let Some(argument) = argv.iter().find(|argument| argument.contains('\0')) {
            let reason = format!("`{}` holds a zero byte", argument.escape_debug());
            return Err(BuildError::invalid("agent.argv", reason));
        }
        if timeout.get().is_zero() {
            return Err(BuildError::invalid("agent.timeout", "expected more than 0 seconds"));
        }
        let mut sandbox = sandbox.clone();
        sandbox.output_kb.get_or_insert(OUTPUT_KB);
        let named: Vec<Value> = argv.iter().map(|a| file_identity(a, context)).collect();
        Ok(Self {
            program: find_program(first, "agent.argv[0]", context, &[])?,
            argv: argv.to_vec(),
            directory,
            timeout: timeout.get(),
            identity: json!({ "argv": named, "timeout": timeout, "sandbox": sandbox }),
            sandbox: sandbox.build("agent.sandbox", context)?,
        })
    }

    pub(super) fn identity(&self) -> &Value {
        &self.identity
    }

    /// Runs the program on a prompt, and gives what it printed.
    pub(super) async fn run(
        &self,
        request: &Request<'_>,
        context: &CallContext,
    ) -> Result<String, AgentError> {
        let private = tempfile::tempdir().map_err(|error| {
            AgentError::failed(Status::Internal, format!("no temporary folder: {error}"))
        })?;
        let generation = request.generation.to_string();
        let launch = Launch {
            program: self.program.clone(),
            arguments: self.argv[1..]
                .iter()
                .map(|argument| argument.replace("{generation}", &generation).into())
                .collect(),
            directory: self.directory.clone(),
            private: private.path().to_owned(),
            variables: vec![
                ("VENIRE_GENERATION".to_owned(), generation.clone().into()),
                ("VENIRE_CALL".to_owned(), request.call.to_string().into()),
            ],
            sandbox: self.sandbox.clone(),
        };
        let until = Until { context, timeout: Some(self.timeout) };
        let finished = run(&launch, request.prompt.as_bytes(), until)
            .await
            .map_err(|error| AgentError::failed(Status::ProviderError, error.to_string()))?;
        self.read(&finished)
    }

    fn read(&self, finished: &Finished) -> Result<String, AgentError> {
        let name = &self.argv[0];
        let words = || {
            let tail = plain::tail(&finished.stderr.text(), TOLD.0, TOLD.1);
            if tail.is_empty() { String::new() } else { format!(":\n{tail}") }
        };
        if let Some((status, how)) = finished.ending.failure() {
            return Err(AgentError::failed(status, format!("`{name}` {how}{}", words())));
        }
        match finished.ending {
            Ending::Exited(0) => {}
            Ending::Exited(code) => {
                let detail = format!("`{name}` exited with {code}{}", words());
                return Err(AgentError::failed(Status::ProviderError, detail));
            }
            other => {
                let detail = format!("`{name}` ended as {other:?}{}", words());
                return Err(AgentError::failed(Status::ProviderError, detail));
            }
        }
        let Some(bytes) = finished.stdout.whole() else {
            let detail = format!(
                "`{name}` printed more than the {} bytes that are kept: raise `sandbox.output_kb` if that is right",
                self.sandbox.output_bytes()
            );
            return Err(AgentError::failed(Status::Truncated, detail));
        };
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let detail = format!("`{name}` printed what is not UTF-8 text: byte {at} is broken");
            AgentError::failed(Status::Unparseable, detail)
        })
    }
}

/// The built agent.
#[derive(Debug)]
pub(super) struct CommandAgent {
    program: Program,
    estimate: bool,
    side_effects: bool,
}

impl CommandAgentSpec {
    pub(super) fn build(&self, context: &BuildContext) -> Result<CommandAgent, BuildError> {
        let directory = std::path::absolute(&context.base).unwrap_or_else(|_| context.base.clone());
        Ok(CommandAgent {
            program: Program::new(&self.argv, self.timeout, &self.sandbox, directory, context)?,
            estimate: self.estimate_tokens,
            side_effects: self.side_effects,
        })
    }
}

/// What a call took where nobody counted.
pub(super) fn estimated(prompt: &str, output: &str, counts: bool) -> Usage {
    if !counts {
        return Usage::default();
    }
    Usage {
        tokens_in: estimated_tokens(prompt),
        tokens_out: estimated_tokens(output),
        calls: 1,
        estimated: true,
        ..Usage::default()
    }
}

impl Agent for CommandAgent {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn identity(&self) -> Value {
        self.program.identity().clone()
    }

    fn has_side_effects(&self) -> bool {
        self.side_effects
    }

    fn generate<'a>(
        &'a self,
        request: &'a Request<'a>,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Made, AgentError>> {
        Box::pin(async move {
            let text = self.program.run(request, context).await?;
            if text.trim().is_empty() {
                return Err(AgentError::empty("the agent printed nothing"));
            }
            let usage = estimated(request.prompt, &text, self.estimate);
            Ok(Made { text, snapshot: None, usage, micro_dollars: None, booked: false })
        })
    }
}
