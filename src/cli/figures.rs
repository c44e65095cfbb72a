//! Figures in a table's cell: never without their interval.

use crate::calibration::figure::{Figure, Measured};

/// `.930 [.910, .945]`, or a dash where there is none.
pub(super) fn interval(value: &Measured<Figure>) -> String {
    value.value().map_or("-".to_owned(), |figure| {
        format!("{:.3} [{:.3}, {:.3}]", figure.estimate, figure.lower, figure.upper)
    })
}

/// The same in percent.
pub(super) fn share(value: &Measured<Figure>) -> String {
    value.value().map_or("-".to_owned(), |figure| {
        let [estimate, lower, upper] =
            [figure.estimate, figure.lower, figure.upper].map(|value| 100.0 * value);
        format!("{estimate:.1}% [{lower:.1}, {upper:.1}]")
    })
}
