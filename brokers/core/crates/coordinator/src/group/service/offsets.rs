//! `OffsetCommit`, `OffsetFetch` and `OffsetDelete` over all groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use tokio::sync::oneshot;

use super::removal::{DeletedTopics, Removal};
use super::writes::{APPEND_BYTES_MAX, Settled};
use super::{Attached, Entry, GroupCoordinator, Inner, Shard};
use crate::group::api::{
    FetchedOffset, FetchedTopic, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    OffsetToCommit, TopicErrors, TopicPartitions,
};
use crate::group::offsets::{CommittedOffset, Offsets};
use crate::group::state::{Group, GroupState};
use crate::group::subscription::CONSUMER;

/// Bytes of the record of an offset at most, without its texts.
const OFFSET_SIZE: usize = 40;
/// From this version a commit to an unknown group answers `GROUP_ID_NOT_FOUND`.
const COMMIT_KNOWS_GROUP_ID_NOT_FOUND: i16 = 9;

impl GroupCoordinator {
    /// `OffsetCommit`. Returns once the offsets are durable, with an entry for each offset in the
    /// order of the request: `None` or `OFFSET_METADATA_TOO_LARGE`.
    ///
    /// # Errors
    /// For all offsets alike: those of
    /// [`crate::group::Group::validate_commit`], `GROUP_ID_NOT_FOUND` or (before
    /// version 9) `ILLEGAL_GENERATION` where a member commits to an unknown group,
    /// `POLICY_VIOLATION` for a new group where there are as many as there may be, and where the
    /// groups would take more bytes than all together may, `INVALID_COMMIT_OFFSET_SIZE` for more
    /// than one append can hold, `NOT_COORDINATOR`, `COORDINATOR_LOAD_IN_PROGRESS`, and that of the
    /// append.
    pub async fn commit_offsets(
        &self,
        request: OffsetCommitRequest,
    ) -> Result<Vec<Option<ResponseError>>, ResponseError> {
        let limit = self.inner.settings.offset_metadata_max_bytes;
        let is_too_large = |offset: &OffsetToCommit| {
            let metadata = offset.metadata.as_deref().unwrap_or_default();
            // A text has at most as many UTF-16 units as bytes, so most need no counting.
            metadata.len() > limit && metadata.encode_utf16().count() > limit
        };
        let errors: Vec<_> = request
            .offsets
            .iter()
            .map(|offset| is_too_large(offset).then_some(ResponseError::OffsetMetadataTooLarge))
            .collect();
        let started = {
            let _room = self.inner.waiting.room().await;
            self.start_commit(request, &errors)?
        };
        if let Some(settled) = started {
            settled.await.unwrap_or(Err(ResponseError::NotCoordinator))?;
        }
        Ok(errors)
    }

    fn start_commit(
        &self,
        request: OffsetCommitRequest,
        errors: &[Option<ResponseError>],
    ) -> Result<Option<Settled>, ResponseError> {
        let inner = &self.inner;
        let index = inner.index_of(&request.group_id);
        let mut state = inner.lock(index)?;
        let shard = state.active()?;
        validate_commit(shard, &request)?;
        let cx = inner.context();
        let commit_timestamp_ms = cx.now.wall_ms;
        if shard.existing(&request.group_id).is_some() {
            shard.entry(&request.group_id).group.committed_by(&request.member_id, &cx);
            inner.tidy(index, shard, &request.group_id);
        }
        let expire_timestamp_ms = (request.retention_time_ms != -1)
            .then(|| commit_timestamp_ms.saturating_add(request.retention_time_ms));
        let fitting = request.offsets.into_iter().zip(errors).filter(|(_, error)| error.is_none());
        let fitting: Vec<_> = fitting.collect();
        let names = request.group_id.len() * fitting.len();
        let sizes = fitting.iter().map(|(offset, _)| offset_size(offset));
        if names + sizes.sum::<usize>() > APPEND_BYTES_MAX {
            return Err(ResponseError::InvalidCommitOffsetSize);
        }
        let offsets: Vec<_> = fitting
            .into_iter()
            .map(|(offset, _)| {
                let value = CommittedOffset {
                    offset: offset.offset,
                    leader_epoch: offset.leader_epoch,
                    metadata: offset.metadata.unwrap_or_default(),
                    commit_timestamp_ms,
                    expire_timestamp_ms,
                };
                (offset.topic, offset.partition, value)
            })
            .collect();
        if offsets.is_empty() {
            return Ok(None);
        }
        let limits = inner.limits();
        let growth = match shard.groups.get(&request.group_id) {
            Some(entry) => entry.offsets.growth_by(&offsets),
            None => Group::bytes_of_new(&request.group_id) + Offsets::default().growth_by(&offsets),
        };
        let reserved = inner.bytes.add_within(growth, limits.bytes);
        let reserved = reserved.ok_or(ResponseError::PolicyViolation)?;
        if shard.entry_within(&request.group_id, limits).is_none() {
            return Err(ResponseError::PolicyViolation);
        }
        let (outcome, settled) = oneshot::channel();
        let payer = Some(request.payer);
        let attached = Attached { payer, outcome: Some(outcome), reserved: Some(reserved) };
        inner.enqueue_offsets(index, shard, &request.group_id, offsets, attached);
        Ok(Some(settled))
    }

