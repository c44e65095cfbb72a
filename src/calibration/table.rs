//! The table: cases x judges x labels of one criterion, joined by the case's id.
//!
//! A judgement without a label and a judge without a score are counted and never guessed.
//! Everything after this stands on columns of equal length, one entry a labelled case.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::error::CalibrationError;
use super::figure::{Figure, Measured};
use super::labelled::{LabelledCase, Labels, Target};
use super::positive::Positive;
use crate::dataset::{Judgement, Order};
use crate::score::{Scale, Score};
use crate::stats::distribution::student_critical;
use crate::stats::interval::wilson;
use crate::stats::{Estimate, Interval, Method, Reason};
use crate::verdict::{Fingerprint, Status, StatusCounts};

/// What a judge's scores are.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JudgeKind {
    /// Accept or not: scores are 1 and 0 after orientation.
    Binary,
    /// A number, more of which is better.
    Graded,
}

/// Which presentations of a pair are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orders {
    /// All that there are; a judge that was shown both must agree with itself, or half counts.
    #[default]
    All,
    /// One only.
    Only(Order),
}

/// How the table is made.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// The judgements' criterion.
    pub criterion: String,
    /// Presentations of a pair.
    pub orders: Orders,
    /// Scales of judges, to be brought onto the labels' scale; the empty name is every other
    /// judge.
    pub judge_scales: BTreeMap<String, Scale>,
    /// The judges to use; all of them where empty.
    pub judges: Vec<String>,
    /// Whether scores without a declared scale are in [0,1] by their making: those of a run.
    pub unit_scores: bool,
    /// Whether such scores, where they are graded and of no declared scale, are brought onto
    /// the labels' scale: a score is the place on the judge's scale, and means the label in
    /// that place.
    pub scale_units: bool,
    /// Whether judged cases without a label stay in the table: [`LabelledCase::is_labelled`]
    /// tells them apart, and nothing else about them is a truth. For the rate of unlabelled
    /// data only.
    pub keep_unlabelled: bool,
}

/// How a judge sat on the panel of a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct SeatFacts {
    /// Whether its vote was 1 minus its score.
    pub invert: bool,
    /// Samples that made one vote.
    pub samples: u32,
}

/// Two votes of a judge on one case, from different samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retest {
    /// The case's place in the table.
    pub case: usize,
    /// The votes.
    pub votes: [f64; 2],
}

/// One judge over the cases of the table.
#[derive(Clone, Debug)]
pub struct JudgeColumn {
    /// Its name.
    pub name: String,
    /// What it was, where a run says so.
    pub fingerprint: Option<Fingerprint>,
    /// The models that its server said it used, where the data say so.
    pub models: BTreeSet<String>,
    /// How it sat on its panel, where a run says so.
    pub seat: Option<SeatFacts>,
    /// What its scores are.
    pub kind: JudgeKind,
    /// What a verdict's score of 0 and of 1 are among these scores, a straight line between
    /// them; `None` where the data do not say.
    pub unit: Option<[f64; 2]>,
    /// One score a case; `None` where the measurement failed or there is none.
    pub scores: Vec<Option<f64>>,
    /// The scores as categories, for judges whose values are the labels' categories.
    pub categories: Option<Vec<Option<f64>>>,
    /// What became of its measurements of labelled cases.
    pub statuses: StatusCounts,
    /// The same for truly good cases.
    pub statuses_good: StatusCounts,
    /// The same for truly bad cases.
    pub statuses_bad: StatusCounts,
    /// Labelled cases without a row of this judge.
    pub missing: u64,
    /// Repeated measurements: the ok samples of each case with two or more.
    pub repeats: Vec<Vec<f64>>,
    /// Of the cases of the whole table with two or more ok samples: two votes, each of half of
    /// the samples, as `scores` has them. Not of pairs.
    pub retests: Vec<Retest>,
    /// Pairs shown in both orders, and on how many of them the judge agreed with itself.
    pub orders: (u64, u64),
    /// Mean price of one of its judgements, where known.
    pub price_usd: Option<f64>,
    /// Mean time of one of its judgements in milliseconds, where known.
    pub latency_ms: Option<f64>,
    /// Judgements of a case: more than one with repeats and with pairs in both orders.
    pub judgements_a_case: f64,
    /// Prices of its judgements.
    pub prices: Moments,
    /// Times of its judgements in milliseconds.
    pub latencies: Moments,
}

