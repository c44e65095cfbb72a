//! What an input asks for in plain words, as far as fixed phrasings say it.
//!
//! Phrasings are tried from the most to the least specific, and a stretch of text that one
//! has read is not read again: `at most 100 words` is not also `100 words`.

use std::fmt;

use ::regex::{Captures, Regex};

use super::super::BuildError;
use super::finding::Between;
use super::phrase::{lower_in_place, phrase, plain_cased};

/// Something asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Length { unit: Unit, range: Between },
    Term(String),
    NoTerm(String),
    NoLetter(char),
    NoComma,
    Start(String),
    End(String),
    Format(Format),
}

/// What a length is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Words,
    Characters,
    /// Chinese characters and foreign words.
    Ideographs,
    Sentences,
    Paragraphs,
    Lines,
    Bullets,
}

impl Unit {
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Words => ("word", "words"),
            Self::Characters | Self::Ideographs => ("character", "characters"),
            Self::Sentences => ("sentence", "sentences"),
            Self::Paragraphs => ("paragraph", "paragraphs"),
            Self::Lines => ("line", "lines"),
            Self::Bullets => ("list item", "list items"),
        }
    }

    fn parse(written: &str) -> Option<Self> {
        Some(match written.to_lowercase().trim_end_matches('s') {
            "word" | "词" => Self::Words,
            "character" | "letter" | "char" => Self::Characters,
            "字" | "字符" | "汉字" => Self::Ideographs,
            "sentence" | "句" | "句话" => Self::Sentences,
            "paragraph" | "段" | "段落" | "段话" => Self::Paragraphs,
            "line" | "行" => Self::Lines,
            _ if written.to_lowercase().starts_with("bullet") => Self::Bullets,
            _ => return None,
        })
    }

    /// Whether people count it exactly when they name a bare number.
    fn exact(self, count: u64) -> bool {
        !matches!(self, Self::Words | Self::Characters | Self::Ideographs) || count <= 10
    }
}

/// A shape of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Table,
    List,
    NumberedList,
    LowerCase,
    UpperCase,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { unit, range } => {
                let (one, many) = unit.names();
                let single = range.max.or(range.min) == Some(1);
                write!(f, "{range} {}", if single { one } else { many })
            }
            Self::Term(term) => write!(f, "mentions `{term}`"),
            Self::NoTerm(term) => write!(f, "avoids `{term}`"),
            Self::NoLetter(letter) => write!(f, "avoids the letter `{letter}`"),
            Self::NoComma => f.write_str("no commas"),
            Self::Start(term) => write!(f, "starts with `{term}`"),
            Self::End(term) => write!(f, "ends with `{term}`"),
            Self::Format(format) => f.write_str(match format {
                Format::Json => "JSON",
                Format::Table => "a table",
                Format::List => "a list",
                Format::NumberedList => "a numbered list",
                Format::LowerCase => "lower case",
                Format::UpperCase => "upper case",
            }),
        }
    }
}

/// How a matched number bounds a length.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Range,
    Max,
    /// `fewer than`: the number itself is too many.
    Below,
    Min,
    /// `more than`: the number itself is too few.
    Above,
    Exactly,
    About,
    /// A bare number: exact where people count, loose where they estimate.
    Bare,
}

/// A number: digits, or a word for one.
const N: &str = r"(\d{1,3}(?:,\d{3})+|\d{1,7}|one hundred|two hundred|a hundred|a single|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)";
/// A unit, with an adjective or a hyphen before it.
const U: &str = r"(?: |-)(?:short |complete |full |english |separate |single |bullet-?)?(words?|characters?|chars|letters|sentences?|paragraphs?|lines?|bullet points?|bullets)\b";
const ZN: &str = r"(\d{1,7}|[零一二两三四五六七八九十百千万]{1,9})";
const ZU: &str = r"个?(汉字|字符|字|句话|句|段落|段话|段|词|行)";

