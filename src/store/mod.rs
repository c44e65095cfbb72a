//! The store: runs, cases, replies, verdicts and rulings in one file.
//!
//! Everything that was paid for is kept as it came, so that reading, voting and calibrating
//! can be done again without asking anyone. What is on disk survives the death of the
//! process at any moment.

mod checkpoint;
mod claims;
mod file;
mod replies;
mod sqlite;
mod writer;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::claims::Claims;
pub use self::replies::Replies;
use self::sqlite::{Database, ReplyReader};
pub use self::writer::Writer;
use crate::case::Case;
use crate::ruling::Ruling;
use crate::verdict::Verdict;

/// Where the store is, when nothing else is said.
pub const DEFAULT_PATH: &str = ".venire/store.db";

/// What stands in [`RunRecord::data`] where no data set was judged, but answers one by one as
/// `venire mcp` was asked. Such a run can't be gone on with.
pub const ONE_BY_ONE: &str = "(venire mcp)";

/// What can go wrong with the store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder for the file can't be made.
    #[error("failed to make the folder of `{path}`: {message}")]
    Folder {
        /// The store's file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The file is not there.
    #[error(
        "there is no store at `{path}`: `venire run` makes one, or name another with `--store`{}",
        loops_beside(.path)
    )]
    Missing {
        /// The file looked for.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "`{path}` is a store of format {found}, and this program reads up to format {supported}: use the venire that wrote it, or another file with `--store`"
    )]
    Version {
        /// The store's file.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The newest version understood.
        supported: i64,
    },
    /// The file can't be opened.
    #[error("failed to open the store `{path}`: {message}")]
    Open {
        /// The store's file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The file is something else.
    #[error("`{path}` is no venire store: {what}; name another file with `--store`")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// The file or its folder can't be written to.
    #[error(
        "the store `{path}` can't be written to: the file, its folder or the disk is read-only"
    )]
    ReadOnly {
        /// The store's file.
        path: PathBuf,
    },
    /// Another program holds the file.
    #[error(
        "the store `{path}` has been locked by another program for {seconds} s: try again when that is done"
    )]
    Busy {
        /// The store's file.
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// There is no room.
    #[error("no room is left on the disk of the store `{path}`")]
    Full {
        /// The store's file.
        path: PathBuf,
    },
    /// The file holds what no store can hold.
    #[error("the store `{path}` is damaged: {message}")]
    Damaged {
        /// The store's file.
        path: PathBuf,
        /// In the database's words.
        message: String,
    },
    /// The database refused.
    #[error("the store `{path}` refused: {message}")]
    Database {
        /// The store's file.
        path: PathBuf,
        /// In its own words.
        message: String,
    },
    /// A row does not hold what it should.
    #[error("a {what} in the store `{path}` can't be read: {message}")]
    Corrupt {
        /// The store's file.
        path: PathBuf,
        /// Verdict, ruling, case or reply.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// The writer's thread could not be started.
    #[error("failed to start the store's writer: {message}")]
    Start {
        /// Why.
        message: String,
    },
    /// A row can't be written as JSON.
    #[error("a {what} can't be written as JSON: {message}")]
    Unwritable {
        /// Verdict, ruling or case.
        what: &'static str,
        /// Why.
        message: String,
    },
    /// The writer has ended, after a fault that it reported.
    #[error("the store's writer has ended: {message}")]
    Ended {
        /// The fault that ended it.
        message: String,
    },
    /// Several runs have an id that starts so.
    #[error("{count} runs have an id that starts with `{id}`: write more of it")]
    AmbiguousRun {
        /// The beginning of an id.
        id: String,
        /// How many begin so.
        count: usize,
    },
    /// No case of the run has this id, nor one that begins or ends so.
    #[error("run `{run}` has no case `{id}`{near}")]
    NoSuchCase {
        /// The run's id.
        run: String,
        /// The id looked for.
        id: String,
        /// The id that was likely meant, in words; empty without one.
        near: String,
    },
    /// Several cases have an id that begins or ends so.
    #[error(
        "{count} cases have an id that begins or ends with `{id}`, such as {examples}: write more of it"
    )]
    AmbiguousCase {
        /// The part of an id.
        id: String,
        /// How many there are.
        count: usize,
        /// The first few.
        examples: String,
    },
    /// No run has this id.
    #[error("no run `{id}` in `{path}`: `venire list runs` shows them")]
    NoSuchRun {
        /// The id looked for.
        id: String,
        /// The store's file.
        path: PathBuf,
    },
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Being judged, or its process died.
    Running,
    /// Stopped before its end; can be resumed.
    Interrupted,
    /// Every case has a ruling.
    Finished,
}

impl RunState {
    /// The name in the store and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Finished => "finished",
        }
    }

    fn from_name(name: &str) -> Self {
        match name {
            "finished" => Self::Finished,
            "interrupted" => Self::Interrupted,
            _ => Self::Running,
        }
    }
}

