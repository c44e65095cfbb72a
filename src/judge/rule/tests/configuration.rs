//! What is refused before the first case, and what a fingerprint stands on.

use super::*;

#[test]
fn options_that_can_not_work_are_refused_by_key() {
    for (options, message) in [
        (json!({"rule": "length"}), "nothing to count"),
        (json!({"rule": "length", "words": {}}), "`words`: expected `min`, `max` or both"),
        (
            json!({"rule": "length", "lines": {"min": 3, "max": 2}}),
            "`lines`: `min` is 3 and `max` is 2",
        ),
        (json!({"rule": "contains"}), "nothing to look for"),
        (json!({"rule": "contains", "all": [" "]}), "`all`: holds an empty text"),
        (json!({"rule": "contains", "all": ["a"], "any_line": true}), "`any_line`"),
        (json!({"rule": "regex"}), "`pattern`: is empty"),
        (json!({"rule": "regex", "pattern": "("}), "`pattern`: is not a regular expression"),
        (json!({"rule": "regex", "pattern": "a", "patterns": ["b", "["]}), "`patterns[1]`"),
        (json!({"rule": "regex", "patterns": ["(?=a)"]}), "`patterns[0]`"),
        (json!({"rule": "equals", "of": "expected"}), "`of`"),
        (json!({"rule": "equals", "tolerance": {"absolute": 1}}), "needs `mode = \"numeric\"`"),
        (
            json!({"rule": "equals", "mode": "numeric", "tolerance": {"absolute": -1}}),
            "`tolerance`",
        ),
        (json!({"rule": "equals", "mode": "numeric", "references": ["x"]}), "`x` is not a number"),
        (json!({"rule": "similarity", "metric": "edit", "against": "output"}), "with itself"),
        (json!({"rule": "similarity", "metric": "edit", "min": 1.5}), "`min`: is 1.5"),
        (json!({"rule": "similarity", "metric": "edit", "graded": false}), "needs `min`"),
        (json!({"rule": "similarity", "metric": "edit", "shingle": 2}), "`shingle`"),
        (json!({"rule": "json", "paths": [{"path": "a.b"}]}), "`paths[0].path`: `a.b` is no path"),
        (json!({"rule": "json", "paths": [{"path": "$["}]}), "is not a JSONPath"),
        (json!({"rule": "json", "schema_file": "missing.json"}), "missing.json"),
        (json!({"rule": "markdown"}), "nothing to check"),
        (json!({"rule": "markdown", "max_heading_level": 9}), "expected 1 to 6"),
        (json!({"rule": "readability"}), "nothing to check"),
        (json!({"rule": "readability", "grade": {"min": 9.0, "max": 3.0}}), "`grade`"),
        (json!({"rule": "repetition", "ngrams": 1.0}), "`ngrams`: is 1"),
        (json!({"rule": "repetition", "size": 0}), "`size`"),
        (json!({"rule": "requirements", "about": 2}), "`about`"),
        (json!({"rule": "refusal", "max_words": 0}), "`max_words`"),
        (json!({"rule": "pii", "allow": [""]}), "`allow`"),
        (json!({"rule": "secrets", "entropy": 99}), "`entropy`"),
        (json!({"rule": "composite", "parts": []}), "`parts`: is empty"),
        (
            json!({"rule": "composite", "parts": [{"check": {"rule": "refusal"}, "weight": 0}]}),
            "`parts[0].weight`",
        ),
        (
            json!({"rule": "composite", "parts": [{"check": {"rule": "regex", "pattern": "("}}]}),
            "`parts[0].check.pattern`",
        ),
    ] {
        let text = refused(options.clone());
        assert!(text.contains(message), "{options}: {text}");
    }
}

#[test]
fn unknown_keys_rules_and_units_are_refused_with_a_near_miss() {
    let problem = |options: Value| crate::config::from_value::<RuleSpec>(options).unwrap_err();
    let unknown = problem(json!({"rule": "length", "word": {"max": 3}}));
    assert_eq!(unknown.suggestion.as_deref(), Some("words"), "{unknown}");
    let unknown = problem(json!({"rule": "lenght"}));
    assert_eq!(unknown.suggestion.as_deref(), Some("length"), "{unknown}");
    let unknown = problem(json!({"rule": "length", "words": {"most": 3}}));
    assert!(unknown.to_string().contains("most"), "{unknown}");
    assert!(problem(json!({"rule": "pii", "kinds": ["dna"]})).to_string().contains("dna"));
    assert!(problem(json!({})).to_string().contains("rule"));
}

#[test]
fn nesting_beyond_reason_is_refused() {
    let mut options = json!({"rule": "refusal"});
    for _ in 0..12 {
        options = json!({"rule": "composite", "parts": [{"check": options}]});
    }
    assert!(refused(options).contains("nested more than 8 deep"));
}

#[test]
fn rules_that_need_a_feature_say_which() {
    if !cfg!(feature = "language") {
        assert!(
            refused(json!({"rule": "language", "expect": "en"})).contains("feature `language`")
        );
    }
    if !cfg!(feature = "syntax") {
        assert!(refused(json!({"rule": "code", "language": "rust"})).contains("feature `syntax`"));
    }
    if !cfg!(feature = "schema") {
        assert!(refused(json!({"rule": "json", "schema": {}})).contains("feature `schema`"));
    }
}

#[test]
fn a_fingerprint_depends_on_options_and_not_on_how_they_are_written() {
    let print = |options: Value| build(options).fingerprint().clone();
    let short = print(json!({"rule": "contains", "all": ["a"]}));
    assert_eq!(short, print(json!({"ignore_case": true, "all": ["a"], "rule": "contains"})));
    assert_ne!(short, print(json!({"rule": "contains", "all": ["b"]})));
    assert_ne!(short, print(json!({"rule": "contains", "any": ["a"]})));
    assert_eq!(short.as_str().len(), 32);
}

#[test]
fn every_rule_round_trips_through_its_json_and_has_a_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(RuleSpec)).unwrap();
    let text = schema.to_string();
    for options in every_rule() {
        let first = spec(options);
        assert!(text.contains(&format!("\"{}\"", first.name())), "{}", first.name());
        let again = spec(serde_json::to_value(&first).unwrap());
        assert_eq!(first, again);
    }
}

#[test]
fn every_rule_reads_from_toml() {
    let text = "rule = \"length\"\nwords = { min = 20, max = 150 }\n";
    let value: Value = toml::from_str(text).unwrap();
    assert_eq!(build(value).kind(), "rule");
}
