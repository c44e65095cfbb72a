//! The `command` judge: a list of checks, each a program that says yes or no by its exit
//! code.
//!
//! The score is the weighted share of checks passed. A check that can't run is a failed
//! measurement and never a failed check. Nothing goes through a shell unless a check's
//! `argv` names one.

mod folder;
mod judge;

#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::process::{
    Period, Sandbox, SandboxSpec, file_identity, find_program, folder_identity, is_inside,
};
use super::{BoxedJudge, BuildContext, BuildError};
use crate::config::{check_weight, nearest};
use crate::verdict::Fingerprint;

/// Exit codes by which a shell says that it could not run a program.
const CANNOT_RUN: [i32; 2] = [126, 127];

/// Configuration of a `command` judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandSpec {
    /// The checks, run in this order; at least one.
    pub checks: Vec<CheckSpec>,
    /// The name of the file that holds the output, such as `answer.py`; a path below the
    /// case's folder.
    #[serde(default = "default_output_name")]
    pub output_name: String,
    /// A folder that is copied for each case, so that tests can run beside the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<PathBuf>,
    /// Whether the checks after a failed required one are left out.
    #[serde(default)]
    pub stop_on_required_failure: bool,
    /// What the programs may see and use.
    #[serde(default)]
    pub sandbox: SandboxSpec,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckSpec {
    /// The program and its arguments. `{output_file}`, `{input_file}`, `{expected_file}`,
    /// `{case_file}` (the case as JSON) and `{id}` stand for the case's.
    pub argv: Vec<String>,
    /// Its name in criteria and feedback; the program's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its share of the score; above 0.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Whether the output is rejected when it fails.
    #[serde(default)]
    pub required: bool,
    /// How long it may run; 60 seconds when absent.
    #[serde(default = "default_timeout")]
    pub timeout: Period,
    /// Whether an output that makes the check run past its `timeout` (or `cpu_seconds`) has
    /// failed it; else that is a failed measurement.
    #[serde(default)]
    pub timeout_fails: bool,
    /// The exit code that means passed.
    #[serde(default)]
    pub exit_code: i32,
    /// Exit codes that mean the check could not run, which is a failed measurement. When
    /// absent 126 and 127.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_codes: Option<Vec<i32>>,
    /// Where it runs. When absent the case's folder if there is `files` or a wall, else the
    /// configuration's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// What it reads on its standard input.
    #[serde(default)]
    pub stdin: Stdin,
}

/// What a check reads on its standard input.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// The output under judgement.
    #[default]
    Output,
    /// The case's input.
    Input,
    /// Nothing.
    None,
    /// The whole case as one line of JSON.
    Case,
}

fn default_output_name() -> String {
    "output.txt".to_owned()
}

fn default_weight() -> f64 {
    1.0
}

fn default_timeout() -> Period {
    Period::new(Duration::from_secs(60))
}

/// What an argument may stand for.
const PLACEHOLDERS: [&str; 5] =
    ["{output_file}", "{input_file}", "{expected_file}", "{case_file}", "{id}"];

/// A check ready to run.
#[derive(Clone, Debug)]
struct Check {
    spec: CheckSpec,
    name: String,
    program: PathBuf,
    /// Below the case's folder when true, since it is part of `files`.
    program_in_files: bool,
    cwd: Option<PathBuf>,
}

/// The built judge.
#[derive(Debug)]
struct CommandJudge {
    checks: Vec<Check>,
    output_name: String,
    files: Option<PathBuf>,
    base: PathBuf,
    stop_on_required_failure: bool,
    sandbox: Sandbox,
    fingerprint: Fingerprint,
}