    /// `OffsetFetch` of one group: its durable offsets. For an unknown group and for a partition
    /// without an offset it returns −1. The caller must check that this broker still leads the
    /// partition.
    ///
    /// # Errors
    /// `NOT_COORDINATOR`, `COORDINATOR_LOAD_IN_PROGRESS`.
    pub async fn fetch_offsets(
        &self,
        request: OffsetFetchRequest,
    ) -> Result<Vec<FetchedTopic>, ResponseError> {
        let inner = &self.inner;
        let index = inner.index_of(&request.group_id);
        if request.require_stable {
            let commits = {
                let _room = inner.waiting.room().await;
                self.await_commits(index, &request.group_id)?
            };
            if let Some(settled) = commits {
                settled.await.unwrap_or(Err(ResponseError::NotCoordinator))?;
            }
        }
        let mut state = inner.lock(index)?;
        let entry = state.active()?.existing(&request.group_id);
        let none = Offsets::default();
        let offsets = entry.map_or(&none, |entry| &entry.offsets);
        Ok(match request.topics {
            Some(topics) => fetch_some(offsets, topics),
            None => fetch_all(offsets),
        })
    }

    fn await_commits(&self, index: i32, group_id: &str) -> Result<Option<Settled>, ResponseError> {
        let mut state = self.inner.lock(index)?;
        let shard = state.active()?;
        if shard.groups.get(group_id).is_none_or(|entry| entry.queue.is_idle()) {
            return Ok(None);
        }
        let (outcome, settled) = oneshot::channel();
        self.inner.enqueue_barrier(index, shard, group_id, outcome);
        Ok(Some(settled))
    }

    /// `OffsetDelete`. Returns once the deletion is durable. Partitions of a topic to which a
    /// member subscribes get `GROUP_SUBSCRIBED_TO_TOPIC`. A partition without an offset is no
    /// error.
    ///
    /// # Errors
    /// `INVALID_GROUP_ID`, `GROUP_ID_NOT_FOUND`, `NON_EMPTY_GROUP` for a group with members that
    /// is not one of consumers, `NOT_COORDINATOR`, `COORDINATOR_LOAD_IN_PROGRESS`, and that of the
    /// append.
    pub async fn delete_offsets(
        &self,
        request: OffsetDeleteRequest,
    ) -> Result<TopicErrors, ResponseError> {
        let (errors, settled) = {
            let _room = self.inner.waiting.room().await;
            self.start_delete(request)?
        };
        settled.await.unwrap_or(Err(ResponseError::NotCoordinator))?;
        Ok(errors)
    }

    fn start_delete(
        &self,
        request: OffsetDeleteRequest,
    ) -> Result<(TopicErrors, Settled), ResponseError> {
        let inner = &self.inner;
        if request.group_id.is_empty() {
            return Err(ResponseError::InvalidGroupId);
        }
        let index = inner.index_of(&request.group_id);
        let mut state = inner.lock(index)?;
        let shard = state.active()?;
        let entry = shard.existing(&request.group_id).ok_or(ResponseError::GroupIdNotFound)?;
        let is_consumers = entry.group.protocol_type() == Some(CONSUMER);
        if entry.group.state() != GroupState::Empty && !is_consumers {
            return Err(ResponseError::NonEmptyGroup);
        }
        let mut errors = TopicErrors::new();
        let mut offsets = Vec::new();
        for (topic, partitions) in request.topics {
            let is_subscribed = entry.group.is_subscribed_to(&topic);
            let error = is_subscribed.then_some(ResponseError::GroupSubscribedToTopic);
            if error.is_none() {
                offsets.extend(partitions.iter().map(|partition| (topic.clone(), *partition)));
            }
            let partitions = partitions.into_iter().map(|partition| (partition, error)).collect();
            errors.push((topic, partitions));
        }
        let (outcome, settled) = oneshot::channel();
        let removal = Removal::Offsets(offsets, outcome);
        inner.enqueue_removal(index, shard, &request.group_id, removal, Some(request.payer));
        Ok((errors, settled))
    }

