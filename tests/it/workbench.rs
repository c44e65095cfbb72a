//! A throwaway folder in which the real program runs.

use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with files, and the program started in it.
pub(crate) struct Workbench {
    folder: TempDir,
}

/// What the program did.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The exit code, with both streams shown when it is another.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\nstdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Every one of these texts stands in what was said on stderr.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in stderr: {}", self.stderr);
        }
        self
    }

    /// Every one of these texts stands on stdout.
    #[track_caller]
    pub(crate) fn prints(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stdout.contains(text), "no `{text}` in stdout: {}", self.stdout);
        }
        self
    }

    /// Stdout as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in stdout: {}\n{}", self.stdout, self.stderr))
    }
}

impl Workbench {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with a panel of two rules and three cases.
    pub(crate) fn with_rules() -> Self {
        let bench = Self::new();
        bench.write("panel.toml", RULES);
        bench.write("cases.csv", "id,input,output\na,q,one two three\nb,q,\nc,q,a b c d e f\n");
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The rows of a JSON Lines file.
    pub(crate) fn rows(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
        command.current_dir(self.folder.path()).args(arguments);
        // No key or setting of the machine may change a test.
        for (name, _) in std::env::vars() {
            if name.ends_with("_API_KEY") || name.starts_with("VENIRE_") {
                command.env_remove(name);
            }
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_stdin(&self, arguments: &[&str], stdin: &str) -> Ran {
        Ran::of(self.command(arguments).write_stdin(stdin).output().unwrap())
    }
}

/// Two rules: short enough, and not empty.
pub(crate) const RULES: &str = r#"
name = "rules"
threshold = 0.5
[[judge]]
name = "short"
kind = "rule"
rule = "length"
words = { max = 4 }
graded = false
[[judge]]
name = "some"
kind = "rule"
rule = "length"
words = { min = 1 }
graded = false
"#;

/// A panel of one model judge on a server.
pub(crate) fn model_panel(base_url: &str, judges: usize, more: &str) -> String {
    let mut panel = String::from("name = \"models\"\nthreshold = 0.5\n");
    for i in 0..judges {
        panel.push_str(&format!(
            "[[judge]]\nname = \"m{i}\"\nkind = \"llm\"\nmodel = \"openai/mock-{i}\"\n\
             base_url = \"{base_url}/v1\"\nmode = \"yes_no\"\ncriterion = \"Is it right?\"\n{more}\n"
        ));
    }
    panel
}
