//! `secrets`: whether keys or passwords occur. Feedback never holds one: it names the kind,
//! the line and a start that every key of the kind shares.

use ::regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::finding::{Finding, NotApplicable, Of, Rule, check_terms};
use crate::case::Case;
use crate::text;

/// Options of `secrets`.
///
/// Score: 1 when nothing is found, else 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretsSpec {
    /// The text that is searched.
    #[serde(default)]
    pub of: Of,
    /// Values that are let pass, such as a key from public documentation. Don't write live
    /// ones here.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Least entropy of a value assigned to a name like `password` or `api_key`, in bits a
    /// character; 3.0 by default.
    #[serde(default)]
    pub entropy: Option<f64>,
}

/// Kind, the start shown in feedback, and the pattern. The value is the first group, or the
/// whole match.
const KEYS: &[(&str, &str, &str)] = &[
    ("a private key", "-----BEGIN", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    ("an AWS access key", "AKIA/ASIA", r"\b((?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16})\b"),
    ("an Anthropic key", "sk-ant-", r"\b(sk-ant-[A-Za-z0-9_-]{20,200})"),
    ("an OpenRouter key", "sk-or-", r"\b(sk-or-(?:v1-)?[A-Za-z0-9]{20,100})"),
    ("an OpenAI key", "sk-", r"\b(sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,200})"),
    ("a GitHub token", "gh", r"\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
    ("a GitLab token", "glpat-", r"\b(glpat-[A-Za-z0-9_-]{20,64})"),
    ("a Slack token", "xox", r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,250})"),
    (
        "a Slack web hook",
        "https://hooks.slack.com/",
        r"https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,100}",
    ),
    ("a Stripe key", "sk_/rk_", r"\b((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,200})"),
    ("a Google key", "AIza", r"\b(AIza[0-9A-Za-z_-]{35})"),
    ("a Google token", "ya29.", r"\b(ya29\.[0-9A-Za-z_-]{20,500})"),
    ("a Hugging Face token", "hf_", r"\b(hf_[A-Za-z0-9]{30,64})\b"),
    ("a Groq key", "gsk_", r"\b(gsk_[A-Za-z0-9]{40,64})\b"),
    ("an npm token", "npm_", r"\b(npm_[A-Za-z0-9]{36})\b"),
    ("a PyPI token", "pypi-", r"\b(pypi-[A-Za-z0-9_-]{50,300})"),
    ("a SendGrid key", "SG.", r"\b(SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64})"),
    ("a DigitalOcean token", "do", r"\b(do[opr]_v1_[a-f0-9]{64})\b"),
    ("a Telegram bot token", "digits:AA", r"\b(\d{8,10}:AA[A-Za-z0-9_-]{32,34})\b"),
    (
        "a JSON Web Token",
        "eyJ",
        r"\b(eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000})",
    ),
    (
        "a password in a URL",
        "scheme://user:",
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,64}:([^\s:/@]{3,128})@[A-Za-z0-9.-]+",
    ),
];

/// A name that promises a secret, and what is assigned to it.
const ASSIGNMENT: &str = r#"(?i)\b([a-z0-9_.-]{0,40}(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|credentials?)[a-z0-9_]{0,20})["']?\s{0,4}(?:=>|:=|=|:)\s{0,4}(?:"([^"\n]{8,200})"|'([^'\n]{8,200})'|([A-Za-z0-9_+/=.~!@#$%^&*-]{12,200}))"#;

impl SecretsSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        check_terms("allow", &self.allow)?;
        let entropy = self.entropy.unwrap_or(3.0);
        if !(0.0..=8.0).contains(&entropy) {
            return Err(BuildError::invalid("entropy", format!("is {entropy}: expected 0 to 8")));
        }
        let compile = |pattern: &str| {
            Regex::new(pattern)
                .map_err(|error| BuildError::invalid("rule", format!("built-in pattern: {error}")))
        };
        let mut keys = Vec::new();
        for (what, start, pattern) in KEYS {
            keys.push((*what, *start, compile(pattern)?));
        }
        Ok(Box::new(Secrets {
            of: self.of,
            keys,
            assignment: compile(ASSIGNMENT)?,
            allow: self.allow.clone(),
            entropy,
        }))
    }
}

