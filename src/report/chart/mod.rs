//! Pictures as inline SVG: written by hand, the same bytes on every machine, coloured by the
//! page's own variables, so that they follow its theme and print.
//!
//! A picture is drawn for the width of a phone and grows with its column. Every text goes
//! through the escaping here, and is cut to the room it has by an estimate of its width; the
//! whole of it stands in a `title`. No `style` attributes: the page's policy refuses them.

pub mod agreement;
pub mod axis;
pub mod correlation;
pub mod forest;
pub mod histogram;
pub mod reliability;
pub mod roc;
pub mod svg;
pub mod threshold;

/// A picture with its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What it shows; empty for one of several under one heading.
    pub title: String,
    /// What it stands on, with n, and how to read it.
    pub says: String,
    /// The drawing: safe HTML.
    pub svg: String,
}

/// A number for a chart: two to four significant digits.
#[must_use]
pub fn short(value: f64) -> String {
    let size = value.abs();
    let text = if size >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.095 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    };
    let negative_zero = text.starts_with('-') && text.bytes().all(|c| b"-0.".contains(&c));
    if negative_zero { text[1..].to_owned() } else { text }
}

/// A share in per cent, with one decimal where it is small or near one.
#[must_use]
pub fn percent(value: f64) -> String {
    let hundred = value * 100.0;
    if hundred.fract().abs() < 1e-9 { format!("{hundred:.0}%") } else { format!("{hundred:.1}%") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_minus_nothing() {
        assert_eq!(short(-0.0001), "0.000");
        assert_eq!(short(1234.5), "1234");
        assert_eq!((short(0.0), short(-0.0), short(4.0)), ("0".into(), "0".into(), "4".into()));
        assert_eq!(short(-0.25), "-0.25");
        assert_eq!(percent(0.05), "5%");
        assert_eq!(percent(0.0379), "3.8%");
        assert_eq!(percent(1.0), "100%");
    }
}
