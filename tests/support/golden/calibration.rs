//! Calibration maps and errors, regressions, rates of unlabelled data.

use serde_json::Value;

use super::input::{Fields, Input, defined, number, numbers, parameters};
use super::{Computed, Trouble};
use venire::stats::auc::{auc, average_precision, delong};
use venire::stats::bootstrap::{Resampling, acceleration};
use venire::stats::calibration_error::{
    Binning, brier, corp, expected_calibration_error, log_loss, maximum_calibration_error,
    murphy_partition, recalibration, spiegelhalter,
};
use venire::stats::calibration_map::sigmoid::platt_targets;
use venire::stats::calibration_map::{
    IsotonicMap, beta_calibration, deming, firth_sigmoid, ordinary_least_squares, platt,
    platt_unregularised, temperature, theil_sen,
};
use venire::stats::confusion::Confusion;
use venire::stats::logistic::ordinal_logit;
use venire::stats::rate::{
    Cell, Divisor, JudgeCounts, allocate_labels, judge_bootstrap, lee_interval, post_stratified,
    ppi_plus_plus, ppi_with_weight, rogan_gladen,
};
use venire::stats::regression::{least_squares_hc3, length_controlled};
use venire::stats::summary::{mean, median, variance};

pub(crate) fn compute(stat: &str, input: &Input) -> Computed {
    match stat {
        "affine_calibration" => affine(input),
        "isotonic_pava" => isotonic(input),
        "platt_scaling" => sigmoid(input),
        "firth_logistic" => {
            let line = firth_sigmoid(&input.numbers("score")?, &input.flags("y")?)?;
            Ok(Fields::default()
                .number("slope", line.slope)
                .number("intercept", line.intercept)
                .done())
        }
        "beta_calibration" => beta(input),
        "temperature_scaling" => {
            let fit = temperature(&input.numbers("logit")?, &input.flags("y")?)?;
            Ok(Fields::default()
                .number("temperature", fit.temperature)
                .number("nll", fit.negative_log_likelihood)
                .done())
        }
        "calibration_error" => calibration_error(input),
        "spiegelhalter_z" => {
            let test = spiegelhalter(&input.numbers("p")?, &input.flags("y")?)?;
            Ok(Fields::default().number("z", test.z).number("p_two_sided", test.p).done())
        }
        "auc_delong" => {
            let area = delong(&input.numbers("p")?, &input.flags("y")?, input.level()?)?;
            Ok(Fields::default()
                .number("auc", area.estimate.point)
                .number("var", area.variance)
                .interval(|level| format!("ci{level}"), area.estimate.interval)
                .done())
        }
        "rogan_gladen" => inverted(input),
        "calibration_allocation" => {
            let split = allocate_labels(
                input.count("m")?,
                input.number("p")?,
                input.number("q0_pilot")?,
                input.number("q1_pilot")?,
                input.count("m_pilot")?,
            )?;
            Ok(Fields::default().put("m0", split.bad).put("m1", split.good).done())
        }
        "judgy_point" => judgy(input),
        "ppi_mean" => prediction_powered(input),
        "poststratified_rate" => stratified(input),
        "ordinal_logit" => ordinal(input),
        "length_controlled_rate" => {
            let fit = length_controlled(&input.numbers("len_diff_std")?, &input.flags("win")?)?;
            Ok(Fields::default()
                .number("intercept", fit.intercept)
                .number("slope", fit.slope)
                .number("raw_win", fit.raw)
                .number("lc_win", fit.controlled)
                .number("slope_se", fit.slope_standard_error)
                .done())
        }
        "bias_regression_hc3" => {
            // One covariate, or several as rows.
            let covariates = match input.numbers("covariate") {
                Ok(one) => vec![one],
                Err(_) => input.matrix("covariate")?,
            };
            let fit = least_squares_hc3(&input.numbers("error")?, &covariates)?;
            Ok(Fields::default()
                .put("coef", numbers(&fit.coefficients))
                .put("se_hc3", numbers(&fit.standard_errors))
                .put("p", numbers(&fit.p))
                .done())
        }
        "bca_acceleration" => jackknife(input),
        _ => Err(Trouble::Unknown),
    }
}

fn affine(input: &Input) -> Computed {
    let (judge, human) = (input.numbers("judge")?, input.numbers("human")?);
    let level = input.level()?;
    let line = ordinary_least_squares(&judge, &human)?;
    let robust = theil_sen(&judge, &human, level)?;
    let both = deming(&judge, &human, input.number_or("ratio", 1.0)?);
    Ok(Fields::default()
        .number("ols_slope", line.map.slope)
        .number("ols_intercept", line.map.intercept)
        .number("ols_slope_se", line.slope_standard_error)
        .number("ols_intercept_se", line.intercept_standard_error)
        .number("theil_sen_slope", robust.map.slope)
        .number("theil_sen_intercept", robust.map.intercept)
        .interval(|level| format!("theil_sen_ci{level}"), robust.slope.interval)
        .defined("deming_slope", both.map(|m| m.slope))
        .defined("deming_intercept", both.map(|m| m.intercept))
        .done())
}

