//! Fenced blocks of Markdown: where answers hide their code and JSON.

/// A fenced block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// The first word after the opening fence; empty where there is none.
    pub(super) language: &'a str,
    /// The lines between the fences.
    pub(super) body: &'a str,
    /// The line of the text on which the body starts, from 1.
    pub(super) line: usize,
    /// Whether a closing fence was found.
    pub(super) closed: bool,
}

/// The fenced blocks of a text, in order, after CommonMark: three or more back-quotes or
/// tildes, closed by at least as many; an unclosed one runs to the end.
pub(super) fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    // Of the open block: its mark, the mark's length, language, start of body, line.
    let mut open: Option<(char, usize, &str, usize, usize)> = None;
    let mut position = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = position;
        position += line.len();
        let trimmed = line.trim();
        let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = mark.map_or(0, |m| trimmed.chars().take_while(|c| *c == m).count());
        match open {
            None if length >= 3 => {
                // Marks are one byte each.
                let info = trimmed[length..].trim();
                if mark == Some('`') && info.contains('`') {
                    continue;
                }
                let language = info.split([' ', ',', '{']).next().unwrap_or_default();
                open = mark.map(|m| (m, length, language, position, number + 2));
            }
            Some((m, least, language, body, line))
                if mark == Some(m) && length >= least && trimmed.len() == length =>
            {
                found.push(Fence { language, body: &text[body..start], line, closed: true });
                open = None;
            }
            _ => {}
        }
    }
    if let Some((_, _, language, body, line)) = open {
        found.push(Fence { language, body: &text[body..], line, closed: false });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_language_and_line() {
        let text = "Here:\n```json\n{}\n```\n~~~\n```\n~~~~\nrest";
        let found = fences(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].language, found[0].body, found[0].line), ("json", "{}\n", 3));
        assert_eq!((found[1].language, found[1].body), ("", "```\n"));
        assert!(found.iter().all(|fence| fence.closed));
    }

    #[test]
    fn an_unclosed_block_runs_to_the_end_and_says_so() {
        let found = fences("```py\nx = 1");
        assert_eq!((found[0].body, found[0].closed), ("x = 1", false));
        assert!(fences("`` ` ``").is_empty());
        assert!(fences("```inline``` code").is_empty());
        assert_eq!(fences("```")[0].body, "");
    }
}
