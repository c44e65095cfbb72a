//! The error rate against the threshold, with its upper bound, the limit asked for, and the
//! threshold that is certified.
//!
//! The horizontal axis is the share of answers accepted as the threshold falls: thresholds
//! themselves may crowd at a few values. They stand below it.

use super::axis::{Axis, Frame};
use super::svg::{Anchor, Svg, fitted, width};
use super::{Picture, percent, short};
use crate::calibration::curves::{ThresholdCurve, ThresholdPoint};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 236.0;

/// Points of the curve that have to be seen, where it has so many.
const SEEN: usize = 3;

/// What is drawn beside the curve.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The bound asked for.
    pub alpha: f64,
    /// Confidence of the upper bound.
    pub confidence: f64,
    /// The certified key.
    pub certified: Option<(f64, f64)>,
    /// The error in words.
    pub error: String,
}

/// The picture; `None` for an empty curve.
#[must_use]
pub fn draw(curve: &ThresholdCurve, limits: &Limits, says: &str) -> Option<Picture> {
    let title = "Error rate against the threshold";
    let last = curve.points.last()?;
    let frame = Frame { x: (46.0, WIDTH - 18.0), y: (16.0, HEIGHT - 56.0) };
    let highest = highest(curve, limits.alpha);
    let x = Axis::new((0.0, last.accepted.max(0.01)), frame.x);
    let y = Axis::new((0.0, highest), (frame.y.1, frame.y.0));
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    frame.vertical(&mut svg, &y, 4, true);
    frame.horizontal(&mut svg, &x, 5, true, "answers accepted as the threshold falls");
    thresholds(&mut svg, curve, &x, frame.y.1);
    let steps = |of: fn(&ThresholdPoint) -> f64| {
        let mut line: Vec<(f64, f64)> = Vec::new();
        for point in &curve.points {
            let at = (x.at(point.accepted), y.at(of(point)));
            if let Some(before) = line.last() {
                line.push((at.0, before.1));
            }
            line.push(at);
            if of(point) > highest {
                break;
            }
        }
        line
    };
    let (error, upper) = (steps(|p| p.error), steps(|p| p.upper));
    let band: Vec<(f64, f64)> = error.iter().chain(upper.iter().rev()).copied().collect();
    svg.area("band", &band);
    svg.path("bound", &upper);
    svg.path("curve panel", &error);
    let limit = y.at(limits.alpha);
    svg.line("limit", (frame.x.0, limit), (frame.x.1, limit));
    let words = format!("limit {}", percent(limits.alpha));
    svg.sized("limit-words", (frame.x.1 - 2.0, limit - 4.0), Anchor::End, 10.0, &words);
    if let Some(key) = limits.certified {
        let reached = |p: &&ThresholdPoint| (p.threshold, p.tiebreak) >= key;
        if let Some(point) = curve.points.iter().rfind(reached) {
            let at = x.at(point.accepted);
            svg.line("certified", (at, frame.y.0), (at, frame.y.1));
            let (anchor, side) =
                if at > WIDTH / 2.0 { (Anchor::End, at - 4.0) } else { (Anchor::Start, at + 4.0) };
            let words = format!("certified: from {}", short(key.0));
            svg.sized("certified-words", (side, frame.y.0 - 5.0), anchor, 10.0, &words);
        }
    }
    for point in &curve.points {
        if point.error > highest {
            break;
        }
        let says = format!(
            "from {}: {} {} (at most {} with {} confidence, n={}), good accepted {}, answers accepted {}",
            short(point.threshold),
            limits.error,
            percent(point.error),
            percent(point.upper),
            percent(limits.confidence),
            point.n,
            percent(point.true_positive_rate),
            percent(point.accepted)
        );
        let left = x.at(point.accepted) - 2.5;
        svg.rect("touch", (left, frame.y.0), (5.0, frame.y.1 - frame.y.0), &says);
    }
    Some(Picture { title: title.to_owned(), says: says.to_owned(), svg: svg.finish() })
}

/// Where the scale ends: four times the limit, unless the curve is hardly seen below that.
fn highest(curve: &ThresholdCurve, alpha: f64) -> f64 {
    let near = (4.0 * alpha).clamp(0.1, 1.0);
    let seen = curve.points.iter().filter(|point| point.error <= near).count();
    let first = curve.points.first().map_or(0.0, |point| point.error);
    if first <= near && seen.min(SEEN) == curve.points.len().min(SEEN) {
        return near;
    }
    // In tenths, so that the axis ends at a round number.
    let most = curve.points.iter().map(|point| point.error).fold(near, f64::max);
    ((most * 10.0 - 1e-9).ceil() / 10.0).min(1.0)
}

/// The thresholds that accept so much, below the axis.
fn thresholds(svg: &mut Svg, curve: &ThresholdCurve, x: &Axis, bottom: f64) {
    let ticks = x.ticks(5);
    svg.sized("soft", (4.0, bottom + 46.0), Anchor::Start, 10.0, "from");
    for tick in ticks.iter().skip(1) {
        let found = curve.points.iter().find(|point| point.accepted >= *tick - 1e-9);
        let Some(point) = found else { continue };
        let words = fitted(&short(point.threshold), 10.0, 54.0);
        let at = x.at(*tick).min(WIDTH - width(&words, 10.0) / 2.0);
        svg.sized("soft", (at, bottom + 46.0), Anchor::Middle, 10.0, &words);
    }
}