/// Count, mean and spread of numbers that are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a number (Welford 1962).
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        let gap = value - self.mean;
        self.mean += gap / self.n as f64;
        self.squares += gap * (value - self.mean);
    }

    /// The mean; `None` without numbers.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// The mean with its Student interval. Numbers that are all the same are a fact and have
    /// an interval without width.
    ///
    /// # Errors
    /// `no_data`; `too_few_values` for a single number.
    pub fn estimate(&self, level: f64) -> crate::stats::Defined<Estimate> {
        let n = self.n as f64;
        match self.n {
            0 => return Err(Reason::NoData.into()),
            1 => return Err(Reason::TooFewValues.into()),
            _ => {}
        }
        let margin = student_critical(level, n - 1.0) * (self.squares / (n - 1.0) / n).sqrt();
        let interval = Interval::around(self.mean, margin, level).clipped(0.0, f64::INFINITY);
        Ok(Estimate { point: self.mean, interval, n: self.n as usize, method: Method::StudentT })
    }
}

impl JudgeColumn {
    /// What it costs to have it judge one case in US dollars, all its judgements together.
    #[must_use]
    pub fn cost_of_a_case(&self, level: f64) -> Measured<Figure> {
        let times = self.judgements_a_case;
        Measured(self.prices.estimate(level).map(|own| {
            let own = Figure::from(own);
            Figure {
                estimate: times * own.estimate,
                lower: times * own.lower,
                upper: times * own.upper,
                ..own
            }
        }))
    }

    /// Share of pairs on which the judge agrees with itself in both orders.
    #[must_use]
    pub fn position_consistency(&self) -> Option<Measured<Figure>> {
        let (pairs, consistent) = self.orders;
        (pairs > 0).then(|| wilson(consistent, pairs, 0.95).into())
    }
}

/// What was joined, and what was left over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Counts {
    /// Cases with a label and a judgement.
    pub cases: u64,
    /// Truly good ones.
    pub good: u64,
    /// Truly bad ones.
    pub bad: u64,
    /// Judgements of the criterion.
    pub judgements: u64,
    /// Judgements of cases without a label.
    pub judgements_without_label: u64,
    /// Cases judged and not labelled.
    pub cases_without_label: u64,
    /// Cases labelled and not judged.
    pub cases_without_judgement: u64,
    /// Judgements without a score.
    pub judgements_without_score: u64,
    /// Judgements of other criteria, not used.
    pub other_criteria: u64,
    /// Judgements of judges that were not asked for, not used.
    pub other_judges: u64,
    /// Cases left out because their raters are evenly split.
    pub tied_labels: u64,
}

impl Counts {
    /// What was left out, in words; `None` where everything was used.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let left: Vec<String> = [
            (self.judgements_without_label, "judgements without a label"),
            (self.judgements_without_score, "judgements without a score"),
            (self.cases_without_judgement, "labelled cases without a judgement"),
            (self.tied_labels, "cases whose raters are evenly split"),
        ]
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
        (!left.is_empty()).then(|| left.join(", "))
    }
}

/// Cases x judges x labels.
#[derive(Clone, Debug)]
pub struct Table {
    /// The judgements' criterion.
    pub criterion: String,
    /// The labels.
    pub labels: Labels,
    /// Which labels are good.
    pub positive: Positive,
    /// The judges, in the order of the file.
    pub judges: Vec<JudgeColumn>,
    /// What was joined.
    pub counts: Counts,
}

