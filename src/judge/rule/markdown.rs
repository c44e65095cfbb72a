//! `markdown`: whether the text has a given structure, read by a CommonMark parser.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::BuildError;
use super::fence::fences;
use super::finding::{Between, Check, Finding, NotApplicable, Of, Rule, check_terms};
use crate::case::Case;
use crate::text;

/// Options of `markdown`; at least one check.
///
/// Score: the share of the checks that hold; each required heading is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkdownSpec {
    /// The text that is read.
    #[serde(default)]
    pub of: Of,
    /// Headings that must be there, at any level; letter case and closing punctuation do not
    /// matter.
    #[serde(default)]
    pub headings: Vec<String>,
    /// Whether the required headings must come in the order given.
    #[serde(default)]
    pub in_order: bool,
    /// The deepest heading level allowed, 1 to 6.
    #[serde(default)]
    pub max_heading_level: Option<u8>,
    /// Whether no level may be skipped on the way down (`#` then `###`).
    #[serde(default)]
    pub no_skipped_levels: bool,
    /// Whether there must be (`true`) or must not be (`false`) a table.
    #[serde(default)]
    pub table: Option<bool>,
    /// The same for a list.
    #[serde(default)]
    pub list: Option<bool>,
    /// How many list items, nested ones included.
    #[serde(default)]
    pub items: Option<Between>,
    /// The same as `table` for a block of code.
    #[serde(default)]
    pub code: Option<bool>,
    /// The same for a link.
    #[serde(default)]
    pub link: Option<bool>,
    /// Whether raw HTML is forbidden.
    #[serde(default)]
    pub no_html: bool,
    /// Whether every fenced block must be closed.
    #[serde(default)]
    pub closed_fences: bool,
}

impl MarkdownSpec {
    pub(super) fn compile(&self) -> Result<Box<dyn Rule>, BuildError> {
        check_terms("headings", &self.headings)?;
        if let Some(level) = self.max_heading_level
            && !(1..=6).contains(&level)
        {
            return Err(BuildError::invalid(
                "max_heading_level",
                format!("is {level}: expected 1 to 6"),
            ));
        }
        if let Some(items) = self.items {
            items.check("items")?;
        }
        if self.in_order && self.headings.len() < 2 {
            return Err(BuildError::invalid("in_order", "needs two `headings` or more"));
        }
        let presence = [self.table, self.list, self.code, self.link];
        let nothing = self.headings.is_empty()
            && self.max_heading_level.is_none()
            && self.items.is_none()
            && presence.iter().all(Option::is_none)
            && !(self.no_skipped_levels || self.no_html || self.closed_fences);
        if nothing {
            return Err(BuildError::invalid(
                "rule",
                "`markdown` has nothing to check: expected an option such as `headings` or `table = true`",
            ));
        }
        Ok(Box::new(Markdown { spec: self.clone() }))
    }
}

/// What a Markdown text is made of.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Level and text of each heading.
    pub(super) headings: Vec<(u8, String)>,
    pub(super) table: bool,
    /// List items, nested ones included.
    pub(super) items: usize,
    pub(super) numbered_list: bool,
    pub(super) code: bool,
    pub(super) link: bool,
    pub(super) html: Option<String>,
}

/// Reads the structure of a text; any text is Markdown, so this can't fail.
pub(super) fn outline(text: &str) -> Outline {
    let mut outline = Outline::default();
    let mut heading: Option<(u8, String)> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                heading = Some((level as u8, String::new()))
            }
            Event::End(TagEnd::Heading(_)) => outline.headings.extend(heading.take()),
            Event::Text(piece) | Event::Code(piece) => {
                if let Some((_, words)) = &mut heading {
                    words.push_str(&piece);
                }
            }
            Event::Start(Tag::Table(_)) => outline.table = true,
            Event::Start(Tag::Item) => outline.items += 1,
            Event::Start(Tag::List(Some(_))) => outline.numbered_list = true,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                outline.code = true;
            }
            Event::Start(Tag::Link { .. }) => outline.link = true,
            Event::Html(tag) | Event::InlineHtml(tag) if outline.html.is_none() => {
                outline.html = Some(tag.into_string());
            }
            _ => {}
        }
    }
    outline
}

