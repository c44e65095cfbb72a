//! The leaderboard: judges, panels and trivial rules on the same labelled cases.
//!
//! Thresholds and maps come from the fit part, figures and comparisons from the rest, so that
//! nothing is compared on the cases it was fitted to. Contenders that can't be told apart
//! share a letter: their order on the board is chance.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::as_run::Ruled;
use super::baselines::{baselines, top_share};
use super::board_words::conclusion;
use super::calibrate::{Fitted, Work};
use super::certificate::Certificate;
use super::certified_alone::CertifiedAlone;
use super::contender::{Contender, ContenderKind, Field, Made, share_of};
use super::error::CalibrationError;
use super::figure::{Figure, Measured, UndefinedFigure, list_undefined};
use super::grouping::{Groups, Items};
use super::judge_metrics::{CERTIFIED, OperatingPoint, Series};
use super::labelled::LabelledCase;
use super::map::MINIMUM_LABELS;
use super::options::Options;
use super::pairwise::{
    Comparison, Difference, Measure, PairOptions, against, compare, letter, letters,
};
use super::panel_report::PanelSeries;
use super::positive::Positive;
use super::split::{Part, Split, SplitPlan, SplitReport};
use super::table::{Counts, JudgeColumn, JudgeKind, Table};
use crate::dataset::LabelSource;
use crate::stats::{Reason, Undefined};

/// Some of the judges as a panel of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanelOf {
    /// The panel's name.
    pub name: String,
    /// Its judges.
    pub judges: Vec<String>,
    /// What the panel decided itself, where it ran.
    pub ruled: Option<usize>,
}

/// What is asked of a leaderboard.
#[derive(Clone, Debug, Default)]
pub struct LeaderboardOptions {
    /// Split, thresholds, intervals.
    pub calibration: Options,
    /// What orders and groups the board.
    pub by: Measure,
}

/// Error rate of all comparisons of a measure together.
const ALPHA: f64 = 0.05;

/// One line of the board.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The contender.
    pub name: String,
    /// What it is.
    pub kind: ContenderKind,
    /// Letters; contenders that share one can't be told apart. Empty for baselines.
    pub letters: Vec<String>,
    /// Cases with a score.
    pub n: u64,
    /// When it accepts. A `certified` threshold is strict by promise: by agreement such a row is
    /// ranked against none that stand at another kind.
    pub operating_point: Option<OperatingPoint>,
    /// Of a row at its certified threshold, the row of the same scores without the promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_promise: Option<String>,
    /// Share of decisions that are right: accuracy.
    pub agreement: Measured<Figure>,
    /// Mean of its two rates.
    pub balanced_accuracy: Measured<Figure>,
    /// Cohen's kappa of decision and truth.
    pub cohen_kappa: Measured<Figure>,
    /// Mean of score minus label.
    pub bias: Measured<Figure>,
    /// Mean distance of score and label.
    pub mae: Measured<Figure>,
    /// P(accepted | bad).
    pub false_positive_rate: Measured<Figure>,
    /// P(not accepted | good).
    pub false_negative_rate: Measured<Figure>,
    /// P(accepted | good).
    pub true_positive_rate: Measured<Figure>,
    /// P(not accepted | bad).
    pub true_negative_rate: Measured<Figure>,
    /// P(bad | accepted).
    pub false_acceptance_share: Measured<Figure>,
    /// Area under its curve.
    pub auc: Measured<Figure>,
    /// Rank correlation of score and label.
    pub spearman: Measured<Figure>,
    /// US dollars a case.
    pub cost_usd: Measured<Figure>,
    /// Milliseconds a judgement; of a panel that ran, those of its slowest judge.
    pub latency_ms: Measured<Figure>,
    /// Share of the cases without a score.
    pub unscored: Measured<Figure>,
}

impl Row {
    /// Leaves of the figures that labels give the agreement alone: with a handful of labels the
    /// others describe those cases and nothing else.
    fn only_agreement(&mut self) {
        for figure in [
            &mut self.balanced_accuracy,
            &mut self.cohen_kappa,
            &mut self.bias,
            &mut self.mae,
            &mut self.false_positive_rate,
            &mut self.false_negative_rate,
            &mut self.true_positive_rate,
            &mut self.true_negative_rate,
            &mut self.false_acceptance_share,
            &mut self.auc,
            &mut self.spearman,
        ] {
            if figure.value().is_some() {
                *figure = Measured::undefined(Reason::TooFewValues);
            }
        }
    }

