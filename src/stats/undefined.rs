//! What a statistic is when the data cannot define it.
//!
//! NaN hides and 0 lies, so every function here returns [`Defined`]: a value, or an
//! [`Undefined`] that says why there is none. In JSON that is `{"undefined": "reason"}`.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A statistic, or the reason it has no value.
pub type Defined<T = f64> = Result<T, Undefined>;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident => $code:literal, $text:literal;)*) => {
        /// Why a statistic is undefined. Serialises as its code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable code used in JSON.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// One sentence fragment for people.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// No values at all.
    NoData => "no_data", "there are no values";
    /// Fewer values than the formula needs.
    TooFewValues => "too_few_values", "there are too few values";
    /// Fewer than two raters, or units with two ratings.
    TooFewRaters => "too_few_raters", "no unit has two ratings";
    /// NaN or an infinity among the values.
    NotFinite => "not_finite", "a value is NaN or infinite";
    /// Two series that belong together differ in length.
    LengthMismatch => "length_mismatch", "paired series differ in length";
    /// A value or parameter outside its range.
    OutOfRange => "out_of_range", "a value or parameter is outside its range";
    /// A series without variation.
    ConstantInput => "constant_input", "a series is constant";
    /// Both raters gave one and the same category throughout.
    ConstantRaters => "constant_raters", "all raters used one and the same category";
    /// The ratings hold a single distinct value.
    SingleValue => "single_value_in_domain", "all ratings have one value";
    /// No truly good case.
    NoPositives => "no_positives", "there are no positives";
    /// No truly bad case.
    NoNegatives => "no_negatives", "there are no negatives";
    /// Nothing was predicted positive.
    NoPredictedPositives => "no_predicted_positives", "nothing was predicted positive";
    /// Nothing was predicted negative.
    NoPredictedNegatives => "no_predicted_negatives", "nothing was predicted negative";
    /// The labels hold one class only.
    SingleClass => "single_class", "the labels hold one class only";
    /// Sensitivity + specificity <= 1: the judge carries no usable signal.
    YoudenNotPositive => "youden_not_positive",
        "sensitivity plus specificity is not above 1 (youden<=0)";
    /// The classes are perfectly separated, so the estimate is infinite.
    Separation => "perfect_separation", "the classes are perfectly separated, the fit diverges";
    /// A denominator is zero.
    ZeroDenominator => "zero_denominator", "a denominator is zero";
    /// The differences do not vary, so no test statistic exists.
    ZeroVariance => "zero_variance", "the variance is zero";
    /// A category outside the declared domain.
    UnknownCategory => "unknown_category", "a category is outside the declared domain";
    /// A complete table is needed and a cell is missing.
    MissingCells => "missing_cells", "a cell of the table is missing";
    /// A matrix that has to be inverted is singular.
    SingularMatrix => "singular_matrix", "a matrix is singular";
    /// An iteration did not converge.
    NoConvergence => "no_convergence", "the iteration did not converge";
    /// A total weight of zero, or a negative weight.
    BadWeights => "bad_weights", "weights must be finite, not negative, and not all zero";
    /// Counts that contradict each other, such as k > n.
    BadCounts => "bad_counts", "the counts contradict each other";
    /// All resamples were undefined.
    NoReplicates => "no_replicates", "the statistic is undefined on all resamples";
    /// No pairs that differ.
    NoDiscordantPairs => "no_discordant_pairs", "no pairs differ";
    /// Every item has one and the same value from all raters, or a rater says nothing.
    NotIdentified => "not_identified", "the data do not identify the parameters";
    /// It depends on how observations that were cut off would have ended.
    Censored => "censored", "it depends on how what was cut off would have ended";
    /// A quantile or limit beyond all that was observed.
    NotReached => "not_reached", "it lies beyond what was observed";
}

/// A statistic that has no value, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("undefined: {}", reason.explanation())]
pub struct Undefined {
    /// Why.
    pub reason: Reason,
}

impl From<Reason> for Undefined {
    fn from(reason: Reason) -> Self {
        Self { reason }
    }
}

