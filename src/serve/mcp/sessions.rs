//! Outcomes of coding agents' hooks, as the verb `hook` keeps them: one file a session in
//! `hooks/sessions` beside the store.
//!
//! Only what is told on is read, so that a file of a newer version still says how it ended. A
//! file that can't be read is left out.

use std::path::Path;

use serde::Deserialize;

use crate::ruling::Decision;

/// A session of a host, with what was found last.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Session {
    /// The host.
    pub(super) host: String,
    /// The host's id of it.
    pub(super) session: String,
    /// What was found last.
    pub(super) outcome: Found,
}

/// What a hook found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Found {
    /// When, in UTC by RFC 3339.
    pub(super) time: String,
    /// What the panel decided; `None` where nothing was judged.
    #[serde(default)]
    pub(super) decision: Option<Decision>,
    /// Why the host was answered so.
    pub(super) cause: String,
    /// What the host was answered: `allow`, `block` or `end`.
    pub(super) answer: String,
    /// The panel's score.
    #[serde(default)]
    pub(super) score: Option<f64>,
}

/// The sessions in a folder of hooks; none where there is no such folder.
pub(super) fn kept(hooks: &Path) -> Vec<Session> {
    let Ok(files) = std::fs::read_dir(hooks.join("sessions")) else { return Vec::new() };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let ledgers = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    ledgers
        .filter_map(|path| serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok())
        .collect()
}
