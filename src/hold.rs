//! The hold that a process has on a run while it works on it: a lock on a file of its own.
//!
//! The system gives a lock back when its process dies in whatever way, so a file that is there
//! and not locked tells of a run that nobody works on.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

/// Looks at a lock take a moment, in which it can't be had; a process that works on a run
/// keeps it.
const LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(10);

/// Takes the hold; it is given back when the file is dropped.
///
/// # Errors
/// `WouldBlock` while another process has it, and what the system says.
pub(crate) fn take(path: &Path) -> Result<File, TryLockError> {
    let file = File::create(path).map_err(TryLockError::Error)?;
    for look in 0.. {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if look < LOOKS => std::thread::sleep(LOOK),
            outcome => return outcome.map(|()| file),
        }
    }
    Err(TryLockError::WouldBlock)
}

/// Whether a process has the hold. Where that can't be known, yes.
pub(crate) fn is_taken(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_one_process_s_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(!is_taken(&path), "a file that is not there holds nothing");
        let held = take(&path).unwrap();
        assert!(is_taken(&path));
        assert!(matches!(take(&path), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(!is_taken(&path));
        take(&path).unwrap();
    }
}
