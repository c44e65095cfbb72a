//! Answers in words: numbers with their denominators, yes and no, labels, and the closing
//! lines that state them.
//!
//! Every pattern is anchored: a number or word somewhere in prose is never an answer.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value};

use super::super::shape::{Answer, ReadFailure, Shape};
use crate::rubric::{folded, narrow};
use crate::score::{Scale, Score, ScoreError};
use crate::verdict::Status;

const NUMBER: &str = r"([+-]?(?:0|[1-9]\d{0,8})(?:\.\d{1,9})?)(?:\s{0,9}(?:/|out\s{1,9}of)\s{0,9}(\d{1,9}(?:\.\d{1,9})?))?\s{0,9}(?:分|points?|stars?|星)?";

/// Words that a closing line names a score by. The Chinese ones need no word boundary.
const SCORE_WORDS: &str = r"(?:\b(?:score|rating|grade)|评分|得分|分数|打分|总分)";
const ANSWER_WORDS: &str =
    r"(?:\b(?:answer|verdict|choice|label|winner|conclusion)|答案|回答|结论|选择|胜者)";
/// What a closing statement may begin with: the start of a line or sentence and a few words.
/// `It demands that the score is 5` states nothing.
const LEAD: &str = r"(?:^|[\n.。!！?？;；]|,\s{0,9}(?:so|thus|hence|therefore)\s|[,，]\s{0,9}(?:我给出的|我的|最终|因此|所以))\s{0,9}(?:-\s)?(?:(?:so|thus|hence|therefore|overall|in\s{1,9}conclusion|in\s{1,9}summary),?\s{1,9})?(?:(?:my|the)\s{1,9})?(?:(?:final|overall|total)\s{1,9})?(?:因此|所以|总之|综上|综上所述)?,?(?:我给出的|我的)?(?:最终|总体|综合)?";
const IS: &str = r"\s{0,9}(?:\bis\s{0,9}:?|:|=|为|是)\s{0,9}";

struct Patterns {
    number: Regex,
    closing_score: Regex,
    opening_score: Regex,
    closing_answer: Regex,
    bracketed: Regex,
    opening_word: Regex,
}

/// `None` only if a pattern above does not compile, which a test rules out; then nothing is
/// ever read from words.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let compile = |pattern: String| Regex::new(&pattern).ok();
    Some(Patterns {
        number: compile(format!("(?i)^{NUMBER}$"))?,
        closing_score: compile(format!("(?is)^.*{LEAD}{SCORE_WORDS}{IS}{NUMBER}$"))?,
        opening_score: compile(format!(
            "(?i)^(?:final |overall )?{SCORE_WORDS}{IS}{NUMBER}[.。,;]?\\s*(?:\\n|$)"
        ))?,
        closing_answer: compile(format!("(?is)^.*{LEAD}{ANSWER_WORDS}{IS}(.{{1,80}})$"))?,
        bracketed: compile(r"(?is)^(?:.*[\n.。!！?？])?\s{0,9}\[\[([^\[\]]{1,20})\]\]$".into())?,
        opening_word: compile(
            r"(?i)^(yes|no|是的?|否|不是)(?:[,;:!，；：！]|\.\s+\D|。|\s*\n|\s+[-–—])".into(),
        )?,
    })
});

/// Full-width ASCII made narrow, emphasis and heading marks taken off, ends trimmed.
pub(super) fn cleaned(text: &str) -> String {
    let plain: String =
        text.chars().map(narrow).filter(|c| !matches!(c, '*' | '#' | '\u{feff}')).collect();
    plain.trim().trim_end_matches(['.', '。']).trim_end().to_owned()
}

/// The number that a text is, on a scale; `None` when it is no number or speaks of another
/// denominator.
pub(super) fn number(text: &str, scale: Scale) -> Option<f64> {
    let text = cleaned(text);
    let captures = PATTERNS.as_ref()?.number.captures(&text)?;
    captured(&captures, scale)
}

fn captured(captures: &regex::Captures<'_>, scale: Scale) -> Option<f64> {
    let value: f64 = captures.get(1)?.as_str().parse().ok()?;
    if let Some(denominator) = captures.get(2) {
        let denominator: f64 = denominator.as_str().parse().ok()?;
        if (denominator - scale.high()).abs() > 1e-9 {
            return None;
        }
    }
    Some(value + 0.0)
}

/// The answer for a value on a scale.
pub(super) fn scored(name: &str, value: f64, scale: Scale) -> Result<Answer, ReadFailure> {
    let score = scale.score(value).map_err(|error| match error {
        ScoreError::NotFinite(_) => ReadFailure::unparseable(format!("`{name}`: {error}")),
        _ => ReadFailure::new(Status::OutOfRange, format!("`{name}`: {error}")),
    })?;
    Ok(Answer {
        name: name.to_owned(),
        raw: Some(raw_number(value)),
        score: Some(score),
        reason: None,
    })
}

