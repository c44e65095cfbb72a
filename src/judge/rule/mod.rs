//! Rule judges: deterministic, offline, the same verdict every time.
//!
//! A [`RuleSpec`] is the configuration; building it checks everything that can be checked
//! before the first case and compiles every pattern once. A rule never guesses: a case that
//! lacks what the rule needs is an abstention, not a score.

mod code;
mod composite;
mod contains;
mod equals;
mod fence;
mod finding;
mod injection;
mod json;
mod judge;
mod language;
mod length;
mod markdown;
mod number;
mod phrase;
mod pii;
mod readability;
mod refusal;
mod regex;
mod repetition;
mod request;
mod requirements;
#[cfg(feature = "schema")]
mod schema;
mod secrets;
mod similarity;
#[cfg(feature = "syntax")]
mod syntax;
#[cfg(test)]
mod tests;
mod token_overlap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use code::{CodeSpec, Syntax};
pub use composite::{Combine, CompositeSpec, Part};
pub use contains::ContainsSpec;
pub use equals::{EqualsMode, EqualsSpec, Tolerance};
pub use finding::{Between, BetweenNumbers, Finding, NotApplicable, Of, Rule};
pub use injection::{InjectionKind, InjectionSpec};
pub use json::{JsonSpec, PathCheck};
pub use language::LanguageSpec;
pub use length::LengthSpec;
pub use markdown::MarkdownSpec;
pub use pii::{PiiKind, PiiSpec};
pub use readability::{ReadabilityIndex, ReadabilitySpec};
pub use refusal::RefusalSpec;
pub use regex::{RegexMode, RegexSpec};
pub use repetition::RepetitionSpec;
pub use requirements::RequirementsSpec;
pub use secrets::SecretsSpec;
pub use similarity::{Metric, SimilaritySpec};

use super::{BoxedJudge, BuildContext, BuildError};

/// Which rule, and its options: the table `rule = "..."` of a judge of kind `rule`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum RuleSpec {
    /// How long the text is.
    Length(LengthSpec),
    /// Which terms occur.
    Contains(ContainsSpec),
    /// Which patterns match.
    Regex(RegexSpec),
    /// Whether the output equals a reference.
    Equals(EqualsSpec),
    /// How close the output is to a reference, by a published measure.
    Similarity(SimilaritySpec),
    /// Whether the output is JSON, and of which shape.
    Json(JsonSpec),
    /// Whether the output has a given Markdown structure.
    Markdown(MarkdownSpec),
    /// How hard English prose is to read.
    Readability(ReadabilitySpec),
    /// How much of the text repeats itself.
    Repetition(RepetitionSpec),
    /// Which natural language the text is in.
    Language(LanguageSpec),
    /// Whether the output keeps to what the input asks for in plain words.
    Requirements(RequirementsSpec),
    /// Whether the output is a refusal.
    Refusal(RefusalSpec),
    /// Whether personal data occurs.
    Pii(PiiSpec),
    /// Whether keys or passwords occur.
    Secrets(SecretsSpec),
    /// Whether the text speaks to whoever judges it.
    Injection(InjectionSpec),
    /// Whether code parses.
    Code(CodeSpec),
    /// Several rules as one.
    Composite(CompositeSpec),
}

/// The rules, as `rule` names them.
pub const RULES: [&str; 17] = [
    "length",
    "contains",
    "regex",
    "equals",
    "similarity",
    "json",
    "markdown",
    "readability",
    "repetition",
    "language",
    "requirements",
    "refusal",
    "pii",
    "secrets",
    "injection",
    "code",
    "composite",
];

impl RuleSpec {
    /// The rule's name in configuration.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Length(_) => "length",
            Self::Contains(_) => "contains",
            Self::Regex(_) => "regex",
            Self::Equals(_) => "equals",
            Self::Similarity(_) => "similarity",
            Self::Json(_) => "json",
            Self::Markdown(_) => "markdown",
            Self::Readability(_) => "readability",
            Self::Repetition(_) => "repetition",
            Self::Language(_) => "language",
            Self::Requirements(_) => "requirements",
            Self::Refusal(_) => "refusal",
            Self::Pii(_) => "pii",
            Self::Secrets(_) => "secrets",
            Self::Injection(_) => "injection",
            Self::Code(_) => "code",
            Self::Composite(_) => "composite",
        }
    }

    /// Checks the options and makes the judge.
    ///
    /// # Errors
    /// When an option can't work (a bad pattern, a least above the most, nothing to check),
    /// a named file can't be read, or this build lacks a feature the rule needs.
    pub fn build(&self, context: &BuildContext) -> Result<BoxedJudge, BuildError> {
        judge::build(self, context)
    }

    /// Whether the rule's scores depend on how scripts without spaces are cut into words,
    /// which a build decides.
    fn counts_words(&self) -> bool {
        match self {
            Self::Length(_)
            | Self::Similarity(_)
            | Self::Readability(_)
            | Self::Repetition(_)
            | Self::Requirements(_)
            | Self::Refusal(_) => true,
            Self::Composite(spec) => spec.parts.iter().any(|part| part.check.counts_words()),
            _ => false,
        }
    }

    fn compile(&self, context: &BuildContext, depth: usize) -> Result<Box<dyn Rule>, BuildError> {
        match self {
            Self::Length(spec) => spec.compile(),
            Self::Contains(spec) => spec.compile(),
            Self::Regex(spec) => spec.compile(),
            Self::Equals(spec) => spec.compile(),
            Self::Similarity(spec) => spec.compile(),
            Self::Json(spec) => spec.compile(context),
            Self::Markdown(spec) => spec.compile(),
            Self::Readability(spec) => spec.compile(),
            Self::Repetition(spec) => spec.compile(),
            Self::Language(spec) => spec.compile(),
            Self::Requirements(spec) => spec.compile(),
            Self::Refusal(spec) => spec.compile(),
            Self::Pii(spec) => spec.compile(),
            Self::Secrets(spec) => spec.compile(),
            Self::Injection(spec) => spec.compile(),
            Self::Code(spec) => spec.compile(),
            Self::Composite(spec) => spec.compile(context, depth),
        }
    }
}
