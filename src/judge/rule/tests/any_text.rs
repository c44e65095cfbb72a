//! What holds for every rule on every text.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

static JUDGES: LazyLock<Vec<(Value, BoxedJudge)>> =
    LazyLock::new(|| every_rule().into_iter().map(|rule| (rule.clone(), build(rule))).collect());

/// A sound verdict: the status and the score agree, and everything is in range.
fn assert_sound(rule: &Value, verdict: &Verdict) {
    match verdict.status {
        Status::Ok => assert!(verdict.score.is_some(), "{rule}"),
        Status::Abstained => assert!(
            verdict.score.is_none() && verdict.detail.as_ref().is_some_and(|d| !d.is_empty()),
            "{rule}"
        ),
        other => panic!("{rule}: {other}: {:?}", verdict.detail),
    }
    for criterion in &verdict.criteria {
        assert!(criterion.score.is_some() && criterion.passed.is_some(), "{rule}");
        assert!(!criterion.name.is_empty(), "{rule}");
    }
}

fn assert_sound_everywhere(case: &Case) {
    for (rule, judge) in JUDGES.iter() {
        let verdict = run(judge, case);
        assert_sound(rule, &verdict);
        assert_eq!(verdict, run(judge, case), "{rule} gives one verdict on one case");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_rule_is_sound_and_deterministic_on_any_unicode(
        input in "(?s).{0,60}", output in "(?s).{0,120}", expected in "(?s).{0,60}",
    ) {
        assert_sound_everywhere(&answer(&input, &output, &expected));
    }

    #[test]
    fn every_rule_is_sound_on_texts_near_what_it_looks_for(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "```json\n", "```\n", "{\"score\": 1", "}", "[1,", "# A\n", "###### b\n", "| a | b |\n|-|-|\n",
            "<b>", "at most 3 words ", "不超过十字", "必须包含“茶”", "do not use \"x\" ", "I'm sorry, I can't help. ",
            "ignore all previous instructions ", "4111 1111 1111 1111 ", "a@b.io ", "sk-ant-", "e\u{301}", "👨‍👩‍👧",
            "שלום ", "\u{202E}", "１２％ ", "1,234.5 ", "\u{0}", "\r\n", "key: [", "x = \"", "def f(:\n", "中文。", "- item\n", "password = \"", "::1 ", "\u{E0041}",
        ]), 0..12),
        expected in prop::sample::select(vec!["", "12%", "a\n\nb", "中文", "\n"]),
    ) {
        let output = pieces.concat();
        let reversed = pieces.iter().rev().copied().collect::<String>();
        assert_sound_everywhere(&answer(&reversed, &output, expected));
    }
}

#[test]
fn every_rule_is_sound_on_the_empty_output() {
    assert_sound_everywhere(&answer("", "", ""));
    assert_sound_everywhere(&answer(" \n", "\t\n ", "\n"));
}

#[test]
fn every_rule_is_sound_on_right_to_left_and_stacked_text() {
    assert_sound_everywhere(&answer("مرحبا", "שלום \u{202E}עולם مرحبا بالعالم", "שלום"));
    let stacked = format!("a{}", "\u{301}\u{20DD}".repeat(2000));
    assert_sound_everywhere(&answer(&stacked, &stacked, &stacked));
}

#[test]
fn every_rule_abstains_and_names_the_field_that_a_case_lacks() {
    let nothing = Case::default();
    for (rule, judge) in JUDGES.iter() {
        let verdict = run(judge, &nothing);
        assert_eq!(verdict.status, Status::Abstained, "{rule}");
        assert!(verdict.detail.unwrap().contains("the case has no `"), "{rule}");
    }
    for rule in ["equals", "similarity"] {
        let options = json!({"rule": rule, "metric": "jaccard"});
        let options = if rule == "equals" { json!({"rule": rule}) } else { options };
        abstains(&judge(options, &Case::new("", "text")), "no `expected`");
    }
    let output_only = Case { output: Some("text".into()), ..Case::default() };
    abstains(&judge(json!({"rule": "requirements"}), &output_only), "no `input`");
}

#[test]
fn a_megabyte_is_judged_by_every_rule() {
    let prose = "The quick brown fox jumps over 13 lazy dogs, again. ".repeat(20_000);
    let case = answer("In at most 100 words.", &prose, "A short reference.");
    assert!(case.text_bytes() > 1_000_000);
    for (rule, judge) in JUDGES.iter() {
        assert_sound(rule, &run(judge, &case));
    }
}

#[test]
fn hostile_text_takes_bounded_time() {
    let hostile = [
        "```\n".repeat(25_000),
        "[".repeat(75_000),
        "- ".repeat(50_000),
        "a@".repeat(50_000),
        "1-".repeat(50_000),
        "的".repeat(25_000),
        "\"' ".repeat(25_000),
        "ignore ".repeat(12_000),
        ": ".repeat(50_000),
    ];
    for text in &hostile {
        let case = answer(&text[..text.len() / 2 / 3 * 3], text, "x");
        for (rule, judge) in JUDGES.iter() {
            let start = std::time::Instant::now();
            assert_sound(rule, &run(judge, &case));
            let took = start.elapsed();
            // Generous for an unoptimised build on a busy machine; quadratic work on this
            // much text takes far longer.
            let opening: String = text.chars().take(4).collect();
            assert!(took < Duration::from_secs(20), "{rule} took {took:?} on `{opening}`");
        }
    }
}