/// A number as JSON, whole ones without a fraction.
pub(crate) fn raw_number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Yes is 1 and no is 0: the whole word, in either language.
pub(crate) fn yes_no(word: &str) -> Option<bool> {
    match cleaned(word).trim_matches(['"', '\'', '(', ')', '!', '[', ']']).to_lowercase().as_str() {
        "yes" | "是" | "是的" => Some(true),
        "no" | "否" | "不是" | "不" => Some(false),
        _ => None,
    }
}

/// The answer that a word is, for the shapes whose answers are words.
pub(super) fn word(shape: &Shape, word: &str) -> Option<Answer> {
    let answer = |name: &str, raw: &str, score: Score| Answer {
        name: name.to_owned(),
        raw: Some(Value::from(raw)),
        score: Some(score),
        reason: None,
    };
    match shape {
        Shape::YesNo => yes_no(word).map(|yes| yes_no_answer("answer", yes)),
        Shape::Pairwise => winner(word).map(|(raw, score)| answer("preferred", raw, score)),
        Shape::Choice { choices } => {
            let plain = cleaned(word);
            let plain = plain.trim_matches(['"', '\'', '(', ')', '[', ']', ' ']);
            let by_label = |text: &str| {
                let text = folded(text);
                choices.iter().position(|c| folded(&c.label) == text)
            };
            // A letter means a place in the list only where no label is itself one character.
            let letters = choices.iter().all(|c| c.label.chars().count() > 1);
            let by_letter = |text: &str| {
                let mut chars = text.chars();
                let letter = chars.next()?.to_ascii_uppercase();
                let index = (letter as u32).checked_sub('A' as u32)? as usize;
                (letters && chars.next().is_none() && index < choices.len()).then_some(index)
            };
            let index = by_label(plain).or_else(|| by_letter(plain)).or_else(|| {
                // "B. good": the letter and the label must be of one choice.
                let (letter, label) = plain.split_once(['.', ')', ':', ' '])?;
                let index = by_letter(letter.trim())?;
                (by_label(label.trim()) == Some(index)).then_some(index)
            })?;
            let choice = choices.get(index)?;
            Some(answer("choice", &choice.label, choice.score))
        }
        Shape::Score { .. } | Shape::Checklist { .. } | Shape::Rubric { .. } => None,
    }
}

/// The answer for a yes or a no.
pub(super) fn yes_no_answer(name: &str, yes: bool) -> Answer {
    Answer {
        name: name.to_owned(),
        raw: Some(Value::from(if yes { "yes" } else { "no" })),
        score: Some(if yes { Score::ONE } else { Score::ZERO }),
        reason: None,
    }
}

fn winner(word: &str) -> Option<(&'static str, Score)> {
    let plain = cleaned(word).trim_matches(['"', '\'', '(', ')', '[', ']', ' ']).to_lowercase();
    let plain = ["answer ", "response ", "output ", "assistant ", "回答", "答案"]
        .into_iter()
        .find_map(|prefix| plain.strip_prefix(prefix))
        .unwrap_or(&plain);
    match plain.trim() {
        "a" => Some(("A", Score::ONE)),
        "b" => Some(("B", Score::ZERO)),
        "tie" | "平局" | "平手" => Some(("tie", Score::from_arithmetic(0.5).ok()?)),
        _ => None,
    }
}

/// The answer that a reply without JSON gives: the reply is nothing but the answer, opens
/// with a yes or no, or closes by stating it. `None` when it does none of these; an error
/// when what it states is off the scale, or it opens with one answer and closes with another.
pub(super) fn stated(text: &str, shape: &Shape) -> Option<Result<Answer, ReadFailure>> {
    let patterns = PATTERNS.as_ref()?;
    let text = cleaned(text);
    // A last line that starts with `>` is a quotation.
    if text.is_empty() || text.rsplit('\n').next().is_some_and(|l| l.trim_start().starts_with('>'))
    {
        return None;
    }
    if let Shape::Score { scale } = shape {
        if let Some(value) = number(&text, *scale) {
            return Some(scored("score", value, *scale));
        }
        let closing = patterns.closing_score.captures(tail(&text))?;
        let value = captured(&closing, *scale)?;
        let opening = patterns.opening_score.captures(&text).and_then(|c| captured(&c, *scale));
        if opening.is_some_and(|first| first != value) {
            return Some(Err(two_answers()));
        }
        return Some(scored("score", value, *scale));
    }
    if let Some(answer) = word(shape, &text) {
        return Some(Ok(answer));
    }
    let opening = match shape {
        Shape::YesNo => {
            patterns.opening_word.captures(&text).and_then(|c| word(shape, c.get(1)?.as_str()))
        }
        _ => None,
    };
    let closing = patterns
        .closing_answer
        .captures(tail(&text))
        .or_else(|| patterns.bracketed.captures(tail(&text)))
        .and_then(|c| word(shape, c.get(1)?.as_str()));
    if matches!(shape, Shape::YesNo) && opening.is_some() && says_both(&text) {
        return Some(Err(ReadFailure::unparseable("the reply says both yes and no")));
    }
    match (opening, closing) {
        (Some(first), Some(last)) if first.raw != last.raw => Some(Err(two_answers())),
        (first, last) => last.or(first).map(Ok),
    }
}

