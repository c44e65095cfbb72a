//! Figures with their intervals, one line a judge: a forest plot.
//!
//! The name stands above its interval and not beside it, so that long names fit a phone.

use super::axis::Axis;
use super::svg::{Anchor, Svg, TEXT, width};
use super::{Picture, percent, short};
use crate::calibration::figure::{Figure, Measured};

/// One line.
#[derive(Clone, Debug)]
pub struct Row {
    /// The judge.
    pub name: String,
    /// Its figure.
    pub figure: Measured<Figure>,
    /// Whether it is the panel.
    pub panel: bool,
}

/// How a forest looks.
#[derive(Clone, Debug)]
pub struct Forest {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub says: String,
    /// Where nothing would be: a line is drawn there.
    pub reference: Option<f64>,
    /// Whether figures are shares.
    pub percent: bool,
    /// The axis in words.
    pub axis: String,
}

const WIDTH: f64 = 380.0;
const LINE: f64 = 31.0;

impl Forest {
    /// The picture; `None` where no row has a figure.
    #[must_use]
    pub fn draw(&self, rows: &[Row]) -> Option<Picture> {
        let known = || rows.iter().filter_map(|row| row.figure.value());
        known().next()?;
        let ends = known().fold(
            self.reference.map_or((f64::INFINITY, f64::NEG_INFINITY), |at| (at, at)),
            |(low, high), own| (low.min(own.lower), high.max(own.upper)),
        );
        let pad = (ends.1 - ends.0) * 0.03;
        let axis = Axis::new((ends.0 - pad, ends.1 + pad), (8.0, WIDTH - 8.0));
        let bottom = 6.0 + LINE * rows.len() as f64;
        let mut svg = Svg::new(WIDTH, bottom + 34.0, &self.title);
        let ticks = axis.ticks(5);
        for (tick, label) in ticks.iter().zip(Axis::labels(&ticks, self.percent)) {
            let x = axis.at(*tick);
            svg.line("grid", (x, 4.0), (x, bottom));
            // A label at an edge stays inside the picture.
            let half = width(&label, 10.0) / 2.0;
            let x = x.clamp(half, WIDTH - half);
            svg.sized("soft", (x, bottom + 13.0), Anchor::Middle, 10.0, &label);
        }
        svg.sized("soft", (WIDTH / 2.0, bottom + 28.0), Anchor::Middle, 10.5, &self.axis);
        if let Some(at) = self.reference {
            svg.line("reference", (axis.at(at), 4.0), (axis.at(at), bottom));
        }
        for (place, row) in rows.iter().enumerate() {
            self.row(&mut svg, &axis, 6.0 + LINE * place as f64, row);
        }
        Some(Picture { title: self.title.clone(), says: self.says.clone(), svg: svg.finish() })
    }

    fn row(&self, svg: &mut Svg, axis: &Axis, top: f64, row: &Row) {
        let show = |value: f64| if self.percent { percent(value) } else { short(value) };
        let said = match &row.figure.0 {
            Ok(own) => format!(
                "{} [{}, {}] n={}",
                show(own.estimate),
                show(own.lower),
                show(own.upper),
                own.n
            ),
            Err(undefined) => format!("none: {undefined}"),
        };
        let class = if row.panel { "strong" } else { "" };
        let said = super::svg::fitted(&said, TEXT, WIDTH * 0.72);
        let room = WIDTH - width(&said, TEXT) - 14.0;
        // A ground behind the words keeps gridlines from crossing them.
        svg.rect("ground", (0.0, top), (WIDTH, 15.0), "");
        svg.name(class, (4.0, top + 11.5), room, &row.name);
        svg.text("soft", (WIDTH - 4.0, top + 11.5), Anchor::End, &said);
        let Ok(own) = &row.figure.0 else { return };
        let y = top + 21.5;
        let says = format!("{}: {said}, {}", row.name, percent(own.level));
        let class = if row.panel { "panel" } else { "judge-mark" };
        svg.line(class, (axis.at(own.lower), y), (axis.at(own.upper), y));
        for end in [own.lower, own.upper] {
            svg.line(class, (axis.at(end), y - 3.0), (axis.at(end), y + 3.0));
        }
        svg.dot(class, (axis.at(own.estimate), y), 3.6, "");
        // The whole line answers to a pointer, not only its dot.
        svg.rect("touch", (0.0, top + 14.0), (WIDTH, 15.0), &says);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Method, Reason};

    #[test]
    fn a_judge_without_a_figure_keeps_its_line_and_says_why() {
        let figure = Figure {
            estimate: 0.1,
            lower: -0.1,
            upper: 0.3,
            n: 40,
            level: 0.95,
            method: Method::Normal,
        };
        let rows = [
            Row { name: "a".into(), figure: Measured(Ok(figure)), panel: false },
            Row { name: "b".into(), figure: Measured::undefined(Reason::NoData), panel: true },
        ];
        let forest = Forest {
            title: "Bias".into(),
            says: String::new(),
            reference: Some(0.0),
            percent: false,
            axis: "score minus label".into(),
        };
        let svg = forest.draw(&rows).unwrap().svg;
        assert!(svg.contains("0.10 [-0.10, 0.30] n=40"), "{svg}");
        assert!(svg.contains("none: "), "{svg}");
        assert!(forest.draw(&rows[1..]).is_none());
    }
}
