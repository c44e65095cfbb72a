//! `equals`: whether the output is the reference: as text, as normalised text, as a number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Finding, NotApplicable, Of, Rule, check_terms, quoted};
use super::number::Number;
use crate::case::Case;
use crate::text;

/// Options of `equals`.
///
/// Score: 1 when the text equals one of the references, else 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EqualsSpec {
    /// The text that is compared.
    #[serde(default)]
    pub of: Of,
    /// How texts are compared.
    #[serde(default)]
    pub mode: EqualsMode,
    /// References for every case, in place of the case's `expected`.
    #[serde(default)]
    pub references: Vec<String>,
    /// Whether each line of the case's `expected` is a reference of its own, one of which is
    /// enough.
    #[serde(default)]
    pub any_line: bool,
    /// With `normalised`: whether punctuation does not matter. A point or comma between
    /// digits and a minus before one stay.
    #[serde(default = "yes")]
    pub strip_punctuation: bool,
    /// With `normalised`: whether the articles `a`, `an`, `the` do not matter.
    #[serde(default)]
    pub strip_articles: bool,
    /// With `numeric`: how far apart two numbers may be; 0 by default.
    #[serde(default)]
    pub tolerance: Option<Tolerance>,
    /// With `numeric`: whether the last number in the text is taken, rather than the whole
    /// text read as a number.
    #[serde(default)]
    pub last_number: bool,
    /// With `numeric`: whether `1.234,5` is the way numbers are written.
    #[serde(default)]
    pub decimal_comma: bool,
}

fn yes() -> bool {
    true
}

/// How texts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EqualsMode {
    /// The same characters, white space at the ends aside.
    Exact,
    /// The same words: width, letter case, white space and (see the options) punctuation and
    /// articles do not matter.
    #[default]
    Normalised,
    /// The same number.
    Numeric,
}

/// How far apart two numbers may be: the larger of the two allowances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// In the numbers' own unit.
    #[serde(default)]
    pub absolute: f64,
    /// As a share of the reference: 0.01 is one per cent.
    #[serde(default)]
    pub relative: f64,
}

impl EqualsSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        check_terms("references", &self.references)?;
        if self.any_line && !self.references.is_empty() {
            return Err(BuildError::invalid(
                "any_line",
                "is about `expected`: `references` are given one by one",
            ));
        }
        if self.of == Of::Expected && self.references.is_empty() {
            return Err(BuildError::invalid(
                "of",
                "compares `expected` with itself: expected `output`, `input` or `context`",
            ));
        }
        if let Some(tolerance) = self.tolerance {
            if self.mode != EqualsMode::Numeric {
                return Err(BuildError::invalid("tolerance", "needs `mode = \"numeric\"`"));
            }
            if [tolerance.absolute, tolerance.relative].iter().any(|t| !t.is_finite() || *t < 0.0) {
                return Err(BuildError::invalid("tolerance", "expected numbers from 0 up"));
            }
        }
        if self.mode != EqualsMode::Numeric && (self.last_number || self.decimal_comma) {
            let field = if self.last_number { "last_number" } else { "decimal_comma" };
            return Err(BuildError::invalid(field, "needs `mode = \"numeric\"`"));
        }
        if self.mode == EqualsMode::Numeric
            && let Some(wrong) = self
                .references
                .iter()
                .find(|written| Number::parse(written, self.decimal_comma).is_none())
        {
            return Err(BuildError::invalid("references", format!("`{wrong}` is not a number")));
        }
        Ok(Box::new(Equals { spec: self.clone() }))
    }
}

#[derive(Debug)]
struct Equals {
    spec: EqualsSpec,
}

impl Rule for Equals {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let text = self.spec.of.text(case)?;
        let references: Vec<&str> = if !self.spec.references.is_empty() {
            self.spec.references.iter().map(String::as_str).collect()
        } else {
            references(case, self.spec.any_line)?
        };
        match self.spec.mode {
            EqualsMode::Exact => {
                let found = references.iter().any(|reference| reference.trim() == text.trim());
                Ok(self.finding(found, text, &references))
            }
            EqualsMode::Normalised => {
                let plain = self.plain(text);
                let found = references.iter().any(|reference| self.plain(reference) == plain);
                Ok(self.finding(found, text, &references))
            }
            EqualsMode::Numeric => self.numeric(text, &references),
        }
    }
}

/// The references of a case: its `expected`, or each line of it that is not blank.
pub(super) fn references(case: &Case, any_line: bool) -> Result<Vec<&str>, NotApplicable> {
    let expected = Of::Expected.text(case)?;
    if !any_line {
        return Ok(vec![expected]);
    }
    let lines: Vec<&str> = expected.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return Err(NotApplicable::new("the case's `expected` is empty"));
    }
    Ok(lines)
}

