//! The `command` agent: any executable, prompt in, output out.

use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::{self, Said};
use super::preset::Preset;
use super::{Agent, AgentError, Made, Request, estimated_tokens};
use crate::judge::process::{
    Ending, Finished, Launch, Period, Sandbox, SandboxSpec, Until, file_identity, find_program,
    plain, run,
};
use crate::judge::{BuildContext, BuildError};
use crate::provider::{CallContext, Price, WorstCase};
use crate::verdict::{Status, Usage};

/// What of a failing program's words is told: lines and characters.
const TOLD: (usize, usize) = (12, 1200);

/// Stands in arguments for a file that holds the prompt.
const PROMPT_FILE: &str = "{prompt_file}";

/// Output kept where the file says nothing, in KiB.
const OUTPUT_KB: u64 = 4096;

/// Configuration of a `command` agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandAgentSpec {
    /// The program and its arguments. `{generation}` stands for the output's number, and
    /// `{prompt_file}` for a file that holds the prompt, which is then not on standard input.
    /// May be left out with a preset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// A known coding agent: its arguments, its environment variables, and how its answer,
    /// tokens and dollars are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// With a preset: arguments after its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// With a preset: the model that it is told to use. No judge may use the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// US dollars per million tokens, where the program does not report dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most tokens that the program takes for an answer, as far as you know: set aside
    /// before each call. Without it only the prompt is, and one answer may pass the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How long a call may take; 300 seconds when absent.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Whether the program calls a model: where nobody reports its tokens, its prompt and
    /// output are counted, marked as estimated. Set to false for a program without a model.
    #[serde(default = "yes")]
    pub estimate_tokens: bool,
    /// With a preset: whether a judge on the panel may use this agent's model. The result then
    /// says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_self_judging: bool,
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

/// How a program is to be called: what both kinds of agents have in common.
#[derive(Debug)]
pub(super) struct Calling<'a> {
    pub(super) argv: &'a [String],
    pub(super) preset: Option<Preset>,
    pub(super) args: &'a [String],
    pub(super) model: Option<&'a str>,
    pub(super) price: Option<Price>,
    pub(super) max_tokens: Option<u32>,
    pub(super) timeout: Period,
    pub(super) estimate: bool,
    pub(super) sandbox: &'a SandboxSpec,
    pub(super) directory: PathBuf,
    /// Whether it works on the folder, and does not just answer.
    pub(super) edits: bool,
}

/// A program that is run for each output.
#[derive(Clone, Debug)]
pub(super) struct Program {
    argv: Vec<String>,
    program: PathBuf,
    directory: PathBuf,
    timeout: Duration,
    sandbox: Sandbox,
    preset: Option<Preset>,
    model: Option<String>,
    price: Option<Price>,
    max_tokens: Option<u32>,
    estimate: bool,
    identity: Value,
}

impl Calling<'_> {
    /// The program and all its arguments.
    fn whole_argv(&self) -> Result<Vec<String>, BuildError> {
        let Some(preset) = self.preset else {
            let extra = [("args", !self.args.is_empty()), ("model", self.model.is_some())];
            if let Some((key, _)) = extra.into_iter().find(|(_, given)| *given) {
                let reason = "has no effect without a `preset`: write it into `argv`";
                return Err(BuildError::invalid(format!("agent.{key}"), reason));
            }
            return Ok(self.argv.to_vec());
        };
        if preset == Preset::Aider && !self.edits {
            let reason = "`aider` edits files and does not answer: use `kind = \"workspace\"`";
            return Err(BuildError::invalid("agent.preset", reason));
        }
        let mut argv =
            if self.argv.is_empty() { preset.argv(self.edits) } else { self.argv.to_vec() };
        if let Some(model) = self.model {
            argv.extend(["--model".to_owned(), model.to_owned()]);
        }
        argv.extend_from_slice(self.args);
        Ok(argv)
    }
}

