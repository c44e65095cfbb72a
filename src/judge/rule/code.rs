//! `code`: whether code parses. Nothing is run, resolved or type-checked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::fence::fences;
use super::finding::{Check, Finding, NotApplicable, Of, Rule};
use crate::case::Case;
use crate::text;

/// Options of `code`.
///
/// Score: the share of pieces of code that parse: the whole text is one piece, with
/// `extract = true` each fenced block of the language is one. A text without a block scores
/// 0; so does an empty piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeSpec {
    /// The text that is read.
    #[serde(default)]
    pub of: Of,
    /// The language.
    pub language: Syntax,
    /// Whether the code stands in fenced blocks: those marked with the language's name, or
    /// where none is, those without a mark.
    #[serde(default)]
    pub extract: bool,
}

/// A language that can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Syntax {
    /// JSON.
    Json,
    /// TOML.
    Toml,
    /// YAML, one document.
    Yaml,
    /// Python 3; needs the feature `syntax`.
    Python,
    /// JavaScript with JSX; needs the feature `syntax`.
    Javascript,
    /// Rust; needs the feature `syntax`.
    Rust,
}

impl Syntax {
    fn title(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Python => "Python",
            Self::Javascript => "JavaScript",
            Self::Rust => "Rust",
        }
    }

    /// Marks of fenced blocks in this language, in lower case.
    fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["json"],
            Self::Toml => &["toml"],
            Self::Yaml => &["yaml", "yml"],
            Self::Python => &["python", "py", "python3"],
            Self::Javascript => &["javascript", "js", "jsx", "mjs", "node"],
            Self::Rust => &["rust", "rs"],
        }
    }

    /// The line of the first error, from 1, and what it is.
    fn error(self, code: &str) -> Option<(usize, String)> {
        match self {
            Self::Json => serde_json::from_str::<serde::de::IgnoredAny>(code)
                .err()
                .map(|error| (error.line().max(1), error.to_string())),
            Self::Toml => code.parse::<toml::Table>().err().map(|error| {
                let at = error.span().map_or(0, |span| span.start.min(code.len()));
                let line = code.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
                (line, error.message().to_owned())
            }),
            Self::Yaml => {
                serde_saphyr::from_str::<serde::de::IgnoredAny>(code).err().map(|error| {
                    let line = error.location().map_or(1, |at| at.line() as usize);
                    let message = error.to_string();
                    (line.max(1), message.lines().next().unwrap_or_default().to_owned())
                })
            }
            Self::Python | Self::Javascript | Self::Rust => parse_error(self, code),
        }
    }
}

#[cfg(feature = "syntax")]
fn parse_error(language: Syntax, code: &str) -> Option<(usize, String)> {
    super::syntax::error(language, code)
}

#[cfg(not(feature = "syntax"))]
fn parse_error(_: Syntax, _: &str) -> Option<(usize, String)> {
    // Building the rule is refused without the feature.
    None
}

impl CodeSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        let grammar = matches!(self.language, Syntax::Python | Syntax::Javascript | Syntax::Rust);
        if grammar && !cfg!(feature = "syntax") {
            return Err(BuildError::Feature { field: "language".into(), feature: "syntax" });
        }
        Ok(Box::new(Code { spec: self.clone() }))
    }
}

#[derive(Debug)]
struct Code {
    spec: CodeSpec,
}

impl Rule for Code {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let written = self.spec.of.text(case)?;
        let language = self.spec.language;
        let title = language.title();
        if !self.spec.extract {
            return Ok(Finding::plain(self.complaint(written, 1)));
        }
        let blocks = fences(written);
        let marked: Vec<_> = blocks
            .iter()
            .filter(|block| language.marks().contains(&block.language.to_lowercase().as_str()))
            .collect();
        let pieces = if marked.is_empty() {
            blocks.iter().filter(|block| block.language.is_empty()).collect()
        } else {
            marked
        };
        if pieces.is_empty() {
            return Ok(Finding::plain(Some(format!(
                "has no fenced block of {title}: put the code between ```{} and ```",
                language.marks()[0]
            ))));
        }
        let checks = pieces.iter().enumerate().map(|(number, block)| {
            Check::plain(format!("block {}", number + 1), self.complaint(block.body, block.line))
        });
        Ok(Finding::mean(checks.collect()))
    }
}

impl Code {
    /// What is wrong with a piece that starts on a line of the text.
    fn complaint(&self, code: &str, first_line: usize) -> Option<String> {
        let title = self.spec.language.title();
        if code.trim().is_empty() {
            return Some(format!("has no code: expected {title}"));
        }
        self.spec.language.error(code).map(|(line, message)| {
            format!(
                "is not {title}: line {}: {}",
                first_line + line - 1,
                text::excerpt(&message, 120)
            )
        })
    }
}