    /// At which kind of threshold it stands: `certified`, `declared`, `fitted`, `binary` (its
    /// positive class) or `majority`; `None` for baselines, and where nothing could be fitted.
    #[must_use]
    pub fn threshold_kind(&self) -> Option<&'static str> {
        self.operating_point.as_ref().map(|point| point.origin)
    }

    /// Whether its threshold keeps a promise and so gives up agreement.
    #[must_use]
    pub fn is_certified(&self) -> bool {
        self.threshold_kind() == Some(CERTIFIED)
    }
}

/// Everything that a comparison says.
#[derive(Clone, Debug, Serialize)]
pub struct Leaderboard {
    /// Version of this form.
    pub version: u32,
    /// `leaderboard`, or `agreement_with_a_model` where labels are a model's.
    pub kind: &'static str,
    /// The judgements' criterion.
    pub criterion: String,
    /// Which labels are good.
    pub positive: Positive,
    /// What was joined and what was left over.
    pub counts: Counts,
    /// Which part the figures stand on: `certify`, or `all` without a split.
    pub part: &'static str,
    /// The split.
    pub split: SplitReport,
    /// What orders and groups the board.
    pub by: Measure,
    /// What to conclude.
    pub conclusion: String,
    /// The board, the best first, baselines last.
    pub rows: Vec<Row>,
    /// All pairs of judges and panels, by each measure.
    pub comparisons: Vec<Comparison>,
    /// The best trivial rule.
    pub best_baseline: String,
    /// Each judge and panel against it.
    pub against_baseline: Vec<Difference>,
    /// Each judge with a threshold certified for it alone, and the panels with theirs.
    pub certified: Vec<CertifiedAlone>,
    /// What to know before trusting the figures.
    pub warnings: Vec<String>,
    /// The row that limits are about, where none is named.
    pub subject: String,
}

impl Leaderboard {
    /// The report as JSON, with every undefined figure listed in `undefined`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut report = serde_json::to_value(self).unwrap_or(Value::Null);
        let undefined: Vec<UndefinedFigure> = list_undefined(&report);
        if let (Some(map), Ok(list)) = (report.as_object_mut(), serde_json::to_value(undefined)) {
            map.insert("undefined".to_owned(), list);
        }
        report
    }

    /// The row of a contender.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }
}

