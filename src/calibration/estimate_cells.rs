//! The cells of an estimate: what was said of each case, cut into parts of equal size.
//!
//! The cut looks at scores and at the number of labels, never at what the labels say.

use super::estimate::EstimateOptions;
use super::operating_point::fitted;
use super::panel::{Key, rank};
use super::table::{JudgeKind, Table};
use crate::stats::aggregate::decision_key;

/// Labels a cell should hold before scores are cut finer.
const LABELS_A_CELL: usize = 10;
/// Most cells of a graded score.
const MAX_CELLS: usize = 10;

/// What was said of each case.
pub(super) struct Said {
    pub(super) by: String,
    /// `None` without a verdict.
    pub(super) score: Vec<Option<f64>>,
    /// What orders the cases.
    pub(super) rank: Vec<Option<f64>>,
    pub(super) accepted: Vec<Option<bool>>,
    pub(super) binary: bool,
    pub(super) note: Option<String>,
}

/// What one judge says, or the lower median of several with the mean of votes as tie-break.
pub(super) fn said(table: &Table, labelled: &[usize], options: &EstimateOptions) -> Said {
    let cases = table.cases();
    let n = cases.len();
    let quorum = options.quorum.unwrap_or(table.judges.len() / 2 + 1).max(1);
    let keys: Vec<Option<Key>> = (0..n)
        .map(|i| {
            let votes: Vec<f64> = table.judges.iter().filter_map(|own| own.scores[i]).collect();
            let enough = votes.len() >= quorum;
            enough.then(|| decision_key(&votes).ok().map(|key| (key.median, key.mean))).flatten()
        })
        .collect();
    let places: Vec<usize> = (0..n).filter(|&i| keys[i].is_some()).collect();
    let present: Vec<Key> = keys.iter().flatten().copied().collect();
    let mut ranks = vec![None; n];
    for (place, own) in places.iter().zip(rank(&present)) {
        ranks[*place] = Some(own);
    }
    let all_binary = table.all_binary();
    let mut note = None;
    let accepted: Vec<Option<bool>> = if all_binary {
        keys.iter()
            .map(|key| {
                key.map(|key| if table.judges.len() == 1 { key.0 >= 1.0 } else { key.0 > 0.5 })
            })
            .collect()
    } else {
        let least: Option<Key> = match options.accept {
            Some(accept) => Some((accept.0, f64::NEG_INFINITY)),
            None => {
                let pairs =
                    labelled.iter().filter_map(|&i| Some((keys[i]?, cases[i].good))).collect();
                let found = fitted(pairs);
                if let Some(key) = found {
                    note = Some(format!(
                        "for PPI++ and Rogan-Gladen accepting from score {} was fitted to the same labels: declare it with `--accept`",
                        key.0
                    ));
                }
                found
            }
        };
        keys.iter().map(|key| Some((*key)? >= least?)).collect()
    };
    let by = match table.judges.as_slice() {
        [judge] => format!("judge `{}`", judge.name),
        judges => format!("the lower median of {} judges", judges.len()),
    };
    let binary = table.judges.len() == 1 && table.judges[0].kind == JudgeKind::Binary;
    // Votes of binary judges differ by their mean only.
    let score = keys.iter().map(|key| key.map(|key| if all_binary { key.1 } else { key.0 }));
    Said { by, score: score.collect(), rank: ranks, accepted, binary, note }
}

/// Cells: the verdict of a binary judge, equal parts of a score, and no verdict at all.
pub(super) struct Cut {
    pub(super) names: Vec<String>,
    /// Lowest rank of each cell but the last.
    from: Vec<f64>,
    pub(super) binary: bool,
}

impl Cut {
    /// The cut looks at scores and at the number of labels, never at what the labels say.
    pub(super) fn new(said: &Said, labels: usize) -> Self {
        let unscored = "without a score".to_owned();
        if said.binary {
            let names = vec!["not accepted".to_owned(), "accepted".to_owned(), unscored];
            return Self { names, from: Vec::new(), binary: true };
        }
        let mut sorted: Vec<(f64, f64)> =
            said.rank.iter().zip(&said.score).filter_map(|(r, s)| Some(((*r)?, (*s)?))).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = (labels / LABELS_A_CELL).clamp(2, MAX_CELLS);
        let mut from: Vec<f64> = Vec::new();
        for k in 0..wanted {
            if let Some((own, _)) = sorted.get(k * sorted.len() / wanted)
                && from.last().is_none_or(|last| last < own)
            {
                from.push(*own);
            }
        }
        let mut names: Vec<String> = (0..from.len())
            .map(|k| {
                let inside = |(own, _): &&(f64, f64)| {
                    *own >= from[k] && from.get(k + 1).is_none_or(|next| own < next)
                };
                let held = || sorted.iter().filter(inside).map(|(_, score)| *score);
                let low = held().fold(f64::INFINITY, f64::min);
                let high = held().fold(f64::NEG_INFINITY, f64::max);
                let text = |value: f64| {
                    let text = format!("{value:.3}");
                    text.trim_end_matches('0').trim_end_matches('.').to_owned()
                };
                let name = if low == high {
                    format!("score {}", text(low))
                } else {
                    format!("score {} to {}", text(low), text(high))
                };
                (name, k)
            })
            .map(|(name, _)| name)
            .collect();
        // Equal medians cut by the mean of the votes.
        for k in 1..names.len() {
            if names[..k].contains(&names[k]) {
                names[k] = format!("{}, part {}", names[k], k + 1);
            }
        }
        names.push(unscored);
        Self { names, from, binary: false }
    }

    pub(super) fn cell(&self, said: &Said, case: usize) -> usize {
        let last = self.names.len() - 1;
        if self.binary {
            return said.accepted[case].map_or(last, usize::from);
        }
        match said.rank[case] {
            Some(own) => self.from.partition_point(|from| *from <= own).saturating_sub(1),
            None => last,
        }
    }
}
