//! Loops: certified on one number a trajectory, the largest key over its bad generations.
//!
//! A check-level threshold is passed sooner or later by whoever may try again. What a loop's
//! owner needs is the share of hopeless loops that are accepted within K generations, and that
//! is the share whose largest bad key reaches the threshold, whatever the correlation of
//! checks. A loop that was stopped while its output was bad hides what would have come: it
//! counts as accepted at every threshold, so that a log recorded with acceptance switched on
//! certifies nothing it can't support.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::certificate::CertifyCase;
use super::figure::{Figure, Measured};
use super::labelled::LabelledCase;
use super::panel::{Key, Missing};
use crate::stats::bootstrap::{Resampling, grouped_proportion};
use crate::stats::looping::{Check, LoopEstimands, Replay, completion_is_absorbing};

/// Which loops a false accept is counted over.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Those that are never good within K generations: the stricter one.
    #[default]
    NeverComplete,
    /// Those with a bad generation.
    AnyBad,
}

impl Over {
    /// The name in options and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NeverComplete => "never_complete",
            Self::AnyBad => "any_bad",
        }
    }
}

/// What is known of a recorded loop beside its labelled checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopFacts {
    /// Its name.
    pub name: String,
    /// Its last recorded generation; the first is 1.
    pub length: u32,
    /// Whether a generation within K has no label, or is not recorded.
    pub incomplete: bool,
}

/// Which loop and generation each case is.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    /// K: the most generations that the certificate holds for.
    pub generations: u32,
    /// Which loops a false accept is counted over.
    pub over: Over,
    /// The loops.
    pub loops: Vec<LoopFacts>,
    /// Place of the loop, and generation, by the case's id.
    pub places: HashMap<String, (usize, u32)>,
}

/// One loop's labelled checks within K: places in the table, in order of generation.
pub(super) struct Recorded<'a> {
    pub(super) facts: &'a LoopFacts,
    pub(super) rows: Vec<usize>,
}

/// One generation of the table of accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GenerationRow {
    /// Which.
    pub generation: u32,
    /// Loops that come to it without an accept.
    pub reached: u64,
    /// Of these, accepted at it.
    pub accepted: u64,
    /// Of the accepted, bad.
    pub bad: u64,
    /// P(bad | accepted at this generation).
    pub false_acceptance_share: Measured<Figure>,
}

/// What a log of loops says.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct LoopReport {
    /// K.
    pub generations: u32,
    /// Which loops a false accept is counted over.
    pub over: Over,
    /// Loops of the reported part.
    pub loops: u64,
    /// Never good within K.
    pub never_complete: u64,
    /// Good at some generation.
    pub complete: u64,
    /// Good, and bad again later: the bound is then an upper one.
    pub relapsed: u64,
    /// Stopped before K while bad: counted as accepted at every threshold.
    pub censored: u64,
    /// Left out: a generation has no label or is not recorded.
    pub left_out: u64,
    /// The lowest score at which loops were stopped, where every earlier score lies below it,
    /// as in a log recorded while accepting; `None` otherwise.
    pub stopped_at: Option<f64>,
    /// `certified` or `fitted`.
    pub threshold_origin: &'static str,
    /// What follows was counted at this threshold.
    pub threshold: Option<Key>,
    /// The five ways to be wrong, at the threshold.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub estimands: Option<LoopEstimands>,
    /// Accepts by generation, at the threshold.
    pub by_generation: Vec<GenerationRow>,
    /// P(bad | accepted) of accepts at the first generation.
    pub first_accepts: Measured<Figure>,
    /// P(bad | accepted) of later accepts.
    pub late_accepts: Measured<Figure>,
}

/// No key is above it.
const HIGHEST: Key = (f64::INFINITY, f64::INFINITY);

fn highest(keys: impl Iterator<Item = Key>) -> Option<Key> {
    keys.reduce(|a, b| if b > a { b } else { a })
}

