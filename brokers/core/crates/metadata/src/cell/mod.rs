//! The only way to write a cell's own records: specs of clusters by the control plane, their status
//! by the keeper, wake requests by gateways, and notes of control plane and keeper.
//!
//! Every call is one compare-and-swap, or a loop of them until one holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster::RECORD_BYTES_MAX;
use super::schema::cell::{
    CELL_SCOPE, CellKey, CellKind, CellNote, ClusterSpec, ClusterStatus, Sample, WakeRequest,
    check_cluster_id,
};
use super::schema::{Record, SchemaError, Stored, decode, encode};
use super::store::{
    Change, Expected, MetadataError, MetadataStore, ScopedStore, Transaction, Watch,
};

#[cfg(test)]
mod tests;

/// The most bytes of a note: one transaction takes it.
pub const NOTE_BYTES_MAX: usize = 768 * 1024;
/// How often a compare-and-swap is tried before it fails as [`CellError::Contended`].
const ATTEMPTS_MAX: u32 = 64;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] MetadataError),
    /// What is stored cannot be understood.
    #[error(transparent)]
    Record(#[from] SchemaError),
    /// Others changed this key again and again.
    #[error("{0} was changed by somebody else meanwhile")]
    Contended(String),
    /// A newer spec is stored; nothing was written.
    #[error("spec of {id} has generation {stored} already, which {given} would take back")]
    OldGeneration {
        /// The cluster.
        id: String,
        /// Generation of the stored spec.
        stored: u64,
        /// Generation of the one that was to be written.
        given: u64,
    },
    /// A record that contradicts itself, or no id of a cluster. The text says why.
    #[error("{0}")]
    Invalid(String),
    /// A record would be larger than is allowed.
    #[error("{key} would have {bytes} bytes, {max} are allowed")]
    TooLarge {
        /// The record's key.
        key: String,
        /// Its size.
        bytes: usize,
        /// The most.
        max: usize,
    },
}

/// All records of a kind, at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<R> {
    /// By cluster id.
    pub records: BTreeMap<String, Stored<R>>,
    /// Watch from here to miss nothing.
    pub revision: u64,
}

/// A record after a change; `None` where it was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellRecord {
    /// A spec.
    Spec(Option<ClusterSpec>),
    /// A status.
    Status(Option<ClusterStatus>),
    /// A wake request.
    Wake(Option<WakeRequest>),
    /// That a cluster is purged.
    Removal(Option<CellNote>),
    /// How the brokers of the cell are.
    Health(Option<CellNote>),
    /// A sample of an earlier release.
    Sample(Option<Sample>),
}

impl CellRecord {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> CellKind {
        match self {
            Self::Spec(_) => CellKind::Spec,
            Self::Status(_) => CellKind::Status,
            Self::Wake(_) => CellKind::Wake,
            Self::Removal(_) => CellKind::Removal,
            Self::Health(_) => CellKind::Health,
            Self::Sample(_) => CellKind::Sample,
        }
    }
}

/// A change of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellChange {
    /// The cluster that it belongs to.
    pub cluster: String,
    /// Revision of the transaction that did it.
    pub revision: u64,
    /// The record as it is now.
    pub record: CellRecord,
}

/// A cell's own records.
#[derive(Clone)]
pub struct CellMetadata {
    store: Arc<dyn MetadataStore>,
}

impl CellMetadata {
    /// The records in `store`, which is the whole store of the cell.
    #[must_use]
    pub fn new(store: Arc<dyn MetadataStore>) -> Self {
        let scoped = ScopedStore::new(store, CELL_SCOPE).expect("the scope is a plain name");
        Self { store: Arc::new(scoped) }
    }

