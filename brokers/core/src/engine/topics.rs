//! Keeping the open partitions in step with the metadata store: new topics are opened, deleted ones
//! closed.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::StartError;
use crate::cold::manifest::Manifest;
use crate::configs::{BrokerConfig, TopicConfig};
use crate::ids::{PartitionId, TopicId};
use crate::jobs::TopicFacts;
use crate::jobs::inherit::ExtentTrimmer;
use crate::jobs::retention::Retention;
use crate::metadata::cluster::{ClusterMetadata, Fence, PartitionUpdate};
use crate::metadata::schema::{ConfigScope, PartitionRecord, Stored};
use crate::metadata::view::{MetadataView, Topics};
use crate::partition::load::Opening;
use crate::partition::registry::Partitions;
use crate::partition::{Partition, Sources};

/// Opens and closes partitions.
pub struct TopicKeeper {
    /// The cluster's metadata.
    pub metadata: Arc<ClusterMetadata>,
    /// Its image.
    pub view: Arc<MetadataView>,
    /// The incarnation's guard.
    pub fence: Fence,
    /// What is open.
    pub partitions: Arc<Partitions>,
    /// What partitions share.
    pub sources: Arc<Sources>,
    /// Counts changes of what is open.
    pub changes: watch::Sender<u64>,
}

impl TopicKeeper {
    /// Follows the metadata until the view stops. `opened` is told of every partition that opens.
    pub async fn run(self: Arc<Self>, opened: impl Fn(Arc<Partition>) + Send) {
        let mut changes = self.view.subscribe();
        let mut failed = self.reconcile(None, &opened).await;
        loop {
            let retry = async {
                if failed {
                    tokio::time::sleep(super::RETRY_AFTER).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                change = changes.next() => match change {
                    Ok(change) => {
                        let topics = change.topics.into_iter().collect();
                        failed |= self.reconcile(Some(topics), &opened).await;
                    }
                    Err(_) => return,
                },
                () = retry => failed = self.reconcile(None, &opened).await,
            }
        }
    }

    /// Brings the open partitions of these topics (of all, where none are named) in step; says
    /// whether something could not be done yet.
    async fn reconcile(
        &self,
        topics: Option<Vec<TopicId>>,
        opened: &(impl Fn(Arc<Partition>) + Send),
    ) -> bool {
        let known = self.view.topics();
        let topics = topics.unwrap_or_else(|| known.iter().map(|topic| topic.record.id).collect());
        let mut failed = false;
        for id in topics {
            let Some(topic) = known.by_id(id) else {
                self.forget_metrics(id, &known);
                self.partitions.remove_topic(id);
                continue;
            };
            for (index, stored) in (0..).zip(&topic.partitions) {
                let partition = PartitionId::new(id, index);
                if self.partitions.contains(partition) {
                    continue;
                }
                match self.open(partition, &topic.record.name, stored).await {
                    Ok(Some(partition)) => opened(partition),
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(%partition, %error, "cannot open the partition yet");
                        failed = true;
                    }
                }
            }
        }
        self.changes.send_modify(|changes| *changes += 1);
        failed
    }

    /// Stops reporting a topic that is gone, unless there is another one of its name.
    fn forget_metrics(&self, id: TopicId, known: &Topics) {
        let first = self.partitions.get(PartitionId::new(id, 0));
        let name = first.as_ref().map(|partition| partition.topic().as_ref());
        if let Some(name) = name.filter(|name| known.by_name(name).is_none()) {
            self.sources.metrics.forget_topic(name);
        }
    }

    /// Opens a new partition; one that nobody leads is taken first.
    async fn open(
        &self,
        id: PartitionId,
        topic: &str,
        stored: &Stored<PartitionRecord>,
    ) -> Result<Option<Arc<Partition>>, StartError> {
        let record = match stored.record.leader {
            Some(leader) if leader == self.fence.incarnation => stored.record.clone(),
            Some(_) => return Ok(None),
            None => {
                let Some(record) = stored.record.led_by(self.fence.incarnation, |_| None) else {
                    return Ok(None);
                };
                let revision = stored.revision;
                let update = PartitionUpdate { partition: id, revision, record: record.clone() };
                let taken = self.metadata.take_over(self.fence, vec![update]).await?;
                if taken.updated.is_empty() {
                    return Ok(None);
                }
                record
            }
        };
        let opening = Opening {
            id,
            topic: topic.into(),
            epoch: record.epoch,
            manifest: Arc::new(Manifest::empty(id)),
            tail: Vec::new(),
        };
        let partition = Partition::open(opening, Arc::clone(&self.sources))?;
        self.partitions.insert(Arc::clone(&partition));
        Ok(Some(partition))
    }
}

#[async_trait]
impl ExtentTrimmer for TopicKeeper {
    async fn trim(&self, partitions: &[PartitionId]) -> Result<(), String> {
        let mine = self.fence.incarnation;
        let mut updates = Vec::new();
        let topics = self.view.topics();
        for id in partitions {
            let Some(stored) = topics.partition(*id) else { continue };
            if stored.record.leader != Some(mine) {
                // What is left out here would name lanes that are removed next.
                return Err(format!("{id} is not seen to be led by this incarnation yet"));
            }
            let record = stored.record.without_extents(|extent| extent.incarnation != mine);
            if record != stored.record {
                updates.push(PartitionUpdate { partition: *id, revision: stored.revision, record });
            }
        }
        let trimmed = self.metadata.trim_extents(self.fence, updates).await;
        let trimmed = trimmed.map_err(|error| error.to_string())?;
        match trimmed.lost.first() {
            Some(lost) => Err(format!("{lost} was changed by somebody else meanwhile")),
            None => Ok(()),
        }
    }
}

/// What jobs ask about topics, answered from the view.
pub struct ViewedTopics {
    /// The image of the metadata.
    pub view: Arc<MetadataView>,
    /// Static configs of the broker.
    pub configs: BrokerConfig,
}

impl TopicFacts for ViewedTopics {
    fn retention(&self, partition: PartitionId) -> Option<Retention> {
        let snapshot = self.view.snapshot();
        let stored = snapshot.broker_configs.get(&ConfigScope::Default);
        let broker = stored.map(|stored| self.configs.with_stored(stored));
        let broker = broker.as_ref().unwrap_or(&self.configs);
        let topic = snapshot.topics.by_id(partition.topic)?;
        let config = TopicConfig::resolve(&topic.record.configs, broker);
        config
            .cleanup
            .delete
            .then_some(Retention { ms: config.retention_ms, bytes: config.retention_bytes })
    }

    fn was_deleted(&self, topic: TopicId) -> bool {
        self.view.snapshot().deleted_topics.contains(&topic)
    }
}
