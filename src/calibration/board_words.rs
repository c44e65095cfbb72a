//! What to conclude from a leaderboard, in a few sentences: who is first, whom these data can't
//! tell from it, and who is no better than a trivial rule.

use super::contender::ContenderKind;
use super::leaderboard::{Leaderboard, is_told, merit};
use super::pairwise::{Difference, Measure};

/// What a person should take from the board, in a few sentences.
pub(super) fn conclusion(board: &Leaderboard) -> String {
    let facing = || board.rows.iter().filter(|row| row.kind != ContenderKind::Baseline);
    let Some(best) = facing().find(|row| merit(board.by, row).is_some()) else {
        return "Nothing can be compared: no contender has this figure on these cases.".to_owned();
    };
    let figure = match board.by {
        Measure::Agreement => &best.agreement,
        Measure::Auc => &best.auc,
        Measure::AbsoluteError => &best.mae,
    };
    let name = board.by.name().replace('_', " ");
    let mut text = format!("`{}` is first", best.name);
    if let Some(figure) = figure.value() {
        text.push_str(&format!(
            " with {name} {:.3} [{:.3}, {:.3}] on {} cases",
            figure.estimate, figure.lower, figure.upper, figure.n
        ));
    }
    let pairs = board.comparisons.iter().find(|own| own.measure == board.by);
    let with_best: Vec<&Difference> = pairs
        .iter()
        .flat_map(|own| &own.differences)
        .filter(|own| own.first == best.name || own.second == best.name)
        .collect();
    let tied: Vec<&Difference> = with_best.iter().copied().filter(|own| !is_told(own)).collect();
    let listed: Vec<String> = tied
        .iter()
        .map(|own| if own.first == best.name { &own.second } else { &own.first })
        .map(|name| format!("`{name}`"))
        .collect();
    if with_best.is_empty() {
        text.push_str(", alone.");
    } else if tied.is_empty() {
        text.push_str(", and better than every other beyond chance.");
    } else {
        let shown = if listed.len() > 4 {
            format!("{} and {} more", listed[..3].join(", "), listed.len() - 3)
        } else {
            listed.join(", ")
        };
        text.push_str(&format!("; these data can't tell it from {shown}"));
        let mut visible: Vec<f64> =
            tied.iter().filter_map(|own| own.smallest_visible.value().copied()).collect();
        visible.sort_unstable_by(f64::total_cmp);
        if let Some(least) = visible.get(visible.len() / 2) {
            text.push_str(&format!(" (a difference under about {least:.3} would go unseen)"));
        }
        text.push('.');
    }
    text.push_str(&beaten(board));
    text
}

/// Who is no better than the best trivial rule.
fn beaten(board: &Leaderboard) -> String {
    let beaten: Vec<String> = board
        .against_baseline
        .iter()
        .filter(|own| {
            !(is_told(own) && own.difference.value().is_some_and(|own| own.estimate > 0.0))
        })
        .map(|own| format!("`{}`", own.first))
        .collect();
    let all = board.against_baseline.len();
    if all == 0 {
        return String::new();
    }
    let rule = &board.best_baseline;
    match beaten.len() {
        0 => format!(" All agree with the labels more often than `{rule}` does."),
        n if n == all => {
            format!(" None is shown to agree with the labels more often than `{rule}`.")
        }
        n => {
            let more = if n > 4 { format!(" and {} more", n - 3) } else { String::new() };
            let shown = if n > 4 { &beaten[..3] } else { &beaten[..] };
            format!(
                " Not shown to agree with the labels more often than `{rule}`: {}{more}.",
                shown.join(", ")
            )
        }
    }
}
