//! The folder that an agent works in: what it holds, as a hash, and what changed.
//!
//! Under git the hash is that of a tree with every tracked and untracked file and without the
//! ignored ones. Without git there is no hash: nothing is kept and everything is judged anew.

use std::path::{Path, PathBuf};

use crate::control::agent::{AgentError, Repository};

/// Our own files are never a part of what is judged.
const OWN: &[&str] = &[".venire/**"];
/// Bytes of changes beyond which no judge is asked.
const MOST: usize = 4 << 20;

/// What is wrong with a workspace.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The folder is not there.
    #[error("`{path}` is no folder that can be entered: {message}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The folder is not under git, and has to be.
    #[error("`{path}` is not under git: `git init` it, or judge a file")]
    NoGit {
        /// The folder.
        path: PathBuf,
    },
    /// Git refused.
    #[error("{0}")]
    Git(String),
    /// There is too much to judge.
    #[error("the changes have {bytes} bytes: expected at most {MOST}")]
    Huge {
        /// Their length.
        bytes: usize,
    },
}

impl From<AgentError> for WorkspaceError {
    fn from(error: AgentError) -> Self {
        Self::Git(error.detail)
    }
}

/// The folder that an agent works in.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    repository: Option<Repository>,
}

/// What changed in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The tree that they are told from.
    pub base: String,
    /// The tree now.
    pub tree: String,
    /// Them as a patch.
    pub text: String,
}

impl Workspace {
    /// The workspace that a folder belongs to: the git folder above it, or itself.
    ///
    /// # Errors
    /// When the folder is not there.
    pub fn find(directory: &Path) -> Result<Self, WorkspaceError> {
        let full = directory.canonicalize().map_err(|error| WorkspaceError::Folder {
            path: directory.to_owned(),
            message: error.to_string(),
        })?;
        if !full.is_dir() {
            let message = "it is a file".to_owned();
            return Err(WorkspaceError::Folder { path: directory.to_owned(), message });
        }
        let top = full.ancestors().find(|folder| folder.join(".git").exists());
        Ok(match top {
            Some(top) => Self {
                root: top.to_owned(),
                repository: Some(Repository::new(top.to_owned(), OWN)),
            },
            None => Self { root: full, repository: None },
        })
    }

    /// Keeps what is known of the files' times in a file, so that the next hash reads only
    /// what has changed.
    #[must_use]
    pub fn with_index(self, path: PathBuf) -> Self {
        Self { repository: self.repository.map(|own| own.with_index(path)), ..self }
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn repository(&self) -> Result<&Repository, WorkspaceError> {
        self.repository.as_ref().ok_or_else(|| WorkspaceError::NoGit { path: self.root.clone() })
    }

    /// The tree as it is now; `None` without git.
    ///
    /// # Errors
    /// When git refuses.
    pub async fn tree(&self) -> Result<Option<String>, WorkspaceError> {
        match &self.repository {
            Some(repository) => Ok(Some(repository.snapshot().await?)),
            None => Ok(None),
        }
    }

    /// The tree of the last commit, or the empty one before the first.
    ///
    /// # Errors
    /// When git refuses, and without git.
    pub async fn committed(&self) -> Result<String, WorkspaceError> {
        let repository = self.repository()?;
        match repository.tree_of("HEAD").await {
            Ok(tree) => Ok(tree),
            Err(_) => Ok(repository.empty_tree().await?),
        }
    }

    /// The tree where the work of now branched off from a revision.
    ///
    /// # Errors
    /// When there is no such revision, and without git.
    pub async fn branched(&self, revision: &str) -> Result<String, WorkspaceError> {
        let repository = self.repository()?;
        let base = repository.merge_base(revision).await;
        Ok(repository.tree_of(base.as_deref().unwrap_or(revision)).await?)
    }

    /// What changed between two trees.
    ///
    /// # Errors
    /// When git refuses, without git, and when it is more than any judge can read.
    pub async fn changes(&self, base: String, tree: String) -> Result<Changes, WorkspaceError> {
        let text = self.repository()?.diff(&base, &tree).await?;
        if text.len() > MOST {
            return Err(WorkspaceError::Huge { bytes: text.len() });
        }
        Ok(Changes { base, tree, text })
    }
}