#[derive(Debug)]
struct Secrets {
    of: Of,
    keys: Vec<(&'static str, &'static str, Regex)>,
    assignment: Regex,
    allow: Vec<String>,
    entropy: f64,
}

impl Rule for Secrets {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let visible = text::strip_format(self.of.text(case)?);
        let mut taken = std::collections::BTreeMap::new();
        let mut feedback = Vec::new();
        let mut total = 0_u64;
        let free = |taken: &std::collections::BTreeMap<usize, usize>, start: usize, end: usize| {
            taken.range(..end).next_back().is_none_or(|(_, last)| *last <= start)
        };
        for (what, start, pattern) in &self.keys {
            let (mut count, mut first) = (0_u64, 0);
            for captures in pattern.captures_iter(&visible) {
                let Some(value) = captures.get(1).or_else(|| captures.get(0)) else { continue };
                if self.passes(value.as_str()) || !free(&taken, value.start(), value.end()) {
                    continue;
                }
                taken.insert(value.start(), value.end());
                if count == 0 {
                    first = value.start();
                }
                count += 1;
            }
            if count > 0 {
                total += count;
                feedback.push(said(
                    what,
                    &format!("`{start}...`"),
                    line_number(&visible, first),
                    count,
                ));
            }
        }
        let (mut count, mut first) = (0_u64, None);
        for captures in self.assignment.captures_iter(&visible) {
            let value = captures.iter().skip(2).flatten().next();
            let (Some(name), Some(value)) = (captures.get(1), value) else { continue };
            if !free(&taken, value.start(), value.end()) || !self.is_secret(value.as_str()) {
                continue;
            }
            count += 1;
            first.get_or_insert((name.as_str(), name.start()));
        }
        if let Some((name, start)) = first {
            total += count;
            let name = format!("`{}`", text::excerpt(name, 60));
            feedback.push(said("a value assigned to", &name, line_number(&visible, start), count));
        }
        Ok(Finding::new(if total == 0 { 1.0 } else { 0.0 }).say(feedback).raw(total))
    }
}

impl Secrets {
    fn passes(&self, value: &str) -> bool {
        self.allow.iter().any(|allowed| allowed == value) || is_placeholder(value)
    }

    /// Whether an assigned value looks like a real one: dense, and no reference to where the
    /// real one is kept.
    fn is_secret(&self, value: &str) -> bool {
        let reference = value.starts_with(['$', '<', '{', '%', '['])
            || value.contains("os.environ")
            || value.contains("getenv")
            || value.contains("process.env")
            || value.contains("env.")
            || value.contains(' ');
        let varied = value.chars().any(|c| c.is_ascii_digit())
            && value.chars().any(|c| c.is_ascii_alphabetic());
        !reference && varied && !self.passes(value) && entropy(value) >= self.entropy
    }
}

/// `a private key` (`-----BEGIN...`) at line 3 and 2 more.
fn said(what: &str, which: &str, line: usize, count: u64) -> String {
    let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    format!("has {what} {which} at line {line}{more}: remove it and revoke the key")
}

/// Values that stand for a secret in documentation.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    let marks = [
        "example",
        "your",
        "xxxx",
        "placeholder",
        "changeme",
        "redacted",
        "dummy",
        "****",
        "...",
        "1234567890abcdef",
        "insert",
        "replace",
    ];
    marks.iter().any(|mark| lower.contains(mark))
}

/// Shannon entropy of the characters of a text, in bits a character; 0 for an empty one.
fn entropy(value: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for c in value.chars() {
        *counts.entry(c).or_insert(0_u32) += 1;
    }
    let total = f64::from(counts.values().sum::<u32>());
    // An ordered map, so that the sum is the same to the last bit in every run.
    counts.values().map(|count| f64::from(*count) / total).map(|share| -share * share.log2()).sum()
}

/// The line of a place in a text, from 1.
fn line_number(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}
