//! Keys from `.env`: of the working folder and of no folder above it, which may be another
//! project's.
//!
//! A line that can't be read is skipped with a warning that names the file and the line and
//! never what stands there, since it may be a key.

use std::io::Read;
use std::path::Path;

use anyhow::Context as _;

use super::Global;

/// Larger is no `.env`.
const LARGEST: u64 = 1024 * 1024;

/// Reads `.env`, or the file named, without overriding what is set. Before any thread starts.
/// What there is to warn of is given back.
pub(super) fn read(global: &Global) -> anyhow::Result<Vec<String>> {
    if let Some(file) = &global.env_file {
        let text = text_of(file).with_context(|| {
            format!("failed to read `{}` (named by `--env-file`)", file.display())
        })?;
        return Ok(load(&text, file));
    }
    let file = Path::new(".env");
    match text_of(file) {
        Ok(text) => Ok(load(&text, file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        // Nobody asked for it, so it stops nobody.
        Err(error) => Ok(vec![format!("`.env` is not read: {error}")]),
    }
}

fn text_of(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(std::io::Error::other(format!("it is larger than {LARGEST} bytes")));
    }
    Ok(bytes)
}

/// Sets what the file says, and gives back what is wrong with the rest.
fn load(bytes: &[u8], file: &Path) -> Vec<String> {
    let (text, wrong) = readable(bytes);
    let mut warnings: Vec<String> = wrong
        .iter()
        .map(|line| {
            format!(
                "`{}`, line {line}: not `NAME=value`, so it is skipped (quote a value that holds \
                 spaces)",
                file.display()
            )
        })
        .collect();
    if dotenvy::from_read(text.as_bytes()).is_err() {
        warnings.push(format!("`{}` could not be read to its end", file.display()));
    }
    warnings
}

/// The text without the lines that can't be read, and their numbers.
fn readable(bytes: &[u8]) -> (String, Vec<usize>) {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut wrong = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for (i, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        match std::str::from_utf8(line) {
            Ok(line) if !line.contains('\0') => lines.push(line.trim_end_matches('\r')),
            _ => {
                wrong.push(i + 1);
                lines.push("");
            }
        }
    }
    // From one line after the last that was read, so that each line is looked at once or, in a
    // quotation that never ends, once more.
    let mut from = 0;
    while from < lines.len() {
        // An apostrophe in a comment opens no quotation.
        if lines[from].trim_start().starts_with('#') {
            lines[from] = "";
            from += 1;
            continue;
        }
        match entry(&lines[from..]) {
            Some(taken) => from += taken,
            None => {
                wrong.push(from + 1);
                lines[from] = "";
                from += 1;
            }
        }
    }
    wrong.sort_unstable();
    let mut text = lines.join("\n");
    text.push('\n');
    (text, wrong)
}

/// How many lines the entry takes that begins with the first of them; `None` where it is none.
fn entry(lines: &[&str]) -> Option<usize> {
    /// A quoted value, such as a key in PEM, has no more lines.
    const LONGEST: usize = 256;
    let mut text = String::new();
    for (i, line) in lines.iter().take(LONGEST).enumerate() {
        text.push_str(line);
        text.push('\n');
        // Whatever it refers to may stand in another entry, so only its form counts.
        if dotenvy::from_read_iter(text.as_bytes()).all(|entry| entry.is_ok()) {
            return Some(i + 1);
        }
        // Only an open quotation goes on in the next line.
        if i == 0 && !line.contains(['"', '\'', '\\']) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_of(text: &str) -> (Vec<(String, String)>, Vec<usize>) {
        let (text, wrong) = readable(text.as_bytes());
        let entries = dotenvy::from_read_iter(text.as_bytes()).map(Result::unwrap).collect();
        (entries, wrong)
    }

    fn named(entries: &[(String, String)]) -> Vec<&str> {
        entries.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn a_malformed_line_is_skipped_and_the_others_are_read() {
        let text = "A=1\n# don't\n\nsk-secret value\nexport B='two words'\nC=x y z\nD=4";
        let (entries, wrong) = read_of(text);
        assert_eq!((named(&entries), wrong), (vec!["A", "B", "D"], vec![4, 6]));
        assert_eq!(entries[1].1, "two words");
    }

    #[test]
    fn a_value_of_several_lines_is_one_entry_and_an_open_quotation_takes_no_other_line() {
        let (entries, wrong) = read_of("PEM=\"a\nb\nc\"\nZ=1\n");
        assert_eq!((named(&entries), wrong), (vec!["PEM", "Z"], vec![]));
        assert_eq!(entries[0].1, "a\nb\nc");
        let (entries, wrong) = read_of("A=1\nOPEN=\"sk-secret\nB=2\nC=3\n");
        assert_eq!((named(&entries), wrong), (vec!["A", "B", "C"], vec![2]));
    }

    #[test]
    fn bytes_that_are_no_text_a_mark_and_line_ends_of_windows_are_got_over() {
        let (text, wrong) = readable(b"\xef\xbb\xbfA=1\r\nB=\xff\xfe\r\nC=3\r\n");
        let names: Vec<String> =
            dotenvy::from_read_iter(text.as_bytes()).map(|entry| entry.unwrap().0).collect();
        assert_eq!((names, wrong), (vec!["A".to_owned(), "C".to_owned()], vec![2]));
        assert_eq!(readable(b"").1, Vec::<usize>::new());
    }

    #[test]
    fn what_is_wrong_is_said_by_file_and_line_and_never_quoted() {
        let said = load(b"\nsk-secret-0123 456\n", Path::new("here/.env"));
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("`here/.env`, line 2"), "{said:?}");
        assert!(!said[0].contains("secret"), "{said:?}");
    }
}
