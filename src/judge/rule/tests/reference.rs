//! Measures against figures that were computed elsewhere.

use super::*;

fn metric(name: &str, output: &str, expected: &str) -> f64 {
    let verdict =
        judge(json!({"rule": "similarity", "metric": name}), &answer("", output, expected));
    score(&verdict)
}

#[test]
fn rouge_l_agrees_with_rouge_score_0_1_2() {
    for (output, expected, value) in [
        ("the cat sat on the mat", "the cat is on the mat", 0.8333333333333334),
        (
            "The quick brown fox jumps over the lazy dog .",
            "A quick brown dog jumps over the lazy fox .",
            0.6666666666666666,
        ),
        ("police killed the gunman", "police kill the gunman", 0.75),
        ("completely different words here", "nothing shared at all between", 0.0),
        ("the", "the cat sat on the mat", 0.2857142857142857),
        ("a b c d e f g", "a b c d e f g", 1.0),
        ("the the the the the the the", "the cat is on the mat", 0.30769230769230765),
        (
            "It costs 41 dollars to enter",
            "It costs 42 dollars to enter the park",
            0.7142857142857143,
        ),
    ] {
        near(metric("rouge_l", output, expected), value);
    }
}

#[test]
fn bleu_agrees_with_sacrebleu_2_6_0_smoothed_exponentially_with_effective_order() {
    for (output, expected, value) in [
        ("the cat sat on the mat", "the cat is on the mat", 0.3799178428257963),
        (
            "The quick brown fox jumps over the lazy dog .",
            "A quick brown dog jumps over the lazy fox .",
            0.34572078464194106,
        ),
        ("police killed the gunman", "police kill the gunman", 0.35355339059327373),
        ("completely different words here", "nothing shared at all between", 0.0),
        ("the", "the cat sat on the mat", 0.0067379469990854705),
        ("a b c d e f g", "a b c d e f g", 1.0),
        ("the the the the the the the", "the cat is on the mat", 0.07809849842300637),
        (
            "It costs 41 dollars to enter",
            "It costs 42 dollars to enter the park",
            0.2722230298303347,
        ),
    ] {
        near(metric("bleu", output, expected), value);
    }
}

#[cfg(not(feature = "cjk"))]
#[test]
fn bleu_of_chinese_by_characters_agrees_with_sacrebleu_2_6_0_tokenize_zh() {
    near(metric("bleu", "我爱北京天安门", "我爱上海天安门"), 0.30739407647563216);
}

#[test]
fn chrf_agrees_with_sacrebleu_2_6_0() {
    for (output, expected, value) in [
        ("the cat sat on the mat", "the cat is on the mat", 0.645779420625287),
        (
            "The quick brown fox jumps over the lazy dog .",
            "A quick brown dog jumps over the lazy fox .",
            0.7186065752224156,
        ),
        ("police killed the gunman", "police kill the gunman", 0.8162392219120139),
        ("completely different words here", "nothing shared at all between", 0.13804209215120888),
        ("the", "the cat sat on the mat", 0.1488248583092228),
        ("a b c d e f g", "a b c d e f g", 1.0),
        ("the the the the the the the", "the cat is on the mat", 0.14232426848159646),
        (
            "It costs 41 dollars to enter",
            "It costs 42 dollars to enter the park",
            0.6455611664526344,
        ),
        ("我爱北京天安门", "我爱上海天安门", 0.23571428571428574),
    ] {
        near(metric("chrf", output, expected), value);
    }
}

#[test]
fn edit_similarity_is_one_minus_distance_over_the_longer_length() {
    near(metric("edit", "kitten", "sitting"), 1.0 - 3.0 / 7.0);
    near(metric("edit", "", ""), 1.0);
    near(metric("edit", "", "abc"), 0.0);
    near(metric("edit", "中文", "中国"), 0.5);
}

#[test]
fn jaccard_is_shared_over_all_words() {
    near(metric("jaccard", "a b c", "b c d"), 0.5);
    near(metric("jaccard", "", ""), 1.0);
    near(metric("jaccard", "Ｔｈｅ Cat", "the cat"), 1.0);
}

#[test]
fn the_best_of_several_reference_lines_counts() {
    let case = answer("", "Dry rot", "Wet rot\nDry-rot\nDry rot\n");
    let options = json!({"rule": "similarity", "metric": "edit", "any_line": true});
    near(score(&judge(options, &case)), 1.0);
}

#[test]
fn a_least_similarity_passes_or_names_the_measure() {
    let case = answer("", "the cat sat on the mat", "the cat is on the mat");
    let verdict = judge(json!({"rule": "similarity", "metric": "rouge_l", "min": 0.9}), &case);
    near(score(&verdict), 5.0 / 6.0);
    assert_eq!(verdict.criteria[0].passed, Some(false));
    assert!(
        verdict.feedback[0].contains("rouge_l against `expected` is 0.833: expected at least 0.9")
    );
    let strict = json!({"rule": "similarity", "metric": "rouge_l", "min": 0.9, "graded": false});
    near(score(&judge(strict, &case)), 0.0);
}

#[test]
fn texts_too_long_for_a_quadratic_measure_are_an_abstention_that_names_another() {
    let (a, b) = ("ab".repeat(20_000), "cd".repeat(20_000));
    let verdict = judge(json!({"rule": "similarity", "metric": "edit"}), &answer("", &a, &b));
    abstains(&verdict, "too long for `edit`: use `jaccard` or `chrf`");
    // Near repeats share their ends and stay cheap at any length.
    let close = metric("edit", &format!("{a}x"), &format!("{a}y"));
    near(close, 1.0 - 1.0 / 40_001.0);
}
