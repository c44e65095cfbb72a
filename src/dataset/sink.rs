//! Where bytes end up: standard output, or a file that appears only when it is whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Standard output, or a temporary file that takes its name in [`Sink::finish`]. Dropping it
/// before leaves nothing behind, and what stood in its place as it was.
pub(crate) enum Sink {
    File { temporary: NamedTempFile, path: PathBuf },
    Stdout(io::Stdout),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { temporary, .. } => temporary.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { temporary, .. } => temporary.flush(),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}

impl Sink {
    /// A temporary file beside the one that `path` is or links to, with its permissions.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let path = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error),
        };
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".venire-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // A temporary file is its owner's alone unless told otherwise; the umask still
            // holds.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary = builder.tempfile_in(folder)?;
        if let Ok(metadata) = std::fs::metadata(&path) {
            temporary.as_file().set_permissions(metadata.permissions())?;
        }
        Ok(Self::File { temporary, path })
    }

    /// Puts the file in place.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut stdout) => stdout.flush(),
            Self::File { temporary, path } => {
                temporary.as_file().sync_all()?;
                temporary.persist(path).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}