const LENGTHS: &[(Bound, &str)] = &[
    (
        Bound::Range,
        r"\b(?:between|from) {NUM} ?(?:words?|sentences?|characters?|paragraphs?)? ?(?:and|to|-) ?{NUM}{U}",
    ),
    (
        Bound::Range,
        r"(?:\b(?:in|within|of|with|using|is|be|write|about|around|approximately) )?\b{NUM} ?(?:-|to|or) ?{NUM}{U}",
    ),
    (
        Bound::Max,
        r"\b(?:at most|at the most|no more than|not more than|no longer than|not longer than|up to|(?:an? )?max(?:imum)?(?: length)?(?: of|:|is)?|(?:an? )?(?:limit|limited|cap|capped|restrict(?:ed)?|keep it) (?:it |your (?:answer|response|reply|output) )?(?:of|to|at|is)|(?:not |n't |never )(?:to )?(?:exceed|exceeding|go over|be longer than|use more than|write more than)|without exceeding|within) (?:the )?(?:limit of )?{NUM}{U}",
    ),
    (
        Bound::Min,
        r"\b(?:at least|at the least|no fewer than|no less than|not less than|not fewer than|(?:an? )?min(?:imum)?(?: length)?(?: of|:|is)?|no shorter than) {NUM}{U}",
    ),
    (Bound::Below, r"\b(?:fewer than|less than|under|below|shorter than) {NUM}{U}"),
    (Bound::Above, r"\b(?:more than|over|above|longer than|exceeding) {NUM}{U}"),
    (
        Bound::Max,
        r"\b{NUM}{U} ?,? ?(?:or (?:less|fewer|under)|at most|max(?:imum)?\b|limit\b|tops\b)",
    ),
    (Bound::Min, r"\b{NUM}{U} ?,? ?(?:or (?:more|longer)|at least|min(?:imum)?\b)"),
    (Bound::Exactly, r"\b(?:exactly|precisely) {NUM}{U}"),
    (
        Bound::About,
        r"\b(?:about|around|approximately|approx\.?|roughly|circa|some|nearly) {NUM}{U}",
    ),
    (Bound::About, r"~ ?{NUM}{U}"),
    (
        Bound::Bare,
        r"\b(?:in|with|using|into|use|write|give me|produce|compose|provide) (?:just |only |a total of )?{NUM}{U}",
    ),
    (
        Bound::Bare,
        r"\b(?:write|compose|create|produce|draft|give me|provide|generate)\b(?: an?| me an?)?[^.!?\n]{0,60}? (?:of )?{NUM}{U}",
    ),
    (Bound::Range, r"{Z} ?(?:-|~|到|至|—) ?{Z} ?{ZU}"),
    (
        Bound::Max,
        r"(?:不超过|不要超过|不能超过|不得超过|不多于|不大于|控制在|限制在|限于|最多|至多|上限为?) ?{Z} ?{ZU}(?:以内|之内|内)?",
    ),
    (Bound::Min, r"(?:不少于|不低于|不要少于|不得少于|不能少于|至少|最少|起码) ?{Z} ?{ZU}"),
    (Bound::Below, r"(?:少于|小于|低于) ?{Z} ?{ZU}"),
    (Bound::Above, r"(?:多于|超过|大于) ?{Z} ?{ZU}"),
    (Bound::Max, r"{Z} ?{ZU}(?:以内|之内|以下)"),
    (Bound::Min, r"{Z} ?{ZU}以上"),
    (Bound::About, r"(?:大约|大概|约|差不多) ?{Z} ?{ZU}|{Z} ?{ZU}(?:左右|上下)"),
    (Bound::Exactly, r"(?:正好|恰好|刚好|严格) ?{Z} ?{ZU}"),
    (Bound::Bare, r"(?:用|以|写|分|共|请用|写成) ?{Z} ?{ZU}"),
];

