//! The embedded metadata store: one SQLite file that several processes of a machine may open
//! (brokers, keeper, control plane), or a database in memory for tests and the simulator.
//!
//! The file must lie on a local file system: SQLite's write-ahead log needs shared memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Mutex, watch};

use super::store::{Entry, MetadataError, MetadataStore, Page, Transaction, Watch, check_key};
use tables::Failure;

mod changes;
mod tables;

/// How often opening a file is tried while another process creates it: for 3 s at most.
const OPEN_ATTEMPTS: u32 = 50;
const OPEN_RETRY: Duration = Duration::from_millis(10);
const OPEN_BUSY_TIMEOUT: Duration = Duration::from_millis(50);

/// Settings of a store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// How many changes are kept for watchers, at least. A change counts one, and one more for each
    /// KiB of its value.
    pub history_changes: u64,
    /// How often a watcher looks for changes by other processes.
    pub poll_interval: Duration,
    /// How long a call waits for another process's transaction before it is `Unavailable`.
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            history_changes: 50_000,
            poll_interval: Duration::from_millis(50),
            busy_timeout: Duration::from_secs(2),
        }
    }
}

/// A handle of a store; clones share it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Arc<Mutex<Connection>>,
    /// The writer itself where the database is in memory.
    reader: Arc<Mutex<Connection>>,
    /// Where SQL runs: on the caller's task (in memory: no waiting, no threads, deterministic) or
    /// on a thread for blocking calls.
    inline: bool,
    options: SqliteOptions,
    /// The last revision that this handle committed; it wakes the handle's watchers without a poll.
    committed: watch::Sender<u64>,
}

impl SqliteStore {
    /// Opens the store at `path`, whose folder must exist; creates it where there is none.
    ///
    /// # Errors
    /// [`MetadataError::Corrupt`] where the file is not such a store or is of a newer release,
    /// [`MetadataError::Unavailable`] where it cannot be opened.
    pub async fn open(path: &Path) -> Result<Self, MetadataError> {
        Self::open_with(path, SqliteOptions::default()).await
    }

    /// As [`SqliteStore::open`], with options.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_with(path: &Path, options: SqliteOptions) -> Result<Self, MetadataError> {
        let busy_timeout = options.busy_timeout;
        let mut attempt = 0;
        // While one process turns a new file into a write-ahead-log database, SQLite returns "busy"
        // to others at once, whatever their timeout.
        let (writer, reader) = loop {
            attempt += 1;
            let file = path.to_owned();
            let connections = blocking(move || open_connections(&file, busy_timeout)).await;
            match connections {
                Err(Failure::Busy(_)) if attempt < OPEN_ATTEMPTS => {
                    tokio::time::sleep(OPEN_RETRY).await;
                }
                Err(failure) => {
                    let path = path.display();
                    return Err(failure.prefixed(&format!("{path}: ")).into_read_error());
                }
                Ok(connections) => break connections,
            }
        };
        let writer = Arc::new(Mutex::new(writer));
        let reader = Arc::new(Mutex::new(reader));
        Ok(Self::assemble(writer, reader, false, options))
    }

    /// An empty store in memory. All calls run on the caller's task and finish without waiting;
    /// nothing uses a timer or a thread.
    ///
    /// # Panics
    /// Where SQLite cannot make a database in memory, which is out of memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::in_memory_with(SqliteOptions::default())
    }

    /// As [`SqliteStore::in_memory`], with options.
    ///
    /// # Panics
    /// As [`SqliteStore::in_memory`].
    #[must_use]
    pub fn in_memory_with(options: SqliteOptions) -> Self {
        let mut connection = Connection::open_in_memory().expect("memory for a database");
        tables::create(&mut connection).expect("an empty database takes the tables");
        let connection = Arc::new(Mutex::new(connection));
        Self::assemble(connection.clone(), connection, true, options)
    }

    fn assemble(
        writer: Arc<Mutex<Connection>>,
        reader: Arc<Mutex<Connection>>,
        inline: bool,
        options: SqliteOptions,
    ) -> Self {
        let committed = watch::Sender::new(0);
        Self { inner: Arc::new(Inner { writer, reader, inline, options, committed }) }
    }
}

impl Inner {
    /// Runs `work` on the reading connection.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, MetadataError> {
        let result = self.run(&self.reader, work).await;
        result.map_err(Failure::into_read_error)
    }

    async fn run<T: Send + 'static>(
        &self,
        connection: &Arc<Mutex<Connection>>,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut connection = connection.clone().lock_owned().await;
        if self.inline {
            return work(&mut connection);
        }
        blocking(move || work(&mut connection)).await
    }
}

/// Runs SQL on a thread for blocking calls. The work goes on where the caller is dropped.
#[allow(
    clippy::disallowed_methods,
    reason = "SQLite blocks; the simulator has the store in memory, which never comes here"
)]
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.unwrap_or_else(|error| Err(Failure::Lost(error.to_string())))
}

fn open_connections(
    path: &Path,
    busy_timeout: Duration,
) -> Result<(Connection, Connection), Failure> {
    let mut writer = open_connection(path)?;
    let mode: String =
        writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Failure::Before(format!("its file system allows no write-ahead log ({mode})")));
    }
    // An acknowledged transaction survives a loss of power. `NORMAL` would not sync each one.
    writer.pragma_update(None, "synchronous", "FULL")?;
    tables::create(&mut writer)?;
    writer.busy_timeout(busy_timeout)?;
    let reader = open_connection(path)?;
    reader.pragma_update(None, "query_only", true)?;
    reader.busy_timeout(busy_timeout)?;
    Ok((writer, reader))
}

fn open_connection(path: &Path) -> Result<Connection, Failure> {
    // Without SQLite's own mutex, because our mutex guards each connection.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(OPEN_BUSY_TIMEOUT)?;
    Ok(connection)
}

#[async_trait]
impl MetadataStore for SqliteStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError> {
        check_key(key)?;
        let key = key.to_owned();
        self.inner.read(move |connection| tables::get(connection, &key)).await
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        self.inner
            .read(move |connection| tables::range(connection, &prefix, after.as_deref(), limit))
            .await
    }

    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError> {
        transaction.check()?;
        let inner = self.inner.clone();
        let history = inner.options.history_changes;
        let committed = inner.committed.clone();
        let work = move |connection: &mut Connection| {
            let revision = tables::commit(connection, &transaction, history)?;
            // Here and not after the await, because the caller may have been dropped by then.
            if revision > 0 {
                committed.send_replace(revision);
            }
            Ok(revision)
        };
        inner.run(&inner.writer, work).await.map_err(Failure::into_commit_error)
    }

    async fn watch(
        &self,
        prefix: &str,
        after_revision: u64,
    ) -> Result<Box<dyn Watch>, MetadataError> {
        let watch = changes::SqliteWatch::open(self.inner.clone(), prefix, after_revision).await?;
        Ok(Box::new(watch))
    }
}
