//! The panel of a calibration: its decided cases as columns, when it accepts, and its report
//! beside the plain median and the panel as it ran.

use super::calibrate::{Fitted, Work};
use super::certificate::Certificate;
use super::dependence::dependence;
use super::figure::least;
use super::judge_metrics::{
    CERTIFIED, JudgeMetrics, OperatingPoint, Series, judge_metrics, series_of,
};
use super::map::Map;
use super::operating_point::{accepts, fitted, operating_point};
use super::panel::{Key, Missing, PanelModel, plain_median, rank, target};
use super::report::PanelReport;
use super::table::JudgeKind;
use crate::verdict::StatusCounts;

/// The calibrated panel over cases.
pub(super) struct PanelSeries {
    /// Its decided cases as columns.
    pub(super) series: Series,
    /// Which cases they are.
    pub(super) decided: Vec<usize>,
    /// Their keys.
    pub(super) keys: Vec<Key>,
    /// When it accepts.
    pub(super) point: Option<OperatingPoint>,
}

enum PanelRule {
    Key(Key),
    Majority,
}

impl Work<'_> {
    /// The calibrated panel's decided cases among `rows` as columns.
    pub(super) fn panel_series(
        &self,
        model: &PanelModel,
        fitted: &Fitted,
        fit: &[usize],
        rows: &[usize],
        certificate: &Certificate,
    ) -> PanelSeries {
        let keys = model.keys(self.table, rows, Missing::LeftOut);
        let (decided, kept): (Vec<usize>, Vec<Key>) =
            rows.iter().zip(&keys).filter_map(|(&i, key)| Some((i, (*key)?))).unzip();
        let accept = self.panel_rule(model, fit, certificate);
        let cases = self.table.cases();
        let series = Series {
            score: kept.iter().map(|key| model.map.apply(key.0)).collect(),
            target: decided.iter().map(|&i| target(self.table, &cases[i])).collect(),
            good: decided.iter().map(|&i| cases[i].good).collect(),
            accepted: accept.as_ref().map(|(_, rule)| {
                decided.iter().zip(&kept).map(|(&i, key)| self.accepts(rule, i, *key)).collect()
            }),
            rank: rank(&kept),
            group: decided.iter().map(|&i| self.groups.of_case[i]).collect(),
            comparable: model.map != Map::None || fitted.comparable.iter().all(|own| *own),
        };
        PanelSeries { series, decided, keys: kept, point: accept.map(|(point, _)| point) }
    }

    /// What the panel's scores are.
    pub(super) fn panel_kind(&self) -> JudgeKind {
        if self.table.all_binary() { JudgeKind::Binary } else { JudgeKind::Graded }
    }

    pub(super) fn panel(
        &self,
        model: &PanelModel,
        fitted: &Fitted,
        fit: &[usize],
        rows: &[usize],
        certificate: &Certificate,
    ) -> (PanelReport, Option<OperatingPoint>) {
        let PanelSeries { series, decided, keys: kept, point } =
            self.panel_series(model, fitted, fit, rows, certificate);
        let cases = self.table.cases();
        let intervals = self.options.intervals();
        let metrics = judge_metrics("panel", self.panel_kind(), point.clone(), &series, intervals);
        let bad = decided.iter().zip(&kept).filter(|(i, _)| !cases[**i].good).map(|(_, key)| *key);
        let mut bad: Vec<Key> = bad.collect();
        bad.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        bad.dedup();
        let complete: Vec<usize> = rows
            .iter()
            .copied()
            .filter(|&i| self.table.judges.iter().all(|judge| judge.scores[i].is_some()))
            .collect();
        let report = PanelReport {
            metrics,
            aggregate: model.aggregate,
            quorum: model.quorum as u64,
            no_quorum: (rows.len() - decided.len()) as u64,
            distinct_keys: bad.len() as u64,
            map: model.map.clone(),
            statuses: self.table.judges.iter().fold(StatusCounts::default(), |mut sum, judge| {
                sum.merge(&judge.statuses);
                sum
            }),
            as_run: self.options.ruled.as_ref().map(|ran| {
                let (series, _, point) = self.as_run(ran, rows);
                judge_metrics("as_run", JudgeKind::Graded, Some(point), &series, intervals)
            }),
            plain_median: self.plain(rows, fit, model.quorum, fitted),
            plain_median_complete_cases: self.plain(&complete, fit, model.quorum, fitted),
            dependence: dependence(
                self.table,
                &fitted.decisions,
                &fitted.comparable,
                rows,
                fit,
                &self.groups.of_case,
                self.options.resampling(),
            ),
            model: model.clone(),
        };
        (report, point)
    }

    /// When the panel accepts: certified, else declared, else by majority of binary judges,
    /// else fitted.
    fn panel_rule(
        &self,
        model: &PanelModel,
        fit: &[usize],
        certificate: &Certificate,
    ) -> Option<(OperatingPoint, PanelRule)> {
        let point =
            |accept: String, threshold, origin| OperatingPoint { accept, threshold, origin };
        if let (Some(key), Some(rule)) = (certificate.certified_key(), &certificate.rule) {
            return Some((point(rule.clone(), Some(key.0), CERTIFIED), PanelRule::Key(key)));
        }
        if self.table.all_binary() && model.stack.is_none() {
            let accept = "more than half of the votes accept".to_owned();
            return Some((point(accept, None, "majority"), PanelRule::Majority));
        }
        if let (Some(accept), None) = (self.options.accept, &model.stack) {
            let text = format!("median of the offset votes >= {}", least(accept.0));
            let key = (accept.0, f64::NEG_INFINITY);
            return Some((point(text, Some(accept.0), "declared"), PanelRule::Key(key)));
        }
        let keys = model.keys(self.table, fit, Missing::LeftOut);
        let pairs = fit
            .iter()
            .zip(keys)
            .filter_map(|(&i, key)| Some((key?, self.table.cases()[i].good)))
            .collect();
        let key: Key = fitted(pairs)?;
        let text = format!("key at or above ({}, {})", least(key.0), least(key.1));
        Some((point(text, Some(key.0), "fitted"), PanelRule::Key(key)))
    }

    fn accepts(&self, rule: &PanelRule, case: usize, key: Key) -> bool {
        match rule {
            PanelRule::Key(least) => key >= *least,
            PanelRule::Majority => plain_median(self.table, case, 1).is_some_and(|m| m > 0.5),
        }
    }

    /// The plain lower median over `rows` as columns, which cases they are, and when it
    /// accepts.
    pub(super) fn plain_series(
        &self,
        rows: &[usize],
        fit: &[usize],
        quorum: usize,
        fitted: &Fitted,
    ) -> (Series, Vec<usize>, Option<OperatingPoint>) {
        let table = self.table;
        let scores: Vec<Option<f64>> =
            (0..table.cases().len()).map(|i| plain_median(table, i, quorum)).collect();
        let kind = self.panel_kind();
        let point =
            operating_point(kind, &scores, table.cases(), fit, self.options.accept).map(|point| {
                match kind {
                    JudgeKind::Binary => OperatingPoint {
                        accept: "more than half of the votes accept".to_owned(),
                        origin: "majority",
                        ..point
                    },
                    JudgeKind::Graded => point,
                }
            });
        let (mut series, scored) =
            series_of(&scores, table.cases(), &self.groups.of_case, rows, |case| {
                target(table, case)
            });
        series.comparable = fitted.comparable.iter().all(|own| *own)
            && (table.all_binary() || table.judges.iter().all(|j| j.kind == JudgeKind::Graded));
        series.accepted = point
            .as_ref()
            .map(|point| scored.iter().filter_map(|&i| Some(accepts(point, scores[i]?))).collect());
        (series, scored, point)
    }

    fn plain(&self, rows: &[usize], fit: &[usize], quorum: usize, fitted: &Fitted) -> JudgeMetrics {
        let (series, _, point) = self.plain_series(rows, fit, quorum, fitted);
        let intervals = self.options.intervals();
        judge_metrics("plain_median", self.panel_kind(), point, &series, intervals)
    }
}
