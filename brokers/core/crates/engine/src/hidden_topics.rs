//! Orphaned topics: topics that storage has and the metadata store does not know. A start hides
//! them, so that somebody can decide whether they come back.

use std::collections::{BTreeMap, BTreeSet};

use super::StartError;
use super::succession::{Succession, sealed_end};
use super::takeover::EarlierLanes;
use freshet_jobs::descriptors;
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, FoundTopic, Term};
use freshet_metadata::schema::{Extent, PartitionRecord, TopicRecord};
use freshet_metadata::view::Snapshot;
use freshet_storage::cold::ColdError;
use freshet_wire::ids::{PartitionId, TopicId};
use freshet_world::env::store::ObjectStore;

/// Finds at a start which topics and partitions the metadata store lacks, and adds them to it.
pub struct Adoption<'a> {
    /// The cluster's metadata.
    pub metadata: &'a ClusterMetadata,
    /// What the incarnation that starts succeeds.
    pub succession: &'a Succession,
    /// The right to run the cluster's jobs, of which this is one.
    pub term: Term,
    /// What earlier lanes hold.
    pub earlier: &'a EarlierLanes,
    /// The object store that holds the descriptors of topics.
    pub store: &'a dyn ObjectStore,
    /// The cluster's prefix in the object store.
    pub cluster: &'a str,
    /// The time of the start in ms since 1970, which is recorded for display.
    pub now_ms: i64,
}

impl Adoption<'_> {
    /// Adds to the metadata store what only storage has, which means that the metadata store was
    /// restored from a backup. Topics that it knows get the partitions that were added since the
    /// backup. Topics that it does not know become hidden, for somebody to decide; internal topics
    /// are restored at once. Returns whether anything was written.
    ///
    /// # Errors
    /// [`StartError::Metadata`] where the metadata store fails, [`StartError::Cold`] where the
    /// object store does.
    pub async fn adopt(&self, snapshot: &Snapshot) -> Result<bool, StartError> {
        let guard = Some(self.term.fence());
        let mut written = false;
        let mut unknown = BTreeMap::new();
        for (id, indexes) in on_storage(self.earlier) {
            let count = indexes.last().map_or(0, |last| last.saturating_add(1));
            if let Some(topic) = snapshot.topics.by_id(id) {
                if count > topic.record.partitions {
                    let name = &topic.record.name;
                    tracing::warn!(
                        topic = name,
                        count,
                        "storage has partitions that the metadata store lacks: they are added"
                    );
                    self.metadata.create_partitions(guard, name, count, &[]).await?;
                    written = true;
                }
            } else if !snapshot.hidden.contains_key(&id)
                && !snapshot.deleted_topics.contains_key(&id)
            {
                unknown.insert(id, count);
            }
        }
        let ids = unknown.keys().copied().collect();
        let stored = descriptors::read_descriptors(self.store, self.cluster, &ids).await;
        let stored = stored.map_err(ColdError::from)?;
        for (id, count) in unknown {
            let topic = self.topic(id, count, stored.get(&id));
            tracing::warn!(%id, name = topic.name,
                "storage has a topic that the metadata store lacks: it is hidden");
            written |= self.hide(topic).await?;
        }
        Ok(written)
    }

    /// The record of a topic as far as storage shows it: its descriptor where it has one, extended
    /// to `count` partitions, else a record without a name.
    fn topic(&self, id: TopicId, count: i32, stored: Option<&TopicRecord>) -> TopicRecord {
        if let Some(stored) = stored {
            let enough = stored.partitions >= count;
            return if enough { stored.clone() } else { stored.extended(count, self.now_ms) };
        }
        TopicRecord {
            id,
            name: String::new(),
            partitions: count,
            replication_factor: 1,
            internal: false,
            created_at_ms: self.now_ms,
            configs: BTreeMap::new(),
            partition_counts: Vec::new(),
            deletions: Vec::new(),
            retention: None,
        }
    }

    /// Records a topic as hidden, and restores it where it is internal. Returns whether anything
    /// was written.
    async fn hide(&self, topic: TopicRecord) -> Result<bool, StartError> {
        let guard = Some(self.term.fence());
        let record = |index| self.partition(PartitionId::new(topic.id, index));
        let partitions = (0..topic.partitions).map(record).collect();
        let (id, internal) = (topic.id, topic.internal);
        let topic_on_storage = FoundTopic { topic, partitions };
        let revision = self.metadata.hide_found(guard, &topic_on_storage).await?;
        if internal {
            match self.metadata.restore_topic(guard, id, None).await {
                // The cluster has an internal topic of that name already, or this one was restored
                // under another name before. It stays hidden, for somebody to decide.
                Ok(_) | Err(ClusterError::TopicExists(_) | ClusterError::InternalTopic(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(revision > 0)
    }

    /// The record of a partition as its last leader left it, as far as storage shows it. The
    /// takeover that follows raises the epoch above those that no block names.
    fn partition(&self, partition: PartitionId) -> PartitionRecord {
        let batches = self.earlier.batches.get(&partition).into_iter().flatten();
        let lanes: BTreeSet<_> =
            batches.map(|batch| (batch.epoch, batch.spot.incarnation)).collect();
        let extent = |(epoch, incarnation)| Extent {
            epoch,
            incarnation,
            end: self.succession.lanes.get(&incarnation).map(|end| sealed_end(*end)),
        };
        let extents: Vec<Extent> = lanes.into_iter().map(extent).collect();
        let newest = self.earlier.manifests.get(&partition);
        let of_manifest = newest.map_or(0, |manifest| manifest.epoch);
        let epoch = extents.iter().map(|extent| extent.epoch).fold(of_manifest, i32::max);
        PartitionRecord { extents, ..PartitionRecord::new(None, epoch) }
    }
}

/// The partitions of which earlier lanes hold batches or name manifests, by topic.
fn on_storage(earlier: &EarlierLanes) -> BTreeMap<TopicId, BTreeSet<i32>> {
    let mut topics: BTreeMap<TopicId, BTreeSet<i32>> = BTreeMap::new();
    for partition in earlier.manifests.keys().chain(earlier.batches.keys()) {
        topics.entry(partition.topic).or_default().insert(partition.index);
    }
    topics
}
