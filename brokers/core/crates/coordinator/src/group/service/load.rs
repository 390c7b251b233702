//! Loads a partition that this broker has become leader of, and unloads it again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use tracing::{debug, info, warn};

use super::{Entry, GroupCoordinator, Inner, Partition, PartitionState, Shard};
use crate::group::offsets::Offsets;
use crate::group::records::{self, GroupMetadata, Key, RecordError};
use crate::group::state::Group;

/// What a load read from a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadSummary {
    /// How many records were read.
    pub records: u64,
    /// How many of them were skipped: they are damaged, or of a kind or version that this broker
    /// does not know.
    pub skipped: u64,
    /// How many groups there are.
    pub groups: usize,
    /// How many committed offsets there are.
    pub offsets: usize,
}

/// The groups and offsets that the records read so far describe.
#[derive(Default)]
struct Replay {
    groups: BTreeMap<String, GroupMetadata>,
    offsets: BTreeMap<String, Offsets>,
    summary: LoadSummary,
}

impl Replay {
    fn visit(&mut self, key: Bytes, value: Option<Bytes>) {
        self.summary.records += 1;
        match self.apply(key, value) {
            Ok(true) => {}
            Ok(false) => self.summary.skipped += 1,
            Err(error) => {
                warn!(%error, "skipped a record of __consumer_offsets that could not be read");
                self.summary.skipped += 1;
            }
        }
    }

    /// Applies a record. Returns false where it is of an unknown kind.
    fn apply(&mut self, key: Bytes, value: Option<Bytes>) -> Result<bool, RecordError> {
        match records::read_key(key)? {
            Key::Group { group } => match value {
                Some(value) => {
                    self.groups.insert(group, records::read_group(value)?);
                }
                None => {
                    self.groups.remove(&group);
                }
            },
            Key::Offset { group, topic, partition } => match value {
                Some(value) => {
                    let value = records::read_offset(value)?;
                    self.offsets.entry(group).or_default().put(&topic, partition, value);
                }
                None => {
                    if let Some(offsets) = self.offsets.get_mut(&group) {
                        offsets.remove(&topic, partition);
                    }
                }
            },
            Key::Unknown { version } => {
                debug!(version, "skipped a record of an unknown kind");
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Resets the partition when a load fails or is cancelled, so that it does not stay in the state of
/// being loaded.
struct GivenUp<'a> {
    partition: &'a Partition,
    epoch: u64,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let mut state = self.partition.state.lock();
        if state.is_loading(self.epoch) {
            *state = PartitionState::NotLed;
        }
    }
}

impl GroupCoordinator {
    /// Loads partition `index`, which this broker now leads: rebuilds its groups and offsets from
    /// the log. The session timeout of each member begins now. A partition that is loaded already
    /// is unloaded first.
    ///
    /// # Errors
    /// Those of [`crate::CoordinatorLog::read`]; then the partition is not loaded.
    /// `NOT_COORDINATOR` where it was unloaded, or loaded again, before this load ended.
    pub async fn load(&self, index: i32) -> Result<LoadSummary, ResponseError> {
        self.unload(index);
        let partition = self.inner.partition(index)?;
        let epoch = self.inner.next_number();
        *partition.state.lock() = PartitionState::Loading(epoch);
        let _given_up = GivenUp { partition, epoch };
        let appends = partition.appends.write().await;
        let mut replay = Replay::default();
        let read = self.inner.log.read(index, &mut |key, value| replay.visit(key, value)).await;
        drop(appends);
        let mut state = partition.state.lock();
        if !state.is_loading(epoch) {
            return Err(ResponseError::NotCoordinator);
        }
        // Where this fails, dropping `GivenUp` resets the partition.
        read?;
        let summary = self.inner.install(index, &mut state, epoch, replay);
        info!(index, ?summary, "loaded a partition of __consumer_offsets");
        Ok(summary)
    }

    /// Unloads partition `index`. Requests that wait for a group in it are answered with
    /// `NOT_COORDINATOR`.
    pub fn unload(&self, index: i32) {
        let Ok(mut state) = self.inner.lock(index) else {
            return;
        };
        let before = std::mem::replace(&mut *state, PartitionState::NotLed);
        self.inner.deadlines.lock().retain(|key| key.index() != index);
        let PartitionState::Active(mut shard) = before else {
            return;
        };
        let mut cx = self.inner.context();
        for entry in shard.groups.values_mut() {
            entry.group.unload(&mut cx);
        }
        for effect in cx.effects {
            shard.answer(effect);
        }
        self.inner.news.note_all();
        info!(index, groups = shard.groups.len(), "unloaded a partition of __consumer_offsets");
    }
}

impl Inner {
    fn install(
        self: &Arc<Self>,
        index: i32,
        state: &mut PartitionState,
        epoch: u64,
        replay: Replay,
    ) -> LoadSummary {
        let (places, bytes) = (self.places.clone(), self.bytes.clone());
        let mut shard = Shard { epoch, places, bytes, ..Shard::default() };
        let mut cx = self.context();
        for (group_id, metadata) in replay.groups {
            let group = Group::load(group_id.as_str(), metadata, &mut cx);
            let new = Entry::new(group, self.places.take(), self.bytes.add(0));
            let entry = Entry { in_log: true, ..new };
            shard.groups.insert(group_id, entry);
        }
        for (group_id, offsets) in replay.offsets {
            if !offsets.is_empty() {
                shard.entry(&group_id).offsets = offsets;
            }
        }
        let summary = LoadSummary {
            groups: shard.groups.len(),
            offsets: shard.groups.values().map(|entry| entry.offsets.len()).sum(),
            ..replay.summary
        };
        // A group that is larger than `group.max.size` starts a rebalance here, which has no
        // effects yet.
        let group_ids: Vec<String> = shard.groups.keys().cloned().collect();
        for group_id in &group_ids {
            shard.entry(group_id).count();
            self.tidy(index, &mut shard, group_id);
        }
        *state = PartitionState::Active(shard);
        self.news.note_all();
        self.schedule_expiry(index);
        summary
    }
}
