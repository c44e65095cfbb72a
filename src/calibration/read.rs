//! Reading: files, or a stored run, as a table with its groups.
//!
//! Everything that calibration looks at passes here once; nothing is read twice, and no row
//! leaves without being counted.

use std::collections::BTreeMap;

use serde_json::Value;

use super::as_run::Ruled;
use super::error::CalibrationError;
use super::group_hint;
use super::grouping::{Grouping, Groups, Items};
use super::labelled::{Labels, resolve_criterion};
use super::leaderboard::PanelOf;
use super::positive::Positive;
use super::split::sealed_cases;
use super::table::{Orders, Table, TableOptions};
use super::table_builder::{Measurement, TableBuilder};
use crate::dataset::{
    FieldMap, JudgementReader, LabelOptions, LabelSet, ReadOptions, RowKind, Source,
    read_inline_labels, read_labels,
};
use crate::judge::sources::{SCORE_SOURCE, ScoreSources};
use crate::ruling::{Decision, Ruling};
use crate::run::rows::{each_ruling, each_verdict};
use crate::score::Scale;
use crate::store::{RunRecord, Store};
use crate::verdict::Status;

/// Where judgements come from.
pub enum Judgements<'a> {
    /// A file in long form.
    File(&'a Source),
    /// Stored runs: the store and their ids. Of several, each judge is named
    /// `PANEL/JUDGE`.
    Runs(&'a Store, &'a [String]),
}

/// What is read, and how.
pub struct Inputs<'a> {
    /// The judgements.
    pub judgements: Judgements<'a>,
    /// Labels in long form; those in the rows of the cases where `None`.
    pub labels: Option<&'a Source>,
    /// The cases.
    pub items: Option<&'a Source>,
    /// The judgements' criterion; the only one there is where `None`.
    pub criterion: Option<&'a str>,
    /// The labels' criterion, where it is another.
    pub label_criterion: Option<&'a str>,
    /// Which labels are good.
    pub positive: Positive,
    /// What a group is.
    pub grouping: Grouping,
    /// Presentations of pairs.
    pub orders: Orders,
    /// Scales of judges by name; the empty name is every other judge.
    pub judge_scales: BTreeMap<String, Scale>,
    /// Whether graded scores of a run without a declared scale are brought onto the labels'
    /// one, as in [`TableOptions::scale_units`].
    pub scale_units: bool,
    /// The judges to use; all of them where empty.
    pub judges: Vec<String>,
    /// Whether judges of a run that have no vote on its panel are left out, unless they are
    /// named.
    pub voters_only: bool,
    /// Whether judged cases without a label are kept, as in
    /// [`TableOptions::keep_unlabelled`].
    pub keep_unlabelled: bool,
    /// How labels and judgements are read.
    pub options: LabelOptions,
    /// How cases are read.
    pub case_options: ReadOptions,
}

/// A table with its groups.
pub struct Joined {
    /// The table.
    pub table: Table,
    /// The cases' facts.
    pub items: Items,
    /// The groups.
    pub groups: Groups,
    /// What a group is, in words.
    pub group: String,
    /// What to know of the judgements before trusting what follows from them.
    pub warnings: Vec<String>,
    /// What was taken as meant, and nobody said.
    pub notes: Vec<String>,
}

impl Joined {
    /// The same without the sealed part, which nothing may see.
    ///
    /// # Errors
    /// When nothing is sealed, or everything.
    pub fn without_sealed(self, share: f64) -> Result<Self, CalibrationError> {
        let sealed = sealed_cases(share, &self.groups, &self.items);
        let rows: Vec<usize> = (0..sealed.len()).filter(|&i| !sealed[i]).collect();
        if rows.is_empty() || rows.len() == sealed.len() {
            return Err(CalibrationError::SealEmpty {
                cases: (sealed.len() - rows.len()) as u64,
                open: rows.len() as u64,
            });
        }
        let name = |&i: &usize| self.groups.names[self.groups.of_case[i]].clone();
        Ok(Self {
            table: self.table.select(&rows),
            groups: Groups::numbered(rows.iter().map(name).collect()),
            items: Items {
                facts: rows.iter().map(|&i| self.items.facts[i].clone()).collect(),
                present: self.items.present,
                group_hint: self.items.group_hint,
            },
            group: self.group,
            warnings: self.warnings,
            notes: self.notes,
        })
    }
}

