//! Rules on words: length, terms, patterns, equality, requirements, readability, repetition.

use super::*;

#[test]
fn length_is_graded_by_the_ratio_to_the_bound_and_says_how_much_to_change() {
    let words = json!({"rule": "length", "words": {"min": 20, "max": 150}});
    let verdict = on(words.clone(), &"word ".repeat(210));
    near(score(&verdict), 150.0 / 210.0);
    assert_eq!(verdict.feedback, ["has 210 words: expected 20 to 150; cut 60"]);
    assert_eq!(verdict.raw, Some(json!(210)));
    let verdict = on(words.clone(), "one two three four five");
    near(score(&verdict), 0.25);
    assert_eq!(verdict.feedback, ["has 5 words: expected 20 to 150; add 15"]);
    let inside = on(words.clone(), &"word ".repeat(20));
    near(score(&inside), 1.0);
    assert!(inside.feedback.is_empty());
    near(score(&on(words, "")), 0.0);
    let strict = json!({"rule": "length", "words": {"max": 3}, "graded": false});
    near(score(&on(strict, "a b c d")), 0.0);
}

#[test]
fn length_of_zero_at_most_is_zero_for_any_word() {
    let none = json!({"rule": "length", "words": {"max": 0}});
    near(score(&on(none.clone(), "a")), 0.0);
    near(score(&on(none, "")), 1.0);
}

#[test]
fn length_counts_each_unit_in_its_own_way() {
    let units = json!({"rule": "length", "characters": {"min": 2, "max": 2}, "lines": {"min": 1, "max": 1}});
    let verdict = on(units, " e\u{301}👨‍👩‍👧\n");
    near(score(&verdict), 1.0);
    assert_eq!(verdict.criteria.len(), 2);
    let sentences = json!({"rule": "length", "sentences": {"min": 3, "max": 3}});
    near(score(&on(sentences, "今天下雨。你去吗？好！")), 1.0);
    let paragraphs = json!({"rule": "length", "paragraphs": {"max": 1}});
    assert_eq!(on(paragraphs, "a\n\nb").feedback, ["has 2 paragraphs: expected at most 1; cut 1"]);
    let input = json!({"rule": "length", "of": "input", "words": {"max": 2}});
    near(score(&judge(input, &Case::new("a b", "a b c d"))), 1.0);
}

#[test]
fn terms_are_found_whatever_their_case_width_or_line_breaks() {
    let all = json!({"rule": "contains", "all": ["Green Tea", "ＡＢＣ", "missing"]});
    let verdict = on(all, "green\n tea and abc");
    near(score(&verdict), 2.0 / 3.0);
    assert_eq!(verdict.feedback, ["does not contain `missing`"]);
    let cased = json!({"rule": "contains", "all": ["Tea"], "ignore_case": false});
    near(score(&on(cased.clone(), "tea")), 0.0);
    near(score(&on(cased, "Tea")), 1.0);
    near(score(&on(json!({"rule": "contains", "any": ["x", "北京"]}), "我爱北京")), 1.0);
    near(score(&on(json!({"rule": "contains", "any": ["x"]}), "")), 0.0);
}

#[test]
fn whole_words_are_no_parts_of_longer_ones_and_chinese_has_none() {
    let cat = json!({"rule": "contains", "all": ["cat"], "whole_words": true});
    near(score(&on(cat.clone(), "the category")), 0.0);
    near(score(&on(cat.clone(), "a cat's life, concat cat")), 1.0);
    near(score(&on(cat, "我的cat很大")), 1.0);
    let sign = json!({"rule": "contains", "all": ["C++", "北京"], "whole_words": true});
    near(score(&on(sign, "写C++的北京人")), 1.0);
}

#[test]
fn a_forbidden_term_makes_the_whole_zero() {
    let both = json!({"rule": "contains", "all": ["tea"], "none": ["coffee"]});
    let verdict = on(both.clone(), "tea not Coffee");
    near(score(&verdict), 0.0);
    assert_eq!(verdict.feedback, ["contains `coffee`: remove it"]);
    near(score(&on(both, "tea")), 1.0);
}

#[test]
fn the_reference_may_be_the_term_and_any_of_its_lines_enough() {
    let options = json!({"rule": "contains", "expected": true, "any_line": true});
    let case = answer("", "It is dry rot, I think.", "DRY ROT\nDryrot\n");
    near(score(&judge(options.clone(), &case)), 1.0);
    abstains(&judge(options, &answer("", "x", "\n")), "`expected` is empty");
}

