//! Aggregation, latent models, dependence, shrinkage, drift, the alternative annotator.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::input::{Fields, Input, as_number, defined, number, numbers, parameters, whole};
use super::{Computed, Trouble};
use venire::stats::aggregate::{
    decision_key, hodges_lehmann, lower_median, maximum, median_absolute_deviation, minimum,
    trimmed_mean, upper_median, weighted_mean, weighted_median,
};
use venire::stats::alternative_annotator::{
    Scoring, Settings, alternative_annotator, margin_rank_test, margin_t_test,
};
use venire::stats::dependence::{
    best_combination, effective_judges, effective_judges_of, log_odds_weight, majority_accuracy,
    majority_accuracy_correlated,
};
use venire::stats::drift::{
    bernoulli_cusum, chi_squared, cusum, ewma, ewma_limit, jensen_shannon, stability_index,
};
use venire::stats::latent::dawid_skene::most_probable;
use venire::stats::latent::{DawidSkene, Fit, Observations, OneCoin, triplet};
use venire::stats::shrinkage::{beta_binomial_shrinkage, empirical_bayes};
use venire::stats::summary::{mean, median};
use venire::stats::two_sample::{kolmogorov_smirnov, mann_whitney, wasserstein};

/// Where the repository of the alternative-annotator data lies, when it is at hand.
const ANNOTATION_DATA: &str = "VENIRE_ALT_TEST_DATA";

pub(crate) fn compute(stat: &str, input: &Input) -> Computed {
    match stat {
        "panel_aggregate" => aggregate(input),
        "panel_aggregate_tiebreak" => keys(input),
        "dawid_skene" => latent(input),
        "triplet_accuracy" => {
            let r = triplet(input.number("E12")?, input.number("E13")?, input.number("E23")?)?;
            Ok(Fields::default()
                .put("a", numbers(&r.correlation))
                .put("accuracy", numbers(&r.accuracy))
                .done())
        }
        "effective_judges" => effective(input),
        "majority_accuracy" => by_case(input, "acc", |row| match row {
            [m, p] => Ok(majority_accuracy(*m as u64, *p)),
            _ => Err(Trouble::Input("a case is not (judges, accuracy)".into())),
        }),
        "majority_accuracy_correlated" => by_case(input, "acc", |row| match row {
            [m, p, rho] => Ok(majority_accuracy_correlated(*m as u64, *p, *rho)),
            _ => Err(Trouble::Input("a case is not (judges, accuracy, correlation)".into())),
        }),
        "blue_combination" => {
            let best = best_combination(&input.matrix("cov")?)?;
            Ok(Fields::default()
                .put("weights", numbers(&best.weights))
                .number("var", best.variance)
                .done())
        }
        "optimal_vote_weights" => {
            let weights = input.numbers("acc")?.into_iter().map(|p| defined(log_odds_weight(p)));
            Ok(Fields::default().put("w", weights.collect::<Value>()).done())
        }
        "empirical_bayes_bias" => {
            let r = empirical_bayes(&input.numbers("bias")?, &input.numbers("var")?)?;
            Ok(Fields::default()
                .number("tau2_dl", r.tau2)
                .number("tau2_pm", r.tau2_paule_mandel)
                .number("mu_dl", r.mean)
                .number("se_mu", r.mean_standard_error)
                .put("shrunk", numbers(&r.shrunk))
                .number("Q", r.q)
                .done())
        }
        "beta_binomial_shrinkage" => {
            let r = beta_binomial_shrinkage(&input.counts("k")?, &input.counts("n")?)?;
            Ok(Fields::default()
                .number("mu", r.mean)
                .put("raw", numbers(&r.raw))
                .number("rho", r.correlation)
                .put("shrunk", numbers(&r.shrunk))
                .done())
        }
        "ks_2samp" => two_samples(input),
        "psi" => histograms(input),
        "cusum" => {
            let chart = cusum(
                &input.numbers("x")?,
                input.number_or("k", 0.5)?,
                input.number_or("h", 5.0)?,
            )?;
            Ok(Fields::default()
                .put("upper", numbers(&chart.upper))
                .put("lower", numbers(&chart.lower))
                .put("alarm_index", json!(chart.alarm))
                .done())
        }
        "bernoulli_cusum" => {
            let chart =
                bernoulli_cusum(&input.flags("x")?, input.number("p0")?, input.number("p1")?)?;
            Ok(Fields::default().put("S", numbers(&chart)).done())
        }
        "ewma" => moving_average(input),
        "alt_test" => annotators(input),
        "alt_test_pvalue" => {
            let (diff, epsilon) = (input.numbers("diff")?, input.number("epsilon")?);
            let t = margin_t_test(&diff, epsilon);
            Ok(Fields::default()
                .defined("t", t.map(|r| r.t))
                .defined("p", t.map(|r| r.p))
                .defined("wilcoxon_p", margin_rank_test(&diff, epsilon))
                .done())
        }
        _ => Err(Trouble::Unknown),
    }
}

