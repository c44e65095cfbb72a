//! Compares computed with expected values, field by field.

use serde_json::Value;

/// Expected values are rounded to 12 significant digits; this much relative difference is
/// theirs, not ours.
const ROUNDING: f64 = 5.1e-12;

/// Fields that a reference rounded, or made by another solver or generator, by name.
fn looser(name: &str) -> Option<f64> {
    [
        // Rounded by the reference.
        ("_5dp", 1.0e-5),
        ("_2dp", 5.1e-3),
        ("published", 5.1e-3),
        // Another random generator.
        ("_approx", 1.0e-2),
        // The reference's solver stops early.
        ("betacal_map", 1.0e-3),
    ]
    .into_iter()
    .find(|(part, _)| name.contains(part))
    .map(|(_, tolerance)| tolerance)
}

/// Every difference, named by its path.
pub(crate) fn differences(expected: &Value, actual: &Value, tolerance: f64) -> Vec<String> {
    let mut out = Vec::new();
    walk("", expected, actual, tolerance, &mut out);
    out
}

fn is_undefined(actual: &Value) -> bool {
    match actual {
        Value::Object(fields) if fields.contains_key("undefined") => true,
        Value::Object(fields) => !fields.is_empty() && fields.values().all(is_undefined),
        _ => false,
    }
}

fn walk(path: &str, expected: &Value, actual: &Value, tolerance: f64, out: &mut Vec<String>) {
    let mut off = |what: String| out.push(format!("{path}: {what}"));
    // NaN, an error of the reference, and a fit that diverges are all undefined here.
    let no_value =
        matches!(expected.as_str(), Some("NaN" | "diverges")) || expected.get("error").is_some();
    if no_value {
        if !is_undefined(actual) {
            off(format!("expected undefined, got {actual}"));
        }
        return;
    }
    match (expected, actual) {
        (Value::Object(fields), _) => {
            let whole = actual.get("undefined").is_some();
            for (name, value) in fields {
                // An undefined statistic leaves each of its fields undefined.
                let found = if whole { Some(actual) } else { actual.get(name) };
                let inner = format!("{path}/{name}");
                let tolerance = looser(name).map_or(tolerance, |t| t.max(tolerance));
                match found {
                    Some(found) => walk(&inner, value, found, tolerance, out),
                    None => out.push(format!("{inner}: not computed")),
                }
            }
        }
        (Value::Array(e), Value::Array(a)) if e.len() == a.len() => {
            for (i, (e, a)) in e.iter().zip(a).enumerate() {
                walk(&format!("{path}/{i}"), e, a, tolerance, out);
            }
        }
        (Value::Number(e), Value::Number(a)) => {
            let (e, a) = (e.as_f64().unwrap_or(f64::NAN), a.as_f64().unwrap_or(f64::NAN));
            let allowed = tolerance * e.abs().max(1.0) + ROUNDING * e.abs();
            let distance = (e - a).abs();
            if distance.is_nan() || distance > allowed {
                off(format!("expected {e}, got {a}, off by {distance:.3e} of {allowed:.1e}"));
            }
        }
        _ if expected == actual => {}
        _ => off(format!("expected {expected}, got {actual}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count(expected: Value, actual: Value, tolerance: f64) -> usize {
        differences(&expected, &actual, tolerance).len()
    }

    #[test]
    fn a_value_off_its_tolerance_is_seen() {
        assert_eq!(count(json!({"a": 1.0}), json!({"a": 1.0 + 2e-9}), 1e-9), 1);
        assert_eq!(count(json!({"a": 1.0}), json!({"a": 1.0 + 5e-10}), 1e-9), 0);
        assert_eq!(count(json!({"a": 3}), json!({"a": 4}), 0.0), 1);
        assert_eq!(count(json!([1, 2]), json!([1]), 1.0), 1);
    }

    #[test]
    fn a_missing_field_is_not_met() {
        assert_eq!(count(json!({"a": 1.0, "b": 2.0}), json!({"a": 1.0}), 1.0), 1);
    }

    #[test]
    fn undefined_meets_nan_and_error_and_nothing_else() {
        let undefined = json!({"undefined": "no_data"});
        assert_eq!(count(json!({"a": "NaN"}), json!({"a": undefined}), 0.0), 0);
        assert_eq!(count(json!({"a": "NaN", "b": "NaN"}), undefined.clone(), 0.0), 0);
        assert_eq!(count(json!({"error": "x"}), undefined.clone(), 0.0), 0);
        assert_eq!(count(json!({"a": 0.0}), undefined, 1.0), 1);
        assert_eq!(count(json!({"a": "NaN"}), json!({"a": 0.0}), 1.0), 1);
        assert_eq!(count(json!({"error": "x"}), json!({"a": 0.0}), 1.0), 1);
    }
}
