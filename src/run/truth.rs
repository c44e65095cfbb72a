//! What labels say of a run's cases, and where a decision contradicts them.
//!
//! Only a decision can be wrong: cases that are undecided, and those without a label, are
//! counted apart and never called right. Nothing is fitted here and nothing is promised.

use std::collections::HashMap;

use serde::Serialize;

use super::share::{Share, ShareCounts};
use crate::calibration::labelled::{Labels, resolve_criterion};
use crate::calibration::{CalibrationError, Positive};
use crate::dataset::{LabelSet, LabelSource};
use crate::ruling::{Decision, Ruling};

/// Which way a decision contradicts the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mistake {
    /// Accepted, and truly bad.
    FalseAcceptance,
    /// Rejected, and truly good.
    FalseRejection,
}

impl Mistake {
    /// The name in rows and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FalseAcceptance => "false_acceptance",
            Self::FalseRejection => "false_rejection",
        }
    }

    /// The same in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::FalseAcceptance => "false acceptance",
            Self::FalseRejection => "false rejection",
        }
    }
}

/// Which cases are truly good and which bad, by the labels of one criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    good: HashMap<String, bool>,
    criterion: String,
    positive: Positive,
    warnings: Vec<String>,
}

impl Truth {
    /// Several raters' labels are folded as `venire calibrate` folds them: numbers by their
    /// mean, words by majority, an even split being no label.
    ///
    /// # Errors
    /// When there is no label, the criterion is not among them, several are and none is named,
    /// or the rule can't fit them.
    pub fn new(
        set: &LabelSet,
        criterion: Option<&str>,
        positive: &Positive,
    ) -> Result<Self, CalibrationError> {
        let criterion = resolve_criterion(set, criterion)?;
        let labels = Labels::collect(set, &criterion, positive)?;
        let mut warnings = Vec::new();
        if labels.words.is_empty() {
            let ratings = labels.cases.iter().flat_map(|case| &case.ratings);
            warnings.extend(positive.doubt(ratings.map(|rating| rating.value)));
        }
        if let Some(n) = labels.sources.get(&LabelSource::Model) {
            warnings
                .push(format!("{n} labels are a model's: what contradicts them need not be wrong"));
        }
        if labels.tied > 0 {
            warnings.push(format!(
                "the raters of {} cases are evenly split: these count as unlabelled",
                labels.tied
            ));
        }
        let good = labels.cases.into_iter().map(|case| (case.id, case.good)).collect();
        Ok(Self { good, criterion, positive: positive.clone(), warnings })
    }

    /// Whether a case is truly good; `None` without a label.
    #[must_use]
    pub fn of(&self, case: &str) -> Option<bool> {
        self.good.get(case).copied()
    }

    /// `good`, `bad`, or `None` without a label.
    #[must_use]
    pub fn word(&self, case: &str) -> Option<&'static str> {
        self.of(case).map(|good| if good { "good" } else { "bad" })
    }

    /// Which way the panel's decision, or a judge's vote, contradicts the label; `None` where
    /// it agrees, is none, or there is no label.
    #[must_use]
    pub fn mistake(&self, ruling: &Ruling, judge: Option<&str>) -> Option<Mistake> {
        match (self.of(&ruling.case)?, accepts(ruling, judge)?) {
            (false, true) => Some(Mistake::FalseAcceptance),
            (true, false) => Some(Mistake::FalseRejection),
            _ => None,
        }
    }

    /// A case that has a label, as an example for a message.
    #[must_use]
    pub fn example(&self) -> Option<&str> {
        self.good.keys().map(String::as_str).min()
    }

    /// Labelled cases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.good.len()
    }

    /// Whether no case is labelled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.good.is_empty()
    }

    /// What to know before trusting it.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Which labels of which criterion are good, in words.
    #[must_use]
    pub fn rule(&self) -> String {
        format!("`{}` {}", self.criterion, self.positive)
    }
}