impl Table {
    /// The labelled and judged cases.
    #[must_use]
    pub fn cases(&self) -> &[LabelledCase] {
        &self.labels.cases
    }

    /// The table of some of its cases, in the order given; a case may be named repeatedly and
    /// then stands there as often, for resampling. Statuses, repeats and what was left over
    /// stay those of the whole.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut table = self.clone();
        table.labels.cases = rows.iter().map(|&i| self.labels.cases[i].clone()).collect();
        for judge in &mut table.judges {
            judge.scores = rows.iter().map(|&i| judge.scores[i]).collect();
            judge.categories =
                judge.categories.as_ref().map(|own| rows.iter().map(|&i| own[i]).collect());
        }
        let good = table.labels.cases.iter().filter(|case| case.good).count() as u64;
        table.counts.cases = rows.len() as u64;
        table.counts.good = good;
        table.counts.bad = rows.len() as u64 - good;
        table
    }

    /// The table of some of its judges, by position.
    #[must_use]
    pub fn with_judges(&self, judges: &[usize]) -> Self {
        Self {
            criterion: self.criterion.clone(),
            labels: self.labels.clone(),
            positive: self.positive.clone(),
            judges: judges.iter().map(|&j| self.judges[j].clone()).collect(),
            counts: self.counts.clone(),
        }
    }

    /// Whether every judge only accepts or not.
    #[must_use]
    pub fn all_binary(&self) -> bool {
        self.judges.iter().all(|judge| judge.kind == JudgeKind::Binary)
    }
}

/// One measurement as it comes in.
#[derive(Clone, Copy, Debug)]
pub struct Measurement<'a> {
    /// The case's id.
    pub case: &'a str,
    /// The judge.
    pub judge: &'a str,
    /// What became of it.
    pub status: Status,
    /// The score, on the judge's own scale.
    pub score: Option<f64>,
    /// For pairs, how they were shown.
    pub order: Option<Order>,
    /// Which sample.
    pub sample: u32,
    /// The line, for messages; 0 where there is none.
    pub line: u64,
}

impl<'a> Measurement<'a> {
    /// A recorded judgement.
    #[must_use]
    pub fn recorded(judgement: &'a Judgement, line: u64) -> Self {
        Self {
            case: &judgement.case,
            judge: &judgement.judge,
            status: judgement.status,
            score: judgement.score,
            order: judgement.order,
            sample: judgement.sample,
            line,
        }
    }
}

#[derive(Clone, Copy)]
struct Row {
    judge: u32,
    case: u32,
    order: u8,
    sample: u32,
    status: Status,
    score: f64,
    line: u64,
}

#[derive(Default)]
struct Seen {
    distinct: BTreeSet<u64>,
    prices: Moments,
    latencies: Moments,
    fingerprint: Option<Fingerprint>,
    models: BTreeSet<String>,
    seat: Option<SeatFacts>,
}

/// More distinct scores than this are no categories.
const MAX_CATEGORIES: usize = 50;

/// Joins measurements with labels, one at a time.
pub struct TableBuilder {
    labels: Labels,
    positive: Positive,
    options: TableOptions,
    places: HashMap<String, u32>,
    judges: Vec<String>,
    judge_places: HashMap<String, u32>,
    seen: Vec<Seen>,
    rows: Vec<Row>,
    unlabelled: HashSet<String>,
    other_criteria: BTreeSet<String>,
    other_judges: BTreeSet<String>,
    without: HashSet<String>,
    counts: Counts,
}

impl TableBuilder {
    /// A table over these labels.
    #[must_use]
    pub fn new(labels: Labels, positive: Positive, options: TableOptions) -> Self {
        let places =
            labels.cases.iter().enumerate().map(|(i, case)| (case.id.clone(), i as u32)).collect();
        Self {
            labels,
            positive,
            options,
            places,
            judges: Vec::new(),
            judge_places: HashMap::new(),
            seen: Vec::new(),
            rows: Vec::new(),
            unlabelled: HashSet::new(),
            other_criteria: BTreeSet::new(),
            other_judges: BTreeSet::new(),
            without: HashSet::new(),
            counts: Counts::default(),
        }
    }

