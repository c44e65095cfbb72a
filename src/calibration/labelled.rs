//! Labelled cases: several raters' labels as one truth a case, by a stated rule.
//!
//! Numbers are averaged and then compared; words and categories go by majority, and an even
//! split is no label. Nothing here looks at a judge.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::error::CalibrationError;
use super::positive::Positive;
use crate::dataset::{Label, LabelScale, LabelSet, LabelSource, LabelValue};

/// Values of labels that a message names.
const VALUES: usize = 8;

/// One rater's label of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rating {
    /// Position in [`Labels::raters`].
    pub rater: u32,
    /// The number, or the position of the word in [`Labels::words`].
    pub value: f64,
    /// Whether this label alone is good.
    pub good: bool,
}

/// The truth about one case.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledCase {
    /// The case's id.
    pub id: String,
    /// Whether the case is truly good.
    pub good: bool,
    /// Mean of the labels for `>=x`; share of good labels for named values.
    pub target: f64,
    /// The labels by their raters.
    pub ratings: Vec<Rating>,
}

impl LabelledCase {
    /// Whether there is a label: only a table that keeps unlabelled cases has others.
    #[must_use]
    pub fn is_labelled(&self) -> bool {
        !self.ratings.is_empty()
    }
}

/// What the target of a case is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The labels' own numbers.
    LabelScale,
    /// 1 for good and 0 for bad.
    Good,
}

/// The labels of one criterion.
#[derive(Clone, Debug)]
pub struct Labels {
    /// The criterion.
    pub criterion: String,
    /// The labelled cases by their ids, so that the order of a file's rows changes no figure.
    pub cases: Vec<LabelledCase>,
    /// The raters by their names.
    pub raters: Vec<String>,
    /// The words that occur as labels.
    pub words: Vec<String>,
    /// The scale, declared or inferred.
    pub scale: LabelScale,
    /// What [`LabelledCase::target`] is measured in.
    pub target: Target,
    /// Labels by their source.
    pub sources: BTreeMap<LabelSource, u64>,
    /// Cases left out because their raters are evenly split.
    pub tied: u64,
    /// Labels read.
    pub count: u64,
}

/// The one criterion to use: the one named, or the only one there is.
///
/// # Errors
/// When it is not among the labels, or several are and none is named.
pub fn resolve_criterion(set: &LabelSet, named: Option<&str>) -> Result<String, CalibrationError> {
    let present: Vec<String> = set.scales.keys().cloned().collect();
    if present.is_empty() {
        return Err(CalibrationError::NoData { what: "label" });
    }
    match named {
        Some(name) if set.scales.contains_key(name) => Ok(name.to_owned()),
        Some(name) => Err(CalibrationError::UnknownCriterion {
            what: "label",
            criterion: name.to_owned(),
            suggestion: crate::config::nearest(name, present.iter().map(String::as_str)),
            present,
        }),
        None if present.len() == 1 => Ok(present.into_iter().next().unwrap_or_default()),
        None => Err(CalibrationError::CriterionNeeded { present }),
    }
}

impl Labels {
    /// The labels of `criterion`, with `positive` saying which are good.
    ///
    /// # Errors
    /// When the criterion is not there, or numbers are asked of words.
    pub fn collect(
        set: &LabelSet,
        criterion: &str,
        positive: &Positive,
    ) -> Result<Self, CalibrationError> {
        let criterion = resolve_criterion(set, Some(criterion))?;
        let scale = set.scales[&criterion].clone();
        let words = scale.categories.clone();
        let mut gathered = Gathered::default();
        for label in set.labels.iter().filter(|label| label.criterion == criterion) {
            gathered.add(label, positive, &words)?;
        }
        let seen = || set.labels.iter().filter(|own| own.criterion == criterion);
        if !gathered.cases.is_empty()
            && !seen().any(|own| positive.matches(&own.value) == Some(true))
            && !positive.possible(scale.scale.as_ref())
        {
            let mut values: Vec<String> = Vec::new();
            for own in seen() {
                let value = own.value.to_string();
                if values.len() <= VALUES && !values.contains(&value) {
                    values.push(value);
                }
            }
            // One value alone can be a set of bad cases by construction: then nothing says that
            // the rule is a slip, and that all are bad is warned of.
            if values.len() > 1 {
                values.sort();
                return Err(CalibrationError::PositiveMatchesNothing {
                    rule: positive.to_string(),
                    criterion,
                    more: values.len() > VALUES,
                    values: values.into_iter().take(VALUES).collect(),
                });
            }
        }
        gathered.sort();
        let target = match positive {
            Positive::AtLeast(_) => Target::LabelScale,
            Positive::OneOf(_) => Target::Good,
        };
        let mut tied = 0;
        let mut cases = Vec::with_capacity(gathered.cases.len());
        for (id, ratings) in gathered.cases {
            let n = ratings.len() as f64;
            let share = ratings.iter().filter(|rating| rating.good).count() as f64 / n;
            let (target, good) = match positive {
                Positive::AtLeast(least) => {
                    let mean = ratings.iter().map(|rating| rating.value).sum::<f64>() / n;
                    (mean, mean >= *least)
                }
                Positive::OneOf(_) if share == 0.5 => {
                    tied += 1;
                    continue;
                }
                Positive::OneOf(_) => (share, share > 0.5),
            };
            cases.push(LabelledCase { id, good, target, ratings });
        }
        Ok(Self {
            criterion,
            cases,
            raters: gathered.raters,
            words,
            scale,
            target,
            sources: gathered.sources,
            tied,
            count: gathered.count,
        })
    }
}

#[derive(Default)]
struct Gathered {
    cases: Vec<(String, Vec<Rating>)>,
    places: HashMap<String, usize>,
    raters: Vec<String>,
    rater_places: HashMap<String, u32>,
    sources: BTreeMap<LabelSource, u64>,
    count: u64,
}

impl Gathered {
    fn add(
        &mut self,
        label: &Label,
        positive: &Positive,
        words: &[String],
    ) -> Result<(), CalibrationError> {
        let good =
            positive.matches(&label.value).ok_or_else(|| CalibrationError::WordsNeedNames {
                rule: positive.to_string(),
                criterion: label.criterion.clone(),
                word: label.value.to_string(),
            })?;
        let value = match &label.value {
            LabelValue::Number(number) => *number,
            LabelValue::Text(word) => {
                words.iter().position(|w| w == word).unwrap_or(words.len()) as f64
            }
        };
        let rater = match self.rater_places.get(&label.rater) {
            Some(&place) => place,
            None => {
                let place = self.raters.len() as u32;
                self.raters.push(label.rater.clone());
                self.rater_places.insert(label.rater.clone(), place);
                place
            }
        };
        let place = match self.places.get(&label.case) {
            Some(&place) => place,
            None => {
                self.places.insert(label.case.clone(), self.cases.len());
                self.cases.push((label.case.clone(), Vec::new()));
                self.cases.len() - 1
            }
        };
        self.cases[place].1.push(Rating { rater, value, good });
        *self.sources.entry(label.label_source).or_default() += 1;
        self.count += 1;
        Ok(())
    }

    /// Cases, raters and labels by their names. Folds are dealt and sums are taken in the order
    /// of cases, and must be the same for the same rows in any order.
    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.raters.len() as u32).collect();
        order.sort_unstable_by_key(|&old| &self.raters[old as usize]);
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        self.raters.sort_unstable();
        self.cases.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (_, ratings) in &mut self.cases {
            ratings.iter_mut().for_each(|own| own.rater = place[own.rater as usize]);
            ratings.sort_by_key(|own| own.rater);
        }
    }
}