/// What the panel, or a judge by its own vote, decided.
fn accepts(ruling: &Ruling, judge: Option<&str>) -> Option<bool> {
    match judge {
        Some(name) => {
            let vote = ruling.votes.iter().find(|vote| vote.judge == name)?;
            ruling.vote_accepts(vote)
        }
        None => match ruling.decision {
            Decision::Accept => Some(true),
            Decision::Reject => Some(false),
            Decision::Undecided => None,
        },
    }
}

/// Counts decisions against labels.
#[derive(Clone, Debug, Default)]
pub struct Mistakes {
    /// Whether the decided bad ones are accepted.
    bad: ShareCounts,
    /// Whether the decided good ones are rejected.
    good: ShareCounts,
    undecided: u64,
    unlabelled: u64,
}

/// Decisions against labels, counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MistakeCounts {
    /// `panel`, or the judge whose votes are held against the labels.
    pub of: String,
    /// The labels' criterion.
    pub criterion: String,
    /// Which labels are good.
    pub positive: Positive,
    /// Cases with a label and a decision.
    pub n: u64,
    /// Accepted and truly bad.
    pub false_acceptances: u64,
    /// Rejected and truly good.
    pub false_rejections: u64,
    /// P(accepted | truly bad); `None` without a bad case.
    pub false_positive_rate: Option<Share>,
    /// P(rejected | truly good); `None` without a good case.
    pub false_negative_rate: Option<Share>,
    /// Labelled cases without a decision, or without a vote of the judge.
    pub undecided: u64,
    /// Cases without a label.
    pub unlabelled: u64,
}

impl Mistakes {
    /// Counts one case; `group` is its own.
    pub fn add(
        &mut self,
        truth: &Truth,
        ruling: &Ruling,
        judge: Option<&str>,
        group: Option<&str>,
    ) {
        match (truth.of(&ruling.case), accepts(ruling, judge)) {
            (None, _) => self.unlabelled += 1,
            (Some(_), None) => self.undecided += 1,
            (Some(true), Some(accepted)) => self.good.add(group, !accepted),
            (Some(false), Some(accepted)) => self.bad.add(group, accepted),
        }
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self, truth: &Truth, judge: Option<&str>) -> MistakeCounts {
        MistakeCounts {
            of: judge.unwrap_or("panel").to_owned(),
            criterion: truth.criterion.clone(),
            positive: truth.positive.clone(),
            n: self.bad.n() + self.good.n(),
            false_acceptances: self.bad.yes(),
            false_rejections: self.good.yes(),
            false_positive_rate: self.bad.share(),
            false_negative_rate: self.good.share(),
            undecided: self.undecided,
            unlabelled: self.unlabelled,
        }
    }
}

impl MistakeCounts {
    /// Whether no case of the run has a label.
    #[must_use]
    pub fn has_no_label(&self) -> bool {
        self.n + self.undecided == 0
    }