impl Program {
    pub(super) fn new(calling: Calling<'_>, context: &BuildContext) -> Result<Self, BuildError> {
        let argv = calling.whole_argv()?;
        let Some(first) = argv.first() else {
            let names: Vec<&str> = Preset::ALL.iter().map(|preset| preset.name()).collect();
            let reason =
                format!("expected a program, found none; or a `preset`: {}", names.join(", "));
            return Err(BuildError::invalid("agent.argv", reason));
        };
        if let Some(argument) = argv.iter().find(|argument| argument.contains('\0')) {
            let reason = format!("`{}` holds a zero byte", argument.escape_debug());
            return Err(BuildError::invalid("agent.argv", reason));
        }
        if calling.timeout.get().is_zero() {
            return Err(BuildError::invalid("agent.timeout", "expected more than 0 seconds"));
        }
        if calling.price.is_some_and(|price| !price.is_valid()) {
            return Err(BuildError::invalid("agent.price", "expected numbers that are 0 or more"));
        }
        let mut sandbox = calling.sandbox.clone();
        sandbox.output_kb.get_or_insert(OUTPUT_KB);
        for name in calling.preset.iter().flat_map(|preset| preset.environment()) {
            if !sandbox.env.iter().any(|own| own == name) && !sandbox.set_env.contains_key(name) {
                sandbox.env.push(name.to_owned());
            }
        }
        let named: Vec<Value> = argv.iter().map(|a| file_identity(a, context)).collect();
        Ok(Self {
            program: find_program(first, "agent.argv[0]", context, &[])?,
            directory: calling.directory,
            timeout: calling.timeout.get(),
            identity: json!({
                "argv": named, "preset": calling.preset, "timeout": calling.timeout,
                "sandbox": sandbox,
            }),
            sandbox: sandbox.build("agent.sandbox", context)?,
            preset: calling.preset,
            model: calling.model.map(str::to_owned),
            price: calling.price,
            max_tokens: calling.max_tokens,
            estimate: calling.estimate,
            argv,
        })
    }

