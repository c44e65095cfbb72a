//! Joining: measurements come in one at a time and become the columns of a [`Table`].
//!
//! Nothing is dropped in silence: a judgement without a label, of another criterion or of a
//! judge that was not asked for is counted.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::error::CalibrationError;
use super::labelled::{LabelledCase, Labels, Target};
use super::positive::Positive;
use super::table::{
    Counts, JudgeColumn, JudgeKind, Moments, Orders, Retest, SeatFacts, Table, TableOptions,
    recorded_number,
};
use crate::dataset::{Judgement, Order};
use crate::score::{Scale, Score};
use crate::verdict::{Fingerprint, Status, StatusCounts};

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
        self.sort_cases();
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

    /// Cases by their ids, as [`Labels`] has them, those without a label among them.
    fn sort_cases(&mut self) {
        let cases = &mut self.labels.cases;
        if cases.is_sorted_by(|a, b| a.id <= b.id) {
            return;
        }
        let mut order: Vec<u32> = (0..cases.len() as u32).collect();
        order.sort_unstable_by_key(|&old| &cases[old as usize].id);
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        cases.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        self.rows.iter_mut().for_each(|row| row.case = place[row.case as usize]);
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