fn by_case(
    input: &Input,
    name: &str,
    one: impl Fn(&[f64]) -> Result<venire::stats::Defined, Trouble>,
) -> Computed {
    let values = input
        .matrix("cases")?
        .iter()
        .map(|row| one(row).map(defined))
        .collect::<Result<Vec<Value>, Trouble>>()?;
    Ok(Fields::default().put(name, values).done())
}

fn aggregate(input: &Input) -> Computed {
    let votes = input.numbers("scores")?;
    let mut fields = Fields::default();
    fields
        .defined("median", median(&votes))
        .defined("lower_median", lower_median(&votes))
        .defined("upper_median", upper_median(&votes))
        .defined("mean", mean(&votes))
        .defined("hodges_lehmann", hodges_lehmann(&votes))
        .defined("mad", median_absolute_deviation(&votes))
        .defined("min", minimum(&votes))
        .defined("max", maximum(&votes));
    if input.has("weights") {
        let weights = input.numbers("weights")?;
        fields
            .defined("lower_weighted_median", weighted_median(&votes, &weights))
            .defined("weighted_mean", weighted_mean(&votes, &weights));
    }
    for (name, _) in input.fields() {
        if let Some([percent]) = parameters(name, ["trimmed"]) {
            fields.defined(name, trimmed_mean(&votes, percent / 100.0));
        }
    }
    Ok(fields.done())
}

fn keys(input: &Input) -> Computed {
    let keys = input
        .matrix("panels")?
        .iter()
        .map(|votes| {
            decision_key(votes)
                .map_or_else(super::input::undefined, |k| numbers(&[k.median, k.mean]))
        })
        .collect::<Vec<Value>>();
    Ok(Fields::default().put("keys", keys).done())
}

