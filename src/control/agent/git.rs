//! Snapshots of a folder under git, without touching its index, branches or stash.
//!
//! A snapshot is a tree written through an index of our own: it holds tracked and untracked
//! files, and leaves ignored ones alone.

use std::path::{Path, PathBuf};
use std::process::Output;

use tokio::process::Command;

use super::AgentError;
use crate::verdict::Status;

/// A folder under git.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    directory: PathBuf,
    /// Patterns of files that are never looked at nor touched.
    litter: &'static [&'static str],
    /// Where an index of our own is kept, so that unchanged files are not read again.
    kept_index: Option<PathBuf>,
}

fn fault(detail: impl Into<String>) -> AgentError {
    AgentError::failed(Status::Internal, detail)
}

impl Repository {
    pub(crate) fn new(directory: PathBuf, litter: &'static [&'static str]) -> Self {
        Self { directory, litter, kept_index: None }
    }

    /// Keeps its own index in a file. The user's index would be as fast, but can be told to
    /// hold changed files for unchanged.
    #[must_use]
    pub(crate) fn with_index(self, path: PathBuf) -> Self {
        Self { kept_index: Some(path), ..self }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    async fn git(&self, index: &Path, arguments: &[&str]) -> Result<Output, AgentError> {
        let output = Command::new("git")
            .args(["-c", "core.quotePath=false", "-c", "core.fsmonitor=false"])
            .args(arguments)
            .current_dir(&self.directory)
            .env("GIT_INDEX_FILE", index)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| fault(format!("failed to run `git`: {error}")))?;
        if output.status.success() {
            return Ok(output);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(fault(format!("`git {}` failed: {}", arguments.join(" "), words.trim())))
    }

    fn index(&self) -> Result<(tempfile::TempDir, PathBuf), AgentError> {
        let folder =
            tempfile::tempdir().map_err(|error| fault(format!("no temporary folder: {error}")))?;
        let index = folder.path().join("index");
        Ok((folder, index))
    }

    /// The tree of the folder as it is now.
    pub(crate) async fn snapshot(&self) -> Result<String, AgentError> {
        let (_folder, index) = self.index()?;
        if let Some(kept) = &self.kept_index {
            // Without one, or with a broken one, every file is read.
            let _ = std::fs::copy(kept, &index);
        }
        match self.snapshot_by(&index).await {
            Err(_) if index.exists() && self.kept_index.is_some() => {
                let _ = std::fs::remove_file(&index);
                self.snapshot_by(&index).await
            }
            made => made,
        }
    }

    async fn snapshot_by(&self, index: &Path) -> Result<String, AgentError> {
        let without: Vec<String> =
            self.litter.iter().map(|pattern| format!(":(exclude,glob)**/{pattern}")).collect();
        let mut arguments = vec!["add", "--all", "--", "."];
        arguments.extend(without.iter().map(String::as_str));
        self.git(index, &arguments).await?;
        let tree = self.word(index, &["write-tree"]).await?;
        if let Some(kept) = &self.kept_index {
            let copied = kept.with_extension(format!("new-{}", std::process::id()));
            // It saves time and nothing else.
            let _ = std::fs::copy(index, &copied).and_then(|_| std::fs::rename(&copied, kept));
        }
        Ok(tree)
    }

    /// What git prints, which is one word.
    async fn word(&self, index: &Path, arguments: &[&str]) -> Result<String, AgentError> {
        let output = self.git(index, arguments).await?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The tree of a revision.
    pub(crate) async fn tree_of(&self, revision: &str) -> Result<String, AgentError> {
        let (_folder, index) = self.index()?;
        let tree = format!("{revision}^{{tree}}");
        self.word(&index, &["rev-parse", "--verify", "--quiet", "--end-of-options", &tree])
            .await
            .map_err(|_| fault(format!("git knows no revision `{revision}`")))
    }

    /// The commit from which the last commit and a revision both come.
    pub(crate) async fn merge_base(&self, revision: &str) -> Result<String, AgentError> {
        let (_folder, index) = self.index()?;
        self.word(&index, &["merge-base", "--end-of-options", revision, "HEAD"]).await
    }

    /// The tree of no files.
    pub(crate) async fn empty_tree(&self) -> Result<String, AgentError> {
        let (_folder, index) = self.index()?;
        self.word(&index, &["hash-object", "-t", "tree", "-w", "--stdin"]).await
    }

    /// What lies between two trees, as a patch.
    pub(crate) async fn diff(&self, from: &str, to: &str) -> Result<String, AgentError> {
        let (_folder, index) = self.index()?;
        let arguments = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", from, to];
        let output = self.git(&index, &arguments).await?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes the folder what a tree holds. Files that are in the folder and not in the tree
    /// are removed, ignored ones left.
    pub(super) async fn restore(&self, tree: &str) -> Result<(), AgentError> {
        let now = self.snapshot().await?;
        if now == tree {
            return Ok(());
        }
        let (_folder, index) = self.index()?;
        self.git(&index, &["read-tree", &now]).await?;
        self.git(&index, &["read-tree", "--reset", "-u", tree]).await?;
        Ok(())
    }
}
