//! Hostile input to everything at once: no statistic may panic, hang, or hand out a NaN.

use proptest::prelude::*;

use super::agreement::{Level, fleiss_kappa, icc, krippendorff_alpha};
use super::bootstrap::{Resampling, bootstrap};
use super::calibration_error::{
    Binning, brier, corp, expected_calibration_error, log_loss, murphy_partition, recalibration,
    spiegelhalter,
};
use super::calibration_map::{
    IsotonicMap, RidgeStack, SlopePrior, beta_calibration, deming, firth_sigmoid, offset, platt,
    platt_unregularised, shrunk_affine, temperature, theil_sen, venn_abers,
};
use super::certificate::{certify_threshold, expected_threshold};
use super::logistic::ordinal_logit;
use super::rate::{Divisor, ppi_plus_plus};
use super::{Defined, aggregate, auc, bland_altman, consistency, correlation, drift};
use super::{evidence, paired, regression, risk, shrinkage, summary, two_sample};

const LEVEL: f64 = 0.95;

/// Ordinary numbers, and those that break formulas.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (0u8..6).prop_map(f64::from),
        6 => 0.0f64..1.0,
        1 => prop::sample::select(vec![
            f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 1e200, -1e-308, -0.0,
            f64::MIN_POSITIVE,
        ]),
    ]
}

fn numbers(name: &str, values: impl IntoIterator<Item = Defined>) {
    for (i, value) in values.into_iter().enumerate() {
        assert!(!value.is_ok_and(f64::is_nan), "{name} {i} is NaN");
    }
}

