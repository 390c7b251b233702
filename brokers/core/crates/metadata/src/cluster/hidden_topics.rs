//! Hidden topics: clients do not see them, and their partitions are led and kept all the same.
//! Either somebody deleted them and may restore them, or the metadata was restored from a backup
//! and storage has topics that it does not know.

use std::collections::BTreeMap;

use super::topics::check_internal;
use super::{
    ClusterError, ClusterMetadata, Fence, Step, Transaction, as_read, batches, compare_absent,
    compare_revision, delete, put, transaction_of,
};
use crate::names::check_topic_name;
use crate::schema::keys::HIDDEN_TOPICS;
use crate::schema::{
    HiddenTopicRecord, Key, PartitionRecord, Stored, TopicNameRecord, TopicRecord,
};
use crate::store::{Compare, Expected};
use freshet_wire::ids::{PartitionId, TopicId};

/// A topic that was found on storage, and the records by which its partitions are taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTopic {
    /// The topic, as far as it is known; the name may be empty.
    pub topic: TopicRecord,
    /// All partitions, by index.
    pub partitions: Vec<PartitionRecord>,
}

impl ClusterMetadata {
    /// All hidden topics, by id, as the store has them now.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn hidden_topics(&self) -> Result<Vec<HiddenTopicRecord>, ClusterError> {
        let entries = self.read_all(HIDDEN_TOPICS).await?;
        entries.iter().map(|entry| Ok(Stored::from_entry(entry)?.record)).collect()
    }

    /// Restores a hidden topic under its old name or another one. It keeps its id, configs,
    /// partitions and records.
    ///
    /// # Errors
    /// `UnknownHiddenTopic` where there is none, or its time is over; `InvalidTopicName`,
    /// `InternalTopic`, `TopicExists`, `TopicCollision`, `Fenced` of [`ClusterError`];
    /// [`ClusterError::Store`].
    pub async fn restore_topic(
        &self,
        fence: Option<Fence>,
        id: TopicId,
        name: Option<&str>,
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let key = Key::HiddenTopic(id);
        let mut retry = self.retry();
        loop {
            let Stored { record, revision } = self.restored_topic(id, name).await?;
            let (topic, collision) =
                (Key::Topic(record.name.clone()), Key::collision_of(&record.name));
            let index = TopicNameRecord { name: record.name.clone() };
            let compares = vec![
                compare_revision(&key, revision),
                compare_absent(&topic),
                compare_absent(&collision),
            ];
            let writes = vec![
                delete(&key),
                put(&Key::TopicId(id), &index)?,
                put(&collision, &index)?,
                put(&topic, &record)?,
            ];
            match self.commit(fence, Transaction { compares, writes }).await {
                Ok(revision) => return Ok(Stored { record, revision }),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    /// The topic that [`Self::restore_topic`] would write now, with the revision of the hidden one.
    /// Changes nothing.
    ///
    /// # Errors
    /// As [`Self::restore_topic`].
    pub async fn restored_topic(
        &self,
        id: TopicId,
        name: Option<&str>,
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let now_ms = self.clock.now_ms();
        let stored = self.read::<HiddenTopicRecord>(&Key::HiddenTopic(id)).await?;
        let stored = stored.filter(|stored| !stored.record.is_due(now_ms));
        let stored = stored.ok_or(ClusterError::UnknownHiddenTopic(id))?;
        let record = stored.record.restored(name.unwrap_or(&stored.record.topic.name), now_ms);
        check_topic_name(&record.name)?;
        check_internal(&record.name, record.internal)?;
        self.check_name_free(&record.name).await?;
        Ok(Stored { record, revision: stored.revision })
    }

    /// Removes a hidden topic for good, after which its records may be deleted. Returns the topic,
    /// with the revision of the change.
    ///
    /// # Errors
    /// `UnknownHiddenTopic`, `Fenced` of [`ClusterError`]; [`ClusterError::Store`].
    pub async fn purge_topic(
        &self,
        fence: Option<Fence>,
        id: TopicId,
    ) -> Result<Stored<HiddenTopicRecord>, ClusterError> {
        let key = Key::HiddenTopic(id);
        let mut retry = self.retry();
        let purged = loop {
            let stored = self.read::<HiddenTopicRecord>(&key).await?;
            let stored = stored.ok_or(ClusterError::UnknownHiddenTopic(id))?;
            let compares = vec![compare_revision(&key, stored.revision)];
            let mark = put(&Key::DeletedTopic(id), &stored.record.removed())?;
            let writes = vec![delete(&key), mark];
            match self.commit(fence, Transaction { compares, writes }).await {
                Ok(revision) => break Stored { record: stored.record, revision },
                Err(error) => retry.after(error).await?,
            }
        };
        if let Err(error) = self.remove_rest(fence, id).await {
            tracing::warn!(
                %id, %error,
                "records of a purged topic are left in the metadata until the next sweep"
            );
        }
        Ok(purged)
    }

    /// Adds a topic that storage has and the metadata does not know as a hidden one. It appears at
    /// once with all its partitions; one that is known by then stays as it is. Returns the
    /// revision, or 0 where nothing changed.
    ///
    /// # Errors
    /// `Fenced` of [`ClusterError`]; [`ClusterError::Store`].
    pub async fn hide_found(
        &self,
        fence: Option<Fence>,
        orphan: &FoundTopic,
    ) -> Result<u64, ClusterError> {
        let id = orphan.topic.id;
        let key = Key::HiddenTopic(id);
        let mut retry = self.retry();
        loop {
            if self.read::<HiddenTopicRecord>(&key).await?.is_some() {
                return Ok(0);
            }
            match self.hide(fence, &key, orphan).await {
                Ok(revision) => return Ok(revision),
                Err(error) => retry.after_idempotent(error).await?,
            }
        }
    }

    async fn hide(
        &self,
        fence: Option<Fence>,
        key: &Key,
        orphan: &FoundTopic,
    ) -> Result<u64, ClusterError> {
        let topic = &orphan.topic;
        // An earlier attempt that stopped half-way may have written some; no view shows them.
        let left: BTreeMap<PartitionId, Stored<PartitionRecord>> =
            self.partitions_of(topic.id).await?.into_iter().collect();
        let mut steps = Vec::new();
        for (index, record) in (0..).zip(&orphan.partitions) {
            let partition = PartitionId::new(topic.id, index);
            let partition_key = Key::Partition(partition);
            steps.push(Step::put(&partition_key, as_read(left.get(&partition)), record)?);
        }
        for batch in batches(steps) {
            self.commit(fence, transaction_of(&batch)).await?;
        }
        let record = HiddenTopicRecord {
            topic: topic.clone(),
            hidden_at_ms: self.clock.now_ms(),
            restorable_until_ms: None,
        };
        let index = TopicNameRecord { name: topic.name.clone() };
        let compares = vec![Compare { key: key.to_string(), expected: Expected::Absent }];
        let writes = vec![put(&Key::TopicId(topic.id), &index)?, put(key, &record)?];
        self.commit(fence, Transaction { compares, writes }).await
    }
}
