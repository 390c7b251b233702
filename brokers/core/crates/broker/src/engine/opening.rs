//! Opening what was inherited: the new incarnation becomes leader of every partition, then loads
//! it.

use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::StartError;
use super::takeover::{Claim, EarlierLanes};
use freshet_metadata::cluster::ClusterMetadata;
use freshet_metadata::schema::PartitionRecord;
use freshet_metadata::view::MetadataView;
use freshet_partition::load::{MissingOffsets, Opening};
use freshet_partition::registry::Partitions;
use freshet_partition::{Partition, Sources};
use freshet_storage::cold::ColdError;
use freshet_storage::cold::manifest::Manifest;
use freshet_storage::names::ManifestRef;
use freshet_wire::ids::PartitionId;
use freshet_world::env::store::{ObjectStore, StoreError};

/// Manifests that are read side by side.
const READS_AT_ONCE: usize = 256;

/// Who inherits.
pub struct PartitionOpener<'a> {
    /// The cluster's metadata.
    pub metadata: &'a ClusterMetadata,
    /// Its image.
    pub view: &'a MetadataView,
    /// Where manifests are.
    pub store: &'a Arc<dyn ObjectStore>,
    /// The cluster's prefix.
    pub cluster: &'a str,
    /// What partitions share.
    pub sources: &'a Arc<Sources>,
}

/// A partition that was taken over and is not open yet.
struct Taken {
    id: PartitionId,
    topic: Arc<str>,
    record: PartitionRecord,
    manifest: Option<ManifestRef>,
}

impl PartitionOpener<'_> {
    /// Takes every partition over and opens it.
    ///
    /// # Errors
    /// [`StartError`] where a partition could not be taken. One whose log has a hole is kept from
    /// service, and the others are served.
    pub async fn open_all(
        &self,
        claim: &Claim,
        mut earlier: EarlierLanes,
        partitions: &Partitions,
    ) -> Result<(), StartError> {
        let taken = self.take_over(claim, &earlier).await?;
        let mut loaded = stream::iter(taken)
            .map(|taken| async move {
                let manifest = self.manifest(&taken).await;
                (taken, manifest)
            })
            .buffered(READS_AT_ONCE);
        while let Some((taken, manifest)) = loaded.next().await {
            let tail = earlier.tail(taken.id, &taken.record);
            match manifest.and_then(|manifest| self.open(&taken, manifest, tail)) {
                Ok(partition) => partitions.insert(partition),
                Err(StartError::Missing(missing)) => {
                    tracing::error!(topic = %taken.topic, %missing, "offline");
                    partitions.insert_offline(missing);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn take_over(
        &self,
        claim: &Claim,
        earlier: &EarlierLanes,
    ) -> Result<Vec<Taken>, StartError> {
        let snapshot = self.view.snapshot();
        let mut updates = Vec::new();
        let mut taken = Vec::new();
        // Those that nobody sees too: they may come back, and their records with them.
        for topic in snapshot.led_topics() {
            let name: Arc<str> = topic.record.name.as_str().into();
            for (index, stored) in (0..).zip(&topic.partitions) {
                let id = PartitionId::new(topic.record.id, index);
                let Some(update) = earlier.succession(claim, id, stored) else { continue };
                taken.push(Taken {
                    id,
                    topic: Arc::clone(&name),
                    record: update.record.clone(),
                    manifest: earlier.manifests.get(&id).copied(),
                });
                updates.push(update);
            }
        }
        let result = self.metadata.take_over(claim.fence, updates).await?;
        // A lost comparison is a topic that was changed or deleted this moment: the topic keeper
        // looks at it again once the view shows it.
        taken.retain(|taken| !result.lost.contains(&taken.id));
        Ok(taken)
    }

    async fn manifest(&self, taken: &Taken) -> Result<Arc<Manifest>, StartError> {
        let Some(name) = taken.manifest else { return Ok(Arc::new(Manifest::empty(taken.id))) };
        let key = Manifest::key(self.cluster, taken.id, name);
        match self.store.get(&key).await {
            Ok(bytes) => Ok(Arc::new(Manifest::decode(&bytes)?)),
            Err(StoreError::NotFound(_)) => {
                Err(MissingOffsets { partition: taken.id, due: 0, found: -1 }.into())
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
        };
        Ok(Partition::open(opening, Arc::clone(self.sources))?)
    }
}
