//! Who is to lead partitions, as clients choose it.

use std::collections::BTreeMap;

use super::changes::Note;
use super::{
    ClusterError, ClusterMetadata, Fence, MetadataError, Step, Transaction, batches,
    compare_revision, delete, put, transaction_of,
};
use crate::schema::{Key, WantedLeaderRecord};
use crate::store::{Compare, Expected};
use freshet_wire::ids::PartitionId;

impl ClusterMetadata {
    /// Notes which slots are to lead partitions of a topic, until they do; `None` takes a wish
    /// back. Returns a revision that a view can wait for, 0 where nothing was to be changed.
    ///
    /// # Errors
    /// [`ClusterError::UnknownTopic`] where one of the partitions is gone,
    /// [`ClusterError::ChangesWait`], [`ClusterError::Fenced`]; [`ClusterError::Store`]. Some may
    /// have been noted then.
    pub async fn set_wanted_leaders(
        &self,
        fence: Option<Fence>,
        topic: &str,
        slots: &BTreeMap<PartitionId, Option<u32>>,
    ) -> Result<u64, ClusterError> {
        let step = |(id, slot): (&PartitionId, &Option<u32>)| {
            let key = Key::WantedLeader(*id);
            let write = match slot {
                Some(slot) => put(&key, &WantedLeaderRecord { slot: *slot })?,
                None => delete(&key),
            };
            let partition = Key::Partition(*id).to_string();
            let compare = Some(Compare { key: partition, expected: Expected::Present });
            Ok::<_, ClusterError>(Step { compare, write })
        };
        let steps = slots.iter().map(step).collect::<Result<Vec<_>, _>>()?;
        let mut noted = slots.iter();
        let mut revision = 0;
        for batch in batches(steps) {
            let changed: Vec<_> = noted.by_ref().take(batch.len()).collect();
            let note = || {
                let details = changed.iter().map(|(id, slot)| {
                    (format!("partition.{}.leader", id.index), slot.map(|slot| slot.to_string()))
                });
                details.fold(Note::new("topic.update", topic), |note, (name, slot)| {
                    note.with(name, slot.unwrap_or_default())
                })
            };
            let committed = self.commit_noted(fence, transaction_of(&batch), note).await;
            revision = committed.map_err(|error| match error {
                ClusterError::Store(MetadataError::Conflict { .. }) => {
                    ClusterError::UnknownTopic(topic.to_owned())
                }
                error => error,
            })?;
        }
        Ok(revision)
    }

    /// Forgets who was to lead partitions, each where it is as it was at this revision.
    ///
    /// # Errors
    /// [`ClusterError::Fenced`], [`ClusterError::Deposed`]; [`ClusterError::Store`]. Some may have
    /// been forgotten then.
    pub async fn forget_wanted_leaders(
        &self,
        fence: Fence,
        seen: &BTreeMap<PartitionId, u64>,
    ) -> Result<(), ClusterError> {
        for (id, revision) in seen {
            let key = Key::WantedLeader(*id);
            let compares = vec![compare_revision(&key, *revision)];
            let forgotten = Transaction { compares, writes: vec![delete(&key)] };
            match self.commit(Some(fence), forgotten).await {
                // It is gone, or another one was chosen meanwhile.
                Ok(_) | Err(ClusterError::Store(MetadataError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