impl Loops {
    /// The loops of some rows of a table.
    pub(super) fn recorded(&self, cases: &[LabelledCase], rows: &[usize]) -> Vec<Recorded<'_>> {
        let mut loops: BTreeMap<usize, Vec<(u32, usize)>> = BTreeMap::new();
        for &row in rows {
            if let Some(&(place, generation)) = self.places.get(&cases[row].id)
                && generation <= self.generations
            {
                loops.entry(place).or_default().push((generation, row));
            }
        }
        loops
            .into_iter()
            .map(|(place, mut checks)| {
                checks.sort_unstable();
                let rows = checks.into_iter().map(|(_, row)| row).collect();
                Recorded { facts: &self.loops[place], rows }
            })
            .collect()
    }

    /// One entry a loop: bad ones with their largest bad key, complete ones with their largest
    /// good key. `key` gives the key of a row.
    pub(super) fn certify_cases<'a>(
        &'a self,
        cases: &[LabelledCase],
        groups: &[usize],
        rows: &[usize],
        key: impl Fn(usize, Missing) -> Option<Key>,
        missing: impl Fn(usize) -> bool,
    ) -> Vec<CertifyCase<'a>> {
        let recorded = self.recorded(cases, rows);
        let relapses = recorded.iter().any(|own| own.relapsed(cases));
        let mut out = Vec::new();
        for own in recorded.iter().filter(|own| !own.facts.incomplete) {
            let bad: Vec<usize> = own.rows.iter().copied().filter(|&i| !cases[i].good).collect();
            let good: Vec<usize> = own.rows.iter().copied().filter(|&i| cases[i].good).collect();
            let unit = match self.over {
                Over::NeverComplete => good.is_empty(),
                Over::AnyBad => !bad.is_empty(),
            };
            let of =
                |rows: &[usize], missing| highest(rows.iter().filter_map(|&i| key(i, missing)));
            let group = groups[own.rows[0]];
            let id = own.facts.name.as_str();
            if unit && !bad.is_empty() {
                let stopped = own.facts.length < self.generations;
                let hidden = stopped && (own.ends_bad(cases) || relapses);
                out.push(CertifyCase {
                    id,
                    group,
                    good: false,
                    key: of(&bad, Missing::LeftOut),
                    worst: if hidden {
                        HIGHEST
                    } else {
                        of(&bad, Missing::Highest).unwrap_or(HIGHEST)
                    },
                    missing: bad.iter().any(|&i| missing(i)),
                });
            }
            if !good.is_empty() {
                let Some(worst) = of(&good, Missing::Highest) else { continue };
                out.push(CertifyCase {
                    id,
                    group,
                    good: true,
                    key: of(&good, Missing::LeftOut),
                    worst,
                    missing: good.iter().any(|&i| missing(i)),
                });
            }
        }
        out
    }

    /// The report of the loops of some rows, at a threshold. Intervals count the checks of one
    /// loop, and the loops of one group, together.
    pub(super) fn report(
        &self,
        cases: &[LabelledCase],
        groups: &[usize],
        rows: &[usize],
        key: impl Fn(usize) -> Option<Key>,
        threshold: Option<(Key, &'static str)>,
        resampling: Resampling,
    ) -> LoopReport {
        let recorded = self.recorded(cases, rows);
        let used: Vec<&Recorded<'_>> = recorded.iter().filter(|o| !o.facts.incomplete).collect();
        let count = |holds: &dyn Fn(&Recorded<'_>) -> bool| {
            used.iter().filter(|own| holds(own)).count() as u64
        };
        let never = |own: &Recorded<'_>| own.rows.iter().all(|&i| !cases[i].good);
        let mut report = LoopReport {
            generations: self.generations,
            over: self.over,
            loops: used.len() as u64,
            never_complete: count(&never),
            complete: count(&|own| !never(own)),
            relapsed: count(&|own| own.relapsed(cases)),
            censored: count(&|own| own.facts.length < self.generations && own.ends_bad(cases)),
            left_out: (recorded.len() - used.len()) as u64,
            stopped_at: self.stopped_at(&used, &key),
            threshold_origin: threshold.map_or("none", |own| own.1),
            threshold: threshold.map(|own| own.0),
            estimands: None,
            by_generation: Vec::new(),
            first_accepts: grouped_proportion(&[], resampling).into(),
            late_accepts: grouped_proportion(&[], resampling).into(),
        };
        let Some((threshold, _)) = threshold else { return report };
        let checks: Vec<Vec<Check>> = used
            .iter()
            .map(|own| {
                let check = |&i: &usize| Check {
                    score: key(i).map(|key| f64::from(u8::from(key >= threshold))),
                    complete: cases[i].good,
                };
                own.rows.iter().map(check).collect()
            })
            .collect();
        let mut together: BTreeMap<usize, Vec<&[Check]>> = BTreeMap::new();
        for (own, checks) in used.iter().zip(&checks) {
            together.entry(groups[own.rows[0]]).or_default().push(checks);
        }
        let together: Vec<Vec<&[Check]>> = together.into_values().collect();
        report.estimands = Some(estimands(&together, resampling));
        let generations = self.generations as usize;
        let counts: Vec<Vec<Accepts>> =
            together.iter().map(|own| Accepts::by_generation(own, generations)).collect();
        let of = |range: std::ops::Range<usize>| {
            let sum = |own: &Vec<Accepts>| {
                own[range.clone()].iter().fold((0, 0), |(k, n), at| (k + at.bad, n + at.accepted))
            };
            grouped_proportion(&counts.iter().map(sum).collect::<Vec<_>>(), resampling).into()
        };
        for at in 0..generations {
            let total = |what: fn(&Accepts) -> u64| counts.iter().map(|own| what(&own[at])).sum();
            report.by_generation.push(GenerationRow {
                generation: at as u32 + 1,
                reached: total(|own| own.reached),
                accepted: total(|own| own.accepted),
                bad: total(|own| own.bad),
                false_acceptance_share: of(at..at + 1),
            });
        }
        report.first_accepts = of(0..generations.min(1));
        report.late_accepts = of(generations.min(1)..generations);
        report
    }

    fn stopped_at(
        &self,
        used: &[&Recorded<'_>],
        key: &impl Fn(usize) -> Option<Key>,
    ) -> Option<f64> {
        let early = |own: &&&Recorded<'_>| own.facts.length < self.generations;
        let last = |own: &&Recorded<'_>| key(*own.rows.last()?).map(|key| key.0);
        let lowest = used.iter().filter(early).filter_map(last).reduce(f64::min)?;
        let before = used.iter().flat_map(|own| &own.rows[..own.rows.len() - 1]);
        before.filter_map(|&i| key(i)).all(|key| key.0 < lowest).then_some(lowest)
    }
}

/// Loops of one group at one generation.
#[derive(Clone, Copy, Default)]
struct Accepts {
    /// Come to it without an accept.
    reached: u64,
    /// Accepted at it.
    accepted: u64,
    /// Accepted at it, and bad.
    bad: u64,
}

impl Accepts {
    fn by_generation(loops: &[&[Check]], generations: usize) -> Vec<Self> {
        let mut counts = vec![Self::default(); generations];
        for own in loops {
            let accept = own.iter().position(|check| check.score == Some(1.0));
            let last = accept.map_or(own.len(), |at| at + 1).min(generations);
            counts[..last].iter_mut().for_each(|at| at.reached += 1);
            if let Some(at) = accept.filter(|at| *at < generations) {
                counts[at].accepted += 1;
                counts[at].bad += u64::from(!own[at].complete);
            }
        }
        counts
    }
}

fn estimands(groups: &[Vec<&[Check]>], resampling: Resampling) -> LoopEstimands {
    let replays: Vec<Replay> = groups.iter().map(|own| Replay::at(own, 1.0)).collect();
    let of = |counts: fn(&Replay) -> (u64, u64)| {
        grouped_proportion(&replays.iter().map(counts).collect::<Vec<_>>(), resampling)
    };
    LoopEstimands {
        check_false_positive_rate: of(|r| (r.incomplete_checks_accepted, r.incomplete_checks)),
        trajectory_false_positive_rate: of(|r| (r.false_accepted_never_complete, r.never_complete)),
        premature_rate: of(|r| (r.premature, r.completed)),
        false_acceptance_share: of(|r| (r.false_accepted, r.accepted)),
        missed_rate: of(|r| (r.missed, r.completed)),
    }
}

impl Recorded<'_> {
    fn ends_bad(&self, cases: &[LabelledCase]) -> bool {
        self.rows.last().is_some_and(|&i| !cases[i].good)
    }

    fn relapsed(&self, cases: &[LabelledCase]) -> bool {
        let checks: Vec<Check> =
            self.rows.iter().map(|&i| Check { score: None, complete: cases[i].good }).collect();
        !completion_is_absorbing(&checks)
    }
}

#[cfg(test)]
#[path = "loops_tests.rs"]
mod tests;
