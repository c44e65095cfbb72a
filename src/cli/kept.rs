//! A panel as the store keeps it: without what may be a secret.

use reqwest::Url;
use serde_json::Value;

use crate::config::secret::{masked_url, names_credential};

/// What stands in place of a value that is not kept.
const NOT_KEPT: &str = "not kept";

/// A panel without the values of request headers and variables, and without credentials in
/// URLs and in fields named like one.
pub(super) fn without_secrets(mut panel: Value) -> Value {
    let judges = panel.get_mut("judge").and_then(Value::as_array_mut);
    judges.into_iter().flatten().for_each(mask);
    panel
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(table) => {
            for (key, value) in table.iter_mut() {
                match value {
                    Value::Object(named) if key == "headers" || key == "set_env" => {
                        named.values_mut().for_each(|value| *value = NOT_KEPT.into());
                    }
                    Value::Object(body) if key == "extra_body" => {
                        let secret = body
                            .iter_mut()
                            .filter(|(key, value)| names_credential(key) && value.is_string());
                        secret.for_each(|(_, value)| *value = NOT_KEPT.into());
                        body.values_mut().for_each(mask);
                    }
                    value => mask(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) if text.contains("://") && Url::parse(text).is_ok() => {
            *text = masked_url(text);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_secret_of_any_kind_of_judge_is_kept_and_the_rest_is() {
        let panel = json!({ "name": "p", "judge": [
            { "kind": "http", "url": "http://u:pw1@h/v1?api_key=S2&page=3", "headers": { "A": "S3" } },
            { "kind": "llm", "headers": { "X": "S4" }, "extra_body": { "api_key": "S5", "top_k": 3 } },
            { "kind": "observe", "expect": [
                { "url": "https://u@h/{id}?token=S6", "headers": { "X": "S7" } },
            ] },
            { "kind": "script", "argv": ["x", "postgres://u:S8@h/db"],
              "sandbox": { "set_env": { "K": "S9" } } },
        ] });
        let kept = without_secrets(panel).to_string();
        for secret in ["pw1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
        for plain in ["page=3", "top_k\":3", "/{id}?token=", "\"name\":\"p\""] {
            assert!(kept.contains(plain), "{plain}: {kept}");
        }
    }
}