    /// Adds a recorded judgement; one of another criterion is counted and not used.
    ///
    /// # Errors
    /// When the score is off the judge's declared scale.
    pub fn judgement(&mut self, judgement: &Judgement, line: u64) -> Result<(), CalibrationError> {
        if judgement.criterion != self.options.criterion {
            self.counts.other_criteria += 1;
            if !self.other_criteria.contains(&judgement.criterion) {
                self.other_criteria.insert(judgement.criterion.clone());
            }
            return Ok(());
        }
        let before = self.counts.other_judges;
        self.measurement(Measurement::recorded(judgement, line))?;
        if self.counts.other_judges == before {
            self.spent(judgement);
        }
        Ok(())
    }

    /// Adds a measurement of the criterion.
    ///
    /// # Errors
    /// As [`Self::judgement`].
    pub fn measurement(&mut self, row: Measurement<'_>) -> Result<(), CalibrationError> {
        if matches!((self.options.orders, row.order), (Orders::Only(order), Some(own)) if own != order)
        {
            return Ok(());
        }
        if !self.uses(row.judge) {
            self.leave_out(row.judge);
            return Ok(());
        }
        self.counts.judgements += 1;
        self.counts.judgements_without_score += u64::from(row.score.is_none());
        let judge = self.judge(row.judge);
        let score = self.on_label_scale(&row)?;
        let Some(case) = self.place(row.case) else {
            self.counts.judgements_without_label += 1;
            if !self.unlabelled.contains(row.case) {
                self.unlabelled.insert(row.case.to_owned());
            }
            return Ok(());
        };
        if let Some(score) = score {
            let distinct = &mut self.seen[judge as usize].distinct;
            if distinct.len() <= MAX_CATEGORIES {
                // Adding 0.0 folds -0.0 into 0.0.
                distinct.insert((score + 0.0).to_bits());
            }
        }
        self.rows.push(Row {
            judge,
            case,
            order: row.order.map_or(0, |order| order as u8 + 1),
            sample: row.sample,
            status: row.status,
            score: score.unwrap_or(f64::NAN),
            line: row.line,
        });
        Ok(())
    }

    /// The judges that were asked for; empty for all.
    #[must_use]
    pub fn wanted(&self) -> Vec<String> {
        self.options.judges.clone()
    }

    /// Whether a judge's judgements are used.
    #[must_use]
    pub fn uses(&self, judge: &str) -> bool {
        let wanted = &self.options.judges;
        !self.without.contains(judge)
            && (wanted.is_empty() || wanted.iter().any(|name| name == judge))
    }

    /// Leaves a judge out, whatever it has said.
    pub fn without(&mut self, judge: &str) {
        self.without.insert(judge.to_owned());
    }

    /// Counts a judgement of a judge that was not asked for.
    pub fn leave_out(&mut self, judge: &str) {
        self.counts.other_judges += 1;
        if !self.other_judges.contains(judge) {
            self.other_judges.insert(judge.to_owned());
        }
    }

    /// What a run knows of a judgement beside its score.
    pub fn observe(
        &mut self,
        judge: &str,
        fingerprint: &Fingerprint,
        cost_usd: Option<f64>,
        latency_ms: u64,
    ) {
        let place = self.judge(judge) as usize;
        let seen = &mut self.seen[place];
        seen.fingerprint.get_or_insert_with(|| fingerprint.clone());
        if let Some(cost) = cost_usd {
            seen.prices.add(cost);
        }
        seen.latencies.add(latency_ms as f64);
    }

