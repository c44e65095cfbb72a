//! The replies in the database: rows in the order they came, and an index that comes after.
//!
//! Keys are hashes: an index that took each of them at once would write a page for every
//! reply. So a reply is only appended. The newest rows, the tail, come into the index many at
//! a time and in the order of their keys; whoever looks for a reply reads the keys of the tail
//! once and knows them from then on.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{Database, StoreError, named};

/// Rows that the tail grows to before it is indexed. It is read whole by whoever opens the
/// store while another process writes to it, or after one died.
const TAIL: u64 = 16_384;

pub(super) const SCHEMA: &str = "
CREATE TABLE replies (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL,
    created INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE reply_index (
    key BLOB PRIMARY KEY,
    number INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE reply_index_end (number INTEGER NOT NULL);
INSERT INTO reply_index_end VALUES (0);
";

/// From version 1, which kept the key as the table's own.
pub(super) const FROM_VERSION_1: &str = "
INSERT INTO replies SELECT rowid, key, created, body FROM replies_1;
DROP TABLE replies_1;
";

/// Looks for replies, on a connection of its own that only reads.
#[derive(Debug)]
pub(in crate::store) struct ReplyReader {
    database: Database,
    tail: Tail,
}

impl ReplyReader {
    pub(in crate::store) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Database::read(path)?, tail: Tail::default() })
    }

    /// The reply under a key.
    pub(in crate::store) fn reply(&mut self, key: &[u8; 32]) -> Result<Option<String>, StoreError> {
        let Self { database, tail } = self;
        database.on(|connection| {
            // One view of the database for all that follows, and one lock.
            connection.prepare_cached("BEGIN")?.execute([])?;
            let found = tail.read_on(connection).and_then(|()| tail.find(connection, key));
            connection.prepare_cached("COMMIT")?.execute([])?;
            found
        })
    }
}

/// The keys of the rows that the index may not have yet.
#[derive(Debug, Default)]
struct Tail {
    /// The version of the database that was looked at last: it changes when another connection
    /// has written.
    version: Option<i64>,
    /// The last row that was looked at; `None` before the first.
    end: Option<i64>,
    numbers: HashMap<[u8; 32], i64>,
}

impl Tail {
    /// Reads the rows that are new since the last look.
    fn read_on(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let version = connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        if self.version == Some(version) {
            return Ok(());
        }
        let mut end = match self.end {
            Some(end) => end,
            None => index_end(connection)?,
        };
        let mut statement = connection
            .prepare_cached("SELECT number, key FROM replies WHERE number > ?1 ORDER BY number")?;
        let mut rows = statement.query(params![end])?;
        while let Some(row) = rows.next()? {
            end = row.get(0)?;
            self.numbers.insert(row.get(1)?, end);
        }
        self.end = Some(end);
        self.version = Some(version);
        if self.numbers.len() as u64 > 2 * TAIL {
            let indexed = index_end(connection)?;
            self.numbers.retain(|_, number| *number > indexed);
        }
        Ok(())
    }

    fn find(&self, connection: &Connection, key: &[u8; 32]) -> rusqlite::Result<Option<String>> {
        let number = match self.numbers.get(key) {
            Some(number) => Some(*number),
            None => connection
                .prepare_cached("SELECT number FROM reply_index WHERE key = ?1")?
                .query_row(params![key.as_slice()], |row| row.get(0))
                .optional()?,
        };
        let Some(number) = number else { return Ok(None) };
        connection
            .prepare_cached("SELECT body FROM replies WHERE number = ?1 AND key = ?2")?
            .query_row(params![number, key.as_slice()], |row| row.get(0))
            .optional()
    }
}

/// The last row that the index has.
fn index_end(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT number FROM reply_index_end")?.query_row([], |row| row.get(0))
}

/// The last number that a row has or had.
pub(super) fn last_number(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "SELECT MAX(number, (SELECT IFNULL(MAX(number), 0) FROM replies)) FROM reply_index_end",
        )?
        .query_row([], |row| row.get(0))
}

