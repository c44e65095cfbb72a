//! Calibrating: from a table of judgements and labels to everything that is said about them.
//!
//! The order is fixed: split, maps and thresholds from the fit part, figures and certificate
//! from the certify part. Nothing reads a label of the certify part before the model stands.

use std::collections::BTreeMap;

use super::baselines::baselines;
use super::certificate::Certificate;
use super::certified_alone::CertifiedAlone;
use super::error::CalibrationError;
use super::figure::{Figure, Measured};
use super::grouping::{Groups, Items};
use super::judge_metrics::{
    OperatingPoint, Series, judge_metrics, length_effect, repeats, series_of,
};
use super::label_noise::label_noise;
use super::labelled::{LabelledCase, Target};
use super::ledger::Looks;
use super::map::{FitData, FittedMap, MINIMUM_LABELS, Map, fit_map};
use super::operating_point::{accepts, operating_point};
use super::options::Options;
use super::panel::{PanelAggregate, PanelModel, target};
use super::profile::PartGroups;
use super::raters::{categories_kappa, raters};
use super::report::{
    Binding, BoundCertificate, Calibration, CategoryAgreement, JudgeReport, LabelReport,
    StatusesByClass,
};
use super::split::{Part, Split, SplitPlan};
use super::table::{JudgeColumn, JudgeKind, Table};
use crate::dataset::LabelSource;
use crate::stats::agreement::Weighting;
use crate::stats::interval::wilson;

/// Calibrates the judges and the panel of a table.
///
/// # Errors
/// For options outside their range, a split that can't be made, and a stack that can't be
/// fitted. Data that are merely too few give undefined figures and no certificate.
pub fn calibrate(
    table: &Table,
    groups: &Groups,
    items: &Items,
    group: &str,
    options: &Options,
) -> Result<Calibration, CalibrationError> {
    options.check()?;
    options.check_quorum(table.judges.len())?;
    let split = Split::make(options.split, options.seed, table.cases(), groups, items, group)?;
    let work = Work { table, groups, items, options, split };
    Ok(work.run())
}

/// Only the panel and its certificate, without describing judges, raters or labels: the same
/// numbers as [`calibrate`] gives them, for simulations and services.
///
/// # Errors
/// As [`calibrate`].
pub fn certify(
    table: &Table,
    groups: &Groups,
    items: &Items,
    group: &str,
    options: &Options,
) -> Result<(PanelModel, Certificate), CalibrationError> {
    options.check()?;
    let split = Split::make(options.split, options.seed, table.cases(), groups, items, group)?;
    let work = Work { table, groups, items, options, split };
    let fit = work.split.rows(Part::Fit);
    let model = work.panel_model(&work.fit(&fit), &fit, &mut Vec::new());
    let by_model = table.labels.sources.contains_key(&LabelSource::Model);
    let certificate = work.certificate(&model, &work.split.rows(Part::Certify), by_model);
    Ok((model, certificate))
}

pub(super) struct Work<'a> {
    pub(super) table: &'a Table,
    pub(super) groups: &'a Groups,
    pub(super) items: &'a Items,
    pub(super) options: &'a Options,
    pub(super) split: Split,
}

/// What is known of each judge before the certify part is looked at.
pub(super) struct Fitted {
    pub(super) comparable: Vec<bool>,
    pub(super) maps: Vec<FittedMap>,
    pub(super) points: Vec<Option<OperatingPoint>>,
    pub(super) decisions: Vec<Vec<Option<bool>>>,
}

