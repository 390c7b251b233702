//! The tables and every statement on them. All functions block.

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};

use crate::store::{Change, Entry, Expected, MetadataError, Page, Transaction, Write};

/// Version of the tables that this release writes; it opens no newer one.
pub const VERSION: i64 = 1;
/// `application_id` of the file: "FRSH" in ASCII.
const APPLICATION_ID: i64 = 0x4652_5348;

/// `entry` holds what is stored now, `change` the newest changes, `meta` one row of counters.
const TABLES: &str = "
    CREATE TABLE meta (
        id        INTEGER PRIMARY KEY CHECK (id = 1),
        version   INTEGER NOT NULL, -- of these tables
        revision  INTEGER NOT NULL, -- of the last transaction that changed something
        compacted INTEGER NOT NULL, -- changes up to this revision are gone from `change`
        changes   INTEGER NOT NULL  -- weight of the rows in `change`: see WEIGHT_BYTES
    ) STRICT;
    CREATE TABLE entry (
        key      TEXT NOT NULL PRIMARY KEY,
        value    BLOB NOT NULL,
        revision INTEGER NOT NULL -- that last changed it
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE change (
        revision INTEGER NOT NULL,
        key      TEXT NOT NULL,
        value    BLOB, -- NULL: removed
        PRIMARY KEY (revision, key)
    ) STRICT, WITHOUT ROWID;
";

/// A change weighs one, and one more for each so many bytes of its value, so that the history is
/// bounded in bytes, too. Older releases weighed each row as one; a file that both have written is
/// trimmed sooner or later, and correct either way.
const WEIGHT_BYTES: usize = 1024;

/// Why a statement or a transaction failed.
#[derive(Debug)]
pub enum Failure {
    /// Another process holds the lock; nothing happened.
    Busy(String),
    /// It failed before anything was committed.
    Before(String),
    /// It failed while committing, or the thread that committed was lost: the outcome is unknown.
    Lost(String),
    /// The store refused it.
    Refused(MetadataError),
}

impl Failure {
    /// The error of a call that changes nothing.
    pub fn into_read_error(self) -> MetadataError {
        match self {
            Self::Busy(text) | Self::Before(text) | Self::Lost(text) => {
                MetadataError::Unavailable(text)
            }
            Self::Refused(error) => error,
        }
    }

    /// The error of a transaction.
    pub fn into_commit_error(self) -> MetadataError {
        match self {
            Self::Lost(text) => MetadataError::Unknown(text),
            other => other.into_read_error(),
        }
    }

    /// The failure with `prefix` in front of its text.
    pub fn prefixed(self, prefix: &str) -> Self {
        match self {
            Self::Busy(text) => Self::Busy(format!("{prefix}{text}")),
            Self::Before(text) => Self::Before(format!("{prefix}{text}")),
            Self::Lost(text) => Self::Lost(format!("{prefix}{text}")),
            Self::Refused(MetadataError::Corrupt(text)) => {
                Self::Refused(MetadataError::Corrupt(format!("{prefix}{text}")))
            }
            Self::Refused(error) => Self::Refused(error),
        }
    }

    fn corrupt(text: impl Into<String>) -> Self {
        Self::Refused(MetadataError::Corrupt(text.into()))
    }

    /// The failure of a `COMMIT`. Only after "busy" is it certain that nothing was committed.
    fn of_commit(error: &rusqlite::Error) -> Self {
        match Self::from_sqlite(error) {
            Self::Before(text) => Self::Lost(text),
            other => other,
        }
    }

    fn from_sqlite(error: &rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::corrupt(text),
            Some(_) => Self::Before(text),
            // Not an error of SQLite: a row or a column is not of the declared type.
            None => Self::corrupt(text),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::from_sqlite(&error)
    }
}

/// The row of `meta`, without the version.
struct Meta {
    revision: i64,
    compacted: i64,
    changes: i64,
}

/// Checks the version of the tables, and creates them where the file is empty.
pub fn create(connection: &mut Connection) -> Result<(), Failure> {
    if let Some(version) = stored_version(connection)? {
        return check_version(version);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if let Some(version) = stored_version(&transaction)? {
        return check_version(version);
    }
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        return Err(Failure::corrupt("a database of something else"));
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.execute_batch(TABLES)?;
    let first =
        "INSERT INTO meta (id, version, revision, compacted, changes) VALUES (1, ?, 0, 0, 0)";
    transaction.execute(first, [VERSION])?;
    transaction.commit().map_err(|error| Failure::of_commit(&error))
}

fn stored_version(connection: &Connection) -> Result<Option<i64>, Failure> {
    let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id != APPLICATION_ID {
        return Ok(None);
    }
    Ok(Some(connection.query_row("SELECT version FROM meta", [], |row| row.get(0))?))
}

fn check_version(version: i64) -> Result<(), Failure> {
    if version > VERSION {
        return Err(Failure::corrupt(format!(
            "written by a newer release (tables of version {version}; this release knows up to \
             {VERSION}); start that release"
        )));
    }
    if version < 1 {
        return Err(Failure::corrupt(format!("tables of version {version}")));
    }
    Ok(())
}

/// Reads one key.
pub fn get(connection: &Connection, key: &str) -> Result<Option<Entry>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT key, value, revision FROM entry WHERE key = ?")?;
    Ok(statement.query_row([key], entry_of).optional()?)
}

/// Reads a range and the revision that it was read at.
pub fn range(
    connection: &mut Connection,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page, Failure> {
    let transaction = connection.transaction()?;
    let mut entries: Vec<Entry> = {
        let mut statement = transaction.prepare_cached(
            "SELECT key, value, revision FROM entry
             WHERE key >= ?1 AND key < ?2 AND key > ?3 ORDER BY key LIMIT ?4",
        )?;
        // Every key sorts above the empty one. One row more than the limit shows whether more
        // follow.
        let (after, rows) = (after.unwrap_or(""), signed(limit.saturating_add(1)));
        let rows = statement.query_map(params![prefix, end_of(prefix), after, rows], entry_of)?;
        rows.collect::<Result<_, _>>()?
    };
    let revision = unsigned(read_meta(&transaction)?.revision)?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok(Page { entries, revision, more })
}

/// Runs a transaction; returns its revision, or 0 where it changed nothing.
pub fn commit(
    connection: &mut Connection,
    transaction: &Transaction,
    history_changes: u64,
) -> Result<u64, Failure> {
    let database = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for compare in &transaction.compares {
        let mut statement = database.prepare_cached("SELECT revision FROM entry WHERE key = ?")?;
        let revision: Option<i64> =
            statement.query_row([&compare.key], |row| row.get(0)).optional()?;
        let holds = match (compare.expected, revision) {
            (Expected::Absent, revision) => revision.is_none(),
            (Expected::Present, revision) => revision.is_some(),
            (Expected::Revision(_), None) => false,
            (Expected::Revision(expected), Some(revision)) => unsigned(revision)? == expected,
        };
        if !holds {
            let key = compare.key.clone();
            return Err(Failure::Refused(MetadataError::Conflict { key }));
        }
    }
    let mut meta = read_meta(&database)?;
    meta.revision += 1;
    let changes = write_changes(&database, &transaction.writes, meta.revision)?;
    if changes == 0 {
        return Ok(0);
    }
    meta.changes += changes;
    trim_history(&database, &mut meta, history_changes)?;
    database
        .prepare_cached("UPDATE meta SET revision = ?, compacted = ?, changes = ?")?
        .execute([meta.revision, meta.compacted, meta.changes])?;
    database.commit().map_err(|error| Failure::of_commit(&error))?;
    unsigned(meta.revision)
}

/// Carries out the writes and records them as changes; returns the weight of the changes, 0 where
/// there are none.
fn write_changes(database: &Connection, writes: &[Write], revision: i64) -> Result<i64, Failure> {
    let mut changes = 0;
    for write in writes {
        let (key, value) = match write {
            Write::Put { key, value } => {
                database
                    .prepare_cached(
                        "INSERT INTO entry (key, value, revision) VALUES (?1, ?2, ?3)
                         ON CONFLICT (key) DO UPDATE SET value = ?2, revision = ?3",
                    )?
                    .execute(params![key, value.as_ref(), revision])?;
                (key, Some(value.as_ref()))
            }
            Write::Delete { key } => {
                let mut statement = database.prepare_cached("DELETE FROM entry WHERE key = ?")?;
                if statement.execute([key])? == 0 {
                    continue;
                }
                (key, None)
            }
        };
        database
            .prepare_cached("INSERT INTO change (revision, key, value) VALUES (?, ?, ?)")?
            .execute(params![revision, key, value])?;
        changes += weight_of(value.map_or(0, <[u8]>::len));
    }
    Ok(changes)
}

/// Removes the oldest changes, whole revisions, once all weigh clearly more than `keep`. The
/// revision of this transaction always stays.
fn trim_history(database: &Connection, meta: &mut Meta, keep: u64) -> Result<(), Failure> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let surplus = meta.changes.saturating_sub(keep);
    // Not one change at a time, which would be slow, and not many at once, which would take long.
    if surplus <= (keep / 16).min(1024) {
        return Ok(());
    }
    let Oldest { compacted, weight } = oldest_changes(database, surplus, meta.revision)?;
    database.prepare_cached("DELETE FROM change WHERE revision <= ?")?.execute([compacted])?;
    meta.compacted = meta.compacted.max(compacted);
    meta.changes = meta.changes.saturating_sub(weight).max(0);
    Ok(())
}

/// The oldest changes.
struct Oldest {
    /// The last revision among them.
    compacted: i64,
    /// Their weight.
    weight: i64,
}

/// The oldest whole revisions that weigh at least `surplus`, before `current`.
fn oldest_changes(database: &Connection, surplus: i64, current: i64) -> Result<Oldest, Failure> {
    let mut statement = database.prepare_cached(
        "SELECT revision, ifnull(length(value), 0) FROM change WHERE revision < ?
         ORDER BY revision",
    )?;
    let mut rows = statement.query([current])?;
    let mut oldest = Oldest { compacted: 0, weight: 0 };
    while let Some(row) = rows.next()? {
        let (revision, bytes): (i64, i64) = (row.get(0)?, row.get(1)?);
        if oldest.weight >= surplus && revision > oldest.compacted {
            break;
        }
        oldest.compacted = revision;
        oldest.weight += weight_of(usize::try_from(bytes).unwrap_or(0));
    }
    Ok(oldest)
}

fn weight_of(bytes: usize) -> i64 {
    1 + signed(bytes / WEIGHT_BYTES)
}

/// A number of SQLite that changes whenever another connection commits.
pub fn data_version(connection: &Connection) -> Result<i64, Failure> {
    Ok(connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
}

/// A piece of the history under a prefix.
pub struct History {
    /// The changes, of whole revisions.
    pub changes: Vec<Change>,
    /// All changes up to this revision have been read.
    pub read_up_to: u64,
    /// Whether that is all there was.
    pub complete: bool,
}

/// How many changes are read at once; above the most that one revision has, so that a whole
/// revision always fits.
const HISTORY_ROWS: i64 = 1024;

/// Reads changes of revisions above `after`.
pub fn history(connection: &mut Connection, prefix: &str, after: u64) -> Result<History, Failure> {
    let transaction = connection.transaction()?;
    let meta = read_meta(&transaction)?;
    let (compacted, revision) = (unsigned(meta.compacted)?, unsigned(meta.revision)?);
    // Changes were trimmed, or the revision is from the future because the file was replaced by an
    // older copy.
    if after < compacted || after > revision {
        return Err(Failure::Refused(MetadataError::Compacted));
    }
    let mut statement = transaction.prepare_cached(
        "SELECT key, value, revision FROM change
         WHERE revision > ?1 AND key >= ?2 AND key < ?3
         ORDER BY revision, key LIMIT ?4",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = params![after, prefix, end_of(prefix), HISTORY_ROWS];
    let rows = statement.query_map(rows, |row| {
        let value: Option<Vec<u8>> = row.get(1)?;
        Ok((row.get(0)?, value, row.get(2)?))
    })?;
    let mut changes = Vec::new();
    for row in rows {
        let (key, value, revision): (String, Option<Vec<u8>>, i64) = row?;
        let revision = unsigned(revision)?;
        changes.push(Change { key, value: value.map(Into::into), revision });
    }
    let mut read_up_to = revision;
    let complete = signed(changes.len()) < HISTORY_ROWS;
    if !complete {
        // The last revision may go on behind the limit.
        let cut = changes.last().map_or(0, |change| change.revision);
        changes.retain(|change| change.revision < cut);
        read_up_to = cut - 1;
    }
    Ok(History { changes, read_up_to, complete })
}

fn read_meta(connection: &Connection) -> Result<Meta, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT revision, compacted, changes FROM meta")?;
    Ok(statement.query_row([], |row| {
        Ok(Meta { revision: row.get(0)?, compacted: row.get(1)?, changes: row.get(2)? })
    })?)
}

fn entry_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    let value: Vec<u8> = row.get(1)?;
    let revision: i64 = row.get(2)?;
    let revision = u64::try_from(revision)
        .map_err(|_| rusqlite::Error::IntegralValueOutOfRange(2, revision))?;
    Ok(Entry { key: row.get(0)?, value: value.into(), revision })
}

/// A value that sorts behind all keys with this prefix and before all others: a text, or, where
/// there is no such text, the empty blob, since blobs sort behind all texts. A plain comparison
/// with it, without an `OR`, lets SQLite stop there instead of reading to the end of the table.
fn end_of(prefix: &str) -> Value {
    next_prefix(prefix).map_or_else(|| Value::Blob(Vec::new()), Value::Text)
}

/// The first text that sorts behind all keys with this prefix; `None` where there is no such text.
/// UTF-8 sorts by bytes as its characters do.
fn next_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            // The range of surrogates has no characters.
            '\u{D7FF}' => Some('\u{E000}'),
            last => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

fn unsigned(value: i64) -> Result<u64, Failure> {
    u64::try_from(value).map_err(|_| Failure::corrupt(format!("a revision of {value}")))
}

fn signed(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_prefix_is_the_next_text_of_its_length_or_less() {
        assert_eq!(next_prefix("topic/").as_deref(), Some("topic0"));
        assert_eq!(next_prefix("a\u{D7FF}").as_deref(), Some("a\u{E000}"));
        assert_eq!(next_prefix("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(next_prefix("\u{10FFFF}"), None);
        assert_eq!(next_prefix(""), None);
    }

    #[test]
    fn tables_of_a_newer_release_are_refused_by_name() {
        let mut connection = Connection::open_in_memory().unwrap();
        create(&mut connection).unwrap();
        connection.execute("UPDATE meta SET version = 2", []).unwrap();
        let error = create(&mut connection).unwrap_err().into_read_error();
        assert!(matches!(error, MetadataError::Corrupt(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("newer release (tables of version 2"), "{text}");
    }

    #[test]
    fn database_of_something_else_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute("CREATE TABLE other (a)", []).unwrap();
        let error = create(&mut connection).unwrap_err().into_read_error();
        assert!(matches!(error, MetadataError::Corrupt(_)), "{error:?}");
    }

    #[test]
    fn error_while_committing_is_unknown_but_before_it_is_not() {
        let io = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(10), None);
        let busy = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(5), None);
        let commit = |error| Failure::of_commit(error).into_commit_error();
        assert!(matches!(commit(&io), MetadataError::Unknown(_)));
        assert!(matches!(commit(&busy), MetadataError::Unavailable(_)));
        let before = Failure::from(io).into_commit_error();
        assert!(matches!(before, MetadataError::Unavailable(_)));
    }
}
