//! A recording: what judges and their panel said about cases, from a stored run or a file, in
//! a form that two of them can be laid side by side.
//!
//! Samples of a judge are one vote, their lower median. A file has no ruling of its own: its
//! panel is the plain lower median, and accepts by a declared rule or by majority.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::error::CalibrationError;
use super::group_hint;
use super::grouping::{Grouping, Groups, Items};
use super::labelled::LabelledCase;
use super::positive::Accept;
use crate::dataset::{JudgementReader, LabelOptions, Order, ReadOptions, Source};
use crate::ruling::{Decision, Ruling};
use crate::stats::aggregate::lower_median;
use crate::store::Store;
use crate::verdict::{Status, Verdict};

/// A judge of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordedJudge {
    /// Its name.
    pub name: String,
    /// What it was; more than one where it changed on the way, none where a file does not say.
    pub fingerprints: BTreeSet<String>,
    /// The models that servers said they used.
    pub models: BTreeSet<String>,
}

/// One judge on one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedVote {
    /// What became of it.
    pub status: Status,
    /// The vote.
    pub score: Option<f64>,
    /// Whether the vote alone accepts.
    pub accepted: Option<bool>,
    /// US dollars, where known.
    pub cost_usd: Option<f64>,
    /// Milliseconds, where known.
    pub latency_ms: Option<f64>,
}

/// One case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCase {
    /// Its id.
    pub id: String,
    /// Its group, where the data say so.
    pub group: Option<String>,
    /// A vote a judge, in the recording's order; `None` where it was not asked.
    pub votes: Vec<Option<RecordedVote>>,
    /// The panel's score.
    pub score: Option<f64>,
    /// The panel's decision.
    pub accepted: Option<bool>,
}

/// What was said about cases.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The run's id, or the file's name.
    pub name: String,
    /// The panel's name, for a run.
    pub panel: Option<String>,
    /// The judges.
    pub judges: Vec<RecordedJudge>,
    /// The cases, in the data's order.
    pub cases: Vec<RecordedCase>,
    /// The score that accepts, where one rule holds for all votes.
    pub threshold: Option<f64>,
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct RecordingOptions {
    /// The criterion; the only one there is where `None`.
    pub criterion: Option<String>,
    /// What a graded vote must reach; without it graded votes have no decision.
    pub accept: Option<Accept>,
    /// Which presentation of a pair is used.
    pub order: Option<Order>,
    /// Aliases of columns.
    pub labels: LabelOptions,
}

impl Recording {
    /// Lays the verdicts and rulings of a stored run out.
    ///
    /// # Errors
    /// When the run is not there or can't be read.
    pub fn of_run(store: &Store, id: &str) -> Result<Self, CalibrationError> {
        let run = store.run(id)?;
        let mut recording =
            Self { name: run.id.clone(), panel: Some(run.panel_name.clone()), ..Self::default() };
        let mut places = HashMap::new();
        store.each_case(run.number, |position, id| {
            let ruling = store.ruling(run.number, position)?;
            let verdicts = match &ruling {
                Some(ruling) => ruling.verdicts.clone(),
                None => store.verdicts(run.number, position)?,
            };
            let group = store.case(run.number, position)?.and_then(|case| case.group);
            recording.add_case(id, group, &verdicts, ruling.as_ref(), &mut places);
            Ok::<_, crate::store::StoreError>(())
        })?;
        recording.fill();
        Ok(recording)
    }

    fn add_case(
        &mut self,
        id: String,
        group: Option<String>,
        verdicts: &[Verdict],
        ruling: Option<&Ruling>,
        places: &mut HashMap<String, usize>,
    ) {
        if let Some(ruling) = ruling {
            self.threshold = Some(ruling.threshold);
        }
        let least = ruling.map(|ruling| ruling.threshold);
        let mut case = RecordedCase { id, group, ..RecordedCase::default() };
        let mut by_judge: BTreeMap<usize, Vec<&Verdict>> = BTreeMap::new();
        for verdict in verdicts {
            let place = self.judge(&verdict.judge, places);
            let judge = &mut self.judges[place];
            let known = verdict.fingerprint.to_string();
            if !known.is_empty() {
                judge.fingerprints.insert(known);
            }
            judge.models.extend(verdict.model_returned.clone());
            by_judge.entry(place).or_default().push(verdict);
        }
        for (place, samples) in by_judge {
            let ok: Vec<f64> =
                samples.iter().filter_map(|own| own.score.map(crate::score::Score::get)).collect();
            let score = lower_median(&ok).ok();
            let costs: Option<Vec<f64>> = samples.iter().map(|own| own.cost_usd).collect();
            let status = match samples.iter().find(|own| own.status != Status::Ok) {
                Some(failed) if ok.is_empty() => failed.status,
                _ => Status::Ok,
            };
            case.put(
                place,
                RecordedVote {
                    status,
                    score,
                    accepted: score.zip(least).map(|(score, least)| score >= least),
                    cost_usd: costs.map(|costs| costs.iter().sum()),
                    latency_ms: samples.iter().map(|own| own.latency_ms as f64).reduce(f64::max),
                },
            );
        }
        if let Some(ruling) = ruling {
            case.score = ruling.score.map(crate::score::Score::get);
            case.accepted = match ruling.decision {
                Decision::Accept => Some(true),
                Decision::Reject => Some(false),
                Decision::Undecided => None,
            };
        }
        self.cases.push(case);
    }

