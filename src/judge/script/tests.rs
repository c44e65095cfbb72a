//! Scripts as real processes.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::provider::Client;

fn build_in(folder: &Path, spec: Value) -> Result<BoxedJudge, BuildError> {
    let spec: ScriptSpec = crate::config::from_value(spec).unwrap();
    spec.build(&BuildContext::new(folder, Client::default()))
}

fn build(spec: Value) -> BoxedJudge {
    build_in(&std::env::temp_dir(), spec).unwrap()
}

fn context() -> CallContext {
    CallContext::standalone(Duration::from_secs(30))
}

fn case(id: &str) -> Case {
    Case { id: id.into(), output: Some("out".into()), ..Case::default() }
}

async fn once(script: &str) -> Verdict {
    build(json!({"argv": ["sh", "-c", script]})).judge(&case("a"), &context()).await
}

/// Answers each case with its id and the process that answered.
const ECHO: &str = r#"while read -r line; do
    id=${line#*'"id":"'}; id=${id%%'"'*}
    printf '{"id":"%s","score":0.5,"feedback":"%s"}\n' "$id" "$$"
done"#;

fn lines(script: &str, more: Value) -> BoxedJudge {
    let mut spec = json!({"argv": ["sh", "-c", script], "mode": "lines"});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    build(spec)
}

#[tokio::test]
async fn a_case_goes_in_and_an_answer_comes_out() {
    let verdict = once(
        r#"echo log >&2; grep -q '"id":"a"' && printf '{"score":1,"feedback":"sample %s of %s"}' $VENIRE_SAMPLE $VENIRE_CASE_ID"#,
    )
    .await;
    assert_eq!((verdict.status, verdict.score.unwrap().get()), (Status::Ok, 1.0), "{verdict:?}");
    assert_eq!(verdict.feedback, ["sample 0 of a"]);
}

#[tokio::test]
async fn a_script_that_fails_gives_its_last_words() {
    for (script, status, said) in [
        (
            "echo '{\"score\":1}'; echo broken pipe >&2; exit 3",
            Status::ProviderError,
            "broken pipe",
        ),
        ("echo '{\"score\":1}'; kill -SEGV $$", Status::ProviderError, "signal 11"),
        ("echo starting up; echo '{\"score\":1}'", Status::Unparseable, "starting up"),
        ("exit 0", Status::Unparseable, "empty"),
        ("yes x | head -c 2000000", Status::Unparseable, "output_kb"),
        ("kill -9 $$", Status::ProviderError, "from outside"),
    ] {
        let verdict = once(script).await;
        assert_eq!((verdict.status, verdict.score), (status, None), "{script}: {verdict:?}");
        let detail = verdict.detail.unwrap();
        assert!(detail.contains(said), "{detail}");
    }
}

#[tokio::test]
async fn a_script_that_hangs_is_late() {
    let spec = json!({"argv": ["sleep", "60"], "timeout": "100ms"});
    let verdict = build(spec).judge(&case("a"), &context()).await;
    assert_eq!(verdict.status, Status::Timeout);
    let judge = build(json!({"argv": ["sleep", "60"]}));
    let soon = CallContext::standalone(Duration::from_millis(100));
    assert_eq!(judge.judge(&case("a"), &soon).await.status, Status::Timeout);
}

#[tokio::test]
async fn one_worker_answers_many_cases_in_order() {
    let judge = lines(ECHO, json!({"echo_id": true}));
    let context = context();
    let ids: Vec<Case> = (0..50).map(|i| case(&format!("case-{i}"))).collect();
    let verdicts = futures::future::join_all(ids.iter().map(|c| judge.judge(c, &context))).await;
    assert!(verdicts.iter().all(|v| v.status == Status::Ok), "{verdicts:?}");
    let processes: std::collections::BTreeSet<_> =
        verdicts.iter().map(|v| &v.feedback[0]).collect();
    assert_eq!(processes.len(), 1);
}

#[tokio::test]
async fn workers_run_at_once_and_no_more_than_asked_for() {
    let slow = ECHO.replacen("do\n", "do sleep 0.3\n", 1);
    let judge = lines(&slow, json!({"workers": 3, "echo_id": true}));
    let context = context();
    let cases: Vec<Case> = (0..6).map(|i| case(&i.to_string())).collect();
    let start = Instant::now();
    let verdicts = futures::future::join_all(cases.iter().map(|c| judge.judge(c, &context))).await;
    assert!(verdicts.iter().all(|v| v.status == Status::Ok), "{verdicts:?}");
    let processes: std::collections::BTreeSet<_> =
        verdicts.iter().map(|v| &v.feedback[0]).collect();
    assert_eq!(processes.len(), 3);
    assert!(start.elapsed() >= Duration::from_millis(590), "two rounds of three");
}

#[tokio::test]
async fn a_worker_that_dies_is_reported_and_the_next_case_has_a_new_one() {
    let script = r#"while read -r line; do
        case $line in *die*) echo "I fell over" >&2; exit 9;; *half*) printf '{"sco'; exit 0;; esac
        printf '{"score":1,"feedback":"%s"}\n' $$
    done"#;
    let judge = lines(script, json!({}));
    let context = context();
    let first = judge.judge(&case("a"), &context).await;
    assert_eq!(first.status, Status::Ok);
    let dead = judge.judge(&case("die"), &context).await;
    assert_eq!((dead.status, dead.score), (Status::ProviderError, None));
    let detail = dead.detail.unwrap();
    assert!(detail.contains("I fell over") && detail.contains('9'), "{detail}");
    let half = judge.judge(&case("half"), &context).await;
    assert!(half.detail.unwrap().contains("in the middle of an answer"));
    let next = judge.judge(&case("b"), &context).await;
    assert_eq!(next.status, Status::Ok);
    assert_ne!(first.feedback, next.feedback);
}

