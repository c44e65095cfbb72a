//! The event log of a run: one complete, checksummed line an event, on disk before anything
//! follows from it. Texts are kept beside it, by their hash.
//!
//! A line that was torn by a crash is dropped with a warning, when it is the last one; any
//! other damage is an error and nothing is guessed. A lock keeps a second process off.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(super) use super::entry::RESUMED;
pub use super::entry::{Entry, FORMAT, Line};
use super::event::Spent;
use super::history::content_hash;
pub use super::kept::{Beginning, Kept, RunEnd, beginning_of, kept, starts_of};
pub(super) use super::kept::{START, newest};

#[derive(Serialize, Deserialize)]
struct Sealed<'a> {
    sum: String,
    #[serde(borrow)]
    line: &'a RawValue,
}

/// Why a log can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file system refused.
    #[error("failed to {doing} `{path}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line that is not the last one is damaged.
    #[error("`{path}`, line {line}: {reason}; nothing after it can be trusted")]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// Another process holds the run.
    #[error("run `{run}` is held by another process")]
    Held {
        /// The run.
        run: String,
    },
    /// There is no such run.
    #[error("no run `{run}` in `{folder}`")]
    Missing {
        /// The run.
        run: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A text is gone, or not what its hash says.
    #[error("the text `{hash}` of run `{run}` is missing or damaged")]
    Text {
        /// The run.
        run: String,
        /// The hash.
        hash: String,
    },
}

/// An open log, held by this process.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    run: String,
    file: File,
    next: u64,
    /// Held as long as the log is open; the system lets go of it when the process dies.
    _lock: File,
}

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LogError {
    let path = path.to_owned();
    move |source| LogError::Io { doing, path, source }
}

impl Log {
    /// Starts the log of a new run in a folder of its own below `loops`.
    ///
    /// # Errors
    /// When the file system refuses, or the run exists.
    pub fn create(loops: &Path, run: &str) -> Result<Self, LogError> {
        let folder = loops.join(run);
        let texts = folder.join("texts");
        std::fs::create_dir_all(&texts).map_err(io("make", &texts))?;
        let lock = lock(&folder, run)?;
        let path = folder.join("events.jsonl");
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(io("make", &path))?;
        sync_folder(&folder);
        Ok(Self { folder, run: run.to_owned(), file, next: 0, _lock: lock })
    }

    /// Opens the log of a run to go on with it: the log, its lines, and what a reader should
    /// know. `latest` names the newest run.
    ///
    /// # Errors
    /// See [`LogError`].
    pub fn open(loops: &Path, run: &str) -> Result<(Self, Vec<Line>, Vec<String>), LogError> {
        let missing = || LogError::Missing { run: run.to_owned(), folder: loops.to_owned() };
        let run = if run == "latest" { newest(loops).ok_or_else(missing)? } else { run.to_owned() };
        let folder = loops.join(&run);
        let path = folder.join("events.jsonl");
        if !path.is_file() {
            return Err(LogError::Missing { run, folder: loops.to_owned() });
        }
        let lock = lock(&folder, &run)?;
        let mut file =
            OpenOptions::new().read(true).write(true).open(&path).map_err(io("open", &path))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io("read", &path))?;
        let read = parse(&path, &text)?;
        let mut warnings = Vec::new();
        if read.whole < text.len() as u64 {
            warnings.push(format!("`{}`: the last line was torn and is left out", path.display()));
            file.set_len(read.whole).map_err(io("cut", &path))?;
            file.sync_all().map_err(io("sync", &path))?;
        }
        file.seek(SeekFrom::End(0)).map_err(io("seek in", &path))?;
        let next = read.lines.len() as u64;
        Ok((Self { folder, run, file, next, _lock: lock }, read.lines, warnings))
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The file of events.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join("events.jsonl")
    }

    /// Appends an event. When this returns it survives the death of the machine.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn append(&mut self, elapsed_ms: u64, spent: Spent, entry: Entry) -> Result<(), LogError> {
        let path = self.path();
        let line = Line { n: self.next, elapsed_ms, spent, entry };
        let line = serde_json::value::to_raw_value(&line)
            .map_err(|error| io("write", &path)(std::io::Error::other(error)))?;
        let sealed = Sealed { sum: content_hash(line.get()), line: &line };
        let mut text = serde_json::to_string(&sealed)
            .map_err(|error| io("write", &path)(std::io::Error::other(error)))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(io("write", &path))?;
        self.file.sync_data().map_err(io("sync", &path))?;
        self.next += 1;
        Ok(())
    }

    /// Keeps a text, and gives its hash.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn keep(&self, text: &str) -> Result<String, LogError> {
        let hash = content_hash(text);
        let texts = self.folder.join("texts");
        let path = texts.join(&hash);
        if path.is_file() {
            return Ok(hash);
        }
        // Under its name only when whole.
        let mut file = tempfile::NamedTempFile::new_in(&texts).map_err(io("write in", &texts))?;
        file.write_all(text.as_bytes()).map_err(io("write", &path))?;
        file.as_file().sync_all().map_err(io("sync", &path))?;
        file.persist(&path).map_err(|error| io("write", &path)(error.error))?;
        sync_folder(&texts);
        Ok(hash)
    }

    /// A text that was kept.
    ///
    /// # Errors
    /// When it is gone, or not what its hash says.
    pub fn text(&self, hash: &str) -> Result<String, LogError> {
        text_in(&self.folder, &self.run, hash)
    }
}

