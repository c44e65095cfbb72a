//! Certificates, risk bounds, evidence, loops, multiplicity, paired tests, sampling.

use serde_json::{Value, json};

use super::input::{
    Fields, Input, as_number, defined, number, numbers, parameters, row_count, row_number,
};
use super::{Computed, Trouble};
use venire::stats::certificate::{
    Threshold, allowed_false_accepts, certify_threshold, needed_negatives,
};
use venire::stats::evidence::{Calibrator, conformal_p, e_process, e_value, likelihood_ratio};
use venire::stats::interval::rule_of_three;
use venire::stats::looping::{
    Check, Replay, false_accept_correlated, false_accept_independent, largest_incomplete_score,
    retry_gate,
};
use venire::stats::multiplicity::{benjamini_hochberg, benjamini_yekutieli, bonferroni, holm};
use venire::stats::paired::{cochran_q, mcnemar};
use venire::stats::risk::{
    bentkus_p, betting_upper, empirical_bernstein_upper, exact_p, hoeffding_bentkus_p,
    hoeffding_kl_p, hoeffding_upper,
};
use venire::stats::sampling::{neyman, proportion_sample_size};
use venire::stats::summary::mean;

pub(crate) fn compute(stat: &str, input: &Input) -> Computed {
    match stat {
        "risk_pvalue" => risk(input),
        "ucb_bounded_mean" => bounds(input),
        "certified_threshold_kstar" => allowed(input),
        "min_negatives" => needed(input),
        "certified_threshold" => threshold(input),
        "conformal_pvalue" => conformal(input),
        "p_to_e_process" => process(input),
        "p_to_e" => calibrators(input),
        "bernoulli_likelihood_ratio" => {
            let ratio =
                likelihood_ratio(&input.flags("x")?, input.number("p0")?, input.number("p1")?)?;
            Ok(Fields::default().put("lr", numbers(&ratio)).done())
        }
        "loop_false_accept" => false_accept(input),
        "retry_gate" => gate(input),
        "loop_false_positive" => replay(input),
        "p_adjust" => adjusted(input),
        "mcnemar" => paired(input),
        "cochran_q" => {
            let test = cochran_q(&input.flag_matrix("items_x_judges")?)?;
            Ok(Fields::default().number("Q", test.statistic).number("p", test.p).done())
        }
        "neyman_allocation" => {
            let split = neyman(&input.numbers("N")?, &input.numbers("S")?, input.count("n")?)?;
            Ok(Fields::default()
                .put("n_h", numbers(&split.optimal))
                .put("proportional", numbers(&split.proportional))
                .number("var_neyman", split.variance)
                .done())
        }
        "sample_size" => sample_size(input),
        _ => Err(Trouble::Unknown),
    }
}

fn risk(input: &Input) -> Computed {
    let (k, n, alpha) = (input.count("k")?, input.count("n")?, input.number("alpha")?);
    Ok(Fields::default()
        .defined("hoeffding_kl", hoeffding_kl_p(k, n, alpha))
        .defined("bentkus", bentkus_p(k, n, alpha))
        .defined("hb", hoeffding_bentkus_p(k, n, alpha))
        .defined("exact_binomial", exact_p(k, n, alpha))
        .done())
}

fn bounds(input: &Input) -> Computed {
    let (x, delta) = (input.numbers("x")?, input.number("delta")?);
    Ok(Fields::default()
        .defined("wsr", betting_upper(&x, delta))
        .defined("empirical_bernstein_mp", empirical_bernstein_upper(&x, delta))
        .defined("hoeffding", hoeffding_upper(&x, delta))
        .defined("mean", mean(&x))
        .done())
}

/// A copy of each query row with the answer under `key`.
fn answered(
    input: &Input,
    key: &str,
    answer: impl Fn(&Value) -> Result<Value, Trouble>,
) -> Computed {
    let rows = input
        .rows()?
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row[key] = answer(&row)?;
            Ok(row)
        })
        .collect::<Result<Vec<Value>, Trouble>>()?;
    Ok(json!({ "rows": rows }))
}

