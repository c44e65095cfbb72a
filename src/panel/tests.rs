use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::BoxFuture;
use proptest::prelude::*;

use super::*;
use crate::judge::{Judge, Plan};
use crate::panel::spec::SeatKeys;
use crate::ruling::Decision;
use crate::score::Score;
use crate::verdict::Status;

/// A judge that does what it is told.
#[derive(Debug)]
struct Told {
    verdict: Verdict,
    wait: Duration,
    panics: bool,
    calls: u32,
    asked: Arc<AtomicU32>,
    fingerprint: Fingerprint,
}

fn told(verdict: Verdict) -> Told {
    Told {
        verdict,
        wait: Duration::ZERO,
        panics: false,
        calls: 0,
        asked: Arc::default(),
        fingerprint: Fingerprint::of("told", &serde_json::Value::Null),
    }
}

impl Judge for Told {
    fn kind(&self) -> &'static str {
        "told"
    }

    fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    fn judge<'a>(&'a self, _: &'a Case, _: &'a CallContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.wait).await;
            assert!(!self.panics, "told to");
            self.verdict.clone()
        })
    }

    fn plan(&self, _: &Case) -> Plan {
        Plan { calls: self.calls, ..Plan::default() }
    }
}

fn keys(name: &str) -> SeatKeys {
    serde_json::from_value(serde_json::json!({ "name": name })).unwrap()
}

