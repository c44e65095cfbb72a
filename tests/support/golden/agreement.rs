//! Agreement, correlation and comparison cases.

use serde_json::Value;

use super::input::{Fields, Input, defined, ends, number, parameters};
use super::{Computed, Trouble};
use venire::stats::agreement::{
    CategoryTable, Level, Weighting, cronbach_alpha, fleiss_kappa, gwet_coefficients, icc,
    krippendorff_alpha,
};
use venire::stats::bland_altman::{bland_altman, bland_altman_with};
use venire::stats::confusion::Confusion;
use venire::stats::consistency::{position_bias, self_consistency};
use venire::stats::correlation::{
    correlation_p, kendall_p, kendall_tau_b, kendall_tau_c, lin_concordance, pearson,
    pearson_estimate, somers_d, spearman,
};
use venire::stats::interval::{
    agresti_coull, clopper_pearson, clopper_pearson_lower, clopper_pearson_upper, jeffreys, wilson,
};
use venire::stats::{Defined, Estimate};

pub(crate) fn compute(stat: &str, input: &Input) -> Computed {
    match stat {
        "binary_confusion" => confusion(input),
        "proportion_interval" => proportion(input),
        "cohen_kappa" | "cohen_kappa_vs_ac1" => cohen(input),
        "cohen_kappa_weighted_se" => weighted(input),
        "cohen_kappa_category_gap" => category_gap(input),
        "fleiss_kappa" => fleiss(input),
        "krippendorff_alpha" => krippendorff(input),
        "gwet_ac" => gwet(input),
        "icc" => intraclass(input),
        "cronbach_alpha" => {
            let alpha = defined(cronbach_alpha(&input.matrix("targets_x_raters")?));
            Ok(Fields::default().put("alpha", alpha.clone()).put("equals_icc3k", alpha).done())
        }
        "correlation" => correlation(input),
        "lin_concordance" => {
            let ccc = lin_concordance(&input.numbers("x")?, &input.numbers("y")?)?;
            Ok(Fields::default().number("ccc", ccc).done())
        }
        "bland_altman" => differences(input),
        "self_consistency" => consistency(input),
        "position_bias" => position(input),
        _ => Err(Trouble::Unknown),
    }
}

fn confusion(input: &Input) -> Computed {
    let table = Confusion::from_decisions(&input.flags("gold")?, &input.flags("judge")?)?;
    let rates = table.rates();
    Ok(Fields::default()
        .put("tp", table.true_positive)
        .put("fn", table.false_negative)
        .put("fp", table.false_positive)
        .put("tn", table.true_negative)
        .defined("tpr", rates.true_positive_rate)
        .defined("tnr", rates.true_negative_rate)
        .defined("fpr", rates.false_positive_rate)
        .defined("fnr", rates.false_negative_rate)
        .defined("precision", rates.precision)
        .defined("npv", rates.negative_predictive_value)
        .defined("false_discovery_rate", rates.false_acceptance_share)
        .defined("accuracy", rates.accuracy)
        .defined("balanced_accuracy", rates.balanced_accuracy)
        .defined("youden_j", rates.youden_j)
        .defined("f1", rates.f1)
        .defined("mcc", rates.matthews)
        .defined("kappa", rates.kappa)
        .done())
}

fn proportion(input: &Input) -> Computed {
    let (k, n, level) = (input.count("k")?, input.count("n")?, input.level()?);
    let mut fields = Fields::default();
    type IntervalOf = fn(u64, u64, f64) -> Defined<Estimate>;
    let methods: [(&str, IntervalOf); 4] = [
        ("wilson", wilson),
        ("clopper_pearson", clopper_pearson),
        ("jeffreys", jeffreys),
        ("agresti_coull", agresti_coull),
    ];
    for (name, method) in methods {
        fields.put(name, ends(method(k, n, level)?.interval));
    }
    for (name, _) in input.fields() {
        if let Some([percent]) = parameters(name, ["cp_upper_one_sided_"]) {
            fields.number(name, clopper_pearson_upper(k, n, 1.0 - percent / 100.0)?);
        }
        if let Some([percent]) = parameters(name, ["cp_lower_one_sided_"]) {
            fields.number(name, clopper_pearson_lower(k, n, 1.0 - percent / 100.0)?);
        }
    }
    Ok(fields.done())
}

fn distinct(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.into_iter().collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|a, b| a == b);
    all
}

/// The table of a case: given, or counted over its declared or observed categories.
fn table(input: &Input) -> Result<CategoryTable, Trouble> {
    if input.has("table") {
        return Ok(CategoryTable::new(input.count_matrix("table")?)?);
    }
    let (a, b) = (input.numbers("a")?, input.numbers("b")?);
    let domain = if input.has("categories") {
        input.numbers("categories")?
    } else {
        distinct(a.iter().chain(&b).copied())
    };
    Ok(CategoryTable::from_ratings(&a, &b, &domain)?)
}

