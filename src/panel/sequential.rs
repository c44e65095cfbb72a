//! Sequential voting: the cheap judges first, and no call that can't change the decision; and
//! its parallel form, which asks all at once and waits for no more votes than decide.
//!
//! After each judge the remaining votes are imagined in every way they can turn out: given
//! or missing, worst or best. Since every aggregator is monotone, the worst and the best
//! votes bound all others; when all of these end in one decision, so does the full panel.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use super::decide::{NOT_NEEDED, Rules};
use super::{Known as Before, Listener, Panel};
use crate::case::Case;
use crate::judge::Plan;
use crate::provider::CallContext;
use crate::ruling::{Decision, Ruling};
use crate::score::Score;
use crate::verdict::{Status, Usage, Verdict};

/// Open seats beyond which no early stop is looked for: the ways grow as 2 to their number.
const MOST_OPEN: usize = 12;

pub(super) async fn judge(
    panel: &Panel,
    case: &Case,
    context: &CallContext,
    known: Before,
    listener: &dyn Listener,
) -> Ruling {
    let mut verdicts = known.verdicts.clone();
    for at in order(panel, case) {
        let seat = &panel.seats[at];
        let open = seat.open_samples(&verdicts);
        if open.is_empty() {
            continue;
        }
        let asked = panel.rules.rule(&case.id, verdicts.clone());
        let settled = settled(panel, &votes(&panel.rules, &asked, &verdicts));
        if settled && !seat.report_only {
            let skipped = open.into_iter().map(|sample| Verdict {
                judge: seat.name.clone(),
                fingerprint: seat.judge.fingerprint().clone(),
                sample,
                attempts: 0,
                ..Verdict::failed(Status::Cancelled, "not asked: the decision was settled")
                    .note(NOT_NEEDED, true)
            });
            for verdict in skipped {
                listener.verdict(&verdict).await;
                verdicts.push(verdict);
            }
            continue;
        }
        let samples = open.into_iter().map(|sample| {
            let context = known.context(context, &seat.name, sample);
            seat.judge(case, context, sample, panel.places.as_ref())
        });
        for verdict in futures::future::join_all(samples).await {
            listener.verdict(&verdict).await;
            verdicts.push(verdict);
        }
    }
    rule(panel, case, verdicts)
}

/// Asks all judges at once, and does not wait for votes that can no longer change the
/// decision. Those that are only reported are waited for.
pub(super) async fn judge_early(
    panel: &Panel,
    case: &Case,
    context: &CallContext,
    known: Before,
    listener: &dyn Listener,
) -> Ruling {
    let needed = context.cancel.child_token();
    let mut open = FuturesUnordered::new();
    for (at, seat) in panel.seats.iter().enumerate() {
        for sample in seat.open_samples(&known.verdicts) {
            let mut context = known.context(context, &seat.name, sample);
            if !seat.report_only {
                context.cancel = needed.clone();
            }
            let verdict = seat.judge(case, context, sample, panel.places.as_ref());
            open.push(async move { (at, verdict.await) });
        }
    }
    let mut verdicts = known.verdicts.clone();
    loop {
        let asked = panel.rules.rule(&case.id, verdicts.clone());
        if settled(panel, &votes(&panel.rules, &asked, &verdicts)) {
            needed.cancel();
        }
        let Some((at, mut verdict)) = open.next().await else { break };
        let cut = verdict.status == Status::Cancelled
            && needed.is_cancelled()
            && !context.cancel.is_cancelled();
        if cut {
            verdict = not_waited_for(panel.seats[at].judge.plan(case), verdict, context);
        }
        listener.verdict(&verdict).await;
        verdicts.push(verdict);
    }
    rule(panel, case, verdicts)
}

/// A call that was cut off may have been paid for: it counts at the most that it can have
/// taken, marked as estimated.
fn not_waited_for(plan: Plan, verdict: Verdict, context: &CallContext) -> Verdict {
    let mut verdict = verdict.note(NOT_NEEDED, true);
    verdict.detail = Some("not waited for: the decision was settled".to_owned());
    if plan.calls > 0 && verdict.usage == Usage::default() {
        verdict.usage = Usage {
            tokens_in: plan.tokens_in,
            tokens_out: plan.tokens_out,
            calls: plan.calls,
            estimated: true,
            ..Usage::default()
        };
        verdict.cost_usd = plan.cost_usd;
        let micro_dollars = plan.cost_usd.map(|usd| (usd * 1e6).ceil() as u64);
        context.ledger.book(&verdict.usage, micro_dollars);
    }
    verdict
}

