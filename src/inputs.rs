//! The files that this process has read: what it must not write over.
//!
//! A process-wide note and no more: whoever writes a file that was named on a command line
//! asks here first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes that a file is read.
pub(crate) fn note(path: &Path) {
    if let Ok(path) = path.canonicalize() {
        READ.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
    }
}

/// Whether a file was read, whatever path leads to it.
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "the program alone asks"))]
pub(crate) fn was_read(path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|path| READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_any_path_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let (read, other) = (folder.path().join("read"), folder.path().join("other"));
        std::fs::write(&read, "").unwrap();
        std::fs::write(&other, "").unwrap();
        note(&read);
        note(&folder.path().join("missing"));
        assert!(was_read(&folder.path().join(".").join("read")));
        assert!(!was_read(&other) && !was_read(&folder.path().join("missing")));
    }
}
