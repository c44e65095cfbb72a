//! Checks on cases, with real programs.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::judge::fill;
use super::*;
use crate::case::Case;
use crate::judge::BuildContext;
use crate::provider::{CallContext, Client};
use crate::score::Score;
use crate::verdict::{Status, Verdict};

fn build_in(folder: &Path, spec: Value) -> Result<BoxedJudge, BuildError> {
    let spec: CommandSpec = crate::config::from_value(spec).unwrap();
    spec.build(&BuildContext::new(folder, Client::default()))
}

async fn judge_in(folder: &Path, spec: Value, case: &Case) -> Verdict {
    let context = CallContext::standalone(Duration::from_secs(30));
    build_in(folder, spec).unwrap().judge(case, &context).await
}

async fn judge(spec: Value, output: &str) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    judge_in(folder.path(), spec, &Case::new("the task", output)).await
}

fn sh(script: &str) -> Value {
    json!(["sh", "-c", script])
}

#[tokio::test]
async fn the_score_is_the_weighted_share_passed() {
    let verdict = judge(
        json!({"checks": [
            {"argv": sh("grep -q good"), "name": "good"},
            {"argv": sh("echo nothing bad found; grep -q bad"), "name": "bad", "weight": 3, "required": true},
            {"argv": sh("exit 7"), "name": "seven", "weight": 4, "exit_code": 7},
        ]}),
        "a good answer",
    )
    .await;
    assert_eq!((verdict.status, verdict.score.unwrap().get()), (Status::Ok, 5.0 / 8.0));
    let passed: Vec<_> = verdict.criteria.iter().map(|c| (c.name.as_str(), c.passed)).collect();
    assert_eq!(passed, [("good", Some(true)), ("bad", Some(false)), ("seven", Some(true))]);
    assert!(verdict.criteria[1].required && !verdict.criteria[0].required);
    assert_eq!(verdict.feedback, ["`bad` failed: exit code 1, expected 0\nnothing bad found"]);
    assert_eq!(verdict.notes["checks_passed"], 2);
}

#[tokio::test]
async fn a_check_that_can_not_run_is_a_failed_measurement() {
    for (script, status, said) in [
        ("no-such-program-here", Status::ProviderError, "exit code 127"),
        ("exit 126", Status::ProviderError, "exit code 126"),
        ("kill -9 $$", Status::ProviderError, "killed from outside"),
        ("sleep 60", Status::Timeout, "ran longer than 200ms"),
    ] {
        let checks = json!([
            {"argv": sh("exit 0"), "name": "fine"},
            {"argv": sh(script), "name": "broken", "timeout": "200ms"},
        ]);
        let verdict = judge(json!({"checks": checks}), "x").await;
        assert_eq!((verdict.status, verdict.score), (status, None), "{script}");
        let detail = verdict.detail.unwrap();
        assert!(detail.contains("`broken`") && detail.contains(said), "{detail}");
    }
}

#[tokio::test]
async fn a_crash_is_a_failed_check_and_not_a_failed_measurement() {
    let verdict = judge(json!({"checks": [{"argv": sh("kill -SEGV $$")}]}), "x").await;
    assert_eq!((verdict.status, verdict.score.unwrap().get()), (Status::Ok, 0.0));
    assert_eq!(verdict.feedback, ["`sh` failed: crashed by signal 11"]);
}

#[tokio::test]
async fn a_tool_with_error_codes_of_its_own_is_believed() {
    let spec = json!({"checks": [{"argv": sh("echo usage >&2; exit 4"), "error_codes": [4, 5]}]});
    let verdict = judge(spec, "x").await;
    assert_eq!(verdict.status, Status::ProviderError);
    assert!(verdict.detail.unwrap().contains("usage"));
    let spec = json!({"checks": [{"argv": sh("exit 127"), "error_codes": [4]}]});
    assert_eq!(judge(spec, "x").await.status, Status::Ok, "127 was taken off the list");
}

