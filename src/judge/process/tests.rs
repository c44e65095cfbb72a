//! Real processes, and what is left of them.

use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::judge::BuildContext;
use crate::provider::{CallContext, Client};

fn context() -> CallContext {
    CallContext::standalone(Duration::from_secs(60))
}

fn launch(script: &str, spec: &SandboxSpec, folder: &Path) -> Launch {
    let build = BuildContext::new(folder, Client::default());
    Launch {
        program: find_program("sh", "argv[0]", &build, &[]).unwrap(),
        arguments: vec!["-c".into(), script.into()],
        directory: folder.to_owned(),
        private: folder.to_owned(),
        variables: Vec::new(),
        sandbox: spec.build("sandbox", &build).unwrap(),
    }
}

async fn sh_with(script: &str, spec: &SandboxSpec, timeout: Duration) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    let until = Until { context: &context, timeout: Some(timeout) };
    run(&launch(script, spec, folder.path()), b"", until).await.unwrap()
}

async fn sh(script: &str) -> Finished {
    sh_with(script, &SandboxSpec::default(), Duration::from_secs(30)).await
}

/// Whether a process is gone; a zombie that nobody collects runs no more.
fn is_dead(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
    let process = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::test_kill_process(process).is_err()
        || stat.is_ok_and(|stat| stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

fn dies_soon(id: i32) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        if is_dead(id) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

fn number(capture: &Capture) -> i32 {
    capture.text().trim().parse().unwrap()
}

#[tokio::test]
async fn output_and_exit_code_are_kept() {
    let finished = sh("echo 好; echo 错 >&2; exit 3").await;
    assert_eq!(finished.ending, Ending::Exited(3));
    assert_eq!((finished.stdout.text(), finished.stderr.text()), ("好\n".into(), "错\n".into()));
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_at_its_timeout() {
    let start = Instant::now();
    let limit = Duration::from_millis(200);
    let finished = sh_with("echo $$; sleep 100", &SandboxSpec::default(), limit).await;
    assert_eq!(finished.ending, Ending::TimedOut(limit));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(is_dead(number(&finished.stdout)), "what it wrote before is kept, and it is dead");
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_dies_with_its_children() {
    let script = "trap '' TERM; echo $$; while :; do sleep 0.05; done";
    let limit = Duration::from_millis(200);
    let finished = sh_with(script, &SandboxSpec::default(), limit).await;
    assert_eq!(finished.ending, Ending::TimedOut(limit));
    assert!(is_dead(number(&finished.stdout)));
}

#[tokio::test]
async fn a_program_may_clean_up_after_sigterm() {
    let script = "trap 'echo clean; exit 0' TERM; sleep 100 & wait";
    let finished = sh_with(script, &SandboxSpec::default(), Duration::from_millis(200)).await;
    assert_eq!(finished.stdout.text(), "clean\n");
}

#[tokio::test]
async fn children_that_outlive_their_parent_die_and_do_not_hold_up_the_end() {
    let start = Instant::now();
    let finished = sh("sleep 300 & echo $!").await;
    assert_eq!(finished.ending, Ending::Exited(0));
    assert!(dies_soon(number(&finished.stdout)));
    let stubborn = sh("(trap '' TERM; sleep 300) & echo $!").await;
    assert!(dies_soon(number(&stubborn.stdout)));
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_child_that_leaves_the_group_is_found_by_its_mark() {
    let finished = sh("setsid sh -c 'echo $$; exec sleep 300' & sleep 0.3").await;
    assert_eq!(finished.ending, Ending::Exited(0));
    assert!(dies_soon(number(&finished.stdout)));
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let launch = launch(
        "sleep 300 & echo $! > child; echo $$ > leader; wait",
        &SandboxSpec::default(),
        folder.path(),
    );
    let context = context();
    let until = Until { context: &context, timeout: None };
    let waited = tokio::time::timeout(Duration::from_millis(500), run(&launch, b"", until)).await;
    assert!(waited.is_err());
    for name in ["child", "leader"] {
        let id = std::fs::read_to_string(folder.path().join(name)).unwrap().trim().parse().unwrap();
        assert!(dies_soon(id), "{name}");
    }
}

#[tokio::test]
async fn a_cancelled_measurement_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let launch = launch("sleep 300", &SandboxSpec::default(), folder.path());
    let context = context();
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    let until = Until { context: &context, timeout: None };
    assert_eq!(run(&launch, b"", until).await.unwrap().ending, Ending::Cancelled);
    let late = CallContext::standalone(Duration::from_millis(100));
    let until = Until { context: &late, timeout: Some(Duration::from_secs(100)) };
    assert_eq!(run(&launch, b"", until).await.unwrap().ending, Ending::Deadline);
}

#[tokio::test]
async fn a_gigabyte_of_output_is_drained_in_bounded_memory() {
    let finished = sh_with(
        "echo first; yes | head -c 1000000000; echo last",
        &SandboxSpec { output_kb: Some(4), ..SandboxSpec::default() },
        Duration::from_secs(60),
    )
    .await;
    assert_eq!(finished.ending, Ending::Exited(0));
    assert_eq!(finished.stdout.omitted(), 1_000_000_000 + 11 - 4096);
    let text = finished.stdout.text();
    assert!(text.starts_with("first\ny\n") && text.ends_with("last\n"));
    assert!(text.len() < 5000);
}

#[tokio::test]
async fn input_that_nobody_reads_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let context = context();
    let until = Until { context: &context, timeout: Some(Duration::from_secs(20)) };
    let input = vec![b'x'; 8 * 1024 * 1024];
    let default = SandboxSpec::default();
    let ignored = run(&launch("exit 0", &default, folder.path()), &input, until).await.unwrap();
    assert_eq!(ignored.ending, Ending::Exited(0));
    let counted = run(&launch("wc -c", &default, folder.path()), &input, until).await.unwrap();
    assert_eq!(number(&counted.stdout), 8 * 1024 * 1024);
}

#[tokio::test]
async fn a_crash_is_told_from_a_kill() {
    assert_eq!(sh("kill -SEGV $$").await.ending, Ending::Crashed(11));
    assert_eq!(sh("kill -ABRT $$").await.ending, Ending::Crashed(6));
    assert_eq!(sh("kill -KILL $$").await.ending, Ending::KilledFromOutside(9));
    assert_eq!(sh("kill -TERM $$").await.ending, Ending::KilledFromOutside(15));
}

#[tokio::test]
async fn output_that_is_not_utf8_is_shown_as_far_as_it_goes() {
    let finished = sh("printf 'a\\377b'").await;
    assert_eq!(finished.stdout.text(), "a\u{fffd}b");
    assert_eq!(finished.stdout.whole().unwrap(), b"a\xffb");
}

#[tokio::test]
async fn only_allowed_variables_are_passed_on() {
    // Cargo sets this one for every test.
    let secret = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let closed = sh("env").await.stdout.text();
    assert!(!closed.contains("CARGO_"), "{closed}");
    assert!(closed.contains("PATH="));
    let spec = SandboxSpec {
        env: vec!["CARGO_MANIFEST_DIR".into(), "NOT_SET_ANYWHERE".into()],
        set_env: [("LANG".to_owned(), "C.UTF-8".to_owned())].into(),
        home: Home::Private,
        ..SandboxSpec::default()
    };
    let open =
        sh_with("env; echo at=$HOME=$TMPDIR=$(pwd -P)", &spec, Duration::from_secs(10)).await;
    let open = open.stdout.text();
    assert!(open.contains(&format!("CARGO_MANIFEST_DIR={secret}")), "{open}");
    assert!(open.contains("LANG=C.UTF-8") && !open.contains("NOT_SET"), "{open}");
    let at = open.lines().find_map(|line| line.strip_prefix("at=")).unwrap();
    let parts: Vec<&str> = at.split('=').collect();
    assert!(parts.iter().all(|part| *part == parts[0]), "{parts:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn limits_hold() {
    let spec = SandboxSpec {
        memory_mb: Some(64),
        file_mb: Some(1),
        processes: Some(4000),
        cpu_seconds: Some(7),
        ..SandboxSpec::default()
    };
    let show = "sleep 0.2; ulimit -v; ulimit -f; ulimit -t; ulimit -c";
    let finished = sh_with(show, &spec, Duration::from_secs(10)).await;
    // `ulimit -f` counts in blocks of 512 bytes in dash and of 1024 in bash.
    let text = finished.stdout.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[2], lines[3]), ("65536", "7", "0"), "{text}");
    assert!(matches!(lines[1], "2048" | "1024"), "{text}");
    let grow = "sleep 0.2; head -c 200000000 /dev/zero | tail -c 150000000 >/dev/null";
    let finished = sh_with(grow, &spec, Duration::from_secs(10)).await;
    assert_ne!(finished.ending, Ending::Exited(0), "150 MB don't fit into 64");
    let write = "sleep 0.2; exec head -c 5000000 /dev/zero > big";
    let finished = sh_with(write, &spec, Duration::from_secs(10)).await;
    assert_eq!(finished.ending, Ending::Limit("file_mb"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn cpu_time_is_limited_through_a_shell_too() {
    let spec = SandboxSpec { cpu_seconds: Some(1), ..SandboxSpec::default() };
    let finished = sh_with("while :; do :; done", &spec, Duration::from_secs(30)).await;
    assert_eq!(finished.ending, Ending::Limit("cpu_seconds"));
    let script = "sleep 0.2; sh -c 'while :; do :; done'; exit $?";
    let finished = sh_with(script, &spec, Duration::from_secs(30)).await;
    assert_eq!(finished.ending, Ending::Limit("cpu_seconds"));
    assert_eq!(finished.ending.failure().unwrap().0, crate::verdict::Status::Timeout);
}

#[cfg(target_os = "linux")]
mod walls {
    use super::*;

    /// The result behind a wall, or `None` said loudly where the kernel has none.
    async fn walled(script: &str, isolation: Isolation, folder: &Path) -> Option<Finished> {
        let spec = SandboxSpec { isolation, ..SandboxSpec::default() };
        let private = folder.join("private");
        std::fs::create_dir_all(&private).unwrap();
        let launch =
            Launch { directory: private.clone(), private, ..launch(script, &spec, folder) };
        let context = context();
        match run(&launch, b"", Until { context: &context, timeout: None }).await {
            Ok(finished) => Some(finished),
            Err(error @ SpawnError::Isolation { .. }) => {
                eprintln!("SKIPPED: this kernel raises no walls: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn a_file_wall_lets_a_program_read_and_write_its_own_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "key").unwrap();
        let secret = secret.display();
        let script = format!(
            "echo mine > own && cat own; cat {secret}; echo x > {secret}; echo x > {secret}2; \
             cat /proc/$PPID/environ; ls /root /home; echo quiet > /dev/null && echo end"
        );
        let Some(finished) = walled(&script, Isolation::Files, folder.path()).await else { return };
        assert_eq!(finished.stdout.text(), "mine\nend\n", "{}", finished.stderr.text());
        assert!(finished.stderr.text().contains("ermission denied"));
        assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), "key");
        assert!(!folder.path().join("secret2").exists());
        assert!(finished.isolation.unwrap().starts_with("files: "));
        // The wall stood around the child alone.
        std::fs::write(folder.path().join("after"), "x").unwrap();
    }

    #[tokio::test]
    async fn a_walled_program_can_not_kill_the_one_that_judges_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = "kill -0 $PPID && echo reached; exit 0";
        let Some(finished) = walled(script, Isolation::Files, folder.path()).await else { return };
        if finished.isolation.as_deref() == Some("files: fully_enforced") {
            assert_eq!(finished.stdout.text(), "", "{}", finished.stderr.text());
        }
    }

    #[tokio::test]
    async fn a_network_wall_refuses_tcp() {
        let folder = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let Some(bash) = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|p| Path::new(p).exists())
        else {
            eprintln!("SKIPPED: no bash, which alone opens TCP connections by itself");
            return;
        };
        let script =
            format!("{bash} -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'; exit 0");
        let Some(open) = walled(&script, Isolation::Files, folder.path()).await else { return };
        assert_eq!(open.stdout.text(), "connected\n", "{}", open.stderr.text());
        let isolation = Isolation::FilesAndNetwork;
        let Some(closed) = walled(&script, isolation, folder.path()).await else { return };
        assert_eq!(closed.stdout.text(), "", "{}", closed.stderr.text());
    }
}

#[test]
fn settings_that_make_no_sense_are_refused_by_key() {
    let build = BuildContext::new("/", Client::default());
    let refused = |spec: SandboxSpec| spec.build("sandbox", &build).unwrap_err().to_string();
    let default = SandboxSpec::default;
    for (spec, expected) in [
        (SandboxSpec { env: vec!["A=B".into()], ..default() }, "`sandbox.env`"),
        (SandboxSpec { env: vec![String::new()], ..default() }, "`sandbox.env`"),
        (
            SandboxSpec { set_env: [("A".into(), "\0".into())].into(), ..default() },
            "`sandbox.set_env`",
        ),
        (SandboxSpec { memory_mb: Some(0), ..default() }, "`sandbox.memory_mb`"),
        (SandboxSpec { output_kb: Some(1 << 40), ..default() }, "`sandbox.output_kb`"),
        (SandboxSpec { read: vec!["/usr".into()], ..default() }, "`sandbox.read`"),
        (
            SandboxSpec {
                isolation: Isolation::Files,
                write: vec!["/not/there".into()],
                ..default()
            },
            "/not/there",
        ),
    ] {
        let message = refused(spec);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_program_that_is_not_there_is_named_with_where_it_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let build = BuildContext::new(folder.path(), Client::default());
    let find = |name: &str| find_program(name, "argv[0]", &build, &[]).map_err(|e| e.to_string());
    let message = find("no-such-program-anywhere").unwrap_err();
    assert!(message.contains("`argv[0]`") && message.contains("looked in PATH"), "{message}");
    let message = find("./tool").unwrap_err();
    assert!(message.contains(&folder.path().display().to_string()), "{message}");
    std::fs::write(folder.path().join("tool"), "#!/bin/sh\n").unwrap();
    assert!(find("./tool").unwrap_err().contains("not executable"));
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path().join("tool"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    assert!(find("./tool").is_ok());
    assert!(find("").is_err());
}
