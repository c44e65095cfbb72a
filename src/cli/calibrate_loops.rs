//! Calibrated loops in words: the five ways to be wrong, and accepts by generation.

use super::printer::{plural, table};
use crate::calibration::figure::{Figure, Measured};
use crate::calibration::loops::LoopReport;
use crate::stats::{Defined, Estimate};

pub(super) fn text(report: &LoopReport) -> String {
    let mut text = format!(
        "{} of at most {}: {} become good, {} never do",
        plural(report.loops, "loop", "loops"),
        plural(u64::from(report.generations), "generation", "generations"),
        report.complete,
        report.never_complete,
    );
    let facts = [
        (report.censored, "stopped while bad, counted as accepted at every threshold"),
        (report.relapsed, "good and bad again later, for which the bound is an upper one"),
        (report.left_out, "left out: a generation has no label"),
    ];
    for (n, what) in facts.iter().filter(|(n, _)| *n > 0) {
        text.push_str(&format!("; {n} {what}"));
    }
    if let Some(at) = report.stopped_at {
        text.push_str(&format!(
            "\nThe log was recorded while accepting at about {at:.3}: of higher thresholds it says little"
        ));
    }
    let Some(estimands) = &report.estimands else {
        text.push_str("\nNo threshold could be fitted");
        return text;
    };
    let origin = report.threshold_origin;
    let rows = [
        ("check_false_positive_rate", &estimands.check_false_positive_rate),
        ("trajectory_false_positive_rate", &estimands.trajectory_false_positive_rate),
        ("premature_rate", &estimands.premature_rate),
        ("false_acceptance_share", &estimands.false_acceptance_share),
        ("missed_rate", &estimands.missed_rate),
    ]
    .into_iter()
    .map(|(name, value)| row(name, value))
    .collect();
    text.push_str(&format!("\n\nAt the {origin} threshold:\n"));
    text.push_str(&table(&["estimand", "value", "lower", "upper", "n"], rows, &[1, 2, 3, 4]));
    let rows = report
        .by_generation
        .iter()
        .map(|own| {
            vec![
                own.generation.to_string(),
                own.reached.to_string(),
                own.accepted.to_string(),
                own.bad.to_string(),
                share(&own.false_acceptance_share),
            ]
        })
        .collect();
    text.push_str("\n\n");
    text.push_str(&table(
        &["generation", "reached", "accepted", "bad", "bad of accepted"],
        rows,
        &[0, 1, 2, 3, 4],
    ));
    text.push_str(&format!(
        "\nBad of first accepts: {}; of later ones: {}",
        share(&report.first_accepts),
        share(&report.late_accepts)
    ));
    text
}

fn row(name: &str, value: &Defined<Estimate>) -> Vec<String> {
    let figure = value.as_ref().ok().map(|estimate| Figure::from(*estimate));
    let Some(figure) = figure else {
        let mut row = vec![name.to_owned(), "undefined".to_owned()];
        row.extend([String::new(), String::new(), "0".to_owned()]);
        return row;
    };
    vec![
        name.to_owned(),
        format!("{:.3}", figure.estimate),
        format!("{:.3}", figure.lower),
        format!("{:.3}", figure.upper),
        figure.n.to_string(),
    ]
}

fn share(value: &Measured<Figure>) -> String {
    value.value().map_or("undefined".to_owned(), |figure| {
        format!(
            "{:.3} [{:.3}, {:.3}] (n = {})",
            figure.estimate, figure.lower, figure.upper, figure.n
        )
    })
}