#[tokio::test]
async fn placeholders_stand_for_files_and_their_text_is_never_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = Case::new("in", "$(touch hacked); `touch hacked` {input_file}");
    case.id = "a b;c {output_file} $HOME 好".into();
    case.expected = Some("exp".into());
    let script = r#"test "$(cat "$1")" = '$(touch hacked); `touch hacked` {input_file}' &&
        test "$(cat "$2")" = in && test "$(cat "$3")" = exp && grep -q '"output":' "$4" &&
        test "$5" = 'a b;c {output_file} $HOME 好' && test "$VENIRE_CASE_ID" = "$5" &&
        test "$VENIRE_OUTPUT_FILE" = "$1" && test "$VENIRE_EXPECTED_FILE" = "$3""#;
    // In a file, since placeholders in an argument are replaced wherever they stand.
    std::fs::write(folder.path().join("check.sh"), script).unwrap();
    let argv = json!([
        "sh",
        "check.sh",
        "{output_file}",
        "{input_file}",
        "{expected_file}",
        "{case_file}",
        "{id}"
    ]);
    let verdict = judge_in(folder.path(), json!({"checks": [{"argv": argv}]}), &case).await;
    assert_eq!(verdict.score.map(|s| s.get()), Some(1.0), "{verdict:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was created");
}

#[test]
fn placeholders_are_replaced_in_one_pass() {
    let values = [("{id}", "{output_file}".to_owned()), ("{output_file}", "/o".to_owned())];
    assert_eq!(
        fill("--x={id}:{output_file}:{{print}}{", &values),
        "--x={output_file}:/o:{{print}}{"
    );
}

#[tokio::test]
async fn the_reference_is_not_there_for_a_program_to_find() {
    let mut case = Case::new("in", "out");
    case.expected = Some("SECRET-REFERENCE".into());
    let folder = tempfile::tempdir().unwrap();
    let look = r#"cd "$(dirname "$VENIRE_OUTPUT_FILE")/.." && ! grep -r SECRET-REFERENCE ."#;
    let verdict = judge_in(folder.path(), json!({"checks": [{"argv": sh(look)}]}), &case).await;
    assert_eq!(verdict.score.unwrap().get(), 1.0, "{:?}", verdict.feedback);
}

#[tokio::test]
async fn what_a_case_lacks_makes_the_judge_abstain() {
    let folder = tempfile::tempdir().unwrap();
    let empty = Case { id: "a".into(), ..Case::default() };
    let spec = json!({"checks": [{"argv": ["cat", "{output_file}"]}]});
    assert_eq!(judge_in(folder.path(), spec, &empty).await.status, Status::Abstained);
    let case = Case { output: Some(String::new()), ..empty };
    for (argv, stdin) in [(json!(["cat", "{expected_file}"]), "none"), (json!(["cat"]), "input")] {
        let spec = json!({"checks": [{"argv": argv, "stdin": stdin}]});
        assert_eq!(judge_in(folder.path(), spec, &case).await.status, Status::Abstained);
    }
    let spec = json!({"checks": [{"argv": sh("test -z \"$(cat)\"")}]});
    let verdict = judge_in(folder.path(), spec, &case).await;
    assert_eq!(verdict.score.unwrap().get(), 1.0, "the empty output is an output");
}

#[tokio::test]
async fn standard_input_is_what_the_check_asks_for() {
    for (stdin, expected) in [("output", "out"), ("input", "the task"), ("none", "")] {
        let spec = json!({"checks": [
            {"argv": ["sh", "-c", "test \"$(cat)\" = \"$1\"", "sh", expected], "stdin": stdin},
        ]});
        let verdict = judge(spec, "out").await;
        assert_eq!(verdict.score.unwrap().get(), 1.0, "{stdin}: {:?}", verdict.feedback);
    }
    let spec =
        json!({"checks": [{"argv": sh("grep -q '\"input\":\"the task\"'"), "stdin": "case"}]});
    assert_eq!(judge(spec, "out").await.score.unwrap().get(), 1.0);
}

#[tokio::test]
async fn a_template_is_copied_for_each_case_and_the_output_put_into_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template");
    std::fs::create_dir_all(template.join("src")).unwrap();
    std::fs::write(template.join("src/answer.sh"), "stub").unwrap();
    std::fs::write(
        template.join("test.sh"),
        "#!/bin/sh\n. ./src/answer.sh\ntest $X = 1 && touch left\n",
    )
    .unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(template.join("test.sh"), mode).unwrap();
    let spec = json!({
        "files": "template", "output_name": "src/answer.sh",
        "checks": [{"argv": ["./test.sh"]}, {"argv": sh("test -e left"), "name": "shared"}],
    });
    let judge = build_in(folder.path(), spec).unwrap();
    let context = CallContext::standalone(Duration::from_secs(30));
    let (good, bad) = (Case::new("t", "X=1"), Case::new("t", "X=2"));
    let runs = (0..8).map(|i| judge.judge(if i % 2 == 0 { &good } else { &bad }, &context));
    for (i, verdict) in futures::future::join_all(runs).await.into_iter().enumerate() {
        let expected = if i % 2 == 0 { 1.0 } else { 0.0 };
        assert_eq!(verdict.score.map(|s| s.get()), Some(expected), "{verdict:?}");
    }
    assert_eq!(std::fs::read_to_string(template.join("src/answer.sh")).unwrap(), "stub");
    assert!(!template.join("left").exists());
}

