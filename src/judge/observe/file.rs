//! Expectations of a file.

use std::io;
use std::path::{Path, PathBuf};

use super::text::TextRules;
use super::{Expectation, Seen, SizeRange};
use crate::case::Case;
use crate::judge::{BuildContext, BuildError};

/// Bytes of a file that texts are looked for in; hashes have no limit.
const TEXT_LIMIT: u64 = 64 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct FileTarget {
    base: PathBuf,
    path: String,
    exists: bool,
    size: Option<SizeRange>,
    sha256: Option<String>,
    blake3: Option<String>,
    rules: TextRules,
}

impl FileTarget {
    pub(super) fn build(
        spec: &Expectation,
        path: &str,
        rules: TextRules,
        field: &str,
        context: &BuildContext,
    ) -> Result<Self, BuildError> {
        let at = |key: &str| format!("{field}.{key}");
        if path.is_empty() {
            return Err(BuildError::invalid(at("file"), "expected a path, found none"));
        }
        let exists = spec.exists.unwrap_or(true);
        let says_more = spec.size.is_some()
            || spec.sha256.is_some()
            || spec.blake3.is_some()
            || !rules.is_empty();
        if !exists && says_more {
            let reason = "a file that must not exist has no content: state one or the other";
            return Err(BuildError::invalid(at("exists"), reason));
        }
        if let Some(SizeRange { min, max }) = spec.size {
            let reason = match (min, max) {
                (None, None) => Some("expected `min`, `max` or both"),
                (Some(min), Some(max)) if min > max => Some("`min` is above `max`"),
                _ => None,
            };
            if let Some(reason) = reason {
                return Err(BuildError::invalid(at("size"), reason));
            }
        }
        for (key, digits) in [("sha256", &spec.sha256), ("blake3", &spec.blake3)] {
            let Some(digits) = digits else { continue };
            if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(BuildError::invalid(at(key), "expected 64 hexadecimal digits"));
            }
        }
        Ok(Self {
            base: context.base.clone(),
            path: path.to_owned(),
            exists,
            size: spec.size,
            sha256: spec.sha256.as_ref().map(|digits| digits.to_ascii_lowercase()),
            blake3: spec.blake3.as_ref().map(|digits| digits.to_ascii_lowercase()),
            rules,
        })
    }

    pub(super) async fn look(&self, case: &Case) -> Seen {
        let path = match resolve(&self.base, &self.path, &case.id) {
            Ok(path) => path,
            Err(why) => return Seen::Unable(why),
        };
        let target = self.clone();
        let look = tokio::task::spawn_blocking(move || target.look_at(&path));
        look.await.unwrap_or_else(|error| Seen::Unable(error.to_string()))
    }

    fn look_at(&self, path: &Path) -> Seen {
        let data = match path.metadata() {
            Ok(data) => data,
            Err(error) if is_absent(&error) => {
                return if self.exists {
                    Seen::Unmet("does not exist".to_owned())
                } else {
                    Seen::Met
                };
            }
            Err(error) => return Seen::Unable(error.to_string()),
        };
        if !self.exists {
            return Seen::Unmet("exists, expected that it does not".to_owned());
        }
        let reads = self.sha256.is_some() || self.blake3.is_some() || !self.rules.is_empty();
        if (self.size.is_some() || reads) && !data.is_file() {
            return Seen::Unmet("is not a file".to_owned());
        }
        if let Some(SizeRange { min, max }) = self.size {
            let size = data.len();
            if min.is_some_and(|min| size < min) {
                return Seen::Unmet(format!(
                    "has {size} bytes, expected at least {}",
                    min.unwrap_or(0)
                ));
            }
            if let Some(max) = max.filter(|max| size > *max) {
                return Seen::Unmet(format!("has {size} bytes, expected at most {max}"));
            }
        }
        if !reads {
            Seen::Met
        } else {
            self.look_inside(path, data.len()).unwrap_or_else(|error| {
                if is_absent(&error) {
                    Seen::Unmet("does not exist".to_owned())
                } else {
                    Seen::Unable(error.to_string())
                }
            })
        }
    }

    fn look_inside(&self, path: &Path, size: u64) -> io::Result<Seen> {
        if let Some(wanted) = &self.blake3 {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(std::fs::File::open(path)?)?;
            let found = hasher.finalize().to_hex().to_string();
            if found != *wanted {
                return Ok(Seen::Unmet(format!("has the BLAKE3 {found}, expected {wanted}")));
            }
        }
        if let Some(wanted) = &self.sha256 {
            let found = sha256(std::fs::File::open(path)?)?;
            if found != *wanted {
                return Ok(Seen::Unmet(format!("has the SHA-256 {found}, expected {wanted}")));
            }
        }
        if self.rules.is_empty() {
            return Ok(Seen::Met);
        }
        if size > TEXT_LIMIT {
            return Ok(Seen::Unable(format!("it is longer than {TEXT_LIMIT} bytes")));
        }
        Ok(self.rules.look(&std::fs::read(path)?))
    }
}

/// The path of a target for one case.
fn resolve(base: &Path, path: &str, id: &str) -> Result<PathBuf, String> {
    if !path.contains("{id}") {
        return Ok(base.join(path));
    }
    if id.is_empty() || id == "." || id == ".." || id.contains(['/', '\\', '\0']) {
        return Err(format!("the id `{id}` can't be a part of a file's name"));
    }
    Ok(base.join(path.replace("{id}", id)))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn sha256(mut reader: impl io::Read) -> io::Result<String> {
    use sha2::{Digest, Sha256};
    use std::fmt::Write;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
    }
    let mut digits = String::new();
    for byte in hasher.finalize() {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sha256_of_abc_is_that_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(super::sha256(&b"abc"[..]).unwrap(), expected);
    }
}
