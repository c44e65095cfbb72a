//! `contains`: which terms occur in the text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Check, Finding, NotApplicable, Of, Rule, check_terms, quoted};
use crate::case::Case;
use crate::text;

/// Options of `contains`; at least one list, or `expected = true`.
///
/// Score: the mean of the parts given. `all`: the share of its terms found. `any`: 1 when one
/// is found, else 0. `none`: 1 when none is found, else 0. `expected`: 1 when the reference
/// (one of its lines with `any_line`) is found, else 0. A forbidden term found makes the
/// whole score 0: the right words don't make up for a wrong one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainsSpec {
    /// The text that is searched.
    #[serde(default)]
    pub of: Of,
    /// Terms that must all occur.
    #[serde(default)]
    pub all: Vec<String>,
    /// Terms of which one at least must occur.
    #[serde(default)]
    pub any: Vec<String>,
    /// Terms that must not occur.
    #[serde(default)]
    pub none: Vec<String>,
    /// Whether the case's `expected` must occur.
    #[serde(default)]
    pub expected: bool,
    /// Whether each line of `expected` is a reference of its own, one of which is enough.
    #[serde(default)]
    pub any_line: bool,
    /// Whether letter case does not matter.
    #[serde(default = "yes")]
    pub ignore_case: bool,
    /// Whether a term must not be part of a longer word (`cat` in `category`). Without effect
    /// at a term's end that is a sign or a script written without spaces.
    #[serde(default)]
    pub whole_words: bool,
}

fn yes() -> bool {
    true
}

impl ContainsSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        for (field, terms) in [("all", &self.all), ("any", &self.any), ("none", &self.none)] {
            check_terms(field, terms)?;
        }
        if self.all.is_empty() && self.any.is_empty() && self.none.is_empty() && !self.expected {
            return Err(BuildError::invalid(
                "rule",
                "`contains` has nothing to look for: expected terms in `all`, `any` or `none`, or `expected = true`",
            ));
        }
        if self.any_line && !self.expected {
            return Err(BuildError::invalid(
                "any_line",
                "is about `expected`: set `expected = true`",
            ));
        }
        let search = Search { ignore_case: self.ignore_case, whole_words: self.whole_words };
        let terms = |list: &[String]| list.iter().map(|term| search.term(term)).collect();
        Ok(Box::new(Contains {
            of: self.of,
            all: terms(&self.all),
            any: terms(&self.any),
            none: terms(&self.none),
            expected: self.expected,
            any_line: self.any_line,
            search,
        }))
    }
}

/// How terms are compared with text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    pub(super) ignore_case: bool,
    pub(super) whole_words: bool,
}

/// A term as written and as searched for.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) written: String,
    folded: String,
}

impl Search {
    pub(super) fn term(self, written: &str) -> Term {
        Term { written: written.to_owned(), folded: self.fold(written) }
    }

    /// Width and white space never matter to a reader of terms; letter case may.
    pub(super) fn fold(self, text: &str) -> String {
        if self.ignore_case {
            return text::normalise(text);
        }
        text::width_folded(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Whether a term occurs in a text that [`Search::fold`] has folded.
    pub(super) fn finds(self, folded: &str, term: &Term) -> bool {
        if term.folded.is_empty() {
            return false;
        }
        if !self.whole_words {
            return folded.contains(&term.folded);
        }
        folded.match_indices(&term.folded).any(|(start, found)| {
            let end = start + found.len();
            let before = folded[..start].chars().next_back();
            let after = folded[end..].chars().next();
            !joined(before, found.chars().next()) && !joined(found.chars().next_back(), after)
        })
    }
}

/// Whether two neighbours belong to one word.
fn joined(left: Option<char>, right: Option<char>) -> bool {
    let part = |c: char| (c.is_alphanumeric() || c == '_') && !text::is_unspaced(c);
    left.is_some_and(part) && right.is_some_and(part)
}

#[derive(Debug)]
struct Contains {
    of: Of,
    all: Vec<Term>,
    any: Vec<Term>,
    none: Vec<Term>,
    expected: bool,
    any_line: bool,
    search: Search,
}

impl Contains {
    fn expected(&self, case: &Case, folded: &str) -> Result<Check, NotApplicable> {
        let expected = Of::Expected.text(case)?;
        let references: Vec<Term> = if self.any_line {
            expected.lines().map(|line| self.search.term(line)).collect()
        } else {
            vec![self.search.term(expected)]
        };
        if references.iter().all(|term| term.folded.is_empty()) {
            return Err(NotApplicable::new("the case's `expected` is empty"));
        }
        let found = references.iter().any(|term| self.search.finds(folded, term));
        let complaint = (!found).then(|| {
            format!(
                "does not contain the reference {}",
                quoted(references.iter().map(|term| term.written.as_str()))
            )
        });
        Ok(Check::plain("expected", complaint))
    }
}

impl Rule for Contains {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let folded = self.search.fold(self.of.text(case)?);
        let written = |terms: &[&Term]| quoted(terms.iter().map(|term| term.written.as_str()));
        let mut checks = Vec::new();
        if !self.all.is_empty() {
            let missing: Vec<&Term> =
                self.all.iter().filter(|term| !self.search.finds(&folded, term)).collect();
            let share = 1.0 - missing.len() as f64 / self.all.len() as f64;
            let complaint =
                (!missing.is_empty()).then(|| format!("does not contain {}", written(&missing)));
            checks.push(Check::graded("all", share, complaint));
        }
        if !self.any.is_empty() {
            let found = self.any.iter().any(|term| self.search.finds(&folded, term));
            let complaint = (!found).then(|| {
                format!(
                    "contains none of {}: expected one",
                    written(&self.any.iter().collect::<Vec<_>>())
                )
            });
            checks.push(Check::plain("any", complaint));
        }
        let mut forbidden = false;
        if !self.none.is_empty() {
            let found: Vec<&Term> =
                self.none.iter().filter(|term| self.search.finds(&folded, term)).collect();
            forbidden = !found.is_empty();
            let complaint = forbidden.then(|| format!("contains {}: remove it", written(&found)));
            checks.push(Check::plain("none", complaint));
        }
        if self.expected {
            checks.push(self.expected(case, &folded)?);
        }
        let finding = Finding::mean(checks);
        Ok(if forbidden { Finding { score: 0.0, ..finding } } else { finding })
    }
}
