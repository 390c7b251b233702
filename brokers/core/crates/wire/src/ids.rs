//! Identifiers that occur everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A start of a broker: a number that is never used twice in a cluster. Each owns one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Kafka's leader epoch of a partition. Never goes back.
pub type Epoch = i32;

/// The identity of a topic; a topic that is deleted and made again has a new one.
pub type TopicId = uuid::Uuid;

/// The identity of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionId {
    /// Its topic.
    pub topic: TopicId,
    /// Its number in the topic, from 0.
    pub index: i32,
}

impl PartitionId {
    /// The partition `index` of `topic`.
    pub fn new(topic: TopicId, index: i32) -> Self {
        Self { topic, index }
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.topic.simple(), self.index)
    }
}