fn latent(input: &Input) -> Computed {
    let classes = input.count("K")? as usize;
    let rows = input
        .array("observations_item_rater_label")?
        .iter()
        .map(|row| match row.as_array().map(Vec::as_slice) {
            Some([item, rater, label]) => Some((whole(item)?, whole(rater)?, whole(label)?)),
            _ => None,
        })
        .collect::<Option<Vec<(u64, u64, u64)>>>()
        .ok_or_else(|| Trouble::Input("an observation is not (item, rater, label)".into()))?;
    // Labels are numbered from 1, or from 0 where a 0 occurs.
    let base = u64::from(rows.iter().all(|r| r.2 > 0));
    let rows: Vec<(usize, usize, usize)> =
        rows.iter().map(|r| (r.0 as usize, r.1 as usize, (r.2 - base) as usize)).collect();
    let data = Observations::new(&rows, classes)?;
    let exact = |smoothing| Fit { smoothing, tolerance: 1e-12, max_iterations: 50_000 };
    let last = |trace: &[f64]| trace.last().copied().map_or(Value::Null, number);
    let labels = |posterior: &[f64]| -> Value {
        most_probable(posterior, classes).into_iter().map(|c| json!(c as u64 + base)).collect()
    };
    let model = DawidSkene::fit(&data, exact(0.0))?;
    let mut fields = Fields::default();
    fields
        .put("class_prior", numbers(&model.class_prior))
        .put("log_likelihood", last(&model.log_likelihood))
        .put("map_labels", labels(&model.posterior));
    for (name, _) in input.fields() {
        if let Some([row]) = parameters(name, ["posterior_row_"]) {
            let at = row as usize * classes;
            if let Some(q) = model.posterior.get(at..at + classes) {
                fields.put(name, numbers(q));
            }
        } else if let Some([rater]) = parameters(name, ["confusion_rater"]) {
            let rater = rater as usize;
            if rater < data.raters() {
                let row = |c| -> Value {
                    (0..classes).map(|l| number(model.confusion_of(rater, c, l))).collect()
                };
                fields.put(name, (0..classes).map(row).collect::<Value>());
            }
        } else if let Some(digits) = name.strip_prefix("smooth") {
            // `smooth001` is 0.01, `smooth1` is 1.
            let (whole, rest) = digits.split_at(digits.len().min(1));
            let Ok(smoothing) = format!("{whole}.{rest}0").parse::<f64>() else { continue };
            let smooth = DawidSkene::fit(&data, exact(smoothing))?;
            let entry = Fields::default()
                .put("class_prior", numbers(&smooth.class_prior))
                .put("log_likelihood", last(&smooth.log_likelihood))
                .put("map_labels", labels(&smooth.posterior))
                .done();
            fields.put(name, entry);
        }
    }
    let coin = OneCoin::fit(&data, exact(0.0))?;
    let coin = Fields::default()
        .put("class_prior", numbers(&coin.class_prior))
        .put("log_likelihood", last(&coin.log_likelihood))
        .put("accuracy", numbers(&coin.accuracy))
        .put("map_labels", labels(&coin.posterior))
        .done();
    Ok(fields.put("one_coin", coin).done())
}

fn effective(input: &Input) -> Computed {
    let n_eff = input
        .matrix("cases")?
        .iter()
        .map(|row| match row[..] {
            [m, rho] => Ok(defined(effective_judges(m as u64, rho))),
            _ => Err(Trouble::Input("a case is not (judges, correlation)".into())),
        })
        .collect::<Result<Vec<Value>, Trouble>>()?;
    let mut fields = Fields::default();
    fields.put("n_eff", n_eff);
    // The format keeps the matrix beside its result.
    let inner = input.values.get("matrix_case").or_else(|| input.expected.get("matrix_case"));
    if let Some(inner) = inner {
        let matrix = Input { values: inner, expected: inner }.matrix("C")?;
        let echo: Value = matrix.iter().map(|row| numbers(row)).collect();
        let entry =
            Fields::default().put("C", echo).defined("n_eff", effective_judges_of(&matrix)).done();
        fields.put("matrix_case", entry);
    }
    Ok(fields.done())
}

fn two_samples(input: &Input) -> Computed {
    let (a, b) = (input.numbers("a")?, input.numbers("b")?);
    let (ks, u) = (kolmogorov_smirnov(&a, &b)?, mann_whitney(&a, &b)?);
    Ok(Fields::default()
        .number("D", ks.statistic)
        .number("p", ks.p)
        .defined("wasserstein", wasserstein(&a, &b))
        .number("mannwhitney_u", u.statistic)
        .number("mannwhitney_p", u.p)
        .done())
}

fn histograms(input: &Input) -> Computed {
    let (before, now) = (input.numbers("baseline_counts")?, input.numbers("current_counts")?);
    let test = chi_squared(&before, &now);
    Ok(Fields::default()
        .defined("psi", stability_index(&before, &now).map(|s| s.value))
        .defined("js_divergence_nats", jensen_shannon(&before, &now))
        .defined("chi2", test.map(|t| t.statistic))
        .defined("chi2_p", test.map(|t| t.p))
        .done())
}

fn moving_average(input: &Input) -> Computed {
    let lambda = input.number_or("lambda", 0.2)?;
    let z = ewma(&input.numbers("x")?, lambda)?;
    let mut fields = Fields::default();
    fields.put("z", numbers(&z));
    for (name, _) in input.fields() {
        if let Some([width, t]) = parameters(name, ["limit_sigma_", "_t"]) {
            let sigma = input.number_or("sigma", 1.0)?;
            fields.defined(name, ewma_limit(lambda, width, sigma, t as u32));
        }
    }
    Ok(fields.done())
}

