//! Rulings kept by what was judged: the task, the workspace, the output and the panel.
//!
//! An unchanged workspace is not judged twice. Only decisions are kept in which no judge
//! failed: an outage is never remembered.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::outcome::write_whole;
use crate::case::Case;
use crate::panel::Panel;
use crate::ruling::{Decision, Ruling};
use crate::verdict::Fingerprint;

/// Files of a folder kept at most; the oldest go first.
const MOST: usize = 512;

/// Kept rulings in a folder.
#[derive(Clone, Debug)]
pub struct Verdicts {
    folder: PathBuf,
}

impl Verdicts {
    /// The kept rulings of a folder, which need not be there.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.join("verdicts") }
    }

    /// What a ruling is kept by. `workspace` is the folder and its tree.
    #[must_use]
    pub fn key(panel: &Panel, case: &Case, workspace: (&Path, &str)) -> String {
        let identity = json!({
            "case": case.content_id(), "panel": panel.fingerprint(),
            "folder": workspace.0.to_string_lossy(), "tree": workspace.1,
        });
        Fingerprint::of("hook", &identity).to_string()
    }

    fn path(&self, key: &str) -> PathBuf {
        let name = blake3::hash(key.as_bytes()).to_hex();
        self.folder.join(format!("{}.json", &name[..32]))
    }

    /// The ruling kept by a key. One that can't be read is none.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Ruling> {
        let text = std::fs::read_to_string(self.path(key)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps a ruling, where it may be kept.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn put(&self, key: &str, ruling: &Ruling) -> std::io::Result<()> {
        let failed = ruling.verdicts.iter().any(|verdict| verdict.status.is_error());
        if failed || ruling.decision == Decision::Undecided {
            return Ok(());
        }
        write_whole(&self.path(key), &serde_json::to_string(ruling)?)?;
        prune(&self.folder)
    }
}

/// Removes the oldest JSON files of a folder beyond the most that are kept.
pub(super) fn prune(folder: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "json")
            && let Ok(time) = entry.metadata().and_then(|metadata| metadata.modified())
        {
            files.push((time, entry.path()));
        }
    }
    files.sort();
    for (_, path) in files.iter().take(files.len().saturating_sub(MOST)) {
        // Another process may have removed it.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}