impl Inputs<'_> {
    /// Reads everything and joins it.
    ///
    /// # Errors
    /// Those of the readers, and of [`TableBuilder`], [`Groups::assign`] and [`Labels::collect`].
    pub fn join(self) -> Result<Joined, CalibrationError> {
        let map = &self.options.map;
        let mut kinds = Vec::new();
        if matches!(self.judgements, Judgements::File(_)) {
            kinds.push(RowKind::Judgement);
        }
        kinds.extend(self.labels.map(|_| RowKind::Label));
        kinds.extend(self.items.map(|_| RowKind::Case));
        map.check(&kinds)?;
        let of = |kind| LabelOptions { map: map.only(kind), ..self.options.clone() };
        let case_options = if self.case_options.map == FieldMap::default() {
            ReadOptions { map: map.only(RowKind::Case), ..self.case_options.clone() }
        } else {
            self.case_options.clone()
        };
        let set = self.label_set(&of(RowKind::Label), &case_options)?;
        if let (true, None, Some(source)) = (set.labels.is_empty(), self.labels, self.items) {
            return Err(CalibrationError::NoLabels { path: source.name().to_owned() });
        }
        let named = self.label_criterion.or(self.criterion);
        let label_criterion = resolve_criterion(&set, named)?;
        let labels = Labels::collect(&set, &label_criterion, &self.positive)?;
        let criterion = self.criterion.map_or(label_criterion, str::to_owned);
        let options = TableOptions {
            criterion: criterion.clone(),
            orders: self.orders,
            judge_scales: self.judge_scales.clone(),
            judges: self.judges.clone(),
            unit_scores: matches!(self.judgements, Judgements::Runs(..)),
            scale_units: self.scale_units,
            keep_unlabelled: self.keep_unlabelled,
        };
        let mut builder = TableBuilder::new(labels, self.positive.clone(), options);
        let mut sources = Sources::new();
        let mut warnings: Vec<String> = Vec::new();
        match self.judgements {
            Judgements::File(source) => {
                let options = of(RowKind::Judgement);
                read_file(&mut builder, source, &options, &mut sources)?;
            }
            Judgements::Runs(store, runs) => {
                for (run, prefix) in named_runs(store, runs)? {
                    for judge in voteless(&run.panel).iter().filter(|_| self.voters_only) {
                        let name = format!("{prefix}{judge}");
                        if self.judges.is_empty() {
                            builder.without(&name);
                            warnings.push(format!(
                                "judge `{name}` has no vote on its panel (`report_only` or `weight = 0`) and is left out: `--judge` names those to keep"
                            ));
                        }
                    }
                    read_run(&mut builder, store, &run, &prefix, &criterion, &mut sources)?;
                }
            }
        }
        sources.retain(|judge, _| self.judges.is_empty() || self.judges.contains(judge));
        warnings.extend(sources.iter().filter_map(|(judge, s)| s.warning(judge)));
        let table = builder.finish()?;
        if table.labels.words.is_empty() {
            let ratings = table.cases().iter().flat_map(|case| &case.ratings);
            warnings.extend(self.positive.doubt(ratings.map(|rating| rating.value)));
        }
        let automatic = matches!(self.grouping, Grouping::Automatic);
        let mut items = match self.items {
            Some(source) => Items::read(source, &case_options, table.cases(), &self.grouping)?,
            None => Items::absent(table.cases().len()),
        };
        let groups = Groups::assign(table.cases(), &items, &self.grouping)?;
        if !automatic || groups.len() < groups.of_case.len() {
            items.group_hint = None;
        } else if items.group_hint.is_none() {
            items.group_hint = group_hint::of_ids(table.cases());
        }
        let group = self.grouping.describe();
        let of_run = matches!(self.judgements, Judgements::Runs(..));
        let scaled = of_run && self.scale_units && self.judge_scales.is_empty();
        let mut notes = brought(&table, scaled);
        notes.extend(several_labels(&table));
        Ok(Joined { table, items, groups, group, warnings, notes })
    }

    fn label_set(
        &self,
        options: &LabelOptions,
        case_options: &ReadOptions,
    ) -> Result<LabelSet, CalibrationError> {
        match (self.labels, self.items) {
            (Some(labels), _) => Ok(read_labels(labels, options)?),
            (None, Some(items)) => Ok(read_inline_labels(items, case_options)?),
            (None, None) => Err(CalibrationError::ItemsNeeded { option: "without `--labels`, " }),
        }
    }
}

