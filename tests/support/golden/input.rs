//! Typed access to a case's input, and the JSON of results.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::Trouble;
use venire::stats::{Defined, Interval, Undefined};

/// A case's input beside its expected values, whose names may carry parameters.
pub(crate) struct Input<'a> {
    pub(crate) values: &'a Value,
    pub(crate) expected: &'a Value,
}

fn wrong(key: &str, needed: impl Display) -> Trouble {
    Trouble::Input(format!("input `{key}` is not {needed}"))
}

/// A number, or the strings that stand for the numbers JSON lacks.
pub(crate) fn as_number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None if value.is_null() => Some(f64::NAN),
        None => value.as_f64().or_else(|| value.as_bool().map(|b| f64::from(u8::from(b)))),
    }
}

impl<'a> Input<'a> {
    pub(crate) fn get(&self, key: &str) -> Result<&'a Value, Trouble> {
        self.values.get(key).ok_or_else(|| Trouble::Input(format!("input `{key}` is missing")))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|v| !v.is_null())
    }

    pub(crate) fn number(&self, key: &str) -> Result<f64, Trouble> {
        as_number(self.get(key)?).ok_or_else(|| wrong(key, "a number"))
    }

    pub(crate) fn number_or(&self, key: &str, default: f64) -> Result<f64, Trouble> {
        if self.has(key) { self.number(key) } else { Ok(default) }
    }

    pub(crate) fn count(&self, key: &str) -> Result<u64, Trouble> {
        whole(self.get(key)?).ok_or_else(|| wrong(key, "a count"))
    }

    /// `1 - alpha`, 0.95 when no alpha is given.
    pub(crate) fn level(&self) -> Result<f64, Trouble> {
        Ok(1.0 - self.number_or("alpha", 0.05)?)
    }

    pub(crate) fn array(&self, key: &str) -> Result<&'a Vec<Value>, Trouble> {
        self.get(key)?.as_array().ok_or_else(|| wrong(key, "an array"))
    }

    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<f64>, Trouble> {
        number_list(self.get(key)?).ok_or_else(|| wrong(key, "an array of numbers"))
    }

    pub(crate) fn flags(&self, key: &str) -> Result<Vec<bool>, Trouble> {
        self.numbers(key)?
            .into_iter()
            .map(|v| flag(v).ok_or_else(|| wrong(key, "an array of 0 and 1")))
            .collect()
    }

    pub(crate) fn counts(&self, key: &str) -> Result<Vec<u64>, Trouble> {
        self.array(key)?
            .iter()
            .map(|v| whole(v).ok_or_else(|| wrong(key, "an array of counts")))
            .collect()
    }

    pub(crate) fn matrix(&self, key: &str) -> Result<Vec<Vec<f64>>, Trouble> {
        self.array(key)?
            .iter()
            .map(|row| number_list(row).ok_or_else(|| wrong(key, "rows of numbers")))
            .collect()
    }

    pub(crate) fn count_matrix(&self, key: &str) -> Result<Vec<Vec<u64>>, Trouble> {
        let row = |row: &Value| row.as_array()?.iter().map(whole).collect::<Option<Vec<u64>>>();
        self.array(key)?
            .iter()
            .map(|r| row(r).ok_or_else(|| wrong(key, "rows of counts")))
            .collect()
    }

    pub(crate) fn flag_matrix(&self, key: &str) -> Result<Vec<Vec<bool>>, Trouble> {
        self.matrix(key)?
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .map(|v| flag(v).ok_or_else(|| wrong(key, "rows of 0 and 1")))
                    .collect()
            })
            .collect()
    }

    /// The expected fields by name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.expected.as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v))
    }

    /// Rows of queries: of the input where given, else of the expected values, which
    /// repeat them.
    pub(crate) fn rows(&self) -> Result<&'a Vec<Value>, Trouble> {
        self.values
            .get("rows")
            .or_else(|| self.expected.get("rows"))
            .and_then(Value::as_array)
            .ok_or_else(|| Trouble::Input("there are no `rows`".into()))
    }
}

pub(crate) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(53)).then_some(number as u64)
    })
}

pub(crate) fn number_list(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(as_number).collect()
}

pub(crate) fn row_number(row: &Value, key: &str) -> Result<f64, Trouble> {
    row.get(key).and_then(as_number).ok_or_else(|| wrong(key, "a number"))
}

pub(crate) fn row_count(row: &Value, key: &str) -> Result<u64, Trouble> {
    row.get(key).and_then(whole).ok_or_else(|| wrong(key, "a count"))
}

fn flag(value: f64) -> Option<bool> {
    if value == 1.0 {
        Some(true)
    } else if value == 0.0 {
        Some(false)
    } else {
        None
    }
}

/// Parameters in a field's name: the numbers after each of `marks` in order, such as 0.05
/// and 10 of `iid_f0.05_K10` for the marks `iid_f` and `_K`. A `p` may stand for the point.
pub(crate) fn parameters<const N: usize>(name: &str, marks: [&str; N]) -> Option<[f64; N]> {
    let mut rest = name;
    let mut out = [0.0; N];
    for (i, mark) in marks.iter().enumerate() {
        rest = rest.strip_prefix(mark)?;
        let next = marks.get(i + 1).copied().unwrap_or("");
        let end = if next.is_empty() { rest.len() } else { rest.find(next)? };
        out[i] = rest[..end].replace('p', ".").parse().ok()?;
        rest = &rest[end..];
    }
    Some(out)
}

/// A number as JSON, with the strings that stand for the numbers JSON lacks.
pub(crate) fn number(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN (not an undefined)")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(value)
    }
}

pub(crate) fn numbers(values: &[f64]) -> Value {
    values.iter().map(|v| number(*v)).collect()
}

pub(crate) fn undefined(undefined: Undefined) -> Value {
    json!({ "undefined": undefined.reason.code() })
}

pub(crate) fn defined(value: Defined) -> Value {
    value.map_or_else(undefined, number)
}

pub(crate) fn ends(interval: Interval) -> Value {
    numbers(&[interval.lower, interval.upper])
}

/// Collects the fields of a result.
#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    pub(crate) fn put(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.0.insert(key.into(), value.into());
        self
    }

    pub(crate) fn number(&mut self, key: impl Into<String>, value: f64) -> &mut Self {
        self.put(key, number(value))
    }

    pub(crate) fn defined(&mut self, key: impl Into<String>, value: Defined) -> &mut Self {
        self.put(key, defined(value))
    }

    /// An interval under the name for 95 % and under that of its own level, such as `ci90`.
    pub(crate) fn interval(
        &mut self,
        name: impl Fn(&str) -> String,
        interval: Interval,
    ) -> &mut Self {
        let own = format!("{}", (interval.level * 100.0).round());
        self.put(name("95"), ends(interval));
        self.put(name(&own), ends(interval))
    }

    pub(crate) fn done(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}
