//! Topics that storage has and the metadata does not know become hidden.

use std::collections::{BTreeMap, BTreeSet};

use super::takeover::{Claim, EarlierLanes, sealed_end};
use super::{StartError, descriptors};
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, FoundTopic, Term};
use freshet_metadata::schema::{Extent, PartitionRecord, TopicRecord};
use freshet_metadata::view::Snapshot;
use freshet_storage::cold::ColdError;
use freshet_wire::ids::{PartitionId, TopicId};
use freshet_world::env::store::ObjectStore;

/// What a broker has at its start to find out what the metadata lacks.
pub struct Adoption<'a> {
    /// The cluster's metadata.
    pub metadata: &'a ClusterMetadata,
    /// Who starts.
    pub claim: &'a Claim,
    /// The right to change what the cluster knows.
    pub term: Term,
    /// What earlier lanes hold.
    pub earlier: &'a EarlierLanes,
    /// Where descriptors of topics are.
    pub store: &'a dyn ObjectStore,
    /// The cluster's prefix there.
    pub cluster: &'a str,
    /// Wall clock, for display.
    pub now_ms: i64,
}

impl Adoption<'_> {
    /// Has the metadata know what storage has and it does not: it came back from a backup. Topics
    /// that it knows get the partitions that were added since; others are hidden, for somebody to
    /// decide, but for those of the brokers themselves. Tells whether anything was written.
    ///
    /// # Errors
    /// What the metadata store and the object store say.
    pub async fn adopt(&self, snapshot: &Snapshot) -> Result<bool, StartError> {
        let guard = Some(self.term.fence());
        let mut written = false;
        let mut unknown = BTreeMap::new();
        for (id, indexes) in on_storage(self.earlier) {
            let count = indexes.last().map_or(0, |last| last.saturating_add(1));
            if let Some(topic) = snapshot.topics.by_id(id) {
                if count > topic.record.partitions {
                    let name = &topic.record.name;
                    tracing::warn!(topic = name, count, "storage has more partitions: added");
                    self.metadata.create_partitions(guard, name, count, None).await?;
                    written = true;
                }
            } else if !snapshot.hidden.contains_key(&id)
                && !snapshot.deleted_topics.contains_key(&id)
            {
                unknown.insert(id, count);
            }
        }
        let ids = unknown.keys().copied().collect();
        let told = descriptors::read(self.store, self.cluster, &ids).await;
        let told = told.map_err(ColdError::from)?;
        for (id, count) in unknown {
            let topic = self.topic(id, count, told.get(&id));
            tracing::warn!(%id, name = topic.name, "storage has a topic that metadata lacks");
            written |= self.hide(topic).await?;
        }
        Ok(written)
    }

    /// A topic as far as storage tells of it.
    fn topic(&self, id: TopicId, count: i32, told: Option<&TopicRecord>) -> TopicRecord {
        if let Some(told) = told {
            let enough = told.partitions >= count;
            return if enough { told.clone() } else { told.extended(count, self.now_ms) };
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
        }
    }

    async fn hide(&self, topic: TopicRecord) -> Result<bool, StartError> {
        let guard = Some(self.term.fence());
        let record = |index| self.partition(PartitionId::new(topic.id, index));
        let partitions = (0..topic.partitions).map(record).collect();
        let (id, internal) = (topic.id, topic.internal);
        let found = FoundTopic { topic, partitions };
        let revision = self.metadata.hide_found(guard, &found).await?;
        if internal {
            match self.metadata.restore_topic(guard, id, None).await {
                // There is one already, or it came back under another name once: it stays for
                // somebody to decide.
                Ok(_) | Err(ClusterError::TopicExists(_) | ClusterError::InternalTopic(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(revision > 0)
    }

    /// The record of a partition as whoever led it last left it, as far as storage tells. The
    /// takeover that follows raises the epoch over what no block names.
    fn partition(&self, partition: PartitionId) -> PartitionRecord {
        let batches = self.earlier.batches.get(&partition).into_iter().flatten();
        let lanes: BTreeSet<_> =
            batches.map(|batch| (batch.epoch, batch.spot.incarnation)).collect();
        let extent = |(epoch, incarnation)| Extent {
            epoch,
            incarnation,
            end: self.claim.lanes.get(&incarnation).map(|end| sealed_end(*end)),
        };
        let extents: Vec<Extent> = lanes.into_iter().map(extent).collect();
        let newest = self.earlier.manifests.get(&partition);
        let of_manifest = newest.map_or(0, |manifest| manifest.epoch);
        let epoch = extents.iter().map(|extent| extent.epoch).fold(of_manifest, i32::max);
        PartitionRecord { leader: None, epoch, extents }
    }
}

/// The partitions of which lanes hold records, or name manifests.
fn on_storage(earlier: &EarlierLanes) -> BTreeMap<TopicId, BTreeSet<i32>> {
    let mut topics: BTreeMap<TopicId, BTreeSet<i32>> = BTreeMap::new();
    for partition in earlier.manifests.keys().chain(earlier.batches.keys()) {
        topics.entry(partition.topic).or_default().insert(partition.index);
    }
    topics
}
