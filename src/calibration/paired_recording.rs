//! Two recordings of the same cases, laid side by side: what differs for a judge or the
//! panel, always the second minus the first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::error::CalibrationError;
use super::figure::{Figure, Measured};
use super::pairwise::decisions;
use super::recording::{RecordedCase, Recording};
use crate::stats::Reason;
use crate::stats::bootstrap::Resampling;
use crate::stats::grouped_mean::GroupedMean;
use crate::stats::multiplicity::holm;
use crate::verdict::Status;

/// A change of a share of yes: accepted, or right.
#[derive(Clone, Debug, Serialize)]
pub struct ShareChange {
    /// Cases that both decided.
    pub n: u64,
    /// Share of yes in the first.
    pub first: Measured,
    /// Share of yes in the second.
    pub second: Measured,
    /// Second minus first.
    pub difference: Measured<Figure>,
    /// Cases that are yes in the second only.
    pub gained: u64,
    /// Cases that are yes in the first only.
    pub lost: u64,
    /// Share of the cases that flipped, either way.
    pub flips: Measured<Figure>,
    /// Two-sided p-value of no net change.
    pub p: Measured,
    /// The same, adjusted by Holm over judges and panel.
    pub p_holm: Measured,
    /// The smallest net change that would be found four times in five.
    pub smallest_visible: Measured,
    /// How the p-value was made.
    pub test: &'static str,
}

/// A change of a mean.
#[derive(Clone, Debug, Serialize)]
pub struct MeanChange {
    /// Cases that both have.
    pub n: u64,
    /// Mean in the first.
    pub first: Measured,
    /// Mean in the second.
    pub second: Measured,
    /// Second minus first. Without an interval where no case differs.
    pub difference: Measured<Figure>,
    /// Cases that differ.
    pub changed: u64,
    /// Two-sided p-value of no change.
    pub p: Measured,
    /// The same, adjusted by Holm over judges and panel.
    pub p_holm: Measured,
    /// The smallest change that would be found four times in five.
    pub smallest_visible: Measured,
}

/// What became of one judge, or the panel.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The judge, or `panel`.
    pub name: String,
    /// Scores.
    pub score: MeanChange,
    /// Decisions to accept.
    pub accepted: ShareChange,
    /// Decisions that are right, with labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<ShareChange>,
    /// Decisions to accept truly bad cases, with labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_positive_rate: Option<ShareChange>,
    /// Cases without a score.
    pub unscored: ShareChange,
    /// Statuses that differ, as `ok to timeout`, with how many cases.
    pub statuses: BTreeMap<String, u64>,
    /// US dollars a case.
    pub cost_usd: MeanChange,
    /// Milliseconds a case.
    pub latency_ms: MeanChange,
}

/// A judge that is another than before, or whose model is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The judge.
    pub judge: String,
    /// `fingerprint`, `model_returned`, `added` or `removed`.
    pub what: &'static str,
    /// Before.
    pub first: BTreeSet<String>,
    /// After.
    pub second: BTreeSet<String>,
}

/// One judge's or the panel's say on one case.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Say {
    pub(super) score: Option<f64>,
    pub(super) accepted: Option<bool>,
    pub(super) status: Option<Status>,
    pub(super) cost_usd: Option<f64>,
    pub(super) latency_ms: Option<f64>,
}

/// A case of both.
pub(super) struct Common<'a> {
    pub(super) first: &'a RecordedCase,
    pub(super) second: &'a RecordedCase,
    pub(super) group: usize,
    pub(super) good: Option<bool>,
}

/// Both recordings on their common cases, in the order of the second.
pub(super) struct Paired<'a> {
    pub(super) first: &'a Recording,
    pub(super) second: &'a Recording,
    pub(super) cases: Vec<Common<'a>>,
    pub(super) only_first: u64,
    pub(super) only_second: u64,
}

/// Says which cases belong together: the first capture of a pattern in the id, or what the
/// cases say.
fn group_name<'a>(
    case: &'a RecordedCase,
    pattern: Option<&regex::Regex>,
) -> Result<Option<&'a str>, CalibrationError> {
    let Some(pattern) = pattern else { return Ok(case.group.as_deref()) };
    let found = pattern.captures(&case.id).and_then(|own| own.get(1).or_else(|| own.get(0)));
    found.map(|own| Some(own.as_str())).ok_or_else(|| CalibrationError::NoGroup {
        case: case.id.clone(),
        rule: format!("pattern `{pattern}`"),
    })
}

