//! The database under the store: every line of SQL, and the only file that names its crate.
//!
//! One file in WAL mode: one connection writes, any number read. Rows hold their facts as
//! JSON beside the few columns that are searched or counted, so that other tools can open
//! the file and queries stay simple.

mod replies;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{
    CachedStatement, Connection, ErrorCode, OpenFlags, OptionalExtension, ToSql,
    TransactionBehavior, params,
};

pub(super) use self::replies::ReplyReader;
use super::file::{self, APPLICATION_ID, Found};
use super::{Decisions, RunRecord, RunState, StoreError};

/// The version of the tables; a file with a newer one is refused.
const SCHEMA_VERSION: i64 = 2;

/// How long another program's lock is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tables of a store, by which one is known that was made before it had an application id.
const TABLES: [&str; 5] = ["runs", "cases", "verdicts", "rulings", "replies"];

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
        /// Seconds since 1970.
        created: i64,
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
    path: PathBuf,
}

/// The database's refusal in the store's words, with the file.
fn named(path: &Path, error: &rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { path, seconds: PATIENCE.as_secs() }
        }
        Some(ErrorCode::DiskFull) => StoreError::Full { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly { path },
        Some(ErrorCode::CannotOpen) => StoreError::Open { path, message },
        Some(ErrorCode::NotADatabase) => StoreError::Foreign { path, what: message },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, message },
        _ => StoreError::Database { path, message },
    }
}

/// Tries again while another connection is in the way: some steps of SQLite give up at once
/// and never wait for a lock.
fn patiently<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let started = Instant::now();
    loop {
        match work() {
            Err(error)
                if started.elapsed() < PATIENCE
                    && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

/// The statements of one batch.
struct Statements<'a> {
    connection: &'a Connection,
    case: CachedStatement<'a>,
    verdict: CachedStatement<'a>,
    ruling: CachedStatement<'a>,
    reply: CachedStatement<'a>,
    /// The number of the last reply, once it was asked for.
    last_reply: Option<i64>,
}

/// Inserts a row that is new, as nearly all are, and replaces one that is there. To replace at
/// once would cost every row a journal of its own.
fn put(
    connection: &Connection,
    insert: &mut CachedStatement<'_>,
    table: &str,
    row: &[&dyn ToSql],
) -> rusqlite::Result<()> {
    match insert.execute(row) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            let marks = vec!["?"; row.len()].join(", ");
            let replace = format!("INSERT OR REPLACE INTO {table} VALUES ({marks})");
            connection.prepare_cached(&replace)?.execute(row)?;
            Ok(())
        }
        outcome => outcome.map(drop),
    }
}

impl<'a> Statements<'a> {
    fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        let prepare = |sql| connection.prepare_cached(sql);
        Ok(Self {
            connection,
            case: prepare("INSERT INTO cases VALUES (?, ?, ?, ?)")?,
            verdict: prepare("INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)")?,
            ruling: prepare("INSERT INTO rulings VALUES (?, ?, ?, ?, ?)")?,
            reply: prepare("INSERT INTO replies VALUES (?, ?, ?, ?)")?,
            last_reply: None,
        })
    }

    fn write(&mut self, row: &Row) -> rusqlite::Result<()> {
        let connection = self.connection;
        match row {
            Row::Case { run, position, id, body } => {
                put(connection, &mut self.case, "cases", &[run, position, id, body])
            }
            Row::Verdict { run, position, seat, sample, status, score, body } => put(
                connection,
                &mut self.verdict,
                "verdicts",
                &[run, position, seat, sample, status, score, body],
            ),
            Row::Ruling { run, position, decision, score, body } => put(
                connection,
                &mut self.ruling,
                "rulings",
                &[run, position, decision, score, body],
            ),
            Row::Reply { key, created, body } => {
                let last = match self.last_reply {
                    Some(last) => last,
                    None => replies::last_number(connection)?,
                };
                self.last_reply = Some(last + 1);
                self.reply.execute(params![last + 1, key.as_slice(), created, body]).map(drop)
            }
            Row::RunState { run, state, summary } => connection
                .prepare_cached(
                    "UPDATE runs SET state = ?2, summary = COALESCE(?3, summary) WHERE number = ?1",
                )?
                .execute(params![run, state.name(), summary])
                .map(drop),
        }
    }
}

impl Database {
    /// Opens the file for writing, making it and its tables where they are not there.
    pub(super) fn create(path: &Path) -> Result<Self, StoreError> {
        if path.exists() {
            Self::recognise(path)?;
        }
        // Neither `:memory:` nor `file:` has a meaning of its own here.
        let absolute = std::path::absolute(path)
            .map_err(|error| StoreError::Open { path: path.into(), message: error.to_string() })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(absolute, flags).and_then(prepared);
        let connection = opened.map_err(|error| named(path, &error))?;
        let mut database = Self { connection, path: path.to_owned() };
        // Before the log is switched on, so that the file itself says from its first moment
        // whose it is.
        database.migrate()?;
        database.on(|connection| {
            patiently(|| connection.pragma_update(None, "journal_mode", "WAL"))?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            // In pages of 4 KiB: fewer copies of the same page into the file.
            connection.pragma_update(None, "wal_autocheckpoint", 8000)?;
            // In KiB: keys of replies are spread over the whole index, so all of it is warm.
            connection.pragma_update(None, "cache_size", -16384)
        })?;
        Ok(database)
    }

