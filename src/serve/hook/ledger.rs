//! The ledger of a session: the counters that no host keeps, on disk.
//!
//! One file a session, replaced whole before the host is answered; a lock beside it lets one
//! hook of a session judge at a time. A ledger that can't be read or written is an error, and
//! the caller then forces nothing: what can't be counted can't be bounded.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::answer::Reply;
use super::host::Host;
use super::outcome::{Outcome, write_whole};

/// The version of the files.
const FORMAT: u32 = 1;
/// How often a lock that another hook holds is tried.
const PAUSE: Duration = Duration::from_millis(20);

/// A turn: what follows from one prompt of a person, or from one subagent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The host's id of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// Forced continuations.
    pub blocks: u32,
    /// Rejections in a row of what was rejected before.
    pub unchanged: u32,
    /// When the first continuation was forced, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_block_ms: Option<u64>,
    /// What was judged last: a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<String>,
    /// What the agent was told last, while it is made to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// The agent's words as they came last, from a host that sends all of a turn's each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// Whether a limit ended it: it forces nothing more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spent: bool,
}

/// The answer to the last event, for a second hook that was started with the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The payload's hash.
    pub payload: String,
    /// When it was given, in milliseconds since 1970.
    pub at_ms: u64,
    /// What was answered.
    pub reply: Reply,
}

/// What is known of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The version of the file.
    pub format: u32,
    /// The host.
    pub host: String,
    /// The host's id, or what stands for it.
    pub session: String,
    /// What the person asked for last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The tree that changes are told from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Prompts that the host told of.
    #[serde(default)]
    pub prompts: u32,
    /// The turn that goes on.
    #[serde(default)]
    pub turn: Turn,
    /// The subagents' own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Turn>,
    /// Forced continuations of all turns.
    #[serde(default)]
    pub blocks: u32,
    /// Judgements, those from the cache not counted.
    #[serde(default)]
    pub judgements: u32,
    /// Judgements from the cache.
    #[serde(default)]
    pub cached: u32,
    /// Hooks that were killed before they answered.
    #[serde(default)]
    pub lost: u32,
    /// Millionths of a US dollar.
    #[serde(default)]
    pub micro_dollars: u64,
    /// The panel of the first judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<String>,
    /// The answer to the last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// What was found last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Session {
    fn new(host: Host, session: &str) -> Self {
        Self {
            format: FORMAT,
            host: host.name().to_owned(),
            session: session.to_owned(),
            task: None,
            base: None,
            prompts: 0,
            turn: Turn::default(),
            agents: BTreeMap::new(),
            blocks: 0,
            judgements: 0,
            cached: 0,
            lost: 0,
            micro_dollars: 0,
            panel: None,
            answered: None,
            outcome: None,
        }
    }

    /// Whether a prompt is a hook's own words, which hosts pass on as one.
    #[must_use]
    pub fn is_own_words(&self, prompt: &str) -> bool {
        self.turn.told.as_ref().is_some_and(|told| prompt.contains(told.as_str()))
    }

    /// A person's prompt: a turn begins.
    pub fn begin(&mut self, prompt: Option<String>, id: Option<String>, base: Option<String>) {
        self.prompts = self.prompts.saturating_add(1);
        self.task = prompt;
        self.base = base;
        self.turn = Turn { prompt_id: id, ..Turn::default() };
        self.agents.clear();
    }

    /// The turn that an event belongs to. Counters go on while the agent is made to go on;
    /// what the host says of that is not asked.
    pub fn turn(&mut self, agent: Option<&str>, prompt_id: Option<&str>) -> &mut Turn {
        let tells_turns = self.prompts > 0 || prompt_id.is_some();
        let turn = match agent {
            Some(agent) => self.agents.entry(agent.to_owned()).or_default(),
            None => &mut self.turn,
        };
        let other = match (prompt_id, turn.prompt_id.as_deref()) {
            (Some(now), Some(before)) => now != before,
            _ => false,
        };
        let ended = turn.told.is_none() && !(turn.spent && tells_turns);
        if other || ended {
            *turn = Turn::default();
        }
        if turn.prompt_id.is_none() {
            turn.prompt_id = prompt_id.map(str::to_owned);
        }
        turn
    }
}