/// `Err(Undefined { reason })`, to return early.
pub(crate) fn undefined<T>(reason: Reason) -> Defined<T> {
    Err(Undefined { reason })
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.code() == code)
            .ok_or_else(|| D::Error::custom(format!("`{code}` is not a reason of `undefined`")))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    undefined: Reason,
}

impl Serialize for Undefined {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shape { undefined: self.reason }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Undefined {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Shape::deserialize(deserializer).map(|shape| Self { reason: shape.undefined })
    }
}

/// Serialises a [`Defined`] field: `#[serde(serialize_with = "crate::stats::serialize_defined")]`.
///
/// # Errors
/// Those of the serialiser.
pub fn serialize_defined<T: Serialize, S: Serializer>(
    value: &Defined<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Ok(value) => value.serialize(serializer),
        Err(undefined) => undefined.serialize(serializer),
    }
}

/// Reads what [`serialize_defined`] wrote.
///
/// # Errors
/// When the JSON is neither a `T` nor `{"undefined": "reason"}`.
pub fn deserialize_defined<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Defined<T>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    if value.get("undefined").is_some() {
        return serde_json::from_value(value).map(Err).map_err(D::Error::custom);
    }
    serde_json::from_value(value).map(Ok).map_err(D::Error::custom)
}

/// Largest magnitude taken in: the squares of larger numbers, and sums of them, overflow.
pub(crate) const LARGEST: f64 = 1e100;

/// Refuses NaN, infinities and magnitudes beyond [`LARGEST`].
pub(crate) fn require_usable<'a>(values: impl IntoIterator<Item = &'a f64>) -> Defined<()> {
    for value in values {
        if !value.is_finite() {
            return undefined(Reason::NotFinite);
        }
        if value.abs() > LARGEST {
            return undefined(Reason::OutOfRange);
        }
    }
    Ok(())
}

/// As [`require_usable`], and refuses empty input.
pub(crate) fn require_finite(values: &[f64]) -> Defined<()> {
    if values.is_empty() { undefined(Reason::NoData) } else { require_usable(values) }
}

/// As [`require_finite`] for two series of one length.
pub(crate) fn require_pairs(x: &[f64], y: &[f64]) -> Defined<()> {
    if x.len() != y.len() {
        return undefined(Reason::LengthMismatch);
    }
    require_finite(x)?;
    require_finite(y)
}

/// Refuses values outside \[0,1\].
pub(crate) fn require_unit(values: &[f64]) -> Defined<()> {
    require_finite(values)?;
    if values.iter().all(|v| (0.0..=1.0).contains(v)) {
        Ok(())
    } else {
        undefined(Reason::OutOfRange)
    }
}

/// Refuses a probability parameter outside the open interval (0,1).
pub(crate) fn require_open_unit(value: f64) -> Defined<()> {
    if value > 0.0 && value < 1.0 { Ok(()) } else { undefined(Reason::OutOfRange) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Field {
        #[serde(serialize_with = "serialize_defined", deserialize_with = "deserialize_defined")]
        kappa: Defined<f64>,
    }

    #[test]
    fn undefined_is_written_with_its_reason_and_read_back() {
        let field = Field { kappa: undefined(Reason::ConstantRaters) };
        let json = serde_json::to_string(&field).unwrap();
        assert_eq!(json, r#"{"kappa":{"undefined":"constant_raters"}}"#);
        assert_eq!(serde_json::from_str::<Field>(&json).unwrap(), field);
        let value = Field { kappa: Ok(0.5) };
        let json = serde_json::to_string(&value).unwrap();
        assert_eq!(json, r#"{"kappa":0.5}"#);
        assert_eq!(serde_json::from_str::<Field>(&json).unwrap(), value);
    }

    #[test]
    fn reading_refuses_an_unknown_reason_and_a_stray_key() {
        assert!(serde_json::from_str::<Field>(r#"{"kappa":{"undefined":"because"}}"#).is_err());
        assert!(
            serde_json::from_str::<Field>(r#"{"kappa":{"undefined":"no_data","x":1}}"#).is_err()
        );
    }

    #[test]
    fn reason_codes_are_unique() {
        let codes: std::collections::BTreeSet<_> = Reason::ALL.iter().map(|r| r.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
    }
}
