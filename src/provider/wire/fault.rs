//! What a server says went wrong, whatever shape it says it in.
//!
//! Only words meant for a person are taken: validation errors of some servers quote the whole
//! request, and those parts are left out.

use serde_json::Value;

/// A server's own words about a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerFault {
    /// For a person. Not yet scrubbed of keys and prompts.
    pub(crate) message: String,
    /// Type, code and reason, for a program; lower case.
    pub(crate) code: String,
}

impl ServerFault {
    /// Reads the body of a failed request.
    pub(crate) fn read(body: &[u8]) -> Self {
        if let Some(page) = html(body) {
            return Self { message: page, code: String::new() };
        }
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => of_value(&value).unwrap_or_default(),
            Err(_) => {
                Self { message: String::from_utf8_lossy(body).into_owned(), code: String::new() }
            }
        }
    }

    /// Whether the message or the code holds one of these words; `words` in lower case.
    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words.iter().any(|word| message.contains(word) || self.code.contains(word))
    }
}

/// An error in a body that came with a good status, and the HTTP status it names.
pub(super) fn wrapped(body: &[u8]) -> Option<(Option<u16>, ServerFault)> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = value.get("error").filter(|error| !error.is_null())?;
    let status = ["code", "status"].iter().find_map(|key| {
        let number = error.get(key)?.as_u64()?;
        u16::try_from(number).ok().filter(|status| (400..600).contains(status))
    });
    Some((status, of_value(&value)?))
}

/// What an HTML page is, where a body is one.
pub(super) fn html(body: &[u8]) -> Option<String> {
    let start = body.trim_ascii_start();
    let is_page = start.starts_with(b"<")
        && ["<!doctype", "<html", "<head", "<body", "<?xml", "<center", "<h1"].iter().any(|tag| {
            start.len() >= tag.len() && start[..tag.len()].eq_ignore_ascii_case(tag.as_bytes())
        });
    if !is_page {
        return None;
    }
    let text = String::from_utf8_lossy(&start[..start.len().min(4096)]).into_owned();
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|from| {
        let from = from + "<title>".len();
        let to = from + lower.get(from..)?.find("</title>")?;
        text.get(from..to).map(str::trim).filter(|title| !title.is_empty())
    });
    Some(match title {
        Some(title) => format!("the body is an HTML page, \"{title}\""),
        None => "the body is an HTML page".to_owned(),
    })
}

fn of_value(value: &Value) -> Option<ServerFault> {
    match value {
        Value::String(text) => Some(ServerFault { message: text.clone(), code: String::new() }),
        Value::Array(items) => items.iter().find_map(of_value),
        Value::Object(map) => {
            if let Some(inner) = map.get("error").filter(|inner| !inner.is_null()) {
                let mut fault = of_value(inner)?;
                // `{"error": "name", "message": "words"}`: the words are outside.
                if let (Value::String(name), Some(Value::String(words))) =
                    (inner, map.get("message"))
                {
                    fault = ServerFault { message: words.clone(), code: name.to_lowercase() };
                }
                return Some(fault);
            }
            let message = ["message", "msg", "detail", "error_message"]
                .iter()
                .find_map(|key| map.get(*key).and_then(words))
                .unwrap_or_default();
            let code = code(value);
            (!message.is_empty() || !code.is_empty()).then_some(ServerFault { message, code })
        }
        _ => None,
    }
}

/// A message, or the messages of a list of validation errors with the fields they are about.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let parts: Vec<String> = items
                .iter()
                .filter_map(|item| {
                    let text = item.get("msg").or_else(|| item.get("message"))?.as_str()?;
                    let field: Vec<&str> = item
                        .get("loc")
                        .and_then(Value::as_array)
                        .map(|loc| loc.iter().filter_map(Value::as_str).collect())
                        .unwrap_or_default();
                    Some(if field.is_empty() {
                        text.to_owned()
                    } else {
                        format!("{}: {text}", field.join("."))
                    })
                })
                .collect();
            (!parts.is_empty()).then(|| parts.join("; "))
        }
        Value::Object(_) => of_value(value).map(|fault| fault.message),
        _ => None,
    }
}

/// Every short machine-readable word of an error, so that quota names and codes are seen
/// wherever a server puts them.
fn code(error: &Value) -> String {
    fn collect(value: &Value, depth: u8, into: &mut String) {
        match value {
            Value::Object(map) if depth < 5 => {
                for (key, value) in map {
                    let named = [
                        "type",
                        "code",
                        "status",
                        "reason",
                        "innererror",
                        "param",
                        "quotaid",
                        "quotametric",
                        "details",
                        "violations",
                        "metadata",
                    ];
                    if named.contains(&key.to_lowercase().as_str()) {
                        collect(value, depth + 1, into);
                    }
                }
            }
            Value::Array(items) if depth < 5 => {
                items.iter().take(20).for_each(|item| collect(item, depth + 1, into));
            }
            Value::String(text) if text.len() < 120 => {
                into.push_str(&text.to_lowercase());
                into.push(' ');
            }
            _ => {}
        }
    }
    let mut text = String::new();
    collect(error, 0, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_known_shape() {
        for (body, message) in [
            (r#"{"error":{"message":"no such model","code":"model_not_found"}}"#, "no such model"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded",
            ),
            (r#"[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]"#, "bad"),
            (r#"{"error":"model is loading"}"#, "model is loading"),
            (r#"{"error":"unauthorized","message":"log in"}"#, "log in"),
            (r#"{"object":"error","message":"too long"}"#, "too long"),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            ("upstream connect error", "upstream connect error"),
            (
                "<html><head><title>502 Bad Gateway</title>",
                "the body is an HTML page, \"502 Bad Gateway\"",
            ),
            ("{}", ""),
            ("", ""),
        ] {
            assert_eq!(ServerFault::read(body.as_bytes()).message, message, "{body}");
        }
    }

    #[test]
    fn validation_errors_keep_the_field_and_drop_the_quoted_input() {
        let body = r#"{"detail":[{"type":"literal_error","loc":["body","response_format","type"],
            "msg":"Input should be 'text' or 'json_object'","input":"my whole prompt"}]}"#;
        let fault = ServerFault::read(body.as_bytes());
        assert_eq!(
            fault.message,
            "body.response_format.type: Input should be 'text' or 'json_object'"
        );
    }

    #[test]
    fn quota_names_are_found_in_details() {
        let body = r#"{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED",
            "details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}"#;
        assert!(ServerFault::read(body.as_bytes()).mentions(&["perday"]));
    }
}
