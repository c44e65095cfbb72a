//! Where a data set's bytes come from.
//!
//! A source can be opened again and again, so that the whole set is checked before the first
//! call is paid: what can't be rewound (standard input, a pipe) goes to a temporary file
//! first. Gzip is told by its first bytes, not by the name.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::bufread::MultiGzDecoder;
use tempfile::NamedTempFile;

use super::error::{DatasetError, RowProblem};
use super::format::Format;

/// Chosen so that a read call costs little beside the decoding of its bytes.
const BUFFER_BYTES: usize = 128 * 1024;

/// A file or spooled stream that rows are read from.
#[derive(Clone, Debug)]
pub struct Source {
    name: Arc<str>,
    path: PathBuf,
    format: Format,
    /// Keeps the temporary file of a spooled stream; it is deleted with the last clone.
    _spool: Option<Arc<NamedTempFile>>,
}

impl Source {
    /// The file at `path`, or standard input for `-`.
    ///
    /// The extension says the format. A `.json` file that begins with `{` is read as JSON
    /// Lines, since many tools name those so. Standard input and pipes are told by their
    /// first bytes (see [`Source::with_format`] for saying it).
    ///
    /// # Errors
    /// When the file can't be read or its extension is unknown.
    pub fn open(path: &Path) -> Result<Self, DatasetError> {
        if path.as_os_str() == "-" {
            return Self::spool(io::stdin().lock(), "-");
        }
        crate::inputs::note(path);
        let name = path.display().to_string();
        let failed = |source| DatasetError::Read { path: name.clone(), source };
        let file = File::open(path).map_err(failed)?;
        let kind = file.metadata().map_err(failed)?.file_type();
        if kind.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if !kind.is_file() {
            return Self::spool(file, &name);
        }
        let (format, _) = Format::from_path(path)
            .ok_or_else(|| DatasetError::Extension { path: name.clone() })?;
        let mut source =
            Self { name: name.as_str().into(), path: path.to_owned(), format, _spool: None };
        match format {
            Format::Json if source.beginning()?.trim_ascii_start().starts_with(b"{") => {
                source.format = Format::JsonLines;
            }
            Format::Csv if Format::sniff(&source.beginning()?) == Format::SemicolonCsv => {
                source.format = Format::SemicolonCsv;
            }
            _ => {}
        }
        Ok(source)
    }

    /// Copies a stream to a temporary file, so that it can be read more than once; `name`
    /// stands for it in messages.
    ///
    /// # Errors
    /// When the stream can't be read, or the temporary file can't be written.
    pub fn spool(mut stream: impl Read, name: &str) -> Result<Self, DatasetError> {
        let failed = |source| DatasetError::Read { path: name.to_owned(), source };
        let mut spool = NamedTempFile::new().map_err(failed)?;
        io::copy(&mut stream, spool.as_file_mut()).map_err(failed)?;
        let mut source = Self {
            name: name.into(),
            path: spool.path().to_owned(),
            format: Format::Csv,
            _spool: Some(Arc::new(spool)),
        };
        source.format = Format::sniff(&source.beginning()?);
        Ok(source)
    }

    /// The same source, read as `format` whatever its name or first bytes say.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The path as the user wrote it; `-` for standard input.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the rows are laid out.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    pub(crate) fn read_error(&self, source: io::Error) -> DatasetError {
        DatasetError::Read { path: self.name.to_string(), source }
    }

    /// Refuses a `.json` file that is one object over several lines: no list of rows, and no
    /// row a line. Most are another tool's results.
    pub(crate) fn refuse_one_object(&self) -> Result<(), DatasetError> {
        let named = Format::from_path(Path::new(&*self.name));
        if self.format != Format::JsonLines || named.is_none_or(|(named, _)| named != Format::Json)
        {
            return Ok(());
        }
        let beginning = self.beginning()?;
        let first = beginning.trim_ascii_start().split(|&b| b == b'\n').next().unwrap_or_default();
        let open = serde_json::from_slice::<serde::de::IgnoredAny>(first)
            .is_err_and(|error| error.is_eof());
        if !open {
            return Ok(());
        }
        let reader = self.bytes(None)?.reader;
        match serde_json::from_reader::<_, HashMap<String, serde::de::IgnoredAny>>(reader) {
            Ok(object) => {
                let mut keys: Vec<String> =
                    object.into_keys().map(|key| format!("`{key}`")).collect();
                keys.sort();
                keys.truncate(8);
                Err(DatasetError::OneObject { path: self.name.to_string(), keys: keys.join(", ") })
            }
            Err(_) => Ok(()),
        }
    }

    /// The first bytes of the decompressed text, without a byte order mark.
    fn beginning(&self) -> Result<Vec<u8>, DatasetError> {
        let mut beginning = Vec::new();
        let input = self.bytes(None)?;
        match input.mark {
            Ok(()) => {
                input
                    .reader
                    .take(4096)
                    .read_to_end(&mut beginning)
                    .map_err(|source| self.read_error(source))?;
                Ok(beginning)
            }
            // Said with its line when the rows are read.
            Err(_) => Ok(beginning),
        }
    }

    /// Opens the decompressed text; `digest` sees every byte that is read, the byte order
    /// mark included.
    pub(crate) fn bytes(&self, digest: Option<&Digest>) -> Result<Input, DatasetError> {
        let failed = |source| self.read_error(source);
        let file = File::open(&self.path).map_err(failed)?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let gzip = file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
        let plain: Box<dyn Read + Send> =
            if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        let mut plain: Box<dyn BufRead + Send> = match digest {
            Some(digest) => Box::new(BufReader::with_capacity(
                BUFFER_BYTES,
                Digesting { inner: plain, digest: digest.clone() },
            )),
            None => Box::new(BufReader::with_capacity(BUFFER_BYTES, plain)),
        };
        let mut first = Vec::with_capacity(4);
        plain.as_mut().take(4).read_to_end(&mut first).map_err(failed)?;
        let mark = match first.as_slice() {
            [0xff, 0xfe, 0, 0] | [0, 0, 0xfe, 0xff] => {
                Err(RowProblem::Encoding { encoding: "UTF-32" })
            }
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(RowProblem::Encoding { encoding: "UTF-16" }),
            _ => Ok(()),
        };
        if first.starts_with(&[0xef, 0xbb, 0xbf]) {
            first.drain(..3);
        }
        Ok(Input { reader: Box::new(Cursor::new(first).chain(plain)), mark })
    }
}

/// The decompressed text of a source.
pub(crate) struct Input {
    pub(crate) reader: Box<dyn BufRead + Send>,
    /// An error when the byte order mark is another encoding's.
    pub(crate) mark: Result<(), RowProblem>,
}

/// A hash of all bytes read, shared with the reader that feeds it.
#[derive(Clone, Default)]
pub(crate) struct Digest(Arc<Mutex<(blake3::Hasher, u64)>>);

impl Digest {
    /// The hash so far in hexadecimal, and the bytes in it.
    pub(crate) fn value(&self) -> (String, u64) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.0.finalize().to_hex().to_string(), state.1)
    }
}

struct Digesting<R> {
    inner: R,
    digest: Digest,
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let mut state = self.digest.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0.update(&buffer[..n]);
        state.1 += n as u64;
        Ok(n)
    }
}
