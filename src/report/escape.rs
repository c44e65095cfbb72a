//! Text that may be hostile, made harmless for the format that it goes into.
//!
//! HTML is escaped by its templates; here are the two that have no templates.

/// A text as Markdown code within one line, also inside a table: nothing in it is a link, a
/// mention, an image, HTML or the end of a cell. Empty for an empty text.
#[must_use]
pub fn markdown_code(text: &str) -> String {
    let text = super::words::plain(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if text.is_empty() {
        return text;
    }
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    // A backslash right before a bar would undo the bar's own escape.
    let text = text.replace("\\|", "\\ |").replace('|', "\\|");
    let pad = if text.starts_with('`') || text.ends_with(['`', '\\']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A text without the characters that XML 1.0 can't hold, not even escaped; they become
/// U+FFFD.
#[must_use]
pub fn xml_characters(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => c,
            '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pulldown_cmark::{Event, Options, Parser};

    use super::*;

    /// The text of a table's only cell beside an innocent one, as a reader of Markdown sees it.
    fn seen(text: &str) -> String {
        let table = format!("| a | b |\n| --- | --- |\n| {} | x |\n", markdown_code(text));
        let mut cells = Vec::new();
        for event in Parser::new_ext(&table, Options::ENABLE_TABLES | Options::ENABLE_GFM) {
            match event {
                Event::Code(code) => cells.push(code.to_string()),
                Event::Html(html) | Event::InlineHtml(html) => panic!("HTML: {html}"),
                Event::Start(
                    pulldown_cmark::Tag::Link { .. } | pulldown_cmark::Tag::Image { .. },
                ) => {
                    panic!("a link in {table}")
                }
                _ => {}
            }
        }
        assert_eq!(cells.len(), 1, "{table}");
        assert!(table.lines().count() == 3, "{table}");
        cells.remove(0)
    }

    #[test]
    fn hostile_text_stays_text_in_a_markdown_table() {
        for text in [
            "<script>alert(1)</script>",
            "[click](javascript:alert(1)) ![x](http://evil)",
            "a | b | c",
            "``` `` `",
            "@everyone https://evil.example",
            "一|二",
        ] {
            assert_eq!(seen(text), text);
        }
        assert_eq!(seen("two\nlines\r\n| x |"), "two lines | x |");
        assert_eq!(seen("back\\|slash"), "back\\ |slash");
        assert_eq!(seen("end\\"), "end\\");
        assert_eq!(markdown_code(" \n"), "");
    }

    #[test]
    fn what_xml_can_t_hold_is_replaced() {
        assert_eq!(xml_characters("a\u{0}\u{1b}b\n\u{ffff}好"), "a\u{fffd}\u{fffd}b\n\u{fffd}好");
    }
}
