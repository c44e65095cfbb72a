//! `language`: which natural language the text is in.
//!
//! Needs the feature `language`: guessing by script alone can't tell French from English and
//! is not offered in its place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Of, Rule};

/// Options of `language`.
///
/// Score: 1 when the text is in one of the expected languages, 0 when in another. Fewer than
/// 40 letters (15 in scripts without spaces), or a detection that is not reliable: the judge
/// abstains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageSpec {
    /// The text that is looked at.
    #[serde(default)]
    pub of: Of,
    /// The language expected: a code of ISO 639-1 or 639-3, such as `en`, `zh`, `deu`.
    #[serde(default)]
    pub expect: Option<String>,
    /// Several languages, any of which is right.
    #[serde(default)]
    pub any: Vec<String>,
}

impl LanguageSpec {
    #[cfg(not(feature = "language"))]
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        Err(BuildError::Feature { field: "language".into(), feature: "language" })
    }

    #[cfg(feature = "language")]
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        let codes: Vec<(&str, &String)> = self
            .expect
            .iter()
            .map(|code| ("expect", code))
            .chain(self.any.iter().map(|code| ("any", code)))
            .collect();
        super::finding::check_filled("expect", &codes)?;
        let mut expected = Vec::new();
        for (field, code) in codes {
            expected.push((code.clone(), detect::language(code).ok_or_else(|| {
                BuildError::invalid(
                    field,
                    format!("`{code}` is no known language: expected a code such as `en`, `zh`, `fr` or `deu`"),
                )
            })?));
        }
        Ok(Box::new(detect::Language { of: self.of, expected }))
    }
}

#[cfg(feature = "language")]
mod detect {
    use whatlang::{Lang, detect};

    use super::super::finding::{Finding, NotApplicable, Of, Rule};
    use crate::case::Case;
    use crate::text;

    /// Letters that detection needs; shorter texts are guesses.
    const LETTERS: usize = 40;
    /// The same for scripts whose letters are syllables or words.
    const UNSPACED_LETTERS: usize = 15;
    /// Detection counts trigrams: a longer sample tells it no more.
    const SAMPLE_BYTES: usize = 20_000;

    #[derive(Debug)]
    pub(super) struct Language {
        pub(super) of: Of,
        pub(super) expected: Vec<(String, Lang)>,
    }

    impl Rule for Language {
        fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
            let written = self.of.text(case)?;
            let sample = text::truncate_bytes(written, SAMPLE_BYTES);
            let letters = sample.chars().filter(|c| c.is_alphabetic()).count();
            let unspaced = sample.chars().filter(|c| text::is_unspaced(*c)).count();
            let least = if unspaced * 2 > letters { UNSPACED_LETTERS } else { LETTERS };
            if letters < least {
                return Err(NotApplicable::new(format!(
                    "the case's `{}` has {letters} letters: a language is told from {least} up",
                    self.of.name()
                )));
            }
            let Some(found) = detect(sample).filter(whatlang::Info::is_reliable) else {
                return Err(NotApplicable::new(format!(
                    "the language of the case's `{}` is not clear",
                    self.of.name()
                )));
            };
            let right = self.expected.iter().any(|(_, lang)| *lang == found.lang());
            let complaint = (!right).then(|| {
                let codes: Vec<&str> =
                    self.expected.iter().map(|(code, _)| code.as_str()).collect();
                format!(
                    "is in {}: expected `{}`; write in that language",
                    found.lang().eng_name(),
                    codes.join("` or `")
                )
            });
            Ok(Finding::plain(complaint).raw(found.lang().code()))
        }
    }

    /// The language of a code of ISO 639-3 or, for the languages that have one, 639-1. A
    /// region after a hyphen is let go: `zh-CN` is `zh`.
    pub(super) fn language(code: &str) -> Option<Lang> {
        let code = code.to_ascii_lowercase();
        let code = code.split(['-', '_']).next().unwrap_or_default();
        if code.len() == 3 {
            // `zho` is the code of Chinese as a whole, `cmn` that of Mandarin.
            return Lang::from_code(if code == "zho" { "cmn" } else { code });
        }
        let long = ISO_639_1.iter().find(|(short, _)| *short == code)?.1;
        Lang::from_code(long)
    }

    const ISO_639_1: [(&str, &str); 68] = [
        ("af", "afr"),
        ("ak", "aka"),
        ("am", "amh"),
        ("ar", "ara"),
        ("az", "aze"),
        ("be", "bel"),
        ("bg", "bul"),
        ("bn", "ben"),
        ("ca", "cat"),
        ("cs", "ces"),
        ("cy", "cym"),
        ("da", "dan"),
        ("de", "deu"),
        ("el", "ell"),
        ("en", "eng"),
        ("eo", "epo"),
        ("es", "spa"),
        ("et", "est"),
        ("fa", "pes"),
        ("fi", "fin"),
        ("fr", "fra"),
        ("gu", "guj"),
        ("he", "heb"),
        ("hi", "hin"),
        ("hr", "hrv"),
        ("hu", "hun"),
        ("hy", "hye"),
        ("id", "ind"),
        ("it", "ita"),
        ("ja", "jpn"),
        ("jv", "jav"),
        ("ka", "kat"),
        ("km", "khm"),
        ("kn", "kan"),
        ("ko", "kor"),
        ("la", "lat"),
        ("lt", "lit"),
        ("lv", "lav"),
        ("mk", "mkd"),
        ("ml", "mal"),
        ("mr", "mar"),
        ("my", "mya"),
        ("nb", "nob"),
        ("ne", "nep"),
        ("nl", "nld"),
        ("no", "nob"),
        ("or", "ori"),
        ("pa", "pan"),
        ("pl", "pol"),
        ("pt", "por"),
        ("ro", "ron"),
        ("ru", "rus"),
        ("si", "sin"),
        ("sk", "slk"),
        ("sl", "slv"),
        ("sn", "sna"),
        ("sr", "srp"),
        ("sv", "swe"),
        ("ta", "tam"),
        ("te", "tel"),
        ("th", "tha"),
        ("tk", "tuk"),
        ("tl", "tgl"),
        ("tr", "tur"),
        ("uk", "ukr"),
        ("ur", "urd"),
        ("vi", "vie"),
        ("zh", "cmn"),
    ];

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_short_code_names_a_language_of_the_detector() {
            for (short, long) in ISO_639_1 {
                assert!(language(short).is_some(), "{short} -> {long}");
            }
            assert_eq!(language("zh-CN"), Some(Lang::Cmn));
            assert_eq!(language("zho"), Some(Lang::Cmn));
            assert_eq!(language("xx"), None);
            assert_eq!(language(""), None);
        }
    }
}
