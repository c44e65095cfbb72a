//! Programs and files that a configuration names: found when the judge is built, and hashed
//! where they are part of what makes the judge that judge.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::judge::{BuildContext, BuildError};

/// Finds a program: with a path separator in its name relative to the configuration (then
/// to `folders`), else on `PATH`.
pub(crate) fn find_program(
    name: &str,
    field: &str,
    context: &BuildContext,
    folders: &[&Path],
) -> Result<PathBuf, BuildError> {
    if name.is_empty() {
        return Err(BuildError::invalid(field, "expected a program, found an empty text"));
    }
    let (places, where_from): (Vec<PathBuf>, String) = if name.contains(std::path::is_separator) {
        let base = std::path::absolute(&context.base).unwrap_or_else(|_| context.base.clone());
        let mut places = vec![base.join(name)];
        places.extend(folders.iter().map(|folder| folder.join(name)));
        let shown: Vec<String> = places.iter().map(|p| format!("`{}`", p.display())).collect();
        (places, shown.join(" and "))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        (std::env::split_paths(&path).map(|folder| folder.join(name)).collect(), "PATH".to_owned())
    };
    if let Some(found) = places.iter().find(|place| is_executable(place)) {
        return Ok(found.clone());
    }
    let reason = match places.iter().find(|place| place.is_file()) {
        Some(file) => format!("`{}` is not executable: `chmod +x` it", file.display()),
        None => format!(
            "program `{name}` not found: looked in {where_from}; install it, or give its path from the panel's folder, such as `./{name}`"
        ),
    };
    Err(BuildError::invalid(field, reason))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// What of one argument makes a judge that judge: its text, and where it names a file below
/// the configuration's folder, that file's content. Programs of the system count by name:
/// their bytes differ between machines on which they do the same.
pub(crate) fn file_identity(argument: &str, context: &BuildContext) -> Value {
    let inside = || -> Option<String> {
        let base = context.base.canonicalize().ok()?;
        let file = context.resolve(Path::new(argument)).canonicalize().ok()?;
        if !file.is_file() || !file.starts_with(&base) {
            return None;
        }
        content_hash(&file).ok()
    };
    match inside() {
        Some(hash) => json!({ "argument": argument, "content": hash }),
        None => json!(argument),
    }
}

/// A hash of a folder's files: relative paths and contents, in path order.
///
/// # Errors
/// When something in it can't be read.
pub(crate) fn folder_identity(folder: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        if file.is_symlink() {
            hasher.update(std::fs::read_link(&file)?.to_string_lossy().as_bytes());
        } else {
            hasher.update(content_hash(&file)?.as_bytes());
        }
    }
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn content_hash(file: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(file)?)?;
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}
