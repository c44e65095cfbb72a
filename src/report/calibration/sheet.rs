//! What a report reads of a calibration's JSON: that of a calibration just made, or of a file
//! that `calibrate --json` wrote. Fields that it does not show are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::calibration::certificate::Certificate;
use crate::calibration::certified_alone::CertifiedAlone;
use crate::calibration::curves::Curves;
use crate::calibration::dependence::Dependence;
use crate::calibration::figure::{Figure, Measured};
use crate::calibration::label_noise::LabelNoise;
use crate::calibration::loops::GenerationRow;
use crate::calibration::map::FittedMap;
use crate::calibration::raters::Raters;
use crate::calibration::report::StatusesByClass;
use crate::calibration::slices::SliceReport;
use crate::calibration::split::SplitReport;
use crate::calibration::table::Counts;
use crate::report::words::plural;

/// When a judge accepts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Point {
    pub(super) accept: String,
    pub(super) threshold: Option<f64>,
    pub(super) origin: String,
}

/// The figures of a judge or the panel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Metrics {
    pub(super) name: String,
    pub(super) n: u64,
    pub(super) operating_point: Option<Point>,
    pub(super) bias: Measured<Figure>,
    pub(super) true_positive_rate: Measured<Figure>,
    pub(super) false_positive_rate: Measured<Figure>,
    pub(super) false_acceptance_share: Measured<Figure>,
    pub(super) intervals: BTreeMap<String, Measured<Figure>>,
}

impl Metrics {
    /// A figure that stands among the intervals.
    pub(super) fn interval(&self, name: &str) -> Measured<Figure> {
        self.intervals
            .get(name)
            .cloned()
            .unwrap_or_else(|| Measured::undefined(crate::stats::Reason::NoData))
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Judge {
    #[serde(flatten)]
    pub(super) metrics: Metrics,
    pub(super) map: FittedMap,
    pub(super) statuses_by_class: StatusesByClass,
    pub(super) missing: u64,
    pub(super) price_usd: Option<f64>,
    pub(super) latency_ms: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Panel {
    #[serde(flatten)]
    pub(super) metrics: Metrics,
    pub(super) plain_median: Metrics,
    #[serde(default)]
    pub(super) as_run: Option<Metrics>,
    #[serde(flatten)]
    pub(super) dependence: Dependence,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Promise {
    #[serde(flatten)]
    pub(super) certificate: Certificate,
    pub(super) generations: u32,
    pub(super) date: String,
    pub(super) data_hash: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Baseline {
    pub(super) name: String,
    pub(super) n: u64,
    #[serde(default)]
    pub(super) good: u64,
    #[serde(default)]
    pub(super) bad: u64,
    #[serde(default)]
    pub(super) accepted: Option<u64>,
    pub(super) accuracy: Measured<Figure>,
    pub(super) balanced_accuracy: Measured,
    pub(super) false_positive_rate: Measured,
    pub(super) true_positive_rate: Measured,
    pub(super) false_acceptance_share: Measured,
    pub(super) auc: Measured,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Loops {
    pub(super) loops: u64,
    pub(super) never_complete: u64,
    pub(super) by_generation: Vec<GenerationRow>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct LabelScale {
    pub(super) note: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Labels {
    pub(super) by_model: bool,
    pub(super) scale: LabelScale,
}

/// Everything that a report shows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sheet {
    pub(super) criterion: String,
    pub(super) positive: String,
    pub(super) labels: Labels,
    pub(super) counts: Counts,
    pub(super) split: SplitReport,
    pub(super) judges: Vec<Judge>,
    pub(super) panel: Panel,
    pub(super) certificate: Promise,
    #[serde(default)]
    pub(super) certified_alone: Vec<CertifiedAlone>,
    #[serde(default)]
    pub(super) loops: Option<Loops>,
    #[serde(default)]
    pub(super) slices: Vec<SliceReport>,
    pub(super) raters: Raters,
    pub(super) baselines: Vec<Baseline>,
    pub(super) label_noise: LabelNoise,
    pub(super) curves: Curves,
    pub(super) warnings: Vec<String>,
}

/// Why a file is no calibration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SheetError {
    /// A profile has fitted maps and a certificate, and no figures.
    #[error(
        "this is a profile, which holds what a panel needs and no figures: give what `venire calibrate --json` printed, or write the report with `venire calibrate -o report.html`"
    )]
    Profile,
    /// Another version of the form.
    #[error(
        "this calibration has version {found}: expected 1; make it again with this version of venire"
    )]
    Version {
        /// The version in the file.
        found: Value,
    },
    /// Something else.
    #[error("expected what `venire calibrate --json` printed")]
    Form(#[from] serde_json::Error),
}

impl Sheet {
    /// Reads a calibration's JSON.
    pub(super) fn read(value: &Value) -> Result<Self, SheetError> {
        if value.get("curves").is_none() && value.get("hash").is_some() {
            return Err(SheetError::Profile);
        }
        if let Some(found) = value.get("version").filter(|found| **found != 1) {
            return Err(SheetError::Version { found: found.clone() });
        }
        // By text and not by value: then an error says which field it stumbled over.
        let text = value.to_string();
        Ok(serde_json::from_str(&text)?)
    }

    /// The part that figures stand on, in words, with its cases: `the certify part (630 cases)`,
    /// or all labelled cases without a split.
    pub(super) fn certify(&self) -> String {
        match &self.split.certify {
            Some(part) => format!("the certify part ({})", plural(part.cases, "case", "cases")),
            None => self.whole(),
        }
    }

    /// The part that was fitted on, in the same way.
    pub(super) fn fit(&self) -> String {
        match &self.split.fit {
            Some(part) => format!("the fit part ({})", plural(part.cases, "case", "cases")),
            None => self.whole(),
        }
    }

    /// Both parts together.
    pub(super) fn whole(&self) -> String {
        let cases = plural(self.counts.cases, "labelled case", "labelled cases");
        let both = if self.split.fit.is_some() { ", both parts" } else { "" };
        format!("all {cases}{both}")
    }

    /// The name of a judge by its place.
    pub(super) fn names(&self) -> Vec<String> {
        self.judges.iter().map(|judge| judge.metrics.name.clone()).collect()
    }
}