    /// Forgets the offsets that all loaded groups have committed for a deleted topic, so that
    /// another topic of the same name starts without offsets.
    ///
    /// # Errors
    /// The first error of an append; the offsets of other groups are forgotten nevertheless.
    pub async fn forget_topic(&self, topic: &str) -> Result<(), ResponseError> {
        self.forget_deleted(None, DeletedTopics::from([(topic.to_owned(), i64::MAX)])).await
    }

    /// Does what [`GroupCoordinator::forget_topic`] does for several topics, in one partition or
    /// (`None`) in all. Of each topic it forgets only what was committed up to a time, because
    /// another topic of the same name may exist by now.
    ///
    /// # Errors
    /// Those of [`GroupCoordinator::forget_topic`].
    pub async fn forget_deleted(
        &self,
        index: Option<i32>,
        deleted: DeletedTopics,
    ) -> Result<(), ResponseError> {
        let deleted = Arc::new(deleted);
        let mut pending = Vec::new();
        let count = i32::try_from(self.inner.partitions.len()).unwrap_or(i32::MAX);
        for index in index.map_or(0..count, |index| index..index + 1) {
            self.inner.start_forgetting(index, &deleted, &mut pending);
        }
        let mut outcome = Ok(());
        for settled in pending {
            let one = settled.await.unwrap_or(Err(ResponseError::NotCoordinator));
            outcome = outcome.and(one);
        }
        outcome
    }
}

impl Inner {
    fn start_forgetting(
        self: &Arc<Self>,
        index: i32,
        deleted: &Arc<DeletedTopics>,
        pending: &mut Vec<Settled>,
    ) {
        let Ok(mut state) = self.lock(index) else {
            return;
        };
        let Ok(shard) = state.active() else {
            return;
        };
        // Groups with writes under way as well, since those may commit to one of these topics.
        let concerned = |entry: &Entry| {
            !entry.queue.is_idle()
                || entry.offsets.topics().any(|(known, _)| deleted.contains_key(known))
        };
        let group_ids: Vec<String> = shard
            .groups
            .iter()
            .filter(|(_, entry)| concerned(entry))
            .map(|(group_id, _)| group_id.clone())
            .collect();
        for group_id in group_ids {
            let (outcome, settled) = oneshot::channel();
            let removal = Removal::Topics(Arc::clone(deleted), outcome);
            self.enqueue_removal(index, shard, &group_id, removal, None);
            pending.push(settled);
        }
    }
}

/// Bytes of the record of an offset at most, without its group's name, which each record has.
fn offset_size(offset: &OffsetToCommit) -> usize {
    OFFSET_SIZE + offset.topic.len() + offset.metadata.as_ref().map_or(0, String::len)
}

fn validate_commit(shard: &Shard, request: &OffsetCommitRequest) -> Result<(), ResponseError> {
    match shard.existing(&request.group_id) {
        Some(entry) => entry.group.validate_commit(
            &request.member_id,
            request.instance_id.as_deref(),
            request.generation,
        ),
        // A client that uses the group for its offsets only creates it by committing.
        None if request.generation < 0 => Ok(()),
        None if request.api_version >= COMMIT_KNOWS_GROUP_ID_NOT_FOUND => {
            Err(ResponseError::GroupIdNotFound)
        }
        None => Err(ResponseError::IllegalGeneration),
    }
}

fn fetched_offset(partition: i32, value: Option<&CommittedOffset>) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: value.map_or(-1, |value| value.offset),
        leader_epoch: value.map_or(-1, |value| value.leader_epoch),
        metadata: value.map(|value| value.metadata.clone()).unwrap_or_default(),
    }
}

fn fetch_some(offsets: &Offsets, topics: TopicPartitions) -> Vec<FetchedTopic> {
    let fetch = |(topic, partitions): (String, Vec<i32>)| {
        let partitions = partitions.into_iter();
        let partitions = partitions
            .map(|partition| fetched_offset(partition, offsets.get(&topic, partition)))
            .collect();
        FetchedTopic { topic, partitions }
    };
    topics.into_iter().map(fetch).collect()
}

fn fetch_all(offsets: &Offsets) -> Vec<FetchedTopic> {
    let fetch = |(topic, partitions): (&str, &BTreeMap<i32, CommittedOffset>)| FetchedTopic {
        topic: topic.to_owned(),
        partitions: partitions
            .iter()
            .map(|(partition, value)| fetched_offset(*partition, Some(value)))
            .collect(),
    };
    offsets.topics().map(fetch).collect()
}
