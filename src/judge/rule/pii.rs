//! `pii`: whether personal data occurs. Numbers with a check digit are checked, so that most
//! order numbers and measurements are let pass; feedback shows a masked form only.

use ::regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Finding, NotApplicable, Of, Rule, check_terms};
use crate::case::Case;
use crate::text;

/// Options of `pii`.
///
/// Score: 1 when nothing is found, else 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PiiSpec {
    /// The text that is searched.
    #[serde(default)]
    pub of: Of,
    /// What is looked for; everything by default.
    #[serde(default)]
    pub kinds: Vec<PiiKind>,
    /// Values that are let pass, such as a published address. `@example.com` allows every
    /// address there.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// A kind of personal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PiiKind {
    /// An e-mail address.
    Email,
    /// A telephone number: international with `+`, North American, or a Chinese mobile.
    Phone,
    /// A payment card number of 13 to 19 digits with a right check digit (Luhn, ISO/IEC
    /// 7812).
    Card,
    /// A bank account number with a right check (IBAN, ISO 13616).
    Iban,
    /// A Chinese resident identity number of 18 characters with a right date and check (GB
    /// 11643).
    ChineseId,
    /// A United States social security number, written with hyphens or spaces.
    Ssn,
    /// An IP address other than loopback, private, unspecified and documentation ones.
    IpAddress,
}

impl PiiKind {
    // Order matters: a stretch is reported once, as the first kind that fits it.
    const ALL: [Self; 7] = [
        Self::Email,
        Self::Iban,
        Self::ChineseId,
        Self::Card,
        Self::Ssn,
        Self::IpAddress,
        Self::Phone,
    ];

    fn what(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::Phone => "a telephone number",
            Self::Card => "a card number",
            Self::Iban => "an IBAN",
            Self::ChineseId => "a Chinese identity number",
            Self::Ssn => "a social security number",
            Self::IpAddress => "an IP address",
        }
    }

    fn pattern(self) -> &'static str {
        match self {
            Self::Email => {
                r"(?i)[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9](?:[a-z0-9-]{0,62})\.)+[a-z]{2,24}"
            }
            Self::Phone => {
                r"\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){1,5}|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}[ .-]\d{3}[ .-]\d{4}|1[3-9]\d[ -]?\d{4}[ -]?\d{4}"
            }
            Self::Card => r"\d(?:[ -]?\d){12,18}",
            Self::Iban => r"(?i)[a-z]{2}\d{2}(?: ?[a-z0-9]){11,30}",
            Self::ChineseId => r"[1-9]\d{16}[\dXx]",
            Self::Ssn => r"\d{3}[ -]\d{2}[ -]\d{4}",
            Self::IpAddress => r"(?:\d{1,3}\.){3}\d{1,3}|(?i)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}",
        }
    }

    /// The part of a match that is of this kind, if any.
    fn confirm(self, hit: &str) -> Option<&str> {
        match self {
            Self::Email => Some(hit),
            Self::Phone => {
                let digits = hit.chars().filter(char::is_ascii_digit).count();
                // Recommendation E.164: at most 15 digits; under 8 is no whole number.
                (8..=15).contains(&digits).then_some(hit)
            }
            Self::Card => (is_luhn(hit) && plausible_card(hit)).then_some(hit),
            Self::Iban => longest_iban(hit),
            Self::ChineseId => is_chinese_id(hit).then_some(hit),
            Self::Ssn => is_ssn(hit).then_some(hit),
            Self::IpAddress => is_public_address(hit).then_some(hit),
        }
    }
}

impl PiiSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        check_terms("allow", &self.allow)?;
        let mut patterns = Vec::new();
        for kind in PiiKind::ALL {
            if self.kinds.is_empty() || self.kinds.contains(&kind) {
                let pattern = Regex::new(kind.pattern()).map_err(|error| {
                    BuildError::invalid("kinds", format!("built-in pattern: {error}"))
                })?;
                patterns.push((kind, pattern));
            }
        }
        let allow = self.allow.iter().map(|value| text::normalise(value)).collect();
        Ok(Box::new(Pii { of: self.of, patterns, allow }))
    }
}

