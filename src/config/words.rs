//! What serde says, in the words of who wrote the file: keys, texts, lists and tables, and
//! never the names of types of this program.

/// Longest text quoted from a file.
const QUOTED: usize = 60;

/// A parser's message in plain words. What is plain already stays as it is.
pub(crate) fn plain(message: &str) -> String {
    let (message, place) = match message.rfind(" at line ") {
        Some(at) if message[at..].contains(" column ") => message.split_at(at),
        _ => (message, ""),
    };
    let said = if let Some(rest) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .or_else(|| message.strip_prefix("invalid length "))
    {
        rest.rsplit_once(", expected ").map(|(found, wanted)| {
            format!("expected {}, found {}", expected(wanted), found_in(found))
        })
    } else if let Some(rest) = message.strip_prefix("unknown field ") {
        Some(unknown("key", rest))
    } else if let Some(rest) = message.strip_prefix("unknown variant ") {
        Some(unknown("value", rest))
    } else if let Some(rest) = message.strip_prefix("missing field ") {
        Some(format!("missing key {rest}"))
    } else if let Some(rest) = message.strip_prefix("duplicate field ") {
        Some(format!("the key {rest} is there twice"))
    } else if message.starts_with("data did not match any variant") {
        Some("the value has none of the forms that are expected here".to_owned())
    } else {
        None
    };
    said.unwrap_or_else(|| message.to_owned()) + place
}

/// "`x`, expected one of `a`, `b`" as "unknown key `x`: expected one of `a`, `b`".
fn unknown(what: &str, rest: &str) -> String {
    match rest.rsplit_once(", expected ") {
        Some((word, known)) => format!("unknown {what} {word}: expected {known}"),
        None => match rest.rsplit_once(", there are no ") {
            Some((word, _)) => format!("unknown {what} {word}: none is expected here"),
            None => format!("unknown {what} {rest}"),
        },
    }
}

/// What a type of the program is to who writes the file.
fn expected(wanted: &str) -> String {
    let wanted = wanted.trim();
    if let Some((kind, count)) = wanted.split_once(" of length ").or(wanted.split_once(" of size "))
        && (kind.contains("array") || kind.contains("tuple"))
    {
        return format!("a list of {count} values");
    }
    let known = match wanted {
        "f32" | "f64" | "a number" => "a number",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number of 0 or more",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "string" | "a string" | "a borrowed string" | "path string" | "str" | "a character" => {
            "a text"
        }
        "bool" | "a boolean" => "`true` or `false`",
        "sequence" | "a sequence" => "a list",
        "map" | "a map" => "a table",
        "string or map" => "a text or a table",
        "variant identifier" | "field identifier" | "identifier" => "a text",
        "unit" => "nothing",
        "option" | "any value" | "any valid JSON value" => "a value",
        _ if wanted.starts_with("fewer elements in ") => "fewer values",
        _ if wanted.starts_with("a nonzero ") => "a whole number, not 0",
        _ if wanted.starts_with("enum ") => "a text",
        _ if wanted.starts_with("tuple ") => "a list",
        _ if wanted.starts_with("struct ")
            || wanted.starts_with("internally tagged enum ")
            || wanted.starts_with("adjacently tagged enum ") =>
        {
            "a table"
        }
        own => own,
    };
    known.to_owned()
}

/// What was found, without the names that serde has for it.
fn found_in(found: &str) -> String {
    let quoted = |prefix: &str| found.strip_prefix(prefix).filter(|rest| rest.starts_with('`'));
    for prefix in ["integer ", "floating point ", "boolean ", "character "] {
        if let Some(value) = quoted(prefix) {
            return value.to_owned();
        }
    }
    if let Some(text) = found.strip_prefix("string ") {
        let short: String = text.chars().take(QUOTED).collect();
        let more = if short.len() < text.len() { "…" } else { "" };
        return format!("the text {short}{more}");
    }
    match found {
        "null" | "unit value" | "Option value" => "nothing",
        "sequence" => "a list",
        "map" => "a table",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::config::from_value;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Everything {
        number: Option<f64>,
        count: Option<u32>,
        whole: Option<i64>,
        text: Option<String>,
        flag: Option<bool>,
        list: Option<Vec<String>>,
        table: Option<Inner>,
        map: Option<std::collections::BTreeMap<String, f64>>,
        kind: Option<Kind>,
        pair: Option<(f64, f64)>,
        path: Option<std::path::PathBuf>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Inner {
        needed: f64,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        First,
        Second,
    }

    #[test]
    fn no_value_of_any_kind_in_any_place_is_answered_with_the_words_of_a_compiler() {
        let values = [
            serde_json::json!(null),
            serde_json::json!(true),
            serde_json::json!(-1),
            serde_json::json!(1.5),
            serde_json::json!("wörter 中文, expected f64"),
            serde_json::json!([]),
            serde_json::json!([1, 2, 3]),
            serde_json::json!({}),
            serde_json::json!({"other": 1}),
        ];
        let keys = [
            "number", "count", "whole", "text", "flag", "list", "table", "map", "kind", "pair",
            "path", "nothing",
        ];
        let mut refused = 0;
        for key in keys {
            for value in &values {
                let given = serde_json::json!({ key: value });
                let Err(problem) = from_value::<Everything>(given) else { continue };
                refused += 1;
                let said = problem.to_string().replace("中文, expected f64", "");
                for word in [
                    "f64",
                    "u32",
                    "i64",
                    "struct",
                    "enum",
                    "variant",
                    "field",
                    "sequence",
                    "map,",
                    "a map",
                    "string",
                    "boolean",
                    "invalid",
                    "integer",
                    "floating",
                    "null",
                    "unit",
                    "tuple",
                    "array",
                    "Inner",
                    "Kind",
                    "identifier",
                ] {
                    assert!(!said.contains(word), "`{word}` in {said}");
                }
                assert!(said.contains("expected") || said.contains("missing"), "{said}");
            }
        }
        assert!(refused > 70, "{refused}");
    }

    #[test]
    fn a_message_says_what_was_expected_and_what_was_found() {
        for (message, said) in [
            ("invalid type: map, expected a string", "expected a text, found a table"),
            ("invalid type: string \"x\", expected f64", "expected a number, found the text \"x\""),
            (
                "invalid value: integer `-1`, expected u32 at line 3 column 7",
                "expected a whole number of 0 or more, found `-1` at line 3 column 7",
            ),
            ("invalid length 0, expected struct X with 2 elements", "expected a table, found 0"),
            ("missing field `name`", "missing key `name`"),
            (
                "unknown field `naem`, expected `name` or `kind`",
                "unknown key `naem`: expected `name` or `kind`",
            ),
            ("unknown field `x`, there are no fields", "unknown key `x`: none is expected here"),
            ("`1-0` is no scale", "`1-0` is no scale"),
        ] {
            assert_eq!(plain(message), said);
        }
    }
}