#[tokio::test]
async fn the_output_is_never_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("template");
    std::fs::create_dir_all(&template).unwrap();
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "kept").unwrap();
    std::os::unix::fs::symlink(outside.join("file"), template.join("answer")).unwrap();
    std::os::unix::fs::symlink(&outside, template.join("dir")).unwrap();
    let case = Case::new("t", "hostile");
    let checks = json!([{"argv": ["cat", "answer"]}]);
    let spec = json!({"files": "template", "output_name": "answer", "checks": checks});
    assert_eq!(judge_in(folder.path(), spec, &case).await.status, Status::Ok);
    let spec = json!({"files": "template", "output_name": "dir/file", "checks": checks});
    assert_eq!(judge_in(folder.path(), spec, &case).await.status, Status::ProviderError);
    assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "kept");
}

#[tokio::test]
async fn checks_after_a_failed_required_one_are_left_out_when_asked() {
    let checks = json!([
        {"argv": sh("exit 1"), "name": "build", "required": true},
        {"argv": sh("exit 0"), "name": "test"},
    ]);
    let verdict = judge(json!({"checks": checks, "stop_on_required_failure": true}), "x").await;
    assert_eq!(verdict.score.unwrap().get(), 0.0);
    assert_eq!((verdict.criteria[1].score, verdict.criteria[1].passed), (None, None));
    assert_eq!(verdict.notes["checks_not_run"], 1);
    let verdict = judge(json!({"checks": checks}), "x").await;
    assert_eq!(verdict.score.unwrap().get(), 0.5);
}

#[tokio::test]
async fn feedback_is_the_plain_end_of_the_output_and_the_same_each_time() {
    let script = r#"i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i+1)); done
        printf '\033[31mred\033[0m in %s\n' "$VENIRE_OUTPUT_FILE" >&2; exit 1"#;
    let first = judge(json!({"checks": [{"argv": sh(script)}]}), "x").await.feedback;
    let again = judge(json!({"checks": [{"argv": sh(script)}]}), "x").await.feedback;
    assert_eq!(first, again, "no random folder in it");
    assert!(first[0].ends_with("line 99\nred in output.txt"), "{}", first[0]);
    assert_eq!(first[0].lines().count(), 21);
}

#[tokio::test]
async fn a_deadline_and_a_cancelled_run_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let judge = build_in(folder.path(), json!({"checks": [{"argv": ["sleep", "60"]}]})).unwrap();
    let case = Case::new("t", "x");
    let context = CallContext::standalone(Duration::from_millis(200));
    assert_eq!(judge.judge(&case, &context).await.status, Status::Timeout);
    let context = CallContext::standalone(Duration::from_secs(60));
    context.cancel.cancel();
    assert_eq!(judge.judge(&case, &context).await.status, Status::Cancelled);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_wall_that_stood_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "key").unwrap();
    let secret = folder.path().join("secret");
    let spec = json!({
        "sandbox": {"isolation": "files"},
        "checks": [
            {"argv": ["cat", secret.to_str().unwrap()], "name": "reads the secret"},
            {"argv": ["cat", "{output_file}"], "name": "reads the output"},
        ],
    });
    let verdict = judge_in(folder.path(), spec, &Case::new("t", "x")).await;
    if verdict.status == Status::ProviderError {
        let detail = verdict.detail.unwrap();
        assert!(detail.contains("isolation"), "{detail}");
        eprintln!("SKIPPED: this kernel raises no walls: {detail}");
        return;
    }
    let passed: Vec<_> = verdict.criteria.iter().map(|c| c.passed).collect();
    assert_eq!(passed, [Some(false), Some(true)], "{verdict:?}");
    assert!(verdict.notes["isolation"].as_str().unwrap().starts_with("files: "));
}

