//! Coordinators: state that lives in Kafka's compacted internal topics and moves with their
//! partitions. `group` keeps consumer groups and committed offsets in `__consumer_offsets`.
//!
//! A coordinator knows nothing of lanes, leaders or sockets: it appends to and reads from a
//! [`CoordinatorLog`], and the broker that leads the partitions calls it to load and unload them.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use kafka_protocol::ResponseError;

pub mod group;

/// One record of an internal topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorRecord {
    /// The key, by which the topic is compacted.
    pub key: Bytes,
    /// The value; `None` is a tombstone.
    pub value: Option<Bytes>,
}

impl CoordinatorRecord {
    /// Bytes of key and value together.
    pub fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// Receives the records of a partition in order, first their key, then their value.
pub type RecordVisitor<'a> = dyn FnMut(Bytes, Option<Bytes>) + Send + 'a;

/// The partitions of one internal topic, as a coordinator needs them.
#[async_trait]
pub trait CoordinatorLog: Send + Sync {
    /// Appends the records as one batch to partition `index`, after every append that was awaited
    /// before. They are metered for `payer`, who asked for them; `None` is the service itself.
    /// Returns once they are durable and readers can see them. It must not wait for ever
    /// once the partition is given up, because a later load waits for it.
    ///
    /// # Errors
    /// [`ResponseError::NotCoordinator`] or [`ResponseError::NotLeaderOrFollower`] where another
    /// broker leads the partition or this one stood down; [`ResponseError::MessageTooLarge`] where
    /// the batch is too large; others as Kafka's log gives them. After an error that leaves it
    /// open whether the records are in the log, the partition must be loaded anew.
    async fn append(
        &self,
        index: i32,
        payer: Option<&Arc<str>>,
        records: Vec<CoordinatorRecord>,
    ) -> Result<(), ResponseError>;

    /// Streams all live records of the partition from its log start to the current end.
    ///
    /// # Errors
    /// The error where the partition cannot be read to its end; then the records visited so far
    /// must not be used.
    async fn read(&self, index: i32, visit: &mut RecordVisitor<'_>) -> Result<(), ResponseError>;
}

/// The partition of an internal topic that holds `key` (a group or a transactional id): Kafka's
/// `Utils.abs(key.hashCode()) % partition_count`.
pub fn partition_for(key: &str, partition_count: i32) -> i32 {
    // Kafka's abs maps i32::MIN to 0.
    let positive = java_hash_code(key).checked_abs().unwrap_or(0);
    positive % partition_count.max(1)
}

/// `java.lang.String.hashCode`: over the UTF-16 units, wrapping at 32 bits.
fn java_hash_code(text: &str) -> i32 {
    text.encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_codes_are_those_of_java() {
        assert_eq!(java_hash_code(""), 0);
        assert_eq!(java_hash_code("a"), 97);
        assert_eq!(java_hash_code("hello"), 99_162_322);
        assert_eq!(java_hash_code("polygenelubricants"), i32::MIN);
        // A character outside the basic plane counts as its two surrogates.
        assert_eq!(java_hash_code("\u{1f600}"), 0xd83d * 31 + 0xde00);
    }

    #[test]
    fn a_group_has_the_partition_that_kafka_gives_it() {
        assert_eq!(partition_for("polygenelubricants", 50), 0);
        assert_eq!(partition_for("hello", 50), 22);
        assert_eq!(partition_for("", 50), 0);
        assert_eq!(java_hash_code("my-group"), -1_906_497_762);
        assert_eq!(partition_for("my-group", 50), 12);
    }
}