/// k*, with -1 for "cannot certify" as the format writes it.
fn allowed_or_minus_one(allowed: Option<u64>) -> Value {
    allowed.map_or_else(|| json!(-1), |k| json!(k))
}

fn allowed(input: &Input) -> Computed {
    answered(input, "k_star", |row| {
        let (alpha, delta) = (row_number(row, "alpha")?, row_number(row, "delta")?);
        Ok(allowed_or_minus_one(allowed_false_accepts(row_count(row, "n")?, alpha, delta)?))
    })
}

fn needed(input: &Input) -> Computed {
    answered(input, "n_min", |row| {
        let (alpha, delta) = (row_number(row, "alpha")?, row_number(row, "delta")?);
        Ok(json!(needed_negatives(row_count(row, "k")?, alpha, delta)?))
    })
}

fn threshold(input: &Input) -> Computed {
    let bad = input.numbers("neg_scores")?;
    let delta = input.number("delta")?;
    let candidates =
        if input.has("candidates") { input.numbers("candidates")? } else { bad.clone() };
    let mut fields = Fields::default();
    fields.put("n", bad.len());
    let mut at = |suffix: &str, alpha: f64| -> Result<(), Trouble> {
        let allowed = allowed_false_accepts(bad.len() as u64, alpha, delta)?;
        // The format writes "not certifiable" as a threshold nothing reaches.
        let value = match certify_threshold(&bad, &candidates, alpha, delta)? {
            Threshold::Certified { threshold, .. } => threshold,
            Threshold::TooFewNegatives { .. } | Threshold::Ties { .. } => f64::INFINITY,
        };
        fields
            .put(format!("k_star{suffix}"), allowed_or_minus_one(allowed))
            .number(format!("threshold{suffix}"), value);
        Ok(())
    };
    at("", input.number("alpha")?)?;
    for (name, _) in input.fields() {
        if let Some([percent]) = parameters(name, ["threshold_alpha"]) {
            at(&format!("_alpha{percent:02}"), percent / 100.0)?;
        }
    }
    Ok(fields.done())
}

fn conformal(input: &Input) -> Computed {
    let reference = input.numbers("reference")?;
    let p = input.numbers("test")?.into_iter().map(|s| defined(conformal_p(&reference, s)));
    Ok(Fields::default().put("p", p.collect::<Value>()).done())
}

fn process(input: &Input) -> Computed {
    let calibrator = if input.has("kappa") || !input.has("calibrator") {
        Calibrator::Power { kappa: input.number_or("kappa", 0.5)? }
    } else {
        Calibrator::Integrated
    };
    let run = e_process(
        &input.numbers("reference")?,
        &input.numbers("scores")?,
        calibrator,
        input.number_or("alpha", 0.05)?,
    )?;
    Ok(Fields::default()
        .put("p", numbers(&run.p))
        .put("e", numbers(&run.e))
        .put("cumulative", numbers(&run.cumulative))
        .put("release", json!(run.release))
        .done())
}

fn calibrators(input: &Input) -> Computed {
    let p = input.numbers("p")?;
    let all =
        |calibrator| -> Value { p.iter().map(|p| defined(e_value(*p, calibrator))).collect() };
    let kappa = input.number_or("kappa", 0.5)?;
    Ok(Fields::default()
        .put("e", all(Calibrator::Integrated))
        .put("sqrt_calibrator", all(Calibrator::Power { kappa: 0.5 }))
        .put("power_calibrator", all(Calibrator::Power { kappa }))
        .done())
}

fn false_accept(input: &Input) -> Computed {
    let mut fields = Fields::default();
    for (name, _) in input.fields() {
        if let Some([rate, checks]) = parameters(name, ["iid_f", "_K"]) {
            fields.defined(name, false_accept_independent(rate, checks as u32));
        }
        if let Some([rate, rho, checks]) = parameters(name, ["betabin_f", "_rho", "_K"]) {
            fields.defined(name, false_accept_correlated(rate, rho, checks as u32));
        }
    }
    Ok(fields.done())
}

