//! Sequential voting: the cheap judges first, and no call that can't change the decision.
//!
//! After each judge the remaining votes are imagined in every way they can turn out: given
//! or missing, worst or best. Since every aggregator is monotone, the worst and the best
//! votes bound all others; when all of these end in one decision, so does the full panel.

use super::decide::{NOT_NEEDED, Rules};
use super::{Known as Before, Listener, Panel};
use crate::case::Case;
use crate::provider::CallContext;
use crate::ruling::{Decision, Ruling};
use crate::score::Score;
use crate::verdict::{Status, Verdict};

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
