//! Evaluates cases of the golden format: a statistic's name, its input, the expected
//! values of an independent implementation, and a tolerance.
//!
//! Every statistic is computed from its input by the library; nothing is looked up. What a
//! case asks for beyond the input (a number of bins, a rate, a level) is read from the
//! names of its expected fields, as the format has it.

mod agreement;
mod calibration;
mod compare;
mod decision;
mod input;
mod panel;

use std::path::Path;

use serde_json::Value;

use self::input::Input;
use venire::stats::Undefined;

/// One case of a golden file.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) stat: String,
    input: Value,
    expected: Value,
    tolerance: f64,
}

/// What became of a case.
pub(crate) enum Outcome {
    /// Every expected value is met.
    Met,
    /// Some are off, or the input could not be read.
    Off(String),
    /// No such statistic.
    Unknown,
    /// The case names data that is not in the file and was not found.
    NoData(String),
}

/// Why a case has no values.
enum Trouble {
    /// The statistic is undefined on the input.
    Undefined(Undefined),
    /// The input is not what the statistic needs.
    Input(String),
    /// Data outside the file is missing.
    NoData(String),
    /// No such statistic.
    Unknown,
}

impl From<Undefined> for Trouble {
    fn from(undefined: Undefined) -> Self {
        Self::Undefined(undefined)
    }
}

type Computed = Result<Value, Trouble>;

/// Reads the cases of a golden file.
pub(crate) fn load(path: &Path) -> Result<Vec<Case>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let file: Value = serde_json::from_str(&text)
        .map_err(|error| format!("`{}` is not JSON: {error}", path.display()))?;
    let cases = file
        .get("cases")
        .and_then(Value::as_array)
        .ok_or_else(|| format!("`{}` has no array `cases`", path.display()))?;
    cases.iter().enumerate().map(|(index, case)| parse(index, case)).collect()
}

fn parse(index: usize, case: &Value) -> Result<Case, String> {
    let text = |key: &str| {
        case.get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| format!("case {index} has no text `{key}`"))
    };
    let value =
        |key: &str| case.get(key).cloned().ok_or_else(|| format!("case {index} has no `{key}`"));
    Ok(Case {
        id: text("id")?,
        stat: text("stat")?,
        input: value("input")?,
        expected: value("expected")?,
        tolerance: case.get("tol").and_then(Value::as_f64).unwrap_or(0.0),
    })
}

impl Case {
    /// Computes the statistic and compares it with what is expected.
    pub(crate) fn run(&self) -> Outcome {
        let input = Input { values: &self.input, expected: &self.expected };
        let actual = match self.compute(&input) {
            Ok(actual) => actual,
            Err(Trouble::Undefined(undefined)) => input::undefined(undefined),
            Err(Trouble::Input(message)) => return Outcome::Off(message),
            Err(Trouble::NoData(message)) => return Outcome::NoData(message),
            Err(Trouble::Unknown) => return Outcome::Unknown,
        };
        let differences = compare::differences(&self.expected, &actual, self.tolerance);
        if differences.is_empty() { Outcome::Met } else { Outcome::Off(differences.join("; ")) }
    }

    fn compute(&self, input: &Input) -> Computed {
        // A degenerate case is the same statistic on data that leave it undefined.
        let stat = self.stat.strip_suffix("_degenerate").unwrap_or(&self.stat);
        for family in [agreement::compute, calibration::compute, decision::compute, panel::compute]
        {
            match family(stat, input) {
                Err(Trouble::Unknown) => {}
                result => return result,
            }
        }
        Err(Trouble::Unknown)
    }
}
