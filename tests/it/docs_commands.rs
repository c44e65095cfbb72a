//! Every shell command in the pages about serving, hooks and hosts is run, in the order of its
//! page: with the real program, and with stand-ins for the hosts themselves, which
//! `scripts/test-clients` and `scripts/test-python` run for real.
//!
//! A server is started on a free port, and the commands after it ask that one. Looked for is
//! that a command is understood: not that it accepts.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::workbench::Workbench;

/// Commands that serve until they are ended.
const SERVING: [&str; 3] = ["venire serve", "venire label", "venire mcp"];

const PAGES: [&str; 3] = ["docs/serve.md", "docs/hooks.md", "docs/hosts"];

/// Programs that are not there or not to be run, and what stands in for them. aider runs the
/// test command that it is given.
const STAND_INS: [(&str, &str); 7] = [
    ("claude", "exit 0"),
    ("codex", "exit 0"),
    ("gemini", "exit 0"),
    ("pip", "exit 0"),
    ("cargo", "exit 0"),
    ("openssl", "echo 0123456789abcdef0123456789abcdef"),
    (
        "aider",
        "while [ $# -gt 0 ]; do [ \"$1\" = --test-cmd ] && { sh -c \"$2\"; exit 0; }; shift; done; exit 9",
    ),
];

/// The commands of a page's shell blocks, each on one line and without its comment.
fn blocks(text: &str) -> Vec<Vec<String>> {
    let mut blocks: Vec<Vec<String>> = Vec::new();
    let (mut inside, mut open) = (false, String::new());
    for line in text.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(info) => {
                inside = !inside && info == "sh";
                blocks.extend(inside.then(Vec::new));
            }
            None if inside => {
                let line = line.split(" # ").next().unwrap().trim();
                open.push_str(line.trim_end_matches('\\'));
                open.push(' ');
                if !line.ends_with('\\') && !line.ends_with('|') {
                    let command = std::mem::take(&mut open).trim().to_owned();
                    blocks.last_mut().unwrap().extend((!command.is_empty()).then_some(command));
                }
            }
            None => {}
        }
    }
    assert!(open.is_empty(), "a command has no end: {open}");
    blocks
}

/// A workspace under git with a panel, cases and a run, and the stand-ins.
fn workspace() -> Workbench {
    let bench = Workbench::with_rules();
    bench.write("cases.jsonl", "{\"id\":\"a\",\"input\":\"q\",\"output\":\"one two\"}\n");
    bench.write("README.md", "A small project.\n");
    for (name, script) in STAND_INS {
        let path = bench.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        let status = Command::new("chmod").arg("+x").arg(path).status().unwrap();
        assert!(status.success());
    }
    bench.run(&["run", "cases.jsonl", "-q"]).exits(0);
    let git = "git init -q && git add README.md && git -c user.name=t -c user.email=t@localhost commit -qm start";
    assert!(shell(&bench, git).status().unwrap().success());
    bench
}

fn shell(bench: &Workbench, command: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_venire")).parent().unwrap();
    let path = format!(
        "{}:{}:{}",
        bench.path("bin").display(),
        program.display(),
        std::env::var("PATH").unwrap()
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(bench.path("")).env("PATH", path);
    shell.env("HOME", bench.path("home")).env("TASK", "Write a text").stdin(Stdio::null());
    for name in ["VENIRE_TOKEN", "VENIRE_STORE", "VENIRE_LOG", "http_proxy", "HTTP_PROXY"] {
        shell.env_remove(name);
    }
    shell
}

/// A server that a command started; dropping it ends it.
struct Started {
    child: Child,
    url: String,
}

impl Started {
    /// Starts a command that serves, on a free port.
    fn of(bench: &Workbench, command: &str) -> Self {
        let free = "127.0.0.1:0";
        let is_mcp = command.starts_with("venire mcp");
        let flag = if is_mcp { "--http" } else { "--listen" };
        let mut own: Vec<&str> = Vec::new();
        let mut rest = command.split_whitespace().peekable();
        let mut found = false;
        while let Some(word) = rest.next() {
            own.push(word);
            if word == flag {
                found = true;
                own.push(free);
                rest.next_if(|value| !value.starts_with('-'));
            }
        }
        if !found {
            assert!(!is_mcp, "{command} serves no address");
            own.extend([flag, free]);
        }
        let mut child = shell(bench, &format!("exec {}", own.join(" ")))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            let output = child.wait_with_output().unwrap();
            panic!("{command} does not serve: {}", String::from_utf8_lossy(&output.stderr));
        }
        let url: Vec<&str> = line.trim().splitn(4, '/').take(3).collect();
        Self { child, url: url.join("/") }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs all of a page, and gives how many commands there were.
fn run(page: &Path) -> usize {
    let name = page.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
    let blocks = blocks(&std::fs::read_to_string(page).unwrap());
    let count = blocks.iter().map(Vec::len).sum();
    if count == 0 {
        return 0;
    }
    let bench = workspace();
    let mut serving: Option<Started> = None;
    let mut first: Option<&String> = None;
    // A shell keeps its variables from one command to the next.
    let mut variables = String::new();
    for (i, command) in blocks.iter().flat_map(|block| block.iter().enumerate()) {
        // A block that starts no server asks the first one of the page.
        if let (0, Some(first)) = (i, first) {
            drop(serving.take());
            serving = Some(Started::of(&bench, first));
        }
        if command.starts_with(|c: char| c.is_ascii_uppercase()) && command.contains("=$(") {
            variables.push_str(&format!("{command}\n"));
            continue;
        }
        if SERVING.iter().any(|own| command.starts_with(own)) {
            // The one before lets go of its files first.
            drop(serving.take());
            if !command.contains("--terminal") {
                serving = Some(Started::of(&bench, command));
                first.get_or_insert(command);
                continue;
            }
        }
        let mut own = format!("{variables}{command}");
        if command.starts_with("venire hook install") {
            own.push_str(" --yes");
        }
        if let Some(started) = &serving {
            own = own.replace("http://127.0.0.1:8700", &started.url);
        }
        let output = shell(&bench, &own).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        let shown = format!("{name}: {command}\ncode {code:?}\n{said}\n{wrong}");
        if command.contains("curl ") {
            assert!(output.status.success() && !said.trim().is_empty(), "{shown}");
            assert!(!said.contains("\"error\":"), "{shown}");
        } else if command.contains("venire hook generic") {
            assert!(matches!(code, Some(0 | 2)), "{shown}");
        } else {
            assert!(matches!(code, Some(0 | 1 | 3 | 4)), "{shown}");
        }
        assert!(!wrong.contains("not found"), "{shown}");
    }
    count
}

#[test]
fn every_command_about_serving_hooks_and_hosts_is_understood_as_it_stands() {
    let mut ran = 0;
    for name in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        if path.is_dir() {
            let mut pages: Vec<_> =
                std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            pages.sort();
            ran += pages.iter().map(|page| run(page)).sum::<usize>();
        } else {
            ran += run(&path);
        }
    }
    assert!(ran > 30, "{ran} commands");
}