    /// Opens the file for reading: nothing of it is changed.
    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        if Self::recognise(path)? == Found::Nothing {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        let database = Self { connection: opened(path, false)?, path: path.to_owned() };
        match database.version() {
            // Where the folder can't be written to, the log's index can't be made: a file
            // without a log is then read as it is.
            Err(StoreError::Open { .. } | StoreError::ReadOnly { .. }) if !file::has_log(path) => {
                let database = Self { connection: opened(path, true)?, ..database };
                database.version()?;
                Ok(database)
            }
            Err(error) => Err(error),
            Ok(_) => Ok(database),
        }
    }

    /// What the file is, without touching it; refused where it is somebody else's.
    fn recognise(path: &Path) -> Result<Found, StoreError> {
        match file::look(path)? {
            Found::Unsaid => {}
            found => return Ok(found),
        }
        // With a log beside it the tables may stand there only.
        let connection = opened(path, !file::has_log(path))?;
        let tables = connection
            .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
            .and_then(|mut statement| {
                let names = statement.query_map([], |row| row.get::<_, String>(0))?;
                names.collect::<Result<Vec<_>, _>>()
            })
            .map_err(|error| named(path, &error))?;
        if tables.is_empty() {
            return Ok(Found::Nothing);
        }
        if TABLES.iter().all(|table| tables.iter().any(|found| found == table)) {
            return Ok(Found::Store);
        }
        let shown: Vec<String> = tables.iter().take(5).map(|name| format!("`{name}`")).collect();
        let more = if tables.len() > shown.len() { ", …" } else { "" };
        Err(StoreError::Foreign {
            path: path.to_owned(),
            what: format!(
                "it is another program's database, with the tables {}{more}",
                shown.join(", ")
            ),
        })
    }

