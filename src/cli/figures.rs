//! Figures in a table's cell: never without their interval.

use crate::calibration::figure::{Figure, Measured};

/// `.930 [.910, .945]`, or a dash where there is none: narrow, since a board has many.
pub(super) fn interval(value: &Measured<Figure>) -> String {
    value.value().map_or("-".to_owned(), |figure| {
        let [estimate, lower, upper] = [figure.estimate, figure.lower, figure.upper].map(short);
        format!("{estimate} [{lower}, {upper}]")
    })
}

/// Three decimals, without the zero in front.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    match digits.strip_prefix('0') {
        Some(".000") => ".000".to_owned(),
        Some(rest) => format!("{sign}{rest}"),
        None => text,
    }
}

/// In percent, with one decimal.
pub(super) fn percent(value: f64) -> String {
    let text = format!("{:.1}", 100.0 * value);
    let text = if text == "-0.0" { "0.0" } else { &text };
    format!("{text}%")
}

/// A share with its interval in percent.
pub(super) fn share(value: &Measured<Figure>) -> String {
    value.value().map_or("undefined".to_owned(), |figure| {
        let [estimate, lower, upper] = [figure.estimate, figure.lower, figure.upper].map(percent);
        format!("{estimate} [{lower}, {upper}]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_minus_nothing() {
        assert_eq!(
            [0.93, -0.2, 1.0, -0.0001, 12.5].map(short),
            [".930", "-.200", "1.000", ".000", "12.500"]
        );
        assert_eq!([0.5, 1.0, -0.0001].map(percent), ["50.0%", "100.0%", "0.0%"]);
    }
}
