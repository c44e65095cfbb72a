//! A figure over loops, and how it is printed.
//!
//! What is not known is said to be so: a figure without a value is `{"undefined": "reason"}` in
//! JSON, and one that depends on how cut-off loops would have ended has no value but a range.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};

use crate::calibration::figure::Measured;
use crate::stats::Reason;

/// A number, its 95% interval, and how many loops it stands on.
///
/// Loops whose end is not known are read in both ways: the lower end is that of the reading
/// with the lowest figure, the upper end that of the one with the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metric {
    /// The number; `None` where nothing is there to take it of, where it lies beyond what was
    /// recorded, or where it depends on how censored loops would have ended.
    pub value: Option<f64>,
    /// Where it depends on them: the least and the greatest that it can be. `None` in it is
    /// beyond every number.
    pub range: Option<(Option<f64>, Option<f64>)>,
    /// The lower end.
    pub lower: Option<f64>,
    /// The upper end; `None` where it is beyond what was recorded.
    pub upper: Option<f64>,
    /// How many loops are known to count.
    pub n: usize,
    /// Censored loops that count, or may.
    pub censored: usize,
    /// Whether the loops are enough for an interval; an end that is not there is then beyond
    /// every number.
    pub has_interval: bool,
}

impl Metric {
    /// Nothing to take a number of.
    pub(super) const NONE: Self = Self {
        value: None,
        range: None,
        lower: None,
        upper: None,
        n: 0,
        censored: 0,
        has_interval: false,
    };

    /// Why there is no value.
    #[must_use]
    pub fn undefined(&self) -> Option<Reason> {
        match (self.value, self.range) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(Reason::Censored),
            (None, None) if self.n == 0 && self.censored == 0 => Some(Reason::NoData),
            (None, None) => Some(Reason::NotReached),
        }
    }

    fn shown(&self) -> Measured<Shown> {
        let beyond = |end: Option<f64>| Measured(end.ok_or(Reason::NotReached.into()));
        let missing = self.undefined().unwrap_or(Reason::NoData);
        let end = |end: Option<f64>| match end {
            None if !self.has_interval => Measured::undefined(Reason::TooFewValues),
            end => beyond(end),
        };
        if self.value.or(self.lower).or(self.upper).is_none() && self.range.is_none() {
            return Measured::undefined(missing);
        }
        Measured(Ok(Shown {
            value: Measured(self.value.ok_or(missing.into())),
            least: self.range.map(|range| beyond(range.0)),
            most: self.range.map(|range| beyond(range.1)),
            lower: end(self.lower),
            upper: end(self.upper),
            n: self.n,
            censored: self.censored,
        }))
    }
}

/// A figure as it is printed.
#[derive(Debug, Serialize, JsonSchema)]
struct Shown {
    /// The number.
    value: Measured,
    /// The least that it can be, where it depends on censored loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<Measured>,
    /// The greatest that it can be, where it depends on censored loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<Measured>,
    /// The lower end of its 95% interval.
    lower: Measured,
    /// The upper end.
    upper: Measured,
    /// How many loops are known to count.
    n: usize,
    /// Censored loops that count, or may.
    #[serde(skip_serializing_if = "is_zero")]
    censored: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown().serialize(serializer)
    }
}

impl JsonSchema for Metric {
    fn schema_name() -> Cow<'static, str> {
        "Metric".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Measured::<Shown>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn what_is_not_known_says_why_and_no_null_is_printed() {
        assert_eq!(to_value(Metric::NONE).unwrap(), json!({ "undefined": "no_data" }));
        let beyond = Metric { n: 9, has_interval: true, ..Metric::NONE };
        assert_eq!(to_value(beyond).unwrap(), json!({ "undefined": "not_reached" }));
        let few = Metric { value: Some(2.0), n: 3, ..Metric::NONE };
        let none = json!({ "undefined": "too_few_values" });
        assert_eq!(
            to_value(few).unwrap(),
            json!({ "value": 2.0, "lower": none, "upper": none, "n": 3 })
        );
        let range = Some((Some(2.0), None));
        let open = Metric { range, lower: Some(1.0), censored: 4, ..beyond };
        assert_eq!(
            to_value(open).unwrap(),
            json!({
                "value": { "undefined": "censored" }, "least": 2.0,
                "most": { "undefined": "not_reached" },
                "lower": 1.0, "upper": { "undefined": "not_reached" }, "n": 9, "censored": 4,
            })
        );
    }
}