/// Compares the judges of a table, and panels of them. Without `panels` all judges are one.
///
/// # Errors
/// For options outside their range, a split that can't be made, and a panel whose judge is
/// not there or whose name another contender has.
pub fn leaderboard(
    table: &Table,
    groups: &Groups,
    items: &Items,
    group: &str,
    panels: &[PanelOf],
    ruled: &[Ruled],
    options: &LeaderboardOptions,
) -> Result<Leaderboard, CalibrationError> {
    let own = &options.calibration;
    own.check()?;
    let split = Split::make(own.split, own.seed, table.cases(), groups, items, group)?;
    let report = split.report.clone();
    let work = Work { table, groups, items, options: own, split };
    let (fit, rows) = (work.split.rows(Part::Fit), work.split.rows(Part::Certify));
    let field = Field { cases: table.cases(), groups, rows: &rows, intervals: own.intervals() };
    let fitted = work.fit(&fit);
    let mut warnings = work.warnings(&fitted);
    let mut contenders: Vec<Contender> =
        (0..table.judges.len()).map(|j| judge(&work, field, j, &fitted)).collect();
    let whole = [PanelOf {
        name: "panel".to_owned(),
        judges: table.judges.iter().map(|judge| judge.name.clone()).collect(),
        ruled: None,
    }];
    let panels = if panels.is_empty() && table.judges.len() > 1 { &whole } else { panels };
    let mut subject = contenders.first().map(|own| own.name.clone()).unwrap_or_default();
    let mut certified = work.certified_alone(&rows);
    let mut twins: HashMap<String, String> = HashMap::new();
    for (place, panel) in panels.iter().enumerate() {
        let seated = seated(table, panel)?;
        let PanelContenders { all: own, certificate, twin } =
            panel_contenders(&work, field, panel, &seated, ruled, &mut warnings);
        certified.extend(CertifiedAlone::of(&panel.name, seated.len() as u64, 1, certificate));
        twins.extend(twin);
        if place == 0
            && let Some(first) = own.first()
        {
            subject.clone_from(&first.name);
        }
        contenders.extend(own);
    }
    unique(&contenders)?;
    if own.split == SplitPlan::None {
        warnings.push(
            "no split: fitted thresholds and maps are compared on the cases they were fitted to, which flatters them"
                .to_owned(),
        );
    }
    let lengths = work.lengths(&rows);
    let trivial = trivial(field, &lengths);
    let facing: Vec<&Contender> = contenders.iter().collect();
    let decided: Vec<&Contender> =
        facing.iter().filter(|own| !own.is_certified()).copied().collect();
    let case_groups = field.group();
    let good: Vec<bool> = rows.iter().map(|&i| table.cases()[i].good).collect();
    let resampling = own.resampling();
    let pair_options = PairOptions { alpha: ALPHA, resampling };
    let comparisons: Vec<Comparison> = Measure::ALL
        .iter()
        .map(|measure| {
            // Decisions at a promised threshold face none at another kind, and one panel's
            // scores are compared once.
            let like: Vec<&Contender> = match measure {
                Measure::Agreement => decided.clone(),
                Measure::Auc | Measure::AbsoluteError => {
                    let twin = |own: &&&Contender| twins.values().any(|name| *name == own.name);
                    facing.iter().filter(|own| !twin(own)).copied().collect()
                }
            };
            compare(*measure, &like, &case_groups, &good, pair_options)
        })
        .collect();
    let best = best_baseline(&trivial);
    let against_baseline =
        best.map(|best| against(&decided, best, &case_groups, pair_options)).unwrap_or_default();
    let mut named = named_letters(&comparisons, options.by, &mut warnings);
    if options.by != Measure::Agreement {
        for (own, twin) in &twins {
            named.extend(named.get(own).cloned().map(|letters| (twin.clone(), letters)));
        }
    }
    let mut board: Vec<Row> = contenders
        .iter()
        .map(|own| Row { without_promise: twins.get(&own.name).cloned(), ..row(own, &named) })
        .collect();
    board.sort_by(|a, b| order(options.by, a, b));
    board.extend(trivial.iter().map(|own| row(own, &HashMap::new())));
    board.push(random(field, own));
    if table.cases().len() < MINIMUM_LABELS {
        board.iter_mut().for_each(Row::only_agreement);
    }
    let by_model = table.labels.sources.contains_key(&LabelSource::Model);
    let mut found = Leaderboard {
        version: 1,
        kind: if by_model { "agreement_with_a_model" } else { "leaderboard" },
        criterion: table.criterion.clone(),
        positive: table.positive.clone(),
        counts: table.counts.clone(),
        part: if own.split == SplitPlan::None { "all" } else { "certify" },
        split: report,
        by: options.by,
        conclusion: String::new(),
        rows: board,
        comparisons,
        best_baseline: best.map(|best| best.name.clone()).unwrap_or_default(),
        against_baseline,
        certified,
        warnings,
        subject,
    };
    found.conclusion = conclusion(&found);
    Ok(found)
}

fn judge(work: &Work<'_>, field: Field<'_>, j: usize, fitted: &Fitted) -> Contender {
    let column = &work.table.judges[j];
    let (series, scored) = work.judge_series(j, fitted, field.rows);
    let level = field.intervals.level;
    Contender::new(
        field,
        Made {
            name: column.name.clone(),
            kind: ContenderKind::Judge,
            scores: column.kind,
            point: fitted.points[j].clone(),
            series,
            scored,
            cost_usd: column.cost_of_a_case(level),
            latency_ms: column.latencies.estimate(level).into(),
        },
    )
}

/// Positions of a panel's judges.
fn seated(table: &Table, panel: &PanelOf) -> Result<Vec<usize>, CalibrationError> {
    let place = |name: &String| {
        table.judges.iter().position(|judge| judge.name == *name).ok_or_else(|| {
            let present: Vec<String> =
                table.judges.iter().map(|judge| judge.name.clone()).collect();
            CalibrationError::UnknownJudge {
                judge: name.clone(),
                suggestion: crate::config::nearest(name, present.iter().map(String::as_str)),
                present,
            }
        })
    };
    panel.judges.iter().map(place).collect()
}

fn unique(contenders: &[Contender]) -> Result<(), CalibrationError> {
    let mut seen = std::collections::HashSet::new();
    for own in contenders {
        if !seen.insert(&own.name) {
            return Err(CalibrationError::ContenderTwice { name: own.name.clone() });
        }
    }
    Ok(())
}

