//! A result that did not reach its reader is no success.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::workbench::{Ran, Workbench};

fn venire(bench: &Workbench, arguments: &[&str], stdout: Stdio) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
    command.current_dir(bench.path("")).args(arguments).stdout(stdout);
    Ran::of(command.output().unwrap())
}

fn bench() -> Workbench {
    let bench = Workbench::with_rules();
    bench.write("answer.txt", "one two");
    bench.run(&["run", "cases.csv"]).exits(0);
    bench
}

const VERBS: [&[&str]; 12] = [
    &["run", "cases.csv", "--json"],
    &["run", "cases.csv"],
    &["run", "cases.csv", "-o", "-"],
    &["run", "cases.csv", "--dry-run", "--json"],
    &["score", "answer.txt", "--json"],
    &["gate", "answer.txt"],
    &["export", "latest", "-o", "-"],
    &["list", "runs"],
    &["schema", "panel"],
    &["completions", "bash"],
    &["--help"],
    &["--version"],
];

#[test]
fn a_full_disk_under_stdout_is_an_error() {
    let bench = bench();
    for verb in VERBS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = venire(&bench, verb, full.into());
        assert_eq!(ran.code, 3, "{verb:?}: {}", ran.stderr);
        ran.says(&["standard output", "No space left"]);
    }
}

#[test]
fn a_reader_who_went_away_is_no_error_and_no_success() {
    let bench = bench();
    for verb in VERBS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = venire(&bench, verb, writer.into());
        assert_eq!(ran.code, 141, "{verb:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("error") && !ran.stderr.contains("panic"), "{}", ran.stderr);
    }
}

#[test]
fn the_beginning_of_a_long_export_can_be_looked_at() {
    let bench = Workbench::with_rules();
    let rows: String = (0..3000).map(|i| format!("c{i},q,some words of an answer\n")).collect();
    bench.write("cases.csv", format!("id,input,output\n{rows}"));
    bench.run(&["run", "cases.csv", "-q"]).exits(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
    command.current_dir(bench.path("")).args(["export", "latest", "-o", "-"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (141, ""));
}

#[test]
fn words_that_nobody_can_read_are_no_fault() {
    let bench = bench();
    let mut command = Command::new(env!("CARGO_BIN_EXE_venire"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    command.current_dir(bench.path("")).args(["run", "cases.csv", "--json", "-vv"]).stderr(full);
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}

#[test]
fn rows_that_can_not_be_written_after_judging_say_that_the_run_is_kept() {
    let bench = bench();
    // The folder is there when the run begins, and gone when it ends.
    let panel = "threshold = 0.5\n[[judge]]\nname = \"rm\"\nkind = \"command\"\n\
                 checks = [{ argv = [\"rm\", \"-rf\", \"out\"] }]\n";
    bench.write("panel.toml", panel);
    std::fs::create_dir(bench.path("out")).unwrap();
    let ran = bench.run(&["run", "cases.csv", "-o", "out/v.csv", "--json"]).exits(3);
    ran.says(&["out/v.csv", "venire export 20", "is kept"]);
}
