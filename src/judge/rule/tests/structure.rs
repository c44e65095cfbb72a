//! Rules on form: JSON, Markdown, code, language, and composites of rules.

use super::*;

#[test]
fn json_is_read_whole_or_from_a_fenced_block() {
    let any = json!({"rule": "json"});
    for good in ["{}", " [1] \n", "null", "Here:\n```json\n{\"a\": 1}\n```\nDone.", "```\n[]\n```"]
    {
        near(score(&on(any.clone(), good)), 1.0);
    }
    for bad in ["", "{", "{'a': 1}", "{} {}", "```python\n{}\n```", "NaN", "```json\n{\n```"] {
        assert_eq!(score(&on(any.clone(), bad)), 0.0, "{bad}");
    }
    let bare = json!({"rule": "json", "fenced": false});
    near(score(&on(bare, "```json\n{}\n```")), 0.0);
    assert!(on(any, "x\n```json\n{\n```").feedback[0].starts_with("the fenced block at line 3"));
}

#[test]
fn json_paths_must_exist_and_may_have_to_equal() {
    let paths = json!({"rule": "json", "paths": [
        {"path": "/a/0/b", "equals": 1.0},
        {"path": "$.c[?@.d > 2].d", "equals": 3},
        {"path": "/gone"},
        {"path": "/n", "equals": null},
    ]});
    let verdict = on(paths.clone(), r#"{"a": [{"b": 1}], "c": [{"d": 1}, {"d": 3}], "n": null}"#);
    near(score(&verdict), 0.75);
    assert_eq!(verdict.feedback, ["`/gone` is missing: add it"]);
    let verdict = on(paths, r#"{"a": [{"b": "1"}], "c": [], "gone": null, "n": 0}"#);
    near(score(&verdict), 0.25);
    assert_eq!(verdict.feedback[0], "`/a/0/b` is `\"1\"`: expected `1.0`");
    assert_eq!(verdict.feedback[2], "`/n` is `0`: expected `null`");
}

#[test]
fn large_whole_numbers_in_json_are_compared_exactly() {
    let path = json!({"rule": "json", "paths": [{"path": "/n", "equals": 9007199254740993_u64}]});
    near(score(&on(path.clone(), r#"{"n": 9007199254740993}"#)), 1.0);
    near(score(&on(path, r#"{"n": 9007199254740992}"#)), 0.0);
}

#[cfg(feature = "schema")]
#[test]
fn a_schema_names_the_place_that_does_not_fit() {
    let schema =
        json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["name"]});
    let options = json!({"rule": "json", "schema": schema});
    near(score(&on(options.clone(), r#"{"name": "x", "age": 3}"#)), 1.0);
    let verdict = on(options, r#"{"age": "three"}"#);
    near(score(&verdict), 0.0);
    assert!(verdict.feedback[0].contains("`/age`"), "{:?}", verdict.feedback);
    assert!(refused(json!({"rule": "json", "schema": {"type": "objekt"}})).contains("`schema`"));
    assert!(refused(json!({"rule": "json", "schema": [1]})).contains("expected an object"));
    let remote = json!({"rule": "json", "schema": {"$ref": "https://example.com/s.json"}});
    assert!(refused(remote).contains("`schema`"));
}

#[cfg(feature = "schema")]
#[test]
fn a_schema_file_is_read_from_the_base_and_its_content_is_part_of_the_identity() {
    let file = build(json!({"rule": "json", "schema_file": "person.schema.json"}));
    near(score(&run(&file, &Case::new("", r#"{"name": "x"}"#))), 1.0);
    near(score(&run(&file, &Case::new("", "{}"))), 0.0);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("person.schema.json"), "{}").unwrap();
    let other = spec(json!({"rule": "json", "schema_file": "person.schema.json"}))
        .build(&BuildContext::new(folder.path(), Client::default()))
        .unwrap();
    assert_ne!(file.fingerprint(), other.fingerprint());
}

#[test]
fn markdown_structure_is_checked_piece_by_piece() {
    let options = json!({"rule": "markdown", "headings": ["Summary", "结论"], "in_order": true,
        "table": true, "list": true, "code": true, "link": true, "max_heading_level": 2,
        "no_skipped_levels": true, "no_html": true, "closed_fences": true, "items": {"min": 2}});
    let good = "# summary:\n\n- a\n- b [x](http://x)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## 结论\n\n```\ncode\n```\n";
    let verdict = on(options.clone(), good);
    assert!(verdict.feedback.is_empty(), "{:?}", verdict.feedback);
    near(score(&verdict), 1.0);
    let bad = "## 结论\n\n#### deep\n\n<b>bold</b>\n\n```\nopen";
    let verdict = on(options, bad);
    let all = verdict.feedback.join("\n");
    for part in [
        "has no heading `Summary`: add it",
        "has no table",
        "has no list",
        "has no link",
        "the heading `deep` is of level 4: expected at most 2",
        "follows one of level 2: use level 3",
        "has raw HTML (`<b>`)",
        "the fenced block at line 7 is not closed",
        "has 0 list items: expected at least 2; add 2",
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
    let order = json!({"rule": "markdown", "headings": ["A", "B"], "in_order": true});
    near(score(&on(order, "# B\n# A\n")), 2.0 / 3.0);
    near(score(&on(json!({"rule": "markdown", "table": false}), "plain | text")), 1.0);
}

#[test]
fn code_in_data_formats_parses_or_names_the_line() {
    for (language, good, bad, line) in [
        ("json", "{\"a\": 1}", "{\n\"a\": }", "line 2"),
        ("toml", "a = 1\n[b]\n", "a = 1\nb = \n", "line 2"),
        ("yaml", "a: 1\nb: [1, 2]\n", "a: 1\nb: [1, 2\nc: {", "line"),
    ] {
        let options = json!({"rule": "code", "language": language});
        near(score(&on(options.clone(), good)), 1.0);
        let verdict = on(options.clone(), bad);
        assert_eq!(score(&verdict), 0.0, "{language}");
        assert!(verdict.feedback[0].contains(line), "{:?}", verdict.feedback);
        assert!(on(options, " ").feedback[0].starts_with("has no code"));
    }
}

#[test]
fn code_is_taken_from_fenced_blocks_and_lines_are_those_of_the_text() {
    let options = json!({"rule": "code", "language": "json", "extract": true});
    let text = "Two blocks:\n```json\n{}\n```\nand\n```json\n{\n```\n";
    let verdict = on(options.clone(), text);
    near(score(&verdict), 0.5);
    assert!(verdict.feedback[0].contains("is not JSON: line 8"), "{:?}", verdict.feedback);
    near(score(&on(options.clone(), "```\n[1]\n```")), 1.0);
    assert!(on(options, "{}").feedback[0].starts_with("has no fenced block of JSON"));
}

#[cfg(feature = "syntax")]
#[test]
fn programs_parse_or_name_the_line_of_the_first_error() {
    for (language, good, bad, line) in [
        ("python", "def f(x):\n    return x\n", "x = 1\ndef f(:\n    pass\n", "line 2"),
        ("javascript", "const f = (x) => x + 1;", "let a = 1;\nlet b = ;\n", "line 2"),
        ("rust", "fn main() { println!(\"中文\"); }", "fn a() {}\nfn b( {}\n", "line 2"),
    ] {
        let options = json!({"rule": "code", "language": language});
        near(score(&on(options.clone(), good)), 1.0);
        let verdict = on(options, bad);
        assert_eq!(score(&verdict), 0.0, "{language}");
        assert!(verdict.feedback[0].contains(line), "{:?}", verdict.feedback);
    }
    let options = json!({"rule": "code", "language": "python", "extract": true});
    near(score(&on(options, "Sure:\n```py\nprint('hi')\n```")), 1.0);
}

#[cfg(feature = "language")]
#[test]
fn the_language_of_a_text_is_told_and_short_texts_are_not_guessed() {
    let english = "The weather was lovely this morning, so we walked along the river for an hour.";
    let chinese = "今天早上天气很好，所以我们沿着河边散步了一个小时，然后回家吃午饭。";
    let german = "Das Wetter war heute Morgen sehr schön, deshalb gingen wir am Fluss spazieren.";
    let options = |code: &str| json!({"rule": "language", "expect": code});
    near(score(&on(options("en"), english)), 1.0);
    near(score(&on(options("zh"), chinese)), 1.0);
    near(score(&on(json!({"rule": "language", "any": ["fr", "deu"]}), german)), 1.0);
    let verdict = on(options("en"), chinese);
    near(score(&verdict), 0.0);
    assert!(
        verdict.feedback[0].starts_with("is in Mandarin: expected `en`"),
        "{:?}",
        verdict.feedback
    );
    abstains(&on(options("en"), "Hello there"), "letters");
    abstains(&on(options("zh"), "你好"), "letters");
    abstains(&on(options("zh"), ""), "letters");
    assert!(refused(options("klingon")).contains("no known language"));
    assert!(refused(json!({"rule": "language"})).contains("`expect`"));
}

#[test]
fn a_composite_weighs_its_parts_and_names_them() {
    let options = json!({"rule": "composite", "parts": [
        {"name": "size", "weight": 3, "check": {"rule": "length", "words": {"max": 2}}},
        {"check": {"rule": "contains", "all": ["tea"]}},
        {"check": {"rule": "contains", "all": ["cup"]}},
    ]});
    let verdict = on(options, "tea time now then");
    near(score(&verdict), (3.0 * 0.5 + 1.0) / 5.0);
    let names: Vec<&str> = verdict.criteria.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["size", "contains", "contains 2"]);
    assert_eq!(verdict.criteria[1].passed, Some(true));
    assert_eq!(
        verdict.feedback,
        ["size: has 4 words: expected at most 2; cut 2", "contains 2: does not contain `cup`"]
    );
}

#[test]
fn a_composite_takes_the_lowest_or_highest_part() {
    let parts = json!([
        {"check": {"rule": "contains", "all": ["a", "b"]}},
        {"check": {"rule": "contains", "all": ["a"]}},
    ]);
    let all = json!({"rule": "composite", "combine": "all", "parts": parts});
    near(score(&on(all, "a")), 0.5);
    let any = json!({"rule": "composite", "combine": "any", "parts": parts});
    let verdict = on(any.clone(), "a");
    near(score(&verdict), 1.0);
    assert!(verdict.feedback.is_empty());
    near(score(&on(any, "")), 0.0);
}

#[test]
fn a_required_part_vetoes_and_an_abstaining_one_is_left_out_and_named() {
    let options = |required: bool| {
        json!({"rule": "composite", "parts": [
            {"check": {"rule": "contains", "all": ["a"]}},
            {"required": required, "check": {"rule": "equals"}},
        ]})
    };
    let verdict = judge(options(true), &answer("", "a", "b"));
    near(score(&verdict), 0.0);
    assert!(verdict.criteria[1].required);
    near(score(&judge(options(false), &answer("", "a", "b"))), 0.5);
    let without = judge(options(false), &Case::new("", "a"));
    near(score(&without), 1.0);
    assert_eq!(without.notes["abstained"]["equals"], "the case has no `expected`");
    abstains(&judge(options(true), &Case::new("", "a")), "`equals`: the case has no `expected`");
    let all_out = json!({"rule": "composite", "parts": [{"check": {"rule": "equals"}}]});
    abstains(&judge(all_out, &Case::new("", "a")), "no part applies");
}