/// Says how several labels of a case become the truth about it.
fn several_labels(table: &Table) -> Option<String> {
    let n = table.cases().iter().filter(|case| case.ratings.len() > 1).count();
    let rule = &table.positive;
    (n > 0).then(|| match rule {
        Positive::AtLeast(_) => format!(
            "{n} of {} cases have several labels: a case is good where their mean is {rule}",
            table.cases().len()
        ),
        Positive::OneOf(_) => format!(
            "{n} of {} cases have several labels: a case is good where more than half of them are {rule}, and left out where they are evenly split",
            table.cases().len()
        ),
    })
}

/// Says that scores of a run were brought onto the labels' scale.
fn brought(table: &Table, automatic: bool) -> Vec<String> {
    let Some(scale) = table.labels.scale.scale.filter(|_| automatic) else { return Vec::new() };
    let unit = [scale.low(), scale.high()];
    if unit == [0.0, 1.0] || !table.judges.iter().any(|judge| judge.unit == Some(unit)) {
        return Vec::new();
    }
    vec![format!(
        "the run's scores in [0,1] are brought onto the labels' scale {scale}, a score being the place on it; `--judge-scale` says otherwise"
    )]
}

/// What each judge's scores were read from.
type Sources = BTreeMap<String, ScoreSources>;

fn read_file(
    builder: &mut TableBuilder,
    source: &Source,
    options: &LabelOptions,
    sources: &mut Sources,
) -> Result<(), CalibrationError> {
    let mut reader = JudgementReader::open(source, options)?;
    while let Some(judgement) = reader.next() {
        let judgement = judgement?;
        if judgement.status == Status::Ok
            && let Some(note) = noted(judgement.metadata.get("notes"))
        {
            sources.entry(judgement.judge.clone()).or_default().add(Some(&note));
        }
        if let Some(Value::String(model)) = judgement.metadata.get("model_returned")
            && builder.uses(&judgement.judge)
        {
            builder.observe_model(&judgement.judge, model);
        }
        builder.judgement(&judgement, reader.line())?;
    }
    Ok(())
}

/// What an exported verdict's score was read from; a CSV cell holds its notes as text.
fn noted(notes: Option<&Value>) -> Option<Value> {
    match notes? {
        Value::String(text) => serde_json::from_str::<Value>(text).ok()?.get(SCORE_SOURCE).cloned(),
        notes => notes.get(SCORE_SOURCE).cloned(),
    }
}

/// The verdicts of a run. `overall` is the verdict's score; another criterion is the score
/// that the judge gave it. Both are in [0,1], so that a scale may be declared as `unit`.
fn read_run(
    builder: &mut TableBuilder,
    store: &Store,
    run: &RunRecord,
    prefix: &str,
    criterion: &str,
    sources: &mut Sources,
) -> Result<(), CalibrationError> {
    let wanted = builder.wanted();
    let inverted = inverted(&run.panel);
    each_verdict(store, run.number, |case, verdict| {
        let judge = format!("{prefix}{}", verdict.judge);
        if (!wanted.is_empty() && !wanted.contains(&judge)) || !builder.uses(&judge) {
            builder.leave_out(&judge);
            return Ok(());
        }
        if verdict.status == Status::Ok
            && let Some(note) = verdict.notes.get(SCORE_SOURCE)
        {
            sources.entry(judge.clone()).or_default().add(Some(note));
        }
        if let Some(model) = &verdict.model_returned {
            builder.observe_model(&judge, model);
        }
        builder.observe_seat(&judge, inverted.contains(&verdict.judge), verdict.sample + 1);
        let score = verdict.score_of(criterion);
        builder.measurement(Measurement {
            case,
            judge: &judge,
            status: verdict.status,
            score: score.map(crate::score::Score::get),
            order: None,
            sample: verdict.sample,
            line: 0,
        })?;
        builder.observe(&judge, &verdict.fingerprint, verdict.cost_usd, verdict.latency_ms);
        Ok(())
    })
}

