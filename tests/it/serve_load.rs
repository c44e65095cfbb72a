//! A server under load: 200 connections, judges of which one in twenty fails.
//!
//! `VENIRE_LOAD_SECONDS` says how long; the figures go to stderr.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::mock::{Mock, Options};
use crate::serving::{Serving, answer};
use crate::workbench::{Workbench, model_panel};

const CONNECTIONS: u64 = 200;
/// Requests in the house at most, and the size of a body at most: what bounds the memory.
const PLACES: u64 = 256;
const BODY: u64 = 64 * 1024;
/// The time for a case, which is the server's own; a client has to wait a little longer.
const CASE: Duration = Duration::from_secs(120);

fn metric(text: &str, name: &str) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with(name));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_with_faulty_judges_no_answer_is_lost_or_mixed_up() {
    let seconds = std::env::var("VENIRE_LOAD_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(3));
    let mock = Mock::start(Options { faults: 0.05, seed: 11, ..Options::default() }).await.unwrap();
    let bench = Workbench::new();
    bench.write("panel.toml", model_panel(&mock.url(), 3, "timeout = \"3s\""));
    let body = BODY.to_string();
    let flags = ["serve", "-j", "64", "--queue", "192", "--max-body", &body];
    let serving = Serving::start_with(&bench, &flags, &[("OPENAI_API_KEY", "k")]);
    let serving = Arc::new(serving);
    let (next, undecided) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let end = Instant::now() + time;
    let clients = (0..CONNECTIONS).map(|_| {
        let (serving, next, undecided) = (serving.clone(), next.clone(), undecided.clone());
        tokio::spawn(async move {
            let (mut answered, mut longest) = (0u64, Duration::ZERO);
            while Instant::now() < end {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let id = format!("c{i}");
                let filler = "x".repeat((i % 40 * 1024) as usize);
                let output = format!("[[quality:0.8]] {i} {filler}");
                let case = json!({ "id": id, "input": "q", "output": output });
                let request = serving.request(Method::POST, "/v1/score").json(&case);
                let sent = Instant::now();
                let ruling = answer(request.timeout(CASE * 2)).await.is(200).json();
                longest = longest.max(sent.elapsed());
                assert_eq!(ruling["case"], id, "an answer to another question");
                assert_eq!(ruling["verdicts"].as_array().unwrap().len(), 3);
                assert_eq!(ruling["score"].is_null(), ruling["decision"] == "undecided");
                undecided.fetch_add(u64::from(ruling["score"].is_null()), Ordering::Relaxed);
                answered += 1;
            }
            (answered, longest)
        })
    });
    let started = Instant::now();
    let ended = futures::future::join_all(clients).await.into_iter().map(Result::unwrap);
    let (answered, longest) = ended
        .fold((0, Duration::ZERO), |all: (u64, Duration), own| (all.0 + own.0, all.1.max(own.1)));
    let elapsed = started.elapsed().as_secs_f64();
    let sent = next.load(Ordering::Relaxed);
    assert_eq!(answered, sent, "every request has its answer");
    assert!(longest < CASE + Duration::from_secs(20), "an answer took {longest:?}");
    let metrics = serving.get("/metrics").await.is(200).text;
    assert_eq!(metric(&metrics, "venire_rulings_total"), sent);
    assert_eq!(metric(&metrics, "venire_verdicts_total"), 3 * sent);
    assert_eq!(metric(&metrics, "venire_requests_in_hand "), 0);
    let failed = failed_verdicts(&metrics);
    eprintln!(
        "{sent} requests in {elapsed:.1} s over {CONNECTIONS} connections: {:.0}/s, the longest {:.1} s; {failed} of {} verdicts failed, {} rulings undecided",
        sent as f64 / elapsed,
        longest.as_secs_f64(),
        3 * sent,
        undecided.load(Ordering::Relaxed),
    );
    #[cfg(target_os = "linux")]
    {
        // A body is held as bytes, as a value and as a case, and by each of three judges as a
        // prompt and a request.
        let bound = 100 * 1024 * 1024 + PLACES * BODY * 9;
        let peak = serving.peak_memory();
        eprintln!("peak memory {} MB, bound {} MB", peak >> 20, bound >> 20);
        assert!(peak < bound, "{peak} bytes of at most {bound}");
    }
}

fn failed_verdicts(metrics: &str) -> u64 {
    let of_ok: u64 = metrics
        .lines()
        .filter(|line| line.starts_with("venire_verdicts_total") && line.contains("status=\"ok\""))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum();
    metric(metrics, "venire_verdicts_total") - of_ok
}
