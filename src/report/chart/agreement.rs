//! Score minus label against their mean, with bias and limits of agreement (Bland and Altman
//! 1986).

use super::axis::{Axis, Frame};
use super::svg::{Anchor, Svg, width};
use super::{Picture, short};
use crate::calibration::curves::Differences;
use crate::calibration::figure::{Figure, Measured};

const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 200.0;

/// The picture of one judge; `None` without dots. `bias` brings the interval of the mean.
#[must_use]
pub fn draw(name: &str, own: &Differences, bias: &Measured<Figure>) -> Option<Picture> {
    let most = own.dots.iter().map(|dot| dot.n).max()?;
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("Differences of {name} from the labels"));
    let said = format!("n={}", own.n);
    svg.name("strong", (2.0, 12.0), WIDTH - width(&said, 10.0) - 10.0, name);
    svg.sized("soft", (WIDTH - 2.0, 12.0), Anchor::End, 10.0, &said);
    let frame = Frame { x: (34.0, WIDTH - 8.0), y: (22.0, HEIGHT - 34.0) };
    let span = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
    };
    let across = span(&mut own.dots.iter().map(|dot| dot.mean));
    let up = span(
        &mut own.dots.iter().map(|dot| dot.difference).chain(own.limits).chain([own.bias, 0.0]),
    );
    let pad = |(low, high): (f64, f64)| (low - (high - low) * 0.05, high + (high - low) * 0.05);
    let x = Axis::new(pad(across), frame.x);
    let y = Axis::new(pad(up), (frame.y.1, frame.y.0));
    frame.vertical(&mut svg, &y, 5, false);
    frame.horizontal(&mut svg, &x, 4, false, "mean of score and label");
    svg.line("reference", (frame.x.0, y.at(0.0)), (frame.x.1, y.at(0.0)));
    for dot in &own.dots {
        let says = format!(
            "score minus label {}, mean {}: {} of {}",
            short(dot.difference),
            short(dot.mean),
            dot.n,
            own.n
        );
        let radius = 1.2 + 4.3 * (dot.n as f64 / most as f64).sqrt();
        svg.dot("cloud", (x.at(dot.mean), y.at(dot.difference)), radius, &says);
    }
    let line = |svg: &mut Svg, class: &str, at: f64, says: &str| {
        svg.line(class, (frame.x.0, y.at(at)), (frame.x.1, y.at(at)));
        svg.rect("touch", (frame.x.0, y.at(at) - 2.5), (frame.x.1 - frame.x.0, 5.0), says);
    };
    for limit in own.limits {
        line(&mut svg, "bound", limit, &format!("limit of agreement {}", short(limit)));
    }
    let interval = bias.value().map_or_else(String::new, |own| {
        format!(" [{}, {}] n={}", short(own.lower), short(own.upper), own.n)
    });
    line(&mut svg, "limit", own.bias, &format!("bias {}{interval}", short(own.bias)));
    Some(Picture { title: String::new(), says: String::new(), svg: svg.finish() })
}