/// What is quoted at greater length is a text and no term.
const LONGEST_TERM: usize = 80;
/// One or more quoted terms with commas or `and` between them.
const Q: &str = r#"((?:(?:, ?(?:and |or )?| and | or | ?[、和与及或] ?)?(?:"[^"\n]+"|'[^'\n]+'|`[^`\n]+`|「[^」\n]+」|『[^』\n]+』))+)"#;

const TERMS: &[(Wish, &str)] = &[
    (
        Wish::Not,
        r#"\b(?:(?:do not|don't|never|must not|mustn't|should not|shouldn't|not to) (?:use|mention|include|contain|say|write)|(?:avoid|without|refrain from)(?: using| mentioning| including| saying| writing| the use of| any mention of)?) ?(?:any of )?(?:the |these |following )*(?:words?|phrases?|terms?|names?|expressions?|keywords?)? ?:? ?{Q}"#,
    ),
    (
        Wish::Not,
        r#"\b(?:do not|don't|never|must not|mustn't|should not|shouldn't|avoid|without|refrain from) ?(?:use|using|mention|mentioning|include|including|contain|containing|say|saying|write|writing)? the (?:word|term) ([\p{L}\p{N}'-]{2,40})"#,
    ),
    (
        Wish::Not,
        r"(?:不要|不得|禁止|请勿|不能|不可以?|避免|切勿|勿|不许|不准)(?:再)?(?:使用|出现|提到|提及|包含|包括|用|说|写)?(?:到|任何)?(?:以下|下列)?(?:词语?|关键词|字词|短语|字样)?[:]? ?{Q}",
    ),
    (
        Wish::Letter,
        r#"\b(?:do not use|don't use|never use|avoid|avoiding|without|without using|not using) (?:using )?the letter ["'`]?(\p{L})["'`]?(?:\W|$)"#,
    ),
    (
        Wish::NoComma,
        r"\b(?:do not use|don't use|without|without using|avoid|avoid using|refrain from using|no) (?:any |the use of )?commas?\b",
    ),
    (Wish::NoComma, r"(?:不要|不得|禁止|请勿|不能)(?:使用|用|出现)(?:任何)?逗号"),
    (
        Wish::Start,
        r"\b(?:start|begin|starting|beginning)s? (?:your |the |it |its )*(?:answer|response|reply|output|text|essay|letter|email|story)? ?with (?:the |exactly |this |word |phrase |sentence |words )*:? ?{Q}",
    ),
    (
        Wish::End,
        r"\b(?:end|finish|conclude|ending|finishing)(?:s|es)? (?:your |the |it |its )*(?:answer|response|reply|output|text|essay|letter|email|story)? ?with (?:the |exactly |this |word |phrase |sentence |words )*:? ?{Q}",
    ),
    (Wish::Start, r"以 ?{Q} ?(?:开头|开始|起头)"),
    (Wish::End, r"以 ?{Q} ?(?:结尾|结束|收尾)"),
    (
        Wish::Do,
        r#"\b(?:(?:must|should|has to|have to|needs to|need to|please|be sure to|make sure to|make sure you|ensure you|always) (?:also )?(?:mention|include|contain|use|say|reference)|(?:and|,) (?:also )?(?:mention|include))s? (?:both |all of |each of )?(?:the |these |following )*(?:words?|phrases?|terms?|names?|expressions?|keywords?)? ?:? ?{Q}"#,
    ),
    (
        Wish::Do,
        r#"(?:^|[.!?;:\n] ?)(?:mention|include|use) (?:both |all of |each of )?(?:the |these |following )*(?:words?|phrases?|terms?|names?|keywords?)? ?:? ?{Q}"#,
    ),
    (
        Wish::Do,
        r#"\b(?:mention|include|contain|use)s? the (?:word|term|keyword) ([\p{L}\p{N}'-]{2,40})"#,
    ),
    (
        Wish::Name,
        r"\b(?:[Mm]ust|[Ss]hould) (?:also )?(?:mention|include|contain) (\p{Lu}[\p{L}\p{N}'-]*(?: \p{Lu}[\p{L}\p{N}'-]*){0,4})",
    ),
    (
        Wish::Do,
        r"(?:必须|务必|需要|需|请|一定要|应当|应该|要)(?:在[^,。\n]{0,10}中)?(?:包含|提到|提及|包括|使用|出现|写到)(?:以下|下列)?(?:词语?|关键词|字词|短语|字样|名称)?[:]? ?{Q}",
    ),
    (
        Wish::Do,
        r"(?:必须|务必|需|请|一定要)(?:包含|提到|使用|出现)(?:以下|下列)?(?:词语|关键词)[:]? ?([^\s,。;!?、:]{1,20})",
    ),
];