#[derive(Debug)]
struct Pii {
    of: Of,
    patterns: Vec<(PiiKind, Regex)>,
    allow: Vec<String>,
}

impl Rule for Pii {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let visible = text::strip_format(self.of.text(case)?);
        let folded = text::width_folded(&visible);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut feedback = Vec::new();
        let mut total = 0_u64;
        for (kind, pattern) in &self.patterns {
            let mut count = 0_u64;
            let mut first = None;
            let mut found = Vec::new();
            let mut from = 0;
            while let Some(hit) = pattern.find_at(&folded, from) {
                from = hit.end();
                if !stands_alone(&folded, hit.start(), hit.end()) {
                    continue;
                }
                let Some(value) = kind.confirm(hit.as_str()) else { continue };
                let end = hit.start() + value.len();
                if self.allowed(value) || overlaps(&taken, hit.start(), end) {
                    continue;
                }
                found.push((hit.start(), end));
                count += 1;
                first.get_or_insert_with(|| mask(*kind, value));
            }
            // Sorted by start within a kind and merged across kinds, so that the check above
            // stays logarithmic on a megabyte of addresses.
            taken.extend(found);
            taken.sort_unstable();
            if let Some(example) = first {
                total += count;
                let more =
                    if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
                feedback.push(format!("has {} (`{example}`){more}: remove it", kind.what()));
            }
        }
        Ok(Finding::new(if total == 0 { 1.0 } else { 0.0 }).say(feedback).raw(total))
    }
}

impl Pii {
    fn allowed(&self, value: &str) -> bool {
        let value = text::normalise(value);
        self.allow.iter().any(|allowed| {
            value == *allowed || allowed.starts_with('@') && value.ends_with(allowed.as_str())
        })
    }
}

fn overlaps(taken: &[(usize, usize)], start: usize, end: usize) -> bool {
    let at = taken.partition_point(|(from, _)| *from < end);
    at.checked_sub(1).is_some_and(|at| taken[at].1 > start)
}

/// Whether no letter or digit of a spaced script touches the match: a card number is no part
/// of a longer number.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let part = |c: char| (c.is_alphanumeric() || c == '_') && !text::is_unspaced(c);
    let before = text[..start].chars().next_back();
    let mut after = text[end..].chars();
    let (next, second) = (after.next(), after.next());
    let decimal = matches!(next, Some('.' | ',' | '-' | ':'))
        && second.is_some_and(|c| c.is_ascii_digit())
        && text[..end].ends_with(|c: char| c.is_ascii_digit());
    !(before.is_some_and(|c| part(c) || matches!(c, '.' | '-' | '+'))
        || next.is_some_and(part)
        || decimal)
}

/// Check digit of ISO/IEC 7812 (Luhn, 1960), over the digits of a text.
fn is_luhn(written: &str) -> bool {
    let mut sum = 0;
    let mut digits = 0;
    for digit in written.chars().rev().filter_map(|c| c.to_digit(10)) {
        let value = if digits % 2 == 1 { digit * 2 } else { digit };
        sum += if value > 9 { value - 9 } else { value };
        digits += 1;
    }
    digits > 1 && sum % 10 == 0
}

/// Cards begin with the digits of an issuer's network (2 to 6), and a run of one digit is a
/// filler.
fn plausible_card(written: &str) -> bool {
    let digits: Vec<char> = written.chars().filter(char::is_ascii_digit).collect();
    digits.first().is_some_and(|first| ('2'..='6').contains(first))
        && digits.iter().any(|digit| Some(digit) != digits.first())
}

/// The longest start of a match that is an IBAN: words that follow one look like more of it.
fn longest_iban(hit: &str) -> Option<&str> {
    let mut end = hit.len();
    while end >= 15 {
        let candidate = hit[..end].trim_end();
        if is_iban(candidate) {
            return Some(candidate);
        }
        end = candidate.len() - 1;
    }
    None
}