/// The judges that have no vote on a run's panel, from its stored configuration.
fn voteless(panel: &str) -> Vec<String> {
    let Ok(panel) = serde_json::from_str::<Value>(panel) else { return Vec::new() };
    let judges = panel.get("judge").and_then(Value::as_array).into_iter().flatten();
    judges
        .filter(|judge| {
            judge.get("report_only").and_then(Value::as_bool) == Some(true)
                || judge.get("weight").and_then(Value::as_f64) == Some(0.0)
        })
        .filter_map(|judge| judge.get("name").and_then(Value::as_str).map(str::to_owned))
        .collect()
}

/// The judges whose votes a run's panel turned round, from its stored configuration.
fn inverted(panel: &str) -> Vec<String> {
    let Ok(panel) = serde_json::from_str::<Value>(panel) else { return Vec::new() };
    let judges = panel.get("judge").and_then(Value::as_array).into_iter().flatten();
    judges
        .filter(|judge| judge.get("invert").and_then(Value::as_bool) == Some(true))
        .filter_map(|judge| judge.get("name").and_then(Value::as_str).map(str::to_owned))
        .collect()
}

/// Runs with what their judges' names begin with: nothing for a single one, else the panel's
/// name, and the run's id too where panels share a name.
///
/// # Errors
/// When a run is not there, or is named twice.
pub fn named_runs(
    store: &Store,
    ids: &[String],
) -> Result<Vec<(RunRecord, String)>, CalibrationError> {
    let mut runs: Vec<RunRecord> = Vec::with_capacity(ids.len());
    for id in ids {
        let run = store.run(id)?;
        if runs.iter().any(|own| own.id == run.id) {
            return Err(CalibrationError::RunTwice { run: run.id });
        }
        runs.push(run);
    }
    let names: Vec<String> = runs
        .iter()
        .map(|run| {
            let same = runs.iter().filter(|own| own.panel_name == run.panel_name).count();
            if same > 1 { format!("{} {}", run.panel_name, run.id) } else { run.panel_name.clone() }
        })
        .collect();
    let several = runs.len() > 1;
    let prefix = |name: String| if several { format!("{name}/") } else { String::new() };
    Ok(runs.into_iter().zip(names.into_iter().map(prefix)).collect())
}

/// What the panels of runs decided, each as a panel of its judges.
///
/// # Errors
/// When a run can't be read.
pub fn ruled_panels(
    store: &Store,
    ids: &[String],
    table: &Table,
) -> Result<(Vec<PanelOf>, Vec<Ruled>), CalibrationError> {
    let (mut panels, mut all) = (Vec::new(), Vec::new());
    for (place, (run, prefix)) in named_runs(store, ids)?.into_iter().enumerate() {
        let mut ruled = Ruled::default();
        let mut seats: Vec<String> = Vec::new();
        each_ruling(store, run.number, |ruling| {
            ruled.add(&ruling);
            for vote in ruling.votes.iter().filter(|vote| vote.counted) {
                let name = format!("{prefix}{}", vote.judge);
                if !seats.contains(&name) {
                    seats.push(name);
                }
            }
            Ok::<(), CalibrationError>(())
        })?;
        // Of judges left out by `--judge`, the panel's ruling still stands on their votes.
        seats.retain(|seat| table.judges.iter().any(|judge| judge.name == *seat));
        let name = prefix.strip_suffix('/').map_or_else(|| run.panel_name.clone(), str::to_owned);
        let name = if table.judges.iter().any(|judge| judge.name == name) {
            format!("panel {name}")
        } else {
            name
        };
        panels.push(PanelOf { name, judges: seats, ruled: Some(place) });
        all.push(ruled);
    }
    Ok((panels, all))
}

impl Ruled {
    /// Adds what the panel said about one case.
    pub fn add(&mut self, ruling: &Ruling) {
        let accepted = match ruling.decision {
            Decision::Accept => Some(true),
            Decision::Reject => Some(false),
            Decision::Undecided => None,
        };
        let score = ruling.score.map(crate::score::Score::get);
        self.rulings.insert(ruling.case.clone(), (score, accepted));
        self.threshold = Some(ruling.threshold);
        let costs: Option<Vec<f64>> = ruling.verdicts.iter().map(|own| own.cost_usd).collect();
        if let Some(costs) = costs {
            self.costs.add(costs.iter().sum());
        }
        if let Some(longest) = ruling.verdicts.iter().map(|own| own.latency_ms).max() {
            self.latencies.add(longest as f64);
        }
    }
}
