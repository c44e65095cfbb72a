//! Taking a reply apart: prose, reasoning, fenced blocks, JSON objects, broken JSON.
//!
//! The scan only says what stands where. It never looks at what an object means, and keeps
//! what is broken as broken: the inner objects of a broken one are not found.

use std::sync::LazyLock;

use regex::Regex;

use super::json::Node;

/// A part of the reply that is not reasoning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Words.
    Prose(String),
    /// A fenced block in a language that is not JSON: something shown, not said.
    Code,
    /// A valid JSON object.
    Object {
        node: Node,
        /// In a fenced block marked as JSON or not marked.
        fenced: bool,
        /// Nothing else stands on its lines.
        own_lines: bool,
        /// Nothing stands before it on its line but marks, or words such as `My verdict:`.
        led: bool,
        /// Right after a quotation mark or backtick, or on a line that is a quotation.
        quoted: bool,
    },
    /// Something that starts as a JSON object or list and is not a usable one.
    Broken,
}

/// A reply taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scan {
    /// What follows the reasoning, in order.
    pub(super) pieces: Vec<Piece>,
    /// The object that opens the reply before a `</think>` that nothing opened. Reasoning does
    /// not open with a verdict, so this may be one.
    pub(super) opening: Option<Node>,
}

impl Scan {
    /// The words between and around the objects.
    pub(super) fn prose(&self) -> String {
        prose_of(&self.pieces)
    }
}

/// The words of some pieces. A block of code leaves a word behind that ends no statement.
pub(super) fn prose_of(pieces: &[Piece]) -> String {
    let parts = pieces.iter().filter_map(|piece| match piece {
        Piece::Prose(text) => Some(text.as_str()),
        Piece::Code => Some("(code)"),
        Piece::Object { .. } | Piece::Broken => None,
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// Words that lead to a verdict on the same line.
static LEAD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^(?:.*[.。!！?？])?\s{0,9}(?:so,?\s|thus,?\s|therefore,?\s|hence,?\s)?(?:here(?:'s|\s+is)\s+)?(?:my|the\s+final|final|overall)\s+(?:(?:final|overall|json)\s+)?(?:verdict|evaluation|assessment|judge?ment|answer|result|score|json|reply)(?:\s+is)?\s*[:：]?\s*$|^(?:.*[。！？，])?\s*(?:我的|最终|总体)(?:最终)?(?:评判|评价|评估|结论|结果|评分|答案)(?:是|为|如下)?\s*[:：]?\s*$",
    )
    .ok()
});

fn is_lead(text: &str) -> bool {
    is_blank(text) || LEAD.as_ref().is_some_and(|lead| text.len() < 400 && lead.is_match(text))
}

const BLANKS: [char; 3] = [' ', '\t', '\r'];

const REASONING_TAGS: [&str; 5] = ["think", "thinking", "thought", "reasoning", "reflection"];

/// Marks that stand around an answer without being words: answer tags, end-of-turn tokens,
/// emphasis, the bare word `json`.
static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)</?(?:answer|output|verdict|json|result|response|final)>|<\|[a-z0-9_]{1,24}\|>|</?s>|\bjson\b|[*\s]",
    )
    .ok()
});

/// Whether prose says nothing.
pub(super) fn is_blank(prose: &str) -> bool {
    // Most prose begins with a letter that no mark begins with.
    let start = prose.trim_start();
    if start.is_empty() || !start.starts_with(['<', '*', 'j', 'J']) {
        return start.is_empty();
    }
    match MARKS.as_ref() {
        Some(marks) => marks.replace_all(prose, "").is_empty(),
        None => prose.trim().is_empty(),
    }
}