impl<'a> Paired<'a> {
    /// Matches the cases by id.
    ///
    /// # Errors
    /// When no case is in both, a case stands twice, or one has no group by the pattern.
    pub(super) fn new(
        first: &'a Recording,
        second: &'a Recording,
        labels: Option<&HashMap<String, bool>>,
        pattern: Option<&regex::Regex>,
    ) -> Result<Self, CalibrationError> {
        let places = first.places()?;
        second.places()?;
        let mut names: HashMap<&str, usize> = HashMap::new();
        let grouped = pattern.is_some() || second.cases.iter().all(|case| case.group.is_some());
        let mut cases = Vec::new();
        for case in &second.cases {
            let Some(&place) = places.get(case.id.as_str()) else { continue };
            let name = if grouped { group_name(case, pattern)? } else { None };
            let next = names.len();
            let group = *names.entry(name.unwrap_or(&case.id)).or_insert(next);
            let good = labels.and_then(|labels| labels.get(&case.id).copied());
            cases.push(Common { first: &first.cases[place], second: case, group, good });
        }
        if cases.is_empty() {
            return Err(CalibrationError::NothingInCommon {
                first: first.name.clone(),
                second: second.name.clone(),
                first_case: first.cases.first().map(|own| own.id.clone()).unwrap_or_default(),
                second_case: second.cases.first().map(|own| own.id.clone()).unwrap_or_default(),
            });
        }
        let n = cases.len() as u64;
        Ok(Self {
            only_first: first.cases.len() as u64 - n,
            only_second: second.cases.len() as u64 - n,
            first,
            second,
            cases,
        })
    }

    /// Judges of both, by their places in each.
    pub(super) fn judges(&self) -> Vec<(String, usize, usize)> {
        let place = |name: &str| self.first.judges.iter().position(|own| own.name == name);
        let of = self.second.judges.iter().enumerate();
        of.filter_map(|(j, own)| Some((own.name.clone(), place(&own.name)?, j))).collect()
    }

    /// Judges whose identity changed.
    pub(super) fn identities(&self) -> Vec<Identity> {
        let mut found = Vec::new();
        let empty = BTreeSet::new;
        for own in &self.second.judges {
            let Some(before) = self.first.judges.iter().find(|first| first.name == own.name) else {
                found.push(Identity {
                    judge: own.name.clone(),
                    what: "added",
                    first: empty(),
                    second: own.fingerprints.clone(),
                });
                continue;
            };
            for (what, a, b) in [
                ("fingerprint", &before.fingerprints, &own.fingerprints),
                ("model_returned", &before.models, &own.models),
            ] {
                // A file that does not say is no change.
                if a != b && !a.is_empty() && !b.is_empty() {
                    found.push(Identity {
                        judge: own.name.clone(),
                        what,
                        first: a.clone(),
                        second: b.clone(),
                    });
                }
            }
        }
        for before in &self.first.judges {
            if !self.second.judges.iter().any(|own| own.name == before.name) {
                found.push(Identity {
                    judge: before.name.clone(),
                    what: "removed",
                    first: before.fingerprints.clone(),
                    second: empty(),
                });
            }
        }
        found
    }

    /// What a judge, or the panel for `None`, said about each common case.
    pub(super) fn says(&self, judge: Option<(usize, usize)>) -> Vec<(Say, Say)> {
        self.cases
            .iter()
            .map(|case| match judge {
                Some((a, b)) => (vote(case.first, a), vote(case.second, b)),
                None => (panel(case.first), panel(case.second)),
            })
            .collect()
    }

    /// Everything that changed for a judge, or the panel for `None`.
    pub(super) fn change(
        &self,
        name: &str,
        judge: Option<(usize, usize)>,
        alpha: f64,
        resampling: Resampling,
    ) -> Change {
        let says = self.says(judge);
        let labelled = self.cases.iter().any(|case| case.good.is_some());
        let share = |yes: &dyn Fn(usize, &Say) -> Option<bool>| {
            let pairs: Vec<(usize, bool, bool)> = says
                .iter()
                .enumerate()
                .filter_map(|(i, (a, b))| Some((self.cases[i].group, yes(i, a)?, yes(i, b)?)))
                .collect();
            share_change(&pairs, alpha, resampling)
        };
        let mean = |of: &dyn Fn(&Say) -> Option<f64>| {
            let pairs: Vec<(usize, f64, f64)> = says
                .iter()
                .enumerate()
                .filter_map(|(i, (a, b))| Some((self.cases[i].group, of(a)?, of(b)?)))
                .collect();
            mean_change(&pairs, alpha, resampling)
        };
        let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
        for (a, b) in &says {
            if a.status != b.status {
                let name = |own: Option<Status>| own.map_or("not asked", Status::name);
                let key = format!("{} to {}", name(a.status), name(b.status));
                *statuses.entry(key).or_default() += 1;
            }
        }
        Change {
            name: name.to_owned(),
            score: mean(&|own| own.score),
            accepted: share(&|_, own| own.accepted),
            agreement: labelled
                .then(|| share(&|i, own| Some(own.accepted? == self.cases[i].good?))),
            false_positive_rate: labelled.then(|| {
                share(&|i, own| (self.cases[i].good == Some(false)).then_some(own.accepted?))
            }),
            unscored: share(&|_, own| Some(own.score.is_none())),
            statuses,
            cost_usd: mean(&|own| own.cost_usd),
            latency_ms: mean(&|own| own.latency_ms),
        }
    }

