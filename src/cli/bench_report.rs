//! A leaderboard for a person: what to conclude, then the table.

use super::figures::interval;
use super::printer::{Printer, plural, table};
use crate::calibration::certificate::CertificateStatus;
use crate::calibration::certified_alone::CertifiedAlone;
use crate::calibration::contender::ContenderKind;
use crate::calibration::figure::{Figure, Measured};
use crate::calibration::leaderboard::{Leaderboard, Row};

pub(super) fn show(board: &Leaderboard, printer: &Printer) {
    printer.result(&board.conclusion);
    printer.result("");
    printer.result(&joined(board));
    printer.result("");
    printer.result(&rows(board));
    printer.result("");
    if let Some(text) = certified(board) {
        printer.result(&text);
        printer.result("");
    }
    printer.result(
        "Intervals are 95 %. Contenders that share a letter can't be told apart (Holm-adjusted, 5 % over all pairs); baselines judge nothing. threshold: `fitted` for balanced accuracy, `declared` by you or the panel, `binary` the judge's own positive class, `majority` of such judges, `certified` to bound the bad that are accepted: strict by promise, so ranked by agreement against none of the others.",
    );
}

/// What may be promised of each; `None` where nothing may be of any.
fn certified(board: &Leaderboard) -> Option<String> {
    let is = |own: &&CertifiedAlone| own.status == CertificateStatus::Certified;
    board.certified.iter().find(is)?;
    let judges = board.certified.iter().map(|own| own.among).max().unwrap_or(1);
    let alpha = board.certified.first().map_or(0.0, |own| own.alpha);
    let rows = board
        .certified
        .iter()
        .map(|own| {
            let missing = own
                .labels_needed
                .map_or("not certifiable, no number of labels helps".to_owned(), |n| {
                    format!("not certifiable, {n} more bad cases needed, one a group")
                });
            vec![
                own.name.clone(),
                if is(&own) { interval(&own.true_positive_rate) } else { missing },
                own.n_bad.to_string(),
                format!("{:.4}", own.delta),
            ]
        })
        .collect();
    Some(format!(
        "Accepted of the good, where at most {alpha} of the bad are (certified; delta of a judge alone is divided by the {judges} that it is chosen from)\n{}",
        table(&["contender", "TPR", "bad", "delta"], rows, &[1, 2, 3])
    ))
}

fn joined(board: &Leaderboard) -> String {
    let counts = &board.counts;
    let mut text = match board.kind {
        "leaderboard" => "Compared".to_owned(),
        _ => "Agreement with a model's labels (not a comparison with the truth)".to_owned(),
    };
    text.push_str(&format!(
        " on criterion `{}`: {} ({} good, {} bad by `{}`)",
        board.criterion,
        plural(counts.cases, "labelled case", "labelled cases"),
        counts.good,
        counts.bad,
        board.positive,
    ));
    if let (Some(fit), Some(certify)) = (&board.split.fit, &board.split.certify) {
        text.push_str(&format!(
            "\nThresholds and maps from {} of them, figures from the other {} ({} by {}, seed {})",
            fit.cases,
            certify.cases,
            plural(certify.groups, "group", "groups"),
            board.split.group,
            board.split.seed,
        ));
    }
    if let Some(left) = counts.left_out() {
        text.push_str(&format!("\nLeft out: {left}"));
    }
    text
}

fn rows(board: &Leaderboard) -> String {
    let has =
        |of: fn(&Row) -> &Measured<Figure>| board.rows.iter().any(|row| of(row).value().is_some());
    let (cost, latency) = (has(|row| &row.cost_usd), has(|row| &row.latency_ms));
    let mut header = vec![
        "contender",
        "group",
        "threshold",
        "n",
        "agreement",
        "bias",
        "FPR",
        "FNR",
        "bad of accepted",
        "AUC",
        "unscored",
    ];
    if cost {
        header.push("$ a case");
    }
    if latency {
        header.push("ms");
    }
    let rows = board
        .rows
        .iter()
        .map(|row| {
            let name = match row.kind {
                ContenderKind::Baseline => format!("({})", row.name),
                ContenderKind::Judge | ContenderKind::Panel => row.name.clone(),
            };
            let mut cells = vec![
                name,
                row.letters.join(" "),
                row.threshold_kind().unwrap_or("-").to_owned(),
                row.n.to_string(),
                interval(&row.agreement),
                interval(&row.bias),
                interval(&row.false_positive_rate),
                interval(&row.false_negative_rate),
                interval(&row.false_acceptance_share),
                interval(&row.auc),
                interval(&row.unscored),
            ];
            if cost {
                cells.push(row.cost_usd.value().map_or("-".to_owned(), |own| {
                    format!("{:.6} [{:.6}, {:.6}]", own.estimate, own.lower, own.upper)
                }));
            }
            if latency {
                cells.push(row.latency_ms.value().map_or("-".to_owned(), |own| {
                    format!("{:.1} [{:.1}, {:.1}]", own.estimate, own.lower, own.upper)
                }));
            }
            cells
        })
        .collect();
    let numbers: Vec<usize> = (3..header.len()).collect();
    table(&header, rows, &numbers)
}