    pub(super) fn identity(&self) -> &Value {
        &self.identity
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Whether a call's dollars are known once it was made.
    pub(super) fn is_priced(&self) -> bool {
        let reports = self.preset.is_some_and(Preset::reports_cost);
        let pays = self.estimate || self.preset.is_some();
        reports || self.price.is_some() || !pays
    }

    /// What is known of a call before it is made: its prompt, and the answer as far as the
    /// configuration tells. What a client of a model pays is known after it only.
    pub(super) fn worst_case(&self, prompt: &str) -> Option<WorstCase> {
        if !self.estimate && self.preset.is_none() {
            return None;
        }
        let tokens_in = estimated_tokens(prompt);
        let tokens_out = self.max_tokens.map_or(1, u64::from);
        let usage = Usage { tokens_in, tokens_out, ..Usage::default() };
        let micro_dollars = Some(self.price.map_or(0, |price| price.micro_dollars(&usage)));
        Some(WorstCase { micro_dollars, tokens_in, tokens_out })
    }

    /// Runs the program on a prompt, and gives what it said. What a failed call took is in
    /// the error.
    pub(super) async fn run(
        &self,
        request: &Request<'_>,
        context: &CallContext,
    ) -> Result<Said, AgentError> {
        let private = tempfile::tempdir().map_err(|error| {
            AgentError::failed(Status::Internal, format!("no temporary folder: {error}"))
        })?;
        let generation = request.generation.to_string();
        let by_file = self.argv.iter().any(|argument| argument.contains(PROMPT_FILE));
        let file = private.path().join("prompt.md");
        if by_file {
            std::fs::write(&file, request.prompt).map_err(|error| {
                AgentError::failed(Status::Internal, format!("the prompt's file: {error}"))
            })?;
        }
        let file = file.to_string_lossy();
        let launch = Launch {
            program: self.program.clone(),
            arguments: self.argv[1..]
                .iter()
                .map(|argument| argument.replace("{generation}", &generation))
                .map(|argument| argument.replace(PROMPT_FILE, &file).into())
                .collect(),
            directory: self.directory.clone(),
            private: private.path().to_owned(),
            variables: vec![
                ("VENIRE_GENERATION".to_owned(), generation.clone().into()),
                ("VENIRE_CALL".to_owned(), request.call.to_string().into()),
                ("VENIRE_START".to_owned(), request.start.max(1).to_string().into()),
            ],
            sandbox: self.sandbox.clone(),
        };
        let until = Until { context, timeout: Some(self.timeout) };
        let input = if by_file { &[][..] } else { request.prompt.as_bytes() };
        let finished = run(&launch, input, until)
            .await
            .map_err(|error| AgentError::failed(Status::ProviderError, error.to_string()))?;
        let told = match self.preset {
            None => None,
            Some(preset) => batch::read(preset, &finished.stdout.text()),
        };
        if let Some(failure) = told.as_ref().and_then(|told| told.failure.clone()) {
            let detail = format!("`{}` failed: {failure}", self.argv[0]);
            return Err(self.spent(
                AgentError::failed(Status::ProviderError, detail),
                request,
                &told,
            ));
        }
        let printed = self.read(&finished).map_err(|error| self.spent(error, request, &told))?;
        match (self.preset, told) {
            (None, _) => Ok(Said { text: printed, ..Said::default() }),
            (Some(_), Some(said)) => Ok(said),
            (Some(preset), None) => {
                let detail = format!(
                    "`{}` did not print what `{}` prints in batch mode: {}",
                    self.argv[0],
                    preset.name(),
                    plain::tail(&printed, TOLD.0, TOLD.1)
                );
                Err(self.spent(AgentError::failed(Status::Unparseable, detail), request, &None))
            }
        }
    }

    fn spent(&self, error: AgentError, request: &Request<'_>, told: &Option<Said>) -> AgentError {
        let (usage, micro_dollars) = self.taken(request.prompt, "", told.as_ref());
        error.after(usage, micro_dollars)
    }

    /// What a call took: as reported, else estimated from `prompt` and `words`.
    pub(super) fn taken(
        &self,
        prompt: &str,
        words: &str,
        said: Option<&Said>,
    ) -> (Usage, Option<u64>) {
        let usage = said
            .and_then(|said| said.usage)
            .unwrap_or_else(|| estimated(prompt, words, self.estimate || self.preset.is_some()));
        let reported = said.and_then(|said| said.micro_dollars);
        (usage, reported.or_else(|| self.price.map(|price| price.micro_dollars(&usage))))
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
    side_effects: bool,
}

impl CommandAgentSpec {
    pub(super) fn build(&self, context: &BuildContext) -> Result<CommandAgent, BuildError> {
        let directory = std::path::absolute(&context.base).unwrap_or_else(|_| context.base.clone());
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
            directory,
            edits: false,
        };
        let program = Program::new(calling, context)?;
        Ok(CommandAgent { program, side_effects: self.side_effects })
    }
}

/// What a call took where nobody counted.
fn estimated(prompt: &str, output: &str, counts: bool) -> Usage {
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

    fn model(&self) -> Option<&str> {
        self.program.model()
    }

    fn is_priced(&self) -> bool {
        self.program.is_priced()
    }

    fn worst_case(&self, prompt: &str) -> Option<WorstCase> {
        self.program.worst_case(prompt)
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
            let said = self.program.run(request, context).await?;
            let (usage, micro_dollars) =
                self.program.taken(request.prompt, &said.text, Some(&said));
            if said.text.trim().is_empty() {
                let error = AgentError::empty("the agent printed nothing");
                return Err(error.after(usage, micro_dollars));
            }
            Ok(Made {
                text: said.text,
                words: None,
                snapshot: None,
                usage,
                micro_dollars,
                booked: false,
            })
        })
    }
}