    fn judge(&mut self, name: &str, places: &mut HashMap<String, usize>) -> usize {
        if let Some(place) = places.get(name) {
            return *place;
        }
        let place = self.judges.len();
        self.judges.push(RecordedJudge { name: name.to_owned(), ..RecordedJudge::default() });
        places.insert(name.to_owned(), place);
        place
    }

    /// Every case gets a place for every judge.
    fn fill(&mut self) {
        for case in &mut self.cases {
            case.votes.resize(self.judges.len(), None);
        }
    }

    /// Reads recorded judgements in long form.
    ///
    /// # Errors
    /// Those of the reader; several criteria and none named; the same judgement twice; pairs
    /// in both orders and none chosen; no judgement at all.
    pub fn of_file(
        source: &Source,
        name: &str,
        options: &RecordingOptions,
    ) -> Result<Self, CalibrationError> {
        let mut recording = Self { name: name.to_owned(), ..Self::default() };
        let rows = Rows::read(source, options)?;
        let mut places = HashMap::new();
        let mut case_places: HashMap<&str, usize> = HashMap::new();
        for id in &rows.cases {
            case_places.insert(id, recording.cases.len());
            recording.cases.push(RecordedCase { id: id.clone(), ..RecordedCase::default() });
        }
        let binary: BTreeMap<&String, bool> = rows
            .judges
            .iter()
            .map(|(judge, samples)| {
                let mut scores = samples.values().flatten().filter_map(|own| own.score);
                (judge, scores.all(|score| score == 0.0 || score == 1.0))
            })
            .collect();
        let all_binary = binary.values().all(|own| *own);
        for name in &rows.order {
            let place = recording.judge(name, &mut places);
            let least = if binary[name] { Some(1.0) } else { options.accept.map(|own| own.0) };
            for (case, samples) in &rows.judges[name] {
                let ok: Vec<f64> = samples.iter().filter_map(|own| own.score).collect();
                let score = lower_median(&ok).ok();
                let sum = |of: fn(&Sample) -> Option<f64>| -> Option<f64> {
                    samples.iter().map(of).collect::<Option<Vec<f64>>>().map(|own| own.iter().sum())
                };
                let status = match samples.iter().find(|own| own.status != Status::Ok) {
                    Some(failed) if ok.is_empty() => failed.status,
                    _ => Status::Ok,
                };
                let latencies = samples.iter().map(|own| own.latency_ms);
                recording.cases[case_places[case.as_str()]].put(
                    place,
                    RecordedVote {
                        status,
                        score,
                        accepted: score.zip(least).map(|(score, least)| score >= least),
                        cost_usd: sum(|own| own.cost_usd),
                        latency_ms: latencies
                            .collect::<Option<Vec<f64>>>()
                            .and_then(|own| own.into_iter().reduce(f64::max)),
                    },
                );
            }
        }
        recording.fill();
        let quorum = recording.judges.len() / 2 + 1;
        let least = if all_binary { Some(1.0) } else { options.accept.map(|own| own.0) };
        for case in &mut recording.cases {
            let votes: Vec<f64> = case.votes.iter().flatten().filter_map(|own| own.score).collect();
            if votes.len() >= quorum {
                case.score = lower_median(&votes).ok();
            }
            case.accepted = case.score.zip(least).map(|(score, least)| score >= least);
        }
        recording.threshold = least;
        Ok(recording)
    }

