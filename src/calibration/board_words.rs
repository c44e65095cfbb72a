//! What to conclude from a leaderboard, in a few sentences: who is first, whom these data can't
//! tell from it, and who is no better than a trivial rule.

use super::certified_alone::accepting_more;
use super::contender::ContenderKind;
use super::figure::{Figure, Measured};
use super::leaderboard::{Leaderboard, Row, is_told, merit};
use super::pairwise::{Difference, Measure};

/// What a person should take from the board, in a few sentences.
pub(super) fn conclusion(board: &Leaderboard) -> String {
    // By agreement only what stands at thresholds of one kind is ranked.
    let aside = |row: &Row| board.by == Measure::Agreement && row.is_certified();
    let facing =
        || board.rows.iter().filter(|row| row.kind != ContenderKind::Baseline && !aside(row));
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
    if board.by == Measure::Agreement {
        board.rows.iter().filter(|row| row.is_certified()).for_each(|row| {
            text.push(' ');
            text.push_str(&price(board, row));
        });
    }
    if let Some(more) = accepting_more(&board.certified) {
        text.push(' ');
        text.push_str(&more);
    }
    text
}

/// What a promise costs: the row at its certified threshold, beside the same scores without.
fn price(board: &Leaderboard, row: &Row) -> String {
    let share = |figure: &Measured<Figure>| match figure.value() {
        Some(own) => format!("{:.3} [{:.3}, {:.3}]", own.estimate, own.lower, own.upper),
        None => "an unknown share".to_owned(),
    };
    let n = |figure: &Measured<Figure>| figure.value().map_or(0, |own| own.n);
    let mut text = format!(
        "`{}` stands at its certified threshold and is not ranked by agreement: it promises a bound on false acceptance, and accepts {} of {} good and {} of {} bad cases, agreement {}",
        row.name,
        share(&row.true_positive_rate),
        n(&row.true_positive_rate),
        share(&row.false_positive_rate),
        n(&row.false_positive_rate),
        share(&row.agreement),
    );
    let twin = row.without_promise.as_ref().and_then(|name| board.row(name));
    if let Some(twin) = twin {
        text.push_str(&format!(
            "; without the promise (`{}`) it would be {}, {} and {}",
            twin.name,
            share(&twin.true_positive_rate),
            share(&twin.false_positive_rate),
            share(&twin.agreement),
        ));
    }
    text.push('.');
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