fn isotonic(input: &Input) -> Computed {
    let (x, y) = (input.numbers("x")?, input.numbers("y")?);
    let query = if input.has("query") { input.numbers("query")? } else { Vec::new() };
    let mut fields = Fields::default();
    let mut put = |name: &str, map: &IsotonicMap| {
        let at =
            |points: &[f64]| -> Value { points.iter().map(|v| number(map.apply(*v))).collect() };
        fields.put(format!("fitted_{name}"), at(&x)).put(format!("pred_{name}"), at(&query));
    };
    put("unweighted", &IsotonicMap::fit(&x, &y, None)?);
    if input.has("weights") {
        put("weighted", &IsotonicMap::fit(&x, &y, Some(&input.numbers("weights")?))?);
    }
    Ok(fields.done())
}

fn sigmoid(input: &Input) -> Computed {
    let (score, y) = (input.numbers("score")?, input.flags("y")?);
    let plain = platt_unregularised(&score, &y);
    let soft = platt(&score, &y);
    let good = y.iter().filter(|v| **v).count();
    let (high, low) = platt_targets(good, y.len() - good);
    Ok(Fields::default()
        .defined("mle", plain.map(|l| l.slope))
        .defined("mle_slope", plain.map(|l| l.slope))
        .defined("mle_intercept", plain.map(|l| l.intercept))
        .defined("platt_target_slope", soft.map(|l| l.slope))
        .defined("platt_target_intercept", soft.map(|l| l.intercept))
        .put("platt_targets", numbers(&[high, low]))
        .done())
}

fn beta(input: &Input) -> Computed {
    let map = beta_calibration(&input.numbers("p")?, &input.flags("y")?)?;
    let middle = map.midpoint().unwrap_or(f64::NAN);
    Ok(Fields::default()
        .number("a", map.a)
        .number("b", map.b)
        .number("c", map.c)
        .number("deviance", map.deviance)
        .put("betacal_map", numbers(&[map.a, map.b, middle]))
        .done())
}

fn calibration_error(input: &Input) -> Computed {
    let (p, y) = (input.numbers("p")?, input.flags("y")?);
    let mut fields = Fields::default();
    for (name, _) in input.fields() {
        let bins = |marks| parameters::<1>(name, marks).map(|[b]| b as usize);
        if let Some(b) = name.strip_suffix("_equal_width").and_then(|n| parameters(n, ["ece"])) {
            let error = expected_calibration_error(&p, &y, b[0] as usize, Binning::EqualWidth);
            fields.defined(name, error);
        } else if let Some(b) =
            name.strip_suffix("_equal_mass").and_then(|n| parameters(n, ["ece"]))
        {
            let error = expected_calibration_error(&p, &y, b[0] as usize, Binning::EqualMass);
            fields.defined(name, error);
        } else if let Some(b) = bins(["mce"]) {
            fields.defined(name, maximum_calibration_error(&p, &y, b, Binning::EqualWidth));
        }
    }
    let parts = murphy_partition(&p, &y, input.number_or("bins", 10.0)? as usize)?;
    let murphy = Fields::default()
        .number("reliability", parts.reliability)
        .number("resolution", parts.resolution)
        .number("uncertainty", parts.uncertainty)
        .number("within_bin_var", parts.within_bin_variance)
        .number("within_bin_cov", parts.within_bin_covariance)
        .done();
    let corp = corp(&p, &y)?;
    let corp = Fields::default()
        .number("mcb", corp.miscalibration)
        .number("dsc", corp.discrimination)
        .number("unc", corp.uncertainty)
        .done();
    let line = recalibration(&p, &y);
    Ok(fields
        .defined("brier", brier(&p, &y))
        .defined("log_loss", log_loss(&p, &y))
        .put("murphy", murphy)
        .put("corp", corp)
        .defined("calibration_intercept", line.map(|l| l.intercept))
        .defined("calibration_slope", line.map(|l| l.slope))
        .defined("roc_auc", auc(&p, &y))
        .defined("average_precision", average_precision(&p, &y))
        .done())
}

fn inverted(input: &Input) -> Computed {
    let judge = JudgeCounts {
        pass_rate: input.number("p")?,
        judged: input.count("n")?,
        sensitivity: input.number("sens_q1")?,
        specificity: input.number("spec_q0")?,
        labelled_good: input.count("m1")?,
        labelled_bad: input.count("m0")?,
    };
    let level = input.level()?;
    let rate = rogan_gladen(&judge, level)?;
    let mut fields = Fields::default();
    fields
        .number("point_raw", rate.raw)
        .number("point_clipped", rate.clipped)
        .number("delta_var", rate.variance)
        .interval(|level| format!("delta_ci{level}_unclipped"), rate.interval);
    match lee_interval(&judge, level) {
        Ok(lee) => fields.interval(|level| format!("lee_ci{level}"), lee.interval),
        Err(undefined) => fields.put("lee_ci95", super::input::undefined(undefined)),
    };
    Ok(fields.done())
}

