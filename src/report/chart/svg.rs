//! The drawing itself: shapes, texts that fit, and the escaping.

use std::fmt::Write as _;

/// A text in which nothing is HTML.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::report::words::plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// An estimate of a text's width at a font size, on the wide side.
#[must_use]
pub fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 'I' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '|' | '\'' | ' '
        | '(' | ')' | '[' | ']' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
        'A'..='Z' => 0.72,
        c if c.is_ascii() => 0.59,
        // Beyond Latin, Greek and Cyrillic a character may take a full square.
        '\u{80}'..='\u{52f}' => 0.68,
        '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{22ff}' => 0.9,
        _ => 1.05,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The text, or its two ends around an ellipsis where it is too wide: names of models differ
/// at their ends.
#[must_use]
pub fn fitted(text: &str, size: f64, room: f64) -> String {
    let text = crate::report::words::plain(text);
    if width(&text, size) <= room {
        return text;
    }
    let chars: Vec<char> = text.chars().collect();
    for kept in (0..chars.len()).rev() {
        let head = kept.div_ceil(2);
        let tail = kept - head;
        let cut: String =
            chars[..head].iter().chain(['…'].iter()).chain(&chars[chars.len() - tail..]).collect();
        if width(&cut, size) <= room {
            return cut;
        }
    }
    String::new()
}

/// How a text stands to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Begins there.
    Start,
    /// Around it.
    Middle,
    /// Ends there.
    End,
}

/// The size of texts in pictures, in their units.
pub const TEXT: f64 = 11.0;

/// A drawing in the making.
#[derive(Clone, Debug)]
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
    label: String,
}

impl Svg {
    /// An empty drawing; `label` says what it shows to those who can't see it.
    #[must_use]
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self { body: String::new(), width, height, label: label.to_owned() }
    }

    /// Its width in its own units.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.width
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let Some(data) = data(points) else { return };
        let _ = writeln!(self.body, r#"<path class="{class}" d="{data}"/>"#);
    }

    /// A filled shape.
    pub fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        let Some(data) = data(points) else { return };
        let _ = writeln!(self.body, r#"<path class="{class}" d="{data}Z"/>"#);
    }

    /// A rectangle, with what it says when pointed at.
    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), says: &str) {
        self.shaded(class, at, size, 1.0, says);
    }

    /// A rectangle of some opacity in \[0,1\].
    pub fn shaded(
        &mut self,
        class: &str,
        at: (f64, f64),
        size: (f64, f64),
        opacity: f64,
        says: &str,
    ) {
        let shade =
            if opacity < 1.0 { format!(r#" fill-opacity="{opacity:.2}""#) } else { String::new() };
        let ((x, y), (w, h)) = (at, size);
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}"{shade}>{}</rect>"#,
            title(says)
        );
    }

    /// A dot, with what it says when pointed at.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, says: &str) {
        let (x, y) = at;
        let _ = writeln!(
            self.body,
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}">{}</circle>"#,
            title(says)
        );
    }

    /// A text of the usual size.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.sized(class, at, anchor, TEXT, text);
    }

    /// A text of another size.
    pub fn sized(&mut self, class: &str, at: (f64, f64), anchor: Anchor, size: f64, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y) = at;
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" font-size="{size}"{anchor}>{}</text>"#,
            escaped(text)
        );
    }

    /// A name, cut to its room, whole in its title.
    pub fn name(&mut self, class: &str, at: (f64, f64), room: f64, text: &str) {
        let (x, y) = at;
        // Bold is wider.
        let room = if class == "strong" { room / 1.14 } else { room };
        let shown = fitted(text, TEXT, room);
        let whole = if shown == text { String::new() } else { title(text) };
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" font-size="{TEXT}">{}{whole}</text>"#,
            escaped(&shown)
        );
    }

    /// The whole of it.
    #[must_use]
    pub fn finish(self) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {} {:.0}\" role=\"img\" aria-label=\"{}\">\n{}</svg>",
            self.width,
            self.height,
            escaped(&self.label),
            self.body
        )
    }
}

fn title(says: &str) -> String {
    if says.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(says)) }
}

/// `None` for nothing to draw.
fn data(points: &[(f64, f64)]) -> Option<String> {
    let (first, rest) = points.split_first()?;
    let mut data = format!("M{:.1} {:.1}", first.0, first.1);
    for (x, y) in rest {
        let _ = write!(data, "L{x:.1} {y:.1}");
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text_also_in_titles() {
        let mut svg = Svg::new(10.0, 10.0, "a \"b\"");
        svg.name("x", (0.0, 0.0), 30.0, "</title><script>alert(1)</script>");
        svg.dot("x", (0.0, 0.0), 1.0, "<b>&");
        let text = svg.finish();
        assert!(!text.contains("<script") && !text.contains("<b>"), "{text}");
        assert!(text.contains("&lt;script&gt;") && text.contains("a &quot;b&quot;"));
    }

    #[test]
    fn long_and_chinese_names_are_cut_to_their_room_at_both_ends_legible() {
        let name = "meta-llama/Llama-3.3-70B-Instruct-Turbo-judge-strict";
        let cut = fitted(name, TEXT, 120.0);
        assert!(cut.starts_with("meta") && cut.ends_with("strict") && cut.contains('…'), "{cut}");
        assert!(width(&cut, TEXT) <= 120.0);
        let cut = fitted("严格的中文评审模型第一号加强版", TEXT, 80.0);
        assert!(cut.starts_with('严') && cut.ends_with('版'), "{cut}");
        assert!(width(&cut, TEXT) <= 80.0);
        assert_eq!(fitted("短", TEXT, 80.0), "短");
        assert_eq!(fitted("abc", TEXT, 0.0), "");
    }
}