#[test]
fn patterns_match_all_any_or_none() {
    let patterns = json!(["^\\d+$", "b"]);
    let all = json!({"rule": "regex", "patterns": patterns, "multi_line": true});
    near(score(&on(all.clone(), "12\nb")), 1.0);
    near(score(&on(all, "12")), 0.5);
    let any = json!({"rule": "regex", "patterns": patterns, "mode": "any"});
    near(score(&on(any.clone(), "b")), 1.0);
    assert!(on(any, "x").feedback[0].starts_with("matches none of"));
    let none = json!({"rule": "regex", "pattern": "(?i)todo", "mode": "none"});
    near(score(&on(none.clone(), "ToDo: x")), 0.0);
    near(score(&on(none, "")), 1.0);
}

#[test]
fn a_full_match_takes_the_alternative_that_covers_the_text() {
    let full = json!({"rule": "regex", "pattern": "a|ab", "full_match": true});
    near(score(&on(full.clone(), " ab\n")), 1.0);
    near(score(&on(full, "abc")), 0.0);
}

#[test]
fn equality_is_exact_normalised_or_numeric() {
    let exact = json!({"rule": "equals", "mode": "exact"});
    near(score(&judge(exact.clone(), &answer("", "Paris\n", "Paris"))), 1.0);
    near(score(&judge(exact, &answer("", "paris", "Paris"))), 0.0);
    let plain = json!({"rule": "equals"});
    for (output, expected) in [
        ("PARIS.", "paris"),
        ("Dry-rot", "dry  rot"),
        ("“ｙｅｓ”！", "Yes"),
        ("U.S.A.", "USA"),
        ("北京。", "北京"),
    ] {
        near(score(&judge(plain.clone(), &answer("", output, expected))), 1.0);
    }
    for (output, expected) in [
        ("41 dollars", "42 dollars"),
        ("C++", "C"),
        ("-5", "5"),
        ("3.14", "314"),
        ("50%", "50"),
        ("the cat", "cat"),
        ("?", "!"),
    ] {
        let verdict = judge(plain.clone(), &answer("", output, expected));
        assert_eq!(score(&verdict), 0.0, "{output} is not {expected}");
    }
    let articles = json!({"rule": "equals", "strip_articles": true});
    near(score(&judge(articles.clone(), &answer("", "The Beatles", "beatles"))), 1.0);
    near(score(&judge(articles, &answer("", "A", "a"))), 1.0);
}

#[test]
fn any_of_several_references_is_enough() {
    let lines = json!({"rule": "equals", "any_line": true});
    near(score(&judge(lines, &answer("", "dryrot", "DRY ROT\nDryrot\n\nDry-rot"))), 1.0);
    let listed = json!({"rule": "equals", "references": ["yes", "y"]});
    near(score(&on(listed.clone(), "Y")), 1.0);
    assert_eq!(on(listed, "no").feedback, ["is `no`: expected `yes`, `y`"]);
}

#[test]
fn numbers_are_equal_as_numbers_within_the_tolerance() {
    let numeric =
        |tolerance: Value| json!({"rule": "equals", "mode": "numeric", "tolerance": tolerance});
    let exact = numeric(json!(null));
    for (output, expected) in
        [("1,200.0", "1200"), ("１２", "12"), ("50%", "0.5"), ("$5", "5"), ("42.", "42")]
    {
        near(score(&judge(exact.clone(), &answer("", output, expected))), 1.0);
    }
    near(score(&judge(exact.clone(), &answer("", "41", "42"))), 0.0);
    near(score(&judge(exact.clone(), &answer("", "about 42", "42"))), 0.0);
    abstains(&judge(exact, &answer("", "42", "forty-two")), "is not a number");
    let wide = numeric(json!({"absolute": 0.1}));
    near(score(&judge(wide.clone(), &answer("", "1.1", "1.0"))), 1.0);
    near(score(&judge(wide, &answer("", "1.11", "1.0"))), 0.0);
    let share = numeric(json!({"relative": 0.01}));
    near(score(&judge(share.clone(), &answer("", "-101", "-100"))), 1.0);
    near(score(&judge(share, &answer("", "102", "100"))), 0.0);
}