#[derive(Debug)]
struct Markdown {
    spec: MarkdownSpec,
}

impl Rule for Markdown {
    fn measure(&self, case: &Case) -> Result<Finding, NotApplicable> {
        let written = self.spec.of.text(case)?;
        let outline = outline(written);
        let mut checks = self.heading_checks(&outline);
        for (name, wanted, found) in [
            ("table", self.spec.table, outline.table),
            ("list", self.spec.list, outline.items > 0),
            ("code", self.spec.code, outline.code),
            ("link", self.spec.link, outline.link),
        ] {
            let Some(wanted) = wanted else { continue };
            let thing = if name == "code" { "block of code" } else { name };
            let complaint = match (wanted, found) {
                (true, false) => Some(format!("has no {thing}: add one")),
                (false, true) => Some(format!("has a {thing}: remove it")),
                _ => None,
            };
            checks.push(Check::plain(name, complaint));
        }
        if let Some(range) = self.spec.items {
            let count = outline.items as u64;
            let complaint = range.complaint(count, "list item", "list items");
            checks.push(Check::plain("items", complaint).raw(count));
        }
        if self.spec.no_html {
            let complaint = outline
                .html
                .as_ref()
                .map(|tag| format!("has raw HTML (`{}`): remove it", text::excerpt(tag, 40)));
            checks.push(Check::plain("no_html", complaint));
        }
        if self.spec.closed_fences {
            let complaint = fences(written).iter().find(|fence| !fence.closed).map(|fence| {
                format!("the fenced block at line {} is not closed: close it", fence.line - 1)
            });
            checks.push(Check::plain("closed_fences", complaint));
        }
        Ok(Finding::mean(checks))
    }
}

impl Markdown {
    fn heading_checks(&self, outline: &Outline) -> Vec<Check> {
        let plain = |heading: &str| {
            text::normalise(heading).trim_end_matches([':', '.', '：', '。']).trim().to_owned()
        };
        let found: Vec<String> = outline.headings.iter().map(|(_, words)| plain(words)).collect();
        let mut checks = Vec::new();
        for wanted in &self.spec.headings {
            let missing = !found.contains(&plain(wanted));
            let complaint = missing.then(|| format!("has no heading `{wanted}`: add it"));
            checks.push(Check::plain(format!("heading `{wanted}`"), complaint));
        }
        if self.spec.in_order {
            let mut rest = found.iter();
            let late = self.spec.headings.iter().find(|wanted| {
                let wanted = plain(wanted);
                // A missing heading is complained about above.
                found.contains(&wanted) && !rest.any(|heading| *heading == wanted)
            });
            let complaint = late.map(|wanted| {
                let order = self.spec.headings.join("`, `");
                format!("the heading `{wanted}` is out of order: expected `{order}`")
            });
            checks.push(Check::plain("in_order", complaint));
        }
        if let Some(most) = self.spec.max_heading_level {
            let deep = outline.headings.iter().find(|(level, _)| *level > most);
            let complaint = deep.map(|(level, words)| {
                format!(
                    "the heading `{}` is of level {level}: expected at most {most}",
                    text::excerpt(words, 60)
                )
            });
            checks.push(Check::plain("max_heading_level", complaint));
        }
        if self.spec.no_skipped_levels {
            let skipped = outline.headings.windows(2).find(|pair| pair[1].0 > pair[0].0 + 1);
            let complaint = skipped.map(|pair| {
                format!(
                    "the heading `{}` of level {} follows one of level {}: use level {}",
                    text::excerpt(&pair[1].1, 60),
                    pair[1].0,
                    pair[0].0,
                    pair[0].0 + 1
                )
            });
            checks.push(Check::plain("no_skipped_levels", complaint));
        }
        checks
    }
}
