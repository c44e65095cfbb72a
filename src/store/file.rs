//! What a file is before the database opens it: a store, nothing yet, or somebody else's.
//!
//! Only the header is read, by plain file calls, so that looking at another program's file
//! leaves nothing beside it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::StoreError;

/// What the header of a store says it is: `veni` in ASCII.
pub(super) const APPLICATION_ID: u32 = 0x7665_6e69;

/// How every SQLite file begins, and where its header has the application id.
const MAGIC: &[u8] = b"SQLite format 3\0";
const APPLICATION_ID_AT: usize = 68;
const HEADER: usize = 100;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A store.
    Store,
    /// An empty file, or none.
    Nothing,
    /// A SQLite database that does not say whose it is.
    Unsaid,
}

/// Looks at a file's header.
pub(super) fn look(path: &Path) -> Result<Found, StoreError> {
    let failed = |error: &std::io::Error| StoreError::Open {
        path: path.to_owned(),
        message: error.to_string(),
    };
    let foreign = |what: String| Err(StoreError::Foreign { path: path.to_owned(), what });
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        file => file.map_err(|error| failed(&error))?,
    };
    if !file.metadata().map_err(|error| failed(&error))?.is_file() {
        return foreign("it is no file".into());
    }
    let mut header = Vec::with_capacity(HEADER);
    file.take(HEADER as u64).read_to_end(&mut header).map_err(|error| failed(&error))?;
    if header.is_empty() {
        // A store of an earlier version that was killed at once has all it holds in its log.
        return Ok(if has_log(path) { Found::Unsaid } else { Found::Nothing });
    }
    if header.len() < HEADER || !header.starts_with(MAGIC) {
        return foreign("it is no SQLite database".into());
    }
    let mut id = [0; 4];
    id.copy_from_slice(&header[APPLICATION_ID_AT..APPLICATION_ID_AT + 4]);
    match u32::from_be_bytes(id) {
        APPLICATION_ID => Ok(Found::Store),
        0 => Ok(Found::Unsaid),
        other => foreign(format!("it is the database of a program with the id {other:#010x}")),
    }
}

/// Whether a log with changes lies beside a database.
pub(super) fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log).metadata().is_ok_and(|log| log.len() > 0)
}

/// A path as it stands in a URI.
pub(super) fn encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            // Writing to a text can't fail.
            let _ = write!(encoded, "%{byte:02x}");
        }
    }
    encoded
}
