//! Hidden topics: clients do not see them, and their partitions are led and kept all the same.
//! Either somebody deleted them and may restore them, or the metadata was restored from a backup
//! and storage has topics that it does not know.

use std::collections::BTreeMap;

use super::limits::Gate;
use super::topics::check_internal;
use super::{
    ClusterError, ClusterMetadata, Fence, Step, Transaction, as_read, batches, compare_absent,
    compare_revision, delete, put, transaction_of,
};
use crate::names::check_topic_name;
use crate::schema::keys::HIDDEN_TOPICS;
use crate::schema::{
    HiddenTopicRecord, Key, LimitsRecord, PartitionRecord, Stored, Table, TopicNameRecord,
    TopicRecord,
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
    /// `InternalTopic`, `TopicExists`, `TopicCollision`, `LimitReached`, `Fenced` of
    /// [`ClusterError`]; [`ClusterError::Store`].
    pub async fn restore_topic(
        &self,
        fence: Option<Fence>,
        id: TopicId,
        name: Option<&str>,
    ) -> Result<Stored<TopicRecord>, ClusterError> {
        let key = Key::HiddenTopic(id);
        let _turn = self.turn(Table::Topics).await;
        let mut retry = self.retry();
        loop {
            let Stored { record, revision } = self.restored_topic(id, name).await?;
            let gate = self.restoring_gate(&record).await?;
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
            let mut transaction = Transaction { compares, writes };
            gate.guard(&mut transaction);
            match self.commit(fence, transaction).await {
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
        self.restoring_gate(&record).await.map(drop)?;
        Ok(Stored { record, revision: stored.revision })
    }

    /// The gate of a topic that comes back: it counts as a new one does.
    async fn restoring_gate(&self, topic: &TopicRecord) -> Result<Gate, ClusterError> {
        if topic.internal {
            return Ok(Gate::none());
        }
        self.topic_gate(1, u64::try_from(topic.partitions).unwrap_or(0)).await
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

    /// Gives up the topics that were deleted first, where the deleted ones together are more than
    /// the limits of topics and partitions allow. They are led and kept as topics that exist are:
    /// without this, whoever makes and deletes topics again and again would have any number of
    /// them. The topic `last` stays.
    pub(super) async fn give_up_oldest(
        &self,
        fence: Option<Fence>,
        last: TopicId,
    ) -> Result<(), ClusterError> {
        let Some(LimitsRecord { topics, partitions, .. }) = self.limits_held() else {
            return Ok(());
        };
        let hidden = self.hidden_topics().await?.into_iter();
        let mut deleted: Vec<_> = hidden.filter(|hidden| !hidden.is_orphaned()).collect();
        deleted.sort_by_key(|hidden| (hidden.hidden_at_ms, hidden.topic.id));
        let count =
            |hidden: &HiddenTopicRecord| u64::try_from(hidden.topic.partitions).unwrap_or(0);
        let mut kept = (deleted.len() as u64, deleted.iter().map(count).sum::<u64>());
        for hidden in deleted {
            let fits =
                kept.0 <= topics.unwrap_or(u64::MAX) && kept.1 <= partitions.unwrap_or(u64::MAX);
            if fits {
                break;
            }
            if hidden.topic.id == last {
                continue;
            }
            match self.purge_topic(fence, hidden.topic.id).await {
                // Somebody else has restored it or given it up.
                Ok(_) | Err(ClusterError::UnknownHiddenTopic(_)) => {
                    kept = (kept.0 - 1, kept.1 - count(&hidden));
                    tracing::info!(topic = hidden.topic.name, "gave up a topic for later ones");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
