//! Credentials in what a configuration says: told by their names, and left out of what is
//! shown or kept.

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
