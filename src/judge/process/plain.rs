//! Text that is safe to show: programs and outputs under judgement may hold sequences that
//! move the cursor, recolour or retitle a terminal, or reorder what a reader sees.

/// The text without terminal control sequences: escape sequences go whole, other control and
/// direction-override characters go alone, line ends become `\n`, tabs stay.
pub(crate) fn strip(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => plain.push(c),
            // A progress bar redraws its line with bare carriage returns.
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    plain.push('\n');
                }
            }
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_csi(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            c if is_control(c) => {}
            c => plain.push(c),
        }
    }
    plain
}

/// The text with every control character shown as its code, such as `\u{1b}`, so that a
/// person sees that it is there; line ends and tabs stay.
pub(crate) fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_control(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// C0 and C1 controls, the characters that override writing direction, and the byte order
/// mark. Joiners stay: scripts and emoji need them.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{2028}' | '\u{2029}')
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// After ESC (ECMA-48, 5th edition, section 5.3): a control sequence, a string, or one to
/// three characters.
fn skip_escape(rest: &mut Rest<'_>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_csi(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        Some(' '..='/') => {
            while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            rest.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            rest.next();
        }
        _ => {}
    }
}

fn skip_csi(rest: &mut Rest<'_>) {
    while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    rest.next_if(|c| matches!(c, '@'..='~'));
}

/// Up to BEL or the string terminator, but never past the end of the line: an unterminated
/// string must not hide everything after it.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// The last `lines` lines that hold something, without control sequences, and of those at
/// most the last `chars` characters.
pub(crate) fn tail(text: &str, lines: usize, chars: usize) -> String {
    let plain = strip(text);
    let kept: Vec<&str> =
        plain.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let shown = kept[kept.len().saturating_sub(lines)..].join("\n");
    let over = shown.chars().count().saturating_sub(chars);
    if over == 0 { shown } else { format!("... {}", shown.chars().skip(over).collect::<String>()) }
}

/// The first `chars` characters on one line, without control sequences, for an error message.
pub(crate) fn head(text: &str, chars: usize) -> String {
    let plain = strip(text);
    let mut shown: String = plain.trim().chars().take(chars).collect();
    if plain.trim().chars().nth(chars).is_some() {
        shown.push_str("...");
    }
    shown.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_go_and_text_stays() {
        assert_eq!(strip("\u{1b}[31;1mred\u{1b}[0m 好 \u{1b}]0;title\u{7}after"), "red 好 after");
        assert_eq!(strip("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b"), "alinkb");
        assert_eq!(strip("10%\r20%\rdone\r\nnext"), "10%\n20%\ndone\nnext");
        assert_eq!(strip("\u{9b}2Jx\u{0}\u{8}\u{7f}y\u{202e}z"), "xyz");
        assert_eq!(strip("\u{1b}(Bplain\u{1b}"), "plain");
        assert_eq!(strip("\u{1b}]0;never ended\nnext line"), "\nnext line");
        assert_eq!(strip("👩\u{200d}🔬\tok"), "👩\u{200d}🔬\tok");
    }

    #[test]
    fn escaped_text_shows_what_was_hidden() {
        assert_eq!(escape("a\u{1b}[2Jb\u{202e}\tc\r\n"), "a\\u{1b}[2Jb\\u{202e}\tc\n");
    }

    #[test]
    fn a_tail_keeps_the_end_and_drops_blank_lines() {
        assert_eq!(tail("a\n\nb\n\u{1b}[1mc\u{1b}[0m\n\n", 2, 100), "b\nc");
        assert_eq!(tail("好好好好", 5, 2), "... 好好");
        assert_eq!(tail("", 5, 2), "");
        assert_eq!(head("  好\nb cdef", 4), "好\\nb ...");
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left(text in "\\PC*|[\\x00-\\x7f\\u{80}-\\u{9f}]*") {
            for shown in [strip(&text), escape(&text)] {
                let only_layout = shown.chars().all(|c| !c.is_control() || c == '\n' || c == '\t');
                proptest::prop_assert!(only_layout);
            }
        }
    }
}