impl CommandSpec {
    /// Checks the configuration and finds the programs.
    ///
    /// # Errors
    /// No checks, an empty `argv`, a program that is not there, a weight that is not above 0,
    /// a misspelt placeholder, two checks of one name, a folder that can't be read.
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        if self.checks.is_empty() {
            return Err(BuildError::invalid("checks", "expected at least one check, found none"));
        }
        if !is_inside(Path::new(&self.output_name)) {
            let reason = format!(
                "`{}` is not a file name: expected such as `answer.py` or `src/answer.py`",
                self.output_name
            );
            return Err(BuildError::invalid("output_name", reason));
        }
        let sandbox = self.sandbox.build("sandbox", context)?;
        let files = self.files.as_deref().map(|folder| read_folder(folder, context)).transpose()?;
        let mut checks: Vec<Check> = Vec::new();
        for (i, spec) in self.checks.iter().enumerate() {
            let check =
                spec.build(&format!("checks[{i}]"), context, files.as_ref().map(|f| &*f.0))?;
            if checks.iter().any(|other| other.name == check.name) {
                let reason =
                    format!("`{}` names two checks: give each a `name` of its own", check.name);
                return Err(BuildError::invalid(format!("checks[{i}].name"), reason));
            }
            checks.push(check);
        }
        let fingerprint = self.fingerprint(context, files.as_ref().map(|(_, hash)| hash), &sandbox);
        Ok(std::sync::Arc::new(CommandJudge {
            checks,
            output_name: self.output_name.clone(),
            files: files.map(|(folder, _)| folder),
            base: std::path::absolute(&context.base).unwrap_or_else(|_| context.base.clone()),
            stop_on_required_failure: self.stop_on_required_failure,
            sandbox,
            fingerprint,
        }))
    }

    fn fingerprint(
        &self,
        context: &BuildContext,
        files: Option<&String>,
        sandbox: &Sandbox,
    ) -> Fingerprint {
        let checks: Vec<_> = self
            .checks
            .iter()
            .map(|check| {
                let mut identity = json!({
                    "argv": check.argv.iter().map(|a| file_identity(a, context)).collect::<Vec<_>>(),
                    "name": check.name,
                    "weight": check.weight,
                    "required": check.required,
                    "timeout": check.timeout,
                    "exit_code": check.exit_code,
                    "error_codes": check.error_codes,
                    "cwd": check.cwd,
                    "stdin": check.stdin,
                });
                // Only where it is set: the others stay the judges that they were.
                if check.timeout_fails {
                    identity["timeout_fails"] = true.into();
                }
                identity
            })
            .collect();
        let identity = json!({
            "checks": checks,
            "output_name": self.output_name,
            "files": files,
            "stop_on_required_failure": self.stop_on_required_failure,
            "sandbox": sandbox.identity(),
        });
        Fingerprint::of("command", &identity)
    }
}

fn read_folder(folder: &Path, context: &BuildContext) -> Result<(PathBuf, String), BuildError> {
    let path = context.resolve(folder);
    let error = |source| BuildError::File { field: "files".into(), path: path.clone(), source };
    let full = path.canonicalize().map_err(error)?;
    if !full.is_dir() {
        let reason = format!("`{}` is not a folder", path.display());
        return Err(BuildError::invalid("files", reason));
    }
    let hash = folder_identity(&full).map_err(error)?;
    Ok((full, hash))
}

impl CheckSpec {
    fn build(
        &self,
        field: &str,
        context: &BuildContext,
        files: Option<&Path>,
    ) -> Result<Check, BuildError> {
        let at = |key: &str| format!("{field}.{key}");
        let Some(first) = self.argv.first() else {
            let reason = "expected a program and its arguments, found an empty list";
            return Err(BuildError::invalid(at("argv"), reason));
        };
        for (i, argument) in self.argv.iter().enumerate() {
            check_argument(argument, i == 0)
                .map_err(|reason| BuildError::invalid(at(&format!("argv[{i}]")), reason))?;
        }
        check_weight(self.weight, false)
            .map_err(|reason| BuildError::invalid(at("weight"), reason))?;
        if self.timeout.get().is_zero() {
            return Err(BuildError::invalid(at("timeout"), "expected more than 0 seconds"));
        }
        let name = match &self.name {
            Some(name) if name.trim().is_empty() => {
                return Err(BuildError::invalid(at("name"), "expected a name, found none"));
            }
            Some(name) => name.clone(),
            None => Path::new(first)
                .file_name()
                .map_or_else(|| first.clone(), |name| name.to_string_lossy().into_owned()),
        };
        let cwd = self.cwd.as_deref().map(|cwd| {
            let path = context.resolve(cwd);
            path.canonicalize().map_err(|source| BuildError::File {
                field: at("cwd"),
                path,
                source,
            })
        });
        let folders: Vec<&Path> = files.into_iter().collect();
        let program = find_program(first, &at("argv[0]"), context, &folders)?;
        let in_files = files
            .filter(|folder| program.starts_with(folder) && first.contains(std::path::is_separator))
            .and_then(|folder| program.strip_prefix(folder).ok().map(Path::to_owned));
        Ok(Check {
            spec: self.clone(),
            name,
            program_in_files: in_files.is_some(),
            program: in_files.unwrap_or(program),
            cwd: cwd.transpose()?,
        })
    }
}

fn check_argument(argument: &str, is_program: bool) -> Result<(), String> {
    if argument.contains('\0') {
        return Err("holds a zero byte".to_owned());
    }
    if is_program && PLACEHOLDERS.iter().any(|placeholder| argument.contains(placeholder)) {
        return Err(
            "the output can't be the program itself: name what runs it, such as [\"python3\", \"{output_file}\"]"
                .to_owned(),
        );
    }
    // Braces are common in arguments of jq, awk or find; only a near miss is a mistake.
    for part in argument.split('{').skip(1) {
        let Some((word, _)) = part.split_once('}') else { continue };
        let written = format!("{{{word}}}");
        if PLACEHOLDERS.contains(&written.as_str()) || word.len() < 4 {
            continue;
        }
        if let Some(meant) = nearest(&written, PLACEHOLDERS) {
            return Err(format!("unknown placeholder `{written}`; did you mean `{meant}`?"));
        }
    }
    Ok(())
}