    /// Takes the groups from the cases: those of a field, or the field `group` where there is
    /// none named. What looks like a group is returned, where nothing groups the cases.
    ///
    /// # Errors
    /// Those of the reader; when a field is named and the cases are not known, or one has none.
    pub fn regroup(
        &mut self,
        items: Option<&Source>,
        options: &ReadOptions,
        grouping: &Grouping,
    ) -> Result<Option<String>, CalibrationError> {
        let cases: Vec<LabelledCase> = self
            .cases
            .iter()
            .map(|case| LabelledCase {
                id: case.id.clone(),
                good: false,
                target: 0.0,
                ratings: Vec::new(),
            })
            .collect();
        let known = match items {
            Some(source) => Items::read(source, options, &cases, grouping)?,
            None => Items::absent(cases.len()),
        };
        if matches!(grouping, Grouping::Automatic) {
            for (case, facts) in self.cases.iter_mut().zip(&known.facts) {
                if let Some(group) = facts.as_ref().and_then(|facts| facts.group.clone()) {
                    case.group = Some(group);
                }
            }
        } else {
            let groups = Groups::assign(&cases, &known, grouping)?;
            for (case, group) in self.cases.iter_mut().zip(&groups.of_case) {
                case.group = Some(groups.names[*group].clone());
            }
        }
        let grouped = self.cases.iter().all(|case| case.group.is_some());
        Ok(if grouped { None } else { known.group_hint.or_else(|| group_hint::of_ids(&cases)) })
    }

    /// Positions of the cases by id.
    ///
    /// # Errors
    /// When a case stands twice.
    pub fn places(&self) -> Result<HashMap<&str, usize>, CalibrationError> {
        let mut places = HashMap::with_capacity(self.cases.len());
        for (place, case) in self.cases.iter().enumerate() {
            if places.insert(case.id.as_str(), place).is_some() {
                return Err(CalibrationError::CaseTwice {
                    case: case.id.clone(),
                    recording: self.name.clone(),
                });
            }
        }
        Ok(places)
    }
}

impl RecordedCase {
    fn put(&mut self, place: usize, vote: RecordedVote) {
        if self.votes.len() <= place {
            self.votes.resize(place + 1, None);
        }
        self.votes[place] = Some(vote);
    }
}

/// One row of a file.
struct Sample {
    number: u32,
    status: Status,
    score: Option<f64>,
    cost_usd: Option<f64>,
    latency_ms: Option<f64>,
    order: Option<Order>,
    line: u64,
}

/// A file's rows by judge and case.
#[derive(Default)]
struct Rows {
    cases: Vec<String>,
    order: Vec<String>,
    judges: HashMap<String, BTreeMap<String, Vec<Sample>>>,
}

impl Rows {
    fn read(source: &Source, options: &RecordingOptions) -> Result<Self, CalibrationError> {
        let mut rows = Self::default();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut criterion = options.criterion.clone();
        let mut other: BTreeSet<String> = BTreeSet::new();
        let mut reader = JudgementReader::open(source, &options.labels)?;
        while let Some(own) = reader.next() {
            let own = own?;
            let wanted = criterion.get_or_insert_with(|| own.criterion.clone());
            if own.criterion != *wanted {
                other.insert(own.criterion);
                continue;
            }
            if own.order.is_some() && options.order.is_some() && own.order != options.order {
                continue;
            }
            if !seen.contains(&own.case) {
                seen.insert(own.case.clone());
                rows.cases.push(own.case.clone());
            }
            if !rows.judges.contains_key(&own.judge) {
                rows.order.push(own.judge.clone());
            }
            let samples = rows
                .judges
                .entry(own.judge.clone())
                .or_default()
                .entry(own.case.clone())
                .or_default();
            if let Some(before) = samples.iter().find(|before| before.order != own.order) {
                return Err(CalibrationError::BothOrders {
                    judge: own.judge,
                    case: own.case,
                    first: before.line,
                    second: reader.line(),
                });
            }
            if let Some(before) = samples.iter().find(|before| before.number == own.sample) {
                return Err(CalibrationError::DuplicateJudgement {
                    judge: own.judge,
                    case: own.case,
                    first: before.line,
                    second: reader.line(),
                });
            }
            let number = |name| own.metadata.get(name).and_then(super::table::recorded_number);
            samples.push(Sample {
                number: own.sample,
                status: own.status,
                score: own.score,
                cost_usd: number("cost_usd"),
                latency_ms: number("latency_ms"),
                order: own.order,
                line: reader.line(),
            });
        }
        if rows.cases.is_empty() && other.is_empty() {
            return Err(CalibrationError::NoData { what: "judgement" });
        }
        match (&options.criterion, rows.cases.is_empty()) {
            (None, _) if !other.is_empty() => {
                other.extend(criterion);
                Err(CalibrationError::CriterionNeeded { present: other.into_iter().collect() })
            }
            (Some(named), true) if !other.is_empty() => {
                let present: Vec<String> = other.into_iter().collect();
                Err(CalibrationError::UnknownCriterion {
                    what: "judgement",
                    criterion: named.clone(),
                    suggestion: crate::config::nearest(named, present.iter().map(String::as_str)),
                    present,
                })
            }
            _ => Ok(rows),
        }
    }
}