/// A panel's contenders: as it ran, calibrated, and as its plain median; the first is the one
/// that limits are about.
struct PanelContenders {
    all: Vec<Contender>,
    certificate: Certificate,
    /// The contender at its certified threshold, and the same without the promise.
    twin: Option<(String, String)>,
}

fn panel_contenders(
    work: &Work<'_>,
    field: Field<'_>,
    panel: &PanelOf,
    seated: &[usize],
    ruled: &[Ruled],
    warnings: &mut Vec<String>,
) -> PanelContenders {
    let all = seated.len() == work.table.judges.len()
        && seated.iter().enumerate().all(|(place, j)| place == *j);
    let table =
        if all { Cow::Borrowed(work.table) } else { Cow::Owned(work.table.with_judges(seated)) };
    let own = Work {
        table: &table,
        groups: work.groups,
        items: work.items,
        options: work.options,
        split: work.split.clone(),
    };
    let fit = own.split.rows(Part::Fit);
    let fitted = own.fit(&fit);
    let model = own.panel_model(&fitted, &fit, warnings);
    let by_model = table.labels.sources.contains_key(&LabelSource::Model);
    let certificate = own.certificate(&model, field.rows, by_model);
    let kind = own.panel_kind();
    let cost_usd = summed(&table.judges, field.intervals.level);
    let unknown = || Measured::undefined(Reason::NoData);
    let ran = panel.ruled.and_then(|place| ruled.get(place));
    let mut found = Vec::new();
    if let Some(ran) = ran {
        found.push(as_run(&own, field, &panel.name, ran));
    }
    let PanelSeries { series, decided, point, .. } =
        own.panel_series(&model, &fitted, &fit, field.rows, &certificate);
    let made = |name: String, series, scored, point| Made {
        name,
        kind: ContenderKind::Panel,
        scores: kind,
        point,
        series,
        scored,
        cost_usd: cost_usd.clone(),
        latency_ms: unknown(),
    };
    let calibrated =
        if ran.is_some() { format!("{} (calibrated)", panel.name) } else { panel.name.clone() };
    let mut twin = None;
    if certificate.certified_key().is_some() {
        let refused = Certificate::refused(own.options.certificate(), "not asked for");
        let PanelSeries { series, decided, point, .. } =
            own.panel_series(&model, &fitted, &fit, field.rows, &refused);
        if let Some(point) = point {
            let name = format!("{calibrated} ({} threshold)", point.origin);
            twin = Some((calibrated.clone(), name.clone()));
            found.push(Contender::new(field, made(name, series, decided, Some(point))));
        }
    }
    let place = usize::from(ran.is_some());
    found.insert(place, Contender::new(field, made(calibrated, series, decided, point)));
    if ran.is_none() {
        let (series, scored, point) = own.plain_series(field.rows, &fit, model.quorum, &fitted);
        let name = format!("{} (plain median)", panel.name);
        found.push(Contender::new(field, made(name, series, scored, point)));
    }
    PanelContenders { all: found, certificate, twin }
}

/// What a panel decided itself, as a contender.
fn as_run(work: &Work<'_>, field: Field<'_>, name: &str, ran: &Ruled) -> Contender {
    let (series, scored, point) = work.as_run(ran, field.rows);
    let level = field.intervals.level;
    Contender::new(
        field,
        Made {
            name: name.to_owned(),
            kind: ContenderKind::Panel,
            scores: JudgeKind::Graded,
            point: Some(point),
            series,
            scored,
            cost_usd: ran.costs.estimate(level).into(),
            latency_ms: ran.latencies.estimate(level).into(),
        },
    )
}

/// The sum of means over judges. Their errors may go together, so the margins are added.
fn summed(judges: &[JudgeColumn], level: f64) -> Measured<Figure> {
    let mut sum: Option<Figure> = None;
    for judge in judges {
        let own = match judge.cost_of_a_case(level).0 {
            Ok(own) => own,
            Err(undefined) => return Measured(Err(undefined)),
        };
        sum = Some(match sum {
            None => own,
            Some(before) => Figure {
                estimate: before.estimate + own.estimate,
                lower: before.lower + own.lower,
                upper: before.upper + own.upper,
                n: before.n.min(own.n),
                ..before
            },
        });
    }
    Measured(sum.ok_or(Undefined { reason: Reason::NoData }))
}