    /// The changes of all judges and the panel, their p-values adjusted for their number.
    pub(super) fn changes(
        &self,
        alpha: f64,
        resampling: Resampling,
    ) -> (Option<Change>, Vec<Change>) {
        let judges = self.judges();
        let with_panel = judges.len() > 1 || self.first.panel.is_some();
        let family = judges.len() + usize::from(with_panel);
        let shared = alpha / family.max(1) as f64;
        let mut all: Vec<Change> = Vec::with_capacity(family);
        if with_panel {
            all.push(self.change("panel", None, shared, resampling));
        }
        for (name, a, b) in judges {
            all.push(self.change(&name, Some((a, b)), shared, resampling));
        }
        adjust(&mut all);
        let panel = with_panel.then(|| all.remove(0));
        (panel, all)
    }
}

fn vote(case: &RecordedCase, judge: usize) -> Say {
    case.votes[judge].map_or_else(Say::default, |own| Say {
        score: own.score,
        accepted: own.accepted,
        status: Some(own.status),
        cost_usd: own.cost_usd,
        latency_ms: own.latency_ms,
    })
}

/// The panel costs what its judges cost, and takes as long as its slowest.
fn panel(case: &RecordedCase) -> Say {
    let votes = || case.votes.iter().flatten();
    let costs: Option<Vec<f64>> = votes().map(|own| own.cost_usd).collect();
    let times: Option<Vec<f64>> = votes().map(|own| own.latency_ms).collect();
    Say {
        score: case.score,
        accepted: case.accepted,
        status: None,
        cost_usd: costs.filter(|own| !own.is_empty()).map(|own| own.iter().sum()),
        latency_ms: times.and_then(|own| own.into_iter().reduce(f64::max)),
    }
}

pub(super) fn share_change(
    pairs: &[(usize, bool, bool)],
    alpha: f64,
    resampling: Resampling,
) -> ShareChange {
    let n = pairs.len() as u64;
    let share = |of: fn(&(usize, bool, bool)) -> bool| {
        let k = pairs.iter().filter(|own| of(own)).count();
        Measured(if n == 0 { Err(Reason::NoData.into()) } else { Ok(k as f64 / n as f64) })
    };
    // The second is named first, since the difference is second minus first.
    let turned: Vec<(usize, bool, bool)> = pairs.iter().map(|(g, a, b)| (*g, *b, *a)).collect();
    let (difference, p, smallest_visible, [gained, lost], _, test) =
        decisions(&turned, alpha, resampling.level);
    ShareChange {
        n,
        first: share(|own| own.1),
        second: share(|own| own.2),
        difference,
        gained,
        lost,
        flips: super::contender::share_of(pairs.iter().map(|(g, a, b)| (*g, a != b)), resampling),
        p_holm: p.clone(),
        p,
        smallest_visible,
        test,
    }
}

fn mean_change(pairs: &[(usize, f64, f64)], alpha: f64, resampling: Resampling) -> MeanChange {
    let n = pairs.len();
    let mean = |of: fn(&(usize, f64, f64)) -> f64| {
        let sum: f64 = pairs.iter().map(of).sum();
        Measured(if n == 0 { Err(Reason::NoData.into()) } else { Ok(sum / n as f64) })
    };
    let shift = GroupedMean::new(pairs.iter().map(|(g, a, b)| (*g, b - a)));
    MeanChange {
        n: n as u64,
        first: mean(|own| own.1),
        second: mean(|own| own.2),
        difference: shift.estimate(resampling).into(),
        changed: pairs.iter().filter(|(_, a, b)| a != b).count() as u64,
        p: shift.p().into(),
        p_holm: shift.p().into(),
        smallest_visible: shift.smallest_visible(alpha, super::pairwise::POWER).into(),
    }
}

fn adjust(changes: &mut [Change]) {
    fn family(
        changes: &mut [Change],
        of: impl Fn(&mut Change) -> Option<(&Measured, &mut Measured)>,
    ) {
        let p: Vec<Option<f64>> =
            changes.iter_mut().map(|own| of(own).and_then(|(p, _)| p.value().copied())).collect();
        let given: Vec<f64> = p.iter().flatten().copied().collect();
        let Ok(adjusted) = holm(&given) else { return };
        let mut adjusted = adjusted.into_iter();
        for (own, p) in changes.iter_mut().zip(p) {
            if p.is_some()
                && let (Some((_, held)), Some(adjusted)) = (of(own), adjusted.next())
            {
                *held = Measured(Ok(adjusted));
            }
        }
    }
    family(changes, |own| Some((&own.score.p, &mut own.score.p_holm)));
    family(changes, |own| Some((&own.accepted.p, &mut own.accepted.p_holm)));
    family(changes, |own| own.agreement.as_mut().map(|own| (&own.p, &mut own.p_holm)));
    family(changes, |own| own.false_positive_rate.as_mut().map(|own| (&own.p, &mut own.p_holm)));
    family(changes, |own| Some((&own.unscored.p, &mut own.unscored.p_holm)));
}
