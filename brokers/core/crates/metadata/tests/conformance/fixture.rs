//! Stores and surroundings for the tests.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use freshet_metadata::conformance::Handles;
pub use freshet_metadata::conformance::limits::{broker, new_topic};
use freshet_metadata::store::{Entry, Page, Transaction, Watch};
use freshet_metadata::{ClusterMetadata, MetadataError, MetadataStore, ScopedStore, SqliteStore};
use freshet_world::env::{Clock, Randomness};
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

pub async fn on_file() -> Handles {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metadata.sqlite");
    let first = Arc::new(SqliteStore::open(&path).await.unwrap());
    let second = Arc::new(SqliteStore::open(&path).await.unwrap());
    Handles { first, second, kept: Some(Box::new(folder)) }
}

pub async fn in_memory() -> Handles {
    let store = Arc::new(SqliteStore::in_memory());
    Handles { first: store.clone(), second: store, kept: None }
}

/// A part of a store is a store.
pub async fn scoped() -> Handles {
    let Handles { first, second, kept } = on_file().await;
    let scoped = |store| Arc::new(ScopedStore::new(store, "cluster-1").unwrap());
    Handles { first: scoped(first), second: scoped(second), kept }
}

pub struct FixedClock;

impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        1_700_000_000_000
    }
}

pub struct Seeded(Mutex<SmallRng>);

impl Seeded {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SmallRng::seed_from_u64(seed))))
    }
}

impl Randomness for Seeded {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().fill_bytes(buffer);
    }
}

pub fn metadata_of(store: Arc<dyn MetadataStore>) -> ClusterMetadata {
    ClusterMetadata::new(store, Arc::new(FixedClock), Seeded::new(7))
}

/// An empty cluster in memory.
pub fn metadata() -> ClusterMetadata {
    metadata_of(Arc::new(SqliteStore::in_memory()))
}

/// What a [`Hooked`] store does with a transaction.
pub enum Outcome {
    Commit,
    /// Nothing happens.
    Refuse,
    /// It is committed, and the answer is lost.
    Lose,
}

type Hook = dyn Fn(usize) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send + Sync;

/// A store that asks before each transaction, counted from 0.
pub struct Hooked {
    inner: Arc<dyn MetadataStore>,
    commits: AtomicUsize,
    hook: Box<Hook>,
}

impl Hooked {
    pub fn new<F>(
        inner: Arc<dyn MetadataStore>,
        hook: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let hook = Box::new(move |commit| Box::pin(hook(commit)) as Pin<Box<_>>);
        Arc::new(Self { inner, commits: AtomicUsize::new(0), hook })
    }

    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl MetadataStore for Hooked {
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError> {
        self.inner.get(key).await
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError> {
        self.inner.range(prefix, after, limit).await
    }

    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError> {
        match (self.hook)(self.commits.fetch_add(1, Ordering::SeqCst)).await {
            Outcome::Commit => self.inner.commit(transaction).await,
            Outcome::Refuse => Err(MetadataError::Unavailable("refused".to_owned())),
            Outcome::Lose => {
                self.inner.commit(transaction).await?;
                Err(MetadataError::Unknown("lost".to_owned()))
            }
        }
    }

    async fn watch(&self, prefix: &str, after: u64) -> Result<Box<dyn Watch>, MetadataError> {
        self.inner.watch(prefix, after).await
    }
}