/// ISO 13616: moved round and read in base 36, the number is 1 modulo 97.
fn is_iban(written: &str) -> bool {
    let letters: Vec<u32> =
        written.chars().filter(|c| *c != ' ').filter_map(|c| c.to_digit(36)).collect();
    if !(15..=34).contains(&letters.len()) {
        return false;
    }
    let remainder = letters[4..].iter().chain(&letters[..4]).fold(0, |rest, value| {
        let step = if *value > 9 { 100 } else { 10 };
        (rest * step + value) % 97
    });
    remainder == 1
}

/// GB 11643-1999: a date of birth and a check character of ISO 7064 MOD 11-2.
fn is_chinese_id(written: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    const CHECKS: &[u8; 11] = b"10X98765432";
    let bytes = written.as_bytes();
    if bytes.len() != 18 {
        return false;
    }
    let number = |from: usize, to: usize| written[from..to].parse::<i16>().unwrap_or(0);
    let date = jiff::civil::Date::new(number(6, 10), number(10, 12) as i8, number(12, 14) as i8);
    let sum: u32 = bytes.iter().zip(WEIGHTS).map(|(b, w)| u32::from(b - b'0') * w).sum();
    let check = CHECKS[(sum % 11) as usize];
    date.is_ok_and(|date| (1850..=2100).contains(&date.year()))
        && bytes[17].to_ascii_uppercase() == check
}

/// Numbers that were never given out are none: area 000, 666 and 900 up, group 00, serial
/// 0000.
fn is_ssn(written: &str) -> bool {
    let digits: String = written.chars().filter(char::is_ascii_digit).collect();
    let separators: Vec<char> = written.chars().filter(|c| !c.is_ascii_digit()).collect();
    digits.len() == 9
        && separators.windows(2).all(|pair| pair[0] == pair[1])
        && !matches!(&digits[..3], "000" | "666")
        && &digits[..1] != "9"
        && &digits[3..5] != "00"
        && &digits[5..] != "0000"
}

fn is_public_address(written: &str) -> bool {
    match written.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(address)) => {
            !(address.is_loopback()
                || address.is_private()
                || address.is_unspecified()
                || address.is_link_local()
                || address.is_documentation()
                || address.is_broadcast()
                || address.octets()[0] == 0)
        }
        Ok(std::net::IpAddr::V6(address)) => {
            // `a::b` is an address too, but in text it is a path of a program.
            if written.split(':').filter(|group| !group.is_empty()).count() < 3 {
                return false;
            }
            // 2001:db8::/32 is for documentation (RFC 3849).
            let documentation = address.segments()[..2] == [0x2001, 0x0db8];
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || documentation)
        }
        Err(_) => false,
    }
}

/// A form that a reader recognises and no one can use: the first character and, of an
/// address, its end.
fn mask(kind: PiiKind, value: &str) -> String {
    if kind == PiiKind::Email
        && let Some((name, host)) = value.split_once('@')
    {
        let first: String = name.chars().take(1).collect();
        let end = host.rsplit('.').next().unwrap_or_default();
        return format!("{first}***@***.{end}");
    }
    let letters = value.chars().filter(|c| c.is_alphanumeric()).count();
    let shown: String = value.chars().take(2).collect();
    format!("{shown}*** ({letters} characters)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_tell_real_numbers_from_others() {
        assert!(is_luhn("4111 1111 1111 1111") && is_luhn("79927398713"));
        assert!(!is_luhn("4111 1111 1111 1112") && !is_luhn("79927398710") && !is_luhn(""));
        assert!(is_iban("GB82 WEST 1234 5698 7654 32") && is_iban("DE89370400440532013000"));
        assert!(!is_iban("GB82 WEST 1234 5698 7654 33") && !is_iban("GB82"));
        assert!(is_chinese_id("11010519491231002X") && !is_chinese_id("110105194912310021"));
        assert!(!is_chinese_id("11010519491331002X"));
        assert!(is_ssn("219-09-9999") && !is_ssn("666-12-3456") && !is_ssn("123-45 6789"));
    }

    #[test]
    fn an_iban_ends_where_the_words_after_it_begin() {
        assert_eq!(
            longest_iban("DE89 3704 0044 0532 0130 00 and more"),
            Some("DE89 3704 0044 0532 0130 00")
        );
    }
}
