//! The metadata store of a simulation: the real one in memory, with delays, lost answers, and
//! backups that can be restored.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use freshet_metadata::sqlite::SqliteStore;
use freshet_metadata::store::{
    Entry, MetadataError, MetadataStore, Page, Transaction, Watch, Write,
};
use freshet_world::sim::random::Seeded;
use parking_lot::Mutex;

/// The probabilities of faults, in thousandths per call.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetadataFaults {
    /// The call fails and nothing happened.
    pub unavailable: u64,
    /// A transaction's answer is lost; the transaction may have happened or not.
    pub unknown: u64,
}

struct Inner {
    store: SqliteStore,
    random: Seeded,
    faults: MetadataFaults,
}

/// See the module. Clone to share.
#[derive(Clone)]
pub struct SimMetadata(Arc<Mutex<Inner>>);

enum StoreFault {
    None,
    Unavailable,
    /// The answer is lost: before the transaction, or after it.
    Lost {
        done: bool,
    },
}

impl SimMetadata {
    pub fn new(random: Seeded, faults: MetadataFaults) -> Self {
        let store = SqliteStore::in_memory();
        Self(Arc::new(Mutex::new(Inner { store, random, faults })))
    }

    pub fn set_faults(&self, faults: MetadataFaults) {
        self.0.lock().faults = faults;
    }

    async fn call(&self, commit: bool) -> (SqliteStore, StoreFault) {
        let (store, delay, fault) = {
            let mut inner = self.0.lock();
            let delay = inner.random.between(0, 4);
            let faults = inner.faults;
            let fault = if inner.random.chance(faults.unavailable) {
                StoreFault::Unavailable
            } else if commit && inner.random.chance(faults.unknown) {
                StoreFault::Lost { done: inner.random.chance(500) }
            } else {
                StoreFault::None
            };
            (inner.store.clone(), delay, fault)
        };
        tokio::time::sleep(Duration::from_millis(delay)).await;
        (store, fault)
    }

    /// Everything that is stored. Call it outside of any host.
    pub fn backup(&self) -> Vec<Entry> {
        let store = self.0.lock().store.clone();
        let page = futures::executor::block_on(store.range("", None, usize::MAX));
        page.expect("memory does not fail").entries
    }

    /// Replaces everything by a backup. No host may live.
    pub fn restore(&self, backup: &[Entry]) {
        let store = SqliteStore::in_memory();
        let writes = backup
            .iter()
            .map(|entry| Write::Put { key: entry.key.clone(), value: entry.value.clone() })
            .collect::<Vec<_>>();
        for writes in writes.chunks(50) {
            let transaction = Transaction { compares: Vec::new(), writes: writes.to_vec() };
            futures::executor::block_on(store.commit(transaction)).expect("memory does not fail");
        }
        self.0.lock().store = store;
    }
}

fn unavailable() -> MetadataError {
    MetadataError::Unavailable("simulated".into())
}

#[async_trait]
impl MetadataStore for SimMetadata {
    async fn get(&self, key: &str) -> Result<Option<Entry>, MetadataError> {
        match self.call(false).await {
            (store, StoreFault::None) => store.get(key).await,
            _ => Err(unavailable()),
        }
    }

    async fn range(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page, MetadataError> {
        match self.call(false).await {
            (store, StoreFault::None) => store.range(prefix, after, limit).await,
            _ => Err(unavailable()),
        }
    }

    async fn commit(&self, transaction: Transaction) -> Result<u64, MetadataError> {
        let (store, fault) = self.call(true).await;
        match fault {
            StoreFault::None => store.commit(transaction).await,
            StoreFault::Unavailable => Err(unavailable()),
            StoreFault::Lost { done } => {
                if done {
                    // The fault is that the outcome is dropped.
                    let _ = store.commit(transaction).await;
                }
                Err(MetadataError::Unknown("simulated".into()))
            }
        }
    }

    async fn watch(
        &self,
        prefix: &str,
        after_revision: u64,
    ) -> Result<Box<dyn Watch>, MetadataError> {
        let store = self.0.lock().store.clone();
        store.watch(prefix, after_revision).await
    }
}
