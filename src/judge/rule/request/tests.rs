//! What is read from an input, and what is not.

use super::*;

fn read(input: &str) -> Vec<String> {
    Reader::new(0.2).unwrap().read(input).iter().map(ToString::to_string).collect()
}

#[test]
fn lengths_are_read_in_many_phrasings() {
    for (input, expected) in [
        ("Answer in at most 100 words.", "at most 100 words"),
        ("Write between 100 and 150 words on tea.", "100 to 150 words"),
        ("Write 100-150 words on tea.", "100 to 150 words"),
        ("Explain it in three sentences.", "exactly 3 sentences"),
        ("Use no more than 1,000 characters.", "at most 1000 characters"),
        ("Keep it under 50 words please", "at most 49 words"),
        ("Do not exceed 80 words.", "at most 80 words"),
        ("At least two paragraphs!", "at least 2 paragraphs"),
        ("200 words or less", "at most 200 words"),
        ("Write about 100 words", "80 to 120 words"),
        ("Write a 200-word essay", "160 to 240 words"),
        ("in exactly 12 words", "exactly 12 words"),
        ("Give me five bullet points", "exactly 5 list items"),
        ("more than 3 sentences", "at least 4 sentences"),
        ("Answer in one word", "exactly 1 word"),
        ("不超过100字", "at most 100 characters"),
        ("请用三句话回答", "exactly 3 sentences"),
        ("写一篇800字左右的作文", "640 to 960 characters"),
        ("１００字以内", "at most 100 characters"),
        ("不少于两百字", "at least 200 characters"),
        ("字数100到150字", "100 to 150 characters"),
        ("分三段", "exactly 3 paragraphs"),
        ("no less than 50 words", "at least 50 words"),
        ("in a single sentence", "exactly 1 sentence"),
        ("Write a summary of 50 words", "40 to 60 words"),
    ] {
        assert_eq!(read(input), [expected], "{input}");
    }
}

#[test]
fn terms_and_forbidden_terms_are_read_where_they_are_certain() {
    for (input, expected) in [
        ("It must mention \"green tea\".", vec!["mentions `green tea`"]),
        ("It must mention Paris and the war.", vec!["mentions `Paris`"]),
        (
            "Include the words “sun”, “moon” and “stars”.",
            vec!["mentions `sun`", "mentions `moon`", "mentions `stars`"],
        ),
        ("Do not use the word delve.", vec!["avoids `delve`"]),
        ("Don’t use the words 'very' or 'really'.", vec!["avoids `very`", "avoids `really`"]),
        ("Avoid the word \"synergy\".", vec!["avoids `synergy`"]),
        ("Write without the letter e.", vec!["avoids the letter `e`"]),
        ("Do not use any commas.", vec!["no commas"]),
        ("Start with \"Dear Sir\".", vec!["starts with `Dear Sir`"]),
        ("必须包含“绿茶”", vec!["mentions `绿茶`"]),
        ("必须包含关键词：绿茶。", vec!["mentions `绿茶`"]),
        ("不要使用“非常”和“特别”", vec!["avoids `非常`", "avoids `特别`"]),
        ("不要使用「非常」", vec!["avoids `非常`"]),
    ] {
        assert_eq!(read(input), expected, "{input}");
    }
}

#[test]
fn formats_are_read() {
    assert_eq!(read("Return the result as JSON."), ["JSON"]);
    assert_eq!(read("请以JSON格式输出"), ["JSON"]);
    assert_eq!(read("Compare them in a table."), ["a table"]);
    assert_eq!(read("Answer in all lowercase letters"), ["lower case"]);
    assert_eq!(read("as a numbered list"), ["a numbered list"]);
}

#[test]
fn what_is_not_asked_for_is_not_read() {
    for input in [
        "",
        "What is the capital of France?",
        "The book has 300 pages and he wrote it in 12 days.",
        "必须包含三个要点",
        "It must mention at least two reasons.",
        "How do words get into the dictionary?",
        "Why do people like JSON?",
        "Do not answer in JSON.",
        "How do I use \"foo\" in Python?",
        "I can't \"open\" the file.",
        "What is the subject in a sentence?",
    ] {
        assert_eq!(read(input), Vec::<String>::new(), "{input}");
    }
}

#[test]
fn a_stretch_is_read_once_and_order_is_the_text_s() {
    assert_eq!(
        read("Write at most 100 words, in 2 paragraphs, and include \"tea\"."),
        ["at most 100 words", "exactly 2 paragraphs", "mentions `tea`"]
    );
    assert_eq!(read("at most 5 words, at most 5 words"), ["at most 5 words"]);
}

#[test]
fn chinese_numbers_are_read_or_refused() {
    for (written, expected) in [
        ("十", Some(10)),
        ("十二", Some(12)),
        ("二十", Some(20)),
        ("一百五十", Some(150)),
        ("一百零五", Some(105)),
        ("两千", Some(2000)),
        ("一万二千", Some(12_000)),
        ("一二三", None),
        ("零", None),
    ] {
        assert_eq!(chinese_number(written), expected, "{written}");
    }
}
