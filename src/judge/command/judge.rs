//! Runs the checks on one case.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;

use super::folder::{CaseFolder, Wanted};
use super::{CANNOT_RUN, Check, CommandJudge, Stdin};
use crate::case::Case;
use crate::judge::Judge;
use crate::judge::process::{
    Ending, Finished, Isolation, Launch, Until, missing_files, missing_warning, plain, run,
    script_not_found,
};
use crate::provider::CallContext;
use crate::score::Score;
use crate::verdict::{CriterionScore, Fingerprint, Status, Verdict};

/// Lines and characters of a failing check's output that become feedback.
const FEEDBACK: (usize, usize) = (20, 4000);

impl Judge for CommandJudge {
    fn kind(&self) -> &'static str {
        "command"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn warnings(&self) -> Vec<String> {
        let warning = |check: &Check| {
            let folder = check.cwd.as_deref().unwrap_or(&self.base);
            let folders: Vec<&Path> =
                [Some(folder), Some(self.base.as_path()), self.files.as_deref()]
                    .into_iter()
                    .flatten()
                    .collect();
            let mut missing = missing_files(&check.spec.argv, &folders);
            // Written beside the tests for each case.
            missing.retain(|name| Path::new(name) != Path::new(&self.output_name));
            missing_warning(&format!("check `{}`", check.name), &missing, folder)
        };
        self.checks.iter().filter_map(warning).collect()
    }

    fn criterion_weights(&self) -> Vec<(String, f64)> {
        self.checks.iter().map(|check| (check.name.clone(), check.spec.weight)).collect()
    }

    fn judge<'a>(&'a self, case: &'a Case, context: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(
            async move { self.run_checks(case, context).await.unwrap_or_else(|failed| *failed) },
        )
    }
}

/// What the checks found so far.
#[derive(Debug, Default)]
struct Tally {
    criteria: Vec<CriterionScore>,
    feedback: Vec<String>,
    passed_weight: f64,
    isolation: Option<String>,
    not_run: u32,
}

impl CommandJudge {
    fn mentions(&self, placeholder: &str) -> bool {
        self.checks.iter().flat_map(|check| &check.spec.argv).any(|a| a.contains(placeholder))
    }

    async fn run_checks(
        &self,
        case: &Case,
        context: &CallContext,
    ) -> Result<Verdict, Box<Verdict>> {
        let abstained =
            |what: &str| Box::new(Verdict::abstained(format!("the case has no {what}")));
        let Some(output) = case.output.clone() else { return Err(abstained("output")) };
        let wants_input = self.checks.iter().any(|check| check.spec.stdin == Stdin::Input)
            || self.mentions("{input_file}");
        if wants_input && case.input.is_none() {
            return Err(abstained("input"));
        }
        let wanted = Wanted {
            expected: self.mentions("{expected_file}"),
            case: self.mentions("{case_file}"),
        };
        if wanted.expected && case.expected.is_none() {
            return Err(abstained("expected answer"));
        }
        let folder = {
            let (case, name, files) = (case.clone(), self.output_name.clone(), self.files.clone());
            tokio::task::spawn_blocking(move || {
                CaseFolder::new(&case, &output, &name, files.as_deref(), wanted)
            })
        };
        let folder = match folder.await {
            Ok(Ok(folder)) => folder,
            Ok(Err(error)) => {
                let detail = format!("failed to write the case's folder: {error}");
                return Err(Box::new(Verdict::failed(Status::ProviderError, detail)));
            }
            Err(error) => {
                return Err(Box::new(Verdict::failed(Status::Internal, error.to_string())));
            }
        };
        let result = self.tally(case, &folder, context).await;
        // Removing a folder may take a while, and must not hold up other judges.
        drop(tokio::task::spawn_blocking(move || drop(folder)));
        result.and_then(|tally| self.verdict(tally))
    }

