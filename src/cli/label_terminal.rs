//! `venire label --terminal`: cases on stdout, questions on stderr, labels from stdin, for where
//! there is no browser. What the judges said is not shown before a case has its label.

use std::io::{BufRead, Write as _};

use super::exit::Exit;
use super::printer::Printer;
use super::summary::{number, panel_score};
use crate::label::{Choice, Queue, QueueError};
use crate::report::words::{plain, plain_lines};

// What is typed to put a case off, and to stop.
const LATER: &str = "s";
const QUIT: &str = "q";

/// Asks until every case has its label, the person stops, or the input ends: then cases wait.
pub(super) fn ask(
    queue: &mut Queue,
    question: &str,
    anchors: &[(String, String)],
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let mut input = std::io::stdin().lock();
    let choices = queue.choices();
    let prompt = prompt(question, &choices, &queue.expected(), anchors);
    while let Some(case) = show(queue, printer) {
        loop {
            printer.say(&prompt);
            let _ = std::io::stderr().flush();
            let Some(line) = line(&mut input)? else { return Ok(Exit::Waiting) };
            // A label named like a key of ours is the label.
            match meant(&line, &choices) {
                "" => continue,
                LATER => queue.skip(&case)?,
                QUIT => return Ok(Exit::Waiting),
                given => match queue.label(&case, given) {
                    Ok(()) => told(queue, printer)?,
                    Err(error @ QueueError::NoLabel { .. }) => {
                        printer.say(&plain(&error.to_string()));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            }
            break;
        }
    }
    printer.say("all cases of this queue are labelled");
    Ok(Exit::Done)
}

/// Shows the case whose turn it is, and gives its id.
fn show(queue: &Queue, printer: &Printer) -> Option<String> {
    let (done, total) = queue.progress();
    let entry = queue.next()?;
    let mut text = format!("case {} of {total}: {}", done + 1, plain(&entry.case.id));
    for (name, own) in entry.texts() {
        text.push_str(&format!("\n\n{name}\n{}", plain_lines(&own).trim_end()));
    }
    printer.result(&format!("{text}\n"));
    Some(entry.case.id.clone())
}

/// The question with what can be answered.
fn prompt(
    question: &str,
    choices: &[Choice],
    expected: &str,
    anchors: &[(String, String)],
) -> String {
    let words = choices.iter().map(|choice| {
        let key = choice.key.as_ref().filter(|key| **key != choice.label);
        let key = key.map(|key| format!("{key} ")).unwrap_or_default();
        let meaning = anchors.iter().find(|(label, _)| *label == choice.label);
        let meaning = meaning.map(|(_, words)| format!(" ({words})")).unwrap_or_default();
        format!("{key}{}{meaning}", choice.label)
    });
    let words: Vec<String> = words.collect();
    let words = if words.is_empty() { expected.to_owned() } else { words.join(", ") };
    plain(&format!("{question}  {words}; {LATER} later, {QUIT} quit"))
}

/// The next line; `None` at the end of the input.
fn line(input: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if input.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// The label that is meant: itself, or the one whose key was typed.
fn meant<'a>(typed: &'a str, choices: &'a [Choice]) -> &'a str {
    if choices.iter().any(|choice| choice.label == typed) {
        return typed;
    }
    let keyed = choices.iter().find(|choice| choice.key.as_deref() == Some(typed));
    keyed.map_or(typed, |choice| choice.label.as_str())
}

/// What the judges said about the case that was labelled just now.
fn told(queue: &Queue, printer: &Printer) -> anyhow::Result<()> {
    let Some(said) = queue.said()? else { return Ok(()) };
    let ruling = &said.ruling;
    let votes = ruling.votes.iter().map(|vote| format!("{} {}", number(vote.score), vote.judge));
    let votes: Vec<String> = votes.collect();
    printer.say(&plain(&format!(
        "the judges: score {}, {}; {}",
        panel_score(ruling),
        ruling.decision,
        votes.join(", ")
    )));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_its_label_and_a_label_means_itself() {
        let choice =
            |label: &str, key: &str| Choice { label: label.to_owned(), key: Some(key.to_owned()) };
        let words = [choice("good", "1"), choice("2", "2"), choice("s", "3")];
        for (typed, label) in [
            ("good", "good"),
            ("1", "good"),
            ("2", "2"),
            ("3", "s"),
            ("s", "s"),
            ("fine", "fine"),
            ("", ""),
        ] {
            assert_eq!(meant(typed, &words), label, "{typed}");
        }
    }

    #[test]
    fn lines_are_read_whatever_bytes_they_hold() {
        let mut input: &[u8] = b"good\r\n\xff\xfe\nlast";
        assert_eq!(line(&mut input).unwrap().as_deref(), Some("good"));
        assert_eq!(line(&mut input).unwrap().as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(line(&mut input).unwrap().as_deref(), Some("last"));
        assert_eq!(line(&mut input).unwrap(), None);
    }
}