impl Work<'_> {
    fn run(self) -> Calibration {
        let (fit, report) = (self.split.rows(Part::Fit), self.split.rows(Part::Certify));
        let fitted = self.fit(&fit);
        let mut warnings = self.warnings(&fitted);
        let model = self.panel_model(&fitted, &fit, &mut warnings);
        let by_model = self.table.labels.sources.contains_key(&LabelSource::Model);
        let certificate = self.certificate(&model, &report, by_model);
        let refused = self.refuses(by_model);
        let judges = (0..self.table.judges.len())
            .map(|j| self.judge(j, &fitted, &report, refused.as_deref()))
            .collect();
        let (panel, accept) = self.panel(&model, &fitted, &fit, &report, &certificate);
        let cases: Vec<&LabelledCase> = report.iter().map(|&i| &self.table.cases()[i]).collect();
        let lengths = self.lengths(&report);
        let groups: Vec<usize> = report.iter().map(|&i| self.groups.of_case[i]).collect();
        let rate = |figure: &Measured<Figure>| figure.0.map(|figure| figure.estimate);
        let noise = label_noise(
            self.table,
            self.items,
            &fitted.decisions,
            rate(&panel.metrics.false_positive_rate),
            rate(&panel.metrics.true_positive_rate),
        );
        let split = self.split.report.clone();
        let loops = self.loop_report(&model, &fit, &report, &certificate);
        let subsets = self.subsets(&model, &fit, &report, refused.as_deref());
        let slices = self.slices(&model, &fitted, &fit, &report, &certificate);
        let mut certified_alone = self.certified_smaller(&model, &report);
        if !certified_alone.is_empty() {
            let judges = self.table.judges.len() as u64;
            certified_alone.extend(CertifiedAlone::of("panel", judges, 1, certificate.clone()));
        }
        let certified = certificate.certified_key();
        let retest = self.retest(&model);
        let curves = self.curves(&model, &fitted, &report, &panel, by_model, certified);
        Calibration {
            version: 1,
            kind: if by_model { "agreement_with_a_model" } else { "calibration" },
            criterion: self.table.criterion.clone(),
            positive: self.table.positive.clone(),
            target: self.table.labels.target,
            labels: LabelReport {
                criterion: self.table.labels.criterion.clone(),
                count: self.table.labels.count,
                sources: self.table.labels.sources.clone(),
                scale: self.table.labels.scale.clone(),
                by_model,
            },
            counts: self.table.counts.clone(),
            part: if self.options.split == SplitPlan::None { "all" } else { "certify" },
            judges,
            panel,
            certificate: BoundCertificate {
                certificate,
                binding: Binding {
                    generations: self.options.loops.as_ref().map_or(1, |own| own.generations),
                    fingerprints: self
                        .table
                        .judges
                        .iter()
                        .map(|judge| (judge.name.clone(), judge.fingerprint.clone()))
                        .collect(),
                    models: self
                        .table
                        .judges
                        .iter()
                        .filter(|judge| !judge.models.is_empty())
                        .map(|judge| (judge.name.clone(), judge.models.clone()))
                        .collect(),
                    seats: self
                        .table
                        .judges
                        .iter()
                        .filter_map(|judge| Some((judge.name.clone(), judge.seat?)))
                        .collect(),
                    data_hash: self.data_hash(),
                    certify_hash: split.certify.as_ref().map(|part| part.hash.clone()),
                    date: self.options.date.clone(),
                    looks: self.options.looks.clone(),
                },
            },
            slices,
            retest,
            raters: raters(
                self.table,
                &fitted.comparable,
                self.options.epsilon,
                self.options.level,
            ),
            baselines: baselines(&cases, &groups, &lengths, self.options.resampling()),
            label_noise: noise,
            curves,
            warnings,
            group_hint: self.items.group_hint.clone(),
            groups: self.part_groups(),
            split,
            certified_alone,
            accept,
            loops,
            subsets,
            confusion: self.confusion(&fitted, &fit),
            scale: self.scale(),
        }
    }

    pub(super) fn fit(&self, fit: &[usize]) -> Fitted {
        let cases = self.table.cases();
        let comparable: Vec<bool> =
            self.table.judges.iter().map(|judge| comparable(self.table, judge)).collect();
        let maps = self
            .table
            .judges
            .iter()
            .zip(&comparable)
            .map(|(judge, comparable)| {
                let (series, _) =
                    series_of(&judge.scores, cases, &self.groups.of_case, fit, |case| {
                        target(self.table, case)
                    });
                let data = FitData {
                    score: &series.score,
                    target: &series.target,
                    group: &series.group,
                    // A binary judge on graded labels has no common unit.
                    comparable: *comparable
                        && (judge.kind == JudgeKind::Graded || self.good_is_target()),
                    probability: self.good_is_target(),
                };
                fit_map(judge.kind, data, self.options.seed, self.options.level)
            })
            .collect();
        let points: Vec<Option<OperatingPoint>> = self
            .table
            .judges
            .iter()
            .map(|judge| {
                operating_point(judge.kind, &judge.scores, cases, fit, self.options.accept)
            })
            .collect();
        let decisions = self
            .table
            .judges
            .iter()
            .zip(&points)
            .map(|(judge, point)| {
                let decide = |score: &Option<f64>| Some(accepts(point.as_ref()?, (*score)?));
                judge.scores.iter().map(decide).collect()
            })
            .collect();
        Fitted { comparable, maps, points, decisions }
    }

    pub(super) fn good_is_target(&self) -> bool {
        self.table.all_binary() || self.table.labels.target == Target::Good
    }

    pub(super) fn panel_model(
        &self,
        fitted: &Fitted,
        fit: &[usize],
        warnings: &mut Vec<String>,
    ) -> PanelModel {
        let of = |aggregate| {
            PanelModel::fit(
                self.table,
                &fitted.maps,
                &fitted.comparable,
                fit,
                aggregate,
                self.options.quorum,
            )
        };
        match of(self.options.aggregate) {
            Ok(model) => model,
            Err(undefined) => {
                warnings.push(format!(
                    "no {} could be fitted on {} labels ({undefined}): the median is used",
                    self.options.aggregate.name(),
                    fit.len()
                ));
                of(PanelAggregate::Median).unwrap_or(PanelModel {
                    aggregate: PanelAggregate::Median,
                    quorum: 1,
                    seats: Vec::new(),
                    stack: None,
                    map: Map::None,
                })
            }
        }
    }

    /// The cases of `rows` that a judge scored, as columns, and which they are.
    pub(super) fn judge_series(
        &self,
        j: usize,
        fitted: &Fitted,
        rows: &[usize],
    ) -> (Series, Vec<usize>) {
        let judge = &self.table.judges[j];
        let binary = judge.kind == JudgeKind::Binary;
        let (mut series, scored) =
            series_of(&judge.scores, self.table.cases(), &self.groups.of_case, rows, |case| {
                if binary { f64::from(u8::from(case.good)) } else { case.target }
            });
        series.comparable = fitted.comparable[j];
        series.accepted = fitted.points[j]
            .is_some()
            .then(|| scored.iter().filter_map(|&i| fitted.decisions[j][i]).collect());
        (series, scored)
    }

    fn judge(
        &self,
        j: usize,
        fitted: &Fitted,
        rows: &[usize],
        refused: Option<&str>,
    ) -> JudgeReport {
        let judge = &self.table.judges[j];
        let (series, scored) = self.judge_series(j, fitted, rows);
        let metrics = judge_metrics(
            &judge.name,
            judge.kind,
            fitted.points[j].clone(),
            &series,
            self.options.intervals(),
        );
        JudgeReport {
            metrics,
            map: fitted.maps[j].clone(),
            fingerprint: judge.fingerprint.clone(),
            statuses: judge.statuses.clone(),
            statuses_by_class: StatusesByClass {
                good: judge.statuses_good.clone(),
                bad: judge.statuses_bad.clone(),
            },
            missing: judge.missing,
            comparable: fitted.comparable[j],
            categories: self.categories(judge, rows),
            test_retest: repeats(judge),
            position_consistency: judge.position_consistency(),
            length_effect: length_effect(&series, &self.lengths(&scored), self.options.level),
            price_usd: judge.price_usd,
            own_certificate: self.own_certificate(j, rows, refused),
            latency_ms: judge.latency_ms,
        }
    }

    /// Agreement with the category that most raters chose; no majority, no comparison.
    fn categories(&self, judge: &JudgeColumn, rows: &[usize]) -> Option<CategoryAgreement> {
        let own = judge.categories.as_ref()?;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for &i in rows {
            let ratings = &self.table.cases()[i].ratings;
            let majority = ratings.iter().find(|candidate| {
                2 * ratings.iter().filter(|r| r.value == candidate.value).count() > ratings.len()
            });
            if let (Some(score), Some(label)) = (own[i], majority) {
                x.push(score);
                y.push(label.value);
            }
        }
        let equal = x.iter().zip(&y).filter(|(x, y)| x == y).count() as u64;
        Some(CategoryAgreement {
            n: x.len() as u64,
            agreement: wilson(equal, x.len() as u64, self.options.level).into(),
            cohen_kappa: categories_kappa(&x, &y, Weighting::Unweighted),
        })
    }

    pub(super) fn lengths(&self, rows: &[usize]) -> Vec<Option<u64>> {
        rows.iter().map(|&i| self.items.facts[i].as_ref().and_then(|facts| facts.length)).collect()
    }

    pub(super) fn part_groups(&self) -> PartGroups {
        let hashes = |part| {
            let mut hashes: Vec<String> = (0..self.split.parts.len())
                .filter(|&i| self.split.parts[i] == Some(part))
                .map(|i| PartGroups::hash(&self.groups.names[self.groups.of_case[i]]))
                .collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        PartGroups { fit: hashes(Part::Fit), certify: hashes(Part::Certify) }
    }

    /// Hash of cases, labels, groups and scores, whatever the order of the files.
    pub(super) fn data_hash(&self) -> String {
        let mut lines: Vec<String> = (0..self.table.cases().len())
            .map(|i| {
                let case = &self.table.cases()[i];
                let scores: BTreeMap<&str, Option<f64>> = self
                    .table
                    .judges
                    .iter()
                    .map(|judge| (judge.name.as_str(), judge.scores[i]))
                    .collect();
                let group = &self.groups.names[self.groups.of_case[i]];
                serde_json::json!([case.id, case.target, case.good, group, scores]).to_string()
            })
            .collect();
        lines.sort_unstable();
        blake3::hash(lines.join("\n").as_bytes()).to_hex()[..32].to_owned()
    }

    pub(super) fn warnings(&self, fitted: &Fitted) -> Vec<String> {
        let looks = self.options.looks.as_ref().and_then(Looks::warning);
        let mut warnings: Vec<String> =
            looks.into_iter().chain(self.items.group_hint.clone()).collect();
        let counts = &self.table.counts;
        let by_model = self.table.labels.sources.get(&LabelSource::Model);
        if let Some(n) = by_model {
            warnings.push(format!(
                "{n} labels are a model's: this is agreement with a model, not calibration"
            ));
        }
        if counts.good == 0 || counts.bad == 0 {
            let class = if counts.good == 0 { "bad" } else { "good" };
            warnings.push(format!(
                "all {} labelled cases are {class}: error rates of the other class are undefined",
                counts.cases
            ));
        }
        if (counts.cases as usize) < MINIMUM_LABELS {
            warnings.push(format!(
                "{} labelled cases: under {MINIMUM_LABELS} no map is fitted, and only agreement is worth a look; the rest stands on too little",
                counts.cases
            ));
        }
        for (judge, comparable) in self.table.judges.iter().zip(&fitted.comparable) {
            let mut scores = judge.scores.iter().flatten();
            let first = scores.next();
            if first.is_none() {
                warnings.push(format!("judge `{}` has no score on a labelled case", judge.name));
            } else if scores.all(|score| Some(score) == first) {
                warnings.push(format!("judge `{}` gives one score throughout", judge.name));
            }
            if !comparable {
                warnings.push(format!(
                    "judge `{}` scores on another scale than the labels ({}): its bias is undefined; declare scales with `--judge-scale` and `--label-scale`",
                    judge.name, self.table.labels.scale.note
                ));
            }
        }
        warnings
    }
}

/// Whether a judge's scores are in the unit that they are compared with.
fn comparable(table: &Table, judge: &JudgeColumn) -> bool {
    if judge.kind == JudgeKind::Binary {
        return true;
    }
    let (low, high) = match (table.labels.target, table.labels.scale.scale) {
        (Target::Good, _) => (0.0, 1.0),
        (Target::LabelScale, Some(scale)) => (scale.low(), scale.high()),
        (Target::LabelScale, None) => return false,
    };
    judge.scores.iter().flatten().all(|score| (low..=high).contains(score))
}