/// Brings the tail into the index. Of rows with one key the last counts, and the others go.
fn index(connection: &Connection) -> rusqlite::Result<()> {
    let end = index_end(connection)?;
    connection.execute(
        "DELETE FROM replies WHERE number IN (
             SELECT old.number FROM replies AS new CROSS JOIN reply_index AS old USING (key)
             WHERE new.number > ?1)",
        params![end],
    )?;
    connection.execute(
        "INSERT OR REPLACE INTO reply_index
         SELECT key, number FROM replies WHERE number > ?1 ORDER BY key, number",
        params![end],
    )?;
    connection.execute(
        "DELETE FROM replies WHERE number > ?1
             AND number <> (SELECT number FROM reply_index WHERE key = replies.key)",
        params![end],
    )?;
    let last = last_number(connection)?;
    connection.execute("UPDATE reply_index_end SET number = ?1", params![last])?;
    Ok(())
}

impl Database {
    /// Brings the tail into the index once it is long, or `now`.
    pub(in crate::store) fn index_replies(&mut self, now: bool) -> Result<(), StoreError> {
        let Self { connection, path, .. } = self;
        let mut work = || {
            let length = last_number(connection)? - index_end(connection)?;
            if length == 0 || (!now && length.unsigned_abs() < TAIL) {
                return Ok(());
            }
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            index(&transaction)?;
            transaction.commit()
        };
        work().map_err(|error| named(path, &error))
    }

    /// Whether any reply is kept.
    pub(in crate::store) fn has_replies(&self) -> Result<bool, StoreError> {
        self.on(|connection| {
            connection.query_row("SELECT EXISTS (SELECT 1 FROM replies)", [], |row| row.get(0))
        })
    }

