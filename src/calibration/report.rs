//! The result of a calibration, as it is printed and kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::baselines::Baseline;
use super::certificate::Certificate;
use super::certified_alone::CertifiedAlone;
use super::curves::Curves;
use super::dependence::Dependence;
use super::figure::{Figure, Measured, UndefinedFigure, list_undefined};
use super::judge_metrics::{JudgeMetrics, OperatingPoint, Repeats};
use super::label_noise::LabelNoise;
use super::labelled::Target;
use super::ledger::Looks;
use super::loops::LoopReport;
use super::map::{FittedMap, Map};
use super::panel::{PanelAggregate, PanelModel};
use super::positive::Positive;
use super::raters::Raters;
use super::retest::RetestNoise;
use super::slices::SliceReport;
use super::split::SplitReport;
use super::subsets::{Confusion, OwnCertificate, Subsets};
use super::table::{Counts, SeatFacts};
use crate::dataset::{LabelScale, LabelSource};
use crate::verdict::{Fingerprint, StatusCounts};

/// Statuses of a judge's measurements by the truth: failures are not at random when the two
/// differ.
#[derive(Clone, Debug, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct StatusesByClass {
    /// On truly good cases.
    pub good: StatusCounts,
    /// On truly bad cases.
    pub bad: StatusCounts,
}

/// A judge's values as the labels' categories.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CategoryAgreement {
    /// Cases with one label category and a score.
    pub n: u64,
    /// Share of equal categories.
    pub agreement: Measured<Figure>,
    /// Cohen's kappa over the categories.
    pub cohen_kappa: Measured,
}

/// One judge.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct JudgeReport {
    /// Its figures on the reported part.
    #[serde(flatten)]
    pub metrics: JudgeMetrics,
    /// Its map, fitted on the fit part.
    pub map: FittedMap,
    /// What it was, where a run says so.
    pub fingerprint: Option<Fingerprint>,
    /// Statuses of its measurements of labelled cases.
    pub statuses: StatusCounts,
    /// The same by truth.
    pub statuses_by_class: StatusesByClass,
    /// Labelled cases that it has no row for.
    pub missing: u64,
    /// Whether its scores are in the labels' unit.
    pub comparable: bool,
    /// Agreement of categories, where its values are the labels'.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<CategoryAgreement>,
    /// Noise over repeated measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_retest: Option<Measured<Repeats>>,
    /// Share of pairs on which both orders agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_consistency: Option<Measured<Figure>>,
    /// Slope of score minus label on the logarithm of the output's length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_effect: Option<Measured<Figure>>,
    /// Mean price of a judgement.
    pub price_usd: Option<f64>,
    /// The threshold from which its own false-positive rate is bounded, for `accept_alone`.
    pub own_certificate: OwnCertificate,
    /// Mean time of a judgement.
    pub latency_ms: Option<f64>,
}

/// The panel.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PanelReport {
    /// Its figures on the reported part, from the mapped votes.
    #[serde(flatten)]
    pub metrics: JudgeMetrics,
    /// How votes become a key.
    pub aggregate: PanelAggregate,
    /// Least votes for a decision.
    pub quorum: u64,
    /// Cases below the quorum.
    pub no_quorum: u64,
    /// Distinct keys among the bad cases: what a threshold can tell apart.
    pub distinct_keys: u64,
    /// From its median to the labels' scale.
    pub map: Map,
    /// Statuses of all its judges' measurements together.
    pub statuses: StatusCounts,
    /// The panel as it ruled when it ran, vetoes and its own threshold included; for a run
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_run: Option<JudgeMetrics>,
    /// From the votes to the key.
    pub model: PanelModel,
    /// The plain lower median, without any calibration.
    pub plain_median: JudgeMetrics,
    /// The same on the cases that every judge scored.
    pub plain_median_complete_cases: JudgeMetrics,
    /// Shared error of the judges.
    #[serde(flatten)]
    pub dependence: Dependence,
}

