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
pub(super) struct Repository {
    directory: PathBuf,
    /// Patterns of files that are never looked at nor touched.
    litter: &'static [&'static str],
}

fn fault(detail: impl Into<String>) -> AgentError {
    AgentError::failed(Status::Internal, detail)
}

impl Repository {
    pub(super) fn new(directory: PathBuf, litter: &'static [&'static str]) -> Self {
        Self { directory, litter }
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
    pub(super) async fn snapshot(&self) -> Result<String, AgentError> {
        let (_folder, index) = self.index()?;
        let without: Vec<String> =
            self.litter.iter().map(|pattern| format!(":(exclude,glob)**/{pattern}")).collect();
        let mut arguments = vec!["add", "--all", "--", "."];
        arguments.extend(without.iter().map(String::as_str));
        self.git(&index, &arguments).await?;
        let output = self.git(&index, &["write-tree"]).await?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What lies between two trees, as a patch.
    pub(super) async fn diff(&self, from: &str, to: &str) -> Result<String, AgentError> {
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
