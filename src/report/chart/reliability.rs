//! What a judge's scores mean: the label at each score, with the band that tells chance from
//! miscalibration.

use super::axis::{Axis, Frame};
use super::svg::{Anchor, Svg, width};
use super::{Picture, percent, short};
use crate::calibration::curves::{Band, Reliability};

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 222.0;

/// The picture of one judge; `None` without points.
#[must_use]
pub fn draw(name: &str, own: &Reliability) -> Option<Picture> {
    let (first, last) = (own.points.first()?, own.points.last()?);
    let consistent = own.band == Band::Consistency;
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("Reliability of {name}"));
    let said = format!("n={}", own.n);
    svg.name("strong", (2.0, 12.0), WIDTH - width(&said, 10.0) - 10.0, name);
    svg.sized("soft", (WIDTH - 2.0, 12.0), Anchor::End, 10.0, &said);
    let frame = Frame { x: (34.0, WIDTH - 8.0), y: (22.0, HEIGHT - 34.0) };
    let (low, high) = own
        .points
        .iter()
        .flat_map(|p| {
            // A wide band may leave the picture: the scores are to be seen.
            let band = if consistent { [p.isotonic; 2] } else { [p.lower, p.upper] };
            [p.observed, p.isotonic, band[0], band[1]]
        })
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let unit = |low: f64, high: f64| low >= 0.0 && high <= 1.0;
    let mut across = (first.score, last.score);
    let mut up = (low, high);
    if consistent {
        across = (across.0.min(low), across.1.max(high));
        if unit(across.0, across.1) {
            across = (0.0, 1.0);
        }
        up = across;
    } else if unit(low, high) {
        up = (0.0, 1.0);
    }
    let x = Axis::new(across, frame.x);
    let y = Axis::new(up, (frame.y.1, frame.y.0));
    let shares = !consistent;
    frame.vertical(&mut svg, &y, 4, shares);
    frame.horizontal(&mut svg, &x, 4, false, "score");
    let at = |score: f64, value: f64| (x.at(score), y.at(value));
    if consistent {
        svg.line("reference", at(across.0, across.0), at(across.1, across.1));
        let upper = own.points.iter().map(|p| at(p.score, p.upper));
        let lower = own.points.iter().rev().map(|p| at(p.score, p.lower));
        svg.area("band", &upper.chain(lower).collect::<Vec<_>>());
    } else {
        for point in &own.points {
            svg.line("bound", at(point.score, point.lower), at(point.score, point.upper));
        }
    }
    let line: Vec<(f64, f64)> = own.points.iter().map(|p| at(p.score, p.isotonic)).collect();
    svg.path("curve panel", &line);
    let most = own.points.iter().map(|p| p.n).max().unwrap_or(1).max(1) as f64;
    for point in &own.points {
        let show = |value: f64| if shares { percent(value) } else { short(value) };
        let what = if consistent {
            format!("chance would keep it in {} to {}", show(point.lower), show(point.upper))
        } else {
            format!("interval {} to {}", show(point.lower), show(point.upper))
        };
        let says = format!(
            "score {}: label {}, monotone {}, {what} ({}), n={}",
            short(point.score),
            show(point.observed),
            show(point.isotonic),
            percent(own.level),
            point.n
        );
        let largest = if own.points.len() > 12 { 1.6 } else { 2.8 };
        let radius = 1.2 + largest * (point.n as f64 / most).sqrt();
        svg.dot("seen", at(point.score, point.observed), radius, &says);
    }
    Some(Picture { title: String::new(), says: String::new(), svg: svg.finish() })
}