#[test]
fn a_configuration_that_can_not_work_is_refused_by_key() {
    let folder = tempfile::tempdir().unwrap();
    for (spec, key, said) in [
        (json!({"checks": []}), "checks", "at least one"),
        (json!({"checks": [{"argv": []}]}), "checks[0].argv", "empty list"),
        (
            json!({"checks": [{"argv": ["sh"]}, {"argv": ["nowhere-to-find"]}]}),
            "checks[1].argv[0]",
            "PATH",
        ),
        (json!({"checks": [{"argv": ["./x.sh"]}]}), "checks[0].argv[0]", "x.sh"),
        (json!({"checks": [{"argv": ["sh"], "weight": 0}]}), "checks[0].weight", "above 0"),
        (json!({"checks": [{"argv": ["sh"], "weight": -1}]}), "checks[0].weight", "above 0"),
        (json!({"checks": [{"argv": ["sh"], "timeout": 0}]}), "checks[0].timeout", "more than 0"),
        (json!({"checks": [{"argv": ["sh"]}, {"argv": ["sh"]}]}), "checks[1].name", "two checks"),
        (
            json!({"checks": [{"argv": ["sh", "{output_fil}"]}]}),
            "checks[0].argv[1]",
            "{output_file}",
        ),
        (json!({"checks": [{"argv": ["{output_file}"]}]}), "checks[0].argv[0]", "python3"),
        (json!({"checks": [{"argv": ["sh"]}], "output_name": "../x"}), "output_name", "file name"),
        (json!({"checks": [{"argv": ["sh"]}], "output_name": "/x"}), "output_name", "file name"),
        (json!({"checks": [{"argv": ["sh"]}], "files": "none"}), "files", "none"),
        (json!({"checks": [{"argv": ["sh"], "cwd": "none"}]}), "checks[0].cwd", "none"),
    ] {
        let message = build_in(folder.path(), spec.clone()).unwrap_err().to_string();
        assert!(
            message.contains(&format!("`{key}`")) && message.contains(said),
            "{spec}: {message}"
        );
    }
    assert!(build_in(folder.path(), json!({"checks": [{"argv": ["awk", "{print}"]}]})).is_ok());
    let unknown = json!({"checks": [{"argv": ["sh"], "requird": true}]});
    let problem = crate::config::from_value::<CommandSpec>(unknown).unwrap_err();
    assert_eq!(problem.suggestion.as_deref(), Some("required"));
}

#[test]
fn the_fingerprint_follows_the_content_of_the_checks() {
    let folder = tempfile::tempdir().unwrap();
    let print = |spec: Value| build_in(folder.path(), spec).unwrap().fingerprint().clone();
    std::fs::create_dir(folder.path().join("t")).unwrap();
    std::fs::write(folder.path().join("check.sh"), "exit 0").unwrap();
    let spec = || json!({"files": "t", "checks": [{"argv": ["sh", "check.sh"]}]});
    let before = print(spec());
    assert_eq!(before, print(spec()));
    std::fs::write(folder.path().join("check.sh"), "exit 1").unwrap();
    let edited = print(spec());
    assert_ne!(before, edited);
    std::fs::write(folder.path().join("t/new"), "").unwrap();
    assert_ne!(edited, print(spec()));
}

#[tokio::test]
async fn an_output_that_never_ends_fails_the_check_where_that_is_asked_for() {
    let check = json!({"argv": sh("sleep 60"), "name": "tests", "timeout": "200ms"});
    let verdict = judge(json!({"checks": [check]}), "x").await;
    assert_eq!((verdict.status, verdict.score), (Status::Timeout, None));
    assert!(verdict.feedback[0].contains("did not end within 200ms"), "{:?}", verdict.feedback);
    let mut failing = check;
    failing["timeout_fails"] = json!(true);
    let verdict = judge(json!({"checks": [failing]}), "x").await;
    assert_eq!(verdict.score, Some(Score::ZERO));
    assert_eq!(verdict.criteria[0].passed, Some(false));
    assert!(verdict.feedback[0].contains("did not end within 200ms"), "{:?}", verdict.feedback);
}

#[tokio::test]
async fn a_check_whose_script_is_not_there_could_not_run_and_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let spec = json!({"checks": [{"argv": ["python3", "tests_answer.py", "{output_file}"]}]});
    let built = build_in(folder.path(), spec.clone()).unwrap();
    assert!(
        built.warnings()[0].contains("`tests_answer.py` is not there"),
        "{:?}",
        built.warnings()
    );
    let verdict = judge_in(folder.path(), spec.clone(), &Case::new("q", "x")).await;
    assert_eq!(verdict.status, Status::ProviderError, "{verdict:?}");
    std::fs::write(folder.path().join("tests_answer.py"), "import sys\nsys.exit(2)\n").unwrap();
    assert!(build_in(folder.path(), spec.clone()).unwrap().warnings().is_empty());
    let verdict = judge_in(folder.path(), spec, &Case::new("q", "x")).await;
    assert_eq!(verdict.score, Some(Score::ZERO), "a test's own 2 is a failed check");
}