/// The ruling on what was asked, with the bounds of what the full panel could have said.
fn rule(panel: &Panel, case: &Case, verdicts: Vec<Verdict>) -> Ruling {
    let mut ruling = panel.rules.rule(&case.id, verdicts);
    let skipped = |name: &str| {
        ruling.verdicts.iter().any(|v| v.judge == name && v.notes.contains_key(NOT_NEEDED))
    };
    let votes: Vec<Known> = ruling
        .votes
        .iter()
        .map(|vote| if skipped(&vote.judge) { Known::Open } else { Known::Asked(vote.score) })
        .collect();
    ruling.score_bounds = bounds(&panel.rules, &votes);
    ruling
}

/// The least and the greatest score over the ways in which the open votes can turn out.
fn bounds(rules: &Rules, votes: &[Known]) -> Option<(Score, Score)> {
    let ways = Ways::of(rules, votes)?;
    let scores = |vote| ways.all().filter_map(move |votes| rules.outcome(&votes(vote)).score);
    Some((scores(Score::ZERO).min()?, scores(Score::ONE).max()?))
}

/// Required judges first (they can end it alone), then by price, then in the panel's order.
fn order(panel: &Panel, case: &Case) -> Vec<usize> {
    let mut order: Vec<usize> = (0..panel.seats.len()).collect();
    let price = |at: &usize| {
        let seat = &panel.seats[*at];
        let plan = seat.judge.plan(case);
        let calls = plan.calls.saturating_mul(seat.samples);
        let cost = plan.cost_usd.unwrap_or(0.0) * f64::from(seat.samples);
        (!seat.required, calls, cost)
    };
    order.sort_by(|a, b| {
        let (a, b) = (price(a), price(b));
        // Free judges first, then by money where it is known, then by calls.
        (a.0, a.1 > 0).cmp(&(b.0, b.1 > 0)).then(a.2.total_cmp(&b.2)).then(a.1.cmp(&b.1))
    });
    order
}

/// What is known of a seat's vote.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// It was asked for: a score, or none.
    Asked(Option<Score>),
    /// It was not asked for yet.
    Open,
}

fn votes(rules: &Rules, ruling: &Ruling, verdicts: &[Verdict]) -> Vec<Known> {
    let asked = |name: &str, samples: u32| {
        verdicts.iter().filter(|v| v.judge == name).count() as u32 >= samples
    };
    rules
        .seats
        .iter()
        .zip(&ruling.votes)
        .map(
            |(seat, vote)| {
                if asked(&seat.name, seat.samples) { Known::Asked(vote.score) } else { Known::Open }
            },
        )
        .collect()
}

/// Every set of open seats that may still vote.
struct Ways<'a> {
    votes: &'a [Known],
    open: Vec<usize>,
}

impl<'a> Ways<'a> {
    /// `None` when no counted vote is open, or too many are.
    fn of(rules: &Rules, votes: &'a [Known]) -> Option<Self> {
        let open: Vec<usize> = (0..votes.len())
            .filter(|i| matches!(votes[*i], Known::Open) && !rules.seats[*i].report_only)
            .collect();
        (!open.is_empty() && open.len() <= MOST_OPEN).then_some(Self { votes, open })
    }

    /// For each set, the votes of the whole panel when all of the set vote alike.
    fn all(&self) -> impl Iterator<Item = impl Fn(Score) -> Vec<Option<Score>> + '_> + '_ {
        (0..1usize << self.open.len()).map(move |present| {
            move |vote| {
                let mut all: Vec<Option<Score>> = self
                    .votes
                    .iter()
                    .map(|known| match known {
                        Known::Asked(score) => *score,
                        Known::Open => None,
                    })
                    .collect();
                for (bit, at) in self.open.iter().enumerate() {
                    if present >> bit & 1 == 1 {
                        all[*at] = Some(vote);
                    }
                }
                all
            }
        })
    }
}

/// Whether every way in which the open votes can turn out ends in one decision.
fn settled(panel: &Panel, votes: &[Known]) -> bool {
    let rules = &panel.rules;
    let Some(ways) = Ways::of(rules, votes) else { return false };
    if ways.open.len() == votes.len() {
        return false;
    }
    let every = |vote: Score, decided: Decision| {
        ways.all().all(|votes| rules.outcome(&votes(vote)).decision == decided)
    };
    // Worst votes bound an accept from below, best votes a reject from above; undecided must
    // hold for both. A required criterion that an open judge may still fail keeps an accept
    // open.
    let criteria_open = ways.open.iter().any(|at| panel.seats[*at].judge.may_fail_criterion());
    (!criteria_open && every(Score::ZERO, Decision::Accept))
        || every(Score::ONE, Decision::Reject)
        || (every(Score::ZERO, Decision::Undecided) && every(Score::ONE, Decision::Undecided))
}
