//! How many bytes of memory a group and its offsets take, and by how many a request would have
//! them grow.
//!
//! A text or metadata counts with its own bytes, and everything that has a node of its own in a
//! tree with a fixed number besides, which holds where trees are as empty as they can be. So what
//! is counted is no less than what is allocated: `tests/memory.rs` compares the two.

use super::api::{JoinRequest, Protocol, SyncRequest};
use super::offsets::{CommittedOffset, Offsets};
use super::state::{Group, GroupState, Member};
use super::subscription::Subscriptions;

/// A group without members and offsets.
const GROUP_BYTES: usize = 4_096;
/// How often a group's name is kept: by the group, its timers, its status and its writes.
const GROUP_NAME_COPIES: usize = 8;
/// A member without its texts and its metadata.
const MEMBER_BYTES: usize = 2_048;
/// How often a member's id is kept: by the group, its timers and the set of those that are awaited.
const MEMBER_ID_COPIES: usize = 6;
const INSTANCE_ID_COPIES: usize = 2;
/// A protocol of a member, without its name and metadata.
const PROTOCOL_BYTES: usize = 192;
/// An id that was given out, without its text.
const PENDING_BYTES: usize = 512;
const PENDING_ID_COPIES: usize = 4;
/// A topic of which offsets are committed, without its name.
const TOPIC_BYTES: usize = 1_536;
/// A committed offset without its metadata.
const OFFSET_BYTES: usize = 192;
/// Behind the client id or the instance id, a member's id has a hyphen and a UUID.
const FRESH_ID_BYTES: usize = 37;

impl Group {
    /// Bytes that the group takes, without its offsets.
    pub(super) fn bytes(&self) -> usize {
        let members = self.members.iter().map(|(id, member)| member.bytes(id.len()));
        let pending = self.pending_joins.iter().map(|id| pending_bytes(id));
        let subscribed = self.subscribed_topics.as_ref().map_or(0, Subscriptions::bytes);
        let protocol_type = self.protocol_type.as_ref().map_or(0, String::len);
        Self::bytes_of_new(&self.id)
            + protocol_type
            + members.sum::<usize>()
            + pending.sum::<usize>()
            + subscribed
    }

    /// Bytes that a group takes which nobody has joined.
    pub(super) fn bytes_of_new(id: &str) -> usize {
        GROUP_BYTES + GROUP_NAME_COPIES * id.len()
    }

    /// Bytes that a group takes which does not exist yet, once a `JoinGroup` has made it.
    pub(super) fn bytes_with(&self, request: &JoinRequest) -> usize {
        self.bytes() + self.growth_by_join(request)
    }

    /// By how many bytes a `JoinGroup` has the group grow, or at least makes it grow later.
    pub(super) fn growth_by_join(&self, request: &JoinRequest) -> usize {
        let instance = request.instance_id.as_ref();
        let known_id = self.known_id(request);
        let known = known_id.and_then(|id| Some((id, self.members.get(id)?)));
        let before = match (known, known_id) {
            (Some((id, member)), _) => member.bytes(id.len()),
            (None, Some(id)) if self.pending_joins.contains(id) => pending_bytes(id),
            _ => 0,
        };
        let prefix = instance.unwrap_or(&request.client.client_id);
        let id_bytes = match request.member_id.len() {
            0 => prefix.len() + FRESH_ID_BYTES,
            length => length,
        };
        let assignment = known.map_or(0, |(_, member)| member.assignment.len());
        let texts = [instance.map_or(0, String::len), id_bytes];
        let is_first = self.members.is_empty();
        let protocol_type = if is_first { request.protocol_type.len() } else { 0 };
        let client = request.client.client_id.len() + request.client.client_host.len();
        let member = member_bytes(texts, client, &request.protocols, assignment);
        member.saturating_sub(before) + protocol_type
    }

    /// The id under which the group may know the member that sends a `JoinGroup`.
    fn known_id<'a>(&'a self, request: &'a JoinRequest) -> Option<&'a str> {
        let instance = request.instance_id.as_ref();
        match request.member_id.as_str() {
            "" => instance.and_then(|id| self.static_members.get(id)).map(String::as_str),
            id => Some(id),
        }
    }

    /// The most bytes of metadata that the group's record has once a `JoinGroup` is taken, which
    /// is before any protocol is selected: the longest of each member.
    pub(super) fn metadata_with(&self, request: &JoinRequest) -> usize {
        let longest = |protocols: &[Protocol]| {
            protocols.iter().map(|protocol| protocol.metadata.len()).max().unwrap_or(0)
        };
        let known_id = self.known_id(request);
        let others = self.members.iter().filter(|(id, _)| Some(id.as_str()) != known_id);
        let others = others.map(|(_, member)| longest(&member.protocols));
        others.sum::<usize>() + longest(&request.protocols)
    }

    /// By how many bytes a `SyncGroup` has the group grow once it is stored.
    pub(super) fn growth_by_sync(&self, request: &SyncRequest) -> usize {
        if self.state != GroupState::CompletingRebalance || !self.is_leader(&request.member_id) {
            return 0;
        }
        let given = request.assignments.iter().map(|(_, assignment)| assignment.len());
        let before = self.members.values().map(|member| member.assignment.len());
        given.sum::<usize>().saturating_sub(before.sum())
    }
}

impl Member {
    fn bytes(&self, id_bytes: usize) -> usize {
        let texts = [self.instance_id.as_ref().map_or(0, String::len), id_bytes];
        let client = self.client.client_id.len() + self.client.client_host.len();
        member_bytes(texts, client, &self.protocols, self.assignment.len())
    }
}

fn member_bytes(
    [instance_bytes, id_bytes]: [usize; 2],
    client_bytes: usize,
    protocols: &[Protocol],
    assignment_bytes: usize,
) -> usize {
    let protocols = protocols.iter();
    let protocols = protocols.map(|one| PROTOCOL_BYTES + 2 * one.name.len() + one.size());
    MEMBER_BYTES
        + INSTANCE_ID_COPIES * instance_bytes
        + MEMBER_ID_COPIES * id_bytes
        + client_bytes
        + protocols.sum::<usize>()
        + assignment_bytes
}

fn pending_bytes(id: &str) -> usize {
    PENDING_BYTES + PENDING_ID_COPIES * id.len()
}

/// Bytes that the first offset of a topic takes besides its own.
pub(super) fn topic_bytes(topic: &str) -> usize {
    TOPIC_BYTES + topic.len()
}

/// Bytes that a committed offset takes.
pub(super) fn offset_bytes(offset: &CommittedOffset) -> usize {
    OFFSET_BYTES + offset.metadata.len()
}

impl Offsets {
    /// By how many bytes these commits have the offsets grow, at most: where one names a partition
    /// twice, the partition counts twice.
    pub(super) fn growth_by(&self, commits: &[(String, i32, CommittedOffset)]) -> usize {
        let mut growth = 0;
        let mut last_topic = None;
        for (topic, partition, value) in commits {
            growth += match self.get(topic, *partition) {
                Some(known) => offset_bytes(value).saturating_sub(offset_bytes(known)),
                None => offset_bytes(value),
            };
            if last_topic != Some(topic) && !self.has_topic(topic) {
                growth += topic_bytes(topic);
            }
            last_topic = Some(topic);
        }
        growth
    }
}
