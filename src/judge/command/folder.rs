//! The folder of one case: its files, a copy of the template, and a home; removed after.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::case::Case;

/// Which files the checks ask for by name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub(super) expected: bool,
    pub(super) case: bool,
}

/// A case's folder. The reference answer lies in it only where a check names it, so that a
/// program under judgement does not find it by looking around.
#[derive(Debug)]
pub(super) struct CaseFolder {
    root: tempfile::TempDir,
    pub(super) work: PathBuf,
    pub(super) output: PathBuf,
    pub(super) input: Option<PathBuf>,
    pub(super) expected: Option<PathBuf>,
    pub(super) case: Option<PathBuf>,
}

impl CaseFolder {
    /// Writes a case's files.
    ///
    /// # Errors
    /// When something can't be written, or the template holds what is no file, folder or link.
    pub(super) fn new(
        case: &Case,
        output: &str,
        output_name: &str,
        files: Option<&Path>,
        wanted: Wanted,
    ) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("venire-").tempdir()?;
        // macOS hands out a link; programs print the real path.
        let top = root.path().canonicalize()?;
        let work = top.join("work");
        fs::create_dir(&work)?;
        if let Some(files) = files {
            copy(files, &work)?;
        }
        let output_path = work.join(output_name);
        write_below(&work, &output_path, output)?;
        let beside = top.join("case");
        fs::create_dir(&beside)?;
        let write = |name: &str, text: &str| -> io::Result<Option<PathBuf>> {
            let path = beside.join(name);
            fs::write(&path, text)?;
            Ok(Some(path))
        };
        let input = case.input.as_deref().map_or(Ok(None), |text| write("input.txt", text))?;
        let expected = match &case.expected {
            Some(text) if wanted.expected => write("expected.txt", text)?,
            _ => None,
        };
        let case =
            if wanted.case { write("case.json", &serde_json::to_string(case)?)? } else { None };
        Ok(Self { work, output: output_path, input, expected, case, root })
    }

    pub(super) fn top(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap_or_else(|_| self.root.path().to_owned())
    }

    /// The text without the folder's own random name, so that the same failure reads the
    /// same each time.
    pub(super) fn without_paths(&self, text: &str) -> String {
        let work = self.work.to_string_lossy();
        let top = self.top();
        let top = top.to_string_lossy();
        text.replace(&format!("{work}/"), "").replace(&*work, ".").replace(&format!("{top}/"), "")
    }
}

/// Writes the output over whatever the template has in its place, and never through a link.
fn write_below(work: &Path, path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
        if !parent.canonicalize()?.starts_with(work) {
            return Err(io::Error::other("`output_name` leads out of the case's folder by a link"));
        }
    }
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path)?;
    }
    fs::write(path, text)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy(&source, &target)?;
        } else if kind.is_symlink() {
            link(&fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        } else {
            let text = format!("`{}` is no file, folder or link", source.display());
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(to: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::other(format!("links are not copied on this system: `{}`", to.display())))
}
