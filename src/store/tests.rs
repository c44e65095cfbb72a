use super::*;
use crate::provider::{ChatReply, FinishReason, ReplyKey, ReplyStore};
use crate::score::Score;
use crate::verdict::{Status, Usage};

fn record(id: &str) -> RunRecord {
    RunRecord {
        number: 0,
        id: id.into(),
        created: "2026-01-01T00:00:00Z".into(),
        state: RunState::Running,
        panel_name: "p".into(),
        panel_fingerprint: "f".into(),
        panel: "{}".into(),
        data: "d.csv".into(),
        data_hash: "h".into(),
        options: "{}".into(),
        summary: None,
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(&folder.path().join("a/b/store.db")).unwrap();
    (folder, store)
}

fn reply(text: &str) -> ChatReply {
    ChatReply {
        text: text.into(),
        reasoning: None,
        finish: FinishReason::Stop,
        logprobs: None,
        usage: Usage { tokens_in: 3, tokens_out: 1, calls: 1, ..Usage::default() },
        model: Some("m".into()),
        request_id: None,
        latency_ms: 5,
        attempts: 1,
        cost_usd: None,
        downgraded: None,
        cached: false,
    }
}

#[tokio::test]
async fn what_is_written_is_read_back_in_the_data_s_order() {
    let (_folder, mut store) = store();
    let run = store.add_run(&record("r1")).unwrap();
    let writer = store.writer().unwrap();
    for position in [1u64, 0] {
        let case = Case { id: format!("c{position}"), ..Case::new("in", "out") };
        writer.case(run, position, &case).await.unwrap();
    }
    let verdict = |seat: u32, score: f64| Verdict {
        judge: format!("j{seat}"),
        ..Verdict::ok(Score::new(score).unwrap())
    };
    writer.verdict(run, 0, 1, &verdict(1, 0.5)).await.unwrap();
    writer.verdict(run, 0, 0, &verdict(0, 0.25)).await.unwrap();
    writer.verdict(run, 0, 0, &verdict(0, 0.75)).await.unwrap();
    writer.flush().await.unwrap();
    let mut ids = Vec::new();
    store
        .each_case(run, |_, id| {
            ids.push(id);
            Ok::<_, StoreError>(())
        })
        .unwrap();
    assert_eq!(ids, ["c0", "c1"]);
    let verdicts = store.verdicts(run, 0).unwrap();
    assert_eq!(verdicts, [verdict(0, 0.75), verdict(1, 0.5)], "the later verdict replaces");
    assert_eq!(store.case(run, 0).unwrap().unwrap().input.as_deref(), Some("in"));
    assert!(store.ruling(run, 0).unwrap().is_none());
}

#[tokio::test]
async fn runs_are_found_by_id_prefix_and_latest() {
    let (_folder, mut store) = store();
    assert!(matches!(store.run("latest"), Err(StoreError::NoSuchRun { .. })));
    for id in ["20260101-a", "20260102-b"] {
        store.add_run(&record(id)).unwrap();
    }
    assert_eq!(store.run("latest").unwrap().id, "20260102-b");
    assert_eq!(store.run("20260101").unwrap().id, "20260101-a");
    assert!(store.run("2026").is_err(), "two runs start so");
    assert!(store.run("").is_err());
    let writer = store.writer().unwrap();
    let number = store.run("20260101").unwrap().number;
    writer.run_state(number, RunState::Finished, Some("{}".into())).await.unwrap();
    assert_eq!(store.run("20260101").unwrap().state, RunState::Finished);
    store.delete_run(number).unwrap();
    assert!(store.run("20260101").is_err());
}

#[tokio::test]
async fn a_reply_is_kept_and_found_and_a_scope_hides_it() {
    let (_folder, mut store) = store();
    let writer = store.writer().unwrap();
    let replies = store.replies(&writer, None).unwrap();
    let key = ReplyKey([7; 32]);
    assert!(replies.lookup(&key).await.is_none());
    replies.record(&key, &reply("yes")).await.unwrap();
    assert_eq!(replies.lookup(&key).await.unwrap().text, "yes");
    let scoped = store.replies(&writer, Some("run-1")).unwrap();
    assert!(scoped.lookup(&key).await.is_none());
    scoped.record(&key, &reply("no")).await.unwrap();
    assert_eq!(scoped.lookup(&key).await.unwrap().text, "no");
    assert_eq!(replies.lookup(&key).await.unwrap().text, "yes");
    assert_eq!(store.reply_statistics().unwrap().0, 2);
    assert_eq!(store.delete_replies(i64::MAX).unwrap(), 2);
}

#[tokio::test]
async fn a_new_store_is_not_searched_until_it_may_hold_what_is_sought() {
    let (_folder, store) = store();
    let writer = store.writer().unwrap();
    let (own, other) = ([1; 32], [2; 32]);
    assert!(!writer.may_hold(&own));
    writer.reply(own, "{}".into()).await.unwrap();
    assert!(writer.may_hold(&own));
    assert!(!writer.may_hold(&other));
    // Another process begins after this one.
    let elsewhere = Store::open(store.path()).unwrap().writer().unwrap();
    assert!(elsewhere.may_hold(&other), "the store has replies of an earlier writer");
    elsewhere.reply(other, "{}".into()).await.unwrap();
    // This one learns of it with its own next batch.
    writer.reply([3; 32], "{}".into()).await.unwrap();
    writer.flush().await.unwrap();
    assert!(writer.may_hold(&other));
}

#[tokio::test]
async fn a_fault_of_the_disk_is_reported_and_nothing_is_written_after_it() {
    let (_folder, mut store) = store();
    let run = store.add_run(&record("r")).unwrap();
    let writer = store.writer().unwrap();
    // A run that does not exist breaks the foreign key, as any fault would.
    writer.verdict(run + 1, 0, 0, &Verdict::failed(Status::Timeout, "x")).await.unwrap();
    assert!(writer.flush().await.is_err());
    assert!(writer.failure().is_some());
    assert!(writer.case(run, 0, &Case::new("a", "b")).await.is_err());
}

#[test]
fn a_store_of_a_newer_version_is_refused() {
    let (_folder, store) = store();
    let path = store.path().to_owned();
    drop(store);
    rusqlite_version(&path, 99);
    assert!(matches!(Store::open(&path), Err(StoreError::Version { found: 99, .. })));
    assert!(matches!(Store::open(&path.with_extension("none")), Err(StoreError::Missing { .. })));
}

/// Writes the version field of the file's header (bytes 60 to 63, big-endian).
fn rusqlite_version(path: &Path, version: u32) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&version.to_be_bytes()).unwrap();
}

#[tokio::test]
async fn the_log_of_a_long_run_begins_anew_and_is_no_other_process_s_doing() {
    let (_folder, mut store) = store();
    let run = store.add_run(&record("r")).unwrap();
    let writer = store.writer().unwrap();
    let case = Case::new("in", "x".repeat(900));
    let log = store.path().with_extension("db-wal");
    let mut largest = 0;
    for position in 0..60_000 {
        writer.case(run, position, &case).await.unwrap();
        if position % 500 == 0 {
            writer.flush().await.unwrap();
            largest = largest.max(std::fs::metadata(&log).unwrap().len());
        }
    }
    writer.reply([1; 32], "{}".into()).await.unwrap();
    assert!(largest < 40_000_000, "{largest} bytes of log for 60 MB");
    assert!(writer.may_hold(&[1; 32]) && !writer.may_hold(&[2; 32]));
    let path = store.path().to_owned();
    drop(store);
    writer.close().await;
    assert!(!log.exists(), "the file alone is whole");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.case(run, 59_999).unwrap().unwrap().output, case.output);
}
