//! The database under the store: every line of SQL, and the only file that names its crate.
//!
//! One file in WAL mode: one connection writes, any number read. Rows hold their facts as
//! JSON beside the few columns that are searched or counted, so that other tools can open
//! the file and queries stay simple.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use super::{RunRecord, RunState, StoreError};

/// The version of the tables; a file with another one is refused.
const SCHEMA_VERSION: i64 = 2;

// Tables with rowids throughout: a row of a table without may hold a quarter of a page, and
// what is longer takes a page of its own.
const SCHEMA: &str = "
CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created TEXT NOT NULL,
    state TEXT NOT NULL,
    panel_name TEXT NOT NULL,
    panel_fingerprint TEXT NOT NULL,
    panel TEXT NOT NULL,
    data TEXT NOT NULL,
    data_hash TEXT NOT NULL,
    options TEXT NOT NULL,
    summary TEXT
);
CREATE TABLE cases (
    run INTEGER NOT NULL REFERENCES runs(number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, position)
);
CREATE TABLE verdicts (
    run INTEGER NOT NULL REFERENCES runs(number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    seat INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    status TEXT NOT NULL,
    score REAL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, position, seat, sample)
);
CREATE TABLE rulings (
    run INTEGER NOT NULL REFERENCES runs(number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    decision TEXT NOT NULL,
    score REAL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, position)
);
CREATE TABLE replies (
    key BLOB PRIMARY KEY,
    created INTEGER NOT NULL,
    body TEXT NOT NULL
);
";

/// One thing to write.
#[derive(Debug)]
pub(super) enum Row {
    Case {
        run: i64,
        position: u64,
        id: String,
        body: String,
    },
    Verdict {
        run: i64,
        position: u64,
        seat: u32,
        sample: u32,
        status: &'static str,
        score: Option<f64>,
        body: String,
    },
    Ruling {
        run: i64,
        position: u64,
        decision: &'static str,
        score: Option<f64>,
        body: String,
    },
    Reply {
        key: [u8; 32],
        body: String,
    },
    RunState {
        run: i64,
        state: RunState,
        summary: Option<String>,
    },
}

/// A connection.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database { message: error.to_string() }
    }
}

