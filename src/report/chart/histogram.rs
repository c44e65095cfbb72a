//! Scores by truth: good cases upwards, bad ones downwards, each as shares of their own kind.

use super::axis::Axis;
use super::svg::{Anchor, Svg, TEXT, fitted, width};
use super::{Picture, percent, short};
use crate::calibration::curves::{Bin, JudgeCurves};

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 150.0;

/// The picture of one judge, with where it accepts from; `None` without scores.
#[must_use]
pub fn draw(curves: &JudgeCurves, threshold: Option<f64>) -> Option<Picture> {
    let bins = curves.histogram.value()?;
    let (first, last) = (bins.first()?, bins.last()?);
    let said = format!("{} good, {} bad", curves.good, curves.bad);
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("Scores of {} by truth", curves.name));
    let room = WIDTH - width(&said, 10.0) - 10.0;
    svg.name("strong", (2.0, 12.0), room, &curves.name);
    svg.sized("soft", (WIDTH - 2.0, 12.0), Anchor::End, 10.0, &said);
    let (top, bottom) = (24.0, HEIGHT - 20.0);
    let middle = f64::midpoint(top, bottom);
    let share = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
    let highest = bins
        .iter()
        .map(|bin| share(bin.good, curves.good).max(share(bin.bad, curves.bad)))
        .fold(0.0, f64::max);
    let height = (middle - top) / f64::max(highest, 1e-9);
    let single = bins.iter().all(|bin| bin.lower == bin.upper);
    let slot = (WIDTH - 12.0) / bins.len() as f64;
    let axis = Axis::new((first.lower, last.upper), (6.0, WIDTH - 6.0));
    let place = |i: usize, bin: &Bin| {
        if single {
            let bar = (slot * 0.7).min(34.0);
            (6.0 + slot * (i as f64 + 0.5) - bar / 2.0, bar)
        } else {
            (axis.at(bin.lower) + 0.5, axis.at(bin.upper) - axis.at(bin.lower) - 1.0)
        }
    };
    let names = names(bins);
    for (i, bin) in bins.iter().enumerate() {
        let (x, bar) = place(i, bin);
        let range = if single {
            names[i].clone()
        } else {
            format!("{} to {}", short(bin.lower), short(bin.upper))
        };
        let (good, bad) = (share(bin.good, curves.good), share(bin.bad, curves.bad));
        let up = format!("{range}: {} good, {} of them", bin.good, percent(good));
        svg.rect("good", (x, middle - good * height), (bar, good * height), &up);
        let down = format!("{range}: {} bad, {} of them", bin.bad, percent(bad));
        svg.rect("bad", (x, middle), (bar, bad * height), &down);
    }
    svg.line("axis", (2.0, middle), (WIDTH - 2.0, middle));
    labels(&mut svg, bins, &names, single, slot, bottom + 14.0);
    if let Some(threshold) = threshold.filter(|at| at.is_finite()) {
        let x = if single {
            6.0 + slot * bins.iter().filter(|bin| bin.lower < threshold).count() as f64
        } else {
            axis.at(threshold)
        };
        svg.line("certified", (x, top - 6.0), (x, bottom + 2.0));
    }
    Some(Picture { title: String::new(), says: String::new(), svg: svg.finish() })
}

/// The lower ends in as few decimals as tell them apart; two of one name would be read as one.
fn names(bins: &[Bin]) -> Vec<String> {
    let apart = |names: &[String]| names.windows(2).all(|pair| pair[0] != pair[1]);
    let brief: Vec<String> = bins.iter().map(|bin| short(bin.lower)).collect();
    if apart(&brief) {
        return brief;
    }
    let with = |decimals: usize| -> Vec<String> {
        bins.iter().map(|bin| format!("{:.decimals$}", bin.lower)).collect()
    };
    (3..=12).map(with).find(|names| apart(names)).unwrap_or(brief)
}

/// The scores below: each where they fit, else the ends.
fn labels(svg: &mut Svg, bins: &[Bin], names: &[String], single: bool, slot: f64, y: f64) {
    let widest = names.iter().map(|name| width(name, 10.0)).fold(0.0, f64::max);
    if single && widest + 4.0 <= slot {
        for (i, name) in names.iter().enumerate() {
            let x = 6.0 + slot * (i as f64 + 0.5);
            svg.sized("soft", (x, y), Anchor::Middle, 10.0, name);
        }
        return;
    }
    let (Some(first), Some(last)) = (bins.first(), bins.last()) else { return };
    let cut = |value: f64| fitted(&short(value), TEXT, WIDTH / 2.0 - 8.0);
    svg.sized("soft", (4.0, y), Anchor::Start, 10.0, &cut(first.lower));
    svg.sized("soft", (WIDTH - 4.0, y), Anchor::End, 10.0, &cut(last.upper));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bars_never_have_one_label() {
        let bin = |value: f64| Bin { lower: value, upper: value, good: 1, bad: 0 };
        let own = names(&[bin(0.9104), bin(0.9127), bin(0.9149)]);
        assert_eq!(own, ["0.910", "0.913", "0.915"]);
        assert_eq!(names(&[bin(1.0), bin(2.5)]), ["1", "2.50"]);
    }
}