#[derive(Clone, Copy, Debug)]
enum Wish {
    Do,
    /// `Do` with a name, which only its capitals tell from other words.
    Name,
    Not,
    Letter,
    NoComma,
    Start,
    End,
}

const FORMATS: &[(Format, &str)] = &[
    (
        Format::Json,
        r"\b(?:as|in|into|return|returns|output|produce|respond with|reply with|answer with|emit|provide|using) (?:only |just )?(?:an? |the |your |results? |it |them )*(?:as |in )?(?:an? )?(?:single |valid |strict |raw |well-formed |only )*json\b",
    ),
    (Format::Json, r"(?:以|用|返回|输出|按照?|采用)[^,。\n]{0,8}json"),
    (
        Format::Table,
        r"\b(?:as|in|into|with|using|include|provide|create|make|draw) (?:the form of )?an? (?:markdown |simple |comparison |summary )*table\b",
    ),
    (Format::Table, r"(?:用|以|制作|列成|做成|输出)(?:一个)?(?:markdown ?)?表格"),
    (
        Format::NumberedList,
        r"\b(?:as|in|into|with|using|make|give|provide|create|write) (?:me )?an? (?:numbered|ordered) list\b",
    ),
    (
        Format::List,
        r"\b(?:as|in|into|with|using|make|give|provide|create|write|use) (?:me )?(?:an? )?(?:bullet(?:ed)?(?:-point)? (?:point )?lists?|unordered list|bullet points|bullets)\b",
    ),
    (Format::List, r"(?:用|以)(?:无序|项目符号)?列表"),
    (
        Format::LowerCase,
        r"\b(?:in|all|only|use|using) (?:all |only |just |entirely )*(?:lower ?case|lowercase|small)(?: letters)?\b",
    ),
    (
        Format::UpperCase,
        r"\b(?:in|all|only|use|using) (?:all |only |just |entirely )*(?:upper ?case|uppercase|capital letters|all caps|capitals|block letters)\b",
    ),
];

/// The phrasings, compiled.
#[derive(Debug)]
pub(super) struct Reader {
    about: f64,
    lengths: Vec<(Bound, Regex)>,
    terms: Vec<(Wish, Regex)>,
    formats: Vec<(Format, Regex)>,
    quoted: Regex,
}

