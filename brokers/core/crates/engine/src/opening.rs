//! Opens partitions: an incarnation becomes leader of them, then loads each from its manifest and
//! from the batches in the lanes that it succeeds.

use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::configs::BrokerConfigs;
use super::succession::Succession;
use super::takeover::EarlierLanes;
use super::topics::{READS_AT_ONCE, ViewedTopics};
use super::{EngineSettings, StartError};
use freshet_jobs::TopicFacts;
use freshet_jobs::retention::LogRules;
use freshet_metadata::cluster::{ClusterError, ClusterMetadata, Fence};
use freshet_metadata::schema::PartitionRecord;
use freshet_metadata::view::MetadataView;
use freshet_partition::load::{MissingOffsets, Opening};
use freshet_partition::registry::Partitions;
use freshet_partition::{Partition, Sources};
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ManifestRef;
use freshet_wire::ids::{PartitionId, TopicId};
use freshet_world::env::Environment;
use freshet_world::env::store::{ObjectStore, StoreError};

/// Opens partitions, with what it needs for that.
pub struct PartitionOpener<'a> {
    metadata: &'a ClusterMetadata,
    view: &'a MetadataView,
    fence: Fence,
    store: &'a dyn ObjectStore,
    cluster: &'a str,
    sources: &'a Arc<Sources>,
    /// Producers whose last batch was written at this time or before are forgotten; ms since 1970.
    producers_since_ms: i64,
    /// What is kept of each partition.
    rules: ViewedTopics,
    /// The time, in ms since 1970, by which records expire.
    now_ms: i64,
}