#[test]
fn the_last_number_of_a_text_can_be_taken() {
    let last = json!({"rule": "equals", "mode": "numeric", "last_number": true});
    for output in
        ["First 7, then the answer is 1,200.", "答案是1200。", "x=1200", "**$1,200**", "1200"]
    {
        near(score(&judge(last.clone(), &answer("", output, "1200"))), 1.0);
    }
    near(score(&judge(last.clone(), &answer("", "no number", "1200"))), 0.0);
    near(score(&judge(last, &answer("", "1200 and 7", "1200"))), 0.0);
}

#[test]
fn requirements_of_the_input_become_criteria() {
    let options = json!({"rule": "requirements"});
    let input = "Write at most 5 words, mention the word \"tea\", do not use the word \"coffee\".";
    let verdict = judge(options.clone(), &Case::new(input, "Coffee is better than any other."));
    near(score(&verdict), 0.0);
    assert_eq!(
        verdict.criteria.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(),
        ["at most 5 words", "mentions `tea`", "avoids `coffee`"]
    );
    assert_eq!(verdict.feedback[0], "has 6 words: expected at most 5; cut 1");
    near(score(&judge(options.clone(), &Case::new(input, "Tea is good"))), 1.0);
    near(score(&judge(options.clone(), &Case::new("Reply as JSON.", "```json\n{}\n```"))), 1.0);
    near(score(&judge(options.clone(), &Case::new("Reply as JSON.", "no"))), 0.0);
    near(score(&judge(options.clone(), &Case::new("in three sentences", "A b. C d! E f?"))), 1.0);
    abstains(&judge(options, &Case::new("What is tea?", "A drink.")), "names no requirement");
}

#[test]
fn requirements_are_read_from_chinese_and_counted_in_characters() {
    let options = json!({"rule": "requirements"});
    let input = "请介绍绿茶，不超过20字，必须包含“杭州”，不要使用“非常”。";
    let good = judge(options.clone(), &Case::new(input, "龙井产自杭州，是一种绿茶。"));
    near(score(&good), 1.0);
    assert_eq!(good.criteria.len(), 3);
    let long = "龙井茶非常有名，产自中国浙江省的西湖周边地区，味道清香。";
    let bad = judge(options, &Case::new(input, long));
    near(score(&bad), 0.0);
    assert_eq!(bad.feedback.len(), 3);
}

#[test]
fn readability_measures_english_and_abstains_elsewhere() {
    let easy = json!({"rule": "readability", "grade": {"max": 8.0}});
    near(score(&on(easy.clone(), "The cat sat on the mat. The dog ran to the park.")), 1.0);
    let hard = "Notwithstanding considerable institutional deliberation, interdisciplinary \
                organisations systematically underestimate infrastructural interdependencies.";
    let verdict = on(easy.clone(), hard);
    assert!(score(&verdict) < 0.5);
    assert!(verdict.feedback[0].contains("use shorter sentences"), "{:?}", verdict.feedback);
    abstains(&on(easy.clone(), "今天天气很好，我们去公园散步。"), "not English");
    abstains(&on(easy.clone(), "Привет, как дела?"), "not English");
    abstains(&on(easy, ""), "not English");
}

#[test]
fn repetition_is_the_share_of_pieces_said_before() {
    let runs = json!({"rule": "repetition", "ngrams": 0.3, "size": 2});
    // Runs of two in "a b a b a b": 5, of them 2 distinct: 3/5 repeated.
    let verdict = on(runs.clone(), "a b a b a b");
    near(score(&verdict), 0.4 / 0.7);
    assert_eq!(verdict.criteria[0].raw, Some(json!(0.6)));
    assert!(verdict.feedback[0].contains("`a b` occurs 3 times"), "{:?}", verdict.feedback);
    near(score(&on(runs.clone(), "every word here is new")), 1.0);
    near(score(&on(runs, "")), 1.0);
    let lines = json!({"rule": "repetition", "lines": 0.0});
    near(score(&on(lines.clone(), "a\n---\nb\n---\n")), 1.0);
    near(score(&on(lines, "a\nA\n")), 0.5);
    let sentences = json!({"rule": "repetition", "sentences": 0.2});
    assert!(score(&on(sentences, "我喜欢茶。我喜欢茶。我喜欢茶。")) < 0.5);
    assert!(score(&on(json!({"rule": "repetition"}), &"好好好好".repeat(20))) < 0.2);
}