/// A run as the store knows it.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Its number in this store.
    #[serde(skip)]
    pub number: i64,
    /// Its id.
    pub id: String,
    /// When it was started, in UTC by RFC 3339.
    pub created: String,
    /// How far it has come.
    pub state: RunState,
    /// The panel's name.
    pub panel_name: String,
    /// What the panel was, exactly.
    pub panel_fingerprint: String,
    /// The panel's configuration, as JSON.
    #[serde(skip)]
    pub panel: String,
    /// The data set, as it was named.
    pub data: String,
    /// The data set's content.
    pub data_hash: String,
    /// Options that shape the run, as JSON.
    #[serde(skip)]
    pub options: String,
    /// The summary, as JSON, once the run has ended or was interrupted.
    #[serde(skip)]
    pub summary: Option<String>,
}

/// How many rulings of a run have each decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Cases accepted.
    pub accepted: u64,
    /// Cases rejected.
    pub rejected: u64,
    /// Cases without a decision.
    pub undecided: u64,
    /// The last position with a ruling; `None` before there is one.
    pub last: Option<u64>,
}

impl StoreError {
    /// Whether it is about which file was named, and not about what became of a good one.
    #[must_use]
    pub fn is_wrong_path(&self) -> bool {
        match self {
            Self::Folder { .. }
            | Self::Missing { .. }
            | Self::Version { .. }
            | Self::Open { .. }
            | Self::Foreign { .. }
            | Self::ReadOnly { .. }
            | Self::AmbiguousRun { .. }
            | Self::AmbiguousCase { .. }
            | Self::NoSuchCase { .. }
            | Self::NoSuchRun { .. } => true,
            Self::Busy { .. }
            | Self::Full { .. }
            | Self::Damaged { .. }
            | Self::Database { .. }
            | Self::Corrupt { .. }
            | Self::Start { .. }
            | Self::Unwritable { .. }
            | Self::Ended { .. } => false,
        }
    }
}

/// A store for reading; [`Store::writer`] starts the one that writes.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: Database,
}

/// Where loops are kept when there are some: they need no store.
fn loops_beside(store: &Path) -> String {
    let folder = store.parent().unwrap_or(Path::new("")).join("loops");
    if folder.is_dir() {
        format!("; loops are kept in `{}`: `venire list runs` shows them", folder.display())
    } else {
        String::new()
    }
}