impl<'a> PartitionOpener<'a> {
    /// An opener for an incarnation, whose metadata transactions have the condition `fence`. `view`
    /// shows what the leaders that are succeeded wrote last; all partitions share `sources`.
    pub fn new(
        (metadata, fence): (&'a ClusterMetadata, Fence),
        view: &'a Arc<MetadataView>,
        environment: &'a Environment,
        settings: &'a EngineSettings,
        sources: &'a Arc<Sources>,
    ) -> Self {
        let configs = BrokerConfigs::new(Arc::clone(view), settings.configs.clone(), settings.slot);
        let expiration_ms = i64::from(configs.current().producer_id_expiration_ms);
        let now_ms = environment.clock.now_ms();
        Self {
            metadata,
            view,
            fence,
            store: environment.bucket.as_ref(),
            cluster: &settings.cluster,
            sources,
            producers_since_ms: now_ms.saturating_sub(expiration_ms),
            rules: ViewedTopics { view: Arc::clone(view), configs },
            now_ms,
        }
    }
}

/// A partition that was taken over and is not open yet.
struct Taken {
    id: PartitionId,
    topic: Arc<str>,
    record: PartitionRecord,
    manifest: Option<ManifestRef>,
}

/// A partition that was taken over.
pub enum Opened {
    /// It can be served.
    Open(Arc<Partition>),
    /// Its log has a hole.
    Offline(MissingOffsets),
}

impl Opened {
    /// Serves it, or says why it cannot be served.
    pub fn register(self, partitions: &Partitions) {
        match self {
            Self::Open(partition) => partitions.insert(partition),
            Self::Offline(missing) => partitions.insert_offline(missing),
        }
    }
}

impl PartitionOpener<'_> {
    /// Takes over the partitions for which `is_taken` holds, and opens them. Others are opened
    /// where the log of one has a hole.
    ///
    /// # Errors
    /// [`StartError::Metadata`] where the metadata store fails, [`StartError::Cold`] where a
    /// manifest cannot be read.
    pub async fn open_all(
        &self,
        succession: &Succession,
        mut earlier: EarlierLanes,
        is_taken: impl Fn(PartitionId, &PartitionRecord) -> bool,
    ) -> Result<Vec<Opened>, StartError> {
        let taken = self.take_over(succession, &earlier, is_taken).await?;
        let mut opened = Vec::with_capacity(taken.len());
        let mut loaded = stream::iter(taken)
            .map(|taken| async move {
                let manifest = self.manifest(&taken).await;
                (taken, manifest)
            })
            .buffered(READS_AT_ONCE);
        let mut rules: Option<(TopicId, Option<LogRules>)> = None;
        while let Some((taken, manifest)) = loaded.next().await {
            let tail = earlier.tail(taken.id, &taken.record);
            match manifest.and_then(|manifest| self.open(&taken, manifest, tail)) {
                Ok(partition) => {
                    let topic = taken.id.topic;
                    let known = rules.take().filter(|(known, _)| *known == topic);
                    let known = known.unwrap_or_else(|| (topic, self.rules.rules(topic)));
                    if let Some(of_topic) = &known.1 {
                        of_topic.hide_expired(&partition, self.now_ms);
                    }
                    rules = Some(known);
                    opened.push(Opened::Open(partition));
                }
                Err(StartError::Missing(missing)) => {
                    tracing::error!(topic = %taken.topic, %missing, "offline");
                    opened.push(Opened::Offline(missing));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(opened)
    }

    /// Makes the incarnation leader of these partitions in the metadata store, and returns those
    /// of which it became leader. This precedes the reading of manifests, so that no
    /// other incarnation can change a partition between the two.
    async fn take_over(
        &self,
        succession: &Succession,
        earlier: &EarlierLanes,
        is_taken: impl Fn(PartitionId, &PartitionRecord) -> bool,
    ) -> Result<Vec<Taken>, StartError> {
        let snapshot = self.view.snapshot();
        let mut updates = Vec::new();
        let mut taken = Vec::new();
        // Deleted and orphaned topics too: they can be brought back, and their records with them.
        for topic in snapshot.led_topics() {
            let name: Arc<str> = topic.record.name.as_str().into();
            for (index, stored) in (0..).zip(&topic.partitions) {
                let id = PartitionId::new(topic.record.id, index);
                if !is_taken(id, &stored.record) {
                    continue;
                }
                if stored.record.leader == Some(succession.successor) {
                    // The answer to an earlier attempt was lost.
                    let (topic, record) = (Arc::clone(&name), stored.record.clone());
                    taken.push(Taken {
                        id,
                        topic,
                        manifest: earlier.manifest(id, &record),
                        record,
                    });
                    continue;
                }
                // A broken invariant fails the start: the next one reads records and lanes anew.
                let update =
                    earlier.succession(succession, id, stored).map_err(ClusterError::from)?;
                let Some(update) = update else { continue };
                taken.push(Taken {
                    id,
                    topic: Arc::clone(&name),
                    record: update.record.clone(),
                    manifest: earlier.manifest(id, &stored.record),
                });
                updates.push(update);
            }
        }
        let result = self.metadata.take_over(self.fence, updates).await?;
        // A record that differs from the image is one of a topic that was changed or deleted just
        // now: the topic keeper handles it once the image shows the change.
        taken.retain(|taken| !result.lost.contains(&taken.id));
        Ok(taken)
    }

    /// Reads the manifest that counts; an empty one where the partition has none. A manifest that
    /// counts but does not exist is a hole in the log.
    async fn manifest(&self, taken: &Taken) -> Result<Arc<Manifest>, StartError> {
        let Some(name) = taken.manifest else { return Ok(Arc::new(Manifest::empty(taken.id))) };
        let key = Manifest::key(self.cluster, taken.id, name);
        match self.store.get(&key).await {
            Ok(bytes) => Ok(Arc::new(Manifest::decode(&bytes)?)),
            Err(StoreError::NotFound(_)) => {
                Err(MissingOffsets { partition: taken.id, from_offset: 0, to_offset: -1 }.into())
            }
            Err(error) => Err(ColdError::from(error).into()),
        }
    }

    fn open(
        &self,
        taken: &Taken,
        manifest: Arc<Manifest>,
        tail: Vec<freshet_partition::load::TailBatch>,
    ) -> Result<Arc<Partition>, StartError> {
        let opening = Opening {
            id: taken.id,
            topic: Arc::clone(&taken.topic),
            epoch: taken.record.epoch,
            manifest,
            tail,
            producers_since_ms: self.producers_since_ms,
        };
        Ok(Partition::open(opening, Arc::clone(self.sources))?)
    }
}