    /// Price and time that a file records beside a judgement.
    fn spent(&mut self, judgement: &Judgement) {
        let number = |name| judgement.metadata.get(name).and_then(recorded_number);
        let (cost, latency) = (number("cost_usd"), number("latency_ms"));
        if cost.is_none() && latency.is_none() {
            return;
        }
        let place = self.judge(&judgement.judge) as usize;
        let seen = &mut self.seen[place];
        cost.into_iter().for_each(|cost| seen.prices.add(cost));
        latency.into_iter().for_each(|latency| seen.latencies.add(latency));
    }

    /// The position of a case; one without a label is added where those are kept.
    fn place(&mut self, id: &str) -> Option<u32> {
        if let Some(&place) = self.places.get(id) {
            return Some(place);
        }
        if !self.options.keep_unlabelled {
            return None;
        }
        let place = self.labels.cases.len() as u32;
        self.labels.cases.push(LabelledCase {
            id: id.to_owned(),
            good: false,
            target: f64::NAN,
            ratings: Vec::new(),
        });
        self.places.insert(id.to_owned(), place);
        Some(place)
    }

    /// How a judge sits on its panel; `samples` is raised to the largest one seen.
    pub fn observe_seat(&mut self, judge: &str, invert: bool, samples: u32) {
        let place = self.judge(judge) as usize;
        let seat = self.seen[place].seat.get_or_insert(SeatFacts { invert, samples });
        seat.samples = seat.samples.max(samples);
    }

    /// The model that a judge's server said it used.
    pub fn observe_model(&mut self, judge: &str, model: &str) {
        let place = self.judge(judge) as usize;
        if !self.seen[place].models.contains(model) {
            self.seen[place].models.insert(model.to_owned());
        }
    }

    fn judge(&mut self, name: &str) -> u32 {
        if let Some(&place) = self.judge_places.get(name) {
            return place;
        }
        let place = self.judges.len() as u32;
        self.judges.push(name.to_owned());
        self.judge_places.insert(name.to_owned(), place);
        self.seen.push(Seen::default());
        place
    }

    fn on_label_scale(&self, row: &Measurement<'_>) -> Result<Option<f64>, CalibrationError> {
        let scales = &self.options.judge_scales;
        let Some(scale) = scales.get(row.judge).or_else(|| scales.get("")) else {
            return Ok(row.score);
        };
        let Some(score) = row.score else { return Ok(None) };
        let target = self.labels.scale.scale.ok_or_else(|| CalibrationError::NoLabelScale {
            judge: row.judge.to_owned(),
            criterion: self.labels.criterion.clone(),
        })?;
        let position = scale.position(score).map_err(|_| CalibrationError::OffScale {
            judge: row.judge.to_owned(),
            case: row.case.to_owned(),
            value: score,
            scale: scale.to_string(),
            line: row.line,
        })?;
        Ok(Some(target.value(position)))
    }

    /// The table.
    ///
    /// # Errors
    /// When no judgement has the criterion, no case has both a label and a judgement, a
    /// judge's measurement stands twice, or a scale is declared for a judge that is not there.
    pub fn finish(mut self) -> Result<Table, CalibrationError> {
        self.check_overlap()?;
        self.rows.sort_unstable_by_key(|r| (r.judge, r.case, r.order, r.sample, r.line));
        for pair in self.rows.windows(2) {
            let key = |r: &Row| (r.judge, r.case, r.order, r.sample);
            if key(&pair[0]) == key(&pair[1]) {
                return Err(CalibrationError::DuplicateJudgement {
                    judge: self.judges[pair[0].judge as usize].clone(),
                    case: self.labels.cases[pair[0].case as usize].id.clone(),
                    first: pair[0].line,
                    second: pair[1].line,
                });
            }
        }
        self.scale_units();
        let kept = self.keep_judged_cases();
        let judges = self.columns();
        let counts = Counts {
            cases: kept,
            good: self.labels.cases.iter().filter(|case| case.is_labelled() && case.good).count()
                as u64,
            bad: self.labels.cases.iter().filter(|case| case.is_labelled() && !case.good).count()
                as u64,
            cases_without_label: (self.unlabelled.len()
                + self.labels.cases.iter().filter(|case| !case.is_labelled()).count())
                as u64,
            tied_labels: self.labels.tied,
            ..self.counts
        };
        Ok(Table {
            criterion: self.options.criterion,
            labels: self.labels,
            positive: self.positive,
            judges,
            counts,
        })
    }