impl Store {
    /// Opens a store for writing, making the file where it is not there.
    ///
    /// # Errors
    /// When the file can't be made or opened, is of a newer version, or is no store: another
    /// program's database is left as it is.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| StoreError::Folder {
                path: path.to_owned(),
                message: error.to_string(),
            })?;
        }
        Ok(Self { path: path.to_owned(), database: Database::create(path)? })
    }

    /// Opens a store that must be there, for reading: nothing of the file is changed, and it
    /// and its folder may be read-only.
    ///
    /// # Errors
    /// When the file is not there, can't be opened, is of a newer version, or is no store.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { path: path.to_owned(), database: Database::read(path)? })
    }

    /// Opens a store that must be there, for writing.
    ///
    /// # Errors
    /// As [`Store::open`], and where it can't be written to.
    pub fn open_for_writing(path: &Path) -> Result<Self, StoreError> {
        drop(Self::open(path)?);
        Self::create(path)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the thread that writes; it ends when its last handle is dropped.
    ///
    /// # Errors
    /// When the file can't be opened for writing.
    pub fn writer(&self) -> Result<Writer, StoreError> {
        Writer::start(Database::create(&self.path)?)
    }

    /// The store's replies, for a run: kept through `writer`. With a `scope`, only replies
    /// recorded under the same scope are found (`--no-cache`).
    ///
    /// # Errors
    /// When the file can't be opened for reading.
    pub fn replies(&self, writer: &Writer, scope: Option<&str>) -> Result<Replies, StoreError> {
        let claims = Claims::beside(&self.path);
        Ok(Replies::new(ReplyReader::open(&self.path)?, writer.clone(), scope, claims))
    }

    /// Adds a run and gives its number.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn add_run(&mut self, run: &RunRecord) -> Result<i64, StoreError> {
        self.database.insert_run(run)
    }

    /// All runs, the newest first.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        self.database.runs()
    }

    /// The run with this id, or with an id that starts so when only one does; `latest` is
    /// the newest.
    ///
    /// # Errors
    /// When there is none.
    pub fn run(&self, id: &str) -> Result<RunRecord, StoreError> {
        let mut runs = self.runs()?;
        if id == "latest" && !runs.is_empty() {
            return Ok(runs.swap_remove(0));
        }
        if let Some(at) = runs.iter().position(|run| run.id == id) {
            return Ok(runs.swap_remove(at));
        }
        let starting: Vec<usize> =
            (0..runs.len()).filter(|i| !id.is_empty() && runs[*i].id.starts_with(id)).collect();
        match starting.as_slice() {
            [at] => Ok(runs.swap_remove(*at)),
            [] => Err(StoreError::NoSuchRun { id: id.to_owned(), path: self.path.clone() }),
            more => Err(StoreError::AmbiguousRun { id: id.to_owned(), count: more.len() }),
        }
    }

    /// The place of the case with this id, or with an id that begins or ends so when only one
    /// does.
    ///
    /// # Errors
    /// When there is none, or several.
    pub fn position(&self, run: &RunRecord, id: &str) -> Result<u64, StoreError> {
        let mut exact = None;
        let mut partial: Vec<(u64, String)> = Vec::new();
        let mut count = 0;
        let mut nearest: Option<(f64, String)> = None;
        self.each_case(run.number, |position, name| {
            if name == id {
                exact.get_or_insert(position);
            } else if !id.is_empty() && (name.starts_with(id) || name.ends_with(id)) {
                count += 1;
                if partial.len() < 3 {
                    partial.push((position, name));
                }
            } else {
                let likeness = strsim::jaro_winkler(id, &name);
                if likeness > 0.85 && nearest.as_ref().is_none_or(|(best, _)| likeness > *best) {
                    nearest = Some((likeness, name));
                }
            }
            Ok(())
        })?;
        match (exact, partial.as_slice()) {
            (Some(position), _) => Ok(position),
            (None, [(position, _)]) => Ok(*position),
            (None, []) => Err(StoreError::NoSuchCase {
                run: run.id.clone(),
                id: id.to_owned(),
                near: nearest
                    .map(|(_, name)| format!("; did you mean `{name}`?"))
                    .unwrap_or_default(),
            }),
            (None, some) => Err(StoreError::AmbiguousCase {
                id: id.to_owned(),
                count,
                examples: some
                    .iter()
                    .map(|(_, name)| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// A case of a run.
    ///
    /// # Errors
    /// When the store refuses or the row can't be read.
    pub fn case(&self, run: i64, position: u64) -> Result<Option<Case>, StoreError> {
        let Some((_, body)) = self.database.case(run, position)? else { return Ok(None) };
        self.parse("case", &body).map(Some)
    }

    /// The verdicts on a case, by seat and sample.
    ///
    /// # Errors
    /// When the store refuses or a row can't be read.
    pub fn verdicts(&self, run: i64, position: u64) -> Result<Vec<Verdict>, StoreError> {
        let bodies = self.database.verdicts(run, position)?;
        bodies.iter().map(|body| self.parse("verdict", body)).collect()
    }

    /// The ruling on a case, its verdicts included; `None` before it has one.
    ///
    /// # Errors
    /// When the store refuses or a row can't be read.
    pub fn ruling(&self, run: i64, position: u64) -> Result<Option<Ruling>, StoreError> {
        let Some(body) = self.database.ruling(run, position)? else { return Ok(None) };
        let mut ruling: Ruling = self.parse("ruling", &body)?;
        ruling.verdicts = self.verdicts(run, position)?;
        Ok(Some(ruling))
    }

    /// How many rulings of a run have each decision.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn decisions(&self, run: i64) -> Result<Decisions, StoreError> {
        self.database.decisions(run)
    }

    /// Calls `each` with the position and id of every case of a run, in the data's order.
    ///
    /// # Errors
    /// When the store refuses, or `each` does.
    pub fn each_case<E: From<StoreError>>(
        &self,
        run: i64,
        each: impl FnMut(u64, String) -> Result<(), E>,
    ) -> Result<(), E> {
        self.database.each_case(run, each)
    }

    /// US dollars that processes have paid for the verdicts of a run; those answered from the
    /// store were paid for elsewhere.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn spent_usd(&self, run: i64) -> Result<f64, StoreError> {
        self.database.spent_usd(run)
    }

    /// How many replies are kept, and their bytes.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn reply_statistics(&self) -> Result<(u64, u64), StoreError> {
        self.database.reply_statistics()
    }

    /// Forgets the replies kept before a time (seconds since 1970), and says how many.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn delete_replies(&mut self, before: i64) -> Result<u64, StoreError> {
        let deleted = self.database.delete_replies(before)?;
        // They are forgotten; a disk that is full, or a run that is going on, only keeps their
        // room from being given back.
        if let Err(error) = self.database.vacuum() {
            tracing::warn!("the room of forgotten replies is not given back yet: {error}");
        }
        Ok(deleted)
    }

    /// Forgets a run with its cases, verdicts and rulings; replies stay.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn delete_run(&self, number: i64) -> Result<(), StoreError> {
        self.database.delete_run(number)
    }

    fn parse<T: serde::de::DeserializeOwned>(
        &self,
        what: &'static str,
        body: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(body).map_err(|error| StoreError::Corrupt {
            path: self.path.clone(),
            what,
            message: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests;