fn judgy(input: &Input) -> Computed {
    let table =
        Confusion::from_decisions(&input.flags("test_labels")?, &input.flags("test_preds")?)?;
    let unlabelled = input.flags("unlabeled_preds")?;
    let passed = unlabelled.iter().filter(|v| **v).count() as u64;
    let judge = JudgeCounts::from_counts(passed, unlabelled.len() as u64, table)?;
    let level = input.level()?;
    let theta = rogan_gladen(&judge, level)?.clipped;
    let resampling = Resampling { resamples: 20_000, seed: 0, level };
    let mut fields = Fields::default();
    fields.number("theta", theta);
    match judge_bootstrap(table, judge.pass_rate, resampling) {
        Ok(e) => {
            fields.interval(|level| format!("bootstrap_ci{level}_seed0_approx"), e.interval);
        }
        Err(undefined) => {
            fields.put("bootstrap_ci95_seed0_approx", super::input::undefined(undefined));
        }
    }
    Ok(fields.done())
}

fn prediction_powered(input: &Input) -> Computed {
    let (y, f) = (input.numbers("y_labeled")?, input.numbers("f_labeled")?);
    let (many, level) = (input.numbers("f_unlabeled")?, input.level()?);
    let plain = ppi_with_weight(&y, &f, &many, 1.0, Divisor::Population, level)?;
    let tuned = ppi_plus_plus(&y, &f, &many, Divisor::Population, level)?;
    let sample = ppi_plus_plus(&y, &f, &many, Divisor::Sample, level)?;
    let entry = |point: f64, interval| {
        Fields::default()
            .number("point", point)
            .interval(|level| format!("ci{level}"), interval)
            .done()
    };
    let mut fields = Fields::default();
    fields
        .put("ppi_lambda1", entry(plain.estimate.point, plain.estimate.interval))
        .put("ppi_pp", entry(tuned.estimate.point, tuned.estimate.interval))
        .number("lambda_star", tuned.weight)
        .number("check_point", tuned.estimate.point)
        .interval(|level| format!("check_ci{level}"), tuned.estimate.interval)
        .put("truescore_ppi", entry(sample.estimate.point, sample.estimate.interval));
    // The Rogan-Gladen rate of the same data, labelled cases counted among the judged ones.
    if let (Ok(y), Ok(f), Ok(rest)) =
        (input.flags("y_labeled"), input.flags("f_labeled"), input.flags("f_unlabeled"))
    {
        let table = Confusion::from_decisions(&y, &f)?;
        let passed = f.iter().chain(&rest).filter(|v| **v).count() as u64;
        let rate = JudgeCounts::from_counts(passed, (f.len() + rest.len()) as u64, table)
            .and_then(|judge| rogan_gladen(&judge, level));
        fields.put(
            "truescore_rogan_gladen",
            rate.map_or_else(super::input::undefined, |r| entry(r.raw, r.interval)),
        );
    }
    Ok(fields.done())
}

fn stratified(input: &Input) -> Computed {
    let cells = input
        .array("cells")?
        .iter()
        .map(|cell| {
            let count = |key| super::input::row_count(cell, key);
            Ok(Cell { judged: count("N")?, labelled: count("n")?, good: count("k")? })
        })
        .collect::<Result<Vec<Cell>, Trouble>>()?;
    let rate = post_stratified(&cells, input.level()?)?;
    Ok(Fields::default()
        .number("estimate", rate.estimate.point)
        .number("variance", rate.variance)
        .interval(|level| format!("ci{level}"), rate.estimate.interval)
        .done())
}

fn ordinal(input: &Input) -> Computed {
    // Any ordered numbers may name the categories; only their order counts.
    let y = input.numbers("y")?;
    let mut levels = y.clone();
    levels.sort_by(f64::total_cmp);
    levels.dedup_by(|a, b| a == b);
    let y: Vec<usize> = y.iter().map(|v| levels.partition_point(|l| l < v)).collect();
    let fit = ordinal_logit(&input.numbers("x")?, &y)?;
    Ok(Fields::default()
        .number("beta", fit.slope)
        .put("thresholds", numbers(&fit.thresholds))
        .number("loglik", fit.log_likelihood)
        .done())
}

fn jackknife(input: &Input) -> Computed {
    let x = input.numbers("x")?;
    let statistic = match input.values.get("stat").and_then(Value::as_str) {
        None | Some("mean") => mean,
        Some("median") => median,
        Some("variance" | "var") => variance,
        Some(other) => return Err(Trouble::Input(format!("`{other}` is no statistic"))),
    };
    let without = |i: usize| {
        let mut rest = x.clone();
        rest.remove(i);
        statistic(&rest)
    };
    let values = (0..x.len()).map(without).collect::<Result<Vec<f64>, _>>()?;
    let weights = vec![1.0; values.len()];
    Ok(Fields::default().put("acceleration", defined(acceleration(&values, &weights))).done())
}