/// Rules that look at no content, as contenders. By length only where every case has one.
fn trivial(field: Field<'_>, lengths: &[Option<u64>]) -> Vec<Contender> {
    let cases: Vec<&LabelledCase> = field.rows.iter().map(|&i| &field.cases[i]).collect();
    let good: Vec<bool> = cases.iter().map(|case| case.good).collect();
    let n = good.len();
    let known: Option<Vec<f64>> = lengths.iter().map(|l| l.map(|l| l as f64)).collect();
    let mut rules: Vec<(&str, Vec<f64>, Vec<bool>)> = vec![
        ("accept_all", vec![1.0; n], vec![true; n]),
        ("reject_all", vec![0.0; n], vec![false; n]),
    ];
    if let Some(known) = known.filter(|known| !known.is_empty()) {
        for (name, sign) in [("longest", 1.0), ("shortest", -1.0)] {
            let scores: Vec<f64> = known.iter().map(|length| sign * length).collect();
            let accepted = top_share(&scores, &good);
            rules.push((name, scores, accepted));
        }
    }
    rules
        .into_iter()
        .map(|(name, score, accepted)| {
            let series = Series {
                target: good.iter().map(|good| f64::from(u8::from(*good))).collect(),
                good: good.clone(),
                accepted: Some(accepted),
                group: field.group(),
                comparable: false,
                rank: Vec::new(),
                score,
            };
            let unknown = || Measured::undefined(Reason::NoData);
            Contender::new(
                field,
                Made {
                    name: name.to_owned(),
                    kind: ContenderKind::Baseline,
                    scores: JudgeKind::Binary,
                    point: None,
                    series,
                    scored: field.rows.to_vec(),
                    cost_usd: unknown(),
                    latency_ms: unknown(),
                },
            )
        })
        .collect()
}

fn best_baseline(trivial: &[Contender]) -> Option<&Contender> {
    let agreement =
        |own: &Contender| own.metrics.accuracy.value().copied().unwrap_or(f64::NEG_INFINITY);
    let mut best: Option<&Contender> = None;
    for own in trivial {
        if best.is_none_or(|best| agreement(own) > agreement(best)) {
            best = Some(own);
        }
    }
    best
}

/// Accepting by the base rate: what is expected of it.
fn random(field: Field<'_>, options: &Options) -> Row {
    let cases: Vec<&LabelledCase> = field.rows.iter().map(|&i| &field.cases[i]).collect();
    let groups: Vec<usize> = field.rows.iter().map(|&i| field.groups.of_case[i]).collect();
    let resampling = options.resampling();
    let expected = baselines(&cases, &groups, &[], resampling).swap_remove(2);
    let base: Measured<Figure> =
        share_of(groups.iter().zip(&cases).map(|(group, case)| (*group, case.good)), resampling);
    let with = |value: &Measured, figure: &dyn Fn(Figure, f64) -> Figure| {
        Measured(value.0.and_then(|value| base.0.map(|base| figure(base, value))))
    };
    let base_rate = |base: Figure, _| base;
    let flipped = |base: Figure, value: f64| Figure {
        estimate: value,
        lower: 1.0 - base.upper,
        upper: 1.0 - base.lower,
        ..base
    };
    // Known without data.
    let exactly =
        |base: Figure, value: f64| Figure { estimate: value, lower: value, upper: value, ..base };
    let complement = |value: &Measured| Measured(value.0.map(|value| 1.0 - value));
    let unknown = || Measured::undefined(Reason::NoData);
    Row {
        name: "random".to_owned(),
        kind: ContenderKind::Baseline,
        letters: Vec::new(),
        n: cases.len() as u64,
        operating_point: None,
        without_promise: None,
        agreement: expected.accuracy.clone(),
        balanced_accuracy: with(&expected.balanced_accuracy, &exactly),
        cohen_kappa: with(&Measured(expected.auc.0.map(|_| 0.0)), &exactly),
        bias: unknown(),
        mae: unknown(),
        false_positive_rate: with(&expected.false_positive_rate, &base_rate),
        false_negative_rate: with(&complement(&expected.true_positive_rate), &flipped),
        true_positive_rate: with(&expected.true_positive_rate, &base_rate),
        true_negative_rate: with(&complement(&expected.false_positive_rate), &flipped),
        false_acceptance_share: with(&expected.false_acceptance_share, &flipped),
        auc: with(&expected.auc, &exactly),
        spearman: unknown(),
        cost_usd: unknown(),
        latency_ms: unknown(),
        unscored: with(&Measured(Ok(0.0)), &exactly),
    }
}