#[tokio::test]
async fn a_worker_that_ends_itself_between_cases_is_replaced_unseen() {
    let script = r#"read -r line; printf '{"score":1,"feedback":"%s"}\n' $$"#;
    let judge = lines(script, json!({}));
    let context = context();
    for i in 0..5 {
        let verdict = judge.judge(&case(&i.to_string()), &context).await;
        assert_eq!(verdict.status, Status::Ok, "{verdict:?}");
    }
}

#[tokio::test]
async fn a_late_worker_is_killed_and_its_answer_reaches_no_other_case() {
    let script = r#"echo $$ > "$MARKER"; while read -r line; do
        case $line in *slow*) sleep 0.6; echo '{"score":0}';; *) echo '{"score":1}';; esac
    done"#;
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let set_env = json!({"set_env": {"MARKER": marker.to_str().unwrap()}});
    let judge = lines(script, json!({"timeout": "300ms", "sandbox": set_env}));
    let context = context();
    let late = judge.judge(&case("slow"), &context).await;
    assert_eq!(late.status, Status::Timeout);
    let id = std::fs::read_to_string(&marker).unwrap().trim().parse().unwrap();
    let process = rustix::process::Pid::from_raw(id).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(rustix::process::test_kill_process(process).is_err(), "the late worker is dead");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let next = judge.judge(&case("quick"), &context).await;
    assert_eq!(next.score.map(|s| s.get()), Some(1.0), "{next:?}");
}

#[tokio::test]
async fn a_line_that_nobody_asked_for_is_not_the_next_answer() {
    let script = r#"while read -r line; do
        printf '{"score":1,"feedback":"%s"}\n' $$; sleep 0.1; echo '{"score":0}'
    done"#;
    let judge = lines(script, json!({}));
    let context = context();
    let first = judge.judge(&case("a"), &context).await;
    // Block the runtime, so that only the pipe itself knows of the stray line.
    std::thread::sleep(Duration::from_millis(300));
    let second = judge.judge(&case("b"), &context).await;
    assert_eq!(second.score.map(|s| s.get()), Some(1.0));
    assert_ne!(first.feedback, second.feedback, "a new worker answered");
}

