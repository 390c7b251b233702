//! Removes offsets and groups, on request or because they have expired.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use tracing::{info, warn};

use super::writes::Outcome;
use super::{Entry, Inner, Payer};
use crate::group::offsets::CommittedOffset;
use crate::group::records;
use crate::group::settings::GroupSettings;
use crate::group::state::{Group, GroupState};

/// The most tombstones in one append: with these a batch stays far below its largest size, however
/// many offsets a group has.
const TOMBSTONES_MAX: usize = 1_000;

/// The names of deleted topics, each with the time, in milliseconds since 1970, up to which commits
/// for the name were meant for the deleted topic.
pub type DeletedTopics = BTreeMap<String, i64>;

/// Something to be removed from a group.
pub(super) enum Removal {
    /// The group with all its offsets (`DeleteGroups`).
    Group(Outcome),
    /// Some of its offsets (`OffsetDelete`), by topic and partition.
    Offsets(Vec<(String, i32)>, Outcome),
    /// Offsets of topics that were deleted.
    Topics(Arc<DeletedTopics>, Outcome),
    /// The offsets that have expired, and the group itself where none is left.
    Expired,
}

/// What a removal removes.
#[derive(Debug, Default)]
pub(super) struct Doomed {
    offsets: Vec<(String, i32)>,
    group: bool,
}

impl Doomed {
    pub(super) fn is_nothing(&self) -> bool {
        self.offsets.is_empty() && !self.group
    }
}

impl Entry {
    /// The offsets that have expired. An empty group is removed with its last offset.
    pub(super) fn expired(&self, wall_ms: i64, settings: &GroupSettings) -> Doomed {
        let offsets = self.offsets.expired(&self.group, wall_ms, settings.offsets_retention_ms());
        let is_empty = self.group.state() == GroupState::Empty && !self.group.has_anyone();
        let group = is_empty && offsets.len() == self.offsets.len() && self.exists();
        Doomed { offsets, group }
    }

    pub(super) fn doomed(
        &self,
        removal: &Removal,
        wall_ms: i64,
        settings: &GroupSettings,
    ) -> Result<Doomed, ResponseError> {
        match removal {
            Removal::Group(_) => {
                self.check_deletable()?;
                Ok(Doomed { offsets: self.committed(|_, _| true), group: true })
            }
            Removal::Offsets(requested, _) => {
                let has = |(topic, partition): &&(String, i32)| {
                    self.offsets.get(topic, *partition).is_some()
                };
                Ok(Doomed {
                    offsets: requested.iter().filter(has).cloned().collect(),
                    group: false,
                })
            }
            Removal::Topics(deleted, _) => {
                let is_stale = |topic: &str, value: &CommittedOffset| {
                    deleted.get(topic).is_some_and(|until| value.commit_timestamp_ms <= *until)
                };
                Ok(Doomed { offsets: self.committed(is_stale), group: false })
            }
            Removal::Expired => Ok(self.expired(wall_ms, settings)),
        }
    }

    /// Checks whether `DeleteGroups` may remove the group.
    fn check_deletable(&self) -> Result<(), ResponseError> {
        match self.group.state() {
            _ if !self.exists() => Err(ResponseError::GroupIdNotFound),
            GroupState::Empty => Ok(()),
            GroupState::Dead => Err(ResponseError::GroupIdNotFound),
            _ => Err(ResponseError::NonEmptyGroup),
        }
    }

    fn committed(&self, is_doomed: impl Fn(&str, &CommittedOffset) -> bool) -> Vec<(String, i32)> {
        let all = self.offsets.iter();
        all.filter(|(topic, _, value)| is_doomed(topic, value))
            .map(|(topic, partition, _)| (topic.to_owned(), partition))
            .collect()
    }
}

impl Removal {
    pub(super) fn settle(self, group_id: &str, outcome: Result<(), ResponseError>) {
        match self {
            Self::Group(reply) | Self::Offsets(_, reply) | Self::Topics(_, reply) => {
                let _ = reply.send(outcome);
            }
            Self::Expired => {
                if let Err(error) = outcome {
                    // The next round tries again.
                    warn!(group = group_id, %error, "cannot remove expired offsets yet");
                }
            }
        }
    }
}

impl Inner {
    /// Appends tombstones and applies them, [`TOMBSTONES_MAX`] at a time.
    pub(super) async fn remove(
        &self,
        index: i32,
        epoch: u64,
        group_id: &str,
        payer: &Payer,
        doomed: Doomed,
    ) -> Result<(), ResponseError> {
        let unwritable = |_| ResponseError::UnknownServerError;
        let mut offsets = doomed.offsets.as_slice();
        loop {
            let (chunk, rest) = offsets.split_at(offsets.len().min(TOMBSTONES_MAX));
            let is_last = rest.is_empty();
            let mut tombstones = Vec::with_capacity(chunk.len() + 1);
            for (topic, partition) in chunk {
                let tombstone = records::offset_record(group_id, topic, *partition, None);
                tombstones.push(tombstone.map_err(unwritable)?);
            }
            if is_last && doomed.group {
                let tombstone = records::group_record(group_id, None);
                tombstones.push(tombstone.map_err(unwritable)?);
            }
            self.append(index, payer, tombstones).await?;
            let mut state = self.lock(index)?;
            let shard = state.active_since(epoch).ok_or(ResponseError::NotCoordinator)?;
            let entry = shard.entry(group_id);
            for (topic, partition) in chunk {
                entry.offsets.remove(topic, *partition);
            }
            entry.count();
            self.news.note(group_id);
            if is_last {
                if doomed.group {
                    entry.forget_group(group_id);
                    entry.count();
                }
                info!(
                    group = group_id,
                    offsets = doomed.offsets.len(),
                    deleted = doomed.group,
                    "removed offsets"
                );
                return Ok(());
            }
            offsets = rest;
        }
    }
}

impl Entry {
    /// Forgets a group whose tombstone is durable. Where members joined during the append the group
    /// stays, as one that has nothing in the log; its next record follows the tombstone.
    fn forget_group(&mut self, group_id: &str) {
        self.in_log = self.queue.has_group_record();
        if self.group.state() == GroupState::Empty && !self.in_log {
            self.group = Group::new(group_id);
        }
    }
}
