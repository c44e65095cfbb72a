//! Credentials in what a configuration says: told by their names, and left out of what is
//! shown or kept.

use reqwest::Url;
use serde_json::Value;

/// What stands in place of a value that is not kept.
const NOT_KEPT: &str = "not kept";

/// Takes out of a configuration what may be a secret: the values of request headers and of
/// variables, credentials in URLs, and fields of a body that are named like one.
pub(crate) fn hide(value: &mut Value) {
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
                        body.values_mut().for_each(hide);
                    }
                    value => hide(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::String(text) if text.contains("://") && Url::parse(text).is_ok() => {
            *text = masked_url(text);
        }
        _ => {}
    }
}

/// Whether a parameter of this name holds a credential: by the words in it, so that `api_key`,
/// `apiKey` and `X-Auth-Token` are, and `author` and `monkey` are not.
pub(crate) fn names_credential(name: &str) -> bool {
    const WORDS: [&str; 17] = [
        "auth",
        "authorization",
        "key",
        "apikey",
        "token",
        "secret",
        "cookie",
        "password",
        "passwd",
        "pwd",
        "pass",
        "signature",
        "sig",
        "credential",
        "credentials",
        "accesskey",
        "session",
    ];
    let mut words = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase();
        words.push(if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    }
    words.split_whitespace().any(|word| WORDS.contains(&word))
}

/// A URL as it may be shown and kept: without a user, and without the values of parameters
/// named like credentials. Its text is else untouched, placeholders included.
pub(crate) fn masked_url(url: &str) -> String {
    let (url, fragment) = url.split_once('#').map_or((url, None), |(a, b)| (a, Some(b)));
    let (address, query) = url.split_once('?').map_or((url, None), |(a, b)| (a, Some(b)));
    let mut masked = match address.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", &rest[host..])
        }
        None => address.to_owned(),
    };
    if let Some(query) = query {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if names_credential(name) => format!("{name}=***"),
            _ => pair.to_owned(),
        });
        masked.push('?');
        masked.push_str(&pairs.collect::<Vec<_>>().join("&"));
    }
    if let Some(fragment) = fragment {
        masked.push('#');
        masked.push_str(fragment);
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_any_kind_of_judge_is_kept_and_the_rest_is() {
        let mut panel = serde_json::json!({ "name": "p", "judge": [
            { "kind": "http", "url": "http://u:pw1@h/v1?api_key=S2&page=3", "headers": { "A": "S3" } },
            { "kind": "llm", "headers": { "X": "S4" }, "extra_body": { "api_key": "S5", "top_k": 3 } },
            { "kind": "observe", "expect": [
                { "url": "https://u@h/{id}?token=S6", "headers": { "X": "S7" } },
            ] },
            { "kind": "script", "argv": ["x", "postgres://u:S8@h/db"],
              "sandbox": { "set_env": { "K": "S9" } } },
        ] });
        hide(&mut panel);
        let kept = panel.to_string();
        for secret in ["pw1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
        for plain in ["page=3", "top_k\":3", "/{id}?token=", "\"name\":\"p\""] {
            assert!(kept.contains(plain), "{plain}: {kept}");
        }
    }

    #[test]
    fn a_credential_is_told_by_the_words_of_its_name() {
        for name in ["api_key", "apiKey", "X-Auth-Token", "sig", "access_token", "PASSWORD", "key"]
        {
            assert!(names_credential(name), "{name}");
        }
        for name in ["author", "monkey", "page", "keyword", "tokens_max", "passenger", "好"] {
            assert!(!names_credential(name), "{name}");
        }
    }

    #[test]
    fn a_masked_url_keeps_all_but_its_credentials() {
        for (url, masked) in [
            ("http://u:p@h:1/a?api_key=K&b=2#f", "http://h:1/a?api_key=***&b=2#f"),
            ("https://u@h", "https://h"),
            ("http://h/{id}?x=a@b", "http://h/{id}?x=a@b"),
            ("http://h/@me", "http://h/@me"),
            ("127.0.0.1:80", "127.0.0.1:80"),
        ] {
            assert_eq!(masked_url(url), masked);
        }
    }
}