fn series(x: &[f64], y: &[f64], good: &[bool]) {
    numbers("summary", [summary::mean(x), summary::median(x), summary::variance(x)]);
    type OfPairs = fn(&[f64], &[f64]) -> Defined;
    let pair: [OfPairs; 8] = [
        correlation::pearson,
        correlation::spearman,
        correlation::kendall_tau_b,
        correlation::kendall_tau_c,
        correlation::kendall_p,
        correlation::somers_d,
        correlation::lin_concordance,
        two_sample::wasserstein,
    ];
    numbers("pair", pair.map(|f| f(x, y)));
    numbers("interval", [correlation::pearson_estimate(x, y, LEVEL).map(|e| e.interval.lower)]);
    numbers(
        "two",
        [
            two_sample::kolmogorov_smirnov(x, y).map(|t| t.p),
            two_sample::mann_whitney(x, y).map(|t| t.p),
            paired::wilcoxon_signed_rank(x, paired::Alternative::TwoSided).map(|t| t.p),
        ],
    );
    if let Ok(b) = bland_altman::bland_altman(x, y, LEVEL) {
        numbers(
            "bland",
            [Ok(b.bias.interval.lower), Ok(b.limits.upper), b.t, b.p, b.proportional_bias],
        );
    }
    numbers(
        "affine",
        [
            offset(x, y, LEVEL).map(|o| o.shrunk),
            shrunk_affine(x, y, SlopePrior::default()).map(|f| f.map.slope),
            shrunk_affine(x, y, SlopePrior::default()).map(|f| f.residual_variance),
            theil_sen(x, y, LEVEL).map(|f| f.map.slope),
            deming(x, y, 1.0).map(|m| m.slope),
        ],
    );
    if let Ok(map) = IsotonicMap::fit(x, y, None) {
        numbers("isotonic", x.iter().map(|v| Ok(map.apply(*v))));
    }
    numbers("venn", [venn_abers(x, y, 0.5).map(|v| v.probability)]);
    let stack = RidgeStack::fit(&[x.to_vec()], y, 1.0).and_then(|s| s.apply(&[0.5]));
    numbers("stack", [stack]);
    numbers(
        "logistic",
        [
            platt(x, good).map(|l| l.slope),
            platt_unregularised(x, good).map(|l| l.slope),
            firth_sigmoid(x, good).map(|l| l.slope),
            beta_calibration(x, good).map(|m| m.apply(0.3)),
            temperature(x, good).map(|t| t.temperature),
            regression::length_controlled(x, good).map(|l| l.controlled),
            regression::least_squares_hc3(y, &[x.to_vec()]).map(|r| r.standard_errors[1]),
            ordinal_logit(x, &good.iter().map(|g| usize::from(*g)).collect::<Vec<_>>())
                .map(|f| f.slope),
        ],
    );
    numbers(
        "forecast",
        [
            brier(x, good),
            log_loss(x, good),
            expected_calibration_error(x, good, 7, Binning::EqualMass),
            expected_calibration_error(x, good, 7, Binning::EqualWidth),
            murphy_partition(x, good, 5).map(|m| m.resolution),
            corp(x, good).map(|c| c.miscalibration),
            spiegelhalter(x, good).map(|s| s.p),
            recalibration(x, good).map(|r| r.slope),
            auc::auc(x, good),
            auc::delong(x, good, LEVEL).map(|a| a.variance),
            auc::delong_difference(x, y, good, LEVEL).map(|a| a.p),
            auc::average_precision(x, good),
        ],
    );
    numbers(
        "rates",
        [
            ppi_plus_plus(y, x, x, Divisor::Population, LEVEL).map(|p| p.estimate.interval.upper),
            risk::betting_upper(x, 0.05),
            risk::empirical_bernstein_upper(x, 0.05),
            risk::hoeffding_upper(x, 0.05),
            evidence::conformal_p(x, 0.5),
            shrinkage::empirical_bayes(x, y).map(|e| e.mean),
            shrinkage::empirical_bayes(x, y).map(|e| e.tau2_paule_mandel),
        ],
    );
    let votes: [fn(&[f64]) -> Defined; 6] = [
        aggregate::lower_median,
        aggregate::hodges_lehmann,
        aggregate::median_absolute_deviation,
        aggregate::minimum,
        |v| aggregate::trimmed_mean(v, 0.2),
        |v| aggregate::decision_key(v).map(|k| k.mean),
    ];
    numbers("votes", votes.map(|f| f(x)));
    numbers("weights", [aggregate::weighted_median(x, y), aggregate::weighted_mean(x, y)]);
    numbers(
        "drift",
        [
            drift::stability_index(x, y).map(|s| s.value),
            drift::jensen_shannon(x, y),
            drift::chi_squared(x, y).map(|t| t.p),
            drift::cusum(x, 0.5, 2.0).map(|c| c.upper.last().copied().unwrap_or(0.0)),
            drift::ewma(x, 0.2).map(|z| z.last().copied().unwrap_or(0.0)),
        ],
    );
    // A certified threshold is always one of the candidates, hence never NaN.
    let certified = serde_json::to_string(&certify_threshold(x, y, 0.3, 0.3).ok());
    assert!(certified.is_ok());
    numbers("expected", [expected_threshold(x, y, 0.3).map(|t| t.unwrap_or(0.0))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn no_statistic_of_two_series_panics_or_returns_nan(
        rows in prop::collection::vec((value(), value(), any::<bool>()), 0..14)
    ) {
        let x: Vec<f64> = rows.iter().map(|r| r.0).collect();
        let y: Vec<f64> = rows.iter().map(|r| r.1).collect();
        let good: Vec<bool> = rows.iter().map(|r| r.2).collect();
        series(&x, &y, &good);
    }

    #[test]
    fn no_statistic_of_a_table_panics_or_returns_nan(
        rows in prop::collection::vec(prop::collection::vec(value(), 0..5), 0..7),
        counts in prop::collection::vec(prop::collection::vec(0u64..4, 3), 0..6),
    ) {
        for level in [Level::Nominal, Level::Ordinal, Level::Interval, Level::Ratio] {
            numbers("krippendorff", [krippendorff_alpha(&rows, level)]);
        }
        if let Ok(r) = icc(&rows, LEVEL) {
            numbers("icc", [r.one_way, r.agreement, r.consistency, r.agreement_mean]
                .iter().flat_map(|e| [Ok(e.point), Ok(e.interval.lower), Ok(e.interval.upper)]));
        }
        numbers("consistency", [consistency::self_consistency(&rows).map(|c| c.within_item_variance)]);
        numbers("fleiss", [
            fleiss_kappa(&counts).and_then(|f| f.kappa),
            fleiss_kappa(&counts).and_then(|f| f.standard_error_null),
        ]);
    }
}

#[test]
fn a_bootstrap_of_one_row_is_refused() {
    let resampling = Resampling { resamples: 50, seed: 1, level: LEVEL };
    assert!(bootstrap(1, None, resampling, |_| Ok(0.3)).is_err());
    assert!(bootstrap(0, None, resampling, |_| Ok(0.3)).is_err());
}
