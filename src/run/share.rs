//! A share of cases with its interval, counted as cases come.
//!
//! Cases of one group tend to stand or fall together, so where cases have groups it is groups
//! that are drawn again and not cases. Only counts are kept: two a group.

use std::collections::HashMap;

use serde::Serialize;

use crate::stats::Estimate;
use crate::stats::bootstrap::{Resampling, clustered_proportion};
use crate::stats::interval::wilson;

/// A share of cases, with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The share.
    pub point: f64,
    /// The lower end of the interval.
    pub lower: f64,
    /// The upper end of the interval.
    pub upper: f64,
    /// Cases that it is a share of.
    pub n: u64,
    /// Groups that these cases are of, a case without a group being one by itself; `None`
    /// where no case has a group, and the interval takes cases as independent.
    pub groups: Option<u64>,
}

/// Cases of two kinds, counted by group.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareCounts {
    yes: u64,
    no: u64,
    groups: Groups,
}

impl ShareCounts {
    /// Counts a case; `group` is its own.
    pub(super) fn add(&mut self, group: Option<&str>, yes: bool) {
        self.yes += u64::from(yes);
        self.no += u64::from(!yes);
        self.groups.add(group, yes);
    }

    /// Cases that are.
    pub(super) fn yes(&self) -> u64 {
        self.yes
    }

    /// All cases.
    pub(super) fn n(&self) -> u64 {
        self.yes + self.no
    }

    /// The share. By Wilson's interval (1927) over cases; where cases have a group, by cluster
    /// bootstrap over groups, and never narrower than by case. `None` without a case, and
    /// where all are of one group and not alike, whose spread can't be known; one that is all
    /// alike counts as one case.
    pub(super) fn share(&self) -> Option<Share> {
        let (share, groups) = if self.groups.named.is_empty() {
            (wilson(self.yes, self.n(), 0.95).ok()?, None)
        } else {
            let (mut share, groups) = self.groups.share()?;
            // Few groups can look more even than they are by chance.
            let by_case = wilson(self.yes, self.n(), 0.95).ok()?;
            share.interval.lower = share.interval.lower.min(by_case.interval.lower);
            share.interval.upper = share.interval.upper.max(by_case.interval.upper);
            (share, Some(groups))
        };
        let (lower, upper) = (share.interval.lower, share.interval.upper);
        Some(Share { point: share.point, lower, upper, n: self.n(), groups })
    }
}

/// Cases by group. Names are kept as 64 bits of a hash.
#[derive(Clone, Debug, Default)]
struct Groups {
    named: HashMap<u64, (u64, u64)>,
    /// Cases without a group.
    yes_alone: u64,
    no_alone: u64,
}

impl Groups {
    /// Groups beyond which the bootstrap draws half as often: its work is their product.
    const MANY: usize = 10_000;

    fn add(&mut self, group: Option<&str>, yes: bool) {
        match group {
            None if yes => self.yes_alone += 1,
            None => self.no_alone += 1,
            Some(name) => {
                let mut key = [0; 8];
                key.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..8]);
                let (of, all) = self.named.entry(u64::from_le_bytes(key)).or_insert((0, 0));
                *of += u64::from(yes);
                *all += 1;
            }
        }
    }

    /// The share, by cluster bootstrap over groups.
    fn share(&self) -> Option<(Estimate, u64)> {
        let mut clusters: Vec<(u64, u64)> = self.named.values().copied().collect();
        // A hash map has no order, and the draws must be the same each time.
        clusters.sort_unstable();
        clusters.extend((0..self.yes_alone).map(|_| (1, 1)));
        clusters.extend((0..self.no_alone).map(|_| (0, 1)));
        let resamples = if clusters.len() > Self::MANY { 1000 } else { 2000 };
        let share = clustered_proportion(&clusters, Resampling { resamples, seed: 1, level: 0.95 });
        Some((share.ok()?, clusters.len() as u64))
    }
}
