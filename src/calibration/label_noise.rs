//! Labels to check first, and what wrong labels would do to the panel's error rate.
//!
//! A case on which all judges contradict the label is either a shared error of theirs or a
//! wrong label; only a second look can tell. Nothing is corrected here.

use serde::Serialize;

use super::figure::Measured;
use super::grouping::Items;
use super::table::Table;
use crate::stats::Defined;
use crate::stats::risk::rate_under_label_noise;

/// Suspects listed at most.
const LISTED: usize = 50;
/// Shares of wrong labels among the bad ones that are tried.
const SHARES: [f64; 4] = [0.01, 0.02, 0.03, 0.05];

/// A label that all judges contradict.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Suspect {
    /// The case.
    pub case: String,
    /// The row of the data that it is, from 1, where its id is a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// What the label says.
    pub label_good: bool,
    /// Mean label of the raters, or share of good ones.
    pub label: f64,
    /// Judges that contradict it.
    pub judges: u64,
    /// Whether the raters themselves disagree.
    pub raters_disagree: bool,
}

/// The false-positive rate if a share of the labels is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Sensitivity {
    /// Share of cases labelled bad that are good.
    pub mislabelled_share: f64,
    /// `(observed - e TPR) / (1 - e)`, cut at 0.
    pub false_positive_rate: Measured,
}

/// Doubtful labels.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct LabelNoise {
    /// Cases that all judges decided, two at least.
    pub compared: u64,
    /// Those on which all of them contradict the label.
    pub suspects_total: u64,
    /// The first to check: most judges first, then those whose raters disagree.
    pub check_first: Vec<Suspect>,
    /// Cases whose raters disagree on good or bad.
    pub raters_disagree: u64,
    /// What wrong labels would do to the panel.
    pub sensitivity: Vec<Sensitivity>,
}

/// Labels that all deciding judges contradict. A case needs two decisions, and none missing.
#[must_use]
pub fn label_noise(
    table: &Table,
    items: &Items,
    decisions: &[Vec<Option<bool>>],
    false_positive_rate: Defined,
    true_positive_rate: Defined,
) -> LabelNoise {
    let mut suspects = Vec::new();
    let (mut compared, mut split) = (0, 0);
    for (i, case) in table.cases().iter().enumerate() {
        let saying = case.ratings.iter().filter(|rating| rating.good).count();
        let disagree = saying > 0 && saying < case.ratings.len();
        split += u64::from(disagree);
        let votes: Vec<bool> = decisions.iter().filter_map(|judge| judge[i]).collect();
        if votes.len() < 2 || votes.len() < decisions.len() {
            continue;
        }
        compared += 1;
        if votes.iter().all(|vote| *vote != case.good) {
            suspects.push(Suspect {
                case: case.id.clone(),
                row: items.row(i),
                label_good: case.good,
                label: case.target,
                judges: votes.len() as u64,
                raters_disagree: disagree,
            });
        }
    }
    suspects.sort_by(|a, b| {
        (b.judges, b.raters_disagree).cmp(&(a.judges, a.raters_disagree)).then(a.case.cmp(&b.case))
    });
    let total = suspects.len() as u64;
    suspects.truncate(LISTED);
    let sensitivity =
        SHARES
            .iter()
            .map(|&share| Sensitivity {
                mislabelled_share: share,
                false_positive_rate: Measured(false_positive_rate.and_then(|observed| {
                    rate_under_label_noise(observed, true_positive_rate?, share)
                })),
            })
            .collect();
    LabelNoise {
        compared,
        suspects_total: total,
        check_first: suspects,
        raters_disagree: split,
        sensitivity,
    }
}
