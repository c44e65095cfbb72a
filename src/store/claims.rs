//! Who asks what at the moment: so that two processes with one store do not pay twice for
//! the same question.
//!
//! A claim is a lock on one byte of a file beside the store, at a place that follows from the
//! question's key. Two calls of the system a question, no row and no write: beside any answer
//! it costs nothing. The system gives the lock back when its process dies in whatever way,
//! so there is nothing to expire and nothing to clean up. The system looks through all locks of
//! a file for each new one, so there are several files. Where the system or the disk has no
//! such locks every claim is granted, and two processes may ask the same.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::provider::Claim;

/// Files that the claims are spread over.
const FILES: u8 = 16;

/// Claims of one process on the questions of one store.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    /// None where nothing can be claimed.
    files: Vec<Arc<File>>,
}

/// A byte that is locked until this is dropped.
#[derive(Debug)]
struct Held {
    file: Arc<File>,
    at: i64,
}

impl Claims {
    /// Claims for the store at this path; its folder must be there.
    pub(super) fn beside(store: &Path) -> Self {
        let folder = store.parent().unwrap_or(Path::new("")).join("locks");
        let open = |number: u8| {
            let mut name = store.file_name().unwrap_or_default().to_owned();
            name.push(format!(".asked-{number:x}"));
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(folder.join(name)).map(Arc::new)
        };
        let opened = std::fs::create_dir_all(&folder)
            .and_then(|()| (0..FILES).map(open).collect::<std::io::Result<Vec<_>>>());
        if let Err(error) = &opened {
            tracing::debug!("other processes are not told what is asked: {error}");
        }
        Self { files: opened.unwrap_or_default() }
    }

    /// The claim on a key; `None` while another process holds it.
    pub(super) fn claim(&self, key: &[u8; 32]) -> Option<Claim> {
        let Some(file) = self.files.get(usize::from(key[31] % FILES)) else {
            return Some(Box::new(()));
        };
        let at = place(key);
        match system::lock(file, at) {
            Ok(true) => Some(Box::new(Held { file: Arc::clone(file), at })),
            Ok(false) => None,
            Err(error) => {
                tracing::debug!("other processes are not told what is asked: {error}");
                Some(Box::new(()))
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        system::unlock(&self.file, self.at);
    }
}

/// The byte of a key: 62 of its bits, since a place in a file is a positive signed number.
/// Two keys that share one wait for each other, which costs time and nothing else.
fn place(key: &[u8; 32]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&key[..8]);
    (u64::from_le_bytes(first) >> 2) as i64
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod system {
    use std::fs::File;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    fn set(file: &File, at: i64, kind: libc::c_int) -> nix::Result<()> {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: at,
            l_len: 1,
            l_pid: 0,
        };
        // A lock of the open file, not of the process: closing another handle on the file
        // must not give it back.
        #[cfg(target_os = "linux")]
        let argument = FcntlArg::F_OFD_SETLK(&range);
        #[cfg(not(target_os = "linux"))]
        let argument = FcntlArg::F_SETLK(&range);
        fcntl(file, argument).map(drop)
    }

    /// Whether the byte is locked now; false while another process has it.
    pub(super) fn lock(file: &File, at: i64) -> nix::Result<bool> {
        match set(file, at, libc::c_int::from(libc::F_WRLCK)) {
            Ok(()) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn unlock(file: &File, at: i64) {
        if let Err(error) = set(file, at, libc::c_int::from(libc::F_UNLCK)) {
            tracing::debug!("a claim is given back at the end only: {error}");
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    use std::convert::Infallible;
    use std::fs::File;

    pub(super) fn lock(_: &File, _: i64) -> Result<bool, Infallible> {
        Ok(true)
    }

    pub(super) fn unlock(_: &File, _: i64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_claim_keeps_others_off_one_key_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        // Each opens the file anew, as two processes do.
        let (one, other) = (Claims::beside(&store), Claims::beside(&store));
        let (key, another) = ([7; 32], [8; 32]);
        let held = one.claim(&key).unwrap();
        assert!(other.claim(&key).is_none());
        assert!(other.claim(&another).is_some(), "another question is free");
        drop(held);
        let held = other.claim(&key).unwrap();
        assert!(one.claim(&key).is_none());
        drop((held, other));
        assert!(one.claim(&[255; 32]).is_some(), "the greatest place is a place");
        assert!(one.claim(&key).is_some());
    }

    #[test]
    fn where_nothing_can_be_claimed_everything_may_be_asked() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("locks"), "a file where the folder should be").unwrap();
        let claims = Claims::beside(&folder.path().join("store.db"));
        assert!(claims.claim(&[1; 32]).is_some());
    }
}
