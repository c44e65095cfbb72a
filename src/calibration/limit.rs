//! Limits on a leaderboard's figures, for scripts: `agreement=0.9` at least, or a
//! false-positive rate at most.
//!
//! The interval decides and not the estimate: a limit is kept when the whole interval keeps
//! it. A figure whose interval holds the limit is *not shown* to keep it, which is no pass.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::error::CalibrationError;
use super::figure::{Figure, Measured};
use super::leaderboard::{Leaderboard, Row};
use crate::stats::sampling::proportion_sample_size;

macro_rules! metrics {
    ($($variant:ident $name:literal $higher:literal $field:ident;)*) => {
        /// A figure of a leaderboard.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "each is the row's field of its name")]
        pub enum Metric { $($variant,)* }

        impl Metric {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in options and JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Whether more of it is better.
            #[must_use]
            pub fn higher_is_better(self) -> bool {
                match self { $(Self::$variant => $higher,)* }
            }

            /// The figure in a row.
            #[must_use]
            pub fn of(self, row: &Row) -> &Measured<Figure> {
                match self { $(Self::$variant => &row.$field,)* }
            }
        }
    };
}

metrics! {
    Agreement "agreement" true agreement;
    BalancedAccuracy "balanced_accuracy" true balanced_accuracy;
    CohenKappa "cohen_kappa" true cohen_kappa;
    Auc "auc" true auc;
    Spearman "spearman" true spearman;
    TruePositiveRate "true_positive_rate" true true_positive_rate;
    TrueNegativeRate "true_negative_rate" true true_negative_rate;
    FalsePositiveRate "false_positive_rate" false false_positive_rate;
    FalseNegativeRate "false_negative_rate" false false_negative_rate;
    FalseAcceptanceShare "false_acceptance_share" false false_acceptance_share;
    Mae "mae" false mae;
    Unscored "unscored" false unscored;
    CostUsd "cost_usd" false cost_usd;
    LatencyMs "latency_ms" false latency_ms;
}

/// A limit: at least for figures of which more is better, at most for the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The contender; the board's subject where `None`.
    pub contender: Option<String>,
    /// The figure.
    pub metric: Metric,
    /// Its limit.
    pub value: f64,
}

impl FromStr for Limit {
    type Err = CalibrationError;

    /// `METRIC=VALUE` or `CONTENDER:METRIC=VALUE`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || CalibrationError::Limit {
            text: text.to_owned(),
            known: Metric::ALL.iter().map(|metric| metric.name().to_owned()).collect(),
        };
        let (left, value) = text.rsplit_once('=').ok_or_else(wrong)?;
        let value = value.trim().parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(wrong)?;
        let (contender, metric) = match left.rsplit_once(':') {
            Some((name, metric)) => (Some(name.to_owned()), metric),
            None => (None, left),
        };
        let metric = match metric.trim() {
            "accuracy" => Metric::Agreement,
            name => *Metric::ALL.iter().find(|own| own.name() == name).ok_or_else(wrong)?,
        };
        Ok(Self { contender, metric, value })
    }
}

/// How a figure stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitStatus {
    /// The whole interval keeps the limit.
    Kept,
    /// The interval holds the limit: these cases are too few to say, or it lies too near.
    NotShown,
    /// The whole interval breaks the limit.
    Broken,
    /// The figure is undefined.
    Undefined,
}

/// A limit with what was found.
#[derive(Clone, Debug, Serialize)]
pub struct LimitFound {
    /// The contender.
    pub contender: String,
    /// The figure's name.
    pub metric: Metric,
    /// The limit.
    pub limit: f64,
    /// The figure.
    pub figure: Measured<Figure>,
    /// How it stands.
    pub status: LimitStatus,
}

impl Limit {
    /// How a board stands to the limit.
    ///
    /// # Errors
    /// When it has no such contender.
    pub fn check(&self, board: &Leaderboard) -> Result<LimitFound, CalibrationError> {
        let name = self.contender.as_ref().unwrap_or(&board.subject);
        let row = board.row(name).ok_or_else(|| {
            let present: Vec<String> = board.rows.iter().map(|row| row.name.clone()).collect();
            CalibrationError::UnknownJudge {
                judge: name.clone(),
                suggestion: crate::config::nearest(name, present.iter().map(String::as_str)),
                present,
            }
        })?;
        let figure = self.metric.of(row).clone();
        let status = match figure.value() {
            None => LimitStatus::Undefined,
            Some(own) => {
                let (kept, broken) = if self.metric.higher_is_better() {
                    (own.lower >= self.value, own.upper < self.value)
                } else {
                    (own.upper <= self.value, own.lower > self.value)
                };
                match (kept, broken) {
                    (true, _) => LimitStatus::Kept,
                    (_, true) => LimitStatus::Broken,
                    _ => LimitStatus::NotShown,
                }
            }
        };
        Ok(LimitFound {
            contender: name.clone(),
            metric: self.metric,
            limit: self.value,
            figure,
            status,
        })
    }
}

impl LimitFound {
    /// How many cases of the figure's kind it would take to show a share as it is now, where
    /// more cases can show it.
    #[must_use]
    pub fn cases_needed(&self) -> Option<u64> {
        let own = self.figure.value()?;
        let gap = (own.estimate - self.limit).abs();
        let right_side = (own.estimate > self.limit) == self.metric.higher_is_better();
        let share = (0.0..=1.0).contains(&own.estimate) && self.limit > 0.0 && self.limit < 1.0;
        if self.status != LimitStatus::NotShown || !right_side || !share || gap == 0.0 {
            return None;
        }
        // At the limit's own variance the figure 0 or 1 needs cases too.
        let rate = f64::midpoint(own.estimate, self.limit);
        proportion_sample_size(gap, rate, own.level).ok()
    }
}

impl fmt::Display for LimitFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, metric) = (&self.contender, self.metric.name());
        let side = if self.metric.higher_is_better() { "at least" } else { "at most" };
        let Some(own) = self.figure.value() else {
            return write!(f, "{metric} of `{name}` can't be measured on these cases");
        };
        write!(
            f,
            "{metric} of `{name}` is {:.3} [{:.3}, {:.3}] on {} cases: ",
            own.estimate, own.lower, own.upper, own.n
        )?;
        match self.status {
            LimitStatus::Kept => write!(f, "{side} {} is kept", self.limit),
            LimitStatus::Broken => write!(f, "{side} {} is broken", self.limit),
            LimitStatus::Undefined => Ok(()),
            LimitStatus::NotShown => {
                write!(f, "{side} {} is not shown", self.limit)?;
                match self.cases_needed() {
                    Some(needed) => {
                        write!(f, "; about {needed} cases would show it if it stays as it is")
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_figure_with_a_number_and_perhaps_a_contender_with_colons() {
        let limit: Limit = "rule:Contains:agreement=0.9".parse().unwrap();
        assert_eq!(limit.contender.as_deref(), Some("rule:Contains"));
        assert_eq!((limit.metric, limit.value), (Metric::Agreement, 0.9));
        assert_eq!("accuracy=1".parse::<Limit>().unwrap().metric, Metric::Agreement);
        for text in ["agreement", "agreement=x", "agreement=NaN", "fpr=0.1", "=1", ""] {
            let error = text.parse::<Limit>().unwrap_err().to_string();
            assert!(error.contains("false_positive_rate"), "{error}");
        }
    }
}
