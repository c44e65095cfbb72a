//! Lengths of time in configuration: `30`, `0.5`, `"500ms"`, `"1m 30s"`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time of a configuration, never negative: a number of seconds, or a text with
/// units such as `500ms`, `30s`, `1m 30s` or `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

impl Period {
    /// The period of a duration.
    #[must_use]
    pub const fn new(duration: Duration) -> Self {
        Self(duration)
    }

    /// As a duration.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    fn from_seconds(seconds: f64) -> Result<Self, String> {
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| {
            format!("`{seconds}` is not a length of time: expected seconds, 0 or more")
        })
    }
}

impl std::str::FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(seconds) = text.trim().parse::<f64>() {
            return Self::from_seconds(seconds);
        }
        text.parse::<jiff::SignedDuration>()
            .ok()
            .and_then(|signed| Duration::try_from(signed).ok())
            .map(Self)
            .ok_or_else(|| {
                format!(
                    "`{text}` is not a length of time: expected such as `500ms`, `30s` or `1m 30s`"
                )
            })
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0.as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Period;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time: seconds, or a text such as `500ms` or `1m 30s`")
            }

            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Period, E> {
                Ok(Period(Duration::from_secs(seconds)))
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Period, E> {
                Period::from_seconds(seconds as f64).map_err(E::custom)
            }

            fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Period, E> {
                Period::from_seconds(seconds).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Period, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for Period {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Period".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["number", "string"],
            "minimum": 0,
            "description": "a length of time: seconds, or a text such as `500ms`, `30s` or `1m 30s`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_units_are_read_and_nonsense_is_not() {
        let read = |json: &str| serde_json::from_str::<Period>(json).map(Period::get);
        assert_eq!(read("30").unwrap(), Duration::from_secs(30));
        assert_eq!(read("0.25").unwrap(), Duration::from_millis(250));
        assert_eq!(read("\"500ms\"").unwrap(), Duration::from_millis(500));
        assert_eq!(read("\"1m 30s\"").unwrap(), Duration::from_secs(90));
        assert_eq!(read("\"2\"").unwrap(), Duration::from_secs(2));
        for wrong in ["-1", "\"-1s\"", "\"soon\"", "\"\"", "true", "null", "\"NaN\"", "\"inf\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