/// Why there is no ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// A file or folder can't be used.
    #[error("failed to {what} `{path}`")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds something else; it was moved aside.
    #[error("`{path}` is no ledger of a session and was moved to `{aside}`: {message}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where it is now.
        aside: PathBuf,
        /// Why.
        message: String,
    },
    /// Another hook of the session holds it.
    #[error("another hook of this session is still judging")]
    Busy,
}

/// The ledger of one session, locked until it is dropped.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    _lock: File,
    /// What it holds.
    pub session: Session,
}

impl Ledger {
    /// Opens the ledger of a session, waiting for other hooks of it until `until`.
    ///
    /// # Errors
    /// When it can't be read, is broken, or is not free in time.
    pub async fn open(
        folder: &Path,
        host: Host,
        session: &str,
        until: Instant,
    ) -> Result<Self, LedgerError> {
        let io = |what: &'static str, path: &Path| {
            let path = path.to_owned();
            move |source| LedgerError::Io { what, path, source }
        };
        let sessions = folder.join("sessions");
        std::fs::create_dir_all(&sessions).map_err(io("make the folder", &sessions))?;
        ignore_all(folder).map_err(io("write into", folder))?;
        let hash = blake3::hash(session.as_bytes()).to_hex();
        let path = sessions.join(format!("{}-{}.json", host.name(), &hash[..16]));
        let lock_path = path.with_extension("lock");
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true);
        let lock = options.open(&lock_path).map_err(io("open", &lock_path))?;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() + PAUSE < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(TryLockError::WouldBlock) => return Err(LedgerError::Busy),
                Err(TryLockError::Error(source)) => return Err(io("lock", &lock_path)(source)),
            }
        }
        let session = match std::fs::read_to_string(&path) {
            Ok(text) => read(&text).map_err(|message| {
                let aside = path.with_extension("broken");
                match std::fs::rename(&path, &aside) {
                    Ok(()) => LedgerError::Broken { path: path.clone(), aside, message },
                    Err(source) => io("move away", &path)(source),
                }
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Session::new(host, session)
            }
            Err(source) => return Err(io("read", &path)(source)),
        };
        Ok(Self { path, _lock: lock, session })
    }

    /// Writes what it holds now.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn save(&self) -> Result<(), LedgerError> {
        serde_json::to_string_pretty(&self.session)
            .map_err(std::io::Error::other)
            .and_then(|text| write_whole(&self.path, &text))
            .map_err(|source| LedgerError::Io { what: "write", path: self.path.clone(), source })
    }
}

/// Lets git ignore a folder of ours, so that an agent that adds everything does not commit it.
pub(super) fn ignore_all(folder: &Path) -> std::io::Result<()> {
    let ignore = folder.join(".gitignore");
    if ignore.exists() { Ok(()) } else { std::fs::write(&ignore, "*\n") }
}

fn read(text: &str) -> Result<Session, String> {
    let session: Session = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if session.format != FORMAT {
        return Err(format!("format {}, expected {FORMAT}", session.format));
    }
    Ok(session)
}

/// The sessions in a folder, the one that was answered last first. Files that are no ledgers
/// are left out.
///
/// # Errors
/// When the folder can't be read; a folder that is not there holds none.
pub fn session_files(folder: &Path) -> Result<Vec<Session>, LedgerError> {
    let folder = folder.join("sessions");
    let failed = |source| LedgerError::Io { what: "read", path: folder.clone(), source };
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut sessions = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        if let Ok(session) = read(&text) {
            sessions.push(session);
        }
    }
    let time = |session: &Session| {
        session.outcome.as_ref().and_then(|outcome| outcome.time.parse::<jiff::Timestamp>().ok())
    };
    sessions.sort_by(|a, b| time(b).cmp(&time(a)).then_with(|| a.session.cmp(&b.session)));
    Ok(sessions)
}