fn gate(input: &Input) -> Computed {
    let rows = input
        .matrix("cases")?
        .into_iter()
        .map(|row| match row[..] {
            [success, sensitivity, false_positive_rate, checks] => {
                let gate = retry_gate(success, sensitivity, false_positive_rate, checks as u32);
                Ok(gate.map_or_else(super::input::undefined, |gate| {
                    Fields::default()
                        .number("accept", gate.accept)
                        .number("true_accept", gate.true_accept)
                        .number("false_accept", gate.false_accept)
                        .number("fdr", gate.false_acceptance_share)
                        .number("expected_checks", gate.expected_checks)
                        .done()
                }))
            }
            _ => Err(Trouble::Input("a case of `cases` is not four numbers".into())),
        })
        .collect::<Result<Vec<Value>, Trouble>>()?;
    Ok(json!({ "rows": rows }))
}

fn replay(input: &Input) -> Computed {
    let list = |value: &Value, key: &str| -> Result<Vec<Option<f64>>, Trouble> {
        let broken =
            || Trouble::Input(format!("a trajectory's `{key}` is not an array of numbers"));
        value
            .get(key)
            .and_then(Value::as_array)
            .ok_or_else(broken)?
            .iter()
            .map(|v| as_number(v).map(|n| (!n.is_nan()).then_some(n)).ok_or_else(broken))
            .collect()
    };
    let trajectories = input
        .array("trajectories")?
        .iter()
        .map(|trajectory| {
            let (scores, complete) = (list(trajectory, "scores")?, list(trajectory, "complete")?);
            if scores.len() != complete.len() {
                return Err(Trouble::Input("`scores` and `complete` differ in length".into()));
            }
            Ok(scores
                .into_iter()
                .zip(complete)
                .map(|(score, complete)| Check { score, complete: complete == Some(1.0) })
                .collect())
        })
        .collect::<Result<Vec<Vec<Check>>, Trouble>>()?;
    let views: Vec<&[Check]> = trajectories.iter().map(Vec::as_slice).collect();
    let rows: Vec<Value> = input
        .numbers("thresholds")?
        .into_iter()
        .map(|threshold| {
            let r = Replay::at(&views, threshold);
            json!({
                "threshold": threshold,
                "accept": r.accepted,
                "false_accept": r.false_accepted,
                "true_accept": r.true_accepted,
                "never_complete": r.never_complete,
                "false_accept_never_complete": r.false_accepted_never_complete,
                "premature": r.premature,
                "missed": r.missed,
            })
        })
        .collect();
    let largest: Vec<Value> =
        views.iter().map(|t| largest_incomplete_score(t).map_or(Value::Null, number)).collect();
    Ok(json!({ "rows": rows, "max_incomplete_score": largest }))
}

fn adjusted(input: &Input) -> Computed {
    let p = input.numbers("p")?;
    Ok(Fields::default()
        .put("bonferroni", numbers(&bonferroni(&p)?))
        .put("holm", numbers(&holm(&p)?))
        .put("fdr_bh", numbers(&benjamini_hochberg(&p)?))
        .put("fdr_by", numbers(&benjamini_yekutieli(&p)?))
        .done())
}

fn paired(input: &Input) -> Computed {
    let table = input.count_matrix("table")?;
    let [a, b] = &table[..] else {
        return Err(Trouble::Input("`table` is not 2 x 2".into()));
    };
    let ([_, first], [second, _]) = (&a[..], &b[..]) else {
        return Err(Trouble::Input("`table` is not 2 x 2".into()));
    };
    let test = mcnemar(*first, *second);
    Ok(Fields::default()
        .number("exact_p", test.exact_p)
        .number("mid_p", test.mid_p)
        .number("chi2_cc", test.chi_squared)
        .number("chi2_cc_p", test.chi_squared_p)
        .done())
}

fn sample_size(input: &Input) -> Computed {
    let mut fields = Fields::default();
    for (name, _) in input.fields() {
        if let Some([half, rate]) = parameters(name, ["half_width_", "_p"]) {
            fields.put(name, proportion_sample_size(half, rate, input.level()?)?);
        }
        if let Some([percent, n]) = parameters(name, ["rule_of_three_", "_n"]) {
            fields.defined(name, rule_of_three(n as u64, 1.0 - percent / 100.0));
        }
    }
    Ok(fields.done())
}
