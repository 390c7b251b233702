//! Leaders and extents of partitions.

use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Step, batches, compare_revision,
    transaction_of,
};
use crate::schema::invariants::{check_hand_over, check_takeover, check_trim};
use crate::schema::keys::partitions_of;
use crate::schema::{IncarnationRecord, Key, PartitionRecord, SchemaError, Stored};
use crate::store::{Compare, Expected};
use freshet_wire::ids::{Incarnation, PartitionId, TopicId};
use freshet_world::invariants::BrokenInvariant;

/// A new record for a partition, which keeps every invariant towards the one that it replaces. One
/// that would not is an error and no panic: where the metadata store is restored from a backup
/// during a start, the record is of another time than what the start knows of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartitionUpdate {
    /// The partition.
    pub partition: PartitionId,
    /// Revision of the record that the new one replaces.
    pub revision: u64,
    /// The new record ([`PartitionRecord::led_by`], [`PartitionRecord::without_extents`]).
    pub record: PartitionRecord,
}

impl PartitionUpdate {
    /// A takeover: `record` names another leader ([`PartitionRecord::led_by`]).
    ///
    /// # Errors
    /// The invariant that it would break.
    pub fn takeover(
        partition: PartitionId,
        stored: &Stored<PartitionRecord>,
        record: PartitionRecord,
    ) -> Result<Self, BrokenInvariant> {
        check_takeover(&stored.record, &record)?;
        Ok(Self { partition, revision: stored.revision, record })
    }

    /// A hand-over by the leader: `record` names its successor ([`PartitionRecord::handed_to`]).
    ///
    /// # Errors
    /// The invariant that it would break.
    pub fn hand_over(
        partition: PartitionId,
        stored: &Stored<PartitionRecord>,
        record: PartitionRecord,
    ) -> Result<Self, BrokenInvariant> {
        check_hand_over(&stored.record, &record)?;
        Ok(Self { partition, revision: stored.revision, record })
    }

    /// A trim: `record` lacks extents whose records are in objects
    /// ([`PartitionRecord::without_extents`]).
    ///
    /// # Errors
    /// The invariant that it would break.
    pub fn trim(
        partition: PartitionId,
        stored: &Stored<PartitionRecord>,
        record: PartitionRecord,
    ) -> Result<Self, BrokenInvariant> {
        check_trim(&stored.record, &record)?;
        Ok(Self { partition, revision: stored.revision, record })
    }
}

/// The outcome of a list of updates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Updated {
    /// Partitions that have the new record, each with its revision.
    pub updated: Vec<(PartitionId, u64)>,
    /// Partitions whose record was not the expected one: somebody else took or deleted them.
    pub lost: Vec<PartitionId>,
    /// Revision of the last change, 0 where nothing changed.
    pub revision: u64,
}

