//! The file named by `--store`: never somebody else's, read without being written to, and
//! named in whatever goes wrong.

use std::path::Path;

use crate::workbench::{Ran, Workbench};

const READERS: [&[&str]; 4] = [
    &["list", "runs"],
    &["export", "latest", "-o", "-"],
    &["cache"],
    &["calibrate", "--run", "latest", "--labels", "labels.csv", "--positive", ">=0.5"],
];

const WRITERS: [&[&str]; 3] = [&["run", "cases.csv"], &["run", "--resume"], &["cache", "--clear"]];

fn bench() -> Workbench {
    let bench = Workbench::with_rules();
    bench.write("labels.csv", "case,label\na,1\nb,0\nc,0\n");
    bench
}

fn on(bench: &Workbench, verb: &[&str], store: &str) -> Ran {
    bench.run(&[verb, &["--store", store]].concat())
}

/// Runs the program that any Linux has for SQL; `None` where there is none.
fn python(bench: &Workbench, script: &str) -> Option<()> {
    let mut python = std::process::Command::new("python3");
    let status = python.current_dir(bench.path("")).args(["-c", script]).status().ok()?;
    status.success().then_some(())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn another_program_s_database_is_refused_by_name_and_left_as_it_is() {
    for (make, says) in [
        ("c.execute('create table bookmarks (url text)')", "bookmarks"),
        ("c.execute('pragma journal_mode=wal'); c.execute('create table notes (x)')", "notes"),
        ("c.execute('pragma application_id=42'); c.execute('create table t (x)')", "0x0000002a"),
        // One of our names is not enough.
        ("c.execute('create table runs (distance real)')", "runs"),
    ] {
        let bench = bench();
        let script =
            format!("import sqlite3; c=sqlite3.connect('other.db'); {make}; c.commit(); c.close()");
        let Some(()) = python(&bench, &script) else { return };
        let (before, files) =
            (std::fs::read(bench.path("other.db")).unwrap(), names(&bench.path("")));
        for verb in READERS.iter().chain(&WRITERS) {
            on(&bench, verb, "other.db").exits(2).says(&["other.db", says, "--store"]);
            assert_eq!(std::fs::read(bench.path("other.db")).unwrap(), before, "{verb:?}");
            assert_eq!(names(&bench.path("")), files, "{verb:?}");
        }
    }
}

#[test]
fn a_path_that_can_hold_no_store_is_a_usage_error_that_names_it() {
    let bench = bench();
    bench.write("text.db", "no database at all, though it is longer than a header of one would be: at least one hundred bytes");
    bench.write("short.db", "x");
    std::fs::create_dir(bench.path("folder.db")).unwrap();
    for verb in READERS.iter().chain(&WRITERS) {
        for store in ["text.db", "short.db", "folder.db", "text.db/store.db"] {
            on(&bench, verb, store).exits(2).says(&[store]);
        }
    }
    bench.write("empty.db", "");
    for verb in READERS.iter().chain(&WRITERS[1..]) {
        for store in ["empty.db", "nowhere.db", "nowhere/store.db"] {
            on(&bench, verb, store).exits(2).says(&[store, "no store"]);
        }
    }
    assert!(!bench.path("nowhere").exists() && !bench.path("nowhere.db").exists());
    on(&bench, WRITERS[0], "empty.db").exits(0);
    on(&bench, READERS[0], "empty.db").exits(0);
    on(&bench, WRITERS[0], "file:odd?name=%41 #1.db").exits(0);
    on(&bench, READERS[1], "file:odd?name=%41 #1.db").exits(0);
    assert!(bench.path("file:odd?name=%41 #1.db").is_file());
}

#[test]
fn reading_changes_nothing_of_the_store() {
    let bench = bench();
    bench.run(&["run", "cases.csv"]).exits(0);
    let folder = bench.path(".venire");
    let (before, files) = (std::fs::read(folder.join("store.db")).unwrap(), names(&folder));
    for verb in READERS {
        let ran = bench.run(verb);
        assert!(ran.code == 0 || verb[0] == "calibrate", "{verb:?}: {}", ran.stderr);
        assert_eq!(std::fs::read(folder.join("store.db")).unwrap(), before, "{verb:?}");
    }
    // What SQLite needs beside the file to read it is no change of the store.
    let left: Vec<String> =
        names(&folder).into_iter().filter(|name| !files.contains(name)).collect();
    assert!(left.iter().all(|name| name.ends_with("-shm") || name.ends_with("-wal")), "{left:?}");
}

#[cfg(unix)]
#[test]
fn a_store_in_a_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
    bench.run(&["run", "cases.csv"]).exits(0);
    let folder = bench.path(".venire");
    let mode = |mode| {
        for path in [folder.join("store.db"), folder.clone()] {
            let bits = if path.is_dir() { mode | 0o111 } else { mode };
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
        }
    };
    mode(0o444);
    let ran = bench.run(&["list", "runs"]);
    let rows = bench.run(&["export", "latest", "-o", "-"]);
    let written = bench.run(&["run", "cases.csv"]);
    mode(0o644);
    assert!(ran.exits(0).stdout.contains("finished"));
    assert_eq!(rows.exits(0).stdout.lines().count(), 6);
    // The superuser may write wherever.
    if written.code != 0 {
        written.exits(2).says(&["store.db", "read-only"]);
    }
}