impl Reader {
    /// `about` is how far a loose length may be missed, as a share of it.
    pub(super) fn new(about: f64) -> Result<Self, BuildError> {
        let compile = |pattern: &str| {
            let filled = pattern
                .replace("{NUM}", N)
                .replace("{U}", U)
                .replace("{Z}", ZN)
                .replace("{ZU}", ZU)
                .replace("{Q}", Q);
            phrase(&filled)
        };
        let mut lengths = Vec::new();
        for (bound, pattern) in LENGTHS {
            lengths.push((*bound, compile(pattern)?));
        }
        let mut terms = Vec::new();
        for (wish, pattern) in TERMS {
            terms.push((*wish, compile(pattern)?));
        }
        let mut formats = Vec::new();
        for (format, pattern) in FORMATS {
            formats.push((*format, compile(pattern)?));
        }
        let quoted =
            phrase(r#""([^"\n]+)"|'([^'\n]+)'|`([^`\n]+)`|「([^」\n]+)」|『([^』\n]+)』"#)?;
        Ok(Self { about, lengths, terms, formats, quoted })
    }

    /// What a text asks for, in the order of the text, each thing once.
    pub(super) fn read(&self, input: &str) -> Vec<Request> {
        let cased = plain_cased(input);
        let text = lower_in_place(&cased);
        let mut taken = Taken::default();
        let mut found: Vec<(usize, Request)> = Vec::new();
        for (bound, pattern) in &self.lengths {
            for captures in pattern.captures_iter(&text) {
                if let Some((start, end)) = span(&captures)
                    && taken.free(start, end)
                    && let Some(request) = self.length(*bound, &captures)
                {
                    taken.take(start, end);
                    found.push((start, request));
                }
            }
        }
        // Terms share no stretch among themselves; a length may stand inside a quotation.
        let mut taken = Taken::default();
        for (wish, pattern) in &self.terms {
            let searched = if matches!(wish, Wish::Name) { &cased } else { &text };
            for captures in pattern.captures_iter(searched) {
                if let Some((start, end)) = span(&captures)
                    && taken.free(start, end)
                {
                    taken.take(start, end);
                    // Small letters find the phrase; the term is as written.
                    let words = captures.get(1).map_or("", |group| &cased[group.range()]);
                    found.extend(self.wishes(*wish, words).into_iter().map(|w| (start, w)));
                }
            }
        }
        for (format, pattern) in &self.formats {
            for hit in pattern.find_iter(&text) {
                if taken.free(hit.start(), hit.end()) && !asked_not(&text, hit.start()) {
                    taken.take(hit.start(), hit.end());
                    found.push((hit.start(), Request::Format(*format)));
                }
            }
        }
        found.sort_by_key(|(start, _)| *start);
        let mut requests: Vec<Request> = Vec::new();
        for (_, request) in found {
            if !requests.contains(&request) {
                requests.push(request);
            }
        }
        requests
    }

    fn length(&self, bound: Bound, captures: &Captures<'_>) -> Option<Request> {
        let groups: Vec<&str> = captures.iter().skip(1).flatten().map(|m| m.as_str()).collect();
        let (unit, numbers) = groups.split_last()?;
        let unit = Unit::parse(unit)?;
        let numbers: Option<Vec<u64>> = numbers.iter().map(|word| number(word)).collect();
        let numbers = numbers?;
        let first = *numbers.first()?;
        let about = || Between {
            min: Some((first as f64 * (1.0 - self.about)).ceil() as u64),
            max: Some((first as f64 * (1.0 + self.about)).floor() as u64),
        };
        let exactly = Between { min: Some(first), max: Some(first) };
        let range = match bound {
            Bound::Range => {
                let second = *numbers.get(1)?;
                if second < first {
                    return None;
                }
                Between { min: Some(first), max: Some(second) }
            }
            Bound::Max => Between { min: None, max: Some(first) },
            Bound::Below => Between { min: None, max: Some(first.checked_sub(1)?) },
            Bound::Min => Between { min: Some(first), max: None },
            Bound::Above => Between { min: Some(first + 1), max: None },
            Bound::Exactly => exactly,
            Bound::About => about(),
            Bound::Bare if unit.exact(first) => exactly,
            Bound::Bare => about(),
        };
        Some(Request::Length { unit, range })
    }

    fn wishes(&self, wish: Wish, words: &str) -> Vec<Request> {
        let terms = || -> Vec<String> {
            if !words.starts_with(['"', '\'', '`', '「', '『']) {
                return vec![words.to_owned()];
            }
            self.quoted
                .captures_iter(words)
                .filter_map(|captures| captures.iter().skip(1).flatten().next())
                // American usage puts the sentence's comma inside the quotation.
                .map(|term| term.as_str().trim().trim_end_matches([',', '.']).to_owned())
                .filter(|term| !term.is_empty() && term.chars().count() <= LONGEST_TERM)
                .collect()
        };
        match wish {
            Wish::Do | Wish::Name => terms().into_iter().map(Request::Term).collect(),
            Wish::Not => terms().into_iter().map(Request::NoTerm).collect(),
            Wish::Start => terms().into_iter().take(1).map(Request::Start).collect(),
            Wish::End => terms().into_iter().take(1).map(Request::End).collect(),
            Wish::NoComma => vec![Request::NoComma],
            Wish::Letter => words
                .chars()
                .next()
                .and_then(|letter| letter.to_lowercase().next())
                .map(Request::NoLetter)
                .into_iter()
                .collect(),
        }
    }
}

/// Whether the same sentence says `not` shortly before (`do not answer in JSON`).
fn asked_not(text: &str, start: usize) -> bool {
    let mut from = start.saturating_sub(40);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let before = &text[from..start];
    let sentence = before.rsplit(['.', '!', '?', '\n', '。', ';']).next().unwrap_or_default();
    sentence
        .split_whitespace()
        .any(|word| matches!(word, "not" | "don't" | "never" | "avoid" | "without" | "cannot"))
        || ["不要", "不得", "请勿", "禁止", "不能"].iter().any(|word| sentence.contains(word))
}

fn span(captures: &Captures<'_>) -> Option<(usize, usize)> {
    captures.get(0).map(|hit| (hit.start(), hit.end()))
}

/// Stretches of text that have been read, kept sorted.
#[derive(Default)]
struct Taken(std::collections::BTreeMap<usize, usize>);

impl Taken {
    fn free(&self, start: usize, end: usize) -> bool {
        // Stretches never overlap, so the last that begins before `end` ends last.
        self.0.range(..end).next_back().is_none_or(|(_, last)| *last <= start)
    }

