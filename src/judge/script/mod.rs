//! The `script` judge: an executable that reads cases and writes answers as JSON, one
//! process a case or long-lived, a line each way.
//!
//! The answer is one JSON value on standard output and nothing else; logs belong on standard
//! error. Nothing is guessed from an answer that is not in its form.

pub(crate) mod answer;
mod lines;
mod port;

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::answer::AnswerForm;
use self::lines::Workers;
use super::process::{
    Ending, Launch, Period, Sandbox, SandboxSpec, Until, file_identity, find_program,
    missing_files, missing_warning, plain, run,
};
use super::reported::Reported;
use super::{BoxedJudge, BuildContext, BuildError, Judge};
use crate::case::Case;
use crate::provider::CallContext;
use crate::score::Scale;
use crate::verdict::{Fingerprint, Status, Verdict};

/// Configuration of a `script` judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// One process a case, or long-lived ones.
    #[serde(default)]
    pub mode: Mode,
    /// Long-lived processes at most, each with one case at a time; 1 when absent. Only with
    /// `mode = "lines"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Whether every answer must carry the case's `id`. An `id` that is there is always
    /// checked.
    #[serde(default)]
    pub echo_id: bool,
    /// The scale of `score` in the answers, criteria included; `unit` when absent.
    #[serde(default = "unit")]
    pub scale: Scale,
    /// How long one case may take; only the judge's deadline holds when absent.
    /// In a panel file the seat's `timeout` stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub timeout: Option<Period>,
    /// Where it runs; the configuration's folder when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// What the program may see and use.
    #[serde(default)]
    pub sandbox: SandboxSpec,
}

/// How long a script lives.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One process a case.
    #[default]
    Once,
    /// Reads a case a line and answers with a line, until its input ends.
    Lines,
}

fn unit() -> Scale {
    Scale::UNIT
}

/// The built judge.
#[derive(Debug)]
struct ScriptJudge {
    program: PathBuf,
    /// As configured, for what is said before it runs.
    argv: Vec<String>,
    base: PathBuf,
    arguments: Vec<OsString>,
    directory: PathBuf,
    timeout: Option<Period>,
    form: AnswerForm,
    sandbox: Sandbox,
    workers: Option<Workers>,
    reported: Reported,
    fingerprint: Fingerprint,
}

impl ScriptSpec {
    /// Checks the configuration and finds the program.
    ///
    /// # Errors
    /// An empty `argv`, a program that is not there, `workers` of 0 or without lines mode, a
    /// timeout of 0, a folder that can't be read.
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        let Some(first) = self.argv.first() else {
            let reason = "expected a program and its arguments, found an empty list";
            return Err(BuildError::invalid("argv", reason));
        };
        if let Some(i) = self.argv.iter().position(|argument| argument.contains('\0')) {
            return Err(BuildError::invalid(format!("argv[{i}]"), "holds a zero byte"));
        }
        match (self.workers, self.mode) {
            (Some(0), _) => {
                return Err(BuildError::invalid("workers", "expected 1 or more, found 0"));
            }
            (Some(_), Mode::Once) => {
                let reason = "has no effect when each case has a process: set `mode = \"lines\"`";
                return Err(BuildError::invalid("workers", reason));
            }
            _ => {}
        }
        if self.timeout.is_some_and(|timeout| timeout.get().is_zero()) {
            return Err(BuildError::invalid("timeout", "expected more than 0 seconds"));
        }
        let program = find_program(first, "argv[0]", context, &[])?;
        let directory = context.resolve(self.cwd.as_deref().unwrap_or(std::path::Path::new("")));
        let directory = directory.canonicalize().map_err(|source| BuildError::File {
            field: "cwd".into(),
            path: directory.clone(),
            source,
        })?;
        let form = AnswerForm { scale: self.scale, echo_id: self.echo_id };
        let identity = json!({
            "argv": self.argv.iter().map(|a| file_identity(a, context)).collect::<Vec<_>>(),
            "mode": self.mode,
            "scale": self.scale,
            "timeout": self.timeout,
            "cwd": self.cwd,
            "sandbox": self.sandbox,
            "answer": answer::VERSION,
        });
        Ok(std::sync::Arc::new(ScriptJudge {
            program,
            argv: self.argv.clone(),
            base: context.base.clone(),
            arguments: self.argv[1..].iter().map(OsString::from).collect(),
            directory,
            timeout: self.timeout,
            form,
            sandbox: self.sandbox.build("sandbox", context)?,
            workers: (self.mode == Mode::Lines).then(|| Workers::new(self.workers.unwrap_or(1))),
            reported: Reported::default(),
            fingerprint: Fingerprint::of("script", &identity),
        }))
    }
}