impl Equals {
    fn finding(&self, found: bool, text: &str, references: &[&str]) -> Finding {
        Finding::plain((!found).then(|| {
            format!(
                "is `{}`: expected {}",
                text::excerpt(text, 60),
                quoted(references.iter().copied())
            )
        }))
    }

    fn plain(&self, written: &str) -> String {
        let mut plain = text::normalise(written);
        if self.spec.strip_punctuation {
            let stripped = without_punctuation(&plain);
            // An answer that is nothing but signs is compared as it stands.
            if !stripped.is_empty() {
                plain = stripped;
            }
        }
        if self.spec.strip_articles {
            let words: Vec<&str> =
                plain.split(' ').filter(|word| !matches!(*word, "a" | "an" | "the")).collect();
            // The answer `A` of a multiple choice is no article.
            if !words.is_empty() {
                plain = words.join(" ");
            }
        }
        plain
    }

    fn numeric(&self, text: &str, references: &[&str]) -> Result<Finding, NotApplicable> {
        let comma = self.spec.decimal_comma;
        let numbers: Vec<Number> =
            references.iter().filter_map(|written| Number::parse(written, comma)).collect();
        if numbers.is_empty() {
            return Err(NotApplicable::new(format!(
                "the reference {} is not a number",
                quoted(references.iter().copied())
            )));
        }
        let given = if self.spec.last_number {
            last_number(text, comma)
        } else {
            Number::parse(text.trim().trim_end_matches(['.', '。']), comma)
        };
        let Some(given) = given else {
            return Ok(Finding::plain(Some(format!(
                "`{}` is not a number: expected {}",
                text::excerpt(text, 60),
                quoted(references.iter().copied())
            ))));
        };
        let found = numbers.iter().any(|reference| self.close(&given, reference));
        let finding = self.finding(found, text, references);
        // JSON has no infinity; a number beyond f64 is compared and not shown.
        Ok(if given.value.is_finite() { finding.raw(given.value) } else { finding })
    }

    fn close(&self, given: &Number, reference: &Number) -> bool {
        if given == reference {
            return true;
        }
        let Some(tolerance) = self.spec.tolerance else { return false };
        let distance = (given.value - reference.value).abs();
        let allowed = tolerance.absolute.max(tolerance.relative * reference.value.abs());
        // The subtraction rounds: 1.1 is within 0.1 of 1.0 for everyone but f64.
        let rounding = 4.0 * f64::EPSILON * given.value.abs().max(reference.value.abs());
        allowed > 0.0 && distance.is_finite() && distance <= allowed + rounding
    }
}

/// The last number among the words of a text: `the answer is 1,200.` gives 1200.
fn last_number(text: &str, decimal_comma: bool) -> Option<Number> {
    let folded = text::width_folded(text);
    folded.split_whitespace().rev().find_map(|word| {
        let inner = word.trim_matches(|c: char| {
            !(c.is_ascii_digit() || matches!(c, '-' | '+' | '%' | '$' | '€' | '£' | '¥'))
        });
        Number::parse(inner, decimal_comma).or_else(|| {
            // Chinese and formulas write no space: `答案是42`, `x=42`.
            let start = inner.rfind(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',')))?;
            let step = inner[start..].chars().next().map_or(0, char::len_utf8);
            Number::parse(&inner[start + step..], decimal_comma)
        })
    })
}

/// Punctuation dropped (full stop, apostrophe) or taken as a space (the rest); signs that
/// carry meaning (`+`, `%`, `#`, `$`, ...) stay.
fn without_punctuation(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let digit =
        |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(char::is_ascii_digit);
    let mut plain = String::with_capacity(text.len());
    for (at, c) in characters.iter().enumerate() {
        let before = at.checked_sub(1);
        match c {
            '.' | ',' if digit(before) && digit(Some(at + 1)) => plain.push(*c),
            '.' if digit(Some(at + 1)) => plain.push('.'),
            '-' | '\u{2212}'
                if digit(Some(at + 1)) && before.is_none_or(|b| characters[b].is_whitespace()) =>
            {
                plain.push('-');
            }
            '.' | '\'' | '\u{2018}' | '\u{2019}' => {}
            '!'
            | '"'
            | '('
            | ')'
            | '*'
            | ','
            | '-'
            | '/'
            | ':'
            | ';'
            | '?'
            | '['
            | '\\'
            | ']'
            | '_'
            | '`'
            | '{'
            | '}'
            | '«'
            | '»'
            | '¿'
            | '¡'
            | '·'
            | '\u{2010}'..='\u{2015}'
            | '\u{201A}'..='\u{201F}'
            | '\u{2026}'
            | '\u{2039}'
            | '\u{203A}'
            | '\u{3001}'..='\u{3003}'
            | '\u{3008}'..='\u{3011}'
            | '\u{3014}'..='\u{301F}'
            | '\u{2212}' => plain.push(' '),
            other => plain.push(*other),
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