impl ClusterMetadata {
    /// One partition's record, as the store has it now.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn partition(
        &self,
        partition: PartitionId,
    ) -> Result<Option<Stored<PartitionRecord>>, ClusterError> {
        self.read(&Key::Partition(partition)).await
    }

    /// The partitions of a topic by index, as the store has them now. Those at or behind the
    /// topic's number of partitions are half made.
    ///
    /// # Errors
    /// [`ClusterError::Store`] and [`ClusterError::Record`].
    pub async fn partitions_of(
        &self,
        topic: TopicId,
    ) -> Result<Vec<(PartitionId, Stored<PartitionRecord>)>, ClusterError> {
        let mut partitions = Vec::new();
        for entry in self.read_all(&partitions_of(topic)).await? {
            let Some(Key::Partition(partition)) = Key::parse(&entry.key)? else {
                return Err(SchemaError::Key(entry.key).into());
            };
            partitions.push((partition, Stored::from_entry(&entry)?));
        }
        // Keys sort by index up to 999,999 only.
        partitions.sort_by_key(|(partition, _)| partition.index);
        Ok(partitions)
    }

    /// Changes the leaders of partitions: each record is replaced whose revision is still the given
    /// one. That takes several transactions, each of which is atomic.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`], [`ClusterError::Deposed`]; [`ClusterError::Store`]. Some of the
    /// partitions may have been changed then.
    pub async fn take_over(
        &self,
        fence: Fence,
        updates: Vec<PartitionUpdate>,
    ) -> Result<Updated, ClusterError> {
        self.update_partitions(fence, updates).await
    }

    /// Hands partitions over from the caller to a live incarnation.
    ///
    /// # Errors
    /// As [`ClusterMetadata::take_over`]; [`ClusterError::Fenced`] also where the successor has
    /// ended.
    pub async fn hand_over(
        &self,
        fence: Fence,
        successor: (Incarnation, &Stored<IncarnationRecord>),
        updates: Vec<PartitionUpdate>,
    ) -> Result<Updated, ClusterError> {
        let (incarnation, seen) = successor;
        let key = Key::Incarnation(incarnation);
        let is_live = compare_revision(&key, seen.revision);
        let updated = self.update_partitions_where(fence, Some(is_live), updates).await;
        updated.map_err(|error| match error {
            ClusterError::Store(MetadataError::Conflict { key: changed })
                if changed == key.to_string() =>
            {
                ClusterError::Fenced(incarnation)
            }
            error => error,
        })
    }

    /// Drops extents that a manifest covers. An update whose record names another leader than the
    /// caller is lost: only the leader knows what is covered.
    ///
    /// # Errors
    /// As [`ClusterMetadata::take_over`].
    pub async fn trim_extents(
        &self,
        fence: Fence,
        updates: Vec<PartitionUpdate>,
    ) -> Result<Updated, ClusterError> {
        let (own, others): (Vec<_>, Vec<_>) =
            updates.into_iter().partition(|update| update.record.leader == Some(fence.incarnation));
        let mut updated = self.update_partitions(fence, own).await?;
        updated.lost.extend(others.into_iter().map(|update| update.partition));
        Ok(updated)
    }

    async fn update_partitions(
        &self,
        fence: Fence,
        updates: Vec<PartitionUpdate>,
    ) -> Result<Updated, ClusterError> {
        self.update_partitions_where(fence, None, updates).await
    }

    async fn update_partitions_where(
        &self,
        fence: Fence,
        holds: Option<Compare>,
        updates: Vec<PartitionUpdate>,
    ) -> Result<Updated, ClusterError> {
        let mut result = Updated::default();
        let mut steps = Vec::with_capacity(updates.len());
        let mut partitions = Vec::with_capacity(updates.len());
        for update in updates {
            let key = Key::Partition(update.partition);
            check_record(&key, &update.record)?;
            steps.push(Step::put(&key, Expected::Revision(update.revision), &update.record)?);
            partitions.push(update.partition);
        }
        let mut partitions = partitions.into_iter();
        for batch in batches(steps) {
            let mut pending: Vec<(PartitionId, Step)> = partitions.by_ref().zip(batch).collect();
            while !pending.is_empty() {
                let mut transaction = transaction_of(pending.iter().map(|(_, step)| step));
                transaction.compares.extend(holds.clone());
                match self.commit(Some(fence), transaction).await {
                    Ok(revision) => {
                        let updated = pending.drain(..).map(|(partition, _)| (partition, revision));
                        result.updated.extend(updated);
                        result.revision = revision;
                    }
                    Err(error) => result.lost.push(remove_conflict(&mut pending, error)?),
                }
            }
        }
        Ok(result)
    }
}

/// Removes the partition of a conflict from a batch; returns every other error.
fn remove_conflict(
    pending: &mut Vec<(PartitionId, Step)>,
    error: ClusterError,
) -> Result<PartitionId, ClusterError> {
    let ClusterError::Store(MetadataError::Conflict { key }) = &error else { return Err(error) };
    let position = pending.iter().position(|(_, step)| step.write.key() == key);
    position.map_or(Err(error), |position| Ok(pending.remove(position).0))
}

/// Refuses a record that could not be read again.
fn check_record(key: &Key, record: &PartitionRecord) -> Result<(), ClusterError> {
    use crate::schema::Record;
    record.check().map_err(|reason| {
        let (key, kind) = (key.to_string(), PartitionRecord::KIND);
        ClusterError::Record(SchemaError::Unreadable { key, kind, reason })
    })
}