/// Takes a reply apart.
pub(super) fn scan(text: &str) -> Scan {
    let mut scanner =
        Scanner { text, at: 0, prose_from: 0, line_from: 0, fenced: None, scan: Scan::default() };
    scanner.run();
    scanner.scan
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    prose_from: usize,
    /// Where the current line starts.
    line_from: usize,
    /// The fence that the open JSON block must be closed with.
    fenced: Option<&'static str>,
    scan: Scan,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(c) = self.text[self.at..].chars().next() {
            let moved = match c {
                '`' | '~' => self.fence(),
                '<' => self.reasoning(),
                '{' | '[' => self.json(c),
                _ => false,
            };
            if !moved {
                self.at += c.len_utf8();
                if c == '\n' {
                    self.line_from = self.at;
                }
            }
        }
        self.flush(self.text.len());
    }

    /// Ends the prose that runs up to `end`.
    fn flush(&mut self, end: usize) {
        let prose = &self.text[self.prose_from.min(end)..end];
        if !prose.trim().is_empty() {
            self.scan.pieces.push(Piece::Prose(prose.to_owned()));
        }
    }

    fn jump(&mut self, to: usize) -> bool {
        if let Some(i) = self.text[self.at..to].rfind('\n') {
            self.line_from = self.at + i + 1;
        }
        self.at = to;
        self.prose_from = to;
        true
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].find('\n').map_or(self.text.len(), |i| from + i + 1)
    }

    /// Whether only blanks stand before this place on its line.
    fn starts_line(&self) -> bool {
        self.text[self.line_from..self.at].trim_start_matches(BLANKS).is_empty()
    }

    /// Whether only blanks stand after `end` on its line.
    fn ends_line(&self, end: usize) -> bool {
        let after = self.text[end..].trim_start_matches(BLANKS);
        after.is_empty() || after.starts_with('\n')
    }

    fn fence(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(fence) = ["```", "~~~"].into_iter().find(|f| rest.starts_with(f)) else {
            return false;
        };
        if let Some(open) = self.fenced {
            // A closing fence may stand right after the object, on its line.
            if open != fence {
                return false;
            }
            self.flush(self.at);
            self.fenced = None;
            let after = self.at + rest.len() - rest.trim_start_matches(&fence[..1]).len();
            return self.jump(after);
        }
        if !self.starts_line() {
            return false;
        }
        self.flush(self.at);
        let marks = rest.len() - rest.trim_start_matches(&fence[..1]).len();
        let line_end = self.line_end(self.at);
        let line = &self.text[self.at + marks..line_end];
        // "```{...}```" on one line has no language.
        let language = line.split(['{', '[']).next().unwrap_or_default().trim();
        let known = ["", "json", "text", "txt", "plaintext", "output"];
        if known.iter().any(|k| language.eq_ignore_ascii_case(k)) {
            self.fenced = Some(fence);
            let content = self.at + marks + line.find(['{', '[']).unwrap_or(line.len());
            return self.jump(content);
        }
        // Code in another language is something shown, not an answer.
        let close = self.text[line_end..].find(fence).map(|i| line_end + i);
        let end = close.map_or(self.text.len(), |i| i + fence.len());
        self.scan.pieces.push(Piece::Code);
        self.jump(end)
    }

    fn reasoning(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some((tag, closing, length)) = tag_at(rest) else { return false };
        if closing {
            // The opening tag was part of the prompt: all before it was reasoning.
            self.flush(self.at);
            let pieces = std::mem::take(&mut self.scan.pieces);
            self.fenced = None;
            if self.scan.opening.is_none()
                && let Some(Piece::Object { node, .. }) =
                    pieces.into_iter().find(|p| !matches!(p, Piece::Prose(t) if is_blank(t)))
            {
                self.scan.opening = Some(node);
            }
            return self.jump(self.at + length);
        }
        self.flush(self.at);
        let mut from = self.at + length;
        while let Some(i) = self.text[from..].find('<') {
            from += i;
            if let Some((other, true, length)) = tag_at(&self.text[from..])
                && other == tag
            {
                return self.jump(from + length);
            }
            from += 1;
        }
        // Reasoning that never ends: nothing was said.
        self.jump(self.text.len())
    }

    fn json(&mut self, open: char) -> bool {
        let inner = self.text[self.at + 1..].trim_start();
        let starts = match open {
            '{' => inner.starts_with(['"', '}']),
            _ => inner.starts_with('{'),
        };
        if !starts {
            // Braces that JSON can't start with: a set, a formula, single quotes, a comment.
            if open == '{' && inner.starts_with(['\'', '/', '“', '”']) {
                self.flush(self.at);
                self.scan.pieces.push(Piece::Broken);
                let end = self.at + extent(&self.text[self.at..]);
                return self.jump(end);
            }
            return false;
        }
        let quoted = self.text[..self.at]
            .ends_with(['"', '\'', '`', '\u{201c}', '\u{2018}', '\u{300c}', '\u{300e}'])
            && !(self.fenced.is_some() && self.text[..self.at].ends_with("```"));
        let starts_line = self.starts_line();
        let line = self.text[self.line_from..].trim_start_matches(BLANKS);
        let quoted = quoted || line.starts_with('>');
        let led = is_lead(&self.text[self.line_from.max(self.prose_from)..self.at]);
        self.flush(self.at);
        match Node::at_start(&self.text[self.at..]) {
            Some((node @ Node::Object(_), length)) => {
                let end = self.at + length;
                let own_lines = starts_line && self.ends_line(end);
                let fenced = self.fenced.is_some();
                self.scan.pieces.push(Piece::Object { node, fenced, own_lines, led, quoted });
                self.jump(end)
            }
            Some((_, length)) => {
                self.scan.pieces.push(Piece::Broken);
                self.jump(self.at + length)
            }
            None => {
                self.scan.pieces.push(Piece::Broken);
                let end = self.at + extent(&self.text[self.at..]);
                self.jump(end)
            }
        }
    }
}

/// The reasoning tag at the start: its name, whether it closes, its length.
fn tag_at(text: &str) -> Option<(&'static str, bool, usize)> {
    let inner = text.strip_prefix('<')?;
    let (closing, inner) = match inner.strip_prefix('/') {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    let end = inner.as_bytes().iter().take(16).position(|b| *b == b'>')?;
    let name = inner.get(..end)?;
    let tag = REASONING_TAGS.into_iter().find(|tag| tag.eq_ignore_ascii_case(name.trim()))?;
    Some((tag, closing, text.len() - inner.len() + end + 1))
}

/// How far broken JSON reaches: to the bracket that closes its first one, strings skipped;
/// to the end of the text when none does.
fn extent(text: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (i, b) in text.bytes().enumerate() {
        if in_string {
            match b {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match b {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}
