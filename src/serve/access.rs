//! Who may ask, for every server here: bearer tokens, this machine's own addresses, names of
//! hosts.
//!
//! A token is kept as its hash only, and hashes are compared in constant time.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

/// The shortest token: with fewer characters it could be guessed.
const LEAST: usize = 16;

/// Tokens that are let in; none at all lets everybody in.
#[derive(Clone, Default)]
pub struct Tokens(Vec<blake3::Hash>);

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// Why tokens can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file can't be read.
    #[error("failed to read the tokens in `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds none.
    #[error("`{path}` holds no token: expected one a line")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A token that could be guessed.
    #[error(
        "a token of {place} has {length} characters: expected at least {LEAST}, without blanks, such as `openssl rand -hex 32` prints"
    )]
    Weak {
        /// The file or variable.
        place: String,
        /// Its length.
        length: usize,
    },
}

impl Tokens {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one token; `place` names where it stands.
    ///
    /// # Errors
    /// When it could be guessed, or holds a blank or a control character.
    pub fn add(&mut self, token: &str, place: &str) -> Result<(), TokenError> {
        let length = token.chars().count();
        if length < LEAST || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(TokenError::Weak { place: place.to_owned(), length });
        }
        self.0.push(blake3::hash(token.as_bytes()));
        Ok(())
    }

    /// Adds the tokens of a file: one a line; empty lines and those that begin with `#` are
    /// left out.
    ///
    /// # Errors
    /// When the file can't be read, holds none, or one that could be guessed.
    pub fn read(&mut self, path: &Path) -> Result<(), TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        let tokens = text.lines().map(str::trim);
        let mut tokens =
            tokens.filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
        if tokens.peek().is_none() {
            return Err(TokenError::Empty { path: path.to_owned() });
        }
        let place = format!("`{}`", path.display());
        tokens.try_for_each(|token| self.add(token, &place))
    }

    /// Whether a token is one of them. Every one is looked at, so that time tells nothing.
    #[must_use]
    pub fn admit(&self, token: &str) -> bool {
        let given = blake3::hash(token.as_bytes());
        self.0.iter().fold(false, |found, own| (*own == given) | found)
    }
}

/// The token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether only this machine reaches an address.
pub(super) fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(v6.is_loopback(), |v4| v4.is_loopback()),
    }
}

/// Whether a text can be a host's name, without a port.
pub(super) fn is_host_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn a_token_is_admitted_whole_or_not_at_all() {
        let mut tokens = Tokens::default();
        tokens.add(TOKEN, "test").unwrap();
        tokens.add("another-token-of-mine", "test").unwrap();
        assert!(tokens.admit(TOKEN) && tokens.admit("another-token-of-mine"));
        for other in ["", &TOKEN[..15], "0123456789abcdef0", "0123456789ABCDEF"] {
            assert!(!tokens.admit(other), "{other}");
        }
        assert!(!format!("{tokens:?}").contains(TOKEN));
    }

    #[test]
    fn a_file_holds_one_a_line_and_weak_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, format!("# team a\n\n {TOKEN} \n")).unwrap();
        let mut tokens = Tokens::default();
        tokens.read(&path).unwrap();
        assert!(tokens.admit(TOKEN));
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(matches!(Tokens::default().read(&path), Err(TokenError::Empty { .. })));
        std::fs::write(&path, "short").unwrap();
        let error = Tokens::default().read(&path).unwrap_err().to_string();
        assert!(error.contains("5 characters") && !error.contains("short "), "{error}");
        let error = Tokens::default().add("with a blank inside", "x").unwrap_err();
        assert!(matches!(error, TokenError::Weak { .. }));
    }
}