    /// Brings graded scores in [0,1] onto the labels' scale, as if that had been declared.
    fn scale_units(&mut self) {
        let labels = self.labels.scale.scale.filter(|own| (own.low(), own.high()) != (0.0, 1.0));
        let (Some(scale), Target::LabelScale) = (labels, self.labels.target) else { return };
        if !(self.options.scale_units && self.options.unit_scores) {
            return;
        }
        let scales = &self.options.judge_scales;
        let scaled: Vec<bool> = (self.judges.iter().zip(&self.seen))
            .map(|(name, seen)| {
                !scales.contains_key(name)
                    && !scales.contains_key("")
                    && matches!(self.orientation(seen), Orientation::Number)
            })
            .collect();
        for row in &mut self.rows {
            if scaled[row.judge as usize]
                && let Ok(score) = Score::new(row.score)
            {
                row.score = scale.value(score);
            }
        }
        let names = self.judges.iter().zip(scaled).filter(|(_, scaled)| *scaled);
        self.options.judge_scales.extend(names.map(|(name, _)| (name.clone(), Scale::UNIT)));
    }

    fn check_overlap(&self) -> Result<(), CalibrationError> {
        let Counts { judgements, other_judges, .. } = self.counts;
        if judgements + other_judges == 0 && self.other_criteria.is_empty() {
            return Err(CalibrationError::NoData { what: "judgement" });
        }
        let scaled = self.options.judge_scales.keys().filter(|name| !name.is_empty());
        if self.counts.judgements + self.counts.other_judges > 0
            && let Some(name) = scaled
                .chain(&self.options.judges)
                .find(|name| !self.judge_places.contains_key(*name))
        {
            let present: Vec<String> =
                self.judges.iter().chain(&self.other_judges).cloned().collect();
            return Err(CalibrationError::UnknownJudge {
                judge: name.clone(),
                suggestion: crate::config::nearest(name, present.iter().map(String::as_str)),
                present,
            });
        }
        if self.counts.judgements == 0 && !self.other_criteria.is_empty() {
            let present: Vec<String> = self.other_criteria.iter().cloned().collect();
            let criterion = self.options.criterion.clone();
            return Err(CalibrationError::UnknownCriterion {
                what: "judgement",
                suggestion: crate::config::nearest(&criterion, present.iter().map(String::as_str)),
                criterion,
                present,
            });
        }
        if self.rows.is_empty() {
            let mut judged: Vec<&String> = self.unlabelled.iter().collect();
            judged.sort();
            return Err(CalibrationError::NoOverlap {
                labelled: self.labels.cases.len(),
                judged: judged.len(),
                label: self.labels.cases.first().map(|c| c.id.clone()).unwrap_or_default(),
                judgement: judged.first().map(|id| (*id).clone()).unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// Drops labelled cases that nobody judged, and renumbers the rest.
    fn keep_judged_cases(&mut self) -> u64 {
        let mut judged = vec![false; self.labels.cases.len()];
        for row in &self.rows {
            judged[row.case as usize] = true;
        }
        let mut next = 0;
        let places: Vec<u32> = judged
            .iter()
            .map(|kept| {
                next += u32::from(*kept);
                next.saturating_sub(1)
            })
            .collect();
        self.counts.cases_without_judgement = judged.iter().filter(|kept| !**kept).count() as u64;
        let mut position = 0;
        self.labels.cases.retain(|_| {
            position += 1;
            judged[position - 1]
        });
        for row in &mut self.rows {
            row.case = places[row.case as usize];
        }
        u64::from(next)
    }

    fn columns(&self) -> Vec<JudgeColumn> {
        let mut start = 0;
        let mut columns = Vec::with_capacity(self.judges.len());
        for (place, name) in self.judges.iter().enumerate() {
            let end = start + self.rows[start..].partition_point(|row| row.judge == place as u32);
            columns.push(self.column(name, place, &self.rows[start..end]));
            start = end;
        }
        columns
    }

    fn column(&self, name: &str, place: usize, rows: &[Row]) -> JudgeColumn {
        let seen = &self.seen[place];
        let orientation = self.orientation(seen);
        let cases = &self.labels.cases;
        let mut column = JudgeColumn {
            name: name.to_owned(),
            fingerprint: seen.fingerprint.clone(),
            models: seen.models.clone(),
            seat: seen.seat,
            kind: if matches!(orientation, Orientation::Number) {
                JudgeKind::Graded
            } else {
                JudgeKind::Binary
            },
            unit: self.unit(name, orientation, rows),
            scores: vec![None; cases.len()],
            categories: matches!(orientation, Orientation::Category)
                .then(|| vec![None; cases.len()]),
            statuses: StatusCounts::default(),
            statuses_good: StatusCounts::default(),
            statuses_bad: StatusCounts::default(),
            missing: 0,
            repeats: Vec::new(),
            retests: Vec::new(),
            orders: (0, 0),
            price_usd: seen.prices.mean(),
            latency_ms: seen.latencies.mean(),
            judgements_a_case: 0.0,
            prices: seen.prices,
            latencies: seen.latencies,
        };
        let mut judged = 0;
        for of_case in rows.chunk_by(|a, b| a.case == b.case) {
            judged += 1;
            let case = of_case[0].case as usize;
            for row in of_case {
                column.statuses.add(row.status);
                if !cases[case].is_labelled() {
                    continue;
                }
                if cases[case].good {
                    column.statuses_good.add(row.status);
                } else {
                    column.statuses_bad.add(row.status);
                }
            }
            self.fill(&mut column, case, of_case, orientation);
        }
        column.missing = cases.len() as u64 - judged;
        column.judgements_a_case = rows.len() as f64 / judged.max(1) as f64;
        column
    }

    fn fill(&self, column: &mut JudgeColumn, case: usize, rows: &[Row], orientation: Orientation) {
        let mut votes: Vec<f64> = Vec::with_capacity(2);
        for samples in rows.chunk_by(|a, b| a.order == b.order) {
            let ok: Vec<f64> =
                samples.iter().map(|row| row.score).filter(|score| !score.is_nan()).collect();
            // Half of a pair says nothing about the judge's position bias: no vote.
            let Ok(vote) = crate::stats::aggregate::lower_median(&ok) else { return };
            votes.push(vote);
            if ok.len() > 1 {
                let half = ok.len() / 2;
                let vote = |part: &[f64]| {
                    let vote = crate::stats::aggregate::lower_median(part).ok()?;
                    Some(self.as_seated(self.orient(vote, orientation), column.unit))
                };
                if samples.len() == rows.len()
                    && let Some(votes) = vote(&ok[..half]).zip(vote(&ok[half..2 * half]))
                {
                    column.retests.push(Retest { case, votes: votes.into() });
                }
                column.repeats.push(ok);
            }
        }
        let consistent = votes.iter().all(|vote| *vote == votes[0]);
        if votes.len() > 1 {
            column.orders.0 += 1;
            column.orders.1 += u64::from(consistent);
        }
        let oriented = votes.iter().map(|vote| self.orient(*vote, orientation)).sum::<f64>();
        column.scores[case] = Some(self.as_seated(oriented / votes.len() as f64, column.unit));
        if let Some(categories) = &mut column.categories
            && consistent
        {
            categories[case] = Some(votes[0]);
        }
    }

    /// A verdict's score lies in [0,1]; what a judge was calibrated on may be in another unit.
    fn unit(&self, name: &str, orientation: Orientation, rows: &[Row]) -> Option<[f64; 2]> {
        let within = |low: f64, high: f64| {
            rows.iter().all(|row| row.score.is_nan() || (low..=high).contains(&row.score))
        };
        if matches!(orientation, Orientation::Category) {
            let of = |value: f64| f64::from(u8::from(self.positive.holds(value)));
            return within(0.0, 1.0).then(|| [of(0.0), of(1.0)]);
        }
        let labels = self.labels.scale.scale;
        let scales = &self.options.judge_scales;
        match (scales.get(name).or_else(|| scales.get("")), labels) {
            (Some(own), Some(labels)) => {
                let (low, high) = (labels.low(), labels.high());
                if !self.options.unit_scores {
                    return Some([low, high]);
                }
                // The scale was declared for scores in [0,1], of which it may be a part.
                let at = |score: f64| {
                    low + (score - own.low()) / (own.high() - own.low()) * (high - low)
                };
                Some([at(0.0), at(1.0)])
            }
            _ if self.options.unit_scores || within(0.0, 1.0) => Some([0.0, 1.0]),
            (_, Some(labels)) => {
                within(labels.low(), labels.high()).then(|| [labels.low(), labels.high()])
            }
            (_, None) => None,
        }
    }

    /// A score on the labels' scale as it comes back from a verdict in [0,1]: a threshold that
    /// is certified here must be reached there by the same score, to the last digit.
    fn as_seated(&self, score: f64, unit: Option<[f64; 2]>) -> f64 {
        match (self.labels.scale.scale, unit) {
            (Some(scale), Some([low, high])) if (scale.low(), scale.high()) == (low, high) => {
                scale.position(score).map_or(score, |position| scale.value(position))
            }
            _ => score,
        }
    }

    fn orientation(&self, seen: &Seen) -> Orientation {
        let mut values = seen.distinct.iter().map(|bits| f64::from_bits(*bits));
        let zero_one = values.clone().all(|value| value == 0.0 || value == 1.0);
        if let Positive::OneOf(good) = &self.positive {
            let mut known: BTreeSet<u64> = BTreeSet::new();
            if self.labels.words.is_empty() {
                let ratings = self.labels.cases.iter().flat_map(|case| &case.ratings);
                known.extend(ratings.map(|rating| (rating.value + 0.0).to_bits()));
            }
            known.extend(good.iter().filter_map(|value| match value {
                crate::dataset::LabelValue::Number(number) => Some((number + 0.0).to_bits()),
                crate::dataset::LabelValue::Text(_) => None,
            }));
            let few = seen.distinct.len() <= MAX_CATEGORIES;
            if few && !known.is_empty() && values.all(|value| known.contains(&value.to_bits())) {
                return Orientation::Category;
            }
        }
        if zero_one { Orientation::ZeroOne } else { Orientation::Number }
    }

    fn orient(&self, score: f64, orientation: Orientation) -> f64 {
        match orientation {
            Orientation::Category => f64::from(u8::from(self.positive.holds(score))),
            Orientation::ZeroOne | Orientation::Number => score,
        }
    }
}

#[derive(Clone, Copy)]
enum Orientation {
    /// The judge's values are the labels' categories: 1 where the category is a good one.
    Category,
    /// 0 and 1.
    ZeroOne,
    /// A number.
    Number,
}

/// A number in a row's other columns: CSV holds it as text.
pub(super) fn recorded_number(value: &serde_json::Value) -> Option<f64> {
    let number = match value {
        serde_json::Value::Number(number) => number.as_f64(),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

/// The mean price of a subset of judges; undefined while one has none.
#[must_use]
pub fn price_of(judges: &[&JudgeColumn]) -> Measured {
    let prices: Option<Vec<f64>> = judges.iter().map(|judge| judge.price_usd).collect();
    prices.map_or_else(|| Measured::undefined(Reason::NoData), |p| Measured(Ok(p.iter().sum())))
}

#[cfg(test)]
#[path = "table_tests.rs"]
pub(super) mod tests;
