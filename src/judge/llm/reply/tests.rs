use proptest::prelude::*;

use super::*;
use crate::judge::llm::Choice;
use crate::score::{Scale, Score};

fn shapes() -> Vec<Shape> {
    let choice =
        |label: &str, score| Choice { label: label.into(), score: Score::new(score).unwrap() };
    vec![
        Shape::YesNo,
        Shape::Pairwise,
        Shape::Score { scale: "1-5".parse().unwrap() },
        Shape::Score { scale: "1-10".parse().unwrap() },
        Shape::Score { scale: Scale::UNIT },
        Shape::Choice { choices: vec![choice("bad", 0.0), choice("good", 1.0)] },
        Shape::Checklist { questions: 2 },
        Shape::Rubric {
            scale: "1-5".parse().unwrap(),
            criteria: vec!["accuracy".into(), "style".into()],
        },
    ]
}

/// Text that looks like replies: the words and marks of the grammar in any order.
fn reply_like() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        ":",
        ",",
        "\n",
        " ",
        "```",
        "```json\n",
        "~~~",
        "`",
        "<think>",
        "</think>",
        "<answer>",
        "score",
        "\"score\":",
        "\"answer\":",
        "\"choice\":",
        "\"preferred\":",
        "\"criteria\":",
        "\"q1\":",
        "\"accuracy\":",
        "\"abstain\":",
        "{\"score\": 4}",
        "{\"score\": 9}",
        "Score: 3",
        "Answer: yes",
        "4/5",
        "10",
        "0.5",
        "-0",
        "1e999",
        "NaN",
        "true",
        "null",
        "yes",
        "no",
        "A",
        "B",
        "tie",
        "good",
        "是",
        "否",
        "评分：",
        "４",
        "分",
        "\u{feff}",
        "\u{200b}",
        "\\",
        "\\u0000",
        "é",
        "🦀",
        "[[A]]",
        "//",
        "<|im_end|>",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|parts| parts.concat())
}

/// All that must hold of a reading, whatever the reply.
fn check(text: &str) {
    for shape in shapes() {
        let Ok(reading) = read_text(text, &shape) else { continue };
        assert!(reading.answers.iter().any(|a| a.score.is_some()), "{text:?}");
        for answer in &reading.answers {
            assert_eq!(answer.score.is_some(), answer.raw.is_some(), "{text:?}");
        }
        let numeric = matches!(shape, Shape::Score { .. } | Shape::Rubric { .. });
        // A JSON escape may spell a digit, so texts with a backslash are left out.
        if numeric && !text.contains('\\') {
            let digit = |c: char| c.is_ascii_digit() || ('０'..='９').contains(&c);
            assert!(text.chars().any(digit), "a score without a digit: {text:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_without_a_panic_or_an_invented_score(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_shuffle_of_reply_parts_is_read_without_a_panic_or_an_invented_score(text in reply_like()) {
        check(&text);
    }

    #[test]
    fn a_level_that_is_written_is_the_level_that_is_read(level in 1_u8..=10) {
        let shape = Shape::Score { scale: "1-10".parse().unwrap() };
        for text in [
            format!("{level}"),
            format!("{level}/10"),
            format!("It is fine.\nScore: {level}"),
            format!("{{\"score\": {level}}}"),
            format!("{{\"score\": \"{level}\"}}"),
            format!("<think>{{\"score\": 3}}</think>\n```json\n{{\"score\": {level}}}\n```"),
        ] {
            let reading = read_text(&text, &shape).unwrap();
            prop_assert_eq!(&reading.answers[0].raw, &Some(serde_json::json!(level)), "{}", text);
        }
    }
}

#[test]
fn a_long_hostile_reply_is_read_in_moments() {
    let started = std::time::Instant::now();
    for unit in [
        "{\"a\":[",
        "{\"score\": 4, ",
        "<think>",
        "</think>",
        "```\n",
        "[{",
        "Score: 4 ",
        "{\"a\":{},",
        "{}",
        "` ",
        "{\"score\":4}",
    ] {
        let text = unit.repeat(200_000 / unit.len());
        for shape in shapes() {
            let _ = read_text(&text, &shape);
        }
    }
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn where_the_answer_stood_is_told() {
    let shape = Shape::Score { scale: "1-5".parse().unwrap() };
    for (text, place) in [
        ("{\"score\": 4}", Place::Whole),
        ("```json\n{\"score\": 4}\n```", Place::Fenced),
        ("Well.\n{\"score\": 4}", Place::Embedded),
        ("Score: 4", Place::Text),
    ] {
        assert_eq!(read_text(text, &shape).unwrap().place, place, "{text}");
    }
}

#[test]
fn a_failure_says_what_was_wanted() {
    let shape = Shape::Score { scale: "1-5".parse().unwrap() };
    let failure = read_text("Very good.", &shape).unwrap_err();
    assert!(failure.message.contains("`score` on the scale 1-5"), "{failure}");
    assert!(failure.may_be_mended());
    let failure = read_text("{\"score\": \"good\"}", &shape).unwrap_err();
    assert!(failure.message.contains("\"good\""), "{failure}");
}

#[test]
fn the_form_s_own_words_are_no_reason() {
    let shape = Shape::YesNo;
    for echo in [
        "one or two sentences",
        "One or two sentences.",
        " \"one or  two sentences\" ",
        "一两句话",
        "一两句话。",
        "<一两句话>",
        "...",
        "…",
        "",
    ] {
        let text = serde_json::json!({ "answer": "yes", "why": echo }).to_string();
        let reading = read_text(&text, &shape).unwrap();
        assert_eq!((reading.reason, reading.answers.len()), (None, 1), "{echo}");
        let text = serde_json::json!({ "analysis": echo, "why": "It is right.", "answer": "yes" });
        let reading = read_text(&text.to_string(), &shape).unwrap();
        assert_eq!(reading.reason.as_deref(), Some("It is right."), "{echo}");
    }
    let real = "One or two sentences are missing.";
    let text = serde_json::json!({ "answer": "no", "why": real }).to_string();
    assert_eq!(read_text(&text, &shape).unwrap().reason.as_deref(), Some(real));
    let parts = r#"{"criteria": {"accuracy": {"score": 4, "why": "one or two sentences"},
                                 "style": {"score": 2, "why": "太长"}}}"#;
    let shape = Shape::Rubric {
        scale: "1-5".parse().unwrap(),
        criteria: vec!["accuracy".into(), "style".into()],
    };
    let reasons: Vec<_> =
        read_text(parts, &shape).unwrap().answers.into_iter().map(|a| a.reason).collect();
    assert_eq!(reasons, [None, Some("太长".to_owned())]);
    let text = r#"{"answer": null, "why": "one or two sentences"}"#;
    let failure = read_text(text, &Shape::YesNo).unwrap_err();
    assert_eq!(failure.status, Status::Abstained);
    assert!(!failure.message.contains("sentences"), "{}", failure.message);
}