    /// Writes a spec, unless a newer one is stored. One of the same generation is replaced: the
    /// spec of one generation may differ after a change of the service's settings. Returns the
    /// revision of what is stored.
    ///
    /// # Errors
    /// [`CellError::OldGeneration`], [`CellError::Invalid`], [`CellError::TooLarge`];
    /// [`CellError::Store`].
    pub async fn put_spec(&self, spec: &ClusterSpec) -> Result<u64, CellError> {
        let key = CellKey::new(CellKind::Spec, &spec.id);
        check_record(&key, spec)?;
        let newer = |stored: &ClusterSpec| {
            if stored.generation > spec.generation {
                let (id, stored, given) = (spec.id.clone(), stored.generation, spec.generation);
                return Err(CellError::OldGeneration { id, stored, given });
            }
            Ok(())
        };
        self.put(&key, spec, RECORD_BYTES_MAX, newer).await
    }

    /// The spec of a cluster.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn spec(&self, cluster: &str) -> Result<Option<Stored<ClusterSpec>>, CellError> {
        self.read(&key_of(CellKind::Spec, cluster)?).await
    }

    /// All specs.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn specs(&self) -> Result<Listing<ClusterSpec>, CellError> {
        self.list(CellKind::Spec).await
    }

    /// Removes a spec with the wake request, and returns whether there was one. The status that the
    /// keeper wrote and notes stay: see [`CellMetadata::remove_cluster`].
    ///
    /// # Errors
    /// [`CellError::Invalid`]; [`CellError::Store`].
    pub async fn remove_spec(&self, cluster: &str) -> Result<bool, CellError> {
        self.remove(cluster, &[CellKind::Spec, CellKind::Wake]).await
    }

    /// Removes all records of a cluster, and returns whether there were any.
    ///
    /// # Errors
    /// [`CellError::Invalid`]; [`CellError::Store`].
    pub async fn remove_cluster(&self, cluster: &str) -> Result<bool, CellError> {
        self.remove(cluster, &CellKind::ALL).await
    }

    /// Writes the status of a cluster; one that is equal changes nothing. Returns the revision of
    /// what is stored.
    ///
    /// # Errors
    /// [`CellError::Invalid`], [`CellError::TooLarge`]; [`CellError::Store`].
    pub async fn put_status(
        &self,
        cluster: &str,
        status: &ClusterStatus,
    ) -> Result<u64, CellError> {
        let key = key_of(CellKind::Status, cluster)?;
        check_record(&key, status)?;
        self.put(&key, status, RECORD_BYTES_MAX, |_| Ok(())).await
    }

    /// The status of a cluster; `None` where it was never started.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn status(&self, cluster: &str) -> Result<Option<Stored<ClusterStatus>>, CellError> {
        self.read(&key_of(CellKind::Status, cluster)?).await
    }

    /// The status of all clusters.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn statuses(&self) -> Result<Listing<ClusterStatus>, CellError> {
        self.list(CellKind::Status).await
    }

    /// Requests that a cluster is woken. A request that is there already stays as it is. Returns
    /// the request that is stored, and whether it is this one.
    ///
    /// # Errors
    /// [`CellError::Invalid`], [`CellError::TooLarge`]; [`CellError::Store`].
    pub async fn request_wake(
        &self,
        cluster: &str,
        request: &WakeRequest,
    ) -> Result<(Stored<WakeRequest>, bool), CellError> {
        let key = key_of(CellKind::Wake, cluster)?;
        let value = value_of(&key, request, RECORD_BYTES_MAX)?;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(stored) = self.read(&key).await? {
                return Ok((stored, false));
            }
            let transaction = Transaction::new()
                .compare(key.to_string(), Expected::Absent)
                .put(key.to_string(), value.clone());
            match self.store.commit(transaction).await {
                Ok(revision) => return Ok((Stored { record: request.clone(), revision }, true)),
                Err(MetadataError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CellError::Contended(key.to_string()))
    }

    /// The wake request of a cluster.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn wake(&self, cluster: &str) -> Result<Option<Stored<WakeRequest>>, CellError> {
        self.read(&key_of(CellKind::Wake, cluster)?).await
    }

    /// All wake requests.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn wakes(&self) -> Result<Listing<WakeRequest>, CellError> {
        self.list(CellKind::Wake).await
    }

    /// Removes the wake request that was read at `revision`; a later one stays. Returns whether it
    /// was removed.
    ///
    /// # Errors
    /// [`CellError::Invalid`]; [`CellError::Store`].
    pub async fn remove_wake(&self, cluster: &str, revision: u64) -> Result<bool, CellError> {
        let key = key_of(CellKind::Wake, cluster)?.to_string();
        let transaction = Transaction::new().compare(key.clone(), Expected::Revision(revision));
        match self.store.commit(transaction.delete(key)).await {
            Ok(_) => Ok(true),
            Err(MetadataError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes that a cluster is purged, in the place of what is stored. Returns the revision.
    ///
    /// # Errors
    /// [`CellError::Invalid`], [`CellError::TooLarge`] above [`NOTE_BYTES_MAX`];
    /// [`CellError::Store`].
    pub async fn put_removal(&self, cluster: &str, note: &CellNote) -> Result<u64, CellError> {
        self.put_note(&key_of(CellKind::Removal, cluster)?, note).await
    }

    /// Writes the same where nothing is stored. Returns whether it did.
    ///
    /// # Errors
    /// As [`CellMetadata::put_removal`].
    pub async fn add_removal(&self, cluster: &str, note: &CellNote) -> Result<bool, CellError> {
        let key = key_of(CellKind::Removal, cluster)?;
        let value = value_of(&key, note, NOTE_BYTES_MAX)?;
        let transaction = Transaction::new().compare(key.to_string(), Expected::Absent);
        match self.store.commit(transaction.put(key.to_string(), value)).await {
            Ok(_) => Ok(true),
            Err(MetadataError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// That a cluster is purged; `None` where nobody wrote so.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn removal(&self, cluster: &str) -> Result<Option<Stored<CellNote>>, CellError> {
        self.read(&key_of(CellKind::Removal, cluster)?).await
    }

    /// Writes how the brokers of the cell are, under a name. Returns the revision.
    ///
    /// # Errors
    /// As [`CellMetadata::put_removal`].
    pub async fn put_health(&self, name: &str, note: &CellNote) -> Result<u64, CellError> {
        self.put_note(&key_of(CellKind::Health, name)?, note).await
    }

    /// How the brokers of the cell are, as written under a name.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn health(&self, name: &str) -> Result<Option<Stored<CellNote>>, CellError> {
        self.read(&key_of(CellKind::Health, name)?).await
    }

    /// All samples that an earlier release left.
    ///
    /// # Errors
    /// [`CellError::Store`] and [`CellError::Record`].
    pub async fn samples(&self) -> Result<Listing<Sample>, CellError> {
        self.list(CellKind::Sample).await
    }

    /// Removes the sample that an earlier release left. Returns whether there was one.
    ///
    /// # Errors
    /// [`CellError::Invalid`]; [`CellError::Store`].
    pub async fn remove_sample(&self, cluster: &str) -> Result<bool, CellError> {
        self.remove(cluster, &[CellKind::Sample]).await
    }

    /// Watches records of these kinds: every change of a revision above `after`.
    ///
    /// # Errors
    /// [`MetadataError::Compacted`] where the history does not reach back that far: list, and watch
    /// from there.
    pub async fn watch(&self, kinds: &[CellKind], after: u64) -> Result<CellWatch, CellError> {
        // A watch has one prefix: that of a single kind, or the empty one for several.
        let prefix = if let [kind] = kinds { kind.prefix() } else { "" };
        let watch = self.store.watch(prefix, after).await?;
        Ok(CellWatch { watch, kinds: kinds.to_vec() })
    }

    async fn read<R: Record>(&self, key: &CellKey) -> Result<Option<Stored<R>>, CellError> {
        let entry = self.store.get(&key.to_string()).await?;
        Ok(entry.as_ref().map(Stored::from_entry).transpose()?)
    }

    async fn list<R: Record>(&self, kind: CellKind) -> Result<Listing<R>, CellError> {
        let page = self.store.range(kind.prefix(), None, usize::MAX).await?;
        let mut records = BTreeMap::new();
        for entry in page.entries {
            if let Some(key) = CellKey::parse(&entry.key)? {
                records.insert(key.cluster, Stored::from_entry(&entry)?);
            }
        }
        Ok(Listing { records, revision: page.revision })
    }

    /// Writes a record in the place of the stored one, if `allow` permits it.
    async fn put<R: Record + PartialEq>(
        &self,
        key: &CellKey,
        record: &R,
        bytes_max: usize,
        allow: impl Fn(&R) -> Result<(), CellError>,
    ) -> Result<u64, CellError> {
        let value = value_of(key, record, bytes_max)?;
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.read::<R>(key).await?;
            let mut expected = Expected::Absent;
            if let Some(stored) = stored {
                allow(&stored.record)?;
                if stored.record == *record {
                    return Ok(stored.revision);
                }
                expected = Expected::Revision(stored.revision);
            }
            let transaction = Transaction::new()
                .compare(key.to_string(), expected)
                .put(key.to_string(), value.clone());
            match self.store.commit(transaction).await {
                Ok(revision) => return Ok(revision),
                // Where the answer was lost, the stored record says whether it was written.
                Err(MetadataError::Conflict { .. } | MetadataError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(CellError::Contended(key.to_string()))
    }

    async fn put_note(&self, key: &CellKey, note: &CellNote) -> Result<u64, CellError> {
        let value = value_of(key, note, NOTE_BYTES_MAX)?;
        Ok(self.store.commit(Transaction::new().put(key.to_string(), value)).await?)
    }

    async fn remove(&self, cluster: &str, kinds: &[CellKind]) -> Result<bool, CellError> {
        let mut transaction = Transaction::new();
        for kind in kinds {
            transaction = transaction.delete(key_of(*kind, cluster)?.to_string());
        }
        Ok(self.store.commit(transaction).await? > 0)
    }
}

/// Changes of a cell's records, one after another.
pub struct CellWatch {
    watch: Box<dyn Watch>,
    kinds: Vec<CellKind>,
}

impl CellWatch {
    /// Waits for changes: at least one, by ascending revision, none left out. Cancel safe.
    ///
    /// # Errors
    /// [`MetadataError::Compacted`] where this watch fell behind: list, and watch from there.
    /// [`CellError::Record`] where a record cannot be read. After any error but
    /// [`MetadataError::Unavailable`] the watch is useless.
    pub async fn next(&mut self) -> Result<Vec<CellChange>, CellError> {
        loop {
            let mut changes = Vec::new();
            for change in self.watch.next().await? {
                changes.extend(self.read(&change)?);
            }
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }

    fn read(&self, change: &Change) -> Result<Option<CellChange>, CellError> {
        let Some(key) = CellKey::parse(&change.key)? else { return Ok(None) };
        if !self.kinds.contains(&key.kind) {
            return Ok(None);
        }
        let record = match key.kind {
            CellKind::Spec => CellRecord::Spec(record_of(change)?),
            CellKind::Status => CellRecord::Status(record_of(change)?),
            CellKind::Wake => CellRecord::Wake(record_of(change)?),
            CellKind::Removal => CellRecord::Removal(record_of(change)?),
            CellKind::Health => CellRecord::Health(record_of(change)?),
            CellKind::Sample => CellRecord::Sample(record_of(change)?),
        };
        Ok(Some(CellChange { cluster: key.cluster, revision: change.revision, record }))
    }
}

fn record_of<R: Record>(change: &Change) -> Result<Option<R>, SchemaError> {
    change.value.as_ref().map(|value| decode(&change.key, value)).transpose()
}

fn key_of(kind: CellKind, cluster: &str) -> Result<CellKey, CellError> {
    check_cluster_id(cluster).map_err(CellError::Invalid)?;
    Ok(CellKey::new(kind, cluster))
}

fn check_record<R: Record>(key: &CellKey, record: &R) -> Result<(), CellError> {
    record.check().map_err(|reason| CellError::Invalid(format!("{}: {reason}", key.cluster)))
}

fn value_of<R: Record>(key: &CellKey, record: &R, max: usize) -> Result<bytes::Bytes, CellError> {
    let value = encode(record);
    if value.len() > max {
        return Err(CellError::TooLarge { key: key.to_string(), bytes: value.len(), max });
    }
    Ok(value)
}