    /// How many replies are kept, and their bytes.
    pub(in crate::store) fn reply_statistics(&self) -> Result<(u64, u64), StoreError> {
        self.on(|connection| {
            connection.query_row(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(body)), 0) FROM replies",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
        })
    }

    /// Forgets replies kept before a time (seconds since 1970), and says how many.
    pub(in crate::store) fn delete_replies(&mut self, before: i64) -> Result<u64, StoreError> {
        let Self { connection, path } = self;
        let mut work = || {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            index(&transaction)?;
            let deleted =
                transaction.execute("DELETE FROM replies WHERE created < ?1", params![before])?;
            transaction.execute(
                "DELETE FROM reply_index WHERE number NOT IN (SELECT number FROM replies)",
                [],
            )?;
            transaction.commit()?;
            Ok(deleted as u64)
        };
        work().map_err(|error| named(path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;

    fn database(folder: &tempfile::TempDir) -> Database {
        Database::create(&folder.path().join("store.db")).unwrap()
    }

    fn reader(folder: &tempfile::TempDir) -> ReplyReader {
        ReplyReader::open(&folder.path().join("store.db")).unwrap()
    }

    fn found(reader: &mut ReplyReader, key: u8) -> String {
        reader.reply(&[key; 32]).unwrap().unwrap_or_else(|| "nothing".into())
    }

    fn row(key: u8, created: i64, body: &str) -> Row {
        Row::Reply { key: [key; 32], created, body: body.into() }
    }

    fn count(database: &Database, table: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        database.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_reply_is_found_before_and_after_it_is_indexed() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = database(&folder);
        let mut early = reader(&folder);
        assert_eq!(found(&mut early, 1), "nothing");
        database.write(&[row(2, 0, "two"), row(1, 0, "one")]).unwrap();
        database.index_replies(false).unwrap();
        assert_eq!(count(&database, "reply_index"), 0, "two rows are no long tail");
        let mut late = reader(&folder);
        assert_eq!([found(&mut early, 1), found(&mut late, 1)], ["one", "one"]);
        database.index_replies(true).unwrap();
        assert_eq!(count(&database, "reply_index"), 2);
        let mut later = reader(&folder);
        for reader in [&mut early, &mut late, &mut later] {
            assert_eq!([found(reader, 1), found(reader, 3)], ["one", "nothing"]);
        }
        database.write(&[row(3, 0, "three")]).unwrap();
        for reader in [&mut early, &mut late, &mut later] {
            assert_eq!(found(reader, 3), "three");
        }
    }

    #[test]
    fn of_replies_with_one_key_the_last_counts_and_the_others_go() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = database(&folder);
        let mut early = reader(&folder);
        database.write(&[row(1, 0, "first")]).unwrap();
        database.index_replies(true).unwrap();
        assert_eq!(found(&mut early, 1), "first");
        database.write(&[row(1, 0, "second"), row(2, 0, "x"), row(1, 0, "third")]).unwrap();
        for _ in 0..2 {
            assert_eq!([found(&mut early, 1), found(&mut reader(&folder), 1)], ["third", "third"]);
            database.index_replies(true).unwrap();
        }
        assert_eq!((count(&database, "replies"), count(&database, "reply_index")), (2, 2));
    }

    #[test]
    fn a_long_tail_is_indexed_by_itself_and_every_reply_stays_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = database(&folder);
        let mut reader = reader(&folder);
        let key = |i: u64| *blake3::hash(&i.to_le_bytes()).as_bytes();
        let total = 3 * TAIL + 5;
        let all: Vec<u64> = (0..total).collect();
        for some in all.chunks(4096) {
            let rows: Vec<Row> = some
                .iter()
                .map(|i| Row::Reply { key: key(*i), created: 0, body: i.to_string() })
                .collect();
            database.write(&rows).unwrap();
            database.index_replies(false).unwrap();
            let last = some[some.len() - 1];
            assert_eq!(reader.reply(&key(last)).unwrap(), Some(last.to_string()));
        }
        assert_eq!(count(&database, "reply_index"), 3 * TAIL as i64);
        assert!(reader.tail.numbers.len() as u64 <= 2 * TAIL + 4096);
        for i in (0..total).step_by(997) {
            assert_eq!(reader.reply(&key(i)).unwrap(), Some(i.to_string()));
        }
    }

    #[test]
    fn what_is_forgotten_is_gone_and_its_number_is_not_given_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = database(&folder);
        let mut early = reader(&folder);
        database.write(&[row(1, 100, "old"), row(2, 200, "new")]).unwrap();
        assert_eq!(found(&mut early, 1), "old");
        assert_eq!(database.delete_replies(150).unwrap(), 1);
        assert_eq!([found(&mut early, 1), found(&mut early, 2)], ["nothing", "new"]);
        assert_eq!(database.delete_replies(i64::MAX).unwrap(), 1);
        database.write(&[row(3, 300, "next")]).unwrap();
        assert_eq!([found(&mut early, 3), found(&mut reader(&folder), 3)], ["next", "next"]);
    }

    #[test]
    fn a_store_of_the_first_version_is_taken_over_with_its_replies() {
        let folder = tempfile::tempdir().unwrap();
        let old = database(&folder);
        let as_it_was = "
            DROP TABLE replies; DROP TABLE reply_index; DROP TABLE reply_index_end;
            CREATE TABLE replies (
                key BLOB PRIMARY KEY, created INTEGER NOT NULL, body TEXT NOT NULL
            );
            PRAGMA user_version = 1;";
        old.connection.execute_batch(as_it_was).unwrap();
        let insert = "INSERT INTO replies VALUES (?1, 7, 'one')";
        old.connection.execute(insert, params![[1_u8; 32].as_slice()]).unwrap();
        assert_eq!(old.reply_statistics().unwrap(), (1, 3), "it can be looked at before");
        drop(old);
        let mut database = database(&folder);
        assert_eq!(found(&mut reader(&folder), 1), "one");
        database.index_replies(true).unwrap();
        assert_eq!(found(&mut reader(&folder), 1), "one");
        assert_eq!(database.delete_replies(8).unwrap(), 1);
    }
}
