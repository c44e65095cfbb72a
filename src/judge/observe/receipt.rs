//! Receipts: an observation with side effects happens once for each case.
//!
//! A receipt is opened before the first look and completed after the last one. One that was
//! opened and never completed says that a run died in between: whether the effects took
//! place is not known, so nothing is done again.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::verdict::{Fingerprint, Status, Verdict};

/// The version of the stored form.
const VERSION: u32 = 1;

#[derive(Debug)]
pub(super) struct Receipts {
    folder: PathBuf,
    fingerprint: Fingerprint,
}

/// What a receipt file holds.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    fingerprint: Fingerprint,
    case: String,
    content: String,
    sample: u32,
    /// Absent until the observation is over.
    verdict: Option<Verdict>,
}

/// An opened receipt: this case is ours to observe.
#[derive(Debug)]
pub(super) struct Receipt {
    path: PathBuf,
    stored: Stored,
}

impl Receipts {
    pub(super) fn new(base: &Path, fingerprint: &Fingerprint) -> Self {
        Self { folder: base.join(".venire").join("receipts"), fingerprint: fingerprint.clone() }
    }

    /// Opens the receipt of a case, or gives what is known of an earlier observation.
    pub(super) fn open(&self, case: &Case, sample: u32) -> Result<Receipt, Box<Verdict>> {
        let failed = |detail: String| Box::new(Verdict::failed(Status::ProviderError, detail));
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.fingerprint.as_str().as_bytes()).update(&sample.to_le_bytes());
        hasher.update(case.id.as_bytes());
        let path = self.folder.join(format!("{}.json", &hasher.finalize().to_hex()[..32]));
        let stored = Stored {
            version: VERSION,
            fingerprint: self.fingerprint.clone(),
            case: case.id.clone(),
            content: case.content_id(),
            sample,
            verdict: None,
        };
        let unwritable = |error: &dyn std::fmt::Display| {
            failed(format!("failed to write the receipt `{}`: {error}", path.display()))
        };
        fs::create_dir_all(&self.folder).map_err(|error| unwritable(&error))?;
        let json = serde_json::to_vec_pretty(&stored).map_err(|error| unwritable(&error))?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(&json)
                    .and_then(|()| file.sync_all())
                    .map_err(|error| unwritable(&error))?;
                Ok(Receipt { path, stored })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(recorded(&path, &stored)),
            Err(error) => Err(unwritable(&error)),
        }
    }
}

/// The verdict of an earlier observation.
fn recorded(path: &Path, ours: &Stored) -> Box<Verdict> {
    let shown = path.display();
    let failed = |detail: String| Box::new(Verdict::failed(Status::ProviderError, detail));
    let read = fs::read(path).map_err(|error| error.to_string()).and_then(|bytes| {
        serde_json::from_slice::<Stored>(&bytes).map_err(|error| error.to_string())
    });
    let stored = match read {
        Ok(stored) => stored,
        Err(error) => {
            return failed(format!(
                "an observation with side effects began before, and its receipt `{shown}` can't be read ({error}): look at the environment, then delete the receipt to observe again"
            ));
        }
    };
    if stored.content != ours.content {
        return failed(format!(
            "the case `{}` was observed before with another content (receipt `{shown}`): give the new content an id of its own",
            ours.case
        ));
    }
    match stored.verdict {
        Some(mut verdict) => {
            if verdict.status != Status::Ok {
                let why = verdict.detail.unwrap_or_default();
                verdict.detail =
                    Some(format!("{why} (from the receipt `{shown}`: delete it to observe again)"));
            }
            Box::new(verdict.note("receipt", "replayed"))
        }
        None => failed(format!(
            "an observation with side effects began before and never ended (receipt `{shown}`): look at the environment, then delete the receipt to observe again"
        )),
    }
}

impl Receipt {
    /// Completes the receipt. A verdict that can't be kept is not counted.
    pub(super) fn keep(mut self, verdict: Verdict) -> Verdict {
        self.stored.verdict = Some(verdict.clone());
        let write = || -> std::io::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec_pretty(&self.stored)?)?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        match write() {
            Ok(()) => verdict.note("receipt", "written"),
            Err(error) => {
                let detail =
                    format!("failed to write the receipt `{}`: {error}", self.path.display());
                Verdict::failed(Status::ProviderError, detail)
            }
        }
    }
}
