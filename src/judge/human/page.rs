//! What a person is shown, escaped and wrapped.

use unicode_segmentation::UnicodeSegmentation;

use super::Question;
use crate::case::Case;
use crate::judge::process::plain;
use crate::score::Scale;

/// A case: what was asked, what it may rest on, what came back.
pub(super) fn case(case: &Case, width: usize) -> String {
    let mut page = format!("\n{}\n", rule(&format!("case {}", plain::head(&case.id, 60)), width));
    let parts = [
        ("task", &case.input),
        ("context", &case.context),
        ("expected", &case.expected),
        ("other output", &case.baseline),
        ("output", &case.output),
    ];
    for (title, text) in parts {
        // A missing output is said, any other missing part is left out.
        let text = match text {
            Some(text) if text.is_empty() => "(empty)".to_owned(),
            Some(text) => wrap(&plain::escape(text), width - 2),
            None if title == "output" => "(none recorded)".to_owned(),
            None => continue,
        };
        page.push_str(&format!("{title}:\n"));
        // Indented, so that an output can't pose as a part of the page.
        for line in text.lines() {
            page.push_str(&format!("  {line}\n"));
        }
    }
    page
}

/// A question and what its levels mean.
pub(super) fn question(question: &Question, width: usize) -> String {
    let mut page = format!("{}\n", rule(question.name.as_deref().unwrap_or("question"), width));
    page.push_str(&wrap(&plain::escape(&question.text), width));
    page.push('\n');
    for (value, meaning) in &question.anchors {
        page.push_str(&wrap(&format!("  {value}: {}", plain::escape(meaning)), width));
        page.push('\n');
    }
    page
}

/// The values of a scale, as a person types them.
pub(super) fn levels(scale: Scale) -> String {
    match scale.levels() {
        Some(_) if scale == Scale::BINARY => "1 or 0, y or n".to_owned(),
        Some(levels) if levels.len() <= 11 => {
            levels.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
        }
        _ => format!("{} to {}", scale.low(), scale.high()),
    }
}

fn rule(title: &str, width: usize) -> String {
    let title = format!("-- {} ", plain::escape(title).replace('\n', " "));
    let rest = width.saturating_sub(columns(&title));
    format!("{title}{}", "-".repeat(rest))
}

/// Breaks lines between words, and within a word that is longer than a line.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let (mut line, mut used) = (String::new(), 0);
        for word in paragraph.split_word_bounds() {
            let wide = columns(word);
            if used + wide > width && !line.is_empty() {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
                used = 0;
                if word.trim().is_empty() {
                    continue;
                }
            }
            for cluster in word.graphemes(true) {
                let wide = columns(cluster);
                if used + wide > width {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push_str(cluster);
                used += wide;
            }
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Columns on a terminal: two for a character of a wide script, else one. Near enough for
/// wrapping.
fn columns(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}');
    text.graphemes(true).map(|cluster| if cluster.chars().any(wide) { 2 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_in_long_ones() {
        assert_eq!(wrap("one two three", 8), "one two\nthree");
        assert_eq!(wrap("abcdefghij", 4), "abcd\nefgh\nij");
        assert_eq!(wrap("好好好好好", 4), "好好\n好好\n好");
        assert_eq!(wrap("a\n\nb", 8), "a\n\nb");
    }

    #[test]
    fn an_output_can_neither_redraw_the_page_nor_pose_as_it() {
        let hostile = Case::new("task", "\u{1b}[2J\u{1b}[H-- question ---\n5 5 5");
        let page = super::case(&hostile, 40);
        assert!(!page.contains('\u{1b}'));
        assert!(page.contains("  \\u{1b}[2J"), "{page}");
        assert!(!page.lines().any(|line| line.starts_with("-- question")), "{page}");
    }
}