    async fn tally(
        &self,
        case: &Case,
        folder: &CaseFolder,
        context: &CallContext,
    ) -> Result<Tally, Box<Verdict>> {
        let mut tally = Tally::default();
        let mut stopped = false;
        for check in &self.checks {
            let mut criterion = CriterionScore {
                name: check.name.clone(),
                score: None,
                raw: None,
                passed: None,
                required: check.spec.required,
                feedback: None,
            };
            if stopped {
                tally.not_run += 1;
                tally.criteria.push(criterion);
                continue;
            }
            let finished = self.run_check(check, case, folder, context).await?;
            tally.isolation = finished.isolation.clone().or(tally.isolation);
            let passed = finished.ending == Ending::Exited(check.spec.exit_code);
            criterion.passed = Some(passed);
            criterion.score = Some(if passed { Score::ONE } else { Score::ZERO });
            if let Ending::Exited(code) = finished.ending {
                criterion.raw = Some(code.into());
            }
            if passed {
                tally.passed_weight += check.spec.weight;
            } else {
                let text = folder.without_paths(&explain(check, &finished));
                tally.feedback.push(text.clone());
                criterion.feedback = Some(text);
                stopped = self.stop_on_required_failure && check.spec.required;
            }
            tally.criteria.push(criterion);
        }
        Ok(tally)
    }

    async fn run_check(
        &self,
        check: &Check,
        case: &Case,
        folder: &CaseFolder,
        context: &CallContext,
    ) -> Result<Finished, Box<Verdict>> {
        let launch = self.launch(check, case, folder);
        let input = match check.spec.stdin {
            Stdin::Output => case.output.clone().unwrap_or_default(),
            Stdin::Input => case.input.clone().unwrap_or_default(),
            Stdin::None => String::new(),
            Stdin::Case => match serde_json::to_string(case) {
                Ok(json) => json + "\n",
                Err(error) => {
                    return Err(Box::new(Verdict::failed(Status::Internal, error.to_string())));
                }
            },
        };
        let until = Until { context, timeout: Some(check.spec.timeout.get()) };
        let failed = |status, detail: String, isolation: Option<String>| {
            let mut verdict = Verdict::failed(status, format!("check `{}` {detail}", check.name));
            if let Some(level) = isolation {
                verdict = verdict.note("isolation", level);
            }
            Err(Box::new(verdict))
        };
        let finished = match run(&launch, input.as_bytes(), until).await {
            Ok(finished) => finished,
            Err(error) => {
                return failed(Status::ProviderError, format!("could not run: {error}"), None);
            }
        };
        let own_time =
            matches!(finished.ending, Ending::TimedOut(_) | Ending::Limit("cpu_seconds"));
        if own_time && check.spec.timeout_fails {
            return Ok(finished);
        }
        if let Some((status, why)) = finished.ending.failure() {
            let failure = failed(status, why, finished.isolation.clone());
            // No score, but something that whoever made the output has to know.
            return if own_time {
                let finding = folder.without_paths(&explain(check, &finished));
                failure.map_err(|mut verdict| {
                    verdict.feedback.push(finding);
                    verdict
                })
            } else {
                failure
            };
        }
        let error_codes = check.spec.error_codes.as_deref().unwrap_or(&CANNOT_RUN);
        match finished.ending {
            Ending::Exited(code) if code != check.spec.exit_code && error_codes.contains(&code) => {
                let said = folder.without_paths(&plain::tail(&finished.stderr.text(), 3, 500));
                let detail = format!("could not run: exit code {code}: {said}");
                failed(Status::ProviderError, detail, finished.isolation)
            }
            Ending::Exited(code)
                if code != check.spec.exit_code
                    && check.spec.error_codes.is_none()
                    && finished.stdout.text().trim().is_empty()
                    && script_not_found(&check.program, code, &finished.stderr.text()) =>
            {
                let said = folder.without_paths(&plain::head(finished.stderr.text().trim(), 500));
                let detail = format!("could not run: exit code {code}: {said}");
                failed(Status::ProviderError, detail, finished.isolation)
            }
            _ => Ok(finished),
        }
    }

