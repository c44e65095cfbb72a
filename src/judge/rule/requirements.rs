//! `requirements`: whether the output keeps to what the input asks for in plain words.
//!
//! Reads lengths, terms, forbidden terms and formats from the input, each by a fixed set of
//! phrasings in English and Chinese, and checks the output against each. What it can't read
//! with certainty it leaves alone: it never infers a wish.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::contains::Search;
use super::finding::{Check, Finding, NotApplicable, Of, Rule};
use super::json;
use super::markdown::outline;
use super::request::{Format, Reader, Request, Unit};
use crate::case::Case;
use crate::text;

/// Options of `requirements`.
///
/// Score: the share of the requirements found in the input that the output meets. None found:
/// the judge abstains.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequirementsSpec {
    /// How far a length asked for loosely (`about 200 words`, `a 200-word essay`, `200字左右`)
    /// may be missed, as a share of it; 0.2 by default.
    #[serde(default)]
    pub about: Option<f64>,
}

impl RequirementsSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        let about = self.about.unwrap_or(0.2);
        if !(0.0..1.0).contains(&about) {
            return Err(BuildError::invalid("about", format!("is {about}: expected 0 up to 1")));
        }
        Ok(Box::new(Requirements { reader: Reader::new(about)? }))
    }
}

#[derive(Debug)]
struct Requirements {
    reader: Reader,
}

impl Rule for Requirements {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let input = Of::Input.text(case)?;
        let output = Of::Output.text(case)?;
        let requests = self.reader.read(input);
        if requests.is_empty() {
            return Err(NotApplicable::new("the input names no requirement that this rule knows"));
        }
        Ok(Finding::mean(requests.iter().map(|request| check(request, output)).collect()))
    }
}

fn check(request: &Request, output: &str) -> Check {
    let name = request.to_string();
    match request {
        Request::Length { unit, range } => {
            let count = match unit {
                Unit::Words => text::count_words(output),
                Unit::Characters => text::count_graphemes(output.trim()),
                Unit::Ideographs => text::count_ideographic(output),
                Unit::Sentences => text::sentences(output).count(),
                Unit::Paragraphs => text::paragraphs(output).count(),
                Unit::Lines => text::count_lines(output),
                Unit::Bullets => outline(output).items,
            } as u64;
            let (one, many) = unit.names();
            Check::plain(name, range.complaint(count, one, many)).raw(count)
        }
        Request::Term(term) => {
            let found = occurs(output, term, false);
            Check::plain(name, (!found).then(|| format!("does not mention `{term}`: add it")))
        }
        Request::NoTerm(term) => {
            let found = occurs(output, term, true);
            Check::plain(name, found.then(|| format!("uses `{term}`: remove it")))
        }
        Request::NoLetter(letter) => {
            let found = text::normalise(output).contains(*letter);
            Check::plain(name, found.then(|| format!("uses the letter `{letter}`: avoid it")))
        }
        Request::NoComma => {
            let found = output.contains([',', '，', '、']);
            Check::plain(name, found.then(|| "uses commas: remove them".to_owned()))
        }
        Request::Start(term) => {
            let found = text::normalise(output).starts_with(&text::normalise(term));
            Check::plain(name, (!found).then(|| format!("does not start with `{term}`")))
        }
        Request::End(term) => {
            let ends = |text: &str| text::normalise(text).ends_with(&text::normalise(term));
            // A full stop after the asked-for words is how sentences end.
            let found =
                ends(output) || ends(output.trim_end().trim_end_matches(['.', '。', '!', '"']));
            Check::plain(name, (!found).then(|| format!("does not end with `{term}`")))
        }
        Request::Format(format) => Check::plain(name, format_complaint(*format, output)),
    }
}

fn occurs(output: &str, term: &str, whole_words: bool) -> bool {
    let search = Search { ignore_case: true, whole_words };
    search.finds(&search.fold(output), &search.term(term))
}

fn format_complaint(format: Format, output: &str) -> Option<String> {
    let letters = || output.chars().filter(|c| c.is_alphabetic());
    match format {
        Format::Json => json::parse(output, true).err(),
        Format::Table => {
            (!outline(output).table).then(|| "has no Markdown table: add one".to_owned())
        }
        Format::List => (outline(output).items == 0).then(|| "has no list: add one".to_owned()),
        Format::NumberedList => (!outline(output).numbered_list)
            .then(|| "has no numbered list: number the items `1.`, `2.`".to_owned()),
        Format::LowerCase => letters()
            .any(char::is_uppercase)
            .then(|| "has capital letters: use lower case only".to_owned()),
        Format::UpperCase => letters()
            .any(char::is_lowercase)
            .then(|| "has small letters: use capitals only".to_owned()),
    }
}