impl Judge for ScriptJudge {
    fn kind(&self) -> &'static str {
        "script"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn warnings(&self) -> Vec<String> {
        let missing = missing_files(&self.argv, &[&self.directory, &self.base]);
        missing_warning("the script", &missing, &self.directory).into_iter().collect()
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            match serde_json::to_string(case) {
                Ok(json) => {
                    let line = json + "\n";
                    let ask = async |context: &CallContext| self.ask(case, line, context).await;
                    self.reported.ask(context, ask).await
                }
                Err(error) => Verdict::failed(Status::Internal, error.to_string()),
            }
        })
    }
}

impl ScriptJudge {
    async fn ask(&self, case: &Case, line: String, context: &CallContext) -> Verdict {
        let until = Until { context, timeout: self.timeout.map(Period::get) };
        match &self.workers {
            Some(workers) => {
                let start = |home: PathBuf| self.launch(home, Vec::new());
                workers.ask(start, &self.form, case, &line, until).await
            }
            None => self.ask_once(case, &line, until).await,
        }
    }

    fn launch(&self, private: PathBuf, variables: Vec<(String, OsString)>) -> Launch {
        Launch {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            directory: self.directory.clone(),
            private,
            variables,
            sandbox: self.sandbox.clone(),
        }
    }

    async fn ask_once(&self, case: &Case, line: &str, until: Until<'_>) -> Verdict {
        let home = match private_home() {
            Ok(home) => home,
            Err(verdict) => return *verdict,
        };
        let variables = vec![
            ("VENIRE_CASE_ID".to_owned(), OsString::from(case.id.replace('\0', ""))),
            ("VENIRE_SAMPLE".to_owned(), until.context.sample.to_string().into()),
        ];
        let launch = self.launch(home.path().to_owned(), variables);
        let finished = match run(&launch, line.as_bytes(), until).await {
            Ok(finished) => finished,
            Err(error) => return error.verdict(),
        };
        let noted = |verdict: Verdict| match &finished.isolation {
            Some(level) => verdict.note("isolation", level.as_str()),
            None => verdict,
        };
        if let Some((status, why)) = finished.ending.failure() {
            return noted(Verdict::failed(status, format!("the script {why}")));
        }
        if finished.ending != Ending::Exited(0) {
            return noted(died(&describe(finished.ending), &finished.stderr.text()));
        }
        noted(match finished.stdout.whole() {
            Some(bytes) => self.form.read(&bytes, case),
            None => Verdict::failed(
                Status::Unparseable,
                format!(
                    "the script wrote more than `sandbox.output_kb` allows ({} bytes too many)",
                    finished.stdout.omitted()
                ),
            ),
        })
    }
}

/// A failed measurement of a script that ended when it should not have.
fn died(how: &str, stderr: &str) -> Verdict {
    let said = plain::tail(stderr, 5, 1000);
    let detail = if said.is_empty() {
        format!("the script {how} and wrote nothing on stderr")
    } else {
        format!("the script {how}: {said}")
    };
    Verdict::failed(Status::ProviderError, detail)
}

fn describe(ending: Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("ended with exit code {code}"),
        Ending::Crashed(signal) => format!("crashed by signal {signal}"),
        other => other.failure().map(|(_, why)| why).unwrap_or_default(),
    }
}

fn private_home() -> Result<tempfile::TempDir, Box<Verdict>> {
    tempfile::Builder::new().prefix("venire-").tempdir().map_err(|error| {
        let detail = format!("failed to make a temporary folder: {error}");
        Box::new(Verdict::failed(Status::ProviderError, detail))
    })
}