#[tokio::test]
async fn a_second_line_for_one_case_is_a_protocol_error() {
    for script in [
        // In one write, and in two.
        r#"while read -r line; do printf '{"score":1}\n{"score":0}\n'; done"#,
        r#"while read -r line; do echo '{"score":1}'; echo '{"score":0}'; done"#,
        r#"while read -r line; do echo '{"score":1}'; echo debug; done"#,
    ] {
        let judge = lines(script, json!({}));
        let context = context();
        for id in ["a", "b", "c"] {
            let verdict = judge.judge(&case(id), &context).await;
            assert_eq!((verdict.status, verdict.score), (Status::ProviderError, None), "{script}");
            assert!(verdict.detail.unwrap().contains("second line"), "{script}");
        }
    }
    // Later than the first answer, but at once.
    let late = r#"read -r line; echo '{"score":1}'; while read -r line; do
        printf '{"score":1}\n{"score":0}\n'; done"#;
    let judge = lines(late, json!({}));
    let context = context();
    assert_eq!(judge.judge(&case("a"), &context).await.status, Status::Ok);
    assert_eq!(judge.judge(&case("b"), &context).await.status, Status::ProviderError);
}

#[tokio::test]
async fn an_answer_for_another_case_is_refused() {
    let judge = lines(r#"while read -r line; do echo '{"id":"other","score":1}'; done"#, json!({}));
    let verdict = judge.judge(&case("a"), &context()).await;
    assert_eq!((verdict.status, verdict.score), (Status::ProviderError, None));
    assert!(verdict.detail.unwrap().contains("`other`"));
}

#[tokio::test]
async fn a_worker_that_floods_is_cut_off() {
    let judge = lines("read -r line; yes | tr -d '\\n'", json!({"sandbox": {"output_kb": 16}}));
    let verdict = judge.judge(&case("a"), &context()).await;
    assert_eq!(verdict.status, Status::Unparseable);
    // Standard error without end holds up nothing.
    let noisy = format!("yes noise >&2 & {ECHO}");
    let judge = lines(&noisy, json!({"echo_id": true}));
    let context = context();
    for i in 0..3 {
        assert_eq!(judge.judge(&case(&i.to_string()), &context).await.status, Status::Ok);
    }
}

#[tokio::test]
async fn workers_die_with_their_judge() {
    let judge = lines(ECHO, json!({}));
    let verdict = judge.judge(&case("a"), &context()).await;
    let process = rustix::process::Pid::from_raw(verdict.feedback[0].parse().unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(process).is_ok());
    drop(judge);
    let start = Instant::now();
    while rustix::process::test_kill_process(process).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(5), "still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_long_case_does_not_deadlock_a_worker_that_answers_early() {
    let judge = lines(r#"echo '{"score":1}'; while read -r line; do :; done"#, json!({}));
    let mut long = case("a");
    long.output = Some("好".repeat(500_000));
    let verdict = judge.judge(&long, &context()).await;
    assert_eq!(verdict.status, Status::Ok, "{verdict:?}");
}

#[test]
fn a_configuration_that_can_not_work_is_refused_by_key() {
    for (spec, key) in [
        (json!({"argv": []}), "argv"),
        (json!({"argv": ["nowhere-to-find"]}), "argv[0]"),
        (json!({"argv": ["sh"], "workers": 0, "mode": "lines"}), "workers"),
        (json!({"argv": ["sh"], "workers": 2}), "workers"),
        (json!({"argv": ["sh"], "timeout": 0}), "timeout"),
        (json!({"argv": ["sh"], "cwd": "not-there"}), "cwd"),
    ] {
        let message = build_in(&std::env::temp_dir(), spec.clone()).unwrap_err().to_string();
        assert!(message.contains(&format!("`{key}`")), "{spec}: {message}");
    }
    let spec = json!({"argv": ["sh"], "scale": "5-1"});
    assert!(crate::config::from_value::<ScriptSpec>(spec).is_err());
}
