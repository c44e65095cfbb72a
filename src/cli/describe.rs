//! What a JSON Schema says of the keys of a configuration, in words for a terminal.

use serde::Serialize;
use serde_json::Value;

/// One key of a configuration.
#[derive(Debug, Serialize)]
pub(super) struct Key {
    pub(super) name: String,
    /// The type of its value, in words.
    pub(super) holds: String,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    pub(super) description: String,
}

const DOCS: &str = include_str!("../../docs/judges.md");

/// The description of a schema, on one line.
pub(super) fn description(schema: &Value) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The variant of a choice: the one whose `tag`, or whose whole, is the constant `name`.
pub(super) fn variant<'a>(schema: &'a Value, tag: Option<&str>, name: &str) -> Option<&'a Value> {
    let whole = |choice: &Value| match tag {
        Some(tag) => choice.pointer(&format!("/properties/{tag}/const")) == Some(&name.into()),
        None => choice.get("const") == Some(&name.into()),
    };
    let choices = schema.get("oneOf")?.as_array()?;
    choices.iter().find(|choice| whole(choice))
}

/// The keys of a variant, those that must be there first.
pub(super) fn keys(schema: &Value, tag: &str, name: &str) -> Vec<Key> {
    variant(schema, Some(tag), name)
        .map(|variant| properties(schema, variant, Some(tag)))
        .unwrap_or_default()
}

/// The keys of an object's schema; `root` holds the definitions.
pub(super) fn properties(root: &Value, schema: &Value, without: Option<&str>) -> Vec<Key> {
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.contains(&name.into()))
    };
    let Some(table) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut keys: Vec<Key> = table
        .iter()
        .filter(|(name, _)| Some(name.as_str()) != without)
        .map(|(name, property)| Key {
            name: name.clone(),
            holds: holds(root, property, 0),
            required: required(name),
            default: property.get("default").cloned(),
            description: description(property).unwrap_or_default(),
        })
        .collect();
    keys.sort_by_key(|key| !key.required);
    keys
}

/// The type of a value in words.
fn holds(root: &Value, schema: &Value, depth: usize) -> String {
    if depth > 4 {
        return "…".into();
    }
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        let found = root.pointer(path.trim_start_matches('#'));
        return found.map_or_else(|| "…".into(), |found| holds(root, found, depth + 1));
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(choice).and_then(Value::as_array) {
            let mut kinds: Vec<String> = choices
                .iter()
                .filter(|choice| choice.get("type") != Some(&"null".into()))
                .map(|choice| holds(root, choice, depth + 1))
                .collect();
            kinds.dedup();
            return kinds.join(" | ");
        }
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return "any".into(),
    };
    let words: Vec<String> = names
        .into_iter()
        .filter(|name| *name != "null")
        .map(|name| match name {
            "string" => "text".into(),
            "integer" => "whole number".into(),
            "boolean" => "true | false".into(),
            "array" => {
                let of = schema.get("items").map(|items| holds(root, items, depth + 1));
                format!("list of {}", of.unwrap_or_else(|| "any".into()))
            }
            "object" => match schema.get("properties").and_then(Value::as_object) {
                Some(keys) if keys.len() <= 6 => {
                    format!("{{ {} }}", keys.keys().cloned().collect::<Vec<_>>().join(", "))
                }
                _ => "table".into(),
            },
            other => other.into(),
        })
        .collect();
    words.join(" | ")
}

/// The first panel under a heading of the documentation.
pub(super) fn example(heading: &str) -> Option<&'static str> {
    let start = DOCS.find(&format!("\n{heading}\n"))? + 1;
    let section = &DOCS[start + heading.len()..];
    let level = heading.chars().take_while(|c| *c == '#').count();
    let block = section.find("```toml")?;
    // Not one of the next section of the same or a higher level.
    let ends = (1..=level).filter_map(|level| section.find(&format!("\n{} ", "#".repeat(level))));
    if ends.min().is_some_and(|end| end < block) {
        return None;
    }
    let text = section[block..].split_once('\n')?.1;
    Some(&text[..text.find("```")?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::rule::RULES;
    use crate::panel::spec::KINDS;

    #[test]
    fn every_rule_and_kind_has_an_example_that_is_one_of_it() {
        for rule in RULES {
            let example = example(&format!("### {rule}")).unwrap();
            assert!(example.contains(&format!("rule = \"{rule}\"")), "{rule}: {example}");
        }
        for kind in KINDS {
            let example = example(&format!("## {kind}")).unwrap();
            assert!(example.contains(&format!("kind = \"{kind}\"")), "{kind}: {example}");
        }
        assert_eq!(super::example("## no such"), None);
    }

    #[test]
    fn every_rule_and_kind_has_a_description_and_every_key_a_type() {
        let rules = schemars::schema_for!(crate::judge::rule::RuleSpec);
        for rule in RULES {
            let found = variant(rules.as_value(), Some("rule"), rule).unwrap();
            assert!(description(found).is_some_and(|text| text.len() > 10), "{rule}");
            for key in keys(rules.as_value(), "rule", rule) {
                assert!(!key.holds.is_empty() && !key.description.is_empty(), "{rule}: {key:?}");
            }
        }
        let length = keys(rules.as_value(), "rule", "length");
        let words = length.iter().find(|key| key.name == "words").unwrap();
        assert_eq!(words.holds, "{ max, min }");
    }
}