fn panel(judges: Vec<Told>) -> Panel {
    let seats: Vec<Seat> = judges
        .into_iter()
        .enumerate()
        .map(|(i, judge)| Seat::new(&keys(&format!("j{i}")), Arc::new(judge)))
        .collect();
    let rules = Rules {
        seats: seats.iter().map(Seat::rules).collect(),
        settings: Settings::default(),
        threshold: 0.7,
        quorum: seats.len() as u32 / 2 + 1,
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

fn ok(value: f64) -> Verdict {
    Verdict::ok(Score::new(value).unwrap())
}

fn context() -> CallContext {
    CallContext::standalone(Duration::from_secs(600))
}

#[tokio::test(start_paused = true)]
async fn judges_are_asked_at_once() {
    let slow = |value| Told { wait: Duration::from_secs(10), ..told(ok(value)) };
    let panel = panel(vec![slow(0.9), slow(0.8), slow(0.1)]);
    let started = Instant::now();
    let ruling = panel.judge(&Case::new("q", "a"), &context()).await;
    assert_eq!(started.elapsed().as_secs(), 10);
    assert_eq!(ruling.decision, Decision::Accept);
    assert_eq!(ruling.verdicts[0].latency_ms, 10_000);
}

#[tokio::test]
async fn a_panic_is_one_verdict_and_not_the_panels_end() {
    let panel = panel(vec![told(ok(0.9)), Told { panics: true, ..told(ok(1.0)) }, told(ok(0.8))]);
    let ruling = panel.judge(&Case::new("q", "a"), &context()).await;
    assert_eq!(ruling.verdicts[1].status, Status::Internal);
    assert!(ruling.verdicts[1].detail.as_ref().unwrap().contains("told to"));
    assert_eq!((ruling.decision, ruling.degraded), (Decision::Accept, true));
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_hangs_times_out_alone() {
    let hangs = Told { wait: Duration::from_secs(1_000_000), ..told(ok(1.0)) };
    let panel = panel(vec![hangs, told(ok(0.9)), told(ok(0.8))]);
    let ruling = panel.judge(&Case::new("q", "a"), &context()).await;
    assert_eq!(ruling.verdicts[0].status, Status::Timeout);
    assert_eq!(ruling.decision, Decision::Accept);
}

#[tokio::test]
async fn a_panel_whose_every_judge_abstains_is_undecided() {
    let panel = panel((0..3).map(|_| told(Verdict::abstained("not mine"))).collect());
    let ruling = panel.judge(&Case::new("q", "a"), &context()).await;
    assert_eq!((ruling.decision, ruling.score), (Decision::Undecided, None));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_open_verdicts_as_cancelled() {
    let panel = panel(vec![Told { wait: Duration::from_secs(60), ..told(ok(1.0)) }]);
    let context = context();
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
    });
    let ruling = panel.judge(&Case::new("q", "a"), &context).await;
    assert_eq!(ruling.verdicts[0].status, Status::Cancelled);
}

#[tokio::test]
async fn known_verdicts_are_not_asked_for_again() {
    let judge = told(ok(0.9));
    let asked = judge.asked.clone();
    let panel = panel(vec![judge, told(ok(0.8)), told(ok(0.7))]);
    let known =
        Known { verdicts: vec![Verdict { judge: "j0".into(), ..ok(0.2) }], retry: Vec::new() };
    let ruling = panel.judge_with(&Case::new("q", "a"), &context(), known, &()).await;
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(ruling.votes[0].score, Some(Score::new(0.2).unwrap()));
}

#[tokio::test]
async fn a_sequential_panel_asks_free_judges_first_and_stops_when_settled() {
    let dear = Told { calls: 1, ..told(ok(1.0)) };
    let asked = dear.asked.clone();
    let mut panel = panel(vec![dear, told(ok(0.1)), told(ok(0.2))]);
    panel.sequential = true;
    let ruling = panel.judge(&Case::new("q", "a"), &context()).await;
    assert_eq!(ruling.decision, Decision::Reject);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "two rejections of three settle it");
    assert_eq!(ruling.verdicts.len(), 3, "every judge has a verdict");
    assert_eq!(ruling.verdicts[0].status, Status::Cancelled);
    assert!(!ruling.degraded, "a vote that was not needed was not lost");
}

#[test]
fn families_are_told_by_the_models_own_name() {
    for (model, expected) in [
        ("openai/gpt-4.1-mini", "gpt"),
        ("openai/gpt-5", "gpt"),
        ("anthropic/claude-sonnet", "claude"),
        ("openrouter/meta-llama/Llama-3-8b", "llama"),
        ("ollama/qwen2.5:1.5b", "qwen"),
    ] {
        assert_eq!(family(model), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_decision_waits_for_no_vote_that_can_not_change_it() {
    let never = || Told { wait: Duration::from_secs(100), calls: 1, ..told(ok(0.0)) };
    let early = |judges| {
        let mut panel = panel(judges);
        panel.decide_early();
        panel
    };
    let began = Instant::now();
    let own = early(vec![told(ok(0.9)), told(ok(0.8)), never()]);
    let ruling = own.judge(&Case::new("q", "a"), &context()).await;
    assert_eq!(ruling.decision, Decision::Accept);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let cut = &ruling.verdicts[2];
    assert!(cut.status == Status::Cancelled && cut.notes.contains_key(decide::NOT_NEEDED));
    assert!(cut.usage.estimated && cut.usage.calls == 1, "it may have been paid for");
    // Lower medians: with the open vote at 0 and at 1.
    let (low, high) = ruling.score_bounds.unwrap();
    assert_eq!((low.get(), high.get()), (0.8, 0.9));
    assert!(!ruling.degraded, "nothing failed");
    // One vote settles nothing, and a veto everything.
    let began = Instant::now();
    let ruling = early(vec![told(ok(0.9)), never()]).judge(&Case::new("q", "a"), &context()).await;
    assert!(began.elapsed() >= Duration::from_secs(100) && ruling.score_bounds.is_none());
    let mut veto = early(vec![told(ok(0.1)), never(), never()]);
    veto.seats[0].required = true;
    veto.rules.seats[0].required = true;
    let began = Instant::now();
    let ruling = veto.judge(&Case::new("q", "a"), &context()).await;
    // Below the quorum there is no decision, so one more vote is waited for.
    assert_ne!(ruling.decision, Decision::Accept);
    assert!(began.elapsed() <= Duration::from_secs(100));
    // What was cut off by the user is no decision.
    let stopped = context();
    let own = early(vec![told(ok(0.9)), never(), never()]);
    let case = Case::new("q", "a");
    let (ruling, ()) = tokio::join!(own.judge(&case, &stopped), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stopped.cancel.cancel();
    });
    assert_eq!(ruling.decision, Decision::Undecided);
    assert!(ruling.verdicts.iter().all(|v| !v.notes.contains_key(decide::NOT_NEEDED)));
}

#[test]
fn a_reserve_judge_has_no_vote_on_the_panel_and_a_panel_of_its_own() {
    let spec = |more: &str| {
        let judge = |name: &str, more: &str| {
            format!(
                "[[judge]]\nname = \"{name}\"\nkind = \"rule\"\nrule = \"length\"\nwords = {{ min = 1 }}\n{more}"
            )
        };
        let text = format!(
            "threshold = 0.6\n{}{}{}",
            judge("a", more),
            judge("b", "reserve = true\n"),
            judge("c", "reserve = true\n")
        );
        let value: toml::Value = toml::from_str(&text).unwrap();
        PanelSpec::from_value(serde_json::to_value(value).unwrap())
    };
    let own = spec("").unwrap();
    let build = BuildContext::new(".", Client::default());
    let mut panel = Panel::seat(&own, &build).unwrap();
    assert_eq!((panel.seats.len(), panel.rules.quorum, own.counted()), (1, 1, 1));
    let reserve = panel.reserve().unwrap();
    assert_eq!((reserve.seats.len(), reserve.rules.quorum), (2, 2));
    panel.set_threshold(0.8);
    assert_eq!(panel.reserve().unwrap().rules.threshold, 0.8);
    assert!(spec("reserve = true\n").unwrap_err().to_string().contains("no vote would count"));
    let both = spec("reserve = true\nreport_only = true\n").unwrap_err().to_string();
    assert!(both.contains("reserve"), "{both}");
}

fn outcome() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        4 => (0u32..=10).prop_map(|v| ok(f64::from(v) / 10.0)),
        1 => Just(Verdict::failed(Status::Timeout, "x")),
        1 => Just(Verdict::abstained("x")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_sequential_panel_decides_as_the_full_one(
        verdicts in prop::collection::vec(outcome(), 1..7),
        costs in prop::collection::vec(0u32..4, 7),
        aggregate in prop::sample::select(vote::Aggregate::ALL.to_vec()),
        weights in prop::collection::vec(prop_oneof![Just(1.0), 0.1..5.0f64], 7),
        required in prop::collection::vec(prop::bool::weighted(0.2), 7),
        report_only in prop::collection::vec(prop::bool::weighted(0.2), 7),
        quorum in 1u32..4,
        midpoint in any::<bool>(),
    ) {
        let build = || {
            let judges = verdicts.iter().zip(&costs);
            let mut panel = panel(judges.map(|(v, c)| Told { calls: *c, ..told(v.clone()) }).collect());
            for (i, seat) in panel.seats.iter_mut().enumerate() {
                seat.weight = weights[i];
                seat.report_only = report_only[i] && i > 0;
                seat.required = required[i] && !seat.report_only;
            }
            panel.rules.seats = panel.seats.iter().map(Seat::rules).collect();
            panel.rules.settings.aggregate = aggregate;
            panel.rules.settings.midpoint = midpoint;
            panel.rules.quorum = quorum.min(panel.rules.declared());
            panel
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let case = Case::new("q", "a");
        let full = build();
        let mut sequential = build();
        sequential.sequential = true;
        let mut at_once = build();
        at_once.decide_early();
        let (full, early, at_once) = runtime.block_on(async {
            (
                full.judge(&case, &context()).await,
                sequential.judge(&case, &context()).await,
                at_once.judge(&case, &context()).await,
            )
        });
        prop_assert_eq!(full.decision, early.decision);
        prop_assert_eq!(full.verdicts.len(), early.verdicts.len());
        prop_assert_eq!(full.decision, at_once.decision);
        prop_assert_eq!(full.verdicts.len(), at_once.verdicts.len());
    }
}
