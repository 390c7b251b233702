//! What the engine needs of a metadata store. It is a subset of etcd's key-value interface, so that
//! etcd implements it directly; [`crate::conformance`] is its definition in code.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// The most compares, and the most writes, of one transaction (etcd's `max-txn-ops`).
pub const TRANSACTION_OPERATIONS_MAX: usize = 128;
/// The most bytes of keys and values in one transaction, below etcd's request limit of 1.5 MiB.
pub const TRANSACTION_BYTES_MAX: usize = 1 << 20;
/// The most bytes of a key, a scope's prefix included.
pub const KEY_BYTES_MAX: usize = 1024;

/// Why a call to the store failed. The kinds differ in what the caller may conclude.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A compare of the transaction did not hold; nothing was written.
    #[error("{key} is not as expected")]
    Conflict {
        /// The first key that was not as expected.
        key: String,
    },
    /// Nothing happened; the same call may be made again.
    #[error("metadata store unavailable: {0}")]
    Unavailable(String),
    /// The answer was lost: the transaction may have been committed or not. Read again.
    #[error("outcome of a metadata transaction unknown: {0}")]
    Unknown(String),
    /// The history of changes no longer reaches back that far. Read again, then watch from there.
    #[error("the metadata store's history was trimmed past the requested revision")]
    Compacted,
    /// What is stored cannot be understood. Asking again does not help.
    #[error("metadata store: {0}")]
    Corrupt(String),
    /// The call is against the contract of [`MetadataStore`]; nothing happened.
    #[error("invalid metadata call: {0}")]
    Invalid(String),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Bytes,
    /// Revision of the transaction that last changed it, from 1.
    pub revision: u64,
}

/// A part of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Sorted by the bytes of the key.
    pub entries: Vec<Entry>,
    /// Revision of the store that all of `entries` were read at.
    pub revision: u64,
    /// Whether keys follow that the limit kept back.
    pub more: bool,
}

/// What a compare expects of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No such key.
    Absent,
    /// The key is there.
    Present,
    /// The key is there, and this revision changed it last.
    Revision(u64),
}

/// A condition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compare {
    /// The key that is looked at.
    pub key: String,
    /// What it must be.
    pub expected: Expected,
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets the key.
    Put {
        /// The key.
        key: String,
        /// Its new value.
        value: Bytes,
    },
    /// Removes the key. A key that is not there is not an error, and no change.
    Delete {
        /// The key.
        key: String,
    },
}

impl Write {
    /// The key that it changes.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

/// All compares hold and all writes happen, or nothing happens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// At most [`TRANSACTION_OPERATIONS_MAX`].
    pub compares: Vec<Compare>,
    /// At most [`TRANSACTION_OPERATIONS_MAX`], each of another key.
    pub writes: Vec<Write>,
}

impl Transaction {
    /// An empty transaction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition.
    #[must_use]
    pub fn compare(mut self, key: impl Into<String>, expected: Expected) -> Self {
        self.compares.push(Compare { key: key.into(), expected });
        self
    }

    /// Adds a put.
    #[must_use]
    pub fn put(mut self, key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.writes.push(Write::Put { key: key.into(), value: value.into() });
        self
    }

    /// Adds a delete.
    #[must_use]
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.writes.push(Write::Delete { key: key.into() });
        self
    }

    /// Checks the limits of all stores, so that a transaction that one takes is taken by the
    /// others.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] where one is exceeded or a key is written twice.
    pub fn check(&self) -> Result<(), MetadataError> {
        let operations = self.compares.len().max(self.writes.len());
        if operations > TRANSACTION_OPERATIONS_MAX {
            return Err(MetadataError::Invalid(format!(
                "{operations} operations in a transaction, {TRANSACTION_OPERATIONS_MAX} allowed"
            )));
        }
        let mut bytes = 0;
        let mut written = std::collections::BTreeSet::new();
        for compare in &self.compares {
            check_key(&compare.key)?;
            bytes += compare.key.len();
        }
        for write in &self.writes {
            check_key(write.key())?;
            if !written.insert(write.key()) {
                return Err(MetadataError::Invalid(format!("{} is written twice", write.key())));
            }
            let value = if let Write::Put { value, .. } = write { value.len() } else { 0 };
            bytes += write.key().len() + value;
        }
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(MetadataError::Invalid(format!(
                "{bytes} bytes in a transaction, {TRANSACTION_BYTES_MAX} allowed"
            )));
        }
        Ok(())
    }
}

/// Checks that a key is neither empty nor too long.
///
/// # Errors
/// [`MetadataError::Invalid`].
pub fn check_key(key: &str) -> Result<(), MetadataError> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let length = key.len();
        return Err(MetadataError::Invalid(format!("a key of {length} bytes")));
    }
    Ok(())
}

/// One change that a watch saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: String,
    /// The new value; none where the key was removed.
    pub value: Option<Bytes>,
    /// Revision of the transaction that did it.
    pub revision: u64,
}