    fn take(&mut self, start: usize, end: usize) {
        self.0.insert(start, end);
    }
}

/// A whole number in digits, in English words up to two hundred, or in Chinese.
fn number(written: &str) -> Option<u64> {
    if written.starts_with(|c: char| c.is_ascii_digit()) {
        return written.replace(',', "").parse().ok();
    }
    let word = written.to_lowercase();
    let small = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    if let Some(value) = small.iter().position(|known| *known == word) {
        return Some(value as u64);
    }
    let tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    if let Some(place) = tens.iter().position(|known| *known == word) {
        return Some(place as u64 * 10 + 20);
    }
    match word.split_whitespace().collect::<Vec<_>>()[..] {
        ["a", "single"] => Some(1),
        ["a" | "one", "hundred"] => Some(100),
        ["two", "hundred"] => Some(200),
        _ => chinese_number(&word),
    }
}

/// `一百五十` is 150, `两千` 2000, `一万` 10000; `None` for what is not formed so.
fn chinese_number(written: &str) -> Option<u64> {
    let (mut total, mut section, mut digit) = (0_u64, 0_u64, None::<u64>);
    for c in written.chars() {
        let value = match c {
            '零' => 0,
            '一' => 1,
            '二' | '两' => 2,
            '三' => 3,
            '四' => 4,
            '五' => 5,
            '六' => 6,
            '七' => 7,
            '八' => 8,
            '九' => 9,
            '十' | '百' | '千' => {
                let power = match c {
                    '十' => 10,
                    '百' => 100,
                    _ => 1000,
                };
                section += digit.take().unwrap_or(1) * power;
                continue;
            }
            '万' => {
                total += (section + digit.take().unwrap_or(0)) * 10_000;
                section = 0;
                continue;
            }
            _ => return None,
        };
        // Two digits in a row are a code, not a number.
        if digit.is_some_and(|d| d != 0) {
            return None;
        }
        digit = Some(value);
    }
    Some(total + section + digit.unwrap_or(0)).filter(|value| *value > 0)
}

#[cfg(test)]
mod tests;