    /// The counts as sentences.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let whose = match self.of.as_str() {
            "panel" => "the panel's decision contradicts".to_owned(),
            judge => format!("the vote of `{judge}` contradicts"),
        };
        let wrong = self.false_acceptances + self.false_rejections;
        let rate = |share: &Option<Share>, k: u64, one: &str, of: &str| match share {
            Some(own) => {
                let groups = own.groups.map_or_else(String::new, |n| format!(" in {n} groups"));
                format!(
                    "{k} of {} {of} cases {one}: {:.2} (95% interval {:.2} to {:.2}, n = {}{groups})",
                    own.n, own.point, own.lower, own.upper, own.n
                )
            }
            None if k > 0 => format!("{k} {of} cases {one}, all of one group: no interval"),
            None => format!("no {of} case with a decision"),
        };
        let mut lines = vec![
            format!(
                "{whose} the label in {wrong} of {} cases that have both (good: `{}` {})",
                self.n, self.criterion, self.positive
            ),
            format!(
                "false acceptances: {}",
                rate(&self.false_positive_rate, self.false_acceptances, "accepted", "bad")
            ),
            format!(
                "false rejections: {}",
                rate(&self.false_negative_rate, self.false_rejections, "rejected", "good")
            ),
        ];
        let mut left = Vec::new();
        if self.undecided > 0 {
            let why = if self.of == "panel" { "undecided" } else { "without its vote" };
            left.push(format!("{} labelled and {why}", self.undecided));
        }
        if self.unlabelled > 0 {
            left.push(format!("{} without a label", self.unlabelled));
        }
        if !left.is_empty() {
            lines.push(format!("not counted: {}", left.join(", ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{LabelOptions, Source, read_labels};

    fn truth(csv: &str, positive: &str) -> Truth {
        let source = Source::spool(csv.as_bytes(), "labels.csv").unwrap();
        let set = read_labels(&source, &LabelOptions::default()).unwrap();
        Truth::new(&set, None, &positive.parse().unwrap()).unwrap()
    }

    fn ruled(case: &str, decision: Decision) -> Ruling {
        let rules = crate::panel::Rules {
            seats: Vec::new(),
            settings: crate::panel::vote::Settings {
                aggregate: crate::panel::vote::Aggregate::Median,
                midpoint: false,
                trim: 0.0,
                threshold: 0.5,
            },
            threshold: 0.5,
            quorum: 1,
            profile: None,
        };
        Ruling { decision, ..rules.rule(case, Vec::new()) }
    }

    #[test]
    fn only_a_decision_against_a_label_is_a_mistake() {
        let truth = truth("case,label\ngood,5\nbad,1\n", ">=4");
        let of = |case: &str, decision| truth.mistake(&ruled(case, decision), None);
        assert_eq!(of("bad", Decision::Accept), Some(Mistake::FalseAcceptance));
        assert_eq!(of("good", Decision::Reject), Some(Mistake::FalseRejection));
        assert_eq!(of("good", Decision::Accept), None);
        assert_eq!(of("bad", Decision::Reject), None);
        assert_eq!(of("bad", Decision::Undecided), None, "no decision is not wrong");
        assert_eq!(of("other", Decision::Accept), None, "no label contradicts nothing");
    }

    #[test]
    fn counts_add_up_and_rates_are_of_the_right_class() {
        let truth = truth("case,label\na,1\nb,0\nc,0\nd,1\ne,1\n", "=1");
        let mut counted = Mistakes::default();
        for (case, decision) in [
            ("a", Decision::Reject),
            ("b", Decision::Accept),
            ("c", Decision::Reject),
            ("d", Decision::Accept),
            ("e", Decision::Undecided),
            ("f", Decision::Accept),
        ] {
            counted.add(&truth, &ruled(case, decision), None, None);
        }
        let counts = counted.counts(&truth, None);
        assert_eq!((counts.n, counts.undecided, counts.unlabelled), (4, 1, 1));
        assert_eq!((counts.false_acceptances, counts.false_rejections), (1, 1));
        let rate = counts.false_positive_rate.unwrap();
        assert_eq!((rate.point, rate.n), (0.5, 2), "of the bad ones");
        let said = counts.lines().join("\n");
        assert!(said.contains("in 2 of 4 cases"), "{said}");
        assert!(said.contains("1 of 2 bad cases accepted: 0.50"), "{said}");
        assert!(said.contains("1 labelled and undecided, 1 without a label"), "{said}");
    }

    #[test]
    fn evenly_split_raters_are_no_label_and_that_is_said() {
        let truth = truth("case,rater,label\na,x,yes\na,y,no\nb,x,yes\n", "=yes");
        assert_eq!((truth.of("a"), truth.of("b")), (None, Some(true)));
        assert!(truth.warnings()[0].contains("evenly split"), "{:?}", truth.warnings());
    }
}