/// The changes under a prefix, one after another.
#[async_trait]
pub trait Watch: Send {
    /// Waits for changes: at least one, by ascending revision, each once, none left out. Changes of
    /// one revision are never split over two calls; their order among themselves is not defined.
    ///
    /// Cancel safe: a call that is dropped loses nothing.
    ///
    /// # Errors
    /// [`MetadataError::Compacted`] where this watch fell behind the history: read again and make
    /// a new one. After any error but [`MetadataError::Unavailable`] the watch is useless.
    async fn next(&mut self) -> Result<Vec<Change>, MetadataError>;
}

/// A key-value store with atomic compare-and-swap over several keys, and with revisions: one number
/// for the whole store that grows with each transaction that changes something.
///
/// Every call is linearizable: a read sees every transaction that was acknowledged before it began,
/// by whatever process.
#[async_trait]
pub trait MetadataStore: Send + Sync {
    /// Reads one key.
    ///
    /// # Errors
    /// As [`MetadataError`] says; never `Conflict` or `Unknown`.
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError>;

    /// Reads up to `limit` keys that start with `prefix` and sort behind `after`, at one revision.
    /// Any limit is allowed, `usize::MAX` too: a store that answers in smaller pieces reads them
    /// all at the revision of the first.
    ///
    /// # Errors
    /// As [`MetadataStore::get`].
    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError>;

    /// Runs a transaction; durable when this returns. Returns its revision, or 0 where it changed
    /// nothing (no writes, or deletes of absent keys only).
    ///
    /// # Errors
    /// As [`MetadataError`] says.
    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError>;

    /// Watches the keys that start with `prefix`: every change of a revision above
    /// `after_revision`, past ones included.
    ///
    /// # Errors
    /// [`MetadataError::Compacted`] where the history does not reach back that far.
    async fn watch(
        &self,
        prefix: &str,
        after_revision: u64,
    ) -> Result<Box<dyn Watch>, MetadataError>;
}

/// A store as one cluster sees it: every key lies below `<cluster>/`, and no call can name a key
/// of another cluster.
#[derive(Clone)]
pub struct ScopedStore {
    store: Arc<dyn MetadataStore>,
    scope: String,
}

impl ScopedStore {
    /// The part of `store` that belongs to `cluster`, a name of `[A-Za-z0-9._-]`.
    ///
    /// # Errors
    /// [`MetadataError::Invalid`] where the name has other characters or is empty.
    pub fn new(store: Arc<dyn MetadataStore>, cluster: &str) -> Result<Self, MetadataError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if cluster.is_empty() || !cluster.chars().all(allowed) {
            return Err(MetadataError::Invalid(format!("{cluster:?} as the name of a cluster")));
        }
        Ok(Self { store, scope: format!("{cluster}/") })
    }

    fn scoped(&self, key: &str) -> String {
        format!("{}{key}", self.scope)
    }

    fn unscoped_error(&self, error: MetadataError) -> MetadataError {
        match error {
            MetadataError::Conflict { key } => {
                MetadataError::Conflict { key: unscoped(&self.scope, key) }
            }
            other => other,
        }
    }
}

fn unscoped(scope: &str, key: String) -> String {
    match key.strip_prefix(scope) {
        Some(rest) => rest.to_owned(),
        None => key,
    }
}

#[async_trait]
impl MetadataStore for ScopedStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError> {
        check_key(key)?;
        let entry = self.store.get(&self.scoped(key)).await?;
        Ok(entry.map(|entry| Entry { key: unscoped(&self.scope, entry.key), ..entry }))
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError> {
        let after = after.map(|after| self.scoped(after));
        let mut page = self.store.range(&self.scoped(prefix), after.as_deref(), limit).await?;
        for entry in &mut page.entries {
            entry.key = unscoped(&self.scope, std::mem::take(&mut entry.key));
        }
        Ok(page)
    }

    async fn commit(&self, mut transaction: Transaction) -> Result<u64, MetadataError> {
        transaction.check()?;
        for compare in &mut transaction.compares {
            compare.key = self.scoped(&compare.key);
        }
        for write in &mut transaction.writes {
            let (Write::Put { key, .. } | Write::Delete { key }) = write;
            *key = self.scoped(key);
        }
        self.store.commit(transaction).await.map_err(|error| self.unscoped_error(error))
    }

    async fn watch(
        &self,
        prefix: &str,
        after_revision: u64,
    ) -> Result<Box<dyn Watch>, MetadataError> {
        let watch = self.store.watch(&self.scoped(prefix), after_revision).await?;
        Ok(Box::new(ScopedWatch { watch, scope: self.scope.clone() }))
    }
}

struct ScopedWatch {
    watch: Box<dyn Watch>,
    scope: String,
}

#[async_trait]
impl Watch for ScopedWatch {
    async fn next(&mut self) -> Result<Vec<Change>, MetadataError> {
        let mut changes = self.watch.next().await?;
        for change in &mut changes {
            change.key = unscoped(&self.scope, std::mem::take(&mut change.key));
        }
        Ok(changes)
    }
}
