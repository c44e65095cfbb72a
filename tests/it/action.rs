//! `action.yml`: its judging step, run as a runner would.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::workbench::Workbench;

const PANEL: &str = "threshold = 0.5\n[[judge]]\nname = \"no-todo\"\nkind = \"rule\"\nrule = \"contains\"\nnone = [\"TODO\"]\n";

/// A repository on a branch, and the folder of a runner beside it.
struct Runner {
    bench: Workbench,
}

/// What a step left behind.
struct Step {
    code: i32,
    outputs: BTreeMap<String, String>,
    summary: String,
}

impl Runner {
    fn new() -> Self {
        let runner = Self { bench: Workbench::new() };
        runner.bench.write("repository/panel.toml", PANEL);
        runner.git(&["init", "-q", "-b", "main"]);
        runner.git(&["add", "."]);
        runner.git(&["commit", "-qm", "start"]);
        runner.git(&["checkout", "-qb", "feature"]);
        runner
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(arguments)
            .current_dir(self.bench.path("repository"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn judge(&self, variables: &[(&str, &str)]) -> Step {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml"));
        let action: Value = serde_saphyr::from_str(&text.unwrap()).unwrap();
        let steps = action["runs"]["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["id"] == "judge").unwrap();
        let script = self.bench.write("step.sh", step["run"].as_str().unwrap());
        for file in ["output", "summary"] {
            self.bench.write(file, "");
        }
        let program = Path::new(env!("CARGO_BIN_EXE_venire")).parent().unwrap().to_owned();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(script);
        command.current_dir(self.bench.path("repository")).env("PATH", path);
        command
            .env("RUNNER_TEMP", self.bench.path(""))
            .env("GITHUB_OUTPUT", self.bench.path("output"));
        command.env("GITHUB_STEP_SUMMARY", self.bench.path("summary"));
        // What a runner sets where nothing is given.
        for name in step["env"].as_object().unwrap().keys() {
            let value = match name.as_str() {
                "PANEL" => "panel.toml",
                "ON_UNDECIDED" => "fail",
                _ => "",
            };
            command.env(name, value);
        }
        let status = command.envs(variables.iter().copied()).status().unwrap();
        let outputs = self.bench.read("output");
        let pairs = outputs.lines().filter_map(|line| line.split_once('='));
        Step {
            code: status.code().unwrap(),
            outputs: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            summary: self.bench.read("summary"),
        }
    }
}

#[test]
fn the_action_judges_a_branch_and_says_so_in_outputs_and_summary() {
    let runner = Runner::new();
    runner.bench.write("repository/a.txt", "all there\n");
    let task = "`touch hacked` $(touch hacked) 好";
    let step = runner.judge(&[("BASE", "main"), ("TASK", task)]);
    assert_eq!((step.code, step.outputs["accepted"].as_str()), (0, "true"), "{}", step.summary);
    assert_eq!(step.outputs["decision"], "accept");
    assert!(!runner.bench.path("repository/hacked").exists());
    runner.bench.write("repository/a.txt", "TODO\n");
    let step = runner.judge(&[("CHANGES", "main")]);
    assert_eq!((step.code, step.outputs["accepted"].as_str()), (1, "false"));
    assert!(step.summary.contains("TODO"), "{}", step.summary);
    let step = runner.judge(&[("ANSWER", "panel.toml"), ("MORE", "--threshold 0.9 --no-cache")]);
    assert_eq!(step.outputs["decision"], "reject", "the panel's own text has the word");
}

#[test]
fn an_action_that_could_not_judge_has_accepted_nothing() {
    let runner = Runner::new();
    let step = runner.judge(&[("PANEL", "none.toml"), ("BASE", "main")]);
    assert_eq!((step.code, step.outputs["accepted"].as_str()), (2, "false"));
    let panel = PANEL.replace("contains", "equals").replace("none = [\"TODO\"]\n", "");
    runner.bench.write("repository/panel.toml", panel);
    let step = runner.judge(&[("BASE", "main")]);
    assert_eq!((step.code, step.outputs["accepted"].as_str()), (3, "false"));
    let step = runner.judge(&[("BASE", "main"), ("ON_UNDECIDED", "accept")]);
    assert_eq!((step.code, step.outputs["accepted"].as_str()), (0, "false"));
    assert!(step.summary.contains("NOT JUDGED"), "{}", step.summary);
}