    /// Runs SQL, with the file's name in what goes wrong.
    fn on<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        work(&self.connection).map_err(|error| named(&self.path, &error))
    }

    /// The version of the tables, where this program understands it.
    fn version(&self) -> Result<i64, StoreError> {
        let found = self
            .on(|connection| connection.pragma_query_value(None, "user_version", |r| r.get(0)))?;
        if found > SCHEMA_VERSION {
            let path = self.path.clone();
            return Err(StoreError::Version { path, found, supported: SCHEMA_VERSION });
        }
        Ok(found)
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        if self.version()? == SCHEMA_VERSION && self.application()? == APPLICATION_ID {
            return Ok(());
        }
        let Self { connection, path } = self;
        let made = patiently(|| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version: i64 =
                transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
            // Another process may have made them meanwhile.
            match version {
                0 => {
                    transaction.execute_batch(SCHEMA)?;
                    transaction.execute_batch(replies::SCHEMA)?;
                }
                1 => {
                    transaction.execute_batch("ALTER TABLE replies RENAME TO replies_1")?;
                    transaction.execute_batch(replies::SCHEMA)?;
                    transaction.execute_batch(replies::FROM_VERSION_1)?;
                }
                _ => {}
            }
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.commit()
        });
        made.map_err(|error| named(path, &error))
    }

    fn application(&self) -> Result<u32, StoreError> {
        self.on(|connection| {
            connection.pragma_query_value(None, "application_id", |row| row.get(0))
        })
    }

    /// Writes a batch: all of it or nothing.
    pub(super) fn write(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        self.write_rows(rows).map_err(|error| named(&self.path, &error))
    }

    fn write_rows(&mut self, rows: &[Row]) -> rusqlite::Result<()> {
        // A deferred transaction that starts with a read can't wait for another writer.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut statements = Statements::new(&transaction)?;
            for row in rows {
                statements.write(row)?;
            }
        }
        transaction.commit()
    }

    /// Adds a run and gives its number.
    pub(super) fn insert_run(&mut self, run: &RunRecord) -> Result<i64, StoreError> {
        let insert = |connection: &Connection| {
            connection.execute(
            "INSERT INTO runs (id, created, state, panel_name, panel_fingerprint, panel, data, data_hash, options)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                run.id, run.created, run.state.name(), run.panel_name, run.panel_fingerprint,
                run.panel, run.data, run.data_hash, run.options
            ],
        )
        };
        self.on(insert)?;
        Ok(self.connection.last_insert_rowid())
    }

    /// All runs, the newest first.
    pub(super) fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        self.on(run_records)
    }

    /// The id and the body of a case.
    pub(super) fn case(
        &self,
        run: i64,
        position: u64,
    ) -> Result<Option<(String, String)>, StoreError> {
        self.on(|connection| {
            connection
                .prepare_cached("SELECT id, body FROM cases WHERE run = ?1 AND position = ?2")?
                .query_row(params![run, position], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
    }

    /// The verdicts on one case, by seat and sample.
    pub(super) fn verdicts(&self, run: i64, position: u64) -> Result<Vec<String>, StoreError> {
        self.on(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT body FROM verdicts WHERE run = ?1 AND position = ?2 ORDER BY seat, sample",
            )?;
            let rows = statement.query_map(params![run, position], |row| row.get(0))?;
            rows.collect()
        })
    }

    /// The ruling on one case.
    pub(super) fn ruling(&self, run: i64, position: u64) -> Result<Option<String>, StoreError> {
        self.on(|connection| {
            connection
                .prepare_cached("SELECT body FROM rulings WHERE run = ?1 AND position = ?2")?
                .query_row(params![run, position], |row| row.get(0))
                .optional()
        })
    }

    /// How many rulings of a run have each decision, and the last position with one.
    pub(super) fn decisions(&self, run: i64) -> Result<Decisions, StoreError> {
        self.on(|connection| {
            connection
                .prepare_cached(
                    "SELECT COUNT(*) FILTER (WHERE decision = 'accept'),
                            COUNT(*) FILTER (WHERE decision = 'reject'),
                            COUNT(*) FILTER (WHERE decision = 'undecided'),
                            MAX(position)
                     FROM rulings WHERE run = ?1",
                )?
                .query_row(params![run], |row| {
                    Ok(Decisions {
                        accepted: row.get(0)?,
                        rejected: row.get(1)?,
                        undecided: row.get(2)?,
                        last: row.get(3)?,
                    })
                })
        })
    }

    /// Calls `each` with every case's position and id, in the data's order.
    pub(super) fn each_case<E: From<StoreError>>(
        &self,
        run: i64,
        mut each: impl FnMut(u64, String) -> Result<(), E>,
    ) -> Result<(), E> {
        let named = |error| E::from(named(&self.path, &error));
        let mut statement = self
            .connection
            .prepare("SELECT position, id FROM cases WHERE run = ?1 ORDER BY position")
            .map_err(named)?;
        let mut rows = statement.query(params![run]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            each(row.get(0).map_err(named)?, row.get(1).map_err(named)?)?;
        }
        Ok(())
    }

    /// US dollars of the verdicts of a run that were not answered from the store.
    pub(super) fn spent_usd(&self, run: i64) -> Result<f64, StoreError> {
        self.on(|connection| {
            connection.query_row(
                "SELECT TOTAL(json_extract(body, '$.cost_usd')) FROM verdicts
                 WHERE run = ?1 AND NOT json_extract(body, '$.cached')",
                params![run],
                |row| row.get(0),
            )
        })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A number that changes when another connection has written, and not when this one has.
    pub(super) fn data_version(&self) -> Result<i64, StoreError> {
        self.on(|connection| connection.pragma_query_value(None, "data_version", |row| row.get(0)))
    }

    /// Forgets a run with its cases, verdicts and rulings.
    pub(super) fn delete_run(&self, number: i64) -> Result<(), StoreError> {
        self.on(|connection| {
            connection.execute("DELETE FROM runs WHERE number = ?1", params![number])
        })?;
        Ok(())
    }

    /// Leaves the log to [`Database::checkpoint`].
    pub(super) fn keep_log(&self) -> Result<(), StoreError> {
        self.on(|connection| connection.pragma_update(None, "wal_autocheckpoint", 0))
    }

    /// Copies what is in the log into the file, as far as readers allow.
    pub(super) fn checkpoint(&self) {
        let copied = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = copied {
            tracing::debug!("the store's log is copied later: {error}");
        }
    }

    /// Writes what waits in the log into the file itself, so that the file alone is whole.
    /// Where readers are still at it, their end does it.
    pub(super) fn fold(&mut self) {
        if let Err(error) = self.index_replies(true) {
            tracing::debug!("the newest replies are not in the index yet: {error}");
        }
        let folded = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err(error) = folded {
            tracing::debug!("the store's log stays for now: {error}");
        }
    }

    /// Gives the room of what was deleted back to the disk.
    pub(super) fn vacuum(&self) -> Result<(), StoreError> {
        self.on(|connection| connection.execute_batch("VACUUM"))
    }
}

/// A connection that reads. An `immutable` one takes the file as it is, makes nothing beside
/// it and takes no locks, so it is for a file that nobody writes to.
fn opened(path: &Path, immutable: bool) -> Result<Connection, StoreError> {
    let absolute = std::path::absolute(path)
        .map_err(|error| StoreError::Open { path: path.into(), message: error.to_string() })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = if immutable {
        let uri = format!("file:{}?immutable=1", file::encoded(&absolute));
        Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
    } else {
        Connection::open_with_flags(absolute, flags)
    };
    opened.and_then(prepared).map_err(|error| named(path, &error))
}

fn prepared(connection: Connection) -> rusqlite::Result<Connection> {
    // Another process may hold the write lock for the length of one batch.
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// All runs, the newest first.
fn run_records(connection: &Connection) -> rusqlite::Result<Vec<RunRecord>> {
    let mut statement = connection.prepare(
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
    rows.collect()
}
