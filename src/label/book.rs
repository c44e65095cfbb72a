//! The file of labels: `item_id,rater,criterion,label`, one row a label, only ever appended
//! to.
//!
//! A row is on disk when [`Book::add`] returns. One process writes to a file at a time. A
//! label is never changed: a second, other one of the same rater for the same case would be
//! refused by whoever reads the file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::dataset::{DatasetError, LabelOptions, LabelReader, LabelValue, OnBadRow, Source};

/// The columns, in their order.
const COLUMNS: [&str; 4] = ["item_id", "rater", "criterion", "label"];

/// Why labels can't be kept in a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookError {
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
    /// The file is in no form that rows can be added to.
    #[error("labels can't be added to `{path}`: {reason}")]
    Form {
        /// The file.
        path: PathBuf,
        /// Why, and what was expected.
        reason: String,
    },
    /// The labels in it can't be read.
    #[error(transparent)]
    Labels(#[from] DatasetError),
    /// Another process writes to it.
    #[error("labels are added to `{path}` by another process")]
    Held {
        /// The file.
        path: PathBuf,
    },
    /// The label was given before.
    #[error("`{case}` has the label `{label}` already: a label is never changed")]
    Labelled {
        /// The case.
        case: String,
        /// What it is.
        label: String,
    },
}

/// A file of labels that one rater adds to, for one criterion.
#[derive(Debug)]
pub struct Book {
    path: PathBuf,
    /// Locked as long as the book is open.
    file: File,
    rater: String,
    criterion: String,
    labels: BTreeMap<String, LabelValue>,
}

impl Book {
    /// Opens a file, or makes it, and reads what this rater said about this criterion.
    ///
    /// # Errors
    /// See [`BookError`].
    pub fn open(path: &Path, rater: &str, criterion: &str) -> Result<Self, BookError> {
        let io = |doing| move |source| BookError::Io { doing, path: path.to_owned(), source };
        let form = |reason: String| BookError::Form { path: path.to_owned(), reason };
        let is_csv = path.extension().is_some_and(|own| own.eq_ignore_ascii_case("csv"));
        if !is_csv {
            return Err(form("expected a name that ends in .csv".into()));
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(BookError::Held { path: path.to_owned() });
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(io("lock")(source)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(io("read"))?;
        let mut book = Self {
            path: path.to_owned(),
            file,
            rater: rater.to_owned(),
            criterion: criterion.to_owned(),
            labels: BTreeMap::new(),
        };
        if text.is_empty() {
            book.append(&COLUMNS)?;
            // A new file's name is on disk only when its folder is.
            let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
            if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
                let _ = folder.sync_all();
            }
            return Ok(book);
        }
        check_form(&text).map_err(form)?;
        book.read()?;
        Ok(book)
    }

    /// Reads what the rater said.
    fn read(&mut self) -> Result<(), BookError> {
        let source = Source::open(&self.path)?;
        let options = LabelOptions { on_bad_row: OnBadRow::Fail, ..LabelOptions::default() };
        for label in LabelReader::open(&source, &options)? {
            let label = label.map_err(DatasetError::from)?;
            if label.rater == self.rater && label.criterion == self.criterion {
                self.labels.insert(label.case, label.value);
            }
        }
        Ok(())
    }

    /// The rater.
    #[must_use]
    pub fn rater(&self) -> &str {
        &self.rater
    }

    /// The criterion.
    #[must_use]
    pub fn criterion(&self) -> &str {
        &self.criterion
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the rater said about a case.
    #[must_use]
    pub fn label(&self, case: &str) -> Option<&LabelValue> {
        self.labels.get(case)
    }

    /// How many labels the rater gave for this criterion.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Keeps a label. It survives the death of the machine when this returns. The same label
    /// again is no error and no second row.
    ///
    /// # Errors
    /// When the case has another label, or the file system refuses.
    pub fn add(&mut self, case: &str, label: LabelValue) -> Result<(), BookError> {
        match self.labels.get(case) {
            Some(own) if *own == label => return Ok(()),
            Some(own) => {
                let (case, label) = (case.to_owned(), own.to_string());
                return Err(BookError::Labelled { case, label });
            }
            None => {}
        }
        let (rater, criterion) = (self.rater.clone(), self.criterion.clone());
        self.append(&[case, &rater, &criterion, &label.to_string()])?;
        self.labels.insert(case.to_owned(), label);
        Ok(())
    }

    /// Writes a row with one write, and waits until it is on disk. What a failed write left
    /// behind is taken back.
    fn append(&mut self, row: &[&str]) -> Result<(), BookError> {
        let path = self.path.clone();
        let io = |doing| move |source| BookError::Io { doing, path, source };
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        let bytes = writer
            .write_record(row)
            .map_err(std::io::Error::other)
            .and_then(|()| writer.into_inner().map_err(|error| error.into_error()))
            .map_err(io.clone()("write"))?;
        let end = self.file.seek(SeekFrom::End(0)).map_err(io.clone()("seek in"))?;
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            let _ = self.file.set_len(end);
            return Err(io("write")(error));
        }
        Ok(())
    }
}

/// Whether rows of four columns can be added after these bytes.
fn check_form(text: &[u8]) -> Result<(), String> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().from_reader(text);
    let header = reader.headers().map_err(|error| error.to_string())?;
    if !header.iter().map(str::trim).eq(COLUMNS) {
        return Err(format!("its columns are not `{}`: name another file", COLUMNS.join(",")));
    }
    if !text.ends_with(b"\n") {
        return Err("its last line has no end: complete it, or take it out".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64) -> LabelValue {
        LabelValue::Number(value)
    }

    #[test]
    fn labels_are_appended_in_long_form_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.csv");
        let mut book = Book::open(&path, "ana, \"b\"", "overall").unwrap();
        book.add("c1", number(4.0)).unwrap();
        book.add("二,\n3", number(5.0)).unwrap();
        book.add("c1", number(4.0)).unwrap();
        assert!(matches!(book.add("c1", number(5.0)), Err(BookError::Labelled { .. })));
        assert!(matches!(Book::open(&path, "x", "y"), Err(BookError::Held { .. })));
        drop(book);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "item_id,rater,criterion,label\nc1,\"ana, \"\"b\"\"\",overall,4\n\"二,\n3\",\"ana, \"\"b\"\"\",overall,5\n"
        );
        let book = Book::open(&path, "ana, \"b\"", "overall").unwrap();
        assert_eq!((book.len(), book.label("c1")), (2, Some(&number(4.0))));
        drop(book);
        assert!(Book::open(&path, "ana, \"b\"", "tone").unwrap().is_empty());
        assert!(Book::open(&path, "bo", "overall").unwrap().is_empty());
        let set =
            crate::dataset::read_labels(&Source::open(&path).unwrap(), &LabelOptions::default());
        assert_eq!(set.err().map(|error| error.to_string()), None);
    }

    #[test]
    fn a_file_of_another_form_or_with_a_torn_end_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.csv");
        for (text, said) in [
            ("case,label\nc1,4\n", "columns"),
            ("item_id,rater,criterion,label\nc1,ana,overall,1", "no end"),
            ("\n\n", "columns"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Book::open(&path, "ana", "overall").unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let other = folder.path().join("labels.jsonl");
        assert!(matches!(Book::open(&other, "a", "b"), Err(BookError::Form { .. })));
        assert!(!other.exists());
    }
}
