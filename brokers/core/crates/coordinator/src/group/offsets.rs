//! The committed offsets of a group, and when they expire (KIP-211).

use std::collections::BTreeMap;

use super::state::{Group, GroupState};
use super::weight::{offset_bytes, topic_bytes};

/// A committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to consume.
    pub offset: i64,
    /// Leader epoch of the last record consumed, or −1.
    pub leader_epoch: i32,
    /// The text that the client stores with it.
    pub metadata: String,
    /// When it was committed, in milliseconds since 1970.
    pub commit_timestamp_ms: i64,
    /// When it expires, where the client said so (versions 2 to 4 of `OffsetCommit`).
    pub expire_timestamp_ms: Option<i64>,
}

/// The committed offsets of one group, by topic and partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offsets {
    by_topic: BTreeMap<String, BTreeMap<i32, CommittedOffset>>,
    /// What they take, in bytes.
    bytes: usize,
}

impl Offsets {
    /// The offset of a partition.
    pub fn get(&self, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.by_topic.get(topic)?.get(&partition)
    }

    /// Whether any offset of the topic is committed.
    pub(super) fn has_topic(&self, topic: &str) -> bool {
        self.by_topic.contains_key(topic)
    }

    /// Sets the offset of a partition.
    pub fn put(&mut self, topic: &str, partition: i32, value: CommittedOffset) {
        self.bytes += offset_bytes(&value);
        if let Some(partitions) = self.by_topic.get_mut(topic) {
            let before = partitions.insert(partition, value);
            self.bytes -= before.as_ref().map_or(0, offset_bytes);
        } else {
            self.bytes += topic_bytes(topic);
            self.by_topic.insert(topic.to_owned(), BTreeMap::from([(partition, value)]));
        }
    }

    /// Forgets the offset of a partition.
    pub fn remove(&mut self, topic: &str, partition: i32) {
        if let Some(partitions) = self.by_topic.get_mut(topic) {
            self.bytes -= partitions.remove(&partition).as_ref().map_or(0, offset_bytes);
            if partitions.is_empty() {
                self.bytes -= topic_bytes(topic);
                self.by_topic.remove(topic);
            }
        }
    }

    /// What they take, in bytes.
    pub fn bytes(&self) -> usize {
        debug_assert_eq!(self.bytes, self.count_bytes(), "each change is counted");
        self.bytes
    }

    fn count_bytes(&self) -> usize {
        let topics = self.by_topic.keys().map(|topic| topic_bytes(topic));
        topics.sum::<usize>() + self.iter().map(|(_, _, value)| offset_bytes(value)).sum::<usize>()
    }

    /// Whether nothing is committed.
    pub fn is_empty(&self) -> bool {
        self.by_topic.is_empty()
    }

    /// How many partitions have an offset.
    pub fn len(&self) -> usize {
        self.by_topic.values().map(BTreeMap::len).sum()
    }

    /// All offsets in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i32, &CommittedOffset)> {
        self.by_topic.iter().flat_map(|(topic, partitions)| {
            partitions.iter().map(|(partition, value)| (topic.as_str(), *partition, value))
        })
    }

    /// Offsets by topic.
    pub fn topics(&self) -> impl Iterator<Item = (&str, &BTreeMap<i32, CommittedOffset>)> {
        self.by_topic.iter().map(|(topic, partitions)| (topic.as_str(), partitions))
    }

    /// The partitions whose offsets have expired at `wall_ms`, as Kafka decides it:
    /// - in an empty group, `retention_ms` after the group became empty (or after the commit, where
    ///   an old record does not say when that was);
    /// - in a group that only commits offsets, `retention_ms` after the commit;
    /// - in a stable consumer group, `retention_ms` after the commit, of topics to which nobody
    ///   subscribes any more;
    /// - in any other group, never.
    ///
    /// An offset with an expiry of its own expires at that time.
    pub fn expired(&self, group: &Group, wall_ms: i64, retention_ms: i64) -> Vec<(String, i32)> {
        let became_empty_ms = match (group.protocol_type(), group.state()) {
            (None, _) => None,
            (Some(_), GroupState::Empty) => group.state_timestamp_ms(),
            (Some(_), GroupState::Stable) if group.knows_subscriptions() => None,
            _ => return Vec::new(),
        };
        let is_expired = |value: &CommittedOffset| {
            if let Some(expire_timestamp_ms) = value.expire_timestamp_ms {
                return wall_ms >= expire_timestamp_ms;
            }
            let since = became_empty_ms.unwrap_or(value.commit_timestamp_ms);
            wall_ms.saturating_sub(since) >= retention_ms
        };
        self.iter()
            .filter(|(topic, _, value)| !group.is_subscribed_to(topic) && is_expired(value))
            .map(|(topic, partition, _)| (topic.to_owned(), partition))
            .collect()
    }
}