type Annotations = BTreeMap<String, f64>;

/// Annotations of one person; words become the numbers of `codes`.
fn annotations(value: &Value, codes: &mut BTreeMap<String, f64>) -> Option<Annotations> {
    value
        .as_object()?
        .iter()
        .filter(|(_, v)| !v.is_null())
        .map(|(instance, v)| {
            let number = match as_number(v) {
                Some(number) => number,
                None => {
                    let next = codes.len() as f64;
                    // Words are coded apart from numbers, so the two never meet by accident.
                    *codes.entry(v.to_string()).or_insert(-1.0e9 - next)
                }
            };
            Some((instance.clone(), number))
        })
        .collect()
}

fn annotator_test(
    people: &Value,
    judge: &Value,
    settings: Settings,
) -> Result<venire::stats::alternative_annotator::AlternativeAnnotator, Trouble> {
    let broken = || Trouble::Input("annotations are not objects of instance and value".into());
    let mut codes = BTreeMap::new();
    let people = people
        .as_object()
        .ok_or_else(broken)?
        .values()
        .map(|v| annotations(v, &mut codes))
        .collect::<Option<Vec<Annotations>>>()
        .ok_or_else(broken)?;
    let judge = annotations(judge, &mut codes).ok_or_else(broken)?;
    Ok(alternative_annotator(&people, &judge, settings)?)
}

fn annotators(input: &Input) -> Computed {
    let base = Settings {
        level: input.number_or("q_fdr", 0.05)?,
        minimum_people: input.number_or("min_humans_per_instance", 2.0)? as usize,
        minimum_instances: input.number_or("min_instances_per_human", 30.0)? as usize,
        ..Settings::default()
    };
    let settings = |fields: &Value| -> Result<Settings, Trouble> {
        let scoring = match fields.get("scoring").and_then(Value::as_str) {
            None | Some("accuracy") => Scoring::Accuracy,
            Some("neg_rmse") => Scoring::NegRmse,
            Some(other) => return Err(Trouble::Input(format!("`{other}` is no scoring"))),
        };
        let epsilon = fields.get("epsilon").and_then(as_number).unwrap_or(base.epsilon);
        Ok(Settings { epsilon, scoring, ..base })
    };
    let entry = |people: &Value, judge: &Value, settings: Settings| {
        let r = annotator_test(people, judge, settings)?;
        Ok::<Value, Trouble>(
            Fields::default()
                .number("epsilon", settings.epsilon)
                .put("scoring", json!(settings.scoring))
                .number("winning_rate", r.winning_rate)
                .number("advantage_prob", r.advantage)
                .put("n_annotators_tested", r.people.len())
                .put("published", numbers(&[r.winning_rate, r.advantage]))
                .put("match", true)
                .done(),
        )
    };
    if input.has("humans") {
        return entry(input.get("humans")?, input.get("llm")?, settings(input.values)?);
    }
    let Some(folder) = std::env::var_os(ANNOTATION_DATA).map(PathBuf::from) else {
        return Err(Trouble::NoData(format!(
            "the annotations are not in the file: set `{ANNOTATION_DATA}` to a copy of {}",
            input.values.get("data_repo").unwrap_or(&Value::Null)
        )));
    };
    let read = |set: &str, file: &str| -> Result<Value, Trouble> {
        let path = folder.join("data").join(set).join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Trouble::NoData(format!("`{}`: {error}", path.display())))?;
        serde_json::from_str(&text)
            .map_err(|error| Trouble::Input(format!("`{}`: {error}", path.display())))
    };
    let mut fields = Fields::default();
    for (name, row) in input.fields() {
        let Some((set, judge)) = name.split_once('/') else { continue };
        let people = read(set, "human_annotations.json")?;
        let judges = read(set, "llm_annotations.json")?;
        let judge = judges.get(judge).unwrap_or(&Value::Null);
        fields.put(name, entry(&people, judge, settings(row)?)?);
    }
    Ok(fields.done())
}
