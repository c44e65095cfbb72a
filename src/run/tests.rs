use std::convert::Infallible;

use super::*;
use crate::judge::Judge;
use crate::panel::vote::Settings;
use crate::panel::{Rules, Seat};
use crate::provider::NoReplies;
use crate::score::Score;
use crate::store::RunRecord;
use crate::verdict::Fingerprint;
use std::sync::atomic::{AtomicU32, Ordering};

/// Scores by the length of the output; can fail for a while or stop the run.
#[derive(Debug)]
struct Counting {
    asked: Arc<AtomicU32>,
    stop_after: Option<(u32, CancellationToken)>,
    fails: Arc<std::sync::atomic::AtomicBool>,
    fingerprint: Fingerprint,
}

impl Judge for Counting {
    fn kind(&self) -> &'static str {
        "counting"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn judge<'a>(&'a self, case: &'a Case, _: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            if let Some((after, stop)) = &self.stop_after
                && asked >= *after
            {
                stop.cancel();
            }
            tokio::task::yield_now().await;
            if self.fails.load(Ordering::SeqCst) && case.id.ends_with('3') {
                return Verdict::failed(Status::ProviderError, "told to");
            }
            let length = case.output.as_ref().map_or(0, String::len);
            Verdict::ok(Score::share(length as f64, 10.0).unwrap())
        })
    }
}

struct Bench {
    _folder: tempfile::TempDir,
    store: Store,
    run: RunRecord,
    asked: Arc<AtomicU32>,
    fails: Arc<std::sync::atomic::AtomicBool>,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(&folder.path().join("store.db")).unwrap();
    let mut run = RunRecord {
        number: 0,
        id: "r".into(),
        created: String::new(),
        state: RunState::Running,
        panel_name: String::new(),
        panel_fingerprint: String::new(),
        panel: String::new(),
        data: String::new(),
        data_hash: String::new(),
        options: String::new(),
        summary: None,
    };
    run.number = store.add_run(&run).unwrap();
    Bench { _folder: folder, store, run, asked: Arc::default(), fails: Arc::default() }
}

impl Bench {
    fn panel(&self, stop_after: Option<(u32, CancellationToken)>) -> Panel {
        let judge = Counting {
            asked: self.asked.clone(),
            stop_after,
            fails: self.fails.clone(),
            fingerprint: Fingerprint::of("counting", &serde_json::Value::Null),
        };
        let keys = serde_json::from_value(serde_json::json!({ "name": "j" })).unwrap();
        let seats = vec![Seat::new(&keys, Arc::new(judge))];
        let rules = Rules {
            seats: seats.iter().map(Seat::rules).collect(),
            settings: Settings::default(),
            threshold: 0.5,
            quorum: 1,
            profile: None,
        };
        Panel {
            name: "p".into(),
            seats,
            rules,
            sequential: false,
            early_decision: false,
            timeout: None,
            reserve: None,
            places: None,
        }
    }

    fn place(&self, writer: &Writer) -> Place {
        Place {
            store: self.store.path().to_owned(),
            run: self.run.number,
            writer: writer.clone(),
            replies: Arc::new(NoReplies),
        }
    }

    async fn execute(&self, panel: Panel, options: Options) -> Report {
        let writer = self.store.writer().unwrap();
        let cases = (0..100usize).map(|i| {
            Ok::<_, Infallible>(Case { id: format!("c{i}"), ..Case::new("q", "x".repeat(i % 11)) })
        });
        execute(panel, cases, &self.place(&writer), &options, &mut |_| {}).await.unwrap()
    }

    fn rulings(&self) -> Vec<(String, Option<Score>, Status)> {
        let mut rulings = Vec::new();
        self.store
            .each_case(self.run.number, |position, _| {
                if let Some(ruling) = self.store.ruling(self.run.number, position)? {
                    rulings.push((ruling.case, ruling.score, ruling.verdicts[0].status));
                }
                Ok::<_, StoreError>(())
            })
            .unwrap();
        rulings
    }
}

fn options() -> Options {
    Options {
        concurrency: 8,
        retry_errors: false,
        resumed: false,
        stop: CancellationToken::new(),
        abandon: CancellationToken::new(),
        ledger: Arc::default(),
    }
}

#[tokio::test]
async fn every_case_has_a_ruling_and_every_verdict_a_status() {
    let bench = bench();
    bench.fails.store(true, Ordering::SeqCst);
    let report = bench.execute(bench.panel(None), options()).await;
    assert!(report.finished);
    assert_eq!((report.tally.cases, report.tally.verdicts()), (100, 100));
    assert_eq!(report.tally.statuses.get(Status::ProviderError), 10);
    assert_eq!(report.tally.undecided, 10);
    let decided = report.tally.accepted + report.tally.rejected + report.tally.undecided;
    assert_eq!(decided, 100);
    let ids: Vec<String> = bench.rulings().into_iter().map(|ruling| ruling.0).collect();
    let expected: Vec<String> = (0..100).map(|i| format!("c{i}")).collect();
    assert_eq!(ids, expected, "in the data's order");
}

#[tokio::test]
async fn a_stopped_and_resumed_run_equals_an_uninterrupted_one() {
    let whole = bench();
    whole.execute(whole.panel(None), options()).await;
    let parts = bench();
    let stop = CancellationToken::new();
    let first = Options { stop: stop.clone(), ..options() };
    let report = parts.execute(parts.panel(Some((30, stop))), first).await;
    assert!(!report.finished);
    let kept = parts.rulings().len();
    assert!((29..60).contains(&kept), "{kept} were kept");
    let second = Options { resumed: true, ..options() };
    let report = parts.execute(parts.panel(None), second).await;
    assert!(report.finished);
    assert_eq!(report.tally.cases, 100);
    assert_eq!(parts.rulings(), whole.rulings());
    assert_eq!(parts.asked.load(Ordering::SeqCst), 100, "nothing is judged twice");
}

#[tokio::test]
async fn retrying_errors_asks_again_only_for_what_failed() {
    let bench = bench();
    bench.fails.store(true, Ordering::SeqCst);
    bench.execute(bench.panel(None), options()).await;
    bench.fails.store(false, Ordering::SeqCst);
    let resumed = Options { resumed: true, ..options() };
    let report = bench.execute(bench.panel(None), resumed.clone()).await;
    assert_eq!(report.tally.undecided, 10, "without the option failures stand");
    let retried = Options { retry_errors: true, ..resumed };
    let report = bench.execute(bench.panel(None), retried).await;
    assert_eq!(report.tally.undecided, 0);
    assert_eq!(bench.asked.load(Ordering::SeqCst), 110);
}

#[tokio::test]
async fn a_data_set_that_breaks_off_is_an_error_and_what_was_judged_is_kept() {
    let bench = bench();
    let writer = bench.store.writer().unwrap();
    let cases =
        (0..10).map(|i| if i < 5 { Ok(Case::new("q", format!("{i}"))) } else { Err("torn") });
    let outcome = execute(
        bench.panel(None),
        cases,
        &bench.place(&writer),
        &Options { concurrency: 1, ..options() },
        &mut |_| {},
    )
    .await;
    assert!(matches!(outcome, Err(RunError::Data(_))));
    assert_eq!(bench.store.run("r").unwrap().state, RunState::Interrupted);
}
