//! Outcomes of gates, kept beside the store too, so that whoever asks later need not know
//! where each caller had its file written.
//!
//! One entry a file of `--outcome`, replaced by each call. A gate that was not asked for an
//! outcome leaves nothing behind.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ledger::ignore_all;
use super::outcome::{Outcome, write_whole};
use super::verdicts::prune;

/// What a gate found last for one file of outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The file that the caller named, as an absolute path.
    pub file: String,
    /// What was found.
    pub outcome: Outcome,
}

/// The outcomes of gates in a folder.
#[derive(Clone, Debug)]
pub struct Gates {
    folder: PathBuf,
}

impl Gates {
    /// The outcomes in `gates` of a folder, which need not be there.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.join("gates") }
    }

    /// Keeps what was found for a file, in place of what an earlier call found.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn put(&self, file: &Path, outcome: &Outcome) -> std::io::Result<()> {
        let file = std::path::absolute(file)?.to_string_lossy().into_owned();
        std::fs::create_dir_all(&self.folder)?;
        ignore_all(&self.folder)?;
        let name = blake3::hash(file.as_bytes()).to_hex();
        let path = self.folder.join(format!("{}.json", &name[..32]));
        let gate = Gate { file, outcome: outcome.clone() };
        write_whole(&path, &serde_json::to_string_pretty(&gate)?)?;
        prune(&self.folder)
    }

    /// All that are kept. Files that hold no outcome are left out.
    ///
    /// # Errors
    /// When the folder can't be read; one that is not there holds none.
    pub fn all(&self) -> std::io::Result<Vec<Gate>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut gates = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Ok(text) = std::fs::read_to_string(&path)
                && let Ok(gate) = serde_json::from_str(&text)
            {
                gates.push(gate);
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Cause;
    use super::*;

    #[test]
    fn one_entry_a_file_and_the_last_call_s() {
        let folder = tempfile::tempdir().unwrap();
        let gates = Gates::in_folder(folder.path());
        assert_eq!(gates.all().unwrap(), []);
        let (one, other) = (folder.path().join("a.json"), folder.path().join("二.json"));
        gates.put(&one, &Outcome::new(Cause::Judging)).unwrap();
        gates.put(&one, &Outcome::new(Cause::Rejected)).unwrap();
        gates.put(&other, &Outcome::new(Cause::Error)).unwrap();
        std::fs::write(folder.path().join("gates/torn.json"), "{").unwrap();
        let mut all = gates.all().unwrap();
        all.sort_by(|a, b| a.file.cmp(&b.file));
        let found: Vec<_> = all.iter().map(|gate| gate.outcome.cause).collect();
        assert_eq!(found, [Cause::Rejected, Cause::Error]);
        assert!(all[1].file.ends_with("二.json"), "{}", all[1].file);
        let ignored = std::fs::read_to_string(folder.path().join("gates/.gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
    }
}