/// A text kept beside the log in `folder`.
pub(super) fn text_in(folder: &Path, run: &str, hash: &str) -> Result<String, LogError> {
    let gone = || LogError::Text { run: run.to_owned(), hash: hash.to_owned() };
    let text = std::fs::read_to_string(folder.join("texts").join(hash)).map_err(|_| gone())?;
    if content_hash(&text) == hash { Ok(text) } else { Err(gone()) }
}

/// The lines of a log file, for reading only; a torn last line is left out.
///
/// # Errors
/// When it can't be read, or a line before the last is damaged.
pub fn read(path: &Path) -> Result<Vec<Line>, LogError> {
    let text = std::fs::read(path).map_err(io("read", path))?;
    Ok(parse(path, &text)?.lines)
}

struct Parsed {
    lines: Vec<Line>,
    /// Bytes of whole lines.
    whole: u64,
}

fn parse(path: &Path, text: &[u8]) -> Result<Parsed, LogError> {
    let mut parsed = Parsed { lines: Vec::new(), whole: 0 };
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (row, after) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        let n = parsed.lines.len() as u64;
        match unseal(row, n) {
            Ok(line) if end.is_some() => parsed.lines.push(line),
            // Without its line break the line may lack more.
            Ok(_) => return Ok(parsed),
            Err(_) if after.is_empty() => return Ok(parsed),
            Err(reason) => {
                return Err(LogError::Damaged { path: path.to_owned(), line: n + 1, reason });
            }
        }
        parsed.whole += (row.len() + 1) as u64;
        rest = after;
    }
    Ok(parsed)
}

fn unseal(row: &[u8], n: u64) -> Result<Line, String> {
    let sealed: Sealed<'_> = serde_json::from_slice(row).map_err(|error| error.to_string())?;
    if content_hash(sealed.line.get()) != sealed.sum {
        return Err("its checksum does not fit".to_owned());
    }
    let line: Line = serde_json::from_str(sealed.line.get()).map_err(|error| error.to_string())?;
    if line.n != n {
        return Err(format!("it is event {}, expected {n}", line.n));
    }
    Ok(line)
}

fn lock(folder: &Path, run: &str) -> Result<File, LogError> {
    let path = folder.join("lock");
    crate::hold::take(&path).map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => LogError::Held { run: run.to_owned() },
        std::fs::TryLockError::Error(source) => io("lock", &path)(source),
    })
}

/// A new file's name is on disk only when its folder is. Where folders can't be synced there
/// is nothing to do about it.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(generation: u32) -> Entry {
        Entry::Decided { generation, decision: "go on\nwith \"quotes\" 中文".to_owned() }
    }

    fn three() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), "run").unwrap();
        for generation in 0..3 {
            log.append(u64::from(generation), Spent::default(), entry(generation)).unwrap();
        }
        let path = log.path();
        (folder, path)
    }

    #[test]
    fn what_was_written_is_read_and_gone_on_with() {
        let (folder, path) = three();
        let (mut log, lines, warnings) = Log::open(folder.path(), "latest").unwrap();
        assert_eq!((lines.len(), warnings.len()), (3, 0));
        assert_eq!(lines[2].entry, entry(2));
        log.append(9, Spent::default(), entry(3)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 4);
    }

    #[test]
    fn a_torn_last_line_is_dropped_with_a_warning_wherever_it_tore() {
        let (folder, path) = three();
        let whole = std::fs::read(&path).unwrap();
        let second = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(1).unwrap().0;
        for cut in second + 1..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (log, lines, warnings) = Log::open(folder.path(), "run").unwrap();
            assert_eq!(lines.len(), 2, "cut at {cut}");
            assert_eq!(warnings.len(), usize::from(cut > second + 1));
            drop(log);
            assert_eq!(std::fs::read(&path).unwrap().len(), second + 1);
        }
    }

    #[test]
    fn damage_before_the_last_line_is_an_error() {
        let (folder, path) = three();
        let text = std::fs::read_to_string(&path).unwrap().replacen("go on", "go in", 1);
        std::fs::write(&path, text).unwrap();
        let error = Log::open(folder.path(), "run").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("checksum"), "{error}");
    }

    #[test]
    fn a_run_is_held_by_one_at_a_time_and_texts_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::create(folder.path(), "run").unwrap();
        assert!(matches!(Log::open(folder.path(), "run"), Err(LogError::Held { .. })));
        assert!(matches!(Log::open(folder.path(), "other"), Err(LogError::Missing { .. })));
        let hash = log.keep("中文 text").unwrap();
        assert_eq!(log.keep("中文 text").unwrap(), hash);
        assert_eq!(log.text(&hash).unwrap(), "中文 text");
        std::fs::write(folder.path().join("run/texts").join(&hash), "changed").unwrap();
        assert!(matches!(log.text(&hash), Err(LogError::Text { .. })));
    }
}
