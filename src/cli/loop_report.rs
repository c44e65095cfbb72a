//! A loop in words: its limits, a line a generation, and how it ended.

use super::printer::plural;
use super::summary::{decision, number, panel_score};
use crate::control::driver::Notice;
use crate::control::result::Report;
use crate::control::{Round, Setup};

/// The limits in force.
pub(super) fn limits(setup: &Setup) -> String {
    let limits = &setup.policy.limits;
    let mut text = format!(
        "loop `{}`: at most {}, {} s",
        setup.name,
        plural(u64::from(limits.max_generations), "generation", "generations"),
        limits.elapsed_ms as f64 / 1000.0
    );
    if let Some(tokens) = limits.tokens {
        text.push_str(&format!(", {tokens} tokens"));
    }
    if let Some(micro) = limits.micro_dollars {
        text.push_str(&format!(", ${:.2}", micro as f64 / 1e6));
    }
    if let Some(evaluations) = limits.evaluations {
        text.push_str(&format!(", {evaluations} judgements"));
    }
    text
}

/// One judgement: score, spread, change, what happens next.
pub(super) fn line(notice: &Notice<'_>) -> String {
    let Notice::Judged { generation, round, ruling, before, next } = notice else {
        return String::new();
    };
    let mut text = format!("generation {generation}");
    if let Round::Confirm(k) = round {
        text.push_str(&format!(", confirmation {k}"));
    }
    if *round == Round::Dispute {
        text.push_str(", disputed: the other judges");
    }
    text.push_str(&format!("  score {}", panel_score(ruling)));
    if let Some(spread) = ruling.spread {
        text.push_str(&format!("  spread {spread:.2}"));
    }
    if let (Some(score), Some(before), Round::First) = (ruling.score, before, round) {
        text.push_str(&format!("  {:+.2}", score.get() - before));
    }
    text.push_str(&format!("  {}  -> {next}", decision(ruling)));
    text
}

/// How it ended: the best output, the scores as a picture, the reason.
pub(super) fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    if let Some(best) = &report.best {
        lines.push(best.output.trim_end().to_owned());
        lines.push(String::new());
    }
    for row in &report.history {
        let bar = row.score.map_or(0, |score| (score.get() * 40.0).round() as usize);
        let best = report.best.as_ref().is_some_and(|best| best.generation == row.generation);
        let rejected = match row.rejected_by.as_slice() {
            [] => String::new(),
            names => format!("rejected by {} ", names.join(", ")),
        };
        // A bar that a veto makes worthless is drawn as one.
        let mark = if row.rejected_by.is_empty() { "#" } else { "-" };
        lines.push(
            format!(
                "{:>4}  {}  {:<40} {rejected}{}",
                row.generation,
                number(row.score),
                mark.repeat(bar),
                if best { "best" } else { "" }
            )
            .trim_end()
            .to_owned(),
        );
    }
    for own in &report.starts {
        let how = match (own.dropped_after, own.reason) {
            (Some(after), _) => format!("dropped after {after}"),
            (None, Some(reason)) => reason.name().to_owned(),
            (None, None) => "stopped".to_owned(),
        };
        let fresh = own.fresh_score.map(|score| format!(", judged afresh {:.2}", score.get()));
        lines.push(format!(
            "start {}: {}, score {}{}, {how}{}",
            own.start,
            plural(u64::from(own.generations), "generation", "generations"),
            number(own.score),
            fresh.unwrap_or_default(),
            if own.picked { ", picked" } else { "" }
        ));
    }
    lines.push(String::new());
    lines.push(format!("{}: {}", report.outcome, report.reason));
    if !report.also_fired.is_empty() {
        let also: Vec<&str> = report.also_fired.iter().map(|reason| reason.name()).collect();
        lines.push(format!("also: {}", also.join(", ")));
    }
    if let Some(own) = &report.profile {
        let why = match (&own.bound, own.reasons.is_empty()) {
            (Some(bound), _) => format!(
                ", {} at most {} with confidence {} over at most {}",
                bound.mode,
                bound.alpha,
                1.0 - bound.delta,
                plural(u64::from(own.generations), "generation", "generations")
            ),
            (None, true) => String::new(),
            (None, false) => format!(": {}", own.reasons.join("; ")),
        };
        let degraded = if own.degraded { ", degraded" } else { "" };
        let hash = &own.hash[..own.hash.len().min(12)];
        lines.push(format!("profile {} ({hash}): {}{degraded}{why}", own.name, own.status));
    }
    lines.push(format!(
        "{}, {}, {:.1} s{}",
        plural(u64::from(report.generations), "generation", "generations"),
        plural(report.evaluations, "judgement", "judgements"),
        report.elapsed_seconds,
        report.cost_usd.map_or(", price unknown".to_owned(), |cost| format!(", ${cost:.4}"))
    ));
    lines.push(format!("log: {}", report.log));
    lines.join("\n")
}