fn cohen(input: &Input) -> Computed {
    let table = table(input)?;
    let mut fields = Fields::default();
    fields
        .defined("unweighted", table.kappa(Weighting::Unweighted))
        .defined("kappa", table.kappa(Weighting::Unweighted))
        .defined("linear", table.kappa(Weighting::Linear))
        .defined("quadratic", table.kappa(Weighting::Quadratic))
        .defined("max_kappa", table.max_kappa())
        .defined("scott_pi", table.scott_pi())
        .defined("po", table.observed_agreement())
        .defined("gwet_ac1", table.gwet_ac1())
        .defined("pabak", table.pabak());
    errors(&table, Weighting::Unweighted, input, &mut fields)?;
    Ok(fields.done())
}

fn errors(
    table: &CategoryTable,
    weighting: Weighting,
    input: &Input,
    fields: &mut Fields,
) -> Result<(), Trouble> {
    let estimate = table.kappa_estimate(weighting, input.level()?);
    fields
        .defined("se_nonnull", estimate.map(|e| e.standard_error))
        .defined("se_null", estimate.map(|e| e.standard_error_null));
    match estimate {
        Ok(e) => fields.interval(|level| format!("ci{level}"), e.estimate.interval),
        Err(undefined) => fields.put("ci95", super::input::undefined(undefined)),
    };
    Ok(())
}

fn weighted(input: &Input) -> Computed {
    let weighting = match input.values.get("weights").or_else(|| input.values.get("wt")) {
        None => Weighting::Quadratic,
        Some(name) => match name.as_str() {
            Some("quadratic") => Weighting::Quadratic,
            Some("linear") => Weighting::Linear,
            Some("unweighted" | "none") => Weighting::Unweighted,
            _ => return Err(Trouble::Input(format!("`{name}` is no weighting"))),
        },
    };
    let table = table(input)?;
    let mut fields = Fields::default();
    fields.defined("kappa", table.kappa(weighting));
    errors(&table, weighting, input, &mut fields)?;
    Ok(fields.done())
}

fn category_gap(input: &Input) -> Computed {
    let (a, b) = (input.numbers("a")?, input.numbers("b")?);
    let observed = distinct(a.iter().chain(&b).copied());
    let mut fields = Fields::default();
    for (prefix, weighting) in [("linear", Weighting::Linear), ("quadratic", Weighting::Quadratic)]
    {
        let kappa = |domain: &[f64]| {
            CategoryTable::from_ratings(&a, &b, domain).and_then(|t| t.kappa(weighting))
        };
        fields.defined(format!("{prefix}_observed_categories_index_distance"), kappa(&observed));
        for (name, _) in input.fields() {
            let Some(rest) = name.strip_prefix(prefix) else { continue };
            if let Some([first, last]) = parameters(rest, ["_full_domain_", "to"]) {
                let domain: Vec<f64> =
                    (first as i64..=last as i64).map(|category| category as f64).collect();
                fields.defined(name, kappa(&domain));
            }
        }
    }
    Ok(fields.done())
}

fn fleiss(input: &Input) -> Computed {
    let result = fleiss_kappa(&input.count_matrix("counts")?)?;
    Ok(Fields::default()
        .defined("kappa", result.kappa)
        .number("P_bar", result.observed)
        .number("P_e", result.expected)
        .defined("randolph_free_marginal", result.free_marginal)
        .defined("se_null_fleiss1979", result.standard_error_null)
        .done())
}

fn krippendorff(input: &Input) -> Computed {
    let raters = input.matrix("raters_x_units")?;
    let units = raters.first().map_or(0, Vec::len);
    if raters.iter().any(|row| row.len() != units) {
        return Err(Trouble::Input("`raters_x_units` is ragged".into()));
    }
    let units: Vec<Vec<f64>> = (0..units)
        .map(|u| raters.iter().map(|row| row[u]).filter(|v| !v.is_nan()).collect())
        .collect();
    let mut fields = Fields::default();
    for (name, level) in [
        ("nominal", Level::Nominal),
        ("ordinal", Level::Ordinal),
        ("interval", Level::Interval),
        ("ratio", Level::Ratio),
    ] {
        fields.defined(name, krippendorff_alpha(&units, level));
    }
    Ok(fields.done())
}

fn gwet(input: &Input) -> Computed {
    let rows = input.matrix("units_x_raters")?;
    let domain = if input.has("categories") {
        input.numbers("categories")?
    } else {
        distinct(rows.iter().flatten().copied().filter(|v| !v.is_nan()))
    };
    let units: Vec<Vec<Option<usize>>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|v| {
                    (!v.is_nan())
                        .then(|| domain.iter().position(|c| c == v).unwrap_or(domain.len()))
                })
                .collect()
        })
        .collect();
    let level = input.level()?;
    let of = |weighting| gwet_coefficients(&units, domain.len(), weighting, level);
    let plain = of(Weighting::Unweighted)?;
    let mut fields = Fields::default();
    fields
        .defined("ac1", plain.gwet.coefficient)
        .number("pa", plain.observed)
        .number("pe", plain.gwet.expected)
        .defined("irrcac_ac1_5dp", plain.gwet.coefficient)
        .defined("irrcac_ac1_se_5dp", plain.gwet_standard_error)
        .defined("irrcac_brennan_prediger_5dp", plain.brennan_prediger.coefficient)
        .defined("irrcac_fleiss_5dp", plain.fleiss.coefficient)
        .defined("irrcac_conger_5dp", plain.conger.coefficient);
    if let Ok(estimate) = plain.gwet_estimate {
        fields.interval(|level| format!("irrcac_ac1_ci{level}_5dp"), estimate.interval);
    }
    for (name, weighting) in [("quadratic", Weighting::Quadratic), ("linear", Weighting::Linear)] {
        let ac2 = of(weighting)?.gwet.coefficient;
        fields.defined(format!("ac2_{name}"), ac2).defined(format!("irrcac_ac2_{name}_5dp"), ac2);
    }
    Ok(fields.done())
}

