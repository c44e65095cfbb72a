//! A straight axis: values to places, round ticks, and the frame of a plot.

use super::svg::{Anchor, Svg, width};

/// From values to places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// `low` stands at `from`, `high` at `to`. Equal ends are moved apart.
    #[must_use]
    pub fn new((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (low, high) = if high > low {
            (low, high)
        } else {
            let half = if low == 0.0 { 0.5 } else { low.abs() * 0.1 };
            (low - half, low + half)
        };
        Self { low, high, from, to }
    }

    /// Where a value stands; outside the ends at the nearest.
    #[must_use]
    pub fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// Whether a value is between the ends.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }

    /// Round values between the ends, about `wanted` of them.
    #[must_use]
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        let raw = (self.high - self.low) / wanted.max(1) as f64;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|step| step * power)
            .find(|step| *step >= raw * 0.999)
            .unwrap_or(10.0 * power);
        let first = (self.low / step - 1e-9).ceil();
        let last = (self.high / step + 1e-9).floor();
        let count = (last - first).max(0.0) as usize;
        (0..=count).map(|i| (first + i as f64) * step).collect()
    }

    /// How a tick of [`Self::ticks`] is written: with as many decimals as all of them need.
    #[must_use]
    pub fn labels(ticks: &[f64], percent: bool) -> Vec<String> {
        let scale = if percent { 100.0 } else { 1.0 };
        let unit = if percent { "%" } else { "" };
        let enough = |decimals: usize| {
            let ten = 10f64.powi(decimals as i32);
            ticks.iter().all(|tick| {
                let value = tick * scale * ten;
                (value - value.round()).abs() < 1e-6
            })
        };
        let decimals = (0..6).find(|decimals| enough(*decimals)).unwrap_or(6);
        ticks
            .iter()
            .map(|tick| {
                // Adding 0.0 turns a negative nothing into nothing.
                let value = (tick * scale * 1e9).round() / 1e9 + 0.0;
                format!("{value:.decimals$}{unit}")
            })
            .collect()
    }
}

/// The frame of a plot with both axes.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Left and right edge.
    pub x: (f64, f64),
    /// Upper and lower edge.
    pub y: (f64, f64),
}

impl Frame {
    /// Gridlines and ticks of the vertical axis.
    pub fn vertical(&self, svg: &mut Svg, axis: &Axis, wanted: usize, percent: bool) {
        let ticks = axis.ticks(wanted);
        for (tick, label) in ticks.iter().zip(Axis::labels(&ticks, percent)) {
            let y = axis.at(*tick);
            svg.line("grid", (self.x.0, y), (self.x.1, y));
            svg.sized("soft", (self.x.0 - 5.0, y + 3.5), Anchor::End, 10.0, &label);
        }
    }

    /// Gridlines, ticks and the name of the horizontal axis.
    pub fn horizontal(&self, svg: &mut Svg, axis: &Axis, wanted: usize, percent: bool, name: &str) {
        let ticks = axis.ticks(wanted);
        for (tick, label) in ticks.iter().zip(Axis::labels(&ticks, percent)) {
            let x = axis.at(*tick);
            svg.line("grid", (x, self.y.0), (x, self.y.1));
            // A label at the edge stays inside the picture.
            let half = width(&label, 10.0) / 2.0;
            let x = x.min(svg.width() - half);
            svg.sized("soft", (x, self.y.1 + 13.0), Anchor::Middle, 10.0, &label);
        }
        let middle = f64::midpoint(self.x.0, self.x.1);
        svg.sized("soft", (middle, self.y.1 + 28.0), Anchor::Middle, 10.5, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::new((-0.31, 0.42), (0.0, 100.0));
        let ticks = axis.ticks(4);
        assert_eq!(Axis::labels(&ticks, false), ["-0.2", "0.0", "0.2", "0.4"]);
        assert!(ticks.iter().all(|tick| axis.holds(*tick)));
        let axis = Axis::new((0.0, 1.0), (0.0, 100.0));
        assert_eq!(Axis::labels(&axis.ticks(4), true), ["0%", "25%", "50%", "75%", "100%"]);
    }

    #[test]
    fn an_axis_without_extent_still_places_its_value() {
        let axis = Axis::new((3.0, 3.0), (0.0, 100.0));
        assert!((axis.at(3.0) - 50.0).abs() < 1e-9);
        assert!(axis.at(99.0) <= 100.0);
        assert!(!axis.ticks(4).is_empty());
    }
}