#[test]
fn a_store_made_before_there_was_an_application_id_is_a_store() {
    let bench = bench();
    bench.run(&["run", "cases.csv"]).exits(0);
    let script = "import sqlite3; c=sqlite3.connect('.venire/store.db'); \
                  c.execute('pragma application_id=0'); c.commit(); c.close()";
    let Some(()) = python(&bench, script) else { return };
    let id = || std::fs::read(bench.path(".venire/store.db")).unwrap()[68..72].to_vec();
    assert_eq!(id(), [0; 4]);
    bench.run(&["list", "runs"]).exits(0);
    assert_eq!(id(), [0; 4], "reading does not mark it");
    bench.run(&["run", "cases.csv"]).exits(0);
    assert_eq!(id(), *b"veni");
    let listed = bench.run(&["list", "runs", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 2);
}

#[test]
fn a_store_of_a_newer_version_is_refused_by_readers_and_writers() {
    let bench = bench();
    bench.run(&["run", "cases.csv"]).exits(0);
    let script = "import sqlite3; c=sqlite3.connect('.venire/store.db'); \
                  c.execute('pragma user_version=7'); c.commit(); c.close()";
    let Some(()) = python(&bench, script) else { return };
    for verb in READERS.iter().chain(&WRITERS) {
        bench.run(verb).exits(2).says(&["store.db", "version 7"]);
    }
}

#[test]
fn a_store_that_another_program_locks_is_named_and_no_usage_error() {
    let bench = bench();
    bench.run(&["run", "cases.csv"]).exits(0);
    let mut python = std::process::Command::new("python3");
    let script = "import sqlite3,sys,time; c=sqlite3.connect('.venire/store.db'); \
                  c.isolation_level=None; c.execute('begin exclusive'); print('held', flush=True); \
                  sys.stdin.read()";
    python.current_dir(bench.path("")).args(["-c", script]);
    python.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut child) = python.spawn() else { return };
    let mut held = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut held).unwrap();
    bench.run(&["run", "cases.csv"]).exits(3).says(&["store.db", "locked by another program"]);
    bench.run(&["list", "runs"]).exits(0);
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_damaged_store_is_named() {
    let bench = bench();
    bench.run(&["run", "cases.csv"]).exits(0);
    let path = bench.path(".venire/store.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes.truncate(half);
    for byte in &mut bytes[4096..] {
        *byte = 0x5a;
    }
    std::fs::write(&path, bytes).unwrap();
    for verb in [&READERS[..3], &WRITERS[..2]].concat() {
        let ran = bench.run(verb);
        assert!(matches!(ran.code, 2 | 3), "{verb:?}: {}", ran.stderr);
        ran.says(&["store.db"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_may_not_grow_ends_the_run_with_what_was_judged_kept() {
    let bench = bench();
    let rows: String = (0..4000).map(|i| format!("c{i},q,{}\n", "word ".repeat(40))).collect();
    bench.write("cases.csv", format!("id,input,output\n{rows}"));
    let mut shell = std::process::Command::new("bash");
    let program = env!("CARGO_BIN_EXE_venire");
    // In KiB, for every file that the program writes: the signal that this sends by default
    // would end it without a word.
    let line = format!("ulimit -f 600; exec {program} run cases.csv -q");
    let Ok(output) = shell.current_dir(bench.path("")).args(["-c", &line]).output() else { return };
    let ran = Ran::of(output).exits(3);
    ran.says(&["broke off", "venire run --resume 20", "store.db"]);
    let resumed = bench.run(&["run", "--resume", "-q", "--json"]).exits(0).json();
    assert_eq!(resumed["cases"], 4000);
}