fn intraclass(input: &Input) -> Computed {
    let r = icc(&input.matrix("targets_x_raters")?, input.level()?)?;
    let mut intervals = Fields::default();
    for (name, estimate) in [
        ("ICC(1,1)", r.one_way),
        ("ICC(A,1)", r.agreement),
        ("ICC(C,1)", r.consistency),
        ("ICC(1,k)", r.one_way_mean),
        ("ICC(A,k)", r.agreement_mean),
        ("ICC(C,k)", r.consistency_mean),
    ] {
        intervals.put(name, ends(estimate.interval));
    }
    let intervals = intervals.done();
    Ok(Fields::default()
        .number("msb", r.mean_square_targets)
        .number("msj", r.mean_square_raters)
        .number("mse", r.mean_square_error)
        .number("msw", r.mean_square_within)
        .number("icc1", r.one_way.point)
        .number("icc2", r.agreement.point)
        .number("icc3", r.consistency.point)
        .number("icc1k", r.one_way_mean.point)
        .number("icc2k", r.agreement_mean.point)
        .number("icc3k", r.consistency_mean.point)
        .put("ci95_2dp", intervals.clone())
        .put("ci95", intervals)
        .done())
}

fn correlation(input: &Input) -> Computed {
    let (x, y) = (input.numbers("x")?, input.numbers("y")?);
    let p = |r: Defined| r.and_then(|r| correlation_p(r, x.len()));
    let mut fields = Fields::default();
    fields
        .defined("kendall_tau_b", kendall_tau_b(&x, &y))
        .defined("kendall_p", kendall_p(&x, &y))
        .defined("kendall_tau_c", kendall_tau_c(&x, &y))
        .defined("spearman", spearman(&x, &y))
        .defined("spearman_p", p(spearman(&x, &y)))
        .defined("pearson", pearson(&x, &y))
        .defined("pearson_p", p(pearson(&x, &y)))
        .defined("somers_d_y_given_x", somers_d(&x, &y))
        .defined("somers_d_x_given_y", somers_d(&y, &x));
    match pearson_estimate(&x, &y, input.level()?) {
        Ok(e) => fields.interval(|level| format!("pearson_fisher_ci{level}"), e.interval),
        Err(undefined) => fields.put("pearson_fisher_ci95", super::input::undefined(undefined)),
    };
    Ok(fields.done())
}

fn differences(input: &Input) -> Computed {
    let (human, judge, level) = (input.numbers("human")?, input.numbers("judge")?, input.level()?);
    let r = if input.has("z") {
        bland_altman_with(&human, &judge, level, input.number("z")?)?
    } else {
        bland_altman(&human, &judge, level)?
    };
    Ok(Fields::default()
        .number("bias", r.bias.point)
        .number("sd", r.standard_deviation)
        .put("loa", ends(r.limits))
        .interval(|level| format!("bias_ci{level}"), r.bias.interval)
        .number("se_loa", r.limits_standard_error)
        .interval(|level| format!("loa_lower_ci{level}"), r.lower_limit)
        .interval(|level| format!("loa_upper_ci{level}"), r.upper_limit)
        .defined("paired_t", r.t)
        .defined("paired_p", r.p)
        .defined("proportional_bias_slope", r.proportional_bias)
        .number("mae", r.mean_absolute_error)
        .number("rmse", r.root_mean_squared_error)
        .done())
}

fn consistency(input: &Input) -> Computed {
    let rows: Vec<Vec<f64>> = input
        .matrix("items_x_repeats")?
        .into_iter()
        .map(|row| row.into_iter().filter(|v| !v.is_nan()).collect())
        .collect();
    let r = self_consistency(&rows)?;
    Ok(Fields::default()
        .number("pairwise_agreement", r.pairwise_agreement)
        .number("flip_rate", r.flip_rate)
        .number("unanimous", r.unanimous)
        .number("within_item_var", r.within_item_variance)
        .defined("fleiss", r.fleiss)
        .done())
}

fn position(input: &Input) -> Computed {
    let r = position_bias(
        &input.flags("first_order_wins_for_A")?,
        &input.flags("swapped_wins_for_A")?,
    )?;
    let value: Value = number(r.consistency);
    Ok(Fields::default()
        .put("consistency", value)
        .put("first_position_preference_flips", r.first_position_flips)
        .put("second_position_flips", r.second_position_flips)
        .number("p_sign", r.p)
        .done())
}
