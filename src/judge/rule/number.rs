//! Numbers as people write them: signs, thousands separators, percent, currency.
//!
//! Reads a text that is a number and nothing else; words around it are the caller's affair.

use crate::text;

/// A decimal number as written, exact, and its nearest `f64`.
#[derive(Clone, Debug)]
pub(super) struct Number {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    /// The value is `0.digits * 10^exponent`.
    exponent: i64,
    /// May be infinite where the text is beyond the range of `f64`.
    pub(super) value: f64,
}

impl PartialEq for Number {
    /// Exact: `1.50` equals `1.5`, and two integers of 20 digits that differ in the last do
    /// not, though their `f64` are the same.
    fn eq(&self, other: &Self) -> bool {
        if self.digits.is_empty() && other.digits.is_empty() {
            return true;
        }
        (self.negative, &self.digits, self.exponent)
            == (other.negative, &other.digits, other.exponent)
    }
}

const CURRENCY: [char; 8] = ['$', '€', '£', '¥', '₹', '₩', '₽', '元'];

impl Number {
    /// Reads a whole text as a number; `None` where it is not one. Full-width digits, a sign,
    /// one currency sign, separators between groups of three digits (`,` or, with
    /// `decimal_comma`, `.`; also space, apostrophe, underscore), an exponent and a per cent
    /// sign (a hundredth) are understood.
    pub(super) fn parse(written: &str, decimal_comma: bool) -> Option<Self> {
        let folded = text::width_folded(written.trim());
        let mut rest = folded.trim();
        let (mut negative, mut hundredth) = (false, false);
        let (mut signed, mut priced) = (false, false);
        loop {
            let mut letters = rest.chars();
            match letters.next()? {
                '-' | '\u{2212}' if !signed => (negative, signed) = (true, true),
                '+' if !signed => signed = true,
                c if CURRENCY.contains(&c) && !priced => priced = true,
                _ => break,
            }
            rest = letters.as_str().trim_start();
        }
        if let Some(before) = rest.strip_suffix('%') {
            (rest, hundredth) = (before.trim_end(), true);
        } else if !priced && let Some(before) = rest.strip_suffix(CURRENCY) {
            rest = before.trim_end();
        }
        let (mantissa, power) = match rest.find(['e', 'E']) {
            Some(at) => (&rest[..at], rest[at + 1..].parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (point, comma) = if decimal_comma { (',', '.') } else { ('.', ',') };
        let (whole, fraction) = mantissa.split_once(point).unwrap_or((mantissa, ""));
        if fraction.chars().any(|c| !c.is_ascii_digit()) {
            return None;
        }
        let whole = ungrouped(whole, comma)?;
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let power = i64::from(power) - if hundredth { 2 } else { 0 };
        let all = format!("{whole}{fraction}");
        let sign = if negative { "-" } else { "" };
        // The parser rounds the exact decimal once, so that 33.3% is the f64 of 0.333.
        let value: f64 = format!("{sign}{all}e{}", power - fraction.len() as i64).parse().ok()?;
        let leading = all.len() - all.trim_start_matches('0').len();
        let digits = all.trim_matches('0').to_owned();
        let exponent = whole.len() as i64 + power - leading as i64;
        Some(Self { negative, digits, exponent, value })
    }
}

/// The digits of an integer part, its separators checked: groups of three after the first.
fn ungrouped(whole: &str, comma: char) -> Option<String> {
    if whole.chars().all(|c| c.is_ascii_digit()) {
        return Some(whole.to_owned());
    }
    let separators = [comma, ' ', '\'', '\u{2019}', '_'];
    let separator = whole.chars().find(|c| !c.is_ascii_digit())?;
    if !separators.contains(&separator) {
        return None;
    }
    let mut groups = whole.split(separator);
    let first = groups.next()?;
    let digits = |group: &str| group.chars().all(|c| c.is_ascii_digit());
    if first.is_empty() || first.len() > 3 || !digits(first) {
        return None;
    }
    let mut all = first.to_owned();
    for group in groups {
        if group.len() != 3 || !digits(group) {
            return None;
        }
        all.push_str(group);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(written: &str) -> Option<f64> {
        Number::parse(written, false).map(|number| number.value)
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (written, expected) in [
            ("42", 42.0),
            (" -3.5 ", -3.5),
            ("\u{2212}7", -7.0),
            ("１，２３４．５", 1234.5),
            ("1,234,567", 1_234_567.0),
            ("1 000", 1000.0),
            ("$1,200.50", 1200.5),
            ("-$5", -5.0),
            ("30 €", 30.0),
            ("50%", 0.5),
            ("33.3%", 0.333),
            ("1.5e3", 1500.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("0", 0.0),
        ] {
            assert_eq!(value(written), Some(expected), "{written}");
        }
        assert_eq!(Number::parse("1.234,5", true).unwrap().value, 1234.5);
    }

    #[test]
    fn what_is_no_number_is_not_guessed_at() {
        for written in [
            "",
            "-",
            ".",
            "abc",
            "1,23",
            "1,2345",
            "12,34,567",
            "1.2.3",
            "--1",
            "$",
            "%",
            "NaN",
            "inf",
            "1e",
            "e5",
            "1/2",
            "0x10",
            "5 apples",
            "1,234 567",
            "²x",
        ] {
            assert_eq!(value(written), None, "{written}");
        }
    }

    #[test]
    fn equality_is_exact_beyond_the_precision_of_f64() {
        let number = |written| Number::parse(written, false).unwrap();
        assert_ne!(number("9007199254740993"), number("9007199254740992"));
        assert_eq!(number("007.50"), number("7.5"));
        assert_eq!(number("-0"), number("0.00"));
        assert_eq!(number("1e3"), number("1,000"));
        assert_eq!(number("0.05"), number("5%"));
        assert_ne!(number("1e400"), number("1e401"));
    }
}