/// Whether a yes and a no both stand in a text as verdicts: as a sentence, a line or a part of
/// a sentence of their own, at most after a word such as `but`. `Yes. There is no error.` has
/// one verdict; `Yes. No.` and `Yes, but no` have two.
fn says_both(text: &str) -> bool {
    const BEFORE: [&str; 11] =
        ["but", "and", "or", "well", "actually", "rather", "then", "also", "但是", "但", "不过"];
    let text = text.to_lowercase();
    let mut said = [false; 2];
    let ends = [
        '.', ',', ';', '!', '?', '\n', '…', '。', '，', '；', '！', '？', '、', '(', ')', '–', '—',
    ];
    for part in text.split(ends).flat_map(|part| part.split(" - ")) {
        let mut words = part.trim();
        while let Some(rest) = BEFORE.iter().find_map(|word| {
            let rest = words.strip_prefix(word)?;
            let apart = rest.starts_with(char::is_whitespace) || !word.is_ascii();
            apart.then(|| rest.trim_start())
        }) {
            words = rest;
        }
        match words {
            "yes" | "是" | "是的" => said[0] = true,
            "no" | "否" | "不是" | "不" => said[1] = true,
            _ => {}
        }
    }
    said == [true, true]
}

/// The end of a text, longer than any closing statement can be.
fn tail(text: &str) -> &str {
    const LONGEST: usize = 1000;
    &text[text.floor_char_boundary(text.len().saturating_sub(LONGEST))..]
}

fn two_answers() -> ReadFailure {
    ReadFailure::unparseable("the reply opens with one answer and closes with another")
}

/// Whether a reply without an answer is a refusal: it opens with a known phrase.
pub(super) fn is_refusal(text: &str) -> bool {
    const OPENINGS: [&str; 24] = [
        "i can't",
        "i cannot",
        "i can not",
        "i'm sorry",
        "i am sorry",
        "sorry, ",
        "i won't",
        "i will not",
        "i'm unable",
        "i am unable",
        "i'm not able",
        "i am not able",
        "as an ai",
        "i must decline",
        "i apologize",
        "unfortunately, i can",
        "我无法",
        "我不能",
        "抱歉",
        "对不起",
        "很抱歉",
        "作为一个ai",
        "作为ai",
        "不好意思",
    ];
    let text = cleaned(text).to_lowercase().replace('\u{2019}', "'");
    OPENINGS.iter().any(|opening| text.starts_with(opening))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(PATTERNS.is_some());
    }

    #[test]
    fn two_verdicts_are_told_from_one_and_its_explanation() {
        for text in
            ["Yes. No.", "yes\nno", "No, yes", "Yes, but no...", "No... well, yes", "是，但是不"]
        {
            assert!(says_both(text), "{text}");
        }
        for text in [
            "Yes. There is no error.",
            "No, the answer says yes where it must not.",
            "Yes, no problem there.",
            "Yes, but no citation is given.",
            "是的，没有错误。",
        ] {
            assert!(!says_both(text), "{text}");
        }
    }

    #[test]
    fn numbers_are_read_with_the_denominator_of_their_scale_only() {
        let stars: Scale = "1-5".parse().unwrap();
        for (text, value) in [
            ("4", 4.0),
            ("４", 4.0),
            ("4/5", 4.0),
            ("4 out of 5", 4.0),
            ("4分", 4.0),
            ("**4**", 4.0),
        ] {
            assert_eq!(number(text, stars), Some(value), "{text}");
        }
        for text in ["8/10", "4%", "four", "④", "1e1", "4,5", "4-5", "0x4", "٤", "", "04", "4/5/5"]
        {
            assert_eq!(number(text, stars), None, "{text}");
        }
    }
}
