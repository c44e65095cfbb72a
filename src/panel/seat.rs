//! A seat: one judge on a panel, with its deadline and its place in the vote.
//!
//! The seat stands between a judge and the panel. Whatever the judge does (panic, hang,
//! answer without a name), what the panel gets is a verdict.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;

use super::decide::SeatRules;
use super::inverted;
use super::spec::SeatKeys;
use crate::case::Case;
use crate::judge::BoxedJudge;
use crate::judge::process::Period;
use crate::provider::{CallContext, Held, Places};
use crate::verdict::{INVERTED, Status, Verdict};

/// The time for one verdict where the configuration names none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a judge that does not keep its own deadline is waited for beyond it: long enough
/// for a judge to report a time-out in its own words, with what it spent.
const GRACE: Duration = Duration::from_secs(2);

/// How close to its deadline a time-out is one of the deadline.
const SLACK: Duration = Duration::from_millis(50);

/// One judge on a panel.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The judge's name in votes and reports.
    pub name: String,
    /// The judge.
    pub judge: BoxedJudge,
    /// The weight of its vote.
    pub weight: f64,
    /// Whether a vote below the threshold rejects.
    pub required: bool,
    /// Whether it may accept alone.
    pub accept_alone: bool,
    /// Whether its vote is shown and not counted.
    pub report_only: bool,
    /// Whether its vote is 1 minus its score.
    pub invert: bool,
    /// Samples that make one vote.
    pub samples: u32,
    /// The time for one verdict.
    pub timeout: Duration,
}

impl Seat {
    /// Seats a judge.
    #[must_use]
    pub fn new(keys: &SeatKeys, judge: BoxedJudge) -> Self {
        Self {
            name: keys.name.clone(),
            samples: judge.samples().max(1),
            judge,
            weight: keys.weight,
            required: keys.required,
            accept_alone: keys.accept_alone,
            report_only: keys.report_only,
            invert: keys.invert,
            timeout: keys.timeout.map_or(DEFAULT_TIMEOUT, Period::get),
        }
    }

    /// What the vote needs to know of the seat.
    #[must_use]
    pub fn rules(&self) -> SeatRules {
        SeatRules {
            name: self.name.clone(),
            weight: self.weight,
            required: self.required,
            report_only: self.report_only,
            samples: self.samples,
        }
    }

    /// Whether its criteria are its own. A rubric's are the same for every judge that uses it; a
    /// rule's or a command's must not be merged with another's of the same name.
    fn has_own_criteria(&self) -> bool {
        matches!(self.judge.kind(), "rule" | "command" | "observe")
    }

    /// The name that a criterion of its judge has in verdicts.
    fn criterion(&self, name: &str) -> String {
        if self.has_own_criteria() { format!("{}/{name}", self.name) } else { name.to_owned() }
    }

    /// The weights of its criteria, as far as they are known before it is asked.
    #[must_use]
    pub fn criterion_weights(&self) -> Vec<(String, f64)> {
        let own = self.judge.criterion_weights().into_iter();
        own.map(|(name, weight)| (self.criterion(&name), weight)).collect()
    }

    /// The samples that none of these verdicts is of.
    pub(super) fn open_samples(&self, verdicts: &[Verdict]) -> Vec<u32> {
        let have =
            |sample: u32| verdicts.iter().any(|v| v.sample == sample && v.judge == self.name);
        (0..self.samples).filter(|sample| !have(*sample)).collect()
    }

    /// Judges one sample of a case, once there is a free place: waiting for one counts
    /// neither as time of the judge nor against its deadline.
    pub async fn judge(
        &self,
        case: &Case,
        context: CallContext,
        sample: u32,
        places: Option<&Places>,
    ) -> Verdict {
        let place = match places {
            None => None,
            Some(places) => match places.take().await {
                Some(place) => Some(place),
                None => {
                    let stopped = Verdict::failed(Status::Cancelled, "stopped before it was asked");
                    return self.seal(stopped, sample, Duration::ZERO);
                }
            },
        };
        let started = Instant::now();
        let (panels, own) = (context.deadline, started + self.timeout);
        let deadline = panels.min(own);
        let context = CallContext { sample, deadline, held: Held::default(), place, ..context };
        let work = AssertUnwindSafe(self.judge.judge(case, &context)).catch_unwind();
        let mut verdict = tokio::select! {
            biased;
            outcome = work => outcome.unwrap_or_else(|panic| {
                Verdict::failed(Status::Internal, format!("the judge panicked: {}", words(&*panic)))
            }),
            () = context.cancel.cancelled() => {
                Verdict::failed(Status::Cancelled, "stopped before the judge had answered")
            }
            () = overdue(&context) => Verdict::failed(Status::Timeout, "no verdict in time"),
        };
        // Limits of a judge's parts (one check, one request) end before, and say so themselves.
        if verdict.status == Status::Timeout && Instant::now() + SLACK >= context.due() {
            let limit = self.limit(panels < own, deadline - started);
            let said = verdict.detail.take().unwrap_or_default();
            verdict.detail = Some(format!("{said}; {limit}"));
        }
        let elapsed = started.elapsed().saturating_sub(context.held.total());
        self.seal(verdict, sample, elapsed)
    }

    /// Which limit a verdict has missed, whose it is, and what to change.
    fn limit(&self, of_panel: bool, time: Duration) -> String {
        let time = seconds(time);
        let name = &self.name;
        if of_panel {
            format!(
                "what was left of the panel's `timeout` was {time}: raise `timeout` at the top of the panel file, or take judges off"
            )
        } else if self.timeout == DEFAULT_TIMEOUT {
            format!("the limit was {time}, the default: set `timeout` on the judge `{name}`")
        } else {
            format!("the limit was {time}, the judge's `timeout`: raise it on the judge `{name}`")
        }
    }

    /// Puts the seat's name on a verdict, and holds a judge to the rules of verdicts.
    fn seal(&self, mut verdict: Verdict, sample: u32, elapsed: Duration) -> Verdict {
        verdict.judge.clone_from(&self.name);
        verdict.fingerprint = self.judge.fingerprint().clone();
        verdict.sample = sample;
        let kind = self.judge.kind();
        let complains = self.has_own_criteria();
        // The mark is a seat's to set; only a recording brings it along.
        let turned = kind == "replay" && inverted::is_inverted(&verdict);
        if !turned {
            verdict.notes.remove(INVERTED);
        }
        if self.invert && !turned && verdict.status == Status::Ok {
            inverted::invert(&mut verdict, complains);
        }
        for criterion in &mut verdict.criteria {
            criterion.name = self.criterion(&criterion.name);
        }
        if verdict.latency_ms == 0 {
            verdict.latency_ms = elapsed.as_millis() as u64;
        }
        match (verdict.status, verdict.score) {
            (Status::Ok, None) => {
                verdict.status = Status::Internal;
                verdict.detail = Some("the judge said `ok` and gave no score".into());
            }
            (Status::Ok, Some(_)) => {}
            (_, _) => verdict.score = None,
        }
        verdict
    }
}

/// Returns when a judge has not kept its own deadline, the grace included.
async fn overdue(context: &CallContext) {
    loop {
        context.past_due().await;
        tokio::time::sleep(GRACE).await;
        if Instant::now() >= context.due() + GRACE {
            return;
        }
    }
}

/// A length of time as a person writes it: `500 ms`, `2.5 s`, `120 s`.
fn seconds(time: Duration) -> String {
    match time.as_millis() {
        ms if ms < 1000 => format!("{ms} ms"),
        ms => format!("{} s", (ms as f64 / 100.0).round() / 10.0),
    }
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".into())
}