impl Database {
    /// Opens the file for writing, making it and its tables where they are not there.
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        let mut database = Self::prepared(connection)?;
        database.connection.pragma_update(None, "journal_mode", "WAL")?;
        database.connection.pragma_update(None, "synchronous", "NORMAL")?;
        // In pages of 4 KiB: fewer copies of the same page into the file.
        database.connection.pragma_update(None, "wal_autocheckpoint", 8000)?;
        // In KiB: keys of replies are spread over the whole table, so its pages are all warm.
        database.connection.pragma_update(None, "cache_size", -16384)?;
        database.migrate(path)?;
        Ok(database)
    }

    /// Opens the file for reading.
    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::prepared(Connection::open_with_flags(path, flags)?)
    }

    fn prepared(connection: Connection) -> Result<Self, StoreError> {
        // Another process may hold the write lock for the length of one batch.
        connection.busy_timeout(Duration::from_secs(5))?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self { connection })
    }

    fn migrate(&mut self, path: &Path) -> Result<(), StoreError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match version {
            0 => {
                transaction.execute_batch(SCHEMA)?;
                transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
                transaction.commit()?;
                Ok(())
            }
            SCHEMA_VERSION => Ok(()),
            found => {
                Err(StoreError::Version { path: path.to_owned(), found, supported: SCHEMA_VERSION })
            }
        }
    }

    /// Writes a batch: all of it or nothing.
    pub(super) fn write(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        // A deferred transaction that starts with a read can't wait for another writer.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for row in rows {
            match row {
                Row::Case { run, position, id, body } => {
                    transaction
                        .prepare_cached("INSERT OR REPLACE INTO cases VALUES (?1, ?2, ?3, ?4)")?
                        .execute(params![run, position, id, body])?;
                }
                Row::Verdict { run, position, seat, sample, status, score, body } => {
                    transaction
                        .prepare_cached(
                            "INSERT OR REPLACE INTO verdicts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                        )?
                        .execute(params![run, position, seat, sample, status, score, body])?;
                }
                Row::Ruling { run, position, decision, score, body } => {
                    transaction
                        .prepare_cached(
                            "INSERT OR REPLACE INTO rulings VALUES (?1, ?2, ?3, ?4, ?5)",
                        )?
                        .execute(params![run, position, decision, score, body])?;
                }
                Row::Reply { key, body } => {
                    transaction
                        .prepare_cached(
                            "INSERT OR REPLACE INTO replies VALUES (?1, unixepoch(), ?2)",
                        )?
                        .execute(params![key.as_slice(), body])?;
                }
                Row::RunState { run, state, summary } => {
                    transaction
                        .prepare_cached(
                            "UPDATE runs SET state = ?2, summary = COALESCE(?3, summary) WHERE number = ?1",
                        )?
                        .execute(params![run, state.name(), summary])?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Adds a run and gives its number.
    pub(super) fn insert_run(&mut self, run: &RunRecord) -> Result<i64, StoreError> {
        self.connection.execute(
            "INSERT INTO runs (id, created, state, panel_name, panel_fingerprint, panel, data, data_hash, options)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                run.id, run.created, run.state.name(), run.panel_name, run.panel_fingerprint,
                run.panel, run.data, run.data_hash, run.options
            ],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    /// All runs, the newest first.
    pub(super) fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT number, id, created, state, panel_name, panel_fingerprint, panel, data,
                    data_hash, options, summary FROM runs ORDER BY number DESC",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(RunRecord {
                number: row.get(0)?,
                id: row.get(1)?,
                created: row.get(2)?,
                state: RunState::from_name(&row.get::<_, String>(3)?),
                panel_name: row.get(4)?,
                panel_fingerprint: row.get(5)?,
                panel: row.get(6)?,
                data: row.get(7)?,
                data_hash: row.get(8)?,
                options: row.get(9)?,
                summary: row.get(10)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The id and the body of a case.
    pub(super) fn case(
        &self,
        run: i64,
        position: u64,
    ) -> Result<Option<(String, String)>, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT id, body FROM cases WHERE run = ?1 AND position = ?2")?
            .query_row(params![run, position], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?)
    }

    /// The verdicts on one case, by seat and sample.
    pub(super) fn verdicts(&self, run: i64, position: u64) -> Result<Vec<String>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT body FROM verdicts WHERE run = ?1 AND position = ?2 ORDER BY seat, sample",
        )?;
        let rows = statement.query_map(params![run, position], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The ruling on one case.
    pub(super) fn ruling(&self, run: i64, position: u64) -> Result<Option<String>, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT body FROM rulings WHERE run = ?1 AND position = ?2")?
            .query_row(params![run, position], |row| row.get(0))
            .optional()?)
    }

    /// Calls `each` with every case's position and id, in the data's order.
    pub(super) fn each_case(
        &self,
        run: i64,
        mut each: impl FnMut(u64, String) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT position, id FROM cases WHERE run = ?1 ORDER BY position")?;
        let mut rows = statement.query(params![run])?;
        while let Some(row) = rows.next()? {
            each(row.get(0)?, row.get(1)?)?;
        }
        Ok(())
    }

    /// The reply under a key.
    pub(super) fn reply(&self, key: &[u8; 32]) -> Result<Option<String>, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT body FROM replies WHERE key = ?1")?
            .query_row(params![key.as_slice()], |row| row.get(0))
            .optional()?)
    }

    /// Whether any reply is kept.
    pub(super) fn has_replies(&self) -> Result<bool, StoreError> {
        Ok(self
            .connection
            .query_row("SELECT EXISTS (SELECT 1 FROM replies)", [], |row| row.get(0))?)
    }

    /// A number that changes when another connection has written, and not when this one has.
    pub(super) fn data_version(&self) -> Result<i64, StoreError> {
        Ok(self.connection.pragma_query_value(None, "data_version", |row| row.get(0))?)
    }

    /// How many replies are kept, and their bytes.
    pub(super) fn reply_statistics(&self) -> Result<(u64, u64), StoreError> {
        Ok(self.connection.query_row(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0) FROM replies",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?)
    }

    /// Forgets replies kept before a time (seconds since 1970), and says how many.
    pub(super) fn delete_replies(&self, before: i64) -> Result<u64, StoreError> {
        Ok(self.connection.execute("DELETE FROM replies WHERE created < ?1", params![before])?
            as u64)
    }

    /// Forgets a run with its cases, verdicts and rulings.
    pub(super) fn delete_run(&self, number: i64) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM runs WHERE number = ?1", params![number])?;
        Ok(())
    }

    /// Writes what waits in the log into the file itself, so that the file alone is whole.
    /// Where readers are still at it, their end does it.
    pub(super) fn fold(&self) {
        let folded = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = folded {
            tracing::debug!("the store's log stays for now: {error}");
        }
    }

    /// Gives the room of what was deleted back to the disk.
    pub(super) fn vacuum(&self) -> Result<(), StoreError> {
        Ok(self.connection.execute_batch("VACUUM")?)
    }
}