fn row(own: &Contender, named: &HashMap<String, Vec<String>>) -> Row {
    let metrics = &own.metrics;
    let interval = |name: &str| {
        metrics.intervals.get(name).cloned().unwrap_or(Measured::undefined(Reason::NoData))
    };
    Row {
        name: own.name.clone(),
        kind: own.kind,
        letters: named.get(&own.name).cloned().unwrap_or_default(),
        n: metrics.n,
        operating_point: metrics.operating_point.clone(),
        without_promise: None,
        agreement: interval("accuracy"),
        balanced_accuracy: interval("balanced_accuracy"),
        cohen_kappa: interval("cohen_kappa"),
        bias: metrics.bias.clone(),
        mae: interval("mae"),
        false_positive_rate: metrics.false_positive_rate.clone(),
        false_negative_rate: metrics.false_negative_rate.clone(),
        true_positive_rate: metrics.true_positive_rate.clone(),
        true_negative_rate: metrics.true_negative_rate.clone(),
        false_acceptance_share: metrics.false_acceptance_share.clone(),
        auc: interval("auc"),
        spearman: interval("spearman"),
        cost_usd: own.cost_usd.clone(),
        latency_ms: own.latency_ms.clone(),
        unscored: own.unscored.clone(),
    }
}

/// The figure that a measure orders by, larger being better.
pub(super) fn merit(by: Measure, row: &Row) -> Option<f64> {
    let figure = match by {
        Measure::Agreement => &row.agreement,
        Measure::Auc => &row.auc,
        Measure::AbsoluteError => &row.mae,
    };
    let estimate = figure.value()?.estimate;
    Some(if by == Measure::AbsoluteError { -estimate } else { estimate })
}

fn order(by: Measure, a: &Row, b: &Row) -> std::cmp::Ordering {
    let key = |row| merit(by, row).unwrap_or(f64::NEG_INFINITY);
    // At a promised threshold agreement is no rank: such rows stand below, in their own order.
    let aside = |row: &Row| by == Measure::Agreement && row.is_certified();
    aside(a)
        .cmp(&aside(b))
        .then_with(|| key(b).total_cmp(&key(a)))
        .then_with(|| a.name.cmp(&b.name))
}

/// Whether a difference is told from none.
#[must_use]
pub fn is_told(difference: &Difference) -> bool {
    difference.p_holm.value().is_some_and(|p| *p <= ALPHA)
}

fn named_letters(
    comparisons: &[Comparison],
    by: Measure,
    warnings: &mut Vec<String>,
) -> HashMap<String, Vec<String>> {
    let Some(own) = comparisons.iter().find(|own| own.measure == by) else {
        return HashMap::new();
    };
    let mut names: Vec<&str> = Vec::new();
    for difference in &own.differences {
        for name in [&difference.first, &difference.second] {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    // The best first, so that it holds the first letter: by its wins over the others.
    let sign = if by == Measure::AbsoluteError { -1.0 } else { 1.0 };
    let mut wins: HashMap<&str, f64> = HashMap::new();
    for own in &own.differences {
        if let Some(figure) = own.difference.value() {
            *wins.entry(&own.first).or_default() += sign * figure.estimate;
            *wins.entry(&own.second).or_default() -= sign * figure.estimate;
        }
    }
    let won = |name: &str| wins.get(name).copied().unwrap_or_default();
    names.sort_by(|a, b| won(b).total_cmp(&won(a)).then_with(|| a.cmp(b)));
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(i, n)| (*n, i)).collect();
    let told: std::collections::HashSet<(usize, usize)> = own
        .differences
        .iter()
        .filter(|own| is_told(own))
        .map(|own| {
            let (a, b) = (places[own.first.as_str()], places[own.second.as_str()]);
            (a.min(b), a.max(b))
        })
        .collect();
    let Some(held) = letters(names.len(), |a, b| told.contains(&(a.min(b), a.max(b)))) else {
        warnings.push(
            "the contenders overlap in too many ways for letters: see `comparisons` in `--json`"
                .to_owned(),
        );
        return HashMap::new();
    };
    names
        .iter()
        .zip(held)
        .map(|(name, held)| ((*name).to_owned(), held.into_iter().map(letter).collect()))
        .collect()
}

#[cfg(test)]
#[path = "leaderboard_tests.rs"]
mod tests;