    fn launch(&self, check: &Check, case: &Case, folder: &CaseFolder) -> Launch {
        let lossy = |path: &Option<PathBuf>| {
            path.as_deref().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let values = [
            ("{output_file}", folder.output.to_string_lossy().into_owned()),
            ("{input_file}", lossy(&folder.input)),
            ("{expected_file}", lossy(&folder.expected)),
            ("{case_file}", lossy(&folder.case)),
            ("{id}", case.id.replace('\0', "")),
        ];
        let files = [
            ("VENIRE_OUTPUT_FILE", Some(&folder.output)),
            ("VENIRE_INPUT_FILE", folder.input.as_ref()),
            ("VENIRE_EXPECTED_FILE", folder.expected.as_ref()),
            ("VENIRE_CASE_FILE", folder.case.as_ref()),
        ];
        let mut variables: Vec<(String, OsString)> = files
            .into_iter()
            .filter_map(|(name, path)| Some((name.to_owned(), path?.into())))
            .collect();
        variables.push(("VENIRE_CASE_ID".to_owned(), case.id.replace('\0', "").into()));
        let in_folder = self.files.is_some() || self.sandbox.isolation() != Isolation::None;
        let directory = match &check.cwd {
            Some(cwd) => cwd.clone(),
            None if in_folder => folder.work.clone(),
            None => self.base.clone(),
        };
        let program = if check.program_in_files {
            folder.work.join(&check.program)
        } else {
            check.program.clone()
        };
        let fill = |argument: &String| OsString::from(fill(argument, &values));
        Launch {
            program,
            arguments: check.spec.argv[1..].iter().map(fill).collect(),
            directory,
            private: folder.top(),
            variables,
            sandbox: self.sandbox.clone(),
        }
    }

    fn verdict(&self, tally: Tally) -> Result<Verdict, Box<Verdict>> {
        let whole: f64 = self.checks.iter().map(|check| check.spec.weight).sum();
        let score = Score::share(tally.passed_weight, whole)
            .map_err(|error| Box::new(Verdict::failed(Status::Internal, error.to_string())))?;
        let passed = tally.criteria.iter().filter(|c| c.passed == Some(true)).count();
        let mut verdict =
            Verdict::ok(score).note("checks", self.checks.len()).note("checks_passed", passed);
        if tally.not_run > 0 {
            verdict = verdict.note("checks_not_run", tally.not_run);
        }
        if let Some(level) = tally.isolation {
            verdict = verdict.note("isolation", level);
        }
        verdict.criteria = tally.criteria;
        verdict.feedback = tally.feedback;
        Ok(verdict)
    }
}

/// Replaces placeholders in one pass, so that a case's own text is never searched for them.
pub(super) fn fill(argument: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(argument.len());
    let mut rest = argument;
    'next: while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        for (placeholder, value) in values {
            if let Some(after) = rest.strip_prefix(placeholder) {
                filled.push_str(value);
                rest = after;
                continue 'next;
            }
        }
        filled.push('{');
        rest = &rest[1..];
    }
    filled + rest
}

/// Why a check failed, with the end of what it wrote.
fn explain(check: &Check, finished: &Finished) -> String {
    let how = match finished.ending {
        Ending::Crashed(signal) => format!("crashed by signal {signal}"),
        Ending::Exited(code) => format!("exit code {code}, expected {}", check.spec.exit_code),
        Ending::TimedOut(limit) => format!("did not end within {limit:?}"),
        Ending::Limit(limit) => format!("reached the limit `{limit}`"),
        other => format!("{other:?}"),
    };
    let written = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    let tail = plain::tail(&written, FEEDBACK.0, FEEDBACK.1);
    if tail.is_empty() {
        format!("`{}` failed: {how}", check.name)
    } else {
        format!("`{}` failed: {how}\n{tail}", check.name)
    }
}