/// What a certificate is bound to.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Binding {
    /// Most generations of a loop that the bound holds for.
    pub generations: u32,
    /// Fingerprint of each judge; `None` where the data do not say.
    pub fingerprints: BTreeMap<String, Option<Fingerprint>>,
    /// The models that each judge's server said it used, where the data say so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, BTreeSet<String>>,
    /// How each judge sat on its panel, where a run says so.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seats: BTreeMap<String, SeatFacts>,
    /// Hash of everything that was joined.
    pub data_hash: String,
    /// Hash of the certify part.
    pub certify_hash: Option<String>,
    /// When, in UTC.
    pub date: String,
    /// How often these labels had been looked at for a certificate, where a ledger says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looks>,
}

/// The certificate with what it is bound to.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BoundCertificate {
    /// The promise.
    #[serde(flatten)]
    pub certificate: Certificate,
    /// What it holds for.
    #[serde(flatten)]
    pub binding: Binding,
}

/// Where labels come from, and what that allows.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct LabelReport {
    /// The criterion.
    pub criterion: String,
    /// Labels read.
    pub count: u64,
    /// By their source.
    pub sources: BTreeMap<LabelSource, u64>,
    /// The scale, declared or inferred.
    pub scale: LabelScale,
    /// Whether some label is a model's: then nothing here is a calibration.
    pub by_model: bool,
}

/// Everything that a calibration says.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Calibration {
    /// Version of this form.
    pub version: u32,
    /// `calibration`, or `agreement_with_a_model` where labels are a model's.
    pub kind: &'static str,
    /// The judgements' criterion.
    pub criterion: String,
    /// Which labels are good.
    #[schemars(with = "String")]
    pub positive: Positive,
    /// What scores are compared with.
    pub target: Target,
    /// The labels.
    pub labels: LabelReport,
    /// What was joined and what was left over.
    pub counts: Counts,
    /// Which part the figures of judges, panel and baselines stand on: `certify`, or `all`
    /// without a split.
    pub part: &'static str,
    /// The split.
    pub split: SplitReport,
    /// The judges.
    pub judges: Vec<JudgeReport>,
    /// The panel.
    pub panel: PanelReport,
    /// The promise, or what is missing for one.
    pub certificate: BoundCertificate,
    /// What the log of loops says, where loops were calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loops: Option<LoopReport>,
    /// Figures by fields of the cases, where asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<SliceReport>,
    /// The panel's own noise, from outputs that were measured more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retest: Option<RetestNoise>,
    /// The people.
    pub raters: Raters,
    /// What to beat.
    pub baselines: Vec<Baseline>,
    /// Labels to check first.
    pub label_noise: LabelNoise,
    /// What pictures are drawn from.
    pub curves: Curves,
    /// What to know before trusting the figures.
    pub warnings: Vec<String>,
    /// A field that looks like a group, where none was named; among the warnings too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_hint: Option<String>,
    /// Version-independent hashes of the groups of both parts, which must be disjoint.
    #[serde(skip)]
    pub groups: super::profile::PartGroups,
    /// What holds when not every judge answers.
    #[serde(skip)]
    pub subsets: Subsets,
    /// The judges' confusion matrices.
    #[serde(skip)]
    pub confusion: Option<Confusion>,
    /// The ends of the scale that keys are on; `None` where the data do not say.
    #[serde(skip)]
    pub scale: Option<[f64; 2]>,
    /// Each judge alone and each smaller panel that can be listed, certified at the same bound
    /// with delta divided by their number, and the panel last; empty where nothing may be
    /// certified, and for one judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certified_alone: Vec<CertifiedAlone>,
    /// When the panel accepts; `None` where nothing could be fitted.
    #[serde(skip)]
    pub accept: Option<OperatingPoint>,
}

/// A calibration as it is printed, for its schema.
#[derive(Debug, schemars::JsonSchema)]
#[schemars(rename = "PrintedCalibration")]
pub struct Printed {
    /// All but the list below.
    #[schemars(flatten)]
    pub calibration: Calibration,
    /// Every figure that is undefined, with its place and reason.
    pub undefined: Vec<UndefinedFigure>,
}

impl Calibration {
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
}
