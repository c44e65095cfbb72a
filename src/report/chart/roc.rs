//! ROC curves of all judges and the panel, each with the point it works at.
//!
//! Points carry numbers that the legend below resolves: colours alone would not tell a dozen
//! judges apart, nor serve everyone.

use super::axis::{Axis, Frame};
use super::svg::{Anchor, Svg, TEXT, width};
use super::{Picture, percent, short};
use crate::calibration::curves::RocPoint;
use crate::calibration::figure::{Figure, Measured};

/// One judge.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// The curve; drawn only for a judge with more than one threshold.
    pub points: Vec<RocPoint>,
    /// Where it works: false- and true-positive rate.
    pub works_at: Option<(f64, f64)>,
    /// Area under the curve.
    pub auc: Measured<Figure>,
    /// Whether it is the panel.
    pub panel: bool,
}

const WIDTH: f64 = 380.0;
const TOP: f64 = 10.0;
const SIDE: f64 = 315.0;
const LEFT: f64 = 46.0;
const ROW: f64 = 17.0;
/// Classes of colours that the page's style knows.
const COLOURS: usize = 6;

/// The picture; `None` without any curve or point.
#[must_use]
pub fn draw(curves: &[Curve], says: &str) -> Option<Picture> {
    if curves.iter().all(|curve| curve.points.is_empty() && curve.works_at.is_none()) {
        return None;
    }
    let frame = Frame { x: (LEFT, LEFT + SIDE), y: (TOP, TOP + SIDE) };
    let legend = TOP + SIDE + 52.0;
    let title = "Good answers accepted against bad ones accepted (ROC)";
    let mut svg = Svg::new(WIDTH, legend + ROW * curves.len() as f64, title);
    let x = Axis::new((0.0, 1.0), frame.x);
    let y = Axis::new((0.0, 1.0), (frame.y.1, frame.y.0));
    frame.vertical(&mut svg, &y, 4, true);
    frame.horizontal(&mut svg, &x, 4, true, "bad answers accepted (false-positive rate)");
    svg.line("reference", (x.at(0.0), y.at(0.0)), (x.at(1.0), y.at(1.0)));
    for (place, curve) in curves.iter().enumerate() {
        // A judge of two scores has one point and no curve.
        if curve.points.len() > 2 {
            let mut line = vec![(x.at(0.0), y.at(0.0))];
            line.extend(
                curve
                    .points
                    .iter()
                    .map(|p| (x.at(p.false_positive_rate), y.at(p.true_positive_rate))),
            );
            svg.path(&class("curve", place, curve.panel), &line);
            for point in &curve.points {
                let at = (x.at(point.false_positive_rate), y.at(point.true_positive_rate));
                let says = format!(
                    "{}, from {}: accepts {} of the good, {} of the bad",
                    curve.name,
                    short(point.threshold),
                    percent(point.true_positive_rate),
                    percent(point.false_positive_rate)
                );
                svg.dot("touch", at, 3.0, &says);
            }
        }
    }
    points(&mut svg, curves, &x, &y);
    for (place, curve) in curves.iter().enumerate() {
        let line = legend + ROW * place as f64;
        svg.dot(&class("mark", place, curve.panel), (12.0, line - 4.0), 7.0, "");
        svg.sized("number", (12.0, line - 0.8), Anchor::Middle, 9.0, &(place + 1).to_string());
        let said = match &curve.auc.0 {
            Ok(auc) => format!(
                "AUC {} [{}, {}] n={}",
                short(auc.estimate),
                short(auc.lower),
                short(auc.upper),
                auc.n
            ),
            Err(_) => "AUC undefined".to_owned(),
        };
        svg.text("soft", (WIDTH - 4.0, line), Anchor::End, &said);
        let class = if curve.panel { "strong" } else { "" };
        svg.name(class, (25.0, line), WIDTH - 40.0 - width(&said, TEXT), &curve.name);
    }
    Some(Picture { title: title.to_owned(), says: says.to_owned(), svg: svg.finish() })
}

/// The points with their numbers, moved aside where they would cover each other, then with a
/// thin line to their place.
fn points(svg: &mut Svg, curves: &[Curve], x: &Axis, y: &Axis) {
    let mut taken: Vec<(f64, f64)> = Vec::new();
    let mut placed = Vec::new();
    for (place, curve) in curves.iter().enumerate() {
        let Some((false_positive, true_positive)) = curve.works_at else { continue };
        let at = (x.at(false_positive), y.at(true_positive));
        let label = free(at, &taken);
        taken.push(label);
        placed.push((place, curve, at, label));
    }
    for (place, curve, at, label) in &placed {
        if label != at {
            svg.line("leader", *at, *label);
            svg.dot(&class("spot", *place, curve.panel), *at, 2.2, "");
        }
    }
    for (place, curve, _, label) in &placed {
        let (false_positive, true_positive) = curve.works_at.unwrap_or_default();
        let says = format!(
            "{} works here: accepts {} of the good, {} of the bad",
            curve.name,
            percent(true_positive),
            percent(false_positive)
        );
        svg.dot(&class("mark", *place, curve.panel), *label, 7.0, &says);
        let number = (place + 1).to_string();
        svg.sized("number", (label.0, label.1 + 3.2), Anchor::Middle, 9.0, &number);
    }
}

/// The nearest place, on rings around the point, that no other number takes.
fn free(at: (f64, f64), taken: &[(f64, f64)]) -> (f64, f64) {
    let clear = |spot: (f64, f64)| taken.iter().all(|own| distance(*own, spot) >= 15.0);
    let inside = |spot: (f64, f64)| {
        (LEFT..=WIDTH - 8.0).contains(&spot.0) && (8.0..=TOP + SIDE - 2.0).contains(&spot.1)
    };
    if clear(at) {
        return at;
    }
    for ring in 1..12 {
        let radius = 8.0 + 8.0 * f64::from(ring);
        for step in 0..16 {
            // Down and to the right first: that is where a ROC plot is empty.
            let angle = std::f64::consts::TAU * (f64::from(step) / 16.0 + 0.1);
            let spot = (at.0 + radius * angle.cos(), at.1 + radius * angle.sin());
            if inside(spot) && clear(spot) {
                return spot;
            }
        }
    }
    at
}

fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

fn class(what: &str, place: usize, panel: bool) -> String {
    if panel {
        format!("{what} panel")
    } else {
        let dashed = if (place / COLOURS) % 2 == 1 { " dashed" } else { "" };
        format!("{what} colour-{}{dashed}", place % COLOURS + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Reason;

    #[test]
    fn the_numbers_of_twelve_judges_at_one_place_do_not_cover_each_other() {
        let mut taken = Vec::new();
        for corner in [(LEFT, TOP), (LEFT + SIDE, TOP), (200.0, 150.0)] {
            for _ in 0..12 {
                let spot = free(corner, &taken);
                assert!(taken.iter().all(|own| distance(*own, spot) >= 14.9), "{spot:?}");
                taken.push(spot);
            }
        }
    }

    #[test]
    fn without_any_point_there_is_no_picture() {
        let curve = Curve {
            name: "a".into(),
            points: Vec::new(),
            works_at: None,
            auc: Measured::undefined(Reason::NoPositives),
            panel: false,
        };
        assert!(draw(std::slice::from_ref(&curve), "").is_none());
        assert!(draw(&[Curve { works_at: Some((0.0, 1.0)), ..curve }], "").is_some());
    }
}
