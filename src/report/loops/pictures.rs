//! Two pictures of a loop: the scores by output with the votes behind them, and what of its
//! budgets it used.

use super::read::{Output, Recorded};
use crate::report::chart::axis::{Axis, Frame};
use crate::report::chart::svg::{Anchor, Svg};
use crate::report::chart::{Picture, percent, short};
use crate::ruling::Decision;

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 220.0;

/// Scores and votes by output; `None` where nothing was judged.
pub(super) fn scores(own: &Recorded) -> Option<Picture> {
    let judged: Vec<&Output> = own.outputs.iter().filter(|own| own.ruling.is_some()).collect();
    let (first, last) = (judged.first()?.generation, judged.last()?.generation);
    let frame = Frame { x: (40.0, WIDTH - 16.0), y: (16.0, HEIGHT - 44.0) };
    let x = Axis::new((f64::from(first), f64::from(last)), (frame.x.0 + 12.0, frame.x.1 - 12.0));
    let y = Axis::new((0.0, 1.0), (frame.y.1, frame.y.0));
    let mut svg = Svg::new(WIDTH, HEIGHT, "Scores by output");
    frame.vertical(&mut svg, &y, 4, false);
    names(&mut svg, &x, first, last, frame);
    let spans: Vec<(f64, f64, f64)> = judged
        .iter()
        .filter_map(|own| {
            let (low, high) = span(own)?;
            Some((x.at(f64::from(own.generation)), y.at(low), y.at(high)))
        })
        .collect();
    let band: Vec<(f64, f64)> = spans
        .iter()
        .map(|own| (own.0, own.2))
        .chain(spans.iter().rev().map(|own| (own.0, own.1)))
        .collect();
    svg.area("band", &band);
    // An output without a score breaks the line: nothing is known of it.
    let mut line: Vec<(f64, f64)> = Vec::new();
    for own in &judged {
        match own.score() {
            Some(score) => line.push((x.at(f64::from(own.generation)), y.at(score))),
            None => {
                svg.path("curve panel", &line);
                line.clear();
            }
        }
    }
    svg.path("curve panel", &line);
    if let Some(threshold) = own.threshold.filter(|own| y.holds(*own)) {
        let at = y.at(threshold);
        svg.line("limit", (frame.x.0, at), (frame.x.1, at));
        let words = format!("threshold {}", short(threshold));
        // Above the line, and below it where there is no room.
        let side = if at < frame.y.0 + 14.0 { at + 12.0 } else { at - 4.0 };
        svg.sized("limit-words", (frame.x.0 + 3.0, side), Anchor::Start, 10.0, &words);
    }
    for own in &judged {
        votes(&mut svg, own, x.at(f64::from(own.generation)), &y);
    }
    Some(Picture {
        title: "Scores by output".to_owned(),
        says: format!(
            "The line is the panel's score, the small dots are the votes, the band is between the least and the greatest that counts (n = {} outputs judged). A gap is an output without a score.",
            judged.len()
        ),
        svg: svg.finish(),
    })
}

/// The numbers of outputs below the axis, whole ones alone.
fn names(svg: &mut Svg, x: &Axis, first: u32, last: u32, frame: Frame) {
    let step = ((last - first) / 10 + 1).max(1);
    for generation in (first..=last).step_by(step as usize) {
        let at = x.at(f64::from(generation));
        svg.sized("soft", (at, frame.y.1 + 14.0), Anchor::Middle, 10.0, &generation.to_string());
    }
    let middle = f64::midpoint(frame.x.0, frame.x.1);
    svg.sized("soft", (middle, frame.y.1 + 30.0), Anchor::Middle, 10.5, "output");
}

fn counted(own: &Output) -> impl Iterator<Item = f64> + '_ {
    let votes = own.ruling.iter().flat_map(|ruling| &ruling.votes);
    votes.filter(|vote| vote.counted).filter_map(|vote| Some(vote.score?.get()))
}

/// The least and the greatest vote that counts.
pub(super) fn span(own: &Output) -> Option<(f64, f64)> {
    let low = counted(own).reduce(f64::min)?;
    Some((low, counted(own).reduce(f64::max)?))
}

fn votes(svg: &mut Svg, own: &Output, x: f64, y: &Axis) {
    let Some(ruling) = &own.ruling else { return };
    for vote in &ruling.votes {
        let Some(score) = vote.score else { continue };
        let aside = if vote.counted { "" } else { ", not counted" };
        let says = format!("{}: {:.2}{aside}", vote.judge, score.get());
        svg.dot("cloud", (x, y.at(score.get())), 2.2, &says);
    }
    let class = match ruling.decision {
        Decision::Accept => "accept",
        Decision::Reject => "reject",
        Decision::Undecided => "undecided",
    };
    let Some(score) = own.score() else { return };
    let says = format!("output {}: {:.2}, {class}", own.generation, score);
    svg.dot(class, (x, y.at(score)), 4.2, &says);
}

/// The part of each limit that was used; `None` without limits.
pub(super) fn budgets(own: &Recorded) -> Option<Picture> {
    let limited: Vec<(&super::read::Budget, f64)> = own
        .budgets
        .iter()
        .filter_map(|own| Some((own, own.limit.filter(|own| *own > 0.0)?)))
        .collect();
    if limited.is_empty() {
        return None;
    }
    let height = 22.0 * limited.len() as f64 + 8.0;
    let mut svg = Svg::new(WIDTH, height, "Budgets used");
    let (left, right) = (82.0, WIDTH - 108.0);
    for (i, (own, limit)) in limited.iter().enumerate() {
        let top = 4.0 + 22.0 * i as f64;
        let share = own.used / limit;
        let says = format!(
            "{}{} of {}{} ({})",
            short(own.used),
            own.unit,
            short(*limit),
            own.unit,
            percent((share * 1000.0).round() / 1000.0)
        );
        svg.text("", (0.0, top + 11.5), Anchor::Start, own.name);
        svg.rect("self", (left, top + 2.0), (right - left, 12.0), "");
        let class = if share >= 1.0 { "bad" } else { "cloud" };
        svg.rect(class, (left, top + 2.0), ((right - left) * share.clamp(0.0, 1.0), 12.0), &says);
        let words = format!("{}{} of {}", short(own.used), own.unit, short(*limit));
        svg.sized("soft", (right + 6.0, top + 11.5), Anchor::Start, 10.0, &words);
    }
    Some(Picture {
        title: "Budgets used".to_owned(),
        says: "What was used of each limit at the end of the log.".to_owned(),
        svg: svg.finish(),
    })
}
